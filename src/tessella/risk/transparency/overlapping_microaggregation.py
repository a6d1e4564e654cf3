"""The attack on overlapping microaggregation: the posterior of each original, which is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_array
from scipy.special import entr

from ..._types import Integers
from ...exceptions import AttackError
from ...frame import Pair, Table, View
from ..aligned import paired_column
from .scene import Candidates, number_equal_rows, set_scene

EQUAL = 1e-9  # probabilities that differ by less than this share of themselves are equal


def attack_overlapping_microaggregation(
    original: Any,
    masked: Any,
    *,
    k: int,
    memberships: Any = None,
    centres: Any = None,
    labels: Integers | None = None,
    **common: Any,
) -> Candidates:
    r"""Find how probable each original is for each record of a table of drawn means.

    Notes
    -----
    He has repeated all but the draw: he knows that original i is released at centre j with
    probability :math:`u_{ij}`, and that every draw releases j exactly :math:`s_j` times. So all
    that the table tells of a record at j is j, and i is its source with probability
    :math:`u_{ij} / s_j`. Centres that agree in the columns that he knows are one to him. Columns
    that he knows and that were released as they are leave fewer originals, whose probabilities are
    then divided by their sum.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.masking import OverlappingMicroaggregation
    >>> from tessella.risk import attack
    >>> original = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])
    >>> masker = OverlappingMicroaggregation(k=2, order="kept", random_state=0)
    >>> found = attack(original, masker.fit_transform(original), masker)
    >>> found.belief
    array([0.5, 0.5, 0.5, 0.5, 0.5])
    """
    if memberships is None or centres is None or labels is None:
        raise AttackError(
            "The memberships of overlapping microaggregation are not known. Give the masker that "
            "made this table, as it was fitted: attack(original, masked, masker). A saved masker "
            "does not have them."
        )
    scene = set_scene(original, masked, categories=True, **common)
    sides, own = scene.sides, csc_array(memberships)
    first, sizes, count = own.indices[own.indptr[:-1]], np.bincount(labels), own.shape[1]
    # Centres are read like the masked table, so that categories have the same numbers.
    before: Any = sides.pair
    pair = Pair(before.original, View(Table.read(centres).take(labels), before.schema))
    read = [paired_column(pair, sides.columns[j])[1] for j in scene.masked]
    at = np.unique(labels, return_index=True)[1]
    numbers = number_equal_rows(
        [
            np.concatenate([scene.strata[first], scene.strata[sides.truth]]),
            np.vstack([np.column_stack(read)[at], sides.A[:, scene.masked]]),
        ]
    )
    classes, class_of = np.unique(numbers[:count], return_inverse=True)
    place = np.minimum(np.searchsorted(classes, numbers[count:]), len(classes) - 1)
    seen = np.where(classes[place] == numbers[count:], place, -1)[scene.rows]
    ones = (np.ones(count), (np.arange(count), class_of))
    merged = csc_array(own @ csc_array(ones, shape=(count, len(classes))))
    merged.data /= np.repeat(np.bincount(class_of, sizes), np.diff(merged.indptr))
    lengths = np.where(seen >= 0, np.diff(merged.indptr)[seen], 0)
    row = np.repeat(np.arange(len(seen)), lengths)
    at = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at += np.repeat(merged.indptr[:-1][seen], lengths)
    agrees = scene.like[merged.indices[at]] == scene.likes[scene.rows][row]
    shares, candidate = np.where(agrees, merged.data[at], 0.0), merged.indices[at]
    if not agrees.all():
        totals = np.bincount(row, shares, minlength=len(seen))
        shares /= np.where(totals > 0, totals, 1.0)[row]
    largest = np.zeros(len(seen))
    np.maximum.at(largest, row, shares)
    equal = np.bincount(row, shares >= largest[row] * (1 - EQUAL), minlength=len(seen))
    true = candidate == sides.truth[scene.rows][row]
    belief = np.bincount(row, np.where(true, shares, 0.0), minlength=len(seen))
    right = (belief > 0) & (belief >= largest * (1 - EQUAL))
    found = Candidates.of_scene(
        scene,
        attack=f"most probable original, overlapping microaggregation with k={k}",
        notes=["he has repeated everything but the draw, and knows all memberships"],
        size=np.bincount(row, shares > 0, minlength=len(seen)).astype(np.int64),
        present=belief > 0,
        chance=np.where(right, 1.0 / np.maximum(equal, 1.0), 0.0),
        belief=belief,
        largest=largest,
        effective=np.exp(np.bincount(row, entr(shares), minlength=len(seen))) * (lengths > 0),
    )
    return found.checked(scene.strict, f"overlapping microaggregation with k={k}")
