"""Runs a page of the documentation, block by block, in one folder: what it shows must be true.

- `python` blocks are doctests; all of a page share their names.
- `console` blocks are a terminal: a line after `$` is a command, what follows is its output, up to
  `...` and spaces. `tessella` runs in this process, other commands in a shell; `echo $?` tells how
  the last command ended. What is said beside the result is shown only where the command failed.
- `diff` blocks that begin with `--- FILE` are edits of that file, done here as a reader would.

Blocks of other kinds are not run.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def run(page: Path) -> int:
    """Run all blocks of a page in the current folder; return how many outputs were compared."""
    text, names, code, compared = page.read_text(encoding="utf-8"), {}, 0, 0
    for block in FENCE.finditer(text):
        kind, body = block.groups()
        where = f"{page.name}, line {text.count(chr(10), 0, block.start()) + 1}"
        if kind == "python" and ">>>" in body:
            compared += run_python(body, names, where)
        elif kind == "console":
            for command, wanted in commands(body):
                code, said = run_command(command, code)
                expect(wanted, said, f"{where}: {command}")
                compared += 1
        elif kind == "diff" and body.startswith("--- "):
            edit(body, where)
    return compared


def run_python(body: str, names: dict[str, Any], where: str) -> int:
    test = doctest.DocTestParser().get_doctest(body, names, where, None, 0)
    test.globs = names
    said = io.StringIO()
    ran = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(
        test, out=said.write, clear_globs=False
    )
    if ran.failed:
        pytest.fail(said.getvalue(), pytrace=False)
    return ran.attempted


def commands(body: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a terminal with the output that the page shows."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        first = 1
        while lines[first - 1].endswith("\\"):
            first += 1
        yield "\n".join(lines[:first]), "\n".join(lines[first:]).strip("\n")


def run_command(command: str, last: int) -> tuple[int, str]:
    """Return how a command ended and what it printed."""
    if command == "echo $?":
        return 0, str(last)
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    if words[0] != "tessella":
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr
    into = None
    if ">" in words:
        into = Path(words[words.index(">") + 1])
        words = words[: words.index(">")]
    code, out, beside = run_tessella(words)
    if into is not None:
        into.write_text(out, encoding="utf-8")
        out = ""
    return code, beside[beside.find("Error:") :] if code == 2 else out


def run_tessella(words: list[str]) -> tuple[int, str, str]:
    from tessella.cli import main

    out, beside, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(beside):
            try:
                main()
            except SystemExit as end:
                code = int(end.code or 0)
    return code, out.getvalue(), beside.getvalue()


def expect(wanted: str, said: str, where: str) -> None:
    if not doctest.OutputChecker().check_output(wanted + "\n", said.rstrip() + "\n", FLAGS):
        pytest.fail(f"{where}\n\nthe page shows:\n{wanted}\n\nit printed:\n{said}", pytrace=False)


def edit(body: str, where: str) -> None:
    """Do an edit: lines with a minus and without a sign are found, and those with a plus put in."""
    name, *lines = body.removeprefix("--- ").splitlines()
    lines = [line for line in lines if not line.startswith(("+++ ", "@@"))]
    old = "\n".join(line[1:] for line in lines if not line.startswith("+"))
    new = "\n".join(line[1:] for line in lines if not line.startswith("-"))
    text = Path(name).read_text(encoding="utf-8")
    if text.count(old) != 1:
        pytest.fail(f"{where}: found {text.count(old)} times in {name}:\n{old}", pytrace=False)
    Path(name).write_text(text.replace(old, new), encoding="utf-8")
