"""Running a plan, looking at what came of it, comparing two results, publishing one."""

from __future__ import annotations

import difflib
import re
import shlex
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ..exceptions import BadFileError, BadOptionError, TessellaError
from ..pictures.drawing import bars, before_after
from ..pictures.pair_drawing import pair
from . import editing
from .desk import AnswerError, NotYetError
from .jobs import Job
from .plan_pages import PlanPages
from .runs import Run
from .site import Site, give, in_place

SHRUNK = 12  # categories that are shown


class ResultPages:
    """Run, look, compare, publish."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.plans = PlanPages(site)
        self.shown = {
            "/plans/{name}/run": self.run,
            "/plans/{name}/look": self.look,
            "/plans/{name}/look/columns": self.columns,
            "/plans/{name}/look/pair": self.pair,
            "/plans/{name}/compare": self.compare,
            "/plans/{name}/publish": self.publish,
            "/runs/{key}/output/{what}": self.output,
            "/work/{key}": self.job,
            "/work/{key}/progress": self.progress,
        }
        self.posted = {
            "/plans/{name}/run": self.start,
            "/plans/{name}/publish": self.place,
            "/work/{key}/cancel": self.cancel,
        }

    # Run.

    def run(self, request: Request) -> Response:
        """Show what will be run, and offer to start."""
        return self.show_run(request.path_params["name"])

    def show_run(self, name: str, *, problem: str = "") -> Response:
        """Show the page from which a plan is run."""
        self.site.jobs.prepare()
        known = self.plans.known(name)
        if known["mistakes"]:
            return self.plans.show_toml(name, problem="The plan has mistakes: they come first.")
        return self.site.show("run.html", **known, runs=self.site.runs.of(name), problem=problem)

    async def start(self, request: Request) -> Response:
        """Run the plan as it is now."""
        await self.site.form(request)

        def answer() -> Response:
            name, site = request.path_params["name"], self.site
            known = self.plans.known(name)
            if known["mistakes"]:
                return self.plans.show_toml(name, problem="The plan cannot be run yet.")
            home = site.runs.make()
            try:
                job = site.jobs.start(
                    "protect", home=home, folder=str(site.folder.path),
                    plan=known["held"].now.text, origin=name,
                    run=str(home.relative_to(site.folder.path)),
                )  # fmt: skip
            except TessellaError as error:
                home.rmdir()
                return self.show_run(name, problem=str(error))
            return site.go(f"/work/{job.key}")

        return await run_in_threadpool(answer)

    def _job(self, request: Request) -> Job:
        job = self.site.jobs.get(request.path_params["key"])
        if job is None:
            raise HTTPException(404)
        return job

    def job(self, request: Request) -> Response:
        """Show the work under way, or what came of it."""
        job = self._job(request)
        if job.task == "explore":
            return self.site.go(f"/plans/{quote(job.asked['origin'])}/map")
        if job.state == "running":
            return self.site.show("working.html", job=job)
        if job.state == "done" and job.task == "protect":
            return self.site.go(self._result(job))
        done = job.state == "done"
        return self.site.show("verified.html" if done else "ended.html", job=job)

    def _result(self, job: Job) -> str:
        return f"/plans/{quote(job.asked['origin'])}/look?run={job.result['run']}"

    def progress(self, request: Request) -> Response:
        """Show how far the work is; send the page on when it has ended."""
        job = self._job(request)
        if job.state != "running":
            return Response(headers={"HX-Redirect": f"{self.site.keys.at}/work/{job.key}"})
        return self.site.show("progress.html", job=job)

    async def cancel(self, request: Request) -> Response:
        """Stop the work."""
        await self.site.form(request)
        job = self._job(request)
        await run_in_threadpool(job.stop)
        return self.site.go(f"/work/{job.key}")

    # Look.

    def _run(self, name: str, key: str) -> Run | None:
        """Return a run of a plan, the latest if none is named."""
        if not key:
            return next(iter(self.site.runs.of(name)), None)
        run = self.site.runs.get(key)
        if run.plan != name:
            raise BadFileError(key, "this result is of another plan", "Choose another")
        return run

    def look(self, request: Request) -> Response:
        """Show a result: what it costs, what an intruder finds, before and after."""
        name = request.path_params["name"]
        known = self.plans.known(name)
        run = self._run(name, request.query_params.get("run", ""))
        if run is None:
            return self.show_run(name)
        summary = run.summary
        public, own = summary["public"], summary["confidential"]
        changed = known["held"].now.text != run.text
        columns: list[dict[str, Any]] = [
            {"label": column, "value": value, "text": f"{value:.3g} %"}
            for column, value in _loss_by_column(own).items()
        ]
        columns.sort(key=lambda one: one["value"], reverse=True)
        return self.site.show(
            "look.html", **known, run=run, public=public, own=own, changed=changed,
            warned=[_for_pages(one) for one in run.warnings],
            runs=self.site.runs.of(name), losses=bars(columns) if columns else "",
            smallest=min((b["smallest"] for b in public["blocks"]), default=None),
            worst=_worst(own), shrunk=_shrunk(own), attacks=_attacks(own),
            names=[c["name"] for c in public["columns"]],
            pair=(request.query_params.get("x", ""), request.query_params.get("y", "")),
        )  # fmt: skip

    def _compared(self, request: Request, **more: Any) -> tuple[Run, Any]:
        """Return a result, and what the process of the table says of it."""
        run = self._run(request.path_params["name"], request.query_params.get("run", ""))
        if run is None:
            raise HTTPException(404)
        release = str(run.path("release").relative_to(self.site.folder.path))
        content = editing.content_of(run.text)
        found = self.site.ask(
            "compare", wait=in_place(request), plan=run.text, origin=run.plan, release=release,
            stamp=self.site.stamp(content["input"]["file"]), **more,
        )  # fmt: skip
        return run, found

    def columns(self, request: Request) -> Response:
        """Show each column before and after."""
        try:
            run, found = self._compared(request)
        except NotYetError:
            raise
        except AnswerError as error:
            return self.site.show("problem_in_place.html", problem=str(error), status=200)
        drawn = [(one["name"], before_after(one)) for one in found["columns"]]
        return self._piece(request, "look_columns.html", run=run, drawn=drawn)

    def pair(self, request: Request) -> Response:
        """Show two columns together, before and after."""
        x, y = (request.query_params.get(axis, "") for axis in "xy")
        try:
            if not x or not y or x == y:
                raise BadOptionError("pair", f"{x}, {y}", "two different columns")
            _, found = self._compared(request, pair=[x, y])
        except NotYetError:
            raise
        except TessellaError as error:
            return self.site.show("problem_in_place.html", problem=str(error), status=200)
        return self._piece(request, "look_pair.html", drawn=pair(found["pair"]), x=x, y=y)

    def _piece(self, request: Request, piece: str, **known: Any) -> Response:
        """Show a piece of the page of a result; to a browser without scripts as a page."""
        if in_place(request):
            return self.site.show(piece, **known)
        plan = self.plans.known(request.path_params["name"])
        return self.site.show(
            "piece.html", **plan, **known, piece=piece, page="look", title="Before and after",
            back=f"/plans/{quote(plan['name'])}/look",
        )  # fmt: skip

    def compare(self, request: Request) -> Response:
        """Show two results side by side."""
        name = request.path_params["name"]
        known = self.plans.known(name)
        runs = self.site.runs.of(name)
        keys = [request.query_params.get("a", ""), request.query_params.get("b", "")]
        if not keys[1] and runs:
            keys[1] = runs[0].key
        if not keys[0]:  # the latest of the others
            keys[0] = next((run.key for run in runs if run.key != keys[1]), "")
        both = [self._run(name, key) for key in keys if key]
        sides = [run for run in both if run is not None]
        if len(sides) < 2:
            return self.site.show("compare.html", **known, runs=runs, sides=[], rows=[],
                                  attacks=[], losses="", differences=[], keys=keys)  # fmt: skip
        lost = _loss_rows(sides)
        return self.site.show(
            "compare.html", **known, runs=runs, sides=sides, rows=_rows(sides), keys=keys,
            attacks=_attack_rows(sides),
            losses=bars(lost, series=("first", "second")) if lost else "",
            differences=_differences(*(run.text for run in sides)),
        )  # fmt: skip

    # Publish.

    def publish(self, request: Request) -> Response:
        """Show which files will be written, and afterwards how to make them again."""
        return self.show_publish(request.path_params["name"], request.query_params.get("run", ""))

    def show_publish(self, name: str, key: str, *, problem: str = "") -> Response:
        """Show the page on which a result is published."""
        known = self.plans.known(name)
        run = self._run(name, key)
        if run is None:
            return self.show_run(name, problem="")
        names = self._outputs(run)
        existing = [one for one in names.values() if self.site.folder.inside(one).exists()]
        plan = run.published.get("plan", names["plan"])
        return self.site.show(
            "publish.html", **known, run=run, files=run.published or names, existing=existing,
            public=run.summary["public"], problem=problem, runs=self.site.runs.of(name),
            changed=known["held"].now.text != run.text,
            command=f"tessella protect --plan {shlex.quote(plan)} --overwrite",
            python=(
                "from tessella import publish\n\n"
                f"publish({plan!r}, overwrite=True)"
            ),
        )  # fmt: skip

    def _outputs(self, run: Run) -> dict[str, str]:
        stem = run.files["release"].split(".")[0]
        return {**run.files, "plan": f"{stem}-plan.toml"}

    async def place(self, request: Request) -> Response:
        """Give the files of a result their names in the folder."""
        values = await self.site.form(request)

        def answer() -> Response:
            name, key = request.path_params["name"], values.get("run", "")
            run = self._run(name, key)
            if run is None:
                raise HTTPException(404)
            names = self._outputs(run)
            try:
                existing = [n for n in names.values() if self.site.folder.inside(n).exists()]
                if existing and not values.get("overwrite"):
                    problem = f"{', '.join(existing)}: allow below that what is there is replaced."
                    return self.show_publish(name, run.key, problem=problem)
                done = self.site.runs.publish(run, names, overwrite=bool(values.get("overwrite")))
            except TessellaError as error:
                return self.show_publish(name, run.key, problem=str(error))
            return self.site.go(f"/plans/{quote(name)}/publish?run={done.key}")

        return await run_in_threadpool(answer)

    def output(self, request: Request) -> Response:
        """Give a file of a result."""
        run = self.site.runs.get(request.path_params["key"])
        what = request.path_params["what"]
        if what not in run.files or run.path(what).is_dir():
            raise HTTPException(404)
        path = self.site.folder.own(str(run.path(what).relative_to(self.site.folder.path)))
        if not path.is_file():
            raise BadFileError(run.files[what], "it is not there any more", "Run the plan again")
        return give(path)


def _for_pages(warning: str) -> str:
    """Write a warning in the words of the pages, where it speaks of a plan's text."""
    unsure = re.match(r"The plan is unsure about (.*?)\\. Look at kind", warning)
    if unsure is None:
        return warning
    return f"Kind or missing codes of {unsure[1]} are guesses: look at them on the page Open."


def _worst(own: dict[str, Any]) -> dict[str, Any] | None:
    """Return the attack that finds most."""
    if not own["risk"] or not own["risk"].get("worst"):
        return None
    named = [a for a in own["risk"]["attacks"] if a["attack"] == own["risk"]["worst"]]
    return max(named, key=lambda a: a["value"], default=None)


def _attacks(own: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the attacks, each with what it finds in the original as it is, where that is known."""
    if not own["risk"]:
        return []
    before = {
        (a["attack"], a["scenario"]): a["value"]
        for a in (own["risk_before"] or {}).get("attacks", [])
    }
    return [
        {**a, "before": before.get((a["attack"], a["scenario"]))} for a in own["risk"]["attacks"]
    ]


def _shrunk(own: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the categories whose share changed most."""
    if not own["estimates"]:
        return []
    found = [
        {**one, "change": (one["after"] - one["before"]) / one["before"]}
        for one in own["estimates"]["categories"] if one["before"]
    ]  # fmt: skip
    return sorted(found, key=lambda one: one["change"])[:SHRUNK]


def _rows(sides: list[Run]) -> list[tuple[str, list[Any], str]]:
    """Return the figures of results, row by row, and how each is written."""
    publics = [run.summary["public"] for run in sides]
    owns = [run.summary["confidential"] for run in sides]
    worst = [_worst(own) for own in owns]
    estimates = [own["estimates"] for own in owns]
    return [
        ("k", [p["k"] for p in publics], "number"),
        ("Smallest group", [
            min((b["smallest"] for b in p["blocks"]), default=None) for p in publics
        ], "number"),
        ("Information loss", [own["total_loss"] for own in owns], "percent"),
        ("Found by the worst attack", [w and w["value"] for w in worst], "share"),
        ("which is", [w and w["attack"] for w in worst], "text"),
        ("Rules that hold", [len(p["rules"]) + p["rules_withheld"] for p in publics], "number"),
        ("Estimates", [e and e["sentence"] for e in estimates], "text"),
        ("Time", [f"{run.seconds:.1f} s" for run in sides], "text"),
    ]  # fmt: skip


def _loss_rows(sides: list[Run]) -> list[dict[str, Any]]:
    both = [_loss_by_column(run.summary["confidential"]) for run in sides]
    names = [name for name in both[0] if name in both[1]]
    return [
        {"label": name, "value": both[0][name], "other": both[1][name],
         "text": f"{both[0][name]:.3g} %", "other_text": f"{both[1][name]:.3g} %"}
        for name in names
    ]  # fmt: skip


def _loss_by_column(own: dict[str, Any]) -> dict[str, float]:
    """Return the loss of each column of numbers, in per cent, as it was measured."""
    found: dict[str, Any] = next(
        (one["by_column"] for one in own["loss"] if one["name"] == "sse_sst"), {}
    )
    return {name: 100 * value for name, value in found.items() if value is not None}


def _attack_rows(sides: list[Run]) -> list[tuple[str, list[Any]]]:
    both = [
        {(a["attack"], a["scenario"]): a for a in _attacks(run.summary["confidential"])}
        for run in sides
    ]
    named = list(dict.fromkeys(key for side in both for key in side))
    return [(key[0], [side.get(key) for side in both]) for key in named]


def _differences(one: str, other: str) -> list[str]:
    """Return the lines in which two plans differ, without comments; the seed is not shown."""
    texts = [
        [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
        for text in (one, other)
    ]
    found = difflib.unified_diff(texts[0], texts[1], lineterm="", n=0)
    lines = [line for line in found if not line.startswith(("---", "+++", "@@"))]
    return [f"{line[0]} seed = …" if line[1:].startswith("seed") else line for line in lines]
