"""Commands that measure: what masking has cost, what an intruder finds, which way is best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from .. import explore as exploring
from .. import io, loss, risk
from ..exceptions import BadOptionError, BadTableError, NoCandidateError
from .commands import (
    File,
    Identity,
    Json,
    Masked,
    Original,
    Quiet,
    Read,
    RulesFile,
    Seed,
    Text,
    Verbose,
    app,
    read_rules,
    read_source,
    write_text,
)
from .terminal import Reporter, columns_of, options_of

FEW = 20  # records, of which chance may decide whether columns go together

if TYPE_CHECKING:
    from ..release import Step
    from ..schema import Schema


def _read_both(
    original: str, release: str, read: list[str] | None, reporter: Reporter, *,
    id: str | None = None, hint: str = "",
) -> tuple[io.Source, io.Source]:  # fmt: skip
    """Read two files; options of reading are for the original, those of the release are found.

    Records are compared by their place, or by `id`: a release in random order is refused.
    """
    from ..auditing.verifying import is_shuffled
    from ..frame import Table

    with reporter.waiting(f"Reading {Path(original).name} and {Path(release).name} ..."):
        both = io.read_file(original, **options_of(read or [])), io.read_file(release)
    before, after = (Table.read(source.table) for source in both)
    common = [name for name in before.columns if after.has(name)]
    paired = id is None and common and before.n_rows == after.n_rows > FEW
    if paired and is_shuffled(before, after, common):
        raise BadTableError(
            f"No column of {Path(release).name} goes with the original record by record: its order "
            "seems to be drawn by chance, and figures of records paired by their place would be "
            "wrong. The plan's internal report has loss and risk. To measure files, write the "
            f'release with order = "kept" in [output] of the plan and do not publish it{hint}.'
        )
    return both


@app.command("loss")
def _loss(
    original: Original,
    release: Masked,
    columns: Annotated[Text, Option(help="Columns to compare, between commas.")] = None,
    by_column: Annotated[bool, Option("--by-column", help="Also for each column.")] = False,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure what masking has cost: generic measures, and estimates with sampling errors."""
    reporter = Reporter(quiet, False, json)
    before, after = _read_both(original, release, read, reporter)
    wanted = columns_of(columns)
    if wanted is None:
        wanted = [name for name in before.columns if name in after.columns]
    found = loss.measure(
        before.table, after.table, columns=wanted, schema=before.schema(), on_unpaired="skip"
    )
    estimates = loss.estimate_loss(
        before.table, after.table, columns=wanted, schema=before.schema(), on_unpaired="skip"
    )
    text = str(found)
    if by_column:
        text += "\n\n" + found.to_frame(by_column=True).to_string(index=False)
    text += f"\n\n{estimates}"
    reporter.give(text, found.to_dict() | {"estimates": estimates.to_dict()})


@app.command("risk")
def _risk(
    original: Original,
    release: Masked,
    known: Annotated[Text, Option(help="Columns that an intruder knows, between commas.")] = None,
    confidential: Annotated[Text, Option(help="Columns an intruder wants to learn.")] = None,
    identity: Identity = None,
    effort: Annotated[str, Option(help="quick, standard or thorough.")] = "standard",
    time_limit: Annotated[float | None, Option(help="Seconds; later attacks are left out.")] = None,
    records: Annotated[
        Text, Option(help="Write who can be found, record by record. CONFIDENTIAL.")
    ] = None,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Attack a masked file in every way that fits, and tell what the worst attack finds."""
    reporter = Reporter(quiet, verbose, json)
    before, after = _read_both(
        original, release, read, reporter, id=identity, hint=", or give --id COLUMN"
    )
    options: dict[str, Any] = {"confidential": columns_of(confidential)} if confidential else {}
    with reporter.progress("Attacking ...") as step:
        found = risk.assess(
            before.table, after.table, known=columns_of(known), id=identity, effort=effort,
            schema=before.schema(), time_limit=time_limit, progress=step, random_state=0, **options,
        )  # fmt: skip
    if records is not None:
        from ..io.files import staged_file

        with staged_file(found.records, records, private=True):
            pass
        reporter.say(f"{records} says who can be found: it is as confidential as the original.")
    for one in found.tried:
        reporter.detail(f"\n{one.name}\n{one.found.explain()}")
    reporter.give(str(found), found.to_dict())


@app.command("explore")
def _explore(
    file: File,
    k: Annotated[str, Option("--k", "-k", help="Sizes to try, between commas.")] = "3,5,10,20",
    rules: RulesFile = None,
    columns: Annotated[Text, Option(help="Columns to mask, between commas.")] = None,
    effort: Annotated[str, Option(help="quick or standard.")] = "quick",
    budget: Annotated[Text, Option(help="A number of points, or a time such as '5 min'.")] = None,
    store: Annotated[
        Text, Option(help="A folder for results, to go on after a stop. CONFIDENTIAL.")
    ] = None,
    out: Annotated[
        Text,
        Option(
            "--out", "-o", help="Write all points (.parquet), or the steps of the best (.toml)."
        ),
    ] = None,
    picture: Annotated[Text, Option(help="Draw the map: .svg, .png or .pdf.")] = None,
    max_risk: Annotated[
        float | None, Option(help="Name the best with at most this risk, in %.")
    ] = None,
    max_loss: Annotated[
        float | None, Option(help="Name the best with at most this loss, in %.")
    ] = None,
    seed: Seed = None,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try many ways to protect a file and draw the map of risk and loss: which is best?"""
    from ..explore.candidate import steps_to_toml
    from ..schema import Schema

    reporter = Reporter(quiet, False, json)
    sizes = _sizes(k)
    source = read_source(file, read, reporter)
    wanted, whole = columns_of(columns), source.schema()
    if wanted is None:
        wanted = [str(name) for name in whole.names("quasi-identifier", "confidential")]
    schema = Schema([whole[name] for name in wanted]).override(
        {name: {"role": "quasi-identifier"} for name in wanted}
    )
    table, first = _complete_enough(source.table.select(wanted), schema, max(sizes), reporter)
    given = read_rules(rules)
    if given is not None:
        given = given.for_columns(wanted, only=True)
    many = int(budget) if budget is not None and budget.isdecimal() else budget
    with reporter.progress("Exploring ...") as step:
        found = exploring.explore(
            table, k=sizes, rules=given, effort=effort, budget=many, store=store, schema=schema,
            random_state=seed,
            progress=lambda done, total, name: step(done, total, "Exploring"),  # noqa: ARG005
        )  # fmt: skip
    if out is not None and not out.endswith(".toml"):
        found.save(out)
    if picture is not None and any(point.tried for point in found):
        from ..pictures import save

        save(found.picture(), Path(picture), private=True)
    text, data = str(found), found.to_dict()
    try:
        best = found.best(max_risk=max_risk, max_loss=max_loss)
    except NoCandidateError:
        reporter.give(text, data)  # what there is, before what there is not
        raise
    steps = [*first, *best.to_steps()]
    toml = steps_to_toml(steps)
    if out is not None and out.endswith(".toml"):
        write_text(out, toml, overwrite=True, private=True)
    text += f"\n\nBest: {best}\nIts steps, for a plan:\n\n{toml}"
    reporter.give(text, data | {"best": str(best), "steps": [step.to_dict() for step in steps]})


def _complete_enough(
    table: Any, schema: Schema, k: int, reporter: Reporter
) -> tuple[Any, list[Step]]:
    """Suppress cells of records that lack what fewer than k lack, or groups could not be made."""
    from ..frame import Table
    from ..release import Step
    from ..release.steps import count_rare, suppress

    read = Table.read(table)
    if k > read.n_rows or not count_rare(read, schema, k):
        return table, []
    prepared, _, lost = suppress(read, schema, k=k)
    reporter.say(
        f"{lost:,} cells are taken as missing, so that {k} records lack the same; the step "
        "'suppress' does the same in a plan."
    )
    return prepared, [Step(method="suppress", options={"k": k, "columns": list(read.columns)})]


def _sizes(text: str) -> tuple[int, ...]:
    pieces = [piece.strip() for piece in text.split(",")]
    if not all(piece.isdecimal() for piece in pieces):
        raise BadOptionError("--k", text, "whole numbers between commas, such as 3,5,10")
    return tuple(map(int, pieces))
