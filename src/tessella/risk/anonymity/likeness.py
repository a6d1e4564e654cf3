"""Beta-likeness: how much an intruder's belief in a confidential value gains from a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._parameters import OneOf, parameters
from ..._types import Floats, Name
from ...schema import Schema
from .homogeneity import Homogeneity, read_groups
from .keys import RENAMED, Spread

KINDS = ("basic", "enhanced")


@dataclass(frozen=True, kw_only=True, repr=False)
class Likeness(Homogeneity):
    """The gain of belief in confidential values; `worst` is the least beta that holds.

    Besides the fields of `Homogeneity`:

    Parameters
    ----------
    beyond : float
        The share of records in classes where a value gains more than -ln p of its share p in the
        table: no beta of the enhanced kind holds there.
    """

    beyond: float


@parameters(RENAMED, kind=[OneOf(KINDS)])
def beta_likeness(
    masked: Any,
    confidential: Sequence[Name] | Name | None = None,
    *,
    known: Sequence[Name] | Name | None = None,
    groups: Any = None,
    kind: str = "basic",
    schema: Schema | None = None,
) -> Likeness:
    """Measure how much more frequent a confidential value is in a class than in the table.

    Parameters
    ----------
    masked, confidential, known, groups, schema
        As in `l_diversity`.
    kind : {"basic", "enhanced"}
        Whether the gain of a value is bounded by beta alone, or by -ln p, too, so that a frequent
        value may gain less.

    Returns
    -------
    Likeness
        `worst` is the least beta that holds; infinite where no enhanced one does.

    Notes
    -----
    A value of share p in the table and q > p in a class gains (q - p) / p, the relative growth of
    the belief that it is the person's. Basic β-likeness: (q - p) / p <= β for every class and
    value; enhanced: (q - p) / p <= min(β, -ln p). A share that falls is no gain.

    References
    ----------
    J. Cao and P. Karras (2012) Publishing microdata with a robust privacy guarantee. Proceedings
    of the VLDB Endowment 5(11), 1388-1399.

    Examples
    --------
    "yes" has a share of 1/4 in the table and of 1/2 in the first class: it gains 1.

    >>> import pandas as pd
    >>> from tessella.risk import beta_likeness
    >>> release = pd.DataFrame({"age": [30, 30, 40, 40], "ill": ["yes", "no", "no", "no"]})
    >>> found = beta_likeness(release, "ill")
    >>> found.worst, found.by_class.round(3)
    (1.0, array([1.   , 0.333]))
    >>> float(beta_likeness(release, "ill", kind="enhanced").worst)  # 1/3 > -ln 3/4
    inf
    """
    read = read_groups(masked, confidential, known=known, groups=groups, schema=schema)
    figures: dict[Name, Floats] = {}
    beyond = np.zeros(int(read.classes.max()) + 1, dtype=bool)
    for name, spread in read.spreads.items():
        gain, passes = _gains(spread)
        beyond |= passes
        figures[name] = np.where(passes, np.inf, gain) if kind == "enhanced" else gain
    return read.result(
        Likeness, f"{kind} beta", figures, low=False, beyond=float(beyond[read.classes].mean())
    )


def _gains(spread: Spread) -> tuple[Floats, Any]:
    """Return for each class the largest gain, and whether one is above -ln p."""
    n_classes, n = len(spread.sizes), len(spread.values)
    total = np.bincount(spread.values)[spread.value]
    # (q - p) / p = (c / s) / (t / n) - 1 = (c n - s t) / (s t), whole numbers but for one division.
    size = spread.sizes[spread.place]
    gain = np.maximum((spread.count * n - size * total) / (size * total), 0.0)
    most = np.zeros(n_classes)
    np.maximum.at(most, spread.place, gain)
    limit = -np.log(total / n)
    passes = np.bincount(spread.place, weights=gain > limit * (1 + 1e-12), minlength=n_classes) > 0
    return most, passes
