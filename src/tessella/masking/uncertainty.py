"""What the holder must know of a draw: how uncertain an intruder is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import Floats, Integers
from ..fuzzy.drawing import Drawing

__all__ = ["Uncertainty"]


BY_RECORD = ("entropy", "naming_chance", "distance_to_k")


@dataclass(frozen=True, kw_only=True, eq=False)
class Uncertainty:
    """What the holder must know of a draw, block by block.

    Attributes
    ----------
    k : int
        What sizes are measured against.
    expected_sizes, realised_sizes : ndarray
        Records at each centre: before the draw, on average; and after it.
    unused : int
        Centres that nobody got.
    entropy : ndarray of shape (n,)
        Bits: how uncertain the centre of each record is. 0 is certain; h bits are like 2^h centres
        at equal chances.
    naming_chance : ndarray of shape (n,)
        The chance that an intruder who knows all original records, the centres and the
        parameters, but not the draw, names the record rightly from its released values.
    distance_to_k : ndarray of shape (n,)
        Probabilistic k-anonymity: the total variation distance from the candidates for a released
        record to the nearest distribution over candidates in which nobody has more than 1/k (a
        mixture of uniform choices among k records), on average over where the record may stand.
        0 is as good as k records that cannot be told apart; it is below 1.
    """

    k: int
    expected_sizes: Floats
    realised_sizes: Integers
    unused: int
    entropy: Floats
    naming_chance: Floats
    distance_to_k: Floats

    @property
    def share_protected(self) -> float:
        """The share of records that an intruder names with a chance of at most 1/k."""
        return float((self.naming_chance <= (1 + 1e-9) / self.k).mean())

    @classmethod
    def of(cls, drawings: list[tuple[Integers, Drawing]], labels: Integers, k: int) -> Uncertainty:
        """Put the parts of a block together; each drawing comes with its rows."""
        by_record = {name: np.empty(len(labels)) for name in BY_RECORD}
        for rows, drawing in drawings:
            for name, values in by_record.items():
                values[rows] = getattr(drawing, name)
        sizes = np.bincount(labels, minlength=sum(len(d.centres) for _, d in drawings))
        return cls(
            k=k,
            expected_sizes=np.concatenate([d.expected_sizes for _, d in drawings]),
            realised_sizes=sizes,
            unused=int((sizes == 0).sum()),
            **by_record,
        )

    def __str__(self) -> str:
        sizes = self.realised_sizes[self.realised_sizes > 0]
        return "\n".join(
            [
                f"{len(self.realised_sizes)} centres, {self.unused} of them drawn by nobody",
                f"records at a centre: {sizes.min()} to {sizes.max()}, expected "
                f"{self.expected_sizes.min():.2f} to {self.expected_sizes.max():.2f}",
                f"uncertainty of a record's centre: {self.entropy.mean():.3f} bits on average, "
                f"{self.entropy.min():.3f} at least",
                f"chance that a knowing intruder names a record: {self.naming_chance.mean():.3f} "
                f"on average, {self.naming_chance.max():.3f} at most; at most 1/{self.k} for "
                f"{self.share_protected:.1%} of the records",
                f"distance to probabilistic {self.k}-anonymity: {self.distance_to_k.mean():.3f} on "
                f"average, {self.distance_to_k.max():.3f} at most",
            ]
        )
