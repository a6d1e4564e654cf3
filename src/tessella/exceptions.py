"""What can go wrong, in words a data holder can act on.

An error says what was given, what was expected and what to do. The class writes the sentence, so
that the place that raises it only hands over the facts, and a test may look at the facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

__all__ = [
    "AttackError",
    "BadFileError",
    "BadOptionError",
    "BadTableError",
    "BrokenPromiseError",
    "ClusterCountError",
    "CollapsedError",
    "ContradictionError",
    "DataNotFoundError",
    "GroupSizeError",
    "IncomparableError",
    "InterruptedWarning",
    "LinkageError",
    "MissingPackageError",
    "MissingValuesError",
    "Mistake",
    "NoCandidateError",
    "NoWholeSolutionError",
    "PlanError",
    "PlanFileError",
    "RefusedError",
    "RuleSyntaxError",
    "RuleTableError",
    "RuleTranslationError",
    "SmallJointGroupsWarning",
    "TessellaError",
    "TessellaWarning",
    "UnchangedWarning",
    "UnfinishedWarning",
    "UnknownColumnError",
    "UnknownOptionError",
    "UnpairedError",
    "UnreachableError",
]


_RENAMED = {"OutOfRangeError": "BadOptionError"}


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        raise AttributeError(f"{__name__}.{name} is now called {_RENAMED[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class TessellaError(Exception):
    """Every error that tessella raises on purpose."""


class TessellaWarning(UserWarning):
    """Every warning that tessella gives."""


class GroupSizeError(TessellaError, ValueError):
    """A k that no grouping of this table can honour."""

    @classmethod
    def not_an_integer(cls, k: object) -> GroupSizeError:
        """Build the error for a k such as 2.5, "3" or True."""
        return cls(
            f"k must be a whole number of records, and is {k!r} ({type(k).__name__}). "
            "Give an integer of at least 2, for example k=3."
        )

    @classmethod
    def too_small(cls, k: int) -> GroupSizeError:
        """Build the error for k below 2."""
        return cls(
            f"k={k} protects nobody: a group of one is the record itself. "
            "Give k of at least 2; offices commonly use 3, 5 or 10."
        )

    @classmethod
    def more_than_records(cls, k: int, n: int) -> GroupSizeError:
        """Build the error for k above the number of records."""
        records = "1 sample" if n == 1 else f"{n} records"
        return cls(
            f"k={k} needs at least {k} records, and the table has {records}. "
            "Give a smaller k or a larger table."
        )

    @classmethod
    def small_strata(cls, k: int, small: dict[str, int]) -> GroupSizeError:
        """Build the error for strata with fewer than k records."""
        named = ", ".join(f"{name} ({size})" for name, size in list(small.items())[:5])
        more = f" and {len(small) - 5} more" if len(small) > 5 else ""
        return cls(
            f"k={k} cannot be kept in {len(small)} of the strata, which have fewer records: "
            f"{named}{more}. Merge these strata with others, or give a smaller k."
        )

    @classmethod
    def small_patterns(cls, k: int, small: dict[str, int]) -> GroupSizeError:
        """Build the error for missing patterns that fewer than k records share."""
        named = "; ".join(f"{name}: {size}" for name, size in list(small.items())[:5])
        more = f"; and {len(small) - 5} more" if len(small) > 5 else ""
        return cls(
            f"k={k} cannot be kept for {len(small)} of the missing patterns, which fewer records "
            f"share ({named}{more}). What a record lacks would single it out: fill these cells, "
            "drop these records or columns, or give a smaller k."
        )

    @classmethod
    def small_parts(cls, k: int, small: dict[int, int]) -> GroupSizeError:
        """Build the error for parts that rules cut out and that have fewer than k records."""
        sizes = ", ".join(str(size) for size in sorted(small.values())[:8])
        return cls(
            f"k={k} cannot be kept in {len(small)} of the parts into which conditions, signs, "
            f"strata and missing values cut the table; they have fewer records: {sizes}. Give a "
            'smaller k, merge strata, give up a condition, or give small="merge": such records '
            "then join the part that differs in the fewest rules."
        )

    @classmethod
    def given_twice(cls, masker: object, method: object) -> GroupSizeError:
        """Build the error for a masker and its method with different k."""
        return cls(
            f"The masker has k={masker!r} and its grouping has k={method!r}. "
            "Give k once, to the masker."
        )


class ClusterCountError(TessellaError, ValueError):
    """A number of clusters that the table cannot have."""

    @classmethod
    def not_an_integer(cls, c: object) -> ClusterCountError:
        """Build the error for a number such as 2.5, "3", True or 0."""
        return cls(
            f"n_clusters must be a whole number of at least 1, and is {c!r} ({type(c).__name__})."
        )

    @classmethod
    def more_than_records(cls, c: int, n: int) -> ClusterCountError:
        """Build the error for more clusters than records."""
        records = "1 sample" if n == 1 else f"{n} records"
        return cls(
            f"n_clusters={c} needs at least {c} records, and the table has {records}. "
            "Give fewer clusters or a larger table."
        )

    @classmethod
    def more_than_distinct(cls, c: int, distinct: int, n: int) -> ClusterCountError:
        """Build the error for more clusters than different records."""
        return cls(
            f"n_clusters={c} needs at least {c} different records, and only {distinct} of the "
            f"table's {n} are different. Centres would coincide: give n_clusters={distinct} or "
            "fewer."
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


class UnknownOptionError(TessellaError, ValueError):
    """An option that is not one of those offered."""

    def __init__(self, name: str, given: object, offered: Iterable[object]) -> None:
        choices = ", ".join(repr(choice) for choice in offered)
        super().__init__(f"{name}={given!r} is not known. Give one of: {choices}.")


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
        super().__init__(
            f"No candidate has {' and '.join(wished)}. The nearest: {'; '.join(nearest)}. Allow "
            "more, or explore more candidates."
        )


class BadOptionError(TessellaError, ValueError):
    """An argument or option whose value cannot be used."""

    def __init__(self, name: str, given: object, expected: str) -> None:
        super().__init__(f"{name}={given!r} cannot be used. Give {expected}.")


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
        named = ", ".join(f"{name} ({count} of {n})" for name, count in list(counts.items())[:8])
        more = f" and {len(counts) - 8} more columns" if len(counts) > 8 else ""
        super().__init__(
            f"The table has missing values (NaN or null) in: {named}{more}. "
            'Give on_missing="pattern" to group records that lack the same values, or fill or drop '
            "them before."
        )


class IncomparableError(BadTableError):
    """Two tables that cannot be an original and what was released of it."""

    @classmethod
    def lengths(cls, original: int, released: int) -> IncomparableError:
        """Build the error for tables of different length."""
        return cls(
            f"The original has {original:,} records and the released table {released:,}. An audit "
            "compares record with record: give the original as it was masked, in the same order."
        )

    @classmethod
    def columns(cls, lost: Sequence[object], new: Sequence[object]) -> IncomparableError:
        """Build the error for tables with different columns."""
        parts = [
            f"{what}: {', '.join(map(repr, names[:8]))}{', ...' if len(names) > 8 else ''}"
            for what, names in (("only in the original", lost), ("only in the released table", new))
            if names
        ]
        return cls(
            f"The original and the released table have different columns ({'; '.join(parts)}). "
            "Drop from both what is not released, and audit the rest."
        )

    @classmethod
    def values(cls, column: object, dtype: str) -> IncomparableError:
        """Build the error for a column whose values have no equality."""
        return cls(
            f"Column {column!r} ({dtype}) holds lists or objects that cannot be compared. "
            "Give numbers, text, categories, dates or booleans, or drop it from both tables."
        )


class LinkageError(BadTableError):
    """Two tables that record linkage cannot compare."""

    @classmethod
    def lengths(cls, original: int, masked: int) -> LinkageError:
        """Build the error for tables of different length without an identifier."""
        return cls(
            f"The original has {original:,} records and the masked table {masked:,}, so it is not "
            "known which belong together. Give both in the same order, or id= the name of a column "
            "in both tables that says who is who."
        )

    @classmethod
    def other_order(cls) -> LinkageError:
        """Build the error for tables whose indexes are in different orders."""
        return cls(
            "The index of the masked table has the same labels as the original's in another order, "
            "so record i of one is not record i of the other, and every attack would seem to fail. "
            "Give masked.loc[original.index], or id= a column in both tables that says who is who; "
            "or, if the rows do stand in the same order, both with .reset_index(drop=True)."
        )

    @classmethod
    def identifiers(cls, column: object, problem: str) -> LinkageError:
        """Build the error for an identifier that does not say who is who."""
        return cls(
            f"The records cannot be aligned by id={column!r}: {problem}. Each masked record needs "
            "one identifier of its own, and one original with the same."
        )

    @classmethod
    def nothing_common(cls, original: Sequence[object], masked: Sequence[object]) -> LinkageError:
        """Build the error for tables without a variable to compare."""
        mine, theirs = (
            ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")
            for names in (original, masked)
        )
        return cls(
            "The two tables have no variable in common to link by: the original has "
            f"{mine or 'none'}, the masked table {theirs or 'none'}. Rename the columns "
            "of one of them, or give known= the variables that the intruder knows."
        )

    @classmethod
    def one_record(cls) -> LinkageError:
        """Build the error for an original of one record."""
        return cls(
            "The original has one record, which every guess finds. Risk is a share among records: "
            "give a table of at least two."
        )

    @classmethod
    def missing(cls, counts: dict[str, int], distance: str) -> LinkageError:
        """Build the error for missing values where the distance has no meaning for them."""
        named = ", ".join(f"{name} ({count})" for name, count in list(counts.items())[:8])
        return cls(
            f"The {distance} distance needs every value, and some are missing in: {named}. Give "
            'distance="gower", which compares what both records have, or leave these variables '
            "out with known=."
        )

    @classmethod
    def not_numbers(cls, named: Sequence[str], distance: str) -> LinkageError:
        """Build the error for categories where the distance needs numbers."""
        return cls(
            f"The {distance} distance needs numbers, and these variables hold something else: "
            f'{", ".join(named[:8])}. Give distance="gower" for mixed tables, or leave them out '
            "with known=."
        )

    @classmethod
    def too_many(cls, what: str, given: int, most: int, instead: str) -> LinkageError:
        """Build the error for a table that is too large for a method."""
        return cls(f"{what} is offered up to {most:,}, and was given {given:,}. {instead}")


class AttackError(BadTableError):
    """Two tables, or a method, that an attack which knows the method cannot work on."""

    @classmethod
    def not_from(cls, method: str, lacking: int, n: int) -> AttackError:
        """Build the error for a masked table that the stated method cannot have made."""
        return cls(
            f"This table cannot come from {method}: for {lacking:,} of {n:,} masked records the "
            "true original is not among the candidates. Check the parameters, the columns and the "
            "order of the rows; or give strict=False to see what an intruder finds who believes in "
            "them."
        )

    @classmethod
    def no_such_values(cls, column: object, method: str, count: int, why: str) -> AttackError:
        """Build the error for released values that the method does not make."""
        return cls(
            f"Column {column!r} cannot come from {method}: {count:,} of its released values {why}. "
            "Check the method, its parameters, and which columns= it masked."
        )

    @classmethod
    def incomplete(cls, what: str, original: int, masked: int) -> AttackError:
        """Build the error for an attack that needs every record of the release."""
        return cls(
            f"{what} reads group sizes from the release, so it needs all records: the original has "
            f"{original:,} and the masked table {masked:,}. Give the whole masked table."
        )

    @classmethod
    def nothing_masked(cls, masked: Sequence[object], known: Sequence[object]) -> AttackError:
        """Build the error for an intruder who knows no masked variable."""
        mine, theirs = (", ".join(map(repr, names[:8])) for names in (masked, known))
        return cls(
            f"The intruder knows none of the masked columns: masked are {mine or 'none'}, known "
            f"are {theirs or 'none'}. Name at least one of them in known=, or correct columns=."
        )

    @classmethod
    def not_numbers(cls, columns: Sequence[object]) -> AttackError:
        """Build the error for masked columns that hold something else than numbers."""
        named = ", ".join(map(repr, columns[:8]))
        return cls(
            f"These columns are said to be masked as numbers, and hold something else: {named}. "
            "Leave them out of columns=; they then count as released as they are."
        )

    @classmethod
    def no_attack(cls, given: object, offered: Sequence[str]) -> AttackError:
        """Build the error for a method that no attack is known for."""
        return cls(
            f"No attack here knows the method of {type(given).__name__}. There is one for: "
            f"{', '.join(offered)}. For others use tessella.risk.link or learn."
        )

    @classmethod
    def moved(cls, masker: str) -> AttackError:
        """Build the error for a masker whose numbers were moved once more to keep rules."""
        return cls(
            f"This {masker} moved numbers once more to keep its rules, so what is released is not "
            "what the method alone makes, and its candidates would be wrong. Attack the table with "
            "tessella.risk.link or learn instead."
        )


class UnpairedError(IncomparableError):
    """An original and a masked table whose records or cells do not stand side by side."""

    @classmethod
    def shapes(cls, original: int, masked: int) -> UnpairedError:
        """Build the error for tables of different length."""
        return cls(
            f"The original has {original:,} records and the masked table {masked:,}. Loss is "
            "measured record by record: give both tables with the same records, in the same order."
        )

    @classmethod
    def other_columns(cls, lost: Sequence[object], new: Sequence[object]) -> UnpairedError:
        """Build the error for tables with different columns."""
        parts = [
            f"{what}: {', '.join(map(repr, names[:8]))}{', ...' if len(names) > 8 else ''}"
            for what, names in (("only in the original", lost), ("only in the masked table", new))
            if names
        ]
        return cls(
            f"The original and the masked table have different columns ({'; '.join(parts)}). Name "
            "the columns to compare with columns=[...], or drop the others from both."
        )

    @classmethod
    def other_order(cls, *, shuffled: bool) -> UnpairedError:
        """Build the error for tables with different indexes."""
        how = "the same labels in another order" if shuffled else "other labels"
        return cls(
            f"The index of the masked table has {how} than the original's, so their rows may not "
            "belong together. Sort both alike, masked.loc[original.index]; or, if the rows do "
            "stand in the same order, give both with .reset_index(drop=True)."
        )

    @classmethod
    def kinds(cls, column: object, original: str, masked: str) -> UnpairedError:
        """Build the error for a column of numbers on one side only."""
        return cls(
            f"Column {column!r} holds {original} in the original and {masked} in the masked table. "
            "Give a schema that calls it nominal to compare both as categories, or leave it out "
            "with columns=[...]."
        )

    @classmethod
    def one_sided(cls, counts: dict[str, tuple[int, int]], n: int) -> UnpairedError:
        """Build the error for cells that are missing in one of the tables only."""
        named = ", ".join(
            f"{name} ({lost} only in the masked table, {found} only in the original)"
            for name, (lost, found) in list(counts.items())[:5]
        )
        more = f" and {len(counts) - 5} more columns" if len(counts) > 5 else ""
        return cls(
            f"Cells are missing in one of the tables only, of {n} records: {named}{more}. Give "
            'on_unpaired="skip" to compare the cells that both tables have; lost_cells then tells '
            "the share that is gone."
        )


class MissingPackageError(TessellaError, ImportError):
    """An optional package that is not installed."""

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f"Install it with: pip install 'tessella[{extra}]'"
        )


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
    """

    def __init__(self, path: object, problem: str, advice: str, *, line: int | None = None) -> None:
        self.path, self.line = str(path), line
        where = f"{self.path}, line {line}" if line else self.path
        super().__init__(f"{where}: {problem}. {advice}.")


class BrokenPromiseError(TessellaError, AssertionError):
    """tessella found its own result wrong and refuses to hand it out."""

    @classmethod
    def group_too_small(cls, k: int, smallest: int, method: str) -> BrokenPromiseError:
        """Build the error for a result with a group below k."""
        return cls(
            f"{method} made a group of {smallest} records although k={k}; the result is withheld. "
            "This is a bug in tessella: please report it with the table's shape and k."
        )

    @classmethod
    def group_not_alike(cls, count: int, method: str) -> BrokenPromiseError:
        """Build the error for a release in which records of one group differ."""
        return cls(
            f"{count} released records differ from the others of their group ({method}); the "
            "result is withheld. This is a bug in tessella: please report it with the dtypes."
        )


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One thing that is wrong in a text that somebody wrote: rules, or a plan file.

    `where` is the place ("line 4"), `text` the text around it, `start` and `width` the spot in
    that text, or None where there is no single spot.
    """

    where: str
    message: str
    hint: str = ""
    text: str = ""
    start: int | None = None
    width: int = 1

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.message}"]
        if self.text and self.start is not None:
            text, start = self.text.replace("\t", " "), self.start
            if len(text) > 100:  # a window around the spot
                cut = max(0, min(start - 40, len(text) - 90))
                text, start = text[cut : cut + 90], start - cut
            carets = "^" * max(1, min(self.width, len(text) - start))
            lines += [f"    {text}", "    " + " " * start + carets]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


def _list_mistakes(mistakes: Sequence[Mistake], origin: str) -> str:
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    shown = [str(mistake) for mistake in mistakes[:20]]
    more = [f"... and {len(mistakes) - 20} more."] if len(mistakes) > 20 else []
    return "\n".join([f"{count} in {origin}:", *shown, *more])


class RuleSyntaxError(TessellaError, ValueError):
    """Rules that cannot be read, with every mistake that was found."""

    def __init__(self, mistakes: Sequence[Mistake], *, origin: str = "the rules") -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(_list_mistakes(self.mistakes, origin))


class PlanFileError(TessellaError, ValueError):
    """A plan file that cannot be used, with every mistake that was found."""

    def __init__(self, mistakes: Sequence[Mistake], *, origin: str = "the plan") -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(_list_mistakes(self.mistakes, origin))


class RuleTableError(BadTableError):
    """Rules that a table cannot be confronted with; `problems` has all of them."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        head = "The table cannot be confronted with the rules:"
        super().__init__("\n".join([head, *(f"- {problem}" for problem in problems)]))


class RuleTranslationError(TessellaError, ValueError):
    """Rules that another language cannot say; `problems` has all of them."""

    def __init__(self, problems: Sequence[str], *, language: str) -> None:
        self.problems = tuple(problems)
        head = f"{language} cannot say these rules; leave them out or write them in another way:"
        super().__init__("\n".join([head, *(f"- {problem}" for problem in problems)]))


class ContradictionError(TessellaError, ValueError):
    """Rules that no record can obey together; `rows` has a least set of them, by name."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.rows = tuple(rows)
        listed = "; ".join(repr(row) for row in rows)
        super().__init__(
            f"No record can obey this rule: {listed}. Correct it or leave it out."
            if len(self.rows) == 1
            else f"No record can obey these {len(self.rows)} rules together: {listed}. "
            "Without any one of them the others could be kept: correct or leave out one."
        )


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

    @classmethod
    def of_sweeps(cls, sweeps: int, tol: float) -> UnfinishedWarning:
        """Build the warning for centres that still moved after the last sweep allowed."""
        return cls(
            f"After {sweeps} sweeps the centres still move by more than tol={tol:g} of the table's "
            "spread. Give a larger max_iter, or a larger tol."
        )


class InterruptedWarning(UnfinishedWarning):
    """A search that Ctrl-C stopped gives the best that it had."""


class UnchangedWarning(TessellaWarning):
    """Numbers that masking left as they were."""

    @classmethod
    def by_rounding(cls, column: object, changed: float) -> UnchangedWarning:
        """Build the warning for noise that was rounded away."""
        return cls(
            f"Only {100 * changed:.3g} % of the numbers of {column!r} were changed: the noise is "
            "small beside the steps that the column is rounded to. Give a larger scale, or "
            "round_integers=False, or take another method for this column."
        )


class SmallJointGroupsWarning(TessellaWarning):
    """Blocks masked apart: the joint release has records that stand for fewer than k."""

    @classmethod
    def of(cls, k: int, smallest: int, below: int, n: int) -> SmallJointGroupsWarning:
        """Build the warning from the number of records below k and the smallest joint group."""
        return cls(
            f"k={k} holds within each block, not for whole records: {below} of {n} records share "
            f"all their released values with fewer than {k} records (the fewest: {smallest}). "
            "Give blocks=None for k over all columns, or judge the risk of the joint release."
        )
