"""Results that are not published yet: each run of a plan has a folder of its own, out of sight.

A run holds the release, its reports, and a record of how it came about, readable by its owner
only. It can be looked at, compared with others, and published: then its files get their names in
the folder, all or none.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._output import whole_or_nothing
from ..exceptions import BadFileError
from .folder import Folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..io.files import Written

KEPT = 20  # runs of a plan; older ones are removed
RECORD, SUMMARY = "run.json", "run-summary.json"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A result: what was run, and what came of it."""

    key: str
    plan: str  # its name
    text: str  # as it was run
    made: float
    seconds: float
    files: dict[str, str]
    warnings: tuple[str, ...] = ()
    published: dict[str, str] = field(default_factory=dict)
    home: Path = field(default=Path(), compare=False)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All that was found: as confidential as the original."""
        found: dict[str, Any] = json.loads((self.home / SUMMARY).read_text(encoding="utf-8"))
        return found

    @property
    def has_seed(self) -> bool:
        """Whether the same plan gives the same bytes again."""
        return self.summary["confidential"].get("seed") is not None

    def path(self, what: str) -> Path:
        """Return where an output lies."""
        return self.home / self.files[what]


class Runs:
    """The runs of a folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def make(self) -> Path:
        """Make a folder for a new run."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        home = self.folder.state("runs", make=True) / f"{stamp}-{secrets.token_hex(4)}"
        home.mkdir(mode=0o700)
        return home

    def get(self, key: str) -> Run:
        """Return a run."""
        if not re.fullmatch(r"[0-9a-f-]{8,40}", key):
            raise BadFileError(key[:60], "there is no such result", "Run the plan again")
        home = self.folder.state("runs") / key
        try:
            known = json.loads((home / RECORD).read_text(encoding="utf-8"))
            return Run(**known | {"warnings": tuple(known["warnings"]), "home": home})
        except (OSError, ValueError, TypeError, KeyError):
            raise BadFileError(key, "there is no such result", "Run the plan again") from None

    def of(self, plan: str) -> list[Run]:
        """List the runs of a plan, the latest first."""
        found = []
        home = self.folder.state("runs")
        for one in home.iterdir() if home.is_dir() else ():
            if (one / RECORD).is_file():
                try:
                    run = self.get(one.name)
                except BadFileError:
                    continue
                if run.plan == plan:
                    found.append(run)
        # Names tell the second, of a clock that is put back in autumn.
        return sorted(found, key=lambda run: (run.made, run.key), reverse=True)

    def prune(self, plan: str) -> None:
        """Remove all but the latest runs of a plan."""
        for run in self.of(plan)[KEPT:]:
            shutil.rmtree(run.home, ignore_errors=True)

    def record(self, run: Run) -> None:
        """Write the record of a run, with which it is there."""
        known = {
            name: value for name, value in vars(run).items() if name not in ("home", "summary")
        }
        with whole_or_nothing(run.home / RECORD, overwrite=True, private=True) as out:
            out.write(json.dumps(known).encode())

    def publish(self, run: Run, names: dict[str, str], *, overwrite: bool) -> Run:
        """Give the files of a run their names in the folder: all of them, or none.

        `names` are the files by what they are. The plan as it was run is written beside them.
        """
        from ..publishing.outputs import refuse_places, write_all

        paths = {what: self.folder.inside(name) for what, name in names.items()}
        original = self.folder.inside(_input_of(run))
        found = refuse_places(paths, inputs={"the original": original}, overwrite=overwrite)
        texts = {
            what: run.path(what).read_text(encoding="utf-8")
            for what in run.files
            if what not in ("release", "manifest")
        }
        texts["plan"] = run.text
        release = run.path("release")
        if release.is_dir():
            self._place_folder(run, paths, texts, overwrite=overwrite)
        else:
            manifest = run.path("manifest").read_text("utf-8") if "manifest" in paths else ""
            write_all(
                _copied(release, paths["release"], overwrite=overwrite), paths, texts,
                manifest=lambda _: manifest, found=found, overwrite=overwrite,
            )  # fmt: skip
        known = vars(run) | {"published": names}
        known.pop("summary", None)
        done = Run(**known)
        self.record(done)
        return done

    def _place_folder(
        self, run: Run, paths: dict[str, Path], texts: dict[str, str], *, overwrite: bool
    ) -> None:
        """Publish a release of many files: the folder first, the manifest last."""
        if paths["release"].exists():
            raise BadFileError(paths["release"].name, "the folder exists", "Give another name")
        staged = paths["release"].with_name(f".{paths['release'].name}.{secrets.token_hex(4)}")
        shutil.copytree(run.path("release"), staged)
        os.replace(staged, paths["release"])
        if "manifest" in paths:
            texts = {**texts, "manifest": run.path("manifest").read_text(encoding="utf-8")}
        for what, text in texts.items():
            private = what in ("internal report", "summary", "plan")
            with whole_or_nothing(paths[what], overwrite=overwrite, private=private) as out:
                out.write(text.encode())


@contextmanager
def _copied(source: Path, target: Path, *, overwrite: bool) -> Iterator[Written]:
    """Stage a copy of a file; it gets its name when the block is left."""
    from ..io.files import Written

    digest, size = hashlib.sha256(), 0
    with whole_or_nothing(target, overwrite=overwrite) as out, source.open("rb") as given:
        while piece := given.read(1 << 20):
            digest.update(piece)
            size += len(piece)
            out.write(piece)
        out.flush()
        os.fsync(out.fileno())
        yield Written(
            path=target, format="", n_rows=0, columns=(), sha256=digest.hexdigest(), size=size
        )


def _input_of(run: Run) -> str:
    from ..planfile import parse_plan

    return parse_plan(run.text).input.file
