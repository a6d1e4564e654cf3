"""A table of categorical keys, as censuses have them, with a hierarchy for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._parameters import FLAG, SEED, OneOf, Whole, parameters
from .._types import Floats, Integers
from .tables import CategoryColumn, ColumnData, to_frame

# Each tree has the shares of its leaves in per cent; they are scaled to one.
Tree = dict[str, dict[str, float]]
RACE: Tree = {"majority": {"white": 85.5}, "minority": {
    "black": 9.5, "asian": 3.0, "native": 1.0, "other race": 1.0}}  # fmt: skip
MARITAL: Tree = {
    "with spouse": {"married": 46.5, "married, armed forces": 0.1},
    "without spouse": {"never married": 32.5, "divorced": 14.0, "separated": 3.0, "widowed": 2.7,
                       "spouse absent": 1.2},
}  # fmt: skip
EDUCATION: Tree = {
    "primary": {"preschool": 0.2, "grades 1-4": 0.5, "grades 5-6": 1.0, "grades 7-8": 1.8},
    "secondary": {"grade 9": 1.5, "grade 10": 2.7, "grade 11": 3.5, "grade 12": 1.3,
                  "high school": 32.6},
    "college": {"some college": 22.1, "vocational": 4.3, "associate": 3.3},
    "degree": {"bachelor": 16.7, "master": 5.4, "professional": 1.8, "doctorate": 1.3},
}  # fmt: skip
COUNTRIES: Tree = {
    "North America": {"United States": 91.2, "Canada": 0.35, "Puerto Rico": 0.36},
    "Latin America": {
        "Mexico": 2.0, "Cuba": 0.3, "Jamaica": 0.27, "El Salvador": 0.33, "Guatemala": 0.2,
        "Dominican Republic": 0.22, "Columbia": 0.18, "Nicaragua": 0.11, "Peru": 0.1, "Haiti": 0.14,
        "Ecuador": 0.09, "Honduras": 0.04, "Trinidad": 0.06},
    "Asia": {
        "Philippines": 0.62, "India": 0.33, "China": 0.22, "Vietnam": 0.21, "Japan": 0.2,
        "South Korea": 0.24, "Taiwan": 0.14, "Iran": 0.14, "Thailand": 0.06, "Hong Kong": 0.06,
        "Laos": 0.06, "Cambodia": 0.06},
    "Europe": {
        "Germany": 0.42, "England": 0.28, "Italy": 0.22, "Poland": 0.18, "Portugal": 0.11,
        "Greece": 0.1, "France": 0.09, "Ireland": 0.08, "Yugoslavia": 0.05, "Scotland": 0.04,
        "Hungary": 0.04, "Netherlands": 0.01},
}  # fmt: skip
WORK: Tree = {
    "private sector": {"private": 73.9, "self-employed": 8.3, "own company": 3.6},
    "public sector": {"local government": 6.9, "state government": 4.2, "federal government": 3.1},
    "no pay": {"without pay": 0.05},
}
OCCUPATIONS: Tree = {
    "white collar": {"professional": 13.4, "managerial": 13.2, "clerical": 12.3, "sales": 11.9,
                     "technical support": 3.0},
    "blue collar": {"crafts": 13.4, "machine operator": 6.5, "transport": 5.2, "handler": 4.5,
                    "farming": 3.3},
    "service": {"other services": 10.6, "protective services": 2.1, "private household": 0.5,
                "armed forces": 0.03},
}  # fmt: skip
TREES = {
    "race": RACE, "marital": MARITAL, "education": EDUCATION, "country": COUNTRIES,
    "workclass": WORK, "occupation": OCCUPATIONS,
}  # fmt: skip
KEYS = ("age", "sex", "race", "marital", "education", "country", "workclass", "occupation")


@parameters(n=[Whole(1)], random_state=[SEED], return_hierarchies=[FLAG],
            frame=[OneOf(("pandas", "polars", "arrow"))])  # fmt: skip
def make_census_keys(
    n: int = 30_162,
    *,
    random_state: int | np.random.Generator | None = None,
    frame: str = "pandas",
    return_hierarchies: bool = False,
) -> Any:
    """Make a table of eight keys of working people, with the hierarchies to recode them by.

    Parameters
    ----------
    n : int
        The number of persons; by default as many as the complete records of the Adult table.
    random_state : int, Generator or None
        The seed.
    frame : {"pandas", "polars", "arrow"}
        The kind of table.
    return_hierarchies : bool
        Also return the hierarchies, as a plan writes them.

    Returns
    -------
    table : frame of n rows
        age from 17 to 90 and income in whole numbers; sex, race, marital, education, country,
        workclass and occupation as categories. Marital status goes with age, occupation and income
        with education.
    hierarchies : dict
        Only with `return_hierarchies`.

    Examples
    --------
    >>> from tessella.datasets import make_census_keys
    >>> table, hierarchies = make_census_keys(500, random_state=0, return_hierarchies=True)
    >>> list(table.columns), hierarchies["age"]
    (['age', 'sex', 'race', 'marital', 'education', 'country', 'workclass', ...
    """
    random = np.random.default_rng(random_state)
    age = np.clip(17 + random.gamma(2.3, 9.3, n), 17, 90).astype(np.int64)
    columns: dict[str, ColumnData] = {
        "age": age,
        "sex": CategoryColumn((random.random(n) < 0.33).astype(np.int8), ("male", "female")),
    }
    codes = {name: _draw(random, _shares(tree), n) for name, tree in TREES.items()}
    young = (age < 25) & (random.random(n) < 0.8)
    codes["marital"][young] = 2  # never married
    skilled = codes["education"] >= 12
    likely = skilled & (random.random(n) < 0.6)
    codes["occupation"][likely] = random.integers(0, 2, int(likely.sum()))
    for name, tree in TREES.items():
        leaves = tuple(leaf for children in tree.values() for leaf in children)
        columns[name] = CategoryColumn(codes[name].astype(np.int8), leaves)
    usual = 9.6 + 0.05 * codes["education"] + 0.012 * np.minimum(age, 55)
    columns["income"] = np.rint(np.exp(random.normal(usual, 0.6))).astype(np.int64)
    table = to_frame(columns, frame)
    if not return_hierarchies:
        return table
    hierarchies: dict[str, Any] = {
        "age": {"width": [5, 10, 20]},
        "sex": {"tree": ["male", "female"]},
        **{
            name: {"tree": {node: list(children) for node, children in tree.items()}}
            for name, tree in TREES.items()
        },
    }
    return table, {name: hierarchies[name] for name in KEYS}


def _shares(tree: Tree) -> Floats:
    shares = np.array([share for children in tree.values() for share in children.values()])
    scaled: Floats = shares / shares.sum()
    return scaled


def _draw(random: np.random.Generator, shares: Floats, n: int) -> Integers:
    return random.choice(len(shares), n, p=shares).astype(np.int64)
