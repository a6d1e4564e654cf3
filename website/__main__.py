"""`python -m website [FOLDER]`: build the site into FOLDER, `site` by default, and check it."""

from __future__ import annotations

import sys
from pathlib import Path

from .build import ROOT, build
from .pages import problems_of_site
from .sources import Sources


def main() -> int:
    """Return 0, or 1 where a page has a problem, after printing each."""
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"
    sources = Sources.read(ROOT)
    found = sources.problems()
    if not found:
        try:
            build(sources, site)
        except RuntimeError as error:
            found = [str(error)]
        else:
            found = problems_of_site(site, sources.public_names())
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        print(site / "index.html")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
