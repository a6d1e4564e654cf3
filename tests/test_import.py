"""Start-up: nothing heavy is loaded before it is used, and every public name is there."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import tessella
from tessella._lazy import homes_of

HEAVY = ("numba", "sklearn", "scipy", "pandas", "polars", "pyarrow", "matplotlib", "numpy")
DOORS = [
    "tessella",
    "tessella.app",
    "tessella.auditing",
    "tessella.datasets",
    "tessella.explore",
    "tessella.fuzzy",
    "tessella.grouping",
    "tessella.io",
    "tessella.keys",
    "tessella.linear",
    "tessella.loss",
    "tessella.masking",
    "tessella.pictures",
    "tessella.plan",
    "tessella.planfile",
    "tessella.publishing",
    "tessella.release",
    "tessella.reports",
    "tessella.risk",
    "tessella.rules",
]
ROOT = Path(__file__).parents[1]


def loaded_after(code: str) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded after some code."""
    ask = f"{code}\nimport json, sys\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    run = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.parametrize("door", DOORS)
def test_a_door_loads_nothing_heavy(door):
    assert loaded_after(f"import {door}") == set()


def test_help_loads_nothing_heavy():
    code = """
    import sys
    from tessella.cli import main
    sys.argv = ["tessella", "--help"]
    try:
        main()
    except SystemExit as end:
        assert end.code == 0
    """
    assert loaded_after("\n".join(line[4:] for line in code.splitlines())) == set()


def test_generators_do_not_compile_anything():
    made = "from tessella.datasets import make_business_survey; make_business_survey(10)"
    assert loaded_after(made) & {"numba", "sklearn"} == set()


@pytest.mark.parametrize("door", DOORS)
def test_every_public_name_is_there(door):
    module = importlib.import_module(door)
    assert module.__all__ == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = module.nonsense


@pytest.mark.parametrize("door", DOORS)
def test_type_checkers_see_the_same_names(door):
    """The imports under `if TYPE_CHECKING` are the public names, and where they live."""
    module = importlib.import_module(door)
    tree = ast.parse(Path(module.__file__).read_text())
    block = next(
        node for node in tree.body if isinstance(node, ast.If) and "TYPE" in ast.unparse(node.test)
    )
    seen = {
        alias.asname: f".{node.module or alias.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(seen) == module.__all__
    assert seen == getattr(module, "_HOMES", homes_of(door))


def test_the_version_is_told_once():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["dynamic"] == ["version", "readme"]
    assert version("tessella") == tessella.__version__


def test_start_up_loads_little():
    """What makes `import tessella` quick; the seconds: `python -m benchmarks.startup`."""
    code = (
        "import sys; before = set(sys.modules); import tessella; print(*set(sys.modules) - before)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "tessella" in loaded
    assert len(loaded) < 100
    assert len([name for name in loaded if name.startswith("tessella")]) < 10
    assert {name.partition(".")[0] for name in loaded} <= {*sys.stdlib_module_names, "tessella"}
