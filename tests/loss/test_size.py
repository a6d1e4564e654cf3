"""A million records in little memory; their seconds: `python -m benchmarks.loss_speed`."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from tessella import loss


@pytest.mark.slow
@pytest.mark.parametrize("case", ["plain", "weights", "missing"])
def test_a_million_records(case):
    rng = np.random.default_rng(0)
    n = 1_000_000
    x = rng.normal(size=(n, 10)) @ rng.normal(size=(10, 10))
    y = x + 0.3 * rng.normal(size=x.shape)
    if case == "missing":
        lacking = rng.random(x.shape) < 0.05
        x[lacking] = y[lacking] = np.nan
    original, masked = pd.DataFrame(x), pd.DataFrame(y)
    weights = rng.uniform(1, 5, n) if case == "weights" else None
    tables = x.nbytes + y.nbytes
    tracemalloc.start()
    summary = loss.measure(original, masked, weights=weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(summary) == 23
    assert tables + peak < 2 * tables + 10_000_000


def test_the_door_loads_nothing_heavy_and_has_every_name():
    ask = "import sys, tessella.loss; print([m for m in ('numpy', 'pandas') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
    assert loss.__all__ == sorted(loss.__all__)
    for name in loss.__all__:
        assert getattr(loss, name) is not None


def test_tables_are_not_changed():
    """Columns are scaled in place, on copies: the tables given must stay as they were."""
    rng = np.random.default_rng(1)
    for order in ("C", "F"):
        x, y = (np.array(rng.normal(size=(20, 3)), order=order) for _ in range(2))
        frames = pd.DataFrame(x), pd.DataFrame(y)
        kept = x.copy(), y.copy()
        loss.measure(x, y)
        loss.measure(*frames)
        assert (x == kept[0]).all()
        assert (y == kept[1]).all()
        assert (frames[0].to_numpy() == kept[0]).all()
