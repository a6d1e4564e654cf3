"""From the sources to a folder of HTML.

The generator gets a copy of the pages in which every public name is written out; it needs no
hooks. Another generator that reads `mkdocs.yml` can take its place: change `GENERATOR`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .llms import full_text, index_text
from .pictures import copy_picture, with_both_themes
from .sources import Sources

ROOT = Path(__file__).parents[1]
GENERATOR = [sys.executable, "-m", "zensical", "build", "--strict"]
BESIDE = ("gallery", "javascripts", "pictures")  # folders of docs that are copied as they are


def build(sources: Sources, site: Path) -> None:
    """Build the site into a folder, which is replaced whole.

    Raises
    ------
    RuntimeError
        If the generator fails or warns: a warning is an error.
    """
    with tempfile.TemporaryDirectory() as folder:
        stage(sources, Path(folder))
        done = subprocess.run(
            GENERATOR,
            cwd=folder,
            env=os.environ | {"NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"The site was not built.\n{done.stdout}{done.stderr}")
        built = Path(folder) / "site"
        if "site_url" not in sources.settings:
            (built / "sitemap.xml").unlink(missing_ok=True)  # empty: its addresses are whole ones
        (built / "llms.txt").write_text(index_text(sources), encoding="utf-8")
        (built / "llms-full.txt").write_text(full_text(sources), encoding="utf-8")
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(built, site)


def stage(sources: Sources, folder: Path) -> None:
    """Write what the generator reads: settings, pages, pictures, and links to the code."""
    for page in sources.pages.values():
        path = folder / "docs" / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(with_both_themes(page.expanded()), encoding="utf-8")
    for name in BESIDE:
        shutil.copytree(
            sources.root / "docs" / name,
            folder / "docs" / name,
            ignore=shutil.ignore_patterns("*.py", "__pycache__", ".ipynb_checkpoints"),
            copy_function=copy_picture,
        )
    shutil.copy(sources.root / "mkdocs.yml", folder)
    for name in ("src", "website"):
        (folder / name).symlink_to(sources.root / name, target_is_directory=True)
