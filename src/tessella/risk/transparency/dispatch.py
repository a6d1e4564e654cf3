"""The attack that fits a masker: its parameters are what the intruder knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from ..._types import Name
from ...exceptions import AttackError, BadOptionError, UnknownOptionError
from ...frame import Table, View
from ...masking import registry
from ...masking.selection import Scale, select
from ...schema import Schema
from .scene import Candidates


def _loaded(module: str, function: str) -> Callable[..., Candidates]:
    """Return an attack that is loaded when it is first used."""

    def run(*tables: Any, **options: Any) -> Candidates:
        attack_on: Callable[..., Candidates] = getattr(import_module(module, __package__), function)
        return attack_on(*tables, **options)

    return run


ATTACKS: dict[str, Callable[..., Candidates]] = {
    "rank swapping": _loaded(".ranks", "attack_rank_swapping"),
    "shuffling": _loaded(".shuffling", "attack_shuffling"),
    "record swapping": _loaded(".record_swapping", "attack_record_swapping"),
    "individual ranking": _loaded(".ranks", "attack_individual_ranking"),
    "microaggregation": _loaded(".microaggregation", "attack_microaggregation"),
    "fuzzy microaggregation": _loaded(".fuzzy_microaggregation", "attack_fuzzy_microaggregation"),
    "overlapping microaggregation": _loaded(
        ".overlapping_microaggregation", "attack_overlapping_microaggregation"
    ),
}


def attack(
    original: Any,
    masked: Any,
    method: Any,
    *,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    **options: Any,
) -> Candidates:
    """Attack a masked table with what is known of its masking.

    Parameters
    ----------
    original, masked, known, id
        As for `link`.
    method : masker, str or mapping
        A `RankSwapping`, `Shuffling`, `RecordSwapping`, `IndividualRanking`, `Microaggregation` or
        `FuzzyMicroaggregation` with the parameters that the table was masked with; or the name of
        the method ("rank swapping", "shuffling", "record swapping", "individual ranking",
        "microaggregation", "fuzzy microaggregation"), its parameters among `options`; or a
        mapping of both, such as
        ``{"method": "rank swapping", "percent": 10}``.
    **options
        See below; those that the masker's parameters tell need not be given.

    Other Parameters
    ----------------
    columns : sequence of names, optional
        The columns that were masked; by default all columns of numbers. A known column that is
        not among them was released as it is, and must agree.
    strata : name, list of names or array-like of shape (n,), optional
        Within which records were masked, as the masker takes it. The intruder knows the strata.
    schema : Schema, optional
        Says which numbers are categories and which values are missing.
    effort : {"quick", "standard", "thorough"}
        Each record on its own; or, with more than quick effort, also what follows for all records
        together: no two of them come from the same original. By default "standard".
    sample : int, optional
        Attack so many masked records, drawn at random, each on its own, and give an interval.
    random_state : int, optional
        Seed of that draw.
    strict : bool, default True
        Refuse tables that cannot come from the method with these parameters (a `margin` is not
        refused). With False, `covered` tells the share of records whose true original is among
        the candidates.
    percent : float
        Of rank swapping: how far the ranks of exchanged numbers may be apart, in per cent of n.
    everyone : bool, default True
        Of rank swapping: numbers were exchanged in twos, and no number was left where it is but
        one of an odd number, as `RankSwapping` does it. False uses no more than the window.
    amount : float
        Of shuffling: how much was drawn anew.
    given : name or list of names, optional
        Of shuffling: the keys.
    k : int
        Of individual ranking and microaggregation: the least number of records in a group, which
        share a value.
    blocks : None, int or list of lists of names
        Of microaggregation, fuzzy or not: columns that were grouped, or drawn, apart.
    scale : {"zscore", "range", None} or mapping of name to number
        Of both, too: the distance in which centres are near.
    grouping : {"repeated", "unknown"}
        Of microaggregation: whether he can repeat the grouping. Methods such as MDAV are not
        random, and who has the original and the parameters gets the same groups. A block of which
        he knows only some columns is always unknown.
    margin : int, optional
        For unknown groupings: an original may be in a group only if the group's centre is among so
        many nearest centres. **This may lose the truth**, and `covered` tells how often. By
        default an original may be in a group unless that is proved impossible.
    means : bool, default True
        Released values are means without weights; False for medians and weighted means, for which
        nothing is proved, so that unknown groupings need a `margin`.
    memberships, centres, labels
        Of overlapping microaggregation: what its fitted masker has under these names.
    m2, lambda2 : float
        Of fuzzy microaggregation: the fuzziness of the draw, one of the two. Those of the centres
        are not needed: the centres are published.
    logarithms : mapping of name to number, optional
        Of fuzzy microaggregation: columns that were clustered by their logarithms, as factors of
        products are, and what was added to them first.
    centres : list of arrays of shape (c, d), optional
        All centres of each block, if he knows them: he can compute them from the original. By
        default those that are released; then centres that nobody got are not taken into account.
    at_least_k : bool, default False
        Whether centres were drawn given the sizes of groups. This is given among the assumptions;
        what is computed is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.masking import RankSwapping
    >>> from tessella.risk import attack
    >>> original = np.random.default_rng(0).normal(size=(100, 3))
    >>> masker = RankSwapping(percent=10, random_state=0)
    >>> found = attack(original, masker.fit_transform(original), masker)
    >>> found.covered, found.single
    (1.0, 1.0)
    """
    if isinstance(method, str):
        method = {"method": method}
    given = _described(method) if isinstance(method, Mapping) else _of_masker(method, original, id)
    run = ATTACKS[given.pop("method")]
    return run(original, masked, **{**given, "known": known, "id": id, **options})


def masked_columns(
    method: Any, original: Any, id: Name | None = None, schema: Schema | None = None
) -> set[Name]:
    """Return the columns that a method has masked, by its description or its masker."""
    if not isinstance(method, Mapping):
        return set(_columns(method, original, id)["columns"])
    given = method.get("columns")
    view = View.of(original, method.get("schema", schema))
    if given is None:
        return {name for name in view.columns if name != id and view.is_number(name)}
    single = isinstance(given, str) or not hasattr(given, "__iter__") or view.table.has(given)
    return {given} if single else set(given)


def _described(description: Mapping[Any, Any]) -> dict[str, Any]:
    given = dict(description)
    if "method" not in given:
        raise BadOptionError(
            "method", sorted(map(str, given)), f'"method", one of: {", ".join(ATTACKS)}'
        )
    if given["method"] not in ATTACKS:
        raise UnknownOptionError("method", given["method"], ATTACKS)
    return given


def knows(masker: Any) -> bool:
    """Return whether there is an attack that knows a masker."""
    method = registry.of_masker(masker)
    return method is not None and method.attack in ATTACKS


def _of_masker(masker: Any, original: Any, id: Name | None) -> dict[str, Any]:
    """Return the attack on a masker and what its parameters tell."""
    method = registry.of_masker(masker)
    if method is None or method.attack not in ATTACKS:
        known = [m.masker.__name__ for m in registry.methods().values() if m.attack and m.masker]
        raise AttackError.no_attack(given=masker, offered=known)
    if getattr(masker, "rules", None) is not None and not method.posterior:
        raise AttackError.moved(masker=type(masker).__name__)
    found: dict[str, Any] = {
        "method": method.attack,
        "strata": masker.strata,
        "schema": masker.schema,
        **_columns(masker, original, id),
    }
    if _in_blocks(masker):
        found["scale"] = _scale(masker, original, found["columns"])
    return found | dict(method.attack_options(masker))


def _in_blocks(masker: Any) -> bool:
    """Return whether a masker groups columns in blocks, in units of a scale."""
    return {"blocks", "scale"} <= set(masker.get_params(deep=False))


def _scale(masker: Any, original: Any, columns: list[Name]) -> Any:
    """Return the masker's scale; with weights, what they make the unit of each column."""
    if masker.weights is None:
        return masker.scale
    table = Table.read(original)
    chosen = select(
        table, columns=columns, blocks=None, strata=None, weights=masker.weights, schema=None
    )
    values = View(table, masker.schema).matrix(columns, who="The attack")
    unit = Scale.of(values, chosen.weights, masker.scale, columns).unit
    return dict(zip(columns, unit.tolist(), strict=True))


def _columns(masker: Any, original: Any, id: Name | None) -> dict[str, Any]:
    """Return which columns were masked, and in which blocks."""
    blocked = _in_blocks(masker)
    if blocked and hasattr(masker, "blocks_"):
        blocks = [list(block) for block in masker.blocks_]
    elif not blocked and hasattr(masker, "columns_"):
        return {"columns": list(masker.columns_)}
    else:
        table = Table.read(original)
        columns = getattr(masker, "exchanged", masker.columns)  # record swapping names them so
        if columns is None and id is not None:
            columns = [n for n in table.columns if n != id and table.facts(n).numeric]
        chosen = select(
            table, columns=columns, blocks=getattr(masker, "blocks", None), strata=masker.strata,
            weights=masker.weights, schema=masker.schema, who=type(masker).__name__,
            categories=getattr(registry.of_masker(masker), "masks", "") == "categories",
        )  # fmt: skip
        blocks = [list(block) for block in chosen.blocks]
    columns = [name for block in blocks for name in block]
    return {"columns": columns, "blocks": blocks} if blocked else {"columns": columns}
