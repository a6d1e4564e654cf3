"""What an attack that knows the method finds: the originals that a masked record can come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..._types import Floats, Integers, Truths
from ...exceptions import AttackError
from ..estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Candidates"]


SURE = 0.99  # a candidate that is more probable than this is the only one


@dataclass(frozen=True, kw_only=True, repr=False)
class Candidates(Estimate):
    """How many originals each masked record can come from, and how often the intruder is right.

    He names the most probable original. Where t are equally probable he is right with chance 1/t,
    and `value` is the mean of these chances. Besides the fields of `Estimate`:

    Parameters
    ----------
    attacked : array of shape (n,)
        The rows of the masked table that were attacked.
    truth : array of shape (n,)
        The row of the original that each comes from.
    size : array of shape (n,)
        How many originals each can come from.
    present : array of shape (n,)
        Whether the truth is among them.
    chance : array of shape (n,)
        The chance that he names the right one.
    belief : array of shape (n,)
        The probability that he gives to the truth.
    largest : array of shape (n,)
        The probability of the one that he names.
    effective : array of shape (n,)
        The effective number of candidates, e to the entropy of the probabilities: equal to `size`
        where all candidates are equally probable.
    """

    attacked: Integers = field(repr=False)
    truth: Integers = field(repr=False)
    size: Integers = field(repr=False)
    present: Truths = field(repr=False)
    chance: Floats = field(repr=False)
    belief: Floats = field(repr=False)
    largest: Floats = field(repr=False)
    effective: Floats = field(repr=False)

    @classmethod
    def of_sets(
        cls,
        *,
        size: Integers,
        present: Truths,
        attacked: Integers,
        truth: Integers,
        n_originals: int,
        n_masked: int,
        attack: str,
        assumptions: Sequence[str],
    ) -> Candidates:
        """Build the result of an attack whose candidates are all equally probable."""
        share = np.where(size > 0, 1.0 / np.maximum(size, 1), 0.0)
        chance = np.where(present, share, 0.0)
        found: Candidates = cls.of(
            float(chance.sum()),
            len(size),
            baseline=1 / n_originals,
            attack=attack,
            assumptions=assumptions,
            exact=len(size) == n_masked,
            attacked=attacked,
            truth=truth,
            size=size,
            present=present,
            chance=chance,
            belief=chance,
            largest=share,
            effective=size.astype(np.float64),
        )
        return found

    @property
    def single(self) -> float:
        """The share of records with exactly one candidate (one of more than 99 %)."""
        return float((self.largest > SURE).mean())

    @property
    def expected(self) -> float:
        """The mean effective number of candidates."""
        return float(self.effective.mean())

    @property
    def covered(self) -> float:
        """The share of records whose true original is among the candidates."""
        return float(self.present.mean())

    @property
    def records(self) -> pd.DataFrame:
        """One line for each attacked record. Confidential: it says who can be found."""
        import pandas as pd

        return pd.DataFrame(
            {
                "masked": self.attacked,
                "original": self.truth,
                "candidates": self.size,
                "effective": self.effective,
                "present": self.present,
                "belief": self.belief,
                "chance": self.chance,
            }
        )

    def __str__(self) -> str:
        covered = (
            "the truth always among them"
            if self.present.all()
            else f"the truth among them for {100 * self.covered:.1f} %"
        )
        return (
            f"{super().__str__()}; one candidate for {100 * self.single:.1f} %, "
            f"{self.expected:.3g} on average, {covered}"
        )

    __repr__ = __str__

    def checked(self, strict: bool, method: str) -> Candidates:
        """Refuse a table that cannot come from the method as stated, if that is wanted."""
        if strict and not self.present.all():
            raise AttackError.not_from(method, int((~self.present).sum()), self.n)
        return self
