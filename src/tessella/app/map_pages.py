"""The map: many ways to protect the table, tried in the background, loss against risk."""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..exceptions import BadOptionError, TessellaError
from ..explore import Point, apply_point
from ..explore.evaluate import front_of
from ..pictures.map_drawing import risk_utility_map
from ..pictures.map_table import is_within
from ..planfile import parse_plan
from . import editing
from .jobs import Job
from .plan_pages import PlanPages
from .site import Site, Values, in_place

BUDGET = 60  # points that are tried where nobody says otherwise
SIZES = (3, 5, 10, 20)
Plain = dict[str, Any]


class MapPages:
    """The risk-utility map of a plan."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.plans = PlanPages(site)
        self.shown = {"/plans/{name}/map": self.map}
        self.posted = {"/plans/{name}/map": self.start, "/plans/{name}/map/take": self.take}

    def _job(self, name: str) -> Job | None:
        """Return the latest exploration of a plan."""
        found = (j for j in self.site.jobs.latest() if j.task == "explore")
        return next((j for j in found if j.asked["origin"] == name), None)

    def map(self, request: Request) -> Response:
        """Show the map as far as it is known; a script asks for it again and again."""
        return self.show_map(request.path_params["name"], request.query_params, request)

    def show_map(
        self, name: str, query: Any, request: Request | None = None, *, problem: str = ""
    ) -> Response:
        """Show the page of the map, or the piece of it that changes."""
        known = self.plans.known(name)
        if known["mistakes"]:
            return self.plans.show_toml(name, problem="The plan has mistakes: they come first.")
        job = self._job(name)
        points = [] if job is None else list(job.points)
        present = next((p for p in points if p.get("present")), None)
        tried = [p for p in points if not p.get("present") and not p["error"]]
        refused = [p for p in points if not p.get("present") and p["error"]]
        limits = _limit(query.get("risk", "")), _limit(query.get("loss", ""))
        chosen = next((p for p in tried if p["key"] == query.get("point")), None)
        front = {point.candidate.key for point in front_of([_point(p) for p in tried])}
        here = f"{self.site.keys.at}/plans/{quote(name)}/map"

        def address(point: Plain) -> str:
            asked = {"point": point["key"], "risk": query.get("risk", ""),
                     "loss": query.get("loss", "")}  # fmt: skip
            return f"{here}?{urlencode({k: v for k, v in asked.items() if v})}#chosen"

        picture = ""
        if tried or present is not None:
            there = None if present is None or present["error"] else present
            picture = risk_utility_map(
                tried, front=front, present=there, chosen=None if chosen is None else chosen["key"],
                limits=limits, href=address,
            )  # fmt: skip
        within = [p for p in tried if p["key"] in front and is_within(p, limits)]
        best = min(within, key=lambda p: p["loss"] + p["risk"], default=None)
        template = "map_live.html" if request is not None and in_place(request) else "map.html"
        running = job is not None and job.state == "running"
        answer = self.site.show(
            template, **known, job=job, picture=picture, present=present, chosen=chosen,
            points=sorted(tried, key=lambda p: (p["key"] not in front, p["loss"])), front=front,
            refused=refused, limits=limits, best=best, address=address, problem=problem,
            asked={"risk": query.get("risk", ""), "loss": query.get("loss", ""),
                   "point": query.get("point", "")},
            budget=BUDGET, running=running,
        )  # fmt: skip
        if template == "map_live.html" and not running:
            answer.headers["HX-Refresh"] = "true"  # what is offered after it is on the whole page
        return answer

    async def start(self, request: Request) -> Response:
        """Start the exploration."""
        values = await self.site.form(request)

        def answer() -> Response:
            name = request.path_params["name"]
            known = self.plans.known(name)
            try:
                self.site.jobs.start(
                    "explore", folder=str(self.site.folder.path), plan=known["held"].now.text,
                    origin=name, budget=_budget(values), k=_sizes(values, known["content"]),
                )  # fmt: skip
            except TessellaError as error:
                return self.show_map(name, {}, problem=str(error))
            return self.site.go(f"/plans/{quote(name)}/map")

        return await run_in_threadpool(answer)

    async def take(self, request: Request) -> Response:
        """Make a point of the map the plan."""
        values = await self.site.form(request)

        def answer() -> Response:
            name = request.path_params["name"]
            job = self._job(name)
            points = [] if job is None else job.points
            point = next((p for p in points if p["key"] == values.get("point")), None)
            try:
                if point is None:
                    raise BadOptionError("point", "", "a point of the map; explore again")
                made = _point(point)

                def change(now: Plain, base: Plain) -> tuple[Plain, str]:  # noqa: ARG001
                    folder = self.site.folder.path
                    plan = parse_plan(self.site.histories.open(name).now.text, folder=folder)
                    applied = apply_point(plan, made)
                    steps = [step.to_dict() for step in applied.steps]
                    return {**now, "steps": steps}, f"the map's point: {point['text']}"

                held = self.site.histories.open(name)
                self.plans.apply(name, {"was": held.now.key}, change)
            except TessellaError as error:
                return self.show_map(name, {}, problem=str(error))
            return self.site.go(f"/plans/{quote(name)}")

        return await run_in_threadpool(answer)


def _point(known: Plain) -> Point:
    """Build a point from what the work told of it."""
    extra = ("key", "label", "text", "present")
    return Point.from_dict({name: value for name, value in known.items() if name not in extra})


def _limit(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= 100 else None


def _budget(values: Values) -> int:
    text = values.get("budget", "").strip() or str(BUDGET)
    if not text.isascii() or not text.isdecimal() or not 1 <= len(text) <= 4 or int(text) < 1:
        raise BadOptionError("points", text, "a number of points from 1 to 9999")
    return int(text)


def _sizes(values: Values, content: Plain) -> list[int]:
    text = values.get("sizes", "").strip()
    if not text:
        own = editing.main_step(content).get("k")
        return sorted({*SIZES, *([own] if isinstance(own, int) else [])})
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 8 for part in parts):
        raise BadOptionError("sizes", text, "whole numbers between commas, such as 3, 5, 10")
    return [int(part) for part in parts]
