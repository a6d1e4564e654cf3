"""Local recoding as a masker and as a step; numbers and keys in one grouping."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import strategies as st

from tessella import Schema, Study
from tessella.exceptions import BadOptionError
from tessella.loss import recoding_loss
from tessella.masking import LocalRecoding
from tests.amounts import few_or_many, try_examples
from tests.keys.trees import random_hierarchy, random_table
from tests.masking.test_recoding import FORMS, covered, people, schema_of, smallest


def k_ancestors_and_never_worse_than_full_domain(seed):
    random = np.random.default_rng(seed)
    hierarchies = {
        f"c{j}": random_hierarchy(random, int(random.integers(1, 8)), int(random.integers(1, 5)))
        for j in range(int(random.integers(1, 4)))
    }
    n, k = int(random.integers(8, 70)), int(random.integers(2, 5))
    table = random_table(random, n, hierarchies, missing=float(random.choice([0, 0.1])))
    share = float(random.choice([0.0, 0.1]))
    masker = LocalRecoding(
        k=k, hierarchies=hierarchies, suppress=share, effort="quick", random_state=0
    )
    released = masker.fit_transform(table)
    assert smallest(released, list(hierarchies)) >= k
    for name, hierarchy in hierarchies.items():
        assert all(covered(hierarchy, old, new) for old, new in zip(table[name], released[name]))
    assert masker.loss_ <= masker.full_domain_loss_ + 1e-9
    assert (table.notna() & released.isna()).any(axis=1).sum() <= share * n
    measured = recoding_loss(table, released, hierarchies=hierarchies).value
    assert 100 * measured == pytest.approx(masker.loss_)


@few_or_many(20, 40)
def test_k_ancestors_and_never_worse_than_full_domain(count):
    try_examples(count, k_ancestors_and_never_worse_than_full_domain, seed=st.integers(0, 10**6))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas])
def test_keys_and_numbers_share_one_grouping(make):
    """One step, one audit, one k over recoded keys and means."""
    table = people(200)
    schema = Schema.guess(table).override(income={"role": "quasi-identifier"})
    study = Study(make(table), schema=schema, rules="income >= 0", random_state=0)
    study.do("local recoding", k=4, hierarchies=FORMS, columns=[*FORMS, "income"], effort="quick")
    release = study.release()
    assert release.audit.passed
    assert [list(line.columns) for line in release.audit.blocks] == [[*FORMS, "income"]]
    shown = release.table if make is pd.DataFrame else release.table.to_pandas()
    assert smallest(shown, [*FORMS, "income"]) >= 4
    assert shown["income"].mean() == pytest.approx(table["income"].mean(), rel=1e-3)
    assert 0 < release.column_loss["income"] < 100
    assert sum(release.recoding_loss.values()) > 0


def test_numbers_are_masked_within_the_classes_of_recoded_keys():
    """Two steps, one k: "protect" leaves the keys as local recoding made them."""
    table = people(200)
    schema = Schema.guess(table).override(income={"role": "quasi-identifier"})
    study = Study(table, schema=schema, random_state=0)
    study.do("local recoding", k=4, hierarchies=FORMS, effort="quick")
    keys = study.table[list(FORMS)].copy()
    release = study.do("protect", k=4).release()
    assert release.audit.passed
    pd.testing.assert_frame_equal(release.table[list(FORMS)], keys)
    assert smallest(release.table, [*FORMS, "income"]) >= 4


def test_units_are_counted():
    table = people(120).assign(firm=np.repeat(np.arange(40), 3))
    schema = schema_of(table).with_unit("firm")
    study = Study(table, schema=schema, random_state=1)
    study.do("local recoding", k=3, hierarchies=FORMS, effort="quick")
    released = study.release().table
    assert smallest(released, list(FORMS), table["firm"].to_numpy()) >= 3


def test_the_same_seed_gives_the_same_release():
    table, options = people(150), {"k": 3, "hierarchies": FORMS, "effort": "quick"}
    one = LocalRecoding(**options, random_state=7).fit_transform(table)
    pd.testing.assert_frame_equal(
        one, LocalRecoding(**options, random_state=7).fit_transform(table)
    )


def test_refusals():
    table = people(50)
    with pytest.raises(BadOptionError, match=r"'sex': \{\"prefix\": \[0\]\}"):
        LocalRecoding(k=3, hierarchies={"age": FORMS["age"]}, columns=["age", "sex"]).fit(table)
    with pytest.raises(BadOptionError, match="such as"):
        LocalRecoding(k=3, columns=["age"]).fit(table)
