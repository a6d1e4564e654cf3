"""Coverings: groups of k in which every record stands k times, annealed and drawn from.

A covering is a table `members` (m, k): row p has the k different records of group p, and every
record is a member of equally many groups. Groups exchange members and nothing else, so that these
counts never change. Any set of groups may be annealed on its own: a record then stands in it as
often as it did before.

*Drawing* gives every record one of its groups, and every group one of its members, each with
probability 1/k: dependent rounding (Gandhi, Khuller, Parthasarathy and Srinivasan 2006) of the flow
that has 1 of k units on each pair. A walk along pairs that are undecided closes a cycle, on which
flow is moved one way or the other, so that a pair at least is decided (0 or k units) and no
expectation changes. Flows are integers: probabilities are exact, whatever cycles are found.
"""

from __future__ import annotations

import numpy as np

from .._types import Bytes, Floats, Integers, SmallIntegers
from . import kernel
from .random_moves import PLATEAUS, draw, draw_below, start_stream, swap_cost
from .windows import nearest_in_window


@kernel
def covering_costs(X: Floats, weights: Floats, members: Integers) -> Floats:
    """Return the SSE of each group, summed from the group's mean."""
    costs = np.zeros(members.shape[0])
    for p in range(members.shape[0]):
        own, first = members[p], members[p, 0]
        mass = weights[own].sum()
        for q in range(X.shape[1]):
            mean = 0.0
            for i in own:
                mean += weights[i] * (X[i, q] - X[first, q])
            mean = X[first, q] + mean / mass
            for i in own:
                costs[p] += weights[i] * (X[i, q] - mean) ** 2
    return costs


@kernel
def replace_in(row: Integers, old: int, new: int) -> None:
    """Put one number in the first place of another."""
    a = 0
    while row[a] != old:
        a += 1
    row[a] = new


@kernel
def anneal_covering(
    X: Floats, weights: Floats, owner: Integers, near: SmallIntegers, members: Integers,
    steps: int, hot: float, cold: float, seed: int, number: int, halt: Bytes,
) -> None:  # fmt: skip
    """Anneal a covering in place, from temperature hot to cold; see `random_moves.anneal`.

    A move: record i leaves group g for a group h of a near record j, and a member t of h, not j,
    takes its place. No group has two records of an `owner`, the unit of each record.
    """
    m, k = members.shape
    n, d = X.shape
    stream, count = start_stream(seed, number), near.shape[1]
    held, groups = np.zeros(n, dtype=np.int64), np.empty((n, k), dtype=np.int64)
    mass, centre = np.zeros(m), np.zeros((m, d))
    for p in range(m):
        for i in members[p]:
            groups[i, held[i]] = p
            held[i] += 1
            mass[p] += weights[i]
            for q in range(d):
                centre[p, q] += weights[i] * X[i, q]
        for q in range(d):
            centre[p, q] /= mass[p]
    plateau = max(1, steps // PLATEAUS)
    cooling, temperature = (cold / hot) ** (plateau / steps), hot
    for step in range(steps):
        if step % plateau == plateau - 1:
            temperature *= cooling
            if halt[0] != 0:
                return
        g, a = draw_below(stream, m), draw_below(stream, k)
        i, towards = members[g, a], draw(stream)
        j = near[i, int(count * towards * towards)]
        h, b = groups[j, draw_below(stream, held[j])], draw_below(stream, k)
        t = members[h, b]
        if h == g or t == j:
            continue
        free = True
        for c in range(k):
            free &= owner[members[h, c]] != owner[i] and owner[members[g, c]] != owner[t]
        if not free:
            continue
        cost = swap_cost(X, weights, i, t, g, h, mass, centre)
        if cost <= 0.0 or cost < -temperature * np.log(draw(stream)):
            wi, wt = weights[i], weights[t]
            mass[g] += wt - wi
            mass[h] += wi - wt
            for q in range(d):
                of_i, of_t = X[i, q] - centre[g, q], X[t, q] - centre[g, q]
                centre[g, q] += (wt * of_t - wi * of_i) / mass[g]
                of_i, of_t = X[i, q] - centre[h, q], X[t, q] - centre[h, q]
                centre[h, q] += (wi * of_i - wt * of_t) / mass[h]
            members[g, a], members[h, b] = t, i
            replace_in(groups[i], g, h)
            replace_in(groups[t], h, g)


@kernel
def improve_covering(
    X: Floats, weights: Floats, owner: Integers, members: Integers, order: Integers,
    starts: Integers, first: int, last: int, count: int, moves: float, hot: float, cold: float,
    seed: int, halt: Bytes,
) -> None:  # fmt: skip
    """Anneal windows first .. last - 1 of groups, `order`[starts[t]:starts[t + 1]]; keep gains.

    Each window gets `moves` proposals a group, at temperatures given in its own mean cost of one.
    """
    k = members.shape[1]
    for t in range(first, last):
        own = order[starts[t] : starts[t + 1]]
        m = own.shape[0]
        if m < 2 or halt[0] != 0:
            continue
        rows = np.unique(members[own])
        if rows.shape[0] == k:  # equal groups
            continue
        inner = np.searchsorted(rows, members[own].ravel()).reshape(m, k)
        near_X, near_weights = X[rows], weights[rows]
        before = covering_costs(near_X, near_weights, inner).sum()
        if before <= 0.0:
            continue
        near = nearest_in_window(near_X, min(count, rows.shape[0] - 1))
        anneal_covering(
            near_X, near_weights, owner[rows], near, inner, int(moves * m), hot * before / m,
            cold * before / m, seed, t, halt,
        )  # fmt: skip
        if covering_costs(near_X, near_weights, inner).sum() < before:
            for p in range(m):
                members[own[p]] = rows[inner[p]]


@kernel
def draw_matching(members: Integers, words: Integers, seed: int) -> Integers:
    """Draw for every group the member that gets its values, shape (n,); each record is drawn once.

    `words` are uniform whole numbers in 0 .. 2^53 - 1, more than n k; the answer is empty where
    they do not suffice. The seed chooses cycles, on which no probability depends.
    """
    # Pairs are numbered p k + a. A node is a record (0 .. n - 1) or a group (n .. 2n - 1); each has
    # k pairs, of which the first live[node] are undecided: no flow is 0 or k there, and as flows
    # of a node sum to k, an undecided pair is never alone.
    n, k = members.shape
    pairs, place = np.empty((2 * n, k), dtype=np.int64), np.empty((n * k, 2), dtype=np.int64)
    live, flow = np.zeros(2 * n, dtype=np.int64), np.ones(n * k, dtype=np.int64)
    for e in range(n * k):
        for side, node in enumerate((members[e // k, e % k], n + e // k)):
            pairs[node, live[node]] = e
            place[e, side] = live[node]
            live[node] += 1
    stream, used = start_stream(seed, 0), 0
    path, seen = np.empty(2 * n + 1, dtype=np.int64), np.full(2 * n, -1, dtype=np.int64)
    for source in range(n):
        while live[source] > 0:
            node, length, came = source, 0, -1
            while seen[node] < 0:
                seen[node] = length
                e = pairs[node, draw_below(stream, live[node] - (came >= 0))]
                if e == came:
                    e = pairs[node, live[node] - 1]
                path[length] = came = e
                length += 1
                group = n + e // k
                node = members[e // k, e % k] if node == group else group
            begin = seen[node]
            for c in range(length):
                seen[members[path[c] // k, path[c] % k]] = seen[n + path[c] // k] = -1
            up, down = k, k  # how far flow can rise on the cycle's even pairs, and fall
            for c in range(begin, length):
                rest = k - flow[path[c]]
                even = (c - begin) % 2 == 0
                up = min(up, rest if even else flow[path[c]])
                down = min(down, flow[path[c]] if even else rest)
            whole = (2**53 // (up + down)) * (up + down)
            while used < len(words) and words[used] >= whole:
                used += 1
            if used == len(words):
                return np.empty(0, dtype=np.int64)
            change = up if words[used] % (up + down) < down else -down
            used += 1
            for c in range(begin, length):
                e = path[c]
                flow[e] += change if (c - begin) % 2 == 0 else -change
                if flow[e] == 0 or flow[e] == k:
                    for side, end in enumerate((members[e // k, e % k], n + e // k)):
                        live[end] -= 1
                        last, at = pairs[end, live[end]], place[e, side]
                        pairs[end, at], pairs[end, live[end]] = last, e
                        place[last, side], place[e, side] = at, live[end]
    drawn = np.empty(n, dtype=np.int64)
    for e in range(n * k):
        if flow[e] == k:
            drawn[e // k] = members[e // k, e % k]
    return drawn
