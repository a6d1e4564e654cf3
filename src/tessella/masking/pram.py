"""PRAM: categories are changed at random, by chances that everybody may know."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._parameters import FLAG, Number
from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadOptionError, BadTableError
from ..frame import Table
from ..grouping.base import Chance, chance_of
from ..rules.collection import Rules
from .base import Declared, Masker, rows_of_strata
from .registry import Method, Options, Tuned, listed, register
from .selection import by_column, select

MOST = 2000  # categories; chances from each to each are held
SHARE = Number(least=0, most=1)


@dataclass(eq=False, repr=False)
class PRAM(Masker):
    r"""Post-randomisation: give each record a category drawn by the chances of its own.

    Parameters
    ----------
    p : float or mapping of name to float, default 0.8
        The chance that a category stays; the others share the rest evenly. Not used for the
        columns that `matrix` names.
    matrix : mapping of name to {category: {category: chance}}, optional
        The chances themselves: from a category (outer) to another (inner), summing to 1; those
        that are not named are 0.
    invariant : bool, default False
        Whether the chances are changed so that the expected frequencies are the observed ones.
    columns : list of names, optional
        The columns to mask; all others are released as they are. By default all that are neither
        `strata` nor `weights`, and a column of numbers among them is an error. Columns of whole
        numbers are masked if they are named; the schema's quasi-identifiers, if there is one.
    strata : name or list of names, optional
        Categories are those of the stratum, and so are frequencies. Released as they are.
    weights : name, optional
        Positive weights; frequencies are weighted.
    schema : Schema, optional
        Roles, kinds and missing codes.
    rules : Rules or text, optional
        Rules that the release is confronted with; nothing is restored, see `restoration_`.
    random_state : int, RandomState or None, default None
        A seed; None draws from the operating system's entropy.

    Attributes
    ----------
    matrix_ : dict of name to {category: {category: chance}}
        The chances that were used; with strata, a list of these, in the order of `strata_`.
    strata_ : list of str
        The names of the strata.
    changed_ : dict of name to float
        The share of each column's known values that were changed.
    restoration_ : Restoration or None
        How many released records break each rule.
    columns_, untouched_ : list of names
        The columns that were masked, and those that were released as they are.

    Notes
    -----
    A record with category i gets category j with chance :math:`P_{ij}`, independently of all
    others [1]_. Frequencies t become :math:`t P` in expectation. *Invariant* PRAM takes
    :math:`R = P Q` with :math:`Q_{jk} = P_{kj} t_k / \sum_l P_{lj} t_l`, the chance that a
    record now in j came from k: then :math:`t R = t` [2]_. The chance to stay, :math:`R_{ii}`,
    is then not p: see `matrix_`.

    A missing value stays missing. In a column (of a stratum) with one category nothing can change.
    k-anonymity is not claimed.

    References
    ----------
    .. [1] J. M. Gouweleeuw, P. Kooiman, L. Willenborg, P.-P. de Wolf (1998). Post randomisation
       for statistical disclosure control. Journal of Official Statistics 14(4).
    .. [2] P. Kooiman, L. Willenborg, J. Gouweleeuw (1997). PRAM: a method for disclosure
       limitation of microdata. Statistics Netherlands, Research Paper 9705.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.masking import PRAM
    >>> table = pd.DataFrame({"town": ["Reus", "Valls", "Reus", "Salou"] * 25})
    >>> masker = PRAM(p=0.5, random_state=0)
    >>> released = masker.fit_transform(table)
    >>> masker.matrix_["town"]["Reus"]
    {'Reus': 0.5, 'Valls': 0.25, 'Salou': 0.25}
    >>> 0.2 < masker.changed_["town"] < 0.8
    True
    """

    _parameters: ClassVar[Declared] = {"invariant": [FLAG]}

    p: Any = 0.8
    _: KW_ONLY
    matrix: Any = None
    invariant: bool = False
    rules: Any = None

    def _mask(self, source: Table, *, weights: Any, strata: Any) -> Any:
        rules = None if self.rules is None else Rules.of(self.rules)
        chosen = select(
            source, columns=self.columns, strata=strata, weights=weights, schema=self.schema,
            who=type(self).__name__, categories=True,
        )  # fmt: skip
        self._refuse_strangers(chosen.masked)
        chance, parts = chance_of(self.random_state), rows_of_strata(chosen.strata.ids)
        rows: dict[Name, Integers] = {}
        chances: dict[Name, Any] = {}
        changed: dict[Name, float] = {}
        for name in chosen.masked:
            codes, texts = self._categories(source, name)
            drawn, tables = codes.copy(), []
            for own in parts:
                known = own[codes[own] >= 0]
                among = self._among(name, codes[known], len(texts))
                here = np.searchsorted(among, codes[known])
                names = [texts[code] for code in among]
                P = self._chances(name, here, names, chosen.weights[known])
                drawn[known] = among[_draw(P, here, chance)]
                tables.append(_by_name(P, here, names))
            chances[name] = tables[0] if len(tables) == 1 else tables
            rows[name] = _donors(codes, drawn)
            seen = codes >= 0
            changed[name] = float((codes != drawn)[seen].mean()) if seen.any() else 0.0
        masked = source.rearrange(rows)
        self.matrix_, self.changed_ = chances, changed
        self.strata_, self.columns_ = list(chosen.strata.names), list(chosen.masked)
        self._keep_facts(source, chosen)
        self.restoration_ = None if rules is None else self._confront(rules, source, masked)
        return masked

    def _refuse_strangers(self, masked: tuple[Name, ...]) -> None:
        for who in ("p", "matrix"):
            by_column(getattr(self, who), masked, who=who)
        if self.matrix is not None and not isinstance(self.matrix, Mapping):
            raise BadOptionError(
                "matrix", self.matrix, "{column: {category: {category: chance}}}; a pandas frame "
                'of chances is made such by .to_dict("index")'
            )  # fmt: skip

    def _categories(self, source: Table, name: Name) -> tuple[Integers, list[str]]:
        """Number a column's categories, -1 where missing, and name them."""
        codes, texts = source.labels(name)
        if self.schema is not None:
            gone = {str(code) for code in self.schema[name].missing}
            codes = np.where(np.isin(codes, [texts.index(t) for t in gone & set(texts)]), -1, codes)
        return codes, texts

    def _among(self, name: Name, codes: Integers, n_categories: int) -> Integers:
        """Return the categories that may be drawn, ascending: those here, or all of a matrix."""
        given = isinstance(self.matrix, Mapping) and name in self.matrix
        among = np.arange(n_categories) if given else np.unique(codes)
        if len(among) > MOST:
            raise BadTableError(
                f"Column {name!r} has {len(among):,} categories, and PRAM takes up to {MOST:,}: a "
                "column with so many distinguishes records, whatever they are changed to. Merge "
                "categories, or drop the column."
            )
        return among

    def _chances(self, name: Name, codes: Integers, texts: list[str], weights: Floats) -> Floats:
        """Return the chances from each category to each, shape (c, c)."""
        share = np.bincount(codes, weights=weights, minlength=len(texts))
        here = share > 0
        if isinstance(self.matrix, Mapping) and name in self.matrix:
            P = _read_matrix(self.matrix[name], texts, here, name)
        else:
            P = _staying(self._stay(name), here)
        if not self.invariant or not here.any():
            return P
        reached = share @ P
        back = (P * share[:, None]).T / np.where(reached > 0, reached, 1.0)[:, None]
        return np.asarray(P @ back)

    def _stay(self, name: Name) -> float:
        given: Any = self.p.get(name) if isinstance(self.p, Mapping) else self.p
        if not SHARE.accepts(given):
            who = f"p[{name!r}]" if isinstance(self.p, Mapping) else "p"
            raise BadOptionError(who, given, "the chance that a category stays, from 0 to 1")
        return float(given)


def _staying(p: float, here: Truths) -> Floats:
    """Chances p to stay, and even ones to change to another category that is here."""
    others = int(here.sum()) - 1
    if others < 1:
        return np.eye(len(here))
    P = np.where(here[:, None] & here[None, :], (1 - p) / others, 0.0)
    np.fill_diagonal(P, np.where(here, p, 1.0))
    return P


def _read_matrix(given: Any, texts: list[str], here: Truths, name: Name) -> Floats:
    """Read chances by category; categories that no record has may be left out, not reached."""
    expected = (
        f"for each category of {name!r} ({', '.join(texts[:8])}{', ...' if len(texts) > 8 else ''})"
        " the chances of what it becomes, {category: {category: chance}}, which sum to 1"
    )
    if not isinstance(given, Mapping) or not all(isinstance(r, Mapping) for r in given.values()):
        raise BadOptionError("matrix", given, expected)
    place = {text: at for at, text in enumerate(texts)}
    P = np.eye(len(texts))
    rows = {str(origin): row for origin, row in given.items()}
    for at in np.flatnonzero(here):
        if texts[at] not in rows:
            raise BadOptionError("matrix", list(rows), f"also a row for {texts[at]!r}: {expected}")
        row = rows[texts[at]]
        P[at] = 0.0
        for goal, chance in row.items():
            if not SHARE.accepts(chance):
                raise BadOptionError("matrix", chance, expected)
            if chance > 0 and str(goal) not in place:
                known = f"categories that some record of the table has: {expected}"
                raise BadOptionError("matrix", goal, known)
            if chance > 0:
                P[at, place[str(goal)]] += chance
        if not abs(P[at].sum() - 1) <= 1e-9:
            raise BadOptionError("matrix", dict(row), expected)
    return P


def _draw(P: Floats, codes: Integers, chance: Chance) -> Integers:
    """Draw what each record's category becomes."""
    u = chance.random(len(codes))
    drawn = codes.copy()
    for mine in rows_of_strata(codes):
        if len(mine):
            row = P[codes[mine[0]]]
            goals = np.flatnonzero(row > 0)
            ends = np.cumsum(row[goals])
            place = np.searchsorted(ends, u[mine] * ends[-1], side="right")
            drawn[mine] = goals[np.minimum(place, len(goals) - 1)]
    return drawn


def _donors(codes: Integers, drawn: Integers) -> Integers:
    """Return for each record a row that has the category drawn; its own where nothing changes."""
    first = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    place = np.flatnonzero(codes >= 0)[::-1]
    first[codes[place]] = place
    changed = codes != drawn
    rows = np.arange(len(codes))
    rows[changed] = first[drawn[changed]]
    return rows


def _by_name(P: Floats, codes: Integers, texts: list[str]) -> dict[str, dict[str, float]]:
    """Return the chances of the categories that occur, by name."""
    return {
        texts[i]: {texts[j]: float(P[i, j]) for j in np.flatnonzero(P[i] > 0)}
        for i in np.unique(codes)
    }


def _advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    if options.get("invariant"):
        return [
            "Categories were changed at random, with chances made so that expected frequencies are "
            "those of the original: frequencies of a column can be used as they are. Tables of two "
            "columns are drawn towards independence."
        ]
    matrix = (
        "The chances are given above, from a category to each other; those that are not named "
        "are 0."
        if options.get("matrix")
        else f"The matrix P has the chance {listed(options.get('p', 0.8))} to stay on its "
        "diagonal; the other categories of the column share the rest evenly."
    )
    return [
        f"Categories were changed at random, independently for each record. {matrix}",
        "Observed frequencies t* are t P in expectation: estimate the original ones by "
        "t = t* P⁻¹. For a table of two masked columns multiply by the inverse matrix of each, on "
        "its side. Its variance is larger than that of the plain table.",
    ]


METHOD = register(
    Method(
        name="pram",
        masker=PRAM,
        title="PRAM",
        masks="categories",
        tuned=Tuned(name="p", low=0.01, high=1.0, values=(0.95, 0.9, 0.8, 0.6)),
        defaults={"p": 0.8, "invariant": True},
        label="PRAM",
        description=lambda given: (
            f"{'invariant ' if given['invariant'] else ''}PRAM, a category stays with chance "
            f"{listed(given['p'])}"
        ),
        advice=_advise,
    )
)
