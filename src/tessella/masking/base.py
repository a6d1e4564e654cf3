"""What maskers of numbers share: reading, writing in kind, and measuring what was lost.

Which records look alike: what k-anonymity counts.

The scale on which records are near or far: what counts as one in each column.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .._types import Floats, Integers, Name, States
from ..exceptions import (
    BadOptionError,
    BadTableError,
    BrokenPromiseError,
    GroupSizeError,
    MissingValuesError,
    SmallJointGroupsWarning,
    UnknownColumnError,
    UnknownOptionError,
)
from ..frame import Numbers, Strata, Table, View
from ..kernels.groups import renumber
from ..schema import Schema
from .selection import Selection

__all__ = ["Masker", "Scale", "number_alike", "parts_of", "released_sets"]


def number_alike(columns: Iterable[NDArray[Any]]) -> Integers:
    """Give records the same number if and only if they agree in every column.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.masking.base import number_alike
    >>> number_alike([np.array([5.0, 7.0, 5.0]), np.array([1, 1, 1])])
    array([0, 1, 0])
    """
    numbers: Integers | None = None
    for column in columns:
        _, own = np.unique(column, return_inverse=True)
        if numbers is not None:  # at most n**2, which an int64 holds
            _, own = np.unique(numbers * (int(own.max()) + 1) + own, return_inverse=True)
        numbers = own.astype(np.int64, copy=False)
    if numbers is None:
        raise ValueError("number_alike needs at least one column")
    return numbers


def released_sets(
    values: Floats, state: States, labels: Integers, strata: Integers, *, method: str
) -> Integers:
    """Number the sets of records that share a stratum and all their released values.

    The values come from the released table itself. Records of one group must be alike in it, or
    the promise is broken; groups may happen to be alike with each other.
    """
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    leader = first[place]
    filled = np.where(state == 0, values, 0.0)
    differs = (filled != filled[leader]).any(axis=1) | (strata != strata[leader])
    differs |= (state != state[leader]).any(axis=1)
    if differs.any():
        raise BrokenPromiseError.group_not_alike(count=int(differs.sum()), method=method)
    seen = number_alike([strata[first], *filled[first].T, *state[first].T])
    return seen[place]


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


MISSING = ("error", "pattern")
MISSING_AS = {1: "", 2: " (as NaN)"}


class Masker(BaseEstimator):  # type: ignore[misc]
    """Base of maskers that release one value for each number.

    A masker has `blocks`, `on_missing`, `schema` and `round_integers`, and `fit_transform` without
    `transform`: masking unseen records with what was learned from others would not protect them.
    """

    blocks: Any
    repairs: ClassVar = True  # whether `rules` are what released records are moved back to
    on_missing: str
    schema: Schema | None
    round_integers: bool
    labels_: Integers

    def fit(self, table: Any, y: object = None, *, weights: Any = None, strata: Any = None) -> Self:
        """Mask and measure, without keeping the masked table."""
        self.fit_transform(table, y, weights=weights, strata=strata)
        return self

    def fit_transform(
        self, table: Any, y: object = None, *, weights: Any = None, strata: Any = None
    ) -> Any:
        """Mask a table."""
        raise NotImplementedError

    def _read(self, table: Table, chosen: Selection) -> Numbers:
        if self.on_missing not in MISSING:
            raise UnknownOptionError("on_missing", self.on_missing, MISSING)
        numbers = View(table, self.schema).read(chosen.masked, who=type(self).__name__)
        if self.on_missing == "error" and (counts := numbers.count_missing()):
            raise MissingValuesError({str(n): c for n, c in counts.items()}, table.n_rows)
        return numbers

    def _missing_codes(self, columns: tuple[Name, ...]) -> dict[Name, tuple[Any, ...]]:
        return {} if self.schema is None else {name: self.schema[name].missing for name in columns}

    def _write(
        self,
        source: Table,
        original: Numbers,
        released: Floats,
        *,
        unrounded: Collection[Name] = (),
    ) -> Any:
        """Round where the column asks for it, and write the columns back in kind."""
        as_float = []
        for j, name in enumerate(original.columns):
            decimals = source.facts(name).decimals
            kind = None if self.schema is None else self.schema[name].kind
            wanted_float = kind == "continuous" or not self.round_integers
            if decimals is not None and (name in unrounded or (decimals == 0 and wanted_float)):
                as_float.append(name)
            elif kind == "integer" and self.round_integers and name not in unrounded:
                decimals = 0
            if decimals is not None and name not in as_float:
                released[:, j] = np.round(released[:, j], decimals) + 0.0  # no minus before a zero
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

    def _keep(self, source: Table, chosen: Selection, labels_of_blocks: list[Integers]) -> None:
        labels = np.column_stack(labels_of_blocks)
        self.labels_ = labels[:, 0] if self.blocks is None else labels
        self.blocks_ = [list(block) for block in chosen.blocks]
        self.untouched_ = list(chosen.untouched)
        self.n_features_in_ = len(source.columns)
        self.__dict__.pop("feature_names_in_", None)  # from an earlier fit
        if all(isinstance(name, str) for name in source.columns):
            self.feature_names_in_ = np.array(source.columns, dtype=object)

    def _count_alike(
        self, original: Numbers, released: Numbers, chosen: Selection, k: int | None
    ) -> None:
        """Count, in the released table, the records that share their values; refuse less than k."""
        if not np.array_equal(original.state, released.state):
            raise BrokenPromiseError("Missing cells moved; the result is withheld: please report.")
        strata, sets = chosen.strata.ids, []
        labels = self.labels_.reshape(len(strata), -1)
        method = type(self).__name__
        for j, block in enumerate(chosen.blocks):
            places = chosen.places(block)
            alike = released_sets(
                released.values[:, places], released.state[:, places], labels[:, j], strata,
                method=method,
            )  # fmt: skip
            smallest = int(np.bincount(alike).min())
            if k is not None and smallest < k:
                raise BrokenPromiseError.group_too_small(k=k, smallest=smallest, method=method)
            sets.append(alike)
        joint = number_alike([strata, *sets]) if len(sets) > 1 else sets[0]
        joint = renumber(joint, int(joint.max()) + 1)
        self.joint_group_sizes_ = sizes = np.bincount(joint)
        self.joint_k_ = int(sizes.min())
        if k is not None and self.joint_k_ < k:
            below = int(sizes[sizes < k].sum())
            warning = SmallJointGroupsWarning.of(
                k=k, smallest=self.joint_k_, below=below, n=len(joint)
            )
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
        for name in ("labels_", "uncertainty_"):
            state.pop(name, None)
        return state


def parts_of(original: Numbers, places: list[int], strata: Strata, k: int) -> Integers | None:
    """Number the sets of records that may share a group: same stratum, same cells missing."""
    sizes = np.bincount(strata.ids)
    if small := {strata.names[s]: int(sizes[s]) for s in np.flatnonzero(sizes < k)}:
        raise GroupSizeError.small_strata(k=k, sizes=small)
    state = original.state[:, places]
    if not state.any():
        return strata.ids if len(sizes) > 1 else None
    parts = number_alike([strata.ids, *state.T])
    _, first, sizes = np.unique(parts, return_index=True, return_counts=True)
    small = {}
    for record, size in zip(first[sizes < k], sizes[sizes < k]):
        lacking = [
            repr(original.columns[places[j]]) + MISSING_AS.get(int(state[record, j]), " (a code)")
            for j in np.flatnonzero(state[record])
        ]
        name = f"without {', '.join(lacking)}" if lacking else "complete"
        if len(strata.names) > 1:
            name += f" in stratum {strata.names[strata.ids[record]]}"
        small[name] = min(int(size), small.get(name, k))  # two codes may share a name
    if small:
        raise GroupSizeError.small_patterns(k=k, sizes=small)
    return parts
