"""A folder of files, whole or not at all: it gets its name when every file of it is on the disk."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .._output import exists_already, name_beside, sync_folder, umask, unwritable
from ..exceptions import BadFileError, TessellaError

PART = "part-{:05d}.parquet"


@contextmanager
def whole_folder_or_nothing(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Make a folder to write into; it gets its name if the block ends well, and goes if not.

    Until then it stands beside, hidden, and is its owner's only. An old folder is replaced if it
    holds parts of a table and nothing else; it is there until the new one is whole. Only a process
    that is killed between two renamings leaves it under a hidden name.
    """
    refuse_folder(path, overwrite=overwrite)
    beside = name_beside(path)
    try:
        beside.mkdir(mode=0o700)
        yield beside
        beside.chmod(0o777 & ~umask())
        sync_folder(beside)
        _give_name(beside, path, overwrite=overwrite)
        sync_folder(path.parent)
    except OSError as error:  # such as a full disk, also while the block was writing
        if isinstance(error, TessellaError):
            raise
        raise unwritable(path, error) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def refuse_folder(path: Path, *, overwrite: bool) -> None:
    """Refuse a place where no folder can be made; an empty folder there is as good as none."""
    if not path.parent.is_dir():
        raise BadFileError(path, "its folder does not exist", "Create it, or give another path")
    if not path.is_dir():
        if path.exists() or path.is_symlink():
            problem = "it is a file, and a folder is to be written"
            raise BadFileError(path, problem, "Give another name")
        return
    held = sorted(os.listdir(path))
    if held and not overwrite:
        raise exists_already(path)
    for name in held:
        if not (name.startswith("part-") and name.endswith(".parquet") and (path / name).is_file()):
            problem = f"it holds {name!r}, which is no part of a table, and would be lost"
            raise BadFileError(path, problem, "Give another name, or move that away")


def _give_name(beside: Path, path: Path, *, overwrite: bool) -> None:
    refuse_folder(path, overwrite=overwrite)  # others may have written there
    old = name_beside(path) if path.is_dir() else None
    if old is not None:
        path.rename(old)
    try:
        beside.rename(path)
    except OSError as error:
        if old is not None:
            old.rename(path)
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise exists_already(path) from None
        raise
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
