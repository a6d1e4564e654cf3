"""The attacks that are tried on every candidate: a registry that grows with `tessella.risk`.

An attack takes a `Case` and gives an `Estimate`. It says which cases it fits; what it does not fit
is not tried, and the point says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import BadOptionError, UnknownOptionError
from ..frame import Table
from ..risk.estimate import Estimate
from .candidate import Candidate
from .task import Masked, Task

__all__ = ["ATTACKS", "Attack", "Case", "find_attacks"]

Name = Hashable
Floats = NDArray[np.float64]

WINDOW = 0.01  # interval disclosure: ranks either way, as a share of the records
SAMPLE = 10_000  # records that are attacked in a larger table: shares are known to one point
RECORDS = {"quick": 300, "standard": 2000}  # that a distance is learned from


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """What an intruder is given.

    Attributes
    ----------
    original, masked : tables of the same kind
        The two files; record i of one belongs to record i of the other.
    task : Task
        Which columns were masked.
    candidate : Candidate
        Method and parameters, for an intruder who knows them.
    made : Masked
        The masker or release behind the table, for attacks that need what it published.
    effort : {"quick", "standard"}
        How hard to try.
    seed : int
        Of anything random.
    """

    original: Any
    masked: Any
    task: Task
    candidate: Candidate
    made: Masked
    effort: str
    seed: int

    @property
    def sample(self) -> int | None:
        """How many records to attack: all, or as many as tell the share to a point."""
        return SAMPLE if self.task.n > SAMPLE else None

    @property
    def plain(self) -> bool:
        """Whether there are only numbers, and all of them known."""
        return not self.task.categories and not self.task.lacks


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One way to attack.

    Attributes
    ----------
    name : str
        As `attacks=` names it. A store finds results by it: an attack that was changed needs
        another name.
    says : str
        What the intruder does, in few words.
    run : callable
        From a `Case` to an `Estimate`.
    fits : callable
        Whether a case can be attacked so.
    dear : bool
        Takes long: tried after the others, and not at all where they find everybody.
    """

    name: str
    says: str
    run: Callable[[Case], Estimate]
    fits: Callable[[Case], bool] = lambda case: True  # noqa: ARG005
    dear: bool = False


def _link(distance: str) -> Callable[[Case], Estimate]:
    def run(case: Case) -> Estimate:
        from ..risk import link

        found: Estimate = link(
            case.original,
            case.masked,
            distance=distance,
            known=list(case.task.masked),
            sample=case.sample,
            random_state=case.seed,
        )
        return found

    return run


def _learned(case: Case) -> Estimate:
    from ..risk import learn

    found: Estimate = learn(
        case.original, case.masked, known=list(case.task.masked), effort=1, held_out=False,
        max_records=RECORDS[case.effort], random_state=case.seed,
    )  # fmt: skip
    return found


def _knowing(case: Case) -> Estimate:
    from ..risk import attack

    found: Estimate = attack(
        case.original, case.masked, case.made.masker, known=list(case.task.numbers),
        effort=case.effort, sample=case.sample, random_state=case.seed,
    )  # fmt: skip
    return found


def _is_known(case: Case) -> bool:
    """Say whether there is an attack on this masker, and nothing was moved after it."""
    from ..risk.transparency.dispatch import METHODS

    return case.task.rules is None and type(case.made.masker) in METHODS


def _interval(case: Case) -> Estimate:
    r"""Count the numbers that lie within 1 % of the ranks around the released number.

    Notes
    -----
    With F the original's distribution function, a number x is found by its released y if the
    share of originals strictly between x and y is at most 1 %. Guessing a number of the column
    reaches about 2 %. `tessella.risk.interval_disclosure` counts ranks in the released table, where
    an interval around a value that many share is wide: guessing would reach much there, and a
    coarser table would seem to tell more. Ranks of the original weigh all candidates alike.
    """
    after = Table.read(case.masked).numeric(case.task.numbers)
    after_values = np.where(after.missing, np.nan, after.values)
    found = known = guessed = 0.0
    for j in range(len(case.task.numbers)):
        x, y = case.task.values[:, j], after_values[:, j]
        both = ~(np.isnan(x) | np.isnan(y))
        x, y = x[both], y[both]
        if not len(x):
            continue
        order = np.sort(x)
        found += float(_near(order, x, y).sum())
        guessed += len(x) * min(1.0, 2 * WINDOW + 1 / len(np.unique(x)))
        known += len(x)
    estimate: Estimate = Estimate.of(
        found, max(int(known), 1), baseline=guessed / max(known, 1.0),
        attack=f"interval of {WINDOW:.0%} of the ranks around the released number",
        assumptions=("the intruder knows which released record is whose",), exact=True,
    )  # fmt: skip
    return estimate


def _near(order: Floats, x: Floats, y: Floats) -> NDArray[np.bool_]:
    """Say whether at most WINDOW n originals lie strictly between x and y."""
    low, high = np.minimum(x, y), np.maximum(x, y)
    between = np.searchsorted(order, high, "left") - np.searchsorted(order, low, "right")
    near: NDArray[np.bool_] = between <= WINDOW * len(order)
    return near


# In the order in which ties for the worst are named.
ATTACKS: dict[str, Attack] = {
    attack.name: attack
    for attack in (
        Attack(
            name="euclidean",
            says="links to the nearest record, Euclidean distance",
            run=_link("euclidean"),
            fits=lambda case: case.plain,
        ),
        Attack(
            name="mahalanobis",
            says="links to the nearest record, Mahalanobis distance",
            run=_link("mahalanobis"),
            fits=lambda case: case.plain and len(case.task.numbers) > 1,
        ),
        Attack(
            name="learned",
            says="links by the weighted distance that links most records",
            run=_learned,
            fits=lambda case: case.plain and len(case.task.numbers) > 1,
            dear=True,
        ),
        Attack(
            name="knowing",
            says="knows the method and its parameters, and works out who it can be",
            run=_knowing,
            fits=_is_known,
        ),
        Attack(
            name="gower",
            says="links to the nearest record, Gower's distance",
            run=_link("gower"),
            fits=lambda case: not case.plain,
        ),
        Attack(
            name="interval",
            says="takes the released number for the original, within 1 % of the ranks",
            run=_interval,
            fits=lambda case: bool(case.task.numbers),
        ),
    )
}


def find_attacks(given: Iterable[Any] | None) -> tuple[Attack, ...]:
    """Return attacks by name, or as they are; all of the registry where none are given."""
    if given is None:
        return tuple(ATTACKS.values())
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadOptionError("attacks", given, "a list of names or of tessella.explore.Attack")
    found = []
    for one in given:
        if isinstance(one, Attack):
            found.append(one)
        elif isinstance(one, str) and one in ATTACKS:
            found.append(ATTACKS[one])
        else:
            raise UnknownOptionError("attack", one, ATTACKS)
    names = [attack.name for attack in found]
    if not names or len(set(names)) < len(names):
        raise BadOptionError("attacks", names, "at least one attack, and each name once")
    return tuple(found)
