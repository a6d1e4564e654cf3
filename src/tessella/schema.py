"""What each column is: its kind, its role, its missing codes and its labels.

The *kind* says which operations make sense (a mean of town codes does not); the *role* says what a
column can do to a respondent. Both can be guessed from names and values, and a guess says why. A
guess is careful: it never calls a column confidential or untouched, and a masker does not release
a column unmasked because of a guess alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from ._notebook import Display, Displayed, Figure, Section
from ._types import Name
from .exceptions import BadOptionError, BadTableError, UnknownColumnError, UnknownOptionError
from .frame import Table
from .guessing.columns import Kind, Role, guess_columns

__all__ = ["Column", "Kind", "Role", "Schema", "Unique"]

Unique = Literal["refused", "kept"]


@dataclass(frozen=True, kw_only=True)
class Column:
    """What is known of one column.

    Parameters
    ----------
    name : hashable
        The column's name in the table.
    kind : {"continuous", "integer", "ordinal", "nominal"}
        Numbers, whole numbers, ordered categories, categories.
    role : {"quasi-identifier", "identifier", "unit", "confidential", "weight", "untouched"}
        A quasi-identifier may be known to an intruder and is masked; an identifier must not be
        released; a unit names the respondent that several records may belong to (a household, a
        firm, a patient): k counts units, and the column is not released; a confidential or
        untouched column is released as it is; a weight weighs the records and is released as it is.
    missing : tuple
        Codes for "missing", such as -9. -9, -9.0, "-9" and "-9.0" are one code and match cells of
        numbers and of text alike; a text such as "refused" matches equal texts only. Nulls and NaN
        are missing without a code; the empty text is not missing.
    labels : mapping
        The meaning of values, such as {1: "employed"}.
    guessed : bool
        Whether the role is a guess that nobody has confirmed.
    unsure : bool
        Whether the guess of kind or missing codes is one that somebody should look at.
    unique : {"refused", "kept"}
        What happens where the column is released as it is and most records have a value of their
        own: there is no release, or this is meant.
    why : str
        The reason for kind and role.
    """

    name: Name
    kind: Kind
    role: Role = "quasi-identifier"
    missing: tuple[Any, ...] = ()
    labels: Mapping[Any, str] = field(default_factory=dict, hash=False)
    guessed: bool = False
    unsure: bool = False
    unique: Unique = "refused"
    why: str = "given"

    def __post_init__(self) -> None:
        for what, offered in (("kind", Kind), ("role", Role), ("unique", Unique)):
            given = getattr(self, what)
            if str(given) == "household":
                raise BadOptionError("role", given, "'unit': its name now")
            if given not in get_args(offered):
                name = f"{what} of column {self.name!r}"
                raise UnknownOptionError(name, given, get_args(offered))
        missing = [self.missing] if np.ndim(self.missing) == 0 else self.missing
        object.__setattr__(self, "missing", tuple(missing))
        object.__setattr__(self, "labels", dict(self.labels))


_PROPERTIES = ("kind", "role", "missing", "labels", "guessed", "unsure", "unique", "why")


@dataclass(frozen=True, init=False, repr=False)
class Schema(Displayed):
    """What is known about every column of a table.

    Parameters
    ----------
    columns : mapping of name to properties, or iterable of Column
        For each column a `Column`, or a mapping with `kind` and, optionally, `role`, `missing` and
        `labels`.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.schema import Schema
    >>> table = pd.DataFrame({"firm_id": [1, 2, 3], "turnover": [1.5, 0.2, 9.1]})
    >>> schema = Schema.guess(table).override(turnover={"role": "confidential"})
    >>> print(schema)
    column    kind        role          why
    firm_id   integer     identifier    named like an identifier: must not be released; drop it
    turnover  continuous  confidential  given
    >>> schema["turnover"].kind
    'continuous'
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    columns: tuple[Column, ...]

    def __init__(self, columns: Mapping[Any, Any] | Iterable[Column]) -> None:
        if isinstance(columns, Mapping):
            columns = [_column(name, known) for name, known in columns.items()]
        object.__setattr__(self, "columns", tuple(columns))

    @classmethod
    def guess(cls, table: Any, *, metadata: Mapping[Any, Any] | None = None) -> Schema:
        """Guess kinds and roles from dtypes, names, labels and values.

        Parameters
        ----------
        table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
            The table to describe.
        metadata : mapping of name to `tessella.io.Variable`, optional
            What a file says of its columns: labels, labels of values, missing codes, level.

        Notes
        -----
        Every column that does not look like an identifier, the number of a unit or a sampling
        weight is a quasi-identifier, which a masker masks: the careful side. Whole numbers of few
        distinct values are categories. `why` has the reason.
        """
        guesses = guess_columns(Table.read(table), metadata)
        return cls([Column(name=name, guessed=True, **vars(g)) for name, g in guesses.items()])

    @classmethod
    def from_keys(
        cls, table: Any, *, keys: Iterable[Name] = (), numeric_keys: Iterable[Name] = (),
        weight: Name | None = None, unit: Name | None = None,
        confidential: Iterable[Name] = (), identifiers: Iterable[Name] = (),
        others: Role | None = None,
    ) -> Schema:  # fmt: skip
        """Build a schema as users of sdcMicro state it: key variables, weight, unit.

        Parameters
        ----------
        table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
            The table to describe.
        keys : names
            Categorical key variables (`keyVars`): quasi-identifiers that are categories.
        numeric_keys : names
            Numerical key variables (`numVars`): quasi-identifiers that are numbers.
        weight : name, optional
            The sampling weight (`weightVar`).
        unit : name, optional
            The number of the household or other unit that k counts (`hhId`).
        confidential : names
            Sensitive variables (`sensibleVar`).
        identifiers : names
            Direct identifiers, to be dropped.
        others : role, optional
            The role of all columns that are not named, such as "untouched"; without it, a column
            that is not named is an error: it would be released without having been thought about.

        Examples
        --------
        >>> import pandas as pd
        >>> from tessella import Schema
        >>> table = pd.DataFrame({"sex": [1, 2, 1], "income": [3.5, 2.5, 9.0], "w": [1.5, 1.2, 2]})
        >>> Schema.from_keys(table, keys=["sex"], numeric_keys=["income"], weight="w")
        column  kind        role              why
        sex     nominal     quasi-identifier  given
        income  continuous  quasi-identifier  given
        w       continuous  weight            given
        """
        known = cls.guess(table)
        changes: dict[Name, dict[str, Any]] = {}

        def assign(names: Iterable[Name], role: str, kind: str | None = None) -> None:
            for name in [names] if isinstance(names, str) else names:
                if name in changes:
                    raise BadTableError(f"Column {name!r} is named twice; give it one role.")
                changes[name] = {"role": role} | ({} if kind is None else {"kind": kind})

        assign(keys, "quasi-identifier", "nominal")
        assign(numeric_keys, "quasi-identifier")
        assign(() if weight is None else [weight], "weight")
        assign(() if unit is None else [unit], "unit")
        assign(confidential, "confidential")
        assign(identifiers, "identifier")
        for name in changes:
            if name not in known._by_name:
                raise UnknownColumnError(name, list(known._by_name), who="A role")
        rest = [column.name for column in known if column.name not in changes]
        if rest and others is None:
            raise BadTableError(
                f"These columns have no role: {', '.join(map(repr, rest[:8]))}. Name them, "
                'or give others="untouched" to release them as they are.'
            )
        assign(rest, str(others))
        ordered = {c.name for c in known if c.kind == "ordinal"}
        for name in ordered & set(changes):
            changes[name].pop("kind", None)  # an order that the table has is kept
        return known.override(changes)

    @classmethod
    def from_dict(cls, known: Mapping[Any, Mapping[str, Any]]) -> Schema:
        """Build a schema from what `to_dict` gave."""
        return cls(known)

    def to_dict(self) -> dict[Any, dict[str, Any]]:
        """Return plain dicts, lists and scalars, leaving out what is empty.

        Labels become pairs of value and label, because a key of TOML or JSON is always text.
        """
        out: dict[Any, dict[str, Any]] = {}
        for column in self.columns:
            known: dict[str, Any] = {"kind": column.kind, "role": column.role}
            if column.missing:
                known["missing"] = list(column.missing)
            if column.labels:
                known["labels"] = [[value, label] for value, label in column.labels.items()]
            for mark in ("guessed", "unsure"):
                if getattr(column, mark):
                    known[mark] = True
            if column.unique != "refused":
                known["unique"] = column.unique
            out[column.name] = known | {"why": column.why}
        return out

    def override(
        self, changes: Mapping[Any, Mapping[str, Any]] | None = None, /, **named: Mapping[str, Any]
    ) -> Schema:
        """Return a schema with other properties for some columns.

        Parameters
        ----------
        changes : mapping of name to mapping, optional
            For names that are not Python words, such as {0: {"kind": "nominal"}}.
        **named : mappings
            The same by keyword: income={"kind": "integer", "role": "confidential"}.
        """
        known = dict(self._by_name)
        for name, change in {**(changes or {}), **named}.items():
            if name not in known:
                raise UnknownColumnError(name, list(known), who="The schema")
            change = _properties(name, change)
            fresh: dict[str, Any] = {"why": "given"} if {"kind", "role"} & set(change) else {}
            fresh |= {"guessed": False} if "role" in change else {}
            fresh |= {"unsure": False} if {"kind", "role", "missing"} & set(change) else {}
            known[name] = replace(known[name], **{**fresh, **change})
        return Schema(known.values())

    def with_unit(self, unit: Name) -> Schema:
        """Return a schema in which a column names the units, and no other does."""
        others: dict[Name, Any] = {name: {"role": "identifier"} for name in self.names("unit")}
        return self.override({**others, unit: {"role": "unit"}})

    def check(self, table: Any) -> None:
        """Refuse a table whose columns are not those of the schema."""
        table = Table.read(table)
        for column in self.columns:
            table.place(column.name, who="The schema")
        if unknown := [repr(name) for name in table.columns if name not in self._by_name]:
            raise BadTableError(
                f"The schema says nothing about these columns: {', '.join(unknown[:8])}. "
                "Add them to the schema, or drop them from the table."
            )

    def names(self, *roles: Role) -> list[Name]:
        """List the columns that have one of these roles."""
        return [column.name for column in self.columns if column.role in roles]

    def __getitem__(self, name: Name) -> Column:
        if name not in self._by_name:
            raise UnknownColumnError(name, list(self._by_name), who="The caller")
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[Name, Column]:
        return {column.name: column for column in self.columns}

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def _rows(self) -> list[tuple[str, ...]]:
        rows = [(str(c.name), c.kind, c.role, c.why) for c in self.columns]
        return [("column", "kind", "role", "why"), *rows]

    def _display(self) -> Display:
        roles = Counter(column.role for column in self.columns)
        return Display(
            title="Schema",
            figures=[Figure(role, f"{count:,}") for role, count in roles.items()],
            sections=[Section(rows=self._rows(), texts=range(4))],
        )

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[part]) for row in rows) for part in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]])
            for row in rows
        )

    __repr__ = __str__


def _properties(name: Name, given: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise BadTableError(
            f"Column {name!r} is described by {given!r}; give a mapping, for example "
            "{'kind': 'integer', 'role': 'confidential'}."
        )
    for key in given:
        if key not in _PROPERTIES:
            raise UnknownOptionError(f"property of column {name!r}", key, _PROPERTIES)
    return dict(given)


def _column(name: Name, known: Any) -> Column:
    if isinstance(known, Column):
        return replace(known, name=name)
    properties = _properties(name, known)
    if "kind" not in properties:
        raise BadTableError(
            f"The schema gives column {name!r} no kind. Give one of: {', '.join(get_args(Kind))}; "
            "or start from Schema.guess(table) and override."
        )
    return Column(name=name, **properties)
