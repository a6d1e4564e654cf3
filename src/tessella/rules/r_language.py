"""The part of R in which validate's rules are written, translated both ways.

R groups operators in another way than Python (`!` binds less tightly than a comparison) and has
`%in%`, `if (a) b`, `&` and `|`; each construct that both languages have is translated, every
other is a `Wrong` with the place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .expressions import (
    Aggregate,
    And,
    Arithmetic,
    ColumnRef,
    Compare,
    Constant,
    Flag,
    Function,
    Literals,
    Lookup,
    Member,
    Missing,
    Negative,
    Node,
    Not,
    Observed,
    Or,
    Sum,
    Text,
    column_text,
    quoted,
)
from .rule import Rule
from .scanner import Wrong

__all__ = ["Unsayable", "from_r", "to_r"]

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
            raise Wrong(token.start, token.end, f"{text!r} is expected here.")
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
            return column_text(token.text.strip("`"))
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
                    raise self.wrong(
                        token,
                        f"Without na.rm = TRUE, {function} is unknown as soon as one value is.",
                        f"Here it is taken over the known values: write {function}(x, na.rm=TRUE).",
                    )
                return f"{function}({plain[0]})"
            case "in_range":
                ends = [
                    *plain[1:],
                    *(named.get(end, "") for end in ("min", "max")[len(plain) - 1 :]),
                ]
                if len(ends) == 2 and all(ends) and not set(named) - {"min", "max"}:
                    return f"({ends[0]} <= {plain[0]} <= {ends[1]})"
        raise self.wrong(token, f"Rules have no function {function!r} of this form.")

    def values(self) -> str:
        """Read what stands after %in%: c(...), or one value."""
        token = self.take()
        if token.text == "c":
            plain, named = self.arguments()
            if plain and not named:
                return "{" + ", ".join(_bare(each) for each in plain) + "}"
        elif token.kind in ("number", "text"):
            if self.next.text == ":":
                raise self.wrong(self.next, "Rules have no ranges.", "List the values: c(1, 2).")
            return "{" + token.text.removesuffix("L") + "}"
        raise self.wrong(token, "After %in% stands c(...) with values.")


_REASONS = {
    ":=": "Rules assign nothing: write the expression where it is used.",
    "<-": "Rules assign nothing: write the expression where it is used.",
    "=": "An equality is written with ==.",
    "~": "Functional dependencies are no rules about one record.",
    "$": "Name the column itself.",
    ":": "Rules have no ranges.",
}


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(-") else text


def to_r(rule: Rule) -> str:
    """Write a rule in R, or raise `Unsayable`."""
    body = _write(rule.body) if rule.tolerance is None else _loosened(rule.body, rule.tolerance)
    return body if rule.condition is None else f"if ({_write(rule.condition)}) {body}"


def _loosened(node: Node, tolerance: float) -> str:
    if isinstance(node, And):
        return " & ".join(f"({_loosened(each, tolerance)})" for each in node.operands)
    if not isinstance(node, Compare):
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


def _write(node: Node) -> str:
    match node:
        case Constant(value):
            return repr(value)
        case Text(value):
            return _r_text(value)
        case Flag(value):
            return str(value).upper()
        case ColumnRef(name):
            return _r_name(name)
        case Aggregate(function, column):
            return f"{function}({_r_name(column)}, na.rm = TRUE)"
        case Missing(column, missing):
            return f"{'' if missing else '!'}is.na({_r_name(column)})"
        case Negative(operand):
            return f"-{_bracket(operand)}"
        case Function("abs", (operand,)):
            return f"abs({_write(operand)})"
        case Function(function, operands):
            return f"p{function}({', '.join(map(_write, operands))})"
        case Sum(terms, signs):
            text = _bracket(terms[0])
            for sign, term in zip(signs[1:], terms[1:], strict=True):
                text += f" {'+' if sign > 0 else '-'} {_bracket(term)}"
            return text
        case Arithmetic(operator, left, right):
            return f"{_bracket(left)} {'^' if operator == '**' else operator} {_bracket(right)}"
        case Compare():
            return " & ".join(f"{_write(a)} {op} {_write(b)}" for a, op, b in node.pairs)
        case Member((operand,), Literals(rows), inside):
            values = [row[0] for row in rows]
            listed = ", ".join(_r_text(v) if isinstance(v, str) else repr(v) for v in values)
            text = f"{_bracket(operand)} %in% c({listed})"
            return text if inside else f"!({text})"
        case Not(operand):
            return f"!({_write(operand)})"
        case And(operands):
            return " & ".join(f"({_write(each)})" for each in operands)
        case Or(operands):
            return " | ".join(f"({_write(each)})" for each in operands)
        case Member(_, Lookup()):
            raise Unsayable('table("...")')
        case Member():
            raise Unsayable("rows of values")
        case Observed():
            raise Unsayable("observed(...)")
    raise Unsayable(type(node).__name__)


def _bracket(node: Node) -> str:
    plain = isinstance(node, ColumnRef | Aggregate | Function) or (
        isinstance(node, Constant) and node.value >= 0
    )
    return _write(node) if plain else f"({_write(node)})"


def _r_text(text: str) -> str:
    if "\0" in text:
        raise Unsayable("a text with a null character")
    return quoted(text)


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
