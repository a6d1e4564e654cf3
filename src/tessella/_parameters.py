"""What arguments may be: declared once beside a function or class, checked in one place.

A declaration maps the name of an argument to the constraints of which one must accept the value,
as scikit-learn's `_parameter_constraints` does. A function is declared by the decorator
`parameters`; an estimator by its class attribute `_parameters` and `check_parameters(self)` at the
start of `fit`, because scikit-learn's constructors must not look at their arguments.
"""

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from numbers import Integral, Real
from typing import Any, Protocol, TypeVar, cast

from .exceptions import BadOptionError, UnknownOptionError

Function = TypeVar("Function", bound=Callable[..., Any])


class Constraint(Protocol):
    """Values of a kind: `accepts` tells them apart, `str()` describes them."""

    def accepts(self, value: object) -> bool:
        """Return whether a value is one of them."""


def _is_bool(value: object) -> bool:
    # NumPy's truth value is no bool, and this module does not import NumPy.
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


@dataclass(frozen=True)
class Whole:
    """Whole numbers from `least` to `most`; True and False are none."""

    least: int | None = None
    most: int | None = None

    def accepts(self, value: object) -> bool:
        """Return whether a value is such a number."""
        if _is_bool(value) or not isinstance(value, Integral):
            return False
        return (self.least is None or int(value) >= self.least) and (
            self.most is None or int(value) <= self.most
        )

    def __str__(self) -> str:
        if self.least is None or self.most is None:
            return "a whole number" + ("" if self.least is None else f" of at least {self.least}")
        return f"a whole number from {self.least} to {self.most}"


@dataclass(frozen=True)
class Number:
    """Finite numbers above `above` or from `least`, and below `below` or up to `most`."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None

    def accepts(self, value: object) -> bool:
        """Return whether a value is such a number."""
        if _is_bool(value) or not isinstance(value, Real):
            return False
        number = float(value)
        return (
            math.isfinite(number)
            and (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )

    def __str__(self) -> str:
        words = {"of at least": self.least, "above": self.above,
                 "at most": self.most, "below": self.below}  # fmt: skip
        bounds = [f"{word} {bound:g}" for word, bound in words.items() if bound is not None]
        return " ".join(["a number", " and ".join(bounds)]).strip()


@dataclass(frozen=True)
class OneOf:
    """One of some texts."""

    options: Collection[str]

    def accepts(self, value: object) -> bool:
        """Return whether a value is one of the texts."""
        return isinstance(value, str) and value in self.options

    def __str__(self) -> str:
        return "one of " + ", ".join(map(repr, self.options))


@dataclass(frozen=True)
class Instance:
    """Objects of some types, described in words."""

    types: type | tuple[type, ...]
    words: str

    def accepts(self, value: object) -> bool:
        """Return whether a value has one of the types."""
        return isinstance(value, self.types)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class _Described:
    """Values that a function tells apart, described in words."""

    accepts: Callable[[object], bool]
    words: str

    def __str__(self) -> str:
        return self.words


def _is_seed(value: object) -> bool:
    """Return whether scikit-learn takes a value for a `random_state`."""
    generator = type(value).__name__ in ("RandomState", "Generator")
    return value is None or Whole(0).accepts(value) or generator


FLAG = _Described(_is_bool, "True or False")
NONE = _Described(lambda value: value is None, "None")
SEED = _Described(_is_seed, "None or a whole number of at least 0")
EFFORT = OneOf(("quick", "standard", "thorough"))


def check(declared: Mapping[str, Sequence[Constraint]], given: Mapping[str, Any]) -> None:
    """Raise an error for the first argument that none of its constraints accepts."""
    for name, constraints in declared.items():
        if name not in given or any(one.accepts(given[name]) for one in constraints):
            continue
        value = given[name]
        options = [
            option for one in constraints if isinstance(one, OneOf) for option in one.options
        ]
        if isinstance(value, str) and options:  # with the nearest option as a hint
            raise UnknownOptionError(name, value, options)
        raise BadOptionError(name, value, " or ".join(map(str, constraints)))


def check_parameters(estimator: Any) -> None:
    """Check the parameters of an estimator against the `_parameters` of its class."""
    check(estimator._parameters, estimator.get_params(deep=False))


def parameters(
    renamed: Mapping[str, str] | None = None, /, **declared: Sequence[Constraint]
) -> Callable[[Function], Function]:
    """Declare what the arguments of a function may be.

    Parameters
    ----------
    renamed : mapping of str to str, optional
        Arguments that are gone, and what they are called now; they raise a TypeError.
    **declared : sequences of constraints
        For some arguments, the constraints of which one must accept the value.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for name in kwargs.keys() & (renamed or {}).keys():
                raise TypeError(
                    f"{function.__qualname__}() has no argument {name!r}: it is now called "
                    f"{(renamed or {})[name]!r}"
                )
            check(declared, signature.bind(*args, **kwargs).arguments)
            return function(*args, **kwargs)

        return cast(Function, checked)

    return decorate


SIZES = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip


def memory_of(given: Any) -> int:
    """Return a size in bytes, given as a number or as "2GB".

    Examples
    --------
    >>> from tessella._parameters import memory_of
    >>> memory_of("1.5 GB"), memory_of(10**9)
    (1500000000, 1000000000)
    """
    text = str(given).strip().upper()
    number = text.rstrip("BGIKMT ")
    try:
        size = float(number) * SIZES[text[len(number) :].strip()]
    except (ValueError, KeyError):
        size = 0.0
    if not (size >= 1 and math.isfinite(size)) or _is_bool(given):
        raise BadOptionError("memory", given, 'a size, such as "2GB"')
    return int(size)
