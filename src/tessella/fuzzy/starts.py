"""Where centres begin: a local optimum is as good as its start."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._types import Floats
from ..exceptions import BadTableError, UnknownOptionError
from ..kernels.seeding import spread_out
from .field import Field

__all__ = ["STARTS", "first_centres", "given_centres"]


STARTS = ("k-means++", "records")
OFF = 0.99  # of the way from the mean to a record
MANY = 10**8  # records times centres beyond which a centre is drawn only once


def first_centres(field: Field, c: int, way: str, random: np.random.Generator) -> Floats:
    """Choose c records as first centres, in the field's units.

    "k-means++" draws each next centre by its squared distance from those chosen, and keeps the best
    of 2 + ln(c) draws; "records" takes records at random, as the 2009 paper does. Centres then
    move a hundredth of the way to the mean: exactly on a record, that record alone would hold
    a centre where m is large.

    References
    ----------
    D. Arthur and S. Vassilvitskii (2007). k-means++: the advantages of careful seeding. SODA.
    """
    if way == "records":
        share = field.weights / field.weights.sum()
        return OFF * field.records[random.choice(field.n, c, replace=False, p=share)]
    tries = 2 + int(math.log(c)) if field.n * c <= MANY else 1
    return OFF * field.records[spread_out(field.records, field.weights, random.random((c, tries)))]


def given_centres(init: Any, c: int, d: int) -> Floats | None:
    """Return centres that the caller gives, or None if `init` names a way to choose them."""
    if isinstance(init, str):
        if init not in STARTS:
            raise UnknownOptionError("init", init, [*STARTS, "centres of shape (c, d)"])
        return None
    try:
        centres = np.array(init, dtype=np.float64)
    except (TypeError, ValueError):
        centres = np.empty(0)
    if centres.shape != (c, d) or not np.isfinite(centres).all():
        raise BadTableError(
            f"init must be one of {', '.join(map(repr, STARTS))} or finite centres of shape "
            f"({c}, {d}), one row for each of the n_clusters={c}; it has shape {centres.shape}."
        )
    return centres
