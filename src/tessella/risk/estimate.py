"""A measured share of records: never a bare number.

An *estimate* says what was counted, how sure the count is, what guessing alone would have reached,
which attack it was and what the attack took for granted. A *control* is the same attack where there
is nothing to disclose: on people who are not in the release, on records that were shuffled. Only
what an attack finds beyond its control, the *excess*, is disclosed by the release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .._notebook import RISK, Display, Displayed, Figure, Section
from .._types import Floats
from ..exceptions import BadOptionError

if TYPE_CHECKING:
    import pandas as pd

CONTROLS = {  # those that an estimate may have, the one that counts first
    "outsiders": "people outside the release",
    "without": "without the own record",
    "shuffled": "on shuffled records",
}
Z = 1.959963984540054  # 95 per cent, two-sided


def wilson(successes: float, n: int, z: float = Z) -> tuple[float, float]:
    """Return the interval of Wilson (1927) for a share p; `successes` may be a sum of chances.

    Its ends are (p + z²/2n ± z sqrt(p(1 - p)/n + z²/4n²)) / (1 + z²/n), with p = successes / n.
    """
    share = successes / n
    middle = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low, high = (middle - half) / scale, (middle + half) / scale
    return max(min(low, share), 0.0), min(max(high, share), 1.0)  # rounding at the ends


@dataclass(frozen=True, kw_only=True)
class Estimate(Displayed):
    """A share of records, with what is known about its error.

    Parameters
    ----------
    value : float
        The share of records for which the attack is right, between 0 and 1; where it has to guess
        among equals, its chance of being right.
    low, high : float
        The 95 % interval of Wilson where `value` comes from a sample of records; both equal to
        `value` where every record was attacked, because then nothing is left to chance.
    baseline : float
        What the same attack would reach by guessing; for an attack that was learned, on shuffled
        records.
    attack : str
        What the intruder does.
    assumptions : tuple of str
        What he is taken to know, and how the tables were read.
    n : int
        The number of records attacked.
    controls : mapping of str to Estimate
        The same attack where there is nothing to disclose: "outsiders" are persons who are not in
        the release, "without" is the release without the person's record, "shuffled" the masked
        records in another order. The first one counts.

    Examples
    --------
    >>> from tessella.risk import Estimate
    >>> Estimate.of(30, 200, baseline=0.005, attack="nearest record")
    15.0 % of 200 records (95 % interval 10.7 to 20.6 %; by guessing 0.5 %): nearest record
    >>> control = Estimate.of(20, 200, baseline=0.005, attack="the same", exact=True)
    >>> found = Estimate.of(
    ...     110, 200, baseline=0.005, attack="the best", exact=True, controls={"outsiders": control}
    ... )
    >>> round(found.excess, 3)
    0.5
    """

    value: float
    low: float
    high: float
    baseline: float
    attack: str
    assumptions: tuple[str, ...] = ()
    n: int
    controls: Mapping[str, Estimate] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        successes: float,
        n: int,
        *,
        baseline: float,
        attack: str,
        assumptions: Sequence[str] = (),
        exact: bool = False,
        **more: Any,
    ) -> Self:
        """Build an estimate from a number of successes, or a sum of chances, among n records.

        `baseline`, `attack` and `assumptions` are as in the class. With `exact`, the n records are
        all there are, and the interval is the value. `more` are further fields of a subclass.
        """
        if n < 1:
            raise BadOptionError("n", n, "at least one attacked record")
        if not -1e-9 <= successes <= n * (1 + 1e-12) + 1e-9:
            raise BadOptionError("successes", successes, f"a number between 0 and n={n}")
        value = min(max(successes / n, 0.0), 1.0)
        low, high = (value, value) if exact else wilson(value * n, n)
        told: dict[str, Any] = {"attack": attack, "assumptions": tuple(assumptions), **more}
        return cls(value=value, low=low, high=high, baseline=baseline, n=n, **told)

    @classmethod
    def of_chances(cls, chance: Floats, *, exact: bool = True, **more: Any) -> Self:
        """Build an estimate from the chance of each attacked record, which becomes its `chance`."""
        return cls.of(float(chance.sum()), len(chance), exact=exact, chance=chance, **more)

    @property
    def exact(self) -> bool:
        """Whether every record was attacked, so that the share has no error of sampling."""
        return self.low == self.high

    @property
    def excess(self) -> float | None:
        """What is found beyond the control: (value - control) / (1 - control); None without one.

        Of the records that the control does not find, the share that the attack finds; 0 or less
        where the release discloses nothing.
        """
        if not self.controls:
            return None
        return _beyond(self.value, next(iter(self.controls.values())).value)

    @property
    def excess_interval(self) -> tuple[float, float] | None:
        """The excess by the ends of both intervals, of the value and of the control."""
        if not self.controls:
            return None
        control = next(iter(self.controls.values()))
        return _beyond(self.low, control.high), _beyond(self.high, control.low)

    def beside(self) -> str:
        """Return the figures that belong beside the value: controls and excess, or guessing."""
        texts = [f"{CONTROLS[name]} {_per_cent(one.value)}" for name, one in self.controls.items()]
        if self.excess is not None and self.excess_interval is not None:
            low, high = self.excess_interval
            sure = "" if low == high else f" ({_per_cent(low, '')} to {_per_cent(high)})"
            texts.append(f"excess {_per_cent(self.excess)}{sure}")
        if "shuffled" not in self.controls:
            texts.append(f"by guessing {_per_cent(self.baseline)}")
        return ", ".join(texts)

    def __str__(self) -> str:
        interval = f"95 % interval {_per_cent(self.low, '')} to {_per_cent(self.high)}"
        how = "all of them" if self.exact else interval
        value = _per_cent(self.value)
        return f"{value} of {self.n:,} records ({how}; {self.beside()}): {self.attack}"

    def __repr__(self) -> str:
        return str(self)

    def _display(self) -> Display:
        interval = f"{_per_cent(self.low, '')} to {_per_cent(self.high)}"
        granted = Section(title="What it takes for granted", lines=self._granted(), folded=True)
        return Display(
            title=f"Risk: {self.attack}",
            verdict=str(self).splitlines(),
            figures=[
                Figure("Records found", _per_cent(self.value), f"of {self.n:,}"),
                *([] if self.exact else [Figure("95 % interval", interval)]),
                Figure("By guessing", _per_cent(self.baseline)),
            ],
            sections=[granted] if granted.lines else [],
            confidential=RISK,
        )

    def _granted(self) -> list[str]:
        controls = [f"{CONTROLS[name]}: {one}" for name, one in self.controls.items()]
        return [*self.assumptions, *controls]

    def explain(self) -> str:
        """Return the estimate and, line by line, what it takes for granted."""
        return "\n".join([str(self), *(f"- {line}" for line in self._granted())])


class RecordEstimate(Estimate):
    """An estimate with a line for each record.

    `_columns` names the columns of that table, with "=field" where the field is called otherwise.
    """

    _columns: ClassVar[tuple[str, ...]]

    @property
    def records(self) -> pd.DataFrame:
        """One line for each attacked record. Confidential: it says who can be found."""
        import pandas as pd

        pairs = [text.partition("=") for text in self._columns]
        columns = {name: getattr(self, field or name) for name, _, field in pairs}
        return pd.DataFrame({name: own for name, own in columns.items() if own is not None})


def _beyond(value: float, control: float) -> float:
    return (value - control) / (1 - control) if control < 1 else 0.0


def _per_cent(share: float, unit: str = " %") -> str:
    percent = 100 * share
    digits = f"{percent:.1f}" if abs(percent) >= 0.1 or percent == 0 else f"{percent:.2g}"
    return f"{digits}{unit}"
