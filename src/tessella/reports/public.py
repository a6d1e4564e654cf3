"""What may be published of a release.

Everything here must be safe to print: figures are those that the audit shows without being asked
for confidential ones, rounded; a category that the released table does not have is never named.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import __version__
from .._types import Name
from ..auditing.manifests import KIND
from ..auditing.result import ColumnLine, plain
from ..exceptions import BadTableError
from ..frame import FIRST_CODE, Table, View, text_of
from ..loss import measure
from ..loss.base import Summary
from ..plan.plan import OPERATORS
from ..release import Entry, Release, Study
from ..release.steps import PREPARING
from .disclosure import FEW, NEAR, Extremes, Figures, coarse, find_figures, is_small, rounded

TAKEN = (
    "tessella", "records", "order", "k", "counted", "probabilistic", "blocks", "strata", "rules",
    "rules_withheld", "steps", "left_out", "tolerance", "diversity",
)  # fmt: skip


def manifest(summary: Mapping[str, Any], files: Iterable[Mapping[str, Any]]) -> str:
    """Write the manifest of a release, which may be published with it.

    Parameters
    ----------
    summary : dict
        What `summarise` gave. Only its public part is looked at.
    files : iterable of mappings
        For each public file: "what" it is, its name "file", "sha256" and "bytes".

    Returns
    -------
    str
        JSON with sorted keys: the same release gives the same bytes.

    Examples
    --------
    >>> import json
    >>> import pandas as pd
    >>> from tessella import Study
    >>> from tessella.reports import summarise
    >>> from tessella.reports.public import manifest
    >>> study = Study(pd.DataFrame({"net": [1, 2, 3, 7, 8, 9]})).do("protect", k=3)
    >>> summary = summarise(study, study.release(), pictures=False)
    >>> read = json.loads(manifest(summary, [{"what": "release", "file": "net.csv"}]))
    >>> read["k"], read["records"], read["files"]
    (3, 6, [{'file': 'net.csv', 'what': 'release'}])
    """
    public = summary["public"]
    quoted = [rule for rule in public["rules"] if "…" not in rule["text"]]  # that can be verified
    parts = ("name", "type", "kind", "masked", "recoded", "weight", "codes")
    columns = [{part: column[part] for part in parts} for column in public["columns"]]
    content = {
        "kind": KIND,
        "format": 1,
        "files": [dict(file) for file in files],
        "columns": columns,
        **{part: public[part] for part in TAKEN},
        "rules": quoted,
        "rules_withheld": public["rules_withheld"] + len(public["rules"]) - len(quoted),
    }
    return json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


MEASURES = {
    "sse_sst": "Values: squared differences",
    "il1s": "Values: absolute differences (IL1s)",
    "pil": "Statistics: probabilistic information loss (PIL)",
    "means_absolute": "Means",
    "variances_absolute": "Variances",
    "correlations_absolute": "Correlations",
    "quantiles": "Quantiles",
    "kolmogorov_smirnov": "Distributions: Kolmogorov-Smirnov",
    "wasserstein": "Distributions: Wasserstein",
    "contingency": "Tables of counts",
    "entropy": "Categories: entropy",
    "lost_cells": "Cells that are gone",
}
SHARES = ("kolmogorov_smirnov", "contingency", "lost_cells")  # of records
TYPES = {"float": "number", "decimal": "number", "boolean": "yes or no"}
NUMBERS = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
TEXTS = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'')


def public_part(
    study: Study, release: Release, *, loss: Summary | None, order: str, title: str
) -> dict[str, Any]:
    """Build the public part of a summary."""
    gone = Gone(study)
    known = find_figures(study)
    telling = {name for name, figures in known.items() if figures is None}
    columns = list(_columns(study, release, loss, known))
    withheld = [column["name"] for column in columns if column["few"]]
    loss = _without(telling, study, loss)
    units = [figures.unit for figures in known.values() if figures is not None]
    few, n = max(FEW, release.audit.k or 0), study.views[1].n_rows
    ends = Extremes(study, few)
    rules = [_rule(rule, gone, ends) for rule in release.rules]
    steps = [_step(entry, gone, ends) for entry in study.protocol]
    return {
        "title": title or "release",
        "tessella": __version__,
        "records": n,
        "sampled": None,
        "sampled_by": None,
        "order": order,
        "columns": columns,
        "left_out": sum(entry["left_out"] for entry in steps),
        "steps": steps,
        "k": release.audit.k,
        "counted": "records" if release.audit.unit is None else "units",
        "blocks": _blocks(release, () if study.promise is None else study.promise.wildcard),
        "diversity": _diversity(study, release),
        "probabilistic": [
            {"aimed_size": one.k, "text": one.public} for one in release.probabilistic
        ],
        "strata": [] if study.promise is None else [plain(name) for name in study.promise.strata],
        "rules": [rule for rule in rules if rule["text"]],
        "rules_withheld": sum(not rule["text"] for rule in rules),
        "tolerance": study.tolerance,
        "edited": None if is_small(release.inconsistent, n, few) else release.inconsistent,
        "withheld": withheld,
        "dominated": [column["name"] for column in columns if column["withheld"] == "dominated"],
        # of the rounded figures: it tells nothing that they do not
        "loss": None if withheld else _mean(c["loss"] for c in columns if c["masked"]),
        "measures": [] if withheld else list(_measures(loss, max(units, default=0.0), n, few)),
        "deviation": _mean(column["deviation"] for column in columns if column["masked"]),
    }


def _without(telling: set[Name], study: Study, loss: Summary | None) -> Summary | None:
    """Return the measures over the columns of which figures may be published."""
    if not telling or loss is None:
        return loss
    measured = {name for one in loss for name in one.by_column} - telling
    reference, masked = study.views
    columns = [name for name in masked.columns if name in measured]
    if not columns:
        return None
    return measure(
        reference, masked, columns=columns, schema=study.schema, on_unpaired="skip",
        hierarchies=study.recoded or None, as_read=study.as_read,
    )  # fmt: skip


class Gone:
    """Categories of the original that the released table does not have: never to be named."""

    def __init__(self, study: Study) -> None:
        self._before = study.replay(()).views[0].table
        self._after = study.views[1].table
        self._schema = study.schema
        self._known: dict[str, bool] = {}

    def names(self, texts: Iterable[str]) -> bool:
        """Return whether one of these texts is a category that is gone."""
        asked = {text for text in texts if text not in self._known}
        if asked:
            before, after = _found(self._before, asked), _found(self._after, asked)
            self._known |= {text: text in before and text not in after for text in asked}
        return any(self._known[text] for text in texts)

    def codes(self, column: Any) -> set[str]:
        """Return the numbers that stood for categories of a column and are gone."""
        if not self._before.has(column) or not self._before.facts(column).numeric:
            return set()
        if self._schema[column].kind not in ("nominal", "ordinal"):
            return set()
        return set(self._before.labels(column)[1]) - set(self._after.labels(column)[1])

    def occurring(self, column: Any, texts: Iterable[object]) -> list[str]:
        """Return those texts that are values of a released column."""
        if not self._after.has(column):
            return []
        _, values = self._after.labels(column)
        return sorted({str(text) for text in texts} & set(values))

    def clean(self, value: Any) -> Any:
        """Return a parameter as plain data, without categories that are gone."""
        if isinstance(value, Mapping):
            texts = {str(key): own for key, own in value.items()}
            return {key: self.clean(own) for key, own in texts.items() if not self.names([key])}
        if isinstance(value, list | tuple):
            kept = [own for own in value if not (isinstance(own, str) and self.names([own]))]
            return [self.clean(own) for own in kept]
        if isinstance(value, np.generic):
            return value.item()
        if value is None or isinstance(value, bool | int | float):
            return value
        return "withheld" if self.names([str(value)]) else str(value)


def _found(table: Table, texts: set[str]) -> set[str]:
    """Find texts among the categories of a table; numbers are looked at where they are codes."""
    found: set[str] = set()
    numbers = any(text.lstrip("-").isdigit() for text in texts)
    for name in table.columns:
        facts = table.facts(name)
        if facts.family in ("float", "decimal") or (facts.numeric and not numbers):
            continue
        try:
            _, values = table.labels(name)
        except BadTableError:  # lists and other things that have no text
            continue
        found |= texts.intersection(values)
    return found


def _columns(
    study: Study, release: Release, loss: Summary | None, known: Mapping[Name, Figures | None]
) -> Iterator[dict[str, Any]]:
    released = study.views[1]
    masked = set(study.masked)
    strata = set() if study.promise is None else set(study.promise.strata)
    few = max(FEW, release.audit.k or 0)
    for line in release.audit.columns:
        name, schema = line.name, study.schema[line.name]
        facts = released.table.facts(name)
        dominated = name in known and known[name] is None
        why = "few" if line.few else "dominated" if dominated else ""
        figures = {} if why else _figures(line, known.get(name), loss, few, name in study.recoded)
        yield {
            "name": plain(name),
            "type": TYPES.get(facts.family, facts.family),
            "kind": schema.kind,
            "weight": schema.role == "weight" and not schema.guessed,
            "masked": name in masked,
            "recoded": name in study.recoded,
            "stratum": name in strata,
            "changed": _share(line.share_changed, line.n, few),
            "missing": line.missing_after,
            "codes": _codes(released, name),
            "few": line.few,
            "withheld": why,
            "loss": None, "mean_change": None, "deviation": None, "distribution": None,
            "frequency_change": None, "entropy": None,
        } | {key: rounded(value) for key, value in figures.items()}  # fmt: skip


def _figures(
    line: ColumnLine, known: Figures | None, loss: Summary | None, few: int, recoded: bool
) -> dict[str, float | None]:
    name = line.name
    if recoded:
        return {"entropy": _of_column(loss, "entropy", name)}
    if line.kind == "categories":
        return {
            "frequency_change": _share(line.frequency_change, line.n, few),
            "entropy": _of_column(loss, "entropy", name),
        }
    found: dict[str, float | None] = {
        "distribution": _share(_of_column(loss, "kolmogorov_smirnov", name), line.n, few)
    }
    if known is not None:
        change, deviation, lost = known.published()
        return found | {"mean_change": 100 * change, "deviation": deviation, "loss": 100 * lost}
    unchanged = not line.changed and line.mean_after is not None
    return found | ({"mean_change": 0.0, "deviation": 1.0, "loss": 0.0} if unchanged else {})


def _share(value: float | None, n: int, few: int) -> float | None:
    """Return a share of n records, unless it is that of few of them, or of all but few."""
    return None if value is None or is_small(n * value, n, few) else value


def _of_column(loss: Summary | None, measure: str, name: Name) -> float | None:
    if loss is None or measure not in [one.name for one in loss]:
        return None
    return loss[measure].by_column.get(name)


def _codes(released: View, name: Name) -> list[str]:
    """Return the missing codes that occur in a released column."""
    codes = released.missing_codes(name)
    found = np.unique(released.states(name)) if codes else ()
    return sorted(text_of(codes[state - FIRST_CODE]) for state in found if state >= FIRST_CODE)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return rounded(sum(known) / len(known)) if known else None


def _measures(loss: Summary | None, unit: float, n: int, few: int) -> Iterator[dict[str, Any]]:
    """List overall measures, rounded to what one record can move an average by, or coarser."""
    for one in loss or ():
        if one.name not in MEASURES:
            continue
        scale = 100.0 if one.range[1] == 100 else 1.0
        value = coarse(float(one.value), 2 * NEAR * scale * max(unit, 1 / n))
        if one.name in SHARES and is_small(one.value * n, n, few):
            continue
        yield {
            "name": one.name,
            "title": MEASURES[one.name],
            "value": rounded(value),
            "range": [end if math.isfinite(end) else None for end in one.range],
            "formula": one.formula,
            "source": one.source,
        }


def _diversity(study: Study, release: Release) -> dict[str, Any] | None:
    """Return what was asked of confidential values, and what each has: all counted as released."""
    wanted = None if study.promise is None else study.promise.diversity
    if wanted is None or not release.audit.diversity:
        return None
    lines = [line.to_dict() for line in release.audit.diversity]
    reached = [{name: own[name] for name in ("column", "asked", "worst")} for own in lines]
    options = wanted.options | {"confidential": [plain(name) for name in wanted.confidential]}
    return options | {"reached": reached}


def _blocks(release: Release, loose: Iterable[Iterable[Name]]) -> list[dict[str, Any]]:
    """Tell the blocks; in those of `loose` an empty cell was counted as equal to every value."""
    blocks = []
    wildcard = [set(block) for block in loose]
    planned = () if release.plan is None else release.plan.blocks
    for place, line in enumerate(release.audit.blocks):
        own = planned[place] if place < len(planned) else None
        operators: dict[str, list[Any]] = {}
        for choice in () if own is None else own.choices:
            words = OPERATORS[choice.operator] + (", in whole numbers" if choice.whole else "")
            operators.setdefault(words, []).append(plain(choice.column))
        blocks.append(
            {
                "columns": [plain(name) for name in line.columns],
                "combinations": sum(line.combinations),
                "smallest": line.k,
                "wildcard": set(line.columns) in wildcard,
                "operators": [
                    {"says": words, "columns": names} for words, names in operators.items()
                ],
            }
        )
    return blocks


def _rule(rule: Any, gone: Gone, ends: Extremes) -> dict[str, Any]:
    """Tell a rule, unless its text names a category that is gone, or a file."""
    texts = [double or single for double, single in TEXTS.findall(rule.text)]
    numbers = set(NUMBERS.findall(rule.text))
    safe = not gone.names(texts) and not any("/" in text or "\\" in text for text in texts)
    safe = safe and not any(numbers & gone.codes(column) for column in rule.columns)
    text = ends.without(rule.text, rule.columns) if safe else ""
    return {"name": rule.name if safe else "", "text": text}


def _step(entry: Entry, gone: Gone, ends: Extremes) -> dict[str, Any]:
    """Tell a step: of columns that were left out the number only, of categories the new ones."""
    if entry.method == "drop":
        return {"method": "drop", "options": {}, "columns": [], "left_out": len(entry.columns)}
    options = dict(entry.public)
    if entry.method == "recode":
        fresh = options.get("groups") or options.get("labels") or ()
        options = {
            "column": options.get("column"),
            "categories": gone.occurring(options.get("column"), fresh),
            **({"breaks": options["breaks"]} if options.get("breaks") is not None else {}),
        }
    told = set().union(*(ends.of(name) for name in entry.columns))
    for name in ("breaks", "top", "bottom"):
        if name in options:
            options[name] = _without_ends(options[name], told)
    if isinstance(forms := options.get("hierarchies"), Mapping):
        options["hierarchies"] = {
            name: _without_ends(form, ends.of_intervals(name)) for name, form in forms.items()
        }
    return {
        "method": entry.method,
        "options": gone.clean(options),
        "columns": list(entry.columns) if entry.method not in PREPARING else [],
        "left_out": 0,
        **({"changed": not entry.account.startswith("0 ")} if entry.method == "suppress" else {}),
    }


def _without_ends(value: Any, told: set[Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_ends(own, told) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [_without_ends(own, told) for own in value]
    return "withheld" if isinstance(value, int | float) and float(value) in told else value


def told_by_constants(study: Study, release: Release) -> Iterator[str]:
    """Warn of rules that hold the smallest or largest value of a column: for internal reports."""
    ends = Extremes(study, max(FEW, release.audit.k or 0))
    for rule in release.rules:
        if ends.without(rule.text, rule.columns) != rule.text:
            yield (
                f"{rule.name} ({rule.text}) holds a number that is the smallest or largest value "
                "of its column, which few records have. Public texts show … in its place; who sees "
                "the rules themselves learns it."
            )
