"""Six records, masked by hand; and what tests of the audit look at."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from tessella.auditing import Audit

SIX = pd.DataFrame(
    {"sex": list("mmmfff"), "net": [10, 12, 14, 20, 25, 30], "tax": [1, 2, 3, 4, 5, 6]}
)
MASKED = SIX.assign(net=[12, 12, 12, 25, 25, 25], tax=[2, 2, 2, 5, 5, 5])


def public_text(result: Audit) -> str:
    """Everything that an audit shows to somebody who does not ask for confidential figures."""
    frames = (result.rule_frame(), result.column_frame(), result.group_frame())
    lines = (result.rules, result.columns, result.blocks, result.joint)
    said = [str(result), repr(result), json.dumps(result.to_dict()), *map(str, lines)]
    return "\n".join([*said, *(frame.to_csv() for frame in frames), *result.problems])


def line(result: Audit, column: object) -> Any:
    return next(each for each in result.columns if each.name == column)
