"""The pages as they are written: their order, titles, links and anchors.

An anchor is what Python-Markdown makes of a heading, and on pages of `docs/api` the full name of
each public object. Links inside of code are not links.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from .pictures import SOURCE

ENTRY = re.compile(r"^::: (tessella(?:\.\w+)*)$", flags=re.MULTILINE)
FENCE = re.compile(r"^( *)(```+)[^\n]*\n.*?^\1\2 *$", flags=re.DOTALL | re.MULTILINE)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", flags=re.DOTALL)
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
NO_PARAGRAPH = re.compile(r"\s*(?:[|!*<-]|:::)")  # a table, a picture, a motto, a list
SENTENCE_END = re.compile(r"(?<=[.:?])\s(?=[A-Z`¶])")
HEADING = re.compile(r"^(#{1,6}) +(.+?) *#* *$", flags=re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A page: where it is, below docs, and what it says."""

    path: str
    text: str

    @cached_property
    def prose(self) -> str:
        """The text without blocks of code; their lines are left empty."""
        return FENCE.sub(lambda m: "\n" * m[0].count("\n"), self.text)

    @property
    def title(self) -> str:
        """The first heading, as plain text."""
        heading = HEADING.search(self.prose)
        return plain(heading[2]) if heading else self.path

    @property
    def first_sentence(self) -> str:
        """The first whole sentence of a paragraph below the title; one with a formula is none."""
        blocks = re.split(r"\n\s*\n", HEADING.sub("", self.prose))
        paragraphs = [block for block in blocks if not NO_PARAGRAPH.match(block)]
        text = " ¶ ".join("…" if block.startswith("    ") else block for block in paragraphs)
        for sentence in SENTENCE_END.split(plain(" ".join(text.split()))):
            if sentence.endswith((".", ":", "?")) and "…" not in sentence:
                return re.sub(":$", ".", sentence.lstrip("¶ "))
        return ""

    def links(self) -> Iterator[str]:
        """Yield the target of each link and picture."""
        text = CODE.sub(lambda m: "`" * len(m[0]), self.prose)
        for pattern in (LINK, SOURCE):
            for match in pattern.finditer(text):
                yield match[1]

    def anchors(self) -> set[str]:
        """What a link to this page may have after `#`."""
        seen: Counter[str] = Counter()
        found = set()
        for match in HEADING.finditer(self.prose):
            slug = slug_of(plain(match[2]))
            found.add(f"{slug}_{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
        return found | set(self.api_names())

    def api_names(self) -> list[str]:
        """The full names of the objects that have an entry on this page."""
        return [name for match in ENTRY.finditer(self.text) for name in names_of(match[1])]

    def expanded(self) -> str:
        """Write out `::: package` as one entry for each name of the package's `__all__`."""
        return ENTRY.sub(lambda m: "\n\n".join(f"::: {n}" for n in names_of(m[1])), self.text)


@dataclass(frozen=True)
class Sources:
    """All pages, the settings of the site, and the folder that they are in."""

    root: Path
    settings: dict[str, Any]
    pages: dict[str, Page]

    @classmethod
    def read(cls, root: Path) -> Sources:
        """Read `mkdocs.yml` and `docs` in a folder."""
        docs = root / "docs"
        pages = {}
        for path in sorted(docs.rglob("*.md")):
            name = path.relative_to(docs).as_posix()
            pages[name] = Page(name, path.read_text(encoding="utf-8"))
        settings = yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))
        return cls(root, settings, pages)

    def nav(self) -> list[tuple[str, str]]:
        """The pages in the order of the menu, each with its section, "" at the top."""
        return list(_walk(self.settings["nav"], ""))

    def public_names(self) -> dict[str, list[str]]:
        """The names of each public package: those that `tessella` has, or that have a page."""
        packages = {name for name in names_of("tessella") if _is_module(name)}
        packages |= {f"tessella.{path[4:-3]}" for path in self.pages if path.startswith("api/")}
        packages -= {"tessella.index", "tessella.tessella"}
        return {package: names_of(package) for package in sorted(packages)}

    def problems(self) -> list[str]:
        """Every link that leads nowhere, unused picture, page not in the menu, missing entry."""
        return [
            *self._problems_of_links(), *self._problems_of_pictures(), *self._problems_of_nav(),
            *self._problems_of_api(),
        ]  # fmt: skip

    def _problems_of_links(self) -> Iterator[str]:
        for page in self.pages.values():
            for link in page.links():
                problem = self._problem_of_link(page, link)
                if problem:
                    yield f"docs/{page.path}: {link}: {problem}"

    def _problem_of_link(self, page: Page, link: str) -> str | None:
        if link.startswith(("https://", "http://", "mailto:")):
            return None
        target, _, anchor = link.partition("#")
        if target.startswith("/"):
            return "is an absolute path; a page opened from a folder cannot follow it"
        path = _normal(PurePosixPath(page.path).parent / target) if target else page.path
        if path not in self.pages:
            exists = (self.root / "docs" / path).is_file()
            return None if exists and not anchor else "there is no such file in docs"
        if anchor and anchor not in self.pages[path].anchors():
            return f"docs/{path} has no such heading"
        return None

    def _problems_of_pictures(self) -> Iterator[str]:
        docs = self.root / "docs"
        used = {_normal(PurePosixPath(page.path).parent / link)
                for page in self.pages.values() for link in page.links()}  # fmt: skip
        for path in sorted((docs / "pictures").rglob("*.*")):
            name = path.relative_to(docs).as_posix()
            if path.suffix in (".png", ".svg") and name not in used:
                yield f"docs/{name}: no page shows it"

    def _problems_of_nav(self) -> Iterator[str]:
        listed = Counter(path for path, _ in self.nav())
        for path in self.pages:
            if path not in listed:
                yield f"docs/{path}: not in the nav of mkdocs.yml"
        for path, times in listed.items():
            if path not in self.pages:
                yield f"mkdocs.yml: the nav lists {path}, which is not in docs"
            elif times > 1:
                yield f"mkdocs.yml: the nav lists {path} {times} times"

    def _problems_of_api(self) -> Iterator[str]:
        for package, names in self.public_names().items():
            path = f"api/{package.removeprefix('tessella.')}.md"
            has = self.pages[path].api_names() if path in self.pages else []
            for name in names:
                if name not in has:
                    yield f"docs/{path}: no entry for {name}; add a line ::: {package}"
        top = self.pages["api/tessella.md"].text if "api/tessella.md" in self.pages else ""
        for name in names_of("tessella"):
            if not _is_module(name) and f"[`{name.removeprefix('tessella.')}`](" not in top:
                yield f"docs/api/tessella.md: no line for {name}"


def names_of(package: str) -> list[str]:
    """Return the full names in the `__all__` of a package, or the name given if it is no package.

    >>> names_of("tessella.schema")[0]
    'tessella.schema.Schema'
    >>> names_of("tessella.loss.base.Loss")
    ['tessella.loss.base.Loss']
    """
    try:
        names = getattr(import_module(package), "__all__", None)
    except ModuleNotFoundError:
        names = None
    return [package] if names is None else [f"{package}.{name}" for name in names]


def plain(markdown: str) -> str:
    """Return Markdown of one line without links, emphasis and code marks.

    >>> plain("The [risk](risk.md#x) of **`k`**")
    'The risk of k'
    """
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    return re.sub(r"\*\*|\*(?=\w)|(?<=[\w.])\*|`", "", text)


def slug_of(heading: str) -> str:
    """Return the anchor of a heading, as Python-Markdown makes it.

    >>> slug_of("NIST's scorer, k = 3")
    'nists-scorer-k-3'
    """
    text = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


def _walk(nav: list[Any], section: str) -> Iterator[tuple[str, str]]:
    for entry in nav:
        for name, below in entry.items() if isinstance(entry, dict) else [("", entry)]:
            if isinstance(below, list):
                yield from _walk(below, name)
            else:
                yield below, section


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _is_module(name: str) -> bool:
    try:
        import_module(name)
    except ModuleNotFoundError:
        return False
    return True
