"""What is written out in a rule: dates, and numbers that need no record."""

from __future__ import annotations

import math
import re
from datetime import datetime

from .expressions import Arithmetic, Function, Negative, Node, Number, Sum

__all__ = ["constant", "is_date"]


def is_date(text: str) -> bool:
    """Say whether text is a date such as 2024-01-31, or a date and time."""
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        return False
    try:
        return datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False


def constant(node: Node) -> float | None:
    """Return the value of an expression without columns, or None; infinite where it overflows."""
    match node:
        case Number(value):
            return float(value)
        case Negative(operand):
            inner = constant(operand)
            return None if inner is None else -inner
        case Function(function, operands):
            values = [constant(each) for each in operands]
            known = [value for value in values if value is not None]
            if len(known) < len(values):
                return None
            return abs(known[0]) if function == "abs" else (min, max)[function == "max"](known)
        case Sum(terms, signs):
            total = 0.0
            for sign, term in zip(signs, terms, strict=True):
                part = constant(term)
                if part is None:
                    return None
                total += sign * part
            return total
        case Arithmetic(operator, left, right):
            first, second = constant(left), constant(right)
            if first is None or second is None:
                return None
            return _calculate(operator, first, second)
    return None


def _calculate(operator: str, first: float, second: float) -> float:
    try:
        match operator:
            case "*":
                return first * second
            case "/":
                return first / second
        return float(first**second)
    except (OverflowError, ZeroDivisionError):
        return math.inf
