"""Slips: records that break rules because one number is wrong, and what it must have been.

Fellegi and Holt (1976) look for the fewest fields of a record whose change lets every rule hold. A
*slip* is the case of one field. An equality that the field is in has one solution for it, given
the others: each solution is tried, and confronted with all rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats, Name
from ..frame import Table, View
from ..schema import Schema
from .collection import Rules
from .forms import Form, Linear, Multiplicative

POWERS = range(-6, 7)  # of ten, by which a figure in the wrong unit is off


@dataclass(frozen=True, kw_only=True)
class Slip:
    """One number that is wrong, and the one with which its record keeps all rules."""

    row: int  # from 0
    column: Name
    was: float
    now: float

    @property
    def what(self) -> str:
        """What went wrong, where the two numbers tell: "1,000 times too large", "a lost sign"."""
        if not self.now or not self.was:
            return "another number"
        ratio = self.was / self.now
        power = round(math.log10(abs(ratio)))
        if math.isclose(abs(ratio), 10.0**power, rel_tol=1e-9) and power in POWERS:
            times = f"{10 ** abs(power):,} times too {'large' if power > 0 else 'small'}"
            sign = "a lost sign" if ratio < 0 else ""
            return " and ".join(part for part in (times if power else "", sign) if part)
        return "another number"

    def __str__(self) -> str:
        return (
            f"row {self.row}: {self.column} {self.was:,.15g} must be {self.now:,.15g}: {self.what}"
        )


def correct_slips(
    table: Any, rules: Any, *, schema: Schema | None = None
) -> tuple[Any, tuple[Slip, ...]]:
    """Correct the records that keep all rules once a single number is another one.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The table; it is not changed.
    rules : Rules or text
        The rules. Sums, differences and products that are equalities give the right number.
    schema : Schema, optional
        Says which values stand for "missing".

    Returns
    -------
    table : the same kind of table
        With the slips corrected; records that need more than one change are as they were.
    slips : tuple of Slip
        In the order of the rows.

    Notes
    -----
    Where several numbers can be the wrong one, as in `profit == turnover - costs`, it is the one
    that was in the wrong unit or had the wrong sign; if that tells nothing, the one that changes
    least, in standard deviations of its column. A slip of this kind is a guess.

    References
    ----------
    I. P. Fellegi, D. Holt (1976). A systematic approach to automatic edit and imputation. JASA 71.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.rules import correct_slips
    >>> table = pd.DataFrame({"net": [80, 45_000], "tax": [20, 15], "gross": [100, 60]})
    >>> corrected, slips = correct_slips(table, "net + tax == gross")
    >>> corrected["net"].tolist()
    [80, 45]
    >>> print(slips[0])
    row 1: net 45,000 must be 45: 1,000 times too large
    """
    source, wanted = Table.read(table), Rules.of(rules)
    fixed = wanted if wanted.is_fixed else wanted.fix(source, schema=schema)
    broken = fixed.confront(source, schema=schema).breaking()
    if not len(broken):
        return source.native, ()
    part = View(Table.read(source.take(broken)), schema)
    best: dict[int, tuple[tuple[bool, float], Slip]] = {}
    for column, solved in solutions(fixed, part):
        was, decimals = part.numbers(column, who="A rule"), part.table.facts(column).decimals
        now = solved if decimals is None else np.round(solved, decimals)
        usable = np.isfinite(now) & ~np.isnan(was) & (now != was)
        tried = np.where(usable, now, was)
        changed = Table.read(part.table.replace({column: tried}, keep={column: ~usable}))
        obeys = (fixed.confront(changed, schema=schema).signs >= 0).all(axis=1)
        spread = _spread(source, column, schema)
        for at in np.flatnonzero(usable & obeys):
            slip = Slip(row=int(broken[at]), column=column, was=float(was[at]), now=float(now[at]))
            rank = slip.what == "another number", abs(slip.now - slip.was) / spread
            if slip.row not in best or rank < best[slip.row][0]:
                best[slip.row] = rank, slip
    slips = tuple(best[row][1] for row in sorted(best))
    return _written(source, slips), slips


def _written(source: Table, slips: tuple[Slip, ...]) -> Any:
    new = {slip.column: np.zeros(source.n_rows) for slip in slips}
    stays = {column: np.ones(source.n_rows, dtype=bool) for column in new}
    for slip in slips:
        new[slip.column][slip.row], stays[slip.column][slip.row] = slip.now, False
    return source.replace(new, keep=stays) if new else source.native


def _spread(source: Table, column: Name, schema: Schema | None) -> float:
    numbers = View(source, schema).numbers(column, who="A rule")
    return float(np.nanstd(numbers)) or 1.0


def solutions(rules: Rules, view: View) -> Iterator[tuple[Name, Floats]]:
    """Give, for each equality and each of its columns, the number that makes both sides equal.

    It is NaN where another column of the equality is missing. Rules about columns that the table
    does not have are left out.
    """
    for rule in rules:
        if all(view.table.has(name) for name in rule.columns):
            for form in rule.forms:
                yield from _solve(form, view)


def _solve(form: Form, view: View) -> Iterator[tuple[Name, Floats]]:
    with np.errstate(all="ignore"):  # a division by 0 has no solution, and is not used
        if isinstance(form, Linear) and form.operator == "==":
            if not all(view.table.facts(name).numeric for name in form.coefficients):
                return
            terms = {
                name: a * view.numbers(name, who="A rule") for name, a in form.coefficients.items()
            }
            for name, a in form.coefficients.items():
                others = [terms[other] for other in terms if other != name]
                yield name, (form.constant - np.sum(others, axis=0)) / a
        if isinstance(form, Multiplicative) and form.operator == "==":
            if not all(view.table.facts(one.column).numeric for one in form.factors):
                return
            values = [
                (view.numbers(one.column, who="A rule") + one.offset) ** float(one.power)
                for one in form.factors
            ]
            for at, factor in enumerate(form.factors):
                others = np.prod([v for i, v in enumerate(values) if i != at], axis=0)
                yield factor.column, (form.constant / others) ** (1 / factor.power) - factor.offset
