"""What is explored: a table with its columns to mask (a task), and ways to protect it (candidates).

A candidate has the name of a step and values for its options, and nothing else, so that it can be
hashed, stored, compared, run again, and written into a plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._output import toml_key, toml_value
from .._parameters import Whole
from .._types import Floats, Name
from ..exceptions import BadOptionError, BadTableError, UnknownOptionError
from ..frame import Table, View
from ..masking import registry
from ..release import Step, Study
from ..release.roles import as_numbers
from ..release.steps import PREPARING, options_of
from ..rules import Rules
from ..schema import Schema

BLOCKINGS = ("order", "correlation", "contrast", "random")  # how columns can be cut


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A table that was read for exploring."""

    table: Any  # as it was given
    numbers: tuple[Name, ...]  # the columns to mask, by what they hold
    categories: tuple[Name, ...]
    rules: Rules | None  # that every released record must obey
    given: Schema | None = None  # what its holder knows of the columns

    @classmethod
    def of(
        cls, table: Any, *, columns: Any = None, rules: Any = None, schema: Schema | None = None
    ) -> Task:
        """Read a table, or raise an error that says why it cannot be explored."""
        source = Table.read(table)
        if source.n_rows < 2:
            raise BadTableError(
                f"The table has {source.n_rows} record, and a risk of being found needs others "
                "to be found among. Give a table of two records or more."
            )
        if schema is not None:
            schema.check(source)
            if columns is None:
                columns = list(schema.names("quasi-identifier"))
        names = _chosen(source, columns)
        about = None if rules is None else Rules.of(rules)
        known = _guessed(source, about) if schema is None else schema
        coded = {c.name for c in known if c.kind in ("nominal", "ordinal")}
        if schema is None:  # no date is a category because it was guessed to be one
            coded = {name for name in coded if source.facts(name).numeric}
        numbers = tuple(name for name in names if source.facts(name).numeric and name not in coded)
        texts = {n for n in names if source.facts(n).family in ("text", "category", "boolean")}
        categories = tuple(name for name in names if name in coded | texts)
        if others := [n for n in names if n not in {*numbers, *categories}]:
            listed = ", ".join(f"{name!r} ({source.facts(name).family})" for name in others)
            raise BadTableError(
                f"No method masks these columns: {listed}. Convert them to numbers or texts, or "
                "name the columns to mask in columns=[...]; the others are released as they are."
            )
        given = None if about is None else about.fix(source, schema=schema)
        return cls(table=table, numbers=numbers, categories=categories, rules=given, given=schema)

    @property
    def masked(self) -> tuple[Name, ...]:
        """All columns to mask, in the order of the table."""
        chosen = {*self.numbers, *self.categories}
        return tuple(name for name in self.source.columns if name in chosen)

    @cached_property
    def source(self) -> Table:
        """The table as tessella reads it."""
        return Table.read(self.table)

    @property
    def n(self) -> int:
        """The number of records."""
        return self.source.n_rows

    @cached_property
    def schema(self) -> Schema:
        """All columns to mask as quasi-identifiers, given units and weights, the others untouched.

        Kinds are those that `protect` takes: the schema's, or the same guess.
        """
        known = _guessed(self.source, self.rules) if self.given is None else self.given
        kept = {"role": "untouched", "unique": "kept"}  # nothing is released here
        masked = set(self.masked)
        given = {c.name for c in known if not c.guessed and c.role in ("unit", "weight")} - masked
        roles = {
            name: {"role": "quasi-identifier"} if name in masked else kept
            for name in self.source.columns
            if name not in given
        }
        return known.override(roles)

    @cached_property
    def original(self) -> View:
        """The table read with its schema."""
        return View(self.source, self.schema)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the table's content, columns to mask and rules: of no use without the table.

        It is as confidential as the store that it is kept in: whoever guesses the whole table
        can confirm the guess.
        """
        digest = hashlib.sha256()
        for name in self.source.columns:
            facts = self.source.facts(name)
            digest.update(repr((str(name), facts.family, facts.decimals)).encode())
            if facts.numeric:
                read = View(self.source).read([name])
                digest.update(np.where(read.missing, 0.0, read.values).tobytes())
                digest.update(read.state.tobytes())
            else:
                place, texts = self.source.labels(name)
                digest.update(np.ascontiguousarray(place).tobytes())
                digest.update("\x00".join(map(str, texts)).encode())
                digest.update(repr(self.source.order(name)).encode())
        rules = () if self.rules is None else tuple(rule.text for rule in self.rules)
        known = None if self.given is None else self.given.to_dict()
        digest.update(repr((self.numbers, self.categories, rules, known)).encode())
        return digest.hexdigest()


def _guessed(source: Table, rules: Rules | None) -> Schema:
    return as_numbers(Schema.guess(source), rules or Rules(), source)


def _chosen(source: Table, columns: Any) -> tuple[Name, ...]:
    if columns is None:
        return tuple(source.columns)
    if isinstance(columns, str) or source.has(columns):
        columns = (columns,)
    if not isinstance(columns, list | tuple):
        raise BadOptionError("columns", columns, "a list of names of columns to mask")
    for name in columns:
        source.place(name, who="columns")
    if not columns or len(set(columns)) < len(columns):
        raise BadOptionError("columns", columns, "at least one column, and each once")
    return tuple(columns)


def cut_columns(values: Floats, size: int, by: str, *, seed: int = 0) -> list[list[int]]:
    """Cut columns into blocks of `size`, the last may be smaller; return the places of each.

    A block of "correlation" ("contrast") is begun with the column whose |correlation| with the
    others left is largest (least) in sum, and takes, one by one, the column whose mean
    |correlation| with the block is largest (least). "order" takes neighbours, "random" a lot.
    """
    if by in ("correlation", "contrast"):
        close = _closeness(values)
        blocks = _greedy(close if by == "correlation" else -close, size)
    else:
        d = values.shape[1]
        places = np.random.default_rng(seed).permutation(d) if by == "random" else np.arange(d)
        blocks = [places[at : at + size].tolist() for at in range(0, d, size)]
    return sorted(sorted(block) for block in blocks)


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
        block = [max(left, key=lambda j: (close[j, left].sum(), -j))]
        left.remove(block[0])
        while left and len(block) < size:
            best = max(left, key=lambda j, here=tuple(block): (close[j, here].mean(), -j))  # type: ignore[misc]
            block.append(best)
            left.remove(best)
        blocks.append(block)
    return blocks


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
        allowed = [name for name in options_of(method) if name not in OWN]
        if entry.masks != "categories":
            allowed.append("pram")
        whole = dict(entry.defaults)
        for name, value in options.items():
            if name not in allowed:
                raise UnknownOptionError(f"option of {method!r}", name, allowed)
            whole[name] = _plain(name, value)
        implied = {"pram": None, **entry.signature_defaults}
        self.method = method
        self._options = {
            name: whole[name]
            for name in sorted(whole)
            if name in entry.defaults or name not in implied or whole[name] != implied[name]
        }

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
        return partial(Candidate, self.method, **self.options), ()

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
        text, chance = registry.find(self.method).describe(self._options), self.get("pram")
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
            _refuse(task.numbers, "PRAM alone masks categories, and these columns hold numbers: "
                    "{}. Take a method for numbers with pram=0.8.")  # fmt: skip
            columns = task.categories
        elif not alone and chance is None:
            _refuse(task.categories, f"{self.method.capitalize()} masks numbers, and these columns "
                    "hold categories: {}. Give the candidate pram=0.8, the chance that a category "
                    "stays, or name the columns to mask in columns=[...].")  # fmt: skip
        if isinstance(blocks := options.get("blocks"), dict):
            options["blocks"] = _cut(task, columns, **blocks)
        steps = [_step(self.method, {**options, "columns": list(columns)})] if columns else []
        if chance is not None and task.categories:
            drawn = {"p": chance, "invariant": True, "columns": list(task.categories)}
            steps.append(_step("pram", drawn))
        return steps


class PresentPlan(Candidate):
    """The steps of a plan, as they stand: a point of the map that is not a candidate to choose.

    It is stored and found again like any other; what it masks is for `evaluate_plan` to decide.

    Examples
    --------
    >>> from tessella.explore import PresentPlan
    >>> from tessella.release import Step
    >>> here = PresentPlan([Step(method="protect", options={"k": 3})], seed=1)
    >>> print(here)
    the present plan: protect, k = 3
    >>> here == PresentPlan.from_options(here.options)
    True
    """

    NAME = "present plan"

    def __init__(self, steps: Sequence[Step], *, seed: int | None = None) -> None:
        self.method = self.NAME
        self._options = {
            "seed": seed,
            "steps": [_plain("steps", step.to_dict()) for step in steps],
        }

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> PresentPlan:
        """Build it from its `options`."""
        return cls([Step.from_dict(step) for step in options["steps"]], seed=options["seed"])

    def __reduce__(self) -> tuple[Any, ...]:
        return PresentPlan.from_options, (self.options,)

    @property
    def label(self) -> str:
        """What a picture names it."""
        return self.NAME

    def __str__(self) -> str:
        steps: Any = self._options["steps"]
        masking = [step for step in steps if step["method"] not in PREPARING]
        texts = [step["method"] + (f", k = {step['k']}" if "k" in step else "") for step in masking]
        return f"the {self.NAME}: {'; '.join(texts)}"

    def __repr__(self) -> str:
        return f"PresentPlan({self._options['steps']!r})"

    def steps_for(self, task: Task | None) -> list[Step]:  # noqa: ARG002
        """Return the steps of the plan."""
        steps: Any = self._options["steps"]
        return [Step.from_dict(step) for step in steps]


def _refuse(columns: tuple[Any, ...], text: str) -> None:
    if columns:
        raise BadTableError(text.format(", ".join(map(repr, columns))))


def only(steps: list[Step]) -> Step:
    """Return the only step of a list."""
    if len(steps) != 1:
        raise BadOptionError("steps", len(steps), "one step; to_steps() gives all of them")
    return steps[0]


def steps_to_toml(steps: list[Step]) -> str:
    """Write steps as a plan file has them, to be pasted."""
    tables = []
    for step in steps:
        pairs = [f"{toml_key(n)} = {toml_value(value)}" for n, value in step.to_dict().items()]
        tables.append("\n".join(["[[steps]]", *pairs, ""]))
    return "\n".join(tables)


def _step(method: str, options: Mapping[str, Any]) -> Step:
    return Step(method=method, options={n: v for n, v in options.items() if v is not None})


def _cut(task: Task, columns: Any, *, size: Any, by: Any, lot: int = 0) -> list[list[Any]]:
    """Cut columns into blocks; those that a rule ties are one block, a category is its own."""
    if by not in BLOCKINGS:
        raise UnknownOptionError("by", by, BLOCKINGS)
    if not Whole(1).accepts(size):
        raise BadOptionError("size", size, "the number of columns in a block, 1 or more")
    values = View(task.source, task.given).matrix(task.numbers)  # NaN where missing
    places = cut_columns(values, size, by, seed=lot)
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
