"""Between browser and library: what forms state, what is true of it, how pages are filled in."""

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, get_args

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ..exceptions import (
    BadOptionError,
    Mistake,
    PlanFileError,
    RuleSyntaxError,
    TessellaError,
    UnknownOptionError,
)
from ..io import Source, read_file
from ..planfile import PlanFile, parse_plan
from ..reports.rendering import templates
from ..rules import Rules
from ..schema import Kind, Role, Schema
from .folder import Folder

KINDS, ROLES = get_args(Kind), get_args(Role)
SIGNS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "space": " ", "point": ".",
         "apostrophe": "'", "none": ""}  # fmt: skip
# How a file is written, where it cannot be found out: title and choices, none for free text.
READING: dict[str, tuple[str, tuple[str, ...]]] = {
    "delimiter": ("Delimiter", ("comma", "semicolon", "tab", "bar", "space")),
    "decimal": ("Decimal sign", ("point", "comma")),
    "thousands": ("Thousands", ("none", "comma", "point", "space", "apostrophe")),
    "header": ("Names in the first line", ("yes", "no")),
    "encoding": ("Encoding", ()),
    "missing": ("Texts that mean missing", ()),
    "sheet": ("Sheet", ()),
}


STATIC = {"app.css": "text/css", "app.js": "text/javascript", "htmx.min.js": "text/javascript"}

Values = Mapping[str, str]


def reading_options(given: Values) -> dict[str, Any]:
    """Read the options of reading that a form states; empty ones are found out."""
    found: dict[str, Any] = {}
    for name, (_, choices) in READING.items():
        value = given.get(name, "").strip()
        if not value:
            continue
        if choices and value not in choices:
            raise UnknownOptionError(name, value, choices)
        if name == "missing":
            found[name] = [text.strip() for text in value.split(",") if text.strip()]
        elif name == "header":
            found[name] = value == "yes"
        else:
            found[name] = SIGNS[value] if choices else value
    return found


class Sources:
    """The table that was read last, so that looking at a page again does not read it again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[Any, Source] | None = None

    def read(self, path: Path, options: Mapping[str, Any]) -> Source:
        """Read a file, unless it is the last one and has not changed."""
        with self._lock:
            stamp = path.stat() if path.exists() else None
            state = stamp and (stamp.st_mtime_ns, stamp.st_size)
            key = path, state, repr(sorted(options.items()))
            if self._last is None or self._last[0] != key:
                self._last = None  # one table in memory at a time
                self._last = key, read_file(path, **options)
            return self._last[1]


def first_values(schema: Schema) -> dict[str, str]:
    """Return what the form of the columns says at first: the guess, but nothing that it lets out.

    A column that is named like a weight would be released as it is: a person has to say so.
    """
    values: dict[str, str] = {}
    for at, column in enumerate(schema):
        careful = column.guessed and column.role == "weight"
        values[f"kind-{at}"] = column.kind
        values[f"role-{at}"] = "quasi-identifier" if careful else column.role
    return values


def schema_of(guess: Schema, values: Values) -> Schema:
    """Return the schema that a form states: what differs from the guess was stated by a person.

    A form that lacks a field states what it says at first.
    """
    changes: dict[Any, dict[str, Any]] = {}
    values = first_values(guess) | dict(values)
    for at, column in enumerate(guess):
        kind, role = values[f"kind-{at}"], values[f"role-{at}"]
        for name, value, offered in (("kind", kind, KINDS), ("role", role, ROLES)):
            if value not in offered:
                raise UnknownOptionError(f"{name} of column {str(column.name)!r}", value, offered)
        change = {"kind": kind} if kind != column.kind else {}
        if role != column.role or role == "weight":
            change["role"] = role
        if change:
            changes[column.name] = change
    return guess.override(changes)


def strata_of(schema: Schema, values: Values) -> list[str]:
    """Return the columns that are ticked as strata."""
    return [str(c.name) for at, c in enumerate(schema) if values.get(f"stratum-{at}")]


def whole_number(values: Values, name: str, *, least: int = 0) -> int | None:
    """Read a whole number; None if nothing was typed."""
    text = values.get(name, "").strip()
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) < least:
        raise BadOptionError(name, text, f"a whole number of at least {least}")
    return int(text)


def line_of(mistake: Mistake) -> int | None:
    """Return the line of a mistake, if it has one."""
    found = re.match(r"line (\d+)", mistake.where)
    return int(found[1]) if found else None


@dataclass(frozen=True, kw_only=True)
class JudgedRules:
    """What is true of rules: mistakes in their text, or how the table obeys them."""

    mistakes: tuple[Mistake, ...] = ()
    problem: str = ""
    lines: tuple[dict[str, Any], ...] = ()
    findings: tuple[tuple[bool, str], ...] = ()  # whether it is grave, and what it is
    breaking: int = 0

    @property
    def usable(self) -> bool:
        """Whether the rules can go into a plan."""
        return not self.mistakes and not self.problem


def judge_rules(text: str, path: Path | None, source: Source, schema: Schema) -> JudgedRules:
    """Read rules, from a file or as they were typed, and confront the table with them."""
    try:
        home = source.path.parent
        rules = Rules.read(path) if path else Rules.parse(text, folder=home)
        fixed = rules.fix(source.table, schema=schema)
        result = fixed.confront(source.table, schema=schema)
        findings = tuple((found.is_grave, str(found)) for found in rules.check())
    except RuleSyntaxError as error:
        return JudgedRules(mistakes=error.mistakes)
    except TessellaError as error:
        return JudgedRules(problem=str(error))
    lines = [
        {"name": rule.name, "text": rule.text, "broken": len(result.rows[at]),
         "unknown": int((result.signs[:, at] == 0).sum())}
        for at, rule in enumerate(rules)
    ]  # fmt: skip
    return JudgedRules(lines=tuple(lines), findings=findings, breaking=len(result.breaking()))


@dataclass(frozen=True, kw_only=True)
class JudgedPlan:
    """What is true of the text of a plan: every mistake, or the plan and what it would replace."""

    plan: PlanFile | None = None
    mistakes: tuple[Mistake, ...] = ()
    existing: tuple[str, ...] = ()
    source: Source | None = field(default=None, repr=False)


def judge_plan(text: str, folder: Folder, origin: str, sources: Sources | None) -> JudgedPlan:
    """Check the text of a plan; with `sources` also against the file and the rules it names."""
    try:
        plan = parse_plan(text, folder=folder.path, origin=origin)
        folder.check_plan(plan)
        existing = tuple(n for n in plan.output.files.values() if folder.inside(n).exists())
        if sources is None:
            return JudgedPlan(plan=plan, existing=existing)
        source = sources.read(plan.path(plan.input.file), plan.input.options)
        plan.study(source)
    except (PlanFileError, RuleSyntaxError) as error:
        return JudgedPlan(mistakes=error.mistakes)
    except TessellaError as error:
        return JudgedPlan(mistakes=(Mistake(where="the plan", message=str(error)),))
    return JudgedPlan(plan=plan, existing=existing, source=source)


@cache
def environment() -> Any:
    """Return the templates of the reports, with those of the pages."""
    from jinja2 import ChoiceLoader, PackageLoader

    shared = templates()
    own = shared.overlay(
        loader=ChoiceLoader([PackageLoader("tessella.app", "templates"), shared.loader])
    )
    own.filters = shared.filters | {"bytes": in_bytes, "duration": duration, "when": when}
    return own


def in_bytes(size: float) -> str:
    """Write a size for a reader."""
    if size < 1024:
        return f"{size:.0f} B"
    power = 1 if size < 2**20 else 2 if size < 2**30 else 3
    size /= 1024**power
    return f"{size:.{int(size < 10)}f} {('KB', 'MB', 'GB')[power - 1]}"


def duration(seconds: float) -> str:
    """Write a time for a reader."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def when(moment: float) -> str:
    """Write a moment in local time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def static(request: Request) -> Response:
    """Give a file of the app itself; the style begins with that of the reports."""
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404)
    path = Path(__file__).parent / "static" / name
    text = path.read_text(encoding="utf-8")
    if name == "app.css":
        source, _, _ = environment().loader.get_source(environment(), "style.css")
        text = source + text
    return Response(text, media_type=STATIC[name])
