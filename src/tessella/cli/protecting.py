"""`tessella protect`, `verify`, `report`: from a plan to a release, and a look at any release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .. import auditing
from ..exceptions import BadOptionError
from ..io.writing import whole_or_nothing
from ..planfile import draft, parse_plan, read_plan
from ..publishing import publish
from ..reports import external_report, internal_report
from ..rules import Rules
from .checking import read_source
from .reporting import DONE, REFUSED, Reporter, columns_of

__all__ = ["protect", "report", "verify"]


def protect(
    file: str | None,
    *,
    plan: str | None,
    k: int | None,
    rules: str | None,
    strata: str | None,
    release: str | None,
    seed: int | None,
    overwrite: bool,
    read: list[str],
    reporter: Reporter,
) -> None:
    """Run a plan file, or the plan that would be drafted for a file."""
    source = None
    if plan is not None:
        given = {"FILE": file, "-k": k, "--rules": rules, "--strata": strata, "--seed": seed,
                 "--release": release, "--read": read or None}  # fmt: skip
        if twice := [name for name, value in given.items() if value is not None]:
            raise BadOptionError("--plan", plan, f"a plan or {', '.join(twice)}; the plan says it")
        wanted = read_plan(plan)
    else:
        if file is None or k is None:
            raise BadOptionError("protect", file, "--plan PLAN, or FILE and -k")
        source = read_source(file, read, reporter)
        folder = Path(release).parent if release else Path(file).parent
        text = draft(
            source, k=k, rules=rules, strata=columns_of(strata) or (), seed=seed,
            output=Path(release).name if release else None, folder=folder,
        )  # fmt: skip
        wanted = parse_plan(text, folder=folder)
    with reporter.progress("The first time, kernels are compiled, once ...") as step:
        done = publish(wanted, source=source, progress=step, overwrite=overwrite)
    for entry in done.protocol:
        reporter.detail(f"{entry.seconds:7.2f} s  {entry.method}")
    reporter.give(str(done), _account(done))


def _account(done: Any) -> dict[str, Any]:
    """Return what a script may want to know; the figures of risk are confidential."""
    return {
        "files": {what: str(path) for what, path in done.paths.items()},
        "public": done.summary["public"],
        "risk": None if done.risk is None else done.risk.to_dict(),
        "warnings": list(done.warnings),
        "seconds": round(done.seconds, 3),
    }


def verify(
    original: str,
    release: str,
    *,
    k: int | None,
    rules: str | None,
    strata: str | None,
    identity: str | None,
    manifest: str | None,
    reporter: Reporter,
) -> int:
    """Look at a release; return the exit code."""
    with reporter.waiting("Reading, counting, comparing ..."):
        found = auditing.verify(
            original, release, k=k, rules=None if rules is None else Rules.read(rules),
            strata=columns_of(strata), id=identity, manifest=manifest,
        )  # fmt: skip
    reporter.give(str(found), found.to_dict())
    return DONE if found.passed else REFUSED


def report(
    summary: str, external: str | None, internal: str | None, overwrite: bool, reporter: Reporter
) -> None:
    """Write reports from a summary."""
    if external is None and internal is None:
        raise BadOptionError("report", summary, "--external FILE, --internal FILE, or both")
    try:
        known = json.loads(Path(summary).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadOptionError(
            "SUMMARY", summary, f"a file that can be read: {error.strerror}"
        ) from None
    except ValueError:
        raise BadOptionError("SUMMARY", summary, "the summary.json of a release") from None
    if not isinstance(known, dict) or not {"public", "confidential"} <= set(known):
        raise BadOptionError("SUMMARY", summary, "the summary.json of a release")
    for path, make, secret in (
        (external, external_report, False),
        (internal, internal_report, True),
    ):
        if path is None:
            continue
        text = make(known)
        with whole_or_nothing(Path(path), overwrite=overwrite, private=secret) as out:
            out.write(text.encode())
        reporter.say(f"{path} is written{': it is confidential' if secret else ''}.")
