"""Two columns of two tables: how they go together before and after, as plain dicts.

Two columns of numbers are counted on a shared grid, with their correlations; a category and a
number give quartiles for each category; two categories give a table of shares.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Floats, Integers, Name, Truths
from ..frame import View
from .bins import BINS, Bins, Reading, find_bins, label_texts, ordered_known, quantile, read_alike
from .writing import clean, date_text, short_number

ROWS = 8  # categories of a table or picture of two columns; the others are one row
DIFFERENCES = 5  # cells whose shares differ most that are named


def compare_pair(before: View, after: View, x: Name, y: Name) -> dict[str, Any]:
    """Describe how two columns go together in two tables, such as an original and its release.

    Parameters
    ----------
    before, after : View
        The tables; records need not be in the same order, nor as many.
    x, y : names
        Two columns of both tables.

    Returns
    -------
    dict
        `shape`, `x` and `y` (texts) and `n`, the pair of numbers of records that know both. By
        `shape`:

        "grid": `edges` and `tails` with `x` and `y`; `counts`, a pair of lists of rows, the lowest
        y first; `pearson` and `spearman`, pairs, None where undefined; `texts`, for x and y each
        the written ends of the axis.

        "quartiles": `category` and `number`; `rows`, a list of `text`, `counts` (pair) and
        `quartiles` (pair, None without records); `low` and `high` of the quartiles; `writes`.

        "shares": `columns` (texts of x) and `rows` (texts of y); `shares`, a pair of lists of rows
        that sum to 1; `differences`, the largest, each with `x`, `y`, `before` and `after`.

        "none": one of the columns is absent or cannot be counted; `why` says so.
    """
    out: dict[str, Any] = {"x": clean(x), "y": clean(y), "n": [0, 0]}
    columns = []
    for name in (x, y):
        lacking = [view for view in (before, after) if not view.table.has(name)]
        read = () if lacking else _alike(before, after, name)
        if not read:
            why = "is not in both tables" if lacking else "holds values that cannot be counted"
            return out | {"shape": "none", "why": f"{clean(name)} {why}"}
        columns.append(read)
    across, up = columns
    if across[0].measured and up[0].measured:
        return out | _grid(across, up)
    if not across[0].measured and not up[0].measured:
        meanings = [label_texts(before, name) for name in (x, y)]
        return out | _shares(across, up, meanings)
    swapped = across[0].measured
    groups, numbers = (up, across) if swapped else (across, up)
    named = {"category": out["y" if swapped else "x"], "number": out["x" if swapped else "y"]}
    return out | named | _quartiles(groups, numbers, label_texts(before, y if swapped else x))


def _alike(before: View, after: View, name: Name) -> tuple[Reading, ...]:
    """Read a column of two tables in one way; nothing where it cannot be counted."""
    read, _ = read_alike(before, after, name)
    return () if "unreadable" in (read[0].shape, read[1].shape) else read


def _values(reading: Reading) -> Floats:
    return np.empty(0) if reading.values is None else reading.values


def _codes(reading: Reading) -> Integers:
    return np.empty(0, dtype=np.int64) if reading.codes is None else reading.codes


# Two columns of numbers.


def _grid(across: tuple[Reading, ...], up: tuple[Reading, ...]) -> dict[str, Any]:
    known = []
    for x, y in zip(across, up):
        both: Truths = np.isfinite(_values(x)) & np.isfinite(_values(y))
        known.append((_values(x)[both], _values(y)[both]))
    n = [len(x) for x, _ in known]
    bins = [
        _shared_bins([pair[axis] for pair in known], side) for axis, side in ((0, across), (1, up))
    ]
    if bins[0] is None or bins[1] is None:
        return {"shape": "none", "why": "no record knows both", "n": n}
    width, height = (len(own.edges) - 1 for own in bins if own is not None)
    counts = []
    for values in known:
        cells = bins[1].place(values[1]) * width + bins[0].place(values[0])
        counted = np.bincount(cells, minlength=width * height).reshape(height, width)
        counts.append(counted.tolist())
    ends = {}
    for axis, own, side in (("x", bins[0], across), ("y", bins[1], up)):
        write = date_text if side[0].shape == "dates" else short_number
        last = own.edges[-1] - (side[0].whole and side[0].shape == "dates")
        ends[axis] = [write(own.edges[0]), write(last)]
    return {
        "shape": "grid", "n": n, "counts": counts,
        "edges": {"x": list(bins[0].edges), "y": list(bins[1].edges)},
        "tails": {"x": list(bins[0].tails), "y": list(bins[1].tails)},
        "pearson": [correlation(x, y) for x, y in known],
        "spearman": [correlation(_ranks(x), _ranks(y)) for x, y in known],
        "texts": ends,
    }  # fmt: skip


def _shared_bins(values: list[Floats], sides: tuple[Reading, ...]) -> Bins | None:
    ordered = [ordered_known(own) for own in values if len(own)]
    if not ordered:
        return None
    whole = all(side.whole for side in sides)
    return find_bins(ordered[0], whole=whole, within=ordered[-1], most=BINS)


def correlation(x: Floats, y: Floats) -> float | None:
    """Return Pearson's correlation, None where a column is constant or there are no records."""
    if len(x) < 2:
        return None
    parts = []
    for values in (x, y):
        scale = float(np.abs(values).max()) or 1.0  # so that squares stay finite
        apart = values / scale - (values / scale).mean()
        length = float(np.sqrt(apart @ apart))
        if length <= 1e-12 * np.sqrt(len(values)):
            return None
        parts.append(apart / length)
    return float(np.clip(parts[0] @ parts[1], -1.0, 1.0))


def _ranks(values: Floats) -> Floats:
    import pandas as pd

    ranks: Floats = np.asarray(pd.Series(values).rank(), dtype=np.float64)
    return ranks


# A category and a number.


def _quartiles(
    groups: tuple[Reading, ...], numbers: tuple[Reading, ...], meanings: dict[str, str]
) -> dict[str, Any]:
    chosen = _frequent(groups)
    found: list[dict[str, tuple[int, list[float] | None]]] = []
    n = []
    for group, number in zip(groups, numbers):
        values, codes = _values(number), _codes(group)
        known = np.isfinite(values) & (codes >= 0)
        values, codes = values[known], codes[known]
        n.append(len(values))
        place = {label: at for at, label in enumerate(group.labels)}
        own: dict[str, tuple[int, list[float] | None]] = {}
        for label in chosen:
            inside = np.sort(values[codes == place.get(label, -2)])
            some = [quantile(inside, share) for share in (0.25, 0.5, 0.75)] if len(inside) else None
            own[label] = (len(inside), some)
        found.append(own)
    ends = [q for own in found for _, some in own.values() for q in some or ()]
    write = date_text if numbers[0].shape == "dates" else short_number
    rows = [
        {"text": meanings.get(label) or clean(label) or "(empty)",
         "counts": [own[label][0] for own in found],
         "quartiles": [own[label][1] for own in found]}
        for label in chosen
    ]  # fmt: skip
    if not ends:
        return {"shape": "none", "why": "no record knows both", "n": n}
    return {
        "shape": "quartiles", "n": n, "rows": rows, "low": min(ends), "high": max(ends),
        "dates": numbers[0].shape == "dates", "texts": [write(min(ends)), write(max(ends))],
    }  # fmt: skip


def _frequent(sides: tuple[Reading, ...], most: int = ROWS) -> list[str]:
    """Return the most frequent categories of two tables, by their shares; ordered ones by rank."""
    weight: dict[str, float] = {}
    for side in sides:
        codes = _codes(side)
        counts = np.bincount(codes[codes >= 0], minlength=len(side.labels))
        for label, count in zip(side.labels, (counts / max(counts.sum(), 1)).tolist()):
            weight[label] = weight.get(label, 0.0) + count
    present = [label for label in weight if weight[label]]
    chosen = sorted(present, key=lambda label: (-weight[label], label))[:most]
    if all(side.ordered for side in sides):
        rank = {label: at for at, label in enumerate(weight)}
        chosen = sorted(chosen, key=lambda label: rank[label])
    return chosen


# Two categories.


def _shares(
    across: tuple[Reading, ...], up: tuple[Reading, ...], meanings: list[dict[str, str]]
) -> dict[str, Any]:
    chosen = [_frequent(across), _frequent(up)]
    shares, n, beyond = [], [], [False, False]
    for x, y in zip(across, up):
        places = []
        for axis, side in enumerate((x, y)):
            at = {label: place for place, label in enumerate(chosen[axis])}
            last = len(chosen[axis])
            own = np.array([*(at.get(label, last) for label in side.labels), -1], dtype=np.int64)
            places.append(own[_codes(side)])
            beyond[axis] |= bool((places[-1] == last).any())
        known = (places[0] >= 0) & (places[1] >= 0)
        wide, high = len(chosen[0]) + 1, len(chosen[1]) + 1
        cells = places[1][known] * wide + places[0][known]
        counted = np.bincount(cells, minlength=wide * high).reshape(high, wide)
        n.append(int(counted.sum()))
        shares.append(counted / max(n[-1], 1))
    if not any(n):
        return {"shape": "none", "why": "no record knows both", "n": n}
    # The last row and column hold the categories that are not named, where there are any.
    texts = [
        [meanings[axis].get(label) or clean(label) or "(empty)" for label in chosen[axis]]
        + ["others"] * beyond[axis]
        for axis in (0, 1)
    ]
    shares = [own[: len(texts[1]), : len(texts[0])] for own in shares]
    apart = np.abs(shares[1] - shares[0])
    order = np.argsort(-apart.ravel(), kind="stable")[:DIFFERENCES]
    largest = [divmod(int(at), apart.shape[1]) for at in order]
    return {
        "shape": "shares", "n": n, "columns": texts[0], "rows": texts[1],
        "shares": [own.tolist() for own in shares],
        "differences": [
            {"x": texts[0][j], "y": texts[1][i], "before": float(shares[0][i, j]),
             "after": float(shares[1][i, j])}
            for i, j in largest if apart[i, j] > 0
        ],
    }  # fmt: skip
