"""What commands share: their options, and what they print.

What a command found goes to standard output, as text or, with --json, as one JSON value. All else
goes to standard error, so that `tessella plan ... > plan.toml` holds the plan alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text as RichText
from typer import Argument, Option

from .._plain import plain_data
from ..exceptions import BadOptionError

DONE, REFUSED = 0, 1  # exit codes

# Options that several commands share.
Text = str | None
File = Annotated[
    str, Argument(metavar="FILE", help="CSV, Parquet, Arrow, Excel, SPSS, Stata or SAS.")
]
Original = Annotated[str, Argument(metavar="ORIGINAL", help="The file before masking.")]
Masked = Annotated[str, Argument(metavar="RELEASE", help="The masked file, of any tool.")]
Read = Annotated[
    list[str] | None,
    Option(
        metavar="NAME=VALUE",
        help="How the file is written, where it cannot be found out: delimiter=semicolon, "
        "decimal=comma, encoding=latin-1, missing=NA, sheet=2024. May be repeated.",
    ),
]
RulesFile = Annotated[Text, Option("--rules", "-r", help="A file of edit rules.")]
_K = Option("--k", "-k", help="Fewest records that share their values.")
K = Annotated[int, _K]
MaybeK = Annotated[int | None, _K]
Strata = Annotated[
    Text, Option(help="Columns that put records apart and are released as they are.")
]
Identity = Annotated[Text, Option("--id", help="A column of both files that says who is who.")]
Seed = Annotated[
    int | None, Option(help="Makes it repeatable; as confidential as the data themselves.")
]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace files that exist.")]
Json = Annotated[bool, Option("--json", help="Print JSON for machines.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print the result and nothing else.")]
Verbose = Annotated[bool, Option("--verbose", "-v", help="Print more.")]

Step = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Reporter:
    """What is printed: everything, the result alone, or JSON."""

    quiet: bool = False
    verbose: bool = False
    machine: bool = False

    @property
    def aside(self) -> Console:
        """Where everything goes that is not the result."""
        return Console(stderr=True, highlight=False, quiet=self.quiet or self.machine)

    def say(self, text: Any) -> None:
        """Print something beside the result."""
        self.aside.print(text if not isinstance(text, str) else RichText(text))

    def detail(self, text: Any) -> None:
        """Print something beside the result if --verbose asks for it."""
        if self.verbose:
            self.say(text)

    def give(self, text: str, data: Any) -> None:
        """Print the result: text for people, or data for machines."""
        if self.machine:
            sys.stdout.write(as_json(data) + "\n")
        elif text:
            sys.stdout.write(text.rstrip("\n") + "\n")

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Print what is being waited for: in passing on a terminal, as a line elsewhere."""
        console = self.aside
        if console.is_terminal and not console.quiet:
            with console.status(what):
                yield
            return
        console.print(RichText(what))
        yield

    @contextmanager
    def progress(self, what: str) -> Iterator[Step]:
        """Draw a bar with the time that is left; elsewhere than on a terminal, a few lines."""
        console = self.aside
        if not console.is_terminal or console.quiet:
            console.print(RichText(what))
            yield lambda done, total, name: None  # noqa: ARG005
            return
        bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f} of "
            "{task.total:.0f}"), TimeRemainingColumn(), console=console, transient=True,
        )  # fmt: skip
        with bar:
            task = bar.add_task(what, total=1)

            def step(done: int, total: int, name: str) -> None:
                bar.update(task, completed=done, total=max(total, 1), description=name)

            yield step


def as_json(data: Any) -> str:
    """Write plain values as JSON; what is not finite becomes null, as JSON has no word for it."""
    return json.dumps(plain_data(data), ensure_ascii=False, indent=2, sort_keys=False)


def options_of(given: Sequence[str]) -> dict[str, Any]:
    """Read options of reading, such as decimal=, or sheet=2024.

    Examples
    --------
    >>> from tessella.cli.terminal import options_of
    >>> options_of(["delimiter=;", "decimal=,", "missing=NA", "missing=.", "header=false"])
    {'delimiter': ';', 'decimal': ',', 'missing': ['NA', '.'], 'header': False}
    """
    named = {"tab": "\t", "comma": ",", "semicolon": ";", "point": ".", "space": " ", "none": ""}
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BadOptionError("--read", text, "name=value, such as decimal=,")
        if name == "missing":
            found.setdefault(name, []).append(value)
        elif name == "columns":
            found[name] = columns_of(value)
        elif name == "header":
            if value not in ("true", "false"):
                raise BadOptionError("--read", text, "header=true or header=false")
            found[name] = value == "true"
        elif name == "skip":
            if not value.isdecimal():
                raise BadOptionError("--read", text, "skip= and a number of lines")
            found[name] = int(value)
        else:
            found[name] = named.get(value, value)
    return found


def columns_of(text: str | None) -> list[str] | None:
    """Read names of columns between commas; a name with a comma stands in double quotes."""
    if text is None:
        return None
    import csv

    (names,) = csv.reader([text], skipinitialspace=True, strict=True) if text.strip() else ([],)
    return [name.strip() for name in names]
