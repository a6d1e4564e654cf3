"""Columns of any kind, read once for counting: numbers with bins, or categories with counts.

Bins have round edges and equal widths. Where a few values are far out, the outermost bins take
them: a *tail* bin begins or ends at the extreme value, and is wider than the others.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name
from ..exceptions import TessellaError
from ..frame import View, text_of
from .writing import clean

BINS = 24
TAIL = 0.01  # of the values at either end; they are a tail if they reach far beyond the others
FAR = 0.5  # of the width of what lies between the tails
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")  # how the label of a date begins; a duration's does not
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """A column that was read: `values` for numbers and dates, else `codes` with their `labels`.

    `values` has shape (n,), NaN where missing, dates in days since 1970; `codes` has shape (n,),
    -1 where missing. `shape` is "numbers", "dates", "categories" or "unreadable".
    """

    name: Name
    kind: str
    shape: str
    missing: int = 0
    whole: bool = False
    ordered: bool = False
    values: Floats | None = None
    codes: Integers | None = None
    labels: tuple[str, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether the column has values on a line."""
        return self.values is not None


def kind_of(view: View, name: Name) -> str:
    """Return the kind of a column, by its dtype where the schema does not describe it."""
    try:
        return view.kind(name)
    except TessellaError:
        return View(view.table).kind(name)


def read_column(view: View, name: Name, *, as_categories: bool = False) -> Reading:
    """Read one column for counting; a column that cannot be counted is "unreadable"."""
    kind, facts = kind_of(view, name), view.table.facts(name)
    try:
        if not as_categories and facts.numeric and kind in ("continuous", "integer"):
            return _numbers(view, name, kind)
    except TessellaError:
        pass  # more digits than a float64 holds: its labels can still be counted
    try:
        codes, labels = view.labels(name)
    except TessellaError:
        return Reading(name=name, kind=kind, shape="unreadable")
    if not as_categories and facts.family == "date" and all(map(DAY.match, labels)):
        days = _days(labels)
        values = np.append(days, np.nan)[codes]
        whole = bool((days == np.rint(days)).all())
        missing = int(np.isnan(values).sum())
        return Reading(
            name=name, kind=kind, shape="dates", missing=missing, whole=whole, values=values
        )
    return _categories(view, name, kind, codes, labels)


def _numbers(view: View, name: Name, kind: str) -> Reading:
    raw, _ = view.table.raw(name)
    missing = int(view.missing(name).sum())
    values = np.where(view.missing(name), np.nan, raw) if missing else raw
    known = values[np.isfinite(values)]
    # Beyond 2**53 every float64 is whole, and says nothing about the column.
    whole = len(known) > 0 and bool((known == np.rint(known)).all() and _reach(known) < 2**53)
    return Reading(
        name=name, kind=kind, shape="numbers", missing=missing, whole=whole, values=values
    )


def _reach(known: Floats) -> float:
    return float(max(abs(known.max()), abs(known.min())))


def _days(labels: list[str]) -> Floats:
    import pandas as pd

    if not labels:
        return np.empty(0)
    moments = pd.to_datetime(pd.Series(labels), errors="coerce", utc=True, format="mixed")
    whole = moments.dt.tz_localize(None).to_numpy().astype("datetime64[s]")
    days = whole.astype(np.int64) / 86_400
    return np.where(np.isnat(whole), np.nan, days)


def _categories(view: View, name: Name, kind: str, codes: Integers, labels: list[str]) -> Reading:
    missing = int((codes < 0).sum())
    order = labels
    if kind == "ordinal":
        try:
            order = [label for label in view.in_order(name, labels) if label in set(labels)]
        except (TessellaError, ValueError):  # an order that nobody stated
            order = labels
    if order is not labels and len(order) == len(labels):
        place = {label: rank for rank, label in enumerate(order)}
        codes = np.array([*(place[label] for label in labels), -1], dtype=np.int64)[codes]
        labels = order
        ordered = True
    else:
        ordered = False
    return Reading(
        name=name, kind=kind, shape="categories", missing=missing, codes=codes,
        labels=tuple(labels), ordered=ordered,
    )  # fmt: skip


def read_alike(before: View, after: View, name: Name) -> tuple[tuple[Reading, Reading], bool]:
    """Read a column of two tables in one way; and whether that is not the way of the first."""
    first, second = read_column(before, name), read_column(after, name)
    if first.shape == second.shape or "unreadable" in (first.shape, second.shape):
        return (first, second), False
    # Numbers of a release whose schema was guessed may pass for categories, and the reverse.
    if first.shape == "numbers" and after.table.facts(name).numeric:
        second = read_column(View(after.table, before.schema), name)
        if second.shape == "numbers":
            return (first, second), False
    recoded = first.shape != "categories"
    both = (read_column(view, name, as_categories=True) for view in (before, after))
    return (next(both), next(both)), recoded


def label_texts(view: View, name: Name) -> dict[str, str]:
    """Return the meanings of values that the schema states, by the text of the value."""
    try:
        stated: Any = None if view.schema is None else view.schema[name]
    except TessellaError:
        return {}
    meanings = getattr(stated, "labels", {})
    return {text_of(value): clean(meaning) for value, meaning in meanings.items()}


def quantile(ordered: Floats, share: float) -> float:
    """Return a quantile of sorted finite numbers, between neighbours in proportion."""
    place = share * (len(ordered) - 1)
    below = int(place)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    part = place - below
    # Not low + part * (high - low): the difference of two large numbers may be infinite.
    return min(max(low * (1 - part) + high * part, low), high)


@dataclass(frozen=True, kw_only=True)
class Bins:
    """Edges of bins, one more than there are bins; and whether the outermost are tails."""

    edges: tuple[float, ...]
    tails: tuple[bool, bool] = (False, False)

    def count(self, ordered: Floats) -> Integers:
        """Count sorted numbers; a bin has its lower edge, and the last both."""
        inner = np.searchsorted(ordered, self.edges[1:-1], side="left")
        return np.diff([0, *inner.tolist(), len(ordered)]).astype(np.int64)

    def place(self, values: Floats) -> Integers:
        """Return the bin of each number."""
        return np.searchsorted(np.asarray(self.edges[1:-1]), values, side="right").astype(np.int64)


def find_bins(ordered: Floats, *, whole: bool, most: int = BINS, within: Floats) -> Bins:
    """Choose bins for sorted finite numbers that also hold the extremes `within`.

    Bins of whole numbers have whole edges; up to `most` distinct ones have a bin each.
    """
    low, high = float(min(ordered[0], within[0])), float(max(ordered[-1], within[-1]))
    if low == high:
        return Bins(edges=(low, low + 1) if whole else (low, high))
    start, end = quantile(ordered, TAIL), quantile(ordered, 1 - TAIL)
    width = end - start
    tails = (start - low > FAR * width, high - end > FAR * width) if width else (False, False)
    start, end = start if tails[0] else low, end if tails[1] else high
    inner = _round_edges(start, end, whole, most - sum(tails))
    # A tail bin lies beyond the round edges; none is needed where these already hold the extreme.
    tails = (tails[0] and low < inner[0], tails[1] and high > inner[-1] - whole)
    edges = [low] * tails[0] + inner + [high + whole] * tails[1]
    return Bins(edges=tuple(edges), tails=tails)


def _round_edges(start: float, end: float, whole: bool, most: int) -> list[float]:
    """Return multiples of a round step that enclose `start` and `end`, at most `most` bins."""
    span = end / most - start / most  # not (end - start) / most, which may be infinite
    if not math.isfinite(span) or span <= 1e-12 * max(abs(start), abs(end)) or span < 1e-300:
        return [start, end]
    power = 10.0 ** math.floor(math.log10(span))
    choices = [step * power * scale for scale in (1, 10) for step in STEPS]
    for step in choices:
        if whole and (step < 1 or step != int(step)):
            continue
        # Whole numbers: the last bin must hold `end` itself, and its upper edge is not in it.
        first, last = math.floor(start / step), math.ceil((end + whole) / step)
        if last - first <= most:
            edges = [_tidy(place * step, step) for place in range(first, last + 1)]
            # A quotient is rounded, to 0 even: the ends themselves must be inside.
            edges[0], edges[-1] = min(edges[0], start), max(edges[-1], end)
            return edges if math.isfinite(edges[0]) and math.isfinite(edges[-1]) else [start, end]
    return [start, end + whole]


def _tidy(edge: float, step: float) -> float:
    """Round an edge to the digits of its step: 0.3, not 0.30000000000000004."""
    digits = 2 - math.floor(math.log10(step))
    return round(edge, digits) if digits > 0 else edge


def ordered_known(values: Floats) -> Floats:
    """Return the finite ones of some numbers, sorted."""
    known: Floats = np.sort(values[np.isfinite(values)])
    return known
