"""Microaggregation: every record gets the mean of a group of at least k.

Records are put into groups of at least k that lie close together, and each record's values are
replaced by one value for its group. Columns may be split into *blocks* that are grouped apart:
less is lost, but k then holds within each block only, and the masker counts what is left of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._parameters import FLAG, NONE, SEED, Instance, OneOf
from .._types import Floats, Integers, States
from ..diversity import DiversityRule
from ..exceptions import (
    BadOptionError,
    BrokenPromiseError,
    MissingValuesError,
    SmallJointGroupsWarning,
)
from ..frame import Numbers, Table, count_units, group_ids
from ..frame.columns import number_values
from ..grouping.base import check_k
from ..plan import Block, Plan
from ..rules import Rules
from .base import MaskedColumns, NumberMasker, renamed
from .engine import apply_plan, write_blocks
from .parts import AGGREGATES
from .registry import Method, Options, Tuned, register, shrunk
from .selection import Selection


@dataclass(eq=False, repr=False, kw_only=True)
class GroupMasker(NumberMasker):
    """Base of maskers whose records share the numbers of a group, block by block."""

    blocks: Any = None
    scale: Any = "zscore"
    on_missing: str = "error"

    def _read_blocks(self, source: Table, *, weights: Any, strata: Any) -> MaskedColumns:
        read = self._read(
            source, weights=weights, strata=strata, blocks=self.blocks, scale=self.scale
        )
        if self.on_missing == "error" and (counts := read.original.count_missing()):
            raise MissingValuesError({str(n): c for n, c in counts.items()}, source.n_rows)
        return read

    def _keep(
        self, read: MaskedColumns, masked: Any, labels: Sequence[Integers], k: int | None
    ) -> Numbers:
        """Keep what is known of a masked table; refuse one with fewer than k records alike."""
        released = self._read_released(read, masked)
        self.labels_ = labels[0] if self.blocks is None else np.column_stack(labels)
        self.blocks_ = [list(block) for block in read.chosen.blocks]
        self._keep_facts(read.view.table, read.chosen)
        self._count_alike(released, read.chosen, labels, k, read.view.units)
        self._measure_loss(read, released)
        return released

    def _count_alike(
        self, released: Numbers, chosen: Selection, labels: Sequence[Integers], k: int | None,
        units: Integers | None,
    ) -> None:  # fmt: skip
        """Count, in the released table, the units that share their values; refuse less than k."""
        strata, sets = chosen.strata.ids, []
        method = type(self).__name__
        for block, groups in zip(chosen.blocks, labels):
            places = chosen.places(block)
            alike = released_sets(
                released.values[:, places], released.state[:, places], groups, strata,
                method=method,
            )  # fmt: skip
            smallest = int(count_units(alike, units).min())
            if k is not None and smallest < k:
                raise BrokenPromiseError.group_too_small(k=k, smallest=smallest, method=method)
            sets.append(alike)
        joint = group_ids([strata, *sets])
        self.joint_group_sizes_ = sizes = count_units(joint, units)
        self.joint_k_ = int(sizes.min())
        if k is not None and self.joint_k_ < k:
            below = int(sizes[sizes < k].sum())
            warning = SmallJointGroupsWarning.of(
                k=k, smallest=self.joint_k_, below=below, n=len(joint)
            )
            warnings.warn(warning, stacklevel=5)


def released_sets(
    values: Floats, state: States, labels: Integers, strata: Integers, *, method: str
) -> Integers:
    """Number the sets of records that share a stratum and all their released values.

    The values come from the released table itself. Records of one group must be alike in it, or
    the promise is broken; groups may happen to be alike with each other.
    """
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    leader = first[place]
    filled = np.where(state == 0, values, 0.0)
    differs = (filled != filled[leader]).any(axis=1) | (strata != strata[leader])
    differs |= (state != state[leader]).any(axis=1)
    if differs.any():
        raise BrokenPromiseError.group_not_alike(count=int(differs.sum()), method=method)
    seen = group_ids([strata[first], *map(number_values, filled[first].T), *state[first].T])
    return seen[place]


@renamed(method="grouping", missing="on_missing")
@dataclass(eq=False, repr=False)
class Microaggregation(GroupMasker):
    """Replace each record's numbers by those of a group of at least k records.

    Parameters
    ----------
    k : int, default 3
        The least number of records that share their released values.
    grouping : str or Grouping, default "search"
        How records are grouped: "search" (the least loss), "mdav", "vmdav", "cbfs", "ordered",
        "iterated", "repordmic", "igd", "univariate" (blocks of one column), or a grouping such as
        ``Search(effort="quick")``, which is cloned and gets this k.
    blocks : None, int or list of lists of names, default None
        Columns that are grouped separately: None for one block of all columns, a number for blocks
        of that many consecutive columns, or the blocks themselves. **With more than one block, k
        holds within each block and not for whole records**; see `joint_k_`.
    scale : {"zscore", "range", None} or mapping of name to number, default "zscore"
        What counts as one in the distance: a column's standard deviation, its range, 1, or the
        difference given for each column. A column with one value does not contribute.
    aggregate : {"mean", "median"}, default "mean"
        The released value of a group. The median of an even group is the mean of its two middle
        values. Weights count in both.
    on_missing : {"error", "pattern"}, default "error"
        Refuse missing values, or group only records that lack the same cells of the block; these
        cells stay missing in the release.
    columns : list of names, optional
        The columns to mask; all others are then released as they are. By default all numeric
        columns are masked, and a column of anything else is an error unless it is in `strata`.
    strata : name or list of names, optional
        Records of different strata never share a group. Strata columns are released as they are.
    weights : name, optional
        Positive weights of the records in means, distances and loss; k counts records. A weight
        column is released as it is. One value for each record is given to `fit_transform`.
    schema : Schema, optional
        Roles and kinds: quasi-identifiers are masked, identifiers and household numbers refused,
        the weight is used, missing codes are missing, other columns are released as they are.
    round_integers : bool, default True
        Whole numbers stay whole: the value of a group is rounded (half to even) once, so that its
        records still share it, and the dtype is kept. Floats that are all whole count as whole
        numbers, as in `Schema.guess`. False releases such columns as float64.
    options : mapping, optional
        Arguments of a grouping given by name, such as ``{"effort": "quick"}``.
    random_state : int, RandomState or None, default None
        The seed of groupings that use one; None draws from the operating system's entropy.
    l, t : optional
        Requirements on the confidential values of every group, as in `tessella.protect`; with
        one block only.
    confidential : name or list of names, optional
        The columns that l and t are about, which are not masked; by default those of that role in
        the schema.

    Attributes
    ----------
    labels_ : ndarray of shape (n,) or (n, n_blocks)
        The group of each record: one-dimensional when `blocks` is None, else a column a block.
    groupings_ : list of Grouping
        The fitted grouping of each block.
    blocks_ : list of lists of names
        The columns of each block.
    untouched_ : list of names
        The columns that were released as they are.
    joint_k_ : int
        The actual k of the release: the least number of records of a stratum that share all
        their masked values, counted in the released table. At least k with one block.
    joint_group_sizes_ : ndarray
        The sizes of all such sets of records, in the order of their first record.
    loss_ : float
        Information loss IL = 100 SSE / SST, in per cent, on the scaled columns.
    column_loss_ : dict of name to float
        The same for each masked column.
    diversity_ : DiversityRule or None
        What was required of confidential values.

    Notes
    -----
    With records x_i, released records r_i, weights w_i and column means c, all on the chosen
    scale, SSE is the sum of w_i |x_i - r_i|^2 and SST the sum of w_i |x_i - c|^2 over the cells
    that are not missing. r_i is what is released, after rounding. There is no `transform`: masking
    unseen records with stored groups would not protect them. A saved (pickled) masker holds no
    original record.

    References
    ----------
    J. Domingo-Ferrer and J. M. Mateo-Sanz (2002). Practical data-oriented microaggregation for
    statistical disclosure control. IEEE Transactions on Knowledge and Data Engineering 14(1).

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella import Microaggregation
    >>> table = pd.DataFrame({"age": [21, 22, 23, 61, 62, 66], "income": [1.0, 2, 3, 8, 8, 8]})
    >>> masker = Microaggregation(k=3, grouping="mdav")
    >>> masker.fit_transform(table)
       age  income
    0   22     2.0
    1   22     2.0
    2   22     2.0
    3   63     8.0
    4   63     8.0
    5   63     8.0
    >>> masker.joint_k_, round(masker.loss_, 2)
    (3, 2.1)
    """

    _parameters: ClassVar[dict[str, Any]] = {
        "aggregate": [OneOf(AGGREGATES)],
        "on_missing": [OneOf(("error", "pattern"))],
        "round_integers": [FLAG],
        "options": [Instance(Mapping, "a mapping of names to values"), NONE],
        "random_state": [SEED],
    }

    k: int = 3
    _: KW_ONLY
    grouping: Any = "search"
    aggregate: str = "mean"
    options: Mapping[str, Any] | None = None
    l: Any = None  # noqa: E741
    t: Any = None
    confidential: Any = None

    def _mask(self, source: Table, *, weights: Any, strata: Any) -> Any:
        k = check_k(self.k, source.n_rows)
        if isinstance(self.grouping, str) and self.grouping == "overlapping":
            raise BadOptionError(
                "grouping", self.grouping, "groups of k equal records; those that overlap are made "
                "by OverlappingMicroaggregation(k)"
            )  # fmt: skip
        read = self._read_blocks(source, weights=weights, strata=strata)
        plan = self._plan(read, k)
        blocks = apply_plan(
            plan, read.view, strata=read.chosen.strata, weights=read.chosen.weights,
            random_state=self.random_state,
        )  # fmt: skip
        masked = write_blocks(read.view, plan, blocks)
        self.groupings_ = blocks.groupings
        self._keep(read, masked, blocks.labels, k)
        return masked.native

    def _plan(self, read: MaskedColumns, k: int) -> Plan:
        """Return the plan without rules that this masker is."""
        chosen = read.chosen
        operator = "mean" if self.aggregate == "mean" else "interpolated median"
        blocks = [
            Block.of_numbers(
                names, operator, [self._stays_whole(read.view, name) for name in names]
            )
            for names in chosen.blocks
        ]
        return Plan(
            k=k, blocks=tuple(blocks), strata=(), untouched=chosen.untouched, rules=Rules(),
            fit="closed", edit="fix", small="refuse", on_missing=self.on_missing,
            distance="original", scale=self.scale, grouping=self.grouping,
            options=dict(self.options or {}), diversity=self._find_diversity(read),
        )  # fmt: skip

    def _find_diversity(self, read: MaskedColumns) -> DiversityRule | None:
        """Read what is asked of confidential values, which must not be masked."""
        names, chosen = self.confidential, read.chosen
        if names is None and self.schema is not None and (self.l or self.t) is not None:
            names = self.schema.names("confidential")
        self.diversity_ = wanted = DiversityRule.of(l=self.l, t=self.t, confidential=names)
        if wanted is None:
            return None
        for name in wanted.confidential:
            if name not in chosen.untouched:
                expected = f"columns that are not masked; {name!r} is. Give columns= without it"
                raise BadOptionError("confidential", list(map(str, wanted.confidential)), expected)
        if len(chosen.blocks) > 1:
            expected = "one block with l or t: sets of records alike in several are not groups"
            raise BadOptionError("blocks", len(chosen.blocks), expected)
        return wanted


def advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    """Return what analysts of a table of group means should know."""
    return [
        "Records were put into groups of similar ones, and all records of a group have the same "
        "released values. Means and totals of columns released as means are kept, in strata too; "
        "where rules ask for another point than the mean, they move as the table of columns says.",
        "Variances of group means shrink, since differences within groups are gone; correlations "
        f"tend to grow in size.{shrunk(facts)} To correct a variance, divide the released one by "
        "the square of the column's share. Columns released as matched means, beside categories, "
        "keep their quantiles, their spread and their mean.",
        "Regressions are affected little where the explaining and the explained columns were "
        "masked in one block; R squared comes out too large. Counts and quantiles of group means "
        "are those of groups: extreme quantiles are too moderate. Rare combinations are gone.",
    ]


METHOD = register(
    Method(
        name="microaggregation",
        masker=Microaggregation,
        tuned=Tuned(name="k", low=2, high=200, whole=True),
        defaults={"k": 3},
        variants=lambda setting: (),  # noqa: ARG005 "protect" is tried: it takes categories, too
        description="microaggregation, k = {k}",
        groups=lambda options, columns: options.get("blocks") or [list(columns)],
        attack="microaggregation",
        attack_options=lambda masker: {
            "k": masker.k,
            "means": masker.aggregate == "mean" and masker.weights is None,
        },
        advice=advise,
    )
)
