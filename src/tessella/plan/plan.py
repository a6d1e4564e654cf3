"""What will be done, and why: a plan explains itself before any value is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .._types import Name
from ..rules import Rules
from .claims import Case

__all__ = ["Block", "Choice", "Plan"]


OPERATORS = {
    "mean": "the mean of the group",
    "geometric mean": "the geometric mean of the group, the mean of logarithms",
    "interpolated median": "the median of the group, of two middle values their mean",
    "median": "the lower median of the group, a value of one of its records",
    "medoid": "the values of the group's middle record, for all these columns together",
    "mode": "the most frequent category of the group",
    "joint mode": "the most frequent combination of categories of the group",
    "project": "the point nearest to the mean of the group that keeps all rules",
}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How the value of a column is found, and what led to it."""

    column: Name
    operator: str
    whole: bool
    because: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Columns that are grouped together, with the rules among them.

    `cases` has, for each rule that can be true in several ways, these ways: records are put
    apart by them. `always` are the claims of all other rules.
    """

    columns: tuple[Name, ...]
    choices: tuple[Choice, ...]
    rules: tuple[str, ...]
    always: Case
    cases: dict[str, list[Case]] = field(default_factory=dict)
    signs: tuple[tuple[Name, float], ...] = ()  # factors whose sign puts records apart

    @classmethod
    def of_numbers(cls, columns: Sequence[Name], operator: str, whole: Sequence[bool]) -> Block:
        """Return a block of numbers without rules."""
        choices = [
            Choice(column=name, operator=operator, whole=own, because="no rule asks for another")
            for name, own in zip(columns, whole)
        ]
        return cls(columns=tuple(columns), choices=tuple(choices), rules=(), always=())

    def choice(self, column: Name) -> Choice:
        """Return what is done with a column."""
        return next(choice for choice in self.choices if choice.column == column)

    def with_operator(self, *operators: str) -> list[Name]:
        """List the columns whose value is found by one of these operators."""
        return [choice.column for choice in self.choices if choice.operator in operators]


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Strata, blocks, and the operator of each column: what `protect` will do.

    Attributes
    ----------
    k : int
        The least number of records that share their released values, in every part.
    blocks : tuple of Block
        Columns that are grouped together.
    strata : tuple of names
        Columns whose values put records apart, and that are released as they are.
    untouched : tuple of names
        All columns that are released as they are.
    rules : Rules
        The rules, fixed on the original table.
    fit, edit, small, on_missing, distance, scale, grouping, options
        As given to `make_plan`.
    """

    k: int
    blocks: tuple[Block, ...]
    strata: tuple[Name, ...]
    untouched: tuple[Name, ...]
    rules: Rules
    fit: str
    edit: str
    small: str
    on_missing: str
    distance: str
    scale: Any
    grouping: Any
    options: dict[str, Any]
    notes: tuple[str, ...] = ()

    def explain(self) -> str:
        """Tell in plain words which rule led to which choice."""
        where = "In each block, every" if len(self.blocks) > 1 else "Every"
        grouping = self.grouping
        named = grouping if isinstance(grouping, str) else type(grouping).__name__
        lines = [
            f"{where} released record stands for at least {self.k}; groups are made by {named}."
        ]
        if self.strata:
            named = ", ".join(map(str, self.strata))
            lines.append(f"Records with different {named} never share a group.")
        for number, block in enumerate(self.blocks, start=1):
            head = f"Block {number}: " if len(self.blocks) > 1 else ""
            lines.append(f"{head}{', '.join(map(str, block.columns))} are grouped together.")
            for name, cases in block.cases.items():
                lines.append(
                    f"  {name} ({self.rules[name].text}) can be true in {len(cases)} ways; records "
                    "are put apart by the way they are in, and each part is masked on its own."
                )
            if block.signs:
                named = ", ".join(dict.fromkeys(str(column) for column, _ in block.signs))
                lines.append(
                    f"  Records are put apart by the signs of {named}: a product is kept by "
                    "geometric means of positive values, and zeros stay zeros."
                )
            alike: dict[str, list[str]] = {}
            for choice in block.choices:
                whole = ", whole" if choice.whole else ""
                line = f"{OPERATORS[choice.operator]}{whole}; {choice.because}."
                alike.setdefault(line, []).append(str(choice.column))
            lines += [f"  {', '.join(columns)}: {line}" for line, columns in alike.items()]
        if self.untouched:
            named = ", ".join(map(str, self.untouched))
            lines.append(f"Released as they are: {named}.")
        lines += self.notes
        return "\n".join(lines)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the values of the original table that rules look up behind when saved."""
        return self.__dict__ | {"rules": self.rules.unfixed()}

    def __str__(self) -> str:
        return self.explain()
