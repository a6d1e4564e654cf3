"""Record swapping: units change places whole, margins stay, units at risk come first."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tessella import Schema, Study
from tessella.exceptions import BadOptionError, BadTableError, RefusedError, UnchangedWarning
from tessella.kernels.swapping import pair_units
from tessella.masking import RecordSwapping
from tessella.masking.record_swapping import arrange, count_sharing, member_lists
from tessella.rules import Rules
from tests.amounts import few_or_many, try_examples

GEOGRAPHY = ["state", "town"]
KEYS = ["sex", "age"]
PROFILES = [["sex", "age"], ["sex"], []]
quiet = pytest.mark.filterwarnings("ignore::tessella.exceptions.UnchangedWarning")


def households(n: int, seed: int, *, ages: int = 4, towns: int = 3) -> pd.DataFrame:
    """Return persons in households; `house` is another one for each, and goes with the place."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 4, n)
    state = rng.integers(0, 3, n)
    town = rng.integers(0, towns, n)  # towns of different states have the same names
    unit = np.repeat(np.arange(n), size)
    return pd.DataFrame({
        "unit": unit, "house": unit, "state": state[unit], "town": [f"t{x}" for x in town[unit]],
        "sex": rng.choice(["f", "m"], len(unit)), "age": rng.integers(0, ages, len(unit)),
    }).sample(frac=1, random_state=seed).reset_index(drop=True)  # fmt: skip


def schema_of(table: pd.DataFrame) -> Schema:
    known = Schema.guess(table)
    kinds = {name: {"kind": "nominal", "role": "quasi-identifier"} for name in table}
    return known.override({**kinds, "unit": {"role": "unit", "kind": "nominal"}})


def swapping(table: pd.DataFrame, **options) -> RecordSwapping:
    given = {"keys": KEYS, "similar": PROFILES, "carry": "house", "schema": schema_of(table)}
    return RecordSwapping(**{"geography": GEOGRAPHY, **given, **options})


def persons(unit: pd.DataFrame, names: list[str]) -> tuple:
    """The persons of a unit in some columns, in any order, and how many they are."""
    return len(unit), tuple(sorted(map(tuple, unit[names].to_numpy().tolist())))


# By hand.


def test_two_at_risk_change_places_and_nobody_else():
    table = pd.DataFrame({
        "state": list("AAAABBBB"), "sex": list("ffmmffmm"), "old": list("nnynnnnn"),
    })  # fmt: skip
    # "m y" and "m n" are alone in A, and of B nobody is: their donors are the men of B.
    masker = RecordSwapping("state", keys=["sex", "old"], similar="sex", k=2, rate=0)
    released = masker.fit_transform(table)
    assert masker.risky_ == {"state": 2}
    assert masker.swapped_ == {"state": 4}
    assert released.state.tolist() == list("AABBBBAA")
    # Of those who agree in both, B has two for "m n" and none for "m y".
    with pytest.warns(UnchangedWarning, match="Of 2 units at risk, 1 found no donor"):
        masker.set_params(similar=["sex", "old"]).fit_transform(table)
    assert masker.without_donor_ == {"state": 1}


def test_a_unit_at_risk_in_its_town_alone_stays_in_its_state():
    """The state has two of the kind, in different towns: they change towns, not states."""
    table = pd.DataFrame({
        "state": ["A"] * 6 + ["B"] * 6, "town": ["a"] * 3 + ["b"] * 3 + ["c"] * 3 + ["d"] * 3,
        "job": ["x", "y", "y", "x", "y", "y"] * 2,
    })  # fmt: skip
    masker = RecordSwapping(GEOGRAPHY, keys=["job"], similar=["job"], k=2, rate=0)
    released = masker.fit_transform(table)
    assert masker.risky_ == {"state": 0, "town": 4}
    assert released.state.tolist() == table.state.tolist()
    assert released.town.tolist() == list("baaabbdcccdd")


def test_units_and_not_records_are_counted():
    """Three records of one household share a key, and it is alone with it."""
    region = np.array([0, 0])
    keys, units = np.array([7, 7, 7, 8, 8]), np.array([0, 0, 0, 0, 1])
    assert count_sharing(region, keys, units).tolist() == [1, 2]


def test_members_are_compared_in_any_order():
    codes, units = np.array([1, 2, 2, 1, 1, 1, 2]), np.array([0, 0, 1, 1, 2, 2, 3])
    assert member_lists(codes, units).tolist() == [1, 1, 2, 0]


# Invariants.


def places_are_exchanged_and_margins_stay(seed, n, k, rate):
    table = households(n, seed)
    masker = swapping(table, k=k, rate=rate, random_state=seed)
    try:
        released = masker.fit_transform(table)
    except BadOptionError as error:
        if "geography" not in str(error):  # a level that divides nothing, in a small table
            raise
        return
    same = ["unit", "sex", "age"]
    pd.testing.assert_frame_equal(released[same], table[same])
    assert (released.groupby("unit")[["state", "town", "house"]].nunique() == 1).all(axis=None)
    units, after = (one.drop_duplicates("unit").set_index("unit") for one in (table, released))
    partner = after.house  # every house belonged to one unit
    assert (partner[partner.to_numpy()].to_numpy() == partner.index).all()  # who swaps, swaps back
    moved = partner.index[partner.to_numpy() != partner.index]
    members = dict(iter(table.groupby("unit")))
    for unit in moved:
        other = partner[unit]
        own, theirs = units.loc[unit, GEOGRAPHY], units.loc[other, GEOGRAPHY]
        assert tuple(own) != tuple(theirs)
        assert tuple(after.loc[unit, GEOGRAPHY]) == tuple(theirs)
        assert persons(members[unit], []) == persons(members[other], [])
    sizes = table.groupby("unit").size()
    for level in (["state"], GEOGRAPHY):
        before, now = (
            one.assign(size=sizes).groupby([*level, "size"]).size() for one in (units, after)
        )
        pd.testing.assert_series_equal(before, now)
    assert sum(masker.swapped_.values()) == len(moved) == sum(masker.by_profile_)
    if rate == 0 and k == 1:
        assert not len(moved)


@quiet
@few_or_many(25, 60)
def test_places_are_exchanged_and_margins_stay(count):
    try_examples(
        count,
        places_are_exchanged_and_margins_stay,
        st.integers(0, 10**6),
        st.integers(12, 60),
        st.integers(1, 4),
        st.sampled_from([0.0, 0.1, 0.4]),
    )


@given(st.integers(0, 10**6), st.integers(20, 60))
@settings(max_examples=40, deadline=None)
@quiet
def test_what_every_profile_has_is_counted_the_same_in_every_region(seed, n):
    table = households(n, seed)
    masker = swapping(table, similar=[["sex", "age"], ["sex"]], rate=0.3, random_state=seed)
    released = masker.fit_transform(table)
    for level in (["state"], GEOGRAPHY):
        counts = [one.groupby([*level, "sex"]).size() for one in (table, released)]
        pd.testing.assert_series_equal(*counts)


@given(st.integers(0, 10**6), st.integers(20, 60), st.integers(2, 4))
@settings(max_examples=40, deadline=None)
@quiet
def test_units_at_risk_are_swapped_or_have_nobody_to_swap_with(seed, n, k):
    """Risk is counted anew by pandas; who stays has no free unit of his size elsewhere."""
    table = households(n, seed, ages=8)
    masker = swapping(table, k=k, rate=0, random_state=seed)
    released = masker.fit_transform(table)
    moved = set(table.unit[table.house != released.house])
    place = table.drop_duplicates("unit").set_index("unit")[GEOGRAPHY]
    sizes = table.groupby("unit").size()
    coarser: set = set()
    for level in (["state"], GEOGRAPHY):
        shared = table.groupby([*level, *KEYS]).unit.transform("nunique")
        risky = set(table.unit[shared < k]) - coarser
        coarser |= risky
        left = risky & set(table.unit[(table[level] == released[level]).all(axis=1)])
        assert masker.risky_[level[-1]] == len(risky)
        assert masker.without_donor_[level[-1]] == len(left)
        for unit in left:
            free = set(place.index) - moved - {unit}
            home = tuple(place.loc[unit, level])
            elsewhere = [u for u in free if tuple(place.loc[u, level]) != home]
            assert not [u for u in elsewhere if sizes[u] == sizes[unit]]


@quiet
def test_every_region_has_its_rate():
    table = households(600, 1)
    masker = swapping(table, k=1, rate=[0.05, 0.2], random_state=3)
    released = masker.fit_transform(table)
    units, after = (one.drop_duplicates("unit").set_index("unit") for one in (table, released))
    for level, rate in (("state", 0.05), ("town", 0.2)):
        names = ["state"] if level == "state" else GEOGRAPHY
        crossed = (units[names] != after[names]).any(axis=1)
        assert (crossed.groupby([units[n] for n in names]).mean() >= rate).all()
    assert sum(masker.swapped_.values()) < 0.4 * masker.n_units_  # and not much more than that


@quiet
def test_strata_are_not_crossed_and_near_donors_come_first():
    table = households(400, 2)
    inside = swapping(table, strata="state", geography=["town"], k=3, rate=0.1, random_state=1)
    released = inside.fit_transform(table)
    assert (released.state == table.state).all()
    table = households(600, 2, ages=10, towns=12)
    both = swapping(table, similar=None, k=3, rate=0, random_state=1).fit_transform(table)
    risky = table.groupby(["state", *KEYS]).unit.transform("nunique") < 3
    assert not risky.any()  # so that every swap is within a state, where there are donors
    assert (both.state == table.state).all()
    assert (both.town != table.town).any()


def test_donors_are_drawn_uniformly_from_other_regions():
    region = np.array([0, 1, 1, 1, 2, 2, 0])
    pools, counts = np.zeros(7, dtype=np.int64), np.zeros(7)
    rng = np.random.default_rng(0)
    for _ in range(4000):
        partner, need = np.full(7, -1), np.full(3, 9)
        donors = arrange(pools, region, rng.permutation(7))
        pair_units(np.array([0]), rng.random(1), region, need, donors, partner)
        assert partner[partner[0]] == 0
        counts[partner[0]] += 1
    assert counts[0] == counts[6] == 0
    assert stats.chisquare(counts[1:6]).pvalue > 0.001


@quiet
def test_the_same_seed_gives_the_same_release_on_every_library():
    table = households(100, 3)
    once = swapping(table, random_state=5).fit_transform(table)
    pd.testing.assert_frame_equal(once, swapping(table, random_state=5).fit_transform(table))
    import polars as pl

    other = swapping(table, random_state=5).fit_transform(pl.from_pandas(table))
    pd.testing.assert_frame_equal(other.to_pandas(), once)


# Refusals, and the study.


def test_what_has_no_one_place_is_refused():
    table = households(40, 4)
    for options, expected in (
        ({"geography": ["town", "state"]}, "coarsest to the finest|divides"),
        ({"keys": ["town"]}, "not exchanged"),
        ({"similar": [["sex", "town"]]}, "not exchanged"),
        ({"rate": [0.1]}, "a list of 2"),
        ({"rate": 1.5}, "share"),
        ({"k": 0}, "k"),
        ({"keys": []}, "keys"),
        ({"columns": ["sex"]}, "geography"),
    ):
        if options.get("geography"):
            table = table.assign(town=table.state.astype(str) + table.town)
        with pytest.raises(BadOptionError, match=expected):
            swapping(table, **options).fit_transform(table)
    split = table.copy()
    several = split.unit[split.unit.duplicated()].iloc[0]
    split.loc[split.index[split.unit == several][0], "town"] = "elsewhere"
    with pytest.raises(BadTableError, match="as a whole"):
        swapping(split).fit_transform(split)
    lacking = table.assign(town=table.town.mask(table.unit == 0))
    with pytest.raises(BadTableError, match="lacks"):
        swapping(lacking).fit_transform(lacking)


@quiet
def test_rules_are_counted_and_a_study_refuses_what_breaks_them():
    table = households(150, 6)
    table["coast"] = np.where(table.state == 0, "yes", "no")
    rules = Rules.parse('if state == 0: coast == "yes"')
    masker = swapping(table, rules=rules, rate=0.3, random_state=1)
    masker.fit_transform(table)
    assert sum(masker.restoration_.broken.values()) > 0
    similar = [["coast", "sex"], ["coast"]]
    kept = swapping(table, rules=rules, similar=similar, rate=0.3, random_state=1)
    kept.fit_transform(table)
    assert sum(kept.restoration_.broken.values()) == 0
    schema = schema_of(table).override(
        {name: {"role": "untouched"} for name in ("sex", "age", "coast")}
    )
    options = {"geography": GEOGRAPHY, "carry": ["house"], "keys": KEYS, "rate": [0.3, 0.3]}
    study = Study(table, schema=schema, rules=rules, random_state=1)
    with pytest.raises(RefusedError):
        study.do("record swapping", **options, similar=[["sex"], []]).release()
    study.undo().do("record swapping", **options, similar=similar)
    release = study.release()
    assert "units were given another place" in str(study.protocol)
    assert "unit" not in release.table.columns
    assert release.audit.k is None


@quiet
def test_k_within_regions_is_counted_after_swapping_too():
    """Groups of k in each state, then states are exchanged: the audit counts, and refuses."""
    table = households(60, 7).drop(columns="house")
    table["pay"] = np.random.default_rng(0).gamma(2, 900, len(table)).round(1)
    schema = schema_of(table).override(
        {"pay": {"kind": "continuous"}, "sex": {"role": "untouched"}, "age": {"role": "untouched"},
         "unit": {"role": "untouched"}, "town": {"role": "untouched"}}
    )  # fmt: skip
    study = Study(table, schema=schema, random_state=0)
    study.do("protect", k=3, columns=["pay"], strata=["state"], grouping="mdav")
    study.do("record swapping", geography=["state"], keys=["sex"], k=1, rate=0.2)
    with pytest.raises(RefusedError):
        study.release()
