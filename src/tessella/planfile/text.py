"""Plans as text: drafted with everything stated and explained, and read whole.

A draft is ready to be edited. Reading finds every mistake at once, with its line and what to do.
"""

import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from .._parameters import check_parameters
from .._types import Name
from .._wording import suggest
from ..diversity import Requirement
from ..exceptions import (
    BadFileError,
    BadOptionError,
    BadTableError,
    DataNotFoundError,
    Mistake,
    PlanError,
    PlanFileError,
    TessellaError,
    UnknownColumnError,
    UnknownOptionError,
)
from ..frame import Table, View
from ..grouping.base import check_k
from ..grouping.dominance import checked_dominance
from ..guessing.columns import main_weight
from ..io import Source
from ..masking.engine import METHODS
from ..plan import make_plan
from ..release import Step
from ..release.result import DEFAULTS
from ..release.roles import as_numbers
from ..release.steps import PREPARING, count_rare, drop, make_masker
from ..rules import Rules
from ..schema import Schema
from .hints import for_plan
from .model import (
    Columns,
    Input,
    Lines,
    Measures,
    Output,
    PlanFile,
    RulesPart,
    find_line,
    lines_of_keys,
)

# What pydantic says of wrong types, in words for who writes TOML.
_TEXT, _LIST = 'It must be text in quotes, such as "a".', 'It must be a list, such as ["a", "b"].'
_WHOLE, _NUMBER = "It must be a whole number.", "It must be a number."
_TRUTH, _TABLE = "It must be true or false.", "It must be a table."
_EXPECTED = {
    "string_type": _TEXT, "list_type": _LIST, "tuple_type": _LIST, "int_type": _WHOLE,
    "int_parsing": _WHOLE, "int_from_float": _WHOLE, "float_type": _NUMBER,
    "float_parsing": _NUMBER, "bool_type": _TRUTH, "bool_parsing": _TRUTH, "dict_type": _TABLE,
    "model_type": _TABLE, "model_attributes_type": _TABLE,
}  # fmt: skip
LARGEST = 10_000_000  # bytes of a plan
UNNAMED = "THIS-FILE"  # the plan, where it is printed and nobody knows what it will be called
HEAD = (
    "A plan of tessella: what is read, what is done, what is written. Edit it, then run in its "
    "folder",
    "    tessella protect --plan {plan}",
    "With a seed, the same plan gives the same release; the seed is as confidential as the data.",
)
ROLES = (
    "Kinds: continuous, integer, ordinal, nominal. Roles:",
    "  quasi-identifier  may be known to an intruder: is masked",
    "  identifier        names the respondent: must be dropped",
    "  unit              names the household, firm or patient that k counts: is not released",
    "  confidential      is released as it is; protected because nobody can tell whose it is",
    "  weight            the sampling weight: is released as it is",
    "  untouched         is released as it is",
    "What follows was guessed from names and values. Correct it: you know the data best.",
)

EXPLAINED = "What this step will do:"  # the app removes what follows where the step changes
UNSURE = "Not sure. Correct kind, role and missing if wrong, then delete the line unsure = true."

Found = tuple[int | None, Mistake]  # a mistake and its line


def draft(
    source: Source,
    *,
    k: int,
    rules: str | os.PathLike[str] | None = None,
    strata: Sequence[str] = (),
    schema: Schema | None = None,
    output: str | None = None,
    seed: int | None = None,
    folder: str | os.PathLike[str] = ".",
    name: str | None = None,
    wishes: Mapping[str, Any] | None = None,
) -> str:
    """Write a commented plan for a table that was read.

    Parameters
    ----------
    source : Source
        The table, from `tessella.io.read_file`.
    k : int
        The least number of records that share their released values.
    rules : path, optional
        A file of edit rules.
    strata : sequence of names
        Columns within whose values records are grouped, and that are released as they are.
    schema : Schema, optional
        What is known of the columns, instead of a guess.
    output : str, optional
        The file of the release; by default named after the input.
    seed : int, optional
        Makes the release repeatable.
    folder : path
        Where the plan will be kept: names of files are made relative to it.
    name : str, optional
        What the plan will be called in that folder, for the commands in its comments.
    wishes : mapping, optional
        Further options of the protecting step, such as {"grouping": "mdav"}.

    Returns
    -------
    str
        TOML, for `read_plan`.
    """
    home = Path(folder)
    known = source.schema() if schema is None else schema
    given = Rules() if rules is None else Rules.read(Path(rules))
    stem, point, ending = source.path.name.partition(".")
    written = output or f"{stem or 'release'}-release{point}{ending}"
    stem = Path(written).name.partition(".")[0] or "release"
    careful, further = _careful(as_numbers(known, given, Table.read(source.table)))
    wanted = wishes or {}
    steps, about_steps = _draft_steps(
        source, careful, given, list(strata), further, {"k": k, **wanted}
    )
    if not {"grouping", "options"} & set(wanted):
        about_steps[f"steps.{len(steps) - 1}"] = [
            *about_steps[f"steps.{len(steps) - 1}"],
            "The search is quick. For a slightly smaller loss in more time write "
            'options = { effort = "standard" } or "thorough", or, in seconds, '
            "options = { time_limit = 600 }.",
        ]
    options = {name: value for name, value in source.how.options.items() if value is not None}
    plan = PlanFile(
        seed=seed,
        input=Input(file=_relative(source.path, home), **options),
        rules=RulesPart(file=None if rules is None else _relative(Path(rules), home)),
        columns={
            str(column.name): Columns(
                kind=column.kind, role=column.role, missing=list(column.missing),
                labels=list(column.labels.items()), unsure=column.unsure, unique=column.unique,
            )
            for column in careful
        },
        steps=steps, measures=Measures(),
        output=Output(
            file=written, external_report=f"{stem}-report.html",
            internal_report=f"{stem}-confidential.html", manifest=f"{stem}-manifest.json",
            summary=f"{stem}-summary.json",
        ),
    )  # fmt: skip
    own = shlex.quote(name or UNNAMED)
    places = {what: shlex.quote(str(path)) for what, path in plan.output}
    notes: dict[str, Sequence[str]] = {
        "": [line.format(plan=own) for line in HEAD],
        "input": [
            "How the file was read:",
            *(f"  {line}" for line in for_plan(str(source.how)).split("\n")),
        ],
        "columns": ROLES,
        "measures": [
            'risk: "none", "quick", "standard" or "thorough"; known: the columns that an intruder '
            "knows, all masked ones if not given."
        ],
        "output": [
            "The internal report and the summary are as confidential as the data. With the summary "
            "there, reports are written again:",
            "    tessella report {summary} --external {external_report} --overwrite".format(
                **places
            ),
            "and the release is compared with the original, by verify, loss or risk:",
            f"    tessella verify {shlex.quote(plan.input.file)} {places['file']} --plan {own}",
            "The external report may be published.",
            'order: "shuffled" draws it by chance; "kept" may tell who is who, and lets files be '
            "compared row by row.",
        ],
        **about_steps,
    }
    if len(given):
        notes["rules"] = [f"{len(given)} rules; each holds in the release, or there is none."]
    for column in careful:
        notes[f"columns.{column.name}"] = [column.why, *([UNSURE] if column.unsure else [])]
    return plan.to_toml(notes=notes)


def _careful(known: Schema) -> tuple[Schema, list[Name]]:
    """Return the schema of a draft, and the weights that are left out of the release.

    One weight is kept where a survey's name or words say that it is one. What only may be a weight
    (the weight of a person?), or would tell most records apart, is masked.
    """
    weights = [column for column in known if column.guessed and column.role == "weight"]
    sure = [column.name for column in weights if not column.unsure]
    kept = main_weight(sure) if sure else None
    masked = {
        c.name: {"role": "quasi-identifier", "why": c.why, "unsure": c.unsure}
        for c in weights
        if c.name != kept
    }
    return known.override(masked), [name for name in sure if name != kept]


def _draft_steps(
    source: Source, schema: Schema, rules: Rules, strata: list[str], further: list[Name],
    wishes: dict[str, Any],
) -> tuple[list[Step], dict[str, Sequence[str]]]:  # fmt: skip
    """Choose steps that will work, as far as that can be known without doing them."""
    table = Table.read(source.table)
    k, grouping = check_k(wishes["k"], table.n_rows), wishes.get("grouping", "search")
    if grouping not in (known := (*METHODS, "fuzzy", "overlapping")):
        raise UnknownOptionError("grouping", grouping, known)
    for name in strata:
        if name not in table.columns:
            raise UnknownColumnError(name, table.columns, who="strata")
    steps: list[Step] = []
    notes: dict[str, Sequence[str]] = {}
    empty = [
        name
        for name in schema.names("quasi-identifier")
        if View.of(table, schema).missing(name).all()
    ]
    dropped = {
        "name respondents: these must not be released": schema.names("identifier"),
        "are further weights: one is released, and others would disclose more": further,
        "have no value in any record": empty,
    }
    if gone := [name for names in dropped.values() for name in names]:
        if len(gone) == len(table.columns):
            raise _nothing_masked(source, k, "All columns would be dropped: they name respondents "
                                  "or have no value", list(map(str, gone)))  # fmt: skip
        steps.append(Step(method="drop", options={"columns": [str(name) for name in gone]}))
        notes["steps.0"] = ["Columns that", *(
            f"  {why} ({', '.join(map(str, names))})" for why, names in dropped.items() if names
        )]  # fmt: skip
        left, schema = drop(table, schema, gone)
        table = Table.read(left)
    if not schema.names("quasi-identifier"):
        raise _nothing_masked(source, k, "No column would be masked", list(map(str, table.columns)))
    if rare := count_rare(table, schema, k):
        steps.append(Step(method="suppress", options={"k": k}))
        notes[f"steps.{len(steps) - 1}"] = [
            f"{rare:,} records have a pattern of missing cells that fewer than {k} records share. "
            "Missing cells stay missing, so no group can hold such records: further cells are "
            f"suppressed until {k} records share each pattern. The report says how many, and where."
        ]
    if strata:
        wishes["strata"] = strata
    about = rules.for_columns(table.columns, only=True)
    explained: list[str] = []
    for fit in ("closed", "project"):
        try:
            fixed = about.fix(table, schema=schema)
            asked = {name: wishes[name] for name in ("l", "t", "confidential") if name in wishes}
            found = make_plan(schema, fixed, k=k, strata=tuple(strata), fit=fit, **asked)
            does = [f"  {line}" for line in found.explain().split("\n")]
            explained = [EXPLAINED, *does]
            if fit == "project":
                wishes["fit"] = fit
            if any(block.cases or block.signs for block in found.blocks):
                wishes["small"] = "merge"
            break
        except PlanError as error:
            explained = [f"Not possible as it stands: {for_plan(str(error))}"]
        except TessellaError as error:
            explained = [f"Look at this first: {for_plan(str(error))}"]
            break
    notes[f"steps.{len(steps)}"] = explained
    steps.append(Step(method="protect", options=wishes))
    return steps, notes


def _nothing_masked(source: Source, k: int, why: str, names: list[str]) -> BadTableError:
    keys = shlex.quote(",".join(f'"{name}"' if "," in name else name for name in names))
    return BadTableError(
        f"{why}. Name those that an intruder may know: tessella plan "
        f"{shlex.quote(str(source.path))} -k {k} --others untouched --keys {keys}"
    )


def _relative(path: Path, home: Path) -> str:
    try:
        return Path(os.path.relpath(path, home)).as_posix()
    except ValueError:  # another drive
        return str(path)


def read_plan(path: str | os.PathLike[str]) -> PlanFile:
    """Read and check a plan file.

    Parameters
    ----------
    path : path
        A TOML file; names of files in it are relative to its own folder.

    Raises
    ------
    PlanFileError
        With all mistakes, each with its line.
    BadFileError
        If the file is empty, or no text.
    """
    where = Path(path)
    try:
        if where.stat().st_size > LARGEST:
            problem = f"it has more than {LARGEST:,} bytes"
            raise BadFileError(path, problem, "Give a plan file")
        text = where.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        missing = f"There is no plan {str(path)!r}. Check the name and the folder."
        raise DataNotFoundError(missing) from None
    except OSError as error:
        problem = f"it cannot be read ({str(error.strerror).lower()})"
        raise BadFileError(path, problem, "Give a plan file") from None
    except UnicodeDecodeError:
        raise BadFileError(path, "it is not text in UTF-8", "Save the plan as UTF-8") from None
    if not text.strip():  # as `tessella plan ... > plan.toml` leaves it where drafting fails
        again = f"tessella plan FILE -k K -o {shlex.quote(str(path))} --overwrite"
        raise BadFileError(path, "the plan is empty", f"Draft one: {again}")
    return parse_plan(text, folder=where.parent, origin=where.name)


def parse_plan(text: str, *, folder: str | Path = ".", origin: str = "the plan") -> PlanFile:
    """Read and check the text of a plan file.

    Examples
    --------
    >>> from tessella.planfile import parse_plan
    >>> plan = parse_plan('''
    ... [input]
    ... file = "firms.csv"
    ... [[steps]]
    ... method = "protect"
    ... k = 5
    ... [output]
    ... file = "release.csv"
    ... ''')
    >>> plan.steps[0].options
    {'k': 5}
    """
    try:
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found_line = re.search(r"at line (\d+)", str(error))
        line = int(found_line[1]) if found_line else None
        what = re.sub(r"\s*\(at .*\)$", "", str(error))
        what = re.sub(r"\((?:'[^']*',? ?)+\)", lambda found: _dotted(found[0]), what)
        mistake = Mistake(where=_place(line), message=f"This is not TOML: {what}.")
        raise PlanFileError([mistake], origin=origin) from None
    lines = lines_of_keys(text)
    steps, found = _steps(given.get("steps"), lines)
    checked = {**given, "steps": steps or [Step(method="drop")], "folder": Path(folder)}
    if "folder" in given:
        found.append(_unknown(("folder",), PlanFile, lines))
    plan: PlanFile | None = None
    try:
        plan = PlanFile.model_validate(checked)
    except ValidationError as error:
        found += [_mistake(dict(fault), lines) for fault in error.errors()]
    if plan is not None:
        found += _across(plan, lines)
    if found or plan is None:
        in_order = sorted(found, key=lambda at: at[0] or 0)
        raise PlanFileError([mistake for _, mistake in in_order], origin=origin)
    return plan


def _dotted(path: str) -> str:
    """Write the path of a key as TOML does: ('input', 'file') as [input.file]."""
    names = re.findall(r"'([^']*)'", path)
    return f"[{'.'.join(names)}]"


def _place(line: int | None, where: str = "") -> str:
    return ", ".join(filter(None, [f"line {line}" if line else "", where])) or "the plan"


def _at(line: int | None, where: str, message: str, hint: str = "") -> Found:
    return line, Mistake(where=_place(line, where), message=message, hint=hint)


def _steps(given: Any, lines: Lines) -> tuple[list[Step], list[Found]]:
    """Build each step; a masker's parameters are looked at before anything is read."""
    if not isinstance(given, list) or not given:
        hint = 'Write [[steps]], method = "protect", k = 5.'
        line = find_line(lines, ("steps",))
        return [], [_at(line, "steps", "There are no steps: what is to be done?", hint)]
    steps, found = [], []
    for at, known in enumerate(given):
        try:
            if not isinstance(known, Mapping):
                raise BadOptionError("step", type(known).__name__, "a table [[steps]]")
            step = Step.from_dict(known)
            _look_at(step)
            steps.append(step)
        except TessellaError as error:
            line = find_line(lines, ("steps", at))
            found.append(_at(line, f"steps, number {at + 1}", for_plan(str(error))))
    return steps, found


def _look_at(step: Step) -> None:
    """Find wrong values of a step's options, as far as they can be known without the data."""
    step.public  # noqa: B018 raises what is wrong with a fuzzy draw
    if step.method == "protect":
        if not isinstance(step.options.get("k"), int) or isinstance(step.options["k"], bool):
            raise BadOptionError("k", step.options.get("k"), "a whole number of at least 2")
        given = {**DEFAULTS, **step.options}
        if isinstance(given["columns"], str):
            raise BadOptionError("columns", given["columns"], f"columns=[{given['columns']!r}]")
        checked_dominance(given["dominance"], given["on_dominance"])
        for name, check in (("l", Requirement.of_l), ("t", Requirement.of_t)):
            if given[name] is not None:
                check(given[name])
        return
    if step.method in PREPARING:
        return
    masker = make_masker(step, schema=Schema([]), rules=Rules(), seed=None)
    if hasattr(masker, "_parameters"):  # a masker of the user's own may declare none
        check_parameters(masker)


def _mistake(fault: dict[str, Any], lines: Lines) -> Found:
    """Put one fault that pydantic found into our words."""
    path = tuple(fault["loc"])
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(path, _owner(path), lines)
    where = ".".join(map(str, path))
    messages = {
        "missing": "It is missing.",
        "literal_error": f"It must be {context.get('expected', '')}.",
        "value_error": _sentence(str(context.get("error", fault["msg"]))),
    }
    other = _EXPECTED.get(kind, str(fault["msg"]).replace("Input should", "It should"))
    return _at(find_line(lines, path), where, messages.get(kind) or _sentence(other))


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _unknown(path: tuple[Any, ...], owner: type[BaseModel], lines: Lines) -> Found:
    name = str(path[-1])
    known = [field for field in owner.model_fields if field != "folder"]
    hint = suggest(name, known) or f"There are: {', '.join(known)}."
    where = ".".join(map(str, path))
    return _at(find_line(lines, path), where, f"{name!r} is not known here.", hint)


def _owner(path: tuple[Any, ...]) -> type[BaseModel]:
    """Return the part of the plan in which a path ends."""
    owner: type[BaseModel] = PlanFile
    for piece in path[:-1]:
        field = owner.model_fields.get(str(piece))
        if field is None:
            continue
        parts = [field.annotation, *get_args(field.annotation)]
        inner = [p for p in parts if isinstance(p, type) and issubclass(p, BaseModel)]
        owner = inner[0] if inner else owner
    return owner


def _across(plan: PlanFile, lines: Lines) -> Iterator[Found]:
    """Find what only shows when parts are seen together."""
    if not plan.columns:
        return
    for at, step in enumerate(plan.steps):
        for option in ("columns", "column", "strata", "confidential"):
            named = step.options.get(option)
            for name in [named] if isinstance(named, str) else named or ():
                if isinstance(name, str) and name not in plan.columns:
                    line, where = find_line(lines, ("steps", at, option)), f"steps, number {at + 1}"
                    hint = suggest(name, plan.columns)
                    yield _at(line, where, f"There is no column {name!r}.", hint)
