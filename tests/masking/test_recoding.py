"""Full-domain recoding as a masker and as a step: k counted by plain pandas, ancestors only."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella import Schema, Study, audit, verify
from tessella.auditing.recoded import Recoded
from tessella.exceptions import (
    BadOptionError,
    GroupSizeError,
    PlanError,
    RefusedError,
    UnknownColumnError,
    UnknownOptionError,
)
from tessella.keys import Hierarchy
from tessella.loss import measure, recoding_loss
from tessella.masking import Recoding
from tests.keys.trees import random_hierarchy, random_table

FORMS = {
    "zip": {"prefix": [3, 2, 0]},
    "age": {"width": [5, 10, 20]},
    "sex": {"tree": ["m", "f"]},
}


def people(n=300, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "zip": random.choice(["43201", "43202", "43330", "08001", "08010"], n),
            "age": random.integers(18, 90, n),
            "sex": random.choice(list("mf"), n),
            "income": random.lognormal(10, 1, n).round(),
        }
    )


def schema_of(table):
    return Schema.guess(table).override(income={"role": "confidential"})


def smallest(released, keys, units=None):
    """The least number of records, or units, in a combination, by plain pandas."""
    texts = released[keys].astype(object).where(released[keys].notna(), "missing").astype(str)
    groups = texts.groupby(keys, sort=False)
    if units is None:
        return int(groups.size().min())
    return int(texts.assign(unit=units).groupby(keys)["unit"].nunique().min())


def covered(hierarchy, old, new):
    """Whether a released text is the value itself, or one of its ancestors; by the lines."""
    if pd.isna(new):
        return True
    if pd.isna(old):
        return new == hierarchy.root
    at = hierarchy.leaves.index(str(old))
    return str(new) in {hierarchy.nodes[node] for node in hierarchy.table[:, at]}


@given(seed=st.integers(0, 10**6))
def test_k_and_ancestors(seed):
    """Invariants: every combination has k, every value is an ancestor, the budget is kept."""
    random = np.random.default_rng(seed)
    hierarchies = {
        f"c{j}": random_hierarchy(random, int(random.integers(1, 8)), int(random.integers(1, 5)))
        for j in range(int(random.integers(1, 4)))
    }
    n, k = int(random.integers(6, 60)), int(random.integers(2, 5))
    table = random_table(random, n, hierarchies, missing=float(random.choice([0, 0.1])))
    share = float(random.choice([0.0, 0.1, 0.3]))
    masker = Recoding(k=k, hierarchies=hierarchies, suppress=share)
    released = masker.fit_transform(table)
    keys = list(hierarchies)
    assert smallest(released, keys) >= k
    for name, hierarchy in hierarchies.items():
        pairs = zip(table[name], released[name])
        assert all(covered(hierarchy, old, new) for old, new in pairs)
    emptied = (table.notna() & released.isna()).any(axis=1).sum()
    assert emptied <= masker.n_emptied_ <= share * n
    assert masker.proved_
    measured = recoding_loss(table, released, hierarchies=hierarchies).value
    assert 100 * measured == pytest.approx(masker.loss_)


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.from_pandas, lambda t: pa.Table.from_pandas(t, preserve_index=False)]
)
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_as_a_step_on_every_frame(make, share):
    table = people()
    study = Study(make(table), schema=schema_of(table))
    release = study.do("recoding", k=5, hierarchies=FORMS, suppress=share).release()
    assert release.audit.passed
    assert type(release.table) is type(make(table))
    shown = release.table
    if isinstance(shown, pa.Table | pl.DataFrame):
        shown = shown.to_pandas()
    assert smallest(shown, ["zip", "age", "sex"]) >= 5
    assert release.schema["age"].kind == "ordinal"
    assert set(release.recoding_loss) <= set(FORMS)
    assert "Certainty penalty" in str(release)
    assert study.promise.k == 5
    assert (shown["zip"].isna().sum() > 0) == (share > 0)


def test_units_are_counted():
    table = people(200).assign(firm=np.repeat(np.arange(50), 4))
    schema = schema_of(table).with_unit("firm")
    study = Study(table, schema=schema).do("recoding", k=4, hierarchies=FORMS)
    released = study.release().table
    assert smallest(released, list(FORMS), table["firm"].to_numpy()) >= 4


def test_strata_are_kept_apart():
    table = people(400)
    masker = Recoding(k=5, hierarchies={n: FORMS[n] for n in ("zip", "age")}, strata="sex")
    released = masker.fit_transform(table)
    assert smallest(released, ["zip", "age", "sex"]) >= 5
    assert released["sex"].equals(table["sex"])


def test_columns_that_stay_keep_their_dtype():
    table = pd.DataFrame({"a": [1, 1, 2, 2, 9], "b": list("uuvvv")})
    forms = {"a": {"tree": {"low": [1, 2], "high": [9]}}, "b": {"prefix": [0]}}
    released = Recoding(k=2, hierarchies=forms, suppress=0.5).fit_transform(table)
    assert released["b"].dtype == table["b"].dtype
    same = Recoding(k=2, hierarchies={"b": {"prefix": [0]}}).fit_transform(table)
    pd.testing.assert_frame_equal(same, table)


def test_missing_codes_stay_codes():
    """By hand: -9 is not in the hierarchy, and stays what it is."""
    table = pd.DataFrame({"age": [21, 22, 33, 34, -9, -9], "x": 1.0})
    schema = Schema.guess(table).override(
        age={"missing": [-9], "kind": "integer", "role": "quasi-identifier"},
        x={"role": "confidential"},
    )
    masker = Recoding(k=2, hierarchies={"age": {"width": [10]}}, schema=schema)
    released = masker.fit_transform(table)["age"].astype(str).tolist()
    assert released == ["below 30"] * 2 + ["30 or more"] * 2 + ["-9"] * 2
    assert Study(table, schema=schema).do(
        "recoding", k=2, hierarchies={"age": {"width": [10]}}
    ).release().audit.passed  # fmt: skip


def test_a_key_that_is_only_missing_in_one_record():
    """Only the root covers a missing cell: with no budget the column is given up."""
    table = pd.DataFrame({"a": ["u", "u", "v", "v", None]})
    masker = Recoding(k=2, hierarchies={"a": {"prefix": [0]}})
    assert masker.fit_transform(table)["a"].tolist() == ["*"] * 5


@pytest.mark.parametrize(
    "name", ["certainty penalty", "entropy", "precision", "discernibility", "entropy_loss"]
)
def test_measures_by_name(name):
    table = people(120)
    study = Study(table, schema=schema_of(table))
    assert study.do("recoding", k=4, hierarchies=FORMS, measure=name).release().audit.passed


def test_a_measure_of_ones_own():
    """The levels that a function likes best, whatever they are."""
    table = people(120)[["zip", "sex"]]
    forms = {name: FORMS[name] for name in table}
    masker = Recoding(k=2, hierarchies=forms, measure=lambda x, y: y["sex"].nunique())
    assert set(masker.fit_transform(table)["sex"].astype(str)) == {"*"}
    with pytest.raises(UnknownOptionError, match="entropy_loss"):
        Study(table).do("recoding", k=2, hierarchies=forms, measure="entropi_loss")


def test_refusals():
    table = people(50)
    with pytest.raises(BadOptionError, match="such as"):
        Recoding(k=3).fit(table)
    with pytest.raises(UnknownColumnError, match="zip"):
        Recoding(k=3, hierarchies={"zipp": {"prefix": [2]}}).fit(table)
    with pytest.raises(BadOptionError, match=r"'sex': \{\"prefix\": \[0\]\}"):
        Recoding(k=3, hierarchies={"age": {"width": [5]}}, columns=["age", "sex"]).fit(table)
    with pytest.raises(BadOptionError, match="suppress"):
        Recoding(k=3, hierarchies=FORMS, suppress=1.5).fit(table)
    with pytest.raises(GroupSizeError):
        Recoding(k=60, hierarchies=FORMS).fit(table)
    strata = pd.Series(["a"] * 48 + ["b"] * 2)
    with pytest.raises(GroupSizeError, match="merge strata"):
        Recoding(k=3, hierarchies=FORMS).fit(table, strata=strata)


def test_rules_about_recoded_columns():
    table = people(100)
    schema = schema_of(table)
    with pytest.raises(PlanError, match=r"'age'.*R1 \(age >= 15\)"):
        Study(table, schema=schema, rules="age >= 15").do("recoding", k=5, hierarchies=FORMS)
    with pytest.raises(PlanError, match="R1"):
        Study(table, schema=schema, rules='zip != "*"').do(
            "recoding", k=90, hierarchies={"zip": {"prefix": [0]}}
        )
    kept = Study(table, schema=schema, rules=["income > 0", 'sex in {"m", "f", "*"}'])
    assert kept.do("recoding", k=5, hierarchies=FORMS).release().audit.passed


def test_the_audit_finds_what_is_no_ancestor():
    """By hand: a wrong node, a made-up text, a cell from nothing, too many emptied."""
    h = Hierarchy([("a", "ab"), ("b", "ab"), ("c", "cd"), ("d", "cd")])
    original = pd.DataFrame({"x": ["a", "b", "c", "d", None, None]})

    def problems(values, emptied=0):
        released = pd.DataFrame({"x": pd.Categorical(values)})
        recoded = Recoded(hierarchies={"x": h}, emptied=emptied)
        return audit(original, released, recoded=recoded).problems

    assert problems(["ab", "ab", "cd", "cd", None, None]) == ()
    assert problems(["*"] * 6) == ()
    assert problems(["a", "ab", "*", "d", None, None]) == ()
    assert "1 cell is released" in problems(["cd", "ab", "cd", "cd", None, None])[0]
    assert "2 cells are released" in problems(["b", "x", "cd", "cd", None, None])[0]
    assert "1 cell is released" in problems(["ab", "ab", "cd", "cd", "ab", None])[0]
    assert "2 records were emptied" in problems([None, None, "cd", "cd", None, None])[0]
    assert problems([None, None, "cd", "cd", None, None], emptied=2) == ()
    # Without the hierarchy, another dtype is a problem, as ever.
    numbers = pd.DataFrame({"x": [1, 2]})
    assert audit(numbers, pd.DataFrame({"x": ["low", "low"]})).problems


def test_verify_of_frames():
    table = people(2000)
    released = Recoding(k=5, hierarchies=FORMS).fit_transform(table)
    found = verify(table, released, k=5, hierarchies=FORMS)
    assert found.passed
    assert found.loss["recoding"].value > 0
    wrong = released.copy()
    wrong["age"] = wrong["age"].to_numpy()[::-1]
    assert not verify(table, wrong, hierarchies=FORMS, aligned=True).passed


def test_loss_of_recoded_columns():
    table = people()
    hierarchies = Recoding(k=5, hierarchies=FORMS)
    released = hierarchies.fit_transform(table)
    summary = measure(table, released, hierarchies=hierarchies.hierarchies_, on_unpaired="skip")
    names = [one.name for one in summary]
    assert "contingency" not in names  # all categories were recoded
    assert 100 * summary["recoding"].value == pytest.approx(hierarchies.loss_)
    assert 0 <= summary["entropy"].value <= 1


def test_a_saved_masker_has_no_values():
    import pickle

    masker = Recoding(k=5, hierarchies=FORMS).fit(people())
    assert b"43201" not in pickle.dumps(masker)


def test_a_wrong_release_is_withheld():
    """A later step that changes a recoded column is found by the audit."""
    table = people(2000)
    study = Study(table, schema=schema_of(table), random_state=0)
    study.do("recoding", k=5, hierarchies=FORMS)
    study.do("pram", columns=["age"], p=0.2)
    with pytest.raises(RefusedError, match="hierarchy that covers"):
        study.release()


def test_a_column_without_a_known_value_is_named():
    table = pd.DataFrame({"a": list("ppqq"), "b": [None] * 4})
    forms = {"a": {"prefix": [0]}, "b": {"prefix": [0]}}
    with pytest.raises(BadOptionError, match=r"'b'.*no known value"):
        Recoding(k=2, hierarchies=forms).fit_transform(table)
