"""All attacks together: the worst counts, nothing is left out in silence, records add up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella import Microaggregation, Schema
from tessella.exceptions import BadOptionError, LinkageError, UnknownColumnError, UnknownOptionError
from tessella.masking import NoiseAddition, RankSwapping
from tessella.risk import ATTACKS, Attack, Estimate, assess, attack, learn, link
from tessella.risk.aligned import align_tables
from tessella.risk.assessment import draw_strata


def normal(n: int, d: int = 3, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, d))


def persons(n: int = 120) -> pd.DataFrame:
    random = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": random.integers(18, 80, n),
            "income": random.normal(size=n).round(3),
            "town": random.choice(["Reus", "Valls", "Salou"], n),
            "ill": random.choice(["yes", "no"], n),
        }
    )


# By hand


def test_four_records_by_hand() -> None:
    """1 and 2 are swapped, 3 and 4 stay: by Euclid half are found, and the frame says who."""
    original = np.array([[0.0], [1.0], [5.0], [9.0]])
    masked = original[[1, 0, 2, 3]]
    found = assess(original, masked, attacks=["euclidean", "k-anonymity"], random_state=0)
    assert found.value == 0.5
    assert found.worst is not None
    assert found.worst.name == "euclidean"
    assert found.records["chance"].tolist() == [0.0, 0.0, 1.0, 1.0]
    assert found.records["attack"].tolist() == ["", "", "euclidean", "euclidean"]
    assert found.records["original"].tolist() == [0, 1, 2, 3]
    assert [one.about for one in found.tried] == ["identity", "table"]


# Invariants


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_dates_are_attacked_as_days(zone):
    # a bug once met: LinkageError for a table with dates
    random, n = np.random.default_rng(2), 80
    days = random.integers(0, 9000, (n, 2))
    moved = days + random.integers(-300, 300, (n, 2))
    both = [
        pd.DataFrame({"a": own[:, 0], "b": own[:, 1], "x": own.sum(axis=1) % 97.0})
        for own in (days, moved)
    ]
    dated = []
    for own in both:
        dates = {c: pd.to_datetime(own[c], unit="D").dt.tz_localize(zone) for c in ("a", "b")}
        dated.append(own.assign(**dates))
    plain, found = (
        assess(*tables, effort="standard", random_state=0, attacks=ATTACKS_OF_NUMBERS)
        for tables in (both, dated)
    )
    assert not found.skipped
    assert [one.found.value for one in found.tried] == [one.found.value for one in plain.tried]


ATTACKS_OF_NUMBERS = ["k-anonymity", "euclidean", "mahalanobis", "interval", "one-to-one"]


@pytest.mark.parametrize(
    "column",
    [pd.Series([pd.NaT] * 30, dtype="datetime64[ns]"),
     pd.Series(pd.to_timedelta(np.arange(30) // 4, unit="D")),
     pd.Series(pd.to_datetime(["2020-01-01", None, "9999-12-31"] * 10, format="ISO8601")),
     pd.Series(pd.Categorical([None] * 30, categories=["a", "b"], ordered=True)),
     pd.Series([None] * 30, dtype=object), pd.Series([np.nan] * 30)],
    ids=["no date", "duration", "some dates", "no rank", "no object", "no number"],
)  # fmt: skip
@pytest.mark.parametrize("alone", [True, False])
def test_no_column_blocks_the_other_attacks(column, alone):
    table = pd.DataFrame({"g": column} if alone else {"g": column, "x": normal(30)[:, 0].round(1)})
    found = assess(table, table, confidential=["g"], effort="standard", random_state=0)
    assert found["gower"].value >= 0
    assert set(found.skipped) | {one.name for one in found.tried} >= {"euclidean", "prediction"}


def test_figures_are_those_of_the_single_attacks() -> None:
    original = normal(150)
    masker = RankSwapping(percent=12, random_state=0)
    masked = masker.fit_transform(original)
    found = assess(original, masked, method=masker, effort="quick", random_state=0)
    assert found["euclidean"].value == link(original, masked).value
    assert found["mahalanobis"].value == link(original, masked, distance="mahalanobis").value
    assert found["transparency"].value == attack(original, masked, masker).value
    learned = learn(
        original, masked, effort="quick", max_records=300, held_out=False, random_state=0
    )
    assert found["learned"].value == learned.value
    best = max(one.found.value for one in found.about("identity"))
    assert found.value == best
    frame = found.records
    for one in found.about("identity"):
        assert frame[one.name].mean() == pytest.approx(one.found.value)
    assert (frame["chance"] >= frame["euclidean"]).all()


def test_every_attack_is_tried_or_has_a_reason() -> None:
    table = persons(60)
    masked = table.assign(age=table.age + 3, income=table.income * 1.1)
    found = assess(
        table, masked, confidential="ill", effort="thorough", attacks=list(ATTACKS), random_state=0
    )
    named = {one.name for one in found.tried} | set(found.skipped)
    assert named == set(ATTACKS)
    assert all(found.skipped.values())
    assert {"gower", "homogeneity", "prediction", "probabilistic"} <= {t.name for t in found.tried}
    text = str(found)
    assert "Not tried:" in text
    assert all(name in text for name in named)


def test_an_effort_includes_the_smaller_ones() -> None:
    original = normal(40)
    masked = original + normal(40, seed=1) * 0.3
    named = [
        {one.name for one in assess(original, masked, effort=effort, random_state=0).tried}
        for effort in ("quick", "standard", "thorough")
    ]
    assert named[0] < named[1] < named[2]


def test_scenarios_are_tried_apart() -> None:
    table = persons()[["age", "income"]]
    masked = table.assign(income=table.income + normal(120, 1)[:, 0])
    found = assess(
        table, masked, known={"neighbour": ["age"], "bank": ["age", "income"]},
        attacks=["euclidean"], random_state=0
    )  # fmt: skip
    assert [one.scenario for one in found.tried] == ["neighbour", "bank"]
    assert found.tried[0].found.value == link(table, masked, known="age").value
    assert list(found.records.columns[3:]) == ["euclidean (neighbour)", "euclidean (bank)"]


def test_records_are_aligned_by_id() -> None:
    table = persons(60).assign(person=np.arange(60))
    mixed = table.sample(frac=1, random_state=0).reset_index(drop=True)
    found = assess(
        table, mixed, id="person", known=["age", "income"], effort="quick", random_state=0
    )
    assert found["euclidean"].value == 1.0
    assert found.records["original"].tolist() == mixed["person"].tolist()


def test_the_known_method_is_the_worst_for_rank_swapping() -> None:
    original = normal(300, 5)
    masker = RankSwapping(percent=10, random_state=0)
    found = assess(
        original, masker.fit_transform(original), method=masker, effort="quick", random_state=0
    )
    assert found.worst is not None
    assert found.worst.name == "transparency"


def test_sampling_weights_ask_for_individual_risk() -> None:
    table = persons()
    without = assess(
        table, table, known=["age", "town"], attacks=["individual risk"], random_state=0
    )
    assert "weights" in without.skipped["individual risk"]
    found = assess(
        table, table, known=["age", "town"], weights=np.full(120, 10.0),
        attacks=["individual risk"], random_state=0
    )  # fmt: skip
    assert 0 < found["individual risk"].value < 1


# Samples


@settings(max_examples=15, deadline=None)
@given(st.integers(60, 400), st.integers(20, 60), st.integers(0, 100))
def test_a_stratified_draw_covers_the_table(n: int, size: int, seed: int) -> None:
    sides = align_tables(normal(n), normal(n, seed=1))
    draw = draw_strata(sides, size, seed)
    assert draw.shares.sum() == pytest.approx(1.0)
    assert len(np.unique(draw.records)) == len(draw.records) == len(draw.stratum)
    assert set(draw.stratum) == set(range(len(draw.shares)))
    ones = np.ones(len(draw.records))
    whole = Estimate.of(1, 1, baseline=0.0, attack="x")
    assert draw.estimate(whole, ones).value == pytest.approx(1.0)


def test_the_interval_of_a_sample_holds_the_truth() -> None:
    """Over 60 draws the interval misses the share of all records at most a few times."""
    original = normal(1500, 2)
    masked = original + normal(1500, 2, seed=1) * 0.05
    truth = link(original, masked).value
    inside, means = 0, []
    for seed in range(60):
        found = assess(original, masked, attacks=["euclidean"], sample=200, random_state=seed)
        one = found["euclidean"]
        inside += one.low <= truth <= one.high
        means.append(one.value)
    assert inside >= 52
    assert np.mean(means) == pytest.approx(truth, abs=0.02)  # unbiased, though far ones prevail


# Time


def test_what_there_is_no_time_for_is_named() -> None:
    original = normal(200)
    seen: list[tuple[int, int, str]] = []
    found = assess(
        original, original, time_limit=1e-9, effort="thorough",
        progress=lambda done, total, name: seen.append((done, total, name)), random_state=0
    )  # fmt: skip
    assert not found.tried
    assert np.isnan(found.value)  # not 0: nobody has looked
    assert not found.value < 1
    assert found.to_dict()["value"] is None
    assert "not known" in str(found)
    assert all("time limit" in why for why in found.skipped.values())
    assert [done for done, _, _ in seen] == list(range(len(seen)))
    assert seen[-1][0] == seen[-1][1]


def test_an_attack_of_ones_own() -> None:
    always = Attack(
        name="oracle", about="identity",
        run=lambda case: Estimate.of(3, 4, baseline=0.25, attack=f"knows {len(case.known)}"),
    )  # fmt: skip
    found = assess(normal(4), normal(4), attacks=[always, "k-anonymity"], random_state=0)
    assert found["oracle"].value == 0.75


# Bad input


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: assess(normal(5), normal(6), random_state=0), LinkageError),
        (lambda: assess(normal(1), normal(1), random_state=0), LinkageError),
        (lambda: assess(normal(9), normal(9), known=["age"], random_state=0), UnknownColumnError),
        (lambda: assess(normal(9), normal(9), known={}, random_state=0), BadOptionError),
        (lambda: assess(normal(9), normal(9), effort="much", random_state=0), UnknownOptionError),
        (
            lambda: assess(normal(9), normal(9), attacks=["magic"], random_state=0),
            UnknownOptionError,
        ),
        (lambda: assess(normal(9), normal(9), attacks="euclidean", random_state=0), BadOptionError),
        (lambda: assess(normal(9), normal(9), time_limit=0, random_state=0), BadOptionError),
        (lambda: assess(normal(9), normal(9), sample=0, random_state=0), BadOptionError),
        (
            lambda: assess(normal(9), normal(9), confidential="x", random_state=0),
            UnknownColumnError,
        ),
        (
            lambda: assess(persons(), persons()[["age"]].rename(columns=str.upper), random_state=0),
            LinkageError,
        ),
        (lambda: link(normal(9), normal(9), records=[1, 1]), BadOptionError),
        (lambda: link(normal(9), normal(9), records=[9]), BadOptionError),
    ],
)
def test_bad_input(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_constant_and_missing_values_have_a_stated_treatment() -> None:
    table = persons().assign(same=1.0)
    table.loc[3, "income"] = np.nan
    found = assess(table, table, effort="quick", random_state=0)
    assert "gower" in {one.name for one in found.tried}
    assert any("constant" in line for line in found["euclidean"].assumptions)
    with pytest.raises(KeyError, match="was not tried"):
        found["transparency"]


def test_a_masker_without_an_attack_is_told() -> None:
    original = normal(50)
    masker = NoiseAddition(0.1, random_state=0)
    found = assess(
        original, masker.fit_transform(original), method=masker, effort="quick", random_state=0
    )
    assert "NoiseAddition" in found.skipped["transparency"]


def test_schema_and_micro_aggregation() -> None:
    table = persons()
    schema = Schema.guess(table).override(ill={"role": "confidential"})
    masker = Microaggregation(4, columns=["age", "income"], random_state=0)
    found = assess(
        table, masker.fit_transform(table), schema=schema, known=["age", "income"], random_state=0
    )
    assert found["k-anonymity"].value <= 1 / 4 + 1e-12
    assert found["homogeneity"].value > 0
    kept = found.to_dict()
    assert kept["value"] == found.value
    assert len(kept["attacks"]) == len(found.frame()) == len(found.tried)


def test_a_column_changed_by_another_method_does_not_stop_who_knows_this_one():
    """A bug once met: the table was refused as not coming from the method."""
    original = persons()
    masker = RankSwapping(percent=5, columns=["age", "income"], random_state=0)
    masked = masker.fit_transform(original)
    masked["town"] = np.roll(masked["town"], 1)
    found = assess(original, masked, method=masker, attacks=["transparency"], random_state=0)
    assert found["transparency"].value > 0.5
    assert any("town" in line and "not used" in line for line in found["transparency"].assumptions)
    same = attack(original, masked, masker, known=["age", "income", "ill"])
    assert found["transparency"].value == same.value


def test_tables_in_another_order_are_refused_and_not_called_safe() -> None:
    """A bug once met: a shuffled copy of the original itself had a risk of 1 %."""
    original = persons()
    shuffled = original.sample(frac=1, random_state=0)
    with pytest.raises(LinkageError, match="another order"):
        assess(original, shuffled, random_state=0)
    with pytest.raises(LinkageError, match="another order"):
        link(original, shuffled, known=["age", "income"])
    assert (
        assess(original, shuffled.loc[original.index], effort="quick", random_state=0).value > 0.9
    )
    apart = shuffled.reset_index(drop=True)  # nothing says who is who: the rows are taken as given
    assert assess(original, apart, effort="quick", random_state=0).value < 0.1


def test_scenarios_need_names_of_their_own_and_say_why_they_were_skipped() -> None:
    original = persons()
    with pytest.raises(BadOptionError, match="another name"):
        assess(original, original, known={1: ["age"], "1": ["income"]}, random_state=0)
    found = assess(
        original,
        original,
        known={"a": ["age"], "b": ["income"]},
        attacks=["mahalanobis"],
        random_state=0,
    )
    with pytest.raises(KeyError, match="fewer than two"):
        found["mahalanobis"]


def test_shares_within_the_k_nearest_are_put_together_from_strata_too() -> None:
    """A bug once met: `within` was the sample's own, in which far records are many."""
    random = np.random.default_rng(0)
    original = random.standard_t(2, size=(2000, 3))
    masked = original + 0.3 * random.normal(size=original.shape)
    found: Any = assess(original, masked, attacks=["euclidean"], sample=400, random_state=0)[
        "euclidean"
    ]
    whole = link(original, masked)
    assert found.within[1] == pytest.approx(found.value)
    for k, share in whole.within.items():
        assert found.within[k] == pytest.approx(share, abs=0.08)


def test_a_missing_cell_does_not_take_its_column_from_the_intervals() -> None:
    """A bug once met: columns with a missing cell were not looked at."""
    original = persons()
    original.loc[0, "income"] = np.nan
    found: Any = assess(original, original, attacks=["interval"], random_state=0)["interval"]
    assert found.columns == ("age", "income")
    assert found.by_variable["income"] == 1.0


def test_a_confidential_variable_that_is_masked_is_not_taken_for_true() -> None:
    """Bug once met: equal released values of a masked variable were counted as disclosed."""
    table = persons()
    masked = Microaggregation(4, columns=["age", "income"], random_state=0).fit_transform(table)
    found = assess(
        table, masked, confidential="income", known=["age"], effort="quick", random_state=0
    )
    assert "'income' is masked, too" in found.skipped["homogeneity"]


def test_a_prediction_stands_beside_its_controls(census: Any) -> None:
    """A bug once met: 93 % by prediction against 50 % by guessing, and nothing is disclosed.

    Half of Census is released, masked by MDAV at k = 5; people outside it are predicted as well.
    """
    table = pd.DataFrame(census, columns=[f"v{j}" for j in range(13)])
    table["rich"] = np.where(table["v12"] > table["v12"].median(), "yes", "no")
    table = table.drop(columns="v12").assign(id=np.arange(len(table)))
    half = np.sort(np.random.default_rng(0).permutation(len(table))[: len(table) // 2])
    numbers = [f"v{j}" for j in range(12)]
    inside = table.iloc[half].reset_index(drop=True)
    masked = Microaggregation(5, grouping="mdav", columns=numbers).fit_transform(inside)
    found = assess(
        table, masked, id="id", known=numbers, confidential="rich",
        attacks=["prediction", "euclidean"], random_state=0,
    )  # fmt: skip
    line = next(line for line in str(found).splitlines() if line.startswith("  prediction"))
    frame = found.frame().set_index("attack").loc["prediction"]
    assert f"people outside the release {100 * frame.outsiders:.1f} %" in line
    assert f"without the own record {100 * frame.without:.1f} %" in line
    assert f"excess {100 * frame.excess:.1f} %" in line
    assert frame.excess == pytest.approx((frame.value - frame.outsiders) / (1 - frame.outsiders))
    assert frame.baseline == pytest.approx(0.5, abs=0.05)
    assert frame.value > 0.9
    assert frame.excess_low < 0 < frame.excess_high
    outside = found["prediction"].outsiders
    assert outside.n == len(table) - len(half)
    assert outside.high > frame.value  # no more is known of those in the release
    assert np.isnan(found.frame().set_index("attack").loc["euclidean"].excess)
    line_of = next(one for one in found.to_dict()["attacks"] if one["attack"] == "prediction")
    assert line_of["outsiders"] == frame.outsiders
    assert line_of["beside"] in line
