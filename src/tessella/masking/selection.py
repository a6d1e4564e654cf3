"""Which columns are masked, split records, weigh them or stay, and on which scale they are near.

A column leaves a table unmasked only on request: as strata, as weights, by a role, or by naming in
`columns` the ones that are masked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._parameters import Number, Whole
from .._types import Floats, Integers, Name
from ..exceptions import BadOptionError, BadTableError, UnknownColumnError, UnknownOptionError
from ..frame import Strata, Table, View
from ..schema import Schema

SCALES = ("zscore", "range", None)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Centre, standard deviation and unit of each column, each of shape (d,).

    The deviation is 0 in a column of one value; its unit is then 1, so that it carries no distance.
    """

    centre: Floats
    deviation: Floats
    unit: Floats

    @classmethod
    def of(
        cls, values: Floats, weights: Floats | None, wish: Any, columns: Sequence[Name]
    ) -> Scale:
        """Measure columns, shape (n, d), with weights; missing numbers (NaN) are left out.

        The unit, `wish`, is a standard deviation ("zscore"), the "range", 1 (None), or a mapping
        from each column to its own.
        """
        measured = [measure_column(values[:, j], weights) for j in range(values.shape[1])]
        return cls.of_measures(measured, wish, columns)

    @classmethod
    def of_measures(cls, measured: Sequence[Floats], wish: Any, columns: Sequence[Name]) -> Scale:
        """Make a scale of what `measure_column` found, or `merge_columns` made of it."""
        given = _given_units(wish, columns)
        _, low, high, centre, deviation = np.array(measured).reshape(-1, 5).T
        spread = high - low
        units = {"zscore": deviation, "range": spread, None: np.ones(len(columns))}
        unit = units[wish] if given is None else given
        return cls(
            centre=centre, deviation=deviation, unit=np.where((deviation > 0) & (unit > 0), unit, 1)
        )

    def apply(self, values: Floats) -> Floats:
        """Return the columns in units from the centre, 0 where missing; C order."""
        scaled = np.subtract(values, self.centre, order="C")
        scaled /= self.unit  # in place: tables are large
        scaled[np.isnan(scaled)] = 0.0
        return scaled

    def part(self, places: Sequence[int]) -> Scale:
        """Return the scale of some of the columns."""
        chosen = list(places)
        return Scale(
            centre=self.centre[chosen], deviation=self.deviation[chosen], unit=self.unit[chosen]
        )


def measure_column(column: Floats, weights: Floats | None) -> Floats:
    """Return weight, least and largest number, weighted mean and standard deviation."""
    seen = ~np.isnan(column)
    if not seen.any():
        return np.zeros(5)
    numbers = column if seen.all() else column[seen]
    total = float(len(numbers) if weights is None else weights[seen].sum())
    weight = None if weights is None else weights[seen] / weights[seen].max()
    low, high = float(numbers.min()), float(numbers.max())
    spread = high - low
    if spread == 0:
        return np.array([total, low, high, numbers[0], 0.0])
    # In units of the range, from the first number: an offset costs no digits, no square overflows.
    share = (numbers - numbers[0]) / spread
    middle = np.average(share, weights=weight)
    deviation = spread * float(np.sqrt(np.average((share - middle) ** 2, weights=weight)))
    return np.array([total, low, high, numbers[0] + spread * middle, deviation])


def merge_columns(measured: Sequence[Floats]) -> Floats:
    """Return what `measure_column` would find in all records, from what it found in pieces."""
    there = np.array([own for own in measured if own[0] > 0])
    if len(there) < 2:
        return there[0] if len(there) else np.zeros(5)
    weight, low, high, mean, deviation = there.T
    least, most = float(low.min()), float(high.max())
    spread = (most - least) or 1.0
    share = (mean - least) / spread
    middle = np.average(share, weights=weight)
    square = np.average((deviation / spread) ** 2 + (share - middle) ** 2, weights=weight)
    centre = least + spread * middle
    return np.array([weight.sum(), least, most, centre, spread * np.sqrt(square)])


def by_column(given: Any, columns: Sequence[Name], *, who: str) -> dict[Name, Any]:
    """Return what a parameter gives for columns by name, or for all alike."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(columns, given)
    for name in given:
        if name not in columns:
            raise UnknownColumnError(name, columns, who=who)
    return dict(given)


def _given_units(wish: Any, columns: Sequence[Name]) -> Floats | None:
    if not isinstance(wish, Mapping):
        if wish is not None and wish not in SCALES:
            raise UnknownOptionError("scale", wish, [*SCALES, {"a column": "its unit"}])
        return None
    given = by_column(wish, columns, who="scale")
    units = [given.get(name) for name in columns]
    for name, unit in zip(columns, units):
        if not Number(above=0).accepts(unit):
            raise BadOptionError(
                f"scale[{name!r}]",
                unit,
                "for every masked column the positive difference that counts as one",
            )
    return np.array(units, dtype=np.float64)


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
    table: Any, *, columns: Any, strata: Any, weights: Any, schema: Schema | None,
    blocks: Any = None, who: str = "Microaggregation", categories: bool | None = False,
) -> Selection:  # fmt: skip
    """Choose the columns of numbers, or of categories, to mask; with None, of both.

    The parameters are those of `Microaggregation`. Categories that are whole numbers must be named,
    or have a schema; with None the caller checks what columns hold.
    """
    view = View(table, schema)
    if schema is not None:
        weights = _apply_roles(view.table, schema, weights)
    layers = view.strata(strata)
    weight = None if weights is None else view.weights(weights)
    taken = dict.fromkeys(layers.columns, "strata")
    if weights is not None and view.is_name(weights):
        taken[weights] = "weights"
    if columns is None:
        masked = tuple(
            name
            for name in view.columns
            if name not in taken and (schema is None or schema[name].role == "quasi-identifier")
        )
    else:
        masked = _named_columns(view.table, columns, taken, schema if categories is False else None)
    if categories:
        _refuse_other_than_categories(view, masked, who, named=columns is not None)
    elif columns is None and categories is False:
        _refuse_other_than_numbers(view, masked, who)
    if not masked:
        raise BadTableError(
            "The table has no column of categories to mask."
            if categories
            else "The table has no column of numbers to mask. Give a table with at least one."
        )
    hidden = set(masked)
    return Selection(
        masked=masked,
        blocks=_find_blocks(view.table, masked, blocks),
        untouched=tuple(name for name in view.columns if name not in hidden),
        strata=layers,
        weights=np.ones(view.n_rows) if weight is None else weight,
    )


def named_or_given(
    masker: Any, table: Table, *, weights: Any = None, strata: Any = None
) -> dict[str, Any]:
    """Return weights and strata: what was given for each record, or the columns a masker names."""
    given = {"weights": weights, "strata": strata}
    for who in (name for name, values in given.items() if values is None):
        own = given[who] = getattr(masker, who)
        several = list(own) if who == "strata" and isinstance(own, list | tuple) else [own]
        for name in several if own is not None else ():
            if not isinstance(name, Hashable):
                raise BadOptionError(
                    who, type(own).__name__, f"names of columns; one value for each record is "
                    f"given to fit_transform(table, {who}=...)"
                )  # fmt: skip
            table.place(name, who=who)
        _refuse_repeated(several, who)
    return given


def schema_of_numbers(view: View, masked: Sequence[Name]) -> Schema:
    """Guess a schema in which what a masker masks are numbers, whole or not: it was chosen so."""
    guess = Schema.guess(view.table)
    numbers = [name for name in masked if view.table.facts(name).numeric]
    real = {name for name in numbers if guess[name].kind == "continuous"}
    kinds = {name: "continuous" if name in real else "integer" for name in numbers}
    return guess.override({name: {"kind": k, "missing": ()} for name, k in kinds.items()})


def _apply_roles(table: Table, schema: Schema, weights: Any) -> Any:
    """Refuse what must not be released; return the weights, from the schema if none are given."""
    if not isinstance(schema, Schema):
        raise BadTableError(
            f"schema is a {type(schema).__name__}; give a tessella.Schema, for example "
            "tessella.Schema.guess(table)."
        )
    schema.check(table)
    if telling := schema.names("identifier"):
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


def _refuse_other_than_numbers(view: View, names: tuple[Name, ...], who: str) -> None:
    if others := [name for name in names if not view.is_number(name)]:
        more = f" and {len(others) - 8} more" if len(others) > 8 else ""
        raise BadTableError(
            f"{who} masks numbers, and these columns hold something else: "
            f"{_described(view, others)}{more}."
            " Nothing is released unmasked without your word: drop them; or give "
            f"strata={others[:1]!r} to keep a category exact with k records in each; or name the "
            "columns to mask in columns=[...], and the others are released as they are."
        )


def _refuse_other_than_categories(
    view: View, names: tuple[Name, ...], who: str, *, named: bool
) -> None:
    with_schema = view.schema is not None
    families = {"text", "category", "boolean", *(["integer"] if named or with_schema else [])}
    others = [
        name
        for name in names
        if view.table.facts(name).family not in families
        or (with_schema and view.kind(name) not in ("nominal", "ordinal"))
    ]
    if others:
        raise BadTableError(
            f"{who} masks categories, and these columns hold something else: "
            f"{_described(view, others)}. Nothing is "
            "released unmasked without your word: name the columns to mask in columns=[...], and "
            "the others are released as they are; whole numbers that are codes may be named, too."
        )


def _described(view: View, names: Sequence[Name]) -> str:
    """Name up to eight columns, each with what it holds."""
    facts = {name: view.table.facts(name) for name in names[:8]}
    return ", ".join(
        f"{name!r} ({view.kind(name) if own.numeric and view.schema is not None else own.family})"
        for name, own in facts.items()
    )


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
    if Whole().accepts(blocks):
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


def _refuse_repeated(names: Sequence[Name], who: str) -> None:
    if twice := [repr(name) for name, count in Counter(names).items() if count > 1]:
        raise BadTableError(f"{who} names {', '.join(twice)} more than once.")


def standardised_squares(
    original: View, masked: View, names: Sequence[Name], weights: Floats | None
) -> dict[Name, Floats]:
    """Return squared differences in standard deviations, of each masked column that varies.

    Their weighted mean is SSE / SST. Where a cell is missing, the difference is that of the others
    on average, so that it does not count; where it was suppressed, that from the mean: all of what
    it told is lost.
    """
    squares: dict[Name, Floats] = {}
    weight = np.ones(original.n_rows) if weights is None else weights
    for name in names:
        if not original.table.facts(name).numeric or original.kind(name) == "nominal":
            continue
        seen = ~original.missing(name)
        if not seen.any():
            continue
        x, w = original.numbers(name)[seen], weight[seen]
        r = masked.numbers(name)[seen]
        scale = Scale.of(x[:, None], w, "zscore", [name])
        r, spread = np.where(np.isnan(r), scale.centre[0], r), scale.deviation[0]
        if spread > 0:
            own = ((x - r) / spread) ** 2
            squares[name] = np.full(original.n_rows, float(np.average(own, weights=w)))
            squares[name][seen] = own
    return squares


def repair_loss(loss: float, away: Floats, wrong: Integers, weight: Floats | None) -> float:
    """Return how much of a loss comes from records that broke a rule moving further than others."""
    right = np.ones(len(away), dtype=bool)
    right[wrong] = False
    if not len(wrong) or not right.any():
        return 0.0
    others = np.average(away[right], weights=None if weight is None else weight[right])
    return loss - 100 * float(others)


MANY = 64  # categories


def corners(codes: Integers, q: int | None = None) -> Floats:
    """Put categories at places that are one unit apart, two at places that are two units apart.

    Up to MANY categories stand at the corners of a regular simplex, q of them in q - 1 dimensions
    (the rows of a Helmert matrix, which is orthonormal, span what is orthogonal to (1, ..., 1)).
    More are put at random corners of a cube of MANY dimensions, two of which differ in about half
    of them, and are nearly one unit apart. One unit for two categories let 2.5 % of sexes of eusilc
    flip at k = 6; two units leave 0.5 %, and cost 4 % more loss in its numbers.

    Where `q` is given, the codes are those from 0 to q - 1, of which some may not occur.
    """
    place = codes
    if q is None:
        seen, place = np.unique(codes, return_inverse=True)
        q = len(seen)
    if q <= MANY:
        steps = np.arange(1, q)
        basis = np.triu(np.ones((q, q - 1)))
        basis[steps, steps - 1] = -steps
        apart = 2.0 if q == 2 else 1.0
        return np.asarray((apart * basis / np.sqrt(2 * steps * (steps + 1)))[place])
    signs = np.random.default_rng(0).integers(0, 2, (q, MANY))
    return np.asarray((2 * signs[place] - 1) / np.sqrt(2 * MANY))
