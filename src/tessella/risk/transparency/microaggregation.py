"""The attack on microaggregation in blocks: intersect what each block tells.

Equal released values of a block show its groups and their sizes. Either the intruder repeats the
grouping, and knows who is in each; or he works out who can be in a group of which only the mean
and the size are known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from ..._parameters import FLAG, NONE, OneOf, Whole, parameters
from ..._types import Floats, Integers, Truths
from ...exceptions import AttackError, BadOptionError
from ...grouping.base import check_k
from ...kernels.candidates import in_all_lists
from ...masking.selection import Scale
from .scene import MOST_PAIRS, Candidates, Pairs, Scene, number_equal_rows, set_scene

GROUPINGS = {
    "repeated": "he repeats the grouping, and knows who is in each group",
    "unknown": "he does not know the grouping, only centres and sizes of the groups",
}
LARGEST = 5000  # with more originals no bound on who can be in a group is worked out
STEPS = 100  # of the search for prices
SINGLE = 2.0**-23  # of a number's size: what rounding it to a float32 may change
ROOM = 1e-9  # of the numbers' size: what sums in floating point may lack


@parameters(grouping=[OneOf(GROUPINGS)], margin=[Whole(1), NONE], means=[FLAG])
def attack_microaggregation(
    original: Any,
    masked: Any,
    *,
    k: int,
    blocks: Any = None,
    grouping: str = "repeated",
    margin: int | None = None,
    means: bool = True,
    scale: Any = "zscore",
    **common: Any,
) -> Candidates:
    r"""Find the originals that each record of a microaggregated table can come from.

    The whole masked table is needed. Let :math:`S_b(i)` be the originals that can be in the group
    of masked record i in block b. Its candidates are :math:`\bigcap_b S_b(i)`. If the grouping is
    repeated, :math:`S_b(i)` is the group, the candidates are the records with the same released
    values, and the share of right guesses is the number of different released records, divided by
    n. If it is not known, original x is ruled out of a group of s records with mean c

    - where the s - 1 others cannot have the mean that is left for them: in some column, s c - x is
      below the sum of the s - 1 least or above the sum of the s - 1 largest originals;
    - where the loss is too small for it. Without any grouping he knows
      :math:`SSE = \sum_j |x_j|^2 - \sum_g s_g |c_g|^2`. For any prices :math:`p_g`,

      .. math:: SSE - \Bigl[\sum_j \min_g (|x_j - c_g|^2 + p_g) - \sum_g s_g p_g\Bigr]

      is what all records together can have above their cheapest groups, and no single one can
      have more. Prices are sought that make it small.

    Both hold for means without weights, with an allowance for rounding, and never lose the truth;
    the second one tells much in small tables and little in large ones.

    The records of a group share its categories as they share its numbers: both show the groups. A
    category is no mean, so categories rule nobody out of a group that is not known.

    References
    ----------
    J. Nin, J. Herranz and V. Torra (2008). On the disclosure risk of multivariate
    microaggregation. Data and Knowledge Engineering 67(3).

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk import attack
    >>> original = np.array([[1.0, 1.0], [2.0, 8.0], [8.0, 2.0], [9.0, 9.0]])
    >>> masked = np.array([[1.5, 1.5], [1.5, 8.5], [8.5, 1.5], [8.5, 8.5]])
    >>> attack(original, masked, "microaggregation", k=2, blocks=[[0], [1]]).single
    1.0
    >>> attack(original, masked, "microaggregation", k=2, blocks=[[0], [1]], known=[0]).size
    array([2, 2, 2, 2])
    """
    scene = set_scene(original, masked, blocks, categories=True, **common)
    scene.need_complete("The attack on microaggregation")
    k = check_k(k, scene.n)
    partly = len(scene.whole) - sum(scene.whole)
    bounded = grouping == "unknown" or partly > 0
    if bounded and margin is None and not means:
        raise BadOptionError(
            "margin", margin, "a number of nearest centres: for medians and weighted means it is "
            "not worked out who can be in a group",
        )  # fmt: skip
    everyone, notes = np.arange(scene.n), [GROUPINGS[grouping]]
    # The originals that agree in all that was not masked; the last list is empty.
    count = int(scene.like.max()) + 1
    chosen = np.where(scene.likes < 0, count, scene.likes)
    lists = [_Lists.of(scene.like, everyone, chosen, count + 1)]
    for places, whole in zip(scene.blocks, scene.whole):
        groups = _visible(scene, places, k)
        if grouping == "repeated" and whole:
            own = groups.number[np.argsort(scene.sides.truth)]
            members = own, everyone
        else:
            members = _possible_members(scene, places, groups, margin=margin, scale=scale)
        lists.append(_Lists.of(*members, groups.number, len(groups.sizes)))
    if partly:
        notes.append(f"blocks that he knows in part, and cannot group: {partly}")
    if bounded:
        notes.append(
            "ruled out is only what is impossible"
            if margin is None
            else f"centres beyond the {margin} nearest are taken for impossible; this is a guess"
        )
    sound = margin is None or not bounded
    if not sound:  # from sets without the truth, nothing follows for other records
        scene = replace(scene, effort="quick")
    found = _intersect(scene, lists, notes)
    return found.checked(scene.strict and sound, f"microaggregation with k={k} in these blocks")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Lists:
    """Lists of originals, ascending, and which of them each masked record takes."""

    members: Integers
    first: Integers
    chosen: Integers

    @classmethod
    def of(cls, lists: Integers, members: Integers, chosen: Integers, count: int) -> _Lists:
        """Sort pairs of list and member."""
        order = np.lexsort((members, lists))
        first = np.concatenate([[0], np.cumsum(np.bincount(lists, minlength=count))])
        return cls(members=members[order], first=first, chosen=chosen)


def _visible(scene: Scene, places: list[int], k: int) -> _ReleasedGroups:
    """Read groups off the release: same stratum, same cells missing, same values."""
    A, truth = scene.sides.A[:, places], scene.sides.truth
    number = number_equal_rows([scene.strata[truth], A])
    sizes = np.bincount(number)
    if (small := int(sizes[sizes < k].sum())) > 0:
        named = ", ".join(str(scene.sides.columns[j]) for j in places)
        method, why = f"microaggregation with k={k}", f"are shared by fewer than {k} records"
        raise AttackError.no_such_values(column=named, method=method, count=small, why=why)
    leader = np.unique(number, return_index=True)[1]
    return _ReleasedGroups(number=number, sizes=sizes, centres=A[leader], leader=leader)


@dataclass(frozen=True, kw_only=True, eq=False)
class _ReleasedGroups:
    """Groups that a release shows in one block."""

    number: Integers  # (m,) the group of each masked record
    sizes: Integers  # (groups,)
    centres: Floats  # (groups, d) as released, NaN where missing
    leader: Integers  # (groups,) a masked record of each


def _possible_members(
    scene: Scene, places: list[int], groups: _ReleasedGroups, *, margin: int | None, scale: Any
) -> tuple[Integers, Integers]:
    """Return pairs of group and original that are possible, or near, as two arrays.

    Part by part: strata and missing cells keep records apart. Codes of categories have no mean:
    with none but categories, all groups of a part are possible.
    """
    if margin is None and scene.n > LARGEST:
        raise BadOptionError(
            "margin", margin, f"a number of nearest centres: with more than {LARGEST:,} records it "
            "is not worked out who can be in a group",
        )  # fmt: skip
    gaps = np.concatenate([np.isnan(scene.sides.B[:, places]), np.isnan(groups.centres)])
    layer = scene.strata[scene.sides.truth[groups.leader]]
    parts = number_equal_rows([np.concatenate([scene.strata, layer]), gaps])
    numeric = np.array([scene.holds_numbers(j) for j in places])
    centres, gaps = groups.centres[:, numeric], gaps[:, numeric]
    places = [j for j, one in zip(places, numeric) if one]
    B = scene.sides.B[:, places]
    names = [scene.sides.columns[j] for j in places]
    half = _half_steps(B, scene.sides.A[:, places])
    wish = {n: scale[n] for n in names if n in scale} if isinstance(scale, dict) else scale
    measured = Scale.of(B, np.ones(scene.n), wish, names)
    lists, members = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for part in np.unique(parts):
        rows = np.flatnonzero(parts[: scene.n] == part)
        here = np.flatnonzero(parts[scene.n :] == part)
        if len(rows) == 0 or len(here) == 0:
            continue
        if not places:
            lists.append(np.tile(here, len(rows)))
            members.append(np.repeat(rows, len(here)))
            continue
        X, C = measured.apply(B[rows]), measured.apply(centres[here])
        step = np.where(gaps[rows[0]], 0.0, half / measured.unit)
        if margin is None:
            given = (X, C, groups.sizes[here], step)
            record, group = np.nonzero(_mean_is_left(*given) & _loss_is_left(*given))
        else:
            t = min(margin, len(here))
            near = np.asarray(KDTree(C).query(X, k=t)[1]).reshape(len(X), t)
            record, group = np.repeat(np.arange(len(X)), t), near.ravel()
        lists.append(here[group])
        members.append(rows[record])
    return np.concatenate(lists), np.concatenate(members)


def _half_steps(B: Floats, A: Floats) -> Floats:
    """Return how far released means may be from the exact ones: half of 1 if all are whole.

    Means that a float32 holds exactly were perhaps rounded to one.
    """
    whole = (np.isnan(A) | (np.round(A) == A)).all(axis=0)
    with np.errstate(over="ignore"):
        single = (np.isnan(A) | (A.astype(np.float32) == A)).all(axis=0) & ~whole
    size = np.nanmax(np.abs(np.concatenate([B, np.zeros((1, B.shape[1]))])), axis=0)
    steps: Floats = np.where(whole, 0.5, 0.0) + np.where(single, SINGLE, ROOM) * size
    return steps


def _mean_is_left(X: Floats, C: Floats, sizes: Integers, step: Floats) -> Truths:
    """Whether s - 1 originals can make up the rest of a group's sum, column by column."""
    allowed = np.ones((len(X), len(C)), dtype=bool)
    others = np.minimum(sizes - 1, len(X))
    for j in range(X.shape[1]):
        sums = np.concatenate([[0.0], np.cumsum(np.sort(X[:, j]))])
        least, most = sums[others], sums[-1] - sums[len(X) - others]
        room = sizes * step[j] + ROOM * np.abs(X[:, j]).sum()
        total = sizes * C[:, j]
        allowed &= (X[:, j, None] >= total - most - room) & (X[:, j, None] <= total - least + room)
    return allowed


def _loss_is_left(X: Floats, C: Floats, sizes: Integers, step: Floats) -> Truths:
    """Whether the loss suffices for a record to be so far from its centre."""
    if len(C) == 1:
        return np.ones((len(X), 1), dtype=bool)
    X, C = X - X.mean(axis=0), C - X.mean(axis=0)
    squares = float((X * X).sum())
    # With a rounded centre c' = c + e, the sum of |x - c'|^2 is that of |x|^2 less that of
    # s |c'|^2, plus 2 s e c', of which only |e| <= step is known.
    loss = squares - float(sizes @ (C * C).sum(axis=1)) + ROOM * squares
    loss += 2 * float(sizes @ (np.abs(C) @ step))
    cost = cdist(X, C, "sqeuclidean")
    prices, best, bound = np.zeros(len(C)), np.zeros(len(C)), -np.inf
    for number in range(STEPS):  # subgradient steps, in length the gap by the square (Polyak)
        priced = cost + prices
        cheapest = priced.argmin(axis=1)
        value = float(priced[np.arange(len(X)), cheapest].sum() - sizes @ prices)
        if value > bound:
            best, bound = prices, value
        crowd = np.bincount(cheapest, minlength=len(C)) - sizes
        size = float(crowd @ crowd)
        if size == 0 or loss <= bound:
            break
        prices = prices + (loss - value) / size * crowd * 0.98**number
    priced = cost + best
    above = priced - priced.min(axis=1, keepdims=True)
    allowed: Truths = above <= max(loss - bound, 0.0) + ROOM * squares
    return allowed


def _intersect(scene: Scene, lists: list[_Lists], notes: list[str]) -> Candidates:
    """Take the originals that all lists of a masked record have for its candidates."""
    offsets = np.cumsum([0, *(len(one.first) - 1 for one in lists)])
    chosen = np.column_stack([one.chosen + at for one, at in zip(lists, offsets)])
    members = np.concatenate([one.members for one in lists])
    counts = np.concatenate([np.diff(one.first) for one in lists])
    first = np.concatenate([[0], np.cumsum(counts)])
    rows, truth, none = scene.rows, scene.sides.truth, np.empty(0, dtype=np.int64)
    chosen = np.ascontiguousarray(chosen[rows])
    size = in_all_lists(members, first, chosen, none, none)
    holds = np.repeat(np.arange(len(counts)), counts) * scene.n + members
    inside = np.isin(chosen * scene.n + truth[rows, None], holds)
    present: Truths = np.logical_and.reduce(inside, axis=1)
    if scene.effort != "quick" and scene.all_attacked and size.sum() <= MOST_PAIRS:
        start = np.concatenate([[0], np.cumsum(size)])
        partner = np.empty(int(start[-1]), dtype=np.int64)
        in_all_lists(members, first, chosen, start, partner)
        pairs = Pairs.of(scene.n, start, partner)
        pairs.drop_impossible(None)
        size, present = pairs.sizes(), pairs.has(truth)
        notes = [*notes, "he uses that masked records and originals belong together one to one"]
    blocks = len(scene.blocks)
    attack = f"common members of groups in {blocks} block{'s' if blocks > 1 else ''}"
    return Candidates.of_sets(scene, size=size, present=present, attack=attack, notes=notes)
