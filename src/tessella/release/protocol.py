"""The protocol: which steps led from the original to the release, in order and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["Entry", "Protocol"]


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
    >>> from tessella.release.protocol import Entry, Protocol
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
