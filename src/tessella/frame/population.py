"""Who in a population has the keys of a released record: two tables in one numbering.

A *pattern* are the keys that a released record lacks. Records of one pattern agree with a person of
the population if and only if they agree in the other keys: for each pattern, both tables are
numbered once in these keys and counted. O(patterns (n + N) log (n + N)), and no pair of a record
and a person is ever looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .._types import Floats, Integers, Name
from ..exceptions import BadTableError
from .columns import NUMBER, count_units, group_ids, number_values
from .view import View


def common_codes(one: View, other: View, name: Name) -> tuple[Integers, Integers]:
    """Return a column of two tables as whole numbers, the same where cells are equal.

    Negative where missing: another number for each kind of missing, as in `View.codes`. Numbers
    are compared as numbers, where both tables have such, and as texts otherwise.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.frame import View, common_codes
    >>> common_codes(View(pd.DataFrame({"a": [3.0]})), View(pd.DataFrame({"a": ["7", "3"]})), "a")
    (array([0]), array([1, 0]))
    """
    states = [view.states(name) for view in (one, other)]
    try:
        numeric = all(view.table.facts(name).numeric for view in (one, other))
        raw = [view.table.raw(name)[0] for view in (one, other)] if numeric else []
    except BadTableError:  # more digits than a float64 holds: texts tell them apart
        raw = []
    if raw:
        both = number_values(np.concatenate(raw))
        codes = [both[: one.n_rows], both[one.n_rows :]]
    else:
        at: dict[str, int] = {}
        codes = []
        for view in (one, other):
            own, labels = view.table.labels(name)
            common = [at.setdefault(label, len(at)) for label in labels]
            codes.append(np.array([*common, -1], dtype=np.int64)[own])
    first, second = (
        np.where(state != NUMBER, -state.astype(np.int64), own)
        for own, state in zip(codes, states, strict=True)
    )
    return first, second


def match_patterns(
    released: Sequence[Integers], population: Sequence[Integers], *, wildcards: bool = True
) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Number released records and population by the keys that records have, pattern by pattern.

    Parameters
    ----------
    released, population : sequences of arrays of shapes (n,) and (N,)
        A column of whole numbers for each key, in one numbering, negative where missing.
    wildcards : bool, default True
        Whether a missing released cell agrees with every value of the population; otherwise with
        its like only. A missing cell of the population never agrees with a value.

    Yields
    ------
    rows : array
        The released records of a pattern.
    own, theirs : arrays of shapes (len(rows),) and (N,)
        Equal numbers for those that agree.
    """
    n_people = len(population[0])
    lacking = [(column < 0) & wildcards for column in released]
    pattern = group_ids([lack.astype(np.int64) for lack in lacking])
    order = np.argsort(pattern, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(pattern[order])) + 1):
        has = [j for j, lack in enumerate(lacking) if not lack[rows[0]]]
        if not has:
            yield rows, np.zeros(len(rows), dtype=np.int64), np.zeros(n_people, dtype=np.int64)
            continue
        ids = group_ids([np.append(released[j][rows], population[j]) for j in has])
        yield rows, ids[: len(rows)], ids[len(rows) :]


def count_in_population(
    released: Sequence[Integers],
    population: Sequence[Integers],
    *,
    units: Integers | None = None,
    counts: Floats | None = None,
    wildcards: bool = True,
) -> Floats:
    """Count the persons of the population, or its units, that agree with each released record.

    Parameters
    ----------
    released, population, wildcards
        As for `match_patterns`.
    units : array of shape (N,), optional
        The household or firm of each line of the population: then distinct ones are counted.
    counts : array of shape (N,), optional
        For how many persons each line of the population stands.

    Returns
    -------
    array of shape (n,)
        0 where nobody agrees.

    Examples
    --------
    A suppressed cell (negative) agrees with all.

    >>> import numpy as np
    >>> from tessella.frame import count_in_population
    >>> sex, age = np.array([0, 0, 1]), np.array([30, -1, 40])
    >>> count_in_population([sex, age], [np.array([0, 0, 0, 1]), np.array([30, 31, 30, 30])])
    array([2., 3., 0.])
    """
    found = np.zeros(len(released[0]))
    for rows, own, theirs in match_patterns(released, population, wildcards=wildcards):
        most = int(max(own.max(), theirs.max())) + 1
        if counts is not None:
            persons = np.bincount(theirs, weights=counts, minlength=most)
        else:
            persons = count_units(theirs, units, most).astype(np.float64)
        found[rows] = persons[own]
    return found
