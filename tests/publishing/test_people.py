"""Plans for tables about people, drafted and not edited: nothing unique goes out, codes stay codes.

What is released is compared with the original by plain pandas.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

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
