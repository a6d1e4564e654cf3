"""One record that is most of its group's total: named, prevented on request, never published."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tessella import Study, audit, protect, publish
from tessella.cli import app
from tessella.exceptions import BadOptionError, PlanFileError, RefusedError
from tessella.planfile import parse_plan
from tessella.risk import assess
from tessella.schema import Schema

LARGE = 987_654_321.125
PLAN = """
seed = 1
[input]
file = "people.csv"
[columns.age]
kind = "integer"
[columns.income]
kind = "continuous"
[[steps]]
method = "protect"
k = 5
grouping = "mdav"
{more}
[measures]
risk = "quick"
[output]
file = "release.csv"
order = "kept"
external_report = "report.html"
internal_report = "internal.html"
manifest = "manifest.json"
"""


def people(seed: int = 0, n: int = 200) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"age": chance.integers(20, 80, n), "income": chance.lognormal(10, 0.5, n)}
    )
    table.loc[17, "income"] = LARGE
    return table


def within(original: pd.DataFrame, masked: pd.DataFrame, column: str) -> pd.Series:
    """By pandas: where size times mean of the released group is within 10 % of the value."""
    size = masked.groupby(list(masked), sort=False)[column].transform("size")
    x = original[column]
    return ((size * masked[column] - x).abs() <= 0.1 * x.abs()) & (x != 0) & (size > 1)


def test_the_audit_and_the_attack_name_the_dominant_record():
    table = people()
    release = protect(table, k=5, grouping="mdav")
    (line,) = release.audit.dominance
    assert (line.column, line.groups, line.rows, line.within) == ("income", 1, (17,), (17,))
    assert release.audit.passed
    assert release.audit.dominated == 1
    assert "Dominance (p% rule, p = 10)" in str(release)
    assert "987" not in str(line)
    found = assess(table, release.table, attacks=["dominance"])
    assert found["dominance"].value == 1 / 200
    assert (found["dominance"].low, found["dominance"].high) == (1 / 200, 1 / 200)
    assert found["dominance"].baseline == 0
    assert found.records.loc[17, ["chance", "attack"]].tolist() == [1.0, "dominance"]
    assert within(table, release.table, "income").sum() == 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("blocks", [None, [["a", "b"], ["c", "d"]]])
def test_the_attack_finds_groups_in_the_release_alone(seed, blocks):
    """It is told nothing of blocks; pandas groups by the blocks that were masked together."""
    chance = np.random.default_rng(seed)
    table = pd.DataFrame(chance.lognormal(2, 2, (240, 4)), columns=list("abcd"))
    masked = protect(table, k=4, grouping="mdav", blocks=blocks).table
    found = assess(table, masked, attacks=["dominance"])["dominance"]
    hit, cells = np.zeros(240, bool), {}
    for block in blocks or [list("abcd")]:
        for name in block:
            own = within(table[block], masked[block], name).to_numpy()
            hit |= own
            cells |= {name: int(own.sum())} if own.any() else {}
    assert found.cells == cells
    assert found.value == hit.mean()
    assert found.chance.tolist() == hit.tolist()


def test_weights_count_in_contributions():
    """By hand: 3 of 30 is most where it weighs 100; the mean is (300 + 27) / 109."""
    table = pd.DataFrame({"x": [3.0, *[3.0] * 9], "w": [100.0, *[1.0] * 9]})
    schema = Schema.guess(table).override({"w": {"role": "weight"}, "x": {"role": "untouched"}})
    mean = (table.x * table.w).sum() / table.w.sum()
    masked = table.assign(x=mean + 1e-9)
    assert audit(table, masked, blocks=[["x"]], schema=schema).dominance[0].rows == (0,)
    assert not audit(table, masked, blocks=[["x"]]).dominance


def test_a_table_without_groups_has_no_totals():
    table = people()
    masked = Study(table, random_state=0).do("noise", amount=0.1).release()
    assert not masked.audit.dominance
    assert "dominance" in assess(table, masked.table, attacks=["dominance"]).skipped or (
        assess(table, masked.table, attacks=["dominance"])["dominance"].value < 0.02
    )


@pytest.mark.parametrize("how", ["enlarge", "refuse"])
def test_refused_with_a_coding_that_releases(how):
    table = people()
    with pytest.raises(RefusedError, match=r"1 record .*'income'") as caught:
        protect(table, k=5, grouping="mdav", on_dominance=how)
    text = str(caught.value)
    pasted = text[text.index("Study(table)") :]
    release = eval(pasted, {"Study": Study, "table": table})  # the advice, as it stands
    assert not release.audit.dominance
    assert not within(table, release.table, "income").any()


@pytest.mark.parametrize("rule", [10, {"p": 25}, {"n": 1, "k": 60}])
@pytest.mark.parametrize("seed", range(3))
def test_enlarged_groups_give_nobody_away(rule, seed):
    chance = np.random.default_rng(seed)
    table = pd.DataFrame({"a": chance.lognormal(3, 1, 300), "b": chance.lognormal(3, 1.2, 300)})
    before = protect(table, k=3, grouping="mdav", dominance=rule)
    after = protect(table, k=3, grouping="mdav", dominance=rule, on_dominance="enlarge")
    assert after.audit.dominated == 0 <= before.audit.dominated
    assert after.table.groupby(["a", "b"]).size().min() >= 3
    assert after.loss < 3 * before.loss
    for name in table:
        parts = table[name].groupby([after.table.a, after.table.b])
        for _, own in parts:
            c = sorted(own, reverse=True)
            if isinstance(rule, dict) and "n" in rule:
                assert c[0] <= 0.6 * sum(c) * (1 + 1e-9)
            else:
                p = rule if rule == 10 else 25
                assert sum(c[2:]) >= p / 100 * c[0] * (1 - 1e-9)


def test_a_plan_names_it_inside_only(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    done = publish(parse_plan(PLAN.format(more=""), folder=tmp_path))
    (warning,) = [w for w in done.warnings if w.startswith("Dominance")]
    assert "1 record" in warning
    assert "'income'" in warning
    assert "Warning: Dominance" in str(done)
    internal = (tmp_path / "internal.html").read_text()
    assert "Dominance" in internal
    riskiest = done.summary["confidential"]["riskiest"]
    assert (riskiest[0]["row"], riskiest[0]["attack"]) == (18, "dominance")
    for name in ("report.html", "manifest.json"):
        assert not re.search("ominance|sensitive", (tmp_path / name).read_text())


def test_a_plan_is_refused_with_steps_that_can_be_pasted(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    wish = 'dominance = { p = 10 }\non_dominance = "refuse"'
    text = PLAN.format(more=wish)
    (tmp_path / "plan.toml").write_text(text)
    ran = CliRunner().invoke(app, ["protect", "--plan", str(tmp_path / "plan.toml")])
    assert ran.exit_code == 1
    assert not (tmp_path / "release.csv").exists()
    with pytest.raises(RefusedError) as caught:
        publish(parse_plan(text, folder=tmp_path))
    told = str(caught.value)
    head, tail = text.index("[[steps]]"), text.index("[measures]")
    again = text[:head] + told[told.index("[[steps]]") :] + "\n" + text[tail:]
    publish(parse_plan(again, folder=tmp_path))
    table, released = pd.read_csv(tmp_path / "people.csv"), pd.read_csv(tmp_path / "release.csv")
    assert not within(table, released, "income").any()
    assert json.loads((tmp_path / "manifest.json").read_text())["k"] == 5


def test_senseless_options(tmp_path):
    with pytest.raises(BadOptionError, match="on_dominance='hide'"):
        protect(people(), k=5, on_dominance="hide")
    with pytest.raises(BadOptionError, match="dominance=0"):
        protect(people(), k=5, dominance=0)
    with pytest.raises(PlanFileError, match="dominance"):
        parse_plan(PLAN.format(more="dominance = { q = 1 }"), folder=tmp_path)
