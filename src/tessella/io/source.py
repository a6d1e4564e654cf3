"""A table that was read from a file, with all that the file says, and an account of the reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..schema import Kind, Schema
from .metadata import Metadata, Span, Variable

__all__ = ["ReadingReport", "Source", "Statement"]


@dataclass(frozen=True)
class Statement:
    """One thing that was found in a file, or decided about it, and why."""

    about: str
    found: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.about}: {self.found}" + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True)
class ReadingReport:
    """How a file was read: every decision that somebody else might have made otherwise.

    Parameters
    ----------
    statements : tuple of Statement
        What was found, in the order in which it was looked for.
    options : mapping
        Options of `read_file` that give the same reading again, without looking.
    """

    statements: tuple[Statement, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return "\n".join(map(str, self.statements))

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return what a plan file records: options, and statements as lines of text."""
        return {"options": dict(self.options), "statements": [str(s) for s in self.statements]}


@dataclass(frozen=True, kw_only=True, repr=False)
class Source:
    """A table read from a file.

    Attributes
    ----------
    table : pyarrow.Table
        The values. Integers with missing cells are integers, dates are dates, codes such as
        "00123" are text.
    metadata : Metadata
        Labels, levels, missing codes and formats.
    how : ReadingReport
        How the file was read; it prints.
    format : str
        The format, such as "csv".
    path : Path
        The file.
    tags : mapping of name to pyarrow.Array
        For Stata and SAS: which letter ("a" to "z") a missing cell carries, null where none.
    """

    table: Any
    metadata: Metadata
    how: ReadingReport
    format: str
    path: Path
    tags: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """The number of records."""
        return int(self.table.num_rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.table.column_names)

    def schema(self) -> Schema:
        """Guess a schema from the values, and put in what the file says of its columns.

        A level of the file decides the kind; without one, a column whose values all have labels is
        nominal. A span of missing codes becomes those of its values that occur.
        """
        guess = Schema.guess(self.table)
        changes: dict[str, dict[str, Any]] = {}
        for name, variable in self.metadata.variables.items():
            if name not in self.columns:
                continue
            occurring = self._occurring(name) if variable.labels or variable.missing else []
            codes = _codes(variable, occurring)
            change: dict[str, Any] = {"labels": variable.labels, "missing": codes}
            kind, why = _kind(variable, [v for v in occurring if v not in codes])
            if kind:
                careful = guess[name].why.partition(": ")[2].partition(";")[0]
                change |= {"kind": kind, "why": f"{why}: {careful}" if careful else why}
            changes[name] = change
        return guess.override(changes)

    def to_pandas(self) -> Any:
        """Return a pandas frame with dtypes that hold missing values, so that integers stay so."""
        import pandas as pd
        import pyarrow as pa

        kept: dict[Any, Any] = {
            pa.bool_(): pd.BooleanDtype(),
            pa.float32(): pd.Float32Dtype(),
            pa.float64(): pd.Float64Dtype(),
            pa.date32(): pd.ArrowDtype(pa.date32()),
        }
        for width in (8, 16, 32, 64):
            kept[getattr(pa, f"int{width}")()] = getattr(pd, f"Int{width}Dtype")()
            kept[getattr(pa, f"uint{width}")()] = getattr(pd, f"UInt{width}Dtype")()
        return self.table.to_pandas(types_mapper=kept.get)

    def to_polars(self) -> Any:
        """Return a polars frame."""
        from .._lazy import optional

        polars = optional("polars", extra="polars", purpose="frames of polars")
        return polars.from_arrow(self.table)

    def _occurring(self, name: str) -> list[Any]:
        return [
            value for value in self.table.column(name).unique().to_pylist() if value is not None
        ]

    def __repr__(self) -> str:
        return (
            f"Source({str(self.path)!r}, {self.format}, {self.n_rows:,} records, "
            f"{len(self.columns)} columns)"
        )


def _codes(variable: Variable, occurring: list[Any]) -> tuple[Any, ...]:
    """List the missing codes of a variable that may stand in the table, spans written out."""
    codes: list[Any] = []
    for code in variable.missing:
        if isinstance(code, Span):
            codes += sorted(value for value in occurring if value in code and value not in codes)
        elif not (isinstance(code, str) and any(isinstance(v, int | float) for v in occurring)):
            codes.append(code)  # letters of Stata and SAS are null in the table
    return tuple(dict.fromkeys(codes))


def _kind(variable: Variable, values: list[Any]) -> tuple[Kind | None, str]:
    if variable.level in ("nominal", "ordinal"):
        return variable.level, f"{variable.level} in the file"
    if variable.level is None and values and all(v in variable.labels for v in values):
        return "nominal", "every value has a label"
    return None, ""
