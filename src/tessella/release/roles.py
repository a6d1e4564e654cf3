"""What the roles of columns allow: which must not be released, and which only masked."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from .._types import Name
from .._wording import listed
from ..exceptions import BadOptionError, PlanError, RefusedError, UnsureKindWarning
from ..frame import Table, View
from ..guessing.values import UNMASKED, Values
from ..rules import Rules
from ..rules.expressions import computed_in
from ..schema import Column, Schema


def confirmed_schema(
    source: Table,
    schema: Schema | None,
    weights: Hashable | None,
    unit: Hashable | None,
    rules: Rules,
    confidential: Any = None,
) -> Schema:
    """Return the schema of a table that may still have columns that must not be released."""
    if schema is not None and not isinstance(schema, Schema):
        raise BadOptionError("schema", type(schema).__name__, "a tessella.Schema")
    known = as_numbers(Schema.guess(source), rules, source) if schema is None else schema
    known.check(source)
    if weights is not None and not isinstance(weights, Hashable):
        raise BadOptionError("weights", type(weights).__name__, "the name of a column")
    if weights is not None:
        known = known.override({weights: {"role": "weight"}})
    elif schema is None:
        guessed = [c.name for c in known if c.role == "weight"]
        known = known.override({name: {"role": "quasi-identifier"} for name in guessed})
    if unit is not None:
        if not isinstance(unit, Hashable):
            raise BadOptionError("unit", type(unit).__name__, "the name of a column")
        known = known.with_unit(unit)
    if confidential is not None:
        named = [confidential] if isinstance(confidential, str) else list(confidential)
        for name in named:
            if source.has(name) and known[name].role in ("identifier", "unit", "weight"):
                expected = f"columns that are values of records; {name!r} is {known[name].role!r}"
                raise BadOptionError("confidential", list(map(str, named)), expected)
        known = known.override({name: {"role": "confidential"} for name in named})
    _warn_unsure(known)
    return known


CODES = ("nominal", "ordinal")


def as_numbers(known: Schema, rules: Rules, table: Table) -> Schema:
    """Return the schema with whole numbers, guessed as codes or units, that a rule computes with.

    A number that names units is never added up or compared with an amount.
    """
    computed = {name for rule in rules for truth in rule.truths for name in computed_in(truth)}
    return known.override({
        c.name: {"kind": "integer", "role": "quasi-identifier", "why": "whole numbers that a rule "
                 "computes with: a quasi-identifier, to be masked", "guessed": c.guessed}
        for c in known
        if c.guessed and c.name in computed and not c.labels and table.facts(c.name).numeric
        and (c.role == "unit" or (c.role == "quasi-identifier" and c.kind in CODES))
    })  # fmt: skip


def _warn_unsure(known: Schema) -> None:
    """Warn of guessed kinds that somebody should look at, with the override that confirms them."""
    unsure = {c.name: c.kind for c in known if c.unsure and c.role == "quasi-identifier"}
    if unsure:
        kinds = listed([f"{name!r} {kind}" for name, kind in unsure.items()])
        change = {name: {"kind": kind} for name, kind in unsure.items()}
        warnings.warn(UnsureKindWarning(
            f"It is a guess that these columns are: {kinds}. Codes must not be averaged, and "
            "counts may be. Confirm or correct it: "
            f"schema=Schema.guess(table).override({change!r})."
        ), stacklevel=4)  # fmt: skip


def names_of_strata(source: Table, strata: Any) -> tuple[Name, ...]:
    """Return strata as names of columns."""
    if strata is None:
        return ()
    if isinstance(strata, str) or source.has(strata):
        return (strata,)
    if not isinstance(strata, list | tuple):
        raise BadOptionError("strata", type(strata).__name__, "names of columns")
    return tuple(strata)


def refuse_identifying(known: Schema) -> None:
    """Refuse columns that name a respondent."""
    if telling := known.names("identifier"):
        named = ", ".join(f"{name!r} ({known[name].role})" for name in telling)
        raise PlanError(
            f"These columns must not be released: {named}. Drop them, by a step 'drop' with "
            f"columns={list(map(str, telling))!r}, or give them another role if they name nobody."
        )


def find_unmasked(known: Schema, covered: Iterable[Name]) -> list[Name]:
    """List the columns that may identify a respondent and would be released as they are.

    These are quasi-identifiers, and weights that were only guessed to be some, that are not among
    the columns that steps masked or that are strata of groups of at least k. A coarser category is
    still known to an intruder: a column that was only recoded is listed.
    """
    taken = set(covered)
    return [
        column.name
        for column in known
        if column.name not in taken
        and (column.role == "quasi-identifier" or (column.guessed and column.role == "weight"))
    ]


def refuse_unmasked(names: Sequence[Name], ways_out: str) -> None:
    """Refuse the columns of `find_unmasked`; the ways out can be pasted where the caller is."""
    if names:
        raise RefusedError(
            "These columns may be known to an intruder, and no step masks them: "
            f"{', '.join(map(repr, names))}. {ways_out}"
        )


def tells_apart(view: View, name: Name) -> bool:
    """Return whether most records have a value of a column that no other record, or unit, has."""
    codes, units = view.codes(name), view.units
    _, value = np.unique(codes, return_inverse=True)
    if units is None:
        alone = np.bincount(value)[value] == 1
    else:  # the first unit with a value is the last one, too
        first, last = (np.full(value.max() + 1, unit) for unit in (units.max(), 0))
        np.minimum.at(first, value, units)
        np.maximum.at(last, value, units)
        alone = (first == last)[value]
    return bool((alone & (codes >= 0)).sum() > UNMASKED * view.n_rows)


def find_unique(view: View, known: Schema, covered: Iterable[Name]) -> list[Name]:
    """List the columns that tell most records apart and would be released as they are.

    Not among them are numbers that their holder called confidential or a weight, unless they look
    like numbers given to the records: a measured amount is unique by nature. Nor what a line of the
    schema keeps, `unique="kept"`.
    """
    taken = set(covered)
    return [
        column.name
        for column in known
        if column.role in ("untouched", "confidential", "weight")
        and column.unique == "refused"
        and column.name not in taken
        and (column.role == "untouched" or column.guessed or not _is_measured(view, column))
        and tells_apart(view, column.name)
    ]


def _is_measured(view: View, column: Column) -> bool:
    facts = view.table.facts(column.name)
    if not facts.numeric or column.kind not in ("continuous", "integer"):
        return False
    return not Values.of(view.table, facts, column.missing).why_numbered()


def refuse_unique(names: Sequence[Name], ways_out: str) -> None:
    """Refuse the columns of `find_unique`; the ways out can be pasted where the caller is."""
    if names:
        raise RefusedError(
            "Most records have a value of their own in these columns, which would be released as "
            f"they are: {', '.join(map(repr, names))}. {ways_out}"
        )


def in_python(view: View, known: Schema, masked: Sequence[Name], names: Sequence[Name]) -> str:
    """Return the two ways out for a caller in Python."""
    both = {*masked, *names}
    columns = [column.name for column in known if column.name in both]
    roles = {
        name: {"role": known[name].role if known[name].role != "quasi-identifier" else "untouched"}
        | ({"unique": "kept"} if tells_apart(view, name) else {})
        for name in names
    }
    schema = "Schema.guess(table)" if any(column.guessed for column in known) else "schema"
    return (
        f"Mask them: columns={columns!r} in a masking step, or one more step for them. Or declare "
        f"that they are released as they are: schema={schema}.override({roles!r})."
    )
