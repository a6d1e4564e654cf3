"""What a release may state of its groups: k where the audit counts it, a measured chance elsewhere.

A step whose groups have at least k records is a *promise*, which the audit counts in the released
table. A step that only aims at k is *probabilistic*: what an intruder who knows it can do is
measured, and its k is never shown as one. So is a step that promises a posterior of at most 1/k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import risk
from .._types import Name
from ..diversity import DiversityRule
from ..exceptions import TessellaError
from ..frame import Table, View, group_ids
from ..masking import registry
from ..plan import Plan
from ..schema import Schema
from .result import Entry
from .roles import names_of_strata
from .steps import (
    FUZZY,
    OVERLAPPING,
    PREPARING,
    Step,
    is_restored,
    make_masker,
    promises_posterior,
)

ATTACKED = 5000  # records of a larger table that the chance of naming is measured on


@dataclass(frozen=True, kw_only=True)
class Promise:
    """In each block and stratum, at least k records share their released values."""

    k: int
    blocks: list[list[Name]]
    strata: tuple[Name, ...] = ()
    diversity: DiversityRule | None = None  # of the confidential values of those who are alike
    wildcard: tuple[tuple[Name, ...], ...] = ()  # blocks in which an empty cell equals every value

    @property
    def audited(self) -> dict[str, Any]:
        """The promise as `audit` takes it."""
        wanted = {} if self.diversity is None else self.diversity.options
        loose = {"wildcard": self.wildcard} if self.wildcard else {}
        shared = {"k": self.k, "blocks": self.blocks, "strata": [*self.strata] or None}
        return {**shared, **wanted, **loose}

    @property
    def columns(self) -> set[Name]:
        """The columns of all blocks."""
        return {name for block in self.blocks for name in block}

    @classmethod
    def of_plan(cls, plan: Plan) -> Promise:
        """Return what a plan promises."""
        blocks = [list(block.columns) for block in plan.blocks]
        return cls(k=plan.k, blocks=blocks, strata=plan.strata, diversity=plan.diversity)

    @classmethod
    def of_all_beside(cls, plan: Plan, promises: Iterable[Promise]) -> Promise | None:
        """Return what a plan promises, together with promises about columns that it leaves out.

        Keys that were masked before are strata or columns of the plan, which counts them. Others
        are blocks of their own: what is counted in the plan's columns says nothing about them.
        """
        own = cls.of_plan(plan)
        known = {*own.columns, *own.strata}
        return cls.of_all([own, *(one for one in promises if not one.columns <= known)])

    @classmethod
    def of_step(cls, step: Step, masker: Any, columns: list[Name], table: Table) -> Promise | None:
        """Return what a fitted masker promises; None where it does not, or rules moved records."""
        groups = registry.find(step.method).groups
        blocks = groups(step.options, columns) if groups else []
        if not blocks or getattr(masker, "rules", None) is not None:
            return None
        strata = names_of_strata(table, masker.strata)
        blocks = getattr(masker, "blocks_", blocks)
        loose = getattr(masker, "missing", "category") == "wildcard"
        return cls(
            k=masker.k, blocks=blocks, strata=strata,
            diversity=getattr(masker, "diversity_", None),
            wildcard=tuple(tuple(block) for block in blocks) if loose else (),
        )  # fmt: skip

    @classmethod
    def of_all(cls, promises: Iterable[Promise]) -> Promise | None:
        """Return what holds of several promises together: the least k, in common strata.

        The audit counts l and t among those who are alike in all blocks.
        """
        known = list(promises)
        if not known:
            return None
        strata = tuple(s for s in known[0].strata if all(s in one.strata for one in known))
        blocks = [block for one in known for block in one.blocks]
        wanted = next((one.diversity for one in known if one.diversity is not None), None)
        return cls(
            k=min(one.k for one in known), blocks=blocks, strata=strata, diversity=wanted,
            wildcard=tuple(block for one in known for block in one.wildcard),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NamingChance:
    """How many records an intruder names who knows a method that only aims at groups of k.

    Attributes
    ----------
    k : int
        The size that was aimed at.
    named : int or None
        The records to whose true original he gives a probability of more than 1/k, having the
        whole original and all parameters but the draw; None where that could not be measured.
    records : int
        The records that he attacked: all, or a sample.
    reason : str
        Why it was not measured.
    bounded : bool
        Whether the method promises that nobody is named with a probability above 1/k.
    columns : tuple of names
        The columns that it masked, by which the intruder names.
    """

    k: int
    named: int | None
    records: int
    reason: str = ""
    bounded: bool = False
    columns: tuple[Name, ...] = ()

    @property
    def public(self) -> str:
        """What may be published of it: no figure of risk."""
        if self.bounded:
            return (
                "In random order: who knows the original, the method and all but the random draw "
                f"names a released record by {', '.join(map(str, self.columns))} with a "
                f"probability of at most 1/{self.k}. Records need not be alike: this is not "
                f"{self.k} equal records."
            )
        return f"Probabilistic: groups aim at {self.k} records, which is not guaranteed."

    def __str__(self) -> str:
        if self.named is None:
            reason = f"How many records an intruder names is not measured: {self.reason}"
            return f"{self.public} {reason}"
        return (
            f"{self.public} An intruder who has the original and knows the method names "
            f"{self.named:,} of {self.records:,} records with a chance of more than 1/{self.k}."
        )


def naming_chance(
    table: Table, masked: Any, method: Any, columns: list[Name], k: int, *, bounded: bool = False,
    attacked: int = ATTACKED,
) -> Callable[[], NamingChance]:  # fmt: skip
    """Return how to measure a probabilistic step; `method` as `tessella.risk.attack` takes it."""
    kind: dict[str, Any] = {"bounded": bounded, "columns": tuple(columns)}
    known = method["columns"] if isinstance(method, Mapping) else columns  # what it can use

    def measure() -> NamingChance:
        n = table.n_rows
        sample = {} if n <= attacked else {"sample": attacked, "random_state": 0}
        try:
            found: Any = risk.attack(table, masked, method, known=known, strict=False, **sample)
        except TessellaError as error:
            return NamingChance(k=k, named=None, records=0, reason=str(error), **kind)
        named = int((found.belief > (1 + 1e-9) / k).sum())
        return NamingChance(k=k, named=named, records=len(found.belief), **kind)

    return measure


def disclosed_method(
    steps: Sequence[Step],
    table: Any,
    *,
    schema: Schema,
    rules: Any,
    planned: Any = None,
) -> Any:
    """Return what an intruder knows who knows the method, as `tessella.risk` takes it.

    `table` is the original, prepared alike; `planned` what a plan has masked, if one did. The
    result is a masker or a mapping, or None where numbers were masked in several steps, or nothing
    is known that helps. Steps that mask categories alone do not count.
    """
    masking = [step for step in steps if step.method not in PREPARING]
    numeric = [step for step in masking if registry.find(step.method).masks != "categories"]
    if len(numeric or masking) != 1:
        return None
    (step,) = numeric or masking
    if is_restored(step, rules):
        return None
    if planned is None:
        return make_masker(step, schema=schema, rules=rules, seed=None)
    # Another step may have drawn categories anew (PRAM): equal ones then show no group.
    return known_of_plan(planned, View(table, schema), schema, numbers_only=len(masking) > 1)


def known_of_plan(
    planned: Any, source: View, schema: Schema, *, numbers_only: bool = False
) -> dict[str, Any] | None:
    """Return what is known of the method to who has the original and the plan.

    The records of a group share all its released values, so that numbers and categories show it
    alike. Fuzzy centres are known by their numbers only, as are groups with `numbers_only`.
    """
    plan, facts = planned.plan, planned.masked.known
    numbers_only = numbers_only or facts is not None
    blocks = [
        [name for name in block.columns if not numbers_only or source.is_number(name)]
        for block in plan.blocks
    ]
    blocks = [block for block in blocks if block]
    if (overlap := planned.masked.overlap) is not None:
        columns = list(plan.blocks[0].columns)
        return {
            "method": OVERLAPPING, "schema": schema, "columns": columns, "strict": False,
            **overlap.known,
        }  # fmt: skip
    unknown = plan.is_drawn and facts is None  # drawn in the cells of a larger table
    if not blocks or unknown or not isinstance(plan.grouping, str):
        return None
    columns = [name for block in blocks for name in block]
    shared = {"schema": schema, "blocks": blocks, "columns": columns, "strict": False}
    if facts is not None:
        return {
            "method": FUZZY, **shared, **facts.public,
            "scale": {name: facts.units.get(name, 1.0) for name in columns},
            "logarithms": facts.logarithms, "strata": group_ids(facts.parts),
        }  # fmt: skip
    # He repeats the grouping, whatever a group then gets.
    strata = list(plan.strata) or None
    return {"method": "microaggregation", "k": plan.k, "means": False, **shared, "strata": strata}


def as_counted(
    entries: Iterable[Entry], promises: Mapping[int, Promise], counted: int | None
) -> tuple[Entry, ...]:
    """Return entries that show a k only where the audit counts it, elsewhere what it stands for."""
    out = []
    for place, entry in enumerate(entries):
        if promises_posterior(entry.method, entry.options):
            options, public = (
                {("posterior" if o == "k" else o): (f"at most 1/{v}" if o == "k" else v)
                 for o, v in given.items() if o != "order"}
                for given in (entry.options, entry.public)
            )  # fmt: skip
            out.append(replace(entry, options=options, public=public))
            continue
        kept = entry.method in ("protect", "suppress") or place in promises
        k = promises[place].k if place in promises else entry.options.get("k")
        name = "k" if k is None or (kept and counted is not None and k <= counted) else "aimed_size"
        stated = {} if k is None or place not in promises else {name: k}
        options, public = (
            {name if option == "k" else option: value for option, value in given.items()} | stated
            for given in (entry.options, entry.public)
        )
        out.append(replace(entry, options=options, public=public))
    return tuple(out)
