"""The attack on individual ranking: sizes and order of the released values tell the groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._parameters import EFFORT, parameters
from ..._types import Name
from ...exceptions import AttackError
from ...grouping.checks import check_k
from ...masking.perturbation import rows_of_strata
from ...schema import Schema
from .candidates import Candidates
from .pairs import Reach, candidates_in_windows
from .scene import Scene, set_scene

__all__ = ["attack_individual_ranking"]


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
                name, "individual ranking", abs(len(here) - len(seen)), f"are too many or few {why}"
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
            name, f"individual ranking with k={k}", small, f"are shared by fewer than {k} records"
        )
    return Reach(key=key, low=low, high=high)
