"""Plans on engines: every promise counted in the written files, the same bytes, resumed."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import tessella
from tessella import datasets
from tessella.exceptions import BadFileError, BadOptionError, PlanError, TessellaError
from tessella.grouping.search import MIX, REFINE
from tessella.publishing import large as publishing_large
from tessella.publishing import reopen, workflow
from tessella.release import large

ONE = "500MB"  # memory for one process
FIRMS = 600

PLAN = """
seed = 1
[input]
file = "{file}"
[rules]
lines = {rules}
[[steps]]
method = "drop"
columns = ["firm"]
[[steps]]
method = "protect"
k = 4
{more}{quick}
[measures]
risk = "none"
[output]
file = "{release}"
external_report = "external.html"
internal_report = "internal.html"
manifest = "manifest.json"
summary = "summary.json"
"""


@pytest.fixture
def survey(tmp_path, monkeypatch):
    """A survey that counts as large, in a search of two rounds."""
    monkeypatch.setattr(workflow, "LARGE", 400)
    monkeypatch.setattr(large, "large_rounds", lambda _: [(20.0, MIX), (20.0, REFINE)])
    table, rules = datasets.make_business_survey(
        FIRMS, random_state=3, inconsistent=0.02, return_rules=True, frame="arrow"
    )
    pq.write_table(table, tmp_path / "firms.parquet", row_group_size=280)
    table.to_pandas().to_csv(tmp_path / "firms.csv", index=False)
    return tmp_path, table.to_pandas(), rules


def plan(home, rules, *, file="firms.parquet", release="release.parquet", more=""):
    path = home / "plan.toml"
    quick = "" if "options" in more or "grouping" in more else '\noptions = {effort = "quick"}'
    text = PLAN.format(file=file, rules=json.dumps(rules), release=release, more=more, quick=quick)
    path.write_text(text)
    return path


def publish(path, **given):
    """Without pictures, which take longest."""
    return tessella.publish(path, **{"pictures": False, **given})


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("file", ["firms.parquet", "firms.csv"])
def test_every_promise_is_kept_in_the_written_file(survey, file):
    """Counted by plain pandas."""
    home, original, rules = survey
    name = "release.csv" if file == "firms.csv" else "release.parquet"
    said = []
    done = publish(
        plan(home, rules, file=file, release=name), engine="local", memory=ONE,
        progress=lambda *given: said.append(given),
    )  # fmt: skip
    read = pd.read_csv if file == "firms.csv" else pd.read_parquet
    found = read(home / name)
    assert len(found) == len(original)
    assert "firm" not in found
    assert found.groupby(list(found.columns), observed=True).size().min() >= 4
    assert (found.hours * found.hourly_rate == found.wages).all()
    assert (found.wages + found.materials + found.other_costs == found.costs).all()
    assert (found.turnover - found.costs == found.profit).all()
    assert ((found.employees > 0) | (found.hourly_rate == 0)).all()
    assert set(found.region) <= set(original.region)
    assert done.release.inconsistent == 12
    assert not list(home.glob(".*"))  # no work is left
    promised = json.loads((home / "manifest.json").read_text())
    assert promised["records"] == len(original)
    assert promised["files"][0]["sha256"] == digest(home / name)
    public = done.summary["public"]
    assert public["sampled"] == len(original)
    assert any("drawn at random" in text for text in public["sentences"]["limits"])
    assert [one for one in said if "group" in one[2]]
    assert "local engine" in done.protocol.entries[0].account


def test_the_order_is_drawn_and_can_be_kept(survey):
    home, original, rules = survey
    publish(plan(home, rules), engine="local", memory=ONE)
    shuffled = pd.read_parquet(home / "release.parquet")
    path = plan(home, rules)
    path.write_text(path.read_text().replace("[output]", '[output]\norder = "kept"'))
    publish(path, engine="local", memory=ONE, overwrite=True)
    kept = pd.read_parquet(home / "release.parquet")
    assert sorted(map(tuple, kept.to_numpy())) == sorted(map(tuple, shuffled.to_numpy()))
    near = [np.corrcoef(own.employees, original.employees)[0, 1] for own in (kept, shuffled)]
    assert near[0] > 0.9
    assert abs(near[1]) < 0.1


def test_a_folder_in_and_a_folder_out(survey, monkeypatch):
    home, _, rules = survey
    monkeypatch.setattr("tessella.release.jobs.PARTITION", 240)
    (home / "firms").mkdir()
    table = pq.read_table(home / "firms.parquet")
    for number, first in enumerate(range(0, FIRMS, 240)):
        pq.write_table(table.slice(first, 240), home / "firms" / f"{number}.parquet")
    publish(plan(home, rules), engine="local", memory=ONE)
    publish(
        plan(home, rules, file="firms", release="out"), engine="local", memory=ONE, overwrite=True
    )
    found = pd.concat([pd.read_parquet(path) for path in sorted((home / "out").iterdir())])
    pd.testing.assert_frame_equal(
        found.reset_index(drop=True), pd.read_parquet(home / "release.parquet")
    )
    assert len(list((home / "out").iterdir())) == 3
    listed = json.loads((home / "manifest.json").read_text())["files"]
    parts = [one for one in listed if one["what"] == "part"]
    assert [one["sha256"] for one in parts] == [
        digest(path) for path in sorted((home / "out").iterdir())
    ]


def test_a_table_of_one_cell_has_the_same_bytes_as_in_memory(survey, monkeypatch):
    home, _, rules = survey
    monkeypatch.setattr(workflow, "LARGE", 10_000)
    found = []
    for engine in ("memory", "local"):
        publish(plan(home, rules), engine=engine, overwrite=True)
        found.append(digest(home / "release.parquet"))
    assert found[0] == found[1]


def test_what_was_stopped_goes_on_and_gives_the_same_bytes(survey, monkeypatch):
    home, _, rules = survey
    path = plan(home, rules)
    path.write_text(path.read_text().replace("seed = 1\n", ""))  # drawn, and kept with the work
    with monkeypatch.context() as context:
        context.setattr(publishing_large, "summarise", None)  # all jobs are done before
        with pytest.raises(TypeError):
            publish(path, engine="local", memory=ONE)
    (work,) = home.glob(".*.work")
    assert work.stat().st_mode & 0o077 == 0
    (ordered,) = work.glob("step-*-order")
    rows = {file.name: digest(file) for file in ordered.glob("*.rows")}
    steps = len(list(work.iterdir()))
    with monkeypatch.context() as context:  # no job is done again
        context.setattr("tessella.engines.local._do", _refuse)
        publish(path, engine="local", memory=ONE, resume=True)
    assert rows
    assert steps > 10
    assert not work.exists()
    first = digest(home / "release.parquet")
    publish(path, engine="local", memory=ONE, overwrite=True, resume=True)
    assert digest(home / "release.parquet") != first  # another seed was drawn


def _refuse(*_):
    raise AssertionError("this was done before")


def test_work_on_another_plan_is_not_resumed(survey, monkeypatch):
    home, _, rules = survey
    with monkeypatch.context() as context:
        context.setattr(publishing_large, "summarise", None)
        with pytest.raises(TypeError):
            publish(plan(home, rules), engine="local", memory=ONE)
    with pytest.raises(BadFileError, match="another task"):
        publish(
            plan(home, rules, more='strata = ["region"]'), engine="local", memory=ONE, resume=True
        )
    publish(plan(home, rules, more='strata = ["region"]'), engine="local", memory=ONE)


def test_recoding_is_done_in_pieces(survey):
    home, original, rules = survey
    rules = [rule for rule in rules if "region" not in rule]
    path = plan(home, rules)
    recode = """[[steps]]
method = "recode"
column = "region"
groups = {coast = ["north", "west"]}
other = "inland"
[[steps]]
method = "protect"
"""
    text = path.read_text().replace('[[steps]]\nmethod = "protect"\n', recode)
    path.write_text(text)
    publish(path, engine="local", memory=ONE)
    found = pd.read_parquet(home / "release.parquet")
    coast = original.region.isin(["north", "west"]).mean()
    assert set(found.region) == {"coast", "inland"}
    assert (found.region == "coast").mean() == pytest.approx(coast, abs=0.02)
    path.write_text(text.replace('"west"', '"nowhere"'))
    with pytest.raises(BadOptionError, match="nowhere"):
        publish(path, engine="local", memory=ONE, overwrite=True)
    assert (home / "release.parquet").exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('options = {effort = "quick", time_limit = 3}', "effort"),
        ('grouping = "nearest"', "nearest"),
    ],
)
def test_what_depends_on_the_machine_or_is_unknown_is_refused(survey, more, told):
    home, _, rules = survey
    with pytest.raises(TessellaError, match=told):
        publish(plan(home, rules, more=more), engine="local", memory=ONE)
    assert not (home / "release.parquet").exists()


def test_other_steps_and_rules_about_the_whole_are_refused(survey):
    home, _, rules = survey
    with pytest.raises(PlanError, match="mean"):
        publish(plan(home, ["hours <= 900 * mean(hours)"]), engine="local", memory=ONE)
    path = plan(home, rules)
    path.write_text(path.read_text().replace('method = "protect"', 'method = "microaggregation"'))
    with pytest.raises(PlanError, match="protect"):
        publish(path, engine="local", memory=ONE)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"engine": "flink"}, "memory, local, spark"),
        ({"memory": "much"}, "2GB"),
        ({"engine": "local", "master": "local[2]"}, "spark"),
    ],
)
def test_wrong_engines_are_refused(survey, given, told):
    home, _, rules = survey
    with pytest.raises(BadOptionError, match=told):
        publish(plan(home, rules), **given)


def test_a_table_that_would_not_fit_is_masked_in_pieces_by_itself(survey, monkeypatch):
    home, _, rules = survey
    done = publish(plan(home, rules), memory=100_000)
    assert "in pieces" in done.protocol.entries[0].account
    monkeypatch.setattr(workflow, "free_memory", lambda: 10**12)
    done = publish(plan(home, rules), overwrite=True)
    assert "in pieces" not in done.protocol.entries[0].account


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ('grouping = "fuzzy"\noptions = {at_least_k = false}', "are from 600 records, drawn"),
        ('grouping = "mdav"', "600 records in whole groups, drawn"),
    ],
)
def test_reports_state_what_was_sampled(survey, more, text):
    """Fuzzy groups without k have none that a sample could hold whole, and promise no k."""
    home, _, rules = survey
    done = publish(plan(home, rules, more=more), engine="local", memory=ONE)
    limits = " ".join(done.summary["public"]["sentences"]["limits"])
    assert text in limits
    assert ("k and the rules" in limits) == ("mdav" in more)
    assert (done.summary["public"]["k"] is None) == ("fuzzy" in more)
    found = pd.read_parquet(home / "release.parquet")
    assert (found.turnover - found.costs == found.profit).all()


@pytest.mark.slow
@pytest.mark.parametrize("more", ['strata = ["branch"]', 'grouping = "mdav"'])
def test_the_same_bytes_with_one_process_and_with_two(tmp_path, monkeypatch, more):
    """A table of real size: several pieces, cells, shards and partitions."""
    monkeypatch.setattr(large, "large_rounds", lambda _: [(20.0, MIX), (20.0, REFINE)])
    table, rules = datasets.make_business_survey(
        300_000, random_state=5, inconsistent=0.02, return_rules=True, frame="arrow"
    )
    pq.write_table(table, tmp_path / "firms.parquet")
    found = []
    for memory in (ONE, "2GB"):
        done = publish(
            plan(tmp_path, rules, more=more), engine="local", memory=memory, overwrite=True,
        )  # fmt: skip
        found.append((digest(tmp_path / "release.parquet"), done.release.loss))
    assert found[0] == found[1]
    released = pd.read_parquet(tmp_path / "release.parquet")
    assert released.groupby(list(released.columns), observed=True).size().min() >= 4
    assert (released.turnover - released.costs == released.profit).all()


def test_cells_are_suppressed_as_in_memory(survey):
    """Which cells follows from counts: the same as of the whole table, seen in what is missing."""
    home, _, rules = survey
    table = datasets.make_business_survey(FIRMS, random_state=3, missing=0.03, frame="arrow")
    pq.write_table(table, home / "firms.parquet", row_group_size=280)
    path = plan(home, rules)
    suppress = '[[steps]]\nmethod = "suppress"\nk = 4\n[[steps]]\nmethod = "protect"\n'
    text = path.read_text().replace('[[steps]]\nmethod = "protect"\n', suppress)
    path.write_text(text.replace("[output]", '[output]\norder = "kept"'))
    found = []
    for engine in ("local", "memory"):
        done = publish(path, engine=engine, memory=ONE, overwrite=True)
        found.append(pd.read_parquet(home / "release.parquet").isna().to_numpy())
        entries = [one.account for one in done.protocol if one.method == "suppress"]
        assert entries[0].split()[0] == str((found[-1] & ~_missing(table)).sum())
    assert (found[0] == found[1]).all()
    assert (found[0] >= _missing(table)).all()
    released = pd.read_parquet(home / "release.parquet")
    assert released.groupby(list(released.columns), dropna=False, observed=True).size().min() >= 4


def _missing(table):
    return table.drop_columns(["firm"]).to_pandas().isna().to_numpy()


@pytest.mark.parametrize("seed", ["seed = 1\n", ""])
def test_what_was_released_in_pieces_is_reopened_and_verified(survey, seed):
    """Records are paired by the order that the engine drew; a part that was changed is noticed."""
    home, _, rules = survey
    path = plan(home, rules, release="out")
    path.write_text(path.read_text().replace("seed = 1\n", seed))
    done = publish(path, engine="local", memory=ONE)
    again = reopen(path)
    assert again.loss()["sse_sst"].value == pytest.approx(done.loss["sse_sst"].value)
    assert again.verify().passed
    (part,) = (home / "out").iterdir()
    pq.write_table(pq.read_table(part).slice(1), part)
    with pytest.raises(BadFileError, match="hash"):
        reopen(path)
