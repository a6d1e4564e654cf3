"""The process that answers questions about tables: see `desk`.

One line of JSON comes in for each question, and one goes out, behind the key of the question: the
answer, or why there is none. The table that was read last is kept.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from .._output import plain_data, reserved_stdout
from ..exceptions import BadFileError, PlanFileError, RuleSyntaxError, TessellaError
from ..explore import Sample, preview
from ..frame import Table, View
from ..io import Source, read_file
from ..io.excel_reading import sheet_names
from ..pictures.profile import compare_columns, compare_pair, preview_rows, profile_columns
from ..plan import make_plan
from ..planfile import PlanFile, draft, parse_plan
from ..planfile.hints import reword
from ..publishing.workflow import Where, read_or_sample
from ..release.result import DEFAULTS
from ..release.steps import PREPARING, Step, count_rare
from ..rules import Rules
from ..schema import Column, Schema
from .editing import KEY_METHODS, key_columns
from .folder import Folder

BREAKING = 5  # records that are named as breaking a rule
SUGGESTED = 60  # rules that are offered


class Tables:
    """The table that was read last, and what was found out about it."""

    def __init__(self) -> None:
        self._key: Any = None
        self._held: dict[str, Any] = {}

    def read(self, path: Path, options: Mapping[str, Any]) -> Source:
        """Read a file, or a sample of one that is too large, unless it is the last one."""
        stamp = path.stat() if path.exists() else None
        state = stamp and (stamp.st_mtime_ns, stamp.st_size)
        key = path, state, repr(sorted(options.items()))
        if self._key != key:
            self._key, self._held = None, {}
            source, whole = read_or_sample(path, Where(), **options)
            self._held = {"source": source, "whole": whole}
            self._key = key
        found: Source = self._held["source"]
        return found

    def keep(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what was made of the table before, or make it."""
        if name not in self._held:
            self._held[name] = make()
        return self._held[name]


TABLES = Tables()


def _opened(folder: Folder, plan: str, origin: str) -> tuple[PlanFile, Source]:
    wanted = parse_plan(plan, folder=folder.path, origin=origin)
    folder.check_plan(wanted)
    try:
        return wanted, TABLES.read(wanted.path(wanted.input.file), wanted.input.options)
    except TessellaError as error:
        reword(error)
        raise


def _facts(source: Source, schema: Schema) -> dict[str, Any]:
    """Describe a table: how it was read, its columns, its first records."""
    guess = TABLES.keep("guess", source.schema)
    columns = []
    for column in schema:
        profile = _profile(source, column)
        guessed = guess[column.name]
        same = (guessed.kind, guessed.role) == (column.kind, column.role)
        columns.append({
            **profile, "name": str(column.name), "kind": column.kind, "role": column.role,
            "codes": [str(code) for code in column.missing], "unsure": column.unsure,
            "labelled": len(column.labels),
            "why": guessed.why if same else f"set by you; the guess was {guessed.role}, "
            f"{guessed.kind}: {guessed.why}",
            "unique": profile["distinct"] == source.n_rows - profile["missing"] > 1,
        })  # fmt: skip
    units = View(Table.read(source.table), schema).units
    return {
        "file": source.path.name, "records": source.n_rows, "format": source.format,
        "how": str(source.how), "columns": columns, "rows": preview_rows(source.table, schema),
        "units": None if units is None else int(units.max()) + 1 if len(units) else 0,
        "whole": TABLES.keep("whole", lambda: True),
    }  # fmt: skip


def _profile(source: Source, column: Column) -> dict[str, Any]:
    """Profile a column, once for each kind and list of missing codes."""
    made: list[dict[str, Any]] = TABLES.keep(
        f"profile {column.name!r} {column.kind} {column.missing!r}",
        lambda: profile_columns(source.table.select([column.name]), Schema([column])),
    )
    return made[0]


def _with_sheet(path: Path, options: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return the sheets of an Excel file, and options that name one: the first, if none is."""
    sheets = sheet_names(path) if path.suffix.lower() in (".xlsx", ".xlsm") else []
    if len(sheets) > 1 and "sheet" not in options:
        options = {**options, "sheet": sheets[0]}
    return sheets, options


def open_file(folder: Folder, *, file: str, options: dict[str, Any]) -> dict[str, Any]:
    """Read a file, and describe it."""
    path = folder.existing(file)
    sheets, options = _with_sheet(path, options)
    source = TABLES.read(path, options)
    return _facts(source, TABLES.keep("guess", source.schema)) | {
        "sheets": sheets, "sheet": options.get("sheet", ""),
    }  # fmt: skip


def draft_plan(
    folder: Folder, *, file: str, options: dict[str, Any], k: int, seed: int, masked: bool = False
) -> dict[str, Any]:
    """Draft a plan; `masked` makes every column one that is masked."""
    path = folder.existing(file)
    _, options = _with_sheet(path, options)
    source = TABLES.read(path, options)
    schema: Schema = TABLES.keep("guess", source.schema)
    if masked:
        schema = schema.override({c.name: {"role": "quasi-identifier"} for c in schema})
    text = draft(source, k=k, seed=seed, schema=schema, folder=folder.path)
    return {"text": text}


def describe_plan(folder: Folder, *, plan: str, origin: str) -> dict[str, Any]:
    """Describe the table as a plan sees it; raise what is wrong with the plan."""
    wanted, source = _opened(folder, plan, origin)
    schema = wanted.schema_of(source)
    return _facts(source, schema)


def check_plan(folder: Folder, *, plan: str, origin: str) -> dict[str, Any]:
    """Look whether a plan fits its table and its rules; explain what it will do."""
    wanted, source = _opened(folder, plan, origin)
    study = wanted.study(source)
    first = [step for step in wanted.steps if step.method in PREPARING]
    for step in first:
        study.do(step)
    lines: list[str] = []
    main = next((step for step in wanted.steps if step.method == "protect"), None)
    rare = 0
    if main is not None:
        given = {**DEFAULTS, **main.options}
        taken = ("k", "columns", "strata", "blocks", "fit", "edit", "small", "on_missing",
                 "distance", "scale", "grouping", "options", "aggregate", "l", "t",
                 "confidential")  # fmt: skip
        table = Table.read(study.reference)
        about = study.rules.for_columns(table.columns, only=True)
        fixed = about.fix(table, schema=study.schema)
        strata = given["strata"] or ()
        chosen = {name: given[name] for name in taken if name in given}
        chosen["strata"] = (strata,) if isinstance(strata, str) else tuple(strata)
        chosen |= _beside_keys(wanted, study.schema, chosen)
        lines = make_plan(study.schema, fixed, **chosen).explain().split("\n")
        rare = count_rare(table, study.schema, int(main.options["k"]))
    steps = [f"{step.name or step.method}: {_options(step.options)}" for step in wanted.steps]
    existing = [n for n in wanted.output.files.values() if folder.inside(n).exists()]
    return {
        "records": source.n_rows, "columns": len(source.columns), "explained": lines,
        "rare": rare, "steps": steps, "keys": list(_explain_keys(wanted)), "existing": existing,
        "file": wanted.input.file, "outputs": wanted.output.files,
        "notes": list(_to_look_at(wanted, study)),
    }  # fmt: skip


def _options(given: Any) -> str:
    """Write options in words: "k = 5, columns = a, b"."""
    if isinstance(given, Mapping):
        pairs = [(name, own, isinstance(own, Mapping)) for name, own in given.items()]
        return ", ".join(f"{n} = {{{_options(v)}}}" if deep else f"{n} = {_options(v)}"
                         for n, v, deep in pairs)  # fmt: skip
    return ", ".join(map(_options, given)) if isinstance(given, list | tuple) else str(given)


def _key_steps(plan: PlanFile) -> list[tuple[Step, list[str]]]:
    """Return the steps that mask categorical keys before "protect", with their columns."""
    found = []
    for step in plan.steps:
        if step.method == "protect":
            break
        if step.method in KEY_METHODS:
            found.append((step, key_columns(step.options)))
    return found


def _beside_keys(plan: PlanFile, schema: Schema, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns and strata of "protect" after steps that mask keys: see `release.states`."""
    keys = [name for _, names in _key_steps(plan) for name in names]
    if not keys:
        return {}
    strata, columns = list(chosen["strata"]), chosen.get("columns")
    if columns is None:
        columns = [n for n in schema.names("quasi-identifier") if n not in (*keys, *strata)]
    columns = [columns] if isinstance(columns, str) else list(columns)
    further = [name for name in keys if name not in (*strata, *columns)]
    return {"columns": columns, "strata": (*strata, *further)}


def _explain_keys(plan: PlanFile) -> Iterator[str]:
    """Say what is done with categorical keys."""
    does = {
        "local suppression": "few cells of {} are emptied",
        "recoding": "{} get coarser categories, one level a column",
        "local recoding": "{} get coarser categories, group by group",
    }
    for step, names in _key_steps(plan):
        share = step.options.get("suppress")
        more = f" up to {share:.3g} of the records may be emptied instead," if share else ""
        what = does[step.method].format(", ".join(names))
        yield f"First, {what},{more} so that k = {step.options.get('k')} have the same ones."


def _to_look_at(plan: PlanFile, study: Any) -> Any:
    """Say what a person should look at before the plan is run."""
    unsure = [name for name, column in plan.columns.items() if column.unsure]
    if unsure:
        yield f"Kind or missing codes of {', '.join(unsure)} are a guess: look at them."
    for column in study.schema:
        if column.role in ("confidential", "untouched", "weight"):
            yield f"{column.name} ({column.role}) is released as it is."


def judge_rules(folder: Folder, *, plan: str, origin: str, text: str) -> dict[str, Any]:
    """Read rules as they were typed, and confront the table with them."""
    wanted, source = _opened(folder, plan, origin)
    schema = wanted.schema_of(source)
    rules = Rules.parse(text, folder=folder.path)
    result = rules.fix(source.table, schema=schema).confront(
        source.table, schema=schema, tolerance=wanted.rules.tolerance
    )
    lines = [
        {"name": rule.name, "text": rule.text, "broken": len(result.rows[at]),
         "unknown": int((result.signs[:, at] == 0).sum()),
         "records": [int(row) + 1 for row in result.rows[at][:BREAKING]]}
        for at, rule in enumerate(rules)
    ]  # fmt: skip
    return {
        "lines": lines, "records": source.n_rows, "breaking": len(result.breaking()),
        "findings": [{"grave": one.is_grave, "text": str(one)} for one in rules.check()],
    }  # fmt: skip


def suggest_rules(folder: Folder, *, plan: str, origin: str) -> dict[str, Any]:
    """Look for rules in the table."""
    wanted, source = _opened(folder, plan, origin)
    schema = wanted.schema_of(source)
    gone = [name for name, column in wanted.columns.items() if column.role == "identifier"]
    for step in wanted.steps:
        if step.method == "drop":
            gone += step.options.get("columns", ())
    names = [name for name in source.columns if name not in gone]
    found = TABLES.keep(
        f"suggested {schema.to_dict()!r}",
        lambda: Rules.suggest(
            source.table.select(names), schema=Schema([schema[name] for name in names])
        ),
    )
    return {"suggestions": [one.to_dict() for one in found[:SUGGESTED]],
            "records": source.n_rows, "false_rate": found.false_rate}  # fmt: skip


def estimate(folder: Folder, *, plan: str, origin: str) -> dict[str, Any]:
    """Estimate what the plan would cost and what an intruder would find, from a sample."""
    wanted, source = _opened(folder, plan, origin)
    schema = wanted.schema_of(source)
    sample = TABLES.keep(f"sample {schema.to_dict()!r}", lambda: Sample.draw(source, schema))
    return preview(wanted, sample).to_dict()


def compare(
    folder: Folder, *, plan: str, origin: str, release: str, pair: list[str] | None = None
) -> dict[str, Any]:
    """Describe the columns of the original beside those of a release, or a pair of them."""
    wanted, source = _opened(folder, plan, origin)
    study = wanted.study(source)
    for step in wanted.steps:
        if step.method in PREPARING:
            study.do(step)
    before = View(Table.read(study.reference), study.schema)
    path = folder.own(release)
    after_table = TABLES.keep(f"release {release}", lambda: _released(path))
    names = [name for name in before.table.columns if after_table.has(name)]
    schema = Schema([study.schema[name] for name in names])
    after = View(after_table, schema)
    if pair is not None:
        for name in pair:
            if name not in names:
                raise BadFileError(name, "the release has no such column", "Choose another")
        return {"pair": compare_pair(before, after, *pair), "names": [str(n) for n in names]}
    return {"columns": compare_columns(before, after, names), "names": [str(n) for n in names]}


def _released(path: Path) -> Table:
    return Table.read(read_file(path).table)


VERBS: dict[str, Callable[..., dict[str, Any]]] = {
    "open": open_file,
    "draft": draft_plan,
    "describe": describe_plan,
    "check": check_plan,
    "rules": judge_rules,
    "suggest": suggest_rules,
    "estimate": estimate,
    "compare": compare,
}


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    given = dict(asked["given"])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            folder = Folder(given.pop("folder"))
            return {"answer": plain_data(VERBS[asked["verb"]](folder, **given))}
    except (PlanFileError, RuleSyntaxError) as error:
        return {"why": str(error), "mistakes": [asdict(one) for one in error.mistakes]}
    except TessellaError as error:
        reword(error)
        return {"why": str(error)}
    except MemoryError:
        return {"why": "There is not enough memory for this table on this machine."}
    except OSError as error:
        name = Path(str(error.filename)).name if error.filename else "a file"
        return {"why": f"{name} cannot be read: {(error.strerror or 'unknown reason').lower()}."}


def _work(out: IO[str]) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        text = json.dumps(_answer(asked))
        out.write(f"\n{asked['key']} {text}\n")
        out.flush()


def main() -> None:
    """Answer until standard input ends."""
    with reserved_stdout():
        out = sys.stdout
        with contextlib.redirect_stdout(sys.stderr):  # what others print is no answer
            _work(out)


if __name__ == "__main__":
    main()
