"""Plan files written: what `parse_plan` reads, with comments for a person."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._toml import toml_key, toml_value

if TYPE_CHECKING:
    from .model import PlanFile

__all__ = ["write_toml"]

WIDTH = 98


def write_toml(plan: PlanFile, notes: Mapping[str, Sequence[str]]) -> str:
    """Write a plan as TOML: see `PlanFile.to_toml`."""
    return "\n".join(_lines(plan, notes)).rstrip() + "\n"


def _lines(plan: PlanFile, notes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield from _comment(notes.get("", ()))
    yield f"version = {plan.version}"
    if plan.seed is not None:
        yield f"seed = {plan.seed}"
    yield from _table("input", {"file": plan.input.file, **plan.input.options}, notes)
    rules = plan.rules.model_dump(exclude_defaults=True)
    if rules or "rules" in notes:
        lines = rules.pop("lines", None)
        yield from _table("rules", rules, notes)
        if lines is not None:
            yield "lines = ["
            yield from (f"    {toml_value(line)}," for line in lines)
            yield "]"
    if plan.columns:
        yield ""
        yield from _comment(notes.get("columns", ()))
    for name, column in plan.columns.items():
        known = column.model_dump(exclude_defaults=True) | {"role": column.role}
        yield f"[columns.{toml_key(name)}]"
        yield from _comment(notes.get(f"columns.{name}", ()))
        yield from _pairs({"kind": known.pop("kind"), "role": known.pop("role"), **known})
    for at, step in enumerate(plan.steps):
        yield ""
        yield from _comment(notes.get(f"steps.{at}", ()))
        yield "[[steps]]"
        yield from _pairs(step.to_dict())
    yield from _table("measures", plan.measures.model_dump(exclude_none=True), notes)
    yield from _table("output", plan.output.model_dump(exclude_none=True), notes)


def _table(
    name: str, values: Mapping[str, Any], notes: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    yield ""
    yield from _comment(notes.get(name, ()))
    yield f"[{name}]"
    yield from _pairs(values)


def _pairs(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if value is None:
            continue
        line = f"{toml_key(name)} = {toml_value(value)}"
        if len(line) <= WIDTH or not isinstance(value, list | tuple):
            yield line
            continue
        yield f"{toml_key(name)} = ["
        inner = ", ".join(map(toml_value, value)) + ","
        yield from textwrap.wrap(
            inner, WIDTH, initial_indent="    ", subsequent_indent="    ",
            break_long_words=False, break_on_hyphens=False,
        ) if not any('"' in toml_value(v) and " " in str(v) for v in value) else [
            f"    {toml_value(v)}," for v in value
        ]  # fmt: skip
        yield "]"


def _comment(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        clean = "".join(sign if sign.isprintable() else " " for sign in line)
        indent = " " * (len(clean) - len(clean.lstrip()))
        yield from textwrap.wrap(
            clean, WIDTH, initial_indent="# ", subsequent_indent=f"# {indent}  "
        ) or ["#"]
