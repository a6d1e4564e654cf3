"""Hierarchies: where they come from, what they refuse, and what they answer, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.exceptions import BadFileError, BadOptionError, DataNotFoundError
from tessella.keys import Hierarchy
from tests.amounts import few_or_many, try_examples
from tests.keys.trees import random_hierarchy

TOWNS = [("Reus", "coast", "all"), ("Lleida", "inland", "all"), ("Salou", "coast", "all")]


def test_by_hand():
    h = Hierarchy(TOWNS)
    assert h.leaves == ("Reus", "Salou", "Lleida")  # those of one node side by side
    assert h.levels == (("Reus", "Salou", "Lleida"), ("coast", "inland"), ("all",))
    assert [h.nodes[node] for node in h.generalise([0, 2], 1)] == ["coast", "inland"]
    assert h.nodes[h.common_ancestor([0, 1])] == "coast"
    assert h.nodes[h.common_ancestor([1, 2])] == "all"
    assert h.nodes[h.common_ancestor([2])] == "Lleida"
    assert h.distance([0, 0, 0], [0, 1, 2]).tolist() == [0.0, 0.5, 1.0]
    assert h.covers(np.array([h.nodes.index("coast")] * 2), np.array([0, 2])).tolist() == [
        True,
        False,
    ]
    assert h.nodes[h.parent[h.nodes.index("Reus")]] == "coast"
    assert h.root == "all"
    assert repr(h) == "Hierarchy of 3 leaves in 3 levels: 3, 2, 1 nodes"
    with pytest.raises(ValueError, match="read-only"):
        h.table[0, 0] = 1
    with pytest.raises(BadOptionError, match="from 0 to 2"):
        h.generalise([0], 3)


def test_a_root_is_added_where_there_is_none():
    assert Hierarchy([("a", "x"), ("b", "y")]).root == "*"
    assert Hierarchy([("a",), ("b",)]).levels == (("a", "b"), ("*",))
    assert Hierarchy([("a", "a")]).n_levels == 3  # a root is never a leaf


@given(seed=st.integers(0, 10**6))
def test_the_ancestor_is_the_least_that_covers(seed):
    """An invariant, and an independent way: of all nodes that cover, the one with fewest leaves."""
    random = np.random.default_rng(seed)
    h = random_hierarchy(random, int(random.integers(1, 15)), int(random.integers(1, 6)))
    codes = random.integers(0, len(h.leaves), int(random.integers(1, 5)))
    node = h.common_ancestor(codes)
    assert h.covers(np.full(len(codes), node), codes).all()
    covering = [at for at in range(len(h.nodes)) if h.covers(np.full(len(codes), at), codes).all()]
    assert h.sizes[node] == min(h.sizes[at] for at in covering)
    for at in range(len(h.nodes)):
        assert h.sizes[at] == sum(h.covers(np.full(len(h.leaves), at), np.arange(len(h.leaves))))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([("a", "x"), ("a", "y")], "two parents"),
        ([("a", "x", "p"), ("b", "x", "q")], "several on level 2"),
        ([("a", "x"), ("b",)], "2 levels, as on the first line"),
        ([("a", "x"), ("b", "")], "a text on every level"),
        ([("a", "b"), ("c", "b"), ("b", "y")], "stand for the same leaves"),
        ([], "one line for each leaf"),
    ],
)
def test_wrong_lines_are_named(rows, why):
    with pytest.raises(BadOptionError, match=why):
        Hierarchy(rows)


@pytest.mark.parametrize("sign", [";", ","])
def test_files(tmp_path, sign):
    path = tmp_path / "job.csv"
    path.write_text("\n".join(sign.join(row) for row in TOWNS) + "\n\n", encoding="utf-8-sig")
    assert Hierarchy.read(path).levels == Hierarchy(TOWNS).levels
    assert Hierarchy.of({"file": "job.csv"}, folder=tmp_path).leaves == Hierarchy(TOWNS).leaves
    path.write_text(f"a{sign}b{sign}c\nd{sign}b\n")
    with pytest.raises(BadFileError, match="line 2: this line has 2 levels, the first one 3"):
        Hierarchy.read(path)
    path.write_text("a\nb\n")
    with pytest.raises(BadFileError, match="one level only"):
        Hierarchy.read(path)
    with pytest.raises(DataNotFoundError, match="There is no file"):
        Hierarchy.read(tmp_path / "other.csv")


def test_quoted_fields_of_a_file(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text('"a;1";"x";*\n"b";"x";*\n')
    assert Hierarchy.read(path).leaves == ("a;1", "b")


def test_prefixes():
    h = Hierarchy.from_prefixes(["43201", "43202", "43330", "08001"], [3, 2, 0])
    assert h.levels[1] == ("432**", "433**", "080**")
    assert h.levels[2] == ("43***", "08***")
    assert h.levels[3] == ("*",)
    short = Hierarchy.from_prefixes(["43", "432", "431"], [2])  # a code that is its own prefix
    assert short.levels == (("43", "432", "431"), ("43", "43*"), ("*",))
    for wrong in ([2, 3], [], "3", [2.5], [-1]):
        with pytest.raises(BadOptionError, match="prefix"):
            Hierarchy.from_prefixes(["43201"], wrong)
    with pytest.raises(BadOptionError, match="zfill") as caught:
        Hierarchy.of({"prefix": [3]}, values=["8001", "43201"], numeric=True, name="zip")
    assert "8001" not in str(caught.value)  # no value of a record


def test_intervals():
    h = Hierarchy.from_intervals([17, 23, 31, 48], width=[10, 20])
    assert h.levels[1] == ("below 20", "20 to below 30", "30 to below 40", "40 or more")
    assert h.levels[2] == ("below 20", "20 to below 40", "40 or more")
    node = h.nodes.index("20 to below 40")
    assert h.penalty[node] == pytest.approx(8 / 31)  # (31 - 23) / (48 - 17)
    assert h.penalty[h.table[-1, 0]] == 1.0
    assert Hierarchy.from_intervals(range(80), width=5, levels=2).form == {"width": [5, 10]}
    given = Hierarchy.from_intervals([1, 5, 9], breaks=[[3, 6], [6]])
    assert given.levels[2] == ("below 6", "6 or more")
    for wrong in ({"width": [5, 7]}, {"width": 0}, {"breaks": [[3, 6], [5]]}, {"breaks": [[6, 3]]},
                  {}, {"width": [5], "breaks": [[1]]}, {"width": [5], "levels": 2}):  # fmt: skip
        with pytest.raises(BadOptionError):
            Hierarchy.from_intervals([1, 50], **wrong)
    with pytest.raises(BadOptionError, match="column of numbers"):
        Hierarchy.from_intervals(["a"], width=[5])


def intervals_are_nested_and_hold_their_values(values, width):
    h = Hierarchy.from_intervals(values, width=[width * 1000, width * 3000])
    numbers = np.array([float(text) for text in h.leaves])
    assert (np.diff(numbers) >= 0).all()
    assert (np.diff(h.penalty[h.table], axis=0) >= -1e-12).all()


@few_or_many(35, 100)
def test_intervals_are_nested_and_hold_their_values(count):
    try_examples(
        count,
        intervals_are_nested_and_hold_their_values,
        st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
        st.floats(0.01, 50),
    )


def test_trees_and_orders():
    tree = {"north": {"sea": ["Oslo"], "land": ["Lund", "Ume"]}, "south": ["Rome"]}
    h = Hierarchy.from_tree(tree)
    assert h.levels == (
        ("Oslo", "Lund", "Ume", "Rome"), ("sea", "land", "Rome"), ("north", "south"), ("*",)
    )  # fmt: skip
    assert Hierarchy.from_tree([1, 2.0]).leaves == ("1", "2")
    with pytest.raises(BadOptionError, match="tree"):
        Hierarchy.from_tree({"a": "b"})
    order = Hierarchy.from_order(list("abcde"), fanout=2)
    assert order.levels == (
        tuple("abcde"), ("a to b", "c to d", "e"), ("a to d", "e"), ("*",)
    )  # fmt: skip
    assert Hierarchy.of({"fanout": 3}, ordered=list("abc"), values=list("ab")).n_levels == 2
    with pytest.raises(BadOptionError, match="no order is known"):
        Hierarchy.of({"fanout": 3}, values=list("ab"))


@pytest.mark.parametrize(
    "form", [3, {}, {"prefix": [2], "width": [5]}, {"prefix": [2], "levels": 3}, {"files": "a.csv"}]
)
def test_other_forms_are_refused_with_all_forms(form):
    with pytest.raises(BadOptionError, match=r'"prefix": \[3, 2, 0\]'):
        Hierarchy.of(form, values=["12"], name="zip")


def test_values_that_are_no_leaves_are_counted_not_shown():
    with pytest.raises(BadOptionError, match="1 value is no leaf") as caught:
        Hierarchy.of(Hierarchy(TOWNS), values=["Reus", "Secretville"], name="town")
    assert "Secretville" not in str(caught.value)
    assert "sorted(set(table['town'].dropna().astype(str))" in str(caught.value)


def test_intervals_of_large_numbers_are_named_by_all_their_digits():
    """1234561 is not below 1.23456e+06."""
    made = Hierarchy.from_intervals([1234561, 1234566, 1234571, 1234599], width=[5, 10])
    assert made.levels[1] == (
        "below 1234565", "1234565 to below 1234570", "1234570 to below 1234575", "1234595 or more",
    )  # fmt: skip
    assert Hierarchy.from_intervals([0.05, 0.25, 0.35], width=[0.1, 0.2]).levels[1][1] == (
        "0.2 to below 0.3"
    )
