"""`tessella explore`: the map of risk and loss for one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..exceptions import BadOptionError
from ..explore import explore
from ..rules import Rules
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
    table = source.table.select(wanted)
    given = None if rules is None else Rules.read(rules).for_columns(wanted, only=True)
    many = int(budget) if budget is not None and budget.isdecimal() else budget
    with voice.progress("Exploring ...") as step:
        found = explore(
            table, k=sizes, rules=given, effort=effort, budget=many, store=store,
            progress=lambda at: step(at.done, at.total, "Exploring"), random_state=seed,
        )  # fmt: skip
    if out is not None:
        found.save(out)
    if picture is not None:
        from ..pictures import save

        save(found.picture(), Path(picture))
    text, data = str(found), found.to_dict()
    if max_risk is not None or max_loss is not None:
        best = found.best(max_risk=max_risk, max_loss=max_loss)
        text += f"\n\nBest: {best}"
        data["best"] = str(best)
    voice.give(text, data)


def _sizes(text: str) -> tuple[int, ...]:
    pieces: list[Any] = [piece.strip() for piece in text.split(",")]
    if not all(piece.isdecimal() for piece in pieces):
        raise BadOptionError("--k", text, "whole numbers between commas, such as 3,5,10")
    return tuple(int(piece) for piece in pieces)
