"""What must be true of a release, checked with pandas and Python alone: no tessella in here.

`judge` evaluates a rule in one record in the logic of three values: True, False, or None where a
missing cell leaves it open, or where a condition lies within rounding of its border.
"""

from __future__ import annotations

import ast
import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import pandas as pd

Record = Mapping[str, Any]
TOLERANCE = 2e-9  # twice what `protect` allows itself, times the size of the terms


class Number:
    """A number, the size of the terms that it was computed from, and whether all were whole."""

    def __init__(self, value: Any, size: float | None = None, whole: bool | None = None) -> None:
        self.value = value if isinstance(value, int) else float(value)
        self.size = abs(float(value)) if size is None else size
        self.whole = float(value).is_integer() if whole is None else whole


@cache
def parse(rule: str) -> tuple[ast.expr | None, ast.expr, float]:
    """Split a line into its condition, its body and its tolerance."""
    text, _, slack = rule.partition("±")
    condition = None
    if text.startswith("if "):
        head, _, text = text.removeprefix("if ").partition(":")
        condition = ast.parse(head.strip(), mode="eval").body
    return condition, ast.parse(text.strip(), mode="eval").body, float(slack or 0)


def judge(rule: str, record: Record, original: pd.DataFrame | None = None) -> bool | None:
    """Return whether a record obeys a rule; `original` is what observed(x) and max(x) speak of."""
    condition, body, slack = parse(rule)
    truth = _truth(body, record, original, slack, strict=True)
    if condition is None:
        return truth
    return _or([_not(_truth(condition, record, original, 0.0, strict=False)), truth])


def _truth(
    node: ast.expr, record: Record, original: Any, slack: float, strict: bool
) -> bool | None:
    match node:
        case ast.BoolOp(op, values):
            found = [_truth(each, record, original, slack, strict) for each in values]
            return _or(found) if isinstance(op, ast.Or) else _not(_or([_not(f) for f in found]))
        case ast.UnaryOp(ast.Not(), operand):
            return _not(_truth(operand, record, original, slack, False))
        case ast.Call(ast.Name("missing"), [ast.Name(name)]):
            return record[name] is None
        case ast.Call(ast.Name("known"), [ast.Name(name)]):
            return record[name] is not None
        case ast.Call(ast.Name("observed"), names):
            columns = [name.id for name in names if isinstance(name, ast.Name)]
            own = tuple(record[name] for name in columns)
            if None in own:
                return None
            return own in {tuple(row) for row in original[columns].itertuples(index=False)}
        case ast.Name(name):
            return record[name]
        case ast.Compare(left, operators, comparators):
            sides, found = [left, *comparators], []
            for a, operator, b in zip(sides, operators, comparators):
                found.append(_compare(a, operator, b, record, original, slack, strict))
            return _not(_or([_not(f) for f in found]))
    raise ValueError(ast.dump(node))


def _compare(
    a: ast.expr, operator: ast.cmpop, b: ast.expr, record: Record, original: Any, slack: float,
    strict: bool,
) -> bool | None:  # fmt: skip
    if isinstance(operator, ast.In | ast.NotIn):
        own = _values(a, record)
        assert isinstance(b, ast.Set)
        if None in own:
            return None
        inside = own in [_values(each, record) for each in b.elts]
        return inside == isinstance(operator, ast.In)
    left, right = (_value(side, record, original) for side in (a, b))
    if left is None or right is None:
        return None
    if isinstance(left, Number) and isinstance(right, Number):
        return _compare_numbers(left, operator, right, slack, strict)
    left, right = _alike(left, right), _alike(right, left)
    match operator:
        case ast.Eq():
            return left == right
        case ast.NotEq():
            return left != right
        case ast.LtE():
            return left <= right
        case ast.Lt():
            return left < right
        case ast.GtE():
            return left >= right
    return left > right


def _compare_numbers(
    left: Number, operator: ast.cmpop, right: Number, slack: float, strict: bool
) -> bool | None:
    """Compare; `strict` is what a rule says, and not what its condition asks."""
    away = left.value - right.value
    exact = left.whole and right.whole
    rounding = 0.0 if exact else TOLERANCE * (left.size + right.size)
    if not strict and not exact and abs(away) <= rounding:
        return None  # rounding decides
    rounding += slack
    match operator:
        case ast.Eq():
            return abs(away) <= rounding
        case ast.NotEq():
            return away != 0
        case ast.LtE():
            return away <= rounding
        case ast.GtE():
            return away >= -rounding
        case ast.Lt():
            return away < slack or (slack > 0 and away <= rounding)
    return away > -slack or (slack > 0 and away >= -rounding)


def _values(node: ast.expr, record: Record) -> tuple[Any, ...]:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    found = []
    for part in parts:
        value = _value(part, record, None)
        found.append(value.value if isinstance(value, Number) else value)
    return tuple(found)


def _value(node: ast.expr, record: Record, original: Any) -> Any:
    match node:
        case ast.Constant(value):
            return value if isinstance(value, str | bool) else Number(value)
        case ast.Name(name):
            own = record[name]
            return Number(own) if _is_number(own) else own
        case ast.UnaryOp(ast.USub(), operand):
            inner = _value(operand, record, original)
            return None if inner is None else Number(-inner.value, inner.size, inner.whole)
        case ast.Call(ast.Name(function), [ast.Name(name)]) if function in ("min", "max", "mean"):
            return Number(getattr(original[name].dropna().astype(float), function)())
        case ast.Call(ast.Name(function), arguments):
            given = [_value(each, record, original) for each in arguments]
            if None in given:
                return None
            found = {"min": min, "max": max, "abs": abs}[function](*(g.value for g in given))
            return Number(found, max(g.size for g in given), all(g.whole for g in given))
        case ast.BinOp(a, operator, b):
            left, right = _value(a, record, original), _value(b, record, original)
            if left is None or right is None:
                return None
            return _combine(left, operator, right)
    raise ValueError(ast.dump(node))


def _combine(left: Number, operator: ast.operator, right: Number) -> Number | None:
    whole = left.whole and right.whole
    x, y = left.value, right.value
    match operator:
        case ast.Add():
            return Number(x + y, left.size + right.size, whole)
        case ast.Sub():
            return Number(x - y, left.size + right.size, whole)
        case ast.Mult():
            return Number(x * y, left.size * right.size, whole)
        case ast.Pow():
            return Number(x**y, left.size**y, whole)
    if y == 0:
        return None  # a guard decides; an unguarded one is refused before
    return Number(x / y, left.size / abs(y), whole and (x / y).is_integer())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _alike(value: Any, other: Any) -> Any:
    if isinstance(value, str) and isinstance(other, dt.date):
        return dt.date.fromisoformat(value)
    return value


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _or(truths: Sequence[bool | None]) -> bool | None:
    return True if True in truths else None if None in truths else False


def plain(value: Any) -> Any:
    """Return a cell as Python has it; None where it is missing."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    return value.date() if isinstance(value, dt.datetime) else value


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the records of a pandas frame as plain dicts."""
    columns = {name: [plain(value) for value in frame[name]] for name in frame}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def problems(
    original: Sequence[Record],
    released: Sequence[Record],
    *,
    rules: Sequence[str],
    k: int,
    blocks: Sequence[Sequence[str]],
    strata: Sequence[str],
    untouched: Sequence[str],
    lossy: bool = False,
) -> list[str]:
    """Return what is wrong with a release; `lossy` is a format that holds fewer kinds of cells."""
    if len(original) != len(released):
        return [f"{len(original)} records became {len(released)}"]
    if list(original[0]) != list(released[0]):
        return [f"columns {list(original[0])} became {list(released[0])}"]
    found = []
    before, after = pd.DataFrame(list(original), dtype=object), None
    for name in before:
        gone = [i for i, (a, b) in enumerate(zip(original, released))
                if (a[name] is None) != (b[name] is None)]  # fmt: skip
        if gone:
            found.append(f"cells of {name!r} became missing or known: {gone[:5]}")
    for name in (*untouched, *strata):
        if wrong := [i for i, (a, b) in enumerate(zip(original, released))
                     if not same(a[name], b[name], lossy)]:  # fmt: skip
            found.append(f"untouched column {name!r} changed in {wrong[:5]}")
    after = pd.DataFrame(list(released), dtype=object)
    for block in blocks:
        keys = [after[name].map(str) for name in (*strata, *block)]
        least = int(after.groupby(keys, dropna=False).size().min())
        if least < k:
            found.append(f"a group of {least} in {list(block)}, k={k}")
    for rule in rules:
        if wrong := [i for i, row in enumerate(released) if judge(rule, row, before) is False]:
            found.append(f"{rule!r} is broken by {wrong[:5]}: {dict(released[wrong[0]])}")
    return found


def same(a: Any, b: Any, lossy: bool) -> bool:
    """Whether two cells are equal; a lossy format has 1.0 for 1, "True" or 1 for True."""
    if a == b:
        return True
    if a is None or b is None or not lossy:
        return False
    if _is_number(a) and _is_number(b):
        return math.isclose(a, b, rel_tol=1e-12)
    return str(a).lower() == str(b).lower() or (isinstance(a, bool) and float(b) == float(a))
