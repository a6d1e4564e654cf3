"""The public reference files on which microaggregation is measured: Tarragona, Census, EIA.

They are not part of tessella and are never downloaded: each is read from a folder of the user,
proved to be the right one by its SHA-256, and where it is not there, the error says how to get it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._parameters import FLAG, parameters
from ..exceptions import BadTableError, DataNotFoundError
from .tables import COMMON, ColumnData, to_frame

__all__ = ["data_folders", "load_census", "load_eia", "load_tarragona"]

REPOSITORY = "https://github.com/sdcTools/sdcMicro"


@dataclass(frozen=True, kw_only=True)
class PublicFile:
    """A file that the user provides, and how to recognise it."""

    name: str  # as tessella looks for it
    thing: str  # the R object in data/<thing>.rda of sdcMicro's repository
    about: str
    sha256: str  # of the table written plainly: see `fingerprint`


TARRAGONA = PublicFile(
    name="tarragona.csv",
    thing="Tarragona",
    about="834 firms, 13 columns",
    sha256="d5f719a134a3476b2157d9675d1a2b211dbc06ad6109685ad1e4b7847cfa45a4",
)
CENSUS = PublicFile(
    name="census.csv",
    thing="CASCrefmicrodata",
    about="1,080 persons, 13 columns",
    sha256="40fb91564d4379274610e941161fd38729adb471bddb9c71d7c01ef142fd0f5b",
)
EIA = PublicFile(
    name="eia.csv",
    thing="EIA",
    about="4,092 records of electric utilities, 15 columns",
    sha256="4df54e21b3451e3c0b6081fa1c9ef5dbd8f09d484925ed2ade759b78b4869d1b",
)


@parameters(**COMMON)
def load_tarragona(*, frame: str = "pandas") -> Any:
    """Load Tarragona: 834 firms, 13 figures of 1995 each; whole numbers, some negative.

    Parameters
    ----------
    frame : {"pandas", "polars", "arrow", "numpy"}
        The kind of table.

    Returns
    -------
    table : frame of shape (834, 13)

    Raises
    ------
    DataNotFoundError
        Where `tarragona.csv` is in none of `data_folders()`; the message says how to get it.

    References
    ----------
    R. Brand, J. Domingo-Ferrer, J. M. Mateo-Sanz (2002), "Reference data sets to test and compare
    SDC methods for protection of numerical microdata", CASC project.
    """
    return to_frame(_columns(TARRAGONA), frame)


@parameters(**COMMON)
def load_census(*, frame: str = "pandas") -> Any:
    """Load Census: 1,080 persons of the United States, 13 figures of 1995 each; all positive.

    Every record obeys PTOTVAL == PEARNVAL + POTHVAL, FEDTAX <= TAXINC and TAXINC <= AGI.

    Parameters
    ----------
    frame : {"pandas", "polars", "arrow", "numpy"}
        The kind of table.

    Returns
    -------
    table : frame of shape (1080, 13)

    Raises
    ------
    DataNotFoundError
        Where `census.csv` is in none of `data_folders()`; the message says how to get it.

    References
    ----------
    R. Brand, J. Domingo-Ferrer, J. M. Mateo-Sanz (2002), "Reference data sets to test and compare
    SDC methods for protection of numerical microdata", CASC project.
    """
    return to_frame(_columns(CENSUS), frame)


@parameters(literature=[FLAG], **COMMON)
def load_eia(*, literature: bool = True, frame: str = "pandas") -> Any:
    """Load EIA: 4,092 records of electric utilities, 1996.

    TOTREVENUE is meant to be the sum of the four other revenues, and TOTSALES of the four other
    sales, but some records break this: real data with real errors.

    Parameters
    ----------
    literature : bool
        Only the 11 columns on which the literature measures: UTILITYID, then RESREVENUE to
        TOTSALES. Otherwise all 15, name, state, year and month included.
    frame : {"pandas", "polars", "arrow", "numpy"}
        The kind of table.

    Returns
    -------
    table : frame of shape (4092, 11) or (4092, 15)

    Raises
    ------
    DataNotFoundError
        Where `eia.csv` is in none of `data_folders()`; the message says how to get it.

    References
    ----------
    R. Brand, J. Domingo-Ferrer, J. M. Mateo-Sanz (2002), "Reference data sets to test and compare
    SDC methods for protection of numerical microdata", CASC project.
    """
    columns = _columns(EIA)
    if literature:
        for name in ("UTILNAME", "STATE", "YEAR", "MONTH"):
            del columns[name]
    return to_frame(columns, frame)


def data_folders() -> list[Path]:
    """Return the folders in which public files are looked for, first to last.

    TESSELLA_DATA where it is set, then the user's data folder: `%APPDATA%/tessella` on Windows,
    `~/Library/Application Support/tessella` on macOS, `$XDG_DATA_HOME/tessella` or
    `~/.local/share/tessella` elsewhere.
    """
    own = os.environ.get("TESSELLA_DATA")
    if sys.platform == "win32":
        base = os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return [*([Path(own)] if own else []), Path(base) / "tessella"]


def fingerprint(rows: Sequence[Sequence[str]]) -> str:
    """Return the SHA-256 of a table written plainly.

    Plainly: UTF-8, lines that end in LF, quotes only where a comma or a quote needs them, whole
    numbers without exponent or decimal point. So the same table has the same fingerprint from R,
    from pandas, or from a spreadsheet.
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_plain(cell) for cell in row] for row in rows)
    return hashlib.sha256(text.getvalue().encode()).hexdigest()


def _plain(cell: str) -> str:
    try:
        number = float(cell)
    except ValueError:
        return cell
    return str(int(number)) if number.is_integer() else repr(number)


def _columns(file: PublicFile) -> dict[str, ColumnData]:
    path = _find(file)
    rows = list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig", "replace"))))
    found = fingerprint(rows)
    if found != file.sha256:
        raise BadTableError(
            f"{path} is not the public table {file.thing}: its content has SHA-256 {found}, "
            f"expected was {file.sha256}. {_where_from(file)} "
            "To work on a table of your own, read it yourself and hand it over as a frame."
        )
    names, *records = rows
    return {name: _column(cells) for name, *cells in zip(names, *records)}


def _find(file: PublicFile) -> Path:
    folders = data_folders()
    for folder in folders:
        if (folder / file.name).is_file():
            return folder / file.name
    raise DataNotFoundError(
        f"The public table {file.thing} ({file.about}) is not on this machine: there is no "
        f"{file.name} in {' or '.join(str(folder) for folder in folders)}. {_where_from(file)} "
        "Put it into that folder, or into any other and set TESSELLA_DATA to it. "
        f"Its SHA-256, written plainly, is {file.sha256}. tessella downloads nothing."
    )


def _where_from(file: PublicFile) -> str:
    return (
        f"The table is public: data/{file.thing}.rda in the repository of the R package sdcMicro "
        f"({REPOSITORY}), a reference file of the CASC project. In R: "
        f'load("{file.thing}.rda"); write.csv({file.thing}, "{file.name}", row.names = FALSE).'
    )


def _column(cells: list[str]) -> ColumnData:
    try:
        numbers = np.array(cells, dtype=np.float64)
    except ValueError:
        return np.array(cells)
    whole = numbers.astype(np.int64)
    return whole if (whole == numbers).all() else numbers
