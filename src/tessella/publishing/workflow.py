"""`publish`: one call from a plan file to a release on disk, audited, measured and reported.

What publishing gives: where everything is, and all that was found.
"""

import ctypes
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from .._output import State, toml_key, toml_value
from .._progress import TimeLeft, reported_to
from .._types import Integers, Name, Progress
from ..auditing.count import describe_dominance
from ..auditing.result import beside_loss
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
from ..io import Source
from ..io.files import Written
from ..loss.base import Summary
from ..planfile import PlanFile, read_plan
from ..planfile.hints import reword
from ..release import Entry, Protocol, Release, Study
from ..release.dominance import DominatedError
from ..release.roles import refuse_unique, refuse_unmasked, tells_apart
from ..reports import external_report, internal_report, summarise
from ..reports.public import manifest
from ..risk import Assessment
from .measuring import (
    draw_order,
    entropy_of_order,
    measure_loss,
    measure_risk,
    measure_risk_before,
)
from .outputs import refuse_places, write_all


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Publication:
    """A release on disk, with its reports. **The object itself is confidential.**

    Attributes
    ----------
    paths : mapping of str to Path
        The files, by what they are: "release", "internal report", "summary", "external report",
        "manifest".
    release : Release
        The released table, in the order of the original, and its audit.
    loss : Summary or None
        The information loss by every generic measure.
    risk, risk_before : Assessment or None
        What attacks find in the release, and in the original as it is.
    protocol : Protocol
        Every step from reading to writing, with times.
    summary : dict
        What the reports are made of.
    written : Written
        What the format of the released file asked for.
    warnings : tuple of str
        What was warned of on the way, and of categories that masking moved.
    """

    paths: Mapping[str, Path]
    release: Release
    loss: Summary | None
    risk: Assessment | None
    risk_before: Assessment | None
    protocol: Protocol
    summary: dict[str, Any]
    written: Written
    warnings: tuple[str, ...] = field(default=())

    @property
    def seconds(self) -> float:
        """How long all of it took."""
        return sum(entry.seconds for entry in self.protocol)

    def __str__(self) -> str:
        public = self.summary["public"]
        lines = [f"{public['records']:,} records in {len(public['columns'])} columns released."]
        if public["k"] is not None:
            smallest = min(block["smallest"] for block in public["blocks"])
            lines.append(
                f"Alike: at least {smallest} {public['counted']}, asked for were {public['k']}."
            )
        lines += map(str, self.release.probabilistic)
        if len(self.release.rules):
            lines.append(f"Rules: all {len(self.release.rules)} hold.")
        beside = beside_loss(self.release.audit)
        lines.append(f"Information loss {self.release.loss:.2f} % (SSE/SST){beside}.")
        lines += [] if self.release.estimates is None else [self.release.estimates.sentence]
        if self.risk is not None and self.risk.worst is not None:
            worst, before = self.risk.worst, self.risk_before
            was = "" if before is None else f", {100 * before.value:.1f} % in the original as it is"
            lines.append(
                f"Risk: the worst of {len(self.risk.tried)} attacks ({worst.name}) finds "
                f"{100 * worst.found.value:.1f} % of the records ({worst.found.beside()}){was}."
            )
        width = max(map(len, self.paths))
        for what, path in self.paths.items():
            secret = "  (confidential)" if what in ("internal report", "summary") else ""
            lines.append(f"{what.ljust(width)}  {path}{secret}")
        lines += [f"Warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    __repr__ = __str__


log = logging.getLogger("tessella")


def _to_json(summary: dict[str, Any]) -> str:
    # in the order in which reports show things: they are written from it again
    return json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


TEXTS: dict[str, Callable[[dict[str, Any]], str]] = {  # beside the release and its manifest
    "internal report": internal_report,
    "external report": external_report,
    "summary": _to_json,
}


def publish(
    plan: PlanFile | str | Path,
    *,
    source: Source | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
    pictures: bool = True,
) -> Publication:
    """Carry out a plan: read, check, mask, audit, measure, and write the release with its reports.

    Parameters
    ----------
    plan : PlanFile or path
        The plan; see `tessella.planfile`.
    source : Source, optional
        The table, if it was read already; otherwise the plan's input is read.
    progress : callable, optional
        Called with the number of steps done, their number, and the name of the next; within long
        steps (searching, attacking) again, with how far it is and about how long it will take.
    overwrite : bool, default False
        Whether files that exist may be replaced. Otherwise the call is refused before anything is
        read.
    pictures : bool, default True
        Whether the internal report has pictures.

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
    paths = {what: plan.path(name) for what, name in plan.output.files.items()}
    inputs["the original"] = plan.path(plan.input.file) if source is None else source.path
    for what, name in (("rules", plan.rules.file), ("catalog", plan.input.options.get("catalog"))):
        if name:
            inputs[f"the file of {what}"] = plan.path(name)
    found = refuse_places(paths, inputs=inputs, overwrite=overwrite)
    measured = plan.measures.loss + 2 * (plan.measures.risk != "none")
    # Besides the steps of the plan: read, check, audit, report, write.
    steps = _Steps(len(plan.steps) + measured + 5, progress)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            write = _prepare(plan, paths, found, source, steps, caught, pictures)
        except TessellaError as error:
            reword(error)
            raise
    for one in caught:  # in the report, and here: an error, if so configured, before writing
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return write(overwrite)


class _Steps:
    """The named steps: each is timed, logged, reported to `progress`, and kept."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.progress, self.done = total, progress, 0
        self.left = TimeLeft()
        self.entries: list[Entry] = []

    @contextmanager
    def step(self, name: str, **options: Any) -> Iterator[list[str]]:
        """Time a step; what is appended to the list given is its account."""
        self.announce(name)
        began, account = perf_counter(), list[str]()
        yield account
        seconds = perf_counter() - began
        self.keep(Entry(method=name, options=options, account=" ".join(account), seconds=seconds))

    def keep(self, entry: Entry) -> None:
        log.info("%s: %.2f s", entry.method, entry.seconds)
        self.entries.append(entry)
        self.done += 1

    def announce(self, name: str) -> None:
        _return_memory()
        self.left = TimeLeft()
        if self.progress is not None:
            self.progress(self.done, self.total, name)

    def within(self, name: str, at: int, of: int, part: str) -> None:
        """Report how far a long step is, and about how long it will take."""
        if self.progress is not None:
            left = self.left(at, of)
            self.progress(self.done, self.total, f"{name}: {part} ({at} of {of}){left}")


def _report(steps: _Steps, step: str, at: int, of: int, name: str) -> None:
    stage, _, _ = name.partition(",")  # without what it has reached
    steps.within(step, at, of, stage)


def _return_memory() -> None:
    """Return what the last step freed to the system, where the C library can be asked to.

    glibc keeps freed columns for later ones of the same size: with a million records, a fifth of
    what a plan seemed to need.
    """
    with suppress(OSError, AttributeError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _prepare(
    plan: PlanFile, paths: dict[str, Path], found: Mapping[Path, State], source: Source | None,
    steps: _Steps, caught: list[warnings.WarningMessage], pictures: bool,
) -> Callable[[bool], Publication]:  # fmt: skip
    """Compute everything; return what is left to be done, which is to write it."""
    with steps.step("read", file=plan.input.file) as account:
        read = plan.read() if source is None else source
        account.append(f"{read.n_rows:,} records in {len(read.columns)} columns.")
    with steps.step("check", rules=len(plan.read_rules())) as account:
        study = plan.study(read)
        _refuse_unknown(plan, read)
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
    ordered = _ordered(plan, release)
    entropy = entropy_of_order(plan)
    order = draw_order(entropy, read.n_rows) if ordered == "shuffled" else None
    risk, before = _measure_risk(plan, study, steps, order)
    with steps.step("report", order=ordered):
        warned = tuple(dict.fromkeys(str(one.message) for one in caught))
        warned += tuple(describe_dominance(release.audit.dominance))
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
            written = write_all(
                table, paths, texts, manifest=partial(manifest, summary), found=found,
                overwrite=overwrite,
                like=_like(read, order), keep_labels=plan.output.keep_labels,
                confirm=partial(
                    confirm_stored, Table.read(table), rules=release.rules,
                    schema=release.schema, tolerance=study.tolerance,
                    units=_reordered(study.views[0].units, order), **study.promised,
                ),
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


def _refuse_unknown(plan: PlanFile, source: Source) -> None:
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
    plan: PlanFile, study: Study, steps: _Steps, order: Integers | None
) -> tuple[Assessment | None, Assessment | None]:
    wanted = plan.measures
    if wanted.risk == "none":
        return None, None
    with steps.step("measure risk", effort=wanted.risk) as account:
        risk = measure_risk(
            plan, study, study.views[1], order, method=study.disclosed,
            progress=lambda at, of, name: steps.within("measure risk", at, of, name),
        )  # fmt: skip
        account.append(f"{len(risk.tried)} attacks.")
    with steps.step("measure risk of the original"):
        before = measure_risk_before(plan, study, risk)
    return risk, before


def _ordered(plan: PlanFile, release: Release) -> str:
    """Return the order of the release; a posterior of at most 1/k holds in random order only."""
    if plan.output.order == "kept" and any(one.bounded for one in release.probabilistic):
        raise PlanError(
            "A step promises a posterior of at most 1/k, which the order of the records would "
            'break. In [output], give order = "shuffled", or leave order out.'
        )
    if plan.output.order == "kept":
        warnings.warn(
            "The records are released in the order of the original: who knows that order knows "
            'whose each record is. In [output], give order = "shuffled", or leave order out.',
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
