"""Fuzzy microaggregation: every record gets a centre that is drawn, not computed.

An intruder who knows the method knows that records go to near centres. Here a record goes to a
centre at random, with its memberships as probabilities, which leaves him guessing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._parameters import FLAG, NONE, Number, OneOf, Whole
from .._types import Floats, Integers, Truths
from ..exceptions import BadOptionError, BadTableError
from ..frame import Table
from ..fuzzy.base import FuzzyClusterer, check_number
from ..fuzzy.cmeans import EntropyFuzzyCMeans, FuzzyCMeans
from ..fuzzy.drawing import (
    Chance,
    Drawing,
    chance_of,
    crisp_groups,
    draw_keeping_k,
    draw_part,
    find_centres,
)
from ..fuzzy.field import as_system, entropy_law, power_law
from ..grouping.base import check_k
from ..kernels.degrees import Law
from ..linear import LinearSystem
from .base import MaskedColumns, renamed, rows_of_strata
from .microaggregation import GroupMasker
from .parts import parts_of
from .registry import Method, Options, Setting, Tuned, register, shrunk
from .selection import Scale, Selection, named_or_given

FALL = 1e-4  # a sweep that lowers the objective by less ends the search for centres


@dataclass(frozen=True, kw_only=True, eq=False)
class FuzzyPart:
    """Records of one stratum that lack the same cells, in the columns of one block."""

    block: int
    rows: Integers
    places: list[int]
    records: Floats  # on the scale of distances
    weights: Floats
    scale: Scale
    rules: LinearSystem | None  # in the table's units
    c: int | None

    def confirm(self, released: Floats) -> None:
        """Refuse what breaks the rules once it is written: float32 has too few digits."""
        if self.rules is not None and not self.rules.holds(np.nan_to_num(released)).all():
            raise BadTableError(
                "The constraints do not hold in the released table to 1e-9: its dtypes have too "
                "few digits. Convert the columns to float64."
            )

    def outward(self, centres: Floats) -> Floats:
        """Bring centres back to the table's units, where the rules hold to the last digit."""
        values = centres * self.scale.unit + self.scale.centre
        if self.rules is None:
            return values
        return self.rules.project(values, metric=1 / self.scale.unit**2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A table that was read, and cut into parts."""

    read: MaskedColumns
    k: int
    parts: list[FuzzyPart]
    unrounded: set[Any]

    def loss(self, lost: float) -> float:
        """Turn a sum of squares on the scale of distances into per cent of all squares."""
        squares = (self.read.scale.apply(self.read.original.values) ** 2).sum(axis=1)
        total = float(self.read.chosen.weights @ squares)
        return 100 * lost / total if total > 0 else 0.0

    def per_record(self, total: float) -> float:
        """Turn a sum over records and blocks into a mean."""
        return total / (self.read.view.n_rows * len(self.read.chosen.blocks))


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
        The size of groups that is aimed at: there are n // k centres. None if `c` says how many.
        **A drawn group may be smaller**, unless `at_least_k` is set.
    m1, m2 : float, default 1.1 and 1.2
        The fuzziness of the centres and that of the draw. The larger m1, the more all centres move
        to the mean; the larger m2, the more any centre may be drawn. 1 is crisp.
    lambda1, lambda2 : float, optional
        Give both to use fuzzy c-means with entropy instead; on the chosen scale, the smaller
        the fuzzier.
    c : int, optional
        The number of centres, shared out to strata by their size.
    at_least_k : bool, default False
        Guarantee k: centres are drawn for all records together, from the same product of
        memberships *given that* every centre gets from k to 2k - 1 records, each at one of its
        24 nearest centres. `c`, `tol`, `max_iter` and `neglect` have no part in this.
    blocks, scale, on_missing, columns, strata, weights, schema, round_integers
        As for `Microaggregation`.
    rules : pair (A, b), LinearSystem or parsed rules, optional
        What every released record obeys, even where the input does not: A v = b over the masked
        columns in order, or a system of linear equations and inequalities between named columns.
        Columns of whole numbers that take part are released as float64.
    tol : float, default 1e-4
        Centres rest when none moves farther than this share of the table's spread, or the objective
        falls by less than 1e-4 of itself.
    max_iter : int, default 1000
        The largest number of sweeps.
    neglect : float, default 1e-12
        The share of a record's membership that may be left out by not visiting far centres.
    random_state : int, RandomState or None, default None
        None draws from the operating system's entropy, which nobody can repeat. A seed makes the
        release repeatable, and must then be kept as secret as the table.

    Attributes
    ----------
    labels_ : ndarray of shape (n,) or (n, n_blocks)
        The centre drawn.
    uncertainty_ : list of Uncertainty
        What is known of the draw, for each block; print it.
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

    repairs: ClassVar = False  # centres keep linear rules; others are not restored
    _parameters: ClassVar = {
        "at_least_k": [FLAG],
        "round_integers": [FLAG],
        "on_missing": [OneOf(("error", "pattern"))],
        "c": [Whole(1), NONE],
        "tol": [Number(least=0)],
        "neglect": [Number(least=0)],
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
        plan = self._prepare(source, weights=weights, strata=strata)
        read, k = plan.read, plan.k
        released = np.empty_like(read.original.values)
        drawings: list[list[tuple[Integers, Drawing]]] = [[] for _ in read.chosen.blocks]
        labels = np.empty((len(released), len(drawings)), dtype=np.int64)
        chance, law = chance_of(self.random_state), self._second_law()
        for part in plan.parts:
            drawing = self._draw(part, law, k, chance)
            centres = part.outward(drawing.centres)
            earlier = sum(len(d.centres) for _, d in drawings[part.block])
            released[part.rows[:, None], part.places] = centres[drawing.labels]
            labels[part.rows, part.block] = drawing.labels + earlier
            drawings[part.block].append((part.rows, drawing))
        masked = self._write(read, released, unrounded=plan.unrounded)
        seen = self._keep(read, masked, list(labels.T), k if self.at_least_k else None)
        for part in plan.parts:
            part.confirm(seen.values[part.rows[:, None], part.places])
        self.uncertainty_ = [Uncertainty.of(d, own, k) for d, own in zip(drawings, labels.T)]
        self.expected_loss_ = plan.loss(
            sum(float(read.chosen.weights[r] @ d.expected_square) for b in drawings for r, d in b)
        )
        return masked

    def _prepare(self, table: Any, **given: Any) -> Prepared:
        """Read a table and cut it into the parts that are drawn on their own."""
        source = Table.read(table)
        n = source.n_rows
        k = self._size(n)
        self._first_law(), self._second_law()  # raise what is wrong with them before anything else
        read = self._read_blocks(source, **given or named_or_given(self, source))
        chosen, original = read.chosen, read.original
        systems = self._systems(chosen)
        parts = []
        for number, (block, system) in enumerate(zip(chosen.blocks, systems)):
            places = chosen.places(block)
            own = read.scale.part(places)
            records = own.apply(original.values[:, places])
            for rows in rows_of_strata(parts_of(original, places, chosen.strata, k)):
                known = ~original.missing[rows[0], places]
                parts.append(
                    FuzzyPart(
                        block=number, rows=rows, places=places, records=records[rows],
                        weights=chosen.weights[rows], scale=own,
                        rules=None if system is None else _on_known(system, known),
                        c=self.c and min(len(rows), max(1, round(self.c * len(rows) / n))),
                    )
                )  # fmt: skip
        unrounded = {
            name
            for system in systems
            if system is not None
            for name, own in zip(system.columns or (), np.vstack([system.A, system.G]).T)
            if own.any()
        }
        return Prepared(read=read, k=k, parts=parts, unrounded=unrounded)

    def _draw(self, part: FuzzyPart, law: Law, k: int, chance: Chance) -> Drawing:
        if self.at_least_k:
            crisp = crisp_groups(part.records, part.weights, k=k, chance=chance)
            return draw_keeping_k(
                part.records, part.weights, crisp, self._first_law(), law, k=k, chance=chance
            )
        fitted = find_centres(part.records, part.weights, self._model(part), k, part.c)
        return draw_part(part.records, part.weights, fitted, law, k=k, chance=chance)

    def _size(self, n: int) -> int:
        """Return the k that is aimed at, and check it together with c."""
        if self.c is None:
            if self.k is None:
                raise BadOptionError("k", None, "k, or the number of centres c")
            return check_k(self.k, n)
        if self.c > n:
            raise BadOptionError("c", self.c, f"at most as many centres as records, {n}")
        if self.at_least_k:
            raise BadTableError(
                "at_least_k=True makes as many groups as k allows; give k and leave out c, or "
                "give at_least_k=False and no k is promised."
            )
        return max(1, n // int(self.c)) if self.k is None else check_k(self.k, n)

    def _second_law(self) -> Law:
        """Return how degrees follow from distances in the draw."""
        if (self.lambda1 is None) != (self.lambda2 is None):
            raise BadTableError("Give both lambda1 and lambda2, or neither and use m1 and m2.")
        if self.lambda2 is None:
            return power_law(check_number("m2", self.m2, 1.0), self.neglect)
        rate = check_number("lambda2", self.lambda2, 0.0, open_end=True)
        return entropy_law(rate, self.neglect)

    def _first_law(self) -> Law:
        """Return how degrees follow from distances in the centres."""
        if self.lambda1 is None:
            return power_law(check_number("m1", self.m1, 1.0))
        return entropy_law(check_number("lambda1", self.lambda1, 0.0, open_end=True))

    def _model(self, part: FuzzyPart) -> FuzzyClusterer:
        """Return the unfitted clusterer of the centres of a part, on the scale of distances."""
        rules, scale = part.rules, part.scale
        shared: dict[str, Any] = {
            "n_init": 5, "tol": self.tol, "fall": FALL, "max_iter": self.max_iter,
            "neglect": self.neglect, "on_collapse": "merge", "random_state": 0,
            "constraints": None if rules is None else rules.rescaled(scale.centre, scale.unit),
        }  # fmt: skip
        if self.lambda1 is not None:
            return EntropyFuzzyCMeans(lambda_=self.lambda1, **shared)
        return FuzzyCMeans(m=self.m1, **shared)

    def _systems(self, chosen: Selection) -> list[LinearSystem | None]:
        """Return the constraints of each block, or say which of them crosses blocks."""
        if self.rules is None:
            return [None] * len(chosen.blocks)
        whole = as_system(self.rules, chosen.masked)
        whole.check()
        return [whole.part(block) for block in chosen.blocks]


def _on_known(system: LinearSystem, known: Truths) -> LinearSystem:
    """Leave out the rows about cells that this part of the table does not have."""
    equal = ~system.A[:, ~known].any(axis=1)
    unequal = ~system.G[:, ~known].any(axis=1)
    names = [n for n, kept in zip(system.names, np.concatenate([equal, unequal])) if kept]
    return LinearSystem(
        system.A[equal], system.b[equal], system.G[unequal], system.h[unequal], names=names
    )


def advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    """Return what analysts of a table of drawn centres should know."""
    return [
        "Each record has the values of a centre that was drawn by the record's degrees of "
        f"membership. Means are kept in expectation; variances shrink.{shrunk(facts)}",
        "The draw adds error that is independent between records: averages over many records are "
        "reliable, single records are not.",
    ]


def _variants(setting: Setting) -> Iterator[Options]:
    yield {"m2": 1.2}
    yield {"m2": 1.4}
    if not setting.has_rules:  # records that are moved back to rules leave their centre
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
        tuned=Tuned(name="k", low=2, high=200, whole=True),
        defaults={"k": 3, "m1": 1.1, "m2": 1.2, "at_least_k": False},
        variants=_variants,
        label=_label,
        description=_describe,
        groups=lambda options, columns: [list(columns)] if options.get("at_least_k") else [],
        step={"at_least_k": True},
        attack="fuzzy microaggregation",
        attack_options=lambda masker: {
            **({"m2": masker.m2} if masker.lambda2 is None else {"lambda2": masker.lambda2}),
            "at_least_k": masker.at_least_k,
        },
        advice=advise,
    )
)
