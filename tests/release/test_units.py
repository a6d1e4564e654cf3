"""k counts units: in groups, in the audit, in what is released, by every door."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella import Schema, Study, audit, protect, publish, verify
from tessella.exceptions import BadOptionError, BadTableError, GroupSizeError, RefusedError
from tessella.planfile import parse_plan
from tessella.risk import assess, k_anonymity


def panel(seed: int, n: int = 90, units: int = 14) -> pd.DataFrame:
    """Records of units of very different sizes, which lie where their unit lies."""
    random = np.random.default_rng(seed)
    own = random.choice(units, n, p=random.dirichlet(np.full(units, 0.7)))
    own[:units] = np.arange(units)
    random.shuffle(own)
    centre = random.normal(0, 3, (units, 2))
    table = pd.DataFrame(centre[own] + random.normal(0, 1, (n, 2)), columns=["x", "y"])
    return table.assign(
        size=random.integers(0, 40, n), sort=random.choice(list("abc"), n), firm=own
    )


def fewest(released: pd.DataFrame, units: pd.Series) -> int:
    """Count with plain pandas the units that share the rarest combination."""
    columns = list(released.columns)
    keys = released.assign(unit=units.to_numpy()).groupby(columns, dropna=False)
    return int(keys["unit"].nunique().min())


@pytest.mark.parametrize(
    "options",
    [
        {"grouping": "search", "options": {"effort": "quick"}},
        {"grouping": "mdav"},
        {"grouping": "fuzzy", "options": {"m2": 1.5}},
        {"grouping": "ordered"},
        {"rules": ["if sort == 'a': size >= 5", "x <= 20"]},
    ],
    ids=["search", "mdav", "fuzzy", "ordered", "rules"],
)
@pytest.mark.parametrize(
    "seeds",
    [range(3), pytest.param(range(3, 30), marks=[pytest.mark.slow, pytest.mark.heavy])],
    ids=["few", "many"],
)
def test_every_group_holds_k_units(options, seeds):
    for seed in seeds:
        table = panel(seed)
        k = 2 + seed % 3
        release = protect(table, k=k, unit="firm", random_state=seed, **options)
        assert list(release.table.columns) == ["x", "y", "size", "sort"]
        assert fewest(release.table, table["firm"]) >= k
        assert release.audit.unit == "firm"
        assert release.audit.joint.k == fewest(release.table, table["firm"])


def test_one_firm_is_not_three_however_many_records_it_has():
    table = pd.DataFrame({"firm": [1] * 10 + [2, 3], "x": [*range(10), 50, 51.0]})
    by_record = protect(table.drop(columns="firm"), k=3, random_state=0)
    by_unit = protect(table, k=3, unit="firm", random_state=0)
    assert by_unit.table["x"].nunique() == 1 < by_record.table["x"].nunique()
    with pytest.raises(GroupSizeError, match="units"):
        protect(table, k=4, unit="firm")


def test_the_audit_counts_units_and_refuses_their_column():
    table = pd.DataFrame({"firm": [1, 1, 1, 2, 3, 4], "x": [1.0, 1, 1, 5, 5, 5]})
    schema = Schema.guess(table).with_unit("firm")
    found = audit(table, table.drop(columns="firm"), k=3, blocks=[["x"]], schema=schema)
    assert found.problems == (
        "Block 1 ('x'): 3 of 6 records share their released values with fewer than 3 units of "
        "'firm' (the fewest: 1).",
    )
    kept = audit(table, table, k=2, blocks=[["x"]], schema=schema)
    assert any("role 'unit'" in problem for problem in kept.problems)
    again = verify(
        table, table.drop(columns="firm"), k=3, blocks=[["x"]], schema=schema, aligned=True
    )
    assert again.audit.joint.k == 1
    unknown = verify(table, table.drop(columns="firm"), k=3, schema=schema, aligned=False)
    assert any("k is counted in records" in note for note in unknown.notes)


def test_risk_counts_units():
    table = pd.DataFrame({"firm": [1, 1, 1, 2, 3, 4], "x": [1.0, 1, 1, 5, 5, 5]})
    assert k_anonymity(table, known="x").k == 3
    found = k_anonymity(table.drop(columns="firm"), known="x", unit=table["firm"])
    assert (found.k, found.frequency.tolist()) == (1, [1, 1, 1, 3, 3, 3])
    assert found.value == pytest.approx((3 + 3 / 3) / 6)


def test_a_record_without_a_unit_is_an_error():
    table = panel(0).astype({"firm": "Int64"})
    table.loc[3, "firm"] = pd.NA
    with pytest.raises(BadTableError, match="1 of 90 records have no unit"):
        protect(table, k=2, unit="firm")


def test_a_study_never_shows_the_units():
    table = panel(1)
    study = Study(table, unit="firm", random_state=0).do(
        "microaggregation", columns=["x", "y"], k=3
    )
    assert "firm" not in study.table.columns
    with pytest.raises(RefusedError, match="size"):
        study.release()
    study.do("protect", k=3)
    assert "firm" not in study.release().table.columns
    assert [column.name for column in study.release().schema] == ["x", "y", "size", "sort"]


def test_a_plan_counts_units(tmp_path):
    table = panel(2)
    table.to_csv(tmp_path / "panel.csv", index=False)
    kinds = {"x": "continuous", "y": "continuous", "size": "integer", "sort": "nominal"}
    columns = "".join(f'[columns.{name}]\nkind = "{kind}"\n' for name, kind in kinds.items())
    plan = parse_plan(
        f"""version = 1
seed = 3
[input]
file = "panel.csv"
{columns}[columns.firm]
kind = "nominal"
role = "unit"
[[steps]]
method = "protect"
k = 3
[output]
file = "release.csv"
order = "kept"
external_report = "report.html"
manifest = "manifest.json"
""",
        folder=tmp_path,
    )
    done = publish(plan, pictures=False)
    released = pd.read_csv(tmp_path / "release.csv")
    assert list(released.columns) == list(kinds)
    assert fewest(released, table["firm"]) >= 3
    assert "units (k = 3)." in str(done)
    report = (tmp_path / "report.html").read_text()
    assert "as records of at least 2 other respondents" in report
    assert "firm" not in report + (tmp_path / "manifest.json").read_text()


def test_order_gives_households_away():
    """Heads first, neighbours together: rebuilt from the order, and not from a random one."""
    random = np.random.default_rng(0)
    sizes = random.integers(1, 6, 200)
    home = np.repeat(np.arange(200), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    table = pd.DataFrame(
        {"home": home, "relation": np.minimum(place, 3), "x": random.normal(size=len(home))}
    )
    schema = Schema.guess(table).override(
        home={"role": "unit"}, relation={"kind": "nominal", "role": "untouched"}
    )
    masked = table.drop(columns="home").assign(x=0.0)
    options = {"schema": schema, "attacks": ["order"], "random_state": 0}
    kept = assess(table, masked, order=np.arange(len(home)), **options)["order"]
    assert (kept.rebuilt, kept.named, kept.value) == (200, len(home), 1.0)
    drawn = assess(table, masked, order=random.permutation(len(home)), **options)["order"]
    assert abs(drawn.value - drawn.baseline) < 0.05
    assert drawn.value < 0.15


def test_units_get_new_numbers_only_where_k_agree_in_everything():
    random = np.random.default_rng(3)
    homes = pd.DataFrame({"home": [f"h{i // 2:02}" for i in range(40)]})
    homes["rooms"] = np.repeat(random.integers(1, 7, 20), 2)
    homes["age"] = random.integers(18, 90, 40)
    study = Study(homes, unit="home", random_state=1).do("protect", k=3, whole_units=True)
    table = study.release(units="renumbered").table
    same = pd.crosstab(homes["home"], table["home"]) > 0
    assert (same.sum() == 1).all()  # the same units
    assert (same.sum(axis=1) == 1).all()
    assert not set(table["home"]) & set(homes["home"])
    whole = table.groupby("home", observed=True)[["rooms", "age"]].apply(
        lambda own: tuple(sorted(map(tuple, own.to_numpy().tolist())))
    )
    assert whole.value_counts().min() >= 3
    assert "home" not in study.release().table
    alone = homes.drop(columns="rooms")  # nothing is constant: records are grouped one by one
    study = Study(alone, unit="home", random_state=1).do("protect", k=3)
    with pytest.raises(RefusedError, match="left out"):
        study.release(units="renumbered")
    with pytest.raises(BadOptionError, match="role 'unit'"):
        Study(alone[["age"]], random_state=1).do("protect", k=3).release(units="renumbered")
