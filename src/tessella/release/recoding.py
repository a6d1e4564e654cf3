"""Steps that release coarser values: their measures, rules about them, what is public."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from .. import loss
from .._lazy import homes_of
from .._types import Name
from ..exceptions import PlanError, TessellaError, UnknownOptionError
from ..keys import measures
from ..rules import Rules
from ..schema import Schema


def measure_of(name: str, recoded: Any, schema: Schema) -> Any:
    """Return a measure of recoding by its name: one that is counted, or one of `tessella.loss`."""
    if name in measures.NAMES:
        return name
    offered = [one for one in homes_of(loss.__name__) if one.endswith("_loss")]
    found = getattr(loss, name) if name in offered else None
    if found is None:
        raise UnknownOptionError("measure", name, [*measures.NAMES, *offered])
    columns = list(recoded or ())

    def measure(original: Any, masked: Any) -> float:
        kinds = schema.override({name: {"kind": "nominal"} for name in columns})
        compared = found(original, masked, columns=columns, schema=kinds, on_unpaired="skip")
        return float(compared)

    return measure


def refuse_unjudged(rules: Any, masked: Any, recoded: Iterable[Name], schema: Schema) -> None:
    """Refuse a recoding after which rules about its columns cannot be judged, or are broken."""
    names = set(recoded)
    wrong: dict[Any, None] = {}
    for rule in rules:
        if not names & set(rule.columns):
            continue
        try:
            if Rules([rule]).confront(masked, schema=schema).all_hold:
                continue
        except TessellaError:  # text where the rule computes
            pass
        wrong |= dict.fromkeys([rule])
    if wrong:
        listed = "; ".join(f"{rule.name} ({rule.text})" for rule in wrong)
        about = [name for name in names if any(name in rule.columns for rule in wrong)]
        left = sorted(map(str, about))
        raise PlanError(
            f"These rules are about recoded columns ({', '.join(map(repr, left))}), and cannot be "
            f"seen to hold of coarser values: {listed}. Leave the rules out, or leave the columns "
            "out of hierarchies= and mask them by another step."
        )


def public_form(form: Any) -> Any:
    """Return how a hierarchy was made, without its values and without a path."""
    if not isinstance(form, Mapping):
        return "given"
    if "file" in form:
        return {"file": PurePath(str(form["file"])).name}
    if "tree" in form or "order" in form:
        return {name: "given" for name in ("tree", "order") if name in form}
    return dict(form)
