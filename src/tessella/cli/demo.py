"""`tessella demo`: a made-up survey is masked, and an account is given of what was done to it.

First the facts (`Account`), then the telling (`tell`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import floor
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from sklearn.base import clone

from ..datasets import make_business_survey
from ..grouping.base import check_k
from ..masking.microaggregation import Microaggregation

__all__ = ["run"]

IDENTIFIER, KEPT, DROPPED = "firm", "branch", "region"
SHOWN = ["employees", "hours", "hourly_rate", "wages", "turnover", "profit"]
NAMES = [IDENTIFIER, KEPT, DROPPED]
MOST_ROWS = 6  # of a group, shown
MONEY = ["wages", "costs", "turnover", "profit"]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of the survey: how far records are from it, and how far rounding may carry them."""

    text: str
    distance: Callable[[pd.DataFrame], Any]
    rounding: float  # half a unit for each rounded number in the rule

    def kept(self, table: pd.DataFrame, *, tolerance: float = 0.0) -> float:
        """Share of the records that obey the rule, to a tolerance."""
        return float(np.mean(np.asarray(self.distance(table)) <= tolerance))


RULES = [
    Rule(
        text="costs == wages + materials + other_costs",
        distance=lambda t: (t["costs"] - t["wages"] - t["materials"] - t["other_costs"]).abs(),
        rounding=2.0,
    ),
    Rule(
        text="profit == turnover - costs",
        distance=lambda t: (t["profit"] - t["turnover"] + t["costs"]).abs(),
        rounding=1.5,
    ),
    Rule(
        text="wages == hours * hourly_rate",
        distance=lambda t: (t["wages"] - t["hours"] * t["hourly_rate"]).abs(),
        rounding=0.0,
    ),
    Rule(
        text="if employees == 0: wages == 0",
        distance=lambda t: t["wages"].where(t["employees"] == 0, 0),
        rounding=0.0,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Account:
    """All that is told."""

    k: int
    seed: int
    original: pd.DataFrame
    masked: pd.DataFrame
    strata: list[str]
    masker: Microaggregation
    unavoidable: float  # share of the loss below which no grouping can go
    compiling: float  # seconds
    masking: float
    proving: float

    @property
    def sizes(self) -> pd.Series[int]:
        """The number of records in each group."""
        return pd.Series(self.masker.labels_).value_counts()

    @property
    def fewest_alike(self) -> int:
        """The least number of equal rows, counted in the released table itself."""
        return int(self.masked.groupby(list(self.masked), observed=True).size().min())


def run(*, n: int, k: int, seed: int, method: str, effort: str) -> None:
    """Make a survey, mask it, print the account."""
    console = Console(highlight=False)
    firms = make_business_survey(n, random_state=seed)
    k = check_k(k, n)
    strata = strata_that_hold(firms, k)
    original = firms.drop(columns=[name for name in NAMES if name not in strata])
    options = {"effort": effort} if method == "search" else None
    masker = Microaggregation(
        k, method=method, options=options, strata=strata or None, random_state=seed
    )

    with waiting(console, "Loading; the first time, compiling, once ..."):
        compiling = seconds_to_compile(clone(masker).set_params(strata=None))
    with waiting(console, f"Masking {n:,} firms ..."):
        start = perf_counter()
        masked = masker.fit_transform(original)
        masking = perf_counter() - start
    with waiting(console, "Proving how much of the loss is unavoidable ..."):
        start = perf_counter()
        unavoidable = 1 - masker.groupings_[0].gap_
        proving = perf_counter() - start

    tell(
        console,
        Account(
            k=k, seed=seed, original=original, masked=masked, strata=strata, masker=masker,
            unavoidable=unavoidable, compiling=compiling, masking=masking, proving=proving,
        ),
    )  # fmt: skip


def waiting(console: Console, what: str) -> AbstractContextManager[Any]:
    """Say what is being waited for: in passing on a terminal, as a line elsewhere."""
    if console.is_terminal:
        return console.status(what)
    console.print(what)
    return nullcontext()


def strata_that_hold(firms: pd.DataFrame, k: int) -> list[str]:
    """Keep the category exact if every branch has at least k firms, else leave it out."""
    return [KEPT] if firms[KEPT].value_counts().min() >= k else []


def seconds_to_compile(masker: Microaggregation) -> float:
    """Run everything once on a small survey, so that the time of the masking is its own."""
    start = perf_counter()
    small = make_business_survey(max(100, 4 * masker.k), random_state=0)
    masker.fit(small.drop(columns=NAMES))
    _ = masker.groupings_[0].gap_
    return perf_counter() - start


def tell(console: Console, account: Account) -> None:
    """Print the account."""
    console.print(f"\n[bold]tessella demo[/]: a business survey, masked at k = {account.k}\n")
    console.print(
        f"{len(account.original):,} small and medium firms, made up on the spot (seed "
        f"{account.seed}). Before masking, sums and products hold exactly, in whole euros.\n"
    )
    for part in (_columns, _groups, _loss, _rules, _limits, _time, _next):
        title, *paragraphs = part(account)
        console.print(f"[bold cyan]{title}[/]")
        for paragraph in paragraphs:
            console.print(Padding(paragraph, (0, 0, 0, 2), expand=False))
        console.print()


def _columns(account: Account) -> Iterator[str | Table]:
    yield "What is released"
    rows = Table.grid(padding=(0, 2))
    rows.add_row("masked", ", ".join(map(str, account.masker.column_loss_)))
    for name in account.strata:
        rows.add_row("as it is", f"{name}: no group mixes two of them")
    rows.add_row("left out", f"{IDENTIFIER}: it names the respondent")
    if not account.strata:
        rows.add_row("left out", f"{KEPT}: some have fewer than {account.k} firms")
    rows.add_row("left out", f"{DROPPED}: it would tell the firms of a group apart")
    yield rows


def _groups(account: Account) -> Iterator[str | Table]:
    sizes = account.sizes
    yield "Groups"
    yield (
        f"{len(sizes):,} groups of {sizes.min()} to {sizes.max()} firms, median "
        f"{sizes.median():g}. Counted in the released table: every row occurs at least "
        f"[bold]{account.fewest_alike}[/] times. One group, and what is released for it:"
    )
    rows = np.flatnonzero(account.masker.labels_ == sizes.index[sizes == sizes.min()].min())
    table = Table()
    for name in SHOWN:
        table.add_column(name, justify="right")
    for i in rows[:MOST_ROWS]:
        table.add_row(*(f"{value:,}" for value in account.original[SHOWN].iloc[i]))
    if len(rows) > MOST_ROWS:
        table.add_row(*("..." for _ in SHOWN))
    table.add_section()
    table.add_row(*(f"{value:,}" for value in account.masked[SHOWN].iloc[rows[0]]), style="bold")
    yield table


def _loss(account: Account) -> Iterator[str | Table]:
    masker = account.masker
    apart = f", no {KEPT} mixed with another" if account.strata else ""
    yield "Loss"
    yield (
        f"[bold]{masker.loss_:.1f} %[/] of the variation between firms (100 SSE / SST on "
        f"standardised columns). Proved: at least {floor(100 * account.unavoidable)} % of that "
        f"loss is unavoidable, whatever the grouping (k = {account.k}{apart})."
    )
    if max(masker.column_loss_, key=masker.column_loss_.__getitem__) == "profit":
        yield "Profit is a small difference of large amounts, and keeps least of its variation:"
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    most = max(masker.column_loss_.values()) or 1.0
    for name, loss in masker.column_loss_.items():
        table.add_row(
            str(name), f"{loss:.1f} %", f"[cyan]{'━' * max(1, round(30 * loss / most))}[/]"
        )
    yield table


def _rules(account: Account) -> Iterator[str | Table]:
    yield "Rules, and the share of firms that obey them"
    table = Table()
    table.add_column("rule")
    for head in ("before", "after", "± rounding"):
        table.add_column(head, justify="right")
    for rule in RULES:
        near = rule.kept(account.masked, tolerance=rule.rounding)
        table.add_row(
            rule.text,
            f"{rule.kept(account.original):.1%}",
            f"{rule.kept(account.masked):.1%}",
            f"[{'green' if near == 1 else 'red'}]{near:.1%}[/]",
        )
    yield table
    yield (
        "A mean keeps sums; rounding to whole euros then moves a sum by 2 euros at most. A mean "
        "does not keep products and conditions. Masking that keeps every rule is planned; this "
        "version does not do it."
    )
    change = relative_change(account)
    of = f"totals of each {KEPT}" if account.strata else "totals"
    yield f"The {of} ({', '.join(MONEY)}) changed by at most {change:.5%}."


def relative_change(account: Account) -> float:
    """Return the largest relative change of a total, of each stratum where there are some."""
    before, after = (
        table.groupby(account.strata, observed=True)[MONEY].sum() if account.strata
        else table[MONEY].sum().to_frame()
        for table in (account.original, account.masked)
    )  # fmt: skip
    return float(((after - before).abs() / before.abs().clip(lower=1)).to_numpy().max())


def _limits(account: Account) -> Iterator[str | Table]:
    yield "What this does not do"
    if account.strata:
        smallest = account.masked[KEPT].value_counts().min()
        yield (
            f"The {KEPT} is released as it is, and an unmasked category can help to identify: the "
            f"smallest {KEPT} has {smallest} firms."
        )
    yield (
        "k hides which record is whose. It does not hide what all firms of a group have in common."
    )


def _time(account: Account) -> Iterator[str | Table]:
    yield "Time"
    yield (
        f"masking {account.masking:.1f} s, bound {account.proving:.1f} s; before them "
        f"{account.compiling:.1f} s of loading and, the first time, compiling (once: it is kept)"
    )


def _next(account: Account) -> Iterator[str | Table | Text]:
    left_out = [name for name in NAMES if name not in account.strata]
    strata = f", strata={account.strata!r}" if account.strata else ""
    yield "Try next: the same in Python, then with a table of your own"
    yield Text(
        "from tessella import Microaggregation, datasets\n"
        f"firms = datasets.make_business_survey({len(account.original)}, "
        f"random_state={account.seed})\n"
        f"masker = Microaggregation(k={account.k}{strata})\n"
        f"released = masker.fit_transform(firms.drop(columns={left_out!r}))"
    )
