"""Values written as TOML; reading is the standard library's."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from .exceptions import BadOptionError

__all__ = ["toml_key", "toml_text", "toml_value"]


def toml_text(text: str) -> str:
    r"""Write a text in quotes.

    Examples
    --------
    >>> from tessella._toml import toml_text
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
    >>> from tessella._toml import toml_value
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
