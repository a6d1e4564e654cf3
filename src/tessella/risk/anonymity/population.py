"""From sample to population: what a sample frequency says of how many persons share a key.

F is the unknown number of persons of the population who share a key that f records of the sample
have. Two models of F given f, each with what it says of 1/F and of F = 1:

*negative binomial*: F is the number of persons to be asked until f of them are sampled, each with
chance p; *Poisson*: f + X persons, X with mean m.

Uniques are records that nobody in the sample shares the key with; they may be alone in the
population too. A log-linear model says how probable a key is from the frequencies of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from ..._parameters import NONE, OneOf, Whole, parameters
from ..._types import Floats, Integers, Name, Truths
from ...exceptions import BadOptionError, BadTableError
from ...frame import group_ids
from ...schema import Schema
from ..estimate import RecordEstimate
from .keys import MISSING, RENAMED, SHARE, count_matches, first_rows, read_keys

SHORT = 12  # from here on the series is short whatever p is
MANY = 200
TERMS = 100_000  # a bound that is not reached
CELLS = 5_000_000  # of the table of keys, where pairs of them interact
SWEEPS = 500
CLOSE = 1e-8  # of n: how far fitted margins may be from those of the table


def mean_inverse(f: Integers, p: Floats) -> Floats:
    """Return E[1/F] for F - f negative binomial with f successes of chance p.

    Notes
    -----
    P(F = h) = C(h-1, f-1) p^f (1-p)^(h-f), h >= f, and with q = 1 - p

        E[1/F] = (p^f / f) ₂F₁(f, f; f+1; q) = ∫₀¹ u^(f-1) p / (p + q u) du
               = (p / f) ₂F₁(1, 1; f+1; q).

    The last series has positive terms only, m! q^m / ((f+1)...(f+m)): no cancellation. It is short
    where q <= 1/2 or f >= 12; elsewhere the integrals I_f obey I_(f+1) = (p/q) (1/f - I_f) with
    p/q <= 1, which damps errors, from I_1 = (p/q) log(1/p).
    """
    q = 1 - p
    out = np.empty(len(p))
    by_series = (q <= 0.5) | (f >= SHORT)
    own, own_q = f[by_series], q[by_series]
    series = _sum(len(own), lambda j: own_q * j / (own + j))
    out[by_series] = series * p[by_series] / own
    rest = np.flatnonzero(~by_series)
    odds = p[rest] / q[rest]
    integral = -odds * np.log(p[rest])
    for step in range(1, SHORT):
        here = f[rest] == step
        out[rest[here]] = integral[here]
        integral = odds * (1 / step - integral)
    return out


def _sum(n: int, factor: Callable[[int], Floats]) -> Floats:
    """Sum n series that begin with 1; `factor(j)` leads from the terms j - 1 to the terms j."""
    total, term = np.ones(n), np.ones(n)
    for j in range(1, TERMS):
        term = term * factor(j)
        total += term
        if not (np.abs(term) > 1e-17 * total).any():
            break
    return total


def mean_inverse_poisson(f: Integers, m: Floats) -> Floats:
    """Return E[1/(f + X)] for X Poisson with mean m.

    Notes
    -----
    It is J_f = ∫₀¹ s^(f-1) exp(-m (1 - s)) ds, with J_1 = (1 - exp(-m)) / m. By parts,
    J_(f+1) = (1 - f J_f) / m, which damps errors where f <= m; else the alternating series
    (1/f) Σ (-m)^j / ((f+1)...(f+j)), whose terms fall. Where both f and m exceed 200, moments of X
    about its mean to the sixth (relative error below 1e-10).
    """
    out = np.empty(len(m))
    large = (f > MANY) & (m >= f)
    out[large] = _by_moments(f[large], m[large])
    falling = ~large & (f > m)
    own, own_m = f[falling], m[falling]
    out[falling] = _sum(len(own), lambda j: -own_m / (own + j)) / own
    rest = np.flatnonzero(~large & ~falling)
    integral = -np.expm1(-m[rest]) / m[rest]
    for step in range(1, int(f[rest].max(initial=0)) + 1):
        here = f[rest] == step
        out[rest[here]] = integral[here]
        # Those that were stored stay as they are: beyond f = m errors would grow, to overflow.
        integral = np.where(f[rest] > step, (1 - step * integral) / m[rest], integral)
    return out


def _by_moments(f: Integers, m: Floats) -> Floats:
    mean = f + m
    moments = {2: m, 3: m, 4: m + 3 * m**2, 5: m + 10 * m**2, 6: m + 25 * m**2 + 15 * m**3}
    ratio: Floats = np.ones(len(m))
    for power, moment in moments.items():
        ratio = ratio + (-1) ** power * moment / mean**power
    return ratio / mean


@dataclass(frozen=True, kw_only=True, repr=False)
class Uniques(RecordEstimate):
    """The records of a sample that are alone with their key.

    `value` is the share of records that are unique: in the population, as expected, where weights
    or a fraction are given, else in the sample. Besides the fields of `Estimate`:

    Parameters
    ----------
    chance : array of shape (n,)
        Chance that the record is unique (0 where it is not in the sample).
    sample : array of bool of shape (n,)
        Whether it is alone in the sample.
    right_if_unique : float or None
        With weights or a fraction: chance that a match with a sample unique is right (DIS).
    """

    _columns = ("unique=sample", "chance")
    chance: Floats = field(repr=False)
    sample: Truths = field(repr=False)
    right_if_unique: float | None = None

    @property
    def n_sample(self) -> int:
        """The number of sample uniques."""
        return int(self.sample.sum())

    @property
    def expected(self) -> float:
        """The expected number of uniques, of the population where it was estimated."""
        return float(self.chance.sum())


@parameters(RENAMED, missing_as=[OneOf(MISSING)], fraction=[*SHARE, NONE])
def uniques(
    masked: Any,
    *,
    known: Sequence[Name] | Name | None = None,
    schema: Schema | None = None,
    missing_as: str = "category",
    weights: Any = None,
    fraction: float | None = None,
) -> Uniques:
    """Find sample uniques and estimate how many of them are population uniques.

    Parameters
    ----------
    masked, known, schema, missing_as
        As in `k_anonymity`.
    weights : name or array-like of shape (n,), optional
        Sampling weights, for population uniques.
    fraction : float, optional
        The sampling fraction of a simple random sample, in place of weights.

    Notes
    -----
    A sample unique with weight w is a population unique with chance P(F = 1 | f = 1) = 1/w under
    the negative binomial posterior of `individual_risk`. With fraction π, n₁ uniques and n₂
    pairs in the sample, the chance that a unique match is right is

        θ = π n₁ / (π n₁ + 2 (1 - π) n₂).

    References
    ----------
    C. J. Skinner and M. J. Elliot (2002) A measure of disclosure risk for microdata. Journal of the
    Royal Statistical Society B 64, 855-867.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.risk import uniques
    >>> sample = pd.DataFrame({"town": ["Reus", "Reus", "Valls", "Falset"]})
    >>> found = uniques(sample, fraction=0.1)
    >>> found.n_sample, round(found.expected, 6), round(found.right_if_unique, 6)
    (2, 0.2, 0.1)
    """
    if weights is not None and fraction is not None:
        raise BadOptionError("fraction", fraction, "weights= or fraction=, not both")
    read = read_keys(masked, known, schema=schema, besides=(weights,))
    mass = read.weights(weights)
    found = count_matches(read, missing_as=missing_as)
    alone = found.count == 1
    chance = alone.astype(np.float64)
    notes = [MISSING[missing_as]]
    share: float | None = None
    if fraction is not None:
        share = float(fraction)
        chance = chance * share
        notes.append(f"a simple random sample of {100 * share:g} % of the population")
    elif mass is not None:
        share = min(read.n / float(mass.sum()), 1.0)
        chance = chance / np.maximum(mass, 1.0)
        notes.append("a sample unique is a population unique with chance 1 / weight")
    else:
        notes.append("uniques of the table, as if it were the population")
    return Uniques.of_chances(
        chance,
        baseline=0.0,
        attack="look for records that are alone with their key",
        assumptions=(*read.notes, *notes),
        sample=alone,
        right_if_unique=None if share is None else right_if_unique(found.count, share),
    )


def right_if_unique(frequency: Integers, fraction: float) -> float:
    """Return the chance that a unique match is right, by data intrusion simulation (DIS).

    With no unique and no pair in the sample there is nothing to estimate it from, and it is 0.
    """
    alone, paired = int((frequency == 1).sum()), int((frequency == 2).sum())
    sure, doubtful = fraction * alone, (1 - fraction) * paired
    return sure / (sure + doubtful) if sure > 0 else 0.0


@dataclass(frozen=True, kw_only=True, repr=False)
class LogLinearRisk(RecordEstimate):
    """Risk under a Poisson log-linear model of the keys.

    Besides the fields of `Estimate`:

    Parameters
    ----------
    chance : array of shape (n,)
        E[1/F | f] of each record's key.
    unique : array of shape (n,)
        P(F = 1 | f = 1): chance to be a population unique; 0 where the sample has others.
    frequency : array of shape (n,)
        How many records of the sample share the key.
    fitted : array of shape (n,)
        How many the model expects in the sample.
    """

    _columns = ("frequency", "fitted", "unique", "chance")
    chance: Floats = field(repr=False)
    unique: Floats = field(repr=False)
    frequency: Integers = field(repr=False)
    fitted: Floats = field(repr=False)

    @property
    def population_uniques(self) -> float:
        """τ₁: the expected number of sample uniques that are population uniques."""
        return float(self.unique.sum())

    @property
    def unique_matches(self) -> float:
        """τ₂: the expected number of right matches among sample uniques."""
        return float(self.chance[self.frequency == 1].sum())


@parameters(RENAMED, fraction=[*SHARE, NONE], interactions=[Whole(1, 2)])
def log_linear_risk(
    masked: Any,
    *,
    known: Sequence[Name] | Name | None = None,
    weights: Any = None,
    fraction: float | None = None,
    interactions: int = 1,
    schema: Schema | None = None,
) -> LogLinearRisk:
    """Estimate the risk of each record by a Poisson log-linear model.

    Parameters
    ----------
    masked, known, schema
        As in `k_anonymity`; a missing value is a value of its own.
    weights : name or array-like of shape (n,), optional
        Sampling weights; the fraction of a key is f over their sum.
    fraction : float, optional
        The sampling fraction, in place of weights.
    interactions : {1, 2}
        1: keys are independent; 2: all pairs of keys interact (up to 5,000,000 cells).

    Notes
    -----
    Sample frequencies are Poisson with means λ_j that keep the margins of the table, of one key (or
    of pairs): a product of shares, or iterative proportional fitting. With sampling fraction π_j,
    given f_j the rest of the population with the key is Poisson with mean
    m_j = λ_j (1 - π_j) / π_j, so that

        P(F = 1 | f = 1) = exp(-m),    E[1/F | f = 1] = (1 - exp(-m)) / m.

    Too few interactions overstate how rare keys are that go together; too many overfit. Skinner
    and Shlomo found all pairs a good choice for social surveys.

    References
    ----------
    C. J. Skinner and N. Shlomo (2008) Assessing identification risk in survey microdata using
    log-linear models. Journal of the American Statistical Association 103, 989-1001.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.risk import log_linear_risk
    >>> sample = pd.DataFrame({"a": [0, 0, 0, 1], "b": [0, 0, 1, 1]})
    >>> found = log_linear_risk(sample, fraction=0.5)
    >>> found.fitted
    array([1.5, 1.5, 1.5, 0.5])
    >>> found.unique.round(4)  # exp(-fitted) for the two that are alone
    array([0.    , 0.    , 0.2231, 0.6065])
    """
    if weights is not None and fraction is not None:
        raise BadOptionError("fraction", fraction, "weights= or fraction=, not both")
    read = read_keys(masked, known, schema=schema, besides=(weights,))
    mass = read.weights(weights)
    classes = group_ids(read.codes)
    frequency = np.bincount(classes)[classes]
    if fraction is not None:
        sampled = np.full(read.n, float(fraction))
    elif mass is not None:
        sampled = np.minimum(frequency / np.bincount(classes, weights=mass)[classes], 1.0)
    else:
        raise BadOptionError("fraction", fraction, "the sampling fraction, or weights=")
    values = [group_ids([column]) for column in read.codes]
    off = 0.0
    if interactions == 1 or len(values) == 1:
        shares = [np.bincount(own)[own] / read.n for own in values]
        fitted = np.prod([np.full(read.n, float(read.n)), *shares], axis=0)
    else:
        fitted, off = _all_pairs(values)
    rest = fitted * (1 - sampled) / sampled
    first = first_rows(classes)
    chance = mean_inverse_poisson(frequency[first], rest[first])[classes]
    how = "keys independent of each other" if interactions == 1 else "all pairs of keys interact"
    notes = [f"a Poisson log-linear model, {how}"]
    if off >= CLOSE * read.n:
        notes.append(f"after {SWEEPS} sweeps a fitted margin is still {off:.2g} records off")
    return LogLinearRisk.of_chances(
        chance,
        baseline=float(sampled.mean()) / read.n,
        attack="link to a person of the population who shares the key",
        assumptions=(*read.notes, *notes),
        unique=np.where(frequency == 1, np.exp(-rest), 0.0),
        frequency=frequency,
        fitted=fitted,
    )


def _all_pairs(values: Sequence[Integers]) -> tuple[Floats, float]:
    """Fit the whole table of keys by iterative proportional fitting; also how far margins are."""
    shape = tuple(int(own.max()) + 1 for own in values)
    cells = int(np.prod([float(width) for width in shape]))
    if cells > CELLS:
        raise BadTableError(
            f"The keys have {cells:,} combinations, and all pairs are fitted up to {CELLS:,}. Give "
            "interactions=1, fewer known=, or coarser categories."
        )
    n, fitted = len(values[0]), np.ones(shape)
    at = np.ravel_multi_index(tuple(values), shape)
    seen = np.bincount(at, minlength=cells).reshape(shape).astype(np.float64)
    margins = []
    for pair in combinations(range(len(shape)), 2):
        others = tuple(axis for axis in range(len(shape)) if axis not in pair)
        margins.append((others, seen.sum(axis=others, keepdims=True)))
    worst = np.inf
    for _ in range(SWEEPS):
        if worst < CLOSE * n:
            break
        worst = 0.0
        for others, margin in margins:
            now = fitted.sum(axis=others, keepdims=True)
            worst = max(worst, float(np.abs(now - margin).max()))
            fitted *= np.divide(margin, now, out=np.zeros_like(margin), where=now > 0)
    found: Floats = fitted.reshape(-1)[at]
    return found, worst
