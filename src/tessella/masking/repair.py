"""The one repair: values that break linear rules go to the nearest ones that keep them.

Maskers that change each number on its own (`Perturbation`) repair records; the microaggregation
engine repairs the values of groups. Both give their rules as linear rows, and both go through
`project_rows`: an orthogonal projection in units of the columns (`LinearSystem.project`), then,
where columns live on a *grid* (whole numbers, or a fixed number of decimals), the nearest point of
the grid that keeps the rows (`round_whole`). Products are repaired in `repair_products`.

Strictness, the same for both: a < b is kept

- between columns on a grid exactly: a <= b - 1 in whole numbers, a <= b - 0.01 in cents;
- between real numbers by a margin: a <= b - MARGIN * u, with u the largest |coefficient| times
  unit (standard deviation) of the row's columns, and at most a quarter of the room that an opposite
  row leaves. Where the terms are so large that `Rules.confront` could take this for rounding, the
  margin of that record grows sixteenfold until it could not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadTableError, ContradictionError, RefusedError
from ..frame import Table, group_ids
from ..linear import LinearSystem, round_whole
from ..linear.rows import Row, as_fraction, whole_row
from ..plan.plan import Claim, rows_of
from ..rules.collection import Rules
from ..rules.forms import Always, Form, Governing, Interval, Linear, Unfixed, linear_rows
from ..rules.rule import Rule
from ..schema import Schema

TOLERANCE = 1e-9  # of a row's scale, as in `Rules.confront`
CLEAR = 2 * TOLERANCE  # by so much of its scale a strict row must hold
MARGIN = 1e-6  # of the unit of a strict row: far above rounding, far below what anybody reads
SINGLE = re.compile(r"float32|^float$|^float\[pyarrow\]$")  # a float32 of Arrow is a "float"
LEVELS = 7  # of margins, each 16 times the one before; the last is 16 units


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
    """The columns that are repaired together: units of distance, and the numbers they can hold."""

    columns: tuple[Name, ...]
    unit: Floats  # (d,) standard deviations
    parts: tuple[int | None, ...]  # of one: 1 for whole numbers, 100 for cents; None for real ones
    low: Floats  # (d,) bounds of the dtype
    high: Floats

    @classmethod
    def of_table(
        cls,
        source: Table,
        columns: Sequence[Name],
        *,
        unit: Floats,
        decimals: Sequence[int | None],
        largest: Mapping[Name, float] | None = None,
    ) -> Grid:
        """Describe columns of a table, with the bounds of integers by their dtypes.

        Columns of float32 whose largest size is given live on a grid that their dtype holds.
        """
        ends = [_ends(source, name, own) for name, own in zip(columns, decimals)]
        low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
        parts = [None if own is None else 10**own for own in decimals]
        for name, size in (largest or {}).items():
            j = columns.index(name)
            if parts[j] is None and SINGLE.search(source.facts(name).dtype.lower()):
                # A float32 has 24 bits: sums of a few numbers of this size need 21 or less each.
                spare = 21 - math.ceil(math.log2(max(size, 1e-300)))
                parts[j] = 2**spare if 0 <= spare <= 60 else None
        return cls(columns=tuple(columns), unit=unit, parts=tuple(parts), low=low, high=high)

    @property
    def whole(self) -> Truths:
        """Whether each column lives on a grid, shape (d,)."""
        return np.array([own is not None for own in self.parts], dtype=bool)

    @property
    def tenfold(self) -> Floats:
        """By what each column is multiplied to be whole where it lives on a grid, shape (d,)."""
        return np.array([float(own or 1) for own in self.parts])

    @property
    def plain(self) -> Grid:
        """The same columns in ones: those that live on fractions count as real."""
        return replace(self, parts=tuple(1 if own == 1 else None for own in self.parts))

    def place(self, name: Name) -> int:
        """Return where a column is."""
        return self.columns.index(name)

    def used_by(self, rows: Sequence[Row]) -> list[int]:
        """Return where the columns are that some rows name."""
        used = {name for row in rows for name in row.coefficients}
        return [j for j, name in enumerate(self.columns) if name in used]

    def part(self, places: Sequence[int]) -> Grid:
        """Return the grid of some of the columns."""
        return Grid(
            columns=tuple(self.columns[j] for j in places),
            unit=self.unit[list(places)],
            parts=tuple(self.parts[j] for j in places),
            low=self.low[list(places)],
            high=self.high[list(places)],
        )

    def holds(self, values: Floats) -> Truths:
        """Return which points the dtypes can hold: finite, within bounds, whole where they must."""
        whole = np.array([own == 1 for own in self.parts], dtype=bool)
        fine = np.isfinite(values) & (values >= self.low) & (values <= self.high)
        return np.asarray((fine & (~whole | (values == np.rint(values)))).all(axis=1))

    def rounded(self, values: Floats) -> Floats:
        """Round the columns that live on a grid, each cell on its own."""
        out = values.copy()
        for j, parts in enumerate(self.parts):
            if parts is not None:
                out[:, j] = np.rint(values[:, j] * parts) / parts
        return out


# Any number of records, all rows


def project_rows(
    values: Floats,
    grid: Grid,
    rows: Sequence[Row],
    breaking: Callable[[Floats, Integers], Truths] | None = None,
) -> Floats:
    """Return the nearest points, on the grid, that keep linear rows, or raise which contradict.

    `values` lack no number in the columns of the rows. `breaking` returns which points, given with
    their places, do not clearly keep the strict rows; by default, those that keep one by less than
    CLEAR of its scale.
    """
    out = grid.rounded(values)
    places = grid.used_by(rows)
    if not places:
        return out
    own, cells = grid.part(places), values[:, places]
    out[:, places] = _nearest(cells, own, rows, MARGIN)
    strict = [row for row in rows if row.strict]
    todo, margin = np.arange(len(values)), MARGIN
    for _ in range(LEVELS if strict else 0):
        now = out[todo]
        todo = todo[unclear(now, grid, strict) if breaking is None else breaking(now, todo)]
        if len(todo) == 0:
            break
        margin *= 16
        out[np.ix_(todo, np.array(places))] = _nearest(cells[todo], own, rows, margin)
    return out


def _nearest(values: Floats, grid: Grid, rows: Sequence[Row], margin: float) -> Floats:
    """Project, then round to the grid; strict rows hold with a margin."""
    system = closed_system(grid, rows, margin)
    # Numbers of two decimals are whole in hundredths; what is divided, not multiplied, by a power
    # of ten is the double that stands for the decimal.
    tenfold = grid.tenfold
    metric = 1 / (grid.unit * tenfold) ** 2
    out = system.project(values * tenfold, metric=metric)
    if grid.whole.any():
        out = round_whole(
            out, system, whole=grid.whole, weights=metric,
            low=grid.low * tenfold, high=grid.high * tenfold,
        ).values  # fmt: skip
    return np.asarray(out / tenfold)


def unclear(values: Floats, grid: Grid, rows: Sequence[Row]) -> Truths:
    """Return which points could be taken to break a strict row, rounding considered.

    Between whole numbers nothing is rounded.
    """
    found = np.zeros(len(values), dtype=bool)
    for row in rows:
        if all(grid.parts[grid.place(name)] == 1 for name in row.coefficients):
            continue
        a = np.array(row.dense(grid.columns), dtype=np.float64)
        terms = values[:, a != 0] * a[a != 0]
        scale = np.abs(terms).sum(axis=1) + abs(row.right)
        found |= terms.sum(axis=1) - row.right >= -CLEAR * scale
    return found


def closed_system(grid: Grid, rows: Sequence[Row], margin: float = MARGIN) -> LinearSystem:
    """Return the rows in units of the grid, with <= for <, as the module states."""
    return LinearSystem.of_rows([_closed(row, rows, grid, margin) for row in rows], grid.columns)


def _closed(row: Row, rows: Sequence[Row], grid: Grid, margin: float) -> Row:
    """Write a row in units of the grid; a strict one as <= what is left by its margin."""
    names, places = list(row.coefficients), [grid.place(name) for name in row.coefficients]
    tenfold = grid.tenfold
    values = [float(row.coefficients[name]) for name in names]
    scaled = {name: v / tenfold[j] for name, v, j in zip(names, values, places)}
    if not row.strict:
        return replace(row, coefficients=scaled)
    unit = max(abs(v) * float(grid.unit[j]) for v, j in zip(values, places))
    less = min(margin * unit, _room(row, rows) / 4)
    if any(grid.parts[j] is None for j in places):
        return Row(row.name, scaled, "<=", row.right - less)
    fractions = [as_fraction(v) / int(tenfold[j]) for v, j in zip(values, places)]
    right = as_fraction(row.right) if margin == MARGIN else as_fraction(row.right - less)
    numbers, right = whole_row(fractions, right)
    return Row(row.name, dict(zip(names, numbers)), "<=", _below(right))


def _below(right: Fraction) -> float:
    """Return the largest whole number less than a bound, which is whole if it is so to rounding."""
    nearest = round(right)
    return float(nearest - 1 if abs(right - nearest) <= TOLERANCE else math.floor(right))


def _room(row: Row, rows: Sequence[Row]) -> float:
    """Return how far a row is from its opposite: between 0 < x and x < 1 it is 1."""
    opposite = {name: -value for name, value in row.coefficients.items()}
    gaps = [row.right + other.right for other in rows if other.coefficients == opposite]
    return min((gap for gap in gaps if gap > 0), default=math.inf)


# The values of groups, which keep the claims of a plan


def rows_about(
    columns: Sequence[Name], claims: Sequence[Claim], constants: Mapping[Name, float]
) -> list[Row]:
    """Collect the linear rows about these columns; columns of strata are constants."""
    found = []
    for row in (row for claim in claims for row in rows_of(claim)):
        names = set(row.coefficients)
        if names & set(columns) and names <= {*columns, *constants}:
            own = {name: v for name, v in row.coefficients.items() if name in columns}
            right = row.right
            for name, value in row.coefficients.items():
                if name not in columns:
                    right -= value * constants[name]
            found.append(replace(row, coefficients=own, right=right))
    return found


def project_claims(
    values: Floats, grid: Grid, claims: Sequence[Claim], constants: Mapping[Name, float]
) -> Floats:
    """Return the nearest points, on the grid, that keep the linear claims."""
    return project_rows(values, grid, rows_about(grid.columns, claims, constants))


# The records of a masked table, which keep rules


@dataclass(frozen=True, kw_only=True, eq=False)
class Repair:
    """Rules as rows between masked columns; `Repair.of` selects those that can be restored.

    A rule is *restored* if all that it says are rows between masked columns of numbers.
    """

    rules: Rules
    grid: Grid
    rows: tuple[Row, ...]
    not_restored: Mapping[str, str]

    @classmethod
    def of(cls, rules: Rules, grid: Grid, *, fixed: Sequence[Name] = ()) -> Repair:
        """Take rules apart; those that ask for the original table must have been fixed.

        Columns that are `fixed`, such as booleans, do not move.
        """
        movable = set(grid.columns) - set(fixed)
        rows: list[Row] = []
        left: dict[str, str] = {}
        for rule in rules:
            why = _obstacle(rule, movable)
            if why:
                left[rule.name] = why
            elif any(_never(form) for form in rule.forms):
                raise ContradictionError([_text(rule)])
            else:
                give = rule.tolerance or 0.0
                rows += [row for f in rule.forms for row in linear_rows(f, _text(rule), give)]
        if rows:
            closed_system(grid.part(grid.used_by(rows)), rows).check()
        return cls(rules=rules, grid=grid, rows=tuple(rows), not_restored=left)

    def restore(self, values: Floats, known: Truths) -> Floats:
        """Move each record to the nearest point that keeps every row; shape (n, d).

        A row is left out for the records that lack one of its columns. Other columns are rounded
        to their grid.
        """
        out = self.grid.rounded(values)
        if not self.rows or not len(values):
            return out
        places = [[self.grid.place(name) for name in row.coefficients] for row in self.rows]
        judged = np.column_stack([known[:, own].all(axis=1) for own in places])
        alike = group_ids(judged.T.astype(np.int64))
        for number in range(int(alike.max()) + 1):
            records = np.flatnonzero(alike == number)
            rows = [row for row, here in zip(self.rows, judged[records[0]]) if here]
            if rows:  # equal records move to equal ones, to the last digit
                here = known[records]  # a missing cell is no 0
                own = np.hstack([np.where(here, values[records], 0.0), here])
                _, first, place = np.unique(own, axis=0, return_index=True, return_inverse=True)
                leaders = records[np.sort(first)]
                moved = project_rows(
                    values[leaders], self.grid, rows, partial(self._breaking, known[leaders])
                )
                out[records] = moved[np.argsort(np.argsort(first))[place.ravel()]]
        return out

    def _breaking(self, known: Truths, values: Floats, at: Integers) -> Truths:
        """Return which records could be taken to break a strict rule, as it is written.

        Terms that cancel in a row still count in the rounding of the rule's text.
        """
        import pandas as pd

        strict = {row.name for row in self.rows if row.strict}
        rules = Rules(rule for rule in self.rules if _text(rule) in strict)
        numbers = np.where(known[at], values, np.nan).T
        frame = pd.DataFrame(dict(zip(self.grid.columns, numbers)))
        return np.asarray((rules.confront(frame, tolerance=CLEAR).signs < 0).any(axis=1))

    def certify(
        self, masked: Any, *, before: Floats, kept: Floats, known: Truths, schema: Schema | None
    ) -> Restoration:
        """Confront the written table with the rules, and refuse it if a restored one is broken."""
        result = self.rules.confront(masked, tolerance=TOLERANCE, schema=schema)
        broken = {name: len(result.breaking(name)) for name in self.rules.names}
        restored = tuple(name for name in self.rules.names if name not in self.not_restored)
        if failed := [name for name in restored if broken[name]]:
            self._refuse_coarse(masked, kept, known)
            named = "; ".join(f"{_text(self.rules[n])} ({broken[n]} records)" for n in failed)
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
        """Raise where a dtype such as float32 did not hold the numbers that keep the rules."""
        table = Table.read(masked)
        for j, name in enumerate(self.grid.columns):
            if self.grid.parts[j] is None and table.facts(name).numeric:
                read = table.raw(name)[0]
                if (read != kept[:, j])[known[:, j]].any():
                    raise BadTableError(
                        f"Column {name!r} ({table.facts(name).dtype}) has too few digits to keep "
                        "the rules about it. Convert it to float64, or to whole numbers."
                    )


def _text(rule: Rule) -> str:
    return f"{rule.name}: {rule.text}"


def _obstacle(rule: Rule, movable: set[Name]) -> str:
    """Return why a rule cannot be restored; nothing where it can."""
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


def _ends(source: Table, name: Name, decimals: int | None) -> tuple[float, float]:
    """Return the least and the largest number that a column of whole numbers can hold."""
    dtype = source.facts(name).dtype.lower()
    if decimals is None or source.facts(name).family != "integer":
        return -math.inf, math.inf
    if width := re.search(r"u?int(8|16|32)", dtype):
        ends = np.iinfo(width.group())
        return float(ends.min), float(ends.max)
    return (0.0 if re.search(r"uint\d+", dtype) else -math.inf), math.inf
