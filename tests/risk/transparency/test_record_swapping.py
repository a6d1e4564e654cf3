"""The attack on record swapping, against counting pair by pair."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella.exceptions import AttackError
from tessella.masking import RecordSwapping
from tessella.risk import assess, attack

pytestmark = pytest.mark.filterwarnings("ignore::tessella.exceptions.UnchangedWarning")
PLACE = ["state", "town"]


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "state": rng.choice(["A", "B"], n), "town": rng.choice(["x", "y", "z"], n),
        "sex": rng.choice(["f", "m"], n), "age": rng.integers(0, 6, n),
    })  # fmt: skip


def weights(table: pd.DataFrame, masked: pd.DataFrame, place: list[str]) -> np.ndarray:
    before, after = (list(map(tuple, one[place].to_numpy())) for one in (table, masked))
    q = np.mean([a != b for a, b in zip(before, after)])
    n_places = len({*before, *after})
    same = table[["sex", "age"]].apply(tuple, axis=1).tolist()
    out = np.zeros((len(masked), len(table)))
    for i in range(len(masked)):
        for j in range(len(table)):
            if same[i] == same[j]:  # nothing but places was changed
                out[i, j] = 1 - q if after[i] == before[j] else q / (n_places - 1)
    return out / out.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("place", [PLACE, ["town"]])
@pytest.mark.parametrize("rate", [0.1, 0.9])
def test_candidates_are_counted(seed, place, rate):
    table = people(60, seed)
    masker = RecordSwapping(PLACE, keys=["sex", "age"], k=2, rate=rate, random_state=seed)
    masked = masker.fit_transform(table)
    found = attack(table, masked, masker, known=[*place, "sex", "age"])
    expected = weights(table, masked, place)
    np.testing.assert_allclose(found.belief, np.diag(expected), rtol=1e-12)
    largest = expected.max(axis=1)
    np.testing.assert_allclose(found.largest, largest, rtol=1e-12)
    equal = (expected >= largest[:, None] * (1 - 1e-9)).sum(axis=1)
    right = np.diag(expected) >= largest * (1 - 1e-9)
    np.testing.assert_allclose(found.chance, right / equal, rtol=1e-12)
    alike = table.groupby(["sex", "age"]).town.transform("size")
    assert found.size.tolist() == alike.tolist()
    entropy = -np.where(expected > 0, expected * np.log(np.where(expected > 0, expected, 1)), 0)
    np.testing.assert_allclose(found.effective, np.exp(entropy.sum(axis=1)), rtol=1e-9)
    assert found.covered == 1


def test_an_assessment_tries_it_with_a_masker_that_was_not_fitted():
    table = people(80, 9)
    options = {"geography": PLACE, "keys": ["sex", "age"], "rate": 0.2}
    masked = RecordSwapping(**options, random_state=1).fit_transform(table)
    found = assess(table, masked, method=RecordSwapping(**options), attacks=["transparency"])
    assert not found.skipped
    assert found.value == attack(table, masked, "record swapping", columns=PLACE).value
    with pytest.raises(AttackError, match="cannot come from record swapping"):
        attack(table, masked.assign(age=1), "record swapping", columns=PLACE)
