"""Fuzzy microaggregation: every record gets a centre that is drawn, not computed.

An intruder who knows the method knows that records go to near centres. Here a record goes to a
centre at random, with its memberships as probabilities, which leaves him guessing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .._parameters import FLAG, OneOf
from .._types import Floats, Integers
from ..exceptions import BadTableError
from ..frame import Table
from ..fuzzy.drawing import Drawing
from ..fuzzy.field import as_system
from ..linear import LinearSystem
from ..plan import Block, Plan, make_plan
from ..plan.plan import Claim
from ..rules import Rules, forms
from .base import MaskedColumns, renamed
from .engine import (
    MaskedBlocks,
    apply_plan,
    mask_keeping_rules,
    read_blocks,
    refuse_broken,
    write_blocks,
)
from .fuzzy_groups import PARAMETERS, FuzzyOptions, FuzzyPart
from .microaggregation import GroupMasker
from .registry import Method, Options, Setting, Tuned, register, shrunk
from .selection import named_or_given, schema_of_numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A table that was read, and the plan by which it is masked."""

    read: MaskedColumns
    options: FuzzyOptions
    plan: Plan
    systems: list[LinearSystem | None]  # of the blocks, in the table's units

    @property
    def k(self) -> int:
        """The size of groups that is aimed at."""
        return self.plan.k

    @cached_property
    def parts(self) -> list[FuzzyPart]:
        """The parts of the table that are clustered on their own."""
        chosen = self.read.chosen
        blocks = read_blocks(self.plan, self.read.view, chosen.strata, chosen.weights)
        return [part for block in blocks for _, part in block.in_order(self.options)]

    def loss(self, lost: float) -> float:
        """Turn a sum of squares on the scale of distances into per cent of all squares."""
        squares = (self.read.scale.apply(self.read.original.values) ** 2).sum(axis=1)
        total = float(self.read.chosen.weights @ squares)
        return 100 * lost / total if total > 0 else 0.0

    def per_record(self, total: float) -> float:
        """Turn a sum over records and blocks into a mean."""
        return total / (self.read.view.n_rows * len(self.read.chosen.blocks))

    def confirm(self, released: Floats) -> None:
        """Refuse what breaks a system once it is written: float32 has too few digits."""
        missing = self.read.original.missing
        for block, system in zip(self.read.chosen.blocks, self.systems):
            if system is None:
                continue
            places = self.read.chosen.places(block)
            rows, right = np.vstack([system.A, system.G]), np.concatenate([system.b, system.h])
            broken = system.violation(np.nan_to_num(released[:, places])).relative > 1e-9
            broken &= missing[:, places].astype(int) @ (rows != 0).T.astype(int) == 0
            if broken.any() and len(right):
                raise BadTableError(
                    "The constraints do not hold in the released table to 1e-9: its dtypes have "
                    "too few digits. Convert the columns to float64."
                )


BY_RECORD = ("entropy", "naming_chance", "distance_to_k")


@dataclass(frozen=True, kw_only=True, eq=False)
class Uncertainty:
    """What the holder must know of a draw, block by block.

    Attributes
    ----------
    k : int
        What sizes are measured against.
    expected_sizes, realised_sizes : ndarray
        Records at each centre: before the draw, on average; and after it.
    unused : int
        Centres that nobody got.
    entropy : ndarray of shape (n,)
        Bits: how uncertain the centre of each record is. 0 is certain; h bits are like 2^h centres
        at equal chances.
    naming_chance : ndarray of shape (n,)
        The chance that an intruder who knows all original records, the centres and the
        parameters, but not the draw, names the record rightly from its released values.
    distance_to_k : ndarray of shape (n,)
        Probabilistic k-anonymity: the total variation distance from the candidates for a released
        record to the nearest distribution over candidates in which nobody has more than 1/k (a
        mixture of uniform choices among k records), on average over where the record may stand.
        0 is as good as k records that cannot be told apart; it is below 1.
    """

    k: int
    expected_sizes: Floats
    realised_sizes: Integers
    unused: int
    entropy: Floats
    naming_chance: Floats
    distance_to_k: Floats

    @property
    def share_protected(self) -> float:
        """The share of records that an intruder names with a chance of at most 1/k."""
        return float((self.naming_chance <= (1 + 1e-9) / self.k).mean())

    @classmethod
    def of(cls, drawings: list[tuple[Integers, Drawing]], labels: Integers, k: int) -> Uncertainty:
        """Put the parts of a block together; each drawing comes with its rows."""
        by_record = {name: np.empty(len(labels)) for name in BY_RECORD}
        for rows, drawing in drawings:
            for name, values in by_record.items():
                values[rows] = getattr(drawing, name)
        sizes = np.bincount(labels, minlength=sum(len(d.centres) for _, d in drawings))
        return cls(
            k=k,
            expected_sizes=np.concatenate([d.expected_sizes for _, d in drawings]),
            realised_sizes=sizes,
            unused=int((sizes == 0).sum()),
            **by_record,
        )

    def __str__(self) -> str:
        sizes = self.realised_sizes[self.realised_sizes > 0]
        return "\n".join(
            [
                f"{len(self.realised_sizes)} centres, {self.unused} of them drawn by nobody",
                f"records at a centre: {sizes.min()} to {sizes.max()}, expected "
                f"{self.expected_sizes.min():.2f} to {self.expected_sizes.max():.2f}",
                f"uncertainty of a record's centre: {self.entropy.mean():.3f} bits on average, "
                f"{self.entropy.min():.3f} at least",
                f"chance that a knowing intruder names a record: {self.naming_chance.mean():.3f} "
                f"on average, {self.naming_chance.max():.3f} at most; at most 1/{self.k} for "
                f"{self.share_protected:.1%} of the records",
                f"distance to probabilistic {self.k}-anonymity: {self.distance_to_k.mean():.3f} on "
                f"average, {self.distance_to_k.max():.3f} at most",
            ]
        )


@renamed(missing="on_missing", constraints="rules")
@dataclass(eq=False, repr=False)
class FuzzyMicroaggregation(GroupMasker):
    """Replace each record's numbers by those of a centre that is drawn by its memberships.

    Parameters
    ----------
    k : int or None, default 3
        The intended size of groups: there are n // k centres. None if `c` says how many.
        **A drawn group may be smaller**, unless `at_least_k` is set.
    m1, m2 : float, default 1.1 and 1.2
        The fuzziness of the centres and that of the draw. The larger m1, the more all centres move
        to the mean; the larger m2, the more any centre may be drawn. 1 is crisp.
    lambda1, lambda2 : float, optional
        Give both to use fuzzy c-means with entropy instead; on the chosen scale, the smaller
        the fuzzier.
    c : int, optional
        The number of centres, distributed over strata by their size.
    at_least_k : bool, default False
        Guarantee k: centres are drawn for all records together, from the same product of
        memberships *given that* every centre gets from k to 2k - 1 records, each at one of its
        24 nearest centres. `c`, `tol`, `max_iter` and `neglect` are not used in this case.
    blocks, scale, on_missing, columns, strata, weights, schema, round_integers
        As for `Microaggregation`.
    rules : Rules, LinearSystem or pair (A, b), optional
        What every released record obeys, even where the input does not. Rules of any kind, as
        `protect` keeps them: linear ones and products by constrained clustering, conditional ones
        in parts, whole numbers exactly. A system, or A v = b over the masked columns in order, is
        kept between real numbers: columns of whole numbers that take part are released as float64.
    tol : float, default 1e-4
        The search stops when no centre moves farther than this share of the table's spread, or the
        objective falls by less than 1e-4 of itself.
    max_iter : int, default 1000
        The largest number of sweeps.
    neglect : float, default 1e-12
        The share of a record's membership that may be left out by not visiting far centres.
    random_state : int, RandomState or None, default None
        None draws from the operating system's entropy, which cannot be repeated. A seed makes the
        release repeatable, and must then be kept as secret as the table.

    Attributes
    ----------
    labels_ : ndarray of shape (n,) or (n, n_blocks)
        The centre drawn.
    uncertainty_ : list of Uncertainty
        What is known about the draw, for each block; can be printed.
    expected_loss_ : float
        Information loss in per cent, as expected before the draw.
    loss_, column_loss_, joint_k_, joint_group_sizes_, blocks_, untouched_
        As for `Microaggregation`; `joint_k_` is the least number of records that share all their
        released values, and without `at_least_k` may be 1.

    Notes
    -----
    Algorithm 1 of Torra (2020): find c centres by fuzzy c-means with m1; compute memberships to
    them with m2; give each record a centre drawn with these as probabilities. For large m2 all
    memberships are 1/c and the expected size of every group is n/c = k.

    References
    ----------
    V. Torra (2017). Fuzzy microaggregation for the transparency principle. J. Applied Logic 23.
    V. Torra (2020). Fuzzy clustering-based microaggregation to achieve probabilistic k-anonymity
    for data with constraints. Journal of Intelligent and Fuzzy Systems 39(5).

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella import FuzzyMicroaggregation
    >>> table = pd.DataFrame({"age": [21, 22, 23, 61, 62, 66], "income": [1.0, 2, 3, 8, 8, 8]})
    >>> masker = FuzzyMicroaggregation(k=3, random_state=0)
    >>> masker.fit_transform(table)
       age  income
    0   22     2.0
    1   22     2.0
    2   22     2.0
    3   63     8.0
    4   63     8.0
    5   63     8.0
    """

    _parameters: ClassVar[dict[str, Any]] = {
        **PARAMETERS,
        "round_integers": [FLAG],
        "on_missing": [OneOf(("error", "pattern"))],
    }

    k: int | None = 3
    _: KW_ONLY
    m1: float = 1.1
    m2: float = 1.2
    lambda1: float | None = None
    lambda2: float | None = None
    c: int | None = None
    at_least_k: bool = False
    rules: Any = None
    tol: float = 1e-4
    max_iter: int = 1000
    neglect: float = 1e-12

    def _mask(self, source: Table, *, weights: Any, strata: Any) -> Any:
        ready = self._prepare(source, weights=weights, strata=strata)
        read, plan = ready.read, ready.plan
        given: dict[str, Any] = {
            "strata": read.chosen.strata,
            "weights": read.chosen.weights,
            "random_state": self.random_state,
        }
        if len(plan.rules):
            before = plan.rules.confront(read.view, schema=self.schema)
            table, blocks, after = mask_keeping_rules(plan, read.view, before=before, **given)
            refuse_broken(after)
        else:
            blocks = apply_plan(plan, read.view, **given)
            table = write_blocks(read.view, plan, blocks)
        promised = plan.k if self.at_least_k else None
        released = self._keep(read, table, blocks.labels, promised)
        ready.confirm(released.values)
        self._keep_uncertainty(ready, blocks)
        return table.native

    def _keep_uncertainty(self, ready: Prepared, blocks: MaskedBlocks) -> None:
        self.uncertainty_ = [
            Uncertainty.of([(own.rows, own.drawing) for own in drawn], labels, ready.k)
            for drawn, labels in zip(blocks.drawn, blocks.labels)
        ]
        weights = ready.read.chosen.weights
        parts = [own for drawn in blocks.drawn for own in drawn]
        lost = [float(weights[own.rows] @ own.drawing.expected_square) for own in parts]
        self.expected_loss_ = ready.loss(sum(lost))

    def _prepare(self, table: Any, **given: Any) -> Prepared:
        """Read a table and plan how it is masked."""
        source = Table.read(table)
        options = FuzzyOptions.of_masker(self)
        k = options.size(self.k, source.n_rows)
        read = self._read_blocks(source, **given or named_or_given(self, source))
        plan, systems = self._plan(read, k, options)
        return Prepared(read=read, options=options, plan=plan, systems=systems)

    def _plan(
        self, read: MaskedColumns, k: int, options: FuzzyOptions
    ) -> tuple[Plan, list[LinearSystem | None]]:
        """Return the plan that this masker is, and the systems that its blocks must keep."""
        chosen, view = read.chosen, read.view
        none: list[LinearSystem | None] = [None] * len(chosen.blocks)
        shared: dict[str, Any] = {
            "k": k, "on_missing": self.on_missing, "scale": self.scale, "grouping": "fuzzy",
            "options": asdict(options),
        }  # fmt: skip
        if isinstance(self.rules, Rules):
            schema = self.schema or schema_of_numbers(view, chosen.masked)
            if not self.round_integers:
                schema = schema.override({n: {"kind": "continuous"} for n in chosen.masked})
            rules = self.rules.fix(view.table, schema=schema)
            plan = make_plan(
                schema, rules, columns=chosen.masked, strata=chosen.strata.columns,
                blocks=[list(block) for block in chosen.blocks], **shared,
            )  # fmt: skip
            return plan, none
        if self.rules is not None:
            whole = as_system(self.rules, chosen.masked)
            whole.check()
            none = [whole.part(block) for block in chosen.blocks]
        blocks = []
        for names, system in zip(chosen.blocks, none):
            claims = [] if system is None else _claims(system)
            free = {name for claim in claims for name in claim.columns}
            stays = [n not in free and self._stays_whole(view, n) for n in names]
            blocks.append(replace(Block.of_numbers(names, "mean", stays), always=tuple(claims)))
        plan = Plan(
            blocks=tuple(blocks), strata=(), untouched=chosen.untouched, rules=Rules(),
            fit="closed", edit="fix", small="refuse", distance="original", **shared,
        )  # fmt: skip
        return plan, none


def _claims(system: LinearSystem) -> list[Claim]:
    """Return the rows of a system as the claims of a plan."""
    sides: list[tuple[Any, Any, Any]] = [(system.A, system.b, "=="), (system.G, system.h, "<=")]
    rows = [(row, end, sign) for A, right, sign in sides for row, end in zip(A, right)]
    names: Any = system.columns
    return [
        Claim(name, forms.Linear({names[j]: float(row[j]) for j in np.flatnonzero(row)}, sign, end))
        for name, (row, end, sign) in zip(system.names, rows)
        if row.any()
    ]


def advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    """Return what analysts of a table of drawn centres should know."""
    return [
        "Each record has the values of a centre that was drawn by the record's degrees of "
        f"membership. Means are kept in expectation; variances shrink.{shrunk(facts)}",
        "The draw adds error that is independent between records: averages over many records are "
        "reliable, single records are not.",
    ]


def _variants(setting: Setting) -> Iterator[Options]:  # noqa: ARG001
    yield {"m2": 1.2}
    yield {"m2": 1.4}
    yield {"m2": 1.2, "at_least_k": True}


def _label(options: Options) -> str:
    return f"fuzzy m2 = {options['m2']:g}{', k kept' if options['at_least_k'] else ''}"


def _describe(options: Options) -> str:
    size = "k = {k}" if options["at_least_k"] else "probabilistic, {k} records a centre"
    return f"fuzzy microaggregation, {size}, m1 = {{m1:g}}, m2 = {{m2:g}}".format(**options)


METHOD = register(
    Method(
        name="fuzzy microaggregation",
        masker=FuzzyMicroaggregation,
        options=("fit", "edit", "small", "dominance", "on_dominance"),  # of its plan
        masks="both",  # its step draws categories, too
        tuned=Tuned(name="k", low=2, high=200, whole=True),
        defaults={"k": 3, "m1": 1.1, "m2": 1.2, "at_least_k": False},
        variants=_variants,
        label=_label,
        description=_describe,
        groups=lambda options, columns: [list(columns)] if options.get("at_least_k") else [],
        step={"at_least_k": True},
        attack="fuzzy microaggregation",
        attack_options=lambda masker: FuzzyOptions.of_masker(masker).public,
        advice=advise,
    )
)
