"""`tessella check` and `tessella schema`: what is in the file, and does it obey its rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..io import Source, read_file
from ..rules import Rules
from .reporting import DONE, REFUSED, Reporter, options_of

__all__ = ["check", "read_source", "schema"]

SHOWN = 5  # records that break a rule, by line number


def read_source(file: str, read: list[str], reporter: Reporter) -> Source:
    """Read a file and, to a curious person, say how."""
    with reporter.waiting(f"Reading {Path(file).name} ..."):
        source = read_file(file, **options_of(read))
    reporter.detail(str(source.how))
    return source


def check(file: str, rules: str | None, read: list[str], reporter: Reporter) -> int:
    """Check a file; return the exit code."""
    source = read_source(file, read, Reporter(reporter.quiet, False, reporter.machine))
    known = source.schema()
    lines = [
        f"{source.n_rows:,} records, {len(source.columns)} columns, read as {source.format}:",
        *(f"  {line}" for line in str(source.how).splitlines()),
        "",
        str(known),
    ]
    data: dict[str, Any] = {
        "file": Path(file).name,
        "format": source.format,
        "records": source.n_rows,
        "reading": source.how.to_dict(),
        "schema": known.to_dict(),
    }
    code = DONE
    if rules is not None:
        given = Rules.read(rules)
        found = [str(finding) for finding in given.check()]
        wrong = [f for f in given.check() if f.kind in ("contradiction", "always false")]
        told, judged, broken = _confront(given, source, known)
        lines += ["", f"{len(given)} rules:", *told]
        lines += [f"Note: {line}" for line in found]
        data["rules"], data["findings"] = judged, found
        code = REFUSED if wrong or broken else DONE
    reporter.give("\n".join(lines), data)
    return code


def _confront(
    rules: Rules, source: Source, schema: Any
) -> tuple[list[str], list[dict[str, Any]], bool]:
    result = rules.fix(source.table, schema=schema).confront(source.table, schema=schema)
    width = max((len(name) for name in rules.names), default=0)
    lines, data = [], []
    for at, rule in enumerate(rules):
        rows = result.rows[at]
        unknown = int((result.signs[:, at] == 0).sum())
        said = "holds" if not len(rows) else f"broken by {len(rows):,} of {source.n_rows:,}"
        if unknown:
            said += f", unknown for {unknown:,}"
        if len(rows):
            shown = ", ".join(str(int(row) + 1) for row in rows[:SHOWN])
            said += f" (records {shown}{', ...' if len(rows) > SHOWN else ''})"
        lines.append(f"  {rule.name:<{width}}  {said}: {rule.text}")
        data.append(
            {
                "rule": rule.name,
                "text": rule.text,
                "broken": len(rows),
                "unknown": unknown,
                "records": [int(row) + 1 for row in rows[:SHOWN]],
            }
        )
    broken = len(result.breaking())
    if broken:
        lines.append(
            f"{broken:,} records break a rule. tessella can release a table in which none does."
        )
    return lines, data, bool(broken)


def schema(file: str, read: list[str], toml: bool, reporter: Reporter) -> None:
    """Print the guessed schema."""
    source = read_source(file, read, reporter)
    known = source.schema()
    text = str(known)
    if toml:
        from .._plain import toml_key, toml_value

        tables = []
        for column in known:
            lines = [f"[columns.{toml_key(str(column.name))}]", f"# {column.why}"]
            lines += [f"kind = {toml_value(column.kind)}", f"role = {toml_value(column.role)}"]
            if column.missing:
                lines.append(f"missing = {toml_value(list(column.missing))}")
            if column.labels:
                lines.append(f"labels = {toml_value([[*p] for p in column.labels.items()])}")
            tables.append("\n".join(lines))
        text = "\n\n".join(tables)
    reporter.give(text, known.to_dict())
