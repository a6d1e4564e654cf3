"""Registries of the library as lists of what is in them.

A registry is a dict that code builds: its source says nothing to a reader. The entry lists its
names instead, with their descriptions. griffe calls `Registries`; see `extensions` in mkdocs.yml.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from griffe import Docstring, ExprDictComp, Extension


class Registries(Extension):
    """Replaces the value of each registry as it is read."""

    def on_attribute_instance(self, *, attr: Any, **_: Any) -> None:
        """Remove the value of a registry, and list its names in the docstring."""
        if attr.parent.is_module and isinstance(attr.value, ExprDictComp):
            attr.value = None
            entries = getattr(import_module(attr.parent.path), attr.name)
            said = f"{attr.docstring.value}\n\n" if attr.docstring else ""
            attr.docstring = Docstring(said + listing(entries), parent=attr)


def listing(entries: Mapping[str, Any]) -> str:
    """Return a line for each name, with its description if it has one.

    >>> print(listing({"a": None}))
    - `a`
    """
    described = {name: getattr(one, "description", "") for name, one in entries.items()}
    return "\n".join(f"- `{name}`{text and f': {text}'}" for name, text in described.items())
