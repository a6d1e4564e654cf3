"""What an audit found, in words: problems, which must not be, and notes.

No sentence holds an original value of a single record: columns, rules and counts are named, cells
never.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .._types import Name
from ..frame import Facts, Pair, Strata
from ..schema import Schema
from .lines import ColumnLine, GroupLine, RuleLine

__all__ = ["Findings", "named"]

NAMED = 8  # columns or strata that a sentence names


def named(names: Iterable[object], *, quote: bool = True) -> str:
    """List names for a sentence, the first few of them."""
    shown = [repr(name) if quote else str(name) for name in names]
    return ", ".join(shown[:NAMED]) + (f" and {len(shown) - NAMED} more" if shown[NAMED:] else "")


def differences(pair: Pair) -> Iterator[str]:
    """Describe how the two tables differ in form."""
    before, after = pair.original.table, pair.masked.table
    if before.kind != after.kind:
        yield f"The original is a {before.kind} table, the released one a {after.kind} table."
    if before.columns != after.columns:
        yield "The columns of the released table are in another order."
    if not before.same_index(after):
        yield "The released table has another index: its rows are not those of the original."
    for name in pair.columns:
        if change := _dtype_change(*pair.facts(name), same_kind=before.kind == after.kind):
            yield f"Column {name!r} {change}."


def _dtype_change(before: Facts, after: Facts, *, same_kind: bool) -> str:
    if before.family != after.family:
        return f"held {_described(before)} and now holds {_described(after)}"
    if before.ordered != after.ordered:
        return "held categories " + (
            "in an order that is lost" if before.ordered else "without order and now has one"
        )
    if same_kind and before.dtype != after.dtype:
        if before.family == "category":  # a dtype may list the categories: not in a message
            return "has another set or storage of categories"
        return f"had dtype {before.dtype} and now has {after.dtype}"
    return ""


def _described(facts: Facts) -> str:
    words = {"category": "categories", "date": "dates", "boolean": "yes and no"}
    return words.get(facts.family, f"{facts.family} ({facts.dtype})")


def _below(line: GroupLine, n: int, k: int) -> str:
    verb = "shares its" if line.n_below == 1 else "share their"
    return (
        f"{line.n_below:,} of {n:,} records {verb} released values with fewer than {k} records "
        f"(the fewest: {line.k})"
    )


def _cells(count: int) -> str:
    return f"{count:,} cell{'' if count == 1 else 's'}"


@dataclass
class Findings:
    """The sentences of an audit, gathered step by step."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def of_form(self, pair: Pair, schema: Schema | None) -> None:
        """Compare dtypes, index and order, and look for what must not be released."""
        self.problems += differences(pair)
        for name in pair.columns:
            unused = pair.masked.table.count_unused(name)
            if unused > pair.original.table.count_unused(name):
                self.notes.append(
                    f"Column {name!r} still lists {unused:,} categories that no released "
                    "record has, and some file formats write them out. Remove them before writing."
                )
        if schema is not None:
            for name in schema.names("identifier", "household"):
                self.problems.append(
                    f"Column {name!r} has the role {schema[name].role!r} in the schema and "
                    "must not be released. Drop it, or override the role if it is wrong."
                )

    def of_groups(
        self, lines: Sequence[GroupLine], joint: GroupLine | None, strata: Strata, k: int | None
    ) -> None:
        """Name blocks, and the strata in them, in which fewer than k records are alike."""
        if k is None:
            return
        if joint is None:
            self.problems.append(f"k={k} was asked for, and there is no block to count it in.")
            return
        n = sum(joint.records)
        for place, line in enumerate(lines):
            if not line.n_below or line.below is None:
                continue
            where = [name for name, below in zip(strata.names, line.below) if below]
            there = f" (in {named(where, quote=False)})" if len(strata.names) > 1 else ""
            self.problems.append(
                f"Block {place + 1} ({named(line.columns)}): {_below(line, n, k)}{there}."
            )
        if len(lines) > 1 and joint.n_below:
            self.notes.append(
                f"k={k} is counted within blocks. Over all blocks together {_below(joint, n, k)}."
            )

    def of_rules(self, lines: Sequence[RuleLine], unjudged: Mapping[str, str]) -> None:
        """Name the rules that the released table breaks, and those that cannot be judged."""
        for line in lines:
            if line.breaks_after is None:
                self.problems.append(f"A rule cannot be judged: {unjudged[line.name]}")
            elif line.breaks_after:
                worst = line.to_dict()["worst_after"]
                by = "" if worst is None else f", by up to {worst:.6g}"
                who = "1 record breaks" if line.breaks_after == 1 else (
                    f"{line.breaks_after:,} records break"
                )  # fmt: skip
                self.problems.append(f"{who} the rule {line.name}{by}: {line.text}")
            if line.breaks_before is None:
                self.notes.append(f"The rule {line.name} cannot be judged in the original.")
        if repaired := [
            line.name for line in lines if line.breaks_before and not line.breaks_after
        ]:
            self.notes.append(
                "Broken in the original and kept in the released table: "
                f"{named(repaired, quote=False)}."
            )

    def of_columns(
        self, columns: Sequence[ColumnLine], unreadable: Mapping[Name, tuple[bool, bool]]
    ) -> None:
        """Name columns whose missing cells changed, that stayed, that could not be measured."""
        for line in columns:
            if line.moved:
                self.problems.append(
                    f"Column {line.name!r}: {_cells(line.moved)} became missing, known, or missing "
                    f"in another way ({line.missing_before:,} missing before, "
                    f"{line.missing_after:,} after)."
                )
        for name, (before, after) in unreadable.items():
            what = "holds infinity, numbers beyond 1e150 or of more than 15 digits"
            if after and not before:
                self.problems.append(f"Column {name!r} {what} in the released table only.")
            else:
                self.notes.append(f"Column {name!r} {what}: it was compared as categories.")
        same = [line.name for line in columns if not line.changed]
        if same:
            self.notes.append(
                f"Released as {'it is' if len(same) == 1 else 'they are'}: {named(same)}."
            )

    def of_records(self, untouched: int, n: int, masked: Sequence[Name]) -> None:
        """Say how many records are released as they were."""
        if masked and untouched:
            self.notes.append(
                f"{untouched:,} of {n:,} records "
                f"{'is released as it was' if untouched == 1 else 'are released as they were'} "
                "in every masked column."
            )
