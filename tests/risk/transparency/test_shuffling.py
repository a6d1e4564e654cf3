"""The attack on shuffling: a slow posterior, written out pair by pair, agrees with it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tessella.exceptions import AttackError
from tessella.masking import NoiseAddition, Shuffling
from tessella.risk import assess, attack

pytestmark = pytest.mark.filterwarnings("ignore::tessella.exceptions.UnchangedWarning")


def firms(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    branch = rng.choice(["a", "b"], n)
    x = rng.normal(size=n) + (branch == "a")
    y = (10 * np.exp(x + rng.normal(size=n))).round(3)
    return pd.DataFrame({"branch": branch, "x": x.round(3), "y": y})


def scores(column: pd.Series) -> np.ndarray:
    return stats.norm.ppf((column.rank() - 0.5) / len(column))


def posterior(table: pd.DataFrame, masked: pd.DataFrame, amount: float, keyed: bool) -> np.ndarray:
    """The probability of each original (columns) for each masked record (rows), by its density."""
    z, got = (np.column_stack([scores(one[n]) for n in ("x", "y")]) for one in (table, masked))
    fitted = np.zeros_like(z) + z.mean(axis=0)
    if keyed:
        for own in table.groupby("branch").indices.values():
            fitted[own] = z[own].mean(axis=0)
    u = z - fitted
    cov = u.T @ u / len(u)
    out = np.zeros((len(masked), len(table)))
    for i in range(len(masked)):
        own = (masked.branch.iloc[i] == table.branch).to_numpy() | (not keyed)
        means = fitted[own] + np.sqrt(1 - amount**2) * u[own]
        out[i, own] = stats.multivariate_normal.pdf(got[i] - means, cov=amount**2 * cov)
    return out / out.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("amount", [0.3, 0.8, 1.0])
@pytest.mark.parametrize("keyed", [True, False])
def test_beliefs_are_those_of_the_written_out_posterior(seed, amount, keyed):
    table = firms(40, seed)
    names = ["branch", "x", "y"] if keyed else ["x", "y"]
    given = ["branch"] if keyed else None
    masker = Shuffling(amount, columns=["x", "y"], given=given, random_state=seed)
    masked = masker.fit_transform(table)
    found = attack(table, masked, masker, known=names)
    expected = posterior(table, masked, amount, keyed)
    np.testing.assert_allclose(found.belief, np.diag(expected), rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(found.largest, expected.max(axis=1), rtol=1e-3)
    entropy = -np.where(expected > 0, expected * np.log(np.where(expected > 0, expected, 1)), 0)
    np.testing.assert_allclose(found.effective, np.exp(entropy.sum(axis=1)), rtol=1e-3)
    assert found.size.tolist() == (expected > 0).sum(axis=1).tolist() or amount < 1
    assert found.covered == 1


def test_all_drawn_anew_leaves_nothing_but_what_is_released_as_it_is():
    table = firms(60, 1)
    masker = Shuffling(columns=["x", "y"], given=["branch"], random_state=0)
    found = attack(table, masker.fit_transform(table), masker)
    sizes = table.groupby("branch").x.transform("size")
    np.testing.assert_allclose(found.chance, 1 / sizes)
    np.testing.assert_allclose(found.effective, sizes, rtol=1e-6)


def test_less_amount_is_found_more_and_a_sample_agrees():
    table = firms(300, 2)[["x", "y"]]
    values = []
    for amount in (0.05, 0.2, 0.5, 1):
        masker = Shuffling(amount, random_state=1)
        masked = masker.fit_transform(table)
        whole = attack(table, masked, masker)
        some = attack(table, masked, masker, sample=100, random_state=0)
        np.testing.assert_allclose(some.belief, whole.belief[some.attacked], rtol=1e-9)
        assessed = assess(table, masked, method=masker, attacks=["transparency"])
        assert assessed.value == whole.value
        values.append(whole.value)
    assert values == sorted(values, reverse=True)
    assert values[0] > 0.6
    assert values[-1] < 0.02


def test_missing_cells_and_strata_rule_out_candidates():
    table = firms(80, 3)
    table.loc[:9, "x"] = np.nan
    masker = Shuffling(0.3, columns=["x", "y"], strata="branch", random_state=1)
    found = attack(table, masker.fit_transform(table), masker, known=["x", "y"])
    alike = table.groupby(["branch", table.x.isna()]).y.transform("size")
    assert found.size.tolist() == alike.tolist()
    assert found.covered == 1


def test_what_is_no_permutation_is_refused():
    table = firms(50, 4)[["x", "y"]]
    other = NoiseAddition(0.1, random_state=0).fit_transform(table)
    with pytest.raises(AttackError, match="in another order"):
        attack(table, other, "shuffling", amount=1)
    attack(table, other, "shuffling", amount=1, strict=False)
