"""How many records any member of a family links, bounded: by cells, or by an integer programme.

*Cells*: best-first search of a space of parameters. Cells are halved until none can link more than
what was found; the largest bound of an open cell holds for the whole family at any time. Large
cells have few rows of each record, which makes a bound weaker and never wrong; small ones have all,
so that a proof is reached in the end. Where the bound stands still for Choquet integrals, a
programme takes half of the time that is left.

*Programme*, for Choquet integrals: z_i = 1 says that record i is linked; each of its rows then has
a product with θ of at least 0. All rows would be too many: a programme with some of them is solved,
the rows that its answer breaks join, and so on. With rows left out a programme promises too much,
never too little, so the bound of every one of them holds. It counts ties as links, and its answers
lie on them, as corners do: the member that counts is the one that keeps the records of an answer
linked by the widest margin. Where they tie everywhere, a second programme asks for a margin.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint

from ... import _clock
from ..._types import Floats, Integers, SmallIntegers
from ...kernels.cells import explore
from ...kernels.linkage import SLACK, TINY
from ...linear.rows import milp
from ...parallel import each
from ..aligned import AlignedTables
from .choquet import Choquet
from .families import Family, WeightedMean
from .search import PIECE, Competitors, rows_of, starts_of, tried

BATCH = 64  # cells that are searched before results are compared; not a matter of cores
BUDGET = 50_000  # rows looked at in one cell before it comes back
MANY = 50_000  # rows above which cells begin with few of them, those that are lowest at one of
SAMPLED = 48  # parameters. After the same time half as many records are left open (4,000 x 6), and
FULL = 1.3  # cells get all rows when they have so many records for each link, sooner costs much;
DEEP = 4  # or when they were halved so often for each parameter: then records that stay need them
STALLED = 30_000  # cells halved while the bound stays: then a programme is tried, once
HELD = 150_000_000  # rows held by open cells; beyond, cells that are nearly done come first
ROUNDING = 8 * float(np.finfo(np.float64).eps)
FIRST = 3  # rows of each record that a programme starts with
TOLERANCE = 1e-6  # what HiGHS may take for zero
# What the second programme asks of a scaled row. It only looks for members, the bound is not its
# own, so it need not be small; it must be above TOLERANCE.
MARGIN = 1e-5
SPAN = 1e-4  # of the largest number in a row: its scale is M, but no smaller than this
TIME = "the time limit was reached"


def ready() -> None:
    """Have the kernel ready, so that its compilation, once, is not taken for the proof's time."""
    no = np.empty(0, dtype=np.int64)
    one = np.zeros(1, np.int64)
    explore(np.zeros((1, 2)), one, np.eye(2), 0, 0, no, no, one, no, 0, 0, True)


def corners_of(member: Family) -> list[Floats]:
    """Return simplices that cover the parameters of a family.

    Weights are one simplex. Measures are cut by the order of their values (Stanley 1986): every
    order of the sets that never puts a larger set first is one simplex, its corners the measures
    that are 1 from some set on.
    """
    if not isinstance(member, Choquet):
        return [np.eye(member.d)]
    size = 1 << member.d
    found = []
    for rising in permutations(range(1, size - 1)):
        if any(later & one == later for one, later in combinations(rising, 2)):
            continue
        corners = np.zeros((size - 1, size))
        corners[:, size - 1] = 1.0
        for at, one in enumerate(rising):
            corners[: at + 1, one] = 1.0
        found.append(corners)
    return found


def decisive_rows(sides: AlignedTables, competitors: Competitors, member: Family) -> Floats:
    """Return rows whose product with θ is above zero wherever linkage may see a strict link.

    Linkage wants a competitor farther by SLACK and TINY; half of them is left to the intruder. A
    scan adds up the same squares; a tree those of values times roots of weights, so weighted means
    have an allowance for their rounding as well.
    """
    pieces = competitors.pieces(PIECE)  # small enough for the cache
    return np.vstack(each(lambda piece: _decisive_rows(sides, piece, member), pieces))


def _decisive_rows(sides: AlignedTables, competitors: Competitors, member: Family) -> Floats:
    rows = rows_of(sides, competitors, member, slack=SLACK / 2).matrix
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    if isinstance(member, Choquet):
        rows[:, -1] -= TINY / 2  # the measure of all variables is 1
        return np.ascontiguousarray(rows)
    rows -= TINY / 2
    if isinstance(member, WeightedMean) and sides.one_over is None:
        records, *facing = _facing(sides, competitors)
        A, own_B, their_B = sides.A[records], *(sides.B[one] for one in facing)
        slip = (np.abs(A) + np.abs(their_B)) * np.abs(A - their_B)
        slip += (np.abs(A) + np.abs(own_B)) * np.abs(A - own_B)
        rows += np.where(their_B == own_B, 0.0, ROUNDING * slip)
    return np.ascontiguousarray(rows)


def _facing(sides: AlignedTables, competitors: Competitors) -> list[Integers]:
    """Return, for each competitor, the masked record, its own original, and the competitor."""
    records = competitors.records[competitors.owner]
    return [records, sides.truth[records], competitors.which]


class _Cell(NamedTuple):
    """An open cell; cells compare by their bound, the largest first, then by age."""

    rank: int
    age: int
    corners: Floats
    whole: bool  # whether it has all rows that matter in it
    depth: int
    linked: int
    records: SmallIntegers
    groups: SmallIntegers  # the clique of each record
    sizes: SmallIntegers
    which: SmallIntegers


class Proof(NamedTuple):
    """What no member of a family exceeds, and how it was proved."""

    most: int
    member: Family | None  # that links more than what was learned
    method: str
    ended: str  # why it ended, where `most` is not reached
    cells: int = 0
    rows: int = 0


def by_cells(
    sides: AlignedTables,
    competitors: Competitors,
    classes: Integers,
    member: Family,
    links: int,
    until: float,
) -> Proof:
    """Halve cells until none can link more than what was found, or time is over."""
    rows, sizes = decisive_rows(sides, competitors, member), np.diff(competitors.starts)
    own_class = np.ascontiguousarray(classes[competitors.records])
    starts = starts_of(sizes)
    chosen = _lower_envelope(rows, starts) if len(rows) > MANY else np.ones(len(rows), dtype=bool)
    few = np.add.reduceat(chosen, starts[:-1]), np.flatnonzero(chosen)
    root = [some.astype(np.int32) for some in (np.arange(len(sizes)), own_class, *few)]
    most = reach = len(np.unique(own_class))
    method, moved, patience = "the space of parameters searched by cells", 0, STALLED
    all_rows, corners = bool(chosen.all()), corners_of(member)
    open_ = [_Cell(-most, age, one, all_rows, 0, 0, *root) for age, one in enumerate(corners)]
    born, held, cells, better = len(open_), 0, 0, None

    def explored(cell: _Cell) -> Any:
        if _clock.now() > until:  # the cell stays open
            return None
        own, which = starts_of(cell.sizes), cell.which.astype(np.int64)
        whole = (
            cell.whole or len(cell.records) <= FULL * links or cell.depth >= DEEP * rows.shape[1]
        )
        whole = whole or int(sizes[cell.records].sum()) <= MANY
        if whole and not cell.whole:  # few records are left: now with all their rows
            own = starts_of(sizes[cell.records])
            which = np.arange(own[-1]) + np.repeat(starts[cell.records] - own[:-1], np.diff(own))
        return whole, explore(
            rows, own_class, cell.corners, cell.depth, cell.linked, cell.records.astype(np.int64),
            cell.groups.astype(np.int64), own, which, links, BUDGET if whole else 1, whole,
        )  # fmt: skip

    while open_ and links < most and (now := _clock.now()) < until:
        if -open_[0].rank < reach:
            reach, moved = -open_[0].rank, cells
        elif isinstance(member, Choquet) and cells - moved > patience:
            begin = better if isinstance(better, Choquet) else member
            half, patience = (now + until) / 2, 2**62
            proof = by_programme(sides, competitors, classes, begin, links, half)
            most, method = min(most, proof.most), f"{method} and a {proof.method}"
            if proof.member is not None:
                links, better = tried(sides, proof.member).links, proof.member
        if held > HELD:
            open_.sort()
            batch, open_ = open_[-BATCH:], open_[:-BATCH]
        else:
            batch = [heapq.heappop(open_) for _ in range(min(BATCH, len(open_)))]
        held -= sum(len(cell.which) for cell in batch)
        batch = [cell for cell in batch if -cell.rank > links]
        for cell, answer in zip(batch, each(explored, batch)):
            if answer is None:
                heapq.heappush(open_, cell)
                continue
            whole, (seen, theta, halved, left) = answer
            cells += halved
            if seen > links:  # by its rows: count over all originals, as `link` does
                found = member.repair(theta)
                count = tried(sides, found).links
                if count > links:
                    links, better = count, found
            for bound, child in _children(left):
                if bound > links:
                    corners, *rest = child
                    fresh = _Cell(max(-bound, cell.rank), born, corners, whole, *rest)
                    heapq.heappush(open_, fresh)
                    born += 1
                    held += len(child[-1])
    most = max(links, min(most, -min(open_).rank if open_ else links))
    return Proof(most, better, method, TIME, cells, len(rows))


def _lower_envelope(rows: Floats, starts: Integers) -> Any:
    """Return which rows are the lowest of their record at one of some parameters.

    Only rows that are lowest somewhere decide; these few decide nearly as much.
    """
    random, d = np.random.default_rng(0), rows.shape[1]
    thetas = np.vstack([np.eye(d), random.dirichlet(np.ones(d), SAMPLED)]).T

    def lowest(first: int) -> Any:
        own = starts[first : first + PIECE + 1]
        level = rows[own[0] : own[-1]] @ thetas
        least = np.minimum.reduceat(level, own[:-1] - own[0])
        return (level == np.repeat(least, np.diff(own), axis=0)).any(axis=1)

    return np.concatenate(each(lowest, range(0, len(starts) - 1, PIECE)))


def _children(left: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield the bound and the fields of each cell that `explore` left open."""
    corners, depths, linked, bounds, row_ends, record_ends, which, *by_record = left
    for at in range(len(linked)):
        some = slice(record_ends[at], record_ends[at + 1])
        rows = which[row_ends[at] : row_ends[at + 1]]
        runs = [one.astype(np.int32) for one in (*(one[some] for one in by_record), rows)]
        yield int(bounds[at]), (corners[at].copy(), int(depths[at]), int(linked[at]), *runs)


def by_programme(
    sides: AlignedTables,
    competitors: Competitors,
    classes: Integers,
    member: Choquet,
    links: int,
    until: float,
) -> Proof:
    """Solve programmes until their bound is reached, no row left out is broken, or time is over.

    The first has the rows of each record that are lowest at the parameters of `member`.
    """
    records, starts, owner = competitors.records, competitors.starts, competitors.owner
    matrix = sparse.csr_matrix(rows_of(sides, competitors, member, slack=SLACK / 2).matrix)
    who, *facing = _facing(sides, competitors)
    own_squares, their_squares = (sides.differences(who, one) ** 2 for one in facing)
    # A monotone integral differs by no more than its integrands do.
    big = np.maximum(((1 + SLACK / 2) * own_squares - their_squares).max(axis=1), 0.0)
    own_class = classes[records]
    near = np.asarray(matrix @ member.theta)
    chosen = np.zeros(len(big), dtype=bool)
    for at in range(len(records)):
        some = slice(starts[at], starts[at + 1])
        chosen[starts[at] + np.argsort(near[some])[:FIRST]] = True
    peak = np.asarray(abs(matrix).max(axis=1).todense()).ravel()
    scale = np.maximum(np.maximum(big, SPAN * peak), np.finfo(np.float64).tiny)
    matrix, big = matrix.multiply(1 / scale[:, None]).tocsr(), big / scale
    most, nodes, size, better = len(np.unique(own_class)), 0, len(member.theta), None
    margin, ended = 0.0, ""
    while not ended and links < most:
        seconds = until - _clock.now()
        if seconds <= 0.05:
            ended = TIME
            break
        answer = _answer(
            member, matrix[chosen], big[chosen], owner[chosen], own_class, margin, seconds
        )
        nodes += int(getattr(answer, "mip_node_count", 0) or 0)
        bound = getattr(answer, "mip_dual_bound", None)
        if not margin and bound is not None and np.isfinite(bound):
            most = min(most, int(np.floor(-bound + TOLERANCE)))
        if answer.x is None:
            ended = TIME if answer.status == 1 else f"HiGHS gave no answer: {answer.message}"
            break
        claimed = (answer.x[-len(records) :] > 0.5)[owner]
        seconds = max(until - _clock.now(), 0.05)
        theta = _widest(member, matrix[chosen & claimed], answer.x[:size], seconds)
        found = member.repair(theta)
        count = tried(sides, found).links
        if count > links:
            links, better = count, found
        low = np.minimum(matrix @ answer.x[:size], matrix @ theta)
        broken = (low <= 0) & claimed & ~chosen
        if broken.any():
            chosen |= broken
            margin = 0.0
        elif answer.status != 0:
            ended = TIME
        elif not margin:
            margin = MARGIN
        else:
            ended = f"the bound counts ties; with a margin of {MARGIN:g}, no more are linked"
    text = f"mixed-integer programme with {int(chosen.sum()):,} of {len(big):,} rows"
    return Proof(most, better, text, ended, nodes, len(big))


def _widest(member: Choquet, matrix: sparse.csr_matrix, start: Floats, seconds: float) -> Floats:
    """Return the parameters whose least product with some rows is largest, or the start."""
    measure, bounds = constraints(member)
    rows, free = matrix.shape[0], measure.A.shape[1]
    if not rows:
        return start
    weights = matrix.copy()
    weights.resize(rows, free)
    blocks = [[weights, -np.ones((rows, 1))], [measure.A, None]]
    answer = milp(
        np.r_[np.zeros(free), -1.0],
        constraints=LinearConstraint(
            sparse.bmat(blocks, format="csr"),
            np.r_[np.zeros(rows), measure.lb],
            np.r_[np.full(rows, np.inf), measure.ub],
        ),
        bounds=Bounds(np.r_[bounds.lb, -np.inf], np.r_[bounds.ub, 1.0]),
        options={"time_limit": seconds},
    )
    return start if answer.x is None else np.asarray(answer.x[: len(start)])


def constraints(member: Choquet) -> tuple[LinearConstraint, Bounds]:
    """Return what makes θ, and helpers behind it, a measure: linear constraints, and bounds."""
    d, size = member.d, len(member.theta)
    if not member.additive:
        # `slack` is linear: its matrix has its values at the unit vectors as columns.
        matrix = np.column_stack([member.slack(unit) for unit in np.eye(size)])
        zero, endless = np.zeros(len(matrix)), np.full(len(matrix), np.inf)
        lower, upper = np.zeros(size), np.ones(size)
        upper[0], lower[-1] = 0.0, 1.0
        return LinearConstraint(sparse.csr_matrix(matrix), zero, endless), Bounds(lower, upper)
    # Helpers h_kl >= max(0, -m_kl): the mass of each variable covers what its pairs may take.
    pairs = size - d
    touches = (np.arange(d)[:, None, None] == np.array(np.triu_indices(d, 1))).any(axis=1)
    blocks = [
        [sparse.eye(d), None, sparse.csr_matrix(-1.0 * touches)],
        [None, sparse.eye(pairs), sparse.eye(pairs)],
        [np.ones((1, d)), np.ones((1, pairs)), None],
    ]
    low = np.r_[np.zeros(size), 1.0]
    high = np.r_[np.full(size, np.inf), 1.0]
    # Single masses are measures, at most 1; those of pairs lie between -1 and 1.
    lower = np.r_[np.zeros(d), -np.ones(pairs), np.zeros(pairs)]
    known = LinearConstraint(sparse.bmat(blocks, format="csr"), low, high)
    return known, Bounds(lower, np.ones(size + pairs))


def _answer(
    member: Choquet,
    matrix: sparse.csr_matrix,
    big: Floats,
    owner: Integers,
    classes: Integers,
    margin: float,
    seconds: float,
) -> Any:
    """Solve the programme with some rows: r θ >= margin where z = 1, r θ >= -M where z = 0."""
    measure, bounds = constraints(member)
    n_records, rows, free = len(classes), matrix.shape[0], measure.A.shape[1]
    weights = matrix.copy()
    weights.resize(rows, free)
    picks = sparse.coo_matrix((-big - margin, (np.arange(rows), owner)), shape=(rows, n_records))
    place = np.unique(classes, return_inverse=True)[1].reshape(-1)
    groups = sparse.coo_matrix((np.ones(n_records), (place, np.arange(n_records))))
    blocks = [[weights, picks], [measure.A, None], [None, groups]]
    low = np.r_[-big, measure.lb, np.full(groups.shape[0], -np.inf)]
    high = np.r_[np.full(rows, np.inf), measure.ub, np.ones(groups.shape[0])]
    return milp(
        np.r_[np.zeros(free), -np.ones(n_records)],
        constraints=LinearConstraint(sparse.bmat(blocks, format="csr"), low, high),
        integrality=np.r_[np.zeros(free), np.ones(n_records)],
        bounds=Bounds(np.r_[bounds.lb, np.zeros(n_records)], np.r_[bounds.ub, np.ones(n_records)]),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
