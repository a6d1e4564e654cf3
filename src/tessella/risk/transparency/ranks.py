"""Attacks on columns that were masked one by one, by rank: rank swapping, individual ranking.

Each variable tells a window of values that a released value can come from; candidates are the
originals in the windows of all known variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..._parameters import FLAG, Number, parameters
from ..._types import Integers
from ...exceptions import AttackError, BadOptionError
from ...grouping.base import check_k
from ...kernels.candidates import Exchanges
from ...kernels.linkage import box_tree
from ...kernels.rank_windows import Windows, find_candidates
from ...kernels.tree import order_by_leaves
from ...masking.base import rows_of_strata
from ...masking.rank_swapping import window_of
from ...parallel import each
from .scene import MOST_PAIRS, Candidates, Pairs, Scene, set_scene

PIECE, BATCH = 512, 8  # masked records for a piece of work, pieces that are begun together


@parameters(percent=[Number(above=0, most=100)], everyone=[FLAG])
def attack_rank_swapping(
    original: Any, masked: Any, *, percent: float, everyone: bool = True, **common: Any
) -> Candidates:
    r"""Find the originals that each record of a rank-swapped table can come from.

    A released value y has the ranks l to u among the n originals of its variable (several if it
    is tied), and comes from a rank within :math:`w = \lfloor pn/100 \rfloor`: the candidates of a
    masked record are the originals whose ranks in every known variable v, or some of them if they
    are tied, are in :math:`[l_v - w, u_v + w]`. A value that is not tied did not stay where it was
    (`everyone`). With more than quick effort also pairs without their other half are dropped (if
    masked record i comes from original j, then in each variable j got y and gave x, so the masked
    record that has x must be able to come from the original that had y), and those that are in no
    one-to-one assignment. No step loses the truth.

    References
    ----------
    J. Nin, J. Herranz and V. Torra (2008). Rethinking rank swapping to decrease disclosure risk.
    Data and Knowledge Engineering 64(1).
    A. L. Dulmage and N. S. Mendelsohn (1958). Coverings of bipartite graphs. Canadian Journal of
    Mathematics 10.

    Examples
    --------
    Of six, percent=20 is one rank: 1 and 2 were exchanged, 3 and 4, 5 and 6.

    >>> import numpy as np
    >>> from tessella.risk import attack
    >>> original = np.array([[1.0, 3], [2, 1], [3, 5], [4, 2], [5, 6], [6, 4]])
    >>> masked = np.array([[2.0, 4], [1, 2], [4, 6], [3, 1], [6, 5], [5, 3]])
    >>> attack(original, masked, "rank swapping", percent=20, known=[0], effort="quick").expected
    1.6666666666666667
    >>> attack(original, masked, "rank swapping", percent=20).single
    1.0
    """
    scene = set_scene(original, masked, **common)
    ranked = [_Ranked(scene, j, percent, everyone) for j in scene.masked]
    found = _candidates(
        scene,
        [one.reach for one in ranked],
        attack=f"rank windows of {percent:g} %",
        note=f"he knows that ranks were swapped within {percent:g} % of n",
        swaps=_exchanges(ranked) if everyone and scene.complete else None,
    )
    return found.checked(scene.strict, f"rank swapping with percent={percent:g}")


def attack_individual_ranking(original: Any, masked: Any, *, k: int, **common: Any) -> Candidates:
    r"""Find the originals that each record can come from if columns were microaggregated apart.

    For individual ranking and for any microaggregation of single columns whose groups are runs
    of the sorted column, be they of fixed size or optimal. The whole masked table is needed.

    The means of runs ascend with them. Let :math:`y_1 < y_2 < \dots` be the released values and
    :math:`n_1, n_2, \dots` how often each is released: the records with :math:`y_r` are those with
    the ranks :math:`n_1 + \dots + n_{r-1} + 1` to :math:`n_1 + \dots + n_r`. Nothing else is
    needed: not k, not the rule by which the groups were cut. Groups whose values are equal once
    rounded count as one. Originals tied across the end of a group are candidates for both.

    References
    ----------
    V. Torra (2022). Guide to Data Privacy. Springer, chapter 6.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk import attack
    >>> original = np.array([[21, 1.0], [62, 3.0], [23, 9.0], [64, 5.0]])
    >>> masked = np.array([[22, 2.0], [63, 2.0], [22, 7.0], [63, 7.0]])
    >>> attack(original, masked, "individual ranking", k=2, known=[0]).size
    array([2, 2, 2, 2])
    >>> attack(original, masked, "individual ranking", k=2).single
    1.0
    """
    scene = set_scene(original, masked, **common)
    scene.need_complete("The attack on individual ranking")
    k = check_k(k, scene.n)
    found = _candidates(
        scene,
        [_runs(scene, j, k) for j in scene.masked],
        attack=f"groups of {k} or more in sorted columns",
        note="he knows that each column was microaggregated on its own",
    )
    return found.checked(scene.strict, f"individual ranking with k={k}")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Reach:
    """What one variable says: a key for each original, a window of keys for each masked record."""

    key: Integers  # (n,) 0 and above
    low: Integers  # (m,)
    high: Integers  # (m,) below low where no original is left
    never: Integers | None = None  # (m,) a key within the window that is not allowed, or -1


def _windows(scene: Scene, reaches: list[_Reach]) -> Windows:
    """Put what the variables say together, and that unmasked columns agree."""
    agree = _Reach(key=scene.like, low=scene.likes, high=np.where(scene.likes < 0, -2, scene.likes))
    if len(np.unique(scene.like)) > 1 or (scene.likes < 0).any():
        reaches = [*reaches, agree]
    keys = np.column_stack([reach.key for reach in reaches]).astype(np.float64)
    nothing = np.full(scene.m, -1)
    ends = [(r.low, r.high, nothing if r.never is None else r.never) for r in reaches]
    low, high, never = (np.column_stack(one).astype(np.float64) for one in zip(*ends))
    # Cut first along the variables that are widest in windows: they rule most originals out.
    wide = np.maximum((high - low).mean(axis=0), 0.0) + 1.0
    rows = order_by_leaves(np.ascontiguousarray((keys / wide).T.astype(np.float32)), len(reaches))
    tree = box_tree(keys, rows)
    return Windows(keys, tree, rows, low, high, never)


def _candidates(
    scene: Scene, reaches: list[_Reach], *, attack: str, note: str, swaps: Exchanges | None = None
) -> Candidates:
    """Count candidates in windows; with more than quick effort drop pairs that cannot be."""
    truth, notes = scene.sides.truth, [note]
    together = scene.effort != "quick" and scene.all_attacked
    windows = _windows(scene, reaches)
    counted, partner = _found(windows, truth, scene.rows, MOST_PAIRS if together else 0)
    size, present = counted[:, 0], counted[:, 1] > 0
    if together and len(partner) == size.sum():
        pairs = Pairs.of(scene.n, np.concatenate([[0], np.cumsum(size)]), partner)
        pairs.drop_impossible(swaps)
        size, present = pairs.sizes(), pairs.has(truth)
        notes.append("he uses that masked records and originals belong together one to one")
        if swaps is not None:
            notes.append("and that values were exchanged in twos")
    elif scene.effort != "quick":
        notes.append("each record on its own: a sample, or too many pairs to rule out more")
    return Candidates.of_sets(scene, size=size, present=present, attack=attack, notes=notes)


def _found(
    windows: Windows, truth: Integers, rows: Integers, most: int
) -> tuple[Integers, Integers]:
    """Count candidates, and list them while they are not too many; see `find_candidates`."""
    pieces = np.array_split(rows, max(1, -(-len(rows) // PIECE)))
    counted, listed = [], [np.empty(0, dtype=np.int64)]
    left = most
    for first in range(0, len(pieces), BATCH):
        batch = each(partial(find_candidates, windows, truth, left), pieces[first : first + BATCH])
        counted += [counts for counts, _ in batch]
        listed += [partner for _, partner in batch]
        left -= sum(int(counts[:, 0].sum()) for counts, _ in batch)
        if left < 0:  # too many: from here on they are only counted
            listed, left = listed[:1], 0
    return np.concatenate(counted), np.concatenate(listed)


class _Ranked:
    """One column in classes of tied values, numbered by stratum and value from 1; 0 is missing."""

    def __init__(self, scene: Scene, place: int, percent: float, everyone: bool) -> None:
        sides = scene.sides
        B, A, name = sides.B[:, place], sides.A[:, place], sides.columns[place]
        self.own = np.zeros(scene.n, dtype=np.int64)
        self.got = np.zeros(scene.m, dtype=np.int64)
        low, high = np.zeros(scene.m, dtype=np.int64), np.zeros(scene.m, dtype=np.int64)
        never = np.full(scene.m, -1)
        first, strange = 1, 0
        layer = scene.strata[sides.truth]
        for number, rows in enumerate(rows_of_strata(scene.strata)):
            here = rows[~np.isnan(B[rows])]
            seen = np.flatnonzero((layer == number) & ~np.isnan(A))
            if len(here) == 0:
                strange += len(seen)
                high[seen] = -1
                continue
            w = window_of(percent, len(here))
            if w < 1 or len(here) < 2:
                raise BadOptionError(
                    "percent", percent, f"more: of {len(here)} numbers of {name!r} it is less than "
                    "one rank",
                )  # fmt: skip
            values, at = np.unique(B[here], return_inverse=True)
            self.own[here] = first + at
            ends = np.concatenate([[0], np.cumsum(np.bincount(at))])  # ranks of each class
            of_rank = np.repeat(np.arange(len(values)), np.diff(ends))
            mine = np.minimum(np.searchsorted(values, A[seen]), len(values) - 1)
            strange += int((values[mine] != A[seen]).sum())
            self.got[seen] = first + mine
            lowest, highest = ends[mine], ends[mine + 1] - 1
            low[seen] = first + of_rank[np.maximum(lowest - w, 0)]
            high[seen] = first + of_rank[np.minimum(highest + w, len(here) - 1)]
            if everyone:  # at most one is left over, and it is among the last w ranks
                moved = (lowest == highest) & ((len(here) % 2 == 0) | (lowest < len(here) - w))
                never[seen[moved]] = first + mine[moved]
            first += len(values)
        if strange:
            why = "are not values of the original column"
            raise AttackError.no_such_values(
                column=name, method="rank swapping", count=strange, why=why
            )
        self.classes = first
        self.reach = _Reach(key=self.own, low=low, high=high, never=never)


def _exchanges(ranked: list[_Ranked]) -> Exchanges:
    """List who has each class of values, in the original and in the masked table."""
    width = max(one.classes for one in ranked)
    sides = {}
    for side in ("own", "got"):
        numbers = np.column_stack([getattr(one, side) for one in ranked])
        starts = np.zeros((len(ranked), width + 1), dtype=np.int64)
        for v in range(len(ranked)):
            starts[v, 1:] = np.cumsum(np.bincount(numbers[:, v], minlength=width))
        order = np.ascontiguousarray(np.argsort(numbers.T, axis=1, kind="stable"))
        sides[side] = (np.ascontiguousarray(np.where(numbers > 0, numbers, -1)), order, starts)
    own, got = sides["own"], sides["got"]
    return Exchanges(own[0], got[0], own[1], own[2], got[1], got[2])


def _runs(scene: Scene, place: int, k: int) -> _Reach:
    """Tell for each masked record the values of the run that its group is; key 0 is missing."""
    sides = scene.sides
    B, A, name = sides.B[:, place], sides.A[:, place], sides.columns[place]
    key, low = np.zeros(scene.n, dtype=np.int64), np.zeros(scene.m, dtype=np.int64)
    high, first, small = np.zeros(scene.m, dtype=np.int64), 1, 0
    layer = scene.strata[sides.truth]
    for number, rows in enumerate(rows_of_strata(scene.strata)):
        here = rows[~np.isnan(B[rows])]
        seen = np.flatnonzero((layer == number) & ~np.isnan(A))
        if len(here) != len(seen):
            why = f"{len(seen):,} numbers in a stratum where the original has {len(here):,}"
            why, off = f"are too many or few ({why})", abs(len(here) - len(seen))
            raise AttackError.no_such_values(
                column=name, method="individual ranking", count=off, why=why
            )
        if len(here) == 0:
            continue
        values, at = np.unique(B[here], return_inverse=True)
        key[here] = first + at
        of_rank = np.sort(at)
        _, run, sizes = np.unique(A[seen], return_inverse=True, return_counts=True)
        small += int(sizes[sizes < k].sum())
        ends = np.concatenate([[0], np.cumsum(sizes)])
        low[seen] = first + of_rank[ends[run]]
        high[seen] = first + of_rank[ends[run + 1] - 1]
        first += len(values)
    if small:
        method, why = f"individual ranking with k={k}", f"are shared by fewer than {k} records"
        raise AttackError.no_such_values(column=name, method=method, count=small, why=why)
    return _Reach(key=key, low=low, high=high)
