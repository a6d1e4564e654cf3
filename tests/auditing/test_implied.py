"""Emptied cells that a rule tells: k is counted with them filled in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella import Schema, Study
from tessella.auditing import audit
from tessella.exceptions import RefusedError

RULE = "size == adults + children"


def households() -> pd.DataFrame:
    """Sixty households of few sizes, and one of eight."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame({
        "adults": draw.choice([1, 2], 60), "children": draw.choice([0, 1, 2], 60),
        "sex": draw.choice(["f", "m"], 60),
    })  # fmt: skip
    table.loc[0, ["adults", "children"]] = [2, 6]
    return table.assign(size=table["adults"] + table["children"])


def study(keys: list[str], rules: str | None) -> Study:
    table = households()
    schema = Schema.from_keys(table, keys=keys, others="untouched")
    return Study(table, schema=schema, rules=rules).do("local suppression", k=3, columns=keys)


def test_a_sum_of_released_columns_tells_an_emptied_one():
    assert study(["size", "sex"], None).release().audit.passed
    with pytest.raises(RefusedError, match=r"The rules tell what .* emptied cells? of 'size' held"):
        study(["size", "sex"], RULE).release()


def test_keys_that_tell_each_other_are_alike_in_what_they_tell():
    """All columns of the rule are keys: those who are alike are told the same, and k holds."""
    assert study(["size", "adults", "children"], RULE).release().audit.passed


def test_masked_columns_tell_nothing():
    """By hand: children are not the true ones, so that the sum gives no size."""
    original = pd.DataFrame({"adults": [1] * 6, "children": [0, 1, 2, 3, 4, 5]})
    original["size"] = original["adults"] + original["children"]
    masked = original.assign(size=pd.Series([pd.NA] * 6, dtype="Int64"))
    original["size"] = original["size"].astype("Int64")
    told = audit(original, masked, rules=RULE, k=3, blocks=[["size"]])
    assert any("The rules tell what 6 emptied cells" in line for line in told.problems)
    moved = masked.assign(children=[1, 1, 1, 4, 4, 4])
    untold = audit(original, moved, rules=RULE, k=3, blocks=[["size"]])
    assert not any("tell" in line for line in untold.problems)
