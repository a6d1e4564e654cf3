"""What masking does to principal components: how much they explain, and where they point."""

from __future__ import annotations

from typing import Any, Literal, Unpack, get_args

import numpy as np

from .._parameters import Number, OneOf, parameters
from .._types import Floats
from .compared import Reading, compare
from .moments import moments
from .result import Loss, worst

__all__ = ["component_loss"]

Of = Literal["eigenvalues", "directions"]


TIE = 1e-9  # shares of variance that differ by less are the same


@parameters(of=[OneOf(get_args(Of))], explained=[Number(above=0, most=1)])
def component_loss(
    original: Any,
    masked: Any,
    *,
    of: Of = "eigenvalues",
    explained: float = 0.8,
    **reading: Unpack[Reading],
) -> Loss:
    """Measure what masking does to principal components: what they explain, where they point.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order.
    of : {"eigenvalues", "directions"}
        The shares of variance that components explain, or the space of the leading ones.
    explained : float, default 0.8
        Of directions: the components that together explain so much of the original's variance are
        compared, at most all but one.
    **reading
        `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.

    Notes
    -----
    Eigenvalues: with l_1 >= l_2 >= ... those of a correlation matrix over their sum,
    loss = 1/2 sum over i of |l_i - l'_i|, from 0 to 1: the share of variance that is explained by
    another component than before. It does not come apart by columns. (sdcMicro's sum of
    |l_i - l'_i| / l_i has no upper limit and explodes for small eigenvalues.)

    Directions: with V and V' the first m eigenvectors of the two correlation matrices,
    loss = |V V^T - V' V'^T|^2 / (2 m) = 1 - |V^T V'|^2 / m, the mean squared sine of the angles
    between the two spaces: 0 for the same space, 1 for orthogonal ones. Components may turn among
    each other without loss; those that explain just as much as the m-th, and cannot be told from
    it, are taken in part each. The loss of a column is its row's part; the parts sum to the value.

    References
    ----------
    I. T. Jolliffe (2002). Principal Component Analysis. Springer. W. J. Krzanowski (1979).
    Between-groups comparison of principal components. JASA 74, 703-707.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import component_loss
    >>> x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> component_loss(x, x[:, [0, 0]]).value
    0.5
    >>> x = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.5]])
    >>> round(component_loss(x, x * [1, -1], of="directions").value, 9)
    1.0
    """
    pair = compare(original, masked, **reading)
    names = pair.need_numbers("The loss of principal components")
    found = moments(pair)
    shares, before = _decompose(found.correlation)
    shares_after, after = _decompose(found.correlation_after)
    if of == "eigenvalues":
        value = min(1.0, float(np.abs(shares - shares_after).sum()) / 2)
        return Loss(
            name="eigenvalues",
            value=value,
            formula="half the sum of absolute differences of the shares of variance that the "
            "principal components of the correlations explain",
            source="I. T. Jolliffe (2002). Principal Component Analysis. Springer",
            range=(0.0, 1.0),
            verdict=f"{100 * value:.3g} % of the variance is explained by other components than "
            "before",
            details={"first share before": shares[0], "first share after": shares_after[0]},
        )
    m = int(np.searchsorted(np.cumsum(shares), explained - 1e-12)) + 1
    m = max(1, min(m, len(names) - 1))
    turn = _projector(shares, before, m) - _projector(shares_after, after, m)
    parts = (turn**2).sum(axis=1) / (2 * m)
    by_column = dict(zip(names, parts.tolist()))
    value = min(1.0, float(parts.sum()))
    return Loss(
        name="principal_components",
        value=value,
        by_column=by_column,
        formula=f"the mean squared sine of the angles between the spaces of the first {m} "
        "principal components of the correlations",
        source="W. J. Krzanowski (1979). Between-groups comparison of principal components. "
        "JASA 74, 703-707",
        range=(0.0, 1.0),
        verdict=f"the space of the first {m} components turned by "
        f"{np.degrees(np.arcsin(np.sqrt(value))):.3g} degrees on average{worst(by_column)}",
        details={"components": m, "share explained": float(shares[:m].sum())},
    )


def _projector(shares: Floats, vectors: Floats, m: int) -> Floats:
    """Return the matrix that projects on the first m components.

    Components that tie with the m-th are any basis of their space: each is taken by the part of
    them that m has room for, which no rounding changes.
    """
    tied = np.abs(shares - shares[m - 1]) <= TIE
    above = (shares > shares[m - 1]) & ~tied
    taken = above + tied * ((m - above.sum()) / tied.sum())
    projector: Floats = (vectors * taken) @ vectors.T
    return projector


def _decompose(correlation: Floats) -> tuple[Floats, Floats]:
    """Return shares of variance, the largest first, and eigenvectors.

    Cells missing here and there can make a matrix of correlations that no table has, with
    eigenvalues below 0: these count as 0. Where nothing varies, no component explains anything.
    """
    values, vectors = np.linalg.eigh(correlation)
    values = np.maximum(values[::-1], 0.0)
    total = values.sum()
    shares: Floats = values / total if total > 0 else values
    return shares, vectors[:, ::-1]
