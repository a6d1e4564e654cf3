"""Random tables with rules that a witness record obeys: so a release exists, and is known to.

First a witness is drawn, then rules of every form that it obeys, then records near to it: all of
them obey the rules, or, half of the time, some are broken. A release exists wherever each stratum
has at least k records of every pattern of missing cells: it could give all of them the witness.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from .case import Case, Column
from .check import Record, judge

NUMBERS = {  # dtypes by library and family; those of whole numbers with their largest value
    "pandas": {
        "whole": {"int8": 127, "int16": 32767, "int32": 2**31, "int64": 2**53, "uint16": 65535,
                  "Int16": 32767, "Int64": 2**53, "int64[pyarrow]": 2**53,
                  "float64": 2**53},
        "real": ["float64", "float32", "Float64", "Float32", "double[pyarrow]", "decimal"],
        "text": ["object", "str", "category", "string", "string[pyarrow]", "ordered"],
        "truth": ["bool", "boolean"],
        "date": ["datetime64[ns]", "datetime64[s]", "date32[pyarrow]"],
    },
    "polars": {
        "whole": {"Int8": 127, "Int16": 32767, "Int32": 2**31, "Int64": 2**53, "UInt16": 65535},
        "real": ["Float64", "Float32", "decimal"],
        "text": ["String", "Categorical", "Enum"],
        "truth": ["Boolean"],
        "date": ["Date", "Datetime"],
    },
    "pyarrow": {
        "whole": {"int8": 127, "int16": 32767, "int32": 2**31, "int64": 2**53, "uint16": 65535},
        "real": ["float64", "float32", "decimal"],
        "text": ["string", "large_string", "dictionary"],
        "truth": ["bool"],
        "date": ["date32", "timestamp"],
    },
}  # fmt: skip
# What these dtypes of pandas cannot hold beside a missing cell.
NEVER_MISSING = {"int8", "int16", "int32", "int64", "uint16", "bool"}
FORMATS = ["csv", "parquet", "feather", "xlsx", "sav", "dta", "xpt", "csv.gz", "tsv"]
GROUPINGS = ["mdav"] * 5 + ["search", "ordered", "vmdav", "cbfs", "igd", "iterated", "repordmic",
                            "fuzzy", "fuzzy"]  # fmt: skip
GENEROUS = {"fit": "project", "small": "merge"}


class _Drawing:
    """What is drawn on the way to a case."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.library = self.rng.choice(list(NUMBERS))
        self.columns: dict[str, Column] = {}
        self.witness: dict[str, Any] = {}
        self.derived: dict[str, Callable[[Record], Any]] = {}
        self.rules: list[str] = []
        self.kinds: list[str] = []
        self.strata: list[str] = []

    def names(self, *families: str) -> list[str]:
        return [n for n, c in self.columns.items() if c.family in families and n not in self.hidden]

    @property
    def hidden(self) -> set[str]:
        return {"unit", "weight"}

    def dtype(self, family: str, most: float = 100) -> str:
        known = NUMBERS[self.library][family]
        if isinstance(known, dict):
            return self.rng.choice([name for name, top in known.items() if 8 * most < top])
        return self.rng.choice(list(known))

    def signed(self, dtype: str) -> str:
        """Return a dtype that holds negative numbers, too."""
        if dtype.lower() != "uint16":
            return dtype
        return "int64" if self.library == "pyarrow" else "Int64"

    def add_columns(self) -> None:
        rng = self.rng
        for name in list("abcdef")[: rng.choice([1, 2, 2, 3, 3, 4, 5])]:
            low = rng.choice([0, 0, 1, 1, 1, 2, -15])
            high = low + rng.choice([9, 20, 60])
            if rng.random() < 0.5:
                dtype = self.dtype("whole", max(abs(low), high))
                column = Column("whole", self.signed(dtype) if low < 0 else dtype, low, high)
            else:
                dtype = self.dtype("real")
                step = rng.choice([0.125, 0.25, 0.5])
                if dtype in ("float64", "Float64") and rng.random() < 0.5:
                    step = 0.01
                column = Column("real", dtype, low, high, step)
            self.columns[name] = column
        for name in list("stu")[: rng.choice([0, 0, 1, 1, 2])]:
            values = tuple(rng.sample(["x", "y", "z", "w"], rng.choice([2, 3, 4])))
            self.columns[name] = Column("text", self.dtype("text"), values=values)
        if rng.random() < 0.15:
            self.columns["flag"] = Column("truth", self.dtype("truth"))
        if rng.random() < 0.12:
            for name in ("start", "end"):
                self.columns[name] = Column("date", self.dtype("date"))
        self.witness = {name: column.draw(rng) for name, column in self.columns.items()}

    def add_derived(self) -> None:
        """Define a column by an equation between others, which is then a rule."""
        rng, numbers = self.rng, self.names("whole", "real")
        name = f"z{len(self.derived)}"
        if len(numbers) < 2 or name in self.columns:
            return
        a, b = rng.sample(numbers, 2)
        times = rng.random() < 0.4
        whole = all(self.columns[n].family == "whole" for n in (a, b))
        bound = [max(abs(self.columns[n].low), abs(self.columns[n].high)) for n in (a, b)]
        if times and bound[0] * bound[1] > 20000:
            return
        p, q = (1, 1) if rng.random() < 0.6 else (rng.randint(1, 3), rng.choice([-2, -1, 2]))
        most = bound[0] * bound[1] if times else abs(p) * bound[0] + abs(q) * bound[1]
        dtype = (
            self.dtype("whole", most)
            if whole
            else rng.choice(
                {"pandas": ["float64", "Float64"], "polars": ["Float64"]}.get(
                    self.library, ["float64"]
                )
            )
        )
        dtype = self.signed(dtype)
        column = Column("whole" if whole else "real", dtype, -most, most, 1 if whole else 0.001)

        def value(record: Record) -> Any:
            x, y = record[a], record[b]
            x, y = (float(v) if isinstance(v, Decimal) else v for v in (x, y))
            return x * y if times else p * x + q * y

        self.columns[name], self.derived[name] = column, value
        self.witness[name] = value(self.witness)
        left = f"{a} * {b}" if times else f"{_times(p, a)} + {_times(q, b)}"
        text = f"{left} == {name}" if rng.random() < 0.5 else f"{name} == {left}"
        if not times and rng.random() < 0.1:
            text += " ± 0.5"
        self.rules.append(text)
        self.kinds.append("product" if times else "linear")

    def add_rule(self) -> None:
        for _ in range(20):
            kind = self.rng.choice(list(FORMS) + ["conditional"] * 3)
            text = FORMS[kind](self)
            if text and self.obeyed(text):
                self.rules.append(text)
                self.kinds.append(kind)
                return

    def obeyed(self, text: str) -> bool:
        """Whether the witness obeys, in every stratum."""
        for name in self.strata:
            return all(judge(text, self.witness | {name: v}) for v in self.columns[name].values)
        return bool(judge(text, self.witness))

    def record(self, start: Record, stratum: Record) -> dict[str, Any]:
        """Walk from a record that obeys to another one."""
        here, rng = {**start, **stratum}, self.rng
        free = [n for n in self.columns if n not in self.derived and n not in self.strata]
        rng.shuffle(free)
        for name in free:
            near = here[name] if rng.random() < 0.5 else None
            there = here | {name: self.columns[name].draw(rng, near)}
            there |= {n: make(there) for n, make in self.derived.items()}
            if all(judge(rule, there) is not False for rule in self.rules):
                here = there
        return here

    def dirty(self, record: dict[str, Any]) -> dict[str, Any]:
        """Change some cells of a record, whatever the rules are about."""
        rng = self.rng
        free = [name for name in self.columns if name not in self.strata]
        for name in rng.sample(free, min(len(free), rng.choice([1, 1, 2, 3]))):
            record = record | {name: self.columns[name].draw(rng)}
        return record


def _times(factor: float, name: str) -> str:
    return name if factor == 1 else f"{factor:g} * {name}"


def _numbers(d: _Drawing, count: int) -> list[str]:
    known = d.names("whole", "real")
    return d.rng.sample(known, count) if len(known) >= count else []


def _slack(d: _Drawing, value: float) -> float:
    return float(value) + d.rng.choice([0.0, 0.5, 1.0, 3.0, 10.0])


def _linear(d: _Drawing) -> str | None:
    names = _numbers(d, d.rng.choice([2, 2, 3]))
    if not names:
        return None
    factors = [d.rng.choice([1, 1, 1, 2, -1, -1, 0.5]) for _ in names]
    total = sum(f * float(d.witness[n]) for f, n in zip(factors, names))
    left = " + ".join(_times(f, n) for f, n in zip(factors, names))
    return f"{left} {d.rng.choice(['<=', '<='])} {_slack(d, total):g}"


def _strict(d: _Drawing) -> str | None:
    names = _numbers(d, 2)
    if not names:
        return None
    total = float(d.witness[names[0]]) - float(d.witness[names[1]])
    return f"{names[0]} - {names[1]} < {total + d.rng.choice([1.0, 2.0, 8.0]):g}"


def _order(d: _Drawing) -> str | None:
    names = _numbers(d, 2)
    return f"{names[0]} {d.rng.choice(['<=', '<', '>='])} {names[1]}" if names else None


def _positive(d: _Drawing, names: Sequence[str]) -> list[str]:
    return [n for n in names if d.columns[n].low > 0 and n not in d.derived]


def _ratio(d: _Drawing) -> str | None:
    below = _positive(d, d.names("whole", "real"))
    others = [n for n in d.names("whole", "real") if n not in below[:1]]
    if not below or not others:
        return None
    y, x = below[0], d.rng.choice(others)
    value = float(d.witness[x]) / float(d.witness[y])
    sign = d.rng.choice(["<=", "<=", "<", ">="])
    slack = d.rng.choice([0.0, 0.5, 2.0]) if sign != "<" else 0.5
    bound = value - slack - 1e-6 if sign == ">=" else value + slack + 1e-6
    return f"{x} / {y} {sign} {round(bound, 5)}"


def _guarded(d: _Drawing) -> str | None:
    names = _numbers(d, 2)
    if not names:
        return None
    x, y = names
    if not d.witness[y]:
        return f"if {y} != 0: {x} / {y} <= {d.rng.randint(-3, 3)}"
    value = float(d.witness[x]) / float(d.witness[y])
    return f"if {y} != 0: {x} / {y} <= {round(value + d.rng.choice([0.1, 2.0]), 3)}"


def _bounded_product(d: _Drawing) -> str | None:
    names = _numbers(d, 2)
    if not names:
        return None
    a, b = names
    return f"{a} * {b} <= {_slack(d, float(d.witness[a]) * float(d.witness[b])):g}"


def _interval(d: _Drawing) -> str | None:
    names = _numbers(d, 1)
    if not names:
        return None
    value = float(d.witness[names[0]])
    return d.rng.choice([
        f"{value - d.rng.randint(0, 9):g} <= {names[0]} <= {value + d.rng.randint(0, 30):g}",
        f"{names[0]} >= {value - d.rng.randint(0, 5):g}",
        f"{names[0]} < {value + d.rng.randint(1, 20):g}",
        f"{names[0]} != {d.rng.randint(0, 9)}",
    ])  # fmt: skip


def _set(d: _Drawing) -> str | None:
    names = d.names("whole", "text")
    if not names:
        return None
    name = d.rng.choice(names)
    column = d.columns[name]
    values = {d.witness[name], *(column.draw(d.rng) for _ in range(d.rng.choice([1, 3, 6])))}
    shown = ", ".join(f'"{v}"' if isinstance(v, str) else str(v) for v in sorted(values, key=str))
    return f"{name} in {{{shown}}}"


def _pairs(d: _Drawing) -> str | None:
    names = d.names("text")
    if len(names) < 2:
        return None
    a, b = d.rng.sample(names, 2)
    rows = {(d.witness[a], d.witness[b])} | {
        (d.columns[a].draw(d.rng), d.columns[b].draw(d.rng)) for _ in range(4)
    }
    return (
        f"({a}, {b}) in {{{', '.join(str(row).replace(chr(39), chr(34)) for row in sorted(rows))}}}"
    )


def _dates(d: _Drawing) -> str | None:
    if "start" not in d.columns:
        return None
    day = d.witness["start"] - dt.timedelta(days=d.rng.randrange(200))
    return d.rng.choice(["start <= end", "end <= start", f'start >= "{day.isoformat()}"'])


def _either(d: _Drawing) -> str | None:
    one, other = _simple(d), _simple(d)
    return f"{one} or {other}" if one and other else None


def _simple(d: _Drawing) -> str | None:
    """Return a comparison of one column, true of the witness or not."""
    name = d.rng.choice(d.names("whole", "real", "text", "truth"))
    column = d.columns[name]
    if column.family == "truth":
        return d.rng.choice([name, f"not {name}"])
    value = column.draw(d.rng)
    if column.family == "text":
        return f'{name} {d.rng.choice(["==", "!="])} "{value}"'
    return f"{name} {d.rng.choice(['<', '<=', '>', '>=', '<=', '>=', '=='])} {float(value):g}"


def _conditional(d: _Drawing) -> str | None:
    condition = _simple(d)
    if d.rng.random() < 0.3:
        condition = f"{condition} {d.rng.choice(['and', 'or'])} {_simple(d)}"
    body = d.rng.choice([_simple, _simple, _linear, _order, _interval, _set])(d)
    return f"if {condition}: {body}" if body else None


FORMS: dict[str, Callable[[_Drawing], str | None]] = {
    "inequality": _linear, "strict": _strict, "order": _order, "ratio": _ratio,
    "guarded ratio": _guarded, "bounded product": _bounded_product, "interval": _interval,
    "set": _set, "tuples": _pairs, "dates": _dates, "either": _either, "conditional": _conditional,
}  # fmt: skip


def make_case(seed: int, *, generous: bool | None = None, publish: bool | None = None) -> Case:
    """Draw a case; settings and file are drawn too, unless they are given."""
    d = _Drawing(seed)
    rng = d.rng
    d.add_columns()
    if texts := d.names("text"):
        d.strata = [rng.choice(texts)] if rng.random() < 0.25 else []
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        d.add_derived()
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3, 4])):
        d.add_rule()
    k, dirty = rng.choice([2, 3, 3, 4, 5]), rng.random() < 0.5
    records = _records(d, k, dirty)
    _put_missing(d, records, k)
    masked = [name for name in d.columns if name not in d.strata]
    options: dict[str, Any] = {"k": k, "grouping": rng.choice(GROUPINGS)}
    if rng.random() < 0.1:
        options["distance"] = "representation"
    if rng.random() < 0.1:
        options["scale"] = "range"
    blocks = _blocks(d, masked) if rng.random() < 0.12 else [masked]
    if len(blocks) > 1:
        options["blocks"] = blocks
    given = rng.random() < 0.5 if generous is None else generous
    options |= GENEROUS if given else {}
    untouched, weights, extra = [], None, {}
    if rng.random() < 0.3:
        extra["unit"] = Column("whole", {"polars": "Int64"}.get(d.library, "int64"))
        untouched.append("unit")
    if rng.random() < 0.15:
        extra["weight"] = Column("real", {"polars": "Float64"}.get(d.library, "float64"))
        weights = "weight"
    for number, record in enumerate(records):
        record |= {"unit": number} if "unit" in extra else {}
        record |= {"weight": 1 + number % 4 / 2} if "weight" in extra else {}
    file = rng.choice(FORMATS) if (rng.random() < 0.12 if publish is None else publish) else None
    return Case(
        seed=seed, library=d.library, columns=d.columns | extra, records=records,
        witness=d.witness, rules=d.rules, kinds=d.kinds, options=options, strata=d.strata,
        blocks=blocks, untouched=[*untouched, *(["weight"] if weights else [])], weights=weights,
        dirty=dirty, file=file,
    )  # fmt: skip


def _records(d: _Drawing, k: int, dirty: bool) -> list[dict[str, Any]]:
    rng = d.rng
    n = rng.randint(2 * k, 50)
    strata: list[dict[str, Any]] = [{}]
    if d.strata:
        name = d.strata[0]
        strata = [{name: value} for value in d.columns[name].values]
        n = max(n, (k + 2) * len(strata))
    own = [strata[i % len(strata)] if i < (k + 2) * len(strata) else rng.choice(strata)
           for i in range(n)]  # fmt: skip
    records: list[dict[str, Any]] = []
    for stratum in own:
        start = rng.choice(records) if records and rng.random() < 0.7 else d.witness
        if not all(judge(rule, {**start, **stratum}) is not False for rule in d.rules):
            start = d.witness
        records.append(d.record(start, stratum))
    if dirty:
        share = rng.choice([0.1, 0.3, 0.6, 1.0]) if rng.random() < 0.9 else 0.0
        records = [d.dirty(r) if rng.random() < share else r for r in records]
    return records


def _put_missing(d: _Drawing, records: list[dict[str, Any]], k: int) -> None:
    """Make cells missing, by patterns that at least k records of a stratum have, or not quite."""
    rng = d.rng
    if rng.random() < 0.7:
        return
    able = [n for n, c in d.columns.items() if n not in d.strata and c.dtype not in NEVER_MISSING]
    if not able:
        return
    gone = rng.sample(able, min(len(able), rng.choice([1, 1, 2])))
    rare = rng.random() < 0.1
    for value in {tuple(r[s] for s in d.strata) for r in records}:
        own = [r for r in records if tuple(r[s] for s in d.strata) == value]
        if len(own) >= 2 * k:
            for record in own[: 1 if rare else rng.randint(k, len(own) - k)]:
                record |= dict.fromkeys(gone)


def _blocks(d: _Drawing, masked: list[str]) -> list[list[str]]:
    """Return blocks such that no rule names columns of two."""
    sets = [{name} for name in masked]
    for rule in d.rules:
        named = {name for name in masked if _names_in(rule, name)}
        touched = [own for own in sets if own & named]
        sets = [own for own in sets if not own & named] + (
            [set().union(*touched)] if touched else []
        )
    return [[name for name in masked if name in own] for own in sets]


def _names_in(rule: str, name: str) -> bool:
    return re.search(rf"(?<![\w\"]){name}(?![\w\"])", rule) is not None
