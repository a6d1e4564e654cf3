"""The command that looks for rules in a file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from typer import Option

from .. import rules as ruling
from .._clock import reported_to
from .._output import refuse_outputs
from .._wording import counted
from .commands import (
    File,
    Json,
    Overwrite,
    Quiet,
    Read,
    Text,
    app,
    read_rules,
    with_unit,
    write_text,
)
from .terminal import Reporter, read_source


@app.command("suggest")
def _suggest(
    file: File,
    rules: Annotated[
        Text, Option("--rules", "-r", help="Known rules, which are not suggested again.")
    ] = None,
    holds: Annotated[float, Option(help="Share of records that an equality must hold for.")] = 0.95,
    unit: Annotated[Text, Option(help="The household, firm or patient of a record.")] = None,
    out: Annotated[
        Text, Option("--out", "-o", help="Where to write the rules; by default they are printed.")
    ] = None,
    overwrite: Overwrite = False,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look for edit rules that nearly all records obey: sums, products, orders, implications.

    Prints a file of rules, the most convincing first, each with how often it holds. Read it,
    delete what is no rule, then: tessella check FILE --rules RULES.
    """
    reporter = Reporter(quiet, False, json)
    inputs = {"the table": file, "the file of rules": rules}
    refuse_outputs({"rules": out}, inputs=inputs, overwrite=overwrite)  # not after the search
    known = read_rules(rules)
    source = read_source(file, read, reporter)
    schema = source.schema() if unit is None else with_unit(source, unit)
    with reporter.progress("Looking for rules ...") as step, reported_to(step):
        found = ruling.Rules.suggest(source.table, schema=schema, known=known, holds=holds)
    if out is None:
        reporter.give(found.to_text(), {"file": Path(file).name, **found.to_dict()})
        return
    write_text(out, found.to_text(), overwrite=overwrite, private=True)  # values of the table
    reporter.say(
        f"{out} is written, with {counted(len(found), 'rule')}. Read it, delete what is no rule, "
        f"then: tessella check {shlex.quote(file)} --rules {shlex.quote(out)}"
    )
