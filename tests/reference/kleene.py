"""Edit rules with missing values, one record at a time, in plain Python: slow, and plain to see.

True, False, and None for unknown. The text is read by Python's parser and walked directly; columns
are looked up in a dict, and a missing value is None.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from typing import Any

COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
}
CALCULATE = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def verdict(rule: str, record: Mapping[str, Any]) -> bool | None:
    """Whether a record obeys a line such as `if a > 0: b == 0`; None where that is unknown."""
    text = rule.partition("#")[0].strip()
    if not text.startswith("if "):
        return truth(ast.parse(text, mode="eval").body, record)
    condition, _, body = text.removeprefix("if ").partition(":")
    met = truth(ast.parse(condition.strip(), mode="eval").body, record)
    if met is False:
        return True
    obeyed = truth(ast.parse(body.strip(), mode="eval").body, record)
    if met is None:
        return True if obeyed else None
    return obeyed


def truth(node: ast.expr, record: Mapping[str, Any]) -> bool | None:
    if isinstance(node, ast.BoolOp):
        parts = [truth(each, record) for each in node.values]
        decides = isinstance(node.op, ast.Or)
        if decides in parts:
            return decides
        return None if None in parts else not decides
    if isinstance(node, ast.UnaryOp):
        inner = truth(node.operand, record)
        return None if inner is None else not inner
    if isinstance(node, ast.Name):
        return record[node.id]
    if isinstance(node, ast.Call):
        gone = record[node.args[0].id] is None
        return gone if node.func.id == "missing" else not gone
    parts = []
    left = node.left
    for op, right in zip(node.ops, node.comparators, strict=True):
        parts.append(compare(left, op, right, record))
        left = right
    if False in parts:
        return False
    return None if None in parts else True


def compare(left: Any, op: Any, right: Any, record: Mapping[str, Any]) -> bool | None:
    if isinstance(op, ast.In | ast.NotIn):
        names = left.elts if isinstance(left, ast.Tuple) else [left]
        values = [value(each, record) for each in names]
        if None in values:
            return None
        rows = ast.literal_eval(right)
        inside = (values[0] if len(values) == 1 else tuple(values)) in rows
        return inside is isinstance(op, ast.In)
    first, second = value(left, record), value(right, record)
    if first is None or second is None:
        return None
    return COMPARE[type(op)](first, second)


def value(node: ast.expr, record: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return record[node.id]
    if isinstance(node, ast.UnaryOp):
        inner = value(node.operand, record)
        return None if inner is None else -inner
    if isinstance(node, ast.Call):
        parts = [value(each, record) for each in node.args]
        known = None not in parts
        return {"abs": abs, "min": min, "max": max}[node.func.id](*parts) if known else None
    first, second = value(node.left, record), value(node.right, record)
    if first is None or second is None:
        return None
    return CALCULATE[type(node.op)](first, second)
