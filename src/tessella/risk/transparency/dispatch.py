"""The attack that fits a masker: its parameters are what the intruder knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._types import Name
from ...exceptions import AttackError, BadOptionError, UnknownOptionError
from ...frame import Table
from ...masking import FuzzyMicroaggregation, IndividualRanking, Microaggregation, RankSwapping
from ...masking.scale import Scale
from ...masking.selection import select
from .candidates import Candidates
from .fuzzy_microaggregation import attack_fuzzy_microaggregation
from .individual_ranking import attack_individual_ranking
from .microaggregation import attack_microaggregation
from .rank_swapping import attack_rank_swapping

__all__ = ["attack", "masked_columns"]


ATTACKS: dict[str, Callable[..., Candidates]] = {
    "rank swapping": attack_rank_swapping,
    "individual ranking": attack_individual_ranking,
    "microaggregation": attack_microaggregation,
    "fuzzy microaggregation": attack_fuzzy_microaggregation,
}
METHODS: dict[type, str] = {
    RankSwapping: "rank swapping",
    IndividualRanking: "individual ranking",
    Microaggregation: "microaggregation",
    FuzzyMicroaggregation: "fuzzy microaggregation",
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
        As for `attack_rank_swapping`.
    method : masker or mapping
        A `RankSwapping`, `IndividualRanking`, `Microaggregation` or `FuzzyMicroaggregation` with
        the parameters that the table was masked with; or a mapping with "method" ("rank
        swapping", "individual ranking", "microaggregation", "fuzzy microaggregation") and
        the arguments of the attack, such as ``{"method": "rank swapping", "percent": 10}``.
    **options
        For the attack: effort, sample, random_state, strict and so on.

    Returns
    -------
    Candidates

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
    told = _described(method) if isinstance(method, Mapping) else _of_masker(method, original, id)
    run = ATTACKS[told.pop("method")]
    return run(original, masked, **{**told, "known": known, "id": id, **options})


def masked_columns(method: Any, original: Any, id: Name | None = None) -> set[Name]:
    """Return the columns that a method has masked, by its description or its masker."""
    if not isinstance(method, Mapping):
        return set(_columns(method, original, id)["columns"])
    given = method.get("columns")
    table = Table.read(original)
    if given is None:
        return {name for name in table.columns if name != id and table.facts(name).numeric}
    single = isinstance(given, str) or not hasattr(given, "__iter__") or table.has(given)
    return {given} if single else set(given)


def _described(description: Mapping[Any, Any]) -> dict[str, Any]:
    told = dict(description)
    if "method" not in told:
        raise BadOptionError(
            "method", sorted(map(str, told)), f'"method", one of: {", ".join(ATTACKS)}'
        )
    if told["method"] not in ATTACKS:
        raise UnknownOptionError("method", told["method"], ATTACKS)
    return told


def _of_masker(masker: Any, original: Any, id: Name | None) -> dict[str, Any]:
    """Return the attack on a masker and what its parameters tell."""
    if type(masker) not in METHODS:
        raise AttackError.no_attack(masker, [kind.__name__ for kind in METHODS])
    if getattr(masker, "rules", None) is not None:
        raise AttackError.moved(type(masker).__name__)
    told: dict[str, Any] = {
        "method": METHODS[type(masker)],
        "strata": masker.strata,
        "schema": masker.schema,
        **_columns(masker, original, id),
    }
    if isinstance(masker, Microaggregation | FuzzyMicroaggregation):
        told["scale"] = _scale(masker, original, told["columns"])
    match masker:
        case RankSwapping():
            return told | {"percent": masker.percent}
        case IndividualRanking():
            return told | {"k": masker.k}
        case Microaggregation():
            plain = masker.aggregate == "mean" and masker.weights is None
            return told | {"k": masker.k, "means": plain}
    fuzziness = {"m2": masker.m2} if masker.lambda2 is None else {"lambda2": masker.lambda2}
    return told | fuzziness | {"at_least_k": masker.at_least_k}


def _scale(masker: Any, original: Any, columns: list[Name]) -> Any:
    """Return the masker's scale; with weights, what they make the unit of each column."""
    if masker.weights is None:
        return masker.scale
    table = Table.read(original)
    chosen = select(
        table, columns=columns, blocks=None, strata=None, weights=masker.weights, schema=None
    )
    codes = {} if masker.schema is None else {n: masker.schema[n].missing for n in columns}
    values = table.numeric(columns, codes=codes, who="The attack").values
    unit = Scale.of(values, chosen.weights, masker.scale, columns).unit
    return dict(zip(columns, unit.tolist(), strict=True))


def _columns(masker: Any, original: Any, id: Name | None) -> dict[str, Any]:
    """Return which columns were masked, and in which blocks."""
    blocked = isinstance(masker, Microaggregation | FuzzyMicroaggregation)
    if blocked and hasattr(masker, "blocks_"):
        blocks = [list(block) for block in masker.blocks_]
    elif not blocked and hasattr(masker, "columns_"):
        return {"columns": list(masker.columns_)}
    else:
        table = Table.read(original)
        columns = masker.columns
        if columns is None and id is not None:
            columns = [n for n in table.columns if n != id and table.facts(n).numeric]
        chosen = select(
            table, columns=columns, blocks=masker.blocks, strata=masker.strata,
            weights=masker.weights, schema=masker.schema, who=type(masker).__name__,
        )  # fmt: skip
        blocks = [list(block) for block in chosen.blocks]
    columns = [name for block in blocks for name in block]
    return {"columns": columns, "blocks": blocks} if blocked else {"columns": columns}
