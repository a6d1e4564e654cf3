"""The manifest: which files belong together, what is promised of them, and their hashes.

There is no hash of the original in it. Who knows most of a table can try what the rest may be, one
guess after the other, until the hash fits: a hash hides a text that nobody can guess, and a table
is not such a text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..auditing.verifying import KIND

__all__ = ["manifest"]

TAKEN = (
    "tessella", "records", "order", "k", "blocks", "strata", "rules", "rules_withheld", "steps",
    "left_out", "tolerance",
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
    >>> from tessella.reports.manifests import manifest
    >>> study = Study(pd.DataFrame({"net": [1, 2, 3, 7, 8, 9]})).do("protect", k=3)
    >>> summary = summarise(study, study.release(), pictures=False)
    >>> read = json.loads(manifest(summary, [{"what": "release", "file": "net.csv"}]))
    >>> read["k"], read["records"], read["files"]
    (3, 6, [{'file': 'net.csv', 'what': 'release'}])
    """
    public = summary["public"]
    columns = [{part: column[part] for part in ("name", "type", "kind", "masked")}
               for column in public["columns"]]  # fmt: skip
    content = {
        "kind": KIND,
        "format": 1,
        "files": [dict(file) for file in files],
        "columns": columns,
        **{part: public[part] for part in TAKEN},
    }
    return json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
