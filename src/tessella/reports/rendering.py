"""Summaries as HTML: one file each, which asks nothing from outside and prints well."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np

from .. import pictures
from .._clock import waiting
from ..exceptions import TessellaError
from ..frame import Table
from ..loss.base import reason_of
from ..pictures.figures import styled
from ..release import Release, Study

MOST = 50_000  # records that a picture of where the loss is looks at


def draw(study: Study, release: Release) -> list[dict[str, str]]:
    """Draw what the internal report shows; what cannot be drawn says why."""
    reference, table = study.views
    names = [line.name for line in release.audit.columns if line.changed]
    wanted: list[tuple[str, str, Callable[[], Any]]] = [
        (
            "Distributions before and after",
            "For each masked column the distribution of the original, filled, and of the release, "
            "as a line.",
            lambda: pictures.before_and_after(reference, table, columns=names),
        ),
        (
            "Correlations before and after",
            "Correlations of the original and of the release, and their difference.",
            lambda: pictures.before_and_after(reference, table, show="correlations", columns=names),
        ),
        (
            "Group sizes",
            "How many groups have how many records; the dashed line marks k.",
            lambda: pictures.group_sizes(release),
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
            with warnings.catch_warnings():  # letters that no font has, numbers near the largest
                warnings.simplefilter("ignore")
                svg, why = inline(make(), f"picture{number}"), ""
        except (TessellaError, ArithmeticError, ValueError) as error:
            svg, why = "", reason_of(error)
        drawn.append({"title": title, "alt": alt, "svg": svg, "why": why})
    return drawn


def _where(study: Study) -> Any:
    tables: list[Any] = list(study.views)
    n = tables[0].n_rows
    if n > MOST:  # every so-manieth record: no chance, and the same on each run
        rows = np.linspace(0, n - 1, MOST).astype(np.int64)
        tables = [Table.read(view.table.take(rows)) for view in tables]
    return pictures.where_the_loss_is(*tables, schema=study.schema, on_unpaired="skip")


def inline(figure: Any, prefix: str) -> str:
    """Return a figure as an svg element for HTML: no header, no addresses, names of its own.

    Examples
    --------
    >>> from tessella.pictures import group_sizes
    >>> from tessella.reports.rendering import inline
    >>> text = inline(group_sizes([0, 0, 0, 1, 1, 1, 1], k=3), "sizes")
    >>> text[:4], "http" in text
    ('<svg', False)
    """
    content = BytesIO()
    with styled():
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    text = content.getvalue().decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    text = _only_used_names(text)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', text)
    width, height = re.findall(r'\b(?:width|height)="([\d.]+)pt"', text)[:2]
    for _ in ("width", "height"):
        text = re.sub(r'(<svg[^>]*?)\s(?:width|height)="[\d.]+pt"', r"\1", text, count=1)
    size = f'style="width: {float(width):.0f}pt; aspect-ratio: {width} / {height}"'
    return text.replace("<svg", f"<svg {size}", 1).strip()


def _only_used_names(text: str) -> str:
    """Keep the id of an element if something points to it, and once."""
    used = {"".join(both) for both in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text)}
    seen: set[str] = set()

    def keep(found: re.Match[str]) -> str:
        name = found[1]
        if name not in used or name in seen:
            return ""
        seen.add(name)
        return found[0]

    return re.sub(r'\sid="([^"]+)"', keep, text)


@cache
def templates() -> Any:
    """Return the environment of the templates, for those who build pages of the same look.

    Names and labels of a table are text, never markup: everything is escaped, and a variable that
    is not there is an error.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
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
