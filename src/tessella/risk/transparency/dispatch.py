"""The attack that fits a masker: its parameters are what the intruder knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._types import Name
from ...exceptions import AttackError, BadOptionError, UnknownOptionError
from ...frame import Table, View
from ...masking import registry
from ...masking.base import Scale
from ...masking.selection import select
from .fuzzy_microaggregation import attack_fuzzy_microaggregation
from .microaggregation import attack_individual_ranking, attack_microaggregation
from .rank_swapping import attack_rank_swapping
from .scene import Candidates

__all__ = ["attack", "knows", "masked_columns"]


ATTACKS: dict[str, Callable[..., Candidates]] = {
    "rank swapping": attack_rank_swapping,
    "individual ranking": attack_individual_ranking,
    "microaggregation": attack_microaggregation,
    "fuzzy microaggregation": attack_fuzzy_microaggregation,
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
        A `RankSwapping`, `IndividualRanking`, `Microaggregation` or `FuzzyMicroaggregation` with
        the parameters that the table was masked with; or the name of the method ("rank
        swapping", "individual ranking", "microaggregation", "fuzzy microaggregation"), its
        parameters among `options`; or a mapping of both, such as
        ``{"method": "rank swapping", "percent": 10}``.
    **options
        For every attack: columns, strata, schema, effort, sample, random_state, strict. For rank
        swapping: percent, everyone. For individual ranking: k. For microaggregation: k, blocks,
        grouping, margin, means, scale. For fuzzy microaggregation: m2 or lambda2, blocks, centres,
        at_least_k, scale. Each is explained with its attack in the guide.

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
    if isinstance(method, str):
        method = {"method": method}
    given = _described(method) if isinstance(method, Mapping) else _of_masker(method, original, id)
    run = ATTACKS[given.pop("method")]
    return run(original, masked, **{**given, "known": known, "id": id, **options})


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
    if getattr(masker, "rules", None) is not None:
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
