"""Whole numbers that keep rows, nearest to given ones: as a flow, or as a point of a lattice.

A *flow* keeps sums at convex costs, exactly. Each row is a *node*, and one more node, the *ground*,
is minus the sum of all. Each column is an *edge*: +1 in the row `plus`, -1 in the row `minus` (the
ground where the column is in one row). The *excess* of a node is what its row lacks. Raising a
column by one carries one unit of excess from plus to minus, lowering it carries one back; what a
step costs grows with each step.

Start with every column at its nearest whole number and carry units of excess, one after the other,
along a cheapest way to a node that lacks them. Cheapest ways never make a cycle of negative cost,
so the end is the nearest solution of all (successive shortest paths; Ahuja, Magnanti and Orlin
1993, chapters 9 and 14). A record far from all solutions would need many units: it starts near the
nearest real solution instead, and cycles of negative cost are turned first.

A *lattice* serves any rows; its points are enumerated from the nearest outward. The whole columns
are y = base + B t for whole t (all whole solutions of the equations). In the metric of the problem
B has the triangular factor R, so that the cost of t is |R t - target|^2 plus a constant: fixing t
from the last coordinate to the first, each in the order of its distance, gives points roughly from
the nearest outward, and a branch stops where its cost alone exceeds the best (Schnorr and Euchner
1994). At a leaf the inequalities are checked in whole numbers, and the real columns, if any, are
moved to where they fit y best.

A record x may lie outside of the inequalities. The enumeration then goes around the nearest real
point z inside, since the angle at z is obtuse: |v - x|^2 >= |v - z|^2 + |z - x|^2 for all v inside.
"""

from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from . import kernel
from .polyhedron import FAILED, nearest_point

NEAREST, TOO_FAR, NO_WAY = 0, 1, 2  # how a flow ended
NEAR, NONE = 1, 2  # how an enumeration ended that did not find the nearest point
STEPS = 1024
NOISE = 1e-13  # of a cost: smaller gains are rounding
# Nodes of the enumeration after which the best point so far is taken and called NEAR. Twice as many
# double the worst time of a record. A guess.
NODES = 20_000


class Network(NamedTuple):
    """Edges, where their columns are, and the ways that a search found to the nodes."""

    off: Floats  # (edges,) y - x
    y: Floats  # (edges,)
    low: Floats  # (edges,)
    high: Floats
    weight: Floats
    plus: Integers
    minus: Integers
    cost: Floats  # (nodes,) of the cheapest way so far
    by: Integers  # (nodes,) 1 + 2 * edge + (1 if lowered) of the last step to it, 0 at a start


@kernel
def _lower_costs(network: Network) -> int:
    """Lower the costs of nodes as far as steps allow; a node behind a negative cycle, or -1."""
    off, y, low, high, weight, plus, minus, cost, by = network
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
def _before(network: Network, node: int) -> int:
    """Return the node that the last step to a node came from."""
    e, lowered = (network.by[node] - 1) // 2, (network.by[node] - 1) % 2
    return int(network.minus[e] if lowered else network.plus[e])


@kernel
def _carry(network: Network, node: int) -> None:
    """Take the last step to a node."""
    e, lowered = (network.by[node] - 1) // 2, (network.by[node] - 1) % 2
    step = -1.0 if lowered else 1.0
    network.y[e] += step
    network.off[e] += step


@kernel
def _turn_cycles(network: Network) -> bool:
    """Turn cycles of negative cost until there is none; False where that takes too long."""
    cost, by = network.cost, network.by
    for _ in range(STEPS):
        cost[:] = 0.0
        by[:] = 0
        node = _lower_costs(network)
        if node < 0:
            return True
        for _ in range(cost.shape[0]):  # from behind the cycle onto it
            if by[node] == 0:
                return False
            node = _before(network, node)
        here = node
        while True:
            if by[here] == 0:
                return False
            back = _before(network, here)
            _carry(network, here)
            here = back
            if here == node:
                break
    return False


@kernel
def _balance(network: Network, excess: Integers) -> int:
    """Carry all excess to where it lacks, changing y and off."""
    cost, by = network.cost, network.by
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
        if _lower_costs(network) >= 0:
            return TOO_FAR  # a cycle of negative cost, which only rounding can make
        goal, least = -1, np.inf
        for node in range(nodes):
            if excess[node] < 0 and cost[node] < least:
                goal, least = node, cost[node]
        if goal < 0:
            return NO_WAY
        node, length = goal, 0
        while by[node] != 0:
            node = _before(network, node)
            length += 1
            if length > nodes:
                return TOO_FAR
        excess[node] -= 1
        excess[goal] += 1
        node = goal
        while by[node] != 0:
            back = _before(network, node)
            _carry(network, node)
            node = back
    return TOO_FAR


@kernel
def nearest_flows(
    X: Floats, start: Floats, low: Floats, high: Floats, weight: Floats, plus: Integers,
    minus: Integers, right: Integers,
) -> tuple[Floats, Integers]:  # fmt: skip
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
    network = Network(off, y, least, most, weights, plus, minus, cost, by)
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
        if moved and not _turn_cycles(network):
            found[i] = TOO_FAR
        else:
            found[i] = _balance(network, excess)
        Y[i] = y[:c]
    return Y, found


@kernel
def _obeys(y: Integers, low: Floats, high: Floats, G: Integers, h: Integers) -> bool:
    """Whether low <= y <= high and G y <= h, in whole numbers.

    A sum in int64 may wrap around, so it is formed in float64 too. Beyond 2^62 the sign of that is
    right; below, the true sum fits, and wrapping on the way does no harm.
    """
    for j in range(y.shape[0]):
        if not low[j] <= y[j] <= high[j]:
            return False
    for i in range(h.shape[0]):
        total, rough = -h[i], -float(h[i])
        for j in range(y.shape[0]):
            total += G[i, j] * y[j]  # may wrap; then `rough` knows the sign
            rough += float(G[i, j]) * float(y[j])
        if abs(rough) > 2.0**62:
            if rough > 0:
                return False
        elif total > 0:
            return False
    return True


@kernel
def _real_cost(
    y: Integers, x: Floats, real: tuple[Floats, ...], bounds: Floats, weight: Floats, Q: Floats,
    R: Floats, sides: tuple[Floats, Floats], sizes: tuple[Floats, Floats], active: Integers,
    work: Floats, z: Floats,
) -> float:  # fmt: skip
    """Put the real columns nearest to x that fit the whole columns y into z; what that costs."""
    A, A_whole, b, C, C_whole, f, normals, spread, _, _ = real
    right, limit = sides
    right_size, limit_size = sizes
    p = f.shape[0]
    for a in range(b.shape[0]):
        right[a], right_size[a] = b[a], abs(b[a])
        for j in range(y.shape[0]):
            right[a] -= A_whole[a, j] * y[j]
            right_size[a] += abs(A_whole[a, j] * y[j])
    for a in range(p):
        limit[a], limit_size[a] = f[a], abs(f[a])
        for j in range(y.shape[0]):
            limit[a] -= C_whole[a, j] * y[j]
            limit_size[a] += abs(C_whole[a, j] * y[j])
    for a in range(bounds.shape[0]):
        limit[p + a], limit_size[p + a] = bounds[a], abs(bounds[a])
    how = nearest_point(
        x, A, right, right_size, C, limit, limit_size, normals, spread, Q, R, active, work, z
    )
    if how == FAILED:
        return np.inf
    total = 0.0
    for j in range(x.shape[0]):
        total += weight[j] * (z[j] - x[j]) ** 2
    return total


@kernel
def _round_to_lattice(
    inside: Floats, base: Integers, B: Integers, back: Floats, M: Floats, T: Floats,
    start: Integers, t: Floats, off: Floats, target: Floats,
) -> float:  # fmt: skip
    """Set `start` to a lattice point near `inside`, and `target` for the search from there.

    |start + B t - inside|^2 in the metric is |R t - target|^2 plus the constant that is returned.
    """
    r, c = T.shape
    # Each coordinate is rounded (Babai 1986). Twice more after the first: rounding errors of large
    # numbers are undone in small ones.
    start[:] = base
    for _ in range(3):
        for k in range(r):
            part = 0.0
            for j in range(c):
                part += back[k, j] * (inside[j] - start[j])
            t[k] = np.rint(part)
        for j in range(c):
            for k in range(r):
                start[j] += B[j, k] * np.int64(t[k])
    for j in range(c):
        off[j] = start[j] - inside[j]
    constant = 0.0
    for j in range(c):
        for k in range(c):
            constant += off[j] * M[j, k] * off[k]
    for k in range(r):
        target[k] = 0.0
        for j in range(c):
            target[k] -= T[k, j] * off[j]
        constant -= target[k] * target[k]
    return constant


@kernel
def nearest_lattice_points(
    X: Floats, inside: Floats, outside: Floats, low: Floats, high: Floats, weight: Floats,
    base: Integers, B: Integers, back: Floats, M: Floats, T: Floats, R: Floats, G: Integers,
    h: Integers, real: tuple[Floats, ...], X_real: Floats, bounds: Floats, weight_real: Floats,
) -> tuple[Floats, Floats, Integers]:  # fmt: skip
    """Nearest points to the rows of X (n x c, the whole columns) and X_real (n x e).

    inside (n x c), outside (n): the whole columns of the nearest real point, and how far it is.
    base (c), B (c x r): the lattice. back (r x c): least squares, t = back @ (x - base). M (c x c):
    the metric, T = Q' S (r x c) and R (r x r) with S B = Q R, S' S = M. G, h: inequalities between
    whole columns. real: rows A, what they have on whole columns, b; the same for inequalities;
    normals, spread, Q and R of the real columns, as `polyhedron` has them; the last inequalities
    have no part on whole columns, and the right-hand sides `bounds` (n x ...) of the record.
    """
    n, c = X.shape
    r, e = B.shape[1], X_real.shape[1]
    Q, R_real = real[8].copy(), real[9].copy()
    active, work = np.zeros(e + 1, dtype=np.int64), np.zeros((6, e + 1))
    n_limits = real[5].shape[0] + bounds.shape[1]
    sides = (np.zeros(real[2].shape[0]), np.zeros(n_limits))
    sizes = (np.zeros(real[2].shape[0]), np.zeros(n_limits))
    z = np.zeros(e)
    Y, Z = np.zeros((n, c)), np.zeros((n, e))
    found = np.empty(n, dtype=np.int64)
    start, y = np.zeros(c, dtype=np.int64), np.zeros(c, dtype=np.int64)
    off, target = np.zeros(c), np.zeros(r)
    t, centre, step, cost = np.zeros(r), np.zeros(r), np.zeros(r), np.zeros(r + 1)
    for i in range(n):
        constant = _round_to_lattice(inside[i], base, B, back, M, T, start, t, off, target)
        # All points within a certain cost: those within half of a cell first, then farther ones.
        # Without a limit, a line of the lattice that lies outside would be followed for ever.
        best, nodes = np.inf, 0
        cost[r] = max(0.0, constant) + outside[i]
        beyond = 0.0
        # The nearest plane of each level (Babai) costs at most R_kk^2 / 4: the first limit holds a
        # lattice point, 0.26 instead of 0.25 against rounding. It may break an inequality; then
        # the limit is raised fourfold, which doubles the radius, until a point is found.
        for k in range(r):
            beyond += 0.26 * R[k, k] * R[k, k]
        within = cost[r] + beyond if r > 0 else np.inf
        while True:
            least, level = min(best, within), r - 1
            if r > 0:
                centre[level] = target[level] / R[level, level]
                t[level] = np.rint(centre[level])
                step[level] = 1.0 if centre[level] > t[level] else -1.0
            # Depth first: level r - 1 fixes the last coordinate. cost[level + 1] is what the fixed
            # ones cost, `centre` the best real value of this one, given them. Values are tried in
            # the order of their distance (Schnorr and Euchner): step is +1, -2, +3, ... or its
            # negative, so the first value that costs too much ends the level.
            while level < r or r == 0:
                nodes += 1
                if nodes > NODES:
                    break
                now = cost[level + 1]
                if r > 0:
                    now += (R[level, level] * (t[level] - centre[level])) ** 2
                leaf = False
                if now < least * (1.0 - 1e-12):
                    if level > 0:
                        level -= 1
                        cost[level + 1] = now
                        part = target[level]
                        for k in range(level + 1, r):
                            part -= R[level, k] * t[k]
                        centre[level] = part / R[level, level]
                        t[level] = np.rint(centre[level])
                        step[level] = 1.0 if centre[level] > t[level] else -1.0
                        continue
                    leaf = True
                else:
                    level += 1
                    if level >= r:
                        break
                if leaf:
                    for j in range(c):
                        y[j] = start[j]
                        for k in range(r):
                            y[j] += B[j, k] * np.int64(t[k])
                    if _obeys(y, low[i], high[i], G, h):
                        total = 0.0
                        for j in range(c):
                            total += weight[j] * (y[j] - X[i, j]) ** 2
                        if e > 0:
                            total += _real_cost(
                                y, X_real[i], real, bounds[i], weight_real, Q, R_real,
                                sides, sizes, active, work, z,
                            )  # fmt: skip
                        if total < best:
                            best = total
                            least = min(best, within)
                            for j in range(c):
                                Y[i, j] = y[j]
                            Z[i] = z
                    if r == 0:
                        break
                t[level] += step[level]
                step[level] = -step[level] - (1.0 if step[level] > 0 else -1.0)
            # Every point within the limit was seen: a best one inside it is the nearest.
            if nodes > NODES or best <= within:
                break
            beyond *= 4.0
            within = best if best < np.inf else cost[r] + beyond
            if r == 0:
                break
        if best == np.inf:
            found[i] = NONE
        else:
            found[i] = NEAREST if nodes <= NODES else NEAR
    return Y, Z, found
