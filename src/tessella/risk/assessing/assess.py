"""`assess`: run the attacks that fit a masked table, and report what the worst of them finds.

What an assessment found: every attack, the worst of them, and each record's own risk.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._parameters import EFFORT, NONE, SEED, Number, Whole, parameters
from ..._types import Floats, Name, Progress
from ...exceptions import BadOptionError, TessellaError
from ...frame import View
from ...schema import Schema
from ..aligned import AlignedTables, align_tables, as_list
from ..estimate import Estimate
from .attacks import Attack, Case, attacks_of, find_attacks

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Assessment", "Tried", "assess"]


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One attack that was tried.

    Attributes
    ----------
    name : str
        The attack.
    about : {"identity", "attribute", "table"}
        What it is about.
    scenario : str
        What the intruder knows.
    found : Estimate
        What came of it.
    seconds : float
        How long it took.
    """

    name: str
    about: str
    scenario: str
    found: Estimate
    seconds: float

    def __str__(self) -> str:
        return f"{self.name}: {str(self.found).splitlines()[-1 if self.about == 'table' else 0]}"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Assessment:
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

        Confidential. A column for each attack on identity holds the chance that it is right about
        the record, missing where the record was not attacked; `chance` is the largest of them and
        `attack` names it; `original` is the record's own row in the original.
        """
        import pandas as pd

        columns: dict[str, Floats] = {}
        truth = np.full(self.n, -1, dtype=np.int64)
        for one in self.about("identity"):
            found: Any = one.found
            rows = np.asarray(getattr(found, "attacked", np.arange(self.n)))
            name = one.name if len(self.scenarios) < 2 else f"{one.name} ({one.scenario})"
            chance = np.full(self.n, np.nan)
            chance[rows] = found.chance
            columns[name] = chance
            if hasattr(found, "truth"):
                truth[rows] = found.truth
        frame = pd.DataFrame(columns)
        table = frame.to_numpy() if columns else np.full((self.n, 1), np.nan)
        known = ~np.isnan(table).all(axis=1)
        best = np.where(known, np.argmax(np.nan_to_num(table, nan=-1.0), axis=1), 0)
        chance = np.where(known, table[np.arange(self.n), best], np.nan)
        names = np.array([*columns] or [""], dtype=object)
        frame.insert(0, "original", truth)
        frame.insert(1, "chance", chance)
        frame.insert(2, "attack", np.where(np.nan_to_num(chance) > 0, names[best], ""))
        return frame

    def frame(self) -> pd.DataFrame:
        """One line for each attack."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "attack": one.name,
                    "about": one.about,
                    "scenario": one.scenario,
                    "value": one.found.value,
                    "low": one.found.low,
                    "high": one.found.high,
                    "baseline": one.found.baseline,
                    "records": one.found.n,
                    "seconds": one.seconds,
                    "how": one.found.attack,
                }
                for one in self.tried
            ]
        )

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
                    "attack": one.name,
                    "about": one.about,
                    "scenario": one.scenario,
                    "value": one.found.value,
                    "low": one.found.low,
                    "high": one.found.high,
                    "baseline": one.found.baseline,
                    "records": one.found.n,
                    "seconds": round(one.seconds, 3),
                    "how": one.found.attack,
                    "assumptions": list(one.found.assumptions),
                    "says": str(one.found),
                }
                for one in self.tried
            ],
            "skipped": dict(self.skipped),
        }

    def __str__(self) -> str:
        worst = self.worst
        lines = [f"{len(self.tried)} attacks on {self.n:,} records in {self.seconds:.1f} s."]
        if worst is not None:
            lines.append(f"The worst, {worst.name}: {str(worst.found).splitlines()[0]}")
        else:
            lines.append("No attack on who is who was tried: that risk is not known.")
        titles = {
            "identity": "Who is who (share of records found):",
            "attribute": "What is true of somebody (share of right statements):",
            "table": "What the table shows by itself:",
        }
        for about, title in titles.items():
            own = self.about(about)
            if not own:
                continue
            lines += ["", title]
            width = max(len(one.name) for one in own)
            for one in own:
                scenario = f" [{one.scenario}]" if len(self.scenarios) > 1 else ""
                lines.append(
                    f"  {one.name:<{width}}  {100 * one.found.value:5.1f} %, by guessing "
                    f"{100 * one.found.baseline:.2g} %{scenario}"
                )
        if self.skipped:
            lines += ["", "Not tried:"]
            lines += [f"  {name}: {why}" for name, why in self.skipped.items()]
        return "\n".join(lines)

    __repr__ = __str__


@parameters(
    {"knowledge": "known"},
    effort=[EFFORT],
    sample=[Whole(1), NONE],
    time_limit=[Number(above=0), NONE],
    random_state=[SEED],
)
def assess(
    original: Any,
    masked: Any,
    *,
    known: Sequence[Name] | Mapping[str, Sequence[Name]] | Name | None = None,
    method: Any = None,
    confidential: Sequence[Name] | Name | None = None,
    schema: Schema | None = None,
    id: Name | None = None,
    weights: Any = None,
    household: Any = None,
    effort: str = "standard",
    attacks: Iterable[str | Attack] | None = None,
    sample: int | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
    random_state: int | None = None,
) -> Assessment:
    """Attack a masked table in every way that fits, and report what the worst attack finds.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The file that the intruder has (the worst case: all of the original), and the masked one.
        Row i belongs to row i unless `id` is given.
    known : sequence of names, or mapping of scenario to names, optional
        The variables that he knows; several scenarios are tried one after the other. By default
        one: all variables that both tables have.
    method : masker or mapping, optional
        How the table was masked, if that is published or may be guessed: see
        `tessella.risk.attack`.
    confidential : sequence of names, optional
        Variables that he wants to know of a person; otherwise the schema's.
    schema : Schema, optional
        Kinds, roles and missing codes.
    id : name, optional
        A column of both tables that says which records belong together.
    weights, household : name or array, optional
        Of a sample, for the risk with respect to the population.
    effort : {"quick", "standard", "thorough"}
        Which attacks are tried, and how hard.
    attacks : list of names, optional
        Only these; see `tessella.risk.ATTACKS`.
    sample : int, optional
        Attack about so many records only, drawn from strata, and give intervals. Large tables
        are sampled for the attacks that compare all pairs, also without being asked.
    time_limit : float, optional
        Seconds after which no further attack is begun; those left out are named.
    progress : callable, optional
        Called with the number of attacks done, their number, and the name of the next.
    random_state : int, optional
        Seed of draws and searches.

    Returns
    -------
    Assessment
        With `worst`, `tried`, `skipped` and `records`.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.masking import RankSwapping
    >>> from tessella.risk import assess
    >>> original = np.random.default_rng(0).normal(size=(200, 4))
    >>> masker = RankSwapping(percent=10, random_state=0)
    >>> found = assess(original, masker.fit_transform(original), method=masker, effort="quick")
    >>> found.worst.name
    'transparency'
    >>> bool(found.worst.found.value > 1.5 * found["euclidean"].value)
    True
    """
    began = perf_counter()
    included = attacks_of(effort)
    chosen = included if attacks is None else find_attacks(attacks)
    original, masked = View.of(original, schema), View.of(masked, schema)
    scenarios = _scenarios(original, masked, known, id, schema)
    case = Case(
        original=original, masked=masked, known=(), schema=schema, id=id, method=method,
        confidential=_confidential(masked, confidential, schema), weights=weights,
        household=household, effort=effort, seed=random_state, sample=sample,
    )  # fmt: skip
    tried: list[Tried] = []
    skipped: dict[str, str] = {}
    todo = [(name, attack) for name in scenarios for attack in chosen]
    cases = {
        name: replace(case, known=tables.columns, _kept={"tables": tables})
        for name, tables in scenarios.items()
    }
    for done, (scenario, attack) in enumerate(todo):
        label = attack.name if len(scenarios) == 1 else f"{attack.name} ({scenario})"
        if progress is not None:
            progress(done, len(todo), label)
        spent = perf_counter() - began
        if time_limit is not None and spent > time_limit:
            skipped[label] = f"the time limit of {time_limit:g} s was reached"
            continue
        own = cases[scenario]
        if why := attack.skip_reason(own):
            skipped[label] = why
            continue
        left = None if time_limit is None else max(time_limit - spent, 0.1)
        start = perf_counter()
        try:
            found = attack.run(replace(own, seconds=left))
        except TessellaError as error:
            skipped[label] = str(error)
            continue
        tried.append(
            Tried(
                name=attack.name, about=attack.about, scenario=scenario, found=found,
                seconds=perf_counter() - start,
            )
        )  # fmt: skip
    if progress is not None:
        progress(len(todo), len(todo), "done")
    return Assessment(
        tried=tuple(tried),
        skipped=skipped,
        n=masked.n_rows,
        seconds=perf_counter() - began,
        scenarios={name: tuple(map(str, one.columns)) for name, one in scenarios.items()},
    )


def _scenarios(
    original: View, masked: View, known: Any, id: Name | None, schema: Schema | None
) -> dict[str, AlignedTables]:
    """Read the tables in what the intruder knows, one scenario after the other."""
    given = known if isinstance(known, Mapping) else {"": known}
    if not given:
        raise BadOptionError("known", known, "at least one scenario, or None")
    found: dict[str, AlignedTables] = {}
    for name, columns in given.items():
        tables = align_tables(original, masked, known=columns, id=id, schema=schema)
        if str(name) in found:
            raise BadOptionError("known", name, "another name for each scenario")
        found[str(name)] = tables
    if not isinstance(known, Mapping):
        (tables,) = found.values()
        return {"all variables" if known is None else f"{len(tables.columns)} variables": tables}
    return found


def _confidential(view: View, given: Any, schema: Schema | None) -> tuple[Name, ...]:
    if given is None:
        return () if schema is None else tuple(schema.names("confidential"))
    names = as_list(given)
    for name in names:
        view.table.place(name, who="confidential=")
    return names
