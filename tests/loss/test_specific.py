"""Specific losses: any analysis, regressions, clusters, classifiers, the propensity score."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import PolynomialFeatures

from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    ClusterCountError,
    UnknownColumnError,
    UnknownOptionError,
    UnpairedError,
)
from tessella.loss import (
    classifier_loss,
    clustering_loss,
    propensity_loss,
    regression_loss,
    specific_loss,
)
from tessella.loss.specific import fit_linear, fit_logistic


def survey(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = pd.DataFrame({"age": rng.normal(45, 10, n), "hours": rng.normal(35, 5, n)})
    x["pay"] = 100 + 20 * x.age + 30 * x.hours + rng.normal(0, 100, n)
    x["town"] = rng.choice(["Reus", "Valls", "Salou"], n)
    x["owner"] = np.where(rng.random(n) < 1 / (1 + np.exp(-(x.age - 45) / 8)), "yes", "no")
    return x


def noisy(x, level, seed=1):
    rng = np.random.default_rng(seed)
    names = ["age", "hours", "pay"]
    return x.assign(**{c: x[c] + level * x[c].std() * rng.normal(size=len(x)) for c in names})


# Any analysis


def test_any_analysis_by_hand():
    x, y = np.array([[1.0], [3.0]]), np.array([[2.0], [4.0]])
    assert specific_loss(np.mean, x, y).value == pytest.approx(1 / 5)  # 2 and 3
    assert specific_loss(lambda t: [0.0, 0.0], x, y).value == 0.0
    found = specific_loss(lambda t: {"low": t.min(), "high": t.max()}, x, y)  # (1, 3), (2, 4)
    assert found.by_column == {"low": pytest.approx(1 / 3), "high": pytest.approx(1 / 7)}
    assert found.value == pytest.approx(2**0.5 / (10**0.5 + 20**0.5))
    found = specific_loss(np.mean, x, y, distance=lambda a, b: abs(a - b).sum(), name="mean")
    assert (found.value, found.name) == (1.0, "mean")


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2))
def test_any_analysis_is_in_range(ends):
    found = specific_loss(lambda end: end, *ends)
    assert 0 <= found.value <= 1
    assert (found.value == 0) == (ends[0] == ends[1])


def test_results_that_cannot_be_compared():
    x = np.ones((2, 2))
    with pytest.raises(UnpairedError, match="2 numbers for the original and 3"):
        specific_loss(lambda t: t, np.ones(2), np.ones(3))
    with pytest.raises(BadTableError, match="not numbers"):
        specific_loss(lambda t: "high", x, x)
    with pytest.raises(BadTableError, match="missing or infinite"):
        specific_loss(lambda t: np.nan, x, x)


# Regression


def test_overlap_by_hand():
    """A slope 2 becomes 2 + d with the same errors: intervals of width w share w - d."""
    x = np.column_stack([[-1.0, 0, 0, 1], [-2.0, 1, -1, 2]])
    y = x.copy()
    y[:, 1] += 0.5 * y[:, 0]  # residuals stay, the slope grows by 1/2
    width = 2 * stats.t.ppf(0.975, 2) * np.sqrt(2 / 2 / 2)  # residuals 1, -1; sum of squares 2
    found = regression_loss(x, y, target=1)
    assert found.by_column[0] == pytest.approx(0.5 / width)
    assert found.by_column["(intercept)"] == pytest.approx(0, abs=1e-9)
    assert found.details["coefficients apart, in standard errors"] == pytest.approx(
        0.5 / np.sqrt(0.5) / 2
    )


def test_least_squares_against_scipy():
    x = survey()
    fit = fit_linear(x[["age"]].to_numpy(), x.pay.to_numpy(), None, "original")
    oracle = stats.linregress(x.age, x.pay)
    assert fit.coefficients == pytest.approx([oracle.intercept, oracle.slope])
    assert fit.errors == pytest.approx([oracle.intercept_stderr, oracle.stderr])


def test_logistic_against_a_general_optimiser():
    x = survey()
    X, y = x[["age", "hours"]].to_numpy(), (x.owner == "yes").to_numpy().astype(float)
    fit = fit_logistic(X, y, None, "original")
    A = np.column_stack([np.ones(len(X)), X])

    def unlikely(b):
        return np.logaddexp(0, A @ b).sum() - y @ (A @ b)

    best = optimize.minimize(unlikely, fit.coefficients + 0.01, method="Nelder-Mead",
                             options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000})  # fmt: skip
    assert fit.coefficients == pytest.approx(best.x, rel=1e-4, abs=1e-5)
    p = 1 / (1 + np.exp(-A @ fit.coefficients))
    expected = np.sqrt(np.diag(np.linalg.inv((A * (p * (1 - p))[:, None]).T @ A)))
    assert fit.errors == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_regression_loses_nothing_then_more(kind):
    x = survey(1000)
    target = {"linear": "pay", "logistic": "owner"}[kind]
    losses = [
        regression_loss(x, noisy(x, level), target=target, kind=kind, features=["age", "hours"])
        for level in (0, 0.1, 0.5, 2)
    ]
    values = [found.value for found in losses]
    assert values[0] == 0.0
    assert values == sorted(values)
    assert 0 < values[-1] <= 1


def test_categories_as_features():
    x = survey()
    found = regression_loss(x, noisy(x, 0.1), target="pay", features=["age", "town"])
    assert len(found.by_column) == 4
    assert sum(str(name).startswith("town=") for name in found.by_column) == 2


def test_a_perfect_fit_has_intervals_of_no_width():
    x = np.column_stack([np.arange(6.0), 2 * np.arange(6.0)])
    assert regression_loss(x, x, target=1).value == 0.0


def test_regressions_that_cannot_be_compared():
    x = survey(50)
    with pytest.raises(UnknownColumnError, match="'pay'"):
        regression_loss(x, x, target="pai")
    with pytest.raises(UnknownOptionError, match="logistic"):
        regression_loss(x, x, target="pay", kind="probit")
    with pytest.raises(BadOptionError, match="level"):
        regression_loss(x, x, target="pay", level=95)
    with pytest.raises(BadTableError, match="not a column of numbers"):
        regression_loss(x, x, target="owner")
    with pytest.raises(BadTableError, match="two categories"):
        regression_loss(x, x, target="town", kind="logistic")
    with pytest.raises(BadTableError, match="also among the features"):
        regression_loss(x, x, target="pay", features=["pay"])
    with pytest.raises(BadTableError, match="depend on each other"):
        regression_loss(x, x.assign(age=1.0), target="pay", features=["age"])
    with pytest.raises(BadTableError, match="more than 3 records"):
        regression_loss(x.head(3), x.head(3), target="pay", features=["age", "hours"])
    apart = x.assign(age=np.where(x.owner == "yes", 1.0, 0.0))
    with pytest.raises(BadTableError, match="no maximum in the original"):
        regression_loss(apart, apart, target="owner", features=["age"], kind="logistic")
    with pytest.raises(BadTableError, match="categories in 'town'"):
        regression_loss(x, x.assign(town="Vila"), target="pay", features=["town"])


# Clusters


@pytest.mark.parametrize("method", ["k-means", "fuzzy"])
def test_clusters_lose_nothing_then_something(method):
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(c, 0.3, size=(40, 2)) for c in (0, 5, 10)])
    assert clustering_loss(x, x, n_clusters=3, method=method).value == pytest.approx(0, abs=1e-9)
    found = clustering_loss(x, x + rng.normal(0, 3, x.shape), n_clusters=3, method=method)
    assert 0.02 < found.value < 1


def test_records_that_change_their_cluster_by_hand():
    x = np.array([[0.0], [1], [10], [11]])
    y = np.array([[0.0], [10.5], [10.5], [10.5]])
    found = clustering_loss(x, y, n_clusters=2)
    assert found.value == 0.25
    assert sorted(found.by_column.values()) == [0.0, 0.5]


def test_agreement_with_the_adjusted_rand_index():
    """Nothing changes if and only if the adjusted Rand index is 1."""
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(c, 0.3, size=(30, 2)) for c in (0, 5, 10)])
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    y = x + rng.normal(0, 0.2, x.shape)
    w = (y - x.mean(axis=0)) / x.std(axis=0)
    labels = [KMeans(3, n_init=5, random_state=0).fit(t).labels_ for t in (z, w)]
    assert adjusted_rand_score(*labels) == 1.0
    assert clustering_loss(x, y, n_clusters=3).value == 0.0


def test_clusters_that_cannot_be():
    x = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ClusterCountError, match="at least 5"):
        clustering_loss(x, x, n_clusters=5)
    with pytest.raises(ClusterCountError, match=r"2\.5"):
        clustering_loss(x, x, n_clusters=2.5)
    with pytest.raises(ClusterCountError, match="different"):
        clustering_loss(np.ones((4, 2)), np.ones((4, 2)), n_clusters=2)
    with pytest.raises(UnknownOptionError, match="fuzzy"):
        clustering_loss(x, x, method="medoids")


# Classifiers


def test_a_classifier_learns_less_from_noise():
    x = survey(200).assign(old=lambda t: np.where(t.age > 45, "yes", "no"))
    assert classifier_loss(x, x, target="old", features=["age", "hours"]).value == 0.0
    noise = noisy(x, 3)
    found = classifier_loss(x, noise, target="old", features=["age", "hours"])
    assert found.value > 0.05
    assert found.value == pytest.approx(
        found.details["score before"] - found.details["score after"]
    )
    linear = LogisticRegression()
    again = classifier_loss(x, noise, target="old", features=["age"], classifier=linear)
    assert -1 <= again.value <= 1


def test_classifiers_that_cannot_be():
    x = survey(60)
    with pytest.raises(BadOptionError, match="scikit-learn classifier"):
        classifier_loss(x, x, target="owner", classifier="forest")
    with pytest.raises(BadOptionError, match="folds"):
        classifier_loss(x, x, target="owner", folds=1)
    with pytest.raises(BadTableError, match="different values"):
        classifier_loss(x, x, target="pay")


# The propensity score


def test_propensity_by_hand():
    """Yes or no, 1 of 4 against 3 of 4: the scores are the shares themselves."""
    x, y = np.array([[0.0], [0], [0], [1]]), np.array([[0.0], [1], [1], [1]])
    found = propensity_loss(x, y, degree=1)
    assert found.value == pytest.approx(0.25**2)  # scores 1/4 and 3/4 everywhere
    assert found.details["expected"] == pytest.approx(1 / (8 * 8))
    assert found.details["ratio"] == pytest.approx(4.0)


def test_propensity_against_scikit_learn():
    x, y = (survey(200, seed)[["age", "hours", "pay"]].to_numpy() for seed in (0, 1))
    stacked = np.concatenate([x, y])
    z = (stacked - stacked.mean(axis=0)) / stacked.std(axis=0)
    features = PolynomialFeatures(2, include_bias=False).fit_transform(z)
    label = np.repeat([0, 1], len(x))
    model = LogisticRegression(C=1e9, max_iter=5000, tol=1e-10).fit(features, label)
    expected = ((model.predict_proba(features)[:, 1] - 0.5) ** 2).mean()
    assert propensity_loss(x, y).value == pytest.approx(expected, rel=1e-4)


def test_the_ratio_of_a_sample_is_about_one():
    """Drawn from the original with replacement; of two fresh samples it is about two."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(500, 3))
    drawn = [x[rng.integers(0, 500, 500)] for _ in range(40)]
    ratios = [propensity_loss(x, y).details["ratio"] for y in drawn]
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.15)
    ratios = [propensity_loss(*rng.normal(size=(2, 500, 3))).details["ratio"] for _ in range(40)]
    assert np.mean(ratios) == pytest.approx(2.0, abs=0.3)


def test_propensity_at_its_ends():
    x = np.random.default_rng(5).normal(size=(100, 2))
    assert propensity_loss(x, x).value == 0.0
    assert propensity_loss(x, x + 100).value == pytest.approx(0.25, abs=1e-3)
    one = np.column_stack([x, x[:, 0] * 2, np.ones(100)])  # features that follow from others
    assert propensity_loss(one, one).details["coefficients"] == 5
    assert propensity_loss(np.ones((1, 1)), np.ones((1, 1))).value == 0.0
    with pytest.raises(BadOptionError, match="degree"):
        propensity_loss(x, x, degree=3)


def test_propensity_sees_new_categories():
    x = pd.DataFrame({"a": ["u", "v"] * 20})
    assert propensity_loss(x, x.assign(a="w")).value > 0.2
