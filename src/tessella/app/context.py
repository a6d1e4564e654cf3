"""What all pages share: the folder, the work under way, how a page is shown and a form is read."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from .. import __version__
from .folder import Folder
from .forms import Sources, line_of
from .jobs import Jobs
from .rendering import environment
from .safety import AccessKeys

__all__ = ["AppContext", "Values", "in_place"]

FIELDS = 100_000  # of a form: three for each column of a wide table
Values = dict[str, str]


class AppContext:
    """What one run of the app works with.

    Parameters
    ----------
    folder : Folder
        Where the app works.
    keys : AccessKeys
        The keys of this run; forms carry one.
    """

    def __init__(self, folder: Folder, keys: AccessKeys) -> None:
        self.folder, self.keys = folder, keys
        self.jobs, self.sources = Jobs(), Sources()

    def show(self, template: str, *, status: int = 200, **known: Any) -> Response:
        """Fill in a template."""
        text = environment().get_template(template).render(
            token=self.keys.form, at=self.keys.at, folder=self.folder.path, version=__version__,
            working=self.jobs.running, line_of=line_of, **known,
        )  # fmt: skip
        return HTMLResponse(text, status_code=status)

    def go(self, path: str) -> Response:
        """Send the browser to another page."""
        return RedirectResponse(f"{self.keys.at}{path}", status_code=303)

    async def form(self, request: Request) -> Values:
        """Read a form of ours; refuse one of others."""
        sent = await request.form(max_files=0, max_fields=FIELDS)
        values = {name: value for name, value in sent.items() if isinstance(value, str)}
        token = values.pop("token", "")
        if not self.keys.is_form(token):
            raise HTTPException(403, "This form was not made by this app. Go back and reload.")
        return values

    def refused(self, request: Request, error: Exception) -> Response:
        """Show the error of the library."""
        if in_place(request):
            return self.show("said.html", problem=str(error))
        return self.show("problem.html", title="This cannot be done", why=str(error), status=400)

    def not_there(self, request: Request, error: Exception) -> Response:  # noqa: ARG002
        """Show that there is no such page, or that it may not be asked for."""
        assert isinstance(error, HTTPException)
        title = "There is no such page" if error.status_code == 404 else "This was refused"
        why = "" if error.status_code == 404 else error.detail
        return self.show("problem.html", title=title, why=why, status=error.status_code)

    def broken(self, request: Request, error: Exception) -> Response:  # noqa: ARG002
        """Show that the mistake is ours; the terminal has the traceback."""
        why = f"The app itself made a mistake ({type(error).__name__}). The terminal tells more."
        return self.show("problem.html", title="This went wrong", why=why, status=500)


def in_place(request: Request) -> bool:
    """Return whether a script asks for a piece of the page."""
    return request.headers.get("hx-request") == "true"
