"""Which operator keeps which rule: the propositions of Torra (2008), rule by rule.

- Linear rules and intervals are kept by a mean with weights that are not negative, and by nothing
  else that works column by column (propositions 1, 3 and 7).
- Products over positive values are kept by the geometric mean, and by nothing else (4, 6 and 8).
- One column below another is kept by any operator that is monotone.
- Conditional rules are kept in each part of the table that their condition cuts out.
- Values that exist in the data are kept by order statistics only.

So a column cannot be in a linear and in a product rule, nor be observed and in either: no operator
keeps both. Such columns get the nearest point that keeps all rules; ``fit="closed"`` refuses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from .._parameters import NONE, Instance, OneOf, Whole, parameters
from .._types import Name
from ..diversity import DiversityRule
from ..exceptions import BadOptionError, PlanError, UnknownColumnError
from ..rules import Rules, forms
from ..rules.refute import clashing
from ..schema import Schema
from .plan import MATCHED, Block, Case, Choice, Claim, Plan, cases_of

CATEGORIES = ("nominal", "ordinal")


@parameters(
    {"method": "grouping", "missing": "on_missing"},
    k=[Whole(2)],
    fit=[OneOf(("closed", "project"))],
    edit=[OneOf(("fix", "refuse"))],
    small=[OneOf(("refuse", "merge"))],
    on_missing=[OneOf(("error", "pattern"))],
    distance=[OneOf(("original", "representation"))],
    aggregate=[OneOf(("auto", "mean", MATCHED))],
    options=[Instance(Mapping, "a mapping of names to values"), NONE],
)
def make_plan(
    schema: Schema,
    rules: Rules,
    *,
    k: int,
    columns: Sequence[Name] | None = None,
    strata: Sequence[Name] = (),
    blocks: Sequence[Sequence[Name]] | int | None = None,
    fit: str = "project",
    edit: str = "fix",
    small: str = "merge",
    on_missing: str = "pattern",
    distance: str = "original",
    scale: Any = "zscore",
    grouping: Any = "search",
    options: dict[str, Any] | None = None,
    aggregate: str = "auto",
    l: Any = None,  # noqa: E741
    t: Any = None,
    confidential: Sequence[Name] | Name | None = None,
) -> Plan:
    """Derive from rules and schema how to mask so that every rule holds.

    Parameters
    ----------
    schema : Schema
        Kinds and roles of all columns; quasi-identifiers are masked.
    rules : Rules
        The rules that must hold, fixed on the original table (`Rules.fix`).
    k : int
        The least number of records that share their released values.
    columns : sequence of names, optional
        The columns to mask, if they are not all quasi-identifiers.
    strata : sequence of names
        Columns within whose values records are grouped; they are released as they are.
    blocks : sequence of sequences of names, or int, optional
        Columns that are grouped together, or how many consecutive ones are; one block of all if not
        given. Columns that share a rule must share a block.
    fit : {"closed", "project"}
        Only operators that provably keep the rules, or, where there is none, the nearest point that
        does; where none is found, the values of the nearest record that keeps them.
    edit : {"fix", "refuse"}
        What to do with a table that breaks its rules: release one that does not, or nothing.
    small : {"refuse", "merge"}
        What to do with a part of fewer than k records to which a rule applies: refuse, or let its
        records join the part that differs in the fewest rules; they are then released as if
        they were in that part.
    on_missing : {"error", "pattern"}
        Refuse missing values, or group only records that lack the same cells.
    distance : {"original", "representation"}
        Whether distances of columns in product rules are measured by values or by logarithms.
    scale, grouping, options
        As for `Microaggregation`; the grouping may also be "fuzzy", with the options m1, m2,
        lambda1, lambda2, c, at_least_k (here True), tol, max_iter and neglect of
        `FuzzyMicroaggregation`. Fuzzy groups are near by logarithms in columns of products. Or
        "overlapping", with the option effort: see `OverlappingMicroaggregation`.
    aggregate : {"auto", "mean", "matched mean"}
        The released values of numbers that no rule relates to others: the mean of the group, which
        loses least in squared error, or a matched one, which keeps the distribution of the column
        (quantiles, zeros, spread, the mean of all). "auto" matches in crisp groups with categories,
        which keep their shares there, too. Bounds are kept by both.
    l : int or mapping, optional
        How diverse the confidential values of every group must be: a number of distinct values,
        {"entropy": 3} or {"recursive": [c, l]}. See `tessella.diversity`.
    t : float or mapping, optional
        How far their distribution may be from that of the table: a number from 0 to below 1,
        {"equal": 0.2} or {"ordered": 0.2}.
    confidential : sequence of names, optional
        The columns that l and t are about, released as they are; by default those of that role.

    Raises
    ------
    PlanError
        If no operator keeps the rules: which rules, why, and what could be given up.

    Examples
    --------
    >>> from tessella import Rules, Schema
    >>> from tessella.plan import make_plan
    >>> schema = Schema({name: {"kind": "continuous"} for name in ("net", "tax", "gross")})
    >>> print(make_plan(schema, Rules(["net + tax == gross"]), k=3).explain())
    Every released record stands for at least 3; groups are made by search.
    net, tax, gross are grouped together.
      net, tax, gross: the mean of the group; R1 is linear, and only means keep a linear rule.
    """
    if not isinstance(rules, Rules):
        rules = Rules(rules)
    masked = _masked(schema, columns, strata)
    cases = {rule.name: cases_of(rule) for rule in rules}
    for rule in rules:
        if not cases[rule.name]:
            raise PlanError(f"{rule.name} ({rule.text}) can never be true.")
    notes = _refuse_mixed(rules, masked, strata)
    kept = {name: ways for name, ways in cases.items() if name not in notes}
    drawn = isinstance(grouping, str) and grouping in ("fuzzy", "overlapping")
    if drawn and aggregate == MATCHED:
        expected = "'mean' or 'auto' with groups that are drawn: their centres are what is promised"
        raise BadOptionError("aggregate", aggregate, expected)
    planned = [
        _plan_block(schema, rules, kept, tuple(block), fit, "mean" if drawn else aggregate)
        for block in _blocks(blocks, masked, rules)
    ]
    if len(planned) > 1 and isinstance(grouping, str) and grouping == "overlapping":
        raise PlanError(
            "Overlapping groups need all masked columns in one block: two draws together would "
            "name records with a probability above 1/k. Leave out blocks, or take another grouping."
        )
    wanted = _diversity(schema, l, t, confidential, masked, strata)
    if wanted is not None:
        _refuse_undiverse(wanted, grouping if drawn else "", len(planned))
    taken = set(masked)
    return Plan(
        k=k, blocks=tuple(planned), strata=tuple(strata),
        untouched=tuple(c.name for c in schema if c.name not in taken and c.role != "unit"),
        unit=next(iter(schema.names("unit")), None), rules=rules,
        grouping=grouping, options=dict(options or {}), scale=scale, notes=tuple(notes.values()),
        fit=fit, edit=edit, small=small, on_missing=on_missing, distance=distance,
        aggregate=aggregate, diversity=wanted,
    )  # fmt: skip


def _diversity(
    schema: Schema, l: Any, t: Any, confidential: Any, masked: Sequence[Name],  # noqa: E741
    strata: Sequence[Name],
) -> DiversityRule | None:  # fmt: skip
    """Read what confidential values must be, and refuse columns that groups make constant."""
    if confidential is None and (l is not None or t is not None):
        confidential = schema.names("confidential")
    known = [column.name for column in schema]
    if confidential is not None and not isinstance(confidential, str) and confidential in known:
        confidential = [confidential]  # a name that is no text
    wanted = DiversityRule.of(l=l, t=t, confidential=confidential)
    for name in () if wanted is None else wanted.confidential:
        if name not in known:
            raise UnknownColumnError(name, known, who="confidential")
        if name in masked or name in strata:
            how = "masked" if name in masked else "a stratum"
            raise PlanError(
                f"{name!r} is confidential and would be {how}: all records of a group would have "
                "the same value, which gives it away. Leave it out of columns, blocks and strata: "
                f'schema.override({{{name!r}: {{"role": "confidential"}}}}) releases it as it is.'
            )
        if schema[name].role in ("identifier", "unit"):
            raise PlanError(
                f"{name!r} has the role {schema[name].role!r} and is not released: l and t are "
                "about columns that are."
            )
    return wanted


def _refuse_undiverse(wanted: DiversityRule, drawn: str, n_blocks: int) -> None:
    """Refuse groups that can promise nothing of the values of all who are alike."""
    if drawn:
        raise PlanError(
            f"{wanted} cannot be guaranteed with grouping={drawn!r}: the values that a record gets "
            'are drawn at random. Give grouping="search" or another crisp one.'
        )
    if n_blocks > 1:
        raise PlanError(
            f"{wanted} cannot be guaranteed with {n_blocks} blocks: records that are equal in all "
            "of them share a group in each, and the grouping does not control these sets. Leave "
            "out blocks."
        )


def _masked(
    schema: Schema, columns: Sequence[Name] | None, strata: Sequence[Name]
) -> tuple[Name, ...]:
    known = [column.name for column in schema]
    for who, names in (("columns", columns or ()), ("strata", strata)):
        for name in names:
            if name not in known:
                raise UnknownColumnError(name, known, who=who)
    apart = set(strata)
    if columns is not None:
        if both := apart & set(columns):
            raise BadOptionError("columns", sorted(map(str, both)), "columns that are no strata")
        return tuple(columns)
    return tuple(name for name in schema.names("quasi-identifier") if name not in apart)


def _refuse_mixed(rules: Rules, masked: Iterable[Name], strata: Sequence[Name]) -> dict[str, str]:
    """Refuse rules between masked columns and columns that stay; note those that no block keeps.

    These are rules without masked columns, and rules across members, which no record keeps alone.
    """
    hidden, apart, notes = set(masked), set(strata), {}
    for rule in rules:
        staying = [c for c in rule.columns if c not in hidden and c not in apart]
        if rule.unit is not None and (not staying or not hidden.intersection(rule.columns)):
            notes[rule.name] = (
                f"{rule.name} ({rule.text}) is about the members of a unit: it is checked after "
                "masking."
            )
        elif not hidden.intersection(rule.columns):
            notes[rule.name] = f"{rule.name} ({rule.text}) is about columns that are not masked."
        elif staying:
            named = ", ".join(map(repr, staying))
            raise PlanError(
                f"{rule.name} ({rule.text}) ties masked columns to {named}, which would be "
                "released as they are: a masked value cannot fit each record's own. Mask them "
                "too, or make them strata, or give up the rule."
            )
    return notes


def _blocks(
    blocks: Sequence[Sequence[Name]] | int | None, masked: tuple[Name, ...], rules: Rules
) -> list[Sequence[Name]]:
    if blocks is None:
        return [masked]
    if Whole(1).accepts(blocks):
        size = int(cast(Any, blocks))
        blocks = [masked[i : i + size] for i in range(0, len(masked), size)]
    if not isinstance(blocks, list | tuple) or not all(isinstance(b, list | tuple) for b in blocks):
        raise BadOptionError("blocks", blocks, "a number of columns, or a list of lists of names")
    flat = [name for block in blocks for name in block]
    if sorted(map(str, flat)) != sorted(map(str, masked)) or len(set(flat)) < len(flat):
        raise BadOptionError(
            "blocks", [list(block) for block in blocks], "every masked column in exactly one block"
        )
    for rule in rules:
        touched = [block for block in blocks if set(block).intersection(rule.columns)]
        if len(touched) > 1:
            raise PlanError(
                f"{rule.name} ({rule.text}) ties columns of different blocks. Columns that share a "
                "rule must be grouped together: put them into one block, or give up the rule."
            )
    return [tuple(block) for block in blocks]


def _plan_block(
    schema: Schema,
    rules: Rules,
    cases: dict[str, list[Case]],
    columns: tuple[Name, ...],
    fit: str,
    aggregate: str,
) -> Block:
    own = {n: w for n, w in cases.items() if set(columns).intersection(rules[n].columns)}
    own = _possible(own)
    claims = [claim for ways in own.values() for case in ways for claim in case]
    numbers = [name for name in columns if schema[name].kind not in CATEGORIES]
    operators, reasons = _choose(claims, columns, numbers, schema)
    troubles = _troubles(rules, claims, numbers, operators)
    if troubles and fit == "closed":
        listed = "\n".join(f"- {why}" for why, _, _ in troubles)
        raise PlanError(
            f"No operator keeps these rules together:\n{listed}\nGive up one of them, or give "
            'fit="project": each group then gets the nearest point that keeps all of them.'
        )
    for why, operator, seeds in troubles:
        for name in _connected(seeds, claims, numbers):
            if operators[name] != "medoid":
                operators[name], reasons[name] = operator, why
    if aggregate == MATCHED or (aggregate == "auto" and "member" in operators.values()):
        tied = _tied(rules, own)
        for name in numbers:
            if operators[name] == "mean" and name not in tied and schema[name].role != "weight":
                operators[name] = MATCHED
    factors = dict.fromkeys(
        (factor.column, factor.offset)
        for claim in claims
        for factor in (claim.product.factors if claim.product else ())
        if operators.get(factor.column) in ("geometric mean", "project")
    )
    whole = {name: schema[name].kind == "integer" for name in columns}
    choices = [
        Choice(column=n, operator=operators[n], whole=whole[n], because=reasons[n]) for n in columns
    ]
    return Block(
        columns=columns,
        choices=tuple(choices),
        rules=tuple(own),
        always=tuple(c for ways in own.values() if len(ways) == 1 for c in ways[0]),
        cases={name: ways for name, ways in own.items() if len(ways) > 1},
        signs=tuple(factors),
    )


def _tied(rules: Rules, cases: dict[str, list[Case]]) -> set[Name]:
    """Return the columns of rules other than bounds; also of those that no block keeps."""
    bounds = {
        name
        for name, ways in cases.items()
        if len(ways) == 1 and all(isinstance(claim.form, forms.Interval) for claim in ways[0])
    }
    return {name for rule in rules if rule.name not in bounds for name in rule.columns}


def _possible(cases: dict[str, list[Case]]) -> dict[str, list[Case]]:
    """Leave out the ways in which a rule cannot be true beside those that are true in one only."""
    certain = [claim for ways in cases.values() if len(ways) == 1 for claim in ways[0]]
    found = {}
    for name, ways in cases.items():
        able = [way for way in ways if len(ways) == 1 or not _excluded(way, certain)]
        found[name] = able or ways
    fewer = sum(map(len, found.values())) < sum(map(len, cases.values()))
    return _possible(found) if fewer else found


def _excluded(way: Case, certain: Sequence[Claim]) -> bool:
    """Whether a proof shows that no record keeps some claims beside others."""
    parts = [[c.form for c in claims if not c.tolerance] for claims in (way, certain)]
    return bool(clashing(dict(enumerate(map(tuple, parts)))))


def _choose(
    claims: Sequence[Claim],
    columns: Sequence[Name],
    numbers: Sequence[Name],
    schema: Schema,
) -> tuple[dict[Name, str], dict[Name, str]]:
    """Choose an operator for each column by the hardest rule that names it."""
    operators, reasons = {}, {}
    for name in columns:
        if name in numbers:
            operators[name], reasons[name] = "mean", "no rule requires anything else"
        else:
            kind = schema[name].kind
            operators[name] = "member"
            reasons[name] = f"it is {kind}, and a mean of categories means nothing"
    for claim in claims:
        form = claim.form
        for name in set(claim.columns) & set(operators):  # others are strata
            if name not in numbers:
                if len(claim.columns) > 1 and not isinstance(form, forms.ObservedValues):
                    reasons[name] = f"{claim.rule} allows certain combinations only"
            elif isinstance(form, forms.Linear):
                reasons[name] = f"{claim.rule} is linear, and only means keep a linear rule"
            elif isinstance(form, forms.Governing) and reasons[name].startswith("no rule"):
                reasons[name] = f"{claim.rule} puts one column below another; means keep that"
    for claim in claims:
        observed = isinstance(claim.form, forms.ObservedValues)
        tuples = isinstance(claim.form, forms.Tuples) and set(claim.columns) & set(numbers)
        together = len(claim.columns) > 1 and bool(observed or tuples)
        for name in set(claim.columns) & set(columns if together else numbers):
            if claim.product:
                operators[name] = "geometric mean"
                reasons[name] = f"{claim.rule} is a product, and only geometric means keep products"
            elif isinstance(claim.form, forms.ObservedValues | forms.Members | forms.Tuples):
                operators[name] = "medoid" if together else "median"
                reasons[name] = f"{claim.rule} allows only values that exist: an order statistic"
    _spread_along(claims, operators, reasons, numbers)
    return operators, reasons


def _spread_along(
    claims: Sequence[Claim],
    operators: dict[Name, str],
    reasons: dict[Name, str],
    numbers: Sequence[Name],
) -> None:
    """Give columns that a rule puts in order the same operator, where that is a monotone one."""
    pairs = [
        (claim, [name for name in claim.columns if name in numbers])
        for claim in claims
        if isinstance(claim.form, forms.Governing)
    ]
    changed = True
    while changed:
        changed = False
        for claim, pair in pairs:
            ordered = any(operators[name] == "median" for name in pair)
            for name in pair if ordered else ():
                if operators[name] == "mean":
                    operators[name], changed = "median", True
                    reasons[name] = f"{claim.rule} puts it in order with an order statistic"
    for claim, pair in pairs:
        for name in pair if any(operators[n] == "geometric mean" for n in pair) else ():
            if reasons[name].startswith(f"{claim.rule} puts one"):
                reasons[name] = (
                    f"{claim.rule} puts it in order with a product, to which it is moved"
                )


def _troubles(
    rules: Rules, claims: Sequence[Claim], numbers: Sequence[Name], operators: Mapping[Name, str]
) -> list[tuple[str, str, list[Name]]]:
    """Find columns for which no operator keeps all rules: why, what instead, which columns."""
    linear = _by_column((c for c in claims if isinstance(c.form, forms.Linear)), numbers)
    products = _by_column((c for c in claims if c.product), numbers)
    observed = _by_column(
        (c for c in claims if isinstance(c.form, forms.ObservedValues | forms.Members)), numbers
    )
    found: list[tuple[str, str, list[Name]]] = []
    for name in numbers:
        if name in linear and name in products:
            why = (
                f"{name!r} is in a linear rule ({_texts(rules, linear[name])}), which only "
                f"means keep, and in a product ({_texts(rules, products[name])}), which only "
                "geometric means keep"
            )
            found.append((why, "project", [name]))
        factors = [f for c in claims if c.product for f in c.product.factors if f.column == name]
        if len({factor.offset for factor in factors}) > 1:
            why = (
                f"{name!r} is a factor of products as it is and with another number added to "
                f"it ({_texts(rules, products[name])}): no geometric mean keeps both"
            )
            found.append((why, "project", [name]))
        if name in observed and (name in linear or name in products):
            why = (
                f"{name!r} takes only values that exist ({_texts(rules, observed[name])}), "
                "which order statistics keep, and is in "
                f"{_texts(rules, linear.get(name) or products[name])}, which they break"
            )
            found.append((why, "medoid", [name]))
        elif operators[name] == "median" and name in linear and name not in observed:
            why = (
                f"{name!r} is in order with values that exist, which order statistics keep, and in "
                f"a linear rule ({_texts(rules, linear[name])}), which they break"
            )
            found.append((why, "medoid", [name]))
    for claim in claims:
        pair = [name for name in claim.columns if name in numbers]
        ordered = isinstance(claim.form, forms.Governing)
        if ordered and {operators[name] for name in pair} == {"median", "geometric mean"}:
            why = (
                f"{claim.rule} ({rules[claim.rule].text}) puts values that exist in order with a "
                "product: no operator is known to keep that"
            )
            found.append((why, "medoid", pair))
        unequal = isinstance(claim.form, forms.Multiplicative) and not claim.product
        # Of categories and dates alone, values of a record are released that keep it.
        if pair and (unequal or isinstance(claim.form, forms.General | forms.Unfixed)):
            why = (
                f"{claim.rule} ({rules[claim.rule].text}) is neither linear nor a product that "
                "equals another: no operator is known to keep it"
            )
            found.append((why, "project", pair))
    return found


def _by_column(claims: Iterable[Claim], numbers: Sequence[Name]) -> dict[Name, list[str]]:
    """Return for each column of numbers the rules that name it."""
    found: dict[Name, list[str]] = {}
    for claim in claims:
        for name in claim.columns:
            if name in numbers and claim.rule not in found.setdefault(name, []):
                found[name].append(claim.rule)
    return found


def _texts(rules: Rules, names: Iterable[str]) -> str:
    return "; ".join(f"{name}: {rules[name].text}" for name in dict.fromkeys(names))


def _connected(
    seeds: Iterable[Name], claims: Sequence[Claim], numbers: Sequence[Name]
) -> list[Name]:
    """Return the columns of numbers that claims tie to some columns, directly or not."""
    found, waiting = set(seeds), True
    while waiting:
        waiting = False
        for claim in claims:
            own = {name for name in claim.columns if name in numbers}
            if own & found and not own <= found:
                found |= own
                waiting = True
    return [name for name in numbers if name in found]
