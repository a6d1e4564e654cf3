"""Generic losses: how far values and their moments have moved, and all generic measures at once.

The table of Domingo-Ferrer and Torra has one row for each thing that is compared (values, means,
variances, covariances, correlations) and one column for each way to average differences (mean
square error, mean absolute error, mean variation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, Literal, Unpack, get_args

import numpy as np

from .._parameters import FLAG, OneOf, parameters
from .._types import Floats, Integers, Name
from ..exceptions import TessellaError
from ..keys import Hierarchy
from ..schema import Schema
from .base import (
    ComparedTables,
    Loss,
    OnUnpaired,
    Reading,
    Summary,
    compare,
    reason_of,
    worst,
)
from .categories import contingency_loss, entropy_loss, mutual_information_loss
from .distributions import distribution_loss, pil
from .moments import column_sums, component_loss, moments, variation
from .recoded import recoding_loss

Of = Literal["values", "means", "variances", "covariances", "correlations"]
How = Literal["square", "absolute", "variation"]
Places = tuple[Integers, Integers]  # of statistics: of which columns

HOW = {
    "square": ("squared differences", "mean square error"),
    "absolute": ("absolute differences", "mean absolute error"),
    "variation": ("absolute differences over the original's absolute value", "mean variation"),
}
SOURCE = (
    "J. Domingo-Ferrer and V. Torra (2001). Disclosure control methods and information loss for "
    "microdata. In Confidentiality, Disclosure and Data Access, Elsevier, 91-110"
)


@parameters(standardise=[FLAG])
def sse_sst(
    original: Any, masked: Any, *, standardise: bool = True, **reading: Unpack[Reading]
) -> Loss:
    """Measure the share of the variation that masking takes away or adds.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.
    standardise : bool, default True
        Whether each column counts alike; otherwise those with large numbers rule.

    Returns
    -------
    Loss
        From 0, without limit; at most 1 where values were replaced by means of groups.

    Notes
    -----
    SSE/SST = sum over columns of |x_j - y_j|^2 / sum over columns of |x_j - mean(x_j)|^2, with
    columns divided by the original's standard deviation; then it is the mean of the columns'
    ratios. A column that is constant in the original counts 0 if it was left so, and otherwise is
    measured against the variance of both tables' values together (a ratio from 2 to 4).

    References
    ----------
    J. Domingo-Ferrer and J. M. Mateo-Sanz (2002). Practical data-oriented microaggregation for
    statistical disclosure control. IEEE TKDE 14(1), 189-201.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import sse_sst
    >>> x, y = np.array([[1.0], [2.0], [5.0], [6.0]]), np.array([[1.5], [1.5], [5.5], [5.5]])
    >>> round(sse_sst(x, y).value, 6)  # 1 of 17
    0.058824
    """
    pair = compare(original, masked, **reading)
    sums = {name: column_sums(pair, name) for name in pair.need_numbers("SSE/SST")}
    by_column = {name: s.square / s.spread**2 for name, s in sums.items()}
    if standardise:
        value = math.fsum(by_column.values()) / len(by_column)
    else:
        lost = math.fsum(s.square * s.n for s in sums.values())
        there = math.fsum(s.spread**2 * s.n for s in sums.values())
        value = lost / there
    return Loss(
        name="sse_sst",
        value=value,
        by_column=by_column,
        formula="the sum of squared differences over the original's sum of squares around its "
        + ("mean, averaged over columns" if standardise else "means, over all columns together"),
        source="J. Domingo-Ferrer and J. M. Mateo-Sanz (2002). Practical data-oriented "
        "microaggregation for statistical disclosure control. IEEE TKDE 14(1), 189-201",
        range=(0.0, math.inf),
        verdict=f"values moved by {100 * value:.3g} % of the variation{worst(by_column)}",
    )


def il1s(original: Any, masked: Any, **reading: Unpack[Reading]) -> Loss:
    """Measure the mean absolute difference in units of the standard deviation: IL1s.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.

    Notes
    -----
    IL1s = 1/(n p) sum over records and columns of |x_ij - y_ij| / (sqrt(2) S_j), with S_j the
    original's standard deviation, divisor n - 1. sdcMicro's IL1s is the sum, not the mean: n p
    times as large, it is among the details.

    References
    ----------
    J. M. Mateo-Sanz, F. Sebe and J. Domingo-Ferrer (2004). Outlier protection in continuous
    microdata masking. LNCS 3050, 201-215.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import il1s
    >>> round(il1s(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]])).value, 9)
    0.5
    """
    pair = compare(original, masked, **reading)
    by_column, total = {}, 0.0
    for name in pair.need_numbers("IL1s"):
        sums = column_sums(pair, name)
        deviation = sums.spread * (math.sqrt(sums.n / (sums.n - 1)) if sums.n > 1 else 1.0)
        by_column[name] = sums.absolute / (math.sqrt(2) * deviation)
        total += sums.n * by_column[name]
    value = math.fsum(by_column.values()) / len(by_column)
    return Loss(
        name="il1s",
        value=value,
        by_column=by_column,
        formula="the mean over records and columns of the absolute difference over the square root "
        "of 2 times the original's standard deviation",
        source="J. M. Mateo-Sanz, F. Sebe and J. Domingo-Ferrer (2004). Outlier protection in "
        "continuous microdata masking. LNCS 3050, 201-215",
        range=(0.0, math.inf),
        verdict=f"a value moved by {math.sqrt(2) * value:.3g} standard deviations on average"
        + worst(by_column),
        details={"sdcMicro's sum": total},
    )


@parameters(of=[OneOf(get_args(Of))], how=[OneOf(get_args(How))], standardise=[FLAG])
def generic_loss(
    original: Any,
    masked: Any,
    *,
    of: Of = "values",
    how: How = "square",
    standardise: bool = True,
    **reading: Unpack[Reading],
) -> Loss:
    """Measure one cell of the table of Domingo-Ferrer and Torra.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.
    of : {"values", "means", "variances", "covariances", "correlations"}
        What is compared.
    how : {"square", "absolute", "variation"}
        The mean of squared differences, of absolute ones, or of |a - b| / |a|.
    standardise : bool, default True
        Whether columns are put on the scale of the original's standard deviation first, so that
        figures have no unit; "variation" and correlations have none anyway.

    Notes
    -----
    Averages run over n p values, p means, p variances, p (p + 1) / 2 covariances (variances among
    them) and p (p - 1) / 2 correlations; moments have divisor n. |a - b| / |a| counts 0 where both
    are zero and 1 where only the original is; `details` says how often. The loss of a column is
    the average over the entries that it takes part in.

    References
    ----------
    J. Domingo-Ferrer and V. Torra (2001). Disclosure control methods and information loss for
    microdata. In Confidentiality, Disclosure and Data Access, Elsevier, 91-110.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import generic_loss
    >>> x, y = np.array([[1.0], [2.0], [4.0]]), np.array([[2.0], [2.0], [3.0]])
    >>> generic_loss(x, y, of="values", how="variation").value
    0.4166666666666667
    """
    pair = compare(original, masked, **reading)
    names = pair.need_numbers("The generic loss")
    zeros = 0
    if of == "values":
        by_column, zeros = _of_values(pair, how, standardise)
        value = math.fsum(by_column.values()) / len(by_column)
    else:
        places, (before, after) = _statistics(pair, of, standardise and how != "variation")
        if how == "variation":
            losses, zeros = variation(before, after)
        else:
            losses = (before - after) ** 2 if how == "square" else np.abs(before - after)
        value = float(losses.mean()) if len(losses) else 0.0
        by_column = _by_column(names, places, losses)
    unit = " on the original's scale" if standardise and how != "variation" else ""
    low_high = {"square": 4.0, "absolute": 2.0}.get(how, math.inf)
    return Loss(
        name=f"{of}_{how}",
        value=value,
        by_column=by_column,
        formula=f"the mean of {HOW[how][0]} of {of}{unit}",
        source=SOURCE,
        range=(0.0, low_high if of == "correlations" else math.inf),
        verdict=f"{HOW[how][1]} of {of}: {value:.3g}{worst(by_column)}",
        details={"entries that are zero in the original only": zeros} if zeros else {},
    )


def _of_values(pair: ComparedTables, how: How, standardise: bool) -> tuple[dict[Name, float], int]:
    by_column, zeros = {}, 0
    for name in pair.numbers:
        sums = column_sums(pair, name)
        unit = sums.spread if standardise else 1.0
        others = {"square": sums.square / unit**2, "absolute": sums.absolute / unit}
        by_column[name] = others.get(how, sums.relative)
        zeros += sums.zeros if how == "variation" else 0
    return by_column, zeros


def _statistics(pair: ComparedTables, of: Of, standardise: bool) -> tuple[Places, list[Floats]]:
    """Return which two columns each statistic is of, and the statistics of both tables."""
    d = len(pair.numbers)
    if of in ("means", "variances"):
        sums = [column_sums(pair, name) for name in pair.numbers]
        part, power = ("mean", 1) if of == "means" else ("variance", 2)
        unit = np.array([s.spread if standardise else 1.0 for s in sums]) ** power
        sides = [[getattr(s, f"{part}_{side}") for s in sums] for side in ("before", "after")]
        return (np.arange(d), np.arange(d)), [np.array(side) / unit for side in sides]
    found = moments(pair)
    if of == "correlations":
        places = np.triu_indices(d, k=1)
        return places, [found.correlation[places], found.correlation_after[places]]
    unit = np.ones((d, d)) if standardise else np.outer(found.spread, found.spread)
    places = np.triu_indices(d)
    return places, [(side * unit)[places] for side in (found.covariance, found.covariance_after)]


def _by_column(names: tuple[Name, ...], places: Places, losses: Floats) -> dict[Name, float]:
    """Average over the statistics that a column takes part in; a variance is of one column."""
    rows, columns = places
    pairs = rows != columns
    parts = np.concatenate([columns, rows[pairs]])
    total = np.bincount(parts, np.concatenate([losses, losses[pairs]]), minlength=len(names))
    means = total / np.maximum(np.bincount(parts, minlength=len(names)), 1)
    return dict(zip(names, means.tolist()))


@parameters({"missing": "on_unpaired"})
def measure(
    original: Any,
    masked: Any,
    *,
    columns: Iterable[Name] | None = None,
    schema: Schema | None = None,
    weights: Any = None,
    on_unpaired: OnUnpaired = "error",
    hierarchies: Mapping[Name, Hierarchy] | None = None,
    as_read: Any = None,
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
        is missing in both is always left out. With "skip", a column that cannot be compared (an
        infinite number, say) and a measure that fails are left out, too, with a note.
    hierarchies : mapping of name to Hierarchy, optional
        The columns that were recoded to coarser values, by which hierarchy.
    as_read : table, optional
        The original as it was read, where cells of `original` were suppressed before masking: these
        are lost, too, and `lost_cells` counts them. The records are the same, in the same order.

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
        original, masked, columns=columns, schema=schema, weights=weights, on_unpaired=on_unpaired,
        hierarchies=hierarchies, as_read=as_read,
    )  # fmt: skip
    losses, failed = _measured(pair)
    return Summary(
        losses=tuple(losses),
        n_records=pair.n_rows,
        numbers=pair.numbers,
        categories=pair.categories,
        notes=(*failed, *_notes(pair)),
    )


def _measured(pair: ComparedTables) -> tuple[list[Loss], list[str]]:
    """Measure by all that fits the columns; what fails is an error, or left out with its reason."""
    losses, failed = [], []
    for name, compute in _measures(pair):
        try:
            with np.errstate(over="warn" if pair.on_unpaired == "error" else "raise"):
                losses.append(compute())
        except (TessellaError, ArithmeticError, ValueError) as error:  # LinAlgError is one of these
            if pair.on_unpaired == "error":
                raise
            failed.append(f"{name} is left out: {reason_of(error)}")
    return losses, failed


def _measures(pair: ComparedTables) -> Iterator[tuple[str, Callable[[], Loss]]]:
    """Return the measures that fit the columns, by name."""
    several = len(pair.numbers) > 1
    if pair.numbers:
        for one in (sse_sst, il1s, pil):
            yield one.__name__, partial(one, pair, pair)
        for of, how in product(get_args(Of), get_args(How)):
            if of != "correlations" or several:
                yield f"{of}_{how}", partial(generic_loss, pair, pair, of=of, how=how)
        for distance in ("quantiles", "kolmogorov_smirnov", "wasserstein"):
            yield distance, partial(distribution_loss, pair, pair, distance=distance)
    if several:
        yield "eigenvalues", partial(component_loss, pair, pair, of="eigenvalues")
        yield "principal_components", partial(component_loss, pair, pair, of="directions")
    if len(pair.categories) > len(pair.recoded):
        yield "contingency", partial(contingency_loss, pair, pair)
    if pair.recoded:
        yield "recoding", partial(recoding_loss, pair, pair)
    if pair.categories:
        yield "entropy", partial(entropy_loss, pair, pair)
    if len(pair.categories) > 1:
        yield "mutual_information", partial(mutual_information_loss, pair, pair)
    if pair.on_unpaired == "skip" and pair.present:
        yield "lost_cells", partial(lost_cells, pair, pair)


def _notes(pair: ComparedTables) -> Iterator[str]:
    yield from (f"column {name!r} has no value in either table" for name in pair.empty)
    yield from (f"column {name!r} is left out: {why}" for name, why in pair.skipped.items())
    for name in pair.numbers:
        sums = column_sums(pair, name)
        if sums.constant:
            then = "was left so, and loses nothing"
            if sums.square:
                then = "was changed: it is measured against the spread of both tables together"
            yield f"column {name!r} has one value only in the original and {then}"
        if sums.n < pair.n_rows:
            yield f"column {name!r} is compared in {sums.n:,} of {pair.n_rows:,} records"
    for name in pair.categories:
        cells = pair.category(name)
        new = len(cells.labels) - cells.n_original
        if name in pair.recoded:
            yield f"column {name!r} was recoded: its frequencies are not compared"
        elif new:
            noun = "category" if new == 1 else "categories"
            yield f"column {name!r} has {new} {noun} that the original does not have"
        known = int(pair.categorised(name).sum())
        if known < pair.n_rows:
            yield f"column {name!r} is compared in {known:,} of {pair.n_rows:,} records"


def lost_cells(original: Any, masked: Any, **reading: Unpack[Reading]) -> Loss:
    """Measure the share of known cells that the masked table lacks.

    Parameters
    ----------
    original, masked, **reading
        As in `measure`, without `on_unpaired`: cells may be missing on one side.

    Notes
    -----
    For each column the (weighted) share of the original's known cells that are missing in the
    masked table; the value is the mean over columns. Known are those of `as_read`, the original
    before cells were suppressed, where that is given. Cells that only the masked table knows are
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
    w = np.ones(pair.n_rows) if pair.weights is None else pair.weights
    invented = 0
    for name in pair.present:  # those as well of which no value can be compared
        before, after = pair.known(name)
        lost = before & ~after
        invented += int((after & ~before).sum())
        by_column[name] = float(w[lost].sum() / max(w[before].sum(), 1e-300))
    value = sum(by_column.values()) / len(by_column)
    return Loss(
        name="lost_cells",
        value=value,
        by_column=by_column,
        formula="the share of the original's known cells that are missing in the masked table, "
        "averaged over columns",
        source="A. Hundepool et al. (2012). Statistical Disclosure Control. Wiley",
        verdict=f"{100 * value:.3g} % of the known cells are gone{worst(by_column)}",
        details={"known in the masked table only": invented},
    )
