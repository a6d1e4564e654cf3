"""The form of a table: the types of its columns, which moving rows between machines would lose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..exceptions import BadTableError


@dataclass(frozen=True, eq=False)
class Form:
    """How columns of texts are stored, and the order of categories, where they have one."""

    types: Mapping[str, Any]
    orders: Mapping[str, list[Any]]

    @classmethod
    def of(cls, table: pa.Table) -> Form:
        """Return the form of a table."""
        types, orders = {}, {}
        for one in table.schema:
            if pa.types.is_dictionary(one.type):
                types[one.name] = one.type
                if one.type.ordered:
                    orders[one.name] = _values(table, one.name)
            elif pa.types.is_string(one.type) or pa.types.is_string_view(one.type):
                types[one.name] = one.type
        return cls(types, orders)

    def checked(self, table: pa.Table) -> pa.Table:
        """Return a piece of the table, or refuse one whose categories are in another order."""
        for name, order in self.orders.items():
            if name in table.column_names and _values(table, name) != order:
                raise BadTableError(
                    f"The categories of {name!r} are in another order in another piece of the "
                    "table. Give all pieces the same ordered categories."
                )
        return table

    def dress(self, rows: pa.Table) -> pa.Table:
        """Return rows with their columns of texts stored as the table has them."""
        for at, name in enumerate(rows.column_names):
            kind = self.types.get(name)
            if kind is None or rows.field(name).type == kind:
                continue
            column = rows.column(name).combine_chunks()
            if name in self.orders:
                values = pa.array(self.orders[name], column.type)
                codes = pa.compute.index_in(column, values)
                column = pa.DictionaryArray.from_arrays(codes, values, ordered=True)
            elif pa.types.is_dictionary(kind) and not pa.types.is_dictionary(column.type):
                column = column.dictionary_encode()
            rows = rows.set_column(at, name, column.cast(kind))
        return rows

    @staticmethod
    def like(rows: pa.Table, other: pa.Table) -> pa.Table:
        """Return rows with the very texts and categories that another table has, stored alike."""
        for at, name in enumerate(rows.column_names):
            kind = other.field(name).type if name in other.column_names else None
            if kind is None or rows.field(name).type == kind:
                continue
            column = rows.column(name).combine_chunks()
            if pa.types.is_dictionary(kind):
                values = pa.array(_values(other, name), column.type)
                codes = pa.compute.index_in(column, values)
                column = pa.DictionaryArray.from_arrays(codes, values, ordered=kind.ordered)
            elif not pa.types.is_large_string(column.type):
                continue  # what a plan releases in another type stays so
            rows = rows.set_column(at, name, column.cast(kind))
        return rows

    def plain(self, rows: pa.Table) -> pa.Table:
        """Return rows as they move: without categories, or texts that are stored otherwise."""
        for at, one in enumerate(rows.schema):
            column = rows.column(one.name)
            if pa.types.is_dictionary(one.type):
                column = column.cast(one.type.value_type)
            if pa.types.is_string(column.type):
                column = column.cast(pa.large_string())
            rows = rows.set_column(at, one.name, column)
        return rows.replace_schema_metadata(None)


def _values(table: pa.Table, name: str) -> list[Any]:
    column = table.column(name)
    if isinstance(column, pa.ChunkedArray):
        if not column.num_chunks:
            return []
        column = column.unify_dictionaries().chunk(0)
    values: list[Any] = column.dictionary.to_pylist()
    return values
