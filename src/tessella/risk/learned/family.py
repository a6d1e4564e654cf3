"""Distances with parameters: what all families share.

Every distance of a family is *linear in its parameters*: d(a, b) = Σ_p θ_p φ_p(a - b), with
*features* φ that depend on the records only. A record is linked when its own original beats every
other, so the parameters that link it form one convex cone: what learning builds on. Only k-maxitive
integrals are not: their features also depend on the order of the parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from ..._lazy import optional
from ..._types import Floats, Integers
from ...exceptions import BadOptionError
from ...kernels.linkage import count_by_scan

__all__ = ["Explanation", "Family", "as_numbers", "on_simplex"]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What a distance pays attention to.

    Parameters
    ----------
    columns : tuple of str
        The variables.
    importance : array of shape (d,)
        The share of each in the distance; the Shapley values where variables interact.
    interactions : array of shape (d, d)
        Above zero where two variables count more together than apart, below where one can stand
        for the other; zeros where the family has none.
    text : str
        What the numbers are.
    """

    columns: tuple[str, ...]
    importance: Floats
    interactions: Floats
    text: str

    def __str__(self) -> str:
        width = max(len(name) for name in self.columns)
        lines = [self.text]
        for place in np.argsort(-self.importance, kind="stable"):
            share = self.importance[place]
            bar = "█" * round(30 * max(share, 0))
            lines.append(f"  {self.columns[place]:<{width}}  {share:6.3f}  {bar}".rstrip())
        pairs = [
            (abs(self.interactions[k, other]), k, other)
            for k, other in combinations(range(len(self.columns)), 2)
            if abs(self.interactions[k, other]) > 1e-9
        ]
        if pairs:
            lines.append("strongest interactions:")
        for _, k, other in sorted(pairs, reverse=True)[:5]:
            strength = self.interactions[k, other]
            lines.append(f"  {self.columns[k]} with {self.columns[other]}: {strength:+.3f}")
        return "\n".join(lines)

    __repr__ = __str__

    def picture(self) -> Any:
        """Draw importance as bars and interactions as a map; return a matplotlib figure."""
        figures = optional("matplotlib.figure", extra="plots", purpose="A picture")
        d = len(self.columns)
        figure = figures.Figure(figsize=(9, 1.6 + 0.36 * d), layout="constrained")
        bars, grid = figure.subplots(1, 2)
        names = [name.replace("$", r"\$") for name in self.columns]
        bars.barh(np.arange(d), self.importance, color="#0072B2", height=0.7)
        bars.set_yticks(np.arange(d), names)
        bars.invert_yaxis()
        bars.set_xlabel("importance")
        bars.spines[["top", "right"]].set_visible(False)
        most = float(np.abs(self.interactions).max()) or 1.0
        image = grid.imshow(self.interactions, cmap="RdBu_r", vmin=-most, vmax=most)
        grid.set_xticks(np.arange(d), names, rotation=90)
        grid.set_yticks(np.arange(d), names)
        figure.colorbar(image, ax=grid, label="interaction")
        return figure


class Family(ABC):
    """A distance with parameters.

    See `WeightedMean`, `OWA`, `Bilinear`, `Choquet`, `MaxitiveChoquet`.
    """

    name: ClassVar[str]
    kernel_kind: int = -1
    linear: bool = True  # whether `slack` is linear
    monotone: bool = True  # whether a larger difference never makes the distance smaller

    @property
    @abstractmethod
    def d(self) -> int:
        """The number of variables."""

    @property
    @abstractmethod
    def theta(self) -> Floats:
        """The parameters as a vector; the distance is linear in it."""

    @abstractmethod
    def features(self, differences: Floats) -> Any:
        """Return φ of each row of differences a - b, shape (n, parameters), dense or sparse."""

    @abstractmethod
    def project(self, theta: Floats) -> Family:
        """Return the member of the family whose parameters are nearest to `theta`."""

    @abstractmethod
    def slack(self, theta: Floats) -> Floats:
        """Return numbers that are all at least 0 if and only if `theta` is feasible.

        Each is concave along every line, so the feasible steps of a line are one interval.
        """

    @abstractmethod
    def explain(self, columns: Sequence[Hashable] | None = None) -> Explanation:
        """Say what the distance pays attention to."""

    def repair(self, theta: Floats) -> Family:
        """Return some member near to `theta`, quickly; `theta` itself where it is feasible."""
        return self.project(theta)

    def total(self, theta: Floats) -> float:
        """Return what is 1 for a member: distances are compared, so their scale means nothing."""
        return float(theta.sum())

    def turn(self) -> Floats | None:
        """Return T such that d(a, b) = |aT - bT|², or None if there is none."""
        return None

    def scan(self) -> Callable[..., tuple[Integers, Integers]]:
        """Return the kernel that counts nearer originals where no tree can."""
        return partial(count_by_scan, self.kernel_kind, self.theta)

    def evaluate(self, differences: Any) -> Floats:
        """Return the distance of each row of differences a - b, shape (n,)."""
        rows = np.atleast_2d(np.asarray(differences, dtype=np.float64))
        self.refuse_other(rows.shape[1])
        out: Floats = np.asarray(self.features(rows) @ self.theta)
        return out

    def refuse_other(self, d: int) -> None:
        """Refuse records with another number of variables."""
        if d != self.d:
            raise BadOptionError(
                "the number of variables", d, f"{self.d}, as many as the distance has"
            )

    def named(self, columns: Sequence[Hashable] | None) -> tuple[str, ...]:
        """Name the variables, V1, V2, ... by default."""
        if columns is None:
            return tuple(f"V{k + 1}" for k in range(self.d))
        self.refuse_other(len(columns))
        return tuple(str(name) for name in columns)


def as_numbers(name: str, given: Any, dimensions: int, expected: str) -> Floats:
    """Read parameters, or say what is expected."""
    try:
        numbers = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadOptionError(name, given, expected) from None
    if numbers.ndim != dimensions or not numbers.size or not np.isfinite(numbers).all():
        raise BadOptionError(name, given, expected)
    numbers.flags.writeable = False
    return numbers


def on_simplex(v: Floats) -> Floats:
    """Return the nearest vector of weights: at least 0, with sum 1.

    References
    ----------
    J. Duchi et al. (2008) Efficient projections onto the l1-ball for learning in high dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk.learned.family import on_simplex
    >>> on_simplex(np.array([0.9, 0.5, -3.0]))
    array([0.7, 0.3, 0. ])
    """
    falling = np.sort(v)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(v) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    weights = np.maximum(v - excess[last], 0.0)
    out: Floats = weights / weights.sum()
    return out
