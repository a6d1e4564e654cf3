"""Microaggregation: every record gets the mean of a group of at least k.

Records are put into groups of at least k that lie close together, and each record's values are
replaced by one value for its group. Columns may be split into *blocks* that are grouped apart:
less is lost, but k then holds within each block only, and the masker counts what is left of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from .._parameters import FLAG, NONE, SEED, Instance, OneOf, check_parameters, parameters
from .._types import Floats, Name
from ..frame import Numbers, Table, View
from ..grouping.base import check_k
from ..plan import Block, Plan
from ..rules import Rules
from ..schema import Schema
from .aggregation import AGGREGATES
from .base import Masker, Scale
from .engine.application import apply_plan, write_blocks
from .registry import Method, Options, Tuned, register, shrunk
from .selection import Selection, named_or_given, select

__all__ = ["Microaggregation"]


class Microaggregation(Masker):
    """Replace each record's numbers by those of a group of at least k records.

    Parameters
    ----------
    k : int, default 3
        The least number of records that share their released values.
    grouping : str or Grouping, default "search"
        How records are grouped: "search" (the least loss), "mdav", "vmdav", "cbfs", "ordered",
        "imhm", "repordmic", "igd", "univariate" (blocks of one column), or a grouping such as
        ``Search(effort="quick")``, which is cloned and gets this k.
    blocks : None, int or list of lists of names, default None
        Columns that are grouped apart: None for one block of all columns, a number for blocks of
        that many consecutive columns, or the blocks themselves. **With more than one block, k
        holds within each block and not for whole records**; see `joint_k_`.
    scale : {"zscore", "range", None} or mapping of name to number, default "zscore"
        What counts as one in the distance: a column's standard deviation, its range, 1, or the
        difference given for each column. A column of one value carries no distance.
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
        The k that the release really has: the least number of records of a stratum that share all
        their masked values, counted in the released table. At least k with one block.
    joint_group_sizes_ : ndarray
        The sizes of all such sets of records, in the order of their first record.
    loss_ : float
        Information loss IL = 100 SSE / SST, in per cent, on the scaled columns.
    column_loss_ : dict of name to float
        The same for each masked column.

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

    _parameters: ClassVar = {
        "aggregate": [OneOf(AGGREGATES)],
        "on_missing": [OneOf(("error", "pattern"))],
        "round_integers": [FLAG],
        "options": [Instance(Mapping, "a mapping of names to values"), NONE],
        "random_state": [SEED],
    }

    @parameters({"method": "grouping", "missing": "on_missing"})
    def __init__(
        self,
        k: int = 3,
        *,
        grouping: Any = "search",
        blocks: Any = None,
        scale: Any = "zscore",
        aggregate: str = "mean",
        on_missing: str = "error",
        columns: Any = None,
        strata: Any = None,
        weights: Any = None,
        schema: Schema | None = None,
        round_integers: bool = True,
        options: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.k = k
        self.grouping = grouping
        self.blocks = blocks
        self.scale = scale
        self.aggregate = aggregate
        self.on_missing = on_missing
        self.columns = columns
        self.strata = strata
        self.weights = weights
        self.schema = schema
        self.round_integers = round_integers
        self.options = options
        self.random_state = random_state

    def fit_transform(
        self,
        table: Any,
        y: object = None,  # noqa: ARG002
        *,
        weights: Any = None,
        strata: Any = None,
    ) -> Any:
        """Mask a table.

        Parameters
        ----------
        table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
            The original table; it is not changed.
        y : ignored
            Present for scikit-learn.
        weights, strata : array-like of shape (n,), optional
            One value for each record, in place of the columns that the masker names.

        Returns
        -------
        masked : the same kind of table
            With the same index, columns, dtypes and categories; only the numbers are others.
        """
        check_parameters(self)
        source = Table.read(table)
        k = check_k(self.k, source.n_rows)
        chosen = select(
            source, columns=self.columns, blocks=self.blocks, schema=self.schema,
            **named_or_given(self, source, weights=weights, strata=strata),
        )  # fmt: skip
        original = self._read(source, chosen)
        scale = Scale.of(original.values, chosen.weights, self.scale, chosen.masked)
        view, plan = View.of(source, self.schema), self._plan(source, original, chosen, k)
        blocks = apply_plan(
            plan, view, strata=chosen.strata, weights=chosen.weights,
            random_state=self.random_state,
        )  # fmt: skip
        masked = write_blocks(view, plan, blocks)
        released = self._read(masked, chosen)
        self.groupings_ = blocks.groupings
        self._keep(source, chosen, blocks.labels)
        self._count_alike(original, released, chosen, k)
        self._measure_loss(original, released, chosen.weights, scale)
        return masked.native

    def _plan(self, source: Table, original: Numbers, chosen: Selection, k: int) -> Plan:
        """Return the plan without rules that this masker is."""
        operator = "mean" if self.aggregate == "mean" else "interpolated median"
        whole = {
            name: self.round_integers and self._is_whole(source, name, original.values[:, j])
            for j, name in enumerate(chosen.masked)
        }
        blocks = [
            Block.of_numbers(names, operator, [whole[name] for name in names])
            for names in chosen.blocks
        ]
        return Plan(
            k=k, blocks=tuple(blocks), strata=(), untouched=chosen.untouched, rules=Rules(),
            fit="closed", edit="fix", small="refuse", on_missing=self.on_missing,
            distance="original", scale=self.scale, grouping=self.grouping,
            options=dict(self.options or {}),
        )  # fmt: skip

    def _is_whole(self, source: Table, name: Name, values: Floats) -> bool:
        """Return whether a column holds whole numbers, by the schema or as it would be guessed."""
        if self.schema is not None:
            return self.schema[name].kind == "integer"
        facts = source.facts(name)
        if facts.family != "float":
            return facts.decimals == 0
        known = values[~np.isnan(values)]
        return bool((known == np.rint(known)).all())


def advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    """Return what analysts of a table of group means should know."""
    return [
        "Records were put into groups of similar ones, and all records of a group have the same "
        "released values. Means and totals of columns released as means are kept, in strata too; "
        "where rules ask for another point than the mean, they move as the table of columns says.",
        "Variances shrink, since differences within groups are gone; correlations tend to grow "
        f"in size.{shrunk(facts)} To correct a variance, divide the released one by the square "
        "of the column's share.",
        "Regressions are affected little where the explaining and the explained columns were "
        "masked in one block; R squared comes out too large. Counts and quantiles are those of "
        "groups: extreme quantiles are too moderate, and rare combinations are gone.",
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
