"""Where the loss is: which groups of records carry it.

What this finds describes original records, and is as confidential as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from .._notebook import COMPARED, Bar, Display, Displayed, Section
from .._parameters import NONE, Whole, parameters
from .._types import Floats, Integers, Name
from ..exceptions import UnpairedError
from .base import ComparedTables, Reading, compare
from .moments import column_sums
from .splitting import CodedColumn, Growing

if TYPE_CHECKING:
    import pandas as pd

LEAST = 1e-3  # a split must explain so much of the variance of losses: no words for rounding


@dataclass(frozen=True, kw_only=True)
class Group:
    """One group of records: who they are, how many, and how much of the loss they carry.

    `loss` is the mean loss of a record of the group, `records` and `carries` are shares of all
    records and of the whole loss.
    """

    name: str
    n: int
    loss: float
    records: float
    carries: float


@dataclass(frozen=True, kw_only=True, repr=False)
class SubgroupLoss(Displayed):
    """How the loss is spread over groups of records, the one with the highest loss first.

    Attributes
    ----------
    value : float
        The mean loss of a record; the mean of the groups' losses, by their shares of records.
    groups : tuple of Group
        The groups; every record is in one.
    between : float
        The share of the variance of records' losses that the groups explain, from 0 to 1.
    by : name or None
        The column that makes the groups, or None where they were found.
    formula, source : str
        What is computed, and where it is defined.
    """

    value: float
    groups: tuple[Group, ...]
    between: float
    by: Name | None
    formula: str
    source: str
    name: str = "subgroups"
    range: tuple[float, float] = (0.0, np.inf)

    @property
    def by_column(self) -> dict[str, float]:
        """The loss of each group, by its name."""
        return {group.name: group.loss for group in self.groups}

    @property
    def verdict(self) -> str:
        """What the groups say, in one line."""
        top = self.groups[0]
        if not self.value:
            return "no record lost anything"
        return (
            f"{top.name} ({100 * top.records:.3g} % of the records) carries "
            f"{100 * top.carries:.3g} % of the loss; the groups explain "
            f"{100 * self.between:.3g} % of where it is"
        )

    def _display(self) -> Display:
        rows: list[list[str | Bar]] = [
            [g.name, f"{g.loss:.4g}", Bar(g.records, f"{100 * g.records:.1f} %"),
             Bar(g.carries, f"{100 * g.carries:.1f} %")]
            for g in self.groups
        ]  # fmt: skip
        how = [f"Formula: {self.formula}.", f"Source: {self.source}."]
        return Display(
            title="Loss: subgroups",
            verdict=[f"Loss {self.value:.4g} a record: {self.verdict}."],
            sections=[
                Section(rows=[["group", "loss", "records", "of the loss"], *rows], texts=(0,)),
                Section(title="How it is computed", lines=how, folded=True),
            ],
            confidential=COMPARED,
        )

    def __str__(self) -> str:
        width = max(len(group.name) for group in self.groups)
        lines = [f"loss {self.value:.4g} a record: {self.verdict}"]
        lines += [
            f"  {g.name.ljust(width)}  {g.loss:10.4g}  {100 * g.records:5.1f} % of records  "
            f"{100 * g.carries:5.1f} % of loss"
            for g in self.groups
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers."""
        return vars(self) | {
            "by": None if self.by is None else str(self.by),
            "range": [self.range[0], None],
            "verdict": self.verdict,
            "groups": [vars(group).copy() for group in self.groups],
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row for each group."""
        import pandas as pd

        return pd.DataFrame([vars(group) for group in self.groups])


def record_loss(original: Any, masked: Any, **reading: Unpack[Reading]) -> Floats:
    """Measure the loss of each record.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.

    Returns
    -------
    ndarray of shape (n,)
        For each record the mean over its known columns of (x - y)^2 / s^2 for numbers, with s^2
        the original's variance, and of 1 for each category that differs; NaN where no cell is
        known.

    Notes
    -----
    Over all records and columns of numbers without missing cells its mean is SSE/SST.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import record_loss
    >>> record_loss(np.array([[0.0], [2.0]]), np.array([[0.0], [1.0]]))
    array([0., 1.])
    """
    return _record_loss(compare(original, masked, **reading))


def _record_loss(pair: ComparedTables) -> Floats:
    total, count = np.zeros(pair.n_rows), np.zeros(pair.n_rows)
    for name in pair.numbers:
        cells, spread = pair.number(name), column_sums(pair, name).spread
        lost = ((cells.before - cells.after) / spread) ** 2
        known = np.ones(pair.n_rows, dtype=bool) if cells.known is None else cells.known
        total[known] += lost[known]
        count += known
    for name in pair.categories:
        codes, known = pair.category(name), pair.categorised(name)
        total += known & (codes.before != codes.after)
        count += known
    losses: Floats = np.divide(total, count, out=np.full(pair.n_rows, np.nan), where=count > 0)
    return losses


@parameters(n_groups=[Whole(1)], min_records=[Whole(1), NONE])
def subgroup_loss(
    original: Any,
    masked: Any,
    *,
    by: Name | None = None,
    n_groups: int = 8,
    min_records: int | None = None,
    **reading: Unpack[Reading],
) -> SubgroupLoss:
    """Find out which groups of records carry the loss.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.
    by : name of a column of the original, optional
        Makes the groups: one for each category, or `n_groups` ranges with about as many records
        for numbers with more different values than that. Otherwise the groups are found.
    n_groups : int, default 8
        The largest number of groups of numbers, or to be found.
    min_records : int, optional
        The least number of records in a group that is found; otherwise 1 % of all, at least 5.

    Notes
    -----
    The loss of a record is that of `record_loss`. Groups are found by a regression tree that
    explains it by the original's columns, splitting where the sum of squares falls most; a
    missing number goes with the side that fits better.

    References
    ----------
    L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone (1984). Classification and Regression
    Trees. Wadsworth.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.loss import subgroup_loss
    >>> x = pd.DataFrame({"town": ["a", "a", "b", "b"], "pay": [1.0, 2.0, 3.0, 4.0]})
    >>> y = x.assign(pay=[1.0, 2.0, 4.0, 3.0])
    >>> found = subgroup_loss(x, y, by="town")
    >>> found.groups[0].name, found.groups[0].carries
    ('town = b', 1.0)
    """
    pair = compare(original, masked, **reading)
    losses = _record_loss(pair)
    counts = ~np.isnan(losses)
    if not counts.any():
        raise UnpairedError(
            "No record has a cell that both tables know: there is nothing to place."
        )
    weights = np.ones(pair.n_rows) if pair.weights is None else pair.weights
    if by is not None:
        place, names = _by_column(pair, by, n_groups)
        where = f"groups of {by!r}"
    else:
        least = min_records or max(5, pair.n_rows // 100)
        place, names = _found(pair, losses, weights * counts, n_groups, least)
        where = "groups found by a regression tree on the original's columns"
    groups = _groups(place[counts], names, losses[counts], weights[counts])
    value = float(losses[counts] @ weights[counts] / weights[counts].sum())
    return SubgroupLoss(
        value=value,
        groups=tuple(groups),
        between=_explained(place[counts], losses[counts], weights[counts]),
        by=by,
        formula="the mean over columns of squared differences over the original's variance, and of "
        f"categories that differ, averaged over records, by {where}",
        source="L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone (1984). Classification "
        "and Regression Trees. Wadsworth",
    )


def _groups(place: Integers, names: list[str], losses: Floats, weights: Floats) -> list[Group]:
    size = np.bincount(place, weights=weights, minlength=len(names))
    lost = np.bincount(place, weights=weights * losses, minlength=len(names))
    n = np.bincount(place, minlength=len(names))
    groups = [
        Group(
            name=names[i],
            n=int(n[i]),
            loss=float(lost[i] / size[i]),
            records=float(size[i] / size.sum()),
            carries=float(lost[i] / lost.sum()) if lost.sum() > 0 else 0.0,
        )
        for i in range(len(names))
        if n[i]
    ]
    return sorted(groups, key=lambda group: -group.loss)


def _explained(place: Integers, losses: Floats, weights: Floats) -> float:
    mean = losses @ weights / weights.sum()
    total = float(((losses - mean) ** 2) @ weights)
    if total <= 0:
        return 0.0
    size = np.bincount(place, weights=weights)
    means = np.bincount(place, weights=weights * losses) / np.maximum(size, 1e-300)
    return float(np.clip((size * (means - mean) ** 2).sum() / total, 0.0, 1.0))


def _by_column(pair: ComparedTables, by: Name, n_groups: int) -> tuple[Integers, list[str]]:
    """Number the groups of a column of the original; records that lack it are a group too."""
    view = pair.original
    view.table.place(by, who="by")
    if view.is_number(by):
        values = view.numbers(by, who="by")
        known = ~np.isnan(values)
        distinct = np.unique(values[known])
        if len(distinct) > n_groups:
            ends = np.quantile(values[known], np.arange(1, n_groups) / n_groups, method="higher")
            ends = np.unique(ends) if n_groups > 1 else distinct[-1:]
            place = np.searchsorted(ends, values, side="left")
            names = [f"{by} <= {ends[0]:.15g}"]
            names += [f"{low:.15g} < {by} <= {high:.15g}" for low, high in pairwise(ends.tolist())]
            names += [f"{by} > {ends[-1]:.15g}"]
        else:
            place = np.searchsorted(distinct, np.where(known, values, np.inf))
            names = [f"{by} = {value:.15g}" for value in distinct]
        place = np.where(known, place, len(names)).astype(np.int64)
    else:
        place, labels = view.labels(by)
        names = [f"{by} = {label}" for label in labels]
        place = np.where(place < 0, len(names), place)
    return place, [*names, f"{by} missing"]


def _found(
    pair: ComparedTables, losses: Floats, weights: Floats, n_groups: int, least: int
) -> tuple[Integers, list[str]]:
    """Split the records where their losses differ most, and name the leaves."""
    columns: list[CodedColumn] = []
    for name in pair.numbers:
        values = pair.number(name).before
        known = ~np.isnan(values)
        distinct, rank = np.unique(values[known], return_inverse=True)
        codes = np.full(len(values), -1, dtype=np.int64)
        codes[known] = rank
        columns.append(CodedColumn(name=name, codes=codes, labels=distinct, is_number=True))
    for name in pair.categories:
        cells = pair.category(name)
        labels = cells.labels[: cells.n_original]
        codes = np.where(cells.before < len(labels), cells.before, -1).astype(np.int64)
        columns.append(CodedColumn(name=name, codes=codes, labels=labels, is_number=False))
    lost = np.nan_to_num(losses)
    mean = np.average(lost, weights=weights)
    growing = Growing(
        columns=columns, values=lost, weights=weights, least_records=least,
        least_fall=LEAST * float(weights @ (lost - mean) ** 2),
    )  # fmt: skip
    leaves = growing.leaves(n_groups)
    place = np.empty(pair.n_rows, dtype=np.int64)
    for number, leaf in enumerate(leaves):
        place[leaf.rows] = number
    return place, [str(leaf) for leaf in leaves]
