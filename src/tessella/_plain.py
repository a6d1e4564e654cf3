"""What was found, as plain values that JSON can hold."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["plain_data"]


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
