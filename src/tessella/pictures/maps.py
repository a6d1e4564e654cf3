"""The risk-utility map: what every candidate costs, and what it protects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from ..exceptions import BadOptionError
from .style import (
    BLACK,
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    MARKERS,
    ORANGE,
    PINK,
    RED,
    SKY,
    new_figure,
    place_labels,
    plain,
    styled,
)

__all__ = ["risk_utility_map"]

NEAR = 0.04  # of the picture: points of the front nearer than this to a named one have no name
LEAST = 0.05  # per cent: losses below are drawn here on a logarithmic scale

# Kindred methods share a colour and differ in shape: groups of whole records blue, fuzzy groups
# orange, groups of some columns green, noise pink, exchanged ranks red, coarser numbers black.
LOOKS = {
    "MDAV": (BLUE, "o"),
    "Search": (BLUE, "s"),
    "decomposition": (BLUE, "D"),
    "projection": (BLUE, "v"),
    "fuzzy microaggregation": (ORANGE, "P"),
    "blocks of columns": (GREEN, "^"),
    "individual ranking": (GREEN, "X"),
    "correlated noise": (PINK, "<"),
    "uncorrelated noise": (PINK, ">"),
    "rank swapping": (RED, "h"),
    "rounding": (BLACK, "p"),
    "top and bottom coding": (BLACK, "*"),
    "PRAM": (SKY, "d"),
}


class _Point(Protocol):
    candidate: Any
    loss: float
    risk: float

    @property
    def score(self) -> float: ...
    @property
    def tried(self) -> bool: ...
    @property
    def passed(self) -> bool: ...


class _Explored(Protocol):
    @property
    def measures(self) -> tuple[str, ...]: ...
    @property
    def front(self) -> Sequence[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


def risk_utility_map(exploration: _Explored, *, scale: str = "log", names: int = 10) -> Any:
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
        _draw_front(axes, front, scale)
        axes.set_ylim(0, 104)
        _mark_axis(axes, points, scale)
        axes.set_xlabel(f"information loss ({_measured(exploration.measures[0])}), per cent")
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
        texts = [
            (
                _x(point, scale),
                point.risk,
                plain(_short(point) + (" (least score)" if point is best else "")),
            )
            for point in named
        ]
        steps = [(_x(p, scale), p.risk) for p in front]
        place_labels(
            figure, axes, texts, others=[(_x(p, scale), p.risk) for p in points], line=steps
        )
        if best is not None:
            axes.plot(
                [_x(best, scale)], [best.risk], "o", markersize=14, markerfacecolor="none",
                markeredgecolor=BLACK, markeredgewidth=1.2, zorder=4,
            )  # fmt: skip
    return figure


def _measured(measure: str) -> str:
    known = {"values": "share of the variation of values", "sse_sst": "SSE/SST", "pil": "PIL"}
    return known.get(measure, measure)


def _x(point: _Point, scale: str) -> float:
    return max(point.loss, LEAST) if scale == "log" else point.loss


def _draw_points(axes: Any, points: list[Any], scale: str) -> list[Any]:
    """Draw each method in its colour and shape; return what a legend shows."""
    kinds: dict[str, list[Any]] = {}
    order = {kind: at for at, kind in enumerate(LOOKS)}
    for point in sorted(
        points,
        key=lambda p: (order.get(_bare(_kind(p)), len(order)), _kind(p), p.candidate.key),
    ):
        kinds.setdefault(_kind(point), []).append(point)
    out = []
    for at, (kind, members) in enumerate(kinds.items()):
        fallback = COLOURS[at % len(COLOURS)], MARKERS[at % len(MARKERS)]
        colour, marker = LOOKS.get(_bare(kind), fallback)
        for whole in (True, False):
            some = [p for p in members if p.passed == whole]
            drawn = axes.plot(
                [_x(p, scale) for p in some], [p.risk for p in some], marker, color=colour,
                markersize=9 if marker in "*P" else 6.5, alpha=0.85, linestyle="none", zorder=3,
                markerfacecolor=colour if whole else "white", markeredgewidth=0.7,
                markeredgecolor=_edge(kind) if whole else colour,
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


def _kind(point: _Point) -> str:
    from re import sub

    # One colour for a method, whatever its blocks or its fuzziness.
    label = sub(r"^blocks of .*?(?=$| \+)", "blocks of columns", point.candidate.label)
    return sub(r"^fuzzy m2 = [0-9.e+-]+(, k kept)?", "fuzzy microaggregation", label)


def _edge(kind: str) -> str:
    return "white" if kind == _bare(kind) else BLACK


def _bare(kind: str) -> str:
    return kind.removesuffix(" + PRAM")


def _draw_front(axes: Any, front: list[Any], scale: str) -> None:
    axes.step(
        [_x(p, scale) for p in front], [p.risk for p in front], where="post", color=BLACK,
        linewidth=1.0, zorder=2,
    )  # fmt: skip


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
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    if any(p.loss < LEAST for p in points):
        axes.set_xticks([LEAST, *ticks[1:]], [f"≤ {LEAST:g}", *(f"{t:g}" for t in ticks[1:])])


def _short(point: _Point) -> str:
    """Name a point in few words: the method, and what it is tuned by."""
    label = point.candidate.label
    for name, text in (
        ("k", "k = {}"), ("scale", "{} s"), ("percent", "{} %"), ("step", "{} s"), ("tail", "{}"),
        ("p", "{}"),
    ):  # fmt: skip
        if name in point.candidate:
            return f"{label}, {text.format(f'{point.candidate[name]:g}')}"
    return str(label)


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
