"""The server: on this machine alone, and gone when it is not used."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tessella.app.serving import serve
from tessella.exceptions import BadOptionError


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `tessella app`; give the process and the address that it printed."""
    command = [sys.executable, "-m", "tessella", "app", str(folder), "--no-browser", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            yield server, server.stdout.readline().strip()
        finally:
            server.kill()


def test_an_address_of_this_machine_with_a_key_and_an_end(folder):
    with served(folder) as (server, address):
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/enter\?token=[\w-]{43}", address)
        assert found, address
        with httpx.Client() as client:
            answer = client.get(enter(client, address))
            assert "firms.csv" in answer.text
            assert "server" not in answer.headers
        assert httpx.get(f"http://127.0.0.1:{found[1]}/").status_code == 403
        for other in others():
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((other, int(found[1])), 2).close()
        server.send_signal(signal.SIGINT)
        said = server.communicate()
        assert server.returncode == 0
        assert "Stopped." in said[0]
        assert "Traceback" not in said[1]
        assert "token" not in said[1]


def enter(client: httpx.Client, address: str) -> str:
    """Come in as a browser does; return the address of the first page."""
    path = re.findall(r'href="(/[^"]+)"', client.get(address).text)[-1]
    return address.partition("/enter")[0] + path


def others() -> list[str]:
    """Addresses of this machine that other machines may reach."""
    known = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    return sorted({str(one[4][0]) for one in known if not str(one[4][0]).startswith("127.")})


def test_it_stops_when_nobody_uses_it(folder):
    with served(folder, "--idle", "0.005") as (server, _):
        said = server.communicate()
        assert server.returncode == 0
        assert "Not used for 0.005 minutes" in said[0]


@pytest.mark.skipif(os.name != "posix", reason="looks for processes as POSIX does")
def test_the_work_ends_with_the_server(folder):
    with served(folder) as (server, address), httpx.Client() as client:
        client.get(f"{enter(client, address)}verify")  # a process waits for work
        waiting = children(server.pid)
        assert waiting
        server.send_signal(signal.SIGINT)
        server.communicate()
        for pid in waiting:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


def children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        pytest.skip("the system does not list the children of a process")
    tasks = Path(f"/proc/{pid}/task")
    text = " ".join((task / "children").read_text() for task in tasks.iterdir())
    return [int(one) for one in text.split()]


def test_a_port_that_is_taken(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BadOptionError, match="a port that is free"):
            serve(folder, port=taken.getsockname()[1], browser=False)


def test_idle_must_be_a_time(folder):
    with pytest.raises(BadOptionError, match="minutes"):
        serve(folder, idle=0, browser=False)
