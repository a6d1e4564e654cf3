"""Products and ratios: wages == hours * rate, price == revenue / quantity, tax == 0.2 * income.

All pairs of columns are multiplied (divided) in some records and compared with every other column,
in whole numbers, or to within half a unit of the last decimal of the result where it was rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..._types import Integers, Truths
from .chance import Demands, Proposal, decimal_text, expected, log_chance, raised
from .columns import LARGEST, Figure, Sample

FIRST_LOOK = 300  # records in which all pairs are tried
MOST_COLUMNS = 40  # the number of products tried grows with the cube of it
DIGITS = 4  # of the factor of a multiple


@dataclass(frozen=True, eq=False)
class Product:
    """result == first * second, or first / second, up to a slack of half units of the result.

    `halves` is 0 where it is exact, 1 where the result was rounded.
    """

    result: Figure
    first: Figure
    second: Figure
    divided: bool = False
    halves: int = 0

    def error(self) -> Integers | None:
        """Return twice the difference of both sides, in units; None where it could overflow.

        The units are those of first times second, or of result times second.
        """
        if self.divided:
            whole, left, right = self.first, self.result, self.second
        else:
            whole, left, right = self.result, self.first, self.second
        up = left.decimals + right.decimals - whole.decimals
        size = left.largest * right.largest * 10 ** max(-up, 0)
        if 4 * max(size, whole.largest * 10 ** max(up, 0)) >= LARGEST:
            return None
        assert left.whole is not None
        assert right.whole is not None
        assert whole.whole is not None
        product = left.whole * right.whole * 10 ** max(-up, 0)
        error: Integers = 2 * (product - whole.whole * 10 ** max(up, 0))
        return error

    def allowed(self) -> Integers:
        """Return what `error` may be, in the same units."""
        if not self.halves:
            return np.zeros(len(self.result.values), dtype=np.int64)
        if not self.divided:
            up = self.first.decimals + self.second.decimals - self.result.decimals
            return np.full(len(self.result.values), self.halves * 10 ** max(up, 0), dtype=np.int64)
        assert self.second.whole is not None
        down = self.first.decimals - self.result.decimals - self.second.decimals
        allowed: Integers = self.halves * np.abs(self.second.whole) * 10 ** max(down, 0)
        return allowed

    def judged(self) -> Truths:
        """Return the records that say something: no side is 0, no factor 1."""
        known = self.result.known & self.first.known & self.second.known
        for one in (self.first, self.second):
            known = known & (one.values != 0) & (np.abs(one.values) != 1)
        judged: Truths = known & (self.result.values != 0)
        return judged

    def share(self) -> tuple[float, int]:
        """Return the share of the records that say something which obey, and their number."""
        error, judged = self.error(), self.judged()
        if error is None or not judged.any():
            return 0.0, 0
        obeys = np.abs(error) <= self.allowed()
        return float(obeys[judged].mean()), int(judged.sum())

    def by_chance(self, sample: Sample) -> Product:
        """Return the same for records that are put together by chance."""
        return replace(
            self,
            result=sample.drawn(self.result),
            first=sample.drawn(self.first),
            second=sample.drawn(self.second),
        )


def find_products(sample: Sample, demands: Demands) -> tuple[list[Proposal], list[Product]]:
    """Find products and ratios of two columns; also return them as they are."""
    figures = [one for one in sample.exact if _varies(one) and not one.is_code][:MOST_COLUMNS]
    d = len(figures)
    hypotheses = math.log(max(3 * d**3, 1))
    found: list[tuple[Product, float, float]] = []
    for product in _promising(figures):
        exact, records = product.share()
        best, share = product, exact
        rounded = _rounded(product)
        if rounded is not None:
            wider = rounded.share()[0]
            if 1 - wider < (1 - exact) / 2:
                best, share = rounded, wider
        if share < demands.holds:
            continue
        hits, drawn = best.by_chance(sample).share()
        if 1 - share > (1 - demands.holds) * (1 - hits):
            continue
        chance = expected(log_chance(share * records, records, raised(hits, drawn)), hypotheses)
        if chance <= demands.chance:
            found.append((best, share, chance))
    kept: list[tuple[Product, float, float]] = []
    # a == b * c says the same as b == a / c: the one that more records obey is kept.
    for each in sorted(found, key=lambda one: (one[0].divided, one[0].halves, -one[1])):
        columns = {one.name for one in (each[0].result, each[0].first, each[0].second)}
        if not any(columns == _names(other) for other, _, _ in kept):
            kept.append(each)
    return [_proposal(*each) for each in kept], [product for product, _, _ in kept]


def _names(product: Product) -> set[object]:
    return {product.result.name, product.first.name, product.second.name}


def _varies(figure: Figure) -> bool:
    """Return whether a column has many values beside 0 and 1: a product with it says something."""
    values = figure.values[figure.known & (figure.values != 0)]
    if len(values) < 5:
        return False
    return bool(np.unique(values, return_counts=True)[1].max() < 0.9 * len(values))


def _promising(figures: Sequence[Figure]) -> Iterator[Product]:
    """Try all pairs as factors of all others in some records, by floats; exactly comes later."""
    if len(figures) < 3:
        return
    filled = np.stack([one.known & (one.values != 0) for one in figures])
    rows = np.argsort(-filled.sum(axis=0), kind="stable")[:FIRST_LOOK]
    values = np.stack([np.where(one.known, one.values, np.nan)[rows] for one in figures])
    unit = np.array([[10.0**-one.decimals] for one in figures])
    values[values == 0] = np.nan
    for first, second in combinations(range(len(figures)), 2):
        with np.errstate(all="ignore"):
            made = {
                (first, second, False): values[first] * values[second],
                (first, second, True): values[first] / values[second],
                (second, first, True): values[second] / values[first],
            }
        plain = (np.abs(values[first]) == 1) | (np.abs(values[second]) == 1)
        for (one, other, divided), result in made.items():
            near = np.abs(values - result) <= 0.5001 * unit + 1e-9 * np.abs(result)
            judged = ~np.isnan(values) & ~np.isnan(result) & ~plain
            enough = judged.sum(axis=1) >= 5
            share = (near & judged).sum(axis=1) >= 0.5 * judged.sum(axis=1)
            for place in map(int, np.flatnonzero(enough & share)):
                if place not in (first, second):
                    yield Product(figures[place], figures[one], figures[other], divided)


def _rounded(product: Product) -> Product | None:
    """Return the same to within half a unit of the result, if it can be anything but exact."""
    needed = product.first.decimals + product.second.decimals
    if not product.divided and product.result.decimals >= needed:
        return None
    return replace(product, halves=1)


def _proposal(product: Product, share: float, chance: float) -> Proposal:
    result, first, second = product.result.text, product.first.text, product.second.text
    sign, word = ("/", "divided by") if product.divided else ("*", "times")
    half = decimal_text(5, product.result.decimals + 1)
    text = f"{result} == {first} {sign} {second}" + (f" ± {half}" if product.halves else "")
    if product.divided:  # rules refuse to divide by zero
        text = f"if {second} != 0: {text}"
    why = f"{result} is {first} {word} {second}" + (", rounded" if product.halves else "")
    columns = tuple(one.name for one in (product.result, product.first, product.second))
    kind = "ratio" if product.divided else "product"
    return Proposal(
        text=text, kind=kind, columns=columns, why=why, chance=chance, rank=(-3.0, -share)
    )


def find_multiples(
    sample: Sample, demands: Demands, equal: set[frozenset[object]]
) -> list[Proposal]:
    """Find columns that are another one times a factor of few digits, rounded or cut off.

    Pairs of columns in `equal` are left out: an equality without rounding is known for them.
    """
    figures = [one for one in sample.exact if _varies(one) and not one.is_code]
    hypotheses = math.log(max(len(figures) ** 2 * 9 * 10 ** (DIGITS - 1), 1))
    found: list[Proposal] = []
    for result in figures:
        for first in figures:
            if result is first or frozenset((result.name, first.name)) in equal:
                continue
            factor = _factor(result, first)
            if factor is None:
                continue
            proposal = _tested(result, first, factor, sample, demands, hypotheses)
            if proposal is not None:
                found.append(proposal)
    return found


def _factor(result: Figure, first: Figure) -> float | None:
    """Return the factor of few digits that explains most of the larger values, if any does."""
    both = np.flatnonzero(result.known & first.known & (first.values != 0) & (result.values != 0))
    if len(both) < 5:
        return None
    both = both[:: max(len(both) // 1000, 1)]  # records are sorted: these stand for all
    both = both[np.argsort(-np.abs(first.values[both]), kind="stable")[: max(len(both) // 2, 5)]]
    ratio = float(np.median(result.values[both] / first.values[both]))
    if not np.isfinite(ratio) or abs(ratio) >= 1:  # then the other way round
        return None
    unit = 10.0**-result.decimals
    best: tuple[float, float] = (0.5, 0.0)  # half of the records at least
    for digits in range(1, DIGITS + 1):
        step = 10.0 ** (math.floor(math.log10(abs(ratio))) + 1 - digits)
        for whole in (math.floor(ratio / step), math.ceil(ratio / step)):  # cut off, it is less
            factor = float(f"{whole * step:.{digits}g}")
            near = np.abs(result.values[both] - factor * first.values[both]) <= unit
            # One more digit must explain more than two records in a hundred.
            best = max(best, (float(near.mean()) - 0.02 * digits, factor))
    return best[1] or None


def _tested(
    result: Figure, first: Figure, factor: float, sample: Sample, demands: Demands,
    hypotheses: float,
) -> Proposal | None:  # fmt: skip
    """Return a multiple with the least slack that nearly all records obey."""
    unit = 10.0**-result.decimals

    def count(one: Figure, other: Figure, slack: float) -> tuple[float, int]:
        judged = one.known & other.known & (one.values != 0) & (other.values != 0)
        off = np.abs(one.values - factor * other.values)
        near = off <= slack * (1 + 1e-9) + 1e-9 * np.abs(one.values)
        return (float(near[judged].mean()), int(judged.sum())) if judged.any() else (0.0, 0)

    for slack, how in ((unit / 2, "rounded"), (unit, "cut off")):
        share, records = count(result, first, slack)
        if share < demands.holds:
            continue
        hits, drawn = count(sample.drawn(result), sample.drawn(first), slack)
        if 1 - share > (1 - demands.holds) * (1 - hits):
            return None
        chance = expected(log_chance(share * records, records, raised(hits, drawn)), hypotheses)
        if chance > demands.chance:
            return None
        # Two whole numbers that differ by 1 at most are no multiples of each other.
        if np.ptp(factor * first.values[first.known]) < 20 * unit:
            return None
        text = decimal_text(round(slack * 10 ** (result.decimals + 1)), result.decimals + 1)
        return Proposal(
            text=f"{result.text} == {factor!r} * {first.text} ± {text}",
            kind="ratio",
            columns=(result.name, first.name),
            why=f"{result.text} is {factor!r} times {first.text}, {how}",
            chance=chance,
            rank=(-2.0, -share),
        )
    return None
