"""The worst case, certified: no distance of a family links more records than `most`.

`learn` finds a distance that links many records. `certify` shows how many more any other could: by
halving the space of parameters, cell by cell, until no cell can link more than what was found
(weighted mean, OWA, Choquet integral of up to three variables), or by a mixed-integer programme
(Choquet integral of more, and of fewer where cells do not close). Whenever time is over, what is
proved so far stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ... import _clock
from ..._parameters import EFFORT, FLAG, SEED, Number, OneOf, parameters
from ..._types import Name
from ...exceptions import BadOptionError
from ...schema import Schema
from ..aligned import AlignedTables, Measure, count_family
from ..linkage import checked_within, linkage
from .bounds import Proof, by_cells, by_programme, ready
from .choquet import Choquet
from .families import OWA, Family, WeightedMean
from .learning import FAMILIES, LOWER, Learned, learned, prepared
from .search import classes_of, expected_rows, hopeful, least_competitors, near_competitors, tried
from .trail import ALL_COMPETITORS, Options

BY_CELLS = 3  # variables of a Choquet integral up to which its measures are searched by cells
RICHER = ("bilinear", "choquet", "maxitive")  # than the weighted mean, with which they begin
MOST_ROWS = 2_500_000  # of a proof: with more, few cells are looked at in minutes
MOST_NUMBERS = 60_000_000  # in them; beyond both, only the nearest competitors decide:
FEWER = 64  # by equal weights, and by learned ones
EVERYBODY = 2**62  # records to learn from


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
    ended : str
        Why the proof ended before `most` was reached; empty where it was.
    cells : int
        Cells that were halved, or nodes of the programme.
    rows : int
        Pairs of a record and a competitor that could decide.
    seconds : float
        The time of the proof, without learning.
    """

    most: int
    method: str
    ended: str
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
        reach = f"at most {self.most:,} (gap {100 * self.gap:.1f} %; {self.ended})"
        bound = "proved to be the most" if self.proved else reach
        text = f"{self.links:,} of {self.n:,} records linked strictly, {bound}"
        return f"{text}; {self.beside()}: {self.attack}"

    __repr__ = __str__

    def explain(self) -> str:
        """Return what is proved and how, then the lines of `Learned`."""
        how = f"- {self.method}; {self.cells:,} cells, {self.rows:,} rows, {self.seconds:.1f} s"
        lines = [str(self), how, *(f"- {line}" for line in self.assumptions)]
        lines += [f"- {name} links {100 * share:.1f} %" for name, share in self.simpler.items()]
        if self.held_out is not None:
            lines.append(f"- on records held out: {self.held_out}")
        lines += [f"- {one}" for one in self.controls.values()]
        return "\n".join(lines)


@parameters(
    {"scale": "standardise"},
    family=[OneOf(FAMILIES)],
    time_limit=[Number(least=0)],
    effort=[EFFORT],
    held_out=[FLAG],
    control=[FLAG],
    random_state=[SEED],
)
def certify(
    original: Any,
    masked: Any = None,
    family: str = "weighted mean",
    *,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    schema: Schema | None = None,
    standardise: str = "each",
    order: int | None = None,
    time_limit: float = 120.0,
    effort: str = "thorough",
    held_out: bool = False,
    control: bool = True,
    within: Sequence[int] = (1, 3, 5, 10),
    random_state: int | None = None,
) -> Certified:
    """Find the parameters that link most records, and prove that none link more.

    Parameters
    ----------
    original, masked, family, known, id, schema, standardise, order
        As for `learn`, which comes first. At most 5,000 originals.
    effort, held_out, control, within, random_state
        As for `learn`.
    time_limit : float
        Seconds for the proof, learning not counted; for the bilinear form and Choquet integrals,
        which begin with the certified weighted mean, as many again for that. When they are over,
        the bound reached is given.

    Notes
    -----
    A record i is linked strictly by θ if every other original j is farther by more than 1e-9:

        Σ_p θ_p (φ_p(a_i - b_j) - (1 + 1e-9) φ_p(a_i - b_i)) > 0   for all j,

    which is linear in θ. In a simplex of parameters (a *cell*) its corners decide: a record with an
    inequality that holds at no corner is linked nowhere in the cell. Records of which two
    inequalities cannot hold together exclude each other. The number of records that remain, sets
    that exclude each other counted once, bounds the links in the cell (above 1,000 of them, the
    linear relaxation of their regions as well); a cell whose bound is above
    what was found is halved at a long edge with many inequalities that change along it, the largest
    bound first. The proof uses half of
    the 1e-9 and an allowance for rounding, so it never errs to the low side. For the Choquet
    integral of more than three variables, and of up to three where 30,000 cells do not lower the
    bound (then for half of the time left), HiGHS solves

        maximise Σ_i z_i   such that   Σ_p θ_p r_ijp >= -M_ij (1 - z_i),

    with rows added as they are violated and M_ij = max_k (s_k(a_i, b_i) - s_k(a_i, b_j)), which no
    monotone integral exceeds. Its optimum counts ties as links, so it is a bound; the member is the
    one that links the same records by the widest margin. Where there is none, records are linked
    with a margin of 1e-5 of M_ij, and `ended` states that the bound counts ties. For the
    bilinear form only this is proved: of records masked to the same values at most one is linked,
    and of originals with the same values none. For the k-maxitive integral only: none that another
    original beats in every variable.

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
    ks = checked_within(within)
    options = Options(order, effort, EVERYBODY, held_out, control, ks, random_state)
    sides = prepared(
        original, masked, family, order, known=known, id=id, schema=schema, standardise=standardise
    )
    if len(sides.B) > ALL_COMPETITORS:
        raise BadOptionError(
            "the number of originals", len(sides.B),
            f"at most {ALL_COMPETITORS:,} for a certificate; `learn` takes more",
        )  # fmt: skip
    ready()
    if family not in RICHER:
        return _certified(sides, family, options, time_limit)
    alone = replace(options, held_out=False, control=False)
    plain = _certified(sides, "weighted mean", alone, time_limit)
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
    began = _clock.now()
    proof = _proof(sides, family, options.order, found, began + time_limit)
    if proof.member is not None:
        found = _with(found, proof.member, sides, family)
    known = {one.name: getattr(found, one.name) for one in fields(Learned)}
    known["most"] = max(proof.most, found.links)
    known["assumptions"] = tuple(line for line in found.assumptions if LOWER not in line)
    ended = "" if known["most"] == found.links else proof.ended
    return Certified(
        **known, method=proof.method, ended=ended, cells=proof.cells, rows=proof.rows,
        seconds=_clock.now() - began,
    )  # fmt: skip


def _with(found: Learned, member: Family, sides: AlignedTables, family: str) -> Learned:
    """Let a member that links more records strictly take part; the larger share stays."""
    now = tried(sides, member)
    if now < tried(sides, found.distance):
        return replace(found, links=now.links, strictest=member)
    how = Measure(
        count_family(sides, member), f"best {family} distance found", found.assumptions[1:]
    )
    linked = linkage(
        sides, how, np.arange(len(sides.A)), within=sorted(found.within), make=Learned,
        distance=member, held_out=found.held_out, simpler=found.simpler, most=found.most,
        links=now.links, strictest=member,
    )  # fmt: skip
    return replace(linked, baseline=found.baseline, controls=found.controls)


def _proof(
    sides: AlignedTables, family: str, order: int | None, found: Learned, until: float
) -> Proof:
    classes = classes_of(sides.A)
    if family == "bilinear":
        alike = classes_of(sides.B)
        once = np.bincount(alike)[alike[sides.truth]] == 1
        most = len(np.unique(classes[once]))
        unknown = "no sharper bound of the bilinear form is known"
        return Proof(most, None, "only identical records are excluded", unknown)
    chance = hopeful(sides, np.arange(len(sides.A)))
    most = len(np.unique(classes[chance]))
    beaten = "records that another original beats in every variable are out of reach"
    if most <= found.links or family == "maxitive":
        return Proof(most, None, beaten, f"no sharper bound of the {family} integral is known")
    d = len(sides.columns)
    member: Family = WeightedMean.neutral(d) if family == "weighted mean" else OWA.neutral(d)
    if family == "choquet":
        best = found.distance
        member = best if isinstance(best, Choquet) else Choquet.neutral(d, order=order)
    if expected_rows(sides, chance) <= min(MOST_ROWS, MOST_NUMBERS / len(member.theta)):
        competitors = least_competitors(sides, chance)
    else:  # rows left out make a bound weaker, never wrong
        turns = [one for one in (np.eye(d), found.strictest.turn()) if one is not None]
        competitors = near_competitors(sides, chance, turns, FEWER)
    if isinstance(member, Choquet) and (member.additive or d > BY_CELLS):
        return by_programme(sides, competitors, classes, member, found.links, until)
    return by_cells(sides, competitors, classes, member, found.links, until)
