"""The solvers of SciPy, which print nothing on standard output. All programs go through here."""

from functools import partial
from typing import Any

from .._stdout import reserved_stdout


def _solve(solver: str, *args: Any, **options: Any) -> Any:
    """Call a solver of `scipy.optimize`."""
    from scipy.optimize import linprog, milp  # take a quarter of a second to load

    with reserved_stdout():
        return (linprog if solver == "linprog" else milp)(*args, **options)


linprog, milp = partial(_solve, "linprog"), partial(_solve, "milp")
