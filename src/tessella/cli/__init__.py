"""The command line: `tessella`.

A mistake ends with a sentence, no traceback, and an exit code for scripts: 1 if rules or the audit
refuse, 2 for usage, bad input, or a file that cannot be written.
"""

import gc
import sys
from typing import Annotated

from typer import Argument, Option

from .._lazy import optional
from .._output import reserved_stdout
from ..exceptions import (
    ContradictionError,
    NoCandidateError,
    PlanError,
    RefusedError,
    TessellaError,
    UnreachableError,
)
from . import measuring, suggesting  # noqa: F401  their commands
from .commands import Quiet, app
from .terminal import Command, Reporter, result_stream

__all__ = ["app", "main"]

REFUSALS = (RefusedError, PlanError, ContradictionError, NoCandidateError, UnreachableError)
INTERRUPTED = 130
# Objects that are made between two searches for garbage in cycles. A command makes 200,000 when it
# loads its modules, which all stay: searched every 700, as usual, they took a tenth of its time.
BETWEEN_SEARCHES = 200_000
STOPPED = "Stopped. Unfinished files were not written."


def main() -> None:
    """Run the command line; errors become a sentence and an exit code."""
    gc.set_threshold(BETWEEN_SEARCHES)
    try:
        with reserved_stdout():
            try:
                app()
            finally:
                gc.freeze()  # what is left at the end is not searched for garbage once more
    except TessellaError as error:
        _print_error(str(error))
        sys.exit(1 if isinstance(error, REFUSALS) else 2)
    except BrokenPipeError:  # `tessella ... | head`
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # standard output on a full disk, say
        place = f" ({error.filename})" if error.filename else ""
        _print_error(f"The system refused: {error.strerror or error}{place}. Try another place.")
        sys.exit(2)
    except BaseException as error:
        if not _was_interrupted(error):
            raise
        _print_error(STOPPED, title="")
        sys.exit(INTERRUPTED)


def _was_interrupted(error: BaseException | None) -> bool:
    """Return whether Ctrl-C is behind an error: typer and compiled code turn it into others."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or getattr(error, "code", None) == INTERRUPTED:
            return True
        error = error.__cause__ or error.__context__
    return False


def _print_error(text: str, title: str = "Error: ") -> None:
    from rich.console import Console
    from rich.text import Text

    # Broken by the terminal alone: what is pasted has no line breaks of ours.
    Console(stderr=True).print(Text.assemble((title, "bold red"), text), soft_wrap=True)


@app.command("app")
def _app(
    folder: Annotated[
        str,
        Argument(
            metavar="[FOLDER]", help="The folder with the files; everything is written there."
        ),
    ] = ".",
    port: Annotated[int, Option(min=0, max=65535, help="0 takes any free port.")] = 0,
    idle: Annotated[float, Option(help="Minutes without use after which the app stops.")] = 60,
    browser: Annotated[
        bool, Option("--browser/--no-browser", help="Whether to open the browser.")
    ] = True,
    quiet: Quiet = False,
) -> None:
    """Go from a file to a release in the browser, in one folder and only on this machine."""
    for package in ("starlette", "uvicorn", "python_multipart"):
        optional(package, extra="app", purpose="The app")
    from ..app import serve

    Reporter(quiet).say(
        "The app runs only on this machine; Ctrl-C stops it. Keep this address to yourself, as "
        "it opens the folder:"
    )
    out = result_stream()
    serve(
        folder, port=port, idle=idle, browser=browser,
        say=lambda text: print(text, file=out, flush=True),
    )  # fmt: skip


for _command in app.registered_commands:
    _command.cls = Command
