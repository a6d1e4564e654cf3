"""An original and a masked table: distributions, correlations, and where the loss is.

Before and after are drawn from aggregates: histograms whose bars hold at least `least` records,
quantiles and correlations. No single record is visible.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from .._parameters import OneOf, Whole, parameters
from .._types import Floats, Name
from ..exceptions import BadOptionError, BadTableError, UnpairedError
from ..frame import Table, View
from ..loss import sse_sst, subgroup_loss
from .figures import BLACK, BLUE, GREY, LIGHT, RED, new_figure, plain, styled

Show = Literal["distributions", "correlations"]

MOST = 16  # columns in a picture of distributions
BLOCK = 1 << 16  # records whose products are summed at a time
CONSTANT = 1e-12  # of the sum of squares: a spread below it is a rounding error
TAIL = 0.01  # of the records at either end that share the outermost bars
ACROSS = 4  # small pictures in a row
MOST_BARS = 14  # groups or columns that have a bar where the loss is


@parameters(show=[OneOf(get_args(Show))], bars=[Whole(2)], least=[Whole(2)])
def before_and_after(
    original: Any,
    masked: Any,
    *,
    show: Show = "distributions",
    columns: Sequence[Name] | None = None,
    bars: int = 20,
    least: int = 3,
) -> Any:
    """Draw the distributions, or the correlations, of an original and a masked table.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables; they need not have the same number of records.
    show : {"distributions", "correlations"}
        For each column its distribution, the original filled and the masked one as a line; or the
        original's correlations below the diagonal, the masked table's above it, and beside them
        the differences.
    columns : list of names, optional
        Which columns; otherwise all that both have, of distributions at most 16.
    bars : int, default 20
        How many bars a column of numbers has at most. The outermost hold the last per cent.
    least : int, default 3
        Bars and categories with fewer original records are joined with a neighbour, or left out:
        a picture shows nobody.

    Returns
    -------
    matplotlib.figure.Figure
    """
    before, after = View.of(original), View.of(masked)
    names = _common(before.table, after.table, columns)
    if show == "correlations":
        return _draw_correlations(before, after, names)
    return _draw_distributions(before, after, names[:MOST], bars, least)


def _draw_distributions(before: View, after: View, names: list[Name], bars: int, least: int) -> Any:
    with styled():
        rows = -(-len(names) // ACROSS)
        across = min(len(names), ACROSS)
        figure = new_figure(2.2 * across + 0.4, 1.75 * rows + 0.5)
        grid = figure.subplots(rows, across, squeeze=False)
        for axes in grid.flat[len(names) :]:
            axes.set_visible(False)
        for axes, name in zip(grid.flat, names):
            if before.table.facts(name).numeric:
                _numbers(axes, _known(before, name), _known(after, name), bars, least)
            else:
                _categories(axes, before, after, name, least)
            axes.set_title(plain(name), fontsize=9, loc="left", pad=3)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="x", labelsize=8)
        from matplotlib.patches import Patch

        handles = [
            Patch(facecolor=LIGHT, edgecolor="none", label="original"),
            Patch(facecolor="none", edgecolor=BLUE, linewidth=1.5, label="masked"),
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=2)
        figure.supylabel("share of records", fontsize=9)
    return figure


def compare_correlations(before: View, after: View, names: Sequence[Name]) -> dict[str, Any]:
    """Correlate columns of numbers: `names`, and `before` and `after` of shape (d, d)."""
    numbers = [n for n in names if before.table.facts(n).numeric and after.table.facts(n).numeric]
    if len(numbers) < 2:
        what = "two columns of numbers that both tables have"
        raise BadTableError(f"Correlations need {what}; there are {len(numbers)}.")
    one, other = (_correlations(table, numbers) for table in (before, after))
    return {"names": numbers, "before": one, "after": other}


def _draw_correlations(before: View, after: View, names: list[Name]) -> Any:
    found = compare_correlations(before, after, names)
    names, one, other = found["names"], found["before"], found["after"]
    d = len(names)
    mixed = np.where(np.tri(d, k=-1, dtype=bool), one, other)
    np.fill_diagonal(mixed, np.nan)
    change = np.where(np.tri(d, k=-1, dtype=bool), other - one, np.nan)
    with styled():
        size = min(3.0 + 0.22 * d, 7.5)
        figure = new_figure(2 * size + 0.6, size)
        left, right = figure.subplots(1, 2)
        _matrix(left, mixed, names, 1.0, "correlation: below, original; above, masked")
        largest = max(float(np.nanmax(np.abs(change))), 0.01)
        limit = math.ceil(largest * 100) / 100
        _matrix(right, change, names, limit, "masked minus original")
    return figure


def _common(before: Table, after: Table, columns: Any) -> list[Name]:
    if columns is not None:
        if isinstance(columns, str) or not isinstance(columns, list | tuple):
            raise BadOptionError("columns", columns, "a list of names of columns")
        for name in columns:
            before.place(name, who="columns")
            after.place(name, who="columns")
        names = list(columns)
    else:
        names = [name for name in before.columns if after.has(name)]
    if not names:
        raise UnpairedError.columns(list(before.columns), list(after.columns))
    for name in names:
        facts = before.facts(name), after.facts(name)
        if facts[0].numeric != facts[1].numeric:
            raise UnpairedError.kinds(column=name, original=facts[0].family, masked=facts[1].family)
    return names


def _known(view: View, name: Name) -> Floats:
    numbers = view.numbers(name, who="A picture")
    return numbers[~np.isnan(numbers)] if view.any_missing(name) else numbers


def _numbers(axes: Any, x: Floats, y: Floats, bars: int, least: int) -> None:
    if not len(x) or not len(y):
        axes.text(0.5, 0.5, "all missing", ha="center", transform=axes.transAxes, color=GREY)
        return
    low, high = np.quantile(x, [TAIL, 1 - TAIL])
    if low == high:
        reach = max(0.5, 1e-6 * abs(float(low)))  # half a unit is nothing beside a large number
        low, high = low - reach, high + reach
    edges = _joined(np.unique(np.linspace(low, high, bars + 1)), x, least)
    for values, style in (
        (x, {"color": LIGHT, "histtype": "stepfilled"}),
        (y, {"color": BLUE, "histtype": "step", "linewidth": 1.4}),
    ):
        inside = np.clip(values, edges[0], edges[-1])
        width = np.diff(edges)
        share = np.histogram(inside, edges)[0] / len(values) * width.mean()
        axes.hist(edges[:-1], edges, weights=share / width, **style)
    axes.set_xticks(*_ends(float(low), float(high)))
    axes.set_ylim(bottom=0)


def _joined(edges: Floats, x: Floats, least: int) -> Floats:
    """Leave out edges until every bar has enough of the original records, or none."""
    kept = list(edges)
    while len(kept) > 2:
        counts = np.histogram(np.clip(x, kept[0], kept[-1]), kept)[0]
        few = np.flatnonzero((counts > 0) & (counts < least))
        if not len(few):
            break
        at = int(few[0])
        del kept[at + 1 if at + 2 < len(kept) else at]
    return np.asarray(kept)


def _ends(low: float, high: float) -> tuple[list[float], list[str]]:
    """Mark round numbers near both ends of an axis."""
    step = 10.0 ** math.floor(math.log10(high - low))
    ends = [math.ceil(low / step) * step, math.floor(high / step) * step]
    return ends, [_short_number(end) for end in ends]


def _short_number(value: float) -> str:
    for size, letter in ((1e9, " bn"), (1e6, " m"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _categories(axes: Any, before: View, after: View, name: Name, least: int) -> None:
    counted = []
    for view in (before, after):
        codes, texts = view.labels(name)
        sizes = np.bincount(codes[codes >= 0], minlength=len(texts))
        counted.append(dict(zip(texts, sizes.tolist())))
    shown = [text for text, size in counted[0].items() if size >= least]
    shown = sorted(shown, key=lambda text: -counted[0][text])[:8]
    totals = [max(sum(sizes.values()), 1) for sizes in counted]
    places = np.arange(len(shown))
    axes.bar(places, [counted[0][t] / totals[0] for t in shown], color=LIGHT, width=0.8)
    axes.bar(
        places, [counted[1].get(t, 0) / totals[1] for t in shown], width=0.8, facecolor="none",
        edgecolor=BLUE, linewidth=1.4,
    )  # fmt: skip
    axes.set_xticks(places, [plain(t if len(t) <= 9 else t[:8] + "…") for t in shown], rotation=30)


def _correlations(view: View, names: list[Name]) -> Floats:
    columns = [view.numbers(name, who="A picture") for name in names]
    if not any(view.any_missing(name) for name in names):
        means = [column.mean() for column in columns]
        product = np.zeros((len(names), len(names)))
        for start in range(0, view.n_rows, BLOCK):
            rows = slice(start, start + BLOCK)
            apart = np.stack([column[rows] - mean for column, mean in zip(columns, means)])
            product += apart @ apart.T
        scale = np.sqrt(np.outer(np.diag(product), np.diag(product)))
        whole: Floats = np.divide(product, scale, out=np.zeros_like(product), where=scale > 0)
        np.fill_diagonal(whole, 1.0)
        return whole
    return _pairwise_correlations(columns)


def _pairwise_correlations(columns: Sequence[Floats]) -> Floats:
    """Correlate over the records that know both columns; 0 where one of them is constant there.

    With columns at their means and 0 where missing, all sums over pairs are products of matrices.
    """
    means = [
        float(np.nansum(column)) / max(int((~np.isnan(column)).sum()), 1) for column in columns
    ]
    count, sums, squares, product = np.zeros((4, len(columns), len(columns)))
    for start in range(0, len(columns[0]), BLOCK):
        rows = slice(start, start + BLOCK)
        apart = np.stack([column[rows] - mean for column, mean in zip(columns, means)])
        known = ~np.isnan(apart)
        apart, there = np.where(known, apart, 0.0), known.astype(np.float64)
        count += there @ there.T
        sums += apart @ there.T  # [i, j]: of column i, over the records that know column j
        squares += apart**2 @ there.T
        product += apart @ apart.T
    count = np.maximum(count, 1.0)
    spread = squares - sums**2 / count
    spread = np.where(spread > CONSTANT * squares, spread, 0.0)
    scale = np.sqrt(spread * spread.T)
    product -= sums * sums.T / count
    found: Floats = np.divide(product, scale, out=np.zeros_like(product), where=scale > 0)
    np.fill_diagonal(found, 1.0)
    return found.clip(-1.0, 1.0)


def _matrix(axes: Any, values: Floats, names: list[Name], limit: float, title: str) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    # Blue to white to vermilion: lightness alone tells how strong, and hue which sign.
    scale = LinearSegmentedColormap.from_list("tessella", [BLUE, "#FFFFFF", RED])
    colours = scale.with_extremes(bad="#F2F2F2")
    shown = axes.imshow(values, cmap=colours, vmin=-limit, vmax=limit)
    d = len(names)
    labels = [plain(name) for name in names]
    axes.set_xticks(range(d), labels, rotation=90, fontsize=8)
    axes.set_yticks(range(d), labels, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(title, fontsize=9, loc="left")
    if d <= 8:
        for j in range(d):
            for m in range(d):
                if not np.isnan(values[j, m]):
                    strong = abs(values[j, m]) > 0.6 * limit
                    text = f"{values[j, m]:.2f}".replace("-0.00", "0.00")
                    axes.text(
                        m, j, text, ha="center", va="center", fontsize=8,
                        color="white" if strong else BLACK,
                    )  # fmt: skip
    bar = axes.figure.colorbar(shown, ax=axes, shrink=0.7, pad=0.02, aspect=25)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=2)


def where_the_loss_is(original: Any, masked: Any, *, by: Any = None, **reading: Any) -> Any:
    """Draw which columns and which groups of records carry the loss.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema`, `weights` and `on_unpaired`, as in
        `tessella.loss.measure`.
    by : name, optional
        The column that makes the groups; otherwise they are found by a shallow tree.

    Returns
    -------
    matplotlib.figure.Figure
        Left, SSE/SST of each column; right, for each group its share of the records beside its
        share of the loss. **It describes original records, and is confidential.**
    """
    columns = sse_sst(original, masked, **reading).by_column
    groups = subgroup_loss(original, masked, by=by, **reading)
    with styled():
        lines = sum(
            max(2, condition_text(g.name).count("\n") + 1) for g in groups.groups[:MOST_BARS]
        )
        figure = new_figure(9.6, 1.2 + max(0.3 * min(len(columns), MOST_BARS), 0.2 * lines, 1.0))
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.1])
        _of_columns(left, columns)
        _of_groups(right, groups)
    return figure


def _of_columns(axes: Any, columns: Any) -> None:
    order = sorted(columns, key=lambda name: -columns[name])[:MOST_BARS]
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
    shown = groups.groups[:MOST_BARS]
    for place, group in enumerate(shown):
        carries, records = 100 * group.carries, 100 * group.records
        axes.barh(place - 0.19, records, height=0.36, color=LIGHT)
        axes.barh(place + 0.19, carries, height=0.36, color=RED if carries > records else BLUE)
    axes.set_yticks(range(len(shown)), [plain(condition_text(g.name)) for g in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("per cent of the records (grey) and of the loss")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_title(
        f"groups explain {100 * groups.between:.0f} % of where the loss is", fontsize=9,
        loc="right", color=GREY,
    )  # fmt: skip


def condition_text(text: str, width: int = 40) -> str:
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
