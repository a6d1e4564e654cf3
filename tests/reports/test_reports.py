"""Reports: nothing leaks, nothing is fetched, nothing in a table is taken for markup."""

from __future__ import annotations

import importlib.util
import json
import pickle
import re
import sys
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd
import pytest

from tessella import Study, datasets
from tessella.loss import measure
from tessella.reports import external_report, internal_report, summarise
from tessella.reports.bytecode import BytecodeBeside
from tessella.reports.public import manifest
from tessella.reports.rendering import templates
from tessella.risk import assess
from tessella.schema import Schema

VOID = {"meta", "br", "link", "img", "input", "hr", "col"}
METHODS = {
    "noise": {"amount": 0.2},
    "rank swapping": {"percent": 10},
    "shuffling": {"amount": 0.5},
    "individual ranking": {"k": 3},
    "rounding": {"base": 50},
    "coding": {"top": 0.05},
    "microaggregation": {"k": 3, "grouping": "mdav"},
    "fuzzy microaggregation": {"k": 3},
    "protect": {"k": 3, "grouping": "mdav"},
}


class Balance(HTMLParser):
    """Checks that every tag is closed where it should be, and gathers attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.tags: set[str] = set()
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag


def study_of(table, steps, **options) -> tuple[Study, dict]:
    study = Study(table, random_state=5, **options)
    for method, given in steps:
        study.do(method, **given)
    release = study.release()
    loss = measure(study.reference, release.table, schema=study.schema, on_unpaired="skip")
    return study, summarise(study, release, loss=loss, pictures=False)


@pytest.fixture(scope="module")
def firms() -> pd.DataFrame:
    return datasets.make_business_survey(120, random_state=1).drop(columns="firm")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_advice_and_both_reports(firms, method):
    numbers = ["employees", "hours", "wages", "turnover"]
    _, summary = study_of(firms[numbers], [(method, METHODS[method])])
    titles = [one["title"] for one in summary["public"]["advice"]]
    assert len(titles) == 2
    for text in (external_report(summary), internal_report(summary)):
        page = Balance(text)
        assert "script" not in page.tags
        assert ("lang", "en") in page.attributes


def test_pram_tells_its_chances_and_recoding_its_new_categories_only(firms):
    steps = [
        ("recode", {"column": "branch", "groups": {"other": ["trade", "transport"]}}),
        ("pram", {"p": 0.9, "columns": ["branch", "region"]}),
    ]
    _, summary = study_of(firms[["branch", "region"]], steps)
    text = external_report(summary) + manifest(summary, [])
    assert "0.9" in text
    assert "other" in text
    assert "transport" not in text
    assert "transport" in internal_report(summary)


def test_the_external_report_needs_nothing_confidential(firms):
    """It is rendered from the public part alone, so nothing else can slip in."""
    _, summary = study_of(firms, [("protect", METHODS["protect"])])
    assert external_report(summary) == external_report({"public": summary["public"]})
    assert manifest(summary, []) == manifest({"public": summary["public"]}, [])


def test_a_summary_is_plain_json(firms):
    _, summary = study_of(firms, [("protect", METHODS["protect"])], rules="turnover >= 0")
    again = json.loads(json.dumps(summary, allow_nan=False))
    assert again == summary
    assert internal_report(again) == internal_report(summary)


HOSTILE = [
    "<script>alert(1)</script>", 'a"b', "x&y", "{{ 7*7 }}", "'; --", "$x^2$", "</style>", "<!--",
    "https://example.org/a.png",
]  # fmt: skip


def test_names_and_labels_are_never_markup():
    random = np.random.default_rng(0)
    table = pd.DataFrame({name: random.normal(size=40) for name in HOSTILE})
    table["<b>c</b>"] = np.where(random.random(40) < 0.5, "<i>yes</i>", '"no"')
    study = Study(table, random_state=0)
    study.do("protect", k=4, grouping="mdav", name="<u>mine</u>")
    release = study.release()
    summary = summarise(study, release, title="<h1>t</h1>", warned=["<em>w</em>"])
    for text in (external_report(summary), internal_report(summary)):
        page = Balance(text)
        assert not page.tags & {"script", "b", "i", "u"}
        assert "&lt;script&gt;alert(1)" in text
        assert "{{ 7*7 }}" in text


def test_nothing_is_fetched(firms):
    study = Study(firms, rules="turnover >= 0", random_state=1).do("protect", k=3, grouping="mdav")
    summary = summarise(study, study.release())
    drawn = summary["confidential"]["pictures"]
    assert [picture["why"] for picture in drawn] == [""] * 4
    for text in (external_report(summary), internal_report(summary)):
        assert not re.search(r"https?:|@import|<link|<script|<iframe|<img", text)
        assert not [at for at in re.findall(r"url\(([^)]*)\)", text) if not at.startswith("#")]
        for name, value in Balance(text).attributes:
            assert name != "src"
            assert name != "href" or value.startswith(("#", "data:image/png"))
            assert not name.startswith("on")


def test_pictures_have_names_of_their_own(firms):
    study = Study(firms, random_state=1).do("protect", k=3, grouping="mdav")
    text = internal_report(summarise(study, study.release()))
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(names) == len(set(names))
    for used in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text):
        assert "".join(used) in names


def test_the_internal_report_says_everywhere_that_it_is_confidential(firms):
    _, summary = study_of(firms, [("protect", METHODS["protect"])])
    text = internal_report(summary)
    assert "<title>CONFIDENTIAL" in text
    assert re.search(r'@top-center \{ content: "CONFIDENTIAL', text)
    assert "h2::after" in text
    assert not re.search(r"onfidential\b", external_report(summary))


def test_a_column_with_few_changes_tells_no_figure():
    """By hand: one cell of b differs, so its loss and the overall loss would tell the cell."""
    table = pd.DataFrame({"a": np.arange(30) % 7, "b": [0.0] * 29 + [12345.5]})
    _, summary = study_of(table, [("coding", {"top": 0.05, "columns": ["a", "b"]})])
    public = summary["public"]
    b = public["columns"][1]
    assert b["withheld"]
    assert b["loss"] is b["mean_change"] is b["deviation"] is None
    assert public["withheld"] == ["b"]
    assert public["loss"] is None
    assert public["measures"] == []
    text = external_report(summary)
    assert "withheld" in text
    assert "12345" not in text
    assert "12,345" not in text


def test_a_rule_that_names_a_lost_category_is_kept_without_its_words():
    table = pd.DataFrame(
        {"job": ["clown"] * 3 + ["cook"] * 27, "pay": [float(i * i) for i in range(30)]}
    )
    study = Study(table, rules=['if job == "clown": pay >= 0', "pay <= 1000"], random_state=0)
    study.do("recode", column="job", groups={"any": ["clown", "cook"]})
    study.do("protect", k=3, grouping="mdav")
    summary = summarise(study, study.release(), pictures=False)
    assert summary["public"]["rules_withheld"] == 1
    text = external_report(summary) + manifest(summary, [])
    assert "clown" not in text
    assert "cook" not in text
    assert "pay &lt;= 1000" in text


def test_a_rule_that_names_a_lost_code_is_kept_without_its_words():
    """Codes that are numbers: 7 is gone from the release."""
    table = pd.DataFrame({"job": [7] + [1, 2] * 20, "pay": [float(i * i) for i in range(41)]})
    schema = Schema.guess(table).override(job={"kind": "nominal"})
    rules = ["job in {1, 2, 7}", "pay <= 1700"]
    study, summary = study_of(
        table, [("protect", {"k": 9, "grouping": "mdav"})], schema=schema, rules=rules
    )
    assert 7 not in set(study.table["job"])
    assert [rule["text"] for rule in summary["public"]["rules"]] == ["pay <= 1700"]


def test_missing_codes_are_told_if_they_are_there():
    table = pd.DataFrame(
        {"age": [-9] * 5 + list(range(20, 45)), "pay": [float(i * i) for i in range(30)]}
    )
    schema = Schema.guess(table).override(age={"kind": "integer", "missing": (-9, -8)})
    _, summary = study_of(table, [("protect", METHODS["protect"])], schema=schema)
    assert summary["public"]["columns"][0]["codes"] == ["-9"]
    assert "age: -9" in external_report(summary)


def test_templates_are_in_the_package():
    held = {path.name for path in (files("tessella.reports") / "templates").iterdir()}
    assert set(templates().list_templates()) == held
    assert {"base.html", "external.html", "internal.html", "macros.html", "style.css"} <= held


@pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="needs hatchling")
def test_templates_are_in_the_wheel(tmp_path):
    import subprocess
    import sys
    import zipfile
    from pathlib import Path

    root = Path(__file__).parents[2]
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=root, capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert "tessella/reports/templates/external.html" in zipfile.ZipFile(wheel).namelist()


def test_docs():
    import doctest
    from pathlib import Path

    page = Path(__file__).parents[2] / "docs" / "reports.md"
    ran = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert ran.attempted > 0
    assert ran.failed == 0


def test_a_record_that_dominates_a_column_cannot_be_worked_out() -> None:
    """A firm a thousand times as large: from mean, deviation or loss anybody could reckon it."""
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {"pay": random.integers(900, 1100, 60), "age": random.integers(20, 60, 60)}
    )
    table.loc[7, "pay"] = 1_234_567
    study = Study(table, random_state=0).do("noise", amount=0.3).do("protect", k=3)
    release = study.release()
    loss = measure(table, release.table)
    public = summarise(study, release, loss=loss, pictures=False)["public"]
    pay, age = public["columns"]
    assert pay["withheld"] == "dominated"
    assert all(pay[key] is None for key in ("loss", "mean_change", "deviation", "distribution"))
    assert age["withheld"] == ""
    assert public["loss"] == age["loss"] == pytest.approx(release.column_loss["age"], rel=0.2)
    kept = {one["name"]: one["value"] for one in public["measures"]}
    alone = measure(table, release.table, columns=["age"])
    assert kept["variances_absolute"] == pytest.approx(alone["variances_absolute"].value, abs=0.03)
    assert "a single record accounts for most of the variation" in external_report(
        {"public": public, "confidential": {}}
    )
    even = Study(table.drop(index=7), random_state=0).do("protect", k=3)
    assert not summarise(even, even.release(), pictures=False)["public"]["dominated"]


def test_attacks_stand_beside_their_controls(firms):
    """A bug once met: a learned or predicted share stood beside guessing only."""
    table = firms[["employees", "hours", "wages", "turnover"]]
    schema = Schema.guess(table).override(turnover={"role": "confidential"})
    study = Study(table, schema=schema, random_state=5)
    study.do("microaggregation", k=3, grouping="mdav", columns=["employees", "hours", "wages"])
    release = study.release()
    risk = assess(
        study.reference, release.table, known=["employees", "hours", "wages"],
        confidential="turnover", attacks=["learned", "prediction"], random_state=0,
    )  # fmt: skip
    summary = summarise(study, release, risk=risk, pictures=False)
    text = " ".join(internal_report(summary).split())
    for one in risk.tried:
        assert one.found.beside() in text
    apart, control = risk["learned"].held_out, risk["learned"].controls["shuffled"]
    assert f"on records held out {100 * apart.value:.1f} %" in text
    assert f"on shuffled records {100 * control.value:.1f} %" in text
    assert f"without the own record {100 * risk['prediction'].without.value:.1f} %" in text
    assert f"excess {100 * risk['prediction'].excess:.1f} %" in text
    for one in summary["confidential"]["risk"]["attacks"]:
        del one["beside"]  # a summary of an earlier version
    assert "by guessing" in internal_report(summary)


ODD = {
    "infinite": np.where(np.arange(60) == 3, np.inf, 1.5),
    "beyond": 2**53 + 7 * np.arange(60) // 5,
    "vanishing": np.arange(60) // 5 * 1e-200,
    "near_largest": np.linspace(-1e149, 1e149, 60),
    "nothing": np.full(60, np.nan),
    "one_value": np.full(60, 4.0),
    "dates": pd.date_range("2001-01-31", periods=60),
    "letters": ["日本", "é", "<b>", ""] * 15,
}


def test_no_measure_and_no_picture_blocks_a_release():
    """A table of odd columns, kept as they are beside two that are masked: both reports, whole."""
    chance = np.random.default_rng(0)
    table = pd.DataFrame({"income": chance.lognormal(9, 1, 60), "town": list("abc") * 20, **ODD})
    as_it_is = {name: {"role": "untouched", "unique": "kept"} for name in ODD}
    study = Study(table, schema=Schema.guess(table).override(as_it_is), random_state=0)
    study.do("protect", k=3, grouping="mdav", columns=["income", "town"])
    release = study.release()
    loss = measure(*study.views, schema=study.schema, on_unpaired="skip")
    with_pictures = importlib.util.find_spec("matplotlib") is not None
    summary = summarise(study, release, loss=loss, pictures=with_pictures)
    json.dumps(summary, allow_nan=False)
    left_out = [note for note in loss.notes if "left out" in note]
    assert len(left_out) == 3  # infinite, beyond, vanishing
    text = internal_report(summary)
    assert "mean of income" in text
    assert "is left out" in text
    assert "estimates" in str(release)
    assert external_report(summary)


def test_estimates_are_for_the_holder_only(firms):
    """What moved is in the internal report, its headline and the release; nothing is public."""
    table = firms[["branch", "turnover", "wages"]]
    study = Study(table, random_state=5).do("protect", k=20, grouping="mdav")
    release = study.release()
    summary = summarise(study, release, pictures=False)
    found = summary["confidential"]["estimates"]
    assert found["sentence"] == release.estimates.sentence
    assert found["sentence"] in str(release)
    assert internal_report(summary).count(found["sentence"]) == 2
    ratios = [np.inf if one["ratio"] is None else one["ratio"] for one in found["estimates"]]
    assert ratios == sorted(ratios, reverse=True)
    shares = table.branch.value_counts(normalize=True)
    for line in found["categories"]:
        assert line["before"] == pytest.approx(shares[line["of"]])
        inside = table[table.branch == line["of"]]
        worst = line["worst_mean"]
        assert worst["before"] == pytest.approx(inside[worst["column"]].mean())
        here = release.table[release.table.branch == line["of"]]
        assert worst["after"] == pytest.approx(here[worst["column"]].mean())
    assert found["within"]["means"] == sum(line["means"] for line in found["categories"])
    public = external_report(summary) + manifest(summary, [])
    assert "sampling error" not in public
    assert "Gini" not in public
    assert pickle.loads(pickle.dumps(release)).estimates is None


def test_errors_of_a_release_count_its_households():
    """Households of three who agree: the share's error is that of forty records, by hand."""
    table = pd.DataFrame(
        {"house": np.repeat(np.arange(40), 3), "town": np.repeat(list("aaab") * 10, 3)}
    )
    table["age"] = np.arange(120) % 7 + 20
    schema = Schema.guess(table).override(
        house={"role": "unit"}, town={"role": "untouched"}, age={"kind": "integer"}
    )
    study = Study(table, schema=schema, random_state=0).do("protect", k=3, grouping="mdav")
    found = {one.name: one for one in study.release().estimates.estimates}
    share = found["share of town = a"]
    assert (share.before, share.after) == (0.75, 0.75)
    assert share.error == pytest.approx(np.sqrt(0.75 * 0.25 / 39))


def test_templates_are_compiled_once_and_again_when_they_change(tmp_path, monkeypatch):
    """The real Jinja; a folder that cannot be one keeps nothing, and nothing fails."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def text(source: str, folder: Path) -> str:
        cache = BytecodeBeside(folder, 1)
        loader = jinja2.DictLoader({"page": source})
        return jinja2.Environment(loader=loader, bytecode_cache=cache).get_template("page").render()

    kept = tmp_path / "kept"
    assert [text("one", kept), text("one", kept), text("two", kept)] == ["one", "one", "two"]
    assert len(list(kept.iterdir())) == 1
    monkeypatch.setattr(jinja2.Environment, "compile", None)  # not asked: "two" is kept
    assert text("two", kept) == "two"
    monkeypatch.undo()
    (tmp_path / "file").touch()
    assert text("one", tmp_path / "file") == "one"
