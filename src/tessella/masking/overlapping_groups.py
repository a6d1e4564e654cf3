"""Overlapping groups of the parts of a plan: their covering, the draw, and what it promises.

Every part is covered by as many groups of k as it has records, see `tessella.grouping.covering`.
The values of all groups are found and repaired before anything is dealt: until then those of group
p of a part stand in the place of its p-th record, which may be no member of it. **So no value can
depend on the draw**, which moves them, within parts, to the records that drew them: whatever is
drawn, the same values are released, and a member of a group has them with probability 1/k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._parameters import EFFORT, check
from .._types import Floats, Integers, Name
from ..exceptions import BrokenPromiseError, UnknownOptionError
from ..frame import View, group_ids
from ..grouping.base import Chance
from ..grouping.covering import Covering, find_covering
from ..kernels.covering import draw_matching

OVERLAPPING_OPTIONS = ("effort",)
SPARE = 64  # words that a draw may refuse; it refuses one of 10^14


def effort_of(options: Mapping[str, Any]) -> str:
    """Check the options of the grouping, of which there is one."""
    for name in options:
        if name not in OVERLAPPING_OPTIONS:
            raise UnknownOptionError(
                "option of the grouping 'overlapping'", name, OVERLAPPING_OPTIONS
            )
    check({"effort": [EFFORT]}, options)
    return str(options.get("effort", "standard"))


@dataclass(frozen=True, kw_only=True, eq=False)
class CoveredPart:
    """Records of which all groups may have members, their covering, and who drew which group."""

    rows: Integers
    covering: Covering
    drawn: Integers  # (n,) the place, among `rows`, of the member that gets each group's values

    @classmethod
    def draw(
        cls, X: Floats, weights: Floats, rows: Integers, k: int, effort: str, chance: Chance,
        units: Integers | None,
    ) -> CoveredPart:  # fmt: skip
        """Cover the records `X` of a part, in the units of distances, and draw."""
        seed, own = int(chance.random(1)[0] * 2**31), None if units is None else units[rows]
        covering = find_covering(X, weights, k, effort=effort, seed=seed, units=own)
        drawn = np.empty(0, dtype=np.int64)
        while not len(drawn):
            words = (chance.random(len(rows) * k + SPARE) * 2.0**53).astype(np.int64)
            drawn = draw_matching(covering.members, words, int(chance.random(1)[0] * 2**31))
        return cls(rows=rows, covering=covering, drawn=drawn)

    @property
    def members(self) -> Integers:
        """The rows of the table in each group, shape (n, k)."""
        members: Integers = self.rows[self.covering.members]
        return members

    @property
    def taken(self) -> Integers:
        """The row of the table that gets the values of each group."""
        taken: Integers = self.rows[self.drawn]
        return taken


def dealt(parts: Sequence[CoveredPart], n: int) -> Integers:
    """Return for each record the row in whose place the values of its group stand."""
    source = np.full(n, -1, dtype=np.int64)
    for part in parts:
        source[part.taken] = part.rows
    if (source < 0).any():
        raise BrokenPromiseError("A record drew no group; the result is withheld: please report.")
    return source


@dataclass(frozen=True, kw_only=True, eq=False)
class OverlappingFacts:
    """What is released, counted, and what an intruder knows who knows all but the draw.

    Groups of a part with equal released values are one *centre*.
    """

    k: int
    memberships: csr_array  # (n, c) the probability that a record is released at a centre
    centres: Any  # a table of the released values, c rows
    sizes: Integers  # (c,) the records that are released at each, in every draw
    labels: Integers  # (n,) the centre that each record drew
    parts: Integers  # (n,) the part of each record
    posterior: float  # the greatest probability with which a record, or a unit, is named

    @classmethod
    def count(
        cls, released: View, columns: Sequence[Name], parts: Sequence[CoveredPart], k: int,
        units: Integers | None,
    ) -> OverlappingFacts:  # fmt: skip
        """Count in the released table what an intruder knows of records and of `units`.

        More than 1/k is refused.
        """
        n = released.n_rows
        ids = np.empty(n, dtype=np.int64)
        for number, part in enumerate(parts):
            ids[part.rows] = number
        labels = group_ids([ids, *(released.codes(name) for name in columns)])
        sizes, first = np.bincount(labels), np.unique(labels, return_index=True)[1]
        members = np.concatenate([part.members for part in parts])  # (n groups, k rows)
        taken = np.concatenate([part.taken for part in parts])
        where = (members.ravel(), np.repeat(labels[taken], k))
        counts = csr_array((np.ones(n * k, dtype=np.int64), where), shape=(n, len(sizes)))
        counts.sum_duplicates()
        named = counts
        if units is not None:  # a unit is named by any of its records
            where = (units[members.ravel()], where[1])
            named = csr_array((np.ones(n * k, dtype=np.int64), where))
            named.sum_duplicates()
        if (
            len(taken) != n
            or (np.bincount(taken, minlength=n) != 1).any()
            or (counts.sum(axis=1) != k).any()
            or (named.data > sizes[named.indices]).any()
        ):
            raise BrokenPromiseError(
                f"A record would be named with a probability above 1/{k}; the result is withheld: "
                "please report."
            )
        return cls(
            k=k, memberships=counts / k, sizes=sizes, labels=labels, parts=ids,
            centres=type(released.table).read(released.table.select(list(columns))).take(first),
            posterior=float((named.data / (k * sizes[named.indices])).max()),
        )  # fmt: skip

    @property
    def known(self) -> dict[str, Any]:
        """What the attack that knows the method takes."""
        return {
            "k": self.k, "memberships": self.memberships, "centres": self.centres,
            "labels": self.labels, "strata": self.parts,
        }  # fmt: skip
