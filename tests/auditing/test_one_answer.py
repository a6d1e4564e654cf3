"""One answer in every room: what a missing code matches, and that -0.0 is 0.0."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella import Rules, Schema, audit
from tessella.loss import lost_cells, measure
from tessella.masking import PRAM
from tessella.risk import k_anonymity

TEXTS = pd.DataFrame({"town": ["-9.0", "Reus", "Vic", "Reus"], "pay": [1.0, 2.0, 3.0, 4.0]})
SCHEMA = Schema({"town": {"kind": "nominal", "missing": (-9,)}, "pay": {"kind": "continuous"}})


def test_a_code_of_numbers_is_missing_in_texts_for_the_audit():
    found = audit(TEXTS, TEXTS, schema=SCHEMA)
    assert found.columns[0].missing_before == found.columns[0].missing_after == 1


def test_a_code_of_numbers_is_missing_in_texts_for_the_loss():
    found = measure(TEXTS, TEXTS, schema=SCHEMA)
    assert any("'town' is compared in 3 of 4" in note for note in found.notes)
    gone = TEXTS.assign(town=["-9.0", "Reus", "-9", "Reus"])
    assert lost_cells(TEXTS, gone, schema=SCHEMA).by_column["town"] == pytest.approx(1 / 3)


def test_a_code_of_numbers_is_missing_in_texts_for_the_rules():
    found = Rules(['town in {"Reus", "Vic"}']).confront(TEXTS, schema=SCHEMA)
    assert found.signs[:, 0].tolist() == [0, 1, 1, 1]


def test_a_code_of_numbers_is_missing_in_texts_for_a_masker():
    masked = PRAM(columns=["town"], schema=SCHEMA, random_state=0).fit_transform(TEXTS)
    assert masked["town"].iloc[0] == "-9.0"
    assert "-9.0" not in set(masked["town"].iloc[1:])


def test_a_code_of_numbers_is_missing_in_texts_for_the_risk():
    """Missing cells agree with all others, so that only the code as a value would be unique."""
    null = TEXTS.assign(town=[None, "Reus", "Vic", "Reus"])
    found, expected = (
        k_anonymity(table, known=["town"], schema=SCHEMA, missing_as="any").value
        for table in (TEXTS, null)
    )
    assert found == expected


def test_zeros_of_both_signs_are_one_value():
    x, y = np.array([[0.0], [0.0]]), np.array([[0.0], [-0.0]])
    found = audit(x, y, k=2, blocks=[[0]])
    assert found.passed
    assert found.unchanged == (0,)
