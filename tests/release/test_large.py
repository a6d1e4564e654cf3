"""Tables in pieces: what few records have, in small pieces, shards, parts and samples."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tessella
from tessella import protect
from tessella.engines import local
from tessella.exceptions import BadFileError, BadTableError, RefusedError, TessellaError
from tessella.grouping.cells import search_in_cells
from tessella.publishing import reopen
from tessella.release import jobs, large, rivals
from tessella.risk import link

N = 1_600
ONE = "500MB"


@pytest.fixture
def amounts():
    return np.random.default_rng(0).lognormal(3, 0.3, N)


def masked(home, columns, **options):
    pq.write_table(pa.table(columns), home / "t.parquet", row_group_size=333)
    return protect(home / "t.parquet", k=4, memory=ONE, random_state=1, **options)


def publish(path, **given):
    """Without pictures, which take longest."""
    return tessella.publish(path, pictures=False, **given)


@pytest.mark.parametrize("rare", ["whole", "boolean"])
def test_rare_nulls_are_counted_in_all_parts_of_a_release(small, amounts, rare):
    """Parts of a release without nulls are hashed as those that have some."""
    random = np.random.default_rng(1)
    values = random.integers(0, 100, N) if rare == "whole" else random.random(N) < 0.3
    column = pa.array(values, mask=np.arange(N) < 6)
    release = masked(small, {"a": column, "b": amounts})
    found = pd.read_parquet(release.table)
    assert found.groupby(["a", "b"], dropna=False).size().min() >= 4
    assert found.a.isna().sum() == 6


def test_hashes_are_those_of_the_cells_alone():
    """Nulls elsewhere in a column change no hash; null, zero, NaN and "" differ."""
    kinds = {
        "whole": pa.array([0, None, 5]), "float": pa.array([0.0, None, np.nan], from_pandas=False),
        "boolean": pa.array([False, None, True]), "text": pa.array(["", None, "a"]),
    }  # fmt: skip
    for name, column in kinds.items():
        table = pa.table({name: column})
        hashed = jobs.hash_rows(table)
        assert len(np.unique(hashed, axis=0)) == 3
        for at in range(3):
            assert (jobs.hash_rows(table.slice(at, 1)) == hashed[at]).all()


@pytest.mark.parametrize("wish", ["refuse", "enlarge"])
def test_dominance_is_counted_in_all_records(small, amounts, wish):
    """One record in 1,600, which is not among the hundred that are looked at."""
    amounts[1_234] = 1e7
    with pytest.raises(RefusedError, match=r"1 record can be .* in 'b'"):
        masked(small, {"a": np.arange(N) % 97, "b": amounts}, on_dominance=wish)


def test_enlarged_groups_are_sampled_whole(small, amounts, monkeypatch):
    """Of an enlarged group all records are compared, or none."""
    monkeypatch.setattr(jobs, "SAMPLED", 1_200)
    monkeypatch.setattr(large, "search_in_cells", search_in_cells)  # in one shard
    kept, counting = [], large.LargeRelease.with_counts
    monkeypatch.setattr(
        large.LargeRelease,
        "with_counts",
        lambda own, found: kept.append(own) or counting(own, found),
    )
    random = np.random.default_rng(2)
    rows = random.choice(N, 60, replace=False)
    amounts[rows] *= random.lognormal(3, 0.5, 60)
    release = masked(small, {"a": np.arange(N) % 97, "b": amounts}, on_dominance="enlarge")
    assert release.audit.dominated == 0
    sizes = pd.read_parquet(release.table).groupby(["a", "b"]).size()
    sampled = kept[0].sample_released.to_pandas().groupby(["a", "b"]).size()
    assert len(sampled) > 10
    assert (sampled == sizes.loc[sampled.index]).all()


def test_a_folder_with_files_is_refused(small, amounts):
    """They would be taken for parts of the release: the original itself, or an older one."""
    (small / "in").mkdir()
    pq.write_table(pa.table({"a": amounts}), small / "in" / "t.parquet")
    for folder in (small / "in", small / "in" / "t.parquet"):
        with pytest.raises(BadFileError, match="not empty"):
            protect(small / "in", k=4, memory=ONE, folder=folder)
    assert [path.name for path in (small / "in").iterdir()] == ["t.parquet"]
    (small / "out").mkdir()
    release = protect(small / "in", k=4, memory=ONE, folder=small / "out")
    assert pd.read_parquet(small / "out").groupby("a").size().min() >= 4
    assert release.table == small / "out"


def test_ordered_categories_that_do_not_occur(small, amounts):
    codes = pa.array(np.random.default_rng(3).integers(0, 3, N), pa.int8())
    names = pa.array(["low", "never", "mid", "high"])
    column = pa.DictionaryArray.from_arrays(codes, names, ordered=True)
    found = pd.read_parquet(masked(small, {"a": column, "b": amounts}).table)
    assert found.groupby(["a", "b"], observed=True).size().min() >= 4


def test_a_shard_of_which_nothing_is_sampled(small, amounts):
    """The first stratum is small, and a shard of its own."""
    strata = np.where(np.arange(N) < 5, "a", "b")
    found = masked(small, {"s": strata, "a": amounts, "b": amounts[::-1]}, strata="s")
    assert pd.read_parquet(found.table).groupby(["s", "a", "b"]).size().min() >= 4


PLAN = """
seed = 1
[input]
file = "t.parquet"
[rules]
file = "rules.txt"
{recode}
[[steps]]
method = "protect"
k = 4
[measures]
risk = "none"
[output]
file = "out.parquet"
manifest = "manifest.json"
order = "kept"
"""


def write_plan(home, rules, recode=""):
    (home / "rules.txt").write_text(rules)
    (home / "plan.toml").write_text(PLAN.format(recode=recode))
    return home / "plan.toml"


@pytest.mark.parametrize("first", [100, 1_500])
def test_intervals_that_few_records_have(small, amounts, first):
    """Neither the sample nor other pieces have them."""
    amounts[first : first + 8] = 777.5
    pq.write_table(pa.table({"a": amounts, "b": amounts[::-1]}), small / "t.parquet")
    recode = '[[steps]]\nmethod = "recode"\ncolumn = "a"\nbreaks = [20, 500]'
    publish(write_plan(small, "b >= 0\n", recode), engine="local", memory=ONE)
    found = pd.read_parquet(small / "out.parquet")
    assert not found.a.isna().any()
    assert (found.a == "500 or more").sum() >= 4
    assert found.groupby(["a", "b"], observed=True).size().min() >= 4


def test_work_under_other_rules_is_not_resumed(small, amounts, monkeypatch):
    """The plan names the file of the rules, which was changed in between."""
    pq.write_table(pa.table({"a": amounts, "b": amounts * 2}), small / "t.parquet")
    path = write_plan(small, "a <= b\n")
    with monkeypatch.context() as context:
        context.setattr("tessella.publishing.large.summarise", None)
        with pytest.raises(TypeError):
            publish(path, engine="local", memory=ONE)
    write_plan(small, f"a <= {np.sort(amounts)[-12]}\n")
    with pytest.raises(BadFileError, match="another task"):
        publish(path, engine="local", memory=ONE, resume=True)


def test_what_is_published_is_counted_in_all_records(small, amounts):
    pq.write_table(pa.table({"a": amounts, "b": amounts[::-1]}), small / "t.parquet")
    done = publish(write_plan(small, "a >= 0\n"), engine="local", memory=ONE)
    found = pd.read_parquet(small / "out.parquet").groupby(["a", "b"]).size()
    (block,) = done.summary["public"]["blocks"]
    assert (block["combinations"], block["smallest"]) == (len(found), found.min())
    assert done.release.audit.n_records == N
    assert any("order of the original" in text for text in done.warnings)
    amounts[3] = 1e7
    pq.write_table(pa.table({"a": amounts, "b": amounts[::-1]}), small / "t.parquet")
    done = publish(small / "plan.toml", engine="local", memory=ONE, overwrite=True)
    assert any("disclose" in text and "'a'" in text for text in done.warnings)


def test_an_order_that_was_drawn_is_kept_with_the_work(small, amounts, monkeypatch):
    """Some shards were masked before it was stopped, others after."""
    pq.write_table(pa.table({"a": amounts, "b": amounts[::-1]}), small / "t.parquet")
    path = write_plan(small, "a >= 0\n")
    text = path.read_text().replace("seed = 1\n", "")
    path.write_text(text.replace('order = "kept"', 'summary = "summary.json"'))
    do, done = local._do, []

    def stop(job, given):
        if "mask" in given[0].name:
            done.append(given)
        if len(done) > 3:
            raise KeyboardInterrupt
        do(job, given)

    with monkeypatch.context() as context:
        context.setattr(local, "_do", stop)
        with pytest.raises(KeyboardInterrupt):
            publish(path, engine="local", memory=ONE)
    release = publish(path, engine="local", memory=ONE, resume=True).release
    assert 100 * reopen(path).loss()["sse_sst"].value == pytest.approx(release.loss)


def test_units_are_counted_up_to_the_k_of_suppression(small, amounts):
    """It is larger than that of the groups."""
    random, n = np.random.default_rng(5), 800
    columns = {
        "who": random.integers(0, 300, n),
        "a": pa.array(amounts[:n].copy(), mask=random.random(n) < 0.03),
        "b": pa.array(amounts[-n:].copy(), mask=random.random(n) < 0.03),
    }
    pq.write_table(pa.table(columns), small / "t.parquet")
    steps = '[[steps]]\nmethod = "suppress"\nk = 12\n[columns.who]\nkind = "nominal"\nrole = "unit"'
    for name in "ab":
        steps += f'\n[columns.{name}]\nkind = "continuous"\nrole = "quasi-identifier"'
    path, found = write_plan(small, "b >= 0\n", steps), []
    for engine in ("memory", "local"):
        publish(path, engine=engine, memory=ONE, overwrite=True)
        found.append(pd.read_parquet(small / "out.parquet").isna())
    pd.testing.assert_frame_equal(*found)
    assert (found[0].sum() > [column.null_count for column in list(columns.values())[1:]]).any()


def test_no_copy_of_the_original_is_left_by_a_plan_that_is_refused(small, amounts):
    pq.write_table(pa.table({"a": amounts, "b": amounts[::-1]}), small / "t.parquet")
    path = write_plan(small, "a >= 0\n")
    path.write_text(path.read_text().replace("k = 4", "k = 4\noptions = {time_limit = 3}"))
    with pytest.raises(TessellaError):
        publish(path, engine="local", memory=ONE)
    assert not list(small.glob(".*work"))


@pytest.mark.parametrize("name", ["tessella row", "tessella key"])
def test_columns_named_as_bookkeeping(small, amounts, name):
    """A bug once met: an error of pyarrow about two fields of one name."""
    with pytest.raises(BadTableError, match=name):
        masked(small, {name: np.arange(N) % 97 + 0.5, "b": amounts})


def test_strata_whose_names_read_the_same_are_two(small, amounts):
    """A bug once met: 's=1, t=2, t=3' is ('1, t=2', '3') and ('1', '2, t=3')."""
    half = np.arange(N) % 2 == 0
    table = {"s": np.where(half, "1, t=2", "1"), "t": np.where(half, "3", "2, t=3"), "b": amounts}
    masked(small, table, strata=["s", "t"])


def test_counts_of_edit_refuse_are_those_of_the_table(small, amounts):
    other = amounts * 2
    other[::100] = 0
    with pytest.raises(TessellaError, match=r"^16 records of the table"):
        masked(small, {"a": amounts, "b": other}, rules=["a <= b"], edit="refuse")


@pytest.mark.parametrize("columns", [2, 5])
def test_sampled_records_are_linked_with_all_originals(small, columns, monkeypatch):
    """Against all records in memory; within the sample alone many more would be found."""
    for module in (jobs, large):
        monkeypatch.setattr(module, "SAMPLED", 500)
    names = list("abcde")[:columns]
    table = pd.DataFrame(np.random.default_rng(5).normal(size=(N, columns)), columns=names)
    table.to_parquet(small / "t.parquet")
    path = write_plan(small, "a >= -100\n")
    path.write_text(path.read_text().replace('risk = "none"', 'risk = "quick"'))
    done = publish(path, engine="local", memory=ONE)
    found = done.risk["euclidean"]
    released = pd.read_parquet(small / "out.parquet")[names]
    everyone = link(table, released, standardise="original")
    assert found.baseline == pytest.approx(1 / N)
    assert 300 < found.n < 700
    assert found.low <= everyone.value <= found.high
    some = np.random.default_rng(0).choice(N, 500, replace=False)
    alone = link(table.iloc[some], released.iloc[some], standardise="original")
    assert alone.value > found.high


def test_rivals_are_all_originals_that_are_nearer_than_the_own_one():
    """By plain distances between all pairs; ties at the reach count."""
    random = np.random.default_rng(2)
    points, sought = random.integers(0, 30, (400, 2)).astype(float), random.normal(15, 6, (40, 2))
    reach = random.uniform(0.5, 5, 40)
    task = SimpleNamespace(view=lambda rows: rows, plan=None)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(rivals, "points_of", lambda rows, wholes: points)
        given = [pa.table({"x": points[:, 0]})]
        made = rivals.nearest_originals(task, None, sought, reach, 0, given)
    got = set(jobs.unpack(made.facts["rivals"]).column(jobs.ROW).to_pylist())
    away = np.sqrt(((sought[:, None] - points[None]) ** 2).sum(axis=2))
    near = away <= reach[:, None]
    few = near.sum(axis=1) <= rivals.NEAREST
    assert few.any()
    assert not few.all()
    assert got >= set(np.flatnonzero(near[few].any(axis=0)).tolist())
    assert got <= set(np.flatnonzero(near.any(axis=0)).tolist())
