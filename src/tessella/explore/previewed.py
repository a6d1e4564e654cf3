"""The figures of a preview: an estimate of loss and risk, with what is known of their error."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, repr=False)
class Preview:
    """What a plan would cost and protect, about. **Confidential**, as every figure of risk is.

    Attributes
    ----------
    loss : float
        Information loss 100 SSE / SST in per cent, as `Release.loss`; NaN where the sample is too
        small for the plan's k.
    loss_low, loss_high : float
        An interval of 95 %, from the spread between the cells of the sample; the loss itself where
        all records were looked at.
    column_loss : dict of str to float
        The same for each masked column of numbers that varies.
    changed : dict of str to float
        For each masked column of categories, the share of records with another one, in per cent.
    risk : float
        The share of records that an intruder finds who takes the nearest one, in per cent.
    risk_low, risk_high : float
        Its interval.
    baseline : float
        What guessing reaches, in per cent.
    attack : str
        How the intruder compares records.
    k_promised, k_reached : int or None
        The k that the plan promises, and the least that the sample reaches.
    promise : str
        What is promised, in words.
    records, n_records : int
        How many records were looked at, and how many there are.
    is_sample : bool
        Whether these are fewer than all.
    notes : tuple of str
        What was left out or done more quickly, and warnings.
    seconds : float
        How long it took.
    """

    loss: float
    loss_low: float
    loss_high: float
    column_loss: dict[str, float] = field(hash=False)
    changed: dict[str, float] = field(hash=False)
    risk: float
    risk_low: float
    risk_high: float
    baseline: float
    attack: str
    k_promised: int | None
    k_reached: int | None
    promise: str
    records: int
    n_records: int
    notes: tuple[str, ...]
    seconds: float = field(compare=False)

    @property
    def is_sample(self) -> bool:
        """Whether not all records were looked at."""
        return self.records < self.n_records

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers; NaN is None."""
        known = vars(self) | {"notes": list(self.notes), "is_sample": self.is_sample}
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in known.items()
        }

    def __str__(self) -> str:
        whole = f"all {self.n_records:,} records"
        seen = f"{self.records:,} of {self.n_records:,} records" if self.is_sample else whole
        lines = [
            f"An estimate from {seen}." if self.is_sample else f"From {whole}.",
            f"Information loss {_about(self.loss, self.loss_low, self.loss_high)}.",
            f"Found by the nearest record: {_about(self.risk, self.risk_low, self.risk_high)} "
            f"(by guessing {self.baseline:.2g} %; {self.attack}).",
            self.promise,
        ]
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__


def _about(value: float, low: float, high: float) -> str:
    if math.isnan(value):
        return "unknown"
    return f"{value:.1f} %" + ("" if low == high else f" ({low:.1f} to {high:.1f} %)")
