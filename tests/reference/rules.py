"""Edit rules, one record at a time, with Python's own eval: slow, and plain to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def obeys(rule: str, record: Mapping[str, Any]) -> bool:
    """Whether one record obeys one line such as `a + b == c  # label` or `if a > 0: b == 0`."""
    text = rule.partition("#")[0].strip()
    if text.startswith("if "):
        condition, _, text = text.removeprefix("if ").partition(":")
        if not eval(condition.strip(), {}, dict(record)):
            return True
    return bool(eval(text.strip(), {}, dict(record)))


def broken(rules: Sequence[str], records: Sequence[Mapping[str, Any]]) -> list[set[str]]:
    """The rules that each record breaks."""
    return [{rule for rule in rules if not obeys(rule, record)} for record in records]
