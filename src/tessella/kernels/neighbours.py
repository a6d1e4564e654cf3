"""Neighbours of rows: the nearest that remains and the nearest others in a tree, or by a scan."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._types import Floats, Integers, SmallIntegers, Truths
from ._jit import kernel
from .duplicates import Duplicates, group_equal
from .groups import squared_distance
from .tree import NOBODY, Scratch, Tree, build_tree, make_scratch, nearest, remove_point

# Windows of fewer records than this are scanned in double precision alone.
SCREENED = 512
HALVINGS = 16  # of the range of least distances: the limit is then within 1 % of the best


class Remaining(NamedTuple):
    """The rows of a table that were not removed yet, for one nearest row at a time."""

    tree: Tree
    duplicates: Duplicates
    place_of: Integers  # (n,) the place of each row
    removed: Truths  # (n,) by place
    scratch: Scratch


@kernel
def all_rows(X: Floats) -> Remaining:
    """Build the tree of all rows of a table, in O(n d log n)."""
    n, d = X.shape
    centre = np.zeros(d)
    for i in range(n):
        for j in range(d):
            centre[j] += X[i, j] / n
    duplicates = group_equal(X, centre)
    tree = build_tree(duplicates.points, np.arange(duplicates.points.shape[0]), centre, True)
    place_of = np.empty(n, dtype=np.int64)
    for place in range(n):
        place_of[duplicates.rows[place]] = place
    return Remaining(tree, duplicates, place_of, np.zeros(n, dtype=np.bool_), make_scratch(d))


@kernel
def copy_rows(remaining: Remaining) -> Remaining:
    """Copy what removing rows and searching change, so that several walks share the rest."""
    tree, duplicates = remaining.tree, remaining.duplicates
    return Remaining(
        Tree(
            tree.points.copy(),
            tree.boxes.copy(),
            tree.members,
            tree.places,
            tree.below,
            tree.parents,
            tree.seats,
            tree.centre,
            tree.scale,
            tree.reach,
        ),
        Duplicates(
            duplicates.points,
            duplicates.point_of,
            duplicates.rows,
            duplicates.firsts.copy(),
            duplicates.ends,
        ),
        remaining.place_of,
        remaining.removed.copy(),
        make_scratch(tree.centre.shape[0]),
    )


@kernel
def remove_row(remaining: Remaining, row: int) -> None:
    """Remove a row, which may be any of several equal ones.

    `firsts` moves on to the next row that remains, which is all that a search for one row looks at.
    """
    tree, duplicates, removed = remaining.tree, remaining.duplicates, remaining.removed
    place = remaining.place_of[row]
    distinct = duplicates.point_of[place]
    removed[place] = True
    first, end = duplicates.firsts[distinct], duplicates.ends[distinct]
    while first < end and removed[first]:
        first += 1
    if first == end and duplicates.firsts[distinct] < end:
        remove_point(
            tree.points,
            tree.boxes,
            tree.parents,
            tree.seats,
            tree.centre.shape[0],
            tree.places[distinct],
        )
    duplicates.firsts[distinct] = first


@kernel
def nearest_row(remaining: Remaining, X: Floats, row: int) -> int:
    """Return the row nearest to a row of X, of equals the lowest; -1 if none remains.

    X is the table that the tree was built of; `row` itself may be removed already.
    """
    duplicates, tree = remaining.duplicates, remaining.tree
    distance, found = np.empty(1), np.empty(1, dtype=np.int64)
    home = tree.places[duplicates.point_of[remaining.place_of[row]]]
    nearest(tree, remaining.scratch, duplicates, X[row], home, distance, found)
    return int(duplicates.rows[found[0]]) if found[0] != NOBODY else -1


@kernel
def nearest_others(
    remaining: Remaining, first: int, last: int, rows: Integers, squares: Floats
) -> None:
    """Set the nearest other rows, and the squared distances, of the rows at some places.

    `rows` and `squares` have shape (n, count), n > count; each row is found as its own neighbour
    and left out, so one more is looked for.
    """
    duplicates, tree, count = remaining.duplicates, remaining.tree, rows.shape[1]
    scratch = make_scratch(tree.centre.shape[0])
    distances, found = np.empty(count + 1), np.empty(count + 1, dtype=np.int64)
    for place in range(first, last):
        distinct, row = duplicates.point_of[place], duplicates.rows[place]
        point, home = duplicates.points[distinct], tree.places[distinct]
        nearest(tree, scratch, duplicates, point, home, distances, found)
        # Of more than `count` equal rows a high one may be crowded out of its own list.
        to = 0
        for i in range(count + 1):
            if found[i] != place and to < count:
                rows[row, to], squares[row, to] = duplicates.rows[found[i]], distances[i]
                to += 1


@kernel
def nearest_in_window(X: Floats, count: int) -> SmallIntegers:
    """List for each record its `count` nearest others, nearest first, shape (n, count).

    A scan: a window is small enough for the cache, where no tree is faster, and in many columns no
    projection rules out enough. Each record scans from its own place on, round the table: of many
    equal records each lists other ones.

    Large windows are screened in single precision, two records at once. Only what may be among the
    nearest, given the rounding there, is computed again in double precision, so the lists are those
    of a scan in double precision, to the last tie. An outlier makes the rounding of all others
    coarse: where the screen lets an eighth of the records through, it is given up.
    """
    n = len(X)
    near = np.empty((n, count), dtype=np.int32)
    columns = np.ascontiguousarray(X.T)
    # About 30 of 64 blocks hold one of the 24 nearest, so few others are below the limit.
    block = 64
    while block > 4 and n < 8 * count * block // 3:
        block //= 2
    n_blocks = -(-n // block)
    done = 0
    if n >= SCREENED and 2 * count <= n // block:
        small = single_precision(columns)
        rough = np.full((2, n_blocks * block), np.inf, dtype=np.float32)
        least = np.empty(n_blocks, dtype=np.int32)
        looked = 0
        while done < n and (done < 32 or 8 * looked < done * n):
            squares_to_two(small, done, min(done + 1, n - 1), rough)
            for i in range(done, min(done + 2, n)):
                row = rough[i - done]
                row[i] = np.float32(np.inf)
                least_of_blocks(row.view(np.int32), block, least)
                limit = upper_bound(least, count)
                looked += screen(X, i, row, least, block, limit, near[i])
            done += 2
    scan_all(X, columns, done, near)
    return near


@kernel
def scan_all(X: Floats, columns: Floats, first: int, near: SmallIntegers) -> None:
    """Fill the lists of the records from the first on by exact distances to all others.

    They are summed column by column, which the processor does four at a time without changing the
    order of any sum.
    """
    d, n = columns.shape
    count = near.shape[1]
    distance, exact = np.empty(count), np.empty(n)
    for i in range(first, n):
        exact[:] = 0.0
        for q in range(d):
            x, column = X[i, q], columns[q]
            for j in range(n):
                exact[j] += (x - column[j]) * (x - column[j])
        held = 0
        for step in range(1, n):
            j = i + step if i + step < n else i + step - n
            if held < count or exact[j] < distance[count - 1]:
                held = insert(distance, near[i], held, exact[j], j)


@kernel
def insert(distance: Floats, near: SmallIntegers, held: int, total: float, j: int) -> int:
    """Put a record into a list by distance, and return how many it holds; the farthest may go."""
    place = min(held, len(distance) - 1)
    while place > 0 and distance[place - 1] > total:
        distance[place] = distance[place - 1]
        near[place] = near[place - 1]
        place -= 1
    distance[place] = total
    near[place] = j
    return min(held + 1, len(distance))


@kernel
def single_precision(columns: Floats) -> Any:
    """Return columns less their means, divided by the largest of all, float32 in [-1, 1]."""
    d, n = columns.shape
    moved = np.empty((d, n))
    scale = 0.0
    for q in range(d):
        mean = columns[q].mean()
        for j in range(n):
            moved[q, j] = columns[q, j] - mean
            scale = max(scale, abs(moved[q, j]))
    if scale == 0.0:
        scale = 1.0
    return (moved / scale).astype(np.float32)


@kernel
def squares_to_two(small: Any, i: int, k: int, rough: Any) -> None:
    """Squared distances of all records to records i and k; columns are loaded once for both."""
    d, n = small.shape
    first, second = rough[0], rough[1]
    first[:n] = np.float32(0.0)
    second[:n] = np.float32(0.0)
    q = 0
    while q + 2 <= d:
        a, b = small[q], small[q + 1]
        ai, bi, ak, bk = a[i], b[i], a[k], b[k]
        for j in range(n):
            first[j] += (ai - a[j]) * (ai - a[j]) + (bi - b[j]) * (bi - b[j])
            second[j] += (ak - a[j]) * (ak - a[j]) + (bk - b[j]) * (bk - b[j])
        q += 2
    if q < d:
        a = small[q]
        ai, ak = a[i], a[k]
        for j in range(n):
            first[j] += (ai - a[j]) * (ai - a[j])
            second[j] += (ak - a[j]) * (ak - a[j])


@kernel
def least_of_blocks(rough: Any, block: int, least: Any) -> None:
    """Least value of each block; the bits of floats that are not negative sort as integers do.

    Minima of integers are computed eight at a time, those of floats, with their NaN, one by one.
    """
    for t in range(len(least)):
        lowest = rough[t * block]
        for j in range(t * block + 1, (t + 1) * block):
            lowest = min(lowest, rough[j])
        least[t] = lowest


@kernel
def upper_bound(least: Any, count: int) -> Any:
    """Return a value that the least values of `count` blocks do not exceed.

    So many records are at most that far: it bounds the distance of the last one listed.
    """
    low, high = np.int32(-1), least.max()
    for _ in range(HALVINGS):
        middle = np.int32((np.int64(low) + np.int64(high)) // 2)
        below = np.int32(0)
        for value in least:
            below += np.int32(value <= middle)
        if below >= count:
            high = middle
        else:
            low = middle
    return high


@kernel
def screen(
    X: Floats, i: int, rough: Any, least: Any, block: int, bound: Any, near: SmallIntegers
) -> int:  # fmt: skip
    """Fill the list of record i; return how many distances were computed exactly.

    A coordinate in [-1, 1] has an error of at most 6e-8, a difference of three times that, its
    square and the sum of d of them a further share of d times 6e-8. That room is given twice:
    from the bound to exact distances, and back.
    """
    n, d = X.shape
    bounds = np.empty(1, dtype=np.int32)
    bounds[0] = bound
    room, give = 4e-7 * np.sqrt(d), 1 + 2e-7 * (d + 8)
    away = (np.sqrt(np.float64(bounds.view(np.float32)[0])) * give + room) * give + room
    limit = np.float32(away * away * give)
    bounds.view(np.float32)[0] = limit
    bound = bounds[0]
    distance = np.empty(near.shape[0])
    held, looked = 0, 0
    begin, end = i + 1, n
    for _ in range(2):  # from the next record to the last, then from the first on
        j = begin
        while j < end:
            t = j // block
            stop = min(end, (t + 1) * block)
            if least[t] <= bound:
                for a in range(j, stop):
                    if rough[a] <= limit:
                        looked += 1
                        total = squared_distance(X, i, X, a)
                        if held < len(distance) or total < distance[-1]:
                            held = insert(distance, near, held, total, a)
            j = stop
        begin, end = 0, i
    return looked
