"""What a plan file can state, one class for each of its tables; and how it is written as TOML."""

from __future__ import annotations

import inspect
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    field_validator,
    model_validator,
)

from .._output import toml_key, toml_value
from .._wording import listed
from ..exceptions import TessellaError, UnsureKindWarning
from ..frame import Table
from ..io import Source, read_file
from ..release import Step, Study
from ..release.roles import as_numbers
from ..rules import Rules
from ..schema import Kind, Role, Schema, Unique
from .hints import reword

# Options of reading by what their values are.
TEXTS = ("format", "delimiter", "quote", "encoding", "decimal", "thousands", "sheet", "catalog")
TABLES = ("types", "dates", "codes")
WIDTH = 98  # of a line of TOML

# A line of a plan within a comment: it is pasted, so that no line ends in it.
_SNIPPET = re.compile(r'\b\w+ = (?:\{[^{}]*\}|\[[^][]*\]|"[^"]*"|\S+)(?: in \[input\])?')
COMMAND = re.compile(r"\s+tessella ")
_HELD = "\x00"  # for a space at which no line is broken

KeyPath = tuple[str | int, ...]
Lines = dict[KeyPath, int]  # of keys and headers, from 1 on

_HEADER = re.compile(r"^\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""^\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)
                      (?:\s*\.\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*=\s*(.*)$""",
    re.X,
)
_PIECE = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*\.?""")


class Section(BaseModel):
    """A table of a plan file: nothing in it is ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Input(Section):
    """Which file is read, and how: the options of `tessella.io.read_file`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    file: str

    @model_validator(mode="after")
    def _known_options(self) -> Input:
        parameters = inspect.signature(read_file).parameters
        known = [name for name in parameters if name not in ("path", "metadata")]
        for name, value in (self.model_extra or {}).items():
            if name not in known:
                raise ValueError(f"{name!r} is no option of reading; there are {', '.join(known)}")
            if name in TEXTS and not isinstance(value, str):
                raise ValueError(f"{name!r} must be text in quotes")
            if name in TABLES and not isinstance(value, Mapping):
                raise ValueError(f"{name!r} must be a table, such as {{ age = ... }}")
            if (name == "skip" and type(value) is not int) or (
                name == "header" and not isinstance(value, bool)
            ):
                wanted = {"skip": "a whole number", "header": "true or false"}
                raise ValueError(f"{name!r} must be {wanted[name]}")
        return self

    @property
    def options(self) -> dict[str, Any]:
        """The options of reading."""
        return dict(self.model_extra or {})


class RulesPart(Section):
    """The edit rules: in a file, or line by line."""

    file: str | None = None
    lines: list[str] = Field(default_factory=list)
    tolerance: float = Field(default=1e-9, ge=0, lt=1)

    @field_validator("lines")
    @classmethod
    def _can_be_read(cls, lines: list[str]) -> list[str]:
        try:
            Rules(lines)
        except TessellaError as error:
            raise ValueError(str(error)) from None
        return lines

    @model_validator(mode="after")
    def _one_of_both(self) -> RulesPart:
        if self.file and self.lines:
            raise ValueError("give a file or lines, not both")
        return self


class Columns(Section):
    """What is known of one column; see `tessella.schema.Column`."""

    kind: Kind
    role: Role = "quasi-identifier"
    missing: list[Any] = Field(default_factory=list)
    labels: list[tuple[Any, str]] = Field(default_factory=list)
    unsure: StrictBool = False
    unique: Unique = "refused"

    def known(self) -> dict[str, Any]:
        """Return it as `Schema` takes it."""
        known = {"kind": self.kind, "role": self.role, "missing": tuple(self.missing)}
        return known | {"labels": dict(self.labels), "unsure": self.unsure, "unique": self.unique}


class Measures(Section):
    """What is measured of the release."""

    loss: StrictBool = True
    risk: Literal["none", "quick", "standard", "thorough"] = "quick"
    known: list[str] | None = None
    time_limit: float | None = Field(default=None, gt=0)


class Output(Section):
    """Where the release and what goes with it are written."""

    file: str
    external_report: str | None = None
    internal_report: str | None = None
    manifest: str | None = None
    summary: str | None = None
    order: Literal["shuffled", "kept"] = "shuffled"
    units: Literal["left out", "renumbered"] = "left out"
    keep_labels: StrictBool = False

    @model_validator(mode="after")
    def _no_file_twice(self) -> Output:
        files = [str(Path(name)) for name in self.files.values()]
        if len(set(files)) < len(files):
            raise ValueError("two outputs have the same name")
        return self

    @property
    def files(self) -> dict[str, str]:
        """The outputs that are asked for, by what they are."""
        named = {
            "release": self.file, "internal report": self.internal_report,
            "summary": self.summary, "external report": self.external_report,
            "manifest": self.manifest,
        }  # fmt: skip
        return {what: name for what, name in named.items() if name}


class PlanFile(Section):
    """A whole plan: from the file that is read to the files that are written.

    Attributes
    ----------
    version : int
        The version of the format of plan files.
    seed : int or None
        Makes the release repeatable. It is as confidential as the original.
    input, rules, columns, steps, measures, output
        See the parts.
    folder : Path
        What file names are relative to: the plan's own folder.
    """

    version: Literal[1] = 1
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    input: Input
    rules: RulesPart = Field(default_factory=RulesPart)
    columns: dict[str, Columns] = Field(default_factory=dict)
    steps: list[Step] = Field(min_length=1)
    measures: Measures = Field(default_factory=Measures)
    output: Output
    folder: Path = Field(default=Path(), exclude=True)

    def path(self, name: str) -> Path:
        """Return where a file of the plan is."""
        return self.folder / name

    @property
    def inputs(self) -> dict[str, Path]:
        """The files that the plan reads, by what they are."""
        named: dict[str, str | None] = {
            "the original": self.input.file, "the file of rules": self.rules.file,
            "the file of catalog": self.input.options.get("catalog"),
        }  # fmt: skip
        for step in self.steps:
            for name in files_of_hierarchies(step.options):
                named[f"the hierarchy {name}"] = name
        return {what: self.path(name) for what, name in named.items() if name}

    @property
    def outputs(self) -> dict[str, Path]:
        """The files that the plan writes, by what they are."""
        return {f"the {what}": self.path(name) for what, name in self.output.files.items()}

    def to_toml(self, *, notes: Mapping[str, Sequence[str]] | None = None) -> str:
        """Write the plan as TOML; ``parse_plan(plan.to_toml())`` is the same plan.

        Parameters
        ----------
        notes : mapping of str to sequence of str, optional
            Comments: for "" (the head), "input", "rules", "columns", "columns.NAME", "steps.0",
            "measures" and "output".
        """
        return "\n".join(_lines(self, notes or {})).rstrip() + "\n"

    def read(self) -> Source:
        """Read the input."""
        try:
            return read_file(self.path(self.input.file), **self.input.options)
        except TessellaError as error:
            reword(error)
            raise

    def read_rules(self) -> Rules:
        """Read the rules."""
        if self.rules.file:
            return Rules.read(self.path(self.rules.file))
        return Rules(self.rules.lines)

    def schema_of(self, source: Source) -> Schema:
        """Return what the plan says of the columns, or what the file lets guess."""
        if not self.columns:  # as `protect` guesses: what a rule computes with is a number
            return as_numbers(source.schema(), self.read_rules(), Table.read(source.table))
        known = Schema({name: part.known() for name, part in self.columns.items()})
        known.check(source.table)
        return Schema([known[name] for name in source.columns])

    def study(self, source: Source) -> Study:
        """Return a study of the input, no step taken yet."""
        known = self.schema_of(source)
        if unsure := [column.name for column in known if column.unsure]:
            there = "" if self.columns else f" (tessella schema {self.input.file} --toml prints it)"
            warnings.warn(UnsureKindWarning(
                f"The plan is unsure about {listed(list(map(repr, unsure)))}. Look at kind, role "
                f"and missing of each in [columns]{there}, then delete the lines unsure = true."
            ), stacklevel=2)  # fmt: skip
            known = known.override({name: {"unsure": False} for name in unsure})
        return Study(
            source.table, schema=known, rules=self.read_rules(),
            tolerance=self.rules.tolerance, random_state=self.seed, folder=self.folder,
        )  # fmt: skip


def files_of_hierarchies(options: Mapping[str, Any]) -> list[str]:
    """Return the names of files that the hierarchies of a step are read from."""
    forms = options.get("hierarchies")
    own = forms.values() if isinstance(forms, Mapping) else ()
    return [str(one["file"]) for one in own if isinstance(one, Mapping) and one.get("file")]


def _lines(plan: PlanFile, notes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield from _comment(notes.get("", ()))
    yield f"version = {plan.version}"
    if plan.seed is not None:
        yield f"seed = {plan.seed}"
    yield from _table("input", {"file": plan.input.file, **plan.input.options}, notes)
    rules = plan.rules.model_dump(exclude_defaults=True)
    if rules or "rules" in notes:
        lines = rules.pop("lines", None)
        yield from _table("rules", rules, notes)
        if lines is not None:
            yield "lines = ["
            yield from (f"    {toml_value(line)}," for line in lines)
            yield "]"
    if plan.columns:
        yield ""
        yield from _comment(notes.get("columns", ()))
    for name, column in plan.columns.items():
        known = column.model_dump(exclude_defaults=True) | {"role": column.role}
        yield f"[columns.{toml_key(name)}]"
        yield from _comment(notes.get(f"columns.{name}", ()))
        yield from _pairs({"kind": known.pop("kind"), "role": known.pop("role"), **known})
    for at, step in enumerate(plan.steps):
        yield ""
        yield from _comment(notes.get(f"steps.{at}", ()))
        yield "[[steps]]"
        yield from _pairs(step.to_dict())
    yield from _table("measures", plan.measures.model_dump(exclude_none=True), notes)
    yield from _table("output", plan.output.model_dump(exclude_none=True), notes)


def _table(
    name: str, values: Mapping[str, Any], notes: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    yield ""
    yield from _comment(notes.get(name, ()))
    yield f"[{name}]"
    yield from _pairs(values)


def _pairs(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if value is None:
            continue
        line = f"{toml_key(name)} = {toml_value(value)}"
        if len(line) <= WIDTH or not isinstance(value, list | tuple):
            yield line
            continue
        yield f"{toml_key(name)} = ["
        if any('"' in toml_value(v) and " " in str(v) for v in value):  # texts must not be cut
            yield from (f"    {toml_value(v)}," for v in value)
        else:
            yield from textwrap.wrap(
                ", ".join(map(toml_value, value)) + ",", WIDTH, initial_indent="    ",
                subsequent_indent="    ", break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
        yield "]"


def _comment(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        line = _SNIPPET.sub(lambda found: found[0].replace(" ", _HELD), line)
        clean = "".join(sign if sign.isprintable() or sign == _HELD else " " for sign in line)
        if COMMAND.match(clean):  # it is pasted: one line, however long its names are
            yield f"# {clean}"
            continue
        indent = " " * (len(clean) - len(clean.lstrip()))
        wrapped = textwrap.wrap(
            clean, WIDTH, initial_indent="# ", subsequent_indent=f"# {indent}  "
        )
        yield from (piece.replace(_HELD, " ") for piece in wrapped or ["#"])


def lines_of_keys(text: str) -> Lines:
    r"""Return the line, from 1 on, of every key and every header of a valid TOML text."""
    found: Lines = {}
    counts: Lines = {}
    here: KeyPath = ()
    closing, depth = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if closing:  # inside of a text of several lines
            closing = "" if closing in line else closing
            continue
        if depth > 0:  # inside of an array of several lines
            depth += _depth(line)
            continue
        if header := _HEADER.match(line):
            here = _pieces(header[2], counts)
            if header[1] == "[[":
                at = counts.get(here, 0)
                counts[here] = at + 1
                here, array = (*here, at), here
                found[here] = number
                found.setdefault(array, number)
            else:
                found.setdefault(here, number)
        elif key := _KEY.match(line):
            found.setdefault((*here, *_names(key[1])), number)
            value = key[2]
            for quotes in ('"""', "'''"):
                if value.startswith(quotes) and quotes not in value[3:]:
                    closing = quotes
            depth = max(_depth(value), 0) if not closing else 0
    return found


def find_line(lines: Lines, path: Sequence[str | int]) -> int | None:
    """Return the line of a key, or that of the nearest table around it."""
    at = tuple(path)
    while at:
        if at in lines:
            return lines[at]
        at = at[:-1]
    return None


def _names(text: str) -> KeyPath:
    return tuple(double or single or bare for double, single, bare in _PIECE.findall(text))


def _pieces(text: str, counts: Lines) -> KeyPath:
    """Return the path of a header; inside of an array of tables, the last one is meant."""
    path: KeyPath = ()
    names = _names(text)
    for at, name in enumerate(names):
        path = (*path, name)
        if path in counts and at < len(names) - 1:
            path = (*path, counts[path] - 1)
    return path


def _depth(text: str) -> int:
    bare = re.sub(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*', "", text)
    return sum(bare.count(sign) for sign in "[{") - sum(bare.count(sign) for sign in "]}")
