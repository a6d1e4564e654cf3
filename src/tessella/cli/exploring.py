"""`tessella explore`: the map of risk and loss for one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..exceptions import BadOptionError, NoCandidateError
from ..explore import explore
from ..explore.candidate import steps_to_toml
from ..frame import Table
from ..release import Step
from ..release.patterns import count_rare, suppress
from ..rules import Rules
from ..schema import Schema
from .checking import read_source
from .reporting import Reporter, columns_of

__all__ = ["run"]


def run(
    file: str,
    *,
    k: str,
    rules: str | None,
    columns: str | None,
    effort: str,
    budget: str | None,
    store: str | None,
    out: str | None,
    picture: str | None,
    max_risk: float | None,
    max_loss: float | None,
    seed: int | None,
    read: list[str],
    reporter: Reporter,
) -> None:
    """Explore, print the front, write what is asked for."""
    sizes = _sizes(k)
    source = read_source(file, read, reporter)
    wanted, whole = columns_of(columns), source.schema()
    if wanted is None:
        wanted = [str(name) for name in whole.names("quasi-identifier", "confidential")]
    schema = Schema([whole[name] for name in wanted]).override(
        {name: {"role": "quasi-identifier"} for name in wanted}
    )
    table, first = _complete_enough(source.table.select(wanted), schema, max(sizes), reporter)
    given = None if rules is None else Rules.read(rules).for_columns(wanted, only=True)
    many = int(budget) if budget is not None and budget.isdecimal() else budget
    with reporter.progress("Exploring ...") as step:
        found = explore(
            table, k=sizes, rules=given, effort=effort, budget=many, store=store, schema=schema,
            progress=lambda done, total, name: step(done, total, "Exploring"),  # noqa: ARG005
            random_state=seed,
        )  # fmt: skip
    if out is not None and not out.endswith(".toml"):
        found.save(out)
    if picture is not None and any(point.tried for point in found):
        from ..pictures import save

        save(found.picture(), Path(picture))
    text, data = str(found), found.to_dict()
    try:
        best = found.best(max_risk=max_risk, max_loss=max_loss)
    except NoCandidateError:
        reporter.give(text, data)  # what there is, before what there is not
        raise
    steps = [*first, *best.to_steps()]
    toml = steps_to_toml(steps)
    if out is not None and out.endswith(".toml"):
        Path(out).write_text(toml, encoding="utf-8")
    text += f"\n\nBest: {best}\nIts steps, for a plan:\n\n{toml}"
    reporter.give(text, data | {"best": str(best), "steps": [step.to_dict() for step in steps]})


def _complete_enough(
    table: Any, schema: Schema, k: int, reporter: Reporter
) -> tuple[Any, list[Step]]:
    """Suppress cells of records that lack what fewer than k lack, or groups could not be made."""
    read = Table.read(table)
    if k > read.n_rows or not count_rare(read, schema, k):
        return table, []
    prepared, _, lost = suppress(read, schema, k=k)
    reporter.say(
        f"{lost:,} cells are taken as missing, so that {k} records lack the same; the step "
        "'suppress' does the same in a plan."
    )
    return prepared, [Step(method="suppress", options={"k": k, "columns": list(read.columns)})]


def _sizes(text: str) -> tuple[int, ...]:
    pieces: list[Any] = [piece.strip() for piece in text.split(",")]
    if not all(piece.isdecimal() for piece in pieces):
        raise BadOptionError("--k", text, "whole numbers between commas, such as 3,5,10")
    return tuple(int(piece) for piece in pieces)
