"""What every attack that knows the method starts from, and what it finds.

A *scene* is both tables as a knowing intruder sees them: what was masked together, what stayed as
it was. Columns that he knows and that were not masked are released as they are: there a masked
record and its original agree. So do missing cells, and strata. *Candidates* are the originals that
a masked record can come from.

Pairs of masked record and original are ruled out soundly: a pair is dropped only if no assignment
of masked records to originals, one to one, that agrees with the release has it. The truth is such
an assignment, so it is never lost.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from ..._parameters import EFFORT, parameters
from ..._types import Floats, Integers, Name, Truths
from ...exceptions import AttackError
from ...frame import Table, View, group_ids
from ...frame.columns import number_values
from ...kernels.candidates import Exchanges, drop_taken, drop_unanswered
from ...masking.selection import select
from ...schema import Schema
from ..aligned import AlignedTables, align_tables
from ..estimate import RecordEstimate
from ..linkage import drawn

SURE = 0.99  # a candidate that is more probable than this is the only one
MOST_PAIRS = 20_000_000  # as many can be listed, in 180 MB


@dataclass(frozen=True, kw_only=True, repr=False)
class Candidates(RecordEstimate):
    """How many originals each masked record can come from, and how often the intruder is right.

    He names the most probable original. Where t are equally probable he is right with chance 1/t,
    and `value` is the mean of these chances. Besides the fields of `Estimate`:

    Parameters
    ----------
    attacked : array of shape (n,)
        The rows of the masked table that were attacked.
    truth : array of shape (n,)
        The row of the original that each comes from.
    size : array of shape (n,)
        How many originals each can come from.
    present : array of shape (n,)
        Whether the truth is among them.
    chance : array of shape (n,)
        The chance that he names the right one.
    belief : array of shape (n,)
        The probability that he gives to the truth.
    largest : array of shape (n,)
        The probability of the one that he names.
    effective : array of shape (n,)
        The effective number of candidates, e to the entropy of the probabilities: equal to `size`
        where all candidates are equally probable.
    """

    _columns = (
        "masked=attacked", "original=truth", "candidates=size", "effective", "present", "belief",
        "chance",
    )  # fmt: skip
    attacked: Integers = field(repr=False)
    truth: Integers = field(repr=False)
    size: Integers = field(repr=False)
    present: Truths = field(repr=False)
    chance: Floats = field(repr=False)
    belief: Floats = field(repr=False)
    largest: Floats = field(repr=False)
    effective: Floats = field(repr=False)

    @classmethod
    def of_sets(
        cls, scene: Scene, *, size: Integers, present: Truths, attack: str, notes: Sequence[str]
    ) -> Self:
        """Build the result of an attack whose candidates are all equally probable."""
        share = np.where(size > 0, 1.0 / np.maximum(size, 1), 0.0)
        chance = np.where(present, share, 0.0)
        return cls.of_scene(
            scene,
            attack=attack,
            notes=notes,
            size=size,
            present=present,
            chance=chance,
            belief=chance,
            largest=share,
            effective=size.astype(np.float64),
        )

    @classmethod
    def of_scene(cls, scene: Scene, *, chance: Floats, notes: Sequence[str], **more: Any) -> Self:
        """Build the result of an attack on the records of a scene that are attacked."""
        return cls.of_chances(
            chance,
            baseline=1 / scene.n,
            assumptions=(*scene.notes, *notes),
            exact=scene.all_attacked,
            attacked=scene.rows,
            truth=scene.sides.truth[scene.rows],
            **more,
        )

    @property
    def single(self) -> float:
        """The share of records with exactly one candidate (one of more than 99 %)."""
        return float((self.largest > SURE).mean())

    @property
    def expected(self) -> float:
        """The mean effective number of candidates."""
        return float(self.effective.mean())

    @property
    def covered(self) -> float:
        """The share of records whose true original is among the candidates."""
        return float(self.present.mean())

    def __str__(self) -> str:
        covered = f"the truth among them for {100 * self.covered:.1f} %"
        if self.present.all():
            covered = "the truth always among them"
        return (
            f"{super().__str__()}; one candidate for {100 * self.single:.1f} %, "
            f"{self.expected:.3g} on average, {covered}"
        )

    def checked(self, strict: bool, method: str) -> Candidates:
        """Refuse a table that cannot come from the method as stated, if that is wanted."""
        if strict and not self.present.all():
            raise AttackError.not_from(method=method, lacking=int((~self.present).sum()), n=self.n)
        return self


@dataclass(eq=False)
class Pairs:
    """Possible pairs, by masked record; see `kernels.candidates`."""

    n: int
    start: Integers
    partner: Integers
    alive: Truths

    @classmethod
    def of(cls, n: int, start: Integers, partner: Integers) -> Pairs:
        """Take all listed pairs for possible."""
        return cls(n, start, partner, np.ones(len(partner), dtype=bool))

    def sizes(self) -> Integers:
        """Count the originals that are left for each masked record."""
        total = np.concatenate([[0], np.cumsum(self.alive)])
        counts: Integers = total[self.start[1:]] - total[self.start[:-1]]
        return counts

    def has(self, truth: Integers) -> Truths:
        """Say for each masked record whether an original is still possible."""
        rows = np.repeat(np.arange(len(truth)), np.diff(self.start))
        hit = self.alive & (self.partner == truth[rows])
        return np.bincount(rows[hit], minlength=len(truth)) > 0

    def drop_impossible(self, exchanges: Exchanges | None) -> None:
        """Drop pairs until no reason is left to drop more."""
        self._propagate(exchanges)
        while self._keep_matched():
            if not self._propagate(exchanges):
                break

    def _propagate(self, exchanges: Exchanges | None) -> int:
        total = 0
        while True:
            dropped = drop_taken(self.start, self.partner, self.alive, self.n)
            if exchanges is not None:
                dropped += drop_unanswered(self.start, self.partner, self.alive, exchanges)
            if not dropped:
                return total
            total += dropped

    def _keep_matched(self) -> bool:
        """Drop pairs that are in no matching of all masked records; say whether there were any.

        With one such matching M, the pair (i, j) is in another one if and only if j is i's, or an
        alternating way leads from the owner of j back to i or to an original that nobody owns: if
        and only if i and that owner are in one strong component of the graph i -> owner of j
        (Dulmage and Mendelsohn 1958; Tassa 2012), where all who reach a free original go on to
        everybody.
        """
        m = len(self.start) - 1
        rows = np.repeat(np.arange(m), np.diff(self.start))[self.alive]
        columns = self.partner[self.alive]
        graph = csr_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(m, self.n))
        match = maximum_bipartite_matching(graph, perm_type="column")
        if (match < 0).any():  # the parameters are wrong: nothing follows from them
            return False
        owner = np.full(self.n, m)  # m stands for nobody
        owner[match] = np.arange(m)
        source, target = rows, owner[columns]
        if m < self.n:
            source = np.concatenate([source, np.full(m, m)])
            target = np.concatenate([target, np.arange(m)])
        ones = np.ones(len(source), dtype=np.int8)
        steps = csr_array((ones, (source, target)), shape=(m + 1, m + 1))
        part = connected_components(steps, directed=True, connection="strong")[1]
        possible = part[rows] == part[owner[columns]]
        self.alive[np.flatnonzero(self.alive)[~possible]] = False
        return not possible.all()


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """Both tables, aligned, in the columns that the intruder knows, and how hard he tries.

    `masked` are the places of the known columns that were masked, `blocks` those of each block of
    which some column is known, and `whole` says whether all of them are.
    """

    sides: AlignedTables
    masked: list[int]
    blocks: list[list[int]]
    whole: list[bool]
    strata: Integers  # (n,) of the originals
    like: Integers  # (n,) originals with the same number agree in all that was not masked
    likes: Integers  # (m,) the same of masked records; -1 if no original agrees
    notes: tuple[str, ...]
    rows: Integers  # the masked records that are attacked
    effort: str
    strict: bool

    @property
    def n(self) -> int:
        """The number of originals."""
        return len(self.sides.B)

    @property
    def m(self) -> int:
        """The number of masked records."""
        return len(self.sides.A)

    @property
    def all_attacked(self) -> bool:
        """Whether every masked record is attacked."""
        return len(self.rows) == self.m

    @property
    def complete(self) -> bool:
        """Whether every original was released."""
        return self.n == self.m

    def holds_numbers(self, place: int) -> bool:
        """Return whether a column has numbers that can be averaged, not codes of categories."""
        pair = self.sides.pair
        assert pair is not None
        return pair.original.is_number(self.sides.columns[place])

    def need_complete(self, what: str) -> None:
        """Refuse a masked table with fewer records than the original."""
        if not self.complete:
            raise AttackError.incomplete(what=what, original=self.n, masked=self.m)


@parameters(effort=[EFFORT])
def set_scene(
    original: Any,
    masked: Any,
    column_blocks: Any = None,  # blocks, which not every attack takes
    /,
    *,
    known: Any = None,
    id: Name | None = None,
    schema: Schema | None = None,
    columns: Any = None,
    strata: Any = None,
    effort: str = "standard",
    sample: int | None = None,
    random_state: int | None = None,
    strict: bool = True,
    categories: bool = False,
) -> Scene:
    """Read both tables and sort their columns; the options of every attack, see `attack`.

    `categories` says whether an attack takes masked columns of other things than numbers.
    """
    original, masked = View.of(original, schema), View.of(masked, schema)
    sides = align_tables(original, masked, known=known, id=id, schema=schema)
    before, after = original.table, masked.table
    if columns is None:
        columns = _numbers(before, after, id, strata, schema)
    chosen = select(
        before, columns=columns, blocks=column_blocks, strata=strata, weights=None, schema=None
    )
    place = {name: j for j, name in enumerate(sides.columns)}
    hidden = [place[name] for name in chosen.masked if name in place]
    if not hidden:
        raise AttackError.nothing_masked(masked=chosen.masked, known=sides.columns)
    text = [sides.columns[j] for j in hidden if sides.nominal[j]]
    if text and not categories:
        raise AttackError.not_numbers(columns=text)
    seen = [[place[name] for name in block if name in place] for block in chosen.blocks]
    kept = [(own, len(own) == len(block)) for own, block in zip(seen, chosen.blocks) if own]
    open_ = [j for j in range(len(sides.columns)) if j not in set(hidden)]
    layers = chosen.strata.ids
    notes = [f"known: {', '.join(str(sides.columns[j]) for j in hidden)}", *sides.notes]
    if open_:
        named = ", ".join(str(sides.columns[j]) for j in open_)
        notes.append(f"known and released as they are, so equal in both tables: {named}")
    if len(chosen.strata.names) > 1:
        notes.append("he knows the stratum of each record")
    like, likes = _agreeing(sides, open_, layers)
    return Scene(
        sides=sides,
        masked=hidden,
        blocks=[own for own, _ in kept],
        whole=[whole for _, whole in kept],
        strata=layers,
        like=like,
        likes=likes,
        notes=tuple(notes),
        rows=drawn(len(sides.A), sample, random_state),
        effort=effort,
        strict=strict,
    )


def number_equal_rows(columns: Sequence[Any]) -> Integers:
    """Number records 0, 1, ... that agree in all columns; missing cells agree with each other."""
    single = (column for block in columns for column in np.atleast_2d(np.asarray(block).T))
    return group_ids(number_values(column) for column in single)  # one at a time: tables are large


def _numbers(
    before: Table, after: Table, id: Name | None, strata: Any, schema: Schema | None
) -> list[Name]:
    """Take all columns of numbers for masked that nothing else is said of."""
    named = strata if isinstance(strata, list | tuple) else [strata]
    taken = {id, *(name for name in named if isinstance(name, Hashable) and before.has(name))}
    if schema is not None:
        schema.check(before)
        coded = {column.name for column in schema if column.kind in ("ordinal", "nominal")}
        taken |= coded | {column.name for column in schema if column.role != "quasi-identifier"}
    free = [name for name in before.columns if after.has(name) and name not in taken]
    return [name for name in free if before.facts(name).numeric]


def _agreeing(sides: AlignedTables, at: list[int], strata: Integers) -> tuple[Integers, Integers]:
    """Number originals and masked records that agree in what was not masked."""
    n = len(sides.B)
    layers = np.concatenate([strata, strata[sides.truth]])
    numbers = number_equal_rows([layers, np.concatenate([sides.B[:, at], sides.A[:, at]])])
    own = np.unique(numbers[:n])
    like = np.searchsorted(own, numbers[:n])
    place = np.minimum(np.searchsorted(own, numbers[n:]), len(own) - 1)
    return like, np.where(own[place] == numbers[n:], place, -1)
