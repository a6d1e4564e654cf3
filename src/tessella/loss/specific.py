"""Specific losses: what a given analysis makes of the masked table, beside the original.

An *analysis* is any function of a table that returns a number, an array of numbers, or a mapping of
names to numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._types import Floats, Name
from ..exceptions import BadTableError, UnpairedError
from .result import Loss, worst

__all__ = ["specific_loss"]

Analysis = Callable[[Any], Any]
Distance = Callable[[Floats, Floats], float]


def specific_loss(
    f: Analysis,
    original: Any,
    masked: Any,
    *,
    distance: Distance | None = None,
    name: str | None = None,
) -> Loss:
    """Measure how far the result of an analysis has moved.

    Parameters
    ----------
    f : callable
        Takes a table of the kind given and returns a number, an array of finite numbers, or a
        mapping of names to numbers. It should give the same answer for the same table: seed it.
    original, masked : any
        What f takes; they need not have the same records.
    distance : callable, optional
        Takes the two results as arrays of one dimension and returns a number of at least 0, and 0
        for equal results.
    name : str, optional
        What to call the measure; otherwise the name of f.

    Returns
    -------
    Loss
        From 0 to 1 with the default distance. `by_column` has each entry of the result.

    Notes
    -----
    loss = |f(X) - f(Y)| / (|f(X)| + |f(Y)|), with Euclidean norms: 0 for the same result, 1 where
    one is zero and the other not, or where they are opposite. Entry by entry it is
    |a - b| / (|a| + |b|), the distance of Canberra.

    References
    ----------
    V. Torra, Y. Endo and S. Miyamoto (2009). On the comparison of some fuzzy clustering methods
    for privacy preserving data mining: towards the development of specific information loss
    measures. Kybernetika 45(3).

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import specific_loss
    >>> x, y = np.array([[1.0], [3.0]]), np.array([[2.0], [4.0]])
    >>> specific_loss(lambda table: table.mean(), x, y).value
    0.2
    """
    called = name or getattr(f, "__name__", "analysis").strip("<>")
    names, before = _result(f(original), "original")
    others, after = _result(f(masked), "masked table")
    if names != others or before.shape != after.shape:
        raise UnpairedError(
            f"The analysis gives {len(before)} numbers for the original and {len(after)} for the "
            "masked table, or other names. Write it so that both results have the same entries."
        )
    gap = np.abs(before - after)
    size = np.abs(before) + np.abs(after)
    entries = np.divide(gap, size, out=np.zeros_like(gap), where=size > 0)
    by_column = dict(zip(names, entries.tolist()))
    if distance is None:
        unit = float(size.max()) or 1.0  # squares of very small numbers would vanish
        norms = [float(np.linalg.norm(part / unit)) for part in (gap, before, after)]
        value = min(1.0, norms[0] / ((norms[1] + norms[2]) or 1.0))
        formula = "the distance of the two results over the sum of their norms"
    else:
        value = float(distance(before, after))
        formula = f"the distance {getattr(distance, '__name__', 'given')!r} of the two results"
    return Loss(
        name=called,
        value=value,
        by_column=by_column,
        formula=formula,
        source="V. Torra, Y. Endo and S. Miyamoto (2009). Specific information loss measures. "
        "Kybernetika 45(3)",
        range=(0.0, 1.0 if distance is None else math.inf),
        verdict=f"the result of {called!r} moved by {value:.3g}{worst(by_column)}",
    )


def _result(given: Any, table: str) -> tuple[list[Name], Floats]:
    """Return names and numbers of what an analysis gave."""
    names: list[Name] | None = None
    if isinstance(given, Mapping):
        names, given = list(given), list(given.values())
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadTableError(
            f"The analysis of the {table} gives {type(given).__name__}, which is not numbers. "
            "Return a number, an array of numbers, or a mapping of names to numbers."
        ) from None
    if not numbers.size or not np.isfinite(numbers).all():
        raise BadTableError(
            f"The analysis of the {table} gives nothing, or numbers that are missing or infinite. "
            "Return finite numbers only."
        )
    if names is None:
        names = list(range(numbers.size)) if numbers.ndim < 2 else list(np.ndindex(numbers.shape))
    return names, numbers.reshape(-1)
