"""What is measured of a release: when it is published, and when its files are opened again.

The same plan asks the same questions of the same two tables, so the figures are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .._types import Integers, Progress
from ..frame import View
from ..kernels.cut_tree import keys_of_rows
from ..loss import measure
from ..loss.base import Summary
from ..planfile import PlanFile
from ..release import Study
from ..release.jobs import ROW
from ..risk import Assessment, Attack, Estimate, assess, k_anonymity
from ..risk.assessment import Case
from ..risk.estimate import wilson

if TYPE_CHECKING:
    from ..release.large_release import LargeRelease

SHUFFLING = 2**32 - 1  # the place of the order among the seeds of a plan: no step stands there
# Records of a large table that are attacked; the reports give the interval.
ATTACKED = {"quick": 10_000, "standard": 100_000, "thorough": None}
BEFORE = 2_000  # in the original as it is
# Attacks that link each record by a distance to the nearest original.
LINKING = ("euclidean", "mahalanobis", "manhattan", "gower", "learned", "learned bilinear",
           "learned choquet", "learned maxitive")  # fmt: skip
# Attacks that are also tried on the original as it is.
PLAIN = ("k-anonymity", "homogeneity", "individual risk", "prediction",
         "special uniques")  # fmt: skip


def _find_itself(case: Case) -> Estimate:
    """Link the original with itself: by any distance, right for one of as many as are equal."""
    found: Estimate = k_anonymity(case.original, known=case.known, schema=case.schema)
    return replace(found, attack="the record itself")


ITSELF = Attack(name="itself", about="identity", run=_find_itself)


def entropy_of_order(plan: PlanFile) -> Any:
    """Return what the order of the release is drawn from: the plan's seed, or the system's entropy.

    Who has it can undo the order: it stands in the confidential summary and nowhere else.
    """
    return np.random.SeedSequence(None if plan.seed is None else [plan.seed, SHUFFLING]).entropy


def draw_order(entropy: Any, n: int) -> Integers:
    """Draw the order of n released records: place i is given to the record of that row."""
    return np.random.default_rng(np.random.SeedSequence(entropy)).permutation(n).astype(np.int64)


def stream_of_order(entropy: Any) -> int:
    """Return the stream of keys by which the records of a large table are put in order."""
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> 2)


def keyed_order(entropy: Any, n: int) -> Integers:
    """Return the order that a table released in pieces has: that of the keys of its rows."""
    rows = np.arange(n)
    return np.lexsort((rows, keys_of_rows(rows, stream_of_order(entropy))))


def measure_loss(reference: View, released: View, study: Study, **options: Any) -> Summary:
    """Measure what masking has cost, by all generic measures."""
    return measure(reference, released, schema=study.schema, on_unpaired="skip", **options)


def measure_risk(
    plan: PlanFile, study: Study, released: View, order: Integers | None, *, method: Any,
    progress: Progress | None = None, **options: Any,
) -> Assessment:  # fmt: skip
    """Attack a release as the plan wishes; `options` are those of `assess` that differ."""
    wanted = {**_asked(plan, study), **options}
    reference = study.views[0]
    return assess(
        reference, released, sample=ATTACKED[wanted["effort"]], method=method,
        order=np.arange(reference.n_rows) if order is None else order, progress=progress, **wanted,
    )  # fmt: skip


def measure_risk_before(plan: PlanFile, study: Study, risk: Assessment) -> Assessment:
    """Attack the original as it is, by those attacks that need no release."""
    tried = [one.name for one in risk.tried]
    attacks: list[str | Attack] = [ITSELF, *(name for name in PLAIN if name in tried)]
    reference = study.views[0]
    return assess(reference, reference, attacks=attacks, sample=BEFORE, **_asked(plan, study))


def against_all(
    plan: PlanFile, study: Study, done: LargeRelease, risk: Assessment, rivals: Callable[..., Any]
) -> tuple[Assessment, int]:
    """Link some sampled records with all originals, in the place of those of the sample.

    `rivals` finds the originals that lie near them: see `tessella.release.rivals`. Return also how
    many records were linked.
    """
    wanted = _asked(plan, study)
    attacks = [one for one in dict.fromkeys(tried.name for tried in risk.tried) if one in LINKING]
    asked, more = rivals(
        done.task, done.wholes, sample=done.sample, released=done.sample_released,
        rows=done.sampled, effort=wanted["effort"],
    )  # fmt: skip
    if not attacks or not len(asked):
        return risk, 0
    reference, released = (pa.table(view.table.native) for view in study.views)
    near = pa.table(done.task.view(more.drop_columns([ROW])).table.native)
    original = pa.concat_tables(
        [
            reference.append_column(ROW, pa.array(done.sampled)),
            near.select(reference.column_names).append_column(ROW, more.column(ROW)),
        ],
        promote_options="permissive",
    ).unify_dictionaries()
    masked = released.append_column(ROW, pa.array(done.sampled)).take(pa.array(asked))
    found = assess(original, masked, id=ROW, attacks=attacks, standardise="original", **wanted)
    linked = {
        (one.name, one.scenario): replace(one, found=_in_sample(one.found, asked, done.n))
        for one in found.tried
    }
    tried = tuple(linked.get((one.name, one.scenario), one) for one in risk.tried)
    return replace(risk, tried=tried), len(asked)


def _in_sample(found: Any, asked: Integers, n: int) -> Any:
    """Return what was found with the rows of the sample, and what guessing among all finds."""
    note = f"{len(asked):,} sampled records linked with all {n:,} originals"
    low, high = wilson(found.value * found.n, found.n)
    return replace(
        found, low=low, high=high, baseline=min(found.baseline, 1 / n),
        attacked=asked[found.attacked], assumptions=(*found.assumptions, note),
    )  # fmt: skip


def _asked(plan: PlanFile, study: Study) -> dict[str, Any]:
    wanted = plan.measures
    known = wanted.known if wanted.known is not None else (list(study.masked) or None)
    weighing = [c.name for c in study.schema if c.role == "weight" and not c.guessed]
    return {
        "known": known, "schema": study.schema, "random_state": 0,
        "effort": "standard" if wanted.risk == "none" else wanted.risk,
        "time_limit": wanted.time_limit, "weights": weighing[0] if weighing else None,
    }  # fmt: skip
