"""How quick and how near the estimate from a sample is: `tessella.explore.preview`.

    python -m benchmarks.preview                 times (best of three) and errors of all tables
    python -m benchmarks.preview --table normal  one of them
    python -m benchmarks.preview --seeds 0 1 2   several samples

The truth is the whole table, searched quickly and linked record by record; it takes minutes.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import table as page_table
from tessella import Schema, Study
from tessella.datasets import data_folders, load_census, load_eia, make_business_survey
from tessella.explore import Sample, preview
from tessella.masking.selection import standardised_squares
from tessella.planfile import PlanFile
from tessella.release import Step
from tessella.risk.assessment import Case
from tessella.risk.attacks import ATTACKS

ATTACKED = 10_000


def _public(*path: str) -> Path:
    return next(f.joinpath(*path) for f in data_folders() if f.joinpath(*path).exists())


def _numbers(table: pd.DataFrame) -> tuple[pd.DataFrame, Schema]:
    return table, Schema({str(n): {"kind": "continuous"} for n in table.columns})


def census() -> tuple[pd.DataFrame, Schema]:
    return _numbers(load_census())


def eia() -> tuple[pd.DataFrame, Schema]:
    return _numbers(load_eia())


def nist() -> tuple[pd.DataFrame, Schema]:
    table = pd.read_csv(_public("nist", "national", "national2019.csv"), dtype={"PUMA": str})
    names = ["AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP", "DVET"]
    table = table[names].astype({n: str for n in names if n not in ("AGEP", "PINCP")})
    table["PINCP"] = pd.to_numeric(table["PINCP"], errors="coerce").fillna(0.0)
    kinds = {n: "continuous" if n in ("AGEP", "PINCP") else "nominal" for n in names}
    return table, Schema({n: {"kind": kind} for n, kind in kinds.items()})


def eusilc() -> tuple[pd.DataFrame, Schema]:
    table = pd.read_csv(_public("people", "eusilc.csv"), sep=";", decimal=",")
    names = ["db030", "age", "rb090", "hsize", "eqIncome", "rb050"]
    roles = {"db030": "unit", "rb050": "weight"}
    kinds = {"db030": "nominal", "rb090": "nominal", "age": "integer", "hsize": "integer"}
    return table[names].dropna(), Schema(
        {
            n: {"kind": kinds.get(n, "continuous"), "role": roles.get(n, "quasi-identifier")}
            for n in names
        }
    )


def people() -> tuple[pd.DataFrame, Schema]:
    table, schema = eusilc()
    names = [name for name in table.columns if name != "db030"]
    return table[names], Schema([schema[name] for name in names])


def business() -> tuple[pd.DataFrame, Schema]:
    table = make_business_survey(100_000, random_state=0)
    names = ["employees", "hours", "wages", "materials", "other_costs", "turnover", "export_share"]
    return _numbers(table[names].astype(float))


def normal() -> tuple[pd.DataFrame, Schema]:
    X = np.random.default_rng(0).normal(size=(200_000, 12))
    return _numbers(pd.DataFrame(X, columns=[f"x{j}" for j in range(12)]))


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, Schema]]] = {
    "Census": census, "EIA": eia, "nist": nist, "eusilc": people, "eusilc households": eusilc,
    "business": business, "normal": normal,
}  # fmt: skip
METHODS = {
    "k = 3": ("protect", {"k": 3}),
    "k = 5": ("protect", {"k": 5}),
    "k = 20": ("protect", {"k": 20}),
    "noise": ("noise", {"amount": 0.2}),
    "rank swapping": ("rank swapping", {"percent": 5}),
}


def plan_of(schema: Schema, method: str, options: dict[str, Any]) -> PlanFile:
    numbers = [c.name for c in schema if c.kind != "nominal" and c.role == "quasi-identifier"]
    given = options if method == "protect" else {**options, "columns": numbers}
    step = Step(method=method, options=given)
    return PlanFile.model_validate(
        {"input": {"file": "table.csv"}, "output": {"file": "out.csv"}, "seed": 1, "steps": [step]}
    )


def truth(table: pd.DataFrame, schema: Schema, plan: PlanFile) -> dict[str, float]:
    """Carry a plan out on the whole table, and measure loss and linkage."""
    began = time.perf_counter()
    study = Study(table, schema=schema, random_state=1)
    for step in plan.steps:
        study.do(step)
    reference, masked = study.views
    weights = reference.weights()
    squares = standardised_squares(reference, masked, study.masked, weights)
    loss = np.mean([100 * np.average(own, weights=weights) for own in squares.values()])
    seconds = time.perf_counter() - began
    case = Case(
        original=reference, masked=masked, known=study.masked, schema=study.schema,
        effort="quick", seed=0, sample=ATTACKED if len(table) > ATTACKED else None,
    )  # fmt: skip
    found = {
        name: 100 * ATTACKS[name].run(case).value
        for name in ("euclidean", "gower")
        if not ATTACKS[name].skip_reason(case)
    }
    return {"loss": float(loss), "risk": max(found.values()), "seconds": seconds, **found}


def rows(names: list[str], seeds: list[int], known: Path | None) -> Iterator[dict[str, object]]:
    truths: dict[str, Any] = {}
    if known is not None and known.exists():
        truths = json.loads(known.read_text())
    for name in names:
        table, schema = TABLES[name]()
        samples = []
        began = time.perf_counter()
        samples = [Sample.draw(table, schema, seed=seed) for seed in seeds]
        drawing = (time.perf_counter() - began) / len(seeds)
        for label, (method, options) in METHODS.items():
            plan, key = plan_of(schema, method, options), f"{name}, {label}"
            if key not in truths:
                truths[key] = truth(table, schema, plan)
                if known is not None:
                    known.write_text(json.dumps(truths, indent=1))
            true = truths[key]
            found = [preview(plan, sample) for sample in samples]
            times = []
            for _ in range(3):
                began = time.perf_counter()
                preview(plan, samples[0])
                times.append(time.perf_counter() - began)
            yield {
                "table": name, "records": f"{len(table):,}", "plan": label,
                "loss, %": f"{true['loss']:.2f}",
                "estimates": ", ".join(f"{one.loss:.2f}" for one in found),
                "within": f"{sum(o.loss_low <= true['loss'] <= o.loss_high for o in found)}"
                f" of {len(found)}",
                "risk, %": f"{true['risk']:.1f}",
                "risks": ", ".join(f"{one.risk:.1f}" for one in found),
                "drawn in, s": f"{drawing:.2f}", "preview, s": f"{min(times):.3f}",
                "in full, s": f"{true['seconds']:.1f}",
            }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--truth", type=Path, help="a JSON file that keeps the truth")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(page_table(list(rows(given.table, given.seeds, given.truth))))


if __name__ == "__main__":
    main()
