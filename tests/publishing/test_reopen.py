"""Files opened again by their holder: the figures of the report, and nothing for an outsider."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tessella import publish
from tessella.auditing.manifests import find_manifest
from tessella.exceptions import BadFileError, BadTableError
from tessella.planfile import PlanFile, parse_plan
from tessella.publishing import Publication, reopen
from tessella.publishing.measuring import SHUFFLING

PLAN = """
{seed}
[input]
file = "people.csv"
[columns.hh]
kind = "integer"
role = "unit"
[columns.relat]
kind = "nominal"
[columns.town]
kind = "nominal"
[columns.age]
kind = "integer"
missing = [-9]
[columns.income]
kind = "continuous"
[columns.health]
kind = "ordinal"
role = "confidential"
[columns.w]
kind = "continuous"
role = "weight"
[[steps]]
method = "recode"
column = "town"
groups = {{ coast = ["a", "b"], land = ["c", "d"] }}
[[steps]]
method = "protect"
k = 3
grouping = "{grouping}"
[measures]
risk = "quick"
known = ["age", "town", "income"]
[output]
file = "release.csv"
manifest = "manifest.json"
external_report = "report.html"
{output}
"""


def people(folder: Path, *, seed: str = "", output: str = "", grouping: str = "mdav") -> PlanFile:
    """A plan for made-up people: units, codes, missing codes, a weight, a recoded column."""
    draw = np.random.default_rng(7)
    n = 120
    table = pd.DataFrame({
        "hh": np.repeat(np.arange(n // 2), 2), "relat": draw.integers(1, 4, n),
        "town": draw.choice(list("abcd"), n), "age": np.where(draw.random(n) < 0.2, -9,
        draw.integers(16, 90, n)), "income": draw.lognormal(3, 1, n).round(1),
        "health": draw.integers(1, 6, n), "w": draw.choice([1.5, 2.0, 2.5], n),
    })  # fmt: skip
    table.to_csv(folder / "people.csv", index=False)
    return parse_plan(PLAN.format(seed=seed, output=output, grouping=grouping), folder=folder)


def figures(found: Any) -> Any:
    """What was measured, without times."""
    return json.loads(re.sub(r'"seconds": [0-9.e-]+', '"seconds": 0', json.dumps(found.to_dict())))


SEED, SUMMARY, KEPT = {"seed": "seed = 5"}, {"output": 'summary = "s.json"'}, {
    "output": 'order = "kept"'
}  # fmt: skip


@pytest.mark.parametrize("options", [SEED, SUMMARY, KEPT, {**SEED, "grouping": "fuzzy"}])
@pytest.mark.filterwarnings("ignore::tessella.exceptions.TessellaWarning")
def test_figures_are_those_of_the_report(tmp_path: Path, options: dict[str, str]) -> None:
    plan = people(tmp_path, **options)
    done: Publication = publish(plan)
    opened = reopen(plan)
    assert figures(opened.loss()) == figures(done.loss)
    assert str(opened.estimates()) == str(done.release.estimates)
    assert figures(opened.risk()) == figures(done.risk)
    found = opened.verify()
    assert found.problems == ()
    assert found.aligned
    assert found.hashes == {"release.csv": True, "report.html": True}
    assert figures(found.loss) == figures(done.loss)
    for name in done.release.table.column_names:
        assert opened.released.table.native[name].to_pylist() == (
            done.release.table[name].to_pylist()
        )


def test_without_seed_and_summary_nobody_knows_the_order(tmp_path: Path) -> None:
    """The lines of the refusal are pasted: with each of them it works."""
    plan = people(tmp_path)
    publish(plan)
    with pytest.raises(BadTableError, match="tessella protect --plan PLAN --overwrite") as refused:
        reopen(plan)
    summary, seed = re.findall(r"(seed = \d+|summary = \"[^\"]+\")", str(refused.value))
    for mended in (people(tmp_path, seed=seed), people(tmp_path, output=summary)):
        with pytest.raises(BadTableError, match="order"):  # this is not how it was made
            reopen(mended)
        done = publish(mended, overwrite=True)
        assert figures(reopen(mended).loss()) == figures(done.loss)


def test_a_summary_that_is_there_need_only_be_named(tmp_path: Path) -> None:
    """A bug once met: the plan was to be run again, too, which replaced the only such summary."""
    written = people(tmp_path, output='summary = "release-summary.json"')
    done = publish(written)
    for seed in ("", "seed = 5"):
        with pytest.raises(BadTableError, match="order") as refused:
            reopen(people(tmp_path, seed=seed))
        named, again = str(refused.value).split("If you have none")
        (summary,) = re.findall(r"summary = \"[^\"]+\"", named)
        assert "protect --plan" not in named
        assert ("delete the line of the seed" in named) == bool(seed)
        assert ("seed = " in again) == (not seed)  # or the plan would have two
    assert figures(reopen(people(tmp_path, output=summary)).loss()) == figures(done.loss)


def test_another_file_is_refused(tmp_path: Path) -> None:
    plan = people(tmp_path, **SEED)
    publish(plan)
    release = tmp_path / "release.csv"
    assert find_manifest(release) == tmp_path / "manifest.json"
    text = release.read_text()
    release.write_text(text.replace("1.5", "1.6", 1))
    with pytest.raises(BadFileError, match=r"not the file that manifest\.json describes"):
        reopen(plan)
    (tmp_path / "manifest.json").unlink()
    assert find_manifest(release) is None
    release.write_text("\n".join(text.splitlines()[:-1]))
    with pytest.raises(BadFileError, match="119 records, and the original has 120"):
        reopen(plan)
    release.write_text(text.replace("income", "incomes", 1))
    with pytest.raises(BadFileError, match=r"\(income, incomes\)"):
        reopen(plan)


@pytest.mark.parametrize("options", [SEED, SUMMARY])
@pytest.mark.filterwarnings("ignore::tessella.exceptions.TessellaWarning")
def test_no_public_file_undoes_the_order(tmp_path: Path, options: dict[str, str]) -> None:
    """An outsider has the release, its report and its manifest: neither seed nor order is there."""
    number = 4_815_162_342
    given = {**options, **({"seed": f"seed = {number}"} if "seed" in options else {})}
    plan = people(tmp_path, **given)
    done = publish(plan)
    secret = done.summary["confidential"].get("order_entropy", str(number))
    assert int(secret) > 2**31
    for name in ("release.csv", "report.html", "manifest.json"):
        text = (tmp_path / name).read_text()
        assert secret not in text
        assert "entropy" not in json.dumps(json.loads(text)) if name == "manifest.json" else True
        assert '"seed"' not in text
    if "output" in options:
        assert secret in (tmp_path / "s.json").read_text()
        assert (tmp_path / "s.json").stat().st_mode & 0o077 == 0  # its owner's alone


def test_the_order_is_drawn_anew_without_a_seed(tmp_path: Path) -> None:
    """By hand: the order of a seed is that of numpy; without one, no two are the same."""
    plan = people(tmp_path, **SUMMARY)
    entropies = {
        publish(plan, overwrite=True).summary["confidential"]["order_entropy"] for _ in range(2)
    }
    assert len(entropies) == 2
    seeded = people(tmp_path, **SEED)
    publish(seeded, overwrite=True)
    order = np.random.default_rng(np.random.SeedSequence([5, SHUFFLING])).permutation(120)
    released, original = pd.read_csv(tmp_path / "release.csv"), pd.read_csv(tmp_path / "people.csv")
    assert (released["health"].to_numpy() == original["health"].to_numpy()[order]).all()


def test_suppressed_cells_are_lost_wherever_it_is_stated(tmp_path):
    """A bug once met: 0 % of the known cells are gone, where 198 were suppressed."""
    plan = people(tmp_path)
    table = pd.read_csv(tmp_path / "people.csv")
    table.loc[[3, 50], "income"] = np.nan
    table.to_csv(tmp_path / "people.csv", index=False)
    text = plan.to_toml().replace(
        "[[steps]]", '[[steps]]\nmethod = "suppress"\nk = 3\n\n[[steps]]', 1
    )
    plan = parse_plan(
        text.replace("[output]", '[output]\nsummary = "summary.json"'), folder=tmp_path
    )
    done = publish(plan)
    released = pd.read_csv(tmp_path / "release.csv")
    gone = {name: released[name].replace(-9, np.nan).isna().sum() for name in ("age", "income")}
    lost = {n: int(own - table[n].replace(-9, np.nan).isna().sum()) for n, own in gone.items()}
    assert sum(lost.values()) > 0
    assert done.loss is not None
    share = done.loss["lost_cells"].by_column
    opened = reopen(plan)
    assert figures(opened.loss()["lost_cells"]) == figures(done.loss["lost_cells"])
    verified = opened.verify()
    assert verified.loss is not None
    assert figures(verified.loss["lost_cells"]) == figures(done.loss["lost_cells"])
    assert {name for name, own in share.items() if own} == {n for n, own in lost.items() if own}
