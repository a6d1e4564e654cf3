"""The pages that change a plan: its columns, its steps, its text, its history.

A form carries the version of the plan that it was made from. What differs from that version was
changed by a person, and goes into the plan as it is now: two tabs do not undo each other's work.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..exceptions import Mistake, PlanFileError, TessellaError, UnknownOptionError
from ..planfile import PlanFile, parse_plan
from ..planfile.model import files_of_hierarchies
from . import editing, key_settings, settings
from .desk import AnswerError, NotYetError, SupersededError
from .editing import Content
from .forms import KINDS, ROLES
from .history import History, StaleError
from .site import Site, Values, in_place

Change = Callable[[Content, Content], tuple[Content, str]]


class PlanPages:
    """Data, plan, TOML and history of one plan."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.shown = {
            "/plans/{name}": self.plan,
            "/plans/{name}/data": self.data,
            "/plans/{name}/toml": self.toml,
            "/plans/{name}/history": self.history,
            "/plans/{name}/explanation": self.explanation,
        }
        self.posted = {
            "/plans/{name}": self.change_plan,
            "/plans/{name}/data": self.change_data,
            "/plans/{name}/recode": self.recode,
            "/plans/{name}/estimate": self.estimate,
            "/plans/{name}/toml": self.change_toml,
            "/plans/{name}/move": self.move,
        }

    # What all of them do.

    def known(self, name: str) -> dict[str, Any]:
        """Return what every page of a plan shows: its name, its version, what can be undone."""
        held = self.site.histories.open(name)
        content, mistakes = _content(held, self.site, name)
        return {"name": name, "held": held, "was": held.now.key, "content": content,
                "mistakes": mistakes, "pending": held.pending}  # fmt: skip

    def asked(self, known: dict[str, Any]) -> dict[str, Any]:
        """Return what a question about a plan gives, and what its answer depends on."""
        content = known["content"]
        rules = content.get("rules", {}).get("file")
        more = files_of_hierarchies(editing.keys_step(content))
        stamp = self.site.stamp(content.get("input", {}).get("file"), rules, *more)
        return {"plan": known["held"].now.text, "origin": known["name"], "stamp": stamp}

    def apply(self, name: str, values: Values, change: Change, *, typed: bool = False) -> str:
        """Carry what a form changed into the plan; return what was changed, in words."""
        site = self.site
        with site.histories.lock:
            held = site.histories.open(name)
            base = held.find(values.get("was", ""))
            if base is None:
                raise StaleError
            now = editing.content_of(held.now.text)
            wanted, what = change(now, editing.content_of(base.text))
            if wanted != now:
                text = editing.rewrite(held.now.text, wanted)
                site.folder.check_plan(parse_plan(text, folder=site.folder.path, origin=name))
                site.histories.change(name, text, what[:200], typed=typed)
            return what

    def _answer(
        self, request: Request, values: Values, change: Change, page: str, **notes: Any
    ) -> Response:
        """Apply a change; answer a script with what changed in the page, a browser with a page."""
        name = request.path_params["name"]
        problem = ""
        mistakes: tuple[Mistake, ...] = ()
        try:
            self.apply(name, values, change)
        except PlanFileError as error:
            problem, mistakes = "The plan cannot be changed so.", error.mistakes
        except TessellaError as error:
            problem = str(error)
        if in_place(request):
            answer = self.site.show(
                "changed.html", **self.known(name), problem=problem, found=mistakes, status=200
            )
            answer.headers["HX-Trigger"] = "explained"
            if notes.get("again") and not problem:  # other fields are shown for another method
                answer.headers["HX-Refresh"] = "true"
            return answer
        if problem:
            shown: Callable[..., Response] = getattr(self, f"show_{page}")
            told = " ".join([problem, *(f"{one.where}: {one.message}" for one in mistakes)])
            return shown(name, problem=told)
        return self.site.go(f"/plans/{quote(name)}{notes.get('then', '')}")

    # Columns.

    def data(self, request: Request) -> Response:
        """Show what the table holds, and ask what its columns are."""
        return self.show_data(request.path_params["name"])

    def show_data(self, name: str, *, problem: str = "") -> Response:
        """Show the page of the columns."""
        known = self.known(name)
        if known["mistakes"]:
            return self.show_toml(name, problem="The plan has mistakes: they come first.")
        found = self.site.ask("describe", **self.asked(known))
        return self.site.show(
            "data.html", **known, found=found, KINDS=KINDS, ROLES=ROLES, problem=problem
        )

    async def change_data(self, request: Request) -> Response:
        """Change kinds, roles and missing codes."""
        values = await self.site.form(request)

        def change(now: Content, base: Content) -> tuple[Content, str]:
            changes: dict[str, dict[str, Any]] = {}
            words = []
            for at, (column, own) in enumerate(base.get("columns", {}).items()):
                made: dict[str, Any] = {}
                for key, offered in (("kind", KINDS), ("role", ROLES)):
                    given = values.get(f"{key}-{at}", own.get(key, "quasi-identifier"))
                    if given not in offered:
                        raise UnknownOptionError(f"{key} of column {column!r}", given, offered)
                    if given != own.get(key, "quasi-identifier"):
                        made[key] = given
                        words.append(f"{column} is {given}")
                shown = ", ".join(str(code) for code in own.get("missing", []))
                typed = values.get(f"missing-{at}", shown).strip()
                if typed != shown:
                    made["missing"] = [_code(one) for one in typed.split(",") if one.strip()]
                    words.append(f"missing codes of {column}: {typed or 'none'}")
                if values.get(f"kept-{at}") and own.get("unique") != "kept":
                    made["unique"] = "kept"
                    words.append(f"{column} is released although most of its values are unique")
                if values.get("confirm") and own.get("unsure"):
                    made["unsure"] = None
                    words.append(f"{column} is confirmed")
                if made:
                    changes[column] = made
            wanted = key_settings.follow(editing.with_columns(now, changes), now)
            return wanted, "; ".join(words)

        answer = run_in_threadpool(self._answer, request, values, change, "data", then="/data")
        return await answer

    # Steps.

    def plan(self, request: Request) -> Response:
        """Show what will be done."""
        return self.show_plan(request.path_params["name"])

    def show_plan(self, name: str, *, problem: str = "") -> Response:
        """Show the page of the plan."""
        self.site.jobs.prepare()
        known = self.known(name)
        if known["mistakes"]:
            return self.show_toml(name, problem="The plan has mistakes: they come first.")
        content = known["content"]
        step, keys = editing.main_step(content), editing.keys_step(content)
        return self.site.show(
            "plan.html", **known, fields=settings.read_settings(content), step=step,
            methods=settings.method_choices(), EFFORTS=settings.EFFORTS, RISKS=settings.RISKS,
            ON_DOMINANCE=settings.ON_DOMINANCE, OUTPUTS=settings.OUTPUTS, problem=problem,
            beside=[s for s in editing.masking_steps(content) if s not in (step, keys)], keys=keys,
            key_choices=key_settings.key_choices(), key_names=key_settings.key_names(content),
            columns={
                one: {"kind": own["kind"], "role": own.get("role", "quasi-identifier")}
                for one, own in content.get("columns", {}).items()
            },
            recodings=[s for s in editing.steps_of(content) if s["method"] == "recode"],
        )  # fmt: skip

    async def change_plan(self, request: Request) -> Response:
        """Change settings."""
        values = await self.site.form(request)

        def change(now: Content, base: Content) -> tuple[Content, str]:
            shown = settings.read_settings(base)
            changes = settings.changed_fields(shown, values, whole="k" in values)
            return settings.apply_settings(now, changes)

        def answer() -> Response:
            held = self.site.histories.open(request.path_params["name"])
            base = held.find(values.get("was", "")) or held.now
            try:
                shown = settings.read_settings(editing.content_of(base.text))
            except ValueError:  # no TOML any more
                shown = {}
            others = ("method", "keys")  # with another choice, other fields are shown
            again = any(values.get(one, shown.get(one)) != shown.get(one) for one in others)
            return self._answer(request, values, change, "plan", again=again)

        return await run_in_threadpool(answer)

    async def recode(self, request: Request) -> Response:
        """Make a column coarser, or leave it as it is."""
        values = await self.site.form(request)
        column = values.get("column", "")

        def change(now: Content, base: Content) -> tuple[Content, str]:  # noqa: ARG001
            if values.get("remove"):
                return settings.remove_recoding(now, values["remove"])
            return settings.add_recoding(now, column, values.get("recoding", ""))

        return await run_in_threadpool(self._answer, request, values, change, "plan")

    async def estimate(self, request: Request) -> Response:
        """Estimate loss and risk of the plan with the fields of a form; nothing is kept."""
        values = await self.site.form(request)

        def answer() -> Response:
            name, site = request.path_params["name"], self.site
            known = self.known(name)
            try:
                base = known["held"].find(values.get("was", ""))
                shown = settings.read_settings(
                    known["content"] if base is None else editing.content_of(base.text)
                )
                changes = settings.changed_fields(shown, values, whole="k" in values)
                wanted, _ = settings.apply_settings(known["content"], changes)
                text = editing.rewrite(known["held"].now.text, wanted)
                asked = self.asked(known) | {"plan": text}
                found = site.ask("estimate", wait=True, channel=f"estimate {name}", **asked)
            except SupersededError:
                return Response(status_code=204)
            except TessellaError as error:
                return site.show("estimate.html", estimate=None, why=str(error), status=200)
            return site.show("estimate.html", estimate=found, why="")

        return await run_in_threadpool(answer)

    def explanation(self, request: Request) -> Response:
        """Explain what the plan will do, in words, and what is to be looked at."""
        name = request.path_params["name"]
        known = self.known(name)
        if known["mistakes"]:
            return self.site.show("explanation.html", **known, found=None, why="", status=200)
        try:
            found = self.site.ask("check", wait=in_place(request), **self.asked(known))
        except NotYetError:
            raise
        except AnswerError as error:
            return self.site.show(
                "explanation.html", **known, found=None, why=str(error), status=200
            )
        if in_place(request):
            return self.site.show("explanation.html", **known, found=found, why="")
        return self.site.show(
            "piece.html", **known, found=found, why="", piece="explanation.html", page="plan",
            title="In words", back=f"/plans/{quote(name)}",
        )  # fmt: skip

    # The text, and what it was.

    def toml(self, request: Request) -> Response:
        """Show a plan as text, to edit."""
        return self.show_toml(request.path_params["name"])

    def show_toml(self, name: str, *, problem: str = "", text: str | None = None) -> Response:
        """Show the page of the text."""
        known = self.known(name)
        typed = known["pending"].get("toml") if text is None else text
        shown = known["held"].now.text if typed is None else typed
        _, mistakes = _read(shown, self.site, name)
        return self.site.show(
            "toml.html", **known | {"mistakes": mistakes}, text=shown, problem=problem,
            status=200 if problem.startswith("The plan has mistakes") else None,
        )  # fmt: skip

    async def change_toml(self, request: Request) -> Response:
        """Keep a text as it is typed: a right one as the plan, another until it is right."""
        values = await self.site.form(request)
        name, text = request.path_params["name"], values.get("text", "").replace("\r\n", "\n")

        def answer() -> Response:
            site, problem = self.site, ""
            held = site.histories.open(name)
            plan, mistakes = _read(text, site, name)
            if plan is None:
                site.histories.keep(name, "toml", text)
            elif held.find(values.get("was", "")) is None or (
                held.now.key != values.get("was") and held.now.text != text
            ):
                problem = str(StaleError())
                site.histories.keep(name, "toml", text)
            else:
                site.histories.keep(name, "toml", None)
                site.histories.keep(name, "rules", None)
                site.histories.change(name, text, "the text of the plan", typed=True)
            if in_place(request):
                return site.show(
                    "toml_judged.html", **self.known(name) | {"mistakes": mistakes},
                    problem=problem, status=200,
                )  # fmt: skip
            return self.show_toml(name, problem=problem, text=text)

        return await run_in_threadpool(answer)

    def history(self, request: Request) -> Response:
        """Show what was changed, and offer to go back."""
        return self.site.show("history.html", **self.known(request.path_params["name"]))

    async def move(self, request: Request) -> Response:
        """Undo, redo, or go to a version."""
        values = await self.site.form(request)
        name, to = request.path_params["name"], values.get("to", "")
        steps = {"undo": -1, "redo": 1}

        def answer() -> Response:
            if to in steps:
                self.site.histories.move(name, steps[to])
            elif re.fullmatch(r"[0-9]{1,6}", to):
                self.site.histories.go(name, int(to))
            back = values.get("page", "")
            page = f"/{back}" if back in PAGES else ""
            return self.site.go(f"/plans/{quote(name)}{page}")

        return await run_in_threadpool(answer)


PAGES = ("data", "rules", "map", "toml", "history", "look", "publish")


def _content(held: History, site: Site, name: str) -> tuple[Content, tuple[Mistake, ...]]:
    plan, mistakes = _read(held.now.text, site, name)
    return ({} if plan is None else editing.content_of(held.now.text)), mistakes


def _read(text: str, site: Site, name: str) -> tuple[PlanFile | None, tuple[Mistake, ...]]:
    """Read the text of a plan; or tell its mistakes."""
    try:
        plan = parse_plan(text, folder=site.folder.path, origin=name)
        site.folder.check_plan(plan)
    except PlanFileError as error:
        return None, error.mistakes
    except TessellaError as error:
        return None, (Mistake(where="the plan", message=str(error)),)
    return plan, ()


def _code(text: str) -> Any:
    """Read a missing code: a whole number, a number, or a text."""
    text = text.strip()
    if re.fullmatch(r"[+-]?[0-9]{1,15}", text):
        return int(text)
    if re.fullmatch(r"[+-]?[0-9]{1,15}\.[0-9]{1,15}", text):
        return float(text)
    return text
