"""A candidate: a way to protect a table, as data.

It has the name of a step and values for its options, and nothing else, so that it can be hashed,
stored, compared, run again, and written into a plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .._plain import toml_key, toml_value
from .._types import Floats
from ..exceptions import BadOptionError, BadTableError, UnknownOptionError
from ..masking import registry
from ..release import Step, Study
from ..release.steps import options_of
from .task import Task

__all__ = ["BLOCKINGS", "Candidate", "Plain", "cut_columns", "steps_to_toml"]


def cut_columns(values: Floats, size: int, by: str, *, seed: int = 0) -> list[list[int]]:
    """Cut columns into blocks of `size`; the last may be smaller.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        The columns; missing cells are NaN.
    size : int
        How many columns a block has.
    by : {"order", "correlation", "contrast", "random"}
        Neighbours in the table; columns that are correlated; columns that are not; by lot.
    seed : int, default 0
        The lot.

    Returns
    -------
    list of lists of int
        The places of the columns of each block, in ascending order.

    Notes
    -----
    A block is begun with the column whose |correlation| with the others left is largest in sum
    ("correlation") or least ("contrast"), and takes, one by one, the column whose mean
    |correlation| with the block is largest or least.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.explore.candidate import cut_columns
    >>> a, b = np.random.default_rng(0).normal(size=(2, 50))
    >>> cut_columns(np.column_stack([a, b, -a, b + 1]), 2, "correlation")
    [[0, 2], [1, 3]]
    """
    return sorted(sorted(block) for block in BLOCKINGS[by](values, size, seed))


def _in_order(values: Floats, size: int, seed: int) -> list[list[int]]:  # noqa: ARG001
    return _pieces(list(range(values.shape[1])), size)


def _at_random(values: Floats, size: int, seed: int) -> list[list[int]]:
    lot = np.random.default_rng(seed).permutation(values.shape[1])
    return _pieces(lot.tolist(), size)


def _correlated(values: Floats, size: int, seed: int) -> list[list[int]]:  # noqa: ARG001
    return _greedy(_closeness(values), size)


def _contrasting(values: Floats, size: int, seed: int) -> list[list[int]]:  # noqa: ARG001
    return _greedy(-_closeness(values), size)


def _pieces(places: list[int], size: int) -> list[list[int]]:
    return [places[at : at + size] for at in range(0, len(places), size)]


def _closeness(values: Floats) -> Floats:
    """Return |correlations|, a missing cell counted as the column's mean; 0 on the diagonal."""
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, values, 0.0)
    centred = np.where(known, centred - centred.sum(axis=0) / count, 0.0)
    length = np.sqrt((centred**2).sum(axis=0))
    centred /= np.where(length > 0, length, 1.0)
    close: Floats = np.abs(centred.T @ centred)
    np.fill_diagonal(close, 0.0)
    return np.round(close, 9)  # ties of rounding are broken by place


def _greedy(close: Floats, size: int) -> list[list[int]]:
    left, blocks = list(range(len(close))), []
    while left:
        first = max(left, key=lambda j: (close[j, left].sum(), -j))
        block = [first]
        left.remove(first)
        while left and len(block) < size:
            here = tuple(block)
            best = max(left, key=lambda j, here=here: (close[j, here].mean(), -j))  # type: ignore[misc]
            block.append(best)
            left.remove(best)
        blocks.append(block)
    return blocks


# How columns can be cut, by the name that a candidate uses.
BLOCKINGS: dict[str, Callable[[Floats, int, int], list[list[int]]]] = {
    "order": _in_order,
    "correlation": _correlated,
    "contrast": _contrasting,
    "random": _at_random,
}


Plain = bool | int | float | str | None | list[Any] | dict[str, Any]
OWN = ("columns", "strata")  # of the task, not of a candidate


class Candidate(Mapping[str, Plain]):
    """A method with its options, as a step names them: `Candidate("rank swapping", percent=5)`.

    Parameters
    ----------
    method : str
        A name of `tessella.masking.registry.methods()`: "protect", "noise", "rank swapping", ...
    pram : float, optional
        The chance that a category stays, for methods that mask numbers: the categories of the
        table are then masked by invariant PRAM, in a step of their own.
    **options : numbers, texts, truth values, lists and mappings of these
        Those of the step; what is left out has the method's default. The blocks of "protect" may
        be ``{"size": 3, "by": "correlation"}``: columns that are cut into blocks of three by
        "correlation", "contrast" (uncorrelated ones together), "order" or "random" ("lot" is
        then the seed).

    Examples
    --------
    >>> from tessella.explore import Candidate
    >>> one = Candidate("protect", k=3, grouping="mdav")
    >>> one == Candidate("protect", grouping="mdav", k=3)
    True
    >>> one.key
    'protect(grouping="mdav", k=3)'
    >>> print(one)
    MDAV, k = 3
    >>> one.to_step()
    Step(method='protect', options={...'mdav', 'k': 3}, name='')
    """

    __slots__ = ("_options", "method")

    def __init__(self, method: str, /, **options: Plain) -> None:
        entry = registry.find(method)
        allowed = [name for name in self._allowed(entry) if name not in OWN]
        whole = dict(entry.defaults)
        for name, value in options.items():
            if name not in allowed:
                raise UnknownOptionError(f"option of {method!r}", name, allowed)
            whole[name] = _plain(name, value)
        unsaid = {"pram": None, **entry.signature_defaults}
        self.method = method
        self._options = {
            name: whole[name]
            for name in sorted(whole)
            if name in entry.defaults or name not in unsaid or whole[name] != unsaid[name]
        }

    @staticmethod
    def _allowed(entry: registry.Method) -> list[str]:
        names = list(options_of(entry.name))
        return [*names, "pram"] if entry.masks != "categories" else names

    def __getitem__(self, name: str) -> Plain:
        return self.options[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidate) and self.key == other.key

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.method, self.options)

    @property
    def options(self) -> dict[str, Plain]:
        """The options by name."""
        return dict(self._options)

    @property
    def key(self) -> str:
        """The same text for the same candidate, in every session and on every machine."""
        named = [f"{n}={json.dumps(v, sort_keys=True)}" for n, v in self._options.items()]
        return f"{self.method}({', '.join(named)})"

    @property
    def label(self) -> str:
        """The method in few words, as a picture names it."""
        name = registry.find(self.method).label_of(self._options)
        return name if self.get("pram") is None else f"{name} + PRAM"

    def __str__(self) -> str:
        text = registry.find(self.method).describe(self._options)
        chance = self.get("pram")
        return text if chance is None else f"{text}; categories kept with chance {chance:g}"

    def __repr__(self) -> str:
        named = "".join(f", {name}={value!r}" for name, value in self._options.items())
        return f"Candidate({self.method!r}{named})"

    def with_value(self, name: str, value: Plain) -> Candidate:
        """Return the same candidate with another value of one option."""
        return Candidate(self.method, **{**self._options, name: value})

    def tuned_to(self, value: Plain) -> Candidate:
        """Return the same candidate with another value of the option that `explore` turns."""
        tuned = registry.find(self.method).tuned
        if tuned is None:
            raise BadOptionError("method", self.method, "a method with an option to turn")
        changed = dict.fromkeys((tuned.name, *tuned.also), value)
        return Candidate(self.method, **{**self._options, **changed})

    def to_steps(self, table: Any = None, *, columns: Any = None, schema: Any = None) -> list[Step]:
        """Return the steps of a study or a plan that do what this candidate does.

        Parameters
        ----------
        table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray, optional
            With it, the steps name the columns that they mask; they are those of `explore`.
            Candidates with `pram`, or with blocks that depend on the table, need it.
        columns, schema
            As for `explore`.

        Returns
        -------
        list of Step
            One, or two where categories are masked on their own.
        """
        task = None if table is None else Task.of(table, columns=columns, schema=schema)
        return self.steps_for(task)

    def to_step(self, table: Any = None, *, columns: Any = None, schema: Any = None) -> Step:
        """Return the only step of this candidate: see `to_steps`."""
        return only(self.to_steps(table, columns=columns, schema=schema))

    def mask(
        self,
        table: Any,
        *,
        columns: Any = None,
        rules: Any = None,
        schema: Any = None,
        random_state: int | None = None,
    ) -> Any:
        """Protect a table this way: the table of a `Study` with the steps of `to_steps`.

        Parameters
        ----------
        table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
            The original table.
        columns, rules, schema
            As for `explore`.
        random_state : int, optional
            Without it, random numbers come from the operating system: nobody can repeat the
            release. It is not the table that an exploration looked at, but one made alike.

        Returns
        -------
        the same kind of table
            Not yet audited: do the steps in a study or a plan to release it.
        """
        task = Task.of(table, columns=columns, rules=rules, schema=schema)
        return self.study(task, random_state).table

    def study(self, task: Task, seed: int | None) -> Study:
        """Return a study of a task with all steps done."""
        study = Study(task.source, schema=task.schema, rules=task.rules, random_state=seed)
        for step in self.steps_for(task):
            study.do(step)
        return study

    def steps_for(self, task: Task | None) -> list[Step]:
        """Return the steps for a table that was read; without one, columns are not named."""
        options, entry = self.options, registry.find(self.method)
        chance = options.pop("pram", None)
        if task is None:
            if chance is not None or isinstance(options.get("blocks"), dict):
                raise BadOptionError("table", None, "the table: the steps depend on its columns")
            return [_step(self.method, options)]
        alone = entry.masks == "both" and chance is None
        columns = task.masked if alone else task.numbers
        if entry.masks == "categories":
            self._refuse(task.numbers, "PRAM alone masks categories, and these columns hold "
                         "numbers: {}. Take a method for numbers with pram=0.8.")  # fmt: skip
            columns = task.categories
        elif not alone and chance is None:
            self._refuse(task.categories, f"{self.method.capitalize()} masks numbers, and these "
                         "columns hold categories: {}. Give the candidate pram=0.8, the chance "
                         "that a category stays, or name the columns to mask in "
                         "columns=[...].")  # fmt: skip
        if isinstance(blocks := options.get("blocks"), dict):
            options["blocks"] = _cut(task, columns, **blocks)
        steps = [_step(self.method, {**options, "columns": list(columns)})] if columns else []
        if chance is not None and task.categories:
            drawn = {"p": chance, "invariant": True, "columns": list(task.categories)}
            steps.append(_step("pram", drawn))
        return steps

    def _refuse(self, columns: tuple[Any, ...], text: str) -> None:
        if columns:
            raise BadTableError(text.format(", ".join(map(repr, columns))))


def only(steps: list[Step]) -> Step:
    """Return the only step of a list."""
    if len(steps) != 1:
        raise BadOptionError("steps", len(steps), "one step; to_steps() gives all of them")
    return steps[0]


def steps_to_toml(steps: list[Step]) -> str:
    """Write steps as a plan file has them, to be pasted."""
    return "\n".join(
        "\n".join(["[[steps]]", *(f"{toml_key(n)} = {toml_value(v)}" for n, v in known.items())])
        + "\n"
        for known in (step.to_dict() for step in steps)
    )


def _step(method: str, options: Mapping[str, Any]) -> Step:
    options = {n: v for n, v in options.items() if v is not None}
    return Step(method=method, options=options)


def _cut(
    task: Task, columns: tuple[Any, ...], *, size: Any, by: Any, lot: int = 0
) -> list[list[Any]]:
    """Cut columns into blocks; those that a rule ties are one block, a category is its own."""
    if by not in BLOCKINGS:
        raise UnknownOptionError("by", by, BLOCKINGS)
    if isinstance(size, bool) or not isinstance(size, int) or not size >= 1:
        raise BadOptionError("size", size, "the number of columns in a block, 1 or more")
    places = cut_columns(task.values, size, by, seed=lot)
    blocks = [[task.numbers[at] for at in block] for block in places]
    for rule in task.rules or ():
        tied = [block for block in blocks if set(block) & set(rule.columns)]
        if len(tied) > 1:
            joined = {name for block in tied for name in block}
            blocks = [block for block in blocks if block not in tied]
            blocks.append([name for name in task.numbers if name in joined])
    return [*blocks, *([name] for name in columns if name in task.categories)]


def _plain(name: str, value: Any) -> Any:
    """Turn numbers of NumPy into Python's; refuse what JSON cannot hold."""
    item = getattr(value, "item", None)
    value = item() if callable(item) else value
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        expected = "a number, a text, True, False, None, or a list or mapping of these"
        raise BadOptionError(name, value, expected) from None


def _rebuild(method: str, options: dict[str, Any]) -> Candidate:
    return Candidate(method, **options)
