"""The loss of recoded columns: how much of its hierarchy each released value leaves open."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from .._types import Floats, Name
from ..exceptions import BadTableError
from .base import ComparedTables, Loss, Reading, compare, worst


def recoding_loss(original: Any, masked: Any, **reading: Unpack[Reading]) -> Loss:
    """Measure the normalised certainty penalty of columns that hold coarser values.

    Parameters
    ----------
    original, masked, **reading
        The tables, `hierarchies`, the hierarchy of each recoded column, and `columns`, `schema` and
        `weights`, as in `measure`. Cells may be missing in the masked table.

    Notes
    -----
    A known cell released as a node costs (leaves under the node - 1) / (leaves - 1), of intervals
    the range of the values in it over the range of all: 0 as it was, 1 for the root. An emptied
    cell costs 1. The value is the mean over known cells, a column's over its own.

    References
    ----------
    J. Xu, W. Wang, J. Pei, X. Wang, B. Shi and A. W.-C. Fu (2006). Utility-based anonymization
    using local recoding. KDD, 785-790.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.keys import Hierarchy
    >>> from tessella.loss import recoding_loss
    >>> towns = Hierarchy([("Reus", "coast"), ("Salou", "coast"), ("Lleida", "inland")])
    >>> x = pd.DataFrame({"town": ["Reus", "Salou", "Lleida", "Lleida"]})
    >>> y = pd.DataFrame({"town": ["coast", "coast", "Lleida", "Lleida"]})
    >>> recoding_loss(x, y, hierarchies={"town": towns}).value
    0.25
    """
    reading["on_unpaired"] = "skip"
    pair = compare(original, masked, **reading)
    names = [name for name in pair.present if name in pair.hierarchies]
    if not names:
        raise BadTableError(
            "The loss of recoding compares columns that hold coarser values, and none is named. "
            'Give hierarchies={"town": hierarchy}.'
        )
    by_column: dict[Name, float] = {}
    mass: list[float] = []
    for name in names:
        penalty, weights = penalties(pair, name)
        mass.append(float(weights.sum()))
        by_column[name] = float(penalty @ weights) / mass[-1] if mass[-1] else 0.0
    value = float(np.average(list(by_column.values()), weights=mass)) if any(mass) else 0.0
    return Loss(
        name="recoding",
        value=value,
        by_column=by_column,
        formula="the normalised certainty penalty of the released nodes, 1 for an emptied cell, "
        "averaged over known cells",
        source="J. Xu et al. (2006). Utility-based anonymization using local recoding. KDD, "
        "785-790",
        verdict=f"released values leave {100 * value:.3g} % of their hierarchies open"
        f"{worst(by_column)}",
    )


def penalties(pair: ComparedTables, name: Name) -> tuple[Floats, Floats]:
    """Return the penalty of each record whose original cell is known, and its weight."""
    hierarchy = pair.hierarchies[name]
    known, _ = pair.known(name)
    codes, texts = pair.masked.labels(name)
    number = {text: at for at, text in enumerate(hierarchy.nodes)}
    node = np.array([*(number.get(text, -1) for text in texts), -2], dtype=np.int64)[codes]
    if (node[known] == -1).any():
        raise BadTableError(
            f"Column {name!r} of the masked table holds values that its hierarchy does not have. "
            "Give the hierarchy that it was recoded by."
        )
    lost = np.where(node < 0, 1.0, hierarchy.penalty[np.maximum(node, 0)])
    weights = np.ones(pair.n_rows) if pair.weights is None else pair.weights
    return lost[known], weights[known]
