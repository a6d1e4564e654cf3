"""A business survey: firms, their people, their money, and the rules that tie them together."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._parameters import Whole, parameters
from .._types import Floats, Integers
from .tables import COMMON, SHARE, CategoryColumn, ColumnData, leave_out, make_slips, to_frame

__all__ = ["make_business_survey"]

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

RULES = (
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
    "region in {" + ", ".join(f'"{name}"' for name in REGIONS) + "}",
    "branch in {" + ", ".join(f'"{name}"' for name in BRANCHES) + "}",
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
        columns["weight"] = _survey_weights(np.asarray(columns["employees"]))
    if inconsistent:
        make_slips(columns, ["wages", "costs", "turnover", "profit"], inconsistent, slips)
    if missing:
        leave_out(columns, figures, missing, gaps)
    table = to_frame(columns, frame)
    return (table, list(RULES)) if return_rules else table


def _firms(
    n: int, largest: int, self_employed: float, random: np.random.Generator
) -> dict[str, ColumnData]:
    shares, usual_rate, material_share, export_chance = np.array(list(BRANCHES.values())).T
    firm = 100_000 + random.permutation(n)
    region = random.choice(len(REGIONS), size=n, p=list(REGIONS.values()))
    branch = random.choice(len(BRANCHES), size=n, p=shares)

    alone = np.zeros(n, dtype=np.bool_)
    alone[random.permutation(n)[: round(self_employed * n)]] = True
    employees = np.where(alone, 0, _heavy_tailed_sizes(n, largest, random))
    hours = employees * np.clip(random.normal(1500, 180, n), 300, 2400)
    pay = usual_rate[branch] * random.lognormal(0, 0.2, n) * (1 + 0.05 * np.log1p(employees))
    rate = np.where(alone, 0, np.maximum(9, _whole(pay)))
    hours = _floor(hours)
    wages = hours * rate

    # Turnover pays for wages, the owner, materials and the rest, times the luck of the year.
    materials_of = np.clip(material_share[branch] * random.lognormal(0, 0.15, n), 0.02, 0.75)
    other_of = np.clip(random.lognormal(np.log(0.08), 0.4, n), 0.01, 0.2)
    owner = 25_000 * random.lognormal(0, 0.5, n)
    fair = (1.05 * wages + owner) / (1 - materials_of - other_of)
    dormant = alone & (random.random(n) < 0.05)
    turnover = np.where(dormant, 0, _whole(fair * random.lognormal(0, 0.12, n)))
    materials = np.where(dormant, 0, _whole(fair * materials_of))
    other_costs = _whole(fair * other_of)
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


def _heavy_tailed_sizes(n: int, largest: int, random: np.random.Generator) -> Integers:
    """Draw sizes from 1 to the largest by turning the stated law around."""
    beyond = (1 + largest / SCALE) ** -TAIL
    above = random.uniform(beyond, 1, n)
    sizes = np.ceil(SCALE * (above ** (-1 / TAIL) - 1)).astype(np.int64)
    return np.clip(sizes, 1, largest)  # 1 and the largest at the very ends of the interval


def _survey_weights(employees: Integers) -> Floats:
    """Weigh as surveys do: every large firm is asked, one in twenty of the smallest."""
    return np.round(np.clip(20 / (1 + 0.1 * employees), 1.0, 20.0), 2).astype(np.float64)


def _whole(values: Floats) -> Integers:
    return np.rint(values).astype(np.int64)


def _floor(values: Floats) -> Integers:
    return np.floor(values).astype(np.int64)
