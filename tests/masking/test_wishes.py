"""What a caller may ask of Microaggregation, and the answers to what makes no sense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    GroupSizeError,
    MissingValuesError,
    UnknownColumnError,
    UnknownOptionError,
)
from tessella.masking.microaggregation import Microaggregation
from tessella.schema import Schema

from .simple import SIX, Slices, counts, masker

# Choices


def test_other_columns_pass_only_when_the_masked_ones_are_named() -> None:
    table = pd.DataFrame({**SIX, "name": list("abcdef")})
    with pytest.raises(
        BadTableError, match=r"'name' \(text\).*strata=\['name'\].*columns=\["
    ) as error:
        masker(3).fit(table)
    assert "released" in str(error.value)
    mask = masker(3, columns=["age"])
    released = mask.fit_transform(table)
    assert mask.untouched_ == ["income", "name"]
    pd.testing.assert_frame_equal(released[["income", "name"]], table[["income", "name"]])
    assert released["age"].tolist() == [22, 63] * 3


def test_strata_by_names() -> None:
    table = pd.DataFrame({"x": np.arange(8.0), "a": [0, 1] * 4, "b": list("uuuuvvvv")})
    released = masker(2, strata=["a", "b"]).fit_transform(table)
    assert released["x"].tolist() == [1, 2, 1, 2, 5, 6, 5, 6]
    pd.testing.assert_frame_equal(released[["a", "b"]], table[["a", "b"]])
    by_label = masker(2, round_integers=False).fit_transform(table[["x"]], strata=list("ppqqrrss"))
    assert by_label["x"].tolist() == [0.5, 0.5, 2.5, 2.5, 4.5, 4.5, 6.5, 6.5]
    with pytest.raises(GroupSizeError, match=r"k=3 cannot.*a=0, b=u \(2\)"):
        masker(3, strata=["a", "b"]).fit(table)


def test_lists_of_numbers_are_not_taken_for_the_names_of_an_array() -> None:
    """Columns of an array are named 0, 1, ...: labels and weights may look like names."""
    table = np.column_stack([np.arange(6.0), np.arange(6.0) ** 2])
    mask = masker(2).fit(table, strata=[0, 1, 0, 1, 0, 1], weights=[1, 1, 1, 1, 1, 1])
    assert mask.labels_.tolist() == [0, 1, 0, 1, 0, 1]
    assert mask.untouched_ == []
    named = masker(2, strata=[1], columns=0).fit(np.column_stack([np.arange(6.0), [7, 8] * 3]))
    assert named.labels_.tolist() == [0, 1, 0, 1, 0, 1]
    assert named.untouched_ == [1]
    with pytest.raises(BadTableError, match="strata names 0 more than once"):
        masker(2, strata=[0, 0, 1]).fit(table)


def test_names_need_not_be_text() -> None:
    table = pd.DataFrame({0: [1.0, 2, 3, 4], 2020: [4.0, 3, 2, 1]})
    mask = masker(2, columns=[2020], round_integers=False)
    released = mask.fit_transform(table)
    assert list(released.columns) == [0, 2020]
    assert released[2020].tolist() == [3.5, 3.5, 1.5, 1.5]


def test_units_by_column() -> None:
    """A difference of 1 in a counts as much as one of 1000 in b."""
    table = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [3000.0, 0.0, 3000.0, 0.0]})
    by_b = masker(2, scale={"a": 1000, "b": 1}).fit(table)
    assert by_b.labels_.tolist() == [0, 1, 0, 1]
    by_a = masker(2, scale={"a": 1, "b": 100_000}).fit(table)
    assert by_a.labels_.tolist() == [0, 0, 1, 1]


def test_roles_are_respected() -> None:
    table = pd.DataFrame({**SIX, "wgt": [1.0] * 5 + [2.0], "sex": list("ababab"), "id": range(6)})
    guess = Schema.guess(table)
    with pytest.raises(BadTableError, match=r"must not be released: 'id' \(identifier\)"):
        masker(3, schema=guess).fit(table)
    table = table.drop(columns="id")
    guess = Schema.guess(table)
    with pytest.raises(BadTableError, match=r"'wgt' is only guessed.*override"):
        masker(3, schema=guess).fit(table)
    known = guess.override(wgt={"role": "weight"})
    with pytest.raises(BadTableError, match=r"'sex' \(text\)"):
        masker(3, schema=known).fit(table)
    known = known.override(sex={"role": "confidential"}, income={"kind": "continuous"})
    mask = masker(3, schema=known)
    released = mask.fit_transform(table)
    assert mask.untouched_ == ["wgt", "sex"]
    assert released["income"].tolist() == [2.0, 7.75] * 3  # (8 + 9 + 2 * 7) / 4
    assert released["age"].tolist() == [22, 64] * 3  # (61 + 62 + 2 * 66) / 4 = 63.75
    whole = masker(3, schema=known.override(income={"kind": "integer"})).fit_transform(table)
    assert whole["income"].tolist() == [2.0, 8.0] * 3
    codes = known.override(age={"kind": "nominal"})
    with pytest.raises(BadTableError, match=r"'age' \(nominal\)"):
        masker(3, schema=codes).fit(table)
    with pytest.raises(BadTableError, match=r"'age' is nominal.*mean of categories"):
        masker(3, schema=codes, columns=["age"]).fit(table)


def test_scikit_learn_manners() -> None:
    mask = Microaggregation(5, blocks=2, scale={"a": 1.0}, random_state=3)
    assert clone(mask).get_params() == mask.get_params()
    table = np.random.default_rng(0).normal(size=(30, 2))
    pipe = make_pipeline(StandardScaler(), masker(3))
    assert pipe.fit_transform(table).shape == (30, 2)
    assert counts(pipe.fit_transform(table)).min() >= 3
    frame = pd.DataFrame(table, columns=["a", "b"])
    fitted = masker(3).fit(frame, None)
    assert (fitted.n_features_in_, fitted.feature_names_in_.tolist()) == (2, ["a", "b"])
    assert masker(3).fit_transform(frame, y=np.zeros(30)).shape == (30, 2)


def test_the_original_is_not_changed() -> None:
    for table in (np.random.default_rng(0).normal(size=(9, 2)), pd.DataFrame(SIX)):
        before = table.copy()
        masker(3).fit_transform(table)
        np.testing.assert_array_equal(table, before)


def test_k_is_the_maskers() -> None:
    table = np.arange(20.0).reshape(-1, 1)
    method = Slices()
    assert masker(5, grouping=method).fit(table).groupings_[0].k == 5
    assert method.k == 3
    assert not hasattr(method, "labels_")
    with pytest.raises(GroupSizeError, match=r"masker has k=5, its grouping k=4"):
        masker(5, grouping=Slices(4)).fit(table)


# Bad input

NUMBERS = pd.DataFrame({"income": [1.0, 2, 3, 4], "age": [1, 2, 3, 4]})


@pytest.mark.parametrize(
    ("wishes", "error", "words"),
    [
        ({"k": 1}, GroupSizeError, "k=1 protects nobody"),
        ({"k": 0}, GroupSizeError, "k=0"),
        ({"k": 2.5}, GroupSizeError, r"whole number.*2\.5"),
        ({"k": "3"}, GroupSizeError, "whole number"),
        ({"k": True}, GroupSizeError, "whole number"),
        ({"k": 5}, GroupSizeError, "k=5 needs at least 5 records, and the table has 4"),
        ({"strata": "incme"}, UnknownColumnError, "strata names.*'incme'.*'income'"),
        ({"strata": ["age", "incme"]}, UnknownColumnError, "'income'"),
        ({"strata": [0, 0, 1]}, UnknownColumnError, "strata"),
        ({"strata": np.zeros(4)}, BadOptionError, r"names of columns.*fit_transform"),
        ({"weights": "wgt"}, UnknownColumnError, "weights names a column 'wgt'"),
        ({"weights": np.ones(4)}, BadOptionError, r"names of columns.*fit_transform"),
        ({"columns": ["incme"]}, UnknownColumnError, "columns names.*Did you mean 'income'"),
        ({"columns": 7}, UnknownColumnError, "columns names a column 7"),
        ({"columns": []}, BadTableError, "columns is empty"),
        ({"columns": ["age", "age"]}, BadTableError, "'age' more than once"),
        ({"columns": ["age"], "weights": "age"}, BadTableError, "in columns and in weights"),
        ({"blocks": [["age"], ["incme"]]}, UnknownColumnError, "blocks names.*'income'"),
        ({"blocks": [["age"], ["age", "income"]]}, BadTableError, "blocks names 'age' more"),
        ({"blocks": [["age"]]}, BadTableError, "No block has the columns 'income'"),
        ({"blocks": [["age", "income"], []]}, BadTableError, "empty block"),
        ({"blocks": ["age", "income"]}, BadOptionError, "list of lists"),
        ({"blocks": 0}, BadOptionError, "blocks=0"),
        ({"blocks": [["age"]], "columns": ["income"]}, BadTableError, "not among the masked"),
        ({"scale": "minmax"}, UnknownOptionError, "scale='minmax'.*'zscore'"),
        ({"scale": {"age": 1.0}}, BadOptionError, r"scale\['income'\] is not given"),
        ({"scale": {"age": 1, "income": -1}}, BadOptionError, r"scale\['income'\]: -1 "),
        ({"scale": {"age": 1, "incme": 1}}, UnknownColumnError, "'income'"),
        ({"aggregate": "mode"}, UnknownOptionError, "aggregate='mode'.*'mean', 'median'"),
        ({"on_missing": "drop"}, UnknownOptionError, "on_missing='drop'.*'error', 'pattern'"),
        ({"grouping": "kmeans"}, UnknownOptionError, "grouping='kmeans'.*'search'.*'mdav'"),
        ({"grouping": Slices}, BadTableError, r"class Slices: give Slices\(\)"),
        ({"grouping": StandardScaler()}, UnknownOptionError, "grouping=.*is not known"),
        ({"options": {"effort": "quick"}}, BadTableError, r"give them to Slices\(...\) itself"),
        ({"schema": {"age": "integer"}}, BadTableError, "schema is a dict"),
    ],
)  # fmt: skip
def test_bad_wishes(wishes: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        masker(**wishes).fit_transform(NUMBERS)


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (pd.DataFrame({"a": [1, np.nan, 3], "b": [np.nan] * 3}), MissingValuesError,
         r"a \(1 of 3\), b \(3 of 3\).*on_missing=\"pattern\""),
        (pl.DataFrame({"a": [1, None, 3]}), MissingValuesError, r"a \(1 of 3\)"),
        (np.array([[np.nan], [1.0]]), MissingValuesError, r"0 \(1 of 2\)"),
        (pd.DataFrame({"a": [1, np.inf, 3]}), BadTableError, r"infinity.*'a' \(1\)"),
        (pd.DataFrame({"a": ["1", "2", "3"]}), BadTableError, r"'a' \(text\)"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), BadTableError, "more than one column"),
        (pd.DataFrame({"a": []}), BadTableError, "empty"),
        (pl.DataFrame({"a": [1.0, 2.0]}).lazy(), BadTableError, "collect"),
        ([[1.0], [2.0]], BadTableError, "pandas or polars"),
        (pd.DataFrame({"id": [2**60, 1, 2]}), BadTableError, "'id'.*digits"),
        (np.array([[True], [False]]), BadTableError, "boolean"),
    ],
)  # fmt: skip
def test_bad_tables(table: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        masker(2).fit_transform(table)


def test_numbers_as_text_get_the_hint_when_asked_for() -> None:
    table = pd.DataFrame({"a": ["1", "2", "3"]})
    with pytest.raises(BadTableError, match=r"'a'.*numbers written as text.*to_numeric"):
        masker(2, columns=["a"]).fit(table)


def test_small_patterns_are_named_with_what_they_lack() -> None:
    table = pd.DataFrame(
        {"a": [1, np.nan, 3, 4, 5, 6.0], "b": [1, np.nan, 3, np.nan, 5, 6.0], "s": list("uuuvvv")}
    )
    words = r"missing patterns.*without 'b': 1.*without 'a', 'b': 1"
    with pytest.raises(GroupSizeError, match=words):
        masker(2, on_missing="pattern").fit(table[["a", "b"]])
    words = r"without 'a', 'b' in stratum s=u: 1"
    with pytest.raises(GroupSizeError, match=words):
        masker(2, on_missing="pattern", strata="s").fit(table)


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"strata": [0, 0, 0, 1]}, GroupSizeError, r"1 of the strata.*1 \(1\)"),
        ({"strata": np.zeros(3)}, BadTableError, r"strata has shape \(3,\)"),
        ({"strata": ["a", "a", "b", None]}, BadTableError, "strata has 1 missing"),
        ({"weights": [1, 1, 1, 0]}, BadTableError, "weights must be positive.*1 of 4"),
        ({"weights": [1, 1, np.nan, np.inf]}, BadTableError, "2 of 4"),
        ({"weights": ["a", "b", "c", "d"]}, BadTableError, "numbers are needed"),
        ({"weights": np.ones((4, 1))}, BadTableError, r"weights has shape \(4, 1\)"),
    ],
)
def test_values_for_each_record_that_do_not_fit(given: Any, error: Any, match: str) -> None:
    table = pd.DataFrame({"income": [1.5, 2, 3, 4], "age": [4, 3, 2, 1]})
    with pytest.raises(error, match=match):
        masker(2).fit(table, **given)
