"""A release and its original, opened again side by side by who has the plan.

Records are released in random order. Whoever holds the plan's seed, or the confidential summary
that was written with the release, can undo that order and measure the files as they were measured
when they were published; nobody else can.
"""

from __future__ import annotations

import json
import os
import secrets
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._types import Integers, Progress
from .._wording import listed
from ..auditing.manifests import check_hashes, read_manifest, refuse_other_file
from ..auditing.stored import as_audited
from ..auditing.verifying import Verification, looks_shuffled, verify
from ..exceptions import BadFileError, BadTableError, TessellaWarning
from ..frame import Table, View
from ..io import read_file
from ..loss.base import Summary
from ..loss.survey import EstimateLoss
from ..planfile import PlanFile, read_plan
from ..release import Study
from ..release.steps import OVERLAPPING, PREPARING
from ..risk import Assessment
from .measuring import draw_order, entropy_of_order, keyed_order, measure_loss, measure_risk

Place = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reopened:
    """A release on disk beside its original, record by record. **It is confidential.**

    Attributes
    ----------
    plan : PlanFile
        The plan that wrote the release.
    study : Study
        The original, prepared by the plan and not masked.
    released : View
        The release, in the order of the original.
    order : ndarray or None
        For each record of the file its row in the original; None where the order was kept.
    path : Path
        The file of the release.
    manifest : Path or None
        The manifest that was written with it, whose hash fits.
    """

    plan: PlanFile
    study: Study
    released: View
    order: Integers | None
    path: Path
    manifest: Path | None

    def loss(self, **options: Any) -> Summary:
        """Measure the information loss; `options` are those of `tessella.loss.measure`."""
        return measure_loss(
            self.study.views[0], self.released, self.masked if self._recodes else self.study,
            **options,
        )  # fmt: skip

    def estimates(self, *, columns: list[Any] | None = None) -> EstimateLoss:
        """Compare survey estimates, with their sampling errors."""
        return self.study.estimates(self.released, columns=columns)

    def risk(self, *, progress: Progress | None = None, **options: Any) -> Assessment:
        """Attack the release as the plan wishes; `options` of `tessella.risk.assess` that differ.

        What an intruder knows of the method is found by masking again.
        """
        return measure_risk(
            self.plan, self.masked, self.released, self.order, method=self._method,
            progress=progress, **options,
        )  # fmt: skip

    def verify(self) -> Verification:
        """Audit the release: hashes, k, rules, and what was lost.

        Blocks and k are those of the manifest; without one the original is masked again.
        """
        problems: list[str] = []
        promised = read_manifest(self.manifest)
        hashes = check_hashes(promised, self.path, self.manifest, problems)
        reference = self.study.views[0]
        found = verify(
            reference.table.native, self.released.table.native, schema=self.study.schema,
            rules=self.study.confrontation.rules, tolerance=self.plan.rules.tolerance,
            aligned=True, manifest=promised or None,
            hierarchies=self.masked.recoded if self._recodes else None,
            as_read=self.study.as_read,
            **({} if promised else self.masked.promised),
        )  # fmt: skip
        return replace(found, hashes=hashes, problems=(*problems, *found.problems))

    @cached_property
    def masked(self) -> Study:
        """The original after all steps of the plan: another draw, where it has no seed."""
        with warnings.catch_warnings(action="ignore", category=TessellaWarning):
            return self.study.replay(self.plan.steps)

    @property
    def _recodes(self) -> bool:
        """Whether a step of the plan releases coarser values."""
        return any("hierarchies" in step.options for step in self.plan.steps)

    @property
    def _method(self) -> Any:
        known = self.masked.disclosed
        drawn = isinstance(known, Mapping) and known.get("method") == OVERLAPPING
        return None if drawn and self.plan.seed is None else known  # this draw is not that one


def reopen(
    plan: PlanFile | Place,
    *,
    original: Place | None = None,
    release: Place | None = None,
    manifest: Place | None = None,
) -> Reopened:
    """Open a release and its original again, to measure them as when they were published.

    Parameters
    ----------
    plan : PlanFile or path
        The plan that wrote the release: kinds, roles, missing codes, units, weights, rules, what an
        intruder knows, and how the file is read.
    original, release : path, optional
        The files; otherwise those of the plan.
    manifest : path, optional
        The manifest of the release; otherwise the plan's, if it is there.

    Returns
    -------
    Reopened
        With `loss()`, `risk()` and `verify()`, which give the figures of the internal report.

    Raises
    ------
    BadFileError
        If the release is not the one that the manifest describes, or not one of this plan.
    BadTableError
        If its order is random and neither the plan's seed nor its summary says which.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tessella import datasets, publish
    >>> from tessella.planfile import parse_plan
    >>> from tessella.publishing import reopen
    >>> folder = tempfile.TemporaryDirectory()
    >>> home = pathlib.Path(folder.name)
    >>> firms = datasets.make_business_survey(60, random_state=0)
    >>> firms[["employees", "turnover"]].to_csv(home / "firms.csv", index=False)
    >>> plan = parse_plan('''
    ... seed = 1
    ... [input]
    ... file = "firms.csv"
    ... [[steps]]
    ... method = "protect"
    ... k = 3
    ... [measures]
    ... risk = "none"
    ... [output]
    ... file = "release.csv"
    ... ''', folder=home)
    >>> done = publish(plan)
    >>> reopen(plan).loss()["sse_sst"].value == done.loss["sse_sst"].value
    True
    >>> folder.cleanup()
    """
    wanted = plan if isinstance(plan, PlanFile) else read_plan(plan)
    path = Path(release) if release is not None else wanted.path(wanted.output.file)
    source = read_file(
        wanted.path(wanted.input.file) if original is None else original, **wanted.input.options
    )
    if manifest is None and wanted.output.manifest:
        beside = wanted.path(wanted.output.manifest)
        manifest = beside if beside.is_file() else None
    refuse_other_file(read_manifest(manifest), path, manifest)
    with warnings.catch_warnings(action="ignore", category=TessellaWarning):  # were given before
        study = wanted.study(source)
        for step in wanted.steps:
            if step.method in PREPARING:
                study.do(step)
    reference = study.views[0]
    written = _released(path, reference, study)
    found = [
        (order, written if order is None else Table.read(written.take(np.argsort(order))))
        for order in _orders(wanted, path, written.n_rows)
    ]
    order, table = min(found, key=lambda one: _distance(reference, View(one[1], study.schema)))
    if looks_shuffled(reference.table, table):
        raise _unknown_order(wanted, path, "another order than the plan's seed or summary gives")
    return Reopened(
        plan=wanted, study=study, released=View(table, study.schema, reference.units), order=order,
        path=path, manifest=None if manifest is None else Path(manifest),
    )  # fmt: skip


def _released(path: Path, reference: View, study: Study) -> Table:
    """Read the release as what was audited, without new numbers of units; refuse another table."""
    unit = study.schema.names("unit")
    table = Table.read(as_audited(read_file(path), reference.table))
    mine = [name for name in reference.columns if name not in unit]
    theirs = [name for name in table.columns if name not in unit]
    advice = "Give the file that this plan wrote, and the original that it read"
    if mine != theirs:
        differ = listed([name for name in (*mine, *theirs) if (name in mine) != (name in theirs)])
        problem = f"its columns are not those of the plan ({differ or 'another order'})"
        raise BadFileError(path, problem, advice)
    if table.n_rows != reference.n_rows:
        counts = f"{table.n_rows:,} records, and the original has {reference.n_rows:,}"
        raise BadFileError(path, f"it has {counts}", advice)
    return Table.read(table.select(theirs))


def _distance(reference: View, released: View) -> float:
    """Return how far released records are from those that they are paired with, a column."""
    total = 0.0
    for name in (name for name in released.columns if reference.table.has(name)):
        if reference.is_number(name) and released.is_number(name):
            before, after = reference.numbers(name), released.numbers(name)
            if np.isnan(before).all() or np.isnan(before - after).all():
                continue  # nothing to compare
            spread = np.nanmean(np.abs(before - np.nanmedian(before)))
            total += float(np.nanmean(np.abs(before - after)) / spread) if spread > 0 else 0.0
        else:
            (one, texts), (two, others) = reference.labels(name), released.labels(name)
            same = {text: at for at, text in enumerate(texts)}
            place = np.array([*(same.get(text, -2) for text in others), -1])
            total += float((one != place[two]).mean())
    return total


def _orders(plan: PlanFile, path: Path, n: int) -> Iterator[Integers | None]:
    """Yield the orders in which records may have been released: in memory, or in pieces."""
    if plan.output.order == "kept":
        yield None
        return
    entropy = entropy_of_order(plan) if plan.seed is not None else _noted_entropy(plan, path)
    yield draw_order(entropy, n)
    yield keyed_order(entropy, n)


def _noted_entropy(plan: PlanFile, path: Path) -> int:
    """Return what the order was drawn from, as the summary has it."""
    entropy = None
    if plan.output.summary and (summary := plan.path(plan.output.summary)).is_file():
        try:
            entropy = json.loads(summary.read_text("utf-8"))["confidential"].get("order_entropy")
        except (ValueError, LookupError, TypeError, AttributeError):
            advice = "Run the plan again, or delete it"
            raise BadFileError(summary, "this is no summary of a release", advice) from None
    if entropy is None:
        raise _unknown_order(
            plan, path, "random order, and the plan has neither a seed nor a summary"
        )
    return int(entropy)


def _unknown_order(plan: PlanFile, path: Path, what: str) -> BadTableError:
    """Return the error with two ways out; one alone is right: to run again draws a new order."""
    summary = f"{path.name.partition('.')[0]}-summary.json"
    seedless, seed = ", and delete the line of the seed", ""
    if plan.seed is None:
        seedless, seed = "", f"write seed = {secrets.randbits(48)} into the first line, and "
    return BadTableError(
        f"{path.name} is in {what}: it is not known which record belongs to whom, and figures of "
        "records paired by position would be wrong. If you have the summary that was written with "
        f'it, name that in [output] of the plan: summary = "{summary}"{seedless}. Do not run the '
        "plan again, which would replace it. If you have none, only another release can be "
        f"compared: {seed}run the plan again: tessella protect --plan PLAN --overwrite. Both seed "
        "and summary are as confidential as the data."
    )
