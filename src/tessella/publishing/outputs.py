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
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from .._output import (
    State,
    held,
    refuse_same_file,
    state_of,
    sync_folder,
    unwritable,
    whole_or_nothing,
)
from ..exceptions import BadFileError
from ..io.files import Written, staged_file
from ..io.source import find_format

PRIVATE = ("internal report", "summary")
PUBLIC = ("external report",)  # in the manifest, beside the release


def refuse_places(
    paths: Mapping[str, Path], *, inputs: Mapping[str, Path], overwrite: bool
) -> dict[Path, State]:
    """Refuse outputs that cannot be written, before anything is read; return what is there now."""
    refuse_same_file(paths, inputs)
    find_format(paths["release"], None, write=True)
    for path in paths.values():
        if not path.parent.is_dir():
            raise BadFileError(path, "its folder does not exist", "Create it, or give another path")
        if path.is_dir():
            raise BadFileError(path, "it is a folder", "Give the name of a file")
        if path.exists() and not overwrite:
            advice = "Give another name, or overwrite=True to replace it"
            raise BadFileError(path, "the file exists", advice)
    return {path: state_of(path) for path in paths.values()}


def write_all(
    frame: Any, paths: Mapping[str, Path], texts: Mapping[str, str], *,
    manifest: Callable[[list[dict[str, Any]]], str], found: Mapping[Path, State],
    overwrite: bool, **options: Any,
) -> Written:  # fmt: skip
    """Write the release, its reports and its manifest; `options` are those of `write_file`.

    `texts` are the files beside the release by what they are; the manifest is made when the hashes
    are known. `found` is what `refuse_places` found in these places.
    """
    # The order in which files get their names.
    contexts: list[tuple[Path, AbstractContextManager[Any]]] = []
    named: list[Path] = []
    replaced: set[Path] = set()
    try:
        staged = staged_file(frame, paths["release"], overwrite=overwrite, **options)
        written: Written = staged.__enter__()
        contexts.append((paths["release"], staged))
        files = [_listed("release", paths["release"], written.sha256, written.size)]
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
