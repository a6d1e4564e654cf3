"""`tessella app`: from a file to a release in the browser."""

from __future__ import annotations

from .._lazy import optional
from .reporting import Reporter

__all__ = ["run"]


def run(folder: str, *, port: int, idle: float, browser: bool, reporter: Reporter) -> None:
    """Serve the app, after a look whether its packages are there."""
    for package in ("starlette", "uvicorn", "python_multipart"):
        optional(package, extra="app", purpose="The app")
    from ..app import serve

    reporter.say(
        "The app runs on this machine alone; Ctrl-C stops it. Keep this address to yourself, as "
        "it opens the folder:"
    )
    serve(folder, port=port, idle=idle, browser=browser, say=lambda text: print(text, flush=True))
