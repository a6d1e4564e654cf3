"""Households masked whole: what is constant, what is counted, and who shares what, by pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella import Rules, Schema, protect
from tessella.datasets import make_households
from tessella.exceptions import PlanError, RefusedError
from tessella.frame import View
from tessella.masking.engine import mask_keeping_rules
from tessella.masking.homes import Homes
from tessella.masking.households import constant_columns, mask_households, needs_households
from tessella.masking.slots import assign_slots
from tessella.masking.wide import Slots
from tessella.plan import make_plan

SIX = pd.DataFrame(
    {
        "home": [1, 1, 2, 2, 3, 3, 4, 5, 6],
        "relat": [1, 2, 1, 2, 2, 1, 1, 1, 1],
        "age": [40, 38, 42, 40, 45, 47, 70, 50, 72],
        "roof": ["tin", "tin", "tin", "tin", "tile", "tile", "straw", "tile", "straw"],
        "income": [5, 3, 2, 2, 1, 1, 4, 5, 6],
        "total": [8, 8, 4, 4, 2, 2, 4, 5, 6],
    }
)
HEAD = "count(relat == 1) == 1 by home"
SUMS = [HEAD, "max(age) by home >= 16", "sum(income) by home == total"]


def masked(table, unit, k, rules, *, kinds=None, seed=0, **options):
    """Mask households; return the frame, what was masked and the rules after."""
    roles = {name: {"role": "quasi-identifier"} for name in table.columns if name != unit}
    schema = Schema.guess(table).override(roles).override(kinds or {}).with_unit(unit)
    view = View(table, schema)
    before = Rules.of(list(rules)).fix(view, schema=schema).confront(view, schema=schema)
    plan = make_plan(schema, before.rules, k=k, grouping="mdav")
    made, cells, after = mask_households(
        plan, view, before=before, weights=np.ones(len(table)), random_state=seed, **options
    )
    return made.native, cells, after


def check(table, out, unit, k, after, cells):
    """By plain pandas: constants, groups of k units, labels that say so."""
    names = [name for name in table.columns if name != unit]
    constant = [n for n in names if (table.groupby(unit)[n].nunique(dropna=False) == 1).all()]
    for name in constant:
        assert (out.groupby(unit)[name].nunique(dropna=False) == 1).all()
    shared = out.groupby(names, dropna=False, observed=True)[unit].nunique()
    assert shared.min() >= k
    assert after.all_hold
    for label in (*cells.labels, *cells.households):
        assert table[unit].groupby(label).nunique().min() >= k
    for name in names:
        assert (out.groupby(cells.labels[0])[name].nunique(dropna=False) == 1).all()
        assert (out[name].isna() == table[name].isna()).all()


def members(out, unit, k):
    """Count the households that share all members' values with fewer than k."""
    names = [name for name in out.columns if name != unit]
    ordered = out.astype(dict.fromkeys(names, str)).sort_values([unit, *names])
    alike = ordered.groupby(unit)[names].apply(lambda own: own.to_csv(index=False))
    return int((alike.map(alike.value_counts()) < k).sum())


def test_six_households_by_hand():
    """Three couples and three singles: k = 3 leaves one group of each."""
    out, cells, after = masked(SIX, "home", 3, SUMS, kinds={"relat": {"kind": "nominal"}})
    assert out["relat"].tolist() == SIX["relat"].tolist()
    assert out["age"].tolist() == [43, 41, 43, 41, 41, 43, 64, 64, 64]  # 129/3, 123/3, 192/3
    assert out["roof"].tolist() == ["tin"] * 6 + ["straw"] * 3
    # Of heads 8/3, of partners 2, of both 14/3: the nearest whole numbers that add up.
    assert out["income"].tolist() == [3, 2, 3, 2, 2, 3, 5, 5, 5]
    assert out["total"].tolist() == [5] * 9
    assert (
        cells.households[0].tolist() == [cells.households[0][0]] * 6 + [cells.households[0][8]] * 3
    )
    check(SIX, out, "home", 3, after, cells)
    assert members(out, "home", 3) == 0


def test_constant_columns_are_found_with_their_missing_cells():
    table = SIX.assign(
        rent=[1.0, 1, None, None, 2, 2, 3, None, 4], odd=[1.0, None, 2, 2, 3, 3, 4, 5, 6]
    )
    schema = Schema.guess(table).with_unit("home")
    assert constant_columns(View(table, schema)) == ["roof", "total", "rent"]
    assert constant_columns(View(SIX.drop(columns="home"))) == []


def test_who_needs_households():
    schema = Schema.guess(SIX).with_unit("home")
    ages = make_plan(schema, Rules(), k=3, columns=["age"])
    assert not needs_households(ages, View(SIX, schema))
    assert needs_households(make_plan(schema, Rules(), k=3), View(SIX, schema))
    across = make_plan(schema, Rules(["max(age) by home >= 16"]), k=3, columns=["age"])
    assert needs_households(across, View(SIX, schema))
    alone = SIX.assign(home=range(9))
    assert not needs_households(make_plan(schema, Rules(), k=3), View(alone, schema))


def test_rules_of_slots_by_hand():
    rows = np.array([[0, 1], [2, 3], [5, 4]])
    rules = Rules(
        [*SUMS, "age >= 0", "total >= 0", "mean(age) by home <= 90", "min(age) > 1 by home"]
    )
    truth = rules[0].body.operands[0].operand
    signs = {truth: np.array([1, -1])}
    slots = Slots(rows=rows, persons={"relat", "age", "income"}, signs=signs)
    assert [rule.text for rule in slots.rules(rules, SIX.columns)] == [
        "`age@1` >= 16 or `age@2` >= 16",
        "`income@1` + `income@2` == total",
        "`age@1` >= 0",
        "`age@2` >= 0",
        "total >= 0",
        "(`age@1` + `age@2`) / 2 <= 90",
        "min(`age@1`, `age@2`) > 1",
        "`relat@1` == 1",
        "`relat@2` != 1",
    ]
    wide = slots.view(View(SIX, Schema.guess(SIX)), ["age", "total"])
    assert wide.columns == ("age@1", "age@2", "total")
    assert wide.numbers("age@2").tolist() == [38, 40, 45]


def test_like_members_meet_in_slots():
    """By hand: the second household lists the child first."""
    points = np.array([[40.0], [5.0], [6.0], [44.0], [41.0], [7.0]])
    rows = np.array([[0, 1], [2, 3], [4, 5]])
    found = assign_slots(rows, np.zeros((3, 2), dtype=np.int64), points, [])
    assert sorted(map(tuple, found.tolist())) in (
        [(0, 1), (3, 2), (4, 5)],
        [(1, 0), (2, 3), (5, 4)],
    )
    kept = assign_slots(rows, np.tile([0, 1], (3, 1)), points, [points[:, 0]])
    assert kept.tolist() == rows.tolist()  # classes do not change places


def homes(seed, *, most, missing=0.0, n=240):
    table = make_households(n, random_state=seed, missing=missing).drop(columns="person")
    size = table.groupby("household")["household"].transform("size")
    table = table[size <= most].reset_index(drop=True)
    return table.assign(total=table.groupby("household")["income"].transform("sum"))


ACROSS = [
    'count(relation == "head") == 1 by household',
    "max(age) by household >= 18",
]
KEPT = ["net + tax == income", "if age < 16: income == 0", 'if sex == "male": births == 0']


@pytest.mark.parametrize("seed", [1, 2])
def test_made_up_households_keep_rules_across_members(seed):
    table = homes(seed, most=2)
    rules = [*KEPT, *ACROSS, "sum(income) by household == total"]
    out, cells, after = masked(table, "household", 3, rules, seed=seed)
    check(table, out, "household", 3, after, cells)
    assert members(out, "household", 3) == 0
    heads = out["relation"].eq("head").groupby(out["household"]).sum()
    assert heads.eq(1).all()
    assert (
        out.groupby("household")["income"].sum() == out.groupby("household")["total"].first()
    ).all()


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_rare_shapes_share_groups_with_others(seed, whole):
    """Households of up to six members, many of which are alone in their shape."""
    table = homes(seed, most=9, n=110)
    rules = [*KEPT, *ACROSS]
    out, cells, after = masked(table, "household", 3, rules, seed=seed, whole=whole)
    check(table, out, "household", 3, after, cells)
    assert out["relation"].eq("head").groupby(out["household"]).sum().eq(1).all()
    if whole:  # those of common shapes agree in everything
        sizes = table.groupby("household").size()
        assert members(out, "household", 3) < (sizes >= 4).sum()


def test_a_panel_keeps_its_constants():
    """Units of more members than a wide record has: groups within groups of units."""
    random = np.random.default_rng(0)
    firm = np.repeat(np.arange(8), 15)
    sector = np.repeat(["a", "a", "a", "b", "b", "b", "b", "a"], 15)
    table = pd.DataFrame({"firm": firm, "sector": sector, "sales": random.normal(firm, 1).round(2)})
    out, cells, after = masked(table, "firm", 3, [])
    check(table, out, "firm", 3, after, cells)
    assert (out["sector"] != sector).sum() <= 15  # three firms and five: one joins another sector
    assert out["sales"].nunique() > 10


def test_sums_of_rare_shapes_are_refused_with_a_way_out():
    table = homes(5, most=9, n=160)
    rules = [*ACROSS, "sum(income) by household == total"]
    with pytest.raises(RefusedError, match=r"sum.income. by household == total") as caught:
        masked(table, "household", 3, rules)
    way = str(caught.value).split("for example ")[1].rstrip(".")
    smaller = eval(way).reset_index(drop=True)
    out, cells, after = masked(smaller, "household", 3, rules)
    check(smaller, out, "household", 3, after, cells)


def test_what_too_few_units_lack_is_refused():
    table = SIX.assign(age=SIX["age"].where(SIX.index != 3))
    with pytest.raises(RefusedError, match=r"not relat == 1 and complete .2 units"):
        masked(table, "home", 3, [HEAD])


def test_households_stay_in_their_strata():
    table = pd.concat([SIX, SIX.assign(home=SIX["home"] + 6)], ignore_index=True)
    table["region"] = ["north"] * 9 + ["south"] * 9
    schema = Schema.guess(table).with_unit("home")
    for strata in ("region", "relat"):
        release = protect(
            table, k=3, unit="home", strata=strata, schema=schema, rules=[HEAD], random_state=0
        )
        assert release.table[strata].tolist() == table[strata].tolist()
        assert release.audit.passed


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sexes_flip_only_where_too_few_households_have_one(seed):
    """An invariant: a sex that k households of a group have stays, if the other has k or none."""
    table = homes(seed, most=9, n=900)
    out, cells, after = masked(table, "household", 3, [], seed=seed, whole=False)
    check(table, out, "household", 3, after, cells)
    flips = out["sex"] != table["sex"]
    assert flips.mean() < 0.01
    by = pd.DataFrame({"group": cells.households[0], "sex": table["sex"].astype(str)})
    units = table["household"].groupby([by["group"], by["sex"]]).nunique()
    enough = units.groupby("group").min() >= 3
    assert enough.any()
    assert not flips[by["group"].map(enough)].any()


def test_common_columns_stay_constant_across_strata_of_members():
    """A bug once met: each sex had its own distribution of what is the same in a household."""
    table = homes(1, most=9, n=400)
    schema = Schema.guess(table).with_unit("household")
    options = {"grouping": "mdav", "random_state": 0}
    release = protect(table, k=3, unit="household", strata="sex", schema=schema, **options)
    shared = release.table["total"].groupby(table["household"].to_numpy())
    assert (table.groupby("household")["sex"].nunique() == 2).any()
    assert (shared.nunique() == 1).all()
    assert release.table["sex"].tolist() == table["sex"].tolist()


def make_homes(table, k):
    schema = Schema.guess(table).with_unit("home")
    roles = {n: {"role": "quasi-identifier"} for n in table.columns if n != "home"}
    schema = schema.override(roles)
    plan = make_plan(schema, Rules(), k=k)
    return Homes(plan, View(table, schema), Rules(), np.ones(len(table)))


def test_balanced_columns_and_cells_split_by_them_by_hand():
    table = pd.DataFrame(
        {
            "home": [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6],
            "sex": list("fmfmfmfmfmff"),
            "limp": list("nnnnnnnnnnny"),  # one in twelve: rare
            "job": list("abcabcabcabc"),  # three categories
            "roof": list("xxxxxxyyyyyy"),  # of homes
            "age": range(20, 32),
        }
    )
    found = make_homes(table, 3)
    assert found.balanced == ["sex"]
    rows, cells = np.arange(12), np.repeat([0, 1], 6)
    # Three homes have women and three have men; of the other three two have men.
    assert found.split(cells, rows).tolist() == [0, 1, 0, 1, 0, 1, 2, 2, 2, 2, 2, 2]
    assert make_homes(table, 2).split(cells, rows).max() == 3


def test_composition_by_hand():
    """Homes with and without men are apart; who earns, the woman or the man, counts."""
    table = pd.DataFrame(
        {
            "home": [1, 1, 2, 2, 3, 3, 4],
            "sex": list("fmfmfmf"),
            "wage": [0.0, 9, 9, 0, 0, 8, 1],
            "rent": [5, 5, 5, 5, 6, 6, 6],
        }
    )
    points = make_homes(table, 2).composition
    away = ((points - points[0]) ** 2).sum(axis=1)
    assert away[0] < away[2] < away[1] < away[3]


@pytest.mark.parametrize("kind", ["polars", "arrow"])
def test_other_frames_give_the_same(kind):
    polars = pytest.importorskip("polars")
    given = polars.from_pandas(SIX)
    given = given.to_arrow() if kind == "arrow" else given
    options = {"k": 3, "unit": "home", "rules": SUMS, "random_state": 0}
    release = protect(given, **options)
    table = polars.from_arrow(release.table) if kind == "arrow" else release.table
    assert table.rows() == polars.from_pandas(protect(SIX, **options).table).rows()


def test_fuzzy_groups_are_refused_in_words():
    schema = Schema.guess(SIX).with_unit("home")
    plan = make_plan(schema, Rules(), k=3, grouping="fuzzy")
    before = Rules().confront(SIX)
    with pytest.raises(PlanError, match='grouping="search"'):
        mask_households(plan, View(SIX, schema), before=before, weights=np.ones(9))


def test_protect_masks_households_whole():
    release = protect(SIX, k=3, unit="home", rules=SUMS, grouping="mdav", random_state=0)
    assert "home" not in release.table
    assert release.audit.passed
    out = release.table.assign(home=SIX["home"])
    assert (out.groupby("home")["roof"].nunique() == 1).all()
    assert "masked whole" in release.plan.explain()


def test_rows_alone_are_refused_where_a_rule_across_members_breaks():
    """At row level such a rule is judged after masking, and nothing repairs it."""
    schema = Schema.guess(SIX).with_unit("home")
    rules = Rules(["max(age) by home <= 47", "sum(income) by home == total"])
    view = View(SIX, schema)
    plan = make_plan(schema, rules, k=3)
    assert all("checked after" in note for note in plan.notes)
    _, _, after = mask_keeping_rules(
        make_plan(schema, rules, k=3, grouping="mdav"),
        View(SIX.drop(columns="home"), schema, view.units),
        before=rules.confront(view, schema=schema),
        weights=np.ones(9),
        strata=view.strata(),
    )
    assert not after.all_hold
