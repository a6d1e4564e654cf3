"""k-anonymity: how many records share the keys of each, in the table as it is released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._parameters import check, parameters
from ..._types import Floats, Integers, Name
from ...schema import Schema
from ..estimate import Estimate
from .keys import (
    COUNT,
    MISSING,
    MISSING_AS,
    RENAMED,
    Keys,
    count_matches,
    first_rows,
    read_keys,
    read_weights,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Anonymity", "k_anonymity"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Anonymity(Estimate):
    """How many records of a table share each key.

    `value` is the share of records that an intruder finds who knows the keys of a person, and that
    the person is in the table: the mean of 1 / f. Besides the fields of `Estimate`:

    Parameters
    ----------
    k : int
        The least number of records that share a key.
    n_classes : int
        The number of different keys.
    below : dict of int to int
        For each k asked for, the number of records whose key fewer than k records share.
    classes : array of shape (n,)
        The number of each record's class: same number, same key.
    frequency : array of shape (n,)
        f: how many records share the key of each.
    population : array of shape (n,) or None
        With weights, the sum of weights over those records: how many persons of the population
        are thought to share it.
    """

    k: int
    n_classes: int
    below: Mapping[int, int]
    classes: Integers = field(repr=False)
    frequency: Integers = field(repr=False)
    population: Floats | None = field(repr=False, default=None)
    _keys: Keys = field(repr=False)

    @property
    def chance(self) -> Floats:
        """Chance to pick the right record among those that share its key, 1 / f."""
        chance: Floats = 1 / self.frequency
        return chance

    @property
    def histogram(self) -> pd.DataFrame:
        """For each size f: how many records share their key with f in all, and how many keys."""
        import pandas as pd

        first = first_rows(self.classes)
        sizes, records = np.unique(self.frequency, return_counts=True)
        keys = np.bincount(np.searchsorted(sizes, self.frequency[first]), minlength=len(sizes))
        return pd.DataFrame({"size": sizes, "records": records, "keys": keys})

    @property
    def records(self) -> pd.DataFrame:
        """One line for each record."""
        import pandas as pd

        columns = {"class": self.classes, "frequency": self.frequency, "chance": self.chance}
        if self.population is not None:
            columns["population"] = self.population
        return pd.DataFrame(columns)

    def smallest(self, most: int = 10) -> pd.DataFrame:
        """List the rarest keys, values and all, with the number of records that share them."""
        import pandas as pd

        first = first_rows(self.classes)
        check({"most": COUNT}, {"most": most})
        order = np.argsort(self.frequency[first], kind="stable")[:most]
        rows = first[order]
        columns: dict[Any, Any] = {}
        for name in self._keys.columns:
            own, texts = self._keys.view.table.labels(name)
            columns[name] = [texts[own[row]] if own[row] >= 0 else None for row in rows]
        return pd.DataFrame({**columns, "records": self.frequency[rows]})

    def __str__(self) -> str:
        few = ", ".join(f"{count:,} below {k}" for k, count in self.below.items())
        return f"k = {self.k} ({self.n_classes:,} keys; records: {few})\n{super().__str__()}"

    __repr__ = __str__


@parameters(RENAMED, missing_as=MISSING_AS)
def k_anonymity(
    masked: Any,
    *,
    known: Sequence[Name] | Name | None = None,
    schema: Schema | None = None,
    missing_as: str = "category",
    weights: Any = None,
    below: Sequence[int] = (2, 3, 5, 10),
) -> Anonymity:
    """Count how many records share each key.

    Parameters
    ----------
    masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The released table.
    known : name or sequence of names, optional
        The quasi-identifiers; otherwise the schema's, or without a schema every column (but the
        weights).
    schema : Schema, optional
        Roles and missing codes.
    missing_as : {"category", "any"}
        Whether a missing value is a value of its own (each missing code apart: the careful way),
        or agrees with every value.
    weights : name or array-like of shape (n,), optional
        Sampling weights.
    below : sequence of int
        The k for which records below k are counted.

    Returns
    -------
    Anonymity

    Notes
    -----
    With x_i the key of record i and w_i its weight,

        f_i = #{j : x_j agrees with x_i},  k = min f_i,  value = (1/n) Σ 1/f_i,
        population_i = Σ w_j over the same j.

    Numbers agree if they are equal, without tolerance. With missing_as="any", agreement is not
    transitive: a record that lacks values may count for several that differ, so k is what
    sdcMicro reports and not a promise that an intruder meets k persons who cannot be told apart.

    References
    ----------
    P. Samarati (2001) Protecting respondents' identities in microdata release. IEEE Transactions
    on Knowledge and Data Engineering 13(6), 1010-1027.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.risk import k_anonymity
    >>> release = pd.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 30, 30, 40]})
    >>> k_anonymity(release, below=(2, 3))
    k = 1 (3 keys; records: 2 below 2, 4 below 3)
    75.0 % of 4 records (all of them; by guessing 25.0 %): look up the key, pick one that shares it
    """
    read = read_keys(masked, known, schema=schema, besides=(weights,))
    mass = read_weights(read.view, weights)
    found = count_matches(read, missing_as=missing_as, weights=mass)
    limits = sorted(set(below))
    for k in limits:
        check({"below": COUNT}, {"below": k})
    result: Anonymity = Anonymity.of(
        float((1 / found.count).sum()),
        read.n,
        baseline=1 / read.n,
        attack="look up the key, pick one that shares it",
        assumptions=(*read.notes, "he knows that the person is in the table", MISSING[missing_as]),
        exact=True,
        k=int(found.count.min()),
        n_classes=int(found.classes.max()) + 1,
        below={k: int((found.count < k).sum()) for k in limits},
        classes=found.classes,
        frequency=found.count,
        population=found.weight,
        _keys=read,
    )
    return result
