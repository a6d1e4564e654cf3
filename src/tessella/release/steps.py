"""Steps: what can be done to a table on its way to a release, each of them data.

A *preparing* step (drop, recode, suppress) changes what the release is about; loss and audit then
compare with the table as prepared. A *masking* step changes values. A step knows nothing of others:
the same step with the same seed on the same table gives the same table.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from .._types import Name
from ..exceptions import BadOptionError, BadTableError, UnknownOptionError
from ..frame import Table
from ..schema import Schema
from .planned import WISHES

__all__ = ["MASKERS", "METHODS", "PREPARING", "Step", "drop", "make_masker", "recode"]

PREPARING = ("drop", "recode", "suppress")
MASKERS = {
    "noise": ("noise", "NoiseAddition"),
    "rank swapping": ("rank_swapping", "RankSwapping"),
    "individual ranking": ("individual_ranking", "IndividualRanking"),
    "rounding": ("rounding", "Rounding"),
    "coding": ("coding", "TopBottomCoding"),
    "pram": ("pram", "PRAM"),
    "microaggregation": ("microaggregation", "Microaggregation"),
    "fuzzy microaggregation": ("fuzzy_microaggregation", "FuzzyMicroaggregation"),
}
METHODS = (*PREPARING, "protect", *MASKERS)
GIVEN = ("schema", "random_state", "rules", "weights", "constraints")  # by the study, not the step
GROUPING = "grouping"  # what a plan file calls the option `method` of a step
OPTIONS = {
    "drop": ("columns",),
    "recode": ("column", "groups", "breaks", "labels", "other"),
    "suppress": ("k", "columns"),
    "protect": ("k", *WISHES),
}


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step, as data.

    Parameters
    ----------
    method : str
        What is done: "drop", "recode", "suppress" (cells of records that lack what nobody else
        lacks), "protect", or one of the maskers "noise", "rank swapping",
        "individual ranking", "rounding", "coding", "pram", "microaggregation", "fuzzy
        microaggregation".
    options : mapping
        Its parameters, by name.
    name : str
        What its holder calls it.

    Examples
    --------
    >>> from tessella.release import Step
    >>> Step(method="noise", options={"scale": 0.1})
    Step(method='noise', options={'scale': 0.1}, name='')
    >>> Step(method="noise", options={"sigma": 0.1})
    Traceback (most recent call last):
    ...
    tessella.exceptions.UnknownOptionError: ...'sigma'...
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnknownOptionError("method of a step", self.method, METHODS)
        if not isinstance(self.options, Mapping):
            raise BadOptionError("options", type(self.options).__name__, "a mapping of names")
        allowed = options_of(self.method)
        for option in self.options:
            if option not in allowed:
                raise UnknownOptionError(f"option of {self.method!r}", option, allowed)
        object.__setattr__(self, "options", dict(self.options))

    @property
    def public(self) -> dict[str, Any]:
        """The options that may be published: not which categories were put together."""
        if self.method == "recode" and isinstance(self.options.get("groups"), Mapping):
            return {**self.options, "groups": sorted(map(str, self.options["groups"]))}
        return dict(self.options)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, as a plan file writes them.

        The option that maskers call `method` is "grouping" there: "method" is that of the step.
        """
        named = {"name": self.name} if self.name else {}
        options = {GROUPING if key == "method" else key: v for key, v in self.options.items()}
        return {"method": self.method, **named, **options}

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> Step:
        """Build a step from what `to_dict` gave."""
        rest = {
            "method" if key == GROUPING else key: value
            for key, value in known.items()
            if key not in ("method", "name")
        }
        return cls(method=known.get("method", ""), options=rest, name=str(known.get("name", "")))


def options_of(method: str) -> tuple[str, ...]:
    """List the options that a step of some method takes."""
    if method in OPTIONS:
        return OPTIONS[method]
    return tuple(name for name in inspect.signature(_class(method)).parameters if name not in GIVEN)


def make_masker(step: Step, *, schema: Schema, rules: Any, seed: int | None) -> Any:
    """Build the masker of a step; it keeps the rules afterwards where it can."""
    masker = _class(step.method)
    taken = inspect.signature(masker).parameters
    given: dict[str, Any] = {"schema": schema, "random_state": seed}
    if "rules" in taken and len(rules):
        given["rules"] = rules
    if "missing" in taken:
        given["missing"] = "pattern"
    try:
        return masker(**given | dict(step.options))
    except TypeError as error:
        raise BadOptionError("options", step.method, f"complete options: {error}") from None


def drop(table: Table, schema: Schema, columns: Sequence[Name] | Name) -> tuple[Any, Schema]:
    """Return the table and its schema without some columns."""
    gone = [columns] if isinstance(columns, str) or table.has(columns) else list(columns)  # type: ignore[call-overload]
    for name in gone:
        table.place(name, who="drop")
    kept = [name for name in table.columns if name not in gone]
    if not kept:
        raise BadTableError("All columns would be dropped; nothing would be left to release.")
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

    Parameters
    ----------
    column : name
        The column.
    groups : mapping of new category to old values
        Which values become one; those that are not named become `other`, or stay.
    breaks : sequence of numbers, rising
        Numbers become intervals, each with its lower end: below the first break, ..., from the
        last one on.
    labels : sequence of str, optional
        The names of the intervals, one more than there are breaks.
    other : str, optional
        The category of values that no group names.
    """
    if (groups is None) == (breaks is None):
        raise BadOptionError("recode", column, "either groups or breaks")
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
    names = interval_names(ends) if labels is None else [str(label) for label in labels]
    if len(names) != len(ends) + 1 or len(set(names)) != len(names):
        raise BadOptionError("labels", labels, f"{len(ends) + 1} different names")
    numbers = table.numeric([column], codes={column: schema[column].missing})
    at = np.searchsorted(ends, numbers.values[:, 0], side="right")
    first = np.full(len(texts), -1)
    first[place[place >= 0]] = np.where(numbers.missing[:, 0], -1, at)[place >= 0]
    coarse = table.relabel(
        column, [names[i] if i >= 0 else None for i in first], ordered=True, order=names
    )
    return coarse, schema.override({column: {"kind": "ordinal", "missing": (), "labels": {}}})


def interval_names(ends: Any) -> list[str]:
    """Name the intervals between rising numbers.

    Examples
    --------
    >>> from tessella.release.steps import interval_names
    >>> interval_names([18, 65])
    ['below 18', '18 to below 65', '65 or more']
    """
    shown = [f"{end:g}" for end in ends]
    between = [f"{low} to below {high}" for low, high in pairwise(shown)]
    return [f"below {shown[0]}", *between, f"{shown[-1]} or more"]


def _class(method: str) -> Any:
    home, name = MASKERS[method]
    return getattr(import_module(f"..masking.{home}", __package__), name)
