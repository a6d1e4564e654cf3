r"""Local suppression as an integer programme, for tables with few combinations.

Records of combination p flow to classes r that they fit, f_pr of n_p; z_r tells if a class is open:

    minimise  sum_pr w_pr f_pr   subject to   sum_r f_pr = n_p,   sum_p f_pr >= k z_r,
    f_pr <= n_p z_r,   sum over flows that empty key j of f_pr <= limit_j.

The relaxed programme (0 <= z <= 1) gives a bound. A flow whose reduced cost exceeds the distance
from this bound to a release that is known is in no better release, and leaves the programme
(reduced-cost fixing); what is left is solved by branch and bound. Nothing here depends on a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint
from scipy.sparse import csr_array

from .._types import Floats, Integers, Truths
from ..linear.rows import linprog, milp
from .classes import dominated
from .combinations import ClassGroups, Combinations, subsets

FLOWS = 45_000  # of the relaxed programme: it takes seconds
WHOLE_FLOWS = 4_000  # of the programme in whole numbers, after fixing
NODES = 100  # of branch and bound
ROUNDING = 1e-6  # relative, of the solver's sums


@dataclass(frozen=True, kw_only=True, eq=False)
class Flows:
    """Which combination can flow to which class, at what cost a record."""

    source: Integers
    target: Integers
    cost: Floats
    keys: Truths  # (flows, q): the cells that are emptied
    emptied: Truths  # (classes, q)

    def some(self, chosen: Truths) -> Flows:
        """Return some of the flows, classes numbered anew."""
        kept, target = np.unique(self.target[chosen], return_inverse=True)
        return Flows(
            source=self.source[chosen], target=target, cost=self.cost[chosen],
            keys=self.keys[chosen], emptied=self.emptied[kept],
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """What the programme found: records of each flow, or None, and what is proved."""

    flows: Flows
    amounts: Integers | None
    cost: float
    bound: float
    feasible: bool = True


def list_flows(
    found: Combinations, k: int, importance: Floats, never: Truths, most: int = FLOWS
) -> Flows | None:
    """List all flows, without classes that have the members of a cheaper one; None if too many."""
    m, q = found.codes.shape
    empty, counts, groups = found.empty(), dict[int, Any](), ClassGroups(found)
    columns = np.flatnonzero(~never | empty.any(axis=0))
    if len(columns) > 12 or m > most:
        return None
    source, target, cost, keys, emptied = [], [], [], [], []
    n_classes = n_flows = 0
    for chosen, weight in subsets(importance[columns], 2 ** len(columns)):
        own = columns[list(chosen)]
        inside = np.zeros(q, dtype=bool)
        inside[own] = True
        mask = int(sum(1 << int(j) for j in own))
        fit = ~(empty & ~inside).any(axis=1) & ~(inside & never & ~empty).any(axis=1)
        rows = np.flatnonzero(fit)
        if not len(rows):
            continue
        ids = groups.number(list(own), rows)
        sizes = np.full(m, -1, dtype=np.int32)
        sizes[rows] = np.bincount(ids)[ids]
        counts[mask] = sizes
        kept = np.bincount(ids, weights=found.records[rows]) >= k
        kept[ids[dominated(counts, mask, own, rows, sizes)]] = False
        number = np.cumsum(kept) - 1
        there = kept[ids]
        source.append(rows[there])
        target.append(number[ids[there]] + n_classes)
        cost.append(weight - empty[rows[there]] @ importance)
        keys.append(inside & ~empty[rows[there]])
        emptied.append(np.tile(inside, (int(kept.sum()), 1)))
        n_classes += int(kept.sum())
        n_flows += int(there.sum())
        if n_flows > most:
            return None
    return Flows(
        source=np.concatenate(source), target=np.concatenate(target), cost=np.concatenate(cost),
        keys=np.concatenate(keys), emptied=np.concatenate(emptied),
    )  # fmt: skip


def solve_programme(
    found: Combinations, flows: Flows, k: int, limit: Floats, known: float
) -> Solution:
    """Solve the programme as far as its size allows; `known` is the cost of a known release."""
    relaxed = _relax(found, flows, k, limit)
    if relaxed is None:
        return Solution(flows=flows, amounts=None, cost=np.inf, bound=np.inf, feasible=False)
    bound, reduced = relaxed
    tight = bool(np.isfinite(limit).any())
    chosen = reduced <= known - bound + ROUNDING * (1 + abs(known))
    proves = int(chosen.sum()) <= WHOLE_FLOWS
    if not proves:  # the most promising flows alone: a better release, and no proof
        chosen = reduced <= np.partition(reduced, WHOLE_FLOWS)[WHOLE_FLOWS]
        if int(chosen.sum()) > 2 * WHOLE_FLOWS:
            return Solution(flows=flows, amounts=None, cost=np.inf, bound=bound)
    fewer = flows.some(chosen)
    cost, constraints, bounds = _matrices(found, fewer, k, limit)
    whole = np.ones(len(cost))
    whole[: len(fewer.source)] = tight  # with z given, flows are those of a network: whole
    result = milp(
        cost, constraints=constraints, bounds=bounds, integrality=whole,
        options={"node_limit": NODES, "mip_rel_gap": 0.0},
    )  # fmt: skip
    proved = getattr(result, "mip_dual_bound", None)
    if proves and proved is not None and np.isfinite(proved):
        # Releases outside of what was left cost at least `known`.
        bound = max(bound, min(float(proved) - ROUNDING * (1 + abs(proved)), known))
    if proves and result.status == 2:  # nothing better than what is known
        return Solution(flows=flows, amounts=None, cost=np.inf, bound=max(bound, known))
    if result.x is None:
        return Solution(flows=flows, amounts=None, cost=np.inf, bound=bound)
    amounts = np.rint(result.x[: len(fewer.source)]).astype(np.int64)
    value = float(amounts @ fewer.cost)
    return Solution(flows=fewer, amounts=amounts, cost=value, bound=bound)


def _relax(found: Combinations, flows: Flows, k: int, limit: Floats) -> tuple[float, Floats] | None:
    """Return the relaxed optimum and the reduced cost of each flow; None if there is no release."""
    cost, constraints, bounds = _matrices(found, flows, k, limit)
    equal, *rest = constraints
    A = [one.A * sign for one in rest for sign in ([-1.0] if np.isfinite(one.lb).all() else [1.0])]
    b = [-one.lb if np.isfinite(one.lb).all() else one.ub for one in rest]
    from scipy.sparse import vstack

    result = linprog(
        cost, A_ub=vstack(A, format="csr"), b_ub=np.concatenate(b), A_eq=equal.A, b_eq=equal.lb,
        bounds=np.column_stack([bounds.lb, bounds.ub]), method="highs",
    )  # fmt: skip
    if result.status == 2:
        return None
    if result.status != 0:
        return 0.0, np.zeros(len(flows.source))
    bound = float(result.fun) - ROUNDING * (1 + abs(result.fun))
    return bound, np.asarray(result.lower.marginals[: len(flows.source)])


def _matrices(found: Combinations, flows: Flows, k: int, limit: Floats) -> Any:
    """Return costs, constraints and bounds over flows and open classes."""
    n, c = len(flows.source), len(flows.emptied)
    at = np.arange(n)
    records = found.records[flows.source].astype(np.float64)
    ones = np.ones(n)
    shape = n + c
    leave = csr_array((ones, (flows.source, at)), shape=(len(found.codes), shape))
    reach = csr_array(
        (np.r_[ones, np.full(c, -float(k))], (np.r_[flows.target, np.arange(c)], np.arange(shape))),
        shape=(c, shape),
    )
    closed = csr_array(
        (np.r_[ones, -records], (np.r_[at, at], np.r_[at, n + flows.target])), shape=(n, shape)
    )
    counts = found.records.astype(np.float64)
    constraints = [
        LinearConstraint(leave, counts, counts),
        LinearConstraint(reach, np.zeros(c), np.full(c, np.inf)),
        LinearConstraint(closed, np.full(n, -np.inf), np.zeros(n)),
    ]
    limited = np.flatnonzero(np.isfinite(limit))
    if len(limited):
        rows = np.zeros((len(limited), shape))
        rows[:, :n] = flows.keys[:, limited].T
        constraints.append(
            LinearConstraint(csr_array(rows), np.full(len(limited), -np.inf), limit[limited])
        )
    return (
        np.r_[flows.cost, np.zeros(c)],
        constraints,
        Bounds(np.zeros(shape), np.r_[records, np.ones(c)]),
    )


def deal(found: Combinations, solution: Solution, codes: Integers) -> Integers:
    """Return the released codes, shape (n, q), of a solution."""
    assert solution.amounts is not None
    flows, amounts = solution.flows, solution.amounts
    released = codes.copy()
    order = np.argsort(found.of, kind="stable")
    begins = np.searchsorted(found.of[order], np.arange(len(found.codes)))
    used = np.zeros(len(found.codes), dtype=np.int64)
    for flow in np.flatnonzero(amounts):
        p, number = flows.source[flow], amounts[flow]
        rows = order[begins[p] + used[p] : begins[p] + used[p] + number]
        used[p] += number
        released[rows] = np.where(flows.emptied[flows.target[flow]], 0, released[rows])
    return released
