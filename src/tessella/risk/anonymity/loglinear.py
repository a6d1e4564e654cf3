"""Risk of sample uniques by a log-linear model: what keys are rare is learned from all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._parameters import NONE, Whole, parameters
from ..._types import Floats, Integers, Name
from ...exceptions import BadOptionError, BadTableError
from ...frame import group_ids
from ...schema import Schema
from ..estimate import Estimate
from .keys import RENAMED, SHARE, first_rows, read_keys, read_weights
from .uniques import mean_inverse_poisson

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LogLinearRisk", "log_linear_risk"]


CELLS = 5_000_000
SWEEPS = 500
CLOSE = 1e-8  # of n: how far fitted margins may be from those of the table


@dataclass(frozen=True, kw_only=True, repr=False)
class LogLinearRisk(Estimate):
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

    @property
    def records(self) -> pd.DataFrame:
        """One line for each record. Confidential: it says who can be found."""
        import pandas as pd

        return pd.DataFrame(
            {
                "frequency": self.frequency,
                "fitted": self.fitted,
                "unique": self.unique,
                "chance": self.chance,
            }
        )


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
    masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The released sample.
    known, schema
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
    mass = read_weights(read.view, weights)
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
        fitted = _independent(values)
    else:
        fitted, off = _all_pairs(values)
    rest = fitted * (1 - sampled) / sampled
    first = first_rows(classes)
    chance = mean_inverse_poisson(frequency[first], rest[first])[classes]
    how = "keys independent of each other" if interactions == 1 else "all pairs of keys interact"
    notes = [*read.notes, f"a Poisson log-linear model, {how}"]
    if off >= CLOSE * read.n:
        notes.append(f"after {SWEEPS} sweeps a fitted margin is still {off:.2g} records off")
    result: LogLinearRisk = LogLinearRisk.of(
        float(chance.sum()),
        read.n,
        baseline=float(sampled.mean()) / read.n,
        attack="link to a person of the population who shares the key",
        assumptions=notes,
        exact=True,
        chance=chance,
        unique=np.where(frequency == 1, np.exp(-rest), 0.0),
        frequency=frequency,
        fitted=fitted,
    )
    return result


def _independent(values: Sequence[Integers]) -> Floats:
    n = len(values[0])
    fitted = np.full(n, float(n))
    for own in values:
        fitted *= np.bincount(own)[own] / n
    return fitted


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
