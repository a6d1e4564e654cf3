"""Steps: what can be done to a table on its way to a release, each of them data.

A *preparing* step (drop, recode, suppress) changes what the release is about; loss and audit then
compare with the table as prepared. A *masking* step changes values. A step knows nothing of others:
the same step with the same seed on the same table gives the same table.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._types import Integers, Name
from .._wording import counted, listed
from ..exceptions import (
    BadOptionError,
    BadTableError,
    EmptiedColumnWarning,
    UnknownOptionError,
)
from ..frame import Table, View, count_units, group_ids
from ..grouping.base import check_k
from ..keys.sources import names_of_intervals
from ..masking import registry, restore
from ..masking.fuzzy_groups import FUZZY_OPTIONS, FuzzyOptions
from ..rules import Rules
from ..schema import Schema
from .recoding import measure_of, public_form, refuse_unjudged
from .result import DEFAULTS

PREPARING = {
    "drop": ("columns",),
    "recode": ("column", "groups", "breaks", "labels", "other"),
    "suppress": ("k", "columns"),
}

RENAMED = {"method": "grouping", "missing": "on_missing", "scale": "amount"}  # options
GROUPING = "grouping"  # the option of steps that form groups
FUZZY = "fuzzy microaggregation"
OVERLAPPING = "overlapping microaggregation"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step, as data.

    Parameters
    ----------
    method : str
        What is done: "drop", "recode", "suppress" (cells of records that lack what nobody else
        lacks), "protect", or another method of `tessella.masking.registry`: "noise", "rank
        swapping", "shuffling", "record swapping", "individual ranking", "rounding", "coding",
        "pram", "microaggregation", "fuzzy microaggregation", "overlapping microaggregation", and
        what others have registered.
    options : mapping
        Its parameters, by name.
    name : str
        What its holder calls it.

    Examples
    --------
    >>> from tessella.release import Step
    >>> Step(method="noise", options={"amount": 0.1})
    Step(method='noise', options={'amount': 0.1}, name='')
    >>> Step(method="noise", options={"sigma": 0.1})
    Traceback (most recent call last):
    ...
    tessella.exceptions.UnknownOptionError: ...'sigma'...
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        allowed = options_of(self.method)
        if not isinstance(self.options, Mapping):
            raise BadOptionError("options", type(self.options).__name__, "a mapping of names")
        for option in self.options:
            if option not in allowed:
                if (new := RENAMED.get(option)) in allowed:
                    raise BadOptionError(
                        f"option of {self.method!r}", option, f"{new!r}: its name now"
                    )
                raise UnknownOptionError(f"option of {self.method!r}", option, allowed)
        usual = {} if self.method in PREPARING else registry.find(self.method).step
        object.__setattr__(self, "options", {**usual, **self.options})

    @property
    def public(self) -> dict[str, Any]:
        """The options that may be published: not which categories were put together.

        Those of a fuzzy draw are among them, also where they are the usual ones.
        """
        if self.method == "recode" and isinstance(self.options.get("groups"), Mapping):
            return {**self.options, "groups": sorted(map(str, self.options["groups"]))}
        if isinstance(coarser := self.options.get("hierarchies"), Mapping):
            shown = {str(name): public_form(form) for name, form in coarser.items()}
            return {**self.options, "hierarchies": shown}
        if self.method == FUZZY:
            return {**self.options, **_draw_of(self.options)}
        if self.method == "protect" and self.options.get(GROUPING) == "fuzzy":
            inner = self.options.get("options") or {}
            return {**self.options, "options": {**inner, **_draw_of(inner)}}
        return dict(self.options)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, as a plan file writes them."""
        named = {"name": self.name} if self.name else {}
        return {"method": self.method, **named, **self.options}

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> Step:
        """Build a step from what `to_dict` gave."""
        rest = {key: value for key, value in known.items() if key not in ("method", "name")}
        return cls(method=known.get("method", ""), options=rest, name=str(known.get("name", "")))


def _draw_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return m2 or lambda2, and whether k is kept."""
    return FuzzyOptions.of({name: given[name] for name in FUZZY_OPTIONS if name in given}).public


def options_of(method: str) -> tuple[str, ...]:
    """List the options that a step of some method takes."""
    if method in PREPARING:
        return PREPARING[method]
    try:
        return registry.find(method).options
    except UnknownOptionError:
        known = [*PREPARING, *registry.methods()]
        raise UnknownOptionError("method of a step", method, known) from None


def make_masker(step: Step, *, schema: Schema, rules: Any, seed: Any, folder: Any = None) -> Any:
    """Build the masker of a step; it keeps the rules afterwards where it can."""
    masker = registry.find(step.method).masker
    if masker is None:
        raise BadOptionError("method", step.method, "a method with a masker")
    taken = inspect.signature(masker).parameters
    given = {"schema": schema, "random_state": seed, "on_missing": "pattern", "folder": folder}
    given = {name: value for name, value in given.items() if name in taken}
    if "rules" in taken and getattr(masker, "repairs", True) and len(rules):
        given["rules"] = rules
    options = {n: v for n, v in step.options.items() if n in taken}
    if isinstance(options.get("measure"), str):
        options["measure"] = measure_of(options["measure"], options.get("hierarchies"), schema)
    try:
        return masker(**given | options)
    except TypeError as error:
        raise BadOptionError("options", step.method, f"complete options: {error}") from None


@dataclass(frozen=True, kw_only=True)
class MaskedTable:
    """What a step made of a table, and by whom."""

    table: Any
    masker: Any
    account: str


def mask(
    step: Step, table: Table, *, schema: Schema, rules: Any, seed: Any, folder: Any = None
) -> MaskedTable:
    """Mask a table by a step.

    Records are moved back to the rules where the masker does not do so itself, unless its groups
    would be lost by that.
    """
    masker = make_masker(step, schema=schema, rules=rules, seed=seed, folder=folder)
    masked = masker.fit_transform(table)
    restoration = getattr(masker, "restoration_", None)
    if is_restored(step, rules):
        moving = masked_columns(masker, table)
        coarser = getattr(masker, "hierarchies_", {})
        masked, restoration = restore(
            masked, Rules(rule for rule in rules if not set(rule.columns) & set(coarser)),
            original=table, columns=[name for name in moving if name not in coarser],
            schema=schema,
        )  # fmt: skip
    if (recoded := getattr(masker, "recoded_", None)) is not None:
        refuse_unjudged(rules, masked, recoded.hierarchies, schema)
    account = [f"Loss of this step {masker.loss_:.2f} %."] if hasattr(masker, "loss_") else []
    account += [masker.account_] if hasattr(masker, "account_") else []
    account += [str(restoration)] if restoration else []
    return MaskedTable(table=masked, masker=masker, account=" ".join(account))


def masked_columns(masker: Any, table: Table) -> list[Name]:
    """List the columns that a fitted masker masked; one that does not state them masked none."""
    named = getattr(masker, "columns_", None)
    if named is None:
        named = [name for block in getattr(masker, "blocks_", ()) for name in block]
    return [name for name in table.columns if name in set(named)]


def group_strata(step: Step, table: Table) -> list[Name]:
    """List the strata of a step that puts at least k records of a stratum into each group."""
    groups, given = registry.find(step.method).groups, step.options.get("strata")
    if given is None or groups is None or not groups(step.options, ["column"]):
        return []
    return [given] if isinstance(given, str) or table.has(given) else list(given)


def masks_keys(step: Step) -> bool:
    """Whether a step brings categorical keys to k: by emptying cells, or along hierarchies."""
    method = registry.find(step.method)
    return "hierarchies" in method.options or (
        method.masks == "categories" and method.groups is not None
    )


def is_restored(step: Step, rules: Any) -> bool:
    """Whether records are moved back to the rules after the masker is done."""
    method = registry.find(step.method)
    if not len(rules) or method.masker is None or method.masks == "categories":
        return False
    keeps = "rules" in inspect.signature(method.masker).parameters and getattr(
        method.masker, "repairs", True
    )
    # Equal records move to equal ones: where groups are made of centres, the audit counts k again.
    grouped = method.groups and method.groups(step.options, ["column"])
    return not keeps and not (grouped and getattr(method.masker, "repairs", True))


def drop(table: Table, schema: Schema, columns: Sequence[Name] | Name) -> tuple[Any, Schema]:
    """Return the table and its schema without some columns."""
    gone = [columns] if isinstance(columns, str) or table.has(columns) else list(columns)  # type: ignore[call-overload]
    for name in gone:
        table.place(name, who="drop")
    kept = [name for name in table.columns if name not in gone]
    if not kept:
        raise BadTableError(
            "All columns would be dropped; nothing would be left to release. Leave those that are "
            f"to be released out of columns={list(map(str, gone))!r}."
        )
    return table.select(kept), Schema([schema[name] for name in kept])


def recode(
    table: Table,
    schema: Schema,
    *,
    column: Name,
    groups: Mapping[str, Sequence[Any]] | None = None,
    breaks: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    other: str | None = None,
) -> tuple[Any, Schema]:
    """Return the table with coarser categories in one column.

    `groups` maps a new category to old values; those that are not named become `other`, or stay.
    Or numbers become intervals between rising `breaks`, each with its lower end; `labels` name
    them, one more than there are breaks.
    """
    if (groups is None) == (breaks is None):
        raise BadOptionError("column", column, "groups={'new': ['old']} or breaks=[10, 20]")
    place, texts = table.labels(column)
    if groups is not None:
        new = {str(old): str(name) for name, members in groups.items() for old in members}
        if unknown := sorted(set(new) - set(texts)):
            named = ", ".join(map(repr, unknown[:5]))
            raise BadOptionError("groups", named, f"values that occur in column {column!r}")
        fresh = [new.get(text, other if other is not None else text) for text in texts]
        coarse = table.relabel(column, fresh)
        return coarse, schema.override({column: {"kind": "nominal", "missing": (), "labels": {}}})
    ends = np.asarray(breaks, dtype=np.float64)
    if ends.ndim != 1 or not len(ends) or (np.diff(ends) <= 0).any():
        raise BadOptionError("breaks", breaks, "rising numbers")
    names = names_of_intervals(ends, labels)
    if len(names) != len(ends) + 1 or len(set(names)) != len(names):
        raise BadOptionError("labels", labels, f"{len(ends) + 1} different names")
    numbers = View(table, schema).numbers(column)
    at = np.searchsorted(ends, numbers, side="right")
    first = np.full(len(texts), -1)
    first[place[place >= 0]] = np.where(np.isnan(numbers), -1, at)[place >= 0]
    coarse = table.relabel(
        column, [names[i] if i >= 0 else None for i in first], ordered=True, order=names
    )
    return coarse, schema.override({column: {"kind": "ordinal", "missing": (), "labels": {}}})


def count_rare(table: Table, schema: Schema, k: int, columns: Sequence[Name] | None = None) -> int:
    """Count the records whose pattern of missing cells fewer than k records have."""
    _, own, sizes = _patterns(table, schema, chosen_columns(table, schema, columns))
    return int((sizes[own] < k).sum())


@dataclass(frozen=True)
class Suppressed:
    """How many cells of each column were suppressed, and which columns have no value left."""

    cells: Mapping[Name, int]
    emptied: tuple[Name, ...] = ()

    @classmethod
    def of(
        cls, names: Sequence[Name], patterns: Integers, goals: Integers, records: Integers
    ) -> Suppressed:
        """Count it from what each pattern becomes, and how many records have it."""
        lost = records @ ((goals > 0) & (patterns == 0))
        left = records @ (goals == 0)
        return cls(
            {name: int(count) for name, count in zip(names, lost) if count},
            tuple(name for name, count, rest in zip(names, lost, left) if count and not rest),
        )

    @property
    def total(self) -> int:
        """How many cells in all columns."""
        return sum(self.cells.values())

    def __str__(self) -> str:
        each = listed([f"{name} {count:,}" for name, count in self.cells.items()])
        return f"{counted(self.total, 'cell')} suppressed{f' ({each})' if each else ''}."

    def warn(self, k: int) -> None:
        """Warn of columns without a value: that is seldom what was wanted."""
        if self.emptied:
            named = listed(list(map(repr, self.emptied)))
            warnings.warn(EmptiedColumnWarning.of_patterns(columns=named, k=k), stacklevel=3)


def suppress(
    table: Table, schema: Schema, *, k: int, columns: Sequence[Name] | None = None
) -> tuple[Any, Schema, Suppressed]:
    """Return the table with further cells missing, the schema, and how many cells these are.

    Missing cells stay missing, so records share a group only if they lack the same cells of the
    columns (by default all quasi-identifiers). Where fewer than k do, the rarest pattern P joins
    the pattern P' for which the fewest cells are suppressed,

        n(P) |P' - P| + n(P') |P - P'|,

    until no pattern has fewer than k records, or k units where there are such: a unit may have
    records of several patterns. Kinds of missing (null, or one code or another) are different, and
    the larger pattern's are taken.
    """
    names = chosen_columns(table, schema, columns)
    check_k(k, table.n_rows)
    patterns, own, sizes = _patterns(table, schema, names)
    donor = np.unique(own, return_index=True)[1]
    units = View.of(table, schema).units
    of = None if units is None else [set(units[own == p].tolist()) for p in range(len(patterns))]
    records = np.bincount(own)
    goals, source = join_patterns(patterns, records, sizes, of, k)
    changed = (goals > 0) & (goals != patterns)
    lost = Suppressed.of(names, patterns, goals, records)
    if not changed.any():
        return table.native, schema, lost
    rows = np.where(changed[own], donor[source][own], np.arange(table.n_rows)[:, None])
    moved = {name: rows[:, j] for j, name in enumerate(names) if changed[:, j].any()}
    return table.rearrange(moved), schema, lost


def join_patterns(
    patterns: Integers, records: Integers, counts: Integers, units: list[set[int]] | None, k: int
) -> tuple[Integers, Integers]:
    """Let patterns of missing cells join others until each has k: see `suppress`.

    `records` and `counts` are the records and units that have each pattern, `units` which these
    are, where units are counted: all of them, or k. Returns what each pattern becomes, and for each
    of its cells a pattern whose records have such a cell.
    """
    records, counts = records.copy(), counts.copy()
    state, alive = patterns.copy(), np.ones(len(patterns), dtype=bool)
    became = np.arange(len(patterns))
    source = np.tile(became[:, None], (1, patterns.shape[1]))
    while True:
        living = np.flatnonzero(alive)
        least = living[np.argmin(counts[living])]
        if counts[least] >= k or len(living) == 1:
            break
        others = living[living != least]
        mine, theirs = state[least] > 0, state[others] > 0
        cost = records[least] * (theirs & ~mine).sum(axis=1)
        cost = cost + records[others] * (mine & ~theirs).sum(axis=1)
        differ = (theirs & mine & (state[others] != state[least])).sum(axis=1)
        best = others[np.lexsort((differ, cost))[0]]
        fill = mine & (state[best] == 0)  # those of the other pattern lose these cells, too
        state[best, fill], source[best, fill] = state[least, fill], source[least, fill]
        records[best] += records[least]
        if units is None:
            counts[best] = records[best]
        else:
            units[best] |= units[least]
            counts[best] = max(counts[best], len(units[best]))
        alive[least] = False
        became[became == least] = best
    return state[became], source[became]


def chosen_columns(table: Table, schema: Schema, columns: Sequence[Name] | None) -> list[Name]:
    """List the columns of which missing cells are looked at."""
    if columns is None:
        return [name for name in table.columns if schema[name].role == "quasi-identifier"]
    named: list[Name] = [columns] if isinstance(columns, str) else list(columns)
    for name in named:
        table.place(name, who="suppress")
    if not named:
        raise BadOptionError("columns", columns, "at least one column")
    return named


def _patterns(
    table: Table, schema: Schema, names: Sequence[Name]
) -> tuple[Integers, Integers, Integers]:
    """Return the distinct patterns, the pattern of each record, and how many have each."""
    view = View.of(table, schema)
    own = group_ids([view.states(name).astype(np.int64) for name in names])
    first = np.unique(own, return_index=True)[1]
    patterns = np.column_stack([view.states(name)[first] for name in names]).astype(np.int64)
    return patterns, own, count_units(own, view.units)


_GROUPINGS = {"mdav": "MDAV", "search": "Search", "ordered": "projection", "igd": "decomposition"}
_TOGETHER = {"order": "neighbouring", "correlation": "correlated", "contrast": "uncorrelated"}


def _variants(setting: registry.Setting) -> Iterator[dict[str, Any]]:
    """List the ways of grouping that are explored, the most telling ones first."""
    d = setting.n_numbers
    yield {GROUPING: "mdav"}
    yield {GROUPING: "search", "options": {"effort": setting.effort}}
    sizes = [] if d < 2 else [(2, "correlation")]
    if d > 3:
        sizes += [(3, "correlation"), (-(-d // 2), "correlation"), (3, "contrast"), (3, "order"),
                  (min(3, d - 1), "random")]  # fmt: skip
    cuts = dict.fromkeys((size, by) for size, by in sizes if size < d or d == 2)
    cut = [{GROUPING: "mdav", "blocks": {"size": size, "by": by}} for size, by in cuts]
    yield from cut[:1]
    if d > 1:
        yield {GROUPING: "ordered", "options": {"order": "pca"}}
    if d:
        yield {GROUPING: "igd"}
    yield from cut[1:]


def _label(options: Mapping[str, Any]) -> str:
    blocks, grouping = options.get("blocks"), options[GROUPING]
    name = _GROUPINGS.get(grouping, str(grouping))
    if not isinstance(blocks, Mapping):
        return name if blocks is None else f"{name} in {len(blocks)} blocks"
    short = {"order": "adjacent", "correlation": "correlated", "contrast": "uncorrelated"}
    return f"blocks of {blocks['size']}, {short.get(blocks['by'], blocks['by'])}"


def _describe(options: Mapping[str, Any]) -> str:
    blocks, inner = options.get("blocks"), options.get("options") or {}
    words = {
        "search": f"Search ({inner['effort']})" if "effort" in inner else "Search",
        "ordered": f"best cut of the records ordered by {inner.get('order', 'pca')}",
        "igd": "group decomposition (IGD)",
    }
    name = words.get(options[GROUPING], _label({GROUPING: options[GROUPING]}))
    if isinstance(blocks, Mapping):
        kind = _TOGETHER.get(blocks["by"])
        columns = f"{kind} columns" if kind else "columns drawn by lot"
        name += f" in blocks of {blocks['size']} {columns}"
    elif blocks is not None:
        name += f" in {len(blocks)} blocks"
    return f"{name}, k = {options['k']}"


def _kind(options: Mapping[str, Any]) -> str:
    """Return the method that a step "protect" is."""
    grouping = getattr(options.get("plan"), GROUPING, options.get(GROUPING))
    kinds = {"fuzzy": FUZZY, "overlapping": OVERLAPPING}
    return kinds.get(str(grouping), "microaggregation")


def promises_posterior(method: str, options: Mapping[str, Any]) -> bool:
    """Return whether a step promises a posterior of at most 1/k in the place of k equal records."""
    if method in PREPARING:
        return False
    return registry.find(_kind(options) if method == "protect" else method).posterior


METHOD = registry.register(
    registry.Method(
        name="protect",
        options=("k", "plan", *DEFAULTS),
        title=lambda options: _kind(options).capitalize(),
        masks="both",
        tuned=registry.Tuned(name="k", low=2, high=200, whole=True),
        defaults={"k": 3, GROUPING: "search"},
        variants=_variants,
        label=_label,
        description=_describe,
        advice=lambda options, facts: registry.find(_kind(options)).advice(options, facts),
    )
)
