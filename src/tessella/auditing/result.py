"""What an audit found, as numbers, as frames, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._types import Name
from .lines import ColumnLine, GroupLine, RuleLine, plain

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Audit"]

SHOWN = 20  # lines of each kind that the account shows
ROUNDING = 1e-12  # a relative change below is one of the order of summation


@dataclass(frozen=True, kw_only=True, repr=False)
class Audit:
    """What a released table is, beside the original; every figure is counted in the tables.

    Printing, `to_dict` and the frames hold no original value of a single record, unless
    `confidential=True` is asked for; the object itself holds such figures, and is as confidential
    as the table.

    Attributes
    ----------
    problems : tuple of str
        What must not be so, in words; empty if the audit is passed.
    notes : tuple of str
        What a person should know beside.
    n_records : int
        The number of records.
    k : int or None
        The k that was asked for.
    weight : name or None
        The column that weighs totals, means and frequencies.
    strata : tuple of str
        The names of the strata; those of an array are numbered, not named.
    blocks : tuple of GroupLine
        Who is alike in each block, by stratum.
    joint : GroupLine or None
        Who is alike in all blocks together; None where there is no block.
    rules : tuple of RuleLine
        Each rule before and after.
    columns : tuple of ColumnLine
        Each column before and after.
    untouched : int
        How many records are released as they were in all masked columns.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    n_records: int
    k: int | None
    weight: Name | None
    strata: tuple[str, ...]
    blocks: tuple[GroupLine, ...]
    joint: GroupLine | None
    rules: tuple[RuleLine, ...]
    columns: tuple[ColumnLine, ...]
    untouched: int

    @property
    def passed(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    @property
    def unchanged(self) -> tuple[Name, ...]:
        """The columns that are released as they are."""
        return tuple(line.name for line in self.columns if not line.changed)

    def to_dict(self, *, confidential: bool = False) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers.

        Parameters
        ----------
        confidential : bool
            Also give what could tell a single record's original value: see `RuleLine` and
            `ColumnLine`.
        """
        return {
            "passed": self.passed,
            "problems": list(self.problems),
            "notes": list(self.notes),
            "n_records": self.n_records,
            "k": self.k,
            "weight": None if self.weight is None else plain(self.weight),
            "strata": list(self.strata),
            "blocks": [
                line.to_dict()
                | {
                    "by_stratum": [
                        dict(zip(("records", "combinations", "smallest", "below"), counts))
                        for counts in _by_stratum(line)
                    ]
                }
                for line in self.blocks
            ],
            "joint": None if self.joint is None else self.joint.to_dict(),
            "rules": [line.to_dict(confidential=confidential) for line in self.rules],
            "columns": [line.to_dict(confidential=confidential) for line in self.columns],
            "unchanged": [plain(name) for name in self.unchanged],
            "untouched": self.untouched,
        }

    def rule_frame(self, *, confidential: bool = False) -> pd.DataFrame:
        """Return a frame with a row for each rule: see `RuleLine`."""
        import pandas as pd

        rows = [line.to_dict(confidential=confidential) for line in self.rules]
        frame = pd.DataFrame(rows, columns=None if rows else ["rule", "text"])
        counts = [name for name in frame.columns if name.startswith(("breaks", "unknown"))]
        amounts = [name for name in frame.columns if name.startswith("worst")]
        return frame.astype(dict.fromkeys(counts, "Int64") | dict.fromkeys(amounts, "float64"))

    def column_frame(self, *, confidential: bool = False) -> pd.DataFrame:
        """Return a frame with a row for each column: see `ColumnLine`."""
        import pandas as pd

        rows = [line.to_dict(confidential=confidential) for line in self.columns]
        parts = ("total", "mean", "relative", "frequency", "low", "high")
        floats = [name for name in rows[0] if name.startswith(parts)]
        return pd.DataFrame(rows).astype(dict.fromkeys(floats, "float64"))

    def group_frame(self) -> pd.DataFrame:
        """Return a frame with a row for each block and stratum: see `GroupLine`."""
        import pandas as pd

        rows = [
            (_block_name(place), stratum, *counts)
            for place, line in enumerate(self.blocks)
            for stratum, counts in zip(self.strata, _by_stratum(line), strict=True)
        ]
        names = ["block", "stratum", "records", "combinations", "smallest", "below"]
        return pd.DataFrame(rows, columns=names).astype({"below": "Int64"})

    def __str__(self) -> str:
        masked = len(self.columns) - len(self.unchanged)
        verdict = "passed" if self.passed else f"{_count(len(self.problems), 'problem')}"
        lines = [
            f"Audit of {_count(self.n_records, 'record')} in {_count(len(self.columns), 'column')}"
            f", of which {masked} changed: {verdict}."
        ]
        lines += _listed("Problems", self.problems)
        lines += self._groups_account() + self._rules_account() + self._columns_account()
        lines += _listed("Notes", self.notes)
        return "\n".join(lines)

    __repr__ = __str__

    def _groups_account(self) -> list[str]:
        listed = [(_block_name(place), line) for place, line in enumerate(self.blocks)]
        if self.joint is not None and len(self.blocks) > 1:
            listed.append(("all blocks", self.joint))
        below = [] if self.k is None else [f"below {self.k}"]
        rows = [["alike in", "combinations", "smallest", *below, "columns"]]
        for name, line in listed[:SHOWN]:
            counts = [sum(line.combinations), line.k, *([] if self.k is None else [line.n_below])]
            rows.append([name, *(f"{count:,}" for count in counts), _names(line.columns)])
        within = f", in each of {len(self.strata):,} strata" if len(self.strata) > 1 else ""
        title = f"Records that share all released values{within}:"
        return ["", title, *_aligned(rows), *_more(listed)] if listed else []

    def _rules_account(self) -> list[str]:
        rows = [["rule", "broken before", "after", "unknown before", "after", "text"]]
        worst_first = sorted(self.rules, key=lambda line: line.breaks_after == 0)
        for line in worst_first[:SHOWN]:
            counts = (
                line.breaks_before, line.breaks_after, line.unknown_before, line.unknown_after,
            )  # fmt: skip
            texts = ["?" if count is None else f"{count:,}" for count in counts]
            rows.append([line.name, *texts, line.text])
        return ["", "Rules:", *_aligned(rows), *_more(self.rules)] if self.rules else []

    def _columns_account(self) -> list[str]:
        rows = [["column", "changed", "missing", "mean before", "after", "change"]]
        for line in self.columns[:SHOWN]:
            figures = line.to_dict()
            cells = [f"{line.share_changed:.1%}", f"{line.missing_after:,}"]
            if line.kind == "categories":
                change = f"frequencies by up to {100 * (line.frequency_change or 0):.2g} points"
                rows.append([str(line.name), *cells, "", "", change if line.changed else ""])
                continue
            relative = figures["relative_change"]
            means = [_number(figures["mean_before"], line.few), _number(figures["mean_after"])]
            change = "" if relative is None or not line.changed else _percent(relative)
            rows.append([str(line.name), *cells, *means, change])
        title = "Columns:" if self.weight is None else f"Columns, weighted by {self.weight}:"
        return ["", title, *_aligned(rows), *_more(self.columns)]


def _by_stratum(line: GroupLine) -> list[tuple[int | None, ...]]:
    below: Sequence[int | None] = line.below or [None] * len(line.records)
    return list(zip(line.records, line.combinations, line.smallest, below, strict=True))


def _block_name(place: int) -> str:
    return f"block {place + 1}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _number(value: float | None, few: bool = False) -> str:
    return ("withheld" if few else "") if value is None else f"{value:.6g}"


def _percent(share: float) -> str:
    return "0 %" if abs(share) < ROUNDING else f"{100 * share:+.2g} %"


def _names(columns: Sequence[Name]) -> str:
    return ", ".join(map(str, columns[:8])) + (", ..." if len(columns) > 8 else "")


def _listed(title: str, sentences: Sequence[str]) -> list[str]:
    shown = [f"- {sentence}" for sentence in sentences[:SHOWN]]
    return ["", f"{title}:", *shown, *_more(sentences)] if sentences else []


def _more(lines: Sequence[object]) -> list[str]:
    return [f"... and {len(lines) - SHOWN:,} more"] if len(lines) > SHOWN else []


def _aligned(rows: list[list[str]]) -> list[str]:
    """Align columns: the first and the last to the left, the numbers between to the right."""
    to_left = {0, len(rows[0]) - 1}
    widths = [max(len(row[part]) for row in rows) for part in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if part in to_left else cell.rjust(width)
            for part, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
