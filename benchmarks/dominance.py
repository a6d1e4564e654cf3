"""Dominance: what released groups give away, and what it costs to prevent it.

Counted by pandas alone: cells within 10 % of group size times mean, and groups that the p% rule
with p = 10 calls sensitive, in the table that `protect` releases and with enlarged groups.
"""

from __future__ import annotations

import sys

import pandas as pd

from benchmarks.tables import DATASETS
from benchmarks.tables import table as page_table
from tessella import protect

K, P, NEAR = 5, 10, 0.1


def counts(original: pd.DataFrame, masked: pd.DataFrame) -> tuple[int, int]:
    """Count cells within 10 % of size times mean, and sensitive groups."""
    near = sensitive = 0
    groups = masked.groupby(list(masked), sort=False).ngroup()
    sizes = groups.groupby(groups).transform("size")
    for name in original:
        x = original[name].astype(float)
        near += int((((sizes * masked[name] - x).abs() <= NEAR * x.abs()) & (x != 0)).sum())
        for _, own in x.abs().groupby(groups):
            c = own.sort_values(ascending=False).to_numpy()
            sensitive += bool(c[0] > 0 and c[2:].sum() < P / 100 * c[0])
    return near, sensitive


def rows(groupings: tuple[str, ...]) -> list[dict[str, object]]:
    out = []
    for name, load in DATASETS.items():
        original = load().drop(columns="UTILITYID", errors="ignore")
        for grouping in groupings:
            line: dict[str, object] = {"table": name, "grouping": grouping}
            for how, note in (("report", ""), ("enlarge", ", enlarged")):
                done = protect(original, k=K, grouping=grouping, on_dominance=how, random_state=0)
                near, sensitive = counts(original, done.table)
                line |= {f"loss, %{note}": f"{done.loss:.3f}", f"sensitive groups{note}": sensitive,
                         f"cells within 10 %{note}": near}  # fmt: skip
            out.append(line)
            print(line, file=sys.stderr)
    return out


def page(groupings: tuple[str, ...] = ("mdav", "search")) -> str:
    return (
        f"## Dominance\n\n`protect` with k = {K}; sensitive by the p% rule with p = {P}, on "
        "absolute values. *Within 10 %*: values that anybody gets as group size times released "
        'mean. *Enlarged*: `on_dominance="enlarge"`. Tarragona has columns of both signs: the sum '
        "of a group may be near a value by cancellation, which larger groups do not prevent.\n\n"
        + page_table(rows(groupings))
    )


if __name__ == "__main__":
    print(page(tuple(sys.argv[1:]) or ("mdav", "search")))
