"""l and t of a release: counted in the written file by pandas alone, audited, verified, refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

from tessella import (
    Microaggregation,
    Rules,
    Schema,
    Study,
    audit,
    make_plan,
    protect,
    publish,
    verify,
)
from tessella.cli import app
from tessella.exceptions import (
    BadOptionError,
    DiversityError,
    PlanError,
    RefusedError,
    UnknownColumnError,
)
from tessella.io import write_file
from tessella.planfile import parse_plan
from tessella.release import protecting

KEYS = ["age", "hours", "town"]


def people(seed: int, n: int = 60) -> pd.DataFrame:
    """Keys, an illness that goes with age in some tables, and an income; some cells are missing."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 90, n)
    shares = random.dirichlet(np.full(4, 3.0))
    ill = random.choice(["flu", "cold", "burn", "none"], n, p=shares).astype(object)
    if seed % 3 == 0:
        ill[age < 40] = "flu"
    if seed % 4 == 0:
        ill[random.random(n) < 0.1] = None
    return pd.DataFrame({
        "age": age, "hours": random.integers(0, 50, n), "town": random.choice(["a", "b"], n),
        "ill": ill, "income": random.integers(1, 30, n) * 100,
    })  # fmt: skip


def schema_of(table: pd.DataFrame, **roles: dict[str, Any]) -> Schema:
    kinds = {"age": "integer", "hours": "integer", "town": "nominal", "ill": "nominal",
             "income": "integer"}  # fmt: skip
    known = {name: {"kind": kinds[name]} for name in table.columns}
    for name in ("ill", "income"):
        known[name]["role"] = "confidential"
    return Schema({name: {**own, **roles.get(name, {})} for name, own in known.items()})


def breaks(file: pd.DataFrame, keys: list[str], column: str, asked: Any) -> int:
    """Count the groups of a file that do not have what is asked for, by pandas alone."""
    kind, limit, c = asked
    whole = file[column].value_counts(normalize=True).sort_index()
    broken = 0
    for _, group in file.groupby(keys, dropna=False):
        counts = group[column].value_counts()
        shares = counts / counts.sum()
        if not len(counts):
            broken += 1
        elif kind == "distinct":
            broken += len(counts) < limit
        elif kind == "entropy":
            broken += -(shares * np.log(shares)).sum() < math.log(limit) - 1e-9
        elif kind == "recursive":
            broken += not counts.iloc[0] < c * counts.iloc[int(limit) - 1 :].sum()
        elif kind == "equal":
            away = (shares.reindex(whole.index, fill_value=0) - whole).abs().sum() / 2
            broken += away > limit + 2e-9
        else:
            steps = (shares.reindex(whole.index, fill_value=0) - whole).cumsum().abs().sum()
            broken += steps / max(1, len(whole) - 1) > limit + 2e-9
    return broken


def wish(seed: int) -> tuple[dict[str, Any], Any]:
    """What is asked for, as an option and as `breaks` takes it."""
    random = np.random.default_rng(seed + 10**6)
    kind = ["distinct", "entropy", "recursive", "equal", "ordered"][seed % 5]
    if kind in ("equal", "ordered"):
        t = float(random.choice([0.15, 0.2, 0.3]))
        return {"t": {kind: t}}, (kind, t, 0)
    if kind == "entropy":
        limit = float(random.choice([1.5, 2.0]))
        return {"l": {"entropy": limit}}, (kind, limit, 0)
    if kind == "recursive":
        c = float(random.choice([1.5, 3.0]))
        return {"l": {"recursive": [c, 2]}}, (kind, 2, c)
    limit = int(random.choice([2, 3]))
    return {"l": limit}, (kind, limit, 0)


def check_file(seed: int, path: Path) -> bool:
    """Protect a random table, write it, count in the file; return whether it could be released."""
    table, k = people(seed, 30 + seed % 40), 2 + seed % 4
    option, asked = wish(seed)
    column = "income" if asked[0] == "ordered" else "ill"
    other = "ill" if column == "income" else "income"
    schema = schema_of(table, **{other: {"role": "untouched", "unique": "kept"}})
    strata = ["town"] if seed % 6 == 0 else []
    try:
        release = protect(
            table, k=k, schema=schema, strata=strata, random_state=seed,
            grouping="search" if seed % 8 == 0 else ["mdav", "vmdav", "cbfs"][seed % 3], **option,
        )  # fmt: skip
    except DiversityError:
        return False
    write_file(release.table, path, overwrite=True)
    file = pd.read_csv(path, keep_default_na=True)
    assert len(file) == len(table)
    assert file.groupby(KEYS).size().min() >= k
    assert breaks(file, KEYS, column, asked) == 0, seed
    return True


def test_the_written_file_keeps_it_in_40_random_tables(tmp_path):
    released = sum(check_file(seed, tmp_path / "release.csv") for seed in range(40))
    assert released >= 24


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize(
    ("seeds", "least"),
    [(range(100), 60), *((range(s, s + 100), 50) for s in range(1000, 3000, 100))],
)
def test_the_written_file_keeps_it_in_2100_random_tables(tmp_path, seeds, least):
    released = sum(check_file(seed, tmp_path / "release.csv") for seed in seeds)
    assert released >= least


def test_confidential_columns_named_are_released_as_they_are():
    table = people(1)
    release = protect(table, k=3, l=2, confidential="ill", random_state=0)
    assert release.table["ill"].equals(table["ill"])
    assert breaks(release.table, [*KEYS, "income"], "ill", ("distinct", 2, 0)) == 0
    (line,) = release.audit.diversity
    assert (line.column, line.limit, line.records) == ("ill", 2.0, 0)
    assert "distinct l >= 2 of ill" in release.plan.explain()


def test_without_l_and_t_nothing_changes():
    """The options as they are by default are no options."""
    table = people(2)
    plain = protect(table, k=3, schema=schema_of(table), random_state=5)
    again = protect(
        table, k=3, schema=schema_of(table), l=None, t=None, confidential=None, random_state=5
    )
    assert plain.table.equals(again.table)
    assert plain.audit.diversity == ()
    assert "onfidential values" not in str(plain.audit)


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"l": 5, "confidential": "ill"}, DiversityError, "distinct l 4"),
        ({"l": 2, "confidential": "age", "columns": ["age", "hours"]}, PlanError, "masked"),
        ({"l": 2, "confidential": "town", "strata": ["town"]}, PlanError, "a stratum"),
        ({"l": 2, "confidential": "ill", "blocks": [["age"], ["hours", "town", "income"]]},
         PlanError, "blocks"),
        ({"l": 2, "confidential": "ill", "grouping": "fuzzy"}, PlanError, "fuzzy"),
        ({"l": 2, "confidential": "ill", "grouping": "overlapping"}, PlanError, "overlapping"),
        ({"confidential": "ill"}, BadOptionError, "l or t beside"),
        ({"l": 2}, BadOptionError, "confidential"),
        ({"l": 2, "confidential": "illness"}, UnknownColumnError, "illness"),
        ({"t": 2, "confidential": "ill"}, BadOptionError, "below 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_promised_is_refused(given, error, match):
    with pytest.raises(error, match=match):
        protect(people(1), k=3, random_state=0, **given)


def test_parts_of_rules_that_are_not_diverse_join_others_or_are_refused():
    """Who is below 30 has no hours: a part of its own, all of whom have the flu."""
    table = people(5, 80)
    table.loc[table.age < 30, ["hours", "ill"]] = [0, "flu"]
    table.loc[table.age >= 30, "hours"] += 1
    schema = schema_of(table, income={"role": "untouched"})
    rules = "if age < 30: hours == 0"
    given = {"k": 3, "rules": rules, "schema": schema, "l": 2, "random_state": 0}
    with pytest.raises(DiversityError, match="parts"):
        protect(table, small="refuse", **given)
    release = protect(table, **given)
    assert release.merged > 0
    assert breaks(release.table, KEYS, "ill", ("distinct", 2, 0)) == 0
    assert Rules.parse(rules).confront(release.table).all_hold


def test_a_later_step_that_breaks_it_is_found_by_the_audit():
    table = people(7, 90)
    study = Study(table, schema=schema_of(table, income={"role": "untouched"}), random_state=0)
    study.do("protect", k=3, l=2, grouping="mdav")
    assert study.release().audit.diversity[0].worst >= 2
    study.do("coding", columns=["income"], top=0.9)
    assert study.release().audit.passed
    one = study.table.assign(ill="flu")
    found = audit(table, one, k=3, l=2, confidential="ill", blocks=[KEYS])
    assert any("'ill'" in problem and "distinct l >= 2" in problem for problem in found.problems)


def test_an_audit_counts_over_all_blocks_and_takes_the_schemas_columns():
    table = pd.DataFrame({"x": [1, 1, 2, 2], "y": [1, 2, 1, 2], "ill": list("abba")})
    schema = Schema({
        "x": {"kind": "integer"}, "y": {"kind": "integer"},
        "ill": {"kind": "nominal", "role": "confidential"},
    })  # fmt: skip
    one = audit(table, table, l=2, blocks=[["x"]], schema=schema)
    assert one.diversity[0].worst == 2
    both = audit(table, table, l=2, blocks=[["x"], ["y"]], schema=schema)
    assert both.diversity[0].worst == 1
    assert both.diversity[0].records == 4
    assert not both.passed
    assert both.to_dict()["diversity"][0]["asked"] == "distinct l >= 2"
    closer = audit(table, table, t={"equal": 0.1}, blocks=[["x"]], schema=schema)
    assert closer.diversity[0].worst == 0


def test_units_are_counted_for_k_and_records_for_l():
    table = people(2, 90).assign(person=np.arange(90) // 2)
    schema = Schema({**{c.name: {"kind": c.kind, "role": c.role} for c in schema_of(people(2))},
                     "person": {"kind": "integer", "role": "unit"}})  # fmt: skip
    release = protect(
        table, k=3, l=2, confidential=["ill"], schema=schema, grouping="mdav", random_state=0
    )
    file = release.table.assign(person=table.person)
    assert file.groupby(KEYS).person.nunique().min() >= 3
    assert breaks(file, KEYS, "ill", ("distinct", 2, 0)) == 0


def test_units_masked_together_are_refused():
    table = people(2, 90).assign(person=np.arange(90) // 2)
    table["town"] = np.where(table.person % 2, "a", "b")
    with pytest.raises(PlanError, match="masked together"):
        protect(table, k=3, l=2, confidential="ill", unit="person", random_state=0)


def test_microaggregation_takes_it_too():
    table = people(1)
    masker = Microaggregation(
        3, l=2, confidential="ill", columns=["age", "hours"], grouping="mdav", random_state=0
    )
    masked = masker.fit_transform(table)
    assert breaks(masked, ["age", "hours"], "ill", ("distinct", 2, 0)) == 0
    assert str(masker.diversity_) == "distinct l >= 2 of ill"
    with pytest.raises(BadOptionError, match="not masked"):
        Microaggregation(3, l=2, confidential="age", columns=["age"]).fit_transform(table)
    with pytest.raises(BadOptionError, match="one block"):
        Microaggregation(
            3, l=2, confidential="ill", columns=["age", "hours"], blocks=1
        ).fit_transform(table)
    schema = schema_of(table, income={"role": "untouched"}, town={"role": "untouched"})
    study = Study(table, schema=schema, random_state=0)
    study.do("microaggregation", k=3, l=2, grouping="mdav")
    assert study.release().audit.diversity[0].records == 0


def test_a_plan_is_made_with_it_and_explains_it():
    plan = make_plan(
        schema_of(people(0)), Rules(), k=3, l={"recursive": [2, 3]}, t=0.25, confidential=["ill"]
    )
    assert plan.diversity.options == {
        "l": {"recursive": [2.0, 3]}, "t": 0.25, "confidential": ["ill"],
    }  # fmt: skip
    assert "recursive l (c = 2) >= 3 and t <= 0.25 of ill" in plan.explain()


PLAN = """
seed = 1
[input]
file = "people.csv"
[columns.age]
kind = "integer"
[columns.hours]
kind = "integer"
[columns.town]
kind = "nominal"
[columns.ill]
kind = "nominal"
role = "confidential"
[columns.income]
kind = "integer"
role = "untouched"
[[steps]]
method = "protect"
k = 3
l = {l}
t = 0.4
grouping = "mdav"
[measures]
risk = "none"
[output]
file = "release.csv"
external_report = "report.html"
manifest = "manifest.json"
"""


def test_a_plan_file_is_published_and_its_manifest_verified(tmp_path):
    people(1, 90).to_csv(tmp_path / "people.csv", index=False)
    plan = parse_plan(PLAN.format(l="{ entropy = 1.5 }"), folder=tmp_path)
    publish(plan, pictures=False)
    file = pd.read_csv(tmp_path / "release.csv")
    assert breaks(file, KEYS, "ill", ("entropy", 1.5, 0)) == 0
    assert breaks(file, KEYS, "ill", ("equal", 0.4, 0)) == 0
    own = json.loads((tmp_path / "manifest.json").read_text())["diversity"]
    assert own["l"] == {"entropy": 1.5}
    assert [line["asked"] for line in own["reached"]] == ["entropy l >= 1.5", "t (equal) <= 0.4"]
    assert "entropy l &gt;= 1.5" in (tmp_path / "report.html").read_text()
    given = tmp_path / "people.csv", tmp_path / "release.csv"
    assert verify(*given, manifest=tmp_path / "manifest.json").passed
    file.assign(ill=file.ill.mode()[0]).to_csv(tmp_path / "release.csv", index=False)
    found = verify(*given, manifest=tmp_path / "manifest.json")
    assert any("entropy l >= 1.5" in problem for problem in found.problems)


def test_a_plan_file_with_a_wrong_l_is_refused_before_anything_is_read():
    from tessella.exceptions import PlanFileError

    with pytest.raises(PlanFileError, match="recursive"):
        parse_plan(PLAN.format(l="1"))


def test_commands_take_it(tmp_path):
    people(1, 90).to_csv(tmp_path / "people.csv", index=False)
    found = CliRunner().invoke(app, [
        "protect", str(tmp_path / "people.csv"), "-k", "3", "--l", "2", "--t", "equal=0.4",
        "--confidential", "ill", "--grouping", "mdav", "--seed", "1", "--quiet",
    ], catch_exceptions=False)  # fmt: skip
    assert found.exit_code == 0, found.output
    file = pd.read_csv(tmp_path / "people-release.csv")
    assert breaks(file, [*KEYS, "income"], "ill", ("distinct", 2, 0)) == 0
    assert breaks(file, [*KEYS, "income"], "ill", ("equal", 0.4, 0)) == 0
    text = CliRunner().invoke(app, [
        "plan", str(tmp_path / "people.csv"), "-k", "3", "--l", "recursive=2,3", "--keys", "town",
        "--numeric-keys", "age,hours", "--confidential", "ill", "--others", "untouched", "--quiet",
    ], catch_exceptions=False).stdout  # fmt: skip
    assert "recursive = [2, 3]" in text.replace("recursive=", "recursive =")
    assert "recursive l (c = 2) >= 3 of ill" in " ".join(text.replace("#", "").split())


def test_a_table_larger_than_memory_is_refused(monkeypatch):
    monkeypatch.setattr(protecting, "LARGE", 50)
    lazy = pl.from_pandas(people(1, 90)).lazy()
    with pytest.raises(PlanError, match="larger than memory"):
        protect(lazy, k=3, l=2, confidential="ill")


def test_a_release_that_breaks_it_is_withheld():
    """A later step gives everybody the flu: what is released is audited, not what was grouped."""
    table = people(1, 60)
    study = Study(table, schema=schema_of(table, income={"role": "untouched"}), random_state=0)
    to_flu = {value: {"flu": 1.0} for value in table.ill.unique()}
    study.do("protect", k=3, l=2, grouping="mdav").do(
        "pram", columns=["ill"], matrix={"ill": to_flu}
    )
    with pytest.raises(RefusedError, match="distinct l >= 2"):
        study.release()
