"""Text with delimiters, byte by byte: are all records alike, and if not, in which line?

A *line* ends with LF, CR LF or CR; a *record* is one or more lines, because a quoted field may hold
line ends. A quote opens a field only as its first byte; within quotes, two stand for one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Bytes, Integers
from ._jit import kernel

LF, CR = 10, 13


class Layout(NamedTuple):
    """What a text is made of; lines count from 1, and 0 stands for "nowhere"."""

    fields: int  # of the first record
    records: int  # the first included; blank lines count if there is one field
    agreeing: int  # records with as many fields as the first
    header_end: int  # where the first record ends, its line end not included
    ragged: int  # line of the first record with another number of fields, and their number
    ragged_fields: int
    blank: int  # blank lines, and the first of them
    first_blank: int
    nul: int  # line of the first byte 0
    stray: int  # line of the first closing quote that no delimiter or line end follows
    unclosed: int  # line where a quote opens that is never closed
    inner: int  # line ends within quotes
    lf: int  # line ends outside of quotes, by kind
    crlf: int
    cr: int
    longest: int  # bytes of the longest record
    wanted: int  # line in which the record begins that was asked for
    quoted: Integers  # (fields,) fields in quotes, in records after the first
    bare: Integers  # (fields,) fields that are neither quoted nor empty


@kernel
def lay_out(text: Bytes, delimiter: int, quote: int, expected: int, wanted: int) -> Layout:
    """Read a text once; `expected` is the number of fields, or 0 for that of the first record.

    `wanted` is the number of a record, the first being 0, whose line is asked for; the text is read
    so far only. -1 for none.
    """
    # A machine with three loops: over records, over the fields of a record, over the bytes of a
    # field, first those in quotes, then bare ones. `i` only moves forward: O(n), one look ahead.
    # What follows a closing quote up to the delimiter is read as bare bytes and reported (`stray`).
    n = text.shape[0]
    fields, records, agreeing, header_end = expected, 0, 0, n
    ragged, ragged_fields, blank, first_blank = 0, 0, 0, 0
    nul, stray, unclosed, inner, found = 0, 0, 0, 0, 0
    lf, crlf, cr, longest = 0, 0, 0, 0
    quoted, bare = np.zeros(max(expected, 1), np.int64), np.zeros(max(expected, 1), np.int64)
    line, i = 1, 0
    while i < n:
        began, start, count, known = line, i, 0, quoted.shape[0]
        ended = False
        while not ended:  # one field
            if i < n and text[i] == quote:
                opened = line
                i += 1
                closed = False
                while i < n:
                    byte = text[i]
                    if byte == quote:
                        if i + 1 < n and text[i + 1] == quote:  # two stand for one
                            i += 1
                        else:
                            closed = True
                            i += 1
                            break
                    elif byte == LF or (byte == CR and not (i + 1 < n and text[i + 1] == LF)):
                        line += 1
                        inner += 1
                    elif byte == 0 and nul == 0:
                        nul = line
                    i += 1
                if not closed and unclosed == 0:
                    unclosed = opened
                if records > 0 and count < known:
                    quoted[count] += 1
                if i < n and text[i] != delimiter and text[i] != LF and text[i] != CR:
                    stray = line if stray == 0 else stray
            elif (
                records > 0
                and count < known
                and i < n
                and text[i] != delimiter
                and text[i] != LF
                and text[i] != CR
            ):
                bare[count] += 1
            while i < n and text[i] != delimiter and text[i] != LF and text[i] != CR:
                if text[i] == 0 and nul == 0:
                    nul = line
                i += 1
            count += 1
            if i < n and text[i] == delimiter:
                i += 1
            else:
                ended = True
        stop = i
        longest = max(longest, stop - start)
        if i < n:
            if text[i] == LF:
                lf += 1
            elif i + 1 < n and text[i + 1] == LF:
                crlf += 1
                i += 1
            else:
                cr += 1
            i += 1
            line += 1
        # A blank line is no record, unless there is one field, which it then holds empty.
        if stop == start:
            blank += 1
            first_blank = began if first_blank == 0 else first_blank
            if fields != 1:
                continue
        if records == 0:
            header_end = stop
            if fields == 0:
                fields = count
                quoted, bare = np.zeros(fields, np.int64), np.zeros(fields, np.int64)
        if records == wanted:
            found = began
            break
        records += 1
        if count == fields:
            agreeing += 1
        elif ragged == 0:
            ragged, ragged_fields = began, count
    return Layout(
        fields,
        records,
        agreeing,
        header_end,
        ragged,
        ragged_fields,
        blank,
        first_blank,
        nul,
        stray,
        unclosed,
        inner,
        lf,
        crlf,
        cr,
        longest,
        found,
        quoted,
        bare,
    )
