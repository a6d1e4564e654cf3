"""`verify`: audit a masked file, whatever tool has made it, and measure what it lost.

What `verify` found.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._parameters import FLAG, NONE, Instance, parameters
from .._types import Integers, Name
from .._wording import counted
from ..exceptions import BadOptionError, BadTableError
from ..frame import Pair, Table, View, group_ids
from ..io import read_file
from ..keys import Hierarchy
from ..loss import measure
from ..loss.base import Summary
from ..loss.distributions import Distribution, largest_gap
from ..rules import Rules
from ..schema import Schema
from .conduct import audit
from .manifests import check_hashes, described_schema, read_manifest
from .recoded import Recoded, read_hierarchies
from .result import Audit
from .stored import as_audited

SHOWN = 30
FEW = 20  # records, of which chance may decide whether columns go together


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How far the distribution of a column is from that of the original, whoever is who.

    Attributes
    ----------
    column : name
        The column.
    distance : float
        Of numbers the largest difference of the two distribution functions (Kolmogorov-Smirnov);
        of categories half the sum of differences of their shares. From 0 to 1.
    mean_change : float or None
        Of numbers, the change of the mean in standard deviations of the original.
    """

    column: Name
    distance: float
    mean_change: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Verification:
    """What is true of a released table, whatever tool has made it.

    Attributes
    ----------
    problems : tuple of str
        What must not be so; empty if the release is verified.
    notes : tuple of str
        What a person should know: what could not be compared, and why.
    audit : Audit
        k and rules, counted in the released table; against the original where records are aligned.
    aligned : bool
        Whether records could be compared one by one.
    loss : Summary or None
        The information loss, where records are aligned.
    shapes : tuple of Shape
        The distributions, which can always be compared.
    hashes : dict of str to bool or None
        For each file of the manifest whether its hash fits; None for a file that is not there.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    audit: Audit
    aligned: bool
    loss: Summary | None
    shapes: tuple[Shape, ...]
    hashes: dict[str, bool | None]

    @property
    def passed(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers, without confidential figures."""
        return {
            "passed": self.passed,
            "problems": list(self.problems),
            "notes": list(self.notes),
            "aligned": self.aligned,
            "audit": self.audit.to_dict(),
            "loss": None if self.loss is None else self.loss.to_dict(),
            "distributions": [vars(s) | {"column": str(s.column)} for s in self.shapes],
            "hashes": dict(self.hashes),
        }

    def __str__(self) -> str:
        verdict = "verified" if self.passed else counted(len(self.problems), "problem")
        lines = [f"Release of {self.audit.n_records:,} records: {verdict}."]
        lines += [f"- {problem}" for problem in self.problems]
        for file, fits in self.hashes.items():
            words = {True: "as in the manifest", False: "NOT as in the manifest", None: "?"}
            lines.append(f"Hash of {file}: {words[fits]}")
        if self.audit.blocks:
            smallest = min(line.k for line in self.audit.blocks)
            of = "" if self.audit.k is None else f" (k = {self.audit.k})"
            lines.append(f"Smallest group, equal in all masked columns of a block: {smallest}{of}.")
        for own in self.audit.diversity:
            lines.append(f"Confidential {own.column}: {own.asked}, the worst has {own.worst:.4g}.")
        if rules := self.audit.rules:
            kept = sum(line.breaks_after == 0 for line in rules)
            lines.append(f"Rules that every released record keeps: {kept} of {len(rules)}.")
        if self.loss is not None:
            lines += ["", str(self.loss)]
        elif self.shapes:
            width = max(len(str(shape.column)) for shape in self.shapes)
            lines += ["", "Distributions, compared without knowing who is who:"]
            for shape in self.shapes[:SHOWN]:
                name, change = str(shape.column).ljust(width), shape.mean_change
                moved = "" if change is None else f", mean {change:+.3g} standard deviations"
                lines.append(f"  {name}  {100 * shape.distance:5.1f} points apart{moved}")
        if self.notes:
            lines += ["", "Notes:", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines)

    __repr__ = __str__


# The same values, kept otherwise.
STORAGE = re.compile(
    r"^Column .* (was stored as .+ and now is as "
    r"|held (integer|float|decimal) \(.*\) and now holds (integer|float|decimal) \("
    r"|held (categories|text \(.*\)) and now holds (categories|text)"
    r"|held categories in an order that is lost)"
)
UNRELATED = 4.0  # standard errors of a correlation of unrelated columns


@parameters(
    {"release": "masked"},
    schema=[Instance(Schema, "a tessella.Schema, such as tessella.Schema.guess(table)"), NONE],
    aligned=[FLAG, NONE],
)
def verify(
    original: Any,
    masked: Any,
    *,
    k: int | None = None,
    rules: Any = None,
    schema: Schema | None = None,
    blocks: Sequence[Sequence[Name]] | None = None,
    strata: Any = None,
    id: Name | None = None,
    aligned: bool | None = None,
    manifest: Any = None,
    tolerance: float | None = None,
    hierarchies: Any = None,
    l: Any = None,  # noqa: E741
    t: Any = None,
    confidential: Any = None,
    as_read: Any = None,
) -> Verification:
    """Audit and measure a released table, made by any tool.

    Parameters
    ----------
    original, masked : path or frame
        The two tables, as files that `tessella.io.read_file` reads or as frames.
    k : int, optional
        How many records must share their released values. By default the manifest's.
    rules : Rules, text or list of texts, optional
        What must be true of every released record. By default the manifest's.
    schema : Schema, optional
        Kinds, roles and missing codes of the original's columns. By default the manifest's, for
        what was released.
    blocks, strata : optional
        The columns in which records must be equal, and within which strata: see `tessella.audit`.
        Otherwise the manifest's.
    id : name, optional
        A column of both tables that says which records belong together.
    aligned : bool, optional
        Whether record i of one table is record i of the other. By default decided by `id`, by the
        manifest, or by the values.
    manifest : path or dict, optional
        The manifest of the release: hashes, k, blocks and rules are checked against it.
    tolerance : float, optional
        How far apart numbers may be and count as equal in a rule; by default the manifest's, or
        1e-9.
    hierarchies : mapping of name to Hierarchy, or as a plan writes it, optional
        Hierarchies by which columns were recoded: every released value must cover the original one.
        Otherwise the manifest's, as far as it has them.
    l, t, confidential : optional
        What confidential values must be among records that are alike: see `tessella.audit`.
        Otherwise the manifest's.
    as_read : table, optional
        As in `tessella.loss.measure`: the original before cells of it were suppressed.

    Returns
    -------
    Verification
        With `passed`, `problems`, `notes`, `audit`, `loss` and `shapes`; it prints.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella import verify
    >>> original = pd.DataFrame({"net": [10, 12, 14, 20, 25, 30], "tax": [1, 2, 3, 4, 5, 6]})
    >>> released = original.assign(net=[12, 12, 12, 25, 25, 25], tax=[2, 2, 2, 5, 5, 5])
    >>> verify(original, released, k=3, rules="tax <= net").passed
    True
    >>> verify(original, released.iloc[:4], k=3, rules="tax <= net").problems
    ("Block 1 ('net', 'tax'): 1 of 4 records shares its released values with fewer than 3 ...
    """
    promised = read_manifest(manifest)
    problems: list[str] = []
    notes: list[str] = []
    hashes = check_hashes(promised, masked, manifest, problems)
    before = _read(original)
    after = _read(masked, like=before)
    names = _common(before, after, id, problems, notes)
    if schema is None and promised:
        schema = described_schema(promised, Schema.guess(before))
    elif schema is not None:
        schema.check(before)
    rows = _alignment(before, after, names, id, aligned, promised, notes)
    unit = [] if schema is None else [name for name in schema.names("unit") if name not in names]
    if unit and rows is None:
        notes.append(f"Which records are of one {unit[0]!r} is not known: k is counted in records.")
        unit = []
    if schema is not None:
        schema = Schema([schema[name] for name in (*names, *unit)])
    # The tables with the same columns, and the original in the order of the masked one.
    mine = Table.read(after.select(names))
    whole = None if as_read is None else View.of(as_read)
    if rows is not None:
        reference = Table.read(Table.read(before.select([*names, *unit])).take(rows))
        if whole is not None:
            whole = View(Table.read(whole.table.take(rows)), whole.schema)
        mine = Table.read(mine.take(np.arange(mine.n_rows)))  # an index of the same kind
    else:
        reference = mine
    views = Pair(reference, mine, schema)
    first = View(before, schema)
    known = read_hierarchies(hierarchies, promised, first)
    recoded = {name: own for name, own in known.items() if name in names}
    coarser = Recoded(hierarchies=recoded if rows is not None else {}, emptied=mine.n_rows)
    blocks = blocks or [b["columns"] for b in promised.get("blocks", [])] or None
    found = audit(
        views.original, views.masked, schema=schema,
        k=promised.get("k") if k is None else k,
        blocks=_keys(schema, names, notes) if rows is None and blocks is None else blocks,
        strata=strata if strata is not None else (promised.get("strata") or None),
        rules=_rules_of(rules, promised) or None,
        tolerance=float(promised.get("tolerance", 1e-9)) if tolerance is None else tolerance,
        recoded=coarser, wildcard=_loose(blocks, promised),
        **_diversity_of(l, t, confidential, promised),
    )  # fmt: skip
    if rows is None and any(line.asks_original for line in found.rules):
        notes.append("Rules that ask for values of the original were asked of the release.")
    _sort_problems(found, problems, notes)
    notes += [note for note in found.notes if rows is not None or "eleased as " not in note]
    return Verification(
        problems=tuple(problems),
        notes=tuple(notes),
        audit=found,
        aligned=rows is not None,
        loss=_loss(views, schema, notes, recoded, whole) if rows is not None else None,
        shapes=tuple(_shape(first, views.masked, name) for name in names if name not in recoded),
        hashes=hashes,
    )


def _loose(
    blocks: Sequence[Sequence[Name]] | None, promised: Mapping[str, Any]
) -> list[list[Name]]:
    """Return the blocks in which the manifest says that an empty cell equals every value."""
    said = [set(b["columns"]) for b in promised.get("blocks", []) if b.get("wildcard")]
    return [list(block) for block in blocks or () if set(map(str, block)) in said]


def _diversity_of(
    l: Any, t: Any, confidential: Any, promised: Mapping[str, Any]  # noqa: E741
) -> dict[str, Any]:  # fmt: skip
    """Return what is asked of confidential values, or what the manifest says was audited."""
    if l is None and t is None:
        own = promised.get("diversity") or {}
        return {name: own.get(name) for name in ("l", "t", "confidential")}
    return {"l": l, "t": t, "confidential": confidential}


def _sort_problems(found: Audit, problems: list[str], notes: list[str]) -> None:
    """Note what a tool may do: the same values stored otherwise, and cells that were suppressed."""
    suppressed = {
        f"Column {line.name!r}: ": f"{line.moved:,} cells of {line.name!r} were suppressed."
        for line in found.columns
        if line.moved and line.moved == line.missing_after - line.missing_before
    }
    for problem in found.problems:
        allowed = [note for start, note in suppressed.items() if problem.startswith(start)]
        if "became missing" in problem and allowed:
            notes += allowed
        else:
            (notes if STORAGE.search(problem) else problems).append(problem)


def _read(given: Any, *, like: Table | None = None) -> Table:
    """Read a table; a file that was written from a table `like` another in the same kinds."""
    if not isinstance(given, str | os.PathLike):
        return Table.read(given)
    source = read_file(given)
    return Table.read(source.table if like is None else as_audited(source, like))


def _common(
    before: Table, after: Table, id: Name | None, problems: list[str], notes: list[str]
) -> list[Name]:
    lost = [name for name in before.columns if not after.has(name)]
    new = [name for name in after.columns if not before.has(name)]
    if lost:
        notes.append(f"Not in the release: {', '.join(map(repr, lost))}.")
    if new:
        problems.append(
            f"The release has columns that the original does not have: "
            f"{', '.join(map(repr, new))}. They cannot be compared."
        )
    names = [name for name in before.columns if after.has(name) and name != id]
    if not names:
        raise BadTableError("The two tables have no column in common: nothing can be compared.")
    return names


def _rules_of(rules: Any, promised: Mapping[str, Any]) -> Rules:
    if rules is not None:
        return Rules.of(rules)
    return Rules([f"{rule['name']}: {rule['text']}" for rule in promised.get("rules", [])])


def _alignment(
    before: Table, after: Table, names: list[Name], id: Name | None, aligned: bool | None,
    promised: Mapping[str, Any], notes: list[str],
) -> Integers | None:  # fmt: skip
    """Return for each released record its row in the original, or None where that is not known."""
    if id is not None:
        return _by_id(before, after, id)
    if before.n_rows != after.n_rows:
        if aligned:
            lengths = f"not {before.n_rows} and {after.n_rows}"
            raise BadOptionError("aligned", True, f"tables of the same length, {lengths}")
        notes.append(
            f"The original has {before.n_rows:,} records and the release {after.n_rows:,}: records "
            "cannot be compared one by one; k, rules and distributions can."
        )
        return None
    if aligned is None and promised.get("order") == "shuffled":
        notes.append("The manifest says that the records are in random order: records cannot be "
                     "compared one by one; k, rules and distributions can.")  # fmt: skip
        return None
    if aligned is None and is_shuffled(before, after, names):
        notes.append("No column goes with itself record by record: the order seems to be another, "
                     "and records are not compared one by one. If it is the same, say "
                     "aligned=True.")  # fmt: skip
        return None
    return None if aligned is False else np.arange(before.n_rows)


def looks_shuffled(before: Table, after: Table) -> bool:
    """Return whether records of the same place are strangers; few records may be so by chance."""
    names = [name for name in before.columns if after.has(name)]
    many = bool(names) and before.n_rows == after.n_rows > FEW
    return many and is_shuffled(before, after, names)


def is_shuffled(before: Table, after: Table, names: Iterable[Name]) -> bool:
    """Return whether no column goes with itself record by record: the order is another."""
    pair = Pair(before, after)
    return not any(_related(pair, name) for name in names)


def _by_id(before: Table, after: Table, id: Name) -> Integers:
    before.place(id, who="id=")
    after.place(id, who="id=")
    (old, texts), (new, wanted) = before.labels(id), after.labels(id)
    for place, which in ((old, "original"), (new, "release")):
        if (place < 0).any() or len(np.unique(place)) < len(place):
            raise BadOptionError("id", id, f"a column without repeated or missing values; the "
                                           f"{which} has some")  # fmt: skip
    where = {texts[place]: row for row, place in enumerate(old.tolist())}
    if lost := [text for text in wanted if text not in where]:
        raise BadOptionError("id", id, f"a column whose values the original has; {len(lost)} of "
                                       "the release are not there")  # fmt: skip
    return np.array([where[wanted[place]] for place in new.tolist()], dtype=np.int64)


def _related(pair: Pair, name: Name) -> bool:
    """Return whether a column goes with itself, more than two unrelated ones would."""
    least = max(0.05, UNRELATED / math.sqrt(max(pair.n_rows, 1)))
    numbers = None
    if pair.is_number(name):
        with suppress(BadTableError):  # infinite, or too many digits: compared as labels
            numbers = pair.numbers(name)
    if numbers is not None:
        x, y = numbers
        known = ~(np.isnan(x) | np.isnan(y))
        x, y = x[known], y[known]
        if len(x) < 2 or x.std() == 0 or y.std() == 0:
            return False
        if np.array_equal(x, y):
            return True
        ranks = [np.argsort(np.argsort(v, kind="stable"), kind="stable") for v in (x, y)]
        return bool(abs(np.corrcoef(ranks[0], ranks[1])[0, 1]) > least)
    old, new, labels = pair.labels(name)
    if len(labels) > 1 and np.array_equal(old, new):
        return True
    if not np.isin(new[new >= 0], old).any():  # coarser values, perhaps
        return _associated(old, new)
    shares = [np.bincount(p[p >= 0], minlength=len(labels)) / len(p) for p in (old, new)]
    return bool((old == new).mean() - float(shares[0] @ shares[1]) > least)


def _associated(old: Integers, new: Integers) -> bool:
    """Return whether new categories go with old ones, more than chance would have it.

    The statistic G = 2 n I of independent columns has (r - 1)(c - 1) for its mean, if not less, and
    twice that for its variance.
    """
    known = (old >= 0) & (new >= 0)
    if not known.any():
        return False
    one, other = group_ids([old[known]]), group_ids([new[known]])
    both = group_ids([one, other])
    sides = [np.bincount(ids) for ids in (one, other, both)]
    logs = [float((count * np.log(count)).sum()) for count in sides]
    n = len(one)
    g = 2 * (logs[2] - logs[0] - logs[1] + n * math.log(n))
    free = (len(sides[0]) - 1) * (len(sides[1]) - 1)
    return free > 0 and g > free + 2 * UNRELATED * math.sqrt(2 * free)


def _keys(schema: Schema | None, names: list[Name], notes: list[str]) -> list[list[Name]]:
    """Choose the columns in which to count who is alike, where nothing says which were masked."""
    if schema is not None and (keys := schema.names("quasi-identifier")):
        return [[name for name in keys if name in names]]
    notes.append("It is not known which columns were masked: equal means equal in all of them.")
    return [list(names)]


def _loss(
    pair: Pair, schema: Schema | None, notes: list[str], recoded: Mapping[Name, Hierarchy | None],
    as_read: View | None,
) -> Summary | None:  # fmt: skip
    known = {name: own for name, own in recoded.items() if own is not None}
    try:
        return measure(
            pair.original, pair.masked, schema=schema, on_unpaired="skip",
            hierarchies=known or None, as_read=as_read,
        )  # fmt: skip
    except BadTableError as error:
        notes.append(f"The information loss cannot be measured: {error}")
        return None


def _shape(before: View, after: View, name: Name) -> Shape:
    if before.is_number(name) and after.is_number(name):
        x, y = (np.sort(v[~np.isnan(v)]) for v in (before.numbers(name), after.numbers(name)))
        if not len(x) or not len(y):
            return Shape(column=name, distance=float(len(x) != len(y)))
        apart, spread = largest_gap(Distribution(x, None), Distribution(y, None)), float(x.std())
        moved = float(y.mean() - x.mean()) / spread if spread > 0 else None
        return Shape(column=name, distance=apart, mean_change=moved)
    shares: list[dict[str | None, float]] = []
    for view in (before, after):
        codes, labels = view.labels(name)
        counts = np.bincount(np.where(codes < 0, len(labels), codes), minlength=len(labels) + 1)
        shares.append(dict(zip([*labels, None], (counts / view.n_rows).tolist())))
    every = {*shares[0], *shares[1]}
    distance = sum(abs(shares[0].get(t, 0.0) - shares[1].get(t, 0.0)) for t in every) / 2
    return Shape(column=name, distance=distance)
