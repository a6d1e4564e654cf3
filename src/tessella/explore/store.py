"""Where the results of an exploration are kept as they come: one small file for each point.

A file is written under another name, brought to the disk, and then given its name: at any moment,
even after the power failed, a point is there whole or not at all. The folder is **confidential**:
it holds risks, and hashes of the table that would confirm a guess of the whole of it; it holds no
value of any record.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..exceptions import BadTableError, TessellaError
from .candidate import Candidate
from .evaluate import Settings
from .point import Point
from .task import Task

__all__ = ["Store", "fresh_seed"]

FORM = 3  # of the files; raised when they, or what figures mean, change
ABOUT = "about.json"
WARNING = (
    "Results of tessella.explore. Confidential: they tell how well attacks on the table work. "
    "They hold no value of any record."
)


def fresh_seed() -> int:
    """Return a seed from the operating system's entropy."""
    return secrets.randbits(31)


class Store:
    """A folder of points, found again by candidate, table, settings and seed.

    Parameters
    ----------
    folder : path
        Made if it is not there. A folder with other things in it is refused.
    """

    def __init__(self, folder: Any) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise BadTableError(
                f"store={str(folder)!r} is a file, and a folder is needed. Give the name of a "
                "folder that is not there yet."
            )
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        about = self.folder / ABOUT
        if about.exists():
            self._known = _read(about)
            if self._known.get("form") != FORM:
                raise BadTableError(
                    f"store={str(folder)!r} was written by another version of tessella. Give "
                    "another folder."
                )
        elif any(path for path in self.folder.iterdir() if not path.name.startswith(".")):
            raise BadTableError(
                f"store={str(folder)!r} holds other files than results. Give a folder of its own."
            )
        else:
            self._known = {"form": FORM, "about": WARNING, "seed": fresh_seed()}
            write_whole(about, self._known)

    @property
    def seed(self) -> int:
        """The seed that was drawn when the folder was made, for those who give none."""
        return int(self._known["seed"])

    def name(self, candidate: Candidate, task: Task, settings: Settings) -> str:
        """Return the name of a point's file."""
        from .. import __version__

        parts = (__version__, candidate.key, task.fingerprint, settings.key, str(settings.seed))
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:40] + ".json"

    def find(self, name: str) -> Point | None:
        """Return the point of a name, or None where it was not tried yet."""
        path = self.folder / name
        return _point(path) if path.exists() else None

    def keep(self, name: str, point: Point) -> None:
        """Write a point; another writer of the same point does no harm."""
        write_whole(self.folder / name, point.to_dict())

    def __iter__(self) -> Iterator[Point]:
        for path in sorted(self.folder.glob("*.json")):
            if path.name != ABOUT:
                yield _point(path)


def write_whole(path: Path, content: dict[str, Any]) -> None:
    """Write a small file whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with open(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            json.dump(content, file, allow_nan=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    if hasattr(os, "O_DIRECTORY"):  # so that the new name is on the disk, too
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _point(path: Path) -> Point:
    known = _read(path)
    try:
        return Point.from_dict(known)
    except (KeyError, TypeError, ValueError, TessellaError) as error:
        raise BadTableError(
            f"The result {path.name} in the store is damaged. Remove this file: its point will be "
            "tried again."
        ) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadTableError(
            f"The result {path.name} in the store cannot be read ({error}). Remove this file: its "
            "point will be tried again."
        ) from error
    if not isinstance(known, dict):
        raise BadTableError(f"The result {path.name} in the store is damaged. Remove this file.")
    return known
