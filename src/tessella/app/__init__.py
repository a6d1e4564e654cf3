"""The app: from a file to a release in the browser, on this machine alone.

It tells the story of the library and the command line: a file is read, a plan is drafted and
edited, `publish` runs it, `verify` looks again. `serve` runs it; `make_app` builds it.
"""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .serving import make_app as make_app
    from .serving import serve as serve
else:  # or a checker would believe that every name exists
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__)
