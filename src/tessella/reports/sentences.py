"""Every sentence that the public texts of a release may contain, and when each is true.

A condition is about the public part of a summary: what was done (steps, masked columns) and what
was counted in the released table (k, rules). A sentence is printed where its condition holds, and
nowhere else; templates have headings, legends of tables and figures, and no sentence of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..masking import registry
from ..release.steps import PREPARING
from .rendering import percent, power

__all__ = ["SENTENCES", "PublicSentence", "advise", "sentences"]

Part = Mapping[str, Any]
Condition = Callable[[Part], bool]


@dataclass(frozen=True, kw_only=True)
class PublicSentence:
    """A sentence, where it stands, and when it is true.

    `place` is a section of the report; the fields of `text` are what `facts_of` returns.
    """

    name: str
    place: str
    when: Condition
    text: str


def facts_of(part: Part) -> dict[str, Any]:
    """Return what sentences name: numbers and lists of columns of the public part."""
    columns, k = part["columns"], part["k"]
    masked = [str(column["name"]) for column in columns if column["masked"]]
    n_rules = len(part["rules"]) + part["rules_withheld"]
    alike = f" with the same {', '.join(map(str, part['strata']))}" if part["strata"] else ""
    return {
        "records": f"{part['records']:,}",
        "columns": len(columns),
        "masked": len(masked),
        "kept": ", ".join(str(c["name"]) for c in columns if not c["masked"]),
        "k": k,
        "others": None if k is None else k - 1,
        "alike": alike,
        "rules": "the rule" if n_rules == 1 else f"any of the {n_rules} rules",
        "unquoted": part["rules_withheld"],
        "loss": percent(part["loss"]),
        "tolerance": power(part["tolerance"]),
        "weight": ", ".join(str(c["name"]) for c in columns if c["weight"]),
        "codes": "; ".join(f"{c['name']}: {', '.join(c['codes'])}" for c in columns if c["codes"]),
        "edited": "A few" if part["edited"] is None else f"{part['edited']:,}",
        "few": ", ".join(map(str, part["withheld"])),
        "dominated": ", ".join(map(str, part["dominated"])),
        "probabilistic": " ".join(one["text"] for one in part["probabilistic"]),
    }


def _some_masked(part: Part) -> bool:
    return any(column["masked"] for column in part["columns"])


def _all_masked(part: Part) -> bool:
    return all(column["masked"] for column in part["columns"])


def _prepared(part: Part) -> bool:
    return any(step["method"] in ("recode", "suppress") for step in part["steps"])


def _has_rules(part: Part) -> bool:
    return bool(part["rules"] or part["rules_withheld"])


def _counted(part: Part) -> bool:
    return part["k"] is not None


def _probabilistic(part: Part) -> bool:
    return bool(part["probabilistic"])


def _blocks(part: Part) -> bool:
    return _counted(part) and len(part["blocks"]) > 1


def _priced(part: Part) -> bool:
    return part["loss"] is not None and any(
        column["masked"] and column["loss"] is not None for column in part["columns"]
    )


def _moved_back(part: Part) -> bool:
    """Whether a method that knows no rules was followed by moving records back to them."""
    masking = [step["method"] for step in part["steps"] if step["method"] not in PREPARING]
    return _has_rules(part) and any(method != "protect" for method in masking)


def _always(part: Part) -> bool:  # noqa: ARG001
    return True


def _not(*conditions: Condition) -> Condition:
    return lambda part: not any(condition(part) for condition in conditions)


def _both(*conditions: Condition) -> Condition:
    return lambda part: all(condition(part) for condition in conditions)


_ROWS: list[tuple[str, str, Condition, str]] = [
    ("verdict", "size", _always, "This table has {records} records in {columns} columns."),
    ("verdict", "all masked", _both(_some_masked, _all_masked), "All columns were masked."),
    ("verdict", "some masked", _both(_some_masked, _not(_all_masked)),
     "{masked} of the columns were masked; the others are released as they are."),
    ("verdict", "only prepared", _both(_prepared, _not(_some_masked)),
     "No column was masked: values were recoded or suppressed as the steps say, and are "
     "released as they are otherwise."),
    ("verdict", "as they are", _not(_prepared, _some_masked),
     "No value was changed: the columns are released as they are."),
    ("verdict", "k", _both(_counted, _not(_blocks)),
     "Every record has the same masked values as at least {others} others{alike}."),
    ("verdict", "k in blocks", _blocks,
     "In each block of columns, every record has the same masked values as at least {others} "
     "others{alike}."),
    ("verdict", "rules hold", _has_rules, "No record breaks {rules}."),
    ("verdict", "loss", _priced,
     "The masking cost {loss} of the variation of the masked numbers that figures are given of."),
    ("verdict", "own value", _some_masked, "A record's masked value need not be its own."),
    ("method", "steps", _always,
     "The steps and their parameters, without what chance drew, without names of columns that "
     "were left out, and without values that would disclose one of the original."),
    ("guarantee", "k counted", _both(_counted, _not(_blocks)),
     "Every released record has the same masked values as at least {others} others{alike}: "
     "k = {k}. This was counted in the released table."),
    ("guarantee", "k counted in blocks", _blocks,
     "In each block, every released record has the same masked values as at least {others} "
     "others{alike}: k = {k}. This was counted in the released table, block by block; over all "
     "blocks together fewer may be alike."),
    ("guarantee", "no k", _not(_counted), "No least number of alike records is promised."),
    ("guarantee", "probabilistic", _probabilistic, "{probabilistic}"),
    ("rules", "rules counted", _has_rules,
     "No released record breaks these rules: exactly for whole numbers and categories, to "
     "{tolerance} of their terms for other numbers. A rule about a missing value counts as "
     "unknown, not as broken."),
    ("rules", "no rules", _not(_has_rules), "No rules were given."),
    ("unquoted", "unquoted rules", lambda part: part["rules_withheld"] > 0,
     "Rules that hold and whose wording is not published: {unquoted}."),
    ("unquoted", "constants", lambda part: any("…" in rule["text"] for rule in part["rules"]),
     "… stands for a number that is withheld."),
    ("analysis", "weight", lambda part: any(c["weight"] for c in part["columns"]),
     "Records are weighted by {weight}: use it in every estimate."),
    ("analysis", "codes", lambda part: any(c["codes"] for c in part["columns"]),
     "These values stand for missing, and are no values: {codes}."),
    ("analysis", "order", lambda part: part["order"] == "shuffled",
     "The order of the records was drawn by chance: it means nothing, and row numbers cannot "
     "be used to join the table with another."),
    ("analysis", "edited", lambda part: part["edited"] is None or part["edited"] > 0,
     "{edited} records of the original broke a rule. They are released so that they keep all "
     "rules, and may have moved further than others."),
    ("analysis", "moved back", _moved_back,
     "After masking, records that broke a rule were moved back to it: what is stated of a "
     "method is true of it before that."),
    ("analysis", "standard errors", _some_masked,
     "Standard errors of usual formulas do not count the masking. Where a result matters, "
     "compare it with the information loss of the columns it uses."),
    ("limits", "groups", _both(_counted, _not(_blocks)),
     "Groups of at least {k} hide which record is whose. They do not hide what all records of "
     "a group have in common."),
    ("limits", "groups in blocks", _blocks,
     "Groups of at least {k} hide which record is whose, within each block of columns. They do "
     "not hide what all records of a group have in common."),
    ("limits", "no groups", _not(_counted), "No least number of alike records is promised."),
    ("limits", "kept", _not(_all_masked), "Released as they are: {kept}."),
    ("limits", "few", lambda part: bool(part["withheld"]),
     "So few cells differ in {few} that figures about them, and overall figures, would tell "
     "single values: they are withheld."),
    ("limits", "dominated", lambda part: bool(part["dominated"]),
     "In {dominated} a single record is most of the variation, or of its change: figures about "
     "it are withheld, and overall figures are about the other columns."),
    ("limits", "rounded", _always,
     "Figures of this report are rounded, and those about few records are withheld."),
    ("limits", "no risk", _always, "It has no figure of disclosure risk."),
    ("footer", "publish", _always, "This report may be published with the table."),
    ("footer", "hash", lambda part: part["manifest"],
     "The manifest has the hash of the released file."),
]  # fmt: skip
SENTENCES = tuple(
    PublicSentence(place=place, name=name, when=when, text=text)
    for place, name, when, text in _ROWS
)


def sentences(part: Part) -> dict[str, list[str]]:
    """Return the sentences that are true of a release, by the section where they stand."""
    facts = facts_of(part)
    found: dict[str, list[str]] = {one.place: [] for one in SENTENCES}
    for one in SENTENCES:
        if one.when(part):
            found[one.place].append(one.text.format(**facts))
    return found


# Advice about steps that prepare a table; that about masking methods is in their entries.
ADVICE = {
    "recode": (
        "Coarser categories",
        "Values of {column} were put together; nothing finer can be found out from the table. All "
        "figures of this report compare with the original coded alike.",
    ),
    "suppress": (
        "Suppressed cells",
        "Some cells were made missing, because their records could have been recognised by what "
        "they lack. They are not missing at random: compare results with and without the records "
        "that lack a cell.",
    ),
}


def advise(part: Part) -> list[dict[str, Any]]:
    """List what a user of the table should know: in general, then for each step that changed it."""
    advice = [{"title": "First of all", "says": sentences(part)["analysis"]}]
    for step in part["steps"]:
        name, options = step["method"], step["options"]
        if name in ADVICE:
            title, text = ADVICE[name]
            changed = name != "suppress" or step["changed"]
            says = [text.format(column=options.get("column"))] if changed else []
        elif name in PREPARING:
            continue
        else:
            method = registry.find(name)
            title, says = method.title_of(options), list(method.advice(options, part))
        advice.append({"title": title, "says": says})
    return [one for one in advice if one["says"]]
