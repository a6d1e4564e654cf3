"""Pictures of pages: well-formed, escaped, without style or scripts, the same each time."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

import tessella.reports
from tessella.explore import Candidate, explore
from tessella.frame import View
from tessella.pictures.drawing import bars, before_after, sparkline
from tessella.pictures.map_drawing import mark_path, risk_utility_map
from tessella.pictures.map_table import map_rows
from tessella.pictures.maps import LOOKS
from tessella.pictures.pair_drawing import pair
from tessella.pictures.profile import compare_columns, compare_pair, profile_columns
from tessella.pictures.result_drawing import (
    column_loss_bars,
    correlation_panels,
    group_size_bars,
)
from tessella.pictures.writing import fit, width_of

from .test_profile import HOSTILE, ODD

QUOTES = "\"'><img src=x onerror=alert(2)> style=x"


def check(drawn: Markup) -> ET.Element:
    """What is true of every picture; returns its root."""
    assert isinstance(drawn, Markup)
    root = ET.fromstring(str(drawn).encode())
    for node in root.iter():
        for name, value in node.attrib.items():
            assert name != "style"
            assert not name.startswith("on")
            assert not name.startswith("xlink")
            if name in ("d", "x", "y", "r", "width", "height", "transform", "viewBox"):
                assert "nan" not in value
                assert "inf" not in value
        assert node.tag in {"svg", "g", "a", "path", "rect", "circle", "text", "title"}
        if "class" in node.attrib:
            assert all(one.startswith("draw-") for one in node.attrib["class"].split())
    assert root.attrib["aria-label"] == root.findtext("title")
    assert root.attrib["role"] == ("group" if root.find(".//a") is not None else "img")
    assert "<script" not in drawn
    assert "<img" not in drawn
    return root


def texts(root: ET.Element) -> list[str]:
    return ["".join(node.itertext()) for node in root.iter("text")]


# By hand.


def test_a_sparkline_has_a_bar_for_each_category():
    table = pd.DataFrame({"town": ["Reus", "Reus", "Valls", None]})
    root = check(sparkline(profile_columns(table)[0]))
    drawn = root.find("path[@class='draw-bar']")
    assert drawn is not None
    # 2 of 2 is the whole height of 25, 1 of 2 is half of it.
    assert re.findall(r"v([\d.]+)", drawn.attrib["d"]) == ["25", "12.5"]
    assert root.attrib["aria-label"] == (
        "town: 2 categories; most often Reus, 50 %; 25 % missing"
    )  # fmt: skip
    gone = root.find("rect[@class='draw-missing']")
    assert gone is not None
    assert float(gone.attrib["height"]) == pytest.approx(27 / 4, abs=0.1)


def test_before_and_after_says_what_differs():
    before = View(pd.DataFrame({"a": [1, 2, 3]}))
    after = View(pd.DataFrame({"a": [2, 2, 2]}))
    root = check(before_after(compare_columns(before, after, ["a"])[0]))
    assert "median 2, the same after" in root.attrib["aria-label"]
    assert {"1", "2", "3", "100 %", "before", "after"} <= set(texts(root))


def test_a_bar_that_dwarfs_the_others_is_cut_and_says_its_share():
    table = View(pd.DataFrame({"a": [0.0] * 95 + [1.0, 2.0, 3.0, 4.0, 5.0]}))
    root = check(before_after(compare_columns(table, table, ["a"])[0]))
    assert root.find("path[@class='draw-cut']") is not None
    assert "95 %" in texts(root)


def test_bars():
    rows = [{"label": QUOTES, "value": 2.0, "text": "2 %"}, {"label": "b", "value": 1, "text": "1"}]
    root = check(bars(rows, title="Loss"))
    widths = [float(node.attrib["width"]) for node in root.findall("rect")]
    assert widths[0] == 2 * widths[1]
    two = [one | {"other": 1.0, "other_text": "1 %"} for one in rows]
    assert len(check(bars(two, series=("a", "b"))).findall("rect")) == 6
    check(bars([]))
    check(bars([{"label": "x", "value": None, "text": "unknown"}]))


# Odd columns and random tables.


def draw_all(table: pd.DataFrame, other: pd.DataFrame) -> list[Markup]:
    before, after = View(table), View(other)
    out = [sparkline(one) for one in profile_columns(table)]
    out += [before_after(one) for one in compare_columns(before, after, table.columns)]
    names = list(table.columns)
    out += [pair(compare_pair(before, after, x, y)) for x, y in zip(names, [*names[1:], names[0]])]
    return out


@pytest.mark.parametrize("name", ODD)
def test_odd_columns_are_drawn(name):
    column = pd.Series(ODD[name])
    for title in (name, HOSTILE[:-1], QUOTES):
        table = pd.DataFrame({"number": [1.0, 2.0, 5.0, 9.0]})
        table[title] = column
        table["third"] = ["a", "b", QUOTES, "a"]
        for drawn in draw_all(table, table.iloc[::-1].iloc[:3]):
            check(drawn)
        assert draw_all(table, table) == draw_all(table, table)


cells = st.one_of(
    st.none(), st.text(max_size=8), st.floats(), st.integers(-(10**6), 10**6), st.booleans(),
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(), st.integers(-99, 99), st.text(max_size=5), cells), min_size=1,
             max_size=25),
    st.text(max_size=6),
)  # fmt: skip
def test_any_table_is_drawn(rows, name):
    columns = {
        f"{name}{at}": pd.Series(list(own), dtype=object) for at, own in enumerate(zip(*rows))
    }
    table = pd.DataFrame(columns)
    for at, dtype in ((0, float), (1, int)):
        table.isetitem(at, table.iloc[:, at].astype(dtype))
    for drawn in draw_all(table, table.iloc[::-1].reset_index(drop=True)):
        check(drawn)


@given(st.text(max_size=80), st.floats(5, 300))
def test_a_text_is_cut_to_its_width(text, width):
    assert width_of(fit(text, width, 11), 11) <= max(width, width_of("…", 11))


# The map.


def point(key: str, loss: float | None, risk: float | None, **more: Any) -> dict[str, Any]:
    return {
        "key": key, "label": "MDAV", "text": f"MDAV, {key}", "loss": loss, "risk": risk,
        "worst": "interval", "baseline": 0.5, "k_reached": 3, "k_promised": 3, "problems": [],
        "error": "", "candidate": {"method": "protect", "options": {"k": 3}}, **more,
    }  # fmt: skip


def link(one: dict[str, Any]) -> str:
    return f"/points/{one['key']}?a=1&b=2"


def place(root: ET.Element, key: str) -> tuple[float, float]:
    node = root.find(f"a[@data-key='{key}']")
    assert node is not None
    x, y = re.findall(r"-?[\d.]+", node.attrib["transform"])
    return float(x), float(y)


def test_points_are_links_that_say_what_was_found():
    points = [point("a", 1.0, 90.0), point("b", 10.0, 20.0, problems=[QUOTES])]
    root = check(risk_utility_map(points, front=["a"], chosen="b", limits=(30, 5), href=link))
    one, other = root.findall("a")
    assert one.attrib["href"] == "/points/a?a=1&b=2"
    assert one.findtext("title") == (
        "MDAV, a: loss 1.0 %, risk 90.0 % (worst attack interval, guessing 0.5 %), "
        "k reached 3 of 3 promised, on the front"
    )
    assert other.attrib["aria-current"] == "true"
    assert "draw-hollow" in str(ET.tostring(other))
    (x, y), (x1, y1) = place(root, "a"), place(root, "b")
    assert x < x1  # more loss is on the right
    assert y < y1  # less risk is below
    assert {"risk at most 30 %", "loss at most 5 %", "better"} <= set(texts(root))


def test_the_present_plan_is_named():
    root = check(risk_utility_map([point("a", 1.0, 9.0)], front=["a"], href=link,
                                  present=point("plan", 2.0, 8.0)))  # fmt: skip
    assert "present plan" in texts(root)
    (present,) = root.findall("a[@class='draw-point draw-present']")
    assert present.attrib["aria-label"].startswith("present plan: MDAV, plan: loss 2.0 %")


def test_equal_points_can_all_be_reached():
    points = [point(str(at), 0.0, 50.0) for at in range(5)]
    root = check(risk_utility_map(points, front=["0"], limits=(50, None), href=link))
    places = {place(root, str(at)) for at in range(5)}
    assert len(places) == 5
    x, y = place(root, "0")
    assert all(abs(a - x) <= 7.1 and 0 <= b - y <= 7.1 for a, b in places)  # none above the limit


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100), st.sampled_from([*LOOKS, "new <x>"]))),
    st.tuples(st.none() | st.floats(0, 100), st.none() | st.floats(0, 100)),
)
def test_any_points_are_drawn(found, limits):
    points = [point(str(at), a, b, label=label) for at, (a, b, label) in enumerate(found)]
    points.append(point("refused", None, None, error="refused"))
    options: dict[str, Any] = {"front": ["0", "1"], "chosen": "1", "limits": limits, "href": link}
    if points[0]["loss"] is not None:
        options["present"] = points[0] | {"key": "plan"}
    root = check(risk_utility_map(points, **options))
    assert len(root.findall("a")) == len(found) + ("present" in options)
    for key in range(len(found)):
        x, y = place(root, str(key))
        assert 40 <= x <= 580
        assert 0 <= y <= 400
    rows = map_rows(points, **options)
    assert len(rows) == len(points) + ("present" in options)
    assert rows[-1]["error"] == "refused"
    assert not rows[-1]["within"]


def test_an_exploration_is_drawn():
    table = np.random.default_rng(0).normal(size=(40, 2))
    tried = [Candidate("protect", k=k, grouping="mdav") for k in (3, 6)]
    found = explore(table, candidates=tried, attacks=["euclidean"], n_jobs=1, random_state=0)
    points = [
        one.to_dict() | {"key": one.candidate.key, "label": one.candidate.label,
                         "text": str(one.candidate)}
        for one in found
    ]  # fmt: skip
    front = [one.candidate.key for one in found.front]
    root = check(risk_utility_map(points, front=front, href=link))
    assert len(root.findall("a")) == 2
    rows = map_rows(points, front=front, href=link)
    assert [row["text"] for row in rows] == [str(one) for one in tried]


def test_every_method_has_a_mark():
    assert len({(mark_path(shape), colour) for colour, shape in LOOKS.values()}) == len(LOOKS)


# Colours: contrast as WCAG 2 defines it.

STATIC = Path(tessella.reports.__file__).parent / "templates" / "drawing.css"
REPORTS = Path(tessella.reports.__file__).parent / "templates" / "style.css"
DARK_PAPER, DARK_INK = "#1b2026", "#dfe3e7"  # the lightest paper and darkest ink to expect


def colours(text: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", text))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def blend(colour: str, paper: str, share: float) -> str:
    pairs = [(int(colour[at : at + 2], 16), int(paper[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_from_the_paper(scheme):
    light, _, dark = STATIC.read_text().partition("(prefers-color-scheme: dark)")
    base = colours(REPORTS.read_text().partition("(prefers-color-scheme: dark)")[0])
    own = colours(light) if scheme == "light" else colours(dark)
    paper, ink = (base["paper"], base["ink"]) if scheme == "light" else (DARK_PAPER, DARK_INK)
    for name in (*(f"mark-{at}" for at in range(1, 8)), "mark-missing", "mark-before"):
        assert contrast(own[name], paper) >= 3, name
    assert contrast(own["mark-present"], paper) >= 4.5
    shares = dict(re.findall(r"heat-(\d) \{ fill-opacity: ([\d.]+)", STATIC.read_text()))
    for level, share in shares.items():
        behind = blend(own["mark-1"], paper, float(share))
        assert contrast(own.get(f"mark-on-{level}", ink), behind) >= 4.5, level


def test_every_class_has_a_style():
    style = STATIC.read_text()
    assert "style=" not in style
    table = pd.DataFrame({"a": [1.0, 2.0, None], "b": ["x", "y", "x"]})
    drawn = "".join(draw_all(table, table))
    plain = {"draw-before-after", "draw-pair", "draw-label", "draw-map", "draw-legend"}
    for one in set(" ".join(re.findall(r'class="([^"]+)"', drawn)).split()) - plain:
        assert f".{one}" in style or re.fullmatch(r"draw-on-[0-4]", one), one


# Pictures of a report.


def test_correlation_panels_say_the_largest_change():
    """By hand: b and c go from 0.5 to -0.25, the others stay."""
    before = np.array([[1, 0.1, 0.2], [0.1, 1, 0.5], [0.2, 0.5, 1]])
    after = before.copy()
    after[1, 2] = after[2, 1] = -0.25
    drawn = check(correlation_panels(before, after, ["a", "<b>", "c"]))
    assert drawn.get("aria-label") == (
        "Correlations of 3 columns: the largest change is that of c with <b>, "
        "0.50 before and −0.25 after"
    )
    values = [text.text for text in drawn.iter("text") if text.text and "." in text.text]
    assert sorted(values)[:2] == ["0.00", "0.00"]  # what did not change
    assert "−0.75" in values


@pytest.mark.parametrize("k", [None, 3, 6])
def test_group_sizes_have_a_bar_each(k):
    """By hand: sizes 3, 3, 5: bars of two heights, and those below k stand out."""
    drawn = check(group_size_bars(np.array([3, 3, 5]), k))
    bars = [one for one in drawn.iter("rect") if one.get("height")]
    heights = sorted(float(one.get("height")) for one in bars)
    assert heights[-1] == pytest.approx(2 * heights[0], abs=0.2)
    below = [one for one in bars if "draw-gone" in one.get("class")]
    assert len(below) == (2 if k == 6 else 0)
    assert ("below k = 6" in drawn.get("aria-label")) == (k == 6)


def test_many_sizes_of_groups_share_bars():
    sizes = np.random.default_rng(0).integers(3, 5000, 400)
    drawn = check(group_size_bars(sizes, 3))
    assert len([one for one in drawn.iter("rect") if one.get("height")]) <= 31


def test_losses_are_written_in_the_order_of_their_size():
    drawn = check(column_loss_bars({"a": 0.1, "b": 0.5, "c": 0.0}))
    assert drawn.get("aria-label") == "Loss of each column, SSE/SST: b 50 %; a 10 %; c 0 %"
