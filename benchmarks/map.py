"""The risk-utility map of all methods on the public tables: what each costs, what it protects.

`tessella.explore` with its default candidates, k = 3, 5, 10 and 20; the pictures are written beside
the page. A folder of results is kept while it runs, so that an interrupted run goes on.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any

from benchmarks.tables import DATASETS
from benchmarks.tables import table as page_table
from tessella.explore import Exploration, explore
from tessella.pictures import save

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
SHOWN = 12  # lines of the front in the page


def measure(name: str, store: Path | None = None, progress: Any = None) -> Exploration:
    return explore(
        DATASETS[name](), k=(3, 5, 10, 20), random_state=0, store=store, progress=progress
    )


def telling(found: Any) -> None:
    print(
        f"  {found.done}/{found.total} {found.seconds:.0f} s: {found.point}",
        file=sys.stderr,
        flush=True,
    )


def front_table(found: Exploration) -> str:
    best = found.best().candidate
    front = [p for p in found.front if p.risk < 90]
    rows = [
        {
            "candidate": f"**{point.candidate}**" if point.candidate == best else point.candidate,
            "loss": f"{point.loss:.1f}",
            "risk": f"{point.risk:.1f}",
            "score": f"{point.score:.1f}",
            "worst attack": point.worst,
            "records alike, at least": point.k_reached,
        }
        for point in front[:SHOWN]
    ]
    return page_table(rows)


def methods_table(found: dict[str, Exploration], loss: str) -> str:
    """The least mean of a loss and the risk that each method reaches, table by table."""
    labels: dict[str, dict[str, tuple[float, str]]] = {}
    for name, exploration in found.items():
        for point in exploration:
            if point.passed:
                score = (point.losses[loss] + point.risk) / 2
                kept = labels.setdefault(_kind(point.candidate), {})
                kept[name] = min(kept.get(name, (math.inf, "")), (score, _setting(point.candidate)))
    order = sorted(labels, key=lambda label: mean(score for score, _ in labels[label].values()))
    return page_table(
        {"method": label} | {name: "{:.1f} ({})".format(*labels[label][name]) for name in found}
        for label in order
    )


def _kind(candidate: Any) -> str:
    """One line for all sizes of blocks: they depend on the number of columns."""
    return "blocks of columns" if "blocks" in candidate else str(candidate.label)


def _setting(candidate: Any) -> str:
    from tessella.masking import registry

    tuned = registry.find(candidate.method).tuned.name
    setting = f"{tuned} = {candidate[tuned]:g}"
    blocks = candidate.get("blocks")
    return setting if blocks is None else f"{setting}, {blocks['size']} {blocks['by']}"


def page() -> str:
    found, seconds = {}, {}
    for name in DATASETS:
        began = perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found[name] = measure(name, Path(folder) / "store", telling)
        seconds[name] = perf_counter() - began
        PICTURES.mkdir(exist_ok=True)
        save(found[name].picture(), PICTURES / f"map-{name.lower()}.svg")
    parts = [
        "## The map of all methods\n\n"
        "`tessella.explore` with its default candidates, k = 3, 5, 10 and 20, effort quick. Loss "
        "is the share of the variation of values that is lost; risk is the share that the worst of "
        "these attacks finds: linkage by the Euclidean, the Mahalanobis and a learned distance, an "
        "intruder who knows the method and its parameters, and an interval of 1 % of the ranks. "
        "The intruder has the whole original file: what is told is the worst case. The score is "
        "the mean of the two. [What this is](explore.md).",
    ]
    for name, exploration in found.items():
        parts.append(
            f"### {name}\n\n![Risk-utility map of {name}](pictures/map-{name.lower()}.svg)\n\n"
            f"{len(exploration)} candidates in {seconds[name]:.0f} s. The front where the risk is "
            f"below 90 %, the least score in bold:\n\n{front_table(exploration)}"
        )
    parts.append(
        "### The least score of each method\n\nWith the setting that reaches it.\n\n"
        + methods_table(found, "values")
        + "\n\nA measure of squares is ruled by the largest values: in EIA a few utilities hold "
        "most of the variation, and noise or steps of half a deviation leave them recognisable "
        "and bury all others. With PIL as the loss, which compares quantiles and moments:\n\n"
        + methods_table(found, "pil")
    )
    return "\n\n".join(parts)


def main() -> None:
    for name in sys.argv[1:] or DATASETS:
        print(name)
        print(measure(name, progress=telling))


if __name__ == "__main__":
    main()
