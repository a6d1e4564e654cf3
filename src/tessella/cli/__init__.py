"""The command line: `tessella`.

Each command is declared here and told in a module of its own, which is loaded when the command
runs: `tessella --help` must not wait for numba. A mistake of the user ends with one sentence, no
traceback, and exit code 2.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .. import __version__
from ..exceptions import TessellaError

__all__ = ["app", "main"]

app = typer.Typer(
    name="tessella",
    help="Mask tables about people or firms: no record stands for fewer than k.",
    epilog="Start with: tessella demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; errors of tessella become one sentence and exit code 2."""
    try:
        app()
    except TessellaError as error:
        from rich.console import Console
        from rich.text import Text

        Console(stderr=True).print(Text.assemble(("Error: ", "bold red"), str(error)))
        sys.exit(2)


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
    n: Annotated[int, typer.Option("--n", "-n", help="Number of firms.")] = 2000,
    k: Annotated[int, typer.Option("--k", "-k", help="Fewest records in a group.")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, another survey.")] = 1,
    method: Annotated[
        str, typer.Option("--method", help="How to group: search, mdav, igd, ...")
    ] = "search",
    effort: Annotated[
        str, typer.Option("--effort", help="Of the search: quick, standard or thorough.")
    ] = "quick",
) -> None:
    """Mask a made-up business survey and give an account of it."""
    from .demo import run

    run(n=n, k=k, seed=seed, method=method, effort=effort)
