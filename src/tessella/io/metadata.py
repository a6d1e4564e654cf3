"""What a file says of its columns beside the values: labels, levels, missing codes, formats.

Notes, comments, authors and dates of the file are left behind on purpose: they speak of the
original, and nobody looks at them before a release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from ..exceptions import UnknownOptionError

__all__ = ["Level", "Metadata", "Span", "Variable"]

Level = Literal["nominal", "ordinal", "scale"]


@dataclass(frozen=True)
class Span:
    """All numbers from `low` to `high`, both included: a range of codes for "missing"."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class Variable:
    """What a file says of one column.

    Parameters
    ----------
    label : str
        What the column is about, in words.
    labels : mapping
        What values mean, such as {1: "employed"}.
    missing : tuple
        Values, and `Span`s of values, that stand for "missing" and are present in the data; in
        Stata and SAS the letters "a" to "z" of special missing values.
    level : {"nominal", "ordinal", "scale"} or None
        The measurement level.
    format : str
        The display format, in the words of the file's format, such as "F8.2".
    """

    label: str = ""
    labels: Mapping[Any, str] = field(default_factory=dict, hash=False)
    missing: tuple[Any, ...] = ()
    level: Level | None = None
    format: str = ""

    def __post_init__(self) -> None:
        if self.level is not None and self.level not in get_args(Level):
            raise UnknownOptionError("measurement level", self.level, get_args(Level))
        object.__setattr__(self, "labels", dict(self.labels))
        object.__setattr__(self, "missing", tuple(self.missing))

    def __bool__(self) -> bool:
        return bool(self.label or self.labels or self.missing or self.level or self.format)


@dataclass(frozen=True)
class Metadata:
    """What a file says of its columns.

    Parameters
    ----------
    variables : mapping of name to Variable

    Examples
    --------
    >>> from tessella.io import Metadata, Variable
    >>> known = Metadata({"work": Variable(label="Employment", labels={1: "yes", 2: "no"})})
    >>> known["work"].labels[2], known["age"].label
    ('no', '')
    >>> known.only({"work": [1, 1]})["work"].labels
    {1: 'yes'}
    >>> Metadata.from_dict(known.to_dict()) == known
    True
    """

    variables: Mapping[str, Variable] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        described = {str(name): variable for name, variable in self.variables.items() if variable}
        object.__setattr__(self, "variables", described)

    def __getitem__(self, name: str) -> Variable:
        return self.variables.get(name, Variable())

    def __bool__(self) -> bool:
        return bool(self.variables)

    def only(
        self, values: Mapping[str, Iterable[Any] | None], *, keep_labels: bool = False
    ) -> Metadata:
        """Keep what speaks of a released table: its columns, and the values that occur in them.

        Parameters
        ----------
        values : mapping of name to values
            The columns of the table and the values that occur in each; None keeps all labels of a
            column.
        keep_labels : bool
            Whether labels stay of values that do not occur. They tell that the values existed.
        """
        kept = {}
        for name, occurring in values.items():
            variable = self[name]
            if not keep_labels and occurring is not None and variable.labels:
                seen = set(occurring)
                labels = {value: text for value, text in variable.labels.items() if value in seen}
                variable = replace(variable, labels=labels)
            kept[name] = variable
        return Metadata(kept)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return plain dicts, lists and scalars, leaving out what is empty."""
        out: dict[str, dict[str, Any]] = {}
        for name, variable in self.variables.items():
            described: dict[str, Any] = {}
            if variable.label:
                described["label"] = variable.label
            if variable.labels:
                described["labels"] = [[value, label] for value, label in variable.labels.items()]
            if variable.missing:
                described["missing"] = [
                    {"low": code.low, "high": code.high} if isinstance(code, Span) else code
                    for code in variable.missing
                ]
            if variable.level:
                described["level"] = variable.level
            if variable.format:
                described["format"] = variable.format
            out[name] = described
        return out

    @classmethod
    def from_dict(cls, described: Mapping[str, Mapping[str, Any]]) -> Metadata:
        """Build metadata from what `to_dict` gave."""
        return cls(
            {
                name: Variable(
                    label=facts.get("label", ""),
                    labels=dict(facts.get("labels", [])),
                    missing=tuple(
                        Span(code["low"], code["high"]) if isinstance(code, Mapping) else code
                        for code in facts.get("missing", [])
                    ),
                    level=facts.get("level"),
                    format=facts.get("format", ""),
                )
                for name, facts in described.items()
            }
        )
