"""Columns of every dtype go through a study: kept as they are, masked, or refused in our words."""

from __future__ import annotations

import datetime as dt
import operator as op
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tessella import Schema, Study, make_plan, protect
from tessella.exceptions import BadTableError, TessellaError
from tessella.explore import Candidate, explore
from tessella.frame import View
from tessella.io import read_file, write_file
from tessella.loss import measure
from tessella.reports import external_report, internal_report, summarise
from tessella.risk import assess
from tessella.rules import Rules

N = 24
X = np.random.default_rng(0).normal(50, 10, N)


@pytest.mark.parametrize(
    "values",
    [["a", "b"], ["a", "b", None], ["a", np.nan], ["a", pd.NA], ["a", 3], [True, False, None],
     ["a", None, np.nan], [Decimal("1.5"), Decimal("2.5")], [dt.date(2020, 1, 1)], [None]],
)  # fmt: skip
@pytest.mark.parametrize("index", [range(N), [7] * N])
def test_object_columns_stay_object_columns(values, index):
    # a bug once met: pandas 3 made `str` of texts that were put back, and the audit refused it
    column = pd.Series([values[i % len(values)] for i in range(N)], dtype=object)
    table = pd.DataFrame({"x": X, "g": column}).set_axis(index)
    released = protect(table, k=3, random_state=0).table
    assert released["g"].dtype == object
    assert released.index.equals(table.index)
    assert set(map(repr, released["g"])) <= set(map(repr, table["g"]))
    assert (released["g"].isna() == table["g"].isna()).all()


def test_an_object_column_whose_rare_values_are_gone_is_still_one():
    # "other" objects before, all of them texts after: the dtype is the same
    table = pd.DataFrame({"x": X, "g": pd.Series(["a"] * (N - 1) + [3], dtype=object)})
    released = protect(table, k=3, random_state=0).table
    assert set(released["g"]) == {"a"}


MISSING: dict[str, Any] = {
    "date": pd.Series([pd.NaT] * N, dtype="datetime64[ns]"),
    "duration": pd.Series([pd.NaT] * N, dtype="timedelta64[ns]"),
    "ordered": pd.Series(pd.Categorical([None] * N, categories=["a", "b"], ordered=True)),
    "category": pd.Series(pd.Categorical([None] * N, categories=["a", "b"])),
    "text": pd.Series([None] * N, dtype="str"),
    "object": pd.Series([None] * N, dtype=object),
    "float": pd.Series([np.nan] * N),
    "single": pd.Series([np.nan] * N, dtype="float32"),
    "integer": pd.Series([None] * N, dtype="Int64"),
    "boolean": pd.Series([None] * N, dtype="boolean"),
    "decimal": pd.Series([None] * N, dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
    "day": pd.Series([None] * N, dtype=pd.ArrowDtype(pa.date32())),
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_column_without_any_value_goes_all_the_way(kind):
    # a bug once met: "Input X contains NaN" of scikit-learn for dates and ordered categories
    table = pd.DataFrame({"x": X, "y": X[::-1], "g": MISSING[kind]})
    study = Study(table, random_state=0).do("protect", k=3, grouping="mdav")
    release = study.release()
    assert release.table["g"].isna().all()
    assert release.table["g"].dtype == table["g"].dtype
    make_plan(Schema.guess(table), Rules(), k=3).explain()
    loss = measure(table, release.table)
    risk = assess(table, release.table, effort="quick", attacks=["k-anonymity", "gower"])
    summary = summarise(study, release, loss=loss, risk=risk, pictures=True)
    assert "<html" in internal_report(summary)
    assert "<html" in external_report(summary)


def test_a_column_without_any_value_is_explored():
    table = pd.DataFrame({"x": X, "y": X[::-1], "g": MISSING["ordered"]})
    tried = [Candidate("protect", k=3, grouping="mdav")]
    found = explore(table, candidates=tried, attacks=["gower"], n_jobs=1, random_state=0)
    assert [point.tried for point in found] == [True]


@pytest.mark.parametrize(
    "make",
    [lambda t: t, pl.from_arrow, lambda t: t.to_pandas(types_mapper=pd.ArrowDtype)],
    ids=["pyarrow", "polars", "pandas"],
)
def test_decimals_that_do_not_fit_are_refused_in_our_words(make):
    # a bug once met: ArrowInvalid and InvalidOperationError
    table = make(pa.table({"x": X, "d": pa.array([99999] * N, pa.decimal128(5, 0))}))
    with pytest.raises(BadTableError, match=r"'d' .* outside of its dtype\. Convert it to a wider"):
        protect(table, k=3, rules="d + x >= 200000", fit="project", random_state=0)
    wide = make(pa.table({"x": X, "d": pa.array([99999] * N, pa.decimal128(6, 0))}))
    assert protect(wide, k=3, rules="d + x >= 200000", fit="project", random_state=0)


def test_decimals_are_read_as_the_nearest_floats():
    cents = [Decimal(n).scaleb(-2) for n in range(1, 2000)]
    table = pa.table({"d": pa.array(cents, pa.decimal128(9, 2))})
    for native in (table, pl.from_arrow(table), table.to_pandas(types_mapper=pd.ArrowDtype)):
        assert View(native).numbers("d").tolist() == [float(cent) for cent in cents]


DAYS = [dt.date(2020, 1, 1) + dt.timedelta(int(day)) for day in np.arange(N) * 11 % 300]
EARLIER = [day - dt.timedelta(5) for day in DAYS]


def dated(make: Any, start: list[Any], end: list[Any], **more: Any) -> Any:
    return make(pa.table({"x": X, "start": start, "end": end, **more}))


DATED = {
    "pyarrow": lambda t: t,
    "chunks": lambda t: pa.concat_tables([t.slice(0, 5), t.slice(5)]),
    "polars": pl.from_arrow,
    "pandas": lambda t: t.to_pandas().assign(
        start=lambda f: pd.to_datetime(f.start), end=lambda f: pd.to_datetime(f.end)
    ),
    "arrow in pandas": lambda t: t.to_pandas(types_mapper=pd.ArrowDtype),
}


def dates_of(column: Any) -> list[Any]:
    return column.to_pylist() if isinstance(column, pa.ChunkedArray) else list(column)


@pytest.mark.parametrize("make", DATED.values(), ids=DATED)
@pytest.mark.parametrize("rule", ["start <= end", "start < end", "start == end"])
@pytest.mark.parametrize("wrong", [3, N])
def test_dates_that_break_their_order_are_mended(make, rule, wrong):
    # a bug once met: refused where a part had no record that kept the rule
    end = [*EARLIER[:wrong], *DAYS[wrong:]]
    end = [day + dt.timedelta(9) if at >= wrong else day for at, day in enumerate(end)]
    table = dated(make, DAYS, end)
    released = protect(table, k=3, rules=rule, random_state=0, grouping="mdav").table
    assert type(released) is type(table)
    frame = pd.DataFrame(
        {c: pd.to_datetime(pd.Series(dates_of(released[c]))) for c in ("start", "end")}
    )
    assert frame.eval(rule).all()
    assert frame.groupby(["start", "end"]).size().min() >= 3


def test_dates_are_moved_as_little_as_can_be():
    # by hand: both groups start ten days after they end: the first date stays, the other follows
    start = [dt.date(2020, 1, 21)] * 12 + [dt.date(2021, 1, 21)] * 12
    end = [dt.date(2020, 1, 11)] * 12 + [dt.date(2021, 1, 11)] * 12
    released = protect(dated(DATED["pyarrow"], start, end), k=3, rules="start <= end").table
    assert released["start"].to_pylist() == released["end"].to_pylist() == start


@pytest.mark.parametrize(
    "rules",
    ['start >= "2020-03-01"', ['start >= "2020-03-01"', "start <= end"],
     'if start < "2020-06-01": x <= 50', 'if x > 40: start < end', 'start == "2020-05-05"',
     ["start < end", 'end <= "2020-02-01"'], "if start > end: x == 0"],
)  # fmt: skip
@pytest.mark.parametrize("end", [DAYS, EARLIER])
@pytest.mark.parametrize("fit", ["closed", "project"])
def test_rules_of_dates_at_the_defaults(rules, end, fit):
    table = dated(DATED["pandas"], DAYS, end)
    release = protect(table, k=3, rules=rules, random_state=0, grouping="mdav", fit=fit)
    assert Rules.of(rules).confront(release.table).all_hold


def test_dates_that_nothing_mends_are_refused_with_their_rules():
    rules = ['start <= "2020-01-01"', 'start >= "2020-02-01"']
    with pytest.raises(TessellaError, match="R1"):
        protect(dated(DATED["pandas"], DAYS, EARLIER), k=3, rules=rules, random_state=0)


HEAVY = (pytest.mark.slow, pytest.mark.heavy)
COMPARE = {"<": op.lt, "<=": op.le, "==": op.eq, "!=": op.ne, ">=": op.ge, ">": op.gt}


def rules_of_dates(chance: np.random.Generator, table: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Draw rules that one record, the witness, keeps: a condition on x, and two dates in order."""
    witness = {name: pd.Timestamp(chance.choice(table[name].dropna())) for name in ("a", "b", "c")}
    found = []
    for _ in range(chance.integers(1, 5)):
        left, right = map(str, chance.permutation(list(witness))[:2])
        other = pd.Timestamp("2019-01-01") + pd.Timedelta(days=int(chance.integers(900)))
        if chance.random() < 0.6:
            other = witness[right]
        else:
            right = f'"{other.isoformat()}"'
        ways = [sign for sign, holds in COMPARE.items() if holds(witness[left], other)]
        above = round(chance.normal(50, 10), 1) if chance.random() < 0.4 else -np.inf
        found.append((above, left, str(chance.choice(ways)), right))
    return found


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=HEAVY) for seed in range(8, 60))]
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_random_rules_of_dates_hold_in_the_file(seed, ending, tmp_path):
    chance = np.random.default_rng(seed)
    n, k = int(chance.integers(12, 60)), int(chance.integers(2, 5))
    table = pd.DataFrame({"x": chance.normal(50, 10, n).round(1)})
    for name in ("a", "b", "c"):
        seconds = chance.integers(0, 900, n) * 86400
        seconds += chance.integers(0, 86400, n) * int(chance.random() < 0.2)
        table[name] = pd.Timestamp("2019-01-01") + pd.to_timedelta(seconds, unit="s")
    table.loc[: k * int(chance.integers(3)) - 1, "c"] = pd.NaT
    rules = rules_of_dates(chance, table)
    texts = [f"{a} {o} {b}" if x == -np.inf else f"if x > {x}: {a} {o} {b}" for x, a, o, b in rules]
    released = protect(table, k=k, rules=texts, random_state=seed, grouping="mdav").table
    write_file(released, tmp_path / f"t.{ending}")
    read = read_file(tmp_path / f"t.{ending}").to_pandas()
    for frame in (released, read.assign(**{c: pd.to_datetime(read[c]) for c in "abc"})):
        for above, left, sign, right in rules:
            other = pd.Timestamp(right.strip('"')) if right[0] == '"' else frame[right]
            unknown = frame[left].isna() | (False if right[0] == '"' else frame[right].isna())
            holds = COMPARE[sign](frame[left], other)
            assert (holds | unknown | (frame.x <= above)).all()
        assert frame.groupby(list(frame), dropna=False).size().min() >= k
