"""The rules of a table: read, look at, write, confront, check."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from .._types import Name
from ..exceptions import BadOptionError, UnknownOptionError
from .classify import forms_of
from .expressions import (
    Aggregate,
    Node,
    Observed,
    Or,
    columns_of,
    needs_original,
    negated,
    quoted,
    transform,
    walk,
    write,
)
from .forms import Form, Unfixed
from .scanner import is_plain_name

if TYPE_CHECKING:
    from ..schema import Schema
    from .check import Finding
    from .confront import Confrontation


# Where a rule says several things, its kind is that of the hardest to keep.
_HARDEST = ("general", "multiplicative", "linear", "governing", "interval")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Something that must be true of every record.

    Rules are read from text (`Rules.parse`), not built by hand.

    Attributes
    ----------
    body : Node
        What must be true; in a conditional rule, of the records that meet the condition.
    condition : Node or None
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
    """

    body: Node
    condition: Node | None = None
    tolerance: float | None = None
    name: str = ""
    label: str = ""
    origin: str | None = field(default=None, compare=False)
    line: int | None = field(default=None, compare=False)

    @cached_property
    def text(self) -> str:
        """The rule as one line, without name and label."""
        condition = "" if self.condition is None else f"if {write(self.condition)}: "
        tolerance = ""
        if (value := self.tolerance) is not None:
            short = value.is_integer() and value < 1e15
            tolerance = f" ± {int(value) if short else repr(value)}"
        return f"{condition}{write(self.body)}{tolerance}"

    @cached_property
    def columns(self) -> tuple[Name, ...]:
        """The columns that the rule names, condition first."""
        return tuple(dict.fromkeys(name for truth in self.truths for name in columns_of(truth)))

    @property
    def truths(self) -> tuple[Node, ...]:
        """The condition, if there is one, and the body."""
        return (self.body,) if self.condition is None else (self.condition, self.body)

    def nodes(self) -> Iterator[Node]:
        """Go through all nodes of the condition and the body."""
        return (node for truth in self.truths for node in walk(truth))

    def transformed(self, change: Callable[[Node], Node]) -> Rule:
        """Return the rule with each node changed."""
        condition = None if self.condition is None else transform(self.condition, change)
        return replace(self, body=transform(self.body, change), condition=condition)

    @cached_property
    def truth(self) -> Node:
        """The whole rule as one truth: not the condition, or the body."""
        if self.condition is None:
            return self.body
        return Or((negated(self.condition), self.body))

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
        "general". Where it says several things: the first of general, multiplicative, linear,
        governing, interval that is among them, else "several".
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
            name = f"{self.name if is_plain_name(self.name) else quoted(self.name)}: "
        label = f"  # {self.label}" if self.label else ""
        return f"{name}{self.text}{label}"

    def __str__(self) -> str:
        return self.named("")

    def __repr__(self) -> str:
        return f"<Rule {self.named('')}>"


class Rules(Sequence[Rule]):
    """What must be true of every record of a table.

    Parameters
    ----------
    rules : iterable of Rule or str
        Rules, or lines of text; `Rules.parse`, `read`, `from_toml` and `from_validate` are the
        other ways in.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.rules import Rules
    >>> rules = Rules.parse('''
    ... 0 <= age <= 125              # values in an interval
    ... net + tax == gross ± 1       # linear
    ... if age < 15: gross == 0
    ... ''')
    >>> [rule.kind for rule in rules]
    ['interval', 'linear', 'conditional']
    >>> table = pd.DataFrame(
    ...     {"age": [40, 12, 11], "net": [90, 5, 0], "tax": [12, 0, None], "gross": [101, 5, 0]}
    ... )
    >>> print(rules.confront(table))
    3 records, 3 rules: 1 rule is broken, by 1 record.
    rule  holds  breaks  unknown  worst  text
    R1        3       0        0         0 <= age <= 125
    R2        2       0        1         net + tax == gross ± 1
    R3        2       1        0      5  if age < 15: gross == 0
    """

    def __init__(self, rules: Iterable[Rule | str] = ()) -> None:
        if isinstance(rules, str):
            raise BadOptionError("rules", rules, "a list of rules; for text, call Rules.parse")
        given: list[Any] = list(rules)
        if given and all(isinstance(rule, str) for rule in given):
            given = list(Rules.parse(given))
        self._rules = tuple(rule for rule in given if isinstance(rule, Rule))
        if len(self._rules) < len(given):
            raise BadOptionError("rules", given, "either rules or lines of text")
        self._by_name = {rule.name: rule for rule in self._rules}
        if len(self._by_name) < len(self._rules):
            names = [rule.name for rule in self._rules]
            twice = next(name for name in names if names.count(name) > 1)
            raise BadOptionError("rules", twice, "each rule a name of its own")

    @classmethod
    def parse(
        cls,
        text: str | Iterable[str],
        *,
        folder: str | Path | None = None,
        origin: str | None = None,
    ) -> Rules:
        """Read rules from text, one a line, or from a list of lines.

        Parameters
        ----------
        text : str or iterable of str
            The rules. Empty lines and lines that only hold a comment are passed over.
        folder : path, optional
            Where the files lie that rules name in table("...").
        origin : str, optional
            Where the text comes from, for messages.

        Raises
        ------
        RuleSyntaxError
            With every mistake of every line.
        """
        from .reading import from_text

        return from_text(text, folder=folder, origin=origin)

    @classmethod
    def of(cls, given: Any) -> Rules:
        """Return rules as they are, or read from text, a rule, or a list of either."""
        if isinstance(given, Rules):
            return given
        if isinstance(given, str):
            return cls.parse(given)
        if isinstance(given, Rule):
            return cls([given])
        if isinstance(given, list | tuple):
            return cls(given)
        raise BadOptionError("rules", given, "tessella.Rules, text, or a list of texts")

    @classmethod
    def read(cls, path: str | Path) -> Rules:
        """Read a file of rules: TOML (.toml), R's validate (.yaml, .yml), or text (any other)."""
        from .reading import read_file

        return read_file(Path(path))

    @classmethod
    def from_toml(
        cls, text: str, *, folder: str | Path | None = None, origin: str | None = None
    ) -> Rules:
        """Read rules from TOML: `rules = ["...", ...]`, or tables [[rules]].

        A table has `rule` and, if wanted, `name`, `label` and `tolerance`.
        """
        from .reading import from_toml

        return from_toml(text, folder=folder, origin=origin)

    @classmethod
    def from_validate(cls, text: str, *, origin: str | None = None) -> Rules:
        """Read the YAML of R's package validate; what cannot be translated is reported."""
        from .validate import from_validate

        return from_validate(text, origin=origin)

    def to_text(self) -> str:
        """Write the rules as text that reads back as the same rules."""
        return "".join(f"{rule.named(f'R{at}')}\n" for at, rule in enumerate(self, start=1))

    def to_toml(self) -> str:
        """Write the rules as TOML that reads back as the same rules."""
        from .reading import to_toml

        return to_toml(self)

    def to_validate(self) -> str:
        """Write the rules as the YAML of R's validate, or say which ones it cannot say."""
        from .validate import to_validate

        return to_validate(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each rule."""
        return tuple(self._by_name)

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns that the rules name, each once, in the order of the text."""
        return tuple(dict.fromkeys(name for rule in self for name in rule.columns))

    def for_columns(self, columns: Iterable[Hashable], *, only: bool = False) -> Rules:
        """Return the rules that name at least one of these columns, or `only` such columns."""
        wanted = {columns} if isinstance(columns, str) else set(columns)
        if only:
            return Rules(rule for rule in self if wanted.issuperset(rule.columns))
        return Rules(rule for rule in self if wanted.intersection(rule.columns))

    def of_kind(self, *kinds: str) -> Rules:
        """Return the rules of some kinds (see `Rule.kind`)."""
        return Rules(rule for rule in self if rule.kind in kinds)

    def fix(self, table: Any, *, schema: Schema | None = None) -> Rules:
        """Look up mean(x), observed(x) and the like in the original table, once and for all.

        A fixed rule asks of a released table what it asked of the original one: values that exist
        in the original, an income below the original mean. It holds original values: it is as
        confidential as the table, and its text does not show them.
        """
        from .confront import fix

        return fix(self, table, schema=schema)

    def unfixed(self) -> Rules:
        """Return the same rules without what `fix` looked up in the original table."""

        def forget(node: Node) -> Node:
            if isinstance(node, Aggregate):
                return replace(node, value=None)
            return replace(node, domain=None) if isinstance(node, Observed) else node

        return Rules(rule.transformed(forget) for rule in self)

    @property
    def is_fixed(self) -> bool:
        """Whether no rule asks for the original table any more."""
        return not any(needs_original(node) for rule in self for node in rule.nodes())

    def confront(
        self, table: Any, *, tolerance: float = 1e-9, schema: Schema | None = None
    ) -> Confrontation:
        """Find out which records break which rules, and by how much.

        Parameters
        ----------
        table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
            The table; column 0, 1, ... of an array is col(0), col(1), ...
        tolerance : float
            Numbers are equal if they differ by no more than this, times the size of the terms;
            whole numbers only if they are the same. A rule's own ± comes on top.
        schema : Schema, optional
            Says which values stand for "missing".

        Raises
        ------
        RuleTableError
            If a rule cannot be judged: a column that is not there, text compared with a number, a
            division by zero that the rule does not guard against. All of them are named.
        """
        from .confront import confront

        return confront(self, table, tolerance=tolerance, schema=schema)

    def check(self) -> list[Finding]:
        """Look for duplicate, always-true, contradictory and redundant rules, without data.

        A redundant rule is obeyed by every complete record that obeys the others; where values are
        missing it may still be the only one that can be judged. Rules with a tolerance of their
        own are compared with others only for being the same.

        Examples
        --------
        >>> from tessella.rules import Rules
        >>> for finding in Rules(["a <= b", "b <= c", "a <= c", "x > 3", "x in {4, 5}"]).check():
        ...     print(finding)
        redundant: R4 follows from R5: x > 3
        redundant: R3 follows from R1 and R2: a <= c
        """
        from .check import check

        return check(self)

    @overload
    def __getitem__(self, at: int | str) -> Rule: ...
    @overload
    def __getitem__(self, at: slice) -> Rules: ...
    def __getitem__(self, at: int | str | slice) -> Rule | Rules:
        if isinstance(at, slice):
            return Rules(self._rules[at])
        if isinstance(at, str):
            if at not in self._by_name:
                raise UnknownOptionError("rule", at, self.names[:20])
            return self._by_name[at]
        return self._rules[at]

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rules) and self._rules == other._rules

    def __hash__(self) -> int:
        return hash(self._rules)

    def __str__(self) -> str:
        return self.to_text().rstrip("\n")

    def __repr__(self) -> str:
        return f"<Rules: {len(self)} on {len(self.columns)} columns>\n{self}"
