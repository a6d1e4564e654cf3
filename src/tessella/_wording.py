"""How messages are worded: sentences with places for facts, and mistakes shown where they stand."""

import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

SHOWN = 8  # names in a message; of more, their number or "..."
SAMPLE = "sample"  # scikit-learn's word for a record
Built = TypeVar("Built", bound=Exception)


class _Formatter(string.Formatter):
    """Formats facts.

    !l lists names, !t texts or names with counts, !p phrases with counts; !n is how many there are,
    !c a number of records.
    """

    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion == "l":
            return listed(list(map(repr, value))) or "none"
        if conversion == "t":
            counted = isinstance(value, Mapping)
            texts = [f"{name} ({n})" for name, n in value.items()] if counted else list(value)
            more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
            return ", ".join(map(str, texts[:SHOWN])) + more
        if conversion == "p":
            parts = [f"{name}: {n}" for name, n in list(value.items())[:SHOWN]]
            return "; ".join(parts) + ("; ..." if len(value) > SHOWN else "")
        if conversion == "n":
            return len(value)
        if conversion == "c":
            # check_estimator of scikit-learn looks for its own word for one record
            return f"1 {SAMPLE}" if value == 1 else f"{value} records"
        return super().convert_field(value, conversion)


class Sentence:
    """The message of a class of errors or warnings, with places for facts.

    `too_small = Sentence("k={k} protects ...")` in the body of the class makes `too_small(k=1)` a
    function that builds the error. `{cls...}` is the class, for what differs between classes that
    share a sentence.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, _: object, owner: type[Built]) -> Callable[..., Built]:
        return lambda **facts: owner(fill(self.text, cls=owner, **facts))


def fill(text: str, **facts: object) -> str:
    """Put facts into a text."""
    return _Formatter().format(text, **facts)


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


def counted(number: int, noun: str) -> str:
    """Write a number of things: 1 record, 2,000 records."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def suggest(given: str, known: Iterable[str]) -> str:
    """Ask whether the known name that is most like the given one was meant, if one is."""
    near = get_close_matches(given, list(known), n=1)
    return f"Did you mean {near[0]!r}?" if near else ""


def listed(names: Sequence[object]) -> str:
    """List the first names, for people."""
    return ", ".join(map(str, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns: the first and the last to the left, the numbers between to the right."""
    to_left = {0, len(rows[0]) - 1}
    widths = [max(map(len, cells)) for cells in zip(*rows)]
    return [
        "  ".join(
            cell.ljust(width) if part in to_left else cell.rjust(width)
            for part, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]


def list_mistakes(mistakes: Sequence[Mistake], origin: str) -> str:
    """List the first twenty mistakes of a text."""
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    more = [f"... and {len(mistakes) - 20} more."] if len(mistakes) > 20 else []
    return "\n".join([f"{count} in {origin}:", *map(str, mistakes[:20]), *more])


def itemise(head: str, problems: Iterable[str]) -> str:
    """List problems, each in a line of its own."""
    return "\n".join([head, *(f"- {problem}" for problem in problems)])


def as_it_was(kind: type[Built], args: Any, facts: Mapping[str, object]) -> Built:
    """Build an error of another process: not by __init__, which writes the message."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error
