"""Individual risk: the chance that a record of a weighted survey is linked to its person.

The sample frequency of a key is known, the population frequency is not: sampling weights say how
large it may be. Whoever finds one member of a household finds the others: *household risk*.

Probabilistic k-anonymity: no link has more than one chance in k to be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._parameters import OneOf, check, parameters
from ..._types import Floats, Integers, Name
from ...exceptions import BadOptionError
from ...frame import View
from ...kernels.groups import number_equal
from ...schema import Schema
from ..aligned import AlignedTables, Measure, align_tables, as_points, measure
from ..estimate import RecordEstimate
from ..learned.families import Family
from .keys import COUNT, MISSING, RENAMED, count_matches, first_rows, read_keys
from .population import mean_inverse


@dataclass(frozen=True, kw_only=True, repr=False)
class ProbableAnonymity(RecordEstimate):
    """The chance of each link, and the k that it speaks of.

    `value` is the mean chance. Besides the fields of `Estimate`:

    Parameters
    ----------
    chance : array of shape (n,)
        The larger chance of the two ways to link each released record.
    from_person, from_record : arrays of shape (n,)
        Chance that the released record nearest to a person is his, and that the person nearest to
        a released record (one of those that look the same) is its own.
    """

    _columns = ("from person=from_person", "from record=from_record", "chance")
    chance: Floats = field(repr=False)
    from_person: Floats = field(repr=False)
    from_record: Floats = field(repr=False)

    @property
    def k(self) -> int:
        """The largest k for which every chance is at most 1/k; 0 chance counts for every k."""
        most = float(self.chance.max())
        return self.n if most == 0 else int(np.floor(1 / most + 1e-9))

    def below(self, k: int) -> int:
        """Count the records whose chance is above 1/k."""
        check({"k": COUNT}, {"k": k})
        return int((self.chance > (1 + 1e-9) / k).sum())

    def __str__(self) -> str:
        return f"k = {self.k} (chances of at most {self.chance.max():.3g})\n{super().__str__()}"


@parameters({"release": "masked", "scale": "standardise"})
def probabilistic_k_anonymity(
    original: Any,
    masked: Any,
    *,
    known: Sequence[Name] | Name | None = None,
    distance: str | Family = "euclidean",
    id: Name | None = None,
    schema: Schema | None = None,
    standardise: str = "each",
    covariance: str = "difference",
) -> ProbableAnonymity:
    """Count the chances of links between original and release, for the k that they allow.

    Parameters
    ----------
    original, masked, known, distance, id, schema, standardise, covariance
        As in `link`.

    Notes
    -----
    A release is probabilistically k-anonymous if for any external file the chance that a record of
    it is linked rightly is at most 1/k. Recomputed in the tables, with the original as external
    file and a distance d: let N(x) be the released records nearest to the original x_i,

        c_i = [y_i ∈ N(x_i)] / #N(x_i),

    and the other way round, with the t_i released records that are identical to y_i and cannot be
    told apart, the mean over them of [x_j ∈ N(y_j)] / #N(y_j). The larger one is the chance of
    record i, and k = floor(1 / max). k-anonymity in all known variables gives at least k. Where
    masking was random, these are chances given its outcome: a right link of one nearest record
    counts 1, whatever the intruder may know of it. It speaks of this distance only.

    References
    ----------
    J. Soria-Comas and J. Domingo-Ferrer (2012) Probabilistic k-anonymity through microaggregation
    and data swapping. IEEE International Conference on Fuzzy Systems. A. Oganian and
    J. Domingo-Ferrer (2017) Local synthesis for disclosure limitation that satisfies probabilistic
    k-anonymity criterion. Transactions on Data Privacy 10, 61-81.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk import probabilistic_k_anonymity
    >>> original = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> probabilistic_k_anonymity(original, np.array([[0.5], [0.5], [10.5], [10.5]])).k
    2
    >>> probabilistic_k_anonymity(original, original + 0.1).k
    1
    """
    sides = align_tables(original, masked, known=known, id=id, schema=schema)
    n = len(sides.A)
    forward = measure(sides, distance, standardise=standardise, covariance=covariance)
    from_record = _chances(forward, n)
    from_person = _chances(_turned(sides, distance, standardise, covariance), n)
    alike = number_equal(np.ascontiguousarray(sides.A))[0]
    sizes = np.bincount(alike)
    from_record = (np.bincount(alike, weights=from_record) / sizes)[alike]
    chance = np.maximum(from_person, from_record)
    return ProbableAnonymity.of_chances(
        chance,
        baseline=1 / n,
        attack=f"nearest record, both ways, {forward.name}",
        assumptions=(f"known: {', '.join(map(str, sides.columns))}", *forward.notes),
        from_person=from_person,
        from_record=from_record,
    )


def _turned(
    sides: AlignedTables, distance: str | Family, standardise: str, covariance: str
) -> Measure:
    """Prepare the same distance for links from persons to released records, on the same scale."""
    plain: str | Family = distance
    if isinstance(distance, Family):
        sides = sides.scaled(standardise)
    elif distance != "gower":
        points = as_points(sides, distance, standardise=standardise, covariance=covariance)
        sides = replace(sides, A=points.A, B=points.B)
        plain = "euclidean" if points.power == 2 else "manhattan"
    turned = AlignedTables(
        columns=sides.columns,
        A=np.ascontiguousarray(sides.B[sides.truth]),
        B=sides.A,
        truth=np.arange(len(sides.A)),
        nominal=sides.nominal,
    )
    return measure(turned, plain, standardise="none", covariance=covariance)


def _chances(how: Measure, n: int) -> Floats:
    nearer, tied = how.counting(np.arange(n), 1)
    return np.where(nearer == 0, 1 / np.maximum(tied, 1), 0.0)


@dataclass(frozen=True, kw_only=True, repr=False)
class IndividualRisk(RecordEstimate):
    """The chance of re-identification of each record of a weighted sample.

    `value` is its mean, so n times `value` re-identifications are expected. Besides the fields
    of `Estimate`:

    Parameters
    ----------
    chance : array of shape (n,)
        The risk of each record; with households, of its household.
    individual : array of shape (n,)
        The risk of each record by itself.
    frequency, population : arrays of shape (n,)
        How many records of the sample, and about how many persons, share its key.
    household : array of shape (n,) or None
        The number of each record's household.
    """

    _columns = ("frequency", "population", "individual", "household", "chance")
    chance: Floats = field(repr=False)
    individual: Floats = field(repr=False)
    frequency: Integers = field(repr=False)
    population: Floats = field(repr=False)
    household: Integers | None = field(repr=False, default=None)

    @property
    def expected(self) -> float:
        """The expected number of re-identified records."""
        return float(self.chance.sum())

    def above(self, risk: float) -> int:
        """Count the records whose risk is above a limit."""
        return int((self.chance > risk).sum())


@parameters(RENAMED | {"household": "unit"}, missing_as=[OneOf(MISSING)])
def individual_risk(
    masked: Any,
    *,
    known: Sequence[Name] | Name | None = None,
    weights: Any = None,
    unit: Any = None,
    schema: Schema | None = None,
    missing_as: str = "category",
) -> IndividualRisk:
    """Estimate the risk of each record of a weighted sample.

    Parameters
    ----------
    masked, known, schema, missing_as
        As in `k_anonymity`.
    weights : name or array-like of shape (n,)
        Sampling weights: how many persons each record stands for. Otherwise the schema's.
    unit : name or array-like of shape (n,), optional
        The household, or other unit, of each record; an array if the number is not released.
        Otherwise the schema's, if the table has it.

    Notes
    -----
    For a key that f records have, F̂ = Σ w over them and p = f / F̂. Given f, the population
    frequency F is taken as negative binomial (the posterior of Benedetti and Franconi), and

        r = E[1/F | f] = (p^f / f) ₂F₁(f, f; f+1; 1-p),

    which is (p/(1-p)) log(1/p) for f = 1 and p/(1-p) - (p/(1-p))² log(1/p) for f = 2; r -> 1/f as
    p -> 1. It is computed exactly for every f. Where weights sum to less than f, p is 1. The risk
    of a household is 1 - Π (1 - r_i) over its members: at least one is found, independently.

    References
    ----------
    R. Benedetti and L. Franconi (1998) Statistical and technological solutions for controlled data
    dissemination. New Techniques and Technologies for Statistics, 225-232. L. Franconi and
    S. Polettini (2004) Individual risk estimation in mu-Argus: a review. Privacy in Statistical
    Databases, LNCS 3050, 262-272.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.risk import individual_risk
    >>> sample = pd.DataFrame({"sex": ["f", "f", "m"], "weight": [180.0, 180.0, 215.0]})
    >>> individual_risk(sample, known="sex", weights="weight").chance.round(6)
    array([0.005425, 0.005425, 0.025096])
    """
    view = View.of(masked, schema)
    home = view.read_units(unit)
    read = read_keys(view, known, schema=schema, besides=(weights, unit))
    mass = read.weights(weights)
    if mass is None:
        raise BadOptionError(
            "weights", weights, "the sampling weights, a column or one number for each record; for "
            "a whole population, k_anonymity gives the risk 1/f"
        )  # fmt: skip
    found = count_matches(read, missing_as=missing_as, weights=mass)
    weight = found.count if found.weight is None else found.weight
    population = np.maximum(weight, found.count).astype(np.float64)
    first = first_rows(found.classes)
    f = found.count[first]
    risk = mean_inverse(f, np.minimum(f / population[first], 1.0))[found.classes]
    notes = [MISSING[missing_as], "population frequencies: negative binomial given f"]
    few = int((weight < found.count * (1 - 1e-12)).sum())
    if few:
        notes.append(f"{few:,} records have a key whose weights sum to less than f: taken as f")
    chance = risk
    if home is not None:
        safe = np.bincount(home, weights=np.log1p(-np.minimum(risk, 1 - 1e-16)))
        sure = np.bincount(home, weights=(risk >= 1).astype(np.float64)) > 0
        chance = np.where(sure, 1.0, -np.expm1(safe))[home]
        count = int(home.max()) + 1
        notes.append(f"whoever is found leads to the household ({count:,} households)")
    return IndividualRisk.of_chances(
        chance,
        baseline=1 / float(mass.sum()),
        attack="link to a person of the population who shares the key",
        assumptions=(*read.notes, *notes),
        individual=risk,
        frequency=found.count,
        population=population,
        household=home,
    )
