"""How large the package is: lines, files, public names, and the files that one plan runs through.

A file counts as run if a function of it was called while `tessella protect` carried out the plan
drafted for `examples/firms.csv`, with risk and both reports; kernels are compiled, so that calls of
them are not all seen, and are counted apart.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tessella

SOURCE = Path(tessella.__file__).parent
EXAMPLES = SOURCE.parents[1] / "examples"

SCRIPT = """
import sys, threading
from tessella.cli import main

root, seen = sys.argv[1], set()
sys.argv = ["tessella", "protect", "--plan", "plan.toml", "--quiet"]
def importing(frame):  # bodies of modules and classes, and what they call, are no way of a plan
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(root):
            return True
        frame = frame.f_back
    return False
def profile(frame, event, _):
    code = frame.f_code
    inside = code.co_filename.startswith(root) and code.co_filename.endswith(".py")
    if event != "call" or not inside or code.co_filename in seen or importing(frame):
        return
    seen.add(code.co_filename)
sys.setprofile(profile)
threading.setprofile(profile)
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
print("\\n".join(sorted(seen)))
"""


def files_of_a_plan() -> list[str]:
    """Carry out a plan and list the files of the package that were run."""
    with tempfile.TemporaryDirectory() as folder:
        for file in EXAMPLES.iterdir():
            shutil.copy(file, folder)
        draft = [sys.executable, "-m", "tessella", "plan", "firms.csv", "--rules", "business.rules"]
        plan = subprocess.run([*draft, "-k", "5"], cwd=folder, check=True, capture_output=True)
        Path(folder, "plan.toml").write_bytes(plan.stdout)
        run = [sys.executable, "-c", SCRIPT, str(SOURCE)]
        done = subprocess.run(run, cwd=folder, check=True, capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if line.startswith(str(SOURCE))]


def public_names() -> dict[str, int]:
    """Count the names at the door of each room."""
    rooms = [room.name for room in pkgutil.iter_modules([str(SOURCE)]) if room.ispkg]
    doors = {room: importlib.import_module(f"tessella.{room}") for room in rooms}
    left_out = ("app", "cli", "frame", "kernels")  # faces, and what is no door for users
    return {
        room: len(door.__all__)
        for room, door in doors.items()
        if room not in left_out and hasattr(door, "__all__")
    }


def main() -> None:
    sizes = {path: len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    run = files_of_a_plan()
    kernels = sum("/kernels/" in path for path in run)
    names = public_names()
    print(
        json.dumps(
            {
                "lines": sum(sizes.values()),
                "files": len(sizes),
                "longest file": max(sizes.values()),
                "files of a plan": len(run) - kernels,
                "and kernels": kernels,
                "public names": sum(names.values()),
                "by room": names,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
