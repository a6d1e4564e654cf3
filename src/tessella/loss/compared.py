"""An original and a masked table side by side, one column at a time.

Columns are read when they are asked for and not kept, so that measuring needs little memory beside
the tables; what is kept are sums. A cell counts where both tables have a value (*known*).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from .._parameters import OneOf, parameters
from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadTableError, IncomparableError, UnpairedError
from ..frame import Table
from ..schema import Schema

__all__ = [
    "ComparedTables",
    "OnUnpaired",
    "PairedCategories",
    "PairedNumbers",
    "Reading",
    "compare",
]

OnUnpaired = Literal["error", "skip"]


class Reading(TypedDict, total=False):
    """How the two tables are read; every measure takes these keywords."""

    columns: Iterable[Name] | None
    schema: Schema | None
    weights: Any
    on_unpaired: OnUnpaired


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedNumbers:
    """One column of numbers in both tables.

    `known` is None where every cell is known; elsewhere the values are NaN on at least one side.
    """

    before: Floats
    after: Floats
    weights: Floats | None
    known: Truths | None

    def compressed(self) -> PairedNumbers:
        """Leave out the cells that are not known."""
        if self.known is None:
            return self
        keep = self.known
        weights = None if self.weights is None else self.weights[keep]
        return PairedNumbers(
            before=self.before[keep], after=self.after[keep], weights=weights, known=None
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedCategories:
    """One column of categories in both tables, in one numbering; -1 where missing.

    The first `n_original` numbers are of categories that the original has; `labels` names all.
    """

    before: NDArray[np.signedinteger[Any]]
    after: NDArray[np.signedinteger[Any]]
    labels: tuple[str, ...]
    n_original: int


@parameters({"missing": "on_unpaired"}, on_unpaired=[OneOf(get_args(OnUnpaired))])
def compare(
    original: Any,
    masked: Any,
    *,
    columns: Iterable[Name] | None = None,
    schema: Schema | None = None,
    weights: Any = None,
    on_unpaired: OnUnpaired = "error",
) -> ComparedTables:
    """Read two tables for a measure.

    Tables that were compared already, given in place of both, are returned as they are: so several
    measures share what one of them has computed.
    """
    if isinstance(original, ComparedTables):
        return original
    return ComparedTables(
        original, masked, columns=columns, schema=schema, weights=weights, on_unpaired=on_unpaired
    )


class ComparedTables:
    """Two tables with the same records; the arguments are those of `measure`."""

    def __init__(
        self,
        original: Any,
        masked: Any,
        *,
        columns: Iterable[Name] | None,
        schema: Schema | None,
        weights: Any,
        on_unpaired: OnUnpaired,
    ) -> None:
        self.original, self.masked = Table.read(original), Table.read(masked)
        if self.original.n_rows != self.masked.n_rows:
            raise UnpairedError.shapes(self.original.n_rows, self.masked.n_rows)
        if not self.original.same_index(self.masked):
            raise UnpairedError.other_order(shuffled=self.original.reordered(self.masked))
        if schema is not None and not isinstance(schema, Schema):
            raise BadTableError(
                f"schema is a {type(schema).__name__}; give a tessella.Schema, for example "
                "tessella.Schema.guess(table)."
            )
        self.schema, self.on_unpaired = schema, on_unpaired
        self.n_rows = self.original.n_rows
        if schema is not None:
            schema.check(self.original)
        weigher, self.weights = self._find_weights(weights)
        self.columns = self._find_columns(columns, weigher)
        self.numbers = tuple(name for name in self.columns if self._is_number(name))
        self.categories = tuple(name for name in self.columns if name not in set(self.numbers))
        self.kept: dict[Any, Any] = {}  # sums that several measures share, by column

    def _find_weights(self, given: Any) -> tuple[tuple[Name, ...], Floats | None]:
        table = self.original
        if given is None and self.schema is not None:
            named = [n for n in self.schema.names("weight") if not self.schema[n].guessed]
            if len(named) > 1:
                listed = ", ".join(map(repr, named))
                raise BadTableError(
                    f"The schema names several weights: {listed}. Choose with weights=..."
                )
            given = named[0] if named else None
        if given is None:
            return (), None
        if isinstance(given, str) or table.has(given):
            columns: tuple[Name, ...] = (given,)
            weights = np.ascontiguousarray(table.numeric(columns, who="weights").values[:, 0])
        else:
            columns = ()
            array = table.per_record(given, who="weights")
            if array.dtype.kind not in "fiu":
                raise BadTableError(f"weights has dtype {array.dtype}; numbers are needed.")
            weights = np.ascontiguousarray(array, dtype=np.float64)
        bad = int((~(np.isfinite(weights) & (weights > 0))).sum())
        if bad:
            raise BadTableError(
                f"weights must be positive numbers; {bad} of {self.n_rows} are zero, negative, "
                "missing or infinite. Correct them, or leave these records out of both tables."
            )
        return columns, weights / weights.mean()

    def _find_columns(self, given: Any, weigher: tuple[Name, ...]) -> tuple[Name, ...]:
        before, after = self.original, self.masked
        if given is not None:
            names = (given,) if isinstance(given, str) else tuple(given)
            for name in names:
                before.place(name, who="columns")
                if not after.has(name):
                    raise UnpairedError.other_columns([name], [])
            if len(set(names)) < len(names):
                raise BadTableError("columns names a column twice. Name each once.")
        else:
            aside = set(weigher)
            if self.schema is not None:
                aside |= set(self.schema.names("identifier", "household", "weight"))
            names = tuple(name for name in before.columns if name not in aside)
            lost = [name for name in names if not after.has(name)]
            new = [name for name in after.columns if not before.has(name)]
            if lost or new:
                raise UnpairedError.other_columns(lost, new)
        if not names:
            raise BadTableError(
                "There is no column to compare. Name at least one with columns=[...]."
            )
        return names

    def _is_number(self, name: Name) -> bool:
        before, after = self.original.facts(name), self.masked.facts(name)
        as_category = self.schema is not None and self.schema[name].kind in ("ordinal", "nominal")
        if as_category:
            return False
        if before.numeric != after.numeric:
            words = [
                f"{'numbers' if facts.numeric else facts.family} ({facts.dtype})"
                for facts in (before, after)
            ]
            raise UnpairedError.kinds(name, *words)
        return before.numeric

    def number(self, name: Name) -> PairedNumbers:
        """Read one column of numbers in both tables."""
        before, after = (self._values(table, name) for table in (self.original, self.masked))
        known = self._agree(name, np.isnan(before), np.isnan(after))
        return PairedNumbers(before=before, after=after, weights=self.weights, known=known)

    def known(self, name: Name) -> tuple[Truths, Truths]:
        """Return which cells of a column the original knows, and which the masked table."""
        if name in set(self.numbers):
            before, after = (self._values(table, name) for table in (self.original, self.masked))
            return ~np.isnan(before), ~np.isnan(after)
        cells = self._category(name, check=False)
        return cells.before >= 0, cells.after >= 0

    def _values(self, table: Table, name: Name) -> Floats:
        codes = () if self.schema is None else self.schema[name].missing
        given = {name: [code for code in codes if not isinstance(code, str)]}
        return table.numeric([name], codes=given, who="The loss").values[:, 0]

    def category(self, name: Name) -> PairedCategories:
        """Read one column of categories in both tables; kept, in as few bytes as will do."""
        key = ("category", name)
        if key not in self.kept:
            self.kept[key] = self._category(name)
        kept: PairedCategories = self.kept[key]
        return kept

    def _category(self, name: Name, *, check: bool = True) -> PairedCategories:
        tables = (self.original, self.masked)
        read = [self._labels(table, name) for table in tables]
        place: dict[Any, int] = {}
        codes: list[Integers] = []
        n_original = 0
        gone = () if self.schema is None else self.schema[name].missing
        missing = {str(code) for code in gone} | {float(c) for c in gone if not isinstance(c, str)}
        for at, (own, labels) in enumerate(read):
            common = [
                -1 if label in missing else place.setdefault(label, len(place)) for label in labels
            ]
            codes.append(np.array([*common, -1], dtype=np.int64)[own])
            n_original = len(place) if at == 0 else n_original
        if check:
            self._agree(name, codes[0] < 0, codes[1] < 0)
        texts = tuple(f"{one:.15g}" if isinstance(one, float) else str(one) for one in place)
        few = np.min_scalar_type(-len(texts) - 1)
        return PairedCategories(
            before=codes[0].astype(few),
            after=codes[1].astype(few),
            labels=texts,
            n_original=n_original,
        )

    def _labels(self, table: Table, name: Name) -> tuple[Integers, list[Any]]:
        if all(side.facts(name).numeric for side in (self.original, self.masked)):
            values = table.numeric([name], who="The loss").values[:, 0]
            distinct, own = np.unique(values, return_inverse=True)  # NaN is the last
            lacking = np.isnan(distinct)
            return np.where(lacking[own], -1, own), [float(v) for v in distinct[~lacking]]
        try:
            own, labels = table.labels(name)
        except BadTableError:
            raise IncomparableError.values(name, table.facts(name).dtype) from None
        return own, list(labels)

    def _agree(self, name: Name, before: Truths, after: Truths) -> Truths | None:
        """Return which cells are known in both tables, or refuse those known in one only."""
        if not before.any() and not after.any():
            return None
        lost, found = int((after & ~before).sum()), int((before & ~after).sum())
        if self.on_unpaired == "error" and (lost or found):
            raise UnpairedError.one_sided({repr(name): (lost, found)}, self.n_rows)
        known = ~(before | after)
        if not known.any():
            raise BadTableError(
                f"Column {name!r} has no cell that both tables know: there is nothing to compare. "
                "Leave it out with columns=[...]."
            )
        return known

    @cached_property
    def n_effective(self) -> float:
        """Count the records, or with weights w the records of equal weight that tell as much.

        The square of the sum of w over the sum of squares (Kish).
        """
        if self.weights is None:
            return float(self.n_rows)
        return float(self.weights.sum() ** 2 / (self.weights**2).sum())

    def need_numbers(self, who: str) -> tuple[Name, ...]:
        """Return the columns of numbers, or say that there are none."""
        if not self.numbers:
            raise BadTableError(f"{who} compares columns of numbers, and there are none.")
        return self.numbers

    def need_categories(self, who: str, least: int = 1) -> tuple[Name, ...]:
        """Return the columns of categories, or say that there are too few."""
        if len(self.categories) < least:
            raise BadTableError(
                f"{who} compares columns of categories, needs at least {least}, and there are "
                f"{len(self.categories)}. Numbers that are codes are categories if a schema calls "
                "them nominal or ordinal."
            )
        return self.categories
