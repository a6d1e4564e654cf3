"""The files of the folder; then one of them, its columns and rules, up to the draft of a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..exceptions import BadFileError, BadOptionError, TessellaError
from ..io import Source
from ..planfile import draft
from ..schema import Schema
from .context import AppContext, Values, in_place
from .forms import (
    KINDS,
    READING,
    ROLES,
    JudgedRules,
    first_values,
    judge_rules,
    reading_options,
    schema_of,
    strata_of,
    whole_number,
)

__all__ = ["FilePages"]


class FilePages:
    """From the list of files to the draft of a plan."""

    def __init__(self, context: AppContext) -> None:
        self.context = context

    def files(self, request: Request) -> Response:  # noqa: ARG002
        """List what is in the folder."""
        entries = self.context.folder.entries()
        table, plan, report = (
            [entry for entry in entries if entry.what == what]
            for what in ("table", "plan", "report")
        )
        return self.context.show(
            "files.html", table=table, plan=plan, report=report, jobs=self.context.jobs.latest()
        )

    def file(self, request: Request) -> Response:
        """Show how a file was read, and ask what its columns are."""
        path = self.context.folder.existing(request.path_params["name"])
        stated = {name: request.query_params.get(name, "") for name in READING}
        try:
            source = self.context.sources.read(path, reading_options(stated))
        except TessellaError as error:
            return self.context.show("unread.html", name=path.name, why=str(error), stated=stated,
                             READING=READING, status=400)  # fmt: skip
        schema = source.schema()
        stem = path.name.split(".")[0] or "release"
        first = first_values(schema) | stated | {
            "k": "5", "seed": "", "rules-file": "", "rules": "",
            "plan": self.context.folder.free_name(f"{stem}-plan", ".toml"),
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
        return self.context.show(
            "file.html", source=source, schema=schema, values=values, judged=judged,
            problem=problem, KINDS=KINDS, ROLES=ROLES, READING=READING,
            name=source.path.name, status=400 if problem else 200,
            rules_files=[e.name for e in self.context.folder.entries() if e.what == "rules"],
        )  # fmt: skip

    def _source(self, request: Request, values: Values) -> Source:
        path = self.context.folder.existing(request.path_params["name"])
        return self.context.sources.read(path, reading_options(values))

    def _judge(self, values: Values, source: Source, schema: Schema) -> JudgedRules | None:
        """Look at the rules of a form; None if it has none."""
        name, text = values.get("rules-file", ""), values.get("rules", "")
        if name and text.strip():
            return JudgedRules(problem="Choose a file of rules or type them, not both.")
        if not name and not text.strip():
            return None
        path = self.context.folder.existing(name) if name else None
        return judge_rules(text, path, source, schema)

    async def check_rules(self, request: Request) -> Response:
        """Say what is wrong with rules, and how the table obeys them."""
        values = await self.context.form(request)

        def answer() -> Response:
            source = self._source(request, values)
            guess = source.schema()
            judged = self._judge(values, source, schema_of(guess, values))
            if judged is None:
                judged = JudgedRules(problem="There are no rules yet: choose a file or type some.")
            if in_place(request):
                return self.context.show("rules.html", judged=judged, n_rows=source.n_rows)
            return self.show_file(source, guess, values, judged=judged)

        return await run_in_threadpool(answer)

    async def draft(self, request: Request) -> Response:
        """Write the draft of a plan, and show it."""
        values = await self.context.form(request)

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
            return self.context.go(f"/plans/{quote(name)}")

        return await run_in_threadpool(answer)

    def _draft(self, source: Source, schema: Schema, values: Values) -> str:
        k = whole_number(values, "k", least=2)
        if k is None:
            raise BadOptionError("k", "", "the fewest records that share their values, such as 5")
        name = values.get("plan", "").strip()
        path = self.context.folder.place(name)
        if path.suffix != ".toml":
            raise BadOptionError("name of the plan", name, "a name that ends in .toml")
        if os.path.lexists(path):
            raise BadFileError(name, "the file exists", "Give the plan another name")
        seed = whole_number(values, "seed")
        rules = self._rules_file(values, path.stem.removesuffix("-plan"))
        text = draft(
            source, k=k, rules=rules, strata=strata_of(schema, values), schema=schema, seed=seed,
            output=values.get("release", "").strip() or None, folder=self.context.folder.path,
        )  # fmt: skip
        self.context.folder.write(name, text)
        return name

    def _rules_file(self, values: Values, stem: str) -> Path | None:
        """Return the file of the rules; those that were typed become one."""
        if name := values.get("rules-file", ""):
            return self.context.folder.existing(name)
        text = values.get("rules", "").replace("\r\n", "\n").strip()
        if not text:
            return None
        name = self.context.folder.free_name(f"{stem}-rules", ".txt")
        return self.context.folder.write(name, text + "\n")
