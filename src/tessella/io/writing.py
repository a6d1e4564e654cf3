"""One way out, whatever the format: whole or not at all, and nothing but the table.

A file appears under its name when every byte of it is on the disk. On Linux the bytes go to a file
without a name (`O_TMPFILE`), which vanishes with the process, whatever ends it; it gets its name
when it is whole. Where that is not possible the temporary file stands in the same folder, readable
by its owner only, and is called `.name.tessella-unfinished-...`: only a kill that no program can
catch leaves one behind, and it holds released values, never original ones.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..exceptions import BadFileError, BadOptionError
from .source import Format, Metadata, Source, Statement, compression_of, find_format


@dataclass(frozen=True, kw_only=True)
class Written:
    """An account of what was written.

    `sha256` is the hash of the file, `size` its length in bytes; `statements` tell every
    conversion that the format asked for.
    """

    path: Path
    format: str
    n_rows: int
    columns: tuple[str, ...]
    sha256: str
    size: int = 0
    statements: tuple[Statement, ...] = ()

    def __str__(self) -> str:
        head = f"{self.path}: {self.format}, {self.n_rows:,} records, {len(self.columns)} columns"
        return "\n".join([head, *map(str, self.statements)])

    def to_dict(self) -> dict[str, Any]:
        """Return what a manifest records."""
        return {
            "file": self.path.name,
            "format": self.format,
            "records": self.n_rows,
            "columns": list(self.columns),
            "sha256": self.sha256,
            "bytes": self.size,
            "statements": [str(statement) for statement in self.statements],
        }


def write_file(
    frame: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    like: Source | None = None,
    metadata: Metadata | None = None,
    keep_labels: bool = False,
    overwrite: bool = False,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    safe: bool = True,
    sheet: str = "data",
) -> Written:
    """Write a table to a file, whole or not at all.

    The same table gives the same bytes: no file holds a time, a user, a machine or a path.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The table.
    path : path
        Where to. The ending of the name decides the format, and .csv.gz or .csv.zst the packing.
    format : str, optional
        One of `tessella.io.FORMATS` that can be written.
    like : Source, optional
        Where the table comes from: its labels, levels, missing codes and (for CSV) delimiter and
        decimal sign are used again. The source itself is never overwritten.
    metadata : Metadata, optional
        Labels, levels and missing codes, instead of those of `like`.
    keep_labels : bool
        Whether to write labels of values that do not occur in the table. By default they are left
        out: the label of a suppressed category tells that it existed.
    overwrite : bool
        Whether a file of that name may be replaced.
    delimiter, decimal, encoding : str, optional
        For CSV: the sign between fields (",", or ";" with a decimal comma), the decimal sign
        ("."), the encoding ("utf-8").
    safe : bool
        For CSV: whether text that begins like a formula is made harmless by an apostrophe. In
        Excel files text is always text.
    sheet : str
        For Excel: the name of the sheet.

    Returns
    -------
    Written
        What was written, its hash, and what the format could not hold as it was.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import pandas as pd
    >>> from tessella.io import write_file
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "release.csv")
    >>> release = pd.DataFrame({"town": ["Reus", "=1+1"], "age": [40, 40]})
    >>> for statement in write_file(release, path).statements:
    ...     print(statement)
    formulas: an apostrophe stands before texts that begin as one (town (1))
    delimiter: ','
    >>> print(path.read_text())
    "town","age"
    "Reus",40
    "'=1+1",40
    <BLANKLINE>
    >>> folder.cleanup()
    """
    given = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
    with staged_file(
        frame, path, format=format, like=like, metadata=metadata, keep_labels=keep_labels,
        overwrite=overwrite, safe=safe, sheet=sheet, **given,
    ) as written:  # fmt: skip
        return written


@contextmanager
def staged_file(
    frame: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    like: Source | None = None,
    metadata: Metadata | None = None,
    keep_labels: bool = False,
    overwrite: bool = False,
    **options: Any,
) -> Iterator[Written]:
    """Write a table to a file that gets its name when the block ends well; see `write_file`.

    In the block all bytes are written, and their hash is known; no file has that name yet.
    """
    from .arrow import scrub, to_arrow

    path = Path(path)
    form = find_format(path, format, write=True)
    if like is not None and path.exists() and path.samefile(like.path):
        raise BadFileError(path, "this is the original", "Give another name to the release")
    table, statements = to_arrow(frame)
    if form.name not in ("csv", "excel"):  # these two write what cells show, and nothing else
        table = scrub(table)
    if metadata is None:
        metadata = like.metadata if like is not None else Metadata()
    options = _options(form, path, like, **options)
    tags = like.tags if like is not None else {}
    if form.name in ("stata", "sas-transport"):
        options["tags"] = tags
    kept = _public(table, metadata, tags, keep_labels=keep_labels)
    if form.labels:
        options["metadata"] = kept
    with whole_or_nothing(path, overwrite=overwrite) as file:
        statements += form.load(form.writer)(table, file, path, **options)
        if kept and not form.labels:
            lost = f"not written: {form.name} has no place for them"
            statements.append(Statement("labels", lost))
        file.flush()
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        size = file.tell()
        os.fsync(file.fileno())  # a full disk shows before anything has a name
        packed = compression_of(path)
        yield Written(
            path=path,
            format=f"{form.name}, {packed}" if packed else form.name,
            n_rows=table.num_rows,
            columns=tuple(table.column_names),
            sha256=digest,
            size=size,
            statements=tuple(statements),
        )


def _public(
    table: Any, metadata: Metadata, tags: Mapping[str, Any], *, keep_labels: bool
) -> Metadata:
    """Leave out what speaks of columns and values that are not in the table."""
    occurring = {}
    for name in table.column_names:
        values = table.column(name).unique().to_pylist() if metadata[name].labels else []
        letters = tags.get(name)
        if letters is not None and len(letters) == table.num_rows:
            values += letters.filter(table.column(name).is_null()).unique().to_pylist()
        occurring[name] = values
    return metadata.only(occurring, keep_labels=keep_labels)


def _options(
    form: Format,
    path: Path,
    like: Source | None,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    safe: bool = True,
    sheet: str = "data",
) -> dict[str, Any]:
    """Return the options of the format's writer."""
    if form.name != "csv":
        given = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
        for name, value in given.items():
            if value is not None:
                raise BadOptionError(name, value, f"nothing: it has no meaning for {form.name}")
        return {"sheet": sheet} if form.name == "excel" else {}
    known = like.how.options if like is not None and like.format == "csv" else {}
    decimal = decimal or known.get("decimal", ".")
    tabbed = "\t" if Path(path.stem if compression_of(path) else path).suffix == ".tsv" else None
    usual = tabbed or known.get("delimiter") or (";" if decimal == "," else ",")
    if usual == decimal:
        usual = ";"
    return {
        "delimiter": delimiter or usual,
        "decimal": decimal,
        "encoding": encoding or "utf-8",
        "safe": safe,
    }


UNFINISHED = "tessella-unfinished"


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
