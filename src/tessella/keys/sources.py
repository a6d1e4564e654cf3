"""Where hierarchies come from: files, intervals, prefixes of codes, orders, trees in a plan."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._parameters import Number, Whole
from .._types import Floats
from .._wording import listed
from ..exceptions import BadFileError, BadOptionError, DataNotFoundError

if TYPE_CHECKING:
    from .hierarchy import Hierarchy

Rows = list[tuple[str, ...]]
ROOT = "*"  # the text of a root that was not named
LARGEST = 200_000_000  # bytes of a file of a hierarchy
DOUBLINGS = 3  # levels of intervals, where one width is given alone
# Each form, by the option that tells it, with the options that go with it.
FORMS = {
    "file": ("separator",),
    "prefix": (),
    "width": ("levels", "start"),
    "breaks": (),
    "order": ("fanout",),
    "fanout": (),
    "tree": (),
}
WANTED = (
    'a Hierarchy, or one of {"file": "job.csv"}, {"prefix": [3, 2, 0]}, {"width": [5, 10, 20]}, '
    '{"breaks": [[18, 25, 40, 65], [18, 65]]}, {"order": ["low", "middle", "high"], "fanout": 2}, '
    '{"tree": {"north": ["Oslo", "Bergen"], "south": ["Rome"]}}'
)


def build(
    cls: type[Hierarchy], given: Any, values: Sequence[str], ordered: Sequence[str] | None,
    numeric: bool, name: object, folder: Path | None,
) -> Hierarchy:  # fmt: skip
    """Build what a plan states; see `Hierarchy.of`."""
    if isinstance(given, cls):
        return given
    who = f"hierarchies[{name!r}]"
    form = check_form(given, who)
    options = {key: value for key, value in given.items() if key != form}
    try:
        if form == "file":
            path = Path(given["file"])
            return cls.read(path if folder is None else folder / path, **options)
        if form == "prefix":
            if given["prefix"] != [0]:
                _refuse_numbers_as_codes(values, numeric, who)
            return cls.from_prefixes(values, given["prefix"])
        if form in ("width", "breaks"):
            return cls.from_intervals(values, **given)
        if form == "tree":
            return cls.from_tree(given["tree"])
        order = given["order"] if form == "order" else ordered
        if order is None:
            expected = '{"order": [the values, lowest first], "fanout": 2}: no order is known'
            raise BadOptionError(who, given, expected)
        return cls.from_order([str(text) for text in order], fanout=given.get("fanout", 2))
    except BadOptionError as error:
        if who in str(error):
            raise
        raise BadOptionError(who, dict(given), f"a hierarchy that can be built: {error}") from None


def check_form(given: Any, who: str) -> str:
    """Return which form a mapping of a plan has, or refuse it."""
    if not isinstance(given, Mapping):
        raise BadOptionError(who, given, WANTED)
    forms = [
        form for form in FORMS if form in given and not (form == "fanout" and "order" in given)
    ]
    if len(forms) != 1:
        raise BadOptionError(who, dict(given), WANTED)
    if strange := [key for key in given if key != forms[0] and key not in FORMS[forms[0]]]:
        raise BadOptionError(who, dict(given), f"{WANTED}; not {listed(list(map(repr, strange)))}")
    return forms[0]


def read_rows(path: Any, separator: str | None = None) -> Rows:
    """Read the lines of a file; errors name the line."""
    path = Path(path)
    if not path.is_file():
        raise DataNotFoundError(f"There is no file {str(path)!r} of a hierarchy. Check the name.")
    if path.stat().st_size > LARGEST:
        raise BadFileError(path, "this is too large for a hierarchy", "Give one line a value")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadFileError(path, "this is not UTF-8 text", "Save it as CSV in UTF-8") from None
    lines = text.splitlines()
    if not lines:
        raise BadFileError(path, "this is empty", "Give one line a value: leaf;...;root")
    sign = separator or (";" if ";" in lines[0] else ",")
    rows: Rows = []
    for number, fields in enumerate(csv.reader(lines, delimiter=sign), start=1):
        row = tuple(field.strip() for field in fields)
        if not any(row):
            continue
        if rows and len(row) != len(rows[0]):
            problem = f"this line has {len(row)} levels, the first one {len(rows[0])}"
            raise BadFileError(path, problem, "Give every value all levels", line=number)
        rows.append(row)
    if rows and len(rows[0]) < 2:
        advice = "Write one line a value: leaf;coarser;...;root, or give separator=..."
        raise BadFileError(path, "there is one level only", advice)
    return rows


def rows_of_tree(tree: Any) -> Rows:
    """Return a line for each leaf of nested mappings; shallow leaves stay themselves longer."""
    found = [tuple(reversed(path)) for path in _paths(tree, ())]
    if not found:
        raise BadOptionError(
            "tree", tree, 'nested tables with lists of values, {"north": ["Oslo"]}'
        )
    width = max(map(len, found))
    return [(*(path[:1] * (width - len(path))), *path) for path in found]


def _paths(tree: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(tree, Mapping):
        for name, below in tree.items():
            yield from _paths(below, (*above, str(name)))
    elif isinstance(tree, Sequence) and not isinstance(tree, str):
        for leaf in tree:
            if isinstance(leaf, Mapping | list | tuple):
                raise BadOptionError("tree", leaf, "single values in the lists of a tree")
            yield (*above, _text(leaf))
    else:
        raise BadOptionError("tree", tree, 'tables, and lists of values: {"north": ["Oslo"]}')


def _text(value: Any) -> str:
    """Return a value as the labels of a column have it: 3.0 is 3."""
    return f"{value:g}" if isinstance(value, float) and value == round(value) else str(value)


def rows_of_prefixes(values: Sequence[str], lengths: Any) -> Rows:
    """Return a line for each code; what is cut off is shown as stars, up to the longest code."""
    falling = isinstance(lengths, Sequence) and not isinstance(lengths, str) and len(lengths) > 0
    if not falling or not all(Whole(0).accepts(n) for n in lengths):
        raise BadOptionError("prefix", lengths, "lengths that are kept, such as [3, 2, 0]")
    if any(low >= high for high, low in pairwise(lengths)):
        raise BadOptionError("prefix", list(lengths), "falling lengths, such as [3, 2, 0]")
    codes = list(dict.fromkeys(map(str, values)))
    if any("*" in code for code in codes):
        raise BadOptionError("prefix", list(lengths), 'codes without "*"; some values have it')
    longest = max(map(len, codes), default=0)

    def shown(code: str, kept: int) -> str:
        if len(code) <= kept:
            return code
        return code[:kept] + "*" * (longest - kept) if kept else ROOT

    return [(code, *(shown(code, kept) for kept in lengths)) for code in codes]


def _refuse_numbers_as_codes(values: Sequence[str], numeric: bool, who: str) -> None:
    if numeric and len({len(value) for value in values}) > 1:
        raise BadOptionError(
            who, "prefix", "text: the column holds numbers of different lengths, of which zeros at "
            'the beginning may be lost. Convert it, such as table[name].astype(str).str.zfill(5)'
        )  # fmt: skip


def rows_of_intervals(
    values: Sequence[Any], breaks: Any, width: Any, levels: Any, start: Any
) -> tuple[Rows, dict[str, float], dict[str, Any]]:
    """Return a line for each number, the penalty of each node, and the form for a plan."""
    texts = list(dict.fromkeys(_text(value) for value in values))
    try:
        numbers = np.array([float(text) for text in texts])
    except ValueError:
        expected = "intervals for a column of numbers; this one holds something else"
        raise BadOptionError("width" if breaks is None else "breaks", width, expected) from None
    if (breaks is None) == (width is None):
        raise BadOptionError(
            "breaks", breaks, "either breaks=[[20, 40, 60], [40]] or width=[5, 10]"
        )
    if breaks is not None:
        cuts, form = _nested(breaks), {"breaks": [list(map(float, own)) for own in breaks]}
    else:
        cuts, form = _multiples(numbers, width, levels, start)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    level_texts = [[texts[at] for at in order]]
    for own in cuts:
        if len(own):
            names = names_of_intervals(own)
            place = np.searchsorted(own, numbers, side="right")
            level_texts.append([names[at] for at in place])
    level_texts.append([ROOT] * len(texts))
    spread = float(numbers[-1] - numbers[0]) if len(numbers) else 0.0
    penalties: dict[str, float] = {}
    for level in level_texts:
        starts = [at for at in range(len(level)) if at == 0 or level[at] != level[at - 1]]
        for first, end in pairwise([*starts, len(level)]):
            own_range = float(numbers[end - 1] - numbers[first])
            penalties[level[first]] = own_range / spread if spread else 0.0
    return list(zip(*level_texts)), penalties, form


def _nested(breaks: Any) -> list[Floats]:
    try:
        cuts = [np.asarray(own, dtype=np.float64) for own in breaks]
    except (TypeError, ValueError):
        cuts = []
    if not cuts or any(own.ndim != 1 or not len(own) for own in cuts):
        raise BadOptionError(
            "breaks", breaks, "for each level rising numbers: [[20, 40, 60], [40]]"
        )
    for own in cuts:
        if not np.isfinite(own).all() or (np.diff(own) <= 0).any():
            raise BadOptionError("breaks", own.tolist(), "rising numbers")
    for finer, coarser in pairwise(cuts):
        if strange := sorted(set(coarser.tolist()) - set(finer.tolist())):
            expected = f"breaks of a level among those of the level before; {strange[0]:g} is not"
            raise BadOptionError("breaks", coarser.tolist(), expected)
    return cuts


def _multiples(
    numbers: Floats, width: Any, levels: Any, start: Any
) -> tuple[list[Floats], dict[str, Any]]:
    """Return the breaks of intervals of given widths."""
    if levels is not None and not Whole(1, 30).accepts(levels):
        raise BadOptionError("levels", levels, "a whole number from 1 to 30")
    if not Number().accepts(start):
        raise BadOptionError("start", start, "a number where an interval begins")
    if isinstance(width, Sequence) and levels is not None:
        raise BadOptionError("levels", levels, "nothing: a list of widths has its levels")
    widths = width
    if not isinstance(width, Sequence):
        doubled = range(DOUBLINGS if levels is None else levels)
        widths = [width * 2**at for at in doubled] if Number(above=0).accepts(width) else [width]
    if not len(widths) or not all(Number(above=0).accepts(own) for own in widths):
        raise BadOptionError("width", width, "positive numbers, such as [5, 10, 20]")
    times = [1]
    for finer, coarser in pairwise(widths):
        many = round(coarser / finer)
        if many < 2 or abs(coarser / finer - many) > 1e-9 * many:
            expected = f"rising widths, each a multiple of the one before; {coarser:g} is not"
            raise BadOptionError("width", list(widths), expected)
        times.append(times[-1] * many)
    base = widths[0]
    low, high = np.floor((numbers.min() - start) / base), np.floor((numbers.max() - start) / base)
    if high - low > 10_000_000:
        raise BadOptionError("width", width, "wider intervals: there would be millions of them")
    # Coarser breaks are some of the finest ones, so that rounding cannot make them differ.
    places = np.arange(low + 1, high + 1)
    cuts = [start + base * places[places % step == 0] for step in times]
    form = {"width": list(widths), **({"start": start} if start else {})}
    return cuts, form


def rows_of_order(values: Sequence[str], fanout: Any) -> Rows:
    """Return a line for each ordered value; neighbours are put together, `fanout` at a time."""
    if not Whole(2).accepts(fanout):
        raise BadOptionError("fanout", fanout, "a whole number of at least 2")
    if len(set(values)) < len(values) or not len(values):
        raise BadOptionError("order", list(values), "different values, lowest first")
    levels, span = [list(values)], fanout
    while span < len(values):
        texts = []
        for first in range(0, len(values), span):
            last = min(first + span, len(values)) - 1
            text = values[first] if first == last else f"{values[first]} to {values[last]}"
            texts += [text] * (last - first + 1)
        levels.append(texts)
        span *= fanout
    return list(zip(*levels, [ROOT] * len(values)))


def names_of_intervals(breaks: Any, labels: Sequence[str] | None = None) -> list[str]:
    """Name the intervals between breaks, the lowest first."""
    if labels is not None:
        return [str(label) for label in labels]
    shown = [f"{end:.15g}" for end in breaks]  # all digits: 1234565 is not 1.23456e+06
    between = [f"{low} to below {high}" for low, high in pairwise(shown)]
    return [f"below {shown[0]}", *between, f"{shown[-1]} or more"]
