"""Local suppression: the fewest cells to empty until every released combination of keys has k.

*The problem.* Records i have q keys each. Choose the cells to empty, at the cost of their keys'
importance, so that every released combination is that of at least k respondents. With
`missing="category"` an empty cell is a value of its own: what is counted is what is seen.

It is NP-hard (Meyerson and Williams 2004). Here a search finds a cheap release, an integer
programme improves it where there are few combinations, and a bound tells how much cheaper any
other could be: `gap` = (cost - bound) / cost. Gap 0 is a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations as choose

import numpy as np

from .._types import Floats, Integers, Truths
from ..exceptions import RefusedError
from . import category, program
from .classes import list_classes
from .combinations import Combinations

ROUNDS = 20  # of putting right what units share, and of weights that rise where a limit is passed
RISE = 1.5  # what a key's importance is multiplied by in the search where its limit is passed


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What is to be done.

    Attributes
    ----------
    codes : array of shape (n, q)
        The keys, 0 where a cell is empty already.
    k : int
        How many respondents each released combination must have.
    importance : array of shape (q,)
        What it costs to empty a cell of each key.
    never : array of shape (q,), bool
        Keys of which no cell may be emptied.
    limit : array of shape (q,)
        How many cells of each key may be emptied; infinite for no limit.
    units, strata : arrays of shape (n,), optional
        Whom k counts, and within what.
    costs : array of shape (n,), optional
        What a cell of each record costs, times importance; 1 by default.
    """

    codes: Integers
    k: int
    importance: Floats
    never: Truths
    limit: Floats
    units: Integers | None = None
    strata: Integers | None = None
    costs: Floats | None = None

    @property
    def whole(self) -> bool:
        """Whether all costs are whole numbers, so that a bound may be rounded up."""
        return self.costs is None and bool((self.importance == np.rint(self.importance)).all())

    def cost(self, released: Integers) -> float:
        """Return what was emptied, weighted."""
        emptied = (released == 0) & (self.codes != 0)
        by_record = emptied @ self.importance
        return float(by_record.sum() if self.costs is None else by_record @ self.costs)

    def count(self, released: Integers) -> Combinations:
        """Count combinations of released codes."""
        return Combinations.count(released, strata=self.strata, units=self.units, costs=self.costs)

    def over_limit(self, released: Integers) -> Truths:
        """Return of which keys too many cells are empty."""
        emptied = ((released == 0) & (self.codes != 0)).sum(axis=0)
        return np.asarray(emptied > self.limit)


@dataclass(frozen=True, kw_only=True, eq=False)
class Suppression:
    """Which cells are emptied, what that costs, and how little it could cost at least.

    Attributes
    ----------
    codes : array of shape (n, q)
        The released keys, 0 where a cell is empty.
    cost, bound : float
        The weighted number of emptied cells, and a lower bound of it.
    """

    codes: Integers
    cost: float
    bound: float

    @property
    def gap(self) -> float:
        """(cost - bound) / cost, 0 where nothing was emptied."""
        return (self.cost - self.bound) / self.cost if self.cost > 0 else 0.0

    @property
    def proved_optimal(self) -> bool:
        """Whether no release that keeps the promise costs less."""
        return self.cost - self.bound <= 1e-9 * max(1.0, self.cost)


def suppress_keys(task: Task, *, seed: int = 0) -> Suppression:
    """Empty cells until every released combination has k respondents, at little cost.

    Raises
    ------
    RefusedError
        If no choice of cells reaches k, or none within the limits was found.
    """
    found = task.count(task.codes)
    refuse_impossible(task)
    if (found.respondents >= task.k).all():
        return Suppression(codes=task.codes, cost=0.0, bound=0.0)
    released, bound = _search(task, found, task.importance, seed)
    solution = _programme(task, found, task.cost(released))
    if solution is not None:
        if not solution.feasible:
            raise no_release(task)
        bound = max(bound, solution.bound)
        if solution.amounts is not None:
            dealt = program.deal(found, solution, task.codes)
            if task.over_limit(released).any() or task.cost(dealt) < task.cost(released):
                released = dealt
    weights = task.importance.copy()
    for turn in range(ROUNDS):
        over = task.over_limit(released)
        if not over.any():
            break
        weights = np.where(over, weights * RISE, weights)
        released, _ = _search(task, found, weights, seed + turn + 1)
    if task.over_limit(released).any():
        raise no_release(task)
    return conclude(task, released, bound)


def conclude(task: Task, released: Integers, bound: float) -> Suppression:
    """Round a bound up where costs are whole, and keep it below what was reached."""
    cost = task.cost(released)
    if task.whole:
        bound = float(np.ceil(bound - 1e-6))
    return Suppression(codes=released, cost=cost, bound=min(bound, cost))


def _search(
    task: Task, found: Combinations, importance: Floats, seed: int
) -> tuple[Integers, float]:
    """Search for a release; where units are counted, in rounds until each class has k of them."""
    codes, bound, k = task.codes, None, task.k
    for turn in range(ROUNDS):
        classes = list_classes(found, k, importance, task.never, task.units)
        now, prices = category.assign(found, classes, k, float(importance.min()), seed + turn)
        bound = prices.bound if bound is None else bound
        codes = category.release(found, classes, now, codes, task.units, task.costs, k)
        found = task.count(codes)
        if (found.respondents >= k).all():
            return codes, float(bound)
    few = found.respondents[found.of] < k
    wide = np.where(task.never, codes, 0)  # what is left joins all that may be emptied
    strata = np.zeros(len(codes), dtype=np.int64) if task.strata is None else task.strata
    lost = np.isin(strata, strata[few])
    codes = np.where(lost[:, None], wide, codes)
    return codes, float(bound or 0.0)


def _programme(task: Task, found: Combinations, known: float) -> program.Solution | None:
    """Solve the integer programme, where records are alike but for their keys and there are few."""
    if task.units is not None or task.costs is not None:
        return None
    flows = program.list_flows(found, task.k, task.importance, task.never)
    if flows is None:
        return None
    limited = bool(np.isfinite(task.limit).any())
    # Where the search passes a limit, its cost is no upper bound of what is allowed.
    most = float(task.importance.sum()) * len(task.codes) if limited else known
    return program.solve_programme(found, flows, task.k, task.limit, most)


def refuse_impossible(task: Task) -> None:
    """Refuse where even emptying all that may be emptied does not reach k."""
    wide = np.where(task.never, task.codes, 0)
    least = Combinations.count(wide, strata=task.strata, units=task.units)
    few = int(least.records[least.respondents < task.k].sum())
    if few:
        whom = "records" if task.units is None else "units"
        raise RefusedError(
            f"{few:,} of {len(task.codes):,} records have fewer than {task.k} {whom} alike even "
            "with every cell emptied that may be: the keys in never= and the strata tell them "
            f"apart. Take keys out of never=, give fewer strata, or a k below {task.k}."
        )


def no_release(task: Task) -> RefusedError:
    """Return the error that limits could not be kept."""
    limited = int(np.isfinite(task.limit).sum())
    return RefusedError(
        f"No release with k={task.k} was found within the limits of {limited} keys. Raise limit=, "
        "lower k, or recode keys with many categories first."
    )


def suppress_subsets(
    task: Task, size: int, *, solve: Callable[..., Suppression] = suppress_keys, seed: int = 0
) -> Suppression:
    """Reach k in every subset of so many keys, in place of all keys together.

    Subsets are brought to k one after the other, in rounds: a cell that is emptied for one takes
    its record out of a class of another. The bound adds up those of subsets without a common key.
    """
    q = task.codes.shape[1]
    sets = [list(s) for s in choose(range(q), size)]
    released, bounds = task.codes, np.zeros(len(sets))
    for turn in range(ROUNDS):
        changed = False
        for at, own in enumerate(sets):
            part = replace(
                task, codes=np.ascontiguousarray(released[:, own]), importance=task.importance[own],
                never=task.never[own], limit=np.full(size, np.inf),
            )  # fmt: skip
            done = solve(part, seed=seed + turn)
            if turn == 0:
                # A bound for the table as it was; once cells are empty, the quick one.
                first = replace(part, codes=np.ascontiguousarray(task.codes[:, own]))
                quick = _needs(first) if solve is suppress_keys else 0.0
                bounds[at] = quick if changed else done.bound
            if done.cost > 0:
                changed = True
                released = released.copy()
                released[:, own] = done.codes
        if not changed:
            break
    else:
        released = np.where(task.never, task.codes, 0)
    if task.over_limit(released).any():
        raise no_release(task)
    return conclude(task, released, _packed(bounds, sets))


def _needs(task: Task) -> float:
    """Return what records pay at least in any class that has k: a quick bound."""
    found = task.count(task.codes)
    classes = list_classes(found, task.k, task.importance, task.never, task.units)
    paid = classes.needs * found.records[classes.moving] * found.lightest[classes.moving]
    return float(paid.sum())


def _packed(bounds: Floats, sets: list[list[int]]) -> float:
    """Add up bounds of subsets that share no key, the largest first."""
    total, used = 0.0, set[int]()
    for at in np.argsort(-bounds, kind="stable"):
        if used.isdisjoint(sets[at]):
            used |= set(sets[at])
            total += float(bounds[at])
    return total
