"""What measures of information loss take and give: two tables side by side, and a `Loss`.

Columns are those of the tables' views; what is kept beside them are sums, and categories in as few
bytes as will do. A cell counts where both tables have a value (*known*).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, get_args

import numpy as np

from .._notebook import COMPARED, Bar, Display, Displayed, Figure, Section
from .._parameters import NONE, Instance, OneOf, parameters
from .._types import Floats, Name, Truths
from ..exceptions import BadTableError, TessellaError, UnknownOptionError, UnpairedError
from ..frame import Pair, PairedCategories, View
from ..keys import Hierarchy
from ..schema import Schema

if TYPE_CHECKING:
    import pandas as pd

Kept = TypeVar("Kept")
OnUnpaired = Literal["error", "skip"]


class Reading(TypedDict, total=False):
    """How the two tables are read; every measure takes these keywords."""

    columns: Iterable[Name] | None
    schema: Schema | None
    weights: Any
    on_unpaired: OnUnpaired
    hierarchies: Mapping[Name, Hierarchy] | None
    as_read: Any


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
        before, after = self.before[keep], self.after[keep]
        return PairedNumbers(before=before, after=after, weights=weights, known=None)


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
    hierarchies: Mapping[Name, Hierarchy] | None = None,
    as_read: Any = None,
) -> ComparedTables:
    """Read two tables for a measure.

    Tables that were compared already, given in place of both, are returned as they are: so several
    measures share what one of them has computed.
    """
    if isinstance(original, ComparedTables):
        return original
    return ComparedTables(
        original, masked, columns, schema, weights, on_unpaired, hierarchies, as_read
    )


class ComparedTables:
    """Two tables with the same records; the arguments are those of `measure`."""

    def __init__(
        self, original: Any, masked: Any, columns: Any, schema: Any, weights: Any, on_unpaired: str,
        hierarchies: Any = None, as_read: Any = None,
    ) -> None:  # fmt: skip
        self.tables = Pair(original, masked, schema)
        self.tables.check_order()
        self.original, self.masked = self.tables.original, self.tables.masked
        self.schema, self.on_unpaired = schema, on_unpaired
        self.hierarchies: dict[Name, Hierarchy] = dict(hierarchies or {})  # of recoded columns
        self.as_read = self.original if as_read is None else View.of(as_read)
        self.n_rows = self.original.n_rows
        if schema is not None:
            schema.check(self.original.table)
        own = self.original.weights(weights)
        self.mean_weight = 1.0 if own is None else float(own.mean())
        self.weights = None if own is None else own / self.mean_weight
        self.empty: tuple[Name, ...] = ()  # columns left aside, for neither table has a value
        self.skipped: dict[Name, str] = {}  # columns that cannot be compared, and why
        self._kept: dict[Any, Any] = {}
        self.present: tuple[Name, ...] = ()  # columns of which the original had a value
        self.columns = self._find_columns(columns, weights)
        if on_unpaired == "skip":
            self.columns = tuple(name for name in self.columns if self._can_be_read(name))
        self.numbers = tuple(name for name in self.columns if self._is_number(name))
        self.categories = tuple(name for name in self.columns if name not in set(self.numbers))
        self.recoded = tuple(name for name in self.categories if name in self.hierarchies)

    def once(self, key: object, compute: Callable[[], Kept]) -> Kept:
        """Return what was computed under a key, which several measures share, or compute it."""
        if key not in self._kept:
            self._kept[key] = compute()
        kept: Kept = self._kept[key]
        return kept

    def _find_columns(self, given: Any, weights: Any) -> tuple[Name, ...]:
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
            named = weights is not None and self.original.is_name(weights)
            aside = {weights} if named else set()
            if self.schema is not None:
                aside |= set(self.schema.names("identifier", "unit", "weight"))
            names = tuple(name for name in before.columns if name not in aside)
            lost = [name for name in names if not after.has(name)]
            new = [name for name in after.columns if not before.has(name)]
            if lost or new:
                raise UnpairedError.columns(lost, new)
        self.empty = tuple(name for name in names if self._is_empty(name))
        self.present = tuple(name for name in names if self._was_known(name))
        names = tuple(name for name in names if name not in (*self.empty, *self.skipped))
        if not names and self.on_unpaired == "error":
            raise BadTableError(
                "There is no column to compare. Name at least one with columns=[...]."
            )
        return names

    def _is_empty(self, name: Name) -> bool:
        try:
            return all(view.missing(name).all() for view in (self.original, self.masked))
        except BadTableError as error:  # lists and other things that have no text
            if self.on_unpaired == "error":
                raise
            self.skipped[name] = str(error)
            return False

    def _was_known(self, name: Name) -> bool:
        """Return whether a column can be read, and had a value before any cell was emptied."""
        if name in self.skipped:
            return False
        return name not in self.empty or bool(self.known(name)[0].any())

    def _is_number(self, name: Name) -> bool:
        if name in self.hierarchies:
            return False
        if self.schema is not None and self.schema[name].kind in ("ordinal", "nominal"):
            return False
        before, after = self.tables.facts(name)
        if before.numeric != after.numeric:
            old, new = (
                f"{'numbers' if facts.numeric else facts.family} ({facts.dtype})"
                for facts in (before, after)
            )
            raise UnpairedError.kinds(column=name, original=old, masked=new)
        return before.numeric

    def _can_be_read(self, name: Name) -> bool:
        """Return whether a column can be compared; the reason why not is kept."""
        try:
            if self._is_number(name):
                refuse_vanishing(self.number(name).compressed(), name)
            else:
                self.category(name)
        except TessellaError as error:
            self.skipped[name] = str(error)
        return name not in self.skipped

    def number(self, name: Name) -> PairedNumbers:
        """Read one column of numbers in both tables; not to be written into."""
        before, after = self.tables.numbers(name, who="The loss")
        known = self._agree(name)
        return PairedNumbers(before=before, after=after, weights=self.weights, known=known)

    def known(self, name: Name) -> tuple[Truths, Truths]:
        """Return which cells of a column the original, as read, and the masked table know."""
        before = self.as_read if self.as_read.table.has(name) else self.original
        return ~before.missing(name), ~self.masked.missing(name)

    def category(self, name: Name) -> PairedCategories:
        """Read one column of categories in both tables; kept, in as few bytes as will do."""
        return self.once(("category", name), lambda: self._narrow(name))

    def _narrow(self, name: Name) -> PairedCategories:
        cells = self.tables.labels(name)
        self._agree(name)
        narrow = np.min_scalar_type(-len(cells.labels) - 1)
        before, after = cells.before.astype(narrow), cells.after.astype(narrow)
        return PairedCategories(before, after, cells.labels, cells.n_original)

    def categorised(self, *names: Name) -> Truths:
        """Return which records have a category in all of some columns, in both tables."""
        cells = [self.category(name) for name in names]
        codes = [side for both in cells for side in (both.before, both.after)]
        known: Truths = np.logical_and.reduce([side >= 0 for side in codes])
        return known

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


def reason_of(error: Exception) -> str:
    """Return why something is left out; only tessella's own errors never repeat a value."""
    if isinstance(error, OverflowError | FloatingPointError):
        return "its figures are larger than a float64 holds."
    return str(error) if isinstance(error, TessellaError) else type(error).__name__


def refuse_vanishing(cells: PairedNumbers, name: Name) -> None:
    """Refuse numbers so small that their squares are zero: every loss would seem to be none."""
    peak = max(float(np.abs(side).max()) for side in (cells.before, cells.after))
    first = cells.before[0]
    if 0 < peak < SMALL and not all((side == first).all() for side in (cells.before, cells.after)):
        raise BadTableError(
            f"Column {name!r} has no number of {SMALL:g} or more: the squares of such numbers "
            "vanish, and with them what is lost. Give it in another unit, in both tables: "
            "multiply it by a power of ten."
        )


SHOWN = 30  # columns that a printed loss lists
SMALL = 1e-100  # a column of smaller numbers is refused


@dataclass(frozen=True, kw_only=True, repr=False)
class Loss(Displayed):
    """One measure of information loss.

    Attributes
    ----------
    name : str
        The measure, as `Summary` finds it: "sse_sst".
    value : float
        The loss over all columns; 0 where the tables are the same.
    by_column : mapping of name to float
        The loss of each column, or of each coefficient of a model; empty where the measure does
        not come apart.
    formula : str
        How the value is computed, in words.
    source : str
        Where the measure is defined.
    range : tuple of two floats
        The least and the largest value that is possible, 0 and 1 where nothing else is given.
    verdict : str
        What the value says, in one line.
    details : mapping of str to float
        Figures beside the value.
    """

    name: str
    value: float
    by_column: Mapping[Name, float] = field(default_factory=dict, hash=False)
    formula: str
    source: str
    range: tuple[float, float] = (0.0, 1.0)
    verdict: str
    details: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        for part in ("by_column", "details"):
            held = {name: float(value) for name, value in getattr(self, part).items()}
            object.__setattr__(self, part, MappingProxyType(held))

    def __float__(self) -> float:
        return self.value

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be pickled.
        known = {"by_column": dict(self.by_column), "details": dict(self.details)}
        return partial(Loss, **vars(self) | known), ()

    @property
    def _limits(self) -> str:
        """The range in words: "from 0 to 1"."""
        low, high = (f"{end:g}" if math.isfinite(end) else "no limit" for end in self.range)
        return f"from {low} to {high}"

    def _display(self) -> Display:
        columns: list[list[str | Bar]] = [["column", "loss"]]
        for name, value in list(self.by_column.items())[:SHOWN]:
            columns.append([str(name), self._cell(value)])
        more = [f"... and {len(self.by_column) - SHOWN} more"][: len(self.by_column) > SHOWN]
        beside = [f"{name}: {value:.4g}" for name, value in self.details.items()]
        parts = [Section(rows=columns, more=more)] if self.by_column else []
        parts += [Section(title="Beside", lines=beside)] if beside else []
        how = [f"Formula: {self.formula}.", f"Source: {self.source}."]
        return Display(
            title=f"Loss: {self.name}",
            verdict=[f"{self.verdict[0].upper()}{self.verdict[1:]}."],
            figures=[Figure(self.name, f"{self.value:.4g}", self._limits)],
            sections=[*parts, Section(title="How it is computed", lines=how, folded=True)],
            confidential=COMPARED,
        )

    def _cell(self, value: float) -> str | Bar:
        """Return a value for a table, with a bar where the range has an end."""
        low, high = self.range
        text = f"{value:.4g}"
        return Bar((value - low) / (high - low), text) if math.isfinite(high - low) else text

    def __str__(self) -> str:
        lines = [f"{self.name} = {self.value:.4g} ({self._limits}): {self.verdict}"]
        width = max((len(str(name)) for name in self.by_column), default=0)
        for name, value in list(self.by_column.items())[:SHOWN]:
            lines.append(f"  {str(name).ljust(width)}  {value:.4g}")
        if len(self.by_column) > SHOWN:
            lines.append(f"  ... and {len(self.by_column) - SHOWN} more")
        if self.details:
            beside = ", ".join(f"{name} {value:.4g}" for name, value in self.details.items())
            lines.append(f"  beside: {beside}")
        return "\n".join([*lines, f"  formula: {self.formula}", f"  source: {self.source}"])

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers; an end without limit is None."""
        return vars(self) | {
            "by_column": {str(name): value for name, value in self.by_column.items()},
            "range": [end if math.isfinite(end) else None for end in self.range],
            "details": dict(self.details),
        }


def worst(by_column: Mapping[Name, float]) -> str:
    """Name the column that loses most, as the end of a verdict; nothing where there is one only."""
    if len(by_column) < 2 or not any(by_column.values()):
        return ""
    name = max(by_column, key=by_column.__getitem__)
    return f"; most in {name!r} ({by_column[name]:.3g})"


@dataclass(frozen=True, kw_only=True, repr=False)
class Summary(Displayed):
    """All measures that fit two tables: `summary["sse_sst"]` is one, iterating gives each.

    Attributes
    ----------
    losses : tuple of Loss
        The measures.
    n_records : int
        The number of records compared.
    numbers, categories : tuple of names
        The columns compared as numbers and as categories.
    notes : tuple of str
        What a person should know beside: constant columns, new categories, cells left out.
    """

    losses: tuple[Loss, ...]
    n_records: int
    numbers: tuple[Name, ...]
    categories: tuple[Name, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Loss:
        for loss in self.losses:
            if loss.name == name:
                return loss
        raise UnknownOptionError("measure", name, [loss.name for loss in self.losses])

    def __iter__(self) -> Iterator[Loss]:
        return iter(self.losses)

    def __len__(self) -> int:
        return len(self.losses)

    @property
    def _head(self) -> str:
        """What was compared."""
        return (
            f"Information loss over {self.n_records:,} records, {len(self.numbers)} columns of "
            f"numbers and {len(self.categories)} of categories"
        )

    def _display(self) -> Display:
        rows = [[x.name, x._cell(x.value), x._limits, x.verdict] for x in self.losses]
        return Display(
            title="Loss",
            verdict=[f"{self._head}."],
            sections=[
                Section(rows=[["measure", "value", "range", "what it says"], *rows], texts=(0, 3)),
                *([Section(title="Notes", lines=self.notes)] if self.notes else []),
            ],
            confidential=COMPARED,
        )

    def __str__(self) -> str:
        width = max((len(loss.name) for loss in self.losses), default=0)
        lines = [f"  {x.name.ljust(width)}  {x.value:10.4g}  {x.verdict}" for x in self.losses]
        return "\n".join([self._head, *lines, *(f"  note: {note}" for note in self.notes)])

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers."""
        return {
            "n_records": self.n_records,
            "numbers": list(map(str, self.numbers)),
            "categories": list(map(str, self.categories)),
            "losses": [loss.to_dict() for loss in self.losses],
            "notes": list(self.notes),
        }

    def to_frame(self, *, by_column: bool = False) -> pd.DataFrame:
        """Return a pandas frame with one row for each measure.

        Parameters
        ----------
        by_column : bool, default False
            One row for each measure and column instead.
        """
        import pandas as pd

        if by_column:
            names = ["measure", "column", "value"]
            rows: list[tuple[Any, ...]] = [
                (loss.name, name, value)
                for loss in self.losses
                for name, value in loss.by_column.items()
            ]
        else:
            names = ["measure", "value", "low", "high", "verdict"]
            rows = [(loss.name, loss.value, *loss.range, loss.verdict) for loss in self.losses]
        return pd.DataFrame(rows, columns=names)
