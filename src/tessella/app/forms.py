"""Between browser and library: what forms state, what is true of it, how pages are filled in."""

import re
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ..exceptions import BadOptionError, Mistake, UnknownOptionError
from ..pictures.drawing import sparkline
from ..reports.rendering import templates
from ..schema import Kind, Role

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


STATIC = {"app.css": "text/css"} | dict.fromkeys(
    ("app.js", "early.js", "htmx.min.js"), "text/javascript"
)

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


@cache
def environment() -> Any:
    """Return the templates of the reports, with those of the pages."""
    from jinja2 import ChoiceLoader, PackageLoader

    shared = templates()
    own = shared.overlay(
        loader=ChoiceLoader([PackageLoader("tessella.app", "templates"), shared.loader])
    )
    own.filters = shared.filters | {
        "bytes": in_bytes, "duration": duration, "when": when, "sparkline": sparkline,
    }  # fmt: skip
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
        light, dark, drawing = (
            environment().loader.get_source(environment(), f"{one}.css")[0]
            for one in ("style", "dark", "drawing")
        )
        text = f"{light}@media (prefers-color-scheme: dark) {{{dark}}}\n{text}{drawing}"
    return Response(text, media_type=STATIC[name])
