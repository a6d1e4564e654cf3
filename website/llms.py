"""The site as plain text: `llms.txt`, an index, and `llms-full.txt`, all pages in one file.

The form is that of llmstxt.org: a title, what it is about in a quote, then sections of links. API
pages are left out of the full text: their contents are docstrings, which an installed package has.
"""

from __future__ import annotations

from .sources import Page, Sources


def index_text(sources: Sources) -> str:
    """Return the title of each page with its first sentence, by section of the menu.

    Pages without a section come first, under one heading, wherever they are in the menu.
    """
    sections: dict[str, list[str]] = {"": []}
    for path, section in sources.nav():
        sections.setdefault(section, []).append(_line(path, sources.pages[path]))
    head = [f"# {sources.settings['site_name']}", "", f"> {sources.settings['site_description']}"]
    for section, lines in sections.items():
        if lines:
            head += ["", f"## {section or 'Pages'}", "", *lines]
    return "\n".join(head) + "\n"


def _line(path: str, page: Page) -> str:
    line = f"- [{page.title}]({path.removesuffix('.md')}.html)"
    return f"{line}: {page.first_sentence}" if page.first_sentence else line


def full_text(sources: Sources) -> str:
    """Return the Markdown of all pages but those of the API, in the order of the menu."""
    return "\n".join(
        f"<!-- {path} -->\n\n{sources.pages[path].text}"
        for path, _ in sources.nav()
        if not path.startswith("api/")
    )
