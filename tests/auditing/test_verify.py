"""Releases are verified, whatever tool has made them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tessella import publish, verify
from tessella.exceptions import BadOptionError, BadTableError, DataNotFoundError
from tessella.schema import Schema
from tests.publishing.conftest import make_plan, write_survey


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_survey(tmp_path)
    return tmp_path


@pytest.fixture
def original() -> pd.DataFrame:
    random = np.random.default_rng(0)
    x = random.normal(size=60)
    return pd.DataFrame({"id": range(1000, 1060), "x": x, "y": x + random.normal(size=60),
                         "town": random.choice(["Reus", "Vic"], 60)})  # fmt: skip


def masked(original: pd.DataFrame) -> pd.DataFrame:
    """Mask by pandas alone: groups of five in the order of x."""
    out = original.copy()
    groups = out["x"].rank(method="first").sub(1) // 5
    out[["x", "y"]] = out.groupby(groups)[["x", "y"]].transform("mean")
    return out.drop(columns="id")


BLOCK = [["x", "y"]]


def test_another_tools_release_is_verified(original):
    found = verify(original, masked(original), k=5, blocks=BLOCK, rules='town in {"Reus", "Vic"}')
    assert found.passed, found
    assert found.aligned
    assert found.audit.blocks[0].k == 5
    assert 0 < found.loss["sse_sst"].value < 1
    assert "Not in the release: 'id'." in found.notes
    assert "verified" in str(found)
    json.dumps(found.to_dict())


def test_too_small_groups_and_broken_rules_are_problems(original):
    found = verify(original, masked(original), k=6, blocks=BLOCK, rules="x > 0")
    assert not found.passed
    assert any("fewer than 6" in said for said in found.problems)
    assert any("break the rule" in said for said in found.problems)


def test_another_order_is_noticed_and_distributions_are_compared(original):
    shuffled = masked(original).sample(frac=1, random_state=1).reset_index(drop=True)
    found = verify(original, shuffled, k=5, blocks=BLOCK)
    assert not found.aligned
    assert found.loss is None
    assert found.passed, found
    assert any("order seems to be another" in said for said in found.notes)
    by_name = {shape.column: shape for shape in found.shapes}
    assert by_name["town"].distance == 0  # by hand: untouched
    assert by_name["x"].mean_change == pytest.approx(0, abs=1e-12)
    assert 0 < by_name["x"].distance <= 0.1
    assert "Distributions" in str(found)


def test_records_are_found_by_an_id(original):
    with_id = masked(original).assign(id=original["id"])
    shuffled = with_id.sample(frac=1, random_state=1).reset_index(drop=True)
    found = verify(original, shuffled, k=5, blocks=BLOCK, id="id")
    straight = verify(original, masked(original), k=5, blocks=BLOCK)
    assert found.aligned
    assert found.loss["sse_sst"].value == pytest.approx(straight.loss["sse_sst"].value)
    with pytest.raises(BadOptionError, match="not there"):
        verify(original, shuffled.assign(id=range(60)), id="id")
    with pytest.raises(BadOptionError, match="repeated"):
        verify(original, shuffled.assign(id=1), id="id")


def test_fewer_records_give_what_can_be_had(original):
    found = verify(original, masked(original).iloc[:-7], k=5, blocks=BLOCK, rules="x < 100")
    assert not found.aligned
    assert any("60 records and the release 53" in said for said in found.notes)
    assert len(found.shapes) == 3
    with pytest.raises(BadOptionError, match="same length"):
        verify(original, masked(original).iloc[:-7], aligned=True)


def test_rules_about_the_original_are_said_to_be_asked_of_the_release(original):
    found = verify(original, masked(original), rules="x <= 10 + mean(x)", aligned=False)
    assert any("asked of the release" in said for said in found.notes)
    found = verify(original, masked(original), rules="(x + y) <= 1000", aligned=False)
    assert not any("asked of the release" in said for said in found.notes)


def test_a_schema_says_what_to_count_in(original):
    schema = Schema.guess(original).override(town={"role": "untouched"}, id={"role": "identifier"})
    shuffled = masked(original).sample(frac=1, random_state=1)
    found = verify(original, shuffled, k=5, schema=schema, aligned=False)
    assert found.passed, found
    assert found.audit.blocks[0].columns == ("x", "y")


def test_columns_that_nobody_knows_are_a_problem(original):
    found = verify(original, masked(original).assign(secret=1), k=5, blocks=BLOCK)
    assert any("'secret'" in said for said in found.problems)
    with pytest.raises(BadTableError, match="no column in common"):
        verify(original, pd.DataFrame({"z": [1, 2]}))


def test_a_file_is_checked_against_its_manifest(home):
    publish(make_plan(home, order="shuffled"), pictures=False)
    given = home / "firms.csv", home / "release.csv"
    found = verify(*given, manifest=home / "manifest.json")
    assert found.passed, found
    assert not found.aligned
    assert len(found.audit.rules) == 14
    assert found.audit.k == 4
    text = (home / "release.csv").read_text()
    (home / "release.csv").write_text(text.replace("north", "south", 1))
    found = verify(*given, manifest=home / "manifest.json")
    assert found.hashes["release.csv"] is False
    assert any("not the file" in said for said in found.problems)
    assert any("fewer than 4" in said for said in found.problems)


def test_what_is_no_manifest(home, tmp_path):
    given = home / "firms.csv", home / "firms.csv"
    with pytest.raises(DataNotFoundError):
        verify(*given, manifest=tmp_path / "none.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(BadOptionError, match="manifest"):
        verify(*given, manifest=tmp_path / "other.json")


def test_the_original_itself_is_no_release(home):
    found = verify(home / "firms.csv", home / "firms.csv", k=3)
    assert not found.passed


def test_suppressed_cells_are_noted_and_invented_ones_refused() -> None:
    """Bug once met: a release whose plan suppresses cells was not verified."""
    original = pd.DataFrame({"a": [1.0, 2, 3, None, 5, 6], "b": [1.0, 1, 1, 2, 2, 2]})
    suppressed = original.assign(a=[2.0, 2, 2, None, None, None])
    found = verify(original, suppressed, k=3, aligned=True)
    assert found.passed
    assert any("2 cells of 'a' were suppressed" in note for note in found.notes)
    invented = original.assign(a=[2.0, 2, 2, 5, 5, 5])
    assert not verify(original, invented, k=3, aligned=True).passed
    alone = verify(original, suppressed, k=3, aligned=False)
    assert not any("eleased as" in note for note in alone.notes)  # nothing was compared


def test_a_manifest_says_where_an_empty_cell_equals_every_value(tmp_path):
    random = np.random.default_rng(0)
    keys = {name: random.choice(list("pqrs"), 40) for name in ("town", "job", "sex")}
    pd.DataFrame(keys).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "plan.toml").write_text(
        """
seed = 1
[input]
file = "people.csv"
[[steps]]
method = "local suppression"
k = 3
missing = "wildcard"
[measures]
risk = "none"
[output]
file = "release.csv"
manifest = "manifest.json"
"""
    )
    publish(tmp_path / "plan.toml", pictures=False)
    files = tmp_path / "people.csv", tmp_path / "release.csv"
    found = verify(*files, manifest=tmp_path / "manifest.json")
    assert found.passed
    assert any("wildcard" in note for note in found.notes)
    assert not verify(*files, k=3, blocks=[list(keys)]).passed  # as values of their own
