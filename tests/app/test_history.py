"""Every change of a plan can be taken back, after a restart and changes from outside, too."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.app.folder import Folder
from tessella.app.history import MOST, Histories, History, StaleError
from tessella.exceptions import TessellaError


@pytest.fixture
def histories(tmp_path):
    (tmp_path / "p.toml").write_text("a = 1\n")
    return Histories(Folder(tmp_path))


def texts(histories):
    return [version.text for version in histories.open("p.toml").versions]


def test_undo_and_redo_by_hand(histories):
    histories.change("p.toml", "a = 2\n", "two")
    histories.change("p.toml", "a = 3\n", "three")
    assert histories.open("p.toml").undo == "three"
    assert histories.move("p.toml", -1).text == "a = 2\n"
    assert histories.read("p.toml") == "a = 2\n"
    assert (histories.open("p.toml").undo, histories.open("p.toml").redo) == ("two", "three")
    histories.move("p.toml", -1)
    assert histories.move("p.toml", -1).text == "a = 1\n"  # at the end nothing happens
    assert histories.move("p.toml", 1).text == "a = 2\n"
    histories.change("p.toml", "a = 4\n", "four")
    assert texts(histories) == ["a = 1\n", "a = 2\n", "a = 4\n"]
    assert histories.open("p.toml").redo == ""


def test_a_restart_forgets_nothing(histories):
    histories.change("p.toml", "a = 2\n", "two")
    histories.keep("p.toml", "rules", "half a ru")
    again = Histories(histories.folder).open("p.toml")
    assert (again.now.what, again.undo, again.pending) == ("two", "two", {"rules": "half a ru"})


def test_what_others_write_is_a_version(histories):
    histories.change("p.toml", "a = 2\n", "two")
    (histories.folder.path / "p.toml").write_text("a = 9\n")
    assert histories.open("p.toml").now.what == "changed outside of the app"
    assert histories.move("p.toml", -1).text == "a = 2\n"


def test_a_process_that_ended_between_history_and_plan(histories):
    """The history is written first: what the plan then says is a version of it."""
    histories.change("p.toml", "a = 2\n", "two")
    (histories.folder.path / "p.toml").write_text("a = 1\n")
    held = histories.open("p.toml")
    assert (held.at, len(held.versions)) == (0, 2)


def test_a_damaged_history_is_begun_anew(histories):
    histories.change("p.toml", "a = 2\n", "two")
    path = histories.folder.state("history") / "p.toml.json"
    for content in ("", "[]", "{}", '{"versions": [], "at": 0, "pending": {}}', "\0"):
        path.write_text(content)
        assert histories.open("p.toml").now.text == "a = 2\n"


def test_typing_is_one_change_and_others_are_not(histories):
    for n in range(5):
        histories.change("p.toml", f"a = {n + 5}\n", "the text", typed=True)
    histories.change("p.toml", "b = 1\n", "k: 3 → 4")
    assert [v.what for v in histories.open("p.toml").versions] == [
        "the plan as it was", "the text", "k: 3 → 4",
    ]  # fmt: skip


def test_only_so_many_are_kept():
    held = History()
    for n in range(MOST + 10):
        held.add(f"a = {n}\n", "more")
    assert (len(held.versions), held.at) == (MOST, MOST - 1)
    assert held.now.text == f"a = {MOST + 9}\n"


def test_a_version_that_is_not_there(histories):
    with pytest.raises(StaleError):
        histories.go("p.toml", 5)
    with pytest.raises(TessellaError):
        histories.open("nothing.toml")


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_history_can_be_read_by_its_owner_only(histories):
    """It holds seeds."""
    histories.change("p.toml", "seed = 2\n", "two")
    state = histories.folder.path / ".tessella"
    assert state.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in state.rglob("*"))
    assert json.loads((state / "history" / "p.toml.json").read_text())["at"] == 1


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 5), st.sampled_from(["undo", "redo"])), max_size=20))
def test_a_history_is_like_a_list_with_a_place(tmp_path_factory, moves):
    """An independent way: a plain list, and where one is in it."""
    home = tmp_path_factory.mktemp("history")
    (home / "p.toml").write_text("a = 0\n")
    histories, plain, at = Histories(Folder(home)), ["a = 0\n"], 0
    for move in moves:
        if move == "undo":
            at = max(at - 1, 0)
            histories.move("p.toml", -1)
        elif move == "redo":
            at = min(at + 1, len(plain) - 1)
            histories.move("p.toml", 1)
        else:
            text = f"a = {move}\n"
            if text != plain[at]:
                plain, at = [*plain[: at + 1], text], at + 1
            histories.change("p.toml", text, f"to {move}")
        assert histories.read("p.toml") == plain[at]
