"""A plan converts each column of a table at most twice, and confronts the original once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tessella.cli import app
from tessella.frame import Table
from tessella.rules import Rules

from .conftest import make_plan

RECORDS = 100


@pytest.fixture
def counted(home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[Any]]:
    """Run `tessella protect --plan` with both reports, and count what is converted."""
    found: dict[str, Counter[Any]] = {"conversions": Counter(), "confronted": Counter()}
    held: list[Any] = []  # what is counted lives until the end: an id stands for one object

    def count(name: str) -> None:
        convert = getattr(Table, name)

        def counting(self: Table, column: Any) -> Any:
            held.append(self)
            if self.n_rows == RECORDS:  # not samples, which are tables of their own
                found["conversions"][column] += 1
            return convert(self, column)

        monkeypatch.setattr(Table, name, counting)

    count("_read_numbers")
    count("_read_labels")
    confront = Rules.confront

    def confronting(self: Rules, table: Any, **options: Any) -> Any:
        read = Table.read(table)
        held.append(read)
        found["confronted"][id(read)] += 1
        return confront(self, table, **options)

    monkeypatch.setattr(Rules, "confront", confronting)
    (home / "plan.toml").write_text(make_plan(home, risk="quick").to_toml())
    result = CliRunner().invoke(app, ["protect", "--plan", str(home / "plan.toml")])
    assert result.exit_code == 0, result.output
    return found


def test_a_column_is_converted_at_most_twice_a_table(counted):
    """Counted by column over all `Table` objects, so that another object is no way around it."""
    tables = 2  # the original and the masked one
    worst = counted["conversions"].most_common(3)
    assert worst[0][1] <= 2 * tables, worst


def test_each_table_is_confronted_once(counted):
    """The original without its identifier, and the masked table."""
    assert sorted(counted["confronted"].values()) == [1, 1]
