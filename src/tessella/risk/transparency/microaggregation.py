"""The attack on microaggregation in blocks: intersect what each block tells.

Equal released values of a block show its groups and their sizes. Either the intruder repeats the
grouping, and knows who is in each; or he works out who can be.

The attack on individual ranking: sizes and order of the released values tell the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._parameters import EFFORT, FLAG, NONE, OneOf, Whole, parameters
from ..._types import Integers, Name, Truths
from ...exceptions import AttackError, BadOptionError
from ...grouping.base import check_k
from ...kernels.candidates import in_all_lists
from ...masking.perturbation import rows_of_strata
from ...schema import Schema
from ..linkage import drawn
from .rank_swapping import MOST_PAIRS, Pairs, Reach, candidates_in_windows
from .scene import Candidates, ReleasedGroups, Scene, number_equal_rows, possible_members, set_scene

__all__ = ["attack_individual_ranking", "attack_microaggregation"]


@parameters(effort=[EFFORT])
def attack_individual_ranking(
    original: Any,
    masked: Any,
    *,
    k: int,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    columns: Any = None,
    strata: Any = None,
    schema: Schema | None = None,
    effort: str = "standard",
    sample: int | None = None,
    random_state: int | None = None,
    strict: bool = True,
) -> Candidates:
    r"""Find the originals that each record can come from if columns were microaggregated apart.

    For individual ranking and for any microaggregation of single columns whose groups are runs
    of the sorted column, be they of fixed size or optimal.

    Parameters
    ----------
    original, masked, known, id, columns, strata, schema, effort, sample, random_state, strict
        As for `attack_rank_swapping`; the whole masked table is needed.
    k : int
        The least number of records that share a value of a column.

    Returns
    -------
    Candidates

    Notes
    -----
    Groups are runs of the sorted column, so their means ascend with them. Let :math:`y_1 < y_2 <
    \dots` be the released values and :math:`n_1, n_2, \dots` how often each is released: the
    records with :math:`y_r` are those with the ranks

    .. math:: n_1 + \dots + n_{r-1} + 1, \; \dots, \; n_1 + \dots + n_r.

    Nothing else is needed: not k, not the rule by which the groups were cut. Groups whose values
    are equal once rounded count as one. Originals tied across the end of a group are candidates
    for both. The candidates of a record are those that all known variables allow; with
    standard effort without those that are in no one-to-one assignment.

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
    scene = set_scene(
        original, masked, known=known, id=id, schema=schema, columns=columns, strata=strata
    )
    scene.need_complete("The attack on individual ranking")
    k = check_k(k, scene.n)
    found = candidates_in_windows(
        scene,
        [_runs(scene, j, k) for j in scene.masked],
        effort=effort,
        sample=sample,
        random_state=random_state,
        attack=f"groups of {k} or more in sorted columns",
        notes=("he knows that each column was microaggregated on its own",),
    )
    return found.checked(strict, f"individual ranking with k={k}")


def _runs(scene: Scene, place: int, k: int) -> Reach:
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
            why = f"({len(seen):,} numbers in a stratum where the original has {len(here):,})"
            raise AttackError.no_such_values(
                column=name,
                method="individual ranking",
                count=abs(len(here) - len(seen)),
                why=f"are too many or few {why}",
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
        raise AttackError.no_such_values(
            column=name,
            method=f"individual ranking with k={k}",
            count=small,
            why=f"are shared by fewer than {k} records",
        )
    return Reach(key=key, low=low, high=high)


GROUPINGS = {
    "repeated": "he repeats the grouping, and knows who is in each group",
    "unknown": "he does not know the grouping, only centres and sizes of the groups",
}
LARGEST = 5000  # with more originals no bound on who can be in a group is worked out


@parameters(grouping=[OneOf(GROUPINGS)], margin=[Whole(1), NONE], means=[FLAG], effort=[EFFORT])
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
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    columns: Any = None,
    strata: Any = None,
    schema: Schema | None = None,
    effort: str = "standard",
    sample: int | None = None,
    random_state: int | None = None,
    strict: bool = True,
) -> Candidates:
    r"""Find the originals that each record of a microaggregated table can come from.

    Parameters
    ----------
    original, masked, known, id, columns, strata, schema, effort, sample, random_state
        As for `attack_rank_swapping`; the whole masked table is needed.
    k : int
        The least number of records in a group.
    blocks : None, int or list of lists of names
        Columns that were grouped apart, as for `Microaggregation`.
    grouping : {"repeated", "unknown"}
        Whether he can repeat the grouping: methods such as MDAV are not random, and who has
        the original and the parameters gets the same groups. A block of which he knows only
        some columns is always unknown.
    margin : int, optional
        For unknown groupings: an original may be in a group only if the group's centre is among so
        many nearest centres. **This may lose the truth**, and `covered` tells how often. By
        default an original may be in a group unless that is proved impossible, see Notes.
    means : bool, default True
        Released values are means without weights; False for medians and weighted means, for which
        nothing is proved, so that unknown groupings need a `margin`.
    scale : {"zscore", "range", None} or mapping of name to number
        As for `Microaggregation`: the distance in which centres are near.
    strict : bool, default True
        Refuse tables that cannot come from microaggregation with these parameters. A `margin` is
        not refused.

    Returns
    -------
    Candidates

    Notes
    -----
    Let :math:`S_b(i)` be the originals that can be in the group of masked record i in block b. Its
    candidates are :math:`\bigcap_b S_b(i)`. If the grouping is repeated, :math:`S_b(i)` is the
    group, the candidates are the records with the same released values, and the share
    of right guesses is the number of different released records, divided by n.

    If it is not known, original x is ruled out of a group of s records with mean c

    - where the s - 1 others cannot have the mean that is left for them: in some column, s c - x is
      below the sum of the s - 1 least or above the sum of the s - 1 largest originals;
    - where the loss is too small for it. Without any grouping he knows
      :math:`SSE = \sum_j |x_j|^2 - \sum_g s_g |c_g|^2`. For any prices :math:`p_g`,

      .. math:: SSE - \Bigl[\sum_j \min_g (|x_j - c_g|^2 + p_g) - \sum_g s_g p_g\Bigr]

      is what all records together can have above their cheapest groups, and no single one can
      have more. Prices are sought that make it small.

    Both hold for means without weights, with an allowance for rounding, and never lose the truth;
    the second one tells much in small tables and little in large ones.

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
    scene = set_scene(
        original, masked, known=known, id=id, schema=schema, columns=columns, strata=strata,
        blocks=blocks,
    )  # fmt: skip
    scene.need_complete("The attack on microaggregation")
    k = check_k(k, scene.n)
    partly = len(scene.whole) - sum(scene.whole)
    bounded = grouping == "unknown" or partly > 0
    if bounded and margin is None and not means:
        raise BadOptionError(
            "margin", margin, "a number of nearest centres: for medians and weighted means it is "
            "not worked out who can be in a group",
        )  # fmt: skip
    lists, notes = [_agreement(scene)], [GROUPINGS[grouping]]
    for places, whole in zip(scene.blocks, scene.whole):
        groups = _visible(scene, places, k)
        if grouping == "repeated" and whole:
            own = groups.number[np.argsort(scene.sides.truth)]
            lists.append(_Lists.of(own, np.arange(scene.n), groups.number, len(groups.sizes)))
        else:
            lists.append(_possible(scene, places, groups, margin, scale))
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
        effort = "quick"
    found = _intersect(scene, lists, effort, drawn(scene.m, sample, random_state), notes)
    return found.checked(strict and sound, f"microaggregation with k={k} in these blocks")


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


def _agreement(scene: Scene) -> _Lists:
    """List the originals that agree in all that was not masked; the last list is empty."""
    count = int(scene.like.max()) + 1
    chosen = np.where(scene.likes < 0, count, scene.likes)
    return _Lists.of(scene.like, np.arange(scene.n), chosen, count + 1)


def _visible(scene: Scene, places: list[int], k: int) -> ReleasedGroups:
    """Read groups off the release: same stratum, same cells missing, same values."""
    A, truth = scene.sides.A[:, places], scene.sides.truth
    number = number_equal_rows([scene.strata[truth], A])
    sizes = np.bincount(number)
    if (small := int(sizes[sizes < k].sum())) > 0:
        named = ", ".join(str(scene.sides.columns[j]) for j in places)
        raise AttackError.no_such_values(
            column=named,
            method=f"microaggregation with k={k}",
            count=small,
            why=f"are shared by fewer than {k} records",
        )
    leader = np.unique(number, return_index=True)[1]
    return ReleasedGroups(number=number, sizes=sizes, centres=A[leader], leader=leader)


def _possible(
    scene: Scene, places: list[int], groups: ReleasedGroups, margin: int | None, scale: Any
) -> _Lists:
    """List who can be in each group, part by part: strata and missing cells keep records apart."""
    if margin is None and scene.n > LARGEST:
        raise BadOptionError(
            "margin", margin, f"a number of nearest centres: with more than {LARGEST:,} records it "
            "is not worked out who can be in a group",
        )  # fmt: skip
    lists, members = possible_members(scene, places, groups, margin=margin, scale=scale)
    return _Lists.of(lists, members, groups.number, len(groups.sizes))


def _intersect(
    scene: Scene, lists: list[_Lists], effort: str, rows: Integers, notes: list[str]
) -> Candidates:
    offsets = np.cumsum([0, *(len(one.first) - 1 for one in lists)])
    chosen = np.column_stack([one.chosen + at for one, at in zip(lists, offsets)])
    members = np.concatenate([one.members for one in lists])
    counts = np.concatenate([np.diff(one.first) for one in lists])
    first = np.concatenate([[0], np.cumsum(counts)])
    truth, none = scene.sides.truth, np.empty(0, dtype=np.int64)
    chosen = np.ascontiguousarray(chosen[rows])
    size = in_all_lists(members, first, chosen, none, none)
    holds = np.repeat(np.arange(len(counts)), counts) * scene.n + members
    inside = np.isin(chosen * scene.n + truth[rows, None], holds)
    present: Truths = np.logical_and.reduce(inside, axis=1)
    if effort == "standard" and len(rows) == scene.m and size.sum() <= MOST_PAIRS:
        start = np.concatenate([[0], np.cumsum(size)])
        partner = np.empty(int(start[-1]), dtype=np.int64)
        in_all_lists(members, first, chosen, start, partner)
        pairs = Pairs.of(scene.n, start, partner)
        pairs.settle(None)
        size, present = pairs.sizes(), pairs.has(truth)
        notes = [*notes, "he uses that masked records and originals belong together one to one"]
    blocks = len(scene.blocks)
    return Candidates.of_sets(
        size=size,
        present=present,
        attacked=rows,
        truth=truth[rows],
        n_originals=scene.n,
        n_masked=scene.m,
        attack=f"common members of groups in {blocks} block{'s' if blocks > 1 else ''}",
        assumptions=(*scene.notes, *notes),
    )
