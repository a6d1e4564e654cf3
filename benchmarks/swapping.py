"""Values that change places: shuffling beside rank swapping, record swapping beside PRAM.

    python -m benchmarks.swapping

Numbers: Census, by `tessella.explore` with named candidates. Places: eusilc, households in the nine
Länder of Austria and the three groups of them; figures are counted by plain pandas, and the worst
of the quick attacks is told, of an intruder who knows place, sex, age, citizenship and size.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import table as page_table
from tessella import Schema, Study
from tessella.datasets import load_census
from tessella.explore import Candidate, explore
from tessella.masking import RecordSwapping, Shuffling
from tessella.risk import assess

PEOPLE = Path(os.environ.get("TESSELLA_DATA", "")) / "people"
EAST = ("Burgenland", "Lower Austria", "Vienna")
SOUTH = ("Carinthia", "Styria")
PLACE, KEYS = ["group", "land"], ["sex", "age", "citizen", "size"]
PROFILES = [["size", "sex", "age", "citizen"], ["size", "sex", "age"], ["size", "sex"], ["size"]]
NUMBERS = (
    [Candidate("rank swapping", percent=p) for p in (5, 20)]
    + [Candidate("shuffling", amount=a) for a in (0.1, 0.2, 0.5, 1)]
    + [Candidate("noise", amount=a) for a in (0.1, 0.5)]
    + [Candidate("protect", k=k, grouping="mdav") for k in (3, 10)]
)


def numbers() -> str:
    found = explore(load_census(), candidates=NUMBERS, random_state=0)
    return page_table(
        {
            "candidate": str(point.candidate), "values": f"{point.losses['values']:.1f}",
            "SSE/SST": f"{point.losses['sse_sst']:.1f}", "PIL": f"{point.losses['pil']:.1f}",
            "risk": f"{point.risk:.1f}", "worst attack": point.worst,
        }
        for point in found
    )  # fmt: skip


def households() -> pd.DataFrame:
    silc = pd.read_csv(PEOPLE / "eusilc.csv", sep=";", decimal=",")
    land = silc["db040"]
    group = np.where(land.isin(EAST), "East", np.where(land.isin(SOUTH), "South", "West"))
    return pd.DataFrame({
        "home": silc["db030"], "group": group, "land": land, "sex": silc["rb090"],
        "age": (silc["age"] // 10 * 10), "citizen": silc["pb220a"].fillna("child"),
        "size": silc["hsize"], "income": silc["eqIncome"],
    })  # fmt: skip


def schema_of(table: pd.DataFrame) -> Schema:
    kinds = {name: {"kind": "nominal", "role": "untouched"} for name in table}
    places = {name: {"kind": "nominal", "role": "quasi-identifier"} for name in PLACE}
    own = {"home": {"role": "unit"}, "income": {"kind": "continuous", "role": "confidential"}}
    return Schema.guess(table).override({**kinds, **places, **own})


STEPS: dict[str, dict[str, Any]] = {
    "record swapping, k = 3, rate 0": {"k": 3, "rate": 0},
    "record swapping, k = 3, rate 0.05": {"k": 3, "rate": 0.05},
    "record swapping, k = 3, rate 0.2": {"k": 3, "rate": 0.2},
    "record swapping, k = 10, rate 0.2": {"k": 10, "rate": 0.2},
}


def places() -> str:
    table = households()
    rows = [row_of("as it is", table, table, None, 0.0, "")]
    for name, options in STEPS.items():
        given = {"geography": PLACE, "keys": KEYS, "similar": PROFILES, **options}
        rows.append(masked(name, table, "record swapping", given))
    rows.append(masked("invariant PRAM, p = 0.8", table, "pram",
                       {"p": 0.8, "invariant": True, "columns": ["land"]}))  # fmt: skip
    return page_table(rows)


def masked(name: str, table: pd.DataFrame, method: str, given: dict[str, Any]) -> dict[str, Any]:
    began = perf_counter()
    with warnings.catch_warnings(action="ignore"):
        study = Study(table, schema=schema_of(table), random_state=0).do(method, **given)
    seconds = perf_counter() - began
    return row_of(name, table, study.table, study.disclosed, seconds, str(study.protocol))


def row_of(
    name: str, table: pd.DataFrame, released: pd.DataFrame, method: Any, seconds: float, told: str
) -> dict[str, Any]:
    known = [*PLACE, *KEYS]
    found = assess(table[known], released[known], known=known, method=method, effort="quick",
                   random_state=0)  # fmt: skip
    homes = released.assign(home=table["home"]).groupby("home")["land"].nunique()
    income = [one.groupby(table.land if one is table else one.land).income.mean()
              for one in (table, released.assign(income=table.income))]  # fmt: skip
    return {
        "masked by": name,
        "another Land": f"{100 * (table.land != released.land).mean():.1f} %",
        "households torn": int((homes > 1).sum()),
        "Land × sex × age": f"{100 * moved(table, released, ['land', 'sex', 'age']):.2f} %",
        "Land × citizenship": f"{100 * moved(table, released, ['land', 'citizen']):.2f} %",
        "mean income of a Land, at most": f"{100 * (income[1] / income[0] - 1).abs().max():.1f} %",
        "found": f"{100 * found.value:.1f} %",
        "by": found.worst.name if found.worst else "",
        "seconds": f"{seconds:.1f}" if told else "",
        "without donor": told.rpartition("of which ")[2].split(" ")[0] if "donor" in told else "",
    }


def moved(table: pd.DataFrame, released: pd.DataFrame, names: list[str]) -> float:
    """The share of records that a table of counts has in other cells."""
    before, after = (one.groupby(names).size() for one in (table, released))
    return float(before.sub(after, fill_value=0).abs().sum() / 2 / len(table))


def sizes() -> str:
    rows = []
    for n in (100_000, 1_000_000):
        rng = np.random.default_rng(0)
        unit = np.sort(rng.integers(0, n // 2, n))
        _, home = np.unique(unit, return_inverse=True)
        town = rng.integers(0, 500, home.max() + 1)[home]
        table = pd.DataFrame({
            "home": home, "state": town // 50, "town": town, "sex": rng.integers(0, 2, n),
            "age": rng.integers(0, 20, n),
        })  # fmt: skip
        kinds = {name: {"kind": "nominal", "role": "quasi-identifier"} for name in table}
        schema = Schema.guess(table).override({**kinds, "home": {"role": "unit"}})
        swapping = RecordSwapping(
            ["state", "town"], keys=["sex", "age"], similar=[["sex"], []], rate=0.1, schema=schema,
            random_state=0,
        )  # fmt: skip
        X = rng.normal(size=(n, 5))
        timed = {}
        with warnings.catch_warnings(action="ignore"):
            for name, masker, own in (
                ("record swapping, 500 towns", swapping, table),
                ("shuffling, 5 columns", Shuffling(random_state=0), X),
            ):
                began = perf_counter()
                masker.fit_transform(own)
                timed[name] = f"{perf_counter() - began:.1f} s"
        rows.append({"records": f"{n:,}", **timed})
    return page_table(rows)


def page() -> str:
    return (
        "## Values and places that are exchanged\n\nCensus, all 13 columns, as in the map above: "
        f"loss and the share that the worst attack finds, in per cent.\n\n{numbers()}\n\n"
        "eusilc, 14,827 persons in 6,000 households; geography: three groups of Länder, nine "
        "Länder. Counted are records in other cells of a table of counts, and who is found by the "
        "worst of the quick attacks, the one that knows the method among them. PRAM draws the Land "
        f"of each person on its own.\n\n{places()}\n\nSizes:\n\n{sizes()}"
    )


if __name__ == "__main__":
    print(page())
