"""Which m1 and m2? Given a largest loss or a least uncertainty, find them, and show the trade-off.

With the centres fixed, loss and uncertainty both rise with m2, so one bisection a value of m1 finds
where a wish is just met. Centres are found once for each m1; every further m2 is one sweep. With
entropy the same is true of 1 / lambda1 and 1 / lambda2.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimator import clone
from .._lazy import optional
from .._parameters import check_parameters
from ..exceptions import BadTableError, CollapsedError, UnreachableError
from ..fuzzy.base import FuzzyClusterer, check_number
from ..fuzzy.drawing import crisp_groups, draw_keeping_k
from ..fuzzy.field import Field
from .fuzzy_groups import FuzzyOptions, FuzzyPart
from .fuzzy_microaggregation import FuzzyMicroaggregation, Prepared

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Line = Callable[[float], tuple[float, float]]  # from m2 to loss and bits

M1 = (1.0, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5)
SHOWN = (1.0, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0)
SHOWN_ENTROPY = (1e4, 3e3, 1e3, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
LOWEST, HIGHEST = 1e-3, 20.0  # of m2 - 1
SHARPEST, MILDEST = 1e6, 1e-3  # of lambda2
STEPS = 20  # of a bisection: m2 - 1 to one part in 10^5
SECOND = {"m1": "m2", "lambda1": "lambda2"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Fuzziness:
    """A choice of m1 and m2, and the trade-off from which it was taken.

    Attributes
    ----------
    m1, m2, lambda1, lambda2 : float or None
        The choice: the exponents, or the two lambdas of entropy.
    loss : float
        Its expected information loss, in per cent.
    bits : float
        Its uncertainty: the mean entropy of a record's centre.
    trade_off : pandas.DataFrame
        Columns m1, m2 (or lambda1, lambda2), loss and bits over a grid, and the choice for each
        m1 (chosen is True).
    masker : FuzzyMicroaggregation
        A masker with the choice, not fitted.
    """

    m1: float | None = None
    m2: float | None = None
    lambda1: float | None = None
    lambda2: float | None = None
    loss: float
    bits: float
    trade_off: pd.DataFrame
    masker: FuzzyMicroaggregation

    @property
    def chosen(self) -> dict[str, float]:
        """The two parameters by name."""
        names = ("m1", "m2", "lambda1", "lambda2")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def __str__(self) -> str:
        named = ", ".join(f"{name}={value:.4g}" for name, value in self.chosen.items())
        return (
            f"{named}: expected loss {self.loss:.2f} %, "
            f"{self.bits:.3f} bits of uncertainty about a record's centre"
        )

    def picture(self) -> Figure:
        """Draw loss against uncertainty, a line for each m1, the choice marked."""
        figures = optional("matplotlib.figure", extra="plots", purpose="A picture")
        figure: Figure = figures.Figure(figsize=(6.4, 4.4), layout="constrained")
        axes = figure.add_subplot()
        styles = cycle(zip(COLOURS, DASHES))
        first, second = self.chosen
        for (value, rows), (colour, dash) in zip(self.trade_off.groupby(first), styles):
            line = rows.sort_values(second)
            label = f"{first} = {value:g}"
            axes.plot(line["bits"], line["loss"], dash, color=colour, label=label)
        axes.plot([self.bits], [self.loss], "o", color="black", markersize=10, fillstyle="none")
        axes.annotate(
            ", ".join(f"{name} = {value:.3g}" for name, value in self.chosen.items()),
            (self.bits, self.loss),
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
    lambda1: Sequence[float] | float | None = None,
) -> Fuzziness:
    """Find m1 and m2, or lambda1 and lambda2, for a wish.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The original table.
    masker : FuzzyMicroaggregation
        With k (or c), blocks, strata, rules and so on; its m1 and m2 are replaced, or its lambda1
        and lambda2 if it has them.
    max_loss : float, optional
        The largest expected information loss, in per cent: the uncertainty is made as large as it
        allows.
    min_bits : float, optional
        The least uncertainty, in bits: the loss is made as small as it allows.
    m1 : float or sequence of float
        The values that are tried; those that collapse are left out, with a warning.
    lambda1 : float or sequence of float, optional
        The same for entropy, in place of m1; by default that of the masker, if it has one.

    Returns
    -------
    Fuzziness

    Notes
    -----
    Expected, before a draw: loss is 100 sum w_i u_ic |x_i - v_c|^2 / SST, uncertainty the mean over
    records of -sum u_ic log2 u_ic, with u the memberships of m2 to the centres of m1. A wish
    that no pair meets is an error that says what comes nearest. With entropy, 1 / lambda2 takes
    the place of m2 - 1. Under rules, centres are those that keep them, before they are repaired to
    whole numbers and other rules than linear ones and products. With ``at_least_k=True`` both are
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
    import pandas as pd

    if (max_loss is None) == (min_bits is None):
        raise BadTableError("Give one wish: max_loss=... in per cent, or min_bits=... in bits.")
    if not isinstance(masker, FuzzyMicroaggregation):
        raise BadTableError("Give a FuzzyMicroaggregation, for example FuzzyMicroaggregation(5).")
    if lambda1 is None:
        lambda1 = masker.lambda1
    entropy = lambda1 is not None
    first, second = ("lambda1", "lambda2") if entropy else ("m1", "m2")
    limit = check_number("max_loss" if min_bits is None else "min_bits",
                         max_loss if min_bits is None else min_bits, 0.0)  # fmt: skip
    tried = [
        check_number(first, value, 0.0 if entropy else 1.0, open_end=entropy)
        for value in np.atleast_1d(np.asarray(lambda1 if entropy else m1, object))
    ]
    masker = clone(masker).set_params(**{first: tried[0], second: tried[0]})
    check_parameters(masker)
    plan = masker._prepare(table)
    options = [plan.options.with_(first, value) for value in tried]
    find = _lines_keeping_k if masker.at_least_k else _lines
    lines = find(plan, dict(zip(tried, options)), first)
    choices, shown = [], []
    for value, line in lines.items():
        shown += [(value, x, *line(x), False) for x in (SHOWN_ENTROPY if entropy else SHOWN)]
        found = _bisect(line, limit, by_loss=min_bits is None, entropy=entropy)
        loss, bits = line(found)
        met = loss <= limit * (1 + 1e-9) if min_bits is None else bits >= limit * (1 - 1e-6)
        choices.append((met, loss, bits, value, found))
        shown.append((value, found, loss, bits, met))
    frame = pd.DataFrame(shown, columns=[first, second, "loss", "bits", "chosen"])
    if not any(met for met, *_ in choices):
        if min_bits is None:
            raise UnreachableError("max_loss", limit, float(frame["loss"].min()), "per cent")
        raise UnreachableError("min_bits", limit, float(frame["bits"].max()), "bits")
    possible = [c for c in choices if c[0]]
    best = max(possible, key=lambda c: c[2] if min_bits is None else -c[1])
    _, loss, bits, one, other = best
    pair = {first: one, second: other}
    return Fuzziness(
        loss=loss, bits=bits, trade_off=frame.sort_values([first, second], ignore_index=True),
        masker=clone(masker).set_params(**pair), **pair,
    )  # fmt: skip


def _lines_keeping_k(
    plan: Prepared, tried: Mapping[float, FuzzyOptions], name: str
) -> dict[float, Line]:
    """Group once; return for each m1 a function of m2 that tells loss and bits of the chain."""
    chance, parts = np.random.default_rng(0), plan.parts
    groups = [crisp_groups(p.records, p.weights, k=plan.k, chance=chance) for p in parts]
    second = SECOND[name]

    def line(options: FuzzyOptions) -> Line:
        def at(value: float) -> tuple[float, float]:
            law = options.with_(second, value).second
            drawings = [
                draw_keeping_k(
                    part.records, part.weights, crisp, options.first, law, k=plan.k,
                    chance=np.random.default_rng(1), system=part.system,
                )
                for part, crisp in zip(parts, groups)
            ]  # fmt: skip
            lost = sum(float(p.weights @ d.expected_square) for p, d in zip(parts, drawings))
            return plan.loss(lost), plan.per_record(sum(float(d.entropy.sum()) for d in drawings))

        return at

    return {value: line(options) for value, options in tried.items()}


def _lines(plan: Prepared, tried: Mapping[float, FuzzyOptions], name: str) -> dict[float, Line]:
    """Find centres for each m1; return for each a function of m2 that tells loss and bits."""
    lines, parts = {}, plan.parts
    for value, options in tried.items():
        try:
            fits = [part.fit(options, plan.k) for part in parts]
        except CollapsedError:
            warnings.warn(
                f"{name}={value:g} collapses on this table; it is left out.", stacklevel=3
            )
            continue
        lines[value] = _line(plan, parts, fits, options, SECOND[name])
    if not lines:
        crisper = "smaller ones, such as [1.02]" if name == "m1" else "larger ones"
        raise BadTableError(f"Every {name} collapses on this table. Give {crisper}.")
    return lines


def _line(
    plan: Prepared, parts: list[FuzzyPart], fits: list[FuzzyClusterer], options: FuzzyOptions,
    second: str,
) -> Line:  # fmt: skip
    fields = [Field.of(p.records, p.weights, f.n_clusters_) for p, f in zip(parts, fits)]
    centres = [field.inward(f.cluster_centers_) for field, f in zip(fields, fits)]

    def at(value: float) -> tuple[float, float]:
        lost, bits = 0.0, 0.0
        law = options.with_(second, value).second
        for part, field, inner in zip(parts, fields, centres):
            outlook, _ = field.draw(inner, field.law(law), np.full(field.n, -1.0))
            lost += float(part.weights @ outlook.square) / field.scale / field.scale
            bits += float(outlook.entropy.sum())
        return plan.loss(lost), plan.per_record(bits)

    return at


def _bisect(at: Line, limit: float, *, by_loss: bool, entropy: bool) -> float:
    """Find the m2, or lambda2, at which loss or bits reach a limit: both rise with fuzziness."""
    which = 0 if by_loss else 1
    low, high = (1 / SHARPEST, 1 / MILDEST) if entropy else (LOWEST, HIGHEST)

    def parameter(fuzziness: float) -> float:
        return 1 / fuzziness if entropy else 1 + fuzziness

    if at(parameter(high))[which] <= limit:
        return parameter(high)
    if at(parameter(low))[which] > limit:
        return parameter(low) if entropy or not by_loss else 1.0
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        if at(parameter(middle))[which] <= limit:
            low = middle
        else:
            high = middle
    return parameter(low if by_loss else high)
