"""Shuffling: every column keeps its values, and records get those of others by drawn ranks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from .._parameters import Number
from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadOptionError, BadTableError, UnchangedWarning
from ..frame import Numbers, View
from ..grouping.base import chance_of
from .base import Declared, MaskedColumns, Perturbation, normal, rows_of_strata
from .noise import symmetric_root
from .registry import Method, Options, Tuned, listed, register
from .selection import corners

TOLD = 0.95  # share of the variance of ranks that keys explain, from which on there is a warning


@dataclass(eq=False, repr=False)
class Shuffling(Perturbation):
    r"""Give each record numbers of other records, drawn by rank given what others may know.

    Parameters
    ----------
    amount : float, default 1
        How much of what `given` does not explain is drawn anew, above 0 and at most 1. With 1 (data
        shuffling) a released number depends on the record through `given` alone; with less, ranks
        stay nearer to their own: 0.1 is a little noise.
    given : name or list of names, optional
        The keys: columns released as they are, whose relations to the masked ones are kept.
        Numbers and ordered categories count by rank, others by indicators; a missing key is a
        category of its own. Without it, only the masked columns are related to each other, and
        relations to all other columns are lost.
    columns, strata, weights, schema, round_integers
        As for `Microaggregation`. Each stratum is shuffled on its own; weights count in the loss,
        not in ranks.
    rules, random_state
        As for `NoiseAddition`. **Restoring rules moves records off the values of the column.**

    Attributes
    ----------
    loss_, column_loss_, changed_, restoration_, columns_, untouched_
        As for `NoiseAddition`. Getting an equal number does not count in `changed_`.
    explained_ : dict of name to float
        The share of the variance of each column's normal scores that the keys explain; the largest
        of all strata. What they explain is not protected: it can be computed from them.

    Notes
    -----
    After Muralidhar and Sarathy [1]_. In each stratum, the known numbers of a column become normal
    scores :math:`z = \Phi^{-1}((r - 1/2) / n)` of their ranks r, equal numbers the one of their
    mean rank. With the scores s of the keys, :math:`z = B s + u`, by least squares. Drawn are

    .. math:: z^* = B s + \sqrt{1 - a^2} \, u + a \, e, \qquad e \sim N(0, \mathrm{cov}(u)),

    a = `amount`, with e made uncorrelated with s and u in this very table [2]_, so that covariances
    among z* and with s are those of z. Then the record whose z* has rank r gets the number of rank
    r: each released column is a permutation of the original one. Means, variances and all else
    that is about one column stay to the last digit; rank correlations stay up to the step from
    scores to ranks and ties.

    Missing cells stay missing; B and cov(u) are those of the complete records. Weights stay with
    their records, so weighted means of a column change. k-anonymity is not claimed.

    References
    ----------
    .. [1] K. Muralidhar and R. Sarathy (2006). Data shuffling: a new masking approach for numerical
       data. Management Science 52(5).
    .. [2] K. Muralidhar and R. Sarathy (2008). Generating sufficiency-based non-synthetic perturbed
       data. Transactions on Data Privacy 1(1).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tessella.masking import Shuffling
    >>> age = np.arange(20, 80)
    >>> table = pd.DataFrame({"age": age, "income": 900 + 20 * age + (37 * age) % 500})
    >>> released = Shuffling(columns=["income"], given="age", random_state=0).fit_transform(table)
    >>> sorted(released["income"]) == sorted(table["income"])
    True
    >>> before, after = (one.corr("spearman").loc["age", "income"] for one in (table, released))
    >>> bool(abs(before - after) < 0.05)
    True
    """

    _parameters: ClassVar[Declared] = {"amount": [Number(above=0, most=1)]}

    amount: float = 1
    _: KW_ONLY
    given: Any = None

    def _perturb(self, read: MaskedColumns) -> Floats:
        values, chance = read.original.values, chance_of(self.random_state)
        n, d = values.shape
        names = self._given(read)
        draws = normal(chance, n * d).reshape(n, d)
        out, explained = values.copy(), np.zeros(d)
        strata = read.chosen.strata
        for rows, stratum in zip(rows_of_strata(strata.ids), strata.names, strict=True):
            known = read.known[rows]
            scores = np.column_stack([normal_scores(values[rows, j]) for j in range(d)])
            keys = key_scores(read.view, names, rows)
            _refuse_few(int(known.all(axis=1).sum()), keys, d, stratum)
            model = ScoreModel.of(scores, keys)
            drawn = model.draw(draws[rows], float(self.amount))
            for j in range(d):
                out[rows[known[:, j]], j] = by_rank(values[rows, j], drawn[:, j])
            explained = np.maximum(explained, model.explained)
        self.explained_ = dict(zip(read.chosen.masked, explained.tolist()))
        return out

    def _given(self, read: MaskedColumns) -> list[Name]:
        """Return the names of the keys, which are released as they are."""
        table, given = read.view.table, self.given
        if given is None:
            return []
        names = [given] if isinstance(given, str) or table.has(given) else list(given)
        for name in names:
            table.place(name, who="given")
            if name in read.chosen.masked:
                raise BadOptionError(
                    "given", name, "columns that are not shuffled: name those that are in "
                    "columns=[...], and this one in one of the two",
                )  # fmt: skip
        if len(set(names)) < len(names):
            raise BadOptionError("given", names, "each column once")
        return names

    def _look_at(self, read: MaskedColumns, released: Numbers) -> None:  # noqa: ARG002
        """Warn where the keys tell the ranks."""
        for name, share in self.explained_.items():
            if share > TOLD:
                warning = UnchangedWarning.by_keys(column=name, percent=100 * share)
                warnings.warn(warning, stacklevel=4)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreModel:
    """Normal scores of records, split into what their keys explain and the rest.

    Attributes
    ----------
    fitted, rest : arrays of shape (n, d)
        B s and u; the rest is 0 where a number is missing.
    cov : array of shape (d, d)
        The covariance of the rest, of the complete records.
    explained : array of shape (d,)
        The share of the variance of scores that the keys explain.
    """

    design: Floats  # (n, p + 1), with a column of ones
    complete: Truths
    fitted: Floats
    rest: Floats
    cov: Floats
    explained: Floats

    @classmethod
    def of(cls, scores: Floats, keys: Floats) -> ScoreModel:
        """Regress scores, NaN where missing, on keys; both of n records."""
        design = np.column_stack([np.ones(len(scores)), keys])
        complete: Truths = np.asarray(~np.isnan(scores).any(axis=1))
        B, *_ = np.linalg.lstsq(design[complete], scores[complete], rcond=None)
        fitted = design @ B
        rest = np.where(np.isnan(scores), 0.0, scores - fitted)
        own = rest[complete]
        variance = scores[complete].var(axis=0)
        left = (own**2).mean(axis=0) / np.where(variance > 0, variance, 1.0)
        return cls(
            design=design, complete=complete, fitted=fitted, rest=rest,
            cov=own.T @ own / len(own), explained=np.where(variance > 0, 1.0 - left, 0.0),
        )  # fmt: skip

    def draw(self, draws: Floats, amount: float) -> Floats:
        """Return drawn scores, from independent standard normal numbers of shape (n, d)."""
        noise = draws.copy()
        # Regressed on keys and rest, what is left of the noise is uncorrelated with both, exactly;
        # and its covariance is made the unit matrix before it gets that of the rest. Records with
        # a missing number, of which no covariance is taken, get the noise as it was drawn.
        seen = np.column_stack([self.design, self.rest])[self.complete]
        noise[self.complete] -= seen @ np.linalg.lstsq(seen, noise[self.complete], rcond=None)[0]
        own = noise[self.complete]
        noise[self.complete] = own @ symmetric_root(own.T @ own / len(own), -0.5)
        noise = noise @ symmetric_root(self.cov)
        kept = float(np.sqrt(max(1.0 - amount**2, 0.0)))
        return np.asarray(self.fitted + kept * self.rest + amount * noise)


def normal_scores(values: Floats) -> Floats:
    """Return the normal scores of mean ranks among the known numbers; NaN where missing."""
    seen = ~np.isnan(values)
    scores = np.full(len(values), np.nan)
    if seen.any():
        _, place, sizes = np.unique(values[seen], return_inverse=True, return_counts=True)
        mean_ranks = np.cumsum(sizes) - (sizes - 1) / 2
        scores[seen] = ndtri((mean_ranks[place] - 0.5) / seen.sum())
    return scores


def by_rank(values: Floats, drawn: Floats) -> Floats:
    """Return the known values, in the order of what was drawn for them."""
    seen = ~np.isnan(values)
    placed = np.empty(int(seen.sum()))
    placed[np.argsort(drawn[seen], kind="stable")] = np.sort(values[seen])
    return placed


def key_scores(view: View, names: Sequence[Name], rows: Integers) -> Floats:
    """Return keys of some records as numbers, shape (m, p): normal scores, or indicators.

    A missing number has the score 0 in the middle, and an indicator of its own.
    """
    columns: list[Floats] = [np.empty((len(rows), 0))]
    for name in names:
        kind = view.kind(name)
        if kind == "nominal":
            columns.append(corners(view.codes(name)[rows]))
            continue
        values = view.numbers(name)[rows] if view.is_number(name) else _ranks(view, name)[rows]
        scores = normal_scores(values)
        lacking = np.isnan(scores)
        columns.append(np.where(lacking, 0.0, scores)[:, None])
        if lacking.any() and not lacking.all():
            columns.append(lacking[:, None].astype(np.float64))
    return np.hstack(columns)


def _ranks(view: View, name: Name) -> Floats:
    codes = view.categories(name).codes
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def _refuse_few(count: int, keys: Floats, d: int, stratum: str) -> None:
    """Refuse strata in which keys would explain everything, by their number alone.

    A regression on half as many keys as there are records explains half of pure chance; noise that
    is uncorrelated with d scores and the keys needs 2 d + p + 1 records.
    """
    least = 2 * (keys.shape[1] + d) + 2
    if count < least:
        raise BadTableError(
            f"Stratum {stratum!r} has {count} complete records, and shuffling {d} columns given "
            f"{keys.shape[1]} scores of keys needs at least {least}: with fewer, numbers would "
            "stay nearly where they are. Merge strata, or give fewer keys or columns."
        )


def _advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    amount, given = float(options.get("amount", 1)), options.get("given")
    drawn = "drawn" if amount == 1 else f"drawn partly (amount {amount:g})"
    kept = "Rank correlations among the shuffled columns"
    if given:
        named = listed(given) if isinstance(given, str) else ", ".join(map(str, given))
        kept += f", and with {named},"
    return [
        f"Values were exchanged between records by ranks that were {drawn} from a normal copula. "
        "The distribution of a column is exactly kept (where no rule moved it): means, variances "
        "and quantiles without weights can be used as they are.",
        f"{kept} are kept approximately. Relations that ranks do not show (of parts of the "
        "records, beyond monotone ones) and relations to all other columns are drawn towards "
        "zero; estimates with weights change.",
    ]


METHOD = register(
    Method(
        name="shuffling",
        masker=Shuffling,
        tuned=Tuned(name="amount", low=0.01, high=1.0, values=(0.1, 0.2, 0.5, 1)),
        defaults={"amount": 1},
        description=lambda given: (
            "shuffling" if given["amount"] == 1 else f"shuffling, amount {given['amount']:g}"
        ),
        attack="shuffling",
        attack_options=lambda masker: {"amount": masker.amount, "given": masker.given},
        advice=_advise,
    )
)
