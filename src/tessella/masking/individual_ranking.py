"""Individual ranking: each column is microaggregated on its own."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from .._parameters import OneOf
from .._types import Floats, Integers
from ..exceptions import BrokenPromiseError
from ..frame import Numbers, count_units, group_ids
from ..frame.columns import number_values
from ..grouping.base import check_k
from ..grouping.ordering import UnivariateOptimal
from .base import Declared, MaskedColumns, Perturbation, renamed, rows_of_strata
from .parts import group_means, parts_of
from .registry import Method, Options, Tuned, register, shrunk


@renamed(method="grouping")
@dataclass(eq=False, repr=False)
class IndividualRanking(Perturbation):
    """Replace each number by the mean of at least k near numbers of its column.

    **k holds in each column, not for records**: two columns group records differently, and
    `joint_k_` tells how many records share all their released values; it is often 1.

    Parameters
    ----------
    k : int, default 3
        The least number of records that share a value of a column.
    grouping : {"optimal", "fixed"}, default "optimal"
        The groups with the least squared error, or the first k in ascending order, the next k,
        and so on; the last group also takes what is left over, and has up to 2k - 1.
    columns, strata, weights, schema, round_integers
        As for `Microaggregation`.
    rules, random_state
        As for `NoiseAddition`; nothing here is random. **With rules, k is not promised in columns
        either**: records are moved to keep the rules.

    Attributes
    ----------
    labels_ : ndarray of shape (n, d)
        The group of each record in each column; records that lack the number are one group.
    joint_k_ : int
        The least number of records of a stratum that share all their released values.
    column_k_ : dict of name to int
        The same for each column, counted in the released table; at least k without rules.
    loss_, column_loss_, changed_, restoration_, columns_, untouched_
        As for `NoiseAddition`.

    Notes
    -----
    "optimal" is `UnivariateOptimal` (Hansen and Mukherjee 2003). Missing cells stay missing; a
    column that fewer than k records of a stratum lack is refused, as the gap would tell them.

    References
    ----------
    D. Defays and P. Nanopoulos (1993). Panels of enterprises and confidentiality: the small
    aggregates method. Proceedings of the 1992 Symposium on Design and Analysis of Longitudinal
    Surveys, Statistics Canada.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.masking import IndividualRanking
    >>> table = pd.DataFrame({"age": [21, 62, 23, 64], "income": [1.0, 3.0, 9.0, 5.0]})
    >>> masker = IndividualRanking(k=2)
    >>> masker.fit_transform(table)
       age  income
    0   22     2.0
    1   63     2.0
    2   22     7.0
    3   63     7.0
    >>> masker.joint_k_
    1
    """

    _parameters: ClassVar[Declared] = {"grouping": [OneOf(("optimal", "fixed"))]}

    k: int = 3
    _: KW_ONLY
    grouping: str = "optimal"

    def _perturb(self, read: MaskedColumns) -> Floats:
        values, weights, units = read.original.values, read.chosen.weights, read.view.units
        n, d = values.shape
        k = check_k(self.k, n)
        out, self.labels_ = np.empty_like(values), np.empty((n, d), dtype=np.int64)
        for j in range(d):
            column = np.where(read.known[:, j], values[:, j], 0.0)[:, None]
            parts = parts_of(read.original, [j], read.chosen.strata, k, units)
            if self.grouping == "optimal":
                scaled = read.scale.part([j]).apply(values[:, [j]])
                grouping = UnivariateOptimal(k).fit(
                    scaled, sample_weight=weights, strata=parts, units=units
                )
                labels = grouping.labels_
            else:
                labels = _cut(column[:, 0], parts, k, units)
            means = group_means(column, weights, labels, int(labels.max()) + 1)
            out[:, j], self.labels_[:, j] = means[labels, 0], labels
        return out

    def _look_at(self, read: MaskedColumns, released: Numbers) -> None:
        strata = read.chosen.strata.ids
        filled = np.where(released.missing, 0.0, released.values)
        states = released.state.astype(np.int64)
        columns = zip(filled.T, states.T)
        apart = [group_ids([strata, number_values(x), state]) for x, state in columns]
        units = read.view.units
        sizes = [int(count_units(alike, units).min()) for alike in apart]
        self.column_k_ = dict(zip(read.chosen.masked, sizes))
        self.joint_k_ = int(count_units(group_ids(apart), units).min())
        if self.rules is None and min(sizes) < self.k:
            method = type(self).__name__
            raise BrokenPromiseError.group_too_small(k=self.k, smallest=min(sizes), method=method)


def _cut(column: Floats, parts: Integers, k: int, units: Integers | None) -> Integers:
    """Cut each part, in ascending order, into groups of k; the last takes what is left over.

    With units, a group is cut off as soon as it has k distinct ones.
    """
    labels, groups = np.empty(len(column), dtype=np.int64), 0
    for rows in rows_of_strata(parts):
        ranked = rows[np.argsort(column[rows], kind="stable")]
        if units is None:
            many = len(rows) // k
            labels[ranked] = groups + np.minimum(np.arange(len(rows)) // k, many - 1)
            groups += many
            continue
        first, seen = groups, set()
        for row in ranked:
            seen.add(units[row])
            labels[row] = groups
            if len(seen) == k:
                groups, seen = groups + 1, set()
        if labels[ranked[-1]] == groups and groups > first:  # the rest has too few units
            labels[ranked[labels[ranked] == groups]] = groups - 1
    return labels


def _advise(options: Options, facts: Options) -> list[str]:
    groups = f"groups of at least {options['k']}" if "k" in options else "small groups"
    return [
        f"Each column on its own was put in order, and neighbours in {groups} got their mean. "
        "Means, quantiles and correlations are nearly kept; variances shrink slightly."
        f"{shrunk(facts)}"
    ]


METHOD = register(
    Method(
        name="individual ranking",
        masker=IndividualRanking,
        tuned=Tuned(name="k", low=2, high=200, whole=True),
        defaults={"k": 3},
        variants=lambda setting: ({},) if setting.n_numbers > 1 else (),
        description="individual ranking, k = {k} in each column",
        groups=lambda options, columns: [[name] for name in columns],  # noqa: ARG005
        attack="individual ranking",
        attack_options=lambda masker: {"k": masker.k},
        advice=_advise,
    )
)
