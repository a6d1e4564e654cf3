"""What the language of rules can say; nothing of it is ever executed.

Python's parser only says how the text hangs together. Each of its nodes is then looked up here:
what the language of rules has is translated, everything else (attributes, other calls, lambda,
comprehensions, f-strings, ...) is a mistake with a hint.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from .._types import Name
from . import expressions as tree
from .classify import constant
from .lookup import read_lookup
from .rule import Fragment, Wrong

LARGEST = 1e150  # the square of anything larger is infinite
LARGEST_WHOLE = 2**53  # every whole number up to here is a float64
LARGEST_POWER = 10
MOST_TERMS = 1000
DEEPEST = 100  # operations within operations; keeps every walk far from the end of the stack

_ARITHMETIC = {ast.Mult: "*", ast.Div: "/"}
_ORDERS = (ast.Lt, ast.LtE, ast.Eq, ast.NotEq, ast.GtE, ast.Gt)
_COMPARE = dict(zip(_ORDERS, ("<", "<=", "==", "!=", ">=", ">")))
_NO_COLUMN = "This names no column, so it says nothing about a record."
_OTHER_LANGUAGE = "& and | belong to another language."
AGGREGATES = ("mean", "sum", "min", "max")
NUMBER_FUNCTIONS = ("abs", "count", *AGGREGATES, "col")
_HEADS = "count(relation == 1) == 1 by household"
TRUTH_FUNCTIONS = ("observed", "missing", "known", "col")
_EVERY_FUNCTION = sorted({*NUMBER_FUNCTIONS, *TRUTH_FUNCTIONS, "table"})

# What people write from habit, and what the language of rules says instead.
HABITS = (
    (r"&&|&", "Write `and`."),
    (r"\|\||\|", "Write `or`."),
    (r"<>", "Write !=."),
    (r"=<", "Write <=."),
    (r"=>", "Write >=, or `if condition: rule`."),
    (r"≤", "Write <=."),
    (r"≥", "Write >=."),
    (r"≠", "Write !=."),
    (r"(?<![<>=!:])=(?!=)", "An equality is written with ==."),
    (r"!(?!=)", "Write `not`."),
    (r"\bthen\b", "Write: if condition: rule."),
    (r"\belse\b", "Write two rules, one for each case."),
    (r"%in%", "Write: x in {1, 2}."),
    (r"\bif\b", "A condition stands once, at the start; join conditions with `and`."),
    (r"(?<=[\w)]) +by\b", f"After `by` stands the unit's column: {_HEADS}."),
)
EXAMPLE = "A rule reads like net + tax == gross, or: if age < 16: wage == 0."
INSTEAD: dict[type[ast.AST], tuple[str, str]] = {
    ast.Attribute: ("No name of a column has a dot.", "Write such a name in backticks: `a.b`."),
    ast.Subscript: ("Rules have no square brackets after a name.", "Name the column itself."),
    ast.Lambda: ("Rules have no lambda.", ""),
    ast.IfExp: ("This is Python's `x if c else y`.", "Write: if condition: rule."),
    ast.JoinedStr: ("Rules have no f-strings.", "Write the text itself."),
    ast.NamedExpr: ("Rules assign nothing.", "An equality is written with ==."),
    ast.Starred: ("Rules have no *.", ""),
    ast.Dict: ("Rules have no dictionaries.", "Values of a set: x in {1, 2}."),
}
for _loop in (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp):
    INSTEAD[_loop] = ("Rules have no loops.", "A rule speaks of one record; list the values.")
for _later in (ast.Await, ast.Yield, ast.YieldFrom):
    INSTEAD[_later] = ("Rules are not programs.", "")

Read = Callable[["Reader", ast.expr], tree.Node]


def _nested(read: Read) -> Read:
    """Count how deep operations stand within operations, and refuse too many."""

    @wraps(read)
    def counted(self: Reader, node: ast.expr) -> tree.Node:
        self.depth += 1
        if self.depth > DEEPEST:
            message = f"More than {DEEPEST} operations within operations."
            raise self.wrong(node, message, "Use several rules.")
        try:
            return read(self, node)
        finally:
            self.depth -= 1

    return counted


class Reader:
    """Reads one part of a line; mistakes point into the line."""

    def __init__(self, part: Fragment, folder: Path | None, unit: Name | None = None) -> None:
        self.part, self.folder, self.unit = part, folder, unit
        self.depth = 0
        self.among_members = False  # within an aggregate over the members of a unit

    def read(self) -> tree.Node:
        """Read the part as a truth about one record."""
        node = self.truth(self._syntax())
        if not tree.columns_of(node) and tree.unit_of(node) is None:
            places, hint = self.part.places, "Texts are written in quotes, columns without."
            raise Wrong(places[0], places[-1], _NO_COLUMN, hint)
        return node

    @_nested
    def truth(self, node: ast.expr) -> tree.Node:
        """Read something that is true or false of a record."""
        match node:
            case ast.BoolOp(op=operator, values=values):
                operands = tuple(self.truth(value) for value in values)
                return tree.And(operands) if isinstance(operator, ast.And) else tree.Or(operands)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return tree.Not(self.truth(operand))
            case ast.Compare():
                return self._compare(node)
            case ast.Name() | ast.Call(func=ast.Name(id="col")):
                return self.column(node)
            case ast.Call(func=ast.Name(id="observed")):
                columns = tuple(self.column(each).name for each in self.arguments(node))
                return tree.Observed(columns)
            case ast.Call(func=ast.Name(id="missing" | "known" as function)):
                (column,) = self.arguments(node, count=1)
                return tree.Missing(self.column(column).name, function == "missing")
            case ast.Call():
                raise self._unknown_call(node, NUMBER_FUNCTIONS, "number, and here stands a truth")
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                raise self.wrong(node, _OTHER_LANGUAGE, "Write `and` or `or`.")
            case ast.Constant(value=bool()):
                raise self.wrong(node, _NO_COLUMN)
            case ast.BinOp() | ast.UnaryOp() | ast.Constant():
                self.number(node)  # what is wrong inside of it comes first
                raise self.wrong(node, "This is a value; a rule compares it with something.")
        raise self.refuse(node)

    @_nested
    def number(self, node: ast.expr) -> tree.Node:
        """Read something that has a value in a record."""
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name() | ast.Call(func=ast.Name(id="col")):
                return self.column(node)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                inner = self._amount(operand)
                if isinstance(sign, ast.UAdd):
                    return inner
                if isinstance(inner, tree.Constant):
                    return tree.Constant(-inner.value)
                return tree.Negative(inner)
            case ast.BinOp(op=ast.Pow()):
                return self._power(node)
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self._sum(node)
            case ast.BinOp(op=operator, left=left, right=right) if type(operator) in _ARITHMETIC:
                first, second = self._amount(left), self._amount(right)
                sign = cast(Any, _ARITHMETIC[type(operator)])
                return self._checked(node, tree.Arithmetic(sign, first, second))
            case ast.BinOp(op=ast.BitXor()):
                raise self.wrong(node, "A power is not written with ^.", "Write x ** 2.")
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                raise self.wrong(node, _OTHER_LANGUAGE, "Write `and` or `or`, between comparisons.")
            case ast.BinOp():
                raise self.wrong(node, "Rules calculate with +, -, *, / and ** only.")
            case ast.Call(func=ast.Name(id="abs")):
                return tree.Function("abs", (self._amount(self.arguments(node, count=1)[0]),))
            case ast.Call(func=ast.Name(id="min" | "max" as function), args=[_, _, *_]):
                amounts = tuple(self._amount(each) for each in self.arguments(node))
                return tree.Function(cast(Any, function), amounts)
            case ast.Call(func=ast.Name(id="count" as function)):
                return self._over_members(node, function)
            case ast.Call(func=ast.Name(id="mean" | "sum" | "min" | "max" as function)):
                if self.unit is not None:
                    return self._over_members(node, function)
                (column,) = self.arguments(node, count=1)
                return tree.Aggregate(function, self.column(column).name)
            case ast.Call():
                raise self._unknown_call(node, TRUTH_FUNCTIONS, "truth, and here stands a number")
            case ast.BoolOp() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
                message = "A comparison stands where a value is expected."
                raise self.wrong(node, message, "Join comparisons with `and` or `or`.")
            case ast.Tuple() | ast.Set() | ast.List():
                raise self.wrong(node, "Values in a row stand only before and after `in`.")
        raise self.refuse(node)

    def _over_members(self, node: ast.Call, function: str) -> tree.Node:
        """Read an aggregate over the members of a unit."""
        if self.unit is None:
            message = "count counts the members of a unit, and the rule names none."
            raise self.wrong(node, message, f"Write by and its column: {_HEADS}.")
        if self.among_members:
            message = "An aggregate over members stands within another."
            raise self.wrong(node, message, "Aggregate columns, or use two rules.")
        self.among_members = True
        try:
            if function != "count":
                operand: tree.Node | None = self._amount(self.arguments(node, count=1)[0])
            elif node.args or node.keywords:
                operand = self.truth(self.arguments(node, count=1)[0])
            else:
                operand = None
        finally:
            self.among_members = False
        return tree.UnitAggregate(cast(Any, function), operand, self.unit)

    def _amount(self, node: ast.expr) -> tree.Node:
        """Read a value that one can calculate with."""
        found = self.number(node)
        if isinstance(found, tree.Text | tree.Flag):
            raise self.wrong(node, "One cannot calculate with this: it is no number.")
        return found

    def _constant(self, node: ast.Constant) -> tree.Node:
        value = node.value
        if isinstance(value, bool):
            return tree.Flag(value)
        if isinstance(value, str):
            return tree.Text(value)
        if value is None:
            raise self.wrong(node, "Rules have no None.", "Write missing(x) or known(x).")
        if not isinstance(value, int | float):
            raise self.wrong(node, "This is neither a number nor text.")
        if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
            message = "This whole number has more digits than a float64 keeps (2**53)."
            raise self.wrong(node, message)
        if abs(value) > LARGEST:
            raise self.wrong(node, f"This number is larger than {LARGEST:g}.")
        return tree.Constant(value)

    def _sum(self, node: ast.BinOp) -> tree.Node:
        terms: list[ast.expr] = []
        signs: list[int] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add | ast.Sub):
            terms.append(first.right)
            signs.append(1 if isinstance(first.op, ast.Add) else -1)
            first = first.left
        if len(terms) >= MOST_TERMS:
            raise self.wrong(node, f"More than {MOST_TERMS} terms in a sum.")
        amounts = tuple(self._amount(term) for term in (first, *reversed(terms)))
        return self._checked(node, tree.Sum(amounts, (1, *reversed(signs))))

    def _power(self, node: ast.BinOp) -> tree.Node:
        base = self._amount(node.left)
        power = self.number(node.right)
        match power:
            case tree.Constant(value) if 0 < value <= LARGEST_POWER:
                return self._checked(node, tree.Arithmetic("**", base, power))
        message = f"A power is a number above 0, at most {LARGEST_POWER}, written out."
        raise self.wrong(node.right, message, "Divide for a negative power: 1 / x.")

    def _checked(self, node: ast.BinOp, made: tree.Arithmetic | tree.Sum) -> tree.Node:
        """Refuse a division by zero, and numbers that are too large."""
        if isinstance(made, tree.Arithmetic) and made.operator == "/" and constant(made.right) == 0:
            raise self.wrong(node.right, "This divides by zero.")
        value = constant(made)
        if value is not None and abs(value) > LARGEST:
            raise self.wrong(node, f"This number is larger than {LARGEST:g}.")
        return made

    def _unknown_call(self, node: ast.Call, misplaced: tuple[str, ...], gives: str) -> Wrong:
        if not isinstance(node.func, ast.Name):
            if type(node.func) in INSTEAD:
                return self.refuse(node.func)
            return self.wrong(node, "Only the functions of rules can be called.")
        name = node.func.id
        if name in misplaced:
            hint = "Compare it with something." if misplaced is NUMBER_FUNCTIONS else ""
            return self.wrong(node, f"{name} gives a {gives}.", hint)
        if name == "table":
            hint = '(a, b) in table("pairs.csv")'
            return self.wrong(node, "A table stands only after `in`.", hint)
        near = get_close_matches(name, _EVERY_FUNCTION, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        hint += f"Rules know {', '.join(_EVERY_FUNCTION)}."
        return self.wrong(node.func, f"Rules have no function {name!r}.", hint)

    def _compare(self, node: ast.Compare) -> tree.Node:
        if any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            raise self.wrong(node, "Rules have no `is`.", "Write missing(x), known(x) or ==.")
        if any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            if len(node.ops) > 1:
                raise self.wrong(node, "`in` stands in no chain.", "Join two rules with `and`.")
            return self._member(node)
        sides = [node.left, *node.comparators]
        operands = tuple(self.number(side) for side in sides)
        made = tree.Compare(operands, cast(Any, tuple(_COMPARE[type(op)] for op in node.ops)))
        for (left, operator, right), (first, second) in zip(made.pairs, pairwise(sides)):
            self._check_side(first, left, operator, right)
            self._check_side(second, right, operator, left)
        return made

    def _check_side(self, at: ast.expr, this: tree.Node, operator: str, other: tree.Node) -> None:
        """Refuse text and flags that are compared with numbers, or for order."""
        if not isinstance(this, tree.Text | tree.Flag):
            return
        if isinstance(other, tree.Computed):
            kind = "text" if isinstance(this, tree.Text) else "True or False"
            raise self.wrong(at, f"A number is compared with {kind}.", "Numbers have no quotes.")
        is_date = isinstance(this, tree.Text) and tree.is_date(this.value)
        if operator not in ("==", "!=") and not is_date:
            message = "Text has no order, except dates written as 2024-01-31."
            raise self.wrong(at, message, "List the values: x in {...}.")

    def _member(self, node: ast.Compare) -> tree.Node:
        left = node.left.elts if isinstance(node.left, ast.Tuple) else [node.left]
        if not left:
            raise self.wrong(node.left, "Something is missing here: a column.")
        operands = tuple(self.number(each) for each in left)
        for each, operand in zip(left, operands, strict=True):
            if isinstance(operand, tree.Text | tree.Flag | tree.Constant):
                message = "The left side of `in` is a column."
                raise self.wrong(each, message, 'For example x in {"a"}.')
            if len(operands) > 1 and not isinstance(operand, tree.ColumnRef):
                raise self.wrong(each, "Only columns stand in a row before `in`.")
        inside = isinstance(node.ops[0], ast.In)
        return tree.Member(operands, self._among(node.comparators[0], operands), inside)

    def _among(
        self, node: ast.expr, operands: tuple[tree.Node, ...]
    ) -> tree.Literals | tree.Lookup:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "table":
                return self._lookup(node, operands)
            if node.func.id == "range":
                raise self.wrong(node, "Rules have no ranges.", "Write 0 <= x <= 10.")
            raise self._unknown_call(node, (), "")
        if not isinstance(node, ast.Set | ast.List | ast.Tuple):
            if type(node) in INSTEAD and not isinstance(node, ast.Dict):
                raise self.refuse(node)
            message = "After `in` stands a set of values or a table."
            raise self.wrong(node, message, 'x in {"a", "b"}')
        if not node.elts:
            raise self.wrong(node, "The set is empty, so no record could obey.")
        rows = [self._row(each, len(operands)) for each in node.elts]
        for place in range(len(operands)):
            texts = [isinstance(row[place], str) for row in rows]
            if any(texts) and not all(texts):
                odd = texts.index(not texts[0])
                raise self.wrong(node.elts[odd], "Text and numbers stand in one set.")
            if texts[0] and not isinstance(operands[place], tree.ColumnRef):
                raise self.wrong(node.elts[0], "A number is compared with text.")
        return tree.Literals(tuple(dict.fromkeys(rows)))

    def _row(self, node: ast.expr, width: int) -> tuple[int | float | str, ...]:
        cells = node.elts if isinstance(node, ast.Tuple) and width > 1 else [node]
        if len(cells) != width:
            raise self.wrong(node, f"{width} values are expected here, one for each column.")
        row: list[int | float | str] = []
        for cell in cells:
            value = self.number(cell) if isinstance(cell, ast.Constant | ast.UnaryOp) else None
            if not isinstance(value, tree.Constant | tree.Text):
                if type(cell) in INSTEAD:
                    raise self.refuse(cell)
                raise self.wrong(cell, "A set holds numbers or texts, written out.")
            row.append(value.value)
        return tuple(row)

    def _lookup(self, node: ast.Call, operands: tuple[tree.Node, ...]) -> tree.Lookup:
        (argument,) = self.arguments(node, count=1)
        if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
            raise self.wrong(argument, 'table("...") takes the name of a file, in quotes.')
        names = [operand.name for operand in operands if isinstance(operand, tree.ColumnRef)]
        if len(names) < len(operands):
            raise self.wrong(node, "Only columns can be looked up in a table.")
        try:
            return tree.Lookup(argument.value, read_lookup(argument.value, names, self.folder))
        except Wrong as problem:
            raise self.wrong(argument, problem.message, problem.hint) from None

    def _syntax(self) -> ast.expr:
        """Let Python say how the text hangs together."""
        source, places = self.part.source, self.part.places
        if not source:
            raise Wrong(places[-1] - 1, places[-1], "Something is missing here: a comparison.")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return ast.parse(source, mode="eval").body
        except SyntaxError as error:
            # A habit such as a single = is the likelier cause than where Python gave up.
            bare = re.sub(r"\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])*'", lambda m: "_" * len(m[0]), source)
            for habit, hint in HABITS:
                if found := re.search(habit, bare):
                    raise Wrong(*self._span(*found.span()), "This is not a rule.", hint) from None
            at = min(max((error.offset or 1) - 1, 0), len(source) - 1)
            text = str(error.msg).split(". Perhaps")[0].capitalize()
            text = "This is not a rule." + (f" {text}." if text != "Invalid syntax" else "")
            raise Wrong(*self._span(at, at + 1), text, EXAMPLE) from None
        except (ValueError, RecursionError, MemoryError, Warning) as error:
            text = "It is nested too deeply" if not isinstance(error, ValueError) else str(error)
            message = f"This cannot be read. {text.capitalize()}."
            raise Wrong(places[0], places[-1], message) from None

    def _span(self, start: int, end: int) -> tuple[int, int]:
        places = self.part.places
        return places[start], max(places[end - 1] + 1, places[start] + 1)

    def wrong(self, node: ast.AST, message: str, hint: str = "") -> Wrong:
        """Return a mistake that points at a node."""
        expression, source = cast(ast.expr, node), self.part.source.encode()
        ends = (expression.col_offset, expression.end_col_offset)  # in bytes
        start, end = (len(source[:end].decode()) for end in ends)
        return Wrong(*self._span(start, end), message, hint)

    def column(self, node: ast.expr) -> tree.ColumnRef:
        """Read a name of a column: bare, or col("...")."""
        if isinstance(node, ast.Name):
            # The parser writes names in another way where Unicode has two (NFKC): take the text.
            source = self.part.source.encode()
            name = source[node.col_offset : node.end_col_offset].decode()
            if name.startswith("__") and name.endswith("__"):
                message = f"{name} is a name of Python's."
                raise self.wrong(node, message, f"A column? Write `{name}`.")
            return tree.ColumnRef(name)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "col":
            (argument,) = self.arguments(node, count=1)
            if isinstance(argument, ast.Constant) and type(argument.value) in (str, int):
                return tree.ColumnRef(cast(Name, argument.value))
            raise self.wrong(argument, 'col("...") takes the name of a column, in quotes.')
        if type(node) in INSTEAD:
            raise self.refuse(node)
        raise self.wrong(node, "The name of a column is expected here.", "Give one column, bare.")

    def arguments(self, node: ast.Call, count: int | None = None) -> list[ast.expr]:
        """Return the arguments of a call of a known function."""
        function = cast(ast.Name, node.func).id
        if node.keywords:
            raise self.wrong(node, f"{function} takes no named arguments.")
        if not node.args or (count is not None and len(node.args) != count):
            expected = "one argument" if count == 1 else "at least one argument"
            raise self.wrong(node, f"{function} takes {expected}, and has {len(node.args)}.")
        return node.args

    def refuse(self, node: ast.AST) -> Wrong:
        """Return the mistake for something that other languages have."""
        message, hint = INSTEAD.get(type(node), ("Rules cannot say this.", ""))
        return self.wrong(node, message, hint)
