"""`publish`: one call from a plan file to a release on disk, audited, measured and reported.

What publishing gives: where everything is, and all that was found.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._clock import reported_to
from .._output import State, toml_key, toml_value
from .._parameters import memory_of
from .._progress import shows_progress
from .._types import Integers, Name, Progress
from ..auditing.count import describe_dominance
from ..auditing.stored import confirm_stored
from ..exceptions import (
    BadOptionError,
    InterruptedWarning,
    PlanError,
    TessellaError,
    TessellaWarning,
    UnknownColumnError,
)
from ..explore.candidate import steps_to_toml
from ..frame import Table
from ..grouping.cells import LARGE
from ..io import Source, read_file
from ..io.files import staged_file
from ..parallel import plain_memory
from ..planfile import PlanFile, read_plan
from ..planfile.hints import reword
from ..release import Protocol, Release, Study
from ..release.dominance import DominatedError
from ..release.roles import refuse_unique, refuse_unmasked, tells_apart
from ..reports import summarise
from ..reports.public import manifest
from ..risk import Assessment
from .measuring import (
    draw_order,
    entropy_of_order,
    measure_loss,
    measure_risk,
    measure_risk_before,
)
from .outputs import TEXTS, Publication, Steps, refuse_places, write_all

if TYPE_CHECKING:
    from ..io.pieces import Pieces

ENGINES = ("memory", "local", "spark")
IN_PIECES = (".parquet", ".csv", ".tsv", ".txt", ".feather", ".arrow", ".ipc", ".gz", ".zst", "")
# What a table takes in memory on its way through a plan, in bytes on the disk: 1,000,000 x 20 of
# mixed columns, 137 MB as CSV, took 3.2 GB.
WORKING = {".parquet": 60, ".feather": 12, ".arrow": 12, ".ipc": 12, "": 60}
USUAL = 24
SHARE = 0.5  # of the memory that is free, which a plan may take


@dataclass(frozen=True, kw_only=True, eq=False)
class Where:
    """Which engine a plan is run on, and what it may take."""

    engine: Any = None  # a name, a session of Spark, or None: chosen by the size of the table
    memory: int | None = None  # bytes
    master: str | None = None  # of Spark
    resume: bool = False

    @classmethod
    def of(cls, engine: Any, memory: Any, master: str | None, resume: bool) -> Where:
        """Check what was asked for."""
        if isinstance(engine, str) and engine not in ENGINES:
            raise BadOptionError("engine", engine, f"one of {', '.join(ENGINES)}")
        if master is not None and engine not in (None, "spark"):
            raise BadOptionError("master", master, "nothing: it is for engine='spark'")
        if engine is None and master is not None:
            engine = "spark"
        size = None if memory is None else memory_of(memory)
        return cls(engine=engine, memory=size, master=master, resume=resume)

    def open(self, path: Path, options: Mapping[str, Any]) -> Pieces | None:
        """Open a file in pieces, or not, where it is to be read into memory."""
        if self.engine == "memory" or not path.exists():
            return None
        if self.engine is None and self._fits(path):
            return None
        if path.suffix.lower() not in IN_PIECES:
            if self.engine is None:
                return None
            raise PlanError(
                f"{path.name} can be read into memory only. Convert it to Parquet or CSV, or "
                "leave out the engine."
            )
        from ..io.pieces import open_pieces

        found = open_pieces(path, **options)
        return found if found.n_rows > LARGE else None  # one cell: the same bytes in memory

    def _fits(self, path: Path) -> bool:
        size = sum(one.stat().st_size for one in (path.rglob("*") if path.is_dir() else [path]))
        limit = SHARE * free_memory() if self.memory is None else self.memory
        return size * WORKING.get(path.suffix.lower(), USUAL) < limit


def read_or_sample(path: Path, where: Where, **options: Any) -> tuple[Source, bool]:
    """Read a file, or a random sample of one that is too large; return whether that is all."""
    pieces = where.open(path, options)
    if pieces is None:
        return read_file(path, **options), True
    from .large import sample_of

    return sample_of(pieces), False


def free_memory() -> int:
    """Return the bytes of memory that are free, as far as the system tells."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    if hasattr(os, "sysconf"):
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return 4 << 30


@shows_progress
def publish(
    plan: PlanFile | str | Path,
    *,
    source: Source | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
    overwrite: bool = False,
    pictures: bool = True,
    engine: Any = None,
    memory: int | str | None = None,
    master: str | None = None,
    resume: bool = False,
) -> Publication:
    """Run a plan: read, check, mask, audit, measure, and write the release with its reports.

    Parameters
    ----------
    plan : PlanFile or path
        The plan; see `tessella.planfile`.
    source : Source, optional
        The table, if it was already read; otherwise the plan's input is read.
    folder : path, optional
        Where the files are written; by default the folder of the plan.
    progress : bool or callable, optional
        True shows a bar, in a notebook too. A callable is called with the number of steps done,
        their number, and the name of the next; within long steps (searching, attacking) again,
        with how far it is and about how long it will take.
    overwrite : bool, default False
        Whether files that exist may be replaced. Otherwise the call is refused before anything is
        read.
    pictures : bool, default True
        Whether the internal report has pictures.
    engine : {"memory", "local", "spark"} or SparkSession, optional
        Where the plan is run: in memory; in pieces, by processes of this machine; by Spark. By
        default in memory, and in pieces where the table would take more than half of what is free.
    memory : int or str, optional
        Memory that the local engine may use, in bytes or as "2GB"; also what counts as too large.
    master : str, optional
        The master of Spark, such as "local[2]", if no session is given or active.
    resume : bool, default False
        Whether the local engine resumes where it was last stopped.

    Returns
    -------
    Publication
        With `paths`, `release`, `loss`, `risk`, `protocol` and `summary`; it prints.

    Raises
    ------
    RefusedError
        If the masked table does not pass its audit. Nothing is written then, nor after any other
        error.

    Notes
    -----
    Everything is computed before anything is written. All files are on the disk before the first
    gets its name, and the manifest gets its name last: see `tessella.publishing.outputs`.

    With a seed, the same plan gives the same bytes of release, external report and manifest. The
    internal report has times.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tessella import datasets, publish
    >>> from tessella.planfile import parse_plan
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
    ... external_report = "report.html"
    ... manifest = "manifest.json"
    ... ''', folder=home)
    >>> done = publish(plan)
    >>> sorted(path.name for path in home.iterdir())
    ['firms.csv', 'manifest.json', 'release.csv', 'report.html']
    >>> folder.cleanup()
    """
    inputs: dict[str, Path] = {}
    if isinstance(plan, str | Path):
        inputs["the plan"] = Path(plan)
        plan = read_plan(plan)
    if not isinstance(plan, PlanFile):
        raise BadOptionError("plan", type(plan).__name__, "a plan file, or its path")
    home = plan.folder if folder is None else Path(folder)
    paths = {what: home / name for what, name in plan.output.files.items()}
    inputs |= plan.inputs
    if source is not None:
        inputs["the original"] = source.path
    pieces = None
    if source is None:
        where = Where.of(engine, memory, master, resume)
        pieces = where.open(inputs["the original"], plan.input.options)
    found = refuse_places(paths, inputs=inputs, overwrite=overwrite, in_pieces=pieces is not None)
    measured = plan.measures.loss + 2 * (plan.measures.risk != "none")
    # Besides the steps of the plan: read, check, audit, report, write.
    told = progress if callable(progress) else None
    steps = Steps(len(plan.steps) + measured + 5, told)
    with ExitStack() as stack:
        stack.enter_context(plain_memory())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                if pieces is None:
                    write = _prepare(plan, paths, found, source, steps, caught, pictures)
                else:
                    from .large import prepared

                    write = stack.enter_context(
                        prepared(plan, paths, found, pieces, where, steps, caught, pictures)
                    )
            except TessellaError as error:
                reword(error)
                raise
        for one in caught:  # in the report, and here: an error, if so configured, before writing
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        return write(overwrite)


def _report(steps: Steps, step: str, at: int, of: int, name: str) -> None:
    stage, _, _ = name.partition(",")  # without what it has reached
    steps.within(step, at, of, stage)


def _prepare(
    plan: PlanFile, paths: dict[str, Path], found: Mapping[Path, State], source: Source | None,
    steps: Steps, caught: list[warnings.WarningMessage], pictures: bool,
) -> Callable[[bool], Publication]:  # fmt: skip
    """Compute everything; return what is left to be done, which is to write it."""
    with steps.step("read", file=plan.input.file) as account:
        read = plan.read() if source is None else source
        account.append(f"{read.n_rows:,} records in {len(read.columns)} columns.")
    with steps.step("check", rules=len(plan.read_rules())) as account:
        study = plan.study(read)
        refuse_unknown(plan, read)
        account.append(f"{len(study.rules)} rules.")
    for step in plan.steps:
        steps.announce(step.name or step.method)
        with reported_to(partial(_report, steps, step.name or step.method)):
            study.do(step)
        if any(issubclass(one.category, InterruptedWarning) for one in caught):
            raise KeyboardInterrupt  # who stops a command wants no release of a search cut short
        (*_, entry) = study.protocol
        steps.keep(entry)
    refuse_unmasked(study.unmasked, _ways_out(plan, study, study.unmasked))
    refuse_unique(study.unique, _ways_out(plan, study, study.unique))
    if plan.steps:  # a later step may have changed what the audit counts
        steps.entries[-len(plan.steps) :] = study.protocol
    with steps.step("audit", k=None if study.promise is None else study.promise.k) as account:
        try:
            release = study.release(units=plan.output.units)
        except DominatedError as error:
            advice = f"These steps would be released:\n\n{steps_to_toml(error.steps)}"
            if not error.steps:
                wider = 'on_dominance = "enlarge" (or --on-dominance enlarge)'
                advice = f"No coding helps. Give {wider}, a larger k, or drop them."
            raise DominatedError(error.problem, error.steps, plan=advice) from None
        broken = f"{release.inconsistent:,} records of the original break a rule."
        account.append(f"Passed; {broken if len(study.rules) else 'no rules.'}")
    loss = None
    if plan.measures.loss:
        with steps.step("measure loss"):
            loss = measure_loss(*study.views, study)
    ordered = ordered_as(plan, release)
    entropy = entropy_of_order(plan)
    order = draw_order(entropy, read.n_rows) if ordered == "shuffled" else None
    risk, before = _measure_risk(plan, study, steps, order)
    with steps.step("report", order=ordered):
        warned = tuple(dict.fromkeys(str(one.message) for one in caught))
        warned += tuple(describe_dominance(release.audit.dominance))
        with reported_to(partial(_report, steps, "report")):  # each picture
            summary = summarise(
                study, release, plan=plan, source=read, loss=loss, risk=risk, risk_before=before,
                protocol=Protocol(tuple(steps.entries)), order=ordered, warned=warned,
                title=paths["release"].name, pictures=pictures and "internal report" in paths,
            )  # fmt: skip
        if order is not None and plan.seed is None:  # or nobody could compare the files again
            summary["confidential"]["order_entropy"] = str(entropy)
        texts = {what: TEXTS[what](summary) for what in paths if what in TEXTS}

    def write(overwrite: bool) -> Publication:
        table = release.table if order is None else Table.read(release.table).take(order)
        with steps.step("write", files=len(paths)) as account:
            staged = staged_file(
                table, paths["release"], overwrite=overwrite, like=_like(read, order),
                keep_labels=plan.output.keep_labels,
                confirm=partial(
                    confirm_stored, Table.read(table), rules=release.rules,
                    schema=release.schema, tolerance=study.tolerance,
                    units=_reordered(study.views[0].units, order), **study.promised,
                ),
            )  # fmt: skip
            written = write_all(
                staged, paths, texts, manifest=partial(manifest, summary), found=found,
                overwrite=overwrite,
            )  # fmt: skip
            account += map(str, written.statements)
        steps.announce("done")
        return Publication(
            paths=paths, release=release, loss=loss, risk=risk, risk_before=before,
            protocol=Protocol(tuple(steps.entries)), summary=summary, written=written,
            warnings=tuple(summary["confidential"]["warnings"]),
        )  # fmt: skip

    return write


def _ways_out(plan: PlanFile, study: Study, names: Sequence[Name]) -> str:
    """Return how a plan masks the columns that no step masks, or declares that it keeps them."""
    _, view = study.views
    declared = "\n\n".join(
        f"[columns.{toml_key(str(name))}]\nkind = {toml_value(study.schema[name].kind)}\nrole = "
        + toml_value(study.schema[name].role if name not in study.unmasked else "untouched")
        + ('\nunique = "kept"' if tells_apart(view, name) else "")
        for name in names
    )
    whole = "" if plan.columns else (
        f"\nA plan with [columns] states all of them: tessella schema {plan.input.file} --toml "
        "prints them."
    )  # fmt: skip
    both = {*study.masked, *names}
    columns = [str(column.name) for column in study.schema if column.name in both]
    return (
        f"Mask them: columns = {toml_value(columns)} in a masking step, or one more step for them. "
        f"Or declare that they are released as they are:\n{declared}{whole}"
    )


def refuse_unknown(plan: PlanFile, source: Any) -> None:
    """Refuse knowledge of columns that will not be there, before hours of masking."""
    gone: list[str] = []
    for step in plan.steps:
        if step.method == "drop":
            named = step.options.get("columns", ())
            gone += [named] if isinstance(named, str) else named
    left = [name for name in source.columns if name not in gone]
    for name in plan.measures.known or ():
        if name not in left:
            raise UnknownColumnError(name, left, who="measures.known of the plan")


def _measure_risk(
    plan: PlanFile, study: Study, steps: Steps, order: Integers | None
) -> tuple[Assessment | None, Assessment | None]:
    wanted = plan.measures
    if wanted.risk == "none":
        return None, None
    with steps.step("measure risk", effort=wanted.risk) as account:
        told = partial(steps.within, "measure risk")
        with reported_to(told):  # attacks that take long report their parts
            risk = measure_risk(
                plan, study, study.views[1], order, method=study.disclosed, progress=told
            )
        account.append(f"{len(risk.tried)} attacks.")
    with steps.step("measure risk of the original"):
        before = measure_risk_before(plan, study, risk)
    return risk, before


def ordered_as(plan: PlanFile, release: Release) -> str:
    """Return the order of the release; a posterior of at most 1/k holds in random order only."""
    if plan.output.order == "kept" and any(one.bounded for one in release.probabilistic):
        raise PlanError(
            "A step promises a posterior of at most 1/k, which the order of the records would "
            'break. In [output], give order = "shuffled", or leave order out.'
        )
    if plan.output.order == "kept":
        warnings.warn(
            "The records are released in the order of the original: whoever knows that order knows "
            'whose record each is. In [output], give order = "shuffled", or leave order out.',
            TessellaWarning,
            stacklevel=2,
        )
    return plan.output.order


def _reordered(units: Integers | None, order: Integers | None) -> Integers | None:
    return units if units is None or order is None else units[order]


def _like(source: Source, order: Integers | None) -> Source:
    """Return the source with its letters of missing cells in the order of the release."""
    if order is None or not source.tags:
        return source
    return replace(source, tags={name: tags.take(order) for name, tags in source.tags.items()})
