"""The registry of attacks: what `assess`, `explore` and `publish` try, the cheap ones first.

An attack takes a `Case` and gives an `Estimate`; it declares which cases it skips, and from which
effort on it is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._types import Name
from ...exceptions import BadOptionError, UnknownOptionError
from ...frame import View
from ..estimate import Estimate
from .case import Case

__all__ = ["ATTACKS", "EFFORTS", "Attack", "Case", "attacks_of", "find_attacks"]


EFFORTS = ("quick", "standard", "thorough")
ALL_AT_ONCE = 5000  # records that are linked one to one
CERTIFIED = 1000  # records whose optimum is worth proving
FULL_SCAN = {"quick": 2e8, "standard": 1e9, "thorough": 1e10}  # pairs that a scan looks at
LEARN_FROM = {"quick": 300, "standard": 1000, "thorough": 2000}  # records
PREDICTED = 20_000  # records of a table from which a confidential variable is predicted
MOST_KEYS = 12  # columns among which special uniques are looked for
WIDTH = 0.01  # of an interval by rank, to each side
MANY = 200_000  # records from which on quick effort learns no distance


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One way to attack.

    Attributes
    ----------
    name : str
        As `attacks=` names it. A store of `tessella.explore` finds results by it: an attack that
        was changed needs another name.
    about : {"identity", "attribute", "table"}
        Whether it finds out who is who, what is true of somebody, or what the table shows.
    effort : {"quick", "standard", "thorough"}
        From when on it is tried without being asked for.
    run : callable
        From a `Case` to an `Estimate`.
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


def _link(distance: str) -> Callable[[Case], Estimate]:
    def run(case: Case) -> Estimate:
        from ..linkage import link

        tables = case.tables if distance == "gower" else case.plain_tables
        draw = case.draw(FULL_SCAN[case.effort] if distance == "gower" else 1e12)
        found = link(tables, distance=distance, records=None if draw is None else draw.records)
        return found if draw is None else draw.estimate(found, found.chance)

    return run


def _one_to_one(case: Case) -> Estimate:
    from ..one_to_one import link_one_to_one

    return link_one_to_one(case.plain_tables)


def _probabilistic(case: Case) -> Estimate:
    from ..probabilistic import link_probabilistic

    return link_probabilistic(case.tables, known=case.known[:16])


def _learn(family: str) -> Callable[[Case], Estimate]:
    def run(case: Case) -> Estimate:
        from ..learned.learning import learn

        return learn(
            case.plain_tables, None, family, effort=case.effort,
            max_records=LEARN_FROM[case.effort], held_out=case.held_out and case.effort != "quick",
            random_state=case.seed,
        )  # fmt: skip

    return run


def _certify(case: Case) -> Estimate:
    from ..learned.certificate import certify

    limit = 60.0 if case.seconds is None else case.seconds
    return certify(case.plain_tables, time_limit=limit, random_state=case.seed)


def _transparency(case: Case) -> Estimate:
    from ..transparency.dispatch import attack

    options: dict[str, Any] = {}
    most = case.sample or {"quick": 5000, "standard": 20_000, "thorough": 100_000}[case.effort]
    if len(case.tables.A) > most:
        options = {"sample": most, "random_state": case.seed}
    changed = _changed_otherwise(case)
    known = [name for name in case.known if name not in changed]
    found = attack(case.original, case.masked, case.method, known=known, id=case.id, **options)
    if not changed:
        return found
    named = ", ".join(map(str, changed))
    note = f"not used, because this method did not mask them and they were changed: {named}"
    return replace(found, assumptions=(*found.assumptions, note))


def _changed_otherwise(case: Case) -> list[Name]:
    """List known columns that differ though the method did not mask them: another one did.

    The attack takes what the method did not mask for released as it is, and would refuse the whole
    table for a column that was, for example, drawn anew by PRAM.
    """
    from ..transparency.dispatch import masked_columns

    tables, own = case.tables, masked_columns(case.method, case.original, case.id)
    pair = tables.pair
    assert pair is not None
    return [name for name in tables.columns if name not in own and bool(pair.changed(name).any())]


def _no_transparency(case: Case) -> str:
    from ..transparency.dispatch import knows

    if case.method is None:
        return "the method is not told: give method="
    if not isinstance(case.method, Mapping) and not knows(case.method):
        return f"there is no attack that knows {type(case.method).__name__}"
    if getattr(case.method, "rules", None) is not None:
        return "what was masked has been moved back to its rules"
    return ""


def _interval(case: Case) -> Estimate:
    from ..attributes.intervals import interval_disclosure

    draw = case.draw(1e12)
    found = interval_disclosure(
        case.tables, known=_in_order(case), width=WIDTH, widths=(WIDTH,), by="original rank",
        records=None if draw is None else draw.records,
    )  # fmt: skip
    return found if draw is None else draw.estimate(found, found.chance)


def _in_order(case: Case) -> list[Name]:
    """List the known variables that have an order and a value; cells may be missing."""
    tables = case.tables
    there = ~np.isnan(tables.B[tables.truth]).all(axis=0)
    return [name for name, fits in zip(tables.columns, there & ~tables.nominal) if fits]


def _needs_order(case: Case) -> str:
    return "" if _in_order(case) else "no known variable has an order"


def _predict(case: Case) -> Estimate:
    """Predict each confidential variable; the one that is disclosed most counts."""
    from ..attributes.prediction import predict_confidential

    found = [
        predict_confidential(
            case.original, case.masked, target, known=[n for n in case.keys if n != target],
            id=case.id, schema=case.schema, random_state=case.seed,
        )
        for target in case.confidential
    ]  # fmt: skip
    return max(found, key=lambda one: one.disclosed)


def _no_prediction(case: Case) -> str:
    if not case.confidential:
        return "no variable is called confidential: give confidential="
    if not [name for name in case.keys if name not in case.confidential]:
        return "the intruder knows nothing to predict from"
    if len(case.tables.A) > PREDICTED:
        return f"the table has more than {PREDICTED:,} records"
    return ""


def _homogeneity(case: Case) -> Estimate:
    from ..attributes.homogeneity import l_diversity

    return l_diversity(case.masked, list(case.confidential), known=case.keys, schema=case.schema)


def _no_homogeneity(case: Case) -> str:
    if not case.confidential:
        return "no variable is called confidential: give confidential="
    if not set(case.keys) - set(case.confidential):
        return "the intruder knows nothing but what is confidential"
    if changed := [name for name in case.confidential if not _released_as_it_is(case, name)]:
        return f"{changed[0]!r} is masked, too: what equal records share need not be true"
    return ""


def _released_as_it_is(case: Case, name: Name) -> bool:
    """Return whether a column was not masked."""
    pair = case.tables.pair
    assert pair is not None
    return not bool(pair.changed(name).any())


def _k_anonymity(case: Case) -> Estimate:
    from ..anonymity.keys import k_anonymity

    return k_anonymity(case.masked, known=case.keys, schema=case.schema)


def _individual(case: Case) -> Estimate:
    from ..anonymity.individual import individual_risk

    return individual_risk(
        case.masked, known=case.keys, weights=case.weights, household=case.household,
        schema=case.schema,
    )  # fmt: skip


def _no_weights(case: Case) -> str:
    weights = View.of(case.masked, case.schema).weights() if case.weights is None else True
    return "there are no sampling weights" if weights is None else ""


def _suda(case: Case) -> Estimate:
    from ..anonymity.suda import suda

    return suda(case.masked, known=case.keys, schema=case.schema)


def _few_values(case: Case) -> str:
    if len(case.keys) > MOST_KEYS:
        return f"there are more than {MOST_KEYS} keys"
    view = View.of(case.masked, case.schema)
    many = [n for n in case.keys if len(np.unique(view.codes(n))) > 0.2 * view.n_rows]
    return f"nearly every record has its own value of {many[0]!r}" if many else ""


def _needs_numbers(case: Case) -> str:
    return "" if case.plain else "no known variable is a number without missing values"


def _needs_two(case: Case) -> str:
    return "" if case.varied else "fewer than two known variables are plain numbers"


def _needs_learnable(case: Case) -> str:
    if case.effort == "quick" and len(case.tables.B) > MANY:
        return f"more than {MANY:,} records: a distance is learned under standard effort"
    return _needs_two(case)


def _needs_two_few(case: Case) -> str:
    if len(case.tables.A) > ALL_AT_ONCE:
        return f"more than {ALL_AT_ONCE:,} records"
    return _needs_numbers(case)


def _needs_certifiable(case: Case) -> str:
    if len(case.tables.B) > CERTIFIED:
        return f"more than {CERTIFIED:,} records"
    return _needs_two(case)


def _needs_mixed(case: Case) -> str:
    return "" if case.mixed else "all known variables are plain numbers"


def _needs_agreement(case: Case) -> str:
    if len(case.tables.A) * len(case.tables.B) > FULL_SCAN["standard"]:
        return "too many pairs"
    return _needs_mixed(case)


def _choquet_size(case: Case) -> str:
    if len(case.plain) > 13:
        return "more than 13 plain numbers"
    return _needs_two(case)


def _maxitive_size(case: Case) -> str:
    if len(case.plain) > 30:
        return "more than 30 plain numbers"
    return _needs_two(case)


def _always(case: Case) -> str:  # noqa: ARG001
    return ""


def _entry(
    name: str,
    about: str,
    effort: str,
    run: Callable[[Case], Estimate],
    skip_reason: Callable[[Case], str],
    description: str,
    *,
    expensive: bool = False,
) -> Attack:
    return Attack(
        name=name, about=about, effort=effort, run=run, skip_reason=skip_reason,
        description=description, expensive=expensive,
    )  # fmt: skip


# In the order in which they are tried, and in which ties for the worst are named.
ATTACKS: dict[str, Attack] = {
    attack.name: attack
    for attack in (
        _entry("k-anonymity", "table", "quick", _k_anonymity, _always,
               "counts who shares the released values"),
        _entry("euclidean", "identity", "quick", _link("euclidean"), _needs_numbers,
               "links to the nearest record, Euclidean distance"),
        _entry("mahalanobis", "identity", "quick", _link("mahalanobis"), _needs_two,
               "links to the nearest record, Mahalanobis distance"),
        _entry("manhattan", "identity", "standard", _link("manhattan"), _needs_two,
               "links to the nearest record, Manhattan distance"),
        _entry("gower", "identity", "quick", _link("gower"), _needs_mixed,
               "links to the nearest record, Gower's distance"),
        _entry("transparency", "identity", "quick", _transparency, _no_transparency,
               "knows the method and its parameters, and works out who it can be"),
        _entry("interval", "attribute", "quick", _interval, _needs_order,
               "takes the released number for the original, within 1 % of the originals' ranks"),
        _entry("homogeneity", "attribute", "quick", _homogeneity, _no_homogeneity,
               "takes the most frequent confidential value of equal records"),
        _entry("individual risk", "table", "quick", _individual, _no_weights,
               "looks for a record's person in the population"),
        _entry("learned", "identity", "quick", _learn("weighted mean"), _needs_learnable,
               "links by the weighted distance that links most records", expensive=True),
        _entry("one-to-one", "identity", "standard", _one_to_one, _needs_two_few,
               "links all records at once, each original to one"),
        _entry("probabilistic", "identity", "standard", _probabilistic, _needs_agreement,
               "links by agreement of variables, weighed by EM"),
        _entry("prediction", "attribute", "standard", _predict, _no_prediction,
               "learns from the release to predict what is confidential"),
        _entry("special uniques", "table", "standard", _suda, _few_values,
               "looks for records that few variables single out"),
        _entry("learned bilinear", "identity", "thorough", _learn("bilinear"), _needs_two,
               "links by the quadratic form that links most records", expensive=True),
        _entry("learned choquet", "identity", "thorough", _learn("choquet"), _choquet_size,
               "links by the Choquet integral that links most records", expensive=True),
        _entry("learned maxitive", "identity", "thorough", _learn("maxitive"), _maxitive_size,
               "links by the best pairs of variables, found by learning", expensive=True),
        _entry("certified", "identity", "thorough", _certify, _needs_certifiable,
               "links by the best weighted distance, proved to be the best", expensive=True),
    )
}  # fmt: skip


def attacks_of(effort: str) -> tuple[Attack, ...]:
    """Return the attacks that an effort includes."""
    if effort not in EFFORTS:
        raise UnknownOptionError("effort", effort, EFFORTS)
    most = EFFORTS.index(effort)
    return tuple(a for a in ATTACKS.values() if EFFORTS.index(a.effort) <= most)


def find_attacks(
    given: Iterable[Any], registry: Mapping[str, Attack] = ATTACKS
) -> tuple[Attack, ...]:
    """Return attacks by their names in a registry, or as they are."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadOptionError("attacks", given, "a list of names, or of Attack")
    found = []
    for one in given:
        if isinstance(one, Attack):
            found.append(one)
        elif isinstance(one, str) and one in registry:
            found.append(registry[one])
        else:
            raise UnknownOptionError("attack", one, registry)
    names = [attack.name for attack in found]
    if not names or len(set(names)) < len(names):
        raise BadOptionError("attacks", names, "at least one attack, and each name once")
    return tuple(found)
