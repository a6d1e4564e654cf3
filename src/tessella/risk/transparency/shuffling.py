"""The attack on shuffled columns: how probable is it that these ranks were drawn for a record?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._parameters import Number, parameters
from ..._types import Floats, Integers, Name
from ...exceptions import AttackError
from ...frame import View
from ...masking.base import rows_of_strata
from ...masking.noise import symmetric_root
from ...masking.shuffling import ScoreModel, key_scores, normal_scores
from ...parallel import each
from .scene import Candidates, Scene, number_equal_rows, set_scene

PAIRS = 2_000_000  # of masked records and originals that are weighed at once: 16 MB
EQUAL = 1e-9  # logarithms that differ by less are equal
FLOOR = 1e-6  # of the largest variance: what is drawn in a direction has at least this one


@parameters(amount=[Number(above=0, most=1)])
def attack_shuffling(
    original: Any, masked: Any, *, amount: float, given: Any = None, **common: Any
) -> Candidates:
    r"""Weigh the originals of a shuffled table by the chance that a release was drawn for them.

    With z and z* the normal scores of the original and of the released numbers, and z = B s + u
    their regression on the keys, which he computes as the masker did, the scores of record j become
    :math:`N(B s_j + \sqrt{1 - a^2} u_j, a^2 \mathrm{cov}(u))`. Candidates of a masked record are
    the originals that agree with it in all that was not masked, and their probabilities are
    proportional to this density at z*. With a = 1 it depends on the keys alone: then he can link
    by what is released as it is, and by nothing else. Keys that he does not know are left out.

    Each record on its own: O(n) for each that is attacked, in blocks of memory.

    References
    ----------
    K. Muralidhar and R. Sarathy (2006). Data shuffling: a new masking approach for numerical data.
    Management Science 52(5).

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.masking import Shuffling
    >>> from tessella.risk import attack
    >>> original = np.random.default_rng(0).normal(size=(100, 3))
    >>> little, all_of_it = Shuffling(0.1, random_state=0), Shuffling(random_state=0)
    >>> round(attack(original, little.fit_transform(original), little).value, 2)
    0.95
    >>> round(attack(original, all_of_it.fit_transform(original), all_of_it).value, 2)
    0.01
    """
    scene = set_scene(original, masked, **common)
    view = View.of(original, common.get("schema"))
    known = [name for name in _names(given, view) if name in scene.sides.columns]
    unknown = [name for name in _names(given, view) if name not in known]
    if scene.strict and scene.complete:
        _refuse_other_values(scene)
    drawn = _draws(scene, view, known, float(amount))
    gaps = [np.isnan(side[:, scene.masked]) for side in (scene.sides.B, scene.sides.A)]
    joint = number_equal_rows([np.concatenate([scene.like, scene.likes]), np.concatenate(gaps)])
    notes = [f"he knows that numbers were shuffled with amount={amount:g}"]
    if known:
        notes.append(f"and given {', '.join(map(str, known))}")
    if unknown:
        notes.append(f"keys that he does not know, and leaves out: {', '.join(map(str, unknown))}")
    seen = _weigh(drawn, joint[: scene.n], joint[scene.n :], scene)
    found = Candidates.of_scene(
        scene, attack="most probable original of shuffled ranks", notes=notes, **seen
    )
    return found.checked(scene.strict, f"shuffling with amount={amount:g}")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Draws:
    """Released scores, and what they are drawn around for each original, in units of the noise."""

    released: Floats  # (m, d)
    centre: Floats  # (n, d)


def _draws(scene: Scene, view: View, known: list[Name], amount: float) -> _Draws:
    """Compute, stratum by stratum, what the masker computed."""
    sides, at = scene.sides, scene.masked
    released, centre = np.zeros((scene.m, len(at))), np.zeros((scene.n, len(at)))
    layer = scene.strata[sides.truth]
    for number, rows in enumerate(rows_of_strata(scene.strata)):
        here = np.flatnonzero(layer == number)
        scores = np.column_stack([normal_scores(sides.B[rows, j]) for j in at])
        if not (~np.isnan(scores)).all(axis=1).any():
            continue  # no complete record: the masker would have refused it
        model = ScoreModel.of(scores, key_scores(view, known, rows))
        got = np.column_stack([normal_scores(sides.A[here, j]) for j in at])
        least = FLOOR * max(float(np.diag(model.cov).max()), np.finfo(float).tiny)
        unit = symmetric_root(model.cov + least * np.eye(len(at)), -0.5) / amount
        around = model.fitted + np.sqrt(1.0 - amount**2) * model.rest
        centre[rows] = np.where(np.isnan(scores), 0.0, around) @ unit
        released[here] = np.where(np.isnan(got), 0.0, got) @ unit
    return _Draws(released=released, centre=centre)


def _weigh(draws: _Draws, own: Integers, seen: Integers, scene: Scene) -> dict[str, Any]:
    """Weigh originals for each attacked record; those of another number are no candidates."""
    order = np.argsort(own, kind="stable")
    numbers = own[order]
    rows, truth = scene.rows, scene.sides.truth[scene.rows]
    low = np.searchsorted(numbers, seen[rows], side="left")
    high = np.searchsorted(numbers, seen[rows], side="right")
    out = np.zeros((len(rows), 5))  # logarithms: largest and sum; entropy, how many equal, own
    pieces = []
    by = np.lexsort((np.arange(len(rows)), low))  # records with the same candidates together
    for mine in np.split(by, np.flatnonzero(np.diff(low[by])) + 1):
        step = max(1, PAIRS // max(int(high[mine[0]] - low[mine[0]]), 1))
        pieces += [mine[first : first + step] for first in range(0, len(mine), step)]

    def weigh(mine: Integers) -> None:
        among = order[low[mine[0]] : high[mine[0]]]
        if len(among) == 0:
            return
        A, B = draws.released[rows[mine]], draws.centre[among]
        logs = A @ B.T
        logs -= 0.5 * (B**2).sum(axis=1)
        # What all candidates of a record have in common does not count: 0.5 |a|^2 is left out.
        most = logs.max(axis=1)
        logs -= most[:, None]
        itself = -0.5 * (draws.centre[truth[mine]] ** 2).sum(axis=1)
        itself += (A * draws.centre[truth[mine]]).sum(axis=1)
        equal = (logs >= -EQUAL).sum(axis=1)
        weights = np.exp(logs)
        total = weights.sum(axis=1)
        logs *= weights
        entropy = np.log(total) - logs.sum(axis=1) / total
        out[mine] = np.column_stack([most, np.log(total), entropy, equal, itself - most])

    each(weigh, pieces)
    _, total, entropy, equal, itself = out.T
    size = high - low
    present = (own[truth] == seen[rows]) & (size > 0)
    right = present & (itself >= -EQUAL * np.maximum(1.0, np.abs(out[:, 0])))
    least = np.finfo(float).tiny  # possible, however improbable
    return {
        "size": size,
        "present": present,
        "chance": np.where(right, 1.0 / np.maximum(equal, 1.0), 0.0),
        "belief": np.where(present, np.maximum(np.exp(np.minimum(itself - total, 0)), least), 0.0),
        "largest": np.where(size > 0, np.exp(-total), 0.0),
        "effective": np.where(size > 0, np.exp(entropy), 0.0),
    }


def _refuse_other_values(scene: Scene) -> None:
    """Refuse columns that are no permutation of the original ones, in each stratum."""
    sides, layer = scene.sides, scene.strata[scene.sides.truth]
    for j in scene.masked:
        before = sides.B[np.lexsort((sides.B[:, j], scene.strata)), j]
        after = sides.A[np.lexsort((sides.A[:, j], layer)), j]
        if count := int((~((before == after) | (np.isnan(before) & np.isnan(after)))).sum()):
            why = "are not those of the original in another order"
            raise AttackError.no_such_values(
                column=sides.columns[j], method="shuffling", count=count, why=why
            )


def _names(given: Any, view: View) -> list[Name]:
    if given is None:
        return []
    return [given] if isinstance(given, str) or view.table.has(given) else list(given)
