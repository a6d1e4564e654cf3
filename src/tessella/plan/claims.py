"""From rules to cases: what a part of the table must keep, as plain conjunctions.

A rule such as `if sex == "male": pregnancies == 0` is true in one of several ways: sex is another,
or pregnancies are 0. Each way is a *case*: *claims* that must all hold. Records are put apart by
the case that they are in, and a part then keeps its case, which is no longer conditional.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from typing import Any, cast

import numpy as np

from .._types import Name
from ..exceptions import PlanError
from ..linear.rows import Row
from ..rules import Rule, Rules, forms
from ..rules.classify import forms_of
from ..rules.expressions import (
    Arithmetic,
    ColumnRef,
    Compare,
    Constant,
    Flag,
    Literals,
    Lookup,
    Member,
    Missing,
    Node,
    Observed,
    Sum,
    negated,
)

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

    @cached_property
    def truth(self) -> Node:
        """The same as a truth that `tessella.rules.confront` judges."""
        return _truth(self.form, loose=self.tolerance > 0)

    @property
    def allowance(self) -> float:
        """How far comparisons of `truth` may be off; an interval has other units: see `rows_of`."""
        loose = isinstance(self.form, forms.Linear | forms.Governing | forms.Multiplicative)
        return self.tolerance if loose else 0.0


Case = tuple[Claim, ...]


def _truth(form: forms.Form, *, loose: bool = False) -> Node:
    """Write a form as a tree again."""
    match form:
        case forms.Interval(column, low, high, open_low, open_high):
            signs = tuple(
                "<" if is_open and not loose else "<=" for is_open in (open_low, open_high)
            )
            if low == high:
                return _compare(ColumnRef(column), "==", Constant(low))
            if low == -np.inf:
                return _compare(ColumnRef(column), signs[1], Constant(high))
            if high == np.inf:
                return _compare(Constant(low), signs[0], ColumnRef(column))
            sides = (Constant(low), ColumnRef(column), Constant(high))
            return Compare(sides, cast(Any, signs))
        case forms.Members(column, values, inside):
            return Member((ColumnRef(column),), Literals(tuple((v,) for v in values)), inside)
        case forms.Tuples(columns, rows, inside, path):
            among: Literals | Lookup = (
                Literals(rows) if path is None else Lookup(path, cast(Any, rows))
            )
            return Member(tuple(map(ColumnRef, columns)), among, inside)
        case forms.Governing(lower, upper, strict):
            return _compare(ColumnRef(lower), "<" if strict else "<=", ColumnRef(upper))
        case forms.Linear(coefficients, operator, constant):
            if operator == "==" and not constant and sorted(coefficients.values()) == [-1.0, 1.0]:
                return Compare(tuple(map(ColumnRef, coefficients)), ("==",))  # texts, dates too
            terms = [Arithmetic("*", Constant(v), ColumnRef(n)) for n, v in coefficients.items()]
            total = Sum(tuple(terms), (1,) * len(terms))
            return _compare(total, operator, Constant(constant))
        case forms.Multiplicative(factors, operator, constant):
            left: list[Node] = [Constant(1)]
            right: list[Node] = [Constant(constant)]
            for factor in factors:
                base: Node = ColumnRef(factor.column)
                if factor.offset:
                    base = Sum((base, Constant(factor.offset)), (1, 1))
                side = left if factor.power > 0 else right
                side.append(Arithmetic("**", base, Constant(abs(factor.power))))
            return _compare(reduce(_times, left), operator, reduce(_times, right))
        case forms.YesNo(column, value):
            return _compare(ColumnRef(column), "==", Flag(value))
        case forms.Missingness(column, missing):
            return Missing(column, missing)
        case forms.ObservedValues(columns, inside):
            return Observed(columns, inside=inside)
        case forms.General() | forms.Unfixed():
            return Rules.parse([form.text])[0].body
    raise TypeError(f"no truth for {form!r}")


def _compare(left: Node, operator: str, right: Node) -> Node:
    return Compare((left, right), cast(Any, (operator,)))


def _times(left: Node, right: Node) -> Node:
    return Arithmetic("*", left, right)


def cases_of(rule: Rule) -> list[Case]:
    """Return the ways in which a rule may be true; one, without claims, where it always is."""
    body = _expand(rule, rule.forms, rule.tolerance or 0.0)
    if rule.condition is None:
        return body
    unmet = _expand(rule, forms_of(negated(rule.condition)), 0.0)
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
