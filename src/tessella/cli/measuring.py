"""Commands that measure: what masking has cost, what an intruder finds, which way is best."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from .. import auditing, io, loss, planfile, publishing, risk
from .. import explore as exploring
from .._lazy import optional
from .._output import free_name, refuse_outputs
from ..exceptions import (
    BadFileError,
    BadOptionError,
    BadTableError,
    CommandError,
    NoCandidateError,
    UnknownColumnError,
)
from .commands import (
    Identity,
    Json,
    Masked,
    MaybeK,
    Original,
    Overwrite,
    Quiet,
    Read,
    RulesFile,
    Seed,
    Strata,
    Text,
    Verbose,
    app,
    read_rules,
    refuse_twice,
    write_text,
)
from .terminal import (
    DONE,
    REFUSED,
    Reporter,
    columns_of,
    in_options,
    options_for_plan,
    options_of,
    read_source,
)

if TYPE_CHECKING:
    from ..publishing.reopening import Reopened


Plan = Annotated[
    Text,
    Option(
        "--plan",
        "-p",
        help="The plan that wrote the release, with kinds, roles, rules and known columns.",
    ),
]
Manifest = Annotated[
    Text, Option(help="The manifest of the release; by default the one beside it, if any.")
]


class _Files:
    """An original and a release, read as their plan or manifest describes them.

    With neither, kinds are guessed; options of reading are for the original. Records are compared
    by their place, or by `id`: a release in random order is refused without its plan.
    """

    def __init__(
        self, original: str, release: str, reporter: Reporter, *, plan: str | None,
        manifest: str | None, read: list[str] | None, id: str | None = None, hint: str = "",
    ) -> None:  # fmt: skip
        from ..auditing.manifests import described_schema
        from ..auditing.stored import as_audited
        from ..auditing.verifying import looks_shuffled
        from ..frame import Table

        self.opened: Reopened | None = None
        with reporter.waiting(f"Reading {Path(original).name} and {Path(release).name} ..."):
            if plan is not None:
                refuse_twice(plan, {"--read": read or None, "--id": id})
                self.opened = publishing.reopen(
                    plan, original=original, release=release, manifest=manifest
                )
                return
            promised = _described(release, manifest, reporter)
            source = io.read_file(original, **options_of(read or []))
            self.schema = described_schema(promised, source.schema())
            self.before = Table.read(source.table)
            self.after = Table.read(as_audited(io.read_file(release), self.before))
        order = promised.get("order")
        if order is None and looks_shuffled(self.before, self.after):
            order = "shuffled"
        if order == "shuffled" and id is None:
            raise BadTableError(
                f"The records of {Path(release).name} are in random order: figures of records "
                "paired by position would be wrong. Give the plan that wrote it, which knows the "
                f"order: --plan PLAN{hint}. If it was written without a plan file, with the same "
                f"options: tessella plan {shlex.quote(original)} -k K -o PLAN"
            )

        common = [name for name in self.before.columns if self.after.has(name)]
        weights, masked = self.schema.names("weight"), self.schema.names("quasi-identifier")
        # As `publish` compares them; files without a manifest, in all that they have in common.
        self.compared = [name for name in common if name not in weights] if promised else common
        self.known = [name for name in common if name in masked] if promised else None


def _compared(
    original: str, release: str, plan: str | None, manifest: str | None
) -> dict[str, str | Path | None]:
    """Return the files that are compared, and all that their plan names."""
    from ..auditing.manifests import find_manifest

    given: dict[str, str | Path | None] = {
        "the original": original, "the release": release, "the plan": plan,
        "the manifest": manifest or find_manifest(release),
    }  # fmt: skip
    if plan is None:
        return given
    known = planfile.read_plan(plan)
    named = {**known.inputs, **known.outputs}
    return {**given, **{f"{what} of the plan": path for what, path in named.items()}}


def _described(release: str, manifest: str | None, reporter: Reporter) -> Mapping[str, Any]:
    """Read the manifest that is given, or the one beside the release; its hash must fit."""
    from ..auditing.manifests import find_manifest, read_manifest, refuse_other_file

    found = manifest or find_manifest(release)
    promised = read_manifest(found)
    refuse_other_file(promised, release, found)
    methods = {step["method"] for step in promised.get("steps", ())}
    for method in sorted(methods & {"recode", "suppress"}):
        reporter.say(
            f"A step {method!r} came before masking, and counts as loss here. With --plan PLAN, "
            "figures are those of its report."
        )
    return promised


@app.command("verify")
def _verify(
    original: Original,
    release: Masked,
    plan: Plan = None,
    k: MaybeK = None,
    rules: RulesFile = None,
    strata: Strata = None,
    identity: Identity = None,
    aligned: Annotated[
        bool, Option("--aligned", help="Record i of one file is record i of the other.")
    ] = False,
    manifest: Manifest = None,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Audit a masked file from any tool: k, rules, hashes and information loss.

    Ends with 1 if there is a problem.
    """
    from ..auditing.manifests import find_manifest

    reporter = Reporter(quiet, False, json)
    given = {"-k": k, "--rules": rules, "--strata": strata, "--id": identity,
             "--read": read or None}  # fmt: skip
    if plan is not None:
        refuse_twice(plan, given)
    with reporter.waiting("Reading, counting, comparing ..."):
        if plan is not None:
            found = publishing.reopen(
                plan, original=original, release=release, manifest=manifest
            ).verify()
        else:
            source = io.read_file(original, **options_of(read or []))
            found = auditing.verify(
                source.table, release, k=k, rules=read_rules(rules), strata=columns_of(strata),
                id=identity, aligned=aligned or None, manifest=manifest or find_manifest(release),
            )  # fmt: skip
    reporter.give(in_options(str(found)), found.to_dict())
    raise typer.Exit(DONE if found.passed else REFUSED)


@app.command("loss")
def _loss(
    original: Original,
    release: Masked,
    plan: Plan = None,
    manifest: Manifest = None,
    columns: Annotated[Text, Option(help="Columns to compare, separated by commas.")] = None,
    by_column: Annotated[
        bool, Option("--by-column", help="Also print the loss of each column.")
    ] = False,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure the information loss: generic measures, and estimates with sampling errors.

    With the plan that wrote the release: tessella loss FILE RELEASE --plan plan.toml
    """
    reporter = Reporter(quiet, False, json)
    files = _Files(original, release, reporter, plan=plan, manifest=manifest, read=read)
    wanted = columns_of(columns)
    if files.opened is not None:
        found, estimates = files.opened.loss(columns=wanted), files.opened.estimates(columns=wanted)
    else:
        reading: dict[str, Any] = {
            "columns": files.compared if wanted is None else wanted, "schema": files.schema,
            "on_unpaired": "skip",
        }  # fmt: skip
        found = loss.measure(files.before, files.after, **reading)
        estimates = loss.estimate_loss(files.before, files.after, **reading)
    text = str(found)
    if by_column:
        text += "\n\n" + found.to_frame(by_column=True).to_string(
            index=False, float_format="{:.4g}".format
        )
    text += f"\n\n{estimates}"
    reporter.give(in_options(text), found.to_dict() | {"estimates": estimates.to_dict()})


@app.command("risk")
def _risk(
    original: Original,
    release: Masked,
    plan: Plan = None,
    manifest: Manifest = None,
    known: Annotated[
        Text, Option(help="Columns that an intruder knows, separated by commas.")
    ] = None,
    confidential: Annotated[Text, Option(help="Columns that an intruder wants to learn.")] = None,
    identity: Identity = None,
    population: Annotated[
        Text, Option(help="A file of the population, for k-map and delta-presence.")
    ] = None,
    population_counts: Annotated[
        Text,
        Option(help="The column of this file that counts persons, if a row represents several."),
    ] = None,
    effort: Annotated[
        Text, Option(help="quick, standard or thorough; by default the plan's, or standard.")
    ] = None,
    time_limit: Annotated[
        float | None, Option(help="Seconds after which further attacks are skipped.")
    ] = None,
    records: Annotated[
        Text, Option(help="Write which records can be found, one by one. CONFIDENTIAL.")
    ] = None,
    overwrite: Overwrite = False,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run every attack that applies to a masked file, and report what the worst one finds.

    With the plan that wrote the release: tessella risk FILE RELEASE --plan plan.toml
    """
    reporter = Reporter(quiet, verbose, json)
    if records is not None:
        from ..io.source import find_format

        find_format(Path(records), None, write=True)  # now, not after the attacks
        inputs = {"the population": population, **_compared(original, release, plan, manifest)}
        refuse_outputs({"records": records}, inputs=inputs, overwrite=overwrite)
    files = _Files(
        original, release, reporter, plan=plan, manifest=manifest, read=read, id=identity,
        hint=", or --id COLUMN, which both files have and which says who is who",
    )  # fmt: skip
    given = {"known": columns_of(known), "confidential": columns_of(confidential),
             "effort": effort, "time_limit": time_limit}  # fmt: skip
    options: dict[str, Any] = {name: own for name, own in given.items() if own is not None}
    if population is not None:
        options["population"] = io.read_file(population).table
        options["population_counts"] = population_counts
    elif population_counts is not None:
        what = "--population FILE: the file that has the column"
        raise CommandError.lacking(command="--population-counts", what=what)
    with reporter.progress("Attacking ...", timed=True) as step:
        if files.opened is not None:
            found = files.opened.risk(progress=step, **options)
        else:
            found = risk.assess(
                files.before, files.after, id=identity, schema=files.schema, progress=step,
                random_state=0, **{"known": files.known, **options},
            )  # fmt: skip
    if records is not None:
        from ..io.files import staged_file

        with staged_file(found.records, records, private=True, overwrite=overwrite):
            pass
        reporter.say(
            f"{records} is written. It says who can be found, and is as confidential as the "
            "original."
        )
    for one in found.tried:
        reporter.detail(f"\n{one.name}\n{one.found.explain()}")
    text, data = _with_population(found)
    reporter.give(in_options(text), data)


def _with_population(found: risk.Assessment) -> tuple[str, dict[str, Any]]:
    """Return an assessment as text and as data, with k-map and presence if they were measured."""
    text, data = str(found) + "\n", found.to_dict()
    figures = {
        "k-map": ("k", "below", "nobody"),
        "delta-presence": ("delta_min", "delta_max", "overfull"),
    }
    for name, fields in figures.items():
        own = [one.found for one in found.tried if one.name == name]
        if own:
            text += "".join(f"\n{str(one).splitlines()[0]}" for one in own)
            facts = [{field: getattr(one, field) for field in fields} for one in own]
            data[name] = facts[0] if len(facts) == 1 else facts
    return text.rstrip(), data


@app.command("explore")
def _explore(
    file: Annotated[Text, Argument(metavar="[FILE]", help="A file; by default the plan's.")] = None,
    plan: Annotated[
        Text, Option("--plan", "-p", help="A plan: its kinds, roles, rules and preparing steps.")
    ] = None,
    k: Annotated[
        str, Option("--k", "-k", help="Group sizes to try, separated by commas.")
    ] = "3,5,10,20",
    rules: RulesFile = None,
    columns: Annotated[Text, Option(help="Columns to mask, separated by commas.")] = None,
    effort: Annotated[str, Option(help="quick or standard.")] = "quick",
    budget: Annotated[Text, Option(help="A number of points, or a time such as '5 min'.")] = None,
    store: Annotated[
        Text, Option(help="A folder that keeps results, to resume later. CONFIDENTIAL.")
    ] = None,
    out: Annotated[
        Text,
        Option(
            "--out", "-o", help="Write all points (.parquet), or the steps of the best one (.toml)."
        ),
    ] = None,
    picture: Annotated[Text, Option(help="Draw the map: .svg, .png or .pdf.")] = None,
    max_risk: Annotated[
        float | None, Option(help="Find the best candidate with at most this risk, in %.")
    ] = None,
    max_loss: Annotated[
        float | None, Option(help="Find the best candidate with at most this loss, in %.")
    ] = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try many ways to protect a file, and draw the map of risk and loss to find the best."""
    from ..explore.candidate import steps_to_toml
    from ..explore.exploring import read_budget

    reporter = Reporter(quiet, False, json)
    sizes = _sizes(k)
    _refuse_endings(out, picture)  # now, not after the exploration
    if picture is not None:
        optional("matplotlib", extra="plots", purpose="A picture")
    results = {"result": out, "picture": picture}
    if plan is not None:
        refuse_twice(plan, {"FILE": file, "--rules": rules, "--read": read or None})
        wanted = planfile.read_plan(plan)
        refuse_outputs(results, inputs={"the plan": plan, **wanted.inputs}, overwrite=overwrite)
        with reporter.waiting(f"Reading {wanted.input.file} ..."):
            source = wanted.read()
    elif file is None:
        raise CommandError.lacking(command="tessella explore", what="FILE, or --plan PLAN")
    else:  # what `protect` would do with the file
        inputs = {"the original": file, "the file of rules": rules}
        refuse_outputs(results, inputs=inputs, overwrite=overwrite)
        new = free_name(Path(), "plan", ".toml", taken=out)
        wishes = options_for_plan(k=max(sizes))
        drafting = f"tessella plan {shlex.quote(file)} {wishes} -o {new}"
        source = read_source(file, read, reporter)
        text = planfile.draft(source, k=max(sizes), rules=rules)
        wanted = planfile.parse_plan(text)
        steps = [step for step in wanted.steps if step.method != "suppress"]
        wanted = wanted.model_copy(update={"steps": steps})
        if unsure := [name for name, column in wanted.columns.items() if column.unsure]:
            reporter.say(
                f"What is guessed of {', '.join(map(repr, unsure))} is unsure. To correct it: "
                f"{drafting}, then tessella explore --plan {new}"
            )
    for name in columns_of(columns) or ():
        if name not in source.columns:
            raise UnknownColumnError(name, source.columns, who="--columns")
    prepared = exploring.prepare_plan(wanted, source, columns=columns_of(columns), k=max(sizes))
    for note in prepared.notes:
        reporter.say(note)
    many = int(budget) if budget is not None and budget.isdecimal() else budget
    _, limit = read_budget(many)
    with reporter.progress("Exploring ...", timed=True, limit=limit) as step:
        found = prepared.explore(
            k=sizes, effort=effort, budget=many, store=store, random_state=seed,
            progress=lambda done, total, name: step(done, total, "Exploring"),  # noqa: ARG005
        ).exploration  # fmt: skip
    if out is not None and not out.endswith(".toml"):
        found.save(out, overwrite=overwrite)
        reporter.say(f"{out} is written. It is confidential.")
    if picture is not None and any(point.tried for point in found):
        from ..pictures import save

        save(found.picture(), Path(picture), private=True, overwrite=overwrite)
        reporter.say(f"{picture} is written. It is confidential.")
    text, data = str(found), found.to_dict()
    try:
        best = found.best(max_risk=max_risk, max_loss=max_loss)
    except NoCandidateError:
        reporter.give(text, data)  # what there is, before what there is not
        raise
    steps = [*prepared.steps, *best.to_steps()]
    toml = steps_to_toml(steps)
    if out is not None and out.endswith(".toml"):
        head = _placing(plan) if plan is not None else _placing(new, drafting)
        write_text(out, head + toml, overwrite=overwrite, private=True)
        reporter.say(f"{out} is written. It is confidential.")
    text += f"\n\nBest: {best}\nIts steps, for a plan:\n\n{toml}"
    reporter.give(text, data | {"best": str(best), "steps": [step.to_dict() for step in steps]})


def _placing(plan: str, drafting: str | None = None) -> str:
    """Write a comment above the steps of a candidate: what they are, and where they belong."""
    lines = [
        "The steps of the best candidate that tessella explore found. They are a part of a plan:",
        f"write them in place of all [[steps]] of {plan}.",
    ]
    if drafting is not None:
        lines += ["To draft that plan:", f"    {drafting}"]
    lines += ["Then run it:", f"    tessella protect --plan {shlex.quote(plan)}"]
    return "".join(f"# {line}\n" for line in lines) + "\n"


def _refuse_endings(out: str | None, picture: str | None) -> None:
    """Refuse names of files under which nothing can be written."""
    from ..pictures.figures import FORMATS

    for name, endings in ((out, (".parquet", ".toml")), (picture, tuple(FORMATS))):
        if name is not None and not name.endswith(endings):
            problem = f"its name does not end in {' or '.join(endings)}"
            raise BadFileError(name, problem, "Give such a name")


def _sizes(text: str) -> tuple[int, ...]:
    pieces = [piece.strip() for piece in text.split(",")]
    if not all(piece.isdecimal() for piece in pieces):
        raise BadOptionError("--k", text, "whole numbers between commas, such as 3,5,10")
    return tuple(map(int, pieces))
