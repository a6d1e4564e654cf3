"""The worst case, certified: no distance of a family links more records than `most`.

`learn` finds a distance that links many records. `certify` shows how many more any other could: by
halving the space of parameters, cell by cell, until no cell can link more than what was found
(weighted mean, OWA, Choquet integral of up to three variables), or by a mixed-integer programme
(Choquet integral of more). Whenever time is over, what is proved so far stands.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..exceptions import OutOfRangeError
from ..kernels.cells import explore
from ..kernels.linkage import SLACK
from ..parallel import each
from .choquet import Choquet
from .distances import OWA, WeightedMean
from .family import Family
from .learning import ALL_COMPETITORS, LOWER, Learned, learn
from .linkage import Measure, count_family, linkage
from .programme import solve
from .rows import Competitors, least_competitors
from .sides import Sides, read_sides

__all__ = ["Certified", "certify"]

Name = Hashable
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BY_CELLS = 3  # variables of a Choquet integral up to which its measures are searched by cells
BATCH = 64  # cells that are searched before results are compared; not a matter of cores
BUDGET = 50_000  # rows looked at in one cell before it comes back
HELD = 150_000_000  # rows held by open cells; beyond, cells that are nearly done come first
ROUNDING = 8 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True, repr=False)
class Certified(Learned):
    """What the best distance found links, and what none of its family can exceed.

    Besides the fields of `Learned`:

    Parameters
    ----------
    most : int
        Proved: no member of the family links more records strictly.
    method : str
        How it was proved.
    cells : int
        Cells that were halved, or nodes of the programme.
    rows : int
        Pairs of a record and a competitor that could decide.
    seconds : float
        The time of the proof, without learning.
    """

    most: int
    method: str
    cells: int
    rows: int
    seconds: float

    @property
    def gap(self) -> float:
        """The share of records that are neither linked nor proved to be out of reach."""
        return (self.most - self.links) / self.n

    @property
    def proved(self) -> bool:
        """Whether no member of the family links more records strictly."""
        return self.most == self.links

    def __str__(self) -> str:
        if self.proved:
            said = f"{self.links:,} of {self.n:,} records linked strictly, proved to be the most"
        else:
            said = (
                f"{self.links:,} of {self.n:,} records linked strictly, at most {self.most:,} "
                f"(gap {100 * self.gap:.1f} %)"
            )
        return f"{said}: {self.attack}"

    __repr__ = __str__

    def explain(self) -> str:
        """Say what is proved and how, then what `Learned` says."""
        how = f"- {self.method}; {self.cells:,} cells, {self.rows:,} rows, {self.seconds:.1f} s"
        lines = [str(self), how, *(f"- {line}" for line in self.assumptions)]
        lines += [f"- {name} links {100 * share:.1f} %" for name, share in self.simpler.items()]
        if self.held_out is not None:
            lines.append(f"- on records held out: {self.held_out}")
        return "\n".join(lines)


def certify(
    original: Any,
    masked: Any,
    family: str = "weighted mean",
    *,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    scale: str = "each",
    order: int | None = None,
    time_limit: float = 120.0,
    effort: int = 6,
    held_out: bool = False,
    within: Sequence[int] = (1, 3, 5, 10),
    random_state: int | None = 0,
) -> Certified:
    """Find the parameters that link most records, and prove that none link more.

    Parameters
    ----------
    original, masked, family, known, id, scale, order, effort, held_out, within, random_state
        As for `learn`, which comes first. At most 5,000 originals.
    time_limit : float
        Seconds for the proof. When they are over, the bound reached is given.

    Returns
    -------
    Certified

    Notes
    -----
    A record i is linked strictly by θ if every other original j is farther by more than 1e-9:

        Σ_p θ_p (φ_p(a_i - b_j) - (1 + 1e-9) φ_p(a_i - b_i)) > 0   for all j,

    which is linear in θ. In a simplex of parameters (a *cell*) its corners decide: a record with an
    inequality that holds at no corner is linked nowhere in the cell. Records of which two
    inequalities cannot hold together exclude each other. The number of records that remain, sets
    that exclude each other counted once, bounds the links in the cell; a cell whose bound is above
    what was found is halved at its longest edge, the largest bound first. The proof uses half of
    the 1e-9 and an allowance for rounding, so it never errs to the low side. For the Choquet
    integral of more than three variables, HiGHS solves

        maximise Σ_i z_i   such that   Σ_p θ_p r_ijp >= -M_ij (1 - z_i),

    with rows added as they are violated and M_ij = max_k (s_k(a_i, b_i) - s_k(a_i, b_j)), which no
    monotone integral exceeds. For the bilinear form only this is proved: of records masked to the
    same values at most one is linked, and of originals with the same values none.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk import certify
    >>> rng = np.random.default_rng(7)
    >>> original = rng.normal(size=(60, 2))
    >>> masked = original + rng.normal(size=(60, 2)) * [0.01, 3.0]
    >>> best = certify(original, masked)
    >>> best.proved
    True
    """
    number = isinstance(time_limit, int | float) and not isinstance(time_limit, bool)
    if not number or not 0 <= time_limit < float("inf"):
        raise OutOfRangeError("time_limit", time_limit, "seconds, at least 0")
    sides = read_sides(original, masked, known=known, id=id)
    if len(sides.B) > ALL_COMPETITORS:
        raise OutOfRangeError(
            "the number of originals", len(sides.B),
            f"at most {ALL_COMPETITORS:,} for a certificate; `learn` takes more",
        )  # fmt: skip
    learned = learn(
        original, masked, family, known=known, id=id, scale=scale, order=order, effort=effort,
        max_records=max(len(sides.A), 1), held_out=held_out, within=within,
        random_state=random_state,
    )  # fmt: skip
    sides = sides.scaled(scale)
    _compile()
    began = time.perf_counter()
    until = began + time_limit
    proof = _proof(sides, family, order, learned, until)
    if proof.member is not None:
        found = f"best {family} distance found"
        how = Measure(count_family(sides, proof.member), found, learned.assumptions[1:])
        learned = linkage(
            sides, how, np.arange(len(sides.A)), within=sorted(learned.within), make=Learned,
            distance=proof.member, held_out=learned.held_out, simpler=learned.simpler,
            most=learned.most,
        )  # fmt: skip
    told = {one.name: getattr(learned, one.name) for one in fields(Learned)}
    told["most"] = max(proof.most, learned.links)
    told["assumptions"] = tuple(line for line in learned.assumptions if LOWER not in line)
    return Certified(
        **told,
        method=proof.method,
        cells=proof.cells,
        rows=proof.rows,
        seconds=time.perf_counter() - began,
    )


def _compile() -> None:
    """Have the kernel ready, so that its compilation, once, is not taken for the proof's time."""
    no = np.empty(0, dtype=np.int64)
    explore(
        np.zeros((1, 2)),
        np.zeros(1, np.int64),
        np.eye(2),
        0,
        0,
        no,
        np.zeros(1, np.int64),
        no,
        0,
        0,
    )


class _Proof(NamedTuple):
    most: int
    member: Family | None  # that links more than what was learned
    method: str
    cells: int
    rows: int


def _proof(sides: Sides, family: str, order: int | None, learned: Learned, until: float) -> _Proof:
    classes = _classes(sides.A)
    if family == "bilinear":
        kept = ~_repeated(sides.B)[sides.truth]
        most = len(np.unique(classes[kept]))
        return _Proof(most, None, "only identical records are excluded", 0, 0)
    competitors = least_competitors(sides, np.arange(len(sides.A)))
    rows = len(competitors.which)
    most = len(np.unique(classes[competitors.records]))
    d = len(sides.columns)
    member = _member(family, d, order)
    if not rows or most <= learned.links:
        return _Proof(most, None, "records that another original beats in every variable", 0, rows)
    if isinstance(member, Choquet) and (member.additive or d > BY_CELLS):
        bound = solve(sides, competitors, classes, member, learned.distance, until)
        better = bound.member if bound.links > learned.links else None
        return _Proof(min(most, bound.most), better, bound.method, bound.nodes, rows)
    search = _Search(sides, competitors, classes, member, learned.links)
    search.run(_corners(member), most, until)
    how = "the space of parameters searched by cells"
    return _Proof(min(most, search.most), search.better, how, search.cells, rows)


def _member(family: str, d: int, order: int | None) -> Family:
    if family == "choquet":
        return Choquet.neutral(d, order=order)
    return WeightedMean.neutral(d) if family == "weighted mean" else OWA.neutral(d)


def _classes(A: Floats) -> Integers:
    """Number the records so that those masked to the same values have the same number."""
    _, places = np.unique(A + 0.0, axis=0, return_inverse=True)
    return places.reshape(-1).astype(np.int64)


def _repeated(B: Floats) -> NDArray[np.bool_]:
    _, places, counts = np.unique(B + 0.0, axis=0, return_inverse=True, return_counts=True)
    out: NDArray[np.bool_] = counts[places.reshape(-1)] > 1
    return out


def _corners(member: Family) -> list[Floats]:
    """Return simplices that cover the parameters of a family.

    Weights are one simplex. Measures are cut by the order of their values (Stanley 1986): every
    order of the sets that never puts a larger set first is one simplex, its corners the measures
    that are 1 from some set on.
    """
    if not isinstance(member, Choquet):
        return [np.eye(member.d)]
    size = 1 << member.d
    middle = range(1, size - 1)
    found = []
    for rising in permutations(middle):
        place = {one: at for at, one in enumerate(rising)}
        if any(one & other == one and place[one] > place[other] and one != other
               for one in middle for other in middle):  # fmt: skip
            continue
        corners = np.zeros((size - 1, size))
        corners[:, size - 1] = 1.0
        for at, one in enumerate(rising):
            corners[: at + 1, one] = 1.0
        found.append(corners)
    return found


def decisive_rows(sides: Sides, competitors: Competitors, member: Family) -> Floats:
    """Return rows whose product with θ is above zero wherever linkage may see a strict link.

    Linkage wants a competitor farther by SLACK; half of it, and an allowance for the rounding of
    standardised values, are left to the intruder.
    """
    records = competitors.records
    owner = np.repeat(np.arange(len(records)), np.diff(competitors.starts))
    A, own_B = sides.A[records], sides.B[sides.truth[records]]
    their_B = sides.B[competitors.which]
    own, theirs = A - own_B, A[owner] - their_B
    dense = [member.features(one) for one in (own, theirs)]
    phi_own, phi = (one.toarray() if hasattr(one, "toarray") else one for one in dense)
    rows = phi - (1 + SLACK / 2) * phi_own[owner]
    slip = ROUNDING * (
        np.where(
            their_B == own_B[owner], 0.0, (np.abs(A[owner]) + np.abs(their_B)) * np.abs(theirs)
        )
        + np.where(
            their_B == own_B[owner], 0.0, (np.abs(A) + np.abs(own_B))[owner] * np.abs(own[owner])
        )
    )
    if isinstance(member, WeightedMean):
        rows += slip
    elif isinstance(member, OWA):
        rows += slip.max(axis=1)[:, None]
    else:
        rows[:, -1] += slip.max(axis=1)  # the measure of all variables is 1
    return np.ascontiguousarray(rows)


class _Cell(NamedTuple):
    """An open cell; cells compare by their bound, the largest first, then by age."""

    rank: int
    age: int
    corners: Floats
    depth: int
    linked: int
    records: NDArray[np.int32]
    sizes: NDArray[np.int32]
    which: NDArray[np.int32]


class _Search:
    """Best-first search of cells; `most` is valid at any time."""

    def __init__(
        self,
        sides: Sides,
        competitors: Competitors,
        classes: Integers,
        member: Family,
        links: int,
    ) -> None:
        self.sides, self.member = sides, member
        self.rows = decisive_rows(sides, competitors, member)
        self.classes = np.ascontiguousarray(classes[competitors.records])
        self.starts = competitors.starts
        self.links = links
        self.better: Family | None = None
        self.cells = 0
        self.most = len(competitors.records)

    def run(self, corners: list[Floats], most: int, until: float) -> None:
        """Halve cells until none can link more than what was found, or time is over."""
        sizes = np.diff(self.starts).astype(np.int32)
        everyone = np.arange(len(sizes), dtype=np.int32)
        every_row = np.arange(len(self.rows), dtype=np.int32)
        open_ = [
            _Cell(-most, age, one, 0, 0, everyone, sizes, every_row)
            for age, one in enumerate(corners)
        ]
        born, held = len(open_), 0
        while open_ and time.perf_counter() < until:
            if held > HELD:
                open_.sort()
                batch, open_ = open_[-BATCH:], open_[:-BATCH]
            else:
                batch = [heapq.heappop(open_) for _ in range(min(BATCH, len(open_)))]
            held -= sum(len(cell.which) for cell in batch)
            batch = [cell for cell in batch if -cell.rank > self.links]
            for cell, (seen, theta, halved, left) in zip(batch, each(self._explored, batch)):
                self.cells += halved
                if seen > self.links:
                    self._try(theta)
                for bound, child in _children(left):
                    if bound > self.links:
                        rank = max(-bound, cell.rank)
                        heapq.heappush(open_, _Cell(rank, born, *child))
                        born += 1
                        held += len(child[-1])
        self.most = max([self.links, *(-cell.rank for cell in open_)])

    def _explored(self, cell: _Cell) -> Any:
        starts = np.concatenate([[0], np.cumsum(cell.sizes)]).astype(np.int64)
        return explore(
            self.rows, self.classes, cell.corners, cell.depth, cell.linked,
            cell.records.astype(np.int64), starts, cell.which.astype(np.int64), self.links, BUDGET,
        )  # fmt: skip

    def _try(self, theta: Floats) -> None:
        """Count the links of some parameters over all originals, as `link` does."""
        member = self.member.repair(theta)
        nearer, tied = count_family(self.sides, member)(np.arange(len(self.sides.A)), 1)
        count = int(((nearer == 0) & (tied == 1)).sum())
        if count > self.links:
            self.links, self.better = count, member


def _children(left: Any) -> list[tuple[int, tuple[Any, ...]]]:
    corners, depths, linked, bounds, row_ends, record_ends, which, records, sizes = left
    out = []
    for at in range(len(linked)):
        some = slice(record_ends[at], record_ends[at + 1])
        rows = which[row_ends[at] : row_ends[at + 1]].astype(np.int32)
        child = (
            corners[at].copy(), int(depths[at]), int(linked[at]), records[some].astype(np.int32),
            sizes[some].astype(np.int32), rows,
        )  # fmt: skip
        out.append((int(bounds[at]), child))
    return out
