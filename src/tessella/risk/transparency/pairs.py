"""Pairs of masked record and original that can be the same, and the ways to rule pairs out.

Every way is sound: a pair is dropped only if no assignment of masked records to originals, one to
one, that agrees with the release has it. The truth is such an assignment, so it is never lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from ..._types import Integers, Truths
from ...kernels.candidates import (
    Exchanges,
    Windows,
    drop_taken,
    drop_unanswered,
    find_candidates,
)
from ...parallel import each
from ..linkage import drawn
from .candidates import Candidates
from .scene import Scene

__all__ = ["EFFORTS", "Pairs", "Reach", "candidates_in_windows", "windows_of"]


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
