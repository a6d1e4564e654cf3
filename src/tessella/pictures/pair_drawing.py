"""Two columns, before and after: two panels of counts, or rows of quartiles."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from .svg import SMALL, element, joined, line, picture, rect, rects, text
from .writing import date_text, per_cent, short_number, width_of

LEVELS = 6  # of colour in a panel
SIDES = ("before", "after")


def describe_pair(compared: dict[str, Any]) -> str:
    """Say in words how two columns go together before and after."""
    named = f"{compared['x']} and {compared['y']}"
    if compared["shape"] == "grid":
        found = [_correlations(compared, side) for side in (0, 1)]
        return f"{named}: before {found[0]}; after {found[1]}"
    if compared["shape"] == "quartiles":
        write = date_text if compared["dates"] else short_number
        parts = []
        for row in compared["rows"]:
            medians = [write(own[1]) if own else "none" for own in row["quartiles"]]
            parts.append(f"{row['text']} {medians[0]} before and {medians[1]} after")
        return f"median {compared['number']} by {compared['category']}: {'; '.join(parts)}"
    if compared["shape"] == "shares":
        if not compared["differences"]:
            return f"{named}: the same shares before and after"
        parts = [
            f"{one['x']} with {one['y']} {per_cent(one['before'])} before and "
            f"{per_cent(one['after'])} after"
            for one in compared["differences"][:3]
        ]
        return f"{named}: largest differences: {'; '.join(parts)}"
    return f"{named}: {compared['why']}"


def pair(compared: dict[str, Any]) -> Markup:
    """Draw how two columns go together in two tables.

    Parameters
    ----------
    compared : dict
        What `compare_pair` returned. Counts and shares are two panels side by side, the darker the
        more records; quartiles are a bar from the first to the third with a line at the median,
        before above after.
    """
    says = describe_pair(compared)
    if compared["shape"] == "grid":
        return picture(560.0, 296.0, "pair", says, *_grid_panels(compared))
    if compared["shape"] == "quartiles":
        parts, height = _quartile_rows(compared)
        return picture(560.0, height, "pair", says, parts)
    if compared["shape"] == "shares":
        parts, height = _share_panels(compared)
        return picture(560.0, height, "pair", says, parts)
    note = text(280, 40, says, "soft", anchor="middle", width=540)
    return picture(560.0, 80.0, "pair", says, note)


def _correlations(compared: dict[str, Any], side: int) -> str:
    pearson, spearman = compared["pearson"][side], compared["spearman"][side]
    if pearson is None or spearman is None:
        return "no correlation is defined"
    return f"correlation {_signed(pearson)}, ranks {_signed(spearman)}"


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _level(share: float, most: float, power: float = 1 / 2) -> int:
    """Return the level of colour: a root of the share, so that a few records can still be seen."""
    return max(1, min(LEVELS, int((share / most) ** power * LEVELS + 0.999))) if share > 0 else 0


def _grid_panels(compared: dict[str, Any]) -> list[Markup]:
    size, top, lefts = 222.0, 22.0, (54.0, 332.0)
    counts = compared["counts"]
    shares = [
        [[c / max(n, 1) for c in row] for row in own] for own, n in zip(counts, compared["n"])
    ]
    most = max(max(map(max, own)) for own in shares) or 1.0
    parts = []
    for side, left in enumerate(lefts):
        high, wide = len(counts[side]), len(counts[side][0])
        width, height = size / wide, size / high
        boxes: dict[int, list[tuple[float, float, float, float]]] = {}
        for i, row in enumerate(shares[side]):
            for j, share in enumerate(row):
                if level := _level(share, most, 1 / 3):
                    box = (left + j * width, top + size - (i + 1) * height, width, height)
                    boxes.setdefault(level, []).append(box)
        parts.append(rect(left, top, size, size, "panel"))
        parts += [rects(boxes[level], f"heat heat-{level}") for level in sorted(boxes)]
        parts += _tail_lines(compared["tails"], left, top, size, width, height)
        parts.append(rect(left, top, size, size, "frame"))
        said = _correlations(compared, side)
        parts += [text(left, 14, SIDES[side], "name"),
                  text(left + size, 14, said, "tick", anchor="end")]  # fmt: skip
        low, up = compared["texts"]["x"]
        base = top + size
        parts += [
            text(left, base + 13, low, "tick"),
            text(left + size, base + 13, up, "tick", anchor="end"),
            text(left + size / 2, base + 27, f"{compared['x']} →", "label", anchor="middle",
                 width=size),
        ]  # fmt: skip
    low, up = compared["texts"]["y"]
    parts += [text(50, top + size, low, "tick", anchor="end", width=50, size=SMALL),
              text(50, top + 9, up, "tick", anchor="end", width=50, size=SMALL)]  # fmt: skip
    turned = text(0, 0, f"{compared['y']} →", "label", anchor="middle", width=size)
    middle = top + size / 2
    parts.append(element("g", turned, transform=f"translate(16 {middle:.0f}) rotate(-90)"))
    return parts


def _tail_lines(
    tails: dict[str, list[bool]], left: float, top: float, size: float, width: float, height: float
) -> list[Markup]:
    """Draw where a bin holds all that is farther out."""
    right, base = left + size, top + size
    places = [
        (tails["x"][0], (left + width, top, left + width, base)),
        (tails["x"][1], (right - width, top, right - width, base)),
        (tails["y"][0], (left, base - height, right, base - height)),
        (tails["y"][1], (left, top + height, right, top + height)),
    ]
    return [line(*ends, "tail") for there, ends in places if there]


def _quartile_rows(compared: dict[str, Any]) -> tuple[Markup, float]:
    left, right, top, high = 150.0, 448.0, 26.0, 26.0
    low, span = compared["low"], compared["high"] - compared["low"]
    write = date_text if compared["dates"] else short_number

    def place(value: float) -> float:
        # Halves, because the span of two large numbers may be infinite.
        part = (value / 2 - low / 2) / (span / 2) if 0 < span < 1e300 else 0.5
        return left + part * (right - left)

    base = top + high * len(compared["rows"])
    parts = [
        text(0, 13, f"{compared['number']} by {compared['category']}", "name", width=330,
             size=12.5),
        rect(354, 4, 14, 8, "before"), text(372, 12, "before", "soft"),
        rect(418, 4, 14, 8, "quarters"), text(436, 12, "after", "soft"),
    ]  # fmt: skip
    for at, row in enumerate(compared["rows"]):
        y = top + high * at
        parts.append(text(left - 8, y + 16, row["text"], "label", anchor="end", width=left - 12))
        for side, kind in ((0, "before"), (1, "quarters")):
            quartiles, middle = row["quartiles"][side], y + 8 + 10 * side
            if quartiles is None:
                parts.append(text(left + 4, middle + 4, "no records", "tick"))
                continue
            first, median, third = map(place, quartiles)
            parts += [rect(first, middle - 4, max(third - first, 1.0), 8, kind),
                      line(median, middle - 5, median, middle + 5, "median")]  # fmt: skip
        medians = [write(own[1]) if own else "–" for own in row["quartiles"]]
        said = " → ".join(dict.fromkeys(medians))
        parts.append(text(right + 8, y + 16, said, "value", width=104, size=SMALL))
    ends = compared["texts"]
    parts += [
        line(left, base + 2, right, base + 2, "axis"),
        text(left, base + 15, ends[0], "tick"),
        text(right, base + 15, ends[1], "tick", anchor="end"),
        text((left + right) / 2, base + 15, "first quartile to third, line at the median", "tick",
             anchor="middle"),
    ]  # fmt: skip
    return joined(parts), base + 20


def _share_panels(compared: dict[str, Any]) -> tuple[Markup, float]:
    columns, rows = compared["columns"], compared["rows"]
    name, gap, room = 104.0, 34.0, 30.0
    size = (560 - name - gap - room) / 2
    width, height = size / len(columns), 22.0
    longest = min(max(width_of(label, SMALL) for label in columns), 76.0)
    slanted = longest > width - 4
    top = 30 + 0.82 * longest if slanted else 40.0
    base = top + height * len(rows)
    most = max(max(map(max, own)) for own in compared["shares"]) or 1.0
    parts = []
    for side, left in enumerate((name, name + size + gap)):
        boxes: dict[int, list[tuple[float, float, float, float]]] = {}
        numbers = []
        for i, row in enumerate(compared["shares"][side]):
            for j, share in enumerate(row):
                level = _level(share, most)
                if level:
                    box = (left + j * width, top + i * height, width, height)
                    boxes.setdefault(level, []).append(box)
                if width >= 30:
                    kind = f"value on-{level}"
                    said = f"{100 * share:.1f}" if share else "0"
                    numbers.append(text(left + (j + 0.5) * width, top + (i + 0.5) * height + 4,
                                        said, kind, anchor="middle"))  # fmt: skip
        parts.append(rect(left, top, size, height * len(rows), "panel"))
        parts += [rects(boxes[level], f"heat heat-{level}") for level in sorted(boxes)]
        parts += [rect(left, top, size, height * len(rows), "frame"), *numbers]
        unit = ", per cent" if width >= 30 else ""
        parts.append(text(left, 14, f"{SIDES[side]}{unit}", "name"))
        for j, label in enumerate(columns):
            x = left + (j + 0.5) * width
            if slanted:
                said = text(0, 0, label, "tick", width=78, size=SMALL)
                turn = f"translate({x:.1f} {top - 4:.1f}) rotate(-55)"
                parts.append(element("g", said, transform=turn))
            else:
                parts.append(text(x, 34, label, "tick", anchor="middle", width=width, size=SMALL))
    for i, label in enumerate(rows):
        parts.append(text(name - 6, top + (i + 0.5) * height + 4, label, "label", anchor="end",
                          width=name - 8))  # fmt: skip
    parts.append(
        text(name - 6, top - 4, f"{compared['y']} ↓", "soft", anchor="end", width=name - 8)
    )
    parts.append(text(name + size, 14, f"{compared['x']} →", "soft", anchor="end", width=size / 2))
    for at, one in enumerate(compared["differences"][:3]):
        cell = f"{compared['x']} {one['x']}, {compared['y']} {one['y']}"
        said = f"{cell}: {100 * one['before']:.1f} % → {100 * one['after']:.1f} %"
        parts.append(text(name, base + 18 + 15 * at, said, "soft", width=440))
    return joined(parts), base + 14 + 15 * min(len(compared["differences"]), 3)
