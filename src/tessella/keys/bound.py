"""How few cells any suppression to k-anonymity must empty: see `kernels.suppression_bound`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import Floats
from ..kernels.suppression_bound import class_gains, raise_prices
from .classes import Classes
from .combinations import Combinations

WORK = 1_000_000_000  # memberships that are looked at, over all rounds
ROUNDS = 40, 600


@dataclass(frozen=True, kw_only=True, eq=False)
class Prices:
    """A lower bound of the cost of suppression, and what each class gains at its prices."""

    bound: float
    gains: Floats


def price_bound(found: Combinations, classes: Classes, k: int, cost: float) -> Prices:
    """Return a lower bound of the cost of suppression, given a cost that is possible.

    The first prices are what a record pays at least in a class that k respondents fit: no class
    gains from them.
    """
    fits = classes.fits
    records, lightest = found.records[classes.moving], found.lightest[classes.moving]
    # Beyond `reach` classes are not listed: no record may pay more, or one could gain. Where some
    # that fit are not listed, they gain nothing either, so that 0 bounds what they add.
    most = np.where(classes.violating, classes.reach * lightest, 0.0)
    prices = np.minimum(np.where(classes.violating, classes.needs * lightest, 0.0), most)
    floor = np.where(classes.partial, 0.0, classes.floor)
    gains = np.zeros(len(classes.emptied))
    if not len(fits.member) or not classes.violating.any():
        return Prices(bound=0.0, gains=gains)
    rounds = int(np.clip(WORK // len(fits.member), *ROUNDS))
    kept = prices.copy()
    best = raise_prices(
        prices, most, records, lightest, k, float(cost), rounds, fits.class_start, fits.member,
        fits.member_cost, floor, kept,
    )  # fmt: skip
    class_gains(
        kept, records, lightest, k, fits.class_start, fits.member, fits.member_cost, floor,
        np.zeros(len(kept), dtype=np.int64), gains,
    )  # fmt: skip
    return Prices(bound=float(best), gains=gains)
