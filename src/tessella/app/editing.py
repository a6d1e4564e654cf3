"""A form changes a plan: the content is changed as plain data, the text as little as possible.

A plan is `dict -> dict` for whoever changes it. `rewrite` then carries the difference into the
text, so that comments, order and spelling of all that did not change stay as a person wrote them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, MutableMapping
from typing import Any

from .._lazy import optional
from ..exceptions import TessellaError
from ..planfile import parse_plan
from ..planfile.text import EXPLAINED
from ..release.steps import PREPARING

Content = dict[str, Any]
NUMBERS = ("continuous", "integer")
# Steps that mask categorical keys, before the step that masks the other columns.
KEY_METHODS = ("local suppression", "recoding", "local recoding")


def rewrite(text: str, wanted: Mapping[str, Any]) -> str:
    r"""Return the text of a plan whose content is `wanted`, like the given text where they agree.

    Examples
    --------
    >>> from tessella.app.editing import rewrite
    >>> print(rewrite("seed = 1  # drawn", {"seed": 2}))
    seed = 2  # drawn
    """
    tomlkit = optional("tomlkit", extra="app", purpose="Changing a plan")
    document = tomlkit.parse(text)
    if document.unwrap().get("steps") != wanted.get("steps"):
        document = tomlkit.parse(_without_explanation(text))
    _update(document, wanted, tomlkit)
    changed: str = tomlkit.dumps(document)
    try:
        if tomllib.loads(changed) == wanted:
            return changed
    except tomllib.TOMLDecodeError:
        pass
    # A text that its library cannot change in place (tables of one name in several places) is
    # written anew, without its comments: what it says counts more than how.
    return parse_plan(tomlkit.dumps(dict(wanted))).to_toml()


def _update(held: MutableMapping[str, Any], wanted: Mapping[str, Any], tomlkit: Any) -> None:
    """Change what differs, remove what is not wanted, add what is new."""
    stated = {name: held.get(name) for name in ("kind", "role")}
    if "kind" in wanted and stated != {name: wanted.get(name) for name in stated}:
        _forget_reason(held, tomlkit)
    for name in [name for name in held if name not in wanted]:
        del held[name]
    for name, value in wanted.items():
        # What is inside of a step, or of a table in braces, is written in braces.
        inline = "method" in wanted or isinstance(held, tomlkit.items.InlineTable)
        if name not in held:
            held[name] = _fresh(value, tomlkit, inline=inline)
        elif _plain(held[name]) != value or type(_plain(held[name])) is not type(value):
            own = held[name]
            if isinstance(own, MutableMapping) and isinstance(value, Mapping):
                _update(own, value, tomlkit)
            elif isinstance(own, tomlkit.items.AoT) and _are_tables(value):
                _update_tables(own, value, tomlkit)
            else:
                held[name] = _fresh(value, tomlkit, inline=inline)


def _update_tables(held: Any, wanted: list[Mapping[str, Any]], tomlkit: Any) -> None:
    """Change a list of tables: in place where the methods are the same ones, anew otherwise.

    What stands behind the last one is about the next section, and stays.
    """
    if [own.get("method") for own in held] == [value.get("method") for value in wanted]:
        for own, value in zip(held, wanted):
            _update(own, value, tomlkit)
        return
    behind = _behind(held[-1]) if len(held) else []
    while len(held):
        del held[0]
    for at, value in enumerate(wanted):
        table = tomlkit.table()
        for name, inner in value.items():
            table[name] = _fresh(inner, tomlkit, inline=True)
        last = at + 1 == len(wanted)
        for item in behind if last and behind else [tomlkit.nl()]:
            table.add(item)
        held.append(table)


def _forget_reason(column: Any, tomlkit: Any) -> None:
    """Remove the comments above the kind of a column: they gave the reason of a guess."""
    body = column.value.body
    for at, (key, item) in enumerate(body):
        if key is not None:
            return
        if item.as_string().lstrip().startswith("#"):
            body[at] = (None, tomlkit.items.Null())


def _behind(table: Any) -> list[Any]:
    """Return the comments and empty lines behind the last key of a table."""
    found: list[Any] = []
    for key, item in reversed(table.value.body):
        if key is not None:
            break
        found.insert(0, item)
    return found


def _without_explanation(text: str) -> str:
    """Remove what a draft says that its steps will do: they have changed."""
    lines, kept, inside = text.split("\n"), [], False
    for line in lines:
        inside = line.startswith("#") and (inside or line == f"# {EXPLAINED}")
        if not inside:
            kept.append(line)
    return "\n".join(kept)


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _fresh(value: Any, tomlkit: Any, *, inline: bool = False) -> Any:
    if isinstance(value, Mapping):
        inline = inline or not _nested(value)
        table = tomlkit.inline_table() if inline else tomlkit.table()
        for name, inner in value.items():
            table[name] = _fresh(inner, tomlkit, inline=inline)
        return table
    if _are_tables(value) and "method" in value[0]:
        tables = tomlkit.aot()
        for inner in value:
            table = tomlkit.table()
            for name, own in inner.items():
                table[name] = _fresh(own, tomlkit, inline=True)
            tables.append(table)
        return tables
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        for inner in value:
            array.append(_fresh(inner, tomlkit, inline=True))
        if value and all(isinstance(v, str) for v in value) and sum(map(len, value)) > 70:
            array.multiline(True)
        return array
    return tomlkit.item(value)


def _nested(value: Mapping[str, Any]) -> bool:
    """Whether a table is one of the plan's own, with a header: [measures], [columns.age]."""
    return bool({"kind", "loss", "risk", "lines", "file"} & set(value)) or any(
        isinstance(own, Mapping) and "kind" in own for own in value.values()
    )


def _plain(value: Any) -> Any:
    return value.unwrap() if hasattr(value, "unwrap") else value


# What forms change.


def content_of(text: str) -> Content:
    """Return what a plan says, as plain data; the text must be TOML."""
    return tomllib.loads(text)


def steps_of(plan: Content) -> list[Content]:
    """Return the steps of a plan."""
    return [dict(step) for step in plan.get("steps", [])]


def masking_steps(plan: Content) -> list[Content]:
    """Return the steps that change values."""
    return [step for step in steps_of(plan) if step.get("method") not in PREPARING]


def keys_step(plan: Content) -> Content:
    """Return the step that masks categorical keys, if there is one."""
    return next((one for one in masking_steps(plan) if one["method"] in KEY_METHODS), {})


def key_columns(options: Mapping[str, Any]) -> list[str]:
    """Return the columns that a step of the keys masks."""
    forms = options.get("hierarchies")
    return names_of(options.get("columns")) or (list(forms) if isinstance(forms, Mapping) else [])


def main_step(plan: Content) -> Content:
    """Return the step that forms of the plan are about.

    The first that masks, and is not about categorical keys; that of the keys, if it is alone.
    """
    masking = masking_steps(plan)
    others = [step for step in masking if step["method"] not in KEY_METHODS]
    return next(iter([*others, *masking]), {})


def with_main_step(plan: Content, changes: Mapping[str, Any]) -> Content:
    """Change options of the main step; None removes one."""
    return with_step(plan, main_step(plan), changes)


def with_step(plan: Content, wanted: Content, changes: Mapping[str, Any]) -> Content:
    """Change options of a step that is in the plan; None removes one."""
    steps = steps_of(plan)
    if wanted in steps:
        step = steps[steps.index(wanted)]
        for name, value in changes.items():
            if value is None:
                step.pop(name, None)
            else:
                step[name] = value
    return {**plan, "steps": steps}


def k_of(plan: Content) -> int | None:
    """Return the k of the main step, or that of the keys."""
    return main_step(plan).get("k", keys_step(plan).get("k"))


def with_k(plan: Content, k: int) -> Content:
    """Set k in every step that had the main step's."""
    was = k_of(plan)
    steps = [
        {**step, "k": k} if "k" in step and step["k"] == was else step for step in steps_of(plan)
    ]
    return {**plan, "steps": steps}


def quasi_identifiers(plan: Content) -> tuple[list[str], list[str]]:
    """Return the columns that methods mask: numbers, and categories."""
    dropped = {
        name
        for step in steps_of(plan)
        if step["method"] == "drop"
        for name in names_of(step.get("columns"))
    }
    recoded = {step.get("column") for step in steps_of(plan) if step["method"] == "recode"}
    numbers: list[str] = []
    categories: list[str] = []
    for name, column in plan.get("columns", {}).items():
        if column.get("role", "quasi-identifier") != "quasi-identifier" or name in dropped:
            continue
        is_number = column.get("kind") in NUMBERS and name not in recoded
        (numbers if is_number else categories).append(name)
    return numbers, categories


def with_columns(plan: Content, changes: Mapping[str, Mapping[str, Any]]) -> Content:
    """Change what is said of columns; a role that drops or keeps a column changes the drop step.

    An identifier is dropped; a column that was one and is no longer is not.
    """
    columns = {name: dict(own) for name, own in plan.get("columns", {}).items()}
    gone: list[str] = []
    back: list[str] = []
    for name, change in changes.items():
        if name not in columns:
            raise TessellaError(f"The plan says nothing of a column {name!r}. Reload the page.")
        own = columns[name]
        role = change.get("role", own.get("role"))
        if role == "identifier" != own.get("role"):
            gone.append(name)
        elif own.get("role") == "identifier" != role:
            back.append(name)
        if role == "unit" and own.get("role") != "unit":
            for other, known in columns.items():  # one column names the units
                if known.get("role") == "unit" and other not in changes:
                    known["role"] = "identifier"
                    gone.append(other)
        for key, value in change.items():
            if value is None or value == []:
                own.pop(key, None)
            else:
                own[key] = value
        own.pop("unsure", None)
    return _dropping({**plan, "columns": columns}, gone, back)


def _dropping(plan: Content, gone: list[str], back: list[str]) -> Content:
    steps = steps_of(plan)
    if not gone and not back:
        return plan
    at = next((i for i, step in enumerate(steps) if step.get("method") == "drop"), None)
    named = [] if at is None else names_of(steps[at].get("columns"))
    named = [name for name in named if name not in back]
    named += [name for name in gone if name not in named]
    if at is None:
        steps = [{"method": "drop", "columns": named}, *steps] if named else steps
    elif named:
        steps[at]["columns"] = named
    else:
        del steps[at]
    # A column that is dropped can be named by no other step.
    for step in steps:
        if step.get("method") == "drop":
            continue
        for option in ("columns", "strata"):
            if option in step:
                step[option] = [n for n in names_of(step[option]) if n not in named]
                if not step[option]:
                    del step[option]
    steps = [
        step for step in steps if step.get("method") != "recode" or step.get("column") not in named
    ]
    return {**plan, "steps": steps}


def names_of(value: Any) -> list[str]:
    """Return the names of an option that is one name, several, or none."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def with_rules(plan: Content, lines: list[str]) -> Content:
    """Set the rules of a plan, line by line."""
    rules = {k: v for k, v in plan.get("rules", {}).items() if k not in ("file", "lines")}
    if lines:
        rules["lines"] = lines
    if not rules:
        return {name: value for name, value in plan.items() if name != "rules"}
    return {**plan, "rules": rules}


def with_steps(plan: Content, masking: list[Content]) -> Content:
    """Replace the steps that mask; those that prepare stay."""
    first = [step for step in steps_of(plan) if step.get("method") in PREPARING]
    return {**plan, "steps": [*first, *masking]}


def with_preparing(plan: Content, method: str, steps: list[Content]) -> Content:
    """Replace the steps of one preparing method; others keep their places."""
    own, order = steps_of(plan), list(PREPARING)
    rest = [step for step in own if step.get("method") != method]
    place = order.index(method)
    at = sum(step.get("method") in order[: place + 1] for step in rest)
    return {**plan, "steps": [*rest[:at], *steps, *rest[at:]]}


def with_value(plan: Content, section: str, name: str, value: Any) -> Content:
    """Set, or with None remove, one value of a section; "" is the top of the plan."""
    held = dict(plan) if not section else dict(plan.get(section, {}))
    if value is None:
        held.pop(name, None)
    else:
        held[name] = value
    return held if not section else {**plan, section: held}
