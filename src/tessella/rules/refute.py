"""Proofs that no record obeys rules, whichever ways they are true in.

A conditional rule is true in several *ways*: its condition is not met, or its body holds. Rules are
refuted if every choice of ways is: one column has no value left, or linear rows have no solution
(`tessella.linear.exact`). A way that plays no part in a proof need not be varied (backjumping).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from .._types import Name
from ..linear.exact import refutation
from ..linear.rows import Row, linked_rows
from . import expressions as tree
from .classify import forms_of
from .forms import Always, Context, Either, Form, Interval, Members, Missingness, linear_rows
from .rule import Rule

Way = tuple[Form, ...]  # forms that must all hold

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
