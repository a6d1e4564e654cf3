"""The public benchmark tables and their edits: what is known of them, counted again."""

from __future__ import annotations

import pytest

from tessella.datasets import load_census, load_eia
from tessella.exceptions import DataNotFoundError
from tessella.rules import Rules


def or_skip(load, **options):
    try:
        return load(**options)
    except DataNotFoundError:
        name = load.__name__.removeprefix("load_")
        pytest.skip(f"needs the public table {name}.csv in the folder that TESSELLA_DATA names")


def test_census_keeps_its_edits():
    table = or_skip(load_census)
    rules = Rules.parse(
        ["PTOTVAL == PEARNVAL + POTHVAL", "FEDTAX <= TAXINC", "TAXINC <= AGI"]
        + [f"{name} > 0" for name in table.columns]
    )
    assert [rule.kind for rule in rules][:3] == ["linear", "governing", "governing"]
    found = rules.confront(table)
    assert (found.signs == 1).all()
    # What is larger than something positive, or a sum of it, need not be said to be positive.
    names = {rule.text: rule.name for rule in rules}
    assert {finding.rules[0] for finding in rules.check()} == {
        names[f"{name} > 0"] for name in ("PTOTVAL", "TAXINC", "AGI")
    }
    assert {finding.kind for finding in rules.check()} == {"redundant"}


def test_eia_breaks_its_edits_as_often_as_known():
    """93.9 % of records exactly and 99.6 % within 1; sales 93.3 % and 99.5 %."""
    table = or_skip(load_eia)
    totals = {
        what: " + ".join(f"{part}{what}" for part in ("RES", "COM", "IND"))
        for what in ("REVENUE", "SALES")
    }
    rules = Rules.parse(
        [
            f"TOTREVENUE == {totals['REVENUE']} + OTHREVENUE",
            f"TOTREVENUE == {totals['REVENUE']} + OTHREVENUE ± 1",
            f"TOTSALES == {totals['SALES']} + OTHRSALES",
            f"TOTSALES == {totals['SALES']} + OTHRSALES ± 1",
        ]
    )
    shares = (100 * rules.confront(table).summary()["share"]).round(1).tolist()
    assert shares == [93.9, 99.6, 93.3, 99.5]
