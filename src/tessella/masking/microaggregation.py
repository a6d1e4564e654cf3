"""Microaggregation: every record gets the mean of a group of at least k.

Records are put into groups of at least k that lie close together, and each record's values are
replaced by one value for its group. Columns may be split into *blocks* that are grouped apart:
less is lost, but k then holds within each block only, and the masker counts what is left of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from ..exceptions import (
    BadTableError,
    BrokenPromiseError,
    GroupSizeError,
    MissingValuesError,
    SmallJointGroupsWarning,
    UnknownOptionError,
)
from ..frame import Name, Numbers, Table
from ..grouping.base import Grouping, check_k
from ..kernels.groups import renumber
from ..schema import Schema
from .aggregation import AGGREGATES
from .alike import number_alike, released_sets
from .methods import make_grouping
from .scale import Scale
from .selection import LeftOut, Selection, Strata, select

__all__ = ["Microaggregation"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MISSING = ("error", "pattern")
MISSING_AS = {1: "", 2: " (as NaN)"}


class Microaggregation(BaseEstimator):  # type: ignore[misc]
    """Replace each record's numbers by those of a group of at least k records.

    Parameters
    ----------
    k : int, default 3
        The least number of records that share their released values.
    method : str or Grouping, default "search"
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
    missing : {"error", "pattern"}, default "error"
        Refuse missing values, or group only records that lack the same cells of the block; these
        cells stay missing in the release.
    columns : list of names, optional
        The columns to mask; all others are then released as they are. By default all numeric
        columns are masked, and a column of anything else is an error unless it is in `strata`.
    strata : name, list of names or array-like of shape (n,), optional
        Records of different strata never share a group. Strata columns are released as they are.
    weights : name or array-like of shape (n,), optional
        Positive weights of the records in means, distances and loss; k counts records. A weight
        column is released as it is.
    schema : Schema, optional
        Roles and kinds: quasi-identifiers are masked, identifiers and household numbers refused,
        the weight is used, missing codes are missing, other columns are released as they are.
    round_integers : bool, default True
        Whole numbers stay whole: the value of a group is rounded (half to even) once, so that its
        records still share it, and the dtype is kept. False releases such columns as float64.
    options : mapping, optional
        Arguments of a method given by name, such as ``{"effort": "quick"}``.
    random_state : int, RandomState or None, default None
        The seed of methods that use one.

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
    original record: arrays given as `strata` or `weights` are left out, too.

    References
    ----------
    J. Domingo-Ferrer and J. M. Mateo-Sanz (2002). Practical data-oriented microaggregation for
    statistical disclosure control. IEEE Transactions on Knowledge and Data Engineering 14(1).

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella import Microaggregation
    >>> table = pd.DataFrame({"age": [21, 22, 23, 61, 62, 66], "income": [1.0, 2, 3, 8, 8, 8]})
    >>> masker = Microaggregation(k=3, method="mdav")
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

    def __init__(
        self,
        k: int = 3,
        *,
        method: Any = "search",
        blocks: Any = None,
        scale: Any = "zscore",
        aggregate: str = "mean",
        missing: str = "error",
        columns: Any = None,
        strata: Any = None,
        weights: Any = None,
        schema: Schema | None = None,
        round_integers: bool = True,
        options: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.k = k
        self.method = method
        self.blocks = blocks
        self.scale = scale
        self.aggregate = aggregate
        self.missing = missing
        self.columns = columns
        self.strata = strata
        self.weights = weights
        self.schema = schema
        self.round_integers = round_integers
        self.options = options
        self.random_state = random_state

    def fit(self, table: Any, y: object = None) -> Self:
        """Group the records and measure the loss, without keeping the masked table."""
        self.fit_transform(table, y)
        return self

    def fit_transform(self, table: Any, y: object = None) -> Any:  # noqa: ARG002
        """Mask a table.

        Parameters
        ----------
        table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
            The original table; it is not changed.
        y : ignored
            Present for scikit-learn.

        Returns
        -------
        masked : the same kind of table
            With the same index, columns, dtypes and categories; only the numbers are others.
        """
        source = Table.read(table)
        k = check_k(self.k, source.n_rows)
        for name, offered in {"aggregate": tuple(AGGREGATES), "missing": MISSING}.items():
            if getattr(self, name) not in offered:
                raise UnknownOptionError(name, getattr(self, name), offered)
        chosen = select(
            source, columns=self.columns, blocks=self.blocks, strata=self.strata,
            weights=self.weights, schema=self.schema,
        )  # fmt: skip
        original = self._read(source, chosen)
        scale = Scale.of(original.values, chosen.weights, self.scale, chosen.masked)
        groupings = self._group_blocks(original, chosen, scale, k)
        masked = self._write(source, original, self._aggregate(original, chosen, groupings))
        released = self._read(Table.read(masked), chosen)
        self._keep(source, chosen, groupings)
        self._count_alike(original, released, chosen, k)
        self._measure_loss(original, released, chosen.weights, scale)
        return masked

    def _read(self, table: Table, chosen: Selection) -> Numbers:
        numbers = table.numeric(
            chosen.masked, codes=self._missing_codes(chosen.masked), who="Microaggregation"
        )
        if self.missing == "error" and (counts := numbers.count_missing()):
            raise MissingValuesError({str(n): c for n, c in counts.items()}, table.n_rows)
        return numbers

    def _missing_codes(self, columns: tuple[Name, ...]) -> dict[Name, tuple[Any, ...]]:
        return {} if self.schema is None else {name: self.schema[name].missing for name in columns}

    def _group_blocks(
        self, original: Numbers, chosen: Selection, scale: Scale, k: int
    ) -> list[Grouping]:
        """Group the records of each block apart, strata and missing patterns kept apart."""
        seeds: list[int | None] = [None] * len(chosen.blocks)
        if self.random_state is not None:
            random = check_random_state(self.random_state)
            seeds = random.randint(2**31 - 1, size=len(chosen.blocks)).tolist()
        groupings = []
        for block, seed in zip(chosen.blocks, seeds):
            places = chosen.places(block)
            parts = _parts(original, places, chosen.strata, k)
            grouping = make_grouping(self.method, k=k, options=self.options, seed=seed)
            if len(block) > 1 and not grouping.__sklearn_tags__().input_tags.two_d_array:
                raise BadTableError(
                    f"{type(grouping).__name__} groups one column, and a block has {len(block)}. "
                    "Give blocks=1 to group each column apart, or take another method."
                )
            records = scale.part(places).apply(original.values[:, places])
            groupings.append(grouping.fit(records, sample_weight=chosen.weights, strata=parts))
        return groupings

    def _aggregate(self, original: Numbers, chosen: Selection, groupings: list[Grouping]) -> Floats:
        """Return what each record gets, shape (n, d)."""
        released = np.empty_like(original.values)
        known = np.where(original.missing, 0.0, original.values)
        for block, grouping in zip(chosen.blocks, groupings):
            places = chosen.places(block)
            centres = AGGREGATES[self.aggregate](
                known[:, places], chosen.weights, grouping.labels_, grouping.n_groups_
            )
            released[:, places] = centres[grouping.labels_]
        return released

    def _write(self, source: Table, original: Numbers, released: Floats) -> Any:
        """Round where the column asks for it, and write the columns back in kind."""
        as_float = []
        for j, name in enumerate(original.columns):
            decimals = source.facts(name).decimals
            kind = None if self.schema is None else self.schema[name].kind
            if decimals == 0 and (kind == "continuous" or not self.round_integers):
                as_float.append(name)
            elif kind == "integer" and self.round_integers:
                decimals = 0
            if decimals is not None and name not in as_float:
                released[:, j] = np.round(released[:, j], decimals)
            for code in self._missing_codes((name,)).get(name, ()):
                if ((released[:, j] == code) & ~original.missing[:, j]).any():
                    raise BadTableError(
                        f"The released value of a group of {name!r} equals its missing code "
                        f"{code!r}. Recode missing cells to a value outside of the column's range."
                    )
        return source.replace(
            {name: released[:, j] for j, name in enumerate(original.columns)},
            keep={name: original.missing[:, j] for j, name in enumerate(original.columns)},
            as_float=as_float,
        )

    def _keep(self, source: Table, chosen: Selection, groupings: list[Grouping]) -> None:
        labels = np.column_stack([grouping.labels_ for grouping in groupings])
        self.labels_ = labels[:, 0] if self.blocks is None else labels
        self.groupings_ = groupings
        self.blocks_ = [list(block) for block in chosen.blocks]
        self.untouched_ = list(chosen.untouched)
        self.n_features_in_ = len(source.columns)
        self.__dict__.pop("feature_names_in_", None)  # from an earlier fit
        if all(isinstance(name, str) for name in source.columns):
            self.feature_names_in_ = np.array(source.columns, dtype=object)
        self._by_record = chosen.by_record

    def _count_alike(self, original: Numbers, released: Numbers, chosen: Selection, k: int) -> None:
        """Count, in the released table, the records that share their values; refuse less than k."""
        if not np.array_equal(original.state, released.state):
            raise BrokenPromiseError("Missing cells moved; the result is withheld: please report.")
        strata, sets = chosen.strata.place, []
        for block, grouping in zip(chosen.blocks, self.groupings_):
            places = chosen.places(block)
            method = type(grouping).__name__
            alike = released_sets(
                released.values[:, places], released.state[:, places], grouping.labels_, strata,
                method=method,
            )  # fmt: skip
            if (smallest := int(np.bincount(alike).min())) < k:
                raise BrokenPromiseError.group_too_small(k, smallest, method)
            sets.append(alike)
        joint = number_alike([strata, *sets]) if len(sets) > 1 else sets[0]
        joint = renumber(joint, int(joint.max()) + 1)
        self.joint_group_sizes_ = sizes = np.bincount(joint)
        self.joint_k_ = int(sizes.min())
        if self.joint_k_ < k:
            below = int(sizes[sizes < k].sum())
            warning = SmallJointGroupsWarning.of(k, self.joint_k_, below, len(joint))
            warnings.warn(warning, stacklevel=3)

    def _measure_loss(
        self, original: Numbers, released: Numbers, weights: Floats, scale: Scale
    ) -> None:
        """IL = 100 SSE / SST of each column, and of all columns on the chosen scale."""
        lost, total = np.zeros(len(scale.unit)), np.zeros(len(scale.unit))
        for j in np.flatnonzero(scale.deviation > 0):
            seen = ~original.missing[:, j]
            x, r = original.values[seen, j], released.values[seen, j]
            lost[j] = weights[seen] @ ((x - r) / scale.deviation[j]) ** 2
            total[j] = weights[seen] @ ((x - scale.centre[j]) / scale.deviation[j]) ** 2
        shares = np.divide(lost, total, out=np.zeros_like(lost), where=total > 0)
        self.column_loss_ = {n: float(100 * s) for n, s in zip(original.columns, shares)}
        size = (scale.deviation / scale.unit) ** 2
        self.loss_ = float(100 * (size @ lost) / (size @ total)) if total.any() else 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Leave everything that belongs to single records behind when saved."""
        state: dict[str, Any] = dict(super().__getstate__())
        return state | {name: LeftOut() for name in state.get("_by_record", ())}


def _parts(original: Numbers, places: list[int], strata: Strata, k: int) -> Integers | None:
    """Number the sets of records that may share a group: same stratum, same cells missing."""
    sizes = np.bincount(strata.place)
    if small := {strata.names[s]: int(sizes[s]) for s in np.flatnonzero(sizes < k)}:
        raise GroupSizeError.small_strata(k, small)
    state = original.state[:, places]
    if not state.any():
        return strata.place if len(sizes) > 1 else None
    parts = number_alike([strata.place, *state.T])
    _, first, sizes = np.unique(parts, return_index=True, return_counts=True)
    small = {}
    for record, size in zip(first[sizes < k], sizes[sizes < k]):
        lacking = [
            repr(original.columns[places[j]]) + MISSING_AS.get(int(state[record, j]), " (a code)")
            for j in np.flatnonzero(state[record])
        ]
        name = f"without {', '.join(lacking)}" if lacking else "complete"
        if len(strata.names) > 1:
            name += f" in stratum {strata.names[strata.place[record]]}"
        small[name] = min(int(size), small.get(name, k))  # two codes may share a name
    if small:
        raise GroupSizeError.small_patterns(k, small)
    return parts
