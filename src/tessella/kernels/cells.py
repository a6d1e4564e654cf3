"""Cells of a space of parameters: how many records any point of a cell can link.

A *cell* is a simplex of parameters θ given by its corners; a record is linked at θ when all its
rows have a positive product with θ. Rows are linear, so corners decide: a row that is positive at
every corner never matters in the cell, and a record with a row that is positive at no corner is
linked nowhere in it. How many of the records that are left one point can link is bounded by
`most_together`. Halving an edge gives two cells, to which only what is undecided is handed down,
with the cliques found so far.

A row is kept as its products with the corners, and as a mask: bit v is set where it is positive at
corner v. Removing rows never makes a bound too small, so only `covers` has to be right to the last
bit, and what `exclusion` names.
"""

import numpy as np

from .._types import Floats, Integers
from . import kernel
from .exclusion import exclude, most_together
from .groups import doubled

Cells = tuple[Floats, *tuple[Integers, ...]]  # see `explore`
FRONT = 16  # rows of a record that others are compared with


@kernel
def covers(values: Floats, s: int, r: int) -> bool:
    """Whether row r is at least some multiple of row s, so that s positive makes r positive."""
    low, high = 0.0, np.inf
    for v in range(values.shape[1]):
        x, y = values[r, v], values[s, v]
        if y > 0.0:
            high = min(high, x / y)
        elif x < 0.0:
            low = max(low, x / y) if y < 0.0 else np.inf
        else:
            continue
        if low > high:
            return False
    return True


@kernel
def _decide(
    values: Floats, corner: int, middle: Floats, cell: tuple[Integers, Integers, Integers],
    sizes: tuple[int, int], classes: Integers, taken: Integers,
    out: tuple[Floats, Integers, Integers, Integers, Integers], whole: bool,
) -> tuple[int, int, int]:  # fmt: skip
    """Decide rows and records of a cell whose `corner` moved to where rows have `middle` values.

    `cell` has records, where their rows start, and which they are; `out` gets values, masks, rows,
    records and starts of what is undecided. Returns the records decided as linked, and how many
    records and rows are left. Where a cell has not the `whole` set of rows, no record is decided as
    linked: its lowest row stays for it.
    """
    records, starts, which = cell
    new_values, masks, new_which, new_records, new_starts = out
    k = values.shape[1]
    full = (1 << k) - 1
    linked, left, rows = 0, 0, 0
    new_starts[0] = 0
    for at in range(sizes[0]):
        first = rows
        dead = False
        lowest, least = -1, np.inf
        for row in range(starts[at], starts[at + 1]):
            mask = 0
            for v in range(k):
                value = middle[row] if v == corner else values[row, v]
                new_values[rows, v] = value
                if value > 0.0:
                    mask |= 1 << v
            if mask == 0:
                dead = True
                break
            if mask == full:
                if not whole and new_values[rows].min() < least:
                    lowest, least = row, new_values[rows].min()
                continue
            # A row that nowhere lies below some multiple of another never decides.
            spare = False
            for other in range(first, min(rows, first + FRONT)):
                if masks[other] & ~mask == 0 and covers(new_values, other, rows):
                    spare = True
                    break
            if spare:
                continue
            masks[rows], new_which[rows] = mask, which[row]
            rows += 1
        if not dead:
            for r in range(first, rows):
                for s in range(r + 1, min(rows, r + FRONT)):
                    if masks[r] & masks[s] == 0 and exclude(new_values, r, s):
                        dead = True
                        break
                if dead:
                    break
        if not dead and rows == first and lowest >= 0:
            for v in range(k):
                new_values[rows, v] = middle[lowest] if v == corner else values[lowest, v]
            masks[rows], new_which[rows] = full, which[lowest]
            rows += 1
        if dead:
            rows = first
        elif rows == first:
            linked += 1
            taken[classes[records[at]]] = 1
        else:
            new_records[left] = records[at]
            left += 1
            new_starts[left] = rows
    if linked == 0:
        return 0, left, rows
    # Of records masked to the same values at most one is right: the others lose.
    kept, end = 0, 0
    for at in range(left):
        first, last = new_starts[at], new_starts[at + 1]
        if taken[classes[new_records[at]]]:
            continue
        new_records[kept] = new_records[at]
        for row in range(first, last):
            masks[end], new_which[end] = masks[row], new_which[row]
            for v in range(k):
                new_values[end, v] = new_values[row, v]
            end += 1
        kept += 1
        new_starts[kept] = end
    for at in range(sizes[0]):
        taken[classes[records[at]]] = 0
    return linked, kept, end


@kernel
def _edge(corners: Floats, values: Floats, rows: int) -> tuple[int, int]:
    """The two ends of the edge to halve: long, and with many rows that change their sign along it.

    Squared length times rows: 1 to 5 per cent of the records less are left open after the same time
    than by length alone, and by rows alone cells become thin.
    """
    k, p = corners.shape
    changes = np.ones((k, k))
    for row in range(rows):
        for u in range(k):
            for v in range(u + 1, k):
                changes[u, v] += (values[row, u] > 0.0) != (values[row, v] > 0.0)
    best, first, second = -1.0, 0, 1
    for u in range(k):
        for v in range(u + 1, k):
            length = 0.0
            for column in range(p):
                side = corners[u, column] - corners[v, column]
                length += side * side
            if changes[u, v] * length > best:
                best, first, second = changes[u, v] * length, u, v
    return first, second


@kernel
def explore(
    U: Floats, classes: Integers, corners: Floats, depth: int, linked: int, records: Integers,
    groups: Integers, starts: Integers, which: Integers, best: int, budget: int, whole: bool,
) -> tuple[int, Floats, int, Cells]:  # fmt: skip
    """Halve a cell, and what comes of it, depth first, until `budget` rows were looked at.

    `U` has all rows (R x p), `classes` the class of each record masked to the same values. The cell
    has corners (k x p), the `depth` at which it came up, `linked` records that are decided, and
    undecided `records` with their cliques (`groups`) and their rows: the `whole` set of those that
    matter in it, or some.
    Cells that link at most `best` are dropped. Returns the most links met at the middle of a cell,
    that middle, the cells halved, and the cells still open: corners, depths, linked, bounds, where
    rows and records of each start, then rows, and of each record its number, clique and rows.
    """
    p, k = U.shape[1], corners.shape[0]
    n_records, n_rows = records.shape[0], which.shape[0]
    deep = 64
    all_corners = np.empty((deep, k, p))
    all_linked, bounds = np.empty(deep, dtype=np.int64), np.empty(deep, dtype=np.int64)
    depths = np.empty(deep, dtype=np.int64)
    row_ends, record_ends = np.zeros(deep + 1, np.int64), np.zeros(deep + 1, np.int64)
    kept_values = np.empty((3 * n_rows + 64, k))
    kept_rows = np.empty(3 * n_rows + 64, dtype=np.int64)
    kept_records = np.empty(3 * n_records + 64, dtype=np.int64)
    kept_sizes = np.empty(3 * n_records + 64, dtype=np.int64)
    kept_groups = np.empty(3 * n_records + 64, dtype=np.int64)
    for row in range(n_rows):
        kept_rows[row] = which[row]
        for v in range(k):
            value = 0.0
            for column in range(p):
                value += U[which[row], column] * corners[v, column]
            kept_values[row, v] = value
    for at in range(n_records):
        kept_records[at], kept_sizes[at] = records[at], starts[at + 1] - starts[at]
        kept_groups[at] = groups[at]
    all_corners[0] = corners
    depths[0] = depth
    all_linked[0], bounds[0] = linked, linked + n_records
    row_ends[1], record_ends[1] = n_rows, n_records
    top = 1
    values, middle = np.empty((n_rows, k)), np.empty(n_rows)
    which_, records_ = np.empty(n_rows, dtype=np.int64), np.empty(n_records, dtype=np.int64)
    starts_ = np.zeros(n_records + 1, dtype=np.int64)
    out = (
        np.empty((n_rows + 1, k)), np.empty(n_rows + 1, dtype=np.int64),
        np.empty(n_rows + 1, dtype=np.int64), np.empty(n_records, dtype=np.int64),
        np.empty(n_records + 1, dtype=np.int64),
    )  # fmt: skip
    taken = np.zeros(classes.max() + 1, dtype=np.int64)
    group_of, own = np.empty(classes.shape[0], np.int64), np.empty(n_records, np.int64)
    here, between = np.empty((k, p)), np.empty(p)
    theta, most, cells, looked = np.zeros(p), -1, 0, 0
    while top > 0 and looked < budget:
        top -= 1
        if bounds[top] <= best:
            continue
        cells += 1
        row_start, record_start = row_ends[top], record_ends[top]
        rows, left = row_ends[top + 1] - row_start, record_ends[top + 1] - record_start
        here[:] = all_corners[top]
        sure, bound, depth = all_linked[top], bounds[top], depths[top]
        values[:rows] = kept_values[row_start : row_start + rows]
        which_[:rows] = kept_rows[row_start : row_start + rows]
        for at in range(left):
            records_[at] = kept_records[record_start + at]
            group_of[records_[at]] = kept_groups[record_start + at]
            starts_[at + 1] = starts_[at] + kept_sizes[record_start + at]
        looked += rows + 10
        first, second = _edge(here, values, rows)
        for column in range(p):
            between[column] = 0.5 * (here[first, column] + here[second, column])
        for row in range(rows):
            value = 0.0
            for column in range(p):
                value += U[which_[row], column] * between[column]
            middle[row] = value
        for corner in (first, second):
            more, new_left, new_rows = _decide(
                values, corner, middle, (records_, starts_, which_), (left, rows), classes, taken,
                out, whole,
            )  # fmt: skip
            now = sure + more
            linked_here = now
            for at in range(new_left):
                good = True
                for row in range(out[4][at], out[4][at + 1]):
                    total = 0.0
                    for v in range(k):
                        total += out[0][row, v]
                    if total <= 0.0:
                        good = False
                        break
                linked_here += good
            if linked_here > most:
                most = linked_here
                for column in range(p):
                    total = between[column] - here[corner, column]
                    for v in range(k):
                        total += here[v, column]
                    theta[column] = total / k
            new_bound = now + new_left
            if new_bound > best:
                for at in range(new_left):
                    own[at] = group_of[out[3][at]]
                new_bound = now + most_together(out, new_left, own, best - now)
                looked += (new_left * new_left) // 16
            new_bound = min(new_bound, bound)
            if new_bound <= best:
                continue
            row_start, record_start = row_ends[top], record_ends[top]
            while row_start + new_rows > kept_rows.shape[0]:
                kept_values, kept_rows = doubled(kept_values), doubled(kept_rows)
            while record_start + new_left > kept_records.shape[0]:
                kept_records, kept_sizes = doubled(kept_records), doubled(kept_sizes)
                kept_groups = doubled(kept_groups)
            if top + 1 >= depths.shape[0]:
                all_corners, depths = doubled(all_corners), doubled(depths)
                all_linked, bounds = doubled(all_linked), doubled(bounds)
                row_ends, record_ends = doubled(row_ends), doubled(record_ends)
            for row in range(new_rows):
                kept_rows[row_start + row] = out[2][row]
                for v in range(k):
                    kept_values[row_start + row, v] = out[0][row, v]
            for at in range(new_left):
                kept_records[record_start + at] = out[3][at]
                kept_groups[record_start + at] = own[at]
                kept_sizes[record_start + at] = out[4][at + 1] - out[4][at]
            all_corners[top] = here
            all_corners[top, corner] = between
            all_linked[top], bounds[top], depths[top] = now, new_bound, depth + 1
            row_ends[top + 1], record_ends[top + 1] = row_start + new_rows, record_start + new_left
            top += 1
    left_over = (
        all_corners[:top].copy(), depths[:top].copy(), all_linked[:top].copy(),
        bounds[:top].copy(), row_ends[: top + 1].copy(), record_ends[: top + 1].copy(),
        kept_rows[: row_ends[top]].copy(), kept_records[: record_ends[top]].copy(),
        kept_groups[: record_ends[top]].copy(), kept_sizes[: record_ends[top]].copy(),
    )  # fmt: skip
    return most, theta, cells, left_over
