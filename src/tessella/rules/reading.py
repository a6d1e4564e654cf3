"""Rules read from text and from files, and the tables of values that they refer to.

Files hold text, TOML, or the YAML of R's package validate, chosen by their names; tables are small
CSV files beside the rules file.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .._parameters import Number
from .._plain import toml_text
from ..exceptions import BadOptionError, Mistake, RuleSyntaxError
from .collection import Rule, Rules
from .grammar import Reader, check_tolerance
from .scanner import Wrong, cut

LARGEST = 10 * 2**20  # bytes of a rules file: far more than anybody writes
AT_LEAST_0 = Number(least=0)
_KEYS = ("rule", "name", "label", "tolerance")


@dataclass(frozen=True, kw_only=True)
class RuleEntry:
    """A rule that is still text; what is given beside it wins over what is in the text."""

    text: str
    where: str
    line: int | None = None
    name: str | None = None
    label: str | None = None


def from_entries(
    entries: Iterable[RuleEntry],
    *,
    folder: str | Path | None = None,
    origin: str | None = None,
    mistakes: Iterable[Mistake] = (),
) -> Rules:
    """Read rules that another format holds as text; all mistakes are reported together."""
    wrong = list(mistakes)
    rules: list[Rule] = []
    read: list[RuleEntry] = []
    for entry in entries:
        found = parse_line(entry.text, where=entry.where, folder=folder)
        if isinstance(found, list):
            wrong += found
            continue
        name = entry.name if entry.name is not None else found.name or f"R{len(rules) + 1}"
        label = " ".join((found.label if entry.label is None else entry.label).split())
        rules.append(replace(found, name=name, label=label, origin=origin, line=entry.line))
        read.append(entry)
    seen: dict[str, RuleEntry] = {}
    for rule, entry in zip(rules, read):
        if rule.name in seen:
            message = f"The name {rule.name!r} is that of another rule ({seen[rule.name].where})."
            hint = "A rule without a name is called R1, R2, ... by its place."
            wrong.append(Mistake(where=entry.where, message=message, hint=hint, text=entry.text))
        seen[rule.name] = entry
    if wrong:
        raise RuleSyntaxError(wrong, origin=origin or "the rules")
    return Rules(rules)


def parse_line(line: str, *, where: str, folder: str | Path | None = None) -> Rule | list[Mistake]:
    """Read one line: a rule (its name may be empty), nothing ([]), or what is wrong with it."""
    mistakes: list[Mistake] = []

    def attempt(read: Callable[..., Any], *given: Any) -> Any:
        try:
            return read(*given)
        except Wrong as wrong:
            mistakes.append(wrong.mistake(where, line))

    place = None if folder is None else Path(folder)
    parts = attempt(cut, line)
    if parts is None or parts.body is None:
        return mistakes
    condition: Any = parts.condition and attempt(Reader(parts.condition, place).read)
    body = attempt(Reader(parts.body, place).read)
    if not mistakes and parts.tolerance is not None:
        attempt(check_tolerance, body, *parts.tolerance_at)
    if mistakes:
        return mistakes
    return Rule(
        name=parts.name or "",
        condition=condition,
        body=body,
        tolerance=parts.tolerance,
        label=parts.label,
    )


def from_text(text: str | Iterable[str], *, folder: str | Path | None, origin: str | None) -> Rules:
    """Read rules from text, one a line, or from a list of lines: see `Rules.parse`."""
    if isinstance(text, str):
        if len(text) > LARGEST:
            message = f"The text has {len(text):,} characters; {LARGEST:,} are allowed."
            raise file_error(origin, message, where="size")
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    else:
        lines = []
        for line in text:
            if not isinstance(line, str) or "\n" in line.strip("\n"):
                raise BadOptionError("rules", line, "a list of texts, one rule in each")
            lines.append(line.strip("\n"))
    entries = [
        RuleEntry(text=line, where=f"line {at}", line=at)
        for at, line in enumerate(lines, start=1)
        if line.strip()
    ]
    return from_entries(entries, folder=folder, origin=origin)


def read_file(path: Path) -> Rules:
    """Read a file of rules: see `Rules.read`."""
    origin = path.name
    try:
        if path.stat().st_size > LARGEST:
            raise file_error(origin, f"The file has more than {LARGEST:,} bytes.")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise BadOptionError("path", str(path), f"a file of rules; {reason}") from None
    except UnicodeDecodeError:
        raise file_error(origin, "The file is not text in UTF-8.", "Save it as UTF-8.") from None
    if path.suffix.lower() == ".toml":
        return from_toml(text, folder=path.parent, origin=origin)
    if path.suffix.lower() in (".yaml", ".yml"):
        return Rules.from_validate(text, origin=origin)
    return Rules.parse(text, folder=path.parent, origin=origin)


def from_toml(text: str, *, folder: str | Path | None = None, origin: str | None = None) -> Rules:
    """Read rules from TOML: see `Rules.from_toml`."""
    try:
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise file_error(origin, f"This is not TOML: {error}.") from None
    rules = given.get("rules")
    if not isinstance(rules, list):
        hint = 'Write rules = ["age >= 0"], or tables [[rules]] with rule = "age >= 0".'
        raise file_error(origin, "There is no list of rules.", hint)
    mistakes: list[Mistake] = []
    entries: list[RuleEntry] = []
    for at, rule in enumerate(rules, start=1):
        entry = {"rule": rule} if isinstance(rule, str) else rule
        wrong = [Mistake(where=f"rule {at}", message=m, hint=h) for m, h in _faults(entry)]
        mistakes += wrong
        if not wrong:
            tolerance = f" ± {entry['tolerance']!r}" if "tolerance" in entry else ""
            given = {key: entry.get(key) for key in ("name", "label")}
            entries.append(RuleEntry(text=entry["rule"] + tolerance, where=f"rule {at}", **given))
    return from_entries(entries, folder=folder, origin=origin, mistakes=mistakes)


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


def file_error(
    origin: str | None, message: str, hint: str = "", where: str = "file"
) -> RuleSyntaxError:
    """Return the error for a file of rules that cannot be read at all."""
    mistake = Mistake(where=where, message=message, hint=hint)
    return RuleSyntaxError([mistake], origin=origin or "the rules")


LARGEST_CSV = 64 * 2**20  # bytes of a file


class LookupProblem(Exception):
    """A lookup table that cannot be used, and what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def read_lookup(
    path: str, columns: Sequence[Hashable], folder: Path | None
) -> tuple[tuple[str, ...], ...]:
    """Read the distinct rows of some columns of a CSV file, as text.

    Parameters
    ----------
    path : str
        The file, relative to `folder`; it must lie in that folder or below it.
    columns : sequence of names
        The columns to read; the file's first line must name them.
    folder : Path or None
        The folder of the rules file, or the one that the caller gave.
    """
    file = _find(path, folder)
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            lines = list(csv.reader(stream, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LookupProblem(
            f"The table {path!r} cannot be read: {error}.", "Save it as CSV, in UTF-8."
        ) from None
    header = [name.strip() for name in lines[0]] if lines else []
    places = [_place(str(column), header, path) for column in columns]
    rows: dict[tuple[str, ...], None] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        if len(line) != len(header):
            raise LookupProblem(
                f"Line {number} of the table {path!r} has {len(line)} cells, and the first line "
                f"has {len(header)}.",
                "Correct the file; a comma within a text needs quotes around the text.",
            )
        row = tuple(line[place].strip() for place in places)
        if "" in row:
            raise LookupProblem(
                f"Line {number} of the table {path!r} has an empty cell.",
                "List only rows that are complete: missing values are unknown to every rule.",
            )
        rows[row] = None
    if not rows:
        raise LookupProblem(f"The table {path!r} has no rows, so no record could obey.")
    return tuple(rows)


def _find(path: str, folder: Path | None) -> Path:
    if folder is None:
        raise LookupProblem(
            f"The table {path!r} is not looked for: rules that are no file have no folder.",
            "Give one: Rules.parse(text, folder=...).",
        )
    try:
        home = folder.resolve()
        file = (home / path).resolve()
        inside = file.is_relative_to(home) and not Path(path).is_absolute()
        found = inside and file.is_file()
        size = file.stat().st_size if found else 0
    except (OSError, ValueError, RuntimeError):
        inside, found, size = True, False, 0
    if not inside:
        raise LookupProblem(
            f"The table {path!r} lies outside the folder of the rules.",
            "Put the file beside the rules, or give folder=... that holds it.",
        )
    if not found:
        raise LookupProblem(f"There is no table {path!r} in {str(folder)!r}.", _near(path, folder))
    if size > LARGEST_CSV:
        raise LookupProblem(f"The table {path!r} has {size:,} bytes; {LARGEST_CSV:,} are allowed.")
    return file


def _near(path: str, folder: Path) -> str:
    try:
        names = sorted(each.name for each in folder.glob("*.csv"))[:1000]
    except OSError:
        names = []
    near = get_close_matches(path, names, n=1)
    return f"Did you mean {near[0]!r}?" if near else "Put the file beside the rules."


def _place(column: str, header: list[str], path: str) -> int:
    if header.count(column) == 1:
        return header.index(column)
    if column in header:
        raise LookupProblem(f"The table {path!r} has two columns {column!r}.")
    near = get_close_matches(column, header, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise LookupProblem(
        f"The table {path!r} has no column {column!r}.",
        f"{hint}Its first line names: {', '.join(header[:12])}.",
    )
