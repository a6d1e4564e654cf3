"""Nothing but our own output reaches standard output, whatever a library prints, and how.

Real processes with pipes: C keeps what is printed into a pipe in a buffer of its own, which comes
out late. The lines are injected where HiGHS prints its own, in the solver.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tessella

NOISE = """
import ctypes, os, sys
import scipy.optimize

def noisy(solve):
    def solver(*args, **options):
        os.write(1, b"by write, ")
        ctypes.CDLL(None).puts(b"by puts")
        ctypes.CDLL(None).printf(b"half a line")
        return solve(*args, **options)
    return solver

scipy.optimize.milp = noisy(scipy.optimize.milp)
scipy.optimize.linprog = noisy(scipy.optimize.linprog)
"""
FOREIGN = ("by write", "by puts", "half a line")
# Rules of which a check needs linear programs, and whole numbers that need a mixed-integer one.
RULES = "a + b == c\na >= 0\nb >= 0\nc <= 1000\n"
PROGRAMS = """
from tessella import Rules
from tessella.linear.rows import milp
print("before", flush={flush})
Rules.parse("a + b == c; a >= 0; b >= 0; c <= 1000; a <= 2000".split("; ")).check()
print("between")
milp([1.0, 1.0], integrality=[1, 1])
print("after")
"""

posix = pytest.mark.skipif(os.name != "posix", reason="calls the C library by its POSIX name")


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
        check=True,
    )  # fmt: skip


@posix
@pytest.mark.parametrize("flush", [True, False])
def test_solvers_of_the_library(flush):
    done = run(NOISE + PROGRAMS.format(flush=flush))
    assert done.stdout == "before\nbetween\nafter\n"
    assert all(text in done.stderr for text in FOREIGN)


@posix
def test_prints_of_other_threads_are_kept():
    """While a solver runs, and in a program that has printed half a line before."""
    code = """
import ctypes, os, sys, threading
from tessella._output import reserved_stdout

print("half", end=" ")
with reserved_stdout():
    other = threading.Thread(target=print, args=["of a thread"])
    other.start()
    other.join()
    with reserved_stdout():  # a second solver, in another thread as well as in this one
        os.write(1, b"foreign")
    ctypes.CDLL(None).puts(b"foreign")
print("after")
os.write(1, b"our own descriptor again\\n")
"""
    done = run(code)
    assert "foreign" not in done.stdout
    assert sorted(done.stdout.splitlines()) == [
        "after",
        "half of a thread",
        "our own descriptor again",
    ]
    assert done.stderr.count("foreign") == 2


@posix
def test_what_c_printed_before_stays_where_it_was():
    code = """
import ctypes
from tessella._output import reserved_stdout
ctypes.CDLL(None).puts(b"mine")
with reserved_stdout():
    ctypes.CDLL(None).puts(b"foreign")
"""
    done = run(code)
    assert (done.stdout, done.stderr) == ("mine\n", "foreign\n")


@posix
@pytest.mark.parametrize("closed", ["2>&-", ""])
def test_json_of_a_command(tmp_path, closed):
    (tmp_path / "t.csv").write_text("a,b,c\n" + "".join(f"{i},{2 * i},{3 * i}\n" for i in range(9)))
    (tmp_path / "r.txt").write_text(RULES)
    (tmp_path / "run.py").write_text(
        NOISE
        + "from tessella.cli import commands, main\n"
        + "known = commands.read_source\n"
        + "commands.read_source = lambda *a: (print('by print'), noisy(known)(*a))[1]\n"
        + "main()\n"
    )
    command = f"{sys.executable} run.py check t.csv --rules r.txt --json {closed}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["records"] == 9
    if not closed:
        assert all(text in done.stderr for text in (*FOREIGN, "by print"))


@posix
def test_standard_output_that_is_closed_or_full(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    command = f"{sys.executable} -m tessella check t.csv --json --quiet"

    def ended(where: str) -> tuple[int, str]:
        done = subprocess.run(
            ["sh", "-c", f"{command} {where}"], cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stderr

    assert ended(">&-") == (0, "")
    if Path("/dev/full").exists():
        code, text = ended("> /dev/full")
        assert code == 2
        assert "No space left" in text
        assert "Traceback" not in text
    assert ended("| head -c 1 > /dev/null") == (0, "")


def test_every_program_goes_through_the_guarded_solvers():
    """A solver that is imported from SciPy directly would print again."""
    root = Path(tessella.__file__).parent
    direct = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if "optimize" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("scipy.optimize")
        and {alias.name for alias in node.names} & {"milp", "linprog"}
    ]
    assert set(direct) == {"linear/rows.py"}
