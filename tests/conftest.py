"""What many tests share: the public tables, as arrays.

They are found through TESSELLA_DATA (see `tessella.datasets.data_folders`); a test that asks for
one of them is skipped where it is not there, and says why.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.testing
from hypothesis import settings
from numpy.typing import NDArray
from typer.main import get_command

from tessella.datasets import load_census, load_eia, load_tarragona
from tessella.exceptions import DataNotFoundError
from tessella.kernels import missed
from tests.amounts import fewer_moves

Floats = NDArray[np.float64]

# Where workers of pytest share the cores, threads only wait for each other. The numbers are read
# when they are first asked for, and by the processes that tests start. Tests about cores set
# their own.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("TESSELLA_CORES", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# The tree of commands is built once, and not for every command that a test runs.
typer.testing._get_command = cache(get_command)

# Tests of which nothing depends on how much a search finds.
FEW_MOVES = (
    "cli/", "publishing/", "release/", "masking/test_local_recoding.py",
    "masking/test_matching.py", "masking/test_overlapping_microaggregation.py",
    "masking/test_shares.py", "test_estimators.py",
)  # fmt: skip

# The first example of a test may compile a kernel, which takes as long as it takes.
settings.register_profile("tessella", deadline=None)
settings.load_profile("tessella")


@pytest.fixture(autouse=True, scope="module")
def _few_moves_where_they_are_enough(request: pytest.FixtureRequest) -> Iterator[None]:
    where = request.path.relative_to(Path(__file__).parent).as_posix()
    with fewer_moves() if where.startswith(FEW_MOVES) else nullcontext():
        yield


@pytest.fixture
def few_moves() -> Iterator[None]:
    """Less work than an effort stands for, in one test."""
    with fewer_moves():
        yield


def array_or_skip(load: Callable[..., Any]) -> Floats:
    try:
        table: Floats = load(frame="numpy")
    except DataNotFoundError:
        name = load.__name__.removeprefix("load_")
        pytest.skip(f"needs the public table {name}.csv in the folder that TESSELLA_DATA names")
    table.flags.writeable = False  # shared by all tests of a session
    return table


@pytest.fixture(scope="session")
def tarragona() -> Floats:
    """834 x 13, as published (not standardised)."""
    return array_or_skip(load_tarragona)


@pytest.fixture(scope="session")
def census() -> Floats:
    """1080 x 13, as published (not standardised)."""
    return array_or_skip(load_census)


@pytest.fixture(scope="session")
def eia() -> Floats:
    """4092 x 11, the literature's columns, as published (not standardised)."""
    return array_or_skip(load_eia)


def pytest_collection_finish() -> None:
    """Leave thousands of collected tests out of every later search for garbage."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Note the kernels that had to be compiled, where TESSELLA_MISSED names a file for them.

    They can be added to `signatures.txt`: see CONTRIBUTING.md.
    """
    if path := os.environ.get("TESSELLA_MISSED"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in missed())
