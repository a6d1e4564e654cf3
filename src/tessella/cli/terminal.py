"""What commands print, and how options of several values are read.

What a command found goes to standard output, as text or, with --json, as one JSON value. All else,
whoever prints it, goes to standard error: `tessella plan ... > plan.toml` holds the plan alone.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.text import Text
from typer import BadParameter
from typer.core import TyperCommand

from .. import io as files
from .._clock import TimeLeft
from .._output import plain_data
from .._progress import terminal_bar
from ..exceptions import BadFileError, BadOptionError, TessellaError

if TYPE_CHECKING:
    from ..io import Source

DONE, REFUSED = 0, 1  # exit codes

COMPILING = "Compiling kernels, once; later runs start at once (to do it ahead: tessella warm-up)."

Step = Callable[[int, int, str], object]
_RESULT: ContextVar[TextIO] = ContextVar("result")
_RUNNING: ContextVar[Any] = ContextVar("running")  # the context of the command
_NOTED: ContextVar[list[str]] = ContextVar("noted")  # what is printed once in a command


class Command(TyperCommand):
    """A command of which only the result goes to standard output, whatever libraries print."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; what is no number is refused in our words."""
        try:
            return super().parse_args(ctx, args)
        except BadParameter as error:
            error.message = error.message.replace("Input should be", "it must be")
            if found := re.search(r"valid (integer|number|float)\b", error.message):
                error.message = f"give a {'whole ' * (found[1] == 'integer')}number."
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        token = _RESULT.set(sys.stdout or io.StringIO())  # none if it is closed
        running = _RUNNING.set(ctx)
        noted = _NOTED.set([])
        try:
            with redirect_stdout(sys.stderr):
                return super().invoke(ctx)
        except TessellaError as error:
            from ..planfile.hints import reword

            problem = _problem_of_release(error, ctx.params)
            reword(error, lambda text: in_options(_without_reading(text, problem)))
            raise
        finally:
            _RESULT.reset(token)
            _RUNNING.reset(running)
            _NOTED.reset(noted)


def _problem_of_release(error: TessellaError, given: Any) -> str:
    """Return what is wrong with the file that is compared with an original, if that is it."""
    if not isinstance(error, BadFileError) or "original" not in given:
        return ""
    return error.problem if Path(error.path) == Path(given["release"]) else ""


def _without_reading(text: str, problem: str) -> str:
    """Leave out options of reading where they do not help: they are for the original."""
    from ..planfile.hints import ARGUMENT, READING

    if not problem or not any(one["name"] in READING for one in ARGUMENT.finditer(text)):
        return text
    return f"{problem} Write the release again, as CSV in UTF-8 or as Parquet."


def in_options(text: str) -> str:
    """Write hints in a message as options of the command that is running, or for its plan."""
    from ..planfile.hints import for_command

    context = _RUNNING.get()
    named = [max(one.opts, key=len) for one in context.command.params if one.opts[0][0] == "-"]
    planned = bool(context.params.get("plan"))
    if planned and context.command.name == "protect":
        named = ["--overwrite"]  # the plan says the rest
    flags = {flag.strip("-").replace("-", "_"): flag for flag in named}
    other = {
        "random_state": "seed",
        "grouping": "method",
        "time_limit": "time",
    }  # what the library calls them
    flags |= {name: flags[flag] for name, flag in other.items() if flag in flags}
    return for_command(text, flags, planned=planned)


def options_for_plan(**instead: Any) -> str:
    """Return the options that the command was given and `tessella plan` has as well, to paste."""
    context = _RUNNING.get()
    there = context.parent.command.get_command(context, "plan").params
    own = ("out", "overwrite", "quiet")
    flags = {param.name: max(param.opts, key=len) + " " for param in there if param.name not in own}
    flags |= {"effort": "--option effort=", "time": "--option time_limit="}
    words = []
    for param in context.command.params:
        given = context.get_parameter_source(param.name).name == "COMMANDLINE"
        value = instead.get(param.name, context.params[param.name])
        if param.name in flags and param.opts[0][0] == "-" and (given or param.name in instead):
            flag = "-k " if param.name == "k" else flags[param.name]
            several = value if isinstance(value, list | tuple) else [value]
            words += [f"{flag}{shlex.quote(str(one))}" for one in several]
    return " ".join(words)


def result_stream() -> TextIO:
    """Return where the result of the command goes."""
    return _RESULT.get(sys.stdout)


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
        # Broken by the terminal alone: what is pasted has no line breaks of ours.
        self.aside.print(text if not isinstance(text, str) else Text(text), soft_wrap=True)

    def detail(self, text: Any) -> None:
        """Print something beside the result if --verbose asks for it."""
        if self.verbose:
            self.say(text)

    def give(self, text: str, data: Any) -> None:
        """Print the result: text for people, or data for machines."""
        if self.machine:
            result_stream().write(as_json(data) + "\n")
        elif text:
            result_stream().write(text.rstrip("\n") + "\n")

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Print what is being waited for: in passing on a terminal, as a line elsewhere."""
        console = self.aside
        with noting_compilation(console):
            if console.is_terminal and not console.quiet:
                with console.status(what):
                    yield
                return
            console.print(Text(what))
            yield

    @contextmanager
    def progress(
        self, what: str, *, timed: bool = False, limit: float | None = None
    ) -> Iterator[Step]:
        """Draw a bar; `timed`, with the time that is left. Elsewhere than on a terminal, a line.

        Without `timed` the names have it where it is known. `limit` are seconds of a budget.
        """
        console = self.aside
        if not console.is_terminal or console.quiet:
            console.print(Text(what))
            with noting_compilation(console):
                yield lambda done, total, name: None  # noqa: ARG005
            return
        left = TimeLeft(limit)
        with terminal_bar(console, what) as draw, noting_compilation(console):
            yield lambda done, total, name: draw(
                done, total, name + (left(done, total) if timed else "")
            )


@contextmanager
def noting_compilation(console: Console) -> Iterator[None]:
    """Print, once in a command, that kernels are compiled, if any is."""
    from ..kernels import watch_compilation

    noted = _NOTED.get([])

    def note() -> None:
        if COMPILING not in noted:
            noted.append(COMPILING)
            console.print(Text(COMPILING))

    with watch_compilation(note):
        yield


def as_json(data: Any) -> str:
    """Write plain values as JSON; what is not finite becomes null, as JSON has no word for it."""
    return json.dumps(plain_data(data), ensure_ascii=False, indent=2, sort_keys=False)


def wishes_of(
    grouping: str | None, given: Sequence[str], effort: str | None = None, time: float | None = None
) -> dict[str, Any]:
    """Read the grouping of a step and its options, values as a plan file writes them.

    Examples
    --------
    >>> from tessella.cli.terminal import wishes_of
    >>> wishes_of("fuzzy", ["m2=1.3", "at_least_k=false"])
    {'grouping': 'fuzzy', 'options': {'m2': 1.3, 'at_least_k': False}}
    """
    import tomllib

    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BadOptionError("--option", text, "name=value, such as effort=quick")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = value
    found |= {} if effort is None else {"effort": effort}
    found |= {} if time is None else {"time_limit": time}
    named = {} if grouping is None else {"grouping": grouping}
    return {**named, "options": found} if found else named


def options_of(given: Sequence[str]) -> dict[str, Any]:
    """Read options of reading, such as decimal=, or sheet=2024; of one column types.x=text.

    Examples
    --------
    >>> from tessella.cli.terminal import options_of
    >>> options_of(["decimal=comma", "types.zip=text", "missing.age=N", "missing.age=-"])
    {'decimal': ',', 'types': {'zip': 'text'}, 'missing': {'age': ['N', '-']}}
    """
    from inspect import signature

    from ..io import read_file

    known = [name for name in signature(read_file).parameters if name not in ("path", "metadata")]
    named = {"tab": "\t", "comma": ",", "semicolon": ";", "point": ".", "space": " ", "none": ""}
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BadOptionError("--read", text, "name=value, such as decimal=comma")
        option, point, column = name.partition(".")
        if option not in known:
            raise BadOptionError(
                "--read", text, f"NAME=VALUE with one of the names {', '.join(known)}"
            )
        once = "the option once for all columns, or for each of some"
        if point and option in ("types", "dates", "missing"):
            own = found.setdefault(option, {})
            if not isinstance(own, dict):
                raise BadOptionError("--read", text, once)
            own[column] = [*own.get(column, ()), value] if option == "missing" else value
        elif name == "missing":
            if isinstance(found.setdefault(name, []), dict):
                raise BadOptionError("--read", text, once)
            found[name].append(value)
        elif name in ("columns", "names"):
            found[name] = columns_of(value)
        elif name == "header":
            if value not in ("true", "false"):
                raise BadOptionError("--read", text, "header=true or header=false")
            found[name] = value == "true"
        elif name == "skip":
            if not value.isdecimal():
                raise BadOptionError("--read", text, "a number of lines, such as skip=3")
            found[name] = int(value)
        else:
            found[name] = named.get(value, value)
    return found


def dominance_of(rule: str | None, action: str | None) -> dict[str, Any]:
    """Read --dominance and --on-dominance as options of a step.

    Examples
    --------
    >>> from tessella.cli.terminal import dominance_of
    >>> dominance_of("n=1,k=85", "enlarge")
    {'dominance': {'n': 1, 'k': 85}, 'on_dominance': 'enlarge'}
    """
    from ..grouping.dominance import ON_DOMINANCE, DominanceRule

    found: dict[str, Any] = {}
    if rule is not None:
        pairs = [one.partition("=") for one in (rule if "=" in rule else f"p={rule}").split(",")]
        try:
            numbers = {name.strip(): float(value) for name, _, value in pairs}
            whole = {n: int(v) if v.is_integer() else v for n, v in numbers.items()}
            DominanceRule.of(whole)
        except (ValueError, OverflowError):
            raise BadOptionError(
                "--dominance", rule, "10 for the p% rule, or n=1,k=85, in per cent"
            ) from None
        found["dominance"] = whole
    if action is not None:
        if not ON_DOMINANCE.accepts(action):
            raise BadOptionError("--on-dominance", action, "report, enlarge or refuse")
        found["on_dominance"] = action
    return found


def diversity_of(least: str | None, most: str | None) -> dict[str, Any]:
    """Read --l and --t as options of a step.

    Examples
    --------
    >>> from tessella.cli.terminal import diversity_of
    >>> diversity_of("recursive=2,3", "equal=0.2")
    {'l': {'recursive': [2, 3]}, 't': {'equal': 0.2}}
    """
    from ..planfile.diversity_text import read_requirement

    given = {"l": least, "t": most}
    return {
        name: read_requirement(name, text, who=f"--{name}")
        for name, text in given.items()
        if text is not None
    }


def columns_of(text: str | None) -> list[str] | None:
    """Read names of columns between commas; a name with a comma stands in double quotes."""
    if text is None:
        return None
    import csv

    (names,) = csv.reader([text], skipinitialspace=True, strict=True) if text.strip() else ([],)
    return [name.strip() for name in names]


def read_source(file: str, read: list[str] | None, reporter: Reporter) -> Source:
    """Read a file; with --verbose, print how it was read."""
    with reporter.waiting(f"Reading {Path(file).name} ..."):
        source = files.read_file(file, **options_of(read or []))
    reporter.detail(in_options(str(source.how)))
    return source


def read_or_sample(
    file: str, read: list[str] | None, reporter: Reporter, **where: Any
) -> tuple[Source, bool]:
    """Read a file, or a sample of one that is larger than memory; return whether that is all."""
    from ..publishing import workflow

    placed = workflow.Where(**where)
    with reporter.waiting(f"Reading {Path(file).name} ..."):
        source, whole = workflow.read_or_sample(Path(file), placed, **options_of(read or []))
    reporter.detail(str(source.how))
    if not whole:
        reporter.say(f"{file} is larger than memory: {source.n_rows:,} records, drawn at random.")
    return source, whole
