"""What the page of the plan shows of it, field by field, and what a changed field makes of it.

`read_settings` gives the fields as texts, as a form has them; `apply_settings` takes those that
somebody changed. Between them stands the plan as plain data, so that form and TOML are two views
of one thing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..exceptions import BadOptionError, UnknownOptionError
from ..grouping.dominance import DominanceRule
from ..masking import registry
from ..masking.engine import METHODS
from ..planfile.diversity_text import read_requirement, write_requirement
from ..release.steps import options_of
from .editing import (
    Content,
    k_of,
    keys_step,
    main_step,
    names_of,
    quasi_identifiers,
    steps_of,
    with_k,
    with_main_step,
    with_preparing,
    with_steps,
    with_value,
)
from .key_settings import (
    STAYS,
    USUAL_K,
    follow,
    key_choices,
    key_names,
    read_key_settings,
    set_emptied,
    set_hierarchies,
    set_keys,
)

EFFORTS = ("quick", "standard", "thorough")
RISKS = ("none", "quick", "standard", "thorough")
ON_DOMINANCE = ("report", "enlarge", "refuse")
OUTPUTS = ("file", "external_report", "internal_report", "manifest", "summary")
GROUPINGS = {
    "search": "Microaggregation, groups searched for (least loss)",
    "fuzzy": "Fuzzy microaggregation (against intruders who know the method)",
    "overlapping": "Overlapping groups",
    "mdav": "Microaggregation by MDAV",
}
Fields = dict[str, str]


def method_choices() -> dict[str, str]:
    """Return the methods that the form offers, with their titles."""
    others = [name for name in METHODS if name not in GROUPINGS and name != "univariate"]
    found = {f"protect:{name}": title for name, title in GROUPINGS.items()}
    found |= {f"protect:{name}": f"Microaggregation by {name}" for name in others}
    for name, method in registry.methods().items():
        if method.masker is not None and method.tuned is not None and "micro" not in name:
            found[name] = method.name.capitalize()
    return found


def read_settings(plan: Content) -> Fields:
    """Return the fields of the form, as texts; lists have a value a line."""
    step = main_step(plan)
    method = str(step.get("method", "protect"))
    options = step.get("options") or {}
    dominance = step.get("dominance", 10)
    fields = {
        "k": str(k_of(plan) or ""),
        "method": f"protect:{step.get('grouping', 'search')}" if method == "protect" else method,
        "effort": str(options.get("effort", "quick")) if isinstance(options, Mapping) else "quick",
        "amount": _amount(step),
        "strata[]": "\n".join(names_of(step.get("strata"))),
        "dominance": _dominance(dominance),
        "on_dominance": str(step.get("on_dominance", "report")),
        "suppress": "1" if any(one["method"] == "suppress" for one in steps_of(plan)) else "",
        "seed": str(plan.get("seed", "")),
        "risk": str(plan.get("measures", {}).get("risk", "quick")),
        "known[]": "\n".join(names_of(plan.get("measures", {}).get("known"))),
        "order": str(plan.get("output", {}).get("order", "shuffled")),
        "l": write_requirement(step.get("l")),
        "t": write_requirement(step.get("t")),
        **read_key_settings(plan),
    }
    for at, name in enumerate(plan.get("columns", {})):
        fields[f"block-{at}"] = _block_of(step, name)
    for name in OUTPUTS:
        fields[f"output-{name}"] = str(plan.get("output", {}).get(name, ""))
    return fields


def changed_fields(shown: Fields, sent: Mapping[str, str], *, whole: bool) -> Fields:
    """Return the fields that somebody changed in a form.

    A box that is not ticked is not sent: in a whole form it is empty.
    """
    boxes = ("suppress", "strata[]", "known[]")
    found = {}
    for name, value in shown.items():
        new = sent.get(name, "" if whole and name in boxes else value)
        new = new.replace("\r\n", "\n").strip()
        if new != value:
            found[name] = new
    return found


def apply_settings(plan: Content, changes: Fields) -> tuple[Content, str]:
    """Return the plan with changed fields, and what was changed, in words."""
    words = []
    first = {name: place for place, name in enumerate(("method", "k", "keys"))}
    order = sorted(changes, key=lambda name: first.get(name, len(first)))
    for name in order:
        value = changes[name]
        if name.startswith(("block-", "hierarchy-")):
            continue
        if name.startswith("output-"):
            key = name.removeprefix("output-")
            if key == "file" and not value:
                raise BadOptionError("the name of the release", "", "a name such as release.csv")
            plan = with_value(plan, "output", key, value or None)
            words.append(f"{key.replace('_', ' ')}: {value or 'none'}")
            continue
        before = read_settings(plan).get(name, "")
        plan = _APPLY[name](plan, value)
        words.append(_in_words(name, before, value))
    if any(name.startswith("block-") for name in changes):
        plan = _with_blocks(plan, changes)
        words.append("blocks of columns")
    typed = {name: value for name, value in changes.items() if name.startswith("hierarchy-")}
    if typed:
        plan, more = set_hierarchies(plan, typed)
        words += more
    return plan, "; ".join(words)


def _in_words(name: str, before: str, value: str) -> str:
    titles = {"strata[]": "strata", "known[]": "what an intruder knows", "risk": "risk effort",
              "suppress": "suppression", "on_dominance": "dominated groups",
              "dominance": "dominance rule", "amount": "amount", "order": "order",
              "l": "l-diversity", "t": "t-closeness",
              "emptied": "share of records that may be emptied"}  # fmt: skip
    title = titles.get(name, name)
    if name == "method":
        return f"method: {method_choices().get(value, value)}"
    if name == "keys":
        return f"categorical keys: {key_choices().get(value, value)}"
    if name == "seed":
        return "seed"  # it is confidential, and histories are read over shoulders
    if "\n" in before + value or name in ("suppress", "strata[]", "known[]"):
        return f"{title}: {', '.join(value.split(chr(10))) or 'none'}"
    return f"{title}: {before or 'none'} → {value or 'none'}"


def _whole(name: str, text: str, least: int) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
        raise BadOptionError(name, text, f"a whole number of at least {least}")
    return int(text)


def _set_k(plan: Content, text: str) -> Content:
    k = _whole("k", text, 2)
    if k_of(plan) is None:
        raise BadOptionError("k", text, "a method that makes groups; this one has no k")
    return with_k(plan, k)


def _set_method(plan: Content, text: str) -> Content:
    if text not in method_choices():
        raise UnknownOptionError("method", text, method_choices())
    step, keys, k = main_step(plan), keys_step(plan), k_of(plan) or USUAL_K
    numbers, categories = (
        [name for name in own if name not in key_names(plan)] for own in quasi_identifiers(plan)
    )
    if keys and not numbers and not categories:
        expected = "columns that are no categorical keys; or let keys be masked with the numbers"
        raise BadOptionError("method", method_choices()[text], expected)
    before = [keys] if keys else []
    method, _, grouping = text.partition(":")
    if method == "protect":
        held = ("strata", "dominance", "on_dominance", "blocks", "l", "t", "confidential")
        same = step.get("method") == "protect"
        kept: Content = {name: step[name] for name in held if same and name in step}
        named = {} if grouping == "search" else {"grouping": grouping}
        if grouping in ("fuzzy", "overlapping"):
            kept.pop("blocks", None)
        return with_steps(plan, [*before, {"method": "protect", "k": k, **named, **kept}])
    tuned = registry.find(method).tuned
    assert tuned is not None  # or it is not offered
    value = registry.find(method).defaults.get(tuned.name, tuned.values[0] if tuned.values else k)
    made: Content = {"method": method, **dict.fromkeys((tuned.name, *tuned.also), value)}
    steps = []
    if registry.find(method).masks == "categories":
        steps.append({**made, "columns": categories or numbers})
    else:
        if numbers:
            steps.append({**made, "columns": numbers})
        if categories:
            drawn = {"method": "pram", "p": STAYS, "invariant": True, "columns": categories}
            steps.append(drawn)
    return with_steps(plan, [*before, *steps])


def _with_option(plan: Content, name: str, value: Any) -> Content:
    """Set an option of the main step, if its method has such an option; None removes it."""
    method = str(main_step(plan).get("method", ""))
    if name not in options_of(method):
        raise BadOptionError(name, value, f"nothing: the method {method!r} has no such option")
    return with_main_step(plan, {name: value})


def _set_effort(plan: Content, text: str) -> Content:
    if text not in EFFORTS:
        raise UnknownOptionError("effort", text, EFFORTS)
    options = dict(main_step(plan).get("options") or {})
    options.pop("effort", None)
    if text != "quick":
        options["effort"] = text
    return _with_option(plan, "options", options or None)


def _amount(step: Content) -> str:
    try:
        tuned = registry.find(step.get("method")).tuned
    except UnknownOptionError:
        return ""
    if tuned is None or tuned.name == "k":
        return ""
    value = step.get(tuned.name, "")
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _set_amount(plan: Content, text: str) -> Content:
    tuned = registry.find(main_step(plan).get("method")).tuned
    if tuned is None or tuned.name == "k":
        raise BadOptionError("amount", text, "a method with an amount; this one has a k")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not tuned.low <= value <= tuned.high:
        raise BadOptionError(tuned.name, text, f"a number from {tuned.low:g} to {tuned.high:g}")
    whole = int(value) if tuned.whole or value.is_integer() else value
    return with_main_step(plan, dict.fromkeys((tuned.name, *tuned.also), whole))


def _set_strata(plan: Content, text: str) -> Content:
    return follow(_with_option(plan, "strata", _known(plan, "strata", text) or None), plan)


def _known(plan: Content, what: str, text: str) -> list[str]:
    names = [name for name in text.split("\n") if name]
    for name in names:
        if name not in plan.get("columns", {}):
            raise UnknownOptionError(f"column of {what}", name, list(plan.get("columns", {})))
    return names


def _dominance(rule: Any) -> str:
    if isinstance(rule, Mapping):
        return ", ".join(f"{name} = {value:g}" for name, value in rule.items())
    return f"{rule:g}" if isinstance(rule, int | float) else str(rule)


def _set_dominance(plan: Content, text: str) -> Content:
    expected = "p in per cent, such as 10, or n = 1, k = 85"
    try:
        parts = [part.partition("=") for part in text.split(",")]
        if all(not equals for _, equals, _ in parts):
            rule: Any = {"p": float(text)}
        else:
            rule = {name.strip(): float(value) for name, _, value in parts}
        rule = {name: int(v) if v.is_integer() else v for name, v in rule.items()}
    except (ValueError, OverflowError):
        raise BadOptionError("dominance", text, expected) from None
    DominanceRule.of(rule)
    return _with_option(plan, "dominance", rule["p"] if set(rule) == {"p"} else rule)


def _set_on_dominance(plan: Content, text: str) -> Content:
    if text not in ON_DOMINANCE:
        raise UnknownOptionError("dominated groups", text, ON_DOMINANCE)
    return _with_option(plan, "on_dominance", text)


def _set_requirement(name: str) -> Callable[[Content, str], Content]:
    def change(plan: Content, text: str) -> Content:
        wanted = read_requirement(name, text) if text else None
        columns = plan.get("columns", {}).values()
        confidential = any(own.get("role") == "confidential" for own in columns)
        if text and not confidential and not main_step(plan).get("confidential"):
            expected = "a column with the role confidential: set it on the page Open"
            raise BadOptionError(name, text, expected)
        return _with_option(plan, name, wanted)

    return change


def _set_suppress(plan: Content, text: str) -> Content:
    k = k_of(plan) or USUAL_K
    return with_preparing(plan, "suppress", [{"method": "suppress", "k": k}] if text else [])


def _set_seed(plan: Content, text: str) -> Content:
    return with_value(plan, "", "seed", _whole("seed", text, 0) if text else None)


def _set_risk(plan: Content, text: str) -> Content:
    if text not in RISKS:
        raise UnknownOptionError("risk", text, RISKS)
    return with_value(plan, "measures", "risk", text)


def _set_known(plan: Content, text: str) -> Content:
    return with_value(plan, "measures", "known", _known(plan, "knowledge", text) or None)


def _set_order(plan: Content, text: str) -> Content:
    if text not in ("shuffled", "kept"):
        raise UnknownOptionError("order", text, ("shuffled", "kept"))
    return with_value(plan, "output", "order", text)


_APPLY: dict[str, Callable[[Content, str], Content]] = {
    "k": _set_k,
    "method": _set_method,
    "effort": _set_effort,
    "amount": _set_amount,
    "strata[]": _set_strata,
    "dominance": _set_dominance,
    "on_dominance": _set_on_dominance,
    "suppress": _set_suppress,
    "seed": _set_seed,
    "risk": _set_risk,
    "known[]": _set_known,
    "order": _set_order,
    "l": _set_requirement("l"),
    "t": _set_requirement("t"),
    "keys": set_keys,
    "emptied": set_emptied,
}


def _block_of(step: Content, name: str) -> str:
    blocks = step.get("blocks")
    if isinstance(blocks, list):
        for at, block in enumerate(blocks, start=1):
            if isinstance(block, list) and name in block:
                return str(at)
    return ""


def _with_blocks(plan: Content, changes: Fields) -> Content:
    """Group the masked columns by the numbers that the form gives them; none: all together."""
    fields = read_settings(plan) | changes
    masked = {name for names in quasi_identifiers(plan) for name in names} - {*key_names(plan)}
    numbered: dict[int, list[str]] = {}
    rest: list[str] = []
    for at, name in enumerate(plan.get("columns", {})):
        if name not in masked:
            continue
        text = fields.get(f"block-{at}", "")
        if text:
            numbered.setdefault(_whole("block", text, 1), []).append(name)
        else:
            rest.append(name)
    blocks = [numbered[number] for number in sorted(numbered)]
    return _with_option(plan, "blocks", [*blocks, *([rest] if rest else [])] if blocks else None)


def add_recoding(plan: Content, column: str, text: str) -> tuple[Content, str]:
    """Add a step that makes a column coarser: breaks, or new categories line by line.

    "15, 30, 65" are breaks between numbers; "north: 1, 2, 3" puts values together, one new
    category a line, and "* : rest" names what is left.
    """
    if column not in plan.get("columns", {}):
        raise UnknownOptionError("column to recode", column, list(plan.get("columns", {})))
    lines = [line.strip() for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
    step: Content = {"method": "recode", "column": column}
    if lines and all(":" not in line for line in lines):
        try:
            breaks = [float(part) for line in lines for part in re.split(r"[,;\s]+", line) if part]
        except ValueError:
            breaks = []
        if not breaks or any(b <= a for a, b in itertools.pairwise(breaks)):
            raise BadOptionError("breaks", text[:100], "rising numbers, such as 15, 30, 65")
        step["breaks"] = [int(one) if one.is_integer() else one for one in breaks]
    else:
        groups: dict[str, list[str]] = {}
        for line in lines:
            name, colon, members = line.partition(":")
            if name.strip() == "*" and colon:
                step["other"] = members.strip()
                continue
            values = [value.strip() for value in members.split(",") if value.strip()]
            if not colon or not name.strip() or not values:
                expected = "a line for each new category: its name, a colon, the old values"
                raise BadOptionError("categories", line[:100], expected)
            groups[name.strip()] = values
        if not groups:
            raise BadOptionError("recoding", text[:100], "breaks (15, 30) or lines (new: old, old)")
        step["groups"] = groups
    others = [
        one for one in steps_of(plan) if one["method"] == "recode" and one.get("column") != column
    ]
    changed = with_preparing(plan, "recode", [*others, step])
    return follow(changed, plan), f"recoding of {column}"


def remove_recoding(plan: Content, column: str) -> tuple[Content, str]:
    """Remove the step that makes a column coarser."""
    left = [
        one for one in steps_of(plan) if one["method"] == "recode" and one.get("column") != column
    ]
    return follow(with_preparing(plan, "recode", left), plan), f"no recoding of {column}"
