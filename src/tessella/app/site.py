"""What all pages share: the folder, the work, the table's process, and how an answer is made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)

from .. import __version__
from ..exceptions import BadFileError
from . import forms
from .desk import Desk, NotYetError
from .folder import Folder
from .history import Histories
from .jobs import Jobs
from .runs import Runs

if TYPE_CHECKING:
    from .serving import AccessKeys

FIELDS = 100_000  # of a form: a few for each column of a wide table
PATIENCE = 0.12  # seconds that a page waits for an answer about the table
Values = dict[str, str]

# A report is a whole page of its own: it may have its style and its pictures, and do nothing.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
)


class Site:
    """One run of the app: the files of a folder, and the work under way."""

    def __init__(self, folder: Folder, keys: AccessKeys) -> None:
        self.folder, self.keys = folder, keys
        self.jobs, self.desk = Jobs(), Desk()
        self.histories, self.runs = Histories(folder), Runs(folder)
        self.patience: float | None = PATIENCE

    def show(self, template: str, *, status: int | None = None, **known: Any) -> Response:
        """Fill in a template; with a problem, the form that was sent is a bad request."""
        text = forms.environment().get_template(template).render(
            token=self.keys.form, at=self.keys.at, folder=self.folder.path, version=__version__,
            working=self.jobs.running, line_of=forms.line_of, **known,
        )  # fmt: skip
        sent = text.encode("utf-8", "replace")  # a file may hold half of a pair of UTF-16
        return HTMLResponse(sent, status_code=status or (400 if known.get("problem") else 200))

    def go(self, path: str) -> Response:
        """Send the browser to another page."""
        return RedirectResponse(f"{self.keys.at}{path}", status_code=303)

    async def form(self, request: Request) -> Values:
        """Read a form of ours; refuse one of others."""
        values, _ = await self.form_with_file(request, files=0)
        return values

    async def form_with_file(self, request: Request, *, files: int = 1) -> tuple[Values, Any]:
        """Read a form of ours, and the file that it may bring, which the caller closes."""
        try:
            sent = await request.form(max_files=files, max_fields=FIELDS)
        except ClientDisconnect:  # nobody reads the answer
            raise HTTPException(400, "The form was cut off. Send it again.") from None
        values = {name: value for name, value in sent.items() if isinstance(value, str)}
        brought = [value for _, value in sent.multi_items() if not isinstance(value, str)]
        several = {
            name: "\n".join(str(v) for v in sent.getlist(name) if isinstance(v, str))
            for name in values
            if name.endswith("[]")
        }
        token = values.pop("token", "")
        if not self.keys.is_form(token):
            await sent.close()
            raise HTTPException(403, "This form was not made by this app. Go back and reload.")
        return values | several, next(iter(brought), None)

    def ask(self, verb: str, *, wait: bool = False, channel: str = "", **given: Any) -> Any:
        """Ask the table's process; a page that need not wait is shown as waiting."""
        stamp = given.pop("stamp", None)
        return self.desk.ask(
            verb, folder=str(self.folder.path), stamp=stamp, channel=channel,
            patience=None if wait else self.patience, **given,
        )  # fmt: skip

    def stamp(self, *names: str | None) -> list[Any]:
        """Return what changes when one of some files does."""
        found: list[Any] = []
        for name in names:
            try:
                stat = self.folder.inside(name).stat() if name else None
            except (OSError, BadFileError):
                stat = None
            found.append(stat and [stat.st_mtime_ns, stat.st_size])
        return found

    # What goes wrong.

    def waiting(self, request: Request, error: Exception) -> Response:
        """Show that an answer is being worked on; the page comes by itself."""
        assert isinstance(error, NotYetError)
        words = {
            "open": "Reading the file", "describe": "Reading the file",
            "suggest": "Looking for rules", "compare": "Comparing the tables",
            "check": "Looking at the plan", "rules": "Counting who breaks which rule",
        }  # fmt: skip
        return self.show(
            "waiting.html", what=words.get(str(error), "Working"), key=error.key,
            address=f"{self.keys.at}{request.url.path}?{request.url.query}", status=200,
        )  # fmt: skip

    def awaited(self, request: Request) -> Response:
        """Tell a waiting page whether to ask again."""
        if self.desk.is_ready(request.path_params["key"]):
            return Response(headers={"HX-Refresh": "true"})
        return Response(status_code=204)

    def refused(self, request: Request, error: Exception) -> Response:
        """Show the error of the library."""
        if in_place(request):
            return self.show("problem_in_place.html", problem=str(error), status=200)
        return self.show("problem.html", title="This cannot be done", why=str(error), status=400)

    def refused_by_the_system(self, request: Request, error: Exception) -> Response:
        """Show that a file cannot be read or written: gone, protected, or the disk is full."""
        assert isinstance(error, OSError)
        name = Path(os.fsdecode(error.filename)).name if error.filename else "a file"
        reason = (error.strerror or type(error).__name__).lower()
        what = BadFileError(name, f"the system refuses it ({reason})", "Look at the folder")
        return self.refused(request, what)

    def not_there(self, request: Request, error: Exception) -> Response:  # noqa: ARG002
        """Show that there is no such page, or that it may not be asked for."""
        assert isinstance(error, HTTPException)
        title = "There is no such page" if error.status_code == 404 else "This was refused"
        why = "" if error.status_code == 404 else error.detail
        return self.show("problem.html", title=title, why=why, status=error.status_code)

    def broken(self, request: Request, error: Exception) -> Response:  # noqa: ARG002
        """Show that the mistake is ours; the terminal has the traceback."""
        why = f"The app itself failed ({type(error).__name__}). The terminal shows details."
        return self.show("problem.html", title="This went wrong", why=why, status=500)


def in_place(request: Request) -> bool:
    """Return whether a script asks for a piece of the page."""
    return request.headers.get("hx-request") == "true"


def give(path: Path) -> Response:
    """Give a file: reports to be looked at, where they can do nothing; tables to be kept."""
    if path.suffix.lower() == ".html":
        return FileResponse(
            path, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY}
        )
    if path.suffix.lower() == ".json":
        return PlainTextResponse(path.read_text(encoding="utf-8"))
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)
