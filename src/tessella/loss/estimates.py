"""Estimates that a survey is used for, before and after masking, beside their sampling errors.

A difference that is small against the sampling error is one that no user could tell from the chance
of the sample. What this finds has figures of the original, and is as confidential as they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Unpack

import numpy as np

from .._parameters import NONE, Whole, parameters
from .._types import Floats, Name
from ..exceptions import BadOptionError
from ..parallel import each
from ..rules import Rule
from ..rules.forms import Governing, Linear
from .base import ComparedTables, Reading, compare
from .survey import Amounts, Design, Domains, EstimateLoss, SurveyEstimate

MOST = 50  # categories of a column, the most frequent ones
LEAST = 50  # records of a category; a tenth of a table of fewer than 500, but no fewer than 10
DISTINCT = 20  # different values of an amount, by default
SKEWED = 1.0  # the least skewness of an amount, by default: that of incomes is 2 and more
# A column named so may be one of incomes; the revenue of a firm is not.
INCOME = re.compile(
    r"income|hhinc|pinc|earn|wage|salar|einkom|lohn|gehalt|revenu(?!e)|renta|ingres|reddit|renda|"
    r"sueldo",
    re.IGNORECASE,
)

INEQUALITY: Mapping[str, tuple[Callable[[Amounts], float], Callable[[Amounts], Floats]]] = {
    "Gini coefficient": (Amounts.gini, Amounts.gini_influence),
    "S80/S20": (Amounts.quintile_ratio, Amounts.quintile_ratio_influence),
    "at-risk-of-poverty rate": (Amounts.poverty, Amounts.poverty_influence),
}


@parameters(least=[Whole(2), NONE])
def estimate_loss(
    original: Any,
    masked: Any,
    *,
    amounts: Iterable[Name] | None = None,
    ratios: Iterable[tuple[Name, Name]] = (),
    by: Iterable[Name] | bool = False,
    strata: Any = None,
    least: int | None = None,
    **reading: Unpack[Reading],
) -> EstimateLoss:
    """Compare weighted survey estimates: the masking error beside the sampling error.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`. The
        schema's unit, such as a household, is what was sampled; otherwise each record is.
    amounts : names, optional
        The columns of which inequality and poverty are estimated. Otherwise inequality of numbers
        that look like amounts (none negative, more than half of them positive, at least 20
        different, skewness at least 1, as no age has), and poverty of those named like an income.
    ratios : pairs of names, optional
        Numerator and denominator, both columns of numbers.
    by : names or bool, default False
        Columns of categories, True for all: the mean of every number is estimated within each of
        their categories, too.
    strata : names or array-like of shape (n,), optional
        The strata of the sample.
    least : int, optional
        Shares and means are estimated for categories that at least so many records of the original
        have: otherwise 50, or a tenth of the records of a smaller table, at least 10. At most 50
        categories of a column, the most frequent ones.

    Returns
    -------
    EstimateLoss
        Its value is the share of estimates that moved by more than their sampling error;
        `estimates` has each, with `before`, `after`, `difference`, `error` and `ratio`.

    Notes
    -----
    Totals and means of numbers, shares of categories, ratios of totals, and of amounts the Gini
    coefficient, S80/S20 and the at-risk-of-poverty rate (below 60 % of the median), each over the
    cells that its table knows. Errors are by linearisation under sampling of units with
    replacement (see `tessella.loss.survey`), without correction for finite populations.

    References
    ----------
    J.-C. Deville (1999). Variance estimation for complex statistics and estimators: linearization
    and residual techniques. Survey Methodology 25(2), 193-203.
    G. Osier (2009). Variance estimation for complex indicators of poverty and inequality using
    linearization techniques. Survey Research Methods 3(3), 167-195.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.loss import estimate_loss
    >>> x = pd.DataFrame({"pay": [1.0, 2.0, 3.0, 6.0]})
    >>> found = estimate_loss(x, x.assign(pay=[1.0, 2.0, 3.0, 8.0]))
    >>> mean = next(one for one in found.estimates if one.kind == "mean")
    >>> mean.before, mean.after, round(mean.error, 3), mean.moved  # sqrt(14 / 3 / 4)
    (3.0, 3.5, 1.08, False)
    """
    pair = compare(original, masked, **reading)
    found = _Estimates(pair, strata, least)
    _check_numbers(pair, amounts, "amounts")
    pairs = [(upper, lower) for upper, lower in ratios]
    _check_numbers(pair, [name for one in pairs for name in one], "ratios")
    if found.design.n_units < 2:
        note = "no sampling error can be computed: there is one unit only"
        return EstimateLoss(estimates=(), notes=(note,))
    estimates = [*found.of_numbers(), *found.of_ratios(pairs), *found.of_amounts(amounts)]
    estimates += found.of_categories()
    if isinstance(by, bool):
        by = pair.categories if by else ()
    within = found.of_domains(by)
    aside = [f"column {name!r} is left out: {why}" for name, why in pair.skipped.items()]
    if pair.weights is None and pair.schema is not None:
        aside += [
            f"column {name!r} may be a weight, which nobody confirmed: nothing is weighted by it"
            for name in pair.schema.names("weight")
        ]
    return EstimateLoss(
        estimates=_worst_first(estimates), within=_worst_first(within),
        notes=(*aside, *found.notes),
    )  # fmt: skip


def moved_shares(
    original: Any, masked: Any, *, least: int = 1, **reading: Unpack[Reading]
) -> list[SurveyEstimate]:
    """List the categories whose shares moved by more than one sampling error, the worst first.

    Shares are of the cells that each table knows, with errors as in `estimate_loss`. Categories
    that fewer than `least` records of the original have are left out; no others are.
    """
    pair = compare(original, masked, **reading)
    found = _Estimates(pair, None, max(1, least), most=None).of_categories()
    return [one for one in _worst_first(found) if one.moved]


def component_ratios(rules: Iterable[Rule], numbers: Iterable[Name]) -> list[tuple[Name, Name]]:
    """Return the part and the whole of sums and orders among rules: a + b == c, a + b <= c, a <= c.

    Examples
    --------
    >>> from tessella.loss.estimates import component_ratios
    >>> from tessella.rules import Rules
    >>> rules = Rules.of(["net + tax == gross", "sales <= turnover", "if net > 0: tax <= 9"])
    >>> component_ratios(rules, ["net", "tax", "gross", "sales", "turnover"])
    [('net', 'gross'), ('tax', 'gross'), ('sales', 'turnover')]
    """
    known, found = set(numbers), dict[tuple[Name, Name], None]()
    for form in (form for rule in rules if rule.condition is None for form in rule.forms):
        linear = form.linear if isinstance(form, Governing) else form
        if not isinstance(linear, Linear) or linear.constant or not known >= {*linear.coefficients}:
            continue
        signs = linear.coefficients
        if set(map(abs, signs.values())) != {1.0}:
            continue
        wholes = [name for name, sign in signs.items() if sign < 0]
        if linear.operator == "==" and len(wholes) != 1:
            wholes = [name for name, sign in signs.items() if sign > 0]
        if len(wholes) == 1:
            found |= {(part, wholes[0]): None for part in signs if part != wholes[0]}
    return list(found)


def _worst_first(found: Iterable[SurveyEstimate]) -> tuple[SurveyEstimate, ...]:
    return tuple(sorted(found, key=lambda one: -one.ratio))


def _check_numbers(pair: ComparedTables, names: Iterable[Name] | None, who: str) -> None:
    for name in names or ():
        if name not in (*pair.numbers, *pair.empty, *pair.skipped):
            raise BadOptionError(who, name, "columns of numbers that are compared")


def design_of(pair: ComparedTables, strata: Any = None) -> Design:
    """Return how the records of the original were sampled, as far as the schema knows."""
    weights = np.ones(pair.n_rows) if pair.weights is None else pair.weights * pair.mean_weight
    ids = None if strata is None else pair.original.strata(strata).ids
    return Design(weights, pair.original.units, ids)


class _Estimates:
    """Estimates of one pair of tables, and notes of what was left out."""

    def __init__(
        self, pair: ComparedTables, strata: Any, least: int | None, most: int | None = MOST
    ) -> None:
        self.pair, self.design, self.most = pair, design_of(pair, strata), most
        self.least = least or max(10, min(LEAST, pair.n_rows // 10))
        self.notes: list[str] = []

    def _numbers(self, name: Name) -> tuple[Floats, Floats] | None:
        if name not in self.pair.numbers:
            return None  # with a reason among the notes, or empty
        cells = self.pair.number(name)
        for side, which in ((cells.before, "original"), (cells.after, "masked table")):
            if np.isnan(side).all():
                self.notes.append(f"column {name!r} has no value in the {which}: not estimated")
                return None
        return cells.before, cells.after

    def of_numbers(self) -> Iterator[SurveyEstimate]:
        """Estimate the total and the mean of each number."""
        w = self.design.weights
        for name in self.pair.numbers:
            sides = self._numbers(name)
            if sides is None:
                continue
            known = ~np.isnan(sides[0])
            filled = np.where(known, sides[0], 0.0)
            totals = [float(w @ np.nan_to_num(side)) for side in sides]
            sizes = [float(w @ ~np.isnan(side)) for side in sides]
            mean = totals[0] / sizes[0]
            influence = np.where(known, filled - mean, 0.0) / sizes[0]
            common: dict[str, Any] = {"column": name, "n": int(known.sum())}
            before, after = totals
            yield SurveyEstimate(
                kind="total", before=before, after=after, error=self.design.error(filled), **common
            )
            yield SurveyEstimate(
                kind="mean", before=mean, after=after / sizes[1],
                error=self.design.error(influence), **common,
            )  # fmt: skip

    def of_ratios(self, ratios: Iterable[tuple[Name, Name]]) -> Iterator[SurveyEstimate]:
        """Estimate ratios of two totals, over the records that know both."""
        w = self.design.weights
        for upper, lower in ratios:
            above, below = self._numbers(upper), self._numbers(lower)
            if above is None or below is None:
                continue
            known = [~(np.isnan(a) | np.isnan(b)) for a, b in zip(above, below)]
            parts = [np.where(k, side, 0.0) for k, side in zip(known, above)]
            wholes = [np.where(k, side, 0.0) for k, side in zip(known, below)]
            sums = [float(w @ side) for side in wholes]
            if not all(sums):
                self.notes.append(f"the ratio of {upper!r} to {lower!r} has a total of zero below")
                continue
            before, after = (float(w @ part) / total for part, total in zip(parts, sums))
            influence = (parts[0] - before * wholes[0]) / sums[0]
            yield SurveyEstimate(
                kind="ratio", column=upper, of=str(lower), n=int(known[0].sum()), before=before,
                after=after, error=self.design.error(influence),
            )  # fmt: skip

    def of_amounts(self, amounts: Iterable[Name] | None) -> Iterator[SurveyEstimate]:
        """Estimate inequality and poverty."""
        named = amounts is not None
        columns: list[tuple[Name, tuple[Floats, Floats], list[Any], list[str]]] = []
        for name in self.pair.numbers if amounts is None else amounts:
            sides = self._numbers(name) if named else self.pair.number(name)
            if sides is None:
                continue
            before, after = sides if isinstance(sides, tuple) else (sides.before, sides.after)
            if not named and not is_amount(before, self.design.weights):
                continue
            known = [~np.isnan(side) for side in (before, after)]
            if any(k.any() and side[k].min() < 0 for k, side in zip(known, (before, after))):
                self.notes.append(f"column {name!r} has negative values: no inequality estimated")
                continue
            kinds = [*INEQUALITY][: None if named or INCOME.search(str(name)) else -1]
            columns.append((name, (before, after), known, kinds))
        for estimates, notes in each(lambda own: self._inequality(*own), columns):
            self.notes += notes
            yield from estimates

    def _inequality(
        self, name: Name, sides: tuple[Floats, Floats], known: list[Any], kinds: Iterable[str]
    ) -> tuple[list[SurveyEstimate], list[str]]:
        w = self.design.weights
        if not all(k.any() and side[k].max() > 0 for k, side in zip(known, sides)):
            return [], [f"column {name!r} has no positive value: no inequality estimated"]
        found: list[SurveyEstimate] = []
        notes: list[str] = []
        first, second = (Amounts(side[k], w[k]) for k, side in zip(known, sides))
        for kind in kinds:
            estimate, influence = INEQUALITY[kind]
            values = estimate(first), estimate(second)
            undefined = kind == "at-risk-of-poverty rate" and not first.median > 0
            if undefined or not all(map(math.isfinite, values)):
                notes.append(f"column {name!r} has too many zeros: no {kind} estimated")
                continue
            full = np.zeros(len(w))
            full[known[0]] = influence(first)
            own = SurveyEstimate(
                kind=kind, column=name, n=int(known[0].sum()), before=values[0], after=values[1],
                error=self.design.error(full),
            )  # fmt: skip
            found.append(own)
        return found, notes

    def _domains(self, name: Name) -> tuple[Domains, Domains, Any]:
        """Return the categories of a column before and after, and those that are estimated."""
        cells = self.pair.category(name)
        before, after = (
            self.design.domains(codes, len(cells.labels)) for codes in (cells.before, cells.after)
        )
        often = np.argsort(-before.size, kind="stable")[: self.most]
        return before, after, often[before.size[often] >= self.least]

    def of_categories(self) -> Iterator[SurveyEstimate]:
        """Estimate the share of each category that enough records have."""
        for name in self.pair.categories:
            labels, (before, after, chosen) = self.pair.category(name).labels, self._domains(name)
            if not len(after.rows):
                self.notes.append(f"column {name!r} has no value in the masked table")
                continue
            if not len(chosen):
                self.notes.append(f"column {name!r} has no category of {self.least} records")
                continue
            (shares, errors), (fresh, _) = before.shares(), after.shares()
            for at in chosen:
                yield SurveyEstimate(
                    kind="share", column=name, of=str(labels[at]), n=int(before.size[at]),
                    before=float(shares[at]), after=float(fresh[at]), error=float(errors[at]),
                )  # fmt: skip

    def of_domains(self, by: Iterable[Name]) -> Iterator[SurveyEstimate]:
        """Estimate the mean of each number within categories that enough records have."""
        for column in (by,) if isinstance(by, str) else by:
            if column in (*self.pair.empty, *self.pair.skipped):
                continue
            if column not in self.pair.categories:
                raise BadOptionError("by", column, "columns of categories that are compared")
            labels = self.pair.category(column).labels
            before, after, chosen = self._domains(column)
            for name in self.pair.numbers:
                cells = self.pair.number(name)
                means, errors = before.means(cells.before[before.rows])
                fresh, _ = after.means(cells.after[after.rows])
                for at in chosen:
                    if np.isnan(means[at]) or np.isnan(fresh[at]):
                        continue  # no number there, or no record any more: shares tell
                    yield SurveyEstimate(
                        kind="mean", column=name, within=(column, str(labels[at])),
                        n=int(before.size[at]), before=float(means[at]), after=float(fresh[at]),
                        error=float(errors[at]),
                    )  # fmt: skip


def is_amount(values: Floats, weights: Floats) -> bool:
    """Return whether numbers look like amounts: positive, many, and skewed as ages are not."""
    known = ~np.isnan(values)
    y, w = values[known], weights[known]
    if len(y) < DISTINCT or y.min() < 0 or not w @ (y > 0) > w.sum() / 2:
        return False
    if len(np.unique(y)) < DISTINCT:
        return False
    y = y / y.max()
    centred = y - w @ y / w.sum()
    second, third = (float(w @ centred**power / w.sum()) for power in (2, 3))
    return second > 0 and third / second**1.5 >= SKEWED
