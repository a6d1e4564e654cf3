"""Linear rules that contradict or repeat each other, by linear programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..linear import LinearSystem
from .expressions import Name
from .forms import Governing, Interval, Linear
from .rule import Rule

__all__ = ["contradiction", "redundant"]


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
    rows = _rows(rules)
    if not any(len(row.coefficients) > 1 for row in rows):
        return []
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


def redundant(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    """For each rule whose linear parts, and it has no others, follow from rules: from which."""
    rows = _rows(rules)
    if not any(len(row.coefficients) > 1 for row in rows):
        return {}
    system, order = _system(rows)
    because: dict[int, list[str]] = {}
    for implied in system.implied():
        row = order[int(implied.row)]
        premises = [order[int(name)] for name in implied.because]
        if not row.strict or any(each.strict for each in premises):
            because[int(implied.row)] = list(implied.because)
    found: dict[str, list[Rule]] = {}
    for place, rule in enumerate(rules):
        own = [at for at, row in enumerate(order) if row.rule == place]
        if own and rule.is_affine and all(at in because for at in own):
            reasons = _rules({name for at in own for name in because[at]}, order, rules)
            found[rule.name] = [reason for reason in reasons if reason is not rule]
    return found


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
    return rows


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
