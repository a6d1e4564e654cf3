"""Generic losses of numbers: how far values and their moments have moved.

The table of Domingo-Ferrer and Torra has one row for each thing that is compared (values, means,
variances, covariances, correlations) and one column for each way to average differences (mean
square error, mean absolute error, mean variation).
"""

from __future__ import annotations

import math
from itertools import combinations_with_replacement
from typing import Any, Literal, Unpack, get_args

import numpy as np

from .._parameters import FLAG, OneOf, parameters
from .._types import Floats, Name
from .compared import ComparedTables, Reading, compare
from .moments import column_sums, moments, variation
from .result import Loss, worst

__all__ = ["generic_loss", "il1s", "sse_sst"]

Of = Literal["values", "means", "variances", "covariances", "correlations"]
How = Literal["square", "absolute", "variation"]

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
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order.
    standardise : bool, default True
        Whether each column counts alike; otherwise those with large numbers rule.
    **reading
        `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.

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
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order.
    **reading
        `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.

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
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order.
    of : {"values", "means", "variances", "covariances", "correlations"}
        What is compared.
    how : {"square", "absolute", "variation"}
        The mean of squared differences, of absolute ones, or of |a - b| / |a|.
    standardise : bool, default True
        Whether columns are put on the scale of the original's standard deviation first, so that
        figures have no unit; "variation" and correlations have none anyway.
    **reading
        `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.

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
        entries, before, after = _statistics(pair, of, standardise and how != "variation")
        if how == "variation":
            losses, zeros = variation(before, after)
        else:
            losses = (before - after) ** 2 if how == "square" else np.abs(before - after)
        value = float(losses.mean()) if len(losses) else 0.0
        by_column = _by_column(names, entries, losses)
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
        by_column[name] = {
            "square": sums.square / unit**2,
            "absolute": sums.absolute / unit,
            "variation": sums.relative,
        }[how]
        zeros += sums.zeros if how == "variation" else 0
    return by_column, zeros


def _statistics(
    pair: ComparedTables, of: Of, standardise: bool
) -> tuple[list[tuple[int, int]], Floats, Floats]:
    """Return which columns each statistic is of, and the statistics of both tables."""
    d = len(pair.numbers)
    if of in ("means", "variances"):
        sums = [column_sums(pair, name) for name in pair.numbers]
        unit = np.array([s.spread if standardise else 1.0 for s in sums])
        single = [(j, j) for j in range(d)]
        if of == "means":
            before = np.array([s.mean_before for s in sums]) / unit
            return single, before, np.array([s.mean_after for s in sums]) / unit
        before = np.array([s.variance_before for s in sums]) / unit**2
        return single, before, np.array([s.variance_after for s in sums]) / unit**2
    found = moments(pair)
    entries = list(combinations_with_replacement(range(d), 2))
    if of == "correlations":
        entries = [(j, k) for j, k in entries if j < k]
        both = [found.correlation, found.correlation_after]
    else:
        unit = np.ones((d, d)) if standardise else np.outer(found.spread, found.spread)
        both = [found.covariance * unit, found.covariance_after * unit]
    rows, columns = [j for j, _ in entries], [k for _, k in entries]
    return entries, both[0][rows, columns], both[1][rows, columns]


def _by_column(
    names: tuple[Name, ...], entries: list[tuple[int, int]], losses: Floats
) -> dict[Name, float]:
    total, count = np.zeros(len(names)), np.zeros(len(names))
    for (j, k), loss in zip(entries, losses):
        for column in {j, k}:
            total[column] += loss
            count[column] += 1
    means = total / np.maximum(count, 1)
    return dict(zip(names, means.tolist()))
