"""One rule: read from a line of text, what it says, and what kind of rule it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from .._types import Name
from ..exceptions import Mistake
from .expressions import (
    Compare,
    Flag,
    Literals,
    Lookup,
    Member,
    Node,
    Not,
    Or,
    Text,
    columns_of,
    negated,
    quoted,
    walk,
    write,
)
from .forms import Form, Unfixed, forms_of
from .grammar import Reader
from .scanner import Wrong, cut, is_plain_name

__all__ = ["Parsed", "Rule", "parse_line"]

# Where a rule says several things, its kind is that of the hardest to keep.
_HARDEST = ("general", "multiplicative", "linear", "governing", "interval")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Something that must be true of every record.

    Rules are read from text (`Rules.parse`), not built by hand.

    Attributes
    ----------
    body : Node
        What must be true; in a conditional rule, of the records that meet the condition.
    condition : Node or None
        Which records the rule is about; None for all.
    tolerance : float or None
        How far comparisons of numbers in the body may be off; None for rounding only.
    name, label : str
        A short name, unique in its rules, and what the rule means in words.
    origin, line : str and int, or None
        The file or text it was read from, and the line there.

    Examples
    --------
    >>> from tessella.rules import Rules
    >>> rule = Rules.parse("if status == 'employed': 0 < hours <= 3000  # paid work")[0]
    >>> rule.text
    'if status == "employed": 0 < hours <= 3000'
    >>> rule.kind, rule.columns, rule.label
    ('conditional', ('status', 'hours'), 'paid work')
    >>> rule.forms
    (Interval(column='hours', low=0.0, high=3000.0, open_low=True, open_high=False),)
    """

    body: Node
    condition: Node | None = None
    tolerance: float | None = None
    name: str = ""
    label: str = ""
    origin: str | None = field(default=None, compare=False)
    line: int | None = field(default=None, compare=False)

    @cached_property
    def text(self) -> str:
        """The rule as one line, without name and label."""
        condition = "" if self.condition is None else f"if {write(self.condition)}: "
        tolerance = "" if self.tolerance is None else f" ± {_number_text(self.tolerance)}"
        return f"{condition}{write(self.body)}{tolerance}"

    @cached_property
    def columns(self) -> tuple[Name, ...]:
        """The columns that the rule names, condition first."""
        named = () if self.condition is None else columns_of(self.condition)
        return tuple(dict.fromkeys((*named, *columns_of(self.body))))

    @cached_property
    def truth(self) -> Node:
        """The whole rule as one truth: not the condition, or the body."""
        if self.condition is None:
            return self.body
        return Or((negated(self.condition), self.body))

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """What the body says, as forms that must all hold (`tessella.rules.forms`)."""
        return forms_of(self.body)

    @cached_property
    def condition_forms(self) -> tuple[Form, ...]:
        """What the condition says, as forms; empty without a condition."""
        return () if self.condition is None else forms_of(self.condition)

    @property
    def kind(self) -> str:
        """What kind of rule it is.

        "conditional", or the kind of its forms: "interval", "set", "tuples", "linear",
        "governing", "multiplicative", "yes or no", "missing", "observed", "either", "always",
        "general". Where it says several things: the first of general, multiplicative, linear,
        governing, interval that is among them, else "several".
        """
        if self.condition is not None:
            return "conditional"
        kinds = {form.shape if isinstance(form, Unfixed) else form.kind for form in self.forms}
        if len(kinds) == 1:
            return kinds.pop()
        if kinds <= set(_HARDEST):
            return next(kind for kind in _HARDEST if kind in kinds)
        return "several"

    @property
    def is_affine(self) -> bool:
        """Whether all that it says is linear, so that a mean of records that obey it obeys it."""
        return self.condition is None and all(form.affine for form in self.forms)

    @property
    def is_convex(self) -> bool:
        """Whether the records that obey it are known to form a convex set."""
        return self.condition is None and all(form.convex for form in self.forms)

    @property
    def is_multiplicative(self) -> bool:
        """Whether it says products equal, or stay below, a constant, of every record."""
        return self.kind == "multiplicative" and len({form.kind for form in self.forms}) == 1

    @property
    def is_conditional(self) -> bool:
        """Whether it is about some records only."""
        return self.condition is not None

    @property
    def where(self) -> str:
        """The rule's name and, if known, its place: "balance (line 3 of a.rules)"."""
        if self.line is None:
            return self.name
        return f"{self.name} (line {self.line}{f' of {self.origin}' if self.origin else ''})"

    def named(self, default: str) -> str:
        """Return the full line: name unless it is the default, text, label."""
        name = ""
        if self.name != default:
            name = f"{self.name if is_plain_name(self.name) else quoted(self.name)}: "
        label = f"  # {self.label}" if self.label else ""
        return f"{name}{self.text}{label}"

    def __str__(self) -> str:
        return self.named("")

    def __repr__(self) -> str:
        return f"<Rule {self.named('')}>"


def _number_text(value: float) -> str:
    return str(int(value)) if value.is_integer() and value < 1e15 else repr(value)


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
        (isinstance(node, Compare) and not any(isinstance(o, Text | Flag) for o in node.operands))
        or (isinstance(node, Member) and _of_numbers(node.among))
        for node in walk(body)
    )
    strict = any(
        isinstance(node, Not)
        or (isinstance(node, Compare) and "!=" in node.operators)
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
