"""What an exploration is about: a table, the columns to mask, the rules to keep."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._types import Floats, Name
from ..exceptions import BadOptionError, BadTableError
from ..frame import Table, View
from ..rules import Rules
from ..schema import Schema

__all__ = ["Task"]


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
    given : Schema or None
        What its holder knows of the columns.
    """

    table: Any
    numbers: tuple[Name, ...]
    categories: tuple[Name, ...]
    rules: Rules | None
    given: Schema | None = None

    @classmethod
    def of(
        cls, table: Any, *, columns: Any = None, rules: Any = None, schema: Schema | None = None
    ) -> Task:
        """Read a table, or raise an error that says why it cannot be explored."""
        source = Table.read(table)
        if source.n_rows < 2:
            raise BadTableError(
                f"The table has {source.n_rows} record, and a risk of being found needs others "
                "to be found among. Give a table of two records or more."
            )
        if schema is not None:
            schema.check(source)
            if columns is None:
                columns = list(schema.names("quasi-identifier"))
        names = _chosen(source, columns)
        coded = {c.name for c in schema or () if c.kind in ("nominal", "ordinal")}
        numbers = tuple(name for name in names if source.facts(name).numeric and name not in coded)
        categories = tuple(
            name
            for name in names
            if name in coded or source.facts(name).family in ("text", "category", "boolean")
        )
        if others := [n for n in names if n not in {*numbers, *categories}]:
            listed = ", ".join(f"{name!r} ({source.facts(name).family})" for name in others)
            raise BadTableError(
                f"No method masks these columns: {listed}. Convert them to numbers or texts, or "
                "name the columns to mask in columns=[...]; the others are released as they are."
            )
        given = None if rules is None else Rules.of(rules)
        if given is not None:
            given = given.fix(source, schema=schema)
        return cls(table=table, numbers=numbers, categories=categories, rules=given, given=schema)

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
        return View(self.source, self.given).matrix(self.numbers)

    @property
    def n(self) -> int:
        """The number of records."""
        return self.source.n_rows

    @cached_property
    def schema(self) -> Schema:
        """All columns to mask as quasi-identifiers, the others untouched."""
        chosen = set(self.masked)
        known = Schema.guess(self.source) if self.given is None else self.given
        roles = {
            name: {"role": "quasi-identifier" if name in chosen else "untouched"}
            for name in self.source.columns
        }
        if self.given is None:
            for name in chosen:
                roles[name]["kind"] = self._kind(name)
        return known.override(roles)

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
                read = View(self.source).read([name])
                digest.update(np.where(read.missing, 0.0, read.values).tobytes())
                digest.update(read.state.tobytes())
            else:
                place, texts = self.source.labels(name)
                digest.update(np.ascontiguousarray(place).tobytes())
                digest.update("\x00".join(map(str, texts)).encode())
                digest.update(repr(self.source.order(name)).encode())
        rules = () if self.rules is None else tuple(rule.text for rule in self.rules)
        known = None if self.given is None else self.given.to_dict()
        digest.update(repr((self.numbers, self.categories, rules, known)).encode())
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
