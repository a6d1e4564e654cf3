"""A case: a table, its rules, a witness that obeys them, and how it is to be protected.

It is written as JSON where it once failed, so that it stays the same when the generator changes.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

import pandas as pd

from .check import judge


@dataclass(frozen=True)
class Column:
    """A column: family (whole, real, text, truth, date), dtype, and the values it draws from."""

    family: str
    dtype: str
    low: float = 0
    high: float = 0
    step: float = 1
    values: tuple[str, ...] = ()

    def draw(self, rng: random.Random, near: Any = None) -> Any:
        """Return a value, near to another or anywhere."""
        if self.family == "truth":
            return rng.random() < 0.5
        if self.family == "text":
            return rng.choice(self.values)
        if self.family == "date":
            return dt.date(2020, 1, 1) + dt.timedelta(days=rng.randrange(900))
        steps = int((self.high - self.low) / self.step)
        at = rng.randint(0, steps)
        if near is not None:
            own = round((float(near) - self.low) / self.step)
            at = min(max(own + rng.randint(-4, 4), 0), steps)
        value = self.low + at * self.step
        return int(value) if self.family == "whole" else self.cast(value)

    def cast(self, value: float) -> Any:
        """Return a real number as the column holds it."""
        if self.dtype == "decimal":
            return Decimal(round(value * 1000)).scaleb(-3)
        return round(float(value), 6)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table, its rules, and how it is to be protected."""

    seed: int
    library: str
    columns: dict[str, Column]
    records: list[dict[str, Any]]
    witness: dict[str, Any]
    rules: list[str]
    kinds: list[str]
    options: dict[str, Any]
    strata: list[str] = field(default_factory=list)
    blocks: list[list[str]] = field(default_factory=list)
    untouched: list[str] = field(default_factory=list)
    weights: str | None = None
    dirty: bool = False
    file: str | None = None

    @property
    def k(self) -> int:
        return int(self.options["k"])

    @property
    def has_release(self) -> bool:
        """Whether giving everybody the witness would be a release."""
        masked = [name for block in self.blocks for name in block]
        frame = pd.DataFrame(self.records, dtype=object)
        for block in self.blocks:
            cells = [[row[name] for name in self.strata] + [row[name] is None for name in block]
                     for row in self.records]  # fmt: skip
            if min(Counter(map(tuple, cells)).values()) < self.k:
                return False
        for row in self.records:
            same = {n: None if row[n] is None or n not in masked else self.witness[n] for n in row}
            same |= {name: row[name] for name in (*self.strata, *self.untouched)}
            if any(judge(rule, same, frame) is False for rule in self.rules):
                return False
        return True

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=_code, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Case:
        known = json.loads(text, object_hook=_decode)
        known["columns"] = {n: Column(**c | {"values": tuple(c["values"])})
                            for n, c in known["columns"].items()}  # fmt: skip
        return cls(**known)

    def frame(self) -> Any:
        """Return the table in its library and dtypes."""
        return {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}[self.library](self)


def _code(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    return {"date": value.isoformat()}


def _decode(found: dict[str, Any]) -> Any:
    if set(found) == {"decimal"}:
        return Decimal(found["decimal"])
    return dt.date.fromisoformat(found["date"]) if set(found) == {"date"} else found


# The table in three libraries


def _cells(case: Case, name: str) -> list[Any]:
    return [record[name] for record in case.records]


def _pandas(case: Case) -> pd.DataFrame:
    import pyarrow as pa

    made = {}
    for name, column in case.columns.items():
        cells, dtype = _cells(case, name), column.dtype
        if dtype == "decimal":
            made[name] = pd.Series(cells, dtype=pd.ArrowDtype(pa.decimal128(18, 3)))
        elif dtype == "ordered":
            made[name] = pd.Series(pd.Categorical(cells, sorted(column.values), ordered=True))
        elif dtype == "category":
            made[name] = pd.Series(pd.Categorical(cells, sorted(column.values)))
        elif dtype == "date32[pyarrow]":
            made[name] = pd.Series(cells, dtype=pd.ArrowDtype(pa.date32()))
        else:
            made[name] = pd.Series(cells, dtype=dtype)
    return pd.DataFrame(made)


def _polars(case: Case) -> Any:
    import polars as pl

    made = []
    for name, column in case.columns.items():
        kind: Any = {"decimal": pl.Decimal(18, 3), "Enum": pl.Enum(sorted(column.values))
                     }.get(column.dtype)  # fmt: skip
        kind = getattr(pl, column.dtype) if kind is None else kind
        made.append(pl.Series(name, _cells(case, name), dtype=kind, strict=False))
    return pl.DataFrame(made)


def _arrow(case: Case) -> Any:
    import pyarrow as pa

    kinds = {"decimal": pa.decimal128(18, 3), "dictionary": pa.dictionary(pa.int32(), pa.string()),
             "bool": pa.bool_(), "timestamp": pa.timestamp("s")}  # fmt: skip
    made = {}
    for name, column in case.columns.items():
        kind = kinds.get(column.dtype) or getattr(pa, column.dtype)()
        cells = pa.array(_cells(case, name))
        made[name] = cells.dictionary_encode() if column.dtype == "dictionary" else cells.cast(kind)
    return pa.table(made)
