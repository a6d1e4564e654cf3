"""What the roles of columns allow: which must not be released, and which only masked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from .._types import Name
from ..exceptions import BadOptionError, PlanError, RefusedError
from ..frame import Table
from ..schema import Schema


def confirmed_schema(
    source: Table, schema: Schema | None, weights: Hashable | None, unit: Hashable | None
) -> Schema:
    """Return the schema of a table that may still have columns that must not be released."""
    if schema is not None and not isinstance(schema, Schema):
        raise BadOptionError("schema", type(schema).__name__, "a tessella.Schema")
    known = Schema.guess(source) if schema is None else schema
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
    return known


def refuse_identifying(known: Schema) -> None:
    """Refuse columns that name a respondent."""
    if telling := known.names("identifier"):
        named = ", ".join(f"{name!r} ({known[name].role})" for name in telling)
        raise PlanError(
            f"These columns must not be released: {named}. Drop them from the table, or give a "
            "schema that says otherwise."
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


def in_python(known: Schema, masked: Sequence[Name], names: Sequence[Name]) -> str:
    """Return the two ways out for a caller in Python."""
    both = {*masked, *names}
    columns = [column.name for column in known if column.name in both]
    roles = {name: {"role": "untouched"} for name in names}
    schema = "Schema.guess(table)" if any(column.guessed for column in known) else "schema"
    return (
        f"Mask them: columns={columns!r} in a masking step, or one more step for them. Or declare "
        f"that they are released as they are: schema={schema}.override({roles!r})."
    )
