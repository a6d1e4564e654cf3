"""The pages, in the order in which a file becomes a release.

Each page works without scripts: forms are sent and pages come back. With scripts, checks,
estimates and progress come into the page, and a change is kept as it is made. Nothing here decides
anything about data: that is the library's part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from ..exceptions import TessellaError
from . import forms
from .desk import NotYetError
from .file_pages import FilePages
from .folder import Folder
from .map_pages import MapPages
from .plan_pages import PlanPages
from .result_pages import ResultPages
from .rules_pages import RulesPages
from .site import Site

if TYPE_CHECKING:
    from .serving import AccessKeys


class Pages:
    """The pages of one run of the app."""

    def __init__(self, folder: Folder, keys: AccessKeys) -> None:
        self.site = Site(folder, keys)

    def build(self) -> Starlette:
        """Return the application that has these pages."""
        site = self.site
        kinds = (FilePages, PlanPages, RulesPages, MapPages, ResultPages)
        parts: list[Any] = [kind(site) for kind in kinds]
        shown = {path: page for part in parts for path, page in part.shown.items()}
        posted = {path: answer for part in parts for path, answer in part.posted.items()}
        shown |= {"/static/{name}": forms.static, "/waiting/{key}": site.awaited}
        return Starlette(
            routes=[
                *(Route(path, page) for path, page in shown.items()),
                *(Route(path, answer, methods=["POST"]) for path, answer in posted.items()),
            ],
            exception_handlers={
                NotYetError: site.waiting,
                TessellaError: site.refused,
                OSError: site.refused_by_the_system,
                HTTPException: site.not_there,
                Exception: site.broken,
            },
        )
