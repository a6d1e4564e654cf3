"""The layout of delimited text, against Python's csv module and by hand."""

from __future__ import annotations

import csv
import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tessella.kernels.text import lay_out


def layout(text, *, delimiter=",", expected=0, wanted=-1):
    return lay_out(np.frombuffer(text.encode(), np.uint8), ord(delimiter), 34, expected, wanted)


FIELDS = st.text(st.sampled_from('ab ,;"\n\r\u00e9'), max_size=4)


@given(
    rows=st.lists(st.lists(FIELDS, min_size=3, max_size=3), min_size=1, max_size=6),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    last=st.booleans(),
)
def test_what_the_csv_module_wrote(rows, end, last):
    """Independent way: whatever stands in the fields, the records are counted right."""
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator=end).writerows(rows)
    text = out.getvalue() if last else out.getvalue().removesuffix(end)
    seen = layout(text)
    assert (seen.fields, seen.records, seen.agreeing) == (3, len(rows), len(rows))
    assert [seen.ragged, seen.unclosed, seen.stray, seen.nul, seen.blank] == [0] * 5
    assert seen.quoted.tolist() == [len(rows) - 1] * 3
    head = text.encode()[: seen.header_end].decode()
    assert next(csv.reader(io.StringIO(head, newline=""))) == rows[0]


@given(rows=st.lists(st.lists(FIELDS, min_size=1, max_size=4), min_size=1, max_size=6))
def test_the_first_record_that_differs(rows):
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    seen = layout(out.getvalue())
    odd = [place for place, row in enumerate(rows) if len(row) != len(rows[0])]
    assert (seen.ragged > 0) == bool(odd)
    if odd:
        before = io.StringIO(newline="")
        csv.writer(before, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows[: odd[0]])
        read = before.getvalue().replace("\r\n", "\n").replace("\r", "\n")
        assert seen.ragged == read.count("\n") + 1
        assert seen.ragged_fields == len(rows[odd[0]])
        assert layout(out.getvalue(), wanted=odd[0]).wanted == seen.ragged


def test_by_hand():
    text = 'a,b\n1,2\n"x\ny",3\n\n4\n'
    seen = layout(text)
    assert [layout(text, wanted=record).wanted for record in range(4)] == [1, 2, 3, 6]
    assert (seen.fields, seen.records, seen.agreeing, seen.header_end) == (2, 4, 3, 3)
    assert (seen.ragged, seen.ragged_fields) == (6, 1)
    assert (seen.blank, seen.first_blank, seen.inner, seen.wanted) == (1, 5, 1, 0)
    assert seen.quoted.tolist() == [1, 0]
    assert seen.bare.tolist() == [2, 2]
    assert layout('a,b\r\n1,"2').unclosed == 2
    assert layout('a\r"1"x').stray == 2
    assert layout("a\nb\0").nul == 2
    assert layout("a\n\n1\n").records == 3
    assert layout("a,b\n\n1,2\n").records == 2
    mixed = layout("a\nb\r\nc\rd")
    assert (mixed.lf, mixed.crlf, mixed.cr, mixed.longest) == (1, 1, 1, 1)
    assert layout("").records == 0
