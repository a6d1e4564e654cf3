"""The lines of an audit, by hand: who is alike, which rules hold, what columns lost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tessella import Schema, audit

from .six import MASKED, SIX, line, public_text

# By hand: who is alike


def test_two_groups_of_three():
    result = audit(SIX, MASKED, k=3)
    assert result.passed
    assert result.problems == ()
    (block,) = result.blocks
    assert block.columns == ("net", "tax")  # those that differ
    assert (block.combinations, block.smallest, block.below) == ((2,), (3,), (0,))
    assert result.joint == block
    assert result.unchanged == ("sex",)
    assert result.untouched == 2  # the second man and the second woman
    assert "'net', 'tax'" in result.notes[0]
    assert any("Released as it is: 'sex'" in note for note in result.notes)
    assert any("2 of 6 records are released as they were" in note for note in result.notes)


def test_a_block_below_k_is_a_problem():
    result = audit(SIX, MASKED, k=4)
    assert not result.passed
    assert result.problems == (
        "Block 1 ('net', 'tax'): 6 of 6 records share their released values with fewer than 4 "
        "records (the fewest: 3).",
    )
    assert audit(SIX, MASKED).passed  # nobody asked for k
    assert audit(SIX, MASKED).blocks[0].below is None


def test_strata_split_what_is_alike():
    """All six have the same income, and no two of one sex and town: 2, 1, 1, 2 records."""
    table = pd.DataFrame({"sex": list("aaabbb"), "town": list("xxyxyy"), "income": range(6)})
    released = table.assign(income=2)
    whole = audit(table, released, k=2)
    assert whole.blocks[0].smallest == (6,)
    split = audit(table, released, k=2, strata=["sex", "town"])
    assert split.strata == ("sex=a, town=x", "sex=a, town=y", "sex=b, town=x", "sex=b, town=y")
    assert split.blocks[0].records == (2, 1, 1, 2)
    assert split.blocks[0].smallest == (2, 1, 1, 2)
    assert split.blocks[0].below == (0, 1, 1, 0)
    assert "(in sex=a, town=y, sex=b, town=x)" in split.problems[0]
    frame = split.group_frame()
    assert frame["below"].tolist() == [0, 1, 1, 0]
    assert frame["stratum"].tolist() == list(split.strata)


def test_strata_of_an_array_are_numbered_not_named():
    released = MASKED.drop(columns="sex")
    result = audit(SIX.drop(columns="sex"), released, k=4, strata=SIX["sex"] + " of Reus")
    assert result.strata == ("stratum 1", "stratum 2")
    assert "Reus" not in public_text(result)


def test_a_missing_stratum_is_a_stratum():
    table = pd.DataFrame({"s": ["a", "a", None], "x": [1, 2, 3]})
    result = audit(table, table.assign(x=2), k=2, strata="s")
    assert result.strata == ("s=a", "s=missing")
    assert result.blocks[0].below == (0, 1)


def test_strata_are_read_in_the_released_table():
    table = pd.DataFrame({"s": list("aabb"), "x": [1, 2, 3, 4]})
    released = pd.DataFrame({"s": list("aaab"), "x": [2, 2, 2, 2]})
    assert audit(table, released, strata="s").blocks[0].records == (3, 1)


def test_blocks_may_keep_k_while_all_columns_together_do_not():
    """Pairs in x, other pairs in y: every whole record is alone, which is a note."""
    table = pd.DataFrame({"x": [1, 2, 3, 4], "y": [1, 2, 3, 4]})
    released = pd.DataFrame({"x": [1, 1, 3, 3], "y": [1, 3, 3, 1]})
    result = audit(table, released, k=2, blocks=[["x"], ["y"]])
    assert result.passed
    assert [block.k for block in result.blocks] == [2, 2]
    assert result.joint is not None
    assert (result.joint.k, result.joint.n_below) == (1, 4)
    assert any("Over all blocks together 4 of 4 records" in note for note in result.notes)
    assert "all blocks" in str(result)
    assert not audit(table, released, k=2).passed


def test_columns_in_no_block_are_named():
    result = audit(SIX, MASKED, k=3, blocks=[["net"]])
    assert any("In no block" in note and "'tax'" in note for note in result.notes)


def test_a_quasi_identifier_counts_although_it_does_not_differ():
    """The schema calls the town one, so that the three of a group are not alike."""
    table = pd.DataFrame({"town": ["a", "b", "c"], "x": [1, 2, 3]})
    schema = Schema({"town": {"kind": "nominal"}, "x": {"kind": "integer"}})
    released = table.assign(x=2)
    assert audit(table, released, k=3).passed
    assert not audit(table, released, k=3, schema=schema).passed
    kept = schema.override(town={"role": "untouched"})
    assert audit(table, released, k=3, schema=kept).passed


def test_each_kind_of_missing_is_a_value_of_its_own():
    """Polars tells null from NaN, the schema tells -9 from -8: 2 + 2 + 1 + 1 + 2 records."""
    values = [None, None, float("nan"), float("nan"), -9.0, -8.0, 1.0, 1.0]
    table = pl.DataFrame({"x": values}, strict=False)
    schema = Schema({"x": {"kind": "continuous", "missing": (-9, -8)}})
    result = audit(table, table, k=2, blocks=[["x"]], schema=schema)
    assert result.blocks[0].combinations == (5,)
    assert result.blocks[0].below == (2,)
    assert line(result, "x").missing_after == 6


def test_zeros_of_both_signs_are_equal():
    """As for the masker, which writes no -0.0."""
    table = np.array([[0.0], [0.0]])
    released = np.array([[0.0], [-0.0]])
    result = audit(table, released, k=2, blocks=[[0]])
    assert result.blocks[0].k == 2
    assert result.unchanged == (0,)


def test_k_without_anything_masked():
    result = audit(SIX, SIX, k=3)
    assert result.problems == ("k=3 was asked for, and there is no block to count it in.",)
    assert result.joint is None
    assert "the released table is the original" in result.notes[0]


# By hand: rules


def test_rules_before_and_after():
    table = pd.DataFrame({"net": [9, 8, 5, 5], "tax": [1, 1, 1, None], "gross": [10, 10, 9, 9]})
    released = table.assign(net=[9, 8, 8, 5], gross=[10, 9, 9, 9])
    result = audit(table, released, rules="balance: net + tax == gross\nnet <= 8")
    balance, small = result.rules
    assert (balance.breaks_before, balance.breaks_after) == (2, 0)
    assert (balance.unknown_before, balance.unknown_after) == (1, 1)
    assert (balance.worst_before, balance.worst_after) == (3.0, None)
    assert (small.breaks_before, small.breaks_after, small.worst_after) == (1, 1, 1.0)
    assert result.problems == ("1 record breaks the rule R2, by up to 1: net <= 8",)
    assert any("kept in the released table: balance" in note for note in result.notes)
    frame = result.rule_frame(confidential=True)
    assert frame["breaks_before"].tolist() == [2, 1]
    assert frame["worst_before"].tolist() == [3.0, 1.0]
    assert "worst_before" not in result.rule_frame().columns


def test_rules_about_the_original_are_fixed_on_it():
    """The original mean is 2, the released one 3: 2.5 would be below the latter only."""
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0]})
    released = pd.DataFrame({"x": [2.5, 2.5, 4.0], "y": [1.0, 2.0, 2.0]})
    result = audit(table, released, rules=["if y < 2: x < mean(x)", "observed(x)", "observed(y)"])
    assert [rule.breaks_after for rule in result.rules] == [1, 3, 0]
    assert [rule.breaks_before for rule in result.rules] == [0, 0, 0]
    assert result.rules[1].worst_after == 1.0
    assert result.rules[1].to_dict()["worst_after"] is None  # 4 less 1 is an original value
    assert "by up to" not in " ".join(result.problems)


def test_tolerance_is_that_of_the_rules():
    table = pd.DataFrame({"a": [0.1], "b": [0.2], "c": [0.3]})
    released = table.assign(c=0.3 + 1e-6)
    assert not audit(table, released, rules="a + b == c").passed
    assert audit(table, released, rules="a + b == c", tolerance=1e-3).passed


def test_a_rule_that_cannot_be_judged_does_not_silence_the_others():
    table = pd.DataFrame({"a": [1, 2], "b": [1, 2]})
    released = pd.DataFrame({"a": [1, 2], "b": [0, 2]})
    result = audit(table, released, rules=["a / b <= 3", "b >= 1"])
    assert [rule.breaks_after for rule in result.rules] == [None, 1]
    assert "divides by zero" in result.problems[0]
    assert "R2" in result.problems[1]
    back = audit(released, table, rules=["a / b <= 3", "b >= 1"])
    assert back.passed
    assert any("cannot be judged in the original" in note for note in back.notes)
    assert str(back.rule_frame()["breaks_before"].tolist()) == "[<NA>, 1]"


# By hand: columns


def test_totals_and_means():
    released = SIX.assign(net=[11, 11, 14, 20, 27, 30])
    net = line(audit(SIX, released), "net")
    assert (net.total_before, net.total_after, net.total_change) == (111.0, 113.0, 2.0)
    assert (net.mean_before, net.mean_after) == (18.5, 113 / 6)
    assert net.relative_change == pytest.approx(2 / 111)
    assert (net.low_before, net.low_after, net.high_before, net.high_after) == (10, 11, 30, 30)
    assert (net.changed, net.share_changed, net.kind) == (3, 0.5, "numbers")


def test_totals_are_weighted_if_the_schema_says_so():
    table = pd.DataFrame({"x": [1.0, 3.0, np.nan], "w": [1.0, 3.0, 5.0]})
    released = table.assign(x=[2.0, 2.0, np.nan])
    schema = Schema({"x": {"kind": "continuous"}, "w": {"kind": "continuous", "role": "weight"}})
    result = audit(table, released, schema=schema)
    x = line(result, "x")
    assert (x.total_before, x.total_after) == (10.0, 8.0)
    assert (x.mean_before, x.mean_after) == (2.5, 2.0)
    assert result.weight == "w"
    assert "weighted by w" in str(result)
    assert result.passed


def test_a_guessed_weight_weighs_nothing():
    table = pd.DataFrame({"x": [1.0, 3.5, 9.0], "weight": [1.5, 3.0, 5.0]})
    result = audit(table, table, schema=Schema.guess(table))
    assert result.weight is None
    assert any("only guessed" in note for note in result.notes)


def test_weights_that_were_spoiled_are_a_problem():
    table = pd.DataFrame({"x": [1.0, 3.0], "w": [1.0, 3.0]})
    schema = Schema({"x": {"kind": "continuous"}, "w": {"kind": "continuous", "role": "weight"}})
    result = audit(table, table.assign(w=[1.0, -3.0]), schema=schema)
    assert "weights in 'w' of the released table" in result.problems[0]
    assert line(result, "x").total_after == 10.0


def test_categories():
    """Two of four towns change; b goes from 1/4 to 3/4."""
    table = pd.DataFrame({"town": ["a", "a", "b", None]})
    released = pd.DataFrame({"town": ["b", "b", "b", None]})
    town = line(audit(table, released), "town")
    assert (town.kind, town.share_changed, town.frequency_change) == ("categories", 0.5, 0.5)
    assert (town.missing_before, town.missing_after, town.mean_before) == (1, 1, None)


def test_numbers_that_the_schema_calls_codes_are_categories():
    table = pd.DataFrame({"code": [1, 1, 2, -9]})
    schema = Schema({"code": {"kind": "nominal", "missing": (-9,)}})
    code = line(audit(table, table.assign(code=[1, 2, 2, -9]), schema=schema), "code")
    assert (code.kind, code.changed, code.frequency_change) == ("categories", 1, 0.25)
    assert code.missing_after == 1


def test_weighted_frequencies():
    table = pd.DataFrame({"c": ["a", "b"], "w": [1, 3]})
    schema = Schema({"c": {"kind": "nominal"}, "w": {"kind": "integer", "role": "weight"}})
    result = audit(table, table.assign(c="a"), schema=schema)
    assert line(result, "c").frequency_change == 0.75


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ([1.0, None, 3.0], [1.0, 2.0, 3.0], 1),  # filled
        ([1.0, None, 3.0], [None, 2.0, 3.0], 2),  # as many as before, elsewhere
        ([1.0, None, 3.0], [1.0, -9.0, 3.0], 1),  # missing in another way
    ],
)
def test_missing_cells_that_changed_are_a_problem(before, after, moved):
    schema = Schema({"x": {"kind": "continuous", "missing": (-9,)}})
    result = audit(pd.DataFrame({"x": before}), pd.DataFrame({"x": after}), schema=schema)
    assert len(result.problems) == 1
    assert f"{moved} cell" in result.problems[0]
    assert line(result, "x").moved == moved


def test_a_missing_category_code():
    table = pd.DataFrame({"c": ["a", "refused"]})
    schema = Schema({"c": {"kind": "nominal", "missing": ("refused",)}})
    assert audit(table, table, schema=schema).columns[0].missing_after == 1
    assert "became missing" in audit(table, table.assign(c="a"), schema=schema).problems[0]


def test_a_column_that_is_missing_everywhere():
    table = pd.DataFrame({"x": [np.nan, np.nan], "y": [1, 2]})
    x = line(audit(table, table), "x")
    assert (x.total_after, x.mean_after, x.low_after) == (0.0, None, None)
    assert "nan" not in str(audit(table, table))
