"""The attack on microaggregation in blocks: intersect what each block tells.

Equal released values of a block show its groups and their sizes. Either the intruder repeats the
grouping, and knows who is in each; or he works out who can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._parameters import EFFORT, FLAG, NONE, OneOf, Whole, parameters
from ..._types import Integers, Name, Truths
from ...exceptions import AttackError, BadOptionError
from ...grouping.checks import check_k
from ...kernels.candidates import in_all_lists
from ...schema import Schema
from ..linkage import drawn
from .candidates import Candidates
from .membership import Groups, possible_members
from .pairs import MOST_PAIRS, Pairs
from .scene import Scene, number_equal_rows, set_scene

__all__ = ["attack_microaggregation"]


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


def _visible(scene: Scene, places: list[int], k: int) -> Groups:
    """Read groups off the release: same stratum, same cells missing, same values."""
    A, truth = scene.sides.A[:, places], scene.sides.truth
    number = number_equal_rows([scene.strata[truth], A])
    sizes = np.bincount(number)
    if (small := int(sizes[sizes < k].sum())) > 0:
        named = ", ".join(str(scene.sides.columns[j]) for j in places)
        raise AttackError.no_such_values(
            named, f"microaggregation with k={k}", small, f"are shared by fewer than {k} records"
        )
    leader = np.unique(number, return_index=True)[1]
    return Groups(number=number, sizes=sizes, centres=A[leader], leader=leader)


def _possible(
    scene: Scene, places: list[int], groups: Groups, margin: int | None, scale: Any
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
