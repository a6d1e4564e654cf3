"""Imports only go downward, and never in a circle: read from the source, not from luck.

A *room* is a file or folder directly under `src/tessella`. Each room may import from rooms on
lower floors, and from itself. A door (`__init__.py`) that loads names on first use has no imports
at run time; what it names is checked in `test_import.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tessella

ROOT = Path(tessella.__file__).parent

# From the ground up. Rooms on the same floor do not know each other.
FLOORS = [
    {"_types", "_wording"},
    {"_clock", "_estimator", "exceptions"},
    {"_lazy", "_notebook", "_parameters", "_progress", "_output", "parallel", "kernels"},
    {"frame", "linear"},
    {"guessing", "datasets"},
    {"schema", "diversity"},
    {"io"},
    {"rules"},
    {"plan", "grouping"},
    {"keys"},
    {"fuzzy"},
    {"engines"},
    {"masking"},
    {"loss", "risk"},
    {"auditing"},
    {"release"},
    {"planfile"},
    {"pictures"},
    {"explore"},
    {"reports"},
    {"publishing"},
    {"app"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
    if path != ROOT / "__init__.py"
}


def is_typing_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def statements(tree: ast.AST, *, only_at_import: bool) -> Iterator[ast.AST]:
    """Walk a file; without functions and `if TYPE_CHECKING` where only the import counts.

    No expression holds an import: none is entered.
    """
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.expr):
            continue
        inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if only_at_import and (inner or is_typing_only(child)):
            continue
        yield child
        yield from statements(child, only_at_import=only_at_import)


@cache
def imports_in(path: Path) -> tuple[list[ast.AST], list[ast.AST]]:
    """All imports of a file, and those that run when it is imported."""
    tree = ast.parse(path.read_text())
    both = (
        [
            node
            for node in statements(tree, only_at_import=only)
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        for only in (False, True)
    )
    return next(both), next(both)


def imports(name: str, *, only_at_import: bool) -> set[str]:
    """The modules of tessella that a module imports, such as `kernels.groups`."""
    path = MODULES[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found: set[str] = set()
    for node in imports_in(path)[only_at_import]:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("tessella")}
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = package[: len(package) - node.level + 1]
            source = ".".join([*base, *(node.module or "").split(".")]).strip(".")
        elif (node.module or "").split(".")[0] == "tessella":
            source = (node.module or "").partition(".")[2]
        else:
            continue
        for alias in node.names:
            inside = f"{source}.{alias.name}".strip(".")
            found.add(inside if inside in MODULES else source)
    return {module.removeprefix("tessella").strip(".") for module in found} - {"", name}


def room(module: str) -> str:
    return module.split(".")[0]


def test_every_room_has_a_floor():
    unplaced = {room(name) for name in MODULES} - set(FLOOR)
    assert not unplaced, f"give {sorted(unplaced)} a place in FLOORS"


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_downward(name):
    for other in imports(name, only_at_import=False):
        same = room(other) == room(name)
        assert same or FLOOR[room(other)] < FLOOR[room(name)], f"{name} imports {other}"


@pytest.mark.parametrize("name", [name for name in MODULES if room(name) == "kernels"])
def test_kernels_import_only_kernels_and_types(name):
    known = {"kernels", "_types"} | ({"exceptions"} if name == "kernels.ahead" else set())
    assert {room(other) for other in imports(name, only_at_import=False)} <= known


def test_no_circle_at_import():
    graph = {name: imports(name, only_at_import=True) & set(MODULES) for name in MODULES}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path[path.index(name) :], name))
        if name not in done:
            for other in graph[name]:
                visit(other, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_the_reading_of_imports_is_right():
    """By hand: relative imports, of modules and of names, and imports inside functions."""
    assert "kernels.groups" in imports("grouping.base", only_at_import=True)
    assert "exceptions" in imports("grouping.base", only_at_import=True)
    assert "grouping.bound" not in imports("grouping.base", only_at_import=True)
    assert imports("kernels.groups", only_at_import=False) == {"_types", "kernels"}
    assert imports("exceptions", only_at_import=False) == {"_wording"}
