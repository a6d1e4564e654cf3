"""The worst case, certified: no distance of a family links more records than `most`.

`learn` finds a distance that links many records. `certify` shows how many more any other could: by
halving the space of parameters, cell by cell, until no cell can link more than what was found
(weighted mean, OWA, Choquet integral of up to three variables), or by a mixed-integer programme
(Choquet integral of more). Whenever time is over, what is proved so far stands.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from ..._parameters import EFFORT, FLAG, SEED, Number, OneOf, parameters
from ..._types import Floats, Integers, Name, Truths
from ...exceptions import BadOptionError
from ..aligned import AlignedTables
from ..linkage import Measure, checked_within, count_family, linkage
from .branch_and_bound import CellSearch, corners_of, ready
from .choquet import Choquet
from .distances import OWA, WeightedMean, hopeful, least_competitors
from .family import Family
from .learning import FAMILIES, LOWER, STARTS, Learned, Options, learned, prepared
from .mixed_integer import solve
from .search import ALL_COMPETITORS, tried

__all__ = ["Certified", "certify"]


BY_CELLS = 3  # variables of a Choquet integral up to which its measures are searched by cells
RICHER = ("bilinear", "choquet", "maxitive")  # than the weighted mean, with which they begin
MOST_NUMBERS = 60_000_000  # in the rows of a proof
EVERYBODY = 2**62  # records to learn from
SAMPLED = 32  # records that tell how many rows there will be


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
            text = f"{self.links:,} of {self.n:,} records linked strictly, proved to be the most"
        else:
            text = (
                f"{self.links:,} of {self.n:,} records linked strictly, at most {self.most:,} "
                f"(gap {100 * self.gap:.1f} %)"
            )
        return f"{text}: {self.attack}"

    __repr__ = __str__

    def explain(self) -> str:
        """Say what is proved and how, then what `Learned` says."""
        how = f"- {self.method}; {self.cells:,} cells, {self.rows:,} rows, {self.seconds:.1f} s"
        lines = [str(self), how, *(f"- {line}" for line in self.assumptions)]
        lines += [f"- {name} links {100 * share:.1f} %" for name, share in self.simpler.items()]
        if self.held_out is not None:
            lines.append(f"- on records held out: {self.held_out}")
        return "\n".join(lines)


@parameters(
    {"scale": "standardise"},
    family=[OneOf(FAMILIES)],
    time_limit=[Number(least=0)],
    effort=[EFFORT],
    held_out=[FLAG],
    random_state=[SEED],
)
def certify(
    original: Any,
    masked: Any = None,
    family: str = "weighted mean",
    *,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    standardise: str = "each",
    order: int | None = None,
    time_limit: float = 120.0,
    effort: str = "thorough",
    held_out: bool = False,
    within: Sequence[int] = (1, 3, 5, 10),
    random_state: int | None = None,
) -> Certified:
    """Find the parameters that link most records, and prove that none link more.

    Parameters
    ----------
    original, masked, family, known, id, standardise, order, effort, held_out, within, random_state
        As for `learn`, which comes first. At most 5,000 originals.
    time_limit : float
        Seconds for the proof, learning not counted; for the bilinear form and Choquet integrals,
        which begin with the certified weighted mean, as many again for that. When they are over,
        the bound reached is given.

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
    same values at most one is linked, and of originals with the same values none. For the
    k-maxitive integral only: none that another original beats in every variable.

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
    options = Options(
        order, STARTS[effort], EVERYBODY, held_out, checked_within(within), random_state
    )
    sides = prepared(original, masked, family, options, known=known, id=id, standardise=standardise)
    if len(sides.B) > ALL_COMPETITORS:
        raise BadOptionError(
            "the number of originals", len(sides.B),
            f"at most {ALL_COMPETITORS:,} for a certificate; `learn` takes more",
        )  # fmt: skip
    ready()
    if family not in RICHER:
        return _certified(sides, family, options, time_limit)
    plain = _certified(sides, "weighted mean", replace(options, held_out=False), time_limit)
    rich = _certified(sides, family, options, time_limit, plain=plain)
    most = f"{plain.links:,} links, " + ("proved" if plain.proved else f"at most {plain.most:,}")
    return replace(
        rich,
        method=f"{rich.method}; begun with the weighted mean: {most}",
        seconds=plain.seconds + rich.seconds,
    )


def _certified(
    sides: AlignedTables,
    family: str,
    options: Options,
    time_limit: float,
    *,
    plain: Certified | None = None,
) -> Certified:
    """Learn a family, and prove how many records it links; `plain` is what to begin with."""
    weights = None if plain is None else plain.strictest
    assert weights is None or isinstance(weights, WeightedMean)
    found = learned(sides, family, options, proved=weights)
    began = time.perf_counter()
    proof = _proof(sides, family, options.order, found, began + time_limit)
    if proof.member is not None:
        found = _with(found, proof.member, sides, family)
    known = {one.name: getattr(found, one.name) for one in fields(Learned)}
    known["most"] = max(proof.most, found.links)
    known["assumptions"] = tuple(line for line in found.assumptions if LOWER not in line)
    return Certified(
        **known,
        method=proof.method,
        cells=proof.cells,
        rows=proof.rows,
        seconds=time.perf_counter() - began,
    )


def _with(found: Learned, member: Family, sides: AlignedTables, family: str) -> Learned:
    """Let a member that links more records strictly take part; the larger share stays."""
    everyone = np.arange(len(sides.A))
    now = tried(sides, member, everyone)
    if now < tried(sides, found.distance, everyone):
        return replace(found, links=now.links, strictest=member)
    how = Measure(
        count_family(sides, member), f"best {family} distance found", found.assumptions[1:]
    )
    better: Learned = linkage(
        sides, how, everyone, within=sorted(found.within), make=Learned, distance=member,
        held_out=found.held_out, simpler=found.simpler, most=found.most, links=now.links,
        strictest=member,
    )  # fmt: skip
    return better


class _Proof(NamedTuple):
    most: int
    member: Family | None  # that links more than what was learned
    method: str
    cells: int
    rows: int


def _proof(
    sides: AlignedTables, family: str, order: int | None, found: Learned, until: float
) -> _Proof:
    classes = _classes(sides.A)
    if family == "bilinear":
        kept = ~_repeated(sides.B)[sides.truth]
        most = len(np.unique(classes[kept]))
        return _Proof(most, None, "only identical records are excluded", 0, 0)
    chance = hopeful(sides, np.arange(len(sides.A)))
    most = len(np.unique(classes[chance]))
    beaten = "records that another original beats in every variable are out of reach"
    if most <= found.links or family == "maxitive":
        return _Proof(most, None, beaten, 0, 0)
    d = len(sides.columns)
    member = _member(family, d, order)
    numbers = _expected_rows(sides, chance) * len(member.theta)
    if numbers > MOST_NUMBERS:
        return _Proof(most, None, f"{beaten}; too many competitors for more", 0, 0)
    competitors = least_competitors(sides, chance)
    rows = len(competitors.which)
    if isinstance(member, Choquet) and (member.additive or d > BY_CELLS):
        bound = solve(sides, competitors, classes, member, found.distance, until)
        better = bound.member if bound.links > found.links else None
        return _Proof(min(most, bound.most), better, bound.method, bound.nodes, rows)
    search = CellSearch(sides, competitors, classes, member, found.links)
    search.run(corners_of(member), most, until)
    how = "the space of parameters searched by cells"
    return _Proof(min(most, search.most), search.better, how, search.cells, rows)


def _member(family: str, d: int, order: int | None) -> Family:
    if family == "choquet":
        return Choquet.neutral(d, order=order)
    return WeightedMean.neutral(d) if family == "weighted mean" else OWA.neutral(d)


def _expected_rows(sides: AlignedTables, chance: Integers) -> float:
    few = chance[:: max(1, len(chance) // SAMPLED)]
    return len(least_competitors(sides, few).which) * len(chance) / max(len(few), 1)


def _classes(A: Floats) -> Integers:
    """Number the records so that those masked to the same values have the same number."""
    _, places = np.unique(A + 0.0, axis=0, return_inverse=True)
    return places.reshape(-1).astype(np.int64)


def _repeated(B: Floats) -> Truths:
    _, places, counts = np.unique(B + 0.0, axis=0, return_inverse=True, return_counts=True)
    out: Truths = counts[places.reshape(-1)] > 1
    return out
