"""Interval disclosure and prediction: by hand, by definition, and what must hold of an attack."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    LinkageError,
    UnknownColumnError,
    UnknownOptionError,
)
from tessella.masking import NoiseAddition, RankSwapping
from tessella.risk import interval_disclosure, predict_confidential
from tessella.schema import Schema

cells = st.one_of(st.integers(0, 6).map(float), st.just(np.nan))
pairs = st.integers(1, 3).flatmap(
    lambda d: st.lists(
        st.tuples(
            st.lists(cells, min_size=d, max_size=d),
            st.lists(cells, min_size=d, max_size=d),
        ),
        min_size=2,
        max_size=20,
    )
)
X4 = np.array([[0.0], [1.0], [2.0], [10.0]])


def interval(y, value, by, width):
    """Slow and obviously right: the interval of one released value."""
    seen = np.sort(y[~np.isnan(y)])
    if by == "sd":
        s = seen.std(ddof=1) if len(seen) > 1 else 0.0
        return value - width * s, value + width * s
    w = int(width * len(y) + 1e-9)
    at = np.flatnonzero(seen == value)
    return seen[max(at[0] - w, 0)], seen[min(at[-1] + w, len(seen) - 1)]


def near_by_rank(x, true, released, width):
    """At most a share of the true values lie strictly between x and the released value."""
    low, high = min(x, released), max(x, released)
    between = ((low < true) & (true < high)).sum()
    return not np.isnan(x) and between <= width * (~np.isnan(true)).sum() + 1e-9


@given(
    pairs, st.sampled_from(["rank", "original rank", "sd"]), st.sampled_from([0.05, 0.1, 0.3, 1.0])
)
def test_intervals_are_their_definition(rows, by, width):
    """An independent way, value by value; the baseline over all pairs of records."""
    X, Y = (np.array([row[side] for row in rows]) for side in (0, 1))
    if np.isnan(X).all():
        with pytest.raises(BadTableError, match="nothing to disclose"):
            interval_disclosure(X, Y, by=by, width=width)
        return
    found = interval_disclosure(X, Y, by=by, width=width)
    n, d = X.shape
    inside, guessed = np.zeros((n, d), dtype=bool), np.zeros((n, d))
    for v in range(d):
        for j in range(n):
            if np.isnan(Y[j, v]):
                continue
            if by == "original rank":
                hit = np.array([near_by_rank(x, X[:, v], Y[j, v], width) for x in X[:, v]])
            else:
                low, high = interval(Y[:, v], Y[j, v], by, width)
                hit = (low <= X[:, v]) & (X[:, v] <= high)
            inside[j, v] = hit[j]
            guessed[:, v] += hit / n
    assert (found.inside == inside).all()
    has = np.maximum((~np.isnan(X)).sum(axis=1), 1)
    assert found.chance == pytest.approx(inside.sum(axis=1) / has)
    assert found.baseline == pytest.approx((guessed.sum(axis=1) / has).mean())


def test_original_ranks_by_hand():
    """100 numbers, 1 % of the ranks: one original may lie between."""
    X = np.arange(100.0)[:, None]
    Y = X + np.where(X == 50, 2.0, 3.0)  # 51 lies between 50 and 52; two do elsewhere
    found = interval_disclosure(X, Y, by="original rank", width=0.01)
    assert found.inside[50, 0]
    assert not found.inside[:50].any()
    some = interval_disclosure(X, Y, by="original rank", width=0.01, records=[3, 50])
    assert some.inside.ravel().tolist() == [False, True]
    assert some.attacked.tolist() == [3, 50]
    assert some.baseline == pytest.approx(found.baseline)  # about everybody
    with pytest.raises(BadOptionError, match="original rank"):
        interval_disclosure(X, Y, records=[3, 50])


def test_intervals_by_hand():
    Y = np.array([[0.5], [0.5], [6.0], [6.0]])
    near = interval_disclosure(X4, Y, by="sd", width=0.2)  # s = 3.175: 0.635 to each side
    assert near.inside.ravel().tolist() == [True, True, False, False]
    assert near.by_variable == {0: 0.5}
    # By rank, 25 % is one rank: 0.5 reaches to 6, and 6 down to 0.5, but no further.
    ranks = interval_disclosure(X4, Y, width=0.25)
    assert ranks.inside.ravel().tolist() == [False, True, True, False]


def test_sdcmicros_measure():
    """The formula of dRisk in sdcMicro 5.8.1: rowSums(x < mi | x > ma) == 0; one more to 5.5.1."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    Y = X + 0.1 * rng.normal(size=X.shape)
    reach = 0.05 * Y.std(axis=0, ddof=1)
    outside = ((Y - reach > X) | (Y + reach < X)).sum(axis=1)
    found = interval_disclosure(X, Y, by="sd", width=0.05)
    assert found.every == pytest.approx((outside == 0).mean())
    assert found.with_outside(1) == pytest.approx((outside <= 1).mean())


def test_more_noise_discloses_less_and_guessing_stays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    little, much = (
        interval_disclosure(X, NoiseAddition(amount=s, random_state=0).fit_transform(X))
        for s in (0.05, 1.0)
    )
    assert little.value > much.value > much.baseline
    assert little.curve["share"].is_monotonic_increasing
    assert little.average < little.value
    assert interval_disclosure(X, X).value == 1.0
    shuffled = X[rng.permutation(500)]
    alone = interval_disclosure(X, shuffled)
    assert alone.value == pytest.approx(alone.baseline, abs=0.03)


def test_rank_swapping_within_p_is_disclosed_within_p():
    """A known weakness: ranks move at most p, so intervals of p ranks hold every value."""
    X = np.random.default_rng(4).normal(size=(400, 2))
    masked = RankSwapping(5, random_state=0).fit_transform(X)
    assert interval_disclosure(X, masked, width=0.05).value == 1.0


def test_tables_with_categories():
    table = pd.DataFrame({"town": ["a", "b", "a"], "income": [1.0, 2.0, 3.0]})
    found = interval_disclosure(table, table)
    assert found.columns == ("income",)
    assert "left out, having no order: 'town'" in found.explain()
    with pytest.raises(BadTableError, match="no order: 'town'"):
        interval_disclosure(table, table, known="town")


def test_an_id_aligns():
    before = pd.DataFrame({"id": [1, 2, 3], "x": [0.0, 5.0, 9.0]})
    after = pd.DataFrame({"id": [3, 1], "x": [9.0, 0.0]})
    assert interval_disclosure(before, after, id="id", by="sd", width=0.01).value == 1.0


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"by": "range"}, UnknownOptionError, "'rank', 'sd'"),
        ({"width": 0}, BadOptionError, "above 0"),
        ({"width": 2}, BadOptionError, "at most 1"),
        ({"widths": (0.1, -1)}, BadOptionError, "widths"),
        ({"known": "z"}, UnknownColumnError, "'z'"),
    ],
)
def test_intervals_refuse(options, error, says):
    with pytest.raises(error, match=says):
        interval_disclosure(X4, X4, **options)


def people(n, seed, noise=0.0):
    """Illness depends on age and town for everybody, and on chance for each."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.normal(50, 15, n), "town": rng.choice(list("abc"), n)})
    odds = (table["age"] > 55) ^ (rng.random(n) < noise)
    return table.assign(ill=np.where(odds, "yes", "no"), income=rng.normal(size=n))


def test_the_own_record_is_told_from_inference():
    """Random values: all is given away by the own record, nothing by people like him."""
    table = people(400, 0)
    found = predict_confidential(
        table, table, "income", known=["age", "town"], tolerance=0.1, random_state=0
    )
    assert found.model == "nearest"
    assert found.value == 1.0
    assert found.without.value < 0.15
    assert found.disclosed > 0.85
    assert found.r2 == pytest.approx(1.0)
    assert found.r2_without < 0.1


def test_inference_is_no_disclosure():
    """A rule that is true of everybody: found without the person as well."""
    table = people(600, 1)
    found = predict_confidential(table, table, "ill", known=["age", "town"], random_state=0)
    assert found.value > 0.98
    assert found.without.value > 0.95
    assert found.baseline < 0.7
    assert found.disclosed < 0.05


def test_people_who_are_not_in_the_release_lose_nothing():
    """A release about others: the persons' rows are not theirs, and are not better predicted."""
    mine, others = people(600, 2, noise=0.2), people(600, 3, noise=0.2)
    found = predict_confidential(mine, others, "ill", known=["age", "town"], random_state=0)
    assert abs(found.disclosed) < 0.05
    assert found.without.value == pytest.approx(0.8, abs=0.06)


def test_outsiders_are_predicted_by_inference_only():
    """Persons held back: as well predicted as others without their own record."""
    table = people(800, 8, noise=0.2).assign(id=np.arange(800))
    found = predict_confidential(
        table, table[:500], "ill", known=["age", "town"], id="id", random_state=0
    )
    assert found.n == 500
    assert found.outsiders.n == 300
    assert found.outsiders.value == pytest.approx(found.without.value, abs=0.06)
    assert not found.outsiders.exact
    assert (
        predict_confidential(
            table, table, "ill", known="age", models="nearest", random_state=0
        ).outsiders
        is None
    )


def test_nearest_by_hand():
    """Records 0 and 1 look alike: the value that two of three have is said of all three."""
    before = pd.DataFrame({"x": [0.0, 0.1, 0.2, 9.0], "v": ["a", "b", "b", "c"]})
    after = before.assign(x=[0.1, 0.1, 0.1, 9.0])
    found = predict_confidential(before, after, "v", models="nearest", folds=4, random_state=0)
    assert found.chance.tolist() == [0, 1, 1, 1]
    assert found.baseline == 0.5
    # Without the own record: {b, b}, {a, b}: a, {a, b}: a, and then the others.
    assert found.chance_without.tolist() == [0, 0, 0, 0]


def test_the_best_constant_is_the_baseline():
    """Released 0, 0.1, 0.2 and 5: within 10 % of 2.12, one number meets three of them."""
    before = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "v": [0.0, 0.1, 0.2, 5.0]})
    assert (
        predict_confidential(before, before, "v", models="nearest", random_state=0).baseline == 0.75
    )


def test_missing_constant_and_unseen_values():
    table = people(200, 5)
    table["same"] = 1.0
    table["none"] = np.nan
    release = table.copy()
    release.loc[:20, "age"] = np.nan
    release.loc[:10, "ill"] = None
    release["town"] = release["town"].replace("c", "b")
    original = table.copy()
    original.loc[100:120, "ill"] = None
    found = predict_confidential(original, release, "ill", random_state=0)
    assert found.n == 179
    assert "21 persons have no value" in found.explain()
    assert 0 <= found.value <= 1


def test_a_target_of_codes_follows_the_schema():
    table = pd.DataFrame({"x": np.arange(60.0), "code": np.arange(60) % 20})
    schema = Schema(
        {"x": {"kind": "continuous"}, "code": {"kind": "nominal", "role": "confidential"}}
    )
    coded = predict_confidential(
        table, table, "code", schema=schema, models="nearest", random_state=0
    )
    assert "code, a category" in coded.explain()
    assert coded.r2 is None
    free = predict_confidential(table, table, "code", models="nearest", random_state=0)
    assert "code, a number" in free.explain()


def test_same_seed_same_answer():
    table = people(150, 6, noise=0.1)
    one, other = (predict_confidential(table, table, "ill", random_state=3) for _ in range(2))
    assert one.by_model == other.by_model
    assert (one.chance_without == other.chance_without).all()


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"target": "il"}, UnknownColumnError, "Did you mean 'ill'"),
        ({"target": "ill", "known": ["ill"]}, BadOptionError, "other than the target"),
        ({"target": "ill", "known": []}, BadOptionError, "at least one"),
        ({"target": "ill", "models": ["forest"]}, BadOptionError, "'boosting'"),
        ({"target": "ill", "folds": 1}, BadOptionError, "at least 2"),
        ({"target": "income", "tolerance": -1}, BadOptionError, "tolerance"),
    ],
)
def test_prediction_refuses(options, error, says):
    table = people(20, 7)
    with pytest.raises(error, match=says):
        predict_confidential(table, table, **options)


def test_prediction_refuses_tables():
    table = people(20, 7)
    with pytest.raises(LinkageError, match="20 records"):
        predict_confidential(table, table[:10], "ill", random_state=0)
    with pytest.raises(LinkageError, match="no variable in common"):
        predict_confidential(table[["ill"]], table[["ill"]], "ill", random_state=0)
    with pytest.raises(LinkageError, match="one record"):
        predict_confidential(table[:1], table[:1], "ill", random_state=0)
    with pytest.raises(BadTableError, match="no values to predict"):
        predict_confidential(table.assign(ill=None), table, "ill", random_state=0)
