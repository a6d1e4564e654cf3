"""`tessella loss` and `tessella risk`: what masking has cost, and what an intruder finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..io import Source, read_file, write_file
from ..loss import measure
from ..risk import assess
from .reporting import Reporter, columns_of, options_of

__all__ = ["loss", "read_both", "risk"]


def read_both(
    original: str, release: str, read: list[str], reporter: Reporter
) -> tuple[Source, Source]:
    """Read two files; options of reading are for the original, those of the release are found."""
    with reporter.waiting(f"Reading {Path(original).name} and {Path(release).name} ..."):
        before = read_file(original, **options_of(read))
        after = read_file(release)
    return before, after


def loss(
    original: str,
    release: str,
    columns: str | None,
    by_column: bool,
    read: list[str],
    reporter: Reporter,
) -> None:
    """Print every measure that fits."""
    before, after = read_both(original, release, read, reporter)
    known = before.schema()
    wanted = columns_of(columns)
    if wanted is None:
        wanted = [name for name in before.columns if name in after.columns]
    found = measure(before.table, after.table, columns=wanted, schema=known, on_unpaired="skip")
    text = str(found)
    if by_column:
        text += "\n\n" + found.to_frame(by_column=True).to_string(index=False)
    reporter.give(text, found.to_dict())


def risk(
    original: str,
    release: str,
    *,
    known: str | None,
    confidential: str | None,
    identity: str | None,
    effort: str,
    time_limit: float | None,
    records: str | None,
    read: list[str],
    reporter: Reporter,
) -> None:
    """Print what every attack found."""
    before, after = read_both(original, release, read, reporter)
    options: dict[str, Any] = {}
    if confidential:
        options["confidential"] = columns_of(confidential)
    with reporter.progress("Attacking ...") as step:
        found = assess(
            before.table, after.table, known=columns_of(known), id=identity, effort=effort,
            schema=before.schema(), time_limit=time_limit, progress=step, random_state=0, **options,
        )  # fmt: skip
    if records is not None:
        write_file(found.records, records)
        reporter.say(f"{records} says who can be found: it is as confidential as the original.")
    for one in found.tried:
        reporter.detail(f"\n{one.name}\n{one.found.explain()}")
    reporter.give(str(found), found.to_dict())
