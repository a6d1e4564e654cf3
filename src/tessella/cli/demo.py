"""`tessella demo`: a made-up survey is masked, and an account is given of what was done to it.

First the facts (`Account`), then the telling (`tell`).
"""

from __future__ import annotations

from collections.abc import Iterator
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

from ..datasets import make_business_survey
from ..grouping.bound import lower_bound
from ..grouping.checks import check_k
from ..masking.fuzzy_microaggregation import FuzzyMicroaggregation
from ..release import Release, protect

__all__ = ["run"]

IDENTIFIER, KEPT = "firm", "branch"
SHOWN = ["employees", "hours", "hourly_rate", "wages", "turnover", "profit"]
MOST_ROWS = 6  # of a group, shown
MONEY = ["wages", "costs", "turnover", "profit"]
SLIPS = 0.02  # share of records that break a rule


@dataclass(frozen=True, kw_only=True)
class Account:
    """All that is told."""

    k: int
    seed: int
    original: pd.DataFrame
    rules: list[str]
    strata: list[str]
    release: Release
    unavoidable: float  # share of the loss below which no grouping can go
    fuzzy: FuzzyMicroaggregation
    compiling: float  # seconds
    masking: float
    proving: float

    @property
    def sizes(self) -> pd.Series[int]:
        """The number of records in each group."""
        return pd.Series(self.release.labels[0]).value_counts()

    @property
    def fewest_alike(self) -> int:
        """The least number of equal rows, counted in the released table itself."""
        masked = self.release.table
        return int(masked.groupby(list(masked), observed=True).size().min())


def run(*, n: int, k: int, seed: int, method: str, effort: str) -> None:
    """Make a survey, mask it, print the account."""
    console = Console(highlight=False)
    firms, rules = make_business_survey(n, random_state=seed, inconsistent=SLIPS, return_rules=True)
    k = check_k(k, n)
    strata = strata_that_hold(firms, k)
    original = firms.drop(columns=[IDENTIFIER])
    options = {"effort": effort} if method == "search" else None

    def mask(table: pd.DataFrame, apart: list[str]) -> Release:
        return protect(
            table, k=k, rules=rules, strata=apart, fit="project", small="merge", method=method,
            options=options, random_state=seed,
        )  # fmt: skip

    fuzzy = FuzzyMicroaggregation(
        k, m2=1.3, at_least_k=True, columns=MONEY, random_state=seed, round_integers=True
    )
    with waiting(console, "Loading; the first time, compiling, once ..."):
        start = perf_counter()
        small = make_business_survey(max(200, 8 * k), random_state=0).drop(columns=[IDENTIFIER])
        mask(small, [])
        compiling = perf_counter() - start
    with waiting(console, f"Masking {n:,} firms ..."):
        start = perf_counter()
        release = mask(original, strata)
        masking = perf_counter() - start
    with waiting(console, "Proving how much of the loss is unavoidable, and drawing fuzzily ..."):
        start = perf_counter()
        unavoidable = unavoidable_share(original, release, strata, k)
        fuzzy.fit(make_business_survey(n, random_state=seed)[MONEY])
        proving = perf_counter() - start
    tell(
        console,
        Account(
            k=k, seed=seed, original=original, rules=rules, strata=strata, release=release,
            unavoidable=unavoidable, fuzzy=fuzzy, compiling=compiling, masking=masking,
            proving=proving,
        ),
    )  # fmt: skip


def waiting(console: Console, what: str) -> AbstractContextManager[Any]:
    """Say what is being waited for: in passing on a terminal, as a line elsewhere."""
    if console.is_terminal:
        return console.status(what)
    console.print(what)
    return nullcontext()


def strata_that_hold(firms: pd.DataFrame, k: int) -> list[str]:
    """Keep the category exact if every branch has firms enough, else mask it."""
    return [KEPT] if firms[KEPT].value_counts().min() >= 4 * k else []


def unavoidable_share(original: pd.DataFrame, release: Release, strata: list[str], k: int) -> float:
    """Return the share of the loss that no grouping of these records avoids, by a quick bound.

    The bound is one for means of the columns of numbers, without rules, which only add to it.
    """
    numbers = original[list(release.column_loss)].to_numpy(dtype=np.float64)
    scaled = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    apart = original[strata[0]].to_numpy() if strata else None
    bound = lower_bound(scaled, k, effort="quick", strata=apart).value
    lost = release.loss / 100 * scaled.size
    return bound / lost if lost > 0 else 1.0


def tell(console: Console, account: Account) -> None:
    """Print the account."""
    console.print(f"\n[bold]tessella demo[/]: a business survey, masked at k = {account.k}\n")
    console.print(
        f"{len(account.original):,} small and medium firms, made up on the spot (seed "
        f"{account.seed}), with {len(account.rules)} edit rules; in {SLIPS:.0%} of the records a "
        "slip breaks one.\n"
    )
    for part in (_columns, _rules, _groups, _loss, _fuzzy, _limits, _time, _next):
        title, *paragraphs = part(account)
        console.print(f"[bold cyan]{title}[/]")
        for paragraph in paragraphs:
            console.print(Padding(paragraph, (0, 0, 0, 2), expand=False))
        console.print()


def _columns(account: Account) -> Iterator[str | Table]:
    yield "What is released"
    plan = account.release.plan
    (block,) = plan.blocks if plan is not None else ()
    rows = Table.grid(padding=(0, 2))
    for operator in dict.fromkeys(choice.operator for choice in block.choices):
        rows.add_row(operator, ", ".join(map(str, block.with_operator(operator))))
    for name in account.strata:
        rows.add_row("as it is", f"{name}: no group mixes two of them")
    rows.add_row("left out", f"{IDENTIFIER}: it names the respondent")
    yield rows
    yield (
        "wages are in a product and in a sum, and no mean keeps both: these columns get the "
        "nearest point that keeps all rules. release.plan.explain() tells which rule led to what."
    )


def _rules(account: Account) -> Iterator[str | Table]:
    yield "Rules, and the firms that break them"
    table = Table()
    table.add_column("rule")
    for head in ("before", "after"):
        table.add_column(head, justify="right")
    audit = account.release.audit
    for line in audit.rule_frame().itertuples():
        after = f"[{'green' if line.breaks_after == 0 else 'red'}]{line.breaks_after}[/]"
        table.add_row(str(line.text), str(line.breaks_before), after)
    yield table
    yield (
        f"{account.release.inconsistent} firms broke a rule; no released record does, in whole "
        f"euros. {account.release.merged} firms joined another part of the table, because a "
        "condition cut theirs out with too few."
    )


def _groups(account: Account) -> Iterator[str | Table]:
    sizes, masked = account.sizes, account.release.table
    yield "Groups"
    yield (
        f"{len(sizes):,} groups of {sizes.min()} to {sizes.max()} firms, median "
        f"{sizes.median():g}. Counted in the released table: every row occurs at least "
        f"[bold]{account.fewest_alike}[/] times. One group, and what is released for it:"
    )
    members = np.flatnonzero(account.release.labels[0] == sizes.index[sizes == sizes.min()].min())
    table = Table()
    for name in SHOWN:
        table.add_column(name, justify="right")
    for i in members[:MOST_ROWS]:
        table.add_row(*(f"{value:,}" for value in account.original[SHOWN].iloc[i]))
    if len(members) > MOST_ROWS:
        table.add_row(*("..." for _ in SHOWN))
    table.add_section()
    table.add_row(*(f"{value:,}" for value in masked[SHOWN].iloc[members[0]]), style="bold")
    yield table


def _loss(account: Account) -> Iterator[str | Table]:
    release = account.release
    apart = f", no {KEPT} mixed with another" if account.strata else ""
    yield "Loss"
    yield (
        f"[bold]{release.loss:.1f} %[/] of the variation between firms (100 SSE / SST on "
        f"standardised columns). Proved: at least {floor(100 * account.unavoidable)} % of that "
        f"loss is unavoidable, whatever the grouping (k = {account.k}{apart})."
    )
    if release.inconsistent:
        yield (
            "Columns with slips lose most: a wrong figure is a large part of their variation, and "
            "is not kept."
        )
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    most = max(release.column_loss.values(), default=0.0) or 1.0
    for name, loss in release.column_loss.items():
        table.add_row(
            str(name), f"{loss:.1f} %", f"[cyan]{'━' * max(1, round(30 * loss / most))}[/]"
        )
    yield table


def _fuzzy(account: Account) -> Iterator[str | Table]:
    told = account.fuzzy.uncertainty_[0]
    yield "Money columns of the survey without slips, drawn fuzzily"
    yield (
        f"Centres are drawn by membership (m2 = 1.3), every one by at least {account.k} firms: "
        f"loss {account.fuzzy.loss_:.1f} %, {told.entropy.mean():.2f} bits of uncertainty about a "
        "firm's centre. An intruder with the original file and all parameters names a firm with a "
        f"chance of {told.naming_chance.mean():.2f} on average, {told.naming_chance.max():.2f} at "
        "most."
    )


def _limits(account: Account) -> Iterator[str | Table]:
    yield "What this does not do"
    if account.strata:
        smallest = account.release.table[KEPT].value_counts().min()
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
        f"masking {account.masking:.1f} s, bound and fuzzy draw {account.proving:.1f} s; before "
        f"them {account.compiling:.1f} s of loading and, the first time, compiling (once: it is "
        "kept)"
    )


def _next(account: Account) -> Iterator[str | Table | Text]:
    strata = f", strata={account.strata!r}" if account.strata else ""
    yield "Try next: the same in Python, then with a table of your own"
    yield Text(
        "from tessella import datasets, protect\n"
        f"firms, rules = datasets.make_business_survey({len(account.original)}, "
        f"random_state={account.seed},\n"
        f"    inconsistent={SLIPS}, return_rules=True)\n"
        f'release = protect(firms.drop(columns="{IDENTIFIER}"), k={account.k}, rules=rules'
        f"{strata},\n"
        '    fit="project", small="merge")\n'
        "print(release)"
    )
