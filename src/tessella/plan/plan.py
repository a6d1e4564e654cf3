"""What will be done, and why: a plan explains itself before any value is changed.

A rule such as `if sex == "male": pregnancies == 0` is true in one of several ways: sex is another,
or pregnancies are 0. Each way is a *case*: *claims* that must all hold. Records are put apart by
the case that they are in, and a part then keeps its case, which is no longer conditional.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import product
from typing import Any, cast

import numpy as np

from .._notebook import Display, Displayed, Figure, Section
from .._types import Name
from ..diversity import DiversityRule
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
    Text,
    negated,
)

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

    @property
    def product(self) -> forms.Multiplicative | None:
        """The form, if it is a product that equals another."""
        form = self.form
        return form if isinstance(form, forms.Multiplicative) and form.operator == "==" else None

    @property
    def is_equation(self) -> bool:
        """Whether it says that columns give another exactly: a sum or a product."""
        form = self.form
        linear = isinstance(form, forms.Linear) and form.operator == "==" and not self.tolerance
        return linear or self.product is not None

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
        case forms.Members(column, (str(value),), inside):  # of texts, and of dates
            return _compare(ColumnRef(column), "==" if inside else "!=", Text(value))
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
            times = partial(Arithmetic, "*")
            return _compare(reduce(times, left), operator, reduce(times, right))
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


MATCHED = "matched mean"
OPERATORS = {
    "mean": "the mean of the group",
    MATCHED: "the mean of the group, moved to its rank in the distribution of the column: "
    "its quantiles, its spread and its mean stay",
    "geometric mean": "the geometric mean of the group, the mean of logarithms",
    "interpolated median": "the median of the group (the mean of two middle values)",
    "median": "the lower median of the group, a value of one of its records",
    "medoid": "the values of the group's middle record, for all these columns together",
    "member": "the category of one record of the group, the same for all its categories, chosen so "
    "that categories and pairs of columns keep their counts",
    "project": "the point nearest to the mean of the group that keeps all rules, or a record's",
}


# What is another with fuzzy groups: kappa is the degree to the power m, as a share of all.
FUZZY_OPERATORS = {
    "mean": "the centre of the cluster, the mean of the records with weights kappa",
    "geometric mean": "the centre of the cluster in logarithms, where products are linear",
    "median": "the lower median of the records with weights kappa, a value of one of them",
    "medoid": "the values of the record nearest to the centre, for all these columns together",
    "member": "the category of a record that is drawn by kappa, the same for all its categories",
    "project": "the point nearest to the centre that keeps all rules, or a record's",
}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How the value of a column is found, and what led to it."""

    column: Name
    operator: str
    whole: bool
    because: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Columns that are grouped together, with the rules among them.

    `cases` has, for each rule that can be true in several ways, these ways: records are put
    apart by them. `always` are the claims of all other rules.
    """

    columns: tuple[Name, ...]
    choices: tuple[Choice, ...]
    rules: tuple[str, ...]
    always: Case
    cases: dict[str, list[Case]] = field(default_factory=dict)
    signs: tuple[tuple[Name, float], ...] = ()  # factors whose sign puts records apart

    @classmethod
    def of_numbers(cls, columns: Sequence[Name], operator: str, whole: Sequence[bool]) -> Block:
        """Return a block of numbers without rules."""
        choices = [
            Choice(column=name, operator=operator, whole=own, because="no rule requires another")
            for name, own in zip(columns, whole)
        ]
        return cls(columns=tuple(columns), choices=tuple(choices), rules=(), always=())

    def choice(self, column: Name) -> Choice:
        """Return what is done with a column."""
        return next(choice for choice in self.choices if choice.column == column)

    def with_operator(self, *operators: str) -> list[Name]:
        """List the columns whose value is found by one of these operators."""
        return [choice.column for choice in self.choices if choice.operator in operators]


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan(Displayed):
    """Strata, blocks, and the operator of each column: what `protect` will do.

    Attributes
    ----------
    k : int
        The least number of units that share their released values, in every part.
    unit : name or None
        The column that names the units, which is not released; None where a record is one.
    blocks : tuple of Block
        Columns that are grouped together.
    strata : tuple of names
        Columns within whose values records are grouped, and that are released as they are.
    untouched : tuple of names
        All columns that are released as they are.
    rules : Rules
        The rules, fixed on the original table.
    fit, edit, small, on_missing, distance, scale, grouping, options, aggregate
        As given to `make_plan`.
    diversity : DiversityRule or None
        What the confidential values of every group must be besides.
    """

    k: int
    blocks: tuple[Block, ...]
    strata: tuple[Name, ...]
    untouched: tuple[Name, ...]
    rules: Rules
    fit: str
    edit: str
    small: str
    on_missing: str
    distance: str
    scale: Any
    grouping: Any
    options: dict[str, Any]
    notes: tuple[str, ...] = ()
    unit: Name | None = None
    aggregate: str = "auto"
    diversity: DiversityRule | None = None

    @property
    def is_fuzzy(self) -> bool:
        """Whether records draw the centre of a fuzzy cluster."""
        return isinstance(self.grouping, str) and self.grouping == "fuzzy"

    @property
    def is_overlapping(self) -> bool:
        """Whether records draw one of k overlapping groups: a posterior is promised, not k."""
        return isinstance(self.grouping, str) and self.grouping == "overlapping"

    @property
    def is_drawn(self) -> bool:
        """Whether the values that a record gets are drawn at random."""
        return self.is_fuzzy or self.is_overlapping

    @property
    def keeps_k(self) -> bool:
        """Whether every group has at least k records; a fuzzy one may only aim at it."""
        if self.is_overlapping:
            return False
        return not self.is_fuzzy or bool(self.options.get("at_least_k", True))

    def with_means(self, columns: Collection[Name]) -> Plan:
        """Return the plan with plain means where these columns would get matched ones."""
        blocks = [
            replace(block, choices=tuple(
                replace(choice, operator="mean")
                if choice.operator == MATCHED and choice.column in columns else choice
                for choice in block.choices
            ))
            for block in self.blocks
        ]  # fmt: skip
        return replace(self, blocks=tuple(blocks))

    def explain(self) -> str:
        """Explain in words which rule led to which choice."""
        where = "In each block, every" if len(self.blocks) > 1 else "Every"
        grouping = self.grouping
        named = grouping if isinstance(grouping, str) else type(grouping).__name__
        respondents = "" if self.unit is None else f" units (distinct {self.unit})"
        if self.is_fuzzy:
            named = "a draw from fuzzy clusters, whose centres keep the rules"
        if self.keeps_k:
            head = (
                f"{where} released record stands for at least {self.k}{respondents}; groups are "
                f"made by {named}."
            )
        elif self.is_overlapping:
            head = (
                f"In random order nobody is named with a probability above 1/{self.k}: groups of "
                f"{self.k}{respondents} overlap, every record is in {self.k} of them, and draws "
                "one's values."
            )
        else:
            head = f"Probabilistic: groups aim at {self.k} records; they are made by {named}."
        lines = [head]
        if self.strata:
            named = ", ".join(map(str, self.strata))
            lines.append(f"Records with different {named} never share a group.")
        if self.diversity is not None:
            lines.append(
                f"In every group, {self.diversity}, which are released as they are; missing "
                "values do not count."
            )
        for number, block in enumerate(self.blocks, start=1):
            head = f"Block {number}: " if len(self.blocks) > 1 else ""
            together = "are grouped together" if len(block.columns) > 1 else "is grouped alone"
            lines.append(f"{head}{', '.join(map(str, block.columns))} {together}.")
            for name, cases in block.cases.items():
                lines.append(
                    f"  {name} ({self.rules[name].text}) can be true in {len(cases)} ways; records "
                    "are separated by the way they satisfy it, and each part is masked separately."
                )
            if block.signs:
                named = ", ".join(dict.fromkeys(str(column) for column, _ in block.signs))
                lines.append(
                    f"  Records are separated by the signs of {named}: a product is kept by "
                    "geometric means of positive values, and zeros stay zeros."
                )
            alike: dict[str, list[str]] = {}
            for choice in block.choices:
                whole = ", whole" if choice.whole else ""
                words = OPERATORS | (FUZZY_OPERATORS if self.is_fuzzy else {})
                line = f"{words[choice.operator]}{whole}; {choice.because}."
                alike.setdefault(line, []).append(str(choice.column))
            lines += [f"  {', '.join(columns)}: {line}" for line, columns in alike.items()]
        if self.untouched:
            named = ", ".join(map(str, self.untouched))
            lines.append(f"Released as they are: {named}.")
        lines += self.notes
        return "\n".join(lines)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the values of the original table that rules look up behind when saved."""
        return self.__dict__ | {"rules": self.rules.unfixed()}

    def _display(self) -> Display:
        head, *lines = self.explain().splitlines()
        return Display(
            title="Plan",
            verdict=[head],
            figures=[
                Figure("k", f"{self.k:,}", "records" if self.unit is None else "units"),
                Figure("Blocks", f"{len(self.blocks):,}", "groups of columns masked together"),
                Figure("Rules", f"{len(self.rules):,}"),
            ],
            sections=[Section(lines=lines)],
        )

    def __str__(self) -> str:
        return self.explain()
