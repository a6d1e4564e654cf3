"""What l-diversity and t-closeness cost, and what it saves to have them in the search.

    python -m benchmarks.diversity [k ...]

For each table and each wish: the loss (100 SSE / SST of the scaled keys, in per cent) of groups
that ignore the confidential column, with the share of their records in groups that break the wish;
of the same groups merged with near ones until none breaks it; of MDAV's groups merged, split and
improved; and of a search that keeps it in every move. All effort is quick. Whether a wish is kept
is counted by pandas alone. Times are those of the search, over those of the search without a wish.
Tables are cut to 600 records, drawn by chance.
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
from tessella.diversity import Diversity
from tessella.grouping import MDAV, Search
from tessella.grouping.base import sse_of
from tessella.grouping.diverse import merge_lacking

DATA = Path(os.environ.get("TESSELLA_DATA", ""))
MOST = 600
WISHES: list[dict[str, Any]] = [{"l": 2}, {"l": 3}, {"t": 0.3}, {"t": 0.2}, {"t": 0.1}]

HEAD = [
    "table", "k", "wish", "broken without", "ignored", "merged", "MDAV mended", "search", "saved",
    "gap", "time",
]  # fmt: skip


def load() -> dict[str, tuple[pd.DataFrame, Any, Any]]:
    """Return for each table its keys, a confidential category for l, and an amount for t."""
    census = pd.read_csv(DATA / "census.csv")
    test = pd.read_csv(DATA / "people" / "testdata.csv")
    silc = pd.read_csv(DATA / "people" / "eusilc.csv", sep=";", decimal=",")
    silc = silc.dropna(subset=["pl030", "py010n"])
    nist = pd.read_csv(DATA / "nist" / "national" / "national2019.csv", low_memory=False)
    nist = nist.replace("N", np.nan).dropna(subset=["PINCP", "EDU", "INDP_CAT"])
    nist = nist.astype({"PINCP": float, "EDU": float})
    keys = {
        "Census": ["AGI", "EMCONTRB", "PTOTVAL", "STATETAX", "POTHVAL", "PEARNVAL", "FICA"],
        "testdata": ["age", "expend", "savings", "electcon", "sex"],
        "eusilc": ["age", "hsize", "eqSS", "eqIncome"],
        "NIST": ["AGEP", "SEX", "DENSITY", "EDU", "RAC1P"],
    }
    # Categories of very different frequency: a rare one is what l asks for.
    taxed = pd.cut(census["FEDTAX"], [-np.inf, 0, 2_000, 5_000, 20_000, np.inf], labels=False)
    columns = {
        "Census": (census, taxed, census["FEDTAX"]),
        "testdata": (test, test["relat"], test["income"]),
        "eusilc": (silc, silc["pl030"], silc["py010n"]),
        "NIST": (nist, nist["INDP_CAT"], nist["PINCP"]),
    }  # fmt: skip
    found = {}
    for name, (table, categories, amounts) in columns.items():
        rows = np.random.default_rng(0).permutation(len(table))[:MOST]
        own = table[keys[name]].astype(float).iloc[rows].reset_index(drop=True)
        found[name] = own, *(x.iloc[rows].reset_index(drop=True) for x in (categories, amounts))
    return found


def broken(labels: Any, values: pd.Series, wish: dict[str, Any]) -> float:
    """Return the share of records in groups that break a wish, by pandas alone."""
    whole = values.value_counts(normalize=True).sort_index()
    count = 0
    for _, group in values.groupby(labels):
        if "l" in wish:
            count += len(group) * (group.nunique() < wish["l"])
            continue
        shares = group.value_counts(normalize=True).reindex(whole.index, fill_value=0.0)
        away = (shares - whole).cumsum().abs().sum() / (len(whole) - 1)
        count += len(group) * (away > wish["t"] + 2e-9)
    return count / len(values)


def main(sizes: list[int]) -> None:
    """Measure all tables."""
    rows = []
    for name, (table, categories, amounts) in load().items():
        X = ((table - table.mean()) / table.std(ddof=0)).to_numpy()
        total, weights = float((X**2).sum()), np.ones(len(X))
        for k in sizes:
            Search(k, effort="quick", random_state=0).fit(X)  # compiled
            began = perf_counter()
            plain = Search(k, effort="quick", random_state=0).fit(X)
            usual = perf_counter() - began
            for wish in WISHES:
                values = categories if "l" in wish else amounts
                wanted = Diversity.of(values, **wish)
                if not rows:
                    Search(k, effort="quick", random_state=0).fit(X, diversity=wanted)
                began = perf_counter()
                found = Search(k, effort="quick", random_state=0).fit(X, diversity=wanted)
                ratio = (perf_counter() - began) / usual
                merged = merge_lacking(X, weights, plain.labels_, k, wanted)
                mended = MDAV(k).fit(X, diversity=wanted)
                for labels in (found.labels_, merged, mended.labels_):
                    assert broken(labels, values, wish) == 0
                    assert np.bincount(labels).min() >= k
                losses = [
                    100 * sse / total
                    for sse in (plain.inertia_, sse_of(X, weights, merged), mended.inertia_,
                                found.inertia_)
                ]  # fmt: skip
                rows.append([
                    name, k, " ".join(f"{n} = {v}" for n, v in wish.items()),
                    f"{broken(plain.labels_, values, wish):.0%}", *(f"{x:.2f}" for x in losses),
                    f"{1 - losses[3] / losses[1]:.0%}", f"{found.gap_:.0%}", f"{ratio:.1f}",
                ])  # fmt: skip
                print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
    print(page_table(dict(zip(HEAD, row)) for row in rows))


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [3, 5])
