"""One summary of a release: all that any report tells, as plain dicts, lists, texts and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..io import Source
from ..loss.result import Summary
from ..planfile import PlanFile
from ..release import Protocol, Release, Study
from ..risk import Assessment
from .confidential import confidential_part
from .public import public_part

__all__ = ["FORMAT", "summarise"]

FORMAT = 1  # of the summary


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
    return {
        "format": FORMAT,
        "public": public_part(study, release, loss=loss, order=order, title=title),
        "confidential": confidential_part(
            study, release, plan=plan, source=source, loss=loss, risk=risk,
            risk_before=risk_before, protocol=protocol, warned=warned, pictures=pictures,
        ),
    }  # fmt: skip
