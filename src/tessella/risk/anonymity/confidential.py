"""What a class of equal keys gives away: how its confidential values are spread.

The attack behind every measure here: look up the class of a person, and say the value that is
most frequent in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._parameters import parameters
from ..._types import Floats, Integers, Name, Truths
from ...exceptions import BadOptionError
from ...frame import View, group_ids, number_labels
from ...schema import Schema
from ..estimate import Estimate
from .keys import COUNT, RENAMED, SHARE, as_names, first_rows, read_column, read_keys

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AlphaK", "Groups", "Homogeneity", "Spread", "alpha_k_anonymity", "read_groups"]


ATTACK = "say the most frequent confidential value of those who share the key"


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
        found: Floats = np.where(own == self.most[self.classes], 1 / ties[self.classes], 0.0)
        return found


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

        return pd.DataFrame(
            {
                "class": self.classes,
                "frequency": np.bincount(self.classes)[self.classes],
                self.measure: self.by_class[self.classes],
                "chance": self.chance,
            }
        )

    def __str__(self) -> str:
        sure = f"{100 * self.certain:.1f} % of the records are in classes with one value"
        return f"{self.measure} = {self.worst:.4g} ({sure})\n{super().__str__()}"

    __repr__ = __str__


@dataclass(frozen=True, kw_only=True)
class Groups:
    """The class of each record, and how the confidential variables spread in the classes."""

    view: View
    classes: Integers
    spreads: Mapping[Name, Spread]
    notes: tuple[str, ...]

    def result(
        self,
        make: type[Any],
        measure: str,
        figures: Mapping[Name, Floats],
        *,
        low: bool,
        **more: Any,
    ) -> Any:
        """Put figures for each variable and class together; `low` says that small is bad."""
        stack = np.stack([figures[name] for name in self.spreads])
        single = np.stack([one.distinct for one in self.spreads.values()]).min(axis=0) == 1
        chance = np.max([one.chance for one in self.spreads.values()], axis=0)
        n = len(self.classes)
        whole = np.zeros(n, dtype=np.int64)  # one class of all: the same attack without keys
        guesses = [Spread.of(whole, one.values).chance for one in self.spreads.values()]
        worst = np.min if low else np.max
        return make.of(
            float(chance.sum()),
            n,
            baseline=float(np.max(guesses, axis=0).mean()),
            attack=ATTACK,
            assumptions=self.notes,
            exact=True,
            measure=measure,
            worst=float(worst(stack)),
            by_variable={name: float(worst(figures[name])) for name in self.spreads},
            by_class=worst(stack, axis=0),
            certain=float(single[self.classes].mean()),
            classes=self.classes,
            chance=chance,
            **more,
        )


def read_groups(
    masked: Any,
    confidential: Any,
    *,
    known: Any = None,
    groups: Any = None,
    schema: Schema | None = None,
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
    masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The released table.
    confidential : name or sequence of names, optional
        The confidential variables; otherwise the schema's.
    alpha : float
        The largest share of a class that one confidential value may have, above 0 and at most 1.
    k : int
        The least number of records of a class.
    known, schema
        As in `k_anonymity`; a missing value is a value of its own.

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
    result: AlphaK = groups.result(
        AlphaK,
        "largest share of one value",
        figures,
        low=False,
        alpha=float(alpha),
        k=k,
        reached_k=int(sizes.min()),
        breaks=broken[groups.classes],
    )
    return result
