"""Keys as whole numbers: the leaf of each cell, and the distinct combinations with their counts.

A missing cell is a leaf of its own for each way to be missing: it stays as it is on every level but
the last, where the root covers it, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name, SmallIntegers, Truths
from ..exceptions import BadOptionError
from ..frame import View, group_ids
from ..kernels.combinations import mix_digits, number_equal
from .hierarchy import Hierarchy


@dataclass(frozen=True, kw_only=True, eq=False)
class CodedKey:
    """A column of keys as leaves of its hierarchy.

    Attributes
    ----------
    name : name
        The column.
    hierarchy : Hierarchy
        What its values may become.
    codes : ndarray of shape (n,)
        The leaf of each cell; from the number of leaves on, ways to be missing.
    states : tuple of int
        What `View.states` calls each of these ways.
    """

    name: Name
    hierarchy: Hierarchy
    codes: Integers
    states: tuple[int, ...] = ()

    @classmethod
    def read(cls, view: View, name: Name, hierarchy: Hierarchy) -> CodedKey:
        """Read a column whose values are leaves."""
        codes, texts = view.labels(name)
        place = np.array([*(hierarchy.place(text) for text in texts), -1])
        leaf = place[codes]
        state = view.states(name)
        kinds = tuple(np.unique(state[leaf < 0]).tolist())
        for at, kind in enumerate(kinds):
            leaf[state == kind] = len(hierarchy.leaves) + at
        return cls(name=name, hierarchy=hierarchy, codes=leaf, states=kinds)

    @cached_property
    def known(self) -> Truths:
        """Which cells have a value."""
        known: Truths = self.codes < len(self.hierarchy.leaves)
        return known

    @property
    def n_levels(self) -> int:
        """The number of levels."""
        return self.hierarchy.n_levels

    @cached_property
    def table(self) -> Integers:
        """The node of each leaf on each level, ways to be missing among the leaves."""
        own, many = self.hierarchy.table, len(self.states)
        lacking = np.tile(len(self.hierarchy.nodes) + np.arange(many), (len(own), 1))
        lacking[-1] = own[-1, 0]
        return np.concatenate([own, lacking], axis=1)

    @cached_property
    def penalty(self) -> Floats:
        """The penalty of each node; missing cells that stay so have none."""
        return np.concatenate([self.hierarchy.penalty, np.zeros(len(self.states))])

    @cached_property
    def upward(self) -> Integers:
        """The ancestor of each node on each level that is not below its own."""
        n_leaves = len(self.hierarchy.leaves)
        up = np.empty((self.n_levels, len(self.penalty)), dtype=np.int64)
        first = np.zeros(len(self.penalty), dtype=np.int64)
        for level in self.hierarchy.table[::-1]:
            first[level[::-1]] = np.arange(n_leaves)[::-1]
        first[len(self.hierarchy.nodes) :] = n_leaves + np.arange(len(self.states))
        up[:] = self.table[:, first]
        return up

    @cached_property
    def codes_as_nodes(self) -> Integers:
        """The node that each cell is on level 0."""
        nodes: Integers = self.table[0][self.codes]
        return nodes

    @cached_property
    def places(self) -> SmallIntegers:
        """The place of each node's ancestor among the nodes of a level, for each level."""
        found = np.empty(self.upward.shape, dtype=np.int32)
        for level, own in enumerate(self.upward):
            found[level] = np.unique(own, return_inverse=True)[1].reshape(-1)
        return found

    def shares(self, weights: Floats) -> Floats:
        """Return the share of the known cells that each node covers."""
        leaves = len(self.hierarchy.leaves)
        counts = np.bincount(self.codes[self.known], weights[self.known], minlength=leaves)
        share = np.zeros(len(self.penalty))
        for level in self.hierarchy.table:
            here = np.bincount(level, counts, minlength=len(share))
            share = np.where(here > 0, here, share)  # a node covers the same on all its levels
        return share / max(float(counts.sum()), 1e-300)


def read_keys(
    view: View,
    names: Sequence[Name],
    hierarchies: Mapping[Name, Any],
    folder: Path | None = None,
) -> tuple[CodedKey, ...]:
    """Read columns of keys, each with the hierarchy that was given for it, as a plan states it."""
    if not isinstance(hierarchies, Mapping):
        expected = '{column: hierarchy}, such as {"age": {"width": [5, 10, 20]}}'
        raise BadOptionError("hierarchies", hierarchies, expected)
    keys = []
    for name in names:
        codes, texts = view.labels(name)
        used = np.zeros(len(texts) + 1, dtype=bool)
        used[codes] = True
        facts = view.table.facts(name)
        if not used[:-1].any():
            raise BadOptionError(
                f"hierarchies[{name!r}]", "no known value in the column", "hierarchies of columns "
                "that have some: leave it out, and drop the column or declare it untouched"
            )  # fmt: skip
        ordered = None
        if facts.ordered or (view.schema is not None and view.kind(name) == "ordinal"):
            ordered = view.in_order(name, [text for text, own in zip(texts, used) if own])
        hierarchy = Hierarchy.of(
            hierarchies[name], values=[text for text, own in zip(texts, used) if own],
            ordered=ordered, numeric=facts.numeric, name=name, folder=folder,
        )  # fmt: skip
        keys.append(CodedKey.read(view, name, hierarchy))
    return tuple(keys)


@dataclass(frozen=True, kw_only=True, eq=False)
class Combinations:
    """Distinct combinations of keys on some levels; with units, of keys and unit.

    Attributes
    ----------
    codes : ndarray of shape (m, d)
        The node of each key.
    stratum : ndarray of shape (m,)
        Combinations of different strata are different.
    unit : ndarray of shape (m,) or None
        Whom each is of, where units are counted.
    records : ndarray of shape (m,)
        How many records have it.
    """

    codes: SmallIntegers
    stratum: Integers
    unit: Integers | None
    records: Integers

    def classes(self, keys: Sequence[CodedKey], levels: Sequence[int]) -> tuple[Integers, int]:
        """Number rows by their stratum and their nodes on some levels; also count the numbers."""
        sizes = [int(key.places[level].max()) + 1 for key, level in zip(keys, levels)]
        most = int(self.stratum.max()) + 1
        strides = np.empty(len(keys), dtype=np.int64)
        for j, size in enumerate(sizes):
            strides[j] = most
            most *= size
            if most >= 2**62:  # too many for one number: column by column
                columns = [key.upward[at][own] for key, at, own in zip(keys, levels, self.codes.T)]
                ids = group_ids([self.stratum, *columns])
                return ids, int(ids.max()) + 1
        widest = max(key.places.shape[1] for key in keys)
        digits = np.zeros((len(keys), widest), dtype=np.int32)
        for j, (key, level) in enumerate(zip(keys, levels)):
            digits[j, : key.places.shape[1]] = key.places[level]
        return number_equal(mix_digits(self.codes, digits, strides, self.stratum))

    def raised(
        self, keys: Sequence[CodedKey], levels: Sequence[int], classes: Integers
    ) -> Combinations:
        """Return the combinations on coarser levels: a roll-up, without looking at records."""
        ids = classes
        if self.unit is not None:
            ids, _ = number_equal(classes * (int(self.unit.max()) + 1) + self.unit)
        many = int(ids.max()) + 1
        first = np.empty(many, dtype=np.int64)
        first[ids[::-1]] = np.arange(len(ids))[::-1]
        codes = np.column_stack(
            [key.upward[at][own] for key, at, own in zip(keys, levels, self.codes[first].T)]
        )
        return Combinations(
            codes=np.ascontiguousarray(codes, dtype=np.int32),
            stratum=self.stratum[first],
            unit=None if self.unit is None else self.unit[first],
            records=np.bincount(ids, self.records, minlength=many).astype(np.int64),
        )


def combinations_of(
    keys: Sequence[CodedKey], stratum: Integers, units: Integers | None
) -> tuple[Combinations, Integers]:
    """Count the combinations of the leaves; also return which each record has."""
    columns = [key.codes_as_nodes for key in keys]
    of_record = group_ids([stratum, *columns, *(() if units is None else (units,))])
    many = int(of_record.max()) + 1
    first = np.empty(many, dtype=np.int64)
    first[of_record[::-1]] = np.arange(len(of_record))[::-1]
    found = Combinations(
        codes=np.ascontiguousarray(np.column_stack(columns)[first], dtype=np.int32),
        stratum=stratum[first],
        unit=None if units is None else units[first],
        records=np.bincount(of_record, minlength=many),
    )
    return found, of_record
