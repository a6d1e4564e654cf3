"""Rank swapping: every column keeps its values, and records exchange them with near ranks."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._parameters import Number
from .._types import Floats
from ..exceptions import BadOptionError
from ..grouping.base import chance_of
from ..kernels.random_moves import draw_partners
from .base import Declared, MaskedColumns, Perturbation, rows_of_strata
from .registry import Method, Options, Tuned, register


def window_of(percent: float, n: int) -> int:
    """Return how many ranks two exchanged numbers of n may be apart."""
    return int(np.floor(float(percent) * n / 100 * (1 + 1e-12)))


@dataclass(eq=False, repr=False)
class RankSwapping(Perturbation):
    r"""Exchange each number with one whose rank differs by at most some per cent of n.

    Parameters
    ----------
    percent : float, default 5
        How far the ranks of two exchanged numbers may be apart, **in per cent of the number n of
        records** (of the stratum): 5 means at most floor(0.05 n) ranks.
    columns, strata, weights, schema, round_integers
        As for `Microaggregation`. Numbers are exchanged within strata; weights count in the
        loss, not in ranks.
    rules, random_state
        As for `NoiseAddition`.

    Attributes
    ----------
    loss_, column_loss_, changed_, restoration_, columns_, untouched_
        As for `NoiseAddition`. An exchange of equal numbers changes nothing, and does not count
        in `changed_`.
    unswapped_ : dict of name to int
        How many numbers of each column found no partner: at most one in each stratum.

    Notes
    -----
    Each column on its own, after Moore [1]_: the n known numbers of a stratum are put in ascending
    order, equal numbers in random order. From the lowest rank upward, a number that has not been
    exchanged yet is exchanged with one that is drawn uniformly among the not yet exchanged numbers
    of the next :math:`w = \lfloor pn/100 \rfloor` ranks. Every number is exchanged at most
    once. When rank i is reached, rank i + w is still free, as only ranks from i on see it; so only
    within the last w ranks can a number be left over, and at most one of them: if n is even, none.

    Means, variances and all else that is about one column stay to the last digit. k-anonymity is
    not claimed.

    References
    ----------
    .. [1] R. A. Moore (1996). Controlled data-swapping techniques for masking public use microdata
       sets. Statistical Research Division Report RR 96-04, U.S. Bureau of the Census.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.masking import RankSwapping
    >>> table = pd.DataFrame({"age": [21, 62, 35, 48, 30, 57]})
    >>> RankSwapping(percent=20, random_state=0).fit_transform(table)["age"].tolist()
    [30, 57, 48, 35, 21, 62]
    """

    _parameters: ClassVar[Declared] = {"percent": [Number(above=0, most=100)]}

    percent: float = 5

    def _perturb(self, read: MaskedColumns) -> Floats:
        values, chance = read.original.values, chance_of(self.random_state)
        out = values.copy()
        alone = dict.fromkeys(read.chosen.masked, 0)
        strata = rows_of_strata(read.chosen.strata.ids)
        for j, name in enumerate(read.chosen.masked):
            for rows, stratum in zip(strata, read.chosen.strata.names, strict=True):
                known = rows[read.known[rows, j]]
                if len(known) == 0:
                    continue
                window = window_of(self.percent, len(known))
                if window < 1 or len(known) < 2:
                    those = f"the {len(known)} numbers of {name!r} in stratum {stratum!r}"
                    released = "they would be released as they are; or merge strata"
                    more = f"more: of {those} it is less than one rank, and {released}"
                    raise BadOptionError("percent", self.percent, more)
                ties = chance.random(len(known))
                ranked = known[np.lexsort((ties, values[known, j]))]
                partner = draw_partners(chance.random(len(known)), window)
                out[ranked, j] = values[ranked[partner], j]
                alone[name] += int((partner == np.arange(len(partner))).sum())
        self.unswapped_ = alone
        return out


def _advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    return [
        "Values were exchanged between records whose ranks differ by at most "
        f"{options.get('percent', 5):g} % of the records, each column on its own. The distribution "
        "of a column is exactly kept (where no rule moved it): means, variances and quantiles "
        "can be used as they are.",
        "Relations between columns are weakened: correlations and regression slopes are drawn "
        "towards zero, most in small groups of records.",
    ]


METHOD = register(
    Method(
        name="rank swapping",
        masker=RankSwapping,
        tuned=Tuned(
            name="percent", low=0.1, high=100.0, values=(2, 5, 10, 20), least_records=100.0
        ),
        defaults={"percent": 5},
        description="rank swapping within {percent:g} % of the ranks",
        attack="rank swapping",
        attack_options=lambda masker: {"percent": masker.percent},
        advice=_advise,
    )
)
