"""Records that move between groups, or exchange values, at random.

*Streams.* numba's own generator is one a thread, so its numbers would depend on how work is spread
over threads. Here every piece of work carries its stream: xorshift64* (Vigna 2016), seeded through
splitmix64 so that neighbouring seeds give unrelated streams.

*Annealing* of one window of records under groups of k to 2k - 1. The state is a labelling with, for
each group, its members, total weight and centre, all kept up to date move by move. Four moves, each
proposed from a list of near records:

- *relocate*: a record leaves a group with more than k for the group of a near record;
- *swap*: a record changes places with a member of the group of a near record;
- *dissolve*: a small group is given up, each member joins the best group near it;
- *open*: a record and the nearest that may leave their groups form a new group.

Costs are differences of SSE in centre form, exact up to rounding. With a group of weight W and
centre c, a record (w, x) that joins adds W w / (W + w) |x - c|^2, one that leaves takes away
W w / (W - w) |x - c|^2; and when a record (w, x) leaves while (w', x') joins, with u = x - c and
v = x' - c, the change is w'|v|^2 - w|u|^2 - |w' v - w u|^2 / (W - w + w').

*Exchange* is a Markov chain over assignments. Record i may stand at any centre of its list, with a
weight for each; the chain's distribution is the product of the records' weights, restricted to
assignments in which every group has from k to `most` records. A step picks a record i and a centre
b of its list. If i's group can spare it, i moves; if not, i changes places with a record of b.
Either is proposed as often as its reverse, so it is accepted with the ratio of the weights
(Metropolis).

*Swapping* draws partners within a window of ranks. Free ranks are counted in a tree (Fenwick 1994),
so a draw takes O(log n) however wide the window.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .._types import Bytes, Floats, Integers, SmallIntegers, Stream
from . import kernel
from .groups import squared_distance

# Share of proposals that dissolve or open a group, for k up to 5. Between 0.02 and 0.2 the result
# hardly changes. Such a move costs as much as 16 k others, so the share falls as k grows.
STRUCTURAL = 0.05
# Near records whose groups a record of a dissolved group may join, spread over its list. A guess:
# twice as many make a dissolving move twice as long, which is one move in forty.
LOOKS = 16
# The temperature falls geometrically, in this many plateaus (Kirkpatrick, Gelatt and Vecchi 1983).
# A plateau is also how long a request to stop may wait. A guess:
# from one plateau to the next the temperature falls by two or three per cent.
PLATEAUS = 256


@kernel
def start_stream(seed: int, number: int) -> Stream:
    """Open stream `number` of the family `seed`; the state has shape (1,)."""
    z = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(number)
    for _ in range(2):
        z += np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    stream = np.empty(1, dtype=np.uint64)
    stream[0] = z | np.uint64(1)  # the state must not be zero
    return stream


@kernel
def next_word(stream: Stream) -> Any:
    """Draw 64 random bits."""
    x = stream[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    stream[0] = x
    return x * np.uint64(0x2545F4914F6CDD1D)


@kernel
def draw(stream: Stream) -> float:
    """Draw a number in [0, 1)."""
    return np.float64(next_word(stream) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def draw_below(stream: Stream, n: int) -> Any:
    """Draw an integer in 0 .. n - 1, for n below 2**32."""
    return np.int64(((next_word(stream) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@kernel
def leave(
    X: Floats, weights: Floats, i: Any, labels: Integers, size: Integers, mass: Floats,
    centre: Floats, member: Integers, place: Integers,
) -> None:  # fmt: skip
    """Take record i out of its group, which keeps at least one record or becomes empty."""
    g, w = labels[i], weights[i]
    last = member[g, size[g] - 1]
    member[g, place[i]] = last
    place[last] = place[i]
    size[g] -= 1
    mass[g] -= w
    if size[g] > 0:
        share = w / mass[g]
        for q in range(X.shape[1]):
            centre[g, q] -= share * (X[i, q] - centre[g, q])


@kernel
def join(
    X: Floats, weights: Floats, i: Any, g: int, labels: Integers, size: Integers, mass: Floats,
    centre: Floats, member: Integers, place: Integers,
) -> None:  # fmt: skip
    """Put record i, now in no group, into group g."""
    w = weights[i]
    if size[g] == 0:
        mass[g] = w
        for q in range(X.shape[1]):
            centre[g, q] = X[i, q]
    else:
        mass[g] += w
        share = w / mass[g]
        for q in range(X.shape[1]):
            centre[g, q] += share * (X[i, q] - centre[g, q])
    labels[i] = g
    place[i] = size[g]
    member[g, size[g]] = i
    size[g] += 1


@kernel
def swap_cost(
    X: Floats, weights: Floats, i: int, t: int, g: int, h: int, mass: Floats, centre: Floats
) -> Any:
    """Change of SSE when record i of group g and record t of group h change places."""
    wi, wt = weights[i], weights[t]
    spread, moved_g, moved_h = 0.0, 0.0, 0.0
    for q in range(X.shape[1]):
        from_g, to_g = X[i, q] - centre[g, q], X[t, q] - centre[g, q]
        from_h, to_h = X[t, q] - centre[h, q], X[i, q] - centre[h, q]
        spread += wt * (to_g * to_g - from_h * from_h) + wi * (to_h * to_h - from_g * from_g)
        step_g, step_h = wt * to_g - wi * from_g, wi * to_h - wt * from_h
        moved_g += step_g * step_g
        moved_h += step_h * step_h
    return spread - moved_g / (mass[g] - wi + wt) - moved_h / (mass[h] - wt + wi)


@kernel
def swap(
    X: Floats, weights: Floats, i: int, t: int, labels: Integers, mass: Floats,
    centre: Floats, member: Integers, place: Integers,
) -> None:  # fmt: skip
    """Let records i and t change places."""
    g, h = labels[i], labels[t]
    wi, wt = weights[i], weights[t]
    mass[g] += wt - wi
    mass[h] += wi - wt
    for q in range(X.shape[1]):
        centre[g, q] += (wt * (X[t, q] - centre[g, q]) - wi * (X[i, q] - centre[g, q])) / mass[g]
        centre[h, q] += (wi * (X[i, q] - centre[h, q]) - wt * (X[t, q] - centre[h, q])) / mass[h]
    member[g, place[i]], member[h, place[t]] = t, i
    place[i], place[t] = place[t], place[i]
    labels[i], labels[t] = h, g


@kernel
def dissolve(
    X: Floats, weights: Floats, near: SmallIntegers, g: int, looks: int, cap: int,
    allowance: float, moved: Integers, labels: Integers, size: Integers, mass: Floats,
    centre: Floats, member: Integers, place: Integers,
) -> bool:  # fmt: skip
    """Give the records of group g to near groups with room; return whether it was worth it.

    What the group costs now is gained; each record then pays where it joins. `moved` is room for
    the records that have left, which come back where the allowance does not suffice.
    """
    count, held = near.shape[1], 0
    for a in range(size[g]):
        allowance += weights[member[g, a]] * squared_distance(X, member[g, a], centre, g)
    while size[g] > 0 and allowance >= 0.0:
        x = member[g, size[g] - 1]
        w = weights[x]
        best, target = np.inf, -1
        for r in range(looks):
            h = labels[near[x, r * count // looks]]
            if h == g or size[h] >= cap:
                continue
            cost = squared_distance(X, x, centre, h) * mass[h] * w / (mass[h] + w)
            if cost < best:
                best, target = cost, h
        if target < 0:
            break
        allowance -= best
        leave(X, weights, x, labels, size, mass, centre, member, place)
        join(X, weights, x, target, labels, size, mass, centre, member, place)
        moved[held] = x
        held += 1
    if size[g] == 0 and allowance >= 0.0:
        return True
    for a in range(held - 1, -1, -1):
        leave(X, weights, moved[a], labels, size, mass, centre, member, place)
        join(X, weights, moved[a], g, labels, size, mass, centre, member, place)
    return False


@kernel
def open_group(
    X: Floats, weights: Floats, near: SmallIntegers, i: int, new: int, k: int, allowance: float,
    moved: Integers, origin: Integers, labels: Integers, size: Integers, mass: Floats,
    centre: Floats, member: Integers, place: Integers,
) -> bool:  # fmt: skip
    """Open an empty group with i and the nearest records whose groups can spare one.

    Leaving gains, joining the new group costs; the first one joins for nothing. Returns whether k
    were found and were worth it; otherwise they are back in their groups of `origin`.
    """
    held = 0
    for r in range(-1, near.shape[1]):
        x = i if r < 0 else np.int64(near[i, r])
        h = labels[x]
        if size[h] <= k or h == new:
            continue
        w = weights[x]
        allowance += squared_distance(X, x, centre, h) * mass[h] * w / (mass[h] - w)
        if held > 0:
            allowance -= squared_distance(X, x, centre, new) * mass[new] * w / (mass[new] + w)
        leave(X, weights, x, labels, size, mass, centre, member, place)
        join(X, weights, x, new, labels, size, mass, centre, member, place)
        moved[held], origin[held] = x, h
        held += 1
        if held == k:
            break
    if held == k and allowance >= 0.0:
        return True
    for a in range(held - 1, -1, -1):
        leave(X, weights, moved[a], labels, size, mass, centre, member, place)
        join(X, weights, moved[a], origin[a], labels, size, mass, centre, member, place)
    return False


@kernel
def anneal(
    X: Floats, weights: Floats, near: SmallIntegers, labels: Integers, k: int, steps: int,
    hot: float, cold: float, seed: int, number: int, halt: Bytes,
) -> None:  # fmt: skip
    """Anneal the labelling in place, from temperature hot to cold.

    `labels` (n,) is a partition into groups of k to 2k - 1, numbered below n // k, and remains one
    after every move. `near` (n, count) has for each record others that it may be grouped with,
    nearest first. When halt[0] is set from outside, the kernel returns within a plateau.
    """
    # Invariants between moves: k <= size[g] <= cap or size[g] == 0; member[g, place[i]] == i for
    # g = labels[i]; mass and centre are those of the members, up to the rounding of their updates;
    # the n_free empty groups are free[:n_free].
    n, d = X.shape
    count, cap, n_groups = near.shape[1], 2 * k - 1, n // k
    stream = start_stream(seed, number)
    size = np.zeros(n_groups, dtype=np.int64)
    mass = np.zeros(n_groups)
    centre = np.zeros((n_groups, d))
    member = np.empty((n_groups, cap), dtype=np.int64)
    place = np.empty(n, dtype=np.int64)
    for i in range(n):
        join(X, weights, i, labels[i], labels, size, mass, centre, member, place)
    free = np.empty(n_groups, dtype=np.int64)
    n_free = 0
    for g in range(n_groups):
        if size[g] == 0:
            free[n_free] = g
            n_free += 1
    moved = np.empty(cap, dtype=np.int64)
    origin = np.empty(cap, dtype=np.int64)
    structural = STRUCTURAL * min(1.0, 5.0 / k)
    looks = min(LOOKS, count)
    plateau = max(1, steps // PLATEAUS)
    cooling = (cold / hot) ** (plateau / steps)
    temperature = hot
    for step in range(steps):
        if step % plateau == plateau - 1:
            temperature *= cooling
            if halt[0] != 0:
                return
        i = draw_below(stream, n)
        g = labels[i]
        kind = draw(stream)
        if kind >= structural:
            # The square of a uniform number: half of the proposals go to the nearest quarter.
            towards = draw(stream)
            j = near[i, int(count * towards * towards)]
            h = labels[j]
            if h == g:
                continue
            # Where both moves are open each has a half of the proposals; else only swaps keep k.
            if size[g] > k and size[h] < cap and draw(stream) < 0.5:
                w = weights[i]
                cost = squared_distance(X, i, centre, h) * mass[h] * w / (mass[h] + w)
                cost -= squared_distance(X, i, centre, g) * mass[g] * w / (mass[g] - w)
                # Metropolis: accepted with probability exp(-cost / temperature). The logarithm is
                # drawn only where it decides; log(0) is -inf and accepts.
                if cost <= 0.0 or cost < -temperature * np.log(draw(stream)):
                    leave(X, weights, i, labels, size, mass, centre, member, place)
                    join(X, weights, i, h, labels, size, mass, centre, member, place)
            else:
                t = member[h, draw_below(stream, size[h])]
                if t == j:  # the near record is the reason to go there
                    continue
                cost = swap_cost(X, weights, i, t, g, h, mass, centre)
                if cost <= 0.0 or cost < -temperature * np.log(draw(stream)):
                    swap(X, weights, i, t, labels, mass, centre, member, place)
            continue
        # Moves of several records are made one by one, against an allowance that Metropolis's test
        # is drawn for in advance: gains add to it, costs use it up. If it ends below 0, or no place
        # is found, all steps are undone, the last one first.
        allowance = -temperature * np.log(1.0 - draw(stream))
        if kind < 0.5 * structural:
            # Larger groups are not worth giving up: their records have relocations open to them.
            if size[g] <= k + 1 and dissolve(
                X, weights, near, g, looks, cap, allowance, moved, labels, size, mass, centre,
                member, place,
            ):  # fmt: skip
                free[n_free] = g
                n_free += 1
        elif n_free > 0 and size[g] > k:
            n_free -= open_group(
                X, weights, near, i, free[n_free - 1], k, allowance, moved, origin, labels, size,
                mass, centre, member, place,
            )  # fmt: skip


class Standing(NamedTuple):
    """Where everyone stands."""

    lists: Integers  # (n, t) the centres where a record may stand
    weights: Floats  # (n, t) logarithms of the weights
    slots: Integers  # (n,) the place in its list where a record stands
    members: Integers  # (c, most) the records of each group
    places: Integers  # (n,) the place of a record among the members of its group
    sizes: Integers  # (c,)


@kernel
def stand(lists: Integers, weights: Floats, slots: Integers, c: int, most: int) -> Standing:
    """Set up from the place in its list where each record stands."""
    n = lists.shape[0]
    members, sizes = np.full((c, most), -1), np.zeros(c, dtype=np.int64)
    places = np.empty(n, dtype=np.int64)
    for i in range(n):
        group = lists[i, slots[i]]
        places[i] = sizes[group]
        members[group, sizes[group]] = i
        sizes[group] += 1
    return Standing(lists, weights, slots, members, places, sizes)


@kernel
def exchange(standing: Standing, k: int, chances: Floats, visits: Integers) -> int:
    """Take one step for each row of `chances`, of shape (steps, 4), uniform in [0, 1).

    If `visits` is not empty, of shape (n, t), it counts where each record stands after the last
    step. Returns the number of steps that were accepted.
    """
    lists, weights, slots, members, places, sizes = standing
    n, t = lists.shape
    most, accepted = members.shape[1], 0
    for step in range(chances.shape[0]):
        i = int(chances[step, 0] * n)
        here, there = slots[i], int(chances[step, 1] * t)
        a, b = lists[i, here], lists[i, there]
        if a == b:
            continue
        gain = weights[i, there] - weights[i, here]
        if sizes[a] > k:
            if sizes[b] < most and math.log(max(chances[step, 3], 1e-300)) < gain:
                last = members[a, sizes[a] - 1]
                members[a, places[i]], places[last] = last, places[i]
                sizes[a] -= 1
                members[b, sizes[b]], places[i], slots[i] = i, sizes[b], there
                sizes[b] += 1
                accepted += 1
            continue
        j = members[b, int(chances[step, 2] * sizes[b])]
        back = 0
        while back < t and lists[j, back] != a:
            back += 1
        if back == t:
            continue
        gain += weights[j, back] - weights[j, slots[j]]
        if math.log(max(chances[step, 3], 1e-300)) < gain:
            members[a, places[i]], members[b, places[j]] = j, i
            places[i], places[j] = places[j], places[i]
            slots[i], slots[j] = there, back
            accepted += 1
    if visits.shape[0] > 0:
        for i in range(n):
            visits[i, slots[i]] += 1
    return accepted


@kernel
def draw_partners(chances: Floats, window: int) -> Integers:
    """Return the partner of each rank 0, ..., n - 1; a rank without one is its own.

    From rank 0 upward, a free rank i gets a partner that is uniform among the free ranks in
    i + 1, ..., i + window; neither is free any more. `chances` (n,) are uniform in [0, 1).
    """
    n = chances.shape[0]
    partner = np.arange(n)
    free = np.ones(n, dtype=np.bool_)
    tree = np.zeros(n + 1, dtype=np.int64)  # tree[i] counts the i & -i ranks below i
    top = 1
    while top * 2 <= n:
        top *= 2
    for i in range(1, n + 1):
        tree[i] = i & -i
    for i in range(n):
        if not free[i]:
            continue
        free[i] = False
        at = i + 1
        while at <= n:
            tree[at] -= 1
            at += at & -at
        below, at = 0, i + 1
        while at > 0:
            below += tree[at]
            at -= at & -at
        within, at = 0, min(i + window, n - 1) + 1
        while at > 0:
            within += tree[at]
            at -= at & -at
        count = within - below
        if count == 0:
            continue
        wanted = below + int(chances[i] * count)  # chances[i] < 1
        j, step = 0, top  # the rank with `wanted` free ranks below it
        while step > 0:
            if j + step <= n and tree[j + step] <= wanted:
                j += step
                wanted -= tree[j]
            step //= 2
        free[j] = False
        at = j + 1
        while at <= n:
            tree[at] -= 1
            at += at & -at
        partner[i] = j
        partner[j] = i
    return partner
