"""Writing recoded keys: nodes of a hierarchy into a column of the same table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Integers, Name, Truths
from ..exceptions import BadOptionError
from ..frame import Table, View
from ..frame.columns import FIRST_CODE, matches_code, text_of
from ..frame.writing import blank, relabel
from .coded import CodedKey
from .hierarchy import Hierarchy


@dataclass(frozen=True, kw_only=True, eq=False)
class RecodedTable:
    """A table with recoded keys.

    `hierarchies` has those of the columns that changed, `kinds` what these are now.
    """

    table: Any
    hierarchies: Mapping[Name, Hierarchy]
    kinds: Mapping[Name, str]


def write_keys(
    view: View, keys: Sequence[CodedKey], nodes: Sequence[Integers], emptied: Truths
) -> RecodedTable:
    """Write the node of each record and key, and nothing where a record is emptied.

    A column in which nothing changes stays as it is, dtype included; where cells are only emptied,
    it keeps its family. Otherwise it becomes categories, the texts of the nodes.
    """
    source, changed, kinds = view.table, {}, {}
    for key, own in zip(keys, nodes):
        emptying = emptied & key.known
        recoded = own != key.codes_as_nodes
        if not emptying.any() and not (recoded & ~emptied).any():
            continue
        changed[key.name] = key.hierarchy
        place = source.place(key.name)
        if not (recoded & ~emptied).any() and source.facts(key.name).family != "category":
            kinds[key.name] = view.kind(key.name)
            source = Table.read(blank(source, place, emptying))
            continue
        codes, texts, ordered = _texts(view, key, own, emptied)
        kinds[key.name] = "ordinal" if ordered else "nominal"
        source = Table.read(relabel(source, place, codes, texts, ordered))
    return RecodedTable(table=source.native, hierarchies=changed, kinds=kinds)


def _texts(
    view: View, key: CodedKey, nodes: Integers, emptied: Truths
) -> tuple[Integers, list[str], bool]:
    """Return the place of each record's text, -1 where missing, the texts, and whether by rank."""
    hierarchy, many = key.hierarchy, len(key.hierarchy.nodes)
    lacking = emptied | (nodes >= many)
    used = np.unique(nodes[~lacking])
    first = np.full(many, len(hierarchy.leaves))
    last = np.full(many, -1)
    for level in hierarchy.table:
        np.minimum.at(first, level, np.arange(len(level)))
        np.maximum.at(last, level, np.arange(len(level)))
    used = used[np.lexsort((last[used], first[used]))]
    apart = bool((first[used][1:] > last[used][:-1]).all())  # no node covers another
    place = np.full(many + len(key.states), -1)
    place[used] = np.arange(len(used))
    texts = [hierarchy.nodes[node] for node in used]
    missing = view.missing_codes(key.name)
    if any(matches_code(text, code) for text in texts for code in missing):
        raise BadOptionError(
            f"hierarchies[{key.name!r}]", "a node with the text of a missing code",
            f"other texts than {', '.join(map(repr, missing))}, which mean that nothing is known",
        )  # fmt: skip
    # A missing code stays one, as text; null and NaN have no text.
    for at, state in enumerate(key.states):
        if state >= FIRST_CODE:
            place[many + at] = len(texts)
            texts.append(text_of(missing[state - FIRST_CODE]))
    return np.where(emptied, -1, place[nodes]), texts, apart and _has_order(view, key)


def _has_order(view: View, key: CodedKey) -> bool:
    """Return whether the leaves of a hierarchy stand in the order of the column."""
    form = key.hierarchy.form or {}
    if "width" in form or "breaks" in form:
        return True
    facts = view.table.facts(key.name)
    if not facts.ordered and (view.schema is None or view.kind(key.name) != "ordinal"):
        return False
    rank = {text: at for at, text in enumerate(view.in_order(key.name, view.labels(key.name)[1]))}
    here = [rank[text] for text in key.hierarchy.leaves if text in rank]
    return here == sorted(here)
