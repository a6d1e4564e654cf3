"""scikit-learn's checks of estimators, and those that are expected to fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest


def name_of(check: Callable[..., Any]) -> str:
    """The name of a check, which scikit-learn hands over wrapped."""
    while hasattr(check, "__wrapped__"):
        check = check.__wrapped__
    return check.func.__name__ if isinstance(check, partial) else check.__name__


def holds_but_for(
    estimator: Any, check: Callable[[Any], object], expected: Mapping[str, str]
) -> None:
    """Run a check, which must fail where that is expected: the reason stands beside its name.

    In place of `expected_failed_checks`, whose tracebacks through thousands of lines pytest would
    write for nobody: this takes longer than the checks.
    """
    if name_of(check) in expected:
        with pytest.raises((AssertionError, TypeError, ValueError)):
            check(estimator)
    else:
        check(estimator)
