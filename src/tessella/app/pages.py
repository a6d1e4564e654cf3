"""The pages, in the order in which a file becomes a release.

Each page works without scripts: forms are sent and pages come back. With scripts, checks and
progress come into the page. Nothing here decides anything about data: that is the library's part.
"""

from __future__ import annotations

import os

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from ..exceptions import TessellaError
from .context import AppContext
from .file_pages import FilePages
from .folder import Folder
from .plan_pages import PlanPages
from .rendering import static
from .safety import AccessKeys, Guard
from .work_pages import WorkPages

__all__ = ["make_app"]


def make_app(
    folder: str | os.PathLike[str], *, keys: AccessKeys | None = None, port: int = 8000
) -> Guard:
    """Build the app for a folder.

    Parameters
    ----------
    folder : path
        Where tables, rules and plans are read, and releases are written.
    keys : AccessKeys, optional
        The keys of this run.
    port : int
        The port on which it will listen: requests that name another are refused.

    Returns
    -------
    Guard
        An ASGI application; its `jobs` is the work under way.
    """
    keys = keys or AccessKeys()
    context = AppContext(Folder(folder), keys)
    files, plans, work = FilePages(context), PlanPages(context), WorkPages(context)
    routes = [
        Route("/", files.files),
        Route("/files/{name}", files.file),
        Route("/files/{name}/rules", files.check_rules, methods=["POST"]),
        Route("/files/{name}/draft", files.draft, methods=["POST"]),
        Route("/plans/{name}", plans.plan),
        Route("/plans/{name}/check", plans.check, methods=["POST"]),
        Route("/plans/{name}/save", plans.save, methods=["POST"]),
        Route("/plans/{name}/protect", plans.protect, methods=["POST"]),
        Route("/work/{key}", work.job),
        Route("/work/{key}/progress", work.progress),
        Route("/work/{key}/cancel", work.cancel, methods=["POST"]),
        Route("/work/{key}/output/{what}", work.output),
        Route("/reports/{name}", work.report),
        Route("/verify", work.verify),
        Route("/verify", work.start_verify, methods=["POST"]),
        Route("/static/{name}", static),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            TessellaError: context.refused,
            HTTPException: context.not_there,
            Exception: context.broken,
        },
    )
    guard = Guard(app, keys=keys, port=port)
    guard.jobs = context.jobs
    return guard
