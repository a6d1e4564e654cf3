"""Tables of values that rules refer to: small CSV files beside the rules file."""

from __future__ import annotations

import csv
from collections.abc import Hashable, Sequence
from difflib import get_close_matches
from pathlib import Path

__all__ = ["LookupProblem", "read_lookup"]

LARGEST = 64 * 2**20  # bytes of a file


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
    if size > LARGEST:
        raise LookupProblem(f"The table {path!r} has {size:,} bytes; {LARGEST:,} are allowed.")
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
