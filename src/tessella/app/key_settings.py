"""What the page of the plan says of categorical keys, and what a changed field makes of the plan.

Keys are masked together with the numbers by the main step, or by a step of their own before it:
cells are emptied, or categories get coarser. The main step then forms its groups within the classes
of equal keys, so that one k is over all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._parameters import Number
from ..exceptions import BadOptionError, UnknownOptionError
from ..keys import Hierarchy
from ..keys.sources import check_form
from ..masking import registry
from .editing import (
    KEY_METHODS,
    Content,
    k_of,
    key_columns,
    keys_step,
    main_step,
    masking_steps,
    names_of,
    quasi_identifiers,
    with_step,
    with_steps,
)

USUAL_K = 5
STAYS = 0.9  # the chance that a category stays, beside a method for numbers
TOGETHER = "masked together with the numbers"
TITLES = {
    "local suppression": "empty few cells (local suppression)",
    "recoding": "coarser categories, one level a column (recoding)",
    "local recoding": "coarser categories, group by group (local recoding)",
}
NOTHING = {"prefix": [0]}  # a value is released as it is, or not at all
IN_TEXT = "as in the text of the plan: "
WANTED = "prefix 3, 2, 0 or width 5, 10, 20 or file job.csv; nothing for the value or none at all"
SHARE = Number(least=0, below=1)


def key_choices() -> dict[str, str]:
    """Return what can be done with categorical keys, with titles."""
    known = registry.methods()
    return {"": TOGETHER, **{name: TITLES[name] for name in KEY_METHODS if name in known}}


def key_names(plan: Content) -> list[str]:
    """Return the columns that the step of the keys masks."""
    return key_columns(keys_step(plan))


def _forms(step: Content) -> dict[str, Any]:
    forms = step.get("hierarchies")
    return dict(forms) if isinstance(forms, Mapping) else {}


def read_key_settings(plan: Content) -> dict[str, str]:
    """Return the fields about keys, as texts."""
    step = keys_step(plan)
    share, forms = step.get("suppress"), _forms(step)
    fields = {"keys": str(step.get("method", "")), "emptied": str(share or "")}
    for at, name in enumerate(plan.get("columns", {})):
        if name in forms:
            fields[f"hierarchy-{at}"] = write_hierarchy(forms[name])
    return fields


def write_hierarchy(form: Any) -> str:
    """Write a hierarchy as `read_hierarchy` reads it; others are named only."""
    if form == NOTHING:
        return ""
    if isinstance(form, Mapping) and len(form) == 1:
        ((kind, own),) = form.items()
        if kind == "file" and isinstance(own, str):
            return f"file {own}"
        if kind in ("prefix", "width") and isinstance(own, list):
            return f"{kind} {', '.join(map(str, own))}"
    return IN_TEXT + (", ".join(map(str, form)) if isinstance(form, Mapping) else "?")


def read_hierarchy(column: str, text: str) -> dict[str, Any]:
    """Read a hierarchy from a field, and check it as far as it can be checked without values.

    Examples
    --------
    >>> from tessella.app.key_settings import read_hierarchy
    >>> read_hierarchy("zip", "prefix 3, 2, 0"), read_hierarchy("job", "file job.csv")
    ({'prefix': [3, 2, 0]}, {'file': 'job.csv'})
    >>> read_hierarchy("sex", "")
    {'prefix': [0]}
    """
    who = f"categories of {column}"
    if not text:
        return dict(NOTHING)
    kind, _, rest = text.partition(" ")
    form: dict[str, Any] = {"file": rest.strip()}
    if kind in ("prefix", "width"):
        parts = [part for part in re.split(r"[,;\s]+", rest) if part]
        if not all(re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", part) for part in parts):
            raise BadOptionError(who, text[:100], WANTED)
        form = {kind: [float(part) if "." in part else int(part) for part in parts]}
    elif kind != "file" or not rest.strip():
        raise BadOptionError(who, text[:100], WANTED)
    try:
        check_form(form, who)
        if kind != "file":  # lengths and widths are checked where a hierarchy is built
            Hierarchy.of(form, values=["0"], name=column)
    except BadOptionError:
        raise BadOptionError(who, text[:100], WANTED) from None
    return form


def set_keys(plan: Content, text: str) -> Content:
    """Mask keys by another step, or together with the numbers."""
    if text not in key_choices():
        raise UnknownOptionError("categorical keys", text, list(key_choices()))
    names = key_names(plan)
    if not names:
        strata = names_of(main_step(plan).get("strata"))
        names = [name for name in quasi_identifiers(plan)[1] if name not in strata]
    if text and not names:
        raise BadOptionError(
            "categorical keys", TITLES[text], "a quasi-identifier that is nominal or ordinal and "
            "no stratum: kinds and roles are set on the page Open"
        )  # fmt: skip
    return with_keys(plan, text, names if text else [])


def with_keys(plan: Content, method: str, names: list[str]) -> Content:
    """Let a step of some method mask some columns as keys; without names, there is no such step.

    The other masking steps lose these columns, and get those that are keys no longer.
    """
    held, k, before = keys_step(plan), k_of(plan) or USUAL_K, key_names(plan)
    others = [step for step in masking_steps(plan) if step != held]
    strata = names_of(main_step(plan).get("strata"))
    steps = []
    if names:
        steps.append(_step_of(method, names, strata, {**held, "k": held.get("k", k)}))
    back = [name for name in before if name not in names]
    steps += [left for step in others if (left := _without(step, names, back))]
    return _completed(with_steps(plan, steps), k)


def _step_of(method: str, names: list[str], strata: list[str], held: Content) -> Content:
    """Return a step of the keys; what a former one said is kept, where it still applies."""
    same = held.get("method") == method
    step: Content = {"method": method, "k": held["k"]}
    if strata:
        step["strata"] = strata
    if method == "local suppression":
        step["columns"] = names
    else:
        forms = _forms(held)
        step["hierarchies"] = {name: forms.get(name, dict(NOTHING)) for name in names}
        if same and "columns" in held:  # numbers without a hierarchy, in the same groups
            beside = [name for name in names_of(held["columns"]) if name not in forms]
            step["columns"] = [*names, *(name for name in beside if name not in names)]
        if "suppress" in held:
            step["suppress"] = held["suppress"]
    used = {"method", "k", "strata", "columns", "hierarchies", "suppress"}
    return step | ({n: v for n, v in held.items() if n not in used} if same else {})


def _without(step: Content, names: list[str], back: list[str]) -> Content | None:
    """Return a masking step without the keys, and with columns that are keys no longer."""
    step = dict(step)
    if "columns" in step:
        columns = [name for name in names_of(step["columns"]) if name not in names]
        if step["method"] in ("protect", "pram"):
            columns += [name for name in back if name not in columns]
        if not columns:
            return None
        step["columns"] = columns
    if isinstance(step.get("blocks"), list):
        blocks = [[name for name in block if name not in names] for block in step["blocks"]]
        blocks = [block for block in blocks if block]
        blocks += [list(back)] if back and blocks else []
        step["blocks"] = blocks
        if len(blocks) < 2:
            del step["blocks"]
    return step


def _completed(plan: Content, k: int) -> Content:
    """Let there be a step for columns that none masks, and no step that has nothing to mask."""
    steps = masking_steps(plan)
    strata = [name for step in steps for name in names_of(step.get("strata"))]
    masked = {name for step in steps for name in names_of(step.get("columns"))}
    masked |= {*key_names(plan), *strata}
    numbers, categories = ([n for n in own if n not in masked] for own in quasi_identifiers(plan))
    if any(step["method"] not in KEY_METHODS for step in steps):
        if not numbers and not categories:
            steps = [one for one in steps if one["method"] != "protect" or "columns" in one]
        elif categories and all("columns" in step for step in steps):
            steps.append({"method": "pram", "p": STAYS, "invariant": True, "columns": categories})
    elif numbers or categories:
        steps.append({"method": "protect", "k": k})
    return with_steps(plan, steps)


def follow(plan: Content, before: Content) -> Content:
    """Let the keys follow columns that became categories to be masked, or are none any more.

    A column that was no key, by the text of the plan, stays none. What need not be masked any more
    leaves the other steps as well.
    """
    held = keys_step(before)
    still = [name for own in quasi_identifiers(plan) for name in own]
    free = [name for own in quasi_identifiers(before) for name in own if name not in still]
    steps = masking_steps(plan)
    left = [own for one in steps if (own := one if one == held else _without(one, free, []))]
    if left and left != steps:
        plan = with_steps(plan, left)
    if not held:
        return plan
    strata = names_of(main_step(plan).get("strata"))
    was = set(quasi_identifiers(before)[1]) - set(names_of(main_step(before).get("strata")))
    numbers, categories = quasi_identifiers(plan)
    now = [name for name in categories if name not in strata]
    known = {*numbers, *categories} - set(strata)
    gone = was - set(now)
    names = [name for name in key_names(before) if name in known and name not in gone]
    names += [name for name in now if name not in was and name not in names]
    if names == key_names(before) and strata == names_of(held.get("strata")):
        return plan
    return with_keys(plan, str(held["method"]), names)


def set_emptied(plan: Content, text: str) -> Content:
    """Set the share of records whose keys may be emptied, beside a recoding."""
    step = keys_step(plan)
    if "hierarchies" not in step:
        raise BadOptionError("records that may be emptied", text, "keys that are made coarser")
    try:
        share = float(text) if text else 0.0
    except ValueError:
        share = -1.0
    if not SHARE.accepts(share):
        raise BadOptionError("records that may be emptied", text[:100], "a share, such as 0.02")
    return with_step(plan, step, {"suppress": share or None})


def set_hierarchies(plan: Content, changes: Mapping[str, str]) -> tuple[Content, list[str]]:
    """Set the hierarchies that a form gives; return the plan, and what was changed in words."""
    step, words = keys_step(plan), []
    columns, forms = list(plan.get("columns", {})), _forms(step)
    for field, text in changes.items():
        at = int(field.removeprefix("hierarchy-"))
        name = columns[at] if at < len(columns) else ""
        if name not in forms:
            raise BadOptionError(f"categories of {name}", text[:100], "a key that is made coarser")
        forms[name] = read_hierarchy(name, text)
        words.append(f"categories of {name}: {text or 'the value or none'}")
    return with_step(plan, step, {"hierarchies": forms}), words
