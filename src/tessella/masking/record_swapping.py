"""Record swapping: households at risk in their region change places with similar ones of another.

A *unit* is what changes its place as a whole: what the schema's role says, or a single record. Its
*place* are its regions in all levels of a geography, from the coarsest to the finest. Nothing else
is changed, so every figure that does not mention a place stays to the last digit.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._parameters import Number, Whole
from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadOptionError, BadTableError, UnchangedWarning
from ..frame import Table, View, count_units, group_ids
from ..grouping.base import Chance, chance_of
from ..kernels.swapping import Donors, pair_units
from ..rules.collection import Rules
from .base import Declared, Masker
from .registry import Method, Options, register
from .selection import Selection, select

SHARE = Number(least=0, most=1)
ALL = np.iinfo(np.int64).max  # units that a region needs, where there is no limit


@dataclass(eq=False, repr=False)
class RecordSwapping(Masker):
    r"""Targeted record swapping: exchange the places of units at risk with those of similar ones.

    Parameters
    ----------
    geography : list of names
        The columns of the regions, the coarsest first: each divides the one before.
    keys : list of names, optional
        What an intruder may know of the records of a unit: by these it is at risk. By default the
        schema's quasi-identifiers that are not exchanged. A missing value is a value of its own.
    similar : list of names, or list of such lists, optional
        The profiles, tried in order: a unit changes places with one that has the same values of all
        columns of a profile. Columns that differ within a unit are compared as lists of its
        records, whatever their order. Whatever the profile, both units have as many records.
    k : int, default 3
        A unit is at risk in a region where fewer than k units have a record with the keys of one
        of its records. 1: none is.
    rate : float, or list of one a level, default 0.05
        The least share of the units of each region of the finest level (of each level) that change
        to another region of that level, those at risk among them.
    carry : list of names, optional
        Further columns that go with the place, such as a postcode; constant within units.
    columns : ignored, or the names in `geography` and `carry`
        Present for candidates of `tessella.explore`.
    strata : name or list of names, optional
        Places are exchanged within strata only, which are constant within units.
    weights : name, optional
        Stay with their unit, and are not looked at: **weighted totals of a region change.**
    schema : Schema, optional
        Roles (the unit), kinds and missing codes.
    rules : Rules or text, optional
        Rules that the release is confronted with; nothing is restored, see `restoration_`. A rule
        between a region and other columns holds if these are in every profile.
    random_state : int, RandomState or None, default None
        A seed; None draws from the operating system's entropy.

    Attributes
    ----------
    risky_ : dict of name to int
        How many units are at risk at each level, and at none that is coarser.
    without_donor_ : dict of name to int
        How many of these found no similar unit elsewhere, and **are released in their own region**
        of this level; of a finer one perhaps not.
    swapped_ : dict of name to int
        How many units were given another place when each level was gone through, donors included.
    by_profile_ : list of int
        How many of these by each profile.
    n_units_ : int
        The number of units.
    changed_ : dict of name to float
        The share of the records with another value, in each exchanged column.
    restoration_ : Restoration or None
        How many released records break each rule.
    columns_, untouched_ : list of names
        The columns that were exchanged, and those that were released as they are.

    Notes
    -----
    As for the censuses of 2021 [1]_, [2]_. Levels are gone through from the coarsest. At a level,
    units that are at risk there, and were not swapped before, are taken in random order (with
    those that found no donor at a coarser level). For each
    profile in turn, a donor is drawn uniformly among the units that agree in it, were not swapped
    and are in another region of this level: first those that are in the same region of the level
    above, then all; of these first those that are at risk at this level themselves. Then, until
    every region has its `rate`, further units are taken in random order, those whose keys f units
    of the region share about 1/f times as often, and get donors in the same way. Every unit is
    swapped at most once. Two swapped units exchange `geography` and `carry`.

    So in each region of each level, the number of units, and of units of each number of records,
    stays to the last one; and so do all counts of columns that every profile has. k-anonymity is
    not claimed: a unit at risk is still there, in another place.

    References
    ----------
    .. [1] N. Shlomo, C. Tudor and P. Groom (2010). Data swapping for protecting census tables. In:
       Privacy in Statistical Databases, LNCS 6344.
    .. [2] L. Antal, T. Enderle and S. Giessing (2017). Statistical disclosure control methods for
       harmonised protection of census data. Eurostat.

    Examples
    --------
    The old man of Reus and the young one of Valls are each the only one of their kind there. They
    are similar by sex, and change places.

    >>> import pandas as pd
    >>> from tessella.masking import RecordSwapping
    >>> table = pd.DataFrame({
    ...     "town": ["Reus"] * 3 + ["Valls"] * 3, "sex": list("ffmffm"), "old": list("nnynnn"),
    ... })
    >>> masker = RecordSwapping(["town"], keys=["sex", "old"], similar=["sex"], k=2, rate=0)
    >>> masker.fit_transform(table)["town"].tolist()
    ['Reus', 'Reus', 'Valls', 'Valls', 'Valls', 'Reus']
    >>> masker.risky_, masker.swapped_, masker.without_donor_
    ({'town': 2}, {'town': 2}, {'town': 0})
    """

    _parameters: ClassVar[Declared] = {"k": [Whole(1)]}

    geography: Any
    _: KW_ONLY
    keys: Any = None
    similar: Any = None
    k: int = 3
    rate: Any = 0.05
    carry: Any = None
    rules: Any = None

    @property
    def exchanged(self) -> list[Name]:
        """The columns that go with a place."""
        return [*_names(self.geography), *_names(self.carry)]

    def _mask(self, source: Table, *, weights: Any, strata: Any) -> Any:
        rules = None if self.rules is None else Rules.of(self.rules)
        if self.columns is not None and {*_names(self.columns)} != {*self.exchanged}:
            expected = "nothing: columns are named in geography and carry"
            raise BadOptionError("columns", self.columns, expected)
        chosen = select(
            source, columns=self.exchanged, strata=strata, weights=weights, schema=self.schema,
            who=type(self).__name__, categories=True,
        )  # fmt: skip
        places = self._read(View(source, self.schema), chosen)
        chance = chance_of(self.random_state)
        self.risky_: dict[Name, int] = {}
        self.without_donor_: dict[Name, int] = {}
        self.swapped_: dict[Name, int] = {}
        self.by_profile_ = [0] * len(places.profiles)
        for level, name in enumerate(_names(self.geography)):
            self._swap_level(places, level, name, chance)
        for level, name in enumerate(_names(self.geography)):
            risky = places.risky(level, self.k)
            self.risky_[name] = int(risky.sum())
            self.without_donor_[name] = int((risky & places.stays(level)).sum())
        masked = source.rearrange(dict.fromkeys(self.exchanged, places.rows()))
        self.n_units_, self.columns_ = len(places.partner), self.exchanged
        self.changed_ = {
            name: float((own != own[places.rows()]).mean()) if len(own) else 0.0
            for name, own in ((name, places.view.codes(name)) for name in self.exchanged)
        }
        self._keep_facts(source, chosen)
        self.restoration_ = None if rules is None else self._confront(rules, source, masked)
        if count := sum(self.without_donor_.values()):
            total = sum(self.risky_.values())
            warnings.warn(UnchangedWarning.without_donor(count=count, risky=total), stacklevel=3)
        return masked

    @property
    def account_(self) -> str:
        """What was done, in one sentence."""
        risky, left = sum(self.risky_.values()), sum(self.without_donor_.values())
        return (
            f"{sum(self.swapped_.values()):,} of {self.n_units_:,} units were given another place; "
            f"{risky:,} were at risk, of which {left:,} found no donor."
        )

    def _read(self, view: View, chosen: Selection) -> _Places:
        """Read units with their places, keys and profiles; refuse what has no one place."""
        given = view.units
        units = np.arange(view.n_rows) if given is None else given
        first = np.unique(units, return_index=True)[1]
        self._refuse_several(view, chosen, units, first)
        layers = [view.codes(name)[first] for name in _names(self.geography)]
        regions = [group_ids(layers[: level + 1]) for level in range(len(layers))]
        _refuse_levels(_names(self.geography), [int(own.max()) + 1 for own in regions])
        keys = group_ids([view.codes(name) for name in self._keys(view)])
        stratum = chosen.strata.ids[first]
        profiles = [
            group_ids([stratum, member_lists(_joint(view, profile), units)])
            for profile in _profiles(self.similar, view.table, self.exchanged)
        ]
        return _Places(
            view=view, units=units, first=first, regions=regions, profiles=profiles,
            counts=[count_sharing(own, keys, units) for own in regions],
            partner=np.full(len(first), -1, dtype=np.int64),
        )  # fmt: skip

    def _refuse_several(
        self, view: View, chosen: Selection, units: Integers, first: Integers
    ) -> None:
        """Refuse places that are missing, and units that are in several places or strata."""
        for name in self.exchanged:
            if lacking := int(view.missing(name).sum()):
                raise BadTableError(
                    f"Column {name!r} lacks {lacking} values, and every unit needs a place to "
                    "exchange. Give every record one; a name such as 'unknown' will do."
                )
        codes = {f"column {name!r}": view.codes(name) for name in self.exchanged}
        for what, own in {**codes, "strata": chosen.strata.ids}.items():
            differs = own != own[first][units]
            if differs.any():
                count = len(np.unique(units[differs]))
                raise BadTableError(
                    f"{count} units have records with different values of {what}. A unit changes "
                    "its place as a whole: correct them, or leave the column out."
                )

    def _keys(self, view: View) -> list[Name]:
        if self.keys is not None:
            names = _names(self.keys)
        else:
            held = [] if view.schema is None else view.schema.names("quasi-identifier")
            names = [n for n in held if view.table.has(n) and n not in self.exchanged]
        if not names:
            expected = "the columns that put a unit at risk where few of its region share them"
            raise BadOptionError("keys", self.keys, expected)
        for name in names:
            view.table.place(name, who="keys")
            if name in self.exchanged:
                raise BadOptionError("keys", name, "columns that are not exchanged")
        return names

    def _rate(self, level: int) -> float:
        """Return the least share of swapped units at a level."""
        depth = len(_names(self.geography))
        rates = [0.0] * (depth - 1) + [self.rate] if SHARE.accepts(self.rate) else self.rate
        shares = isinstance(rates, list | tuple) and all(map(SHARE.accepts, rates))
        if not shares or len(rates) != depth:
            expected = f"a share from 0 to 1, or a list of {depth}, one for each level"
            raise BadOptionError("rate", self.rate, expected)
        return float(rates[level])

    def _swap_level(self, places: _Places, level: int, name: Name, chance: Chance) -> None:
        """Swap units at risk at a level, then others until each region has its rate."""
        partner, region = places.partner, places.regions[level]
        before = int((partner >= 0).sum())
        # Who is at risk in a larger region is so here, too, and may have found no donor there.
        risky = (places.counts[level] < self.k) & (partner < 0)
        todo = _shuffled(np.flatnonzero(risky), chance)
        no_limit = np.full(int(region.max()) + 1, ALL)
        for number, pools in places.pools(level):
            for donors in (risky, np.ones(len(partner), dtype=bool)):
                self._pair(places, level, number, todo, pools, donors, no_limit, chance)
        wanted = np.ceil(self._rate(level) * np.bincount(region) - 1e-9).astype(np.int64)
        need = wanted - np.bincount(region[partner >= 0], minlength=len(wanted))
        if (need > 0).any():
            # An exponential draw times f is least for one of those drawn by chances 1/f.
            draws = -np.log1p(-chance.random(len(partner))) * places.counts[level]
            todo = np.argsort(draws, kind="stable")
            for number, pools in places.pools(level):
                everybody = np.ones(len(partner), dtype=bool)
                self._pair(places, level, number, todo, pools, everybody, need, chance)
        self.swapped_[name] = int((partner >= 0).sum()) - before

    def _pair(
        self, places: _Places, level: int, profile: int, todo: Integers, pools: Integers,
        donors: Truths, need: Integers, chance: Chance,
    ) -> None:  # fmt: skip
        """Pair units with donors of their pool, and count by which profile."""
        free = todo[places.partner[todo] < 0]
        among = np.flatnonzero(donors & (places.partner < 0))
        if not len(free) or not len(among):
            return
        region, partner = places.regions[level], places.partner
        arranged = arrange(pools, region, _shuffled(among, chance))
        before = int((partner >= 0).sum())
        pair_units(free, chance.random(len(free)), region, need, arranged, partner)
        self.by_profile_[profile] += int((partner >= 0).sum()) - before


@dataclass(frozen=True, kw_only=True, eq=False)
class _Places:
    """The units of a table, and whom each exchanges its place with."""

    view: View
    units: Integers  # (n,) of each record
    first: Integers  # (u,) the first record of each unit
    regions: list[Integers]  # (u,) at each level
    counts: list[Integers]  # (u,) how many units of the region share the rarest keys of each
    profiles: list[Integers]  # (u,) units with equal numbers are similar
    partner: Integers  # (u,) -1 for none

    def risky(self, level: int, k: int) -> Truths:
        """Return which units are at risk at a level and at none above."""
        # In a larger region as many units share the keys, or more: the level above tells.
        here: Truths = self.counts[level] < k
        return here if level == 0 else here & (self.counts[level - 1] >= k)

    def stays(self, level: int) -> Truths:
        """Return which units keep their region of a level."""
        region = self.regions[level]
        kept: Truths = (self.partner < 0) | (region == region[self.partner])
        return kept

    def pools(self, level: int) -> Iterator[tuple[int, Integers]]:
        """Yield profiles and the pools of units that may be exchanged, in the order of trying."""
        for number, profile in enumerate(self.profiles):
            if level > 0:
                yield number, group_ids([profile, self.regions[level - 1]])
            yield number, profile

    def rows(self) -> Integers:
        """Return for each record a record that had its new place."""
        own = self.partner[self.units]
        rows: Integers = np.where(own >= 0, self.first[own], np.arange(len(self.units)))
        return rows


def count_sharing(region: Integers, keys: Integers, units: Integers) -> Integers:
    """Return how many units of its region share the rarest keys of a unit, shape (u,).

    `region` is that of each unit; `keys` and `units` are those of each record.
    """
    classes = group_ids([region[units], keys])
    shared = count_units(classes, units)[classes]
    least = np.full(len(region), len(region), dtype=np.int64)
    np.minimum.at(least, units, shared)
    return least


def arrange(pools: Integers, region: Integers, members: Integers) -> Donors:
    """Put donors into blocks of one pool and region, in the order in which they are given."""
    own = members[np.lexsort((region[members], pools[members]))]  # stable
    starts = np.ones(len(own), dtype=bool)
    starts[1:] = (np.diff(pools[own]) != 0) | (np.diff(region[own]) != 0)
    at = np.flatnonzero(starts)
    block = np.full(len(pools), -1, dtype=np.int64)
    block[own] = np.cumsum(starts) - 1
    first = np.searchsorted(pools[own[at]], np.arange(int(pools.max()) + 2))
    return Donors(
        np.ascontiguousarray(pools), block, first.astype(np.int64), region[own[at]],
        np.append(at, len(own)).astype(np.int64), own,
    )  # fmt: skip


def member_lists(codes: Integers, units: Integers) -> Integers:
    """Number units, from 0, that have the same codes equally often, in whatever order.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.masking.record_swapping import member_lists
    >>> member_lists(np.array([5, 6, 6, 5, 6]), np.array([0, 0, 1, 1, 2]))
    array([1, 1, 0])
    """
    order = np.lexsort((codes, units))
    sizes = np.bincount(units)
    start = np.cumsum(sizes) - sizes
    found = np.empty(len(sizes), dtype=np.int64)
    taken = 0
    for size in np.unique(sizes).tolist():  # all that have as many records are compared at once
        mine = np.flatnonzero(sizes == size)
        own = group_ids([codes[order[start[mine] + at]] for at in range(size)])
        found[mine] = own + taken
        taken += int(own.max()) + 1
    return found


def _joint(view: View, names: Sequence[Name]) -> Integers:
    if not names:
        return np.zeros(view.n_rows, dtype=np.int64)
    return group_ids([view.codes(name) for name in names])


def _shuffled(members: Integers, chance: Chance) -> Integers:
    draws: Floats = chance.random(len(members))
    return members[np.argsort(draws, kind="stable")]


def _names(given: Any) -> list[Name]:
    """Return names, of which one may stand without a list."""
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def _profiles(similar: Any, table: Table, exchanged: Sequence[Name]) -> list[list[Name]]:
    """Return profiles; one of no columns where none is given: as many records will do."""
    given: list[Any] = _names(similar)
    several = len(given) and all(isinstance(one, list | tuple) for one in given)
    profiles = [list(one) for one in given] if several else [given]
    for name in (name for profile in profiles for name in profile):
        if isinstance(name, list | tuple):
            raise BadOptionError("similar", similar, "a list of names, or a list of such lists")
        table.place(name, who="similar")
        if name in exchanged:
            raise BadOptionError("similar", name, "columns that are not exchanged")
    return profiles


def _refuse_levels(names: Sequence[Name], counts: Sequence[int]) -> None:
    """Refuse levels that do not divide what is above them."""
    above = 1
    for name, count in zip(names, counts):
        if count <= above:
            more = "regions of the level above" if above > 1 else "other region"
            raise BadOptionError(
                "geography", list(map(str, names)), f"levels from the coarsest to the finest: "
                f"{name!r} has {count} regions, and divides no {more}",
            )  # fmt: skip
        above = count


def _advise(options: Options, facts: Options) -> list[str]:  # noqa: ARG001
    levels = ", ".join(map(str, _names(options.get("geography"))))
    return [
        f"Some units exchanged their places ({levels}) with similar units of other regions, those "
        "that are rare in their region first. All that does not mention a place is as in the "
        "original, and so are the numbers of units of each region.",
        "What is counted or estimated by region is disturbed where it is about columns that "
        "exchanged units need not have in common: differences between regions are drawn towards "
        "zero, most in small regions; weights were not exchanged, so that weighted totals of "
        "regions differ, too.",
    ]


METHOD = register(
    Method(
        name="record swapping",
        masker=RecordSwapping,
        masks="categories",
        description=lambda given: (
            f"record swapping, units that fewer than {given.get('k', 3)} share their keys with"
        ),
        attack="record swapping",
        attack_options=lambda masker: {"columns": masker.exchanged},
        advice=_advise,
    )
)
