"""How texts look, against regular expressions and by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.kernels import numerals as looks


def look(text):
    data = np.frombuffer(text.encode() or b" ", np.uint8)
    words, ends = np.frombuffer(b"trueinfNA", np.uint8), np.array([4, 7, 9])
    counts, firsts = looks.count_looks(
        data, np.array([0, len(text.encode())]), np.array([True]), words, ends, 1, 1
    )
    (found,) = np.flatnonzero(counts[: looks.SPACED])
    assert firsts[found] == 0
    return int(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", looks.EMPTY),
        ("  ", looks.EMPTY),
        ("12", looks.WHOLE),
        (" -12 ", looks.WHOLE),
        ("0", looks.WHOLE),
        ("007", looks.PADDED),
        ("1234567890123456789", looks.LONG),
        ("1.5", looks.POINT),
        ("0.123", looks.POINT),
        ("1234.567", looks.POINT),
        ("1,5", looks.COMMA),
        ("1.234", looks.POINT_OR_GROUP),
        ("1,234", looks.COMMA_OR_GROUP),
        ("1.234.567", looks.GROUPS),
        ("1,234,567", looks.GROUPS + 1),
        ("1 234", looks.GROUPS + 2),
        ("1'234'567", looks.GROUPS + 3),
        ("1\u00a0234", looks.GROUPS + 4),
        ("1\u202f234", looks.GROUPS + 5),
        ("1,234.5", looks.GROUPS_POINT + 1),
        ("1.234,5", looks.GROUPS_COMMA),
        ("1 234,5", looks.GROUPS_COMMA + 2),
        ("1e5", looks.POWER),
        ("1.5e-3", looks.POWER_POINT),
        ("1,5E3", looks.POWER_COMMA),
        ("true", looks.TRUTH),
        ("inf", looks.INFINITE),
        ("NA", looks.TOKEN),
        ("2020-01-01", looks.DATE),
        ("2020-01-01T10:00", looks.MOMENT),
        ("2020-01-01 10:00:05.123", looks.MOMENT),
        ("2020-01-01T10:00:05Z", looks.ZONED),
        ("2020-01-01T10:00:05+02:00", looks.ZONED),
        *((text, looks.OTHER) for text in ("x", "-", ".", "1.2.3", "12.34.567", "1e", "e5", "+5")),
        *((text, looks.OTHER) for text in ("0x1F", "1_0", "1,23,456", "2020-1-1", "2020-01-01T1")),
        *((text, looks.OTHER) for text in ("1234 567", "0 123", "1.234.5", "5-", "--5", "1 2,3")),
    ],
)
def test_by_hand(text, expected):
    assert look(text) == expected


FORMS = {
    looks.WHOLE: r"-?(0|[1-9]\d{0,17})",
    looks.PADDED: r"-?0\d+([.,]\d*)?([eE][+-]?\d+)?",
    looks.LONG: r"-?[1-9]\d{18,}",
    looks.POINT_OR_GROUP: r"-?[1-9]\d{0,2}\.\d{3}",
    looks.COMMA_OR_GROUP: r"-?[1-9]\d{0,2},\d{3}",
    looks.POINT: r"-?(\d+\.\d*|\.\d+)",
    looks.COMMA: r"-?(\d+,\d*|,\d+)",
    looks.GROUPS: r"-?[1-9]\d{0,2}(\.\d{3}){2,}",
    looks.GROUPS + 1: r"-?[1-9]\d{0,2}(,\d{3}){2,}",
    looks.GROUPS + 2: r"-?[1-9]\d{0,2}( \d{3})+",
    looks.GROUPS_POINT + 1: r"-?[1-9]\d{0,2}(,\d{3})+\.\d*",
    looks.GROUPS_POINT + 2: r"-?[1-9]\d{0,2}( \d{3})+\.\d*",
    looks.GROUPS_COMMA: r"-?[1-9]\d{0,2}(\.\d{3})+,\d*",
    looks.GROUPS_COMMA + 2: r"-?[1-9]\d{0,2}( \d{3})+,\d*",
    looks.POWER: r"-?\d+[eE][+-]?\d+",
    looks.POWER_POINT: r"-?(\d+\.\d*|\.\d+)[eE][+-]?\d+",
    looks.POWER_COMMA: r"-?(\d+,\d*|,\d+)[eE][+-]?\d+",
}


@given(st.text(st.sampled_from("-0123456789., eE+"), min_size=1, max_size=12))
def test_against_regular_expressions(text):
    """Independent way: the first form that fits the whole text."""
    stripped = text.strip(" ")
    forms = (found for found, form in FORMS.items() if re.fullmatch(form, stripped))
    expected = next(forms, looks.OTHER) if stripped else looks.EMPTY
    assert look(text) == expected


@given(st.lists(st.sampled_from(["1", "1.5", "x", "", "NA"]), max_size=20))
def test_counts_and_first_rows(texts):
    data = np.frombuffer("".join(texts).encode() or b" ", np.uint8)
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    words, ends = np.frombuffer(b"NA", np.uint8), np.array([2])
    valid = np.ones(len(texts), bool)
    counts, firsts = looks.count_looks(data, offsets, valid, words, ends, 0, 0)
    kinds = {"1": looks.WHOLE, "1.5": looks.POINT, "x": looks.OTHER, "": looks.EMPTY}
    for text, kind in {**kinds, "NA": looks.TOKEN}.items():
        assert counts[kind] == texts.count(text)
        assert firsts[kind] == (texts.index(text) if text in texts else -1)
