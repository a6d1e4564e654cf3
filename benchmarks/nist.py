"""NIST's Diverse Communities excerpts, masked by tessella and scored by NIST's own program.

The table is public domain and is found through TESSELLA_DATA as `nist/`. The scorer, sdnist 2.4,
pins old libraries: it is installed into an environment of its own, in a cache folder.

    python -m benchmarks.nist --case ten               one case, scored by sdnist
    python -m benchmarks.nist --case ten --plain       the same, by `k_marginal` here: quicker
    python -m benchmarks.nist --case ten --k 3 --seeds 0 1 2
    python -m benchmarks.nist --region ma2019          another region of the same layout
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import table as page_table
from tessella import Schema, protect

VERSION = "2.4"
FOLDERS = {"national2019": "national", "ma2019": "massachusetts", "tx2019": "texas"}
TEN = (
    "AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE", "DVET",
    "DEYE",
)  # fmt: skip
MEASURED = ("AGEP", "PINCP", "POVPIP", "PWGTP", "WGTP")  # all others are codes
# There are two natural sets of 19 columns: without places and weights, or without fine numbers. All
# but age are codes in the second, so that a released record is often that of somebody.
LEFT_OUT = {
    "nineteen": ("PUMA", "DENSITY", "INDP", "PWGTP", "WGTP"),
    "nineteen, coded": ("PINCP", "POVPIP", "INDP", "PWGTP", "WGTP"),
    "all": (),
}

# sdnist's list of inconsistencies; a rule applies where its columns are released.
RULES = """
if AGEP < 15: DVET == "N"
if AGEP < 15: MSP == "N"
if AGEP < 15: PINCP_DECILE == "N"
if AGEP < 15: missing(PINCP)
if AGEP < 15: INDP == "N"
if AGEP < 15: INDP_CAT == "N"
if AGEP < 15: EDU != "12"
if AGEP < 5: EDU in {"N", "1", "2", "3", "4"}
if AGEP < 3: EDU == "N"
if AGEP < 5: DPHY == "N"
if AGEP < 5: DREM == "N"
if AGEP > 15: MSP != "N"
if AGEP > 15: PINCP_DECILE != "N"
if AGEP > 15: known(PINCP)
if AGEP > 15: EDU != "N"
if AGEP > 15: DPHY != "N"
if AGEP > 15: DREM != "N"
if INDP == "N": INDP_CAT == "N"
if INDP != "N": INDP_CAT != "N"
if HOUSING_TYPE != "1": OWN_RENT == "0"
if HOUSING_TYPE == "1": OWN_RENT != "0"
if HOUSING_TYPE != "1": NOC == "N"
if HOUSING_TYPE == "1": NOC != "N"
if HOUSING_TYPE != "1": NPF == "N"
"""

SAMPLES = (  # of sdnist's sample reports: columns, k-marginal, unique exact matches
    ("AIM, epsilon 1", 10, "976", "14.1 %"),
    ("MST, epsilon 1", 10, "958", "12.5 %"),
    ("sdcMicro, k = 6", 10, "907", "47.4 %"),
    ("synthpop, CART", 21, "923", "2.5 %"),
    ("ARF", 24, "691", ""),
)
CASES = {"ten": 6, "nineteen": 3, "nineteen, coded": 3, "all": 3}  # k

SCORE = """
import json, sys, tempfile
from pathlib import Path
import sdnist.utils
from sdnist.load import TestDatasetName
from sdnist.report.dataset import Dataset  # first: its modules import each other
from sdnist.metrics.inconsistency import Inconsistencies
from sdnist.metrics.kmarginal import KMarginal
from sdnist.metrics.unique_exact_matches import unique_exact_matches

release, folder, region = sys.argv[1:]
d = Dataset(Path(release), sdnist.utils.SimpleLogger(), TestDatasetName[region], Path(folder),
            download=False)
found = Inconsistencies(d.c_synthetic_data, Path(tempfile.mkdtemp()))
found.compute()
broken = {one["inconsistency_name"]: one["inconsistency_violations"]
          for part in found.report_data.values() if isinstance(part, dict)
          for one in part["inconsistencies"]}
print("SCORE " + json.dumps({
    "columns": len(d.features),
    "k_marginal": float(KMarginal(d.d_target_data, d.d_synthetic_data, []).compute_score()),
    "matches": float(unique_exact_matches(d.c_target_data, d.c_synthetic_data)[1]),
    "inconsistencies": broken,
}))
"""


def data_folder() -> Path:
    return Path(os.environ["TESSELLA_DATA"], "nist")


def read(region: str) -> pd.DataFrame:
    path = data_folder() / FOLDERS[region] / f"{region}.csv"
    found = pd.read_csv(path, dtype=str, keep_default_na=False)
    for name in MEASURED:
        found[name] = pd.to_numeric(found[name].where(found[name] != "N"))
    return found


def mask(original: pd.DataFrame, k: int, *, effort: str = "quick", seed: int = 0) -> Any:
    """Protect a table with all rules of sdnist's list that its columns allow."""
    schema = Schema(
        {
            name: {"kind": "integer" if name in MEASURED else "nominal", "role": "quasi-identifier"}
            for name in original
        }
    )
    lines = [line for line in RULES.strip().splitlines() if _named(line) <= set(original)]
    if {"NOC", "NPF"} <= set(original):  # fewer children than members of the family
        counts = [str(count) for count in range(21)]
        pairs = [(a, b) for a in (*counts, "N") for b in (*counts, "N")
                 if "N" in (a, b) or int(a) < int(b)]  # fmt: skip
        lines.append(f"(NOC, NPF) in {{{', '.join(map(_quoted, pairs))}}}")
    return protect(
        original, k=k, rules=lines, schema=schema, options={"effort": effort}, random_state=seed
    )


def _quoted(pair: tuple[str, str]) -> str:
    return '("{}", "{}")'.format(*pair)


def _named(line: str) -> set[str]:
    words = "".join(c if c.isalnum() or c == "_" else " " for c in line).split()
    return {word for word in words if word.isupper() and len(word) > 1}


def written(release: pd.DataFrame) -> pd.DataFrame:
    """Return a release as NIST writes tables: N for what does not apply."""
    out = release.copy()
    for name in MEASURED:
        if name in out:
            out[name] = (
                out[name].round().astype("Int64").astype(object).where(out[name].notna(), "N")
            )
    return out


def k_marginal(original: pd.DataFrame, released: pd.DataFrame) -> float:
    """Return 1000 less 500 times the mean L1 distance of the tables of two columns, in shares.

    Numbers are cut at percentiles of the original, as sdnist does; PUMA and INDP do not count.
    On ten columns it gives what sdnist gives, to ten digits; sdnist also cuts DENSITY into classes.
    """
    names = sorted(set(original) - {"PUMA", "INDP"})
    codes = {}
    for name in names:
        before, after = original[name], released[name]
        if name in MEASURED:
            ranks = (20 * before.rank(pct=True)).where(before.rank(pct=True) < 1, 19) // 1
            last = before.groupby(ranks).max().to_numpy()[:-1]
            before, after = (
                pd.Series(np.where(own.isna(), -1, np.searchsorted(last, own)))
                for own in (before, after.round())
            )
        both = pd.factorize(pd.concat([before.astype(str), after.astype(str)]))[0]
        codes[name] = both[: len(original)], both[len(original) :], both.max() + 1
    gaps = []
    for a, b in combinations(names, 2):
        (x, y, p), (u, v, q) = codes[a], codes[b]
        tables = [np.bincount(s * q + t, minlength=p * q) for s, t in ((x, u), (y, v))]
        gaps.append(np.abs(tables[0] / len(original) - tables[1] / len(released)).sum())
    return float(1000 - 500 * np.mean(gaps))


def unique_matches(original: pd.DataFrame, released: pd.DataFrame) -> float:
    """Return how many of 100 records that are unique in the original appear in the release."""
    alone = original[~original.duplicated(keep=False)]
    found = alone.merge(released.drop_duplicates(), how="inner", on=list(original))
    return 100 * len(found) / max(1, len(alone))


def environment(cache: Path) -> Path:
    """Return the Python of an environment with sdnist; make it where there is none."""
    folder = cache / f"sdnist-{VERSION}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(folder, with_pip=True)
        wanted = [str(python), "-m", "pip", "install", "-q", f"sdnist=={VERSION}"]
        subprocess.run(wanted, check=True)
    return python


def score(released: pd.DataFrame, region: str, cache: Path) -> dict[str, Any]:
    """Score a release by sdnist."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "release.csv")
        released.to_csv(path, index=False)
        given = [str(environment(cache)), "-c", SCORE, str(path), str(data_folder()), region]
        done = subprocess.run(given, stdout=subprocess.PIPE, check=True, text=True, cwd=folder)
    line = next(line for line in done.stdout.splitlines() if line.startswith("SCORE "))
    return dict(json.loads(line.removeprefix("SCORE ")))


def changes(original: pd.DataFrame, released: pd.DataFrame) -> dict[str, float]:
    """Return the worst change of a category of at least 50 records, and the sexes that flip."""
    worst = 0.0
    for name in set(original) - set(MEASURED):
        before = original[name].value_counts()
        after = released[name].value_counts().reindex(before.index).fillna(0)
        change = ((after - before).abs() / before)[before >= 50]
        worst = max(worst, float(change.max()) if len(change) else 0.0)
    return {"worst": worst, "flips": float((original["SEX"] != released["SEX"]).mean())}


def measure(
    case: str, region: str = "national2019", *, k: int | None = None, seed: int = 0,
    plain: bool = False, effort: str = "quick", cache: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    original, k = read(region), k or CASES[case]
    chosen = TEN if case == "ten" else [n for n in original if n not in LEFT_OUT[case]]
    original = original[list(chosen)]
    release = mask(original, k, effort=effort, seed=seed).table
    texts = written(original), written(release)
    if plain:
        found = {"columns": len(original.columns), "k_marginal": k_marginal(original, release),
                 "matches": unique_matches(*texts), "inconsistencies": None}  # fmt: skip
    else:
        found = score(texts[1], region, cache or Path(tempfile.gettempdir(), "tessella-cache"))
    return {"k": k, "seed": seed} | found | changes(original, release)


RUNS = (("ten", 6, 0), ("ten", 6, 1), ("ten", 6, 2), ("ten", 3, 0), ("nineteen", 3, 0),
        ("nineteen, coded", 3, 0), ("all", 3, 0))  # fmt: skip


def page() -> str:
    return as_page([(case, measure(case, k=k, seed=seed)) for case, k, seed in RUNS])


def as_page(measured: list[tuple[str, dict[str, Any]]]) -> str:
    rows: list[dict[str, Any]] = []
    for case, found in measured:
        rows.append(
            {
                "method": f"tessella, {case}, k = {found['k']}, quick, seed {found['seed']}",
                "columns": found["columns"],
                "k-marginal": f"{found['k_marginal']:.1f}",
                "unique exact matches": f"{found['matches']:.2f} %",
                "inconsistencies": sum(found["inconsistencies"].values()),
                "worst change of a category of 50": f"{found['worst']:.1%}",
                "sexes that flip": f"{found['flips']:.2%}",
            }
        )
    for name, columns, marginal, matches in SAMPLES:
        rows.append(dict(zip(rows[0], (name, columns, marginal, matches, "", "", ""))))
    return (
        "## NIST's scorer\n\nThe American Community Survey excerpt national2019 (27,253 people), "
        f"scored by NIST's sdnist {VERSION}: the k-marginal score (1000 is best) and the share of "
        "records that are unique in the original and appear unchanged. All rules of its list of "
        "inconsistencies that the columns allow were given and kept. Nineteen columns are all 24 "
        "without places, fine industry and weights, or (coded) without amounts, fine industry and "
        "weights: all but age are codes there, and a released record is more often somebody's. "
        "Below, the figures of its sample reports.\n\n" + page_table(rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=CASES, default="ten")
    parser.add_argument("--region", choices=FOLDERS, default="national2019")
    parser.add_argument("--k", type=int, help="else 6 for ten columns and 3 for more")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--plain", action="store_true", help="score without sdnist")
    parser.add_argument("--cache", type=Path, help="where the environment of sdnist is kept")
    given = parser.parse_args()
    for seed in given.seeds:
        found = measure(
            given.case, given.region, k=given.k, seed=seed, plain=given.plain,
            effort=given.effort, cache=given.cache,
        )  # fmt: skip
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    sys.exit(main())
