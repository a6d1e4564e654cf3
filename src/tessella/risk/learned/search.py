"""Who competes with whom, and the exact line search for the parameters that link most records.

A *row* is φ(a_i - b_j) - φ(a_i - b_i) for a record i and a competitor j: record i is linked by
parameters θ if all its rows have a positive product with θ. Under a monotone distance a competitor
that another one beats in every variable never decides, so few are kept for each record.

Along a line θ + t·v each record is linked on one interval of t (its rows are linear), so the number
of links is a staircase whose every step is known: the best t is found exactly by sorting the ends
of the intervals. Lines are single parameters, random directions, and directions that help a record
that is not linked yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._types import Floats, Integers, SmallIntegers, Truths
from ...kernels import candidates as kernels
from ..aligned import AlignedTables, count_family
from .families import Family

PIECE = 64  # records for a piece of work
SAMPLED = 32  # records that tell how many competitors there are
MARGIN = 1e-9  # of standardised squares: a record is linked when its rows exceed it
FAR = 1e3  # how far a line is followed; parameters sum to 1
WORK = 1.5e9  # numbers looked at in one search; a limit of time would depend on the machine
LARGE = 100_000  # numbers in all rows: beyond, lines are searched on the lowest rows
LOWEST = 8  # rows of each record then
PATIENCE = 2  # sweeps without a new link


@dataclass(frozen=True, order=True)
class MemberLinks:
    """What a member links over all originals: the sum of chances decides, then strict links."""

    chances: float
    links: int


def tried(sides: AlignedTables, member: Family, records: Integers | None = None) -> MemberLinks:
    """Count what a member links, ties as chances, and what it links strictly."""
    attacked = np.arange(len(sides.A)) if records is None else records
    nearer, tied = count_family(sides, member)(attacked, 1)
    chances = np.where(nearer == 0, 1 / np.maximum(tied, 1), 0.0)
    return MemberLinks(float(chances.sum()), int(((nearer == 0) & (tied == 1)).sum()))


def starts_of(sizes: Integers | SmallIntegers | Truths) -> Integers:
    """Return where each of some consecutive runs begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Competitors:
    """For each of some records, the originals that decide whether it is linked.

    Those of records[at] are which[starts[at] : starts[at + 1]].
    """

    records: Integers
    starts: Integers
    which: Integers

    @property
    def owner(self) -> Integers:
        """The place in `records` that each competitor belongs to."""
        return np.repeat(np.arange(len(self.records)), np.diff(self.starts))

    def chosen(self, records: Integers) -> Competitors:
        """Return the competitors of some of the records."""
        keep = np.isin(self.records, records)
        sizes = np.diff(self.starts)
        return Competitors(
            records=self.records[keep],
            starts=starts_of(sizes[keep]),
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

    def pieces(self, size: int) -> list[Competitors]:
        """Split them, so many records at a time."""
        out = []
        for first in range(0, len(self.records), size):
            records, starts = self.records[first:][:size], self.starts[first:][: size + 1]
            which = self.which[starts[0] : starts[-1]]
            out.append(Competitors(records=records, starts=starts - starts[0], which=which))
        return out


def classes_of(X: Floats) -> Integers:
    """Number the records so that those with the same values have the same number."""
    places = np.unique(np.where(np.isnan(X), -np.inf, X + 0.0), axis=0, return_inverse=True)[1]
    return places.reshape(-1).astype(np.int64)


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
            return kernels.product(self.matrix, theta)
        return np.asarray(self.matrix @ theta, dtype=np.float64)

    def links(self, level: Floats) -> int:
        """Count the records whose rows all have a product above the margin."""
        return int(kernels.count_positive(self.starts, level, MARGIN))


def hopeful(sides: AlignedTables, records: Integers) -> Integers:
    """Return the records that no other original beats in every variable."""
    found = sides.run(kernels.unbeaten, records, PIECE)
    good: Truths = np.concatenate([one for one, _ in found])
    return records[good]


def least_competitors(sides: AlignedTables, records: Integers) -> Competitors:
    """Keep the competitors that no other beats in every variable, and the records with a chance."""
    found = sides.run(kernels.least_rows, records, PIECE)
    sizes = np.concatenate([np.diff(starts) for starts, _ in found])
    which = np.concatenate([each_which for _, each_which in found])
    return Competitors(records=records[sizes > 0], starts=starts_of(sizes[sizes > 0]), which=which)


def expected_rows(sides: AlignedTables, records: Integers) -> float:
    """Estimate from a few records how many competitors `least_competitors` keeps."""
    few = records[:: max(1, len(records) // SAMPLED)]
    return len(least_competitors(sides, few).which) * len(records) / max(len(few), 1)


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
        if sides.one_over is not None:
            weights = np.square(turn).sum(axis=1)

            def nearest(_A: Any, B: Floats, *_: Any, by: Floats = weights) -> Integers:
                return np.argpartition(np.square(B) @ by, some - 1)[:some]

            found.append(np.stack(sides.run(nearest, records, PIECE)))
            continue
        tree = cKDTree(sides.B @ turn)
        found.append(tree.query(sides.A[records] @ turn, k=some, workers=1)[1])
    near = np.sort(np.hstack(found), axis=1)
    fresh = np.ones(near.shape, dtype=bool)
    fresh[:, 1:] = near[:, 1:] != near[:, :-1]
    fresh &= near != sides.truth[records][:, None]
    return Competitors(
        records=records,
        starts=starts_of(fresh.sum(axis=1)),
        which=near[fresh].astype(np.int64),
    )


def rows_of(
    sides: AlignedTables, competitors: Competitors, family: Family, *, slack: float = 0.0
) -> Rows:
    """Return the rows of all records and competitors in the feature space of a family.

    With `slack`, competitors must be farther by this share of the distance to the own original.
    """
    records, owner = competitors.records, competitors.owner
    own = family.features(sides.differences(records, sides.truth[records]))
    theirs = family.features(sides.differences(records[owner], competitors.which))
    matrix = theirs - ((1 + slack) * own)[owner]
    if isinstance(matrix, np.ndarray):
        matrix = np.asfortranarray(matrix)
    return Rows(starts=competitors.starts, matrix=matrix)


def line_search(
    rows: Rows, start: Family, generator: np.random.Generator, *, sweeps: int = 30
) -> tuple[Family, int]:
    """Return a member of the family that links at least as many of the records as the start.

    Each line goes to the middle of the widest best step, also where the number of links stays the
    same: a wide step leaves room for the next line.
    """
    theta = start.theta.copy()
    level = rows.along(theta)
    best = at_start = rows.links(level)
    idle, misled = 0, 0
    kept = np.zeros(len(level), dtype=bool)
    lines = len(theta) / 8 + 40  # single parameters cost little
    affordable = max(3, int(WORK / max(min(rows.cells, LARGE) * lines, 1.0)))
    for _ in range(min(sweeps, affordable)):
        some, chosen = _nearest_to_break(rows, level, kept)
        moved = _sweep(some, start, theta, level[chosen], generator)
        exact = start.repair(moved)  # rounding may have left the feasible set by a hair
        new_level = rows.along(exact.theta)
        count = rows.links(new_level)
        if count < best and len(some.starts) and not chosen.all() and misled < PATIENCE:
            kept |= new_level <= MARGIN  # rows that were overlooked: once more from here with them
            misled += 1
            continue
        idle = 0 if count > best else idle + 1
        if count >= best:
            theta, level, best = exact.theta.copy(), new_level, count
        if idle >= PATIENCE:
            break
    found = start.repair(theta)
    count = rows.links(rows.along(found.theta))
    return (found, count) if count >= at_start else (start, at_start)


def _sweep(
    rows: Rows, family: Family, theta: Floats, level: Floats, generator: np.random.Generator
) -> Floats:
    """Follow one line after the other as long as none of them loses a link."""
    best = rows.links(level)
    for direction in _directions(rows, family, theta, level, generator):
        slope = rows.along(direction)
        low, high = _feasible(family, theta, direction)
        count, step = _best_step(rows, level, slope, low, high)
        if count >= best and step != 0:
            theta = theta + step * direction
            scale = family.total(theta)
            theta, level = theta / scale, (level + step * slope) / scale
            best = count
    return theta


def _nearest_to_break(rows: Rows, level: Floats, kept: Truths) -> tuple[Rows, Truths]:
    """Return the few rows of each record that are lowest, those kept, and which they are.

    Where rows are many, lines are searched on these alone and counted on all after each sweep.
    """
    if rows.cells <= LARGE:
        return rows, np.ones(len(level), dtype=bool)
    chosen = kernels.lowest(rows.starts, level, LOWEST, kept)
    matrix = rows.matrix[np.flatnonzero(chosen)]
    if isinstance(matrix, np.ndarray):
        matrix = np.asfortranarray(matrix)
    return Rows(starts=starts_of(chosen)[rows.starts], matrix=matrix), chosen


def _directions(
    rows: Rows, family: Family, theta: Floats, level: Floats, generator: np.random.Generator
) -> Iterator[Floats]:
    size = len(theta)
    for place in generator.permutation(size):
        direction = np.zeros(size)
        direction[place] = 1.0
        yield direction
    for _ in range(min(size, 16)):  # towards random members, and away from them
        yield family.repair(theta * generator.exponential(size=size)).theta - theta
    worst = np.minimum.reduceat(level, rows.starts[:-1]) if len(level) else level
    open_ = np.flatnonzero(worst <= MARGIN)
    if not len(open_):
        return
    near = open_[np.argsort(-worst[open_], kind="stable")][: max(8, len(open_) // 2)]
    for at in generator.permutation(near)[: min(2 * size, 24)]:
        first, last = rows.starts[at], rows.starts[at + 1]
        row = rows.matrix[first + int(np.argmin(level[first:last]))]
        row = np.asarray(row.todense()).ravel() if hasattr(row, "todense") else row
        length = float(np.linalg.norm(row))
        if length > 0:
            reach = 10.0 ** generator.uniform(-2.5, 0)
            yield family.repair(theta + reach * row / length).theta - theta


def _feasible(family: Family, theta: Floats, direction: Floats) -> tuple[float, float]:
    """Return the steps that stay in the feasible set, as far as FAR."""
    if family.linear:
        slack, change = np.maximum(family.slack(theta), 0.0), family.slack(direction)
        falls, rises = change < -1e-15, change > 1e-15
        high = float((slack[falls] / -change[falls]).min()) if falls.any() else FAR
        low = float((-slack[rises] / change[rises]).max()) if rises.any() else -FAR
        return max(low, -FAR), min(high, FAR)
    return -_reach(family, theta, -direction), _reach(family, theta, direction)


def _reach(family: Family, theta: Floats, direction: Floats) -> float:
    """Return the longest feasible step, by bisection: slacks are concave along a line."""
    tolerance = -1e-12
    inside, outside = 0.0, 1.0
    while outside < FAR and family.slack(theta + outside * direction).min() >= tolerance:
        inside, outside = outside, 4 * outside
    for _ in range(30):
        middle = (inside + outside) / 2
        if family.slack(theta + middle * direction).min() >= tolerance:
            inside = middle
        else:
            outside = middle
    return inside


def _best_step(
    rows: Rows, level: Floats, slope: Floats, low: float, high: float
) -> tuple[int, float]:
    """Return the largest number of links on a line, and the middle of the widest such step."""
    if not low < high:
        return -1, 0.0
    lows, highs = kernels.spans(rows.starts, level, slope, low, high, MARGIN)
    open_ = lows < highs
    if not open_.any():
        return 0, 0.0
    most, first, last = kernels.widest_step(np.sort(lows[open_]), np.sort(highs[open_]))
    if most == 0:
        return 0, 0.0
    if last - first > 2.0:  # an open end: a moderate step into it
        step = first + 1.0 if first > -FAR else last - 1.0
        return most, 0.0 if first < 0.0 < last else step
    return most, (first + last) / 2
