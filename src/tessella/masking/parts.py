"""The parts of a table that are grouped apart, and one value for each of their groups.

Records are put apart by strata, cases of rules, signs of factors, and missing cells. A group then
gets, in each column, the value of the operator that the plan chose.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from .._types import Floats, Integers, Name, Signs, Truths
from ..diversity import Diversity
from ..exceptions import BadTableError, DiversityError, GroupSizeError
from ..frame import Numbers, Strata, View, count_units, group_ids
from ..grouping.base import too_few
from ..kernels.groups import medians_of_runs, weighted_centres
from ..plan import Block
from ..plan.plan import Case, Claim, rows_of
from ..rules import forms
from ..rules.confront import amounts, judge
from ..rules.domain import Operands
from .base import rows_of_strata


@dataclass(eq=False)
class BlockCells:
    """The columns of a block, and of strata, side by side.

    `values` are numbers, or for categories their codes in `levels`; NaN where missing.
    """

    view: View
    columns: tuple[Name, ...]
    values: Floats
    levels: dict[Name, list[str]]

    @classmethod
    def read(
        cls,
        view: View,
        columns: Sequence[Name],
        strata: Sequence[Name] = (),
        measured: Collection[Name] = (),
    ) -> BlockCells:
        """Read some columns, and strata, of which only equality counts.

        Booleans are categories, except where they are `measured`.
        """
        names = (*columns, *strata)
        values = np.empty((view.n_rows, len(names)))
        levels: dict[Name, list[str]] = {}
        for j, name in enumerate(names):
            numeric = view.table.facts(name).numeric and view.kind(name) != "nominal"
            if numeric or name in measured:
                values[:, j] = view.numbers(name, who="The plan")
                continue
            if view.kind(name) in ("continuous", "integer") and name not in strata:
                raise BadTableError(
                    f"Column {name!r} ({view.table.facts(name).dtype}) holds no numbers, and the "
                    f"schema says that it is {view.kind(name)}."
                )
            if name in strata:
                values[:, j], levels[name] = view.table.labels(name)
            else:
                found = view.categories(name)
                values[:, j], levels[name] = found.codes, found.labels
            if view.any_missing(name):
                values[view.missing(name), j] = np.nan
        return cls(view, names, values, levels)

    @property
    def n_rows(self) -> int:
        """The number of records."""
        return self.view.n_rows

    def place(self, name: Name) -> int:
        """Return where a column is."""
        return self.columns.index(name)

    def column(self, name: Name) -> Floats:
        """Return the values of a column."""
        return self.values[:, self.place(name)]

    def matrix(self, names: Sequence[Name]) -> Floats:
        """Return the values of some columns side by side; a copy."""
        return self.values[:, [self.place(name) for name in names]]

    def numbers(self, block: Block) -> list[Name]:
        """List the columns of numbers of a block."""
        return [name for name in block.columns if name not in self.levels]

    @cached_property
    def operands(self) -> Operands:
        """The columns as rules judge them, with what was edited in `values` before."""
        return _Edited(self)

    def signs(self, claim: Claim) -> Signs:
        """Return for each record whether it keeps a claim: 1, -1, or 0 where that is unknown."""
        if isinstance(claim.form, forms.ObservedValues):  # every original record has them
            return np.ones(self.n_rows, dtype=np.int8)
        # Rules were judged before: what is divided by zero here is divided under a condition.
        return judge(claim.truth, self.operands, allowance=claim.allowance, guarded=True)

    def amounts(self, claim: Claim) -> Floats:
        """Return by how much records break a claim, in standard deviations if it has a size."""
        broken = self.signs(claim) < 0
        rows = rows_of(claim)
        kinds = {self.operands.kind(name) for name in claim.columns}
        if not broken.any() or not rows or not kinds <= {"number", "yes or no"}:
            return broken.astype(np.float64)
        names = rows[0].coefficients.items()
        total = sum(v * self.operands.numbers(name) for name, v in names)
        known = np.asarray(total)[~np.isnan(total)]
        spread = (float(known.std()) if len(known) else 0.0) or 1.0
        away = amounts(claim.truth, self.operands, allowance=claim.allowance)
        return np.where(broken, away / spread, 0.0)

    def sides(self, form: forms.Multiplicative) -> tuple[Floats, Floats]:
        """Return the products of both sides: factors with positive powers, and the others."""
        left, right = np.ones(self.n_rows), np.full(self.n_rows, form.constant)
        for factor in form.factors:
            with np.errstate(invalid="ignore"):  # no root of a negative number is known
                value = (self.column(factor.column) + factor.offset) ** abs(factor.power)
            if factor.power > 0:
                left = left * value
            else:
                right = right * value
        return left, right


class _Edited(Operands):
    """The columns of a table, of which some numbers were edited before grouping."""

    def __init__(self, cells: BlockCells) -> None:
        super().__init__(cells.view.table, cells.view.schema)  # type: ignore[arg-type]
        self.cells = cells

    def numbers(self, name: Name) -> Floats:
        """Return the edited numbers of a column, or those of the table."""
        if name in self.cells.columns and name not in self.cells.levels:
            return self.cells.column(name)
        return super().numbers(name)


MISSING_AS = {1: "", 2: " (as NaN)"}


@dataclass(eq=False)
class Part:
    """Records that keep the same claims; `signs` are those of the block's factors."""

    rows: Integers
    claims: tuple[Claim, ...]
    signs: tuple[int, ...]
    merged: int = 0  # records that joined from parts too small to stand alone
    key: tuple[int, ...] = ()  # stratum, cases, signs, what is missing


@dataclass(frozen=True, eq=False)
class KeysOfParts:
    """What puts records apart: stratum, cases of rules, signs of factors, and what is missing."""

    values: Integers  # shape (n, 1 + cases + signs + columns)
    lacking: list[Name]  # the columns that lack a cell, whose states come last

    @staticmethod
    def fixed_of(block: Block) -> int:
        """Return how many keys stand before those of missing cells."""
        return 1 + len(block.cases) + len(block.signs)


def keys_of_parts(
    cells: BlockCells, block: Block, strata: Integers, lacking: list[Name] | None = None
) -> KeysOfParts:
    """Find what puts records apart; `lacking` are by default all columns of the block."""
    lacking = list(block.columns) if lacking is None else lacking
    keys = [strata]
    for cases in block.cases.values():
        keys.append(_case_of_each(cells, cases))
    for column, offset in block.signs:
        side = np.sign(cells.column(column) + offset)
        keys.append(np.where(np.isnan(side), 2, side).astype(np.int64))
    keys += [cells.view.states(name).astype(np.int64) for name in lacking]
    return KeysOfParts(np.column_stack(keys), lacking)


def part_of(block: Block, key: Integers, rows: Integers, joined: int) -> Part:
    """Return the part of the records that have a key, and of those that joined them."""
    rules, fixed = list(block.cases), KeysOfParts.fixed_of(block)
    chosen = key[1 : 1 + len(rules)]
    claims = [c for n, way in zip(rules, chosen) if way >= 0 for c in block.cases[n][way]]
    signs = tuple(map(int, key[1 + len(rules) : fixed]))
    return Part(rows, (*block.always, *claims), signs, joined, tuple(key.tolist()))


def partition(
    cells: BlockCells, block: Block, strata: Strata, *, k: int, small: str,
    diversity: Diversity | None = None,
) -> list[Part]:  # fmt: skip
    """Cut the records into parts that can be grouped on their own, each with at least k units.

    A part whose confidential values are together not as diverse as asked for joins another.
    """
    view, units = cells.view, cells.view.units
    _refuse_small_strata(strata, k, units)
    lacking = [name for name in block.columns if view.any_missing(name)]
    keys = keys_of_parts(cells, block, strata.ids, lacking)
    ids = group_ids(keys.values.T)
    distinct = keys.values[np.unique(ids, return_index=True)[1]]
    counted, records = count_units(ids, units), np.bincount(ids)
    if not block.cases and not block.signs and lacking:
        _refuse_rare_patterns(distinct, counted, strata, lacking, k, units)
    pairs = None if units is None else np.unique(np.column_stack([ids, units]), axis=0)
    lacks: Callable[[list[int]], str] | None = None
    if diversity is not None:
        _refuse_undiverse_strata(diversity, strata)
        lacks = partial(_lacking, diversity, rows_of_strata(ids))
    became = join_small(
        distinct, records, counted, k, small, fixed=KeysOfParts.fixed_of(block), units=pairs,
        lacks=lacks,
    )  # fmt: skip
    return [
        part_of(block, distinct[at], rows, len(rows) - int(records[at]))
        for at, rows in enumerate(rows_of_strata(became[ids]))
        if len(rows)
    ]


def parts_of(
    original: Numbers, places: list[int], strata: Strata, k: int, units: Integers | None = None
) -> Integers:
    """Number the sets of records that may share a group: same stratum, same cells missing.

    They count up by stratum, then by what is missing.
    """
    _refuse_small_strata(strata, k, units)
    lacking = [j for j in places if original.state[:, j].any()]
    keys = np.column_stack([strata.ids, original.state[:, lacking]])
    ids = group_ids(keys.T)
    distinct = keys[np.unique(ids, return_index=True)[1]]
    names = [original.columns[j] for j in lacking]
    _refuse_rare_patterns(distinct, count_units(ids, units), strata, names, k, units)
    ranks = np.empty(len(distinct), dtype=np.int64)
    ranks[np.lexsort(distinct.T[::-1])] = np.arange(len(distinct))
    return ranks[ids]


def _refuse_small_strata(strata: Strata, k: int, units: Integers | None) -> None:
    sizes = count_units(strata.ids, units)
    if units is not None and len(sizes) == 1 and sizes[0] < k:
        raise too_few(k, len(units), int(sizes[0]))
    if few := {strata.names[s]: int(sizes[s]) for s in np.flatnonzero(sizes < k)}:
        raise GroupSizeError.small_strata(k=k, sizes=few, what=_respondents(units))


def _refuse_undiverse_strata(diversity: Diversity, strata: Strata) -> None:
    rows = dict(zip(strata.names, rows_of_strata(strata.ids)))
    diversity.refuse_unattainable(rows if len(rows) > 1 else None)


def _lacking(diversity: Diversity, rows: Sequence[Integers], keys: list[int]) -> str:
    """Return what the records of some keys lack together, in words; an empty text if nothing."""
    reached = diversity.take(np.concatenate([rows[key] for key in keys])).attainable()
    for one, name, own in zip(diversity.requirements, diversity.names, reached):
        if not one.holds(own):
            return f"{one} of {name!r} ({own:.4g})"
    return ""


def _respondents(units: Integers | None) -> str:
    return "records" if units is None else "units"


def _refuse_rare_patterns(
    keys: Integers, sizes: Integers, strata: Strata, lacking: Sequence[Name], k: int,
    units: Integers | None,
) -> None:  # fmt: skip
    """Refuse patterns of missing cells that fewer than k units of a stratum have."""
    small: dict[str, int] = {}
    few = np.flatnonzero(sizes < k)
    for at in few[np.lexsort(keys[few].T[::-1])]:
        stratum, *states = keys[at]
        named = [
            repr(name) + MISSING_AS.get(int(state), " (a code)")
            for name, state in zip(lacking, states)
            if state
        ]
        name = f"without {', '.join(named)}" if named else "complete"
        if len(strata.names) > 1:
            name += f" in stratum {strata.names[stratum]}"
        small[name] = min(int(sizes[at]), small.get(name, k))  # two codes may share a name
    if small:
        raise GroupSizeError.small_patterns(k=k, sizes=small, what=_respondents(units))


def _case_of_each(cells: BlockCells, cases: Sequence[Case]) -> Integers:
    """Return the first case that each record is in.

    A record that is in none breaks the rule: it goes to the case that it is nearest to. Where
    missing values leave it open, it is in none, at -1, and keeps no claim.
    """
    n = cells.n_rows
    chosen = np.full(n, -2, dtype=np.int64)
    unknown, least, nearest = np.zeros(n, bool), np.full(n, np.inf), np.zeros(n, dtype=np.int64)
    for number, case in enumerate(cases):
        signs = np.min([cells.signs(claim) for claim in case], axis=0) if case else np.ones(n)
        amount = np.sum([cells.amounts(claim) for claim in case], axis=0) if case else np.zeros(n)
        chosen[(chosen == -2) & (signs > 0)] = number
        unknown |= signs == 0
        closer = (amount <= least) & (signs < 0)  # of equals the last: the body of a condition
        least[closer], nearest[closer] = amount[closer], number
    return np.where(chosen >= 0, chosen, np.where(unknown, -1, nearest))


def join_small(
    keys: Integers, records: Integers, counted: Integers, k: int, wish: str, *, fixed: int,
    units: Integers | None = None, lacks: Callable[[list[int]], str] | None = None,
) -> Integers:  # fmt: skip
    """Let parts below k join another, or refuse them; strata and what is missing never mix.

    `records` and `counted` are the records and units of each key; `units`, where units are counted,
    pairs of a key and a unit that it has: all of keys that have fewer than k. `lacks` says what the
    records of some keys lack beside, in words; together they lack less. Returns the key that each
    one has joined, or itself.
    """
    what = "records" if units is None else "units"
    sizes, became = records.copy(), np.arange(len(keys))
    own: dict[int, set[int]] = {}
    if units is not None:
        for at, unit in units.tolist():
            own.setdefault(at, set()).add(unit)
    count = dict(enumerate(counted.tolist()))
    small = {at: size for at, size in count.items() if size < k}
    if small and wish == "refuse":
        raise GroupSizeError.small_parts(k=k, sizes=sorted(small.values()), what=what)
    if lacks is not None:
        lacking = {at: why for at in count if (why := lacks([at]))}
        if lacking and wish == "refuse":
            raise DiversityError.parts(reached=list(lacking.values()))
        small |= {at: count[at] for at in lacking}
    for at in sorted(small, key=lambda at: small[at]):
        own_keys = np.flatnonzero(became == at).tolist()
        why = "" if lacks is None else lacks(own_keys)
        if count[at] >= k and not why:
            continue
        others = [
            other
            for other in count
            if other != at
            and keys[other, 0] == keys[at, 0]
            and (keys[other, fixed:] == keys[at, fixed:]).all()
        ]
        if not others and count[at] >= k:
            raise DiversityError.parts(reached=[why])
        if not others:
            raise GroupSizeError.small_parts(k=k, sizes=[count[at]], what=what)
        best = min(others, key=lambda o: ((keys[o] != keys[at]).sum(), -sizes[o]))
        sizes[best] += sizes[at]
        if units is None:
            count[best] += count[at]
        else:
            own[best] |= own[at]
            count[best] = max(count[best], len(own[best]))
        became[became == at] = best
        del count[at]
    return became


def group_means(values: Floats, weights: Floats, labels: Integers, n_groups: int) -> Floats:
    """Weighted mean of each group, shape (n_groups, d), never outside of the group's range."""
    means = weighted_centres(np.ascontiguousarray(values), weights, labels, n_groups)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(n_groups))
    for j in range(values.shape[1]):  # rounding may carry a mean past an end by an ulp
        column = values[order, j]
        low, high = np.minimum.reduceat(column, starts), np.maximum.reduceat(column, starts)
        np.clip(means[:, j], low, high, out=means[:, j])
    return means


def group_medians(values: Floats, weights: Floats, labels: Integers, n_groups: int) -> Floats:
    """Weighted median of each group and column, shape (n_groups, d).

    With the values of a group in order, the median is the first value whose cumulated weight
    exceeds half of the group's. Where the cumulated weight is exactly half (an even number of
    equal weights), it is the mean of that value and the next: without weights, the usual median.
    """
    medians = np.empty((n_groups, values.shape[1]))
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_groups))])
    for j in range(values.shape[1]):
        order = np.lexsort((values[:, j], labels))
        medians[:, j] = medians_of_runs(values[order, j], weights[order], starts)
    return medians


AGGREGATES: dict[str, Callable[[Floats, Floats, Integers, int], Floats]] = {
    "mean": group_means,
    "median": group_medians,
}


def log_means(values: Floats, weights: Floats, labels: Integers, count: int) -> Floats:
    """Weighted geometric mean of positive values, shape (groups, d)."""
    return np.asarray(np.exp(group_means(np.log(values), weights, labels, count)))


def lower_medians(values: Floats, weights: Floats, labels: Integers, count: int) -> Integers:
    """Return, for each group, the place of the record with the lower weighted median of a column.

    It is the first value, in order, at which half of the weight is reached.
    """
    order = np.lexsort((np.arange(len(values)), values, labels))
    sorted_weights = weights[order]
    starts = np.searchsorted(labels[order], np.arange(count))
    before = np.concatenate([[0.0], np.cumsum(sorted_weights)])
    ends = np.append(starts[1:], len(values))
    half = before[starts] + 0.5 * (before[ends] - before[starts])
    at = np.searchsorted(before[1:], half * (1 - 1e-12), side="left")
    return np.asarray(order[np.clip(at, starts, ends - 1)])


def medoids(
    embedded: Floats, weights: Floats, labels: Integers, count: int, valid: Truths
) -> Integers:
    """Return, for each group, the place of the valid record nearest to the group's mean.

    A group without an valid record takes the nearest one of the whole part; -1 if there is none.
    """
    centres = weighted_centres(embedded, weights, labels, count)
    squares = ((embedded - centres[labels]) ** 2).sum(axis=1)
    squares = np.where(valid, squares, np.inf)
    order = np.lexsort((np.arange(len(labels)), squares, labels))
    first = order[np.searchsorted(labels[order], np.arange(count))]
    if not valid.any():
        return np.full(count, -1, dtype=np.int64)
    good = np.flatnonzero(valid)
    for group in np.flatnonzero(~valid[first]):
        away = ((embedded[good] - centres[group]) ** 2).sum(axis=1)
        first[group] = good[away.argmin()]
    return first


def medians_among(
    values: Floats, weights: Floats, labels: Integers, count: int, allowed: Truths
) -> Integers:
    """Return the lower median of the allowed records of each group.

    A group without any takes the allowed record of the part that is nearest to its own median;
    where the part has none, its own median.
    """
    found = lower_medians(values, weights, labels, count)
    if allowed.all() or not allowed.any():
        return found
    good = np.flatnonzero(allowed)
    has = np.bincount(labels[good], minlength=count) > 0
    _, inner = np.unique(labels[good], return_inverse=True)
    own = good[lower_medians(values[good], weights[good], inner, int(has.sum()))]
    order = good[np.argsort(values[good], kind="stable")]
    at = np.clip(np.searchsorted(values[order], values[found]), 1, len(order)) - 1
    after = np.minimum(at + 1, len(order) - 1)
    nearer = np.abs(values[order[after]] - values[found]) < np.abs(
        values[order[at]] - values[found]
    )
    nearest = np.where(nearer, order[after], order[at])
    nearest[has] = own
    return nearest


def allowed_of(
    cells: BlockCells,
    rows: Integers,
    columns: Sequence[Name],
    claims: Sequence[Claim],
    strata: Sequence[Name] = (),
) -> Truths:
    """Return which records keep all claims about these columns, and strata, and no others."""
    keeps = np.ones(len(rows), dtype=bool)
    for claim in claims:
        about = set(claim.columns)
        if about & set(columns) and about <= {*columns, *strata}:
            keeps &= cells.signs(claim)[rows] >= 0
    return keeps
