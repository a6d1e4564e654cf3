"""Suggested rules: how many known ones are found, how many false ones, and how long it takes.

The business survey at several sizes and shares of inconsistent records, with the rules that it was
made by; rules planted in random tables; Census and EIA; and 200 random tables whose columns have
nothing to do with each other, in which every equality, ordering, implication or constant column in
units that is suggested is false.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import table as page_table
from tessella import Rules, Schema
from tessella.datasets import load_census, load_eia, make_business_survey, make_households
from tessella.rules import Rule, Suggestions

RANDOM_TABLES = 200
DESCRIPTIONS = ("bound", "values")  # of one column: nothing that chance could make false


def random_column(n: int, generator: np.random.Generator) -> Any:
    """Make a column of a kind by chance."""
    kind = generator.integers(9)
    if kind == 0:
        return np.round(generator.normal(generator.uniform(-50, 50), 20, n), generator.integers(3))
    if kind == 1:
        return np.round(generator.lognormal(generator.uniform(0, 8), 1, n), generator.integers(3))
    if kind == 2:
        return generator.poisson(generator.uniform(0.2, 4), n)
    if kind == 3:
        shares = generator.dirichlet(np.ones(generator.integers(2, 7)))
        return np.array(list("abcdefg"))[generator.choice(len(shares), n, p=shares)]
    if kind == 4:
        share = np.round(generator.beta(1.2, 2.5, n), generator.integers(2, 4))
        return np.where(generator.random(n) < 0.6, 0.0, share)
    if kind == 5:  # heavy ties
        return 500 * generator.geometric(0.3, n)
    if kind == 6:
        return generator.random(n) < generator.uniform(0.05, 0.95)
    if kind == 7:
        return generator.integers(0, 95, n)
    return generator.integers(1, 5, n)


def random_table(seed: int) -> tuple[pd.DataFrame, Schema]:
    """Make a table of columns that have nothing to do with each other, half of them in units."""
    generator = np.random.default_rng(seed)
    n = int(generator.choice([20, 60, 200, 800, 3000]))
    columns = {f"x{at}": random_column(n, generator) for at in range(generator.integers(4, 15))}
    table = pd.DataFrame(columns)
    if generator.random() < 0.3:
        for name in table.columns[table.dtypes == "float64"]:
            table.loc[generator.random(n) < 0.1, name] = np.nan
    schema = Schema.guess(table)
    if generator.random() < 0.5:
        table["home"] = np.sort(generator.integers(0, max(n // 2, 1), n))
        schema = Schema.guess(table).with_unit("home")
    return table, schema


def false_ones(found: Suggestions) -> list[Any]:
    return [one for one in found if one.kind not in DESCRIPTIONS]


def follows(text: str, known: Rules) -> bool:
    """Return whether a rule is among some rules, or follows from them."""
    (rule,) = Rules.parse([text])
    if rule.text in [one.text for one in known]:
        return True
    related = known.for_columns(rule.columns)
    return _follows(rule, related) or _follows(rule, known.for_columns(related.columns))


def _follows(rule: Rule, related: Rules) -> bool:
    rules = [replace(one, name=f"K{at}", tolerance=None) for at, one in enumerate(related)]
    findings = Rules([*rules, replace(rule, name="S")]).check()
    return any(
        "S" in (one.rules if one.kind == "duplicate" else one.rules[:1])
        for one in findings
        if one.kind in ("duplicate", "redundant")
    )


def planted_table(seed: int, dirt: float) -> tuple[pd.DataFrame, list[str]]:
    """Plant rules of each kind in a random table, and break each in a share of records."""
    generator = np.random.default_rng(seed)
    n = 2000
    parts = int(generator.integers(2, 7))
    table = pd.DataFrame({f"p{at}": generator.poisson(0.5, n) * generator.integers(1, 9000, n)
                          for at in range(parts)})  # fmt: skip
    table["total"] = table.sum(axis=1)
    table["quantity"] = generator.integers(1, 500, n)
    table["price"] = np.round(generator.lognormal(2, 0.5, n), 2)
    table["value"] = np.round(table["quantity"] * table["price"], 2)
    table["planted"] = generator.integers(10, 1000, n)
    table["harvested"] = np.floor(table["planted"] * generator.random(n))
    table["age"] = generator.integers(0, 95, n)
    table["status"] = np.where(table["age"] < 16, "child",
                               generator.choice(["working", "retired", "other"], n))  # fmt: skip
    table["noise"] = generator.normal(0, 1, n)
    for name in ("total", "value"):
        wrong = generator.random(n) < dirt
        table.loc[wrong, name] += generator.integers(1, 1000, int(wrong.sum()))
    wrong = generator.random(n) < dirt / 5
    table.loc[wrong, "harvested"] = table.loc[wrong, "planted"] + 5
    table.loc[generator.random(n) < dirt / 5, "status"] = "other"
    return table, [
        "total == " + " + ".join(f"p{at}" for at in range(parts)),
        "value == quantity * price",
        "harvested <= planted",
        'if age < 16: status == "child"',
        'if status == "child": age < 16',
    ]


def business() -> Iterator[dict[str, object]]:
    for n in (300, 1000, 10_000):
        for dirt in (0.0, 0.05, 0.1):
            counts, others = [], Counter[str]()
            for seed in range(100, 105):
                table, rules = make_business_survey(
                    n, inconsistent=dirt, missing=0.02, random_state=seed, return_rules=True
                )
                found = Rules.suggest(table)
                counts.append(sum(follows(rule, found.rules()) for rule in rules))
                known = Rules.parse(rules)
                others.update(one.kind for one in found if not follows(one.text, known))
            yield {
                "records": f"{n:,}",
                "inconsistent": f"{dirt:.0%}",
                "found of 14 (least, mean)": f"{min(counts)}, {np.mean(counts):.1f}",
                "others, mean": ", ".join(f"{v / 5:.1f} {k}" for k, v in sorted(others.items())),
            }


def households() -> Iterator[dict[str, object]]:
    for n in (1000, 10_000):
        for dirt in (0.0, 0.02):
            table, rules = make_households(n, inconsistent=dirt, random_state=7, return_rules=True)
            found = Rules.suggest(table)
            count = sum(follows(rule, found.rules()) for rule in rules)
            yield {"records": f"{n:,}", "inconsistent": f"{dirt:.0%}",
                   f"found of {len(rules)}": count, "suggested": len(found)}  # fmt: skip


def planted() -> Iterator[dict[str, object]]:
    for dirt in (0.0, 0.02, 0.04):
        found_of: Counter[str] = Counter()
        tables = 20
        for seed in range(tables):
            table, rules = planted_table(seed, dirt)
            found = Rules.suggest(table).rules()
            for kind, rule in zip(("sum", "product", "ordering", "threshold", "range"), rules):
                found_of[kind] += follows(rule, found)
        shares = {kind: f"{count / tables:.0%}" for kind, count in found_of.items()}
        yield {"broken": f"{dirt:.0%}", **shares}


def false_rate() -> dict[str, object]:
    kinds: Counter[str] = Counter()
    for seed in range(RANDOM_TABLES):
        table, schema = random_table(seed)
        kinds.update(one.kind for one in false_ones(Rules.suggest(table, schema=schema)))
    return {
        "random tables": RANDOM_TABLES,
        "stated rate": 0.01,
        "false suggestions": sum(kinds.values()),
        "kinds": ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none",
    }


def public() -> Iterator[dict[str, object]]:
    for name, load in (("Census", load_census), ("EIA", load_eia)):
        for place, one in enumerate(Rules.suggest(load())[:8], start=1):
            yield {"table": name, "place": place, "kind": one.kind, "rule": f"`{one.text}`",
                   "holds": f"{one.holds:.2%}"}  # fmt: skip


def seconds() -> Iterator[dict[str, object]]:
    generator = np.random.default_rng(0)
    for n, extra in ((1000, 0), (200_000, 0), (1_000_000, 7)):
        table = make_business_survey(n, inconsistent=0.02, random_state=1)
        for at in range(extra):
            table[f"extra{at}"] = generator.integers(0, 10 ** (at + 1), n)
        Rules.suggest(table.head(500))
        began = perf_counter()
        found = Rules.suggest(table)
        yield {"records": f"{n:,}", "columns": table.shape[1], "suggested": len(found),
               "seconds": f"{perf_counter() - began:.2f}"}  # fmt: skip


def page() -> str:
    return "\n\n".join(
        [
            "## Suggested rules\n\nThe business survey with 2 % of figures missing; a rule counts "
            "as found if it follows from the suggestions. `hours <= 2400 * employees` cannot be "
            "found: no firm comes near it. Others do not follow from the 14 rules; most are true.",
            page_table(business()),
            "Persons in households:",
            page_table(households()),
            "Rules planted in 20 random tables of 2,000 records, by the share of records that "
            "breaks equalities (others: a fifth of it):",
            page_table(planted()),
            "Tables of independent columns: every suggestion but of bounds and values is false.",
            page_table([false_rate()]),
            "The first eight of the public tables:",
            page_table(public()),
            "Time, one core:",
            page_table(seconds()),
        ]
    )


if __name__ == "__main__":
    print(page())
