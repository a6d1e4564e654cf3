"""Rules after masking: who breaks them before and after restoring, what it loses, what it costs.

`python -m benchmarks.restoring` writes the tables of docs/maskers.md.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmarks.tables import table
from benchmarks.univariate import best_of_three
from tessella import Rules
from tessella.datasets import load_census, load_eia
from tessella.masking import (
    IndividualRanking,
    NoiseAddition,
    RankSwapping,
    Rounding,
    TopBottomCoding,
)

MASKERS = {
    "noise 0.1, correlated": NoiseAddition(0.1, random_state=1),
    "noise 0.1, uncorrelated": NoiseAddition(0.1, correlated=False, random_state=1),
    "rank swapping, 5 %": RankSwapping(5, random_state=1),
    "individual ranking, k = 3": IndividualRanking(3),
    "rounding to 100": Rounding(100),
    "coding, 2 % at both ends": TopBottomCoding(0.02, bottom=0.02),
}
ORDER = "PTOTVAL == PEARNVAL + POTHVAL\nFEDTAX <= TAXINC\nTAXINC <= AGI\n"
TOTALS = """
TOTREVENUE == RESREVENUE + COMREVENUE + INDREVENUE + OTHREVENUE
TOTSALES == RESSALES + COMSALES + INDSALES + OTHRSALES
"""


def cases() -> dict[str, tuple[pd.DataFrame, Rules]]:
    census = load_census()
    positive = "\n".join(f"{name} > 0" for name in census.columns)
    return {
        "Census": (census, Rules.parse(ORDER + positive)),
        "EIA": (load_eia(), Rules.parse(TOTALS)),
    }


def breaking(rules: Rules, released: Any) -> float:
    return len(rules.confront(released).breaking()) / len(released)


def measure() -> list[dict[str, object]]:
    """Mask both tables without and with their rules."""
    rows: list[dict[str, object]] = []
    for name, (original, rules) in cases().items():
        for method, masker in MASKERS.items():
            masker.set_params(rules=None)
            before, loss = breaking(rules, masker.fit_transform(original)), masker.loss_
            masker.set_params(rules=rules)
            after = breaking(rules, masker.fit_transform(original))
            rows.append(
                {
                    "table": name,
                    "masker": method,
                    "break a rule": f"{before:.1%} → {after:.1%}",
                    "IL": f"{loss:.3f} → {masker.loss_:.3f}",
                }
            )
    return rows


def cost(n: int = 100_000) -> list[dict[str, object]]:
    """Census, repeated: seconds to mask without and with 16 rules, whole and real numbers."""
    original, rules = cases()["Census"]
    whole = pd.concat([original] * (n // len(original) + 1), ignore_index=True).iloc[:n]
    rows: list[dict[str, object]] = []
    for method, masker in MASKERS.items():
        row: dict[str, object] = {"masker": method}
        for kind, big in (("whole", whole), ("real", whole.astype(float))):
            for what, given in (("", None), (", rules", rules)):
                masker.set_params(rules=given)
                seconds = best_of_three(lambda m=masker, big=big: m.fit_transform(big))
                row[f"{kind}{what}"] = f"{seconds:.2f}"
        rows.append(row)
    return rows


def page() -> str:
    return (
        "## Rules after masking\n\nShare of records that break a rule, and information loss, "
        "before and after values are moved to the rules.\n\n"
        + table(measure())
        + "\n\nSeconds for 100,000 records (Census, repeated) and 16 rules, best of three:\n\n"
        + table(cost())
    )


def main() -> None:
    print(table(measure()))
    print(table(cost()))


if __name__ == "__main__":
    main()
