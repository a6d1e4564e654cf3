"""The released quasi-identifiers as whole numbers, and who agrees with whom on them.

A *key* is what an intruder may know of a person: one value for each quasi-identifier. A missing
cell has a negative number, another one for each kind of missing: an intruder who sees the table
can tell a null from a code. Records that agree on every key form a *class*. Where a missing value
agrees with every value there are no classes (a record may agree with two that disagree), but each
record has a number of matches all the same. They are counted by missing pattern: records that lack
the same keys agree with those of another pattern if and only if they agree on the keys that both
patterns have.

k-anonymity: how many records share the keys of each, in the table as it is released.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._parameters import Constraint, Number, OneOf, Whole, check, parameters
from ..._types import Floats, Integers, Name
from ...exceptions import BadOptionError, BadTableError
from ...frame import View, count_units, group_ids
from ...schema import Schema
from ..estimate import RecordEstimate

if TYPE_CHECKING:
    import pandas as pd

MISSING = {
    "category": "a missing value is a value of its own, and agrees with its like only",
    "any": "a missing value agrees with every value",
}
SHARE: tuple[Constraint, ...] = (Number(above=0, most=1),)
COUNT: tuple[Constraint, ...] = (Whole(1),)
RENAMED = {"release": "masked", "keys": "known", "missing": "missing_as"}


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Quasi-identifiers of a table: for each column n whole numbers, negative where missing."""

    view: View
    columns: tuple[Name, ...]
    codes: tuple[Integers, ...]
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The number of records."""
        return self.view.n_rows

    def weights(self, given: Any) -> Floats | None:
        """Return sampling weights: a column, one for each record, or the schema's weight."""
        if given is not None and self.view.is_name(given):
            self.view.table.place(given, who="weights=")
            return _reader(self.view, given).weights(given)
        return self.view.weights(given)


def read_keys(
    masked: Any,
    known: Sequence[Name] | Name | None,
    *,
    schema: Schema | None = None,
    besides: Sequence[Any] = (),
) -> Keys:
    """Read the quasi-identifiers: as named, or the schema's, or every column but `besides`.

    `besides` is what has another part in the call: names, or None or arrays, which are passed over.
    """
    view = View.of(masked, schema)
    others = {one for one in besides if isinstance(one, Hashable) and view.table.has(one)}
    if known is not None:
        columns = as_names(view, known, option="known")
        note = f"known: {', '.join(map(str, columns))}"
        if both := [name for name in columns if name in others]:
            once = f"{both[0]!r} one part only: it has another already"
            raise BadOptionError("known", known, once)
    elif schema is not None:
        columns = _by_schema(view, schema, others)
        note = f"known, by the schema: {', '.join(map(str, columns))}"
    else:
        columns = tuple(name for name in view.columns if name not in others)
        if not columns:
            raise BadOptionError("known", known, "at least one column that an intruder may know")
        note = f"known, for want of known= every column: {', '.join(map(str, columns))}"
    codes = tuple(read_column(view, name) for name in columns)
    return Keys(view=view, columns=columns, codes=codes, notes=(note,))


def _by_schema(view: View, schema: Schema, others: set[Name]) -> tuple[Name, ...]:
    """List the schema's quasi-identifiers that are released; an unknown column is an error.

    Columns of the schema that the table lacks are no mistake: identifiers are not released.
    """
    listed = {column.name for column in schema}
    if unknown := [repr(name) for name in view.columns if name not in listed | others]:
        raise BadTableError(
            f"The schema says nothing about these columns: {', '.join(unknown[:8])}. Add them to "
            "the schema, drop them from the table, or give known=."
        )
    released = [name for name in schema.names("quasi-identifier") if view.table.has(name)]
    columns = tuple(name for name in released if name not in others)
    if not columns:
        raise BadTableError(
            "The table has none of the schema's quasi-identifiers, so nothing is known to an "
            "intruder. Give known= the columns that he knows, or role='quasi-identifier' in the "
            "schema."
        )
    return columns


def as_names(view: View, given: Any, *, option: str) -> tuple[Name, ...]:
    """Return the columns that are named, each once, or raise an error."""
    single = isinstance(given, str) or not hasattr(given, "__iter__") or view.table.has(given)
    names: tuple[Name, ...] = (given,) if single else tuple(given)
    if not names or len(set(names)) < len(names):
        raise BadOptionError(option, given, "at least one column, and each once")
    for name in names:
        view.table.place(name, who=f"{option}=")
    return names


def _reader(view: View, name: Name) -> View:
    """Return the view, without its schema where that does not list the column."""
    schema: Any = view.schema
    listed = schema is None or any(column.name == name for column in schema)
    return view if listed else View(view.table)


def read_column(view: View, name: Name) -> Integers:
    """Return the codes of a column: equal numbers for equal cells, negative where missing."""
    return _reader(view, name).codes(name)


def first_rows(ids: Integers) -> Integers:
    """Return the first record of each class, for classes numbered 0, 1, ..."""
    first = np.empty(int(ids.max()) + 1, dtype=np.int64)
    first[ids[::-1]] = np.arange(len(ids))[::-1]
    return first


@dataclass(frozen=True, kw_only=True)
class Matches:
    """For each record: its class, how many records agree with it, and their weight."""

    classes: Integers
    count: Integers
    weight: Floats | None


def count_matches(
    keys: Keys, *, missing_as: str = "category", weights: Floats | None = None
) -> Matches:
    """Count for each record those that agree with it on the keys, itself included.

    As "ignore", those that have its values on all keys that it has; none if it has none.
    """
    classes = group_ids(keys.codes)
    sizes = np.bincount(classes)
    mass: Any = None if weights is None else np.bincount(classes, weights=weights)
    if missing_as != "category":
        first = first_rows(classes)  # one record for each class will do
        X = np.column_stack([column[first] for column in keys.codes])
        given = [sizes.astype(np.float64)] + ([] if mass is None else [mass])
        found = _with_wildcards(X, np.column_stack(given), ignore=missing_as == "ignore")
        sizes, mass = np.rint(found[:, 0]).astype(np.int64), None if mass is None else found[:, 1]
    weight = None if mass is None else mass[classes]
    return Matches(classes=classes, count=sizes[classes], weight=weight)


def _with_wildcards(X: Integers, masses: Floats, *, ignore: bool) -> Floats:
    """Sum masses, (c, w), over the rows of X, (c, d), that agree where both have a value.

    With `ignore`, over those that have every value of the row, which must have one.
    """
    lacking = X < 0
    pattern = group_ids(list(lacking.astype(np.int64).T))
    rows = [np.flatnonzero(pattern == p) for p in range(int(pattern.max()) + 1)]
    out = np.zeros_like(masses)
    for p, q in combinations_with_replacement(range(len(rows)), 2):
        has = ~lacking[rows[p][0]], ~lacking[rows[q][0]]
        both = np.flatnonzero(has[0] & has[1])
        together = np.concatenate([rows[p], rows[q]])
        alike = np.zeros(len(together), dtype=np.int64)
        if len(both):
            alike = group_ids([X[together, column] for column in both])
        mine, theirs = np.split(alike, [len(rows[p])])
        n_alike = int(alike.max()) + 1
        counts = [not ignore or (one.any() and one.sum() == len(both)) for one in has]
        for w, mass in enumerate(masses.T):
            if counts[0]:
                out[rows[p], w] += np.bincount(theirs, mass[rows[q]], n_alike)[mine]
            if p != q and counts[1]:
                out[rows[q], w] += np.bincount(mine, mass[rows[p]], n_alike)[theirs]
    return out


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How often each value of a variable occurs in each class.

    The arrays `place`, `value` and `count` have an entry for each class and value that occur
    together, classes in order and the most frequent value first.
    """

    classes: Integers
    values: Integers
    sizes: Integers
    place: Integers
    value: Integers
    count: Integers

    @classmethod
    def of(cls, classes: Integers, values: Integers) -> Spread:
        """Count the pairs of class and value of n records."""
        joint = group_ids([classes, values])
        counts = np.bincount(joint)
        first = first_rows(joint)
        place, value = classes[first], values[first]
        order = np.lexsort((value, -counts, place))
        return cls(
            classes=classes,
            values=values,
            sizes=np.bincount(classes),
            place=place[order],
            value=value[order],
            count=counts[order],
        )

    @property
    def starts(self) -> Integers:
        """Where the entries of each class start."""
        return np.searchsorted(self.place, np.arange(len(self.sizes)))

    @property
    def most(self) -> Integers:
        """How often the most frequent value of each class occurs."""
        return self.count[self.starts]

    @property
    def distinct(self) -> Integers:
        """How many values each class has."""
        return np.bincount(self.place, minlength=len(self.sizes))

    @property
    def chance(self) -> Floats:
        """Chance that the most frequent value of the class is the record's own, shape (n,)."""
        top = self.count == self.most[self.place]
        ties = np.bincount(self.place[top], minlength=len(self.sizes))
        joint = group_ids([self.classes, self.values])
        own = np.bincount(joint)[joint]
        return np.where(own == self.most[self.classes], 1 / ties[self.classes], 0.0)


@dataclass(frozen=True, kw_only=True, repr=False)
class Anonymity(RecordEstimate):
    """How many records of a table share each key.

    `value` is the share of records that an intruder finds who knows the keys of a person, and that
    the person is in the table: the mean of 1 / f. Besides the fields of `Estimate`:

    Parameters
    ----------
    k : int
        The least number of records that share a key.
    n_classes : int
        The number of different keys.
    below : dict of int to int
        For each k asked for, the number of records whose key fewer than k records share.
    classes : array of shape (n,)
        The number of each record's class: same number, same key.
    frequency : array of shape (n,)
        f: how many records share the key of each.
    population : array of shape (n,) or None
        With weights, the sum of weights over those records: how many persons of the population
        are thought to share it.
    """

    _columns = ("class=classes", "frequency", "chance", "population")
    k: int
    n_classes: int
    below: Mapping[int, int]
    classes: Integers = field(repr=False)
    frequency: Integers = field(repr=False)
    population: Floats | None = field(repr=False, default=None)
    _keys: Keys = field(repr=False)  # without codes: as many numbers as the table has cells

    @property
    def chance(self) -> Floats:
        """Chance to pick the right record among those that share its key, 1 / f."""
        return 1 / self.frequency

    @property
    def histogram(self) -> pd.DataFrame:
        """For each size f: how many records share their key with f in all, and how many keys."""
        import pandas as pd

        first = first_rows(self.classes)
        sizes, records = np.unique(self.frequency, return_counts=True)
        keys = np.bincount(np.searchsorted(sizes, self.frequency[first]), minlength=len(sizes))
        return pd.DataFrame({"size": sizes, "records": records, "keys": keys})

    def smallest(self, most: int = 10) -> pd.DataFrame:
        """List the rarest keys, values and all, with the number of records that share them."""
        import pandas as pd

        first = first_rows(self.classes)
        check({"most": COUNT}, {"most": most})
        order = np.argsort(self.frequency[first], kind="stable")[:most]
        rows = first[order]
        columns: dict[Any, Any] = {}
        for name in self._keys.columns:
            own, texts = self._keys.view.table.labels(name)
            columns[name] = [texts[own[row]] if own[row] >= 0 else None for row in rows]
        return pd.DataFrame({**columns, "records": self.frequency[rows]})

    def __str__(self) -> str:
        few = ", ".join(f"{count:,} below {k}" for k, count in self.below.items())
        return f"k = {self.k} ({self.n_classes:,} keys; records: {few})\n{super().__str__()}"


@parameters(RENAMED, missing_as=[OneOf(MISSING)])
def k_anonymity(
    masked: Any,
    *,
    known: Sequence[Name] | Name | None = None,
    schema: Schema | None = None,
    missing_as: str = "category",
    weights: Any = None,
    unit: Any = None,
    below: Sequence[int] = (2, 3, 5, 10),
) -> Anonymity:
    """Count how many records, or units, share each key.

    Parameters
    ----------
    masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The released table.
    known : name or sequence of names, optional
        The quasi-identifiers; otherwise the schema's, or without a schema every column (but the
        weights).
    schema : Schema, optional
        Roles and missing codes.
    missing_as : {"category", "any"}
        Whether a missing value is a value of its own (each missing code apart: the careful way),
        or agrees with every value.
    weights : name or array-like of shape (n,), optional
        Sampling weights.
    unit : name or array-like of shape (n,), optional
        The household, firm or patient of each record: then distinct units are counted. Otherwise
        the schema's, if the table has it.
    below : sequence of int
        The k for which records below k are counted.

    Notes
    -----
    With x_i the key of record i and w_i its weight,

        f_i = #{j : x_j agrees with x_i},  k = min f_i,  value = (1/n) Σ 1/f_i,
        population_i = Σ w_j over the same j.

    Numbers agree if they are equal, without tolerance. With missing_as="any", agreement is not
    transitive: a record that lacks values may count for several that differ, so k is what
    sdcMicro reports and not a promise that an intruder meets k persons who cannot be told apart.

    References
    ----------
    P. Samarati (2001) Protecting respondents' identities in microdata release. IEEE Transactions
    on Knowledge and Data Engineering 13(6), 1010-1027.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.risk import k_anonymity
    >>> release = pd.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 30, 30, 40]})
    >>> k_anonymity(release, below=(2, 3))
    k = 1 (3 keys; records: 2 below 2, 4 below 3)
    75.0 % of 4 records (all of them; by guessing 25.0 %): look up the key, pick one that shares it
    """
    read = read_keys(masked, known, schema=schema, besides=(weights, unit))
    mass, units = read.weights(weights), View.of(masked, schema).read_units(unit)
    found = count_matches(read, missing_as=missing_as, weights=mass)
    notes = read.notes
    if units is not None:
        if missing_as != "category":
            raise BadOptionError("missing_as", missing_as, "'category', where units are counted")
        found = replace(found, count=count_units(found.classes, units)[found.classes])
        notes = (*notes, f"f counts distinct units ({int(units.max()) + 1:,} in all)")
    limits = sorted(set(below))
    for k in limits:
        check({"below": COUNT}, {"below": k})
    return Anonymity.of(
        float((1 / found.count).sum()),
        read.n,
        baseline=1 / (read.n if units is None else int(units.max()) + 1),
        attack="look up the key, pick one that shares it",
        assumptions=(*notes, "he knows that the person is in the table", MISSING[missing_as]),
        exact=True,
        k=int(found.count.min()),
        n_classes=int(found.classes.max()) + 1,
        below={k: int((found.count < k).sum()) for k in limits},
        classes=found.classes,
        frequency=found.count,
        population=found.weight,
        _keys=replace(read, codes=()),
    )
