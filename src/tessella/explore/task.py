"""What an exploration is about: a table, the columns to mask, the rules to keep."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .._types import Floats, Name
from ..exceptions import BadOptionError, BadTableError
from ..frame import Table
from ..rules import Rules
from ..schema import Schema

__all__ = ["Masked", "Task"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Masked:
    """A protected table, and what made it.

    Attributes
    ----------
    table : the same kind of table as the original
        What would be released.
    masker : object or None
        The fitted masker of the numbers.
    release : Release or None
        What `protect` gave, where the method went through it.
    blocks : list of lists of names
        The columns that were grouped together; empty for methods without groups.
    promised_k : int or None
        The k that the method guarantees within each block; None for methods that promise none.
    """

    table: Any
    masker: Any = None
    release: Any = None
    blocks: list[list[Name]] = field(default_factory=list)
    promised_k: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A table that was read for exploring.

    Attributes
    ----------
    table : the native table
        As it was given.
    numbers, categories : tuples of names
        The columns to mask, by what they hold.
    rules : Rules or None
        What every released record must obey.
    """

    table: Any
    numbers: tuple[Name, ...]
    categories: tuple[Name, ...]
    rules: Rules | None

    @classmethod
    def of(cls, table: Any, *, columns: Any = None, rules: Any = None) -> Task:
        """Read a table, or say why it cannot be explored."""
        source = Table.read(table)
        if source.n_rows < 2:
            raise BadTableError(
                f"The table has {source.n_rows} record, and a risk of being found needs others "
                "to be found among. Give a table of two records or more."
            )
        names = _chosen(source, columns)
        numbers = tuple(name for name in names if source.facts(name).numeric)
        categories = tuple(
            name for name in names if source.facts(name).family in ("text", "category", "boolean")
        )
        if others := [n for n in names if n not in {*numbers, *categories}]:
            listed = ", ".join(f"{name!r} ({source.facts(name).family})" for name in others)
            raise BadTableError(
                f"No method masks these columns: {listed}. Convert them to numbers or texts, or "
                "name the columns to mask in columns=[...]; the others are released as they are."
            )
        given = None if rules is None else Rules.of(rules)
        if given is not None:
            given = given.fix(source)
        return cls(table=table, numbers=numbers, categories=categories, rules=given)

    @property
    def masked(self) -> tuple[Name, ...]:
        """All columns to mask, in the order of the table."""
        chosen = {*self.numbers, *self.categories}
        return tuple(name for name in self.source.columns if name in chosen)

    @cached_property
    def source(self) -> Table:
        """The table as tessella reads it."""
        return Table.read(self.table)

    @cached_property
    def values(self) -> Floats:
        """The columns of numbers, shape (n, d); NaN where missing."""
        read = self.source.numeric(self.numbers)
        out: Floats = np.where(read.missing, np.nan, read.values)
        return out

    @property
    def n(self) -> int:
        """The number of records."""
        return self.source.n_rows

    @cached_property
    def lacks(self) -> bool:
        """Whether a cell of a column to mask is missing."""
        return bool(np.isnan(self.values).any()) or any(
            (self.source.labels(name)[0] < 0).any() for name in self.categories
        )

    @cached_property
    def schema(self) -> Schema:
        """All columns to mask as quasi-identifiers, the others untouched."""
        chosen = set(self.masked)
        return Schema.guess(self.source).override(
            {
                name: {
                    "role": "quasi-identifier" if name in chosen else "untouched",
                    **({"kind": self._kind(name)} if name in chosen else {}),
                }
                for name in self.source.columns
            }
        )

    def _kind(self, name: Name) -> str:
        if name in self.categories:
            return "nominal" if self.source.order(name) is None else "ordinal"
        return "integer" if self.source.facts(name).decimals == 0 else "continuous"

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the table's content, columns to mask and rules: of no use without the table.

        It is as confidential as the store that it is kept in: whoever guesses the whole table
        can confirm the guess.
        """
        digest = hashlib.sha256()
        for name in self.source.columns:
            facts = self.source.facts(name)
            digest.update(repr((str(name), facts.family, facts.decimals)).encode())
            if facts.numeric:
                read = self.source.numeric([name])
                digest.update(np.where(read.missing, 0.0, read.values).tobytes())
                digest.update(read.state.tobytes())
            else:
                place, texts = self.source.labels(name)
                digest.update(np.ascontiguousarray(place).tobytes())
                digest.update("\x00".join(map(str, texts)).encode())
                digest.update(repr(self.source.order(name)).encode())
        rules = () if self.rules is None else tuple(rule.text for rule in self.rules)
        digest.update(repr((self.numbers, self.categories, rules)).encode())
        return digest.hexdigest()


def _chosen(source: Table, columns: Any) -> tuple[Name, ...]:
    if columns is None:
        return tuple(source.columns)
    if isinstance(columns, str) or source.has(columns):
        columns = (columns,)
    if not isinstance(columns, list | tuple):
        raise BadOptionError("columns", columns, "a list of names of columns to mask")
    for name in columns:
        source.place(name, who="columns")
    if not columns or len(set(columns)) < len(columns):
        raise BadOptionError("columns", columns, "at least one column, and each once")
    return tuple(columns)
