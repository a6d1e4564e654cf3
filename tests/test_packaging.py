"""Files that state the same thing agree: version, requirements, extras, recipe, workflows."""

from __future__ import annotations

import ast
import re
import runpy
import sys
import tomllib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tessella

yaml = pytest.importorskip("yaml", reason="the extra validate is not installed")

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tessella"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"test", "docs", "bench", "e2e"}
COLLECTIONS = {"all"}  # of other extras
IMPORTED_AS = {
    "scikit-learn": "sklearn",
    "pyyaml": "yaml",
    "python-multipart": "python_multipart",
    "ibis-framework": "ibis",
}
COMES_WITH = {"markupsafe": "jinja2"}  # its texts are the other's
PASSED_IN = {"duckdb"}  # a user's relation is used, the package itself is never imported


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=!~ ;]", requirement, maxsplit=1)[0].lower()


def names_of(requirements: list[str]) -> set[str]:
    return {name_of(requirement) for requirement in requirements}


def imported_packages() -> tuple[set[str], set[str]]:
    """Top-level names in import statements of the library, and all its words.

    `optional` gets names of packages as words.
    """
    found: set[str] = set()
    words: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.add(node.value)
    tops = {name.partition(".")[0] for name in found}
    return tops - {*sys.stdlib_module_names, "tessella"}, words


def test_the_changelog_ends_at_the_version():
    headings = re.findall(r"^## \[(.+?)\](.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    versions = [name for name, _ in headings]
    assert versions[:2] == ["Unreleased", tessella.__version__]
    for _, rest in headings[1:]:
        assert re.fullmatch(r" - \d{4}-\d\d-\d\d", rest)


def test_the_citation_has_the_version():
    assert f"\nversion: {tessella.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_version_is_a_plain_one():
    """The tag of a release is the version with a v, as release.yml compares them."""
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", tessella.__version__)


def test_what_is_imported_is_required_and_what_is_required_is_imported():
    users = {name: EXTRAS[name] for name in EXTRAS.keys() - FOR_DEVELOPERS - COLLECTIONS}
    required = names_of(PROJECT["dependencies"]).union(*map(names_of, users.values()))
    needed = {IMPORTED_AS.get(name, name) for name in required}
    imported, words = imported_packages()
    assert imported - COMES_WITH.keys() <= needed
    assert needed - PASSED_IN <= imported | words
    assert set(COMES_WITH.values()) <= needed


def test_no_extra_repeats_what_every_installation_has():
    base = names_of(PROJECT["dependencies"])
    for extra, requirements in EXTRAS.items():
        assert not names_of(requirements) & base, extra


def test_extras_that_errors_name_exist():
    named = set()
    for path in SOURCE.rglob("*.py"):
        named |= set(re.findall(r"optional\([^)]*extra=\"(\w+)\"", path.read_text("utf-8")))
    assert named
    assert named <= EXTRAS.keys()


def test_collections_of_extras_name_extras():
    for extra in (*COLLECTIONS, "test"):
        inner = re.findall(rf"{PROJECT['name']}\[(.+?)\]", " ".join(EXTRAS[extra]))
        assert inner
        assert set(",".join(inner).split(",")) <= EXTRAS.keys()


def test_the_conda_recipe_requires_the_same():
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == tessella.__version__
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    assert recipe["package"]["name"] == PROJECT["name"]
    assert recipe["about"]["license"] == PROJECT["license"]
    entry_points = [f"{name} = {where}" for name, where in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == entry_points
    python, *packages = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert sorted(line.replace(" ", "") for line in packages) == sorted(PROJECT["dependencies"])
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert {line.replace(" ", "") for line in recipe["requirements"]["host"]} >= set(build)


@pytest.fixture(scope="module")
def without_repository_links() -> Callable[[str], str]:
    pytest.importorskip("hatchling", reason="it builds the package")
    functions = runpy.run_path(str(ROOT / "hatch_build.py"))
    function: Callable[[str], str] = functions["without_repository_links"]
    return function


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("[a](docs/a.md), [b](https://b.org), [c](#c)", "a, [b](https://b.org), [c](#c)"),
        ("One ([guide](docs/a.md)), two ([b](https://b.org)).", "One, two ([b](https://b.org))."),
        ("One (see [guide](docs/a.md)).", "One (see guide)."),
        ("[![x](y.svg)](docs/a.md)\n", "\n"),
        ("One.\n\nThe picture\nshows it:\n\n![p](docs/p.svg)\n\nTwo.\n", "One.\n\nTwo.\n"),
        ("A list:\n\n- one\n\n![p](docs/p.svg)\n\nTwo.\n", "A list:\n\n- one\n\nTwo.\n"),
        ("Here:\n\n![p](https://b.org/p.svg)\n", "Here:\n\n![p](https://b.org/p.svg)\n"),
        ("[A](a.md) ·\n[B](b.md) and [C](c.md) ·\n`make docs`\n", "`make docs`\n"),
    ],
)
def test_the_readme_of_a_package_index_has_no_dead_words(without_repository_links, text, left):
    assert without_repository_links(text) == left


def test_our_readme_reads_well_without_the_repository(without_repository_links):
    """Bugs once met: "Tutorial · How to · ...", "(guide)", a colon with nothing after it."""
    text = without_repository_links((ROOT / "README.md").read_text(encoding="utf-8"))
    assert not re.search(r"\(guide\)| ·$|\n\n\n", text, flags=re.MULTILINE)
    paragraphs = re.sub(r"```.*?```", "code", text, flags=re.DOTALL).split("\n\n")
    for paragraph, following in pairwise(paragraphs):
        if paragraph.endswith(":"):
            assert following.startswith(("code", "|", "- ")), paragraph
    assert len(text) > 0.8 * len(
        re.sub(r"\]\([^)]*\)", "", (ROOT / "README.md").read_text("utf-8"))
    )


@pytest.fixture
def workflows() -> dict[str, dict[str, Any]]:
    folder = ROOT / ".github" / "workflows"
    if not folder.exists():
        pytest.skip("an sdist holds no workflows")
    return {path.stem: yaml.safe_load(path.read_text()) for path in folder.glob("*.yml")}


def test_workflows_test_each_python_that_is_promised(workflows):
    promised = {
        line.rpartition(" ")[2]
        for line in PROJECT["classifiers"]
        if re.search(r"Python :: 3\.\d+$", line)
    }
    matrix = workflows["test"]["jobs"]["test"]["strategy"]["matrix"]
    assert set(matrix["python"]) == promised
    assert len(matrix["os"]) >= 2


def test_only_jobs_that_build_nothing_may_sign_or_publish(workflows):
    assert workflows["release"]["permissions"] == {}
    assert workflows["test"]["permissions"] == {"contents": "read"}
    jobs = workflows["release"]["jobs"]
    assert jobs["build"]["permissions"] == jobs["wheels"]["permissions"] == {"contents": "read"}
    for job in jobs.values():
        if "write" in job["permissions"].values():
            assert not any("run" in step for step in job["steps"])
    assert jobs["publish"]["environment"] == "pypi"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "attest"
    assert jobs["attest"]["needs"] == ["build", "wheels"]


def test_wheels_with_machine_code_are_built_for_each_python_that_is_promised(workflows):
    (build,) = [
        step["env"] for step in workflows["release"]["jobs"]["wheels"]["steps"] if "env" in step
    ]
    assert build["CIBW_ENVIRONMENT"] == "TESSELLA_KERNELS=1"
    built = {f"3.{name[3:].rstrip('-*')}" for name in build["CIBW_BUILD"].split()}
    assert built == set(workflows["test"]["jobs"]["test"]["strategy"]["matrix"]["python"])


def test_an_action_without_major_tags_is_named_by_a_tag_that_there_is(workflows):
    """A bug once met: cibuildwheel has v4.2 and no v4, which no linter finds without a network."""
    (used,) = {
        step["uses"]
        for step in workflows["release"]["jobs"]["wheels"]["steps"]
        if "cibuildwheel" in step.get("uses", "")
    }
    assert re.search(r"@v\d+\.\d+", used)
