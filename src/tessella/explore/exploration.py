"""What an exploration found: points, the front, the best one within limits."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._notebook import RISK, Bar, Display, Displayed, Section
from .._output import whole_or_nothing
from .._parameters import NONE, Number, Whole, parameters
from ..exceptions import BadOptionError, BadTableError, NoCandidateError
from .evaluate import Point, by_loss, by_risk, by_score, front_of

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 12  # lines that printing shows beside the front
WHOLE = ("k_promised", "k_reached", "rules_broken")  # columns of a frame
META = b"tessella.explore"


@dataclass(frozen=True)
class _PerCent(Number):
    least: float = 0
    most: float = 100

    def __str__(self) -> str:
        return "per cent, from 0 to 100"


@dataclass(frozen=True, kw_only=True, repr=False)
class Exploration(Displayed):
    """Candidates tried on one table, each with loss and risk from 0 to 100.

    **Confidential**: it shows how well attacks on the table work.

    Attributes
    ----------
    points : tuple of Point
        In the order in which they were planned.
    measures, attacks : tuple of str
        What was measured and tried; the first measure is the loss, the worst attack the risk.
    n_records, n_columns : int
        The size of what was masked.
    finished : bool
        False if it was interrupted, or the time was up, before all candidates were tried.
    reused : int
        Points that came from the store.
    seconds : float
        The whole exploration, without what came from the store.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.explore import Candidate, explore
    >>> table = np.random.default_rng(0).normal(size=(60, 3))
    >>> tried = [Candidate("protect", k=k, grouping="mdav") for k in (3, 6)]
    >>> tried.append(Candidate("noise", amount=0.01))
    >>> found = explore(table, candidates=tried, attacks=["euclidean"], n_jobs=1, random_state=0)
    >>> print(found.best(max_risk=34).candidate)
    MDAV, k = 3
    >>> [point.candidate.label for point in found.front]
    ['correlated noise', 'MDAV', 'MDAV']
    >>> print(found.best(max_risk=34).to_toml())
    [[steps]]
    method = "protect"
    grouping = "mdav"
    k = 3
    columns = [0, 1, 2]
    <BLANKLINE>
    """

    points: tuple[Point, ...]
    measures: tuple[str, ...]
    attacks: tuple[str, ...]
    n_records: int
    n_columns: int
    finished: bool = True
    reused: int = 0
    seconds: float = math.nan

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def front(self) -> list[Point]:
        """The points that no other beats in both loss and risk, by ascending loss."""
        return front_of(list(self.points))

    @property
    def refused(self) -> list[Point]:
        """The candidates without a result; `error` says why."""
        return [point for point in self.points if not point.tried]

    @property
    def broken(self) -> list[Point]:
        """The points whose audit found a problem: rules broken, or a promised k not kept."""
        return [point for point in self.points if point.tried and not point.passed]

    @parameters(max_risk=[_PerCent(), NONE], max_loss=[_PerCent(), NONE], min_k=[Whole(), NONE])
    def best(
        self,
        *,
        max_risk: float | None = None,
        max_loss: float | None = None,
        min_k: int | None = None,
    ) -> Point:
        """Return the best point within limits, among those whose audit is passed.

        Parameters
        ----------
        max_risk, max_loss : float from 0 to 100, optional
            With a limit of risk alone, the least loss; with a limit of loss alone, the least
            risk; with both or none, the least score, the mean of the two.
        min_k : int, optional
            How many records must share all their masked values, counted in the table.

        Raises
        ------
        NoCandidateError
            If nothing is within the limits; it names what comes nearest.
        """
        good = [point for point in self.points if point.passed]
        if min_k is not None:
            good = [point for point in good if (point.k_reached or 0) >= min_k]
        risk, loss = (math.inf if limit is None else limit for limit in (max_risk, max_loss))
        within = [point for point in good if point.risk <= risk and point.loss <= loss]
        if not within:
            raise _nothing(good, max_risk, max_loss, min_k)
        if (max_risk is None) == (max_loss is None):
            return min(within, key=by_score)
        return min(within, key=by_risk if max_risk is None else by_loss)

    def frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row for each point, in the order tried."""
        import pandas as pd

        front = {point.candidate for point in self.front}
        rows = []
        for point in self.points:
            row: dict[str, Any] = {
                "candidate": str(point.candidate),
                "method": point.candidate.method,
                "label": point.candidate.label,
                "options": json.dumps(point.candidate.options),
                **{name: getattr(point, name) for name in ("loss", "risk", "score")},
                "worst_attack": point.worst,
                "on_front": point.candidate in front,
                "passed": point.passed,
                **{name: getattr(point, name) for name in (*WHOLE, "seconds", "seconds_all")},
            }
            row |= {f"loss_{name}": point.losses.get(name, math.nan) for name in self.measures}
            row |= {f"risk_{name}": point.risks.get(name, math.nan) for name in self.attacks}
            row |= {
                "problems": " ".join(point.problems),
                "notes": " ".join(point.notes),
                "error": point.error,
            }
            rows.append(row)
        frame = pd.DataFrame(rows)
        return frame.astype(dict.fromkeys([name for name in WHOLE if name in frame], "Int64"))

    def picture(self, **options: Any) -> Any:
        """Draw the risk-utility map: see `tessella.pictures.risk_utility_map`."""
        from ..pictures import risk_utility_map

        return risk_utility_map(self, **options)

    def _drawing(self) -> str:
        """The map as the reports draw pictures: an SVG in the colours of the page."""
        from ..pictures.map_drawing import risk_utility_map
        from ..pictures.maps import MEASURES

        points = [point.to_dict() | point.names for point in self.points]
        front = {point.candidate.key for point in self.front}
        measure = MEASURES.get(self.measures[0], self.measures[0])
        return risk_utility_map(points, front=front, measure=measure)

    def save(self, path: Any, *, overwrite: bool = True) -> None:
        """Write everything to a Parquet file that only its owner may read; `load` reads it."""
        import pyarrow
        from pyarrow import parquet

        target = Path(path)
        if target.suffix != ".parquet":
            raise BadOptionError("path", str(path), "the name of a file that ends in .parquet")
        table = pyarrow.Table.from_pandas(self.frame(), preserve_index=False)
        whole = json.dumps(self.to_dict(), allow_nan=False).encode()
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), META: whole})
        with whole_or_nothing(target, overwrite=overwrite, private=True) as file:
            parquet.write_table(table, file)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers."""
        return vars(self) | {
            "points": [point.to_dict() for point in self.points],
            "measures": list(self.measures),
            "attacks": list(self.attacks),
            "seconds": None if math.isnan(self.seconds) else self.seconds,
        }

    @property
    def verdict(self) -> str:
        """How many candidates were tried, and what came of them."""
        front = self.front
        head = (
            f"{len(self.points)} candidates for {self.n_records:,} records, {self.n_columns} "
            f"columns: {len(front)} on the front"
        )
        if self.refused:
            head += f", {len(self.refused)} refused"
        if self.broken:
            head += f", {len(self.broken)} with a broken promise"
        return head + ("." if self.finished else "; not finished: run it again to go on.")

    @property
    def _others(self) -> list[Point]:
        """The points that are not on the front, by ascending score."""
        on_front = {point.candidate for point in self.front}
        others = [p for p in self.points if p.tried and p.candidate not in on_front]
        return sorted(others, key=by_score)

    def _display(self) -> Display:
        front, others = self.front, self._others
        best = [f"Least score: {self.best()}."] if front else []
        more = [f"... and {len(others) - SHOWN} more: see frame()"] if len(others) > SHOWN else []
        refused = [f"{p.candidate}: {p.error}" for p in self.refused]
        tables = {"The front": front, "The best of the others": others[:SHOWN]}
        parts = [
            Section(
                title=title, rows=[_HEAD, *map(_drawn_row, points)], texts=(4, 5),
                more=more if points is not front else (), folded=points is not front,
            )
            for title, points in tables.items() if points
        ]  # fmt: skip
        parts += [Section(title="Refused", lines=refused, folded=True)] if refused else []
        return Display(
            title="Exploration",
            verdict=[self.verdict, *best],
            sections=parts,
            confidential=RISK,
            picture=self._drawing if front else None,
        )

    def __str__(self) -> str:
        front, others = self.front, self._others
        lines = [self.verdict]
        if front:
            best = self.best()
            lines += ["", f"least score: {best}", "", "The front:", *_table(front)]
        if others:
            lines += ["", "The best of the others:", *_table(others[:SHOWN])]
            if len(others) > SHOWN:
                lines.append(f"... and {len(others) - SHOWN} more: see frame()")
        if self.refused:
            lines += ["", "Refused:", *(f"  {p.candidate}: {p.error}" for p in self.refused)]
        return "\n".join(lines)

    __repr__ = __str__


def load(path: Any) -> Exploration:
    """Read an exploration that `Exploration.save` wrote."""
    from pyarrow import parquet

    try:
        metadata = parquet.read_schema(path).metadata or {}
    except (OSError, ValueError) as error:
        raise BadTableError(f"{str(path)!r} cannot be read as Parquet: {error}") from error
    if META not in metadata:
        raise BadTableError(
            f"{str(path)!r} was not written by Exploration.save. Give the Parquet file of an "
            "exploration."
        )
    known = json.loads(metadata[META])
    known["points"] = tuple(Point.from_dict(point) for point in known["points"])
    for name in ("measures", "attacks"):
        known[name] = tuple(known[name])
    known["seconds"] = math.nan if known["seconds"] is None else known["seconds"]
    return Exploration(**known)


def _nothing(
    good: list[Point], max_risk: float | None, max_loss: float | None, min_k: int | None
) -> NoCandidateError:
    wished, nearest = [], []
    for what, limit, key in (("risk", max_risk, by_risk), ("loss", max_loss, by_loss)):
        if limit is not None:
            wished.append(f"a {what} of at most {limit:g}")
            if good:
                least = min(good, key=key)
                one, other = key(least)[:2]
                rest = "loss" if what == "risk" else "risk"
                nearest.append(
                    f"the least {what} is {one:.1f}, with {rest} {other:.1f} ({least.candidate})"
                )
    if min_k is not None:
        wished.append(f"{min_k} records alike")
    if not good:
        return NoCandidateError([*wished, "a passed audit"], [])
    return NoCandidateError(wished, nearest)


_HEAD = ("loss", "risk", "score", "k", "worst attack", "candidate")


def _row(p: Point) -> tuple[str, ...]:
    broken = "" if p.passed else "  BROKEN: " + " ".join(p.problems)
    figures = (f"{p.loss:.1f}", f"{p.risk:.1f}", f"{p.score:.1f}", str(p.k_reached))
    return *figures, p.worst, f"{p.candidate}{broken}"


def _drawn_row(p: Point) -> tuple[str | Bar, ...]:
    loss, risk, *rest = _row(p)
    return Bar(p.loss / 100, loss), Bar(p.risk / 100, risk), *rest


def _table(points: list[Point]) -> list[str]:
    rows = [_HEAD, *map(_row, points)]
    widths = [max(len(row[at]) for row in rows) for at in range(5)]
    lines = []
    for row in rows:
        *numbers, worst, candidate = row
        cells = [cell.rjust(width) for cell, width in zip(numbers, widths)]
        lines.append("  " + "  ".join([*cells, worst.ljust(widths[4]), candidate]).rstrip())
    return lines
