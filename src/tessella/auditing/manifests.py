"""Manifests: what was published of a release, read again and compared with its files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..exceptions import BadFileError, BadOptionError, DataNotFoundError
from ..schema import Schema

KIND = "tessella manifest"  # what a manifest calls itself
LARGEST = 50_000_000  # bytes of a file that may be one


def read_manifest(given: Any) -> Mapping[str, Any]:
    """Read a manifest from its path, or take it as it is; empty for None."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        read = given
    else:
        path = Path(given)
        if not path.is_file():
            raise DataNotFoundError(f"There is no manifest {str(path)!r}. Check the name.")
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, UnicodeDecodeError):
            raise BadFileError(path, "this is not JSON", "Give the manifest of a release") from None
    if not isinstance(read, Mapping) or read.get("kind") != KIND:
        raise BadOptionError("manifest", given, "a manifest that tessella has written")
    return read


def find_manifest(release: str | os.PathLike[str]) -> Path | None:
    """Return the manifest beside a release, which names its file; None if there is none, or two."""
    found = []
    for path in sorted(Path(release).parent.glob("*.json")):
        try:
            if path.stat().st_size > LARGEST or f'"{KIND}"'.encode() not in path.read_bytes():
                continue
            files = read_manifest(path).get("files", [])
        except (OSError, BadFileError, BadOptionError):
            continue
        if any((f["what"], f["file"]) == ("release", Path(release).name) for f in files):
            found.append(path)
    return found[0] if len(found) == 1 else None


def check_hashes(
    promised: Mapping[str, Any], masked: Any, manifest: Any, problems: list[str]
) -> dict[str, bool | None]:
    """Compare files with their hashes: the release that is given, others beside the manifest."""
    hashes: dict[str, bool | None] = {}
    beside = Path(manifest).parent if isinstance(manifest, str | os.PathLike) else None
    for file in promised.get("files", []):
        path = beside / file["file"] if beside is not None else None
        if file["what"] == "release":
            path = Path(masked) if isinstance(masked, str | os.PathLike) else None
        if path is None or not path.exists():
            hashes[file["file"]] = None
            continue
        fits = _digest(path) == file["sha256"]
        hashes[file["file"]] = fits
        if not fits:
            problems.append(f"{path.name} is not the file that the manifest speaks of.")
    return hashes


def _digest(path: Path) -> str:
    """Return the hash of a file; of a folder that of the hashes of its parts, line by line."""
    if path.is_dir():
        parts = (f"{_digest(part)}\n" for part in sorted(path.glob("part-*.parquet")))
        return hashlib.sha256("".join(parts).encode()).hexdigest()
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def refuse_other_file(
    promised: Mapping[str, Any], release: str | os.PathLike[str], manifest: Any
) -> None:
    """Refuse a release that is not the one that a manifest describes, byte by byte."""
    names = [file["file"] for file in promised.get("files", []) if file["what"] == "release"]
    hashes = check_hashes(promised, release, manifest, [])
    if names and hashes[names[0]] is False:
        raise BadFileError(
            release, f"this is not the file that {Path(manifest).name} describes: its hash differs",
            "Give the file as it was written, or its own manifest",
        )  # fmt: skip


def described_schema(promised: Mapping[str, Any], guess: Schema) -> Schema:
    """Return a guess of the original's columns, corrected by what a manifest says of the released.

    Kinds, weights and missing codes are those of the manifest; masked columns are
    quasi-identifiers, other released ones untouched. Of columns that were left out it says nothing
    but whether k counts units, of which the column is guessed.
    """
    known = {str(column.name): column.name for column in guess}
    counted = promised.get("counted") == "units"
    changes: dict[Any, dict[str, Any]] = {
        name: {"role": "identifier"} for name in guess.names("unit") if not counted
    }
    for column in promised.get("columns", []):
        if (name := known.get(str(column["name"]))) is None:
            continue
        role = "weight" if column.get("weight") else "untouched"
        changes[name] = {
            "kind": column["kind"], "role": "quasi-identifier" if column["masked"] else role,
            "missing": tuple(map(_value, column.get("codes", ()))), "why": "in the manifest",
        }  # fmt: skip
    return guess.override(changes)


def _value(text: str) -> Any:
    """Return a missing code: a number where its text is one."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number
