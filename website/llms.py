"""The site as plain text: `llms.txt`, an index, and `llms-full.txt`, all pages in one file.

The form is that of llmstxt.org: a title, what it is about in a quote, then sections of links. API
pages are left out of the full text: their contents are docstrings, which an installed package has.
"""

from __future__ import annotations

from .sources import Sources


def index_text(sources: Sources) -> str:
    """Return the title of each page with its first sentence, in the order of the menu."""
    lines = [f"# {sources.settings['site_name']}", "", f"> {sources.settings['site_description']}"]
    section = None
    for path, under in sources.nav():
        if under != section:
            lines += ["", f"## {under or 'Pages'}", ""]
            section = under
        page = sources.pages[path]
        line = f"- [{page.title}]({path.removesuffix('.md')}.html)"
        lines.append(f"{line}: {page.first_sentence}" if page.first_sentence else line)
    return "\n".join(lines) + "\n"


def full_text(sources: Sources) -> str:
    """Return the Markdown of all pages but those of the API, in the order of the menu."""
    return "\n".join(
        f"<!-- {path} -->\n\n{sources.pages[path].text}"
        for path, _ in sources.nav()
        if not path.startswith("api/")
    )
