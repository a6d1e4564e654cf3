"""Persons in households: what they are, what they live on, what they pay."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._parameters import parameters
from .._types import Floats, Integers, Signs
from .tables import COMMON, CategoryColumn, ColumnData, leave_out, make_slips, to_frame

__all__ = ["make_households"]


SIZES = {1: 0.33, 2: 0.32, 3: 0.15, 4: 0.13, 5: 0.05, 6: 0.02}
REGIONS = {"north": 0.34, "east": 0.27, "south": 0.22, "west": 0.17}
RELATIONS = ("head", "partner", "child")
SEXES = ("female", "male")
STATUSES = ("child", "student", "employed", "unemployed", "retired", "other")
CHILD, STUDENT, EMPLOYED, UNEMPLOYED, RETIRED, OTHER = range(len(STATUSES))

FREE = 11_000  # income up to here is not taxed
OLDEST = 105

RULES = (
    f"0 <= age <= {OLDEST}",
    "sex in {" + ", ".join(f'"{name}"' for name in SEXES) + "}",
    "status in {" + ", ".join(f'"{name}"' for name in STATUSES) + "}",
    "relation in {" + ", ".join(f'"{name}"' for name in RELATIONS) + "}",
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
    random_state : int, numpy.random.Generator or None
        The same seed gives the same table. With `inconsistent` or `missing`, all other cells are
        those of the clean table of the same seed.
    frame : {"pandas", "polars", "arrow", "numpy"}
        The kind of table; NumPy gives a structured array, since some columns are text.
    return_rules : bool
        Also return the edit rules, one line of text for each.

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
    amounts = _money(_numbers(columns, "status"), values)
    columns |= amounts
    if weights:
        columns["weight"] = _household_weights(np.asarray(columns["household"]), sample)
    if inconsistent:
        make_slips(columns, ["income", "net"], inconsistent, slips)
    if missing:
        leave_out(columns, ["age", "births", *amounts], missing, gaps)
    table = to_frame(columns, frame)
    return (table, list(RULES)) if return_rules else table


def _people(n: int, random: np.random.Generator) -> dict[str, ColumnData]:
    household, place = _homes(n, random)
    head = place == 0
    head_row = np.maximum.accumulate(np.where(head, np.arange(n), 0))

    partner = (place == 1) & (random.random(n) < 0.8)
    relation = np.select([head, partner], [0, 1], 2)
    family = np.bincount(head_row, minlength=n)[head_row] >= 3  # children at home: parents' ages
    years = np.where(family, 25 + 35 * random.beta(2, 2.2, n), 18 + 80 * random.beta(1.6, 1.9, n))
    head_age = _between(years, 18, OLDEST)[head_row]
    partner_age = _between(head_age + random.normal(0, 4, n), 18, OLDEST)
    child_age = _between(head_age - random.normal(31, 6, n), 0, OLDEST)
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
    full_time = 1 + _whole(random.lognormal(10.35, 0.55, n))
    small_job = _whole(random.lognormal(8.3, 0.6, n)) * (random.random(n) < 0.3)
    earnings = np.select([status == EMPLOYED, status == STUDENT], [full_time, small_job], 0)
    pensions = np.where(status == RETIRED, _whole(random.lognormal(9.8, 0.45, n)), 0)
    helped = (status == UNEMPLOYED) | ((status == OTHER) & (random.random(n) < 0.5))
    benefits = np.where(helped, _whole(random.lognormal(9.1, 0.3, n)), 0)
    saver = (status != CHILD) & (random.random(n) < 0.35)
    capital = np.where(saver, _whole(400 * (random.random(n) ** (-1 / 1.5) - 1)), 0)

    income = earnings + pensions + benefits + capital
    taxable = np.maximum(income - benefits - FREE, 0)
    tax = _tax(taxable)
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


def _tax(taxable: Integers) -> Integers:
    above = [np.maximum(taxable - step, 0) for step in (30_000, 80_000)]
    return (2 * taxable + above[0] + above[1]) // 10


def _household_weights(household: Integers, random: np.random.Generator) -> Floats:
    _, number = np.unique(household, return_inverse=True)
    drawn = np.round(random.lognormal(5, 0.4, number.max() + 1), 1)
    return np.asarray(drawn[number], dtype=np.float64)


def _numbers(columns: dict[str, ColumnData], name: str) -> Signs:
    column = columns[name]
    return column.codes if isinstance(column, CategoryColumn) else column


def _between(values: Floats, low: int, high: int) -> Integers:
    return np.clip(_whole(values), low, high)


def _whole(values: Floats) -> Integers:
    return np.rint(values).astype(np.int64)
