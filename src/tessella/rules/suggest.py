"""Suggestions of rules that nearly all records of a table obey, each tested against chance.

Nobody has to accept one: a suggestion says how many records obey, how many do not, and how many
rules that good chance would make in a table whose columns have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from .._clock import waiting
from .._parameters import SEED, Number, parameters
from .._types import Name
from .._wording import align, counted
from ..frame import View
from ..schema import Schema
from .collection import Rules
from .confront import confront, judge
from .domain import Operands
from .finding import (
    Proposal,
    Sample,
    find_bounds,
    find_constant,
    find_implications,
    find_orderings,
    find_products,
    find_sums,
    find_values,
)
from .finding.chance import Demands
from .finding.orders import implied_orderings
from .finding.products import find_multiples
from .finding.sums import find_copies
from .rule import Rule

# The most convincing first: no tendency makes an equality hold to the last digit, and what single
# columns hold is the least surprising.
KINDS = (
    "sum", "difference", "product", "ratio", "equality", "constant in unit", "implication",
    "ordering", "bound", "values",
)  # fmt: skip
TESTED = 5  # families that share the rate: sums, products, orderings, implications, units


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A rule that was found in a table.

    Attributes
    ----------
    rule : Rule
        The rule; its label says how often it holds.
    kind : str
        "sum", "difference", "product", "ratio", "equality", "constant in unit", "implication",
        "ordering", "bound" or "values".
    records : int
        The records that it can be judged on: all that it names is known, and the condition is met.
    breaks : int
        How many of these break it.
    chance : float or None
        The expected number of rules of its family that would hold as well in a table of
        independent columns; None for bounds and values, which describe one column.
    why : str
        What it says, in words.
    """

    rule: Rule
    kind: str
    records: int
    breaks: int
    chance: float | None
    why: str

    @property
    def text(self) -> str:
        """The rule as one line."""
        return self.rule.text

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns that the rule names."""
        return self.rule.columns

    @property
    def holds(self) -> float:
        """The share of the records that it can be judged on which obey it."""
        return 1.0 - self.breaks / self.records if self.records else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "rule": self.text,
            "kind": self.kind,
            "columns": [str(name) for name in self.columns],
            "holds": self.holds,
            "records": self.records,
            "breaks": self.breaks,
            "chance": self.chance,
            "why": self.why,
        }

    def __str__(self) -> str:
        return f"{self.text}  # {_how_often(self.records, self.breaks)}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Suggestions(Sequence[Suggestion]):
    """Rules that were found in a table, the most convincing first.

    Attributes
    ----------
    suggestions : tuple of Suggestion
        The rules.
    n_records : int
        The number of records of the table.
    false_rate : float
        The expected number of false ones in a table of independent columns, at most.

    Examples
    --------
    >>> from tessella import Rules
    >>> from tessella.datasets import make_business_survey
    >>> found = Rules.suggest(make_business_survey(1000, inconsistent=0.05, random_state=1))
    >>> print(found[0])
    costs == wages + materials + other_costs  # holds in 97.7 %, 23 of 1,000 break it
    >>> rules = found[:3].rules()
    >>> [rule.text for rule in rules][1:]
    ['profit == turnover - costs', 'wages == hours * hourly_rate']
    """

    suggestions: tuple[Suggestion, ...]
    n_records: int
    false_rate: float

    def rules(self) -> Rules:
        """Return the rules, called R1, R2, ... by place; their labels say how often they hold."""
        return Rules(
            replace(one.rule, name=f"R{at}") for at, one in enumerate(self.suggestions, start=1)
        )

    def of_kind(self, *kinds: str) -> Suggestions:
        """Return the suggestions of some kinds."""
        return self._some(one for one in self if one.kind in kinds)

    def to_text(self) -> str:
        """Write a file of rules, with a comment how often each holds."""
        return self.rules().to_text()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "records": self.n_records,
            "false_rate": self.false_rate,
            "suggestions": [one.to_dict() for one in self],
        }

    def _some(self, chosen: Iterable[Suggestion]) -> Suggestions:
        return replace(self, suggestions=tuple(chosen))

    @overload
    def __getitem__(self, at: int) -> Suggestion: ...
    @overload
    def __getitem__(self, at: slice) -> Suggestions: ...
    def __getitem__(self, at: int | slice) -> Suggestion | Suggestions:
        if isinstance(at, slice):
            return self._some(self.suggestions[at])
        return self.suggestions[at]

    def __iter__(self) -> Iterator[Suggestion]:
        return iter(self.suggestions)

    def __len__(self) -> int:
        return len(self.suggestions)

    def __str__(self) -> str:
        head = f"{counted(self.n_records, 'record')}, {counted(len(self), 'suggested rule')}"
        if not self.suggestions:
            return f"{head}."
        rows = [["kind", "holds", "breaks", "of", "chance", "rule"]]
        for one in self:
            chance = "" if one.chance is None else _small(one.chance)
            counts = [f"{one.breaks:,}", f"{one.records:,}"]
            rows.append([one.kind, _percent(one.holds), *counts, chance, one.text])
        return "\n".join([f"{head}:", *align(rows)])

    __repr__ = __str__


@parameters(
    holds=[Number(above=0.5, most=1)],
    false_rate=[Number(above=0, below=1)],
    random_state=[SEED],
)
def suggest(
    table: Any,
    *,
    schema: Schema | None = None,
    known: Rules | None = None,
    holds: float = 0.95,
    false_rate: float = 0.01,
    random_state: int | None = 0,
) -> Suggestions:
    """Find rules in a table: see `Rules.suggest`.

    False is an equality, an ordering, an implication or a column that is constant in units, if it
    is suggested although the columns were drawn independently of each other. Bounds and sets of
    values describe one column and are not tested: they say what nearly all records hold.
    """
    schema = Schema.guess(table) if schema is None else schema
    view = View.of(table, schema)
    seed = int(np.random.default_rng(random_state).integers(2**31))
    demands = Demands(holds=float(holds), chance=float(false_rate) / TESTED)
    proposals = list(_proposals(Sample(view, seed), demands, waiting()))
    texts = list({proposal.text: proposal for proposal in proposals})
    rules = dict(zip(texts, Rules.parse(texts))) if texts else {}
    found = _counted(proposals, rules, view, demands)
    if known is not None:
        found = [one for one in found if not _is_known(one.rule, Rules.of(known))]
    return Suggestions(suggestions=tuple(found), n_records=view.n_rows, false_rate=false_rate)


def _proposals(
    sample: Sample, demands: Demands, progress: Callable[[int, int, str], object] | None
) -> Iterator[Proposal]:
    """Run all finders; what equalities say is not said again by orderings and implications."""
    steps = ("sums", "products", "orderings", "implications", "bounds", "counting")

    def tell(step: str) -> None:
        if progress is not None:
            progress(steps.index(step), len(steps), f"looking for {step}")

    tell("sums")
    sums, equalities = find_sums(sample, demands)
    yield from sums
    tell("products")
    proposals, products = find_products(sample, demands)
    yield from proposals
    copies = find_copies(sample, demands)
    yield from copies
    equal = {frozenset(one.columns) for one in sums if len(one.columns) == 2}
    multiples = find_multiples(sample, demands, equal)
    yield from multiples
    tell("orderings")
    implied = implied_orderings(sample, equalities, products)
    implied |= {(one.columns[0], one.columns[1]) for one in [*multiples, *copies]}
    implied |= {(one.columns[1], one.columns[0]) for one in copies}
    ordered = find_orderings(sample, demands, equalities, products, implied)
    yield from ordered
    tell("implications")
    implied |= {(one.columns[0], one.columns[1]) for one in ordered}
    results = {one.result.name for one in products}
    constant = find_constant(sample, demands)
    yield from constant
    names = {one.columns[0] for one in constant}
    yield from find_implications(sample, demands, results, implied, names)
    tell("bounds")
    yield from find_bounds(sample, demands)
    yield from find_values(sample, demands)
    tell("counting")


def _counted(
    proposals: Sequence[Proposal], rules: dict[str, Rule], view: View, demands: Demands
) -> list[Suggestion]:
    """Count all records, as `Rules.confront` does, and keep what holds in enough of them."""
    if not rules:
        return []
    named = [replace(rule, name=f"R{at}") for at, rule in enumerate(rules.values())]
    result = confront(Rules(named), view, schema=view.schema)  # type: ignore[arg-type]
    operands = Operands(view, view.schema)  # type: ignore[arg-type]
    places = {text: at for at, text in enumerate(rules)}
    found: list[tuple[tuple[Any, ...], Suggestion]] = []
    for proposal in {each.text: each for each in proposals}.values():
        rule, at = rules[proposal.text], places[proposal.text]
        judged = result.signs[:, at] != 0
        if rule.condition is not None:
            judged &= judge(rule.condition, operands) > 0
        records, breaks = int(judged.sum()), len(result.rows[at])
        exact = proposal.kind in KINDS[: KINDS.index("equality") + 1]
        least = demands.holds if exact else demands.strict
        if not records or 1 - breaks / records < least:
            continue
        labelled = replace(rule, label=_how_often(records, breaks))
        one = Suggestion(
            rule=labelled, kind=proposal.kind, records=records, breaks=breaks,
            chance=proposal.chance, why=proposal.why,
        )  # fmt: skip
        # A total stays a rule though slips break it; an inequality with exceptions may be none.
        doubtful = not exact and breaks > 0
        found.append(((doubtful, KINDS.index(one.kind), proposal.rank, one.text), one))
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _is_known(rule: Rule, known: Rules) -> bool:
    """Return whether a rule is one of some rules, or follows from them."""
    related = known.for_columns(rule.columns)
    named = [replace(one, name=f"K{at}") for at, one in enumerate(related)]
    findings = Rules([*named, replace(rule, name="S", label="")]).check() if named else []
    return any(
        finding.rules[0] == "S" or (finding.kind == "duplicate" and "S" in finding.rules)
        for finding in findings
        if finding.kind in ("duplicate", "redundant")
    )


def _percent(share: float) -> str:
    """Write a share so that only what always holds is 100 %."""
    if share == 1:
        return "100 %"
    return f"{min(100 * share, 99.9):.1f} %" if share < 0.9995 else f"{100 * share:.4f} %"


def _small(chance: float) -> str:
    return "<1e-99" if chance < 1e-99 else f"{chance:.0e}"


def _how_often(records: int, breaks: int) -> str:
    if not breaks:
        return f"holds in all {records:,}"
    return f"holds in {_percent(1 - breaks / records)}, {breaks:,} of {records:,} break it"
