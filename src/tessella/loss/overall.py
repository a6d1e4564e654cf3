"""All generic measures at once, and the share of cells that are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Unpack, get_args

from .._parameters import parameters
from .._types import Name
from ..schema import Schema
from .categories import contingency_loss, entropy_loss, mutual_information_loss
from .compared import ComparedTables, OnUnpaired, Reading, compare
from .components import component_loss
from .distributions import distribution_loss, pil
from .generic import How, Of, generic_loss, il1s, sse_sst
from .moments import column_sums
from .result import Loss, Summary, worst

__all__ = ["lost_cells", "measure"]


@parameters({"missing": "on_unpaired"})
def measure(
    original: Any,
    masked: Any,
    *,
    columns: Iterable[Name] | None = None,
    schema: Schema | None = None,
    weights: Any = None,
    on_unpaired: OnUnpaired = "error",
) -> Summary:
    """Measure what masking has cost, by every generic measure that fits the columns.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order; the kinds may differ.
    columns : iterable of names, optional
        The columns to compare. Otherwise all, and the tables must have the same; without the
        weights, and without columns that a schema calls identifier, household or weight.
    schema : Schema, optional
        Says which values stand for "missing", and which numbers are categories. Without it,
        columns of numbers are numbers and all others categories.
    weights : name of a column of the original, or array-like of shape (n,), optional
        How many each record stands for; otherwise the schema's weight, or one each.
    on_unpaired : {"error", "skip"}, default "error"
        A cell that is missing in one table only is an error, or is left out of both. A cell that
        is missing in both is always left out.

    Returns
    -------
    Summary
        One `Loss` for each measure; prints as a table, `to_frame` and `to_dict` hand it on.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import measure
    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> summary = measure(x, np.round(x))
    >>> round(summary["sse_sst"].value, 3)
    0.083
    >>> summary["kolmogorov_smirnov"].range
    (0.0, 1.0)
    """
    pair = compare(
        original, masked, columns=columns, schema=schema, weights=weights, on_unpaired=on_unpaired
    )
    losses = (*_of_numbers(pair), *_of_categories(pair))
    if on_unpaired == "skip":
        losses = (*losses, lost_cells(pair, pair))
    return Summary(
        losses=losses,
        n_records=pair.n_rows,
        numbers=pair.numbers,
        categories=pair.categories,
        notes=tuple(_notes(pair)),
    )


def _of_numbers(pair: ComparedTables) -> Iterator[Loss]:
    if not pair.numbers:
        return
    yield from (sse_sst(pair, pair), il1s(pair, pair), pil(pair, pair))
    several = len(pair.numbers) > 1
    for of in get_args(Of):
        if of != "correlations" or several:
            for how in get_args(How):
                yield generic_loss(pair, pair, of=of, how=how)
    for distance in ("quantiles", "kolmogorov_smirnov", "wasserstein"):
        yield distribution_loss(pair, pair, distance=distance)
    if several:
        yield component_loss(pair, pair, of="eigenvalues")
        yield component_loss(pair, pair, of="directions")


def _of_categories(pair: ComparedTables) -> Iterator[Loss]:
    if not pair.categories:
        return
    yield from (contingency_loss(pair, pair), entropy_loss(pair, pair))
    if len(pair.categories) > 1:
        yield mutual_information_loss(pair, pair)


def _notes(pair: ComparedTables) -> Iterator[str]:
    for name in pair.numbers:
        sums = column_sums(pair, name)
        if sums.constant:
            changed = "was changed: it is measured against the spread of both tables together"
            kept = "was left so, and loses nothing"
            yield (
                f"column {name!r} has one value only in the original and "
                f"{changed if sums.square else kept}"
            )
        if sums.n < pair.n_rows:
            yield f"column {name!r} is compared in {sums.n:,} of {pair.n_rows:,} records"
    for name in pair.categories:
        cells = pair.category(name)
        if new := len(cells.labels) - cells.n_original:
            yield f"column {name!r} has {new} categories that the original does not have"
        known = int(((cells.before >= 0) & (cells.after >= 0)).sum())
        if known < pair.n_rows:
            yield f"column {name!r} is compared in {known:,} of {pair.n_rows:,} records"


def lost_cells(original: Any, masked: Any, **reading: Unpack[Reading]) -> Loss:
    """Measure the share of known cells that the masked table lacks.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order.
    **reading
        `columns`, `schema` and `weights`, as in `measure`; cells may be missing on one side.

    Notes
    -----
    For each column the (weighted) share of the original's known cells that are missing in the
    masked table; the value is the mean over columns. Cells that only the masked table knows are
    counted in `details`.

    References
    ----------
    A. Hundepool et al. (2012). Statistical Disclosure Control. Wiley: local suppression.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import lost_cells
    >>> lost_cells(np.array([[1.0], [2.0]]), np.array([[1.0], [np.nan]])).value
    0.5
    """
    reading["on_unpaired"] = "skip"
    pair = compare(original, masked, **reading)
    by_column: dict[Name, float] = {}
    invented = 0
    for name in pair.columns:
        before, after = pair.known(name)
        lost = before & ~after
        invented += int((after & ~before).sum())
        if pair.weights is None:
            by_column[name] = float(lost.sum() / max(before.sum(), 1))
        else:
            w = pair.weights
            by_column[name] = float(w[lost].sum() / max(w[before].sum(), 1e-300))
    value = sum(by_column.values()) / len(by_column)
    return Loss(
        name="lost_cells",
        value=value,
        by_column=by_column,
        formula="the share of the original's known cells that are missing in the masked table, "
        "averaged over columns",
        source="A. Hundepool et al. (2012). Statistical Disclosure Control. Wiley",
        range=(0.0, 1.0),
        verdict=f"{100 * value:.3g} % of the known cells are gone{worst(by_column)}",
        details={"known in the masked table only": invented},
    )
