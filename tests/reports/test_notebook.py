"""Results in a notebook: escaped, within one class, light and dark, marked where confidential."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest

from tessella import Rules, Schema, Study, audit, datasets, loss, make_plan, protect
from tessella._notebook import Bar, Code, Display, Figure, Section
from tessella.explore import Candidate, explore
from tessella.reports.notebook import DARK_HOSTS, LIGHT_HOSTS, SCOPE, style, to_html
from tessella.risk import Estimate, assess

HOSTILE = "<script>alert(1)</script>"
BREAKING = '</style></div><img src=x onerror="alert(2)">'
VOID = {"img", "br", "hr", "input", "link", "meta", "rect", "use"}
SHOWN = (
    "release", "audit", "loss", "losses", "estimates", "subgroups", "risk", "estimate",
    "exploration", "plan", "rules", "schema",
)  # fmt: skip
OPEN = {"plan", "rules", "schema"}  # hold nothing of the records


class Reader(HTMLParser):
    """Reads HTML as a browser would: elements in their order, attributes, text, and style."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.stack: list[str] = []
        self.texts: list[str] = []
        self.roots = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.roots += not self.stack
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.stack:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def original() -> pd.DataFrame:
    """A table whose names and values are markup."""
    made = datasets.make_business_survey(80, random_state=0)
    return pd.DataFrame({
        HOSTILE: made["wages"],
        BREAKING: made["turnover"],
        "a&b": [HOSTILE if x == "north" else BREAKING for x in made["region"]],
    })  # fmt: skip


@pytest.fixture(scope="module")
def results(original: pd.DataFrame) -> dict[str, Any]:
    """One result of each kind that a notebook shows, all about the hostile table."""
    rules = Rules.of([f"`{HOSTILE}` >= 0"])
    release = Study(original, rules=rules, random_state=0).do("protect", k=4).release()
    masked = release.table
    losses = loss.measure(original, masked)
    risk = assess(original, masked, effort="quick", attacks=["euclidean", "gower", "k-anonymity"])
    tried = [Candidate("protect", k=k, grouping="mdav") for k in (3, 6)]
    return {
        "release": release,
        "audit": release.audit,
        "losses": losses,
        "loss": losses["sse_sst"],
        "estimates": release.estimates,
        "subgroups": loss.subgroup_loss(original, masked),
        "risk": risk,
        "estimate": risk["gower"],
        "exploration": explore(
            original, candidates=tried, attacks=["euclidean"], n_jobs=1, random_state=0
        ),
        "plan": release.plan,
        "rules": rules,
        "schema": Schema.guess(original),
    }


@pytest.fixture(params=SHOWN)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_markup_in_names_and_values_stays_text(kind: str, results: dict[str, Any]) -> None:
    read = Reader(results[kind]._repr_html_())
    assert read.roots == 1, "something closed our element"
    assert read.stack == []
    assert read.tags.count("style") == 1
    assert {"script", "img", "link", "iframe", "object", "base", "form"} & set(read.tags) == set()
    assert not [name for name, _ in read.attributes if name.startswith("on")]


@pytest.mark.parametrize("kind", ["release", "audit", "loss", "plan", "rules", "schema"])
def test_the_hostile_names_are_shown_as_they_are(kind: str, results: dict[str, Any]) -> None:
    assert HOSTILE in Reader(results[kind]._repr_html_()).text


def test_nothing_is_asked_from_outside(kind: str, results: dict[str, Any]) -> None:
    html = results[kind]._repr_html_()
    found = [
        (name, value) for name, value in Reader(html).attributes
        if name in ("src", "href", "action", "srcset", "poster", "data", "xlink:href")
    ]  # fmt: skip
    assert all((value or "").startswith("#") for _, value in found), found
    assert "@import" not in html
    assert not re.search(r"url\(\s*[\"']?(?!#)", html)


def test_what_is_confidential_is_marked(kind: str, results: dict[str, Any]) -> None:
    read = Reader(results[kind]._repr_html_())
    marked = ("class", "confidential") in read.attributes and "Not to be published." in read.text
    assert marked == (kind not in OPEN)
    if marked:  # before anything else is read
        assert read.text.startswith("Confidential: ")


def test_every_result_that_has_risk_or_the_original_is_tested(results: dict[str, Any]) -> None:
    assert set(results) == set(SHOWN)


def test_a_release_shows_no_record_beyond_its_text() -> None:
    """Every number of the HTML is one of the printed text, or counts records, k or rules."""
    table = datasets.make_business_survey(60, random_state=3)[["wages", "turnover"]]
    release = protect(table, k=3, rules="turnover >= 0", random_state=0)
    number = re.compile(r"[\d.,]*\d")
    printed = {x.replace(",", "") for x in number.findall(str(release))}
    shown = {x.replace(",", "") for x in number.findall(Reader(release._repr_html_()).text)}
    assert shown - printed == set()
    assert not hasattr(release.audit, "_repr_mimebundle_")


def test_the_same_text_as_printing() -> None:
    """The sections are made once: what printing aligns, the table has in its cells."""
    table = datasets.make_business_survey(60, random_state=3)[["wages", "turnover"]]
    found = audit(table, table, k=2)
    text = Reader(found._repr_html_()).text
    for line in str(found).splitlines():
        for cell in filter(None, re.split(r"\s{2,}", line.rstrip(":").removeprefix("- "))):
            assert cell in text


def selectors(css: str) -> list[str]:
    """All selectors of a style sheet, also those within @media."""
    inner = re.sub(r"@media[^{]*\{((?:[^{}]*\{[^{}]*\})*)\s*\}", r"\1", css)
    assert "@" not in inner
    return [one.strip() for rule in re.findall(r"([^{}]+)\{", inner) for one in rule.split(",")]


def test_the_style_is_within_our_class() -> None:
    found = selectors(style())
    assert len(found) > 40
    for one in found:
        assert f".{SCOPE}" in one, one
        last = one.rpartition(f".{SCOPE}")[0]
        assert not last or last == f".{SCOPE}" or last.strip() in (*DARK_HOSTS, *LIGHT_HOSTS), one
    assert "rem" not in re.findall(r"\d(rem)\b", style())


def test_both_themes() -> None:
    """The system decides, unless Jupyter or VS Code do."""
    css = style()
    light, dark = "--paper: #ffffff", "--paper: #12161b"
    assert css.index(light) < css.index("@media (prefers-color-scheme: dark)")
    (system,) = re.findall(r"@media \(prefers-color-scheme: dark\) \{ (.*) \}", css)
    assert dark in system
    assert light not in system
    for hosts, colour in ((DARK_HOSTS, dark), (LIGHT_HOSTS, light)):
        for host in hosts:
            (body,) = re.findall(re.escape(f"{host} .{SCOPE}") + r"[^{]*\{([^}]*)\}", css)
            assert colour in body
    assert '[data-jp-theme-light="false"]' in DARK_HOSTS
    assert ".vscode-dark" in DARK_HOSTS


def test_by_hand() -> None:
    html = to_html(
        Display(
            title="T & T",
            verdict=["Well."],
            good=True,
            figures=[Figure("Records", "3", "of 4")],
            sections=[
                Section(title="A", rows=[["x", "y", "z"], ["1", Bar(2.0, "2"), Code("a < b")]]),
                Section(title="B", lines=["first", "  its part"], folded=True),
            ],
        )
    )
    read = Reader(html)
    assert read.text == "T & T Well. Records 3 of 4 A x y z 1 2 a < b B first its part"
    assert ("width", "100.00") in read.attributes  # a bar is never longer than whole
    assert read.tags.count("details") == 1
    assert ("class", "part") in read.attributes
    assert ("class", "verdict passed") in read.attributes
    assert "\n\n" not in html


def test_the_map_has_the_colours_of_the_page_and_needs_no_matplotlib(
    results: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug once met: a white picture in a dark output, and none without the extra `plots`."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    html = results["exploration"]._repr_html_()
    (svg,) = re.findall(r"<figure>(<svg.*?</svg>)</figure>", html, flags=re.DOTALL)
    assert not re.search(r"\bstyle=|\bid=|<a\b|#[0-9a-f]{3,6}\b", svg)  # classes only
    assert svg.count('class="draw-point') == len(results["exploration"].points)
    assert "background: #fff" not in style(pictures=True)
    for host in (*DARK_HOSTS, "@media (prefers-color-scheme: dark) {"):
        dark = re.search(rf"{re.escape(host)} \.{SCOPE}[^{{]*\{{([^}}]*)\}}", style(pictures=True))
        assert dark is not None, host
        assert "--mark-1: #58a9e6" in dark[1], host
    assert "--mark-1" not in style()  # an output without a picture stays small


def test_subclasses_of_an_estimate_show_their_own_text() -> None:
    found = Estimate.of(30, 200, baseline=0.005, attack="nearest", assumptions=["he is lucky"])
    text = Reader(found._repr_html_()).text
    assert str(found) in text
    assert "he is lucky" in text
    assert "10.7 to 20.6 %" in text


def test_an_empty_collection_of_rules_and_a_plan_without() -> None:
    assert Reader(Rules()._repr_html_()).text == "0 rules on 0 columns"
    schema = Schema({"a": {"kind": "continuous"}, "b": {"kind": "continuous"}})
    assert "at least 3" in Reader(make_plan(schema, Rules(), k=3)._repr_html_()).text
