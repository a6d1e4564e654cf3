"""Risk where the population is known: who else has these keys, and who of them is in the release.

k-anonymity counts in the release, as if an intruder knew that a person is in it. One who has a list
of the population finds there all who have the keys of a record (*k-map*), and the share of them
that is in the release (*delta-presence*): both count in two tables, the release and the population.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._parameters import OneOf, check, parameters
from ..._types import Floats, Integers, Name
from ...exceptions import BadOptionError, BadTableError
from ...frame import View, common_codes, count_in_population, count_units, match_patterns
from ...schema import Schema
from ..estimate import RecordEstimate
from .keys import COUNT, MISSING, RENAMED, Keys, _reader, read_keys

AGREES = {
    "any": "a missing released value agrees with every value",
    "category": MISSING["category"],
}


@dataclass(frozen=True, kw_only=True)
class Population:
    """A release and a population in one numbering of the keys.

    `released` and `people` have for each key the codes of all lines, `units` and `counts` say whom
    a line of the population stands for, and `mine` is the unit of each released record.
    """

    keys: Keys
    released: tuple[Integers, ...]
    people: tuple[Integers, ...]
    units: Integers | None
    counts: Floats | None
    mine: Integers | None
    wildcards: bool
    notes: tuple[str, ...]

    @classmethod
    def read(
        cls, masked: Any, population: Any, *, known: Any, schema: Schema | None, missing_as: str,
        counts: Name | None, unit: Name | None,
    ) -> Population:  # fmt: skip
        """Read both tables; refuse a population that lacks a key."""
        keys = read_keys(masked, known, schema=schema, besides=(unit,))
        people = View.of(population, schema)
        for name in keys.columns:
            people.table.place(name, who="population=")
        pairs = [common_codes(_reader(keys.view, name), _reader(people, name), name)
                 for name in keys.columns]  # fmt: skip
        units, mine, notes = None, keys.view.read_units(unit), [*keys.notes, AGREES[missing_as]]
        if counts is not None:
            number = _counts(people, counts)
            notes.append(f"the population counts {number.sum():,.0f}, by {counts!r}")
            mine = None  # a table of counts has no units
        else:
            number, units = None, _units(people, unit, keys.view)
            notes.append(f"the population has {people.n_rows:,} records")
        if units is None:
            mine = None
        else:
            notes.append(f"units are counted ({int(units.max()) + 1:,} in the population)")
        return cls(
            keys=keys, released=tuple(own for own, _ in pairs), units=units, counts=number,
            people=tuple(theirs for _, theirs in pairs), mine=mine, notes=tuple(notes),
            wildcards=missing_as == "any",
        )  # fmt: skip

    @property
    def size(self) -> float:
        """How many persons, or units, the population has."""
        if self.counts is not None:
            return float(self.counts.sum())
        return float(len(self.people[0]) if self.units is None else int(self.units.max()) + 1)

    @property
    def weights(self) -> Floats:
        """For how many persons each line of the population stands."""
        return np.ones(len(self.people[0])) if self.counts is None else self.counts

    def matches(self) -> Floats:
        """Count for each released record who agrees with it."""
        return count_in_population(
            self.released, self.people, units=self.units, counts=self.counts,
            wildcards=self.wildcards,
        )  # fmt: skip


def _counts(people: View, name: Name) -> Floats:
    people.table.place(name, who="counts=")
    numbers = _reader(people, name).numbers(name, who="counts=")
    wrong = int((~(np.isfinite(numbers) & (numbers >= 0))).sum())
    if wrong or not numbers.sum() > 0:
        raise BadOptionError(
            "counts", name, f"a column of counts, 0 or more; {wrong} cells are negative or missing"
        )
    return numbers


def _units(people: View, unit: Name | None, released: View) -> Integers | None:
    """Return the units of the population where the release counts units, too."""
    if unit is not None:
        return people.read_units(unit)
    if people.units is None and released.units is not None:
        raise BadTableError(
            "The release counts units, and the population does not name them: give a population "
            "that has the column of units, or unit= its name in both tables."
        )
    return people.units if released.units is not None else None


@dataclass(frozen=True, kw_only=True, repr=False)
class KMap(RecordEstimate):
    """How many persons of a population have the keys of each released record.

    `value` is the share of records whose person an intruder picks who looks the keys up in the
    population: the mean of 1 / F, 0 where nobody has the keys. Besides the fields of `Estimate`:

    Parameters
    ----------
    k : int
        The least F; 0 if some record has keys that nobody has.
    below : dict of int to float
        For each k asked for, the share of records with F < k.
    nobody : int
        Records with keys that nobody has: the release was perturbed, or the population lacks
        them. They count as below every k.
    matches : array of shape (n,)
        F: how many persons, or units, of the population have the keys of each record.
    """

    _columns = ("matches", "chance")
    k: int
    below: Mapping[int, float]
    nobody: int
    matches: Floats = field(repr=False)

    @property
    def chance(self) -> Floats:
        """Chance to pick the right person of the population, 1 / F."""
        return _picking(self.matches)

    def __str__(self) -> str:
        few = ", ".join(f"{100 * share:.1f} % below {k}" for k, share in self.below.items())
        return f"k-map: k = {self.k} (records: {few})\n{super().__str__()}"


@parameters(RENAMED, missing_as=[OneOf(AGREES)])
def k_map(
    masked: Any,
    population: Any,
    *,
    known: Sequence[Name] | Name | None = None,
    schema: Schema | None = None,
    missing_as: str = "any",
    counts: Name | None = None,
    unit: Name | None = None,
    below: Sequence[int] = (2, 3, 5, 10),
) -> KMap:
    """Count for each released record the persons of a population that have its keys.

    Parameters
    ----------
    masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The released table.
    population : table
        All persons that may be in the release, with the same keys, coded alike: recode it as the
        release was. Or a line for each combination of keys, with `counts`.
    known : name or sequence of names, optional
        The quasi-identifiers; otherwise the schema's, or without a schema every column.
    schema : Schema, optional
        Roles and missing codes of both tables.
    missing_as : {"any", "category"}
        Whether a missing released value (a suppressed one) agrees with every value, or with its
        like only. A missing value of the population agrees with no value: fewer are counted.
    counts : name, optional
        The column of the population that says how many persons have the keys of a line.
    unit : name, optional
        The column that names the household or firm, in both tables: distinct ones are counted. By
        default the schema's, if the release counts units.
    below : sequence of int
        The k for which the share of records below k is given.

    Notes
    -----
    F_i = #{j of the population : x_j agrees with x_i}, k = min F_i, value = (1/n) Σ 1/F_i.

    References
    ----------
    L. Sweeney (2002) k-anonymity: a model for protecting privacy. International Journal on
    Uncertainty, Fuzziness and Knowledge-based Systems 10(5), 557-570.
    K. El Emam and F. K. Dankar (2008) Protecting privacy using k-anonymity. Journal of the
    American Medical Informatics Association 15(5), 627-637.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.risk import k_map
    >>> people = pd.DataFrame({"sex": ["f", "m"], "age": [30, 30], "persons": [4, 1]})
    >>> release = pd.DataFrame({"sex": ["f", None], "age": [30, 30]})
    >>> k_map(release, people, counts="persons", below=(2, 5))
    k-map: k = 4 (records: 0.0 % below 2, 50.0 % below 5)
    22.5 % of 2 records (all of them; by guessing 20.0 %): look up the keys in the population
    """
    read = Population.read(
        masked, population, known=known, schema=schema, missing_as=missing_as, counts=counts,
        unit=unit,
    )  # fmt: skip
    limits = sorted(set(below))
    for k in limits:
        check({"below": COUNT}, {"below": k})
    found = read.matches()
    return KMap.of(
        float(_picking(found).sum()),
        len(found),
        baseline=min(1.0, 1 / read.size),
        attack="look up the keys in the population",
        assumptions=read.notes,
        exact=True,
        k=int(np.floor(found.min())),
        below={k: float((found < k).mean()) for k in limits},
        nobody=int((found == 0).sum()),
        matches=found,
    )


def _picking(matches: Floats) -> Floats:
    """Return 1 / F, 0 where nobody agrees; at most 1, as counts may be parts of persons."""
    found = np.divide(1.0, matches, out=np.zeros_like(matches), where=matches > 0)
    return np.minimum(found, 1.0)


@dataclass(frozen=True, kw_only=True, repr=False)
class Presence(RecordEstimate):
    """How surely a person of the population is in the release, by keys.

    `value` is the share of the population of whom an intruder is right who says that they are in
    the release where that is more probable than not, and that they are not elsewhere. Besides the
    fields of `Estimate`:

    Parameters
    ----------
    delta_min, delta_max : float
        The least and the largest presence of a person of the population.
    overfull : int
        Released records whose keys fewer of the population have than of the release: the release
        was perturbed, or the population lacks persons.
    presence : array of shape (N,)
        For each line of the population, the probability that such a person is in the release.
    """

    _columns = ("presence",)
    delta_min: float
    delta_max: float
    overfull: int
    presence: Floats = field(repr=False)

    def __str__(self) -> str:
        bounds = f"delta-presence: from {self.delta_min:.4g} to {self.delta_max:.4g}"
        return f"{bounds}\n{super().__str__()}"


@parameters(RENAMED, missing_as=[OneOf(AGREES)])
def delta_presence(
    masked: Any,
    population: Any,
    *,
    known: Sequence[Name] | Name | None = None,
    schema: Schema | None = None,
    missing_as: str = "any",
    counts: Name | None = None,
    unit: Name | None = None,
) -> Presence:
    """Bound how surely an intruder knows that a person of the population is in the release.

    Parameters
    ----------
    masked, population, known, schema, missing_as, counts, unit
        As in `k_map`.

    Notes
    -----
    Of F persons of the population with the same keys, f are in the release: each with probability
    f / F. With suppressed cells, records of several patterns may belong to a person: the sum of
    their f / F over patterns, at most 1, which is then an upper bound. δ_min is 0 if the keys of
    somebody are not released at all.

    References
    ----------
    M. E. Nergiz, M. Atzori and C. Clifton (2007) Hiding the presence of individuals from shared
    databases. SIGMOD 2007, 665-676.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.risk import delta_presence
    >>> people = pd.DataFrame({"sex": list("ffffmm")})
    >>> delta_presence(pd.DataFrame({"sex": list("ffm")}), people)
    delta-presence: from 0.5 to 0.5
    50.0 % of 6 records (all of them; by guessing 50.0 %): is this person in the release?
    """
    read = Population.read(
        masked, population, known=known, schema=schema, missing_as=missing_as, counts=counts,
        unit=unit,
    )  # fmt: skip
    presence, overfull = _presence(read)
    weights = read.weights
    held = weights > 0
    inside = float(np.minimum(weights @ presence, weights.sum())) / float(weights.sum())
    right = float(weights @ np.maximum(presence, 1 - presence)) / float(weights.sum())
    return Presence.of(
        right * len(presence),
        len(presence),
        baseline=max(inside, 1 - inside),
        attack="is this person in the release?",
        assumptions=read.notes,
        exact=True,
        delta_min=float(presence[held].min()),
        delta_max=float(presence[held].max()),
        overfull=overfull,
        presence=presence,
    )


def _presence(read: Population) -> tuple[Floats, int]:
    """Return f / F for each line of the population, and how many records are too many."""
    presence, overfull = np.zeros(len(read.people[0])), 0
    for rows, own, theirs in match_patterns(
        read.released, read.people, wildcards=read.wildcards
    ):  # fmt: skip
        most = int(max(own.max(), theirs.max())) + 1
        mine = None if read.mine is None else read.mine[rows]
        f = count_units(own, mine, most).astype(np.float64)
        if read.counts is not None:
            F = np.bincount(theirs, weights=read.counts, minlength=most)
        else:
            F = count_units(theirs, read.units, most).astype(np.float64)
        overfull += int((f > F)[own].sum())
        share = np.divide(f, F, out=np.zeros(most), where=F > 0)
        presence += np.minimum(share, 1.0)[theirs]
    return np.minimum(presence, 1.0), overfull
