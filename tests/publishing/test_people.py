"""Plans for tables about people, drafted and not edited: nothing unique goes out, codes stay codes.

What is released is compared with the original by plain pandas.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tessella import publish
from tessella.cli import app
from tessella.exceptions import BadFileError
from tessella.io import read_file
from tessella.planfile import draft, parse_plan, read_plan

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


@pytest.mark.filterwarnings("ignore::tessella.exceptions.UnsureKindWarning")
@pytest.mark.parametrize("k", [3, 5])
def test_a_panel_whose_unit_no_name_tells_is_released_by_units(k, tmp_path):
    """The structure of panels of firms that packages hold: numbers, years, a sector, gaps."""
    chance, firms, years = np.random.default_rng(3), 40, 4
    own = np.repeat(chance.choice(900, firms, replace=False) + 100, years)
    panel = pd.DataFrame({"fi": own, "year": np.tile(np.arange(1990, 1990 + years), firms)})
    panel["sector"] = np.repeat(chance.integers(1, 15, firms) * 3, years)
    panel["sales"] = np.where(
        chance.random(len(own)) < 0.2, np.nan, chance.lognormal(3, 1, len(own))
    )
    panel["patents"] = np.where(chance.random(len(own)) < 0.2, np.nan, chance.poisson(9, len(own)))
    panel.to_csv(tmp_path / "panel.csv", index=False)
    source = read_file(tmp_path / "panel.csv")
    text = draft(source, k=k, folder=tmp_path, wishes={"options": {"effort": "quick"}}, seed=1)
    text = text.replace('risk = "quick"', 'risk = "none"').replace('"shuffled"', '"kept"')
    plan = parse_plan(text, folder=tmp_path)
    assert plan.columns["fi"].role == "unit"
    with pytest.warns(match="order of the original"):
        done = publish(plan, source=source, pictures=False)
    after = pd.read_csv(done.paths["release"])
    groups = after.groupby(list(after), dropna=False).ngroup().to_numpy()
    assert (panel["fi"].groupby(groups).nunique() >= k).all()
    assert set(after["sector"]) <= set(panel["sector"])


def test_a_column_of_two_types_is_refused_with_a_way_out_that_works(tmp_path):
    """A bug once met: the command's hint was Python, and no option of the command did it."""
    path, plan = tmp_path / "families.csv", tmp_path / "plan.toml"
    rows = [f"{i // 3}{'A' if i > 85 else ''},{i % 7}" for i in range(90)]
    path.write_text("my family,x\n" + "\n".join(rows))

    def run(*read: str) -> BaseException | None:
        plan.unlink(missing_ok=True)
        given = ["plan", str(path), "-k", "3", "--out", str(plan)]
        return CliRunner().invoke(app, [*given, *read]).exception

    told = str(run())
    assert "--read 'missing.my family=WORD'" in told
    assert "--read 'types.my family=text'" in told
    assert "29A" not in told  # no value of the table
    assert run("--read", "missing.my family=28A", "--read", "missing.my family=29A") is None
    assert read_plan(plan).read().table.column("my family").null_count == 4
    assert run("--read", "types.my family=text") is None
    assert read_plan(plan).read().table.column("my family").to_pylist()[-1] == "29A"
    lines = plan.read_text().splitlines()
    without = "\n".join(line for line in lines if not line.startswith("types"))
    plan.write_text(without)
    with pytest.raises(BadFileError, match=r"types = .* in \[input\]") as refused:
        read_plan(plan).read()
    line = re.findall(r"types = \{.*?\}", str(refused.value))[0]
    plan.write_text(without.replace("[input]", f"[input]\n{line}"))
    assert read_plan(plan).read().n_rows == 90
