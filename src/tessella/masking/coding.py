"""Top and bottom coding: the extreme numbers of a column become one."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._parameters import Number, OneOf
from .._types import Floats, Name
from ..exceptions import BadOptionError, GroupSizeError
from ..grouping.base import check_k
from .base import Declared, MaskedColumns, Perturbation, rows_of_strata
from .registry import Method, Options, Tuned, register
from .selection import by_column


@dataclass(eq=False, repr=False)
class TopBottomCoding(Perturbation):
    """Replace the largest and the smallest numbers of each column.

    Parameters
    ----------
    top : float, mapping of name to float, or None, default 0.01
        Where the largest numbers begin, for all columns or for those named: a share of the
        records, or with ``by="value"`` the threshold itself. None codes nothing at the top.
    bottom : float, mapping of name to float, or None, default None
        The same for the smallest numbers.
    by : {"quantile", "value"}, default "quantile"
        Whether `top` and `bottom` are shares of records, or values.
    replace : {"threshold", "mean"}, default "threshold"
        What extreme numbers become: the threshold, or the mean of those that are coded together
        (sums and means then stay).
    k : int, default 3
        With ``replace="mean"``, fewer numbers than this are never coded together: a mean of one
        or two would tell them. Such a table is refused.
    columns, strata, weights, schema, round_integers
        As for `Microaggregation`; shares and means are those of the stratum. **Numbers that are
        not extreme are released as they are.**
    rules, random_state
        As for `NoiseAddition`; nothing here is random.

    Attributes
    ----------
    coded_ : dict of name to tuple (bottom, top)
        How many numbers of each column were coded; 0 where many numbers equal the largest.
    loss_, column_loss_, changed_, restoration_, columns_, untouched_
        As for `NoiseAddition`.

    Notes
    -----
    By quantile, the threshold of the top is the smallest number of the stratum such that the
    numbers up to it have a share (of weights) of at least 1 - top; numbers above it are coded,
    which are at most that share. The bottom mirrors this. k-anonymity is not claimed.

    References
    ----------
    A. Hundepool et al. (2012). Statistical disclosure control, section 3.3. Wiley.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.masking import TopBottomCoding
    >>> table = pd.DataFrame({"income": [3, 1, 900, 4, 5, 2, 60, 6, 7, 8]})
    >>> masker = TopBottomCoding(top=0.2, bottom=0.1)
    >>> masker.fit_transform(table)["income"].tolist()
    [3, 2, 8, 4, 5, 2, 8, 6, 7, 8]
    >>> masker.coded_
    {'income': (1, 2)}
    """

    _parameters: ClassVar[Declared] = {
        "by": [OneOf(("quantile", "value"))],
        "replace": [OneOf(("threshold", "mean"))],
    }

    top: Any = 0.01
    _: KW_ONLY
    bottom: Any = None
    by: str = "quantile"
    replace: str = "threshold"
    k: int = 3

    def _perturb(self, read: MaskedColumns) -> Floats:
        if self.top is None and self.bottom is None:
            raise BadOptionError("top", None, "top or bottom, or nothing would be coded")
        values = read.original.values
        out = values.copy()
        k = check_k(self.k, len(values)) if self.replace == "mean" else 1
        tops, bottoms = self._ends("top", read), self._ends("bottom", read)
        self.coded_: dict[Name, tuple[int, int]] = {}
        strata = rows_of_strata(read.chosen.strata.ids)
        for j, name in enumerate(read.chosen.masked):
            top, bottom = tops.get(name), bottoms.get(name)
            self._refuse_crossing(name, top, bottom)
            counts = [0, 0]
            for rows, stratum in zip(strata, read.chosen.strata.names, strict=True):
                known = rows[read.known[rows, j]]
                for end, wish, sign in ((0, bottom, -1.0), (1, top, 1.0)):
                    if wish is None or len(known) == 0:
                        continue
                    x, w = sign * values[known, j], read.chosen.weights[known]
                    limit = _quantile(x, w, wish) if self.by == "quantile" else sign * wish
                    beyond = x > limit
                    count = int(beyond.sum())
                    if 0 < count < k:
                        raise GroupSizeError(
                            f"Only {count} numbers of {name!r} in stratum {stratum!r} would be "
                            f"coded together, and k={k}: their mean would tell them. Code more, "
                            'merge strata, or give replace="threshold".'
                        )
                    if count and self.replace == "mean":
                        limit = np.average(x[beyond], weights=w[beyond])
                    out[known[beyond], j] = sign * limit
                    counts[end] += count
            self.coded_[name] = (counts[0], counts[1])
        return out

    def _ends(self, which: str, read: MaskedColumns) -> dict[Name, float]:
        """Return where an end begins, for each column in which it is coded."""
        wish, masked = getattr(self, which), read.chosen.masked
        if wish is None:
            return {}
        given = by_column(wish, masked, who=which)
        for name, end in given.items():
            if not Number().accepts(end):
                raise BadOptionError(which, end, "a finite number, or None")
            if self.by == "quantile" and not 0 < end < 1:
                expected = "a share of the records, more than 0 and less than 1; or None"
                raise BadOptionError(which, end, expected)
            decimals = self._decimals(read.view, name)
            if self.by == "value" and decimals is not None and round(end, decimals) != end:
                dtype = read.view.table.facts(name).dtype
                raise BadOptionError(which, end, f"a value that {name!r} ({dtype}) can hold")
        return {name: float(end) for name, end in given.items()}

    def _refuse_crossing(self, name: Name, top: float | None, bottom: float | None) -> None:
        if top is None or bottom is None:
            return
        if self.by == "quantile":
            crossed, what = bottom + top >= 1, "shares that leave something between them"
        else:
            crossed, what = bottom >= top, "a bottom below the top"
        if crossed:
            raise BadOptionError(f"top={top!r} with bottom", bottom, f"{what}, for {name!r}")


def _quantile(x: Floats, weights: Floats, share: float) -> float:
    """Return the smallest number such that the numbers above it weigh at most a share of all."""
    order = np.argsort(x, kind="stable")
    heavy = np.cumsum(weights[order])
    # A sum of weights is right to rounding: 0.2 of ten records are two.
    place = int(np.searchsorted(heavy, (1 - share) * heavy[-1] * (1 - 1e-12)))
    return float(x[order[min(place, len(x) - 1)]])


def _advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    kept = options.get("replace") == "mean"
    return [
        "Extreme numbers were replaced by "
        + ("their mean: means and totals are kept, " if kept else "a threshold: means move, ")
        + "variances shrink. Quantiles inside the thresholds are exact. Use methods for censored "
        "data, or robust statistics, for anything about the tails."
    ]


METHOD = register(
    Method(
        name="coding",
        masker=TopBottomCoding,
        title="Top and bottom coding",
        tuned=Tuned(
            name="top", also=("bottom",), low=1e-3, high=0.49, values=(0.02, 0.05, 0.1, 0.25)
        ),
        defaults={"top": 0.05, "bottom": 0.05},
        label="top and bottom coding",
        description="the largest {top:.3g} and smallest {bottom:.3g} of each column coded",
        advice=_advise,
    )
)
