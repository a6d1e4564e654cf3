"""The rules of a table: read from text and files, look at, write, confront, check.

Files hold text, TOML, or the YAML of R's package validate, chosen by their names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from .._notebook import Code, Display, Displayed, Section
from .._output import toml_text
from .._parameters import Number
from .._types import Name
from .._wording import counted
from ..exceptions import (
    BadFileError,
    BadOptionError,
    DataNotFoundError,
    Mistake,
    RuleSyntaxError,
    UnknownOptionError,
)
from . import expressions as tree
from .grammar import Reader
from .rule import Rule, Wrong, check_tolerance, check_unit, cut

if TYPE_CHECKING:
    from ..schema import Schema
    from .check import Finding
    from .confront import Confrontation
    from .suggest import Suggestions

LARGEST = 10 * 2**20  # bytes of a rules file: far more than anybody writes
SHOWN = 100  # rules that a notebook shows
AT_LEAST_0 = Number(least=0)
_KEYS = ("rule", "name", "label", "tolerance")


class Rules(Displayed, Sequence[Rule]):
    """Rules that every record of a table must obey.

    Parameters
    ----------
    rules : iterable of Rule or str
        Rules, or lines of text; `Rules.parse`, `read`, `from_toml` and `from_validate` are the
        other constructors.

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
        cls, text: str | Iterable[str], *, folder: str | Path | None = None,
        origin: str | None = None,
    ) -> Rules:  # fmt: skip
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
        if isinstance(text, str):
            if len(text) > LARGEST:
                message = f"The text has {len(text):,} characters; {LARGEST:,} are allowed."
                raise file_error(origin, message, where="size")
            lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        else:
            lines = []
            for line in text:
                if not isinstance(line, str) or "\n" in line.strip("\n"):
                    raise BadOptionError("rules", line, "a list of texts, one rule in each")
                lines.append(line.strip("\n"))
        filled = [(at, line) for at, line in enumerate(lines, start=1) if line.strip()]
        entries = [RuleEntry(text=line, where=f"line {at}", line=at) for at, line in filled]
        return from_entries(entries, folder=folder, origin=origin)

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
        path = Path(path)
        origin = path.name
        try:
            if path.stat().st_size > LARGEST:
                raise file_error(origin, f"The file has more than {LARGEST:,} bytes.")
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                missing = f"There is no file of rules {str(path)!r}. Check the name and the folder."
                raise DataNotFoundError(missing) from None
            problem = f"it cannot be read ({str(error.strerror).lower()})"
            raise BadFileError(path, problem, "Give a file of rules") from None
        except UnicodeDecodeError:
            message = "The file is not text in UTF-8."
            raise file_error(origin, message, "Save it as UTF-8.") from None
        if path.suffix.lower() == ".toml":
            return cls.from_toml(text, folder=path.parent, origin=origin)
        if path.suffix.lower() in (".yaml", ".yml"):
            return cls.from_validate(text, origin=origin)
        return cls.parse(text, folder=path.parent, origin=origin)

    @classmethod
    def from_toml(
        cls, text: str, *, folder: str | Path | None = None, origin: str | None = None
    ) -> Rules:
        """Read rules from TOML: `rules = ["...", ...]`, or tables [[rules]].

        A table has `rule` and, if wanted, `name`, `label` and `tolerance`.
        """
        try:
            given = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise file_error(origin, f"This is not TOML: {error}.") from None
        rules = given.get("rules")
        if not isinstance(rules, list):
            hint = 'Write rules = ["age >= 0"], or tables [[rules]] with rule = "age >= 0".'
            raise file_error(origin, "There is no list of rules.", hint)
        mistakes: list[Mistake] = []
        entries: list[RuleEntry] = []
        for at, rule in enumerate(rules, start=1):
            entry = {"rule": rule} if isinstance(rule, str) else rule
            wrong = [Mistake(where=f"rule {at}", message=m, hint=h) for m, h in _faults(entry)]
            mistakes += wrong
            if not wrong:
                text = entry["rule"]
                text += f" ± {entry['tolerance']!r}" if "tolerance" in entry else ""
                given = {key: entry.get(key) for key in ("name", "label")}
                entries.append(RuleEntry(text=text, where=f"rule {at}", **given))
        return from_entries(entries, folder=folder, origin=origin, mistakes=mistakes)

    @classmethod
    def from_validate(cls, text: str, *, origin: str | None = None) -> Rules:
        """Read the YAML of R's package validate; what cannot be translated is reported."""
        from .validate import from_validate

        return from_validate(text, origin=origin)

    @classmethod
    def suggest(
        cls, table: Any, *, schema: Schema | None = None, known: Rules | None = None,
        holds: float = 0.95, false_rate: float = 0.01, random_state: int | None = 0,
    ) -> Suggestions:  # fmt: skip
        """Find rules that nearly all records of a table obey, each tested against chance.

        Parameters
        ----------
        table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
            The table.
        schema : Schema, optional
            Says what is a category, what stands for "missing", what names units; else guessed.
        known : Rules, optional
            Rules that are known already: they, and what follows from them, are not suggested.
        holds : float
            Share of records that equalities must hold for; others may be broken by a fifth as many.
        false_rate : float
            The expected number of false suggestions, at most, in a table of independent columns.
        random_state : int or None
            Chooses the records that are looked at, if there are more than 20,000; all are counted.
        """
        from .suggest import suggest

        return suggest(
            table, schema=schema, known=known, holds=holds, false_rate=false_rate,
            random_state=random_state,
        )  # fmt: skip

    def to_text(self) -> str:
        """Write the rules as text that reads back as the same rules."""
        return "".join(f"{rule.named(f'R{at}')}\n" for at, rule in enumerate(self, start=1))

    def to_toml(self) -> str:
        """Write the rules as TOML that reads back as the same rules."""
        tables = []
        for at, rule in enumerate(self, start=1):
            lines = ["[[rules]]"]
            if rule.name != f"R{at}":
                lines.append(f"name = {toml_text(rule.name)}")
            lines.append(f"rule = {toml_text(rule.text)}")
            if rule.label:
                lines.append(f"label = {toml_text(rule.label)}")
            tables.append("\n".join(lines) + "\n")
        return "\n".join(tables) or "rules = []\n"

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

        def forget(node: tree.Node) -> tree.Node:
            if isinstance(node, tree.Aggregate):
                return replace(node, value=None)
            return replace(node, domain=None) if isinstance(node, tree.Observed) else node

        return Rules(rule.transformed(forget) for rule in self)

    @property
    def is_fixed(self) -> bool:
        """Whether no rule asks for the original table any more."""
        return not any(tree.needs_original(node) for rule in self for node in rule.nodes())

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
            Says which values stand for "missing", and which column names the unit.

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

    def _display(self) -> Display:
        labelled = any(rule.label for rule in self)
        rows: list[list[str | Code]] = [["rule", "text", *["label"] * labelled]]
        for rule in self[:SHOWN]:
            rows.append([rule.name, Code(rule.text), *[rule.label or ""] * labelled])
        more = [f"... and {len(self) - SHOWN:,} more"] if len(self) > SHOWN else []
        columns = counted(len(self.columns), "column")
        return Display(
            title=f"{counted(len(self), 'rule')} on {columns}",
            sections=[Section(rows=rows, more=more, texts=range(3))] if len(self) else [],
        )

    def __str__(self) -> str:
        return self.to_text().rstrip("\n")

    def __repr__(self) -> str:
        return f"<Rules: {len(self)} on {len(self.columns)} columns>\n{self}"


@dataclass(frozen=True, kw_only=True)
class RuleEntry:
    """A rule that is still text; what is given beside it wins over what is in the text."""

    text: str
    where: str
    line: int | None = None
    name: str | None = None
    label: str | None = None


def from_entries(
    entries: Iterable[RuleEntry], *, folder: str | Path | None = None, origin: str | None = None,
    mistakes: Iterable[Mistake] = (),
) -> Rules:  # fmt: skip
    """Read rules that another format holds as text; all mistakes are reported together."""
    wrong = list(mistakes)
    rules: list[Rule] = []
    read: list[RuleEntry] = []
    for entry in entries:
        found = parse_line(entry.text, where=entry.where, folder=folder)
        if isinstance(found, list):
            wrong += found
            continue
        name = entry.name if entry.name is not None else found.name or f"R{len(rules) + 1}"
        label = " ".join((found.label if entry.label is None else entry.label).split())
        rules.append(replace(found, name=name, label=label, origin=origin, line=entry.line))
        read.append(entry)
    seen: dict[str, RuleEntry] = {}
    for rule, entry in zip(rules, read):
        if rule.name in seen:
            message = f"The name {rule.name!r} is that of another rule ({seen[rule.name].where})."
            hint = "A rule without a name is called R1, R2, ... by its place."
            wrong.append(Mistake(where=entry.where, message=message, hint=hint, text=entry.text))
        seen[rule.name] = entry
    if wrong:
        raise RuleSyntaxError(wrong, origin=origin or "the rules")
    return Rules(rules)


def parse_line(line: str, *, where: str, folder: str | Path | None = None) -> Rule | list[Mistake]:
    """Read one line: a rule (its name may be empty), nothing ([]), or what is wrong with it."""
    mistakes: list[Mistake] = []

    def attempt(read: Callable[..., Any], *given: Any) -> Any:
        try:
            return read(*given)
        except Wrong as wrong:
            mistakes.append(wrong.mistake(where, line))

    place = None if folder is None else Path(folder)
    parts = attempt(cut, line)
    if parts is None or parts.body is None:
        return mistakes
    condition: Any = parts.condition and attempt(Reader(parts.condition, place, parts.unit).read)
    body = attempt(Reader(parts.body, place, parts.unit).read)
    if not mistakes and parts.unit is not None:
        attempt(check_unit, [condition, body], *parts.unit_at)
    if not mistakes and parts.tolerance is not None:
        attempt(check_tolerance, body, *parts.tolerance_at)
    if mistakes:
        return mistakes
    return Rule(
        name=parts.name or "", condition=condition, body=body, tolerance=parts.tolerance,
        label=parts.label,
    )  # fmt: skip


def _faults(given: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(given, Mapping):
        yield f"{given!r} is no rule.", 'Write a text, or a table with rule = "age >= 0".'
        return
    for key in given:
        if key not in _KEYS:
            yield f"A rule has no {key!r}.", f"It has {', '.join(_KEYS)}."
    rule = given.get("rule")
    if not isinstance(rule, str) or not rule.strip() or "\n" in rule:
        yield "The rule has no text, or more than one line of it.", 'Write rule = "age >= 0".'
    for key in ("name", "label"):
        if key in given and not (isinstance(given[key], str) and given[key].isprintable()):
            yield f"The {key} is {given[key]!r}.", "Give a text of one line."
    tolerance = given.get("tolerance", 0)
    if not AT_LEAST_0.accepts(tolerance):
        yield f"The tolerance is {tolerance!r}.", f"Give {AT_LEAST_0}."


def file_error(
    origin: str | None, message: str, hint: str = "", where: str = "file"
) -> RuleSyntaxError:
    """Return the error for a file of rules that cannot be read at all."""
    mistake = Mistake(where=where, message=message, hint=hint)
    return RuleSyntaxError([mistake], origin=origin or "the rules")
