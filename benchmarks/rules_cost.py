"""Masking under rules: what it costs beyond the grouping, and what it adds to the loss.

Cost: 100,000 records, ten rules; grouping by MDAV, timed alone and within `protect`. Loss: Census
and EIA with their totals, beside microaggregation without rules, both with the same search.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import table as page_table
from tessella import Microaggregation, Schema, protect
from tessella.datasets import load_census, load_eia, make_business_survey
from tessella.grouping import MDAV

N, K = 100_000, 5
RULES = """
net + tax == gross
harvested <= planted
c == a + 2 * b
0 <= age <= 125
hours >= 0
net >= 0
tax >= 0
tax <= gross
planted >= 0
if age < 16: net >= 0
"""
EIA_RULES = [
    "TOTREVENUE == RESREVENUE + COMREVENUE + INDREVENUE + OTHREVENUE",
    "TOTSALES == RESSALES + COMSALES + INDSALES + OTHRSALES",
]


def made(n: int) -> pd.DataFrame:
    random = np.random.default_rng(0)
    net = random.lognormal(8, 0.6, n).round().astype(int)
    tax = (net * random.uniform(0.1, 0.4, n)).round().astype(int)
    planted = random.lognormal(4, 1, n).round().astype(int)
    a, b = random.normal(size=(2, n))
    return pd.DataFrame(
        {
            "net": net, "tax": tax, "gross": net + tax, "planted": planted,
            "harvested": (planted * random.random(n)).astype(int), "a": a, "b": b, "c": a + 2 * b,
            "hours": random.integers(1, 2000, n), "age": random.integers(0, 90, n),
        }
    )  # fmt: skip


def best_of(count: int, function: Any) -> float:
    times = []
    for _ in range(count):
        began = perf_counter()
        function()
        times.append(perf_counter() - began)
    return min(times)


def measure_cost() -> list[dict[str, Any]]:
    rows = []
    firms, business = make_business_survey(N, random_state=1, return_rules=True)
    cases = [
        ("ten linear rules, one condition", made(N), RULES, {}),
        ("business survey, 14 rules, products and sums", firms.drop(columns="firm"), business,
         {"fit": "project", "small": "merge"}),
    ]  # fmt: skip
    for name, table, rules, wishes in cases:

        def run(table: pd.DataFrame = table, rules: Any = rules, wishes: Any = wishes) -> Any:
            return protect(table, k=K, rules=rules, grouping="mdav", random_state=0, **wishes)

        numbers = table.select_dtypes("number").to_numpy(dtype=np.float64)
        scaled = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
        run(table[:3000])
        whole = best_of(3, run)
        alone = best_of(3, lambda scaled=scaled: MDAV(K).fit(scaled))
        rows.append({"case": name, "n": N, "protect": whole, "grouping": alone})
    return rows


def measure_loss() -> list[dict[str, Any]]:
    rows = []
    census, eia = load_census(), load_eia()
    census_rules = [
        "PTOTVAL == PEARNVAL + POTHVAL", "FEDTAX <= TAXINC", "TAXINC <= AGI",
        *(f"{name} > 0" for name in census.columns),
    ]  # fmt: skip
    for name, table, rules in (("Census", census, census_rules), ("EIA", eia, EIA_RULES)):
        schema = Schema.guess(table).override(
            {column: {"role": "quasi-identifier"} for column in table.columns}
        )
        for k in (3, 5, 10):
            plain = Microaggregation(k, random_state=0).fit(table)
            release = protect(table, k=k, rules=rules, schema=schema, random_state=0)
            broken = int(release.audit.rule_frame()["breaks_after"].sum())
            rows.append(
                {
                    "table": name, "k": k, "without": plain.loss_, "with": release.loss,
                    "inconsistent": release.inconsistent, "broken after": broken,
                }
            )  # fmt: skip
    return rows


def page() -> str:
    cost = [
        {
            "rules": row["case"],
            "n": f"{row['n']:,}",
            "protect, s": f"{row['protect']:.2f}",
            "grouping alone, s": f"{row['grouping']:.2f}",
            "beyond it, s": f"{row['protect'] - row['grouping']:.2f}",
        }
        for row in measure_cost()
    ]
    loss = [
        {
            "table": row["table"],
            "k": row["k"],
            "IL without rules": f"{row['without']:.4f}",
            "IL with rules": f"{row['with']:.4f}",
            "difference": f"{100 * (row['with'] / row['without'] - 1):+.2f} %",
            "records that broke a rule": row["inconsistent"],
            "after": row["broken after"],
        }
        for row in measure_loss()
    ]
    return (
        "## Masking under rules\n\n"
        "`protect` with MDAV groups: planning, masking, projecting, rounding and audit, best of "
        "three.\n\n" + page_table(cost) + "\n\nLoss under rules, in whole numbers, beside "
        "`Microaggregation` of the same table; both search with their own random numbers. Census: "
        "PTOTVAL == PEARNVAL + POTHVAL, FEDTAX <= TAXINC <= AGI, all above 0. EIA: both totals, "
        "which the table as published breaks.\n\n" + page_table(loss)
    )


def main() -> None:
    for row in measure_cost():
        print(
            f"{row['case']}: protect {row['protect']:.2f} s, grouping alone {row['grouping']:.2f} s"
        )
    for row in measure_loss():
        print(
            f"{row['table']:>7} k={row['k']:>2} IL {row['without']:.4f} without rules, "
            f"{row['with']:.4f} with ({100 * (row['with'] / row['without'] - 1):+.2f} %), "
            f"{row['inconsistent']} records broke a rule before, {row['broken after']} after"
        )


if __name__ == "__main__":
    main()
