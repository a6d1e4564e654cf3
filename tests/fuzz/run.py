"""Run cases through tessella, and sort what comes of them; `python -m tests.fuzz` runs many."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyreadstat

from tessella import Rules, Schema, protect, publish
from tessella.exceptions import TessellaError
from tessella.planfile import parse_plan

from .case import Case
from .check import problems, records_of
from .generate import make_case

KINDS = {"whole": "integer", "real": "continuous", "text": "nominal", "truth": "nominal"}
BARS = {"generous": 0.02, "defaults": 0.10}  # of the cases that have a release, refused at most
LOSSY = ("csv", "csv.gz", "tsv", "xlsx", "sav", "dta", "xpt")


@dataclass(frozen=True)
class Outcome:
    """What came of a case: right, refused (rightly or though a release exists), wrong, foreign."""

    seed: int
    status: str
    setting: str
    kinds: tuple[str, ...]
    reason: str = ""


def schema_of(case: Case, table: Any) -> Schema:
    """Return kinds and roles as the case has them; nothing is left to guess but dates."""
    changes: dict[str, dict[str, Any]] = {}
    for name, column in case.columns.items():
        role = "untouched" if name in (*case.untouched, *case.strata) else "quasi-identifier"
        changes[name] = {"role": "weight" if name == case.weights else role, "unique": "kept"}
        if column.family in KINDS:
            ordered = column.dtype in ("ordered", "Enum")
            changes[name]["kind"] = "ordinal" if ordered else KINDS[column.family]
    return Schema.guess(table).override(changes)


def run_case(case: Case) -> Outcome:
    """Protect, or publish and read again; check, and sort the outcome."""
    setting = "generous" if case.options.get("fit") == "project" else "defaults"
    outcome = {"seed": case.seed, "setting": setting, "kinds": tuple(sorted(set(case.kinds)))}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _publish(case) if case.file else _protect(case)
    except TessellaError as error:
        status = "refused" if case.has_release else "refused rightly"
        return Outcome(status=status, reason=f"{type(error).__name__}: {error}", **outcome)
    except Exception:
        return Outcome(status="foreign", reason=traceback.format_exc(), **outcome)
    return Outcome(status="wrong" if found else "right", reason="; ".join(found), **outcome)


def _protect(case: Case) -> list[str]:
    table = case.frame()
    options = dict(case.options) | ({"strata": case.strata} if case.strata else {})
    release = protect(
        table, rules=Rules.parse("\n".join(case.rules)), schema=schema_of(case, table),
        random_state=case.seed % 2**32, **options,
    )  # fmt: skip
    return [*_dtypes(table, release.table), *_check(case, _as_pandas(release.table))]


def _dtypes(before: Any, after: Any) -> list[str]:
    if type(before) is not type(after):
        return [f"{type(before)} became {type(after)}"]
    if isinstance(before, pd.DataFrame):
        same = before.dtypes.equals(after.dtypes) and before.index.equals(after.index)
        return [] if same else [f"dtypes {before.dtypes.to_dict()} became {after.dtypes.to_dict()}"]
    return [] if before.schema == after.schema else [f"{before.schema} became {after.schema}"]


def _as_pandas(table: Any) -> pd.DataFrame:
    if isinstance(table, pd.DataFrame):
        return table
    rows = table.to_dicts() if hasattr(table, "to_dicts") else table.to_pylist()
    return pd.DataFrame(rows, dtype=object)


def _check(case: Case, released: pd.DataFrame, *, lossy: bool = False) -> list[str]:
    return problems(
        case.records, records_of(released), rules=case.rules, k=case.k, blocks=case.blocks,
        strata=case.strata, untouched=case.untouched, lossy=lossy,
    )  # fmt: skip


def _publish(case: Case) -> list[str]:
    """Write the table, publish it by a plan, and read the file again with plain pandas."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = case.frame()
    if not isinstance(table, pa.Table):
        table = pa.Table.from_pandas(table, preserve_index=False) if isinstance(
            table, pd.DataFrame) else table.to_arrow()  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        pq.write_table(table, home / "in.parquet")
        plan = parse_plan(_plan_text(case, table), folder=home)
        publish(plan, pictures=False)
        released = _read(home / f"out.{case.file}", case)
    return _check(case, released, lossy=case.file in LOSSY)


def _plan_text(case: Case, table: Any) -> str:
    lines = [f"version = 1\nseed = {case.seed}\n[input]\nfile = 'in.parquet'"]
    if case.rules:
        quoted = ", ".join(f"'{rule}'" for rule in case.rules)
        lines.append(f"[rules]\nlines = [{quoted}]")
    for column in schema_of(case, table):
        lines.append(f"[columns.{column.name}]\nkind = '{column.kind}'\nrole = '{column.role}'")
        lines.append("unique = 'kept'")
    lines.append("[[steps]]\nmethod = 'protect'")
    options = dict(case.options) | ({"strata": case.strata} if case.strata else {})
    lines += [f"{name} = {value!r}" for name, value in options.items()]
    lines.append("[measures]\nloss = false\nrisk = 'none'")
    lines.append(f"[output]\nfile = 'out.{case.file}'\norder = 'kept'")
    return "\n".join(lines)


def _read(path: Path, case: Case) -> pd.DataFrame:
    texts = {n: str for n, c in case.columns.items() if c.family == "text"}
    match path.suffix:
        case ".parquet":
            frame = pd.read_parquet(path)
        case ".feather":
            frame = pd.read_feather(path)
        case ".xlsx":
            frame = pd.read_excel(path, dtype=texts)
        case ".sav":
            frame = pd.read_spss(path)
        case ".dta":
            frame = pd.read_stata(path)
        case ".xpt":
            frame = pyreadstat.read_xport(path)[0]
        case _:
            sep = "\t" if path.suffix == ".tsv" else ","
            frame = pd.read_csv(path, sep=sep, dtype=texts, float_precision="round_trip")
    for name, column in case.columns.items():
        if name not in frame:
            continue
        if column.family == "date":
            frame[name] = pd.to_datetime(frame[name])
        elif column.family == "truth" and case.file in LOSSY:
            cells = frame[name].astype(object)
            frame[name] = cells.where(cells.isna(), cells.map(_as_truth)).astype(object)
        elif column.family == "text" and case.file in LOSSY:
            frame[name] = frame[name].astype(object).where(frame[name] != "", None)
    return frame


def _as_truth(cell: Any) -> Any:
    return {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}.get(
        str(cell).lower(), cell
    )


def run_seed(seed: int, generous: bool | None = None, publish: bool | None = None) -> Outcome:
    """Draw the case of a seed and run it."""
    return run_case(make_case(seed, generous=generous, publish=publish))


def run_many(first: int, count: int, *, processes: int | None = None) -> Iterator[Outcome]:
    """Run the cases of consecutive seeds; yield them in order."""
    seeds = range(first, first + count)
    if processes == 1:
        yield from map(run_seed, seeds)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(run_seed, seeds, chunksize=16)


def summarise(outcomes: list[Outcome]) -> tuple[list[str], bool]:
    """Return a summary in lines, and whether all bars are kept."""
    good = not any(o.status in ("wrong", "foreign") for o in outcomes)
    lines = [", ".join(f"{n:,} {s}" for s, n in Counter(o.status for o in outcomes).most_common())]
    for setting, bar in BARS.items():
        own = [o for o in outcomes if o.setting == setting and o.status != "refused rightly"]
        refused = [o for o in own if o.status == "refused"]
        if own:
            share = len(refused) / len(own)
            good &= share <= bar
            lines.append(f"{setting}: {len(refused)} of {len(own)} refused though a release exists "
                         f"({100 * share:.1f} %, at most {100 * bar:g} %)")  # fmt: skip
            kinds = Counter(kind for o in own for kind in o.kinds)
            lost = Counter(kind for o in refused for kind in o.kinds)
            lines += [f"  {k}: {lost[k]} of {kinds[k]}" for k in sorted(kinds) if lost[k]]
    return lines, good


def main() -> None:
    """Run many cases, and print what failed with its seed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None, help="the first seed; drawn if not given")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--refusals", action="store_true", help="print every refusal")
    parser.add_argument("--keep", type=Path, help="folder in which failing cases are written")
    given = parser.parse_args()
    first = secrets.randbelow(2**31) if given.seed is None else given.seed
    print(f"seeds {first} to {first + given.cases - 1}", flush=True)
    outcomes = []
    for outcome in run_many(first, given.cases, processes=given.processes):
        outcomes.append(outcome)
        shown = ["wrong", "foreign", *(["refused"] if given.refusals else [])]
        if outcome.status in shown:
            print(f"{outcome.status}: seed {outcome.seed} ({outcome.setting}): {outcome.reason}",
                  flush=True)  # fmt: skip
            if given.keep:
                given.keep.mkdir(exist_ok=True)
                text = make_case(outcome.seed).to_json()
                (given.keep / f"{outcome.seed}.json").write_text(text)
    lines, good = summarise(outcomes)
    print("\n".join(lines))
    sys.exit(not good)


if __name__ == "__main__":
    main()
