"""The built HTML, read with an HTML parser: what any theme must keep.

- Nothing is loaded from another host: no script, style, font, picture or frame.
- Every link between pages leads to a file, and its anchor to an element with that id. Links are
  relative and name files, so that pages open from a folder, without a server.
- Every page can be reached from the first one, and every public name has an entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {  # attributes whose address a browser loads as it shows the page
    "audio": ("src",), "embed": ("src",), "iframe": ("src",), "img": ("src", "srcset"),
    "input": ("src",), "link": ("href",), "object": ("data",), "script": ("src",),
    "source": ("src", "srcset"), "track": ("src",), "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}  # fmt: skip
NOT_LOADED = {"canonical", "next", "prev", "alternate", "author", "license"}  # of <link rel>
OUTSIDE = re.compile(r"(?:url\(|@import)\s*[\"']?\s*(?:https?:)?//[^\"')\s]*")
SERVED_ONLY = "404.html"  # a server shows it at any address, so its links are absolute


@dataclass
class Html(HTMLParser):
    """What a page loads, where it links to, and what can be linked to in it."""

    loaded: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    styles: str = ""
    in_style: bool = False

    def __post_init__(self) -> None:
        """Start the parser."""
        super().__init__()

    @classmethod
    def of(cls, text: str) -> Html:
        """Parse the text of a page."""
        parser = cls()
        parser.feed(text)
        parser.close()
        return parser

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of addresses and ids."""
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self.styles += given.get("style", "") + "\n"
        self.in_style = tag == "style"
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and set(given.get("rel", "").split()) & NOT_LOADED:
            return
        for name in LOADED.get(tag, ()):
            for part in given.get(name, "").split(",") if name == "srcset" else [given.get(name)]:
                if part and part.strip():
                    self.loaded.append(part.split()[0])

    def handle_endtag(self, tag: str) -> None:
        """Leave a style."""
        self.in_style = self.in_style and tag != "style"

    def handle_data(self, data: str) -> None:
        """Collect inline styles."""
        if self.in_style:
            self.styles += data + "\n"


def problems_of_site(site: Path, names: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what is wrong with a built site; `names` are the public names of each package."""
    pages = {
        path.relative_to(site).as_posix(): Html.of(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
    }
    found = []
    for path, page in pages.items():
        found += [f"{path}: {p}" for p in _problems_of_page(site, path, page, pages)]
    for style in sorted(site.rglob("*.css")):
        for outside in OUTSIDE.findall(style.read_text(encoding="utf-8")):
            found.append(f"{style.relative_to(site)}: loads {outside}")
    for path in sorted(set(pages) - _reached(pages) - {SERVED_ONLY}):
        found.append(f"{path}: no page that can be reached from index.html links to it")
    for package, members in names.items():
        path = f"api/{package.removeprefix('tessella.')}.html"
        ids = pages[path].ids if path in pages else set()
        found += [f"{path}: no entry for {name}" for name in members if name not in ids]
    return found


def _problems_of_page(site: Path, path: str, page: Html, pages: dict[str, Html]) -> Iterator[str]:
    for address in page.loaded:
        target = urlsplit(address)
        if target.scheme == "data":
            continue
        if target.scheme or target.netloc:
            yield f"loads {address}"
        elif path != SERVED_ONLY and target.path and not _file(path, address, site).is_file():
            yield f"loads {address}, which does not exist"
    for outside in OUTSIDE.findall(page.styles):
        yield f"loads {outside}"
    if path == SERVED_ONLY:
        return
    for address in page.links:
        target = urlsplit(address)
        if target.scheme or target.netloc:
            continue
        file = _file(path, address, site)
        if target.path and not file.is_file():
            yield f"links to {address}, which is not a file"
        elif target.fragment and file.suffix == ".html":
            name = file.relative_to(site.resolve()).as_posix()
            if unquote(target.fragment) not in pages[name].ids:
                yield f"links to {address}, which has no such anchor"


def _file(path: str, address: str, site: Path) -> Path:
    target = unquote(urlsplit(address).path)
    here = site.resolve() / path
    return (here.parent / target).resolve() if target else here


def _reached(pages: dict[str, Html]) -> set[str]:
    base = Path("/site")
    waiting, seen = ["index.html"], {"index.html"}
    while waiting:
        path = waiting.pop()
        for address in pages[path].links if path in pages else ():
            target = urlsplit(address)
            if target.scheme or target.netloc or not target.path:
                continue
            file = _file(path, address, base)
            name = file.relative_to(base).as_posix() if file.is_relative_to(base) else ""
            if name in pages and name not in seen:
                seen.add(name)
                waiting.append(name)
    return seen
