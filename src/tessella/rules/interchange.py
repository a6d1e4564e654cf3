"""Rules in files: text, TOML, and the YAML of R's package validate, chosen by the file's name.

References
----------
van der Loo, M. P. J. and de Jonge, E. (2021). Data validation infrastructure for R. Journal of
Statistical Software 97(10).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from .._lazy import optional
from .._parameters import Number
from .._toml import toml_text
from ..exceptions import BadOptionError, Mistake, RuleSyntaxError, RuleTranslationError
from .collection import LARGEST, RuleEntry, Rules
from .r_language import Unsayable, from_r, to_r
from .rule import parse_line
from .scanner import Wrong

__all__ = ["from_toml", "from_validate", "read_file", "to_toml", "to_validate"]

AT_LEAST_0 = Number(least=0)
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


def _entry(given: Any, where: str) -> tuple[RuleEntry, list[Mistake]]:
    if isinstance(given, str):
        given = {"rule": given}
    wrong = [Mistake(where=where, message=m, hint=h) for m, h in _faults(given)]
    if wrong:
        return RuleEntry(text="", where=where), wrong
    tolerance = given.get("tolerance")
    text = str(given["rule"])
    return RuleEntry(
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
    if not AT_LEAST_0.accepts(tolerance):
        yield f"The tolerance is {tolerance!r}.", f"Give {AT_LEAST_0}."


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


LARGEST_YAML = 2**20  # characters; YAML is read slowly


def from_validate(text: str, *, origin: str | None = None) -> Rules:
    """Read the YAML of R's validate: see `Rules.from_validate`."""
    mistakes: list[Mistake] = []
    entries: list[RuleEntry] = []
    for at, given in enumerate(_listed(text, origin), start=1):
        where = f"rule {at}"
        if not isinstance(given, Mapping) or not isinstance(given.get("expr"), str):
            mistakes.append(
                Mistake(where=where, message="There is no expr.", hint="Write expr: age >= 0.")
            )
            continue
        entry = _validate_entry(given, where, at)
        if isinstance(entry, RuleEntry):
            entries.append(entry)
        else:
            mistakes.append(entry)
    return Rules.from_entries(entries, origin=origin, mistakes=mistakes)


def _listed(text: str, origin: str | None) -> Iterator[Any]:
    """Yield what stands in the lists of rules of all documents of the text."""
    yaml = optional("yaml", extra="validate", purpose="The YAML of R's validate")

    wrong = partial(_one, origin)

    if len(text) > LARGEST_YAML:
        raise wrong(f"The text has more than {LARGEST_YAML:,} characters.")
    try:
        # A few anchors can stand for millions of nodes; no rules file needs one.
        anchors = (yaml.tokens.AnchorToken, yaml.tokens.AliasToken)
        anchored = any(isinstance(token, anchors) for token in yaml.scan(text, yaml.SafeLoader))
        loaded = [] if anchored else list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise wrong(f"This is not YAML: {' '.join(str(error).split())}.") from None
    if anchored:
        raise wrong("Anchors and aliases (& and *) of YAML are not read.", "Write them out.")
    lists = []
    for document in (each for each in loaded if each is not None):
        if not isinstance(document, Mapping):
            raise wrong("There is no list of rules.", "Write rules: and, below it, - expr: ...")
        if "include" in document:
            raise wrong("The file includes other files, which are not read.", "Read each of them.")
        if "rules" in document:
            lists.append(document["rules"])
    if not lists or not all(isinstance(each, list) for each in lists):
        raise wrong("There is no list of rules.", "Write rules: and, below it, - expr: ...")
    for each in lists:
        yield from each


def _validate_entry(given: Mapping[str, Any], where: str, at: int) -> RuleEntry | Mistake:
    expression = " ".join(given["expr"].split())
    name, label = given.get("name"), given.get("label") or given.get("title") or ""
    try:
        line = from_r(expression)
        name = None if name in (None, "") or name == f"R{at}" else str(name)
        if name is not None and not name.isprintable():
            raise Wrong(0, 1, f"The name {name!r} is not text of one line.")
    except Wrong as wrong:
        return Mistake(
            where=where,
            message=wrong.message,
            hint=wrong.hint,
            text=expression,
            start=wrong.start,
            width=wrong.end - wrong.start,
        )
    found = parse_line(line, where=where)
    if isinstance(found, list):  # the caret stands in R's text, not in ours
        return Mistake(
            where=where,
            message=found[0].message,
            hint=found[0].hint,
            text=expression,
            start=0,
            width=len(expression),
        )
    return RuleEntry(text=line, where=where, name=name, label=str(label))


def to_validate(rules: Rules) -> str:
    """Write rules as the YAML of R's validate: see `Rules.to_validate`."""
    yaml = optional("yaml", extra="validate", purpose="The YAML of R's validate")
    problems, listed = [], []
    for rule in rules:
        try:
            entry = {"expr": to_r(rule), "name": rule.name, "label": rule.label}
        except Unsayable as what:
            problems.append(f"{rule.where}: {what} ({rule.text})")
        else:
            listed.append(entry)
    if problems:
        raise RuleTranslationError(problems, language="R's validate")
    text: str = yaml.safe_dump({"rules": listed}, sort_keys=False, allow_unicode=True, width=10**6)
    return text
