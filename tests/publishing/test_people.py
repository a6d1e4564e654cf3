"""Plans for tables about people, drafted and not edited: nothing unique goes out, codes stay codes.

What is released is compared with the original by plain pandas.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tessella import publish
from tessella.io import read_file
from tessella.planfile import draft, parse_plan

DATA = Path(os.environ.get("TESSELLA_DATA", ""))
SLOW = ("cps1985.csv", "eus_small.sav", "testdata.csv", "eusilc.csv")
FILES = [pytest.param(name, marks=pytest.mark.slow) for name in SLOW]


@pytest.mark.skipif(not (DATA / "people").is_dir(), reason="TESSELLA_DATA has no folder people")
@pytest.mark.filterwarnings("ignore::tessella.exceptions.UnsureKindWarning")
@pytest.mark.parametrize("file", ["apistrat.dta", *FILES])
def test_an_unedited_plan_releases_no_unique_column_and_no_new_code(file, tmp_path):
    source = read_file(DATA / "people" / file)
    text = draft(source, k=3, folder=tmp_path, wishes={"options": {"effort": "quick"}}, seed=1)
    text = text.replace('risk = "quick"', 'risk = "none"')
    plan = parse_plan(text, folder=tmp_path)
    done = publish(plan, source=source, pictures=False)
    before, after = source.to_pandas(), read_file(done.paths["release"]).to_pandas()
    assert len(after) == len(before)
    for name in after.columns:
        column = plan.columns[name]
        assert column.role not in ("identifier", "unit")
        assert (after[name].value_counts() == 1).sum() <= len(after) / 2, name
        if column.kind in ("nominal", "ordinal"):
            assert set(after[name].dropna()) <= set(before[name].dropna()), name
        for code in column.missing:
            assert (after[name] == code).sum() >= (before[name] == code).sum(), name
