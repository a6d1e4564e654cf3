"""Fuzzy groups of the parts of a plan: centres that keep the rules, and a draw for each record.

A part is clustered in a *representation* in which its rules are linear: columns that are released
as geometric means by their logarithms, other numbers as they are, categories as corners, each in
its unit. Constrained fuzzy c-means, or that with entropy, finds centres that keep linear rules and
products; a draw gives each record a centre. The values of a group are those of its centre, the mean
of the records with the weights kappa = w u^m / sum w u^m, which the engine then repairs like the
mean of a crisp group: whole numbers, bounds, and rules that no representation makes linear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from .._parameters import FLAG, NONE, Constraint, Number, Whole, check
from .._types import Floats, Integers, Name
from ..exceptions import (
    BadOptionError,
    BadTableError,
    CollapsedError,
    ContradictionError,
    RefusedError,
    UnknownOptionError,
)
from ..fuzzy.base import FuzzyClusterer, check_number
from ..fuzzy.cmeans import EntropyFuzzyCMeans, FuzzyCMeans
from ..fuzzy.drawing import (
    Drawing,
    crisp_groups,
    draw_keeping_k,
    draw_part,
    find_centres,
    nearby_shares,
)
from ..fuzzy.field import as_system, entropy_law, power_law
from ..grouping.base import Chance, check_k
from ..kernels.degrees import Law
from ..kernels.groups import weighted_centres
from ..linear import LinearSystem
from ..plan import Block
from .parts import Part
from .repair import Grid, closed_system, rows_about
from .repair_products import at_edge, log_rows
from .selection import Scale

FEWER = (1, 0.9, 0.8, 0.7, 0.6, 0.5)  # of the centres of a part, until none coincide
FALL = 1e-4  # a sweep that lowers the objective by less ends the search for centres


@dataclass(frozen=True, kw_only=True)
class FuzzyOptions:
    """The parameters of `FuzzyMicroaggregation` that are about centres and their draw."""

    m1: float = 1.1
    m2: float = 1.2
    lambda1: float | None = None
    lambda2: float | None = None
    c: int | None = None
    at_least_k: bool = True  # in plans; the masker's own default is False
    tol: float = 1e-4
    max_iter: int = 1000
    neglect: float = 1e-12

    @classmethod
    def of_masker(cls, masker: Any) -> FuzzyOptions:
        """Check the parameters of a masker."""
        return cls.of({name: getattr(masker, name) for name in FUZZY_OPTIONS})

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> FuzzyOptions:
        """Check options by name, as a plan has them."""
        for name in given:
            if name not in FUZZY_OPTIONS:
                raise UnknownOptionError("option of the grouping 'fuzzy'", name, FUZZY_OPTIONS)
        check(PARAMETERS, given)
        made = cls(**given)
        made.first, made.second  # noqa: B018 raise what is wrong with them
        return made

    def with_(self, name: str, value: Any) -> FuzzyOptions:
        """Return the same with another value of one of them."""
        return replace(self, **{name: value})

    @property
    def first(self) -> Law:
        """How degrees follow from distances in the centres."""
        if self.lambda1 is None:
            return power_law(check_number("m1", self.m1, 1.0))
        return entropy_law(check_number("lambda1", self.lambda1, 0.0, open_end=True))

    @property
    def second(self) -> Law:
        """How degrees follow from distances in the draw."""
        if (self.lambda1 is None) != (self.lambda2 is None):
            raise BadTableError("Give both lambda1 and lambda2, or neither and use m1 and m2.")
        if self.lambda2 is None:
            return power_law(check_number("m2", self.m2, 1.0), self.neglect)
        rate = check_number("lambda2", self.lambda2, 0.0, open_end=True)
        return entropy_law(rate, self.neglect)

    @property
    def public(self) -> dict[str, Any]:
        """What an intruder knows of the draw: m2 or lambda2, and whether k was kept."""
        drawn = {"m2": self.m2} if self.lambda2 is None else {"lambda2": self.lambda2}
        return {**drawn, "at_least_k": self.at_least_k}

    def size(self, k: int | None, n: int) -> int:
        """Return the k that is aimed at, checked together with c."""
        if self.c is None:
            if k is None:
                raise BadOptionError("k", None, "k, or the number of centres c")
            return check_k(k, n)
        if self.c > n:
            raise BadOptionError("c", self.c, f"at most as many centres as records, {n}")
        if self.at_least_k:
            raise BadTableError(
                "at_least_k=True makes as many groups as k allows; give k and leave out c, or "
                "give at_least_k=False and no k is promised."
            )
        return max(1, n // int(self.c)) if k is None else check_k(k, n)

    def model(self, system: LinearSystem | None) -> FuzzyClusterer:
        """Return the unfitted clusterer of centres that keep a system."""
        shared: dict[str, Any] = {
            "n_init": 5, "tol": self.tol, "fall": FALL, "max_iter": self.max_iter,
            "neglect": self.neglect, "on_collapse": "merge", "random_state": 0,
            "constraints": system,
        }  # fmt: skip
        if self.lambda1 is not None:
            return EntropyFuzzyCMeans(lambda_=self.lambda1, **shared)
        return FuzzyCMeans(m=self.m1, **shared)


FUZZY_OPTIONS = tuple(one.name for one in fields(FuzzyOptions))
PARAMETERS: dict[str, Sequence[Constraint]] = {
    "at_least_k": [FLAG],
    "c": [Whole(1), NONE],
    "tol": [Number(least=0)],
    "neglect": [Number(least=0)],
}


@dataclass(frozen=True, kw_only=True, eq=False)
class FuzzyPart:
    """The records of a part in its representation, and how numbers come back from it.

    A column of numbers at z is released at centre + unit z; where its sign is not 0, that is the
    logarithm of sign * (value + offset).
    """

    records: Floats  # (n, e): d columns of numbers first, then corners of categories
    weights: Floats
    centre: Floats  # (d,)
    unit: Floats
    signs: Integers
    offsets: Floats
    system: LinearSystem | None  # of linear rules and products, over the columns of `records`
    c: int | None
    has_rules: bool

    @classmethod
    def of(
        cls, records: Floats, weights: Floats, values: Floats, scale: Scale, logs: Logarithms,
        part: Part, grid: Grid, constants: Mapping[Name, float], c: int | None,
    ) -> FuzzyPart:  # fmt: skip
        """Write a part, `values` in the table's units, in its representation.

        `grid` is that of the columns whose values are computed and that the part knows.
        """
        d, names = values.shape[1], logs.columns
        signs, offsets = logs.of_part(part)
        centre, unit = scale.centre.copy(), scale.unit.copy()
        records = np.ascontiguousarray(records)
        if logs.places:
            records = records.copy()
            centre[logs.places], unit[logs.places] = logs.scale.centre, logs.scale.unit
        for j in logs.places:
            records[:, j] = 0.0
            if signs[j]:
                away = signs[j] * (values[:, j] + offsets[j])
                records[:, j] = (np.log(at_edge(away)) - centre[j]) / unit[j]
        known = [j for j in range(d) if names[j] in grid.columns]
        plain = [j for j in known if j not in logs.places]
        system = _system(grid, part, constants, [names[j] for j in plain], names, signs, offsets)
        if system is not None:
            at = [names.index(name) for name in system.columns or ()]
            further = [("category", j) for j in range(d, records.shape[1])]
            system = as_system(system.rescaled(centre[at], unit[at]), [*names, *further])
            system = LinearSystem(system.A, system.b, system.G, system.h, names=system.names)
        return cls(
            records=records, weights=weights, centre=centre, unit=unit, signs=signs,
            offsets=offsets, system=system, c=c, has_rules=bool(logs.block.rules),
        )  # fmt: skip

    def draw(
        self, options: FuzzyOptions, k: int, chance: Chance, centres: Floats | None = None
    ) -> Drawing:
        """Find centres, and draw one for each record; `centres` are those of a larger table."""
        X, weights, law = self.records, self.weights, options.second
        if centres is not None:
            return draw_part(X, weights, centres, law, k=k, chance=chance)
        if options.at_least_k:
            crisp = crisp_groups(X, weights, k=k, chance=chance)
            return draw_keeping_k(
                X, weights, crisp, options.first, law, k=k, chance=chance, system=self.system
            )
        found = self.fit(options, k).cluster_centers_
        return draw_part(X, weights, found, law, k=k, chance=chance)

    def fit(self, options: FuzzyOptions, k: int) -> FuzzyClusterer:
        """Find the centres; fewer, down to half, where those of a part that rules cut coincide.

        A record of two centres at one place draws what it would draw of one.
        """
        model = options.model(self.system)
        for share in FEWER if self.has_rules else ():
            try:
                c = self.c if share == 1 else max(1, int(share * self.most(k)))
                return find_centres(self.records, self.weights, model, k, c)
            except CollapsedError:
                continue
        return find_centres(self.records, self.weights, model, k, self.c)

    def most(self, k: int) -> int:
        """Return how many centres there are where none coincide."""
        return self.c or max(1, len(self.records) // k)

    def outward(self, centres: Floats) -> Floats:
        """Bring the numbers of centres back to the table's units."""
        found: Floats = centres[:, : len(self.unit)] * self.unit + self.centre
        for j in np.flatnonzero(self.signs):
            found[:, j] = self.signs[j] * np.exp(found[:, j]) - self.offsets[j]
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Logarithms:
    """The columns of numbers of a block that are clustered by their logarithms."""

    columns: list[Name]  # all columns of numbers
    places: list[int]  # where those are
    scale: Scale  # of their logarithms
    block: Block

    @classmethod
    def of(
        cls, block: Block, columns: Sequence[Name], values: Floats, weights: Floats,
        scale: Scale | None = None,
    ) -> Logarithms:  # fmt: skip
        """Measure the factors of products that are released as geometric means.

        `scale` is that of a whole table of which these are some records.
        """
        places, logs = cls.values_of(block, columns, values)
        if scale is None:
            scale = Scale.of(logs, weights, "zscore", [columns[j] for j in places])
        return cls(columns=list(columns), places=places, scale=scale, block=block)

    @staticmethod
    def values_of(
        block: Block, columns: Sequence[Name], values: Floats
    ) -> tuple[list[int], Floats]:
        """Return where these factors are among columns, and their logarithms."""
        factors = dict(block.signs)
        names = [name for name in block.with_operator("geometric mean") if name in factors]
        places = [columns.index(name) for name in names]
        with np.errstate(divide="ignore"):
            logs = np.log(np.abs(values[:, places] + np.array([factors[n] for n in names])))
        logs[np.isinf(logs)] = np.nan
        return places, logs

    @staticmethod
    def scale_of(measured: Sequence[Floats]) -> Scale:
        """Return the scale of logarithms, of which each column was measured."""
        return Scale.of_measures(measured, "zscore", range(len(measured)))

    def of_part(self, part: Part) -> tuple[Integers, Floats]:
        """Return the sign of each column in a part, 0 where it is no logarithm, and its offset."""
        signs = np.zeros(len(self.columns), dtype=np.int64)
        offsets = np.zeros(len(self.columns))
        for (name, offset), sign in zip(self.block.signs, part.signs):
            if name in self.columns and (j := self.columns.index(name)) in self.places:
                signs[j], offsets[j] = sign if sign in (-1, 1) else 0, offset
        return signs, offsets


def _system(
    grid: Grid, part: Part, constants: Mapping[Name, float], plain: Sequence[Name],
    columns: Sequence[Name], signs: Integers, offsets: Floats,
) -> LinearSystem | None:  # fmt: skip
    """Write the rules of a part as rows: linear ones as they are, products in logarithms.

    None where there is none, or where they contradict each other: the repair then finds out which.
    """
    if not grid.columns:
        return None
    system = LinearSystem.of_rows([], grid.columns)
    if plain:
        own = grid.part([grid.place(name) for name in plain])
        rows = rows_about(own.columns, part.claims, constants)
        system = system.merged(closed_system(own.plain, rows))
    logged = [j for j, name in enumerate(columns) if signs[j] and name in grid.columns]
    try:
        if logged:
            inner = grid.part([grid.place(columns[j]) for j in logged])
            at = offsets[logged], signs[logged].astype(np.float64)
            rows = log_rows(inner.plain, part.claims, *at)
            system = system.merged(LinearSystem.of_rows(rows, inner.columns))
        system.check()
    except (ContradictionError, RefusedError):
        return None
    return system if system.n_rows else None


@dataclass(frozen=True, kw_only=True, eq=False)
class FuzzyFacts:
    """What follows for an intruder from the original, the plan and its options, but not the draw.

    `parts` are the numbers of the records' parts, for each block; what holds in a part of the
    original holds in that of the release, so that he recognises it there.
    """

    public: dict[str, Any]  # m2 or lambda2, at_least_k
    units: dict[Name, float] = field(default_factory=dict)  # of distances
    logarithms: dict[Name, float] = field(default_factory=dict)  # columns, and what is added first
    parts: list[Integers] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnPart:
    """A part with the centre of each record; `labels` are those of the block, from `first` on."""

    rows: Integers
    part: FuzzyPart
    drawing: Drawing
    first: int

    def values(self, labels: Integers, distinct: Integers) -> Floats:
        """Return the numbers of the groups `distinct` before repair, in the table's units.

        Groups that were put together, to be larger, get the mean of all their records.
        """
        drawn, part = self.drawing, self.part
        if np.array_equal(labels, drawn.labels + self.first):
            return part.outward(drawn.centres[distinct - self.first])
        place = np.searchsorted(distinct, labels)
        shares = drawn.shares if len(drawn.shares) else np.ones(len(labels))
        return part.outward(
            weighted_centres(part.records, part.weights * shares, place, len(distinct))
        )

    def members(self, labels: Integers, options: FuzzyOptions) -> tuple[Integers, Integers, Floats]:
        """Return the records that count in the groups: places, groups, and their weights."""
        if len(self.drawing.shares):
            return np.arange(len(labels)), labels, self.part.weights * self.drawing.shares
        at, centres, shares = nearby_shares(self.part.records, self.drawing, options.first)
        return at, centres + self.first, self.part.weights[at] * shares


def draw_record(groups: Integers, weights: Floats, count: int, usable: Any, chance: Chance) -> Any:
    """Draw for each group the place of one of its usable records, by weight.

    A group without any draws from those of the whole part; where the part has none, from its own.
    """
    usable = usable if usable.any() else np.ones(len(groups), dtype=bool)
    with np.errstate(divide="ignore"):
        logs = np.where(usable, np.log(weights), -np.inf)
    # The largest of log w - log(-log u) is each with probability w / sum w (Gumbel).
    score = logs - np.log(-np.log(np.clip(chance.random(len(groups)), 1e-300, 1 - 1e-16)))
    order = np.lexsort((np.arange(len(groups)), -score, groups))
    first = order[np.searchsorted(groups[order], np.arange(count))]
    return np.where(np.isfinite(score[first]), first, score.argmax())
