"""How pages look: the templates of the reports and those of the app, with one style."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ..reports.rendering import templates

__all__ = ["duration", "environment", "in_bytes", "static", "when"]

STATIC = {"app.css": "text/css", "app.js": "text/javascript", "htmx.min.js": "text/javascript"}


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
    """Write a size for a reader.

    Examples
    --------
    >>> from tessella.app.rendering import in_bytes
    >>> in_bytes(812), in_bytes(20_480), in_bytes(3 * 2**30)
    ('812 B', '20 KB', '3.0 GB')
    """
    if size < 1024:
        return f"{size:.0f} B"
    for unit in ("KB", "MB", "GB"):
        size /= 1024
        if size < 1024 or unit == "GB":
            return f"{size:.0f} {unit}" if size >= 10 else f"{size:.1f} {unit}"
    raise AssertionError


def duration(seconds: float) -> str:
    """Write a time for a reader.

    Examples
    --------
    >>> from tessella.app.rendering import duration
    >>> duration(0.41), duration(12.4), duration(75)
    ('0.4 s', '12 s', '1 min 15 s')
    """
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
