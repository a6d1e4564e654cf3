"""The audit itself: an original and a masked table in, what must be known of them out.

What an audit found, in words: problems, which must not be, and notes.

No sentence holds an original value of a single record: columns, rules and counts are named, cells
never.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._parameters import NONE, Instance, Number, parameters
from .._types import Integers, Name
from .._wording import counted, fill
from ..diversity import DiversityRule
from ..exceptions import BadOptionError, BadTableError, IncomparableError
from ..frame import Facts, Pair, Strata
from ..grouping.base import check_k
from ..grouping.dominance import DominanceRule
from ..parallel import each
from ..rules.collection import Rules
from ..rules.confront import Confrontation
from ..schema import Schema
from .count import (
    Weights,
    compare_column,
    compare_rules,
    count_by_wildcard,
    count_diversity,
    count_groups,
    describe_dominance,
    find_implied,
    find_strata,
    judge_totals,
    read_cells,
)
from .recoded import Recoded
from .result import Audit, ColumnLine, DiversityLine, GroupLine, RuleLine


def named(names: Iterable[object], *, quote: bool = True) -> str:
    """List names for a sentence, the first few of them."""
    return fill("{names!t}", names=[repr(name) if quote else name for name in names])


def differences(pair: Pair, recoded: Recoded) -> Iterator[str]:
    """Describe how the two tables differ in form; recoded columns may."""
    before, after = pair.original.table, pair.masked.table
    if before.kind != after.kind:
        yield f"The original is a {before.kind} table, the released one a {after.kind} table."
    if tuple(name for name in before.columns if after.has(name)) != after.columns:
        yield "The columns of the released table are in another order."
    if not before.same_index(after):
        yield "The released table has another index: its rows are not those of the original."
    for name in (name for name in pair.columns if name not in recoded):
        if change := _dtype_change(*pair.facts(name), same_kind=before.kind == after.kind):
            yield f"Column {name!r} {change}."


def _dtype_change(before: Facts, after: Facts, *, same_kind: bool) -> str:
    if before.dtype == after.dtype == "object":  # of which only the values tell the family
        return ""
    if before.family != after.family:
        return f"held {_described(before)} and now holds {_described(after)}"
    if before.ordered != after.ordered:
        return "held categories " + (
            "in an order that is lost" if before.ordered else "without order and now has one"
        )
    if same_kind and before.dtype != after.dtype:
        if before.family == "category":  # a dtype may list the categories: not in a message
            return "has another set or storage of categories"
        return f"was stored as {before.dtype} and now is as {after.dtype}"
    return ""


def _described(facts: Facts) -> str:
    words = {"category": "categories", "date": "dates", "boolean": "yes and no"}
    return words.get(facts.family, f"{facts.family} ({facts.dtype})")


def _below(line: GroupLine, n: int, k: int, unit: Name | None) -> str:
    verb = "shares its" if line.n_below == 1 else "share their"
    whom = "records" if unit is None else f"units of {unit!r}"
    return (
        f"{line.n_below:,} of {n:,} records {verb} released values with fewer than {k} {whom} "
        f"(the fewest: {line.k})"
    )


@dataclass
class Findings:
    """The sentences of an audit, gathered step by step."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def of_form(self, pair: Pair, schema: Schema | None, recoded: Recoded) -> None:
        """Compare dtypes, index and order, and look for what must not be released."""
        self.problems += differences(pair, recoded)
        self.problems += recoded.problems(pair)
        self.notes += recoded.notes(pair)
        for name in pair.columns:
            unused = pair.masked.table.count_unused(name)
            if unused > pair.original.table.count_unused(name):
                self.notes.append(
                    f"Column {name!r} still lists {unused:,} categories that no released "
                    "record has, and some file formats write them out. Remove them before writing."
                )
        if schema is not None:
            for name in schema.names("identifier", "unit"):
                if not pair.masked.table.has(name):
                    continue
                self.problems.append(
                    f"Column {name!r} has the role {schema[name].role!r} in the schema and "
                    "must not be released. Drop it, or override the role if it is wrong."
                )

    def of_groups(
        self, lines: Sequence[GroupLine], joint: GroupLine | None, strata: Strata, k: int | None,
        unit: Name | None,
    ) -> None:  # fmt: skip
        """Name blocks, and the strata in them, in which fewer than k units are alike."""
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
                f"Block {place + 1} ({named(line.columns)}): {_below(line, n, k, unit)}{there}."
            )
        if len(lines) > 1 and joint.n_below:
            self.notes.append(
                f"k={k} is counted within blocks. Over all blocks together "
                f"{_below(joint, n, k, unit)}."
            )

    def of_diversity(self, lines: Sequence[DiversityLine], n: int) -> None:
        """Name confidential columns whose values are not as diverse, or as close, as asked for."""
        for line in lines:
            if line.records:
                are = "record is" if line.records == 1 else "records are"
                self.problems.append(
                    f"{line.records:,} of {n:,} {are} equal only to records whose values of "
                    f"{line.column!r} do not have {line.asked} (the worst: {line.worst:.4g})."
                )

    def by_wildcard(
        self, pair: Pair, place: int, line: GroupLine, sets: Integers, strata: Strata, k: int | None
    ) -> tuple[GroupLine, Integers]:
        """Count a block anew with empty cells equal to every value; note what that leaves open."""
        again = count_by_wildcard(line, pair.masked, sets, strata, k)
        self.notes.append(
            f"Block {place + 1} counts an empty cell as equal to every value (wildcard). As values "
            f"of their own, {_below(line, sum(line.records), k, None)}." if k and line.n_below else
            f"Block {place + 1} counts an empty cell as equal to every value (wildcard); it is "
            "kept with empty cells as values of their own, too."
        )  # fmt: skip
        return again, sets

    def of_implied(
        self, pair: Pair, rules: Rules, groups: Sequence[tuple[GroupLine, Integers]],
        strata: Strata, k: int | None, units: Integers | None,
    ) -> None:  # fmt: skip
        """Fill in emptied numbers that rules tell, and count k again."""
        for place, (line, sets) in enumerate(groups):
            if k is None or not (told := find_implied(pair, rules, line.columns)):
                continue
            filled = [np.unique(own, return_inverse=True)[1].ravel() for own in told.values()]
            again, _ = count_groups(line.columns, [sets, *filled], strata, k, units)
            cells = sum(int((~np.isnan(own)).sum()) for own in told.values())
            if (again.n_below or 0) > (line.n_below or 0):
                self.problems.append(
                    f"The rules tell what {counted(cells, 'emptied cell')} of {named(told)} held. "
                    f"With them, {_below(again, pair.n_rows, k, pair.original.unit)} in block "
                    f"{place + 1}. Mask or drop the other columns of these rules, or name them "
                    "as keys, too."
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
        if repaired := [one.name for one in lines if one.breaks_before and not one.breaks_after]:
            self.notes.append(
                "Broken in the original and kept in the released table: "
                f"{named(repaired, quote=False)}."
            )

    def of_columns(
        self, columns: Sequence[ColumnLine], unreadable: Mapping[Name, tuple[bool, bool]],
        recoded: Recoded, suppressed: Sequence[Name] = (),
    ) -> None:  # fmt: skip
        """Name columns whose missing cells changed, that stayed, that could not be measured."""
        for line in columns:
            if line.moved and line.name in suppressed and line.moved == line.suppressed:
                self.notes.append(
                    f"Column {line.name!r}: {counted(line.suppressed, 'cell')} suppressed "
                    f"({line.suppressed / line.n:.2%})."
                )
            elif line.moved and line.name not in recoded:
                self.problems.append(
                    f"Column {line.name!r}: {counted(line.moved, 'cell')} became missing, known, "
                    f"or missing in another way ({line.missing_before:,} missing before, "
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
            they = "it is" if len(same) == 1 else "they are"
            self.notes.append(f"Released as {they}: {named(same)}.")

    def of_records(self, untouched: int, n: int, masked: Sequence[Name]) -> None:
        """Say how many records are released as they were."""
        if masked and untouched:
            self.notes.append(
                f"{untouched:,} of {n:,} records "
                f"{'is released as it was' if untouched == 1 else 'are released as they were'} "
                "in every masked column."
            )


FEW = 3  # an original total that differs in fewer cells than this could be solved for one of them


@parameters(
    {"released": "masked"},
    schema=[Instance(Schema, "a tessella.Schema, such as tessella.Schema.guess(table)"), NONE],
    tolerance=[Number(least=0, below=1)],
)
def audit(
    original: Any,
    masked: Any,
    *,
    k: int | None = None,
    blocks: Sequence[Sequence[Name]] | None = None,
    strata: Any = None,
    rules: Rules | str | Iterable[str] | None = None,
    schema: Schema | None = None,
    tolerance: float = 1e-9,
    dominance: Any = 10,
    l: Any = None,  # noqa: E741
    t: Any = None,
    confidential: Any = None,
    confronted: tuple[Confrontation, Confrontation] | None = None,
    recoded: Any = None,
    suppressed: Sequence[Name] = (),
    wildcard: Sequence[Sequence[Name]] = (),
) -> Audit:
    """Audit a masked table: everything is counted in the table itself.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The two tables, with the same records in the same order, and the same columns.
    k : int, optional
        How many records must share their released values, in every block and every stratum; where
        the schema names a unit, how many distinct units, by the original's column.
    blocks : list of lists of column names, optional
        The columns in which records must be equal, block by block. By default one block: all
        columns that differ between the tables and, with a schema, all quasi-identifiers, except
        those that form the strata.
    strata : name, list of names, or array-like of shape (n,), optional
        Records count as equal only within a stratum. Columns are read in the masked table.
    rules : Rules, text or list of texts, optional
        What must be true of every record. mean(x) and observed(x) in a rule refer to those of
        the original.
    schema : Schema, optional
        Says which values stand for "missing", which numbers are categories, and which column
        weighs the records.
    tolerance : float
        How far apart numbers may be and still count as equal in a rule: see `Rules.confront`.
    dominance : float or mapping, default 10
        When a group's total discloses its largest contribution: p of the p% rule, {"p": 10}, or
        {"n": 1, "k": 85} for (n,k)-dominance. Such groups are counted in a note.
    l, t : optional
        How diverse the released confidential values must be among records that are alike in all
        blocks, and how close to those of the released table: as `tessella.protect` takes them.
    confidential : name or sequence of names, optional
        The columns that l and t are about; by default those of that role in the schema.
    confronted : two Confrontation, optional
        The results of confronting the original, and the masked table, with the rules fixed on the
        original, if that was done already.
    recoded : mapping of name to Hierarchy, or Recoded, optional
        Columns that hold coarser values: each must cover the original one, dtypes may differ, and
        no more records may be emptied than `Recoded` allows.
    suppressed : list of names, optional
        The columns in which cells may have been emptied: such cells are counted in a note, and are
        no problem. A cell that became known is a problem in every column.
    wildcard : list of blocks, optional
        The blocks in which an empty cell matches every value, as sdcMicro counts: weaker than k,
        and a note says how many records fall below k where it does not.

    Returns
    -------
    Audit
        With `passed`, `problems` and `notes`, and a line for each block, rule and column.

    Raises
    ------
    IncomparableError
        If the tables have different numbers of records, or different columns.

    Notes
    -----
    For records i and a block B of columns in a stratum, the k that is reached is

        min over i of  #{j : stratum(j) = stratum(i) and y_jb = y_ib for all b in B},

    y being the masked table. A missing cell is a value of its own, and so is each missing code;
    what else equals what, see `tessella.frame.View`.

    A released group discloses size times mean, its total. With contributions c = weight times
    absolute value, the largest first, the total T is sensitive by the p% rule if
    T - c1 - c2 < p/100 c1.

    Problems are: another form (dtype, index, order), fewer than k equal in a block, confidential
    values that do not have l or t among records that are equal in all blocks, any record that
    breaks a rule in the released table, cells that became missing or known, and columns that the
    schema forbids to release. Several blocks that together single out records are a note: k is
    promised within blocks.

    References
    ----------
    P. Samarati and L. Sweeney (1998). Protecting privacy when disclosing information:
    k-anonymity and its enforcement through generalization and suppression. SRI-CSL-98-04.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella import audit
    >>> original = pd.DataFrame(
    ...     {"sex": list("mmmfff"), "net": [10, 12, 14, 20, 25, 30], "tax": [1, 2, 3, 4, 5, 6]}
    ... )
    >>> masked = original.assign(net=[12, 12, 12, 25, 25, 25], tax=[2, 2, 2, 5, 5, 5])
    >>> audit(original, masked, k=3, strata="sex", rules="tax <= net")
    Audit of 6 records in 3 columns, of which 2 changed: passed.
    <BLANKLINE>
    Records that share all released values, in each of 2 strata:
    equal in  combinations  smallest  below 3  columns
    block 1              2         3        0  net, tax
    <BLANKLINE>
    Rules:
    rule  broken before  after  unknown before  after  text
    R1                0      0               0      0  tax <= net
    <BLANKLINE>
    Columns:
    column  changed  missing  mean before  after  change
    sex        0.0%        0
    net       66.7%        0         18.5   18.5  0 %
    tax       66.7%        0          3.5    3.5  0 %
    <BLANKLINE>
    Notes:
    - No blocks were named: the columns that differ form one block: 'net', 'tax'.
    - Released as it is: 'sex'.
    - 2 of 6 records are released as they were in every masked column.
    """
    k = None if k is None else check_k(k, n=sys.maxsize)
    wanted, rule = Rules() if rules is None else Rules.of(rules), DominanceRule.of(dominance)
    pair, found, coarser = _pair(original, masked, schema), Findings(), Recoded.of(recoded)
    layers, units, unit = find_strata(pair, strata), pair.masked.units, pair.original.unit
    weights = _find_weights(pair, schema, found)
    columns, unreadable = [], {}
    for name in (name for name in pair.columns if name != unit):
        cells = read_cells(pair, name)
        columns.append(compare_column(cells, weights, few=max(k or 0, FEW)))
        if any(cells.unreadable):
            unreadable[name] = cells.unreadable
    chosen = _find_blocks(pair, schema, blocks, layers, columns, found)
    wished = _find_diversity(schema, l, t, confidential)
    groups = [
        count_groups(block, [pair.masked.codes(name) for name in block], layers, k, units)
        for block in chosen
    ]
    for place, block in enumerate(chosen):
        if set(block) in map(set, wildcard):
            groups[place] = found.by_wildcard(pair, place, *groups[place], layers, k)
    counted = tuple(name for block in chosen for name in block)
    joint, alike = groups[0] if len(groups) == 1 else (None, layers.ids)
    if len(groups) > 1:
        joint, alike = count_groups(counted, [sets for _, sets in groups], layers, k, units)
    spread = () if wished is None else tuple(count_diversity(pair.masked, alike, wished))
    lines, unjudged = compare_rules(
        wanted, pair, tolerance=tolerance, schema=schema, confronted=confronted
    )
    touched = np.zeros(pair.n_rows, dtype=bool)
    for name in counted:
        touched |= read_cells(pair, name).differs
    untouched = int(pair.n_rows - touched.sum())
    differ = {line.name for line in columns if line.changed and line.kind == "numbers"}
    judged = [
        (name, sets) for block, (_, sets) in zip(chosen, groups) for name in block if name in differ
    ]
    dominance_lines = each(
        lambda own: judge_totals(read_cells(pair, own[0]), own[1], weights, rule), judged
    )
    dominated = [line for line in dominance_lines if line is not None]

    found.of_form(pair, schema, coarser)
    found.of_groups([line for line, _ in groups], joint, layers, k, unit)
    found.of_implied(pair, wanted, groups, layers, k, units)
    found.of_diversity(spread, pair.n_rows)
    found.of_rules(lines, unjudged)
    found.of_columns(columns, unreadable, coarser, suppressed)
    found.of_records(untouched, pair.n_rows, counted)
    found.notes += describe_dominance(dominated)
    return Audit(
        problems=tuple(found.problems),
        notes=tuple(found.notes),
        n_records=pair.n_rows,
        k=k,
        unit=unit,
        weight=weights.column,
        strata=layers.names,
        blocks=tuple(line for line, _ in groups),
        joint=joint,
        rules=tuple(lines),
        columns=tuple(columns),
        untouched=untouched,
        dominance=tuple(dominated),
        recoded=tuple(coarser.hierarchies),
        diversity=spread,
    )


def _find_diversity(
    schema: Schema | None, l: Any, t: Any, confidential: Any  # noqa: E741
) -> DiversityRule | None:  # fmt: skip
    """Read what is asked of confidential values; by default of the schema's."""
    if confidential is None and schema is not None and (l is not None or t is not None):
        confidential = schema.names("confidential")
    return DiversityRule.of(l=l, t=t, confidential=confidential)


def _pair(original: Any, masked: Any, schema: Schema | None) -> Pair:
    pair = Pair(original, masked, schema)
    before, after = pair.original.table, pair.masked.table
    unit = pair.original.unit
    lost = [name for name in before.columns if not after.has(name) and name != unit]
    new = [name for name in after.columns if not before.has(name)]
    if lost or new:
        raise IncomparableError.columns(lost, new)
    if schema is not None:
        schema.check(before)
    return pair


def _find_weights(pair: Pair, schema: Schema | None, found: Findings) -> Weights:
    """Read the weight that the schema names, in both tables."""
    if schema is None or not (weighing := schema.names("weight")):
        return Weights()
    if len(weighing) > 1:
        raise BadTableError(
            f"The schema names several weights: {named(weighing)}. Give the role 'weight' to one, "
            "and 'untouched' to the others."
        )
    name = weighing[0]
    if schema[name].guessed:
        found.notes.append(
            f"Column {name!r} is only guessed to be a sampling weight: no figure is weighted. "
            f"Confirm it with schema.override({{{name!r}: {{'role': 'weight'}}}})."
        )
        return Weights()
    before = pair.original.weights(name)
    try:
        after = pair.masked.weights(name)
    except BadTableError:
        found.problems.append(
            f"The weights in {name!r} of the released table are not all positive numbers: those of "
            "the original weigh its figures here."
        )
        after = before
    return Weights(before=before, after=after, column=name)


def _find_blocks(
    pair: Pair,
    schema: Schema | None,
    blocks: Any,
    strata: Strata,
    columns: Sequence[ColumnLine],
    found: Findings,
) -> tuple[tuple[Name, ...], ...]:
    differ = {line.name for line in columns if line.changed}
    roles = set() if schema is None else set(schema.names("quasi-identifier"))
    count = [n for n in pair.columns if n in differ | roles and n not in strata.columns]
    if blocks is None:
        also = " and the schema's quasi-identifiers" if roles else ""
        found.notes.append(
            f"No blocks were named: the columns that differ{also} form one block: {named(count)}."
            if count
            else "No blocks were named, and no column differs: the released table is the original."
        )
        return (tuple(count),) if count else ()
    if not isinstance(blocks, list | tuple) or not all(isinstance(b, list | tuple) for b in blocks):
        raise BadOptionError(
            "blocks", blocks, "a list of lists of column names, for example "
            "[['income', 'tax'], ['age']]"
        )  # fmt: skip
    flat = [name for block in blocks for name in block]
    for name in flat:
        pair.masked.table.place(name, who="blocks")
    if twice := [name for name, times in Counter(flat).items() if times > 1]:
        raise BadTableError(f"blocks names {named(twice)} more than once.")
    if not flat or not all(blocks):
        raise BadTableError("blocks is empty, or has an empty block. Leave it out.")
    if left := [name for name in count if name not in set(flat)]:
        nobody = "so that no equal records were counted in them"
        found.notes.append(f"In no block, {nobody}: {named(left)}.")
    return tuple(tuple(block) for block in blocks)
