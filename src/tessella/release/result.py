"""What comes out: a masked table that has been looked at again.

The protocol: which steps led from the original to the release, in order and in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._types import Integers, Name
from ..auditing import Audit
from ..plan import Plan
from ..rules import Confrontation, Rules
from ..schema import Schema

__all__ = ["Entry", "Protocol", "Release"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One step that was taken.

    Attributes
    ----------
    method : str
        What was done, such as "noise".
    name : str
        What its holder calls it.
    options : mapping
        The parameters, all of them.
    public : mapping
        The parameters that may be published: without categories that no longer exist.
    account : str
        What came of it.
    columns : tuple of str
        The columns that it was about.
    seconds : float
        How long it took.
    seed : int or None
        Confidential. None where chance came from the operating system, or had no part.
    """

    method: str
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    public: Mapping[str, Any] = field(default_factory=dict)
    account: str = ""
    columns: tuple[str, ...] = ()
    seconds: float = 0.0
    seed: int | None = None

    def __str__(self) -> str:
        called = f" ({self.name})" if self.name else ""
        given = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.method}{called}: {given or 'as usual'}. {self.account}".rstrip()


@dataclass(frozen=True)
class Protocol:
    """The steps, in order; printing it shows no seed.

    Examples
    --------
    >>> from tessella.release.result import Entry, Protocol
    >>> protocol = Protocol((Entry(method="drop", options={"columns": ["id"]}, seconds=0.01),))
    >>> protocol
    1. drop: columns=['id'].
    """

    entries: tuple[Entry, ...] = ()

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __str__(self) -> str:
        return "\n".join(f"{at}. {entry}" for at, entry in enumerate(self.entries, start=1))

    __repr__ = __str__

    def without_seeds(self) -> Protocol:
        """Return the protocol as it may be saved with a release."""
        return Protocol(tuple(replace(entry, seed=None) for entry in self.entries))

    def public(self) -> list[dict[str, Any]]:
        """Return what may be published of each step: no seed, no category that is gone."""
        return [
            {
                "method": entry.method,
                "name": entry.name,
                "options": dict(entry.public),
                "columns": list(entry.columns),
            }
            for entry in self.entries
        ]

    def confidential(self) -> list[dict[str, Any]]:
        """Return all that is known of each step, seeds included."""
        return [
            {
                "method": entry.method,
                "name": entry.name,
                "options": dict(entry.options),
                "columns": list(entry.columns),
                "account": entry.account,
                "seconds": round(entry.seconds, 3),
                "seed": entry.seed,
            }
            for entry in self.entries
        ]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Release:
    """A masked table, how it came about, and what was found when it was looked at again.

    Attributes
    ----------
    table : the same kind of frame as the original
        With the same columns, dtypes and index.
    plan : Plan or None
        What was done, and why; `plan.explain()`. None where no step promised k.
    audit : Audit
        k, rules, totals and means, recomputed from the released table.
    loss : float
        Information loss 100 SSE / SST in per cent over the masked columns of numbers, in standard
        deviations.
    column_loss : dict of name to float
        The same for each masked column of numbers that varies.
    inconsistent : int
        Records of the original that broke a rule.
    moved, moved_inconsistent : float
        How far records are from what is released for them, in standard deviations a column (root
        mean square over the masked columns of numbers): all records, and those that broke a rule.
    edited : int
        Records in which a product was first recomputed, for its zeros or signs could not be kept.
    merged : int
        Records that joined another part, because theirs was too small.
    schema : Schema
        What the released columns are.
    rules : Rules
        The rules that were audited.
    protocol : Protocol
        The steps that were taken, in order, with times; `protocol.public()` may be published.
    labels : list of ndarray of shape (n,)
        The group of each record, for each block: confidential.
    before : Confrontation or None
        What came of confronting the original, as prepared, with the rules: confidential, and left
        behind when saved. The released table's is in `audit.rules`.
    """

    table: Any
    plan: Plan | None
    audit: Audit
    loss: float
    column_loss: dict[Name, float]
    inconsistent: int
    moved: float
    moved_inconsistent: float
    edited: int
    merged: int
    schema: Schema
    rules: Rules
    protocol: Protocol = field(default_factory=Protocol)
    labels: list[Integers] = field(default_factory=list)
    before: Confrontation | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind when saved: groups of records, values that rules look up, seeds."""
        return self.__dict__ | {
            "labels": [],
            "before": None,
            "rules": self.rules.unfixed(),
            "protocol": self.protocol.without_seeds(),
        }

    def __str__(self) -> str:
        lines = [f"Information loss {self.loss:.2f} %."]
        if self.inconsistent:
            lines.append(
                f"{self.inconsistent} records of the original broke a rule; they moved by "
                f"{self.moved_inconsistent:.3g} standard deviations a column, all records by "
                f"{self.moved:.3g}."
            )
        if self.merged:
            lines.append(f"{self.merged} records joined another part, for theirs was too small.")
        return "\n".join([*lines, str(self.audit)])

    __repr__ = __str__
