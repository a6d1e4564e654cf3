"""Every sentence that the public texts of a release may contain, and when each is true.

A condition is about the public part of a summary: what was done (steps, masked columns) and what
was counted in the released table (k, rules). A sentence is printed where its condition holds, and
nowhere else; templates have headings, legends of tables and figures, and no sentence of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..masking import registry
from ..release.steps import PREPARING
from .rendering import percent, power

Part = Mapping[str, Any]

PLAIN = "share their masked values"  # what k records do where all that was masked was counted
# What the sample of a table larger than memory has whole: see `Task.sampled_by`.
IN_WHOLE = {"groups": " in whole groups", "units": " of whole units", "records": ""}


@dataclass(frozen=True)
class PublicSentence:
    """A sentence, where it stands, and when it is true.

    `place` is a section of the report; `needs` lists conditions of `conditions_of`, all of which
    must hold, or not hold where "not" stands before one; the fields of `text` are what `facts_of`
    returns.
    """

    place: str
    name: str
    needs: str
    text: str

    def when(self, part: Part) -> bool:
        """Return whether the sentence is true of a release."""
        known = conditions_of(part)
        needs = self.needs.split(", ") if self.needs else ()
        return all(known[one.removeprefix("not ")] != one.startswith("not ") for one in needs)


def uncounted(part: Part) -> list[str]:
    """List masked columns that no block and no stratum has: k says nothing about them."""
    if part["k"] is None:
        return []
    counted = {str(name) for block in part["blocks"] for name in block["columns"]}
    counted |= set(map(str, part["strata"]))
    names = [str(column["name"]) for column in part["columns"] if column["masked"]]
    return [name for name in names if name not in counted]


def is_loose(part: Part) -> bool:
    """Return whether k counts an empty cell as equal to every value."""
    return part["k"] is not None and any(block.get("wildcard") for block in part["blocks"])


def shared(part: Part) -> str:
    """Return what k records have in common, as far as it was counted."""
    values = "masked values"
    if uncounted(part) and len(part["blocks"]) == 1:
        values = f"values of {', '.join(map(str, part['blocks'][0]['columns']))}"
    where = " in each block of columns" if len(part["blocks"]) > 1 else ""
    if is_loose(part):
        return f"match in their {values}{where}, where an empty cell matches every value"
    return f"share their {values}{where}"


def facts_of(part: Part) -> dict[str, Any]:
    """Return what sentences name: numbers and lists of columns of the public part."""
    columns, k = part["columns"], part["k"]
    masked = [str(column["name"]) for column in columns if column["masked"]]
    n_rules = len(part["rules"]) + part["rules_withheld"]
    of_units = part["counted"] != "records"
    alike = f" with the same {', '.join(map(str, part['strata']))}" if part["strata"] else ""
    return {
        "records": f"{part['records']:,}",
        "columns": len(columns),
        "masked": len(masked),
        "kept": ", ".join(str(c["name"]) for c in columns if not c["masked"]),
        "k": k,
        "others": None
        if k is None
        else (
            f"records of at least {k - 1} other respondents (distinct units)"
            if of_units
            else f"at least {k - 1} others"
        ),
        "alike": alike,
        "values": shared(part).removeprefix("share their "),
        "shared": shared(part),
        "counted": part["counted"],
        "uncounted": ", ".join(uncounted(part)),
        "diverse": "; ".join(
            f"{own['column']}: {own['asked']}"
            for own in (part.get("diversity") or {}).get("reached", ())
        ),
        "rules": "the rule" if n_rules == 1 else f"any of the {n_rules} rules",
        "unquoted": part["rules_withheld"],
        "loss": percent(part["loss"]),
        "tolerance": power(part["tolerance"]),
        "weight": ", ".join(str(c["name"]) for c in columns if c["weight"]),
        "codes": "; ".join(f"{c['name']}: {', '.join(c['codes'])}" for c in columns if c["codes"]),
        "edited": "A few" if part["edited"] is None else f"{part['edited']:,}",
        "few": ", ".join(map(str, part["withheld"])),
        "dominated": ", ".join(map(str, part["dominated"])),
        "sampled": (
            f"{part.get('sampled') or 0:,} records{IN_WHOLE[part.get('sampled_by') or 'groups']}"
        ),
        "probabilistic": " ".join(one["text"] for one in part["probabilistic"]),
    }


def conditions_of(part: Part) -> dict[str, bool]:
    """Return what may be true of a release."""
    columns, counted = part["columns"], part["k"] is not None
    methods = [step["method"] for step in part["steps"]]
    has_rules = bool(part["rules"] or part["rules_withheld"])
    return {
        "some masked": any(column["masked"] for column in columns),
        "all masked": all(column["masked"] for column in columns),
        "prepared": any(method in ("recode", "suppress") for method in methods),
        "rules": has_rules,
        "counted": counted,
        "blocks": counted and len(part["blocks"]) > 1,
        "loose": is_loose(part),
        "uncounted": bool(uncounted(part)),
        "diverse": bool(part.get("diversity")),
        "probabilistic": bool(part["probabilistic"]),
        "priced": part["loss"] is not None
        and any(column["masked"] and column["loss"] is not None for column in columns),
        # A method that knows no rules was followed by moving records back to them.
        "moved back": has_rules and any(m not in (*PREPARING, "protect") for m in methods),
        "unquoted": part["rules_withheld"] > 0,
        "constants": any("…" in rule["text"] for rule in part["rules"]),
        "weight": any(column["weight"] for column in columns),
        "codes": any(column["codes"] for column in columns),
        "shuffled": part["order"] == "shuffled",
        "edited": part["edited"] is None or part["edited"] > 0,
        "few": bool(part["withheld"]),
        "dominated": bool(part["dominated"]),
        "manifest": part["manifest"],
        "sampled": part.get("sampled") is not None,
    }


_ROWS = [
    ("verdict", "size", "", "This table has {records} records in {columns} columns."),
    ("verdict", "all masked", "some masked, all masked", "All columns were masked."),
    ("verdict", "some masked", "some masked, not all masked",
     "{masked} of the columns were masked; the others are released as they are."),
    ("verdict", "only prepared", "prepared, not some masked",
     "No column was masked: values were recoded or suppressed as the steps say, and are "
     "released as they are otherwise."),
    ("verdict", "as they are", "not prepared, not some masked",
     "No value was changed: the columns are released as they are."),
    ("verdict", "k", "counted, not blocks, not loose",
     "Every record has the same {values} as {others}{alike}."),
    ("verdict", "k in blocks", "blocks, not loose",
     "In each block of columns, every record has the same masked values as "
     "{others}{alike}."),
    ("verdict", "k by wildcard", "loose",
     "At least {k} {counted}{alike} {shared}; fewer may have equal values."),
    ("verdict", "uncounted", "uncounted",
     "k does not include these masked columns: {uncounted}."),
    ("verdict", "diverse", "diverse",
     "Among records with the same masked values, confidential values are diverse or close to those "
     "of the table: {diverse}."),
    ("verdict", "rules hold", "rules", "No record breaks {rules}."),
    ("verdict", "loss", "priced",
     "Masking cost {loss} of the variation of the masked numbers for which figures are given."),
    ("verdict", "own value", "some masked",
     "The masked value of a record need not be its original one."),
    ("method", "steps", "",
     "The steps and their parameters, without random numbers, without names of columns that are "
     "not released, and without values that would disclose an original one."),
    ("guarantee", "k counted", "counted, not blocks, not loose",
     "Every released record has the same {values} as {others}{alike}: "
     "k = {k}. This was counted in the released table."),
    ("guarantee", "k counted by wildcard", "loose",
     "At least {k} {counted}{alike} {shared}. This was counted in the released table. It is "
     "weaker than {k} with the same values: fewer may share some combinations."),
    ("guarantee", "not counted in k", "uncounted",
     "k does not include {uncounted}: with these columns, fewer may be equal."),
    ("guarantee", "k counted in blocks", "blocks, not loose",
     "In each block, every released record has the same masked values as "
     "{others}{alike}: k = {k}. This was counted in the released table, block by block; over all "
     "blocks together, fewer may be equal."),
    ("guarantee", "no k", "not counted", "No minimum number of equal records is guaranteed."),
    ("guarantee", "probabilistic", "probabilistic", "{probabilistic}"),
    ("rules", "rules counted", "rules",
     "No released record breaks these rules. They hold exactly for whole numbers and categories, "
     "to {tolerance} of the size of their terms for other numbers. A rule about a missing value "
     "counts as unknown, not as broken."),
    ("rules", "no rules", "not rules", "No rules were given."),
    ("unquoted", "unquoted rules", "unquoted",
     "Number of further rules that hold but are not published: {unquoted}."),
    ("unquoted", "constants", "constants",
     "… stands for a number that is withheld."),
    ("analysis", "weight", "weight",
     "Records are weighted by {weight}: use it in every estimate."),
    ("analysis", "codes", "codes",
     "These codes stand for missing values: {codes}."),
    ("analysis", "order", "shuffled",
     "The records are in random order: row numbers have no meaning, and cannot be used to join "
     "the table with another."),
    ("analysis", "edited", "edited",
     "{edited} records of the original broke a rule. They were changed to keep all "
     "rules, and may differ more from the original than others."),
    ("analysis", "moved back", "moved back",
     "After masking, records that broke a rule were moved to values that keep it. What is stated "
     "about a method is true of the table before that."),
    ("analysis", "standard errors", "some masked",
     "The usual formulas for standard errors do not take masking into account. Where a result "
     "matters, compare it with the information loss of the columns it uses."),
    ("limits", "groups by wildcard", "loose",
     "Someone who knows a person's values sees which of the matching records agree in all of "
     "them, and these may be fewer than {k}."),
    ("limits", "groups", "counted, not blocks, not loose",
     "Groups of at least {k} hide which record belongs to whom. They do not hide what all records "
     "of a group have in common."),
    ("limits", "groups in blocks", "blocks, not loose",
     "Groups of at least {k} hide which record belongs to whom, within each block of columns. They "
     "do not hide what all records of a group have in common."),
    ("limits", "no groups", "not counted", "No minimum number of equal records is guaranteed."),
    ("limits", "kept", "not all masked", "Released as they are: {kept}."),
    ("limits", "few", "few",
     "So few cells differ in {few} that figures about them, and overall figures, would disclose "
     "single values: they are withheld."),
    ("limits", "dominated", "dominated",
     "In {dominated} a single record accounts for most of the variation, or of its change: figures "
     "about them are withheld, and overall figures refer to the other columns."),
    ("limits", "sampled", "sampled, counted",
     "k and the rules were checked in all records; figures about columns, distributions and "
     "estimates are from {sampled}, drawn at random."),
    ("limits", "sampled without k", "sampled, not counted",
     "The rules were checked in all records; figures about columns, distributions and "
     "estimates are from {sampled}, drawn at random."),
    ("limits", "rounded", "",
     "Figures of this report are rounded, and those about few records are withheld."),
    ("limits", "no risk", "", "This report has no figures on disclosure risk."),
    ("footer", "publish", "", "This report may be published with the table."),
    ("footer", "hash", "manifest",
     "The manifest has the hash of the released file."),
]  # fmt: skip
SENTENCES = tuple(PublicSentence(*row) for row in _ROWS)


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
        "Values of {column} were combined; finer ones cannot be recovered from the table. All "
        "figures of this report compare with the original, recoded in the same way.",
    ),
    "suppress": (
        "Suppressed cells",
        "Some cells were made missing, because their records could have been recognised by their "
        "missing values. They are not missing at random: compare results with and without the "
        "records that have missing values.",
    ),
}


def advise(part: Part) -> list[dict[str, Any]]:
    """List what a user of the table should know: in general, then for each step that changed it."""
    advice = [{"title": "In general", "says": sentences(part)["analysis"]}]
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
