"""Surveys with edit rules: firms with people and money, persons in households with income."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._parameters import Whole, parameters
from .._types import Floats, Integers, Signs
from .tables import COMMON, SHARE, CategoryColumn, ColumnData, leave_out, make_slips, to_frame

REGIONS = {"north": 0.34, "east": 0.27, "south": 0.22, "west": 0.17}

# For each branch: share of firms, usual hourly rate, materials for each euro of turnover, chance
# of exporting.
BRANCHES = {
    "construction": (0.16, 23.0, 0.38, 0.04),
    "hospitality": (0.13, 14.0, 0.33, 0.02),
    "manufacturing": (0.20, 27.0, 0.48, 0.45),
    "services": (0.24, 33.0, 0.12, 0.18),
    "trade": (0.18, 19.0, 0.66, 0.25),
    "transport": (0.09, 21.0, 0.41, 0.22),
}


def one_of(column: str, names: Iterable[str]) -> str:
    """Return the rule that a column holds one of some texts."""
    return f"{column} in {{" + ", ".join(f'"{name}"' for name in names) + "}"


def _rint(values: Floats) -> Integers:
    return np.rint(values).astype(np.int64)


BUSINESS_RULES = (
    "employees >= 0",
    "0 <= hours <= 2400 * employees                   # nobody works more hours than a year has",
    "hourly_rate >= 0",
    "materials >= 0",
    "other_costs >= 0",
    "turnover >= 0",
    "0 <= export_share <= 1",
    "wages == hours * hourly_rate                     # the wage bill",
    "costs == wages + materials + other_costs         # the parts of the costs",
    "profit == turnover - costs                       # what is left",
    "if employees == 0: hourly_rate == 0              # no wage without employees",
    "if turnover == 0: export_share == 0              # no exports without sales",
    one_of("region", REGIONS),
    one_of("branch", BRANCHES),
)

TAIL, SCALE = 1.3, 3.0  # of the number of employees: see Notes


@parameters(largest=[Whole(1)], self_employed=SHARE, **COMMON)
def make_business_survey(
    n: int = 1000,
    *,
    largest: int = 249,
    self_employed: float = 0.2,
    inconsistent: float = 0.0,
    missing: float = 0.0,
    weights: bool = False,
    random_state: int | np.random.Generator | None = None,
    frame: str = "pandas",
    return_rules: bool = False,
) -> Any:
    """Make a survey of firms whose sums and products hold exactly, in whole euros.

    Parameters
    ----------
    n : int
        The number of firms.
    largest : int
        The most employees of a firm. 249 makes a survey of small and medium firms; with 100,000, a
        few giants outweigh all others, as they do in every economy.
    self_employed : float
        Share of firms without employees: zero hours, rate and wages. Exact: round(share * n).
    inconsistent : float
        Share of records in which one of wages, costs, turnover or profit is off (a wrong unit, a
        lost sign, a slip of a few euros), so that an equality breaks. Exact: round(share * n).
    missing : float
        Chance of each figure to be missing, firm, region, branch and weight apart.
    weights : bool
        Add a column `weight`: how many firms of the population the record stands for.
    random_state : int, numpy.random.Generator or None
        The same seed gives the same table. With `inconsistent` or `missing`, all other cells are
        those of the clean table of the same seed.
    frame : {"pandas", "polars", "arrow", "numpy"}
        The kind of table; see Notes for NumPy.
    return_rules : bool
        Also return the edit rules, one line of text for each.

    Returns
    -------
    table : frame of n rows
        ============= ======== =========================================================
        firm          integer  identifier, without order or gaps that tell anything
        region        category four regions, shares 0.34, 0.27, 0.22, 0.17
        branch        category six branches, shares 0.09 to 0.24
        employees     integer  0, or heavy-tailed from 1 on
        hours         integer  hours worked in the year, about 1,500 an employee
        hourly_rate   integer  euros an hour, rising with the size of the firm
        wages         integer  hours * hourly_rate
        materials     integer  a part of turnover that depends on the branch
        other_costs   integer  rent, energy, services
        costs         integer  wages + materials + other_costs
        turnover      integer  0 for dormant firms (5 % of the self-employed)
        profit        integer  turnover - costs, negative in bad years
        export_share  float    0 for most firms; three decimals
        weight        float    only with weights=True
        ============= ======== =========================================================
    rules : list of str
        Only with `return_rules`. Every record of a clean table obeys every rule.

    Notes
    -----
    The number of employees e of a firm that has any follows a Pareto law, cut at `largest`:
    P(e > x) = (s(x) - s(largest)) / (1 - s(largest)) with s(x) = (1 + x / 3) ** -1.3.

    A NumPy table is a structured array, since regions and branches are text.

    Examples
    --------
    >>> from tessella.datasets import make_business_survey
    >>> firms, rules = make_business_survey(500, random_state=1, return_rules=True)
    >>> bool((firms["profit"] == firms["turnover"] - firms["costs"]).all())
    True
    >>> bool((firms["wages"] == firms["hours"] * firms["hourly_rate"]).all())
    True
    >>> rules[0]
    'employees >= 0'
    """
    values, slips, gaps = np.random.default_rng(random_state).spawn(3)
    columns = _firms(n, largest, self_employed, values)
    figures = [name for name in columns if name not in ("firm", "region", "branch")]
    if weights:
        # As in surveys: every large firm is asked, one in twenty of the smallest.
        asked = np.clip(20 / (1 + 0.1 * np.asarray(columns["employees"])), 1.0, 20.0)
        columns["weight"] = np.round(asked, 2)
    if inconsistent:
        make_slips(columns, ["wages", "costs", "turnover", "profit"], inconsistent, slips)
    if missing:
        leave_out(columns, figures, missing, gaps)
    table = to_frame(columns, frame)
    return (table, list(BUSINESS_RULES)) if return_rules else table


def _firms(
    n: int, largest: int, self_employed: float, random: np.random.Generator
) -> dict[str, ColumnData]:
    shares, usual_rate, material_share, export_chance = np.array(list(BRANCHES.values())).T
    firm = 100_000 + random.permutation(n)
    region = random.choice(len(REGIONS), size=n, p=list(REGIONS.values()))
    branch = random.choice(len(BRANCHES), size=n, p=shares)

    alone = np.zeros(n, dtype=np.bool_)
    alone[random.permutation(n)[: round(self_employed * n)]] = True
    # Sizes from 1 to the largest, drawn by turning the law of the Notes around.
    above = random.uniform((1 + largest / SCALE) ** -TAIL, 1, n)
    sizes = np.ceil(SCALE * (above ** (-1 / TAIL) - 1)).astype(np.int64)
    employees = np.where(alone, 0, np.clip(sizes, 1, largest))
    hours = employees * np.clip(random.normal(1500, 180, n), 300, 2400)
    pay = usual_rate[branch] * random.lognormal(0, 0.2, n) * (1 + 0.05 * np.log1p(employees))
    rate = np.where(alone, 0, np.maximum(9, _rint(pay)))
    hours = np.floor(hours).astype(np.int64)
    wages = hours * rate

    # Turnover pays for wages, the owner, materials and the rest, times the luck of the year.
    materials_of = np.clip(material_share[branch] * random.lognormal(0, 0.15, n), 0.02, 0.75)
    other_of = np.clip(random.lognormal(np.log(0.08), 0.4, n), 0.01, 0.2)
    owner = 25_000 * random.lognormal(0, 0.5, n)
    fair = (1.05 * wages + owner) / (1 - materials_of - other_of)
    dormant = alone & (random.random(n) < 0.05)
    turnover = np.where(dormant, 0, _rint(fair * random.lognormal(0, 0.12, n)))
    materials = np.where(dormant, 0, _rint(fair * materials_of))
    other_costs = _rint(fair * other_of)
    costs = wages + materials + other_costs

    exporting = (random.random(n) < export_chance[branch] * (1 + 0.1 * np.log1p(employees))) & (
        turnover > 0
    )
    export_share = np.where(exporting, np.round(random.beta(1.2, 2.5, n), 3), 0.0)
    return {
        "firm": firm,
        "region": CategoryColumn(region.astype(np.int8), tuple(REGIONS)),
        "branch": CategoryColumn(branch.astype(np.int8), tuple(BRANCHES)),
        "employees": employees,
        "hours": hours,
        "hourly_rate": rate,
        "wages": wages,
        "materials": materials,
        "other_costs": other_costs,
        "costs": costs,
        "turnover": turnover,
        "profit": turnover - costs,
        "export_share": export_share,
    }


# Households.

SIZES = {1: 0.33, 2: 0.32, 3: 0.15, 4: 0.13, 5: 0.05, 6: 0.02}
RELATIONS = ("head", "partner", "child")
SEXES = ("female", "male")
STATUSES = ("child", "student", "employed", "unemployed", "retired", "other")
CHILD, STUDENT, EMPLOYED, UNEMPLOYED, RETIRED, OTHER = range(len(STATUSES))

FREE = 11_000  # income up to here is not taxed
OLDEST = 105

HOUSEHOLD_RULES = (
    f"0 <= age <= {OLDEST}",
    one_of("sex", SEXES),
    one_of("status", STATUSES),
    one_of("relation", RELATIONS),
    "earnings >= 0",
    "pensions >= 0",
    "benefits >= 0",
    "capital >= 0",
    "tax >= 0",
    "births >= 0",
    "income == earnings + pensions + benefits + capital   # the parts of income",
    "net + tax == income                                  # what is left after tax",
    "tax <= taxable                                       # no tax above what is taxed",
    "taxable <= income                                    # benefits are free of tax",
    "if age < 16: income == 0                             # children have no income",
    'if age < 16: status == "child"',
    'if status == "child": age < 16',
    'if status == "employed": earnings > 0',
    'if status == "retired": age >= 60',
    'if relation == "head": age >= 18',
    'if sex == "male": births == 0',
    "if age < 16: births == 0",
)


@parameters(**COMMON)
def make_households(
    n: int = 1000,
    *,
    inconsistent: float = 0.0,
    missing: float = 0.0,
    weights: bool = False,
    random_state: int | np.random.Generator | None = None,
    frame: str = "pandas",
    return_rules: bool = False,
) -> Any:
    """Make a table of persons who live in households, with incomes that add up, in whole euros.

    Parameters
    ----------
    n : int
        The number of persons. The last household is cut where the table ends.
    inconsistent : float
        Share of records in which income or net income is off (a wrong unit, a lost sign, a slip of
        a few euros), so that an equality breaks. Exact: round(share * n).
    missing : float
        Chance of each age, amount and number of births to be missing.
    weights : bool
        Add a column `weight`, the same for all persons of a household.
    random_state, frame, return_rules
        As for `make_business_survey`.

    Returns
    -------
    table : frame of n rows
        ============= ======== =========================================================
        household     integer  identifier of the household
        person        integer  1, 2, ... within the household
        region        category of the household
        relation      category head, partner or child; each household has one head
        sex           category female, male
        age           integer  0 to 105; heads are 18 or more
        status        category child below 16; student, employed, unemployed, retired, other
        births        integer  children ever born; 0 for men
        earnings      integer  of the employed, and of some students; lognormal
        pensions      integer  of the retired; lognormal
        benefits      integer  of the unemployed and some others
        capital       integer  0 for most, else Pareto with tail index 1.5
        income        integer  earnings + pensions + benefits + capital
        taxable       integer  income without benefits, above 11,000
        tax           integer  20 % of taxable, 30 % above 30,000, 40 % above 80,000
        net           integer  income - tax
        weight        float    only with weights=True
        ============= ======== =========================================================
    rules : list of str
        Only with `return_rules`. Every record of a clean table obeys every rule.

    Examples
    --------
    >>> from tessella.datasets import make_households
    >>> persons = make_households(500, random_state=1)
    >>> bool((persons["net"] + persons["tax"] == persons["income"]).all())
    True
    >>> int(persons.loc[persons["age"] < 16, "income"].sum())
    0
    """
    values, slips, gaps, sample = np.random.default_rng(random_state).spawn(4)
    columns = _people(n, values)
    status = columns["status"]
    assert isinstance(status, CategoryColumn)
    amounts = _money(status.codes, values)
    columns |= amounts
    if weights:
        _, number = np.unique(np.asarray(columns["household"]), return_inverse=True)
        columns["weight"] = np.round(sample.lognormal(5, 0.4, number.max() + 1), 1)[number]
    if inconsistent:
        make_slips(columns, ["income", "net"], inconsistent, slips)
    if missing:
        leave_out(columns, ["age", "births", *amounts], missing, gaps)
    table = to_frame(columns, frame)
    return (table, list(HOUSEHOLD_RULES)) if return_rules else table


def _people(n: int, random: np.random.Generator) -> dict[str, ColumnData]:
    household, place = _homes(n, random)
    head = place == 0
    head_row = np.maximum.accumulate(np.where(head, np.arange(n), 0))

    partner = (place == 1) & (random.random(n) < 0.8)
    relation = np.select([head, partner], [0, 1], 2)
    family = np.bincount(head_row, minlength=n)[head_row] >= 3  # children at home: parents' ages
    years = np.where(family, 25 + 35 * random.beta(2, 2.2, n), 18 + 80 * random.beta(1.6, 1.9, n))
    head_age = np.clip(_rint(years), 18, OLDEST)[head_row]
    partner_age = np.clip(_rint(head_age + random.normal(0, 4, n)), 18, OLDEST)
    child_age = np.clip(_rint(head_age - random.normal(31, 6, n)), 0, OLDEST)
    age = np.select([head, partner], [head_age, partner_age], child_age)

    male = random.random(n) < np.where(age > 75, 0.4, 0.5)
    births = np.where(male | (age < 16), 0, random.poisson(np.clip((age - 16) / 15, 0, 1.7)))
    region = random.choice(len(REGIONS), size=n, p=list(REGIONS.values()))[head_row]
    return {
        "household": household,
        "person": place + 1,
        "region": CategoryColumn(region.astype(np.int8), tuple(REGIONS)),
        "relation": CategoryColumn(relation.astype(np.int8), RELATIONS),
        "sex": CategoryColumn(male.astype(np.int8), SEXES),
        "age": age,
        "status": CategoryColumn(_status(age, random).astype(np.int8), STATUSES),
        "births": births,
    }


def _homes(n: int, random: np.random.Generator) -> tuple[Integers, Integers]:
    """Return the household of each person and the person's place in it, from 0."""
    sizes = random.choice(list(SIZES), size=n, p=list(SIZES.values()))
    ends = np.cumsum(sizes)
    number = np.searchsorted(ends, np.arange(n), side="right")
    place = np.arange(n) - (ends - sizes)[number]
    names = 10_000 + random.permutation(n)
    return names[number], place


def _status(age: Integers, random: np.random.Generator) -> Integers:
    chance = random.random(len(age))
    studies = (age < 25) & (chance < 0.55)
    rests = (age >= 67) | ((age >= 60) & (chance < 0.4))
    works = random.random(len(age))
    return np.select(
        [age < 16, studies, rests, works < 0.8, works < 0.87],
        [CHILD, STUDENT, RETIRED, EMPLOYED, UNEMPLOYED],
        OTHER,
    )


def _money(status: Signs, random: np.random.Generator) -> dict[str, ColumnData]:
    n = len(status)
    full_time = 1 + _rint(random.lognormal(10.35, 0.55, n))
    small_job = _rint(random.lognormal(8.3, 0.6, n)) * (random.random(n) < 0.3)
    earnings = np.select([status == EMPLOYED, status == STUDENT], [full_time, small_job], 0)
    pensions = np.where(status == RETIRED, _rint(random.lognormal(9.8, 0.45, n)), 0)
    helped = (status == UNEMPLOYED) | ((status == OTHER) & (random.random(n) < 0.5))
    benefits = np.where(helped, _rint(random.lognormal(9.1, 0.3, n)), 0)
    saver = (status != CHILD) & (random.random(n) < 0.35)
    capital = np.where(saver, _rint(400 * (random.random(n) ** (-1 / 1.5) - 1)), 0)

    income = earnings + pensions + benefits + capital
    taxable = np.maximum(income - benefits - FREE, 0)
    above = [np.maximum(taxable - step, 0) for step in (30_000, 80_000)]
    tax = (2 * taxable + above[0] + above[1]) // 10
    return {
        "earnings": earnings,
        "pensions": pensions,
        "benefits": benefits,
        "capital": capital,
        "income": income,
        "taxable": taxable,
        "tax": tax,
        "net": income - tax,
    }
