"""Probabilistic linkage (Fellegi and Sunter): pairs are judged by what they agree in.

Each variable agrees or does not. Agreement speaks for a match by log(m/u), with m the chance to
agree in a true pair and u in any other; both are estimated from the tables by EM, without knowing
who is who. A masked record is linked to the original with the highest sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .._parameters import Number, check
from .._types import Floats, Integers, Name
from ..exceptions import BadOptionError, LinkageError
from ..kernels.groups import number_equal
from ..kernels.linkage import agreement_patterns, count_by_pattern
from ..parallel import each
from ..schema import Schema
from .aligned import AlignedTables, align_tables, as_list
from .linkage import Linkage, Measure, checked_within, linkage

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Probabilistic", "link_probabilistic"]

Counts = tuple[Integers, Integers]

MOST_VARIABLES = 16
PIECE = 512
QUANTILE = 0.9
EDGE = 1e-6  # chances stay this far from 0 and 1


@dataclass(frozen=True, kw_only=True, repr=False)
class Probabilistic(Linkage):
    """A linkage by agreement; `chances_m` and `chances_u` are those of each variable."""

    columns: tuple[Name, ...]
    limits: Floats = field(repr=False)
    chances_m: Floats = field(repr=False)
    chances_u: Floats = field(repr=False)
    converged: bool

    @property
    def agreement(self) -> pd.DataFrame:
        """What agreement and disagreement of each variable say, as logarithms of base 2."""
        import pandas as pd

        m, u = self.chances_m, self.chances_u
        return pd.DataFrame(
            {
                "variable": list(self.columns),
                "agrees within": self.limits,
                "m": m,
                "u": u,
                "if it agrees": np.log2(m / u),
                "if not": np.log2((1 - m) / (1 - u)),
            }
        )


def link_probabilistic(
    original: Any,
    masked: Any = None,
    *,
    known: Sequence[Name] | Name | None = None,
    block: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    schema: Schema | None = None,
    agree: Mapping[Name, float] | None = None,
    within: Sequence[int] = (1, 3, 5, 10),
) -> Probabilistic:
    """Link by agreement of variables, weighed by EM; for mixed tables.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The two tables, as for `link`.
    known : sequence of names, optional
        The variables to compare, at most 16.
    block : sequence of names, optional
        Only pairs that are equal in these variables are compared; a record whose blocking
        variables were changed cannot be found.
    id, schema, within
        As for `link`.
    agree : mapping of name to number, optional
        How far two numbers may lie apart and still agree. By default as far as 90 % of the values
        were moved by masking: the intruder is taken to know the method.

    Returns
    -------
    Probabilistic

    Notes
    -----
    With γ the pattern of agreements of a pair,

        P(γ) = p Π_k m_k^γ_k (1 - m_k)^(1-γ_k) + (1 - p) Π_k u_k^γ_k (1 - u_k)^(1-γ_k);

    p is known (each masked record has one original), m and u maximise the likelihood of the counts
    of patterns. Missing values do not agree.

    References
    ----------
    I. P. Fellegi, A. B. Sunter (1969) A theory for record linkage. Journal of the American
    Statistical Association 64, 1183-1210.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.risk import link_probabilistic
    >>> table = pd.DataFrame({"age": [31, 45, 31, 62], "town": ["Reus", "Reus", "Valls", "Valls"]})
    >>> link_probabilistic(table, table).value
    1.0
    """
    ks = checked_within(within)
    sides = align_tables(original, masked, known=known, id=id, schema=schema)
    groups = _blocks(sides, block)
    if block is not None and known is None:
        names = [name for name in sides.columns if name not in as_list(block)]
        if not names:
            raise LinkageError.nothing_common(original=[], masked=[])
        sides = sides.select(names)
    if len(sides.columns) > MOST_VARIABLES:
        raise LinkageError.too_many(
            what="Probabilistic linkage by agreement of variables", given=len(sides.columns),
            most=MOST_VARIABLES, instead="Give known= the variables that say most.",
        )  # fmt: skip
    limits = _limits(sides, agree)
    work = partial(_patterns, sides, limits, groups)
    pieces = np.array_split(np.arange(len(sides.A)), max(1, -(-len(sides.A) // PIECE)))
    counts = np.sum(each(work, pieces), axis=0)
    chances, converged = _em(counts, len(sides.A))
    m, u = chances
    scores = np.round(_scores(m, u), 9)

    def count(attacked: Integers, cap: int) -> Counts:
        def one(records: Integers) -> Counts:
            return count_by_pattern(
                sides.A, sides.B, limits, scores, groups.starts, groups.members, groups.masked,
                sides.truth, records,
            )  # fmt: skip

        parts = each(one, np.array_split(attacked, max(1, -(-len(attacked) // PIECE))))
        nearer, tied = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        lost = groups.masked[attacked] != groups.original[sides.truth[attacked]]
        return np.where(lost, cap, nearer), tied

    notes = [*sides.notes, "numbers agree within the limits of `agreement`"]
    if block is not None:
        notes.append(f"only pairs equal in {block!r} are compared")
    if not converged:
        notes.append("EM was stopped before it settled: the weights are approximate")
    how = Measure(count, "Fellegi-Sunter weights", tuple(notes))
    found: Probabilistic = linkage(
        sides,
        how,
        np.arange(len(sides.A)),
        within=ks,
        make=Probabilistic,
        columns=sides.columns,
        limits=limits,
        chances_m=m,
        chances_u=u,
        converged=converged,
    )
    return found


@dataclass(frozen=True)
class _Blocks:
    """The block of each record, and the originals of each block."""

    original: Integers
    masked: Integers
    starts: Integers
    members: Integers


def _blocks(sides: AlignedTables, block: Any) -> _Blocks:
    n = len(sides.B)
    if block is None:
        whole = np.zeros(n, dtype=np.int64)
        none = np.zeros(len(sides.A), dtype=np.int64)
        return _Blocks(whole, none, np.array([0, n]), np.arange(n))
    pair = sides.pair
    assert pair is not None
    read = align_tables(
        pair.original, pair.masked, known=block, id=pair.id, schema=cast(Any, pair.schema)
    )
    both = np.vstack([read.B, read.A])
    if np.isnan(both).any():
        raise LinkageError(
            f"The blocking variables {block!r} have missing values, so some records belong to no "
            "block. Fill them, or block by other variables."
        )
    numbers = number_equal(both)[0]
    first, second = numbers[:n], numbers[n:]
    members = np.argsort(first, kind="stable").astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=numbers.max() + 1))])
    return _Blocks(first, second, starts.astype(np.int64), members)


def _limits(sides: AlignedTables, agree: Mapping[Name, float] | None) -> Floats:
    given = dict(agree or {})
    limits = np.zeros(len(sides.columns))
    for place, name in enumerate(sides.columns):
        if name in given:
            limit = given.pop(name)
            check({f"agree[{name!r}]": [Number(least=0)]}, {f"agree[{name!r}]": limit})
            limits[place] = limit
        elif not sides.nominal[place]:
            moved = np.abs(sides.A[:, place] - sides.B[sides.truth, place])
            moved = moved[~np.isnan(moved)]
            limits[place] = np.quantile(moved, QUANTILE) * (1 + 1e-9) if len(moved) else 0.0
    if given:
        raise BadOptionError("agree", sorted(map(str, given)), "names of compared variables")
    return limits


def _patterns(sides: AlignedTables, limits: Floats, groups: _Blocks, records: Integers) -> Integers:
    return agreement_patterns(
        sides.A[records], sides.B, limits, groups.starts, groups.members, groups.masked[records]
    )


def _em(counts: Integers, matches: int, sweeps: int = 1000) -> tuple[tuple[Floats, Floats], bool]:
    """Return m and u of each variable, and whether they settled."""
    d = len(counts).bit_length() - 1
    seen = np.flatnonzero(counts)
    weight = counts[seen].astype(np.float64)
    agrees = ((seen[:, None] >> np.arange(d)) & 1).astype(np.float64)
    total = float(weight.sum())
    share = min(matches / max(total, 1.0), 0.5)
    m = np.full(d, 0.9)
    u = np.clip(weight @ agrees / max(total, 1.0), EDGE, 1 - EDGE)
    for _ in range(sweeps):
        match = share * np.exp(agrees @ np.log(m) + (1 - agrees) @ np.log(1 - m))
        other = (1 - share) * np.exp(agrees @ np.log(u) + (1 - agrees) @ np.log(1 - u))
        belief = weight * match / (match + other)
        rest = weight - belief
        new_m = np.clip(belief @ agrees / max(float(belief.sum()), 1e-300), EDGE, 1 - EDGE)
        new_u = np.clip(rest @ agrees / max(float(rest.sum()), 1e-300), EDGE, 1 - EDGE)
        moved = max(float(np.abs(new_m - m).max()), float(np.abs(new_u - u).max()))
        m, u = new_m, new_u
        if moved < 1e-10:
            return (m, u), True
    return (m, u), False


def _scores(m: Floats, u: Floats) -> Floats:
    d = len(m)
    agrees = (np.arange(1 << d)[:, None] >> np.arange(d)) & 1
    out: Floats = agrees @ np.log2(m / u) + (1 - agrees) @ np.log2((1 - m) / (1 - u))
    return out
