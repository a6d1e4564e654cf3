"""Fuzzy against crisp microaggregation, both under rules: the claim of the papers, measured.

Every release keeps its rules. Loss is 100 SSE / SST of the masked numbers; risk is what an intruder
with the whole original finds by the nearest record, by a learned distance, and by knowing the
method and its parameters. *At equal loss* the risk of crisp groups is read off between two sizes.
*Repaired* is a fuzzy release without rules whose records are then moved to the nearest ones that
keep them, what Torra (2020) argues against. Tables may be named, and a picture to draw the map to:
`python -m benchmarks.fuzzy_claim "business survey" map.svg`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.fuzzy_rules import CENSUS_RULES
from benchmarks.rules_cost import EIA_RULES
from benchmarks.tables import table as page_table
from tessella import FuzzyMicroaggregation, Rules, Schema, Study
from tessella.datasets import (
    load_census,
    load_eia,
    load_tarragona,
    make_business_survey,
    make_households,
)
from tessella.masking import NoiseAddition
from tessella.pictures import save
from tessella.pictures.figures import BLUE, GREEN, ORANGE, new_figure, styled
from tessella.risk import assess

LINEAR = ("earnings", "pensions", "benefits", "capital", "income", "tax", "net")
SUMS = ["income == earnings + pensions + benefits + capital", "net == income - tax", "tax >= 0",
        "earnings >= 0", "pensions >= 0", "benefits >= 0", "capital >= 0"]  # fmt: skip
ATTACKS = ("euclidean", "learned", "transparency")
SIZES, M2 = (3, 5, 10, 20), (1.05, 1.2, 1.4)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One release, measured."""

    case: str
    kind: str  # crisp, fuzzy, fuzzy probabilistic, repaired
    setting: str
    loss: float
    risk: dict[str, float]
    broken: int  # records that break a rule


def cases() -> dict[str, tuple[pd.DataFrame, list[str]]]:
    firms, rules = make_business_survey(1000, inconsistent=0.03, random_state=1, return_rules=True)
    people = make_households(1500, inconsistent=0.1, random_state=1)
    adults = people.loc[people["income"] > 0, list(LINEAR)].reset_index(drop=True)
    return {
        "Tarragona": (load_tarragona(), []),
        "Census": (load_census(), CENSUS_RULES),
        "EIA": (load_eia(), EIA_RULES),
        "business survey": (firms.drop(columns="firm"), list(rules)),
        "incomes": (adults, SUMS),
    }


def loss_of(original: pd.DataFrame, masked: Any, columns: list[str]) -> float:
    X, Y = (frame[columns].to_numpy(dtype=np.float64) for frame in (original, masked))
    scale = np.nanstd(X, axis=0)
    X, Y = X / np.where(scale > 0, scale, 1), Y / np.where(scale > 0, scale, 1)
    lost = np.nansum((X - Y) ** 2)
    return float(100 * lost / np.nansum((X - np.nanmean(X, axis=0)) ** 2))


def released(table: pd.DataFrame, rules: list[str]) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield kind, setting, masked table and what an intruder knows of the method."""
    schema = Schema.guess(table)
    known = [c.name for c in schema if c.role in ("weight", "identifier")]  # guessed by their names
    schema = schema.override({name: {"role": "quasi-identifier"} for name in known})
    for k in SIZES:
        study = Study(table, rules=rules, schema=schema, random_state=0)
        study.do("protect", k=k, options={"effort": "quick"})
        yield "crisp", f"k = {k}", study.release().table, study.disclosed
    for kept, kind in ((True, "fuzzy, k kept"), (False, "fuzzy, probabilistic")):
        for k in SIZES[:3]:
            for m2 in M2:
                study = Study(table, rules=rules, schema=schema, random_state=0)
                study.do("fuzzy microaggregation", k=k, m2=m2, at_least_k=kept)
                yield kind, f"k = {k}, m2 = {m2:g}", study.release().table, study.disclosed


def repaired(table: pd.DataFrame, rules: list[str]) -> Iterator[tuple[str, str, Any, Any]]:
    """Mask without rules, then move each record to the nearest that keeps them."""
    for k in SIZES[:3]:
        for m2 in M2:
            masker = FuzzyMicroaggregation(k=k, m2=m2, at_least_k=True, random_state=0)
            mend = NoiseAddition(1e-9, rules=Rules.parse(rules), random_state=0)
            masked = mend.fit_transform(masker.fit_transform(table))
            yield "repaired", f"k = {k}, m2 = {m2:g}", masked, masker


def measure(names: list[str] | None = None) -> list[Row]:
    rows = []
    for name, (table, rules) in cases().items():
        if names and name not in names:
            continue
        columns = [c for c in table.columns if pd.api.types.is_numeric_dtype(table[c])]
        linear = name in ("Census", "EIA", "incomes")
        made = [*released(table, rules), *(repaired(table, rules) if linear else ())]
        for kind, setting, masked, method in made:
            found = assess(table, masked, method=method, attacks=ATTACKS, effort="quick",
                           known=columns, random_state=0)  # fmt: skip
            risk = {one.name: 100 * one.found.value for one in found.tried}
            broken = len(Rules.parse(rules).confront(masked).breaking()) if rules else 0
            rows.append(
                Row(case=name, kind=kind, setting=setting, risk=risk, broken=broken,
                    loss=loss_of(table, masked, columns))
            )  # fmt: skip
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def at_equal_loss(rows: list[Row]) -> list[dict[str, str]]:
    """Each fuzzy release beside crisp groups of the same loss, between two sizes."""
    out = []
    for name in dict.fromkeys(row.case for row in rows):
        own = [row for row in rows if row.case == name]
        crisp = sorted((row for row in own if row.kind == "crisp"), key=lambda row: row.loss)
        losses = [row.loss for row in crisp]
        for row in own:
            if row.kind in ("crisp", "repaired"):
                continue
            cell = {
                "table": name,
                "release": f"{row.kind}, {row.setting}",
                "loss": f"{row.loss:.2f}",
                "records that break a rule": str(row.broken),
            }
            inside = losses[0] <= row.loss <= losses[-1]
            for attack in ATTACKS:
                if attack not in row.risk:
                    cell[attack] = "-"
                    continue
                same = np.interp(row.loss, losses, [c.risk.get(attack, np.nan) for c in crisp])
                beside = f" ({same:.1f})" if inside else " (beyond)"
                cell[attack] = f"{row.risk[attack]:.1f}{beside}"
            out.append(cell)
    return out


def against_repair(rows: list[Row]) -> list[dict[str, str]]:
    """The same draw with the rules kept by the centres, and by repair afterwards."""
    kept = {(r.case, r.setting): r for r in rows if r.kind == "fuzzy, k kept"}
    return [
        {"table": row.case, "setting": row.setting}
        | {"loss, under rules": f"{kept[row.case, row.setting].loss:.2f}",
           "loss, repaired": f"{row.loss:.2f}", "break after repair": str(row.broken)}
        | {f"{a}, under rules / repaired":
           f"{kept[row.case, row.setting].risk.get(a, np.nan):.1f} / {row.risk.get(a, np.nan):.1f}"
           for a in ATTACKS}
        for row in rows
        if row.kind == "repaired"
    ]  # fmt: skip


LOOKS = {
    "fuzzy, k kept": (ORANGE, "P"),
    "fuzzy, probabilistic": (GREEN, "^"),
}


def draw_map(rows: list[Row], attack: str = "learned") -> Any:
    """Draw loss against what an attack finds, a panel a table.

    Crisp groups are a line through their k: of marks below it less is found at equal loss. The
    learned distance treats both alike; what is known of fuzzy groups leaves categories out.
    """
    names = list(dict.fromkeys(row.case for row in rows))
    with styled():
        figure = new_figure(1.6 + 4.0 * len(names), 3.8)
        for place, name in enumerate(names):
            axes = figure.add_subplot(1, len(names), place + 1)
            own = [row for row in rows if row.case == name and attack in row.risk]
            crisp = sorted((row for row in own if row.kind == "crisp"), key=lambda row: row.loss)
            at = [(row.loss, row.risk[attack]) for row in crisp]
            axes.plot(*zip(*at), color=BLUE, marker="o", label="crisp groups (Search)")
            for row, point in zip(crisp, at):
                axes.annotate(row.setting, point, (5, 7), textcoords="offset points", color=BLUE)
            for kind, (colour, marker) in LOOKS.items():
                some = [row for row in own if row.kind == kind]
                axes.scatter(
                    [row.loss for row in some], [row.risk[attack] for row in some],
                    color=colour, marker=marker, label=kind, zorder=3, alpha=0.85,
                )  # fmt: skip
            axes.set(title=name, xlabel="loss, per cent of all squares")
            axes.margins(x=0.15, y=0.15)
            if place == 0:
                axes.set_ylabel(f"records found, per cent\n({attack} distance)")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def page() -> str:
    rows = measure()
    return (
        "## Fuzzy against crisp, under rules\n\nEvery release keeps its rules. Loss in per cent of "
        "all squares; risk in per cent of the records that an intruder with the whole original "
        "finds by the nearest record, by a learned distance, and knowing the method and its "
        "parameters; in brackets the risk of crisp groups (`Search`, quick) that lose as much.\n\n"
        + page_table(at_equal_loss(rows))
        + "\n\nThe same draw, its rules kept by the centres, and by moving each record afterwards "
        "to the nearest one that keeps them:\n\n" + page_table(against_repair(rows))
    )


def main() -> None:
    picture = [name for name in sys.argv[1:] if name.endswith((".svg", ".png"))]
    rows = measure([name for name in sys.argv[1:] if name not in picture])
    for path in picture:
        save(draw_map(rows), path)
    print(page_table(at_equal_loss(rows)))
    print()
    if repair := against_repair(rows):
        print(page_table(repair))


if __name__ == "__main__":
    main()
