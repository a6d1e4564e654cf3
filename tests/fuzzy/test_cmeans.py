"""Fuzzy c-means: against the formulas of the papers, at its limits, and where it must refuse."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    ClusterCountError,
    CollapsedError,
    UnfinishedWarning,
    UnknownOptionError,
)
from tessella.fuzzy import EntropyFuzzyCMeans, FuzzyCMeans, TolerantFuzzyCMeans
from tessella.fuzzy.field import Field, critical_lambda, critical_m, entropy_law, power_law
from tests.amounts import HEAVY
from tests.reference import fuzzy as reference
from tests.scikit import holds_but_for

ALL = [FuzzyCMeans, EntropyFuzzyCMeans, TolerantFuzzyCMeans]


def normal(n=300, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def blobs(n=240, d=2, c=4, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)) * 0.3 + random.normal(size=(c, d))[np.arange(n) % c] * 4


def standardised(table):
    return (table - table.mean(axis=0)) / table.std(axis=0)


EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "starts are drawn: a record of weight 2 and two equal records draw different ones"
    )
}


@parametrize_with_checks([make(n_init=2) for make in ALL])
def test_scikit_learn(estimator, check):
    holds_but_for(estimator, check, EXPECTED_FAILURES)


# The formulas


@pytest.mark.parametrize("m", [1, 1.05, 1.1, 1.2, 1.37, 1.5, 2, 3])
@pytest.mark.parametrize("c", [2, 5, 90])
def test_one_sweep_is_the_papers(m, c):
    X, weights = normal(), np.random.default_rng(1).uniform(0.5, 3, 300)
    V = X[:c] + 0.01
    u = reference.degrees(X, V, m)
    swept = Field.of(X, weights, c)
    inner = swept.inward(V)
    for neglect in (0.0, 1e-12):
        found = swept.sweep(inner, power_law(m, neglect))
        expected = reference.objective(X, V, u, m, weights)
        assert swept.objective(found.objective) == pytest.approx(expected, rel=1e-11)
        np.testing.assert_allclose(
            swept.outward(found.centres)[u.sum(axis=0) > 0],
            reference.means(X, u**m, weights)[u.sum(axis=0) > 0],
            atol=1e-9,
        )


@pytest.mark.parametrize("rate", [1e-3, 0.5, 3.0, 1e4])
def test_one_sweep_with_entropy_is_the_papers(rate):
    X, weights = normal(), np.random.default_rng(1).uniform(0.5, 3, 300)
    V = X[:70] + 0.01
    u = reference.entropy_degrees(X, V, rate)
    field = Field.of(X, weights, 70)
    found = field.sweep(field.inward(V), field.law(entropy_law(rate)))
    expected = reference.entropy_objective(X, V, u, rate, weights)
    assert field.objective(found.objective) == pytest.approx(expected, rel=1e-11)
    seen = u.sum(axis=0) > 1e-200
    means = reference.means(X, u, weights)
    np.testing.assert_allclose(field.outward(found.centres)[seen], means[seen], atol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 7, 10])
def test_memberships_are_the_papers(d):
    X = normal(200, d)
    found = FuzzyCMeans(6, m=1.2, random_state=0, n_init=2).fit(X)
    for m in (1.1, 1.5, 2.3):
        expected = reference.degrees(X, found.cluster_centers_, m)
        np.testing.assert_allclose(found.membership(X, m=m), expected, atol=1e-12)
    assert (found.predict(X) == found.membership(X).argmax(axis=1)).all()
    assert (found.labels_ == found.predict(X)).all()


def test_m_of_one_is_k_means():
    """An independent way: scikit-learn's k-means from the same start."""
    X = normal(1000, 4)
    for seed in range(5):
        V = X[np.random.default_rng(seed).choice(1000, 12, replace=False)]
        ours = FuzzyCMeans(12, m=1, init=V, tol=0).fit(X)
        with threadpool_limits(1):  # others would wait for each other, on a busy machine
            theirs = KMeans(12, init=V, n_init=1, tol=0, max_iter=1000, algorithm="lloyd").fit(X)
        assert (ours.labels_ == theirs.labels_).all()
        assert ours.objective_ == pytest.approx(theirs.inertia_, rel=1e-12)
        assert set(np.unique(ours.membership(X))) == {0.0, 1.0}


def test_a_record_on_a_centre_belongs_to_it():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 5.0], [4.0, 4.0]])
    found = FuzzyCMeans(2, m=2, init=X[[0, 2]], max_iter=1, tol=1e9).fit(X)
    assert found.membership(X[[0, 2]]) == pytest.approx(np.eye(2), abs=1e-280)


def test_by_hand():
    """Two centres at 0 and 3, a record at 1: D = 1 and 4, m = 2: u = 4/5 and 1/5."""
    found = FuzzyCMeans(2, m=2, init=[[0.0], [3.0]], max_iter=1, tol=1e9).fit([[0.0], [3.0]])
    assert found.membership([[1.0]])[0] == pytest.approx([0.8, 0.2])
    assert found.membership([[1.0]], m=1.5)[0] == pytest.approx([16 / 17, 1 / 17])


# Descent


tables = st.tuples(st.integers(0, 10**6), st.integers(6, 60), st.integers(1, 5), st.booleans())


@settings(max_examples=60)
@given(tables, st.integers(1, 5), st.sampled_from([1, 1.05, 1.3, 1.5, 2.0]), st.booleans())
def test_the_objective_never_rises(table, c, m, accelerate):
    seed, n, d, whole = table
    X = np.random.default_rng(seed).normal(size=(n, d)) * 3
    X = X.round() if whole else X
    c = min(c, len(np.unique(X, axis=0)))
    constraints = (np.ones((1, d)), [1.0]) if seed % 2 else None
    shared = {"n_init": 2, "random_state": 0, "constraints": constraints, "max_iter": 60}
    models = [
        FuzzyCMeans(c, m=m, accelerate=accelerate, **shared),
        EntropyFuzzyCMeans(c, lambda_=1 / m, accelerate=accelerate, **shared),
        TolerantFuzzyCMeans(c, m=m, kappa=0.3, **shared),
        TolerantFuzzyCMeans(c, m=m, kappa=0.3, shape="box", **shared),
    ]
    for model in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnfinishedWarning)
            try:
                model.fit(X)
            except CollapsedError:
                continue
        history = np.array(model.history_)
        assert (np.diff(history) <= 1e-9 * np.abs(history[:-1]) + 1e-12).all()
        if constraints is not None:
            sums = model.cluster_centers_.sum(axis=1)
            assert np.abs(sums - 1).max() <= 1e-9 * (1 + np.abs(model.cluster_centers_).max())


def test_acceleration_ends_at_a_rest_of_the_plain_loop():
    X = blobs()
    fast = FuzzyCMeans(4, m=1.5, random_state=0, tol=1e-8).fit(X)
    plain = FuzzyCMeans(4, m=1.5, init=fast.cluster_centers_, accelerate=False, tol=1e-8).fit(X)
    assert plain.objective_ == pytest.approx(fast.objective_, rel=1e-12)
    assert (
        fast.n_iter_
        <= FuzzyCMeans(4, m=1.5, random_state=0, tol=1e-8, accelerate=False).fit(X).n_iter_
    )


def test_the_answer_does_not_depend_on_cores_offset_or_scale(monkeypatch):
    X = normal(20_000, 3)
    make = lambda: FuzzyCMeans(100, m=1.2, n_init=1, random_state=0, tol=0.01)  # noqa: E731
    found = make().fit(X)
    monkeypatch.setenv("TESSELLA_CORES", "1")
    assert (make().fit(X).cluster_centers_ == found.cluster_centers_).all()
    moved = make().fit(X * 2.0**80)
    assert (moved.cluster_centers_ == found.cluster_centers_ * 2.0**80).all()
    tiny = make().fit(X * 2.0**-300)
    assert (tiny.labels_ == found.labels_).all()


# Far centres


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("m", [1.1, 1.2, 1.5])
@pytest.mark.parametrize("neglect", [1e-12, 1e-4])
def test_leaving_out_far_centres_costs_no_more_than_stated(d, m, neglect):
    X = normal(2000, d)
    field = Field.of(X, np.ones(2000), 400)
    V = field.inward(X[:400] + 0.001)
    full = field.sweep(V, power_law(m, 0.0))
    part = field.sweep(V, power_law(m, neglect))
    assert part.visited <= full.visited
    if d == 1 and m == 1.1:
        assert part.visited < full.visited / 2
    assert part.objective >= full.objective * (1 - 1e-14)
    assert part.objective <= full.objective * (1 + (m - 1) * neglect + 1e-14)
    u, v = field.degrees(V, power_law(m, 0.0)), field.degrees(V, power_law(m, neglect))
    assert np.where(v == 0, u, 0).sum(axis=1).max() <= neglect
    assert np.abs(u - v).sum(axis=1).max() <= 2 * neglect + 1e-12


def test_leaving_out_far_centres_with_entropy():
    X = normal(2000, 2)
    field = Field.of(X, np.ones(2000), 400)
    V = field.inward(X[:400] + 0.001)
    law = field.law(entropy_law(50.0, 1e-6))
    u, v = field.degrees(V, law._replace(neglect=0.0)), field.degrees(V, law)
    assert (v > 0).sum() < (u > 0).sum()
    assert np.where(v == 0, u, 0).sum(axis=1).max() <= 1e-6


# The published figures


@pytest.mark.parametrize(
    ("columns", "c", "published"), [(2, 10, 225.27), (2, 20, 107.07), (13, 10, 2826.3)]
)
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=HEAVY) for s in (1, 2))])
def test_published_objectives(census, columns, c, published, seed):
    X = standardised(census)[:, :columns]
    found = FuzzyCMeans(c, m=1.5, random_state=seed).fit(X)
    assert found.objective_ <= published + 0.005
    assert len(found.objectives_) == 20
    assert found.objectives_.min() == found.objective_


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "c", "published"), [(2, 10, 225.27), (2, 20, 107.07), (13, 10, 2826.3)]
)
def test_published_objectives_for_twenty_seeds(census, columns, c, published):
    X = standardised(census)[:, :columns]
    found = [FuzzyCMeans(c, m=1.5, random_state=s).fit(X).objective_ for s in range(20)]
    assert sum(value <= published + 0.005 for value in found) >= 18


# Limits: propositions 2 and 3 of Torra (2020)


def test_for_large_m_everything_is_at_the_mean():
    X = normal(200, 10)
    field = Field.of(X, np.ones(200), 4)
    V = 0.99 * field.records[:4]
    law = power_law(30.0)
    for _ in range(200):
        V = field.sweep(V, law).centres
    assert np.abs(V).max() < 1e-6
    assert field.degrees(V, law) == pytest.approx(0.25, abs=1e-3)


def test_for_small_lambda_everything_is_at_the_mean():
    X = normal(200, 3)
    field = Field.of(X, np.ones(200), 4)
    V = field.records[:4].copy()
    law = entropy_law(1e-3)
    for _ in range(200):
        V = field.sweep(V, law).centres
    assert np.abs(V).max() < 1e-6
    assert field.degrees(V, law) == pytest.approx(0.25, abs=1e-3)


def test_for_large_lambda_it_is_k_means():
    X = normal(400, 3)
    V = X[:5]
    crisp = FuzzyCMeans(5, m=1, init=V, tol=0).fit(X)
    nearly = EntropyFuzzyCMeans(5, lambda_=1e7, init=V, tol=0, accelerate=False).fit(X)
    assert (nearly.labels_ == crisp.labels_).all()
    assert nearly.objective_ == pytest.approx(crisp.objective_, rel=1e-6)


# Collapse


def test_collapse_is_an_error_that_helps():
    X = normal(700, 10)
    with pytest.raises(CollapsedError, match=r"memberships are 1/50, and 50 of 50 centres") as told:
        FuzzyCMeans(50, m=2, n_init=2, random_state=0).fit(X)
    advised = float(str(told.value).split("In a trial m=")[1].split(" ")[0])
    assert 1 < advised < 1.3
    found = FuzzyCMeans(50, m=advised, n_init=2, random_state=0).fit(X)
    gaps = [np.delete(reference.squares(V[None], found.cluster_centers_)[0], i).min()
            for i, V in enumerate(found.cluster_centers_)]  # fmt: skip
    assert min(gaps) > 1e-3


def test_collapse_with_entropy_is_an_error_that_helps():
    X = normal(800, 6)
    with pytest.raises(CollapsedError, match=r"In a trial lambda_=") as told:
        EntropyFuzzyCMeans(20, lambda_=0.05, n_init=2, random_state=0).fit(X)
    advised = float(str(told.value).split("In a trial lambda_=")[1].split(" ")[0])
    EntropyFuzzyCMeans(20, lambda_=advised, n_init=2, random_state=0).fit(X)


@pytest.mark.parametrize("d", [1, 2, 10])
def test_auto_does_not_collapse(d):
    X = normal(600, d)
    found = FuzzyCMeans(12, n_init=3, random_state=0).fit(X)
    assert 1 < found.m_ <= 2
    found = EntropyFuzzyCMeans(12, n_init=3, random_state=0).fit(X)
    assert found.lambda_used_ > 0


def test_critical_values_on_a_round_cloud():
    """d equal directions: F = 1/d, so m = 1 / (1 - 2/d); covariance 1, so lambda = 1/2."""
    X = np.concatenate([np.eye(4), -np.eye(4)])
    field = Field.of(X, np.ones(8), 2)
    assert critical_m(field) == pytest.approx(1 / (1 - 2 / 4))
    assert critical_lambda(field) * field.scale**2 == pytest.approx(1 / (2 * 2 / 8))


def test_centres_that_coincide_may_be_merged():
    X = normal(120, 2)
    V = X[::6].copy()
    V[1] = V[0]
    with pytest.raises(CollapsedError, match="coincide"):
        FuzzyCMeans(20, m=1.1, init=V).fit(X)
    found = FuzzyCMeans(20, m=1.1, init=V, on_collapse="merge").fit(X)
    assert found.n_clusters_ == len(found.cluster_centers_) == 19
    assert found.membership(X).shape == (120, 19)


# Bad input


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("c", [0, -1, 2.5, "3", True, None])
def test_senseless_numbers_of_clusters(make, c):
    with pytest.raises(ClusterCountError, match="whole number"):
        make(c).fit(normal())


def test_more_clusters_than_records_or_different_records():
    with pytest.raises(ClusterCountError, match="at least 9 records"):
        FuzzyCMeans(9).fit(normal(8))
    with pytest.raises(ClusterCountError, match="only 2 of the table's 10"):
        FuzzyCMeans(3).fit(np.repeat([[1.0, 2.0], [3.0, 4.0]], 5, axis=0))
    with pytest.raises(ClusterCountError, match="only 1 of"):
        FuzzyCMeans(2).fit(np.ones((9, 2)))
    assert FuzzyCMeans(1).fit(np.ones((9, 2))).cluster_centers_.tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("m", [0.99, 0, -1, np.nan, np.inf, "much", None, True])
def test_senseless_m(m):
    with pytest.raises(BadOptionError, match=r"^m(=| is not given)"):
        FuzzyCMeans(2, m=m).fit(normal())


@pytest.mark.parametrize("rate", [0, -1, np.nan, np.inf, "much", None, True])
def test_senseless_lambda(rate):
    with pytest.raises(BadOptionError, match=r"^lambda_(=| is not given)"):
        EntropyFuzzyCMeans(2, lambda_=rate).fit(normal())


@pytest.mark.parametrize(
    ("wish", "value"),
    [("n_init", 0), ("max_iter", 1.5), ("tol", -1), ("fall", np.nan), ("neglect", 0.5)],
)
def test_senseless_numbers(wish, value):
    with pytest.raises(BadOptionError, match=wish):
        FuzzyCMeans(2, m=1.5, **{wish: value}).fit(normal())


def test_senseless_starts_and_options():
    with pytest.raises(UnknownOptionError, match="init"):
        FuzzyCMeans(2, init="best").fit(normal())
    with pytest.raises(BadTableError, match=r"shape \(2, 3\)"):
        FuzzyCMeans(2, init=np.ones((3, 3))).fit(normal())
    with pytest.raises(UnknownOptionError, match="on_collapse"):
        FuzzyCMeans(2, on_collapse="ignore").fit(normal())


@pytest.mark.parametrize("make", ALL)
def test_missing_values_are_refused(make):
    X = normal()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        make(2).fit(X)


def test_a_constant_column_carries_no_distance():
    X = blobs()
    wide = np.column_stack([X, np.full(len(X), 7.0)])
    plain = FuzzyCMeans(4, m=1.5, random_state=0).fit(X)
    found = FuzzyCMeans(4, m=1.5, random_state=0).fit(wide)
    assert found.objective_ == pytest.approx(plain.objective_)
    assert (found.cluster_centers_[:, 2] == 7.0).all()


def test_too_many_memberships_are_refused():
    found = FuzzyCMeans(2000, m=1, init=normal(2000, 2), max_iter=1, tol=1e9).fit(normal(2000, 2))
    with pytest.raises(BadTableError, match="at most 12500"):
        found.membership(normal(20_000, 2))


def test_sweeps_that_do_not_end_are_told():
    with pytest.warns(UnfinishedWarning, match="After 2 sweeps"):
        FuzzyCMeans(5, m=1.5, max_iter=2, tol=1e-12, random_state=0).fit(normal())


@pytest.mark.parametrize("make", ALL)
def test_a_saved_model_holds_no_record(make):
    X = np.random.default_rng(0).normal(size=(1500, 3))
    found = make(4, n_init=1, random_state=0).fit(X)
    assert len(pickle.dumps(found)) < 1500 * 8 + 15_000  # labels, and little else


@pytest.mark.parametrize("make", ALL)
def test_tables_of_any_size(make):
    X = normal(60)
    small = make(3, random_state=0).fit(X * 1e-160)
    if make is not TolerantFuzzyCMeans:  # a tolerance is a distance of its own
        assert (small.labels_ == make(3, random_state=0).fit(X).labels_).all()
    with pytest.raises(BadTableError, match="power of ten"):
        make(3, random_state=0).fit(X * 1e300)


def test_a_huge_lambda_is_crisp():
    found = EntropyFuzzyCMeans(3, random_state=0).fit(normal(60))
    u = found.membership(normal(60), lambda_=1e308)
    assert set(np.unique(u)) == {0.0, 1.0}
