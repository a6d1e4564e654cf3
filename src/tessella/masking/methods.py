"""From the name of a method to a grouping with the right k."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isclass, signature
from typing import Any

from sklearn.base import clone

from .. import grouping as doors
from ..exceptions import BadTableError, GroupSizeError, UnknownOptionError
from ..grouping.base import Grouping

__all__ = ["METHODS", "make_grouping"]

# The class of each method; the door of `tessella.grouping` loads it when asked for.
METHODS = {
    "search": "Search",
    "mdav": "MDAV",
    "vmdav": "VMDAV",
    "cbfs": "CBFS",
    "ordered": "OrderedGrouping",
    "imhm": "IMHM",
    "repordmic": "RepOrdMic",
    "igd": "IGD",
    "univariate": "UnivariateOptimal",
}


def make_grouping(
    grouping: Any, *, k: int, options: Mapping[str, Any] | None = None, seed: int | None = None
) -> Grouping:
    """Build an unfitted grouping.

    Parameters
    ----------
    grouping : str or Grouping
        A name of `METHODS`, or a grouping, which is cloned and gets this k.
    k : int
        The least number of records in a group.
    options : mapping, optional
        Arguments of the grouping that is named.
    seed : int, optional
        For a grouping with a `random_state` that has none yet.

    Examples
    --------
    >>> from tessella.masking.methods import make_grouping
    >>> make_grouping("mdav", k=5)
    MDAV(k=5)
    """
    if isinstance(grouping, Grouping):
        made = _with_k(grouping, k)
        if options:
            raise BadTableError(
                f"options={dict(options)!r} are for a grouping given by name; "
                f"give them to {type(grouping).__name__}(...) itself."
            )
    elif isinstance(grouping, str) and grouping in METHODS:
        made = _with_options(getattr(doors, METHODS[grouping]), k, options or {})
    elif isclass(grouping) and issubclass(grouping, Grouping):
        raise BadTableError(
            f"grouping is the class {grouping.__name__}: give {grouping.__name__}()."
        )
    else:
        raise UnknownOptionError(
            "grouping", grouping, [*METHODS, "a grouping of tessella.grouping"]
        )
    if seed is not None and made.get_params().get("random_state", seed) is None:
        made.set_params(random_state=seed)
    return made


def _with_k(method: Grouping, k: int) -> Grouping:
    """Clone a grouping for this k, unless someone asked it for another."""
    unasked = signature(type(method)).parameters["k"].default
    if method.k not in (k, unasked):
        raise GroupSizeError.given_twice(masker=k, method=method.k)
    grouping: Grouping = clone(method).set_params(k=k)
    return grouping


def _with_options(kind: type[Grouping], k: int, options: Mapping[str, Any]) -> Grouping:
    known = [name for name in signature(kind).parameters if name != "k"]
    for name in options:
        if name not in known:
            raise UnknownOptionError(f"option of {kind.__name__}", name, known)
    return kind(k, **options)
