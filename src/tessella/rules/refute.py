"""Proofs that no record obeys rules, whichever ways they are true in.

A conditional rule is true in several *ways*: its condition is not met, or its body holds. Rules are
refuted if every choice of ways is: one column has no value left, or linear rows have no solution
(see `refutation`). A way that plays no part in a proof need not be varied (backjumping).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np

from .._types import Floats, Name
from ..linear.rows import Row, as_fraction, equilibrate, least_sum, linked_rows
from . import expressions as tree
from .classify import forms_of
from .forms import Always, Context, Either, Form, Interval, Members, Missingness, linear_rows
from .rule import Rule

Way = tuple[Form, ...]  # forms that must all hold

STRICT = 1e-5  # what a strict row is taken to be off, on balanced scales, to propose its weight
MOST_WAYS = 64  # of one rule; one with more is left out of proofs
MOST_CHOICES = 400  # of ways, in one proof: a proof that takes more is given up


def refuted(rules: Sequence[Rule]) -> list[Rule]:
    """Return a least set of rules that, by proof, no record can obey together; none without one."""
    ways = [_ways(rule) for rule in rules]
    found = _Refutation(ways).search(range(len(rules)))
    for place in sorted(found, reverse=True):  # the deletion filter: see `refutation`
        if place in found:
            found = _Refutation(ways).search(sorted(found - {place})) or found
    return [rules[place] for place in sorted(found)]


def _ways(rule: Rule) -> list[Way]:
    """Return the ways in which a rule may be true; one that says nothing where they are many."""
    try:
        unmet = [] if rule.condition is None else _expanded(forms_of(tree.negated(rule.condition)))
        return [*unmet, *_expanded(rule.forms)]
    except OverflowError:
        return [()]


def _expanded(forms: Sequence[Form]) -> list[Way]:
    """Multiply out what may hold in several ways."""
    options = [
        [way for option in form.options for way in _expanded(option)]
        if isinstance(form, Either)
        else [(form,)]
        for form in forms
        if form != Always(True)
    ]
    if math.prod(map(len, options)) > MOST_WAYS:
        raise OverflowError
    return [tuple(form for way in chosen for form in way) for chosen in product(*options)]


class _Refutation:
    """A search for a proof that no record obeys rules, whichever ways they are true in."""

    def __init__(self, ways: Sequence[Sequence[Way]]) -> None:
        self.ways, self.choices = ways, MOST_CHOICES

    def search(self, places: Iterable[int]) -> set[int]:
        """Return the places of rules that no record can obey together; none if unproved."""
        order = sorted(places, key=lambda place: len(self.ways[place]))
        certain = [place for place in order if len(self.ways[place]) == 1]
        chosen = {place: self.ways[place][0] for place in certain}
        return clashing(chosen) or self._branch(order[len(certain) :], chosen)

    def _branch(self, places: Sequence[int], chosen: dict[int, Way]) -> set[int]:
        if not places:
            return set()
        place, involved = places[0], {places[0]}
        for way in self.ways[place]:
            self.choices -= 1
            if self.choices < 0:
                return set()
            now = {**chosen, place: way}
            found = clashing(now, place) or self._branch(places[1:], now)
            if not found or place not in found:  # unproved, or proved without this rule
                return found
            involved |= found
        return involved


def clashing(chosen: Mapping[int, Way], newest: int | None = None) -> set[int]:
    """Return the places of ways that, by proof, exclude each other; only where the newest is.

    Of a column that is missing nothing else can be broken.
    """
    every = [(place, form) for place, way in chosen.items() for form in way]
    gone = {form.column for _, form in every if isinstance(form, Missingness) and form.missing}
    by_column: dict[Name, list[tuple[int, Form]]] = {}
    for place, form in every:
        if form == Always(False):
            return {place}
        if hasattr(form, "column"):
            by_column.setdefault(form.column, []).append((place, form))
    for column, own in by_column.items():
        places = {place for place, _ in own}
        if (newest is None or newest in places) and Context(f for _, f in own).empty_in(column):
            return places
    rows = [row for place, form in every for row in rows_of_form(form, place)]
    rows = [row for row in rows if not gone.intersection(row.coefficients)]
    for names, linked in linked_rows(rows):
        asked = newest is None or any(row.place == newest for row in linked)
        if len(names) > 1 and asked and (found := refutation(linked)):
            return {linked[at].place for at in found}
    return set()


def rows_of_form(form: Form, place: int) -> list[Row]:
    """Return the linear rows of a form, with the place of its rule."""
    if isinstance(form, Members) and form.inside:
        values = [each for each in form.values if isinstance(each, int | float)]
        if len(values) == len(form.values):  # at least, it lies between these
            form = Interval(form.column, min(values), max(values))
    return [replace(row, place=place) for row in linear_rows(form, "")]


def refutation(rows: Sequence[Row]) -> list[int]:
    """Return the places of rows that no numbers obey together, least and proved, or none.

    Coefficients are the fractions that their doubles stand for: see `as_fraction`.

    Notes
    -----
    Rows a_i v == b_i, a_i v <= b_i, a_i v < b_i have no solution if and only if there are weights
    y, y_i >= 0 on inequalities, with sum_i y_i a_i = 0 and y b < 0, or y b = 0 and y_i > 0 on a
    strict row (Farkas; Motzkin for strict rows). A linear program in floats proposes the rows;
    their weights are then computed and checked in fractions. What is not proved so is not claimed,
    whatever the floats say.
    """
    found = _proved(rows, list(range(len(rows))))
    # The deletion filter; from the last, so that of rows that say the same the first are named.
    for place in reversed(found):
        if place in found:
            found = _proved(rows, [other for other in found if other != place]) or found
    return found


def _proved(rows: Sequence[Row], among: list[int]) -> list[int]:
    """Return the places of the rows of one proof among some rows, or none."""
    own = [rows[place] for place in among]
    columns = list(dict.fromkeys(name for row in own for name in row.coefficients))
    matrix = np.array([row.dense(columns) for row in own], dtype=np.float64)
    right = np.array([row.right for row in own], dtype=np.float64)
    if not columns or not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return []
    M, by_row, _ = equilibrate(matrix)
    c = right * by_row
    c /= np.abs(c).max() or 1.0
    free = np.array([row.equal for row in own])
    strict = np.array([row.strict for row in own], dtype=np.float64)
    slack = np.vstack([np.column_stack([M, c]), np.eye(M.shape[1] + 1)[-1:]])
    # Both ways of a proof at once; where their rows mix in no proof, each way on its own: the least
    # y b, and the most weight on strict rows with y b + s = 0, s >= 0.
    tries = ((M, c - STRICT * strict), (M, c), (slack, np.append(-strict, 0.0)))
    for attempt, (matrix, cost) in enumerate(tries):
        kind = np.append(free, False)[: len(cost)]
        weights = least_sum(matrix, cost, kind)[: len(own)]
        chosen = np.flatnonzero(np.abs(weights) > 1e-7 * np.abs(weights).max())
        if not len(chosen) and not attempt:
            return []
        if len(chosen) and _is_proof([own[i] for i in chosen], weights[chosen]):
            return [among[i] for i in chosen]
    return []


def _is_proof(rows: Sequence[Row], guess: Floats) -> bool:
    """Return whether weights near to some guess prove, in fractions, that rows have no solution."""
    weights = _null_vector(
        [[as_fraction(row.coefficients.get(name, 0)) for row in rows]
         for name in {name for row in rows for name in row.coefficients}],
        [Fraction(float(y / np.abs(guess).max())).limit_denominator(10**6) for y in guess],
    )  # fmt: skip
    total = sum((y * as_fraction(row.right) for y, row in zip(weights, rows)), Fraction(0))
    if any(y < 0 for y, row in zip(weights, rows) if not row.equal):
        return False
    if all(row.equal or not y for y, row in zip(weights, rows)):
        return total != 0
    return total < 0 or (not total and any(y and row.strict for y, row in zip(weights, rows)))


def _null_vector(matrix: list[list[Fraction]], guess: list[Fraction]) -> list[Fraction]:
    """Return y with matrix @ y = 0, equal to the guess wherever it can be chosen."""
    pivots: list[int] = []
    for j in range(len(guess)):
        at = next((i for i in range(len(pivots), len(matrix)) if matrix[i][j]), None)
        if at is None:
            continue
        top = len(pivots)
        matrix[top], matrix[at] = matrix[at], matrix[top]
        matrix[top] = [value / matrix[top][j] for value in matrix[top]]
        for i in range(len(matrix)):
            if i != top and matrix[i][j]:
                factor = matrix[i][j]
                matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[top])]
        pivots.append(j)
    y = [Fraction(0) if j in pivots else value for j, value in enumerate(guess)]
    for i, j in enumerate(pivots):
        y[j] = -sum((a * b for a, b in zip(matrix[i], y)), Fraction(0))
    return y
