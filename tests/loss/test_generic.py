"""SSE/SST, IL1s, the table of generic losses, PIL and principal components."""

from __future__ import annotations

import math
import pickle
import statistics
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from tessella import loss
from tessella.exceptions import BadOptionError, BadTableError, UnknownOptionError
from tessella.loss import generic_loss, il1s, measure, pil, sse_sst
from tests.amounts import few_or_many, try_examples

OF = ("values", "means", "variances", "covariances", "correlations")
HOW = ("square", "absolute", "variation")

# Values are whole hundredths: a spread is then zero or well above rounding.
cells = st.integers(-10_000, 10_000).map(lambda value: value / 100)


@st.composite
def tables(draw, least=1, widest=4):
    shape = draw(st.integers(least, 12)), draw(st.integers(1, widest))
    return draw(arrays(np.float64, shape, elements=cells)), draw(
        arrays(np.float64, shape, elements=cells)
    )


def column(*values):
    return np.array(values, dtype=float).reshape(-1, 1)


# By hand


def test_sse_over_sst_by_hand():
    found = sse_sst(column(1, 2, 5, 6), column(1.5, 1.5, 5.5, 5.5))  # SSE 4 * 0.25; mean 3.5
    assert found.value == pytest.approx(1 / 17)  # SST 6.25 + 2.25 + 2.25 + 6.25
    assert found.by_column == {0: pytest.approx(1 / 17)}


def test_sse_over_sst_of_two_columns_by_hand():
    x = np.array([[0.0, 0], [2, 20]])
    y = np.array([[1.0, 0], [1, 0]])
    assert sse_sst(x, y).by_column == {0: 1.0, 1: 2.0}  # 2 / 2 and 400 / 200
    assert sse_sst(x, y).value == 1.5
    assert sse_sst(x, y, standardise=False).value == pytest.approx(402 / 202)


def test_il1s_by_hand():
    found = il1s(column(0, 0, 3, 3), column(1, 0, 3, 1))  # |.| 1, 0, 0, 2; S = sqrt(9 / 3)
    assert found.value == pytest.approx(3 / 4 / (math.sqrt(2) * math.sqrt(3)))
    assert found.details["sdcMicro's sum"] == pytest.approx(3 / (math.sqrt(2) * math.sqrt(3)))


@pytest.mark.parametrize(
    ("of", "how", "answer"),
    [
        # x = 1, 2, 4, 5: mean 3, variance 2.5; y = 2, 2, 4, 8: mean 4, variance 6
        ("values", "square", (1 + 0 + 0 + 9) / 4),
        ("values", "absolute", (1 + 0 + 0 + 3) / 4),
        ("values", "variation", (1 / 1 + 0 + 0 + 3 / 5) / 4),
        ("means", "square", 1.0),
        ("means", "absolute", 1.0),
        ("means", "variation", 1 / 3),
        ("variances", "square", 3.5**2),
        ("variances", "absolute", 3.5),
        ("variances", "variation", 3.5 / 2.5),
    ],
)
def test_generic_losses_by_hand(of, how, answer):
    x, y = column(1, 2, 4, 5), column(2, 2, 4, 8)
    assert generic_loss(x, y, of=of, how=how, standardise=False).value == pytest.approx(answer)


def test_covariances_and_correlations_by_hand():
    x = np.array([[0.0, 0], [0, 2], [2, 0], [2, 2]])  # covariances 1, 0, 1
    y = np.array([[0.0, 0], [0, 0], [2, 2], [2, 2]])  # covariances 1, 1, 1
    by_hand = {"square": 1 / 3, "absolute": 1 / 3, "variation": 1 / 3}  # 1 where only x has 0
    for how in HOW:
        found = generic_loss(x, y, of="covariances", how=how, standardise=False)
        assert found.value == pytest.approx(by_hand[how])
        assert generic_loss(x, y, of="correlations", how=how).value == pytest.approx(1.0)


def test_variation_from_zero_counts_one_and_is_told():
    found = generic_loss(column(0, 0, 4), column(0, 7, 5), how="variation")
    assert found.value == pytest.approx((0 + 1 + 1 / 4) / 3)
    assert found.details["entries that are zero in the original only"] == 1


def test_pil_of_a_mean_by_hand():
    x = column(-1, 1, -1, 1)  # variance 1, standard error of the mean 1/2
    assert pil(x, x + 0.5).details["means"] == pytest.approx(100 * math.erf(1 / math.sqrt(2)))
    assert pil(x, x + 0.5).details["variances"] == 0.0


def test_weights_lower_the_effective_number_of_records():
    x = column(-1, 1, -1, 1)  # weights 1, 1, 3, 3 tell as much as 8^2 / 20 = 3.2 records
    found = pil(x, x + 0.5, weights=[1, 1, 3, 3]).details["means"]
    assert found == pytest.approx(100 * math.erf(0.5 * math.sqrt(3.2) / math.sqrt(2)))


def test_eigenvalues_by_hand():
    x = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])  # shares 1/2, 1/2
    assert loss.component_loss(x, x[:, [0, 0]]).value == pytest.approx(0.5)  # shares 1, 0


def test_principal_components_by_hand():
    """The first component turns from (1, 1, 0) to (1, 0, 1): the angle has cosine 1/2."""
    a, b, c = np.array([[1.0, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
    x, y = np.column_stack([a, a, b]), np.column_stack([a, b, a])
    found = loss.component_loss(x, y, of="directions", explained=0.5)
    assert found.details["components"] == 1
    assert found.value == pytest.approx(1 - 1 / 4)
    assert sum(found.by_column.values()) == pytest.approx(found.value)
    assert c.sum() == 0


def test_components_that_tie_have_no_direction_to_lose():
    """Two uncorrelated columns: each component explains half, in no particular direction."""
    x = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])  # the projector is half of the identity
    found = loss.component_loss(x, x[:, [0, 0]], of="directions", explained=0.5)  # (1, 1) / sqrt(2)
    assert found.value == pytest.approx((0.5**2 + 0.5**2) / 2)


# An independent way to the same answer


def slow(x, y, of, how):
    """The table of generic losses, written out with the standard library, on raw values."""

    def average(pairs):
        differences = {
            "square": lambda a, b: (a - b) ** 2,
            "absolute": lambda a, b: abs(a - b),
            "variation": lambda a, b: abs(a - b) / abs(a),
        }[how]
        return statistics.fmean(differences(a, b) for a, b in pairs)

    def of_columns(table, function):
        return [function(list(column)) for column in table.T]

    def covariance(a, b):
        return statistics.covariance(list(a), list(b)) * (len(a) - 1) / len(a)

    if of == "values":
        return average(zip(x.ravel().tolist(), y.ravel().tolist()))
    if of == "means":
        return average(zip(of_columns(x, statistics.fmean), of_columns(y, statistics.fmean)))
    if of == "variances":
        ends = (of_columns(t, statistics.pvariance) for t in (x, y))
        return average(zip(*ends))
    pairs = list(combinations(range(x.shape[1]), 2))
    if of == "correlations":
        return average(
            (statistics.correlation(x[:, j], x[:, k]), statistics.correlation(y[:, j], y[:, k]))
            for j, k in pairs
        )
    pairs += [(j, j) for j in range(x.shape[1])]
    return average((covariance(x[:, j], x[:, k]), covariance(y[:, j], y[:, k])) for j, k in pairs)


@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("how", HOW)
def test_generic_losses_against_the_standard_library(of, how):
    rng = np.random.default_rng(3)
    x = rng.normal(5, 2, size=(40, 7)) @ rng.normal(size=(7, 7))
    y = x + rng.normal(size=x.shape)
    found = generic_loss(x, y, of=of, how=how, standardise=False)
    assert found.value == pytest.approx(slow(x, y, of, how), rel=1e-9)
    mean, scale = x.mean(axis=0), x.std(axis=0)
    if how != "variation":
        found = generic_loss(x, y, of=of, how=how)
        again = slow((x - mean) / scale, (y - mean) / scale, of, how)
        assert found.value == pytest.approx(again, rel=1e-8, abs=1e-12)


def test_pil_against_the_formulas_written_out():
    rng = np.random.default_rng(4)
    x = rng.gamma(2, size=(300, 3)) @ rng.normal(size=(3, 3))
    y = x + 0.2 * rng.normal(size=x.shape)
    n = len(x)

    def moment(j, a, k, b):
        u, v = x[:, j] - x[:, j].mean(), x[:, k] - x[:, k].mean()
        return float((u**a * v**b).mean())

    def surprise(gap, variance):
        return 100 * (2 * stats.norm.cdf(abs(gap) / math.sqrt(variance)) - 1)

    means, variances, covariances, correlations = [], [], [], []
    for j in range(3):
        means.append(surprise(x[:, j].mean() - y[:, j].mean(), x[:, j].var() / n))
        variance = (moment(j, 4, j, 0) - x[:, j].var() ** 2) / n
        variances.append(surprise(x[:, j].var() - y[:, j].var(), variance))
    for j, k in combinations(range(3), 2):
        gap = np.cov(x[:, j], x[:, k], ddof=0)[0, 1] - np.cov(y[:, j], y[:, k], ddof=0)[0, 1]
        m11, m22 = moment(j, 1, k, 1), moment(j, 2, k, 2)
        covariances.append(surprise(gap, (m22 - m11**2) / n))
        m20, m02 = x[:, j].var(), x[:, k].var()
        r = m11 / math.sqrt(m20 * m02)
        variance = (r**2 / n) * (  # Kendall and Stuart's form, with m11 as divisor
            m22 / m11**2
            + (moment(j, 4, k, 0) / m20**2 + moment(j, 0, k, 4) / m02**2 + 2 * m22 / (m20 * m02))
            / 4
            - (moment(j, 3, k, 1) / (m11 * m20) + moment(j, 1, k, 3) / (m11 * m02))
        )
        correlations.append(surprise(r - np.corrcoef(y[:, j], y[:, k])[0, 1], variance))
    found = pil(x, y).details
    assert found["means"] == pytest.approx(np.mean(means))
    assert found["variances"] == pytest.approx(np.mean(variances))
    assert found["covariances"] == pytest.approx(np.mean(covariances))
    assert found["correlations"] == pytest.approx(np.mean(correlations))


def test_pil_of_a_fresh_sample_is_about_half():
    """Two samples of one population: each statistic's surprise is uniform between 0 and 100.

    The masked table is a sample, but so is the original that stands for the population, hence
    differences are sqrt(2) as large, and the mean is 100 (2/pi) atan(sqrt(2)) = 60.8.
    """
    rng = np.random.default_rng(5)
    found = [pil(*rng.normal(size=(2, 500, 3))).value for _ in range(60)]
    assert np.mean(found) == pytest.approx(200 / math.pi * math.atan(math.sqrt(2)), abs=3)


def test_eigenvalues_against_numpy():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(50, 6)) @ rng.normal(size=(6, 6))
    y = x + rng.normal(size=x.shape)
    ends = [np.sort(np.linalg.svd(stats.zscore(t))[1] ** 2)[::-1] / t.size for t in (x, y)]
    assert loss.component_loss(x, y).value == pytest.approx(np.abs(ends[0] - ends[1]).sum() / 2)


# Invariants


def every_value_is_in_its_range(pair):
    for found in measure(*pair):
        low, high = found.range
        assert low <= found.value <= high, found.name
        for value in found.by_column.values():
            assert low <= value <= high + 1e-12, found.name


@few_or_many(35, 100)
def test_every_value_is_in_its_range(count):
    try_examples(count, every_value_is_in_its_range, tables())


@given(tables())
def test_identical_tables_lose_nothing(pair):
    for found in measure(pair[0], pair[0]):
        assert found.value == 0, found.name
        assert set(found.by_column.values()) <= {0.0}


def units_and_origins_do_not_matter(pair, power, shift):
    x, y = pair
    units = [(t * 4.0**power + shift * 4.0**power) for t in (x, y)]
    first, second = measure(x, y), measure(*units)
    for found in first:
        if not found.name.endswith("variation"):
            again = second[found.name].value
            assert again == pytest.approx(found.value, rel=1e-6, abs=1e-6), found.name


def test_two_records_have_no_standard_error_wherever_they_lie():
    """A bug once met: rounding was taken for the error of a covariance, and hid its change."""
    x = np.array([[0.0, 12.3, 0.0, 0.0], [0.0, 0.0, 0.01, 0.0]])
    y = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.01, -0.01, 0.0]])
    # The second column's variance changes, one of four, and so its covariance with the third, one
    # of six; their correlation is -1 before and after.
    for shift in (0.0, 10.0, -3.0):
        details = pil(x + shift, y + shift).details
        assert details["variances"] == 25.0
        assert details["covariances"] == pytest.approx(100 / 6)
        assert details["correlations"] == 0.0


@few_or_many(35, 100)
def test_units_and_origins_do_not_matter(count):
    """All measures but mean variation stay when a column is in other units."""
    try_examples(
        count, units_and_origins_do_not_matter, tables(), st.integers(-3, 3), st.integers(-50, 50)
    )


@given(tables(least=2))
def test_sse_over_sst_is_the_mean_square_error_of_standardised_values(pair):
    assert sse_sst(*pair).value == pytest.approx(generic_loss(*pair).value)


def the_order_of_the_records_does_not_matter(pair, random):
    order = list(range(len(pair[0])))
    random.shuffle(order)
    first, second = measure(*pair), measure(pair[0][order], pair[1][order])
    for found in first:
        assert second[found.name].value == pytest.approx(found.value, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("weights", [None, np.ones(7)])
def test_a_mean_of_zero_is_zero_in_any_order(weights):
    """A bug once met: a rounded sum was taken for a mean that masking had moved away from 0."""
    x, y = np.zeros((7, 1)), np.array([[25.47, 0.06, 64.12, 18.06, -67.97, -6.93, -32.81]]).T
    random = np.random.default_rng(0)
    for order in (random.permutation(7) for _ in range(50)):
        pair = x, y[order]
        for before, after in (pair, pair[::-1]):
            found = generic_loss(before, after, of="means", how="variation", weights=weights)
            assert found.value == 0.0


@few_or_many(35, 100)
def test_the_order_of_the_records_does_not_matter(count):
    try_examples(count, the_order_of_the_records_does_not_matter, tables(least=2), st.randoms())


def test_more_noise_loses_more_on_average():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(400, 4)) @ rng.normal(size=(4, 4)) + 10
    levels = (0.05, 0.2, 0.8)
    found = {level: [] for level in levels}
    for _ in range(12):
        noise = rng.normal(size=x.shape) * x.std(axis=0)
        for level in levels:
            summary = measure(x, x + level * noise)
            found[level].append([part.value for part in summary])
    means = np.array([np.mean(found[level], axis=0) for level in levels])
    assert (np.diff(means, axis=0) > 0).all(), [part.name for part in summary]


def a_weight_counts_as_copies_of_the_record(pair, data):
    x, y = pair
    weights = data.draw(
        arrays(np.int64, len(x), elements=st.integers(1, 3)).filter(lambda w: w.sum() > 0)
    )
    first = measure(x, y, weights=weights)
    second = measure(np.repeat(x, weights, axis=0), np.repeat(y, weights, axis=0))
    for found in first:
        if found.name not in ("pil", "il1s"):  # they know the number of records
            again = second[found.name].value
            assert again == pytest.approx(found.value, rel=1e-6, abs=1e-6), found.name


@few_or_many(35, 100)
def test_a_weight_counts_as_copies_of_the_record(count):
    try_examples(
        count, a_weight_counts_as_copies_of_the_record, tables(least=3, widest=3), st.data()
    )


# Defined values, options, results


def test_a_constant_column_that_stays_loses_nothing():
    x = np.array([[5.0, 1], [5, 2], [5, 4]])
    y = np.array([[5.0, 1], [5, 3], [5, 4]])
    summary = measure(x, y)
    assert summary["sse_sst"].by_column[0] == 0.0
    assert summary["pil"].by_column[0] == 0.0
    assert any("one value only" in note for note in summary.notes)


def test_a_constant_column_that_changes_is_measured_against_both_tables():
    x, y = column(5, 5), column(6, 6)  # pooled: mean 5.5, variance 1/4
    assert sse_sst(x, y).value == pytest.approx(4.0)
    assert pil(x, y).details["means"] == 100.0


def test_a_constant_that_rounds_is_constant():
    """A bug once met: the mean of 0.1s is not 0.1, and 0.1 is not 'far' from it."""
    x = np.column_stack([np.full(7, 0.1), np.arange(7.0)])
    summary = measure(x, x + np.array([0.0, 1.0]))
    assert summary["sse_sst"].by_column[0] == 0.0
    assert summary["correlations_square"].value == 0.0


def test_columns_that_are_multiples_keep_their_correlation():
    """Correlation 1 has no sampling error; rounding must not count as a difference."""
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(2, 50))
    found = pil(np.column_stack([a, 3 * a]), np.column_stack([b, 3 * b]))
    assert found.details["correlations"] == 0.0


def test_one_record_has_defined_losses():
    summary = measure(np.array([[1.0, 2.0]]), np.array([[1.0, 3.0]]))
    assert summary["sse_sst"].by_column == {0: 0.0, 1: 4.0}
    assert all(math.isfinite(found.value) for found in summary)


def test_options_are_checked():
    x = np.arange(4.0).reshape(2, 2)
    with pytest.raises(UnknownOptionError, match="'values', 'means'"):
        generic_loss(x, x, of="medians")
    with pytest.raises(UnknownOptionError, match="'square'"):
        generic_loss(x, x, how="cube")
    with pytest.raises(BadOptionError, match="explained"):
        loss.component_loss(x, x, of="directions", explained=0)


def test_a_loss_prints_freezes_and_travels():
    found = sse_sst(column(1, 2, 5, 6), column(1.5, 1.5, 5.5, 5.5))
    assert str(found).startswith("sse_sst = 0.05882 (from 0 to no limit): values moved by 5.88 %")
    assert found.to_dict()["range"] == [0.0, None]
    assert pickle.loads(pickle.dumps(found)) == found
    assert float(found) == found.value
    assert isinstance(hash(found), int)
    with pytest.raises(AttributeError):
        found.value = 0
    with pytest.raises(TypeError):
        found.by_column[0] = 0


def test_a_summary_finds_prints_and_hands_on():
    x = np.arange(12.0).reshape(4, 3) ** 1.5
    summary = measure(x, np.round(x))
    assert len(summary) == len(summary.to_frame()) == len(summary.to_dict()["losses"])
    assert set(summary.to_frame(by_column=True)["column"]) == {0, 1, 2}
    assert "Information loss over 4 records, 3 columns of numbers" in str(summary)
    with pytest.raises(UnknownOptionError, match="sse_sst"):
        summary["sse"]


def test_census_microaggregated_against_its_inertia(census):
    """The SSE of a grouping, from the grouping itself, over n * d of standardised columns."""
    from tessella.grouping import MDAV

    x = (census - census.mean(axis=0)) / census.std(axis=0)
    model = MDAV(k=3).fit(x)
    found = sse_sst(x, model.cluster_centers_[model.labels_])
    assert found.value == pytest.approx(model.inertia_ / x.size)


def test_numbers_whose_squares_vanish_are_refused_and_not_called_unchanged():
    """A bug once met: numbers of 1e-200 were masked, and every measure said 0."""
    x = 1e-200 * np.arange(1.0, 5.0)[:, None]
    with pytest.raises(BadTableError, match="another unit"):
        measure(x, 2 * x)
    same = np.full((4, 1), 1e-200)
    assert measure(same, same)["sse_sst"].value == 0
