"""Progress of long work and the time left, by a clock that the test drives."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from tessella import protect, publish
from tessella._clock import TimeLeft, in_words, reported_to, waiting
from tessella.cli.terminal import Reporter
from tessella.exceptions import BadOptionError
from tessella.grouping import Search
from tessella.planfile import parse_plan
from tessella.risk import assess

from .clock import driven_clock


def test_by_hand() -> None:
    """Each look at the clock is a second: begun at 1, looked at at 2 and at 3."""
    with driven_clock():
        left = TimeLeft()
        assert left(0, 4) == ""  # nothing is done: nothing is known
        assert left(1, 4) == ", about 6 s left"  # 2 s for a quarter
        assert left(4, 4) == ""
        assert left(1, 11) == ", about 10 s left"  # less than before: other work, 1 s for a tenth
        limited = TimeLeft(limit=100)
        assert limited(0, 4) == ", about 2 min left"
    assert [in_words(s) for s in (59.4, 59.6, 3600)] == ["59 s", "1 min", "1 h 0 min"]


def test_a_search_reports_to_who_waits() -> None:
    X, seen = np.random.default_rng(0).normal(size=(200, 3)), []
    with reported_to(lambda *call: seen.append(call)):
        first = Search(3, effort="quick", random_state=0).fit(X)
    assert waiting() is None
    assert {total for _, total, _ in seen} == {1000}
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    again = Search(3, effort="quick", random_state=0).fit(X)
    assert (first.labels_ == again.labels_).all()


def test_publish_tells_how_long_a_search_and_attacks_will_take(tmp_path: Path) -> None:
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(60, 2)).round(3), columns=["a", "b"])
    table.to_csv(tmp_path / "t.csv", index=False)
    plan = parse_plan(
        'seed = 1\n[input]\nfile = "t.csv"\n[[steps]]\nmethod = "protect"\nk = 3\n'
        'options = { effort = "quick" }\n[output]\nfile = "r.csv"\n', folder=tmp_path,
    )  # fmt: skip
    calls: list[tuple[int, int, str]] = []
    with driven_clock():
        publish(plan, progress=lambda *call: calls.append(call))
    names = [name for _, _, name in calls]
    far = {"protect: rounds": r"\d+\.\d %", "measure risk: ": r"\d+ of \d+"}
    for step, form in far.items():
        timed = [n for n in names if re.match(rf"{step}.*\({form}\), about \d+ \w+ left$", n)]
        assert timed, step
    learned = [n for n in names if "learned distance" in n]
    assert len(learned) >= 10  # a table of 200,000 records takes seconds for five parts
    shares = [float(re.search(r"\((\d+\.\d) %\)", name)[1]) for name in learned]
    assert shares == sorted(shares)
    done = [at for at, _, _ in calls]
    assert done == sorted(done)
    assert not any("SSE" in name for name in names)


@pytest.mark.parametrize(("timed", "shown"), [(True, "about 6 s left"), (False, "link")])
def test_the_bar_of_a_command(monkeypatch: Any, timed: bool, shown: str) -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=120)
    monkeypatch.setattr(Reporter, "aside", console)
    with driven_clock(), Reporter().progress("Attacking ...", timed=timed) as step:
        step(0, 4, "link")
        step(1, 4, "link")
    assert shown in text.getvalue()


SHORT = """
import numpy as np
from tessella import Study
X = np.random.default_rng(0).normal(size=(120, 2))
Study(X, random_state=0, progress=True).do("protect", k=3)
"""


def outputs_of(*cells: str) -> list[Any]:
    """Run cells in a real kernel; return the outputs of the last."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the client's own dependencies
        nbclient.NotebookClient(book, timeout=300, allow_errors=True).execute()
    return list(book.cells[-1].outputs)


def test_progress_in_a_kernel_is_one_display_that_is_updated() -> None:
    outputs = outputs_of(SHORT)
    shown = [one for one in outputs if one.output_type == "display_data"]
    assert len(shown) == 1
    assert '<progress value="1.0000"' in shown[0].data["text/html"]
    assert re.search(r"100 % done in \d+ s", shown[0].data["text/plain"])


def test_a_name_is_no_markup_and_an_error_stays_readable() -> None:
    outputs = outputs_of(
        "from tessella._progress import shown\n"
        "with shown(True) as step:\n"
        "    step(1, 4, '<script>alert(1)</script>')\n"
        "    raise ValueError('enough')\n"
    )
    bar = next(one for one in outputs if one.output_type == "display_data").data["text/html"]
    assert "<script" not in bar
    assert "1 of 4: stopped at: &lt;script&gt;" in bar
    assert '<progress value="0.2500"' in bar


def test_progress_elsewhere_is_a_line_for_each_step() -> None:
    run = subprocess.run([sys.executable, "-c", SHORT], capture_output=True, text=True, check=True)
    lines = [line for line in run.stderr.splitlines() if " of 1,000: " in line]
    assert lines
    assert run.stdout == ""


def test_progress_is_true_false_or_callable(capsys: Any) -> None:
    seen: list[int] = []
    X = np.random.default_rng(0).normal(size=(60, 2))
    protect(X, k=3, random_state=0, progress=lambda done, total, name: seen.append(done))
    assert seen
    protect(X, k=3, random_state=0, progress=False)
    assert capsys.readouterr().err == ""
    with pytest.raises(BadOptionError, match="True, False, or progress"):
        assess(X, X, progress="yes")


def test_who_waits_for_an_outer_block_still_does() -> None:
    """Bug once possible: a study without progress would take it from `publish` around it."""
    seen: list[int] = []
    X = np.random.default_rng(0).normal(size=(60, 2))
    with reported_to(lambda done, total, name: seen.append(done)):
        protect(X, k=3, random_state=0)
    assert seen
