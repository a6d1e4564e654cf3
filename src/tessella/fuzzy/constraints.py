"""Where centres may be: linear equations and inequalities between the columns.

Given degrees, the objective of a centre is its weight times the squared distance to the weighted
mean of the records, plus a constant. So the best admissible centre is the orthogonal projection
of that mean: equations 5 and 11 of Torra (2020) for one equation, and for any number of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import BadTableError
from ..linear import LinearSystem
from .field import Field

__all__ = ["Constraints", "as_system"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Constraints:
    """A system in the table's units and in the field's, or none."""

    outside: LinearSystem | None = None
    inside: LinearSystem | None = None

    @classmethod
    def of(cls, wish: Any, columns: Sequence[Hashable], field: Field) -> Constraints:
        """Read a wish, see `as_system`, and bring it into the field."""
        if wish is None:
            return cls()
        outside = as_system(wish, columns)
        outside.check()
        unit = np.full(len(columns), 1 / field.scale)
        return cls(outside, outside.rescaled(field.origin, unit))

    def settle(self, centres: Floats) -> Floats:
        """Move centres of the field to the nearest admissible points."""
        return centres if self.inside is None else self.inside.project(centres)

    def polish(self, centres: Floats) -> Floats:
        """Take back, in the table's units, what rounding on the way there may have broken."""
        return centres if self.outside is None else self.outside.project(centres)


def as_system(wish: Any, columns: Sequence[Hashable]) -> LinearSystem:
    """Read constraints on some columns.

    Parameters
    ----------
    wish : LinearSystem, pair of matrix and right-hand side, or parsed rules
        A pair (A, b) stands for the equations A v = b.
    columns : sequence of names
        The columns of the table, in order.
    """
    if isinstance(wish, LinearSystem):
        return (
            wish if wish.columns is None and wish.n_columns == len(columns) else wish.part(columns)
        )
    if hasattr(wish, "linear_system"):
        system: LinearSystem = wish.linear_system(columns)
        return system
    if not isinstance(wish, tuple | list) or len(wish) != 2:
        raise BadTableError(
            f"constraints is a {type(wish).__name__}; give a pair (A, b) for A v = b, a "
            "tessella.linear.LinearSystem, or parsed rules."
        )
    matrix, right = np.atleast_2d(np.asarray(wish[0], dtype=np.float64)), np.atleast_1d(wish[1])
    if matrix.shape[1] != len(columns):
        raise BadTableError(
            f"The constraints have {matrix.shape[1]} coefficients a row, and the table has "
            f"{len(columns)} columns. Give one coefficient for each column, 0 where it takes no "
            "part."
        )
    return LinearSystem.equalities(matrix, right)
