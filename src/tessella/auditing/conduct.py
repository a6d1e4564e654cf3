"""The audit itself: an original and a released table in, what must be known of them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._types import Name
from ..exceptions import BadOptionError, BadTableError, GroupSizeError
from ..rules.collection import Rules
from ..schema import Schema
from .count import Strata, Weights, compare_column, compare_rules, count_groups, find_strata
from .findings import Findings, named
from .lines import ColumnLine
from .pair import Pair
from .result import Audit

__all__ = ["audit"]

FEW = 3  # an original total that differs in fewer cells than this could be solved for one of them


def audit(
    original: Any,
    released: Any,
    *,
    k: int | None = None,
    blocks: Sequence[Sequence[Name]] | None = None,
    strata: Any = None,
    rules: Rules | str | Iterable[str] | None = None,
    schema: Schema | None = None,
    tolerance: float = 1e-9,
) -> Audit:
    """Audit a released table: count everything in the table itself.

    Parameters
    ----------
    original, released : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The two tables, with the same records in the same order, and the same columns.
    k : int, optional
        How many records must share their released values, in every block and every stratum.
    blocks : list of lists of column names, optional
        The columns in which records must be alike, block by block. By default one block: all
        columns that differ between the tables and, with a schema, all quasi-identifiers; without
        those that make the strata.
    strata : name, list of names, or array-like of shape (n,), optional
        Records count as alike only within a stratum. Columns are read in the released table.
    rules : Rules, text or list of texts, optional
        What must be true of every record. Where they speak of mean(x) or observed(x), those of
        the original are meant.
    schema : Schema, optional
        Says which values stand for "missing", which numbers are categories, and which column
        weighs the records.
    tolerance : float
        How far apart numbers may be that a rule calls equal: see `Rules.confront`.

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

    y being the released table. A missing cell is a value of its own, and so is each missing code.
    Numbers are the same only if their bits are.

    Problems are: another form (dtype, index, order), fewer than k alike in a block, any record that
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
    >>> released = original.assign(net=[12, 12, 12, 25, 25, 25], tax=[2, 2, 2, 5, 5, 5])
    >>> audit(original, released, k=3, strata="sex", rules="tax <= net")
    Audit of 6 records in 3 columns, of which 2 changed: passed.
    <BLANKLINE>
    Records that share all released values, in each of 2 strata:
    alike in  combinations  smallest  below 3  columns
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
    _check_options(k, schema, tolerance)
    k = None if k is None else int(k)
    wanted = Rules() if rules is None else Rules.of(rules)
    pair, found = Pair(original, released, schema), Findings()
    layers = find_strata(pair, strata)
    weights = _find_weights(pair, found)
    columns = tuple(
        compare_column(pair[name], weights, few=max(k or 0, FEW)) for name in pair.columns
    )
    chosen = _find_blocks(pair, blocks, layers, columns, found)
    groups = [
        count_groups(block, [pair[name].alike for name in block], layers, k) for block in chosen
    ]
    masked = tuple(name for block in chosen for name in block)
    joint = groups[0][0] if len(groups) == 1 else None
    if len(groups) > 1:
        joint, _ = count_groups(masked, [sets for _, sets in groups], layers, k)
    lines, unjudged = compare_rules(wanted, pair, tolerance=tolerance, schema=schema)
    untouched = _count_untouched(pair, masked)

    found.of_form(pair)
    found.of_groups([line for line, _ in groups], joint, layers, k)
    found.of_rules(lines, unjudged)
    found.of_columns(columns, pair.unreadable)
    found.of_records(untouched, pair.n_rows, masked)
    return Audit(
        problems=tuple(found.problems),
        notes=tuple(found.notes),
        n_records=pair.n_rows,
        k=k,
        weight=weights.column,
        strata=layers.names,
        blocks=tuple(line for line, _ in groups),
        joint=joint,
        rules=tuple(lines),
        columns=columns,
        untouched=untouched,
    )


def _check_options(k: Any, schema: Any, tolerance: Any) -> None:
    if k is not None:
        if not isinstance(k, int | np.integer) or isinstance(k, bool):
            raise GroupSizeError.not_an_integer(k)
        if k < 2:
            raise GroupSizeError.too_small(int(k))
    if schema is not None and not isinstance(schema, Schema):
        raise BadTableError(
            f"schema is a {type(schema).__name__}; give a tessella.Schema, for example "
            "tessella.Schema.guess(table)."
        )
    real = isinstance(tolerance, int | float | np.number) and not isinstance(tolerance, bool)
    if not real or not 0 <= tolerance < 1:
        raise BadOptionError("tolerance", tolerance, "a number from 0 to less than 1")


def _find_weights(pair: Pair, found: Findings) -> Weights:
    """Read the weight that the schema names, in both tables."""
    if pair.schema is None or not (weighing := pair.schema.names("weight")):
        return Weights()
    if len(weighing) > 1:
        raise BadTableError(
            f"The schema names several weights: {named(weighing)}. Give the role 'weight' to one, "
            "and 'untouched' to the others."
        )
    name = weighing[0]
    if pair.schema[name].guessed:
        found.notes.append(
            f"Column {name!r} is only guessed to be a sampling weight: no figure is weighted. "
            f"Confirm it with schema.override({{{name!r}: {{'role': 'weight'}}}})."
        )
        return Weights()
    cells = pair[name]
    bad = [
        not cells.numeric or bool(state.any()) or bool((values < 0).any()) or not values.any()
        for values, state in ((cells.before, cells.state_before), (cells.after, cells.state_after))
    ]
    if bad[0]:
        raise BadTableError(
            f"The weights in {name!r} must be numbers of 0 or more, none missing and not all 0. "
            "Correct them, or give the column another role in the schema."
        )
    if bad[1]:
        found.problems.append(
            f"The weights in {name!r} of the released table are not all numbers of 0 or more: "
            "those of the original weigh its figures here."
        )
    after = cells.before if bad[1] else cells.after
    return Weights(before=cells.before, after=after, column=name)


def _find_blocks(
    pair: Pair, blocks: Any, strata: Strata, columns: Sequence[ColumnLine], found: Findings
) -> tuple[tuple[Name, ...], ...]:
    differ = {line.name for line in columns if line.changed}
    roles = set() if pair.schema is None else set(pair.schema.names("quasi-identifier"))
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
        pair.released.place(name, who="blocks")
    if twice := [name for name, times in Counter(flat).items() if times > 1]:
        raise BadTableError(f"blocks names {named(twice)} more than once.")
    if not flat or not all(blocks):
        raise BadTableError("blocks is empty, or has an empty block. Leave it out.")
    if left := [name for name in count if name not in set(flat)]:
        found.notes.append(
            f"In no block, so that nobody counted who is alike in them: {named(left)}."
        )
    return tuple(tuple(block) for block in blocks)


def _count_untouched(pair: Pair, masked: Sequence[Name]) -> int:
    """Count the records that are released as they were in every masked column."""
    touched = np.zeros(pair.n_rows, dtype=bool)
    for name in masked:
        touched |= pair[name].differs
    return int(pair.n_rows - touched.sum())
