"""Orderings, bounds and sets of values: part <= whole, x >= 0, 0 <= share <= 1, region in {...}.

An ordering is a rule only if chance would break it: with records put together from cells of each
column alone, a <= b must fail often where it never does in the table. Age <= income holds because
incomes are large, in any order of the records, and is not proposed. Bounds and sets describe one
column, and chance could do nothing about them: what is claimed is that (nearly) all values obey.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import combinations

import numpy as np

from ..._types import Floats, Integers, Name
from .chance import FEWER, Demands, Proposal, expected, log_chance, number_text, raised
from .columns import Figure, Sample
from .equalities import Equality
from .products import Product

MOST_COLUMNS = 100
LISTED = 50  # categories of a set that is written out
PILED = 5.0  # times as often as its neighbours: a value at the edge at which values pile up
NEVER_NEGATIVE = 0.01  # share of values below zero that a column may have and count as nonnegative


def find_orderings(
    sample: Sample, demands: Demands, equalities: Sequence[Equality], products: Sequence[Product],
    implied: set[tuple[Name, Name]],
) -> list[Proposal]:  # fmt: skip
    """Find columns that are never larger than others, where that does not follow from sums."""
    unlike = _other_units(sample, equalities, products)
    found: dict[tuple[Name, Name], Proposal] = {}
    for figures in (sample.amounts[:MOST_COLUMNS], sample.dates[:MOST_COLUMNS]):
        hypotheses = math.log(max(len(figures) * (len(figures) - 1), 1))
        for lower in figures:
            for upper in figures:
                edge = (lower.name, upper.name)
                if lower is upper or edge in implied or edge[::-1] in implied:
                    continue
                if frozenset(edge) in unlike:
                    continue
                if (proposal := _ordering(lower, upper, demands, hypotheses)) is not None:
                    found[edge] = proposal
    edges = {*implied, *found}
    kept: dict[Name, Proposal] = {}
    for edge, proposal in found.items():
        if _reachable(edge, edges - {edge}) or edge[::-1] in found:
            continue
        # Firms that are large are so in everything, and any of their small figures is below any
        # large one. Of several columns above one, that which the fewest records contradict counts.
        best = kept.get(edge[0])
        if best is None or proposal.rank < best.rank:
            kept[edge[0]] = proposal
    return list(kept.values())


def _ordering(lower: Figure, upper: Figure, demands: Demands, hypotheses: float) -> Proposal | None:
    """Test lower <= upper.

    Only records in which neither is 0 are evidence: firms without staff have no hours either,
    which orders nothing. Records with a 0 still break the rule where they do.
    """
    known = lower.known & upper.known
    broken = int((known & (lower.values > upper.values)).sum())
    if not known.any() or 1 - broken / known.sum() < demands.strict:
        return None
    judged = known & (lower.values != 0) & (upper.values != 0)
    records = int(judged.sum())
    if records < 5:
        return None
    a, b = lower.values[judged], upper.values[judged]
    held = int((a <= b).sum())
    above = records - np.searchsorted(np.sort(b), a, side="left")
    by_chance = float(above.mean() / records)
    if records - held > FEWER * records * (1 - by_chance):
        return None
    chance = expected(log_chance(held, records, raised(by_chance, records)), hypotheses)
    if chance > demands.chance or (a == b).all():
        return None
    return Proposal(
        text=f"{lower.text} <= {upper.text}",
        kind="ordering",
        columns=(lower.name, upper.name),
        why=f"{lower.text} is never above {upper.text}; by chance it would be in "
        f"{1 - by_chance:.0%} of records",
        chance=chance,
        rank=(broken / float(known.sum()), by_chance),
    )


def implied_orderings(
    sample: Sample, equalities: Sequence[Equality], products: Sequence[Product]
) -> set[tuple[Name, Name]]:
    """Return the orderings that follow from sums of nonnegative parts, and from products.

    Of total == a + b, a <= total follows where b is nonnegative; of a == b * c, b <= a where c is
    1 or more and b nonnegative.
    """
    found: set[tuple[Name, Name]] = set()
    figures = sample.exact
    for equality in equalities:
        for total, own in equality.terms:
            for part, sign in equality.terms:
                # own * total = -sign * part - (the rest) + constant
                if sign != -own or own * equality.constant < 0:
                    continue
                rest = [t for t in equality.terms if t[0] not in (total, part)]
                if all(_never(figures[p], -own * c < 0) for p, c in rest):
                    found.add((figures[part].name, figures[total].name))
    for product in products:
        if product.divided:
            continue
        for factor, other in (
            (product.first, product.second),
            (product.second, product.first),
        ):
            both = factor.known & other.known & (factor.values != 0) & (other.values != 0)
            if (factor.values[both] > 0).all() and (other.values[both] >= 1).mean() > 0.99:
                found.add((factor.name, product.result.name))
    return found


def _other_units(
    sample: Sample, equalities: Sequence[Equality], products: Sequence[Product]
) -> set[frozenset[Name]]:
    """Return pairs of columns that are measured in different units: no one orders them.

    What is added up has one unit; a product has another one than its factors, unless one of them
    is a share.
    """
    unit: dict[Name, Name] = {}

    def of(name: Name) -> Name:
        while name in unit:
            name = unit[name]
        return name

    for equality in equalities:
        first, *others = (sample.exact[place].name for place in equality.places)
        for other in others:
            if abs(equality.terms[0][1]) == 1 and of(first) != of(other):
                unit[of(other)] = of(first)
    differing: set[frozenset[Name]] = set()
    for product in products:
        whole, factors = product.result, (product.first, product.second)
        if product.divided:
            whole, factors = product.first, (product.result, product.second)
        if any(np.abs(one.values).max() <= 1 for one in factors):
            continue
        names = [of(one.name) for one in (whole, *factors)]
        differing |= {frozenset(pair) for pair in combinations(names, 2)}
    names = [one.name for one in sample.figures]
    pairs = combinations(names, 2)
    return {frozenset(pair) for pair in pairs if frozenset(map(of, pair)) in differing}


def _never(figure: Figure, negative_wanted: bool) -> bool:
    """Return whether a term of a sum is never negative: a column, or the minus of one."""
    values = -figure.values[figure.known] if negative_wanted else figure.values[figure.known]
    return float((values < 0).mean()) <= NEVER_NEGATIVE


def _reachable(edge: tuple[Name, Name], edges: Iterable[tuple[Name, Name]]) -> bool:
    """Return whether an ordering follows from others by way of columns between."""
    above: dict[Name, list[Name]] = {}
    for low, high in edges:
        above.setdefault(low, []).append(high)
    waiting, seen = [edge[0]], {edge[0]}
    while waiting:
        for name in above.get(waiting.pop(), ()):
            if name == edge[1]:
                return True
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return False


def find_bounds(sample: Sample, demands: Demands) -> list[Proposal]:
    """Find the bounds of single columns of numbers.

    Shares lie between 0 and 1, or 0 and 100; else values are positive or not negative, and do not
    pass an edge at which they pile up.
    """
    found = []
    for figure in sample.amounts:
        values = sample.everywhere(figure.name)
        values = values[~np.isnan(values)]
        if (proposal := _bound(figure, values, demands)) is not None:
            found.append(proposal)
    return found


def _bound(figure: Figure, values: Floats, demands: Demands) -> Proposal | None:
    def within(low: float, high: float) -> bool:
        return float(((values >= low) & (values <= high)).mean()) >= demands.strict

    name, decimals = figure.text, (values != np.rint(values)).any()
    top, bottom = _piled(values), _piled(-values)
    low = "0" if within(0, np.inf) else None if bottom is None else number_text(-bottom)
    if decimals and within(0, 1) and not within(0, 0.5):
        return _of(figure, f"0 <= {name} <= 1", "is a share")
    if decimals and within(0, 100) and not within(0, 50) and top == 100:
        return _of(figure, f"0 <= {name} <= 100", "is a share in per cent")
    if top is not None and low is not None:
        text = f"{low} <= {name} <= {number_text(top)}"
        return _of(figure, text, f"piles up at {number_text(top)} and does not pass it")
    if top is not None:
        text = f"{name} <= {number_text(top)}"
        return _of(figure, text, f"piles up at {number_text(top)} and does not pass it")
    if low is None:
        return None
    if low == "0" and (values > 0).all() and values.min() <= 0.2 * np.median(values):
        return _of(figure, f"{name} > 0", "is positive")
    if low == "0":
        return _of(figure, f"{name} >= 0", "is not negative")
    return _of(figure, f"{name} >= {low}", f"piles up at {low} and is not below")


def _of(figure: Figure, text: str, why: str) -> Proposal:
    return Proposal(text=text, kind="bound", columns=(figure.name,), why=f"{figure.text} {why}")


def _piled(values: Floats) -> float | None:
    """Return the largest value, if values pile up there as they do where they are cut off.

    Compared with the most frequent of the ten values below it: a column of few values, the largest
    of which is frequent as others are, is not cut off there.
    """
    if len(values) < 20:
        return None
    edge = float(values.max())
    here = int((values == edge).sum())
    if edge == 0 or here < 5:
        return None
    below = np.unique(values[values < edge], return_counts=True)
    if len(below[0]) < 20:
        return None
    usual = int(below[1][-10:].max())
    return edge if here >= PILED * usual else None


def find_values(sample: Sample, demands: Demands) -> list[Proposal]:
    """Find the categories of columns that have few, all of which are known by now."""
    found = []
    for levels in sample.levels:
        every = sample.every_level(levels.name)
        codes = levels.codes if every is None else every.codes
        counts = np.bincount(codes[codes >= 0], minlength=len(levels.texts))
        if levels.texts[0] in ("True", "False") or len(levels.texts) > LISTED:
            continue
        kept = _established(counts, levels.texts, demands)
        if kept is None:
            continue
        texts = [levels.texts[code] for code in kept]
        left = len(levels.texts) - len(kept)
        why = f"{levels.text} has {len(kept)} categories"
        if left:
            why += f"; {left} more in {int(counts.sum() - counts[kept].sum())} records"
        text = f"{levels.text} in {{{', '.join(texts)}}}"
        found.append(
            Proposal(text=text, kind="values", columns=(levels.name,), why=why, rank=(len(kept),))
        )
    return found


def _established(counts: Integers, texts: Sequence[str], demands: Demands) -> Integers | None:
    """Return the categories that are no slips, or None where others are likely to come.

    The share of records of categories not seen yet is about that of the categories seen once
    (Good 1953). A text in one or two records that is spelled nearly as one of at least twenty is
    taken for a slip.
    """
    usual = [text for text, count in zip(texts, counts) if count >= 20 and text[0] == '"']
    slips = [
        at
        for at, count in enumerate(counts)
        if count <= 2 and get_close_matches(texts[at].casefold(), [t.casefold() for t in usual])
    ]
    kept = np.setdiff1d(np.flatnonzero(counts), slips)
    if int((counts[kept] == 1).sum()) > (1 - demands.strict) * int(counts.sum()):
        return None
    return kept
