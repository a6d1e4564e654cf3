"""Keys by suppression or recoding, numbers by microaggregation: one k, which no attack gets below.

Records of a class share all their released values, so that whoever links gets at most one of them
right on average: no more than 1 / k of all records, whichever columns are used.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella import Schema, Study
from tessella.risk import assess

KEYS, NUMBERS = ["region", "sex", "job"], ["income", "rent"]
HIERARCHIES = {"region": {"prefix": [1, 0]}, "sex": {"prefix": [0]}, "job": {"prefix": [1, 0]}}
STEPS = {
    "suppression": ("local suppression", {}),
    "recoding": ("recoding", {"hierarchies": HIERARCHIES, "suppress": 0.05}),
    "local recoding": ("local recoding", {"hierarchies": HIERARCHIES}),
}
K = 5


def people(n: int = 150) -> pd.DataFrame:
    draw = np.random.default_rng(3)
    income = draw.lognormal(7, 0.6, n).round()
    return pd.DataFrame({
        "region": draw.choice(["n1", "n2", "s1", "s2", "s3"], n, p=[0.4, 0.3, 0.2, 0.08, 0.02]),
        "sex": draw.choice(["f", "m"], n), "job": draw.choice(["a1", "a2", "b1", "b2"], n),
        "income": income, "rent": (income * draw.uniform(0.2, 0.4, n)).round(),
    })  # fmt: skip


def named(original: pd.DataFrame, masked: pd.DataFrame, columns: list[str]) -> float:
    """The largest share of records that an attack on these columns names."""
    found = assess(original[columns], masked[columns], effort="quick", random_state=0)
    return max(one.found.value for one in found.about("identity"))


@pytest.mark.parametrize("how", STEPS)
def test_no_attack_names_more_than_one_of_k(how):
    table = people()
    schema = Schema.from_keys(table, keys=KEYS, numeric_keys=NUMBERS)
    method, options = STEPS[how]
    study = Study(table, schema=schema, random_state=1)
    study.do(method, k=K, **({"columns": KEYS} if "hierarchies" not in options else {}), **options)
    release = study.do("protect", k=K, columns=NUMBERS).release()
    assert release.audit.k == K
    assert len(release.audit.blocks) == 1
    counted = release.table.groupby(KEYS + NUMBERS, dropna=False).size()
    assert counted.min() >= K
    for columns in (KEYS + NUMBERS, KEYS, NUMBERS):
        assert named(table, release.table, columns) <= 1 / K + 1e-9, columns
    # The attacks can: numbers as they are name nearly everybody, whatever the keys are.
    half = release.table.assign(**{name: table[name] for name in NUMBERS})
    assert named(table, half, KEYS + NUMBERS) > 0.9
