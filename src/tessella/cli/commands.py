"""The commands from a file to a release: what each takes, and what it does.

Rooms of the library are used by their doors (`io.read_file`), which load what stands behind them
when it is used: `tessella --help` must not wait for numba.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from .. import __version__, io, planfile, publishing, reports
from .. import rules as ruling
from .._output import free_name, refuse_outputs, toml_key, toml_value
from .._wording import counted
from ..exceptions import (
    BadFileError,
    BadOptionError,
    CommandError,
    DataNotFoundError,
    TessellaError,
    TessellaWarning,
    UnknownColumnError,
)
from .terminal import (
    DONE,
    REFUSED,
    Reporter,
    columns_of,
    diversity_of,
    dominance_of,
    in_options,
    options_for_plan,
    read_or_sample,
    read_source,
    wishes_of,
)

if TYPE_CHECKING:
    from ..schema import Schema

__all__ = ["app"]

SHOWN = 5  # records that break a rule, by line number
MOST_SLIPS = 20  # that are printed
PAGE = b"<!DOCTYPE html>"  # how reports begin

app = typer.Typer(
    name="tessella",
    help="Mask tables about people or firms: every record represents at least k, every rule holds.",
    epilog="Start with: tessella demo. Then, with a file of your own: tessella check FILE; "
    "tessella plan FILE -k 5 > plan.toml; tessella protect --plan plan.toml",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


# Options that several commands share.
Text = str | None
File = Annotated[
    str, Argument(metavar="FILE", help="CSV, Parquet, Arrow, Excel, SPSS, Stata or SAS.")
]
Original = Annotated[str, Argument(metavar="ORIGINAL", help="The file before masking.")]
Masked = Annotated[str, Argument(metavar="RELEASE", help="The masked file, from any tool.")]
Read = Annotated[
    list[str] | None,
    Option(
        metavar="NAME=VALUE",
        help="How the file is written, if this is not detected: delimiter=semicolon, "
        "decimal=comma, encoding=latin-1, missing=NA, sheet=2024, types.zip=text. May be repeated.",
    ),
]
RulesFile = Annotated[Text, Option("--rules", "-r", help="A file of edit rules.")]
_K = Option("--k", "-k", help="The least number of records that share their values.")
K = Annotated[int, _K]
MaybeK = Annotated[int | None, _K]
Strata = Annotated[
    Text, Option(help="Columns within which records are grouped; they are released as they are.")
]
Grouping = Annotated[
    Text,
    Option(help="How groups are made: search (the default), mdav, ..., fuzzy, overlapping."),
]
GroupingOption = Annotated[
    list[str] | None,
    Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the grouping: effort=quick; for fuzzy: m1, m2, lambda1, lambda2, c, "
        "at_least_k=false. May be repeated.",
    ),
]
Identity = Annotated[
    Text, Option("--id", help="A column in both files that identifies the records.")
]
Seed = Annotated[
    int | None,
    Option(min=0, max=2**63 - 1, help="Makes the result repeatable; as confidential as the data."),
]
Dominance = Annotated[
    Text, Option(help="Dominance rule: p of the p% rule (such as 10), or n=1,k=85.")
]
OnDominance = Annotated[
    Text, Option(help="If a record dominates its group: report (the default), enlarge, or refuse.")
]
Diverse = Annotated[
    Text,
    Option(
        "--l", help="l-diversity of confidential values in each group: 3, entropy=3, recursive=2,3."
    ),
]
Close = Annotated[
    Text,
    Option(
        "--t", help="t-closeness of confidential values to the table: 0.2, equal=0.2, ordered=0.2."
    ),
]
Confidential = Annotated[Text, Option(help="Sensitive columns, released as they are.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace files that exist.")]
Json = Annotated[bool, Option("--json", help="Print JSON for machines.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print the result and nothing else.")]
Verbose = Annotated[bool, Option("--verbose", "-v", help="Print more.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tessella {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


@app.command("demo")
def _demo(
    out: Annotated[
        str, Option("--out", "-o", help="The folder to write to; created if it does not exist.")
    ] = "tessella-demo",
    n: Annotated[int, Option("--n", "-n", help="Number of firms.")] = 2000,
    k: K = 5,
    seed: Annotated[int, Option(help="Seed of the synthetic survey.")] = 1,
    method: Annotated[str, Option(help="How to group: search, mdav, igd, ...")] = "search",
    overwrite: Overwrite = False,
) -> None:
    """Protect a synthetic business survey from start to finish, and explain what was done.

    Writes the survey, its rules and a plan, then the release, both reports and the manifest.
    """
    from .demo import run

    run(out=out, n=n, k=k, seed=seed, method=method, overwrite=overwrite)


def read_rules(file: str | None) -> ruling.Rules | None:
    return None if file is None else ruling.Rules.read(file)


def refuse_twice(plan: str, given: Mapping[str, Any]) -> None:
    """Refuse options that a plan states."""
    if twice := [name for name, value in given.items() if value is not None]:
        raise CommandError.stated_twice(plan=shlex.quote(plan), twice=", ".join(twice))


@app.command("warm-up")
def _warm_up(quiet: Quiet = False) -> None:
    """Compile the kernels of all commands in advance, on all cores, so that none has to wait."""
    from ..kernels import ahead
    from .warming import warm_up

    reporter = Reporter(quiet)
    if ahead.all_there():  # a test checks that no task of `warm_up` needs more
        reporter.say("Nothing to compile: the installation has machine code of all kernels.")
        return
    with reporter.progress("Compiling kernels ...") as step:
        failed = warm_up(step)
    if failed:
        reporter.say(f"Not compiled ahead: {', '.join(failed)}. It is compiled when it is used.")
        raise typer.Exit(REFUSED)
    reporter.say("Kernels are compiled: no command waits for them on this machine.")


@app.command("check")
def _check(
    file: File,
    rules: RulesFile = None,
    correct: Annotated[
        Text,
        Option(metavar="FILE", help="Write the table, with records corrected in which a single "
               "number is wrong. It is as confidential as the original."),
    ] = None,
    read: Read = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Read a file, say how it was read and what its columns are, and check its edit rules.

    Ends with 1 if a record breaks a rule or rules contradict each other.
    """
    if correct is not None and rules is None:
        raise BadOptionError("--correct", correct, "--rules FILE with it: they say what is wrong")
    inputs = {"the original": file, "the file of rules": rules}
    refuse_outputs({"corrected table": correct}, inputs=inputs, overwrite=overwrite)
    reporter = Reporter(quiet, False, json)
    source = read_source(file, read, reporter)
    known = source.schema()
    lines = [
        f"{counted(source.n_rows, 'record')}, {counted(len(source.columns), 'column')}, read as "
        f"{source.format}:",
        *(f"  {line}" for line in in_options(str(source.how)).splitlines()),
        "",
        str(known),
    ]
    data: dict[str, Any] = {
        "file": Path(file).name,
        "format": source.format,
        "records": source.n_rows,
        "reading": source.how.to_dict(),
        "schema": known.to_dict(),
    }
    code = DONE
    if (given := read_rules(rules)) is not None:
        found = given.check()
        result = given.fix(source.table, schema=known).confront(source.table, schema=known)
        data["rules"] = [_judge(result, at) for at in range(len(given))]
        data["findings"] = [str(finding) for finding in found]
        broken = len(result.breaking())
        width = max((len(name) for name in given.names), default=0)
        lines += ["", f"{counted(len(given), 'rule')}:" if len(given) else f"{rules} has no rules."]
        lines += [_line(judged, source.n_rows, width) for judged in data["rules"]]
        if broken:
            lines.append(
                f"{counted(broken, 'record')} break{'s' * (broken == 1)} a rule. In a release of "
                "tessella none does: masking corrects them, or nothing is released."
            )
        lines += [f"Note: {line}" for line in data["findings"]]
        if correct is not None:
            lines += _correct(source, given, known, Path(correct), overwrite)
        if broken or any(one.is_grave for one in found):
            code = REFUSED
    reporter.give("\n".join(lines), data)
    raise typer.Exit(code)


def _correct(source: Any, rules: Any, schema: Any, path: Path, overwrite: bool) -> list[str]:
    """Write a table without slips; return what was corrected, in lines."""
    table, slips = ruling.correct_slips(source.table, rules, schema=schema)
    io.write_file(table, path, like=source, overwrite=overwrite)
    shown = [f"  {replace(slip, row=slip.row + 1)}" for slip in slips[:MOST_SLIPS]]
    more = [f"  and {len(slips) - MOST_SLIPS:,} more"] if len(slips) > MOST_SLIPS else []
    return ["", f"{len(slips):,} numbers are corrected in {path} (rows from 1):", *shown, *more]


def _judge(result: Any, at: int) -> dict[str, Any]:
    """Return how the records obey one rule; `result` is a `Confrontation`."""
    rule, rows = result.rules[at], result.rows[at]
    return {
        "rule": rule.name,
        "text": rule.text,
        "broken": len(rows),
        "unknown": int((result.signs[:, at] == 0).sum()),
        "records": [int(row) + 1 for row in rows[:SHOWN]],
    }


def _line(judged: Mapping[str, Any], n_rows: int, width: int) -> str:
    broken, unknown = judged["broken"], judged["unknown"]
    text = f"broken by {broken:,} of {n_rows:,}" if broken else "holds"
    if unknown:
        text += f", unknown for {unknown:,}"
    if broken:
        shown = ", ".join(map(str, judged["records"]))
        text += f" (records {shown}{', ...' if broken > SHOWN else ''})"
    return f"  {judged['rule']:<{width}}  {text}: {judged['text']}"


@app.command("schema")
def _schema(
    file: File,
    toml: Annotated[
        bool, Option("--toml", help="Print the columns in the form of a plan file.")
    ] = False,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Guess the kind and the role of each column, and say why."""
    reporter = Reporter(quiet, False, json)
    known = read_or_sample(file, read, reporter)[0].schema()
    text = "\n\n".join(map(_column_to_toml, known)) if toml else str(known)
    reporter.give(text, known.to_dict())


def _column_to_toml(column: Any) -> str:
    lines = [f"[columns.{toml_key(str(column.name))}]", f"# {column.why}"]
    lines += [f"kind = {toml_value(column.kind)}", f"role = {toml_value(column.role)}"]
    if column.missing:
        lines.append(f"missing = {toml_value(list(column.missing))}")
    if column.labels:
        lines.append(f"labels = {toml_value([[*p] for p in column.labels.items()])}")
    return "\n".join(lines)


@app.command("plan")
def _plan(
    file: File,
    k: K,
    rules: RulesFile = None,
    keys: Annotated[Text, Option(help="Categorical key variables.")] = None,
    numeric_keys: Annotated[Text, Option(help="Numerical key variables.")] = None,
    weight: Annotated[Text, Option(help="The sampling weight.")] = None,
    unit: Annotated[Text, Option(help="The household, firm or patient that k counts.")] = None,
    household: Annotated[Text, Option(hidden=True)] = None,
    confidential: Confidential = None,
    diverse: Diverse = None,
    close: Close = None,
    others: Annotated[
        Text, Option(help="Role of the columns not named in these options, such as untouched.")
    ] = None,
    strata: Strata = None,
    dominance: Dominance = None,
    on_dominance: OnDominance = None,
    grouping: Grouping = None,
    option: GroupingOption = None,
    out: Annotated[
        Text, Option("--out", "-o", help="Where to write the plan; by default it is printed.")
    ] = None,
    release: Annotated[Text, Option(help="The file that the plan will write.")] = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
    read: Read = None,
    quiet: Quiet = False,
) -> None:
    """Write a commented plan for a file, to edit and then to run.

    Roles are guessed, or stated as in sdcMicro: key variables, weight, unit.

    tessella plan firms.csv --rules rules.txt -k 5 > plan.toml
    """
    if household is not None:
        raise BadOptionError("--household", household, f"--unit {household}: its name now")
    inputs = {"the original": file, "the file of rules": rules}
    refuse_outputs({"plan": out}, inputs=inputs, overwrite=overwrite)
    reporter = Reporter(quiet)
    wishes = dominance_of(dominance, on_dominance) | wishes_of(grouping, option or [])
    wishes |= diversity_of(diverse, close)
    source, _ = read_or_sample(file, read, reporter)
    lists = {"keys": keys, "numeric_keys": numeric_keys, "confidential": confidential}
    single = {"weight": weight, "unit": unit, "others": others}
    if keys or numeric_keys or weight or others:
        schema: Schema | None = _schema_of_roles(
            source, {name: columns_of(text) or [] for name, text in lists.items()}, single
        )
    else:
        schema = with_unit(source, unit) if unit is not None else None
        schema = _with_confidential(source, columns_of(confidential), schema)
    text = planfile.draft(
        source, k=k, rules=rules, strata=columns_of(strata) or (), output=release, seed=seed,
        folder=Path(out).parent if out else Path(), name=Path(out).name if out else None,
        schema=schema, wishes=wishes,
    )  # fmt: skip
    if out is None:
        reporter.give(text, text)
        return
    write_text(
        out, text, overwrite=overwrite, private=True
    )  # it may have a seed, and it names the original
    reporter.say(
        f"{out} is written. Read it, edit it, then: tessella protect --plan {shlex.quote(out)}"
    )


def _schema_of_roles(
    source: io.Source, lists: Mapping[str, list[str]], single: Mapping[str, str | None]
) -> Schema:
    """Return the schema that roles on the command line make, with what the file tells beside."""
    from ..schema import Schema

    guess = source.schema()
    named = {single["weight"], single["unit"]}.union(*lists.values())
    identifiers = [name for name in guess.names("identifier") if name not in named]
    options: dict[str, Any] = {**lists, **single, "identifiers": identifiers}
    carried = {c.name: {"missing": c.missing, "labels": c.labels} for c in guess}
    return Schema.from_keys(source.table, **options).override(carried)


def with_unit(source: io.Source, unit: str) -> Schema:
    """Return the guessed schema with a column that names the units."""
    if unit not in source.columns:
        raise UnknownColumnError(unit, source.columns, who="--unit")
    return source.schema().with_unit(unit)


def _with_confidential(
    source: io.Source, names: list[str] | None, schema: Schema | None = None
) -> Schema | None:
    """Return a schema, by default the guessed one, with the columns that are named confidential."""
    for name in names or ():
        if name not in source.columns:
            raise UnknownColumnError(name, source.columns, who="--confidential")
    changes = {name: {"role": "confidential"} for name in names or ()}
    return (schema or source.schema()).override(changes) if changes else schema


def write_text(
    path: str | Path, text: str, *, overwrite: bool = False, private: bool = False
) -> None:
    from .._output import whole_or_nothing

    with whole_or_nothing(Path(path), overwrite=overwrite, private=private) as out:
        out.write(text.encode())


@app.command("protect")
def _protect(
    file: Annotated[
        Text, Argument(metavar="[FILE]", help="A file, if there is no plan for it yet.")
    ] = None,
    plan: Annotated[Text, Option("--plan", "-p", help="A plan file to run.")] = None,
    k: MaybeK = None,
    rules: RulesFile = None,
    strata: Strata = None,
    confidential: Confidential = None,
    diverse: Diverse = None,
    close: Close = None,
    dominance: Dominance = None,
    on_dominance: OnDominance = None,
    grouping: Grouping = None,
    option: GroupingOption = None,
    effort: Annotated[
        Text, Option(help="Effort of the search: quick, standard or thorough.")
    ] = None,
    time: Annotated[
        float | None, Option(help="Seconds for the search, which uses all of them.")
    ] = None,
    release: Annotated[Text, Option("--release", "-o", help="The file of the release.")] = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
    engine: Annotated[
        Text, Option(help="memory, local (in pieces, by processes) or spark.")
    ] = None,
    memory: Annotated[
        Text, Option(help="Memory that the local engine may use, such as 2GB.")
    ] = None,
    master: Annotated[Text, Option(help="The master of Spark, such as local[2].")] = None,
    resume: Annotated[
        bool, Option("--resume", help="Resume a run of the local engine that was stopped.")
    ] = False,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run a plan: read, check, mask, audit, measure, write the release and both reports.

    tessella protect --plan plan.toml, or, with the plan that `tessella plan` would draft,
    tessella protect firms.csv -k 5 --rules rules.txt. Ends with 1 if the release is refused.
    """
    from ..publishing.workflow import Where
    from .warming import compiling_beside

    reporter, source = Reporter(quiet, verbose, json), None
    where: dict[str, Any] = vars(Where.of(engine, memory, master, resume))
    if plan is not None:
        given = {"FILE": file, "-k": k, "--rules": rules, "--strata": strata, "--seed": seed,
                 "--release": release, "--read": read or None, "--dominance": dominance,
                 "--on-dominance": on_dominance, "--grouping": grouping,
                 "--option": option or None, "--effort": effort, "--time": time,
                 "--confidential": confidential, "--l": diverse, "--t": close}  # fmt: skip
        refuse_twice(plan, given)
        wanted = planfile.read_plan(plan)
    else:
        if file is None or k is None:
            what = "a plan (--plan PLAN), or a file and k (FILE -k 5)"
            raise CommandError.lacking(command="tessella protect", what=what)
        wishes = dominance_of(dominance, on_dominance)
        wishes |= wishes_of(grouping, option or [], effort, time) | diversity_of(diverse, close)
        source, whole = read_or_sample(file, read, reporter, **where)
        folder = Path(release or file).parent
        text = planfile.draft(
            source, k=k, rules=rules, strata=columns_of(strata) or (), seed=seed,
            output=Path(release).name if release else None, folder=folder, wishes=wishes,
            schema=_with_confidential(source, columns_of(confidential)),
        )  # fmt: skip
        wanted = planfile.parse_plan(text, folder=folder)
        source = source if whole else None
    unshown = warnings.catch_warnings(action="ignore", category=TessellaWarning)  # but below
    with unshown, compiling_beside(), reporter.progress("Masking and measuring ...") as step:
        done = publishing.publish(
            wanted, source=source, progress=step, overwrite=overwrite, **where
        )
    for entry in done.protocol:
        reporter.detail(f"{entry.seconds:7.2f} s  {entry.method}")
    account = {  # what a script may want to know; the figures of risk are confidential
        "files": {what: str(path) for what, path in done.paths.items()},
        "public": done.summary["public"],
        "risk": None if done.risk is None else done.risk.to_dict(),
        "warnings": list(done.warnings),
        "seconds": round(done.seconds, 3),
    }
    reporter.give(str(done), account)
    if plan is None and any(column.unsure for column in wanted.columns.values()):
        new = free_name(Path(), "plan", ".toml")
        reporter.say(
            "This release has no plan file yet. To correct what was guessed: tessella plan "
            f"{shlex.quote(str(file))} {options_for_plan()} -o {new}, then tessella protect "
            f"--plan {new} --overwrite"
        )


@app.command("report")
def _report(
    summary: Annotated[
        str, Argument(metavar="SUMMARY", help="The summary.json of a release. CONFIDENTIAL.")
    ],
    external: Annotated[Text, Option(help="Where to write the external (public) report.")] = None,
    internal: Annotated[
        Text, Option(help="Where to write the internal (confidential) report.")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write the reports of a release again, from its summary."""
    import json

    if external is None and internal is None:
        what = "--external FILE, --internal FILE, or both"
        raise CommandError.lacking(command="tessella report", what=what)
    try:
        known = json.loads(Path(summary).read_text(encoding="utf-8"))
    except FileNotFoundError:
        text = f"There is no file {summary!r}. Check the name and the folder."
        raise DataNotFoundError(text) from None
    except OSError as error:
        problem = f"it cannot be read ({error.strerror})"
        raise BadFileError(summary, problem, "Give the file of a summary") from None
    except ValueError:
        known = None
    if not isinstance(known, dict) or not {"public", "confidential"} <= set(known):
        problem = "this is no summary of a release"
        raise BadFileError(summary, problem, "Give the file that its plan calls summary")
    places = {"external report": external, "internal report": internal}
    inputs = {"the summary": Path(summary), **_named_in(known, Path(summary).parent)}
    refuse_outputs(places, inputs=inputs, overwrite=overwrite)
    for place in filter(None, places.values()):
        _refuse_other_than_report(Path(place))
    if external is not None:
        write_text(external, reports.external_report(known), overwrite=overwrite)
        Reporter(quiet).say(f"{external} is written.")
    if internal is not None:
        write_text(internal, reports.internal_report(known), overwrite=overwrite, private=True)
        Reporter(quiet).say(f"{internal} is written: it is confidential.")


def _named_in(summary: Mapping[str, Any], folder: Path) -> dict[str, Path]:
    """Return the files that a summary names, besides the reports, which are written again."""
    confidential = summary["confidential"]
    named: dict[str, Path] = {}
    if text := confidential.get("plan"):
        with suppress(TessellaError):  # a plan of another version: what is no report stays, too
            plan = planfile.parse_plan(text, folder=folder)
            named |= plan.inputs
            named |= {what: path for what, path in plan.outputs.items() if "report" not in what}
    if name := confidential.get("input", {}).get("file"):
        named["the original of the release"] = Path(name)
    return named


def _refuse_other_than_report(path: Path) -> None:
    """Refuse to replace what is no page: a summary does not say where all files have gone."""
    if not path.exists():
        return
    with path.open("rb") as file:
        if not file.read(len(PAGE)).startswith(PAGE):
            raise BadFileError(path, "it is no report", "Give another name")
