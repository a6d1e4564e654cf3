"""Local suppression: empty few cells of categorical keys, so that every combination has k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from .._parameters import FLAG, NONE, Number, OneOf, Whole
from .._types import Floats, Integers, Name, Truths
from .._wording import counted
from ..exceptions import BadOptionError, BadTableError, BrokenPromiseError
from ..frame import NULL, Table, View
from ..frame.columns import number_values
from ..grouping.base import check_k
from ..keys.matches import count_matches
from ..keys.suppression import Suppression, Task, suppress_keys, suppress_subsets
from ..keys.wildcard import suppress_by_wildcard
from .base import Declared, Masker
from .registry import Method, Options, register
from .selection import Selection, by_column, select

DISCRETE = ("text", "category", "boolean", "integer", "date")
CATEGORIES = ("nominal", "ordinal")
PRICE = Number(above=0)
SHARE = Number(least=0, most=1)


@dataclass(eq=False, repr=False)
class LocalSuppression(Masker):
    r"""Empty as few cells of keys as possible until each released combination has k respondents.

    Parameters
    ----------
    k : int, default 3
        How many respondents share each released combination of keys: distinct units where the
        schema names a unit, records otherwise.
    columns : list of names, optional
        The keys; all other columns are released as they are. By default the schema's nominal and
        ordinal quasi-identifiers; without a schema all columns but those of other numbers.
    importance : mapping of name to number, optional
        What it costs to empty a cell of a key: the larger, the rarer it is emptied. 1 by default.
        (sdcMicro's `importance` is a rank, 1 for the most important.)
    never : list of names, optional
        Keys of which no cell may be emptied.
    limit : int, float or mapping of name to these, optional
        The most cells of a column that may be emptied; a float from 0 to 1 is a share of records.
    subsets : int, optional
        Reach k in every subset of so many keys, in place of all keys together.
    missing : {"category", "wildcard"}, default "category"
        What an empty cell is: a value of its own, or equal to every value, as sdcMicro counts.
        Only the first is a guarantee: see Notes.
    weighted : bool, default False
        Whether a cell costs the sampling weight of its record, times importance.
    strata : name or list of names, optional
        k is reached within each stratum. Released as they are.
    weights : name, optional
        Positive weights, for `weighted`; otherwise the schema's.
    schema : Schema, optional
        Roles, kinds and missing codes.
    random_state : int or None, default None
        Seeds the search among releases; None is 0. Chance protects nobody here.

    Attributes
    ----------
    cells_ : dict of name to int
        How many cells of each key were emptied.
    n_suppressed_ : int
        How many of all.
    cost_, bound_ : float
        The weighted number of emptied cells, and a lower bound of it over all releases that keep
        the promise; the number itself without importance and weights.
    gap_ : float
        (cost_ - bound_) / cost_: how much cheaper another release could be at most.
    proved_optimal_ : bool
        Whether no release costs less.
    account_ : str
        All of this in words.
    columns_, untouched_ : list of names
        The keys, and the columns that were released as they are.

    Notes
    -----
    With ``missing="category"`` the problem is

    .. math:: \min \sum_{i,j} w_j e_{ij} \quad\text{such that every released combination has } k,

    e being 1 in emptied cells. What a cell that is null already means is the same as an emptied
    one; a missing code of the schema is a value, which can be emptied. The bound is the Lagrangian
    dual of facility location with a least size (`tessella.keys.suppression`), improved by an
    integer programme where there are few combinations.

    With ``missing="wildcard"`` two records match if in every key they agree or one is empty, and
    each must match k. That is weaker: whoever knows a person's keys can see which of the matching
    records agree in all of them. Taken literally, it is reached by emptying all keys of k - 1
    records, who then match everybody: a sham. So here a record is either left as it is, or loses
    the fewest cells with which k records of the original agree in what it keeps; the release with
    the fewest cells among these is looked for. `account_` says how many records have a combination
    that fewer than k share when an empty cell is a value.

    References
    ----------
    .. [1] A. Meyerson, R. Williams (2004). On the complexity of optimal k-anonymity. PODS.
    .. [2] M. Templ, A. Kowarik, B. Meindl (2015). Statistical disclosure control for micro-data
       using the R package sdcMicro. Journal of Statistical Software 67(4).

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.masking import LocalSuppression
    >>> table = pd.DataFrame({"town": ["Reus"] * 3 + ["Valls"], "sex": list("mmff")})
    >>> masker = LocalSuppression(2)
    >>> masker.fit_transform(table).fillna("").values.tolist()
    [['Reus', 'm'], ['Reus', 'm'], ['', 'f'], ['', 'f']]
    >>> masker.n_suppressed_, masker.bound_, masker.proved_optimal_
    (2, 2.0, True)
    """

    _parameters: ClassVar[Declared] = {
        "weighted": [FLAG],
        "missing": [OneOf(("category", "wildcard"))],
        "subsets": [Whole(1), NONE],
    }

    k: int = 3
    _: KW_ONLY
    importance: Any = None
    never: Any = None
    limit: Any = None
    subsets: int | None = None
    missing: str = "category"
    weighted: bool = False

    def _mask(self, source: Table, *, weights: Any, strata: Any) -> Any:
        check_k(self.k, source.n_rows)
        view = View(source, self.schema)
        chosen = self._choose(view, weights, strata)
        keys = chosen.masked
        task = self._task(view, chosen, weights)
        done = self._solve(task)
        emptied = (done.codes == 0) & (task.codes != 0)
        cells = {name: emptied[:, j] for j, name in enumerate(keys) if emptied[:, j].any()}
        masked = source.empty(cells) if cells else source.native
        self._check(task, done, View(masked, self.schema), keys)
        self.columns_ = list(keys)
        self.cells_ = {name: int(emptied[:, j].sum()) for j, name in enumerate(keys)}
        self.n_suppressed_ = int(emptied.sum())
        self.cost_, self.bound_, self.gap_ = done.cost, done.bound, done.gap
        self.proved_optimal_ = done.proved_optimal
        self.account_ = self._describe(task, done)
        self._keep_facts(source, chosen)
        return masked

    def _choose(self, view: View, weights: Any, strata: Any) -> Selection:
        """Choose the keys: discrete columns, named or by their role."""
        columns = self.columns
        if columns is None:
            named: list[Name] = list(view.columns)
            if self.schema is not None:
                known = self.schema.names("quasi-identifier")
                named = [name for name in known if self.schema[name].kind in CATEGORIES]
            apart = view.strata(strata).columns
            columns = [
                name
                for name in named
                if view.table.has(name) and name not in apart and _is_discrete(view, name)
            ]
            if not columns:
                raise BadTableError(
                    "The table has no column of categories to suppress in. Name the keys in "
                    "columns=[...]."
                )
        chosen = select(
            view.table, columns=columns, strata=strata, weights=weights, schema=self.schema,
            who=type(self).__name__, categories=None,
        )  # fmt: skip
        for name in chosen.masked:
            if not _is_discrete(view, name):
                raise BadTableError(
                    f"Column {name!r} ({view.table.facts(name).dtype}) holds numbers with "
                    "decimals: hardly two records are alike. Recode it to classes first, or leave "
                    "it out of columns=[...]."
                )
        return chosen

    def _task(self, view: View, chosen: Selection, weights: Any) -> Task:
        keys, n = chosen.masked, view.n_rows
        never = self._names(self.never, keys, "never")
        units = view.units
        if units is not None and self.missing == "wildcard":
            raise BadOptionError(
                "missing= of the step", "wildcard", "'category' where the schema names a unit: "
                "matches of empty cells are counted in records only"
            )  # fmt: skip
        costs = None
        if self.weighted:
            if weights is None and view.weights() is None:
                raise BadOptionError("weighted", True, "a column of weights in weights=...")
            costs = chosen.weights / chosen.weights.mean()
        return Task(
            codes=np.column_stack([key_codes(view, name) for name in keys]),
            k=self.k,
            importance=self._importance(keys),
            never=np.array([name in never for name in keys]),
            limit=self._limit(keys, n),
            units=units,
            strata=chosen.strata.ids,
            costs=costs,
        )

    def _solve(self, task: Task) -> Suppression:
        seed = self.random_state if isinstance(self.random_state, int) else 0
        size = self.subsets
        q = task.codes.shape[1]
        if size is not None and size > q:
            raise BadOptionError("subsets", size, f"at most {q}, the number of keys")
        solve = suppress_keys if self.missing == "category" else suppress_by_wildcard
        if size is None or size == q:
            return solve(task, seed=seed)
        return suppress_subsets(task, size, solve=solve, seed=seed)

    def _names(self, given: Any, keys: tuple[Name, ...], who: str) -> set[Name]:
        if given is None:
            return set()
        named = [given] if isinstance(given, str) else given
        if not isinstance(named, list | tuple | set):
            raise BadOptionError(who, given, f"a list of keys, such as {list(keys)[:1]!r}")
        by_column(dict.fromkeys(named), keys, who=who)
        return set(named)

    def _importance(self, keys: tuple[Name, ...]) -> Floats:
        given = by_column(self.importance or {}, keys, who="importance")
        if self.importance is not None and not isinstance(self.importance, Mapping):
            raise BadOptionError(
                "importance", self.importance, "a positive number for each key: {'age': 2}"
            )
        for name, price in given.items():
            if not PRICE.accepts(price):
                raise BadOptionError(f"importance[{name!r}]", price, "a positive number")
        return np.array([float(given.get(name, 1)) for name in keys])

    def _limit(self, keys: tuple[Name, ...], n: int) -> Floats:
        given = by_column(self.limit, keys, who="limit")
        out = []
        for name in keys:
            most = given.get(name)
            if most is None:
                out.append(np.inf)
            elif Whole(0).accepts(most):
                out.append(float(most))
            elif SHARE.accepts(most):
                out.append(float(np.floor(most * n)))
            else:
                raise BadOptionError(
                    f"limit[{name!r}]", most, "a number of cells, or a share of records as 0.05"
                )
        return np.array(out)

    def _check(self, task: Task, done: Suppression, view: View, keys: tuple[Name, ...]) -> None:
        """Count again in the table that will be released."""
        written = np.column_stack([key_codes(view, name) for name in keys])
        same = np.array_equal(written == 0, done.codes == 0)
        again = replace(task, codes=written)
        sets: Any = (
            [range(len(keys))]
            if self.subsets is None
            else combinations(range(len(keys)), self.subsets)
        )
        if not same or any(_fewest(again, list(own), self.missing) < self.k for own in sets):
            raise BrokenPromiseError(
                f"The released table does not have {self.k} for every combination of keys; it is "
                "withheld: please report."
            )

    def _describe(self, task: Task, done: Suppression) -> str:
        q = len(self.cells_)
        share = self.n_suppressed_ / (q * len(task.codes))
        text = f"{counted(self.n_suppressed_, 'cell')} of {q} keys suppressed ({share:.2%})"
        by = ", ".join(f"{name} {number:,}" for name, number in self.cells_.items() if number)
        text += f": {by}." if by else "."
        weighed = "" if self.cost_ == self.n_suppressed_ else f" Weighted {self.cost_:,.6g}."
        proof = (
            "No release that keeps the promise empties less"
            if self.proved_optimal_
            else f"At least {self.bound_:,.6g} are needed: at most {self.gap_:.1%} could be saved"
        )
        if self.subsets is not None:
            text += f" k is reached in every subset of {self.subsets} keys."
        if self.missing == "category":
            return f"{text}{weighed} {proof}."
        below = _records_below(task, done.codes, self.k)
        return (
            f"{text}{weighed} {proof}, among those in which a record stays as it is or loses what "
            "it would need alone. An empty cell was counted as equal to every value (wildcard): "
            f"{counted(below, 'record')} of {len(task.codes):,} have a released combination that "
            f"fewer than {self.k} share when it is a value of its own."
        )


def key_codes(view: View, name: Name) -> Integers:
    """Return a key as whole numbers from 1, 0 where the cell is null, as an emptied one is."""
    codes = view.codes(name)
    empty = view.states(name) == NULL
    return np.where(empty, 0, number_values(codes) + 1)


def _is_discrete(view: View, name: Name) -> bool:
    """Tell whether a column is one of categories or of whole numbers."""
    if view.table.facts(name).family in DISCRETE:
        return True
    if not view.table.facts(name).numeric:
        return False
    numbers = view.numbers(name)
    known: Truths = ~np.isnan(numbers)
    return bool((numbers[known] == np.rint(numbers[known])).all())


def _fewest(task: Task, own: list[int], missing: str) -> int:
    """Return the fewest respondents that share, or match, a combination of some keys."""
    found = task.count(np.ascontiguousarray(task.codes[:, own]))
    if missing == "category":
        return int(found.respondents.min())
    return int(count_matches(found.codes, found.records, found.strata).min())


def _records_below(task: Task, codes: Integers, k: int) -> int:
    found = task.count(codes)
    return int(found.records[found.respondents < k].sum())


def _advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    return [
        "Single cells of the keys were emptied, where a combination of keys was rare. They are not "
        "missing at random: an analysis of complete records leaves out rare people. Report how "
        "many cells are empty, treat an empty cell as 'not stated', or impute."
    ]


METHOD = register(
    Method(
        name="local suppression",
        masker=LocalSuppression,
        title="Local suppression",
        masks="categories",
        defaults={"k": 3},
        label="local suppression",
        description=lambda given: f"local suppression to k = {given.get('k', 3)}",
        groups=lambda options, columns: [list(columns)] if options.get("subsets") is None else [],
        advice=_advise,
    )
)
