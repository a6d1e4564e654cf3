"""Who may ask, and what a page may do.

The app listens on the loopback address, where every program and every user of the machine can
reach it, and where any web page can make a browser send requests. So a request is answered only if
it carries the key of this run, names this machine (a name that somebody's DNS points here is not
one), and, if it changes anything, comes from a form of ours. Pages run no script but our own and
load nothing from elsewhere.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .jobs import Jobs

__all__ = ["POLICY", "REPORT_POLICY", "AccessKeys", "Guard"]

LARGEST = 20_000_000  # bytes of a form
OPENING = 120.0  # seconds in which the address given to the browser must be used

POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
# A report is a whole page of its own: it may have its style and its pictures, and do nothing.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
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

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    keys : AccessKeys
        The keys of this run.
    port : int
        The port on which the app listens; names of the machine count with it only.
    """

    def __init__(self, app: ASGIApp, *, keys: AccessKeys, port: int) -> None:
        self.app, self.keys, self.port = app, keys, port
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self.cookie = f"tessella-{port}"  # two apps at once do not take each other's
        self.last = time.monotonic()
        self.jobs: Jobs | None = None

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
            if not length.isdecimal() or int(length) > LARGEST:
                return _refuse(f"A form has at most {LARGEST:,} bytes.", 413)
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
