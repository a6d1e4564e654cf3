"""Groups of records that differ most in a number: the leaves of a regression tree.

A node is split where the sum of squares falls most, the node with the largest fall first, until
there are enough leaves (Breiman, Friedman, Olshen and Stone 1984). Columns are coded by whole
numbers, so the sums of all splits of a column follow from one count over its codes, without
sorting. scikit-learn has such trees, but takes a second to load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name, Truths

EPSILON = float(np.finfo(np.float64).eps)
# Splits whose falls differ by less than so much of the sum of squares are equal, and rounding does
# not decide between them: the first column's is taken.
EQUAL = 1e-12
PLACES = 50  # labels of a category that are tried: the first fifty are enough for words
DEPTH = 4  # splits above a leaf

Words = dict[tuple[Name, str], str]  # what the records of a node share, in words


@dataclass(frozen=True, kw_only=True, eq=False)
class CodedColumn:
    """A column as places in `labels`, -1 where it is missing; numbers are in ascending order."""

    name: Name
    codes: Integers
    labels: Any
    is_number: bool


@dataclass(frozen=True, kw_only=True)
class Split:
    """Which codes of a column go to the left, and how much the sum of squares falls.

    Of a number those up to `at`, all that are known where it is None; of a category all but `at`.
    """

    fall: float
    column: CodedColumn
    at: int | None
    missing_left: bool

    def left(self, codes: Integers) -> Truths:
        """Return which records go to the left."""
        if not self.column.is_number:
            return np.asarray(codes != self.at)
        known = codes >= 0
        below = known if self.at is None else known & (codes <= self.at)
        return below | ~known if self.missing_left else below

    def words(self) -> tuple[Words, Words]:
        """Return what holds to the left and to the right; a tighter bound replaces a wider one."""
        name, labels = self.column.name, self.column.labels
        if not self.column.is_number:
            at = self.at or 0
            key = (name, f"= {labels[at]}")
            only_two = len(labels) == 2 and bool((self.column.codes >= 0).all())
            rest = f"= {labels[1 - at]}" if only_two else f"is not {labels[at]}"
            return {key: f"{name} {rest}"}, {key: f"{name} = {labels[at]}"}
        if self.at is None:
            key = (name, "missing")
            return {key: f"{name} known"}, {key: f"{name} missing"}
        edge = f"{(labels[self.at] + labels[self.at + 1]) / 2:.6g}"
        return {(name, "<="): f"{name} <= {edge}"}, {(name, ">"): f"{name} > {edge}"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """Some records: their rows, and in words what they share."""

    rows: Integers
    words: Mapping[tuple[Name, str], str] = field(default_factory=dict)
    depth: int = 0

    def __str__(self) -> str:
        return " and ".join(self.words.values()) or "all records"


@dataclass(frozen=True, kw_only=True, eq=False)
class Growing:
    """What a tree shall explain, and by what.

    Parameters
    ----------
    columns : sequence of CodedColumn
        What records are split by; of equal splits the first column's is taken.
    values, weights : ndarray of shape (n,)
        Records of weight zero are placed, and count for nothing.
    least_records : int
        The least number of records on each side of a split.
    least_fall : float
        The least fall of the sum of squares by a split.
    """

    columns: Sequence[CodedColumn]
    values: Floats
    weights: Floats
    least_records: int
    least_fall: float

    def leaves(self, most: int) -> list[Node]:
        """Grow a tree with so many leaves at most; return them in the order they were made."""
        root = Node(rows=np.arange(len(self.values)))
        splits = {root: self.best_split(root)}
        while len(splits) < most:
            node, best = max(splits.items(), key=lambda pair: pair[1].fall if pair[1] else -1.0)
            if best is None:
                break
            left = best.left(best.column.codes[node.rows])
            del splits[node]
            for side, words in zip((left, ~left), best.words()):
                made = Node(rows=node.rows[side], words={**node.words, **words},
                            depth=node.depth + 1)  # fmt: skip
                splits[made] = self.best_split(made)
        return list(splits)

    def best_split(self, node: Node) -> Split | None:
        """Return the split by which the sum of squares falls most; None where a leaf stays one."""
        weights = self.weights[node.rows]
        values = self.values[node.rows] - np.average(self.values[node.rows], weights=weights)
        squares = float(weights @ values**2)
        if node.depth == DEPTH or squares <= EPSILON * weights.sum():
            return None
        best: Split | None = None
        for column in self.columns:
            for split in self._splits(column, column.codes[node.rows], values, weights):
                if split.fall > (best.fall + EQUAL * squares if best else 0.0):
                    best = split
        whole = EPSILON * float(self.weights.sum())
        return None if best is None or best.fall + whole < self.least_fall else best

    def _splits(
        self, column: CodedColumn, codes: Integers, values: Floats, weights: Floats
    ) -> Iterator[Split]:
        """Return the best splits of a column: of a number with those that lack it on each side.

        As values have mean zero in the node, the sum of squares falls by the square of the sum to
        the left times (1 / weight to the left + 1 / weight to the right).
        """
        # One row for each code: how many records, their weight, and the sum of their values.
        sums = np.stack([
            np.bincount(codes + 1, what, minlength=len(column.labels) + 1)
            for what in ((weights > 0).astype(np.float64), weights, weights * values)
        ])  # fmt: skip
        whole, lacking, sums = sums.sum(axis=1), sums[:, :1], sums[:, 1:]
        if not column.is_number:
            yield from self._best(column, whole[:, None] - sums[:, :PLACES], whole, range(PLACES))
            return
        there = np.flatnonzero(sums[0])
        below = sums[:, there].cumsum(axis=1)
        cuts: list[int | None] = [*((there[:-1] + there[1:]) // 2).tolist(), None]
        yield from self._best(column, below, whole, cuts)
        if lacking[0, 0]:
            yield from self._best(column, below + lacking, whole, cuts, missing_left=True)

    def _best(
        self, column: CodedColumn, left: Floats, whole: Floats, cuts: Sequence[int | None],
        *, missing_left: bool = False,
    ) -> Iterator[Split]:  # fmt: skip
        """Return the best of some splits, with these sums to the left, if any is allowed."""
        fits = (left[0] >= self.least_records) & (whole[0] - left[0] >= self.least_records)
        fits &= left[1] < whole[1]  # where rounding leaves nothing of the smallest weights
        if fits.any():
            weight = np.where(fits, left[1], whole[1] / 2)
            fall = np.where(fits, left[2] ** 2 * (1 / weight + 1 / (whole[1] - weight)), -1.0)
            at = int(fall.argmax())
            yield Split(fall=float(fall[at]), column=column, at=cuts[at], missing_left=missing_left)
