"""Hints that can be pasted where the reader is: in a plan, or after a command.

Messages are written once, for Python: ``Give small="merge"``. A plan has the same names as keys,
a command as options; what stands as an argument there is written here as TOML, or as an option.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .._output import toml_key, toml_value
from .._wording import SAMPLE
from ..exceptions import TessellaError
from ..io import read_file
from ..masking import registry
from ..masking.engine import METHODS
from ..masking.fuzzy_groups import FUZZY_OPTIONS
from ..masking.overlapping_groups import OVERLAPPING_OPTIONS
from ..release.result import DEFAULTS
from ..release.steps import PREPARING, options_of

ARGUMENT = re.compile(
    r"""(?<![\w.\-=,])(?P<name>[a-z_][a-z0-9_]*)=
        (?P<value>"[^"]*"|'(?:\\.|[^'\\])*'|\[(?:[^\[\]]|\[[^\]]*\])*\]|\{[^{}]*\}|-?\d+(?:\.\d+)?|True|False|None
                 |\.\.\.)?(?![\w=])""",
    re.X,
)
READING = tuple(name for name in inspect.signature(read_file).parameters if name != "path")
PLACEHOLDER = "..."
SIGNS = {",": "comma", ";": "semicolon", "\t": "tab", ".": "point", " ": "space", "": "none"}
BY_PLAN = ("method", "order")  # what the plan of a release knows
ELSEWHERE = "What is written name = value stands in a step of a plan: tessella plan FILE -k K"
LEFT_OPEN = {"missing": "WORD", "skip": "LINES", "names": "NAME,NAME"}  # words to fill in
# What only Python has: rows from 0, dicts, types, classes, None.
ROWS = re.compile(r"\brows? (?P<numbers>\d+(?:, \d+)*)(?P<more>, \.\.\.)? \(from 0\)")
DICT = re.compile(r"(?<![=\w])\{'[^{}]*\}")
STORED = re.compile(r"\((?:object|large_string|string|str): ")  # of a column, before its kind
ONE_RECORD = re.compile(rf"\b1 {SAMPLE}\b")
CLASS = re.compile(r"\b(?:[A-Z][a-z]+){2,}\b")
UNNAMED = "no variable is called confidential: give confidential="  # why attacks are not tried
_SCHEMA = re.compile(r"\b[Tt]he schema (?=names|says)")
NOTHING = re.compile(r",? or None\b")
INNER = {*FUZZY_OPTIONS, *OVERLAPPING_OPTIONS, "effort", "time_limit"}  # of a grouping


def _step_options() -> set[str]:
    names = {"columns", *DEFAULTS, *(name for given in PREPARING.values() for name in given)}
    for method in ("protect", "noise", "coding", "rounding", "pram", "rank swapping", "shuffling",
                   "record swapping"):  # fmt: skip
        names |= set(options_of(method))
    return names - {"k"}


def for_plan(text: str) -> str:
    """Write the arguments in a message as keys of a plan.

    Examples
    --------
    >>> from tessella.planfile.hints import for_plan
    >>> for_plan('Merge strata, or give small="merge", or types={"a b": "text"}.')
    'Merge strata, or give small = "merge", or types = { "a b" = "text" } in [input].'
    """
    options = _step_options()
    text = _SCHEMA.sub("[columns] of the plan ", _plain_words(text))
    text = text.replace(UNNAMED, 'no column has role = "confidential" in [columns]')
    return ARGUMENT.sub(lambda found: _as_key(found, options) or found[0], text)


def _plain_words(text: str) -> str:
    """Write what only Python has as people write it: records from 1, tables of TOML, no None.

    Examples
    --------
    >>> from tessella.planfile.hints import _plain_words
    >>> _plain_words("The rows 0, 7, ... (from 0): give {'n': 1} or a number above 0 or None.")
    'The records 1, 8, ...: give { n = 1 } or a number above 0, or leave it out.'
    """
    began = text[:1].isupper()
    text = ONE_RECORD.sub("1 record", text)
    text = STORED.sub("(", ROWS.sub(_records, text))
    text = CLASS.sub(lambda found: _method_names().get(found[0], found[0]), text)
    text = DICT.sub(lambda found: _table(found[0]), text)
    text = NOTHING.sub(", or leave it out", text).replace("None or ", "")
    return text[:1].upper() + text[1:] if began else text


def _method_names() -> dict[str, str]:
    """Return what plans call the methods that Python calls by a class."""
    known = registry.methods().values()
    named = {m.masker.__name__: f"the method {m.name!r}" for m in known if m.masker is not None}
    return named | {kind: f"the grouping {name!r}" for name, kind in METHODS.items()}


def _records(found: re.Match[str]) -> str:
    numbers = [str(int(number) + 1) for number in found["numbers"].split(", ")]
    noun = "record" if found[0].startswith("row ") else "records"
    return f"{noun} {', '.join(numbers)}{found['more'] or ''}"


def _table(text: str) -> str:
    value = _value(text)
    return toml_value(value) if isinstance(value, Mapping) else text


def for_command(text: str, flags: Mapping[str, str], *, planned: bool = False) -> str:
    """Write the arguments in a message as options of a command, which has these flags by name.

    What has no flag is written as a key of a plan; `planned` if the command was given one.

    Examples
    --------
    >>> from tessella.planfile.hints import for_command
    >>> for_command("Give decimal=',' or types={'MSP': 'text'}.", {"read": "--read"})
    'Give --read decimal=comma or --read types.MSP=text.'
    >>> for_command("Give known= or at_least_k=False.", {"known": "--known", "option": "--option"})
    'Give --known or --option at_least_k=false.'
    >>> for_command("strata names a column 'x' that ...", {"strata": "--strata"})
    "--strata names a column 'x' that ..."
    """
    options, elsewhere = _step_options(), False
    text = _plain_words(text)
    text = _SCHEMA.sub("[columns] of the plan ", text) if planned else text

    def written(found: re.Match[str]) -> str:
        nonlocal elsewhere
        name, value = found["name"], _value(found["value"])
        if name in flags:
            if found["value"] in (None, "True"):
                return flags[name]
            return f"{flags[name]} {shlex.quote(_word(value, name.upper()))}"
        if name in READING and "read" in flags and not planned:
            return " ".join(f"--read {shlex.quote(own)}" for own in _reading(name, value))
        if name in INNER and "option" in flags:
            return f"--option {name}={_word(value, name.upper())}"
        if name in BY_PLAN and "plan" in flags:
            return "--plan PLAN"
        key = _as_key(found, options)
        elsewhere = elsewhere or (key is not None and not planned)
        return key or found[0]

    reworded = ARGUMENT.sub(written, text)
    reworded = re.sub(
        r"(?<![-\w])([a-z_]+)(?= (?:\(in the \w+(?: table)?\) )?names a column)",
        lambda found: _flag(found[1], flags), reworded,
    )  # fmt: skip
    return f"{reworded.rstrip('.')}. {ELSEWHERE}." if elsewhere else reworded


def _as_key(found: re.Match[str], options: set[str]) -> str | None:
    """Write an argument as a key of a plan; None where plans have no such key."""
    name, value = found["name"], _value(found["value"])
    if found["value"] == "None":  # TOML has no word for it
        return None
    if name in options or name == "k":
        return f"{toml_key(name)} = {toml_value(value)}"
    if name in INNER:
        return f"options = {toml_value({name: value})}"
    return f"{toml_key(name)} = {toml_value(value)} in [input]" if name in READING else None


def _flag(name: str, flags: Mapping[str, str]) -> str:
    if name in READING and name not in flags and "read" in flags:
        return flags["read"]
    return flags.get(name, name)


def _reading(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for column, own in value.items():
            for one in own if name == "missing" and isinstance(own, list) else [own]:
                yield f"{name}.{column}={_word(one, 'WORD')}"
    elif name == "missing" and isinstance(value, list):
        yield from (f"{name}={_word(one, 'WORD')}" for one in value)
    else:
        yield f"{name}={_word(value, LEFT_OPEN.get(name, 'NAME'))}"


def _word(value: Any, placeholder: str) -> str:
    if isinstance(value, list | tuple):
        return ",".join(_word(own, placeholder) for own in value)
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return placeholder if text == PLACEHOLDER else SIGNS.get(text, text)


def _value(text: str | None) -> Any:
    """Return the value of an argument as plan files hold it; `...` where it is left open."""
    if text is None:
        return PLACEHOLDER
    try:
        return _plain(ast.literal_eval(text))
    except (ValueError, SyntaxError):
        return PLACEHOLDER


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return PLACEHOLDER if value is ... or value is None else value


def reword(error: TessellaError, write: Callable[[str], str] = for_plan) -> None:
    """Reword an error for a plan, or as `write` does; for Python it was written."""
    python = getattr(error, "python", str(error))
    text = write(python)
    if text != str(error):
        error.python = python  # type: ignore[attr-defined]
        error.args = (text, *error.args[1:])
        if hasattr(error, "message"):
            error.message = text
