"""Columns that have one value for all members of a unit: the region of a household.

Pairs of members that follow each other within their unit are compared. Two records drawn at random
agree in the share sum(p ** 2) of pairs, where p are the shares of values; members nearly always.
"""

from __future__ import annotations

import math

import numpy as np

from ..._types import Integers, Truths
from ..expressions import column_text, quoted
from .chance import FEWER, Demands, Proposal, expected, log_chance, raised
from .columns import MOST_LEVELS, Sample

FEWEST = 5  # pairs of members


def find_constant(sample: Sample, demands: Demands) -> list[Proposal]:
    """Find columns that are constant within the units that the schema names."""
    view = sample.view
    if view.unit is None or view.units is None:
        return []
    order = np.argsort(view.units, kind="stable")
    same = np.diff(view.units[order]) == 0
    names = [name for name in view.columns if name != view.unit]
    if not same.any():
        return []
    found = []
    for name in names:
        facts = view.table.facts(name)
        if facts.family in ("other", "date"):
            continue
        codes, labels = view.labels(name)
        numeric = facts.numeric or facts.family == "boolean"
        if not numeric and len(labels) > MOST_LEVELS:
            continue
        held = _pairs(codes[order], same)
        if held is None:
            continue
        agreeing, pairs, by_chance = held
        if agreeing < demands.strict * pairs:
            continue
        if pairs - agreeing > FEWER * pairs * (1 - by_chance):
            continue
        log_probability = log_chance(agreeing, pairs, raised(by_chance, len(codes)))
        chance = expected(log_probability, math.log(len(names)))
        if chance > demands.chance:
            continue
        text, unit = column_text(name), column_text(view.unit)
        if numeric and facts.family != "boolean":
            rule = f"min({text}) by {unit} == max({text}) by {unit}"
        else:
            values = labels if facts.family == "boolean" else sorted(map(quoted, labels))
            counts = [f"count({text} == {value})" for value in sorted(values)]
            most = counts[0] if len(counts) == 1 else f"max({', '.join(counts)})"
            rule = f"{most} == count() by {unit}"
        found.append(
            Proposal(
                text=rule,
                kind="constant in unit",
                columns=(name, view.unit),
                why=f"all members of one {unit} have the same {text}",
                chance=chance,
                rank=(chance,),
            )
        )
    return found


def _pairs(codes: Integers, same: Truths) -> tuple[int, int, float] | None:
    """Return how many pairs of members agree, their number, and the share that would by chance."""
    known = same & (codes[1:] >= 0) & (codes[:-1] >= 0)
    pairs = int(known.sum())
    if pairs < FEWEST:
        return None
    shares = np.bincount(codes[codes >= 0]) / max(int((codes >= 0).sum()), 1)
    return int((codes[1:] == codes[:-1])[known].sum()), pairs, float((shares**2).sum())
