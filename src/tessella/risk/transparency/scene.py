"""The two tables as a knowing intruder sees them: what was masked together, what stayed as it was.

Columns that he knows and that were not masked are released as they are: there a masked record and
its original agree. So do missing cells, and strata.

What an attack that knows the method finds: the originals that a masked record can come from.

Who can be in a group of which only the mean and the size are known.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from ..._types import Floats, Integers, Name, Truths
from ...exceptions import AttackError
from ...frame import Table, View
from ...kernels.duplicates import number_equal
from ...masking.base import Scale
from ...masking.selection import select
from ...schema import Schema
from ..aligned import AlignedTables, align_tables
from ..estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Candidates",
    "ReleasedGroups",
    "Scene",
    "number_equal_rows",
    "possible_members",
    "set_scene",
]

SURE = 0.99  # a candidate that is more probable than this is the only one


@dataclass(frozen=True, kw_only=True, repr=False)
class Candidates(Estimate):
    """How many originals each masked record can come from, and how often the intruder is right.

    He names the most probable original. Where t are equally probable he is right with chance 1/t,
    and `value` is the mean of these chances. Besides the fields of `Estimate`:

    Parameters
    ----------
    attacked : array of shape (n,)
        The rows of the masked table that were attacked.
    truth : array of shape (n,)
        The row of the original that each comes from.
    size : array of shape (n,)
        How many originals each can come from.
    present : array of shape (n,)
        Whether the truth is among them.
    chance : array of shape (n,)
        The chance that he names the right one.
    belief : array of shape (n,)
        The probability that he gives to the truth.
    largest : array of shape (n,)
        The probability of the one that he names.
    effective : array of shape (n,)
        The effective number of candidates, e to the entropy of the probabilities: equal to `size`
        where all candidates are equally probable.
    """

    attacked: Integers = field(repr=False)
    truth: Integers = field(repr=False)
    size: Integers = field(repr=False)
    present: Truths = field(repr=False)
    chance: Floats = field(repr=False)
    belief: Floats = field(repr=False)
    largest: Floats = field(repr=False)
    effective: Floats = field(repr=False)

    @classmethod
    def of_sets(
        cls,
        *,
        size: Integers,
        present: Truths,
        attacked: Integers,
        truth: Integers,
        n_originals: int,
        n_masked: int,
        attack: str,
        assumptions: Sequence[str],
    ) -> Candidates:
        """Build the result of an attack whose candidates are all equally probable."""
        share = np.where(size > 0, 1.0 / np.maximum(size, 1), 0.0)
        chance = np.where(present, share, 0.0)
        found: Candidates = cls.of(
            float(chance.sum()),
            len(size),
            baseline=1 / n_originals,
            attack=attack,
            assumptions=assumptions,
            exact=len(size) == n_masked,
            attacked=attacked,
            truth=truth,
            size=size,
            present=present,
            chance=chance,
            belief=chance,
            largest=share,
            effective=size.astype(np.float64),
        )
        return found

    @property
    def single(self) -> float:
        """The share of records with exactly one candidate (one of more than 99 %)."""
        return float((self.largest > SURE).mean())

    @property
    def expected(self) -> float:
        """The mean effective number of candidates."""
        return float(self.effective.mean())

    @property
    def covered(self) -> float:
        """The share of records whose true original is among the candidates."""
        return float(self.present.mean())

    @property
    def records(self) -> pd.DataFrame:
        """One line for each attacked record. Confidential: it says who can be found."""
        import pandas as pd

        return pd.DataFrame(
            {
                "masked": self.attacked,
                "original": self.truth,
                "candidates": self.size,
                "effective": self.effective,
                "present": self.present,
                "belief": self.belief,
                "chance": self.chance,
            }
        )

    def __str__(self) -> str:
        covered = (
            "the truth always among them"
            if self.present.all()
            else f"the truth among them for {100 * self.covered:.1f} %"
        )
        return (
            f"{super().__str__()}; one candidate for {100 * self.single:.1f} %, "
            f"{self.expected:.3g} on average, {covered}"
        )

    __repr__ = __str__

    def checked(self, strict: bool, method: str) -> Candidates:
        """Refuse a table that cannot come from the method as stated, if that is wanted."""
        if strict and not self.present.all():
            raise AttackError.not_from(method=method, lacking=int((~self.present).sum()), n=self.n)
        return self


STEPS = 100  # of the search for prices
SINGLE = 2.0**-23  # of a number's size: what rounding it to a float32 may change
ROOM = 1e-9  # of the numbers' size: what sums in floating point may lack


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedGroups:
    """Groups that a release shows in one block."""

    number: Integers  # (m,) the group of each masked record
    sizes: Integers  # (groups,)
    centres: Floats  # (groups, d) as released, NaN where missing
    leader: Integers  # (groups,) a masked record of each


def possible_members(
    scene: Scene, places: list[int], groups: ReleasedGroups, *, margin: int | None, scale: Any
) -> tuple[Integers, Integers]:
    """Return pairs of group and original that are possible, or near, as two arrays."""
    B = scene.sides.B[:, places]
    names = [scene.sides.columns[j] for j in places]
    half = _half_steps(B, scene.sides.A[:, places])
    wish = {n: scale[n] for n in names if n in scale} if isinstance(scale, dict) else scale
    measured = Scale.of(B, np.ones(scene.n), wish, names)
    gaps = np.concatenate([np.isnan(B), np.isnan(groups.centres)])
    layer = scene.strata[scene.sides.truth[groups.leader]]
    parts = number_equal_rows([np.concatenate([scene.strata, layer]), gaps])
    lists, members = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for part in np.unique(parts):
        rows = np.flatnonzero(parts[: scene.n] == part)
        here = np.flatnonzero(parts[scene.n :] == part)
        if len(rows) == 0 or len(here) == 0:
            continue
        X, C = measured.apply(B[rows]), measured.apply(groups.centres[here])
        step = np.where(gaps[rows[0]], 0.0, half / measured.unit)
        if margin is None:
            allowed = _allowed(X, C, groups.sizes[here], step)
            record, group = np.nonzero(allowed)
        else:
            t = min(margin, len(here))
            near = np.asarray(KDTree(C).query(X, k=t)[1]).reshape(len(X), t)
            record, group = np.repeat(np.arange(len(X)), t), near.ravel()
        lists.append(here[group])
        members.append(rows[record])
    return np.concatenate(lists), np.concatenate(members)


def _half_steps(B: Floats, A: Floats) -> Floats:
    """Return how far released means may be from the exact ones: half of 1 if all are whole.

    Means that a float32 holds exactly were perhaps rounded to one.
    """
    whole = (np.isnan(A) | (np.round(A) == A)).all(axis=0)
    with np.errstate(over="ignore"):
        single = (np.isnan(A) | (A.astype(np.float32) == A)).all(axis=0) & ~whole
    size = np.nanmax(np.abs(np.concatenate([B, np.zeros((1, B.shape[1]))])), axis=0)
    steps: Floats = np.where(whole, 0.5, 0.0) + np.where(single, SINGLE, ROOM) * size
    return steps


def _allowed(X: Floats, C: Floats, sizes: Integers, step: Floats) -> Truths:
    """Say which of the records (n, d) can be in which of the groups: (n, groups)."""
    return _mean_is_left(X, C, sizes, step) & _loss_is_left(X, C, sizes, step)


def _mean_is_left(X: Floats, C: Floats, sizes: Integers, step: Floats) -> Truths:
    """Whether s - 1 originals can make up the rest of a group's sum, column by column."""
    allowed = np.ones((len(X), len(C)), dtype=bool)
    others = np.minimum(sizes - 1, len(X))
    for j in range(X.shape[1]):
        sums = np.concatenate([[0.0], np.cumsum(np.sort(X[:, j]))])
        least, most = sums[others], sums[-1] - sums[len(X) - others]
        room = sizes * step[j] + ROOM * np.abs(X[:, j]).sum()
        total = sizes * C[:, j]
        allowed &= (X[:, j, None] >= total - most - room) & (X[:, j, None] <= total - least + room)
    return allowed


def _loss_is_left(X: Floats, C: Floats, sizes: Integers, step: Floats) -> Truths:
    """Whether the loss suffices for a record to be so far from its centre."""
    if len(C) == 1:
        return np.ones((len(X), 1), dtype=bool)
    X, C = X - X.mean(axis=0), C - X.mean(axis=0)
    squares = float((X * X).sum())
    # With a rounded centre c' = c + e, the sum of |x - c'|^2 is that of |x|^2 less that of
    # s |c'|^2, plus 2 s e c', of which only |e| <= step is known.
    loss = squares - float(sizes @ (C * C).sum(axis=1)) + ROOM * squares
    loss += 2 * float(sizes @ (np.abs(C) @ step))
    cost = cdist(X, C, "sqeuclidean")
    prices, best, bound = np.zeros(len(C)), np.zeros(len(C)), -np.inf
    for number in range(STEPS):  # subgradient steps, in length the gap by the square (Polyak)
        priced = cost + prices
        cheapest = priced.argmin(axis=1)
        value = float(priced[np.arange(len(X)), cheapest].sum() - sizes @ prices)
        if value > bound:
            best, bound = prices, value
        crowd = np.bincount(cheapest, minlength=len(C)) - sizes
        size = float(crowd @ crowd)
        if size == 0 or loss <= bound:
            break
        prices = prices + (loss - value) / size * crowd * 0.98**number
    priced = cost + best
    above = priced - priced.min(axis=1, keepdims=True)
    allowed: Truths = above <= max(loss - bound, 0.0) + ROOM * squares
    return allowed


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """Both tables, aligned, in the columns that the intruder knows.

    `masked` are the places of the known columns that were masked, `blocks` those of each block of
    which some column is known, and `whole` says whether all of them are.
    """

    sides: AlignedTables
    masked: list[int]
    blocks: list[list[int]]
    whole: list[bool]
    strata: Integers  # (n,) of the originals
    like: Integers  # (n,) originals with the same number agree in all that was not masked
    likes: Integers  # (m,) the same of masked records; -1 if no original agrees
    notes: tuple[str, ...]

    @property
    def n(self) -> int:
        """The number of originals."""
        return len(self.sides.B)

    @property
    def m(self) -> int:
        """The number of masked records."""
        return len(self.sides.A)

    @property
    def complete(self) -> bool:
        """Whether every original was released."""
        return self.n == self.m

    def need_complete(self, what: str) -> None:
        """Refuse a masked table with fewer records than the original."""
        if not self.complete:
            raise AttackError.incomplete(what=what, original=self.n, masked=self.m)


def set_scene(
    original: Any,
    masked: Any,
    *,
    known: Any,
    id: Name | None,
    schema: Schema | None,
    columns: Any,
    strata: Any,
    blocks: Any = None,
) -> Scene:
    """Read both tables and sort their columns, or say why they cannot be compared."""
    original, masked = View.of(original, schema), View.of(masked, schema)
    sides = align_tables(original, masked, known=known, id=id, schema=schema)
    before, after = original.table, masked.table
    if columns is None:
        columns = _numbers(before, after, id, strata, schema)
    chosen = select(
        before, columns=columns, blocks=blocks, strata=strata, weights=None, schema=None
    )
    place = {name: j for j, name in enumerate(sides.columns)}
    hidden = [place[name] for name in chosen.masked if name in place]
    if not hidden:
        raise AttackError.nothing_masked(masked=chosen.masked, known=sides.columns)
    if text := [sides.columns[j] for j in hidden if sides.nominal[j]]:
        raise AttackError.not_numbers(columns=text)
    seen = [[place[name] for name in block if name in place] for block in chosen.blocks]
    kept = [(own, len(own) == len(block)) for own, block in zip(seen, chosen.blocks) if own]
    open_ = [j for j in range(len(sides.columns)) if j not in set(hidden)]
    layers = chosen.strata.ids
    notes = [f"known: {', '.join(str(sides.columns[j]) for j in hidden)}", *sides.notes]
    if open_:
        named = ", ".join(str(sides.columns[j]) for j in open_)
        notes.append(f"known and released as they are, so equal in both tables: {named}")
    if len(chosen.strata.names) > 1:
        notes.append("he knows the stratum of each record")
    like, likes = _agreeing(sides, open_, layers)
    return Scene(
        sides=sides,
        masked=hidden,
        blocks=[own for own, _ in kept],
        whole=[whole for _, whole in kept],
        strata=layers,
        like=like,
        likes=likes,
        notes=tuple(notes),
    )


def number_equal_rows(columns: Sequence[Any]) -> Integers:
    """Number records 0, 1, ... that agree in all columns; missing cells agree with each other."""
    X = np.column_stack(columns).astype(np.float64)
    lacking = np.isnan(X)
    if lacking.any():
        X = np.hstack([np.where(lacking, 0.0, X), lacking])
    ids: Integers = number_equal(np.ascontiguousarray(X))[0]
    return ids


def _numbers(
    before: Table, after: Table, id: Name | None, strata: Any, schema: Schema | None
) -> list[Name]:
    """Take all columns of numbers for masked that nothing else is said of."""
    named = strata if isinstance(strata, list | tuple) else [strata]
    taken = {id, *(name for name in named if isinstance(name, Hashable) and before.has(name))}
    left_out: set[Name] = set()
    if schema is not None:
        schema.check(before)
        left_out = {
            column.name
            for column in schema
            if column.role != "quasi-identifier" or column.kind in ("ordinal", "nominal")
        }
    return [
        name
        for name in before.columns
        if after.has(name)
        and name not in taken
        and name not in left_out
        and before.facts(name).numeric
    ]


def _agreeing(
    sides: AlignedTables, places: Sequence[int], strata: Integers
) -> tuple[Integers, Integers]:
    """Number originals and masked records that agree in what was not masked."""
    n = len(sides.B)
    columns = [np.concatenate([strata, strata[sides.truth]])]
    for j in places:
        columns.append(np.concatenate([sides.B[:, j], sides.A[:, j]]))
    numbers = number_equal_rows(columns)
    own = np.unique(numbers[:n])
    like = np.searchsorted(own, numbers[:n])
    at = np.minimum(np.searchsorted(own, numbers[n:]), len(own) - 1)
    return like, np.where(own[at] == numbers[n:], at, -1)
