"""Summaries as HTML: one file each, which asks nothing from outside and prints well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from .._clock import waiting
from ..exceptions import TessellaError
from ..frame import Table
from ..loss import sse_sst, subgroup_loss
from ..loss.base import reason_of
from ..pictures.drawing import before_after
from ..pictures.figures import sizes_of
from ..pictures.profile import compare_columns
from ..pictures.result_drawing import (
    column_loss_bars,
    correlation_panels,
    group_loss_bars,
    group_size_bars,
)
from ..pictures.svg import joined
from ..pictures.tables import compare_correlations
from ..release import Release, Study

MOST = 50_000  # records that a picture of where the loss is looks at
MOST_COLUMNS = 16  # whose distributions are drawn


def draw(study: Study, release: Release) -> list[dict[str, str]]:
    """Draw what the internal report shows; what cannot be drawn says why."""
    reference, table = study.views
    names = [line.name for line in release.audit.columns if line.changed]
    there = [name for name in names if table.table.has(name)]
    shown = f"; the first {MOST_COLUMNS} of {len(names)}" if len(names) > MOST_COLUMNS else ""
    wanted: list[tuple[str, str, Callable[[], Markup]]] = [
        (
            "Distributions before and after",
            f"Each masked column{shown}: the original filled, the release as a line. Bars at the "
            "ends that are lighter hold all that is farther out.",
            lambda: joined(
                before_after(one) for one in compare_columns(reference, table, names[:MOST_COLUMNS])
            ),
        ),
        (
            "Correlations before and after",
            "Correlations of the original and of the release, and their difference.",
            lambda: correlation_panels(**compare_correlations(reference, table, there)),
        ),
        (
            "Group sizes",
            "How many groups have how many records; the dashed line marks k.",
            lambda: group_size_bars(*sizes_of(release)),
        ),
        (
            "Where the loss is",
            "The loss of each column, and which groups of records carry it.",
            lambda: _where(study),
        ),
    ]
    drawn = []
    for number, (title, alt, make) in enumerate(wanted):
        if not names or (title == "Group sizes" and not release.labels):
            continue
        if (progress := waiting()) is not None:
            progress(number, len(wanted), title.lower())
        try:
            with np.errstate(all="ignore"):  # numbers near the largest
                svg, why = str(make()), ""
        except (TessellaError, ArithmeticError, ValueError) as error:
            svg, why = "", reason_of(error)
        drawn.append({"title": title, "alt": alt, "svg": svg, "why": why})
    return drawn


def _where(study: Study) -> Markup:
    tables: list[Any] = list(study.views)
    n = tables[0].n_rows
    if n > MOST:  # every so-manieth record: no chance, and the same on each run
        rows = np.linspace(0, n - 1, MOST).astype(np.int64)
        tables = [Table.read(view.table.take(rows)) for view in tables]
    reading: dict[str, Any] = {"schema": study.schema, "on_unpaired": "skip"}
    columns = column_loss_bars(sse_sst(*tables, **reading).by_column)
    return joined([columns, group_loss_bars(subgroup_loss(*tables, **reading).groups)])


@cache
def templates() -> Any:
    """Return the environment of the templates, for those who build pages of the same look.

    Names and labels of a table are text, never markup: everything is escaped, and a variable that
    is not there is an error.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from .bytecode import BytecodeBeside

    here = Path(__file__)
    environment = Environment(
        bytecode_cache=BytecodeBeside(here.parent / "__pycache__", here.stat().st_mtime_ns),
        loader=PackageLoader("tessella.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "count": lambda n: f"{n:,}",
        "number": number,
        "percent": percent,
        "share": lambda x: percent(None if x is None else 100 * x),
        "signed": lambda x: percent(x, sign="+"),
        "parameters": parameters,
        "power": power,
        "names": lambda names: ", ".join(map(str, names)),
    }
    return environment


def external_report(summary: Mapping[str, Any]) -> str:
    """Write the report that may be published with the release.

    Parameters
    ----------
    summary : dict
        What `summarise` gave. Only its public part is looked at.

    Returns
    -------
    str
        HTML.
    """
    return str(templates().get_template("external.html").render(public=summary["public"]))


def internal_report(summary: Mapping[str, Any]) -> str:
    """Write the report for those who may see the original. **It is confidential.**

    Parameters
    ----------
    summary : dict
        What `summarise` gave.

    Returns
    -------
    str
        HTML.
    """
    page = templates().get_template("internal.html")
    return str(page.render(public=summary["public"], own=summary["confidential"]))


def number(value: Any, digits: int = 4) -> str:
    """Write a number for a reader.

    Examples
    --------
    >>> from tessella.reports.rendering import number
    >>> [number(x) for x in (12345.6, 0.000123, 3, None, 1e12)]
    ['12,346', '0.000123', '3', '–', '1e+12']
    """
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if value and abs(value) >= 10**digits and abs(value) < 1e10:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def percent(value: float | None, sign: str = "") -> str:
    """Write a per cent figure; `sign` "+" shows it.

    Examples
    --------
    >>> from tessella.reports.rendering import percent
    >>> percent(12.34), percent(0.0, "+"), percent(-3.0, "+"), percent(None)
    ('12.3 %', '0 %', '−3 %', '–')
    """
    if value is None:
        return "–"
    if value == 0:
        return "0 %"
    return f"{value:{sign}.3g}".replace("-", "−", 1) + " %"


def power(value: float) -> str:
    """Write a small number; powers of ten as such.

    Examples
    --------
    >>> from tessella.reports.rendering import power
    >>> power(1e-9), power(0.002), power(0)
    ('10⁻⁹', '0.002', '0')
    """
    digits = f"{value:e}".partition("e")
    if not 0 < value < 0.01 or digits[0].rstrip("0") != "1.":
        return f"{value:g}"
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "10" + str(int(digits[2])).translate(raised)


def parameters(options: Mapping[str, Any]) -> str:
    """Write parameters in a line."""
    return "; ".join(f"{name} = {_parameter(value)}" for name, value in options.items())


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_parameter(own)}" for name, own in value.items()) + "}"
    if isinstance(value, list | tuple):
        nested = [f"({_parameter(own)})" if isinstance(own, list) else str(own) for own in value]
        return ", ".join(nested)
    return str(value)
