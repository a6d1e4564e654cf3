"""Records as points: where they lie, for groupings that put near ones together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._types import Floats, Name
from ..plan import Block, Plan
from .parts import BlockCells, Part
from .selection import Scale, corners


def embed(cells: BlockCells, block: Block, parts: list[Part], scale: Scale, plan: Plan) -> Floats:
    """Return the records as points: numbers in units, categories as corners.

    Two of several categories are one unit apart, as are two numbers a unit apart; two that are all
    there are, such as sexes, are two units apart, as 0 and 1 are in a column that has each of them
    equally often. Ranks of ordinal categories are in units of their own standard deviation. Where
    `plan.scale` is a mapping, it may give categories a unit, too: with 0.5 they count twice as far.
    """
    given = plan.scale if isinstance(plan.scale, Mapping) else {}
    numbers = cells.numbers(block)
    values = cells.matrix(numbers)
    pieces = []
    if plan.distance == "representation" and block.signs and not plan.is_fuzzy:
        pieces.append(_in_logarithms(values, numbers, block, parts, plan))
    elif numbers:
        pieces.append(scale.apply(values))
    for name in block.columns:
        if name not in cells.levels:
            continue
        codes = np.nan_to_num(cells.column(name), nan=0.0).astype(np.int64)
        if cells.view.kind(name) == "ordinal":
            known = ~np.isnan(cells.column(name))
            spread = (np.nanstd(cells.column(name)) if known.any() else 0.0) or 1.0
            pieces.append((codes / (spread * given.get(name, 1.0)))[:, None])
        else:
            pieces.append(corners(codes) / given.get(name, 1.0))
    if not any(piece.shape[1] for piece in pieces):  # none, or categories of one level each
        return np.zeros((cells.n_rows, 1))
    return np.ascontiguousarray(pieces[0] if len(pieces) == 1 else np.column_stack(pieces))


def _in_logarithms(
    values: Floats, numbers: list[Name], block: Block, parts: list[Part], plan: Plan
) -> Floats:
    """Scale the columns of numbers, factors of products as logarithms, in each part apart."""
    out = np.empty_like(values)
    for part in parts:
        own = values[part.rows]
        for (name, offset), sign in zip(block.signs, part.signs):
            if name in numbers and sign in (-1, 1):
                j = numbers.index(name)
                with np.errstate(divide="ignore", invalid="ignore"):
                    own[:, j] = np.log(np.abs(own[:, j] + offset))
        own[~np.isfinite(own)] = np.nan
        scale = Scale.of(own, np.ones(len(own)), plan.scale, numbers)
        out[part.rows] = scale.apply(own)
    return out
