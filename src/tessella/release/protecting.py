"""`protect`: a study of one step. It returns a `Release`, or raises why there is none."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._parameters import SEED, memory_of, parameters
from .._types import Progress
from ..exceptions import BadOptionError
from ..grouping.base import check_seed
from ..grouping.cells import LARGE
from ..plan import Plan
from ..schema import Schema
from .large import refuse_diversity
from .lazily import lazy_of, protect_lazily
from .result import DEFAULTS, Release
from .roles import refuse_identifying
from .steps import Step
from .study import Study


@parameters({"method": "grouping", "missing": "on_missing"})
def protect(
    table: Any,
    *,
    k: int,
    rules: Any = None,
    plan: Plan | None = None,
    schema: Schema | None = None,
    columns: Sequence[Hashable] | None = None,
    strata: Any = (),
    blocks: Sequence[Sequence[Hashable]] | None = None,
    weights: Hashable | None = None,
    unit: Hashable | None = None,
    fit: str = "project",
    edit: str = "fix",
    small: str = "merge",
    on_missing: str = "pattern",
    distance: str = "original",
    scale: Any = "zscore",
    grouping: Any = "search",
    options: dict[str, Any] | None = None,
    aggregate: str = "auto",
    l: Any = None,  # noqa: E741
    t: Any = None,
    confidential: Any = None,
    dominance: Any = 10,
    on_dominance: str = "report",
    whole_units: bool = False,
    tolerance: float = 1e-9,
    random_state: Any = None,
    memory: int | str | None = None,
    folder: Any = None,
    progress: Progress | bool | None = None,
) -> Release:
    """Mask a table so that every record represents at least k and every rule holds, or refuse.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The original table; it is not changed. Or one that is not in memory: a polars LazyFrame, a
        DuckDB relation, an Ibis table, a Spark DataFrame, or the path of a Parquet file or of a
        folder of them. Above 262,144 records it is masked in pieces and never collected; the
        release has a table of the same type (for paths, a folder), and measures other than k, rules
        and loss are computed from a sample of whole groups.
    k : int
        The least number of units that share their released values; of records without a unit.
    rules : Rules, text, or list of lines, optional
        What must be true of every released record.
    plan : Plan, optional
        A plan from `make_plan`; without it one is made from the arguments that follow.
    schema : Schema, optional
        Kinds and roles of the columns; guessed if not given.
    columns, strata, blocks, fit, edit, small, on_missing, distance, scale, grouping, options
        See `tessella.plan.make_plan`.
    aggregate : {"auto", "mean", "matched mean"}, default "auto"
        The released values of numbers without rules: see `tessella.plan.make_plan`.
    l : int or mapping, optional
        How diverse the confidential values of every group must be: a number of distinct values,
        {"entropy": 3} for an entropy of log 3, or {"recursive": [c, l]}, such as [2, 3]. Missing
        values do not count; l counts values over records, also where k counts units.
    t : float or mapping, optional
        How far the distribution of these values in a group may be from that in the table: 0.2, with
        ordered distance where values have an order; {"equal": 0.2} or {"ordered": 0.2}. See
        `tessella.diversity`.
    confidential : name or sequence of names, optional
        The columns that l and t are about, which are released as they are. By default the schema's;
        those named here get that role.
    weights : name, optional
        The column of sampling weights, if the schema does not say so.
    unit : name, optional
        The column that names the respondent of each record, if the schema does not say so: the
        household, firm or patient. k counts distinct units; the column is not released.
    dominance : float or mapping, default 10
        When a group's total discloses its largest contribution: p of the p% rule in per cent,
        {"p": 10}, or {"n": 1, "k": 85}: the n largest contribute more than k per cent.
    on_dominance : {"report", "enlarge", "refuse"}, default "report"
        Note such groups in the audit; enlarge them to up to 10 k records, and refuse if some
        remain; or refuse. A refusal names a top coding that would allow the release.
    whole_units : bool, default False
        Whether k units agree in all their records together, as renumbered units require, and
        rules about sums over members, too; otherwise in each record, with a much smaller loss.
    tolerance : float, default 1e-9
        By how much the sides of a rule between floats may differ, times the size of the terms.
    random_state : int, RandomState or None, default None
        None draws from the operating system's entropy.
    memory : int or str, optional
        Memory that the processes that mask a table in pieces may use together, such as "2GB".
    folder : path, optional
        Where the files of a table that was masked in pieces are written; by default a temporary
        folder, removed when Python ends.
    progress : bool or callable, optional
        True shows a bar while groups are searched, in a notebook too: see `Study`.

    Returns
    -------
    Release

    Raises
    ------
    PlanError
        If no masking keeps the rules.
    RefusedError
        If the table breaks its rules and `edit` is "refuse", or if the audit of the masked table
        finds a broken promise.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella import protect
    >>> table = pd.DataFrame({"net": [10, 12, 11, 50, 52, 57], "tax": [2, 2, 3, 20, 21, 22]})
    >>> table["gross"] = table.net + table.tax
    >>> release = protect(table, k=3, rules=["net + tax == gross"], random_state=0)
    >>> release.table
       net  tax  gross
    0   11    2     13
    1   11    2     13
    2   11    2     13
    3   53   21     74
    4   53   21     74
    5   53   21     74
    >>> release.audit.passed
    True
    """
    if plan is not None and not isinstance(plan, Plan):
        raise BadOptionError("plan", type(plan).__name__, "a plan of tessella.make_plan")
    given: dict[str, Any] = {
        "columns": columns, "strata": strata, "blocks": blocks, "fit": fit, "edit": edit,
        "small": small, "on_missing": on_missing, "distance": distance, "scale": scale,
        "grouping": grouping, "options": options, "plan": plan, "dominance": dominance,
        "on_dominance": on_dominance, "whole_units": whole_units, "aggregate": aggregate,
        "l": l, "t": t, "confidential": confidential,
    }  # fmt: skip
    lazy = lazy_of(table)
    if lazy is not None and lazy.n_rows <= LARGE:  # it fits in one cell
        table = lazy.whole()
    elif lazy is not None:
        refuse_diversity(given)
        return protect_lazily(
            lazy, Step(method="protect", options={"k": k, **_unusual(given, rules)}),
            schema=schema, rules=rules if plan is None else plan.rules, weights=weights, unit=unit,
            tolerance=tolerance, seed=_seed(random_state),
            memory=None if memory is None else memory_of(memory),
            folder=None if folder is None else Path(folder),
        )  # fmt: skip
    study = Study(
        table, schema=schema, rules=rules if plan is None else plan.rules, weights=weights,
        unit=unit, confidential=confidential, tolerance=tolerance,
        random_state=_seed(random_state), progress=progress,
    )  # fmt: skip
    refuse_identifying(study.schema)
    found = study.do("protect", k=k, **_unusual(given, rules)).release()
    return found if lazy is None else replace(found, table=lazy.of_rows(found.table))


def _unusual(given: dict[str, Any], rules: Any) -> dict[str, Any]:
    """Return the options that are not the usual ones; refuse those that a plan has already."""
    usual = DEFAULTS | {"plan": None}
    unusual = {name: value for name, value in given.items() if _differs(value, usual[name])}
    beside = ("plan", "dominance", "on_dominance", "whole_units")
    twice = [*(["rules"] if rules is not None else []), *(n for n in unusual if n not in beside)]
    if given["plan"] is not None and twice:
        expected = f"either a plan or {', '.join(twice)}; the plan has its own"
        raise BadOptionError("plan", "a plan", expected)
    return unusual


def _seed(random_state: Any) -> int | None:
    """Draw a seed where a generator of random numbers is given."""
    if random_state is None or (SEED.accepts(random_state) and not hasattr(random_state, "random")):
        return random_state  # type: ignore[no-any-return]
    return int(check_seed(random_state).randint(2**31 - 1))


def _differs(value: Any, usual: Any) -> bool:
    return not (value is usual or (type(value) is type(usual) and value == usual))
