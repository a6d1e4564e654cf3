"""What is computed when the package is built: its readme, and machine code of the kernels.

The readme is README.md without links into the repository. A package index shows it apart from the
repository, where `docs/risk.md` leads nowhere. Such links become their text; what is nothing
without them is left out: pictures and the paragraphs that announce them, links in parentheses and
in lists. Once the repository has a public address, they can be completed instead.

A wheel holds machine code where TESSELLA_KERNELS=1 is in the environment, and is then one for this
platform and this version of Python. Without, it is one for all, and numba compiles on first use.
"""

import os
import re
import sys
from importlib.metadata import files
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ABSOLUTE = r"(?:https?:|mailto:|#)"
PICTURE = re.compile(rf"!\[[^\]]*\]\((?!{ABSOLUTE})[^)]*\)")
LINK = re.compile(rf"\[([^\]]*)\]\((?!{ABSOLUTE})[^)]*\)")
ANNOUNCED = re.compile(rf"(?:^[^\n]+\n)*^[^\n]+:\n\n+{PICTURE.pattern}\n", re.MULTILINE)
IN_PARENTHESES = re.compile(rf" \({LINK.pattern}\)")
LISTED = re.compile(rf"^[^\n]*{LINK.pattern} ·\n", re.MULTILINE)
HTML_PICTURE = re.compile(r"<picture>.*?</picture>|<img\b[^>]*>", re.DOTALL)


def without_repository_links(text: str) -> str:
    """Return Markdown in which every link that is left leads somewhere by itself."""
    text = HTML_PICTURE.sub("", text)
    for left_out in (ANNOUNCED, PICTURE, IN_PARENTHESES, LISTED):
        text = left_out.sub("", text)  # before links: a picture may be the text of one
    return re.sub(r"\n{3,}", "\n\n", LINK.sub(r"\1", text))


class Readme(MetadataHookInterface):
    """Set the readme of the project's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read README.md, in a repository or in an sdist."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": without_repository_links(text),
        }


class Kernels(BuildHookInterface[Any]):
    """Put machine code of the kernels into a wheel."""

    asked = os.environ.get("TESSELLA_KERNELS") == "1"

    def dependencies(self) -> list[str]:
        """Return what compiles it."""
        return ["numba>=0.60", "numpy>=2.0", "setuptools>=68"] if self.asked else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile what is not compiled yet, and name the files."""
        if not self.asked or version == "editable":
            return
        sys.path.insert(0, self.root)
        from build_kernels import build, compiled, stale

        build(stale(), note=self.app.display_info)
        build_data["pure_python"], build_data["infer_tag"] = False, True
        for path in compiled():
            inside = path.relative_to(Path(self.root, "src"))
            build_data["force_include"][str(path)] = inside.as_posix()
        # Machine code holds functions of numba's own, whose licence asks to be handed on.
        folder = "tessella/kernels/compiled"
        for one in files("numba") or []:
            if one.name.startswith("LICENSE"):
                build_data["force_include"][str(one.locate())] = f"{folder}/numba-{one.name}"
