"""The attack on rank swapping: a released value comes from a rank within the window around it.

Pairs of masked record and original that can be the same, and the ways to rule pairs out.

Every way is sound: a pair is dropped only if no assignment of masked records to originals, one to
one, that agrees with the release has it. The truth is such an assignment, so it is never lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from ..._parameters import EFFORT, FLAG, Number, parameters
from ..._types import Integers, Name, Truths
from ...exceptions import AttackError, BadOptionError
from ...kernels.candidates import (
    Exchanges,
    Windows,
    drop_taken,
    drop_unanswered,
    find_candidates,
)
from ...masking.perturbation import rows_of_strata
from ...masking.rank_swapping import window_of
from ...parallel import each
from ...schema import Schema
from ..linkage import drawn
from .scene import Candidates, Scene, set_scene

__all__ = [
    "EFFORTS",
    "Pairs",
    "Reach",
    "attack_rank_swapping",
    "candidates_in_windows",
    "windows_of",
]

EFFORTS = ("quick", "standard")
PIECE, BATCH = 512, 8  # masked records for a piece of work, pieces that are begun together
MOST_PAIRS = 20_000_000  # as many can be listed, in 180 MB


@dataclass(frozen=True, kw_only=True, eq=False)
class Reach:
    """What one variable says: a key for each original, a window of keys for each masked record."""

    key: Integers  # (n,) 0 and above
    low: Integers  # (m,)
    high: Integers  # (m,) below low where no original is left
    never: Integers | None = None  # (m,) a key within the window that is not allowed, or -1


@dataclass(eq=False)
class Pairs:
    """Possible pairs, by masked record; see `kernels.candidates`."""

    n: int
    start: Integers
    partner: Integers
    alive: Truths

    @classmethod
    def of(cls, n: int, start: Integers, partner: Integers) -> Pairs:
        """Take all listed pairs for possible."""
        return cls(n, start, partner, np.ones(len(partner), dtype=bool))

    def sizes(self) -> Integers:
        """Count the originals that are left for each masked record."""
        total = np.concatenate([[0], np.cumsum(self.alive)])
        counts: Integers = total[self.start[1:]] - total[self.start[:-1]]
        return counts

    def has(self, truth: Integers) -> Truths:
        """Say for each masked record whether an original is still possible."""
        rows = np.repeat(np.arange(len(truth)), np.diff(self.start))
        hit = self.alive & (self.partner == truth[rows])
        return np.bincount(rows[hit], minlength=len(truth)) > 0

    def settle(self, exchanges: Exchanges | None) -> None:
        """Drop pairs until no reason is left to drop more."""
        self._propagate(exchanges)
        while self._keep_matched():
            if not self._propagate(exchanges):
                break

    def _propagate(self, exchanges: Exchanges | None) -> int:
        total = 0
        while True:
            dropped = drop_taken(self.start, self.partner, self.alive, self.n)
            if exchanges is not None:
                dropped += drop_unanswered(self.start, self.partner, self.alive, exchanges)
            if not dropped:
                return total
            total += dropped

    def _keep_matched(self) -> bool:
        """Drop pairs that are in no matching of all masked records; say whether there were any.

        With one such matching M, the pair (i, j) is in another one if and only if j is i's, or an
        alternating way leads from the owner of j back to i or to an original that nobody owns: if
        and only if i and that owner are in one strong component of the graph i -> owner of j
        (Dulmage and Mendelsohn 1958; Tassa 2012), where all who reach a free original go on to
        everybody.
        """
        m = len(self.start) - 1
        rows = np.repeat(np.arange(m), np.diff(self.start))[self.alive]
        columns = self.partner[self.alive]
        graph = csr_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(m, self.n))
        match = maximum_bipartite_matching(graph, perm_type="column")
        if (match < 0).any():  # the parameters are wrong: nothing follows from them
            return False
        owner = np.full(self.n, m)  # m stands for nobody
        owner[match] = np.arange(m)
        source, target = rows, owner[columns]
        if m < self.n:
            source = np.concatenate([source, np.full(m, m)])
            target = np.concatenate([target, np.arange(m)])
        ones = np.ones(len(source), dtype=np.int8)
        steps = csr_array((ones, (source, target)), shape=(m + 1, m + 1))
        part = connected_components(steps, directed=True, connection="strong")[1]
        possible = part[rows] == part[owner[columns]]
        self.alive[np.flatnonzero(self.alive)[~possible]] = False
        return not possible.all()


def windows_of(scene: Scene, reaches: list[Reach]) -> Windows:
    """Put what the variables say together, and that unmasked columns agree."""
    agree = Reach(key=scene.like, low=scene.likes, high=np.where(scene.likes < 0, -2, scene.likes))
    if len(np.unique(scene.like)) > 1 or (scene.likes < 0).any():
        reaches = [*reaches, agree]
    keys = np.column_stack([reach.key for reach in reaches])
    width = int(keys.max()) + 2
    below = np.zeros((len(reaches), width), dtype=np.int64)
    for v, reach in enumerate(reaches):
        below[v, 1:] = np.cumsum(np.bincount(reach.key, minlength=width - 1))
    nothing = np.full(scene.m, -1)
    return Windows(
        np.ascontiguousarray(keys),
        np.ascontiguousarray(np.argsort(keys.T, axis=1, kind="stable")),
        below,
        np.ascontiguousarray(np.column_stack([reach.low for reach in reaches])),
        np.ascontiguousarray(np.column_stack([reach.high for reach in reaches])),
        np.ascontiguousarray(
            np.column_stack([nothing if r.never is None else r.never for r in reaches])
        ),
    )


def candidates_in_windows(
    scene: Scene,
    reaches: list[Reach],
    *,
    effort: str,
    sample: int | None,
    random_state: int | None,
    attack: str,
    notes: tuple[str, ...],
    exchanges: Exchanges | None = None,
) -> Candidates:
    """Count candidates in windows; with standard effort also drop pairs that cannot be."""
    rows, truth = drawn(scene.m, sample, random_state), scene.sides.truth
    windows = windows_of(scene, reaches)
    together = effort != "quick" and len(rows) == scene.m
    counted, partner = _found(windows, truth, rows, MOST_PAIRS if together else 0)
    size, present = counted[:, 0], counted[:, 1] > 0
    if together and len(partner) == size.sum():
        pairs = Pairs.of(scene.n, np.concatenate([[0], np.cumsum(size)]), partner)
        pairs.settle(exchanges)
        size, present = pairs.sizes(), pairs.has(truth)
        notes = (*notes, "he uses that masked records and originals belong together one to one")
        if exchanges is not None:
            notes = (*notes, "and that values were exchanged in twos")
    elif effort != "quick":
        notes = (*notes, "each record on its own: a sample, or too many pairs to rule out more")
    return Candidates.of_sets(
        size=size,
        present=present,
        attacked=rows,
        truth=truth[rows],
        n_originals=scene.n,
        n_masked=scene.m,
        attack=attack,
        assumptions=(*scene.notes, *notes),
    )


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
                column=name,
                method="rank swapping",
                count=strange,
                why="are not values of the original column",
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
