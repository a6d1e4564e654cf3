"""`tessella plan`: a first draft that a person can edit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..io import Source
from ..io.writing import whole_or_nothing
from ..planfile import draft
from ..schema import Schema
from .checking import read_source
from .reporting import Reporter, columns_of

__all__ = ["plan"]


def plan(
    file: str,
    k: int,
    *,
    rules: str | None,
    stated: Mapping[str, str | None],
    strata: str | None,
    out: str | None,
    release: str | None,
    seed: int | None,
    read: list[str],
    reporter: Reporter,
) -> None:
    """Write the draft to a file, or print it; `stated` are roles as sdcMicro states them."""
    source = read_source(file, read, reporter)
    folder = Path(out).parent if out else Path()
    text = draft(
        source, k=k, rules=rules, strata=columns_of(strata) or (), output=release, seed=seed,
        folder=folder, schema=_schema(source, stated),
    )  # fmt: skip
    if out is None:
        reporter.give(text, text)
        return
    with whole_or_nothing(Path(out), overwrite=False) as file_of_plan:
        file_of_plan.write(text.encode())
    reporter.say(f"{out} is written. Read it, edit it, then: tessella protect --plan {out}")


def _schema(source: Source, stated: Mapping[str, str | None]) -> Schema | None:
    """Return the schema that roles on the command line make; None if none are stated."""
    if not any(stated.values()):
        return None
    guess = source.schema()
    options: dict[str, Any] = {
        name: columns_of(stated[name]) or [] for name in ("keys", "numeric_keys", "confidential")
    }
    options |= {name: stated[name] for name in ("weight", "household", "others")}
    named = {*options["keys"], *options["numeric_keys"], *options["confidential"]}
    named |= {options["weight"], options["household"]}
    options["identifiers"] = [name for name in guess.names("identifier") if name not in named]
    known = Schema.from_keys(source.table, **options)
    carried = {c.name: {"missing": c.missing, "labels": c.labels} for c in guess}
    return known.override(carried)
