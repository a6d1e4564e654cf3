"""How many rules as good as a found one chance would make, where columns are independent.

A rule that holds for h of m records, and for a record of independent columns with probability p,
is met by chance with probability P(Bin(m, p) >= h) <= exp(-m KL(h/m, p)) (Chernoff 1952), where KL
is the divergence of two coins. Times the number of rules of its family that were, or could have
been, looked at (Bonferroni), this is the expected number of such rules: its *chance*.

p is not known, but counted in records that are put together from cells drawn from each column
alone; it is taken three standard errors and three records higher than it was counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..._types import Name


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A rule that a finder has found in a sample.

    `chance` is the expected number of rules of the family that hold as well by chance; None where
    the rule describes one column, and there is nothing that chance could do.
    `rank` orders proposals of one kind: the smallest first.
    """

    text: str
    kind: str
    columns: tuple[Name, ...]
    why: str
    chance: float | None = None
    rank: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Demands:
    """What a rule must do to be proposed.

    Attributes
    ----------
    holds : float
        Share of records that an equality must hold for.
    chance : float
        The largest chance of a proposal; see `Proposal.chance`.
    """

    holds: float
    chance: float

    @property
    def strict(self) -> float:
        """Share of records that every other rule must hold for.

        No tendency makes an equality hold to the last digit in nearly all records; but an order
        or an implication that one record in twenty breaks is a tendency and no rule: five times
        fewer may break it.
        """
        return 1.0 - (1.0 - self.holds) / 5.0


# A found order or implication must be broken by at most this share of the records that would
# break it by chance. With 0.2, STATETAX <= TAXINC is proposed for Census: broken by 6 records,
# where chance would let 34 break it, it is how incomes are distributed, not an edit.
FEWER = 0.05


LEAST = -700.0  # logarithm of the least chance that is told: below, floats end


def log_chance(held: float, records: float, p: float) -> float:
    """Return the logarithm of an upper bound of P(Bin(records, p) >= held)."""
    if records <= 0 or p >= 1 or held <= records * p:
        return 0.0
    h = held / records
    if p <= 0:
        return -math.inf
    divergence = h * math.log(h / p)
    if h < 1:
        divergence += (1 - h) * math.log((1 - h) / (1 - p))
    return -records * divergence


def raised(p: float, records: float) -> float:
    """Return a counted share, higher by what counting can have got wrong."""
    if records <= 0:
        return 1.0
    return min(1.0, p + 3 * math.sqrt(p * (1 - p) / records) + 3 / records)


def expected(log_probability: float, log_hypotheses: float) -> float:
    """Return the expected number of rules: their number times the probability of each."""
    return math.exp(min(max(log_probability + log_hypotheses, LEAST), 50.0))


def log_choose(n: int, k: int) -> float:
    """Return the logarithm of a binomial coefficient."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def listed(names: Sequence[str]) -> str:
    """Write names as people do: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def number_text(value: float) -> str:
    """Write a number as a rule has it: without a point where it is whole."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def decimal_text(whole: int, decimals: int) -> str:
    """Write whole / 10**decimals exactly."""
    if decimals <= 0:
        return str(whole * 10**-decimals)
    sign, digits = "-" * (whole < 0), str(abs(whole)).rjust(decimals + 1, "0")
    fraction = digits[-decimals:].rstrip("0")
    return f"{sign}{digits[:-decimals]}" + (f".{fraction}" if fraction else "")
