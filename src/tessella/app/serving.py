"""The server: on this machine alone, who may ask, and what a page may do.

The app listens on the loopback address, where every program and every user of the machine can
reach it, and where any web page can make a browser send requests. So a request is answered only if
it carries the key of this run, names this machine (a name that somebody's DNS points here is not
one), and, if it changes anything, comes from a form of ours. Pages run no script but our own and
load nothing from elsewhere.
"""

import asyncio
import contextlib
import hashlib
import hmac
import os
import secrets
import socket
import time
import webbrowser
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..exceptions import BadOptionError
from .folder import Folder
from .pages import Pages
from .site import Site

HOST = "127.0.0.1"  # and no option for another
LOOKS = 1.0  # seconds between two looks at the clock
LARGEST = 20_000_000  # bytes of a form
LARGEST_FILE = 4_000_000_000  # bytes of a form that brings a file
OPENING = 120.0  # seconds in which the address given to the browser must be used

POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
ENTRY = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>tessella</title>
<link rel="icon" href="data:,"><meta http-equiv="refresh" content="0; url={at}/"></head>
<body><p><a href="{at}/">Go on</a></p></body></html>
"""


@dataclass
class AccessKeys:
    """The keys of one run of the app: drawn from the system's entropy, kept in memory.

    `printed` opens the app as often as one likes, and is shown on the terminal. `opening` opens it
    once, and soon: it is given to the browser on a command line, which others on the machine see.
    """

    printed: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    opening: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    place: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    made: float = field(default_factory=time.monotonic)
    used: bool = False

    @property
    def at(self) -> str:
        """The path under which all pages are.

        Browsers give a cookie of 127.0.0.1 to every port of it, so also to a server of another
        user; but only to paths that begin with the cookie's own, which nobody else knows.
        """
        return f"/{self.place}"

    @property
    def form(self) -> str:
        """What every form carries: nothing that leads back to the key."""
        return hmac.new(self.session.encode(), b"form", hashlib.sha256).hexdigest()

    def opens(self, token: str) -> bool:
        """Tell whether a token in an address opens the app."""
        if _same(token, self.printed):
            return True
        if _same(token, self.opening) and not self.used:
            self.used = True
            return time.monotonic() - self.made < OPENING
        return False

    def is_form(self, token: str) -> bool:
        """Tell whether a form was made by this run."""
        return _same(token, self.form)


def _same(given: str, own: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), own.encode())


class Guard:
    """Stands before the app: answers strangers itself, and puts headers on every answer.

    Names of the machine count only with the port on which the app listens.
    """

    def __init__(self, app: ASGIApp, *, keys: AccessKeys, port: int, site: Site) -> None:
        self.app, self.keys, self.site, self.jobs = app, keys, site, site.jobs
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self.cookie = f"tessella-{port}"  # two apps at once do not take each other's
        self.last = time.monotonic()

    def stop(self) -> None:
        """End all that the app has started."""
        self.jobs.stop()
        self.site.desk.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if (answer := self._answer(scope)) is not None:
            await answer(scope, receive, with_headers)
            return
        path = scope["path"].removeprefix(self.keys.at) or "/"
        inner = {**scope, "path": path, "raw_path": path.encode(), "root_path": ""}
        await self.app(inner, receive, with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer to who may not come in, or who comes in first; None for the others."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return _refuse("This address is not one of this app.", 421)
        if scope["path"] == "/enter" and scope["method"] == "GET":
            return self._enter(scope)
        ours = f"{scope['path']}/".startswith(f"{self.keys.at}/")
        if not ours or not self._known(headers):
            return _refuse(
                "This page is for whoever started the app. Open the address that `tessella app` "
                "printed on the terminal."
            )
        looking = scope["method"] in ("GET", "HEAD")
        followed = looking and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not followed:
            return _refuse("This request comes from another page.")
        if not looking:
            # Our pages send no referrer, so that browsers call their origin "null".
            origins = {"null", *(f"http://{host}" for host in self.hosts)}
            if headers.get("origin", "null").lower() not in origins:
                return _refuse("This request comes from another page.")
            length = headers.get("content-length", "")
            brings = scope["path"] == f"{self.keys.at}/upload"
            most = LARGEST_FILE if brings else LARGEST
            if not length.isdecimal() or len(length) > 20 or int(length) > most:
                return _refuse(f"A form has at most {most:,} bytes.", 413)
        self.last = time.monotonic()
        return None

    def _enter(self, scope: Scope) -> Response:
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        if not self.keys.opens(tokens[0]):
            return _refuse(
                "This address was used already, or is not of this run. Open the one that "
                "`tessella app` printed on the terminal."
            )
        self.last = time.monotonic()
        # A page and not a redirect: only what our own page asks for carries a strict cookie.
        answer = HTMLResponse(ENTRY.replace("{at}", self.keys.at))
        answer.set_cookie(
            self.cookie, self.keys.session, httponly=True, samesite="strict", path=self.keys.at
        )
        return answer

    def _known(self, headers: Headers) -> bool:
        jar: SimpleCookie = SimpleCookie()
        try:
            jar.load(headers.get("cookie", ""))
        except CookieError:
            return False
        held = jar.get(self.cookie)
        return held is not None and _same(held.value, self.keys.session)


def _refuse(why: str, code: int = 403) -> Response:
    return PlainTextResponse(f"{why}\n", status_code=code)


def make_app(
    folder: str | os.PathLike[str], *, keys: AccessKeys | None = None, port: int = 8000
) -> Guard:
    """Build the app for a folder.

    Parameters
    ----------
    folder : path
        Where tables, rules and plans are read, and releases are written.
    keys : AccessKeys, optional
        The keys of this run.
    port : int
        The port on which it will listen: requests that name another are refused.

    Returns
    -------
    Guard
        An ASGI application; its `jobs` is the work under way, and `stop` ends it.
    """
    keys = keys or AccessKeys()
    pages = Pages(Folder(folder), keys)
    return Guard(pages.build(), keys=keys, port=port, site=pages.site)


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
                watching = _watch(server, guard, idle, address if browser else None, say)
                asyncio.run(_run(server, listening, watching))
        finally:
            guard.stop()
        say("Stopped.")


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen()  # who has the address may come at once: the queue waits for the server
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise BadOptionError("port", port, f"a port that is free ({reason.lower()})") from None
    return listening


async def _run(
    server: uvicorn.Server, listening: socket.socket, watch: Coroutine[Any, Any, None]
) -> None:
    watching = asyncio.create_task(watch)
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
        if guard.jobs.running is not None:
            guard.last = time.monotonic()
        if time.monotonic() - guard.last > 60 * idle:
            say(f"Not used for {idle:g} minutes.")
            server.should_exit = True
            return
