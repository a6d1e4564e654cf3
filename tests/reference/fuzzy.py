"""Fuzzy clustering as the papers write it: whole matrices, one line a formula."""

from __future__ import annotations

import numpy as np


def squares(X, V):
    return ((X[:, None, :] - V[None, :, :]) ** 2).sum(axis=2)


def degrees(X, V, m):
    """Proposition 1; a record on a centre belongs to it (to several, in equal shares)."""
    D = squares(X, V)
    if m == 1:
        return (np.arange(len(V)) == D.argmin(axis=1)[:, None]).astype(float)
    on = D == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        u = 1 / ((D[:, :, None] / D[:, None, :]) ** (1 / (m - 1))).sum(axis=2)
    hit = on.any(axis=1)
    u[hit] = on[hit] / on[hit].sum(axis=1, keepdims=True)
    return u


def entropy_degrees(X, V, rate):
    D = squares(X, V)
    u = np.exp(-rate * (D - D.min(axis=1, keepdims=True)))
    return u / u.sum(axis=1, keepdims=True)


def objective(X, V, u, m, weights):
    return float((weights[:, None] * u**m * squares(X, V)).sum())


def entropy_objective(X, V, u, rate, weights):
    logs = np.where(u > 0, u * np.log(np.where(u > 0, u, 1.0)), 0.0)
    return float((weights[:, None] * (u * squares(X, V) + logs / rate)).sum())


def means(X, powers, weights):
    shares = weights[:, None] * powers
    return shares.T @ X / shares.sum(axis=0)[:, None]


def constrained_means(X, powers, weights, alpha, right):
    """Equation 5 of Torra (2020), one constraint, centre by centre and column by column."""
    shares = weights[:, None] * powers
    V = np.empty((powers.shape[1], X.shape[1]))
    for i in range(len(V)):
        own, total = shares[:, i], shares[:, i].sum()
        beyond = (own * (X @ alpha - right)).sum() / (alpha @ alpha)
        for s in range(X.shape[1]):
            V[i, s] = ((own * X[:, s]).sum() - alpha[s] * beyond) / total
    return V


def projected(V, A, b, G, h):
    """The nearest points with A v = b and G v <= h: every set of active inequalities is tried."""
    A, b, G, h = (np.asarray(part, dtype=float) for part in (A, b, G, h))
    out = np.empty_like(V)
    for i, v in enumerate(V):
        best = np.inf
        for number in range(2 ** len(h)):
            active = [j for j in range(len(h)) if number >> j & 1]
            rows, right = np.vstack([A, G[active]]), np.concatenate([b, h[active]])
            near = v - np.linalg.pinv(rows) @ (rows @ v - right) if len(rows) else v
            fine = (G @ near <= h + 1e-9).all() and np.abs(rows @ near - right).max(
                initial=0
            ) < 1e-6
            if fine and ((near - v) ** 2).sum() < best:
                best, out[i] = ((near - v) ** 2).sum(), near
    return out
