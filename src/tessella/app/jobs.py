"""Work that is under way, and what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from ..exceptions import TessellaError

__all__ = ["BusyError", "Job", "Jobs"]

State = Literal["running", "done", "refused", "stopped", "broken"]
PATIENCE = 3.0  # seconds in which work that was asked to stop may stop by itself
KEPT = 50  # results kept in memory


class BusyError(TessellaError):
    """Work that has to wait for other work."""

    def __init__(self) -> None:
        super().__init__("Other work is under way. Wait until it has ended, or cancel it.")


@dataclass
class Job:
    """One piece of work in a process of its own.

    `asked` is what it was given, `result` what came of it; `why` tells why nothing did.
    """

    task: str
    asked: dict[str, Any]
    key: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    state: State = "running"
    at: int = 0
    of: int = 1
    step: str = "starting; the first time, kernels are compiled, once"
    why: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None

    @property
    def seconds(self) -> float:
        """How long it has been working, or has worked."""
        return (self.ended or time.monotonic()) - self.began

    def start(self, process: subprocess.Popen[bytes]) -> None:
        """Give a process the work, and start a thread that listens to it."""
        self._process = process
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def stop(self) -> None:
        """Ask the work to stop, and end it if it does not."""
        if self.state != "running":
            return
        process = self._process
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
        if process.poll() is None:
            process.kill()
        self._listener.join(PATIENCE)
        if self.state in ("running", "broken"):
            self._end("stopped")

    def _listen(self) -> None:
        process = self._process
        told, said, aside = process.stdin, process.stdout, process.stderr
        if told is None or said is None or aside is None:
            return  # never: they are pipes
        noise: list[bytes] = []
        drain = threading.Thread(target=lambda: noise.extend(aside), daemon=True)
        drain.start()
        with contextlib.suppress(OSError):  # it ended before it was told
            told.write(json.dumps({"task": self.task, **self.asked}).encode())
            told.close()
        for line in said:
            self._hear(json.loads(line))
        process.wait()
        drain.join(PATIENCE)
        said.close()
        aside.close()
        if self.state == "running":
            last = noise[-1].decode("utf-8", "replace").strip() if noise else "no word"
            self.why = f"The work ended unexpectedly (code {process.returncode}): {last}"
            self._end("broken")

    def _hear(self, said: dict[str, Any]) -> None:
        kind = said["kind"]
        if kind == "step":
            self.at, self.of, self.step = said["at"], max(said["of"], 1), said["name"]
        elif kind == "done":
            self.result = said["result"]
            self._end("done")
        elif kind == "refused":
            self.why = said["why"]
            self._end("refused")
        elif kind == "stopped":
            self._end("stopped")

    def _end(self, state: State) -> None:
        self.ended = time.monotonic()
        self.state = state


class Jobs:
    """All work of one run of the app: one piece at a time, as each may need the whole machine."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._ready: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Start a process that waits for work, so that work need not wait for a process."""
        with self._lock:
            self._prepared()

    def _prepared(self) -> subprocess.Popen[bytes]:
        if self._ready is None or self._ready.poll() is not None:
            _close(self._ready)
            # -P: a file such as numpy.py in the folder of the data must not be taken for the
            # package. Without an own session Ctrl-C would come twice.
            self._ready = subprocess.Popen(
                [sys.executable, "-P", "-m", "tessella.app.working"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
            )
        return self._ready

    @property
    def running(self) -> Job | None:
        """The work that is under way, if any."""
        return next((job for job in self._jobs.values() if job.state == "running"), None)

    def start(self, task: str, **asked: Any) -> Job:
        """Start a piece of work."""
        with self._lock:
            if self.running is not None:
                raise BusyError
            job = Job(task=task, asked=asked)
            job.start(self._prepared())
            self._ready = None
            self._jobs[job.key] = job
            while len(self._jobs) > KEPT:
                del self._jobs[next(iter(self._jobs))]
        return job

    def get(self, key: str) -> Job | None:
        """Return the work of this key."""
        return self._jobs.get(key)

    def latest(self) -> list[Job]:
        """List all work, the latest first."""
        return list(reversed(self._jobs.values()))

    def stop(self) -> None:
        """End what is under way, and what waits."""
        if (job := self.running) is not None:
            job.stop()
        with self._lock:
            _close(self._ready)
            self._ready = None


def _close(process: subprocess.Popen[bytes] | None) -> None:
    """End a process that waits."""
    if process is not None:
        process.kill()
        process.communicate()
