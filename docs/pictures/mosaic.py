"""Draws mosaic.svg: records before, and what is released for them.

python docs/pictures/mosaic.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tessella.datasets import make_business_survey
from tessella.masking import Microaggregation
from tessella.pictures import save
from tessella.pictures.figures import BLUE, GREY, RED, new_figure, styled

K = 5


def draw() -> Any:
    """Return the figure: two panels with the same axes."""
    firms = make_business_survey(140, self_employed=0, random_state=3)[["employees", "turnover"]]
    X = np.log10(firms.to_numpy(dtype=float) + 1) + np.random.default_rng(0).normal(
        0, 0.02, (140, 2)
    )
    masker = Microaggregation(k=K, random_state=0).fit(X)
    groups = masker.labels_
    centres = np.array([X[groups == g].mean(axis=0) for g in range(groups.max() + 1)])
    sizes = np.bincount(groups)
    with styled():
        figure = new_figure(8.4, 3.6)
        before, after = figure.subplots(1, 2, sharex=True, sharey=True)
        before.plot(*X.T, "o", color=BLUE, markersize=4, alpha=0.8)
        before.set_title(f"Before: {len(X)} firms, each recognisable", loc="left")
        ends = np.stack([X, centres[groups], np.full_like(X, np.nan)], axis=1).reshape(-1, 2)
        after.plot(*ends.T, color=GREY, linewidth=0.7)
        after.scatter(*centres.T, s=9 * sizes, color=RED, zorder=3)
        shared = f"Released: {len(centres)} records, each of {sizes.min()} to {sizes.max()} firms"
        after.set_title(shared, loc="left")
        for axes in (before, after):
            axes.set_xlabel("employees")
            axes.set_xticks(np.log10([2, 6, 21, 101]), ["1", "5", "20", "100"])
            axes.set_yticks([5, 6, 7], ["100,000", "1 million", "10 million"])
        before.set_ylabel("turnover, euros")
    return figure


if __name__ == "__main__":
    save(draw(), Path(__file__).with_name("mosaic.svg"))
