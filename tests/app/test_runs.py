"""Results are in the order in which they were made, and the oldest go first."""

from __future__ import annotations

import random

from tessella.app.folder import Folder
from tessella.app.runs import KEPT, Run, Runs


def test_the_latest_is_the_one_that_was_made_last(tmp_path):
    """A bug once met: of two runs within a second, the names' random end told which was later."""
    runs = Runs(Folder(tmp_path))
    names = [f"20261119-120000-{n:08x}" for n in range(KEPT + 5)]
    random.Random(0).shuffle(names)
    for number, name in enumerate(names):
        home = runs.make().with_name(name)
        home.mkdir()
        runs.record(
            Run(key=name, plan="a.toml", text="", made=1e9 + number / 8, seconds=0, files={},
                home=home)
        )  # fmt: skip
    assert [run.key for run in runs.of("a.toml")] == names[::-1]
    runs.prune("a.toml")
    assert [run.key for run in runs.of("a.toml")] == names[: -KEPT - 1 : -1]
