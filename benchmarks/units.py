"""k respondents against k records: what it costs that groups hold k utilities, or k households.

    python -m benchmarks.units

Everything is counted by plain pandas, in the released table beside the units of the original: units
in each group of equal records, columns that were constant within units, heads, and households that
can be rebuilt from the order of the written file.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import table as page_table
from tessella import Schema, protect
from tessella.datasets import load_eia

PEOPLE = Path(os.environ.get("TESSELLA_DATA", "")) / "people"
EFFORT = {"options": {"effort": "quick"}}


def load() -> dict[str, tuple[pd.DataFrame, str, list[str]]]:
    """Return for each table its records, its unit and rules."""
    silc = pd.read_csv(PEOPLE / "eusilc.csv", sep=";", decimal=",").drop(columns=["rb030"])
    test = pd.read_csv(PEOPLE / "testdata.csv")
    return {
        "EIA": (load_eia(), "UTILITYID", []),
        "eusilc": (silc, "db030", []),
        "testdata": (test, "ori_hid", ["count(relat == 1) == 1 by ori_hid"]),
    }


def measure(name: str, table: pd.DataFrame, unit: str, rules: list[str], k: int) -> dict[str, Any]:
    """Protect a table, counting units and counting records, and count again by pandas."""
    schema = Schema.guess(table).with_unit(unit)
    weights = [column.name for column in schema if column.role == "weight"]
    schema = schema.override({n: {"role": "weight" if n == weights[0] else "untouched"}
                              for n in weights})  # fmt: skip
    masked = schema.names("quasi-identifier")
    one_head = table.groupby(unit)["relat"].transform(lambda own: (own == 1).sum()) == 1 \
        if rules else None  # fmt: skip
    if rules and not bool(one_head.all()):
        rules = [rules[0].replace("== 1 by", ">= 0 by")]  # counts stay what they were
    began = perf_counter()
    release = protect(table, k=k, unit=unit, schema=schema, rules=rules, random_state=0, **EFFORT)
    seconds = perf_counter() - began
    left = table.drop(columns=unit)
    plain = protect(
        left, k=k, schema=Schema([schema[n] for n in left.columns]), random_state=0, **EFFORT
    )
    own = table[unit].to_numpy()
    rows = {}
    for how, found in (("records", plain), ("units", release)):
        groups = found.table[masked].groupby(masked, dropna=False, sort=False).ngroup()
        units = pd.Series(own).groupby(groups.to_numpy()).nunique()
        rows[how] = {"below k": f"{100 * (units < k).mean():.1f} %", "loss": f"{found.loss:.2f}"}
    constant = [n for n in masked if (table.groupby(unit)[n].nunique(dropna=False) == 1).all()]
    out = release.table.assign(**{unit: own})
    kept = [bool((out.groupby(unit)[n].nunique(dropna=False) == 1).all()) for n in constant]
    heads = ""
    if one_head is not None:
        after = out.groupby(unit)["relat"].transform(lambda own: (own == 1).sum()) == 1
        heads = f"{100 * after[one_head].mean():.1f} %"
    return {
        "table": name, "k": k, "groups below k units, counting records": rows["records"]["below k"],
        "counting units": rows["units"]["below k"],
        "loss, counting records": rows["records"]["loss"],
        "loss, counting units": rows["units"]["loss"], "constant columns": len(constant),
        "still constant": sum(kept), "one head kept": heads,
        "rebuilt, kept order": rebuilt(out, unit, np.arange(len(out))),
        "rebuilt, shuffled": rebuilt(out, unit, np.random.default_rng(1).permutation(len(out))),
        "seconds": f"{seconds:.0f}",
    }  # fmt: skip


def rebuilt(out: pd.DataFrame, unit: str, order: np.ndarray) -> str:
    """Cut the written order where `relat` is 1, and count the households that are found exactly."""
    if "relat" not in out:
        return ""
    placed = out.iloc[order]
    runs = (placed["relat"] == 1).cumsum().to_numpy()
    found = placed.groupby(runs)[unit].agg(["nunique", "size", "first"])
    sizes = out[unit].value_counts()
    exact = (found["nunique"] == 1) & (found["size"] == sizes.loc[found["first"]].to_numpy())
    return f"{100 * exact.sum() / len(sizes):.1f} %"


def page(names: list[str] | None = None) -> str:
    rows = []
    for name, (table, unit, rules) in load().items():
        for k in (3, 5) if names is None or name in names else ():
            rows.append(measure(name, table, unit, rules, k))
            print(rows[-1], file=sys.stderr, flush=True)
    return (
        "## Units\n\n`protect` with quick effort, counted by pandas in what is released: EIA by "
        "utility, eusilc and testdata by household. *Rebuilt*: households found exactly where the "
        "written order is cut at heads.\n\n" + page_table(rows)
    )


if __name__ == "__main__":
    print(page(sys.argv[1:] or None))
