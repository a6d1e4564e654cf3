"""Local suppression by wildcard: who is left as it is, because enough others were emptied.

A combination p of n_p records matches fewer than k; it lacks `lacking[p]`. All of its records may
be emptied, each in one of the classes that are an *option* for it, or some, or none. A record that
is emptied in class c matches every other combination of c. What is left of p needs as many such
records of others, in all of its classes together, as it lacks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._types import Floats, Integers, SmallIntegers, Truths
from . import kernel
from .random_moves import draw_below, start_stream


class Cover(NamedTuple):
    """Which combination is in which class, by combination and by class."""

    start: Integers
    of: SmallIntegers  # its options first
    option: Truths
    n_options: Integers
    class_start: Integers
    member: SmallIntegers
    member_option: Truths
    lacking: Integers
    records: Integers
    need: Floats  # what a record pays in an option


@kernel
def empties(p: int, c: int, number: int, cover: Cover, emptied: Any, at: Any, helped: Any) -> None:
    """Empty all records of a combination in a class (number > 0), or give them back."""
    emptied[p] += number
    at[p] = c if number > 0 else -1
    for a in range(cover.class_start[c], cover.class_start[c + 1]):
        q = cover.member[a]
        if q != p:
            helped[q] += number


@kernel
def can_return(p: int, cover: Cover, emptied: Any, at: Any, helped: Any) -> bool:
    """Tell whether a combination may be left as it is, and nobody is short for that."""
    if helped[p] < cover.lacking[p]:
        return False
    c, n = at[p], cover.records[p]
    for a in range(cover.class_start[c], cover.class_start[c + 1]):
        q = cover.member[a]
        if q != p and emptied[q] == 0 and helped[q] - n < cover.lacking[q]:
            return False
    return True


@kernel
def return_all(
    order: SmallIntegers, cover: Cover, emptied: Integers, at: SmallIntegers, helped: Integers
) -> None:
    """Give back, in an order, what is emptied needlessly."""
    for p in order:
        if emptied[p] > 0 and can_return(p, cover, emptied, at, helped):
            empties(p, at[p], -cover.records[p], cover, emptied, at, helped)


@kernel
def improve(
    attempts: int, seed: int, cover: Cover, emptied: Integers, at: SmallIntegers, helped: Integers
) -> None:
    """Empty one combination, or another class of it, and give back what that makes needless.

    An attempt that is dearer in the end is undone.
    """
    stream = start_stream(seed, 0)
    log_p, log_c = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int64)
    m = len(emptied)
    for _ in range(attempts):
        p = draw_below(stream, m)
        c, n = cover.of[cover.start[p] + draw_below(stream, cover.n_options[p])], 0
        change = 0.0
        old = at[p]
        if old == c:
            continue
        if old >= 0:  # another class: those of the old one may be short then
            empties(p, old, -cover.records[p], cover, emptied, at, helped)
            empties(p, c, cover.records[p], cover, emptied, at, helped)
            short = False
            for b in range(cover.class_start[old], cover.class_start[old + 1]):
                q = cover.member[b]
                if emptied[q] == 0 and helped[q] < cover.lacking[q]:
                    short = True
                    break
            if short:
                empties(p, c, -cover.records[p], cover, emptied, at, helped)
                empties(p, old, cover.records[p], cover, emptied, at, helped)
                continue
        else:
            empties(p, c, cover.records[p], cover, emptied, at, helped)
            change += cover.records[p] * cover.need[p]
        width = cover.class_start[c + 1] - cover.class_start[c]
        first = draw_below(stream, width)
        for b in range(min(width, 200)):
            q = cover.member[cover.class_start[c] + (first + b) % width]
            if n == 64 or q == p or emptied[q] == 0:
                continue
            if can_return(q, cover, emptied, at, helped):
                log_p[n], log_c[n] = q, at[q]
                n += 1
                change -= cover.records[q] * cover.need[q]
                empties(q, at[q], -cover.records[q], cover, emptied, at, helped)
        if change > 1e-9:
            for b in range(n - 1, -1, -1):
                q = log_p[b]
                empties(q, log_c[b], cover.records[q], cover, emptied, at, helped)
            empties(p, c, -cover.records[p], cover, emptied, at, helped)


@kernel
def raise_cover_prices(order: SmallIntegers, cover: Cover, prices: Floats, sums: Floats) -> float:
    """Raise prices as far as no option costs less than what it is paid; return the bound.

    An option (q, c) helps each other member of c once, and q itself as if it were lacking / n_q
    times: its cost is at least prices of others in c + lacking_q / n_q price_q. `sums` are those of
    the prices in each class, which are kept.
    """
    for p in order:
        own = cover.lacking[p] / cover.records[p]
        room = 1e300
        for a in range(cover.start[p], cover.start[p + 1]):
            c = cover.of[a]
            for b in range(cover.class_start[c], cover.class_start[c + 1]):
                if not cover.member_option[b]:
                    continue
                q = cover.member[b]
                share = cover.lacking[q] / cover.records[q]
                slack = cover.need[q] - (sums[c] - prices[q]) - share * prices[q]
                room = min(room, slack / own if q == p else slack)
        if room > 0.0 and room < 1e300:
            prices[p] += room
            for a in range(cover.start[p], cover.start[p + 1]):
                sums[cover.of[a]] += room
    total = 0.0
    for p in range(len(prices)):
        total += cover.lacking[p] * prices[p]
    return total
