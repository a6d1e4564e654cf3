"""Recoding: one level of its hierarchy for each key, such that every combination has k records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .._parameters import NONE, Number, Whole
from .._types import Integers, Name, Truths
from ..exceptions import BadOptionError, BrokenPromiseError, UnknownColumnError
from ..frame import Table, View, count_units, group_ids
from ..grouping.base import check_k
from ..keys import Hierarchy
from ..keys.coded import CodedKey, read_keys
from ..keys.lattice import FullDomain, Lattice
from ..keys.measures import NAMES
from ..keys.releasing import RecodedTable, write_keys
from ..keys.sources import check_form
from .base import Declared, Masker
from .registry import Method, Options, register
from .selection import Selection, select

SHARE = Number(least=0, below=1)


class _Forms:
    """Hierarchies by column, each an object or in a form that a plan can write."""

    def accepts(self, value: object) -> bool:
        """Return whether hierarchies can be built from a value, as far as it shows."""
        if not isinstance(value, Mapping) or not value:
            return False
        for name, form in value.items():
            if not isinstance(form, Hierarchy):
                check_form(form, f"hierarchies[{name!r}]")
        return True

    def __str__(self) -> str:
        return '{column: hierarchy}, such as {"age": {"width": [5, 10, 20]}}'


FORMS = _Forms()


@dataclass(eq=False, repr=False)
class KeyMasker(Masker):
    """Base of maskers that release nodes of hierarchies."""

    _parameters: ClassVar[Declared] = {"suppress": [SHARE], "hierarchies": [FORMS]}

    k: int = 3
    _: KW_ONLY
    hierarchies: Any = None
    suppress: float = 0.0
    folder: Any = None

    repairs: ClassVar[bool] = False

    def _select(self, source: Table, *, weights: Any, strata: Any) -> tuple[View, Selection]:
        """Read the table; the columns are those that have a hierarchy, unless others are named."""
        for name in self.hierarchies:
            if not source.has(name):
                raise UnknownColumnError(name, source.columns, who="hierarchies")
        columns = self.columns
        if columns is None:
            columns = [name for name in source.columns if name in self.hierarchies]
        chosen = select(
            source, columns=columns, strata=strata, weights=weights, schema=self.schema,
            who=type(self).__name__, categories=None,
        )  # fmt: skip
        check_k(self.k, source.n_rows)
        return View(source, self.schema), chosen

    def _keys(self, view: View, names: Sequence[Name]) -> tuple[CodedKey, ...]:
        """Read the keys; each needs a hierarchy."""
        if lacking := [name for name in names if name not in self.hierarchies]:
            more = ", ".join(f'{name!r}: {{"prefix": [0]}}' for name in lacking)
            raise BadOptionError(
                "hierarchies", list(self.hierarchies), "a hierarchy for every masked column. To "
                f"keep a column as it is, or give it up as a whole: hierarchies={{..., {more}}}"
            )  # fmt: skip
        folder = None if self.folder is None else Path(self.folder)
        return read_keys(view, names, self.hierarchies, folder)

    def _finish(
        self, view: View, chosen: Selection, keys: Sequence[CodedKey], nodes: Sequence[Integers],
        emptied: Truths,
    ) -> Any:  # fmt: skip
        """Write the table, keep what is known of it, and count k in it again."""
        written = write_keys(view, keys, nodes, emptied)
        self.columns_ = list(chosen.masked)
        self.blocks_ = [list(chosen.masked)]
        self.hierarchies_ = {key.name: key.hierarchy for key in keys}
        self.recoded_ = replace(written, table=None)
        self.n_emptied_, self.n_allowed_ = int(emptied.sum()), allowed(self.suppress, view.n_rows)
        self.changed_ = {}
        self._keep_facts(view.table, chosen)
        penalties: dict[Name, float] = {}
        for key, own in zip(keys, nodes):
            lost = np.where(emptied, 1.0, key.penalty[own])[key.known]
            weight = chosen.weights[key.known]
            mean = float(np.average(lost, weights=weight)) if len(lost) else 0.0
            penalties[key.name] = 100 * mean
            differs = (own != key.codes_as_nodes) | (emptied & key.known)
            self.changed_[key.name] = float(differs.mean())
        self.column_loss_ = penalties
        mass = [float(chosen.weights @ key.known) for key in keys]
        self.loss_ = float(np.average(list(penalties.values()), weights=mass)) if any(mass) else 0.0
        return written.table

    def _refuse_small(self, view: View, chosen: Selection, masked: Any) -> None:
        """Count k in the table that will be released, or raise an error."""
        released = View(masked, self.schema)
        sets = group_ids([chosen.strata.ids, *(released.codes(name) for name in chosen.masked)])
        smallest = int(count_units(sets, view.units).min())
        if smallest < self.k:
            method = type(self).__name__
            raise BrokenPromiseError.group_too_small(k=self.k, smallest=smallest, method=method)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what belongs to records, and hierarchies, which list values that occur."""
        state = dict(super().__getstate__())
        for name in ("hierarchies_", "recoded_"):
            state.pop(name, None)
        return state


@dataclass(eq=False, repr=False)
class Recoding(KeyMasker):
    r"""Full-domain recoding: all cells of a column are released on the same level.

    Parameters
    ----------
    k : int, default 3
        How many records, or units, share each combination of released keys, in every stratum.
    hierarchies : mapping of name to hierarchy
        What the values of each key may become: a `tessella.keys.Hierarchy`, or as a plan writes it,
        such as ``{"zip": {"prefix": [3, 2, 0]}, "age": {"width": [5, 10, 20]}}``.
    suppress : float, default 0
        The share of records whose keys may be emptied, so that others need not be recoded further.
        Emptied records look alike, and are at least k, too.
    measure : str or callable, default "certainty penalty"
        What is least: "certainty penalty", "entropy", "precision", "discernibility", "average class
        size"; or a function of the original and the recoded table that returns a number.
    limit : int, optional
        How many nodes of the lattice are counted at most; 100,000, or 1,000 for a function.
    folder : path, optional
        What the names of files of hierarchies are relative to.
    columns : list of names, optional
        The keys; by default those that have a hierarchy. Other columns are released as they are.
    strata, weights, schema, random_state
        As for `PRAM`; nothing here is random.

    Attributes
    ----------
    levels_ : dict of name to int
        The level of each key, 0 for as it was.
    value_, bound_ : float
        The least loss by the measure, and what no choice of levels falls below.
    proved_ : bool
        Whether no other choice of levels loses less.
    n_emptied_ : int
        The records whose keys were emptied.
    n_counted_, n_nodes_ : int
        The nodes of the lattice that were counted, and all of them.
    loss_, column_loss_ : float and dict
        The certainty penalty in per cent, over all keys and of each.
    hierarchies_, columns_, untouched_
        The hierarchies, the keys, and the columns that were released as they are.

    Notes
    -----
    The certainty penalty of a node is (leaves under it - 1) / (leaves - 1), of an interval of
    numbers its range over the range of all; the loss is its mean over known cells, an emptied one
    counting 1. "entropy" is :math:`\sum \log_2 (f(node) / f(leaf))` over cells, as a share of what
    the roots would lose; "precision" the mean level as a share of the height; "discernibility" the
    sum of squared sizes of combinations, and n for each emptied record, over n squared. See
    `tessella.keys.lattice` for why the result is the best one.

    A missing cell is a value of its own; only the root covers it.

    References
    ----------
    P. Samarati (2001). Protecting respondents' identities in microdata release. IEEE TKDE 13(6).
    K. El Emam et al. (2009). A globally optimal k-anonymity method for the de-identification of
    health data. JAMIA 16(5): OLA.
    F. Kohlmayer et al. (2012). Flash: efficient, stable and optimal k-anonymity. IEEE PASSAT.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.masking import Recoding
    >>> table = pd.DataFrame({"zip": ["43201", "43202", "43330", "43331"], "sex": list("mmff")})
    >>> masker = Recoding(k=2, hierarchies={"zip": {"prefix": [3, 0]}, "sex": {"prefix": [0]}})
    >>> masker.fit_transform(table)
         zip sex
    0  432**   m
    1  432**   m
    2  433**   f
    3  433**   f
    >>> masker.levels_, masker.proved_
    ({'zip': 1, 'sex': 0}, True)
    """

    _parameters: ClassVar[Declared] = {**KeyMasker._parameters, "limit": [Whole(1), NONE]}

    _: KW_ONLY
    measure: Any = "certainty penalty"
    limit: int | None = None

    def _mask(self, source: Table, *, weights: Any, strata: Any) -> Any:
        view, chosen = self._select(source, weights=weights, strata=strata)
        keys = self._keys(view, chosen.masked)
        found = search_levels(
            keys, view, chosen, k=self.k, suppress=self.suppress, limit=self.limit,
            measure=measure_of(self.measure, view, keys),
        )  # fmt: skip
        nodes = [key.table[level][key.codes] for key, level in zip(keys, found.levels)]
        masked = self._finish(view, chosen, keys, nodes, found.emptied)
        self._refuse_small(view, chosen, masked)
        self.levels_ = dict(zip(chosen.masked, found.levels))
        self.value_, self.bound_, self.proved_ = found.loss, found.bound, found.proved
        self.n_counted_, self.n_nodes_ = found.n_counted, found.n_nodes
        self.account_ = _account(self, source.n_rows)
        return masked


def search_levels(
    keys: Sequence[CodedKey], view: View, chosen: Selection, *, k: int, suppress: float,
    measure: Any = "certainty penalty", limit: int | None = None,
) -> FullDomain:  # fmt: skip
    """Search the lattice for keys that were read."""
    return Lattice(
        keys, k=k, stratum=chosen.strata.ids, weights=chosen.weights, units=view.units,
        allowed=allowed(suppress, view.n_rows), measure=measure, limit=limit,
    ).search()  # fmt: skip


def allowed(suppress: float, n: int) -> int:
    """Return how many of n records may be emptied."""
    return int(np.floor(suppress * n * (1 + 1e-12)))  # 0.02 of 50 is one


def measure_of(given: Any, view: View, keys: Sequence[CodedKey]) -> Any:
    """Return a measure as the lattice takes it; a function of two tables is given both."""
    if isinstance(given, str) or not isinstance(given, Callable):  # type: ignore[arg-type]
        if given not in NAMES:
            names = ", ".join(map(repr, NAMES))
            expected = f"one of {names}, or a function of the original and the recoded table"
            raise BadOptionError("measure", given, expected)
        return given

    def measured(levels: tuple[int, ...], emptied: Truths) -> float:
        nodes = [key.table[level][key.codes] for key, level in zip(keys, levels)]
        written: RecodedTable = write_keys(view, keys, nodes, emptied)
        return float(given(view.table.native, written.table))

    return measured


def _account(masker: Recoding, n: int) -> str:
    """Return what was done, in words."""
    levels = ", ".join(f"{name} {level}" for name, level in masker.levels_.items())
    best = "no other choice loses less" if masker.proved_ else (
        f"stopped after {masker.n_counted_:,} nodes; no choice loses less than {masker.bound_:.4g}"
    )  # fmt: skip
    return (
        f"Levels: {levels}; {masker.n_emptied_:,} of {n:,} records emptied; {best} "
        f"({masker.value_:.4g})."
    )


def _advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    emptied = " Records whose keys are missing were emptied, and are not missing at random." if (
        options.get("suppress")
    ) else ""  # fmt: skip
    return [
        "Categories of the recoded columns were replaced by coarser ones, the same for all records "
        "of a column: frequencies of the coarser categories are exact." + emptied
    ]


METHOD = register(
    Method(
        name="recoding",
        masker=Recoding,
        title="Recoding of categories",
        masks="categories",
        defaults={"k": 3},
        label="recoding",
        description="full-domain recoding, k = {k}",
        groups=lambda options, columns: [list(columns)],  # noqa: ARG005
        advice=_advise,
    )
)
