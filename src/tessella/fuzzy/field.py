"""The field on which centres move: the records, prepared once for many sweeps.

Records are centred and scaled by a power of two, so that offsets cost no digits and no square
overflows, and cut into pieces that cores may work on side by side. The pieces depend on the table
alone: every number of cores gives the same sums.

Collapse: too much fuzziness puts centres on top of each other, and c clusters are fewer. The place
where all centres are at the mean is always a rest of the loop. It attracts the loop when the table
has no direction in which it is much wider than in others:

- with the exponent m, if m > 1 / (1 - 2 F), F the largest eigenvalue of the mean of z z' / |z|^2,
  z a record minus the mean (Yu, Cheng and Huang 2004), for F < 1/2;
- with entropy, if lambda < 1 / (2 V), V the largest eigenvalue of the covariance (Rose 1998).

Fewer centres may coincide long before; that is found by looking at them.

Constraints are linear equations and inequalities between the columns. Given degrees, the objective
of a centre is its weight times the squared distance to the weighted mean of the records, plus a
constant. So the best admissible centre is the orthogonal projection of that mean: equations 5 and
11 of Torra (2020) for one equation, and for any number of them.

References
----------
J. Yu, Q. Cheng and H. Huang (2004). Analysis of the weighting exponent in the FCM. IEEE
Transactions on Systems, Man, and Cybernetics B 34(1).
K. Rose (1998). Deterministic annealing for clustering, compression, classification, regression,
and related optimization problems. Proceedings of the IEEE 86(11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from .._types import Floats, Integers
from ..exceptions import BadTableError, UnknownColumnError, UnknownOptionError
from ..kernels.degrees import EXPONENTIAL, FEW, LANES, NEAREST, POWER, TILE, Centres, Law, pack
from ..kernels.groups import spread_out
from ..kernels.memberships import (
    Outlook,
    Sums,
    draw_memberships,
    find_nearest,
    spread,
    sweep,
    write_degrees,
)
from ..kernels.tree import order_by_leaves, rounded
from ..linear import LinearSystem
from ..linear.rows import Row
from ..parallel import each
from ..plan.plan import cases_of, rows_of
from ..rules import Rules

Result = TypeVar("Result")

HUGE = 1e140  # squares, and sums of them, stay finite
PIECES, LEAST_PIECE = 8, 2048  # pieces at most, and records in a piece at least
STARTS = ("k-means++", "records")
OFF = 0.99  # of the way from the mean to a record
CLOSE = 0.01  # centres nearer than this share of their clusters' radius coincide
LOOKED_AT = 10_000  # records
EVEN = 1.01  # the largest degrees are on average less than this times 1/c: all degrees are 1/c
MANY = 10**8  # records times centres beyond which a centre is drawn only once


def power_law(m: float, neglect: float = 0.0) -> Law:
    """Return degrees proportional to D^(-1/(m-1)); m = 1 is the nearest centre.

    An exponent that is whole but for rounding, as 1 / (1.2 - 1), is taken as whole: products are
    faster than powers, and nearer to what was meant.
    """
    if m == 1:
        return Law(NEAREST, 0.0, neglect)
    rate = 1 / (m - 1)
    whole = round(rate)
    return Law(POWER, float(whole) if abs(rate - whole) < 1e-9 * rate else rate, neglect)


def entropy_law(rate: float, neglect: float = 0.0) -> Law:
    """Return degrees proportional to e^(-lambda D)."""
    return Law(EXPONENTIAL, float(rate), neglect)


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    """Records to be clustered, in the field's own units.

    A point x of the table is at (x - origin) * scale.
    """

    records: Floats
    weights: Floats
    origin: Floats
    scale: float
    pieces: list[Integers]
    size: float  # root of the mean squared distance of records to their mean

    @classmethod
    def of(cls, X: Floats, weights: Floats, n_centres: int) -> Field:
        """Prepare a table of shape (n, d) for a number of centres."""
        share = weights / weights.sum()
        records = np.ascontiguousarray(X - X[0])
        drift = share @ records
        records -= drift
        away = max(records.max(initial=0.0), -records.min(initial=0.0))
        if away > HUGE:
            raise BadTableError(
                f"The records lie up to {away:.3g} apart, and squares of that are beyond what "
                "numbers hold. Divide the columns by a power of ten first."
            )
        scale = 0.5 ** math.frexp(away)[1] if away > 0 else 1.0
        records *= scale
        rows = leaf_order(records) if n_centres > FEW * LANES else np.arange(len(X))
        size = math.sqrt(float(share @ np.einsum("ij,ij->i", records, records)))
        return cls(
            records=records, weights=weights, origin=X[0] + drift, scale=scale,
            pieces=_cut(rows), size=size,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.records)

    def inward(self, points: Floats) -> Floats:
        """Bring points of the table into the field."""
        return np.ascontiguousarray((points - self.origin) * self.scale)

    def outward(self, points: Floats) -> Floats:
        """Bring points of the field back to the table's units."""
        return points / self.scale + self.origin

    def law(self, law: Law) -> Law:
        """Bring a law of the table's units into the field: lambda is per squared unit."""
        return (
            law
            if law.kind != EXPONENTIAL
            else Law(law.kind, min(law.rate / self.scale / self.scale, 1e300), law.neglect)
        )

    def objective(self, value: float) -> float:
        """Bring a sum of squares of the field back to the table's units."""
        return value / self.scale / self.scale

    def sweep(self, centres: Floats, law: Law, *, alone: bool = False) -> Swept:
        """Sweep all records once; `alone` keeps to this thread."""
        packed = arrange(centres)
        sums = self.on_pieces(
            lambda rows: sweep(self.records, self.weights, rows, packed, law), alone=alone
        )
        return Swept.of(sums, packed, centres)

    def draw(self, centres: Floats, law: Law, chances: Floats) -> tuple[Outlook, Floats]:
        """Draw a centre for each record; return the outlook and expected sizes, see the kernel."""
        packed, n = arrange(centres), self.n
        outlook = Outlook(np.empty(n), np.empty(n), np.empty(n), np.empty(n, dtype=np.int64))
        parts = self.on_pieces(
            lambda rows: draw_memberships(self.records, rows, packed, law, chances, outlook)
        )
        return outlook, sum(parts, np.zeros(len(centres)))

    def nearest(self, centres: Floats, neglect: float = 0.0) -> Integers:
        """Return for each record the nearest centre, of several the one of the least number."""
        packed, labels = arrange(centres), np.empty(self.n, dtype=np.int64)
        law = power_law(1, neglect)
        self.on_pieces(lambda rows: find_nearest(self.records, rows, packed, law, labels))
        return labels

    def sample(self, count: int) -> Field:
        """Return a field of some of the records, spread over the table."""
        if self.n <= count:
            return self
        rows = np.concatenate(self.pieces)[:: -(-self.n // count)]
        return replace(
            self, records=self.records[rows], weights=self.weights[rows],
            pieces=_cut(np.arange(len(rows))),
        )  # fmt: skip

    def degrees(self, centres: Floats, law: Law) -> Floats:
        """Return all degrees, of shape (n, c)."""
        packed, out = arrange(centres), np.zeros((self.n, len(centres)))
        self.on_pieces(lambda rows: write_degrees(self.records, rows, packed, law, out))
        return out

    def spread(self, centres: Floats, law: Law) -> Floats:
        """Return weight and weighted squares of each centre, of shape (c, 2)."""
        packed = arrange(centres)
        parts = self.on_pieces(lambda rows: spread(self.records, self.weights, rows, packed, law))
        return sum(parts, np.zeros((len(centres), 2)))

    def on_pieces(
        self, function: Callable[[Integers], Result], *, alone: bool = False
    ) -> list[Result]:
        """Apply a function to the rows of each piece, results in order."""
        if alone:
            return [function(rows) for rows in self.pieces]
        return each(function, self.pieces)


@dataclass(frozen=True, kw_only=True, eq=False)
class Swept:
    """What a sweep gives: the objective of the centres it began with, and better centres."""

    objective: float
    centres: Floats
    weights: Floats  # (c,) sums of degree^m; a centre without weight stays where it was
    visited: int  # pairs of record and centre

    @classmethod
    def of(cls, sums: list[Sums], packed: Centres, old: Floats) -> Swept:
        """Add up the pieces, in order."""
        c, d = old.shape
        points = sum((s.points for s in sums[1:]), sums[0].points)
        totals = sum((s.weights for s in sums[1:]), sums[0].weights).ravel()[:c]
        flat = np.moveaxis(points, 1, 2).reshape(-1, d)[:c]
        centres, weights = old.copy(), np.empty(c)
        held = totals > 0
        centres[packed.order[held]] = flat[held] / totals[held, None]
        weights[packed.order] = totals
        return cls(
            objective=float(sum(s.objective[0] for s in sums)),
            centres=centres,
            weights=weights,
            visited=sum(int(s.visited[0]) for s in sums),
        )


def arrange(centres: Floats) -> Centres:
    """Pack centres into blocks, neighbours together where not all blocks are visited anyway."""
    near = len(centres) > FEW * LANES
    return pack(centres, leaf_order(centres) if near else np.arange(len(centres)))


def leaf_order(points: Floats) -> Integers:
    """Order points so that sixteen that follow each other are near each other."""
    middle = points.mean(axis=0)
    order: Integers = order_by_leaves(
        rounded(points, np.arange(len(points)), middle).table, points.shape[1]
    )
    return order


def _cut(rows: Integers) -> list[Integers]:
    """Cut rows into pieces of whole tiles."""
    count = max(1, min(PIECES, len(rows) // LEAST_PIECE))
    size = -(-len(rows) // (count * TILE)) * TILE
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def first_centres(field: Field, c: int, way: str, random: np.random.Generator) -> Floats:
    """Choose c records as first centres, in the field's units.

    "k-means++" draws each next centre by its squared distance from those chosen, and keeps the best
    of 2 + ln(c) draws; "records" takes records at random, as the 2009 paper does. Centres then
    move a hundredth of the way to the mean: exactly on a record, that record alone would hold
    a centre where m is large.

    References
    ----------
    D. Arthur and S. Vassilvitskii (2007). k-means++: the advantages of careful seeding. SODA.
    """
    if way == "records":
        share = field.weights / field.weights.sum()
        return OFF * field.records[random.choice(field.n, c, replace=False, p=share)]
    tries = 2 + int(math.log(c)) if field.n * c <= MANY else 1
    return OFF * field.records[spread_out(field.records, field.weights, random.random((c, tries)))]


def given_centres(init: Any, c: int, d: int) -> Floats | None:
    """Return centres that the caller gives, or None if `init` names a way to choose them."""
    if isinstance(init, str):
        if init not in STARTS:
            raise UnknownOptionError("init", init, [*STARTS, "centres of shape (c, d)"])
        return None
    try:
        centres = np.array(init, dtype=np.float64)
    except (TypeError, ValueError):
        centres = np.empty(0)
    if centres.shape != (c, d) or not np.isfinite(centres).all():
        raise BadTableError(
            f"init must be one of {', '.join(map(repr, STARTS))} or finite centres of shape "
            f"({c}, {d}), one row for each of the n_clusters={c}; it has shape {centres.shape}."
        )
    return centres


@dataclass(frozen=True, eq=False)
class Collapse:
    """How many of c centres coincide with another."""

    coincide: int
    c: int
    even: bool  # all degrees are 1/c
    spare: Integers  # the centres that could go: all but the first of those that coincide


def find_collapse(field: Field, centres: Floats, law: Law) -> Collapse | None:
    """Look for centres that coincide, compared with the radius of their own clusters."""
    c = len(centres)
    if c < 2:
        return None
    field = field.sample(max(LOOKED_AT, 4 * c))  # radii need no more to be told from gaps
    totals = field.spread(centres, law)
    radius = np.sqrt(totals[:, 1] / np.maximum(totals[:, 0], 1e-300))
    gap, other = (found[:, 1] for found in KDTree(centres).query(centres, k=2))
    close = np.flatnonzero(gap <= CLOSE * np.minimum(radius, radius[other]))
    outlook, _ = field.draw(centres, law, np.full(field.n, -1.0))
    even = bool(np.average(outlook.largest, weights=field.weights) * c < EVEN)
    if len(close) == 0 and not even:
        return None
    return Collapse(len(close), c, even, _all_but_first(close, other[close], c))


def _all_but_first(ones: Integers, others: Integers, c: int) -> Integers:
    """Return what is linked to a centre of a lower number."""
    links = coo_array((np.ones(len(ones)), (ones, others)), shape=(c, c))
    _, place = connected_components(links, directed=False)
    first = np.unique(place, return_index=True)[1]
    return np.flatnonzero(first[place] < np.arange(c))


def critical_m(field: Field) -> float:
    """Return the m above which the mean attracts all centres; infinity if it never does."""
    squares = (field.records**2).sum(axis=1)
    away = squares > 0
    if not away.any():
        return 1.0
    unit = field.records[away] * np.sqrt(field.weights[away] / squares[away])[:, None]
    share = float(np.linalg.eigvalsh(unit.T @ unit / field.weights.sum())[-1])
    return 1 / (1 - 2 * share) if share < 0.5 else float("inf")


def critical_lambda(field: Field) -> float:
    """Return the lambda, in the field's units, below which the mean attracts all centres."""
    scaled = field.records * np.sqrt(field.weights / field.weights.sum())[:, None]
    wide = float(np.linalg.eigvalsh(scaled.T @ scaled)[-1])
    return 1 / (2 * wide) if wide > 0 else float("inf")


@dataclass(frozen=True, eq=False)
class Constraints:
    """A system in the table's units and in the field's, or none."""

    outside: LinearSystem | None = None
    inside: LinearSystem | None = None

    @classmethod
    def of(cls, wish: Any, columns: Sequence[Hashable], field: Field) -> Constraints:
        """Read a wish, see `as_system`, and bring it into the field."""
        if wish is None:
            return cls()
        outside = as_system(wish, columns)
        outside.check()
        unit = np.full(len(columns), 1 / field.scale)
        return cls(outside, outside.rescaled(field.origin, unit))

    def project(self, centres: Floats) -> Floats:
        """Move centres of the field to the nearest admissible points."""
        return centres if self.inside is None else self.inside.project(centres)

    def polish(self, centres: Floats) -> Floats:
        """Take back, in the table's units, what rounding on the way there may have broken."""
        return centres if self.outside is None else self.outside.project(centres)


def as_system(wish: Any, columns: Sequence[Hashable]) -> LinearSystem:
    """Read constraints on the columns of a table: a system, rules, or a pair (A, b) for A v = b."""
    if isinstance(wish, Rules):
        wish = _linear_rules(wish)
    if isinstance(wish, LinearSystem):
        return _over(wish, columns)
    if not isinstance(wish, tuple | list) or len(wish) != 2:
        raise BadTableError(
            f"constraints is a {type(wish).__name__}; give a pair (A, b) for A v = b, a "
            "tessella.linear.LinearSystem, or parsed rules."
        )
    try:
        matrix = np.atleast_2d(np.asarray(wish[0], dtype=np.float64))
        right = np.atleast_1d(np.asarray(wish[1], dtype=np.float64))
    except (TypeError, ValueError):
        raise BadTableError(
            "constraints must be numbers: a pair (A, b) for A v = b, with one row of A and one "
            "number of b for each equation."
        ) from None
    return _over(LinearSystem.equalities(matrix, right), columns)


def _linear_rules(rules: Rules) -> LinearSystem:
    """Collect the rows of rules that are linear; < is taken as <=."""
    found: list[Row] = []
    for rule in rules:
        ways = cases_of(rule)
        rows = [row for claim in ways[0] for row in rows_of(claim)] if len(ways) == 1 else []
        if not rule.is_affine or not rows:
            raise BadTableError(
                f"{rule.name} ({rule.text}) is not linear, and centres keep linear rules only. "
                "Leave it out, or use tessella.protect, which keeps others too."
            )
        found += [replace(row, name=f"{rule.name}: {rule.text}") for row in rows]
    return LinearSystem.of_rows(found, rules.columns)


def _over(system: LinearSystem, columns: Sequence[Hashable]) -> LinearSystem:
    """Write a system over all columns of a table; those that it does not name take no part."""
    if system.columns is None and system.n_columns != len(columns):
        raise BadTableError(
            f"The constraints have {system.n_columns} coefficients a row, and the table has "
            f"{len(columns)} columns. Give one coefficient for each column, 0 where it takes no "
            "part, or name the columns."
        )
    own = tuple(columns) if system.columns is None else system.columns
    places = []
    for j, name in enumerate(own):
        if name in columns:
            places.append((j, list(columns).index(name)))
        elif system.A[:, j].any() or system.G[:, j].any():
            raise UnknownColumnError(name, columns, who="constraints")
    A, G = np.zeros((len(system.b), len(columns))), np.zeros((len(system.h), len(columns)))
    for inner, outer in places:
        A[:, outer], G[:, outer] = system.A[:, inner], system.G[:, inner]
    return LinearSystem(A, system.b, G, system.h, columns=columns, names=system.names)
