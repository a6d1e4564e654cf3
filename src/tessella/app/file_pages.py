"""The files of the folder: which there are, how one is read, and a second look at a release."""

from __future__ import annotations

import secrets
from pathlib import Path
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ..exceptions import BadFileError, BadOptionError, TessellaError
from ..planfile import parse_plan
from . import forms
from .desk import NotYetError
from .site import Site, Values, give

FIRST_K = 5


class FilePages:
    """Open a file, and start a plan for it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.shown = {
            "/": self.files,
            "/files/{name}": self.file,
            "/reports/{name}": self.report,
            "/verify": self.verify,
        }
        self.posted = {
            "/upload": self.upload,
            "/bring": self.bring,
            "/files/{name}/start": self.start,
            "/verify": self.start_verify,
        }

    def files(self, request: Request) -> Response:  # noqa: ARG002
        """List what is in the folder."""
        return self.show_files()

    def show_files(self, *, problem: str = "") -> Response:
        """Show the first page."""
        site = self.site
        site.desk.prepare()
        entries = site.folder.grouped("table", "plan", "report")
        return site.show("files.html", entries=entries, jobs=site.jobs.latest(), problem=problem)

    async def upload(self, request: Request) -> Response:
        """Take a file that the browser sends into the folder."""
        _, brought = await self.site.form_with_file(request)

        def answer() -> Response:
            if brought is None or not brought.filename:
                return self.show_files(problem="Choose a file first.")
            try:
                name = self.site.folder.bring(brought.filename, brought.file)
            except TessellaError as error:
                return self.show_files(problem=str(error))
            return self.site.go(f"/files/{quote(name)}")

        try:
            return await run_in_threadpool(answer)
        finally:
            if brought is not None:
                await brought.close()

    async def bring(self, request: Request) -> Response:
        """Copy a file of this machine into the folder, by its path."""
        values = await self.site.form(request)

        def answer() -> Response:
            typed = values.get("path", "").strip().strip("\"'")
            try:
                path = Path(typed).expanduser()
                if not typed or "\0" in typed or not path.is_file():
                    raise BadFileError(typed[:200], "there is no such file", "Give its whole path")
                if path.resolve().parent == self.site.folder.path:
                    return self.site.go(f"/files/{quote(path.name)}")
                with path.open("rb") as content:
                    name = self.site.folder.bring(path.name, content)
            except (OSError, ValueError, RuntimeError) as error:
                if isinstance(error, TessellaError):
                    return self.show_files(problem=str(error))
                refused = BadFileError(typed[:200], "it cannot be read", "Give another path")
                return self.show_files(problem=str(refused))
            return self.site.go(f"/files/{quote(name)}")

        return await run_in_threadpool(answer)

    def file(self, request: Request) -> Response:
        """Show how a file was read, and what it holds."""
        stated = {name: request.query_params.get(name, "") for name in forms.READING}
        return self.show_file(request.path_params["name"], stated)

    def show_file(self, name: str, stated: Values, *, problem: str = "") -> Response:
        """Show the page of a file."""
        site = self.site
        path = site.folder.existing(name)
        try:
            options = forms.reading_options(stated)
            found = site.ask("open", file=path.name, options=options, stamp=site.stamp(path.name))
        except NotYetError:
            raise
        except TessellaError as error:
            return site.show("unread.html", name=path.name, why=str(error), stated=stated,
                             READING=forms.READING, status=400)  # fmt: skip
        return site.show(
            "file.html", name=path.name, found=found, stated=stated, READING=forms.READING,
            plans=self._plans_for(path.name), problem=problem,
        )  # fmt: skip

    def _plans_for(self, name: str) -> list[str]:
        """List the plans of the folder that read a file."""
        found = []
        for entry in self.site.folder.grouped("plan")["plan"]:
            try:
                text = (self.site.folder.path / entry.name).read_text(encoding="utf-8-sig")
                if parse_plan(text).input.file == name:
                    found.append(entry.name)
            except (TessellaError, OSError, UnicodeDecodeError):
                continue
        return found

    async def start(self, request: Request) -> Response:
        """Draft a plan for a file, and show its columns."""
        values = await self.site.form(request)

        def answer() -> Response:
            site = self.site
            path = site.folder.existing(request.path_params["name"])
            stated = {name: values.get(name, "") for name in forms.READING}
            try:
                k = forms.whole_number(values, "k", least=2) or FIRST_K
                drafted = site.ask(
                    "draft", wait=True, file=path.name, options=forms.reading_options(stated), k=k,
                    seed=secrets.randbits(62), masked=bool(values.get("masked")),
                    stamp=secrets.token_hex(4),
                )  # fmt: skip
            except TessellaError as error:
                return self.show_file(path.name, stated, problem=str(error))
            stem = path.name.split(".")[0] or "release"
            name = site.folder.free_name(f"{stem}-plan", ".toml")
            site.histories.forget(name)
            site.folder.write(name, drafted["text"])
            return site.go(f"/plans/{quote(name)}/data")

        return await run_in_threadpool(answer)

    def report(self, request: Request) -> Response:
        """Show a report that lies in the folder."""
        path = self.site.folder.existing(request.path_params["name"])
        if path.suffix.lower() != ".html":
            raise HTTPException(404)
        return give(path)

    def verify(self, request: Request) -> Response:
        """Ask which files are to be compared."""
        self.site.jobs.prepare()
        return self.show_verify(dict(request.query_params))

    def show_verify(self, values: Values, *, problem: str = "") -> Response:
        """Show the page of a second look with what was chosen so far."""
        found = self.site.folder.grouped("table", "rules", "manifest")
        names = {what: [entry.name for entry in entries] for what, entries in found.items()}
        asked = ("original", "release", "manifest", "k", "rules", "strata", "id")
        given = {name: values.get(name, "") for name in asked}
        return self.site.show("verify.html", names=names, values=given, problem=problem)

    async def start_verify(self, request: Request) -> Response:
        """Start a second look."""
        values = await self.site.form(request)
        folder = self.site.folder
        try:
            for name in ("original", "release"):
                if not values.get(name):
                    raise BadOptionError(name, "", "a file of the folder")
            for name in ("original", "release", "rules", "manifest"):
                if values.get(name):
                    folder.existing(values[name])
            strata = [name.strip() for name in values.get("strata", "").split(",") if name.strip()]
            job = self.site.jobs.start(
                "verify", folder=str(folder.path), k=forms.whole_number(values, "k", least=2),
                original=values["original"], release=values["release"],
                rules=values.get("rules") or None, manifest=values.get("manifest") or None,
                strata=strata or None, id=values.get("id", "").strip() or None,
            )  # fmt: skip
        except TessellaError as error:
            return self.show_verify(values, problem=str(error))
        return self.site.go(f"/work/{job.key}")
