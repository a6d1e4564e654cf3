"""Templates are compiled once: Jinja's bytecode is kept beside them, as Python keeps its own.

Compiling the templates of a report takes as long as filling them. Jinja compares a hash of the
template and the versions of Python and Jinja before it takes what was kept.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from .._output import whole_or_nothing
from ..exceptions import BadFileError


class BytecodeBeside(BytecodeCache):
    """Keep bytecode in a folder, where it can be written and Python keeps its own as well.

    `state` stands for what else decides about the code, such as the options of the environment.
    """

    def __init__(self, folder: Path, state: int) -> None:
        self.folder, self.state = folder, state

    def _path(self, bucket: Bucket) -> Path:
        return self.folder / f"{bucket.key}-{self.state:x}.jinja"

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what was kept of a template, if it is there."""
        with suppress(OSError), self._path(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the bytecode of a template, whole or not at all."""
        if sys.dont_write_bytecode:
            return
        with suppress(OSError, BadFileError):  # where nothing can be kept, it is compiled again
            self.folder.mkdir(exist_ok=True)
            with whole_or_nothing(self._path(bucket), overwrite=True) as file:
                bucket.write_bytecode(file)
