"""What maskers share: reading, writing in kind, measuring what was lost, keeping rules.

A masker has `fit_transform` without `transform`: masking unseen records with what was learned from
others would not protect them. Its parameters are the fields of a dataclass, in which scikit-learn
finds them. Noise, rank swapping, rounding and their kin are a `Perturbation`: they release one
number for each number, promise no k, and can be brought back to the rules afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from scipy.special import ndtri

from .._estimator import Estimator
from .._parameters import FLAG, NONE, Constraint, Instance, check_parameters, parameters
from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadTableError, BrokenPromiseError
from ..frame import Numbers, Table, View
from ..grouping.base import Chance
from ..rules.collection import Rules
from ..schema import Schema
from .repair import Grid, Repair, Restoration
from .selection import Scale, Selection, named_or_given, select

Declared = Mapping[str, Sequence[Constraint]]  # what parameters may be
Class = TypeVar("Class", bound=type)


def renamed(**names: str) -> Callable[[Class], Class]:
    """Let the constructor of a class raise what an argument is called now."""

    def decorate(cls: Class) -> Class:
        cls.__init__ = parameters(names)(cls.__init__)  # type: ignore[misc]
        return cls

    return decorate


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedColumns:
    """A table that was read for masking."""

    view: View
    chosen: Selection
    original: Numbers
    scale: Scale

    @property
    def known(self) -> Truths:
        """Whether each masked cell has a number, shape (n, d)."""
        return ~self.original.missing


@dataclass(eq=False, repr=False, kw_only=True)
class Masker(Estimator):
    """Base of all maskers; a subclass masks in `_mask`."""

    columns: Any = None
    strata: Any = None
    weights: Any = None
    schema: Schema | None = None
    random_state: Any = None

    repairs: ClassVar[bool] = True  # whether `rules` are what released records are moved back to
    _parameters: ClassVar[Declared] = {}

    def fit(self, table: Any, y: object = None, *, weights: Any = None, strata: Any = None) -> Self:
        """Mask and measure, without keeping the masked table."""
        self.fit_transform(table, y, weights=weights, strata=strata)
        return self

    def fit_transform(
        self,
        table: Any,
        y: object = None,  # noqa: ARG002
        *,
        weights: Any = None,
        strata: Any = None,
    ) -> Any:
        """Mask a table.

        Parameters
        ----------
        table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
            The original table; it is not changed.
        y : ignored
            Present for scikit-learn.
        weights, strata : array-like of shape (n,), or names of columns, optional
            In place of those of the constructor, which takes names only.

        Returns
        -------
        masked : the same kind of table
            With the same index, columns, dtypes and categories; only the masked values are others.
        """
        check_parameters(self)
        source = Table.read(table)
        return self._mask(source, **named_or_given(self, source, weights=weights, strata=strata))

    def _mask(self, source: Table, *, weights: Any, strata: Any) -> Any:
        """Mask a table whose weights and strata are given by name or by record."""
        raise NotImplementedError

    def _keep_facts(self, source: Table, chosen: Selection) -> None:
        self.untouched_ = list(chosen.untouched)
        self.n_features_in_ = len(source.columns)
        self.__dict__.pop("feature_names_in_", None)  # from an earlier fit
        if all(isinstance(name, str) for name in source.columns):
            self.feature_names_in_ = np.array(source.columns, dtype=object)

    def _confront(self, rules: Rules, source: Table, masked: Any) -> Restoration:
        """Count the records that break each rule; nothing is restored among categories."""
        fixed = rules.fix(source, schema=self.schema)
        result = fixed.confront(masked, schema=self.schema)
        why = "categories are not moved"
        return Restoration(
            restored=(), not_restored=dict.fromkeys(fixed.names, why), moved=0, mean_move=0.0,
            broken={name: len(result.breaking(name)) for name in fixed.names},
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """Leave everything that belongs to single records behind when saved."""
        state = vars(self).copy()
        for name in ("labels_", "uncertainty_"):
            state.pop(name, None)
        return state


@dataclass(eq=False, repr=False, kw_only=True)
class NumberMasker(Masker):
    """Base of maskers that release one number for each number."""

    round_integers: bool = True

    def _read(
        self, source: Table, *, weights: Any, strata: Any, blocks: Any = None, scale: Any = "zscore"
    ) -> MaskedColumns:
        who = type(self).__name__
        chosen = select(
            source, columns=self.columns, blocks=blocks, strata=strata, weights=weights,
            schema=self.schema, who=who,
        )  # fmt: skip
        view = View(source, self.schema)
        original = view.read(chosen.masked, who=who)
        measured = Scale.of(original.values, chosen.weights, scale, chosen.masked)
        return MaskedColumns(view=view, chosen=chosen, original=original, scale=measured)

    def _read_released(self, read: MaskedColumns, masked: Any) -> Numbers:
        """Read the masked columns of the table that will be released."""
        released = View(masked, self.schema).read(read.chosen.masked, who=type(self).__name__)
        if not np.array_equal(read.original.state, released.state):
            raise BrokenPromiseError("Missing cells moved; the result is withheld: please report.")
        return released

    def _decimals(self, view: View, name: Name) -> int | None:
        """Return to how many decimals a column is rounded when written, None for not at all."""
        decimals = view.table.facts(name).decimals
        kind = None if self.schema is None else self.schema[name].kind
        if self.round_integers and kind == "integer":
            return 0
        if decimals == 0 and (kind == "continuous" or not self.round_integers):
            return None
        return decimals

    def _stays_whole(self, view: View, name: Name) -> bool:
        """Return whether to round to whole numbers: by the schema, or as it would be guessed."""
        facts = view.table.facts(name)
        if not self.round_integers:
            return False
        if view.schema is not None or facts.family != "float":
            return view.kind(name) == "integer" if view.schema is not None else facts.decimals == 0
        numbers = view.numbers(name)
        return bool((np.isnan(numbers) | (numbers == np.rint(numbers))).all())

    def _write(
        self, read: MaskedColumns, released: Floats, *, unrounded: Collection[Name] = ()
    ) -> Any:
        """Round where the column asks for it, and write the columns back in kind."""
        as_float = []
        for j, name in enumerate(read.chosen.masked):
            decimals = None if name in unrounded else self._decimals(read.view, name)
            if decimals is not None:
                released[:, j] = np.round(released[:, j], decimals)
            elif read.view.table.facts(name).decimals is not None:
                as_float.append(name)
        return write_numbers(read.view, dict(zip(read.chosen.masked, released.T)), as_float)

    def _measure_loss(self, read: MaskedColumns, released: Numbers) -> None:
        """IL = 100 SSE / SST of each column, and of all columns on the chosen scale."""
        original, weights, scale = read.original, read.chosen.weights, read.scale
        lost, total = np.zeros(len(scale.unit)), np.zeros(len(scale.unit))
        for j in np.flatnonzero(scale.deviation > 0):
            seen = ~original.missing[:, j]
            x, r = original.values[seen, j], released.values[seen, j]
            lost[j] = weights[seen] @ ((x - r) / scale.deviation[j]) ** 2
            total[j] = weights[seen] @ ((x - scale.centre[j]) / scale.deviation[j]) ** 2
        shares = np.divide(lost, total, out=np.zeros_like(lost), where=total > 0)
        self.column_loss_ = {n: float(100 * s) for n, s in zip(original.columns, shares)}
        size = (scale.deviation / scale.unit) ** 2
        self.loss_ = float(100 * (size @ lost) / (size @ total)) if total.any() else 0.0


def write_numbers(view: View, numbers: Mapping[Name, Floats], as_float: Collection[Name]) -> Any:
    """Write columns of numbers into a table of the same kind; missing cells stay."""
    keep = {name: view.missing(name) for name in numbers}
    for name, values in numbers.items():
        for code in view.missing_codes(name):
            if not isinstance(code, str) and ((values == code) & ~keep[name]).any():
                raise BadTableError(
                    f"The released value of a group of {name!r} equals its missing code "
                    f"{code!r}. Recode missing cells to a value outside of the column's range."
                )
    return view.table.replace(dict(numbers), keep=keep, as_float=list(as_float))


@dataclass(eq=False, repr=False, kw_only=True)
class Perturbation(NumberMasker):
    """Base of maskers that change numbers without making groups.

    A subclass returns from `_perturb` what becomes of the numbers; missing cells stay missing.
    """

    rules: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # missing cells stay missing
        return tags

    def _mask(self, source: Table, *, weights: Any, strata: Any) -> Any:
        rules = None if self.rules is None else Rules.of(self.rules)
        read = self._read(source, weights=weights, strata=strata)
        repair = None if rules is None else self._repair(read, rules)
        masked = self._release(read, self._perturb(read), repair)
        released = self._read_released(read, masked)
        self.columns_ = list(read.chosen.masked)
        self._keep_facts(source, read.chosen)
        self._measure_loss(read, released)
        differs = (read.original.values != released.values) & read.known
        shares = differs.sum(axis=0) / np.maximum(read.known.sum(axis=0), 1)
        self.changed_ = dict(zip(read.chosen.masked, shares.tolist()))
        self._look_at(read, released)
        return masked

    def _perturb(self, read: MaskedColumns) -> Floats:
        """Return the masked numbers, shape (n, d); what is in missing cells does not matter."""
        raise NotImplementedError

    def _look_at(self, read: MaskedColumns, released: Numbers) -> None:
        """Learn something from the released numbers, or refuse them."""

    def _repair(self, read: MaskedColumns, rules: Rules) -> Repair:
        """Select the rules that can be restored, or raise that they contradict each other."""
        masked, table = read.chosen.masked, read.view.table
        grid = Grid.of_table(
            table, masked, unit=read.scale.unit,
            decimals=[self._decimals(read.view, name) for name in masked],
        )  # fmt: skip
        fixed = [name for name in masked if not table.facts(name).numeric]
        return Repair.of(self._fixed(rules, read), grid, fixed=fixed)

    def _release(self, read: MaskedColumns, values: Floats, repair: Repair | None) -> Any:
        """Bring the numbers back to the rules, if there are any, and write the table."""
        self.restoration_: Restoration | None = None
        if repair is None:
            return self._write(read, values)
        restored = repair.restore(values, read.known)
        masked = self._write(read, restored.copy())  # writing rounds in place
        self.restoration_ = repair.certify(
            masked, before=values, kept=restored, known=read.known, schema=self.schema
        )
        return masked

    def _fixed(self, rules: Rules, read: MaskedColumns) -> Rules:
        """Look up in the original table what rules ask of it."""
        return rules.fix(read.view.table, schema=self.schema)


def normal(chance: Chance, size: int) -> Floats:
    """Return standard normal numbers, by the inverse of their distribution function."""
    u = chance.random(size)  # multiples of 2**-53
    lower = np.where(u < 0.5, u + 2.0**-54, 1.0 - u)  # exact in both tails, and never 0
    return np.where(u < 0.5, 1.0, -1.0) * np.asarray(ndtri(lower), dtype=np.float64)


def rows_of_strata(place: Integers) -> list[Integers]:
    """Return the rows of each stratum, ascending, in the order of the strata's numbers."""
    order = np.argsort(place, kind="stable")
    return np.split(order, np.cumsum(np.bincount(place))[:-1])


@parameters(round_integers=[FLAG], schema=[Instance(Schema, "a tessella.Schema"), NONE])
def restore(
    masked: Any,
    rules: Any,
    *,
    original: Any = None,
    columns: Any = None,
    schema: Schema | None = None,
    round_integers: bool = True,
) -> tuple[Any, Restoration]:
    r"""Move each record of a masked table to the nearest one that keeps the linear rules.

    Parameters
    ----------
    masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The masked table; it is not changed.
    rules : Rules or text
        The rules. Restored are those that say only linear things (intervals, linear equations and
        inequalities, one column that governs another) of columns that may move; the others are
        reported.
    original : table, optional
        The original table: distances are measured in its standard deviations, and rules such as
        x <= mean(x) speak of it. Without it, the masked table serves for distances, and such rules
        are not restored.
    columns : list of names, optional
        The columns that may move, the masked ones; all columns of numbers, if not given.
    schema : Schema, optional
        Says which values stand for "missing", and which columns of floats are whole.
    round_integers : bool, default True
        Whole numbers stay whole. False releases such columns as float64.

    Returns
    -------
    table : the same kind of table
        With every restored rule obeyed in every record, checked with `Rules.confront`.
    restoration : Restoration
        What was restored, what was not and why, and how far records were moved.

    Raises
    ------
    ContradictionError, NoWholeSolutionError
        Where no record, or none of whole numbers, can keep the rules; they are named.
    RefusedError
        Where the moved table does not pass the check.

    Notes
    -----
    A record x goes to the v that minimises :math:`\sum_j (v_j - x_j)^2 / s_j^2` over all v that
    keep the rules (`LinearSystem.project`); where columns are whole, on to the nearest v whose
    numbers are (`round_whole`). A rule with < is kept by more than the rounding that
    `Rules.confront` allows for. Rules about a missing cell are left out for that record. Any
    promise of k of the masked table is lost: records move one by one.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.masking import restore
    >>> masked = pd.DataFrame({"net": [80, 45, 61], "tax": [23, 14, 20], "gross": [99, 60, 81]})
    >>> table, restoration = restore(masked, "net + tax == gross")
    >>> (table["net"] + table["tax"] - table["gross"]).tolist()
    [0, 0, 0]
    >>> print(restoration)
    1 of 1 rules restored; 2 records moved; all records by 0.0835 standard deviations on average.
    """
    source = Table.read(masked)
    if columns is None:
        columns = [name for name in source.columns if source.facts(name).numeric]
    mover = _Unperturbed(
        rules=Rules.of(rules), columns=columns, schema=schema, round_integers=round_integers,
        original=None if original is None else Table.read(original),
    )  # fmt: skip
    table = mover.fit_transform(source)
    if mover.restoration_ is None:
        raise BrokenPromiseError("Nothing was restored although rules were given.")
    return table, mover.restoration_


@dataclass(eq=False, repr=False, kw_only=True)
class _Unperturbed(Perturbation):
    """A masker that leaves numbers as they are, until rules move them."""

    original: Any = None

    def _perturb(self, read: MaskedColumns) -> Floats:
        return read.original.values.copy()

    def _fixed(self, rules: Rules, read: MaskedColumns) -> Rules:  # noqa: ARG002
        return rules if self.original is None else rules.fix(self.original, schema=self.schema)

    def _read(self, source: Table, **given: Any) -> MaskedColumns:
        read = super()._read(source, **given)
        if self.original is None:
            return read
        if self.original.n_rows != source.n_rows:
            raise BadTableError(
                f"The masked table has {source.n_rows} records and the original "
                f"{self.original.n_rows}. Give the table that was masked, in the same order."
            )
        numbers = View(self.original, self.schema).matrix(read.chosen.masked, who="original")
        scale = Scale.of(numbers, read.chosen.weights, "zscore", read.chosen.masked)
        return replace(read, scale=scale)
