"""Whole or not at all: a file appears under its name when every byte of it is on the disk.

On Linux the bytes go to a file without a name (`O_TMPFILE`), which vanishes with the process,
whatever ends it; it gets its name when it is whole. Where that is not possible the temporary file
stands in the same folder, readable by its owner only, and is called
`.name.tessella-unfinished-...`: only a kill that no program can catch leaves one behind, and it
holds released values, never original ones.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..exceptions import BadFileError

__all__ = ["UNFINISHED", "whole_or_nothing"]

UNFINISHED = "tessella-unfinished"


@contextmanager
def whole_or_nothing(path: Path, *, overwrite: bool, private: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write; it gets its name if the block ends well, and no trace is left if not.

    Parameters
    ----------
    path : Path
        The name that the file will have.
    overwrite : bool
        Whether a file of that name may be replaced.
    private : bool
        Whether only its owner may read it.
    """
    _refuse_bad_place(path, overwrite=overwrite)
    mode = 0o600 if private else 0o666
    nameless = _open_nameless(path.parent, mode)
    if nameless is None:
        yield from _by_renaming(path, overwrite=overwrite, mode=mode)
    else:
        with os.fdopen(nameless, "w+b") as file:
            yield file
            file.flush()
            os.fsync(nameless)
            _give_name(nameless, path, overwrite=overwrite)
    if os.name == "posix":  # the name, too, is on the disk
        with _opened(path.parent) as folder:
            os.fsync(folder)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _refuse_bad_place(path: Path, *, overwrite: bool) -> None:
    if not path.parent.is_dir():
        raise BadFileError(path, "its folder does not exist", "Create it, or give another path")
    if path.is_dir():
        raise BadFileError(path, "it is a folder", "Give the name of a file")
    if path.exists() and not overwrite:
        raise _exists(path)


def _exists(path: Path) -> BadFileError:
    return BadFileError(path, "the file exists", "Give another name, or overwrite=True")


def _open_nameless(folder: Path, mode: int = 0o666) -> int | None:
    """Open a file without a name, or None where the system has no such thing."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        # Nobody can open it before it has a name, so it may have its final permissions at once.
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            return None
        raise _refused(folder, error) from error


def _give_name(descriptor: int, path: Path, *, overwrite: bool) -> None:
    # With a folder's descriptor Python calls linkat and follows the link, as is needed here.
    nameless = f"/proc/self/fd/{descriptor}"
    with _opened(path.parent) as folder:
        try:
            os.link(nameless, path.name, dst_dir_fd=folder, follow_symlinks=True)
        except FileExistsError:
            if not overwrite:  # it came into being while we were writing
                raise _exists(path) from None
        else:
            return
        # A link cannot replace: the whole file takes a name next door first.
        beside = _name_beside(path)
        os.link(nameless, beside.name, dst_dir_fd=folder, follow_symlinks=True)
        try:
            os.replace(beside, path)
        except BaseException:
            with suppress(FileNotFoundError):
                beside.unlink()
            raise


def _by_renaming(path: Path, *, overwrite: bool, mode: int = 0o666) -> Iterator[BinaryIO]:
    beside = _name_beside(path)
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
        descriptor = os.open(beside, flags, 0o600)
    except OSError as error:
        raise _refused(path.parent, error) from error
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode & ~_umask())
            os.fsync(descriptor)
        if overwrite:
            os.replace(beside, path)
        else:
            try:
                os.link(beside, path)
            except FileExistsError:
                raise _exists(path) from None
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def _name_beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:100]}.{UNFINISHED}-{secrets.token_hex(6)}")


def _umask() -> int:
    """Read the mask of permissions without changing it, where the system tells."""
    with suppress(OSError), open("/proc/self/status") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _refused(folder: Path, error: OSError) -> BadFileError:
    reason = (error.strerror or str(error)).lower()
    return BadFileError(folder, f"no file can be written there ({reason})", "Give another folder")
