"""The tables that rules look values up in: CSV files in the folder of the rules, or below it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from .._types import Name
from .._wording import suggest
from .rule import Wrong

LARGEST_CSV = 64 * 2**20  # bytes of a file
_problem = partial(Wrong, 0, 0)  # the reader of the rule knows where its text names the table


def read_lookup(
    path: str, columns: Sequence[Name], folder: Path | None
) -> tuple[tuple[str, ...], ...]:
    """Read the distinct rows of some columns of a CSV file in the folder or below it, as text."""
    file = _find_file(path, folder)
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            lines = list(csv.reader(stream, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        message = f"The table {path!r} cannot be read: {error}."
        raise _problem(message, "Save it as CSV, in UTF-8.") from None
    header = [name.strip() for name in lines[0]] if lines else []
    places = [_place(str(column), header, path) for column in columns]
    rows: dict[tuple[str, ...], None] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        where = f"Line {number} of the table {path!r} has"
        if len(line) != len(header):
            message = f"{where} {len(line)} cells, and the first line has {len(header)}."
            hint = "Correct the file; a comma within a text needs quotes around the text."
            raise _problem(message, hint)
        row = tuple(line[place].strip() for place in places)
        if "" in row:
            hint = "List only rows that are complete: missing values are unknown to every rule."
            raise _problem(f"{where} an empty cell.", hint)
        rows[row] = None
    if not rows:
        raise _problem(f"The table {path!r} has no rows, so no record could obey.")
    return tuple(rows)


def _find_file(path: str, folder: Path | None) -> Path:
    if folder is None:
        message = f"The table {path!r} is not looked for: rules that are no file have no folder."
        raise _problem(message, "Give one: Rules.parse(text, folder=...).")
    try:
        home = folder.resolve()
        file = (home / path).resolve()
        inside = file.is_relative_to(home) and not Path(path).is_absolute()
        found = inside and file.is_file()
        size = file.stat().st_size if found else 0
    except (OSError, ValueError, RuntimeError):
        inside, found, size = True, False, 0
    if not inside:
        hint = "Put the file beside the rules, or give folder=... that holds it."
        raise _problem(f"The table {path!r} lies outside the folder of the rules.", hint)
    if not found:
        raise _problem(f"There is no table {path!r} in {str(folder)!r}.", _near(path, folder))
    if size > LARGEST_CSV:
        raise _problem(f"The table {path!r} has {size:,} bytes; {LARGEST_CSV:,} are allowed.")
    return file


def _near(path: str, folder: Path) -> str:
    try:
        names = sorted(each.name for each in folder.glob("*.csv"))[:1000]
    except OSError:
        names = []
    return suggest(path, names) or "Put the file beside the rules."


def _place(column: str, header: list[str], path: str) -> int:
    if header.count(column) == 1:
        return header.index(column)
    if column in header:
        raise _problem(f"The table {path!r} has two columns {column!r}.")
    hint = f"{suggest(column, header)} Its first line names: {', '.join(header[:12])}."
    raise _problem(f"The table {path!r} has no column {column!r}.", hint.lstrip())
