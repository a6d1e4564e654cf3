"""Fuzzy microaggregation with and without rules: processor seconds in the same run, and the loss.

Speed: 100,000 records in ten columns, c = n / k centres, ten linear rules of which one is a
condition; the draw without a promise of k, whose time is that of the clustering. Loss: Census with
four rules, EIA with its totals (which it breaks), a business survey that breaks some of its 14.
"""

from __future__ import annotations

import sys
from time import process_time
from typing import Any

import pandas as pd

from benchmarks.rules_cost import EIA_RULES, RULES, made
from benchmarks.tables import table as page_table
from tessella import Schema, Study, protect
from tessella.datasets import load_census, load_eia, make_business_survey

N, K = 100_000, 5
CENSUS_RULES = ["PTOTVAL == PEARNVAL + POTHVAL", "FEDTAX <= TAXINC", "TAXINC <= AGI", "FEDTAX > 0"]
FUZZY = "fuzzy microaggregation"


def run(table: pd.DataFrame, rules: Any, **options: Any) -> tuple[float, Any]:
    """Mask by the step, and return the processor seconds of masking alone, of all threads."""
    schema = Schema.guess(table).override({n: {"role": "quasi-identifier"} for n in table})
    study = Study(table, schema=schema, rules=rules, random_state=0)
    _ = study.confrontation
    began = process_time()
    study.do(FUZZY, k=K, **options)
    return process_time() - began, study


def measure_speed(n: int = N) -> list[dict[str, Any]]:
    run(made(3000), RULES, at_least_k=False)
    rows = []
    for rules in (RULES, "\n".join(RULES.strip().splitlines()[:9])):
        plain = run(made(n), None, at_least_k=False)[0]
        bound = run(made(n), rules, at_least_k=False)[0]
        rows.append(
            {
                "rules": len(rules.strip().splitlines()), "without, s": f"{plain:.1f}",
                "with, s": f"{bound:.1f}", "ratio": f"{bound / plain:.2f}",
            }
        )  # fmt: skip
    return rows


def measure_loss() -> list[dict[str, Any]]:
    firms, business = make_business_survey(
        1000, inconsistent=0.05, random_state=1, return_rules=True
    )
    cases = [
        ("Census", load_census(), CENSUS_RULES), ("EIA", load_eia(), EIA_RULES),
        ("business survey", firms.drop(columns="firm"), business),
    ]  # fmt: skip
    rows = []
    for name, table, rules in cases:
        schema = Schema.guess(table).override({n: {"role": "quasi-identifier"} for n in table})
        row: dict[str, Any] = {"table": name}
        for promised in (True, False):
            what = "with k" if promised else "probabilistic"
            release = run(table, rules, at_least_k=promised)[1].release()
            row[f"{what}, rules"] = f"{release.loss:.3f}"
            free = run(table, None, at_least_k=promised)[1].release()
            row[f"{what}, no rules"] = f"{free.loss:.3f}"
            row["broken before"] = release.inconsistent
            row["after"] = int(release.audit.rule_frame()["breaks_after"].sum())
        crisp = protect(table, k=K, schema=schema, rules=rules, random_state=0)
        rows.append(row | {"crisp, rules": f"{crisp.loss:.3f}"})
    return rows


def page() -> str:
    return (
        "## Fuzzy microaggregation under rules\n\n"
        f"{N:,} records in ten columns, {N // K:,} centres, masking alone, both in one run:\n\n"
        + page_table(measure_speed())
        + "\n\nInformation loss in per cent, k = 5, m1 = 1.1, m2 = 1.2:\n\n"
        + page_table(measure_loss())
    )


if __name__ == "__main__":
    print(page_table(measure_speed(int(sys.argv[1]) if sys.argv[1:] else N)))
