"""What is written out: plain values for JSON, values as TOML, and files, whole or not at all.

A file appears under its name when every byte of it is on the disk. On Linux the bytes go to a file
without a name (`O_TMPFILE`), which vanishes with the process, whatever ends it; it gets its name
when it is whole. Where that is not possible the temporary file stands in the same folder, readable
by its owner only, and is called `.name.tessella-unfinished-...`: only a kill that no program can
catch leaves one behind, and it holds released values, never original ones.
"""

import datetime
import errno
import math
import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO

from .exceptions import BadFileError, BadOptionError, TessellaError


def plain_data(value: Any) -> Any:
    """Return dicts, lists, texts and numbers; what is not finite becomes None, as in JSON."""
    if isinstance(value, dict):
        return {str(name): plain_data(own) for name, own in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_data(own) for own in value]
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a scalar of NumPy
        return plain_data(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def toml_text(text: str) -> str:
    """Write a text in quotes."""
    escaped = "".join(
        f"\\{sign}" if sign in '\\"' else sign if sign.isprintable() else f"\\U{ord(sign):08x}"
        for sign in text
    )
    return f'"{escaped}"'


def toml_key(name: str) -> str:
    """Write a key, in quotes where it needs them."""
    bare = bool(name) and name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else toml_text(name)


def toml_value(value: Any) -> str:
    """Write a value on one line: text, number, date, list or table."""
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return repr(number) if math.isfinite(number) else str(number)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        inner = [f"{toml_key(str(name))} = {toml_value(own)}" for name, own in value.items()]
        return f"{{ {', '.join(inner)} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    raise BadOptionError("value", type(value).__name__, "text, a number, a date, a list or a table")


UNFINISHED = "tessella-unfinished"


def refuse_same_file(paths: Mapping[str, Path], inputs: Mapping[str, Path] | None = None) -> None:
    """Refuse two outputs, or an output and an input, that are one file, however they are spelled.

    A path is compared as it is resolved, as a name in its resolved folder (where a link would be
    replaced), and, where the file is there, by what it is on the disk: a hard link is the same.
    """
    known = [(what, path, _spellings(path)) for what, path in (inputs or {}).items()]
    for what, path in paths.items():
        here = _spellings(path)
        for other, _, there in known:
            if here & there:
                raise BadFileError(path, f"this is {other}", f"Give another name to the {what}")
        known.append((f"the {what}, too", path, here))


def _spellings(path: Path) -> set[object]:
    """Return all that two paths have in common, some of it, if they are one file."""
    names: set[object] = {path.resolve(), path.parent.resolve() / path.name}
    with suppress(OSError):
        found = path.stat()
        names.add((found.st_dev, found.st_ino))
    return names


State = tuple[int, int, int] | None


def state_of(path: Path) -> State:
    """Return what changes when another process puts a file in this place; None without one."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


@contextmanager
def held(folders: Iterable[Path]) -> Iterator[None]:
    """Hold folders, so that one process after the other names its files there.

    The lock is one of the system (`flock`) on the folder itself: it leaves no file, and ends with
    the process, whatever ends that. Where folders cannot be locked (a network file system), it is
    on an empty file `.tessella-lock`, which stays. Folders are taken in one order by all, so that
    two processes never wait for each other.
    """
    different = {(f.stat().st_dev, f.stat().st_ino): f for f in folders}
    taken: list[int] = []
    try:
        for _, folder in sorted(different.items()):
            taken.append(_lock(folder))
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)


def _lock(folder: Path) -> int:
    if sys.platform != "win32":
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            return descriptor
        except OSError:  # this file system locks no folders
            os.close(descriptor)
    try:
        descriptor = os.open(folder / ".tessella-lock", os.O_RDWR | os.O_CREAT, 0o600)
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        return descriptor
    except OSError as error:
        raise unwritable(folder, error) from error


@contextmanager
def whole_or_nothing(path: Path, *, overwrite: bool, private: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write; it gets its name if the block ends well, and no trace is left if not.

    Only its owner may read a `private` file.
    """
    if not path.parent.is_dir():
        raise BadFileError(path, "its folder does not exist", "Create it, or give another path")
    if path.is_dir():
        raise BadFileError(path, "it is a folder", "Give the name of a file")
    if path.exists() and not overwrite:
        raise _exists(path)
    mode = 0o600 if private else 0o666
    try:
        nameless = _open_nameless(path.parent, mode)
        if nameless is None:
            yield from _by_renaming(path, overwrite=overwrite, mode=mode)
        else:
            with os.fdopen(nameless, "w+b") as file:
                yield file
                file.flush()
                os.fsync(nameless)
                _give_name(nameless, path, overwrite=overwrite)
        sync_folder(path.parent)
    except OSError as error:  # such as a full disk, also while the block was writing
        if isinstance(error, TessellaError):
            raise
        raise unwritable(path, error) from error


def sync_folder(folder: Path) -> None:
    """Wait until the names of files in a folder are on the disk, where the system can tell."""
    if os.name == "posix":
        with _opened(folder) as descriptor:
            os.fsync(descriptor)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


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
        raise


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
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    descriptor = os.open(beside, flags, 0o600)
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


def unwritable(path: Path, error: OSError) -> BadFileError:
    """Return the error for a file that the system did not let be written."""
    reason = (error.strerror or str(error)).lower()
    return BadFileError(path, f"it cannot be written ({reason})", "Make room, or give another path")
