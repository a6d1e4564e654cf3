"""The attack on swapped places: whoever agrees in all else may come from any other place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...frame import group_ids
from .scene import Candidates, Scene, number_equal_rows, set_scene

EQUAL = 1e-12  # shares that differ by less are equal


def attack_record_swapping(original: Any, masked: Any, **common: Any) -> Candidates:
    r"""Weigh the originals of a table in which some units exchanged their places.

    Only places were changed, so candidates of a masked record are the originals that agree with
    it in everything else that he knows: wherever they live. He knows the share q of records whose
    place is another. Of R places that he can tell apart, an original of the same place is a
    candidate with the weight 1 - q, one of another place with q / (R - 1). Counted in
    O(n log n), all records.

    Where places were masked further, or nothing else is known, all originals are candidates.

    Examples
    --------
    Two of three agree in all but their place, of which two thirds were changed.

    >>> import pandas as pd
    >>> from tessella.risk import attack
    >>> original = pd.DataFrame({"town": ["Reus", "Valls", "Reus"], "age": [31, 31, 40]})
    >>> masked = pd.DataFrame({"town": ["Valls", "Reus", "Reus"], "age": [31, 31, 40]})
    >>> attack(original, masked, "record swapping", columns=["town"]).size
    array([2, 2, 1])
    """
    scene = set_scene(original, masked, categories=True, **common)
    here, there = _places(scene)
    moved = here[scene.sides.truth] != there
    q, n_places = float(moved.mean()), int(max(here.max(), there.max())) + 1
    stays, comes = 1.0 - q, q / max(n_places - 1, 1)
    size, same = _counts(scene, here, there)
    rows = scene.rows
    others = size - same
    total = stays * same + comes * others
    found = size > 0
    safe = np.where(total > 0, total, 1.0)
    shares = np.column_stack([np.full(scene.m, stays), np.full(scene.m, comes)]) / safe[:, None]
    counts = np.column_stack([same, others])
    possible = (counts > 0) & (shares > 0)
    largest = np.where(possible, shares, 0.0).max(axis=1)
    equal = np.where(possible & (shares >= largest[:, None] * (1 - EQUAL)), counts, 0).sum(axis=1)
    logs = np.log(np.where(possible, shares, 1.0))
    entropy = -(np.where(possible, shares, 0.0) * counts * logs).sum(axis=1)
    present = scene.like[scene.sides.truth] == scene.likes
    belief = np.where(present, np.where(moved, shares[:, 1], shares[:, 0]), 0.0)
    right = present & (belief >= largest * (1 - EQUAL)) & (belief > 0)
    result = Candidates.of_scene(
        scene,
        attack="originals that agree in all but their place, the most probable place first",
        notes=[f"he knows the share of records with another place: {100 * q:.3g} %"],
        size=size[rows],
        present=present[rows],
        chance=np.where(right, 1.0 / np.maximum(equal, 1), 0.0)[rows],
        belief=belief[rows],
        largest=np.where(found, largest, 0.0)[rows],
        effective=np.where(found, np.exp(entropy), 0.0)[rows],
    )
    return result.checked(scene.strict, "record swapping of these columns")


def _places(scene: Scene) -> tuple[Any, Any]:
    """Number the places of originals and of masked records, in the columns that he knows."""
    sides, at = scene.sides, scene.masked
    ids = number_equal_rows([np.concatenate([sides.B[:, at], sides.A[:, at]])])
    return ids[: scene.n], ids[scene.n :]


def _counts(scene: Scene, here: Any, there: Any) -> tuple[Any, Any]:
    """Count, for each masked record, the candidates, and those of them that have its place."""
    agreeing = np.bincount(scene.like, minlength=int(scene.likes.max(initial=0)) + 1)
    size = np.where(scene.likes >= 0, agreeing[scene.likes], 0)
    joint = group_ids([np.append(scene.like, scene.likes), np.append(here, there)])
    counts = np.bincount(joint[: scene.n], minlength=int(joint.max()) + 1)
    return size, np.where(scene.likes >= 0, counts[joint[scene.n :]], 0)
