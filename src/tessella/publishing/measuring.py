"""What is measured of a release: when it is published, and when its files are opened again.

The same plan asks the same questions of the same two tables, so the figures are the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._types import Integers, Progress
from ..frame import View
from ..kernels.cut_tree import keys_of_rows
from ..loss import measure
from ..loss.base import Summary
from ..planfile import PlanFile
from ..release import Study
from ..risk import Assessment, Attack, Estimate, assess, k_anonymity
from ..risk.assessment import Case

SHUFFLING = 2**32 - 1  # the place of the order among the seeds of a plan: no step stands there
# Records of a large table that are attacked; the reports give the interval.
ATTACKED = {"quick": 10_000, "standard": 100_000, "thorough": None}
BEFORE = 2_000  # in the original as it is
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
    usual: dict[str, Any] = {
        "schema": study.schema, "on_unpaired": "skip", "hierarchies": study.recoded or None,
        "as_read": study.as_read,
    }  # fmt: skip
    return measure(reference, released, **usual | options)


def measure_risk(
    plan: PlanFile, study: Study, released: View, order: Integers | None, *, method: Any,
    progress: Progress | None = None, **options: Any,
) -> Assessment:  # fmt: skip
    """Attack a release as the plan wishes; `options` are those of `assess` that differ."""
    wanted = {**asked_of(plan, study), **options}
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
    return assess(reference, reference, attacks=attacks, sample=BEFORE, **asked_of(plan, study))


def asked_of(plan: PlanFile, study: Study) -> dict[str, Any]:
    """Return what a plan wishes of the attacks, as options of `assess`."""
    wanted = plan.measures
    known = wanted.known if wanted.known is not None else (list(study.masked) or None)
    weighing = [c.name for c in study.schema if c.role == "weight" and not c.guessed]
    return {
        "known": known, "schema": study.schema, "random_state": 0,
        "effort": "standard" if wanted.risk == "none" else wanted.risk,
        "time_limit": wanted.time_limit, "weights": weighing[0] if weighing else None,
    }  # fmt: skip
