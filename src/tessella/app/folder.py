"""The folder in which the app works: it reads there, it writes there, and nowhere else."""

import json
import os
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal

from .._output import free_name, whole_or_nothing
from ..auditing.manifests import KIND
from ..exceptions import BadFileError, TessellaError
from ..io.source import find_format
from ..planfile import PlanFile
from ..planfile.model import files_of_hierarchies
from ..rules import Rules

What = Literal["table", "rules", "plan", "report", "manifest"]
STATE = ".tessella"  # the app's own folder in the folder
SMALL = 200_000  # bytes of a text file that may be rules, or a plan


@dataclass(frozen=True, kw_only=True)
class FolderEntry:
    """A file of the folder, and what it seems to be."""

    name: str
    what: What
    size: int
    changed: float
    format: str = ""
    manifest: str = ""  # of a release, the manifest that names it
    secret: bool = False  # a report that says of itself that it is confidential


class Folder:
    """A folder, as the app may see it.

    What lies above it, or behind a link that leads out of it, is not there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self.path = Path(path).resolve(strict=True)
        except OSError:
            raise BadFileError(path, "there is no such folder", "Give a folder") from None
        if not self.path.is_dir():
            raise BadFileError(path, "this is no folder", "Give the folder that the file is in")
        self._seen: dict[str, tuple[tuple[int, int], FolderEntry | None]] = {}

    def place(self, name: str) -> Path:
        """Return where a file of this name is, or would be; refuse all that is not a plain name."""
        plain = name not in ("", ".", "..") and name.isprintable() and not set(name) & set("/\\")
        if not plain or name.startswith(".") or Path(name).name != name:
            problem = "this is no name of a file in the folder"
            raise BadFileError(name, problem, "Give a name without a path")
        return self.inside(name)

    def inside(self, name: str | os.PathLike[str]) -> Path:
        """Return the path of a file that a plan names; refuse it outside of the folder."""
        path = self.path / name
        try:
            path.exists()  # names that are too long are refused here, and not where they are used
            within = path.resolve().is_relative_to(self.path)
        except (OSError, ValueError, RuntimeError) as error:  # a loop of links, a zero byte
            reason = getattr(error, "strerror", None) or "it cannot be a name"
            problem = f"the system refuses this name ({reason.lower()})"
            advice = "Give a short name of letters and digits"
            raise BadFileError(f"{name!s:.100}", problem, advice) from None
        if not within:
            problem = "it lies outside of the folder of this app"
            raise BadFileError(str(name), problem, "Name a file in the folder")
        return path

    def existing(self, name: str) -> Path:
        """Return the path of a file that is there."""
        path = self.place(name)
        if not path.is_file():
            raise BadFileError(name, "there is no such file in the folder", "Go back to the files")
        return path

    def check_plan(self, plan: PlanFile) -> None:
        """Refuse a plan that reads or writes outside of the folder."""
        named = [plan.input.file, plan.rules.file, plan.input.options.get("catalog")]
        for step in plan.steps:
            named += files_of_hierarchies(step.options)
        for name in [*named, *plan.output.files.values()]:
            if name:
                self.inside(name)

    def write(self, name: str, text: str, *, overwrite: bool = False) -> Path:
        """Write a text, whole or not at all; only its owner can read it, as it may hold a seed."""
        path = self.place(name)
        if path.is_symlink():
            raise BadFileError(name, "this is a link", "Give another name")
        with whole_or_nothing(path, overwrite=overwrite, private=True) as out:
            out.write(text.encode())
        return path

    def state(self, part: str, *, make: bool = False) -> Path:
        """Return the folder in which the app keeps what it knows: hidden, for its owner only."""
        path = self.inside(Path(STATE) / part)
        if path.is_symlink() or path.parent.is_symlink():
            raise BadFileError(STATE, "this is a link", "Remove it")
        if make:
            for folder in (path.parent, path):
                folder.mkdir(mode=0o700, exist_ok=True)
        return path

    def own(self, name: str) -> Path:
        """Return the path of something in the app's own folder."""
        path = self.inside(name)
        if not path.resolve().is_relative_to(self.path / STATE):
            raise BadFileError(name, "it is not the app's own", "Go back to the files")
        return path

    def bring(self, name: str, content: BinaryIO) -> str:
        """Write a file that somebody brings into the folder; return its name, which was free."""
        plain = Path(name.replace("\\", "/")).name.strip()
        find_format(self.place(plain), None)  # refuses what can be no table
        stem, point, ending = plain.partition(".")
        free = self.free_name(stem, f"{point}{ending}")
        with whole_or_nothing(self.place(free), overwrite=False, private=True) as out:
            shutil.copyfileobj(content, out, 1 << 20)
        return free

    def free_name(self, stem: str, ending: str) -> str:
        """Return a name that no file has yet."""
        return free_name(self.path, stem, ending)

    def entries(self) -> list[FolderEntry]:
        """List what the app can use: tables, rules, plans, reports, manifests."""
        found = sorted(self._entries(), key=lambda entry: entry.name.lower())
        releases = {
            name: entry.name
            for entry in found
            if entry.what == "manifest"
            for name in self._released(entry.name)
        }
        return [replace(entry, manifest=releases.get(entry.name, "")) for entry in found]

    def grouped(self, *kinds: What) -> dict[What, list[FolderEntry]]:
        """Return the entries of some kinds, by kind."""
        entries = self.entries()
        return {kind: [entry for entry in entries if entry.what == kind] for kind in kinds}

    def _entries(self) -> Iterator[FolderEntry]:
        with os.scandir(self.path) as files:
            names = [file.name for file in files]
        for name in names:
            try:
                path = self.place(name)
                if not path.is_file():
                    continue
                stat = path.stat()
            except (TessellaError, OSError):
                continue
            stamp = (stat.st_mtime_ns, stat.st_size)
            if name not in self._seen or self._seen[name][0] != stamp:
                self._seen[name] = stamp, _look(path, stat)
            if (entry := self._seen[name][1]) is not None:
                yield entry

    def _released(self, manifest: str) -> list[str]:
        try:
            content = json.loads((self.path / manifest).read_text(encoding="utf-8"))
            return [str(file["file"]) for file in content["files"] if file["what"] == "release"]
        except (OSError, ValueError, KeyError, TypeError):
            return []


def _look(path: Path, stat: os.stat_result) -> FolderEntry | None:
    """Find out what a file is: by its ending, and for texts by those who can read them."""
    known: dict[str, Any] = {"name": path.name, "size": stat.st_size, "changed": stat.st_mtime}
    ending = path.suffix.lower()
    if ending == ".html":
        return FolderEntry(what="report", secret=_is_secret(path), **known)
    if ending in (".yaml", ".yml"):
        return FolderEntry(what="rules", **known)
    if ending == ".toml":
        return FolderEntry(what="plan" if _is_plan(path) else "rules", **known)
    if ending == ".json":
        return FolderEntry(what="manifest", **known) if _is_manifest(path) else None
    if ending == ".txt" and stat.st_size <= SMALL and _are_rules(path):
        return FolderEntry(what="rules", **known)
    try:
        return FolderEntry(what="table", format=find_format(path, None).name, **known)
    except TessellaError:
        return None


def _is_secret(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b"<title>CONFIDENTIAL" in file.read(4096)
    except OSError:
        return True


def _is_plan(path: Path) -> bool:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return True  # somebody is in the middle of it: the page of the plan tells the mistakes
    return "rules" not in given or "steps" in given or "input" in given


def _is_manifest(path: Path) -> bool:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("kind") == KIND


def _are_rules(path: Path) -> bool:
    try:
        return len(Rules.read(path)) > 0
    except TessellaError:
        return False
