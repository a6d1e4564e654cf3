"""Losses of categories: tables of counts, what columns say of each other, and of the original."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Literal, Unpack, get_args

import numpy as np

from .._parameters import OneOf, parameters
from .._types import Floats, Integers, Name
from ..exceptions import BadTableError
from .base import ComparedTables, Loss, Reading, compare, worst

Distance = Literal["hellinger", "total variation"]

DENSE = 1 << 20  # tables of counts up to so many cells are counted without sorting


@parameters(distance=[OneOf(get_args(Distance))])
def contingency_loss(
    original: Any, masked: Any, *, distance: Distance = "hellinger", **reading: Unpack[Reading]
) -> Loss:
    """Measure how far tables of counts have moved, over all one- and two-way margins.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.
    distance : {"hellinger", "total variation"}
        With p and q the shares of the cells: sqrt(1/2 sum (sqrt(p) - sqrt(q))^2), or
        1/2 sum |p - q|.

    Notes
    -----
    Both distances are from 0 (the same counts) to 1 (no cell in common). The value is the mean
    over all one-way and two-way tables, the loss of a column over those that it takes part in. A
    category that only the masked table has is a cell that was empty; `details` counts such
    categories. Cells missing in one of the tables are left out.

    References
    ----------
    S. Gomatam, A. F. Karr and A. P. Sanil (2005). Data swapping as a decision problem. Journal of
    Official Statistics 21(4), 635-655.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.loss import contingency_loss
    >>> x, y = pd.DataFrame({"town": list("aabb")}), pd.DataFrame({"town": list("abbb")})
    >>> contingency_loss(x, y, distance="total variation").value
    0.25
    """
    pair = compare(original, masked, **reading)
    pair.need_categories("The loss of tables of counts")
    names = [name for name in pair.categories if name not in pair.recoded]
    if not names:
        raise BadTableError(
            "The loss of tables of counts compares the same categories, and all columns were "
            "recoded to coarser ones: see recoding_loss."
        )
    found: dict[tuple[Name, ...], float] = {}
    for margin in (*((name,) for name in names), *combinations(names, 2)):
        p, q = _shares(pair, margin)
        if distance == "hellinger":
            gap = np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2)
        else:
            gap = np.abs(p - q).sum() / 2
        found[margin] = min(1.0, float(gap))
    by_column = {name: _mean(found, name) for name in names}
    value = float(np.mean(list(found.values())))
    details = {
        way: float(np.mean([gap for margin, gap in found.items() if len(margin) == size]))
        for size, way in ((1, "one-way"), (2, "two-way"))
        if len(names) >= size
    }
    return Loss(
        name="contingency",
        value=value,
        by_column=by_column,
        formula=f"the {distance} distance of the shares of cells, averaged over the one-way and "
        "two-way tables",
        source="S. Gomatam, A. F. Karr and A. P. Sanil (2005). Data swapping as a decision "
        "problem. Journal of Official Statistics 21(4), 635-655",
        verdict=f"tables of counts are {value:.3g} apart{worst(by_column)}{_note_new(pair)}",
        details=details | {"new categories": _count_new(pair)},
    )


def mutual_information_loss(original: Any, masked: Any, **reading: Unpack[Reading]) -> Loss:
    """Measure how far what columns of categories say of each other has moved.

    Parameters
    ----------
    original, masked, **reading
        The tables, with at least two columns of categories, and `columns`, `schema`, `weights` and
        `on_unpaired`, as in `measure`.

    Notes
    -----
    The mean over pairs of columns of |U - U'|, with U = 2 I(A; B) / (H(A) + H(B)) the mutual
    information over the mean of the entropies, from 0 (independent) to 1 (each says the other),
    and 0 where both are constant.

    References
    ----------
    T. M. Cover and J. A. Thomas (2006). Elements of Information Theory. Wiley; the normalisation
    is the symmetric uncertainty of W. H. Press et al. (1988). Numerical Recipes. Cambridge.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.loss import mutual_information_loss
    >>> x = pd.DataFrame({"a": list("uuvv"), "b": list("ppqq")})
    >>> y = pd.DataFrame({"a": list("uuvv"), "b": list("pqpq")})
    >>> mutual_information_loss(x, y).value
    1.0
    """
    pair = compare(original, masked, **reading)
    names = pair.need_categories("The loss of mutual information", least=2)
    found: dict[tuple[Name, ...], float] = {}
    levels = []
    for a, b in combinations(names, 2):
        first, second, known = pair.category(a), pair.category(b), pair.categorised(a, b)
        uncertainty = [
            _symmetric(*_count(one, other, len(second.labels), known, pair.weights))
            for one, other in ((first.before, second.before), (first.after, second.after))
        ]
        found[a, b] = abs(uncertainty[0] - uncertainty[1])
        levels.append(uncertainty)
    by_column = {name: _mean(found, name) for name in names}
    value = float(np.mean(list(found.values())))
    before, after = np.mean(levels, axis=0).tolist()
    return Loss(
        name="mutual_information",
        value=value,
        by_column=by_column,
        formula="the absolute difference of mutual information over the mean of the entropies, "
        "averaged over pairs of columns",
        source="T. M. Cover and J. A. Thomas (2006). Elements of Information Theory. Wiley",
        verdict=f"what columns say of each other moved by {value:.3g} (on average from "
        f"{before:.3g} to {after:.3g}){worst(by_column)}",
        details={"before": before, "after": after},
    )


def entropy_loss(original: Any, masked: Any, **reading: Unpack[Reading]) -> Loss:
    """Measure what the masked categories leave open of the original ones, record by record.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.

    Notes
    -----
    H(X | Y) / H(X) = 1 - I(X; Y) / H(X) for a column X and its masked version Y: 0 where Y tells
    X, 1 where it tells nothing. Other names for the same categories lose nothing; merging
    categories does. A constant column loses nothing. The value is the mean over columns.

    References
    ----------
    P. Kooiman, L. Willenborg and J. Gouweleeuw (1997). PRAM: a method for disclosure limitation of
    microdata. Statistics Netherlands.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.loss import entropy_loss
    >>> x, y = pd.DataFrame({"town": list("aabb")}), pd.DataFrame({"town": list("abab")})
    >>> entropy_loss(x, y).value
    1.0
    """
    pair = compare(original, masked, **reading)
    by_column = {}
    for name in pair.need_categories("The loss of entropy"):
        cells, known = pair.category(name), pair.categorised(name)
        joint = _count(cells.before, cells.after, len(cells.labels), known, pair.weights)
        by_column[name] = 0.0
        if len(joint[1]) > 1:
            by_column[name] = float(np.clip(1 - _shared(*joint) / _entropy(joint[1]), 0.0, 1.0))
    value = float(np.mean(list(by_column.values())))
    return Loss(
        name="entropy",
        value=value,
        by_column=by_column,
        formula="the entropy of a column given its masked version, over its entropy, averaged over "
        "columns",
        source="P. Kooiman, L. Willenborg and J. Gouweleeuw (1997). PRAM: a method for disclosure "
        "limitation of microdata. Statistics Netherlands",
        verdict=f"the masked categories leave {100 * value:.3g} % of the original ones open"
        f"{worst(by_column)}{_note_new(pair)}",
    )


def _mean(found: dict[tuple[Name, ...], float], name: Name) -> float:
    return float(np.mean([gap for margin, gap in found.items() if name in margin]))


def _count_new(pair: ComparedTables) -> int:
    """Count the categories that only the masked table has."""
    cells = [pair.category(name) for name in pair.categories if name not in pair.recoded]
    return sum(len(column.labels) - column.n_original for column in cells)


def _note_new(pair: ComparedTables) -> str:
    new = _count_new(pair)
    return f"; the masked table has {new} new categories" if new else ""


def _shares(pair: ComparedTables, margin: tuple[Name, ...]) -> tuple[Floats, Floats]:
    """Return the shares of the cells of one margin in both tables, in the same order."""
    codes, cells = np.zeros((2, pair.n_rows), dtype=np.int64), 1
    for column in map(pair.category, margin):
        cells *= len(column.labels)
        codes *= len(column.labels)
        codes[0] += column.before
        codes[1] += column.after
    known, weights = pair.categorised(*margin), pair.weights
    if not known.all():
        codes = codes[:, known]
        weights = None if weights is None else weights[known]
    if cells > DENSE:
        distinct, places = np.unique(codes, return_inverse=True)
        codes, cells = places.reshape(codes.shape), len(distinct)
    p, q = (np.bincount(side, weights=weights, minlength=cells) for side in codes)
    return p / max(p.sum(), 1e-300), q / max(q.sum(), 1e-300)


Joint = tuple[Floats, Floats, Floats]  # shares of the cells that are not empty, and both margins


def _count(one: Any, other: Any, width: int, known: Any, weights: Floats | None) -> Joint:
    """Return the shares of pairs of codes, and of each code, leaving out what does not occur."""
    one, other = one[known].astype(np.int64), other[known].astype(np.int64)
    weights = None if weights is None else weights[known]
    both = _occurring(one * width + other, weights)
    return both, _occurring(one, weights), _occurring(other, weights)


def _occurring(codes: Integers, weights: Floats | None) -> Floats:
    if not len(codes):
        return np.zeros(0)
    if codes.max() > DENSE:
        codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(codes, weights=weights).astype(np.float64)
    counts = counts[counts > 0]
    shares: Floats = counts / counts.sum()
    return shares


def _entropy(shares: Floats) -> float:
    return max(0.0, -float((shares * np.log(shares)).sum()))


def _shared(joint: Floats, first: Floats, second: Floats) -> float:
    return max(0.0, _entropy(first) + _entropy(second) - _entropy(joint))


def _symmetric(joint: Floats, first: Floats, second: Floats) -> float:
    total = _entropy(first) + _entropy(second)
    return min(1.0, 2 * _shared(joint, first, second) / total) if total > 0 else 0.0
