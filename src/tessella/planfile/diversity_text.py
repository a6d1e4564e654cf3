"""l and t of a step "protect" as people type them: in a command, in a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..diversity import Requirement
from ..exceptions import BadOptionError

READ = {
    "l": (Requirement.of_l, "3, entropy=3 or recursive=2,3"),
    "t": (Requirement.of_t, "0.2, equal=0.2 or ordered=0.2"),
}


def read_requirement(name: str, text: str, *, who: str | None = None) -> Any:
    """Read l or t as an option of a step; `who` is its name in messages.

    Examples
    --------
    >>> from tessella.planfile.diversity_text import read_requirement
    >>> read_requirement("l", "recursive = 2, 3"), read_requirement("t", "equal=0.2")
    ({'recursive': [2, 3]}, {'equal': 0.2})
    """
    check, expected = READ[name]
    kind, _, value = text.rpartition("=")
    kind = kind.strip()
    try:
        numbers = [float(one) for one in value.split(",")]
        whole = [int(one) if one.is_integer() else one for one in numbers]
        own: Any = whole if kind == "recursive" else whole[0]
        if kind != "recursive" and len(whole) > 1:
            raise ValueError
        found = {kind: own} if kind else own
        check(found)
    except (ValueError, OverflowError):
        raise BadOptionError(who or name, text, expected) from None
    return found


def write_requirement(option: Any) -> str:
    """Write l or t as `read_requirement` reads it; nothing for None.

    Examples
    --------
    >>> from tessella.planfile.diversity_text import write_requirement
    >>> [write_requirement(one) for one in (None, 2, {"entropy": 3}, {"recursive": [2, 3]})]
    ['', '2', 'entropy = 3', 'recursive = 2, 3']
    """
    if isinstance(option, Mapping):
        return "; ".join(f"{kind} = {write_requirement(own)}" for kind, own in option.items())
    if isinstance(option, list | tuple):
        return ", ".join(map(write_requirement, option))
    return "" if option is None else str(option)
