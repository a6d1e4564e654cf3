"""The scale on which records are near or far: what counts as one in each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats, Name
from ..exceptions import BadOptionError, UnknownColumnError, UnknownOptionError

__all__ = ["Scale"]


SCALES = ("zscore", "range", None)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Centre, standard deviation and unit of each column, each of shape (d,).

    The deviation is 0 in a column of one value; its unit is then 1, so that it carries no distance.
    """

    centre: Floats
    deviation: Floats
    unit: Floats

    @classmethod
    def of(
        cls, values: Floats, weights: Floats | None, wish: Any, columns: Sequence[Name]
    ) -> Scale:
        """Measure the columns; missing numbers (NaN) are left out.

        Parameters
        ----------
        values : ndarray of shape (n, d)
            The numbers.
        weights : ndarray of shape (n,), or None
            Positive weights.
        wish : {"zscore", "range", None} or mapping of name to number
            The unit: a standard deviation, the range, 1, or one for each column.
        columns : sequence of names
            The names of the columns.
        """
        given = _given_units(wish, columns)
        parts = [_measure(values[:, j], weights) for j in range(values.shape[1])]
        centre, deviation, spread = np.array(parts).reshape(-1, 3).T
        units = {"zscore": deviation, "range": spread, None: np.ones(len(columns))}
        unit = units[wish] if given is None else given
        return cls(
            centre=centre, deviation=deviation, unit=np.where((deviation > 0) & (unit > 0), unit, 1)
        )

    def apply(self, values: Floats) -> Floats:
        """Return the columns in units from the centre, 0 where missing; C order."""
        scaled = (values - self.centre) / self.unit
        scaled[np.isnan(scaled)] = 0.0
        return np.ascontiguousarray(scaled)

    def part(self, places: Sequence[int]) -> Scale:
        """Return the scale of some of the columns."""
        chosen = list(places)
        return Scale(
            centre=self.centre[chosen], deviation=self.deviation[chosen], unit=self.unit[chosen]
        )


def _measure(column: Floats, weights: Floats | None) -> tuple[float, float, float]:
    """Weighted mean, weighted standard deviation, and range."""
    seen = ~np.isnan(column)
    if not seen.any():
        return 0.0, 0.0, 0.0
    numbers = column if seen.all() else column[seen]
    weight = None if weights is None else weights[seen] / weights[seen].max()
    spread = float(numbers.max() - numbers.min())
    if spread == 0:
        return float(numbers[0]), 0.0, 0.0
    # In units of the range, from the first number: an offset costs no digits, no square overflows.
    share = (numbers - numbers[0]) / spread
    middle = np.average(share, weights=weight)
    deviation = spread * float(np.sqrt(np.average((share - middle) ** 2, weights=weight)))
    return float(numbers[0] + spread * middle), deviation, spread


def _given_units(wish: Any, columns: Sequence[Name]) -> Floats | None:
    if not isinstance(wish, Mapping):
        if wish is not None and wish not in SCALES:
            raise UnknownOptionError("scale", wish, [*SCALES, {"a column": "its unit"}])
        return None
    for name in wish:
        if name not in columns:
            raise UnknownColumnError(name, columns, who="scale")
    units = [wish.get(name) for name in columns]
    for name, unit in zip(columns, units):
        if not isinstance(unit, int | float | np.number) or not 0 < unit < np.inf:
            raise BadOptionError(
                f"scale[{name!r}]",
                unit,
                "for every masked column the positive difference that counts as one",
            )
    return np.array(units, dtype=np.float64)
