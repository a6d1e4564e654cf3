"""Malformed requests and forms: never a 500, never a wait without end, always words of ours.

A thousand requests, most of them to the app in this process, some through a real server. A seed is
printed with each failure: `TESSELLA_FUZZ=seed` runs that one again.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode

import httpx
import pytest

from tessella.app.history import key_of

from .conftest import Visitor
from .test_serving import enter, served

PLAN = """version = 1
[input]
file = "firms.csv"
[rules]
file = "rules.txt"
[columns]
region = { kind = "nominal", role = "quasi-identifier" }
[[steps]]
method = "protect"
k = 3
[measures]
loss = false
risk = "none"
[output]
file = "r.csv"
"""
TEXTS = [
    "", " ", "0", "1", "-1", "3", "1e400", "9" * 19, "9" * 400, "NaN", "inf", "0x10", "٣", "null",
    "true", "é" * 120, "é" * 190, "𝔘" * 60, "a" * 200, "a" * 195 + ".toml", "é" * 195 + ".toml",
    "a" * 255, "a" * 250 + ".csv", "a" * 5_000, "../x.toml", "..", ".", "/etc/passwd",
    "x\0y.toml", "\r\n", "\u202e.toml", "\ufeff", "\udcff", "%00", "<script>alert(1)</script>",
    "{{ 7 * 7 }}", "{% raw %}", "'", '"', "\\", "[[", "firms.csv", "rules.txt", "p.toml",
    "link.csv", ".hidden.csv", "folder.csv", "odd.csv", "binary.toml", "fifo.csv", "empty.csv",
    "region", "region,costs", "costs", "nothing", "-", "--help", "a,b", ",", "utf-16", "utf-8",
    "base64", "idna", "undefined", "unicode_escape", "latin-1", "no-such", "quasi-identifier",
    "identifier", "weight", "confidential", "continuous", "nominal", "ordinal", "date", "comma",
    "tab", "none", "turnover >= 0", "turnover >=", "if costs > 0: turnover > 0", "(" * 4_000,
    "a == " + "1 + " * 4_000 + "1", "turnover == costs * 2 ** 99999", "region in {}", "`" * 99,
    "costs / 0 > 1", "1 = 2", "not " * 999,
]  # fmt: skip
TOMLS = [
    "k = 1e999", "k = inf", "k = nan", "k = -1", "k = 99999999999999999999", "k = true",
    'k = "3"', "k = []", "k = 1979-05-27", 'file = ""', 'file = "../x.csv"', 'file = "firms.csv"',
    f'file = "{"a" * 300}.csv"', f'file = "{"é" * 200}.csv"', 'file = "x\\u0000y"',
    'file = "nothing.csv"', 'file = "a/b/c.csv"', 'method = "noise"', 'method = "nothing"',
    "seed = -1", "seed = 99999999999999999999999", "version = 99", "[" * 3_000,
    "a = " + "[" * 3_000, "a." * 3_000 + "b = 1", "= 1", "\0", "\ud83d", "[[steps]]", "[steps]",
    "[input]", "options = { sheet = 1 }", 'encoding = "undefined"', 'missing = [""]',
    'strata = ["nothing"]', 'rules = ["costs >= 0"]', 'columns = ["turnover", "turnover"]',
    'manifest = "r.csv"', "[columns.nothing]", 'delimiter = "\\n"', "skip = 99999999999",
    "risk = 3", "time_limit = -1", 'known = ["nothing"]',
]  # fmt: skip
PLACES = ["files", "plans", "plans", "reports", "work", "runs", "waiting", "static", "verify",
          "enter", "nothing", ""]  # fmt: skip
POSTED = [
    "/files/{}/start", "/plans/{}", "/plans/{}/data", "/plans/{}/rules", "/plans/{}/rules/accept",
    "/plans/{}/rules/file", "/plans/{}/recode", "/plans/{}/estimate", "/plans/{}/toml",
    "/plans/{}/move", "/plans/{}/run", "/plans/{}/publish", "/plans/{}/map/take",
    "/work/{}/cancel", "/verify", "/upload", "/bring",
]  # fmt: skip
METHODS = ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "X-ODD"]
TYPES = [
    "application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=utf-16",
    "multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=B",
    "multipart/form-data; boundary=B; charset=no-such",
    "multipart/form-data; boundary=" + "B" * 300, "text/plain", "application/json", "", "\xff",
]  # fmt: skip
HEADERS = [
    ("hx-request", "true"), ("range", "bytes=0-1"), ("range", "bytes=9-1,a"),
    ("range", "bytes=-99999999999"), ("if-range", "\xff"), ("cookie", "a=b; c"),
    ("cookie", '"=;;,='), ("accept-encoding", "x" * 999), ("content-length", "9" * 5_000),
    ("content-length", "-1"), ("content-length", "1.5"), ("content-length", "\xb2"),
    ("origin", "null"), ("sec-fetch-site", "\xff"), ("if-none-match", "*"),
    ("x-forwarded-for", "1.2.3.4"), ("expect", "100-continue"), ("transfer-encoding", "chunked"),
]  # fmt: skip


class Requests:
    """Requests that are wrong in one way or many, by chance."""

    def __init__(self, seed: int, token: str, plan: str) -> None:
        self.chance, self.token = random.Random(seed), token
        self.was = key_of(plan)  # what the page of a plan sends back

    def text(self) -> str:
        chance = self.chance
        if chance.random() < 0.1:
            return "".join(chr(chance.randrange(0x500)) for _ in range(chance.randrange(300)))
        return chance.choice(TEXTS)

    def plan(self) -> str:
        """A plan with lines lost, doubled, replaced, or cut in the middle."""
        chance, lines = self.chance, PLAN.splitlines()
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(lines))
            lines[at : at + 1] = chance.choice(
                [[], [lines[at]] * 2, [chance.choice(TOMLS)], [lines[at], chance.choice(TOMLS)],
                 [lines[at][: chance.randrange(len(lines[at]) + 1)]], [self.text()]]
            )  # fmt: skip
            lines = lines or [""]
        return "\n".join(lines)

    def asked_for(self) -> tuple[str, str]:
        """A method and a path, which mostly fit each other."""
        chance, place = (
            self.chance,
            quote(
                self.text().encode("utf-8", "surrogatepass"), safe=self.chance.choice(["", "/.%"])
            ),
        )
        if chance.random() < 0.7:
            name = chance.choice(["firms.csv", "p.toml", place])
            method, path = "POST", chance.choice(POSTED).format(name)
        else:
            tails = ["", "", "", "/data", "/rules", "/rules/suggestions", "/map", "/toml",
                     "/history", "/explanation", "/run", "/look", "/look/columns", "/look/pair",
                     "/compare", "/publish", "/progress", "/output/release",
                     f"/output/{place}"]  # fmt: skip
            name = chance.choice([place, "p.toml", "firms.csv"])
            method, path = "GET", f"/{chance.choice(PLACES)}/{name}{chance.choice(tails)}"
        return (method if chance.random() < 0.9 else chance.choice(METHODS)), path

    def values(self) -> list[tuple[str, str]]:
        """The fields of all forms, some lost, some senseless, some twice."""
        chance = self.chance
        fields = {
            "k": "3", "seed": "1", "plan": "q.toml", "rules": "turnover >= 0", "rules-file": "",
            "release": chance.choice(["firms.csv", "q.csv"]), "kind-0": "nominal",
            "role-1": "quasi-identifier", "stratum-0": "1", "encoding": "", "missing": "",
            "sheet": "", "header": "",
            "delimiter": "", "original": "firms.csv", "strata": "", "id": "", "manifest": "",
            "was": self.was, "overwrite": "1", "text": self.plan(), "method": "protect:search",
            "missing-0": "-9", "block-0": "1", "strata[]": "region", "dominance": "10",
            "output-file": "r.csv", "to": "undo", "page": "rules", "rule": "costs >= 0",
            "file": "rules.txt", "column": "region", "recoding": "coast: north", "remove": "",
            "run": "00000000", "point": "", "budget": "2", "path": "firms.csv", "masked": "",
            "confirm": "", "suppress": "1", "amount": "0.1", "effort": "quick", "risk": "none",
            "keys": chance.choice(["", "recoding", "local recoding"]), "hierarchy-0": "prefix 0",
            "emptied": "0.1", "l": "2", "t": "0.5",
        }  # fmt: skip
        found = [(name, value) for name, value in fields.items() if chance.random() < 0.9]
        for _ in range(chance.randrange(4)):
            found.append((chance.choice([*fields, self.text()]), self.text()))
        if chance.random() < 0.95:
            found.append(("token", self.token))
        chance.shuffle(found)
        return found

    def body(self) -> tuple[str, bytes]:
        """A type and what is sent: rightly written, of another type, cut, or noise."""
        chance, values = self.chance, self.values()
        kind = chance.choice([TYPES[0]] * 12 + TYPES)
        if kind.startswith("multipart"):
            sent = b"".join(
                b'--B\r\nContent-Disposition: form-data; name="'
                + name.encode("utf-8", "surrogatepass")
                + chance.choice([b'"', b'"; filename="f"', b""])
                + b"\r\n\r\n" + value.encode("utf-8", "surrogatepass") + b"\r\n"
                for name, value in values
            ) + chance.choice([b"--B--\r\n", b""])  # fmt: skip
        else:
            sent = urlencode(values, errors="surrogatepass").encode()
        change = chance.random()
        if change < 0.1:
            sent = sent[: chance.randrange(len(sent) + 1)]
        elif change < 0.15:
            sent = chance.randbytes(chance.randrange(300))
        elif change < 0.17:
            sent += b"&a=1" * 2_000
        return kind, sent

    def query(self) -> str:
        names = [
            "token",
            "encoding",
            "delimiter",
            "sheet",
            "missing",
            "header",
            "decimal",
            "release",
            "point",
            "risk",
            "run",
            "a",
            "x",
            "",
        ]
        pairs = [(self.chance.choice(names), self.text()) for _ in range(self.chance.randrange(4))]
        return urlencode(pairs, errors="surrogatepass")

    def headers(self) -> list[tuple[str, str]]:
        return self.chance.choices(HEADERS, k=self.chance.choice([0] * 8 + [1, 2]))


def ask(app: Any, scope: dict[str, Any], body: bytes, *, cut: bool = False) -> tuple[int, str]:
    """Ask an application as a server does; return status and text. `cut`: the client goes away."""
    told: list[dict[str, Any]] = []
    pieces = [body[: len(body) // 2], body[len(body) // 2 :]]

    async def receive() -> dict[str, Any]:
        if pieces and not (cut and len(pieces) == 1):
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        told.append(message)

    asyncio.run(app(scope, receive, send))
    assert told, "no answer"
    text = b"".join(message.get("body", b"") for message in told)
    return told[0]["status"], text.decode("utf-8", "replace")


@pytest.fixture
def odd(visitor: Visitor) -> Visitor:
    """A visitor of a folder in which not all is as it should be."""
    home = visitor.folder
    (home / "p.toml").write_text(PLAN)
    (home / "odd.csv").write_text("a;b\n1;2,5\n3;4.5;6\n")
    (home / "empty.csv").write_text("")
    (home / "binary.toml").write_bytes(bytes(range(256)))
    (home / "folder.csv").mkdir()
    (home / ".hidden.csv").write_text("a,b\n1,2\n")
    (home / "link.csv").symlink_to(home.parent / "secret.csv")
    (home / "manifest.json").write_text('{"kind": "\\ud800"}')
    if hasattr(os, "mkfifo"):
        os.mkfifo(home / "fifo.csv")
    return visitor


def scope_of(visitor: Visitor, asked: Requests, kind: str, body: bytes) -> dict[str, Any]:
    """What a server would hand over: it has decoded the path, and nothing else."""
    keys = visitor.app.keys
    method, path = asked.asked_for()
    path = (keys.at if asked.chance.random() < 0.97 else "") + path
    headers = {
        "host": "127.0.0.1:8000", "cookie": f"tessella-8000={keys.session}", "content-type": kind,
        "content-length": str(len(body)), **dict(asked.headers()),
    }  # fmt: skip
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
        "method": method, "path": unquote(path), "raw_path": path.encode(),
        "query_string": asked.query().encode(), "root_path": "",
        "headers": [(name.encode(), text.encode("latin-1")) for name, text in headers.items()],
        "client": ("127.0.0.1", 9), "server": ("127.0.0.1", 8000),
    }  # fmt: skip


def send_malformed(visitor: Visitor, seed: int) -> int:
    """Send one request; return its status."""
    asked = Requests(seed, visitor.app.keys.form, (visitor.folder / "p.toml").read_text())
    kind, body = asked.body()
    scope = scope_of(visitor, asked, kind, body)
    about = f"seed {seed}: {scope['method']} {scope['raw_path'][:200]!r} {kind} {body[:300]!r}"
    status, text = ask(visitor.app, scope, body, cut=asked.chance.random() < 0.03)
    assert status < 500, f"{about}\n{text[:3000]}"
    assert "Traceback" not in text, about
    assert status < 400 or scope["method"] == "HEAD" or text.strip(), about
    if (job := visitor.app.jobs.running) is not None:
        job._listener.join()
        assert job.state in ("done", "refused"), f"{about}\n{job.why}"
    return status


def run_seeds(visitor: Visitor, seeds: range) -> None:
    outside = {
        path: path.read_bytes() for path in visitor.folder.parent.iterdir() if path.is_file()
    }
    seen = set()
    for seed in seeds:
        seen.add(send_malformed(visitor, int(os.environ.get("TESSELLA_FUZZ", seed))))
    after = {path: path.read_bytes() for path in visitor.folder.parent.iterdir() if path.is_file()}
    assert after == outside
    assert {200, 400, 403, 404, 405} <= seen or "TESSELLA_FUZZ" in os.environ


def test_malformed_requests(odd: Visitor) -> None:
    run_seeds(odd, range(150))


@pytest.mark.slow
def test_a_thousand_malformed_requests(odd: Visitor) -> None:
    first = random.SystemRandom().randrange(10**6)
    print(f"seeds from {first}")
    run_seeds(odd, range(first, first + 1_000))


# Through a real server, byte by byte: what no client would send.
RAW = [
    b"", b"\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
    b"GET {at}/%ff%00%2e%2e/ HTTP/1.1\r\n{known}\r\n", b"GET http://evil/ HTTP/1.1\r\n{known}\r\n",
    b"GET {at}/ HTTP/1.1\r\n\r\n", b"GET {at}/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET {at}/" + b"a" * 70_000 + b" HTTP/1.1\r\n{known}\r\n",
    b"GET {at}/files/" + b"%C3%A9" * 200 + b" HTTP/1.1\r\n{known}\r\n",
    b"GET {at}/?" + b"a=%ff&" * 5_000 + b" HTTP/1.1\r\n{known}\r\n",
    b"GET {at}/ HTTP/1.1\r\n{known}X: " + b"y" * 200_000 + b"\r\n\r\n",
    b"GET {at}/ HTTP/1.1\r\n{known}Upgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    b"POST {at}/verify HTTP/1.1\r\n{known}Content-Length: 99\r\n\r\nk=3",
    b"POST {at}/verify HTTP/1.1\r\n{known}Content-Length: -5\r\n\r\nk=3",
    b"POST {at}/verify HTTP/1.1\r\n{known}Content-Length: " + b"9" * 5_000 + b"\r\n\r\nk=3",
    b"POST {at}/verify HTTP/1.1\r\n{known}Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST {at}/verify HTTP/1.1\r\n{known}Expect: 100-continue\r\nContent-Length: 3\r\n\r\nk=3",
    b"POST {at}/verify HTTP/1.1\r\n{known}Content-Type: multipart/form-data; boundary=B\r\n"
    b"Content-Length: 9\r\n\r\n--B\r\n\r\n--",
    b"CONNECT {at}/ HTTP/1.1\r\n{known}\r\n", b"\xff\xfe {at}/ HTTP/1.1\r\n{known}\r\n",
]  # fmt: skip


def test_what_no_client_would_send(folder: Path) -> None:
    """The server answers in words or hangs up, and goes on; each connection ends."""
    with served(folder) as (server, address), httpx.Client(timeout=None) as client:
        first = enter(client, address)
        place = httpx.URL(first)
        (cookie,) = client.cookies.jar
        known = (
            f"Host: 127.0.0.1:{place.port}\r\nCookie: {cookie.name}={cookie.value}\r\n"
            "Connection: close\r\n"
        ).encode()
        for raw in RAW:
            at = place.path.rstrip("/").encode()
            sent = raw.replace(b"{at}", at).replace(b"{known}", known)
            with socket.create_connection(("127.0.0.1", place.port)) as line:
                try:
                    line.sendall(sent)
                    line.shutdown(socket.SHUT_WR)
                    answer = b"".join(iter(lambda line=line: line.recv(65_536), b""))
                except ConnectionError:  # it hung up at once
                    answer = b""
            status = answer.split(b" ")[1:2]
            assert not status or status[0] < b"500", (raw[:200], answer[:500])
            assert b"Traceback" not in answer
        assert client.get(first).status_code == 200
        assert server.poll() is None
