"""Is it so? Every truth of a rule, for every record: 1 yes, 0 unknown, -1 no.

With these three numbers `and` is the minimum, `or` the maximum and `not` the sign (Kleene 1952):
what is missing is unknown, and stays so unless the rest decides. Numbers that are equal to
rounding are equal: |a - b| <= tolerance · (size of the terms of a and b), and exactly where all
numbers are whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats, Signs, Truths
from . import expressions as tree
from .domain import Domain, Operands

__all__ = ["Judge", "Verdict"]


EXACT = 2**53  # every whole number up to here is a float64
DAY = 86_400 * 10**9  # in nanoseconds


@dataclass(frozen=True)
class Verdict:
    """The sign of each record, and where it hangs on a division by zero (None: nowhere)."""

    signs: Signs
    undefined: Truths | None = None


class Judge:
    """Evaluates truths on some rows of a table, which has been checked to fit them.

    Parameters
    ----------
    columns : Operands
        The table.
    rows : slice or array of row numbers
        The records to look at.
    rounding : float
        Numbers are equal if they differ by no more than this, times the size of their terms.
    allowance : float
        How much more than that a comparison of numbers may be off and still hold.
    domains : dict
        Domains that were built for a tree, by the tree.
    """

    def __init__(
        self,
        columns: Operands,
        rows: Any,
        *,
        rounding: float,
        allowance: float = 0.0,
        domains: dict[tree.Node, Domain] | None = None,
    ) -> None:
        self.columns = columns
        self.rows = rows
        self.rounding = rounding
        self.allowance = allowance
        self.domains = {} if domains is None else domains
        self._zero: list[Truths] = []

    def truth(self, node: tree.Node) -> Verdict:
        """Judge every record."""
        match node:
            case tree.And(operands):
                return self._join(operands, np.minimum, -1)
            case tree.Or(operands):
                return self._join(operands, np.maximum, 1)
            case tree.Not(operand):
                inner = self.truth(operand)
                return Verdict(-inner.signs, inner.undefined)
            case tree.Compare():
                pairs = [self._compare(*pair) for pair in node.pairs]
                return self._fold(pairs, np.minimum, -1)
            case tree.Member(operands, tree.Literals(), _) if self._is_number_set(node):
                return self._among_numbers(node)
            case tree.Member() | tree.Observed():
                return self._member(node)
            case tree.Missing(column, missing):
                gone = self.columns.missing(column)[self.rows]
                return Verdict(_signs(gone if missing else ~gone))
            case tree.ColumnRef(name):
                values = self.columns.numbers(name)[self.rows]
                return Verdict(_signs(values == 1, ~np.isnan(values)))
        raise TypeError(f"no truth: {node!r}")

    def amount(self, node: tree.Node) -> Floats:
        """Say by how much each record breaks a truth without `not`; 0 where it does not.

        Of several that must hold it is the largest amount, of several of which one must hold the
        smallest; what has no size (a text that is not in its set) counts 1.
        """
        match node:
            case tree.And(operands):
                return _reduce(np.maximum, [self.amount(each) for each in operands])
            case tree.Or(operands):
                return _reduce(np.minimum, [self.amount(each) for each in operands])
            case tree.Compare():
                return _reduce(np.maximum, [self._gap(*pair) for pair in node.pairs])
            case tree.Member(operands, tree.Literals(), True) if self._is_number_set(node):
                values, nearest = self._nearest(node)
                gap = np.abs(values - nearest)
            case _:
                gap = np.ones(len(self.truth(node).signs))
        self._zero.clear()
        return np.where(self.truth(node).signs < 0, gap, 0.0)

    def _join(self, operands: tuple[tree.Node, ...], ufunc: np.ufunc, decides: int) -> Verdict:
        return self._fold([self.truth(each) for each in operands], ufunc, decides)

    def _fold(self, verdicts: list[Verdict], ufunc: np.ufunc, decides: int) -> Verdict:
        signs = verdicts[0].signs
        for verdict in verdicts[1:]:
            signs = ufunc(signs, verdict.signs)
        masks = [verdict.undefined for verdict in verdicts if verdict.undefined is not None]
        if not masks:
            return Verdict(signs)
        # A division by zero does not matter where the other operands decide.
        return Verdict(signs, np.logical_or.reduce(masks) & (signs != decides))

    def _compare(self, left: tree.Node, operator: str, right: tree.Node) -> Verdict:
        if self._kind(left, right) == "text":
            return Verdict(self._compare_texts(left, operator, right))
        if self._kind(left, right) == "date":
            first, second = self._date(left), self._date(right)
            gap = first - second
            known = np.ones(np.shape(gap), dtype=bool)
            for name in (*tree.columns_of(left), *tree.columns_of(right)):
                known &= ~self.columns.missing(name)[self.rows]
            return Verdict(_signs(_OPERATORS[operator](gap, 0), known))
        gap = self._difference(left, right)
        slack = self._slack(left, right)
        with np.errstate(invalid="ignore"):
            holds = _COMPARE[operator](gap, slack, self.allowance)
        known = ~np.isnan(gap)
        return Verdict(_signs(holds, known), self._undefined())

    def _gap(self, left: tree.Node, operator: str, right: tree.Node) -> Floats:
        signs = self._compare(left, operator, right).signs
        kind = self._kind(left, right)
        if kind == "text":
            gap = np.ones(len(signs))
        elif kind == "date":
            gap = np.abs(self._date(left) - self._date(right)) / DAY
        else:
            gap = np.abs(self._difference(left, right))
            self._zero.clear()
        return np.where(signs < 0, gap, 0.0)

    def _kind(self, *sides: tree.Node) -> str:
        for side in sides:
            if isinstance(side, tree.ColumnRef):
                return self.columns.kind(side.name)
        return "number"

    def _difference(self, left: tree.Node, right: tree.Node) -> Floats:
        values = np.subtract(self.number(left), self.number(right))
        return np.broadcast_to(values, self._length())

    def _length(self) -> tuple[int]:
        rows = self.rows
        return (
            len(range(*rows.indices(self.columns.n_rows)))
            if isinstance(rows, slice)
            else len(rows),
        )

    def _undefined(self) -> Truths | None:
        masks, self._zero = self._zero, []
        if not masks:
            return None
        undefined: Truths = np.zeros(self._length(), dtype=bool)
        for mask in masks:
            undefined |= mask
        return undefined

    def number(self, node: tree.Node) -> Any:
        """Return the value of each record, or one number for all; NaN where unknown."""
        match node:
            case tree.Constant(value) | tree.Flag(value):
                return float(value)
            case tree.Aggregate(value=float(value)):
                return value
            case tree.ColumnRef(name):
                return self.columns.numbers(name)[self.rows]
            case tree.Negative(operand):
                return -self.number(operand)
            case tree.Function("abs", (operand,)):
                return np.abs(self.number(operand))
            case tree.Function(function, operands):
                ufunc = np.minimum if function == "min" else np.maximum
                return ufunc.reduce(np.broadcast_arrays(*(self.number(each) for each in operands)))
            case tree.Sum(terms, signs):
                total = self.number(terms[0])
                for sign, term in zip(signs[1:], terms[1:]):
                    total = _OPERATORS["+" if sign > 0 else "-"](total, self.number(term))
                return total
            case tree.Arithmetic("**", left, tree.Constant(power)):
                return self.number(left) ** int(power)
            case tree.Arithmetic(operator, left, right):
                first, second = self.number(left), self.number(right)
                return self._divide(first, second) if operator == "/" else first * second
        raise TypeError(f"no number: {node!r}")

    def _divide(self, first: Any, second: Any) -> Any:
        zero = np.equal(second, 0)
        if not np.any(zero):
            return first / second
        self._zero.append(zero & ~np.isnan(first))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(zero, np.nan, np.divide(first, second))

    def _slack(self, left: tree.Node, right: tree.Node) -> Any:
        """How far two sides may be apart and still be equal to rounding."""
        if self.whole(left) and self.whole(right) and self.bound(left) + self.bound(right) <= EXACT:
            return 0.0
        return self.rounding * (self.size(left) + self.size(right))

    def size(self, node: tree.Node) -> Any:
        """Return the size of the terms of an expression: what its rounding error grows with."""
        match node:
            case tree.Sum(terms, _):
                total = self.size(terms[0])
                for term in terms[1:]:
                    total = total + self.size(term)
                return total
            case tree.Arithmetic("*", left, right):
                return self.size(left) * self.size(right)
            case tree.Arithmetic("/", left, right):
                # What cancels below the line is not forgiven: next to zero, everything would be.
                with np.errstate(divide="ignore", invalid="ignore"):
                    return np.divide(self.size(left), np.abs(self.number(right)))
            case tree.Arithmetic("**", left, tree.Constant(power)):
                return self.size(left) ** int(power)
            case tree.Negative(operand) | tree.Function("abs", (operand,)):
                return self.size(operand)
            case tree.Function(_, operands):
                return np.maximum.reduce(
                    np.broadcast_arrays(*(self.size(each) for each in operands))
                )
        return np.abs(self.number(node))

    def whole(self, node: tree.Node) -> bool:
        """Say whether an expression is a whole number in every record."""
        match node:
            case tree.Constant(value) | tree.Aggregate(value=float(value)):
                return float(value).is_integer()
            case tree.Flag():
                return True
            case tree.ColumnRef(name):
                return self.columns.whole(name)
            case tree.Sum(terms, _):
                return all(self.whole(term) for term in terms)
            case tree.Arithmetic("/", _, _):
                return False
            case tree.Arithmetic(_, left, right):
                return self.whole(left) and self.whole(right)
            case tree.Negative(operand):
                return self.whole(operand)
            case tree.Function(_, operands):
                return all(self.whole(each) for each in operands)
        return False

    def bound(self, node: tree.Node) -> float:
        """Return a number that no term of an expression exceeds in any record."""
        match node:
            case tree.ColumnRef(name):
                return self.columns.largest(name)
            case tree.Sum(terms, _):
                return sum(self.bound(term) for term in terms)
            case tree.Arithmetic("*", left, right):
                return self.bound(left) * self.bound(right)
            case tree.Arithmetic("**", left, tree.Constant(power)):
                return float(min(self.bound(left), 1e30)) ** int(power)
            case tree.Negative(operand):
                return self.bound(operand)
            case tree.Function(_, operands):
                return max(self.bound(each) for each in operands)
        return abs(float(self.number(node)))

    def _compare_texts(self, left: tree.Node, operator: str, right: tree.Node) -> Signs:
        if not isinstance(left, tree.ColumnRef):
            left, right = right, left
        codes, texts = self.columns.labels(left.name)  # type: ignore[attr-defined]
        codes = codes[self.rows]
        if isinstance(right, tree.ColumnRef):
            other = self.columns.translated(right.name, left.name)[self.rows]  # type: ignore[attr-defined]
            known = (codes >= 0) & (other != -1)
            same = codes == other
        else:
            wanted = texts.index(right.value) if right.value in texts else -2  # type: ignore[attr-defined]
            known, same = codes >= 0, codes == wanted
        return _signs(same if operator == "==" else ~same, known)

    def _date(self, node: tree.Node) -> Any:
        if isinstance(node, tree.Text):
            return np.datetime64(node.value, "ns").astype(np.int64)
        return self.columns.dates(node.name)[self.rows]  # type: ignore[attr-defined]

    def _is_number_set(self, node: tree.Member) -> bool:
        return len(node.operands) == 1 and self._kind(node.operands[0]) == "number"

    def _nearest(self, node: tree.Member) -> tuple[Floats, Floats]:
        """Return the value of each record and the member of the set that is nearest to it."""
        values = np.broadcast_to(self.number(node.operands[0]), self._length())
        members = np.array(sorted(float(row[0]) for row in node.among.rows))
        ends = np.concatenate([[-np.inf], members, [np.inf]])
        place = np.searchsorted(members, values)
        below, above = ends[place], ends[place + 1]
        return values, np.where(values - below <= above - values, below, above)

    def _among_numbers(self, node: tree.Member) -> Verdict:
        values, nearest = self._nearest(node)
        undefined = self._undefined()
        slack = 0.0
        if not all(float(row[0]).is_integer() for row in node.among.rows) or not self.whole(
            node.operands[0]
        ):
            slack = self.rounding * (self.size(node.operands[0]) + np.abs(nearest))
            self._zero.clear()
        inside = np.abs(values - nearest) <= slack + self.allowance
        return Verdict(_signs(inside == node.inside, ~np.isnan(values)), undefined)

    def _member(self, node: tree.Member | tree.Observed) -> Verdict:
        names = tree.looked_up(node)
        inside = self.domains[node].holds(self.columns, names, self.rows)
        known = np.ones(len(inside), dtype=bool)
        for name in names:
            known &= ~self.columns.missing(name)[self.rows]
        return Verdict(_signs(inside == node.inside, known))


def _reduce(ufunc: np.ufunc, amounts: list[Floats]) -> Floats:
    reduced: Floats = ufunc.reduce(amounts)
    return reduced


def _signs(holds: Any, known: Truths | None = None) -> Signs:
    signs = np.asarray(holds, dtype=bool).view(np.int8) * np.int8(2) - np.int8(1)
    result: Signs = signs if known is None else signs * known.view(np.int8)
    return result


_OPERATORS: dict[str, Any] = {
    "+": np.add,
    "-": np.subtract,
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
    ">=": np.greater_equal,
    ">": np.greater,
}

# Of the difference of the sides, what is equal to rounding, and what the rule allows beyond. A
# strict comparison excludes what is equal to rounding, unless the rule itself allows it.
_COMPARE: dict[str, Any] = {
    "<": lambda gap, slack, more: gap < (more - slack if not more else more + slack),
    "<=": lambda gap, slack, more: gap <= slack + more,
    "==": lambda gap, slack, more: np.abs(gap) <= slack + more,
    "!=": lambda gap, slack, more: np.abs(gap) > slack + more,
    ">=": lambda gap, slack, more: -gap <= slack + more,
    ">": lambda gap, slack, more: -gap < (more - slack if not more else more + slack),
}
