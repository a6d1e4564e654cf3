"""A system of linear equations and inequalities between the columns of a table.

A *row* is one equation a v = b or one inequality g v <= h, with a name that a person gave it; a
*record* v is a row of the table. Size matters only in proportion: a record breaks a row by so much
of the row's *scale*, sum_j |a_j v_j| + |b|, the size of what is added up.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._types import Floats, Truths
from ..exceptions import BadOptionError, ContradictionError, UnknownColumnError
from .project import Projector
from .rows import (
    Implied,
    Row,
    as_metric,
    as_records,
    as_sum,
    contradicting_rows,
    dependence,
    implied_rows,
    read_rows,
    width,
)


@dataclass(frozen=True, kw_only=True)
class Violation:
    """By how much each record breaks each row, both of shape (n, rows); zero where it does not."""

    absolute: Floats  # |a v - b|, or max(0, g v - h)
    relative: Floats  # the same as a share of the row's scale at this record


class LinearSystem:
    """Linear equations A v = b and inequalities G v <= h, by name.

    Parameters
    ----------
    A, b : array-like of shape (m, d) and (m,), optional
        The equations.
    G, h : array-like of shape (p, d) and (p,), optional
        The inequalities.
    columns : sequence of names, optional
        The names of the d columns; without them, columns are known by position.
    names : sequence of str, optional
        A name for each row, equations first: the text of a rule, say. Otherwise the row is
        written out.

    Attributes
    ----------
    A, b, G, h : ndarray
        As given, in float64; not writeable.
    columns : tuple or None
    names : tuple of str

    Examples
    --------
    >>> from tessella.linear import LinearSystem
    >>> system = LinearSystem([[1, 1, -1]], [0], [[0, 1, -1]], [0], columns=["net", "tax", "gross"])
    >>> system
    LinearSystem of 3 columns:
      row 1: net + tax - gross == 0
      row 2: tax - gross <= 0
    >>> system.holds([[80.0, 20.0, 100.0], [80.0, 30.0, 100.0]])
    array([ True, False])
    >>> system.project([[80.0, 30.0, 100.0]]).round(9)
    array([[ 76.66666667,  26.66666667, 103.33333333]])
    """

    def __init__(
        self,
        A: ArrayLike | None = None,
        b: ArrayLike | None = None,
        G: ArrayLike | None = None,
        h: ArrayLike | None = None,
        *,
        columns: Sequence[Hashable] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        wide = width(A, G, columns)
        self.A, self.b = read_rows("A", A, "b", b, wide)
        self.G, self.h = read_rows("G", G, "h", h, wide)
        self.columns = None if columns is None else tuple(columns)
        if self.columns is not None and not len(self.columns) == len(set(self.columns)) == wide:
            raise BadOptionError("columns", list(self.columns), f"{wide} different names")
        given = None if names is None else tuple(str(name) for name in names)
        if given is not None and len(given) != self.n_rows:
            raise BadOptionError("names", list(given), f"one name for each of {self.n_rows} rows")
        self.names: tuple[str, ...] = given if given is not None else self._written_out()
        # The size of what each right-hand side was computed from, which tells its rounding.
        self._sizes = np.abs(np.concatenate([self.b, self.h]))

    @classmethod
    def equalities(
        cls, A: ArrayLike, b: ArrayLike, *, columns: Sequence[Hashable] | None = None,
        names: Sequence[str] | None = None,
    ) -> LinearSystem:  # fmt: skip
        """Build a system of equations A v = b alone."""
        return cls(A, b, columns=columns, names=names)

    @classmethod
    def inequalities(
        cls, G: ArrayLike, h: ArrayLike, *, columns: Sequence[Hashable] | None = None,
        names: Sequence[str] | None = None,
    ) -> LinearSystem:  # fmt: skip
        """Build a system of inequalities G v <= h alone."""
        return cls(None, None, G, h, columns=columns, names=names)

    @classmethod
    def of_rows(
        cls, rows: Sequence[Row], columns: Sequence[Hashable] | None = None, *,
        names: Sequence[str] | None = None,
    ) -> LinearSystem:  # fmt: skip
        """Build a system of rows, equations first; strict ones count as <=.

        Without `columns`, they are those of the rows, in order of appearance.
        """
        order = sorted(rows, key=lambda row: not row.equal)
        if columns is None:
            columns = list(dict.fromkeys(name for row in order for name in row.coefficients))
        matrix = np.array([row.dense(columns) for row in order], dtype=np.float64)
        matrix = matrix.reshape(len(order), len(columns))
        right = np.array([row.right for row in order], dtype=np.float64)
        m = sum(row.equal for row in order)
        names = [row.name for row in order] if names is None else names
        return cls(matrix[:m], right[:m], matrix[m:], right[m:], columns=columns, names=names)

    @property
    def n_columns(self) -> int:
        """The number d of columns."""
        return int(self.A.shape[1])

    @property
    def n_rows(self) -> int:
        """The number of equations and inequalities."""
        return len(self.b) + len(self.h)

    def __repr__(self) -> str:
        lines = self._written_out()
        shown = (
            line if name == line else f"{line.partition(': ')[2]}   # {name}"
            for name, line in zip(self.names, lines)
        )
        return f"LinearSystem of {self.n_columns} columns:" + "".join(f"\n  {one}" for one in shown)

    # who breaks it

    def violation(self, X: ArrayLike) -> Violation:
        """Measure by how much each record breaks each row; NaN where a value is missing.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The records.

        Examples
        --------
        >>> from tessella.linear import LinearSystem
        >>> rule = LinearSystem.equalities([[1, 1, -1]], [0])
        >>> broken = rule.violation([[3.0, 2.0, 4.0]])
        >>> float(broken.absolute[0, 0]), round(float(broken.relative[0, 0]), 3)
        (1.0, 0.111)
        """
        X = as_records(X, self.n_columns)
        stack, right = np.vstack([self.A, self.G]), np.concatenate([self.b, self.h])
        absolute = X @ stack.T - right
        m = len(self.b)
        absolute[:, :m] = np.abs(absolute[:, :m])
        absolute[:, m:] = np.maximum(absolute[:, m:], 0.0)
        scale = np.abs(X) @ np.abs(stack).T + self._sizes
        relative = np.divide(absolute, scale, out=np.zeros_like(absolute), where=scale != 0)
        return Violation(absolute=absolute, relative=relative)

    def holds(self, X: ArrayLike, *, tolerance: float = 1e-9) -> Truths:
        """Say which records obey all rows, to a share of each row's scale; missing is no."""
        return np.asarray((self.violation(X).relative <= tolerance).all(axis=1))

    # what it says

    @cached_property
    def _dependence(self) -> tuple[list[int], dict[int, Floats]]:
        return dependence(self.A)

    @property
    def redundant(self) -> tuple[str, ...]:
        """The equations that are combinations of those before them; they need no further care."""
        return tuple(self.names[i] for i in self._dependence[1])

    @cached_property
    def contradiction(self) -> tuple[str, ...]:
        """A least set of rows that no record can obey together; empty where there is none."""
        found = contradicting_rows(self.A, self.b, self.G, self.h, self._sizes)
        return tuple(self.names[i] for i in found)

    def check(self) -> None:
        """Raise `ContradictionError` where no record can obey all rows.

        Examples
        --------
        >>> from tessella.linear import LinearSystem
        >>> LinearSystem([[1, 1]], [1], [[1, 0], [0, 1]], [0, 0]).check()
        Traceback (most recent call last):
          ...
        tessella.exceptions.ContradictionError: No record can obey these 3 rules together: ...
        """
        if self.contradiction:
            raise ContradictionError(self.contradiction)

    def implied(self) -> list[Implied]:
        """List the rows that are always true or follow from others, with the reasons.

        Of rows that follow from each other the first are kept, so all that are listed may be left
        out together.

        Examples
        --------
        >>> from tessella.linear import LinearSystem
        >>> order = LinearSystem.inequalities([[1, -1, 0], [0, 1, -1], [1, 0, -1]], [0, 0, 0])
        >>> [str(one) for one in order.implied()]
        ["'row 3: v1 - v3 <= 0' follows from 'row 1: v1 - v2 <= 0', 'row 2: v2 - v3 <= 0'"]
        """
        self.check()
        found = implied_rows(self.A, self.b, self.G, self.h, self._sizes)
        return [
            Implied(row=self.names[i], because=tuple(self.names[j] for j in reasons))
            for i, reasons in found.items()
        ]

    # the nearest record that obeys it

    def projector(self, metric: ArrayLike | None = None) -> Projector:
        """Prepare to project many times; see `project`."""
        self.check()
        weights = np.ones(self.n_columns) if metric is None else as_metric(metric, self.n_columns)
        rows, kept = (self.A, self.b, self.G, self.h), self._dependence[0]
        return Projector(rows, sizes=self._sizes, kept=kept, metric=weights)

    @cached_property
    def _plain_projector(self) -> Projector:
        return self.projector()

    def project(self, X: ArrayLike, *, metric: ArrayLike | None = None) -> Floats:
        """Move each record to the nearest point that obeys all rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The records; without missing values.
        metric : array-like of shape (d,), optional
            A positive weight for each column: distances are sum_j metric_j (v_j - x_j)^2.

        Returns
        -------
        V : ndarray of shape (n, d)
            Points that obey every row, to 1e-12 of its scale where the numbers allow and never
            worse than 1e-9, or than the rounding of the record's move. A record that obeys the
            rows to 1e-12 comes back bit for bit.

        Raises
        ------
        ContradictionError
            Where no point obeys all rows.

        Notes
        -----
        Exact, by an active-set method: see `tessella.linear.project`.
        """
        projector = self._plain_projector if metric is None else self.projector(metric)
        return projector(as_records(X, self.n_columns))

    # the same rows elsewhere

    def rescaled(self, centre: ArrayLike, unit: ArrayLike) -> LinearSystem:
        """Write the same system in the coordinates z = (v - centre) / unit.

        The rows keep their scale: a far centre does not make the rounding of b - A centre count.

        Examples
        --------
        >>> from tessella.linear import LinearSystem
        >>> LinearSystem.equalities([[1, 2]], [5]).rescaled([1, 1], [10, 1])
        LinearSystem of 2 columns:
          10*v1 + 2*v2 == 2   # row 1: v1 + 2*v2 == 5
        """
        d = self.n_columns
        middle = np.broadcast_to(np.asarray(centre, dtype=np.float64), (d,))
        units = as_metric(np.broadcast_to(np.asarray(unit, dtype=np.float64), (d,)), d, "unit")
        made = LinearSystem(
            self.A * units, self.b - self.A @ middle, self.G * units, self.h - self.G @ middle,
            columns=self.columns, names=self.names,
        )  # fmt: skip
        made._sizes = self._sizes + np.abs(np.vstack([self.A, self.G])) @ np.abs(middle)
        return made

    def part(self, columns: Sequence[Hashable]) -> LinearSystem:
        """Take the rows about some columns, names or positions, in that order.

        A row about these columns and others cannot be kept by these alone, and is an error.
        """
        places = self._places(columns)
        outside = np.ones(self.n_columns, dtype=bool)
        outside[places] = False
        kept = []
        for i, row in enumerate(np.vstack([self.A, self.G])):
            if not row[places].any():
                continue
            if row[outside].any():
                expected = f"also the other columns of {self.names[i]!r}, or none of them"
                raise BadOptionError("columns", list(columns), expected)
            kept.append(i)
        m = len(self.b)
        equal, unequal = [i for i in kept if i < m], [i - m for i in kept if i >= m]
        made = LinearSystem(
            self.A[np.ix_(equal, places)], self.b[equal],
            self.G[np.ix_(unequal, places)], self.h[unequal],
            columns=None if self.columns is None else [self.columns[j] for j in places],
            names=[self.names[i] for i in kept],
        )  # fmt: skip
        made._sizes = self._sizes[kept]
        return made

    def merged(self, other: LinearSystem) -> LinearSystem:
        """Join the rows of two systems; named columns are matched by name, others by position."""
        if (self.columns is None) != (other.columns is None):
            raise BadOptionError("other", other, "a system with named columns as this one, or none")
        if self.columns is None or other.columns is None:
            if self.n_columns != other.n_columns:
                raise BadOptionError("other", other, f"a system of {self.n_columns} columns")
            columns: tuple[Hashable, ...] | None = None
            wide, places = self.n_columns, list(range(self.n_columns))
        else:
            columns = tuple(dict.fromkeys([*self.columns, *other.columns]))
            wide = len(columns)
            places = [columns.index(name) for name in other.columns]

        def joined(mine: Floats, theirs: Floats) -> Floats:
            out = np.zeros((len(mine) + len(theirs), wide))
            out[: len(mine), : self.n_columns] = mine
            out[len(mine) :, places] = theirs
            return out

        m, k = len(self.b), len(other.b)
        made = LinearSystem(
            joined(self.A, other.A), np.concatenate([self.b, other.b]),
            joined(self.G, other.G), np.concatenate([self.h, other.h]), columns=columns,
            names=[*self.names[:m], *other.names[:k], *self.names[m:], *other.names[k:]],
        )  # fmt: skip
        mine, theirs = self._sizes, other._sizes
        made._sizes = np.concatenate([mine[:m], theirs[:k], mine[m:], theirs[k:]])
        return made

    # small things

    def _places(self, columns: Sequence[Hashable]) -> list[int]:
        known: Sequence[Any] = range(self.n_columns) if self.columns is None else self.columns
        for name in columns:
            if name not in known:
                raise UnknownColumnError(name, known, who="part()")
        if len(set(columns)) != len(columns):
            raise BadOptionError("columns", list(columns), "each column once")
        return [known.index(name) for name in columns]

    def _written_out(self) -> tuple[str, ...]:
        labels = [f"v{j + 1}" for j in range(self.n_columns)]
        labels = labels if self.columns is None else list(map(str, self.columns))
        both = [(self.A, self.b, "=="), (self.G, self.h, "<=")]
        rows = [(a, r, sign) for M, right, sign in both for a, r in zip(M, right)]
        return tuple(
            f"row {i}: {as_sum(a, labels)} {sign} {r:.12g}"
            for i, (a, r, sign) in enumerate(rows, 1)
        )
