"""The work itself, in a process of its own: `python -m tessella.app.working`.

One JSON value comes in: what to do. Lines of JSON go out: steps, and last the result or the reason
why there is none. So the pages stay alive while kernels run, work can be stopped at any moment,
and what was not finished is not written.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

from .._plain import plain_data
from ..auditing import verify
from ..exceptions import TessellaError
from ..planfile import parse_plan
from ..publishing import publish
from ..rules import Rules
from .folder import Folder

__all__ = ["TASKS", "main"]

Tell = Callable[..., None]


def main() -> None:
    """Do what standard input asks for; tell it on standard output."""
    out = sys.stdout
    sys.stdout = sys.stderr  # what others print is no message

    def tell(kind: str, **said: Any) -> None:
        out.write(json.dumps({"kind": kind, **plain_data(said)}) + "\n")
        out.flush()

    given = sys.stdin.read()
    if not given:
        return  # who started us has ended without a word
    asked = json.loads(given)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `publish` keeps them for its report and for us
            result = TASKS[asked.pop("task")](Folder(asked.pop("folder")), tell, **asked)
        tell("done", result=result)
    except TessellaError as error:
        tell("refused", why=str(error))
    except KeyboardInterrupt:
        tell("stopped")
    except MemoryError:
        tell("refused", why="There is not enough memory for this table on this machine.")


def _protect(
    folder: Folder, tell: Tell, *, plan: str, origin: str, overwrite: bool
) -> dict[str, Any]:
    wanted = parse_plan(plan, folder=folder.path, origin=origin)
    folder.check_plan(wanted)
    done = publish(
        wanted,
        progress=lambda at, of, name: tell("step", at=at, of=of, name=name),
        overwrite=overwrite,
    )
    public = done.summary["public"]
    risk, before = done.risk, done.risk_before
    worst = None if risk is None else risk.worst
    return {
        "public": public,
        "files": {what: wanted.output.files[what] for what in done.paths},
        "smallest": min((block["smallest"] for block in public["blocks"]), default=None),
        "risk": None
        if worst is None or risk is None
        else {
            "attack": worst.name,
            "value": worst.found.value,
            "tried": len(risk.tried),
            "before": None if before is None else before.value,
        },
        "warnings": list(done.warnings),
        "protocol": [
            {"method": e.method, "account": e.account, "seconds": e.seconds} for e in done.protocol
        ],
        "seconds": done.seconds,
    }


def _verify(
    folder: Folder,
    tell: Tell,
    *,
    original: str,
    release: str,
    k: int | None,
    rules: str | None,
    strata: list[str] | None,
    id: str | None,
    manifest: str | None,
) -> dict[str, Any]:
    tell("step", at=0, of=1, name="reading, counting, comparing")
    found = verify(
        folder.existing(original),
        folder.existing(release),
        k=k,
        rules=Rules.read(folder.existing(rules)) if rules else None,
        strata=strata or None,
        id=id or None,
        manifest=folder.existing(manifest) if manifest else None,
    )
    return found.to_dict() | {"names": {"original": original, "release": release}}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {"protect": _protect, "verify": _verify}


if __name__ == "__main__":
    main()
