"""Linear rules that contradict or repeat each other, by linear programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .._types import Name
from ..linear import LinearSystem
from .expressions import Node
from .forms import Governing, Interval, Linear, Members
from .rule import Rule

__all__ = ["contradiction", "excluded", "redundant"]


@dataclass(frozen=True)
class _Row:
    """coefficients · record == constant, or <= it; `strict` if it is < in truth."""

    rule: int
    coefficients: dict[Name, float]
    constant: float
    equal: bool = False
    strict: bool = False


def contradiction(rules: Sequence[Rule]) -> list[Rule]:
    """Return rules whose linear parts no record can obey together; none if one can."""
    return next(filter(None, (_contradiction(rows, rules) for rows in _parts(rules))), [])


def _contradiction(rows: list[_Row], rules: Sequence[Rule]) -> list[Rule]:
    system, order = _system(rows)
    if system.contradiction:
        return _rules(system.contradiction, order, rules)
    for row in rows:
        if row.strict:
            # a < b has no solution among solutions of a <= b if the others make a >= b.
            turned = _Row(-1, {n: -v for n, v in row.coefficients.items()}, -row.constant)
            larger, order = _system([*rows, turned])
            if larger.contradiction:
                continue
            for implied in larger.implied():
                if order[int(implied.row)].rule < 0:
                    return _rules({*implied.because, str(order.index(row))}, order, rules)
    return []


def excluded(truths: Sequence[Node], rules: Sequence[Rule]) -> list[Rule]:
    """Return rules beside which no record can be so as some truths say; none if one can."""
    claims = [Rule(body=truth) for truth in truths]
    columns = {name for claim in claims for name in claim.columns}
    near: list[Rule] = []
    waiting = list(rules)
    while more := [rule for rule in waiting if columns.intersection(rule.columns)]:
        near += more
        waiting = [rule for rule in waiting if rule not in more]
        columns.update(name for rule in more for name in rule.columns)
    culprits = contradiction([*claims, *near])
    if not any(claim is culprit for claim in claims for culprit in culprits):
        return []
    return [rule for rule in rules if any(rule is culprit for culprit in culprits)]


def redundant(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    """For each rule whose linear parts, and it has no others, follow from rules: from which."""
    left = Counter(row.rule for row in _rows(rules))  # rows that do not follow from others
    reasons: dict[int, set[int]] = {}
    for rows in _parts(rules):
        system, order = _system(rows)
        for implied in system.implied():
            row = order[int(implied.row)]
            premises = [order[int(name)] for name in implied.because]
            if not row.strict or any(each.strict for each in premises):
                left[row.rule] -= 1
                reasons.setdefault(row.rule, set()).update(each.rule for each in premises)
    return {
        rules[place].name: [rules[reason] for reason in sorted(reasons[place] - {place})]
        for place, count in sorted(left.items())
        if not count and rules[place].is_affine
    }


def _rows(rules: Sequence[Rule]) -> list[_Row]:
    rows = []
    for place, rule in enumerate(rules):
        for form in rule.forms:
            if isinstance(form, Governing):
                form = form.linear
            if isinstance(form, Linear):
                rows.append(
                    _Row(
                        place,
                        dict(form.coefficients),
                        form.constant,
                        form.operator == "==",
                        form.operator == "<",
                    )
                )
            elif isinstance(form, Interval):
                rows += _bounds(place, form)
            elif isinstance(form, Members) and form.inside:
                values = [each for each in form.values if isinstance(each, int | float)]
                if len(values) == len(form.values):  # at least, it lies between these
                    rows += _bounds(place, Interval(form.column, min(values), max(values)))
    return rows


def _parts(rules: Sequence[Rule]) -> list[list[_Row]]:
    """Split the rows into parts that share no column; leave out those about one column only."""
    parts: list[tuple[set[Name], list[_Row]]] = []
    for row in _rows(rules):
        columns, joined = set(row.coefficients), [row]
        apart = []
        for names, rows in parts:
            if names & columns:
                columns |= names
                joined = rows + joined
            else:
                apart.append((names, rows))
        parts = [*apart, (columns, joined)]
    return [sorted(rows, key=lambda row: row.rule) for names, rows in parts if len(names) > 1]


def _bounds(place: int, form: Interval) -> list[_Row]:
    if form.low == form.high:
        return [_Row(place, {form.column: 1.0}, form.low, equal=True)]
    rows = []
    if form.high < np.inf:
        rows.append(_Row(place, {form.column: 1.0}, form.high, strict=form.open_high))
    if form.low > -np.inf:
        rows.append(_Row(place, {form.column: -1.0}, -form.low, strict=form.open_low))
    return rows


def _system(rows: Sequence[_Row]) -> tuple[LinearSystem, list[_Row]]:
    """Return the system, equations first, and the rows in its order; rows are named by place."""
    order = [row for row in rows if row.equal] + [row for row in rows if not row.equal]
    columns = list(dict.fromkeys(name for row in order for name in row.coefficients))
    matrix = np.array([[row.coefficients.get(name, 0.0) for name in columns] for row in order])
    right = np.array([row.constant for row in order])
    equal = np.array([row.equal for row in order])
    system = LinearSystem(
        matrix[equal],
        right[equal],
        matrix[~equal],
        right[~equal],
        columns=columns,
        names=[str(place) for place in range(len(order))],
    )
    return system, order


def _rules(names: Iterable[str], order: Sequence[_Row], rules: Sequence[Rule]) -> list[Rule]:
    places = sorted({order[int(name)].rule for name in names} - {-1})
    return [rules[place] for place in places]
