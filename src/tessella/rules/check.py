"""What is wrong with rules before any data are touched.

Rules about one column at a time (intervals, sets, yes or no) are joined and compared; the rows of
linear ones are refuted in fractions (`refute.refutation`), component by component of columns
that they join. A contradiction is proved for every choice of ways in which conditional rules may be
true. What neither can prove, or takes too many choices, is not reported.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .._types import Name
from ..linear.rows import Row, as_fraction, linked_rows
from . import expressions as tree
from .classify import polynomial
from .collection import Rules
from .forms import Context, Form, key_of
from .refute import refutation, refuted, rows_of_form
from .rule import Rule

Decides = Callable[[Context, tuple[Form, ...]], bool]


@dataclass(frozen=True)
class Finding:
    """Something that a person should look at.

    `kind` is "contradiction" (no record can obey), "always false" (nor one rule alone), "excluded"
    (no record that meets the condition can obey), "always true", "duplicate", "redundant", "idle"
    (a condition that no record meets), "conflict" (a column that is both text and number),
    "nobody" (no record obeys) or "unknown" (no record can be judged); `rules` are the names of
    the rules that it is about.
    """

    kind: str
    rules: tuple[str, ...]
    message: str

    @property
    def is_grave(self) -> bool:
        """Whether no record can keep the rules, so that there is no release."""
        return self.kind in ("contradiction", "always false")

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


def _finding(kind: str, rules: Sequence[Rule], message: str) -> Finding:
    return Finding(kind, tuple(rule.name for rule in rules), message)


def judged_findings(rule: Rule, holds: int, breaks: int, applies: int) -> Iterator[Finding]:
    """Yield what the records say about a rule: that nobody meets, obeys or can be judged by it."""
    if rule.is_conditional and not applies:
        yield _finding("idle", [rule], f"No record meets the condition of {rule.name}.")
    elif not holds and not breaks:
        message = f"{rule.name} cannot be judged: what it asks for is missing in every record."
        yield _finding("unknown", [rule], message)
    elif breaks and breaks == min(holds + breaks, applies):
        who = "that it is about " if rule.is_conditional else ""
        message = f"No record {who}obeys {rule.name} ({breaks:,} break it). Is the rule right?"
        yield _finding("nobody", [rule], message)


def check(rules: Rules) -> list[Finding]:
    """Look for rules that contradict or repeat each other: see `Rules.check`."""
    exact = [rule for rule in rules if _is_exact(rule)]
    found = [*_conflicts(rules), *_duplicates(exact)]
    repeated = {finding.rules[-1] for finding in found if finding.kind == "duplicate"}
    remaining = [rule for rule in exact if rule.name not in repeated]

    alone = [finding for rule in remaining if (finding := _alone(rule))]
    found += alone
    decided = {finding.rules[0]: finding.kind for finding in alone}
    exact = [rule for rule in remaining if rule.tolerance is None]
    remaining = [rule for rule in exact if rule.name not in decided]

    # A rule that nobody can meet and obey still asks that its condition is not met.
    asking = [rule for rule in exact if decided.get(rule.name, "excluded") == "excluded"]
    contradictions = _contradictions(asking) or _excluded(remaining)
    if contradictions:  # from a contradiction anything follows
        return found + contradictions
    return found + _redundant(remaining)


def _is_exact(rule: Rule) -> bool:
    """Whether the floats of a rule's forms stand for the numbers that it is written with."""
    for node in rule.nodes():
        for left, _, right in node.pairs if isinstance(node, tree.Compare) else ():
            sides = polynomial(left), polynomial(right)
            if sides[0] is None or sides[1] is None:
                continue
            gap = sides[0].plus(sides[1], -1)
            numbers = [*gap.terms.values()]
            if len(gap.coefficients) == 1:
                numbers.append(gap.constant / next(iter(gap.coefficients.values())))
            try:
                if any(as_fraction(float(number)) != number for number in numbers):
                    return False
            except OverflowError:
                return False
    return True


def _conflicts(rules: Rules) -> list[Finding]:
    found = []
    by_column: dict[Name, dict[str, list[str]]] = {}
    for rule in rules:
        for column, kind in _uses(rule):
            by_column.setdefault(column, {"text": [], "number": []})[kind].append(rule.name)
    for column, users in by_column.items():
        texts, numbers = users["text"], users["number"]
        if texts and numbers:
            names = tuple(dict.fromkeys([*texts, *numbers]))
            message = f"{column!r} is text in {_list(texts)} and a number in {_list(numbers)}."
            found.append(Finding("conflict", names, f"Column {message}"))
    return found


def _uses(rule: Rule) -> Iterator[tuple[Name, str]]:
    """Yield the columns that a rule uses as "text" or as "number"; some may be either."""
    for node in rule.nodes():
        match node:
            case tree.Compare():
                for left, _, right in node.pairs:
                    for one, other in ((left, right), (right, left)):
                        if not isinstance(one, tree.ColumnRef):
                            continue
                        if isinstance(other, tree.Text) and not tree.is_date(other.value):
                            yield one.name, "text"
                        elif isinstance(other, tree.Computed):
                            yield one.name, "number"
            case tree.Member(operands, tree.Literals(rows)):
                for operand, value in zip(operands, rows[0], strict=True):
                    if isinstance(operand, tree.ColumnRef):
                        yield operand.name, "text" if isinstance(value, str) else "number"
            case tree.Aggregate(_, column):
                yield column, "number"
            case tree.UnitAggregate("count"):
                pass
            case (
                tree.Sum() | tree.Arithmetic() | tree.Negative() | tree.Function()
                | tree.UnitAggregate()
            ):  # fmt: skip
                for below in tree.children(node):
                    if isinstance(below, tree.ColumnRef):
                        yield below.name, "number"


def _duplicates(rules: Iterable[Rule]) -> list[Finding]:
    seen: dict[object, Rule] = {}
    found = []
    for rule in rules:
        key = (
            None if rule.condition is None else frozenset(map(key_of, rule.condition_forms)),
            frozenset(map(key_of, rule.forms)),
            # A tolerance is measured in the units in which the rule is written.
            None if rule.tolerance is None else (rule.text, rule.tolerance),
        )
        first = seen.setdefault(key, rule)
        if first is not rule:
            message = f"{rule.name} says the same as {first.name}: {first.text}"
            found.append(_finding("duplicate", [first, rule], message))
    return found


def _alone(rule: Rule) -> Finding | None:
    """What a rule's own text decides."""
    condition = Context(rule.condition_forms)
    if condition.empty:
        return _finding("always true", [rule], f"{rule.name} applies to no record: {rule.text}")
    if rule.tolerance is not None:
        return None
    if condition.implies_all(rule.forms):
        return _finding("always true", [rule], f"{rule.name} cannot be broken: {rule.text}")
    if not condition.plus(rule.forms).empty:
        return None
    message = f"No record can obey {rule.name}: {rule.text}"
    if rule.is_conditional:
        message = f"No record that meets the condition of {rule.name} can obey it: {rule.text}"
        return _finding("excluded", [rule], message)
    return _finding("always false", [rule], message)


def _contradictions(rules: Sequence[Rule]) -> list[Finding]:
    found, remaining = [], list(rules)
    while culprits := refuted(remaining):
        found.append(_contradiction(culprits))
        remaining = [rule for rule in remaining if rule not in culprits]
    return found


def _excluded(rules: Sequence[Rule]) -> list[Finding]:
    """Find the conditions that no record can meet if it is to obey."""
    plain = [rule for rule in rules if not rule.is_conditional]
    found = []
    for rule in rules:
        if not rule.is_conditional:
            continue
        others = _neighbours(rule, rules)
        context = _context(rule, others)
        if context.empty or _linear(rule, plain, "idle"):
            continue  # nothing is asked of anybody: redundant
        needed = []
        if context.plus(rule.forms).empty:
            needed = _needed(rule, others, lambda context, forms: context.plus(forms).empty)
        if needed := needed or _linear(rule, plain, "excluded"):
            message = f"No record can meet the condition of {rule.name} and obey it"
            message += f"{_beside(needed)}: {rule.text}"
            found.append(_finding("excluded", [rule, *needed], message))
    return found


def _contradiction(culprits: Sequence[Rule]) -> Finding:
    names, texts = _list([rule.name for rule in culprits]), [rule.text for rule in culprits]
    message = f"No record can obey {names} together: {'; '.join(texts)}"
    return _finding("contradiction", culprits, message)


def _redundant(rules: Sequence[Rule]) -> list[Finding]:
    kept = list(rules)
    found = []
    for rule in reversed(rules):  # the later of two that say the same is the one too many
        others = _neighbours(rule, kept)
        context = _context(rule, others)
        if context.empty and rule.is_conditional:
            needed, idle = _needed(rule, others, lambda context, _: context.empty), True
        elif context.implies_all(rule.forms):
            needed, idle = _needed(rule, others, Context.implies_all), False
        elif needed := _linear(rule, kept, "idle"):
            idle = True
        elif needed := _linear(rule, kept, "follows"):
            idle = False
        else:
            continue
        kept.remove(rule)
        found.append(_follows(rule, needed, idle=idle))
    return found[::-1] + _linear_redundant(kept)


def _follows(rule: Rule, needed: Sequence[Rule], *, idle: bool = False) -> Finding:
    """Build the finding for a rule that follows from others, or that they leave idle."""
    why = f"follows from {_list([other.name for other in needed])}"
    why = f"applies to no record{_beside(needed)}" if idle else why
    return _finding("redundant", [rule, *needed], f"{rule.name} {why}: {rule.text}")


def _linear(rule: Rule, rules: Iterable[Rule], question: str) -> list[Rule]:
    """Ask of a conditional rule, by linear programs; return the unconditional rules that decide.

    "idle": nobody can meet the condition; "excluded": nobody who does can obey; "follows": nobody
    who does can disobey. The answer is yes where the condition, with the body or its opposite, is
    part of a contradiction.
    """
    if rule.condition is None:
        return []
    bodies = {"idle": [], "excluded": [rule.body], "follows": [tree.negated(rule.body)]}[question]
    asked = [Rule(body=truth) for truth in (rule.condition, *bodies)]
    columns = {name for each in asked for name in each.columns}
    near: list[Rule] = []
    waiting = [other for other in rules if not other.is_conditional]
    while more := [other for other in waiting if columns.intersection(other.columns)]:
        near += more
        waiting = [other for other in waiting if other not in more]
        columns.update(name for other in more for name in other.columns)
    culprits = refuted([*asked, *near])
    if not any(each is culprit for each in asked for culprit in culprits):
        return []
    return [other for other in rules if any(other is culprit for culprit in culprits)]


def _linear_redundant(rules: Sequence[Rule]) -> list[Finding]:
    """Find the rules whose linear parts, and they have no others, follow from other rules."""
    plain = [rule for rule in rules if not rule.is_conditional]
    forms = [(form, at) for at, rule in enumerate(plain) for form in rule.forms]
    rows = [row for form, at in forms for row in rows_of_form(form, at)]
    left = Counter(row.place for row in rows)  # rows that do not follow from others
    reasons: dict[int, set[int]] = {}
    for names, linked in linked_rows(rows):
        kept = linked if len(names) > 1 else []
        # Inequalities go first, and the last of those that say the same.
        for row in sorted(kept, key=lambda row: row.equal)[::-1] if kept else []:
            others = [other for other in kept if other is not row]
            kept = others if _premises(row, others) else kept
        for row in linked if kept else []:
            if row not in kept:
                left[row.place] -= 1
                reasons.setdefault(row.place, set()).update(_premises(row, kept))
    return [
        _follows(plain[place], [plain[other] for other in sorted(reasons[place] - {place})])
        for place, count in sorted(left.items())
        if not count and plain[place].is_affine
    ]


def _premises(row: Row, others: Sequence[Row]) -> set[int]:
    """Return the places of rows from which a row follows, by proof; none where it does not."""
    turned = {name: -value for name, value in row.coefficients.items()}
    sides = [Row("", turned, "<=" if row.strict else "<", -row.right)]
    sides += [Row("", row.coefficients, "<", row.right)] if row.equal else []
    found: set[int] = set()
    for side in sides:
        *places, last = refutation([*others, side]) or [-1]
        if last < len(others):
            return set()
        found |= {others[at].place for at in places}
    return found


def _neighbours(rule: Rule, rules: Iterable[Rule]) -> list[Rule]:
    columns = set(rule.columns)
    return [other for other in rules if other is not rule and columns.intersection(other.columns)]


def _context(rule: Rule, others: Sequence[Rule]) -> Context:
    """What is known of a record that meets a rule's condition and obeys the other rules."""
    context = Context(rule.condition_forms)
    for other in others:
        if not other.is_conditional:
            context = context.plus(other.forms)
    waiting = [other for other in others if other.is_conditional]
    while met := [other for other in waiting if context.implies_all(other.condition_forms)]:
        for other in met:
            context = context.plus(other.forms)
        waiting = [other for other in waiting if other not in met]
    return context


def _needed(rule: Rule, others: Sequence[Rule], decides: Decides) -> list[Rule]:
    """Return a smallest set of other rules that still decides; one, if one is enough."""
    for other in others:
        if decides(_context(rule, [other]), rule.forms):
            return [other]
    needed = list(others)
    for other in others:
        fewer = [each for each in needed if each is not other]
        if decides(_context(rule, fewer), rule.forms):
            needed = fewer
    return needed


def _beside(rules: Sequence[Rule]) -> str:
    return f" beside {_list([rule.name for rule in rules])}" if rules else ""


def _list(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    if len(names) > 6:
        names = [*names[:5], f"{len(names) - 5} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
