"""What an assessment is given, what it tries, and what it found.

In a large table, attacks that compare all pairs get some records of every kind. Records far from
the middle are found more easily, so records are drawn from strata of equal distance to the middle,
and the share over the whole table is put together from the strata.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .._notebook import RISK, Bar, Display, Displayed, Section
from .._types import Floats, Integers, Name
from ..schema import Schema
from .aligned import AlignedTables, align_tables
from .estimate import CONTROLS, Estimate, wilson
from .linkage import Linkage

if TYPE_CHECKING:
    import pandas as pd

E = TypeVar("E", bound=Estimate)
T = TypeVar("T")

LEARN_MIXED = 50_000  # records, up to which a distance is learned from categories, too
BESIDE = (*CONTROLS, "held_out")  # figures that an attack may have beside its share
ENDS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0)  # of strata, as shares of the records


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Records that were drawn, and the stratum of each.

    `shares` has, for each stratum, its share of the whole table.
    """

    records: Integers
    stratum: Integers
    shares: Floats

    def estimate(self, found: E, chance: Floats) -> E:
        """Put the share over the whole table, and its interval, in the place of the sample's.

        Notes
        -----
        With W_h the share of stratum h, p_h the share found in it and m_h its records drawn,

            p = Σ W_h p_h,   Var p = Σ W_h² p_h (1 - p_h) / (m_h - 1),

        and the interval is Wilson's for as many records as would have the same variance.
        """
        counts = np.bincount(self.stratum, minlength=len(self.shares))
        p = self._by_stratum(chance)
        value = float(self.shares @ p)
        variance = float((self.shares**2 * p * (1 - p) / np.maximum(counts - 1, 1)).sum())
        worth = len(chance)
        if variance > 0:
            worth = min(worth, max(1, math.floor(value * (1 - value) / variance)))
        low, high = wilson(value * worth, worth)
        strata = f"{len(self.shares)} strata by distance to the middle"
        note = f"{len(chance):,} records drawn from {strata}"
        more: dict[str, Any] = {}
        if isinstance(found, Linkage):  # far records were drawn more often here, too
            more["within"] = {
                k: float(self.shares @ self._by_stratum(found.chance_within(k)))
                for k in found.within
            }
        return replace(
            found, value=value, low=low, high=high, assumptions=(*found.assumptions, note), **more
        )

    def _by_stratum(self, chance: Floats) -> Floats:
        """Return the share found in each stratum."""
        counts = np.bincount(self.stratum, minlength=len(self.shares))
        sums = np.bincount(self.stratum, weights=chance, minlength=len(self.shares))
        return sums / np.maximum(counts, 1)


def draw_strata(tables: AlignedTables, size: int, random_state: int | None) -> Draw:
    """Draw masked records: as many from the few far ones as from the many near ones."""
    away = _distance_to_middle(tables)
    m = len(away)
    generator = np.random.default_rng(random_state)
    order = np.argsort(away, kind="stable")
    cuts = np.unique([round(end * m) for end in ENDS])
    records, stratum, shares = [], [], []
    strata = [order[a:b] for a, b in pairwise(cuts) if b > a]
    for h, rows in enumerate(strata):
        count = min(len(rows), max(2, size // len(strata)))
        drawn = np.sort(generator.choice(rows, size=count, replace=False))
        records.append(drawn)
        stratum.append(np.full(count, h))
        shares.append(len(rows) / m)
    found = np.concatenate(records)
    by = np.argsort(found, kind="stable")
    return Draw(records=found[by], stratum=np.concatenate(stratum)[by], shares=np.array(shares))


def _distance_to_middle(tables: AlignedTables) -> Floats:
    """Return mean squared deviations; a category counts by how rare it is."""
    away = np.zeros(len(tables.A))
    for place in range(len(tables.columns)):
        x = tables.A[:, place]
        seen = ~np.isnan(x)
        if not seen.any():
            continue
        if tables.nominal[place]:
            own = x[seen].astype(np.int64)  # categories are numbered from 0
            away[seen] += -np.log(np.bincount(own)[own] / len(own))
            continue
        spread = float(x[seen].std())
        if spread > 0:
            away[seen] += ((x[seen] - x[seen].mean()) / spread) ** 2
    return away


def _plain(tables: AlignedTables) -> tuple[Name, ...]:
    gaps = np.isnan(tables.A).any(axis=0) | np.isnan(tables.B).any(axis=0)
    fit = ~gaps & ~tables.nominal
    return tuple(name for name, fits in zip(tables.columns, fit) if fits)


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """What the intruder is given; `tag` tells the caller which case it is."""

    original: Any  # both tables: views, so that each column is read once
    masked: Any
    known: tuple[Name, ...]  # the variables that he knows
    schema: Schema | None = None  # kinds, roles and missing codes
    id: Name | None = None  # the column that says who is who
    method: Any = None  # how the table was masked, if he knows it: a masker or a mapping
    confidential: tuple[Name, ...] = ()  # what he wants to know of a person
    weights: Any = None  # of a sample: a name or an array, and so is `unit`
    unit: Any = None  # the household, firm or patient of each record
    order: Integers | None = None  # the masked records as they are released, by row
    population: Any = None  # a table of all who may be in the release, if he has one
    population_counts: Name | None = None  # its column that counts persons
    effort: str = "standard"  # how hard he tries: "quick", "standard" or "thorough"
    standardise: str = "each"  # what distances standardise by
    held_out: bool = True  # try learned distances on records that they were not learned from, too
    seconds: float | None = None  # how long a single attack may take, where it can be stopped
    seed: int | None = None  # of anything random
    sample: int | None = None  # about how many records are attacked in a larger table
    tag: Any = None
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False)  # what is read once

    def keep(self, key: Any, make: Callable[[], T]) -> T:
        """Return what was made before under a key, or make it."""
        if key not in self._kept:
            self._kept[key] = make()
        kept: T = self._kept[key]
        return kept

    @property
    def tables(self) -> AlignedTables:
        """The two tables in the variables that he knows."""
        options: dict[str, Any] = {"known": self.known, "id": self.id, "schema": self.schema}
        return self.keep("tables", lambda: align_tables(self.original, self.masked, **options))

    @property
    def plain(self) -> tuple[Name, ...]:
        """The known variables that are numbers, without a missing one."""
        return self.keep("plain", lambda: _plain(self.tables))

    @property
    def plain_tables(self) -> AlignedTables:
        """The two tables in the variables of `plain`; not kept, as that may be a copy of both."""
        return self.tables.select(self.plain)

    def learnable(self, most_mixed: int = 1000) -> list[AlignedTables]:
        """List what a distance is learned from: plain numbers, and up to so many of any kind."""
        found = [self.plain_tables] if len(self.plain) > 1 else []
        if self.mixed and 1 < len(self.known) <= most_mixed and len(self.tables.B) <= LEARN_MIXED:
            found.append(self.tables)
        return found

    @property
    def mixed(self) -> bool:
        """Whether there is more than plain numbers."""
        return len(self.plain) < len(self.known)

    @property
    def keys(self) -> tuple[Name, ...]:
        """The known variables, without what is confidential: what classes are made by."""
        left = tuple(name for name in self.known if name not in self.confidential)
        return left or self.known

    def draw(self, pairs: float) -> Draw | None:
        """Return records to attack where all would be too many pairs; None for all."""
        m, n = len(self.tables.A), len(self.tables.B)
        most = int(max(1000, pairs / n))
        if self.sample is not None:
            most = min(most, self.sample)
        if m <= most:
            return None
        return self.keep(most, lambda: draw_strata(self.tables, most, self.seed))


@dataclass(frozen=True)
class Attack:
    """One way to attack.

    Attributes
    ----------
    name : str
        As `attacks=` names it. A store of `tessella.explore` finds results by it: an attack that
        was changed needs another name.
    about : {"identity", "attribute", "table"}
        Whether it finds out who is who, what is true of somebody, or what the table shows.
    run : callable
        From a `Case` to an `Estimate`.
    effort : {"quick", "standard", "thorough", "population"}
        From when on it is tried without being asked for; or where a population is given.
    skip_reason : callable
        Why it does not fit a case; an empty text if it does.
    description : str
        What the intruder does, in few words.
    expensive : bool
        Takes long: an exploration tries it last, and not at all where others find everybody.
    """

    name: str
    about: str
    run: Callable[[Case], Estimate]
    effort: str = "quick"
    skip_reason: Callable[[Case], str] = lambda case: ""  # noqa: ARG005
    description: str = ""
    expensive: bool = False


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One attack that was tried."""

    name: str
    about: str  # "identity", "attribute" or "table"
    scenario: str  # what the intruder knows
    found: Estimate
    seconds: float  # how long it took

    def to_dict(self) -> dict[str, Any]:
        """Return its figures, as a line of `Assessment.frame`."""
        apart = {"held_out": getattr(self.found, "held_out", None), **self.found.controls}
        interval = self.found.excess_interval
        return {
            "attack": self.name,
            "about": self.about,
            "scenario": self.scenario,
            **{name: getattr(self.found, name) for name in ("value", "low", "high", "baseline")},
            **{name: one.value if (one := apart.get(name)) else None for name in BESIDE},
            "excess": self.found.excess,
            "excess_low": interval and interval[0],
            "excess_high": interval and interval[1],
            "records": self.found.n,
            "seconds": self.seconds,
            "how": self.found.attack,
        }

    def __str__(self) -> str:
        return f"{self.name}: {str(self.found).splitlines()[-1 if self.about == 'table' else 0]}"


TITLES = {
    "identity": "Identity disclosure (share of records found)",
    "attribute": "Attribute disclosure (share of right statements)",
    "table": "What the table shows by itself",
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Assessment(Displayed):
    """What the attacks that fit found; the worst one counts.

    Attributes
    ----------
    tried : tuple of Tried
        All attacks, in the order in which they were tried.
    skipped : mapping of str to str
        The attacks that were not tried, and why.
    n : int
        The number of masked records.
    seconds : float
        How long all of it took.
    """

    tried: tuple[Tried, ...]
    skipped: Mapping[str, str]
    n: int
    seconds: float
    scenarios: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def about(self, what: str) -> list[Tried]:
        """List the attacks of one kind: "identity", "attribute" or "table"."""
        return [one for one in self.tried if one.about == what]

    @property
    def worst(self) -> Tried | None:
        """The attack that finds most records; None if none was about identity."""
        return max(self.about("identity"), key=lambda one: one.found.value, default=None)

    @property
    def value(self) -> float:
        """The share of records that the worst attack finds; NaN if none was about identity.

        What was not attacked is not safe: NaN is below no limit.
        """
        return math.nan if self.worst is None else self.worst.found.value

    def __getitem__(self, name: str) -> Estimate:
        """Return what an attack found, in the scenario in which it found most."""
        own = [one.found for one in self.tried if one.name == name]
        if not own:
            labels = [label for label in self.skipped if label.startswith(f"{name} (")]
            reason = self.skipped.get(labels[0] if labels else name, "no such attack")
            raise KeyError(f"{name} was not tried: {reason}")
        return max(own, key=lambda one: one.value)

    @property
    def records(self) -> pd.DataFrame:
        """One line for each masked record: who is found, how surely, and by which attack.

        Confidential. A column for each attack on identity, and for "dominance", holds the chance
        that it is right about the record, missing where the record was not attacked; `chance` is
        the largest of them and `attack` names it; `original` is the record's own row in the
        original.
        """
        import pandas as pd

        return pd.DataFrame(self.by_record())

    def by_record(self) -> dict[str, Any]:
        """Return the columns of `records` as arrays."""
        columns: dict[str, Floats] = {}
        truth = np.full(self.n, -1, dtype=np.int64)
        for one in self.tried:
            found: Any = one.found
            if one.about != "identity" and one.name != "dominance":
                continue
            rows = np.asarray(getattr(found, "attacked", np.arange(self.n)))
            name = one.name if len(self.scenarios) < 2 else f"{one.name} ({one.scenario})"
            chance = np.full(self.n, np.nan)
            chance[rows] = found.chance
            columns[name] = chance
            if hasattr(found, "truth"):
                truth[rows] = found.truth
        table = np.column_stack([*columns.values()] or [np.full(self.n, np.nan)])
        known = ~np.isnan(table).all(axis=1)
        best = np.where(known, np.argmax(np.nan_to_num(table, nan=-1.0), axis=1), 0)
        chance = np.where(known, table[np.arange(self.n), best], np.nan)
        names = np.array([*columns] or [""], dtype=object)
        attack = np.where(np.nan_to_num(chance) > 0, names[best], "")
        return {"original": truth, "chance": chance, "attack": attack, **columns}

    def frame(self) -> pd.DataFrame:
        """One line for each attack; a figure that an attack does not have is missing.

        `outsiders`, `without` and `shuffled` are controls, as in `Estimate`, `excess` is what is
        found beyond the first of them, and `held_out` is the share on records that a distance was
        not learned from.
        """
        import pandas as pd

        found = pd.DataFrame([one.to_dict() for one in self.tried])
        beyond = ("excess", "excess_low", "excess_high")
        figures = [name for name in (*BESIDE, *beyond) if name in found]
        return found.astype(dict.fromkeys(figures, float))

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts for reports; confidential, as all figures of risk are."""
        return {
            "worst": None if self.worst is None else self.worst.name,
            "value": None if self.worst is None else self.value,
            "records": self.n,
            "seconds": round(self.seconds, 3),
            "scenarios": {name: list(columns) for name, columns in self.scenarios.items()},
            "attacks": [
                {
                    **one.to_dict(),
                    "seconds": round(one.seconds, 3),
                    "assumptions": list(one.found.assumptions),
                    "says": str(one.found),
                    "beside": one.found.beside(),
                }
                for one in self.tried
            ],
            "skipped": dict(self.skipped),
        }

    @property
    def _verdict(self) -> list[str]:
        """What was tried, and what the worst attack found: two sentences."""
        tried = f"{len(self.tried)} attacks on {self.n:,} records in {self.seconds:.1f} s."
        if self.worst is None:
            return [tried, "No attack on who is who was tried: that risk is not known."]
        return [tried, f"The worst, {self.worst.name}: {str(self.worst.found).splitlines()[0]}"]

    def _display(self) -> Display:
        several = len(self.scenarios) > 1
        parts = []
        for about, title in TITLES.items():
            rows: list[list[str | Bar]] = [
                [
                    one.name, *[one.scenario] * several,
                    Bar(one.found.value, f"{100 * one.found.value:.1f} %"),
                    one.found.beside(), one.found.attack,
                ]
                for one in self.about(about)
            ]  # fmt: skip
            head = ["attack", *["scenario"] * several, "found", "beside", "how"]
            texts = set(range(len(head))) - {1 + several}
            parts += [Section(title=title, rows=[head, *rows], texts=texts)] if rows else []
        skipped = [f"{name}: {why}" for name, why in self.skipped.items()]
        parts += [Section(title="Not tried", lines=skipped, folded=True)] if skipped else []
        return Display(title="Risk", verdict=self._verdict, sections=parts, confidential=RISK)

    def __str__(self) -> str:
        lines = self._verdict
        for about, title in TITLES.items():
            own = self.about(about)
            if not own:
                continue
            lines += ["", f"{title}:"]
            width = max(len(one.name) for one in own)
            for one in own:
                scenario = f" [{one.scenario}]" if len(self.scenarios) > 1 else ""
                value = f"{100 * one.found.value:5.1f} %"
                lines.append(f"  {one.name:<{width}}  {value}, {one.found.beside()}{scenario}")
        if self.skipped:
            lines += ["", "Not tried:"]
            lines += [f"  {name}: {why}" for name, why in self.skipped.items()]
        return "\n".join(lines)

    __repr__ = __str__
