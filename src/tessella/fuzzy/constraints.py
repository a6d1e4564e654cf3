"""Where centres may be: linear equations and inequalities between the columns.

Given degrees, the objective of a centre is its weight times the squared distance to the weighted
mean of the records, plus a constant. So the best admissible centre is the orthogonal projection
of that mean: equations 5 and 11 of Torra (2020) for one equation, and for any number of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._types import Floats
from ..exceptions import BadTableError, UnknownColumnError
from ..linear import LinearSystem
from ..linear.rows import Row
from ..plan.plan import cases_of, rows_of
from ..rules import Rules
from .field import Field

__all__ = ["Constraints", "as_system"]


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

    def project(self, centres: Floats) -> Floats:
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
    if isinstance(wish, Rules):
        wish = _linear_rules(wish)
    if isinstance(wish, LinearSystem):
        return _over(wish, columns)
    if not isinstance(wish, tuple | list) or len(wish) != 2:
        raise BadTableError(
            f"constraints is a {type(wish).__name__}; give a pair (A, b) for A v = b, a "
            "tessella.linear.LinearSystem, or parsed rules."
        )
    try:
        matrix = np.atleast_2d(np.asarray(wish[0], dtype=np.float64))
        right = np.atleast_1d(np.asarray(wish[1], dtype=np.float64))
    except (TypeError, ValueError):
        raise BadTableError(
            "constraints must be numbers: a pair (A, b) for A v = b, with one row of A and one "
            "number of b for each equation."
        ) from None
    return _over(LinearSystem.equalities(matrix, right), columns)


def _linear_rules(rules: Rules) -> LinearSystem:
    """Collect the rows of rules that are linear; < is taken as <=."""
    found: list[Row] = []
    for rule in rules:
        ways = cases_of(rule)
        rows = [row for claim in ways[0] for row in rows_of(claim)] if len(ways) == 1 else []
        if not rule.is_affine or not rows:
            raise BadTableError(
                f"{rule.name} ({rule.text}) is not linear, and centres keep linear rules only. "
                "Leave it out, or use tessella.protect, which keeps others too."
            )
        found += [replace(row, name=f"{rule.name}: {rule.text}") for row in rows]
    return LinearSystem.of_rows(found, rules.columns)


def _over(system: LinearSystem, columns: Sequence[Hashable]) -> LinearSystem:
    """Write a system over all columns of a table; those that it does not name take no part."""
    if system.columns is None and system.n_columns != len(columns):
        raise BadTableError(
            f"The constraints have {system.n_columns} coefficients a row, and the table has "
            f"{len(columns)} columns. Give one coefficient for each column, 0 where it takes no "
            "part, or name the columns."
        )
    own = tuple(columns) if system.columns is None else system.columns
    places = []
    for j, name in enumerate(own):
        if name in columns:
            places.append((j, list(columns).index(name)))
        elif system.A[:, j].any() or system.G[:, j].any():
            raise UnknownColumnError(name, columns, who="constraints")
    A, G = np.zeros((len(system.b), len(columns))), np.zeros((len(system.h), len(columns)))
    for inner, outer in places:
        A[:, outer], G[:, outer] = system.A[:, inner], system.G[:, inner]
    return LinearSystem(A, system.b, G, system.h, columns=columns, names=system.names)
