"""The public reference files on which microaggregation is measured: Tarragona, Census, EIA.

They are not part of tessella and are never downloaded: each is read from a folder of the user,
proved to be the right one by its SHA-256, and where it is not there, the error says how to get it.

And one table that is printed in a paper.
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
        Where `census.csv` is missing, as for `load_tarragona`, which has the reference.
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
        Where `eia.csv` is missing, as for `load_tarragona`, which has the reference.
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


RULE = "total == 1.16 * at_16 + 1.07 * at_7   # prices with tax"

EXACT = """
15  23  42.01
12  43  59.93
64 229 319.27
12  45  62.07
28  39  74.21
71 102 191.50
23  64  95.16
25 102 138.14
48 230 301.78
32  50  90.62
90 200 318.40
16 100 125.56
"""

NOISY = """
16.91695  26.67021  41.37696
15.48220  42.61481  60.60212
65.86964 228.47892 318.70371
12.97750  45.84617  60.80475
25.93508  38.55444  75.96227
72.14286 103.34332 191.54478
24.43550  65.84895  96.49401
24.56774 101.54299 137.49281
47.97780 226.75840 302.78913
28.43727  48.02995  89.97244
91.86226 197.98087 318.96431
11.64466 100.13359 127.12980
"""


@parameters(noisy=[FLAG], as_printed=[FLAG], **COMMON)
def load_expenditure(
    *,
    noisy: bool = False,
    as_printed: bool = False,
    frame: str = "pandas",
    return_rules: bool = False,
) -> Any:
    """Load twelve records of expenditure that obey one linear rule, or almost obey it.

    Parameters
    ----------
    noisy : bool
        Load the second table: the first with noise of standard deviation 1.5 on every value, so
        that no record obeys the rule any more.
    as_printed : bool
        Leave the last record of the first table as it is printed; see Notes.
    frame : {"pandas", "polars", "arrow", "numpy"}
        The kind of table.
    return_rules : bool
        Also return the rule, as a list with one line of text.

    Returns
    -------
    table : frame of shape (12, 3)
        Expenditure taxed at 16 %, expenditure taxed at 7 %, and the total with tax:
        total = 1.16 at_16 + 1.07 at_7.
    rules : list of str
        Only with `return_rules`.

    Notes
    -----
    The first table is printed with (13, 100, 125.56) as its last record, which breaks the rule by
    3.48, while the paper says that the table obeys it and its centres of that table do, to five
    decimals. 1.16 * 16 + 1.07 * 100 is 125.56: the record is taken to be (16, 100, 125.56).

    References
    ----------
    V. Torra (2020), "Fuzzy clustering-based microaggregation to achieve probabilistic k-anonymity
    for data with constraints", Journal of Intelligent & Fuzzy Systems 39, Tables 1 and 2.

    Examples
    --------
    >>> from tessella.datasets import load_expenditure
    >>> table = load_expenditure()
    >>> off = table["total"] - 1.16 * table["at_16"] - 1.07 * table["at_7"]
    >>> bool(off.abs().max() < 1e-9)
    True
    """
    values = np.array((NOISY if noisy else EXACT).split(), dtype=np.float64).reshape(12, 3)
    if as_printed and not noisy:
        values[-1, 0] = 13.0
    columns: dict[str, ColumnData] = dict(zip(("at_16", "at_7", "total"), values.T.copy()))
    table = to_frame(columns, frame)
    return (table, [RULE]) if return_rules else table
