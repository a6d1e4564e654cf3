"""Kinds and roles: what names, labels and values say together, on the careful side.

A guess never calls a column confidential or untouched. What is called an identifier is dropped, so
a measured number must not be: income is unique, too. What is called a number is averaged, so a code
must not be. Where the evidence is weak the guess is *unsure*, and the draft of a plan says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from .._types import Integers, Name
from .._wording import listed
from ..frame import Table
from .evidence import Described, Evidence
from .relations import Codes, Relations, is_constant, relate
from .values import ENOUGH, FEW, UNMASKED
from .words import (
    CONTACT,
    LATITUDE,
    LONGITUDE,
    SAMPLING,
    TIMES,
    WEIGHT_NAMES,
    YEARS,
    Words,
    says_missing,
)

Kind = Literal["continuous", "integer", "ordinal", "nominal"]
Role = Literal["identifier", "quasi-identifier", "confidential", "weight", "unit", "untouched"]

DROP = "must not be released; drop it"
UNIT = "is the unit that k counts, and is not released"


@dataclass(frozen=True, kw_only=True)
class Guess:
    """What a column may be, and why; `unsure` if somebody who knows the data should look."""

    kind: Kind
    role: Role = "quasi-identifier"
    missing: tuple[Any, ...] = ()
    labels: Mapping[Any, str] = field(default_factory=dict)
    why: str
    unsure: bool = False


def guess_columns(
    table: Table, described: Mapping[Any, Described] | None = None
) -> dict[Name, Guess]:
    """Guess what every column is; `described` has what a file says of some."""
    seen = {name: Evidence.of(table, name, (described or {}).get(name)) for name in table.columns}
    found = {name: _guess(one) for name, one in seen.items()}
    compared = _Compared(table, seen)
    if not any(guess.role == "unit" for guess in found.values()):
        found |= _find_unit(seen, found, compared)
    units = [name for name, guess in found.items() if guess.role == "unit"]
    if len(units) > 1:  # households before what is in them; else the smallest units
        homes = [name for name in units if seen[name].named("names_household")]
        first = homes[0] if homes else max(units, key=lambda name: seen[name].values.distinct)
        for name in units:
            if name != first:
                why = f"names units beside those of {str(first)!r}: {DROP}"
                found[name] = replace(found[name], role="identifier", why=why)
        units = [first]
    return found | _find_codes(seen, found, compared, units[0] if units else None)


class _Compared:
    """Columns whose values are compared with one another; each is read whole at most once."""

    def __init__(self, table: Table, seen: Mapping[Name, Evidence]) -> None:
        self._table, self._seen = table, seen
        self._names = [name for name, one in seen.items() if one.comparable]
        self._codes: dict[Name, Codes] = {}

    def relate(self, name: Name, unit: Name | None = None) -> Relations:
        """Relate a column to others; what is a unit's is compared once for each unit."""
        rows = np.arange(self._table.n_rows)
        if unit is not None and is_constant(name, unit, self._read, rows):
            rows = np.unique(self._read(unit, rows).codes, return_index=True)[1]
        return relate(name, self._names, self._read, rows)

    def _read(self, name: Name, rows: Integers) -> Codes:
        if name not in self._codes:
            if 2 * len(rows) < self._table.n_rows:
                return self._seen[name].codes(self._table, rows)
            own = self._seen[name].codes(self._table, np.arange(self._table.n_rows))
            narrow = own.codes.astype(np.min_scalar_type(-1 - self._seen[name].values.distinct))
            self._codes[name] = Codes(narrow, own.ordered)
        own = self._codes[name]
        return Codes(own.codes[rows].astype(np.int64), own.ordered)


def _find_unit(
    seen: Mapping[Name, Evidence], found: Mapping[Name, Guess], compared: _Compared
) -> dict[Name, Guess]:
    """Find the unit by its relations to other columns, where no name tells it."""
    best: tuple[tuple[bool, int, int], dict[Name, Guess]] = ((False, 0, 0), {})
    for name, one in seen.items():
        guess, values = found[name], one.values
        given_out = one.in_words or values.whole
        timed = one.name.any(TIMES) or values.are_years
        if not (given_out and one.complete and one.repeats and one.many) or one.few or timed:
            continue
        identifies = guess.role == "identifier" and not one.name.is_part_of_name
        if guess.role != "quasi-identifier" and not identifies:
            continue
        related = compared.relate(name)
        described = len(related.describing)
        mostly = described > 1 and 3 * described > len(seen) and not one.name.names_place
        if not (related.counting or mostly or (identifies and described)):
            continue
        rank = identifies, described, values.distinct
        if rank > best[0]:
            how = [
                f"{listed(list(map(repr, map(str, names[:3]))))} {does}"
                for names, does in (
                    (related.counting, "never the same twice"),
                    (related.describing, "always the same"),
                )
                if names
            ]
            why = f"repeats, with {' and '.join(how)} within a value: {UNIT}"
            if not identifies:
                why += "; if each record is a respondent of its own, the role is quasi-identifier"
            best = rank, {name: replace(guess, role="unit", why=why, unsure=False)}
    return best[1]


def _find_codes(
    seen: Mapping[Name, Evidence], found: Mapping[Name, Guess], compared: _Compared,
    unit: Name | None,
) -> dict[Name, Guess]:  # fmt: skip
    """Find whole numbers that other columns describe: numbers of schools or places.

    What is the same in all records of a unit is compared once for each: an amount of a household
    is described by all that is the household's, too.
    """
    changed = {}
    for name, one in seen.items():
        guess, values = found[name], one.values
        whole = guess.kind == "integer" and guess.role == "quasi-identifier" and one.repeats
        if not whole or values.distinct <= FEW or one.name.any(TIMES) or values.are_years:
            continue
        if related := compared.relate(name, unit).describing:
            by = listed(list(map(repr, map(str, related[:3]))))
            why = (
                f"whole numbers, each with its own value of {by}, taken as codes: a "
                "quasi-identifier, to be masked; if they are amounts to be averaged, the kind is "
                "integer"
            )
            changed[name] = replace(guess, kind="nominal", missing=(), why=why, unsure=True)
    return changed


def main_weight(names: Iterable[Name]) -> Name:
    """Return the weight that weighs the records: persons' before households', else the first."""

    def rank(name: Name) -> tuple[int, bool]:
        words = Words.of(name)
        place = WEIGHT_NAMES.index(words.flat) if words.flat in WEIGHT_NAMES else len(WEIGHT_NAMES)
        return place, bool({"household", "hh"} & set(words.words))

    return min(names, key=rank)


def _guess(one: Evidence) -> Guess:
    guess = _guess_kind(one)
    if one.described is not None:
        codes = dict.fromkeys([*one.described.missing, *guess.missing])
        guess = replace(guess, missing=tuple(codes), labels=one.described.labels)
    role, why, unsure = _guess_role(one)
    if role != "quasi-identifier":
        return replace(guess, role=role, why=why, unsure=unsure)
    head, _, notes = guess.why.partition("; ")
    notes = "; ".join(filter(None, [why, notes, _notes(one)]))
    careful = f"{head}: a quasi-identifier, to be masked"
    return replace(guess, why=f"{careful}; {notes}" if notes else careful)


# Kinds


def _guess_kind(one: Evidence) -> Guess:
    facts, values = one.facts, one.values
    if (stated := _stated_kind(one)) is not None:
        return stated
    if values.whole or facts.family == "integer" or (facts.decimals == 0 and facts.numeric):
        return _guess_whole(one)
    if facts.numeric:
        return _with_codes(one, Guess(kind="continuous", why="numbers"))
    if facts.family == "date":
        return Guess(kind="ordinal", why="dates or times")
    if facts.family == "category" and facts.ordered:
        return Guess(kind="ordinal", why="ordered categories")
    names = {"boolean": "yes or no", "category": "categories", "text": "text"}
    return Guess(kind="nominal", why=names.get(facts.family, f"dtype {facts.dtype}"))


def _stated_kind(one: Evidence) -> Guess | None:
    """Return the kind that the file states by a level, or by labels of all values."""
    described = one.described
    if described is None:
        return None
    if described.level in ("nominal", "ordinal"):
        kind: Kind = "nominal" if described.level == "nominal" else "ordinal"
        return Guess(kind=kind, why=f"{described.level} in the file")
    values = one.values
    seen: Iterable[Any] = values.texts if values.levels is None else values.levels.tolist()
    if values.n and all(value in described.labels for value in seen):
        kind = "ordinal" if described.level == "scale" else "nominal"
        return Guess(kind=kind, why="every value has a label")
    return None


def _guess_whole(one: Evidence) -> Guess:
    """Tell codes and ordered answers from numbers that are measured or counted."""
    facts, values = one.facts, one.values
    stored = " stored with decimals" if facts.family == "float" else ""
    number = Guess(kind="integer", why=f"whole numbers{stored}")
    levels = values.levels
    if levels is None or values.n == 0 or values.distinct == 1:
        return number
    by_name = one.name.is_code or one.label.is_code
    if by_name and not values.nearly_unique and values.n >= ENOUGH:
        named = "named" if one.name.is_code else "labelled"
        return Guess(kind="nominal", why=f"whole numbers {named} like codes")
    if (one.name.any(YEARS) and levels[-1] > FEW) or values.are_years:
        return _with_codes(one, number)
    doubt = "if they are counts or amounts to be averaged, the kind is integer"
    if values.few:
        many = f"{values.distinct} distinct whole numbers"
        if values.distinct == 2:
            return Guess(kind="nominal", why=f"two distinct whole numbers{stored}")
        if values.codes:
            apart = ", ".join(f"{code:g}" for code in values.codes)
            why = f"{many}, taken as codes; {apart} stays a category of its own; {doubt}"
            return Guess(kind="nominal", why=why, unsure=True)
        if len(values.ordinary) > FEW:
            why = f"{many} with gaps; their medians are values of the table; {doubt}"
            return Guess(kind="ordinal", why=why, unsure=True)
        if values.has_gaps:
            return Guess(
                kind="nominal", why=f"{many} with gaps, taken as codes; {doubt}", unsure=True
            )
        if len(values.ordinary) > 3 and values.one_peak:
            why = f"{many} in a row, taken as ordered; codes without order are nominal; {doubt}"
            return Guess(kind="ordinal", why=why)  # medians are right for both
        return Guess(kind="nominal", why=f"{many}, taken as codes; {doubt}", unsure=True)
    numbered = (
        one.named("is_number")
        or one.name.is_listed
        or (one.name.names_someone and one.name.names_place)
    )
    if numbered and not values.nearly_unique and values.n >= ENOUGH:
        why = f"whole numbers that stand for something by their name, taken as codes; {doubt}"
        return Guess(kind="nominal", why=why, unsure=True)
    return _with_codes(one, number)


def _with_codes(one: Evidence, guess: Guess) -> Guess:
    """Propose special codes of a column of numbers as missing: they must not be averaged."""
    whole = guess.kind == "integer"
    labels = {} if one.described is None else one.described.labels
    named = [
        code for code, text in labels.items() if not isinstance(code, str) and says_missing(text)
    ]
    levels = one.values.levels
    named = [code for code in named if levels is not None and (levels == code).any()]
    if named:
        return replace(guess, missing=tuple(named), why=f"{guess.why}; labels say missing")
    if not one.values.codes:
        return guess
    codes = tuple(int(code) if whole else code for code in one.values.codes)
    listed = ", ".join(map(str, codes))
    why = f"{guess.why}; {listed} taken as missing, far from the other values: is that so?"
    return replace(guess, missing=codes, why=why, unsure=True)


# Roles


class _RoleGuess(NamedTuple):
    role: Role
    why: str
    unsure: bool = False


_CAREFUL = _RoleGuess("quasi-identifier", "")


def _guess_role(one: Evidence) -> _RoleGuess:
    """Guess a role with the reason for it; without a reason, a quasi-identifier."""
    if (weight := _guess_weight(one)) is not None:
        return weight
    if one.facts.family in ("boolean", "date"):
        return _CAREFUL
    if how := one.named("names_household"):
        why = f"{how} like a household number"
        if one.repeats and one.complete:
            return _RoleGuess("unit", f"{why}: {UNIT}")
        return _identifier(why, one)
    if how := one.named("names_someone") or ("named" if one.name.is_noun and one.many else ""):
        return _guess_someone(one, how)
    why = _why_named(one) or _why_content(one)
    return _identifier(why) if why else _CAREFUL


def _identifier(why: str, one: Evidence | None = None) -> _RoleGuess:
    """Return the role with its reason; what is missing keeps some from being units."""
    if one is not None and one.repeats and one.many and not one.complete:
        gone = one.values.n_rows - one.values.n
        why += f", repeats, and lacks {gone:,} values: fill them to count units, role unit"
    return _RoleGuess("identifier", f"{why}: {DROP}")


def _guess_weight(one: Evidence) -> _RoleGuess | None:
    numbers, values = one.values.numbers, one.values
    labelled = one.label.is_weight and one.label.any(SAMPLING)
    if numbers is None or not values.n:
        return None
    if one.name.is_replicate_weight or one.label.is_replicate_weight:
        return _identifier("a replicate weight, which discloses the sampling design")
    if not (one.name.is_weight or labelled):
        return None
    sure = one.name.is_sampling_weight or labelled
    if len(numbers) < values.n_rows or not (numbers > 0).all():
        why = "named like a sampling weight, and not positive in every record"
        return _RoleGuess("quasi-identifier", why) if sure else None
    scale = " (in millionths)" if one.name.flat in ("v005", "hv005", "mv005", "d005") else ""
    why = (
        f"{'named' if one.name.is_weight else 'labelled'} like a sampling weight{scale}: would "
        "weigh the records and be released as it is; confirm the role, or mask it as a "
        "quasi-identifier"
    )
    if values.own > UNMASKED:
        why += f"; {values.own:.0%} of the records have a value of their own"
    return _RoleGuess("weight", why, unsure=not sure or values.own > UNMASKED)


def _guess_someone(one: Evidence, how: str) -> _RoleGuess:
    """Tell an identifier from the number of a unit with several records, and from a place's."""
    values, why = one.values, f"{how} like an identifier"
    if one.name.names_place and 5 * values.distinct <= values.n:
        return _CAREFUL
    if one.few:
        why = f"{why}, but has {values.distinct} values only: if they name somebody, drop it"
        return _RoleGuess("quasi-identifier", why)
    if one.repeats and one.complete and one.many:
        return _RoleGuess("unit", f"{why}, and repeats: {UNIT}")
    return _identifier(why, one)


def _why_named(one: Evidence) -> str:
    """Return why a name or label makes an identifier."""
    values = one.values
    if one.name.any(CONTACT) and not one.few:
        return "named like an identifier"
    place = one.name.names_place and 5 * values.distinct <= values.n
    if one.in_words and not place and (how := one.named("is_name")):
        return f"{how} like an identifier"
    if values.nearly_unique and values.whole and one.name.is_listed:
        return "named like the number of a place, and nearly unique"
    if values.nearly_unique and (one.in_words or values.whole) and (how := one.named("is_number")):
        return f"{how} like an identifier, and nearly unique"
    place = one.name.any(LATITUDE, LONGITUDE)
    if place and values.levels is not None and values.within <= 180 and not values.whole:
        return "named like a coordinate, which finds a place"
    return ""


def _why_content(one: Evidence) -> str:
    """Return why the values make an identifier."""
    facts, values = one.facts, one.values
    if facts.numeric:
        if facts.family != "float" and values.numbers is None:
            return "numbers of more than 15 digits look like an identifier"
        why = values.why_numbered()
        return f"{why}: looks like an identifier" if why else ""
    if values.form:
        return f"holds what looks like {values.form}"
    if facts.family in ("text", "other") and values.n > 1 and values.distinct == values.n:
        return f"all {values.n} values are distinct text and look like an identifier"
    if facts.family in ("text", "category") and values.distinct > 0.9 * values.n > 9:
        return f"{values.distinct} of {values.n} texts are distinct and look like an identifier"
    return ""


def _notes(one: Evidence) -> str:
    """Add what a person should look at before trusting the guess."""
    values = one.values
    if values.n == 0:
        return "it has no value at all"
    if values.distinct == 1:
        return "it has one value only"
    if values.numbers is None:
        return "it holds infinity" if one.facts.family == "float" else ""
    if values.whole and values.distinct <= 10 < values.n < ENOUGH:
        return f"{values.distinct} distinct values: if they are codes, the kind is nominal"
    return ""
