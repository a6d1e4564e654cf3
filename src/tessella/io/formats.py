"""Which formats there are, and which ending of a name means which."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..exceptions import BadFileError, UnknownOptionError

__all__ = ["FORMATS", "Format", "find_format"]


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of files.

    `endings` are those of file names; `written` says whether tessella writes it too.
    """

    name: str
    endings: tuple[str, ...]
    written: bool = True


_LIST = (
    Format(name="csv", endings=(".csv", ".tsv", ".tab", ".txt")),
    Format(name="parquet", endings=(".parquet", ".pq")),
    Format(name="feather", endings=(".feather", ".arrow", ".ipc")),
    Format(name="excel", endings=(".xlsx", ".xlsm")),
    Format(name="spss", endings=(".sav", ".zsav")),
    Format(name="spss-portable", endings=(".por",), written=False),
    Format(name="stata", endings=(".dta",)),
    Format(name="sas", endings=(".sas7bdat",), written=False),
    Format(name="sas-transport", endings=(".xpt", ".xport")),
)
FORMATS = {form.name: form for form in _LIST}
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}


def compression_of(path: Path) -> str | None:
    """Return "gzip" or "zstd" if the name ends so."""
    return COMPRESSED.get(path.suffix.lower())


def find_format(path: Path, given: str | None, *, write: bool = False) -> Format:
    """Return the format that was given, or the one that the name of the file means."""
    offered = [name for name, form in FORMATS.items() if form.written or not write]
    if given is not None and given not in offered:
        raise UnknownOptionError("format", given, offered)
    packed = compression_of(path)
    ending = Path(path.stem if packed else path.name).suffix.lower()
    form = FORMATS[given] if given else _by_ending(path, ending)
    if packed and form.name != "csv":
        raise BadFileError(
            path,
            f"{packed} around {form.name} is not supported",
            "Only CSV is compressed as a whole; the other formats compress inside",
        )
    if write and not form.written:
        raise BadFileError(
            path,
            f"{form.name} can be read, not written",
            f"Write one of: {', '.join(offered)}",
        )
    return form


def _by_ending(path: Path, ending: str) -> Format:
    for form in _LIST:
        if ending in form.endings:
            return form
    if ending == ".xls":
        raise BadFileError(path, "this is the Excel of before 2007", "Save it as .xlsx first")
    known = " ".join(end for form in _LIST for end in form.endings)
    raise BadFileError(
        path,
        f"no format is known by the ending {ending!r}" if ending else "its name has no ending",
        f"Give format=, one of {', '.join(FORMATS)}; or use one of these endings: {known}",
    )
