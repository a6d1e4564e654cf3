"""Masking by cells: groupings, blocks and units of tables larger than memory.

Promises are counted by plain pandas in what is released.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tessella import protect
from tessella.exceptions import PlanError, RefusedError
from tessella.fuzzy.field import power_law
from tessella.grouping.cells import CutForest
from tessella.release import cells, centres, jobs, large, protecting, shards

N, UNITS = 1_600, 480
ONE, TWO = "500MB", "1GB"
COLUMNS = ["a", "b", "c"]
HEADS = "count(head == 'yes') by home == 1"


@pytest.fixture
def numbers():
    random = np.random.default_rng(0)
    a = random.lognormal(3, 0.3, N)
    return {"a": a, "b": a + a[::-1], "c": 2 * a + random.normal(size=N)}


@pytest.fixture
def homes():
    """Households of up to four members, in any order: what is constant, one head, children."""
    random = np.random.default_rng(1)
    sizes = random.integers(1, 5, UNITS)
    home = np.repeat(np.arange(UNITS), sizes)
    n, first = len(home), np.diff(home, prepend=-1) > 0
    age = np.where(first, random.integers(20, 90, n), random.integers(0, 90, n))
    table = pd.DataFrame({
        "home": home, "rent": np.repeat(random.lognormal(6, 0.4, UNITS).round(), sizes),
        "region": np.repeat(random.choice(list("abc"), UNITS), sizes), "age": age,
        "head": np.where(first, "yes", "no"),
        "income": np.where(age < 16, 0, random.lognormal(7, 0.5, n).round()),
    })  # fmt: skip
    return table.sample(frac=1, random_state=2).reset_index(drop=True)


def masked(home, columns, *, k=4, memory=ONE, **options):
    table = columns if isinstance(columns, dict) else {c: pa.array(columns[c]) for c in columns}
    pq.write_table(pa.table(table), home / "t.parquet", row_group_size=333)
    release = protect(home / "t.parquet", k=k, memory=memory, random_state=1, **options)
    return release, pd.read_parquet(release.table)


@pytest.fixture
def counted_cells(monkeypatch):
    """Records how many shards there were: of one, nothing here would be tested."""
    kept, send = [], cells.send_by_cells

    def counting(*given):
        sent = send(*given)
        kept.append(len(sent.sizes))
        return sent

    monkeypatch.setattr("tessella.release.large.send_by_cells", counting)
    return kept


@pytest.mark.parametrize(
    "given",
    [
        {"grouping": "mdav"},
        {"grouping": "mdav", "rules": ["a <= b"]},
        {"grouping": "fuzzy", "rules": ["a <= b"]},
        {"grouping": "search", "options": {"effort": "quick"}, "distance": "representation"},
    ],
)
def test_k_and_rules_hold_with_any_grouping(small, numbers, counted_cells, given):
    release, found = masked(small, numbers, **given)
    sizes = found.groupby(COLUMNS).size()
    assert sizes.min() >= 4
    assert (found.a <= found.b).all() or "rules" not in given
    assert counted_cells[0] > 4
    (line,) = release.audit.blocks
    assert (line.combinations, line.smallest, line.below) == ((len(sizes),), (sizes.min(),), (0,))
    assert release.audit.k == 4
    assert release.loss < 2


@pytest.mark.parametrize(
    "given",
    [
        {"grouping": "mdav", "strata": "s"},
        pytest.param(
            {"grouping": "fuzzy", "options": {"at_least_k": False}}, marks=pytest.mark.slow
        ),
        pytest.param(
            {"grouping": "fuzzy", "options": {"at_least_k": False, "c": 12}},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"grouping": "mdav", "blocks": [["a", "c"], ["b", "s"]]}, marks=pytest.mark.slow
        ),
    ],
)
def test_the_same_bytes_with_one_process_and_with_two(
    tmp_path, numbers, counted_cells, given, monkeypatch
):
    """Many cells of one piece: what else is made small, processes would not know of."""
    monkeypatch.setattr(protecting, "LARGE", 500)
    monkeypatch.setattr(cells, "CELL", 300)
    numbers["s"] = np.where(np.arange(N) % 7 == 0, "x", "y")
    found = [masked(tmp_path, numbers, memory=memory, **given) for memory in (ONE, TWO)]
    assert counted_cells[0] == counted_cells[1] > 4
    pd.testing.assert_frame_equal(found[0][1], found[1][1])
    assert found[0][0].loss == found[1][0].loss


def test_fuzzy_groups_without_k_promise_none(small, numbers, counted_cells):
    given = {"grouping": "fuzzy", "options": {"at_least_k": False, "m1": 1.1, "m2": 1.3}}
    release, found = masked(small, numbers, rules=["a <= b"], **given)
    sizes = found.groupby(COLUMNS).size()
    assert counted_cells[0] > 4
    assert sizes.min() < 4
    assert (found.a <= found.b).all()
    assert (release.audit.k, release.audit.blocks[0].below) == (None, None)
    assert release.audit.blocks[0].smallest == (sizes.min(),)
    (chance,) = release.probabilistic
    assert chance.records == N  # attacked in their cells: all, for there are few
    assert 0 < chance.named < N


@pytest.mark.slow
def test_overlapping_groups_name_nobody(small, numbers):
    release, found = masked(small, numbers, grouping="overlapping", options={"effort": "quick"})
    assert len(found) == N
    assert release.audit.k is None
    (chance,) = release.probabilistic
    assert (chance.named, chance.bounded) == (0, True)


def test_a_given_number_of_centres_is_that_of_the_whole(small, numbers, counted_cells):
    given = {"grouping": "fuzzy", "options": {"at_least_k": False, "c": 12}}
    release, found = masked(small, numbers, **given)
    assert counted_cells[0] > 4
    assert len(found.drop_duplicates()) == 12
    whole = protect(pd.DataFrame(numbers), k=4, random_state=1, **given)
    assert release.loss == pytest.approx(whole.loss, rel=0.1)
    assert "not measured" in str(release.probabilistic[0])


def test_more_centres_than_are_swept_are_shared_among_cells(small, numbers, monkeypatch):
    monkeypatch.setattr(centres, "MOST_CENTRES", 20)
    given = {"grouping": "fuzzy", "options": {"at_least_k": False, "c": 100}}
    _, found = masked(small, numbers, **given)
    assert 90 <= len(found.drop_duplicates()) <= 110


def test_sums_over_pieces_are_those_of_the_formula():
    """Degrees and sums by plain numpy, of all records at once."""
    random = np.random.default_rng(3)
    X, weights, v = (
        random.normal(size=(500, 2)),
        random.random(500) + 0.5,
        random.normal(size=(3, 2)),
    )
    rows = centres.records(np.arange(500), X, weights, None, np.arange(500) % 2)
    job = partial(centres.sweep_piece, {0: v}, power_law(1.5))
    facts = [job(at, [rows.slice(first, 250)]).facts["0"] for at, first in enumerate((0, 250))]
    own = np.arange(500) % 2 == 0
    squares = ((X[own, None] - v) ** 2).sum(axis=2)
    degrees = squares ** (-1 / 0.5)
    degrees /= degrees.sum(axis=1, keepdims=True)
    kappa = weights[own, None] * degrees**1.5
    sums = np.sum(facts, axis=0)
    np.testing.assert_allclose(sums[:, :-2], kappa.T @ X[own])
    np.testing.assert_allclose(sums[:, -2], kappa.sum(axis=0))
    assert sums[:, -1].sum() == pytest.approx((kappa * squares).sum())


def test_k_holds_in_each_of_several_blocks(small, numbers, counted_cells):
    """Missing cells of each block are kept apart, and few records lack them."""
    lacking = np.arange(N) % 311 == 0
    table = numbers | {"c": pa.array(numbers["c"], mask=lacking)}
    blocks = [["a", "c"], ["b"]]
    release, found = masked(small, table, blocks=blocks, grouping="mdav")
    assert counted_cells[0] > 4
    assert found.c.isna().sum() == lacking.sum()
    sizes = [found.groupby(own, dropna=False).size() for own in (*blocks, COLUMNS)]
    assert min(own.min() for own in sizes[:2]) >= 4
    lines = [*release.audit.blocks, release.audit.joint]
    assert [line.combinations[0] for line in lines] == list(map(len, sizes))
    assert [line.smallest[0] for line in lines] == [own.min() for own in sizes]
    below = sizes[2][sizes[2] < 4].sum()
    assert any(f"together {below:,} of" in note for note in release.audit.notes)


@pytest.mark.parametrize("whole", [False, True])
def test_units_are_kept_together(small, homes, counted_cells, whole):
    given = {"grouping": "mdav", "rules": [HEADS], "unit": "home", "whole_units": whole}
    release, found = masked(small, homes, **given)
    assert counted_cells[0] > 3
    assert "home" not in found
    names = list(found.columns)
    found["home"] = homes.home
    assert (found.groupby("home")[["rent", "region"]].nunique() == 1).all(axis=None)
    assert ((found["head"] == "yes").groupby(found.home).sum() == 1).all()
    fewest = found.groupby(names).home.nunique().min()
    assert fewest >= 4
    assert 4 <= release.audit.blocks[0].smallest[0] <= fewest
    told = "masked whole" if whole else "put into groups"
    assert told in release.plan.notes[-1]
    assert "rent, region stay constant" in release.plan.notes[-1]


def test_units_whose_columns_are_constant_in_the_sample_alone(small, homes, counted_cells):
    """Hardly one of so many units has two records in a sample of a hundred: all are counted."""
    table = homes.drop(columns=["rent", "region", "head"])
    release, found = masked(small, table, unit="home", options={"effort": "quick"})
    assert not counted_cells  # searched in rounds, for nothing is constant
    found["home"] = homes.home
    assert found.groupby(["age", "income"]).home.nunique().min() >= 4
    assert release.audit.unit == "home"


def test_units_with_fuzzy_groups_are_counted(small, homes):
    homes = homes[homes.home < 240].reset_index(drop=True)
    _, found = masked(small, homes, unit="home", grouping="fuzzy")
    names = list(found.columns)
    found["home"] = homes.home
    assert found.groupby(names).home.nunique().min() >= 4


def test_members_of_a_rare_class_meet_in_one_cell(small, homes):
    """Five households have a member without income, far from each other; no cell has four."""
    far = homes.sort_values("rent").drop_duplicates("home").home.iloc[[3, 110, 220, 330, 470]]
    rows = homes[homes.home.isin(far) & (homes["head"] == "yes")].index
    homes.loc[rows, "income"] = np.nan
    given = {"grouping": "mdav", "rules": [HEADS], "unit": "home"}
    _, found = masked(small, homes, **given)
    assert found.income.isna().sum() == 5
    names = list(found.columns)
    found["home"] = homes.home
    assert found.groupby(names, dropna=False).home.nunique().min() >= 4
    homes.loc[rows[:2], "income"] = 7
    with pytest.raises(RefusedError, match="3 units") as by_cells:
        masked(small, homes, **given)
    with pytest.raises(RefusedError, match="3 units") as in_memory:
        protect(homes, k=4, random_state=1, **given)
    assert str(by_cells.value) == str(in_memory.value)


def test_what_few_items_of_a_cell_have_goes_to_the_common_cell():
    """By hand: class 7 is rare in cell 1; then cell 0 has too few of it, and cell 2 lends its."""
    forest = CutForest((), np.array([0, 4]), np.arange(4))
    cutting = cells.Cutting(forest, np.zeros(1), np.zeros(1, dtype=int), np.empty((0, 2), int))
    counts = pd.DataFrame(
        [(0, -1, 20), (1, -1, 20), (1, 7, 2), (2, -1, 20), (2, 7, 9), (3, -1, 20), (3, 7, 15)],
        columns=["cell", "class", "count"],
    )
    assert cells.find_few(cutting, counts, 5).tolist() == [[1, 7]]
    after = counts.replace({"cell": {1: 0}}).drop(index=1)
    assert cells.find_few(cutting, after, 5).tolist() == [[2, 7]]
    last = after.drop(index=4).replace({"count": {2: 11}})
    assert len(cells.find_few(cutting, last, 5)) == 0


def test_rules_between_members_are_judged_in_whole_units(small, homes):
    """Also where no masked column is in them; and edit='refuse' counts whole units."""
    homes.loc[homes.home == 5, "head"] = "no"
    size = (homes.home == 5).sum()
    with pytest.raises(RefusedError, match=rf"^{size} records of the table"):
        masked(small, homes, rules=[HEADS], unit="home", grouping="mdav", edit="refuse")


def test_a_time_limit_is_refused(small, numbers):
    with pytest.raises(PlanError, match="effort"):
        masked(small, numbers, options={"time_limit": 3})


def test_chance_that_protects_has_more_than_31_bits():
    """Two seeds that differ beyond the 31st bit draw differently; a drawn seed has 128."""
    seeds = [shards._seed_of_shard(_Drawn(seed), 3) for seed in (1, 1 + 2**64)]
    assert seeds[0].randint(2**31) != seeds[1].randint(2**31)


class _Drawn:
    def __init__(self, seed):
        self.seed = seed

    class plan:
        is_drawn = True


def test_the_sample_is_of_whole_units_where_rules_are_about_them(small, homes, monkeypatch):
    monkeypatch.setattr(jobs, "SAMPLED", 500)
    kept, adding = [], large.add_up
    monkeypatch.setattr(large, "add_up", lambda *given: kept.append(adding(*given)) or kept[-1])
    masked(small, homes, rules=[HEADS], unit="home", grouping="mdav")
    sample = kept[0].sample.to_pandas()
    sizes = homes.groupby("home").size()
    assert 300 < len(sample) < 700
    assert (sample.groupby("home").size() == sizes.loc[sample.home.unique()].sort_index()).all()
