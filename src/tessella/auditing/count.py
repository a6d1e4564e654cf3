"""The counting behind an audit: from two tables read side by side to its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadTableError, RuleTableError
from ..frame import number_labels
from ..rules.collection import Rules
from ..rules.expressions import Aggregate, Observed, walk
from ..rules.rule import Rule
from ..schema import Schema
from .lines import ColumnLine, GroupLine, RuleLine
from .pair import Cells, Pair, number_alike

__all__ = ["Strata", "Weights", "compare_column", "compare_rules", "count_groups", "find_strata"]


@dataclass(frozen=True, kw_only=True)
class Strata:
    """The stratum of each record, the names of the strata, and the columns that make them."""

    place: Integers
    names: tuple[str, ...]
    columns: tuple[Name, ...] = ()


def find_strata(pair: Pair, strata: Any) -> Strata:
    """Number the strata, in the released table where they are made of its columns.

    Strata that come as an array are numbered as they first appear and not named: their labels may
    be values of the original that are not released.
    """
    if strata is None:
        return Strata(place=np.zeros(pair.n_rows, dtype=np.int64), names=("all records",))
    names = _as_names(pair, strata)
    if names is None:
        own, _ = number_labels(pair.original.per_record(strata, who="strata"))
        place = number_alike([own])
        return Strata(place=place, names=tuple(f"stratum {s + 1}" for s in range(place.max() + 1)))
    for name in names:
        pair.released.place(name, who="strata")
    place = number_alike([pair[name].alike for name in names])
    _, first = np.unique(place, return_index=True)
    said = []
    for name in names:
        own, texts = pair.released.labels(name)
        said.append([f"{name}={texts[own[i]] if own[i] >= 0 else 'missing'}" for i in first])
    return Strata(place=place, names=tuple(", ".join(parts) for parts in zip(*said)), columns=names)


def _as_names(pair: Pair, given: Any) -> tuple[Name, ...] | None:
    """Return the columns that are named, or None for one value for each record."""
    if isinstance(given, str) or pair.released.has(given):
        return (given,)
    if not isinstance(given, list | tuple):
        return None
    known = all(pair.released.has(name) for name in given)
    repeated = known and len(set(given)) < len(given)
    if len(given) == pair.n_rows and (repeated or not known):
        return None
    if repeated or not given:
        raise BadTableError(f"strata={given!r} is empty or names a column more than once.")
    return tuple(given)


def count_groups(
    columns: Sequence[Name], alike: Sequence[Integers], strata: Strata, k: int | None
) -> tuple[GroupLine, Integers]:
    """Count the records that share a stratum and all values; also number their sets.

    `alike` numbers the values of each column, or the sets of columns counted before.
    """
    sets = number_alike([strata.place, *alike])
    sizes = np.bincount(sets)
    home = np.empty(len(sizes), dtype=np.int64)
    home[sets] = strata.place  # all records of a set are in one stratum
    n_strata = len(strata.names)
    smallest = np.full(n_strata, len(sets), dtype=np.int64)
    np.minimum.at(smallest, home, sizes)
    below = None
    if k is not None:
        few = sizes < k
        counted = np.bincount(home[few], weights=sizes[few], minlength=n_strata)
        below = tuple(counted.astype(np.int64).tolist())
    line = GroupLine(
        columns=tuple(columns),
        records=tuple(np.bincount(strata.place, minlength=n_strata).tolist()),
        combinations=tuple(np.bincount(home, minlength=n_strata).tolist()),
        smallest=tuple(smallest.tolist()),
        below=below,
    )
    return line, sets


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The weight of each record in the original and in the released table; None for 1."""

    before: Floats | None = None
    after: Floats | None = None
    column: Name | None = None


def compare_column(cells: Cells, weights: Weights, *, few: int) -> ColumnLine:
    """Compare a column; totals that differ in fewer than `few` cells are confidential."""
    n, changed = len(cells.after), int(cells.differs.sum())
    lacking = [int((state != 0).sum()) for state in (cells.state_before, cells.state_after)]
    figures: dict[str, Any] = {
        "name": cells.name,
        "n": n,
        "changed": changed,
        "missing_before": lacking[0],
        "missing_after": lacking[1],
        "moved": int(cells.moved.sum()),
    }
    if not cells.numeric:
        return ColumnLine(
            kind="categories",
            frequency_change=_frequency_change(cells, weights),
            **figures,
        )
    sides = {"before": (cells.before, cells.state_before, weights.before),
             "after": (cells.after, cells.state_after, weights.after)}  # fmt: skip
    for side, (values, state, weight) in sides.items():
        for figure, value in _figures(values, state == 0, weight):
            figures[f"{figure}_{side}"] = value
    return ColumnLine(
        kind="numbers",
        few=0 < changed < few or (changed > 0 and n - lacking[0] < few),
        **figures,
    )


def _figures(
    values: Floats, known: Truths, weight: Floats | None
) -> Iterator[tuple[str, float | None]]:
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


def _frequency_change(cells: Cells, weights: Weights) -> float:
    n_codes = int(max(cells.before.max(), cells.after.max())) + 2  # and one for missing
    shares = []
    for codes, state, weight in (
        (cells.before, cells.state_before, weights.before),
        (cells.after, cells.state_after, weights.after),
    ):
        place = np.where(state == 0, codes, n_codes - 1)
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


def compare_rules(
    rules: Rules, pair: Pair, *, tolerance: float, schema: Schema | None
) -> tuple[list[RuleLine], dict[str, str]]:
    """Judge every rule before and after; also why rules could not be judged after."""
    fixed = rules.fix(pair.original, schema=schema)
    before = _judge(fixed, pair.original, tolerance, schema)
    after = _judge(fixed, pair.released, tolerance, schema)
    lines = [
        RuleLine(
            name=rule.name,
            text=rule.text,
            asks_original=_asks_original(rule),
            breaks_before=old.breaks,
            breaks_after=new.breaks,
            unknown_before=old.unknown,
            unknown_after=new.unknown,
            worst_before=old.worst,
            worst_after=new.worst,
        )
        for rule, old, new in zip(fixed, before, after, strict=True)
    ]
    return lines, {r.name: new.why for r, new in zip(fixed, after, strict=True) if new.why}


def _judge(rules: Rules, table: Any, tolerance: float, schema: Schema | None) -> list[_Verdict]:
    try:
        found = rules.confront(table, tolerance=tolerance, schema=schema)
    except BadTableError as error:  # one rule that cannot be judged does not silence the others
        if len(rules) == 1:
            said = error.problems if isinstance(error, RuleTableError) else [str(error)]
            return [_Verdict(why=" ".join(said))]
        alone = [_judge(Rules([rule]), table, tolerance, schema) for rule in rules]
        return [verdict for (verdict,) in alone]
    return [
        _Verdict(
            breaks=len(found.rows[place]),
            unknown=int((found.signs[:, place] == 0).sum()),
            worst=float(amounts.max()) if len(amounts) else None,
        )
        for place, amounts in enumerate(found.amounts)
    ]


def _asks_original(rule: Rule) -> bool:
    return any(isinstance(node, Aggregate | Observed) for node in walk(rule.truth))
