"""What an audit found, as numbers, as frames, and in words.

The lines of an audit: one for each block, each rule, each column.

What could tell a single record's original value is *confidential*: the smallest and largest value
of an original column, by how much the worst record broke a rule, a total that differs in a few
cells only. Such figures are kept, but a line shows them only to those who ask for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._notebook import COMPARED, Code, Display, Displayed, Figure, Section
from .._types import Name
from .._wording import counted, listed

if TYPE_CHECKING:
    import pandas as pd


def plain(name: Name) -> Any:
    """Return a column's name as text or number, which every format can hold."""
    return name if isinstance(name, str | int) and not isinstance(name, bool) else str(name)


class _Line:
    """A line prints what is public of it."""

    def to_dict(self, *, confidential: bool = False) -> dict[str, Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.to_dict().items())
        return f"{type(self).__name__}({shown})"


@dataclass(frozen=True, kw_only=True, repr=False)
class GroupLine(_Line):
    """Who shares released values with whom, in some columns.

    Attributes
    ----------
    columns : tuple
        The columns in which records must agree to be alike.
    records, combinations, smallest : tuple of int, one for each stratum
        How many records there are, how many different combinations of released values they have,
        and how many records, or units where the original names them, share the rarest of them.
    below : tuple of int, one for each stratum, or None
        How many records share their combination with fewer than k; None where no k was asked for.
    """

    columns: tuple[Name, ...]
    records: tuple[int, ...]
    combinations: tuple[int, ...]
    smallest: tuple[int, ...]
    below: tuple[int, ...] | None

    @property
    def k(self) -> int:
        """The k that is reached: the size of the smallest set of records that are alike."""
        return min(self.smallest)

    @property
    def n_below(self) -> int | None:
        """How many records, in all strata, share their values with fewer than k."""
        return None if self.below is None else sum(self.below)

    def to_dict(self, *, confidential: bool = False) -> dict[str, Any]:  # noqa: ARG002
        """Return plain lists and numbers; nothing of it is confidential."""
        return {
            "columns": [plain(name) for name in self.columns],
            "combinations": sum(self.combinations),
            "smallest": self.k,
            "below": self.n_below,
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class RuleLine(_Line):
    """One rule, in the original and in the released table.

    Attributes
    ----------
    name, text : str
        The rule.
    asks_original : bool
        Whether it speaks of the original table: mean(x), observed(x).
    breaks_before, breaks_after, unknown_before, unknown_after : int or None
        How many records break it, and of how many that is unknown; None where it cannot be judged.
    worst_before, worst_after : float or None
        By how much the worst record breaks it. The first is confidential: beside the rule
        age <= 120, "by 3" is an age. So is the second where the rule speaks of the original.
    """

    name: str
    text: str
    asks_original: bool
    breaks_before: int | None
    breaks_after: int | None
    unknown_before: int | None
    unknown_after: int | None
    worst_before: float | None
    worst_after: float | None

    def to_dict(self, *, confidential: bool = False) -> dict[str, Any]:
        """Return plain texts and numbers; with the confidential ones if asked for."""
        facts = ("breaks_before", "breaks_after", "unknown_before", "unknown_after")
        out = {"rule": self.name, "text": self.text} | {fact: getattr(self, fact) for fact in facts}
        if confidential:
            out["worst_before"] = self.worst_before
        out["worst_after"] = None if self.asks_original and not confidential else self.worst_after
        return out


@dataclass(frozen=True, kw_only=True, repr=False)
class ColumnLine(_Line):
    """One column, in the original and in the released table.

    Attributes
    ----------
    name : hashable
        The column.
    kind : {"numbers", "categories"}
        What it was compared as.
    n : int
        The number of records.
    changed : int
        How many cells differ.
    missing_before, missing_after, moved, suppressed : int
        How many cells are missing, and how many are so in one table only, or in another way; of
        these, how many are empty in the released table.
    total_before, total_after, mean_before, mean_after : float or None
        Of the known numbers, weighted if there is a weight; None for categories, and for the mean
        of nothing.
    low_before, low_after, high_before, high_after : float or None
        The smallest and the largest number. Those of the original are confidential.
    frequency_change : float or None
        Of categories: the largest change of a relative frequency, missing being a category.
    few : bool
        Whether so few cells are known, or differ, that a total of the original could be solved for
        one of them: then the original's total and mean, and the change of a frequency, are
        confidential.
    """

    name: Name
    kind: str
    n: int
    changed: int
    missing_before: int
    missing_after: int
    moved: int
    suppressed: int = 0
    total_before: float | None = None
    total_after: float | None = None
    mean_before: float | None = None
    mean_after: float | None = None
    low_before: float | None = None
    low_after: float | None = None
    high_before: float | None = None
    high_after: float | None = None
    frequency_change: float | None = None
    few: bool = False

    @property
    def share_changed(self) -> float:
        """The share of records whose cell differs."""
        return self.changed / self.n

    @property
    def total_change(self) -> float | None:
        """Released total less original total."""
        return _less(self.total_after, self.total_before)

    @property
    def mean_change(self) -> float | None:
        """Released mean less original mean."""
        return _less(self.mean_after, self.mean_before)

    @property
    def relative_change(self) -> float | None:
        """The change of the mean as a share of the original mean; None where that is 0."""
        if self.mean_change is None or not self.mean_before:
            return None
        return self.mean_change / abs(self.mean_before)

    def to_dict(self, *, confidential: bool = False) -> dict[str, Any]:
        """Return plain texts and numbers; with the confidential ones if asked for."""
        facts = (
            "kind", "changed", "share_changed", "missing_before", "missing_after", "suppressed",
            "total_before",
            "total_after", "total_change", "mean_before", "mean_after", "mean_change",
            "relative_change", "frequency_change",
        )  # fmt: skip
        withheld = () if confidential or not self.few else (
            "total_before", "total_change", "mean_before", "mean_change", "relative_change",
            "frequency_change",
        )  # fmt: skip
        ends = ("low_before", "high_before") if confidential else ()
        out = {"column": plain(self.name)}
        for fact in (*facts, *ends, "low_after", "high_after"):
            out[fact] = None if fact in withheld else getattr(self, fact)
        return out


@dataclass(frozen=True, kw_only=True, repr=False)
class DominanceLine(_Line):
    """What the totals of released groups give away of one column.

    Attributes
    ----------
    column, rule : hashable and str
        The column, and when a total is sensitive.
    groups : int
        The groups whose total is sensitive.
    rows : tuple of int
        The records with the largest contributions to them. Confidential.
    within : tuple of int
        The records whose value is within 10 % of group size times mean. Confidential.
    """

    column: Name
    rule: str
    groups: int
    rows: tuple[int, ...]
    within: tuple[int, ...]

    def to_dict(self, *, confidential: bool = False) -> dict[str, Any]:
        """Return plain texts and numbers; with the confidential ones if asked for."""
        out = {"column": plain(self.column), "groups": self.groups, "records": len(self.rows),
               "within": len(self.within)}  # fmt: skip
        return out | ({"rows": [row + 1 for row in self.rows]} if confidential else {})


@dataclass(frozen=True, kw_only=True, repr=False)
class DiversityLine(_Line):
    """How the confidential values of records that are alike are spread; see `tessella.diversity`.

    Attributes
    ----------
    column, asked : hashable and str
        The confidential column, and what is asked of it, such as "distinct l >= 3".
    measure : str
        The measure.
    limit, worst : float
        The l or t that was asked for, and that of the worst set of records that are alike.
    groups, records : int
        How many such sets do not have it, and how many records these are.
    """

    column: Name
    asked: str
    measure: str
    limit: float
    worst: float
    groups: int
    records: int

    def to_dict(self, *, confidential: bool = False) -> dict[str, Any]:  # noqa: ARG002
        """Return plain texts and numbers; all are counted in the released table."""
        return {"column": plain(self.column), "asked": self.asked, "measure": self.measure,
                "limit": self.limit, "worst": self.worst, "groups": self.groups,
                "records": self.records}  # fmt: skip


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


COUNTS = ("records", "combinations", "smallest", "below")  # of each block and stratum
SHOWN = 20  # lines of each kind that the account shows
ROUNDING = 1e-12  # a relative change below is one of the order of summation


@dataclass(frozen=True, kw_only=True, repr=False)
class Audit(Displayed):
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
    unit : name or None
        The column of the original that names the units that k counts; None where it counts records.
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
    dominance : tuple of DominanceLine
        Each column in which a record dominates a released group: a finding, not a problem.
    recoded : tuple of names
        The columns that hold coarser values.
    diversity : tuple of DiversityLine
        Each confidential column of which l or t was asked for.
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
    dominance: tuple[DominanceLine, ...] = ()
    unit: Name | None = None
    recoded: tuple[Name, ...] = ()
    diversity: tuple[DiversityLine, ...] = ()

    @property
    def dominated(self) -> int:
        """How many records dominate a released group in some column."""
        return len({row for line in self.dominance for row in line.rows})

    @property
    def passed(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    @property
    def unchanged(self) -> tuple[Name, ...]:
        """The columns that are released as they are."""
        return tuple(line.name for line in self.columns if not line.changed)

    @property
    def changed_categories(self) -> float | None:
        """The share of cells that differ in the columns of categories that changed, if any did.

        Recoded ones do not count: a coarser value that is true is not another one.
        """
        found = [own for own in self.columns if own.kind == "categories" and own.changed]
        found = [own for own in found if own.name not in self.recoded]
        return sum(own.share_changed for own in found) / len(found) if found else None

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
            "unit": None if self.unit is None else plain(self.unit),
            "weight": None if self.weight is None else plain(self.weight),
            "strata": list(self.strata),
            "blocks": [line.to_dict() | {"by_stratum": _by_stratum(line)} for line in self.blocks],
            "joint": None if self.joint is None else self.joint.to_dict(),
            "diversity": [line.to_dict() for line in self.diversity],
            "rules": [line.to_dict(confidential=confidential) for line in self.rules],
            "columns": [line.to_dict(confidential=confidential) for line in self.columns],
            "unchanged": [plain(name) for name in self.unchanged],
            "untouched": self.untouched,
            "dominated": self.dominated,
            "dominance": [line.to_dict(confidential=confidential) for line in self.dominance],
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
            (_block_name(place), stratum, *counts.values())
            for place, line in enumerate(self.blocks)
            for stratum, counts in zip(self.strata, _by_stratum(line), strict=True)
        ]
        names = ["block", "stratum", *COUNTS]
        return pd.DataFrame(rows, columns=names).astype({"below": "Int64"})

    @property
    def verdict(self) -> str:
        """What was looked at, and whether it passed, in one sentence."""
        masked = len(self.columns) - len(self.unchanged)
        verdict = "passed" if self.passed else counted(len(self.problems), "problem")
        records, columns = counted(self.n_records, "record"), counted(len(self.columns), "column")
        return f"Audit of {records} in {columns}, of which {masked} changed: {verdict}."

    def __str__(self) -> str:
        return "\n".join([self.verdict, *(x for part in self._sections() for x in part.to_text())])

    def _display(self) -> Display:
        return Display(
            title="Audit",
            verdict=[self.verdict],
            good=self.passed,
            figures=self._figures(),
            sections=self._sections(),
            confidential=COMPARED,
        )

    def _figures(self) -> list[Figure]:
        found = [Figure("Records", f"{self.n_records:,}")]
        if self.blocks:
            whom = "records" if self.unit is None else "units"
            asked = "" if self.k is None else f"; k = {self.k}"
            found.append(
                Figure("Smallest group", f"{min(b.k for b in self.blocks):,}", whom + asked)
            )
        if self.rules:
            held = sum(line.breaks_after == 0 for line in self.rules)
            found.append(Figure("Rules that hold", f"{held:,}", f"of {len(self.rules):,}"))
        return found

    def _sections(self) -> list[Section]:
        return [
            *_listed("Problems", self.problems), *self._groups(), *self._diversity(),
            *self._rules(), *self._columns(), *_listed("Notes", self.notes),
        ]  # fmt: skip

    __repr__ = __str__

    def _groups(self) -> list[Section]:
        named = [(_block_name(place), line) for place, line in enumerate(self.blocks)]
        if self.joint is not None and len(self.blocks) > 1:
            named.append(("all blocks", self.joint))
        below = [] if self.k is None else [f"below {self.k}"]
        rows = [["equal in", "combinations", "smallest", *below, "columns"]]
        for name, line in named[:SHOWN]:
            counts = [sum(line.combinations), line.k, *([] if self.k is None else [line.n_below])]
            rows.append([name, *(f"{count:,}" for count in counts), listed(line.columns)])
        within = f", in each of {len(self.strata):,} strata" if len(self.strata) > 1 else ""
        whom = "Records" if self.unit is None else f"Units (distinct {self.unit})"
        title = f"{whom} that share all released values{within}"
        return [Section(title=title, rows=rows, more=_more(named))] if named else []

    def _diversity(self) -> list[Section]:
        if not self.diversity or not self.blocks:
            return []
        rows = [["confidential", "worst", "broken", "asked for"]]
        for line in self.diversity[:SHOWN]:
            rows.append([str(line.column), f"{line.worst:.4g}", f"{line.records:,}", line.asked])
        title = "Confidential values of records that share all released values"
        return [Section(title=title, rows=rows, more=_more(self.diversity))]

    def _rules(self) -> list[Section]:
        rows: list[list[str | Code]] = [
            ["rule", "broken before", "after", "unknown before", "after", "text"]
        ]
        worst_first = sorted(self.rules, key=lambda line: line.breaks_after == 0)
        for line in worst_first[:SHOWN]:
            counts = (
                line.breaks_before, line.breaks_after, line.unknown_before, line.unknown_after,
            )  # fmt: skip
            texts = ["?" if count is None else f"{count:,}" for count in counts]
            rows.append([line.name, *texts, Code(line.text)])
        return [Section(title="Rules", rows=rows, more=_more(self.rules))] if self.rules else []

    def _columns(self) -> list[Section]:
        rows = [["column", "changed", "missing", "mean before", "after", "change"]]
        for line in self.columns[:SHOWN]:
            figures = line.to_dict()
            cells = [f"{line.share_changed:.1%}", f"{line.missing_after:,}"]
            if line.name in self.recoded:
                rows.append([str(line.name), *cells, "", "", "recoded to coarser values"])
                continue
            if line.kind == "categories":
                change = f"frequencies by up to {100 * (line.frequency_change or 0):.2g} points"
                rows.append([str(line.name), *cells, "", "", change if line.changed else ""])
                continue
            relative = figures["relative_change"]
            means = [_number(figures["mean_before"], line.few), _number(figures["mean_after"])]
            change = "0 %" if abs(relative or 0.0) < ROUNDING else f"{100 * relative:+.2g} %"
            change = "" if relative is None or not line.changed else change
            rows.append([str(line.name), *cells, *means, change])
        title = "Columns" if self.weight is None else f"Columns, weighted by {self.weight}"
        return [Section(title=title, rows=rows, more=_more(self.columns))]


def beside_loss(found: Audit) -> str:
    """Return what is stated of categories beside the loss, which is of numbers only."""
    share, emptied = found.changed_categories, sum(own.suppressed for own in found.columns)
    text = "" if share is None else f" in numbers; {share:.1%} of cells differ in categories"
    return text + (f"; {counted(emptied, 'cell')} suppressed" if emptied else "")


def _by_stratum(line: GroupLine) -> list[dict[str, int | None]]:
    below: Sequence[int | None] = line.below or [None] * len(line.records)
    counts = zip(line.records, line.combinations, line.smallest, below, strict=True)
    return [dict(zip(COUNTS, own)) for own in counts]


def _block_name(place: int) -> str:
    return f"block {place + 1}"


def _number(value: float | None, few: bool = False) -> str:
    return ("withheld" if few else "") if value is None else f"{value:.6g}"


def _listed(title: str, sentences: Sequence[str]) -> list[Section]:
    shown = Section(title=title, lines=sentences[:SHOWN], more=_more(sentences))
    return [shown] if sentences else []


def _more(lines: Sequence[object]) -> list[str]:
    return [f"... and {len(lines) - SHOWN:,} more"] if len(lines) > SHOWN else []
