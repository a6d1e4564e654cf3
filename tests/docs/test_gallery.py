"""The notebooks of the gallery: stored without outputs, and run in a real kernel."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tessella.datasets import data_folders

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
BOOKS = sorted(path.stem for path in GALLERY.glob("*.ipynb"))
NIST = Path("nist", "national", "national2019.csv")


def read(name: str) -> Any:
    return nbformat.read(GALLERY / f"{name}.ipynb", as_version=4)


def run(name: str, folder: Path) -> list[Any]:
    """Execute a notebook in an empty folder, in this Python; return its outputs, in their order."""
    book = read(name)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the client's own dependencies
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        client = nbclient.NotebookClient(
            book, timeout=600, resources={"metadata": {"path": str(folder)}}
        )
        client.execute()  # raises at the first cell with an error
    return [one for cell in book.cells for one in cell.get("outputs", [])]


def html_of(outputs: list[Any]) -> list[str]:
    shown = [one.data.get("text/html", "") for one in outputs if "data" in one]
    return [html for html in shown if html.startswith('<div class="tessella-output">')]


def titled(outputs: list[Any], title: str) -> str:
    (found,) = [html for html in html_of(outputs) if f'<p class="title">{title}</p>' in html]
    return found


def texts_of(outputs: list[Any]) -> list[str]:
    return [one.data["text/plain"] if "data" in one else one.text for one in outputs]


def test_the_gallery_has_five() -> None:
    assert BOOKS == ["explore", "firms", "households", "nist", "spark"]
    page = (GALLERY.parent / "notebooks.md").read_text(encoding="utf-8")
    assert all(f"(gallery/{name}.ipynb)" in page for name in BOOKS)


@pytest.mark.parametrize("name", BOOKS)
def test_it_is_stored_without_outputs(name: str) -> None:
    book = read(name)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert code
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert set(book.metadata) == {"kernelspec", "language_info"}
    assert book.metadata.kernelspec.name == "python3"


def passed(html: str) -> bool:
    return 'class="verdict passed"' in html and "changed: passed." in html


@pytest.mark.slow
def test_firms(tmp_path: Path) -> None:
    outputs = run("firms", tmp_path)
    assert len(html_of(outputs)) == 5
    release = titled(outputs, "Release")
    assert passed(release)
    assert "Confidential:" in release
    assert "Confidential:" not in titled(outputs, "Plan")
    assert int(texts_of(outputs)[-2]) >= 5  # counted by pandas
    assert [one.output_type for one in outputs].count("display_data") == 1  # one bar, updated
    assert any("100 % done in" in text for text in texts_of(outputs))


@pytest.mark.slow
def test_households(tmp_path: Path) -> None:
    outputs = run("households", tmp_path)
    release = titled(outputs, "Release")
    assert passed(release)
    assert "Units (distinct household)" in release
    assert "estimates" in titled(outputs, "Estimates beside their sampling errors")
    assert "Confidential:" in titled(outputs, "Risk")


@pytest.mark.slow
def test_nist(tmp_path: Path) -> None:
    if not any((folder / NIST).exists() for folder in data_folders()):
        pytest.skip(f"needs the public table {NIST} in the folder that TESSELLA_DATA names")
    outputs = run("nist", tmp_path)
    release = titled(outputs, "Release")
    assert passed(release)
    assert "<dd>8<small>of 8</small></dd>" in release  # rules that hold
    score = next(text for text in texts_of(outputs) if text.startswith("k-marginal: "))
    assert 900 < int(score.split()[1]) <= 1000


@pytest.mark.slow
def test_explore(tmp_path: Path) -> None:
    outputs = run("explore", tmp_path)
    found = titled(outputs, "Exploration")
    assert "<svg" in found
    assert "Confidential:" in found
    assert any("[[steps]]" in text for text in texts_of(outputs))
    assert passed(titled(outputs, "Release"))


@pytest.mark.slow
def test_spark(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Spark needs Java")
    outputs = run("spark", tmp_path)
    assert passed(titled(outputs, "Release"))
    least, same = texts_of([one for one in outputs if one.output_type == "execute_result"])[-2:]
    assert int(least) >= 5  # counted by Spark
    assert same == "True"  # the bytes of two engines
