"""Run the benchmarks and write docs/benchmarks.md from what they measured.

`python -m benchmarks` runs all; `python -m benchmarks loss startup` runs some and leaves the other
sections of the page as they are.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path

from benchmarks import (
    attacks,
    beyond_memory,
    bounds,
    certificates,
    dominance,
    files,
    formats,
    fuzzy_claim,
    fuzzy_constraints,
    fuzzy_noise,
    fuzzy_objective,
    fuzzy_rules,
    fuzzy_speed,
    generic_specific,
    large,
    linear_speed,
    loss_speed,
    map,
    mdav_speed,
    nist,
    recoding,
    restoring,
    risk_speed,
    rules_cost,
    startup,
    suggestions,
    suppression,
    swapping,
    table2,
    table3,
    units,
    univariate,
)
from benchmarks.tables import table

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"

OPENING = """# Benchmarks

Written by `make bench` from what it measured; do not edit by hand. Seconds are wall-clock time
after compilation unless a section says otherwise. Machines differ: compare within a table.
"""


# Methods of the page: the paper's, then ours. `python -m benchmarks.table2` has all.
SHOWN = ("MDAV", "MDAV-MHM", "IGD", "RepOrdMic", "MDAV path (ours)", "iterated (ours)",
         "RepOrdMic and walks (ours)", "Search quick", "Search")  # fmt: skip


def loss() -> str:
    rows = table2.measure(methods={name: table2.METHODS[name] for name in SHOWN})
    return (
        "## Information loss\n\nIL = 100 SSE / SST on standardised columns, in per cent; in "
        "brackets the figure published in Mortazavi (2020), Table 2. `Search` is ours, and so is "
        "what is called so: groups of MDAV along a path, `IteratedOrdering`, and walks after "
        "RepOrdMic has ended. The multivariate IMHM of that table (Tarragona 16.93, 22.18, 30.78; "
        "Census 5.37, 8.42, 12.23; EIA 0.374, 0.76, 2.17) is not described there and not run; "
        "its cut is the one that all of these use.\n\n"
        + table2.losses(rows)
        + "\n\nSeconds for the same cells:\n\n"
        + table2.seconds(rows)
    )


def reordering() -> str:
    return (
        "## RepOrdMic, time\n\nAlgorithm 1, from 200 k-means "
        "starts without the time of k-means, one core; in brackets "
        "Table 3 of the paper (C++, another machine).\n\n" + table3.table(table3.measure())
    )


def proofs() -> str:
    rows = [
        {
            "table": row["table"],
            "k": row["k"],
            "effort": row["effort"],
            "IL at least": f"{row['bound']:.4f}",
            "Search reaches": f"{row['reached']:.4f}",
            "proved unavoidable": f"{row['proved']:.1%}",
            "seconds": f"{row['seconds']:.1f}",
            "method": row["method"],
        }
        for row in bounds.measure(search="standard")
    ]
    return (
        "## Lower bounds\n\nNo grouping can lose less than the bound. Quick is the "
        "nearest-neighbour bound, standard is column generation with exact pricing "
        "where that is within reach.\n\n" + table(rows)
    )


def scan() -> str:
    return (
        "## MDAV against a plain scan\n\nThe same partition, to the last label. The scan is tight, "
        "compiled, and uses one core.\n\n" + mdav_speed.page()
    )


def sizes() -> str:
    rows = [
        {
            "method": row["method"],
            "effort": row["effort"],
            "n": f"{row['n']:,}",
            "IL": f"{row['loss']:.3f}",
            "seconds": f"{row['seconds']:.1f}",
            "peak MB": f"{row['peak_mb']:.0f}",
            "smallest group": row["smallest"],
        }
        for row in large.measure()
    ]
    return (
        "## Large tables\n\nNormal tables with 10 columns, k = 5. More records lie closer "
        "together, so the loss of any method falls with n.\n\n" + table(rows)
    )


def one_column() -> str:
    rows = [
        {
            "n": f"{row['n']:,}",
            "k": row["k"],
            "seconds": f"{row['seconds']:.2f}",
            "SSE": f"{row['sse']:.6g}",
            "microagg1d, seconds": f"{row['peer_seconds']:.2f}" if "peer_seconds" in row else "",
            "microagg1d, SSE": f"{row['peer_sse']:.6g}" if "peer_sse" in row else "",
        }
        for row in univariate.measure()
    ]
    return "## One column: UnivariateOptimal\n\nLognormal values, best of three.\n\n" + table(rows)


def starting() -> str:
    rows = [{"what": r["what"], "seconds": f"{r['seconds']:.2f}"} for r in startup.measure()]
    return (
        "## Start-up\n\nA fresh interpreter, kernels compiled ahead of time but where numba is "
        "named; best of three, the demo once.\n\n" + table(rows)
    )


SECTIONS: Mapping[str, Callable[[], str]] = {
    "loss": loss,
    "bounds": proofs,
    "mdav": scan,
    "large": sizes,
    "beyond-memory": beyond_memory.page,
    "univariate": one_column,
    "reordering": reordering,
    "fuzzy-objective": fuzzy_objective.page,
    "fuzzy-noise": fuzzy_noise.page,
    "fuzzy-constraints": fuzzy_constraints.page,
    "fuzzy-speed": fuzzy_speed.page,
    "fuzzy-many": fuzzy_speed.page_of_many,
    "fuzzy-claim": fuzzy_claim.page,
    "rules": rules_cost.page,
    "suggestions": suggestions.page,
    "fuzzy-rules": fuzzy_rules.page,
    "dominance": dominance.page,
    "restoring": restoring.page,
    "linear": linear_speed.page,
    "map": map.page,
    "swapping": swapping.page,
    "suppression": suppression.page,
    "recoding": recoding.page,
    "generic": generic_specific.page,
    "loss-speed": loss_speed.page,
    "attacks": attacks.page,
    "certificates": certificates.page,
    "risk": risk_speed.page,
    "files": formats.page,
    "units": units.page,
    "nist": nist.page,
    "drafts": files.page,
    "startup": starting,
}


def sections_of(page: str) -> dict[str, str]:
    """Take a page apart: name of each section, as marked, to its text."""
    parts = re.split(r"<!-- ([\w-]+) -->\n", page)
    return dict(zip(parts[1::2], (text.strip() for text in parts[2::2])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=[])
    parser.add_argument("sections", nargs="*", metavar="section", help="the same as --only")
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    for name in given.sections:
        if name not in SECTIONS:
            parser.error(f"no section {name!r}; there are {', '.join(SECTIONS)}")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    for name in [*given.only, *given.sections] or SECTIONS:
        print(f"measuring: {name}", flush=True)
        text = SECTIONS[name]()
        # Read again: another run may have written its sections meanwhile.
        held = sections_of(given.page.read_text()) if given.page.exists() else {}
        busy = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
        held[name] = f"{text}\n\n*Measured {date.today()} on {machine}; load average {busy}.*"
        text = "".join(f"\n<!-- {part} -->\n{held[part]}\n" for part in SECTIONS if part in held)
        given.page.write_text(OPENING + text)
    print(f"written: {given.page}")


if __name__ == "__main__":
    main()
