"""Which columns are masked, which split the records, which weigh them, which stay.

A column leaves a table unmasked only if someone said so: as strata, as weights, by a role, or by
naming in `columns` the ones that are masked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats, Name
from ..exceptions import BadOptionError, BadTableError
from ..frame import Strata, Table, View
from ..schema import Schema

__all__ = ["Selection", "named_or_given", "select", "select_categories"]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is done with each column."""

    masked: tuple[Name, ...]
    blocks: tuple[tuple[Name, ...], ...]
    untouched: tuple[Name, ...]
    strata: Strata
    weights: Floats

    def places(self, block: tuple[Name, ...]) -> list[int]:
        """Return where the columns of a block are among the masked columns."""
        place = {name: j for j, name in enumerate(self.masked)}
        return [place[name] for name in block]


def select(
    table: Any, *, columns: Any, blocks: Any, strata: Any, weights: Any, schema: Schema | None,
    who: str = "Microaggregation",
) -> Selection:  # fmt: skip
    """Choose the columns of numbers to mask; the parameters are those of `Microaggregation`."""
    view, layers, weight, taken = _split_and_weigh(table, strata, weights, schema)
    if columns is None:
        masked = _all_numbers(view.table, taken, schema, who)
    else:
        masked = _named_columns(view.table, columns, taken, schema)
    return _selection(view, masked, _find_blocks(view.table, masked, blocks), layers, weight)


def select_categories(
    table: Any, *, columns: Any, strata: Any, weights: Any, schema: Schema | None, who: str
) -> Selection:
    """Choose the columns of categories to mask; whole numbers must be named."""
    view, layers, weight, taken = _split_and_weigh(table, strata, weights, schema)
    source, named = view.table, columns is not None
    if named:
        masked = _named_columns(source, columns, taken, None)
    else:
        masked = tuple(
            name
            for name in source.columns
            if name not in taken and (schema is None or schema[name].role == "quasi-identifier")
        )
    fit = {"text", "category", "boolean"} | ({"integer"} if named or schema is not None else set())
    others = [
        name
        for name in masked
        if source.facts(name).family not in fit
        or (schema is not None and schema[name].kind not in ("nominal", "ordinal"))
    ]
    if others:
        listed = ", ".join(f"{name!r} ({_described(source, name, schema)})" for name in others[:8])
        raise BadTableError(
            f"{who} masks categories, and these columns hold something else: {listed}. Nothing is "
            "released unmasked without your word: name the columns to mask in columns=[...], and "
            "the others are released as they are; whole numbers that are codes may be named, too."
        )
    if not masked:
        raise BadTableError("The table has no column of categories to mask.")
    return _selection(view, masked, (masked,), layers, weight)


def named_or_given(masker: Any, table: Table, **given: Any) -> dict[str, Any]:
    """Return weights and strata: what was given for each record, or the columns a masker names."""
    out = {}
    for who, values in given.items():
        own = getattr(masker, who)
        if values is None and own is not None:
            several = list(own) if who == "strata" and isinstance(own, list | tuple) else [own]
            for name in several:
                if not isinstance(name, Hashable):
                    raise BadOptionError(
                        who, type(own).__name__, f"names of columns; one value for each record is "
                        f"given to fit_transform(table, {who}=...)"
                    )  # fmt: skip
                table.place(name, who=who)
            _refuse_repeated(several, who)
        out[who] = own if values is None else values
    return out


def _split_and_weigh(
    table: Any, strata: Any, weights: Any, schema: Schema | None
) -> tuple[View, Strata, Floats, dict[Name, str]]:
    """Read strata and weights; also which columns they are."""
    view = View.of(table, schema)
    if schema is not None:
        weights = _apply_roles(view.table, schema, weights)
    layers = view.strata(strata)
    weight = None if weights is None else view.weights(weights)
    taken = dict.fromkeys(layers.columns, "strata")
    if weights is not None and view.is_name(weights):
        taken[weights] = "weights"
    return view, layers, np.ones(view.n_rows) if weight is None else weight, taken


def _selection(
    view: View, masked: tuple[Name, ...], blocks: tuple[tuple[Name, ...], ...], strata: Strata,
    weights: Floats,
) -> Selection:  # fmt: skip
    hidden = set(masked)
    return Selection(
        masked=masked,
        blocks=blocks,
        untouched=tuple(name for name in view.columns if name not in hidden),
        strata=strata,
        weights=weights,
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


def _is_measured(table: Table, name: Name, schema: Schema | None) -> bool:
    numeric = table.facts(name).numeric
    return numeric and (schema is None or schema[name].kind in ("continuous", "integer"))


def _described(table: Table, name: Name, schema: Schema | None) -> str:
    facts = table.facts(name)
    return schema[name].kind if facts.numeric and schema is not None else facts.family


def _refuse_repeated(names: Sequence[Name], who: str) -> None:
    if twice := [repr(name) for name, count in Counter(names).items() if count > 1]:
        raise BadTableError(f"{who} names {', '.join(twice)} more than once.")
