"""Names and packages that are loaded when they are first used, not before.

A *door* is the `__init__.py` of a folder: it says where each public name lives, and loads it when
somebody asks. So `import tessella` and `tessella --help` stay quick, whatever stands behind them.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType

from .exceptions import MissingPackageError


@cache
def homes_of(door: str) -> dict[str, str]:
    """Return the module of each public name: what the door imports under `if TYPE_CHECKING`."""
    tree = ast.parse(inspect.getsource(sys.modules[door]))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {n.asname or n.name: f".{one.module or n.name}" for one in imports for n in one.names}


def on_first_use(
    door: str, *, renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Build the `__getattr__` and `__dir__` of a door, the package that is called `door`.

    A name whose home is a module of the same name, as `tessella.datasets`, is that module.
    `renamed` has for each public name that is gone what to use instead.
    """
    homes = homes_of(door)

    def load(name: str) -> object:
        if renamed and name in renamed:
            raise AttributeError(f"{door}.{name} is gone: use {renamed[name]} instead")
        if name not in homes:
            raise AttributeError(f"module {door!r} has no attribute {name!r}")
        home = import_module(homes[name], door)
        value = home if homes[name] == f".{name}" else getattr(home, name)
        setattr(sys.modules[door], name, value)  # the next use does not come here
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[door]), *homes})

    return load, names


def optional(package: str, *, extra: str, purpose: str) -> ModuleType:
    """Import a package that not every installation has, or name the extra that brings it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(package, extra=extra, purpose=purpose) from error
