"""Special uniques: who is singled out by few variables, and by how many sets of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._parameters import OneOf, parameters
from ..._types import Floats, Integers, Name, Truths
from ...exceptions import BadOptionError
from ...frame import group_ids
from ...kernels.groups import minimal_uniques
from ...schema import Schema
from ..estimate import Estimate
from .keys import COUNT, RENAMED, SHARE, Keys, count_matches, first_rows, read_keys
from .population import right_if_unique

if TYPE_CHECKING:
    import pandas as pd

MISSING = {
    "category": "a missing value is a value of its own, and agrees with its like only",
    "ignore": "a missing value is in no set of values, and agrees with nothing",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class SpecialUniques(Estimate):
    """The minimal sample uniques (MSU) of a table, and scores by them.

    `value` is the share of records that a match by an intruder, unique in the sample, would find:
    the mean DIS-SUDA score. Besides the fields of `Estimate`:

    Parameters
    ----------
    chance : array of shape (n,)
        DIS-SUDA: chance that a match with the record is right; 0 for records that are not unique.
    score : array of shape (n,)
        SUDA score.
    contributions : array of shape (n, d)
        The share of each record's score that comes from sets with a variable. Rows do not add up
        to 1: a set counts for each of its variables.
    max_size : int
        The largest set that was looked for.
    right_if_unique : float
        DIS: chance that a unique match is right, for the whole file.
    owner, sets : arrays of shape (s,)
        All MSU: the record, and its set of variables as bits (bit j for the j-th key).
    keys : tuple
        The names of the keys.
    """

    chance: Floats = field(repr=False)
    score: Floats = field(repr=False)
    contributions: Floats = field(repr=False)
    max_size: int
    right_if_unique: float
    owner: Integers = field(repr=False)
    sets: Integers = field(repr=False)
    keys: tuple[Name, ...]

    @property
    def by_variable(self) -> Mapping[Name, float]:
        """For each variable, the share of all scores that comes from sets with it."""
        total = float(self.score.sum())
        parts = (self.contributions * self.score[:, None]).sum(axis=0)
        return {k: float(part / total) if total else 0.0 for k, part in zip(self.keys, parts)}

    @property
    def by_size(self) -> Mapping[int, int]:
        """For each size, the number of MSU."""
        counts = np.bincount(_sizes(self.sets), minlength=self.max_size + 1)
        return {size: int(counts[size]) for size in range(1, self.max_size + 1)}

    def sets_of(self, record: int) -> list[tuple[Name, ...]]:
        """List the MSU of a record, the smallest first."""
        own = self.sets[self.owner == record]
        named = [tuple(k for j, k in enumerate(self.keys) if mask >> j & 1) for mask in own]
        return sorted(named, key=len)

    @property
    def records(self) -> pd.DataFrame:
        """One line for each record. Confidential: it says who can be found."""
        import pandas as pd

        least = np.full(self.n, self.max_size + 1)
        np.minimum.at(least, self.owner, _sizes(self.sets))
        smallest = np.where(least > self.max_size, 0, least)
        sets = np.bincount(self.owner, minlength=self.n)
        own = {"score": self.score, "chance": self.chance}
        return pd.DataFrame({"sets": sets, "smallest": smallest, **own})


@parameters(RENAMED, max_size=COUNT, fraction=SHARE, missing_as=[OneOf(MISSING)])
def suda(
    masked: Any,
    *,
    known: Sequence[Name] | Name | None = None,
    max_size: int = 3,
    fraction: float = 0.01,
    schema: Schema | None = None,
    missing_as: str = "category",
) -> SpecialUniques:
    """Find all minimal sample uniques up to a size, and score records by them.

    Parameters
    ----------
    masked, known, schema
        As in `k_anonymity`; up to 62 variables.
    max_size : int
        M, the largest set of variables to look for; more than there are keys means all sizes.
    fraction : float
        The sampling fraction, for DIS-SUDA (sdcMicro's DisFraction).
    missing_as : {"category", "ignore"}
        Whether a missing value can single a record out, or is in no set (as in sdcMicro; then a
        record that lacks a value does not hide others either: the careful side). Ignored, a record
        is a sample unique if no other has all the values that it has.

    Notes
    -----
    A set S of variables is a minimal sample unique of record i if no other record has the values of
    i on S, and this is true of no subset of S. Of d variables, a set of size s counts

        Π_{j=s}^{min(M, d-1)} (d - j),

    the SUDA score is the sum over the record's sets. DIS is θ of `uniques`; DIS-SUDA spreads it by

        c_i = 1 / (1 + u (1/θ - 1) / (s_i^Q Σ_j s_j^-Q)),  Q = 1 + (8 - d)/20,

    over the u records with a score s_i > 0, so that the harmonic mean of c is θ. A sample unique
    whose sets all have more than M variables has score 0 and c = θ: it is no special unique, but
    unique still. A record that is in no set of any size has c = 0.

    References
    ----------
    M. J. Elliot, A. Manning, K. Mayes, J. Gurd and M. Bane (2005) SUDA: a program for detecting
    special uniques. UNECE/Eurostat work session on statistical data confidentiality, Geneva.
    A. M. Manning, D. J. Haglin and J. A. Keane (2008) A recursive search algorithm for statistical
    disclosure assessment. Data Mining and Knowledge Discovery 16, 165-196.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.risk import suda
    >>> sample = pd.DataFrame({"sex": ["f", "f", "m", "m"], "age": [3, 4, 4, 5], "town": [1] * 4})
    >>> found = suda(sample)
    >>> found.sets_of(0), found.sets_of(1)
    ([('age',)], [('sex', 'age')])
    >>> found.score
    array([2., 1., 1., 2.])
    """
    share = float(fraction)
    read = read_keys(masked, known, schema=schema)
    d = len(read.columns)
    if d > 62:
        raise BadOptionError("known", f"{d} columns", "at most 62")
    most = min(max_size, d)
    matches = count_matches(read, missing_as=missing_as)
    frequency = matches.count
    owner, sets = _search(read, matches.classes, frequency, most, missing_as)
    sizes = _sizes(sets)
    last = min(most, d - 1)
    worth = np.array([float(prod(d - j for j in range(s, last + 1))) for s in range(d + 1)])
    score = np.zeros(read.n)
    np.add.at(score, owner, worth[sizes])
    parts = np.empty((read.n, d))
    for j in range(d):
        has = (sets >> j & 1).astype(bool)
        parts[:, j] = np.bincount(owner[has], weights=worth[sizes[has]], minlength=read.n)
    right = right_if_unique(frequency, share)
    chance = _spread(score, frequency == 1, right, d)
    notes = [MISSING[missing_as], f"sets of at most {most} of {d} variables"]
    notes.append(f"a simple random sample of {100 * share:g} % of the population")
    if left := int(((frequency == 1) & (score == 0)).sum()):
        notes.append(f"{left:,} sample uniques have no such set: score 0, the file's chance")
    whole = score[:, None]
    return SpecialUniques.of_chances(
        chance,
        baseline=share / read.n,
        attack="look for records that few variables single out",
        assumptions=(*read.notes, *notes),
        score=score,
        contributions=np.divide(parts, whole, out=np.zeros_like(parts), where=whole > 0),
        max_size=most,
        right_if_unique=right,
        owner=owner,
        sets=sets,
        keys=read.columns,
    )


def _search(
    read: Keys, classes: Integers, frequency: Integers, most: int, missing_as: str
) -> tuple[Integers, Integers]:
    """Return record and set of every MSU, records in order."""
    first = first_rows(classes)
    columns = []
    for own in read.codes:
        values = own[first]
        place = group_ids([values])
        columns.append(place if missing_as == "category" else np.where(values < 0, -1, place))
    widths = np.array([int(column.max()) + 1 for column in columns], dtype=np.int64)
    # Columns with most values get the highest bits: their sets have the most supersets to visit,
    # and leave the fewest records to look at.
    order = np.argsort(widths, kind="stable")
    codes = np.ascontiguousarray(np.stack([columns[j] for j in order]))
    alone = frequency[first] == 1
    rows, masks = minimal_uniques(codes, np.maximum(widths[order], 1), alone, most)
    sets = np.zeros(len(masks), dtype=np.int64)
    for bit, j in enumerate(order):
        sets |= (masks >> bit & 1) << int(j)
    owner = first[rows]
    by_record = np.lexsort((sets, owner))
    return owner[by_record], sets[by_record]


def _sizes(sets: Integers) -> Integers:
    """Count the bits of each set."""
    sizes = np.zeros(len(sets), dtype=np.int64)
    for bit in range(int(sets.max(initial=0)).bit_length()):
        sizes += sets >> bit & 1
    return sizes


def _spread(score: Floats, alone: Truths, right: float, d: int) -> Floats:
    """Spread the chance of the file over its sample uniques by their scores."""
    chance = np.where(alone, right, 0.0)
    scored = score > 0
    if scored.any() and right > 0:
        power = 1 + (8 - d) / 20
        weight = score[scored] ** power * (score[scored] ** -power).sum()
        chance[scored] = 1 / (1 + scored.sum() * (1 / right - 1) / weight)
    return chance
