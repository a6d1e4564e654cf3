"""Probabilistic k-anonymity: no link has more than one chance in k to be right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._parameters import check, parameters
from ..._types import Floats, Name
from ...kernels.duplicates import number_equal
from ...schema import Schema
from ..aligned import AlignedTables, align_tables
from ..estimate import Estimate
from ..learned.family import Family
from ..linkage import Measure, as_points, measure
from .keys import COUNT

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ProbableAnonymity", "probabilistic_k_anonymity"]


@dataclass(frozen=True, kw_only=True, repr=False)
class ProbableAnonymity(Estimate):
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

    @property
    def records(self) -> pd.DataFrame:
        """One line for each released record. Confidential: it says who can be found."""
        import pandas as pd

        return pd.DataFrame(
            {
                "from person": self.from_person,
                "from record": self.from_record,
                "chance": self.chance,
            }
        )

    def __str__(self) -> str:
        return f"k = {self.k} (chances of at most {self.chance.max():.3g})\n{super().__str__()}"

    __repr__ = __str__


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
    result: ProbableAnonymity = ProbableAnonymity.of(
        float(chance.sum()),
        n,
        baseline=1 / n,
        attack=f"nearest record, both ways, {forward.name}",
        assumptions=(f"known: {', '.join(map(str, sides.columns))}", *forward.notes),
        exact=True,
        chance=chance,
        from_person=from_person,
        from_record=from_record,
    )
    return result


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
    chance: Floats = np.where(nearer == 0, 1 / np.maximum(tied, 1), 0.0)
    return chance
