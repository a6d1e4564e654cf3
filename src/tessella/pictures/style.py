"""How all pictures look: colours, type, and files that are the same byte for byte.

Colours are those of Okabe and Ito (2008), told apart with every common colour vision; shapes and
words say the same again, so that a print in black and white is enough.

Names beside marks that cover neither each other nor the marks.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .._lazy import optional
from ..exceptions import BadOptionError

__all__ = [
    "BLACK",
    "BLUE",
    "COLOURS",
    "GREEN",
    "GREY",
    "LIGHT",
    "MARKERS",
    "ORANGE",
    "PINK",
    "RED",
    "SKY",
    "new_figure",
    "place_labels",
    "plain",
    "save",
    "styled",
]

Box = tuple[float, float, float, float]
Hair = tuple[tuple[float, float], tuple[float, float]]

SIZE = 8.5
# Where a name may stand, seen from its mark, in points; the nearest that is free is taken.
DIRECTIONS = [
    (np.cos(angle) * reach, np.sin(angle) * reach)
    for reach in (10, 18, 28, 40, 55, 72, 92, 115, 140)
    for angle in np.deg2rad([40, 20, 60, 0, -20, 90, -40, 140, 160, 120, 180, -60, -140, -160, -90])
]


def place_labels(
    figure: Any,
    axes: Any,
    texts: Sequence[tuple[float, float, str]],
    *,
    others: Sequence[tuple[float, float]],
    line: Sequence[tuple[float, float]] = (),
) -> None:
    """Write a name beside each mark, with a hair line where it stands off.

    Parameters
    ----------
    figure, axes
        What is drawn on; limits and scales must be as they will be.
    texts : sequence of (x, y, text)
        The marks that have a name, in data coordinates.
    others : sequence of (x, y)
        All marks, which no name should cover.
    line : sequence of (x, y)
        The corners of a line of steps, level first, which names should rather not cross.
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
            cost += sum(_crosses(hair, other) for hair, other in _meetings(at, box, held, hairs))
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
    end = (
        min(max(float(at[0]), box[0]), box[2]),
        min(max(float(at[1]), box[1]), box[3]),
    )
    return (float(at[0]), float(at[1])), end


def _meetings(at: Any, box: Box, held: list[Box], hairs: list[Hair]) -> list[tuple[Hair, Box]]:
    """Return which hair lines could cross which names."""
    own = _hair(at, box)
    return [*((own, other) for other in held), *((hair, box) for hair in hairs)]


def _crosses(hair: Hair, box: Box) -> float:
    """Return a cost if a hair line runs through a name; looked at in steps."""
    (x0, y0), (x1, y1) = hair
    for step in np.linspace(0.0, 1.0, 25):
        x, y = x0 + step * (x1 - x0), y0 + step * (y1 - y0)
        if box[0] < x < box[2] and box[1] < y < box[3]:
            return 2.0
    return 0.0


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


BLACK, GREY, LIGHT = "#000000", "#767676", "#D0D0D0"
BLUE, ORANGE, RED = "#0072B2", "#E69F00", "#D55E00"
GREEN, PINK, SKY = "#009E73", "#CC79A7", "#56B4E9"
COLOURS = (BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h", "p")

STYLE: dict[str, Any] = {
    "font.size": 10.0,
    "axes.labelsize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.edgecolor": "#404040",
    "axes.formatter.useoffset": False,
    "legend.frameon": False,
    "svg.fonttype": "none",  # letters stay letters: searchable, and small
    "svg.hashsalt": "tessella",
    "path.simplify": True,
}
FORMATS = (".svg", ".png", ".pdf")


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Use the style of tessella, whatever a user has set."""
    matplotlib = optional("matplotlib", extra="plots", purpose="A picture")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure that belongs to nobody: it opens no window and needs no `pyplot`."""
    figures = optional("matplotlib.figure", extra="plots", purpose="A picture")
    return figures.Figure(figsize=(width, height), layout="constrained", facecolor="white")


def save(figure: Any, path: Any) -> None:
    """Write a picture to a file, whole or not at all; the same picture gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A picture of this module.
    path : path
        Ends in .svg, .png or .pdf.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tessella.pictures import group_sizes, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "sizes.svg"
    ...     save(group_sizes([0, 0, 0, 1, 1, 1, 1]), file)
    ...     b"<svg" in file.read_bytes()
    True
    """
    target = Path(path)
    if target.suffix not in FORMATS:
        raise BadOptionError("path", str(path), f"a name that ends in {', '.join(FORMATS)}")
    nothing = {".svg": {"Date": None, "Creator": None}, ".pdf": {"CreationDate": None}}
    content = BytesIO()
    with styled():
        figure.savefig(
            content,
            format=target.suffix[1:],
            dpi=200,
            metadata=nothing.get(target.suffix, {"Software": None}),
        )
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with open(beside, "xb") as file:
            file.write(content.getvalue())
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def plain(text: object) -> str:
    """Return text that no one takes for a formula."""
    return str(text).replace("$", r"\$")
