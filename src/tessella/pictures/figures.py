"""Pictures of groups; and how all pictures look: colours, type, the same bytes each time.

Colours are those of Okabe and Ito (2008), distinct with every common colour vision; shapes and
words say the same again, so that a print in black and white is enough.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from .._lazy import optional
from .._output import whole_or_nothing
from .._types import Integers
from ..exceptions import BadOptionError

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


def save(figure: Any, path: Any, *, private: bool = False, overwrite: bool = True) -> None:
    """Write a picture to a file, whole or not at all; the same picture gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A picture of this module.
    path : path
        Ends in .svg, .png or .pdf.
    private : bool, default False
        Whether only its owner may read the file.
    overwrite : bool, default True
        Whether a file that exists may be replaced.

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
    with whole_or_nothing(target, overwrite=overwrite, private=private) as file:
        file.write(content.getvalue())


def plain(text: object) -> str:
    """Return text that no one takes for a formula."""
    return str(text).replace("$", r"\$")


# Groups: how large they are, and how uncertain a fuzzy one leaves an intruder.

WIDEST = 40  # sizes that have a bar of their own


def group_sizes(grouped: Any, *, k: int | None = None) -> Any:
    """Draw how many groups have how many records.

    Parameters
    ----------
    grouped : Release, fitted masker, or labels of shape (n,) or (n, n_blocks)
        What has groups. Of a masker with blocks, sets of records that share all values count.
    k : int, optional
        Marked by a line; that of a masker or release if not given.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from tessella.pictures import group_sizes
    >>> figure = group_sizes([0, 0, 0, 1, 1, 1, 1], k=3)
    >>> figure.axes[0].get_xlabel()
    'records in a group'
    """
    sizes, asked = sizes_of(grouped)
    k = asked if k is None else k
    with styled():
        figure = new_figure(6.0, 3.2)
        axes = figure.add_subplot()
        if sizes.max() <= WIDEST:
            counts = np.bincount(sizes)
            shown = np.flatnonzero(counts)
            small = shown < (k or 0)
            for part, colour in ((~small, BLUE), (small, RED)):
                axes.bar(shown[part], counts[shown[part]], width=0.8, color=colour)
            first = min(1, int(shown.min()))
            axes.set_xlim(max(first, int(shown.min()) - 2) - 0.6, int(shown.max()) + 0.8)
        else:
            edges = np.unique(np.geomspace(max(sizes.min(), 1), sizes.max() + 1, 30).round())
            axes.hist(sizes, edges, color=BLUE, edgecolor="white", linewidth=0.5)
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.xaxis.set_minor_formatter(lambda value, _: f"{value:g}" if _two(value) else "")
        if k is not None:
            axes.axvline(k - 0.5, color=BLACK, linewidth=1.0, linestyle="--")
            axes.annotate(
                f"k = {k}", (k - 0.5, 1.0), xycoords=("data", "axes fraction"), xytext=(4, -2),
                textcoords="offset points", va="top", fontsize=9,
            )  # fmt: skip
        axes.set(xlabel="records in a group", ylabel="groups")
        axes.yaxis.get_major_locator().set_params(integer=True)
        below = int((sizes < (k or 0)).sum())
        title = f"{len(sizes):,} groups of {int(sizes.sum()):,} records, smallest {sizes.min()}"
        if below:
            title += f"; {below:,} below k"
        axes.set_title(title, fontsize=9, loc="right", color=RED if below else GREY)
    return figure


def _two(value: float) -> bool:
    lead = value / 10 ** np.floor(np.log10(value))
    return bool(np.isclose(lead, 2) or np.isclose(lead, 5))


def sizes_of(grouped: Any) -> tuple[Integers, int | None]:
    """Return the sizes of groups, and the k that was asked for."""
    plan = getattr(grouped, "plan", None)
    if plan is not None and hasattr(grouped, "labels"):
        if not grouped.labels:
            raise BadOptionError(
                "grouped", "a release that was saved", "one that still has its groups"
            )
        return _count(np.column_stack(grouped.labels)), int(plan.k)
    if hasattr(grouped, "joint_group_sizes_"):
        k = getattr(grouped, "k", None)
        return np.asarray(grouped.joint_group_sizes_, dtype=np.int64), k
    if hasattr(grouped, "labels_"):
        return _count(np.asarray(grouped.labels_)), getattr(grouped, "k", None)
    try:
        labels = np.asarray(grouped)
    except (TypeError, ValueError):
        labels = np.empty(0)
    if labels.ndim not in (1, 2) or not labels.size or labels.dtype.kind not in "iu":
        raise BadOptionError(
            "grouped", type(grouped).__name__,
            "a release, a fitted masker, or the number of each record's group",
        )  # fmt: skip
    return _count(labels), None


def _count(labels: Integers) -> Integers:
    _, sizes = np.unique(labels.reshape(len(labels), -1), axis=0, return_counts=True)
    return np.asarray(sizes, dtype=np.int64)


def membership_uncertainty(masker: Any, *, block: int = 0) -> Any:
    """Draw how uncertain an intruder is who knows everything but the draw.

    Parameters
    ----------
    masker : FuzzyMicroaggregation, fitted
        Or an `Uncertainty`, one of its `uncertainty_`.
    block : int, default 0
        Which block, where there are several.

    Returns
    -------
    matplotlib.figure.Figure
        Left, the chance that he names a record, as the share of records with at most that chance;
        right, of how many centres at equal chances the record's centre is as uncertain.
    """
    known = getattr(masker, "uncertainty_", None)
    if known is None:
        known, block = [masker], 0
    if not 0 <= block < len(known) or not hasattr(known[block], "naming_chance"):
        raise BadOptionError(
            "masker", type(masker).__name__,
            f"a fitted FuzzyMicroaggregation, and a block from 0 to {len(known) - 1}",
        )  # fmt: skip
    found = known[block]
    with styled():
        figure = new_figure(7.6, 3.2)
        left, right = figure.subplots(1, 2)
        chance = np.sort(np.asarray(found.naming_chance, dtype=float))
        # Quantiles, and not a step for each record: the picture shows nobody.
        shares = np.linspace(0, 1, min(101, max(len(chance) // 5, 3)))
        left.plot(np.quantile(chance, shares), 100 * shares, color=BLUE, linewidth=1.6)
        limit = 1 / found.k
        left.axvline(limit, color=BLACK, linewidth=1.0, linestyle="--")
        covered = 100 * found.share_protected
        left.annotate(
            f"at most 1/k = {limit:.3g}: {covered:.0f} % of records", (limit, 4), xytext=(5, 0),
            textcoords="offset points", fontsize=9,
        )  # fmt: skip
        left.set(xlim=(0, max(1.02 * float(chance.max()), 1.6 * limit)), ylim=(0, 102))
        left.set(xlabel="chance to be named, at most", ylabel="per cent of records")
        alike = 2.0 ** np.asarray(found.entropy, dtype=float)
        top = float(np.quantile(alike, 0.99))
        edges = np.linspace(1, max(top, 2.0), 21)
        share = 100 * np.histogram(np.clip(alike, 1, edges[-1]), edges)[0] / len(alike)
        right.bar(edges[:-1], share, np.diff(edges), align="edge", color=LIGHT, edgecolor="white")
        middle = float(np.median(alike))
        right.axvline(middle, color=BLUE, linewidth=1.6)
        right.annotate(
            f"half of the records: {middle:.3g} or more", (middle, 1.0),
            xycoords=("data", "axes fraction"), xytext=(5, -2), textcoords="offset points",
            va="top", fontsize=9,
        )  # fmt: skip
        right.set_xlabel("centres that are as good as equally likely")
        right.set_ylabel("per cent of records")
    return figure
