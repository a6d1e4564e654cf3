"""The attacks that an assessment tries: a registry, from the cheap to the dear.

An attack takes a `Case` and gives an `Estimate`. It says which cases it fits and from which effort
on it is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._types import Name
from ...exceptions import BadOptionError, UnknownOptionError
from ...frame import Table
from ..aligned import align_tables
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
MANY = 200_000  # records of which quick effort asks no more than it must


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
    unfit : callable
        Why it does not fit a case; an empty text if it does.
    says : str
        What the intruder does, in few words.
    dear : bool
        Takes long: an exploration tries it last, and not at all where others find everybody.
    """

    name: str
    about: str
    run: Callable[[Case], Estimate]
    effort: str = "quick"
    unfit: Callable[[Case], str] = lambda case: ""  # noqa: ARG005
    says: str = ""
    dear: bool = False


def _link(distance: str, **options: Any) -> Callable[[Case], Estimate]:
    def run(case: Case) -> Estimate:
        from ..linkage import link

        known = case.known if distance == "gower" else case.plain
        draw = case.draw(FULL_SCAN[case.effort] if distance == "gower" else 1e12)
        found = link(
            case.original, case.masked, distance=distance, known=known, id=case.id,
            schema=case.schema if distance == "gower" else None,
            records=None if draw is None else draw.records, **options,
        )  # fmt: skip
        return found if draw is None else draw.estimate(found, found.chance)

    return run


def _one_to_one(case: Case) -> Estimate:
    from ..one_to_one import link_one_to_one

    return link_one_to_one(case.original, case.masked, known=case.plain, id=case.id)


def _probabilistic(case: Case) -> Estimate:
    from ..probabilistic import link_probabilistic

    return link_probabilistic(
        case.original, case.masked, known=case.known[:16], id=case.id, schema=case.schema
    )


def _learn(family: str) -> Callable[[Case], Estimate]:
    def run(case: Case) -> Estimate:
        from ..learned.learning import learn

        return learn(
            case.original, case.masked, family, known=case.plain, id=case.id,
            effort={"quick": 1, "standard": 3, "thorough": 6}[case.effort],
            max_records=LEARN_FROM[case.effort], held_out=case.held_out and case.effort != "quick",
            random_state=case.seed,
        )  # fmt: skip

    return run


def _certify(case: Case) -> Estimate:
    from ..learned.certificate import certify

    limit = 60.0 if case.seconds is None else case.seconds
    return certify(
        case.original, case.masked, known=case.plain, id=case.id, time_limit=limit,
        random_state=case.seed,
    )  # fmt: skip


def _transparency(case: Case) -> Estimate:
    from ..transparency.dispatch import attack

    options: dict[str, Any] = {}
    size = len(case.sides.A)
    most = case.sample or {"quick": 5000, "standard": 20_000, "thorough": 100_000}[case.effort]
    if size > most:
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

    sides, own = case.sides, masked_columns(case.method, case.original, case.id)
    truth = sides.B[sides.truth]
    agree = (truth == sides.A) | (np.isnan(truth) & np.isnan(sides.A))
    return [
        name
        for j, name in enumerate(sides.columns)
        if name not in own and not bool(agree[:, j].all())
    ]


def _no_transparency(case: Case) -> str:
    from ..transparency.dispatch import knows

    if case.method is None:
        return "the method is not told: give method="
    if not isinstance(case.method, Mapping) and not knows(case.method):
        return f"there is no attack that knows {type(case.method).__name__}"
    if getattr(case.method, "rules", None) is not None:
        return "what was masked has been moved back to its rules"
    return ""


def _intervals(case: Case) -> Estimate:
    from ..attributes.intervals import interval_disclosure

    fewer: dict[str, Any] = {"widths": (WIDTH,)} if len(case.sides.A) > MANY else {}
    return interval_disclosure(
        case.original, case.masked, width=WIDTH, known=_in_order(case), id=case.id,
        schema=case.schema, **fewer,
    )  # fmt: skip


def _in_order(case: Case) -> list[Name]:
    """List the known variables that have an order and a value; cells may be missing."""
    sides = case.sides
    there = ~np.isnan(sides.B[sides.truth]).all(axis=0)
    fit = there & ~sides.nominal
    return [name for name, fits in zip(sides.columns, fit) if fits]


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
    if len(case.sides.A) > PREDICTED:
        return f"the table has more than {PREDICTED:,} records"
    return ""


def _homogeneity(case: Case) -> Estimate:
    from ..attributes.homogeneity import l_diversity

    return l_diversity(case.masked, list(case.confidential), keys=case.keys, schema=case.schema)


def _no_homogeneity(case: Case) -> str:
    if not case.confidential:
        return "no variable is called confidential: give confidential="
    if not set(case.keys) - set(case.confidential):
        return "the intruder knows nothing but what is confidential"
    if changed := [name for name in case.confidential if not _released_as_it_is(case, name)]:
        return f"{changed[0]!r} is masked, too: what equal records share need not be true"
    return ""


def _released_as_it_is(case: Case, name: Name) -> bool:
    """Say whether a column was not masked."""
    sides = align_tables(case.original, case.masked, known=[name], id=case.id, schema=case.schema)
    return bool(np.array_equal(sides.A[:, 0], sides.B[sides.truth, 0], equal_nan=True))


def _k_anonymity(case: Case) -> Estimate:
    from ..anonymity.classes import k_anonymity

    return k_anonymity(case.masked, keys=case.keys, schema=case.schema)


def _individual(case: Case) -> Estimate:
    from ..anonymity.individual import individual_risk

    return individual_risk(
        case.masked, keys=case.keys, weights=case.weights, household=case.household,
        schema=case.schema,
    )  # fmt: skip


def _no_weights(case: Case) -> str:
    weighed = case.schema is not None and case.schema.names("weight")
    return "" if case.weights is not None or weighed else "there are no sampling weights"


def _suda(case: Case) -> Estimate:
    from ..anonymity.suda import suda

    return suda(case.masked, keys=case.keys, schema=case.schema)


def _few_values(case: Case) -> str:
    if len(case.keys) > MOST_KEYS:
        return f"there are more than {MOST_KEYS} keys"
    table = Table.read(case.masked)
    many = [name for name in case.keys if len(table.labels(name)[1]) > 0.2 * table.n_rows]
    return f"nearly every record has its own value of {many[0]!r}" if many else ""


def _needs_numbers(case: Case) -> str:
    return "" if case.plain else "no known variable is a number without missing values"


def _needs_two(case: Case) -> str:
    return "" if case.varied else "fewer than two known variables are plain numbers"


def _needs_learnable(case: Case) -> str:
    if case.effort == "quick" and len(case.sides.B) > MANY:
        return f"more than {MANY:,} records: a distance is learned under standard effort"
    return _needs_two(case)


def _needs_two_few(case: Case) -> str:
    if len(case.sides.A) > ALL_AT_ONCE:
        return f"more than {ALL_AT_ONCE:,} records"
    return _needs_numbers(case)


def _needs_certifiable(case: Case) -> str:
    if len(case.sides.B) > CERTIFIED:
        return f"more than {CERTIFIED:,} records"
    return _needs_two(case)


def _needs_mixed(case: Case) -> str:
    return "" if case.mixed else "all known variables are plain numbers"


def _needs_agreement(case: Case) -> str:
    if len(case.sides.A) * len(case.sides.B) > FULL_SCAN["standard"]:
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


# In the order in which they are tried, and in which ties for the worst are named.
ATTACKS: dict[str, Attack] = {
    attack.name: attack
    for attack in (
        Attack(
            name="k-anonymity",
            about="table",
            says="counts who shares the released values",
            run=_k_anonymity,
        ),
        Attack(
            name="euclidean",
            about="identity",
            says="links to the nearest record, Euclidean distance",
            run=_link("euclidean"),
            unfit=_needs_numbers,
        ),
        Attack(
            name="mahalanobis",
            about="identity",
            says="links to the nearest record, Mahalanobis distance",
            run=_link("mahalanobis"),
            unfit=_needs_two,
        ),
        Attack(
            name="manhattan",
            about="identity",
            says="links to the nearest record, Manhattan distance",
            run=_link("manhattan"),
            effort="standard",
            unfit=_needs_two,
        ),
        Attack(
            name="gower",
            about="identity",
            says="links to the nearest record, Gower's distance",
            run=_link("gower"),
            unfit=_needs_mixed,
        ),
        Attack(
            name="transparency",
            about="identity",
            says="knows the method and its parameters, and works out who it can be",
            run=_transparency,
            unfit=_no_transparency,
        ),
        Attack(
            name="interval",
            about="attribute",
            says="takes the released number for the original, within 1 % of the ranks",
            run=_intervals,
            unfit=_needs_order,
        ),
        Attack(
            name="homogeneity",
            about="attribute",
            says="takes the most frequent confidential value of equal records",
            run=_homogeneity,
            unfit=_no_homogeneity,
        ),
        Attack(
            name="individual risk",
            about="table",
            says="looks for a record's person in the population",
            run=_individual,
            unfit=_no_weights,
        ),
        Attack(
            name="learned",
            about="identity",
            says="links by the weighted distance that links most records",
            dear=True,
            run=_learn("weighted mean"),
            unfit=_needs_learnable,
        ),
        Attack(
            name="one-to-one",
            about="identity",
            says="links all records at once, each original to one",
            run=_one_to_one,
            effort="standard",
            unfit=_needs_two_few,
        ),
        Attack(
            name="probabilistic",
            about="identity",
            says="links by agreement of variables, weighed by EM",
            run=_probabilistic,
            effort="standard",
            unfit=_needs_agreement,
        ),
        Attack(
            name="prediction",
            about="attribute",
            says="learns from the release to predict what is confidential",
            run=_predict,
            effort="standard",
            unfit=_no_prediction,
        ),
        Attack(
            name="special uniques",
            about="table",
            says="looks for records that few variables single out",
            run=_suda,
            effort="standard",
            unfit=_few_values,
        ),
        Attack(
            name="learned bilinear",
            about="identity",
            says="links by the quadratic form that links most records",
            dear=True,
            run=_learn("bilinear"),
            effort="thorough",
            unfit=_needs_two,
        ),
        Attack(
            name="learned choquet",
            about="identity",
            says="links by the Choquet integral that links most records",
            dear=True,
            run=_learn("choquet"),
            effort="thorough",
            unfit=_choquet_size,
        ),
        Attack(
            name="learned maxitive",
            about="identity",
            says="links by the best pairs of variables, found by learning",
            dear=True,
            run=_learn("maxitive"),
            effort="thorough",
            unfit=_maxitive_size,
        ),
        Attack(
            name="certified",
            about="identity",
            says="links by the best weighted distance, proved to be the best",
            dear=True,
            run=_certify,
            effort="thorough",
            unfit=_needs_certifiable,
        ),
    )
}


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
