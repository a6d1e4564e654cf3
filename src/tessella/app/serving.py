"""The server: on this machine alone, for as long as somebody uses it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
import webbrowser
from collections.abc import Callable

import uvicorn

from ..exceptions import BadOptionError
from .pages import make_app
from .safety import AccessKeys, Guard

__all__ = ["serve"]

HOST = "127.0.0.1"  # and no option for another
LOOKS = 1.0  # seconds between two looks at the clock


def serve(
    folder: str | os.PathLike[str] = ".",
    *,
    port: int = 0,
    idle: float = 60,
    browser: bool = True,
    say: Callable[[str], object] = print,
) -> None:
    """Serve the app until Ctrl-C, or until nobody has used it for some time.

    Parameters
    ----------
    folder : path
        Where the app reads and writes.
    port : int
        Where it listens, on 127.0.0.1; 0 means any that is free.
    idle : float
        Minutes without a request after which it stops.
    browser : bool
        Whether to open the browser.
    say : callable
        Told the address, and why it stops.
    """
    if not idle > 0:
        raise BadOptionError("idle", idle, "a number of minutes above 0")
    keys = AccessKeys()
    with _listen(port) as listening:
        own = listening.getsockname()[1]
        guard = make_app(folder, keys=keys, port=own)
        server = uvicorn.Server(
            uvicorn.Config(
                guard, log_level="error", access_log=False, server_header=False, lifespan="off",
                ws="none", proxy_headers=False, timeout_graceful_shutdown=2,
            )
        )  # fmt: skip
        say(f"http://{HOST}:{own}/enter?token={keys.printed}")
        address = f"http://{HOST}:{own}/enter?token={keys.opening}"
        try:
            with contextlib.suppress(KeyboardInterrupt):  # the usual way to stop it
                asyncio.run(_run(server, guard, listening, idle, address if browser else None, say))
        finally:
            if guard.jobs is not None:
                guard.jobs.stop()
        say("Stopped.")


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise BadOptionError("port", port, f"a port that is free ({reason.lower()})") from None
    return listening


async def _run(
    server: uvicorn.Server,
    guard: Guard,
    listening: socket.socket,
    idle: float,
    address: str | None,
    say: Callable[[str], object],
) -> None:
    watching = asyncio.create_task(_watch(server, guard, idle, address, say))
    try:
        await server.serve(sockets=[listening])
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def _watch(
    server: uvicorn.Server,
    guard: Guard,
    idle: float,
    address: str | None,
    say: Callable[[str], object],
) -> None:
    """Open the browser when the server is there; stop it when nobody uses it and nothing works."""
    while not server.started:
        await asyncio.sleep(0.05)
    if address is not None:
        await asyncio.to_thread(webbrowser.open, address)
    while True:
        await asyncio.sleep(min(LOOKS, 60 * idle / 4))
        working = guard.jobs is not None and guard.jobs.running is not None
        if working:
            guard.last = time.monotonic()
        if time.monotonic() - guard.last > 60 * idle:
            say(f"Not used for {idle:g} minutes.")
            server.should_exit = True
            return
