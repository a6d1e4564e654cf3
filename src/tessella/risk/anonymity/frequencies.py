"""From sample to population: what a sample frequency says of how many persons share a key.

F is the unknown number of persons of the population who share a key that f records of the sample
have. Two models of F given f, each with what it says of 1/F and of F = 1:

*negative binomial*: F is the number of persons to be asked until f of them are sampled, each with
chance p; *Poisson*: f + X persons, X with mean m.
"""

from __future__ import annotations

import numpy as np

from ..._types import Floats, Integers

__all__ = ["mean_inverse", "mean_inverse_poisson"]


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
    >>> from tessella.risk.anonymity.frequencies import mean_inverse
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
    >>> from tessella.risk.anonymity.frequencies import mean_inverse_poisson
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
