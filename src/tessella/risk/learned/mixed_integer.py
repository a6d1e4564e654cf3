"""The most links of a Choquet integral, bounded by a mixed-integer programme with few rows.

z_i = 1 says that record i is linked; each of its rows then has a product with θ of at least 0. All
rows would be too many: a programme with some of them is solved, the rows that its answer breaks
join, and so on. With rows left out a programme promises too much, never too little, so the bound of
every one of them holds. It counts ties as links, and may therefore stay above what is reached.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix, csr_matrix, hstack, vstack

from ..._types import Floats, Integers
from ...kernels.linkage import SLACK
from ..aligned import AlignedTables
from ..linkage import count_family
from .choquet import Choquet
from .distances import Competitors
from .family import Family

__all__ = ["Bound", "constraints", "solve"]


FIRST = 3  # rows of each record to start with
ROUNDING = 1e-6  # what HiGHS may take for zero


class Bound(NamedTuple):
    """What was proved, and the best member that came up."""

    most: int
    links: int
    member: Family | None
    method: str
    nodes: int


def solve(
    sides: AlignedTables,
    competitors: Competitors,
    classes: Integers,
    member: Choquet,
    start: Family,
    until: float,
) -> Bound:
    """Bound the links of a Choquet integral until time is over."""
    records, starts = competitors.records, competitors.starts
    owner = np.repeat(np.arange(len(records)), np.diff(starts))
    own = sides.A[records] - sides.B[sides.truth[records]]
    theirs = sides.A[records[owner]] - sides.B[competitors.which]
    matrix = (
        csr_matrix(member.features(theirs))
        - (1 + SLACK / 2) * csr_matrix(member.features(own))[owner]
    )
    # A monotone integral differs by no more than its integrands do.
    big = np.maximum(((1 + SLACK / 2) * own[owner] ** 2 - theirs**2).max(axis=1), 0.0)
    own_class = classes[records]
    near = np.asarray(matrix @ _theta(member, start))
    chosen = np.zeros(len(big), dtype=bool)
    for at in range(len(records)):
        some = slice(starts[at], starts[at + 1])
        chosen[starts[at] + np.argsort(near[some])[:FIRST]] = True
    most, nodes, best, best_member = len(np.unique(own_class)), 0, -1, None
    finished = False
    while not finished and until - time.perf_counter() > 0.05:
        answer = _answer(
            member, matrix[chosen], big[chosen], owner[chosen], own_class,
            max(until - time.perf_counter(), 0.05),
        )  # fmt: skip
        nodes += int(getattr(answer, "mip_node_count", 0) or 0)
        bound = getattr(answer, "mip_dual_bound", None)
        if bound is not None and np.isfinite(bound):
            most = min(most, int(np.floor(-bound + ROUNDING)))
        if answer.x is None:
            break
        size = len(member.theta)
        found = member.repair(answer.x[:size])
        nearer, tied = count_family(sides, found)(np.arange(len(sides.A)), 1)
        count = int(((nearer == 0) & (tied == 1)).sum())
        if count > best:
            best, best_member = count, found
        claimed = answer.x[-len(records) :] > 0.5
        broken = (matrix @ answer.x[:size] <= 0) & claimed[owner] & ~chosen
        finished = not broken.any()
        chosen |= broken
    text = f"mixed-integer programme with {int(chosen.sum()):,} of {len(big):,} rows"
    return Bound(most, best, best_member, text, nodes)


def _theta(member: Choquet, start: Family) -> Floats:
    if isinstance(start, Choquet) and start.additive == member.additive:
        return start.theta
    return member.theta


def constraints(member: Choquet) -> tuple[csr_matrix, Floats, Floats, tuple[Floats, Floats]]:
    """Return the constraints of a measure and how many helpers they need.

    Gives a matrix over θ and helpers, its lower and upper sides, and the bounds of θ and helpers.
    """
    d, size = member.d, len(member.theta)
    if not member.additive:
        sets = np.arange(size)
        pairs = [(s, s | (1 << k)) for k in range(d) for s in sets if not s >> k & 1]
        low, high = np.array(pairs).T
        at = np.arange(len(pairs))
        ones = np.ones(len(pairs))
        matrix = csr_matrix(
            coo_matrix(
                (np.r_[ones, -ones], (np.r_[at, at], np.r_[high, low])), shape=(len(pairs), size)
            )
        )
        lower, upper = np.zeros(size), np.ones(size)
        upper[0], lower[-1] = 0.0, 1.0
        return matrix, np.zeros(len(pairs)), np.full(len(pairs), np.inf), (lower, upper)
    # Helpers h_kl >= max(0, -m_kl): the mass of each variable covers what its pairs may take.
    first, second = np.triu_indices(d, 1)
    pairs_ = len(first)
    rows, columns, numbers = [], [], []
    for k in range(d):
        mine = np.flatnonzero((first == k) | (second == k))
        rows += [k] * (1 + len(mine))
        columns += [k, *(size + mine)]
        numbers += [1.0, *([-1.0] * len(mine))]
    for pair in range(pairs_):
        rows += [d + pair, d + pair]
        columns += [d + pair, size + pair]
        numbers += [1.0, 1.0]
    rows += [d + pairs_] * size
    columns += list(range(size))
    numbers += [1.0] * size
    matrix = csr_matrix(
        coo_matrix((numbers, (rows, columns)), shape=(d + pairs_ + 1, size + pairs_))
    )
    lower_side = np.r_[np.zeros(d + pairs_), 1.0]
    upper_side = np.r_[np.full(d + pairs_, np.inf), 1.0]
    # Single masses are measures, at most 1; those of pairs lie between -1 and 1.
    lower = np.r_[np.zeros(d), -np.ones(pairs_), np.zeros(pairs_)]
    return matrix, lower_side, upper_side, (lower, np.ones(size + pairs_))


def _answer(
    member: Choquet,
    matrix: csr_matrix,
    big: Floats,
    owner: Integers,
    classes: Integers,
    seconds: float,
) -> Any:
    """Solve the programme with some rows, each divided by its M."""
    known, low_side, high_side, (lower, upper) = constraints(member)
    n_records, rows = len(classes), matrix.shape[0]
    free = known.shape[1]
    scale = np.where(big > 0, big, 1.0)
    weights = csr_matrix(matrix.multiply(1 / scale[:, None]))
    picks = csr_matrix(
        coo_matrix((-(big > 0).astype(float), (np.arange(rows), owner)), shape=(rows, n_records))
    )
    gap = csr_matrix((rows, free - matrix.shape[1]))
    _, place = np.unique(classes, return_inverse=True)
    place = place.reshape(-1)
    groups = csr_matrix(coo_matrix((np.ones(n_records), (place, np.arange(n_records)))))
    everything = vstack(
        [
            hstack([weights, gap, picks]),
            hstack([known, csr_matrix((known.shape[0], n_records))]),
            hstack([csr_matrix((groups.shape[0], free)), groups]),
        ]
    )
    low = np.r_[-(big > 0).astype(float), low_side, np.full(groups.shape[0], -np.inf)]
    high = np.r_[np.full(rows, np.inf), high_side, np.ones(groups.shape[0])]
    return milp(
        np.r_[np.zeros(free), -np.ones(n_records)],
        constraints=LinearConstraint(csr_matrix(everything), low, high),
        integrality=np.r_[np.zeros(free), np.ones(n_records)],
        bounds=Bounds(np.r_[lower, np.zeros(n_records)], np.r_[upper, np.ones(n_records)]),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
