"""What users get: sdist and wheel are built, and the wheel runs in an empty environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import tessella
from tessella.cli.terminal import COMPILING

pytest.importorskip("build", reason="the extra test is not installed")

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tessella"
SIGNATURES = SOURCE / "kernels" / "signatures.txt"
WHEEL_BYTES = 3_000_000
PLATFORM_WHEEL_BYTES = 6_000_000  # with machine code
SDIST_BYTES = 8_000_000
TABLES = {".arrow", ".csv", ".dta", ".feather", ".parquet", ".sas7bdat", ".sav", ".tsv", ".xlsx"}
EXAMPLE = "examples/firms.csv"  # made up

pytestmark = pytest.mark.slow


def built(folder: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel for all platforms that is built from it, as `make dist` does."""
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        env=os.environ | {"SOURCE_DATE_EPOCH": "1800000000"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return built(tmp_path_factory.mktemp("dist"))


def test_the_wheel_holds_the_package_and_nothing_else(distributions):
    _, wheel = distributions
    assert wheel.name == f"tessella-{tessella.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < WHEEL_BYTES
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    here = {
        f"tessella/{path.relative_to(SOURCE).as_posix()}"
        for path in SOURCE.rglob("*")
        if path.is_file() and not {"__pycache__", "compiled"} & set(path.parts)
    }
    assert held == here
    assert "tessella/py.typed" in held
    assert "tessella/reports/templates/external.html" in held
    assert "tessella/app/templates/page.html" in held
    assert "tessella/app/static/htmx.min.js" in held
    assert not any(Path(name).suffix in TABLES for name in held)


def test_the_sdist_holds_tests_and_docs_but_no_data(distributions):
    sdist, _ = distributions
    assert sdist.stat().st_size < SDIST_BYTES
    with tarfile.open(sdist) as file:
        held = {name.partition("/")[2] for name in file.getnames()}
    for name in ("Makefile", "mkdocs.yml", "docs/index.md", "tests/conftest.py", "hatch_build.py",
                 "README.md", "website/build.py"):  # fmt: skip
        assert name in held
    assert {name for name in held if Path(name).suffix in TABLES} == {EXAMPLE}
    tops = {name.partition("/")[0] for name in held}
    assert not tops & {".github", ".ci", ".git", ".venv", "dist", "site", "uv.lock"}


def test_the_metadata_are_complete(distributions):
    sdist, wheel = distributions
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout
    with zipfile.ZipFile(wheel) as file:
        (name,) = [name for name in file.namelist() if name.endswith("/METADATA")]
        head, _, readme = file.read(name).decode().partition("\n\n")
    for line in (
        f"Version: {tessella.__version__}",
        "License-Expression: BSD-3-Clause AND 0BSD",
        "Requires-Python: >=3.11",
        "Description-Content-Type: text/markdown",
    ):
        assert line in head.splitlines()
    assert "Summary: " in head
    assert "# tessella" in readme
    targets = re.findall(r"\]\(([^)]*)\)|(?:src|href)=\"([^\"]*)\"", readme)
    outside = [one or other for one, other in targets]
    assert all(re.match("https?://|#", target) for target in outside), outside


def test_the_same_tree_gives_the_same_bytes(distributions, tmp_path):
    for first, again in zip(distributions, built(tmp_path)):
        assert first.read_bytes() == again.read_bytes(), first.name


class Environment:
    """A virtual environment without anything, a compiler, or the source of this repository."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "env", with_pip=True, symlinks=os.name != "nt")
        self.bin = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        self.work = folder / "work"
        self.work.mkdir()
        self.variables = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        self.variables |= {
            "PATH": str(self.bin), "CC": "/bin/false", "CXX": "/bin/false", "COLUMNS": "200",
        }  # fmt: skip

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.bin / program), *arguments],
            cwd=self.work, env=self.variables, capture_output=True, text=True, encoding="utf-8",
        )  # fmt: skip

    def must(self, program: str, *arguments: str) -> str:
        done = self.run(program, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def must_refuse(self, *arguments: str) -> str:
        """What `tessella` says on ending with 2, in one line."""
        done = self.run("tessella", *arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return " ".join(done.stderr.split())


def with_machine_code(sdist: Path, folder: Path) -> Path:
    """The wheel for this platform, as `make dist` builds it."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir",
         str(folder), str(sdist)],
        env=os.environ | {"TESSELLA_KERNELS": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_the_wheel_runs_in_an_empty_environment(distributions, tmp_path):
    """One test, as several would be spread over workers, each with an environment of its own."""
    wheel = with_machine_code(distributions[0], tmp_path / "wheels")
    assert not wheel.name.endswith("-none-any.whl")
    assert wheel.stat().st_size < PLATFORM_WHEEL_BYTES
    held = zipfile.ZipFile(wheel).namelist()
    lines = SIGNATURES.read_text().splitlines()
    modules = {line.partition(".")[0] for line in lines if not line.startswith("#")}
    code = {Path(name).name.partition("-")[0] for name in held if "/kernels/compiled/" in name}
    assert code == modules | {"numba"}
    assert "tessella/kernels/compiled/numba-LICENSE" in held
    here = Environment(tmp_path)
    pip = ("-m", "pip", "--disable-pip-version-check")
    reached = here.run("python", *pip, "download", "--no-deps", "--dest", ".", "threadpoolctl>=3.1")
    if reached.returncode != 0:
        pytest.skip(f"no package index can be reached: {reached.stderr.strip()[-200:]}")
    here.must("python", *pip, "install", "--only-binary", ":all:", str(wheel))
    here.must("python", *pip, "check")

    where = here.must("python", "-c", "import tessella; print(tessella.__file__)")
    assert Path(where.strip()).is_relative_to(tmp_path)
    assert here.must("tessella", "--version").strip() == f"tessella {tessella.__version__}"

    installed = {line.partition("==")[0].lower() for line in here.must(
        "python", *pip, "list", "--format", "freeze").splitlines()}  # fmt: skip
    assert "numba" in installed
    assert not installed & {"starlette", "uvicorn", "matplotlib", "polars", "pyspark", "duckdb"}

    done = here.run("tessella", "demo", "--out", "demo", "-n", "300")
    assert done.returncode == 0, done.stderr
    assert COMPILING not in done.stderr
    loaded = "import sys; from tessella.cli.demo import run; run(out='again', n=300, k=5, seed=0, "
    loaded += "method='search'); print([n for n in ('numba', 'sklearn') if n in sys.modules])"
    assert here.must("python", "-c", loaded).splitlines()[-1] == "[]"
    files = ("firms-release.csv", "firms-release-manifest.json", "firms-release-report.html")
    with_code = [(here.work / "demo" / name).read_bytes() for name in files]
    release = ("demo/firms.csv", "demo/firms-release.csv", "--plan", "demo/plan.toml")
    here.must("tessella", "verify", *release)
    tampered = here.work / "demo" / "firms-release.csv"
    tampered.write_text(tampered.read_text().replace("north", "south"))
    assert "its hash differs" in here.must_refuse("verify", *release)

    said = here.must_refuse("app")
    assert "tessella[app]" in said
    assert 'pip install "' in said
    assert '"starlette>=' in said
    # The wheel for all platforms, where numba compiles: the same bytes.
    here.must("python", *pip, "install", "--no-deps", "--force-reinstall", str(distributions[1]))
    assert COMPILING in here.run("tessella", "demo", "--out", "pure", "-n", "300").stderr
    assert [(here.work / "pure" / name).read_bytes() for name in files] == with_code

    said = here.must_refuse("explore", "demo/firms.csv", "--picture", "map.svg")
    assert "tessella[plots]" in said
    assert 'pip install "matplotlib>=' in said
