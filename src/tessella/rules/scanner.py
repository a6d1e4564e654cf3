"""One line of a rules file, cut into its parts before Python's parser sees any of it.

    name: if condition: rule ± tolerance  # label

Quotes, backticks and brackets are followed, so that a `#`, a `:` or a `±` inside of them means
nothing. Every part remembers where in the line it stands, so that a caret can point there.
"""

from __future__ import annotations

import ast
import keyword
import re
import warnings
from dataclasses import dataclass
from typing import cast

from .._types import Name
from ..exceptions import Mistake
from .expressions import ColumnRef, quoted

LONGEST = 20_000  # characters in a line: bounds the time and the stack that parsing takes
DEEPEST = 50  # brackets within brackets

_NAME = re.compile(r'\s*(?:([^\W\d][\w.\-]*)|"((?:[^"\\]|\\["\\])*)")\s*:(?!=)')
_PLAIN = re.compile(r"[^\W\d][\w.\-]*")
_IF = re.compile(r"\s*if\b")
_NUMBER = re.compile(r"\s*(\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)\s*")
_PAIRS = {")": "(", "]": "[", "}": "{"}


class Wrong(Exception):
    """A mistake at characters start to end of the line that is being read."""

    def __init__(self, start: int, end: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.start, self.end, self.message, self.hint = start, end, message, hint

    def mistake(self, where: str, text: str) -> Mistake:
        """Return the mistake to report, with the text that it points into."""
        return Mistake(
            where=where,
            message=self.message,
            hint=self.hint,
            text=text,
            start=self.start,
            width=self.end - self.start,
        )


@dataclass(frozen=True)
class Fragment:
    """A piece of Python and, for each of its characters, the place in the line."""

    source: str
    places: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class LineParts:
    """What stands in a line; `body` is None in a line that holds no rule."""

    name: str | None = None
    condition: Fragment | None = None
    body: Fragment | None = None
    tolerance: float | None = None
    tolerance_at: tuple[int, int] = (0, 0)
    label: str = ""


@dataclass
class _Marks:
    """Where the signs that cut a line stand, outside of quotes and brackets."""

    end: int  # of the rule: where the comment begins
    colons: list[int]
    tolerances: list[tuple[int, int]]
    ticks: list[tuple[int, int]]


def is_plain_name(name: str) -> bool:
    """Say whether a rule's name needs no quotes."""
    return bool(_PLAIN.fullmatch(name)) and not keyword.iskeyword(name)


def cut(line: str) -> LineParts:
    """Cut a line into its parts, or raise `Wrong`."""
    if len(line) > LONGEST:
        message = f"The line has {len(line):,} characters; a rule has at most {LONGEST:,}."
        hint = 'A long list of values belongs in a file: x in table("values.csv").'
        raise Wrong(0, 1, message, hint)
    marks = _mark(line)
    label = line[marks.end + 1 :].strip()
    if not line[: marks.end].strip():
        return LineParts(label=label)

    name, start = _name(line, marks)
    condition = None
    if found := _IF.match(line, start, marks.end):
        colon = next((at for at in marks.colons if at >= start), None)
        word = found.end()
        if colon is None:
            hint = "Write: if condition: rule, for example if age < 15: income == 0."
            raise Wrong(word - 2, word, "A condition has no rule.", hint)
        condition = _part(line, word, colon, marks)
        start = colon + 1
    tolerance, at, end = _tolerance(line, start, marks)
    return LineParts(
        name=name,
        condition=condition,
        body=_part(line, start, end, marks),
        tolerance=tolerance,
        tolerance_at=at,
        label=label,
    )


def _mark(line: str) -> _Marks:
    marks = _Marks(len(line), [], [], [])
    open_brackets: list[tuple[str, int]] = []
    at = 0
    while at < len(line):
        sign = line[at]
        if sign in "\"'":
            at = _close(line, at, sign)
        elif sign == "`":
            closing = line.find("`", at + 1)
            if closing < 0:
                raise Wrong(at, len(line), "A backtick is opened and never closed.")
            marks.ticks.append((at, closing + 1))
            at = closing
        elif sign in "([{":
            open_brackets.append((sign, at))
            if len(open_brackets) > DEEPEST:
                raise Wrong(at, at + 1, f"More than {DEEPEST} brackets within brackets.")
        elif sign in ")]}":
            if not open_brackets or open_brackets[-1][0] != _PAIRS[sign]:
                raise Wrong(at, at + 1, f"The bracket {sign!r} closes nothing that is open.")
            open_brackets.pop()
        elif sign == "#":
            marks.end = at
            break
        elif sign == ":" and not open_brackets:
            marks.colons.append(at)
        elif sign == "±" or line.startswith("+/-", at):
            marks.tolerances.append((at, at + (1 if sign == "±" else 3)))
            at = marks.tolerances[-1][1] - 1
        at += 1
    if open_brackets:
        sign, at = open_brackets[-1]
        message = f"The bracket {sign!r} is opened and never closed."
        raise Wrong(at, at + 1, message, "A rule stands on one line.")
    return marks


def _close(line: str, at: int, quote: str) -> int:
    """Return the place of the quote that ends the text which starts at a place."""
    end = at + 1
    while end < len(line) and line[end] != quote:
        end += 2 if line[end] == "\\" else 1
    if end >= len(line):
        raise Wrong(at, len(line), f"The text that starts with {quote} never ends.")
    return end


def _name(line: str, marks: _Marks) -> tuple[str | None, int]:
    found = _NAME.match(line, 0, marks.end)
    if not found:
        return None, 0
    bare, in_quotes = found.groups()
    if bare is not None and keyword.iskeyword(bare):
        return None, 0
    name = bare if bare is not None else re.sub(r"\\(.)", r"\1", in_quotes)
    if not name.strip():
        raise Wrong(*found.span(), "The name of the rule is empty.")
    return name, found.end()


def _tolerance(line: str, start: int, marks: _Marks) -> tuple[float | None, tuple[int, int], int]:
    early = [span for span in marks.tolerances if span[0] < start]
    here = [span for span in marks.tolerances if span[0] >= start]
    misplaced = "A tolerance stands where none can."
    hint = "A tolerance is one number at the end of the rule: net + tax == gross ± 1."
    if early or len(here) > 1:
        raise Wrong(*(early or here[1:])[0], misplaced, hint)
    if not here:
        return None, (0, 0), marks.end
    sign, after = here[0]
    number = _NUMBER.fullmatch(line, after, marks.end)
    if not number:
        raise Wrong(sign, max(after, len(line[: marks.end].rstrip())), misplaced, hint)
    value = float(number[1])
    if value > 1e150:
        raise Wrong(*number.span(1), "This tolerance is larger than any number of a table.", hint)
    return value, (sign, number.end(1)), sign


def _part(line: str, start: int, end: int, marks: _Marks) -> Fragment:
    """Cut out a part; names in backticks become col("...")."""
    source: list[str] = []
    places: list[int] = []
    at = start
    for tick, after in [span for span in marks.ticks if start <= span[0] < end] + [(end, end)]:
        source.append(line[at:tick])
        places += range(at, tick)
        if tick < end:
            call = f"col({quoted(line[tick + 1 : after - 1])})"
            source.append(call)
            places += [tick] * (len(call) - 1) + [after - 1]
        at = after
    text = "".join(source)
    shift = len(text) - len(text.lstrip())
    text = text.strip()
    return Fragment(text, (*places[shift : shift + len(text)], end))


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


class FragmentParser:
    """The text of a part, its tree, and mistakes that point into the line."""

    def __init__(self, part: Fragment) -> None:
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
                    raise Wrong(*self._span(*found.span()), "This is not a rule.", hint) from None
            at = min(max((error.offset or 1) - 1, 0), len(source) - 1)
            text = str(error.msg).split(". Perhaps")[0].capitalize()
            raise Wrong(*self._span(at, at + 1), f"This is not a rule. {text}.") from None
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

    def column(self, node: ast.expr) -> ColumnRef:
        """Read a name of a column: bare, or col("...")."""
        if isinstance(node, ast.Name):
            # The parser writes names in another way where Unicode has two (NFKC): take the text.
            source = self.part.source.encode()
            name = source[node.col_offset : node.end_col_offset].decode()
            if name.startswith("__") and name.endswith("__"):
                message = f"{name} is a name of Python's."
                raise self.wrong(node, message, f"A column? Write `{name}`.")
            return ColumnRef(name)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "col":
            (argument,) = self.arguments(node, count=1)
            if isinstance(argument, ast.Constant) and type(argument.value) in (str, int):
                return ColumnRef(cast(Name, argument.value))
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
