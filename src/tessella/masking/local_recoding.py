"""Local recoding: groups of at least k records share their least common ancestors and means."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._parameters import EFFORT, NONE, Whole
from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadOptionError
from ..frame import Table, View, count_units, group_ids
from ..grouping.base import check_seed
from ..keys.coded import CodedKey
from ..keys.lattice import LARGEST, LIMIT
from ..keys.local import LocalGroups, LocalRecoder, nodes_of_groups
from .base import Declared, write_numbers
from .parts import group_means, parts_of
from .recoding import KeyMasker, allowed, search_levels
from .registry import Method, Options, register
from .selection import Scale, Selection


@dataclass(eq=False, repr=False)
class LocalRecoding(KeyMasker):
    r"""Local recoding: records of one group are released as what they have in common.

    Parameters
    ----------
    k : int, default 3
        How many records, or units, share all their released values, in every stratum.
    hierarchies : mapping of name to hierarchy
        As for `Recoding`: these columns get the least common ancestor of each group.
    suppress : float, default 0
        The share of records whose keys may be emptied; they are a group of at least k as well.
    effort : {"quick", "standard", "thorough"}, default "standard"
        How much work.
    columns : list of names, optional
        The columns to mask; by default those that have a hierarchy. Columns of numbers without a
        hierarchy are masked in the same groups, and get their mean.
    strata, weights, schema, folder
        As for `Recoding`.
    random_state : int, RandomState or None, default None
        A seed of the search.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The group of each record: confidential.
    full_domain_loss_ : float or None
        The certainty penalty of the best full-domain recoding, in per cent: never less than
        `loss_`, where only keys are masked. None where its lattice is too large.
    start_ : str
        Which start led to the groups: "full domain", "parts" or "search".
    loss_, column_loss_, n_emptied_, hierarchies_, columns_, untouched_
        As for `Recoding`.

    Notes
    -----
    With groups g and the least common ancestor :math:`a_j(g)` of the values of key j, the loss is

    .. math:: \sum_g \sum_j |g| \, penalty(a_j(g)) + \sum_g \sum_{i \in g} |z_i - \bar z_g|^2,

    keys by their certainty penalty, numbers in standard deviations. See `tessella.keys.local`.

    References
    ----------
    J. Xu et al. (2006). Utility-based anonymization using local recoding. KDD, 785-790.
    J. Byun, A. Kamra, E. Bertino and N. Li (2007). Efficient k-anonymization using clustering
    techniques. DASFAA: groups by the loss of their generalisation.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.masking import LocalRecoding
    >>> table = pd.DataFrame({"zip": ["43201", "43202", "08001", "08001"], "age": [31, 33, 64, 70]})
    >>> masker = LocalRecoding(k=2, hierarchies={"zip": {"prefix": [3, 0]}},
    ...                        columns=["zip", "age"], random_state=0)
    >>> masker.fit_transform(table)
         zip  age
    0  432**   32
    1  432**   32
    2  08001   67
    3  08001   67
    """

    _parameters: ClassVar[Declared] = {
        **KeyMasker._parameters, "effort": [EFFORT], "limit": [Whole(1), NONE],
    }  # fmt: skip

    _: KW_ONLY
    effort: str = "standard"
    limit: int | None = None
    round_integers: bool = True

    def _mask(self, source: Table, *, weights: Any, strata: Any) -> Any:
        view, chosen = self._select(source, weights=weights, strata=strata)
        named = [name for name in chosen.masked if name in self.hierarchies]
        numbers = self._numbers(view, [n for n in chosen.masked if n not in self.hierarchies])
        keys = self._keys(view, named)
        parts, scaled = self._scaled(view, chosen, numbers)
        recoder = LocalRecoder(
            keys, scaled, k=self.k, parts=parts, weights=chosen.weights, units=view.units,
            effort=self.effort, random_state=check_seed(self.random_state),
        )  # fmt: skip
        found = self._search(view, chosen, keys, recoder, parts)
        nodes = [nodes_of_groups(key, found.labels) for key in keys]
        masked = self._finish(view, chosen, keys, nodes, found.emptied)
        if numbers:
            masked = self._write_means(View(masked, self.schema), chosen, numbers, found.labels)
        self._refuse_small(view, chosen, masked)
        self.labels_, self.start_ = found.labels, found.start
        self.account_ = self._account(view.n_rows)
        return masked

    def _search(
        self, view: View, chosen: Selection, keys: tuple[CodedKey, ...], recoder: LocalRecoder,
        parts: Integers,
    ) -> LocalGroups:  # fmt: skip
        """Start from the best full-domain recoding, from parts and from Search; take the best."""
        budget = allowed(self.suppress, view.n_rows)
        starts = recoder.starts()
        self.full_domain_loss_: float | None = None
        size = float(np.prod([float(key.n_levels) for key in keys]))
        if size <= LARGEST:
            best = search_levels(
                keys, view, chosen, k=self.k, suppress=self.suppress, limit=self.limit or LIMIT
            )
            self.full_domain_loss_ = 100 * best.loss
            codes = [key.table[level][key.codes] for key, level in zip(keys, best.levels)]
            classes = group_ids([parts, *codes])
            if _have_k(classes, best.emptied, parts, view.units, self.k):
                starts.insert(0, ("full domain", classes, best.emptied))
        return recoder.best_of(starts, budget)

    def _numbers(self, view: View, names: list[Name]) -> list[Name]:
        """Return the columns of numbers that are masked beside the keys."""
        others = [name for name in names if not view.is_number(name)]
        if others:
            more = ", ".join(f'{name!r}: {{"prefix": [0]}}' for name in others)
            raise BadOptionError(
                "hierarchies", list(self.hierarchies), "a hierarchy for every masked column that "
                f"does not hold numbers: hierarchies={{..., {more}}}"
            )  # fmt: skip
        return names

    def _scaled(self, view: View, chosen: Selection, names: list[Name]) -> tuple[Integers, Floats]:
        """Return what groups must not cross, and numbers in standard deviations."""
        if not names:
            return chosen.strata.ids, np.empty((view.n_rows, 0))
        read = view.read(names, who=type(self).__name__)
        parts = parts_of(read, list(range(len(names))), chosen.strata, self.k, view.units)
        scale = Scale.of(read.values, chosen.weights, "zscore", names)
        return parts, np.nan_to_num(scale.apply(read.values))

    def _write_means(
        self, view: View, chosen: Selection, names: list[Name], labels: Integers
    ) -> Any:
        """Write the mean of each group; whole numbers are rounded, unless asked otherwise."""
        values = np.nan_to_num(view.matrix(names, who=type(self).__name__))
        means = group_means(values, chosen.weights, labels, int(labels.max()) + 1)[labels]
        written, as_float = {}, []
        for j, name in enumerate(names):
            decimals = view.table.facts(name).decimals
            if self.round_integers and view.kind(name) == "integer":
                decimals = 0
            elif decimals == 0:
                decimals = None
                as_float.append(name)
            written[name] = means[:, j] if decimals is None else np.round(means[:, j], decimals)
        return write_numbers(view, written, as_float)

    def _account(self, n: int) -> str:
        groups = len(np.unique(self.labels_))
        beside = ""
        if self.full_domain_loss_ is not None:
            beside = f" The best full-domain recoding loses {self.full_domain_loss_:.2f} %."
        return f"{groups:,} groups; {self.n_emptied_:,} of {n:,} records emptied.{beside}"


def _have_k(
    classes: Integers, emptied: Truths, parts: Integers, units: Integers | None, k: int
) -> bool:
    """Return whether classes still have k where numbers that are missing part them further."""
    sets = group_ids([np.where(emptied, -1 - parts, classes)])
    return bool(count_units(sets, units).min() >= k)


def _advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    return [
        "Categories were replaced by coarser ones, group by group: a value may stand as it was in "
        "one record and be part of a coarser one in another. Count at a level that all records "
        "reach, or treat finer values as known and coarser ones as intervals or sets."
    ]


METHOD = register(
    Method(
        name="local recoding",
        masker=LocalRecoding,
        title="Local recoding of categories",
        masks="both",
        defaults={"k": 3},
        label="local recoding",
        description="local recoding, k = {k}",
        groups=lambda options, columns: [list(columns)],  # noqa: ARG005
        advice=_advise,
    )
)
