"""Rules without data: by hand, and no verdict that a search through records can refute."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from tessella.rules import Rules
from tests.amounts import few_or_many, try_examples

from . import branches


def findings(text):
    return [(found.kind, found.rules) for found in Rules.parse(text).check()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 1\nb > 1", []),
        # the same rule
        ("a <= b\nb >= a", [("duplicate", ("R1", "R2"))]),
        ("a + b == c\n2 * c == 2 * b + 2 * a", [("duplicate", ("R1", "R2"))]),
        ("s in {'x', 'y'}\ns in {'y', 'x'}", [("duplicate", ("R1", "R2"))]),
        ("a == b * c\nb == a / c", [("duplicate", ("R1", "R2"))]),
        ("if a > 1: b > 1\nif not a <= 1: b > 1", [("duplicate", ("R1", "R2"))]),
        ("observed(a)\nobserved(a)", [("duplicate", ("R1", "R2"))]),
        ("a == 1 ± 1\na == 1 ± 1\na == 1 ± 2", [("duplicate", ("R1", "R2"))]),
        # alone
        ("a == a", [("always true", ("R1",))]),
        ("a < a + 1", [("always true", ("R1",))]),
        ("a < a", [("always false", ("R1",))]),
        ("5 <= a <= 3", [("always false", ("R1",))]),
        ("a > 3 and a < 3", [("always false", ("R1",))]),
        ("a == 3 and a != 3", [("always false", ("R1",))]),
        ("s == 'x' and s == 'y'", [("always false", ("R1",))]),
        ("s in {'x'} and s != 'x'", [("always false", ("R1",))]),
        ("f and not f", [("always false", ("R1",))]),
        ("known(a) and missing(a)", [("always false", ("R1",))]),
        ("if a > 5: a > 3", [("always true", ("R1",))]),
        ("if a > 5 and a < 3: b > 1", [("always true", ("R1",))]),
        ("if a > 5: a < 3", [("excluded", ("R1",))]),
        # contradictions
        ("a > 5\na < 3", [("contradiction", ("R1", "R2"))]),
        ("a > 1\na > 2\na <= 1", [("contradiction", ("R1", "R3"))]),
        ("a in {1, 2}\na > 2", [("contradiction", ("R1", "R2"))]),
        ("a in {1, 2}\na != 1\na != 2", [("contradiction", ("R1", "R2", "R3"))]),
        ("s == 'x'\ns in {'y', 'z'}", [("contradiction", ("R1", "R2"))]),
        ("a <= b\nb <= c\nc < a", [("contradiction", ("R1", "R2", "R3"))]),
        ("a + b == c\na >= 1\nb >= 1\nc <= 1", [("contradiction", ("R1", "R2", "R3", "R4"))]),
        ("a < b\nb < a", [("contradiction", ("R1", "R2"))]),
        ("a + b == 1\na + b == 2", [("contradiction", ("R1", "R2"))]),
        ("if a > 1: b > 3\nif a > 2: b < 2", [("excluded", ("R2", "R1"))]),
        ("b < 2\nif a > 1: b > 3", [("excluded", ("R2", "R1"))]),
        # for every choice of ways in which conditional rules are true
        ("if a < 15: b == 0\nb > 0", [("excluded", ("R1", "R2"))]),
        ("if a < 15: b == 0\nb > 0\na < 9", [("contradiction", ("R1", "R2", "R3"))]),
        ("if a > 1: b > 3\nif a <= 1: b > 3\nb < 2", [("contradiction", ("R1", "R2", "R3"))]),
        ("if a > 1: b > 3\nif a < 1: b > 3\nb < 2", [("excluded", ("R1", "R3")),
                                                    ("excluded", ("R2", "R3"))]),
        ("a > 1 or b > 1\na + b < 1\na > 0\nb > 0", [("contradiction", ("R1", "R2", "R3", "R4"))]),
        ("if s == 'x': a + b > 3\nif s != 'x': a > 3\na < 1\nb < 2\nc > 0",
         [("contradiction", ("R1", "R2", "R3", "R4"))]),
        ("missing(a)\na > 5\na < 3", []),  # where it is missing, neither is broken
        ("missing(a)\na > b\na < b", []),
        # whole numbers of 16 digits are not equal because they are near
        ("a == 1234567890123456\nb == 1234567890123455\na - b < 3", []),
        ("a == 1234567890123456\nb == 1234567890123455\na - b < 1",
         [("contradiction", ("R1", "R2", "R3"))]),
        ("3 * a == 9007199254740991\n3 * a > 9007199254740990", []),  # thirds: no exact double
        # redundant
        ("0 <= a <= 9\na <= 20", [("redundant", ("R2", "R1"))]),
        ("a > 3\na != 2", [("redundant", ("R2", "R1"))]),
        ("a in {1, 2}\na <= 2", [("redundant", ("R2", "R1"))]),
        ("s in {'x', 'y'}\ns == 'x'", [("redundant", ("R1", "R2"))]),
        ("s == 'x'\ns != 'y'", [("redundant", ("R2", "R1"))]),
        ("a > 2\nif b > 1: a > 1", [("redundant", ("R2", "R1"))]),
        ("a + b == c\nif b > 1: c == a + b", [("redundant", ("R2", "R1"))]),
        ("a < 5\nif a > 7: b > 1", [("redundant", ("R2", "R1"))]),
        ("if a > 1: b > 3\nif a > 2: b > 2", [("redundant", ("R2", "R1"))]),
        ("a <= b\nb <= c\na <= c", [("redundant", ("R3", "R1", "R2"))]),
        ("a < b\nb <= c\na < c", [("redundant", ("R3", "R1", "R2"))]),
        ("a > 1 or b > 1\na > 2", [("redundant", ("R1", "R2"))]),
        ("a <= b\nb <= c\na < c", []),  # not: all three may be equal
        ("a > 3\nb > 2\nif a > 2: b > 1", [("redundant", ("R3", "R2"))]),
        # conditions with linear rules
        ("a <= b\nb <= 3\nif a > 3: s == 'x'", [("redundant", ("R3", "R1", "R2"))]),
        ("a <= b\nb in {1, 3}\nif s == 'x': a > 3", [("excluded", ("R3", "R1", "R2"))]),
        ("a + b == c\na >= 0\nb > 0\nif c > 5: c > a", [("redundant", ("R4", "R1", "R3"))]),
        ("a <= b\nif a > 3: b > 4", []),
        # a column that is two things
        ("s == 'x'\ns > 3", [("conflict", ("R1", "R2"))]),
        ("s in {'x'}\ns + a == 3", [("conflict", ("R1", "R2"))]),
        ("d > '2024-01-01'\nd < e", []),
        # what cannot be decided is not judged
        ("a * b == c\na * b + c == 2", []),
        ("a < mean(a)\na > mean(a)", []),
        ("a == 1 ± 5\na == 2", []),
        ("observed(a)\nmissing(b)", []),
    ],
)  # fmt: skip
def test_findings_by_hand(text, expected):
    assert findings(text) == expected


def test_findings_speak():
    found = Rules.parse("low: a > 5\nhigh: a < 3").check()
    assert str(found[0]) == "contradiction: No record can obey low and high together: a > 5; a < 3"


numbers = st.integers(0, 3)
columns = st.sampled_from("ab")
signs = st.sampled_from(["<", "<=", "==", "!=", ">=", ">"])
atoms = st.one_of(
    st.builds("{} {} {}".format, columns, signs, numbers),
    st.builds("{} in {}".format, columns, st.sets(numbers, min_size=1)),
    st.builds("{} not in {}".format, columns, st.sets(numbers, min_size=1)),
    st.builds("a {} b".format, signs),
    st.builds("a + b {} {}".format, signs, numbers),
    st.builds("s == '{}'".format, st.sampled_from("xy")),
    st.builds("s != '{}'".format, st.sampled_from("xy")),
)
bodies = (
    atoms
    | st.builds("{} and {}".format, atoms, atoms)
    | st.builds("({} or {})".format, atoms, atoms)
)
lines = bodies | st.builds("if {}: {}".format, bodies, bodies)

# Every record on a fine grid: halves, and beyond every number that the rules name.
GRID = pd.DataFrame(
    list(product(np.arange(-1, 4.5, 0.5), np.arange(-1, 4.5, 0.5), "xyz")), columns=["a", "b", "s"]
)


def no_record_refutes_a_finding(texts):
    rules = Rules.parse(texts)
    signs = rules.confront(GRID).signs > 0
    obeys = {rule.name: signs[:, place] for place, rule in enumerate(rules)}
    gone: set[str] = set()
    found = rules.check()
    for finding in found:
        names = finding.rules
        if finding.kind == "always true":
            assert obeys[names[0]].all()
        elif finding.kind == "duplicate":
            np.testing.assert_array_equal(obeys[names[0]], obeys[names[1]])
        elif finding.kind in ("contradiction", "always false"):
            assert not np.logical_and.reduce([obeys[name] for name in names]).any()
        elif finding.kind == "excluded":
            together = np.logical_and.reduce([obeys[name] for name in names])
            met = Rules.parse(f"if {rules[names[0]].text.partition(':')[0][3:]}: a > 99")
            assert not (together & (met.confront(GRID).signs[:, 0] < 0)).any()
        elif finding.kind == "redundant":
            gone.add(names[0])
            others = [obeys[name] for name in names[1:]]
            assert (obeys[names[0]] | ~np.logical_and.reduce(others)).all()
    kept = [obeys[name] for name in rules.names if name not in gone]
    if gone:  # all that are redundant may be left out together
        everything = np.logical_and.reduce(list(obeys.values()))
        np.testing.assert_array_equal(np.logical_and.reduce(kept), everything)


@few_or_many(70, 300)
def test_no_record_refutes_a_finding(count):
    """Invariant: what is called impossible does not occur, what is called redundant is implied."""
    try_examples(count, no_record_refutes_a_finding, st.lists(lines, min_size=1, max_size=5))


def contradictions_about_one_column_are_never_missed(texts):
    rules = Rules.parse(texts)
    possible = (rules.confront(GRID).signs > 0).all(axis=1).any()
    kinds = {finding.kind for finding in rules.check()}
    assert bool(kinds & {"contradiction", "always false"}) is not possible


@few_or_many(70, 200)
def test_contradictions_about_one_column_are_never_missed(count):
    """Independent: the grid has a point in every open and closed piece that the numbers cut."""
    try_examples(
        count,
        contradictions_about_one_column_are_never_missed,
        st.lists(atoms.filter(lambda text: " b" not in text), min_size=2, max_size=4),
    )


IMPOSSIBLE = {"contradiction", "always false"}


def test_a_condition_that_excludes_itself_may_contradict_others():
    """A bug once met: nobody with b <= -2 can obey R1, and by R2 there is nobody else."""
    rules = Rules.parse(["if b <= -2: b > -1", "a + b <= -8", "a == 2"])
    kinds = {finding.kind: finding.rules for finding in rules.check()}
    assert kinds == {"excluded": ("R1",), "contradiction": ("R1", "R2", "R3")}


@few_or_many(25, 1000)
def test_contradictions_are_those_of_an_independent_solver(count):
    """Independent: SciPy's linear programs on every choice of branches."""
    random = np.random.default_rng(count)
    missed = proved = 0
    for _ in range(count):
        made = branches.random_rules(random)
        rules = Rules.parse(map(branches.text, made))
        found = [each for each in rules.check() if each.kind in IMPOSSIBLE]
        for finding in found:
            own = [made[rules.names.index(name)] for name in finding.rules]
            assert not branches.feasible(own), (finding, [branches.text(rule) for rule in own])
        proved += bool(found)
        missed += not found and not branches.feasible(made)
    assert proved > count / 10
    assert missed == 0


@few_or_many(25, 1000)
def test_rules_that_a_record_obeys_do_not_contradict(count):
    """Invariant: a record is made first, of whole numbers up to 16 digits, then rules about it."""
    random = np.random.default_rng(count)
    for _ in range(count):
        record = {name: int(random.integers(-(10**d), 10**d)) for name, d in
                  zip("abcd", random.integers(1, 17, 4))}  # fmt: skip
        texts = [branches.text(branches.obeyed(random, record)) for _ in range(6)]
        found = Rules.parse(texts).check()
        assert not IMPOSSIBLE & {finding.kind for finding in found}, (record, texts, found)
