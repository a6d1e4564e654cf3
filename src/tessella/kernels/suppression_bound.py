"""A lower bound of local suppression: prices of records, and what classes would pay for them.

Let y_p be any price for each record of combination p. A class r may take records that fit it, at
least k or none, pays w_pr for each and is paid y_p. With h_r the most that it could gain,

    sum_p n_p y_p - sum_r max(h_r, 0)

is at most the cost of every assignment: there, each record is in one class, and classes gain no
more than h_r. It is the Lagrangian dual of facility location, whose best prices give the bound of
the linear programme. A class takes all records of which it gains; where these are fewer than k,
the next best, until it has k.

Records of combinations that only lend have the price 0: there are `floor` in each class that cost
least, and as many as needed.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers, SmallIntegers
from . import kernel


@kernel
def class_gains(
    prices: Floats, records: Integers, lightest: Floats, k: int, class_start: Integers,
    member: SmallIntegers, member_cost: Floats, floor: Floats, taken: Integers, gains: Floats,
) -> float:  # fmt: skip
    """Return the sum of all gains, and count in `taken` the records that classes take.

    Where `gains` has a place for each class, its gain or loss is written there.
    """
    total = 0.0
    all_classes = len(gains) > 0
    taken[:] = 0
    values, number, who = (
        np.empty(k + 1),
        np.empty(k + 1, dtype=np.int64),
        np.empty(k + 1, np.int64),
    )
    for r in range(len(class_start) - 1):
        low, high = class_start[r], class_start[r + 1]
        gain, count = 0.0, 0
        for a in range(low, high):
            p = member[a]
            value = prices[p] - lightest[p] * member_cost[a]
            if value > 0.0:
                gain += records[p] * value
                count += records[p]
        if gain <= 0.0 and not all_classes:
            continue
        n = 0
        lacking = k - count
        if lacking > 0:
            # The best of the others, in falling order; no more than are lacking are needed.
            for a in range(low, high):
                p = member[a]
                value = prices[p] - lightest[p] * member_cost[a]
                if value > 0.0 or value <= -floor[r] or (n >= lacking and value <= values[n - 1]):
                    continue
                b = min(n, lacking - 1) if n >= lacking else n
                while b > 0 and values[b - 1] < value:
                    values[b], number[b], who[b] = values[b - 1], number[b - 1], who[b - 1]
                    b -= 1
                values[b], number[b], who[b] = value, records[p], p
                n = min(n + 1, lacking)
            for b in range(n):
                number[b] = min(number[b], lacking)
                gain += number[b] * values[b]
                lacking -= number[b]
            if lacking > 0:
                gain -= lacking * floor[r]  # infinite where nobody lends
        if all_classes:
            gains[r] = gain
        if gain <= 0.0:
            continue
        total += gain
        for a in range(low, high):
            p = member[a]
            if prices[p] - lightest[p] * member_cost[a] > 0.0:
                taken[p] += records[p]
        for b in range(n):
            taken[who[b]] += number[b]
    return total


@kernel
def raise_prices(
    prices: Floats, most: Floats, records: Integers, lightest: Floats, k: int, best_known: float,
    rounds: int, class_start: Integers, member: SmallIntegers, member_cost: Floats, floor: Floats,
    kept: Floats,
) -> float:  # fmt: skip
    """Improve prices by subgradients, in place; return the best bound, its prices in `kept`.

    Steps are Polyak's, towards what is known to be possible, along a direction that remembers the
    last ones (Camerini, Fratta and Maffioli 1975); they are halved after 20 rounds without gain.
    """
    taken = np.zeros(len(prices), dtype=np.int64)
    direction, nothing = np.zeros(len(prices)), np.empty(0)
    best, size, idle = -np.inf, 1.0, 0
    for _ in range(rounds):
        value = -class_gains(
            prices,
            records,
            lightest,
            k,
            class_start,
            member,
            member_cost,
            floor,
            taken,
            nothing,
        )
        for p in range(len(prices)):
            value += records[p] * prices[p]
        if value > best + 1e-7 * abs(best_known):
            best, idle = value, 0
            kept[:] = prices
        else:
            idle += 1
            if idle == 20:
                size, idle = size / 2, 0
                prices[:] = kept
                direction[:] = 0.0
                continue
        square = 0.0
        for p in range(len(prices)):
            direction[p] = 0.6 * direction[p] + (records[p] - taken[p])
            square += direction[p] ** 2
        if square == 0.0 or best >= best_known - 1e-9:
            break
        step = size * (best_known - value) / square
        for p in range(len(prices)):
            prices[p] = min(prices[p] + step * direction[p], most[p])
    return best
