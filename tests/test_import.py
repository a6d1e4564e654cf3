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
from tessella.datasets import make_business_survey

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


RARE = (
    "sklearn", "scipy.stats", "pandas", "matplotlib", "joblib", "polars", "duckdb", "pyreadstat",
    "openpyxl", "starlette",
)  # fmt: skip


def loaded_by(*commands: list[str]) -> dict[str, list[str]]:
    """Which packages that commands seldom need are loaded when each ends, one after the other."""
    code = "import json, sys\nfrom tessella.cli import main\nfound = {}\n"
    for command in commands:
        code += (
            f"sys.argv = {['tessella', *command]!r}\n"
            "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
            f"found[{command[0]!r}] = [name for name in {RARE!r} if name in sys.modules]\n"
        )
    code += "print(json.dumps(found))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_commands_load_only_what_they_use(tmp_path):
    """What makes a small table quick; the seconds: `python -m benchmarks.startup`."""
    firms, rules = make_business_survey(60, random_state=1, return_rules=True)
    firms.to_csv(tmp_path / "firms.csv", index=False)
    (tmp_path / "rules.txt").write_text("\n".join(rules))
    given = [str(tmp_path / "firms.csv"), "--rules", str(tmp_path / "rules.txt")]
    loaded = loaded_by(
        ["plan", *given, "-k", "3"],
        ["protect", *given, "-k", "3", "--effort", "quick", "--seed", "1"],
        ["check", str(tmp_path / "firms-release.csv"), "--rules", str(tmp_path / "rules.txt")],
    )
    assert loaded == {"plan": [], "protect": [], "check": []}


@pytest.mark.parametrize("first", ["tessella.grouping", "sklearn.base"])
def test_estimators_are_those_of_scikit_learn_whichever_is_loaded_first(first):
    code = f"""
    import pickle, {first}
    from tessella.grouping import MDAV, Search
    from tessella.masking import Microaggregation
    early = Search(5, effort="quick")
    masker = Microaggregation(3, grouping=MDAV())
    assert masker.set_params(k=4).get_params()["grouping__k"] == 3
    before = early.get_params(), masker.get_params(deep=False)
    kept = pickle.dumps(early)
    from sklearn.base import BaseEstimator, ClusterMixin, clone, is_clusterer
    assert isinstance(early, ClusterMixin) and issubclass(MDAV, BaseEstimator)
    assert is_clusterer(early) and isinstance(masker, BaseEstimator)
    assert before == (early.get_params(), masker.get_params(deep=False))
    assert clone(early).get_params() == pickle.loads(kept).get_params() == early.get_params()
    assert hasattr(Search, "set_fit_request")
    class Own(MDAV):
        pass
    assert isinstance(Own(), ClusterMixin)
    assert repr(early) == "Search(effort='quick', k=5)"
    """
    lines = "\n".join(line[4:] for line in code.splitlines())
    ran = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_what_scikit_learn_alone_can_do_loads_it():
    code = """
    import sys
    import numpy as np
    from tessella.grouping import MDAV
    assert MDAV(4).fit_predict(np.arange(16.0).reshape(8, 2)).shape == (8,)
    assert "sklearn" not in sys.modules
    """
    lines = "\n".join(line[4:] for line in code.splitlines())
    asked = lines + "\nassert repr(MDAV(4)) == 'MDAV(k=4)'\nassert 'sklearn.base' in sys.modules"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


UNUSUAL = {
    "interrupted": """
import builtins
from tessella.grouping import MDAV
load = builtins.__import__
def interrupt(name, *rest, **more):
    if name.endswith("validation"):
        raise KeyboardInterrupt
    return load(name, *rest, **more)
builtins.__import__ = interrupt
try:
    import sklearn.base
except KeyboardInterrupt:
    pass
builtins.__import__ = load
""",
    "only asked for": """
import importlib.util
from tessella.grouping import MDAV
assert importlib.util.find_spec("sklearn.base") is not None
""",
    "loaded again": """
import importlib, sys
from tessella.grouping import MDAV
import sklearn.base
importlib.reload(sklearn.base)
""",
}


@pytest.mark.parametrize("way", UNUSUAL)
def test_estimators_join_however_scikit_learn_is_loaded(way):
    """A bug once met: after Ctrl-C in the first import, `repr` called itself without an end."""
    loaded_after(f"""{UNUSUAL[way]}
from sklearn.base import BaseEstimator, clone, is_clusterer
assert isinstance(MDAV(4), BaseEstimator)
assert repr(MDAV(4)) == "MDAV(k=4)"
assert is_clusterer(clone(MDAV(4)))
""")
