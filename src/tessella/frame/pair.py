"""An original and a masked table, aligned record by record, read through two views."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._types import Integers, Name, States, Truths
from ..exceptions import LinkageError, UnpairedError
from .columns import Facts
from .view import SchemaLike, View


@dataclass(frozen=True, eq=False, slots=True)
class PairedCategories:
    """A column as categories of both tables in one numbering; -1 where missing.

    The first `n_original` labels are those of the original; by rank where the column is ordinal
    and both tables have the same order.
    """

    before: Integers
    after: Integers
    labels: list[str]
    n_original: int

    def __iter__(self) -> Iterator[Any]:
        return iter((self.before, self.after, self.labels))


class Pair:
    """Two tables of which one was masked; every column is read in the same way in both.

    Parameters
    ----------
    original, masked : table, Table or View
        The tables.
    schema : Schema, optional
        The schema of both.
    id : name, optional
        A column in both tables that says which records belong together. Without it, record i of
        the masked table comes from record i of the original.

    Attributes
    ----------
    original, masked : View
        The tables.
    rows : ndarray of shape (m,)
        For each masked record, the row of its original.
    columns : tuple
        The columns that both have, in the order of the original.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.frame import Pair
    >>> before, after = pd.DataFrame({"age": [21, 30]}), pd.DataFrame({"age": [25, 25]})
    >>> pair = Pair(before, after)
    >>> pair.numbers("age"), pair.changed("age")
    ((array([21., 30.]), array([25., 25.])), array([ True,  True]))
    """

    def __init__(
        self, original: Any, masked: Any, schema: SchemaLike | None = None, id: Name | None = None
    ) -> None:
        self.original, self.masked = View.of(original, schema), View.of(masked, schema)
        self.schema = schema if schema is not None else self.original.schema
        self.id = id
        has = self.masked.table.has
        self.columns = tuple(name for name in self.original.columns if has(name))
        if id is not None:
            self.rows = _align(self.original, self.masked, id)
        elif self.original.n_rows != self.masked.n_rows:
            raise UnpairedError.lengths(original=self.original.n_rows, masked=self.masked.n_rows)
        else:
            self.rows = np.arange(self.original.n_rows)
        if self.masked.units is None and self.original.units is not None:
            units = self._of_masked(self.original.units)
            self.masked = View(self.masked.table, self.masked.schema, units)

    @property
    def n_rows(self) -> int:
        """The number of masked records."""
        return self.masked.n_rows

    def check_order(self, *, other_labels: bool = True) -> None:
        """Raise an error if the indexes of pandas tables say that rows do not belong together.

        Without `other_labels` only the same labels in another order are an error.
        """
        before, after = self.original.table, self.masked.table
        if self.id is None and not before.same_index(after):
            shuffled = before.reordered(after)
            if shuffled or other_labels:
                labels = "the same labels in another order" if shuffled else "other labels"
                raise UnpairedError.other_order(labels=labels)

    def facts(self, name: Name) -> tuple[Facts, Facts]:
        """Return what the dtypes of a column tell, in the original and in the masked table."""
        return self.original.table.facts(name), self.masked.table.facts(name)

    def is_number(self, name: Name) -> bool:
        """Return whether a column holds measured numbers in both tables."""
        return self.original.is_number(name) and self.masked.is_number(name)

    def numbers(self, name: Name, *, who: str = "The call") -> tuple[Any, Any]:
        """Return a column as numbers: of the originals of masked records, and masked."""
        before = self.original.numbers(name, who=who)
        return self._of_masked(before), self.masked.numbers(name, who=who)

    def states(self, name: Name) -> tuple[States, States]:
        """Return the states of a column's cells, before and after."""
        return self._of_masked(self.original.states(name)), self.masked.states(name)

    def categories(self, name: Name) -> PairedCategories:
        """Return a column as categories in one numbering."""
        before, after = self.original.categories(name), self.masked.categories(name)
        if before.labels == after.labels:
            labels, place = before.labels, after.codes
        else:
            at = {label: code for code, label in enumerate(before.labels)}
            common = [at.setdefault(label, len(at)) for label in after.labels]
            labels = list(at)
            place = np.array([*common, -1], dtype=np.int64)[after.codes]
        return PairedCategories(
            self._of_masked(before.codes), place, labels, n_original=len(before.labels)
        )

    def labels(self, name: Name) -> PairedCategories:
        """Return a column as categories, numbered as they first appear, whatever their order.

        Labels that stand for missing cells only are left out.
        """
        at: dict[str, int] = {}
        sides, n_original = [], 0
        for view in (self.original, self.masked):
            codes, labels = view.labels(name)
            used = np.zeros(len(labels) + 1, dtype=bool)
            used[codes] = True
            common = [at.setdefault(x, len(at)) if used[i] else -1 for i, x in enumerate(labels)]
            sides.append(np.array([*common, -1], dtype=np.int64)[codes])
            n_original = n_original or len(at)
        before, after = sides
        return PairedCategories(self._of_masked(before), after, list(at), n_original)

    def changed(self, name: Name) -> Truths:
        """Return where the masked cell is not equal to the original's, missing cells included."""
        state_before, state_after = self.states(name)
        if all(facts.numeric for facts in self.facts(name)):
            before = self._of_masked(self.original.table.raw(name)[0])
            after = self.masked.table.raw(name)[0]
        else:
            before, after, _ = self.categories(name)
        known = (state_before == 0) & (state_after == 0)
        changed: Truths = (state_before != state_after) | (known & (before != after))
        return changed

    def _of_masked(self, values: Any) -> Any:
        """Take the originals of the masked records; as they are where they stand in order."""
        return values if self.id is None else values[self.rows]


def _align(original: View, masked: View, id: Name) -> Integers:
    """Return the original's row of each masked record, by an identifier that both have."""
    texts, refused = [], partial(LinkageError.identifiers, column=id)
    for view, which in ((original, "the original"), (masked, "the masked table")):
        view.table.place(id, who=f"id= (in {which})")
        codes, labels = view.table.labels(id)
        if lacking := int((codes < 0).sum()):
            raise refused(problem=f"{lacking} records of {which} have none")
        if repeated := view.n_rows - len(labels):
            raise refused(problem=f"{repeated} of {which} are repeated")
        texts.append([labels[code] for code in codes])
    row = {text: at for at, text in enumerate(texts[0])}
    rows = np.array([row.get(text, -1) for text in texts[1]], dtype=np.int64)
    if unknown := int((rows < 0).sum()):
        raise refused(problem=f"{unknown} masked records have no original")
    return rows
