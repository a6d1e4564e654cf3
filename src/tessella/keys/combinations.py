"""Combinations of keys: counted by sorting, and the classes that suppression could put them in.

*Codes* are whole numbers, 0 where a cell is empty (missing, as an emptied cell is) and positive for
each value. A *combination* is a row of codes that occurs. A *class* is a released combination: the
codes of some combinations with further cells emptied. A combination fits a class if the class has
0, or the combination's own code, in every key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations as choose

import numpy as np

from .._types import Floats, Integers, SmallIntegers, Truths
from ..frame import count_units, group_ids

SUBSETS = 4096  # sets of emptied keys that are looked at, where there are many keys


@dataclass(frozen=True, kw_only=True, eq=False)
class Combinations:
    """The distinct rows of a table of codes.

    Attributes
    ----------
    codes : array of shape (m, q)
        The combinations.
    of : array of shape (n,)
        The combination of each record.
    strata : array of shape (m,)
        The stratum of each: records of different strata are never alike.
    records, respondents : arrays of shape (m,)
        How many records have each, and how many units; the same where no unit is named.
    charge, lightest : arrays of shape (m,)
        The sum of its records' costs, and the least of them; their number and 1 by default.
    """

    codes: SmallIntegers
    of: Integers
    strata: Integers
    records: Integers
    respondents: Integers
    charge: Floats
    lightest: Floats

    @classmethod
    def count(
        cls, codes: Integers, *, strata: Integers | None = None, units: Integers | None = None,
        costs: Floats | None = None,
    ) -> Combinations:  # fmt: skip
        """Count rows of codes, shape (n, q)."""
        n = len(codes)
        strata = np.zeros(n, dtype=np.int64) if strata is None else strata
        of = group_ids([strata, *codes.T])
        first = np.unique(of, return_index=True)[1]
        records = np.bincount(of)
        charge: Floats = records.astype(np.float64)
        lightest = np.ones(len(first))
        if costs is not None:
            charge = np.bincount(of, weights=costs).astype(np.float64)
            lightest = np.full(len(first), np.inf)
            np.minimum.at(lightest, of, costs)
        return cls(
            codes=np.ascontiguousarray(codes[first], dtype=np.int32), of=of, strata=strata[first],
            records=records, respondents=count_units(of, units), charge=charge, lightest=lightest,
        )  # fmt: skip

    def empty(self) -> Truths:
        """Return which cells of combinations are empty, shape (m, q)."""
        return np.equal(self.codes, 0)

    def digits(self) -> tuple[Integers, Integers]:
        """Return the combinations as numbers in a mixed radix, by key, and those of the strata.

        Sums of columns tell rows apart that differ in these columns. Where 2**62 would be passed,
        there are too many combinations of codes, and `group_ids` numbers rows instead.
        """
        radix = 1
        parts = np.zeros(self.codes.shape, dtype=np.int64)
        for j in range(self.codes.shape[1]):
            parts[:, j] = self.codes[:, j].astype(np.int64) * radix
            radix *= int(self.codes[:, j].max(initial=0)) + 1
            if radix * (int(self.strata.max(initial=0)) + 1) >= 2**62:
                raise OverflowError
        return parts, self.strata * radix


def subsets(weights: Floats, most: int = SUBSETS) -> Iterator[tuple[tuple[int, ...], float]]:
    """List sets of keys by the sum of their weights, the lightest first; at most so many."""
    q = len(weights)
    made: list[tuple[float, tuple[int, ...]]] = []
    for size in range(q + 1):
        made += [(float(weights[list(s)].sum()), s) for s in choose(range(q), size)]
        if len(made) >= most and size < q:
            # No larger set is lighter than the lightest of the next size: sort what is complete.
            least = float(np.sort(weights)[: size + 1].sum())
            made = [one for one in made if one[0] < least]
            break
    yield from ((s, weight) for weight, s in sorted(made)[:most])


class ClassGroups:
    """Numbers combinations by the class in which a set of keys is emptied."""

    def __init__(self, found: Combinations) -> None:
        self.found = found
        self.parts: Integers | None
        try:
            self.parts, self.base = found.digits()
            self.whole = self.base + self.parts.sum(axis=1)
        except OverflowError:
            self.parts = None

    def number(self, emptied: Sequence[int], rows: Integers) -> Integers:
        """Number some combinations 0, 1, ...; equal if they agree in all other keys."""
        if self.parts is not None:
            kept = self.whole[rows] - self.parts[rows][:, list(emptied)].sum(axis=1)
            return group_ids([kept])
        keep = [j for j in range(self.found.codes.shape[1]) if j not in emptied]
        own = self.found.codes[rows].astype(np.int64)
        return group_ids([self.found.strata[rows], *(own[:, j] for j in keep)])
