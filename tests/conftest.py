"""What many tests share: the public tables, as arrays.

They are found through TESSELLA_DATA (see `tessella.datasets.data_folders`); a test that asks for
one of them is skipped where it is not there, and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

from tessella.datasets import load_census, load_eia, load_tarragona
from tessella.exceptions import DataNotFoundError

Floats = NDArray[np.float64]

# The first example of a test may compile a kernel, which takes as long as it takes.
settings.register_profile("tessella", deadline=None)
settings.load_profile("tessella")


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
