"""Noise: every number is released with a random error, small beside the spread of its column."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from .._parameters import FLAG, Number
from .._types import Floats
from ..exceptions import BadTableError, UnchangedWarning
from ..frame import Numbers
from ..grouping.base import chance_of
from .base import Declared, MaskedColumns, Perturbation, normal, renamed, rows_of_strata
from .registry import Method, Options, Tuned, register
from .selection import Scale

NOTHING = 1e-12  # an eigenvalue below this share of the largest is rounding


@renamed(scale="amount")
@dataclass(eq=False, repr=False)
class NoiseAddition(Perturbation):
    r"""Add normal noise to every number, with the covariance of the records or without.

    Parameters
    ----------
    amount : float, default 0.1
        The standard deviation of the noise of a column, in standard deviations of the column.
    correlated : bool, default True
        Whether the noise of a record's columns is correlated as the columns are.
    keep_moments : bool, default False
        Whether the masked records are moved, all by the same affine map, so that means and
        covariances of each stratum come out as they were (before rounding, and before rules).
    columns, strata, weights, schema, round_integers
        As for `Microaggregation`; each stratum is masked on its own, with its own covariance.
    rules : Rules or text, optional
        Rules to restore after masking: see `restore`. Linear ones between masked columns hold in
        the release, or there is none.
    random_state : int, RandomState or None, default None
        A seed; None draws from the operating system's entropy.

    Attributes
    ----------
    loss_, column_loss_
        Information loss as for `Microaggregation`: 100 SSE / SST, expected to be 100 amount^2.
    changed_ : dict of name to float
        The share of each column's numbers that were changed; 0 in a column of one value.
    restoration_ : Restoration or None
        What restoring the rules took.
    columns_, untouched_ : list of names
        The columns that were masked, and those that were released as they are.

    Notes
    -----
    The released record is :math:`y = x + e`. With :math:`\Sigma` the covariance of the
    stratum (divided by n, or by the sum of weights), :math:`e \sim N(0, s^2 \Sigma)` if
    correlated, for :math:`s` = `amount`; otherwise :math:`e_j \sim N(0, s^2 \Sigma_{jj})`,
    independent of each other. Correlated noise lies in the span of the records: a linear equation
    that all records obey is still obeyed, until numbers are rounded. Expected covariances are
    :math:`(1 + s^2) \Sigma` if correlated; otherwise only variances grow.

    With `keep_moments`, :math:`y = \bar x + T (x + e - \bar x - \bar e)`, where :math:`T` is the
    linear map that moves records least among those that give them the covariance
    :math:`\Sigma`. With correlated noise it is close to Kim's [2]_ factor
    :math:`1 / \sqrt{1 + s^2}`, which keeps moments in expectation.

    Missing cells stay missing; correlations are then those of the complete records. k-anonymity is
    not claimed.

    References
    ----------
    .. [1] R. Brand (2002). Microdata protection through noise addition. In: Inference control in
       statistical databases, LNCS 2316.
    .. [2] J. J. Kim (1986). A method for limiting disclosure in microdata based on random noise
       and transformation. Proceedings of the Section on Survey Research Methods, ASA.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.masking import NoiseAddition
    >>> table = pd.DataFrame({"age": [21, 35, 48, 62], "income": [1.0, 3.5, 4.0, 2.5]})
    >>> released = NoiseAddition(0.1, random_state=0).fit_transform(table)
    >>> released.dtypes.astype(str).to_dict()
    {'age': 'int64', 'income': 'float64'}
    """

    _parameters: ClassVar[Declared] = {
        "amount": [Number(above=0)], "correlated": [FLAG], "keep_moments": [FLAG],
    }  # fmt: skip

    amount: float = 0.1
    _: KW_ONLY
    correlated: bool = True
    keep_moments: bool = False

    def _perturb(self, read: MaskedColumns) -> Floats:
        values = read.original.values
        n, d = values.shape
        self._refuse_few(read)
        draws = normal(chance_of(self.random_state), n * d).reshape(n, d)
        out = np.empty_like(values)
        for rows in rows_of_strata(read.chosen.strata.ids):
            weights = read.chosen.weights[rows]
            scale = Scale.of(values[rows], weights, "zscore", read.chosen.masked)
            records = scale.apply(values[rows])
            complete = read.known[rows].all(axis=1)
            noise = draws[rows]
            if self.correlated:
                noise = noise @ symmetric_root(_correlation(records[complete], weights[complete]))
            # A column of one value gets no noise: there is nothing in it to hide records among.
            masked = records + float(self.amount) * noise * (scale.deviation > 0)
            if self.keep_moments:
                masked = _with_moments(masked, records, weights)
            out[rows] = scale.centre + scale.unit * masked
        return out

    def _look_at(self, read: MaskedColumns, released: Numbers) -> None:  # noqa: ARG002
        """Warn where rounding took the noise away."""
        for name, varies in zip(read.chosen.masked, read.scale.deviation > 0):
            rounded = self._decimals(read.view, name) is not None
            if varies and rounded and self.changed_[name] < 0.5:
                percent = 100 * self.changed_[name]
                warning = UnchangedWarning.by_rounding(column=name, percent=percent)
                warnings.warn(warning, stacklevel=4)

    def _refuse_few(self, read: MaskedColumns) -> None:
        """Refuse strata in which noise would be none, or lie in few directions."""
        d = read.known.shape[1]
        if self.keep_moments and not read.known.all():
            raise BadTableError(
                "keep_moments=True needs complete records, and the table has missing values in "
                f"{', '.join(map(repr, read.original.count_missing()))}. Fill or drop them, or "
                "give keep_moments=False."
            )
        least = d + 1 if self.correlated or self.keep_moments else 2
        strata = read.chosen.strata
        for rows, name in zip(rows_of_strata(strata.ids), strata.names, strict=True):
            known = read.known[rows]
            if least > 2:
                few, which = int(known.all(axis=1).sum()), "complete records"
            else:
                counts = known.sum(axis=0)
                few = int(counts[counts > 0].min(initial=len(rows)))
                which = "numbers in a column"
            if few < least:
                raise BadTableError(
                    f"Stratum {name!r} has {few} {which}, and noise from its own spread needs at "
                    f"least {least}: fewer would be released with no noise, or with noise in few "
                    "directions. Merge strata, or give correlated=False and keep_moments=False."
                )


def _correlation(records: Floats, weights: Floats) -> Floats:
    """Correlations; a column of one value has none, and still 1 on the diagonal.

    Or a column that varies, but not among the complete records, would get no noise.
    """
    cov = _covariance(records, weights)
    deviation = np.sqrt(np.diag(cov))
    varies = deviation > 1e-9  # of records whose columns have a deviation of 1 or 0
    deviation = np.where(varies, deviation, 1.0)
    correlation = np.where(np.outer(varies, varies), cov / np.outer(deviation, deviation), 0.0)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)


def _covariance(records: Floats, weights: Floats) -> Floats:
    centred = records - np.average(records, axis=0, weights=weights)
    return np.asarray((centred * weights[:, None]).T @ centred / weights.sum())


def symmetric_root(matrix: Floats, power: float = 0.5) -> Floats:
    """Return a power of a symmetric matrix, on its span; the same on every machine up to rounding.

    Unlike a factor by columns, it does not depend on the order or the signs of eigenvectors.
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    spans = values > NOTHING * max(values.max(initial=0.0), 0.0)
    powers = np.where(spans, np.where(spans, values, 1.0) ** power, 0.0)
    return np.asarray((vectors * powers) @ vectors.T)


def _with_moments(masked: Floats, records: Floats, weights: Floats) -> Floats:
    """Move masked records affinely to the mean and covariance of the records, by the least moves.

    From covariance S to C the map is S^(-1/2) (S^(1/2) C S^(1/2))^(1/2) S^(-1/2): the optimal
    transport between normal distributions (Olkin and Pukelsheim 1982).
    """
    now, goal = _covariance(masked, weights), _covariance(records, weights)
    half, back = symmetric_root(now), symmetric_root(now, -0.5)
    move = back @ symmetric_root(half @ goal @ half) @ back
    centred = masked - np.average(masked, axis=0, weights=weights)
    return np.asarray(centred @ move + np.average(records, axis=0, weights=weights))


def _advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    amount = float(options.get("amount", 0.1))
    if options.get("keep_moments"):
        return [
            "Random noise was added, and the table was moved so that means, variances and "
            "covariances are those of the original; distributions became more normal."
        ]
    inflation = 1 + amount**2
    first = (
        f"Random noise with standard deviation {amount:g} times that of the column was added. "
        f"Means are kept in expectation; a variance is inflated by the factor 1 + {amount:g}² = "
        f"{inflation:.4g}: divide a released variance by it."
    )
    if options.get("correlated", True):
        return [
            first,
            "The noise is correlated as the columns are: correlations and slopes of linear "
            "regressions are kept in expectation; covariances are inflated by the same factor.",
        ]
    return [
        first,
        "The noise of different columns is independent: covariances are kept, and "
        f"correlations shrink by the factor {1 / inflation:.4g}. A slope on a masked "
        "column is drawn towards zero: use methods for errors in variables, with "
        f"reliability {1 / inflation:.4g}.",
    ]


def _kind(options: Options) -> str:
    return "correlated noise" if options["correlated"] else "uncorrelated noise"


METHOD = register(
    Method(
        name="noise",
        masker=NoiseAddition,
        tuned=Tuned(name="amount", low=1e-3, high=10.0, values=(0.05, 0.1, 0.2, 0.5)),
        defaults={"amount": 0.1, "correlated": True},
        variants=lambda setting: ({"correlated": True}, {"correlated": False}),  # noqa: ARG005
        label=_kind,
        description=lambda given: f"{_kind(given)} of {given['amount']:g} standard deviations",
        advice=_advise,
    )
)
