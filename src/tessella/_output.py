"""What is written out: plain values for JSON, values as TOML, and files, whole or not at all.

A file appears under its name when every byte of it is on the disk. On Linux the bytes go to a file
without a name (`O_TMPFILE`), which vanishes with the process, whatever ends it; it gets its name
when it is whole. Where that is not possible the temporary file stands in the same folder, readable
by its owner only, and is called `.name.tessella-unfinished-...`: only a kill that no program can
catch leaves one behind, and it holds released values, never original ones.

Standard output belongs to Python: what compiled code prints there goes to standard error. HiGHS
prints lines that no option turns off. They pass C's own buffer, so that into a pipe they come out
when the process ends, behind or within what was printed in between.
"""

import ctypes
import datetime
import errno
import io
import math
import os
import secrets
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO

from .exceptions import BadFileError, BadOptionError, TessellaError

_turn = threading.RLock()  # of who changes standard output
_stdout: dict[str, Any] = {"holders": 0, "kept": None}


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


def is_held(folder: Path) -> bool:
    """Return whether another process holds a folder, as far as the system tells."""
    if sys.platform == "win32" or not folder.is_dir():
        return False
    import fcntl

    with _opened(folder) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # this file system locks no folders
            return False
    return False


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


def refuse_outputs(
    paths: Mapping[str, str | Path | None], *, inputs: Mapping[str, str | Path | None],
    overwrite: bool,
) -> None:  # fmt: skip
    """Refuse outputs that cannot be written, before anything is computed; None is no file.

    What is read is never replaced, whatever `overwrite` is: nobody could get it back.
    """
    wanted = {what: Path(path) for what, path in paths.items() if path is not None}
    refuse_same_file(wanted, {what: Path(path) for what, path in inputs.items() if path})
    for path in wanted.values():
        refuse_place(path, overwrite=overwrite)


def refuse_place(path: str | Path, *, overwrite: bool, folder: bool = False) -> None:
    """Refuse a name under which no file can be written, or no `folder`."""
    path = Path(path)
    if not path.parent.is_dir():
        raise BadFileError(path, "its folder does not exist", "Create it, or give another path")
    if path.is_dir() and not folder:
        raise BadFileError(path, "it is a folder", "Give the name of a file")
    if path.exists() and not overwrite:
        raise exists_already(path)


@contextmanager
def whole_or_nothing(path: Path, *, overwrite: bool, private: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write; it gets its name if the block ends well, and no trace is left if not.

    Only its owner may read a `private` file.
    """
    refuse_place(path, overwrite=overwrite)
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


def exists_already(path: Path) -> BadFileError:
    """Return the error for a place that is taken."""
    return BadFileError(
        path, "the file exists", "Give another name, or overwrite=True to replace it"
    )


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
                raise exists_already(path) from None
        else:
            return
        # A link cannot replace: the whole file takes a name next door first.
        beside = name_beside(path)
        os.link(nameless, beside.name, dst_dir_fd=folder, follow_symlinks=True)
        try:
            os.replace(beside, path)
        except BaseException:
            with suppress(FileNotFoundError):
                beside.unlink()
            raise


def _by_renaming(path: Path, *, overwrite: bool, mode: int = 0o666) -> Iterator[BinaryIO]:
    beside = name_beside(path)
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    descriptor = os.open(beside, flags, 0o600)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode & ~umask())
            os.fsync(descriptor)
        if overwrite:
            os.replace(beside, path)
        else:
            try:
                os.link(beside, path)
            except FileExistsError:
                raise exists_already(path) from None
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def name_beside(path: Path) -> Path:
    """Return a hidden name in the same folder, for what is not finished."""
    return path.with_name(f".{path.name[:100]}.{UNFINISHED}-{secrets.token_hex(6)}")


def free_name(folder: Path, stem: str, ending: str, *, taken: str | None = None) -> str:
    """Return a name that no file of the folder has, nor is `taken`: plan.toml, plan-2.toml, ..."""
    name, at = f"{stem}{ending}", 2
    while name == taken or os.path.lexists(folder / name):
        name, at = f"{stem}-{at}{ending}", at + 1
    return name


def umask() -> int:
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


@contextmanager
def reserved_stdout() -> Iterator[None]:
    """Point descriptor 1 at standard error, and `sys.stdout` at what descriptor 1 was.

    The descriptor is that of the whole process: in the meantime `print` of every thread reaches
    standard output as ever, and only what goes around `sys.stdout` does not. Calls may be nested
    and overlap; the last to end restores both.
    """
    with _turn:
        _stdout["holders"] += 1
        if _stdout["holders"] == 1:
            _reserve()
    try:
        yield
    finally:
        with _turn:
            _stdout["holders"] -= 1
            if _stdout["holders"] == 0:
                _restore()


def _reserve() -> None:
    before = sys.stdout
    _stdout["before"], _stdout["within"], _stdout["reserved"] = before, None, False
    if sys.__stdout__ is None:  # it was closed from the start: descriptor 1 may be any file
        return
    _flush_compiled()
    if of_descriptor := _descriptor(before) == 1:
        before.flush()
    try:
        # One descriptor for good: another thread may still print to the stream made from it.
        kept = _stdout["kept"]
        _stdout["kept"] = _copy(1) if kept is None else os.dup2(1, kept, inheritable=False)
    except OSError:  # it was closed: nothing can reach it
        return
    if of_descriptor:
        sys.stdout = _stdout["within"] = _stream(_stdout["kept"], before)
    _point(1, 2)
    _stdout["reserved"] = True


def _restore() -> None:
    if not _stdout["reserved"]:
        return
    _flush_compiled()
    before, within, kept = _stdout["before"], _stdout["within"], _stdout["kept"]
    late = 2  # where it goes if another thread prints to `within` from now on
    try:
        if within is not None:
            within.flush()
    except BaseException:  # whoever read has gone, or the disk is full: the rest is lost
        late = -1
        raise
    finally:
        if sys.stdout is within:
            sys.stdout = before
        os.dup2(kept, 1)
        _point(kept, late)  # or whoever reads our output would never see its end


def _copy(descriptor: int) -> int:
    """Copy a descriptor, but not to the place of a standard one that is closed."""
    copies = [os.dup(descriptor)]
    while copies[-1] < 3:
        copies.append(os.dup(descriptor))
    for one in copies[:-1]:
        os.close(one)
    return copies[-1]


def _point(descriptor: int, target: int) -> None:
    """Let a descriptor be a copy of another; of none if that is closed."""
    try:
        os.dup2(target, descriptor, inheritable=descriptor < 3)
    except OSError:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), descriptor, inheritable=descriptor < 3)


def _stream(descriptor: int, like: Any) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        open(descriptor, "wb", closefd=False), encoding=like.encoding, errors=like.errors,
        line_buffering=like.line_buffering, write_through=getattr(like, "write_through", False),
    )  # fmt: skip


def _descriptor(stream: Any) -> int | None:
    try:
        return int(stream.fileno())
    except (AttributeError, OSError, ValueError):  # none, or one in memory
        return None


def _flush_compiled() -> None:
    """Empty the buffers of C; each Windows runtime has its own, of which this is the usual."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("ucrtbase" if os.name == "nt" else None).fflush(None)
