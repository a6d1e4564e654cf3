"""What maskers share that change each number on its own account, without groups of k.

Noise, rank swapping, rounding and their kin release one number for each number. None of them
promises k-anonymity; all of them can be brought back to the rules afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import ndtri

from .._parameters import FLAG, NONE, Constraint, Instance, check_parameters, parameters
from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadOptionError, BadTableError, BrokenPromiseError
from ..frame import Numbers, Table, View
from ..fuzzy.drawing import Chance, chance_of
from ..rules.collection import Rules
from ..schema import Schema
from .base import Masker, Scale
from .repair import Grid, Repair, Restoration
from .selection import Selection, select

__all__ = ["MaskedColumns", "Perturbation", "by_record", "normal", "restore", "rows_of_strata"]


Declared = Mapping[str, Sequence[Constraint]]  # what parameters may be


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedColumns:
    """A table that was read for masking."""

    source: Table
    chosen: Selection
    original: Numbers
    scale: Scale

    @property
    def known(self) -> Truths:
        """Whether each masked cell has a number, shape (n, d)."""
        return ~self.original.missing


class Perturbation(Masker):
    """Base of maskers that change numbers without making groups.

    A subclass says in `_perturb` what becomes of the numbers; missing cells stay missing.
    """

    blocks = None
    on_missing = "pattern"  # missing cells are left alone
    columns: Any
    strata: Any
    weights: Any
    rules: Any
    random_state: Any
    restoration_: Restoration | None
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
            With the same index, columns, dtypes and categories; only the numbers are others.
        """
        self._check()
        rules = None if self.rules is None else Rules.of(self.rules)
        read = self._reading(Table.read(table), *by_record(self, weights, strata))
        repair = None if rules is None else self._repair(read, rules)
        masked = self._release(read, self._perturb(read), repair)
        released = self._read(Table.read(masked), read.chosen)
        if not np.array_equal(read.original.state, released.state):
            raise BrokenPromiseError("Missing cells moved; the result is withheld: please report.")
        self._keep_facts(read.source, read.chosen)
        self._measure_loss(read.original, released, read.chosen.weights, read.scale)
        self.changed_ = _changed(read.original, released)
        self._look_at(read, released)
        return masked

    def _check(self) -> None:
        """Check the parameters before anything is read."""
        check_parameters(self)

    def _perturb(self, read: MaskedColumns) -> Floats:
        """Return the masked numbers, shape (n, d); what is in missing cells does not matter."""
        raise NotImplementedError

    def _look_at(self, read: MaskedColumns, released: Numbers) -> None:
        """Learn something from the released numbers, or refuse them."""

    def _reading(self, source: Table, weights: Any, strata: Any) -> MaskedColumns:
        chosen = select(
            source, columns=self.columns, blocks=None, strata=strata, weights=weights,
            schema=self.schema, who=type(self).__name__,
        )  # fmt: skip
        original = self._read(source, chosen)
        scale = Scale.of(original.values, chosen.weights, "zscore", chosen.masked)
        return MaskedColumns(source=source, chosen=chosen, original=original, scale=scale)

    def _repair(self, read: MaskedColumns, rules: Rules) -> Repair:
        """Select the rules that can be restored, or raise that they contradict each other."""
        masked = read.chosen.masked
        grid = Grid.of_table(
            read.source, masked, unit=read.scale.unit,
            decimals=[self._decimals(read.source, name) for name in masked],
        )  # fmt: skip
        fixed = [name for name in masked if not read.source.facts(name).numeric]
        return Repair.of(self._fixed(rules, read), grid, fixed=fixed)

    def _release(self, read: MaskedColumns, values: Floats, repair: Repair | None) -> Any:
        """Bring the numbers back to the rules, if there are any, and write the table."""
        self.restoration_ = None
        if repair is None:
            return self._write(read.source, read.original, values)
        restored = repair.restore(values, read.known)
        kept = restored.copy()  # writing rounds in place
        masked = self._write(read.source, read.original, restored)
        self.restoration_ = repair.certify(
            masked, before=values, kept=kept, known=read.known, schema=self.schema
        )
        return masked

    def _fixed(self, rules: Rules, read: MaskedColumns) -> Rules:
        """Look up in the original table what rules ask of it."""
        return rules.fix(read.source, schema=self.schema)

    def _decimals(self, source: Table, name: Name) -> int | None:
        """Return to how many decimals a column is rounded when written, None for not at all."""
        decimals = source.facts(name).decimals
        kind = None if self.schema is None else self.schema[name].kind
        wanted_float = kind == "continuous" or not self.round_integers
        if decimals == 0 and wanted_float:
            return None
        if decimals is None and kind == "integer" and self.round_integers:
            return 0
        return decimals

    def _keep_facts(self, source: Table, chosen: Selection) -> None:
        self.columns_ = list(chosen.masked)
        self.untouched_ = list(chosen.untouched)
        self.n_features_in_ = len(source.columns)
        self.__dict__.pop("feature_names_in_", None)  # from an earlier fit
        if all(isinstance(name, str) for name in source.columns):
            self.feature_names_in_ = np.array(source.columns, dtype=object)

    def _chance(self) -> Chance:
        return chance_of(self.random_state)


def by_record(masker: Any, weights: Any, strata: Any) -> tuple[Any, Any]:
    """Return weights and strata as given to `fit_transform`, or the columns that are named."""
    for name in ("weights", "strata"):
        own = getattr(masker, name)
        if hasattr(own, "__array__") or hasattr(own, "to_numpy"):
            hint = f"names of columns; an array goes to fit_transform(table, {name}=...)"
            raise BadOptionError(name, type(own).__name__, hint)
    return (
        masker.weights if weights is None else weights,
        masker.strata if strata is None else strata,
    )


def normal(chance: Chance, size: int) -> Floats:
    """Return standard normal numbers, by the inverse of their distribution function.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.masking.perturbation import normal
    >>> normal(np.random.default_rng(0), 3).round(3)
    array([ 0.35 , -0.613, -1.739])
    """
    u = chance.random(size)  # multiples of 2**-53
    lower = np.where(u < 0.5, u + 2.0**-54, 1.0 - u)  # exact in both tails, and never 0
    return np.where(u < 0.5, 1.0, -1.0) * np.asarray(ndtri(lower), dtype=np.float64)


def rows_of_strata(place: Integers) -> list[Integers]:
    """Return the rows of each stratum, ascending, in the order of the strata's numbers."""
    order = np.argsort(place, kind="stable")
    return np.split(order, np.cumsum(np.bincount(place))[:-1])


def _changed(original: Numbers, released: Numbers) -> dict[Name, float]:
    """Return for each column the share of its known numbers that were changed."""
    shares = {}
    for j, name in enumerate(original.columns):
        known = ~original.missing[:, j]
        differs = original.values[known, j] != released.values[known, j]
        shares[name] = float(differs.mean()) if known.any() else 0.0
    return shares


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


class _Unperturbed(Perturbation):
    """A masker that leaves numbers as they are, until rules move them."""

    strata = weights = None

    def __init__(
        self,
        *,
        rules: Any,
        columns: Any,
        schema: Schema | None,
        round_integers: bool,
        original: Any,
    ) -> None:
        self.rules = rules
        self.columns = columns
        self.schema = schema
        self.round_integers = round_integers
        self.original = original

    def _perturb(self, read: MaskedColumns) -> Floats:
        return read.original.values.copy()

    def _fixed(self, rules: Rules, read: MaskedColumns) -> Rules:  # noqa: ARG002
        return rules if self.original is None else rules.fix(self.original, schema=self.schema)

    def _reading(self, source: Table, weights: Any, strata: Any) -> MaskedColumns:
        read = super()._reading(source, weights, strata)
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
