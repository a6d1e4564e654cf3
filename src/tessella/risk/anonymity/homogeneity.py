"""What a class of equal keys gives away: how its confidential values are spread.

The attack behind every measure here: look up the class of a person, and say the value that is
most frequent in it. All is counted in the table as it is released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..._parameters import FLAG, NONE, Number, OneOf, parameters
from ..._types import Floats, Integers, Name, Truths
from ...diversity import measure_classes, values_in_order
from ...exceptions import BadOptionError
from ...frame import View, group_ids, number_labels
from ...schema import Schema
from ..estimate import Estimate
from .keys import COUNT, RENAMED, SHARE, Spread, as_names, read_column, read_keys

if TYPE_CHECKING:
    import pandas as pd

H = TypeVar("H", bound="Homogeneity")

ATTACK = "say the most frequent confidential value of those who share the key"
KINDS = ("distinct", "entropy", "recursive")


@dataclass(frozen=True, kw_only=True, repr=False)
class Homogeneity(Estimate):
    """How much the classes of equal keys give away of confidential variables.

    `value` is the share of records for which the most frequent confidential value of the class is
    right (with several variables: for some variable). Besides the fields of `Estimate`:

    Parameters
    ----------
    measure : str
        What `by_class` holds: "distinct l", "t" and so on.
    worst : float
        Its worst over classes and variables: the least l, the largest t or share.
    by_variable : dict of name to float
        Its worst for each confidential variable.
    by_class : array of shape (c,)
        Its worst over variables, for each class.
    certain : float
        The share of records whose class has one value only, of some variable: it is disclosed.
    classes : array of shape (n,)
        The class of each record.
    chance : array of shape (n,)
        Chance that the attack is right about each record.
    """

    measure: str
    worst: float
    by_variable: Mapping[Name, float]
    by_class: Floats = field(repr=False)
    certain: float
    classes: Integers = field(repr=False)
    chance: Floats = field(repr=False)

    @property
    def records(self) -> pd.DataFrame:
        """One line for each record. Confidential: it says about whom the attack is right."""
        import pandas as pd

        frequency = np.bincount(self.classes)[self.classes]
        own = {self.measure: self.by_class[self.classes], "chance": self.chance}
        return pd.DataFrame({"class": self.classes, "frequency": frequency, **own})

    def __str__(self) -> str:
        sure = f"{100 * self.certain:.1f} % of the records are in classes with one value"
        return f"{self.measure} = {self.worst:.4g} ({sure})\n{super().__str__()}"


@dataclass(frozen=True, kw_only=True)
class Groups:
    """The class of each record, and how the confidential variables spread in the classes."""

    view: View
    classes: Integers
    spreads: Mapping[Name, Spread]
    notes: tuple[str, ...]

    def result(
        self, make: type[H], measure: str, figures: Mapping[Name, Floats], *, low: bool, **more: Any
    ) -> H:
        """Put figures for each variable and class together; `low` says that small is bad."""
        stack = np.stack([figures[name] for name in self.spreads])
        single = np.stack([one.distinct for one in self.spreads.values()]).min(axis=0) == 1
        chance = np.max([one.chance for one in self.spreads.values()], axis=0)
        whole = np.zeros_like(self.classes)  # one class of all: the same attack without keys
        guesses = [Spread.of(whole, one.values).chance for one in self.spreads.values()]
        worst = np.min if low else np.max
        return make.of_chances(
            chance,
            baseline=float(np.max(guesses, axis=0).mean()),
            attack=ATTACK,
            assumptions=self.notes,
            measure=measure,
            worst=float(worst(stack)),
            by_variable={name: float(worst(figures[name])) for name in self.spreads},
            by_class=worst(stack, axis=0),
            certain=float(single[self.classes].mean()),
            classes=self.classes,
            **more,
        )


def read_groups(
    masked: Any, confidential: Any, *, known: Any, groups: Any = None, schema: Schema | None
) -> Groups:
    """Read classes (equal keys, or given groups) and confidential variables."""
    view = View.of(masked, schema)
    if confidential is None and schema is not None:
        confidential = [name for name in schema.names("confidential") if view.table.has(name)]
    if confidential is None:
        raise BadOptionError("confidential", confidential, "the name of a confidential column")
    names = as_names(view, confidential, option="confidential")
    if groups is not None:
        if known is not None:
            raise BadOptionError("groups", "...", "groups= or known=, not both")
        classes, _ = number_labels(view.table.per_record(groups, who="groups="))
        if (classes < 0).any():
            classes = np.where(classes < 0, classes.max() + 1, classes)
        notes = ["classes as given"]
    else:
        read = read_keys(view, known, schema=schema, besides=names)
        classes, notes = group_ids(read.codes), list(read.notes)
    spreads = {name: Spread.of(classes, group_ids([read_column(view, name)])) for name in names}
    notes.append(f"confidential: {', '.join(map(str, names))}")
    notes.append("a missing value is a value of its own")
    return Groups(view=view, classes=classes, spreads=spreads, notes=tuple(notes))


@dataclass(frozen=True, kw_only=True, repr=False)
class AlphaK(Homogeneity):
    """Whether classes have at least k records and no confidential value above a share alpha.

    Besides the fields of `Homogeneity`:

    Parameters
    ----------
    alpha, k : float, int
        What was asked for.
    reached_k : int
        The size of the smallest class.
    breaks : array of bool of shape (n,)
        Whether a record's class is too small or has too frequent a value.
    """

    alpha: float
    k: int
    reached_k: int
    breaks: Truths = field(repr=False)

    @property
    def holds(self) -> bool:
        """Whether the table is (alpha, k)-anonymous."""
        return not bool(self.breaks.any())


@parameters(RENAMED, alpha=SHARE, k=COUNT)
def alpha_k_anonymity(
    masked: Any,
    confidential: Sequence[Name] | Name | None = None,
    *,
    alpha: float,
    k: int,
    known: Sequence[Name] | Name | None = None,
    schema: Schema | None = None,
) -> AlphaK:
    """Count whether a table is (α, k)-anonymous.

    Parameters
    ----------
    masked, confidential, known, schema
        As in `l_diversity`; a missing value is a value of its own.
    alpha : float
        The largest share of a class that one confidential value may have, above 0 and at most 1.
    k : int
        The least number of records of a class.

    Notes
    -----
    For every class Q of equal keys and every confidential value s: #(Q, s) <= α #Q, and #Q >= k.

    References
    ----------
    R. C.-W. Wong, J. Li, A. W.-C. Fu and K. Wang (2006) (α, k)-anonymity: an enhanced k-anonymity
    model for privacy preserving data publishing. KDD 2006, 754-759.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.risk import alpha_k_anonymity
    >>> release = pd.DataFrame({"age": [30, 30, 40, 40], "ill": ["yes", "no", "no", "no"]})
    >>> found = alpha_k_anonymity(release, "ill", alpha=0.5, k=2)
    >>> found.holds, found.breaks
    (False, array([False, False,  True,  True]))
    """
    groups = read_groups(masked, confidential, known=known, schema=schema)
    figures = {name: one.most / one.sizes for name, one in groups.spreads.items()}
    sizes = np.bincount(groups.classes)
    highest = np.max(list(figures.values()), axis=0)
    broken = (sizes < k) | (highest > alpha * (1 + 1e-12))
    return groups.result(
        AlphaK,
        "largest share of one value",
        figures,
        low=False,
        alpha=float(alpha),
        k=k,
        reached_k=int(sizes.min()),
        breaks=broken[groups.classes],
    )


@parameters(RENAMED, kind=[OneOf(KINDS)], c=[Number(above=0)])
def l_diversity(
    masked: Any,
    confidential: Sequence[Name] | Name | None = None,
    *,
    known: Sequence[Name] | Name | None = None,
    groups: Any = None,
    kind: str = "distinct",
    c: float = 2.0,
    schema: Schema | None = None,
) -> Homogeneity:
    """Count how diverse confidential values are in the classes of equal keys.

    Parameters
    ----------
    masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The released table.
    confidential : name or sequence of names, optional
        The confidential variables; otherwise the schema's.
    known : name or sequence of names, optional
        The quasi-identifiers; otherwise the schema's, or without a schema every other column.
    groups : array-like of shape (n,), optional
        Classes of your own, in place of keys.
    kind : {"distinct", "entropy", "recursive"}
        How l is counted.
    c : float
        For "recursive": how much more frequent the first value may be than the rare ones together.
    schema : Schema, optional
        Roles and missing codes.

    Returns
    -------
    Homogeneity
        `worst` is the least l, `certain` the share of records in classes with one value.

    Notes
    -----
    In a class whose values have counts r_1 >= r_2 >= ... >= r_m and shares p_s,

    - distinct: l = m;
    - entropy: l = exp(-Σ p_s log p_s);
    - recursive: the largest l with r_1 < c (r_l + r_(l+1) + ... + r_m), 0 if there is none.

    References
    ----------
    A. Machanavajjhala, D. Kifer, J. Gehrke and M. Venkitasubramaniam (2007) l-diversity: privacy
    beyond k-anonymity. ACM Transactions on Knowledge Discovery from Data 1(1), 3.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.risk import l_diversity
    >>> release = pd.DataFrame({"age": [30, 30, 40, 40], "ill": ["yes", "no", "no", "no"]})
    >>> l_diversity(release, "ill").explain().splitlines()[0]
    'distinct l = 1 (50.0 % of the records are in classes with one value)'
    """
    read = read_groups(masked, confidential, known=known, groups=groups, schema=schema)
    figures = {
        name: measure_classes(one.classes, one.values, kind, c=c)
        for name, one in read.spreads.items()
    }
    measure = f"recursive l (c = {c:g})" if kind == "recursive" else f"{kind} l"
    return read.result(Homogeneity, measure, figures, low=True)


@parameters(RENAMED, ordered=[FLAG, NONE])
def t_closeness(
    masked: Any,
    confidential: Sequence[Name] | Name | None = None,
    *,
    known: Sequence[Name] | Name | None = None,
    groups: Any = None,
    ordered: bool | None = None,
    schema: Schema | None = None,
) -> Homogeneity:
    """Measure how far confidential values in a class are from those of the whole table.

    Parameters
    ----------
    masked, confidential, known, groups, schema
        As in `l_diversity`.
    ordered : bool, optional
        Whether values have an order. By default numbers and ordered categories have one (unless
        the schema calls them nominal), others not.

    Returns
    -------
    Homogeneity
        `worst` is the largest t; 0 means that a class tells nothing that the table does not.

    Notes
    -----
    t is the earth mover's distance between the shares P of a class and Q of the table. For values
    1 < ... < m in order, with distance |i - j| / (m - 1) between the i-th and j-th,

        t = (1 / (m - 1)) Σ_i |P(<= i) - Q(<= i)|;

    without order, where any two values are 1 apart, t = (1/2) Σ_s |P(s) - Q(s)|. A missing value
    comes after all others.

    References
    ----------
    N. Li, T. Li and S. Venkatasubramanian (2007) t-closeness: privacy beyond k-anonymity and
    l-diversity. ICDE 2007, 106-115.

    Examples
    --------
    The salaries of Li et al.: the class {3, 4, 5} of the nine salaries 3, 4, ..., 11 has t = 0.375.

    >>> import pandas as pd
    >>> from tessella.risk import t_closeness
    >>> release = pd.DataFrame({"class": [1, 1, 1, 2, 2, 2, 2, 2, 2], "salary": range(3, 12)})
    >>> float(t_closeness(release, "salary", known="class").by_class[0])
    0.375
    """
    read = read_groups(masked, confidential, known=known, groups=groups, schema=schema)
    figures: dict[Name, Floats] = {}
    orders = []
    for name, spread in read.spreads.items():
        ranks = None if ordered is False else _ranks(read.view, name, spread, ordered)
        codes = spread.values if ranks is None else ranks[spread.values]
        distance = "equal" if ranks is None else "ordered"
        figures[name] = measure_classes(spread.classes, codes, distance)
        orders.append(f"{name} {'without' if ranks is None else 'with'} order")
    note = f"distances between values: {', '.join(orders)}"
    read = replace(read, notes=(*read.notes, note))
    return read.result(Homogeneity, "t", figures, low=False)


def _ranks(view: View, name: Name, spread: Spread, ordered: bool | None) -> Integers | None:
    """Rank the numbers of a spread's values by their order, 0 for the least; None without order."""
    found = values_in_order(view, name, ordered)
    if found is None:
        return None
    values = found[np.unique(spread.values, return_index=True)[1]]
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))  # NaN comes last
    return ranks
