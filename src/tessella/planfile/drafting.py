"""The first draft of a plan: everything stated, everything explained, ready to be edited."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..exceptions import PlanError, TessellaError
from ..frame import Table
from ..io import Source
from ..plan import make_plan
from ..release import Step
from ..release.patterns import count_rare
from ..release.steps import drop
from ..rules import Rules
from ..schema import Column, Schema
from .model import Columns, Input, Measures, Output, PlanFile, RulesPart

__all__ = ["draft"]

LARGE = 20_000  # records, above which groups are looked for quickly
HEAD = (
    "A plan of tessella: what is read, what is done, what is written. Edit it, then run",
    "    tessella protect --plan THIS-FILE",
    "With a seed, the same plan gives the same release; the seed is as confidential as the data.",
)
ROLES = (
    "Kinds: continuous, integer, ordinal, nominal. Roles:",
    "  quasi-identifier  may be known to an intruder: is masked",
    "  identifier        names the respondent: must be dropped",
    "  household         names the household: must be dropped",
    "  confidential      is released as it is, and protected by not knowing whose it is",
    "  weight            weighs the records, and is released as it is",
    "  untouched         is released as it is",
    "What follows was guessed from names and values. Correct it: nobody knows the data as you do.",
)


def draft(
    source: Source,
    *,
    k: int,
    rules: str | os.PathLike[str] | None = None,
    strata: Sequence[str] = (),
    schema: Schema | None = None,
    output: str | None = None,
    seed: int | None = None,
    folder: str | os.PathLike[str] = ".",
    wishes: Mapping[str, Any] | None = None,
) -> str:
    """Write a commented plan for a table that was read.

    Parameters
    ----------
    source : Source
        The table, from `tessella.io.read_file`.
    k : int
        The least number of records that share their released values.
    rules : path, optional
        A file of edit rules.
    strata : sequence of names
        Columns whose values put records apart, and that are released as they are.
    schema : Schema, optional
        What is known of the columns, instead of a guess.
    output : str, optional
        The file of the release; by default named after the input.
    seed : int, optional
        Makes the release repeatable.
    folder : path
        Where the plan will be kept: names of files are made relative to it.
    wishes : mapping, optional
        Further options of the protecting step, such as {"grouping": "mdav"}.

    Returns
    -------
    str
        TOML, for `read_plan`.
    """
    home = Path(folder)
    known = source.schema() if schema is None else schema
    given = Rules() if rules is None else Rules.read(Path(rules))
    written = output or f"{_stem(source.path)}-release{_ending(source.path)}"
    stem = _stem(Path(written))
    careful = Schema([_careful(column) for column in known])
    wanted = dict(wishes or {})
    if source.n_rows > LARGE and not {"grouping", "options"} & set(wanted):
        wanted["options"] = {"effort": "quick"}
    steps, said = _steps(source, careful, given, list(strata), {"k": k, **wanted})
    plan = PlanFile(
        seed=seed,
        input=Input(file=_relative(source.path, home), **_options(source)),
        rules=RulesPart(file=None if rules is None else _relative(Path(rules), home)),
        columns={str(column.name): _part(column) for column in careful},
        steps=steps,
        measures=Measures(),
        output=Output(
            file=written,
            external_report=f"{stem}-report.html",
            internal_report=f"{stem}-confidential.html",
            manifest=f"{stem}-manifest.json",
        ),
    )
    notes: dict[str, Sequence[str]] = {
        "": HEAD,
        "input": ["How the file was read:", *(f"  {line}" for line in str(source.how).split("\n"))],
        "columns": ROLES,
        "measures": [
            'risk: "none", "quick", "standard" or "thorough"; known: the columns that an intruder '
            "knows, all masked ones if not given."
        ],
        "output": [
            "The internal report is as confidential as the data; the external report may be "
            "published.",
            'order = "shuffled" hides the order of the records, which may tell who is who.',
        ],
        **said,
    }
    if len(given):
        notes["rules"] = [f"{len(given)} rules; each holds in the release, or there is none."]
    for column in known:
        notes[f"columns.{column.name}"] = [column.why]
    return plan.to_toml(notes=notes)


def _steps(
    source: Source, schema: Schema, rules: Rules, strata: list[str], wishes: dict[str, Any]
) -> tuple[list[Step], dict[str, Sequence[str]]]:
    """Choose steps that will work, as far as that can be known without doing them."""
    k = wishes["k"]
    steps: list[Step] = []
    notes: dict[str, Sequence[str]] = {}
    table, telling = Table.read(source.table), schema.names("identifier", "household")
    if telling:
        steps.append(Step(method="drop", options={"columns": [str(name) for name in telling]}))
        notes["steps.0"] = ["Columns that name respondents or households must not be released."]
        left, schema = drop(table, schema, telling)
        table = Table.read(left)
    if rare := count_rare(table, schema, k):
        steps.append(Step(method="suppress", options={"k": k}))
        notes[f"steps.{len(steps) - 1}"] = [
            f"{rare:,} records lack values that fewer than {k} records lack together. Missing "
            "cells stay missing, so such records can hide in no group: as few further cells as "
            f"possible are suppressed until {k} records lack the same."
        ]
    if strata:
        wishes["strata"] = strata
    about = rules.for_columns(table.columns, only=True)
    explained: list[str] = []
    for fit in ("closed", "project"):
        try:
            fixed = about.fix(table, schema=schema)
            found = make_plan(schema, fixed, k=k, strata=tuple(strata), fit=fit)
            explained = [
                "What this step will do:",
                *(f"  {x}" for x in found.explain().split("\n")),
            ]
            if fit == "project":
                wishes["fit"] = fit
            if any(block.cases or block.signs for block in found.blocks):
                wishes["small"] = "merge"
            break
        except PlanError as error:
            explained = [f"Not possible as it stands: {error}"]
        except TessellaError as error:
            explained = [f"Look at this first: {error}"]
            break
    notes[f"steps.{len(steps)}"] = explained
    steps.append(Step(method="protect", options=wishes))
    return steps, notes


def _careful(column: Column) -> Column:
    """Return a column that is not released unmasked because of a guess."""
    if column.guessed and column.role == "weight":
        return Schema([column]).override({column.name: {"role": "quasi-identifier"}})[column.name]
    return column


def _part(column: Column) -> Columns:
    return Columns(
        kind=column.kind,
        role=column.role,
        missing=list(column.missing),
        labels=list(column.labels.items()),
    )


def _options(source: Source) -> dict[str, Any]:
    return {name: value for name, value in source.how.options.items() if value is not None}


def _relative(path: Path, home: Path) -> str:
    try:
        return Path(os.path.relpath(path, home)).as_posix()
    except ValueError:  # another drive
        return str(path)


def _stem(path: Path) -> str:
    return path.name.split(".")[0] or "release"


def _ending(path: Path) -> str:
    name = path.name
    return name[len(name.split(".")[0]) :]
