"""From a line of text to a rule's trees, or to what is wrong with the line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..exceptions import Mistake
from .expressions import Comparison, Flag, Literals, Lookup, Member, Node, Not, Text, walk
from .grammar import Reader
from .scanner import Wrong, cut

__all__ = ["Parsed", "parse_line"]


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What a line says."""

    name: str | None
    condition: Node | None
    body: Node
    tolerance: float | None
    label: str


def parse_line(line: str, *, where: str, folder: Path | None = None) -> Parsed | list[Mistake]:
    """Read one line: a rule, nothing (an empty list), or what is wrong with it."""
    mistakes: list[Mistake] = []

    def attempt(read: Callable[[], Any]) -> Any:
        try:
            return read()
        except Wrong as wrong:
            mistakes.append(
                Mistake(
                    where=where,
                    message=wrong.message,
                    hint=wrong.hint,
                    text=line,
                    start=wrong.start,
                    width=wrong.end - wrong.start,
                )
            )

    parts = attempt(lambda: cut(line))
    if parts is None or parts.body is None:
        return mistakes
    condition = None
    if parts.condition is not None:
        condition = attempt(lambda: Reader(parts.condition, folder).read())
    body = attempt(lambda: Reader(parts.body, folder).read())
    if not mistakes and parts.tolerance is not None:
        attempt(lambda: _check_tolerance(body, *parts.tolerance_at))
    if mistakes:
        return mistakes
    return Parsed(
        name=parts.name,
        condition=condition,
        body=body,
        tolerance=parts.tolerance,
        label=parts.label,
    )


def _check_tolerance(body: Node, start: int, end: int) -> None:
    loosened = any(
        (
            isinstance(node, Comparison)
            and not any(isinstance(o, Text | Flag) for o in node.operands)
        )
        or (isinstance(node, Member) and _of_numbers(node.among))
        for node in walk(body)
    )
    strict = any(
        isinstance(node, Not)
        or (isinstance(node, Comparison) and "!=" in node.operators)
        or (isinstance(node, Member) and not node.inside)
        for node in walk(body)
    )
    if strict or not loosened:
        raise Wrong(
            start,
            end,
            "A tolerance loosens comparisons of numbers; "
            + ("`not` and != have no looser form." if strict else "this rule has none."),
            "Take the tolerance away, or write the rule with ==, <= or >=.",
        )


def _of_numbers(among: Literals | Lookup) -> bool:
    return all(len(row) == 1 and not isinstance(row[0], str) for row in among.rows)
