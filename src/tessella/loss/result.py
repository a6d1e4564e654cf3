"""What a measure of information loss found: a number that says what it is; and many of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .._types import Name
from ..exceptions import UnknownOptionError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Loss", "Summary"]

SHOWN = 30  # columns that a printed loss lists


@dataclass(frozen=True, kw_only=True, repr=False)
class Loss:
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
        The least and the largest value that is possible.
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
    range: tuple[float, float]
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
        known = self.to_dict() | {"by_column": dict(self.by_column), "range": self.range}
        return _rebuild, (known,)

    def __str__(self) -> str:
        low, high = (f"{end:g}" if math.isfinite(end) else "no limit" for end in self.range)
        lines = [f"{self.name} = {self.value:.4g} (from {low} to {high}): {self.verdict}"]
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
        return {
            "name": self.name,
            "value": self.value,
            "by_column": {str(name): value for name, value in self.by_column.items()},
            "formula": self.formula,
            "source": self.source,
            "range": [end if math.isfinite(end) else None for end in self.range],
            "verdict": self.verdict,
            "details": dict(self.details),
        }


def _rebuild(known: dict[str, Any]) -> Loss:
    return Loss(**known)


def worst(by_column: Mapping[Name, float]) -> str:
    """Name the column that loses most, as the end of a verdict; nothing where there is one only."""
    if len(by_column) < 2 or not any(by_column.values()):
        return ""
    name = max(by_column, key=by_column.__getitem__)
    return f"; most in {name!r} ({by_column[name]:.3g})"


@dataclass(frozen=True, kw_only=True, repr=False)
class Summary:
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

    def __str__(self) -> str:
        head = (
            f"Information loss over {self.n_records:,} records, {len(self.numbers)} columns of "
            f"numbers and {len(self.categories)} of categories"
        )
        width = max((len(loss.name) for loss in self.losses), default=0)
        lines = [f"  {x.name.ljust(width)}  {x.value:10.4g}  {x.verdict}" for x in self.losses]
        return "\n".join([head, *lines, *(f"  note: {note}" for note in self.notes)])

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers."""
        return {
            "n_records": self.n_records,
            "numbers": [str(name) for name in self.numbers],
            "categories": [str(name) for name in self.categories],
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
            rows: list[dict[str, Any]] = [
                {"measure": loss.name, "column": name, "value": value}
                for loss in self.losses
                for name, value in loss.by_column.items()
            ]
            return pd.DataFrame(rows, columns=["measure", "column", "value"])
        return pd.DataFrame(
            [
                {
                    "measure": loss.name,
                    "value": loss.value,
                    "low": loss.range[0],
                    "high": loss.range[1],
                    "verdict": loss.verdict,
                }
                for loss in self.losses
            ],
            columns=["measure", "value", "low", "high", "verdict"],
        )
