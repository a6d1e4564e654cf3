"""Implications: if employees == 0: hours == 0, if age < 16: status == "child".

Two events exclude each other if no record, or nearly none, shows both, although independence
expects many to. Events are: a column has a category; a number is 0, or not; a number of few values,
such as an age, is below or above a threshold. `a` and `b` excluding each other is written as an
implication: if a: not b. Events that are true of the same records are one; what follows from two
implications is left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..._types import Name, Truths
from ..expressions import column_text
from .chance import Demands, Proposal
from .columns import Levels, Sample
from .events import FEWEST, Event, excludes
from .thresholds import find_thresholds

MOST_SOURCES = 60  # columns whose events are compared with each other


def find_implications(
    sample: Sample, demands: Demands, products: Collection[Name] = (),
    orderings: Collection[tuple[Name, Name]] = (), constant: Collection[Name] = (),
) -> list[Proposal]:  # fmt: skip
    """Find events that exclude each other.

    Parameters
    ----------
    sample, demands
        The records, and what a rule must do.
    products : collection of names
        Columns that are products of others, and 0 where one of these is: that needs no rule.
    orderings : collection of pairs of names
        Columns and others that they never exceed: where the other is 0, so is a nonnegative one.
    constant : collection of names
        Columns that are constant within units: of these, units are counted, not their members.
    """
    sources = _sources(sample)[:MOST_SOURCES]
    events = [event for source in sources for event in source]
    found = _between(events, demands, sample.first_of_unit, constant)
    thresholds = find_thresholds(sample, events, demands)
    found |= thresholds.chances
    events = [*events, *thresholds.events]
    evident = _evident(events, orderings)
    same = {frozenset(pair) for pair in orderings if pair[::-1] in orderings}
    found = {
        (first, second): chance
        for (first, second), chance in found.items()
        if (first, second) not in evident
        and frozenset(events[place // 2].column for place in (first, second)) not in same
    }
    return _written(events, found, evident, products)


def _evident(
    events: Sequence[Event], orderings: Collection[tuple[Name, Name]]
) -> set[tuple[int, int]]:
    """Return the pairs of literals that exclude each other without a rule that says so.

    Events of one column (age < 16, age == 0), and a part that is not 0 of a whole that is.
    """
    pairs: set[tuple[int, int]] = set()
    zero = {event.column: at for at, event in enumerate(events) if event.value == "0"}
    for lower, upper in orderings:
        if lower in zero and upper in zero and not events[zero[lower]].negates:
            first, second = sorted((2 * zero[lower] + 1, 2 * zero[upper]))
            pairs.add((first, second))
    by_column: dict[Name, list[int]] = {}
    for at, event in enumerate(events):
        by_column.setdefault(event.column, []).append(at)
    for places in by_column.values():
        literals = [2 * at + side for at in places for side in (0, 1)]
        for first, second in combinations(literals, 2):
            signs = [events[lit // 2].signs * (1 - 2 * (lit % 2)) for lit in (first, second)]
            if first // 2 != second // 2 and not ((signs[0] > 0) & (signs[1] > 0)).any():
                pairs.add((first, second))
    return pairs


def _sources(sample: Sample) -> list[list[Event]]:
    """Return the events of each column: one for each category, or for 0."""
    sources: list[list[Event]] = []
    for levels in sample.levels:
        sources.append(list(_categories(levels, len(sources))))
    taken = {levels.name for levels in sample.levels}
    for figure in sample.figures:
        if figure.name in taken:
            continue
        zero = figure.known & (figure.values == 0)
        both = min(int(zero.sum()), int((figure.known & ~zero).sum()))
        if both >= FEWEST:
            signs = np.where(figure.known, np.where(zero, 1, -1), 0)
            other = ">" if figure.negative <= 0.01 else "!="
            event = Event(
                figure.name, f"{figure.text} == 0", f"{figure.text} {other} 0", signs,
                len(sources), value="0", negates=other == "!=",
            )  # fmt: skip
            sources.append([event])
    return sources


def _categories(levels: Levels, source: int) -> Iterator[Event]:
    two = len(levels.texts) == 2
    for code, text in enumerate(levels.texts[: 1 if two else None]):
        signs = np.where(levels.codes < 0, 0, np.where(levels.codes == code, 1, -1))
        # Of two categories, the other is the opposite.
        opposite = f"{levels.text} == {levels.texts[1]}" if two else f"{levels.text} != {text}"
        yield Event(
            levels.name, f"{levels.text} == {text}", opposite, signs, source, value=text,
            other=levels.texts[1] if two else None, negates=not two,
        )  # fmt: skip


def _between(
    events: Sequence[Event], demands: Demands, first_of_unit: Truths, constant: Collection[Name]
) -> dict[tuple[int, int], float]:
    """Return the pairs of literals (event, or not) that exclude each other, with their chance.

    A literal is 2 * place for the event and 2 * place + 1 for its opposite.
    """
    if not events:
        return {}
    literals = np.empty((2 * len(events), len(events[0].signs)), dtype=np.float32)
    for at, event in enumerate(events):
        literals[2 * at], literals[2 * at + 1] = event.signs > 0, event.signs < 0
    # Counts of pairs of literals, exact in float32 up to 2**24 records: the sample has fewer.
    of_records = (literals @ literals.T).astype(np.float64)
    firsts = literals[:, first_of_unit]
    of_units = (firsts @ firsts.T).astype(np.float64) if constant else of_records
    by_unit = [event.column in constant for event in events]
    hypotheses = math.log(2 * len(events) ** 2)
    # No pair that is together more often than this can exclude each other: most are passed over.
    alone = np.minimum.outer(np.diag(of_records), np.diag(of_records))
    rare = np.minimum(of_records, of_units) <= (1 - demands.strict) * alone
    excluded: dict[tuple[int, int], float] = {}
    for first, second in np.argwhere(np.triu(rare, 1)).tolist():
        one, other = first // 2, second // 2
        if events[one].source == events[other].source:
            continue
        together = of_units if by_unit[one] and by_unit[other] else of_records
        pairs = together[2 * one : 2 * one + 2, 2 * other : 2 * other + 2]
        records = float(pairs.sum())
        own = together[first, second] + together[first, second ^ 1]
        others = together[first, second] + together[first ^ 1, second]
        chance = excludes(together[first, second], own, others, records, demands, hypotheses)
        if chance is not None:
            excluded[first, second] = chance
    return excluded


def _written(
    events: Sequence[Event], excluded: dict[tuple[int, int], float],
    evident: set[tuple[int, int]], products: Collection[Name],
) -> list[Proposal]:  # fmt: skip
    """Write exclusions as implications, without what follows from others."""
    follows: dict[int, set[int]] = {}
    for first, second in [*excluded, *evident]:  # if first: not second; if second: not first
        follows.setdefault(first, set()).add(second ^ 1)
        follows.setdefault(second, set()).add(first ^ 1)
    stands = _representatives(events, follows, products)
    proposals = []
    for first, second in excluded:
        same = stands[first] == stands[second ^ 1]
        if same:  # true of the same records: shown for the one that stands for all
            named = {events[literal // 2].column for literal in (first, second)}
            if stands[first] not in (first, second ^ 1) or not named.isdisjoint(products):
                continue
            proposals.append(_implication(events, first, second, excluded[first, second]))
            continue
        if first != stands[first] or second ^ 1 != stands[second ^ 1]:
            continue  # shown for those that stand for them
        if _by_way(first, second ^ 1, follows, evident):
            continue
        proposals.append(_implication(events, first, second, excluded[first, second]))
    return _gathered(proposals, events)


def _representatives(
    events: Sequence[Event], follows: dict[int, set[int]], products: Collection[Name]
) -> dict[int, int]:
    """Return for each literal the one that stands for all that are true of the same records."""
    stands: dict[int, int] = {}

    def preference(literal: int) -> tuple[bool, int]:
        return events[literal // 2].column in products, literal // 2

    for literal in sorted(range(2 * len(events)), key=preference):
        if literal in stands:
            continue
        stands[literal] = literal
        for other in follows.get(literal, ()):
            if literal in follows.get(other, ()) and other not in stands:
                stands[other] = literal
    return stands


def _by_way(
    first: int, last: int, follows: dict[int, set[int]], evident: set[tuple[int, int]]
) -> bool:
    """Return whether an implication follows from two others."""

    def is_evident(one: int, other: int) -> bool:
        return (min(one, other ^ 1), max(one, other ^ 1)) in evident

    for between in follows.get(first, ()):
        if between in (first, last) or last not in follows.get(between, ()):
            continue
        # Where two of the three are true of the same records, each of two implications follows
        # from the other: this one is left out only if the other is evident.
        if first in follows[between] and not is_evident(between, last):
            continue
        if between in follows.get(last, ()) and not is_evident(first, between):
            continue
        return True
    return False


def _text(events: Sequence[Event], literal: int) -> str:
    event = events[literal // 2]
    return event.opposite if literal % 2 else event.text


def _value(events: Sequence[Event], literal: int) -> str | None:
    """Return the value that a column has where a literal is true, if it is one."""
    event = events[literal // 2]
    return event.other if literal % 2 else event.value


def _negates(events: Sequence[Event], literal: int) -> bool:
    """Return whether a literal only says that something is not so: a poor condition."""
    return bool(literal % 2) and events[literal // 2].negates


@dataclass(frozen=True)
class _Implication:
    """If the condition is true, so is the consequence: two literals."""

    condition: int
    consequence: int
    chance: float
    records: int  # that meet the condition


def _implication(events: Sequence[Event], first: int, second: int, chance: float) -> _Implication:
    """Turn two literals that exclude each other into an implication: the rarer is the condition."""
    rows = {lit: int((events[lit // 2].signs == (-1 if lit % 2 else 1)).sum())
            for lit in (first, second)}  # fmt: skip
    condition, other = sorted((first, second), key=lambda lit: (_negates(events, lit), rows[lit]))
    return _Implication(condition, other ^ 1, chance, rows[condition])


def _gathered(found: Sequence[_Implication], events: Sequence[Event]) -> list[Proposal]:
    """Write implications; what one condition excludes of one column is one rule, code lists too."""
    together: dict[tuple[int, Name], list[_Implication]] = {}
    for each in found:
        together.setdefault((each.condition, events[each.consequence // 2].column), []).append(each)
    exact: dict[tuple[Name, Name], list[_Implication]] = {}
    others: dict[tuple[Name, Name], list[Proposal]] = {}
    for (condition, column), parts in together.items():
        pair = (events[condition // 2].column, column)
        valued = [each for each in parts if _value(events, each.consequence) is not None]
        if valued:  # one category excludes all others
            if _value(events, condition) is not None:
                exact.setdefault(pair, []).append(valued[0])
            else:
                others.setdefault(pair, []).append(_proposal(events, valued[:1]))
            continue
        excluding = [each for each in parts if _negates(events, each.consequence)]
        rest = [[each] for each in parts if not _negates(events, each.consequence)]
        for joined in [*rest, *([excluding] if excluding else [])]:
            others.setdefault(pair, []).append(_proposal(events, joined))
    return _tabulated(exact, others, events)


def _proposal(events: Sequence[Event], parts: Sequence[_Implication]) -> Proposal:
    """Write one implication, or several that exclude values of one column: b not in {2, 3}."""
    first = parts[0]
    head, body = _text(events, first.condition), _text(events, first.consequence)
    columns = (events[first.condition // 2].column, events[first.consequence // 2].column)
    if len(parts) > 1:
        values = ", ".join(str(events[each.consequence // 2].value) for each in parts)
        body = f"{column_text(columns[1])} not in {{{values}}}"
    chance = max(each.chance for each in parts)
    return Proposal(
        text=f"if {head}: {body}",
        kind="implication",
        columns=columns,
        why=f"of {first.records:,} records with {head}, (nearly) all have {body}",
        chance=chance,
        rank=(chance, -float(first.records)),
    )


def _tabulated(
    exact: dict[tuple[Name, Name], list[_Implication]],
    others: dict[tuple[Name, Name], list[Proposal]], events: Sequence[Event],
) -> list[Proposal]:  # fmt: skip
    """Write as one rule that every category of a column has one of another: a code list."""
    categories: dict[Name, int] = {}
    for event in events:
        values = (event.value is not None) + (event.other is not None)
        categories[event.column] = categories.get(event.column, 0) + values
    proposals: list[Proposal] = []
    listed: set[frozenset[Name]] = set()
    for pair, found in exact.items():
        if len(found) >= max(3, categories[pair[0]]) and frozenset(pair) not in listed:
            listed.add(frozenset(pair))
            proposals.append(_code_list(pair, found, events))
    for pair, found in exact.items():
        if frozenset(pair) not in listed:
            proposals += [_proposal(events, [each]) for each in found]
    for pair, written in others.items():
        proposals += [] if frozenset(pair) in listed else written
    return proposals


def _code_list(
    pair: tuple[Name, Name], found: Sequence[_Implication], events: Sequence[Event]
) -> Proposal:
    rows = sorted(
        f"({_value(events, each.condition)}, {_value(events, each.consequence)})" for each in found
    )
    first, second = map(column_text, pair)
    chance = max(each.chance for each in found)
    return Proposal(
        text=f"({first}, {second}) in {{{', '.join(rows)}}}",
        kind="implication",
        columns=pair,
        why=f"each {first} has one {second}",
        chance=chance,
        rank=(chance, 0.0),
    )
