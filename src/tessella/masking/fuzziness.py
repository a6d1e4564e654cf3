"""Which m1 and m2? Given a largest loss or a least uncertainty, find them, and show the trade-off.

With the centres fixed, loss and uncertainty both rise with m2, so one bisection a value of m1 finds
where a wish is just met. Centres are found once for each m1; every further m2 is one sweep.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from .._lazy import optional
from .._parameters import check_parameters
from ..exceptions import BadTableError, CollapsedError, UnreachableError
from ..fuzzy.base import FuzzyClusterer, check_number
from ..fuzzy.drawing import crisp_groups, draw_keeping_k, find_centres
from ..fuzzy.field import Field, power_law
from .fuzzy_microaggregation import FuzzyMicroaggregation, Prepared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Line = Callable[[float], tuple[float, float]]  # from m2 to loss and bits

M1 = (1.0, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5)
SHOWN = (1.0, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0)
LOWEST, HIGHEST = 1e-3, 20.0  # of m2 - 1
STEPS = 20  # of a bisection: m2 - 1 to one part in 10^5


@dataclass(frozen=True, kw_only=True, eq=False)
class Fuzziness:
    """A choice of m1 and m2, and the trade-off from which it was taken.

    Attributes
    ----------
    m1, m2 : float
        The choice.
    loss : float
        Its expected information loss, in per cent.
    bits : float
        Its uncertainty: the mean entropy of a record's centre.
    trade_off : pandas.DataFrame
        Columns m1, m2, loss and bits over a grid, and the choice for each m1 (chosen is True).
    masker : FuzzyMicroaggregation
        A masker with the choice, not fitted.
    """

    m1: float
    m2: float
    loss: float
    bits: float
    trade_off: pd.DataFrame
    masker: FuzzyMicroaggregation

    def __str__(self) -> str:
        return (
            f"m1={self.m1:.4g}, m2={self.m2:.4g}: expected loss {self.loss:.2f} %, "
            f"{self.bits:.3f} bits of uncertainty about a record's centre"
        )

    def picture(self) -> Figure:
        """Draw loss against uncertainty, a line for each m1, the choice marked."""
        figures = optional("matplotlib.figure", extra="plots", purpose="A picture")
        figure: Figure = figures.Figure(figsize=(6.4, 4.4), layout="constrained")
        axes = figure.add_subplot()
        styles = cycle(zip(COLOURS, DASHES))
        for (m1, rows), (colour, dash) in zip(self.trade_off.groupby("m1"), styles):
            line = rows.sort_values("m2")
            axes.plot(line["bits"], line["loss"], dash, color=colour, label=f"m1 = {m1:g}")
        axes.plot([self.bits], [self.loss], "o", color="black", markersize=10, fillstyle="none")
        axes.annotate(
            f"m1 = {self.m1:.3g}, m2 = {self.m2:.3g}", (self.bits, self.loss),
            xytext=(10, -14), textcoords="offset points",
        )  # fmt: skip
        reach = max(2.0, 2 * self.bits)  # beyond, nobody would release anything
        shown = self.trade_off.loc[self.trade_off["bits"] <= reach, "loss"]
        axes.set_xlim(0, reach)
        axes.set_ylim(0, 1.1 * max(float(shown.max()), self.loss))
        axes.set_xlabel("uncertainty about a record's centre, bits")
        axes.set_ylabel("expected information loss, %")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        return figure


# Okabe and Ito's colours, and dashes that tell lines apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", "--", "-.", ":", "-", "--", "-.")


def choose_fuzziness(
    table: Any,
    masker: FuzzyMicroaggregation,
    *,
    max_loss: float | None = None,
    min_bits: float | None = None,
    m1: Sequence[float] | float = M1,
) -> Fuzziness:
    """Find m1 and m2 for a wish.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The original table.
    masker : FuzzyMicroaggregation
        With k (or c), blocks, strata, rules and so on; its m1 and m2 are replaced.
    max_loss : float, optional
        The largest expected information loss, in per cent: the uncertainty is made as large as it
        allows.
    min_bits : float, optional
        The least uncertainty, in bits: the loss is made as small as it allows.
    m1 : float or sequence of float
        The values that are tried; those that collapse are left out, with a warning.

    Returns
    -------
    Fuzziness

    Notes
    -----
    Expected, before a draw: loss is 100 sum w_i u_ic |x_i - v_c|^2 / SST, uncertainty the mean over
    records of -sum u_ic log2 u_ic, with u the memberships of m2 to the centres of m1. A wish
    that no pair meets is an error that says what comes nearest. With ``at_least_k=True`` both are
    those of a chain with a fixed seed, and rise with m2 up to the chain's own chance.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella import FuzzyMicroaggregation
    >>> from tessella.masking import choose_fuzziness
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = choose_fuzziness(X, FuzzyMicroaggregation(k=5), min_bits=1.0, m1=[1.05, 1.1])
    >>> round(found.bits, 3)
    1.0
    """
    if (max_loss is None) == (min_bits is None):
        raise BadTableError("Give one wish: max_loss=... in per cent, or min_bits=... in bits.")
    if not isinstance(masker, FuzzyMicroaggregation) or masker.lambda1 is not None:
        raise BadTableError(
            "Give a FuzzyMicroaggregation with m1 and m2, without lambda1, lambda2."
        )
    limit = check_number("max_loss" if min_bits is None else "min_bits",
                         max_loss if min_bits is None else min_bits, 0.0)  # fmt: skip
    tried = [check_number("m1", value, 1.0) for value in np.atleast_1d(np.asarray(m1, object))]
    check_parameters(masker)
    plan = masker._prepare(table)
    lines = _lines_keeping_k(plan, tried) if masker.at_least_k else _lines(plan, masker, tried)
    choices, shown = [], []
    for value, at in lines.items():
        shown += [(value, m2, *at(m2), False) for m2 in SHOWN]
        m2 = _bisect(at, limit, by_loss=min_bits is None)
        loss, bits = at(m2)
        met = loss <= limit * (1 + 1e-9) if min_bits is None else bits >= limit * (1 - 1e-6)
        choices.append((met, loss, bits, value, m2))
        shown.append((value, m2, loss, bits, met))
    frame = pd.DataFrame(shown, columns=["m1", "m2", "loss", "bits", "chosen"])
    if not any(met for met, *_ in choices):
        if min_bits is None:
            raise UnreachableError("max_loss", limit, float(frame["loss"].min()), "per cent")
        raise UnreachableError("min_bits", limit, float(frame["bits"].max()), "bits")
    possible = [c for c in choices if c[0]]
    best = max(possible, key=lambda c: c[2] if min_bits is None else -c[1])
    _, loss, bits, first, second = best
    return Fuzziness(
        m1=first, m2=second, loss=loss, bits=bits,
        trade_off=frame.sort_values(["m1", "m2"], ignore_index=True),
        masker=clone(masker).set_params(m1=first, m2=second),
    )  # fmt: skip


def _lines_keeping_k(plan: Prepared, values: Sequence[float]) -> dict[float, Line]:
    """Group once; return for each m1 a function of m2 that tells loss and bits of the chain."""
    chance = np.random.default_rng(0)
    groups = [crisp_groups(p.records, p.weights, k=plan.k, chance=chance) for p in plan.parts]

    def line(m1: float) -> Line:
        def at(m2: float) -> tuple[float, float]:
            drawings = [
                draw_keeping_k(
                    part.records, part.weights, crisp, power_law(m1), power_law(m2), k=plan.k,
                    chance=np.random.default_rng(1),
                )
                for part, crisp in zip(plan.parts, groups)
            ]  # fmt: skip
            lost = sum(float(p.weights @ d.expected_square) for p, d in zip(plan.parts, drawings))
            return plan.loss(lost), plan.per_record(sum(float(d.entropy.sum()) for d in drawings))

        return at

    return {value: line(value) for value in values}


def _lines(
    plan: Prepared, masker: FuzzyMicroaggregation, values: Sequence[float]
) -> dict[float, Line]:
    """Find centres for each m1; return for each a function of m2 that tells loss and bits."""
    lines = {}
    for value in values:
        model = clone(masker).set_params(m1=value)
        try:
            fits = [
                find_centres(p.records, p.weights, model._model(p), plan.k, p.c) for p in plan.parts
            ]
        except CollapsedError:
            warnings.warn(f"m1={value:g} collapses on this table; it is left out.", stacklevel=3)
            continue
        lines[value] = _line(plan, fits, masker.neglect)
    if not lines:
        raise BadTableError("Every m1 collapses on this table. Give smaller ones, such as [1.02].")
    return lines


def _line(plan: Prepared, fits: list[FuzzyClusterer], neglect: float) -> Line:
    fields = [Field.of(p.records, p.weights, f.n_clusters_) for p, f in zip(plan.parts, fits)]
    centres = [field.inward(f.cluster_centers_) for field, f in zip(fields, fits)]

    def at(m2: float) -> tuple[float, float]:
        lost, bits = 0.0, 0.0
        for part, field, inner in zip(plan.parts, fields, centres):
            outlook, _ = field.draw(inner, power_law(m2, neglect), np.full(field.n, -1.0))
            lost += float(part.weights @ outlook.square) / field.scale / field.scale
            bits += float(outlook.entropy.sum())
        return plan.loss(lost), plan.per_record(bits)

    return at


def _bisect(at: Line, limit: float, *, by_loss: bool) -> float:
    """Find the m2 at which loss or bits reach a limit: both rise with m2."""
    which = 0 if by_loss else 1
    low, high = LOWEST, HIGHEST
    if at(1 + high)[which] <= limit:
        return 1 + high
    if at(1 + low)[which] > limit:
        return 1.0 if by_loss else 1 + low
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        if at(1 + middle)[which] <= limit:
            low = middle
        else:
            high = middle
    return 1 + (low if by_loss else high)
