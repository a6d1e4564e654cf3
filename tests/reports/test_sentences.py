"""Every sentence of a public text follows from what was done and counted."""

from __future__ import annotations

from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from tessella import Schema, Study
from tessella.loss import measure
from tessella.reports import external_report, summarise
from tessella.reports.sentences import ADVICE, SENTENCES

ALWAYS = {"size", "steps", "rounded", "publish", "no risk"}
NO_RULES, RULES = {"no rules"}, {"rules hold", "rules counted"}
NO_K = {"no k", "no groups"}
MASKED = {"own value", "standard errors"}
ALL = {"all masked"} | MASKED
SOME = {"some masked", "kept"} | MASKED
K = {"k", "k counted", "groups"}
BLOCKS = {"k in blocks", "k counted in blocks", "groups in blocks"}
WILDCARD = {"k by wildcard", "k counted by wildcard", "groups by wildcard"}
UNCOUNTED = {"uncounted", "not counted in k"}
EVERY = ["age", "pay"]


def people() -> pd.DataFrame:
    chance = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": chance.integers(18, 90, 80),
            "pay": chance.lognormal(7, 0.3, 80).round(1),
            "town": chance.choice(["Reus", "Salou", "Valls"], 80),
        }
    )


# By hand: steps, columns that are declared untouched, rules, and the sentences that follow.
PLANS = {
    "drop": ([("drop", {"columns": ["age"]})], ["pay", "town"], [],
             {"as they are", "kept"} | NO_K | NO_RULES),
    "drop with rules": ([("drop", {"columns": ["age"]})], ["pay", "town"], ["pay >= 0"],
                        {"as they are", "kept"} | NO_K | RULES),
    "recode": ([("recode", {"column": "town", "groups": {"coast": ["Reus", "Salou"]}})],
               ["age", "pay", "town"], [], {"only prepared", "kept"} | NO_K | NO_RULES),
    "noise": ([("noise", {"amount": 0.3, "columns": EVERY})], ["town"], [],
              {"loss"} | SOME | NO_K | NO_RULES),
    "noise with rules": ([("noise", {"amount": 0.3, "columns": EVERY})], ["town"], ["pay >= 0"],
                         {"loss", "moved back"} | SOME | NO_K | RULES),
    "pram": ([("pram", {"p": 0.7, "columns": ["town"]})], EVERY, [], SOME | NO_K | NO_RULES),
    "fuzzy": ([("fuzzy microaggregation", {"k": 4, "columns": EVERY})], ["town"], [],
              {"loss"} | SOME | K | NO_RULES),
    "probabilistic": (
        [("fuzzy microaggregation", {"k": 4, "columns": EVERY, "at_least_k": False})], ["town"],
        [], {"loss", "probabilistic"} | SOME | NO_K | NO_RULES),
    "microaggregation": ([("microaggregation", {"k": 4, "columns": EVERY})], ["town"], [],
                         {"loss"} | SOME | K | NO_RULES),
    "protect": ([("protect", {"k": 4, "grouping": "mdav"})], [], [],
                {"loss"} | ALL | K | NO_RULES),
    "protect in strata": ([("protect", {"k": 4, "grouping": "mdav", "strata": ["town"]})], [], [],
                          {"loss"} | SOME | K | NO_RULES),
    "protect with l": (
        [("protect", {"k": 4, "grouping": "mdav", "l": 2, "confidential": ["town"]})], ["town"],
        [], {"loss", "diverse"} | SOME | K | NO_RULES),
    "protect in blocks": (
        [("protect", {"k": 4, "grouping": "mdav", "blocks": [["age"], ["pay", "town"]]})], [],
        ["pay >= 0"], {"loss"} | ALL | BLOCKS | RULES),
    "protect, then another column": (
        [("protect", {"k": 4, "columns": EVERY}), ("pram", {"p": 0.7, "columns": ["town"]})], [],
        [], {"loss"} | ALL | K | UNCOUNTED | NO_RULES),
    "protect, then keys": (
        [("protect", {"k": 4, "columns": ["pay"]}),
         ("local suppression", {"k": 2, "columns": ["age", "town"]})], [],
        [], {"loss"} | ALL | BLOCKS | NO_RULES),
    "subsets of keys, then protect": (
        [("local suppression", {"k": 3, "subsets": 1, "columns": ["age", "town"]}),
         ("protect", {"k": 4, "columns": ["pay"]})], [],
        [], {"loss"} | ALL | K | UNCOUNTED | NO_RULES),
    "wildcard": (
        [("local suppression", {"k": 3, "missing": "wildcard", "columns": ["age", "town"]})],
        ["pay"], [], SOME | WILDCARD | NO_RULES),
}  # fmt: skip


def summary_of(plan: str, order: str = "kept") -> tuple[Study, dict]:
    steps, untouched, rules, _ = PLANS[plan]
    roles = {name: {"role": "untouched", "unique": "kept"} for name in untouched}
    schema = Schema.guess(people()).override(roles)
    study = Study(people(), schema=schema, rules=rules, random_state=3)
    for method, options in steps:
        study.do(method, **options)
    release = study.release()
    loss = measure(*study.views, schema=study.schema, on_unpaired="skip")
    return study, summarise(study, release, loss=loss, pictures=False, order=order)


def names_that_hold(public: dict) -> set[str]:
    return {one.name for one in SENTENCES if one.when(public)}


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_gets_the_sentences_that_follow_and_no_other(plan):
    _, summary = summary_of(plan)
    found = names_that_hold(summary["public"]) - {"few", "dominated"}
    assert found == ALWAYS | PLANS[plan][3]


def test_no_text_says_more_than_was_counted_in_the_released_table():
    """The sentence of a plain k is a falsehood where other masked columns tell records apart."""
    false = "has the same masked values as"
    for plan in ("protect, then another column", "subsets of keys, then protect", "wildcard"):
        study, summary = summary_of(plan)
        masked = list(study.masked)
        fewest = study.table.groupby(masked, dropna=False, observed=True).size().min()
        assert fewest < summary["public"]["k"], plan  # or the sentence would be true
        assert false not in external_report(summary), plan


def test_every_sentence_has_a_name_and_a_plan_of_its_own():
    """What no plan above reaches is tested below, or elsewhere by name."""
    names = [one.name for one in SENTENCES]
    assert len(set(names)) == len(names)
    reached = set().union(ALWAYS, *(own for *_, own in PLANS.values()))
    elsewhere = {"unquoted rules", "constants", "weight", "codes", "order", "edited", "few",
                 "dominated", "hash", "sampled", "sampled without k"}  # fmt: skip
    assert set(names) == reached | elsewhere
    places = {"verdict", "method", "guarantee", "rules", "unquoted", "analysis", "limits", "footer"}
    assert {one.place for one in SENTENCES} == places


class Sentences(HTMLParser):
    """Gathers paragraphs and items of a page, but for legends and lists of steps."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found, self.inside, self.skip = [], "", 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        legend = tag == "p" and dict(attrs).get("class") in ("soft key", "under")
        if tag in ("ol", "table", "dl", "style", "title") or legend:
            self.skip += 1
        if tag in ("p", "li", "footer") and not self.skip:
            self.inside = tag
            self.found.append("")

    def handle_endtag(self, tag):
        if tag in ("ol", "table", "dl", "style", "title") or (tag == "p" and self.skip):
            self.skip -= 1
        elif tag == self.inside:
            self.inside = ""

    def handle_data(self, data):
        if self.inside and not self.skip:
            self.found[-1] += data


@pytest.mark.parametrize("plan", PLANS)
def test_the_page_has_no_sentence_that_is_not_listed(plan):
    _, summary = summary_of(plan, order="shuffled")
    public = summary["public"]
    allowed = [text for texts in public["sentences"].values() for text in texts]
    allowed += [text for one in public["advice"] for text in one["says"]]
    allowed.append(f"Made by tessella {public['tessella']}.")
    for text in Sentences(external_report(summary)).found:
        left = unescape(text)
        for sentence in sorted(allowed, key=len, reverse=True):
            left = left.replace(sentence, "")
        assert not left.strip(), left


def test_nothing_masked_claims_no_protection():
    """A plan that only drops a column once published that respondents cannot be recognised."""
    _, summary = summary_of("drop")
    text = external_report(summary).partition("<body>")[2]
    assert "No value was changed" in text
    for claim in ("protected", "recognised", "hide", "safe", "cannot", "at least", "masking cost"):
        assert claim not in text, claim


@pytest.mark.parametrize("plan", ["protect", "protect in strata", "protect in blocks"])
def test_k_is_the_one_that_another_library_counts(plan):
    study, summary = summary_of(plan)
    public, table = summary["public"], study.table
    blocks = [[*block["columns"], *public["strata"]] for block in public["blocks"]]
    counted = min(table.groupby(block, dropna=False).size().min() for block in blocks)
    assert public["k"] <= counted


def test_cells_are_called_suppressed_only_where_some_were():
    schema = Schema.guess(people())
    whole = Study(people(), schema=schema, random_state=0).do("suppress", k=4)
    lacking = people().astype({"pay": float})
    lacking.loc[0, "pay"] = np.nan
    some = Study(lacking, schema=schema, random_state=0).do("suppress", k=4)
    for study, expected in ((whole, False), (some, True)):
        study.do("protect", k=4, grouping="mdav")
        public = summarise(study, study.release(), pictures=False)["public"]
        said = [text for one in public["advice"] for text in one["says"]]
        assert (ADVICE["suppress"][1] in said) == expected
