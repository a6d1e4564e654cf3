"""A table meets its rules: which records hold, break or leave open which rule, by how much."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._lazy import optional
from .._parameters import Number, parameters
from .._types import Floats, Integers, Signs
from .._wording import align, counted
from ..exceptions import RuleTableError, UnknownOptionError
from ..schema import Schema
from . import expressions as tree
from .collection import Rules
from .domain import Domain, Operands, misfits
from .rule import Rule
from .truth import Judge, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from .check import Finding


ROUNDING = 1e-9  # numbers are equal if they differ by less, times the size of their terms
BLOCK = 1 << 16  # records that are judged at a time: what is calculated stays in the cache


@dataclass(frozen=True, kw_only=True, repr=False)
class Confrontation:
    """What came out of confronting a table with rules.

    Attributes
    ----------
    rules : Rules
        The rules.
    signs : array of shape (n, number of rules), int8
        1 where a record holds a rule, -1 where it breaks it, 0 where that is unknown.
    applies : array of shape (number of rules,)
        How many records each rule is about: those that meet its condition.
    rows, amounts : tuples of arrays
        For each rule, the row numbers of the records that break it, and by how much.
    """

    rules: Rules
    signs: Signs
    applies: Integers
    rows: tuple[Integers, ...]
    amounts: tuple[Floats, ...]

    @property
    def n_records(self) -> int:
        """The number of records."""
        return len(self.signs)

    @property
    def all_hold(self) -> bool:
        """Whether no record is known to break a rule."""
        return not any(len(rows) for rows in self.rows)

    def breaking(self, rule: str | int | None = None) -> Integers:
        """Return the row numbers of the records that break a rule, or any rule; from 0."""
        if rule is None:
            return np.flatnonzero((self.signs < 0).any(axis=1))
        return self.rows[self._place(rule)]

    def amount(self, rule: str | int) -> Floats:
        """Return by how much each record of `breaking(rule)` breaks the rule.

        For a comparison it is the difference of its sides, for a set of numbers the distance to
        the nearest, for dates days; what has no size counts 1. A rule such as a < b that is
        broken by equality is broken by 0.
        """
        return self.amounts[self._place(rule)]

    def _place(self, rule: str | int) -> int:
        if isinstance(rule, str):
            if rule not in self.rules.names:
                raise UnknownOptionError("rule", rule, self.rules.names[:20])
            return self.rules.names.index(rule)
        return range(len(self.rules))[rule]

    def summary(self) -> pd.DataFrame:
        """Return a frame with a row for each rule.

        Operands: rule, kind, applies (records that meet the condition), holds, breaks, unknown,
        share (of the known that hold), worst (largest amount), text, label.
        """
        import pandas as pd

        holds = (self.signs > 0).sum(axis=0)
        breaks = np.array([len(rows) for rows in self.rows], dtype=np.int64)
        known = holds + breaks
        share = np.divide(holds, known, out=np.full(len(known), np.nan), where=known > 0)
        worst = [a.max() if len(a) else np.nan for a in self.amounts]
        of = {name: [getattr(r, name) for r in self.rules] for name in ("kind", "text", "label")}
        return pd.DataFrame({
            "rule": list(self.rules.names), "kind": of["kind"], "applies": self.applies,
            "holds": holds, "breaks": breaks, "unknown": self.n_records - known, "share": share,
            "worst": worst, "text": of["text"], "label": of["label"],
        })  # fmt: skip

    def broken(self) -> pd.DataFrame:
        """Return a frame with a row for each record and rule that it breaks: row, rule, amount."""
        import pandas as pd

        counts = [len(rows) for rows in self.rows]
        nothing = [np.empty(0)]
        frame = pd.DataFrame(
            {
                "row": np.concatenate([*self.rows, *nothing]).astype(np.int64),
                "rule": np.repeat(np.array(self.rules.names, dtype=object), counts),
                "amount": np.concatenate([*self.amounts, *nothing]),
            }
        )
        return frame.sort_values("row", kind="stable", ignore_index=True)

    @property
    def findings(self) -> list[Finding]:
        """What a person should look at: rules that no record satisfies, that judge nothing."""
        from .check import judged_findings

        found: list[Finding] = []
        for place, rule in enumerate(self.rules):
            holds, breaks = (int((self.signs[:, place] == sign).sum()) for sign in (1, -1))
            found += judged_findings(rule, holds, breaks, int(self.applies[place]))
        return found

    def picture(self) -> Any:
        """Draw how many records hold, break or leave open each rule, as a matplotlib figure."""
        return _picture(self)

    def __str__(self) -> str:
        broken = sum(len(rows) > 0 for rows in self.rows)
        verdict = "no record is known to break any."
        if broken:
            rules = "1 rule is" if broken == 1 else f"{broken} rules are"
            verdict = f"{rules} broken, by {counted(len(self.breaking()), 'record')}."
        sizes = f"{counted(self.n_records, 'record')}, {counted(len(self.rules), 'rule')}"
        lines = [f"{sizes}: {verdict}"]
        rows = [["rule", "holds", "breaks", "unknown", "worst", "text"]]
        for place, rule in enumerate(self.rules):
            counts = [f"{(self.signs[:, place] == sign).sum():,}" for sign in (1, -1, 0)]
            amounts = self.amounts[place]
            worst = f"{amounts.max():.6g}" if len(amounts) else ""
            rows.append([rule.name, *counts, worst, rule.text])
        lines += align(rows)
        lines += [str(finding) for finding in self.findings]
        return "\n".join(lines)

    __repr__ = __str__


@parameters(tolerance=[Number(least=0, below=1)])
def confront(
    rules: Rules, table: Any, *, tolerance: float = ROUNDING, schema: Schema | None = None
) -> Confrontation:
    """Confront a table with rules: see `Rules.confront`."""
    rounding = float(tolerance)
    columns = Operands(table, schema)
    fitted = _fitted(rules, columns)
    signs = np.empty((columns.n_rows, len(rules)), dtype=np.int8, order="F")
    applies = np.full(len(rules), columns.n_rows, dtype=np.int64)
    rows: list[Integers] = []
    sizes: list[Floats] = []
    problems: list[str] = []
    for place, rule in enumerate(fitted):
        domains = _domains(rule, columns)
        problem = _judge(rule, columns, rounding, domains, signs[:, place])
        if problem:
            problems.append(problem)
            continue
        if rule.condition is not None:
            met = np.empty(columns.n_rows, dtype=np.int8)
            _judge(Rule(body=rule.condition), columns, rounding, domains, met)
            if rule.unit is not None:
                met = columns.units(rule.unit).reduce(np.maximum, met)
            applies[place] = (met > 0).sum()
        found = np.flatnonzero(signs[:, place] < 0)
        here = Judge(columns, found, rounding=rounding, domains=domains)
        here = here.loosened(rule.tolerance or 0.0)
        rows.append(found)
        amount = here.amount(tree.positive(rule.body)) if len(found) else np.empty(0)
        if rule.unit is not None and len(found):  # a unit breaks a rule as its worst member does
            worst = np.zeros(columns.n_rows)
            worst[found] = amount
            amount = columns.units(rule.unit).reduce(np.maximum, worst)[found]
        sizes.append(amount)
    if problems:
        raise RuleTableError(problems)
    return Confrontation(
        rules=rules, signs=signs, applies=applies, rows=tuple(rows), amounts=tuple(sizes)
    )


def judge(
    truth: tree.Node, columns: Operands, *, allowance: float = 0.0, guarded: bool = False
) -> Signs:
    """Judge one truth, such as a rule's condition: 1, 0 or -1 for each record.

    A division by zero is an error; a record in which the truth hangs on one breaks it where the
    truth is `guarded`: one of several ways in which a rule may hold.
    """
    (rule,) = _fitted(Rules([Rule(body=truth, tolerance=allowance, name="The condition")]), columns)
    signs = np.empty(columns.n_rows, dtype=np.int8)
    problem = _judge(rule, columns, ROUNDING, _domains(rule, columns), signs, guarded=guarded)
    if problem:
        raise RuleTableError([problem])
    return signs


def amounts(truth: tree.Node, columns: Operands, *, allowance: float = 0.0) -> Floats:
    """Return by how much each record breaks a comparison: see `Confrontation.amount`."""
    judge = Judge(columns, slice(0, columns.n_rows), rounding=ROUNDING, allowance=allowance)
    return judge.amount(truth)


def fix(rules: Rules, table: Any, *, schema: Schema | None = None) -> Rules:
    """Look up in the original table what rules ask of it: see `Rules.fix`."""
    return _fitted(rules, Operands(table, schema))


def _fitted(rules: Rules, columns: Operands) -> Rules:
    """Return the rules with every value that they ask of the table, or say why they do not fit."""
    problems = []
    for rule in rules:
        reasons = [why for truth in rule.truths for why in misfits(truth, columns)]
        problems += [f"{rule.where}: {why}" for why in dict.fromkeys(reasons)]
    if problems:
        raise RuleTableError(problems)

    known: dict[tree.Node, tree.Node] = {}

    def look_up(node: tree.Node) -> tree.Node:
        if not tree.needs_original(node):
            return node
        if node not in known and isinstance(node, tree.Aggregate):
            known[node] = replace(node, value=_aggregate(node, columns))
        elif node not in known and isinstance(node, tree.Observed):
            known[node] = replace(node, domain=Domain.of_columns(columns, node.columns))
        return known[node]

    return Rules(rule.transformed(look_up) for rule in rules)


def _aggregate(node: tree.Aggregate, columns: Operands) -> float:
    values = columns.numbers(node.column)
    known = values[~np.isnan(values)]
    if not len(known):
        call = f"{node.function}({node.column})"
        raise RuleTableError([f"{call} has no value: the column is missing everywhere."])
    return float(getattr(np, node.function)(known))


def _domains(rule: Rule, columns: Operands) -> dict[tree.Node, Domain]:
    """Prepare the sets that a rule looks things up in."""
    domains: dict[tree.Node, Domain] = {}
    looked_up = [n for n in rule.nodes() if isinstance(n, tree.Member | tree.Observed)]
    for node in looked_up:
        # Amounts are measured with `not` pushed down: the opposite is looked up in the same set.
        domain = node.domain if isinstance(node, tree.Observed) else _listed(node, columns)
        if domain is not None:
            domains[node] = domains[tree.negated(node)] = domain
    return domains


def _listed(node: tree.Member, columns: Operands) -> Domain | None:
    """Return the set of a look-up of columns; None where numbers are compared one by one."""
    kinds = [columns.kind(name) == "number" for name in tree.looked_up(node)]
    of_numbers = kinds == [True] and isinstance(node.among, tree.Literals)
    if len(kinds) < len(node.operands) or of_numbers:
        return None
    return Domain.of_rows(node.among.rows, kinds)


def _judge(
    rule: Rule, columns: Operands, rounding: float, domains: dict[tree.Node, Domain],
    signs: Signs, *, guarded: bool = False,
) -> str:  # fmt: skip
    """Judge every record of a rule, block by block; return why it cannot be done, if so.

    A record breaks a rule across members if any member of its unit does.
    """
    zero: list[Integers] = []
    try:
        with np.errstate(over="raise"):
            for start in range(0, columns.n_rows, BLOCK):
                rows = slice(start, min(start + BLOCK, columns.n_rows))
                exact = Judge(columns, rows, rounding=rounding, domains=domains)
                verdict = exact.loosened(rule.tolerance or 0.0).truth(rule.body)
                if rule.condition is not None:
                    verdict = _implied(exact.truth(rule.condition), verdict)
                signs[rows] = verdict.signs
                if verdict.undefined is not None and guarded:
                    signs[rows][verdict.undefined] = -1
                elif verdict.undefined is not None:
                    zero.append(start + np.flatnonzero(verdict.undefined))
        if rule.unit is not None:
            signs[:] = columns.units(rule.unit).reduce(np.minimum, signs)
    except FloatingPointError:
        large = "numbers that are too large to calculate with (beyond 1e308)"
        hint = "Divide the columns by a power of ten first."
        return f"{rule.where}: {rule.text} makes {large}. {hint}"
    return _zero_problem(rule, np.concatenate(zero)) if any(map(len, zero)) else ""


def _implied(condition: Verdict, body: Verdict) -> Verdict:
    """Not the condition, or the body; where the condition is not met, nothing is divided."""
    masks = [] if body.undefined is None else [body.undefined & (condition.signs > 0)]
    masks += [] if condition.undefined is None else [condition.undefined]
    undefined = np.logical_or.reduce(masks) if masks else None
    return Verdict(np.maximum(-condition.signs, body.signs), undefined)


def _zero_problem(rule: Rule, zero: Integers) -> str:
    shown = ", ".join(map(str, zero[:5])) + (", ..." if len(zero) > 5 else "")
    roots = re.search(r"\*\* *\d*\.\d*[1-9]", rule.text)
    done = "divides by zero" + " or takes the root of a negative number" * bool(roots)
    return (
        f"{rule.where}: {rule.text} {done} in {counted(len(zero), 'record')} (row {shown}). "
        "Multiply instead of dividing, or say when the rule applies: if x != 0: ..."
    )


# Blue, orange and grey of Okabe and Ito (2008): distinct with every common colour vision, and
# in print by their lightness.
_PARTS = (("holds", "#0072B2"), ("unknown", "#BBBBBB"), ("breaks", "#D55E00"))


def _picture(confrontation: Confrontation) -> Any:
    """Draw a bar for each rule; return a `matplotlib.figure.Figure`, for `savefig("x.svg")`.

    The figure belongs to nobody: it opens no window and needs no `pyplot`.
    """
    figures = optional("matplotlib.figure", extra="plots", purpose="A picture")
    summary = confrontation.summary()
    count = len(summary)
    figure = figures.Figure(figsize=(8, 1.4 + 0.32 * max(count, 1)), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(count)
    start = np.zeros(count)
    n = max(confrontation.n_records, 1)
    for part, colour in _PARTS:
        share = 100 * summary[part].to_numpy() / n
        axes.barh(places, share, left=start, color=colour, label=part, height=0.7)
        start += share
    for place, breaks in zip(places, summary["breaks"]):
        if breaks:  # a few among a million are no wider than a hair, and matter
            axes.annotate(
                f"{breaks:,}", (101, place), va="center", annotation_clip=False, color=_PARTS[2][1]
            )
    names = [f"{name}: {text}" for name, text in zip(summary["rule"], summary["text"])]
    names = [name if len(name) <= 60 else f"{name[:57]}..." for name in names]
    axes.set_yticks(places, [name.replace("$", r"\$") for name in names])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel(f"per cent of {confrontation.n_records:,} records; right: records that break")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    if count:
        figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure
