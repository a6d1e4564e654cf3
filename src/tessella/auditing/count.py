"""The counting behind an audit: from a pair of tables to its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Floats, Integers, Name, States, Truths
from .._wording import counted, fill
from ..diversity import DiversityRule
from ..exceptions import BadTableError, IncomparableError, RuleTableError
from ..frame import Pair, Strata, View, count_units, group_ids, number_labels
from ..frame.columns import NULL
from ..grouping.dominance import DominanceRule, find_dominated
from ..keys.matches import count_matches
from ..rules.collection import Rules
from ..rules.confront import Confrontation
from ..rules.correcting import solutions
from ..rules.expressions import Aggregate, Observed
from ..schema import Schema
from .result import ColumnLine, DiversityLine, DominanceLine, GroupLine, RuleLine


@dataclass(frozen=True, kw_only=True)
class PairedCells:
    """One column in both tables.

    `before` and `after` are numbers, NaN where missing, or, where not `numeric`, codes of
    categories in one numbering, -1 where missing; `states` are those of both. `unreadable` says in
    which of the two tables numbers could not be read as such, and are compared as categories.
    """

    name: Name
    numeric: bool
    before: NDArray[Any]
    after: NDArray[Any]
    states: tuple[States, States]
    unreadable: tuple[bool, bool]

    @property
    def known(self) -> Truths:
        """Where both tables have a value."""
        known: Truths = (self.states[0] == 0) & (self.states[1] == 0)
        return known

    @property
    def moved(self) -> Truths:
        """Where a known cell became missing, a missing one known, or missing in another way."""
        moved: Truths = self.states[0] != self.states[1]
        return moved

    @property
    def differs(self) -> Truths:
        """Where the masked table does not hold the same as the original."""
        differs: Truths = self.moved | (self.known & (self.before != self.after))
        return differs


def read_cells(pair: Pair, name: Name) -> PairedCells:
    """Read a column of both tables: as numbers where both hold measured ones that can be read."""
    unreadable = False, False
    if pair.is_number(name):
        unreadable = _is_unreadable(pair.original, name), _is_unreadable(pair.masked, name)
    numeric = pair.is_number(name) and not any(unreadable)
    try:
        states = pair.states(name)
        before, after, *_ = pair.numbers(name) if numeric else pair.labels(name)
    except BadTableError:
        raise IncomparableError.values(column=name, dtype=pair.facts(name)[0].dtype) from None
    return PairedCells(
        name=name, numeric=numeric, before=before, after=after, states=states, unreadable=unreadable
    )


def _is_unreadable(view: View, name: Name) -> bool:
    try:
        view.numbers(name)
    except BadTableError:
        return True
    return False


def find_strata(pair: Pair, given: Any) -> Strata:
    """Number the strata, in the masked table where they are made of its columns.

    A missing cell is a stratum too. Strata that come as an array are numbered as they first appear
    and not named: their labels may be values of the original that are not released.
    """
    if given is None:
        return pair.masked.strata(None)
    names = pair.masked.stratum_columns(given)
    if names is None:
        own, _ = number_labels(pair.original.table.per_record(given, who="strata"))
        ids = group_ids([own])
        return Strata(ids=ids, names=tuple(f"stratum {s + 1}" for s in range(ids.max() + 1)))
    if not names:
        raise BadTableError(f"strata={given!r} is empty. Leave it out.")
    return pair.masked.strata(names)


def count_groups(
    columns: Sequence[Name], equal: Sequence[Integers], strata: Strata, k: int | None,
    units: Integers | None = None,
) -> tuple[GroupLine, Integers]:  # fmt: skip
    """Count who shares a stratum and all values, records or units; also number their sets.

    `equal` numbers the values of each column, or the sets of columns counted before.
    """
    sets = group_ids([strata.ids, *equal])
    records, sizes = np.bincount(sets), count_units(sets, units)
    home = np.empty(len(sizes), dtype=np.int64)
    home[sets] = strata.ids  # all records of a set are in one stratum
    n_strata = len(strata.names)
    smallest = np.full(n_strata, len(sets), dtype=np.int64)
    np.minimum.at(smallest, home, sizes)
    below = None
    if k is not None:
        few = sizes < k
        counted = np.bincount(home[few], weights=records[few], minlength=n_strata)
        below = tuple(counted.astype(np.int64).tolist())
    line = GroupLine(
        columns=tuple(columns),
        records=tuple(np.bincount(strata.ids, minlength=n_strata).tolist()),
        combinations=tuple(np.bincount(home, minlength=n_strata).tolist()),
        smallest=tuple(smallest.tolist()),
        below=below,
    )
    return line, sets


def count_diversity(view: View, sets: Integers, rule: DiversityRule) -> Iterator[DiversityLine]:
    """Measure the confidential values of each set of records that are alike, as released."""
    wanted = rule.read(view)
    measures, sizes = wanted.measures(sets), np.bincount(sets)
    for name, one, own in zip(wanted.names, wanted.requirements, measures.T):
        broken = ~one.holds(own)
        yield DiversityLine(
            column=name, asked=str(one), measure=one.label, limit=one.limit, worst=one.worst(own),
            groups=int(broken.sum()), records=int(sizes[broken].sum()),
        )  # fmt: skip


def count_by_wildcard(
    line: GroupLine, view: View, sets: Integers, strata: Strata, k: int | None
) -> GroupLine:
    """Count a block anew, an empty cell being equal to every value.

    `sets` numbers the combinations of the block within strata.
    """
    first = np.unique(sets, return_index=True)[1]
    records, home = np.bincount(sets), strata.ids[first]
    empty = np.column_stack([view.states(name)[first] == NULL for name in line.columns])
    codes = np.column_stack([view.codes(name)[first] for name in line.columns])
    codes = np.where(empty, 0, codes - codes.min(axis=0) + 1)
    sizes = count_matches(codes, records, home)
    smallest = np.full(len(strata.names), len(sets), dtype=np.int64)
    np.minimum.at(smallest, home, sizes)
    below = None
    if k is not None:
        few = np.where(sizes < k, records, 0)
        below = tuple(np.bincount(home, few, len(strata.names)).astype(np.int64).tolist())
    return replace(line, smallest=tuple(smallest.tolist()), below=below)


def find_implied(pair: Pair, rules: Rules, block: Sequence[Name]) -> dict[Name, Floats]:
    """Find emptied numbers of a block that an equality tells whoever knows the rules.

    Returns, for each such column, the numbers, shape (n,), NaN where nothing is told. Only columns
    whose released cells are the true ones tell anything.
    """
    emptied = {}
    for name in block:
        before, after = pair.states(name)
        gone = (before == 0) & (after == NULL)
        if gone.any() and all(facts.numeric for facts in pair.facts(name)):
            emptied[name] = gone
    if not emptied or not len(rules):
        return {}
    true = [name for name in pair.columns if not _changed(pair, name)]
    found: dict[Name, Floats] = {}
    for name, solved in solutions(rules.for_columns(true, only=True), pair.masked):
        if name not in emptied:
            continue
        told = emptied[name] & np.isclose(solved, pair.numbers(name)[0], rtol=1e-9, atol=1e-9)
        if told.any():
            held = found.setdefault(name, np.full(pair.n_rows, np.nan))
            held[told] = solved[told].round(6)
    return found


def _changed(pair: Pair, name: Name) -> bool:
    """Return whether a cell that is known in both tables holds another value."""
    cells = read_cells(pair, name)
    return bool((cells.known & (cells.before != cells.after)).any())


def judge_totals(
    cells: PairedCells, sets: Integers, weights: Weights, rule: DominanceRule
) -> DominanceLine | None:
    """Judge what the totals of released groups give away of a column; None where it is nothing."""
    x, released = (np.where(cells.known, side, np.nan) for side in (cells.before, cells.after))
    found = find_dominated(sets, x, released, weights.after, rule)
    within = np.flatnonzero(found.within)
    if not len(found.rows) and not len(within):
        return None
    return DominanceLine(
        column=cells.name,
        rule=str(rule),
        groups=len(found.groups),
        rows=tuple(found.rows.tolist()),
        within=tuple(within.tolist()),
    )


def describe_dominance(lines: Sequence[DominanceLine]) -> Iterator[str]:
    """Say how many records the totals of their groups give away, and in which columns."""
    if not lines:
        return
    records = len({row for line in lines for row in line.rows})
    groups, near = (sum(line.to_dict()[what] for line in lines) for what in ("groups", "within"))
    given_away = "the totals of {groups} disclose {records}, in {names!t}; within"
    yield fill(
        f"Dominance ({{rule}}): {given_away if records else 'in {names!t}, within'} 10 % of group "
        "size times mean: {cells}.",
        rule=lines[0].rule, groups=counted(groups, "released group"),
        records=counted(records, "record"),
        names=[repr(line.column) for line in lines], cells=counted(near, "cell"),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The weight of each record in the original and in the masked table; None for 1."""

    before: Floats | None = None
    after: Floats | None = None
    column: Name | None = None

    def beside(self, cells: PairedCells) -> Iterator[tuple[str, NDArray[Any], Truths, Any]]:
        """Return of each table its name, its cells of a column, which are known, and the weight."""
        known = [state == 0 for state in cells.states]
        yield "before", cells.before, known[0], self.before
        yield "after", cells.after, known[1], self.after


def compare_column(cells: PairedCells, weights: Weights, *, few: int) -> ColumnLine:
    """Compare a column; what differs in fewer than `few` cells is confidential."""
    n, changed = len(cells.after), int(cells.differs.sum())
    lacking = [int((state != 0).sum()) for state in cells.states]
    figures: dict[str, Any] = {
        "name": cells.name,
        "n": n,
        "changed": changed,
        "missing_before": lacking[0],
        "missing_after": lacking[1],
        "moved": int(cells.moved.sum()),
        "suppressed": int((cells.moved & (cells.states[1] == NULL)).sum()),
    }
    small = 0 < changed < few
    if not cells.numeric:
        frequency = _frequency_change(cells, weights)
        return ColumnLine(kind="categories", frequency_change=frequency, few=small, **figures)
    for side, values, known, weight in weights.beside(cells):
        figures |= {f"{name}_{side}": own for name, own in _figures(values, known, weight)}
    small |= changed > 0 and n - lacking[0] < few
    return ColumnLine(kind="numbers", few=small, **figures)


def _figures(values: Floats, known: Truths, weight: Floats | None) -> Iterator[tuple[str, Any]]:
    seen = values if known.all() else values[known]
    if not len(seen):
        yield from (("total", 0.0), ("mean", None), ("low", None), ("high", None))
        return
    if weight is None:
        total, mass = float(seen.sum()), float(len(seen))
    else:
        weighing = weight if known.all() else weight[known]
        total, mass = float((weighing * seen).sum()), float(weighing.sum())
    yield "total", total
    yield "mean", total / mass if mass else None
    yield "low", float(seen.min())
    yield "high", float(seen.max())


def _frequency_change(cells: PairedCells, weights: Weights) -> float:
    n_codes = int(max(cells.before.max(), cells.after.max())) + 2  # and one for missing
    shares = []
    for _, codes, known, weight in weights.beside(cells):
        place = np.where(known, codes, n_codes - 1)
        counts = np.bincount(place, weights=weight, minlength=n_codes)
        shares.append(counts / (counts.sum() or 1.0))
    return float(np.abs(shares[1] - shares[0]).max())


@dataclass(frozen=True, kw_only=True)
class _Verdict:
    """What became of one rule in one table; `why` says why it could not be judged."""

    breaks: int | None = None
    unknown: int | None = None
    worst: float | None = None
    why: str = ""

    def facts(self, side: str) -> dict[str, Any]:
        return {f"{fact}_{side}": getattr(self, fact) for fact in ("breaks", "unknown", "worst")}


def compare_rules(
    rules: Rules,
    pair: Pair,
    *,
    tolerance: float,
    schema: Schema | None,
    confronted: tuple[Confrontation, Confrontation] | None = None,
) -> tuple[list[RuleLine], dict[str, str]]:
    """Judge every rule before and after; also why rules could not be judged after.

    `confronted` are the confrontations of both tables with the fixed rules, if there are any.
    """
    if confronted is not None:
        fixed = confronted[0].rules
        before, after = (_verdicts(found) for found in confronted)
    else:
        fixed = rules.fix(pair.original, schema=schema)
        before = _judge(fixed, pair.original, tolerance, schema)
        after = _judge(fixed, pair.masked, tolerance, schema)
    lines = [
        RuleLine(
            name=rule.name,
            text=rule.text,
            asks_original=any(isinstance(n, Aggregate | Observed) for n in rule.nodes()),
            **old.facts("before"),
            **new.facts("after"),
        )
        for rule, old, new in zip(fixed, before, after, strict=True)
    ]
    return lines, {r.name: new.why for r, new in zip(fixed, after, strict=True) if new.why}


def _judge(rules: Rules, view: View, tolerance: float, schema: Schema | None) -> list[_Verdict]:
    try:
        found = rules.confront(view, tolerance=tolerance, schema=schema)
    except BadTableError as error:  # one rule that cannot be judged does not silence the others
        if len(rules) == 1:
            why = error.problems if isinstance(error, RuleTableError) else [str(error)]
            return [_Verdict(why=" ".join(why))]
        alone = [_judge(Rules([rule]), view, tolerance, schema) for rule in rules]
        return [verdict for (verdict,) in alone]
    return _verdicts(found)


def _verdicts(found: Confrontation) -> list[_Verdict]:
    verdicts = []
    for rows, signs, amounts in zip(found.rows, found.signs.T, found.amounts):
        worst = float(amounts.max()) if len(amounts) else None
        unknown = int((signs == 0).sum())
        verdicts.append(_Verdict(breaks=len(rows), unknown=unknown, worst=worst))
    return verdicts
