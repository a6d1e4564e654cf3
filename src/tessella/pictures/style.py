"""How all pictures look: colours, type, and files that are the same byte for byte.

Colours are those of Okabe and Ito (2008), told apart with every common colour vision; shapes and
words say the same again, so that a print in black and white is enough.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from .._lazy import optional
from ..exceptions import BadOptionError
from ..io.writing import whole_or_nothing

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
    with whole_or_nothing(target, overwrite=True) as file:
        file.write(content.getvalue())


def plain(text: object) -> str:
    """Return text that no one takes for a formula."""
    return str(text).replace("$", r"\$")
