"""`assess`: run the attacks that fit a masked table, and report what the worst of them finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from ..._parameters import EFFORT, NONE, SEED, Number, Whole, parameters
from ..._types import Name
from ...exceptions import BadOptionError, TessellaError
from ...frame import View
from ...schema import Schema
from ..aligned import AlignedTables, align_tables, as_list
from .attacks import Attack, Case, attacks_of, find_attacks
from .result import Assessment, Tried

__all__ = ["assess"]

Progress = Callable[[int, int, str], None]


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
