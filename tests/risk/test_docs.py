"""The pages about risk show what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest
from benchmarks.table2 import METHODS

from tessella.grouping import IteratedOrdering, RepOrdMic

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["anonymity", "attributes", "risk"])
def test_the_page_is_true(page):
    path = str(DOCS / f"{page}.md")
    assert doctest.testfile(path, module_relative=False, encoding="utf-8").failed == 0


def swapped(P, n):
    """How far each rank moves in the loop of RankSwapping.h of sdcMicro 5.8.1."""
    rng, free, moved = np.random.default_rng(0), np.ones(n, dtype=bool), np.zeros(n)
    for j in range(n):
        others = np.flatnonzero(free[j + 1 : min(n, int(j + n * P))])
        if free[j] and len(others):
            by = 1 + rng.choice(others)
            free[[j, j + by]], moved[[j, j + by]] = False, by
    return moved


def test_the_page_for_users_of_sdcmicro_says_what_its_source_does():
    """Bugs once met: dRisk is `rowSums(x < mi | x > ma) == 0`, and P is no percentage."""
    text = " ".join((DOCS / "sdcmicro.md").read_text(encoding="utf-8").split())
    assert '`risk.interval_disclosure(by="sd", width=k).every`' in text
    assert "with_outside(1)` is what dRisk returns" not in text
    assert "| `rankSwap(P = 0.05)` | `RankSwapping(percent=5)`" in text
    assert "`P` and `percent` are the same" not in text
    assert '`dUtility(method = "IL1s")` | `loss.il1s`' in text  # "IL1" divides by each value
    assert [max(swapped(P, 2000)) for P in (0.05, 5)] == pytest.approx([100, 2000], rel=0.05)
    assert np.mean(swapped(5, 2000)) == pytest.approx(2000 / 3, rel=0.05)


def test_a_variant_of_ours_does_not_bear_a_published_name():
    """A bug once met: only the paper's own algorithm stands under its name."""
    assert METHODS["RepOrdMic"](3).walks == 0
    made = {name: make(3) for name, make in METHODS.items()}
    ours = (IteratedOrdering, RepOrdMic)
    named = {n for n, one in made.items() if isinstance(one, ours) and getattr(one, "walks", 1)}
    assert named == {"iterated (ours)", "RepOrdMic and walks (ours)"}
    assert made["MDAV-MHM"].order == "mdav-mhm"
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert "| IMHM |" not in page
