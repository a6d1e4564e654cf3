"""Identifiers, codes, special codes, weights and units are recognised; income is none of these."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tessella import Rules, Schema
from tessella.frame import Table
from tessella.io import Variable, read_file
from tessella.release.roles import as_numbers
from tessella.schema import Column

N = 400
CHANCE = np.random.default_rng(0)
PEOPLE = Path(os.environ.get("TESSELLA_DATA", ""), "people")


def guess(name: Any, values: Any, **described: Any) -> Column:
    known = {name: Variable(**described)} if described else None
    return Schema.guess(pd.DataFrame({name: values}), metadata=known)[name]


def drawn(*values: Any, shares: Any = None, n: int = N) -> Any:
    return np.random.default_rng(1).choice(values, n, p=shares)


def apart(low: int, high: int, n: int = N) -> Any:
    """Different whole numbers, evenly spread, in any order."""
    return low + np.random.default_rng(2).choice(high - low, n, replace=False)


FIRST = ["Ana", "Luis", "Eva", "Jon", "Mia", "Tom", "Zoe", "Leo", "Ida", "Max", "Pau", "Kim"]
LAST = ["García", "Müller", "Rossi", "Novak", "Silva", "Dubois", "Jensen", "López", "Berg", "Vila"]
LAST += ["Weber", "Costa"]
NAMES = [f"{FIRST[i % 12]} {LAST[(i * 7 + i // 12) % 12]}" for i in range(N)]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rb030", 100 * np.repeat(np.arange(1, N // 2 + 1), 2) + np.tile([1, 2], N // 2)),
        ("x", apart(1, 10 * N)),  # in any order: repeats less than by chance
        ("x", np.sort(apart(1, 10**6)).astype(float)),  # rises with the records, as floats
        ("x", apart(6 * 10**8, 7 * 10**8)),  # telephone numbers as numbers
        ("school number", apart(1, 10**6)),
        ("Número", apart(1, 10**6)),
        ("Matrikelnummer", apart(1, 10**6)),
        ("NIF", [f"{i:08d}K" for i in apart(1, 10**7)]),
        ("matrícula", [f"a{i // 90}b{i % 90}" for i in range(N)]),
        ("Kennung", drawn(*range(1000, 1002), n=20)),  # few records: few values say nothing
        ("district", np.sort(CHANCE.lognormal(9, 1, N).astype(int))),  # a record for each
        ("apellidos", drawn("Roca", "Pons", "Vila")),
        ("Vorname", drawn("Jo", "Al", "Mia")),
        ("x", [f"user{i % 90}@mail.org" for i in range(N)]),
        ("x", [f"10.0.{i % 40}.{i % 7}" for i in range(N)]),
        ("x", [f"ES91 2100 0418 4502 0005 {i % 97:04d}" for i in range(N)]),
        ("x", [f"+34 977 55 {i % 89:04d}" for i in range(N)]),
        ("x", [f"41.{1000 + i % 80}, 1.{2000 + i % 80}" for i in range(N)]),
        ("x", NAMES),
        ("latitude", 41 + CHANCE.random(N)),
        ("Longitud", 1 + CHANCE.random(N)),
        ("PWGTP17", drawn(3, 5, 9)),
    ],
)
def test_identifiers(name: str, values: Any) -> None:
    column = guess(name, values)
    assert column.role == "identifier", column
    assert "must not be released" in column.why


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("income", CHANCE.lognormal(10, 1, N).round(2), "continuous"),
        ("income", CHANCE.permutation(np.unique(CHANCE.lognormal(8, 1, N).astype(int))), "integer"),
        ("wealth", np.sort(CHANCE.lognormal(10, 1, N)).astype(int), "integer"),
        ("age", CHANCE.integers(0, 95, N), "integer"),
        ("age", CHANCE.integers(18, 23, N), "integer"),
        ("year", drawn(2018, 2019, 2020), "integer"),
        ("x", np.arange(1601, 1601 + N), "identifier"),
        ("hours", drawn(*range(61), 70, 80), "integer"),
        ("birth", pd.to_datetime("1950-01-01") + pd.to_timedelta(apart(0, 20000), "D"), "ordinal"),
        ("town", drawn("Reus", "New York", "Valls"), "nominal"),
        ("number of children", drawn(0, 1, 2, 3, shares=[0.5, 0.25, 0.15, 0.1]), "ordinal"),
        ("has phone", drawn("yes", "no"), "nominal"),
        ("person", drawn(1, 2, 3, 4, shares=[0.4, 0.3, 0.2, 0.1]), "ordinal"),
        ("balance", CHANCE.normal(0, 1, N), "continuous"),
        ("region_id", drawn(*range(1, 31)), "nominal"),
        ("PID", drawn(*range(7)), "ordinal"),  # a party: seven values name nobody
        ("CPR", drawn("yes", "no"), "nominal"),
        ("region_name", drawn(*NAMES[:30]), "nominal"),
        ("years of school", drawn(*range(20)), "integer"),
        ("school", drawn(*range(20)), "integer"),  # its years, where nothing else tells
        ("city size", drawn(*range(5, 90)), "integer"),
        ("number of states", drawn(*range(45)), "integer"),
    ],
)
def test_what_is_masked_and_not_dropped(name: str, values: Any, kind: str) -> None:
    column = guess(name, values)
    if kind == "identifier":
        assert column.role == kind
        return
    assert (column.role, column.kind) == ("quasi-identifier", kind), column.why
    assert column.missing == ()


@pytest.mark.parametrize(
    ("name", "values", "kind", "unsure"),
    [
        ("sex", drawn(1, 2), "nominal", False),
        ("flag", drawn(0.0, 1.0), "nominal", False),
        ("roof", drawn(2, 4, 5, 6, 9), "nominal", True),
        ("race", drawn(1, 2, 3, 4, 5, shares=[0.6, 0.1, 0.02, 0.03, 0.25]), "nominal", True),
        ("q1", drawn(1, 2, 3, 97), "nominal", True),
        ("q1", drawn(1, 2, 3, 4, 5, 8, 9), "nominal", True),
        ("satisfaction", drawn(1, 2, 3, 4, 5, shares=[0.1, 0.2, 0.4, 0.2, 0.1]), "ordinal", False),
        ("fips", drawn(*range(1, 45, 2)), "nominal", False),
        ("COMPCODE", drawn(*range(100, 900, 7)), "nominal", False),
        ("Código postal", drawn(*range(43001, 43051)), "nominal", False),
        ("plz", drawn(*range(10115, 10199)), "nominal", False),
        ("cnum", drawn(*range(1, 58)), "nominal", True),
        ("state", drawn(*range(11, 62)), "nominal", True),
        ("sector", drawn(*range(1, 16)), "nominal", True),
        ("birthplace", drawn(*range(1, 50)), "nominal", True),
        ("x", drawn(1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377), "ordinal", True),
    ],
)  # fmt: skip
def test_codes(name: str, values: Any, kind: str, unsure: bool) -> None:
    column = guess(name, values)
    assert (column.kind, column.role) == (kind, "quasi-identifier"), column.why
    assert column.unsure == unsure
    assert column.missing == ()


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([*CHANCE.integers(0, 91, N), *[97] * 40], (97,)),
        ([*CHANCE.integers(0, 91, N), *[97] * 30, *[98] * 20, *[99] * 5], (97, 98, 99)),
        ([*CHANCE.integers(0, 91, N), 97], ()),  # the oldest
        ([*CHANCE.integers(0, 99, N), 99], ()),
        ([*CHANCE.integers(0, 2000, N), *[-9] * 12, -8], (-9, -8)),
        ([*CHANCE.integers(0, 2000, N), -9], ()),  # a loss
        ([*CHANCE.integers(-50, 2000, N), *[-9] * 12], ()),
        ([*CHANCE.lognormal(10, 0.5, N).astype(int), *[9999999] * 9], (9999999,)),
        ([*CHANCE.lognormal(3, 0.5, N).round(2), *[999.0] * 9], (999.0,)),
        ([*CHANCE.integers(0, 101, N), *[100] * 20], ()),  # per cent
    ],
)
def test_special_codes_of_numbers_are_missing(values: list[Any], codes: tuple[Any, ...]) -> None:
    column = guess("x", values)
    assert column.missing == codes
    assert column.unsure == bool(codes)


def test_labels_of_values_and_variables_are_read() -> None:
    ids = guess("v1", apart(1, 10**6), label="Personal ID")
    assert (ids.role, "labelled" in ids.why) == ("identifier", True)
    assert guess("v1", np.repeat(apart(1, 10**6, 100), 4), label="Household ID").role == "unit"
    assert guess("v2", drawn(1, 2, 3), label="has an ID card").role == "quasi-identifier"
    assert guess("v3", drawn(1.5, 2.5), label="Personal cross-sectional weight").role == "weight"
    assert guess("v4", CHANCE.normal(70, 9, N), label="Weight in kg").role == "quasi-identifier"
    numbers = [*range(1, 301), *[98] * 100]
    assert guess("v5", numbers, labels={98: "Don't know"}).missing == (98,)
    assert guess("v6", drawn(*range(1, 30)), labels=dict.fromkeys(range(30), "x")).kind == "nominal"
    scale = guess("v7", drawn(*range(1, 30)), labels=dict.fromkeys(range(30), "x"), level="scale")
    assert scale.kind == "ordinal"
    assert guess("v8", drawn(*range(30)), label="NACE code of the firm").kind == "nominal"


@pytest.mark.parametrize(
    ("name", "unsure"),
    [
        *((name, False) for name in ("RB050", "db090", "PB040", "dweight", "pspwght", "anweight",
          "COEFF", "v005", "hv005", "PWGTP", "WGTP", "WTFINL", "MARSUPWT", "A_FNLWGT", "fnlwgt",
          "sampling_weight", "survey weight", "pw")),
        *((name, True) for name in ("weight", "wt", "Gewicht", "poids")),
    ],
)  # fmt: skip
def test_weights(name: str, unsure: bool) -> None:
    column = guess(name, drawn(120, 150, 310))
    assert (column.role, column.unsure) == ("weight", unsure)
    unique = guess(name, CHANCE.lognormal(3, 1, N))
    assert (unique.role, unique.unsure) == ("weight", True)  # would tell most records apart


def test_the_unit_is_the_household_or_the_smallest_that_repeats() -> None:
    homes, visits = np.repeat(np.arange(100), 4), np.tile(np.repeat([0, 1], 2), 100)
    table = pd.DataFrame({"person_id": 2 * homes + visits, "account_id": homes // 5, "x": 1.5})
    roles = {column.name: column.role for column in Schema.guess(table)}
    assert roles == {"person_id": "unit", "account_id": "identifier", "x": "quasi-identifier"}
    roles = {column.name: column.role for column in Schema.guess(table.assign(hogar=homes))}
    assert roles["hogar"] == "unit"
    assert roles["person_id"] == "identifier"
    alone = Schema.guess(pd.DataFrame({"hhid": np.arange(N), "x": 1.5}))
    assert alone["hhid"].role == "identifier"
    lacking = Schema.guess(pd.DataFrame({"hhid": [1.0, 1.0, 2.0, np.nan] * 100}))
    assert lacking["hhid"].role == "identifier"  # who has no unit cannot be counted


def panel(units: int = 60, years: int = 6, shuffled: bool = False) -> pd.DataFrame:
    """Units with numbers in no order, a sector each, and an amount and classes of it each year."""
    chance, n = np.random.default_rng(5), units * years
    own = np.repeat(chance.choice(9000, units, replace=False) + 1000, years)
    table = pd.DataFrame({"u": own, "year": np.tile(np.arange(2001, 2001 + years), units)})
    table["sector"] = np.repeat(chance.integers(1, 6, units), years)
    table["sales"] = chance.integers(20, 60, n)
    table["class"] = table["sales"] // 10
    table["square"] = table["sales"] ** 2
    return table.sample(frac=1, random_state=1) if shuffled else table


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_unit_is_found_by_what_counts_and_describes_its_records(shuffled: bool) -> None:
    table = panel(shuffled=shuffled)
    schema = Schema.guess(table)
    assert schema["u"].role == "unit"
    assert "'year' never the same twice" in schema["u"].why
    assert "'sector' always the same" in schema["u"].why
    assert {c.role for c in schema if c.name != "u"} == {"quasi-identifier"}
    # An amount with its classes and its square stays one, with a unit and without.
    assert schema["sales"].kind == Schema.guess(table.drop(columns="u"))["sales"].kind == "integer"
    assert Schema.guess(table.astype({"u": str}))["u"].role == "unit"
    # The same numbers in any order of the records are an amount.
    mixed = table.assign(u=np.random.default_rng(6).permutation(table["u"]))
    assert Schema.guess(mixed)["u"].role == "quasi-identifier"


def test_an_amount_of_a_unit_is_no_code_and_no_unit() -> None:
    """Records of a person share the time to death as they share sex and place."""
    chance, table = np.random.default_rng(7), panel(200, 4)
    own = np.repeat(np.arange(200), 4)
    table["days"] = chance.integers(100, 5000, 200)[own]
    table["sex"] = chance.integers(1, 3, 200)[own]
    schema = Schema.guess(table.rename(columns={"u": "patient"}))
    assert schema["patient"].role == "unit"
    assert (schema["days"].role, schema["days"].kind) == ("quasi-identifier", "integer")


def test_numbers_that_other_columns_describe_are_codes() -> None:
    chance = np.random.default_rng(8)
    school = chance.integers(0, 40, 2000)
    table = pd.DataFrame(
        {
            "school": 100 + school,
            "mean": chance.normal(size=40)[school],
            "score": chance.normal(size=2000),
        }
    )
    assert Schema.guess(table)["school"].kind == "nominal"
    assert Schema.guess(table.drop(columns="mean"))["school"].kind == "integer"


@pytest.mark.parametrize("seed", range(20))
def test_columns_by_chance_have_no_relations(seed: int) -> None:
    chance = np.random.default_rng(seed)
    n = int(chance.integers(60, 3000))
    spread = {f"x{i}": chance.integers(0, chance.integers(13, n), n) for i in range(6)}
    few = {f"y{i}": chance.integers(0, chance.integers(2, 40), n) for i in range(6)}
    schema = Schema.guess(pd.DataFrame(spread | few))
    assert {column.role for column in schema} == {"quasi-identifier"}
    assert all("each with its own" not in column.why for column in schema)


def test_an_identifier_that_lacks_values_says_how_units_are_counted() -> None:
    ids = np.where(np.arange(N) < 5, np.nan, np.repeat(np.arange(N // 4), 4))
    column = guess("person_id", ids)
    assert column.role == "identifier"
    assert "lacks 5 values: fill them to count units" in column.why


@pytest.mark.skipif(not PEOPLE.is_dir(), reason="TESSELLA_DATA has no folder people")
@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("testdata.csv", {"ori_hid": "unit", "sampling_weight": "weight", "expend": None}),
        ("eusilc.csv", {"db030": "unit", "rb030": "identifier", "rb050": "weight", "hsize": None}),
        ("eus_small.sav", {"db030": "unit", "rb030": "identifier", "eqIncome": None}),
        ("cps1985.csv", {"wage": None, "age": None}),
        ("apistrat.dta", {"snum": "identifier", "cds": "identifier", "pw": "weight",
                          "api00": None, "enroll": None}),
        ("../census.csv", {"AGI": None, "EMCONTRB": None, "AFNLWGT": "weight"}),
        ("../eia.csv", {"UTILITYID": "unit", "UTILNAME": "identifier", "TOTSALES": None}),
        ("../tarragona.csv", {"SALES": None, "NET.PROFIT": None}),
    ],
)  # fmt: skip
def test_known_tables(file: str, expected: dict[str, str | None]) -> None:
    schema = read_file(PEOPLE / file).schema()
    found = {name: schema[name].role for name in expected}
    assert found == {name: role or "quasi-identifier" for name, role in expected.items()}


def test_a_number_that_a_rule_computes_with_is_no_unit():
    chance = np.random.default_rng(0)
    a = np.repeat(chance.permutation(1000)[:60], 3)
    table = pd.DataFrame({
        "a": a, "year": np.tile([2001, 2002, 2003], 60),
        "sector": np.repeat(chance.choice(list("xyz"), 60), 3),
        "b": a + chance.integers(0, 90, 180),
    })  # fmt: skip
    known = Schema.guess(table)
    assert known["a"].role == "unit"
    for lines, role in ((["a <= b"], "quasi-identifier"), (["b >= 0"], "unit")):
        assert as_numbers(known, Rules(lines), Table.read(table))["a"].role == role
