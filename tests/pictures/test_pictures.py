"""Pictures: they say what they should, show nobody, and are the same byte for byte."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella import FuzzyMicroaggregation, Microaggregation, protect
from tessella.exceptions import BadOptionError, BadTableError, UnpairedError
from tessella.explore import Candidate, Exploration, Point
from tessella.frame import View
from tessella.pictures import (
    before_and_after,
    group_sizes,
    membership_uncertainty,
    risk_utility_map,
    save,
    where_the_loss_is,
)
from tessella.pictures.tables import _joined, compare_correlations

POINTS = [
    ("protect", {"k": 3, "grouping": "mdav"}, 5.0, 33.0),
    ("protect", {"k": 10, "grouping": "mdav"}, 14.0, 10.0),
    ("noise", {"amount": 0.1}, 1.0, 99.0),
    ("noise", {"amount": 0.5}, 20.0, 60.0),
    ("rank swapping", {"percent": 5}, 0.0, 100.0),
]


@pytest.fixture
def exploration():
    points = [
        Point(candidate=Candidate(method, **given), loss=loss, risk=risk, worst="euclidean")
        for method, given, loss, risk in POINTS
    ]
    points.append(Point(candidate=Candidate("coding"), error="refused"))
    points.append(Point(candidate=Candidate("rounding"), loss=9.0, risk=9.0, problems=("a rule",)))
    return Exploration(
        points=tuple(points), measures=("values",), attacks=("euclidean",), n_records=9, n_columns=2
    )


@pytest.fixture
def tables():
    random = np.random.default_rng(0)
    original = pd.DataFrame(
        {
            "pay": random.lognormal(3, 1, 200),
            "age": random.integers(18, 80, 200),
            "town": random.choice(["Reus", "Valls"], 200),
        }
    )
    masked = original.assign(pay=original.pay.round(-1), age=original.age // 5 * 5)
    return original, masked


def texts(figure):
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def test_the_map_names_the_front_and_every_method(exploration):
    said = texts(risk_utility_map(exploration))
    for name in ("MDAV, k = 3", "rank swapping, 5 %"):
        assert any(name in text for text in said)
    assert "MDAV, k = 10 (least score)" in said
    assert {"MDAV", "correlated noise", "rank swapping"} <= set(said)
    assert "uncorrelated noise, 0.5 s" not in said  # not on the front
    assert any("audit not passed" in text for text in said)


def test_names_on_the_map_do_not_cover_each_other(exploration):
    """By measuring: no two boxes of names overlap, and all are inside the picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Annotation

    figure = risk_utility_map(exploration)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    names = [note for note in figure.findobj(Annotation) if note.get_text() != "better"]
    from matplotlib.text import Text

    boxes = [Text.get_window_extent(note, renderer) for note in names]
    assert len(boxes) == 3  # 99 and 100 per cent are too near for two names
    for at, one in enumerate(boxes):
        assert one.x0 >= 0
        assert one.x1 <= figure.bbox.x1
        for other in boxes[at + 1 :]:
            assert not one.overlaps(other)


def test_a_map_needs_points(exploration):
    empty = Exploration(points=(), measures=("values",), attacks=("x",), n_records=9, n_columns=2)
    with pytest.raises(BadOptionError, match="at least one point"):
        risk_utility_map(empty)
    with pytest.raises(BadOptionError, match="linear"):
        risk_utility_map(exploration, scale="cubic")
    assert risk_utility_map(exploration, scale="linear").axes[0].get_xscale() == "linear"


def test_the_same_picture_has_the_same_bytes(exploration, tmp_path):
    for name in ("one", "two"):
        for form in ("svg", "png", "pdf"):
            save(exploration.picture(), tmp_path / f"{name}.{form}")
    for form in ("svg", "png", "pdf"):
        one = (tmp_path / f"one.{form}").read_bytes()
        assert one == (tmp_path / f"two.{form}").read_bytes()
    text = (tmp_path / "one.svg").read_text()
    assert "<dc:date>" not in text
    assert len(text) < 100_000
    with pytest.raises(BadOptionError, match="svg"):
        save(exploration.picture(), tmp_path / "map.gif")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == sorted(
        [".svg", ".png", ".pdf"] * 2
    )


def test_settings_of_a_user_neither_matter_nor_change(exploration, tmp_path):
    import matplotlib

    save(exploration.picture(), tmp_path / "one.svg")
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path"}):
        save(exploration.picture(), tmp_path / "two.svg")
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_pictures_open_no_window():
    import subprocess
    import sys

    code = (
        "import sys; from tessella.pictures import group_sizes; group_sizes([0, 0, 1, 1]);"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_distributions_have_a_part_for_each_column(tables, tmp_path):
    figure = before_and_after(*tables)
    assert [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()] == [
        "pay", "age", "town",
    ]  # fmt: skip
    save(figure, tmp_path / "x.svg")
    assert {"original", "masked", "Reus"} <= set(texts(figure))


def test_no_bar_shows_fewer_than_three_records():
    """An invariant, by counting again."""
    random = np.random.default_rng(0)
    for seed in range(30):
        x = np.random.default_rng(seed).lognormal(0, 1.5, random.integers(3, 200))
        edges = _joined(np.linspace(*np.quantile(x, [0.01, 0.99]), 21), x, 3)
        counts = np.histogram(np.clip(x, edges[0], edges[-1]), edges)[0]
        assert counts.sum() == len(x)
        assert (counts[counts > 0] >= 3).all()


def test_constant_and_missing_columns_are_drawn(tmp_path):
    table = pd.DataFrame({"one": [7.0] * 9, "none": [np.nan] * 9, "few": [1.0, 2, 3] * 3})
    save(before_and_after(table, table), tmp_path / "x.svg")
    save(before_and_after(table, table, show="correlations"), tmp_path / "y.svg")


def test_correlations_are_those_of_pandas(tables):
    """An independent way."""
    original, masked = tables
    numbers = [column for column in original if column != "town"]
    figure = before_and_after(original, masked, show="correlations")
    shown = figure.axes[0].images[0].get_array()
    assert shown[1, 0] == pytest.approx(original[numbers].corr().iloc[1, 0])
    assert shown[0, 1] == pytest.approx(masked[numbers].corr().iloc[0, 1])
    change = figure.axes[1].images[0].get_array()
    assert change[1, 0] == pytest.approx(shown[0, 1] - shown[1, 0])
    with pytest.raises(BadTableError, match="two columns"):
        before_and_after(original[["pay"]], masked[["pay"]], show="correlations")


def test_correlations_with_missing_cells_are_those_of_pandas():
    """An independent way: over the records that know both columns; 0 for a constant one."""
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.lognormal(size=(300, 4)) * 1e6 + 1e9, columns=list("abcd"))
    table["d"] = 7.0
    table = table.mask(random.random(table.shape) < 0.2)
    shown = compare_correlations(View(table), View(table), list("abcd"))["before"]
    expected = table.corr().fillna(0.0).to_numpy(copy=True)
    np.fill_diagonal(expected, 1.0)
    assert shown == pytest.approx(expected, abs=1e-9)


def test_tables_that_do_not_belong_together(tables):
    original, masked = tables
    with pytest.raises(UnpairedError):
        before_and_after(original, masked.rename(columns=str.upper))
    with pytest.raises(UnpairedError):
        before_and_after(original, masked.assign(pay=masked.pay.astype(str)))
    with pytest.raises(BadOptionError, match="least"):
        before_and_after(original, masked, least=1)


def bars(figure):
    return {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in
            figure.axes[0].patches}  # fmt: skip


def test_group_sizes_by_hand():
    figure = group_sizes([0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3], k=3)
    assert bars(figure) == {3: 2, 4: 1, 1: 1}
    assert any("smallest 1; 1 below k" in text for text in texts(figure))


def test_group_sizes_of_whatever_has_groups(tables):
    original, _ = tables
    numbers = original[["pay", "age"]]
    masker = Microaggregation(4, grouping="mdav").fit(numbers)
    assert sum(size * many for size, many in bars(group_sizes(masker)).items()) == 200
    release = protect(numbers, k=4, grouping="mdav", random_state=0)
    assert "k = 4" in texts(group_sizes(release))
    large = group_sizes(np.repeat([0, 1, 2], [3, 50, 5000]))
    assert large.axes[0].get_xscale() == "log"
    for nonsense in ("labels", [0.5, 1.5], [], None):
        with pytest.raises(BadOptionError, match="fitted masker"):
            group_sizes(nonsense)


def test_where_the_loss_is(tables, tmp_path):
    figure = where_the_loss_is(*tables, by="town")
    said = texts(figure)
    assert {"pay", "age"} <= set(said)
    assert any("Reus" in text for text in said)
    save(figure, tmp_path / "x.svg")
    save(where_the_loss_is(*tables), tmp_path / "y.svg")


def test_membership_uncertainty(tables, tmp_path):
    masker = FuzzyMicroaggregation(4, random_state=0).fit(tables[0][["pay", "age"]])
    figure = membership_uncertainty(masker)
    share = 100 * masker.uncertainty_[0].share_protected
    assert any(f"1/k = 0.25: {share:.0f} %" in text for text in texts(figure))
    save(figure, tmp_path / "x.svg")
    with pytest.raises(BadOptionError, match="FuzzyMicroaggregation"):
        membership_uncertainty(Microaggregation(3))
    with pytest.raises(BadOptionError, match="from 0 to 0"):
        membership_uncertainty(masker, block=3)


@pytest.mark.parametrize("x", [np.full(9, 1e20), np.full(9, -1e140), 1e16 + 2 * np.arange(9.0)])
def test_large_numbers_that_hardly_differ_are_drawn(x):
    """A bug once met: bars had no width."""
    assert before_and_after(x[:, None], x[:, None]).axes
