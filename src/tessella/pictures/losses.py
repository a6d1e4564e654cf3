"""Where the loss is: which columns and which groups of records carry it."""

from __future__ import annotations

import re
from typing import Any

from ..loss import sse_sst, subgroup_loss
from .style import BLACK, BLUE, GREY, LIGHT, RED, new_figure, plain, styled

__all__ = ["where_the_loss_is"]

MOST = 14  # groups or columns that have a bar


def where_the_loss_is(original: Any, masked: Any, *, by: Any = None, **reading: Any) -> Any:
    """Draw which columns and which groups of records carry the loss.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order.
    by : name, optional
        The column that makes the groups; otherwise they are found by a shallow tree.
    **reading
        `columns`, `schema`, `weights` and `on_unpaired`, as in `tessella.loss.measure`.

    Returns
    -------
    matplotlib.figure.Figure
        Left, SSE/SST of each column; right, for each group its share of the records beside its
        share of the loss. **It describes original records, and is confidential.**
    """
    columns = sse_sst(original, masked, **reading).by_column
    groups = subgroup_loss(original, masked, by=by, **reading)
    with styled():
        lines = sum(max(2, _wrapped(g.name).count("\n") + 1) for g in groups.groups[:MOST])
        figure = new_figure(9.6, 1.2 + max(0.3 * min(len(columns), MOST), 0.2 * lines, 1.0))
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.1])
        _of_columns(left, columns)
        _of_groups(right, groups)
    return figure


def _of_columns(axes: Any, columns: Any) -> None:
    order = sorted(columns, key=lambda name: -columns[name])[:MOST]
    places = range(len(order))
    shares = [100 * columns[name] for name in order]
    axes.barh(places, shares, color=BLUE, height=0.7)
    for place, share in zip(places, shares):
        axes.annotate(
            f"{share:.3g}", (share, place), xytext=(3, 0), textcoords="offset points",
            va="center", fontsize=8, color=BLACK,
        )  # fmt: skip
    axes.set_yticks(places, [plain(name) for name in order], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel("loss of the column: SSE/SST, per cent")
    axes.set_xlim(0, max([*shares, 1e-9]) * 1.15)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _of_groups(axes: Any, groups: Any) -> None:
    shown = groups.groups[:MOST]
    for place, group in enumerate(shown):
        carries, records = 100 * group.carries, 100 * group.records
        axes.barh(place - 0.19, records, height=0.36, color=LIGHT)
        axes.barh(place + 0.19, carries, height=0.36, color=RED if carries > records else BLUE)
    axes.set_yticks(range(len(shown)), [plain(_wrapped(g.name)) for g in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("per cent of the records (grey) and of the loss")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_title(
        f"groups explain {100 * groups.between:.0f} % of where the loss is", fontsize=9,
        loc="right", color=GREY,
    )  # fmt: skip


def _wrapped(text: str, width: int = 40) -> str:
    """Write conditions in lines of a moderate length, none left out, numbers in four digits."""
    parts = re.split(r"\s+and\s+", text)
    lines = [""]
    for at, part in enumerate(parts):
        text = re.sub(r"-?\d+\.?\d*(?:e[+-]?\d+)?$", lambda m: _digits(m[0]), part)
        text = text.replace("<=", "≤").replace(">=", "≥") + (" and" if at + 1 < len(parts) else "")
        if lines[-1] and len(lines[-1]) + len(text) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {text}".strip()
    return "\n".join(lines)


def _digits(number: str) -> str:
    value = float(number)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
