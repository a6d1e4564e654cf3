"""What columns hold, in numbers that a page shows: plain dicts, as JSON has them.

A *profile* describes one column, a *comparison* the same column of two tables. Nothing here pairs
records: a release may be in another order, and have another number of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name
from ..exceptions import TessellaError
from ..frame import Table, View
from ..frame.view import SchemaLike
from .bins import (
    Reading,
    find_bins,
    label_texts,
    ordered_known,
    quantile,
    read_alike,
    read_column,
)
from .pairs import compare_pair as compare_pair
from .writing import clean, date_text, short_number

SHOWN = 12  # categories of a column that are named; the others are counted together
QUARTERS = (0.25, 0.5, 0.75)
QUANTILES = 4096
Profile = dict[str, Any]


def profile_columns(table: Any, schema: SchemaLike | None = None) -> list[Profile]:
    """Describe each column of a table.

    Parameters
    ----------
    table : Table, View, or any table that `Table.read` accepts
        The table.
    schema : Schema, optional
        Says which numbers are categories and which values stand for "missing".

    Returns
    -------
    list of dict
        In the order of the columns, each with `name` (text), `kind`, `shape` ("numbers", "dates",
        "categories" or "unreadable"), `n`, `missing`, `infinite` and `distinct`. Numbers and dates
        have `low`, `high`, `quartiles`, `mean`, `zeros` (a share of the known ones), `texts` of
        these, and `histogram`: `edges`, `counts`, `tails`, `whole`. Dates are in days since 1970.
        Categories have `categories`, a list of `value`, `text`, `count`, and `others`: how many
        `values` and `records` are not listed.

    Notes
    -----
    `counts`, `missing` and `infinite` sum to `n`, as counts of categories and `others` do.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.pictures.profile import profile_columns
    >>> table = pd.DataFrame({"age": [31, 48, 48], "town": ["Reus", None, "V"]})
    >>> age, town = profile_columns(table)
    >>> age["low"], age["quartiles"], sum(age["histogram"]["counts"])
    (31.0, [39.5, 48.0, 48.0], 3)
    >>> town["missing"], [one["text"] for one in town["categories"]]
    (1, ['Reus', 'V'])
    """
    view = View.of(table, schema)
    return [_profile(view, name) for name in view.columns]


def _profile(view: View, name: Name) -> Profile:
    reading = read_column(view, name)
    out: Profile = {
        "name": clean(name), "kind": reading.kind, "shape": reading.shape, "n": view.n_rows,
        "missing": reading.missing, "infinite": 0, "distinct": None,
    }  # fmt: skip
    if reading.values is not None:
        ordered = ordered_known(reading.values)
        infinite = view.n_rows - reading.missing - len(ordered)
        out |= {"infinite": infinite} | _summary(ordered, reading)
        out["histogram"] = None
        if len(ordered):
            bins = find_bins(ordered, whole=reading.whole, within=ordered)
            out["histogram"] = {
                "edges": list(bins.edges), "tails": list(bins.tails), "whole": reading.whole,
                "counts": bins.count(ordered).tolist(),
            }  # fmt: skip
    elif reading.codes is not None:
        counts = _count(reading)
        chosen = _most_frequent(counts, reading)
        meanings = label_texts(view, name)
        out["distinct"] = int((counts > 0).sum())
        out["categories"] = [
            {"value": clean(reading.labels[at]), "text": _meaning(meanings, reading.labels[at]),
             "count": int(counts[at])}
            for at in chosen
        ]  # fmt: skip
        out["others"] = {
            "values": out["distinct"] - len(chosen),
            "records": int(counts.sum() - counts[chosen].sum()),
        }
    return out


def writer_of(shape: str) -> Callable[[float | None], str]:
    """Return how values of a column are written."""
    return date_text if shape == "dates" else short_number


def _summary(ordered: Floats, reading: Reading) -> Profile:
    """Summarise sorted finite numbers; None where there are none."""
    if not len(ordered):
        empty = {"low": None, "high": None, "quartiles": None, "mean": None, "texts": None}
        return {"distinct": 0, "zeros": 0.0, **empty}
    write = writer_of(reading.shape)
    low, high = float(ordered[0]), float(ordered[-1])
    scale = max(abs(low), abs(high)) or 1.0
    # The sum of large numbers may be infinite; that of their shares of the largest is not.
    mean = scale * float((ordered / scale).mean()) if scale > 1e150 else float(ordered.mean())
    quartiles = [quantile(ordered, share) for share in QUARTERS]
    return {
        "distinct": int((ordered[1:] != ordered[:-1]).sum()) + 1,
        "zeros": 0.0 if reading.shape == "dates" else float((ordered == 0).mean()),
        "low": low, "high": high, "quartiles": quartiles, "mean": mean,
        "texts": {
            "low": write(low), "high": write(high), "mean": write(mean),
            "quartiles": [write(value) for value in quartiles],
        },
    }  # fmt: skip


def _count(reading: Reading) -> Integers:
    assert reading.codes is not None  # the caller asked
    known = reading.codes[reading.codes >= 0]
    return np.bincount(known, minlength=len(reading.labels))


def _most_frequent(counts: Integers, reading: Reading, most: int = SHOWN) -> list[int]:
    """Return the places of the most frequent categories; ordered ones in their order."""
    present = np.flatnonzero(counts)
    if len(present) > 1000:  # labels decide ties, and only among counts that may be shown
        least = np.partition(counts[present], -most)[-most]
        present = present[counts[present] >= least]
        present = present[np.argsort(-counts[present], kind="stable")][:1000]
    chosen = sorted(present.tolist(), key=lambda at: (-counts[at], reading.labels[at]))[:most]
    return sorted(chosen) if reading.ordered else chosen


def _meaning(meanings: dict[str, str], label: str) -> str:
    return meanings.get(label) or clean(label) or "(empty)"


def compare_columns(before: View, after: View, names: Iterable[Name]) -> list[Profile]:
    """Describe columns of two tables, such as an original and its release, with shared bins.

    Parameters
    ----------
    before, after : View
        The tables; records need not be in the same order, nor as many.
    names : iterable of names
        Columns of `before`.

    Returns
    -------
    list of dict
        As those of `profile_columns`, where `n`, `missing`, `infinite`, `distinct`, `low`, `high`,
        `quartiles`, `mean`, `zeros` and `texts` are pairs, [before, after]. `histogram` has
        `counts` as a pair; each of `categories` has `counts`, a pair; `others` has `values` and
        `records` as pairs. `distance` is the largest difference of the two distribution functions
        (Kolmogorov-Smirnov), or for categories half the sum of differences of shares; None where
        one has no values. `shape` is "absent" for a column that `after` does not have.
        `recoded` says that numbers became categories: both are then counted as categories.
    """
    return [_compare(before, after, name) for name in names]


def _compare(before: View, after: View, name: Name) -> Profile:
    if not after.table.has(name):
        first = read_column(before, name)
        return {
            "name": clean(name), "kind": first.kind, "shape": "absent",
            "n": [before.n_rows, after.n_rows], "missing": [first.missing, 0],
            "recoded": False, "distance": None,
        }  # fmt: skip
    sides, recoded = read_alike(before, after, name)
    views = (before, after)
    out: Profile = {
        "name": clean(name), "kind": sides[0].kind, "shape": sides[0].shape,
        "n": [view.n_rows for view in views], "missing": [side.missing for side in sides],
        "infinite": [0, 0], "distinct": [None, None], "recoded": recoded, "distance": None,
    }  # fmt: skip
    if "unreadable" in (sides[0].shape, sides[1].shape):
        return out | {"shape": "unreadable"}
    if sides[0].measured:
        return out | _compare_numbers(sides, out["n"])
    return out | _compare_categories(sides, label_texts(before, name))


def _compare_numbers(sides: Sequence[Reading], n: list[int]) -> Profile:
    ordered = [ordered_known(side.values) for side in sides if side.values is not None]
    pairs = [_summary(known, side) for known, side in zip(ordered, sides)]
    out: Profile = {key: [one[key] for one in pairs] for key in pairs[0]}
    out["infinite"] = [
        total - side.missing - len(known) for total, side, known in zip(n, sides, ordered)
    ]
    out["histogram"] = None
    if filled := [known for known in ordered if len(known)]:
        whole = all(side.whole for side, known in zip(sides, ordered) if len(known))
        bins = find_bins(filled[0], whole=whole, within=filled[-1])
        out["histogram"] = {
            "edges": list(bins.edges), "tails": list(bins.tails), "whole": whole,
            "counts": [bins.count(known).tolist() for known in ordered],
        }  # fmt: skip
    out["distance"] = largest_difference(*ordered)
    return out


def largest_difference(one: Floats, other: Floats) -> float | None:
    """Return the largest difference of the distribution functions of two sorted samples.

    Of larger samples the functions are compared at 4,096 quantiles of each: a value that a larger
    share of the records has is among them, so that the result is at most 1/4096 too small.
    """
    if not len(one) or not len(other):
        return None
    some = [
        np.linspace(0, len(own) - 1, min(len(own), QUANTILES)).astype(int) for own in (one, other)
    ]
    at = np.concatenate([one[some[0]], other[some[1]]])
    shares = [np.searchsorted(own, at, side="right") / len(own) for own in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def _compare_categories(sides: Sequence[Reading], meanings: dict[str, str]) -> Profile:
    counted: list[dict[str, int]] = []
    for side in sides:
        counted.append({
            label: count for label, count in zip(side.labels, _count(side).tolist()) if count
        })  # fmt: skip
    first, second = counted
    totals = [max(sum(own.values()), 1) for own in counted]
    # Shares decide, so that a frequent category of the release is shown even if it is new.
    weight = {
        label: first.get(label, 0) / totals[0] + second.get(label, 0) / totals[1]
        for label in [*first, *(label for label in second if label not in first)]
    }
    chosen = sorted(weight, key=lambda label: (-weight[label], label))[:SHOWN]
    if all(side.ordered for side in sides):
        rank = {label: at for at, label in enumerate([*sides[0].labels, *sides[1].labels])}
        chosen = sorted(chosen, key=lambda label: rank[label])
    shown = [sum(own.get(label, 0) for label in chosen) for own in counted]
    apart = math.fsum(
        abs(first.get(x, 0) / totals[0] - second.get(x, 0) / totals[1]) for x in weight
    )
    return {
        "distinct": [len(own) for own in counted],
        "categories": [
            {"value": clean(label), "text": _meaning(meanings, label),
             "counts": [own.get(label, 0) for own in counted]}
            for label in chosen
        ],
        "others": {
            "values": [len(own) - sum(label in own for label in chosen) for own in counted],
            "records": [sum(own.values()) - part for own, part in zip(counted, shown)],
        },
        "distance": apart / 2 if first and second else None,
    }  # fmt: skip


def preview_rows(table: Any, schema: SchemaLike | None = None, n: int = 8) -> list[list[str]]:
    """Return the first records as texts of a bounded length; an empty text where a cell is missing.

    A value that the schema gives a meaning is followed by it. A code for "missing" is shown.
    """
    source = Table.read(table)
    view = View(source, schema)
    rows = np.arange(min(n, source.n_rows))
    first = Table.read(source.take(rows))
    columns = []
    for name in first.columns:
        meanings = label_texts(view, name)
        try:
            codes, labels = first.labels(name)
        except TessellaError:
            columns.append(["…"] * len(rows))
            continue
        texts = [
            f"{clean(label)} ({meanings[label]})" if label in meanings else clean(label)
            for label in labels
        ]
        columns.append([*np.array([*texts, ""], dtype=object)[codes]])
    return [list(row) for row in zip(*columns)]
