"""What is looked at in a column before its kind and role are guessed: values, name and label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._types import Integers, Name
from ..frame import Facts, Table
from .relations import Codes
from .values import ENOUGH, FEW, Values
from .words import Words


class Described(Protocol):
    """What a file says of a column; `tessella.io.Variable` is one."""

    label: str
    labels: Mapping[Any, str]
    missing: tuple[Any, ...]
    level: Any


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A column with all that is looked at."""

    facts: Facts
    values: Values
    name: Words
    label: Words
    described: Described | None

    @classmethod
    def of(cls, table: Table, name: Name, described: Described | None) -> Evidence:
        """Look at a column; `described` is what a file says of it."""
        facts = table.facts(name)
        missing = () if described is None else described.missing
        return cls(
            facts=facts,
            values=Values.of(table, facts, missing),
            name=Words.of(name),
            label=Words.of("" if described is None else described.label),
            described=described,
        )

    @property
    def in_words(self) -> bool:
        """Whether cells are texts."""
        return self.facts.family in ("text", "category")

    @property
    def complete(self) -> bool:
        """Whether no cell is missing: who has no unit cannot be counted."""
        return self.values.n == self.values.n_rows

    @property
    def repeats(self) -> bool:
        """Whether values repeat as those of units with several records each do."""
        return 1 < self.values.distinct <= self.values.n / 1.05

    @property
    def many(self) -> bool:
        """Whether there are as many values as units have, none with a third of the records."""
        values = self.values
        enough = values.distinct >= max(10, values.n / 100)
        return enough and bool(3 * values.counts.max() <= values.n)

    @property
    def few(self) -> bool:
        """Whether there are so few values that each stands for many records, and names nobody."""
        return self.values.n >= ENOUGH and self.values.distinct <= FEW

    @property
    def comparable(self) -> bool:
        """Whether values can be compared with those of other columns, and some of them agree."""
        values = self.values
        read = values.numbers is not None or bool(values.texts)
        return read and values.distinct > 1 and not values.nearly_unique

    def codes(self, table: Table, rows: Integers) -> Codes:
        """Return the values of some records as whole numbers in their order."""
        name, levels = self.facts.name, self.values.levels
        if levels is None:
            return Codes(table.labels(name)[0][rows], ordered=False)
        numbers = table.raw(name)[0][rows]
        place = np.minimum(np.searchsorted(levels, numbers), len(levels) - 1)
        return Codes(np.where(levels[place] == numbers, place, -1), ordered=True)

    def named(self, question: str) -> str:
        """Return "named" or "labelled" if the name or the label answers a question with yes.

        A label is a sentence, in which any word may occur ("has an ID card"): it counts where the
        values are as many as an identifier's.
        """
        if getattr(self.name, question):
            return "named"
        values = self.values
        many = values.distinct > FEW and 20 * values.distinct > values.n
        return "labelled" if many and getattr(self.label, question) else ""
