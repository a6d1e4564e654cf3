"""`tessella demo`: a made-up business survey, from a file and its rules to a release with reports.

Every figure that is printed is computed on the spot, from the release and its audit. The sections
are functions that yield a title and then paragraphs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..datasets import make_business_survey
from ..exceptions import BadFileError
from ..grouping.base import check_k
from ..grouping.bound import lower_bound
from ..io import Source, read_file, write_file
from ..planfile import draft, read_plan
from ..publishing import Publication, publish
from ..release import Release
from .commands import write_text
from .terminal import Reporter, result_stream

SHOWN = ["employees", "hours", "hourly_rate", "wages", "turnover", "profit"]
MOST_ROWS = 6  # of a group, shown
SLIPS, MISSING = 0.02, 0.005  # share of records that break a rule, chance of a cell to be missing
SURVEY, RULES, PLAN = "firms.csv", "rules.txt", "plan.toml"


@dataclass(frozen=True, kw_only=True)
class Account:
    """All that is printed."""

    k: int
    folder: Path
    source: Source
    done: Publication
    release: Release
    unavoidable: float  # share of the loss below which no grouping can go
    seconds: float
    compiling: float


def run(*, out: str, n: int, k: int, seed: int, method: str) -> None:
    """Make a survey, protect it, print the account."""
    console, reporter = Console(file=result_stream(), highlight=False), Reporter()
    folder = Path(out)
    firms, rules = make_business_survey(
        n, random_state=seed, inconsistent=SLIPS, missing=MISSING, weights=True, return_rules=True
    )
    check_k(k, n)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFileError(out, f"no folder: {error.strerror}", "Give another --out") from None
    write_file(firms, folder / SURVEY, overwrite=True)
    write_text(folder / RULES, "\n".join(rules) + "\n", overwrite=True)
    source = read_file(folder / SURVEY)
    schema = source.schema().override(weight={"role": "weight"})
    text = draft(
        source, k=k, rules=folder / RULES, schema=schema, seed=seed, folder=folder,
        wishes={"grouping": method} if method != "search" else {},
    )  # fmt: skip
    write_text(folder / PLAN, text, overwrite=True, private=True)
    with reporter.waiting("Loading; the first time, compiling, once ..."):
        compiling = _warm(folder)
    began = perf_counter()
    with reporter.progress(f"Protecting {n:,} firms ...") as step:
        done = publish(folder / PLAN, progress=step, overwrite=True)
    seconds = perf_counter() - began
    with reporter.waiting("Proving how much of the loss is unavoidable ..."):
        unavoidable = unavoidable_share(source, done.release, k)
    print_account(
        console,
        Account(
            k=k, folder=folder, source=source, done=done, release=done.release,
            unavoidable=unavoidable, seconds=seconds, compiling=compiling,
        ),
    )  # fmt: skip


def _warm(folder: Path) -> float:
    """Run the plan's steps on a few records, so that what comes is not compiling."""
    began = perf_counter()
    plan = read_plan(folder / PLAN)
    source = plan.read()
    few = min(source.n_rows, 20 * plan.steps[-1].options["k"])
    study = plan.study(replace(source, table=source.table.slice(0, few)))
    for step in plan.steps:
        study.do(step)
    return perf_counter() - began


def unavoidable_share(source: Source, release: Release, k: int) -> float:
    """Return the share of the loss that no grouping of these records avoids, by a quick bound.

    The bound is one for means of complete records in the columns of numbers, without rules and
    weights, which only add to it; the loss it is compared with is that of the same records.
    """
    before = source.to_pandas()[list(release.column_loss)].astype("Float64")
    after = release.table.to_pandas()[list(release.column_loss)]
    complete = before.notna().all(axis=1).to_numpy()
    numbers = before[complete].to_numpy(dtype=np.float64)
    masked = after[complete].to_numpy(dtype=np.float64)
    spread = numbers.std(axis=0)
    bound = lower_bound(numbers / spread, k, effort="quick").value
    lost = float((((numbers - masked) / spread) ** 2).sum())
    return min(bound / lost, 1.0) if lost > 0 else 1.0


def print_account(console: Console, account: Account) -> None:
    """Print the account."""
    console.print(f"\n[bold]tessella demo[/]: a business survey, protected at k = {account.k}\n")
    console.print(
        f"{account.source.n_rows:,} small and medium firms, made up on the spot, with "
        f"{len(account.release.rules)} edit rules. In {SLIPS:.0%} of the records a slip breaks "
        f"one, and {MISSING:.1%} of the figures are missing.\n"
    )
    for part in (_steps, _rules, _groups, _loss, _risk, _limits, _files, _next):
        title, *paragraphs = part(account)
        console.print(f"[bold cyan]{title}[/]")
        for paragraph in paragraphs:
            console.print(Padding(paragraph, (0, 0, 0, 2), expand=False))
        console.print()


def _steps(account: Account) -> Iterator[str | Table]:
    yield "What was done"
    reasons = {
        "drop": "the firm's number names the respondent, and is left out",
        "suppress": "so that no firm is known by what it did not answer",
        "protect": f"at least {account.k} firms share every released record",
    }
    rows = Table.grid(padding=(0, 2))
    for entry in account.release.protocol:
        cells = entry.account if entry.method == "suppress" else ""
        rows.add_row(entry.method, f"{reasons.get(entry.method, '')}{'. ' if cells else ''}{cells}")
    yield rows
    yield (
        "wages are in a product and in a sum, and no mean keeps both: these columns get the "
        f"nearest point that keeps all rules. {PLAN} tells which rule led to what."
    )


def _table(first: str, *others: str) -> Table:
    """Return an empty table: the first column for words, the others for numbers."""
    table = Table()
    table.add_column(first)
    for head in others:
        table.add_column(head, justify="right")
    return table


def _rules(account: Account) -> Iterator[str | Table]:
    yield "Rules, and the firms that break them"
    table = _table("rule", "before", "after")
    for line in account.release.audit.rule_frame().itertuples():
        after = f"[{'green' if line.breaks_after == 0 else 'red'}]{line.breaks_after}[/]"
        table.add_row(str(line.text), str(line.breaks_before), after)
    yield table
    yield (
        f"{account.release.inconsistent} firms broke a rule; no released record does, in whole "
        f"euros. {account.release.merged} firms joined another part of the table, because "
        "conditions cut theirs out with too few."
    )


def _groups(account: Account) -> Iterator[str | Table]:
    labels = account.release.labels[0]
    sizes = np.bincount(labels)
    sizes = sizes[sizes > 0]
    (block,) = account.release.audit.blocks
    yield "Groups"
    yield (
        f"{len(sizes):,} groups of {sizes.min()} to {sizes.max()} firms, median "
        f"{np.median(sizes):g}. Counted in the released table: every combination of values occurs "
        f"at least [bold]{min(block.smallest)}[/] times. One group, and what is released for it:"
    )
    original = account.source.to_pandas()[SHOWN]
    masked = account.release.table.to_pandas()[SHOWN]
    complete = original.notna().all(axis=1).to_numpy()
    counts = np.bincount(labels, minlength=labels.max() + 1)
    fit = np.unique(labels[complete & (counts[labels] == counts[counts > 0].min())])
    chosen = int(fit[0]) if len(fit) else int(labels[0])
    members = np.flatnonzero(labels == chosen)
    table = Table()
    for name in SHOWN:
        table.add_column(name, justify="right")
    for i in members[:MOST_ROWS]:
        table.add_row(*(_cell(value) for value in original.iloc[i]))
    if len(members) > MOST_ROWS:
        table.add_row(*("..." for _ in SHOWN))
    table.add_section()
    table.add_row(*(_cell(value) for value in masked.iloc[members[0]]), style="bold")
    yield table


def _cell(value: Any) -> str:
    missing = value is None or value != value or str(value) == "<NA>"
    return "" if missing else f"{value:,.0f}"


def _loss(account: Account) -> Iterator[str | Table]:
    release = account.release
    yield "Loss"
    yield (
        f"[bold]{release.loss:.1f} %[/] of the variation between firms (100 SSE / SST on "
        f"standardised columns). Proved: at least {floor(100 * account.unavoidable)} % of the loss "
        f"of complete records is unavoidable, whatever the grouping (k = {account.k})."
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


def _risk(account: Account) -> Iterator[str | Table]:
    yield "Risk"
    risk, before = account.done.risk, account.done.risk_before
    if risk is None or risk.worst is None:
        yield "Not measured."
        return
    table = _table("an intruder with the whole original file", "finds", "compared with")
    for one in risk.about("identity"):
        table.add_row(one.found.attack, f"{100 * one.found.value:.1f} %", one.found.beside())
    yield table
    if before is not None:
        yield (
            f"The worst finds [bold]{100 * risk.value:.1f} %[/] of the firms; in the survey as it "
            f"is, {100 * before.value:.1f} %."
        )


def _limits(account: Account) -> Iterator[str | Table]:
    yield "What this does not do"
    yield (
        "The weight is released as it is, and a column that is not masked can help to identify. "
        "k hides which record is whose. It does not hide what all firms of a group have in common."
    )
    del account


def _files(account: Account) -> Iterator[str | Table]:
    yield "Files"
    rows = Table.grid(padding=(0, 2))
    rows.add_column(overflow="fold")
    for name, what in ((SURVEY, "the survey"), (RULES, "its rules"), (PLAN, "the plan")):
        rows.add_row(str(account.folder / name), what)
    for what, path in account.done.paths.items():
        secret = " (confidential)" if what in ("internal report", "summary") else ""
        rows.add_row(str(path), f"the {what}{secret}")
    yield rows
    yield (
        f"In {account.seconds:.1f} s; before that {account.compiling:.1f} s of loading and, the "
        "first time, compiling (once: it is kept)."
    )


def _next(account: Account) -> Iterator[str | Table | Text]:
    home = account.folder
    yield "Try next"
    yield Text(
        f"tessella check {home / SURVEY} --rules {home / RULES}\n"
        f"tessella risk {home / SURVEY} {account.done.paths['release']} --plan {home / PLAN} "
        "--effort standard\n"
        f"tessella explore {home / SURVEY}\n"
        f"edit {home / PLAN}, then: tessella protect --plan {home / PLAN} --overwrite"
    )
