"""The pages, in the order in which a file becomes a release.

Each page works without scripts: forms are sent and pages come back. With scripts, checks and
progress come into the page. Nothing here decides anything about data: that is the library's part.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
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
from . import forms
from .folder import Folder
from .forms import JudgedPlan, JudgedRules
from .jobs import Job, Jobs

if TYPE_CHECKING:
    from .serving import AccessKeys

FIELDS = 100_000  # of a form: three for each column of a wide table
Values = dict[str, str]

# A report is a whole page of its own: it may have its style and its pictures, and do nothing.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
)


class Pages:
    """The pages of one run of the app: of the files in a folder, and of the work under way."""

    def __init__(self, folder: Folder, keys: AccessKeys) -> None:
        self.folder, self.keys = folder, keys
        self.jobs, self.sources = Jobs(), forms.Sources()

    def build(self) -> Starlette:
        """Return the application that has these pages."""
        pages = {
            "/": self.files,
            "/files/{name}": self.file,
            "/plans/{name}": self.plan,
            "/work/{key}": self.job,
            "/work/{key}/progress": self.progress,
            "/work/{key}/output/{what}": self.output,
            "/reports/{name}": self.report,
            "/verify": self.verify,
            "/static/{name}": forms.static,
        }
        posted = {
            "/files/{name}/rules": self.check_rules,
            "/files/{name}/draft": self.draft,
            "/plans/{name}/check": self.check,
            "/plans/{name}/save": self.save,
            "/plans/{name}/protect": self.protect,
            "/work/{key}/cancel": self.cancel,
            "/verify": self.start_verify,
        }
        return Starlette(
            routes=[
                *(Route(path, page) for path, page in pages.items()),
                *(Route(path, answer, methods=["POST"]) for path, answer in posted.items()),
            ],
            exception_handlers={
                TessellaError: self.refused,
                OSError: self.refused_by_the_system,
                HTTPException: self.not_there,
                Exception: self.broken,
            },
        )

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
        try:
            sent = await request.form(max_files=0, max_fields=FIELDS)
        except ClientDisconnect:  # nobody reads the answer
            raise HTTPException(400, "The form was cut off. Send it again.") from None
        values = {name: value for name, value in sent.items() if isinstance(value, str)}
        token = values.pop("token", "")
        if not self.keys.is_form(token):
            raise HTTPException(403, "This form was not made by this app. Go back and reload.")
        return values

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
        why = f"The app itself made a mistake ({type(error).__name__}). The terminal tells more."
        return self.show("problem.html", title="This went wrong", why=why, status=500)

    # Files.

    def files(self, request: Request) -> Response:  # noqa: ARG002
        """List what is in the folder."""
        entries = self.folder.grouped("table", "plan", "report")
        return self.show("files.html", entries=entries, jobs=self.jobs.latest())

    def file(self, request: Request) -> Response:
        """Show how a file was read, and ask what its columns are."""
        path = self.folder.existing(request.path_params["name"])
        stated = {name: request.query_params.get(name, "") for name in forms.READING}
        try:
            source = self.sources.read(path, forms.reading_options(stated))
        except TessellaError as error:
            return self.show("unread.html", name=path.name, why=str(error), stated=stated,
                             READING=forms.READING, status=400)  # fmt: skip
        return self.show_file(source, source.schema(), stated)

    def show_file(self, source: Source, schema: Schema, values: Values, **notes: Any) -> Response:
        """Show the page of a file with what was typed so far; `notes` are judged and problem."""
        stem = source.path.name.split(".")[0] or "release"
        first: Values = forms.first_values(schema) | dict.fromkeys(forms.READING, "") | {
            "k": "5", "seed": "", "rules-file": "", "rules": "",
            "plan": self.folder.free_name(f"{stem}-plan", ".toml"),
        }  # fmt: skip
        return self.show(
            "file.html", source=source, schema=schema, values=first | values, name=source.path.name,
            KINDS=forms.KINDS, ROLES=forms.ROLES, READING=forms.READING,
            rules_files=[entry.name for entry in self.folder.grouped("rules")["rules"]],
            **{"judged": None, "problem": "", **notes},
        )  # fmt: skip

    def _source(self, request: Request, values: Values) -> Source:
        path = self.folder.existing(request.path_params["name"])
        return self.sources.read(path, forms.reading_options(values))

    def _judge(self, values: Values, source: Source, schema: Schema) -> JudgedRules | None:
        """Look at the rules of a form; None if it has none."""
        name, text = values.get("rules-file", ""), values.get("rules", "")
        if name and text.strip():
            return JudgedRules(problem="Choose a file of rules or type them, not both.")
        if not name and not text.strip():
            return None
        path = self.folder.existing(name) if name else None
        return forms.judge_rules(text, path, source, schema)

    async def check_rules(self, request: Request) -> Response:
        """Say what is wrong with rules, and how the table obeys them."""
        values = await self.form(request)

        def answer() -> Response:
            source = self._source(request, values)
            guess = source.schema()
            judged = self._judge(values, source, forms.schema_of(guess, values))
            if judged is None:
                judged = JudgedRules(problem="There are no rules yet: choose a file or type some.")
            if in_place(request):
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
                schema = forms.schema_of(guess, values)
                judged = self._judge(values, source, schema)
                if judged is not None and not judged.usable:
                    why = "The plan is not drafted yet: the rules have mistakes."
                    return self.show_file(source, guess, values, judged=judged, problem=why)
                name = self._draft(source, schema, values)
            except TessellaError as error:
                return self.show_file(source, guess, values, judged=judged, problem=str(error))
            return self.go(f"/plans/{quote(name)}")

        return await run_in_threadpool(answer)

    def _draft(self, source: Source, schema: Schema, values: Values) -> str:
        k = forms.whole_number(values, "k", least=2)
        if k is None:
            raise BadOptionError("k", "", "the fewest records that share their values, such as 5")
        name = values.get("plan", "").strip()
        path = self.folder.place(name)
        if path.suffix != ".toml":
            raise BadOptionError("name of the plan", name, "a name that ends in .toml")
        if os.path.lexists(path):
            raise BadFileError(name, "the file exists", "Give the plan another name")
        seed = forms.whole_number(values, "seed")
        rules = self._rules_file(values, path.stem.removesuffix("-plan"))
        text = draft(
            source, k=k, rules=rules, strata=forms.strata_of(schema, values), schema=schema,
            output=values.get("release", "").strip() or None, seed=seed, folder=self.folder.path,
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

    # Plans.

    def plan(self, request: Request) -> Response:
        """Show a plan, to edit."""
        self.jobs.prepare()
        path = self.folder.existing(request.path_params["name"])
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise BadFileError(path.name, "this is no text", "Choose a plan") from None
        return self.show_plan(path.name, text, self._look(text, path.name), _hash(text))

    def _look(self, text: str, name: str, *, deep: bool = False) -> JudgedPlan:
        return forms.judge_plan(text, self.folder, name, self.sources if deep else None)

    def show_plan(
        self, name: str, text: str, judged: JudgedPlan, was: str, **notes: str
    ) -> Response:
        """Show the page of a plan with what was typed so far; `notes` are problem and notice."""
        return self.show(
            "plan.html", name=name, text=text, judged=judged, was=was,
            problem=notes.get("problem", ""), notice=notes.get("notice", ""),
        )  # fmt: skip

    async def check(self, request: Request) -> Response:
        """Say all that is wrong with a plan, with lines."""
        values = await self.form(request)
        name, text = request.path_params["name"], _text(values)
        judged = await run_in_threadpool(self._look, text, name, deep=True)
        if in_place(request):
            return self.show("judged.html", judged=judged, name=name)
        return self.show_plan(name, text, judged, values.get("was", ""))

    async def save(self, request: Request) -> Response:
        """Write a plan, and go on editing."""
        values = await self.form(request)
        name, text = request.path_params["name"], _text(values)
        judged = self._look(text, name)
        try:
            self._save(name, text, values)
        except TessellaError as error:
            return self.show_plan(name, text, judged, values.get("was", ""), problem=str(error))
        return self.show_plan(name, text, judged, _hash(text), notice=f"{name} is saved.")

    def _save(self, name: str, text: str, values: Values) -> None:
        """Write a plan, unless somebody else has changed the file since it was shown."""
        path = self.folder.existing(name)
        if path.suffix != ".toml":
            raise BadFileError(name, "this is no plan", "Choose a file that ends in .toml")
        there = path.read_text(encoding="utf-8-sig", errors="replace")
        if there == text:
            return
        if _hash(there) != values.get("was", ""):
            raise BadFileError(
                name, "it was changed outside of this page", "Copy your text, and reload the page"
            )
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
                return self.go(f"/work/{job.key}")
        except TessellaError as error:
            problem = str(error)
        return self.show_plan(name, text, judged, was, problem=problem)

    # Work.

    def _job(self, request: Request) -> Job:
        job = self.jobs.get(request.path_params["key"])
        if job is None:
            raise HTTPException(404)
        return job

    def job(self, request: Request) -> Response:
        """Show the work under way, or what came of it."""
        job = self._job(request)
        done = "released.html" if job.task == "protect" else "verified.html"
        template = {"running": "working.html", "done": done}.get(job.state, "ended.html")
        return self.show(template, job=job)

    def progress(self, request: Request) -> Response:
        """Show how far the work is; send the page on when it has ended."""
        job = self._job(request)
        if job.state != "running":
            return Response(headers={"HX-Redirect": f"{self.keys.at}/work/{job.key}"})
        return self.show("progress.html", job=job)

    async def cancel(self, request: Request) -> Response:
        """Stop the work."""
        await self.form(request)
        job = self._job(request)
        await run_in_threadpool(job.stop)
        return self.go(f"/work/{job.key}")

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

    def verify(self, request: Request) -> Response:
        """Ask which files are to be compared."""
        self.jobs.prepare()
        return self.show_verify(dict(request.query_params))

    def show_verify(self, values: Values, *, problem: str = "") -> Response:
        """Show the page of a second look with what was chosen so far."""
        found = self.folder.grouped("table", "rules", "manifest")
        names = {what: [entry.name for entry in entries] for what, entries in found.items()}
        asked = ("original", "release", "manifest", "k", "rules", "strata", "id")
        given = {name: values.get(name, "") for name in asked}
        return self.show("verify.html", names=names, values=given, problem=problem)

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
                "verify", folder=str(self.folder.path),
                k=forms.whole_number(values, "k", least=2),
                original=values["original"], release=values["release"],
                rules=values.get("rules") or None, manifest=values.get("manifest") or None,
                strata=strata or None, id=values.get("id", "").strip() or None,
            )  # fmt: skip
        except TessellaError as error:
            return self.show_verify(values, problem=str(error))
        return self.go(f"/work/{job.key}")


def in_place(request: Request) -> bool:
    """Return whether a script asks for a piece of the page."""
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
