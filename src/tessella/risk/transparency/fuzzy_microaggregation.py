"""The attack on fuzzy microaggregation: how probable each original is, given the centres drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from ..._parameters import FLAG, NONE, Number, parameters
from ..._types import Floats, Integers, Name
from ...exceptions import AttackError, BadOptionError, BadTableError
from ...fuzzy.field import Field, entropy_law, power_law
from ...kernels.degrees import EXPONENTIAL, NEAREST, TINY, Law
from ...kernels.memberships import EQUAL, Draws, log_chances, weigh_originals
from ...masking.selection import Scale
from ...parallel import each
from .scene import Candidates, Scene, number_equal_rows, set_scene

PIECE = 256  # released records for a piece of work
LARGEST = 5000  # records that are named together
NEARLY_CRISP = 1.05  # the fuzziness that stands for "nearest, unless k asks for another"
SWEEPS, CLOSE = 100, 1e-3  # of the scaling to one original for each record


@parameters(m2=[Number(least=1), NONE], lambda2=[Number(above=0), NONE], at_least_k=[FLAG])
def attack_fuzzy_microaggregation(
    original: Any,
    masked: Any,
    *,
    m2: float | None = None,
    lambda2: float | None = None,
    blocks: Any = None,
    centres: Sequence[Any] | None = None,
    at_least_k: bool = False,
    scale: Any = "zscore",
    logarithms: Mapping[Name, float] | None = None,
    **common: Any,
) -> Candidates:
    r"""Find how probable each original is for each record of a fuzzily microaggregated table.

    `belief` is the probability of the truth, `effective` e to the entropy. Blocks that the
    intruder knows only in part tell him nothing.

    Notes
    -----
    Original j is given centre c of block b with probability :math:`u_{jc}`, its degree with m2, in
    each block independently. Before the release every original is equally probable for a masked
    record, so by Bayes, given its centres :math:`c_1, c_2, \dots`,

    .. math:: P(j \mid c_1, c_2, \dots) = \frac{\prod_b u_{j c_b}}{\sum_i \prod_b u_{i c_b}}.

    Over many draws this is right as often as the largest probability says; with one block, the
    mean of `belief` over draws is the `naming_chance` of `Uncertainty`. **All records together**:
    what all assignments say of a single pair is a ratio of permanents, which nobody can compute
    for large tables. Scaling the table of all pairs until rows and columns have sum one
    approximates it. With `at_least_k` all assignments that agree with the release have the same
    group sizes, so that conditioning changes nothing, but degrees are those to the centres that
    the draw began with: the published ones are near to them, not the same.

    References
    ----------
    V. Torra (2017). Fuzzy microaggregation for the transparency principle. Journal of Applied
    Logic 23.
    R. Sinkhorn and P. Knopp (1967). Concerning nonnegative matrices and doubly stochastic
    matrices. Pacific Journal of Mathematics 21.

    Examples
    --------
    Centres 0 and 3, m2 = 2: degrees are inverse to squared distances. Record 1 has degree 4/5 at
    centre 0, and record 2 has 1/5.

    >>> import numpy as np
    >>> from tessella.risk import attack
    >>> original = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> masked = np.array([[0.0], [0.0], [3.0], [3.0]])
    >>> found = attack(original, masked, "fuzzy microaggregation", m2=2, effort="quick")
    >>> found.belief.round(3)
    array([0.5, 0.4, 0.4, 0.5])
    >>> found.chance
    array([1., 0., 0., 1.])
    """
    law = _law(m2, lambda2)
    moved = at_least_k and law.kind == NEAREST  # to keep k, some records got another centre
    if moved:
        law = power_law(NEARLY_CRISP)
    scene = set_scene(original, masked, blocks, **common)
    weighing = _weigh(_in_logarithms(scene, logarithms or {}), law, centres, scale)
    together = scene.effort != "quick" and scene.n <= LARGEST and len(scene.rows) == scene.n
    what = f"m2={m2:g}" if m2 is not None else f"lambda2={lambda2:g}"
    notes = [
        f"he knows that centres were drawn with {what}",
        "he has computed all centres"
        if centres is not None
        else "he knows the released centres only",
    ]
    if left := sum(not whole for whole in scene.whole):
        notes.append(f"blocks that he knows in part, and cannot use: {left}")
    if at_least_k:
        notes.append(
            "groups were drawn with at least k records: the sizes say nothing more about who is "
            "in them, but degrees are to the centres before the draw, so that this is approximate"
        )
    if moved:
        notes.append(
            "records were moved from their nearest centre to keep k: he takes near centres as "
            f"possible, by m2 = {NEARLY_CRISP}"
        )
    if together:
        notes.append("he uses that masked records and originals belong together one to one")
    seen = weighing.together(law) if together else weighing.apart(law, scene.rows)
    found = Candidates.of_scene(
        scene,
        attack=f"most probable original, fuzzy microaggregation with {what}",
        notes=notes,
        present=seen["belief"] > 0,
        **seen,
    )
    return found.checked(
        scene.strict and law.kind != NEAREST, f"fuzzy microaggregation with {what} in these blocks"
    )


def _in_logarithms(scene: Scene, offsets: Mapping[Name, float]) -> Scene:
    """Replace columns by their logarithms, after adding a number; their signs are known."""
    if not offsets:
        return scene
    sides = [scene.sides.A.copy(), scene.sides.B.copy()]
    for name, offset in offsets.items():
        for side in sides if name in scene.sides.columns else ():
            j = scene.sides.columns.index(name)
            away = np.abs(side[:, j] + offset)
            side[:, j] = np.log(np.where(away == 0, 1.0, away))
    return replace(scene, sides=replace(scene.sides, A=sides[0], B=sides[1]))


def _law(m2: float | None, lambda2: float | None) -> Law:
    if m2 is not None and lambda2 is None:
        return power_law(m2)
    if lambda2 is not None and m2 is None:
        return entropy_law(lambda2)
    raise BadTableError("Give one of m2 and lambda2, as the table was masked.")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Weighing:
    """Both tables, prepared for the kernels; equal released records are weighed once.

    What he believes of each attacked record: fields of `Candidates`, each of shape (n,).
    """

    draws: Draws
    order: Integers  # the original at each place of `draws`
    at: Integers  # (n,) the place of each original
    truth: Integers
    combination: Integers  # (m,) the different released record that each is

    def apart(self, law: Law, rows: Integers) -> dict[str, Any]:
        """Weigh originals for each record on its own."""
        out = np.empty((len(self.draws.released), 5))
        wanted = np.unique(self.combination[rows])
        pieces = np.array_split(wanted, max(1, -(-len(wanted) // PIECE)))
        each(lambda piece: weigh_originals(self.draws, law, piece, out), pieces)
        most, total, entropy, size, equal = out[self.combination[rows]].T
        own = log_chances(self.draws, law, self.combination[rows], self.at[self.truth[rows]])
        found = np.isfinite(most)
        share = np.exp(np.where(found, own - np.where(found, total, 0.0), -np.inf))
        largest = np.exp(np.where(found, most - np.where(found, total, 0.0), -np.inf))
        right = found & (own >= np.where(found, most, 0.0) - EQUAL)
        return {
            "size": size.astype(np.int64),
            "chance": np.where(right, 1.0 / np.maximum(equal, 1.0), 0.0),
            "belief": np.where(np.isfinite(own), np.maximum(share, np.finfo(float).tiny), 0.0),
            "largest": largest,
            "effective": np.where(found, np.exp(entropy), 0.0),
        }

    def together(self, law: Law) -> dict[str, Any]:
        """Scale the probabilities of all pairs until they sum to one both ways."""
        n, many = len(self.order), np.bincount(self.combination).astype(np.float64)
        shares = np.empty((len(self.draws.released), n))  # of different records; others repeat them
        every = np.arange(n)

        def fill(i: int) -> None:
            logs = log_chances(self.draws, law, np.full(n, i), every)
            most = logs.max()
            shares[i] = np.exp(logs - most) if most > -np.inf else 0.0

        each(fill, range(len(shares)))
        _scale(shares, many)
        out = np.array([_summary(row) for row in shares]).reshape(-1, 4)
        largest, equal, entropy, size = out[self.combination].T
        own = shares[self.combination, self.at[self.truth]]
        logs = log_chances(self.draws, law, self.combination, self.at[self.truth])
        own = np.where(np.isfinite(logs), np.maximum(own, np.finfo(float).tiny), 0.0)
        return {
            "size": size.astype(np.int64),
            "chance": np.where((own > 0) & (own >= largest * (1 - EQUAL)), 1.0 / equal, 0.0),
            "belief": own,
            "largest": largest,
            "effective": np.where(size > 0, np.exp(entropy), 0.0),
        }


def _scale(shares: Floats, many: Floats) -> None:
    """Scale rows and columns to sum one, in place; row i stands for `many`[i] equal ones."""
    across, down = np.ones(len(shares)), np.ones(shares.shape[1])
    for _ in range(SWEEPS):
        totals = (many * across) @ shares
        down = np.divide(1.0, totals, out=np.ones_like(totals), where=totals > 0)
        rows = shares @ down
        ends = across * rows
        across = np.divide(1.0, rows, out=np.ones_like(rows), where=rows > 0)
        if np.abs(ends - 1)[rows > 0].max(initial=0.0) < CLOSE:
            break
    shares *= across[:, None]
    shares *= down


def _summary(shares: Floats) -> tuple[float, int, float, int]:
    """Return the largest share, how many equal it, the entropy, and how many are possible."""
    largest = float(shares.max())
    held = shares[shares > 0]
    equal = int((held >= largest * (1 - EQUAL)).sum())
    return largest, max(equal, 1), max(float(-(held * np.log(held)).sum()), 0.0), len(held)


def _weigh(scene: Scene, law: Law, centres: Sequence[Any] | None, scale: Any) -> _Weighing:
    blocks = [places for places, whole in zip(scene.blocks, scene.whole) if whole]
    if not blocks:
        raise AttackError(
            "The intruder knows no block of columns as a whole, so he cannot compute a degree. "
            "Name all columns of a block in known=, or none."
        )
    if centres is not None and len(centres) != len(scene.blocks):
        raise BadOptionError(
            "centres", f"{len(centres)} arrays", f"one for each of {len(scene.blocks)} blocks"
        )
    sides, flat = scene.sides, [j for places in blocks for j in places]
    wish = scale
    if isinstance(scale, dict):
        wish = {sides.columns[j]: scale.get(sides.columns[j]) for j in flat}
    measured = Scale.of(sides.B[:, flat], np.ones(scene.n), wish, [sides.columns[j] for j in flat])
    X, Y = measured.apply(sides.B[:, flat]), measured.apply(sides.A[:, flat])
    gaps = np.concatenate([np.isnan(sides.B[:, flat]), np.isnan(sides.A[:, flat])])
    cuts = np.cumsum([0, *(len(places) for places in blocks)])
    base, least = np.zeros(scene.n), np.empty((scene.n, len(blocks)))
    layers = np.concatenate([scene.strata, scene.strata[sides.truth]])
    given = [None] * len(scene.blocks) if centres is None else list(centres)
    for b, points in enumerate([p for p, whole in zip(given, scene.whole) if whole]):
        own = slice(cuts[b], cuts[b + 1])
        parts = number_equal_rows([layers, gaps[:, own]])
        if points is not None:
            points = measured.part(range(cuts[b], cuts[b + 1])).apply(np.asarray(points, float))
            Y[:, own] = _recognised(points, Y[:, own], parts)
        for part in np.unique(parts):
            here, there = parts[: scene.n] == part, parts[scene.n :] == part
            if here.any() and there.any():
                seen = Y[there, own] if points is None else points
                log, near = _common(X[here, own], np.unique(seen, axis=0), law)
                base[here] += log
                least[here, b] = near
    joint = number_equal_rows([np.concatenate([scene.like, scene.likes]), gaps])
    return _prepared(scene, X, Y, cuts, base, least, joint)


def _recognised(points: Floats, Y: Floats, parts: Integers) -> Floats:
    """Put the given centre, which is not rounded, in place of each released one."""
    if len(np.unique(parts)) > 1:
        raise BadOptionError("centres", "given", "no centres with strata or missing values")
    found: Floats = points[KDTree(points).query(Y)[1]]
    return found


def _common(X: Floats, centres: Floats, law: Law) -> tuple[Floats, Floats]:
    """Return what degrees of a record have in common, as a logarithm, and the least square."""
    field = Field.of(X, np.ones(len(X)), len(centres))
    outlook, _ = field.draw(field.inward(centres), field.law(law), np.full(len(X), -1.0))
    least = ((X - centres[outlook.drawn]) ** 2).sum(axis=1)
    logs = np.log(outlook.largest)  # the nearest has 1 / mass
    if law.kind == EXPONENTIAL:
        return logs + law.rate * least, least
    if law.kind == NEAREST:
        return np.zeros(len(X)), least
    return logs + law.rate * np.log(least + TINY), least


def _prepared(
    scene: Scene, X: Floats, Y: Floats, cuts: Integers, base: Floats, least: Floats, joint: Integers
) -> _Weighing:
    """Sort originals by what they agree in, and take equal released records together."""
    mine, theirs = joint[: scene.n], joint[scene.n :]
    order = np.argsort(mine, kind="stable")
    names, starts = np.unique(mine[order], return_index=True)
    place = np.minimum(np.searchsorted(names, theirs), len(names) - 1)
    part = np.where(names[place] == theirs, place, -1)
    _, leader, which = np.unique(
        number_equal_rows([part, Y]), return_index=True, return_inverse=True
    )
    at = np.empty(scene.n, dtype=np.int64)
    at[order] = np.arange(scene.n)
    draws = Draws(
        np.ascontiguousarray(X[order]),
        np.ascontiguousarray(Y[leader]),
        cuts.astype(np.int64),
        np.ascontiguousarray(base[order]),
        np.ascontiguousarray(least[order]),
        np.append(starts, scene.n).astype(np.int64),
        np.ascontiguousarray(part[leader]),
    )
    return _Weighing(draws=draws, order=order, at=at, truth=scene.sides.truth, combination=which)
