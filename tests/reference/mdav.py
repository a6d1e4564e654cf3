"""MDAV, V-MDAV and CBFS as their papers tell them: every distance, every time, in plain NumPy.

Rows are taken in ascending order, so the first extreme is the one with the lowest row number.
Squares are added column by column and means are correctly rounded sums, so that equal distances
are equal here if they are equal at all.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def squares(X: Floats, rows: list[int], point: Floats) -> Floats:
    total = np.zeros(len(rows))
    for column in range(X.shape[1]):
        total += (X[rows, column] - point[column]) ** 2
    return total


def mean(X: Floats, weights: Floats, rows: list[int]) -> Floats:
    total = math.fsum(weights[rows])
    return np.array([math.fsum(weights[rows] * X[rows, j]) / total for j in range(X.shape[1])])


def centre(X: Floats, weights: Floats, rows: list[int]) -> Floats:
    """The mean again, of a finished group: exactly its record where all are equal."""
    first = X[min(rows)]
    total = np.zeros(X.shape[1])
    for row in sorted(rows):
        total += weights[row] * (X[row] - first)
    return first + total / sum(weights[row] for row in sorted(rows))


def farthest(X: Floats, rows: list[int], point: Floats) -> int:
    return rows[int(squares(X, rows, point).argmax())]


def nearest(X: Floats, rows: list[int], point: Floats, count: int) -> list[int]:
    order = np.argsort(squares(X, rows, point), kind="stable")
    return [rows[i] for i in order[:count]]


def numbered(groups: list[list[int]], n: int) -> Integers:
    labels = np.full(n, -1)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels


def join_nearest_centre(
    X: Floats, weights: Floats, groups: list[list[int]], left: list[int]
) -> Integers:
    centres = np.array([centre(X, weights, group) for group in groups])
    every = list(range(len(groups)))
    for row in left:
        groups[nearest(centres, every, X[row], 1)[0]].append(row)
    return numbered(groups, len(X))


def mdav(X: Floats, weights: Floats, k: int) -> Integers:
    left, groups = list(range(len(X))), []

    def take(seed: int) -> None:
        others = [row for row in left if row != seed]
        groups.append([seed, *nearest(X, others, X[seed], k - 1)])
        left[:] = [row for row in left if row not in groups[-1]]

    while len(left) >= 3 * k:
        r = farthest(X, left, mean(X, weights, left))
        take(r)
        s = farthest(X, left, X[r])
        take(s)
    while len(left) >= 2 * k:
        take(farthest(X, left, mean(X, weights, left)))
    groups.append(left)
    return numbered(groups, len(X))


def vmdav(X: Floats, weights: Floats, k: int, gamma: float) -> Integers:
    left, groups = list(range(len(X))), []
    centre = mean(X, weights, left)
    while len(left) >= k:
        seed = farthest(X, left, centre)
        left.remove(seed)
        group = [seed, *nearest(X, left, X[seed], k - 1)]
        left = [row for row in left if row not in group]
        while left and len(group) < 2 * k - 1:
            inward = np.min([squares(X, left, X[member]) for member in group], axis=0)
            row = left[int(inward.argmin())]
            others = [other for other in left if other != row]
            outward = math.sqrt(squares(X, others, X[row]).min()) if others else math.inf
            if not math.sqrt(inward.min()) < gamma * outward:
                break
            group.append(row)
            left.remove(row)
        groups.append(group)
    return join_nearest_centre(X, weights, groups, left)


def cbfs(X: Floats, weights: Floats, k: int) -> Integers:
    left, groups = list(range(len(X))), []
    while len(left) >= k:
        group = [farthest(X, left, mean(X, weights, left))]
        left.remove(group[0])
        while len(group) < k:
            group.append(nearest(X, left, mean(X, weights, group), 1)[0])
            left.remove(group[-1])
        groups.append(group)
    return join_nearest_centre(X, weights, groups, left)
