"""Rules in the YAML of R's package validate, read and written.

References
----------
van der Loo, M. P. J. and de Jonge, E. (2021). Data validation infrastructure for R. Journal of
Statistical Software 97(10).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .._lazy import optional
from ..exceptions import Mistake, RuleSyntaxError, RuleTranslationError
from .collection import Entry, Rules
from .parser import parse_line
from .r_language import Unsayable, from_r, to_r
from .scanner import Wrong

__all__ = ["from_validate", "to_validate"]

LARGEST = 2**20  # characters; YAML is read slowly


def from_validate(text: str, *, origin: str | None = None) -> Rules:
    """Read the YAML of R's validate: see `Rules.from_validate`."""
    mistakes: list[Mistake] = []
    entries: list[Entry] = []
    for at, given in enumerate(_listed(text, origin), start=1):
        where = f"rule {at}"
        if not isinstance(given, Mapping) or not isinstance(given.get("expr"), str):
            mistakes.append(
                Mistake(where=where, message="There is no expr.", hint="Write expr: age >= 0.")
            )
            continue
        entry = _entry(given, where, at)
        if isinstance(entry, Entry):
            entries.append(entry)
        else:
            mistakes.append(entry)
    return Rules.from_entries(entries, origin=origin, mistakes=mistakes)


def _listed(text: str, origin: str | None) -> Iterator[Any]:
    """Yield what stands in the lists of rules of all documents of the text."""
    yaml = optional("yaml", extra="validate", purpose="The YAML of R's validate")

    def wrong(message: str, hint: str = "") -> RuleSyntaxError:
        mistake = Mistake(where="file", message=message, hint=hint)
        return RuleSyntaxError([mistake], origin=origin or "the rules")

    if len(text) > LARGEST:
        raise wrong(f"The text has more than {LARGEST:,} characters.")
    try:
        # A few anchors can stand for millions of nodes; no rules file needs one.
        anchors = (yaml.tokens.AnchorToken, yaml.tokens.AliasToken)
        anchored = any(isinstance(token, anchors) for token in yaml.scan(text, yaml.SafeLoader))
        loaded = [] if anchored else list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise wrong(f"This is not YAML: {' '.join(str(error).split())}.") from None
    if anchored:
        raise wrong("Anchors and aliases (& and *) of YAML are not read.", "Write them out.")
    lists = []
    for document in (each for each in loaded if each is not None):
        if not isinstance(document, Mapping):
            raise wrong("There is no list of rules.", "Write rules: and, below it, - expr: ...")
        if "include" in document:
            raise wrong("The file includes other files, which are not read.", "Read each of them.")
        if "rules" in document:
            lists.append(document["rules"])
    if not lists or not all(isinstance(each, list) for each in lists):
        raise wrong("There is no list of rules.", "Write rules: and, below it, - expr: ...")
    for each in lists:
        yield from each


def _entry(given: Mapping[str, Any], where: str, at: int) -> Entry | Mistake:
    expression = " ".join(given["expr"].split())
    name, label = given.get("name"), given.get("label") or given.get("title") or ""
    try:
        line = from_r(expression)
        name = None if name in (None, "") or name == f"R{at}" else str(name)
        if name is not None and not name.isprintable():
            raise Wrong(0, 1, f"The name {name!r} is not text of one line.")
    except Wrong as wrong:
        return Mistake(
            where=where,
            message=wrong.message,
            hint=wrong.hint,
            text=expression,
            start=wrong.start,
            width=wrong.end - wrong.start,
        )
    found = parse_line(line, where=where)
    if isinstance(found, list):  # the caret stands in R's text, not in ours
        return Mistake(
            where=where,
            message=found[0].message,
            hint=found[0].hint,
            text=expression,
            start=0,
            width=len(expression),
        )
    return Entry(text=line, where=where, name=name, label=str(label))


def to_validate(rules: Rules) -> str:
    """Write rules as the YAML of R's validate: see `Rules.to_validate`."""
    yaml = optional("yaml", extra="validate", purpose="The YAML of R's validate")
    problems, listed = [], []
    for rule in rules:
        try:
            said = {"expr": to_r(rule), "name": rule.name, "label": rule.label}
        except Unsayable as what:
            problems.append(f"{rule.where}: {what} ({rule.text})")
        else:
            listed.append(said)
    if problems:
        raise RuleTranslationError(problems, language="R's validate")
    text: str = yaml.safe_dump({"rules": listed}, sort_keys=False, allow_unicode=True, width=10**6)
    return text
