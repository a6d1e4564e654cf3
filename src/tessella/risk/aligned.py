"""The two tables that an intruder compares, as matrices, and how near their records are.

*A* is the masked table, *B* the original; `truth` is, for each row of A, the row of B that it comes
from. Numbers are float64, dates are days; categories are numbered in one numbering for both tables.

For a masked record, the originals *nearer* than its own and those *tied* with it are counted. This
needs no list of neighbours: a tree of boxes answers for Euclidean, Mahalanobis, Manhattan, Gower's
and weighted distances, a scan on all cores for the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadOptionError, LinkageError, UnknownOptionError
from ..frame import Pair, View
from ..kernels.gower import build_gower_tree, count_in_gower_tree, gower_components
from ..kernels.groups import number_equal
from ..kernels.linkage import SLACK, SUM, TINY, box_tree, count_in_tree
from ..kernels.tree import order_by_leaves, rounded
from ..parallel import each
from ..schema import Schema
from .learned.families import Family

Counts = tuple[Integers, Integers]
Count = Callable[[Integers, int], Counts]

SMALL = 1e-100  # the largest absolute value of a column that is lifted to be standardised
STANDARDISED = {
    "each": "values standardised file by file (mean 0, deviation 1 in each table)",
    "original": "values standardised by mean and deviation of the original",
    "none": "values as they are",
}
DISTANCES = ("euclidean", "mahalanobis", "manhattan", "gower")
COVARIANCES = {
    "difference": "of the difference masked - original",
    "original": "of the original",
    "pooled": "mean of those of the two tables",
}
COMPONENTS = (
    "differences by column from 0 to 1 (numbers by their range in both tables, categories equal or "
    "not); a missing one counts as the mean of the others"
)
DAY = 86_400 * 10**6  # in microseconds
PIECE = 2048  # records for a piece of work
AT_ONCE = 30_000  # pairs whose components are held: they stay in the cache
FLOOR = 1e-10  # of the largest eigenvalue: below, a direction counts as this wide


@dataclass(frozen=True, kw_only=True)
class AlignedTables:
    """A masked and an original table, aligned.

    `nominal` marks the columns of categories, `notes` lists what was decided while reading, `pair`
    is where the columns were read from. `one_over` has 1 / range of each column (-1 for categories)
    where families of distances take Gower's components in the place of squared differences.
    """

    columns: tuple[Name, ...]
    A: Floats
    B: Floats
    truth: Integers
    nominal: Truths
    notes: tuple[str, ...] = ()
    pair: Pair | None = None
    one_over: Floats | None = None

    def select(self, known: Any) -> AlignedTables:
        """Return some of the columns."""
        names = as_list(known)
        if names == self.columns:
            return self
        at: Any = [self.columns.index(name) for name in names]
        if at == list(range(at[0], at[0] + len(at))):  # neighbours: no copy of a large table
            at = slice(at[0], at[0] + len(at))
        return replace(
            self, columns=names, A=self.A[:, at], B=self.B[:, at], nominal=self.nominal[at]
        )

    def refuse_mixed(self, distance: str) -> None:
        """Refuse categories and missing values where a distance has no meaning for them."""
        if self.nominal.any():
            named = [repr(name) for name, holds in zip(self.columns, self.nominal) if holds]
            raise LinkageError.not_numbers(named=named, distance=distance)
        lacking = np.isnan(self.A).sum(axis=0) + np.isnan(self.B).sum(axis=0)
        if lacking.any():
            counts = {repr(name): int(count) for name, count in zip(self.columns, lacking) if count}
            raise LinkageError.missing(counts=counts, distance=distance)

    def components(self, distance: str, standardise: str, *, signed: bool) -> AlignedTables:
        """Prepare for a family: standardise, or take Gower's components if tables are mixed."""
        mixed = self.nominal.any() or np.isnan(self.A).any() or np.isnan(self.B).any()
        if signed or not mixed:
            self.refuse_mixed(distance)
            return self.scaled(standardise)
        return replace(self, one_over=_one_over_ranges(self), notes=(*self.notes, COMPONENTS))

    def differences(self, records: Integers, which: Integers) -> Floats:
        """Return what families square: a - b, or the roots of Gower's components."""
        if self.one_over is None:
            return self.A[records] - self.B[which]
        return np.sqrt(gower_components(self.A, self.B, self.one_over, records, which))

    def gaps(self, records: Integers) -> Floats:
        """Return the differences from own originals; components with both signs, so mean 0."""
        found = self.differences(records, self.truth[records])
        return found if self.one_over is None else np.vstack([found, -found])

    def run(
        self, kernel: Callable[..., Any], records: Integers, size: int, *options: Any
    ) -> list[Any]:
        """Call a kernel of both tables for some records at a time, on all cores.

        With Gower's components for one record at a time: it is put at 0, and originals at their
        differences from it.
        """
        if self.one_over is None or not len(records):
            work = partial(kernel, self.A, self.B, self.truth, *options)
            return in_pieces(work, records, size)
        here, first = np.zeros((1, len(self.columns))), np.zeros(1, dtype=np.int64)
        everyone = np.arange(len(self.B))

        def alone(i: int) -> Any:
            there = self.differences(np.full(len(everyone), i), everyone)
            return kernel(here, there, self.truth[i : i + 1], *options, first)

        pieces = in_pieces(lambda some: [alone(i) for i in some], records, size)
        return [one for piece in pieces for one in piece]

    def scaled(self, standardise: str) -> AlignedTables:
        """Standardise both tables; a column that is constant in a table is only centred there."""
        if standardise not in STANDARDISED:
            raise UnknownOptionError("standardise", standardise, STANDARDISED)
        if standardise == "none":
            return replace(self, notes=(*self.notes, STANDARDISED[standardise]))
        B, flat_b = _standardised(self.B, self.B)
        A, flat_a = _standardised(self.A, self.A if standardise == "each" else self.B)
        notes = [*self.notes, STANDARDISED[standardise]]
        for flat, where in ((flat_a & flat_b, "both tables"), (flat_b & ~flat_a, "the original")):
            if flat.any():
                named = ", ".join(repr(name) for name, is_ in zip(self.columns, flat) if is_)
                notes.append(f"constant in {where}, so of no use to the intruder: {named}")
        return replace(self, A=A, B=B, notes=tuple(notes))


def _standardised(X: Floats, by: Floats) -> tuple[Floats, Truths]:
    # Squares of numbers below 1e-160 vanish, and the column would seem constant: a power of two
    # lifts such a column without rounding, and standardised values do not depend on units.
    peak = np.maximum(by.max(axis=0), -by.min(axis=0))
    small = (peak > 0) & (peak < SMALL)
    if small.any():
        lift = np.where(small, np.exp2(-np.frexp(peak)[1].clip(-1000, 0).astype(np.float64)), 1.0)
        same = X is by
        by = by * lift
        X = by if same else X * lift
    centre = by.mean(axis=0)
    spread = by.std(axis=0)
    # A constant column has a deviation of rounding errors, not always of zero.
    flat = (by == by[0]).all(axis=0) | (spread == 0)
    spread = np.where(flat, 1.0, spread)
    out = np.subtract(X, centre, order="C")
    out /= spread  # in place: tables are large
    if X is by:
        out[:, flat] = 0.0
    return out, flat


def as_list(given: Any) -> tuple[Name, ...]:
    """Return one name or several as a tuple."""
    single = isinstance(given, str) or not hasattr(given, "__iter__")
    return (given,) if single else tuple(given)


def align_tables(
    original: Any,
    masked: Any = None,
    *,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    schema: Schema | None = None,
) -> AlignedTables:
    """Read the known columns of two tables, or raise an error if they cannot be compared.

    Aligned tables in the place of the original are read no further: `known` selects columns.
    """
    if isinstance(original, AlignedTables):
        return original if known is None else original.select(known)
    before, after = View.of(original, schema), View.of(masked, schema)
    n, m = before.n_rows, after.n_rows
    if n < 2:
        raise LinkageError.one_record()
    if id is None and n != m:
        raise LinkageError.lengths(original=n, masked=m)
    if id is None and before.table.reordered(after.table):
        raise LinkageError.other_order(labels="the same labels in another order")
    pair = Pair(before, after, id=id)
    columns = _known(pair, known, id, schema)
    A, B = np.empty((m, len(columns))), np.empty((n, len(columns)))
    nominal = np.zeros(len(columns), dtype=bool)
    for place, name in enumerate(columns):
        B[:, place], A[:, place], nominal[place] = paired_column(pair, name)
    notes = ["record i of the masked table comes from record i"]
    if id is not None:
        notes = [f"masked records belong to the originals with the same {id!r}"]
    if m < n:
        notes.append(f"the intruder's file has {n:,} records, {m:,} were released")
    return AlignedTables(
        columns=columns, A=A, B=B, truth=pair.rows, nominal=nominal, notes=tuple(notes), pair=pair
    )


def _known(pair: Pair, known: Any, id: Name | None, schema: Schema | None) -> tuple[Name, ...]:
    before, after = pair.original.table, pair.masked.table
    if known is not None:
        columns = as_list(known)
        for name in columns:
            before.place(name, who="known= (in the original)")
            after.place(name, who="known= (in the masked table)")
        if not columns:
            raise BadOptionError("known", known, "at least one variable, or None for all")
        if len(set(columns)) < len(columns):
            raise BadOptionError("known", known, "each variable once")
        return columns
    left_out = set() if id is None else {id}
    if schema is not None:
        schema.check(before)
        left_out |= set(schema.names("identifier", "unit", "weight"))
    columns = tuple(name for name in pair.columns if name not in left_out)
    if not columns:
        mine, theirs = (
            [name for name in table.columns if name not in left_out] for table in (before, after)
        )
        raise LinkageError.nothing_common(original=mine, masked=theirs)
    return columns


def paired_column(pair: Pair, name: Name) -> tuple[Any, Any, bool]:
    """Read one column of both tables: original, masked, and whether it holds categories."""
    views, facts = (pair.original, pair.masked), pair.facts(name)
    nominal = pair.schema is not None and pair.schema[name].kind == "nominal"
    if not nominal and all(one.family == "date" for one in facts):
        labelled = [view.labels(name) for view in views]
        with suppress(ValueError):  # times of a day and durations are categories
            days = [np.append(_days(texts), np.nan)[own] for own, texts in labelled]
            return days[0], days[1], False
    if not nominal and all(one.numeric or one.family == "boolean" for one in facts):
        flags = all(one.family == "boolean" for one in facts)
        return *(view.numbers(name, who="Linkage") for view in views), flags  # type: ignore[return-value]
    orders = [view.table.order(name) for view in views]
    ordered = not nominal and orders[0] is not None and orders[0] == orders[1]
    place = {text: at for at, text in enumerate(orders[0] or ())} if ordered else {}
    out = []
    for view in views:
        own, labels = view.labels(name)
        at = [float(place.setdefault(label, len(place))) for label in labels]
        out.append(np.array([*at, np.nan])[own])
    return out[0], out[1], not ordered


def _days(texts: Sequence[str]) -> Floats:
    """Return dates, in whatever time zone, as days since 1970."""
    local = [re.sub(r"[+-]\d\d:\d\d$", "", text) for text in texts]
    return np.asarray(np.array(local, dtype="datetime64[us]").astype(np.int64) / DAY)


class Measure(NamedTuple):
    """What counts nearer and tied originals, and what to say of it."""

    counting: Count
    name: str
    notes: tuple[str, ...]


class Points(NamedTuple):
    """Both tables as points: the distance is the sum of |difference|^power."""

    A: Floats
    B: Floats
    power: int
    name: str
    notes: tuple[str, ...]


def measure(
    sides: AlignedTables, distance: str | Family, *, standardise: str, covariance: str
) -> Measure:
    """Prepare the counting for a distance."""
    if isinstance(distance, Family):
        sides = sides.components(distance.name, standardise, signed=distance.signed)
        return Measure(count_family(sides, distance), f"{distance.name} distance", sides.notes)
    if distance == "gower":
        count = _by_gower(sides)
        note = "numbers divided by their range in both tables, missing values left out"
        return Measure(count, "Gower's distance", (*sides.notes, note))
    points = as_points(sides, distance, standardise=standardise, covariance=covariance)
    count = _by_tree(points.A, points.B, sides.truth, points.power)
    return Measure(count, points.name, points.notes)


def as_points(sides: AlignedTables, distance: str, *, standardise: str, covariance: str) -> Points:
    """Turn both tables so that a plain sum of powers is the distance."""
    if distance not in DISTANCES:
        raise UnknownOptionError("distance", distance, (*DISTANCES, "a family of distances"))
    sides.refuse_mixed(distance.capitalize())
    sides = sides.scaled(standardise)
    if distance == "mahalanobis":
        turn, narrow = _whitening(sides, covariance)
        name = f"Mahalanobis distance (covariance {COVARIANCES[covariance]})"
        A, B, notes = sides.A, sides.B, (*sides.notes, *narrow)
        del sides  # tables are large: what was turned is freed
        A = A @ turn
        B = B @ turn
        return Points(A, B, 2, name, notes)
    power = 2 if distance == "euclidean" else 1
    return Points(sides.A, sides.B, power, f"{distance.capitalize()} distance", sides.notes)


def count_family(sides: AlignedTables, family: Family) -> Count:
    """Count for a distance with parameters, on sides that `components` prepared."""
    family.refuse_other(len(sides.columns))
    turn = family.turn() if sides.one_over is None else None
    if turn is not None:
        return _by_tree(sides.A @ turn, sides.B @ turn, sides.truth, 2)
    if family.kernel_kind == SUM:
        return _by_components(sides, family.theta)
    return _by_scan(sides, family.scan())


def _by_tree(A: Floats, B: Floats, truth: Integers, power: int) -> Count:
    B = np.ascontiguousarray(B)
    member, first = number_equal(B)
    order = order_by_leaves(rounded(B, first, B.mean(axis=0)).table, B.shape[1])
    tree = box_tree(B, first[order])
    weights = np.bincount(member)[order].astype(np.int64)
    X, homes = np.ascontiguousarray(A), np.argsort(order)[member[truth]]
    return _from_home(partial(count_in_tree, tree, weights, X, homes, power), homes)


def _from_home(work: Callable[..., Counts], homes: Integers) -> Count:
    """Count in a tree, records in the order of their originals: they share what is in the cache."""

    def count(attacked: Integers, cap: int) -> Counts:
        along = np.argsort(homes[attacked], kind="stable")
        return _in_order(in_pieces(partial(work, cap), attacked[along], PIECE), along)

    return count


def _by_gower(sides: AlignedTables) -> Count:
    """Count by Gower's distance, categories first: one that differs often decides alone."""
    order = np.argsort(~sides.nominal, kind="stable")
    one_over = np.abs(_one_over_ranges(sides)[order])
    A, B = sides.A, sides.B
    if (np.diff(order) != 1).any():  # else no copy of large tables
        A, B = A[:, order], B[:, order]
    A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
    categories = np.arange(len(order)) < sides.nominal.sum()
    holes = np.isnan(B)
    # NaN is not equal to itself.
    member, first = number_equal(np.where(holes, np.inf, B) if holes.any() else B)
    del holes
    # Categories lie farther apart than any two numbers, so that the table is cut by them first, by
    # those with many values before others; missing cells lie apart from all values.
    low = np.where(categories, 0.0, np.fmin.reduce(B))
    table = np.empty((len(order), len(first)), dtype=np.float32)
    for j, unit in enumerate(np.where(categories, 2.0, one_over)):
        spread = (B[first, j] - low[j]) * unit
        table[j] = np.where(np.isnan(spread), -1.0, spread)
    leaves = order_by_leaves(table, len(order))
    del table
    weights = np.bincount(member)[leaves].astype(np.int64)
    tree = build_gower_tree(B[first[leaves]], weights, one_over, low, int(categories.sum()))
    homes = np.argsort(leaves)[member[sides.truth]]
    return _from_home(partial(count_in_gower_tree, tree, A, homes), homes)


def _one_over_ranges(sides: AlignedTables) -> Floats:
    """Return 1 / range of each number in both tables, 0 for a constant, -1 for categories."""
    low, high = (end(end.reduce(sides.A), end.reduce(sides.B)) for end in (np.fmin, np.fmax))
    width = high - low
    out = np.divide(1.0, width, out=np.zeros(len(width)), where=width > 0)
    return np.where(sides.nominal, -1.0, out)


def _by_scan(sides: AlignedTables, kernel: Callable[..., Counts]) -> Count:
    sides = replace(sides, A=np.ascontiguousarray(sides.A), B=np.ascontiguousarray(sides.B))

    def count(attacked: Integers, cap: int) -> Counts:
        size = max(1, min(PIECE, 50_000_000 // len(sides.B)))
        return _in_order(sides.run(kernel, attacked, size, cap), np.arange(len(attacked)))

    return count


def _by_components(sides: AlignedTables, weights: Floats) -> Count:
    """Count for a weighted mean of Gower's components, which is a product of matrices."""
    one_over, everyone = sides.one_over, np.arange(len(sides.B))
    assert one_over is not None
    size = max(1, AT_ONCE // len(everyone))

    def one_block(some: Integers) -> Counts:
        pairs = np.repeat(some, len(everyone)), np.tile(everyone, len(some))
        parts = gower_components(sides.A, sides.B, one_over, *pairs)
        distance = (parts @ weights).reshape(len(some), len(everyone))
        own = np.take_along_axis(distance, sides.truth[some][:, None], axis=1)
        nearer = (distance < own * (1 - SLACK) - TINY).sum(axis=1)
        return nearer, (distance <= own * (1 + SLACK) + TINY).sum(axis=1) - nearer

    def count(attacked: Integers, _: int) -> Counts:
        blocks = [attacked[at : at + size] for at in range(0, len(attacked), size)]
        return _in_order(each(one_block, blocks), np.arange(len(attacked)))

    return count


def in_pieces(work: Callable[[Integers], Any], records: Integers, size: int) -> list[Any]:
    """Call `work` for about so many records at a time, on all cores."""
    return each(work, np.array_split(records, max(1, -(-len(records) // size))))


def _in_order(counted: list[Counts], along: Integers) -> Counts:
    nearer, tied = np.empty(len(along), dtype=np.int64), np.empty(len(along), dtype=np.int64)
    nearer[along] = np.concatenate([one for one, _ in counted])
    tied[along] = np.concatenate([one for _, one in counted])
    return nearer, tied


def _covariance(table: Floats) -> Floats:
    """Return the covariance of a large table, which is centred in its place."""
    table -= table.mean(axis=0)
    found: Floats = table.T @ table / len(table)
    return found


def _whitening(sides: AlignedTables, covariance: str) -> tuple[Floats, tuple[str, ...]]:
    """Return T with T Tᵀ the inverse of the covariance, narrow directions widened to the floor."""
    if covariance not in COVARIANCES:
        raise UnknownOptionError("covariance", covariance, COVARIANCES)
    if covariance == "difference":
        changes = sides.B[sides.truth]
        changes -= sides.A
        spread = _covariance(changes)
    else:
        spread = _covariance(sides.B.copy())
        if covariance == "pooled":
            spread = (spread + _covariance(sides.A.copy())) / 2
    values, vectors = np.linalg.eigh(spread)
    largest = max(float(values[-1]), 0.0)
    if largest == 0:  # nothing was masked, or nothing varies
        return np.eye(len(sides.columns)), ("the covariance is zero: plain Euclidean distance",)
    floor = FLOOR * largest
    narrow = int((values < floor).sum())
    widened = f"directions without spread, widened to {FLOOR:g} of the widest"
    notes = (f"the covariance has {narrow} {widened}",) if narrow else ()
    return vectors / np.sqrt(np.maximum(values, floor)), notes
