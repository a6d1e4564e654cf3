"""An original and a masked table side by side, one column at a time.

Columns are those of the tables' views; what is kept beside them are sums, and categories in as few
bytes as will do. A cell counts where both tables have a value (*known*).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, get_args

import numpy as np

from .._parameters import NONE, Instance, OneOf, parameters
from .._types import Floats, Name, Truths
from ..exceptions import BadTableError, UnpairedError
from ..frame import Pair, PairedCategories
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


@parameters(
    {"missing": "on_unpaired"},
    schema=[Instance(Schema, "a tessella.Schema, such as tessella.Schema.guess(table)"), NONE],
    on_unpaired=[OneOf(get_args(OnUnpaired))],
)
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
        self.tables = Pair(original, masked, schema)
        self.tables.check_order()
        self.original, self.masked = self.tables.original, self.tables.masked
        self.schema, self.on_unpaired = schema, on_unpaired
        self.n_rows = self.original.n_rows
        if schema is not None:
            schema.check(self.original.table)
        weigher, self.weights = self._find_weights(weights)
        self.columns = self._find_columns(columns, weigher)
        self.numbers = tuple(name for name in self.columns if self._is_number(name))
        self.categories = tuple(name for name in self.columns if name not in set(self.numbers))
        self.kept: dict[Any, Any] = {}  # sums that several measures share, by column

    def _find_weights(self, given: Any) -> tuple[tuple[Name, ...], Floats | None]:
        weights = self.original.weights(given)
        named = given is not None and self.original.is_name(given)
        return (given,) if named else (), None if weights is None else weights / weights.mean()

    def _find_columns(self, given: Any, weigher: tuple[Name, ...]) -> tuple[Name, ...]:
        before, after = self.original.table, self.masked.table
        if given is not None:
            names = (given,) if isinstance(given, str) else tuple(given)
            for name in names:
                before.place(name, who="columns")
                if not after.has(name):
                    raise UnpairedError.columns([name], [])
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
                raise UnpairedError.columns(lost, new)
        if not names:
            raise BadTableError(
                "There is no column to compare. Name at least one with columns=[...]."
            )
        return names

    def _is_number(self, name: Name) -> bool:
        before, after = self.tables.facts(name)
        as_category = self.schema is not None and self.schema[name].kind in ("ordinal", "nominal")
        if as_category:
            return False
        if before.numeric != after.numeric:
            words = [
                f"{'numbers' if facts.numeric else facts.family} ({facts.dtype})"
                for facts in (before, after)
            ]
            raise UnpairedError.kinds(column=name, original=words[0], masked=words[1])
        return before.numeric

    def number(self, name: Name) -> PairedNumbers:
        """Read one column of numbers in both tables; not to be written into."""
        before, after = self.tables.numbers(name, who="The loss")
        known = self._agree(name)
        return PairedNumbers(before=before, after=after, weights=self.weights, known=known)

    def known(self, name: Name) -> tuple[Truths, Truths]:
        """Return which cells of a column the original knows, and which the masked table."""
        return ~self.original.missing(name), ~self.masked.missing(name)

    def category(self, name: Name) -> PairedCategories:
        """Read one column of categories in both tables; kept, in as few bytes as will do."""
        key = ("category", name)
        if key not in self.kept:
            cells = self.tables.labels(name)
            self._agree(name)
            narrow = np.min_scalar_type(-len(cells.labels) - 1)
            self.kept[key] = PairedCategories(
                cells.before.astype(narrow), cells.after.astype(narrow), cells.labels,
                cells.n_original,
            )  # fmt: skip
        kept: PairedCategories = self.kept[key]
        return kept

    def _agree(self, name: Name) -> Truths | None:
        """Return which cells are known in both tables, or refuse those known in one only."""
        if not self.original.any_missing(name) and not self.masked.any_missing(name):
            return None
        before, after = self.original.missing(name), self.masked.missing(name)
        lost, found = int((after & ~before).sum()), int((before & ~after).sum())
        if self.on_unpaired == "error" and (lost or found):
            raise UnpairedError.one_sided(column=name, lost=lost, found=found, n=self.n_rows)
        known = ~(before | after)
        if not known.any():
            raise BadTableError(
                f"Column {name!r} has no cell that both tables know: there is nothing to compare. "
                "Leave it out with columns=[...]."
            )
        return known

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
