"""Uniques: records that nobody in the sample shares the key with, and who may be alone in the
population too.
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

__all__ = ["Uniques", "right_if_unique", "uniques"]


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
