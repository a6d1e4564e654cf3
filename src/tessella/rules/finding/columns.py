"""The columns that rules are looked for in: numbers as whole numbers, categories as codes.

Equalities are looked for, and counted, in whole numbers: 0.1 + 0.2 == 0.3 is 1 + 2 == 3. A column
has as many decimals as its values need; one that has more than nine, or none at all because its
values were measured and not written down, takes no part in equalities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..._types import Floats, Integers, Name, Truths
from ...exceptions import BadTableError
from ...frame import View
from ..domain import Operands
from ..expressions import column_text, quoted

SAMPLE = 20_000  # records that are looked at; twice as many take twice the time and find no more
DRAWS = 40_000  # records put together by chance: shares down to 1 in 10,000 are told from 0
MOST_DECIMALS = 9
MOST_LEVELS = 30  # categories of a column whose combinations with others are looked at
LARGEST = 2**62  # whole numbers are added and multiplied up to here


@dataclass(frozen=True, eq=False)
class Figure:
    """A column of numbers: `values` of shape (n,), 0 where not `known`.

    `whole` has the values times 10**decimals, or is None where they have no such form.
    """

    name: Name
    values: Floats
    known: Truths
    decimals: int = 0
    whole: Integers | None = None
    is_code: bool = False  # numbers of categories: nothing is multiplied or rounded

    @property
    def text(self) -> str:
        """The column's name as rules write it."""
        return column_text(self.name)

    @cached_property
    def largest(self) -> int:
        """The largest absolute whole number."""
        return 0 if self.whole is None or not len(self.whole) else int(np.abs(self.whole).max())

    @cached_property
    def least(self) -> float:
        """The least known value."""
        return float(self.values[self.known].min()) if self.known.any() else 0.0

    @cached_property
    def negative(self) -> float:
        """The share of known values below zero."""
        return float((self.values[self.known] < 0).mean()) if self.known.any() else 0.0


@dataclass(frozen=True, eq=False)
class Levels:
    """A column of categories: `codes` of shape (n,), -1 where missing, and each category's text.

    `texts` are as rules write them, quotes included.
    """

    name: Name
    codes: Integers
    texts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The column's name as rules write it."""
        return column_text(self.name)


class Sample:
    """Some records of a table, in an order that does not depend on the table's.

    Parameters
    ----------
    view : View
        The table with its schema.
    seed : int
        Chooses the records, and draws by chance.
    """

    def __init__(self, view: View, seed: int) -> None:
        self.view = view
        self.n_table = view.n_rows
        self.seed = seed
        every = np.arange(view.n_rows)
        if view.n_rows > SAMPLE:
            every = np.sort(np.random.default_rng(seed).choice(view.n_rows, SAMPLE, replace=False))
        self._rows = every
        self.operands = Operands(view)
        self._numbers = [name for name in view.columns if self._is_number(name)]
        if self._numbers:
            keys = [self._read(name)[::-1] for name in self._numbers]
            self._rows = every[np.lexsort([part for pair in keys for part in pair])]
        self.n_rows = len(self._rows)
        self._given: dict[Name, Figure] = {}

    @cached_property
    def first_of_unit(self) -> Truths:
        """The first record of each unit; all records, where there are no units."""
        first = np.ones(self.n_rows, dtype=bool)
        if self.view.units is not None:
            first[:] = False
            first[np.unique(self.view.units[self._rows], return_index=True)[1]] = True
        return first

    def _is_number(self, name: Name) -> bool:
        """Return whether a column holds numbers that are not numbers of respondents."""
        schema = self.view.schema
        if schema is not None and schema[name].role in ("identifier", "unit"):
            return False
        if not self.view.table.facts(name).numeric:
            return False
        try:
            self.view.numbers(name)
        except BadTableError:  # more digits than rules can calculate with
            return False
        return True

    def _read(self, name: Name) -> tuple[Floats, Truths]:
        values = self.view.numbers(name)[self._rows]
        known = ~np.isnan(values)
        return np.where(known, values, 0.0), known

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The columns of numbers that vary, codes of categories included."""
        found = []
        for name in self._numbers:
            values, known = self._read(name)
            if known.any() and np.ptp(values[known]) > 0:
                figure = as_figure(name, values, known)
                found.append(replace(figure, is_code=not self.view.is_number(name)))
        return tuple(found)

    @cached_property
    def amounts(self) -> tuple[Figure, ...]:
        """Those of the figures that are measured or counted: no codes."""
        return tuple(one for one in self.figures if not one.is_code)

    @cached_property
    def exact(self) -> tuple[Figure, ...]:
        """Those of the figures that are whole numbers of some decimal."""
        return tuple(one for one in self.figures if one.whole is not None)

    @cached_property
    def dates(self) -> tuple[Figure, ...]:
        """Columns of dates, as microseconds."""
        found = []
        for name in self.view.columns:
            if self.view.table.facts(name).family != "date":
                continue
            try:
                stamps = self.operands.dates(name)[self._rows].astype(np.float64)
            except BadTableError:
                continue
            known = ~self.operands.missing(name)[self._rows]
            if known.any() and np.ptp(stamps[known]) > 0:
                found.append(Figure(name, np.where(known, stamps, 0.0), known))
        return tuple(found)

    @cached_property
    def levels(self) -> tuple[Levels, ...]:
        """The columns of at most 30 categories, at least two of which occur."""
        found = []
        for name in self.view.columns:
            facts, schema = self.view.table.facts(name), self.view.schema
            role = "" if schema is None else schema[name].role
            if role in ("identifier", "unit", "weight") or facts.family == "date":
                continue
            if facts.numeric and (self.view.is_number(name) or name not in self._numbers):
                continue
            if facts.family == "other":
                continue
            every = self.every_level(name)
            if every is not None:
                found.append(Levels(name, every.codes[self._rows], every.texts))
        return tuple(found)

    def every_level(self, name: Name) -> Levels | None:
        """Return a column of 2 to 30 categories in all records of the table, or None.

        Categories are numbered by their text, so that the order of records does not matter.
        """
        codes, labels = self.view.labels(name)
        occurring = np.unique(codes[codes >= 0])
        if not 2 <= len(occurring) <= MOST_LEVELS:
            return None
        family = self.view.table.facts(name).family
        numeric = self.view.table.facts(name).numeric
        key = (lambda code: float(labels[code])) if numeric else (lambda code: labels[code])
        order = sorted((int(code) for code in occurring), key=key)
        place = np.full(len(labels) + 1, -1, dtype=np.int64)
        place[order] = np.arange(len(order))
        plain = numeric or family == "boolean"
        texts = tuple(labels[code] if plain else quoted(labels[code]) for code in order)
        return Levels(name, place[codes], texts)

    def everywhere(self, name: Name) -> Floats:
        """Return a column of numbers of the whole table, NaN where missing."""
        return self.view.numbers(name)

    def draw(self, figure: Figure, place: int) -> Integers:
        """Return the row numbers of cells that are drawn from one column alone."""
        rows = np.flatnonzero(figure.known)
        generator = np.random.default_rng((self.seed, place))
        return rows[generator.integers(0, len(rows), DRAWS)]

    @cached_property
    def _draws(self) -> dict[Name, Integers]:
        return {one.name: self.draw(one, at) for at, one in enumerate(self.figures)}

    def drawn(self, figure: Figure) -> Figure:
        """Return a column of records that are put together by chance."""
        if figure.name not in self._given:
            rows = self._draws[figure.name]
            whole = None if figure.whole is None else figure.whole[rows]
            every = np.ones(len(rows), dtype=bool)
            self._given[figure.name] = Figure(
                figure.name, figure.values[rows], every, figure.decimals, whole
            )
        return self._given[figure.name]


def as_figure(name: Name, values: Floats, known: Truths) -> Figure:
    """Return a column with as many decimals as its values need, if nine are enough."""
    for decimals in range(MOST_DECIMALS + 1):
        scaled = values * 10.0**decimals
        size = np.abs(scaled)
        if size.max() >= 2.0 ** (53 if decimals == 0 else 46):
            break
        whole = np.rint(scaled)
        # 0.1 + 0.2 is 0.30000000000000004: a few units in the last place are forgiven, but never
        # so many that a measured number passes for a whole one.
        if (np.abs(scaled - whole) <= np.minimum(2.0**-49 * size, 2.0**-6)).all():
            return Figure(name, values, known, decimals, whole.astype(np.int64))
    return Figure(name, values, known)
