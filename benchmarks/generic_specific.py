"""Do generic losses tell what specific analyses lose? Rank correlations over all methods.

The open question of Torra, Endo and Miyamoto (2009): information loss measured by comparing tables,
against the loss that one analysis sees. Every default candidate masks a table; generic measures
and specific ones are computed of each, and compared by Spearman's correlation over candidates.
"""

from __future__ import annotations

import sys
import warnings
from concurrent.futures import Future
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import DATASETS
from benchmarks.tables import table as page_table

GENERIC = (
    "sse_sst", "il1s", "pil", "quantiles", "kolmogorov_smirnov", "wasserstein", "means_absolute",
    "variances_absolute", "covariances_absolute", "correlations_absolute", "eigenvalues",
    "principal_components",
)  # fmt: skip
# What is explained by what: no column is the sum of others.
MODELS = {
    "Tarragona": ("NET.PROFIT", ["FIXED.ASSETS", "SALES", "LABOR.COSTS", "DEPRECIATION"]),
    "Census": ("FEDTAX", ["AGI", "EMCONTRB", "INTVAL", "PEARNVAL"]),
    "EIA": ("TOTREVENUE", ["RESSALES", "COMSALES", "INDSALES"]),
}
SPECIFIC = {
    "regression": "linear regression: 1 - overlap of confidence intervals",
    "k-means": "share of records that change cluster, c = 5",
    "fuzzy d1": "d1 of fuzzy c-means, c = 5, m = 1.2",
    "fuzzy d2": "d2 of fuzzy c-means, c = 5, m = 1.2",
    "classifier": "accuracy that is lost, target above its median",
    "propensity": "pMSE of telling masked from original",
}


def specific(original: pd.DataFrame, masked: pd.DataFrame) -> dict[str, float]:
    from tessella.loss import classifier_loss, clustering_loss, propensity_loss, regression_loss

    target, features = next(pair for pair in MODELS.values() if pair[0] in original)
    regression = regression_loss(original, masked, target=target, features=features).value
    k_means = clustering_loss(original, masked, random_state=0).value
    fuzzy = clustering_loss(original, masked, method="fuzzy", n_init=3, random_state=0)
    limit = original[target].median()
    halves = [t.assign(**{target: np.where(t[target] > limit, "high", "low")})
              for t in (original, masked)]  # fmt: skip
    classifier = classifier_loss(*halves, target=target, features=features, random_state=0).value
    return {
        "regression": regression,
        "k-means": k_means,
        "fuzzy d1": fuzzy.details["d1"],
        "fuzzy d2": fuzzy.details["d2"],
        "classifier": classifier,
        "propensity": propensity_loss(original, masked).value,
    }


def one(name: str, key: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Mask a table one way and measure it all ways."""
    from tessella.explore import Candidate
    from tessella.explore.evaluate import seed_of
    from tessella.loss import measure

    candidate = Candidate(key[0], **key[1])
    original = DATASETS[name]().astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        masked = candidate.mask(original, random_state=seed_of(0, candidate.key)).table
        summary = measure(original, masked)
        row = {"table": name, "candidate": str(candidate)}
        row |= {f"generic {loss}": summary[loss].value for loss in GENERIC}
        row |= {f"specific {what}": value for what, value in specific(original, masked).items()}
    return row


def measure(names: tuple[str, ...] = tuple(DATASETS)) -> pd.DataFrame:
    from joblib.externals.loky import ProcessPoolExecutor

    from tessella.explore.candidate import Task
    from tessella.explore.exploring import default_candidates
    from tessella.parallel import n_cores

    env = {"TESSELLA_CORES": "1", "OMP_NUM_THREADS": "1"}
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(n_cores(), env=env) as pool:
        waiting: list[Future[dict[str, Any]]] = []
        for name in names:
            task = Task.of(DATASETS[name]())
            waiting += [
                pool.submit(one, name, (candidate.method, candidate.parameters))
                for candidate in default_candidates(task, (3, 10), effort="quick")
            ]
        for at, ready in enumerate(waiting):
            rows.append(ready.result())
            print(f"  {at + 1}/{len(waiting)}", rows[-1]["candidate"], file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def correlations(rows: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation of each generic with each specific loss, for each table."""
    out = []
    for name, some in rows.groupby("table", sort=False):
        ranks = some.drop(columns=["table", "candidate"]).rank()
        for generic in GENERIC:
            row: dict[str, Any] = {"table": name, "generic": generic}
            for what in SPECIFIC:
                row[what] = ranks[f"generic {generic}"].corr(ranks[f"specific {what}"])
            out.append(row)
    return pd.DataFrame(out)


def page() -> str:
    rows = measure()
    found = correlations(rows)
    names = list(dict.fromkeys(found["table"]))
    lines = []
    for generic, some in found.groupby("generic", sort=False):
        line: dict[str, object] = {"generic measure": f"`{generic}`"}
        for what in SPECIFIC:
            line[what] = (
                f"{some[what].mean():.2f} ({some[what].min():.2f} to {some[what].max():.2f})"
            )
        line["mean"] = f"**{some[list(SPECIFIC)].to_numpy().mean():.2f}**"
        lines.append((some[list(SPECIFIC)].to_numpy().mean(), line))
    lines.sort(key=lambda pair: -pair[0])
    best = {
        what: max(GENERIC, key=lambda g: found.loc[found["generic"] == g, what].mean())
        for what in SPECIFIC
    }
    said = "; ".join(f"{what}: {text}" for what, text in SPECIFIC.items())
    models = "; ".join(f"{y} by {', '.join(x)}" for y, x in MODELS.values())
    told = ", ".join(f"{what} by `{generic}`" for what, generic in best.items())
    return (
        "## Generic against specific loss\n\n"
        "Which generic measure tells beforehand what an analysis will lose (left open in Torra, "
        "Endo and Miyamoto 2009)? Spearman's correlation over the candidates of the map "
        f"with k = 3 and 10, {len(rows)} masked tables; the mean over {', '.join(names)}, with the "
        "least and the largest of the three in brackets. 1 means that both put all candidates in "
        "the same order."
        f"\n\n{page_table([line for _, line in lines])}\n\n"
        f"Specific losses: {said}. Regression and classifier explain {models}.\n\n"
        f"Best told: {told}."
    )


def main() -> None:
    print(correlations(measure(tuple(sys.argv[1:]) or tuple(DATASETS))).round(2).to_string())


if __name__ == "__main__":
    main()
