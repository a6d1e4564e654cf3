"""What a plan file can say: one class for each of its tables."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ..exceptions import TessellaError
from ..io import Source, read_file
from ..release import Step, Study
from ..rules import Rules
from ..schema import Kind, Role, Schema
from .writing import write_toml

__all__ = ["Columns", "Input", "Measures", "Output", "PlanFile", "RulesPart"]


class Part(BaseModel):
    """A table of a plan file: nothing in it is ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Input(Part):
    """Which file is read, and how: the options of `tessella.io.read_file`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    file: str

    @model_validator(mode="after")
    def _known_options(self) -> Input:
        known = [
            n for n in inspect.signature(read_file).parameters if n not in ("path", "metadata")
        ]
        for name in self.model_extra or {}:
            if name not in known:
                raise ValueError(f"{name!r} is no option of reading; there are {', '.join(known)}")
        return self

    @property
    def options(self) -> dict[str, Any]:
        """The options of reading."""
        return dict(self.model_extra or {})


class RulesPart(Part):
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


class Columns(Part):
    """What is known of one column; see `tessella.schema.Column`."""

    kind: Kind
    role: Role = "quasi-identifier"
    missing: list[Any] = Field(default_factory=list)
    labels: list[tuple[Any, str]] = Field(default_factory=list)

    def known(self) -> dict[str, Any]:
        """Return it as `Schema` takes it."""
        return {
            "kind": self.kind,
            "role": self.role,
            "missing": tuple(self.missing),
            "labels": dict(self.labels),
        }


class Measures(Part):
    """What is measured of the release."""

    loss: bool = True
    risk: Literal["none", "quick", "standard", "thorough"] = "quick"
    known: list[str] | None = None
    time_limit: float | None = Field(default=None, gt=0)


class Output(Part):
    """Where the release and what goes with it are written."""

    file: str
    external_report: str | None = None
    internal_report: str | None = None
    manifest: str | None = None
    summary: str | None = None
    order: Literal["kept", "shuffled"] = "kept"
    keep_labels: bool = False

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
            "release": self.file,
            "internal report": self.internal_report,
            "summary": self.summary,
            "external report": self.external_report,
            "manifest": self.manifest,
        }
        return {what: name for what, name in named.items() if name}


class PlanFile(Part):
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

    def to_toml(self, *, notes: Mapping[str, Sequence[str]] | None = None) -> str:
        """Write the plan as TOML; ``parse_plan(plan.to_toml())`` is the same plan.

        Parameters
        ----------
        notes : mapping of str to sequence of str, optional
            Comments: for "" (the head), "input", "rules", "columns", "columns.NAME", "steps.0",
            "measures" and "output".
        """
        return write_toml(self, notes or {})

    def read(self) -> Source:
        """Read the input."""
        return read_file(self.path(self.input.file), **self.input.options)

    def read_rules(self) -> Rules:
        """Read the rules."""
        if self.rules.file:
            return Rules.read(self.path(self.rules.file))
        return Rules(self.rules.lines)

    def schema_of(self, source: Source) -> Schema:
        """Return what the plan says of the columns, or what the file lets guess."""
        if not self.columns:
            return source.schema()
        known = Schema({name: part.known() for name, part in self.columns.items()})
        known.check(source.table)
        return Schema([known[name] for name in source.columns])

    def study(self, source: Source) -> Study:
        """Return a study of the input, no step taken yet."""
        return Study(
            source.table,
            schema=self.schema_of(source),
            rules=self.read_rules(),
            tolerance=self.rules.tolerance,
            random_state=self.seed,
        )
