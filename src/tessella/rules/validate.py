"""The YAML of R's package validate, and the part of R in which its rules are written, both ways.

R groups operators in another way than Python (`!` binds less tightly than a comparison) and has
`%in%`, `if (a) b`, `&` and `|`; each construct that both languages have is translated, every
other is a `Wrong` with the place.

References
----------
van der Loo, M. P. J. and de Jonge, E. (2021). Data validation infrastructure for R. Journal of
Statistical Software 97(10).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from .._lazy import optional
from ..exceptions import Mistake, RuleTranslationError
from . import expressions as tree
from .collection import RuleEntry, Rules, file_error, from_entries, parse_line
from .rule import Rule, Wrong

LARGEST_YAML = 2**20  # characters; YAML is read slowly


def from_validate(text: str, *, origin: str | None = None) -> Rules:
    """Read the YAML of R's validate: see `Rules.from_validate`."""
    listed = enumerate(_listed(text, origin), start=1)
    read = [_validate_entry(given, f"rule {at}", at) for at, given in listed]
    mistakes = [each for each in read if isinstance(each, Mistake)]
    entries = [each for each in read if isinstance(each, RuleEntry)]
    return from_entries(entries, origin=origin, mistakes=mistakes)


def _listed(text: str, origin: str | None) -> Iterator[Any]:
    """Yield what stands in the lists of rules of all documents of the text."""
    yaml = optional("yaml", extra="validate", purpose="The YAML of R's validate")
    wrong = partial(file_error, origin)
    if len(text) > LARGEST_YAML:
        raise wrong(f"The text has more than {LARGEST_YAML:,} characters.")
    try:
        # A few anchors can stand for millions of nodes; no rules file needs one.
        anchors = (yaml.tokens.AnchorToken, yaml.tokens.AliasToken)
        anchored = any(isinstance(token, anchors) for token in yaml.scan(text, yaml.SafeLoader))
        loaded = [] if anchored else list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise wrong(f"This is not YAML: {' '.join(str(error).split())}.") from None
    if anchored:
        raise wrong("Anchors and aliases (& and *) of YAML are not read.", "Write them out.")
    lists = []
    for document in (each for each in loaded if each is not None):
        if not isinstance(document, Mapping):
            raise wrong("There is no list of rules.", "Write rules: and, below it, - expr: ...")
        if "include" in document:
            raise wrong("The file includes other files, which are not read.", "Read each of them.")
        if "rules" in document:
            lists.append(document["rules"])
    if not lists or not all(isinstance(each, list) for each in lists):
        raise wrong("There is no list of rules.", "Write rules: and, below it, - expr: ...")
    for each in lists:
        yield from each


def _validate_entry(given: Any, where: str, at: int) -> RuleEntry | Mistake:
    if not isinstance(given, Mapping) or not isinstance(given.get("expr"), str):
        return Mistake(where=where, message="There is no expr.", hint="Write expr: age >= 0.")
    expression = " ".join(given["expr"].split())
    name, label = given.get("name"), given.get("label") or given.get("title") or ""
    try:
        line = from_r(expression)
        name = None if name in (None, "") or name == f"R{at}" else str(name)
        if name is not None and not name.isprintable():
            raise Wrong(0, 1, f"The name {name!r} is not text of one line.")
    except Wrong as wrong:
        return wrong.mistake(where, expression)
    found = parse_line(line, where=where)
    if isinstance(found, list):  # the caret stands in R's text, not in ours
        return Wrong(0, len(expression), found[0].message, found[0].hint).mistake(where, expression)
    return RuleEntry(text=line, where=where, name=name, label=str(label))


def to_validate(rules: Rules) -> str:
    """Write rules as the YAML of R's validate: see `Rules.to_validate`."""
    yaml = optional("yaml", extra="validate", purpose="The YAML of R's validate")
    problems, listed = [], []
    for rule in rules:
        try:
            listed.append({"expr": to_r(rule), "name": rule.name, "label": rule.label})
        except Unsayable as what:
            problems.append(f"{rule.where}: {what} ({rule.text})")
    if problems:
        raise RuleTranslationError(problems, language="R's validate")
    text: str = yaml.safe_dump({"rules": listed}, sort_keys=False, allow_unicode=True, width=10**6)
    return text


LONGEST = 20_000
DEEPEST = 60
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?L?)
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<name>`[^`]+`|[^\W\d_][\w.]*|\.[^\W\d][\w.]*)
    | (?P<sign>%[^%\s]*%|<=|>=|==|!=|:=|<-|->|&&|\|\||\*\*|[-+*/^<>!&|(){},:=~\[\]$@?;])
    )""",
    re.VERBOSE,
)
# How tightly R's binary operators bind; ^ and ** bind to the right.
_BINDS = {
    "|": 1, "||": 1, "&": 2, "&&": 2,
    "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "%in%": 7, "%vin%": 7, "^": 10, "**": 10,
}  # fmt: skip
_NOT, _SIGN = 3, 9
_WORDS = {"|": "or", "||": "or", "&": "and", "&&": "and", "^": "**"}
_NAMED = {"TRUE": "True", "FALSE": "False", "T": "True", "F": "False"}


class Unsayable(Exception):
    """Something that R's validate has no words for."""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def from_r(source: str) -> str:
    """Translate a rule of R's validate into a line of ours, or raise `Wrong`."""
    if len(source) > LONGEST:
        raise Wrong(0, 1, f"The rule has more than {LONGEST:,} characters.")
    return _Translator(source).rule()


class _Translator:
    def __init__(self, source: str) -> None:
        self.tokens: list[_Token] = []
        self.depth = 0
        self.at = 0
        place = 0
        while source[place:].strip():
            found = _TOKEN.match(source, place)
            if not found or found.lastgroup is None:
                place += len(source[place:]) - len(source[place:].lstrip())
                raise Wrong(place, place + 1, "This sign is not known.")
            kind = found.lastgroup
            self.tokens.append(_Token(kind, found[kind], found.start(kind), found.end()))
            place = found.end()
        self.tokens.append(_Token("end", "", len(source), len(source) + 1))

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def take(self, text: str | None = None) -> _Token:
        token = self.next
        if text is not None and token.text != text:
            raise self.wrong(token, f"{text!r} is expected here.")
        self.at += 1
        return token

    def wrong(self, token: _Token, message: str, hint: str = "") -> Wrong:
        return Wrong(token.start, token.end, message, hint)

    def rule(self) -> str:
        condition = ""
        if self.next.text == "if":
            self.take()
            self.take("(")
            condition = f"if {self.expression(0)}: "
            self.take(")")
        body = self.expression(0)
        if self.next.text == "else":
            raise self.wrong(self.next, "Rules have no else.", "Write two rules.")
        if self.next.kind != "end":
            raise self.wrong(self.next, "This has no place here.", _REASONS.get(self.next.text, ""))
        return condition + body

    def expression(self, least: int) -> str:
        """Read operators that bind at least so tightly; brackets keep R's grouping."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.wrong(self.next, f"More than {DEEPEST} operations within operations.")
        left = self.operand()
        while self.next.kind == "sign" and _BINDS.get(self.next.text, -1) >= least:
            token = self.take()
            binds = _BINDS[token.text]
            if token.text in ("%in%", "%vin%"):
                left = f"({left} in {self.values()})"
                continue
            right = self.expression(binds if token.text in ("^", "**") else binds + 1)
            left = f"({left} {_WORDS.get(token.text, token.text)} {right})"
        self.depth -= 1
        return left

    def operand(self) -> str:
        token = self.take()
        if token.kind == "number":
            return token.text.removesuffix("L")
        if token.kind == "text":
            return token.text
        if token.text == "!":
            return f"(not {self.expression(_NOT)})"
        if token.text in ("-", "+"):
            return f"({token.text}{self.expression(_SIGN)})"
        if token.text in ("(", "{"):
            inner = self.expression(0)
            self.take(")" if token.text == "(" else "}")
            return f"({inner})"
        if token.kind == "name":
            if self.next.text == "(":
                return self.call(token)
            if token.text in _NAMED:
                return _NAMED[token.text]
            if token.text in ("NA", "NULL", "Inf", "NaN", "."):
                raise self.wrong(token, f"Rules have no {token.text}.", "Write is.na(x).")
            return tree.column_text(token.text.strip("`"))
        raise self.wrong(token, "This has no place here.", _REASONS.get(token.text, ""))

    def arguments(self) -> tuple[list[str], dict[str, str]]:
        plain: list[str] = []
        named: dict[str, str] = {}
        self.take("(")
        while self.next.text != ")":
            if self.next.kind == "name" and self.tokens[self.at + 1].text == "=":
                name = self.take().text
                self.take("=")
                named[name] = self.expression(0)
            else:
                plain.append(self.expression(0))
            if self.next.text != ")":
                self.take(",")
        self.take(")")
        return plain, named

    def call(self, token: _Token) -> str:
        function = token.text
        plain, named = self.arguments()
        match function:
            case "is.na" if len(plain) == 1 and not named:
                return f"missing({plain[0]})"
            case "is_complete" | "complete.cases" if plain and not named:
                return "(" + " and ".join(f"known({each})" for each in plain) + ")"
            case "abs" if len(plain) == 1 and not named:
                return f"abs({plain[0]})"
            case "pmin" | "pmax" if len(plain) > 1 and not named:
                return f"{function[1:]}({', '.join(plain)})"
            case "mean" | "sum" | "min" | "max" if len(plain) == 1:
                if named != {"na.rm": "True"}:
                    hint = (
                        f"Here it is taken over the known values: write {function}(x, na.rm=TRUE)."
                    )
                    message = "Without na.rm = TRUE, {} is unknown as soon as one value is."
                    raise self.wrong(token, message.format(function), hint)
                return f"{function}({plain[0]})"
            case "sum_by" | "mean_by" | "min_by" | "max_by" if len(plain) + len(named) == 2:
                bare = re.sub(r"\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])*'", "_", plain[0])
                counts = function == "sum_by" and re.search(_TRUTH, bare)  # R adds up TRUE as 1
                return f"{'count' if counts else function[:-3]}({plain[0]}){_by(plain, named)}"
            case "exists_one" | "exists_any" if len(plain) + len(named) == 2:
                compared = "== 1" if function == "exists_one" else ">= 1"
                return f"(count({plain[0]}){_by(plain, named)} {compared})"
            case "in_range":
                ends = plain[1:] + [named.get(n, "") for n in ("min", "max")[len(plain) - 1 :]]
                if len(ends) == 2 and all(ends) and not set(named) - {"min", "max"}:
                    return f"({ends[0]} <= {plain[0]} <= {ends[1]})"
        raise self.wrong(token, f"Rules have no function {function!r} of this form.")

    def values(self) -> str:
        """Read what stands after %in%: c(...), or one value."""
        token = self.take()
        if token.text == "c":
            plain, named = self.arguments()
            if plain and not named:
                bare = [each[1:-1] if each.startswith("(-") else each for each in plain]
                return "{" + ", ".join(bare) + "}"
        elif token.kind in ("number", "text"):
            if self.next.text == ":":
                raise self.wrong(self.next, "Rules have no ranges.", "List the values: c(1, 2).")
            return "{" + token.text.removesuffix("L") + "}"
        raise self.wrong(token, "After %in% stands c(...) with values.")


def _by(plain: list[str], named: Mapping[str, str]) -> str:
    """Return the unit of an aggregate of R, its second argument."""
    return f" by {plain[1] if len(plain) > 1 else named.get('by', '')}"


_TRUTH = r" (?:==|!=|<=?|>=?|in|and|or) |\(not |\bmissing\("
_ASSIGN = "Rules assign nothing: write the expression where it is used."
_REASONS = {
    ":=": _ASSIGN, "<-": _ASSIGN, "=": "An equality is written with ==.",
    "~": "Functional dependencies are no rules about one record.",
    "$": "Name the column itself.",
    ":": "Rules have no ranges.",
}  # fmt: skip


def to_r(rule: Rule) -> str:
    """Write a rule in R, or raise `Unsayable`."""
    body = _write(rule.body) if rule.tolerance is None else _loosened(rule.body, rule.tolerance)
    return body if rule.condition is None else f"if ({_write(rule.condition)}) {body}"


def _loosened(node: tree.Node, tolerance: float) -> str:
    if isinstance(node, tree.And):
        return " & ".join(f"({_loosened(each, tolerance)})" for each in node.operands)
    if not isinstance(node, tree.Compare):
        raise Unsayable("a tolerance within `or` or a set")
    parts = []
    for left, operator, right in node.pairs:
        gap = f"{_write(left)} - {_bracket(right)}"
        if operator == "==":
            parts.append(f"abs({gap}) <= {tolerance!r}")
        elif operator in ("<", "<="):
            parts.append(f"{gap} {operator} {tolerance!r}")
        else:
            parts.append(f"{gap} {operator} -{tolerance!r}")
    return " & ".join(parts)


def _write(node: tree.Node) -> str:
    match node:
        case tree.Constant(value):
            return repr(value)
        case tree.Text(value):
            return _r_text(value)
        case tree.Flag(value):
            return str(value).upper()
        case tree.ColumnRef(name):
            return _r_name(name)
        case tree.Aggregate(function, column):
            return f"{function}({_r_name(column)}, na.rm = TRUE)"
        case tree.UnitAggregate(function, operand, unit):
            if operand is None:
                raise Unsayable("count() of all members")
            function = "sum" if function == "count" else function
            return f"{function}_by({_write(operand)}, by = {_r_name(unit)})"
        case tree.Missing(column, missing):
            return f"{'' if missing else '!'}is.na({_r_name(column)})"
        case tree.Negative(operand):
            return f"-{_bracket(operand)}"
        case tree.Function("abs", (operand,)):
            return f"abs({_write(operand)})"
        case tree.Function(function, operands):
            return f"p{function}({', '.join(map(_write, operands))})"
        case tree.Sum(terms, signs):
            text = _bracket(terms[0])
            for sign, term in zip(signs[1:], terms[1:], strict=True):
                text += f" {'+' if sign > 0 else '-'} {_bracket(term)}"
            return text
        case tree.Arithmetic(operator, left, right):
            return f"{_bracket(left)} {'^' if operator == '**' else operator} {_bracket(right)}"
        case tree.Compare():
            return " & ".join(f"{_write(a)} {op} {_write(b)}" for a, op, b in node.pairs)
        case tree.Member((operand,), tree.Literals(rows), inside):
            values = [row[0] for row in rows]
            listed = ", ".join(_r_text(v) if isinstance(v, str) else repr(v) for v in values)
            text = f"{_bracket(operand)} %in% c({listed})"
            return text if inside else f"!({text})"
        case tree.Not(operand):
            return f"!({_write(operand)})"
        case tree.And(operands):
            return " & ".join(f"({_write(each)})" for each in operands)
        case tree.Or(operands):
            return " | ".join(f"({_write(each)})" for each in operands)
        case tree.Member(_, tree.Lookup()):
            raise Unsayable('table("...")')
        case tree.Member():
            raise Unsayable("rows of values")
        case tree.Observed():
            raise Unsayable("observed(...)")
    raise Unsayable(type(node).__name__)


def _bracket(node: tree.Node) -> str:
    plain = isinstance(node, tree.ColumnRef | tree.Aggregate | tree.Function) or (
        isinstance(node, tree.Constant) and node.value >= 0
    )
    return _write(node) if plain else f"({_write(node)})"


def _r_text(text: str) -> str:
    if "\0" in text:
        raise Unsayable("a text with a null character")
    return tree.quoted(text)


def _r_name(name: object) -> str:
    if not isinstance(name, str):
        raise Unsayable(f"a column named {name!r}, which is no text")
    if re.fullmatch(r"[^\W\d_][\w.]*", name) and name not in _RESERVED:
        return name
    if "`" in name or not name.isprintable() or not name:
        raise Unsayable(f"a column named {name!r}")
    return f"`{name}`"


_RESERVED = {
    "if", "else", "repeat", "while", "function", "for", "next", "break", "in",
    "TRUE", "FALSE", "T", "F", "NULL", "NA", "NaN", "Inf",
}  # fmt: skip
