"""l-diversity and t-closeness of one group, counted with fractions, value by value.

Missing values (None) are left out everywhere; a group without a known value has l = 0 and t = 1.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction


def known(values):
    return [value for value in values if value is not None and value == value]


def distinct(values):
    return len(set(known(values)))


def entropy(values):
    """exp of the entropy: 0 without values."""
    counts = Counter(known(values))
    n = sum(counts.values())
    return math.exp(-sum(c / n * math.log(c / n) for c in counts.values())) if n else 0.0


def recursive(values, c):
    """The largest l with r_1 < c (r_l + ... + r_m)."""
    r = sorted(Counter(known(values)).values(), reverse=True)
    return max((x for x in range(1, len(r) + 1) if r[0] < c * sum(r[x - 1 :])), default=0)


def shares(values):
    values = known(values)
    return {value: Fraction(n, len(values)) for value, n in Counter(values).items()}


def equal(values, table):
    if not known(values):
        return Fraction(1)
    p, q = shares(values), shares(table)
    return sum(abs(p.get(v, 0) - q.get(v, 0)) for v in {*p, *q}) / 2


def ordered(values, table):
    if not known(values):
        return Fraction(1)
    p, q = shares(values), shares(table)
    order = sorted(q)
    if len(order) == 1:
        return Fraction(0)
    ahead, total = Fraction(0), Fraction(0)
    for value in order:
        ahead += p.get(value, 0) - q[value]
        total += abs(ahead)
    return total / (len(order) - 1)


def measure(kind, values, table, c=0.0):
    """Measure a group; `table` are the values of all records."""
    if kind == "recursive":
        return recursive(values, c)
    if kind in ("equal", "ordered"):
        return {"equal": equal, "ordered": ordered}[kind](values, table)
    return {"distinct": distinct, "entropy": entropy}[kind](values)


def satisfies(asked, values, table):
    """Return whether a group has what is asked for: (kind, limit, c)."""
    kind, limit, c = asked
    found = measure(kind, values, table, c)
    if kind in ("equal", "ordered"):
        return found <= limit + 1e-9
    return found >= limit * (1 - 1e-9)
