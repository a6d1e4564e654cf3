"""Sums and differences: total == part + part, a == b - c, age == year - birth, a == 12 * b.

A linear equality that nearly all records obey is a vector that is orthogonal to nearly all records.
A few records more than there are columns, drawn at random, are all clean often enough (with one in
twenty broken and twenty columns, in three draws of ten): the vectors that are orthogonal to all of
them are found by elimination modulo a prime, which is exact and does not grow. A broken record
among those drawn removes the equalities that it breaks, and no other. Many draws, each with the
columns in another order, give many vectors; those with coefficients of 1 and -1, or with two
columns, are counted on all records of the sample, in whole numbers (random sample consensus,
Fischler and Bolles 1981).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from ..._types import Integers, Truths
from .chance import (
    Demands,
    Proposal,
    decimal_text,
    expected,
    listed,
    log_chance,
    log_choose,
    raised,
)
from .columns import Figure, Sample
from .elimination import PRIME, null_vectors, small_fraction
from .equalities import MOST_TERMS, Counts, Equality, rank_of

DRAWN = (
    150  # samples of records; of rules that 90 % of records obey in 20 columns, 99.9 % are found
)
SPARE = 4  # records beyond the number of columns: they keep out most vectors that chance makes
MOST_COLUMNS = 80  # elimination takes the cube of it
FITTED = 40  # samples in which columns are fitted by others
NEAR = 0.2  # how far a fitted coefficient may be from 1, 0 or -1
ROUNDED = 0.2  # the largest share of records that chance lets obey an equality with a slack


def find_sums(sample: Sample, demands: Demands) -> tuple[list[Proposal], list[Equality]]:
    """Find linear equalities; also return them as they are, for what follows from them."""
    figures = sample.exact[:MOST_COLUMNS]
    if len(figures) < 2:
        return [], []
    known = np.stack([one.known for one in figures], axis=1)
    counts = Counts(figures, demands)
    vectors: dict[object, Equality] = {}
    for draw in (_drawn_vectors, _rounded_vectors):
        for equality in draw(figures, known, sample.seed):
            vectors.setdefault(equality.key, counts.in_own_units(equality))
    candidates = [one for one in vectors.values() if counts.promises(one)]
    candidates = counts.completed(candidates)
    candidates = [counts.with_slack(one) for one in map(counts.pruned, candidates)]
    tested = {}
    for equality in candidates:
        if counts.holds(equality):
            chance = _chance(equality, sample, figures, counts)
            if chance <= demands.chance:
                tested[equality.key] = (equality, chance)
    kept = _independent([each for each, _ in tested.values()], counts)
    proposals = [_proposal(each, figures, tested[each.key][1], counts.share(each)) for each in kept]
    return proposals, kept


def find_copies(sample: Sample, demands: Demands) -> list[Proposal]:
    """Find columns that are the same as another, where the numbers have too many decimals."""
    measured = [one for one in sample.figures if one.whole is None]
    hypotheses = math.log(max(len(measured) ** 2, 1))
    found: list[Proposal] = []
    for at, first in enumerate(measured):
        for second in measured[at + 1 :]:
            judged = first.known & second.known & ((first.values != 0) | (second.values != 0))
            records = int(judged.sum())
            held = int((first.values == second.values)[judged].sum())
            if not records or held < demands.holds * records:
                continue
            by_chance = float((sample.drawn(first).values == sample.drawn(second).values).mean())
            if records - held > (1 - demands.holds) * (1 - by_chance) * records:
                continue
            p = raised(by_chance, len(sample.drawn(first).values))
            chance = expected(log_chance(held, records, p), hypotheses)
            if chance <= demands.chance:
                found.append(
                    Proposal(
                        text=f"{first.text} == {second.text}",
                        kind="equality",
                        columns=(first.name, second.name),
                        why=f"{first.text} is the same as {second.text}",
                        chance=chance,
                        rank=(-2.0, -held / records),
                    )
                )
    return found


def _drawn_vectors(figures: Sequence[Figure], known: Truths, seed: int) -> Iterator[Equality]:
    generator = np.random.default_rng((seed, 1))
    residues = np.stack([_modulo(one, figures) for one in figures], axis=1)
    decimals = max(one.decimals for one in figures)
    unusual = [_unusual(one) for one in figures]
    for _ in range(DRAWN):
        order, complete = _columns(known, generator)
        if len(order) < 2:
            return
        rows = _rows([unusual[place] for place in order], complete, generator)
        drawn = np.ones((len(rows), len(order) + 1), dtype=np.int64)
        # The constant stands last or first, by chance: then it is expressed by columns, or it
        # helps to express them.
        last = bool(generator.integers(2))
        drawn[:, : len(order)] = residues[np.ix_(rows, order)]
        if not last:
            drawn = np.roll(drawn, 1, axis=1)
        for vector in null_vectors(drawn):
            vector = vector if last else np.roll(vector, -1)
            if (found := _read(vector, order, decimals)) is not None:
                yield found


def _rounded_vectors(figures: Sequence[Figure], known: Truths, seed: int) -> Iterator[Equality]:
    """Guess sums of parts that were rounded, which elimination cannot find.

    A column is fitted by those before it, in an order by chance, and coefficients near 1, 0 and -1
    are a guess; only what is counted in whole numbers decides.
    """
    wide = np.array([at for at, one in enumerate(figures) if _is_wide(one)], dtype=np.int64)
    if len(wide) < 3:
        return
    generator = np.random.default_rng((seed, 2))
    values = np.stack([figures[at].values / figures[at].values.std() for at in wide], axis=1)
    scale = np.array([float(figures[at].values.std()) for at in wide])
    unusual = [_unusual(figures[at]) for at in wide]
    for _ in range(FITTED):
        order, complete = _columns(known[:, wide], generator)
        rows = _rows([unusual[place] for place in order], complete, generator)
        for at in range(2, min(len(order), len(rows) - SPARE // 2)):
            before, own = order[:at], order[at]
            fitted = np.linalg.lstsq(values[np.ix_(rows, before)], values[rows, own], rcond=None)
            coefficients = fitted[0] * scale[own] / scale[before]
            signs = np.rint(coefficients)
            near = np.abs(coefficients - signs) <= NEAR
            count = int(np.abs(signs).sum())
            if near.all() and (np.abs(signs) <= 1).all() and 2 <= count < MOST_TERMS:
                terms = [(int(wide[p]), int(s)) for p, s in zip(before, signs) if s]
                terms = sorted([*terms, (int(wide[own]), -1)])
                first = terms[0][1]
                yield Equality(tuple((place, first * sign) for place, sign in terms))


def _is_wide(figure: Figure) -> bool:
    """Return whether rounding is small beside a column's values."""
    values = figure.values[figure.known & (figure.values != 0)]
    if figure.is_code or len(values) < 10:
        return False
    low, high = np.quantile(values, [0.1, 0.9])
    return bool(high - low >= 50 * 10.0**-figure.decimals)


def _columns(known: Truths, generator: np.random.Generator) -> tuple[Integers, Integers]:
    """Choose columns, in an order by chance, that enough records have together.

    Usually these are all; where cells are missing in different records, a column that would leave
    fewer than 3 records for each column is passed over.
    """
    n, d = known.shape
    enough = min(3 * d, max(n // 2, 1))
    complete = known.all(axis=1)
    order = generator.permutation(d)
    if complete.sum() >= enough:
        return order, np.flatnonzero(complete)
    chosen: list[int] = []
    complete = np.ones(n, dtype=bool)
    for place in order:
        more = complete & known[:, place]
        if more.sum() >= min(3 * (len(chosen) + 1), n // 2):
            chosen.append(int(place))
            complete = more
    return np.array(chosen, dtype=np.int64), np.flatnonzero(complete)


def _rows(
    unusual: Sequence[Truths], complete: Integers, generator: np.random.Generator
) -> Integers:
    """Draw for each column a record in which it is not what it usually is, and a few more.

    In records drawn without this, a part that is nearly always 0 would be 0 in all, and left out.
    """
    rows = [complete[generator.integers(0, len(complete), SPARE)]]
    for column in unusual:
        here = complete[column[complete]]
        if len(here):
            rows.append(here[generator.integers(0, len(here), 1)])
    return np.unique(np.concatenate(rows))


def _unusual(figure: Figure) -> Truths:
    assert figure.whole is not None
    values, counts = np.unique(figure.whole[figure.known], return_counts=True)
    unusual: Truths = figure.known & (figure.whole != values[counts.argmax()])
    return unusual


def _modulo(figure: Figure, figures: Sequence[Figure]) -> Integers:
    """Return a column in the decimals of the finest one, modulo the prime."""
    assert figure.whole is not None
    decimals = max(one.decimals for one in figures)
    factor = 10 ** (decimals - figure.decimals) % PRIME
    residues: Integers = (figure.whole % PRIME) * factor % PRIME
    return residues


def _read(vector: Integers, order: Integers, decimals: int) -> Equality | None:
    """Read a vector modulo the prime as small coefficients; None if it has others."""
    places = np.flatnonzero(vector[:-1])
    if not 2 <= len(places) <= MOST_TERMS:
        return None
    at = min(places, key=lambda place: order[place])
    vector = vector * pow(int(vector[at]), -1, PRIME) % PRIME
    signed = np.where(vector > PRIME // 2, vector - PRIME, vector)
    if (np.abs(signed[:-1][places]) == 1).all():
        terms = sorted((int(order[place]), int(signed[place])) for place in places)
        return Equality(tuple(terms), -int(signed[-1]), 0, decimals)
    if len(places) == 2 and signed[-1] == 0:
        other = int(places[0] if places[1] == at else places[1])
        ratio = small_fraction(int(vector[other]))
        if ratio is not None:
            p, q = ratio.numerator, ratio.denominator
            return Equality(((int(order[at]), q), (int(order[other]), p)), 0, 0, decimals)
    return None


def _chance(equality: Equality, sample: Sample, figures: Sequence[Figure], counts: Counts) -> float:
    """Return the expected number of equalities that hold as well by chance."""
    by_chance = Counts([sample.drawn(one) for one in figures], counts.demands)
    residual, judged = by_chance.residual(equality), by_chance.judged(equality)
    if residual is None or not judged.any():
        return math.inf
    records = int(counts.judged(equality).sum())
    d, t = len(figures), len(equality.terms)
    hypotheses = log_choose(d, t) + t * math.log(2)
    slack = counts.slack(equality)
    if equality.constant:
        # Any constant could have been found: the most frequent one by chance counts, and as many
        # constants as there are records.
        values = np.sort(residual[judged])
        upper = np.searchsorted(values, values + 2 * slack, side="right")
        hits = int((upper - np.arange(len(values))).max())
        hypotheses += math.log(max(records, 1))
    else:
        hits = int((np.abs(residual[judged]) <= slack).sum())
    if any(abs(coefficient) != 1 for _, coefficient in equality.terms):
        hypotheses += math.log(max(records, 1))  # any ratio of two cells could have been found
    share = counts.share(equality)
    if slack and hits > ROUNDED * judged.sum():
        return math.inf  # a slack that is large beside the numbers is no rounding
    if 1 - share > (1 - counts.demands.holds) * (1 - hits / judged.sum()):
        return math.inf  # chance alone would let it hold for many of these records
    p = raised(hits / judged.sum(), float(judged.sum()))
    return expected(log_chance(share * records, records, p), hypotheses)


def _independent(equalities: Iterable[Equality], counts: Counts) -> list[Equality]:
    """Keep the shortest equalities from which the others follow.

    One whose columns are all in a longer one, which far fewer records break, is that one with a
    part left out; and one that is a combination of kept ones says nothing new.
    """
    broken = {one.key: counts.broken(one) for one in equalities}
    ordered = sorted(equalities, key=lambda one: (len(one.terms), broken[one.key], one.terms))
    kept: list[Equality] = []
    rank = 0
    for one in ordered:
        longer = (each for each in ordered if set(one.places) < set(each.places))
        if any(2 * broken[each.key] < broken[one.key] for each in longer):
            continue
        more = rank_of([*kept, one], len(counts.figures))
        if more > rank:
            kept.append(one)
            rank = more
    return kept


def _proposal(
    equality: Equality, figures: Sequence[Figure], chance: float, share: float
) -> Proposal:
    """Write an equality as people do: the total, or what may be negative, on the left."""
    columns = {place: figures[place] for place in equality.places}
    slack = decimal_text(equality.slack, equality.decimals)
    allowed = f" ± {slack}" if equality.slack else ""
    rounded = f", to within {slack}" if equality.slack else ""
    names = tuple(one.name for one in columns.values())
    rank = (-float(len(equality.terms)), -share)
    if any(abs(c) != 1 for _, c in equality.terms):
        text, why = _ratio_text(equality, columns)
        return Proposal(text=text, kind="ratio", columns=names, why=why, chance=chance, rank=rank)
    left, constant, signs = _solved(equality, columns)
    plus = [columns[place].text for place, sign in signs if sign > 0]
    minus = [columns[place].text for place, sign in signs if sign < 0]
    text = " + ".join(plus) if plus else ""
    if not plus and constant > 0:
        text, constant = decimal_text(constant, equality.decimals), 0
    text += "".join(f" - {name}" for name in minus)
    if constant:
        sign = "+" if constant > 0 else "-"
        text += f" {sign} {decimal_text(abs(constant), equality.decimals)}"
    text = f"{columns[left].text} == {text.removeprefix(' ')}{allowed}"
    if len(signs) == 1 and not minus and not equality.constant:
        kind, why = "equality", f"{columns[left].text} is the same as {plus[0]}{rounded}"
    elif minus:
        kind, what = "difference", f"what is left of {listed(plus)}" if plus else "what is left"
        why = f"{columns[left].text} is {what} after {listed(minus)}{rounded}"
    else:
        kind, why = "sum", f"{columns[left].text} is the total of {listed(plus)}{rounded}"
    if equality.constant:
        why += ", up to a constant"
    return Proposal(text=text, kind=kind, columns=names, why=why, chance=chance, rank=rank)


def _solved(
    equality: Equality, columns: dict[int, Figure]
) -> tuple[int, int, list[tuple[int, int]]]:
    """Choose the column on the left: its place, then the constant and the signs on the right."""
    positive = [place for place, sign in equality.terms if sign > 0]
    negative = [place for place, sign in equality.terms if sign < 0]
    signed = [place for place, one in columns.items() if one.negative > 0.01]
    alone = [side[0] for side in (positive, negative) if len(side) == 1]
    if len(signed) == 1 and signed[0] not in alone:
        left = signed[0]  # profit == turnover - costs
    elif alone:
        left = max(alone, key=lambda place: (float(columns[place].values.mean()), -place))
    else:
        left = positive[0]
    own = 1 if left in positive else -1
    rest = [(place, -own * sign) for place, sign in equality.terms if place != left]
    return left, own * equality.constant, rest


def _ratio_text(equality: Equality, columns: dict[int, Figure]) -> tuple[str, str]:
    (first, p), (second, q) = equality.terms
    ratio = Fraction(-q, p)
    if abs(ratio) < 1:
        first, second, ratio = second, first, 1 / ratio
    left, right = columns[first].text, columns[second].text
    if ratio.denominator == 1 or (10**6 % ratio.denominator == 0):
        factor = decimal_text(int(ratio * 10**6), 6)
        return f"{left} == {factor} * {right}", f"{left} is {factor} times {right}"
    text = f"{ratio.denominator} * {left} == {ratio.numerator} * {right}"
    return text, f"{left} is {ratio.numerator}/{ratio.denominator} of {right}"
