"""Which columns are masked, which split the records, which weigh them, which stay.

A column leaves a table unmasked only if someone said so: as strata, as weights, by a role, or by
naming in `columns` the ones that are masked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name
from ..exceptions import BadOptionError, BadTableError
from ..frame import Table, number_labels
from ..schema import Schema
from .alike import number_alike

__all__ = ["LeftOut", "Selection", "Strata", "select", "select_categories"]


class LeftOut:
    """Stands in a saved masker for an array that held something of every record."""

    def __repr__(self) -> str:
        return "<left out when saved>"


@dataclass(frozen=True, kw_only=True)
class Strata:
    """The stratum of each record, and what the strata are called."""

    place: Integers
    names: list[str]
    columns: tuple[Name, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is done with each column; `by_record` names the arguments that came as arrays."""

    masked: tuple[Name, ...]
    blocks: tuple[tuple[Name, ...], ...]
    untouched: tuple[Name, ...]
    strata: Strata
    weights: Floats
    by_record: tuple[str, ...]

    def places(self, block: tuple[Name, ...]) -> list[int]:
        """Return where the columns of a block are among the masked columns."""
        place = {name: j for j, name in enumerate(self.masked)}
        return [place[name] for name in block]


def select(
    table: Table, *, columns: Any, blocks: Any, strata: Any, weights: Any, schema: Schema | None,
    who: str = "Microaggregation",
) -> Selection:  # fmt: skip
    """Sort out the wishes of a caller; the parameters are those of `Microaggregation`."""
    if schema is not None:
        weights = _apply_roles(table, schema, weights)
    layers = _find_strata(table, strata)
    weigher, numbers = _find_weights(table, weights)
    taken = {**dict.fromkeys(layers.columns, "strata"), **dict.fromkeys(weigher, "weights")}
    if columns is None:
        masked = _all_numbers(table, taken, schema, who)
    else:
        masked = _named_columns(table, columns, taken, schema)
    hidden = set(masked)
    arrays = {"strata": strata is not None and not layers.columns,
              "weights": weights is not None and not weigher}  # fmt: skip
    return Selection(
        masked=masked,
        blocks=_find_blocks(table, masked, blocks),
        untouched=tuple(name for name in table.columns if name not in hidden),
        strata=layers,
        weights=numbers,
        by_record=tuple(name for name, given in arrays.items() if given),
    )


def select_categories(
    table: Table, *, columns: Any, strata: Any, weights: Any, schema: Schema | None, who: str
) -> Selection:
    """Sort out the wishes of a caller who masks categories; whole numbers must be named."""
    if schema is not None:
        weights = _apply_roles(table, schema, weights)
    layers = _find_strata(table, strata)
    weigher, numbers = _find_weights(table, weights)
    taken = {**dict.fromkeys(layers.columns, "strata"), **dict.fromkeys(weigher, "weights")}
    named = columns is not None
    if named:
        masked = _named_columns(table, columns, taken, None)
    else:
        masked = tuple(
            name
            for name in table.columns
            if name not in taken and (schema is None or schema[name].role == "quasi-identifier")
        )
    fit = {"text", "category", "boolean"} | ({"integer"} if named or schema is not None else set())
    others = [
        name
        for name in masked
        if table.facts(name).family not in fit
        or (schema is not None and schema[name].kind not in ("nominal", "ordinal"))
    ]
    if others:
        listed = ", ".join(f"{name!r} ({_described(table, name, schema)})" for name in others[:8])
        raise BadTableError(
            f"{who} masks categories, and these columns hold something else: {listed}. Nothing is "
            "released unmasked without your word: name the columns to mask in columns=[...], and "
            "the others are released as they are; whole numbers that are codes may be named, too."
        )
    if not masked:
        raise BadTableError("The table has no column of categories to mask.")
    arrays = {"strata": strata is not None and not layers.columns,
              "weights": weights is not None and not weigher}  # fmt: skip
    hidden = set(masked)
    return Selection(
        masked=masked,
        blocks=(masked,),
        untouched=tuple(name for name in table.columns if name not in hidden),
        strata=layers,
        weights=numbers,
        by_record=tuple(name for name, given in arrays.items() if given),
    )


def _apply_roles(table: Table, schema: Schema, weights: Any) -> Any:
    """Refuse what must not be released; return the weights, from the schema if none are given."""
    if not isinstance(schema, Schema):
        raise BadTableError(
            f"schema is a {type(schema).__name__}; give a tessella.Schema, for example "
            "tessella.Schema.guess(table)."
        )
    schema.check(table)
    if telling := schema.names("identifier", "household"):
        named = ", ".join(f"{name!r} ({schema[name].role})" for name in telling)
        raise BadTableError(
            f"The schema says that these columns must not be released: {named}. Drop them from "
            "table and schema, or override the role if it is wrong."
        )
    weighing = schema.names("weight")
    for name in weighing:
        if schema[name].guessed:
            raise BadTableError(
                f"Column {name!r} is only guessed to be a sampling weight, and would be released "
                f"as it is. Confirm it with schema.override({{{name!r}: {{'role': 'weight'}}}}), "
                "or give it the role 'quasi-identifier' to have it masked."
            )
    if weights is None and len(weighing) > 1:
        named = ", ".join(map(repr, weighing))
        raise BadTableError(f"The schema names several weights: {named}. Choose with weights=...")
    return weighing[0] if weights is None and weighing else weights


def _find_strata(table: Table, strata: Any) -> Strata:
    if strata is None:
        return Strata(place=np.zeros(table.n_rows, dtype=np.int64), names=["all records"])
    _refuse_left_out(strata, "strata")
    columns = _as_names(table, strata)
    if columns is None:
        place, names = number_labels(table.per_record(strata, who="strata"))
        _refuse_missing(place, "strata")
        return Strata(place=place, names=names)
    for name in columns:
        table.place(name, who="strata")
    _refuse_repeated(columns, "strata")
    layers = [table.labels(name) for name in columns]
    for name, (place, _) in zip(columns, layers):
        _refuse_missing(place, f"The strata column {name!r}")
    place = number_alike([place for place, _ in layers])
    _, first = np.unique(place, return_index=True)
    names = [
        ", ".join(f"{c}={names[own[i]]}" for c, (own, names) in zip(columns, layers)) for i in first
    ]
    return Strata(place=place, names=names, columns=columns)


def _find_weights(table: Table, weights: Any) -> tuple[tuple[Name, ...], Floats]:
    if weights is None:
        return (), np.ones(table.n_rows)
    _refuse_left_out(weights, "weights")
    columns = (weights,) if isinstance(weights, str) or table.has(weights) else None
    if columns is None:
        given = table.per_record(weights, who="weights")
        if given.dtype.kind not in "fiu":
            raise BadTableError(f"weights has dtype {given.dtype}; numbers are needed.")
        numbers = given.astype(np.float64)
    else:
        numbers = table.numeric(columns, who="weights").values[:, 0]
    bad = int((~(np.isfinite(numbers) & (numbers > 0))).sum())
    if bad:
        raise BadTableError(
            f"weights must be positive numbers; {bad} of {table.n_rows} are zero, negative, "
            "missing or infinite. A record without weight still counts towards k: give it a small "
            "weight or leave it out of the table."
        )
    return columns or (), np.ascontiguousarray(numbers)


def _all_numbers(
    table: Table, taken: dict[Name, str], schema: Schema | None, who: str
) -> tuple[Name, ...]:
    """Choose the columns to mask when the caller names none."""
    wanted = [
        name
        for name in table.columns
        if name not in taken and (schema is None or schema[name].role == "quasi-identifier")
    ]
    masked = tuple(name for name in wanted if _is_measured(table, name, schema))
    hidden = set(masked)
    if others := [name for name in wanted if name not in hidden]:
        named = ", ".join(f"{name!r} ({_described(table, name, schema)})" for name in others[:8])
        more = f" and {len(others) - 8} more" if len(others) > 8 else ""
        raise BadTableError(
            f"{who} masks numbers, and these columns hold something else: {named}{more}."
            " Nothing is released unmasked without your word: drop them; or give "
            f"strata={others[:1]!r} to keep a category exact with k records in each; or name the "
            "columns to mask in columns=[...], and the others are released as they are."
        )
    if not masked:
        raise BadTableError(
            "The table has no column of numbers to mask. Give a table with at least one."
        )
    return masked


def _named_columns(
    table: Table, columns: Any, taken: dict[Name, str], schema: Schema | None
) -> tuple[Name, ...]:
    if isinstance(columns, str) or table.has(columns) or not isinstance(columns, Iterable):
        columns = (columns,)
    names = tuple(columns)
    for name in names:
        table.place(name, who="columns")
        if name in taken:
            raise BadTableError(
                f"Column {name!r} is in columns and in {taken[name]}. It is masked or it is "
                "released as it is: leave it out of one of the two."
            )
        if schema is not None and schema[name].kind in ("ordinal", "nominal"):
            raise BadTableError(
                f"Column {name!r} is {schema[name].kind} in the schema: a mean of categories means "
                "nothing. Leave it out of columns, or override its kind."
            )
    if not names:
        raise BadTableError("columns is empty. Name at least one column to mask.")
    _refuse_repeated(names, "columns")
    return names


def _find_blocks(
    table: Table, masked: tuple[Name, ...], blocks: Any
) -> tuple[tuple[Name, ...], ...]:
    if blocks is None:
        return (masked,)
    if isinstance(blocks, int | np.integer) and not isinstance(blocks, bool):
        if blocks < 1:
            raise BadOptionError("blocks", blocks, "the number of columns in a block, 1 or more")
        return tuple(masked[i : i + blocks] for i in range(0, len(masked), blocks))
    if not isinstance(blocks, list | tuple) or not all(isinstance(b, list | tuple) for b in blocks):
        raise BadOptionError(
            "blocks", blocks, "a number of columns, or a list of lists of column names, for "
            "example [['income', 'tax'], ['age']]"
        )  # fmt: skip
    out = tuple(tuple(block) for block in blocks)
    flat, hidden = tuple(name for block in out for name in block), set(masked)
    for name in flat:
        table.place(name, who="blocks")
        if name not in hidden:
            raise BadTableError(f"blocks names {name!r}, which is not among the masked columns.")
    _refuse_repeated(flat, "blocks")
    if not all(out):
        raise BadTableError("blocks has an empty block. Leave it out.")
    blocked = set(flat)
    if left := [name for name in masked if name not in blocked]:
        raise BadTableError(
            f"No block has the columns {', '.join(map(repr, left))}, which would be released "
            "unmasked. Add them to a block, or name the columns to mask in columns=[...]."
        )
    return out


def _as_names(table: Table, given: Any) -> tuple[Name, ...] | None:
    """Return the columns that a caller names, or None for one value for each record."""
    if isinstance(given, str) or table.has(given):
        return (given,)
    if not isinstance(given, list | tuple):
        return None
    known = all(table.has(name) for name in given) and len(set(given)) == len(given)
    return tuple(given) if known or len(given) != table.n_rows else None


def _is_measured(table: Table, name: Name, schema: Schema | None) -> bool:
    numeric = table.facts(name).numeric
    return numeric and (schema is None or schema[name].kind in ("continuous", "integer"))


def _described(table: Table, name: Name, schema: Schema | None) -> str:
    facts = table.facts(name)
    return schema[name].kind if facts.numeric and schema is not None else facts.family


def _refuse_repeated(names: Sequence[Name], who: str) -> None:
    if twice := [repr(name) for name, count in Counter(names).items() if count > 1]:
        raise BadTableError(f"{who} names {', '.join(twice)} more than once.")


def _refuse_missing(place: Integers, who: str) -> None:
    if missing := int((place < 0).sum()):
        raise BadTableError(
            f"{who} has {missing} missing values. Give every record a stratum; a name such as "
            "'unknown' will do."
        )


def _refuse_left_out(given: Any, who: str) -> None:
    if isinstance(given, LeftOut):
        raise BadTableError(
            f"This masker was saved, and a saved masker keeps nothing of the records: its {who} "
            f"were left out. Give them again: set_params({who}=...)."
        )
