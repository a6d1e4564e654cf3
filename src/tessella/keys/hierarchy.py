"""Hierarchies: which coarser value each value of a key may be released as.

A *leaf* is a value of the column, as text; a *node* is a leaf or a coarser value, the *root* covers
all. *Level* 0 are the leaves, the last level is the root alone. Leaves are kept in depth-first
order: those under one node stand side by side, so that the least common ancestor of a set of leaves
is that of the first and the last of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .._types import Floats, Integers
from .._wording import counted
from ..exceptions import BadOptionError
from . import sources
from .sources import ROOT


class Hierarchy:
    """A tree of values: leaves that occur in a table, and what they may be released as.

    Parameters
    ----------
    rows : sequence of sequences of str
        One for each leaf: the leaf, then what it is on each coarser level, as a line of the files
        that ARX reads. A root "*" is added where the last level has several nodes.
    penalties : mapping of str to float, optional
        The loss of each node, from 0 to 1; otherwise (leaves of the node - 1) / (leaves - 1).
    form : mapping, optional
        How a plan writes it.

    Attributes
    ----------
    leaves : tuple of str
        The leaves, those under one node side by side.
    nodes : tuple of str
        The texts of all nodes; the leaves are the first ones.
    table : ndarray of shape (n_levels, n_leaves)
        The node of each leaf on each level.
    sizes : ndarray of shape (n_nodes,)
        The number of leaves under each node.
    penalty : ndarray of shape (n_nodes,)
        The normalised certainty penalty of each node: 0 for a leaf, 1 for the root.

    Raises
    ------
    BadOptionError
        If lines differ in length, a leaf or node has two parents, or one text stands for different
        sets of leaves.

    References
    ----------
    L. Sweeney (2002). Achieving k-anonymity privacy protection using generalization and
    suppression. Int. J. Uncertainty, Fuzziness and Knowledge-Based Systems 10(5), 571-588.
    J. Xu et al. (2006). Utility-based anonymization using local recoding. KDD: the penalty.

    Examples
    --------
    >>> from tessella.keys import Hierarchy
    >>> towns = Hierarchy([("Reus", "coast"), ("Salou", "coast"), ("Lleida", "inland")])
    >>> towns
    Hierarchy of 3 leaves in 3 levels: 3, 2, 1 nodes
    >>> towns.nodes[towns.common_ancestor([0, 1])]
    'coast'
    >>> [towns.nodes[node] for node in towns.generalise([0, 2], level=2)]
    ['*', '*']
    """

    def __init__(
        self,
        rows: Sequence[Sequence[str]],
        *,
        penalties: Mapping[str, float] | None = None,
        form: Mapping[str, Any] | None = None,
    ) -> None:
        self.form: dict[str, Any] | None = None if form is None else dict(form)
        lines = _checked(rows)
        texts: dict[str, int] = {}
        ranks = [_first_seen(level) for level in zip(*lines)]
        order = np.lexsort(ranks)  # by the last level first: depth first
        lines = [lines[at] for at in order]
        table = np.array(
            [[texts.setdefault(text, len(texts)) for text in level] for level in zip(*lines)],
            dtype=np.int64,
        )
        self.table: Integers = table
        self.nodes: tuple[str, ...] = tuple(texts)
        self.leaves: tuple[str, ...] = tuple(line[0] for line in lines)
        _refuse_two_parents(table, self.nodes)
        self.sizes: Integers = _sizes(table, self.nodes)
        if penalties is None:
            self.penalty: Floats = (self.sizes - 1) / max(1, len(self.leaves) - 1)
        else:
            self.penalty = np.array([penalties[text] for text in self.nodes])
        for array in (self.table, self.sizes, self.penalty):
            array.flags.writeable = False
        self._place = {text: at for at, text in enumerate(self.leaves)}

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """The nodes of each level, the leaves first."""
        return tuple(
            tuple(self.nodes[node] for node in dict.fromkeys(level.tolist()))
            for level in self.table
        )

    @property
    def n_levels(self) -> int:
        """The number of levels, leaves and root included."""
        return len(self.table)

    @property
    def root(self) -> str:
        """The text that covers all leaves."""
        return self.nodes[int(self.table[-1, 0])]

    @property
    def parent(self) -> Integers:
        """The parent of each node, the root's is itself; shape (n_nodes,)."""
        parent = np.full(len(self.nodes), -1, dtype=np.int64)
        for finer, coarser in zip(self.table[:-1], self.table[1:]):
            moves = finer != coarser  # a leaf may stay itself for some levels
            parent[finer[moves]] = coarser[moves]
        return np.where(parent < 0, self.table[-1, 0], parent)

    def place(self, text: str) -> int:
        """Return the code of a leaf; -1 if the text is none."""
        return self._place.get(text, -1)

    def generalise(self, codes: Any, level: int) -> Integers:
        """Return the nodes of some leaves on a level."""
        if not 0 <= level < self.n_levels:
            raise BadOptionError("level", level, f"a level from 0 to {self.n_levels - 1}")
        found: Integers = self.table[level][np.asarray(codes, dtype=np.int64)]
        return found

    def common_ancestor(self, codes: Any) -> int:
        """Return the least node that covers some leaves."""
        codes = np.asarray(codes, dtype=np.int64)
        if not len(codes):
            raise BadOptionError("codes", [], "at least one leaf")
        return int(self.ancestors_between(codes.min()[None], codes.max()[None])[0])

    def ancestors_between(self, first: Integers, last: Integers) -> Integers:
        """Return the least common ancestors of ranges of leaves, from first to last."""
        found = self.table[-1][first].copy()
        for level in self.table[-2::-1]:  # downwards: the last that fits is the least
            found = np.where(level[first] == level[last], level[first], found)
        ancestors: Integers = found
        return ancestors

    def covers(self, node: Integers, leaf: Integers) -> Any:
        """Return whether each node is an ancestor of a leaf, or the leaf itself."""
        return (self.table[:, leaf] == node).any(axis=0)

    def distance(self, one: Any, other: Any) -> Floats:
        """Return the distance of leaves: the penalty of their least common ancestor."""
        a, b = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
        node = self.ancestors_between(np.minimum(a, b), np.maximum(a, b))
        return self.penalty[node]

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(np.unique(level)):,}" for level in self.table)
        head = f"Hierarchy of {len(self.leaves):,} leaves in {self.n_levels} levels"
        return f"{head}: {counts} nodes"

    @classmethod
    def read(cls, path: Any, *, separator: str | None = None) -> Hierarchy:
        """Read the CSV file that ARX reads: one line a leaf, from the leaf to the root, no header.

        The separator is ";" where the first line has one, otherwise ",".
        """
        return cls(sources.read_rows(path, separator), form={"file": str(path)})

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any]) -> Hierarchy:
        """Build a hierarchy from nested mappings, with lists of leaves at their ends.

        Examples
        --------
        >>> from tessella.keys import Hierarchy
        >>> Hierarchy.from_tree({"north": ["Oslo", "Bergen"], "south": ["Rome"]}).levels[1]
        ('north', 'south')
        """
        return cls(sources.rows_of_tree(tree), form={"tree": tree})

    @classmethod
    def from_prefixes(cls, values: Sequence[str], lengths: Sequence[int]) -> Hierarchy:
        """Build a hierarchy of codes, of which shorter and shorter beginnings are kept.

        Examples
        --------
        >>> from tessella.keys import Hierarchy
        >>> Hierarchy.from_prefixes(["43201", "43330", "08001"], [2, 0]).levels[1]
        ('43***', '08***')
        """
        return cls(sources.rows_of_prefixes(values, lengths), form={"prefix": list(lengths)})

    @classmethod
    def from_intervals(
        cls,
        values: Sequence[Any],
        *,
        breaks: Sequence[Sequence[float]] | None = None,
        width: float | Sequence[float] | None = None,
        levels: int | None = None,
        start: float = 0.0,
    ) -> Hierarchy:
        """Build a hierarchy of numbers, released as wider and wider intervals.

        Parameters
        ----------
        values : sequence of numbers or their texts
            The values of the column.
        breaks : list of lists of numbers
            For each level where intervals begin; those of a level are among those before.
        width : number or list of numbers
            In place of breaks: the width of the intervals of each level, each a multiple of the one
            before; or of the first of `levels`, each twice as wide as the one before.
        levels : int, optional
            How many levels of intervals a single `width` stands for; 3 by default.
        start : number
            Where an interval of a width begins, such as 0.

        Notes
        -----
        The lowest and the highest interval of a level are open: "below 20", "65 or more". The
        penalty of a node is the range of the values in it over the range of all.

        Examples
        --------
        >>> from tessella.keys import Hierarchy
        >>> Hierarchy.from_intervals([17, 23, 31, 48], width=[10, 20]).levels[1]
        ('below 20', '20 to below 30', '30 to below 40', '40 or more')
        """
        rows, penalties, form = sources.rows_of_intervals(values, breaks, width, levels, start)
        return cls(rows, penalties=penalties, form=form)

    @classmethod
    def from_order(cls, values: Sequence[str], *, fanout: int = 2) -> Hierarchy:
        """Build a hierarchy of ordered values: neighbours are put together, `fanout` at a time.

        Examples
        --------
        >>> from tessella.keys import Hierarchy
        >>> Hierarchy.from_order(["none", "some", "much", "all"], fanout=2).levels[1]
        ('none to some', 'much to all')
        """
        form = {"order": list(values), "fanout": fanout}
        return cls(sources.rows_of_order(values, fanout), form=form)

    @classmethod
    def of(
        cls,
        given: Any,
        *,
        values: Sequence[str] = (),
        ordered: Sequence[str] | None = None,
        numeric: bool = False,
        name: object = "column",
        folder: Path | None = None,
    ) -> Hierarchy:
        """Build a hierarchy from what a plan states, for a column with these values.

        Parameters
        ----------
        given : Hierarchy or mapping
            See the error message of a wrong one.
        values : sequence of str
            The values that occur.
        ordered : sequence of str, optional
            All values, lowest first, of a column whose order is known.
        numeric : bool
            Whether the column holds numbers.
        name : object
            The column, for messages.
        folder : Path, optional
            What the names of files are relative to.
        """
        found = sources.build(cls, given, values, ordered, numeric, name, folder)
        found.refuse_strangers(values, name)
        return found

    def refuse_strangers(self, values: Sequence[str], name: object) -> None:
        """Refuse values that are no leaf; they are counted, and never shown."""
        if strange := sum(value not in self._place for value in values):
            are = "value is no leaf" if strange == 1 else "values are no leaves"
            source = f" ({self.form['file']})" if self.form and "file" in self.form else ""
            raise BadOptionError(
                f"hierarchies[{name!r}]", f"{len(self.leaves):,} leaves",
                f"a hierarchy with every value of the column: {strange:,} {are} of it{source}. To "
                f"list them: sorted(set(table[{name!r}].dropna().astype(str)) - "
                "set(hierarchy.leaves))",
            )  # fmt: skip


def _checked(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the lines as tuples of texts, once each, with a root."""
    lines = list(dict.fromkeys(tuple(str(text) for text in row) for row in rows))
    if not lines:
        raise BadOptionError("rows", [], "one line for each leaf: the leaf, then its ancestors")
    width = len(lines[0])
    for at, line in enumerate(lines, start=1):
        if len(line) != width or not width:
            expected = f"{counted(width, 'level')}, as on the first line: from leaf to root"
            raise BadOptionError(f"line {at} of the hierarchy", f"{len(line)} levels", expected)
        if any(not text for text in line[1:]):
            raise BadOptionError(f"line {at} of the hierarchy", "", "a text on every level")
    leaves = [line[0] for line in lines]
    if len(set(leaves)) < len(leaves):
        twice = next(text for at, text in enumerate(leaves) if text in set(leaves[:at]))
        raise BadOptionError("hierarchy", twice, "one line for each leaf; this one has two parents")
    if len({line[-1] for line in lines}) > 1 or lines[0][-1] in set(leaves):
        lines = [(*line, ROOT) for line in lines]
    return lines


def _first_seen(level: Sequence[str]) -> Integers:
    place: dict[str, int] = {}
    return np.array([place.setdefault(text, len(place)) for text in level])


def _refuse_two_parents(table: Integers, nodes: Sequence[str]) -> None:
    """Refuse a node that is part of two nodes of the next level."""
    for level, (finer, coarser) in enumerate(pairwise(table)):
        parent = np.full(len(nodes), -1)
        parent[finer] = coarser
        if (wrong := parent[finer] != coarser).any():
            node = nodes[int(finer[wrong][0])]
            raise BadOptionError(
                "hierarchy", node, f"one parent for each node; on level {level} this one has "
                f"several on level {level + 1}. Rename it where it means something else"
            )  # fmt: skip


def _sizes(table: Integers, nodes: Sequence[str]) -> Integers:
    """Count the leaves of each node; refuse a text that stands for different sets of leaves."""
    sizes = np.zeros(len(nodes), dtype=np.int64)
    first = np.full(len(nodes), -1)
    for level in table:
        here, start, count = np.unique(level, return_index=True, return_counts=True)
        other = (sizes[here] > 0) & ((sizes[here] != count) | (first[here] != start))
        if other.any():
            raise BadOptionError(
                "hierarchy", nodes[int(here[other][0])], "texts that stand for the same leaves on "
                "every level where they occur; name what is coarser otherwise"
            )  # fmt: skip
        sizes[here], first[here] = count, start
    return sizes
