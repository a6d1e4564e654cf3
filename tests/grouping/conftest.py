"""What tests of groupings share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.amounts import fewer_moves


@pytest.fixture
def few_moves() -> Iterator[None]:
    """Less work than an effort stands for, in one test."""
    with fewer_moves():
        yield
