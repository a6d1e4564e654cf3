"""A part of a line as Python's parser sees it, with the way back from its nodes to the text."""

from __future__ import annotations

import ast
import re
import warnings
from typing import cast

from .._types import Name
from .expressions import Column
from .scanner import Part, Wrong

__all__ = ["INSTEAD", "Source"]

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
)
INSTEAD: dict[type[ast.AST], tuple[str, str]] = {
    ast.Attribute: ("Rules have no attributes.", "A name with a dot goes in backticks: `a.b`."),
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


class Source:
    """The text of a part, its tree, and mistakes that point into the line."""

    def __init__(self, part: Part) -> None:
        self.part = part

    def tree(self) -> ast.expr:
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
                    raise Wrong(
                        *self._span(found.start(), found.end()), "This is not a rule.", hint
                    ) from None
            at = min(max((error.offset or 1) - 1, 0), len(source) - 1)
            text = str(error.msg).split(". Perhaps")[0].capitalize()
            raise Wrong(*self._span(at, at + 1), f"This is not a rule. {text}.") from None
        except (ValueError, RecursionError, MemoryError, Warning) as error:
            text = "It is nested too deeply" if not isinstance(error, ValueError) else str(error)
            raise Wrong(
                places[0], places[-1], f"This cannot be read. {text.capitalize()}."
            ) from None

    def _span(self, start: int, end: int) -> tuple[int, int]:
        places = self.part.places
        return places[start], max(places[end - 1] + 1, places[start] + 1)

    def _where(self, node: ast.AST) -> tuple[int, int]:
        expression = cast(ast.expr, node)
        source = self.part.source.encode()
        start = len(source[: expression.col_offset].decode())
        end = len(source[: expression.end_col_offset].decode())
        return self._span(start, end)

    def wrong(self, node: ast.AST, message: str, hint: str = "") -> Wrong:
        """Return a mistake that points at a node."""
        return Wrong(*self._where(node), message, hint)

    def column(self, node: ast.expr) -> Column:
        """Read a name of a column: bare, or col("...")."""
        if isinstance(node, ast.Name):
            # The parser writes names in another way where Unicode has two (NFKC): take the text.
            source = self.part.source.encode()
            name = source[node.col_offset : node.end_col_offset].decode()
            if name.startswith("__") and name.endswith("__"):
                raise self.wrong(
                    node, f"{name} is a name of Python's.", f"A column? Write `{name}`."
                )
            return Column(name)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "col":
            (argument,) = self.arguments(node, count=1)
            if isinstance(argument, ast.Constant) and type(argument.value) in (str, int):
                return Column(cast(Name, argument.value))
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
