"""From texts to types: a column becomes numbers, dates or truths if every cell of it is one.

How numbers are written is found from every cell of the file: "1,5" can only be a decimal comma and
"1,234,567" only thousands; "1,234" alone can be both, and is not guessed.

Nothing is coerced. A few texts among numbers are an error with the line, because they are either
missing values that somebody must name or a mistake; a few numbers among texts are text.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._types import Integers
from .._wording import counted, listed
from ..exceptions import BadFileError, UnknownOptionError
from ..frame.arrow import to_numpy
from ..kernels import text as forms
from .source import Statement, check_columns

Type = Literal["integer", "number", "boolean", "date", "datetime", "text"]
Missing = Sequence[str] | Mapping[str, Sequence[str]] | str | None

_TRUTHS = ("true", "false", "TRUE", "FALSE", "True", "False")
_INFINITIES = ("inf", "-inf", "Inf", "-Inf", "INF", "-INF")
# Read as missing where the rest of a column is numbers, dates or truths; kept as text in text.
TOKENS = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", ".", "-", "?")

_PLURAL = dict(
    zip(get_args(Type), ("whole numbers", "numbers", "truths", "dates", "moments", "text"))
)
# What to do about a few cells of another type than the rest of a column.
CORRECT = (
    "Correct it; or give missing={{{name!r}: [...]}} if it means missing (missing=[...] in all "
    "columns), or types={{{name!r}: 'text'}}"
)

# Words among numbers are named where no more than so many stand there, each in so many records.
MOST_WORDS, FREQUENT = 5, 5
_WORD = re.compile(r"[^\W\d_]+(?:[ /_.-][^\W\d_]+)*")
_NO_WORDS = {None, "", *TOKENS, *_INFINITIES}

SIGNS = forms.SEPARATORS
_NANOSECONDS = r":[0-9]{2}\.[0-9]{7}"
_NUMBERS = [forms.WHOLE, forms.INFINITE, *range(forms.POINT, forms.SPACED)]


_KNOWN = [word.encode() for word in (*_TRUTHS, *_INFINITIES, *TOKENS)]
_WORDS, _ENDS = np.frombuffer(b"".join(_KNOWN), np.uint8), np.cumsum([len(w) for w in _KNOWN])


@dataclass(frozen=True, kw_only=True)
class FormCounts:
    """How the texts of a column form: how many of each form, and the first row of each.

    `nanoseconds` says whether a moment has more than six decimals of a second.
    """

    name: str
    counts: Integers
    firsts: Integers
    nanoseconds: bool = False

    def joined(self, later: FormCounts, n_rows: int) -> FormCounts:
        """Return what the column is together with `later` rows of it, after its own `n_rows`."""
        new = (self.firsts < 0) & (later.firsts >= 0)
        return FormCounts(
            name=self.name, counts=self.counts + later.counts,
            firsts=np.where(new, later.firsts + n_rows, self.firsts),
            nanoseconds=self.nanoseconds or later.nanoseconds,
        )  # fmt: skip

    def n(self, *which: int) -> int:
        """Count the texts of these forms."""
        return int(self.counts[list(which)].sum())

    def first(self, *which: int) -> int:
        """Return the first row that has one of these forms, or -1."""
        rows = [int(self.firsts[form]) for form in which if self.firsts[form] >= 0]
        return min(rows, default=-1)

    @property
    def filled(self) -> int:
        """The number of texts that are not empty and no usual word for "missing"."""
        return int(self.counts[: forms.SPACED].sum()) - self.n(forms.EMPTY, forms.TOKEN)

    @property
    def coded(self) -> bool:
        """Whether every text is grouped as 12.345.678 or 600 123 456: numbers of somebody, perhaps.

        Amounts would have some below a thousand, or with decimals.
        """
        spaced = [forms.GROUPS + place for place, sign in enumerate(SIGNS) if sign != ","]
        return 0 < self.filled == self.n(*spaced)

    @property
    def numeric(self) -> bool:
        """Whether each of them is a number by some format, and none a code as 007."""
        return 0 < self.filled == self.n(*_NUMBERS)


@dataclass(frozen=True, kw_only=True)
class Mixed:
    """A column of numbers, dates or moments in which other texts stand, too.

    `line` is that of the first of them, `others` how many there are among the `filled` cells.
    """

    name: str
    kind: Type
    line: int
    others: int
    filled: int


@dataclass(frozen=True)
class NumberFormat:
    """The signs before decimals and between thousands; the latter may be empty.

    `given` says that somebody named the sign between thousands.
    """

    decimal: str = "."
    thousands: str = ""
    given: bool = False

    @property
    def whole(self) -> tuple[int, ...]:
        """Forms of whole numbers."""
        found = [forms.WHOLE]
        if self.thousands:
            found.append(forms.GROUPS + SIGNS.index(self.thousands))
            if self.thousands in ".,":
                found.append(forms.POINT_OR_GROUP + SIGNS.index(self.thousands))
        return tuple(found)

    @property
    def broken(self) -> tuple[int, ...]:
        """Forms of numbers with decimals or a power of ten, and infinity."""
        sign = SIGNS.index(self.decimal)
        found = [forms.POINT + sign, forms.POINT_OR_GROUP + sign]
        found += [forms.POWER, forms.POWER_POINT + sign, forms.INFINITE]
        if self.thousands:
            base = (forms.GROUPS_POINT, forms.GROUPS_COMMA)[sign]
            found.append(base + SIGNS.index(self.thousands))
        return tuple(found)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Forms of all numbers."""
        return self.whole + self.broken


def count_forms(name: str, column: pa.ChunkedArray) -> FormCounts:
    """Look at every text of a column."""
    found = FormCounts(
        name=name, counts=np.zeros(forms.N_FORMS, np.int64), firsts=np.full(forms.N_FORMS, -1)
    )
    n_rows = 0
    for chunk in column.chunks:
        if not len(chunk):
            continue
        _, offsets, data = chunk.buffers()
        places = np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        letters = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
        valid = to_numpy(chunk.is_valid())
        words = _WORDS, _ENDS, len(_TRUTHS), len(_INFINITIES)
        counts, firsts = forms.count_forms(letters, places.astype(np.int64), valid, *words)
        moments = counts[forms.MOMENT] + counts[forms.ZONED] > 0
        fine = moments and pc.any(pc.match_substring_regex(chunk, _NANOSECONDS)).as_py()
        own = FormCounts(name=name, counts=counts, firsts=firsts, nanoseconds=bool(fine))
        found = found.joined(own, n_rows)
        n_rows += len(chunk)
    return found


@dataclass(frozen=True, kw_only=True)
class TypeInference:
    """Gives each column of texts its type.

    `line_of` gives the line of a row; `quoted` names columns that quotes declare to be text.
    """

    path: Path
    number_format: NumberFormat
    line_of: Callable[[int], int]
    types: Mapping[str, Type]
    dates: Mapping[str, str]
    quoted: frozenset[str] = frozenset()

    def types_of(
        self, columns: Sequence[FormCounts], tables: Callable[[], Iterable[pa.Table]]
    ) -> dict[str, tuple[Type, str]]:
        """Return the type of each column, and what to say of it; refuse all mixed ones at once.

        `tables` gives the texts again, from which the words are taken that stand among numbers.
        """
        found: dict[str, tuple[Type, str]] = {}
        mixed = []
        for column in columns:
            kind = self.type_of(column)
            if isinstance(kind, Mixed):
                mixed.append(kind)
            else:
                found[column.name] = kind
        if mixed:
            raise self._refusal(mixed, tables)
        return found

    def _refusal(
        self, mixed: Sequence[Mixed], tables: Callable[[], Iterable[pa.Table]]
    ) -> BadFileError:
        """Name all mixed columns, and the words to be declared where they are few and frequent."""
        words = _words_among(mixed, tables())
        first, *more = mixed
        problem = (
            f"column {first.name!r} holds {_PLURAL[first.kind]}, and something else in "
            f"{first.others:,} of {first.filled:,} cells, the first in this line"
        )
        problem += f" ({_in_quotes(words[first.name])})" if first.name in words else ""
        if more:
            others = [
                f"{one.name!r} (" + (f"{_in_quotes(words[one.name])} " if one.name in words else "")
                + f"in {one.others:,}, first in line {one.line})"
                for one in more
            ]  # fmt: skip
            problem += f"; so {'does' if len(more) == 1 else 'do'} {', '.join(others)}"
        return BadFileError(self.path, problem, self._advice(mixed, words, tables), line=first.line)

    def _advice(
        self, mixed: Sequence[Mixed], words: Mapping[str, list[str]],
        tables: Callable[[], Iterable[pa.Table]],
    ) -> str:  # fmt: skip
        """Return what may be done about mixed columns, as arguments that can be pasted."""
        first, *more = (one.name for one in mixed)
        if not more:
            word = _written(words.get(first, [...]))
            return CORRECT.format(name=first).replace("[...]", word)
        if len(words) < len(mixed):
            given = (f"{one.name!r}: {_written(words.get(one.name, [...]))}" for one in mixed)
            missing = f"missing={{{', '.join(given)}}} if they mean missing"
            return f"Correct them; or give {missing}, or types={{{first!r}: 'text'}}"
        every = list(dict.fromkeys(word for own in words.values() for word in own))
        beside = _stand_elsewhere(every, [one.name for one in mixed], tables())
        too = f" ({', '.join(map(repr, beside))} too)" if beside else ""
        they = "it means" if len(every) == 1 else "they mean"
        return (
            f"Correct them; or give missing={_written(every)} if {they} missing in all columns"
            f"{too}; or, for each column, missing={{{first!r}: {_written(words[first])}}} or "
            f"types={{{first!r}: 'text'}}"
        )

    def type_of(self, column: FormCounts) -> tuple[Type, str] | Mixed:
        """Return the type of a column, and what to say of it."""
        if column.name in self.dates:
            return "date", "given"
        if column.name in self.types:
            return self.types[column.name], "given"
        filled, numbers = column.filled, self.number_format.numbers
        if not filled:
            empty = "no value at all" if not column.n(forms.TOKEN) else "nothing but words as NA"
            return "text", empty
        if column.coded and not self.number_format.given:
            return "text", "every value is in groups: codes, unless thousands= is given"
        fits: dict[Type, tuple[int, ...]] = {
            "integer": self.number_format.whole,
            "number": numbers,
            "boolean": (forms.TRUTH,),
            "date": (forms.DATE,),
            "datetime": (forms.MOMENT,) if column.n(forms.MOMENT) else (forms.ZONED,),
        }
        for kind, which in fits.items():
            if column.n(*which) == filled > column.n(forms.INFINITE):
                if column.name in self.quoted:
                    return "text", f"{_PLURAL[kind]} in quotes, while others are not quoted"
                return kind, ""
        if column.name in self.quoted:
            return "text", ""
        return self._mixed(column, fits)

    def _mixed(
        self, column: FormCounts, fits: Mapping[Type, tuple[int, ...]]
    ) -> tuple[Type, str] | Mixed:
        filled, digits = column.filled, (forms.WHOLE, forms.PADDED, forms.LONG)
        if column.n(forms.PADDED):
            row = column.first(forms.PADDED)
            return "text", f"leading zeros as in line {self.line_of(row)}: codes, not numbers"
        if column.n(forms.LONG) and column.n(*digits) == filled:
            row = column.first(forms.LONG)
            return "text", f"more than {forms.LONGEST} digits in line {self.line_of(row)}"
        if column.numeric:
            return "text", "numbers in another convention than the rest of the file"
        for kind in ("number", "date", "datetime"):
            count = column.n(*fits[kind])
            if 2 * count >= filled:
                others = set(range(forms.WHOLE, forms.SPACED)).difference(fits[kind])
                row = column.first(forms.OTHER, *others)
                return Mixed(
                    name=column.name, kind=kind, line=self.line_of(row), others=filled - count,
                    filled=filled,
                )  # fmt: skip
            if count:
                return "text", f"{count:,} of {filled:,} cells would be {_PLURAL[kind]}"
        return "text", ""

    def convert(self, texts: pa.ChunkedArray, column: FormCounts, kind: Type) -> pa.ChunkedArray:
        """Return the column in its type; every cell fits, or the line of one that does not.

        The texts may be some rows of the column only, whose lines are then those of `line_of`.
        """
        if kind == "text":
            return texts
        if kind in ("integer", "number") and self._refuses(column, kind):
            column = count_forms(column.name, texts)  # the text at fault may be in other rows
        texts = self._without_tokens(texts, column)
        try:
            return self._cast(texts, column, kind)
        except pa.ArrowInvalid:
            raise self._misfit(texts, column, kind) from None

    def _cast(self, texts: pa.ChunkedArray, column: FormCounts, kind: Type) -> pa.ChunkedArray:
        if column.name in self.dates:
            return self._dates_as_given(texts, self.dates[column.name])
        if kind in ("integer", "number"):
            return self._numbers(texts, column, kind)
        if kind == "boolean":
            return pc.cast(pc.utf8_lower(texts), pa.bool_())
        if kind == "date":
            return pc.cast(texts, pa.date32())
        unit = "ns" if column.nanoseconds else "us"
        return pc.cast(texts, pa.timestamp(unit, "UTC" if column.n(forms.ZONED) else None))

    def _without_tokens(self, texts: pa.ChunkedArray, column: FormCounts) -> pa.ChunkedArray:
        if column.n(forms.SPACED):
            texts = pc.ascii_trim(texts, " ")
        if column.n(forms.EMPTY, forms.TOKEN):
            gone = pc.is_in(texts, value_set=pa.array(["", *TOKENS]))
            texts = pc.if_else(gone, pa.scalar(None, pa.string()), texts)
        return texts

    def _numbers(self, texts: pa.ChunkedArray, column: FormCounts, kind: Type) -> pa.ChunkedArray:
        thousands, decimal = self.number_format.thousands, self.number_format.decimal
        plain = column.n(forms.WHOLE, forms.POINT, forms.POWER_POINT) if decimal == "." else 0
        if self._refuses(column, kind):
            raise pa.ArrowInvalid
        if thousands and plain < column.filled:
            texts = pc.replace_substring(texts, thousands, "")
        if decimal == ",":
            texts = pc.replace_substring(texts, ",", ".")
        if kind == "integer":
            return pc.cast(texts, pa.int64())
        values = pc.cast(texts, pa.float64())
        if not column.n(forms.INFINITE) and pc.any(pc.is_inf(values)).as_py():
            raise pa.ArrowInvalid
        return values

    def _refuses(self, column: FormCounts, kind: Type) -> bool:
        """Say whether some text of a column cannot be such a number, by its form."""
        accepted = {forms.EMPTY, forms.TOKEN, forms.PADDED, *self.number_format.numbers}
        if kind == "number":
            accepted.add(forms.OTHER)  # the cast refuses these; as integers it would take 0x1F
        return not set(np.flatnonzero(column.counts[: forms.SPACED])) <= accepted

    def _dates_as_given(self, texts: pa.ChunkedArray, form: str) -> pa.ChunkedArray:
        distinct = texts.unique().drop_null().to_pylist()
        try:
            moments = [dt.datetime.strptime(text, form) for text in distinct]
        except ValueError:
            raise pa.ArrowInvalid from None
        clock = any(sign in form for sign in ("%H", "%I", "%M", "%S", "%c", "%X"))
        kind = pa.timestamp("us") if clock else pa.date32()
        values = pa.array(moments if clock else [moment.date() for moment in moments], kind)
        place = pc.index_in(texts, value_set=pa.array(distinct, pa.string()))
        return pc.take(values, place) if distinct else pa.nulls(len(texts), kind)

    def _misfit(self, texts: pa.ChunkedArray, column: FormCounts, kind: Type) -> BadFileError:
        """Find the first text that is not of its type; slow, and needed once."""
        form, row, text = self.dates.get(column.name), 0, "a number out of range"
        for place, cell in enumerate(texts.to_pylist()):
            if cell is not None and not self._fits(cell, column.name, kind):
                row, text = place, cell
                break
        should = f"should hold {_PLURAL[kind]}" + (f" written {form}" if form else "")
        problem = f"column {column.name!r} {should}, and has {text[:40]!r}"
        given = f"missing={{{column.name!r}: [...]}} or types={{{column.name!r}: 'text'}}"
        advice = f"Correct it, or give {given}"
        return BadFileError(self.path, problem, advice, line=self.line_of(row))

    def _fits(self, text: str, name: str, kind: Type) -> bool:
        alone = pa.chunked_array([[text]], pa.string())
        try:
            self._cast(alone, count_forms(name, alone), kind)
        except pa.ArrowInvalid:
            return False
        return True


def _words_among(mixed: Sequence[Mixed], tables: Iterable[pa.Table]) -> dict[str, list[str]]:
    """Return the words that stand among the numbers of columns, where these are few and frequent.

    A column is left out unless they are all that is there beside its numbers. A word of many
    records stands for a category; what one record alone has may be about a person.
    """
    counts = {one.name: Counter[str]() for one in mixed}
    for texts in tables:
        for name, own in counts.items():
            column = texts.column(name)
            plain = column.filter(pc.invert(pc.match_substring_regex(column, "[0-9]")))
            for one in plain.value_counts().to_pylist():
                own[one["values"]] += one["counts"]
    found = {}
    for one in mixed:
        own = Counter({w: n for w, n in counts[one.name].items() if w not in _NO_WORDS})
        few = len(own) <= MOST_WORDS and min(own.values(), default=0) >= FREQUENT
        if few and own.total() == one.others and all(map(_is_word, own)):
            found[one.name] = [word for word, _ in own.most_common()]
    return found


def _is_word(text: str | None) -> bool:
    return text is not None and len(text) <= 20 and _WORD.fullmatch(text) is not None


def _stand_elsewhere(
    words: Sequence[str], names: Sequence[str], tables: Iterable[pa.Table]
) -> list[str]:
    """Return the other columns that have one of these words, where it may have a meaning."""
    wanted = pa.array(words, pa.string())
    found = dict[str, None]()
    for texts in tables:
        for name in set(texts.column_names).difference(names, found):
            if pc.any(pc.is_in(texts.column(name), value_set=wanted)).as_py():
                found[name] = None
    return sorted(found)


def _in_quotes(words: Sequence[str]) -> str:
    """List words in quotes."""
    return ", ".join(map(repr, words))


def _written(words: Sequence[Any]) -> str:
    return "[" + ", ".join("..." if word is ... else repr(word) for word in words) + "]"


def missing_words(missing: Missing, names: Sequence[str]) -> dict[str, list[str]]:
    """Return for each column the texts that stand for "missing", as given."""
    if missing is None:
        return {}
    if not isinstance(missing, Mapping):
        missing = dict.fromkeys(names, missing)
    check_columns(missing, names, who="missing=")
    return {
        name: [words] if isinstance(words, str) else [str(word) for word in words]
        for name, words in missing.items()
    }


def check_types(types: Mapping[str, Any]) -> None:
    """Refuse a type that no column can have."""
    for name, kind in types.items():
        if kind not in get_args(Type):
            raise UnknownOptionError(f"type of column {name!r}", kind, get_args(Type))


def state_types(
    columns: Sequence[FormCounts], kinds: Mapping[str, tuple[Type, str]]
) -> list[Statement]:
    """State how many columns have which type, and for single columns what was decided and why."""
    statements = []
    for kind in get_args(Type):
        names = [name for name, (found, _) in kinds.items() if found == kind]
        if names:
            statements.append(
                Statement(_PLURAL[kind], counted(len(names), "column"), listed(names))
            )
    reasons: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        kind, why = kinds[column.name]
        gone, typed = column.n(forms.EMPTY, forms.TOKEN), kind != "text"
        notes = {
            why: bool(why) and why != "given",
            f"{gone:,} empty cells or words as NA read as missing": typed and gone,
            "words as NA kept as text; give missing= if they mean missing": (
                not typed and column.n(forms.TOKEN)
            ),
            "spaces around values left out": typed and column.n(forms.SPACED),
            "with time zones: kept in UTC": kind == "datetime" and column.n(forms.ZONED),
        }
        for note, holds in notes.items():
            if holds:
                reasons.setdefault((_PLURAL[kind], note), []).append(column.name)
    for (kind_name, why), names in reasons.items():
        shown = listed([repr(name) for name in names])
        statements.append(Statement(f"column {shown}", kind_name, why))
    return statements
