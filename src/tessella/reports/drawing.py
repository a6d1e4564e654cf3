"""Pictures inside of a report: as SVG that asks nothing from outside."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np

from .. import pictures
from ..exceptions import TessellaError
from ..frame import Table
from ..pictures.style import styled
from ..release import Release, Study

__all__ = ["draw", "inline"]

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
        try:
            svg, why = inline(make(), f"picture{number}"), ""
        except TessellaError as error:
            svg, why = "", str(error)
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
    >>> from tessella.reports.drawing import inline
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
    text = re.sub(r'(<svg[^>]*?)\s(?:width|height)="[\d.]+pt"', r"\1", text, count=1)
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
