"""Random linear rules with conditions, and whether a record obeys them: no code of tessella.

An atom is (coefficients, operator, constant); a rule a condition and a body, each some atoms that
must all hold. Every choice of branches is a system for `scipy.optimize.linprog`, which is given as
much room below strict inequalities as there is.
"""

from __future__ import annotations

from itertools import chain, product

import numpy as np
from scipy.optimize import linprog

COLUMNS = "abcd"
TURNED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def text(rule):
    condition, body = (" and ".join(map(_atom, atoms)) for atoms in rule)
    return f"if {condition}: {body}" if condition else body


def _atom(atom):
    coefficients, operator, constant = atom
    total = " + ".join(f"{value} * {name}" for name, value in coefficients.items())
    return f"{total} {operator} {constant}".replace("+ -", "- ")


def random_rules(random):
    """Return three to seven rules, half of them with a condition."""

    def atom():
        count = random.choice([1, 1, 2, 2, 3])
        names = random.choice(list(COLUMNS), count, replace=False)
        values = random.choice([-2, -1, 1, 1, 2], count)
        operator = random.choice(["<", "<=", "==", ">=", ">"])
        named = dict(zip(map(str, names), map(int, values)))
        return named, str(operator), int(random.integers(-4, 5))

    return [
        ([atom() for _ in range(random.choice([0, 1, 1, 2]))] if random.random() < 0.5 else [],
         [atom() for _ in range(random.choice([1, 1, 2]))])
        for _ in range(random.integers(3, 8))
    ]  # fmt: skip


def obeyed(random, record):
    """Return a rule that a record of whole numbers obeys, with constants that doubles hold."""

    def atom(wanted):
        while True:
            names = random.choice(list(record), random.choice([1, 2, 3]), replace=False)
            coefficients = {str(name): int(random.choice([-3, -1, 1, 2])) for name in names}
            value = sum(v * record[name] for name, v in coefficients.items())
            constant = value + int(random.choice([-1, 0, 1]))
            operator = str(random.choice(["<", "<=", "==", ">=", ">"]))
            if abs(constant) < 2**53 and holds(value, operator, constant) is wanted:
                return coefficients, operator, constant

    if random.random() < 0.4:  # a condition that is met, or one that is not
        if random.random() < 0.5:
            return [atom(True)], [atom(True)]
        return [atom(False)], [atom(bool(random.random() < 0.5))]
    return [], [atom(True)]


def holds(value, operator, constant):
    return {
        "<": value < constant, "<=": value <= constant, "==": value == constant,
        ">=": value >= constant, ">": value > constant,
    }[operator]  # fmt: skip


def feasible(rules):
    """Return whether some record of real numbers obeys all rules."""
    return any(_solvable(list(chain(*choice))) for choice in product(*map(_branches, rules)))


def _branches(rule):
    condition, body = rule
    found = [body]
    for coefficients, operator, constant in condition:
        turned = [TURNED[operator]] if operator != "==" else ["<", ">"]
        found += [[(coefficients, each, constant)] for each in turned]
    return found


def _solvable(atoms):
    """Maximise t <= 1 such that strict inequalities hold by t."""
    upper, above, equal, at = [], [], [], []
    for coefficients, operator, constant in atoms:
        row = [coefficients.get(name, 0) for name in COLUMNS]
        sign = -1 if operator in (">", ">=") else 1
        if operator == "==":
            equal.append([*row, 0])
            at.append(constant)
        else:
            upper.append([*(sign * value for value in row), float(operator in "<>")])
            above.append(sign * constant)
    found = linprog(
        [0] * len(COLUMNS) + [-1],
        A_ub=np.array(upper) if upper else None, b_ub=above or None,
        A_eq=np.array(equal) if equal else None, b_eq=at or None,
        bounds=[(None, None)] * len(COLUMNS) + [(0, 1)],
    )  # fmt: skip
    return found.status == 0 and -found.fun > 1e-7
