"""What a plan would cost and protect, estimated at once from a sample of the table.

The sample has whole neighbourhoods of records, *cells*: see `tessella.explore.sampling`. A cell has
borders, across which no group is made. How much that costs is known: a quick grouping is made of
the whole table once, and of the sample, and their ratio corrects the loss of each column.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import stdtrit

from .._parameters import Whole
from .._types import Floats, Integers, Name, Truths
from .._wording import listed
from ..exceptions import BadOptionError, TessellaWarning
from ..frame import Table, View, count_units, group_ids
from ..grouping.search import POLISH, WINDOWS, Effort, Search, StratumSearch
from ..masking import registry
from ..masking.selection import corners, measure_column
from ..planfile import PlanFile
from ..release import Step, Study
from ..release.steps import FUZZY, OVERLAPPING, PREPARING, masks_keys
from ..risk.aligned import AlignedTables, align_tables, measure
from ..schema import Schema
from .previewed import Preview
from .sampling import Sample, lost_in_groups, points_of

GRID = (5, 20, 80, 300)  # k of the quick groupings; between them ratios are interpolated
APART = 1e3  # standard deviations between records that share no group: strata, cells missing
# What the correction and a brief search miss, as a share of the loss: of 36 estimates (four tables,
# three k, three samples) 25 were within 0.2 of the truth, 30 within 0.3, the farthest 0.44 above
# (benchmarks/preview.py).
BEYOND = 0.3
BEYOND_RISK = 0.15  # the same for risks, which were within 0.14
LARGEST = 200_000  # records in which steps that form no groups are done: 2 s for 12 columns
ATTACKED = 2_000  # of them
PLANNED = ("protect", FUZZY, OVERLAPPING)  # steps that are done by a plan
SLOW = ("standard", "thorough")  # efforts of searching
# Proposals a record of a brief search: 0.1 to 0.2 s of computing for 2,000 records x 12, and
# 2 to 9 % more loss than a quick one. With 800 it is 1 to 5 %, and takes three times as long.
MOVES = 200


class BriefSearch(Search):
    """A search that takes a moment: one short anneal, and two rounds in windows."""

    def _search_whole(self, table: StratumSearch, moves: float, effort: Effort) -> None:  # noqa: ARG002
        (labels,) = table.run_many(1, MOVES)
        table.offer(labels, "runs")
        for largest in WINDOWS[:2]:
            table.offer(table.round(table.best, largest, MOVES / 4, POLISH), "rounds")


def preview(plan: PlanFile, sample: Sample) -> Preview:
    """Estimate what a plan loses and what an intruder finds, from a sample of its table.

    The plan's steps are done as they stand, but searched quickly; nothing is audited, written or
    reported. Where the sample is the whole table and the plan searches quickly, the loss is that of
    the release.

    Parameters
    ----------
    plan : PlanFile
        The plan. Its seed counts, or that of the sample.
    sample : Sample
        Drawn from the plan's table by `Sample.draw`.

    Returns
    -------
    Preview

    Raises
    ------
    TessellaError
        What the plan would be refused for, as far as masking tells.

    Examples
    --------
    >>> from tessella import datasets
    >>> from tessella.explore import Sample, preview
    >>> from tessella.planfile import parse_plan
    >>> firms = datasets.make_business_survey(300, random_state=0)[["employees", "turnover"]]
    >>> plan = parse_plan('''
    ... seed = 1
    ... [input]
    ... file = "firms.csv"
    ... [[steps]]
    ... method = "protect"
    ... k = 3
    ... [output]
    ... file = "release.csv"
    ... ''')
    >>> found = preview(plan, Sample.draw(firms))
    >>> found.k_promised, found.k_reached, found.is_sample
    (3, 3, False)
    """
    began = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = _Work(plan, sample).preview()
    warned = [str(one.message) for one in caught if issubclass(one.category, TessellaWarning)]
    notes = tuple(dict.fromkeys([*found.notes, *warned]))
    return replace(found, notes=notes, seconds=perf_counter() - began)


@dataclass(frozen=True, eq=False)
class _Given:
    """A table in the place of a source, for `PlanFile.study`."""

    table: Any
    columns: tuple[Name, ...]
    known: Schema

    def schema(self) -> Schema:
        return self.known


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Columns whose values are shared by k records, and what keeps records apart."""

    columns: tuple[Name, ...]
    strata: tuple[Name, ...]
    k: int


class _Work:
    """One plan on one sample."""

    def __init__(self, plan: PlanFile, sample: Sample) -> None:
        if not isinstance(plan, PlanFile):
            raise BadOptionError("plan", type(plan).__name__, "a plan file")
        if not isinstance(sample, Sample):
            raise BadOptionError("sample", type(sample).__name__, "a Sample of the plan's table")
        self.plan, self.sample = plan, sample
        self.notes = list[str]()
        first = [step for step in plan.steps if step.method in PREPARING]
        self.key = repr((plan.columns, plan.rules, [step.to_dict() for step in first]))
        self.whole: Study = self._once("prepared", lambda: self._prepare(first))
        self.view: View = self.whole.views[0]
        self.rows = sample.rows
        self.grouped: dict[Name, _Grouped] = {}
        self.everywhere = sample.is_all  # whether all records are masked
        self.plain = False  # whether they are a plain sample

    def _once(self, what: Any, make: Callable[[], Any], key: str | None = None) -> Any:
        """Make something of the prepared table once."""
        return self.sample.keep((self.key if key is None else key, what), make)

    def _key_of(self, columns: Sequence[Name], strata: Sequence[Name]) -> str:
        """Return a key of what some columns hold, whatever rules and other columns there are."""
        changes = [s.to_dict() for s in self.plan.steps if s.method in ("recode", "suppress")]
        schema = self.whole.schema
        beside = schema.names("unit", "weight")
        known = [(n, schema[n].kind, schema[n].missing) for n in (*columns, *strata)]
        return repr((changes, known, beside))

    def _prepare(self, first: Sequence[Step]) -> Study:
        table = self.sample.table
        given: Any = _Given(table.native, tuple(table.columns), self.sample.schema)
        study = self.plan.model_copy(update={"seed": 0}).study(given)
        for step in first:
            study.do(step)
        return study

    def preview(self) -> Preview:
        steps = [self._quick(step) for step in self.plan.steps if step.method not in PREPARING]
        if not any(_forms_groups(step) for step in steps):
            self._choose_plain()
        for step in steps:
            self._enough(step)
        if not len(self.rows):
            return self._unknown()
        study = self._masked(steps)
        self._say_unmasked(study)
        loss, by_column = self._loss(study)
        changed = self._changed(study)
        if self._say_keys(steps, changed) and not by_column:
            loss = (math.nan, math.nan, math.nan)
        risk, attack = self._risk(study)
        promise, reached = study.promise, self._reached(study)
        if promise is not None and reached is not None and reached < promise.k:
            self.notes.append(
                f"k = {promise.k} is not kept: some records share their values with fewer (the "
                f"fewest: {reached}). There would be no release."
            )
        return Preview(
            loss=loss[0], loss_low=loss[1], loss_high=loss[2], column_loss=by_column,
            changed=changed, risk=risk[0], risk_low=risk[1], risk_high=risk[2],
            baseline=100 / self.sample.n_records, attack=attack,
            k_promised=None if promise is None else promise.k, k_reached=reached,
            promise=self._promise(study), records=len(self.rows),
            n_records=self.sample.n_records, notes=tuple(self.notes), seconds=0.0,
        )  # fmt: skip

    def _unknown(self) -> Preview:
        nan = math.nan
        return Preview(
            loss=nan, loss_low=nan, loss_high=nan, column_loss={}, changed={}, risk=nan,
            risk_low=nan, risk_high=nan, baseline=100 / self.sample.n_records, attack="not tried",
            k_promised=None, k_reached=None, promise="Not known from this sample.", records=0,
            n_records=self.sample.n_records, notes=tuple(self.notes), seconds=0.0,
        )  # fmt: skip

    def _quick(self, step: Step) -> Step:
        """Return a step that searches for a moment, where it would search for longer."""
        options = dict(step.options)
        if step.method == "protect" and options.get("grouping", "search") == "search":
            options["grouping"] = BriefSearch()
            options.pop("options", None)
        elif options.get("effort", _usual_effort(step)) in SLOW:
            options["effort"] = "quick"
        if options == step.options:
            return step
        self.notes.append("Searched for a moment: the release loses a little less than this.")
        return replace(step, options=options)

    def _choose_plain(self) -> None:
        """Choose records for steps that form no groups: all, or a plain sample of many.

        Their amounts are relative to deviations and ranks, which cells drawn by what is lost do
        not keep; how dense records lie does not matter to them.
        """
        n = self.sample.n_records
        most = len(self.sample.rows) if len(self.whole.rules) else LARGEST
        self.everywhere = n <= most
        self.rows = np.arange(n)
        if not self.everywhere:
            chance = np.random.default_rng(self.sample.seed)
            self.rows, self.plain = np.sort(chance.choice(n, most, replace=False)), True

    def _enough(self, step: Step) -> None:
        """Leave out sampled records that are too few by chance; add those that are too few at all.

        Strata and patterns of missing cells of which the table has k, and the sample has fewer, are
        left out. Those of which the table itself has fewer are all looked at: the step then refuses
        them, or joins them to others, as it would in the whole table.
        """
        k: Any = step.options.get("k")
        if self.everywhere or self.plain or not Whole(2).accepts(k):
            return
        classes, sizes = self._classes(step)
        units = self.view.units
        here = classes[self.rows]
        own = count_units(here, None if units is None else units[self.rows], len(sizes))
        few = (own < k) & (sizes >= k)
        left = self.rows[~few[here]]
        if len(left) < len(self.rows):
            self.notes.append(
                f"{len(self.rows) - len(left):,} records of the sample are left out: it has fewer "
                f"than {k} that may share a group with them; the table has more."
            )
        rare = np.flatnonzero((sizes < k)[classes])
        self.rows = np.union1d(left, rare[: len(self.sample.rows)])

    def _classes(self, step: Step) -> Any:
        """Return what keeps records of the whole table apart, and how many units each has."""
        strata = _names(step.options.get("strata"))
        columns = _names(step.options.get("columns")) or self.whole.schema.names("quasi-identifier")
        return self._apart(tuple(columns), tuple(strata))

    def _apart(self, columns: tuple[Name, ...], strata: tuple[Name, ...]) -> Any:
        view = self.view

        def make() -> tuple[Integers, Integers]:
            there = [name for name in columns if view.table.has(name) and view.any_missing(name)]
            keys = [view.codes(name) for name in strata if view.table.has(name)]
            keys += [view.states(name).astype(np.int64) for name in there]
            ids = group_ids(keys) if keys else np.zeros(view.n_rows, dtype=np.int64)
            return ids, count_units(ids, view.units)

        return self._once(("apart", columns, strata), make)

    def _masked(self, steps: Iterable[Step]) -> Study:
        """Do the masking steps on the sampled records."""
        whole, plan = self.whole, self.plan
        seed = self.sample.seed if plan.seed is None else plan.seed
        if self.everywhere:
            table: Any = self.view.table
        else:
            table = self._once(
                ("taken", self.rows.tobytes()), lambda: Table.read(self.view.table.take(self.rows))
            )
        rules = whole.rules.for_columns(self.view.columns, only=True)
        study = Study(
            table, schema=whole.schema, rules=rules, tolerance=whole.tolerance, random_state=seed,
            folder=plan.folder,
        )  # fmt: skip
        for step in steps:
            before = set(study.masked)
            study.do(step)
            self._note_groups(step, study, before)
        return study

    def _note_groups(self, step: Step, study: Study, before: set[Name]) -> None:
        """Keep for each column in which groups it got its value."""
        if step.method in PLANNED and study.plan is not None:
            blocks = [tuple(block.columns) for block in study.plan.blocks]
            strata, k = tuple(study.plan.strata), study.plan.k
        else:
            columns = _names(step.options.get("columns")) or [
                name for name in study.masked if name not in before
            ]
            found = _groups_of(step, columns)
            blocks = [tuple(block) for block in found] or [(name,) for name in columns]
            strata = tuple(_names(step.options.get("strata")))
            k = step.options.get("k", 0) if found else 0
        if k < 2 and not (self.everywhere or self.plain):
            names = listed([repr(name) for block in blocks for name in block])
            self.notes.append(
                f"Figures of {names} are rough: {step.method!r} takes deviations or ranks from the "
                "sample, which has more large values than the table."
            )
        for block in blocks:
            for name in block:
                self.grouped.pop(name, None)
                if k > 1:
                    self.grouped[name] = _Grouped(block, strata, int(k))

    def _say_unmasked(self, study: Study) -> None:
        if names := study.unmasked:
            self.notes.append(
                f"No step masks {listed(list(map(repr, names)))}: there would be no release."
            )

    def _say_keys(self, steps: Iterable[Step], changed: Mapping[str, float]) -> bool:
        """Say what the loss says nothing of: keys that are emptied or made coarser."""
        names = [name for step in steps if masks_keys(step) for name in _keys_of(step)]
        if not names:
            return False
        shares = [f"{name} {changed[str(name)]:.2g} %" for name in names if str(name) in changed]
        if shares:
            self.notes.append(
                f"The loss is that of numbers. Records whose keys change: {listed(shares)}."
            )
        if not self.everywhere:
            self.notes.append(
                "Keys were masked in the sample. The whole table has more records that are alike, "
                "and its keys change less."
            )
        return True

    def _design(self) -> tuple[Floats, Integers, Truths]:
        """Return the weight of each record, its cell, and whether that was drawn for certain."""
        sample = self.sample
        if self.everywhere or self.plain:
            n = len(self.rows)
            return np.ones(n), np.arange(n), np.full(n, self.everywhere)
        place = np.searchsorted(sample.rows, self.rows).clip(max=len(sample.rows) - 1)
        drawn = sample.rows[place] == self.rows
        weights = np.where(drawn, sample.weights[place], 1.0)
        return weights, np.where(drawn, sample.cells[place], -1), sample.certain[place] | ~drawn

    def _loss(self, study: Study) -> tuple[tuple[float, float, float], dict[str, float]]:
        """Return the loss with its interval, and that of each column."""
        reference, masked = study.views
        design, cells, certain = self._design()
        survey = self.view.weights()
        weights = design if survey is None else design * survey[self.rows]
        found: dict[str, float] = {}
        residuals = np.zeros(len(self.rows))
        for name in study.masked:
            numeric = all(view.table.facts(name).numeric for view in (reference, masked))
            if not numeric or reference.kind(name) == "nominal":
                continue  # categories, and numbers that became intervals
            deviation = self._deviation(name)
            seen = ~reference.missing(name)
            if deviation <= 0 or not seen.any():
                continue
            squares = ((reference.numbers(name) - masked.numbers(name)) / deviation) ** 2
            squares, own = np.where(seen, squares, 0.0), np.where(seen, weights, 0.0)
            total = own.sum()
            raw = float(own @ squares / total)
            ratio, expected = self._calibration(name)
            found[str(name)] = 100 * raw * ratio
            if expected is None:
                expected = np.ones(len(squares))
            slope = raw * total / max(float(own @ expected), 1e-300)
            residuals += 100 * ratio * own * (squares - slope * expected) / total
        if not found:
            return (0.0, 0.0, 0.0), found
        loss = sum(found.values()) / len(found)
        half = _half_width(residuals / len(found), cells, certain)
        if not self.sample.is_all and self.grouped:
            half = math.hypot(half, BEYOND * loss)
        return (loss, max(loss - half, 0.0), loss + half), found

    def _deviation(self, name: Name) -> float:
        """Return the standard deviation of a column in the whole table."""

        def make() -> float:
            return float(measure_column(self.view.numbers(name), self.view.weights())[4])

        return float(self._once(("deviation", name), make))

    def _calibration(self, name: Name) -> tuple[float, Floats | None]:
        """Return the loss of quick groups in the whole table over that in the sample.

        Beside it, what each sampled record loses by them.
        """
        group = self.grouped.get(name)
        if group is None or self.sample.is_all:
            return 1.0, None
        sizes = [k for k in GRID if 4 * k <= len(self.sample.rows)]
        low = max((k for k in sizes if k <= group.k), default=sizes[0])
        high = min((k for k in sizes if k >= group.k), default=sizes[-1])
        ratios, lost = [], None
        for k in (low, high):
            numbers, whole, squares, means = self._quick_groups(group.columns, group.strata, k)
            if name not in numbers:
                return 1.0, None
            at = numbers.index(name)
            ratios.append(whole[at] / means[at] if means[at] > 1e-12 else 1.0)
            lost = squares[:, at] if lost is None else lost
        share = 0.0 if low == high else math.log(group.k / low) / math.log(high / low)
        ratio = ratios[0] ** (1 - share) * ratios[1] ** share if min(ratios) > 0 else ratios[0]
        place = np.searchsorted(self.sample.rows, self.rows).clip(max=len(self.sample.rows) - 1)
        return ratio, None if lost is None else lost[place]

    def _quick_groups(self, columns: tuple[Name, ...], strata: tuple[Name, ...], k: int) -> Any:
        """Group the whole table and the sample quickly, and measure what each column loses."""

        def make() -> tuple[list[Name], Floats, Floats, Floats]:
            sample, survey = self.sample, self.view.weights()
            points, numbers = self._once(
                ("points", columns, strata),
                lambda: self._points(columns, strata),
                self._key_of(columns, strata),
            )
            here = np.ascontiguousarray(points[sample.rows])
            whole = lost_in_groups(points, k, sample.seed)[:, : len(numbers)]
            own = lost_in_groups(here, k, sample.seed, len(here))[:, : len(numbers)]
            weights = sample.weights if survey is None else sample.weights * survey[sample.rows]
            totals = np.average(whole, axis=0, weights=survey)
            return numbers, totals, own, np.average(own, axis=0, weights=weights)

        return self._once(("quick groups", columns, strata, k), make, self._key_of(columns, strata))

    def _points(self, columns: tuple[Name, ...], strata: tuple[Name, ...]) -> Any:
        points, numbers = points_of(self.view, columns)
        ids, sizes = self._apart(columns, strata)
        if len(sizes) > 1:
            points = np.ascontiguousarray(np.column_stack([points, APART * corners(ids)]))
        return points, numbers

    def _changed(self, study: Study) -> dict[str, float]:
        """Return the share of records with another category, in each masked column of these."""
        from ..frame import Pair

        reference, masked = study.views
        pair = Pair(reference, masked, study.schema)
        weights = self._design()[0]
        return {
            str(name): 100 * float(np.average(pair.changed(name), weights=weights))
            for name in study.masked
            if name in pair.columns and not reference.is_number(name)
        }

    def _risk(self, study: Study) -> tuple[tuple[float, float, float], str]:
        """Return the share of records that the nearest one finds, with its interval."""
        reference, masked = study.views
        wanted = self.plan.measures.known
        known = list(study.masked) if wanted is None else wanted
        names = [name for name in known if masked.table.has(name)]
        if not names:
            return (math.nan, math.nan, math.nan), "not tried: no step masks a column"
        sides = align_tables(reference, masked, known=names, schema=study.schema)
        gaps = np.isnan(sides.A).any(axis=0) | np.isnan(sides.B).any(axis=0)
        plain = [n for n, bad in zip(sides.columns, gaps | sides.nominal) if not bad]
        tries = [("gower", sides)] if len(plain) < len(names) else []
        tries += [("euclidean", sides.select(plain))] if plain else []
        weights, cells, certain = self._design()
        attacked = np.arange(len(self.rows))
        if self.everywhere and not self.sample.is_all:  # those of the sample, among all originals
            attacked, weights = self.sample.rows, self.sample.weights
            cells, certain = self.sample.cells, self.sample.certain
            self.notes.append(f"The risk is that of {len(attacked):,} records.")
        elif self.plain:
            attacked = np.linspace(0, len(self.rows) - 1, min(ATTACKED, len(self.rows)), dtype=int)
            weights, cells, certain = weights[attacked], cells[attacked], certain[attacked]
            self.notes.append(
                f"The risk is that among {len(self.rows):,} records drawn at random; among all of "
                "them it is lower."
            )
        best, attack = (-1.0, -1.0, -1.0), ""
        for distance, tables in tries:
            own = "each"
            if distance == "euclidean" and not (self.everywhere or self.plain):
                tables, own = self._as_whole(tables, weights), "none"
            how = measure(tables, distance, standardise=own, covariance="difference")
            nearer, tied = how.counting(attacked, 1)
            chance = np.where(nearer == 0, 1 / np.maximum(tied, 1), 0.0)
            value = float(np.average(chance, weights=weights))
            if 100 * value > best[0]:
                residuals = 100 * weights * (chance - value) / weights.sum()
                half = _half_width(residuals, cells, certain)
                if not self.everywhere:
                    half = math.hypot(half, BEYOND_RISK * 100 * value)
                best = 100 * value, max(100 * value - half, 0.0), min(100 * value + half, 100.0)
                attack = how.name
        return best, attack

    def _as_whole(self, tables: AlignedTables, weights: Floats) -> AlignedTables:
        """Standardise both tables, each by what its deviations would be in the whole table.

        Masked columns lose variance, and more of it in a sample: the part that is lost is corrected
        as the loss is. In columns with few large values a little of it moves all others.
        """
        A, B = tables.A.copy(), tables.B.copy()
        for j, name in enumerate(tables.columns):
            middles = [float(np.average(own[:, j], weights=weights)) for own in (A, B)]
            before, after = (
                float(np.average((own[:, j] - middle) ** 2, weights=weights))
                for own, middle in ((B, middles[1]), (A, middles[0]))
            )
            left = after / before if before > 0 else 1.0
            ratio, _ = self._calibration(name)
            left = max(1 - ratio * (1 - left), 1e-12)
            unit = self._deviation(name) or 1.0
            A[:, j] = (A[:, j] - middles[0]) / (unit * math.sqrt(left))
            B[:, j] = (B[:, j] - middles[1]) / unit
        return replace(tables, A=A, B=B)

    def _reached(self, study: Study) -> int | None:
        """Return how many units share their masked values at least, in each promised block."""
        promise = study.promise
        if promise is None:
            return None
        view = study.views[1]
        blocks = promise.blocks or [list(study.masked)]
        return min(
            int(count_units(view.group_ids([*block, *promise.strata]), view.units).min())
            for block in blocks
        )

    def _promise(self, study: Study) -> str:
        promise = study.promise
        if promise is None:
            return "No k is promised."
        what = "records" if study.views[0].units is None else "units"
        blocks = " in each block of columns" if len(promise.blocks) > 1 else ""
        return f"At least {promise.k} {what} share their released values{blocks}."


def _names(given: Any) -> list[Name]:
    if given is None:
        return []
    return [given] if isinstance(given, str) else list(given)


def _usual_effort(step: Step) -> Any:
    """Return the effort of a step of the keys that states none."""
    return registry.find(step.method).signature_defaults.get("effort") if masks_keys(step) else None


def _keys_of(step: Step) -> list[Name]:
    return _names(step.options.get("columns")) or list(step.options.get("hierarchies") or ())


def _forms_groups(step: Step) -> bool:
    return step.method in PLANNED or bool(_groups_of(step, ["column"]))


def _groups_of(step: Step, columns: Sequence[Name]) -> list[list[Name]]:
    """Return the blocks in which k records share their values by a step; none where none do."""
    groups = registry.find(step.method).groups
    return groups(step.options, columns) if groups and step.options.get("k") else []


def _half_width(residuals: Floats, cells: Integers, certain: Truths) -> float:
    """Return half of an interval of 95 % by the spread between cells.

    Cells that were drawn for certain add nothing to it. `residuals` are what the records
    contribute to the estimate, linearised.
    """
    chance = ~certain
    if not chance.any():
        return 0.0
    _, own = np.unique(cells[chance], return_inverse=True)
    sums = np.bincount(own, weights=residuals[chance])
    m = len(sums)
    if m < 2:
        return float(abs(sums[0]))
    variance = m / (m - 1) * float(((sums - sums.mean()) ** 2).sum())
    return float(stdtrit(m - 1, 0.975)) * math.sqrt(variance)
