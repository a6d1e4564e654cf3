"""A form changes a plan: the content as asked, the text as little as possible."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.app import editing
from tessella.app.settings import (
    add_recoding,
    apply_settings,
    changed_fields,
    method_choices,
    read_settings,
    remove_recoding,
)
from tessella.exceptions import TessellaError
from tessella.planfile import parse_plan

PLAN = """# mine
version = 1
seed = 7  # drawn

[input]
file = "t.csv"

[columns.age]
# whole numbers
kind = "integer"
role = "quasi-identifier"
[columns."a b"]
kind = "nominal"
role = "quasi-identifier"
unsure = true
[columns.id]
kind = "integer"
role = "identifier"

# Columns that name respondents
[[steps]]
method = "drop"
columns = ["id"]

# What this step will do:
#   stale as soon as k changes
[[steps]]
method = "protect"
k = 5

# about measures
[measures]
risk = "quick"

[output]
file = "r.csv"
"""


def changed(text: str, wanted: dict[str, Any]) -> list[str]:
    """The lines in which the new text differs."""
    new = editing.rewrite(text, wanted)
    assert tomllib.loads(new) == wanted
    return sorted(set(new.split("\n")) ^ set(text.split("\n")))


def content() -> dict[str, Any]:
    return editing.content_of(PLAN)


def test_one_value_changes_one_line():
    assert changed(PLAN, {**content(), "seed": 8}) == ["seed = 7  # drawn", "seed = 8  # drawn"]


def test_k_changes_where_it_is_and_what_it_explained_goes():
    with_suppress = editing.with_preparing(content(), "suppress", [{"method": "suppress", "k": 5}])
    plan = editing.with_k(with_suppress, 9)
    assert [step.get("k") for step in plan["steps"]] == [None, 9, 9]
    lines = changed(PLAN, editing.with_k(content(), 9))
    assert "# What this step will do:" in lines
    assert "#   stale as soon as k changes" in lines
    assert "# about measures" not in lines


def test_nothing_changes_nothing():
    assert editing.rewrite(PLAN, content()) == PLAN


def test_an_identifier_is_dropped_and_one_that_is_none_any_more_is_not():
    plan = editing.with_columns(content(), {"age": {"role": "identifier"}})
    assert plan["steps"][0] == {"method": "drop", "columns": ["id", "age"]}
    plan = editing.with_columns(content(), {"id": {"role": "confidential"}})
    assert [step["method"] for step in plan["steps"]] == ["protect"]


def test_one_column_names_the_units():
    plan = editing.with_columns(content(), {"age": {"role": "unit"}})
    plan = editing.with_columns(plan, {"a b": {"role": "unit"}})
    assert plan["columns"]["age"]["role"] == "identifier"
    assert "age" in plan["steps"][0]["columns"]


def test_what_a_person_says_is_sure_and_has_no_guessed_reason():
    plan = editing.with_columns(content(), {"a b": {"missing": [-9, "x"]}})
    assert plan["columns"]["a b"] == {
        "kind": "nominal", "role": "quasi-identifier", "missing": [-9, "x"]
    }  # fmt: skip
    lines = changed(PLAN, editing.with_columns(content(), {"age": {"kind": "continuous"}}))
    assert "# whole numbers" in lines


def test_a_dropped_column_is_named_by_no_other_step():
    plan = {**content(), "steps": [
        {"method": "recode", "column": "age", "breaks": [10]},
        {"method": "protect", "k": 3, "strata": ["age"]},
    ]}  # fmt: skip
    found = editing.with_columns(plan, {"age": {"role": "identifier"}})
    assert found["steps"] == [{"method": "drop", "columns": ["age"]}, {"method": "protect", "k": 3}]


def test_tables_in_odd_places_are_written_anew():
    """A text that cannot be changed in place still says what is wanted."""
    odd = 'steps = [{method = "protect", k = 3}]\ninput = {file = "t.csv"}\n[output]\nfile = "r"\n'
    wanted = editing.with_k(editing.content_of(odd), 4)
    assert tomllib.loads(editing.rewrite(odd, wanted)) == wanted


NAMES = st.sampled_from(["age", "a b", "id"])
CHANGES = st.one_of(
    st.tuples(st.just("k"), st.integers(2, 99).map(str)),
    st.tuples(st.just("method"), st.sampled_from(sorted(method_choices()))),
    st.tuples(st.just("effort"), st.sampled_from(["quick", "standard", "thorough"])),
    st.tuples(st.just("strata[]"), st.lists(NAMES, unique=True).map("\n".join)),
    st.tuples(st.just("suppress"), st.sampled_from(["", "1"])),
    st.tuples(st.just("seed"), st.sampled_from(["", "0", "123"])),
    st.tuples(st.just("risk"), st.sampled_from(["none", "quick", "thorough"])),
    st.tuples(st.just("dominance"), st.sampled_from(["5", "n = 1, k = 85"])),
    st.tuples(st.just("on_dominance"), st.sampled_from(["report", "enlarge"])),
    st.tuples(st.just("known[]"), st.lists(NAMES, unique=True).map("\n".join)),
    st.tuples(st.just("block-0"), st.sampled_from(["", "1", "2"])),
    st.tuples(st.just("output-file"), st.sampled_from(["a.csv", "b.parquet"])),
    st.tuples(st.just("output-manifest"), st.sampled_from(["", "m.json"])),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(CHANGES, max_size=6))
def test_forms_and_text_stay_in_step(changes):
    """An invariant: after any changes the text reads back as a plan, and the form shows them."""
    text = PLAN
    for name, value in changes:
        plan = editing.content_of(text)
        if name not in read_settings(plan):
            continue
        try:
            wanted, _ = apply_settings(plan, {name: value})
        except TessellaError:
            continue  # such as k for a method that has none
        text = editing.rewrite(text, wanted)
        assert tomllib.loads(text) == wanted
        parse_plan(text)
        shown = read_settings(editing.content_of(text))
        if name not in ("dominance", "block-0"):  # written in another form, or for no column
            assert shown[name] == value or main_has_no(text, name)
    assert "# mine" in text


def main_has_no(text: str, name: str) -> bool:
    """Whether the method has no such option, so that the form does not show it."""
    return name in ("effort", "strata[]", "on_dominance") and "protect" not in text


def test_boxes_that_are_not_ticked_are_not_sent():
    shown = read_settings(apply_settings(content(), {"suppress": "1"})[0])
    assert changed_fields(shown, {"k": "5"}, whole=True) == {"suppress": ""}
    assert changed_fields(shown, {"k": "6"}, whole=False) == {"k": "6"}


def test_a_method_for_numbers_draws_categories_beside_it():
    plan, words = apply_settings(content(), {"method": "noise"})
    assert words == "method: Noise"
    noise, pram = editing.masking_steps(plan)
    assert (noise["columns"], pram["columns"]) == (["age"], ["a b"])
    back, _ = apply_settings(plan, {"method": "protect:search"})
    assert editing.masking_steps(back) == [{"method": "protect", "k": 5}]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("k", "1", "at least 2"), ("k", "many", "at least 2"), ("method", "magic", "not known"),
     ("strata[]", "nobody", "not known"), ("dominance", "lots", "per cent"),
     ("seed", "-1", "at least 0"), ("output-file", "", "a name such as"),
     ("amount", "3", "a method with an amount"), ("block-0", "0", "at least 1"),
     ("risk", "all", "not known"), ("effort", "great", "not known")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_words(name, value, said):
    with pytest.raises(TessellaError, match=said):
        apply_settings(content(), {name: value})


def test_recodings():
    plan, words = add_recoding(content(), "age", "15, 30\n65")
    assert words == "recoding of age"
    assert plan["steps"][1] == {"method": "recode", "column": "age", "breaks": [15, 30, 65]}
    plan, _ = add_recoding(plan, "a b", "north: 1, 2\n*: rest")
    parse_plan(editing.rewrite(PLAN, plan))
    assert plan["steps"][2]["groups"] == {"north": ["1", "2"]}
    assert plan["steps"][2]["other"] == "rest"
    plan, _ = remove_recoding(plan, "age")
    assert [step.get("column") for step in plan["steps"]] == [None, "a b", None]
    for text in ("", "3, 2", "x", ": 1", "north:"):
        with pytest.raises(TessellaError):
            add_recoding(content(), "age", text)
