"""Pictures of a release for its report: correlations, sizes of groups, where the loss is.

As in `drawing`, a picture is SVG that says in its title what is seen, and needs no other package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup

from .._types import Floats, Integers, Name
from .drawing import bars
from .svg import SMALL, joined, line, number, picture, rect, text
from .tables import condition_text
from .writing import clean, fit, per_cent, whole_number, width_of

LEVELS = 6  # of colour, as drawing.css has them
MOST_BARS = 14  # columns or groups that have a bar where the loss is
WIDEST = 40  # sizes of groups that have a bar of their own


def correlation_panels(before: Floats, after: Floats, names: Sequence[Name]) -> Markup:
    """Draw two matrices of correlations, shape (d, d), and their difference.

    The first panel has the original below the diagonal and the masked table above it, the second
    what the masked table has more. The hue is the sign, the depth of colour the strength.
    """
    d = len(names)
    lower = np.tri(d, k=-1, dtype=bool)
    change = np.where(lower, after - before, np.nan)
    largest = float(np.nanmax(np.abs(change)))
    row, column = divmod(int(np.nanargmax(np.abs(change))), d)
    says = (
        f"Correlations of {d} columns: the largest change is that of {clean(names[row])} with "
        f"{clean(names[column])}, {_signed(before[row, column])} before and "
        f"{_signed(after[row, column])} after"
    )
    cell = 34.0 if d <= 8 else max(14.0, 272.0 / d)
    room = min(max(width_of(clean(name), SMALL) for name in names) + 8, 120.0)
    side = room + d * cell
    panels = (
        (np.where(lower, before, np.where(lower.T, after, np.nan)), 1.0,
         "below: original; above: masked"),
        (change, max(largest, 0.01), f"masked minus original, full colour at {largest:.2f}"),
    )  # fmt: skip
    parts = []
    for at, (values, most, title) in enumerate(panels):
        x = at * (side + 26)
        parts.append(text(x, 12, title, "soft", width=side))
        parts.append(_matrix(values, most, names, x + room, 24.0, cell))
    return picture(2 * side + 26, 24 + d * cell + room, "correlations", says, *parts)


def _matrix(
    values: Floats, most: float, names: Sequence[Name], x: float, y: float, cell: float
) -> Markup:
    d = len(names)
    parts = []
    for row in range(d):
        middle = y + (row + 0.5) * cell + 3.5
        parts.append(text(x - 5, middle, names[row], "tick", anchor="end", width=112, size=SMALL))
        for column in range(d):
            value = values[row, column]
            if np.isnan(value):
                continue
            level = min(LEVELS, int(abs(value) / most * LEVELS + 0.999))
            kind = f"{'rise' if value > 0 else 'fall'} heat-{level}"
            left, top = x + column * cell, y + row * cell
            if level:
                parts.append(rect(left + 0.5, top + 0.5, cell - 1, cell - 1, kind))
            if cell >= 30:
                ink = f"value on-{level}" if level >= 5 else "value"
                parts.append(text(left + cell / 2, middle, _signed(value), ink, anchor="middle"))
    bottom = y + d * cell + 6
    for column in range(d):  # upright letters need as much room as the longest name
        place = f"{number(x + (column + 0.5) * cell + 3.5)} {number(bottom)}"
        turned = text(0, 0, fit(names[column], 112, SMALL), "tick", anchor="end")
        parts.append(Markup(f'<g transform="translate({place}) rotate(-90)">{turned}</g>'))
    return joined(parts)


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def group_size_bars(sizes: Integers, k: int | None) -> Markup:
    """Draw how many groups have how many records; a dashed line marks k, smaller ones stand out.

    Parameters
    ----------
    sizes : ndarray of int64, shape (n_groups,)
        Records of each group.
    k : int or None
        The least that was asked for.
    """
    low, high = int(sizes.min()), int(sizes.max())
    below = int((sizes < (k or 0)).sum())
    says = f"{whole_number(len(sizes))} groups of {whole_number(int(sizes.sum()))} records, "
    says += f"from {low} to {high}" + (f"; {whole_number(below)} below k = {k}" if below else "")
    start = min(low, k or low)
    if high - start < WIDEST:
        edges = np.arange(start, high + 2)
    else:
        edges = np.unique(np.geomspace(max(start, 1), high + 1, 31).astype(np.int64))
    counts = np.histogram(sizes, edges)[0]
    left, base, top, width = 44.0, 168.0, 22.0, 480.0
    wide = min((width - left - 6) / len(counts), 44.0)
    most = max(int(counts.max()), 1)
    parts = []
    for at, count in enumerate(counts.tolist()):
        tall = max((base - top) * count / most, 1.0) if count else 0.0
        kind = "before gone" if k is not None and edges[at] < k else "bar"
        parts.append(rect(left + at * wide + 0.5, base - tall, wide - 1, tall, kind))
    if k is not None:
        x = left + wide * float(np.interp(k, edges, np.arange(len(edges))))
        parts += [line(x, top - 14, x, base, "limit"), text(x + 4, top - 5, f"k = {k}", "value")]
    parts.append(line(left, base + 0.5, left + wide * len(counts), base + 0.5, "axis"))
    parts.append(text(left - 5, top + 4, whole_number(most), "tick", anchor="end"))
    parts.append(text(left - 5, base + 3, "0", "tick", anchor="end"))
    shown = -np.inf
    for at, (edge, after) in enumerate(pairwise(edges.tolist())):
        label = f"{edge}" if after == edge + 1 else f"{edge}–{after - 1}"
        middle, half = left + (at + 0.5) * wide, width_of(label, SMALL) / 2 + 3
        if middle - half >= shown:
            parts.append(text(middle, base + 14, label, "tick", anchor="middle"))
            shown = middle + half
    parts.append(text(left, base + 30, "records in a group", "soft"))
    parts.append(text(left - 5, 10, "groups", "soft", anchor="end"))
    return picture(width, base + 36, "group-sizes", says, *parts)


def column_loss_bars(by_column: Mapping[Name, float]) -> Markup:
    """Draw the loss of columns, shares of 1, the largest first."""
    order = sorted(by_column, key=lambda name: -by_column[name])[:MOST_BARS]
    rows = [
        {"label": name, "value": by_column[name], "text": per_cent(by_column[name])}
        for name in order
    ]
    return bars(rows, title="Loss of each column, SSE/SST")


def group_loss_bars(groups: Sequence[Any]) -> Markup:
    """Draw, for groups of records, their share of the records beside their share of the loss."""
    rows = [
        {"label": condition_text(one.name).replace("\n", " "),
         "value": one.records, "text": per_cent(one.records),
         "other": one.carries, "other_text": per_cent(one.carries)}
        for one in groups[:MOST_BARS]
    ]  # fmt: skip
    return bars(
        rows, series=("share of records", "share of the loss"), title="Where the loss is",
        width=800.0, name_width=470.0,
    )  # fmt: skip
