"""Whether recoded columns hold what they may: a node that covers the original value, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Name, Truths
from .._wording import counted
from ..exceptions import BadOptionError
from ..frame import Pair, View
from ..keys import Hierarchy
from ..keys.sources import FORMS


@dataclass(frozen=True, kw_only=True, eq=False)
class Recoded:
    """Which columns were recoded, by which hierarchy, and how many records may be emptied.

    A column whose hierarchy is not known is None: its form may change, and nothing else is checked.
    """

    hierarchies: Mapping[Name, Hierarchy | None]
    emptied: int = 0

    @classmethod
    def of(cls, given: Any) -> Recoded:
        """Return what was given, or nothing recoded."""
        if given is None:
            return cls(hierarchies={})
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping) or not all(
            own is None or isinstance(own, Hierarchy) for own in given.values()
        ):
            raise BadOptionError("recoded", given, "{column: tessella.keys.Hierarchy}")
        return cls(hierarchies=dict(given))

    def __contains__(self, name: object) -> bool:
        return name in self.hierarchies

    def problems(self, pair: Pair) -> Iterator[str]:
        """Name columns with values that are no ancestors, and too many emptied records."""
        emptied = np.zeros(pair.n_rows, dtype=bool)
        for name, hierarchy in self.hierarchies.items():
            if name not in pair.columns:
                continue
            emptied |= _emptied(pair, name)
            if hierarchy is None:
                continue
            if wrong := int((~_covered(pair, name, hierarchy)).sum()):
                cells = counted(wrong, "cell")
                yield (
                    f"Column {name!r}: {cells} {'is' if wrong == 1 else 'are'} released as "
                    "something else than a value of the hierarchy that covers the original one."
                )
        if (gone := int(emptied.sum())) > self.emptied:
            yield (
                f"The keys of {counted(gone, 'record')} were emptied, and {self.emptied:,} may be."
            )

    def notes(self, pair: Pair) -> Iterator[str]:
        """Say which columns hold coarser values."""
        names = [repr(name) for name in self.hierarchies if _differs(pair, name)]
        if names:
            yield f"Recoded to coarser values: {', '.join(names)}."
        emptied = np.zeros(pair.n_rows, dtype=bool)
        for name in (name for name in self.hierarchies if name in pair.columns):
            emptied |= _emptied(pair, name)
        if gone := int(emptied.sum()):
            yield f"The keys of {counted(gone, 'record')} were emptied."
        unknown = [repr(n) for n, own in self.hierarchies.items() if own is None]
        if unknown:
            yield (
                f"Whether the values of {', '.join(unknown)} cover the original ones was not "
                "checked, for their hierarchies are not known: give hierarchies={column: ...}."
            )


def _differs(pair: Pair, name: Name) -> bool:
    if name not in pair.columns:
        return False
    before, after, _ = pair.labels(name)
    return bool((before != after).any())


def _emptied(pair: Pair, name: Name) -> Truths:
    before, after = pair.states(name)
    emptied: Truths = (before == 0) & (after != 0)
    return emptied


def _covered(pair: Pair, name: Name, hierarchy: Hierarchy) -> Truths:
    """Return where a released cell is missing, or a node that covers the original's value."""
    (old, old_texts), (new, new_texts) = pair.original.labels(name), pair.masked.labels(name)
    old = pair._of_masked(old)
    leaf = np.array([*(hierarchy.place(text) for text in old_texts), -1])[old]
    number = {text: at for at, text in enumerate(hierarchy.nodes)}
    node = np.array([*(number.get(text, -1) for text in new_texts), -1])[new]
    right: Truths = new < 0  # emptied cells are counted, not compared
    known = (leaf >= 0) & (node >= 0) & ~right
    right[known] = hierarchy.covers(node[known], leaf[known])
    # The root covers a missing cell, too.
    right |= (old < 0) & (node == hierarchy.table[-1, 0])
    return right


def read_hierarchies(
    given: Any, promised: Mapping[str, Any], original: View
) -> dict[Name, Hierarchy | None]:
    """Return what is known of recoded columns: what was given, or what a manifest states of them.

    A manifest has how intervals and prefixes were made; files and trees of values it has not.
    """
    if given is not None and not isinstance(given, Mapping):
        raise BadOptionError("hierarchies", given, "{column: tessella.keys.Hierarchy}")
    names = {str(name): name for name in original.columns}
    known: dict[Name, Any] = {
        names[str(column["name"])]: None
        for column in promised.get("columns", [])
        if column.get("recoded") and str(column["name"]) in names
    }
    for step in promised.get("steps", []):
        for name, form in (step.get("options", {}).get("hierarchies") or {}).items():
            if names.get(name) in known and _can_be_rebuilt(form):
                known[names[name]] = form
    known |= dict(given or {})
    found: dict[Name, Hierarchy | None] = {}
    for name, form in known.items():
        original.table.place(name, who="hierarchies")
        found[name] = form if form is None else _build(form, original, name)
    return found


def _can_be_rebuilt(form: Any) -> bool:
    if not isinstance(form, Mapping) or "withheld" in str(form):
        return False
    return bool({"prefix", "width", "breaks"} & set(form) & set(FORMS))


def _build(form: Any, view: View, name: Name) -> Hierarchy:
    codes, texts = view.labels(name)
    used = np.unique(codes[codes >= 0])
    return Hierarchy.of(
        form, values=[texts[code] for code in used], numeric=view.table.facts(name).numeric,
        name=name,
    )  # fmt: skip
