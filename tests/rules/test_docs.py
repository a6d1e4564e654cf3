"""The page about rules, and the example file, do what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

from tessella.datasets import make_business_survey
from tessella.rules import Rules

ROOT = Path(__file__).parents[2]


def test_the_page_about_rules():
    ran = doctest.testfile(
        str(ROOT / "docs" / "rules.md"),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert ran.attempted > 10
    assert ran.failed == 0


def test_the_example_file():
    rules = Rules.read(ROOT / "examples" / "business.rules")
    assert rules.confront(make_business_survey(500, random_state=1)).all_hold
    assert rules.check() == []
    spoiled = make_business_survey(500, random_state=1, inconsistent=0.1)
    assert len(rules.confront(spoiled).breaking()) == 50
