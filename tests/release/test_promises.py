"""k is shown where it is counted in the released table, and nowhere else."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from tessella import Schema, Study, publish
from tessella.exceptions import RefusedError
from tessella.planfile import parse_plan
from tessella.reports import external_report, internal_report, summarise
from tessella.reports.public import manifest

FUZZY = "fuzzy microaggregation"
PLAN = """
seed = 3
[input]
file = "people.csv"
[[steps]]
method = "fuzzy microaggregation"
k = 5
{more}
[measures]
risk = "none"
[output]
file = "release.csv"
external_report = "report.html"
internal_report = "internal.html"
manifest = "manifest.json"
summary = "summary.json"
"""


def people(n: int = 150, seed: int = 0) -> pd.DataFrame:
    """Ordinary records and one far from all others."""
    chance = np.random.default_rng(seed)
    table = pd.DataFrame({"age": chance.normal(50, 10, n), "income": chance.lognormal(3, 1, n)})
    table.loc[0] = [500.0, 5000.0]
    return table


def texts_of(study: Study) -> dict[str, str]:
    release = study.release()
    summary = summarise(study, release, pictures=False)
    return {
        "release": str(release), "protocol": str(study.protocol), "manifest": manifest(summary, []),
        "external": external_report(summary), "internal": internal_report(summary),
        "summary": json.dumps(summary),
    }  # fmt: skip


def posteriors(original: np.ndarray, released: np.ndarray, m2: float) -> np.ndarray:
    """By Bayes, record by record: P(i | c) = u_ic / sum_j u_jc, degrees to the released centres."""
    X = (original - original.mean(axis=0)) / original.std(axis=0)
    Y = (released - original.mean(axis=0)) / original.std(axis=0)
    centres = np.unique(Y, axis=0)
    squares = ((X[:, None, :] - centres[None]) ** 2).sum(axis=2) + 1e-300
    logs = -np.log(squares) / (m2 - 1)
    degrees = np.exp(logs - logs.max(axis=1, keepdims=True))
    degrees /= degrees.sum(axis=1, keepdims=True)
    own = (Y[:, None, :] == centres[None]).all(axis=2).argmax(axis=1)
    return degrees[np.arange(len(X)), own] / degrees.sum(axis=0)[own]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_step_of_fuzzy_microaggregation_guarantees_k(seed):
    table = people(seed=seed)
    release = Study(table, random_state=seed).do(FUZZY, k=5).release()
    assert release.table.groupby(list(table)).size().min() >= 5  # counted by another library
    assert release.audit.k == 5
    assert not release.probabilistic
    # Alone near to its centre, the far record was the centre: released as it is, five times.
    assert release.table["income"].max() < 2 / 3 * 5000


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_the_guarantee_every_text_is_probabilistic_and_shows_no_k(seed):
    table = people(seed=seed)
    study = Study(table, random_state=seed).do(FUZZY, k=5, at_least_k=False)
    release = study.release()
    assert release.table.groupby(list(table)).size().min() < 5
    assert release.audit.k is None
    (found,) = release.probabilistic
    # He also uses that each original is the source of one record; without that, by hand:
    alone = (posteriors(table.to_numpy(), release.table.to_numpy(), 1.2) > 1 / 5).sum()
    assert found.records == 150
    assert abs(found.named - alone) <= 0.1 * 150
    assert found.named > 0
    for what, text in texts_of(study).items():
        if what != "protocol":
            assert "robabilistic" in text, what
            named = f"names {found.named} of 150 records" in text
            assert named == (what not in ("manifest", "external")), what  # a figure of risk
        for shown in ("k = 5", "k=5", '"k": 5,\n'):
            assert shown not in text, (what, shown)


def test_a_far_record_alone_at_its_centre_is_named_surely():
    table = people()
    release = Study(table, random_state=1).do(FUZZY, k=5, at_least_k=False).release()
    by_hand = posteriors(table.to_numpy(), release.table.to_numpy(), 1.2)
    assert by_hand[0] > 0.99
    assert release.probabilistic[0].named >= 1


def test_a_plan_has_the_guarantee_unless_it_gives_it_up(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    done = publish(parse_plan(PLAN.format(more=""), folder=tmp_path))
    told = json.loads((tmp_path / "manifest.json").read_text())
    assert told["k"] == 5
    assert told["steps"][0]["options"] == {"at_least_k": True, "k": 5, "m2": 1.2}
    assert "Smallest group: 5 records (k = 5)." in str(done)
    released = pd.read_csv(tmp_path / "release.csv")
    assert released.groupby(list(released)).size().min() >= 5
    free = publish(
        parse_plan(PLAN.format(more="at_least_k = false"), folder=tmp_path), overwrite=True
    )
    told = json.loads((tmp_path / "manifest.json").read_text())
    assert told["k"] is None
    assert told["probabilistic"] == [
        {"aimed_size": 5, "text": free.release.probabilistic[0].public}
    ]
    assert told["steps"][0]["options"] == {
        "at_least_k": False, "aimed_size": 5, "m2": 1.2,
    }  # fmt: skip
    assert "Probabilistic" in str(free)
    assert "Smallest group" not in str(free)
    for name in ("report.html", "internal.html", "summary.json"):
        assert "Probabilistic" in (tmp_path / name).read_text()


STEPS = {
    "microaggregation": [("microaggregation", {"k": 4, "grouping": "mdav"})],
    "individual ranking": [("individual ranking", {"k": 4})],
    "its own default": [("individual ranking", {})],
    "in blocks": [("microaggregation", {"k": 4, "blocks": 1, "grouping": "mdav"})],
    "in strata": [("microaggregation", {"k": 4, "strata": ["sex"], "grouping": "mdav"})],
    "lost by noise": [("microaggregation", {"k": 4}), ("noise", {"amount": 0.1})],
    "noise": [("noise", {"amount": 0.1})],
    "rank swapping": [("rank swapping", {"percent": 10})],
    "shuffling": [("shuffling", {})],
    "rounding": [("rounding", {"base": 5})],
    "coding": [("coding", {"top": 0.1, "replace": "mean", "k": 4})],
    "suppress": [("suppress", {"k": 4, "columns": ["age", "income"]}), ("noise", {"amount": 0.1})],
    "protect": [("protect", {"k": 4, "grouping": "mdav"})],
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.filterwarnings("ignore::tessella.exceptions.SmallJointGroupsWarning")
def test_whatever_the_method_k_is_shown_where_it_is_counted(name):
    """By another library: where a text shows k, so many records are alike in each block."""
    table = people(90)
    if name == "in strata":
        table["sex"] = list("mf") * 45
    study = Study(table, random_state=2)
    for method, options in STEPS[name]:
        study.do(method, **options)
    k, texts = study.release().audit.k, texts_of(study)
    assert (k is not None) == (name in ("microaggregation", "individual ranking", "its own default",
                                        "in blocks", "in strata", "protect"))  # fmt: skip
    for what, text in texts.items():
        shown = any(sign in text for sign in ("k = 4", "k=4", '"k": 4', "k = 3", "k=3", '"k": 3'))
        if k is None or what != "release":  # which shows how many are below k
            assert shown == (k is not None), what
    if k is not None:
        within = ["sex"] if name == "in strata" else []
        for block in study.promise.blocks:
            assert study.table.groupby([*within, *block]).size().min() >= k


def test_records_that_rules_move_keep_k_or_are_refused():
    """Equal records move to equal ones, and the audit counts again."""
    chance = np.random.default_rng(1)
    table = pd.DataFrame({"net": chance.integers(10, 99, 60), "tax": chance.integers(1, 20, 60)})
    table["gross"] = table.net + table.tax
    study = Study(table, rules="net + tax == gross", random_state=0).do(FUZZY, k=4)
    try:
        release = study.release()
    except RefusedError as error:
        pytest.fail(str(error))
    assert (release.table.net + release.table.tax == release.table.gross).all()
    assert release.table.groupby(list(table)).size().min() >= 4


def people_with_keys() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "town": random.choice(["Reus", "Valls", "Vic", "Salou"], 120),
            "job": random.choice(["clerk", "nurse", "cook"], 120),
            "pay": random.lognormal(7, 0.5, 120).round(),
        }
    )


def test_keys_that_are_masked_after_protect_are_counted_too():
    """What protect promises of its columns says nothing about the keys of a later step."""
    study = Study(people_with_keys(), random_state=1).do("protect", k=5, columns=["pay"])
    study.do("local suppression", k=2, columns=["town", "job"])
    promise = study.promise
    assert promise is not None
    assert (promise.k, promise.blocks) == (2, [["pay"], ["town", "job"]])
    audit = study.release().audit
    assert audit.k == 2
    assert any("Over all blocks together" in note for note in audit.notes)


def test_keys_that_are_masked_before_protect_stay_under_one_k():
    study = Study(people_with_keys(), random_state=1)
    study.do("local suppression", k=5, columns=["town", "job"]).do("protect", k=5)
    promise = study.promise
    assert promise is not None
    assert (promise.blocks, promise.strata) == ([["pay"]], ("town", "job"))


def test_a_break_at_the_largest_value_is_not_published():
    """The manifest tells how intervals were made, but for an end that one record has."""
    ages = pd.DataFrame({"age": [*range(1, 8), 60] * 3})
    ages.loc[0, "age"] = 83
    schema = Schema.guess(ages).override({"age": {"kind": "nominal"}})
    study = Study(ages, schema=schema, random_state=0)
    study.do("recoding", k=3, hierarchies={"age": {"breaks": [[5, 83], [5]]}})
    summary = summarise(study, study.release(), pictures=False)
    assert "83" not in manifest(summary, [])
    (step,) = summary["public"]["steps"]
    assert step["options"]["hierarchies"] == {"age": {"breaks": [[5, "withheld"], [5]]}}
