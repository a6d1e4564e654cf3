"""What a notebook shows of a result: data only; the look is that of the reports.

A result describes itself as a `Display`: a verdict, figures, sections with tables and sentences,
and why it is confidential, if it is. `Displayed` gives it a `_repr_html_`, which loads the
templates of `tessella.reports` when a notebook asks for it, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

from ._wording import align

# Why an output is confidential.
COMPARED = "it compares with the original."
RISK = "it shows how well attacks on the table work."
RENDERER = "tessella.reports.notebook"  # by name: it is above all rooms that have results


@dataclass(frozen=True)
class Bar:
    """A cell of a table that draws a share from 0 to 1 beside its text."""

    share: float
    text: str


@dataclass(frozen=True)
class Code:
    """A cell of a table that is code."""

    text: str


class Figure(NamedTuple):
    """One figure that stands out: "Records", "1,080", "asked for: 1,000"."""

    title: str
    value: str
    small: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a display: a table, a list of sentences, or both.

    `rows` are the rows of a table, its header first. `texts` are the columns that are aligned to
    the left, the others are numbers; None is the first and the last, as `align` has it. A line that
    begins with two spaces belongs to the one before. `more` says what is left out.
    """

    title: str = ""
    rows: Sequence[Sequence[str | Bar | Code]] = ()
    lines: Sequence[str] = ()
    more: Sequence[str] = ()
    texts: Collection[int] | None = None
    folded: bool = False  # shown when the reader opens it

    def to_text(self) -> list[str]:
        """Return the lines that printing shows."""
        plain = [[cell if isinstance(cell, str) else cell.text for cell in r] for r in self.rows]
        table = align(plain) if plain else []
        return ["", f"{self.title}:", *table, *(f"- {line}" for line in self.lines), *self.more]


@dataclass(frozen=True, kw_only=True)
class Display:
    """What is shown of a result.

    `good` colours the verdict, `confidential` is the reason why the output must not be published,
    `picture` draws an SVG whose classes `drawing.css` colours.
    """

    title: str
    verdict: Sequence[str] = ()
    good: bool | None = None
    figures: Sequence[Figure] = ()
    sections: Sequence[Section] = ()
    confidential: str = ""
    picture: Callable[[], str] | None = None


class Displayed:
    """Results that a notebook shows as HTML: they define `_display`."""

    def _display(self) -> Display:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return str(import_module(RENDERER).to_html(self._display()))
