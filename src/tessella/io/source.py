"""What is read and written: formats, what a file says of its columns, and the table itself.

Notes, comments, authors and dates of a file are left behind on purpose: they speak of the
original, and nobody looks at them before a release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

from .._lazy import optional
from ..exceptions import BadFileError, UnknownColumnError, UnknownOptionError
from ..schema import Schema


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of files.

    `endings` are those of file names. `reader` and `writer` are functions of this folder, as
    "module.function", loaded when they are needed; a format without writer is only read. `options`
    are those of `read_file` that mean something for it; `labels` says whether it holds metadata.
    `pieces` is the function that opens a file to read it in pieces, where that is possible.
    """

    name: str
    endings: tuple[str, ...]
    reader: str
    writer: str = ""
    options: tuple[str, ...] = ()
    labels: bool = True
    pieces: str = ""

    @property
    def written(self) -> bool:
        """Whether tessella writes it too."""
        return bool(self.writer)

    def load(self, function: str) -> Any:
        """Load its reader or writer."""
        module, name = function.split(".")
        return getattr(import_module(f".{module}", __package__), name)


_LIST = (
    Format(
        name="csv", endings=(".csv", ".tsv", ".tab", ".txt"), labels=False,
        reader="csv_reading.read_csv", writer="csv_writing.write_csv",
        pieces="csv_reading.open_csv",
        options=("delimiter", "quote", "encoding", "decimal", "thousands", "missing", "header",
                 "names", "skip", "types", "dates"),
    ),
    Format(
        name="parquet", endings=(".parquet", ".pq"),
        reader="arrow.read_parquet", writer="arrow.write_parquet",
        pieces="arrow_pieces.open_parquet",
    ),
    Format(
        name="feather", endings=(".feather", ".arrow", ".ipc"),
        reader="arrow.read_feather", writer="arrow.write_feather",
        pieces="arrow_pieces.open_feather",
    ),
    Format(
        name="excel", endings=(".xlsx", ".xlsm"), labels=False,
        reader="excel_reading.read_excel", writer="excel_writing.write_excel",
        options=("sheet", "missing", "types"),
    ),
    Format(
        name="spss", endings=(".sav", ".zsav"), options=("encoding",),
        reader="statistical.read_spss", writer="statistical.write_spss",
    ),
    Format(name="spss-portable", endings=(".por",), reader="statistical.read_portable"),
    Format(
        name="stata", endings=(".dta",), options=("encoding",),
        reader="statistical.read_stata", writer="statistical.write_stata",
    ),
    Format(
        name="sas", endings=(".sas7bdat",), options=("encoding", "catalog"),
        reader="statistical.read_sas",
    ),
    Format(
        name="sas-transport", endings=(".xpt", ".xport"), options=("encoding",),
        reader="statistical.read_transport", writer="statistical.write_transport",
    ),
)  # fmt: skip
FORMATS = {form.name: form for form in _LIST}
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}


def compression_of(path: Path) -> str | None:
    """Return "gzip" or "zstd" if the name ends so."""
    return COMPRESSED.get(path.suffix.lower())


def find_format(path: Path, given: str | None, *, write: bool = False) -> Format:
    """Return the format that was given, or the one that the name of the file means.

    What is read may also be a folder: of Parquet files.
    """
    offered = [name for name, form in FORMATS.items() if form.written or not write]
    if given is not None and given not in offered:
        raise UnknownOptionError("format", given, offered)
    if not write and path.is_dir():
        if given not in (None, "parquet"):
            raise BadFileError(path, "this is a folder", "A folder can hold a table in Parquet")
        return FORMATS["parquet"]
    packed = compression_of(path)
    ending = Path(path.stem if packed else path.name).suffix.lower()
    form = FORMATS[given] if given else _by_ending(path, ending, write)
    if packed and form.name != "csv":
        advice = "Only CSV is compressed as a whole; the other formats compress inside"
        raise BadFileError(path, f"{packed} around {form.name} is not supported", advice)
    if write and not form.written:
        advice = f"Write one of: {', '.join(offered)}"
        raise BadFileError(path, f"{form.name} can be read, not written", advice)
    return form


def _by_ending(path: Path, ending: str, write: bool) -> Format:
    for form in _LIST:
        if ending in form.endings:
            return form
    if ending == ".xls":
        raise BadFileError(path, "this is the Excel of before 2007", "Save it as .xlsx first")
    known = " ".join(end for form in _LIST for end in form.endings)
    advice = f"Use one of these endings: {known}"
    if not write:  # the name of what is written decides
        advice = f"Give format=, one of {', '.join(FORMATS)}; or u{advice[1:]}"
    unknown = f"no format is known by the ending {ending!r}"
    raise BadFileError(path, unknown if ending else "its name has no ending", advice)


Level = Literal["nominal", "ordinal", "scale"]


@dataclass(frozen=True)
class Span:
    """All numbers from `low` to `high`, both included: a range of codes for "missing"."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class Variable:
    """What a file says of one column.

    Parameters
    ----------
    label : str
        What the column is about, in words.
    labels : mapping
        What values mean, such as {1: "employed"}.
    missing : tuple
        Values, and `Span`s of values, that stand for "missing" and are present in the data; in
        Stata and SAS the letters "a" to "z" of special missing values.
    level : {"nominal", "ordinal", "scale"} or None
        The measurement level.
    format : str
        The display format, in the words of the file's format, such as "F8.2".
    """

    label: str = ""
    labels: Mapping[Any, str] = field(default_factory=dict, hash=False)
    missing: tuple[Any, ...] = ()
    level: Level | None = None
    format: str = ""

    def __post_init__(self) -> None:
        if self.level is not None and self.level not in get_args(Level):
            raise UnknownOptionError("measurement level", self.level, get_args(Level))
        object.__setattr__(self, "labels", dict(self.labels))
        object.__setattr__(self, "missing", tuple(self.missing))

    def __bool__(self) -> bool:
        return bool(self.label or self.labels or self.missing or self.level or self.format)


@dataclass(frozen=True)
class Metadata:
    """What a file says of its columns.

    Parameters
    ----------
    variables : mapping of name to Variable

    Examples
    --------
    >>> from tessella.io import Metadata, Variable
    >>> known = Metadata({"work": Variable(label="Employment", labels={1: "yes", 2: "no"})})
    >>> known["work"].labels[2], known["age"].label
    ('no', '')
    >>> known.only({"work": [1, 1]})["work"].labels
    {1: 'yes'}
    >>> Metadata.from_dict(known.to_dict()) == known
    True
    """

    variables: Mapping[str, Variable] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        described = {str(name): variable for name, variable in self.variables.items() if variable}
        object.__setattr__(self, "variables", described)

    def __getitem__(self, name: str) -> Variable:
        return self.variables.get(name, Variable())

    def __bool__(self) -> bool:
        return bool(self.variables)

    def only(
        self, values: Mapping[str, Iterable[Any] | None], *, keep_labels: bool = False
    ) -> Metadata:
        """Keep what speaks of a released table: its columns, and the values that occur in them.

        Parameters
        ----------
        values : mapping of name to values
            The columns of the table and the values that occur in each; None keeps all labels of a
            column.
        keep_labels : bool
            Whether labels stay of values that do not occur. They tell that the values existed.
        """
        kept = {}
        for name, occurring in values.items():
            variable = self[name]
            if not keep_labels and occurring is not None and variable.labels:
                seen = set(occurring)
                labels = {value: text for value, text in variable.labels.items() if value in seen}
                variable = replace(variable, labels=labels)
            kept[name] = variable
        return Metadata(kept)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return plain dicts, lists and scalars, leaving out what is empty."""
        described = {}
        for name, variable in self.variables.items():
            labels = [[value, label] for value, label in variable.labels.items()]
            codes = [dict(vars(c)) if isinstance(c, Span) else c for c in variable.missing]
            facts = vars(variable) | {"labels": labels, "missing": codes}
            described[name] = {fact: value for fact, value in facts.items() if value}
        return described

    @classmethod
    def from_dict(cls, described: Mapping[str, Mapping[str, Any]]) -> Metadata:
        """Build metadata from what `to_dict` gave."""
        variables = {}
        for name, facts in described.items():
            plain = {fact: facts[fact] for fact in ("label", "level", "format") if fact in facts}
            codes = [
                Span(c["low"], c["high"]) if isinstance(c, Mapping) else c
                for c in facts.get("missing", [])
            ]
            labels = dict(facts.get("labels", []))
            variables[name] = Variable(labels=labels, missing=tuple(codes), **plain)
        return cls(variables)


def check_columns(names: Iterable[str], present: Sequence[str], who: str = "columns") -> None:
    """Raise an error for the first of some names that no column has."""
    for name in names:
        if name not in present:
            raise UnknownColumnError(name, present, who=who)


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

    @classmethod
    def of(cls, format: str, statements: Iterable[Statement], **options: Any) -> ReadingReport:
        """Put together what a reader found; options that were not given (None) are left out."""
        given = {name: value for name, value in options.items() if value is not None}
        if "columns" in given:
            given["columns"] = list(given["columns"])
        return cls(tuple(statements), {"format": format, **given})

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

    @classmethod
    def read(
        cls, path: Path, format: str, table: Any, statements: Iterable[Statement], *,
        metadata: Metadata | None = None, tags: Mapping[str, Any] | None = None, **options: Any,
    ) -> Source:  # fmt: skip
        """Put together what a reader found; options that were not given (None) are left out."""
        how = ReadingReport.of(format, statements, **options)
        return cls(
            table=table, metadata=metadata or Metadata(), how=how, format=format, path=path,
            tags=tags or {},
        )  # fmt: skip

    @property
    def n_rows(self) -> int:
        """The number of records."""
        return int(self.table.num_rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.table.column_names)

    def schema(self) -> Schema:
        """Guess a schema from the values, and from what the file says of its columns.

        A level of the file decides the kind; without one, a column whose values all have labels is
        nominal. A span of missing codes becomes those of its values that occur.
        """
        described = {
            name: replace(variable, missing=_codes(variable, self._occurring(name, variable)))
            for name, variable in self.metadata.variables.items()
            if name in self.columns
        }
        return Schema.guess(self.table, metadata=described)

    def _occurring(self, name: str, variable: Variable) -> list[Any]:
        if not variable.missing:
            return []
        values: list[Any] = self.table.column(name).unique().drop_null().to_pylist()
        return values

    def to_pandas(self) -> Any:
        """Return a pandas frame with dtypes that hold missing values, so that integers stay so."""
        import pandas as pd
        import pyarrow as pa

        kept: dict[Any, Any] = {
            pa.bool_(): pd.BooleanDtype(), pa.date32(): pd.ArrowDtype(pa.date32()),
            pa.float32(): pd.Float32Dtype(), pa.float64(): pd.Float64Dtype(),
        }  # fmt: skip
        for width in (8, 16, 32, 64):
            kept[getattr(pa, f"int{width}")()] = getattr(pd, f"Int{width}Dtype")()
            kept[getattr(pa, f"uint{width}")()] = getattr(pd, f"UInt{width}Dtype")()
        return self.table.to_pandas(types_mapper=kept.get)

    def to_polars(self) -> Any:
        """Return a polars frame."""
        polars = optional("polars", extra="polars", purpose="frames of polars")
        return polars.from_arrow(self.table)

    def __repr__(self) -> str:
        size = f"{self.n_rows:,} records, {len(self.columns)} columns"
        return f"Source({str(self.path)!r}, {self.format}, {size})"


def _codes(variable: Variable, occurring: list[Any]) -> tuple[Any, ...]:
    """List the missing codes of a variable that may stand in the table, spans written out."""
    codes: list[Any] = []
    for code in variable.missing:
        if isinstance(code, Span):
            codes += sorted(value for value in occurring if value in code and value not in codes)
        elif not (isinstance(code, str) and any(isinstance(v, int | float) for v in occurring)):
            codes.append(code)  # letters of Stata and SAS are null in the table
    return tuple(dict.fromkeys(codes))
