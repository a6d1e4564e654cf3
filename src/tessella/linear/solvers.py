"""The solvers of SciPy, which print nothing on standard output. All programs go through here."""

from __future__ import annotations

from typing import Any

from .._stdout import reserved_stdout


def milp(*args: Any, **options: Any) -> Any:
    """Call `scipy.optimize.milp`."""
    from scipy.optimize import milp  # takes a quarter of a second to load

    with reserved_stdout():
        return milp(*args, **options)


def linprog(*args: Any, **options: Any) -> Any:
    """Call `scipy.optimize.linprog`."""
    from scipy.optimize import linprog

    with reserved_stdout():
        return linprog(*args, **options)
