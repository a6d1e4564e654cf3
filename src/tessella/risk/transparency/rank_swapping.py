"""The attack on rank swapping: a released value comes from a rank within the window around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._parameters import EFFORT, FLAG, Number, parameters
from ..._types import Name
from ...exceptions import AttackError, BadOptionError
from ...kernels.candidates import Exchanges
from ...masking.perturbation import rows_of_strata
from ...masking.rank_swapping import window_of
from ...schema import Schema
from .candidates import Candidates
from .pairs import Reach, candidates_in_windows
from .scene import Scene, set_scene

__all__ = ["attack_rank_swapping"]


@parameters(percent=[Number(above=0, most=100)], everyone=[FLAG], effort=[EFFORT])
def attack_rank_swapping(
    original: Any,
    masked: Any,
    *,
    percent: float,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    columns: Any = None,
    strata: Any = None,
    schema: Schema | None = None,
    everyone: bool = True,
    effort: str = "standard",
    sample: int | None = None,
    random_state: int | None = None,
    strict: bool = True,
) -> Candidates:
    r"""Find the originals that each record of a rank-swapped table can come from.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The table that was masked, which the intruder has, and the one that is released. Row i
        belongs to row i unless `id` is given.
    percent : float
        How far the ranks of exchanged numbers may be apart, in per cent of n; see `RankSwapping`.
    known : sequence of names, optional
        The variables that he knows; by default all that both tables have.
    id : name, optional
        A column of both tables that says which records belong together. The masked table may then
        have fewer records.
    columns : sequence of names, optional
        The columns that were masked; by default all columns of numbers. A known column that is
        not among them was released as it is, and must agree.
    strata : name, list of names or array-like of shape (n,), optional
        As for `RankSwapping`: numbers were exchanged within strata. He knows the strata.
    schema : Schema, optional
        Says which numbers are categories and which values are missing.
    everyone : bool, default True
        Numbers were exchanged in twos, and no number was left where it is but one of an odd
        number, as `RankSwapping` does it. False uses no more than the window.
    effort : {"quick", "standard", "thorough"}
        Windows, record by record; or, with more than quick effort, also what follows for all
        records together, see Notes.
    sample : int, optional
        Attack so many masked records, drawn at random, each on its own, and give an interval.
    random_state : int, optional
        Seed of that draw.
    strict : bool, default True
        Refuse tables that cannot come from the method with these parameters. With False, `covered`
        tells the share of records whose true original is among the candidates.

    Returns
    -------
    Candidates

    Notes
    -----
    A released value y has the ranks l to u among the n originals of its variable (several if it
    is tied), and comes from a rank within :math:`w = \lfloor pn/100 \rfloor`: the candidates of a
    masked record are the originals whose ranks in every known variable v, or some of them
    if they are tied, are in

    .. math:: [l_v - w, u_v + w].

    A value that is not tied did not stay where it was (`everyone`). With standard effort also

    - **exchanges**: if masked record i comes from original j, then in each variable j got y and
      gave x, so the original of y must have got x: the masked record that has x must be able to
      come from the original that had y. Pairs without this other half are dropped, again and
      again until none is left to drop.
    - **one to one**: pairs that are in no assignment of all masked records to different
      originals are dropped.

    No step loses the truth. With more than 20,000,000 pairs only windows are used.

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
    scene = set_scene(
        original, masked, known=known, id=id, schema=schema, columns=columns, strata=strata
    )
    ranked = [_Ranked(scene, j, percent, everyone) for j in scene.masked]
    together = everyone and scene.complete
    found = candidates_in_windows(
        scene,
        [one.reach for one in ranked],
        effort=effort,
        sample=sample,
        random_state=random_state,
        attack=f"rank windows of {percent:g} %",
        notes=(f"he knows that ranks were swapped within {percent:g} % of n",),
        exchanges=_exchanges(ranked) if together else None,
    )
    return found.checked(strict, f"rank swapping with percent={percent:g}")


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
            raise AttackError.no_such_values(
                name, "rank swapping", strange, "are not values of the original column"
            )
        self.classes = first
        self.reach = Reach(key=self.own, low=low, high=high, never=never)


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
