"""A plan: shown, checked, edited, saved, and run."""

from __future__ import annotations

import hashlib

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..exceptions import BadFileError, TessellaError
from .context import AppContext, Values, in_place
from .forms import JudgedPlan, judge_plan

__all__ = ["PlanPages"]


class PlanPages:
    """From the draft of a plan to the work."""

    def __init__(self, context: AppContext) -> None:
        self.context = context

    def plan(self, request: Request) -> Response:
        """Show a plan, to edit."""
        self.context.jobs.prepare()
        path = self.context.folder.existing(request.path_params["name"])
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise BadFileError(path.name, "this is no text", "Choose a plan") from None
        return self.show_plan(path.name, text, was=_hash(text), judged=self._look(text, path.name))

    def _look(self, text: str, name: str, *, deep: bool = False) -> JudgedPlan:
        return judge_plan(text, self.context.folder, name, self.context.sources if deep else None)

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
        return self.context.show(
            "plan.html", name=name, text=text, was=was, judged=judged, problem=problem, said=said,
            status=400 if problem else 200,
        )  # fmt: skip

    async def check(self, request: Request) -> Response:
        """Say all that is wrong with a plan, with lines."""
        values = await self.context.form(request)
        name, text = request.path_params["name"], _text(values)
        judged = await run_in_threadpool(self._look, text, name, deep=True)
        if in_place(request):
            return self.context.show("judged.html", judged=judged, name=name)
        return self.show_plan(name, text, was=values.get("was", ""), judged=judged)

    async def save(self, request: Request) -> Response:
        """Write a plan, and go on editing."""
        values = await self.context.form(request)
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
        path = self.context.folder.existing(name)
        if path.suffix != ".toml":
            raise BadFileError(name, "this is no plan", "Choose a file that ends in .toml")
        there = path.read_text(encoding="utf-8-sig", errors="replace")
        if there == text:
            return
        if _hash(there) != values.get("was", ""):
            raise BadFileError(
                name, "it was changed outside of this page", "Copy your text, and reload the page"
            )
        self.context.folder.write(name, text, overwrite=True)

    async def protect(self, request: Request) -> Response:
        """Save the plan and run it."""
        values = await self.context.form(request)
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
                job = self.context.jobs.start(
                    "protect", folder=str(self.context.folder.path), plan=text, origin=name,
                    overwrite=replace,
                )  # fmt: skip
                return self.context.go(f"/work/{job.key}")
        except TessellaError as error:
            problem = str(error)
        return self.show_plan(name, text, was=was, judged=judged, problem=problem)


def _text(values: Values) -> str:
    """Return the text of a plan; browsers end lines with CR LF."""
    return values.get("text", "").replace("\r\n", "\n")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
