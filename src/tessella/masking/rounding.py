"""Rounding: every number becomes a multiple of a base, the nearest one or one drawn fairly."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from .._parameters import FLAG, Number
from .._types import Floats, Name
from ..exceptions import BadOptionError
from ..grouping.base import chance_of
from .base import Declared, MaskedColumns, Perturbation
from .registry import Method, Options, Tuned, listed, register
from .selection import by_column


@dataclass(eq=False, repr=False)
class Rounding(Perturbation):
    r"""Round every number to a multiple of a base.

    Parameters
    ----------
    base : float or mapping of name to float
        The base, of all columns or of each. A column of whole numbers (or of decimals) takes a
        base that it can hold.
    relative : bool, default False
        Whether the base is given in standard deviations of the column; it is then the nearest of
        1, 2 and 5 times a power of ten that the column can hold. A column of one value stays.
    random : bool, default False
        False rounds to the nearest multiple, a tie to the even one; True rounds up or down at
        random so that the expected number is the number itself.
    columns, strata, weights, schema, round_integers
        As for `Microaggregation`; strata make no difference, and weights count in the loss.
    rules, random_state
        As for `NoiseAddition`. **Restoring rules moves records off the multiples of the base.**

    Attributes
    ----------
    bases_ : dict of name to float
        The base of each column.
    loss_, column_loss_, changed_, restoration_, columns_, untouched_
        As for `NoiseAddition`.

    Notes
    -----
    With base b and x = (q + f) b, q whole and 0 <= f < 1, the released number is b rint(x / b), or
    at random (q + 1) b with chance f and q b with chance 1 - f: unbiased, with variance
    f (1 - f) b^2. A base such as 0.1 means the decimal, so 3 * 0.1 is 0.3. k-anonymity is not
    claimed.

    References
    ----------
    I. P. Fellegi (1975). Controlled random rounding. Survey Methodology 1(2).
    A. Hundepool et al. (2012). Statistical disclosure control, section 3.6. Wiley.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.masking import Rounding
    >>> table = pd.DataFrame({"age": [21, 38, 62], "income": [1.04, 2.26, 3.5]})
    >>> Rounding({"age": 5, "income": 0.1}).fit_transform(table)
       age  income
    0   20     1.0
    1   40     2.3
    2   60     3.5
    """

    _parameters: ClassVar[Declared] = {"random": [FLAG], "relative": [FLAG]}

    base: Any
    _: KW_ONLY
    relative: bool = False
    random: bool = False

    def _perturb(self, read: MaskedColumns) -> Floats:
        self.bases_ = self._bases(read)
        out, chance = np.empty_like(read.original.values), chance_of(self.random_state)
        for j, base in enumerate(self.bases_.values()):
            if not base:  # a column of one value
                out[:, j] = read.original.values[:, j]
                continue
            above, below = _as_ratio(base)
            number = np.where(read.known[:, j], read.original.values[:, j], 0.0) * below / above
            if self.random:
                whole = np.floor(number)
                number = whole + (chance.random(len(number)) < number - whole)
            else:
                number = np.rint(number)
            out[:, j] = number * above / below
        return out

    def _bases(self, read: MaskedColumns) -> dict[Name, float]:
        masked = read.chosen.masked
        given, bases = by_column(self.base, masked, who="base"), {}
        for name in masked:
            base = given.get(name)
            if base is None or not Number(above=0).accepts(base):
                who = f"base[{name!r}]" if isinstance(self.base, Mapping) else "base"
                raise BadOptionError(who, base, "a positive number for every masked column")
            decimals = self._decimals(read.view, name)
            if self.relative:
                spread = float(read.scale.deviation[masked.index(name)])
                bases[name] = _nice(float(base) * spread, decimals) if spread > 0 else 0.0
                continue
            if decimals is not None and (Fraction(repr(float(base))) * 10**decimals) % 1:
                raise BadOptionError(
                    "base",
                    base,
                    f"a base that {name!r} ({read.view.table.facts(name).dtype}) can hold"
                    + (": a whole number, or round_integers=False" if decimals == 0 else ""),
                )
            bases[name] = float(base)
        return bases


def _nice(value: float, decimals: int | None) -> float:
    """Return the nearest of 1, 2 and 5 times a power of ten that has so many decimals."""
    power = 10.0 ** math.floor(math.log10(value))
    best = min((1, 2, 5, 10), key=lambda step: abs(math.log(value / (step * power))))
    nice = float(f"{best * power:.1g}")
    return nice if decimals is None else max(nice, 10.0**-decimals)


def _as_ratio(base: float) -> tuple[float, float]:
    """Return two floats whose ratio is the base as it is written: 0.1 is 1 over 10."""
    exact = Fraction(repr(base))
    if max(exact.numerator, exact.denominator) > 2**53:
        return base, 1.0
    return float(exact.numerator), float(exact.denominator)


def _advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    how = (
        "at random, so that the expected value is the value itself"
        if options.get("random")
        else "to the nearest multiple"
    )
    base = listed(options.get("base"))
    if options.get("relative"):
        base += " standard deviations of the column, as 1, 2 or 5 times a power of ten"
    return [
        f"Numbers were rounded {how} (base: {base}). The error of a value is at most "
        "one base; treat values as intervals where the base is large beside them (Sheppard: the "
        "variance is inflated by about base²/12 when rounding to the nearest)."
    ]


METHOD = register(
    Method(
        name="rounding",
        masker=Rounding,
        tuned=Tuned(name="base", low=1e-3, high=10.0, values=(0.05, 0.2, 0.5, 1.0)),
        defaults={"base": 0.1, "relative": True},
        description=lambda given: (
            f"rounding to steps of about {given['base']:g} standard deviations"
            if given["relative"]
            else f"rounding to multiples of {listed(given['base'])}"
        ),
        advice=_advise,
    )
)
