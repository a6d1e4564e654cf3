"""Where in a TOML text a key stands: its line, for messages."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["find_line", "lines_of_keys"]

Path = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""^\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)
                      (?:\s*\.\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*=\s*(.*)$""",
    re.X,
)
_PIECE = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*\.?""")


def lines_of_keys(text: str) -> dict[Path, int]:
    r"""Return the line, from 1 on, of every key and every header of a valid TOML text.

    Examples
    --------
    >>> from tessella.planfile.places import lines_of_keys
    >>> lines_of_keys('version = 1\n[[steps]]\nmethod = "drop"\n')
    {('version',): 1, ('steps', 0): 2, ('steps',): 2, ('steps', 0, 'method'): 3}
    """
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    here: Path = ()
    closing, depth = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if closing:  # inside of a text of several lines
            closing = "" if closing in line else closing
            continue
        if depth > 0:  # inside of an array of several lines
            depth += _depth(line)
            continue
        if header := _HEADER.match(line):
            here = _pieces(header[2], counts)
            if header[1] == "[[":
                at = counts.get(here, 0)
                counts[here] = at + 1
                here, array = (*here, at), here
                found[here] = number
                found.setdefault(array, number)
            else:
                found.setdefault(here, number)
        elif key := _KEY.match(line):
            found.setdefault((*here, *_names(key[1])), number)
            value = key[2]
            for quotes in ('"""', "'''"):
                if value.startswith(quotes) and quotes not in value[3:]:
                    closing = quotes
            depth = max(_depth(value), 0) if not closing else 0
    return found


def find_line(lines: dict[Path, int], path: Sequence[str | int]) -> int | None:
    """Return the line of a key, or that of the nearest table around it."""
    at = tuple(path)
    while at:
        if at in lines:
            return lines[at]
        at = at[:-1]
    return None


def _names(text: str) -> Path:
    return tuple(double or single or bare for double, single, bare in _PIECE.findall(text))


def _pieces(text: str, counts: dict[Path, int]) -> Path:
    """Return the path of a header; inside of an array of tables, the last one is meant."""
    path: Path = ()
    names = _names(text)
    for at, name in enumerate(names):
        path = (*path, name)
        if path in counts and at < len(names) - 1:
            path = (*path, counts[path] - 1)
    return path


def _depth(text: str) -> int:
    bare = re.sub(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*', "", text)
    return sum(bare.count(sign) for sign in "[{") - sum(bare.count(sign) for sign in "]}")
