"""Publish a table that is larger than memory, on an engine: the same plan, the same promises.

Every record is masked, and every promise is counted in all of them. What is measured beyond that
(distributions, estimates, attacks, pictures) is measured in a random sample: of whole groups, whose
records are alike as they are in the release, or of units or records; reports say which.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .. import __version__
from .._output import State, is_held
from .._types import Integers
from ..engines.work import LostWorkersError, processes
from ..exceptions import BadFileError, PlanError, TessellaError
from ..io import Source
from ..io.pieces import Pieces, staged_pieces
from ..kernels.cut_tree import keys_of_rows
from ..planfile import PlanFile
from ..release import Protocol, Study
from ..release.jobs import LOOK, ROW, SAMPLED
from ..release.large import load, look, make_task, release_large
from ..release.large_release import LargeRelease
from ..release.rivals import Keeping, find_rivals
from ..reports import summarise
from ..reports.public import manifest
from ..reports.sentences import IN_WHOLE
from ..risk import Assessment, assess
from ..risk.estimate import wilson
from .measuring import (
    asked_of,
    draw_order,
    entropy_of_order,
    measure_loss,
    measure_risk,
    measure_risk_before,
    stream_of_order,
)
from .outputs import TEXTS, Publication, Steps, write_all
from .workflow import ordered_as, refuse_unknown

if TYPE_CHECKING:
    from ..engines.base import Engine
    from .workflow import Where

# Attacks that link each record by a distance to the nearest original.
LINKING = ("euclidean", "mahalanobis", "manhattan", "gower", "learned", "learned bilinear",
           "learned choquet", "learned maxitive")  # fmt: skip


def sample_of(pieces: Pieces) -> Source:
    """Read a random sample of a file."""
    share, first, found = SAMPLED / pieces.n_rows, 0, []
    for table in pieces.tables():
        keys = keys_of_rows(first + np.arange(table.num_rows), LOOK)
        found.append(table.take(pa.array(np.flatnonzero(keys < share))))
        first += table.num_rows
    return _source(pieces, pa.concat_tables(found).unify_dictionaries().combine_chunks())


@contextmanager
def opened(where: Where, plan: PlanFile, folder: Path) -> Iterator[tuple[Engine, int, Any]]:
    """Begin to work on an engine, and yield the seed and the entropy of the order with it.

    Both are kept with the work, so that who resumes it has the same. The folder goes when all is
    done.
    """
    seed, entropy = plan.seed, entropy_of_order(plan)
    if where.engine not in (None, "local"):
        from ..engines.spark import SparkEngine

        session = None if isinstance(where.engine, str) else where.engine
        spark = SparkEngine(session, master=where.master)
        try:
            yield spark, _seed(seed), entropy
        finally:
            spark.close()
        return
    from ..engines.local import LocalEngine

    stated = folder / "task.json"
    if is_held(folder):
        raise BadFileError(folder, "another run works in it", "Wait until that has ended")
    if not where.resume:
        shutil.rmtree(folder, ignore_errors=True)
    elif seed is None and stated.exists():
        known = json.loads(stated.read_text())["task"]
        seed, entropy = known["seed"], int(known["order"])
    seed = _seed(seed)
    text = plan.model_copy(update={"output": plan.output.model_copy(update={"file": "x"})})
    stating = text.to_toml().encode()
    if plan.rules.file:  # it may change between two runs of one plan
        stating += plan.path(plan.rules.file).read_bytes()
    said = hashlib.blake2b(stating, digest_size=16).hexdigest()
    whole = {"plan": said, "seed": seed, "order": str(entropy), "tessella": __version__}
    engine = LocalEngine(folder, whole, n_jobs=processes(where.memory))
    finished = True  # a plan that is refused would be so again
    try:
        yield engine, seed, entropy
    except BaseException as error:
        kept = (BadFileError, LostWorkersError)  # such as a full disk
        finished = isinstance(error, TessellaError) and not isinstance(error, kept)
        raise
    finally:
        engine.close()
        if finished:
            shutil.rmtree(folder, ignore_errors=True)


def _seed(given: int | None) -> int:
    return secrets.randbits(128) if given is None else given


@contextmanager
def prepared(
    plan: PlanFile, paths: Mapping[str, Path], found: Mapping[Path, State], pieces: Pieces,
    where: Where, steps: Steps, caught: list[Any], pictures: bool,
) -> Iterator[Callable[[bool], Publication]]:  # fmt: skip
    """Compute everything on an engine; yield what is left to be done, which is to write it."""
    if plan.output.units != "left out":
        raise PlanError("Units of a table larger than memory cannot be renumbered. Leave them out.")
    name = paths["release"].name
    with opened(where, plan, paths["release"].with_name(f".{name}.work")) as at:
        engine, seed, entropy = at
        with steps.step("read", file=plan.input.file) as account:
            table, form = load(engine, pieces.tables())
            n = sum(table.sizes.values())
            size = f"{n:,} records in {len(pieces.columns)} columns"
            account.append(f"{size}, in pieces, by the {engine.name} engine.")
        with steps.step("check", rules=len(plan.read_rules())) as account:
            sample = look(engine, table, form)
            study = plan.study(_source(pieces, sample))
            refuse_unknown(plan, pieces)
            shuffled = plan.output.order == "shuffled"
            task = make_task(
                form, study.schema, study.rules, plan.steps, sample, tolerance=study.tolerance,
                seed=seed, order=stream_of_order(entropy) if shuffled else None,
            )  # fmt: skip
            account.append(f"{len(study.rules)} rules.")
        masking = plan.steps[-1]
        began = perf_counter()
        steps.announce(masking.name or masking.method)
        attacked = plan.measures.risk != "none"
        worker = Keeping(engine, table) if attacked else engine
        done = release_large(worker, table, task, report=partial(_report, steps, masking))
        seconds = perf_counter() - began
        study = done.study(plan.read_rules(), plan.steps, seconds=seconds, seed=plan.seed)
        for entry in study.protocol:
            steps.keep(entry)
        rivals = partial(find_rivals, engine, table) if attacked else None
        yield _measured(
            plan, paths, found, pieces, steps, caught, pictures, done, study, entropy, rivals
        )


def _report(steps: Steps, step: Any, at: int, of: int, part: str) -> None:
    steps.within(step.name or step.method, at, of, part)


def _source(pieces: Pieces, table: pa.Table) -> Source:
    return Source(
        table=table, metadata=pieces.metadata, how=pieces.how, format=pieces.format,
        path=pieces.path,
    )  # fmt: skip


def _measured(
    plan: PlanFile, paths: Mapping[str, Path], found: Mapping[Path, State], pieces: Pieces,
    steps: Steps, caught: list[Any], pictures: bool, done: LargeRelease, study: Study,
    entropy: Any, rivals: Callable[..., Any] | None,
) -> Callable[[bool], Publication]:  # fmt: skip
    """Judge and measure the sample, and put what was counted in all records in its place."""
    with steps.step("audit", k=done.task.plan.k) as account:
        release = done.with_counts(study.release())
        ordered_as(plan, release)  # warns of an order that is kept
        broken = f"{done.breaking:,} records of the original break a rule."
        whole = IN_WHOLE[done.task.sampled_by]
        account.append(
            f"Passed; all {done.n:,} records counted: {done.n_groups:,} groups, the smallest "
            f"of {done.smallest}; {broken if len(study.rules) else 'no rules.'} Measured below "
            f"are {done.sample.num_rows:,} records{whole}, drawn at random."
        )
    loss = None
    if plan.measures.loss:
        with steps.step("measure loss"):
            loss = measure_loss(*study.views, study)
    order = draw_order(entropy, done.sample.num_rows) if plan.output.order == "shuffled" else None
    risk = before = None
    if rivals is not None:
        with steps.step("measure risk", effort=plan.measures.risk) as account:
            risk = measure_risk(plan, study, study.views[1], order, method=study.disclosed)
            risk, n = _against_all(plan, study, done, risk, rivals)
            account.append(
                f"{len(risk.tried)} attacks, on a sample; {n:,} of its records are linked with all "
                f"{done.n:,} originals."
            )
        with steps.step("measure risk of the original"):
            before = measure_risk_before(plan, study, risk)
    with steps.step("report", order=plan.output.order):
        summary = summarise(
            study, release, plan=plan, source=_source(pieces, done.sample), loss=loss, risk=risk,
            risk_before=before, protocol=Protocol(tuple(steps.entries)), order=plan.output.order,
            warned=(*dict.fromkeys(str(one.message) for one in caught), *done.dominance),
            title=paths["release"].name, pictures=pictures and "internal report" in paths,
            n_records=done.n, sampled_by=done.task.sampled_by,
        )  # fmt: skip
        if plan.output.order == "shuffled" and plan.seed is None:  # see `reopen`
            summary["confidential"]["order_entropy"] = str(entropy)
        texts = {what: TEXTS[what](summary) for what in paths if what in TEXTS}

    def write(overwrite: bool) -> Publication:
        with steps.step("write", files=len(paths)) as account:
            staged = staged_pieces(
                (done.task.released.dress(rows) for rows in done.rows.tables()), paths["release"],
                like=pieces, keep_labels=plan.output.keep_labels, overwrite=overwrite,
            )  # fmt: skip
            written = write_all(
                staged, paths, texts, manifest=partial(manifest, summary), found=found,
                overwrite=overwrite,
            )  # fmt: skip
            account += map(str, written.statements)
        steps.announce("done")
        return Publication(
            paths=dict(paths), release=release, loss=loss, risk=risk, risk_before=before,
            protocol=Protocol(tuple(steps.entries)), summary=summary, written=written,
            warnings=tuple(summary["confidential"]["warnings"]),
        )  # fmt: skip

    return write


def _against_all(
    plan: PlanFile, study: Study, done: LargeRelease, risk: Assessment, rivals: Callable[..., Any]
) -> tuple[Assessment, int]:
    """Link some sampled records with all originals, in the place of those of the sample.

    `rivals` finds the originals that lie near them: see `tessella.release.rivals`. Return also how
    many records were linked.
    """
    wanted = asked_of(plan, study)
    attacks = [one for one in dict.fromkeys(tried.name for tried in risk.tried) if one in LINKING]
    if not attacks:
        return risk, 0
    asked, more = rivals(
        done.task, done.wholes, sample=done.sample, released=done.sample_released,
        rows=done.sampled, effort=wanted["effort"],
    )  # fmt: skip
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
    """Return what was found with the rows of the sample, and what guessing among all finds.

    What a learned distance finds in shuffled records is its baseline, and stays.
    """
    note = f"{len(asked):,} sampled records linked with all {n:,} originals"
    low, high = wilson(found.value * found.n, found.n)
    baseline = found.baseline if hasattr(found, "held_out") else 1 / n
    return replace(
        found, low=low, high=high, baseline=baseline,
        attacked=asked[found.attacked], assumptions=(*found.assumptions, note),
    )  # fmt: skip
