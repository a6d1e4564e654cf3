"""The files of a release: all of them, or none; and never a new one beside an old one.

Every byte of every file is on the disk before the first file gets its name. Then, in this order:
old reports and the old manifest go, the release takes its name (in one move where an old one is
replaced), the reports take theirs, and last the manifest. Whatever ends the process in between,
each file is whole or not there, and a report stands beside the release that it speaks of. A
manifest whose hashes fit says that the set is complete.

Two processes that publish into one place at once: the folders are held while files get their names,
and a place that has changed since the plan was started is refused. One set is there, whole.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO

from .._clock import TimeLeft
from .._output import (
    State,
    held,
    refuse_place,
    refuse_same_file,
    state_of,
    sync_folder,
    unwritable,
    whole_or_nothing,
)
from .._types import Progress
from .._wording import counted
from ..auditing.result import beside_loss
from ..exceptions import BadFileError
from ..frame import Table
from ..io.files import Written
from ..io.source import find_format
from ..loss.base import Summary
from ..parallel import return_memory
from ..release import Entry, Protocol, Release
from ..reports import external_report, internal_report
from ..reports.sentences import PLAIN
from ..risk import Assessment

PRIVATE = ("internal report", "summary", "plan")
PUBLIC = ("external report",)  # in the manifest, beside the release


def refuse_places(
    paths: Mapping[str, Path], *, inputs: Mapping[str, Path], overwrite: bool,
    in_pieces: bool = False,
) -> dict[Path, State]:  # fmt: skip
    """Refuse outputs that cannot be written, before anything is read; return what is there now."""
    refuse_same_file(paths, inputs)
    folder = paths["release"] if in_pieces and not paths["release"].suffix else None
    if folder is None:
        find_format(paths["release"], None, write=True)
    for path in paths.values():
        refuse_place(path, overwrite=overwrite, folder=path == folder)
    return {path: state_of(path) for path in paths.values()}


def write_all(
    staged: AbstractContextManager[Written], paths: Mapping[str, Path], texts: Mapping[str, str],
    *, manifest: Callable[[list[dict[str, Any]]], str], found: Mapping[Path, State],
    overwrite: bool,
) -> Written:  # fmt: skip
    """Write the release, its reports and its manifest.

    `staged` writes the release, which gets its name when it is left: see `staged_file`. `texts` are
    the files beside the release by what they are; the manifest is made when the hashes are known.
    `found` is what `refuse_places` found in these places.
    """
    # The order in which files get their names.
    contexts: list[tuple[Path, AbstractContextManager[Any]]] = []
    named: list[Path] = []
    replaced: set[Path] = set()
    try:
        written: Written = staged.__enter__()
        contexts.append((paths["release"], staged))
        files = [_listed("release", paths["release"], written.sha256, written.size)]
        for name, digest, size in written.parts:
            part = {"what": "part", "file": f"{paths['release'].name}/{name}"}
            files.append({**part, "sha256": digest, "bytes": size})
        for what, path in paths.items():
            if what in ("release", "manifest"):
                continue
            content = texts[what].encode("utf-8")
            contexts.append((path, _stage(path, content, what, overwrite=overwrite)))
            if what in PUBLIC:
                digest = hashlib.sha256(content).hexdigest()
                files.append(_listed(what, path, digest, len(content)))
        if "manifest" in paths:
            content = manifest(files).encode("utf-8")
            stage = _stage(paths["manifest"], content, "manifest", overwrite=overwrite)
            contexts.append((paths["manifest"], stage))
        with held(path.parent for path in paths.values()):
            _refuse_changed(found)
            if overwrite:
                replaced = {path for path in paths.values() if path.exists()}
            _remove_old(paths, replaced)
            while contexts:
                path, context = contexts[0]
                context.__exit__(None, None, None)
                contexts.pop(0)
                named.append(path)
    except BaseException as error:
        for _, context in contexts:
            with suppress(BaseException):
                context.__exit__(type(error), error, error.__traceback__)
        for path in reversed(named):
            if path not in replaced:  # what took the place of an old file cannot be taken back
                path.unlink(missing_ok=True)
        raise
    return written


def _refuse_changed(found: Mapping[Path, State]) -> None:
    """Refuse a place that somebody else wrote to since this plan was started."""
    for path, state in found.items():
        if state_of(path) != state:
            problem = "another process wrote or removed it while this plan was running"
            advice = "look at what is there, then run the plan again"
            raise BadFileError(path, problem, f"Nothing of this run was written: {advice}")


def _stage(path: Path, content: bytes, what: str, *, overwrite: bool) -> Any:
    context = whole_or_nothing(path, overwrite=overwrite, private=what in PRIVATE)
    file: BinaryIO = context.__enter__()
    try:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    except BaseException as error:
        context.__exit__(type(error), error, error.__traceback__)  # raises what it makes of it
        raise
    return context


def _remove_old(paths: Mapping[str, Path], replaced: set[Path]) -> None:
    """Remove what speaks of the old release, the manifest first; the old release stays."""
    for what in reversed(list(paths)):
        if what != "release" and paths[what] in replaced:
            try:
                paths[what].unlink(missing_ok=True)
            except OSError as error:
                raise unwritable(paths[what], error) from error
            with suppress(OSError):
                sync_folder(paths[what].parent)


def _listed(what: str, path: Path, digest: str, size: int) -> dict[str, Any]:
    return {"what": what, "file": path.name, "sha256": digest, "bytes": size}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Publication:
    """A release on disk, with its reports. **The object itself is confidential.**

    Attributes
    ----------
    paths : mapping of str to Path
        The files, by what they are: "release", "internal report", "summary", "external report",
        "manifest".
    release : Release
        The released table, in the order of the original, and its audit.
    loss : Summary or None
        The information loss by every generic measure.
    risk, risk_before : Assessment or None
        What attacks find in the release, and in the original as it is.
    protocol : Protocol
        Every step from reading to writing, with times.
    summary : dict
        What the reports are made of.
    written : Written
        What the format of the released file asked for.
    warnings : tuple of str
        What was warned of on the way, and of categories that masking moved.
    """

    paths: Mapping[str, Path]
    release: Release
    loss: Summary | None
    risk: Assessment | None
    risk_before: Assessment | None
    protocol: Protocol
    summary: dict[str, Any]
    written: Written
    warnings: tuple[str, ...] = field(default=())

    @property
    def seconds(self) -> float:
        """How long all of it took."""
        return sum(entry.seconds for entry in self.protocol)

    def __str__(self) -> str:
        public = self.summary["public"]
        columns = counted(len(public["columns"]), "column")
        lines = [f"{public['records']:,} records in {columns} released."]
        if public["k"] is not None:
            smallest = min(block["smallest"] for block in public["blocks"])
            how = "" if public["shared"] == PLAIN else f" that {public['shared']}"
            lines.append(
                f"Smallest group: {smallest} {public['counted']}{how} (k = {public['k']})."
            )
        if left_out := self._left_out():
            lines.append(f"Not released: {', '.join(left_out)}.")
        kept = list(filter(self._is_kept, public["columns"]))
        if open_ := [column["name"] for column in kept if not column["stratum"]]:
            counted_in = "" if public["k"] is None else ", and not counted in k"
            they = "it" if len(open_) == 1 else "they"
            named = ", ".join(open_)
            lines.append(
                f"Released as they are{counted_in}: {named} ({they} can help to identify)."
            )
        if strata := [column["name"] for column in kept if column["stratum"]]:
            lines.append(f"Strata, released as they are: {', '.join(strata)}.")
        for entry in self.protocol:
            if entry.method == "suppress" and not entry.account.startswith("0 "):
                lines.append(f"Rare patterns of missing cells: {entry.account}")
        changed = [one for one in self.written.statements if one.about in ("formulas", "names")]
        lines += [f"In the file, {statement}." for statement in changed]
        lines += map(str, self.release.probabilistic)
        if rules := len(self.release.rules):
            hold = "The rule holds" if rules == 1 else f"Rules: all {rules} hold"
            if wrong := self.release.inconsistent:
                which = "it" if rules == 1 else "one"
                hold += f"; {wrong:,} of {public['records']:,} records broke {which} before"
            lines.append(f"{hold}.")
        beside, recoded = beside_loss(self.release.audit), self.release.recoding_loss
        if self.release.column_loss or not recoded:
            lines.append(f"Information loss {self.release.loss:.2f} % (SSE/SST){beside}.")
        if recoded:
            mean = sum(recoded.values()) / len(recoded)
            lines.append(f"Certainty penalty of recoded columns {mean:.2f} %.")
        lines += [] if self.release.estimates is None else [self.release.estimates.sentence]
        if self.risk is not None and self.risk.worst is not None:
            worst, before = self.risk.worst, self.risk_before
            skipped = ", ".join(self.risk.skipped)
            skipped = f"; not tried: {skipped}" if skipped else ""
            was = "" if before is None else f", {100 * before.value:.1f} % in the unmasked original"
            lines.append(
                f"Risk: the worst of {len(self.risk.tried)} attacks ({worst.name}{skipped}) finds "
                f"{100 * worst.found.value:.1f} % of the records ({worst.found.beside()}){was}."
            )
        width = max(map(len, self.paths))
        for what, path in self.paths.items():
            secret = "  (confidential)" if what in ("internal report", "summary") else ""
            lines.append(f"{what.ljust(width)}  {path}{secret}")
        lines += [f"Warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    __repr__ = __str__

    def _left_out(self) -> list[str]:
        """List the columns that were dropped, and that of the units, unless it was renumbered."""
        dropped = [
            name for entry in self.protocol if entry.method == "drop" for name in entry.columns
        ]
        unit = self.release.audit.unit
        if unit is None or unit in Table.read(self.release.table).columns:
            return dropped
        return [*dropped, f"{unit} (the units that k counts)"]

    def _is_kept(self, column: Mapping[str, Any]) -> bool:
        """Return whether a column of the public summary is released as it is."""
        unit = self.release.audit.unit
        return not (column["masked"] or column["recoded"]) and column["name"] != str(unit)


log = logging.getLogger("tessella")


def _to_json(summary: dict[str, Any]) -> str:
    # in the order in which reports show things: they are written from it again
    return json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


TEXTS: dict[str, Callable[[dict[str, Any]], str]] = {  # beside the release and its manifest
    "internal report": internal_report,
    "external report": external_report,
    "summary": _to_json,
}


class Steps:
    """The named steps: each is timed, logged, reported to `progress`, and kept."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.progress, self.done = total, progress, 0
        self.left = TimeLeft()
        self.entries: list[Entry] = []

    @contextmanager
    def step(self, name: str, **options: Any) -> Iterator[list[str]]:
        """Time a step; what is appended to the list given is its account."""
        self.announce(name)
        began, account = perf_counter(), list[str]()
        yield account
        seconds = perf_counter() - began
        self.keep(Entry(method=name, options=options, account=" ".join(account), seconds=seconds))

    def keep(self, entry: Entry) -> None:
        """Keep what a step has done."""
        log.info("%s: %.2f s", entry.method, entry.seconds)
        self.entries.append(entry)
        self.done += 1

    def announce(self, name: str) -> None:
        """Report that a step begins."""
        return_memory()
        self.left = TimeLeft()
        if self.progress is not None:
            self.progress(self.done, self.total, name)

    def within(self, name: str, at: int, of: int, part: str) -> None:
        """Report how far a long step is, and about how long it will take."""
        if self.progress is not None:
            left = self.left(at, of)
            far = f"{at} of {of}" if of < 100 else f"{100 * at / of:.1f} %"
            self.progress(self.done, self.total, f"{name}: {part} ({far}){left}")
