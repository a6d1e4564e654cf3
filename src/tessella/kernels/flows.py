"""Whole numbers that keep sums, nearest to given ones: a flow with convex costs, exactly.

Each row is a *node*, and one more node, the *ground*, is minus the sum of all. Each column is an
*edge*: +1 in the row `plus`, -1 in the row `minus` (the ground where the column is in one row).
The *excess* of a node is what its row lacks. Raising a column by one carries one unit of excess
from plus to minus, lowering it carries one back; what a step costs grows with each step.

Start with every column at its nearest whole number and carry units of excess, one after the other,
along a cheapest way to a node that lacks them. Cheapest ways never make a cycle of negative cost,
so the end is the nearest solution of all (successive shortest paths; Ahuja, Magnanti and Orlin
1993, chapters 9 and 14). A record far from all solutions would need many units: it starts near the
nearest real solution instead, and cycles of negative cost are turned first.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel

NEAREST, TOO_FAR, NO_WAY = 0, 1, 2
STEPS = 1024
NOISE = 1e-13  # of a cost: smaller gains are rounding


@kernel
def _settle(
    off: Floats,
    y: Floats,
    low: Floats,
    high: Floats,
    weight: Floats,
    plus: Integers,
    minus: Integers,
    cost: Floats,
    by: Integers,
) -> int:
    """Lower the costs of nodes as far as steps allow; a node on or behind a negative cycle, or -1.

    Afterwards by[node] is 1 + 2 * edge + (1 if lowered) of the last step to it, 0 at a start.
    """
    nodes, edges = cost.shape[0], plus.shape[0]
    last = -1
    for _ in range(nodes + 1):
        last = -1
        for e in range(edges):
            p, q = plus[e], minus[e]
            if y[e] + 1.0 <= high[e]:
                new = cost[p] + weight[e] * (2.0 * off[e] + 1.0)
                if new < cost[q] - NOISE * (abs(new) + weight[e]):
                    cost[q], by[q] = new, 1 + 2 * e
                    last = q
            if y[e] - 1.0 >= low[e]:
                new = cost[q] + weight[e] * (1.0 - 2.0 * off[e])
                if new < cost[p] - NOISE * (abs(new) + weight[e]):
                    cost[p], by[p] = new, 2 + 2 * e
                    last = p
        if last < 0:
            break
    return last


@kernel
def _before(node: int, by: Integers, plus: Integers, minus: Integers) -> int:
    e, lowered = (by[node] - 1) // 2, (by[node] - 1) % 2
    return int(minus[e] if lowered else plus[e])


@kernel
def _carry(node: int, by: Integers, off: Floats, y: Floats) -> None:
    e, lowered = (by[node] - 1) // 2, (by[node] - 1) % 2
    step = -1.0 if lowered else 1.0
    y[e] += step
    off[e] += step


@kernel
def _turn_cycles(
    off: Floats,
    y: Floats,
    low: Floats,
    high: Floats,
    weight: Floats,
    plus: Integers,
    minus: Integers,
    cost: Floats,
    by: Integers,
) -> bool:
    """Turn cycles of negative cost until there is none; False where that takes too long."""
    nodes = cost.shape[0]
    for _ in range(STEPS):
        cost[:] = 0.0
        by[:] = 0
        node = _settle(off, y, low, high, weight, plus, minus, cost, by)
        if node < 0:
            return True
        for _ in range(nodes):  # from behind the cycle onto it
            if by[node] == 0:
                return False
            node = _before(node, by, plus, minus)
        here = node
        while True:
            if by[here] == 0:
                return False
            back = _before(here, by, plus, minus)
            _carry(here, by, off, y)
            here = back
            if here == node:
                break
    return False


@kernel
def _balance(
    off: Floats,
    y: Floats,
    low: Floats,
    high: Floats,
    weight: Floats,
    plus: Integers,
    minus: Integers,
    excess: Integers,
    cost: Floats,
    by: Integers,
) -> int:
    """Carry all excess to where it lacks, changing y and off = y - x."""
    nodes = excess.shape[0]
    for _ in range(STEPS):
        some = False
        for node in range(nodes):
            if excess[node] > 0:
                some = True
        if not some:
            return NEAREST
        for node in range(nodes):
            cost[node] = 0.0 if excess[node] > 0 else np.inf
            by[node] = 0
        if _settle(off, y, low, high, weight, plus, minus, cost, by) >= 0:
            return TOO_FAR  # a cycle of negative cost, which only rounding can make
        goal, least = -1, np.inf
        for node in range(nodes):
            if excess[node] < 0 and cost[node] < least:
                goal, least = node, cost[node]
        if goal < 0:
            return NO_WAY
        node, length = goal, 0
        while by[node] != 0:
            node = _before(node, by, plus, minus)
            length += 1
            if length > nodes:
                return TOO_FAR
        excess[node] -= 1
        excess[goal] += 1
        node = goal
        while by[node] != 0:
            back = _before(node, by, plus, minus)
            _carry(node, by, off, y)
            node = back
    return TOO_FAR


@kernel
def nearest_flows(
    X: Floats,
    start: Floats,
    low: Floats,
    high: Floats,
    weight: Floats,
    plus: Integers,
    minus: Integers,
    right: Integers,
) -> tuple[Floats, Integers]:
    """Nearest whole solutions to the rows of X (n x c), and how each was found.

    The search begins at the whole numbers nearest to `start` (n x c), which may be X.
    `low` and `high` (n x c) are whole or infinite. `plus`, `minus` have c edges for the columns and
    then one for the slack of each inequality, which is >= 0 and costs nothing; `right` (m + 1) has
    the right-hand sides, the ground's last.
    """
    n, c = X.shape
    edges, nodes = plus.shape[0], right.shape[0]
    Y = np.empty((n, c))
    found = np.empty(n, dtype=np.int64)
    off, y = np.zeros(edges), np.zeros(edges)
    least, most = np.zeros(edges), np.full(edges, np.inf)
    weights = np.zeros(edges)
    weights[:c] = weight
    excess = np.zeros(nodes, dtype=np.int64)
    cost, by = np.zeros(nodes), np.zeros(nodes, dtype=np.int64)
    for i in range(n):
        excess[:] = right
        moved = False
        for e in range(c):
            least[e], most[e] = low[i, e], high[i, e]
            y[e] = min(max(np.rint(start[i, e]), least[e]), most[e])
            off[e] = y[e] - X[i, e]
            moved |= start[i, e] != X[i, e]
            excess[plus[e]] -= np.int64(y[e])
            excess[minus[e]] += np.int64(y[e])
        for e in range(c, edges):
            row = plus[e] if plus[e] < nodes - 1 else minus[e]
            lacks = excess[row] if row == plus[e] else -excess[row]
            y[e] = max(0, lacks)
            excess[plus[e]] -= np.int64(y[e])
            excess[minus[e]] += np.int64(y[e])
            off[e] = 0.0
        if moved and not _turn_cycles(off, y, least, most, weights, plus, minus, cost, by):
            found[i] = TOO_FAR
        else:
            found[i] = _balance(off, y, least, most, weights, plus, minus, excess, cost, by)
        Y[i] = y[:c]
    return Y, found
