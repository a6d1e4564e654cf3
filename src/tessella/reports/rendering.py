"""Summaries as HTML: one file each, which asks nothing from outside and prints well."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

__all__ = ["external_report", "internal_report", "templates"]


@cache
def templates() -> Any:
    """Return the environment of the templates, for those who build pages of the same look.

    Names and labels of a table are text, never markup: everything is escaped, and a variable that
    is not there is an error.

    Returns
    -------
    jinja2.Environment
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
    page = templates().get_template("external.html")
    text: str = page.render(public=summary["public"])
    return text


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
    text: str = page.render(public=summary["public"], own=summary["confidential"])
    return text


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
