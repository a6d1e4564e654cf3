"""What tests of large tables share."""

from __future__ import annotations

from functools import partial

import pytest

from tessella.engines import base, local
from tessella.grouping.cells import search_in_cells
from tessella.grouping.search import MIX, REFINE
from tessella.publishing import workflow
from tessella.release import cells, jobs, large, protecting


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Everything is small: a table of 1,600 records has three pieces, and several shards."""
    for module in (workflow, protecting):
        monkeypatch.setattr(module, "LARGE", 500)
    for module in (base, local, jobs):
        monkeypatch.setattr(module, "PIECE", 700)
    for module in (jobs, large):
        monkeypatch.setattr(module, "SAMPLED", 100)
    if large.look.__defaults__:
        monkeypatch.setattr(large.look, "__defaults__", (100,))
    monkeypatch.setattr(jobs, "PARTITION", 900)
    monkeypatch.setattr(large, "large_rounds", lambda _: [(5.0, MIX), (5.0, REFINE)])
    monkeypatch.setattr(large, "search_in_cells", partial(search_in_cells, cell=300))
    monkeypatch.setattr(cells, "CELL", 300)
    return tmp_path
