"""Text byte by byte: how records are laid out, and how each text of a column could be read.

A *line* ends with LF, CR LF or CR; a *record* is one or more lines, because a quoted field may hold
line ends. A quote opens a field only as its first byte; within quotes, two stand for one.

A *form* is how a text is written: a number, and how, a date, a code, or none. "1,234" may be a
thousand or little more than one; these kernels classify the text, and whoever has the whole file
decides what it means.
"""

from typing import NamedTuple

import numpy as np

from .._types import Bytes, Integers, Truths
from . import kernel

LF, CR = 10, 13
# Forms. A group is three digits after a separator of thousands, see SEPARATORS.
OTHER, EMPTY, TOKEN, WHOLE, PADDED, LONG, TRUTH, DATE, MOMENT, ZONED, INFINITE = range(11)
POINT, COMMA, POINT_OR_GROUP, COMMA_OR_GROUP = 11, 12, 13, 14
GROUPS, GROUPS_POINT, GROUPS_COMMA = 15, 21, 27  # each plus the number of the separator
POWER, POWER_POINT, POWER_COMMA = 33, 34, 35  # 1e5, 1.5e5, 1,5e5
SPACED = 36  # counts numbers with spaces around them, which also count by their form
N_FORMS = 37
SEPARATORS = (".", ",", " ", "'", "\u00a0", "\u202f")
LONGEST = 18  # every whole number of so many digits is an int64


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

    A text with `expected` fields goes on where another ended: its first record is one of many.
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
        if records == 0 and expected == 0:  # the names: their quotes say nothing of columns
            known = 0
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
                if count < known:
                    quoted[count] += 1
                if i < n and text[i] != delimiter and text[i] != LF and text[i] != CR:
                    stray = line if stray == 0 else stray
            elif (
                count < known and i < n and text[i] != delimiter and text[i] != LF and text[i] != CR
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
        fields, records, agreeing, header_end, ragged, ragged_fields, blank, first_blank, nul,
        stray, unclosed, inner, lf, crlf, cr, longest, found, quoted, bare,
    )  # fmt: skip


@kernel
def end_of_records(text: Bytes, delimiter: int, quote: int) -> int:
    """Return where the last record ends that is whole, its line end included; 0 if none is.

    The text begins with a record and may break off anywhere. A quote or a CR as its last byte may
    go on as two quotes or CR LF: the record of either is not whole.
    """
    n, i, end = text.shape[0], 0, 0
    while i < n:
        ended = False
        while not ended:  # one field, as in `lay_out`
            if text[i] == quote:
                i += 1
                while i < n:
                    if text[i] != quote:
                        i += 1
                    elif i + 1 < n and text[i + 1] == quote:
                        i += 2
                    else:
                        i += 1
                        break
            while i < n and text[i] != delimiter and text[i] != LF and text[i] != CR:
                i += 1
            if i < n and text[i] == delimiter:
                i += 1
                ended = i == n
            else:
                ended = True
        if i == n or (text[i] == CR and i + 1 == n):
            break
        i += 2 if text[i] == CR and text[i + 1] == LF else 1
        end = i
    return end


@kernel
def is_digit(byte: int) -> bool:
    """Say whether a byte is one of 0 to 9."""
    return 48 <= byte <= 57


@kernel
def classify_number(data: Bytes, low: int, high: int) -> int:
    """Say how the number in data[low:high] is written, or OTHER."""
    i = low
    if data[i] == 45:  # a minus
        i += 1
    run, runs, first_run, padded = 0, 0, 0, False
    group, decimal, grouped = -1, -1, False  # separators, by number
    if i < high and data[i] == 48 and i + 1 < high and is_digit(data[i + 1]):
        padded = True
    zero = i < high and data[i] == 48
    power = False
    while i < high:
        byte = data[i]
        if is_digit(byte):
            run += 1
            i += 1
            continue
        if (byte == 101 or byte == 69) and not grouped and (run > 0 or first_run > 0):
            i += 1
            if i < high and (data[i] == 43 or data[i] == 45):
                i += 1
            if i == high:
                return OTHER
            while i < high:
                if not is_digit(data[i]):
                    return OTHER
                i += 1
            power = True
            break
        width, separator = 1, -1
        if byte == 46:
            separator = 0
        elif byte == 44:
            separator = 1
        elif byte == 32:
            separator = 2
        elif byte == 39:
            separator = 3
        elif byte == 0xC2 and i + 1 < high and data[i + 1] == 0xA0:
            separator, width = 4, 2
        elif byte == 0xE2 and i + 2 < high and data[i + 1] == 0x80 and data[i + 2] == 0xAF:
            separator, width = 5, 3
        if separator < 0 or (decimal >= 0 and runs > 1):
            return OTHER
        if runs == 0:
            first_run = run
            if separator <= 1:
                decimal = separator  # unless another follows
            elif 1 <= run <= 3 and not zero:
                group, grouped = separator, True
            else:
                return OTHER
        elif runs == 1 and decimal >= 0 and separator == decimal:
            if run != 3 or not 1 <= first_run <= 3 or zero:
                return OTHER
            group, decimal, grouped = separator, -1, True
        elif runs == 1 and decimal >= 0:  # 1,234.5
            if run != 3 or not 1 <= first_run <= 3 or zero or separator > 1:
                return OTHER
            group, decimal, grouped = decimal, separator, True
        elif grouped and run == 3 and separator == group:
            pass
        elif grouped and run == 3 and separator <= 1:
            decimal = separator
        else:
            return OTHER
        if grouped and decimal >= 0 and runs > 0:
            runs += 1  # what follows are decimals, and nothing more
        runs += 1
        run = 0
        i += width
    if runs == 0:
        if run == 0:
            return OTHER
        if power:
            return PADDED if padded else POWER
        if padded:
            return PADDED
        return LONG if run > LONGEST else WHOLE
    if not grouped:
        if first_run == 0 and run == 0:
            return OTHER
        if padded:
            return PADDED
        if power:
            return POWER_POINT + decimal
        if run == 3 and 1 <= first_run <= 3 and not zero:
            return POINT_OR_GROUP + decimal
        return POINT + decimal
    if decimal < 0:
        return GROUPS + group if run == 3 else OTHER
    return (GROUPS_POINT if decimal == 0 else GROUPS_COMMA) + group


@kernel
def classify_time(data: Bytes, low: int, high: int) -> int:
    """Say whether data[low:high] is a date or a moment of ISO 8601, or OTHER."""
    for place in range(10):
        byte = data[low + place]
        if place == 4 or place == 7:
            if byte != 45:
                return OTHER
        elif not is_digit(byte):
            return OTHER
    if high - low == 10:
        return DATE
    if high - low < 16 or (data[low + 10] != 84 and data[low + 10] != 32):
        return OTHER
    i, pairs = low + 11, 0
    while True:
        if i + 2 > high or not is_digit(data[i]) or not is_digit(data[i + 1]):
            return OTHER
        pairs += 1
        i += 2
        if i < high and data[i] == 58 and pairs < 3:
            i += 1
        else:
            break
    if pairs < 2:
        return OTHER
    if i < high and data[i] == 46 and pairs == 3:
        i += 1
        if i == high or not is_digit(data[i]):
            return OTHER
        while i < high and is_digit(data[i]):
            i += 1
    if i == high:
        return MOMENT
    if data[i] == 90:
        return ZONED if i + 1 == high else OTHER
    if data[i] != 43 and data[i] != 45:
        return OTHER
    left = high - i - 1
    if left != 4 and left != 5 and left != 2:
        return OTHER
    for place in range(left):
        byte = data[i + 1 + place]
        if not (is_digit(byte) or (left == 5 and place == 2 and byte == 58)):
            return OTHER
    return ZONED


@kernel
def find_word(data: Bytes, low: int, high: int, words: Bytes, ends: Integers) -> int:
    """Return the number of the word that stands in data[low:high], or -1."""
    begin = 0
    for word in range(ends.shape[0]):
        if ends[word] - begin == high - low:
            same = 0
            while same < high - low and words[begin + same] == data[low + same]:
                same += 1
            if same == high - low:
                return word
        begin = ends[word]
    return -1


@kernel
def count_forms(
    data: Bytes, offsets: Integers, valid: Truths, words: Bytes, ends: Integers, n_truths: int,
    n_infinities: int,
) -> tuple[Integers, Integers]:  # fmt: skip
    """Count the forms of the texts of a column, and find the first of each.

    Words are, in this order, truths, infinities, and tokens that may stand for "missing".
    """
    counts, firsts = np.zeros(N_FORMS, np.int64), np.full(N_FORMS, -1)
    longest, begin = 0, 0
    for word in range(ends.shape[0]):
        longest = max(longest, ends[word] - begin)
        begin = ends[word]
    for row in range(offsets.shape[0] - 1):
        if not valid[row]:
            continue
        low, high = offsets[row], offsets[row + 1]
        spaced = False
        while low < high and data[low] == 32:
            low += 1
            spaced = True
        while low < high and data[high - 1] == 32:
            high -= 1
            spaced = True
        if low == high:
            form = EMPTY
        else:
            byte, form = data[low], OTHER
            if is_digit(byte) or byte == 45 or byte == 46 or byte == 44:
                if high - low >= 10 and data[low + 4] == 45:
                    form = classify_time(data, low, high)
                if form == OTHER:  # 123e-00005 has its minus there, too
                    form = classify_number(data, low, high)
            if form == OTHER and high - low <= longest:
                word = find_word(data, low, high, words, ends)
                if word >= n_truths + n_infinities:
                    form = TOKEN
                elif word >= n_truths:
                    form = INFINITE
                elif word >= 0:
                    form = TRUTH
            if spaced and form != OTHER:
                counts[SPACED] += 1
                firsts[SPACED] = row if firsts[SPACED] < 0 else firsts[SPACED]
        counts[form] += 1
        if firsts[form] < 0:
            firsts[form] = row
    return counts, firsts
