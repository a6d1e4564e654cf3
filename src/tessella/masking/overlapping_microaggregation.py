"""Overlapping microaggregation: each record gets the mean of one of its k groups, drawn at random.

Groups of k overlap: every record is in k of them, and there are as many groups as records. A draw
gives each group's mean to one of its members, and each record the mean of one of its groups, every
pair with probability 1/k. **What is promised is a posterior of at most 1/k, not k equal records.**
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._parameters import EFFORT, FLAG, OneOf
from .._types import Floats
from ..exceptions import MissingValuesError
from ..frame import Table
from ..grouping.base import chance_of, check_k, check_seed
from ..plan import Plan, make_plan
from ..rules.collection import Rules
from .base import MaskedColumns, NumberMasker
from .engine import mask_keeping_rules, refuse_broken
from .overlapping_groups import CoveredPart
from .registry import Method, Options, Tuned, register, shrunk
from .selection import schema_of_numbers


@dataclass(eq=False, repr=False)
class OverlappingMicroaggregation(NumberMasker):
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
        What every released record obeys, even where the input does not: rules of any kind, as
        `protect` keeps them. The values of groups are moved before the draw: no probability depends
        on it.
    scale, on_missing, columns, strata, weights, schema, round_integers
        As for `Microaggregation`.
    random_state : int, RandomState or None, default None
        None draws from the operating system's entropy, which cannot be repeated. A seed makes the
        release repeatable, and must then be kept as secret as the table.

    Attributes
    ----------
    memberships_ : scipy.sparse.csr_array of shape (n, n_centres)
        The probability that a record gets a released centre, before the draw.
    centres_ : the same kind of table
        The released values of each centre.
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
    parts_ : ndarray of shape (n,)
        Records of different parts (strata, missing cells, cases of rules) share no centre.
    column_loss_, untouched_, columns_
        As for other maskers.

    Notes
    -----
    Memberships :math:`u_{ij}` of records in centres with whole sums :math:`s_j = \sum_i u_{ij}` and
    :math:`u_{ij} \le s_j / k` are a mixture of assignments that give each centre :math:`s_j`
    records. Each of them releases the same centres equally often, so the table tells nothing about
    the draw: at centre j stands record i with probability :math:`u_{ij} / s_j \le 1/k`. The best
    ones have :math:`s_j = 1` and k records at each centre; see `tessella.grouping.covering`. The
    posterior is that of who knows the masked columns and the strata of all originals. Who also
    knows a column that is released as it is can do more, as with k equal records. The step of a
    study, and ``protect(grouping="overlapping")``, mask categories, too.

    References
    ----------
    R. Gandhi, S. Khuller, S. Parthasarathy and A. Srinivasan (2006). Dependent rounding and its
    applications to approximation algorithms. Journal of the ACM 53(3).

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.masking import OverlappingMicroaggregation
    >>> table = pd.DataFrame({"income": [0.5, 1.5, 2.5, 3.5, 4.5]})
    >>> masker = OverlappingMicroaggregation(k=2, random_state=0)
    >>> released = masker.fit_transform(table)
    >>> sorted(released["income"])
    [1.0, 1.0, 3.0, 3.5, 4.0]
    >>> masker.posterior_, round(masker.crisp_loss_, 1), round(masker.expected_loss_, 1)
    (0.5, 25.0, 20.0)
    """

    _parameters: ClassVar[dict[str, Any]] = {
        "effort": [EFFORT],
        "order": [OneOf(("shuffled", "kept"))],
        "on_missing": [OneOf(("error", "pattern"))],
        "round_integers": [FLAG],
    }

    k: int = 3
    _: KW_ONLY
    effort: str = "standard"
    order: str = "shuffled"
    rules: Any = None
    scale: Any = "zscore"
    on_missing: str = "error"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.on_missing == "pattern"
        return tags

    def _mask(self, source: Table, *, weights: Any, strata: Any) -> Any:
        k = check_k(self.k, source.n_rows)
        read = self._read(source, weights=weights, strata=strata, scale=self.scale)
        if self.on_missing == "error" and (counts := read.original.count_missing()):
            raise MissingValuesError({str(n): c for n, c in counts.items()}, source.n_rows)
        plan = self._plan(read, k)
        seeded = None if self.random_state is None else check_seed(self.random_state)
        table, blocks, after = mask_keeping_rules(
            plan, read.view, before=plan.rules.confront(read.view, schema=self.schema),
            strata=read.chosen.strata, weights=read.chosen.weights, random_state=seeded,
        )  # fmt: skip
        refuse_broken(after)
        self.columns_ = list(read.chosen.masked)
        self._keep_facts(source, read.chosen)
        released = self._read_released(read, table)
        self._measure_loss(read, released)
        for name, value in vars(blocks.overlap).items():
            setattr(self, f"{name}_", value)
        self._expect(read, released.values, blocks.covered)
        self.order_ = np.arange(source.n_rows)
        if self.order == "kept":
            return table.native
        # Further numbers of the generator: the order must tell nothing of those of the draw.
        chances = chance_of(seeded).random(source.n_rows)
        self.order_ = np.argsort(chances, kind="stable")
        return table.take(self.order_)

    def _plan(self, read: MaskedColumns, k: int) -> Plan:
        """Return the plan that this masker is."""
        view, chosen = read.view, read.chosen
        kinds = {True: "integer", False: "continuous"}
        schema = (self.schema or schema_of_numbers(view, chosen.masked)).override(
            {name: {"kind": kinds[self._stays_whole(view, name)]} for name in chosen.masked}
        )
        rules = Rules() if self.rules is None else Rules.of(self.rules)
        return make_plan(
            schema, rules.fix(view.table, schema=schema), k=k, columns=chosen.masked,
            strata=chosen.strata.columns, scale=self.scale, on_missing=self.on_missing,
            grouping="overlapping", options={"effort": self.effort},
        )  # fmt: skip

    def _expect(self, read: MaskedColumns, released: Floats, parts: Sequence[CoveredPart]) -> None:
        """Compute the loss before the draw, and what it is compared with, in per cent."""
        scale, weights = read.scale, read.chosen.weights
        values = released[np.concatenate([part.taken for part in parts])]
        squares = np.zeros(len(values))
        total = float(weights @ (scale.apply(read.original.values) ** 2).sum(axis=1))
        for column in np.concatenate([part.members for part in parts]).T:
            away = (read.original.values[column] - values) / scale.unit
            squares += weights[column] * np.nansum(away**2, axis=1)
        share = 100 / total if total > 0 else 0.0
        self.expected_loss_ = share * float(squares.sum()) / int(self.k)
        self.crisp_loss_ = share * sum(part.covering.crisp for part in parts)
        self.lower_bound_ = share * sum(part.covering.bound for part in parts)

    def __getstate__(self) -> dict[str, Any]:
        """Leave what belongs to single records behind when saved."""
        state = super().__getstate__()
        for name in ("memberships_", "order_", "parts_"):
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
        options=("fit", "edit", "small", "dominance", "on_dominance"),  # of its plan
        masks="both",  # its step gives categories of a group's members, too
        tuned=Tuned(name="k", low=2, high=200, whole=True),
        defaults={"k": 3, "effort": "quick"},
        description="overlapping microaggregation, a posterior of at most 1/{k}",
        groups=lambda options, columns: [],  # noqa: ARG005 no equal records are promised
        posterior=True,
        step={"order": "kept"},  # a study compares records; publishing shuffles them
        attack="overlapping microaggregation",
        attack_options=lambda masker: {
            "k": masker.k,
            "strata": getattr(masker, "parts_", None),
            **{
                name: getattr(masker, f"{name}_", None)
                for name in ("memberships", "centres", "labels")
            },
        },
        advice=advise,
    )
)
