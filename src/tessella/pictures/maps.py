"""The risk-utility map: what every candidate costs, and what it protects."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..exceptions import BadOptionError
from . import figures
from .figures import BLACK, GREY, new_figure, plain, styled

NEAR = 0.04  # of the picture: points of the front nearer than this to a named one have no name
LEAST = 0.05  # per cent: losses below are drawn here on a logarithmic scale

MEASURES = {"values": "share of the variation of values", "sse_sst": "SSE/SST", "pil": "PIL"}

# Kindred methods share a colour and differ in shape: groups of whole records blue, fuzzy groups
# orange, groups of some columns green, noise pink, exchanged ranks red, coarser numbers black.
LOOKS = {
    "MDAV": (figures.BLUE, "o"),
    "Search": (figures.BLUE, "s"),
    "decomposition": (figures.BLUE, "D"),
    "projection": (figures.BLUE, "v"),
    "fuzzy microaggregation": (figures.ORANGE, "P"),
    "blocks of columns": (figures.GREEN, "^"),
    "individual ranking": (figures.GREEN, "X"),
    "correlated noise": (figures.PINK, "<"),
    "uncorrelated noise": (figures.PINK, ">"),
    "rank swapping": (figures.RED, "h"),
    "shuffling": (figures.RED, "H"),
    "record swapping": (figures.RED, "8"),
    "rounding": (BLACK, "p"),
    "top and bottom coding": (BLACK, "*"),
    "PRAM": (figures.SKY, "d"),
}


def risk_utility_map(exploration: Any, *, scale: str = "log", names: int = 10) -> Any:
    """Draw loss against risk, a mark for each candidate, the front as a line with its methods.

    Parameters
    ----------
    exploration : Exploration
        What `tessella.explore.explore` found.
    scale : {"log", "linear"}, default "log"
        Of the axis of loss: small losses can be distinguished on a logarithmic one.
    names : int, default 10
        How many points of the front are named at most; the ends and the least score always.

    Returns
    -------
    matplotlib.figure.Figure
        Lower left is better. Candidates whose audit found a problem are hollow.
    """
    if scale not in ("log", "linear"):
        raise BadOptionError("scale", scale, '"log" or "linear"')
    points = [point for point in exploration if point.tried]
    if not points:
        raise BadOptionError("exploration", exploration, "one with at least one point")
    with styled():
        figure = new_figure(8.4, 5.6)
        axes = figure.add_subplot()
        if scale == "log":
            axes.set_xscale("log")
        methods = _draw_points(axes, points, scale)
        front = list(exploration.front)
        steps = [(_x(point, scale), point.risk) for point in front]
        losses, risks = [loss for loss, _ in steps], [risk for _, risk in steps]
        axes.step(losses, risks, where="post", color=BLACK, linewidth=1.0, zorder=2)
        axes.set_ylim(0, 104)
        _mark_axis(axes, points, scale)
        measure = MEASURES.get(exploration.measures[0], exploration.measures[0])
        axes.set_xlabel(f"information loss ({measure}), per cent")
        axes.set_ylabel("risk: the share that the worst attack finds, per cent")
        axes.legend(
            handles=methods, loc="center left", bbox_to_anchor=(1.01, 0.5), handletextpad=0.3,
            labelspacing=0.5, borderaxespad=0.2,
        )  # fmt: skip
        named = _named(front, names)
        best = min((p for p in points if p.passed), key=lambda p: p.score, default=None)
        axes.annotate(
            "better", xy=(0.015, 0.03), xytext=(0.075, 0.115), xycoords="axes fraction",
            fontsize=9, color=GREY, ha="center", va="center",
            arrowprops={"arrowstyle": "->", "color": GREY, "linewidth": 1.0},
        )  # fmt: skip
        texts = []
        for point in named:
            name = _short(point) + (" (least score)" if point is best else "")
            texts.append((_x(point, scale), point.risk, plain(name)))
        marks = [(_x(point, scale), point.risk) for point in points]
        _place_labels(figure, axes, texts, others=marks, line=steps)
        if best is not None:
            axes.plot(
                [_x(best, scale)], [best.risk], "o", markersize=14, markerfacecolor="none",
                markeredgecolor=BLACK, markeredgewidth=1.2, zorder=4,
            )  # fmt: skip
    return figure


def _x(point: Any, scale: str) -> float:
    return float(max(point.loss, LEAST) if scale == "log" else point.loss)


def _draw_points(axes: Any, points: list[Any], scale: str) -> list[Any]:
    """Draw each method in its colour and shape; return what a legend shows."""
    kinds: dict[str, list[Any]] = {}
    order = {kind: at for at, kind in enumerate(LOOKS)}
    for point in sorted(
        points, key=lambda p: (order.get(_bare(_kind(p)), len(order)), _kind(p), p.candidate.key)
    ):
        kinds.setdefault(_kind(point), []).append(point)
    out = []
    for at, (kind, members) in enumerate(kinds.items()):
        usual = [some[at % len(some)] for some in (figures.COLOURS, figures.MARKERS)]
        colour, marker = LOOKS.get(_bare(kind), usual)
        edge = "white" if kind == _bare(kind) else BLACK
        for whole in (True, False):
            some = [p for p in members if p.passed == whole]
            drawn = axes.plot(
                [_x(p, scale) for p in some], [p.risk for p in some], marker, color=colour,
                markersize=9 if marker in "*P" else 6.5, alpha=0.85, linestyle="none", zorder=3,
                markerfacecolor=colour if whole else "white", markeredgewidth=0.7,
                markeredgecolor=edge if whole else colour,
            )  # fmt: skip
            if some:
                drawn[0].set_label(plain(kind))
            if some and (whole or not any(p.passed for p in members)):
                out.append(drawn[0])
    if any(not p.passed for p in points):
        out += axes.plot(
            [], [], "o", markerfacecolor="white", markeredgecolor=GREY, linestyle="none",
            label="hollow: audit not passed",
        )  # fmt: skip
    return out


def _kind(point: Any) -> str:
    return family_of(point.candidate.label)


def family_of(label: str) -> str:
    """Return the method of a label: one colour, whatever its blocks or its fuzziness."""
    label = re.sub(r"^blocks of .*?(?=$| \+)", "blocks of columns", label)
    return re.sub(r"^fuzzy m2 = [0-9.e+-]+(, k kept)?", "fuzzy microaggregation", label)


def _bare(kind: str) -> str:
    return kind.removesuffix(" + PRAM")


def _mark_axis(axes: Any, points: list[Any], scale: str) -> None:
    largest = max(_x(p, scale) for p in points)
    if scale == "linear":
        axes.set_xlim(0, min(largest * 1.08, 104) or 1)
        return
    smallest = min(_x(p, scale) for p in points)
    axes.set_xlim(smallest / 1.5, min(largest * 1.6, 130))
    low, high = axes.get_xlim()
    ticks = [
        step * 10.0**power
        for power in range(math.floor(math.log10(low)), 3)
        for step in (1, 2, 5)
        if low <= step * 10.0**power <= min(high, 100)
    ]
    labels = [f"{tick:g}" for tick in ticks]
    if any(p.loss < LEAST for p in points):
        ticks[0], labels[0] = LEAST, f"≤ {LEAST:g}"
    axes.set_xticks(ticks, labels)
    axes.set_xticks([], minor=True)


def _short(point: Any) -> str:
    return short_name(point.candidate.label, point.candidate.options)


def short_name(label: str, options: Mapping[str, Any]) -> str:
    """Name a candidate in few words: the method, and what it is tuned by."""
    for name, text in (
        ("k", "k = {}"), ("amount", "{} s"), ("scale", "{} s"), ("percent", "{} %"),
        ("step", "{} s"), ("tail", "{}"), ("p", "{}"),
    ):  # fmt: skip
        if isinstance(value := options.get(name), int | float):
            return f"{label}, {text.format(f'{value:g}')}"
    return label


def _named(front: list[Any], most: int) -> list[Any]:
    """Choose which points of the front to name: ends, least score, then the loneliest."""
    if not front:
        return []
    chosen = {0, len(front) - 1, min(range(len(front)), key=lambda at: front[at].score)}

    def apart(one: int, other: int) -> float:
        a, b = front[one], front[other]
        width = abs(math.log(max(a.loss, LEAST) / max(b.loss, LEAST))) / math.log(100 / LEAST)
        # Where nothing is protected, names matter less.
        return math.hypot(width * (1.05 - max(a.risk, b.risk) / 100), (a.risk - b.risk) / 100)

    while len(chosen) < min(most, len(front)):
        left = [at for at in range(len(front)) if at not in chosen]
        alone = {at: min(apart(at, held) for held in chosen) for at in left}
        loneliest = max(left, key=lambda at: (alone[at], -at))
        if alone[loneliest] < NEAR:
            break
        chosen.add(loneliest)
    return [front[at] for at in sorted(chosen)]


Box = tuple[float, float, float, float]
Hair = tuple[tuple[float, float], tuple[float, float]]

SIZE = 8.5
# Where a name may stand, seen from its mark, in points; the nearest that is free is taken.
DIRECTIONS = [
    (np.cos(angle) * reach, np.sin(angle) * reach)
    for reach in (10, 18, 28, 40, 55, 72, 92, 115, 140)
    for angle in np.deg2rad([40, 20, 60, 0, -20, 90, -40, 140, 160, 120, 180, -60, -140, -160, -90])
]


def _place_labels(
    figure: Any,
    axes: Any,
    texts: Sequence[tuple[float, float, str]],
    *,
    others: Sequence[tuple[float, float]],
    line: Sequence[tuple[float, float]] = (),
) -> None:
    """Write a name beside each mark (x, y, text), with a hair line where it stands off.

    Names cover neither each other nor the marks `others`, and rather not the steps of `line`, whose
    corners are given, level first. Limits and scales of the axes must be as they will be.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()  # so that the layout is known
    renderer = canvas.get_renderer()
    unit = figure.dpi / 72
    marks = axes.transData.transform(np.asarray(others, dtype=float).reshape(-1, 2))
    frame = axes.get_window_extent(renderer)
    taken: list[Box] = [(x - 4 * unit, y - 4 * unit, x + 4 * unit, y + 4 * unit) for x, y in marks]
    steps = axes.transData.transform(np.asarray(line, dtype=float).reshape(-1, 2))
    for (x0, y0), (x1, y1) in pairwise(steps):
        taken += [(x0, y0 - unit, x1, y0 + unit), (x1 - unit, y1, x1 + unit, y0)]
    held: list[Box] = []
    hairs: list[Hair] = []
    for x, y, text in sorted(texts, key=lambda one: -one[0]):  # the crowd is on the right
        at = axes.transData.transform((x, y))
        width, height = _size(figure, renderer, text)
        best, least = DIRECTIONS[0], np.inf
        for rank, (dx, dy) in enumerate(DIRECTIONS):
            box = _box(at, dx * unit, dy * unit, width, height)
            out = box[0] < frame.x0 or box[2] > frame.x1 or box[1] < frame.y0 or box[3] > frame.y1
            cost = (
                np.hypot(dx, dy) * 0.03
                + rank * 1e-4
                + 50.0 * out
                + sum(_overlap(box, other) for other in taken)
            )
            own = _hair(at, box)
            cost += sum(_crosses(own, other) for other in held)
            cost += sum(_crosses(hair, box) for hair in hairs)
            if cost < least:
                best, least = (dx, dy), cost
        dx, dy = best
        held.append(_box(at, dx * unit, dy * unit, width, height))
        taken.append(held[-1])
        hairs.append(_hair(at, held[-1]))
        axes.annotate(
            text, (x, y), xytext=(dx, dy), textcoords="offset points", fontsize=SIZE, color=BLACK,
            ha=_horizontal(dx), va=_vertical(dx, dy), zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6},
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 1,
                        "shrinkB": 3},
        )  # fmt: skip


def _horizontal(dx: float) -> str:
    return "center" if abs(dx) < 1 else ("left" if dx > 0 else "right")


def _vertical(dx: float, dy: float) -> str:
    return ("bottom" if dy > 0 else "top") if abs(dx) < 1 else "center"


def _size(figure: Any, renderer: Any, text: str) -> tuple[float, float]:
    drawn = figure.text(0, 0, text, fontsize=SIZE)
    extent = drawn.get_window_extent(renderer)
    drawn.remove()
    return float(extent.width), float(extent.height)


def _hair(at: Any, box: Box) -> Hair:
    """Return the line from a mark to the nearest point of its name."""
    x, y = float(at[0]), float(at[1])
    return (x, y), (min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3]))


def _crosses(hair: Hair, box: Box) -> float:
    """Return a cost if a hair line runs through a name; looked at in steps."""
    (x0, y0), (x1, y1) = hair
    steps = np.linspace(0.0, 1.0, 25)
    x, y = x0 + steps * (x1 - x0), y0 + steps * (y1 - y0)
    return 2.0 * bool(((box[0] < x) & (x < box[2]) & (box[1] < y) & (y < box[3])).any())


def _box(at: Any, dx: float, dy: float, width: float, height: float) -> Box:
    across = {"left": 0.0, "center": -width / 2, "right": -width}[_horizontal(dx)]
    up = {"bottom": 0.0, "center": -height / 2, "top": -height}[_vertical(dx, dy)]
    left, low = float(at[0]) + dx + across, float(at[1]) + dy + up
    return left, low, left + width, low + height


def _overlap(one: Box, other: Box) -> float:
    """Return a cost of covering: a share of a name's height, and something for touching."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    if wide <= 0 or high <= 0:
        return 0.0
    return 1.0 + wide * high / ((one[3] - one[1]) ** 2)
