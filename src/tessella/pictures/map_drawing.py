"""The risk-utility map as an SVG: what each candidate costs, and what it protects.

Colours and shapes of methods are those of `maps`. In the app each point is a link. Points are plain
dicts: what `Point.to_dict` returns, with `key` (of the candidate), `label` (its method) and `text`
(method and options).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from markupsafe import Markup

from . import figures
from .map_table import (
    Limits,
    Point,
    by_loss,
    describe_map,
    describe_point,
    drawable,
    passed,
)
from .maps import LEAST, LOOKS, family_of, short_name
from .svg import element, joined, line, number, picture, rect, text
from .writing import clean, width_of

Place = tuple[float, float]

WIDTH, HEIGHT = 760.0, 440.0
LEFT, RIGHT, TOP, BASE = 50.0, 570.0, 14.0, 390.0
NEAR = 7.0  # pixels: marks nearer to each other are moved apart by as much, and not farther
NAMES = 6  # points of the front that are named

# Corners of marks with radius 1, y downward: regular polygons as (corners, turn), others by hand.
_REGULAR = {"s": (4, 45), "D": (4, 0), "^": (3, 0), "v": (3, 180), "<": (3, -90), ">": (3, 90),
            "h": (6, 0), "H": (6, 30), "8": (8, 22.5), "p": (5, 0)}  # fmt: skip
_CROSS = ((-.35, -1), (.35, -1), (.35, -.35), (1, -.35), (1, .35), (.35, .35), (.35, 1),
          (-.35, 1), (-.35, .35), (-1, .35), (-1, -.35), (-.35, -.35))  # fmt: skip
_SCALE = {"o": 4.4, "s": 5.6, "D": 5.8, "d": 6.2, "P": 5.6, "X": 5.8, "*": 6.8, "h": 5.2, "H": 5.2,
          "p": 5.4}  # fmt: skip


def mark_path(shape: str) -> str:
    """Return the outline of a mark around (0, 0), by the letter that matplotlib has for it."""
    radius = _SCALE.get(shape, 5.8)
    if shape == "o":
        r = number(radius)
        return (
            f"M-{r} 0a{r} {r} 0 1 0 {number(2 * radius)} 0a{r} {r} 0 1 0 {number(-2 * radius)} 0z"
        )
    corners: Sequence[Place]
    if shape == "d":
        corners = ((0, -1), (0.6, 0), (0, 1), (-0.6, 0))
    elif shape == "*":
        corners = [_turned(36 * at, 1 if at % 2 == 0 else 0.45) for at in range(10)]
    elif shape in "PX":
        turn = math.radians(45 if shape == "X" else 0)
        corners = [(x * math.cos(turn) - y * math.sin(turn),
                    x * math.sin(turn) + y * math.cos(turn)) for x, y in _CROSS]  # fmt: skip
    else:
        count, turn = _REGULAR.get(shape, (8, 22.5))
        corners = [_turned(turn + 360 * at / count, 1) for at in range(count)]
    return "M" + "L".join(f"{number(radius * x)} {number(radius * y)}" for x, y in corners) + "z"


def _turned(degrees: float, radius: float) -> Place:
    angle = math.radians(degrees)
    return radius * math.sin(angle), -radius * math.cos(angle)


def risk_utility_map(
    points: Sequence[Point],
    *,
    front: Collection[str],
    present: Point | None = None,
    chosen: str | None = None,
    limits: Limits = (None, None),
    href: Callable[[Point], str] | None = None,
    measure: str = "share of the variation of values",
) -> Markup:
    """Draw loss against risk, each candidate in the colour and shape of its method.

    Parameters
    ----------
    points : sequence of dict
        Candidates; those without a loss or risk (refused ones) are not drawn.
    front : collection of str
        The keys of the points that no other beats.
    present : dict, optional
        The point of the plan as it is now: drawn with cross hairs and named.
    chosen : str, optional
        The key of the point that was chosen: drawn with a ring.
    limits : tuple of float or None
        The largest risk and the largest loss, in per cent.
    href : callable, optional
        From a point to the address of its link; without, points are no links.
    measure : str
        What the loss is, for the axis.

    Returns
    -------
    Markup
        Losses below 0.05 per cent are drawn at 0.05. Marks that would cover each other are moved
        apart by a few pixels, not across a limit. A point with broken promises is hollow.
    """
    shown = drawable(points)
    own = drawable([present] if present else [])
    scale = _Scale([*shown, *own], limits)
    looks = _looks(shown)
    places = _spread(shown, scale, limits, set(front))
    on_front = sorted((p for p in shown if p["key"] in front), key=by_loss)
    parts = [*_axes(scale, measure), *_limits(scale, limits), *_front(on_front, scale), _better()]
    # Points of the front are drawn last: nothing covers them.
    order = sorted(shown, key=lambda p: (p["key"] == chosen, p["key"] in front, *by_loss(p)))
    for point in order:
        parts.append(_link(point, places[point["key"]], looks, href, point["key"] in front, chosen))
    if own:
        parts.append(_present(own[0], scale, href))
    parts += _names(on_front, own, chosen, shown, places, scale)
    if not shown and not own:
        parts.append(text((LEFT + RIGHT) / 2, (TOP + BASE) / 2, "no candidate has been tried yet",
                          "soft", anchor="middle"))  # fmt: skip
    parts += _legend(shown, looks, bool(own), chosen in places)
    return picture(WIDTH, HEIGHT, "map", describe_map(shown, on_front, own, limits),
                   *parts, links=href is not None and bool(shown or own))  # fmt: skip


class _Scale:
    """From loss, on a logarithmic axis, and risk in per cent to places in the picture."""

    def __init__(self, points: list[Point], limits: Limits) -> None:
        losses = [max(float(p["loss"]), LEAST) for p in points]
        if limits[1] is not None and limits[1] > 0:
            losses.append(max(limits[1], LEAST))
        low, high = (min(losses), max(losses)) if losses else (1.0, 10.0)
        # A decade at least, so that a few points that are alike do not look far apart.
        wider = max(math.sqrt(10 * low / high), 1.0)
        self.low, self.high = max(low / wider / 1.3, LEAST / 1.3), high * wider * 1.3
        self.floor = any(float(p["loss"]) < LEAST for p in points)

    def x(self, loss: float) -> float:
        part = math.log(max(loss, LEAST) / self.low) / math.log(self.high / self.low)
        return LEFT + (RIGHT - LEFT) * part

    def y(self, risk: float) -> float:
        return BASE - (BASE - TOP) * min(max(risk, 0.0), 104.0) / 104

    def ticks(self) -> list[tuple[float, str]]:
        out = []
        for power in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1):
            for step in (1, 2, 5):
                tick = float(f"{step}e{power}")
                if self.low <= tick <= min(self.high, 100.0) and tick >= LEAST:
                    out.append((tick, f"{tick:g}"))
        if self.floor:
            out = [(LEAST, f"≤ {LEAST:g}"), *(one for one in out if one[0] > 1.5 * LEAST)]
        return out


def _axes(scale: _Scale, measure: str) -> list[Markup]:
    parts = []
    for risk in range(0, 101, 20):
        y = scale.y(risk)
        parts += [line(LEFT, y, RIGHT, y, "axis" if risk == 0 else "grid"),
                  text(LEFT - 6, y + 4, str(risk), "tick", anchor="end")]  # fmt: skip
    for tick, said in scale.ticks():
        x = scale.x(tick)
        parts += [line(x, BASE, x, BASE + 4, "axis"),
                  text(x, BASE + 17, said, "tick", anchor="middle")]  # fmt: skip
    middle = (LEFT + RIGHT) / 2
    parts.append(text(middle, BASE + 36, f"information loss ({clean(measure)}), per cent", "label",
                      anchor="middle"))  # fmt: skip
    turned = text(0, 0, "risk: found by the worst attack, per cent", "label", anchor="middle")
    parts.append(
        element("g", turned, transform=f"translate(14 {(TOP + BASE) / 2:.0f}) rotate(-90)")
    )
    return parts


def _limits(scale: _Scale, limits: Limits) -> list[Markup]:
    """Draw what is allowed as a tinted area, its ends as dashed lines with their numbers."""
    risk, loss = limits
    if risk is None and loss is None:
        return []
    top = TOP if risk is None else scale.y(risk)
    right = RIGHT if loss is None else min(max(scale.x(loss), LEFT), RIGHT)
    parts = [rect(LEFT, top, right - LEFT, BASE - top, "within")]
    if risk is not None:
        end = right if right > LEFT + 130 else RIGHT  # beside the other line, not across it
        parts += [line(LEFT, top, RIGHT, top, "limit"),
                  text(end - 4, top - 4, f"risk at most {risk:g} %", "limit-text",
                       anchor="end")]  # fmt: skip
    if loss is not None:
        inside = right > RIGHT - 110
        parts += [line(right, TOP, right, BASE, "limit"),
                  text(right + (-4 if inside else 4), TOP + 9, f"loss at most {loss:g} %",
                       "limit-text", anchor="end" if inside else "start")]  # fmt: skip
    return parts


def _front(points: list[Point], scale: _Scale) -> list[Markup]:
    if len(points) < 2:
        return []
    path = f"M{number(scale.x(points[0]['loss']))} {number(scale.y(points[0]['risk']))}"
    for point in points[1:]:
        path += f"H{number(scale.x(point['loss']))}V{number(scale.y(point['risk']))}"
    return [element("path", d=path, class_="front")]


def _better() -> Markup:
    x, y = LEFT + 12, BASE - 10
    arrow = element(
        "path", d=f"M{x + 24:.0f} {y - 20:.0f}L{x:.0f} {y:.0f}m0 -7v7h7", class_="arrow"
    )
    return joined([arrow, text(x + 28, y - 20, "better", "soft")])


def _looks(points: list[Point]) -> dict[str, tuple[int, str, bool]]:
    """Return for each method the number of its colour, its shape, and whether it has an outline."""
    out: dict[str, tuple[int, str, bool]] = {}
    order = {kind: at for at, kind in enumerate(LOOKS)}
    kinds = {family_of(str(p["label"])) for p in points}
    bare = {kind: kind.removesuffix(" + PRAM") for kind in kinds}
    ranked = sorted(kinds, key=lambda kind: (order.get(bare[kind], len(order)), kind))
    for at, kind in enumerate(ranked):
        usual = (figures.COLOURS[at % len(figures.COLOURS)],
                 figures.MARKERS[at % len(figures.MARKERS)])  # fmt: skip
        colour, shape = LOOKS.get(bare[kind], usual)
        out[kind] = (figures.COLOURS.index(colour) + 1, shape, kind != bare[kind])
    return out


def _spread(
    points: list[Point], scale: _Scale, limits: Limits, front: set[str]
) -> dict[str, Place]:
    """Place marks; one that would cover another moves aside by a few pixels, if it can."""
    lines = (scale.x(limits[1]) if limits[1] is not None else None,
             -scale.y(limits[0]) if limits[0] is not None else None)  # fmt: skip
    moves = [(0.0, 0.0), *((NEAR * math.cos(a), NEAR * math.sin(a))
                           for a in (math.pi * step / 3 for step in range(6)))]  # fmt: skip
    out: dict[str, Place] = {}
    for point in sorted(points, key=lambda p: (p["key"] not in front, *by_loss(p))):
        x, y = scale.x(point["loss"]), scale.y(point["risk"])
        out[point["key"]] = (x, y)
        for dx, dy in moves:
            there = (x + dx, y + dy)
            pairs = ((x, x + dx), (-y, -y - dy))
            crosses = any(limit is not None and (own <= limit) != (new <= limit)
                          for limit, (own, new) in zip(lines, pairs))  # fmt: skip
            taken = any(math.dist(there, other) < NEAR - 0.5
                        for key, other in out.items() if key != point["key"])  # fmt: skip
            if not crosses and not taken and there[1] <= BASE:
                out[point["key"]] = there
                break
    return out


def _link(
    point: Point, place: Place, looks: dict[str, tuple[int, str, bool]],
    href: Callable[[Point], str] | None, on_front: bool, chosen: str | None,
) -> Markup:  # fmt: skip
    colour, shape, outlined = looks[family_of(str(point["label"]))]
    kinds = [
        f"mark mark-{colour}",
        "" if passed(point) else "hollow",
        "outlined" if outlined else "",
    ]
    says = describe_point(point, on_front=on_front)
    is_chosen = point["key"] == chosen
    parts = [element("title", says), element("circle", r=11.0, class_="hit")]
    if is_chosen:
        parts.append(element("circle", r=10.5, class_="chosen"))
    parts.append(element("path", d=mark_path(shape), class_=" ".join(filter(None, kinds))))
    tag, address = ("a", href(point)) if href else ("g", None)
    return element(
        tag, *parts, href=address, class_="point front" if on_front else "point",
        transform=f"translate({number(place[0])} {number(place[1])})", aria_label=says,
        aria_current="true" if is_chosen else None, data_key=str(point["key"]),
    )  # fmt: skip


def _present(point: Point, scale: _Scale, href: Callable[[Point], str] | None) -> Markup:
    """Draw the plan as it is now: a ring with cross hairs around its place."""
    says = f"present plan: {describe_point(point)}"
    cross = element("path", d="M-15 0h7M8 0h7M0 -15v7M0 8v7", class_="hairs")
    parts = [element("title", says), element("circle", r=8.0, class_="hit"), cross,
             element("circle", r=8.0, class_="ring")]  # fmt: skip
    x, y = number(scale.x(point["loss"])), number(scale.y(point["risk"]))
    tag, address = ("a", href(point)) if href else ("g", None)
    return element(tag, *parts, href=address, class_="point present", aria_label=says,
                   transform=f"translate({x} {y})")  # fmt: skip


# Names of some points, and the legend.

_ASIDE = [  # where a name may stand, seen from its mark; the first that covers nothing is taken
    (dx, dy)
    for reach in (10.0, 16.0, 26.0, 40.0)
    for dx, dy in ((reach, -6.0), (reach, 12.0), (-reach, -6.0), (-reach, 12.0), (0.0, -reach - 4),
                   (0.0, reach + 12))
]  # fmt: skip
Box = tuple[float, float, float, float]


def _names(
    front: list[Point], present: list[Point], chosen: str | None, points: list[Point],
    places: dict[str, Place], scale: _Scale,
) -> list[Markup]:  # fmt: skip
    """Name the present plan, the chosen point, and some of the front that stand alone."""
    named: list[tuple[Place, str, str]] = []
    if present:
        at = (scale.x(present[0]["loss"]), scale.y(present[0]["risk"]))
        named.append((at, "present plan", "present-text"))
    for point in points:
        if point["key"] == chosen:
            named.append((places[point["key"]], f"chosen: {_short(point)}", "chosen-text"))
    for point in _loneliest([p for p in front if p["key"] != chosen], places):
        named.append((places[point["key"]], _short(point), "name-text"))
    held: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in places.values()]
    corners = [(scale.x(p["loss"]), scale.y(p["risk"])) for p in front]
    for (x0, y0), (x1, y1) in pairwise(corners):
        held += [(x0, y0 - 1, x1, y0 + 1), (x1 - 1, y0, x1 + 1, y1)]
    out = []
    for at, said, kind in named:
        said = clean(said, 44)
        for dx, dy in _ASIDE:
            box = _box(at, dx, dy, width_of(said, 10.5))
            free = not any(_cover(box, other) for other in held)
            if free and box[0] > LEFT and box[2] < RIGHT and box[1] > TOP and box[3] < BASE - 2:
                break
        else:
            if kind == "name-text":  # the mark still says it when pointed at
                continue
            dx, dy = (14.0, -8.0) if at[0] < (LEFT + RIGHT) / 2 else (-14.0, -8.0)
            box = _box(at, dx, dy, width_of(said, 10.5))
        held.append(box)
        anchor = "middle" if dx == 0 else "start" if dx > 0 else "end"
        out.append(text(at[0] + dx, at[1] + dy, said, kind, anchor=anchor))
    return out


def _short(point: Point) -> str:
    options = (point.get("candidate") or {}).get("options") or {}
    return short_name(str(point["label"]), options)


def _box(at: Place, dx: float, dy: float, width: float) -> Box:
    left = at[0] + dx - (width / 2 if dx == 0 else 0 if dx > 0 else width)
    return left, at[1] + dy - 9, left + width, at[1] + dy + 2


def _cover(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _loneliest(front: list[Point], places: dict[str, Place]) -> list[Point]:
    """Choose points of the front to name: its ends, then those farthest from all named ones."""
    if len(front) <= 2:
        return front
    chosen = [front[0], front[-1]]
    while len(chosen) < min(NAMES, len(front)):
        rest = [p for p in front if p not in chosen]
        far = [min(math.dist(places[p["key"]], places[q["key"]]) for q in chosen) for p in rest]
        if max(far) < 40:
            break
        chosen.append(rest[far.index(max(far))])
    return chosen


def _legend(
    points: list[Point], looks: dict[str, tuple[int, str, bool]], present: bool, chosen: bool
) -> list[Markup]:
    x, y, high = RIGHT + 24, TOP + 14, 20.0
    entries: list[tuple[Markup, str]] = []
    for kind, (colour, shape, outlined) in looks.items():
        css = f"mark mark-{colour}" + (" outlined" if outlined else "")
        entries.append((element("path", d=mark_path(shape), class_=css), kind))
    if any(not passed(point) for point in points):
        hollow = element("path", d=mark_path("o"), class_="mark mark-7 hollow")
        entries.append((hollow, "hollow: promises broken"))
    if len(points) > 1:
        entries.append((element("path", d="M-8 -4H0V4H8", class_="front"), "front: none is better"))
    if present:
        hairs = element("path", d="M-9 0h4M5 0h4M0 -9v4M0 5v4", class_="hairs")
        ring = joined([element("circle", r=5.0, class_="ring"), hairs])
        entries.append((ring, "present plan"))
    if chosen:
        entries.append((element("circle", r=6.5, class_="chosen"), "chosen"))
    parts = []
    for at, (mark, said) in enumerate(entries):
        place = f"translate({number(x)} {number(y + high * at)})"
        parts.append(element("g", mark, transform=place))
        parts.append(text(x + 14, y + high * at + 4, said, "label", width=WIDTH - x - 16))
    return [element("g", *parts, class_="legend", aria_hidden="true")]
