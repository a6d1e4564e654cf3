"""How many records hold, break or leave open each rule, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._lazy import optional

if TYPE_CHECKING:
    from .confront import Confrontation

__all__ = ["picture"]

# Blue, orange and grey of Okabe and Ito (2008): distinct with every common colour vision, and
# in print by their lightness.
_PARTS = (("holds", "#0072B2"), ("unknown", "#BBBBBB"), ("breaks", "#D55E00"))


def picture(confrontation: Confrontation) -> Any:
    """Draw a bar for each rule; return a `matplotlib.figure.Figure`, for `savefig("x.svg")`.

    The figure belongs to nobody: it opens no window and needs no `pyplot`.
    """
    figures = optional("matplotlib.figure", extra="plots", purpose="A picture")
    summary = confrontation.summary()
    count = len(summary)
    figure = figures.Figure(figsize=(8, 1.4 + 0.32 * max(count, 1)), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(count)
    start = np.zeros(count)
    n = max(confrontation.n_records, 1)
    for part, colour in _PARTS:
        share = 100 * summary[part].to_numpy() / n
        axes.barh(places, share, left=start, color=colour, label=part, height=0.7)
        start += share
    for place, breaks in zip(places, summary["breaks"]):
        if breaks:  # a few among a million are no wider than a hair, and matter
            axes.annotate(
                f"{breaks:,}", (101, place), va="center", annotation_clip=False, color=_PARTS[2][1]
            )
    names = [_short(f"{name}: {text}") for name, text in zip(summary["rule"], summary["text"])]
    axes.set_yticks(places, [name.replace("$", r"\$") for name in names])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel(f"per cent of {confrontation.n_records:,} records; right: records that break")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    if count:
        figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
