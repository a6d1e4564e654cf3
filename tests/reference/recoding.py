"""Full-domain recoding by enumeration, in plain Python: every choice of levels, every record."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict


def generalised(hierarchy, text, level, missing="missing"):
    """The node of a value on a level; a missing cell stays so, up to the root."""
    if text is None:
        return hierarchy.root if level == hierarchy.n_levels - 1 else missing
    return hierarchy.nodes[hierarchy.table[level, hierarchy.leaves.index(text)]]


def emptied_sets(classes, units, k, allowed):
    """All ways to empty classes: those below k, and further ones until the emptied have k."""
    records = defaultdict(list)
    for row, own in enumerate(classes):
        records[own].append(row)
    below = [c for c, rows in records.items() if len({units[row] for row in rows}) < k]
    others = [c for c in records if c not in below]
    if not below:
        yield set()
        return
    first = {row for c in below for row in records[c]}
    for more in itertools.chain([()], ((c,) for c in others)):
        gone = first | {row for c in more for row in records[c]}
        if len(gone) <= allowed and len({units[row] for row in gone}) >= k:
            yield gone


def enumerate_lattice(rows, hierarchies, *, k, allowed=0, units=None, measure="certainty penalty"):
    """The least loss over all choices of levels, and all choices that have it."""
    units = list(range(len(rows))) if units is None else units
    best, found = math.inf, []
    for levels in itertools.product(*(range(h.n_levels) for h in hierarchies)):
        released = [
            tuple(generalised(h, text, at) for h, text, at in zip(hierarchies, row, levels))
            for row in rows
        ]
        for gone in emptied_sets(released, units, k, allowed):
            loss = LOSSES[measure](rows, released, gone, hierarchies, levels)
            if loss < best - 1e-9:
                best, found = loss, []
            if loss < best + 1e-9:
                found.append(levels)
    return best, found


def certainty_penalty(rows, released, gone, hierarchies, levels):
    total, known = 0.0, 0
    for at, (row, new) in enumerate(zip(rows, released)):
        for hierarchy, old, node in zip(hierarchies, row, new):
            if old is not None:
                known += 1
                penalty = hierarchy.penalty[hierarchy.nodes.index(node)]
                total += 1.0 if at in gone else penalty
    return total / known if known else 0.0


def precision(rows, released, gone, hierarchies, levels):
    total, known = 0.0, 0
    for at, row in enumerate(rows):
        for hierarchy, old, level in zip(hierarchies, row, levels):
            if old is not None:
                known += 1
                total += 1.0 if at in gone else level / (hierarchy.n_levels - 1)
    return total / known if known else 0.0


def entropy(rows, released, gone, hierarchies, levels):
    lost = most = 0.0
    for j in range(len(hierarchies)):
        known = [at for at, row in enumerate(rows) if row[j] is not None]
        before = Counter(rows[at][j] for at in known)
        after = Counter(released[at][j] for at in known)
        for at in known:
            p = before[rows[at][j]] / len(known)
            # A node covers all known cells under it, those of emptied records, too.
            q = 1.0 if at in gone else after[released[at][j]] / len(known)
            lost += math.log2(q / p)
            most += math.log2(1.0 / p)
    return lost / most if most else 0.0


def discernibility(rows, released, gone, hierarchies, levels):
    sizes = Counter(new for at, new in enumerate(released) if at not in gone)
    return (sum(s * s for s in sizes.values()) + len(gone) * len(rows)) / len(rows) ** 2


def average_class_size(rows, released, gone, hierarchies, levels):
    sizes = Counter(new for at, new in enumerate(released) if at not in gone)
    return len(rows) / (len(sizes) + bool(gone))


LOSSES = {
    "certainty penalty": certainty_penalty,
    "precision": precision,
    "entropy": entropy,
    "discernibility": discernibility,
    "average class size": average_class_size,
}
