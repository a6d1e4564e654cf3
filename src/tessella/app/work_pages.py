"""The work under way, what came of it, and a second look at any release."""

from __future__ import annotations

from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from ..exceptions import BadFileError, BadOptionError, TessellaError
from .context import AppContext, Values
from .forms import whole_number
from .jobs import Job
from .safety import REPORT_POLICY

__all__ = ["WorkPages"]


class WorkPages:
    """From the work to the release, and back to it."""

    def __init__(self, context: AppContext) -> None:
        self.context = context

    def _job(self, request: Request) -> Job:
        job = self.context.jobs.get(request.path_params["key"])
        if job is None:
            raise HTTPException(404)
        return job

    def job(self, request: Request) -> Response:
        """Show the work under way, or what came of it."""
        job = self._job(request)
        if job.state == "running":
            return self.context.show("working.html", job=job)
        if job.state == "done":
            return self.context.show(
                "released.html" if job.task == "protect" else "verified.html", job=job
            )
        return self.context.show("ended.html", job=job)

    def progress(self, request: Request) -> Response:
        """Show how far the work is; send the page on when it has ended."""
        job = self._job(request)
        if job.state != "running":
            return Response(
                status_code=200, headers={"HX-Redirect": f"{self.context.keys.at}/work/{job.key}"}
            )
        return self.context.show("progress.html", job=job)

    async def cancel(self, request: Request) -> Response:
        """Stop the work."""
        await self.context.form(request)
        job = self._job(request)
        await run_in_threadpool(job.stop)
        return self.context.go(f"/work/{job.key}")

    def output(self, request: Request) -> Response:
        """Give a file that the work has written."""
        job = self._job(request)
        files = job.result.get("files", {})
        what = request.path_params["what"]
        if what not in files:
            raise HTTPException(404)
        path = self.context.folder.inside(files[what])
        if not path.is_file():
            raise BadFileError(files[what], "it is not there any more", "Run the plan again")
        return _give(path)

    def report(self, request: Request) -> Response:
        """Show a report that lies in the folder."""
        path = self.context.folder.existing(request.path_params["name"])
        if path.suffix.lower() != ".html":
            raise HTTPException(404)
        return _give(path)

    def verify(self, request: Request) -> Response:
        """Ask which files are to be compared."""
        self.context.jobs.prepare()
        return self.show_verify(dict(request.query_params))

    def show_verify(self, values: Values, *, problem: str = "") -> Response:
        """Show the page of a second look with what was chosen so far."""
        entries = self.context.folder.entries()
        names = {
            what: [entry.name for entry in entries if entry.what == what]
            for what in ("table", "rules", "manifest")
        }
        asked = ("original", "release", "manifest", "k", "rules", "strata", "id")
        given = {name: values.get(name, "") for name in asked}
        return self.context.show(
            "verify.html", names=names, values=given, problem=problem,
            status=400 if problem else 200,
        )  # fmt: skip

    async def start_verify(self, request: Request) -> Response:
        """Start a second look."""
        values = await self.context.form(request)
        try:
            for name in ("original", "release"):
                if not values.get(name):
                    raise BadOptionError(name, "", "a file of the folder")
            for name in ("original", "release", "rules", "manifest"):
                if values.get(name):
                    self.context.folder.existing(values[name])
            strata = [name.strip() for name in values.get("strata", "").split(",") if name.strip()]
            job = self.context.jobs.start(
                "verify", folder=str(self.context.folder.path),
                k=whole_number(values, "k", least=2),
                original=values["original"], release=values["release"],
                rules=values.get("rules") or None, manifest=values.get("manifest") or None,
                strata=strata or None, id=values.get("id", "").strip() or None,
            )  # fmt: skip
        except TessellaError as error:
            return self.show_verify(values, problem=str(error))
        return self.context.go(f"/work/{job.key}")


def _give(path: Path) -> Response:
    """Give a file: reports to be looked at, where they can do nothing; tables to be kept."""
    if path.suffix.lower() == ".html":
        return FileResponse(
            path, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY}
        )
    if path.suffix.lower() == ".json":
        return PlainTextResponse(path.read_text(encoding="utf-8"))
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)
