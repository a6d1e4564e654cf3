"""The attacks, the cheap ones first, and `assess`, which tries those that fit a masked table.

An attack takes a `Case` and gives an `Estimate`; it declares which cases it skips, and from which
effort on it is tried. `explore` and `publish` take attacks from the same registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import (
    _clock,
    risk,  # whose names are loaded when they are first used
)
from .._parameters import EFFORT, NONE, SEED, Number, Whole, parameters
from .._progress import shows_progress
from .._types import Name, Progress
from ..exceptions import BadOptionError, TessellaError, UnknownOptionError
from ..frame import Pair, View
from ..schema import Schema
from .aligned import AlignedTables, align_tables, as_list
from .assessment import Assessment, Attack, Case, Tried
from .estimate import Estimate
from .exposure import DOMINANCE, INDIVIDUAL, K_MAP, ORDER, PRESENCE, WITH_POPULATION

EFFORTS = ("quick", "standard", "thorough")
ALL_AT_ONCE = 5000  # records that are linked one to one
CERTIFIED = 1000  # records whose optimum is worth proving
FULL_SCAN = 1e9  # pairs up to which records are linked by agreement patterns
ALL_LINKED = {"quick": 1e10, "standard": 1e11, "thorough": 1e12}  # pairs in a tree without a sample
LEARN_FROM = {"quick": 300, "standard": 1000, "thorough": 2000}  # records
PREDICTED = 20_000  # records of a table from which a confidential variable is predicted
MOST_KEYS = 12  # columns among which special uniques are looked for
WIDTH = 0.01  # of an interval by rank, to each side
MANY = 200_000  # records from which on quick effort learns no distance


def _link(distance: str) -> Callable[[Case], Estimate]:
    def run(case: Case) -> Estimate:
        tables = case.tables if distance == "gower" else case.plain_tables
        draw = case.draw(ALL_LINKED[case.effort] if distance == "gower" else 1e12)
        some = None if draw is None else draw.records
        found = risk.link(tables, distance=distance, standardise=case.standardise, records=some)
        return found if draw is None else draw.estimate(found, found.chance)

    return run


def _learn(family: str, most_mixed: int = 0) -> Callable[[Case], Estimate]:
    def run(case: Case) -> Estimate:
        options: dict[str, Any] = {
            "effort": case.effort, "max_records": LEARN_FROM[case.effort],
            "held_out": case.held_out and case.effort != "quick", "random_state": case.seed,
            "standardise": case.standardise,
        }  # fmt: skip
        found = (risk.learn(one, None, family, **options) for one in case.learnable(most_mixed))
        return max(found, key=lambda one: one.value)

    return run


def _certify(case: Case) -> Estimate:
    limit = 60.0 if case.seconds is None else case.seconds
    options: dict[str, Any] = {"time_limit": limit, "random_state": case.seed}
    found = (risk.certify(tables, **options) for tables in case.learnable())
    return max(found, key=lambda one: one.value)


def _transparency(case: Case) -> Estimate:
    from .transparency.dispatch import masked_columns

    options: dict[str, Any] = {}
    most = case.sample or {"quick": 5000, "standard": 20_000, "thorough": 100_000}[case.effort]
    if len(case.tables.A) > most:
        options = {"sample": most, "random_state": case.seed}
    # The attack takes what it is not told was masked for released as it is, and would refuse the
    # whole table for a column that was, for example, drawn anew by PRAM.
    own = masked_columns(case.method, case.original, case.id, case.schema)
    changed = _changed(case, [name for name in case.tables.columns if name not in own])
    known = [name for name in case.known if name not in changed]
    if case.schema is not None:
        options["schema"] = case.schema
    found = risk.attack(case.original, case.masked, case.method, known=known, id=case.id, **options)
    if not changed:
        return found
    named = ", ".join(map(str, changed))
    note = f"masked, and not used, because this attack can tell nothing by them: {named}"
    return replace(found, assumptions=(*found.assumptions, note))


def _changed(case: Case, names: Iterable[Name]) -> list[Name]:
    """List the columns that are not released as they are."""
    pair = case.tables.pair
    assert pair is not None
    return [name for name in names if bool(pair.changed(name).any())]


def _no_transparency(case: Case) -> str:
    from .transparency.dispatch import knows

    if case.method is None:
        return "the method is not told: give method="
    if not isinstance(case.method, Mapping) and not knows(case.method):
        return f"there is no attack that knows {type(case.method).__name__}"
    if getattr(case.method, "rules", None) is not None:
        return "what was masked has been moved back to its rules"
    return ""


def _interval(case: Case) -> Estimate:
    draw = case.draw(1e12)
    found = risk.interval_disclosure(
        case.tables, known=_in_order(case), width=WIDTH, widths=(WIDTH,), by="original rank",
        records=None if draw is None else draw.records,
    )  # fmt: skip
    return found if draw is None else draw.estimate(found, found.chance)


def _in_order(case: Case) -> list[Name]:
    """List the known variables that have an order and a value; cells may be missing."""
    tables = case.tables
    there = ~np.isnan(tables.B[tables.truth]).all(axis=0)
    return [name for name, fits in zip(tables.columns, there & ~tables.nominal) if fits]


def _predict(case: Case) -> Estimate:
    """Predict each confidential variable; the one with the largest excess counts."""
    found = [
        risk.predict_confidential(
            case.original, case.masked, target, known=[n for n in case.keys if n != target],
            id=case.id, schema=case.schema, random_state=case.seed,
        )
        for target in case.confidential
    ]  # fmt: skip
    return max(found, key=lambda one: one.excess or 0.0)


def _no_homogeneity(case: Case) -> str:
    if not case.confidential:
        return "no variable is called confidential: give confidential="
    if not set(case.keys) - set(case.confidential):
        return "the intruder knows nothing but what is confidential"
    if changed := _changed(case, case.confidential):
        return f"{changed[0]!r} is masked, too: what equal records share need not be true"
    return ""


def _few_values(case: Case) -> str:
    if len(case.keys) > MOST_KEYS:
        return f"there are more than {MOST_KEYS} keys"
    view = View.of(case.masked, case.schema)
    many = [n for n in case.keys if len(np.unique(view.codes(n))) > 0.2 * view.n_rows]
    return f"nearly every record has its own value of {many[0]!r}" if many else ""


# When an attack skips a case, and why.
REASONS: dict[str, tuple[Callable[[Case], bool], str]] = {
    "no number": (lambda case: not case.plain,
                  "no known variable is a number without missing values"),
    "single": (lambda case: len(case.plain) < 2,
               "fewer than two known variables are plain numbers"),
    "one": (lambda case: not case.learnable(), "fewer than two known variables"),
    "one or above 13": (lambda case: not case.learnable(13),
                        "fewer than two plain numbers, and not 2 to 13 known variables"),
    "above 13": (lambda case: len(case.plain) > 13, "more than 13 plain numbers"),
    "above 30": (lambda case: len(case.plain) > 30, "more than 30 plain numbers"),
    "only numbers": (lambda case: not case.mixed, "all known variables are plain numbers"),
    "no order": (lambda case: not _in_order(case), "no known variable has an order"),
    "many": (lambda case: case.effort == "quick" and len(case.tables.B) > MANY,
             f"more than {MANY:,} records: a distance is learned under standard effort"),
    "large": (lambda case: len(case.tables.A) > ALL_AT_ONCE,
              f"more than {ALL_AT_ONCE:,} records"),
    "not certified": (lambda case: len(case.tables.B) > CERTIFIED,
                      f"more than {CERTIFIED:,} records"),
    "pairs": (lambda case: len(case.tables.A) * len(case.tables.B) > FULL_SCAN,
              "too many pairs"),
    "no target": (lambda case: not case.confidential,
                  "no variable is called confidential: give confidential="),
    "no key": (lambda case: not set(case.keys) - set(case.confidential),
               "the intruder knows nothing to predict from"),
    "not predicted": (lambda case: len(case.tables.A) > PREDICTED,
                      f"the table has more than {PREDICTED:,} records"),
}  # fmt: skip


def _unless(*names: str) -> Callable[[Case], str]:
    """Return the first of some reasons that holds for a case; an empty text if none does."""
    reasons = [REASONS[name] for name in names]
    return lambda case: next((why for holds, why in reasons if holds(case)), "")


# In the order in which they are tried, and in which ties for the worst are named.
ATTACKS: dict[str, Attack] = {
    attack.name: attack
    for attack in (
        Attack("k-anonymity", "table",
               lambda case: risk.k_anonymity(
                   case.masked, known=case.keys, schema=case.schema, unit=case.unit),
               description="counts who shares the released values"),
        Attack("euclidean", "identity", _link("euclidean"), "quick", _unless("no number"),
               "links to the nearest record, Euclidean distance"),
        Attack("mahalanobis", "identity", _link("mahalanobis"), "quick", _unless("single"),
               "links to the nearest record, Mahalanobis distance"),
        Attack("manhattan", "identity", _link("manhattan"), "standard", _unless("single"),
               "links to the nearest record, Manhattan distance"),
        Attack("gower", "identity", _link("gower"), "quick", _unless("only numbers"),
               "links to the nearest record, Gower's distance"),
        Attack("transparency", "identity", _transparency, "quick", _no_transparency,
               "knows the method and its parameters, and works out who it can be"),
        Attack("interval", "attribute", _interval, "quick", _unless("no order"),
               "takes the released number for the original, within 1 % of the originals' ranks"),
        DOMINANCE,
        ORDER,
        K_MAP,
        PRESENCE,
        Attack("homogeneity", "attribute",
               lambda case: risk.l_diversity(
                   case.masked, list(case.confidential), known=case.keys, schema=case.schema),
               "quick", _no_homogeneity,
               "takes the most frequent confidential value of equal records"),
        INDIVIDUAL,
        Attack("learned", "identity", _learn("weighted mean", 1000), "quick",
               _unless("many", "one"),
               "links by the weighted distance that links most records", expensive=True),
        Attack("one-to-one", "identity",
               lambda case: risk.link_one_to_one(case.plain_tables), "standard",
               _unless("large", "no number"),
               "links all records at once, each original to one"),
        Attack("probabilistic", "identity",
               lambda case: risk.link_probabilistic(case.tables, known=case.known[:16]),
               "standard", _unless("pairs", "only numbers"),
               "links by agreement of variables, weighed by EM"),
        Attack("prediction", "attribute", _predict, "standard",
               _unless("no target", "no key", "not predicted"),
               "learns from the release to predict what is confidential"),
        Attack("special uniques", "table",
               lambda case: risk.suda(case.masked, known=case.keys, schema=case.schema),
               "standard", _few_values,
               "looks for records that few variables single out"),
        Attack("learned bilinear", "identity", _learn("bilinear"), "thorough", _unless("single"),
               "links by the quadratic form that links most records", expensive=True),
        Attack("learned choquet", "identity", _learn("choquet", 13), "thorough",
               _unless("above 13", "one or above 13"),
               "links by the Choquet integral that links most records", expensive=True),
        Attack("learned maxitive", "identity", _learn("maxitive"), "thorough",
               _unless("above 30", "single"),
               "links by the best pairs of variables, found by learning", expensive=True),
        Attack("certified", "identity", _certify, "thorough", _unless("not certified", "one"),
               "links by the best weighted distance, proved to be the best", expensive=True),
    )
}  # fmt: skip


def find_attacks(given: Iterable[Any], known: Mapping[str, Attack] = ATTACKS) -> tuple[Attack, ...]:
    """Return attacks by their names in a registry, or as they are."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadOptionError("attacks", given, "a list of names, or of Attack")
    found = []
    for one in given:
        if isinstance(one, Attack):
            found.append(one)
        elif isinstance(one, str) and one in known:
            found.append(known[one])
        else:
            raise UnknownOptionError("attack", one, known)
    names = [attack.name for attack in found]
    if not names or len(set(names)) < len(names):
        raise BadOptionError("attacks", names, "at least one attack, and each name once")
    return tuple(found)


@shows_progress
@parameters(
    {"knowledge": "known", "household": "unit"},
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
    unit: Any = None,
    order: Any = None,
    population: Any = None,
    population_counts: Name | None = None,
    effort: str = "standard",
    attacks: Iterable[str | Attack] | None = None,
    sample: int | None = None,
    standardise: str = "each",
    time_limit: float | None = None,
    progress: Progress | bool | None = None,
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
    weights : name or array, optional
        Of a sample, for the risk with respect to the population.
    unit : name or array, optional
        The household, firm or patient of each record, which k counts; otherwise the schema's.
    order : array of shape (n,), optional
        The rows of the masked table in the order in which they are released; the attack "order"
        needs it.
    population : table, optional
        All who may be in the release, with the keys: "k-map" and "delta-presence" need it.
    population_counts : name, optional
        The column of the population that counts persons, where a line stands for several.
    effort : {"quick", "standard", "thorough"}
        Which attacks are tried, and how hard.
    attacks : list of names, optional
        Only these; see `tessella.risk.ATTACKS`.
    sample : int, optional
        Attack about so many records only, drawn from strata, and give intervals. Large tables
        are sampled for the attacks that compare all pairs, also without being asked.
    standardise : {"each", "original", "none"}
        What nearest and learned distances standardise by: see `tessella.risk.link`.
    time_limit : float, optional
        Seconds after which no further attack is begun; those left out are named.
    progress : bool or callable, optional
        True shows a bar, in a notebook too. A callable is called with the number of attacks done,
        their number, and the name of the next.
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
    began = _clock.now()
    told = progress if callable(progress) else lambda *_: None
    if attacks is None:
        efforts = EFFORTS[: EFFORTS.index(effort) + 1]
        efforts += () if population is None else (WITH_POPULATION,)
        chosen = tuple(one for one in ATTACKS.values() if one.effort in efforts)
    else:
        chosen = find_attacks(attacks)
    original, masked = View.of(original, schema), View.of(masked, schema)
    if unit is None and masked.units is None and original.units is not None:
        masked = Pair(original, masked, schema, id).masked  # knows the units of the original
    scenarios = _scenarios(original, masked, known, id, schema)
    case = Case(
        original=original, masked=masked, known=(), schema=schema, id=id, method=method,
        confidential=_confidential(masked, confidential, schema), weights=weights,
        unit=unit, order=None if order is None else np.asarray(order, dtype=np.int64),
        effort=effort, seed=random_state, sample=sample, standardise=standardise,
        population=None if population is None else View.of(population, schema),
        population_counts=population_counts,
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
        told(done, len(todo), label)
        spent = _clock.now() - began
        if time_limit is not None and spent > time_limit:
            skipped[label] = f"the time limit of {time_limit:g} s was reached"
            continue
        own = cases[scenario]
        left = None if time_limit is None else max(time_limit - spent, 0.1)
        start = _clock.now()
        try:
            if why := attack.skip_reason(own):
                skipped[label] = why
                continue
            found = attack.run(replace(own, seconds=left))
        except TessellaError as error:
            skipped[label] = str(error)
            continue
        tried.append(
            Tried(
                name=attack.name, about=attack.about, scenario=scenario, found=found,
                seconds=_clock.now() - start,
            )
        )  # fmt: skip
    told(len(todo), len(todo), "done")
    return Assessment(
        tried=tuple(tried),
        skipped=skipped,
        n=masked.n_rows,
        seconds=_clock.now() - began,
        scenarios={name: tuple(map(str, one.columns)) for name, one in scenarios.items()},
    )


def _scenarios(
    original: View, masked: View, known: Any, id: Name | None, schema: Schema | None
) -> dict[str, AlignedTables]:
    """Read the tables in what the intruder knows, one scenario after the other."""
    if not isinstance(known, Mapping):
        tables = align_tables(original, masked, known=known, id=id, schema=schema)
        return {"all variables" if known is None else f"{len(tables.columns)} variables": tables}
    if not known:
        raise BadOptionError("known", known, "at least one scenario, or None")
    found: dict[str, AlignedTables] = {}
    for name, columns in known.items():
        if str(name) in found:
            raise BadOptionError("known", name, "another name for each scenario")
        found[str(name)] = align_tables(original, masked, known=columns, id=id, schema=schema)
    return found


def _confidential(view: View, given: Any, schema: Schema | None) -> tuple[Name, ...]:
    if given is None:
        return () if schema is None else tuple(schema.names("confidential"))
    names = as_list(given)
    for name in names:
        view.table.place(name, who="confidential=")
    return names
