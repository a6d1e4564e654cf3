"""The command line: `tessella`.

Each command is declared here and runs in a module of its own, which is loaded when the command
runs: `tessella --help` must not wait for numba. A mistake ends with a sentence, no traceback, and
an exit code for scripts: 1 if rules or the audit refuse, 2 for usage or bad input.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .. import __version__
from ..exceptions import (
    ContradictionError,
    NoCandidateError,
    PlanError,
    RefusedError,
    TessellaError,
    UnreachableError,
)

__all__ = ["app", "main"]

REFUSALS = (RefusedError, PlanError, ContradictionError, NoCandidateError, UnreachableError)
INTERRUPTED = 130
STOPPED = "Stopped. What was not finished was not written."

app = typer.Typer(
    name="tessella",
    help="Mask tables about people or firms: no record stands for fewer than k, every rule holds.",
    epilog="Start with: tessella demo. Then, with a file of your own: tessella check FILE; "
    "tessella plan FILE -k 5 > plan.toml; tessella protect --plan plan.toml",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Options that several commands share.
File = Annotated[
    str, typer.Argument(metavar="FILE", help="CSV, Parquet, Arrow, Excel, SPSS, Stata or SAS.")
]
Original = Annotated[str, typer.Argument(metavar="ORIGINAL", help="The file before masking.")]
Masked = Annotated[str, typer.Argument(metavar="RELEASE", help="The masked file, of any tool.")]
Read = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="NAME=VALUE",
        help="How the file is written, where it cannot be found out: delimiter=semicolon, "
        "decimal=comma, encoding=latin-1, missing=NA, sheet=2024. May be repeated.",
    ),
]
RulesFile = Annotated[str | None, typer.Option("--rules", "-r", help="A file of edit rules.")]
_K = typer.Option("--k", "-k", help="Fewest records that share their values.")
K = Annotated[int, _K]
MaybeK = Annotated[int | None, _K]
Known = Annotated[
    str | None, typer.Option("--known", help="Columns that an intruder knows, between commas.")
]
Strata = Annotated[
    str | None,
    typer.Option("--strata", help="Columns that put records apart and are released as they are."),
]
Identity = Annotated[
    str | None, typer.Option("--id", help="A column of both files that says who is who.")
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", help="Makes it repeatable; as confidential as the data themselves."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result and nothing else.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print more.")]


def main() -> None:
    """Run the command line; errors become a sentence and an exit code."""
    try:
        app()
    except TessellaError as error:
        _print_error(str(error))
        sys.exit(1 if isinstance(error, REFUSALS) else 2)
    except BrokenPipeError:  # `tessella ... | head`
        sys.stderr.close()
        sys.exit(0)
    except BaseException as error:
        if not _was_interrupted(error):
            raise
        _print_error(STOPPED, title="")
        sys.exit(INTERRUPTED)


def _was_interrupted(error: BaseException | None) -> bool:
    """Return whether Ctrl-C is behind an error: typer and compiled code turn it into others."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or getattr(error, "code", None) == INTERRUPTED:
            return True
        error = error.__cause__ or error.__context__
    return False


def _print_error(text: str, title: str = "Error: ") -> None:
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True).print(Text.assemble((title, "bold red"), text))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tessella {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


@app.command("demo")
def _demo(
    out: Annotated[
        str, typer.Option("--out", "-o", help="The folder to write to; made if it is not there.")
    ] = "tessella-demo",
    n: Annotated[int, typer.Option("--n", "-n", help="Number of firms.")] = 2000,
    k: K = 5,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, another survey.")] = 1,
    method: Annotated[
        str, typer.Option("--method", help="How to group: search, mdav, igd, ...")
    ] = "search",
) -> None:
    """Protect a made-up business survey from end to end, and say what was done.

    Writes the survey, its rules and a plan, then the release, both reports and the manifest.
    """
    from .demo import run

    run(out=out, n=n, k=k, seed=seed, method=method)


@app.command("check")
def _check(
    file: File,
    rules: RulesFile = None,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Read a file, say how it was read and what its columns are, and check its edit rules.

    Ends with 1 if a record breaks a rule or rules contradict each other.
    """
    from .checking import check
    from .reporting import Reporter

    raise typer.Exit(check(file, rules, read or [], Reporter(quiet, verbose, json)))


@app.command("schema")
def _schema(
    file: File,
    toml: Annotated[bool, typer.Option("--toml", help="Print it for a plan file.")] = False,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Guess what each column is: its kind, its role, and why."""
    from .checking import schema
    from .reporting import Reporter

    schema(file, read or [], toml, Reporter(quiet, False, json))


@app.command("plan")
def _plan(
    file: File,
    k: K,
    rules: RulesFile = None,
    keys: Annotated[
        str | None, typer.Option("--keys", help="Key variables that are categories.")
    ] = None,
    numeric_keys: Annotated[
        str | None, typer.Option("--numeric-keys", help="Key variables that are numbers.")
    ] = None,
    weight: Annotated[str | None, typer.Option("--weight", help="The sampling weight.")] = None,
    household: Annotated[
        str | None, typer.Option("--household", help="The household's number.")
    ] = None,
    confidential: Annotated[
        str | None, typer.Option("--confidential", help="Sensitive columns, released as they are.")
    ] = None,
    others: Annotated[
        str | None,
        typer.Option("--others", help="Role of columns not named by these, such as untouched."),
    ] = None,
    strata: Strata = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Where to write the plan; else it is printed.")
    ] = None,
    release: Annotated[
        str | None, typer.Option("--release", help="The file that the plan will write.")
    ] = None,
    seed: Seed = None,
    read: Read = None,
    quiet: Quiet = False,
) -> None:
    """Write a commented plan for a file, to edit and then to run.

    Roles are guessed, or stated as in sdcMicro: key variables, weight, household.

    tessella plan firms.csv --rules rules.txt -k 5 > plan.toml
    """
    from .planning import plan
    from .reporting import Reporter

    stated = {
        "keys": keys, "numeric_keys": numeric_keys, "weight": weight, "household": household,
        "confidential": confidential, "others": others,
    }  # fmt: skip
    plan(
        file, k, rules=rules, stated=stated, strata=strata, out=out, release=release, seed=seed,
        read=read or [], reporter=Reporter(quiet),
    )  # fmt: skip


@app.command("protect")
def _protect(
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="A file, where there is no plan for it yet."),
    ] = None,
    plan: Annotated[str | None, typer.Option("--plan", "-p", help="A plan file to run.")] = None,
    k: MaybeK = None,
    rules: RulesFile = None,
    strata: Strata = None,
    release: Annotated[
        str | None, typer.Option("--release", "-o", help="The file of the release.")
    ] = None,
    seed: Seed = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that exist.")
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
    from .protecting import protect
    from .reporting import Reporter

    protect(
        file, plan=plan, k=k, rules=rules, strata=strata, release=release, seed=seed,
        overwrite=overwrite, read=read or [], reporter=Reporter(quiet, verbose, json),
    )  # fmt: skip


@app.command("verify")
def _verify(
    original: Original,
    release: Masked,
    k: MaybeK = None,
    rules: RulesFile = None,
    strata: Strata = None,
    identity: Identity = None,
    manifest: Annotated[
        str | None, typer.Option("--manifest", help="The manifest that was written with it.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Audit a masked file, made by whatever tool: k, rules, hashes, and what was lost.

    Ends with 1 if something is not as it must be.
    """
    from .protecting import verify
    from .reporting import Reporter

    raise typer.Exit(
        verify(
            original, release, k=k, rules=rules, strata=strata, identity=identity,
            manifest=manifest, reporter=Reporter(quiet, False, json),
        )
    )  # fmt: skip


@app.command("report")
def _report(
    summary: Annotated[
        str, typer.Argument(metavar="SUMMARY", help="The summary.json of a release. CONFIDENTIAL.")
    ],
    external: Annotated[
        str | None, typer.Option("--external", help="Where to write the report for the public.")
    ] = None,
    internal: Annotated[
        str | None, typer.Option("--internal", help="Where to write the confidential report.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that exist.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write the reports of a release again, from its summary."""
    from .protecting import report
    from .reporting import Reporter

    report(summary, external, internal, overwrite, Reporter(quiet))


@app.command("loss")
def _loss(
    original: Original,
    release: Masked,
    columns: Annotated[
        str | None, typer.Option("--columns", help="Columns to compare, between commas.")
    ] = None,
    by_column: Annotated[bool, typer.Option("--by-column", help="Also for each column.")] = False,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure what masking has cost: every generic measure of information loss that fits."""
    from .measuring import loss
    from .reporting import Reporter

    loss(original, release, columns, by_column, read or [], Reporter(quiet, False, json))


@app.command("risk")
def _risk(
    original: Original,
    release: Masked,
    known: Known = None,
    confidential: Annotated[
        str | None, typer.Option("--confidential", help="Columns an intruder wants to learn.")
    ] = None,
    identity: Identity = None,
    effort: Annotated[
        str, typer.Option("--effort", help="quick, standard or thorough.")
    ] = "standard",
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", help="Seconds; later attacks are left out.")
    ] = None,
    records: Annotated[
        str | None,
        typer.Option("--records", help="Write who can be found, record by record. CONFIDENTIAL."),
    ] = None,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Attack a masked file in every way that fits, and tell what the worst attack finds."""
    from .measuring import risk
    from .reporting import Reporter

    risk(
        original, release, known=known, confidential=confidential, identity=identity,
        effort=effort, time_limit=time_limit, records=records, read=read or [],
        reporter=Reporter(quiet, verbose, json),
    )  # fmt: skip


@app.command("explore")
def _explore(
    file: File,
    k: Annotated[
        str, typer.Option("--k", "-k", help="Sizes to try, between commas.")
    ] = "3,5,10,20",
    rules: RulesFile = None,
    columns: Annotated[
        str | None, typer.Option("--columns", help="Columns to mask, between commas.")
    ] = None,
    effort: Annotated[str, typer.Option("--effort", help="quick or standard.")] = "quick",
    budget: Annotated[
        str | None, typer.Option("--budget", help="A number of points, or a time such as '5 min'.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option("--store", help="A folder for results, to go on after a stop. CONFIDENTIAL."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", help="Write all points (.parquet), or the steps of the best (.toml)."
        ),
    ] = None,
    picture: Annotated[
        str | None, typer.Option("--picture", help="Draw the map: .svg, .png or .pdf.")
    ] = None,
    max_risk: Annotated[
        float | None, typer.Option("--max-risk", help="Name the best with at most this risk, in %.")
    ] = None,
    max_loss: Annotated[
        float | None, typer.Option("--max-loss", help="Name the best with at most this loss, in %.")
    ] = None,
    seed: Seed = None,
    read: Read = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try many ways to protect a file and draw the map of risk and loss: which is best?"""
    from .exploring import run
    from .reporting import Reporter

    run(
        file, k=k, rules=rules, columns=columns, effort=effort, budget=budget, store=store, out=out,
        picture=picture, max_risk=max_risk, max_loss=max_loss, seed=seed, read=read or [],
        reporter=Reporter(quiet, False, json),
    )  # fmt: skip


@app.command("app")
def _app(
    folder: Annotated[
        str, typer.Argument(metavar="[FOLDER]", help="Where the files are; all is written there.")
    ] = ".",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0 takes one that is free.")
    ] = 0,
    idle: Annotated[
        float, typer.Option("--idle", help="Minutes without use after which it stops.")
    ] = 60,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Whether to open the browser.")
    ] = True,
    quiet: Quiet = False,
) -> None:
    """Go from a file to a release in the browser, in one folder and on this machine alone."""
    from .reporting import Reporter
    from .serving import run

    run(folder, port=port, idle=idle, browser=browser, reporter=Reporter(quiet))
