"""The risk-utility map in words: each point as a sentence, all of them as rows of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

from .writing import clean

Point = dict[str, Any]
Limits = tuple[float | None, float | None]  # of risk and of loss, in per cent


def drawable(points: Sequence[Point]) -> list[Point]:
    """Return the points that have a loss and a risk."""
    known = []
    for point in points:
        values = (point.get("loss"), point.get("risk"))
        if not point.get("error") and all(v is not None and math.isfinite(v) for v in values):
            known.append(point)
    return known


def by_loss(point: Point) -> tuple[float, float, str]:
    """Sort points by loss, then by risk."""
    return point["loss"], point["risk"], str(point["key"])


def passed(point: Point) -> bool:
    """Return whether the audit found no problem."""
    return not point.get("error") and not point.get("problems")


def describe_point(point: Point, *, on_front: bool = False) -> str:
    """Say in words what was found about a candidate."""
    attack = f"worst attack {point.get('worst') or 'unknown'}"
    if (baseline := point.get("baseline")) is not None:
        attack += f", guessing {baseline:.1f} %"
    parts = [f"loss {point['loss']:.1f} %", f"risk {point['risk']:.1f} % ({attack})"]
    if point.get("k_reached") is not None:
        promised = point.get("k_promised")
        said = f" of {promised} promised" if promised is not None else ""
        parts.append(f"k reached {point['k_reached']}{said}")
    if on_front:
        parts.append("on the front")
    if problems := point.get("problems"):
        parts.append(f"promises broken: {clean(problems[0], 120)}")
    return f"{clean(point.get('text') or point['label'], 120)}: {', '.join(parts)}"


def describe_map(
    points: list[Point], front: list[Point], present: list[Point], limits: Limits
) -> str:
    """Say in words what the map shows."""
    if not points and not present:
        return "Risk-utility map: no candidate has been tried"
    parts = [f"{len(points)} candidate{'s' * (len(points) != 1)}, {len(front)} on the front"]
    if points:
        ends = [[min(p[key] for p in points), max(p[key] for p in points)]
                for key in ("loss", "risk")]  # fmt: skip
        parts.append("loss from {:.1f} to {:.1f} per cent".format(*ends[0]))
        parts.append("risk from {:.1f} to {:.1f} per cent".format(*ends[1]))
    if any(limit is not None for limit in limits):
        inside = sum(is_within(point, limits) and passed(point) for point in points)
        parts.append(f"{inside} within the limits")
    if present:
        parts.append("present plan: loss {loss:.1f}, risk {risk:.1f}".format(**present[0]))
    return f"Risk-utility map: {'; '.join(parts)}. Lower left is better."


def is_within(point: Point, limits: Limits) -> bool:
    """Return whether a point is within both limits."""
    pairs = zip((point["risk"], point["loss"]), limits)
    return all(limit is None or value <= limit for value, limit in pairs)


def map_rows(
    points: Sequence[Point],
    *,
    front: Collection[str],
    present: Point | None = None,
    chosen: str | None = None,
    limits: Limits = (None, None),
    href: Callable[[Point], str],
) -> list[dict[str, Any]]:
    """Return the points of the map as rows of a table, by ascending loss; refused ones last.

    Parameters
    ----------
    points, front, present, chosen, limits, href
        As `risk_utility_map` takes them.

    Returns
    -------
    list of dict
        `key`, `href`, `text`, `label`, `loss`, `risk` and `baseline` as texts in per cent, `worst`,
        `k` (text), `front`, `passed`, `within`, `present` and `chosen` (truths), `problems` (a list
        of texts) and `error`.
    """
    current = None if present is None else present.get("key")
    every = list(points)
    if present is not None and all(point["key"] != current for point in every):
        every.append(present)
    drawn = sorted(drawable(every), key=by_loss)
    known = {point["key"] for point in drawn}
    rows = []
    for point in [*drawn, *(point for point in every if point["key"] not in known)]:
        there = point["key"] in known
        rows.append({
            "key": str(point["key"]),
            "href": href(point),
            "text": clean(point.get("text") or point["label"], 120),
            "label": clean(point["label"]),
            **{key: _per_cent(point.get(key)) for key in ("loss", "risk", "baseline")},
            "worst": clean(point.get("worst") or ""),
            "k": "" if point.get("k_reached") is None else str(point["k_reached"]),
            "front": point["key"] in front,
            "passed": passed(point),
            "within": there and is_within(point, limits),
            "present": present is not None and point["key"] == current,
            "chosen": chosen is not None and point["key"] == chosen,
            "problems": [clean(problem, 300) for problem in point.get("problems") or ()],
            "error": clean(point.get("error") or "", 300),
        })  # fmt: skip
    return rows


def _per_cent(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:.1f}"
