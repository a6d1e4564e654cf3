"""Machine code compiled ahead of time: what it is chosen by, and that it computes the same."""

from __future__ import annotations

import ast
import copy
import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessella.cli import warming
from tessella.exceptions import MachineCodeWarning
from tessella.kernels import Kernel, ahead, groups, kernel, missed, tree

ROOT = Path(__file__).parents[2]
MODULES = sorted({line.partition(".")[0] for line in ahead._all_signatures()})
TABLE = np.arange(12.0).reshape(4, 3)


def read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (TABLE, "f8.2C"),
        (TABLE.T, "f8.2F"),
        (TABLE[:, ::2], "f8.2A"),
        (TABLE[:, :1].copy(), "f8.2C"),  # in both orders
        (read_only(TABLE.copy()), "f8.2Cr"),
        (np.zeros(3, dtype=np.int32), "i4.1C"),
        (np.zeros(3, dtype=np.bool_), "b1.1C"),
        (np.zeros((2, 2, 2), dtype=np.uint8), "u1.3C"),
        (3, "int"),
        (np.int64(3), "int"),
        (2**63, "large"),
        (0.5, "float"),
        (np.float64(0.5), "float"),
        (True, "bool"),
        (np.True_, "bool"),
        (None, "none"),
        ((1, TABLE), "(int, f8.2C)"),
        (tree.Duplicates(TABLE, *(np.zeros(2, dtype=np.int64),) * 4),
         "tree.Duplicates(f8.2C, i8.1C, i8.1C, i8.1C, i8.1C)"),
    ],
)  # fmt: skip
def test_forms_by_hand(value, text):
    form = ahead.form_of(value)
    assert ahead.write_form(form) == text
    assert ahead.read_form(text) == form
    assert hash(ahead.read_form(text)) == hash(form)


class Odd(np.ndarray):
    """A subclass may mean something else by its cells."""


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(3, dtype=">f8"),
        np.zeros(25, dtype=np.uint8)[1:].view(np.float64),  # not aligned
        np.zeros(3).view(Odd),
        np.ma.masked_array(np.zeros(3)),
        "text",
        np.int8(3),
    ],
)
def test_what_machine_code_would_misread_has_another_form(value):
    """Every listed form is that of a plain array in this machine's order, or of a plain number."""
    form = ahead.form_of(value)
    assert form != ahead.form_of(np.zeros(3))
    with pytest.raises((ValueError, TypeError)):
        ahead.write_form(form)


def test_every_signature_is_of_a_kernel_and_stands_once():
    lines = ahead._all_signatures()
    assert lines == sorted(set(lines))
    for module in MODULES:
        kernels = import_module(f"tessella.kernels.{module}")
        for name, forms in ahead.signatures(module):
            assert isinstance(getattr(kernels, name), Kernel)
            parts = ahead.split(forms)
            assert len(parts) == getattr(kernels, name).py_func.__code__.co_argcount
            assert [ahead.write_form(ahead.read_form(part)) for part in parts] == parts


def test_what_only_reads_an_array_gets_writable_ones_too():
    """One machine code for both, which the list has once."""
    listed = {line.partition(": ")[0]: line for line in ahead._all_signatures()}
    assert listed["groups.weighted_centres"].endswith("f8.2C, f8.1Cr, i8.1C, int")
    X, weights, labels = np.arange(8.0).reshape(4, 2), np.ones(4), np.array([0, 0, 1, 1])
    forms = [
        tuple(map(ahead.form_of, (X, given, labels, 2)))
        for given in (weights, read_only(weights.copy()))
    ]
    assert forms[0] != forms[1]
    need_machine_code()
    code = ahead.load("groups")["weighted_centres"]
    assert code[forms[0]] is code[forms[1]]
    for given in (weights, read_only(weights)):
        assert groups.weighted_centres(X, given, labels, 2).tolist() == [[1, 2], [5, 6]]
    lines = ahead._all_signatures()
    assert not [line for line in lines if line.replace("Cr", "C") in lines and "Cr" in line]


def test_an_edited_kernel_is_not_the_one_that_was_compiled(monkeypatch):
    """Also where the edit is in a module that it takes a kernel from, at second hand."""
    assert "tree" in ahead._source("neighbours")[1]
    before = {module: ahead.digest(module) for module in ("neighbours", "balance", "tree")}
    source = ahead._source

    def edited(module):
        text, needed = source(module)
        return (text + b"\nLEAF = 17", needed) if module == "tree" else (text, needed)

    monkeypatch.setattr(ahead, "_source", edited)
    after = {module: ahead.digest(module) for module in before}
    assert {module for module in before if before[module] != after[module]} == {
        "neighbours", "tree"
    }  # fmt: skip


def test_every_import_of_a_kernel_is_noticed():
    """The independent way: what Python itself reads, wherever in a module it stands."""
    for path in ahead.HERE.glob("*.py"):
        if path.stem in ("__init__", "ahead"):
            continue
        found = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
                found.add(node.module)
            elif isinstance(node, ast.ImportFrom):
                names = {name.name for name in node.names}
                assert node.level != 1 or names == {"kernel"} or names <= {"kernel", "spliced"}
                assert node.level > 1 or "tessella" not in (node.module or ""), path
            elif isinstance(node, ast.Import):
                assert not any("tessella" in name.name for name in node.names), path
        assert ahead._source(path.stem)[1] == found, path


def test_numba_keeps_machine_code_only_as_long_as_all_texts_are_the_same():
    """A bug once met: a kernel of another file was edited, and the old result came back."""
    stamp = groups.renumber.dispatcher._cache._cache_file._source_stamp
    assert stamp[1] == ahead.digest("groups")


@pytest.mark.parametrize("content", [b"", b"\x7fELF" + b"\0" * 96])
def test_a_file_that_cannot_be_loaded_is_told_and_compiled_instead(content, tmp_path, monkeypatch):
    monkeypatch.setattr(ahead, "COMPILED", tmp_path)
    ahead.place("groups").write_bytes(content)
    with pytest.warns(MachineCodeWarning, match="Machine code is compiled now, because groups-"):
        assert ahead.load.__wrapped__("groups") == {}


def test_what_was_compiled_beside_numpy_1_is_another_file(monkeypatch):
    now = ahead.place("groups")
    monkeypatch.setattr(ahead, "BEFORE_NUMPY_2", not ahead.BEFORE_NUMPY_2)
    assert ahead.place("groups") != now


def test_a_kernel_without_a_place_to_keep_machine_code_runs():
    """As in a folder that nobody may write to; numba has no place for what has no file."""
    made: dict[str, Any] = {"kernel": kernel, "__name__": "made"}
    exec("@kernel\ndef double(x):\n    return 2 * x\n", made)
    assert made["double"](4) == 8


def test_an_error_within_a_property_is_its_own(monkeypatch):
    def fail(_: object) -> None:
        raise AttributeError("no such symbol")

    monkeypatch.setattr(ahead, "load", fail)
    with pytest.raises(AttributeError, match=r"^(?!.*[Dd]ispatcher)"):
        Kernel(groups.renumber.py_func)(np.zeros(1, dtype=np.int64), 1)


def test_machine_code_for_another_processor_is_not_loaded(monkeypatch):
    monkeypatch.setattr(ahead, "runs_here", lambda: False)
    assert ahead.load.__wrapped__("groups") == {}


def test_other_forms_are_compiled_by_numba():
    """A kernel of our own, and one for a form that is not in the list; both are noted."""

    @kernel
    def double(x):
        return 2 * x

    assert double(4) == 8
    labels = np.array([5, 5, 2, 9], dtype=np.int16)
    forms = tuple(map(ahead.form_of, (labels, 10)))
    assert forms not in ahead.load("groups").get("renumber", {})
    assert groups.renumber(labels, 10).tolist() == groups.renumber.py_func(labels, 10).tolist()
    assert "groups.renumber: i2.1C, int" in missed()


def test_kernels_are_pickled_by_reference():
    assert pickle.loads(pickle.dumps(groups.renumber)) is groups.renumber


def need_machine_code() -> None:
    if not ahead.all_there():
        reason = "the kernels were not compiled ahead: python build_kernels.py"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


TASKS = """
import json
import sys
from tessella.cli.warming import TASKS, run
from tessella.kernels import missed
seen = []
for task in TASKS:
    run([task])
    print(json.dumps([task, [line for line in missed() if line not in seen]]))
    seen = missed()
print("numba" in sys.modules)
"""


@pytest.fixture(scope="module")
def tasks_done() -> Any:
    """All tasks in a fresh interpreter, one after the other: the forms that each missed."""
    need_machine_code()
    return subprocess.run([sys.executable, "-c", TASKS], capture_output=True, text=True)


@pytest.mark.parametrize("task", sorted(warming.TASKS))
def test_no_command_needs_numba(task, tasks_done):
    """What users wait for was compiled ahead: a form that is missing in the list shows here."""
    assert tasks_done.returncode == 0, tasks_done.stderr
    *lines, numba = tasks_done.stdout.splitlines()
    assert dict(map(json.loads, lines))[task] == [], tasks_done.stderr
    assert numba == "False"


DEMO = """
import sys
from tessella.cli.demo import run
run(out=sys.argv[1], n=2000, k=5, seed=0, method="search")
print(*sorted(name[10:] for name in sys.modules if name.startswith("_tessella_")))
print("numba" in sys.modules)
"""


def test_the_first_modules_are_those_of_the_demo(tmp_path):
    """No more, as a newcomer waits for their compilation, and no less."""
    need_machine_code()
    done = subprocess.run(
        [sys.executable, "-c", DEMO, str(tmp_path)], capture_output=True, text=True,
        env=os.environ | {"TESSELLA_CORES": "2"},  # on one nobody asks what is compiled
    )  # fmt: skip
    first = re.search(
        r"^FIRST = \((.*?)\)", (ROOT / "build_kernels.py").read_text(), re.DOTALL | re.M
    )
    *_, loaded, numba = done.stdout.splitlines()
    assert loaded.split() == re.findall(r'"(\w+)"', first[1]), done.stderr
    assert numba == "False"


# Working space, and places of points that are not in the sectors.
UNWRITTEN = {
    *(("Sectors", name) for name in ("places", "lanes", "above", "below", "across")),
    *(("Remaining", name) for name in ("scratch", "distance", "found")),
}


def same(one: Any, other: Any) -> bool:
    """Whether two values have the same bytes, but for working space that was not written to."""
    if hasattr(one, "_fields"):
        return all(
            same(getattr(one, name), getattr(other, name))
            for name in one._fields if (type(one).__name__, name) not in UNWRITTEN
        )  # fmt: skip
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    return bool(one == other) or (one != one and other != other)


@pytest.fixture
def compared(monkeypatch) -> Iterator[dict[str, int]]:
    """Every call of a kernel is made twice, by both ways; the kernels and their calls."""
    called: dict[str, int] = {}
    run = Kernel.__call__

    def twice(self, *arguments):
        forms = tuple(map(ahead.form_of, arguments))
        if self._compiled_ahead.get(forms) is None:
            return run(self, *arguments)
        others = copy.deepcopy(arguments)
        for mine, own in zip(arguments, others):
            if isinstance(mine, np.ndarray):
                own.flags.writeable = mine.flags.writeable  # a copy may be written to
        found, expected = run(self, *arguments), self.dispatcher(*others)
        assert same(found, expected), self.__name__
        assert same(arguments, others), self.__name__  # what it wrote into them
        called[self.__name__] = called.get(self.__name__, 0) + 1
        return found

    monkeypatch.setattr(Kernel, "__call__", twice)
    monkeypatch.setenv("TESSELLA_CORES", "1")  # threads write to the same arrays
    return called


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted(warming.TASKS))
def test_the_same_bytes_as_by_numba(task, compared):
    """An independent way: what numba compiles here and now, for this very processor."""
    need_machine_code()
    warming.TASKS[task]()
    assert sum(compared.values()) > 1


@pytest.mark.slow
def test_a_module_is_compiled_and_loaded(tmp_path, monkeypatch):
    """The real compilers, into another folder."""
    monkeypatch.syspath_prepend(str(ROOT))
    builder = import_module("build_kernels")
    monkeypatch.setattr(ahead, "COMPILED", tmp_path / "compiled")
    lengths = builder.lengths()
    assert builder.stale() == sorted(lengths, key=lambda module: (-lengths[module], module))
    (made,) = builder.build(["tree"], note=lambda _: None)
    assert builder.compiled() == [made]
    (code,) = ahead.load.__wrapped__("tree")["order_by_leaves"].values()
    points = np.random.default_rng(0).normal(size=(3, 500)).astype(np.float32)
    assert code(points, 3).tolist() == tree.order_by_leaves.py_func(points, 3).tolist()
