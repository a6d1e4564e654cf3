"""What was found, as plain values that JSON can hold, and values written as TOML."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from .exceptions import BadOptionError


def plain_data(value: Any) -> Any:
    """Return dicts, lists, texts and numbers; what is not finite becomes None, as in JSON.

    Examples
    --------
    >>> from tessella._plain import plain_data
    >>> plain_data({1: (2.5, float("nan")), "when": None})
    {'1': [2.5, None], 'when': None}
    """
    if isinstance(value, dict):
        return {str(name): plain_data(own) for name, own in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_data(own) for own in value]
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a scalar of NumPy
        return plain_data(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def toml_text(text: str) -> str:
    r"""Write a text in quotes.

    Examples
    --------
    >>> from tessella._plain import toml_text
    >>> print(toml_text('say "k"'))
    "say \"k\""
    """
    escaped = "".join(
        f"\\{sign}" if sign in '\\"' else sign if sign.isprintable() else f"\\U{ord(sign):08x}"
        for sign in text
    )
    return f'"{escaped}"'


def toml_key(name: str) -> str:
    """Write a key, in quotes where it needs them."""
    bare = bool(name) and name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else toml_text(name)


def toml_value(value: Any) -> str:
    """Write a value on one line: text, number, date, list or table.

    Examples
    --------
    >>> from tessella._plain import toml_value
    >>> toml_value({"k": 5, "columns": ["a", "b c"], "scale": 0.1})
    '{ k = 5, columns = ["a", "b c"], scale = 0.1 }'
    """
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return repr(number) if math.isfinite(number) else str(number)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        inner = [f"{toml_key(str(name))} = {toml_value(own)}" for name, own in value.items()]
        return f"{{ {', '.join(inner)} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    raise BadOptionError("value", type(value).__name__, "text, a number, a date, a list or a table")
