"""Files in, files out: nothing lost, nothing leaked, nothing guessed in silence.

`read_file` gives a `Source`: a table, what the file says of its columns, and an account of how it
was read. `write_file` writes a table whole or not at all, with no more than the table itself.
"""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .files import read_file as read_file
    from .files import write_file as write_file
    from .source import FORMATS as FORMATS
    from .source import Metadata as Metadata
    from .source import Source as Source
    from .source import Span as Span
    from .source import Variable as Variable
else:  # or a checker would believe that every name exists
    _RENAMED = {
        "Reading": "tessella.io.source.ReadingReport",
        "Statement": "tessella.io.source.Statement",
        "Written": "tessella.io.files.Written",
    }
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__, renamed=_RENAMED)
