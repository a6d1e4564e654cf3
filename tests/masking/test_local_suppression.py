"""LocalSuppression as a masker, a step and a plan: dtypes, promises, refusals, words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tessella import Schema, Study, verify
from tessella.auditing import audit
from tessella.exceptions import BadOptionError, RefusedError, UnknownColumnError
from tessella.frame import Table, View
from tessella.masking import LocalSuppression


def people(n=120, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": random.integers(1, 5, n),
            "sex": random.choice(["m", "f"], n),
            "job": pd.Categorical(random.choice(list("abcde"), n)),
            "home": random.integers(0, 60, n),
            "pay": random.uniform(1, 9, n),
        }
    )


KEYS = ["region", "sex", "job"]


def plain_smallest(table):
    return table[KEYS].astype(object).fillna("none").groupby(KEYS).size().min()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_every_library_gets_the_same_cells(kind):
    table = people()
    make = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}[kind]
    masker = LocalSuppression(3, columns=KEYS)
    released = View(masker.fit_transform(make(table)))
    plain = View(LocalSuppression(3, columns=KEYS).fit_transform(table))
    for name in KEYS:
        assert np.array_equal(released.missing(name), plain.missing(name))
    assert masker.n_suppressed_ == sum(int(plain.missing(name).sum()) for name in KEYS)
    assert masker.bound_ <= masker.n_suppressed_
    assert "keys suppressed" in masker.account_


def test_whole_numbers_stay_whole_and_other_columns_stay():
    table = people()
    released = LocalSuppression(3, columns=KEYS).fit_transform(table)
    assert str(released["region"].dtype) in ("Int64", "int64")
    assert plain_smallest(released) >= 3
    assert released[["home", "pay"]].equals(table[["home", "pay"]])
    known = released["region"].notna()
    assert (released["region"][known].astype(int) == table["region"][known]).all()


def test_a_study_counts_units_and_verify_accepts_the_release():
    table = people()
    schema = Schema.guess(table).override(
        home={"role": "unit"}, pay={"role": "confidential"},
        **{name: {"role": "quasi-identifier", "kind": "nominal"} for name in KEYS},
    )  # fmt: skip
    study = Study(table, schema=schema).do("local suppression", k=3)
    release = study.release()
    units = release.table[KEYS].astype(object).fillna("none").assign(home=table["home"])
    assert units.groupby(KEYS)["home"].nunique().min() >= 3
    assert release.audit.passed
    assert any("cells suppressed" in note for note in release.audit.notes)
    assert "suppressed" in str(release)
    assert verify(table.drop(columns="home"), release.table, k=3, blocks=[KEYS]).passed


def test_the_audit_refuses_what_nobody_declared_and_what_became_known():
    table = people()
    released = LocalSuppression(3, columns=KEYS).fit_transform(table)
    expected = Table.read(table).empty(dict.fromkeys(KEYS, np.zeros(len(table), dtype=bool)))
    released = Table.read(released).empty(dict.fromkeys(KEYS, np.zeros(len(table), dtype=bool)))
    assert audit(expected, released, k=3, blocks=[KEYS], suppressed=KEYS).passed
    assert not audit(expected, released, k=3, blocks=[KEYS]).passed
    assert not audit(released, expected, blocks=[KEYS], suppressed=KEYS).passed


def test_wildcard_is_counted_as_such_and_said():
    table = people(60, seed=4)
    schema = Schema.guess(table).override(
        home={"role": "untouched"}, pay={"role": "confidential"},
        **{name: {"role": "quasi-identifier", "kind": "nominal"} for name in KEYS},
    )  # fmt: skip
    study = Study(table, schema=schema)
    study.do("local suppression", k=3, missing="wildcard", columns=KEYS)
    release = study.release()
    assert release.audit.passed
    assert release.audit.blocks[0].k >= 3
    assert any("wildcard" in note for note in release.audit.notes)
    assert "wildcard" in str(study.protocol)


def test_never_and_limit_are_kept_or_refused():
    table = people()
    masker = LocalSuppression(2, columns=KEYS, never=["sex"], importance={"job": 2})
    masker.fit_transform(table)
    assert masker.cells_["sex"] == 0
    with pytest.raises(RefusedError, match="never="):
        LocalSuppression(9, columns=KEYS, never=KEYS).fit_transform(table)
    with pytest.raises(RefusedError, match="limit="):
        LocalSuppression(9, columns=KEYS, limit=0).fit_transform(table)


def test_mistakes_are_named():
    table = people()
    with pytest.raises(UnknownColumnError, match="jobb"):
        LocalSuppression(2, columns=KEYS, importance={"jobb": 2}).fit_transform(table)
    with pytest.raises(BadOptionError, match="positive"):
        LocalSuppression(2, columns=KEYS, importance={"job": 0}).fit_transform(table)
    with pytest.raises(BadOptionError, match="subsets"):
        LocalSuppression(2, columns=KEYS, subsets=4).fit_transform(table)


def test_weighted_cells_cost_their_weight():
    table = people()
    weights = np.where(np.arange(len(table)) % 2, 5.0, 1.0)
    masker = LocalSuppression(3, columns=KEYS, weighted=True)
    released = View(masker.fit_transform(table, weights=weights))
    emptied = np.column_stack([released.missing(name) for name in KEYS])
    assert masker.cost_ == pytest.approx(float(emptied.sum(axis=1) @ (weights / weights.mean())))
    assert masker.bound_ <= masker.cost_


@pytest.mark.parametrize("never", [3, 2.5, {"a": 1}])
def test_never_is_a_list_of_keys(never):
    table = pd.DataFrame({"a": list("ppqq"), "b": list("xyxy")})
    with pytest.raises(BadOptionError, match="list of keys"):
        LocalSuppression(2, never=never).fit_transform(table)
