"""How texts look, against regular expressions and by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tessella.kernels import text as forms


def look(text):
    data = np.frombuffer(text.encode() or b" ", np.uint8)
    words, ends = np.frombuffer(b"trueinfNA", np.uint8), np.array([4, 7, 9])
    counts, firsts = forms.count_forms(
        data, np.array([0, len(text.encode())]), np.array([True]), words, ends, 1, 1
    )
    (found,) = np.flatnonzero(counts[: forms.SPACED])
    assert firsts[found] == 0
    return int(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", forms.EMPTY),
        ("  ", forms.EMPTY),
        ("12", forms.WHOLE),
        (" -12 ", forms.WHOLE),
        ("0", forms.WHOLE),
        ("007", forms.PADDED),
        ("1234567890123456789", forms.LONG),
        ("1.5", forms.POINT),
        ("0.123", forms.POINT),
        ("1234.567", forms.POINT),
        ("1,5", forms.COMMA),
        ("1.234", forms.POINT_OR_GROUP),
        ("1,234", forms.COMMA_OR_GROUP),
        ("1.234.567", forms.GROUPS),
        ("1,234,567", forms.GROUPS + 1),
        ("1 234", forms.GROUPS + 2),
        ("1'234'567", forms.GROUPS + 3),
        ("1\u00a0234", forms.GROUPS + 4),
        ("1\u202f234", forms.GROUPS + 5),
        ("1,234.5", forms.GROUPS_POINT + 1),
        ("1.234,5", forms.GROUPS_COMMA),
        ("1 234,5", forms.GROUPS_COMMA + 2),
        ("1e5", forms.POWER),
        ("1.5e-3", forms.POWER_POINT),
        ("1,5E3", forms.POWER_COMMA),
        ("true", forms.TRUTH),
        ("inf", forms.INFINITE),
        ("NA", forms.TOKEN),
        ("2020-01-01", forms.DATE),
        ("2020-01-01T10:00", forms.MOMENT),
        ("2020-01-01 10:00:05.123", forms.MOMENT),
        ("2020-01-01T10:00:05Z", forms.ZONED),
        ("2020-01-01T10:00:05+02:00", forms.ZONED),
        *((text, forms.OTHER) for text in ("x", "-", ".", "1.2.3", "12.34.567", "1e", "e5", "+5")),
        *((text, forms.OTHER) for text in ("0x1F", "1_0", "1,23,456", "2020-1-1", "2020-01-01T1")),
        *((text, forms.OTHER) for text in ("1234 567", "0 123", "1.234.5", "5-", "--5", "1 2,3")),
    ],
)
def test_by_hand(text, expected):
    assert look(text) == expected


FORMS = {
    forms.WHOLE: r"-?(0|[1-9]\d{0,17})",
    forms.PADDED: r"-?0\d+([.,]\d*)?([eE][+-]?\d+)?",
    forms.LONG: r"-?[1-9]\d{18,}",
    forms.POINT_OR_GROUP: r"-?[1-9]\d{0,2}\.\d{3}",
    forms.COMMA_OR_GROUP: r"-?[1-9]\d{0,2},\d{3}",
    forms.POINT: r"-?(\d+\.\d*|\.\d+)",
    forms.COMMA: r"-?(\d+,\d*|,\d+)",
    forms.GROUPS: r"-?[1-9]\d{0,2}(\.\d{3}){2,}",
    forms.GROUPS + 1: r"-?[1-9]\d{0,2}(,\d{3}){2,}",
    forms.GROUPS + 2: r"-?[1-9]\d{0,2}( \d{3})+",
    forms.GROUPS_POINT + 1: r"-?[1-9]\d{0,2}(,\d{3})+\.\d*",
    forms.GROUPS_POINT + 2: r"-?[1-9]\d{0,2}( \d{3})+\.\d*",
    forms.GROUPS_COMMA: r"-?[1-9]\d{0,2}(\.\d{3})+,\d*",
    forms.GROUPS_COMMA + 2: r"-?[1-9]\d{0,2}( \d{3})+,\d*",
    forms.POWER: r"-?\d+[eE][+-]?\d+",
    forms.POWER_POINT: r"-?(\d+\.\d*|\.\d+)[eE][+-]?\d+",
    forms.POWER_COMMA: r"-?(\d+,\d*|,\d+)[eE][+-]?\d+",
    forms.DATE: r"\d{4}-\d\d-\d\d",  # the digits alone; whether there is such a day is asked later
}


@given(st.text(st.sampled_from("-0123456789., eE+"), min_size=1, max_size=12))
@example("123e-00005")  # a bug once met: the minus stands where a date has one
def test_against_regular_expressions(text):
    """Independent way: the first form that fits the whole text."""
    stripped = text.strip(" ")
    fitting = (found for found, form in FORMS.items() if re.fullmatch(form, stripped))
    expected = next(fitting, forms.OTHER) if stripped else forms.EMPTY
    assert look(text) == expected


@given(st.lists(st.sampled_from(["1", "1.5", "x", "", "NA"]), max_size=20))
def test_counts_and_first_rows(texts):
    data = np.frombuffer("".join(texts).encode() or b" ", np.uint8)
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    words, ends = np.frombuffer(b"NA", np.uint8), np.array([2])
    valid = np.ones(len(texts), bool)
    counts, firsts = forms.count_forms(data, offsets, valid, words, ends, 0, 0)
    kinds = {"1": forms.WHOLE, "1.5": forms.POINT, "x": forms.OTHER, "": forms.EMPTY}
    for text, kind in {**kinds, "NA": forms.TOKEN}.items():
        assert counts[kind] == texts.count(text)
        assert firsts[kind] == (texts.index(text) if text in texts else -1)
