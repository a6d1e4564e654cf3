"""What can go wrong, in words a data holder can act on.

An error says what was given, what was expected and what to do. The class has the sentences, so that
the place that raises it only hands over the facts: `GroupSizeError.too_small(k=1)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from ._wording import Mistake, Sentence, as_it_was, fill, itemise, list_mistakes

__all__ = [
    "AttackError", "BadFileError", "BadOptionError", "BadTableError", "BrokenPromiseError",
    "ClusterCountError", "CollapsedError", "CommandError", "ContradictionError",
    "DataNotFoundError", "DiversityError", "EmptiedColumnWarning", "GroupSizeError",
    "IncomparableError",
    "InterruptedWarning", "LinkageError",
    "MissingPackageError", "MissingValuesError", "Mistake", "NoCandidateError",
    "NoWholeSolutionError", "PlanError", "PlanFileError", "RefusedError", "RuleSyntaxError",
    "RuleTableError", "RuleTranslationError", "SmallJointGroupsWarning", "TessellaError",
    "TessellaWarning", "UnchangedWarning", "UnfinishedWarning", "UnknownColumnError",
    "UnknownOptionError", "UnpairedError", "UnreachableError", "UnsureKindWarning",
]  # fmt: skip


def __getattr__(name: str) -> object:
    now = " It is now called BadOptionError." if name == "OutOfRangeError" else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{now}")


class TessellaError(Exception):
    """Every error that tessella raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        """Let an error of another process arrive as it is: classes build messages from facts."""
        return as_it_was, (type(self), self.args, self.__dict__)


class TessellaWarning(UserWarning):
    """Every warning that tessella gives."""


class MachineCodeWarning(TessellaWarning):
    """Machine code that was compiled ahead of time and cannot be loaded."""

    def __init__(self, file: str, reason: object) -> None:
        super().__init__(
            f"Machine code is compiled now, because {file} cannot be loaded: {reason}. To start "
            "faster, install tessella again; in a clone remove the file and run make."
        )


class GroupSizeError(TessellaError, ValueError):
    """A k that no grouping of this table can honour."""

    not_an_integer = Sentence(
        "k must be a whole number of records, and is {k!r} ({k.__class__.__name__}). Give an "
        "integer of at least 2, for example k=3."
    )
    too_small = Sentence(
        "k={k} protects nobody: a group of one is the record itself. Give k of at least 2; offices "
        "commonly use 3, 5 or 10."
    )
    more_than_records = Sentence(
        "k={k} needs at least {k} records, and the table has {n!c}. Give a smaller k."
    )
    single_record = Sentence(
        "k={k} needs at least {k} records, and the table has {n!c}. No k is small enough: a group "
        "has at least 2. Give a table with more records."
    )
    single_unit = Sentence(
        "k={k} needs at least {k} units, and the table has one, in {n!c}. No k is small enough: a "
        "group has at least 2 units. Give a table with more units, or no column of units."
    )
    small_strata = Sentence(
        "k={k} cannot be kept in {sizes!n} of the strata, which have fewer {what}: {sizes!t}. "
        "Merge these strata with others, or give a smaller k."
    )
    more_than_units = Sentence(
        "k={k} needs at least {k} units, and the table has {n_units} in {n!c}. Give a smaller k."
    )
    small_patterns = Sentence(
        "k={k} cannot be kept for {sizes!n} of the missing patterns, which fewer {what} share "
        "({sizes!p}). Such a pattern identifies its records: fill these cells, drop these "
        "records or columns, or give a smaller k."
    )
    small_parts = Sentence(
        "k={k} cannot be kept in {sizes!n} of the parts into which conditions, signs, strata and "
        "missing values cut the table; they have fewer {what}: {sizes!t}. Give a smaller k, merge "
        'strata, give up a condition, or give small="merge": such records then join the part that '
        "differs in the fewest rules."
    )
    crowded = Sentence("A unit has {most} of {n} records of a part, over 1/{k}. Give a smaller k.")
    given_twice = Sentence("The masker has k={masker!r}, its grouping k={method!r}. Give k once.")


class DiversityError(TessellaError, ValueError):
    """An l or t that no grouping of this table can have."""

    whole = Sentence(
        "{what} of {column!r} cannot be kept: all records together have {label} {reached}, and no "
        "groups can do better. Require no more than that."
    )
    strata = Sentence(
        "{what} of {column!r} cannot be kept in {reached!n} of the strata; all records of each "
        "together have {label}: {reached!t}. No groups can do better: require less, or "
        "merge these strata with others."
    )
    parts = Sentence(
        "{reached!n} of the parts into which conditions, signs, strata and missing values cut the "
        "table cannot keep what is required of confidential values, in any groups (what all "
        "their records have together): {reached!t}. Require less, merge strata, give up a "
        'condition, or give small="merge": such records then join the part that differs in the '
        "fewest rules."
    )
    unknown = Sentence("Column {column!r} has no known value: l and t need at least one.")


class ClusterCountError(TessellaError, ValueError):
    """A number of clusters that the table cannot have."""

    not_an_integer = Sentence(
        "n_clusters must be a whole number of at least 1, and is {c!r} ({c.__class__.__name__})."
    )
    more_than_records = Sentence(
        "n_clusters={c} needs at least {c} records, and the table has {n!c}. Give fewer clusters "
        "or a larger table."
    )
    more_than_distinct = Sentence(
        "n_clusters={c} needs at least {c} different records, and only {distinct} of the table's "
        "{n} are different. Centres would coincide: give n_clusters={distinct} or fewer."
    )


class CollapsedError(TessellaError, ValueError):
    """A fuzzy clustering whose centres coincide: there are fewer clusters than asked for."""

    def __init__(self, given: str, *, coincide: int, c: int, even: bool, advice: str) -> None:
        self.coincide = coincide
        what = f"{coincide} of {c} centres coincide with another"
        if even:
            what = f"all memberships are 1/{c}" + (f", and {what}" if coincide else "")
        super().__init__(
            f"With {given} the clustering collapsed: {what}. It is too fuzzy for this table and "
            f"this number of clusters. {advice}"
        )


def _stated(name: str, given: object) -> str:
    """Write what was given as it stands in Python, after a command, or after its description."""
    if name.isidentifier():
        return f"{name}={given!r}"
    if name.startswith("-"):
        from shlex import quote

        return f"{name} {quote(str(given))}"
    return f"{name}: {given!r}"


class UnknownOptionError(TessellaError, ValueError):
    """An option that is not one of those offered."""

    def __init__(self, name: str, given: object, offered: Iterable[object]) -> None:
        choices = ", ".join(repr(choice) for choice in offered)
        super().__init__(f"{_stated(name, given)} is not known. Give one of: {choices}.")


class PlanError(TessellaError, ValueError):
    """Rules that no masking keeps together, and why."""


class RefusedError(TessellaError, ValueError):
    """A release that is withheld: it would break a promise."""


class UnreachableError(TessellaError, ValueError):
    """A wish that no parameters meet."""

    def __init__(self, name: str, wished: float, nearest: float, unit: str) -> None:
        super().__init__(
            f"{name}={wished:g} cannot be met on this table; the nearest that was found is "
            f"{nearest:.4g} {unit}. Change k, or the wish."
        )


class NoCandidateError(TessellaError, LookupError):
    """No candidate of an exploration is as good as was wished."""

    def __init__(self, wished: Sequence[str], nearest: Sequence[str]) -> None:
        self.wished, self.nearest = list(wished), list(nearest)
        what = f"No candidate has {' and '.join(wished)}"
        super().__init__(
            f"{what}. The nearest: {'; '.join(nearest)}. Relax the limits, or explore more."
            if nearest
            else f"{what}: all were refused. Correct what the reasons name, or give a smaller k."
        )


class BadOptionError(TessellaError, ValueError):
    """An argument or option whose value cannot be used."""

    def __init__(self, name: str, given: object, expected: str) -> None:
        what = f"{name} is not given" if given is None else f"{_stated(name, given)} cannot be used"
        super().__init__(f"{what}. Give {expected}.")


class CommandError(TessellaError, ValueError):
    """Arguments of a command that are missing, or do not go together."""

    lacking = Sentence("{command} needs {what}.")
    stated_twice = Sentence("Leave out {twice}: the plan says it. Or leave out --plan {plan}.")


class UnknownColumnError(TessellaError, KeyError):
    """A column that the table does not have."""

    def __init__(self, given: object, columns: Sequence[object], *, who: str = "The call") -> None:
        names = {str(column): column for column in columns}
        near = get_close_matches(str(given), list(names), n=1)
        more = ", ..." if len(names) > 12 else ""
        hint = (
            f" Did you mean {names[near[0]]!r}?"
            if near
            else f" It has: {', '.join(list(names)[:12])}{more}."
        )
        self.message = f"{who} names a column {given!r} that the table does not have.{hint}"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


class BadTableError(TessellaError, ValueError):
    """A table that cannot be read as records and columns."""


class MissingValuesError(BadTableError):
    """Missing values where none are allowed."""

    def __init__(self, counts: dict[str, int], n: int) -> None:
        self.counts = counts
        shares = {name: f"{count} of {n}" for name, count in counts.items()}
        super().__init__(
            fill("The table has missing values (NaN or null) in: {counts!t}. ", counts=shares)
            + 'Give on_missing="pattern" to group records that lack the same values, or fill or '
            "drop them before."
        )


class IncomparableError(BadTableError):
    """Two tables that cannot be an original and what was masked of it, record by record."""

    same_order = "Give both with the same records, in the same order"
    some_columns = "Drop from both what is not released, and audit the rest"

    lengths = Sentence(
        "The original has {original:,} records and the masked table {masked:,}, so it is not known "
        "which belong together. {cls.same_order}."
    )
    other_order = Sentence(
        "The index of the masked table has {labels} than the original's, so record i of one may "
        "not be record i of the other. {cls.same_order}, masked.loc[original.index]; or, if the "
        "rows do stand in the same order, give both with .reset_index(drop=True)."
    )
    values = Sentence(
        "Column {column!r} ({dtype}) holds lists or objects that cannot be compared. Give numbers, "
        "text, categories, dates or booleans, or drop it from both tables."
    )
    _columns = Sentence(
        "The original and the masked table have different columns ({parts}). {cls.some_columns}."
    )

    @classmethod
    def columns(cls, lost: Sequence[object], new: Sequence[object]) -> IncomparableError:
        """Build the error for tables with different columns."""
        sides = {"only in the original": lost, "only in the masked table": new}
        parts = [fill("{side}: {names!l}", side=s, names=n) for s, n in sides.items() if n]
        return cls._columns(parts="; ".join(parts))


class UnpairedError(IncomparableError):
    """An original and a masked table whose records or cells do not stand side by side."""

    some_columns = "Name the columns to compare with columns=[...], or drop the others from both"

    kinds = Sentence(
        "Column {column!r} holds {original} in the original and {masked} in the masked table. Give "
        "a schema that calls it nominal to compare both as categories, or leave it out with "
        "columns=[...]."
    )
    one_sided = Sentence(
        "Cells are missing in one of the tables only, of {n} records: {column!r} ({lost} only in "
        'the masked table, {found} only in the original). Give on_unpaired="skip" to compare the '
        "cells that both tables have; lost_cells then is the share that is gone."
    )


class LinkageError(IncomparableError):
    """Two tables that record linkage cannot compare."""

    same_order = (
        "Give both in the same order, or id= the name of a column in both tables that identifies "
        "the records"
    )

    identifiers = Sentence(
        "The records cannot be matched by id={column!r}: {problem}. Each masked record needs one "
        "identifier of its own, and one original record with the same identifier."
    )
    nothing_common = Sentence(
        "The two tables have no variable in common to link by: the original has {original!l}, the "
        "masked table {masked!l}. Rename the columns of one of them, or give known= the variables "
        "that the intruder knows."
    )
    one_record = Sentence(
        "The original has one record, which every guess finds. Risk is a share among records: give "
        "a table of at least two."
    )
    missing = Sentence(
        "The {distance} distance needs every value, and some are missing in: {counts!t}. Give "
        'distance="gower", which compares what both records have, or leave these variables out '
        "with known=."
    )
    not_numbers = Sentence(
        "The {distance} distance needs numbers, and these variables hold something else: "
        '{named!t}. Give distance="gower" for mixed tables, or leave them out with known=.'
    )
    too_many = Sentence("{what} is available up to {most:,}, and {given:,} were given. {instead}")


class AttackError(BadTableError):
    """Two tables, or a method, that an attack which knows the method cannot work on."""

    not_from = Sentence(
        "This table cannot come from {method}: for {lacking:,} of {n:,} masked records the true "
        "original is not among the candidates. Check the parameters, the columns and the order of "
        "the rows; or give strict=False for what an intruder finds who relies on them."
    )
    no_such_values = Sentence(
        "Column {column!r} cannot come from {method}: {count:,} of its released values {why}. "
        "Check the method, its parameters, and which columns it masked."
    )
    incomplete = Sentence(
        "{what} reads group sizes from the release, so it needs all records: the original has "
        "{original:,} and the masked table {masked:,}. Give the whole masked table."
    )
    nothing_masked = Sentence(
        "The intruder knows none of the masked columns: masked are {masked!l}, known are "
        "{known!l}. Name at least one of them in known=, or correct columns=."
    )
    not_numbers = Sentence(
        "This attack knows how numbers were masked, and these columns of the method hold "
        "categories: {columns!l}. If they are numbers, correct their kind; if they were not "
        "masked, leave them out of columns=: they then count as released as they are."
    )
    no_attack = Sentence(
        "No attack here knows the method of {given.__class__.__name__}. There is one for: "
        "{offered!t}. For others use tessella.risk.link or learn."
    )
    moved = Sentence(
        "This {masker} moved numbers once more to keep its rules, so what is released is not what "
        "the method alone gives, and its candidates would be wrong. Attack the table with "
        "tessella.risk.link or learn instead."
    )


class MissingPackageError(TessellaError, ImportError):
    """An optional package that is not installed.

    The hint names the packages of the extra and not `tessella[extra]`: pip would look for a
    project called tessella on its index, whereas tessella may be installed from a clone or a
    wheel, and PyPI has another project of that name.
    """

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        names = _requirements(extra) or [package.partition(".")[0]]
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f"Install what the extra tessella[{extra}] brings: "
            f"pip install {' '.join(names)}"
        )


def _requirements(extra: str) -> list[str]:
    """Return the packages of an extra as arguments of pip, quoted for every shell."""
    from importlib import metadata  # loads some forty modules, which `import tessella` does without

    try:
        every = metadata.requires("tessella") or []
    except metadata.PackageNotFoundError:  # the source runs without having been installed
        every = []
    pairs = [line.partition(";") for line in every]
    wanted = f"extra == '{extra}'"
    return [f'"{name.strip()}"' for name, _, when in pairs if when.strip() == wanted]


class DataNotFoundError(TessellaError, FileNotFoundError):
    """A benchmark table that is not on this machine."""


class BadFileError(TessellaError, ValueError):
    """A file that cannot be read or written as asked, with the line where that shows.

    Attributes
    ----------
    path : str
        The file.
    line : int or None
        The line of the file (or row of the sheet), counted from 1.
    problem : str
        What is wrong with it, with the place and without advice.
    """

    def __init__(self, path: object, problem: str, advice: str, *, line: int | None = None) -> None:
        self.path, self.line = str(path), line
        where = f"{self.path}, line {line}" if line else self.path
        self.problem = f"{where}: {problem}."
        super().__init__(f"{self.problem} {advice}.")


class BrokenPromiseError(TessellaError, AssertionError):
    """tessella found its own result wrong and refuses to hand it out."""

    group_too_small = Sentence(
        "{method} made a group of {smallest} records although k={k}; the result is withheld. This "
        "is a bug in tessella: please report it with the table's shape and k."
    )
    too_few_units = Sentence(
        "{method} made a group of {smallest} units although k={k}; the result is withheld. This "
        "is a bug in tessella: please report it with the table's shape, the number of units and k."
    )
    not_diverse = Sentence(
        "{method} made {count} groups whose confidential values break what was asked for; the "
        "result is withheld. This is a bug in tessella: please report it with the table's shape."
    )
    group_not_alike = Sentence(
        "{count} released records differ from the others of their group ({method}); the result is "
        "withheld. This is a bug in tessella: please report it with the dtypes."
    )


class _MistakesError(TessellaError, ValueError):
    text = ""

    def __init__(self, mistakes: Sequence[Mistake], *, origin: str | None = None) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(list_mistakes(self.mistakes, origin or self.text))


class RuleSyntaxError(_MistakesError):
    """Rules that cannot be read, with every mistake that was found."""

    text = "the rules"


class PlanFileError(_MistakesError):
    """A plan file that cannot be used, with every mistake that was found."""

    text = "the plan"


class RuleTableError(BadTableError):
    """Rules that a table cannot be confronted with; `problems` has all of them."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(itemise("The table cannot be confronted with the rules:", problems))


class RuleTranslationError(TessellaError, ValueError):
    """Rules that another language cannot express; `problems` has all of them."""

    def __init__(self, problems: Sequence[str], *, language: str) -> None:
        self.problems = tuple(problems)
        head = f"{language} cannot say these rules; leave them out or write them in another way:"
        super().__init__(itemise(head, problems))


class ContradictionError(TessellaError, ValueError):
    """Rules that no record can obey together; `rows` has a least set of them, by name."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.rows = tuple(rows)
        listed = "; ".join(repr(row) for row in rows)
        alone = f"No record can obey this rule: {listed}. Correct it or leave it out."
        others = "Without any one of them the others could be kept: correct or leave out one."
        several = f"No record can obey these {len(self.rows)} rules together: {listed}. {others}"
        super().__init__(alone if len(self.rows) == 1 else several)


class NoWholeSolutionError(TessellaError, ValueError):
    """Rules that whole numbers cannot obey; `rows` has a least set of them, by name."""

    def __init__(self, rows: Sequence[str], *, record: int | None = None) -> None:
        self.rows = tuple(rows)
        self.record = record
        listed = "; ".join(repr(row) for row in rows)
        where = "" if record is None else f" within the bounds of record {record}"
        super().__init__(
            f"No whole numbers obey {listed}{where}. Release some of the columns as real numbers, "
            "widen the bounds, or correct the rules."
        )


class UnfinishedWarning(TessellaWarning):
    """A search stopped early and gives the best that it had."""

    of_sweeps = Sentence(
        "After {sweeps} sweeps the centres still move by more than tol={tol:g} of the table's "
        "spread. Give a larger max_iter, or a larger tol."
    )


class InterruptedWarning(UnfinishedWarning):
    """A search that Ctrl-C stopped gives the best that it had."""


class EmptiedColumnWarning(TessellaWarning):
    """A column lost all its values when cells were suppressed."""

    of_patterns = Sentence(
        "All values of {columns} are suppressed: fewer than k = {k} records or units lack one, and "
        "what is missing stays missing. Fill these gaps in the file, leave such records out of "
        "it, or drop the column."
    )


class UnchangedWarning(TessellaWarning):
    """Numbers that masking left as they were."""

    by_rounding = Sentence(
        "Only {percent:.3g} % of the numbers of {column!r} were changed: the noise is small "
        "compared with the steps that the column is rounded to. Give a larger scale, or "
        "round_integers=False, or use another method for this column."
    )
    by_keys = Sentence(
        "The columns of given= explain {percent:.3g} % of the ranks of {column!r}: shuffled given "
        "them, most numbers stay near where they were. Leave out the keys that explain {column!r}."
    )
    without_donor = Sentence(
        "Of {risky:,} units at risk, {count:,} found no donor and stay in their region: no unit "
        "that was still free in another one agrees with them. Give a further profile with "
        "fewer columns in similar=[...], or coarser keys=[...]."
    )


class UnsureKindWarning(TessellaWarning):
    """Kinds of columns, or missing codes, that were guessed and that somebody should look at."""


class SmallJointGroupsWarning(TessellaWarning):
    """Blocks masked apart: the joint release has records that stand for fewer than k."""

    of = Sentence(
        "k={k} holds within each block, not for whole records: {below} of {n} records share all "
        "their released values with fewer than {k} records (the fewest: {smallest}). Give "
        "blocks=None for k over all columns, or judge the risk of the joint release."
    )
