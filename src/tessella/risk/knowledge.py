"""How risk grows with what the intruder knows: linkage over the number of known variables."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from .._lazy import optional
from .._parameters import SEED, OneOf, Whole, parameters
from .._types import Name
from .aligned import align_tables
from .linkage import Linkage, link

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Knowledge", "link_by_knowledge"]

CHOICES = ("subsets", "first")


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """Linkage for each number of known variables.

    Parameters
    ----------
    columns : tuple
        The variables that could be known.
    linkages : tuple of (tuple of names, Linkage)
        Every set of variables that was tried, and what it links.
    complete : bool
        Whether every set of variables was tried.
    """

    columns: tuple[Name, ...]
    linkages: tuple[tuple[tuple[Name, ...], Linkage], ...]
    complete: bool

    @property
    def curve(self) -> pd.DataFrame:
        """For each number of variables the least, mean and largest share, and the worst set."""
        import pandas as pd

        lines = []
        for count in range(1, len(self.columns) + 1):
            tried = [(one.value, names) for names, one in self.linkages if len(names) == count]
            shares = [share for share, _ in tried]
            worst = max(tried, key=lambda pair: pair[0])
            lines.append(
                {
                    "known": count,
                    "sets": len(tried),
                    "least": min(shares),
                    "mean": float(np.mean(shares)),
                    "largest": worst[0],
                    "worst set": ", ".join(map(str, worst[1])),
                }
            )
        return pd.DataFrame(lines)

    def __str__(self) -> str:
        head = "share of records linked, by the number of variables the intruder knows"
        how = "all sets" if self.complete else "some of the sets"
        return f"{head} ({how}):\n{self.curve.to_string(index=False)}"

    __repr__ = __str__

    def picture(self) -> Any:
        """Draw the curve with its range; return a matplotlib figure."""
        figures = optional("matplotlib.figure", extra="plots", purpose="A picture")
        figure = figures.Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot()
        curve = self.curve
        axes.fill_between(
            curve["known"], 100 * curve["least"], 100 * curve["largest"], color="#0072B2", alpha=0.2
        )
        axes.plot(curve["known"], 100 * curve["mean"], color="#0072B2", marker="o")
        axes.set_xlabel("variables that the intruder knows")
        axes.set_ylabel("records linked, per cent (mean and range)")
        axes.set_ylim(0, 100)
        axes.spines[["top", "right"]].set_visible(False)
        return figure


@parameters(
    {"scale": "standardise"},
    choose=[OneOf(CHOICES)],
    most_sets=[Whole(1)],
    random_state=[SEED],
)
def link_by_knowledge(
    original: Any,
    masked: Any,
    *,
    known: Any = None,
    choose: str = "subsets",
    most_sets: int = 20,
    random_state: int | None = None,
    **options: Any,
) -> Knowledge:
    """Link with one known variable, with two, and so on.

    Parameters
    ----------
    original, masked
        The two tables, as for `link`.
    known : sequence of names, optional
        The variables that could be known; by default all that both tables have.
    choose : {"subsets", "first"}
        All sets of each size (at most `most_sets`, then drawn at random), or the first 1, 2, ...
        variables.
    most_sets : int
        How many sets of each size are tried at most.
    random_state : int or None
        Seed of the draw.
    **options
        For `link`: distance, id, standardise, sample and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk import link_by_knowledge
    >>> rng = np.random.default_rng(0)
    >>> original = rng.normal(size=(200, 3))
    >>> known = link_by_knowledge(original, original + 0.3 * rng.normal(size=(200, 3)))
    >>> known.curve["sets"].tolist()
    [3, 3, 1]
    >>> bool(known.curve["mean"].is_monotonic_increasing)
    True
    """
    reading = {key: options.pop(key) for key in ("id", "schema") if key in options}
    tables = align_tables(original, masked, known=known, **reading)
    columns = tables.columns
    generator = np.random.default_rng(random_state)
    sets: list[tuple[Name, ...]] = []
    complete = choose == "subsets"
    for count in range(1, len(columns) + 1):
        if choose == "first":
            sets.append(columns[:count])
        elif comb(len(columns), count) <= most_sets:
            sets += combinations(columns, count)
        else:
            complete = False
            drawn: set[tuple[int, ...]] = set()
            while len(drawn) < most_sets:
                places = generator.choice(len(columns), size=count, replace=False)
                drawn.add(tuple(sorted(int(place) for place in places)))
            sets += [tuple(columns[place] for place in places) for places in sorted(drawn)]
    linkages = tuple((names, link(tables, known=names, **options)) for names in sets)
    return Knowledge(columns=columns, linkages=linkages, complete=complete)
