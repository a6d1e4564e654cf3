"""A household as one wide record: its members side by side, and the rules of its slots.

Households of one shape have the same number of members, who are put into *slots* 1, 2, ... The
columns that are constant within households stand once, the others once for each slot (`age@1`,
`age@2`, ...). Then

- a rule about one record is one rule for each slot;
- `sum(income) by household == total` is `income@1 + income@2 == total`;
- `max(age) by household >= 16` is `age@1 >= 16`, where the first slot has always such a member,
  else `age@1 >= 16 or age@2 >= 16`;
- a member who is counted by `count(relation == 1)` is counted in every household of the shape, in
  the same slot: `relation@1 == 1` and `relation@2 != 1` keep the count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .._types import Integers, Name, Signs
from ..frame import Table, View
from ..frame.writing import gather
from ..rules import Rule, Rules
from ..rules import expressions as tree
from ..rules.confront import judge
from ..rules.domain import Operands
from ..schema import Schema


class _Unknown(Exception):
    """A count hangs on a missing value: nothing is asked of households of this shape."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Slots:
    """The slots of the households of one shape.

    `rows` has the record of each slot, shape (households, slots); `persons` are the columns that
    differ within households; `signs` has, for each truth that rules count, 1, 0 or -1 by slot.
    """

    rows: Integers
    persons: Collection[Name]
    signs: dict[tree.Node, Signs]
    mark: str = "@"

    @property
    def size(self) -> int:
        """The number of members."""
        return int(self.rows.shape[1])

    def named(self, name: Name, slot: int) -> Name:
        """Return the name of a column in a slot."""
        return f"{name}{self.mark}{slot + 1}" if name in self.persons else name

    def names(self, names: Sequence[Name]) -> list[Name]:
        """List columns as the wide record has them."""
        return [
            self.named(name, slot)
            for name in names
            for slot in range(self.size if name in self.persons else 1)
        ]

    def view(self, view: View, names: Sequence[Name]) -> View:
        """Return some columns of a table as wide records."""
        schema, columns, known = view.schema, {}, []
        for name in names:
            for slot in range(self.size if name in self.persons else 1):
                new = self.named(name, slot)
                columns[new] = (name, self.rows[:, slot])
                known.append(replace(schema[name], name=new))  # type: ignore[index,type-var]
        return View(Table.read(gather(view.table, columns)), Schema(known))  # type: ignore[arg-type]

    def rules(self, rules: Rules, masked: Collection[Name]) -> Rules:
        """Return what rules about some masked columns ask of the wide records."""
        found: list[Rule] = []
        for rule in rules:
            if set(masked).intersection(rule.columns):
                found += self._wide(rule)
        for number, (truth, signs) in enumerate(self.signs.items()):
            if set(masked).isdisjoint(tree.columns_of(truth)):
                continue
            for slot, sign in enumerate(signs):
                if sign:
                    body = self._at(truth if sign > 0 else tree.negated(truth), slot)
                    found.append(Rule(body=body, name=f"counted {number}{self.mark}{slot + 1}"))
        return Rules({rule.text: rule for rule in found}.values())

    def _wide(self, rule: Rule) -> Iterator[Rule]:
        try:
            wide = rule.transformed(self._over_slots)
        except _Unknown:
            return
        if rule.unit is not None:
            wide = replace(wide, body=tree.transform(wide.body, _spread))
        if not wide.columns:  # a count alone, which the shape decides
            return
        slots = range(self.size if set(self.persons).intersection(wide.columns) else 1)
        for slot in slots:
            changed = wide.transformed(partial(self._change, slot=slot))
            yield replace(changed, name=f"{rule.name}{self.mark}{slot + 1}")

    def _over_slots(self, node: tree.Node) -> tree.Node:
        """Write an aggregate over members as an expression of the slots."""
        if not isinstance(node, tree.UnitAggregate):
            return node
        operand = node.operand
        if operand is None:
            return tree.Constant(self.size)
        if node.function == "count":
            signs = self.signs[operand]
            if (signs == 0).any():
                raise _Unknown
            return tree.Constant(int((signs > 0).sum()))
        terms = tuple(self._at(operand, slot) for slot in range(self.size))
        if len(terms) == 1:
            return terms[0]
        if node.function in ("min", "max"):
            return tree.Function(node.function, terms)
        total = tree.Sum(terms, (1,) * len(terms))
        if node.function == "sum":
            return total
        return tree.Arithmetic("/", total, tree.Constant(self.size))

    def _at(self, node: tree.Node, slot: int) -> tree.Node:
        return tree.transform(node, partial(self._change, slot=slot))

    def _change(self, node: tree.Node, slot: int) -> tree.Node:
        """Let a node speak of a slot; what was looked up in the original table is kept."""
        match node:
            case tree.ColumnRef(name):
                return tree.ColumnRef(self.named(name, slot))
            case tree.Aggregate(value=float(value)):
                return tree.Constant(value)
            case tree.Missing(column):
                return replace(node, column=self.named(column, slot))
            case tree.Observed(columns):
                return replace(node, columns=tuple(self.named(c, slot) for c in columns))
        return node


def _spread(node: tree.Node) -> tree.Node:
    """Write that a largest number reaches a bound as: one of the numbers does."""
    if not isinstance(node, tree.Compare):
        return node
    parts = [_reaches(*pair) for pair in node.pairs]
    return parts[0] if len(parts) == 1 else tree.And(tuple(parts))


def _reaches(left: tree.Node, operator: tree.Operator, right: tree.Node) -> tree.Node:
    if isinstance(right, tree.Function):
        left, operator, right = right, tree.MIRROR[operator], left
    plain = tree.Compare((left, right), (operator,))
    if not isinstance(left, tree.Function) or left.function == "abs" or operator == "!=":
        return plain
    beyond: tree.Operator = ">=" if left.function == "max" else "<="
    if operator == "==":
        bounded = tree.Compare((left, right), (tree.MIRROR[beyond],))
        return tree.And((bounded, _reaches(left, beyond, right)))
    if operator[0] != beyond[0]:
        return plain  # all do, which is one rule for each
    return tree.Or(tuple(tree.Compare((each, right), (operator,)) for each in left.operands))


def certain(rules: Rules, view: View) -> Rules:
    """Let a choice between slots be one slot, where it is this one in every household."""
    columns = Operands(view)

    def choose(node: tree.Node) -> tree.Node:
        if not isinstance(node, tree.Or):
            return node
        always = (each for each in node.operands if (judge(each, columns) > 0).all())
        return next(always, node)

    return Rules(replace(rule, body=tree.transform(rule.body, choose)) for rule in rules)


def counted_truths(rules: Rules, *, bounds: bool = False) -> list[tree.Node]:
    """List the truths whose count a rule across members asks for, each once.

    With `bounds`, `max(age) by household >= 16` counts, too: at least one has `age >= 16`.
    """
    found: list[tree.Node] = []
    for node in (node for rule in rules for node in rule.nodes()):
        if isinstance(node, tree.UnitAggregate) and node.function == "count":
            found += [] if node.operand is None else [node.operand]
        for pair in node.pairs if bounds and isinstance(node, tree.Compare) else ():
            found += _bound(*pair)
    return list(dict.fromkeys(found))


def _bound(left: tree.Node, operator: tree.Operator, right: tree.Node) -> list[tree.Node]:
    if isinstance(right, tree.UnitAggregate):
        left, operator, right = right, tree.MIRROR[operator], left
    if not isinstance(left, tree.UnitAggregate) or tree.columns_of(right) or left.operand is None:
        return []
    beyond = {"max": ">", "min": "<"}.get(left.function)
    if beyond is None or tree.unit_of(right) is not None or operator[0] not in (beyond, "="):
        return []
    reached: tree.Operator = operator if operator != "==" else ">=" if beyond == ">" else "<="
    return [tree.Compare((left.operand, right), (reached,))]


def bounds_of_each(rules: Rules) -> Rules:
    """Return the rules across members that each member can keep alone, as rules about a record.

    `max(age) by household <= 105` is `age <= 105` of every member.
    """
    found = []
    for rule in rules:
        body = rule.body
        if rule.unit is None or rule.is_conditional or not isinstance(body, tree.Compare):
            continue
        for number, (left, operator, right) in enumerate(body.pairs):
            if isinstance(right, tree.UnitAggregate):
                left, operator, right = right, tree.MIRROR[operator], left
            if not isinstance(left, tree.UnitAggregate) or tree.unit_of(right) is not None:
                continue
            within = {"max": "<", "min": ">"}.get(left.function)
            if within and left.operand is not None and operator[0] in (within, "="):
                sign: tree.Operator = operator if operator != "==" else f"{within}="  # type: ignore
                each = tree.Compare((left.operand, right), (sign,))
                found.append(replace(rule, body=each, name=f"{rule.name} {number}"))
    return Rules(found)


def signs_of(truths: Sequence[tree.Node], view: View) -> dict[tree.Node, Signs]:
    """Judge truths about single records."""
    columns = Operands(view)
    return {truth: judge(truth, columns) for truth in truths}


def free_mark(columns: Sequence[Name]) -> str:
    """Return a sign between the name of a column and its slot that no column's name has."""
    mark = "@"
    while any(mark in str(name) for name in columns):
        mark += "@"
    return mark


def in_standard_order(keys: Sequence[Integers]) -> Integers:
    """Number records by combinations of keys, the largest values of the first key first."""
    matrix = np.column_stack([-np.asarray(key, dtype=np.int64) for key in keys])
    return np.unique(matrix, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
