"""What the confidential values of a group must be: diverse (l), or close to the table's (t).

k hides who a record is about; where all records of a group have the same illness, it is known
whoever is who. *l-diversity* asks that confidential values differ within every group,
*t-closeness* that they are spread as in the table. A `DiversityRule` states it for some columns, a
`Diversity` is the rule with the values of a table, as `Grouping.fit(diversity=)` takes it.

For a group whose known values have counts r_1 >= r_2 >= ... >= r_m and shares p,

- l (distinct): m >= l;
- l (entropy): -sum p log p >= log l;
- l (recursive, with c): r_1 < c (r_l + r_(l+1) + ... + r_m);
- t: the earth mover's distance between p and the shares q in the table is at most t. Where values
  have no order any two are 1 apart ("equal"): half the sum of |p - q|. Where they have one
  ("ordered"), the i-th and j-th of the m values of the table are |i - j| / (m - 1) apart: the mean
  of |P(<= i) - Q(<= i)|. Numbers are ordered by rank, each distinct value by itself.

*Several columns*: each must satisfy it. *Missing values* count for nothing: neither towards l nor
in p and q. A group in which no value is known does not satisfy it. That a value is missing may
itself tell something, and is not promised to be hidden. *Units*: k counts units, l counts distinct
values over records, t shares of records; weights count in neither. Entropy and t are kept
to 1e-9.

Each of these is closed under union: see `tessella.kernels.diversity`. Hence the one group of all
records of a stratum is the best that a stratum can do, and what it has is what is attainable.

References
----------
A. Machanavajjhala, D. Kifer, J. Gehrke and M. Venkitasubramaniam (2007) l-diversity: privacy
beyond k-anonymity. ACM Transactions on Knowledge Discovery from Data 1(1), 3.
N. Li, T. Li and S. Venkatasubramanian (2007) t-closeness: privacy beyond k-anonymity and
l-diversity. ICDE 2007, 106-115.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ._parameters import Number, Whole
from ._types import Floats, Integers, Name, Truths
from ._wording import listed
from .exceptions import BadOptionError, BadTableError, DiversityError
from .frame import View, group_ids
from .kernels.diversity import (
    DISTINCT,
    ENTROPY,
    EQUAL,
    ORDERED,
    RECURSIVE,
    SLACK,
    fits,
    measure_groups,
)
from .kernels.groups import members_of

__all__ = [
    "Diversity", "DiversityRule", "Requirement", "measure_classes", "read_codes", "values_in_order",
]  # fmt: skip

KINDS = {
    "distinct": DISTINCT, "entropy": ENTROPY, "recursive": RECURSIVE, "equal": EQUAL,
    "ordered": ORDERED,
}  # fmt: skip
TOLERANCE = 2 * SLACK
# Buckets of like values, from coarse to fine, that both halves of a group get their share of: see
# `split_groups`. Finer ones make halves more alike in their values and less in their keys.
BUCKETS = (4, 16)

L_FORMS = 'a whole number of at least 2, {"entropy": 3} or {"recursive": [c, l]}, such as [2, 3]'
T_FORMS = 'a number from 0 to below 1, {"equal": 0.2} or {"ordered": 0.2}'


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What one measure of a group must be.

    Parameters
    ----------
    kind : {"distinct", "entropy", "recursive", "equal", "ordered", "t"}
        The measure; "t" is "ordered" where a column has an order and "equal" elsewhere.
    limit : float
        l, which a measure must reach, or t, which it must not exceed.
    c : float
        Of "recursive".
    """

    kind: str
    limit: float
    c: float = 0.0

    @property
    def is_t(self) -> bool:
        """Whether small measures are good."""
        return self.kind in ("equal", "ordered", "t")

    def holds(self, values: Any) -> Any:
        """Return whether measures are good enough."""
        if self.is_t:
            return np.asarray(values) <= self.limit + TOLERANCE
        return np.asarray(values) >= self.limit * (1 - TOLERANCE)

    def worst(self, values: Floats) -> float:
        """Return the worst of some measures."""
        return float(values.max() if self.is_t else values.min())

    @property
    def label(self) -> str:
        """The measure in a word or two, such as "entropy l" or "t"."""
        if self.kind == "recursive":
            return f"recursive l (c = {self.c:g})"
        return f"t ({self.kind})" if self.kind in ("equal", "ordered") else (
            "t" if self.is_t else f"{self.kind} l"
        )  # fmt: skip

    def __str__(self) -> str:
        return f"{self.label} {'<=' if self.is_t else '>='} {self.limit:g}"

    @classmethod
    def of_l(cls, given: Any) -> Requirement:
        """Read l as `protect` takes it.

        Examples
        --------
        >>> from tessella.diversity import Requirement
        >>> [str(Requirement.of_l(l)) for l in (3, {"entropy": 2.5}, {"recursive": [2, 3]})]
        ['distinct l >= 3', 'entropy l >= 2.5', 'recursive l (c = 2) >= 3']
        """
        kind, limit = _named(given, "distinct")
        c: Any = 1.0
        if kind == "recursive" and isinstance(limit, list | tuple) and len(limit) == 2:
            c, limit = limit
        elif kind == "recursive":
            limit = None
        wanted = Number(above=1) if kind == "entropy" else Whole(2)
        if (
            kind not in ("distinct", "entropy", "recursive")
            or not wanted.accepts(limit)
            or not Number(above=0).accepts(c)
        ):
            raise BadOptionError("l", given, L_FORMS)
        return cls(kind=kind, limit=float(limit), c=float(c) if kind == "recursive" else 0.0)

    @classmethod
    def of_t(cls, given: Any) -> Requirement:
        """Read t as `protect` takes it."""
        kind, limit = _named(given, "t")
        if kind not in ("t", "equal", "ordered") or not Number(least=0, below=1).accepts(limit):
            raise BadOptionError("t", given, T_FORMS)
        return cls(kind=kind, limit=float(limit))

    @property
    def option(self) -> Any:
        """The requirement as `of_l` or `of_t` reads it."""
        if self.kind in ("distinct", "t"):
            return self.limit if self.is_t else int(self.limit)
        if self.kind == "recursive":
            return {"recursive": [self.c, int(self.limit)]}
        return {self.kind: self.limit}


def _named(given: Any, usual: str) -> tuple[str, Any]:
    if isinstance(given, Mapping) and len(given) == 1:
        ((kind, limit),) = given.items()
        return str(kind), limit
    return usual, given


@dataclass(frozen=True, kw_only=True)
class DiversityRule:
    """What the confidential values of every group must be.

    Parameters
    ----------
    confidential : tuple of names
        The columns; each of them must satisfy all requirements.
    requirements : tuple of Requirement
        l, t or both.

    Examples
    --------
    >>> from tessella.diversity import DiversityRule
    >>> print(DiversityRule.of(l=3, t=0.2, confidential=["illness"]))
    distinct l >= 3 and t <= 0.2 of illness
    """

    confidential: tuple[Name, ...]
    requirements: tuple[Requirement, ...]

    @classmethod
    def of(
        cls, *, l: Any = None, t: Any = None, confidential: Any = None  # noqa: E741
    ) -> DiversityRule | None:  # fmt: skip
        """Read the options of `protect`; None where neither l nor t is given."""
        wanted = [] if l is None else [Requirement.of_l(l)]
        wanted += [] if t is None else [Requirement.of_t(t)]
        if isinstance(confidential, str):
            confidential = (confidential,)
        if confidential is not None and not isinstance(confidential, Iterable):
            raise BadOptionError("confidential", confidential, "names of columns")
        names = tuple(dict.fromkeys(confidential or ()))
        if not wanted:
            if names:
                raise BadOptionError(
                    "confidential", list(map(str, names)), "l or t beside: what these columns must "
                    "satisfy in every group, such as l=2"
                )  # fmt: skip
            return None
        if not names:
            raise BadOptionError(
                "confidential", None, "the names of the columns that l and t are about, or columns "
                'with the role "confidential" in the schema'
            )  # fmt: skip
        return cls(confidential=names, requirements=tuple(wanted))

    @property
    def options(self) -> dict[str, Any]:
        """The rule as `of` reads it."""
        own = {("t" if one.is_t else "l"): one.option for one in self.requirements}
        return own | {"confidential": list(self.confidential)}

    def __str__(self) -> str:
        wanted = " and ".join(map(str, self.requirements))
        return f"{wanted} of {listed(self.confidential)}"

    def read(self, view: View) -> Diversity:
        """Read the confidential columns of a table."""
        conditions = []
        for name in self.confidential:
            view.table.place(name, who="confidential")
            for one in self.requirements:
                given = {"equal": False, "ordered": True}.get(one.kind)
                codes, ordered = read_codes(view, name, given)
                if one.kind == "t":
                    one = replace(one, kind="ordered" if ordered else "equal")
                conditions.append(Condition(name=name, requirement=one, codes=codes))
        return Diversity.of_conditions(conditions)


def read_codes(view: View, name: Name, ordered: bool | None = None) -> tuple[Integers, bool]:
    """Number the known values of a column from 0, in their order if they have one; -1 if missing.

    `ordered` says whether there must be an order; by default numbers and ordered categories have
    one, unless the schema calls them nominal.
    """
    values: Any = None if ordered is False else values_in_order(view, name, ordered)
    found = view.codes(name) if values is None else values
    known = ~view.missing(name) if values is None else ~np.isnan(values)
    codes = np.full(view.n_rows, -1, dtype=np.int64)
    codes[known] = np.unique(found[known], return_inverse=True)[1]
    return codes, values is not None


def values_in_order(view: View, name: Name, ordered: bool | None = None) -> Floats | None:
    """Return numbers that are in the order of a column's values, NaN if missing; None without."""
    if view.schema is not None and view.kind(name) == "nominal" and ordered is None:
        return None
    facts = view.table.facts(name)
    if facts.numeric or facts.family == "boolean":
        return view.numbers(name, who="t_closeness")
    if facts.ordered:
        place = {text: at for at, text in enumerate(view.table.order(name) or ())}
        own, texts = view.table.labels(name)
        at = np.array([float(place[text]) for text in texts] + [np.nan])
        values: Floats = at[own]
        return np.where(view.missing(name), np.nan, values)
    if ordered:
        raise BadTableError(
            f"Column {name!r} ({facts.dtype}) has no order. Give ordered=False (of a release "
            't={"equal": 0.2}), or make it an ordered categorical.'
        )
    return None


@dataclass(frozen=True, kw_only=True, eq=False)
class Condition:
    """A requirement, and the codes of the column that it is about; below 0 where missing."""

    name: Name
    requirement: Requirement
    codes: Integers


@dataclass(frozen=True, kw_only=True, eq=False)
class Diversity:
    """What the confidential values of groups must be, with the values: for `Grouping.fit`.

    Attributes
    ----------
    names : tuple of names
        The column of each condition; the unit is one where k counts units.
    requirements : tuple of Requirement
        What each condition asks for.
    codes : ndarray of shape (n, q)
        The codes of the records, in each condition; below 0 where missing.
    kinds, limits, tables, starts : ndarray
        The conditions as `tessella.kernels.diversity` takes them.

    Examples
    --------
    >>> from tessella.diversity import Diversity
    >>> from tessella.grouping import Search
    >>> wanted = Diversity.of(["flu", "flu", "flu", "cold"], l=2)
    >>> X = [[0.0], [1.0], [10.0], [11.0]]
    >>> Search(k=2, effort="quick", random_state=0).fit(X, diversity=wanted).labels_
    array([0, 0, 0, 0])
    """

    names: tuple[Name, ...]
    requirements: tuple[Requirement, ...]
    codes: Integers
    kinds: Integers
    limits: Floats
    tables: Floats
    starts: Integers

    @classmethod
    def of(cls, values: Any, *, l: Any = None, t: Any = None) -> Diversity:  # noqa: E741
        """Read confidential values: a column, or a table of which each column must satisfy it."""
        from .frame import Table

        table: Any = values
        if not hasattr(values, "columns"):
            import pandas as pd

            table = pd.DataFrame(values if np.ndim(values) == 2 else {"values": values})
        view = View.of(Table.read(table))
        rule = DiversityRule.of(l=l, t=t, confidential=view.columns)
        if rule is None:
            raise BadOptionError("l", None, f"{L_FORMS}; or t")
        return rule.read(view)

    @classmethod
    def of_conditions(cls, conditions: Sequence[Condition]) -> Diversity:
        """Lay conditions out for the kernels; shares for t are those of all known records."""
        running, areas, starts = [np.empty(0)], [np.empty(0)], [0]
        for one in conditions:
            known = one.codes[one.codes >= 0]
            if not len(known):
                raise DiversityError.unknown(column=one.name)
            shares = np.bincount(known) / len(known)
            if one.requirement.kind == "ordered":
                # Counts, not shares, are summed: what is 1 together is 1 exactly.
                shares = np.cumsum(np.bincount(known)) / len(known)
            running.append(np.append(shares, 1.0))
            areas.append(np.append(0.0, np.cumsum(shares)))
            starts.append(starts[-1] + len(shares) + 1)
        return cls(
            names=tuple(one.name for one in conditions),
            requirements=tuple(one.requirement for one in conditions),
            codes=np.column_stack([one.codes for one in conditions]).astype(np.int64),
            kinds=np.array([KINDS[one.requirement.kind] for one in conditions]),
            limits=np.array([[one.requirement.limit, one.requirement.c] for one in conditions]),
            tables=np.stack([np.concatenate(running), np.concatenate(areas)]),
            starts=np.array(starts),
        )

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def arrays(self) -> tuple[Integers, Integers, Floats, Floats, Integers]:
        """The conditions as kernels take them."""
        return self.codes, self.kinds, self.limits, self.tables, self.starts

    def take(self, rows: Any) -> Diversity:
        """Return the same for some records; what t compares with stays the whole table."""
        return replace(self, codes=np.ascontiguousarray(self.codes[rows]))

    def with_units(self, units: Integers | None, k: int) -> Diversity:
        """Return the same with at least k distinct units as one more condition."""
        if units is None:
            return self
        return replace(
            self,
            names=(*self.names, "unit"),
            requirements=(*self.requirements, Requirement(kind="distinct", limit=float(k))),
            codes=np.column_stack([self.codes, units]),
            kinds=np.append(self.kinds, DISTINCT),
            limits=np.vstack([self.limits, [float(k), 0.0]]),
            starts=np.append(self.starts, self.starts[-1]),
        )

    @cached_property
    def buckets(self) -> Integers:
        """Like values together, shape (levels, n): all, some coarse, the values themselves."""
        columns = np.flatnonzero(np.diff(self.starts))  # without units
        exact = group_ids(self.codes[:, columns].T)
        levels = [np.zeros(len(self), dtype=np.int64)]
        for count in BUCKETS:
            parts = []
            for column in {self.names[c]: c for c in columns}.values():
                own = self.codes[:, column]
                sizes = np.bincount(own + 1)
                middle = (np.cumsum(sizes) - sizes / 2) / len(self)
                parts.append((middle * count).astype(np.int64)[own + 1])
            ids = group_ids(parts)
            if ids.max() < exact.max():
                levels.append(ids)
        return np.stack([*levels, exact])

    def measures(self, labels: Integers, n_groups: int | None = None) -> Floats:
        """Measure groups, shape (groups, conditions)."""
        rows, ends = members_of(labels, int(labels.max()) + 1 if n_groups is None else n_groups)
        found: Floats = measure_groups(rows, ends, *self.arrays)
        return found

    def kept(self, labels: Integers) -> Truths:
        """Return which groups satisfy all requirements."""
        found = self.measures(labels)
        held = [one.holds(own) for one, own in zip(self.requirements, found.T)]
        kept: Truths = np.all(held, axis=0)
        return kept

    def allows(self, rows: Integers, k: int) -> bool:
        """Return whether some records may be a group, to the same last digit as in a search."""
        room = np.empty((2, len(rows)), dtype=np.int64)
        return bool(fits(rows, len(rows), k, *self.arrays, room))

    def least_values(self) -> Iterator[tuple[Integers, int]]:
        """Yield, of each condition, codes from 0 and how many of them every group must have.

        l of any kind needs l values: entropy is at most the logarithm of their number, and without
        an l-th value the tail of "recursive" is 0. t needs values whose shares in the table are
        1 - t together, as many as the most frequent that are: what a group lacks counts in t in
        full. A missing value counts as one here, which asks for less.
        """
        for at, one in enumerate(self.requirements):
            own, first, stop = self.codes[:, at], self.starts[at], self.starts[at + 1]
            if first == stop or one.kind == "ordered":
                continue
            least = int(np.ceil(one.limit * (1 - TOLERANCE)))
            if one.kind == "equal":
                shares = np.sort(self.tables[0, first : stop - 1])[::-1]
                least = 1 + int((np.cumsum(shares) < 1 - one.limit - TOLERANCE).sum())
            yield np.unique(own, return_inverse=True)[1].astype(np.int64), least

    def attainable(self) -> Floats:
        """Return what the group of all records has, the best that any partition's worst has."""
        found: Floats = self.measures(np.zeros(len(self), dtype=np.int64))[0]
        return found

    def refuse_unattainable(self, parts: Mapping[str, Any] | None = None) -> None:
        """Refuse what not even all records of a stratum together have; name what they have."""
        whole = {"": slice(None)} if parts is None else dict(parts)
        for at, one in enumerate(self.requirements):
            reached = {name: self.take(rows).attainable()[at] for name, rows in whole.items()}
            few = {n: f"{own:.4g}" for n, own in reached.items() if not one.holds(own)}
            if not few:
                continue
            facts = {"what": str(one), "column": self.names[at], "label": one.label}
            if parts is None or len(whole) == 1:
                raise DiversityError.whole(reached=next(iter(few.values())), **facts)
            raise DiversityError.strata(reached=few, **facts)


def measure_classes(classes: Integers, codes: Integers, kind: str, *, c: float = 0.0) -> Floats:
    """Measure classes of records by the codes of their values, shape (classes,).

    For "ordered" the codes are ranks; for t the table is all records together.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.diversity import measure_classes
    >>> classes, illness = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 0])
    >>> measure_classes(classes, illness, "distinct"), measure_classes(classes, illness, "equal")
    (array([2., 1.]), array([0.25, 0.25]))
    """
    wanted = Requirement(kind=kind, limit=1.0, c=c)
    own = Diversity.of_conditions([Condition(name="", requirement=wanted, codes=codes)])
    return own.measures(classes)[:, 0]
