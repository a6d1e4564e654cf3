"""Uniques: records that nobody in the sample shares the key with, and who may be alone in the
population too.

From sample to population: what a sample frequency says of how many persons share a key.

F is the unknown number of persons of the population who share a key that f records of the sample
have. Two models of F given f, each with what it says of 1/F and of F = 1:

*negative binomial*: F is the number of persons to be asked until f of them are sampled, each with
chance p; *Poisson*: f + X persons, X with mean m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._parameters import NONE, parameters
from ..._types import Floats, Integers, Name, Truths
from ...exceptions import BadOptionError
from ...schema import Schema
from ..estimate import Estimate
from .keys import MISSING, MISSING_AS, RENAMED, SHARE, count_matches, read_keys, read_weights

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Uniques", "mean_inverse", "mean_inverse_poisson", "right_if_unique", "uniques"]

SHORT = 12  # from here on the series is short whatever p is
MANY = 200
TERMS = 100_000  # a bound that is not reached


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

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk.anonymity.uniques import mean_inverse
    >>> mean_inverse(np.array([1, 2, 5]), np.array([0.1, 0.1, 1.0])).round(4)
    array([0.2558, 0.0827, 0.2   ])
    """
    q = 1 - p
    out = np.empty(len(p))
    by_series = (q <= 0.5) | (f >= SHORT)
    out[by_series] = _series(f[by_series], q[by_series]) * p[by_series] / f[by_series]
    rest = np.flatnonzero(~by_series)
    odds = p[rest] / q[rest]
    integral = -odds * np.log(p[rest])
    for step in range(1, SHORT):
        here = f[rest] == step
        out[rest[here]] = integral[here]
        integral = odds * (1 / step - integral)
    return out


def _series(f: Integers, q: Floats) -> Floats:
    total, term = np.ones(len(f)), np.ones(len(f))
    for m in range(1, TERMS):
        term = term * (q * m / (f + m))
        total += term
        if not (term > 1e-17 * total).any():
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

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk.anonymity.uniques import mean_inverse_poisson
    >>> mean_inverse_poisson(np.array([1, 1, 3]), np.array([0.0, 2.0, 0.0])).round(4)
    array([1.    , 0.4323, 0.3333])
    """
    out = np.empty(len(m))
    large = (f > MANY) & (m >= f)
    out[large] = _by_moments(f[large], m[large])
    falling = ~large & (f > m)
    out[falling] = _alternating(f[falling], m[falling])
    rest = np.flatnonzero(~large & ~falling)
    integral = -np.expm1(-m[rest]) / m[rest]
    for step in range(1, int(f[rest].max(initial=0)) + 1):
        here = f[rest] == step
        out[rest[here]] = integral[here]
        integral = (1 - step * integral) / m[rest]
    return out


def _alternating(f: Integers, m: Floats) -> Floats:
    total, term = np.ones(len(f)), np.ones(len(f))
    for j in range(1, TERMS):
        term = term * (-m / (f + j))
        total += term
        if not (np.abs(term) > 1e-17).any():
            break
    return total / f


def _by_moments(f: Integers, m: Floats) -> Floats:
    mean = f + m
    second, fourth, sixth = m, m + 3 * m**2, m + 25 * m**2 + 15 * m**3
    third, fifth = m, m + 10 * m**2
    ratio: Floats = (
        1
        + second / mean**2
        - third / mean**3
        + fourth / mean**4
        - fifth / mean**5
        + sixth / mean**6
    )
    return ratio / mean


@dataclass(frozen=True, kw_only=True, repr=False)
class Uniques(Estimate):
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

    @property
    def records(self) -> pd.DataFrame:
        """One line for each record. Confidential: it says who can be found."""
        import pandas as pd

        return pd.DataFrame({"unique": self.sample, "chance": self.chance})


@parameters(RENAMED, missing_as=MISSING_AS, fraction=[*SHARE, NONE])
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
    masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The released table.
    known, schema, missing_as
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
    mass = read_weights(read.view, weights)
    found = count_matches(read, missing_as=missing_as)
    alone = found.count == 1
    chance = alone.astype(np.float64)
    notes = [*read.notes, MISSING[missing_as]]
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
    result: Uniques = Uniques.of(
        float(chance.sum()),
        read.n,
        baseline=0.0,
        attack="look for records that are alone with their key",
        assumptions=notes,
        exact=True,
        chance=chance,
        sample=alone,
        right_if_unique=None if share is None else right_if_unique(found.count, share),
    )
    return result


def right_if_unique(frequency: Integers, fraction: float) -> float:
    """Return the chance that a unique match is right, by data intrusion simulation (DIS).

    With no unique and no pair in the sample there is nothing to estimate it from, and it is 0.
    """
    alone, paired = int((frequency == 1).sum()), int((frequency == 2).sum())
    sure, doubtful = fraction * alone, (1 - fraction) * paired
    return sure / (sure + doubtful) if sure > 0 else 0.0
