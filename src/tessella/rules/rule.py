"""One rule: a line of a rules file cut into its parts, and what was read of it.

    name: if condition: rule ± tolerance  # label

A rule across the members of a unit names the unit's column once, as `by NAME`, after an aggregate
or at the end: `max(age) by household >= 16`, `count(relat == 1) == 1 by household`. Wherever it
stands, every aggregate of the rule is then taken over the members of each unit.

The line is cut before Python's parser sees any of it. Quotes, backticks and brackets are followed,
so that a `#`, a `:` or a `±` inside of them means nothing. Every part remembers where in the line
it stands, so that a caret can point there.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from .._types import Name
from ..exceptions import Mistake
from . import expressions as tree
from .classify import forms_of
from .forms import Form, Unfixed

# Where a rule says several things, its kind is that of the hardest to keep.
_HARDEST = ("general", "multiplicative", "linear", "governing", "interval")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Something that must be true of every record.

    Rules are read from text (`Rules.parse`), not built by hand.

    Attributes
    ----------
    body : tree.Node
        What must be true; in a conditional rule, of the records that meet the condition.
    condition : tree.Node or None
        Which records the rule is about; None for all.
    tolerance : float or None
        How far comparisons of numbers in the body may be off; None for rounding only.
    name, label : str
        A short name, unique in its rules, and what the rule means in words.
    origin, line : str and int, or None
        The file or text it was read from, and the line there.

    Examples
    --------
    >>> from tessella.rules import Rules
    >>> rule = Rules.parse("if status == 'employed': 0 < hours <= 3000  # paid work")[0]
    >>> rule.text
    'if status == "employed": 0 < hours <= 3000'
    >>> rule.kind, rule.columns, rule.label
    ('conditional', ('status', 'hours'), 'paid work')
    >>> rule.forms
    (Interval(column='hours', low=0.0, high=3000.0, open_low=True, open_high=False),)

    With `by` and the column of a unit, aggregates are over the members of each unit; a record
    breaks such a rule if any member of its unit does.

    >>> rule = Rules.parse("count(relation == 'head') == 1 by household")[0]
    >>> rule.text, rule.kind, rule.unit
    ('count(relation == "head") by household == 1', 'across members', 'household')
    """

    body: tree.Node
    condition: tree.Node | None = None
    tolerance: float | None = None
    name: str = ""
    label: str = ""
    origin: str | None = field(default=None, compare=False)
    line: int | None = field(default=None, compare=False)

    @cached_property
    def text(self) -> str:
        """The rule as one line, without name and label."""
        condition = "" if self.condition is None else f"if {tree.write(self.condition)}: "
        tolerance = ""
        if (value := self.tolerance) is not None:
            short = value.is_integer() and value < 1e15
            tolerance = f" ± {int(value) if short else repr(value)}"
        return f"{condition}{tree.write(self.body)}{tolerance}"

    @cached_property
    def columns(self) -> tuple[Name, ...]:
        """The columns that the rule names, condition first."""
        names = [name for truth in self.truths for name in tree.columns_of(truth)]
        return tuple(dict.fromkeys(names))

    @cached_property
    def unit(self) -> Name | None:
        """The column that names units, where the rule is about their members; else None."""
        named = (tree.unit_of(truth) for truth in self.truths)
        return next((unit for unit in named if unit is not None), None)

    @property
    def truths(self) -> tuple[tree.Node, ...]:
        """The condition, if there is one, and the body."""
        return (self.body,) if self.condition is None else (self.condition, self.body)

    def nodes(self) -> Iterator[tree.Node]:
        """Go through all nodes of the condition and the body."""
        return (node for truth in self.truths for node in tree.walk(truth))

    def transformed(self, change: Callable[[tree.Node], tree.Node]) -> Rule:
        """Return the rule with each node changed."""
        condition = None if self.condition is None else tree.transform(self.condition, change)
        return replace(self, body=tree.transform(self.body, change), condition=condition)

    @cached_property
    def truth(self) -> tree.Node:
        """The whole rule as one truth: not the condition, or the body."""
        if self.condition is None:
            return self.body
        return tree.Or((tree.negated(self.condition), self.body))

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """What the body says, as forms that must all hold (`tessella.rules.forms`)."""
        return forms_of(self.body)

    @cached_property
    def condition_forms(self) -> tuple[Form, ...]:
        """What the condition says, as forms; empty without a condition."""
        return () if self.condition is None else forms_of(self.condition)

    @property
    def kind(self) -> str:
        """What kind of rule it is.

        "conditional", or the kind of its forms: "interval", "set", "tuples", "linear",
        "governing", "multiplicative", "yes or no", "missing", "observed", "either", "always",
        "across members", "general". Where it says several things: the first of general,
        multiplicative, linear, governing, interval that is among them, else "several".
        """
        if self.condition is not None:
            return "conditional"
        kinds = {form.shape if isinstance(form, Unfixed) else form.kind for form in self.forms}
        if len(kinds) == 1:
            return kinds.pop()
        if kinds <= set(_HARDEST):
            return next(kind for kind in _HARDEST if kind in kinds)
        return "several"

    @property
    def is_affine(self) -> bool:
        """Whether all that it says is linear, so that a mean of records that obey it obeys it."""
        return self.condition is None and all(form.affine for form in self.forms)

    @property
    def is_convex(self) -> bool:
        """Whether the records that obey it are known to form a convex set."""
        return self.condition is None and all(form.convex for form in self.forms)

    @property
    def is_multiplicative(self) -> bool:
        """Whether it says products equal, or stay below, a constant, of every record."""
        return self.kind == "multiplicative" and len({form.kind for form in self.forms}) == 1

    @property
    def is_conditional(self) -> bool:
        """Whether it is about some records only."""
        return self.condition is not None

    @property
    def where(self) -> str:
        """The rule's name and, if known, its place: "balance (line 3 of a.rules)"."""
        if self.line is None:
            return self.name
        return f"{self.name} (line {self.line}{f' of {self.origin}' if self.origin else ''})"

    def named(self, default: str) -> str:
        """Return the full line: name unless it is the default, text, label."""
        name = ""
        if self.name != default:
            name = f"{self.name if is_plain_name(self.name) else tree.quoted(self.name)}: "
        label = f"  # {self.label}" if self.label else ""
        return f"{name}{self.text}{label}"

    def __str__(self) -> str:
        return self.named("")

    def __repr__(self) -> str:
        return f"<Rule {self.named('')}>"


LONGEST = 20_000  # characters in a line: bounds the time and the stack that parsing takes
DEEPEST = 50  # brackets within brackets

_NAME = re.compile(r'\s*(?:([^\W\d][\w.\-]*)|"((?:[^"\\]|\\["\\])*)")\s*:(?!=)')
_PLAIN = re.compile(r"[^\W\d][\w.\-]*")
_IF = re.compile(r"\s*if\b")
_NUMBER = re.compile(r"\s*(\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)\s*")
# The unit of a rule across members, after something that is whole: `by household`, by `my unit`.
_BY = re.compile(r"by\s+(?:([^\W\d]\w*)|`([^`]+)`|col\((\d+)\)|col\(\"([^\"\\]+)\"\))(?![\w(.])")
_PAIRS = {")": "(", "]": "[", "}": "{"}


class Wrong(Exception):
    """A mistake at characters start to end of the line that is being read."""

    def __init__(self, start: int, end: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.start, self.end, self.message, self.hint = start, end, message, hint

    def mistake(self, where: str, text: str) -> Mistake:
        """Return the mistake to report, with the text that it points into."""
        return Mistake(
            where=where, message=self.message, hint=self.hint, text=text, start=self.start,
            width=self.end - self.start,
        )  # fmt: skip


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
    unit: Name | None = None
    unit_at: tuple[int, int] = (0, 0)
    label: str = ""


@dataclass
class _Marks:
    """Where the signs that cut a line stand, outside of quotes and brackets."""

    end: int  # of the rule: where the comment begins
    colons: list[int]
    tolerances: list[tuple[int, int]]
    ticks: list[tuple[int, int]]
    units: list[tuple[int, int, Name]]


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
    unit, unit_at = _unit(marks)
    for begin, end, _ in marks.units:  # places stay those of the line
        line = f"{line[:begin]}{' ' * (end - begin)}{line[end:]}"

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
        name=name, condition=condition, body=_part(line, start, end, marks), tolerance=tolerance,
        tolerance_at=at, unit=unit, unit_at=unit_at, label=label,
    )  # fmt: skip


def _unit(marks: _Marks) -> tuple[Name | None, tuple[int, int]]:
    """Return the unit that a rule names, and where."""
    if not marks.units:
        return None, (0, 0)
    start, end, unit = marks.units[0]
    for begin, after, other in marks.units[1:]:
        if other != unit:
            message = f"A rule is about the members of one unit, and this names {other!r} too."
            raise Wrong(begin, after, message, "Write two rules, one for each unit.")
    return unit, (start, end)


def _mark(line: str) -> _Marks:
    marks = _Marks(len(line), [], [], [], [])
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
        elif sign == "b" and (unit := _by(line, at)):
            marks.units.append((at, unit.end(), _unit_name(unit)))
            at = unit.end() - 1
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


def _by(line: str, at: int) -> re.Match[str] | None:
    """Match `by NAME`, where it follows something that is whole; a column may be named `by`."""
    found, before = _BY.match(line, at), line[:at].rstrip()
    if not found or not before or (len(before) == at and before[-1] not in ")]}`"):
        return None
    last = re.findall(r"\w*$", before)[0]
    if keyword.iskeyword(last) or keyword.iskeyword(found[1] or ""):
        return None
    return found if last or before[-1] in ")]}`\"'." else None


def _unit_name(found: re.Match[str]) -> Name:
    bare, ticked, number, quoted = found.groups()
    return int(number) if number else bare or ticked or quoted


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
            call = f"col({tree.quoted(line[tick + 1 : after - 1])})"
            source.append(call)
            places += [tick] * (len(call) - 1) + [after - 1]
        at = after
    text = "".join(source)
    shift = len(text) - len(text.lstrip())
    text = text.strip()
    return Fragment(text, (*places[shift : shift + len(text)], end))


def check_tolerance(body: tree.Node, start: int, end: int) -> None:
    """Raise `Wrong` where a body has nothing that a tolerance loosens."""
    loosened = strict = False
    for node in tree.walk(body):
        match node:
            case tree.Compare(operands, operators):
                loosened |= not any(isinstance(o, tree.Text | tree.Flag) for o in operands)
                strict |= "!=" in operators
            case tree.Member(_, among, inside):
                loosened |= all(len(r) == 1 and not isinstance(r[0], str) for r in among.rows)
                strict |= not inside
            case tree.Not():
                strict = True
    if strict or not loosened:
        why = "`not` and != have no looser form." if strict else "this rule has none."
        message = f"A tolerance loosens comparisons of numbers; {why}"
        hint = "Take the tolerance away, or write the rule with ==, <= or >=."
        raise Wrong(start, end, message, hint)


def check_unit(truths: Iterable[tree.Node | None], start: int, end: int) -> None:
    """Raise `Wrong` where `by NAME` stands in a rule without an aggregate."""
    if all(truth is None or tree.unit_of(truth) is None for truth in truths):
        message = "`by` names the unit of an aggregate, and the rule has none."
        hint = "Aggregates are count(...), sum(x), mean(x), min(x) and max(x)."
        raise Wrong(start, end, message, hint)
