"""A candidate: a way to protect a table, as data.

It has the name of a method and values for its parameters, and nothing else, so that it can be
hashed, stored, compared, and run again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..exceptions import BadOptionError, UnknownOptionError
from .methods import METHODS, Masked, Task

__all__ = ["Candidate"]

Plain = bool | int | float | str | None


class Candidate(Mapping[str, Plain]):
    """A method with its parameters: `Candidate("mdav", k=3)`.

    Parameters
    ----------
    method : str
        A name of `tessella.explore.METHODS`.
    **parameters : numbers, texts and truth values
        Those of the method; what is left out has the method's default.

    Examples
    --------
    >>> from tessella.explore import Candidate
    >>> one = Candidate("blocks", k=3, size=2, by="correlation")
    >>> one == Candidate("blocks", by="correlation", size=2, k=3)
    True
    >>> one.key
    'blocks(by="correlation", k=3, size=2)'
    >>> print(one)
    MDAV in blocks of 2 correlated columns, k = 3
    """

    __slots__ = ("_parameters", "method")

    def __init__(self, method: str, /, **parameters: Plain) -> None:
        if not isinstance(method, str) or method not in METHODS:
            raise UnknownOptionError("method", method, METHODS)
        known = METHODS[method].defaults
        for name, value in parameters.items():
            if name not in known:
                raise UnknownOptionError(f"parameter of {method!r}", name, known)
            if not isinstance(value, bool | int | float | str | None):
                raise BadOptionError(name, value, "a number, a text, True, False or None")
        whole = {**known, **{name: _plain(value) for name, value in parameters.items()}}
        self.method = method
        self._parameters = tuple(sorted(whole.items()))

    def __getitem__(self, name: str) -> Plain:
        return self.parameters[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidate) and self.key == other.key

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.method, dict(self._parameters))

    @property
    def key(self) -> str:
        """The same text for the same candidate, in every session and on every machine."""
        given = {
            name: value
            for name, value in self._parameters
            if value != METHODS[self.method].defaults[name] or name in METHODS[self.method].shown
        }
        named = ", ".join(f"{name}={json.dumps(value)}" for name, value in given.items())
        return f"{self.method}({named})"

    @property
    def label(self) -> str:
        """The method in few words, as a picture names it."""
        return METHODS[self.method].label(self)

    def __str__(self) -> str:
        return METHODS[self.method].words(self)

    def __repr__(self) -> str:
        named = "".join(f", {name}={value!r}" for name, value in self._parameters)
        return f"Candidate({self.method!r}{named})"

    def with_value(self, name: str, value: Plain) -> Candidate:
        """Return the same candidate with another value of one parameter."""
        return Candidate(self.method, **{**dict(self._parameters), name: value})

    def mask(
        self,
        table: Any,
        *,
        columns: Any = None,
        rules: Any = None,
        random_state: int | None = None,
    ) -> Masked:
        """Protect a table this way.

        Parameters
        ----------
        table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
            The original table.
        columns : list of names, optional
            The columns to mask, as in `explore`.
        rules : Rules, text, or list of lines, optional
            What every released record must obey.
        random_state : int, optional
            Without it, random numbers come from the operating system: nobody can repeat the
            release. It is not the table that an exploration looked at, but one made alike.

        Returns
        -------
        Masked
            With `table`, and the fitted masker or the release behind it.
        """
        task = Task.of(table, columns=columns, rules=rules)
        return METHODS[self.method].run(self, task, random_state)

    @property
    def parameters(self) -> dict[str, Plain]:
        """The parameters by name."""
        return dict(self._parameters)


def _plain(value: Any) -> Any:
    """Turn numbers of NumPy into Python's; a float that is whole stays a float."""
    item = getattr(value, "item", None)
    return item() if callable(item) else value


def _rebuild(method: str, parameters: dict[str, Any]) -> Candidate:
    return Candidate(method, **parameters)
