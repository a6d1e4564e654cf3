"""The candidates that are tried where nobody names others, the most telling ones first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from .candidate import Candidate
from .task import Task

__all__ = ["default_candidates"]

NOISE = (0.05, 0.1, 0.2, 0.5)
PERCENT = (2, 5, 10, 20)
STEP = (0.05, 0.2, 0.5, 1.0)
TAIL = (0.02, 0.05, 0.1, 0.25)
STAYS = (0.95, 0.9, 0.8, 0.6)


def default_candidates(task: Task, k: Sequence[int], *, effort: str) -> list[Candidate]:
    """Return the candidates for a table: methods in turn, so that a short list has all of them."""
    if not task.numbers:
        return [
            *(Candidate("pram", p=p) for p in STAYS),
            *(Candidate("mdav", k=each) for each in k if each <= task.n),
        ]
    groups: list[list[Candidate]] = []
    fitting = [each for each in k if each <= task.n]
    for method, parameters in _grouping(task, effort):
        groups.append([Candidate(method, k=each, **parameters) for each in fitting])
    for method, name, values, parameters in (
        ("swapping", "percent", [p for p in PERCENT if p * task.n >= 100], {}),
        ("noise", "scale", NOISE, {"correlated": True}),
        ("noise", "scale", NOISE, {"correlated": False}),
        ("rounding", "step", STEP, {}),
        ("coding", "tail", TAIL, {}),
    ):
        some: list[Candidate] = [
            Candidate(method, **{name: value}, **parameters) for value in values
        ]
        groups.append(some)
    turns = [one for turn in zip_longest(*groups) for one in turn if one is not None]
    if not task.categories:
        return turns
    drawn = [one.with_value("pram", STAYS[1]) for one in turns]
    whole = [
        one
        for each in fitting
        for one in (Candidate("mdav", k=each), Candidate("search", k=each, effort=effort))
    ]
    return [*whole, *drawn]


def _grouping(task: Task, effort: str) -> Iterator[tuple[str, dict[str, Any]]]:
    d = len(task.numbers)
    yield "mdav", {}
    yield "search", {"effort": effort}
    yield "fuzzy", {"m2": 1.2}
    if d > 1:
        yield "individual", {}
        yield "blocks", {"size": 2, "by": "correlation"}
    yield "fuzzy", {"m2": 1.4}
    if d > 1:
        yield "projection", {"onto": "pca"}
    yield "decomposition", {}
    if d > 3:
        half = -(-d // 2)
        cuts = [(3, "correlation"), (half, "correlation"), (3, "contrast"), (3, "order")]
        seen = {(2, "correlation")}
        for size, by in cuts:
            if size < d and (size, by) not in seen:
                seen.add((size, by))
                yield "blocks", {"size": size, "by": by}
        yield "blocks", {"size": min(3, d - 1), "by": "random"}
    if task.rules is None:
        yield "fuzzy", {"m2": 1.2, "at_least_k": True}
