"""Elements of SVG as escaped markup: nothing of a table's text is taken for an element.

Numbers are written with one decimal, so that the same picture has the same bytes everywhere. There
is no style in elements: classes are coloured by `reports/templates/drawing.css`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from .writing import clean, fit

SIZE = 11.0  # of letters, as drawing.css has it
SMALL = 10.0
LONGEST = 4000  # characters of a description

Attribute = str | float | None


def number(value: float) -> str:
    """Write a coordinate: one decimal, none where it is whole; what is not finite is 0.

    Examples
    --------
    >>> from tessella.pictures.svg import number
    >>> number(3.0), number(-0.04), number(2.25), number(float("nan"))
    ('3', '0', '2.2', '0')
    """
    if not math.isfinite(value):
        return "0"
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def element(tag: str, *children: Markup | str, **attributes: Attribute) -> Markup:
    """Return an element; texts are escaped, `class_` is class, and `_` in names is "-"."""
    parts = []
    for name, value in attributes.items():
        if value is None:
            continue
        written = number(value) if isinstance(value, float | int) else clean(value, LONGEST)
        if name == "class_":  # of their own, whatever other classes a page has
            written = " ".join(f"draw-{one}" for one in written.split())
        if name == "d":
            written = str(value)
        parts.append(f' {name.rstrip("_").replace("_", "-")}="{escape(written)}"')
    inner = "".join(
        str(child) if isinstance(child, Markup) else str(escape(clean(child, LONGEST)))
        for child in children
    )
    if tag == "svg":  # names that keep their capital letter
        parts = [part.replace(" viewbox=", " viewBox=") for part in parts]
    closed = f">{inner}</{tag}>" if inner else "/>"
    return Markup(f"<{tag}{''.join(parts)}{closed}")


def picture(
    width: float, height: float, kind: str, says: str, *parts: Markup, links: bool = False
) -> Markup:
    """Return a picture that says in words what is seen.

    One with links is a group: a screen reader does not reach what is inside of an image.
    """
    return element(
        "svg", element("title", says), *parts, class_=f"picture {kind}",
        viewbox=f"0 0 {number(width)} {number(height)}", width=width, height=height,
        role="group" if links else "img", aria_label=says,
    )  # fmt: skip


def text(
    x: float, y: float, content: object, kind: str = "", *, anchor: str = "start",
    width: float | None = None, size: float = SIZE,
) -> Markup:  # fmt: skip
    """Return a text; one wider than `width` is cut, and its whole is shown when pointed at."""
    whole = clean(content, 200)
    shown = whole if width is None else fit(whole, width, size)
    title = [element("title", whole)] if shown != whole else []
    end = {"start": None, "middle": "middle", "end": "end"}[anchor]
    return element("text", *title, shown, x=x, y=y, class_=kind or None, text_anchor=end)


def line(x0: float, y0: float, x1: float, y1: float, kind: str) -> Markup:
    """Return a line."""
    return element("path", d=f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}", class_=kind)


def rect(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """Return a rectangle; nothing where it has no area."""
    if width <= 0 or height <= 0:
        return Markup("")
    return element("rect", x=x, y=y, width=width, height=height, class_=kind)


def rects(boxes: Iterable[tuple[float, float, float, float]], kind: str) -> Markup:
    """Return rectangles (x, y, width, height) as one path."""
    path = "".join(
        f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"
        for x, y, width, height in boxes
        if width > 0 and height > 0
    )
    return element("path", d=path, class_=kind) if path else Markup("")


def steps(edges: Sequence[float], heights: Sequence[float], base: float, kind: str) -> Markup:
    """Return the outline of bars, from `base` up to each height and back: edges are one more."""
    if not heights:
        return Markup("")
    path = f"M{number(edges[0])} {number(base)}"
    for right, top in zip(edges[1:], heights):
        path += f"V{number(top)}H{number(right)}"
    return element("path", d=f"{path}V{number(base)}", class_=kind)


def joined(parts: Iterable[Markup]) -> Markup:
    """Return elements one after the other."""
    return Markup("").join(parts)
