"""`assess`: run the attacks that fit a masked table, and tell what the worst of them finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from time import perf_counter
from typing import Any

from ..._types import Name
from ...exceptions import BadOptionError, TessellaError
from ...frame import Table
from ...schema import Schema
from ..aligned import align_tables
from .attacks import Attack, Case, attacks_of, find_attacks
from .result import Assessment, Tried

__all__ = ["assess"]

Progress = Callable[[int, int, str], None]


def assess(
    original: Any,
    masked: Any,
    *,
    knowledge: Sequence[Name] | Mapping[str, Sequence[Name]] | Name | None = None,
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
    random_state: int = 0,
) -> Assessment:
    """Attack a masked table in every way that fits, and tell what the worst attack finds.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The file that the intruder has (the worst case: all of the original), and the masked one.
        Row i belongs to row i unless `id` is given.
    knowledge : sequence of names, or mapping of scenario to names, optional
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
    random_state : int
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
    _check(time_limit, sample, random_state)
    table = Table.read(masked)
    scenarios = _scenarios(original, masked, knowledge, id, schema)
    case = Case(
        original=original, masked=masked, known=(), schema=schema, id=id, method=method,
        confidential=_confidential(table, confidential, schema), weights=weights,
        household=household, effort=effort, seed=random_state, sample=sample,
    )  # fmt: skip
    tried: list[Tried] = []
    skipped: dict[str, str] = {}
    todo = [(name, columns, attack) for name, columns in scenarios.items() for attack in chosen]
    cases = {name: replace(case, known=columns, _kept={}) for name, columns in scenarios.items()}
    for done, (scenario, _, attack) in enumerate(todo):
        label = attack.name if len(scenarios) == 1 else f"{attack.name} ({scenario})"
        if progress is not None:
            progress(done, len(todo), label)
        spent = perf_counter() - began
        if time_limit is not None and spent > time_limit:
            skipped[label] = f"the time limit of {time_limit:g} s was reached"
            continue
        own = cases[scenario]
        if why := attack.unfit(own):
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
        n=table.n_rows,
        seconds=perf_counter() - began,
        scenarios={name: tuple(map(str, columns)) for name, columns in scenarios.items()},
    )


def _check(time_limit: Any, sample: Any, random_state: Any) -> None:
    real = isinstance(time_limit, Real) and not isinstance(time_limit, bool)
    if time_limit is not None and not (real and float(time_limit) > 0):
        raise BadOptionError("time_limit", time_limit, "a positive number of seconds, or None")
    for name, given, least in (("sample", sample, 1), ("random_state", random_state, 0)):
        if given is None and name == "sample":
            continue
        if isinstance(given, bool) or not isinstance(given, int) or given < least:
            raise BadOptionError(name, given, f"a whole number of at least {least}")


def _scenarios(
    original: Any, masked: Any, knowledge: Any, id: Name | None, schema: Schema | None
) -> dict[str, tuple[Name, ...]]:
    """Read what the intruder knows; the tables are read, too, so that all mistakes show here."""
    given = knowledge if isinstance(knowledge, Mapping) else {"knowing": knowledge}
    if not given:
        raise BadOptionError("knowledge", knowledge, "at least one scenario, or None")
    found = {}
    for name, columns in given.items():
        sides = align_tables(original, masked, known=columns, id=id, schema=schema)
        if str(name) in found:
            raise BadOptionError("knowledge", name, "another name for each scenario")
        found[str(name)] = sides.columns
    if not isinstance(knowledge, Mapping):
        (columns,) = found.values()
        everything = knowledge is None
        return {"all variables" if everything else f"{len(columns)} variables": columns}
    return found


def _confidential(table: Table, given: Any, schema: Schema | None) -> tuple[Name, ...]:
    if given is None:
        return () if schema is None else tuple(schema.names("confidential"))
    single = isinstance(given, str) or not hasattr(given, "__iter__")
    names: tuple[Name, ...] = (given,) if single else tuple(given)
    for name in names:
        table.place(name, who="confidential=")
    return names
