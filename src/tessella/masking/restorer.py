"""The nearest records that keep linear rules: rows read from rules, records moved, certified.

A *row* is one linear equation or inequality that a rule says; a rule is *restored* if all that it
says are rows between masked columns of numbers. Whole columns stay whole, decimals keep their
places: such columns live on a *grid*.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadTableError, ContradictionError, RefusedError
from ..frame import Table
from ..linear import LinearSystem, round_whole
from ..linear.integers import as_fraction, whole_row
from ..plan.claims import Claim, rows_of
from ..rules.collection import Rules
from ..rules.forms import Always, Form, Governing, Interval, Linear, Unfixed
from ..rules.rule import Rule
from ..schema import Schema
from .alike import number_alike

__all__ = ["Grid", "Restoration", "Restorer"]


TOLERANCE = 1e-9  # of a row's scale, as in `Rules.confront`
CLEAR = 2 * TOLERANCE  # by so much a strict rule must hold
LEVELS = 9  # of margins
MARGIN = 1e-9  # the first that a strict row gets, in deviations of its columns; then 16 times that


@dataclass(frozen=True, kw_only=True)
class Restoration:
    """What it took to bring a masked table back to its rules.

    Attributes
    ----------
    restored : tuple of str
        The names of the rules that hold in every released record, as far as it is known.
    not_restored : dict of str to str
        The names of the other rules, and why nothing was done about them.
    broken : dict of str to int
        How many released records break each rule; 0 for every restored one.
    moved : int
        How many records had to be moved, beyond being rounded.
    mean_move : float
        How far a record was moved on average, in standard deviations of the columns.
    """

    restored: tuple[str, ...]
    not_restored: Mapping[str, str]
    broken: Mapping[str, int]
    moved: int
    mean_move: float

    def __str__(self) -> str:
        lines = [
            f"{len(self.restored)} of {len(self.broken)} rules restored; {self.moved:,} records "
            f"moved; all records by {self.mean_move:.3g} standard deviations on average."
        ]
        for name, why in self.not_restored.items():
            lines.append(f"not restored: {name} ({why}); {self.broken[name]:,} records break it.")
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """The masked columns: what counts as one in each, and which numbers they can hold."""

    columns: tuple[Name, ...]
    numeric: Truths  # (d,) not booleans
    unit: Floats  # (d,) standard deviations
    decimals: tuple[int | None, ...]  # None for real numbers
    low: Floats  # (d,) bounds of the dtype
    high: Floats

    @classmethod
    def of(
        cls,
        source: Table,
        columns: Sequence[Name],
        *,
        unit: Floats,
        decimals: Sequence[int | None],
    ) -> Grid:
        """Read the bounds of integers from their dtypes."""
        ends = [_ends(source, name, own) for name, own in zip(columns, decimals)]
        low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
        return cls(
            columns=tuple(columns),
            numeric=np.array([source.facts(name).numeric for name in columns], dtype=bool),
            unit=unit,
            decimals=tuple(decimals),
            low=low,
            high=high,
        )

    def rounded(self, values: Floats) -> Floats:
        """Round the columns that live on a grid, each cell on its own."""
        out = values.copy()
        for j, decimals in enumerate(self.decimals):
            if decimals is not None:
                out[:, j] = np.round(values[:, j], decimals)
        return out


@dataclass(frozen=True, kw_only=True)
class Row:
    """sum of coefficients times columns ==, <= or (strict) < right."""

    rule: str
    coefficients: Mapping[Name, float]
    right: float
    equal: bool = False
    strict: bool = False
    room: float = math.inf  # the largest margin of a strict row: between 0 and 1 a quarter


@dataclass(frozen=True, kw_only=True, eq=False)
class Restorer:
    """Rules as rows between masked columns; `Restorer.of` sorts out which can be restored."""

    rules: Rules
    grid: Grid
    rows: tuple[Row, ...]
    not_restored: Mapping[str, str]
    texts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, rules: Rules, grid: Grid) -> Restorer:
        """Take rules apart; those that ask for the original table must have been fixed."""
        movable = {name for name, number in zip(grid.columns, grid.numeric) if number}
        rows: list[Row] = []
        left: dict[str, str] = {}
        for rule in rules:
            why = _obstacle(rule, movable)
            if why:
                left[rule.name] = why
            elif any(_never(form) for form in rule.forms):
                raise ContradictionError([f"{rule.name}: {rule.text}"])
            else:
                rows += [row for form in rule.forms for row in _rows(form, rule)]
        texts = {rule.name: f"{rule.name}: {rule.text}" for rule in rules}
        made = cls(rules=rules, grid=grid, rows=tuple(rows), not_restored=left, texts=texts)
        if made.rows:
            _Part(made, made.rows).system(MARGIN).check()  # or name the rules that contradict
        return made

    def restore(self, values: Floats, known: Truths) -> Floats:
        """Move each record to the nearest point that keeps every row; shape (n, d).

        A row is left out for the records that lack one of its columns. Other columns and missing
        cells come back as they are.
        """
        if not self.rows or not len(values):
            return values.copy()
        out, margin = self._moved(values, known, MARGIN), MARGIN
        strict = {row.rule for row in self.rows if row.strict}
        rules = Rules(rule for rule in self.rules if rule.name in strict)
        todo = np.arange(len(values))
        for _ in range(LEVELS if strict else 0):
            # Strict means less by more than rounding, which grows with the terms of the rule.
            todo = todo[self._breaking(rules, out[todo], known[todo])]
            if len(todo) == 0:
                break
            margin *= 16
            out[todo] = self._moved(values[todo], known[todo], margin)
        return out

    def _moved(self, values: Floats, known: Truths, margin: float) -> Floats:
        """Move records; strict rows hold with a margin, in standard deviations."""
        out = values.copy()
        place = {name: j for j, name in enumerate(self.grid.columns)}
        judged = np.column_stack(
            [known[:, [place[name] for name in row.coefficients]].all(axis=1) for row in self.rows]
        )
        alike = number_alike(list(judged.T))
        for number in range(int(alike.max()) + 1):
            records = np.flatnonzero(alike == number)
            rows = tuple(row for row, here in zip(self.rows, judged[records[0]]) if here)
            if rows:
                part = _Part(self, rows)
                cells = np.ix_(records, np.array(part.places))
                out[cells] = part.nearest(values[cells], margin)
        return out

    def _breaking(self, rules: Rules, values: Floats, known: Truths) -> Integers:
        import pandas as pd

        numbers = np.where(known, values, np.nan).T
        frame = pd.DataFrame(dict(zip(self.grid.columns, numbers)))
        return rules.confront(frame, tolerance=CLEAR).breaking()

    def certify(
        self, masked: Any, *, before: Floats, kept: Floats, known: Truths, schema: Schema | None
    ) -> Restoration:
        """Confront the written table with the rules, and refuse it if a restored one is broken."""
        result = self.rules.confront(masked, tolerance=TOLERANCE, schema=schema)
        broken = {name: len(result.breaking(name)) for name in self.rules.names}
        restored = tuple(name for name in self.rules.names if name not in self.not_restored)
        if failed := [name for name in restored if broken[name]]:
            self._refuse_coarse(masked, kept, known)
            named = "; ".join(f"{self.texts[name]} ({broken[name]} records)" for name in failed)
            raise RefusedError(
                f"The masked table still breaks rules that were to be restored: {named}. It is "
                "withheld. Rules whose terms differ by many orders of magnitude may be the reason."
            )
        move = np.where(known, kept - self.grid.rounded(before), 0.0) / self.grid.unit
        lengths = np.sqrt((move**2).sum(axis=1))
        return Restoration(
            restored=restored,
            not_restored=dict(self.not_restored),
            broken=broken,
            moved=int((lengths > 1e-9).sum()),
            mean_move=float(lengths.mean()) if len(lengths) else 0.0,
        )

    def _refuse_coarse(self, masked: Any, kept: Floats, known: Truths) -> None:
        """Say so where a dtype such as float32 did not hold the numbers that keep the rules."""
        table = Table.read(masked)
        for j, name in enumerate(self.grid.columns):
            if self.grid.decimals[j] is None and self.grid.numeric[j]:
                read = table.numeric([name]).values[:, 0]
                if (read != kept[:, j])[known[:, j]].any():
                    raise BadTableError(
                        f"Column {name!r} ({table.facts(name).dtype}) has too few digits to keep "
                        "the rules about it. Convert it to float64, or to whole numbers."
                    )


class _Part:
    """Rows that hold for the same records, and the columns that they join."""

    def __init__(self, restorer: Restorer, rows: tuple[Row, ...]) -> None:
        grid, used = restorer.grid, {name for row in rows for name in row.coefficients}
        self.rows, self.texts = sorted(rows, key=lambda row: not row.equal), restorer.texts
        self.places = [j for j, name in enumerate(grid.columns) if name in used]
        self.columns = [grid.columns[j] for j in self.places]
        decimals = [grid.decimals[j] for j in self.places]
        self.whole = np.array([own is not None for own in decimals], dtype=bool)
        # Numbers of two decimals are whole in hundredths; what is divided, not multiplied, by a
        # power of ten is the double that stands for the decimal.
        self.tenfold = np.array([10.0 ** (own or 0) for own in decimals])
        self.unit = grid.unit[self.places]
        self.low, self.high = grid.low[self.places], grid.high[self.places]
        self.matrix = np.array(
            [[row.coefficients.get(name, 0.0) for name in self.columns] for row in self.rows]
        )

    def system(self, margin: float) -> LinearSystem:
        """Return the rows on the grid; strict ones hold with a margin, in standard deviations."""
        equal = np.array([row.equal for row in self.rows], dtype=bool)
        rows = [self._on_grid(i, margin) for i in range(len(self.rows))]
        matrix = np.array([a for a, _ in rows])
        right = np.array([b for _, b in rows])
        return LinearSystem(
            matrix[equal], right[equal], matrix[~equal], right[~equal],
            columns=self.columns, names=[self.texts[row.rule] for row in self.rows],
        )  # fmt: skip

    def _on_grid(self, i: int, margin: float) -> tuple[Floats, float]:
        """Write a row in units of the grid; between whole columns < 3 is <= 2."""
        row, a = self.rows[i], self.matrix[i] / self.tenfold
        more = min(margin * float(np.abs(self.matrix[i]) @ self.unit), row.room)
        if not row.strict:
            return a, row.right
        places = np.flatnonzero(a)
        if not self.whole[places].all():
            return a, row.right - more
        fractions = [as_fraction(self.matrix[i, j]) / int(self.tenfold[j]) for j in places.tolist()]
        numbers, right = whole_row(fractions, as_fraction(row.right) - as_fraction(more))
        out = np.zeros_like(a)
        out[places] = numbers
        return out, float(math.ceil(right) - 1)

    def nearest(self, X: Floats, margin: float) -> Floats:
        """Move records to the nearest points that keep the rows."""
        system = self.system(margin)
        metric = 1 / (self.unit * self.tenfold) ** 2
        out = system.project(X * self.tenfold, metric=metric)
        if self.whole.any():
            low, high = self.low * self.tenfold, self.high * self.tenfold
            out = round_whole(
                out, system, whole=self.whole, low=low, high=high, weights=metric
            ).values
        return np.asarray(out / self.tenfold)


def _obstacle(rule: Rule, movable: set[Name]) -> str:
    """Say why a rule cannot be restored; nothing where it can."""
    others = [name for name in rule.columns if name not in movable]
    if len(others) == len(rule.columns) and others:
        return "it names no masked column of numbers"
    if rule.condition is not None:
        return "it is conditional"
    if any(isinstance(form, Unfixed) for form in rule.forms):
        return "it asks for the original table"
    for form in rule.forms:
        if not isinstance(form, Interval | Linear | Governing | Always):
            return f"it is not linear: {form.kind}"
    if others:
        return f"it also names {', '.join(map(repr, others))}, not a masked column of numbers"
    return ""


def _never(form: Form) -> bool:
    """Whether no record can obey a form."""
    return (isinstance(form, Always) and not form.holds) or (
        isinstance(form, Interval) and form.empty
    )


def _rows(form: Form, rule: Rule) -> Iterator[Row]:
    """Write a form as rows; what the rule allows beyond equality is allowed here."""
    room = (form.high - form.low) / 4 if isinstance(form, Interval) else math.inf
    for row in rows_of(Claim(rule.name, form, rule.tolerance or 0.0)):
        yield Row(
            rule=rule.name,
            coefficients=row.coefficients,
            right=row.constant,
            equal=row.operator == "==",
            strict=row.operator == "<",
            room=room,
        )


def _ends(source: Table, name: Name, decimals: int | None) -> tuple[float, float]:
    """Return the least and the largest number that a column of whole numbers can hold."""
    width = re.search(r"u?int(8|16|32)", source.facts(name).dtype.lower())
    unsigned = re.search(r"uint\d+", source.facts(name).dtype.lower())
    if decimals is None or source.facts(name).family != "integer":
        return -math.inf, math.inf
    if width:
        ends = np.iinfo(width.group())
        return float(ends.min), float(ends.max)
    return (0.0 if unsigned else -math.inf), math.inf
