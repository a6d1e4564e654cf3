"""The page of the rules: typed, taken from a file, or found in the data."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..exceptions import RuleSyntaxError, TessellaError
from ..rules import Rules
from . import editing
from .desk import AnswerError, NotYetError
from .editing import Content
from .plan_pages import PlanPages
from .site import Site, in_place


class RulesPages:
    """The rules of one plan."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.plans = PlanPages(site)
        self.shown = {
            "/plans/{name}/rules": self.rules,
            "/plans/{name}/rules/suggestions": self.suggestions,
        }
        self.posted = {
            "/plans/{name}/rules": self.change_rules,
            "/plans/{name}/rules/accept": self.accept,
            "/plans/{name}/rules/file": self.take_rules,
        }

    def rules(self, request: Request) -> Response:
        """Show the rules, which records break them, and where to find more."""
        return self.show_rules(request.path_params["name"])

    def show_rules(self, name: str, *, problem: str = "") -> Response:
        """Show the page of the rules."""
        known = self.plans.known(name)
        if known["mistakes"]:
            return self.plans.show_toml(name, problem="The plan has mistakes: they come first.")
        text = known["pending"].get("rules")
        if text is None:
            text = self._rules_text(known["content"])
        judged = self._judge(known, text)
        files = [one.name for one in self.site.folder.grouped("rules")["rules"]]
        return self.site.show(
            "rules.html", **known, text=text, judged=judged, files=files, problem=problem
        )

    def _rules_text(self, content: Content) -> str:
        rules = content.get("rules", {})
        if rules.get("file"):
            return Rules.read(self.site.folder.inside(rules["file"])).to_text()
        return "".join(f"{line}\n" for line in rules.get("lines", []))

    def _judge(self, known: dict[str, Any], text: str) -> dict[str, Any]:
        """Return what is true of rules: mistakes, a problem, or how the table obeys them."""
        if not text.strip():
            return NOTHING
        try:
            return {**NOTHING, **self.site.ask("rules", text=text, **self.plans.asked(known))}
        except NotYetError:
            raise
        except AnswerError as error:
            return _unread(error)

    async def change_rules(self, request: Request) -> Response:
        """Keep rules as they are typed: right ones in the plan, others until they are."""
        values = await self.site.form(request)
        text = values.get("rules", "").replace("\r\n", "\n")

        def answer() -> Response:
            name, site = request.path_params["name"], self.site
            problem = ""
            try:
                lines = _lines(text, site)
            except RuleSyntaxError as error:
                site.histories.keep(name, "rules", text)
                judged = NOTHING | {"mistakes": error.mistakes}
            else:
                site.histories.keep(name, "rules", None)
                known = self.plans.known(name)
                if lines != _lines(self._rules_text(known["content"]), site):
                    try:
                        self.plans.apply(
                            name, values, lambda now, _: (editing.with_rules(now, lines), "rules"),
                            typed=True,
                        )  # fmt: skip
                    except TessellaError as error:
                        problem = str(error)
                        site.histories.keep(name, "rules", text)
                judged = self._judge_now(name, text) if in_place(request) else NOTHING
            if in_place(request):
                return site.show(
                    "rules_judged.html", **self.plans.known(name), judged=judged, problem=problem,
                    status=200,
                )  # fmt: skip
            return self.show_rules(name, problem=problem)

        return await run_in_threadpool(answer)

    def _judge_now(self, name: str, text: str) -> dict[str, Any]:
        known = self.plans.known(name)
        if not text.strip():
            return NOTHING
        try:
            asked = self.plans.asked(known)
            channel = f"rules {name}"
            found = self.site.ask("rules", wait=True, channel=channel, text=text, **asked)
            return {**NOTHING, **found}
        except AnswerError as error:
            return _unread(error)

    async def accept(self, request: Request) -> Response:
        """Add a rule that was suggested."""
        values = await self.site.form(request)
        line = values.get("rule", "").strip()

        def answer() -> Response:
            name = request.path_params["name"]
            try:
                _lines(line, self.site)

                def change(now: Content, base: Content) -> tuple[Content, str]:  # noqa: ARG001
                    there = _lines(self._rules_text(now), self.site)
                    wanted = there if line in there else [*there, line]
                    return editing.with_rules(now, wanted), f"rule: {line}"

                self.plans.apply(name, values, change)
            except TessellaError as error:
                return self.show_rules(name, problem=str(error))
            return self.site.go(f"/plans/{quote(name)}/rules#suggestions")

        return await run_in_threadpool(answer)

    async def take_rules(self, request: Request) -> Response:
        """Take the rules of a file into the plan."""
        values = await self.site.form(request)

        def answer() -> Response:
            name = request.path_params["name"]
            try:
                path = self.site.folder.existing(values.get("file", ""))
                lines = _lines(Rules.read(path).to_text(), self.site)

                def change(now: Content, base: Content) -> tuple[Content, str]:  # noqa: ARG001
                    there = _lines(self._rules_text(now), self.site)
                    more = [line for line in lines if line not in there]
                    return editing.with_rules(now, [*there, *more]), f"rules of {path.name}"

                self.plans.apply(name, values, change)
            except TessellaError as error:
                return self.show_rules(name, problem=str(error))
            self.site.histories.keep(name, "rules", None)
            return self.site.go(f"/plans/{quote(name)}/rules")

        return await run_in_threadpool(answer)

    def suggestions(self, request: Request) -> Response:
        """Show rules that were found in the data."""
        name = request.path_params["name"]
        known = self.plans.known(name)
        found = self.site.ask("suggest", wait=in_place(request), **self.plans.asked(known))
        there = _lines(self._rules_text(known["content"]), self.site)
        left = [one for one in found["suggestions"] if one["rule"] not in there]
        template = "suggestions.html" if in_place(request) else "suggestions_page.html"
        return self.site.show(
            template, **known, suggestions=left, n_records=found["records"],
            false_rate=found["false_rate"],
        )  # fmt: skip


NOTHING: dict[str, Any] = {  # what is true of no rules
    "mistakes": (), "problem": "", "lines": [], "findings": [], "breaking": 0, "records": 0,
}  # fmt: skip


def _unread(error: AnswerError) -> dict[str, Any]:
    """Return what is true of rules that cannot be confronted."""
    problem = "" if error.mistakes else str(error)
    return NOTHING | {"mistakes": error.mistakes, "problem": problem}


def _lines(text: str, site: Site) -> list[str]:
    """Return rules as the lines of a plan; raise every mistake."""
    Rules.parse(text, folder=site.folder.path)
    return [line.strip() for line in text.split("\n") if line.strip()]
