"""Overlapping microaggregation: each record gets the mean of one of its k groups, drawn by chance.

Groups of k overlap: every record is in k of them, and there are as many groups as records. A draw
gives each group's mean to one of its members, and each record the mean of one of its groups, every
pair with probability 1/k. **What is promised is a posterior of at most 1/k, not k equal records.**
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from .._parameters import EFFORT, FLAG, OneOf
from .._types import Floats, Integers
from ..exceptions import BrokenPromiseError, MissingValuesError
from ..frame import Table, group_ids
from ..frame.columns import number_values
from ..fuzzy.drawing import Chance, chance_of
from ..grouping.base import check_k
from ..grouping.covering import Covering, find_covering
from ..kernels.covering import draw_matching
from ..rules.collection import Rules
from .base import MaskedColumns, Perturbation, rows_of_strata
from .parts import parts_of
from .registry import Method, Options, Tuned, register, shrunk

SPARE = 64  # words that a draw may refuse; it refuses one of 10^14


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """Records of one stratum that lack the same cells, and their covering."""

    rows: Integers
    covering: Covering
    centres: Floats  # the mean of each group, in the table's units
    drawn: Integers  # (n,) the member, among `rows`, that got the mean of each group

    @property
    def members(self) -> Integers:
        """The rows of the table in each group."""
        members: Integers = self.rows[self.covering.members]
        return members


@dataclass(eq=False, repr=False)
class OverlappingMicroaggregation(Perturbation):
    r"""Replace each record's numbers by the mean of one of its k overlapping groups, drawn.

    An intruder who knows the original table, the method, its parameters, and everything but the
    random numbers of the draw names the source of a released record with **probability at most
    1/k, for every record**. Released records need not be alike: this is not k-anonymity, and loses
    less than any grouping into k can.

    Parameters
    ----------
    k : int, default 3
        Nobody is named with a probability above 1/k.
    effort : {"quick", "standard", "thorough"}, default "standard"
        The work for `Search` and for what follows it, counted in moves and steps.
    order : {"shuffled", "kept"}, default "shuffled"
        **The promise needs a random order of the released records**, with which all their columns
        travel; an index counts up anew. "kept" is for who compares the tables, and shuffles
        before release, as a step of a plan with ``order = "shuffled"`` does.
    rules : Rules or text, optional
        Means are moved to the nearest point that keeps those that say linear things of masked
        columns, before the draw: no probability depends on it. `restoration_` names the others.
    scale, on_missing, columns, strata, weights, schema, round_integers
        As for `Microaggregation`.
    random_state : int, RandomState or None, default None
        None draws from the operating system's entropy, which nobody can repeat. A seed makes the
        release repeatable, and must then be kept as secret as the table.

    Attributes
    ----------
    memberships_ : scipy.sparse.csr_array of shape (n, n_centres)
        The probability that a record gets a released centre, before the draw.
    centres_ : ndarray of shape (n_centres, d)
        The released centres, NaN where cells are missing.
    sizes_ : ndarray of shape (n_centres,)
        How many records are released at each: the same in every draw.
    posterior_ : float
        The greatest probability with which a record is named, counted in the released table.
    labels_ : ndarray of shape (n,)
        The centre drawn for each original record.
    order_ : ndarray of shape (n,)
        The original row of each released record.
    expected_loss_ : float
        Information loss in per cent, as expected before the draw; `loss_` is that of the draw.
    crisp_loss_ : float
        That of the groups of at least k from which the overlapping ones were found.
    lower_bound_ : float
        What no memberships with a posterior of at most 1/k lose less than, without rounding.
    column_loss_, untouched_, columns_, restoration_
        As for other maskers.

    Notes
    -----
    Memberships :math:`u_{ij}` of records in centres with whole sums :math:`s_j = \sum_i u_{ij}` and
    :math:`u_{ij} \le s_j / k` are a mixture of assignments that give each centre :math:`s_j`
    records. Each of them releases the same centres equally often, so the table tells nothing about
    the draw: at centre j stands record i with probability :math:`u_{ij} / s_j \le 1/k`. The best
    ones have :math:`s_j = 1` and k records at each centre; see `tessella.grouping.covering`. The
    posterior is that of who knows the masked columns and the strata of all originals. Who also
    knows a column that is released as it is can do more, as with k equal records.

    References
    ----------
    R. Gandhi, S. Khuller, S. Parthasarathy and A. Srinivasan (2006). Dependent rounding and its
    applications to approximation algorithms. Journal of the ACM 53(3).

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.masking import OverlappingMicroaggregation
    >>> table = pd.DataFrame({"income": [1.0, 2, 3, 4, 5]})
    >>> masker = OverlappingMicroaggregation(k=2, random_state=0)
    >>> released = masker.fit_transform(table)
    >>> sorted(released["income"])
    [1.5, 1.5, 3.5, 4.0, 4.5]
    >>> masker.posterior_, round(masker.crisp_loss_, 1), round(masker.expected_loss_, 1)
    (0.5, 25.0, 20.0)
    """

    _parameters: ClassVar = {
        "effort": [EFFORT],
        "order": [OneOf(("shuffled", "kept"))],
        "on_missing": [OneOf(("error", "pattern"))],
        "round_integers": [FLAG],
    }

    k: int = 3
    _: KW_ONLY
    effort: str = "standard"
    order: str = "shuffled"
    scale: Any = "zscore"
    on_missing: str = "error"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.on_missing == "pattern"
        return tags

    def _mask(self, source: Table, *, weights: Any, strata: Any) -> Any:
        k = check_k(self.k, source.n_rows)
        rules = None if self.rules is None else Rules.of(self.rules)
        read = self._read(source, weights=weights, strata=strata, scale=self.scale)
        if self.on_missing == "error" and (counts := read.original.count_missing()):
            raise MissingValuesError({str(n): c for n, c in counts.items()}, source.n_rows)
        repair = None if rules is None else self._repair(read, rules)
        chance = chance_of(self.random_state)
        places = list(range(len(read.chosen.masked)))
        parts = [
            self._draw(read, rows, chance)
            for rows in rows_of_strata(parts_of(read.original, places, read.chosen.strata, k))
        ]
        taken = np.concatenate([part.rows[part.drawn] for part in parts])
        means = np.concatenate([part.centres for part in parts])
        # Group by group, and before anything is in the order of records: the point that a mean is
        # moved to must not depend on who gets it.
        kept = means if repair is None else repair.restore(means, read.known[taken])
        before, released = np.empty_like(means), np.empty_like(means)
        before[taken], released[taken] = means, kept
        masked = self._write(read, released.copy())
        self.restoration_ = None
        if repair is not None:
            self.restoration_ = repair.certify(
                masked, before=before, kept=released, known=read.known, schema=self.schema
            )
        seen = self._read_released(read, masked)
        self.columns_ = list(read.chosen.masked)
        self._keep_facts(source, read.chosen)
        self._measure_loss(read, seen)
        self._count(read, seen.values, taken, parts)
        self.order_ = np.arange(source.n_rows)
        if self.order == "kept":
            return masked
        self.order_ = np.argsort(chance.random(source.n_rows), kind="stable")
        return Table.read(masked).take(self.order_)

    def _draw(self, read: MaskedColumns, rows: Integers, chance: Chance) -> _Part:
        """Find the groups of one part, and draw who gets their means."""
        scale, weights, k = read.scale, read.chosen.weights[rows], int(self.k)
        records = scale.apply(read.original.values[rows])
        seed = int(chance.random(1)[0] * 2**31)
        covering = find_covering(records, weights, k, effort=self.effort, seed=seed)
        centres = covering.centres(records, weights) * scale.unit + scale.centre
        drawn = np.empty(0, dtype=np.int64)
        while not len(drawn):
            words = (chance.random(len(rows) * k + SPARE) * 2.0**53).astype(np.int64)
            drawn = draw_matching(covering.members, words, int(chance.random(1)[0] * 2**31))
        return _Part(rows=rows, covering=covering, centres=centres, drawn=drawn)

    def _count(
        self, read: MaskedColumns, released: Floats, taken: Integers, parts: list[_Part]
    ) -> None:
        """Count, in the released table, what an intruder knows; refuse more than 1/k."""
        n, k = len(released), int(self.k)
        members = np.concatenate([part.members for part in parts])  # (n groups, k rows)
        part_of = np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts])
        values = released[taken]
        filled = np.where(np.isnan(values), 0.0, values)
        centre = group_ids([part_of, *map(number_values, filled.T)])
        self.sizes_ = sizes = np.bincount(centre)
        where = (members.ravel(), np.repeat(centre, k))
        counts = csr_array((np.ones(n * k, dtype=np.int64), where), shape=(n, len(sizes)))
        counts.sum_duplicates()
        once = np.bincount(taken, minlength=n).max() == 1
        if (
            not once
            or (counts.sum(axis=1) != k).any()
            or (counts.data > sizes[counts.indices]).any()
        ):
            raise BrokenPromiseError(
                f"A record would be named with a probability above 1/{k}; the result is withheld: "
                "please report."
            )
        self.posterior_ = float((counts.data / (k * sizes[counts.indices])).max())
        self.memberships_ = counts / k
        self.centres_ = values[np.unique(centre, return_index=True)[1]]
        self.labels_ = np.empty(n, dtype=np.int64)
        self.labels_[taken] = centre
        self._expect(read, values, members, parts)

    def _expect(
        self, read: MaskedColumns, values: Floats, members: Integers, parts: list[_Part]
    ) -> None:
        """Compute the loss before the draw, and what it is compared with, in per cent."""
        scale, weights = read.scale, read.chosen.weights
        squares = np.zeros(len(values))
        total = float(weights @ (scale.apply(read.original.values) ** 2).sum(axis=1))
        for column in members.T:
            away = (read.original.values[column] - values) / scale.unit
            squares += weights[column] * np.nansum(away**2, axis=1)
        share = 100 / total if total > 0 else 0.0
        self.expected_loss_ = share * float(squares.sum()) / int(self.k)
        self.crisp_loss_ = share * sum(part.covering.crisp for part in parts)
        self.lower_bound_ = share * sum(part.covering.bound for part in parts)

    def __getstate__(self) -> dict[str, Any]:
        """Leave what belongs to single records behind when saved."""
        state = super().__getstate__()
        for name in ("memberships_", "order_"):
            state.pop(name, None)
        return state


def advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    """Return what analysts of a table of drawn means should know."""
    return [
        "Each record has the mean of a small group of similar records, itself among them; groups "
        "overlap, and which of its groups a record got was drawn. Means and totals are kept, up to "
        "rounding, where no weights and no rules take part; variances shrink." + shrunk(facts),
        "A probability of being named is bounded, not the number of equal records: a record that "
        "equals no other is no error.",
    ]


METHOD = register(
    Method(
        name="overlapping microaggregation",
        masker=OverlappingMicroaggregation,
        tuned=Tuned(name="k", low=2, high=200, whole=True),
        defaults={"k": 3, "effort": "quick"},
        description="overlapping microaggregation, a posterior of at most 1/{k}",
        groups=lambda options, columns: [],  # noqa: ARG005 no equal records are promised
        posterior=True,
        step={"order": "kept"},  # a study compares records; publishing shuffles them
        attack="overlapping microaggregation",
        attack_options=lambda masker: {
            "k": masker.k,
            **{
                name: getattr(masker, f"{name}_", None)
                for name in ("memberships", "centres", "sizes")
            },
        },
        advice=advise,
    )
)
