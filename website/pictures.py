"""Pictures that are light or dark as the reader chose.

In the repository a picture has a dark source for readers whose system is dark. The site has a
toggle of its own: it gets both pictures, and the theme hides one by the end of its address. A
drawing gets a second set of colours; a browser uses it where the page is dark.
"""

from __future__ import annotations

import re
from pathlib import Path

from tessella.pictures import figures

TWO_SOURCES = re.compile(
    r'<picture>\s*<source srcset="(?P<dark>[^"]+)" media="\(prefers-color-scheme: dark\)">\s*'
    r'<img src="(?P<light>[^"]+)" alt="(?P<alt>[^"]*)">\s*</picture>'
)
# What a browser loads for a picture that is written in HTML.
SOURCE = re.compile(r'<(?:img|source)\b[^>]*?\bsrc(?:set)?="([^"]+)"')

# For each colour of a drawing the one on dark paper: those of dark.css and drawing.css of reports.
DARK = {
    "#FFFFFF": "#12161b", figures.BLACK: "#e8ebee", "#404040": "#a9b3bd", figures.GREY: "#a9b3bd",
    figures.LIGHT: "#4d5762", figures.BLUE: "#58a9e6", figures.RED: "#f0803c",
    figures.GREEN: "#2fbf94", figures.PINK: "#df93bf", figures.ORANGE: "#e6a820",
    figures.SKY: "#9bd6fb",
}  # fmt: skip


def with_both_themes(markdown: str) -> str:
    """Write a picture with a dark source as two, each for one theme of the site.

    >>> two = '<source srcset="b.png" media="(prefers-color-scheme: dark)">'
    >>> print(with_both_themes(f'<picture>{two}<img src="a.png" alt="A"></picture>'))
    ![A](a.png#only-light)
    ![A](b.png#only-dark)
    """
    both = r"![\g<alt>](\g<light>#only-light)\n![\g<alt>](\g<dark>#only-dark)"
    return TWO_SOURCES.sub(both, markdown)


def with_dark_colours(svg: str) -> str:
    """Give a drawing of `tessella.pictures` a style for dark pages; its elements stay as they are.

    matplotlib writes colours into each element, so that only `!important` changes them. It does not
    write a black fill: what the elements inherit takes its place.
    """
    rules = [f"svg {{ fill: {DARK[figures.BLACK]} }}"]
    for light, dark in DARK.items():
        for what in ("fill", "stroke"):
            selector = f'[style*="{what}: {light.lower()}"]'
            rules.append(f"{selector} {{ {what}: {dark} !important }}")
    style = f"<style>@media (prefers-color-scheme: dark) {{ {' '.join(rules)} }}</style>"
    return svg.replace("</svg>", f"{style}\n</svg>")


def copy_picture(source: str, target: str) -> None:
    """Copy a file; a drawing gets its dark colours."""
    content = Path(source).read_bytes()
    if source.endswith(".svg"):
        content = with_dark_colours(content.decode()).encode()
    Path(target).write_bytes(content)
