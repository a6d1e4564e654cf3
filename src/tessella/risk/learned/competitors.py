"""Who competes with whom: the rows that decide whether a record is linked.

A *row* is φ(a_i - b_j) - φ(a_i - b_i) for a record i and a competitor j: record i is linked by
parameters θ if all its rows have a positive product with θ. Under a monotone distance a competitor
that another one beats in every variable never decides, so few are kept for each record.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..._types import Floats, Integers
from ...kernels.competitors import least_rows, product, unbeaten
from ...parallel import each
from ..aligned import AlignedTables
from .family import Family

__all__ = [
    "Competitors",
    "Rows",
    "hopeful",
    "least_competitors",
    "near_competitors",
    "rows_of",
]


PIECE = 64  # records for a piece of work


@dataclass(frozen=True, kw_only=True)
class Competitors:
    """For each of some records, the originals that decide whether it is linked.

    Those of records[at] are which[starts[at] : starts[at + 1]]. `hopeless` counts the records that
    were left out because some original is at least as near in every variable.
    """

    records: Integers
    starts: Integers
    which: Integers
    hopeless: int = 0

    def chosen(self, records: Integers) -> Competitors:
        """Return the competitors of some of the records."""
        keep = np.isin(self.records, records)
        sizes = np.diff(self.starts)
        return Competitors(
            records=self.records[keep],
            starts=np.concatenate([[0], np.cumsum(sizes[keep])]).astype(np.int64),
            which=self.which[np.repeat(keep, sizes)],
        )

    def thinned(self, most_rows: int, generator: np.random.Generator) -> Competitors:
        """Return the competitors of as many records, drawn at random, as have `most_rows` rows."""
        if len(self.which) <= most_rows:
            return self
        drawn = generator.permutation(len(self.records))
        sizes = np.cumsum(np.diff(self.starts)[drawn])
        kept = drawn[: max(1, int(np.searchsorted(sizes, most_rows)))]
        return self.chosen(self.records[kept])


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows of records in the feature space of a family, dense or sparse."""

    starts: Integers
    matrix: Any

    @property
    def cells(self) -> int:
        """The numbers that one product looks at."""
        return int(getattr(self.matrix, "nnz", self.matrix.size))

    def along(self, theta: Floats) -> Floats:
        """Return the product of each row with θ."""
        if isinstance(self.matrix, np.ndarray):
            return product(self.matrix, theta)
        out: Floats = np.asarray(self.matrix @ theta, dtype=np.float64)
        return out


def hopeful(sides: AlignedTables, records: Integers) -> Integers:
    """Return the records that no other original beats in every variable."""
    work = partial(unbeaten, sides.A, sides.B, sides.truth)
    pieces = np.array_split(records, max(1, -(-len(records) // PIECE)))
    found: Integers = np.concatenate([some[good] for good, some in each(work, pieces)])
    return found


def least_competitors(sides: AlignedTables, records: Integers) -> Competitors:
    """Keep the competitors that no other beats in every variable, and the records with a chance."""
    work = partial(least_rows, sides.A, sides.B, sides.truth)
    pieces = np.array_split(records, max(1, -(-len(records) // PIECE)))
    found = each(work, pieces)
    sizes = np.concatenate([np.diff(starts) for starts, _ in found])
    which = np.concatenate([each_which for _, each_which in found])
    hopeful = sizes > 0
    return Competitors(
        records=records[hopeful],
        starts=np.concatenate([[0], np.cumsum(sizes[hopeful])]).astype(np.int64),
        which=which,
        hopeless=int((~hopeful).sum()),
    )


def near_competitors(
    sides: AlignedTables, records: Integers, turns: list[Floats], count: int
) -> Competitors:
    """Keep the `count` nearest competitors under each of some linear maps.

    For distances that are not monotone; others may decide too, so links by these rows alone are to
    be counted again over all originals.
    """
    from scipy.spatial import cKDTree

    some = min(count + 1, len(sides.B))
    found = []
    for turn in turns:
        tree = cKDTree(sides.B @ turn)
        found.append(tree.query(sides.A[records] @ turn, k=some, workers=1)[1])
    near = np.sort(np.hstack(found), axis=1)
    fresh = np.ones(near.shape, dtype=bool)
    fresh[:, 1:] = near[:, 1:] != near[:, :-1]
    fresh &= near != sides.truth[records][:, None]
    return Competitors(
        records=records,
        starts=np.concatenate([[0], np.cumsum(fresh.sum(axis=1))]).astype(np.int64),
        which=near[fresh].astype(np.int64),
    )


def rows_of(sides: AlignedTables, competitors: Competitors, family: Family) -> Rows:
    """Return the rows of all records and competitors in the feature space of a family."""
    records, sizes = competitors.records, np.diff(competitors.starts)
    own = family.features(sides.A[records] - sides.B[sides.truth[records]])
    owner = np.repeat(np.arange(len(records)), sizes)
    theirs = family.features(sides.A[records[owner]] - sides.B[competitors.which])
    matrix = theirs - own[owner]
    if isinstance(matrix, np.ndarray):
        matrix = np.asfortranarray(matrix)
    return Rows(starts=competitors.starts, matrix=matrix)
