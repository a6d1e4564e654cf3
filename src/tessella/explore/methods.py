"""The methods that are explored: what each is called, what it can be tuned by, how it runs.

A method turns a candidate's parameters into a protected table. Microaggregation goes through
`protect` where there are rules or categories; other maskers bring records back to the rules
afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..exceptions import BadOptionError, BadTableError, UnknownOptionError
from .blocks import BLOCKINGS, cut_columns
from .task import Masked, Task

__all__ = ["METHODS", "Masked", "Method", "Task", "Tuned"]

Parameters = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The parameter that trades loss for risk, and where it may lie."""

    name: str
    low: float
    high: float
    whole: bool = False

    def between(self, low: float, high: float) -> float | int | None:
        """Return the geometric middle of two values, or None where there is nothing between."""
        middle = math.sqrt(low * high)
        if self.whole:
            near = round(middle)
            return near if low < near < high else None
        value = float(f"{middle:.3g}")
        return value if low * 1.05 < value < high / 1.05 else None


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to protect a table.

    Attributes
    ----------
    name : str
        What pictures and tables call it.
    defaults : dict
        Its parameters, with a value for each.
    run : callable
        From a candidate, a task and a seed to a protected table.
    words : callable
        A candidate in words.
    label : callable
        The method of a candidate in few words, without what is tuned.
    tuned : Tuned
        The parameter that trades loss for risk.
    masks : {"numbers", "categories"}
        What it is for.
    groups : bool
        Whether it makes groups, so that a k is promised.
    """

    name: str
    defaults: dict[str, Any]
    run: Callable[[Any, Task, int | None], Masked]
    words: Callable[[Parameters], str]
    label: Callable[[Parameters], str]
    tuned: Tuned
    masks: str = "numbers"
    groups: bool = False
    shown: tuple[str, ...] = field(default=())


K = Tuned(name="k", low=2, high=200, whole=True)


def _protect(task: Task, seed: int | None, *, k: int, method: Any, blocks: Any = None) -> Masked:
    """Microaggregate under rules, numbers and categories together."""
    from ..release import protect

    release = protect(
        task.table, k=k, rules=task.rules, schema=task.schema, columns=list(task.masked),
        blocks=blocks, method=method, random_state=seed,
    )  # fmt: skip
    planned = [] if release.plan is None else [list(b.columns) for b in release.plan.blocks]
    return Masked(table=release.table, release=release, blocks=planned, promised_k=k)


def _microaggregate(
    candidate: Parameters, task: Task, seed: int | None, *, method: Any, blocks: Any = None
) -> Masked:
    """Microaggregate numbers, and draw categories anew; or both together."""
    from ..masking import Microaggregation

    k, pram = candidate["k"], candidate["pram"]
    if task.rules is not None or (task.categories and pram is None):
        cut = None if blocks is None else [*blocks, *([name] for name in task.categories)]
        return _protect(task, seed, k=k, method=method, blocks=cut)
    masker = Microaggregation(
        k, method=method, blocks=blocks, missing="pattern", columns=list(task.numbers),
        random_state=seed,
    )  # fmt: skip
    table = masker.fit_transform(task.table)
    grouped = [list(block) for block in masker.blocks_]
    return _and_categories(
        candidate, task, seed, Masked(table=table, masker=masker, blocks=grouped, promised_k=k)
    )


def _perturb(candidate: Parameters, task: Task, seed: int | None, masker: Any) -> Masked:
    """Run a masker that promises no k, and draw categories anew."""
    if task.categories and candidate["pram"] is None:
        named = ", ".join(map(repr, task.categories))
        raise BadTableError(
            f"{type(masker).__name__} masks numbers, and these columns hold categories: {named}. "
            "Give the candidate pram=0.8, the chance that a category stays, or name the columns "
            "to mask in columns=[...]."
        )
    table = masker.fit_transform(task.table)
    return _and_categories(candidate, task, seed, Masked(table=table, masker=masker))


def _and_categories(candidate: Parameters, task: Task, seed: int | None, masked: Masked) -> Masked:
    from ..masking import PRAM

    if not task.categories:
        return masked
    other = None if seed is None else seed + 1
    drawing = PRAM(
        candidate["pram"], invariant=True, columns=list(task.categories), rules=task.rules,
        random_state=other,
    )  # fmt: skip
    return Masked(
        table=drawing.fit_transform(masked.table),
        masker=masked.masker,
        blocks=masked.blocks,
        promised_k=masked.promised_k,
    )


def _mdav(candidate: Parameters, task: Task, seed: int | None) -> Masked:
    return _microaggregate(candidate, task, seed, method="mdav")


def _search(candidate: Parameters, task: Task, seed: int | None) -> Masked:
    from ..grouping import Search

    return _microaggregate(candidate, task, seed, method=Search(effort=candidate["effort"]))


def _projection(candidate: Parameters, task: Task, seed: int | None) -> Masked:
    from ..grouping import OrderedGrouping

    return _microaggregate(candidate, task, seed, method=OrderedGrouping(order=candidate["onto"]))


def _decomposition(candidate: Parameters, task: Task, seed: int | None) -> Masked:
    return _microaggregate(candidate, task, seed, method="igd")


def _blocks(candidate: Parameters, task: Task, seed: int | None) -> Masked:
    size, by = candidate["size"], candidate["by"]
    if by not in BLOCKINGS:
        raise UnknownOptionError("by", by, BLOCKINGS)
    if isinstance(size, bool) or not isinstance(size, int) or not size >= 1:
        raise BadOptionError("size", size, "the number of columns in a block, 1 or more")
    places = cut_columns(task.values, size, by, seed=candidate["lot"])
    cut = _tied([[task.numbers[at] for at in block] for block in places], task)
    return _microaggregate(candidate, task, seed, method="mdav", blocks=cut)


def _tied(blocks: list[list[Any]], task: Task) -> list[list[Any]]:
    """Join blocks that a rule ties: columns that share a rule are grouped together."""
    for rule in task.rules or ():
        tied = [block for block in blocks if set(block) & set(rule.columns)]
        if len(tied) > 1:
            joined = {name for block in tied for name in block}
            blocks = [block for block in blocks if block not in tied]
            blocks.append([name for name in task.numbers if name in joined])
    return blocks


def _fuzzy(candidate: Parameters, task: Task, seed: int | None) -> Masked:
    from ..masking import FuzzyMicroaggregation, restore

    masker = FuzzyMicroaggregation(
        candidate["k"], m1=candidate["m1"], m2=candidate["m2"], missing="pattern",
        at_least_k=candidate["at_least_k"], columns=list(task.numbers), random_state=seed,
    )  # fmt: skip
    masked = _perturb(candidate, task, seed, masker)
    if task.rules is not None:
        table, _ = restore(
            masked.table, task.rules, original=task.table, columns=list(task.numbers)
        )
        return Masked(table=table, masker=masker)
    promised = candidate["k"] if candidate["at_least_k"] else None
    return Masked(
        table=masked.table, masker=masker, blocks=[list(task.numbers)] if promised else [],
        promised_k=promised,
    )  # fmt: skip


def _individual(candidate: Parameters, task: Task, seed: int | None) -> Masked:
    from ..masking import IndividualRanking

    masker = IndividualRanking(
        candidate["k"], columns=list(task.numbers), rules=task.rules, random_state=seed
    )
    masked = _perturb(candidate, task, seed, masker)
    if task.rules is not None:
        return masked
    apart = [[name] for name in task.numbers]
    return Masked(table=masked.table, masker=masker, blocks=apart, promised_k=candidate["k"])


def _noise(candidate: Parameters, task: Task, seed: int | None) -> Masked:
    from ..masking import NoiseAddition

    masker = NoiseAddition(
        candidate["scale"], correlated=candidate["correlated"], columns=list(task.numbers),
        rules=task.rules, random_state=seed,
    )  # fmt: skip
    return _perturb(candidate, task, seed, masker)


def _swapping(candidate: Parameters, task: Task, seed: int | None) -> Masked:
    from ..masking import RankSwapping

    masker = RankSwapping(
        candidate["percent"], columns=list(task.numbers), rules=task.rules, random_state=seed
    )
    return _perturb(candidate, task, seed, masker)


def _rounding(candidate: Parameters, task: Task, seed: int | None) -> Masked:
    from ..masking import Rounding

    spread = np.nanstd(task.values, axis=0)
    bases = {
        name: _nice(candidate["step"] * s, whole=task.source.facts(name).decimals == 0)
        for name, s in zip(task.numbers, spread)
        if s > 0  # a column of one value stays
    }
    masker = Rounding(bases, columns=list(bases), rules=task.rules, random_state=seed)
    return _perturb(candidate, task, seed, masker)


def _nice(value: float, *, whole: bool) -> float:
    """Return the nearest of 1, 2 and 5 times a power of ten; at least 1 for whole numbers."""
    power = 10.0 ** math.floor(math.log10(value))
    best = min((1, 2, 5, 10), key=lambda step: abs(math.log(value / (step * power))))
    return max(best * power, 1.0) if whole else best * power


def _coding(candidate: Parameters, task: Task, seed: int | None) -> Masked:
    from ..masking import TopBottomCoding

    tail = candidate["tail"]
    masker = TopBottomCoding(
        tail, bottom=tail, columns=list(task.numbers), rules=task.rules, random_state=seed
    )
    return _perturb(candidate, task, seed, masker)


def _pram(candidate: Parameters, task: Task, seed: int | None) -> Masked:
    from ..masking import PRAM

    if task.numbers:
        named = ", ".join(map(repr, task.numbers))
        raise BadTableError(
            f"PRAM alone masks categories, and these columns hold numbers: {named}. Take a "
            "method for numbers with pram=0.8."
        )
    masker = PRAM(
        candidate["p"], invariant=True, columns=list(task.categories), rules=task.rules,
        random_state=seed,
    )  # fmt: skip
    return Masked(table=masker.fit_transform(task.table), masker=masker)


def _named(name: str) -> Callable[[Parameters], str]:
    def label(parameters: Parameters) -> str:
        return f"{name} + PRAM" if parameters.get("pram") is not None else name

    return label


def _words(text: str) -> Callable[[Parameters], str]:
    def words(parameters: Parameters) -> str:
        said = text.format(**parameters)
        if parameters.get("pram") is not None:
            said += f"; categories kept with chance {parameters['pram']:g}"
        return said

    return words


_TOGETHER = {
    "order": "{size} neighbouring columns",
    "correlation": "{size} correlated columns",
    "contrast": "{size} uncorrelated columns",
    "random": "{size} columns drawn by lot",
}


def _blocks_words(parameters: Parameters) -> str:
    together = _TOGETHER.get(str(parameters["by"]), "{size} columns").format(**parameters)
    return _words(f"MDAV in blocks of {together}, k = {{k}}")(parameters)


def _blocks_label(parameters: Parameters) -> str:
    short = {"order": "adjacent", "correlation": "correlated", "contrast": "uncorrelated"}
    by = short.get(str(parameters["by"]), str(parameters["by"]))
    return _named(f"blocks of {parameters['size']}, {by}")(parameters)


def _fuzzy_label(parameters: Parameters) -> str:
    name = f"fuzzy m2 = {parameters['m2']:g}"
    return _named(f"{name}, k kept" if parameters["at_least_k"] else name)(parameters)


def _fuzzy_words(parameters: Parameters) -> str:
    kept = ", k guaranteed" if parameters["at_least_k"] else ""
    text = f"fuzzy microaggregation, k = {{k}}, m1 = {{m1:g}}, m2 = {{m2:g}}{kept}"
    return _words(text)(parameters)


def _noise_label(parameters: Parameters) -> str:
    name = "correlated noise" if parameters["correlated"] else "uncorrelated noise"
    return _named(name)(parameters)


def _noise_words(parameters: Parameters) -> str:
    kind = "correlated" if parameters["correlated"] else "uncorrelated"
    return _words(f"{kind} noise of {{scale:g}} standard deviations")(parameters)


_ONE_K: dict[str, Any] = {"k": 3, "pram": None}

# fmt: off
METHODS: dict[str, Method] = {
    "mdav": Method(
        name="MDAV", defaults=_ONE_K, run=_mdav, words=_words("MDAV, k = {k}"),
        label=_named("MDAV"), tuned=K, groups=True, shown=("k",),
    ),
    "search": Method(
        name="Search", defaults=_ONE_K | {"effort": "quick"}, run=_search,
        words=_words("Search ({effort}), k = {k}"), label=_named("Search"), tuned=K, groups=True,
        shown=("k", "effort"),
    ),
    "projection": Method(
        name="projection", defaults=_ONE_K | {"onto": "pca"}, run=_projection,
        words=_words("best cut of the records ordered by {onto}, k = {k}"),
        label=_named("projection"), tuned=K, groups=True, shown=("k", "onto"),
    ),
    "decomposition": Method(
        name="decomposition", defaults=_ONE_K, run=_decomposition,
        words=_words("group decomposition (IGD), k = {k}"), label=_named("decomposition"),
        tuned=K, groups=True, shown=("k",),
    ),
    "individual": Method(
        name="individual ranking", defaults=_ONE_K, run=_individual,
        words=_words("individual ranking, k = {k} in each column"),
        label=_named("individual ranking"), tuned=K, groups=True, shown=("k",),
    ),
    "blocks": Method(
        name="blocks", defaults=_ONE_K | {"size": 3, "by": "correlation", "lot": 0}, run=_blocks,
        words=_blocks_words, label=_blocks_label, tuned=K, groups=True, shown=("k", "size", "by"),
    ),
    "fuzzy": Method(
        name="fuzzy", defaults=_ONE_K | {"m1": 1.1, "m2": 1.2, "at_least_k": False}, run=_fuzzy,
        words=_fuzzy_words, label=_fuzzy_label, tuned=K, shown=("k", "m1", "m2"),
    ),
    "noise": Method(
        name="noise", defaults={"scale": 0.1, "correlated": True, "pram": None}, run=_noise,
        words=_noise_words, label=_noise_label, tuned=Tuned(name="scale", low=1e-3, high=10.0),
        shown=("scale", "correlated"),
    ),
    "swapping": Method(
        name="rank swapping", defaults={"percent": 5, "pram": None}, run=_swapping,
        words=_words("rank swapping within {percent:g} % of the ranks"),
        label=_named("rank swapping"), tuned=Tuned(name="percent", low=0.1, high=100.0),
        shown=("percent",),
    ),
    "rounding": Method(
        name="rounding", defaults={"step": 0.1, "pram": None}, run=_rounding,
        words=_words("rounding to steps of about {step:g} standard deviations"),
        label=_named("rounding"), tuned=Tuned(name="step", low=1e-3, high=10.0), shown=("step",),
    ),
    "coding": Method(
        name="top and bottom coding", defaults={"tail": 0.05, "pram": None}, run=_coding,
        words=_words("the largest and smallest {tail:.3g} of each column coded"),
        label=_named("top and bottom coding"), tuned=Tuned(name="tail", low=1e-3, high=0.49),
        shown=("tail",),
    ),
    "pram": Method(
        name="PRAM", defaults={"p": 0.8}, run=_pram,
        words=_words("invariant PRAM, a category stays with chance {p:g}"), label=_named("PRAM"),
        tuned=Tuned(name="p", low=0.01, high=1.0), masks="categories", shown=("p",),
    ),
}
# fmt: on
