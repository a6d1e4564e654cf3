"""`tessella demo`: a made-up business survey, from a file and its rules to a release with reports.

Every figure that is printed is computed on the spot, from the release and its audit. The sections
are functions that yield a title and then paragraphs.
"""

import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from math import floor
from pathlib import Path
from shutil import which
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
from ..planfile import draft
from ..publishing import Publication, publish
from ..release import Release
from ..rules import Rules, Slip, correct_slips
from .commands import write_text
from .terminal import Reporter, result_stream
from .warming import compiling_beside

SHOWN = ["employees", "hours", "hourly_rate", "wages", "turnover", "profit"]
MOST_ROWS = 6  # of a group, shown
MOST_SLIPS = 4
BARS = 8  # of the picture in the terminal
SLIPS, MISSING = 0.02, 0.005  # share of records that break a rule, chance of a cell to be missing
SURVEY, CORRECTED, RELEASE = "firms.csv", "firms-corrected.csv", "firms-release.csv"
RULES, PLAN = "rules.txt", "plan.toml"


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


def run(
    *, out: str, n: int, k: int, seed: int, method: str, overwrite: bool = False
) -> None:  # fmt: skip
    """Make a survey, correct its slips, protect it, print a summary."""
    console, reporter = Console(file=result_stream(), highlight=False), Reporter()
    folder, began = Path(out), perf_counter()
    firms, rules = make_business_survey(
        n, random_state=seed, inconsistent=SLIPS, missing=MISSING, weights=True, return_rules=True
    )
    check_k(k, n)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFileError(out, f"no folder: {error.strerror}", "Give another --out") from None
    for name in (SURVEY, CORRECTED, RULES, PLAN, RELEASE):  # it may be somebody's own
        if (folder / name).exists() and not overwrite:
            advice = "Give another --out, or --overwrite to replace it"
            raise BadFileError(folder / name, "the file exists", advice)
    _print(console, [_introduction(firms, rules, k)])
    with compiling_beside():
        with reporter.waiting("Looking for wrong figures ..."):
            corrected, slips = correct_slips(firms, rules)
        _print(console, [_slips(firms, corrected, slips, rules)])
        with reporter.waiting("Reading the corrected survey, and drafting a plan ..."):
            write_file(firms, folder / SURVEY, overwrite=overwrite)
            write_file(corrected, folder / CORRECTED, overwrite=overwrite)
            write_text(folder / RULES, "\n".join(rules) + "\n", overwrite=overwrite)
            source = read_file(folder / CORRECTED)
            schema = source.schema().override(weight={"role": "weight"})
            text = draft(
                source, k=k, rules=folder / RULES, schema=schema, seed=seed, folder=folder,
                name=PLAN, output=RELEASE,
                wishes={"grouping": method} if method != "search" else {},
            )  # fmt: skip
            write_text(folder / PLAN, text, overwrite=overwrite, private=True)
        with reporter.progress(f"Protecting {n:,} firms ...") as step:
            done = publish(folder / PLAN, progress=step, overwrite=overwrite)
        with reporter.waiting("Proving how much of the loss is unavoidable ..."):
            unavoidable = unavoidable_share(source, done.release, k)
    account = Account(
        k=k, folder=folder, source=source, done=done, release=done.release,
        unavoidable=unavoidable, seconds=perf_counter() - began,
    )  # fmt: skip
    parts = (_steps, _rules, _groups, _loss, _risk, _limits, _files, _picture, _next)
    _print(console, [part(account) for part in parts])


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


def _print(console: Console, sections: Iterable[Iterable[Any]]) -> None:
    """Print sections: each a title and then paragraphs. A `Text` is a command: never broken."""
    for section in sections:
        title, *paragraphs = section
        console.print(f"\n[bold cyan]{title}[/]")
        for paragraph in paragraphs:
            if isinstance(paragraph, Text):
                console.print(Text("    ") + paragraph, soft_wrap=True)
            else:
                console.print(Padding(paragraph, (0, 0, 0, 2), expand=False))


def _introduction(firms: Any, rules: list[str], k: int) -> Iterator[str | Table]:
    yield f"tessella demo: a business survey, protected at k = {k}"
    yield (
        f"{len(firms):,} small and medium firms, synthetic, with {len(rules)} edit rules "
        "such as wages == hours * hourly_rate. As in a real survey, some figures "
        "are missing and some are wrong."
    )


def _slips(
    firms: Any, corrected: Any, slips: tuple[Slip, ...], rules: list[str]
) -> Iterator[str | Table]:
    """Print which figures are wrong, what they must be, and what that changes."""
    broken = len(Rules.of(rules).confront(firms).breaking())
    yield "First, wrong figures"
    table = _table("figure", "in the file", "must be", "what happened")
    clear = [slip for slip in slips if slip.what != "another number"]
    for slip in (clear + [slip for slip in slips if slip not in clear])[:MOST_SLIPS]:
        table.add_row(str(slip.column), f"{slip.was:,.0f}", f"{slip.now:,.0f}", slip.what)
    if len(slips) > MOST_SLIPS:
        table.add_row(f"and {len(slips) - MOST_SLIPS} more", "", "", "")
    yield (
        f"{broken} firms break a rule. For {len(slips)} of them, one figure alone explains it, and "
        "the rules say what it must have been:"
    )
    yield table
    columns = [name for name in firms.columns if firms[name].dtype.kind in "if" and name != "firm"]
    apart = (firms[columns].astype(float) - corrected[columns].astype(float)) ** 2
    spread = firms[columns].astype(float).var(ddof=0)
    moved = 100 * (apart.sum() / (len(firms) * spread))
    worst = moved.idxmax()
    yield (
        f"Correcting them removes {moved[worst]:.0f} % of the variation of {worst}, most of which "
        "was due to errors. What follows is measured against the corrected survey: it is the loss "
        "by masking alone."
    )


def _steps(account: Account) -> Iterator[str | Table]:
    yield "What was done"
    reasons = {
        "drop": "the firm's number identifies the respondent, and is not released",
        "suppress": "so that no firm is identified by its missing answers",
        "protect": f"at least {account.k} firms share every released record",
    }
    rows = Table.grid(padding=(0, 2))
    for entry in account.release.protocol:
        cells = entry.account if entry.method == "suppress" else ""
        rows.add_row(entry.method, f"{reasons.get(entry.method, '')}{'. ' if cells else ''}{cells}")
    yield rows
    yield (
        "wages are in a product and in a sum, and no mean keeps both: these columns get the "
        f"nearest point that keeps all rules. {PLAN} says which rule led to which choice."
    )


def _table(first: str, *others: str) -> Table:
    """Return an empty table: the first column for words, the others for numbers."""
    table = Table()
    table.add_column(first)
    for head in others:
        table.add_column(head, justify="right")
    return table


def _rules(account: Account) -> Iterator[str | Table]:
    yield "Rules, and the corrected and released firms that break them"
    table = _table("rule", "before", "after")
    for line in account.release.audit.rule_frame().itertuples():
        after = f"[{'green' if line.breaks_after == 0 else 'red'}]{line.breaks_after}[/]"
        table.add_row(str(line.text), str(line.breaks_before), after)
    yield table
    yield (
        "No released record breaks a rule, in whole euros. "
        f"{account.release.merged} firms joined another part of the table, because conditions left "
        "too few in their own."
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
            f"The worst attack finds [bold]{100 * risk.value:.1f} %[/] of the firms; in the "
            f"unmasked survey, {100 * before.value:.1f} %."
        )


def _limits(account: Account) -> Iterator[str | Table]:
    yield "What this does not do"
    yield (
        "The weight is released as it is, and a column that is not masked can help to identify. "
        "k hides which record belongs to whom. It does not hide what all firms of a group have in "
        "common."
    )
    del account


def _files(account: Account) -> Iterator[str | Table]:
    yield "Files"
    yield f"In {account.folder}:"
    rows = Table.grid(padding=(0, 2))
    rows.add_column(overflow="fold")
    named = ((SURVEY, "the survey"), (CORRECTED, "the survey without slips"), (RULES, "its rules"),
             (PLAN, "the plan"))  # fmt: skip
    for name, what in named:
        rows.add_row(name, what)
    for what, path in account.done.paths.items():
        secret = " (confidential)" if what in ("internal report", "summary") else ""
        rows.add_row(path.name, f"the {what}{secret}")
    yield rows
    yield f"All of this took {account.seconds:.1f} s."


def _picture(account: Account) -> Iterator[str | Table]:
    """Draw a column before and after in the terminal; the report has all of them."""
    yield "Turnover before and after"
    before, after = (
        np.asarray(table.to_pandas()["turnover"].dropna(), dtype=np.float64)
        for table in (account.source.table, account.release.table)
    )
    if not len(after):
        yield "No value of turnover is left: all were suppressed."
        return
    edges = np.unique(np.quantile(before, np.linspace(0.02, 0.98, BARS + 1)).round(-4))
    shares = [
        np.histogram(np.clip(own, edges[0], edges[-1]), edges)[0] / len(own)
        for own in (before, after)
    ]
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right")
    table.add_column(justify="right")
    most = max(own.max() for own in shares)
    for at, (low, high) in enumerate(pairwise(edges)):
        bars = Text()
        for own, style in zip(shares, ("grey50", "cyan")):
            bars.append("━" * max(1, round(36 * own[at] / most)), style)
            bars.append(
                f" {100 * own[at]:.0f} %\n" if style == "grey50" else f" {100 * own[at]:.0f} %"
            )
        table.add_row(f"{low / 1000:,.0f}", f"to {high / 1000:,.0f} k", bars)
    yield "Grey: the survey; blue: the release."
    yield table


def _program() -> str:
    """Return the command as a shell finds it: by its path where it is in no folder of PATH."""
    called = Path(sys.argv[0])
    return (
        "tessella" if which("tessella") or called.name != "tessella" else shlex.quote(str(called))
    )


def _next(account: Account) -> Iterator[str | Table | Text]:
    """Print the three commands that come next."""
    home = account.folder
    yield "Try next"
    survey, place = shlex.quote(str(home / CORRECTED)), shlex.quote(str(home))
    called = _program()
    there = find_spec("starlette") and find_spec("uvicorn")
    yield "All methods on one map of risk and loss:"
    yield Text(f"{called} explore {survey}")
    yield "The same in the browser" + (":" if there else " (it says what to install first):")
    yield Text(f"{called} app {place}")
    yield "A commented plan for a file of your own:"
    yield Text(f"{called} plan YOUR.csv -k 5 > plan.toml")
    report = account.done.paths["internal report"]
    yield f"All pictures are in {report}: open it in a browser. It is confidential."
