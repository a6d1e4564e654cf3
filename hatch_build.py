"""The readme of the built package: README.md without links into the repository.

A package index shows it apart from the repository, where `docs/risk.md` leads nowhere. Such links
become their text, such pictures are left out. Once the repository has a public address, they can
be completed instead.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

ABSOLUTE = r"(?:https?:|mailto:|#)"
PICTURE = re.compile(rf"!\[[^\]]*\]\((?!{ABSOLUTE})[^)]*\)")
LINK = re.compile(rf"\[([^\]]*)\]\((?!{ABSOLUTE})[^)]*\)")
HTML_PICTURE = re.compile(r"<picture>.*?</picture>|<img\b[^>]*>", re.DOTALL)


def without_repository_links(text: str) -> str:
    """Return Markdown in which every link that is left leads somewhere by itself."""
    text = HTML_PICTURE.sub("", text)
    text = PICTURE.sub("", text)  # first: a picture may stand in the text of a link
    return LINK.sub(r"\1", text)


class Readme(MetadataHookInterface):
    """Set the readme of the project's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read README.md, in a repository or in an sdist."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": without_repository_links(text),
        }
