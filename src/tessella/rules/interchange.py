"""Rules in files: text, TOML, and the YAML of R's validate, told apart by the file's name."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .._toml import toml_text
from ..exceptions import BadOptionError, Mistake, RuleSyntaxError
from .collection import LARGEST, Entry, Rules

__all__ = ["from_toml", "read_file", "to_toml"]

_KEYS = ("rule", "name", "label", "tolerance")


def read_file(path: Path) -> Rules:
    """Read a file of rules: see `Rules.read`."""
    origin = path.name
    try:
        if path.stat().st_size > LARGEST:
            raise _one(origin, f"The file has more than {LARGEST:,} bytes.")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise BadOptionError("path", str(path), f"a file of rules; {reason}") from None
    except UnicodeDecodeError:
        raise _one(origin, "The file is not text in UTF-8.", "Save it as UTF-8.") from None
    if path.suffix.lower() == ".toml":
        return from_toml(text, folder=path.parent, origin=origin)
    if path.suffix.lower() in (".yaml", ".yml"):
        from .validate import from_validate

        return from_validate(text, origin=origin)
    return Rules.parse(text, folder=path.parent, origin=origin)


def from_toml(text: str, *, folder: str | Path | None = None, origin: str | None = None) -> Rules:
    """Read rules from TOML: see `Rules.from_toml`."""
    try:
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _one(origin, f"This is not TOML: {error}.") from None
    rules = given.get("rules")
    if not isinstance(rules, list):
        hint = 'Write rules = ["age >= 0"], or tables [[rules]] with rule = "age >= 0".'
        raise _one(origin, "There is no list of rules.", hint)
    mistakes: list[Mistake] = []
    entries = []
    for at, rule in enumerate(rules, start=1):
        entry, wrong = _entry(rule, f"rule {at}")
        mistakes += wrong
        entries += [] if wrong else [entry]
    return Rules.from_entries(entries, folder=folder, origin=origin, mistakes=mistakes)


def _entry(given: Any, where: str) -> tuple[Entry, list[Mistake]]:
    if isinstance(given, str):
        given = {"rule": given}
    wrong = [Mistake(where=where, message=m, hint=h) for m, h in _faults(given)]
    if wrong:
        return Entry(text="", where=where), wrong
    tolerance = given.get("tolerance")
    text = str(given["rule"])
    return Entry(
        text=text if tolerance is None else f"{text} ± {tolerance!r}",
        where=where,
        name=given.get("name"),
        label=given.get("label"),
    ), []


def _faults(given: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(given, Mapping):
        yield f"{given!r} is no rule.", 'Write a text, or a table with rule = "age >= 0".'
        return
    for key in given:
        if key not in _KEYS:
            yield f"A rule has no {key!r}.", f"It has {', '.join(_KEYS)}."
    rule = given.get("rule")
    if not isinstance(rule, str) or not rule.strip() or "\n" in rule:
        yield "The rule has no text, or more than one line of it.", 'Write rule = "age >= 0".'
    for key in ("name", "label"):
        if key in given and not (isinstance(given[key], str) and given[key].isprintable()):
            yield f"The {key} is {given[key]!r}.", "Give a text of one line."
    tolerance = given.get("tolerance", 0)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or tolerance < 0:
        yield f"The tolerance is {tolerance!r}.", "Give a number of at least 0."


def to_toml(rules: Rules) -> str:
    """Write rules as TOML: see `Rules.to_toml`."""
    tables = []
    for at, rule in enumerate(rules, start=1):
        lines = ["[[rules]]"]
        if rule.name != f"R{at}":
            lines.append(f"name = {toml_text(rule.name)}")
        lines.append(f"rule = {toml_text(rule.text)}")
        if rule.label:
            lines.append(f"label = {toml_text(rule.label)}")
        tables.append("\n".join(lines) + "\n")
    return "\n".join(tables) or "rules = []\n"


def _one(origin: str | None, message: str, hint: str = "") -> RuleSyntaxError:
    mistake = Mistake(where="file", message=message, hint=hint)
    return RuleSyntaxError([mistake], origin=origin or "the rules")
