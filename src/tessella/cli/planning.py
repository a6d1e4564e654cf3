"""`tessella plan`: a first draft that a person can edit."""

from __future__ import annotations

from pathlib import Path

from ..io.atomic import whole_or_nothing
from ..planfile import draft
from .checking import read_source
from .telling import Voice, columns_of

__all__ = ["plan"]


def plan(
    file: str,
    k: int,
    rules: str | None,
    strata: str | None,
    out: str | None,
    release: str | None,
    seed: int | None,
    read: list[str],
    voice: Voice,
) -> None:
    """Write the draft to a file, or print it."""
    source = read_source(file, read, voice)
    folder = Path(out).parent if out else Path()
    text = draft(
        source, k=k, rules=rules, strata=columns_of(strata) or (), output=release, seed=seed,
        folder=folder,
    )  # fmt: skip
    if out is None:
        voice.give(text, text)
        return
    with whole_or_nothing(Path(out), overwrite=False) as file_of_plan:
        file_of_plan.write(text.encode())
    voice.say(f"{out} is written. Read it, edit it, then: tessella protect --plan {out}")
