"""What a plan was, change by change: every change can be taken back, also after a restart.

The plan itself is the file that everybody sees. Its history lies beside it, in the app's own
hidden folder, readable by its owner only. What somebody changes outside of the app is a version,
too; what was typed and is not yet right is kept, so that a reload loses nothing.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from .._output import whole_or_nothing
from ..exceptions import BadFileError, TessellaError
from .folder import Folder

MOST = 200  # versions that are kept of a plan
TYPING = 30.0  # seconds within which typing in one place is one change


@dataclass(frozen=True, kw_only=True)
class Version:
    """The text of a plan, and by which change it came about."""

    text: str
    what: str
    when: float
    typed: bool = False

    @property
    def key(self) -> str:
        """A hash of the text: what a form was made from."""
        return key_of(self.text)


def key_of(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


class StaleError(TessellaError):
    """A form of a version that the history does not know."""

    def __init__(self) -> None:
        super().__init__(
            "The plan was changed elsewhere since this page was shown. Nothing was changed now; "
            "reload the page to see the plan as it is."
        )


@dataclass
class History:
    """The versions of one plan; `at` is the place of the present one."""

    versions: list[Version] = field(default_factory=list)
    at: int = -1
    pending: dict[str, str] = field(default_factory=dict)

    @property
    def now(self) -> Version:
        """The present version."""
        return self.versions[self.at]

    @property
    def undo(self) -> str:
        """What would be taken back; empty where there is nothing."""
        return self.versions[self.at].what if self.at > 0 else ""

    @property
    def redo(self) -> str:
        """What would be done again."""
        return self.versions[self.at + 1].what if self.at + 1 < len(self.versions) else ""

    def add(self, text: str, what: str, *, typed: bool = False) -> None:
        """Make a text the present version; what was undone is gone then."""
        if self.versions and text == self.now.text:
            return
        moment = time.time()
        last = self.versions[self.at] if self.versions else None
        del self.versions[self.at + 1 :]
        joined = (
            typed and last is not None and last.typed and last.what == what and self.at > 0
            and moment - last.when < TYPING
        )  # fmt: skip
        if joined:
            self.versions.pop()
        self.versions.append(Version(text=text, what=what, when=moment, typed=typed))
        del self.versions[: max(0, len(self.versions) - MOST)]
        self.at = len(self.versions) - 1

    def find(self, key: str) -> Version | None:
        """Return the latest version with this key."""
        return next((one for one in reversed(self.versions) if one.key == key), None)


class Histories:
    """The histories of the plans of a folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.lock = threading.RLock()

    def open(self, name: str) -> History:
        """Return the history of a plan, with its present text on top."""
        text = self.read(name)
        held = self._load(name)
        if held.versions and held.now.text == text:
            return held
        # A process may have ended between writing the history and the plan.
        for at, version in enumerate(held.versions):
            if version.text == text:
                held.at = at
                return held
        held.add(text, "changed outside of the app" if held.versions else "the plan as it was")
        return held

    def read(self, name: str) -> str:
        """Return the text of a plan."""
        path = self.folder.existing(name)
        if path.suffix.lower() != ".toml":
            raise BadFileError(name, "this is no plan", "Choose a file that ends in .toml")
        try:
            return path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise BadFileError(name, "this is no text", "Choose a plan") from None

    def change(self, name: str, text: str, what: str, *, typed: bool = False) -> None:
        """Write a plan, and keep what it was."""
        with self.lock:
            held = self.open(name)
            held.add(text, what, typed=typed)
            self._write(name, held)

    def go(self, name: str, at: int) -> Version:
        """Make an earlier or later version the present one; return what is now."""
        with self.lock:
            held = self.open(name)
            if not 0 <= at < len(held.versions):
                raise StaleError
            held.at, held.pending = at, {}
            self._write(name, held)
            return held.now

    def move(self, name: str, by: int) -> Version:
        """Undo (-1) or redo (1); at an end nothing happens."""
        with self.lock:
            held = self.open(name)
            return self.go(name, min(max(held.at + by, 0), len(held.versions) - 1))

    def keep(self, name: str, place: str, text: str | None) -> None:
        """Keep what was typed in a place and is not in the plan yet; None forgets it."""
        with self.lock:
            held = self.open(name)
            if held.pending.get(place) == text:
                return
            if text is None:
                held.pending.pop(place, None)
            else:
                held.pending[place] = text
            self._save(name, held)

    def forget(self, name: str) -> None:
        """Forget what was, for a plan of the same name is new."""
        (self.folder.state("history") / f"{name}.json").unlink(missing_ok=True)

    def _write(self, name: str, held: History) -> None:
        self._save(name, held)
        if self.read(name) != held.now.text:
            self.folder.write(name, held.now.text, overwrite=True)

    def _save(self, name: str, held: History) -> None:
        content = {
            "at": held.at, "pending": held.pending, "versions": [asdict(v) for v in held.versions],
        }  # fmt: skip
        path = self.folder.state("history", make=True) / f"{name}.json"
        with whole_or_nothing(path, overwrite=True, private=True) as out:
            out.write(json.dumps(content).encode())

    def _load(self, name: str) -> History:
        path = self.folder.state("history") / f"{name}.json"
        try:
            known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            versions = [Version(**one) for one in known["versions"]]
            at, pending = int(known["at"]), dict(known["pending"])
            if not 0 <= at < len(versions):
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError):
            return History()  # none yet, or damaged: the plan itself is there
        return History(versions=versions, at=at, pending=pending)
