"""Plan files read whole: every mistake at once, with its line and what to do."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from ..exceptions import BadOptionError, Mistake, PlanFileError, TessellaError
from ..release import Step
from ..release.steps import PREPARING, make_masker
from ..rules import Rules
from ..schema import Schema
from .model import PlanFile, find_line, lines_of_keys

__all__ = ["parse_plan", "read_plan"]

LARGEST = 10_000_000  # bytes

Found = tuple[int | None, Mistake]  # a mistake and its line


def read_plan(path: str | os.PathLike[str]) -> PlanFile:
    """Read and check a plan file.

    Parameters
    ----------
    path : path
        A TOML file; names of files in it are relative to its own folder.

    Raises
    ------
    PlanFileError
        With all mistakes, each with its line.
    """
    where = Path(path)
    try:
        if where.stat().st_size > LARGEST:
            raise BadOptionError("plan", str(path), f"a file of at most {LARGEST:,} bytes")
        text = where.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise BadOptionError("plan", str(path), f"a plan file; {reason}") from None
    except UnicodeDecodeError:
        raise BadOptionError("plan", str(path), "a text file in UTF-8") from None
    return parse_plan(text, folder=where.parent, origin=where.name)


def parse_plan(text: str, *, folder: str | Path = ".", origin: str = "the plan") -> PlanFile:
    """Read and check the text of a plan file.

    Examples
    --------
    >>> from tessella.planfile import parse_plan
    >>> plan = parse_plan('''
    ... [input]
    ... file = "firms.csv"
    ... [[steps]]
    ... method = "protect"
    ... k = 5
    ... [output]
    ... file = "release.csv"
    ... ''')
    >>> plan.steps[0].options
    {'k': 5}
    """
    try:
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        told = re.search(r"at line (\d+)", str(error))
        line = int(told[1]) if told else None
        what = re.sub(r"\s*\(at .*\)$", "", str(error))
        mistake = Mistake(where=_place(line), message=f"This is not TOML: {what}.")
        raise PlanFileError([mistake], origin=origin) from None
    lines = lines_of_keys(text)
    steps, found = _steps(given.get("steps"), lines)
    checked = {**given, "steps": steps or [Step(method="drop")], "folder": Path(folder)}
    if "folder" in given:
        found.append(_unknown(("folder",), PlanFile, lines))
    plan: PlanFile | None = None
    try:
        plan = PlanFile.model_validate(checked)
    except ValidationError as error:
        found += [_mistake(dict(fault), lines) for fault in error.errors()]
    if plan is not None:
        found += _across(plan, lines)
    if found or plan is None:
        in_order = sorted(found, key=lambda at: at[0] or 0)
        raise PlanFileError([mistake for _, mistake in in_order], origin=origin)
    return plan


def _place(line: int | None, where: str = "") -> str:
    return ", ".join(filter(None, [f"line {line}" if line else "", where])) or "the plan"


def _at(line: int | None, where: str, message: str, hint: str = "") -> Found:
    return line, Mistake(where=_place(line, where), message=message, hint=hint)


def _steps(given: Any, lines: dict[Any, int]) -> tuple[list[Step], list[Found]]:
    """Build each step; a masker's parameters are looked at before anything is read."""
    if not isinstance(given, list) or not given:
        hint = 'Write [[steps]], method = "protect", k = 5.'
        line = find_line(lines, ("steps",))
        return [], [_at(line, "steps", "There are no steps: what is to be done?", hint)]
    steps, found = [], []
    for at, known in enumerate(given):
        try:
            if not isinstance(known, Mapping):
                raise BadOptionError("step", type(known).__name__, "a table [[steps]]")
            step = Step.from_dict(known)
            _look_at(step)
            steps.append(step)
        except TessellaError as error:
            line = find_line(lines, ("steps", at))
            found.append(_at(line, f"steps, number {at + 1}", str(error)))
    return steps, found


def _look_at(step: Step) -> None:
    """Find wrong values of a step's options, as far as they can be known without the data."""
    if step.method == "protect":
        if not isinstance(step.options.get("k"), int) or isinstance(step.options["k"], bool):
            raise BadOptionError("k", step.options.get("k"), "a whole number of at least 2")
        return
    if step.method in PREPARING:
        return
    masker = make_masker(step, schema=Schema([]), rules=Rules(), seed=None)
    if hasattr(masker, "_check"):
        masker._check()


def _mistake(fault: dict[str, Any], lines: dict[Any, int]) -> Found:
    """Put one fault that pydantic found into our words."""
    path = tuple(fault["loc"])
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(path, _owner(path), lines)
    where = ".".join(map(str, path))
    said = {
        "missing": "It is missing.",
        "literal_error": f"It must be {context.get('expected', '')}.",
        "value_error": _sentence(str(context.get("error", fault["msg"]))),
    }
    message = said.get(kind) or _sentence(str(fault["msg"]).replace("Input should", "It should"))
    return _at(find_line(lines, path), where, message)


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _unknown(path: tuple[Any, ...], owner: type[BaseModel], lines: dict[Any, int]) -> Found:
    name = str(path[-1])
    known = [field for field in owner.model_fields if field != "folder"]
    near = get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(known)}."
    where = ".".join(map(str, path))
    return _at(find_line(lines, path), where, f"{name!r} is not known here.", hint)


def _owner(path: tuple[Any, ...]) -> type[BaseModel]:
    """Return the part of the plan in which a path ends."""
    owner: type[BaseModel] = PlanFile
    for piece in path[:-1]:
        field = owner.model_fields.get(str(piece))
        if field is None:
            continue
        parts = [field.annotation, *get_args(field.annotation)]
        inner = [p for p in parts if isinstance(p, type) and issubclass(p, BaseModel)]
        owner = inner[0] if inner else owner
    return owner


def _across(plan: PlanFile, lines: dict[Any, int]) -> Iterator[Found]:
    """Find what only shows when parts are seen together."""
    if not plan.columns:
        return
    for at, step in enumerate(plan.steps):
        for option in ("columns", "column", "strata"):
            named = step.options.get(option)
            for name in [named] if isinstance(named, str) else named or ():
                if isinstance(name, str) and name not in plan.columns:
                    near = get_close_matches(name, list(plan.columns), n=1)
                    yield _at(
                        find_line(lines, ("steps", at, option)),
                        f"steps, number {at + 1}",
                        f"There is no column {name!r}.",
                        f"Did you mean {near[0]!r}?" if near else "",
                    )
