"""Categorical keys, l and t: fields of the form, the plan that they make, its pages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.app import editing
from tessella.app.key_settings import follow, key_choices, read_hierarchy, write_hierarchy
from tessella.app.settings import add_recoding, apply_settings, method_choices, read_settings
from tessella.exceptions import BadOptionError, TessellaError
from tessella.planfile import parse_plan

HTMX = {"HX-Request": "true"}
PLAN = """version = 1
seed = 7
[input]
file = "people.csv"
[columns.zip]
kind = "nominal"
role = "quasi-identifier"
[columns.job]
kind = "nominal"
role = "quasi-identifier"
[columns.age]
kind = "integer"
role = "quasi-identifier"
[columns.income]
kind = "continuous"
role = "quasi-identifier"
[columns.ill]
kind = "nominal"
role = "confidential"

[[steps]]
method = "protect"
k = 5

[measures]
risk = "none"
[output]
file = "release.csv"
"""
KEYS = ["local suppression", "recoding", "local recoding"]
NONE = {"prefix": [0]}


def content() -> dict[str, Any]:
    return editing.content_of(PLAN)


def skip_unknown(method: str) -> None:
    if method not in key_choices():
        pytest.skip(f"there is no method {method!r} here")


def masking(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The masking steps; the text of the plan must say the same, and be a plan."""
    text = editing.rewrite(PLAN, plan)
    assert tomllib.loads(text) == plan
    parse_plan(text)
    return editing.masking_steps(plan)


@pytest.mark.parametrize("method", KEYS)
def test_keys_get_a_step_before_the_main_one_and_lose_it(method):
    skip_unknown(method)
    plan, words = apply_settings(content(), {"keys": method})
    assert words == f"categorical keys: {key_choices()[method]}"
    own = {"hierarchies": {"zip": NONE, "job": NONE}}
    if method == "local suppression":
        own = {"columns": ["zip", "job"]}
    protect = {"method": "protect", "k": 5}
    assert masking(plan) == [{"method": method, "k": 5, **own}, protect]
    more, _ = apply_settings(plan, {"k": "3"})
    assert [step["k"] for step in masking(more)] == [3, 3]
    back, words = apply_settings(plan, {"keys": ""})
    assert masking(back) == [protect]
    assert words == "categorical keys: masked together with the numbers"


def test_keys_alone_are_the_only_step():
    plan = content()
    for name in ("age", "income"):
        plan["columns"][name]["role"] = "untouched"
    plan, _ = apply_settings(plan, {"keys": "recoding"})
    assert [step["method"] for step in masking(plan)] == ["recoding"]
    assert read_settings(plan)["k"] == "5"
    plan, _ = apply_settings(plan, {"k": "4"})
    assert [step["k"] for step in masking(plan)] == [4]
    with pytest.raises(TessellaError, match="no categorical keys"):
        apply_settings(plan, {"method": "protect:search"})
    back, _ = apply_settings(plan, {"keys": ""})
    assert masking(back) == [{"method": "protect", "k": 4}]


def test_hierarchies_and_what_may_be_emptied():
    plan, _ = apply_settings(content(), {"keys": "recoding"})
    typed = {"hierarchy-0": "prefix 3, 2, 0", "hierarchy-1": "file job.csv", "emptied": "0.02"}
    plan, words = apply_settings(plan, typed)
    first = masking(plan)[0]
    assert first["hierarchies"] == {"zip": {"prefix": [3, 2, 0]}, "job": {"file": "job.csv"}}
    assert first["suppress"] == 0.02
    assert "categories of zip: prefix 3, 2, 0; categories of job: file job.csv" in words
    assert "share of records that may be emptied: none → 0.02" in words
    assert {name: read_settings(plan)[name] for name in typed} == typed
    # Another method of the same kind keeps what was said.
    other, _ = apply_settings(plan, {"keys": "local recoding"})
    assert masking(other)[0] == {**first, "method": "local recoding"}


@pytest.mark.parametrize(
    "form", [NONE, {"prefix": [4, 2]}, {"width": [5, 10]}, {"width": [0.5, 1]}, {"file": "a b.csv"}]
)
def test_hierarchies_are_read_as_they_are_written(form):
    assert read_hierarchy("zip", write_hierarchy(form)) == form


@pytest.mark.parametrize(
    "text",
    ["prefix", "prefix 2, 3", "prefix x", "width 5, 7", "width 0", "width -1", "file", "tree a",
     "3, 2", "prefix 1.5", "width 1e9", "as in the text of the plan: tree"],
)  # fmt: skip
def test_senseless_hierarchies_are_refused_in_words(text):
    with pytest.raises(BadOptionError, match=r"categories of zip.*prefix 3, 2, 0"):
        read_hierarchy("zip", text)


def test_what_only_the_text_can_say_stays():
    plan, _ = apply_settings(content(), {"keys": "recoding"})
    plan["steps"][0]["hierarchies"]["job"] = {"tree": {"x": ["a", "b"]}}
    shown = read_settings(plan)
    assert shown["hierarchy-1"] == "as in the text of the plan: tree"
    plan, _ = apply_settings(plan, {"hierarchy-0": "prefix 2"})
    assert plan["steps"][0]["hierarchies"]["job"] == {"tree": {"x": ["a", "b"]}}


def test_strata_are_no_keys_and_keep_them_apart():
    plan, _ = apply_settings(content(), {"keys": "recoding"})
    plan, _ = apply_settings(plan, {"strata[]": "job"})
    keys, protect = masking(plan)
    assert (list(keys["hierarchies"]), keys["strata"]) == (["zip"], ["job"])
    assert protect == {"method": "protect", "k": 5, "strata": ["job"]}
    plan, _ = apply_settings(plan, {"strata[]": ""})
    keys, _ = masking(plan)
    assert set(keys["hierarchies"]) == {"zip", "job"}
    assert "strata" not in keys


def test_keys_follow_the_roles_of_columns():
    plan, _ = apply_settings(content(), {"keys": "recoding"})

    def says(name: str, **own: str) -> list[str]:
        changed = follow(editing.with_columns(plan, {name: own}), plan)
        return [list(step.get("hierarchies", [])) for step in masking(changed)]

    assert says("job", role="identifier") == [["zip"], []]
    assert says("job", role="confidential") == [["zip"], []]
    assert says("ill", role="quasi-identifier") == [["zip", "job", "ill"], []]
    assert says("age", kind="ordinal") == [["zip", "job", "age"], []]
    coarser, _ = add_recoding(plan, "age", "15, 30")
    assert list(editing.keys_step(coarser)["hierarchies"]) == ["zip", "job", "age"]
    for name in ("zip", "job"):
        plan = follow(editing.with_columns(plan, {name: {"role": "identifier"}}), plan)
    assert [step["method"] for step in masking(plan)] == ["protect"]


def test_other_methods_and_blocks_leave_keys_alone():
    plan, _ = apply_settings(content(), {"block-0": "1", "block-1": "2", "block-2": "1"})
    plan, _ = apply_settings(plan, {"keys": "recoding"})
    assert masking(plan)[1]["blocks"] == [["age"], ["income"]]
    plan, _ = apply_settings(plan, {"method": "noise"})
    keys, noise = masking(plan)
    assert (keys["method"], noise["columns"]) == ("recoding", ["age", "income"])
    plan, _ = apply_settings(plan, {"keys": ""})
    assert [(step["method"], step["columns"]) for step in masking(plan)] == [
        ("noise", ["age", "income"]), ("pram", ["zip", "job"])
    ]  # fmt: skip
    plan, _ = apply_settings(plan, {"keys": "recoding"})
    assert [step["method"] for step in masking(plan)] == ["recoding", "noise"]


CHANGES = st.one_of(
    st.tuples(st.just("k"), st.integers(2, 9).map(str)),
    st.tuples(st.just("method"), st.sampled_from(sorted(method_choices()))),
    st.tuples(st.just("keys"), st.sampled_from(sorted(key_choices()))),
    st.tuples(st.just("strata[]"), st.sampled_from(["", "zip", "job", "zip\njob"])),
    st.tuples(st.just("block-2"), st.sampled_from(["", "1", "2"])),
    st.tuples(st.just("hierarchy-0"), st.sampled_from(["", "prefix 2", "width 5, 10"])),
    st.tuples(st.just("role"), st.tuples(st.sampled_from(["zip", "job", "age", "income", "ill"]),
              st.sampled_from(["identifier", "quasi-identifier", "confidential"]))),
)  # fmt: skip


def every_column_is_masked_once(changes):
    """An invariant: no quasi-identifier is masked by two steps, or by none."""
    plan = content()
    for name, value in changes:
        try:
            if name == "role":
                column, role = value
                plan = follow(editing.with_columns(plan, {column: {"role": role}}), plan)
            else:
                plan, _ = apply_settings(plan, {name: value})
        except TessellaError:
            continue
        steps = masking(plan)
        named = [name for step in steps for name in editing.key_columns(step)]
        assert len(named) == len(set(named))
        wanted = {name for names in editing.quasi_identifiers(plan) for name in names}
        if any(step["method"] == "recoding" for step in steps):
            assert set(named) <= wanted


def test_a_column_that_need_not_be_masked_leaves_every_step():
    """A bug once met: PRAM kept a column that had become confidential."""
    plan, _ = apply_settings(content(), {"method": "coding"})
    assert masking(plan)[-1]["columns"] == ["zip", "job"]
    plan = follow(editing.with_columns(plan, {"zip": {"role": "confidential"}}), plan)
    assert [step["columns"] for step in masking(plan)] == [["age", "income"], ["job"]]


@settings(max_examples=40, deadline=None)
@given(st.lists(CHANGES, max_size=8))
def test_every_column_is_masked_once_whatever_is_changed(changes):
    every_column_is_masked_once(changes)


@pytest.mark.slow
@pytest.mark.heavy
@settings(max_examples=100, deadline=None)
@given(st.lists(CHANGES, max_size=8))
def test_every_column_is_masked_once_whatever_of_much_is_changed(changes):
    every_column_is_masked_once(changes)


# l and t.


@pytest.mark.parametrize(
    ("name", "text", "option"),
    [("l", "2", 2), ("l", "entropy = 3", {"entropy": 3}),
     ("l", "recursive = 2, 3", {"recursive": [2, 3]}), ("t", "0.2", 0.2),
     ("t", "equal = 0.2", {"equal": 0.2}), ("t", "ordered = 0.2", {"ordered": 0.2})],
)  # fmt: skip
def test_l_and_t_are_fields(name, text, option):
    plan, words = apply_settings(content(), {name: text})
    assert masking(plan) == [{"method": "protect", "k": 5, name: option}]
    assert words == f"{'l-diversity' if name == 'l' else 't-closeness'}: none → {text}"
    assert read_settings(plan)[name] == text
    assert masking(apply_settings(plan, {name: ""})[0]) == [{"method": "protect", "k": 5}]


@pytest.mark.parametrize(
    ("name", "text"),
    [("l", "1"), ("l", "many"), ("l", "recursive = 2"), ("l", "2, 3"), ("l", "nan"), ("t", "1"),
     ("t", "-0.1"), ("t", "near = 0.2"), ("t", "inf")],
)  # fmt: skip
def test_senseless_l_and_t_are_refused_in_words(name, text):
    with pytest.raises(BadOptionError, match=f"^{name}|{name} "):
        apply_settings(content(), {name: text})


def test_l_needs_a_confidential_column():
    plan = editing.with_columns(content(), {"ill": {"role": "untouched"}})
    with pytest.raises(BadOptionError, match="role confidential"):
        apply_settings(plan, {"l": "2"})


# Pages.


@pytest.fixture
def people(folder: Path) -> None:
    """A table of people, its plan, and a hierarchy, in the folder of the app."""
    chance = np.random.default_rng(0)
    n = 120
    pd.DataFrame({
        "zip": chance.choice(["a43201", "a43202", "a43330"], n),
        "job": chance.choice(["x", "y"], n),
        "age": chance.integers(18, 80, n), "income": chance.lognormal(3, 1, n).round(2),
        "ill": chance.choice(["flu", "cold", "none"], n),
    }).to_csv(folder / "people.csv", index=False)  # fmt: skip
    (folder / "job.csv").write_text("x;*\ny;*\n")
    (folder / "people.toml").write_text(PLAN.replace("k = 5", "k = 3"))


PAGE = "/plans/people.toml"


def test_the_page_offers_keys_and_confidential_values(people, visitor):
    page = visitor.get(PAGE).text
    assert "Confidential values: l-diversity and t-closeness" in page
    assert "role confidential: ill" in page
    assert f"{PAGE}/data" in page
    for name, title in key_choices().items():
        assert f'<option value="{name}"' in page
        assert title in page
    assert "hierarchy-0" not in page
    answer = visitor.change(PAGE, keys="recoding")
    assert answer.headers["HX-Refresh"] == "true"  # other fields are shown
    page = visitor.get(PAGE).text
    for at in (0, 1):
        assert re.search(rf'for="f-hierarchy-{at}".*id="f-hierarchy-{at}"', page)
    assert "hierarchy-2" not in page
    assert "categorical keys: coarser categories, one level" in visitor.get(f"{PAGE}/history").text


def test_senseless_fields_change_nothing_and_are_answered_in_words(people, visitor):
    visitor.change(PAGE, keys="recoding")
    before = visitor.text(PAGE)
    for name, text in (("hierarchy-0", "magic"), ("l", "lots"), ("t", "2"), ("emptied", "all"),
                       ("keys", "magic"), ("hierarchy-1", "file ../secret.csv")):  # fmt: skip
        answer = visitor.change(PAGE, **{name: text})
        assert answer.status_code == 200
        assert 'role="alert"' in answer.text, name
    assert visitor.text(PAGE) == before


def test_a_text_cannot_read_hierarchies_from_outside(people, visitor):
    visitor.change(PAGE, keys="recoding")
    text = visitor.text(PAGE).replace("{prefix = [0]}", '{file = "../secret.csv"}', 1)
    assert "secret" in text
    form = visitor.fill(visitor.get(f"{PAGE}/toml").text) | {"text": text}
    assert "outside" in visitor.post(f"{PAGE}/toml", headers=HTMX, **form).text
    assert "secret" not in visitor.text(PAGE)


@pytest.mark.parametrize("method", KEYS)
def test_plans_with_keys_are_estimated_explained_and_run(people, visitor, method):
    skip_unknown(method)
    visitor.change(PAGE, keys=method)
    if method != "local suppression":
        answer = visitor.change(
            PAGE, **{"hierarchy-0": "prefix 4, 0", "hierarchy-1": "file job.csv"}
        )
        assert answer.status_code == 200
        assert "prefix = [4, 0]" in visitor.text(PAGE)
    form = visitor.fill(visitor.get(PAGE).text)
    estimate = visitor.post(f"{PAGE}/estimate", headers=HTMX, **form)
    assert estimate.status_code == 200
    assert "Information loss, about" in estimate.text, estimate.text
    assert "Records whose keys change: zip" in estimate.text
    explained = visitor.get(f"{PAGE}/explanation", headers=HTMX)
    assert explained.status_code == 200
    assert "so that k = 3 have the same ones" in explained.text
    assert visitor.run(PAGE).status_code == 200
    # k over keys and numbers together, counted in the released file.
    (path,) = visitor.folder.glob(".tessella/runs/**/release.csv")
    released = pd.read_csv(path, dtype=str)
    names = ["zip", "job", "age", "income"]
    assert released.groupby(names, dropna=False).size().min() >= 3


def test_keys_alone_have_no_loss_of_numbers(people, visitor):
    form = visitor.fill(visitor.get(f"{PAGE}/data").text)
    form |= {"role-2": "untouched", "role-3": "untouched"}
    assert visitor.post(f"{PAGE}/data", headers=HTMX, **form).status_code == 200
    visitor.change(PAGE, keys="recoding")
    assert "protect" not in visitor.text(PAGE)
    page = visitor.get(PAGE).text
    assert "All columns that are masked are categorical keys" in page
    estimate = visitor.post(f"{PAGE}/estimate", headers=HTMX, **visitor.fill(page)).text
    assert re.search(r"Information loss, about</dt><dd>–", estimate), estimate
    assert visitor.get(f"{PAGE}/explanation", headers=HTMX).status_code == 200
    visitor.change(PAGE, k="4")
    assert "k = 4" in visitor.text(PAGE)


def test_l_is_estimated_and_explained(people, visitor):
    visitor.change(PAGE, l="2", t="equal = 0.5")
    assert "t = {equal = 0.5}" in visitor.text(PAGE)
    form = visitor.fill(visitor.get(PAGE).text)
    assert form["t"] == "equal = 0.5"
    estimate = visitor.post(f"{PAGE}/estimate", headers=HTMX, **form)
    assert "Information loss, about" in estimate.text, estimate.text
    too_much = visitor.post(f"{PAGE}/estimate", headers=HTMX, **form | {"l": "9"})
    assert too_much.status_code == 200
    assert 'class="bad"' in too_much.text
    explained = visitor.get(f"{PAGE}/explanation", headers=HTMX)
    assert explained.status_code == 200
    assert "distinct l" in explained.text
