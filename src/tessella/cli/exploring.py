"""`tessella explore`: the map of risk and loss for one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..exceptions import BadOptionError, NoCandidateError
from ..explore import explore
from ..frame import Table
from ..release.patterns import count_rare, suppress
from ..rules import Rules
from ..schema import Schema
from .checking import read_source
from .telling import Voice, columns_of

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
    voice: Voice,
) -> None:
    """Explore, print the front, write what is asked for."""
    sizes = _sizes(k)
    source = read_source(file, read, voice)
    wanted = columns_of(columns)
    if wanted is None:
        schema = source.schema()
        wanted = [str(name) for name in schema.names("quasi-identifier", "confidential")]
    table = _complete_enough(source.table.select(wanted), max(sizes), voice)
    given = None if rules is None else Rules.read(rules).for_columns(wanted, only=True)
    many = int(budget) if budget is not None and budget.isdecimal() else budget
    with voice.progress("Exploring ...") as step:
        found = explore(
            table, k=sizes, rules=given, effort=effort, budget=many, store=store,
            progress=lambda at: step(at.done, at.total, "Exploring"), random_state=seed,
        )  # fmt: skip
    if out is not None:
        found.save(out)
    if picture is not None and any(point.tried for point in found):
        from ..pictures import save

        save(found.picture(), Path(picture))
    text, data = str(found), found.to_dict()
    if max_risk is not None or max_loss is not None:
        try:
            found.best(max_risk=max_risk, max_loss=max_loss)
        except NoCandidateError:
            voice.give(text, data)  # what there is, before what there is not
            raise
        best = found.best(max_risk=max_risk, max_loss=max_loss)
        text += f"\n\nBest: {best}"
        data["best"] = str(best)
    voice.give(text, data)


def _complete_enough(table: Any, k: int, voice: Voice) -> Any:
    """Suppress cells of records that lack what fewer than k lack, or groups could not be made."""
    read = Table.read(table)
    schema = Schema.guess(table).override(
        {name: {"role": "quasi-identifier"} for name in read.columns}
    )
    if k > read.n_rows or not count_rare(read, schema, k):
        return table
    prepared, _, lost = suppress(read, schema, k=k)
    voice.say(
        f"{lost:,} cells are taken as missing, so that {k} records lack the same; the plan's step "
        "'suppress' does the same."
    )
    return prepared


def _sizes(text: str) -> tuple[int, ...]:
    pieces: list[Any] = [piece.strip() for piece in text.split(",")]
    if not all(piece.isdecimal() for piece in pieces):
        raise BadOptionError("--k", text, "whole numbers between commas, such as 3,5,10")
    return tuple(int(piece) for piece in pieces)
