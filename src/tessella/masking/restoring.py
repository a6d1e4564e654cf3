"""Bring the records of a masked table back to the linear rules, each by the least move."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .._types import Floats
from ..exceptions import BadTableError, BrokenPromiseError
from ..frame import Table
from ..rules.collection import Rules
from ..schema import Schema
from .perturbation import Perturbation, Reading
from .restorer import Restoration
from .scale import Scale

__all__ = ["restore"]


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
    mover = _Mover(
        rules=Rules.of(rules), columns=columns, schema=schema, round_integers=round_integers,
        original=None if original is None else Table.read(original),
    )  # fmt: skip
    table = mover.fit_transform(source)
    return table, mover.told()


class _Mover(Perturbation):
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

    def _perturb(self, read: Reading) -> Floats:
        return read.original.values.copy()

    def _fixed(self, rules: Rules, read: Reading) -> Rules:  # noqa: ARG002
        return rules if self.original is None else rules.fix(self.original, schema=self.schema)

    def _reading(self, source: Table) -> Reading:
        read = super()._reading(source)
        if self.original is None:
            return read
        if self.original.n_rows != source.n_rows:
            raise BadTableError(
                f"The masked table has {source.n_rows} records and the original "
                f"{self.original.n_rows}. Give the table that was masked, in the same order."
            )
        codes = self._missing_codes(read.chosen.masked)
        numbers = self.original.numeric(read.chosen.masked, codes=codes, who="original")
        scale = Scale.of(numbers.values, read.chosen.weights, "zscore", read.chosen.masked)
        return replace(read, scale=scale)

    def told(self) -> Restoration:
        """Return what was restored."""
        if self.restoration_ is None:
            raise BrokenPromiseError("Nothing was restored although rules were given.")
        return self.restoration_
