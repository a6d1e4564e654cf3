"""No column that may identify a respondent is released unmasked without a line that declares it."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tessella import Schema, Study, protect, publish
from tessella.exceptions import RefusedError, UnsureKindWarning
from tessella.io import read_file
from tessella.planfile import draft, parse_plan

NUMBERS = ["age", "pay"]


def people(n: int = 60) -> pd.DataFrame:
    chance = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "age": chance.integers(18, 90, n),
            "pay": chance.lognormal(7, 0.4, n).round(1),
            "town": chance.choice(["Reus", "Salou", "Valls"], n),
        }
    )


def given() -> Schema:
    return Schema.from_keys(people(), keys=["town"], numeric_keys=NUMBERS)


STEPS = {
    "drop": [("drop", {"columns": ["age"]})],
    "recode": [("recode", {"column": "town", "groups": {"coast": ["Reus", "Salou"]}}),
               ("noise", {"amount": 0.2, "columns": NUMBERS})],
    "suppress": [("suppress", {"k": 3}), ("noise", {"amount": 0.2, "columns": NUMBERS})],
    "noise": [("noise", {"amount": 0.2, "columns": NUMBERS})],
    "noise in strata": [("noise", {"amount": 0.2, "columns": NUMBERS, "strata": "town"})],
    "microaggregation": [("microaggregation", {"k": 3, "columns": NUMBERS})],
    "fuzzy": [("fuzzy microaggregation", {"k": 3, "columns": NUMBERS})],
    "protect": [("protect", {"k": 3, "columns": NUMBERS})],
    "two steps": [("rounding", {"base": 5, "columns": ["age"]}),
                  ("rank swapping", {"columns": ["pay"]})],
}  # fmt: skip


@pytest.mark.parametrize("schema", [None, given()], ids=["guessed", "given"])
@pytest.mark.parametrize("steps", STEPS)
def test_an_unmasked_quasi_identifier_is_refused_by_name(steps, schema):
    study = Study(people(), schema=schema, random_state=0)
    for method, options in STEPS[steps]:
        study.do(method, **options)
    left = {"town"} if steps != "drop" else {"pay", "town"}
    assert set(study.unmasked) == left
    with pytest.raises(RefusedError) as refused:
        study.release()
    text = str(refused.value)
    assert all(repr(name) in text for name in left)
    assert "columns=[" in text
    # The second way out, pasted as it stands.
    declared = re.search(r"schema=(.*\))\.$", text)[1]
    names = {"Schema": Schema, "table": people(), "schema": given()}
    again = Study(people(), schema=eval(declared, names), random_state=0)
    for method, options in STEPS[steps]:
        again.do(method, **options)
    released = again.release()
    assert again.unmasked == []
    assert released.audit.passed


def test_protect_masks_what_is_named_and_refuses_the_rest():
    with pytest.raises(RefusedError, match="'town'"):
        protect(people(), k=3, columns=NUMBERS)
    with pytest.raises(RefusedError, match="'pay', 'town'"):
        protect(people(), k=3, columns=["age"])
    assert protect(people(), k=3).audit.passed
    declared = Schema.guess(people()).override(town={"role": "untouched"})
    kept = protect(people(), k=3, schema=declared)
    assert kept.table["town"].tolist() == people()["town"].tolist()


@pytest.mark.parametrize("method", ["protect", "microaggregation", "individual ranking"])
def test_strata_of_groups_need_no_further_word(method):
    """Each released value is shared by k records of the stratum: the option says it is kept."""
    study = Study(people(), random_state=0).do(method, k=3, columns=NUMBERS, strata=["town"])
    release = study.release()
    assert release.table["town"].tolist() == people()["town"].tolist()


def test_a_weight_that_was_only_guessed_is_not_released():
    table = people().assign(weight=np.repeat([1.5, 2.5], 30))
    guessed = Schema.guess(table)
    assert guessed["weight"].role == "weight"
    with pytest.raises(RefusedError, match="'weight'"):
        protect(table, k=3, schema=guessed)
    confirmed = guessed.override(weight={"role": "weight"})
    assert protect(table, k=3, schema=confirmed).audit.passed


def test_a_masker_that_does_not_state_its_columns_masked_none():
    from tessella.masking.registry import _REGISTERED, Method, register

    class Silent:
        def __init__(self, columns=None):
            self.columns = columns

        def fit_transform(self, table):
            return table.native

    register(Method(name="silent", masker=Silent))
    try:
        with pytest.raises(RefusedError, match="'age', 'pay', 'town'"):
            Study(people()).do("silent").release()
    finally:
        del _REGISTERED["silent"]


PLAN = """
[input]
file = "people.csv"
{columns}
[[steps]]
method = "noise"
amount = 0.2
columns = ["age", "pay"]
[measures]
risk = "none"
[output]
file = "release.csv"
order = "kept"
"""
COLUMNS = """[columns.age]
kind = "integer"
[columns.pay]
kind = "continuous"
"""
TOWN = '[columns.town]\nkind = "nominal"\n'


@pytest.mark.parametrize("columns", ["", COLUMNS + TOWN], ids=["guessed", "given"])
def test_a_plan_is_refused_and_mended_by_what_the_error_says(tmp_path, columns):
    people().to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(RefusedError) as refused:
        publish(parse_plan(PLAN.format(columns=columns), folder=tmp_path))
    text = str(refused.value)
    assert not (tmp_path / "release.csv").exists()
    assert 'columns = ["age", "pay", "town"]' in text
    declared = re.search(r'\[columns\.town\]\nkind = "nominal"\nrole = "untouched"', text)[0]
    assert ("tessella schema people.csv --toml" in text) == (columns == "")
    publish(parse_plan(PLAN.format(columns=COLUMNS + declared), folder=tmp_path))
    assert pd.read_csv(tmp_path / "release.csv")["town"].tolist() == people()["town"].tolist()


def test_the_command_ends_with_1(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "plan.toml").write_text(PLAN.format(columns=""))
    command = [sys.executable, "-m", "tessella", "protect", "--plan", "plan.toml"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 1
    assert "'town'" in ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "plan.toml"]


# Columns that tell most records apart


def badges(n: int = 60) -> pd.DataFrame:
    return people(n).assign(badge=[f"b{i}" for i in range(n)], rank=np.arange(n) * 7.0)


def test_a_unique_column_that_no_step_touches_needs_a_line():
    declared = Schema.guess(badges()).override(
        badge={"role": "untouched"}, rank={"role": "confidential", "kind": "continuous"}
    )
    with pytest.raises(RefusedError, match=r"value of their own.*'badge'") as refused:
        protect(badges(), k=3, schema=declared)
    assert "'rank'" in str(refused.value)  # confidential, and it numbers the records
    pasted = re.search(r"\.override\((.*)\)\.$", str(refused.value))[1]
    kept = declared.override(eval(pasted))
    assert protect(badges(), k=3, schema=kept).table["badge"].tolist() == badges()["badge"].tolist()
    pay = Schema.guess(people()).override(pay={"role": "confidential"})
    assert protect(people(), k=3, schema=pay).audit.passed  # an amount is unique by nature
    with pytest.raises(RefusedError, match="'pay'"):
        protect(people(), k=3, schema=pay.override(pay={"role": "untouched"}))


def test_a_value_of_one_unit_alone_tells_it_apart():
    table = people().assign(
        firm=np.repeat(np.arange(20), 3), brand=np.repeat(np.arange(20), 3) % 20
    )
    table["brand"] = "brand " + table["brand"].astype(str)
    roles = {"firm": {"role": "unit"}, "brand": {"role": "untouched", "kind": "nominal"}}
    with pytest.raises(RefusedError, match="'brand'"):
        protect(table, k=3, schema=Schema.guess(table).override(roles))
    roles["firm"] = {"role": "identifier"}
    alone = Schema.guess(table.drop(columns="firm")).override({"brand": roles["brand"]})
    assert protect(table.drop(columns="firm"), k=3, schema=alone).audit.passed


def test_a_plan_keeps_a_unique_column_by_a_line(tmp_path):
    people().assign(badge=[f"b{i}" for i in range(60)]).to_csv(tmp_path / "people.csv", index=False)
    badge = '[columns.badge]\nkind = "nominal"\nrole = "untouched"\n'
    columns = COLUMNS + TOWN + 'role = "untouched"\n'
    with pytest.raises(RefusedError, match="'badge'") as refused:
        publish(parse_plan(PLAN.format(columns=columns + badge), folder=tmp_path))
    line = re.search(r'\[columns\.badge\]\nkind = "nominal"\nrole = "untouched"\nunique = "kept"',
                     str(refused.value))[0]  # fmt: skip
    done = publish(parse_plan(PLAN.format(columns=columns + line + "\n"), folder=tmp_path))
    assert done.paths["release"].exists()


def test_an_unsure_guess_warns_until_it_is_confirmed(tmp_path):
    table = people().assign(roof=np.tile([2, 4, 9], 20))
    with pytest.warns(UnsureKindWarning, match="'roof' nominal") as warned:
        release = protect(table, k=3)
    assert set(release.table["roof"]) <= {2, 4, 9}
    pasted = re.search(r"\.override\((.*)\)\.$", str(warned[0].message))[1]
    assert protect(table, k=3, schema=Schema.guess(table).override(eval(pasted))).audit.passed
    added = Study(table, rules="roof + 1 <= age", random_state=0)  # it computes: a number
    assert added.schema["roof"].kind == "integer"
    table.to_csv(tmp_path / "people.csv", index=False)
    text = draft(read_file(tmp_path / "people.csv"), k=3, folder=tmp_path)
    assert "unsure = true" in text
    plan = parse_plan(text, folder=tmp_path)
    with pytest.warns(UnsureKindWarning, match="delete the lines unsure = true"):
        plan.study(plan.read())
    plan = parse_plan(text.replace("unsure = true\n", ""), folder=tmp_path)
    assert plan.study(plan.read()).schema["roof"].kind == "nominal"
