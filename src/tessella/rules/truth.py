"""Is it so? Every truth of a rule, for every record: 1 yes, 0 unknown, -1 no.

With these three numbers `and` is the minimum, `or` the maximum and `not` the sign (Kleene 1952):
what is missing is unknown, and stays so unless the rest decides. Numbers that are equal to
rounding are equal: |a - b| <= tolerance · (size of the terms of a and b), and exactly where all
numbers are whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from .._types import Floats, Name, Signs, Truths
from . import expressions as tree
from .domain import Domain, Operands

EXACT = 2**53  # every whole number up to here is a float64
DAY = 86_400 * 10**6  # in microseconds


@dataclass(frozen=True)
class Verdict:
    """The sign of each record, and where it hangs on what is undefined (None: nowhere).

    Undefined are divisions by zero and roots of negative numbers.
    """

    signs: Signs
    undefined: Truths | None = None


@dataclass(kw_only=True)
class Judge:
    """Evaluates truths on some rows of a table, which has been checked to fit them."""

    columns: Operands = field(kw_only=False)
    rows: Any = field(kw_only=False)  # a slice, or row numbers: the records to look at
    rounding: float  # numbers are equal if they differ by no more, times the size of their terms
    allowance: float = 0.0  # by how much more a comparison of numbers may be off and still hold
    domains: dict[tree.Node, Domain] = field(default_factory=dict)  # built for a tree, by the tree
    _zero: list[Truths] = field(default_factory=list, init=False)

    def loosened(self, allowance: float) -> Judge:
        """Return a judge of the same records that allows comparisons to be off."""
        return replace(self, allowance=allowance)

    def truth(self, node: tree.Node) -> Verdict:
        """Judge every record; in an aggregate over members, every member."""
        match node:
            case tree.And(operands):
                return _fold([self.truth(each) for each in operands], np.minimum, -1)
            case tree.Or(operands):
                return _fold([self.truth(each) for each in operands], np.maximum, 1)
            case tree.Not(operand):
                inner = self.truth(operand)
                return Verdict(-inner.signs, inner.undefined)
            case tree.Compare():
                return _fold([self._compare(*pair) for pair in node.pairs], np.minimum, -1)
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
                return reduce(np.maximum, map(self.amount, operands))
            case tree.Or(operands):
                return reduce(np.minimum, map(self.amount, operands))
            case tree.Compare():
                return reduce(np.maximum, (self._gap(*pair) for pair in node.pairs))
            case tree.Member(operands, tree.Literals(), True) if self._is_number_set(node):
                values, nearest = self._nearest(node)
                gap = np.abs(values - nearest)
            case _:
                gap = np.ones(len(self.truth(node).signs))
        self._zero.clear()
        return np.where(self.truth(node).signs < 0, gap, 0.0)

    def _compare(self, left: tree.Node, operator: str, right: tree.Node) -> Verdict:
        if self._kind(left, right) == "text":
            return Verdict(self._compare_texts(left, operator, right))
        if self._kind(left, right) == "date":
            gap = self._date(left) - self._date(right)
            known = self._known(*tree.columns_of(left), *tree.columns_of(right))
            return Verdict(_signs(tree.HOLDS[operator](gap, 0), known))
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
        every = range(self.columns.n_rows)
        return (len(every[self.rows] if isinstance(self.rows, slice) else self.rows),)

    def _undefined(self) -> Truths | None:
        masks, self._zero = self._zero, []
        if not masks:
            return None
        return np.broadcast_to(reduce(np.logical_or, masks), self._length())

    def number(self, node: tree.Node) -> Any:
        """Return the value of each record, or one number for all; NaN where unknown."""
        match node:
            case tree.Constant(value) | tree.Flag(value):
                return float(value)
            case tree.Aggregate(value=float(value)):
                return value
            case tree.ColumnRef(name):
                return self.columns.numbers(name)[self.rows]
            case tree.UnitAggregate():
                return self._over_members(node)
            case tree.Negative(operand):
                return -self.number(operand)
            case tree.Function("abs", (operand,)):
                return np.abs(self.number(operand))
            case tree.Function(function, operands):
                ufunc = np.minimum if function == "min" else np.maximum
                return reduce(ufunc, map(self.number, operands))
            case tree.Sum(terms, signs):
                total = self.number(terms[0])
                for sign, term in zip(signs[1:], terms[1:]):
                    total = (np.add if sign > 0 else np.subtract)(total, self.number(term))
                return total
            case tree.Arithmetic("**", left, tree.Constant(power)):
                return self._raise(self.number(left), power)
            case tree.Arithmetic(operator, left, right):
                first, second = self.number(left), self.number(right)
                return self._divide(first, second) if operator == "/" else first * second
        raise TypeError(f"no number: {node!r}")

    def _over_members(self, node: tree.UnitAggregate) -> Any:
        """Return the aggregate of each record's unit, NaN where a member's value is unknown."""

        def aggregate() -> tuple[Floats, Truths | None]:
            everyone, units = self._everyone(), self.columns.units(node.unit)
            known = np.ones(self.columns.n_rows)
            if node.operand is None:
                values, undefined = known, None
            elif node.function == "count":
                verdict = everyone.truth(node.operand)
                values = np.where(verdict.signs == 0, np.nan, verdict.signs > 0)
                undefined = verdict.undefined
            else:
                values = everyone.number(node.operand) * known
                undefined = everyone._undefined()
            if undefined is not None:
                undefined = units.reduce(np.logical_or, undefined)
            return units.aggregate(node.function, values), undefined

        values, undefined = self.columns.keep((node, self.rounding), aggregate)
        if undefined is not None:
            self._zero.append(undefined[self.rows])
        return values[self.rows]

    def _everyone(self) -> Judge:
        """Return a judge of all records; a tolerance is of what is said about a unit."""
        return replace(self, rows=slice(0, self.columns.n_rows), allowance=0.0)

    def _raise(self, base: Any, power: float) -> Any:
        """Return a power; no root of a negative number is known, as no division by zero is."""
        if float(power).is_integer():
            return base ** int(power)
        below = np.less(base, 0)
        if np.any(below):
            self._zero.append(below)
        return np.where(below, np.nan, np.abs(base)) ** power

    def _divide(self, first: Any, second: Any) -> Any:
        zero = np.equal(second, 0)
        if not np.any(zero):
            return first / second
        self._zero.append(zero & ~np.isnan(first))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(zero, np.nan, np.divide(first, second))

    def _slack(self, left: tree.Node, right: tree.Node) -> Any:
        """How far two sides may be apart and still be equal to rounding."""
        sides = (left, right)
        largest = sum(self.size(side, largest=True) for side in sides if self.whole(side))
        if all(map(self.whole, sides)) and largest <= EXACT:
            return 0.0
        return self.rounding * sum(map(self.size, sides))

    def size(self, node: tree.Node, *, largest: bool = False) -> Any:
        """Return the size of the terms of an expression: what its rounding error grows with.

        With `largest`, it is one number that no term exceeds in any record.
        """
        size = partial(self.size, largest=largest)
        match node:
            case tree.ColumnRef(name) if largest:
                return self.columns.largest(name)
            case tree.Sum(terms, _):
                return sum(map(size, terms))
            case tree.Arithmetic("*", left, right):
                return size(left) * size(right)
            case tree.Arithmetic("/", left, right):
                # What cancels below the line is not forgiven: next to zero, everything would be.
                with np.errstate(divide="ignore", invalid="ignore"):
                    return np.divide(size(left), np.abs(self.number(right)))
            case tree.Arithmetic("**", left, tree.Constant(power)):
                base = size(left)
                return (min(base, 1e30) if largest else base) ** power
            case tree.Negative(operand) | tree.Function("abs", (operand,)):
                return size(operand)
            case tree.Function(_, operands):
                found = reduce(np.maximum, map(size, operands))
            case tree.UnitAggregate("count") if largest:
                return self.columns.units(node.unit).largest
            case tree.UnitAggregate("sum" | "mean" | "min" | "max" as function, tree.Node() as of):
                units, sums = self.columns.units(node.unit), function == "sum"
                inner = self._everyone().size(of, largest=largest)
                if largest:
                    return inner * (units.largest if sums else 1)
                inner = inner * np.ones(self.columns.n_rows)
                found = units.aggregate("sum" if sums else "max", inner)[self.rows]
            case _:
                found = np.abs(self.number(node))
        return float(found) if largest else found

    def whole(self, node: tree.Node) -> bool:
        """Say whether an expression is a whole number in every record."""
        match node:
            case tree.Constant(value) | tree.Flag(value) | tree.Aggregate(value=float(value)):
                return float(value).is_integer()
            case tree.ColumnRef(name):
                return self.columns.whole(name)
            case tree.Arithmetic("/", _, _) | tree.Aggregate() | tree.UnitAggregate("mean"):
                return False
            case tree.UnitAggregate("count"):
                return True
        return all(map(self.whole, tree.children(node)))

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
            return tree.stamp_of(node.value)
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
        slack, (operand,) = 0.0, node.operands
        if not (self.whole(operand) and all(float(row[0]).is_integer() for row in node.among.rows)):
            slack = self.rounding * (self.size(operand) + np.abs(nearest))
            self._zero.clear()
        inside = np.abs(values - nearest) <= slack + self.allowance
        return Verdict(_signs(inside == node.inside, ~np.isnan(values)), undefined)

    def _member(self, node: tree.Member | tree.Observed) -> Verdict:
        names = tree.looked_up(node)
        inside = self.domains[node].holds(self.columns, names, self.rows)
        return Verdict(_signs(inside == node.inside, self._known(*names)))

    def _known(self, *names: Name) -> Truths:
        """Return where none of some columns is missing."""
        missing = [self.columns.missing(name)[self.rows] for name in names]
        return np.asarray(~np.logical_or.reduce(missing))


def _fold(verdicts: list[Verdict], ufunc: np.ufunc, decides: int) -> Verdict:
    signs = reduce(ufunc, [verdict.signs for verdict in verdicts])
    masks = [verdict.undefined for verdict in verdicts if verdict.undefined is not None]
    # A division by zero does not matter where the other operands decide.
    undefined = np.logical_or.reduce(masks) & (signs != decides) if masks else None
    return Verdict(signs, undefined)


def _signs(holds: Any, known: Truths | None = None) -> Signs:
    signs = np.asarray(holds, dtype=bool).view(np.int8) * np.int8(2) - np.int8(1)
    result: Signs = signs if known is None else signs * known.view(np.int8)
    return result


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
