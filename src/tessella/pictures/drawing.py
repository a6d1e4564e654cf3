"""Pictures of columns and pairs of columns for pages, from the dicts of `profile`.

Every picture says in words what is seen, in its title. What was before is filled and grey, what is
after is a line in the accent's colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from .svg import SMALL, element, joined, line, picture, rect, rects, steps, text
from .writing import clean, date_text, per_cent, short_number, whole_number, width_of

BROKEN = 4.0  # times the second largest: a bar that is taller is cut, and says its share
ROWS = 9  # of categories in a picture, with the one of all others
Profile = dict[str, Any]


def describe(profile: Profile) -> str:
    """Say in words what a profile holds."""
    name, n = profile["name"], profile["n"]
    parts = []
    if profile.get("texts"):
        texts = profile["texts"]
        if profile["low"] == profile["high"]:
            parts.append(f"always {texts['low']}")
        else:
            low, middle, high = texts["quartiles"]
            parts.append(f"{texts['low']} to {texts['high']}, median {middle}")
            parts.append(f"half of the values from {low} to {high}")
        if profile["zeros"] >= 0.05:
            parts.append(f"{per_cent(profile['zeros'])} zeros")
    elif profile.get("categories"):
        first = profile["categories"][0]
        largest = max(profile["categories"], key=lambda one: one["count"], default=first)
        parts.append(f"{whole_number(profile['distinct'])} categories")
        parts.append(f"most often {largest['text']}, {per_cent(largest['count'] / n)}")
    elif profile["shape"] == "unreadable":
        parts.append("values that cannot be counted")
    if profile["missing"]:
        parts.append(f"{per_cent(profile['missing'] / n)} missing")
    if profile.get("infinite"):
        parts.append(f"{whole_number(profile['infinite'])} infinite")
    return f"{name}: {'; '.join(parts) or 'no values'}"


def sparkline(profile: Profile) -> Markup:
    """Draw one column in the height of a line of text.

    Parameters
    ----------
    profile : dict
        One of `profile_columns`. Tail bins and the bar of all other categories are lighter; the
        narrow column on the right is the share that is missing.
    """
    width, height, gap = 120.0, 28.0, 9.0
    share = profile["missing"] / max(profile["n"], 1)
    room = width - (gap if share else 0)
    counts, light = _sparkline_counts(profile)
    parts = [line(0, height - 0.5, room, height - 0.5, "axis")]
    if counts:
        ceiling, cut = _ceiling(counts)
        wide = min(room / len(counts), 16.0)
        inner = max(wide - 1, 0.8 * wide)
        boxes: dict[str, list[tuple[float, float, float, float]]] = {"bar": [], "bar light": []}
        for at, count in enumerate(counts):
            tall = _tall(count, ceiling, height - 3)
            box = (at * wide, height - 1 - tall, inner, tall)
            boxes["bar light" if at in light else "bar"].append(box)
        parts += [rects(some, kind) for kind, some in boxes.items()]
        parts += [_cut(at * wide, inner, 6.0) for at in cut]
    if share:
        tall = max(share * (height - 1), 1.5)
        parts.append(rect(width - 6, 0.5, 5.5, height - 1, "frame"))
        parts.append(rect(width - 6, height - 0.5 - tall, 5.5, tall, "missing"))
    return picture(width, height, "sparkline", describe(profile), *parts)


def _sparkline_counts(profile: Profile) -> tuple[list[int], set[int]]:
    """Return the counts of bars, and which of them are lighter."""
    if histogram := profile.get("histogram"):
        return histogram["counts"], _tails(histogram)
    counts = [one["count"] for one in profile.get("categories", ())]
    others = profile.get("others", {}).get("records", 0)
    return counts + [others] * bool(others), {len(counts)} if others else set()


def _tails(histogram: Profile) -> set[int]:
    """Return which bins hold all that is farther out."""
    ends = (0, len(histogram["edges"]) - 2)
    return {end for end, there in zip(ends, histogram["tails"]) if there}


def _tall(count: float, ceiling: float, height: float) -> float:
    """Return the height of a bar: something that can be seen for every count but 0."""
    return max(min(count / ceiling, 1.0) * height, 1.0) if count else 0.0


def _ceiling(values: Sequence[float], *more: Sequence[float]) -> tuple[float, set[int]]:
    """Return the value at the top of the picture, and the bars that are cut there.

    One bar that dwarfs all others, such as that of zeros, is cut at twice the second largest.
    """
    largest = [max(column) for column in zip(values, *more)]
    ranked = sorted(largest, reverse=True)
    if len(ranked) > 2 and ranked[1] > 0 and ranked[0] > BROKEN * ranked[1]:
        return 2 * ranked[1], {largest.index(ranked[0])}
    return ranked[0] or 1.0, set()


def _cut(x: float, width: float, y: float) -> Markup:
    """Draw the gap of a bar that goes on beyond the picture."""
    path = f"M{x - 1:.1f} {y + 3:.1f}L{x + width + 1:.1f} {y - 1:.1f}"
    return element("path", d=path, class_="cut")


# A column before and after.


def describe_change(compared: Profile) -> str:
    """Say in words how a column differs between two tables."""
    name = compared["name"]
    if compared["shape"] == "absent":
        return f"{name}: not in the second table"
    if compared["shape"] == "unreadable":
        return f"{name}: values that cannot be counted"
    parts = []
    if (texts := compared.get("texts")) and all(texts):
        for what, key in (("median", "quartiles"), ("mean", "mean")):
            pair = [own[key][1] if key == "quartiles" else own[key] for own in texts]
            same = pair[0] == pair[1]
            parts.append(f"{what} {pair[0]}, the same after" if same
                         else f"{what} {pair[0]} before and {pair[1]} after")  # fmt: skip
    elif compared.get("categories"):
        parts.append("{} categories before and {} after".format(*compared["distinct"]))
    if compared.get("recoded"):
        parts.append("recoded")
    if any(compared["missing"]):
        shares = [per_cent(m / max(n, 1)) for m, n in zip(compared["missing"], compared["n"])]
        parts.append("missing {} before and {} after".format(*shares))
    if compared["distance"] is not None:
        apart = per_cent(compared["distance"])
        measured = bool(compared.get("texts"))
        parts.append(f"the distributions differ by at most {apart}" if measured
                     else f"{apart} of the records are distributed otherwise")  # fmt: skip
    return f"{name}: {'; '.join(parts) or 'no values'}"


def before_after(compared: Profile) -> Markup:
    """Draw a column of two tables: what was before filled, what is after as a line.

    Parameters
    ----------
    compared : dict
        One of `compare_columns`. Shares are of all records of each table; tail bins are marked.
    """
    width = 340.0
    says = describe_change(compared)
    head = _head(compared["name"], width)
    if compared.get("histogram"):
        return picture(width, 160.0, "before-after", says, *head, *_histograms(compared, width))
    if compared.get("categories"):
        rows, height = _paired_rows(compared)
        return picture(width, height, "before-after", says, *head, rows)
    why = says.partition(": ")[2]
    note = text(width / 2, 90, why, "soft", anchor="middle", width=width - 20)
    return picture(width, 160.0, "before-after", says, *head, note)


def _head(name: str, width: float) -> list[Markup]:
    """Draw the name of a column, and what is before and what is after."""
    x = width - 92
    return [
        text(0, 12, name, "name", width=x - 10, size=12.5),
        rect(x, 4, 10, 9, "before"), text(x + 13, 12, "before", "soft"),
        element("path", d=f"M{x + 54:.0f} 8.5h11", class_="after"),
        text(x + 68, 12, "after", "soft"),
    ]  # fmt: skip


def _histograms(compared: Profile, width: float) -> list[Markup]:
    histogram, totals = compared["histogram"], [max(n, 1) for n in compared["n"]]
    shares = [[c / n for c in own] for own, n in zip(histogram["counts"], totals)]
    missing = [m / n for m, n in zip(compared["missing"], totals)]
    top, base, left = 30.0, 138.0, 36.0
    right = width - (48.0 if any(missing) else 4.0)
    ceiling, cut = _ceiling(shares[0], shares[1])
    if max(missing) > ceiling and not cut:
        ceiling = max(missing)
    bins = len(shares[0])
    wide = (right - left) / bins
    if bins < 6:  # a few broad bars say no more than narrow ones
        wide = min(wide, 44.0)
    edges = [left + at * wide for at in range(bins + 1)]
    tops = [[base - _tall(share, ceiling, base - top) for share in own] for own in shares]
    tails = _tails(histogram)
    gap = 0.6 if wide > 4 else 0.0
    parts = []
    for kind, chosen in (("before", set(range(bins)) - tails), ("before light", tails)):
        boxes = [
            (edges[i] + gap / 2, tops[0][i], wide - gap, base - tops[0][i]) for i in sorted(chosen)
        ]
        parts.append(rects(boxes, kind))
    parts.append(steps(edges, tops[1], base, "after"))
    for at in sorted(cut):
        parts.append(_cut(edges[at], wide, top + 9))
        said = " → ".join(dict.fromkeys(per_cent(own[at]) for own in shares))
        after = at < 0.6 * bins
        x = edges[at + 1] + 4 if after else edges[at] - 4
        parts.append(text(x, top + 8, said, "value", anchor="start" if after else "end"))
    parts += [
        line(left, base + 0.5, right, base + 0.5, "axis"),
        line(left, top, right, top, "grid"),
    ]
    parts.append(text(left - 4, top + 4, per_cent(ceiling), "tick", anchor="end"))
    parts.append(text(left - 4, base + 3, "0", "tick", anchor="end"))
    parts += _edge_labels(histogram, edges, base, compared["shape"] == "dates")
    if any(missing):
        x = width - 24
        tall = [_tall(min(share, ceiling), ceiling, base - top) for share in missing]
        parts += [
            rect(x, base - tall[0], 18, tall[0], "missing"),
            steps([x, x + 18], [base - tall[1]], base, "after"),
            line(x - 3, base + 0.5, x + 21, base + 0.5, "axis"),
            text(width, base + 13, "missing", "tick", anchor="end"),
        ]
        said = "→".join(dict.fromkeys(per_cent(share).removesuffix(" %") for share in missing))
        parts.append(text(width, base - max(tall) - 4, f"{said} %", "value", anchor="end"))
    return parts


def _edge_labels(histogram: Profile, places: list[float], base: float, dates: bool) -> list[Markup]:
    """Write round edges below the bars, as many as fit; a tail says how far it goes."""
    write = date_text if dates else short_number
    edges, whole = histogram["edges"], histogram["whole"]
    bins = len(edges) - 1
    low, high = histogram["tails"]
    # Bins of one value each have their label below the bar, others below their edges.
    single = all(b - a == whole for a, b in pairwise(edges[low : bins + 1 - high]))
    half = (places[1] - places[0]) / 2 if single else 0.0
    inner = range(int(low), bins + 1 - high - single)
    labels: list[tuple[float, str, str, str]] = []  # place, text, class, anchor
    for at, there, anchor in ((0, low, "start"), (bins, high, "end")):
        if there:
            labels.append((places[at], write(edges[at] - (whole and at > 0)), "tick tail", anchor))
    step = edges[inner[0] + 1] - edges[inner[0]] if len(inner) > 1 else 1.0
    for every in (1, 2, 4, 5, 10, 20):
        if dates or bins == 1:
            chosen = list(inner[::every])
        else:
            chosen = [at for at in inner if _is_whole(edges[at] / (every * step))]
        found = [(places[at] + half, write(edges[at]), "tick", "middle") for at in chosen]
        boxes = [_label_box(one) for one in found]
        if all(one[1] <= other[0] for one, other in pairwise(boxes)):
            break
    ends = [_label_box(one) for one in labels]
    labels += [
        one for one in found
        if all(_label_box(one)[1] <= a or b <= _label_box(one)[0] for a, b in ends)
    ]  # fmt: skip
    out = []
    for x, said, kind, anchor in labels:
        out += [
            text(x, base + 13, said, kind, anchor=anchor),
            line(x, base + 1, x, base + 4, "axis"),
        ]
    return out


def _is_whole(value: float) -> bool:
    return abs(value - round(value)) < 1e-6


def _label_box(label: tuple[float, str, str, str]) -> tuple[float, float]:
    x, said, _, anchor = label
    wide = width_of(said, SMALL) + 5
    start = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return start, start + wide


def _paired_rows(compared: Profile) -> tuple[Markup, float]:
    """Draw categories as rows of two bars, with those that are not shown as one row."""
    shown = compared["categories"]
    beyond = list(compared["others"]["records"])
    values = max(compared["others"]["values"])
    if len(shown) > ROWS or (any(beyond) and len(shown) >= ROWS):
        for one in shown[ROWS - 1 :]:
            beyond = [a + b for a, b in zip(beyond, one["counts"])]
        values += len(shown) - (ROWS - 1)
        shown = shown[: ROWS - 1]
    rows = [{"label": one["text"], "counts": one["counts"], "kind": ""} for one in shown]
    if any(beyond):
        rows.append({"label": f"{whole_number(values)} others", "counts": beyond, "kind": " light"})
    if any(compared["missing"]):
        rows.append({"label": "missing", "counts": compared["missing"], "kind": " gone"})
    for row in rows:
        row["shares"] = [c / max(n, 1) for c, n in zip(row["counts"], compared["n"])]
    return _rows(rows, top=24.0, width=340.0, name_width=110.0), 24.0 + 17 * len(rows) + 3


def _rows(rows: list[dict[str, Any]], *, top: float, width: float, name_width: float) -> Markup:
    most = max((share for row in rows for share in row["shares"]), default=0) or 1.0
    room = width - name_width - 74
    parts = []
    for at, row in enumerate(rows):
        y = top + 17 * at
        first, second = (share / most * room for share in row["shares"])
        said = " → ".join(dict.fromkeys(per_cent(share) for share in row["shares"]))
        x = name_width
        parts += [
            text(x - 6, y + 11, row["label"], "soft" if row["kind"] else "label", anchor="end",
                 width=name_width - 8),
            rect(x, y + 2, first, 12, f"before{row['kind']}"),
            element("path", class_="after",
                    d=f"M{x:.1f} {y + 2:.1f}h{second:.1f}v12h{-second:.1f}"),
            text(x + max(first, second) + 5, y + 11, said, "value"),
        ]  # fmt: skip
    parts.append(line(name_width, top, name_width, top + 17 * len(rows), "axis"))
    return joined(parts)


# Any numbers with names.


def bars(
    rows: Sequence[dict[str, Any]], *, series: Sequence[str] = (), title: str = "",
    most: float | None = None, width: float = 480.0, name_width: float = 150.0,
) -> Markup:  # fmt: skip
    """Draw horizontal bars with a name on the left and the value in words on the right.

    Parameters
    ----------
    rows : sequence of dict
        Each with `label`, `value` (a number of at least 0, or None) and `text`, the value as it is
        written. With a second series also `other` and, if wanted, `other_text`.
    series : two names, optional
        What the first and the second bars are; drawn above.
    title : str
        What is shown, for those who do not see it.
    most : float, optional
        The value of a bar over the whole width; otherwise the largest.
    width, name_width : float
        Of the picture, and of the names on its left.
    """
    top = 20.0 if series else 2.0
    two = any(row.get("other") is not None for row in rows)
    high = 26.0 if two else 20.0
    values = [float(row.get(key) or 0) for row in rows for key in ("value", "other")]
    full = most or max([*values, 0.0]) or 1.0
    room = width - name_width - 90
    parts, said = [], []
    for at, name in enumerate(series[:2]):
        x = name_width + at * 110
        parts += [rect(x, 3, 10, 9, ("bar", "bar second")[at]),
                  text(x + 14, 12, name, "soft", width=90)]  # fmt: skip
    for at, row in enumerate(rows):
        y = top + high * at
        label = clean(row["label"])
        parts.append(text(name_width - 8, y + high / 2 + 4, label, "label", anchor="end",
                          width=name_width - 10))  # fmt: skip
        texts = [row.get("text", "")]
        tall = 9.0 if two else 13.0
        for place, key in enumerate(("value", "other")[: 1 + two]):
            value = row.get(key)
            long = min(max(float(value or 0) / full, 0.0), 1.0) * room
            top_of = y + (high - tall * (1 + two) - two) / 2 + place * (tall + 1)
            parts.append(rect(name_width, top_of, max(long, 1.0) if value else 0, tall,
                              ("bar", "bar second")[place]))  # fmt: skip
            written = row.get("text" if place == 0 else "other_text")
            if written:
                parts.append(text(name_width + long + 5, top_of + tall / 2 + 4, written, "value",
                                  size=SMALL, width=84))  # fmt: skip
        if two and row.get("other_text"):
            texts.append(row["other_text"])
        said.append(f"{label} {' and '.join(clean(one) for one in texts)}".strip())
    bottom = top + high * len(rows)
    parts.append(line(name_width - 0.5, top, name_width - 0.5, bottom, "axis"))
    says = f"{title}: {'; '.join(said[:40])}" if title else "; ".join(said[:40])
    return picture(width, bottom + 2, "bars", says or "no values", *parts)
