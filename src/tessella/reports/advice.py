"""How to analyse a masked table: what each method keeps, what it changes, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..masking import registry
from ..release.steps import PREPARING as STEPS

__all__ = ["advise", "limits"]

Part = Mapping[str, Any]


def advise(part: Part) -> list[dict[str, Any]]:
    """List what a user of the table should know, method by method.

    Parameters
    ----------
    part : mapping
        The public part of a summary, as far as it is built.
    """
    advice = [{"title": "First of all", "says": list(_general(part))}]
    for step in part["steps"]:
        name, options = step["method"], step["options"]
        if name in PREPARING:
            title, sentences = PREPARING[name](options)
        elif name in STEPS:
            continue
        else:
            method = registry.find(name)
            title, sentences = method.title_of(options), list(method.advice(options, part))
        advice.append({"title": title, "says": sentences})
    return [one for one in advice if one["says"]]


def limits(part: Part) -> list[str]:
    """List what the protection does not do, and what the report does not tell."""
    found = []
    if part["k"] is not None:
        within = ", within each block of columns" if len(part["blocks"]) > 1 else ""
        found.append(
            f"Groups of at least {part['k']} hide which record is whose{within}. They do not hide "
            "what all records of a group have in common."
        )
    else:
        found.append("No least number of alike records is promised by these methods.")
    kept = [str(column["name"]) for column in part["columns"] if not column["masked"]]
    if kept:
        found.append(f"Released as they are: {', '.join(kept)}.")
    if part["withheld"]:
        names = ", ".join(map(str, part["withheld"]))
        found.append(
            f"So few cells differ in {names} that figures about them, and overall figures, would "
            "tell single values: they are withheld."
        )
    if part["dominated"]:
        names = ", ".join(map(str, part["dominated"]))
        found.append(
            f"In {names} a single record is most of the variation, or of its change: figures about "
            "it are withheld, and overall figures are about the other columns."
        )
    found.append(
        "Figures of this report are rounded. It tells no figure of disclosure risk and nothing "
        "about single records; both are kept by the data holder."
    )
    return found


def _general(part: Part) -> Iterator[str]:
    weighing = [str(column["name"]) for column in part["columns"] if column["weight"]]
    if weighing:
        yield f"Records are weighted by {weighing[0]}: use it in every estimate."
    coded = [column for column in part["columns"] if column["codes"]]
    if coded:
        named = "; ".join(f"{c['name']}: {', '.join(c['codes'])}" for c in coded)
        yield f"These values stand for missing, and are no values: {named}."
    if part["order"] == "shuffled":
        yield (
            "The order of the records was drawn by chance: it means nothing, and row numbers "
            "cannot be used to join the table with another."
        )
    if part["edited"] is None or part["edited"]:
        count = "A few" if part["edited"] is None else f"{part['edited']:,}"
        yield (
            f"{count} records of the original broke a rule. They are released so that they keep "
            "all rules, and may have moved further than others."
        )
    yield (
        "Standard errors of usual formulas do not count the masking. Where a result matters, "
        "compare it with the information loss of the columns it uses."
    )


def _recode(options: Part) -> tuple[str, list[str]]:
    return "Coarser categories", [
        f"Values of {options.get('column')} were put together; nothing finer can be found out "
        "from the table. All figures of this report compare with the original coded alike."
    ]


def _suppress(options: Part) -> tuple[str, list[str]]:  # noqa: ARG001
    return "Suppressed cells", [
        "Some cells were made missing, because their records could have been recognised by what "
        "they lack. They are not missing at random: compare results with and without the records "
        "that lack a cell."
    ]


# Advice about steps that prepare a table; that about masking methods is in their entries.
PREPARING: dict[str, Any] = {"recode": _recode, "suppress": _suppress}
