"""One summary of a release: all that any report tells, as plain dicts, lists, texts and numbers."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from .. import __version__
from .._output import plain_data
from .._types import Name
from ..auditing.result import plain
from ..exceptions import BadTableError
from ..frame import Table, View
from ..io import Source
from ..loss.base import Summary
from ..loss.estimates import moved_shares
from ..loss.survey import EstimateLoss, SurveyEstimate
from ..planfile import PlanFile
from ..planfile.hints import for_plan
from ..release import Protocol, Release, Study
from ..risk import Assessment
from .disclosure import FEW, rounded
from .public import public_part, told_by_constants
from .rendering import draw
from .sentences import advise, sentences, shared

FORMAT = 1  # of the summary

RISKIEST = 20  # records that are listed
MOVED = 10  # categories that are
LOST = 5  # columns with a large loss that are named
BANDS = (("0", 0.0), ("up to 5 %", 0.05), ("up to 10 %", 0.1), ("up to 20 %", 0.2),
         ("up to 50 %", 0.5), ("below 100 %", 0.999999), ("100 %", 1.0))  # fmt: skip


def summarise(
    study: Study,
    release: Release,
    *,
    plan: PlanFile | None = None,
    source: Source | None = None,
    loss: Summary | None = None,
    risk: Assessment | None = None,
    risk_before: Assessment | None = None,
    protocol: Protocol | None = None,
    warned: Sequence[str] = (),
    order: str = "kept",
    title: str = "",
    pictures: bool = True,
    n_records: int | None = None,
    sampled_by: str = "groups",
) -> dict[str, Any]:
    """Gather what is known of a release.

    Parameters
    ----------
    study : Study
        The table on its way; its last state is what was released.
    release : Release
        What `study.release()` gave.
    plan, source : optional
        The plan file, and the file that was read.
    loss : Summary, optional
        What `tessella.loss.measure` found.
    risk, risk_before : Assessment, optional
        What `tessella.risk.assess` found in the released table, and in the original as it is.
    protocol : Protocol, optional
        All steps with times; otherwise those of the study.
    warned : sequence of str
        Warnings that were raised on the way.
    order : {"kept", "shuffled"}
        Whether the released records are in the order of the original.
    title : str
        What the reports call the release, such as the name of its file.
    pictures : bool
        Whether to draw pictures for the internal report.
    n_records : int, optional
        The records of the release, where the study is about a sample of them.
    sampled_by : {"groups", "units", "records"}
        What of them the sample has whole.

    Returns
    -------
    dict
        "public" is all that `external_report` and `manifest` see: no original value of a record,
        no smallest or largest value, no risk, no seed, no path, no name of a column that was left
        out, no category that is gone. "confidential" has these, and is as confidential as the
        original.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella import Study
    >>> from tessella.reports import summarise
    >>> table = pd.DataFrame({"net": [10, 12, 11, 50, 52, 57], "gross": [11, 13, 12, 51, 53, 58]})
    >>> study = Study(table, rules="net <= gross", random_state=0).do("protect", k=3)
    >>> summary = summarise(study, study.release(), pictures=False)
    >>> summary["public"]["k"], summary["public"]["columns"][0]["name"]
    (3, 'net')
    >>> sorted(summary)
    ['confidential', 'format', 'public']
    """
    public = public_part(study, release, loss=loss, order=order, title=title)
    public["manifest"] = plan is not None and plan.output.manifest is not None
    if n_records is not None:
        sampled = {"sampled": study.views[0].n_rows, "sampled_by": sampled_by}
        public |= {"records": n_records, **sampled}
    records = None if risk is None else risk.by_record()
    words = str if plan is None else for_plan  # whoever has a plan writes TOML, not Python
    confidential = {
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": versions(),
        "input": {}
        if source is None
        else {
            "file": str(source.path),
            "format": source.format,
            "reading": [words(str(statement)) for statement in source.how.statements],
        },
        "original": list(_describe(study)),
        "records": public["records"],
        "audit": release.audit.to_dict(confidential=True),
        "rules": {rule.name: rule.label for rule in release.rules if rule.label},
        "total_loss": rounded(release.loss, 4),
        "inconsistent": release.inconsistent,
        "moved": rounded(release.moved),
        "moved_inconsistent": rounded(release.moved_inconsistent),
        "repair_loss": rounded(release.repair_loss, 4),
        "edited": release.edited,
        "merged": release.merged,
        "donated": release.donated,
        "probabilistic": [str(one) for one in release.probabilistic],
        "plan": "" if plan is None else plan.to_toml(),
        "explanation": "" if release.plan is None else release.plan.explain(),
        "seed": study.random_state,
        "protocol": [plain_data(entry) for entry in (protocol or study.protocol).confidential()],
        "loss": [] if loss is None else [_loss(one.to_dict()) for one in loss],
        "loss_notes": [] if loss is None else list(loss.notes),
        "estimates": None if release.estimates is None else _estimates(release.estimates),
        "risk": _risk(risk, words),
        "risk_before": _risk(risk_before, words),
        "riskiest": [] if records is None else _riskiest(study, records),
        "bands": [] if records is None else _bands(records),
        "warnings": [
            *map(words, warned),
            *told_by_constants(study, release),
            *_excluded(release),
            *_large_loss(release),
            *_moved(study, release),
        ],
        "pictures": draw(study, release) if pictures else [],
    }
    public |= {"advice": advise(public), "sentences": sentences(public), "shared": shared(public)}
    return {"format": FORMAT, "public": public, "confidential": confidential}


def versions() -> dict[str, str]:
    """Return the versions that a result may depend on."""
    packages = {name: version(name) for name in ("NumPy", "SciPy", "scikit-learn", "numba")}
    return {"tessella": __version__, "Python": platform.python_version(), **packages}


def _loss(found: dict[str, Any]) -> dict[str, Any]:
    by_column = {name: rounded(value, 4) for name, value in found["by_column"].items()}
    return found | {"value": rounded(found["value"], 4), "by_column": by_column}


def _estimates(found: EstimateLoss) -> dict[str, Any]:
    """Return all estimates, and what became of each category: its share, and means within it."""
    within: dict[Any, list[SurveyEstimate]] = {}
    for one in found.within:
        within.setdefault(one.within, []).append(one)
    categories = []
    for share in (one for one in found.estimates if one.kind == "share"):
        means = within.get((share.column, share.of), [])
        worst = means[0].to_dict() if means else None  # the largest ratio is first
        moved = sum(one.moved for one in means)
        line = share.to_dict() | {"means": len(means), "means_moved": moved, "worst_mean": worst}
        categories.append(line)
    categories.sort(key=lambda line: -_most(line))
    moved = sum(one.moved for one in found.within)
    return found.to_dict() | {
        "sentence": found.sentence,
        "categories": categories,
        "within": {"means": len(found.within), "moved": moved},
    }


def _most(line: dict[str, Any]) -> float:
    """Return the larger ratio of a category's share and of the worst mean within it."""
    both = [line, *([line["worst_mean"]] if line["worst_mean"] else [])]
    return max(np.inf if one["ratio"] is None else one["ratio"] for one in both)


def _describe(study: Study) -> Iterator[dict[str, Any]]:
    """Describe each column of the original, dropped ones too."""
    first = study.replay(())
    view = first.views[0]
    for column in first.schema:
        facts = view.table.facts(column.name)
        figures = {
            "name": plain(column.name),
            "type": facts.family,
            "kind": column.kind,
            "role": column.role,
            "guessed": column.guessed,
            "why": column.why,
        }
        yield figures | _values(view, column.name)


def _values(view: View, name: Name) -> dict[str, Any]:
    figures: dict[str, Any] = dict.fromkeys(("low", "quartiles", "high", "mean"))
    numbers = None
    if view.is_number(name):
        with suppress(BadTableError):  # infinity, or too many digits
            numbers = view.numbers(name)
    if numbers is None:
        codes, _ = view.labels(name)
        known = codes[codes >= 0]
        return figures | {"missing": view.n_rows - len(known), "distinct": len(np.unique(known))}
    ordered = np.sort(numbers[~np.isnan(numbers)])
    figures |= {
        "missing": view.n_rows - len(ordered),
        "distinct": int((np.diff(ordered) > 0).sum()) + bool(len(ordered)),
    }
    if len(ordered):
        figures |= {
            "low": float(ordered[0]),
            "quartiles": np.quantile(ordered, [0.25, 0.5, 0.75]).tolist(),
            "high": float(ordered[-1]),
            "mean": float(ordered.mean()),
        }
    return figures


def _excluded(release: Release) -> Iterator[str]:
    """Warn of conditions that no record can meet if it keeps all rules."""
    for note in () if release.plan is None else release.plan.notes:
        kind, _, message = note.partition(": ")
        if kind == "excluded":
            yield f"{message}. No released record meets this condition."


def _large_loss(release: Release) -> Iterator[str]:
    """Warn of numbers that are further from the original than their mean is."""
    if not release.column_loss or release.loss <= 100:
        return
    worst = sorted(release.column_loss.items(), key=lambda one: -one[1])
    named = ", ".join(f"{name} ({loss:.3g} %)" for name, loss in worst[:LOST] if loss > 100)
    yield (
        f"The information loss is above 100 %: the mean of a column, in every record, would be "
        f"nearer to the original than what is released. The largest are {named}. Correct records "
        "that break a rule, give a smaller k, or leave out a column or a rule."
    )


def _moved(study: Study, release: Release) -> Iterator[str]:
    """Warn of categories whose shares moved by more than their sampling error."""
    reference, released = study.views
    names = [n for n in study.masked if released.table.has(n) and n not in study.recoded]
    names = [n for n in names if not released.is_number(n) and not released.missing(n).all()]
    if not names:
        return
    found = moved_shares(
        reference, released, columns=names, schema=study.schema, on_unpaired="skip",
        weights=reference.weights(), least=max(FEW, release.audit.k or 0),
    )  # fmt: skip
    for one in found[:MOVED]:
        yield (
            f"{one.column} = {one.of}: {100 * one.before:.3g} % of the records before and "
            f"{100 * one.after:.3g} % after masking, more than its sampling error of "
            f"{100 * one.error:.2g} points apart."
        )
    if len(found) > MOVED:
        counts = Counter(str(one.column) for one in found[MOVED:])
        named = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        more = len(found) - MOVED
        noun, whose = ("category", "its") if more == 1 else ("categories", "their")
        yield (
            f"Beside the {MOVED} categories named above, {more:,} {noun} moved by more than "
            f"{whose} sampling error: {named}."
        )


def _risk(found: Assessment | None, words: Callable[[str], str]) -> dict[str, Any] | None:
    """Return what attacks found, and why others were not tried, in the words of the reader."""
    if found is None:
        return None
    known: dict[str, Any] = plain_data(found.to_dict())
    return known | {"skipped": {name: words(why) for name, why in known["skipped"].items()}}


def _riskiest(study: Study, records: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the records that attacks find most surely: row from 1 on, identifiers, chance.

    Those of which a value follows from the total of their group come first.
    """
    chance = records["chance"]
    found = np.flatnonzero(np.nan_to_num(chance) > 0)
    attacks = list(records)[3:]
    chances = np.nan_to_num(
        np.column_stack([records[name] for name in attacks] or [np.empty((len(chance), 0))])
    )
    agreeing = (chances[found] > 0).sum(axis=1)
    given_away = chances[found][:, [n.startswith("dominance") for n in attacks]].sum(axis=1)
    worst = found[np.lexsort((-agreeing, -chance[found], -given_away))][:RISKIEST]
    if not len(worst):
        return []
    first = study.replay(())
    naming = first.schema.names("identifier", "unit")
    chosen = Table.read(first.views[0].table.take(np.asarray(worst, dtype=np.int64)))
    labels = {plain(name): chosen.labels(name) for name in naming}
    return [
        {
            "row": int(row) + 1,
            "ids": {
                name: texts[place[at]] if place[at] >= 0 else ""
                for name, (place, texts) in labels.items()
            },
            "chance": rounded(float(chance[row])),
            "attack": str(records["attack"][row]),
            "found_by": [str(name) for name, own in zip(attacks, chances[row]) if own > 0],
        }
        for at, row in enumerate(worst)
    ]


def _bands(records: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Count records by the largest chance of any attack."""
    chance = records["chance"]
    known = chance[~np.isnan(chance)]
    place = np.searchsorted([end for _, end in BANDS], known, side="left")
    counts = np.bincount(np.minimum(place, len(BANDS) - 1), minlength=len(BANDS))
    lines = [{"band": name, "records": n} for (name, _), n in zip(BANDS, counts.tolist())]
    if len(known) < len(chance):
        lines.append({"band": "not attacked", "records": int(len(chance) - len(known))})
    return lines
