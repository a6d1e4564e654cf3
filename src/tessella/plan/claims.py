"""From rules to cases: what a part of the table must keep, as plain conjunctions.

A rule such as `if sex == "male": pregnancies == 0` is true in one of several ways: sex is another,
or pregnancies are 0. Each way is a *case*: *claims* that must all hold. Records are put apart by
the case that they are in, and a part then keeps its case, which is no longer conditional.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from .._types import Name
from ..exceptions import PlanError
from ..linear.rows import Row
from ..rules import Rule, forms
from ..rules.expressions import negated

__all__ = ["Case", "Claim", "cases_of", "rows_of"]


LARGEST = 64  # cases of one rule


@dataclass(frozen=True, eq=False)
class Claim:
    """A form of a rule that must hold, and how far numbers may be off."""

    rule: str
    form: forms.Form
    tolerance: float = 0.0

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns that it speaks of."""
        form = self.form
        match form:
            case forms.Linear():
                return tuple(form.coefficients)
            case forms.Governing():
                return form.lower, form.upper
            case forms.Multiplicative():
                return tuple(dict.fromkeys(factor.column for factor in form.factors))
            case forms.Tuples() | forms.ObservedValues() | forms.General() | forms.Unfixed():
                return form.columns
            case forms.Interval() | forms.Members() | forms.YesNo() | forms.Missingness():
                return (form.column,)
        return ()


Case = tuple[Claim, ...]


def cases_of(rule: Rule) -> list[Case]:
    """Return the ways in which a rule may be true; one, without claims, where it always is."""
    body = _expand(rule, rule.forms, rule.tolerance or 0.0)
    if rule.condition is None:
        return body
    unmet = _expand(rule, forms.forms_of(negated(rule.condition)), 0.0)
    return [*unmet, *body]


def _expand(rule: Rule, all_of: Iterable[forms.Form], tolerance: float) -> list[Case]:
    """Multiply out: claims that must all hold, in each of several ways."""
    ways: list[list[Case]] = [list(_ways(rule, form, tolerance)) for form in all_of]
    count = int(np.prod([len(options) for options in ways]))
    if count > LARGEST:
        raise PlanError(
            f"{rule.name} ({rule.text}) can be true in {count} ways. That is too many to put "
            "records apart by: write it as several simpler rules."
        )
    return [tuple(claim for case in chosen for claim in case) for chosen in product(*ways)]


def _ways(rule: Rule, form: forms.Form, tolerance: float) -> Iterator[Case]:
    match form:
        case forms.Either(options):
            for option in options:
                yield from _expand(rule, option, tolerance)
        case forms.Members(column, (value,), False) if isinstance(value, int | float):
            yield (Claim(rule.name, forms.Interval(column, high=value, open_high=True)),)
            yield (Claim(rule.name, forms.Interval(column, low=value, open_low=True)),)
        case forms.Always(True):
            yield ()
        case forms.Always(False):
            return
        case _:
            yield (Claim(rule.name, form, tolerance),)


def rows_of(claim: Claim) -> list[Row]:
    """Return what a claim says in linear rows; none if it is of another shape."""
    return forms.linear_rows(claim.form, claim.rule, claim.tolerance)
