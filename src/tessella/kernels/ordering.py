"""Sequences of multivariate records, along nearest neighbours or group by group, and their cuts."""

import numpy as np

from .._types import Floats, Integers
from . import kernel
from .groups import distance_between, insert, members_of, squared_error, weighted_centres
from .neighbours import Remaining, all_rows, copy_rows, nearest_row, remove_row
from .sequence import best_cut, labels_of_cut

TABLE = 1024  # groups up to this size keep their distances in a table, of 8 MB then
ROUNDS = 1000  # of ordering and cutting, at most; about ten are usual: a guard, not a setting


@kernel
def nearest_next(X: Floats, remaining: Remaining, first: int) -> Integers:
    """Walk from a record to the nearest one not yet visited, until none remains.

    Removes all rows.
    """
    n = X.shape[0]
    order = np.empty(n, dtype=np.int64)
    order[0] = first
    remove_row(remaining, first)
    for p in range(1, n):
        order[p] = nearest_row(remaining, X, order[p - 1])
        remove_row(remaining, order[p])
    return order


@kernel
def _distance(X: Floats, table: Floats, members: Integers, a: int, b: int) -> float:
    """Distance of two members, from the table if there is one."""
    return table[a, b] if table.shape[0] > 0 else distance_between(X, members[a], members[b])


@kernel
def _distance_table(X: Floats, members: Integers) -> Floats:
    """Distances of all members of a group, or nothing if there are too many."""
    m = members.shape[0]
    table = np.empty((m, m) if m <= TABLE else (0, 0))
    for a in range(table.shape[0]):
        table[a, a] = 0.0
        for b in range(a):
            table[a, b] = table[b, a] = distance_between(X, members[a], members[b])
    return table


@kernel
def _cheapest_gap(
    X: Floats, table: Floats, members: Integers, after: Integers, entry: int, end: int, new: int
) -> tuple[int, float]:
    """Find the gap of the path in which a member costs least: the member before it, the cost."""
    gap, least, a = -1, np.inf, entry
    near = _distance(X, table, members, a, new)
    while a != end:
        b = after[a]
        far = _distance(X, table, members, b, new)
        cost = near + far - _distance(X, table, members, a, b)
        if cost < least or gap < 0:
            gap, least = a, cost
        a, near = b, far
    return gap, least


@kernel
def insertion_path(X: Floats, members: Integers, entry: int) -> Integers:
    """Order a group's rows: from the entry to its farthest member, the others inserted between.

    `members` are row numbers and `entry` a position in them. Of all members not yet on the path
    and all gaps of the path, the pair that lengthens the path least is next; of equals, the lowest
    row.

    Each waiting member keeps its cheapest gap. An insertion closes one gap and opens two; to a
    member that wanted the closed gap, all others cost at least as much as that one did. Its old
    cost stays a valid bound, and it looks at all gaps again only when its turn comes and no new
    gap met the bound: O(m²) distances in practice.
    """
    m = members.shape[0]
    if m == 1:
        return members.copy()
    table = _distance_table(X, members)
    end, reach = -1, -1.0
    for a in range(m):
        distance = _distance(X, table, members, entry, a)
        if a != entry and distance > reach:
            end, reach = a, distance
    after = np.full(m, -1)  # the member that follows on the path
    after[entry] = end
    waiting, n_waiting = np.empty(m, dtype=np.int64), 0  # lowest row first
    aways = np.empty(m)  # distances to the member inserted last
    costs = np.empty(m)  # of the cheapest gap, or a bound below it
    gaps = np.full(m, entry)  # the member before the cheapest gap, -1 where only the bound is known
    for t in range(m):
        if t not in (entry, end):
            waiting[n_waiting] = t
            n_waiting += 1
            costs[t] = _distance(X, table, members, entry, t) - reach
            costs[t] += _distance(X, table, members, t, end)
    while n_waiting > 0:
        w = 0
        for v in range(1, n_waiting):
            if costs[waiting[v]] < costs[waiting[w]]:
                w = v
        new = waiting[w]
        if gaps[new] < 0:
            gaps[new], costs[new] = _cheapest_gap(X, table, members, after, entry, end, new)
            continue
        before, behind, last = gaps[new], after[gaps[new]], new
        after[before], after[new] = new, behind
        first_half = _distance(X, table, members, before, new)
        second_half = _distance(X, table, members, new, behind)
        kept = 0
        for v in range(n_waiting):
            t = waiting[v]
            if t == new:
                continue
            aways[t] = _distance(X, table, members, new, t)
            if aways[t] == 0.0:  # an equal record follows at once: no gap is cheaper than nothing
                after[last], after[t], last = t, behind, t
            else:
                waiting[kept] = t
                kept += 1
        n_waiting = kept
        for v in range(n_waiting):
            t = waiting[v]
            if gaps[t] == before:
                gaps[t] = -1
            # a detour from a gap of length l to a point r away from its end costs 2 (r - l) or more
            if 2.0 * (aways[t] - first_half) <= costs[t]:
                cost = _distance(X, table, members, before, t) + aways[t] - first_half
                if cost < costs[t] or (gaps[t] < 0 and cost == costs[t]):
                    gaps[t], costs[t] = before, cost
            if 2.0 * (aways[t] - second_half) <= costs[t]:
                cost = aways[t] + _distance(X, table, members, behind, t) - second_half
                if cost < costs[t] or (gaps[t] < 0 and cost == costs[t]):
                    gaps[t], costs[t] = last, cost
    path = np.empty(m, dtype=np.int64)
    a = entry
    for p in range(m):
        path[p] = members[a]
        a = after[a]
    return path


@kernel
def group_path(
    X: Floats, remaining: Remaining, labels: Integers, n_groups: int, first: int
) -> Integers:
    """Visit all groups, each along its insertion path, the next entered at its nearest record.

    The walk begins at record `first`; every further group is the one that holds the record
    nearest to the last one visited. Removes all rows.
    """
    n = X.shape[0]
    rows, begins = members_of(labels, n_groups)
    order = np.empty(n, dtype=np.int64)
    done, entered = 0, first
    while done < n:
        g = labels[entered]
        members = rows[begins[g] : begins[g + 1]]
        entry = 0
        while members[entry] != entered:
            entry += 1
        path = insertion_path(X, members, entry)
        for row in path:
            order[done] = row
            remove_row(remaining, row)
            done += 1
        entered = nearest_row(remaining, X, order[done - 1])
    return order


@kernel
def centre_path(
    X: Floats, weights: Floats, labels: Integers, n_groups: int, first: int
) -> Integers:
    """Visit all groups along their centres, nearest next, beginning with the group of `first`.

    Within a group records stand in the direction from the previous centre to the next one: those
    that lean towards a neighbouring group stand next to it, where a cut can hand them over.
    """
    n, d = X.shape
    centres = weighted_centres(X, weights, labels, n_groups)
    groups = nearest_next(centres, all_rows(centres), labels[first])
    rows, begins = members_of(labels, n_groups)
    order, leanings = np.empty(n, dtype=np.int64), np.empty(n)
    done = 0
    for p in range(n_groups):
        here, before, behind = groups[p], groups[max(0, p - 1)], groups[min(n_groups - 1, p + 1)]
        members = rows[begins[here] : begins[here + 1]]
        for a in range(members.shape[0]):
            leaning = 0.0
            for j in range(d):
                direction = centres[behind, j] - centres[before, j]
                leaning += (X[members[a], j] - centres[here, j]) * direction
            insert(leanings, order[done:], a, leaning, members[a])
        done += members.shape[0]
    return order


@kernel
def cut_units(
    X: Floats, weights: Floats, order: Integers, k: int, units: Integers
) -> tuple[Integers, float]:
    """Cut the records, taken in this order, at the least error: labels of shape (n,), SSE.

    Every group has k records, or k distinct units if there are any. Let last[e] be the last
    start from which a group that ends before e has k units. A group that starts at last[last[e]] or
    before can be cut in two at last[e], so only later starts are tried: those of k to 2k - 1
    records where all units differ. Going back, the error of the group alone grows; it ends the
    search once it is above the best found.
    """
    if units.shape[0] == 0:
        return best_cut(X, weights, order, k)
    n, d = X.shape
    best, starts = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.int64)
    best[0] = 0.0
    last = np.full(n + 1, -1)
    inside, n_inside, start = np.zeros(units.max() + 1, dtype=np.int64), 0, 0
    mean = np.empty(d)
    for end in range(1, n + 1):
        u = units[order[end - 1]]
        n_inside += inside[u] == 0
        inside[u] += 1
        while n_inside >= k:  # until one record fewer would be too few
            u = units[order[start]]
            inside[u] -= 1
            n_inside -= inside[u] == 0
            start += 1
        last[end] = start - 1  # -1 while there are fewer than k units
        if start == 0:
            continue
        too_early = last[last[end]]
        total, error = 0.0, 0.0
        for p in range(end - 1, too_early, -1):
            row = order[p]
            w, squares = weights[row], 0.0
            if total == 0.0:
                total = w
                for q in range(d):
                    mean[q] = X[row, q]
            else:
                for q in range(d):
                    difference = X[row, q] - mean[q]
                    squares += difference * difference
                    mean[q] += difference * w / (total + w)
                error += squares * total * w / (total + w)
                total += w
            if error >= best[end]:
                break
            if p <= last[end] and best[p] + error < best[end]:
                best[end], starts[end] = best[p] + error, p
    return labels_of_cut(starts, order), float(best[n])


@kernel
def repeat_ordering(
    X: Floats, weights: Floats, remaining: Remaining, labels: Integers, first: int, k: int,
    tolerance: float, units: Integers,
) -> tuple[Integers, Floats]:  # fmt: skip
    """Order group by group, cut, and again from the new groups, while the error falls.

    The first groups may have any size. Labels of shape (n,), and the SSE after each round; the
    last round may gain nothing.
    """
    errors = np.empty(ROUNDS)
    least, done = np.inf, 0
    while done < ROUNDS:
        order = group_path(X, copy_rows(remaining), labels, labels.max() + 1, first)
        found, error = cut_units(X, weights, order, k, units)
        errors[done] = error
        done += 1
        if error < least:
            labels = found
        if not least - error >= tolerance:
            break
        least = error
    return labels, errors[:done]


@kernel
def keep_walking(
    X: Floats, weights: Floats, remaining: Remaining, labels: Integers, firsts: Integers,
    k: int, patience: int, by_centres: bool, units: Integers,
) -> tuple[Integers, Floats]:  # fmt: skip
    """Order and cut again and again, each time from another first record.

    Another beginning leads through the same groups in another order, so that other groups become
    neighbours. Stops after `patience` rounds in a row that gained less than 1e-5 of the error, or
    at the end of `firsts`. With `by_centres` every other round walks along the centres. All groups
    have k or more records, or units if there are any. Labels of shape (n,), and the SSE before
    and after each round.
    """
    errors = np.empty(firsts.shape[0] + 1)
    n_groups = labels.max() + 1
    centres = weighted_centres(X, weights, labels, n_groups)
    errors[0] = squared_error(X, weights, labels, centres)
    idle, done = 0, 0
    while done < firsts.shape[0] and idle < patience:
        n_groups = labels.max() + 1
        if by_centres and done % 2 == 0:
            order = centre_path(X, weights, labels, n_groups, firsts[done])
        else:
            order = group_path(X, copy_rows(remaining), labels, n_groups, firsts[done])
        found, error = cut_units(X, weights, order, k, units)
        before = errors[done]
        idle = 0 if before - error > 1e-5 * before else idle + 1
        if error < before:
            labels = found
        done += 1
        errors[done] = min(error, before)
    return labels, errors[: done + 1]
