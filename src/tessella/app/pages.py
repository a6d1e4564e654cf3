"""The pages, in the order in which a file becomes a release.

Each page works without scripts: forms are sent and pages come back. With scripts, checks and
progress come into the page. Nothing here decides anything about data: that is the library's part.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from .. import __version__
from ..exceptions import BadFileError, BadOptionError, TessellaError
from ..io import Source
from ..planfile import draft
from ..schema import Schema
from .folder import Folder
from .forms import (
    KINDS,
    READING,
    ROLES,
    JudgedPlan,
    JudgedRules,
    Sources,
    first_values,
    judge_plan,
    judge_rules,
    line_of,
    reading_options,
    schema_of,
    strata_of,
    whole_number,
)
from .jobs import Job, Jobs
from .rendering import environment, static
from .safety import REPORT_POLICY, Guard, Keys

__all__ = ["make_app"]

FIELDS = 100_000  # of a form: three for each column of a wide table
Values = dict[str, str]


def make_app(
    folder: str | os.PathLike[str], *, keys: Keys | None = None, port: int = 8000
) -> Guard:
    """Build the app for a folder.

    Parameters
    ----------
    folder : path
        Where tables, rules and plans are read, and releases are written.
    keys : Keys, optional
        The keys of this run.
    port : int
        The port on which it will listen: requests that name another are refused.

    Returns
    -------
    Guard
        An ASGI application; its `jobs` is the work under way.
    """
    keys = keys or Keys()
    pages = Pages(Folder(folder), keys)
    routes = [
        Route("/", pages.files),
        Route("/files/{name}", pages.file),
        Route("/files/{name}/rules", pages.check_rules, methods=["POST"]),
        Route("/files/{name}/draft", pages.draft, methods=["POST"]),
        Route("/plans/{name}", pages.plan),
        Route("/plans/{name}/check", pages.check_plan, methods=["POST"]),
        Route("/plans/{name}/save", pages.save_plan, methods=["POST"]),
        Route("/plans/{name}/protect", pages.protect, methods=["POST"]),
        Route("/work/{key}", pages.job),
        Route("/work/{key}/progress", pages.progress),
        Route("/work/{key}/cancel", pages.cancel, methods=["POST"]),
        Route("/work/{key}/output/{what}", pages.output),
        Route("/reports/{name}", pages.report),
        Route("/verify", pages.verify),
        Route("/verify", pages.start_verify, methods=["POST"]),
        Route("/static/{name}", static),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            TessellaError: pages.refused,
            HTTPException: pages.not_there,
            Exception: pages.broken,
        },
    )
    guard = Guard(app, keys=keys, port=port)
    guard.jobs = pages.jobs
    return guard


class Pages:
    """All pages of one run.

    Parameters
    ----------
    folder : Folder
        Where the app works.
    keys : Keys
        The keys of this run; forms carry one.
    """

    def __init__(self, folder: Folder, keys: Keys) -> None:
        self.folder, self.keys = folder, keys
        self.jobs, self.sources = Jobs(), Sources()

    # What all pages share.

    def show(self, template: str, *, status: int = 200, **known: Any) -> Response:
        """Fill in a template."""
        text = environment().get_template(template).render(
            token=self.keys.form, folder=self.folder.path, version=__version__,
            working=self.jobs.running, line_of=line_of, **known,
        )  # fmt: skip
        return HTMLResponse(text, status_code=status)

    async def form(self, request: Request) -> Values:
        """Read a form of ours; refuse one of others."""
        sent = await request.form(max_files=0, max_fields=FIELDS)
        values = {name: value for name, value in sent.items() if isinstance(value, str)}
        token = values.pop("token", "")
        if not self.keys.is_form(token):
            raise HTTPException(403, "This form was not made by this app. Go back and reload.")
        return values

    def refused(self, request: Request, error: Exception) -> Response:
        """Say what went wrong, in the words of the library."""
        if _in_place(request):
            return self.show("said.html", problem=str(error))
        return self.show("problem.html", title="This cannot be done", why=str(error), status=400)

    def not_there(self, request: Request, error: Exception) -> Response:  # noqa: ARG002
        """Say that there is no such page, or that it may not be asked for."""
        assert isinstance(error, HTTPException)
        title = "There is no such page" if error.status_code == 404 else "This was refused"
        why = "" if error.status_code == 404 else error.detail
        return self.show("problem.html", title=title, why=why, status=error.status_code)

    def broken(self, request: Request, error: Exception) -> Response:  # noqa: ARG002
        """Say that the mistake is ours; the terminal has the account of it."""
        why = f"The app itself made a mistake ({type(error).__name__}). The terminal tells more."
        return self.show("problem.html", title="This went wrong", why=why, status=500)

    # 1: the files.

    def files(self, request: Request) -> Response:  # noqa: ARG002
        """List what is in the folder."""
        entries = self.folder.entries()
        table, plan, report = (
            [entry for entry in entries if entry.what == what]
            for what in ("table", "plan", "report")
        )
        return self.show(
            "files.html", table=table, plan=plan, report=report, jobs=self.jobs.latest()
        )

    # 2: a file, its columns and its rules.

    def file(self, request: Request) -> Response:
        """Show how a file was read, and ask what its columns are."""
        path = self.folder.existing(request.path_params["name"])
        stated = {name: request.query_params.get(name, "") for name in READING}
        try:
            source = self.sources.read(path, reading_options(stated))
        except TessellaError as error:
            return self.show("unread.html", name=path.name, why=str(error), stated=stated,
                             READING=READING, status=400)  # fmt: skip
        schema = source.schema()
        stem = path.name.split(".")[0] or "release"
        first = first_values(schema) | stated | {
            "k": "5", "seed": "", "rules-file": "", "rules": "",
            "plan": self.folder.free_name(f"{stem}-plan", ".toml"),
        }  # fmt: skip
        return self.show_file(source, schema, first)

    def show_file(
        self,
        source: Source,
        schema: Schema,
        values: Mapping[str, str],
        *,
        judged: JudgedRules | None = None,
        problem: str = "",
    ) -> Response:
        """Show the page of a file with what was typed so far."""
        return self.show(
            "file.html", source=source, schema=schema, values=values, judged=judged,
            problem=problem, KINDS=KINDS, ROLES=ROLES, READING=READING,
            name=source.path.name, status=400 if problem else 200,
            rules_files=[e.name for e in self.folder.entries() if e.what == "rules"],
        )  # fmt: skip

    def _source(self, request: Request, values: Values) -> Source:
        path = self.folder.existing(request.path_params["name"])
        return self.sources.read(path, reading_options(values))

    def _judge(self, values: Values, source: Source, schema: Schema) -> JudgedRules | None:
        """Look at the rules of a form; None if it has none."""
        name, text = values.get("rules-file", ""), values.get("rules", "")
        if name and text.strip():
            return JudgedRules(problem="Choose a file of rules or type them, not both.")
        if not name and not text.strip():
            return None
        path = self.folder.existing(name) if name else None
        return judge_rules(text, path, source, schema)

    async def check_rules(self, request: Request) -> Response:
        """Say what is wrong with rules, and how the table obeys them."""
        values = await self.form(request)

        def answer() -> Response:
            source = self._source(request, values)
            guess = source.schema()
            judged = self._judge(values, source, schema_of(guess, values))
            if judged is None:
                judged = JudgedRules(problem="There are no rules yet: choose a file or type some.")
            if _in_place(request):
                return self.show("rules.html", judged=judged, n_rows=source.n_rows)
            return self.show_file(source, guess, values, judged=judged)

        return await run_in_threadpool(answer)

    async def draft(self, request: Request) -> Response:
        """Write the draft of a plan, and show it."""
        values = await self.form(request)

        def answer() -> Response:
            source = self._source(request, values)
            guess = source.schema()
            judged = None
            try:
                schema = schema_of(guess, values)
                judged = self._judge(values, source, schema)
                if judged is not None and not judged.usable:
                    said = "The plan is not drafted yet: the rules have mistakes."
                    return self.show_file(source, guess, values, judged=judged, problem=said)
                name = self._draft(source, schema, values)
            except TessellaError as error:
                return self.show_file(source, guess, values, judged=judged, problem=str(error))
            return RedirectResponse(f"/plans/{quote(name)}", status_code=303)

        return await run_in_threadpool(answer)

    def _draft(self, source: Source, schema: Schema, values: Values) -> str:
        k = whole_number(values, "k", least=2)
        if k is None:
            raise BadOptionError("k", "", "the fewest records that share their values, such as 5")
        name = values.get("plan", "").strip()
        path = self.folder.place(name)
        if path.suffix != ".toml":
            raise BadOptionError("name of the plan", name, "a name that ends in .toml")
        if os.path.lexists(path):
            raise BadFileError(name, "the file exists", "Give the plan another name")
        seed = whole_number(values, "seed")
        rules = self._rules_file(values, path.stem.removesuffix("-plan"))
        text = draft(
            source, k=k, rules=rules, strata=strata_of(schema, values), schema=schema, seed=seed,
            output=values.get("release", "").strip() or None, folder=self.folder.path,
        )  # fmt: skip
        self.folder.write(name, text)
        return name

    def _rules_file(self, values: Values, stem: str) -> Path | None:
        """Return the file of the rules; those that were typed become one."""
        if name := values.get("rules-file", ""):
            return self.folder.existing(name)
        text = values.get("rules", "").replace("\r\n", "\n").strip()
        if not text:
            return None
        name = self.folder.free_name(f"{stem}-rules", ".txt")
        return self.folder.write(name, text + "\n")

    # 3: the plan.

    def plan(self, request: Request) -> Response:
        """Show a plan, to edit."""
        path = self.folder.existing(request.path_params["name"])
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise BadFileError(path.name, "this is no text", "Choose a plan") from None
        return self.show_plan(path.name, text, was=_hash(text), judged=self._look(text, path.name))

    def _look(self, text: str, name: str, *, deep: bool = False) -> JudgedPlan:
        return judge_plan(text, self.folder, name, self.sources if deep else None)

    def show_plan(
        self,
        name: str,
        text: str,
        *,
        was: str,
        judged: JudgedPlan,
        problem: str = "",
        said: str = "",
    ) -> Response:
        """Show the page of a plan with what was typed so far."""
        return self.show(
            "plan.html", name=name, text=text, was=was, judged=judged, problem=problem, said=said,
            status=400 if problem else 200,
        )  # fmt: skip

    async def check_plan(self, request: Request) -> Response:
        """Say all that is wrong with a plan, with lines."""
        values = await self.form(request)
        name, text = request.path_params["name"], _text(values)
        judged = await run_in_threadpool(self._look, text, name, deep=True)
        if _in_place(request):
            return self.show("judged.html", judged=judged, name=name)
        return self.show_plan(name, text, was=values.get("was", ""), judged=judged)

    async def save_plan(self, request: Request) -> Response:
        """Write a plan, and go on editing."""
        values = await self.form(request)
        name, text = request.path_params["name"], _text(values)
        judged = self._look(text, name)
        try:
            self._save(name, text, values)
        except TessellaError as error:
            return self.show_plan(
                name, text, was=values.get("was", ""), judged=judged, problem=str(error)
            )
        return self.show_plan(name, text, was=_hash(text), judged=judged, said=f"{name} is saved.")

    def _save(self, name: str, text: str, values: Values) -> None:
        """Write a plan, unless somebody else has changed the file since it was shown."""
        path = self.folder.existing(name)
        if path.suffix != ".toml":
            raise BadFileError(name, "this is no plan", "Choose a file that ends in .toml")
        there = path.read_text(encoding="utf-8-sig", errors="replace")
        if _hash(there) != values.get("was", ""):
            raise BadFileError(
                name, "it was changed outside of this page", "Copy your text, and reload the page"
            )
        if there != text:
            self.folder.write(name, text, overwrite=True)

    async def protect(self, request: Request) -> Response:
        """Save the plan and run it."""
        values = await self.form(request)
        name, text = request.path_params["name"], _text(values)
        judged = self._look(text, name)
        replace = bool(values.get("overwrite"))
        problem, was = "", values.get("was", "")
        try:
            self._save(name, text, values)
            was = _hash(text)
            if judged.mistakes:
                problem = "The plan cannot be run yet."
            elif judged.existing and not replace:
                problem = (
                    f"{', '.join(judged.existing)}: the plan would replace what is there. Allow it "
                    "below, or give other names under [output]."
                )
            else:
                job = self.jobs.start(
                    "protect", folder=str(self.folder.path), plan=text, origin=name,
                    overwrite=replace,
                )  # fmt: skip
                return RedirectResponse(f"/work/{job.key}", status_code=303)
        except TessellaError as error:
            problem = str(error)
        return self.show_plan(name, text, was=was, judged=judged, problem=problem)

    # 4 and 5: the work, and what came of it.

    def _job(self, request: Request) -> Job:
        job = self.jobs.get(request.path_params["key"])
        if job is None:
            raise HTTPException(404)
        return job

    def job(self, request: Request) -> Response:
        """Show the work under way, or what came of it."""
        job = self._job(request)
        if job.state == "running":
            return self.show("working.html", job=job)
        if job.state == "done":
            return self.show("released.html" if job.task == "protect" else "verified.html", job=job)
        return self.show("ended.html", job=job)

    def progress(self, request: Request) -> Response:
        """Show how far the work is; send the page on when it has ended."""
        job = self._job(request)
        if job.state != "running":
            return Response(status_code=200, headers={"HX-Redirect": f"/work/{job.key}"})
        return self.show("progress.html", job=job)

    async def cancel(self, request: Request) -> Response:
        """Stop the work."""
        await self.form(request)
        job = self._job(request)
        await run_in_threadpool(job.stop)
        return RedirectResponse(f"/work/{job.key}", status_code=303)

    def output(self, request: Request) -> Response:
        """Give a file that the work has written."""
        job = self._job(request)
        files = job.result.get("files", {})
        what = request.path_params["what"]
        if what not in files:
            raise HTTPException(404)
        path = self.folder.inside(files[what])
        if not path.is_file():
            raise BadFileError(files[what], "it is not there any more", "Run the plan again")
        return _give(path)

    def report(self, request: Request) -> Response:
        """Show a report that lies in the folder."""
        path = self.folder.existing(request.path_params["name"])
        if path.suffix.lower() != ".html":
            raise HTTPException(404)
        return _give(path)

    # 6: a second look.

    def verify(self, request: Request) -> Response:
        """Ask which files are to be compared."""
        return self.show_verify(dict(request.query_params))

    def show_verify(self, values: Values, *, problem: str = "") -> Response:
        """Show the page of a second look with what was chosen so far."""
        entries = self.folder.entries()
        names = {
            what: [entry.name for entry in entries if entry.what == what]
            for what in ("table", "rules", "manifest")
        }
        asked = ("original", "release", "manifest", "k", "rules", "strata", "id")
        given = {name: values.get(name, "") for name in asked}
        return self.show(
            "verify.html", names=names, values=given, problem=problem,
            status=400 if problem else 200,
        )  # fmt: skip

    async def start_verify(self, request: Request) -> Response:
        """Start a second look."""
        values = await self.form(request)
        try:
            for name in ("original", "release"):
                if not values.get(name):
                    raise BadOptionError(name, "", "a file of the folder")
            for name in ("original", "release", "rules", "manifest"):
                if values.get(name):
                    self.folder.existing(values[name])
            strata = [name.strip() for name in values.get("strata", "").split(",") if name.strip()]
            job = self.jobs.start(
                "verify", folder=str(self.folder.path), k=whole_number(values, "k", least=2),
                original=values["original"], release=values["release"],
                rules=values.get("rules") or None, manifest=values.get("manifest") or None,
                strata=strata or None, id=values.get("id", "").strip() or None,
            )  # fmt: skip
        except TessellaError as error:
            return self.show_verify(values, problem=str(error))
        return RedirectResponse(f"/work/{job.key}", status_code=303)


def _in_place(request: Request) -> bool:
    """Tell whether a script asks for a piece of the page."""
    return request.headers.get("hx-request") == "true"


def _text(values: Values) -> str:
    """Return the text of a plan; browsers end lines with CR LF."""
    return values.get("text", "").replace("\r\n", "\n")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _give(path: Path) -> Response:
    """Give a file: reports to be looked at, where they can do nothing; tables to be kept."""
    if path.suffix.lower() == ".html":
        return FileResponse(
            path, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY}
        )
    if path.suffix.lower() == ".json":
        return PlainTextResponse(path.read_text(encoding="utf-8"))
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)
