"""Work that is under way, in a process of its own, and what came of it.

The process is `python -m tessella.app.jobs`. One JSON value comes in: what to do. Lines go out, the
key of the work and JSON on each: steps, and last the result or the reason why there is none. A line
without the key is not ours, whoever printed it, and is skipped. So the pages stay alive while
kernels run, work can be stopped at any moment, and what was not finished is not written.
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from .. import auditing, planfile, publishing
from .. import explore as exploring
from .. import rules as ruling
from .._clock import TimeLeft
from .._output import plain_data, reserved_stdout, whole_or_nothing
from ..exceptions import TessellaError
from .folder import Folder
from .runs import SUMMARY, Run, Runs

State = Literal["running", "done", "refused", "stopped", "broken"]
PATIENCE = 1.0  # seconds in which work that was asked to stop may stop by itself
LAST_LINES = 20  # of standard error, kept for the reason why work ended unexpectedly
KEPT = 50  # results kept in memory


class BusyError(TessellaError):
    """Work that has to wait for other work."""

    def __init__(self) -> None:
        super().__init__("Other work is under way. Wait until it has ended, or cancel it.")


@dataclass
class Job:
    """One piece of work in a process of its own.

    `asked` is what it was given, `result` what came of it; `why` tells why nothing did. `points`
    are those of a map, as they come; `home` is a folder that is removed where nothing came of it.
    """

    task: str
    asked: dict[str, Any]
    key: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    state: State = "running"
    at: int = 0
    of: int = 1
    step: str = "starting"
    why: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    points: list[dict[str, Any]] = field(default_factory=list)
    home: Path | None = None
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
        process, errors = self._process, deque[bytes](maxlen=LAST_LINES)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        readers = [
            threading.Thread(target=_read, args=[process.stdout, self._receive], daemon=True),
            threading.Thread(target=_read, args=[process.stderr, errors.append], daemon=True),
        ]
        for reader in readers:
            reader.start()
        with contextlib.suppress(OSError), process.stdin as stdin:  # it may have ended already
            stdin.write(json.dumps({"key": self.key, "task": self.task, **self.asked}).encode())
        process.wait()
        for reader in readers:  # they end with the process, unless a child of it has its pipes
            reader.join(PATIENCE)
        if self.state == "running":
            last = errors[-1].decode("utf-8", "replace").strip() if errors else "no word"
            self.why = f"The work ended unexpectedly (code {process.returncode}): {last}"
            self._end("broken")

    def _receive(self, line: bytes) -> None:
        key, _, text = line.partition(b" ")
        if key != self.key.encode() or self.state != "running":
            return
        try:
            message = json.loads(text)
        except ValueError:  # killed within a line
            return
        kind = message["kind"]
        if kind == "step":
            self.at, self.of, self.step = message["at"], max(message["of"], 1), message["name"]
            return
        if kind == "point":
            self.points.append(message["point"])
            return
        self.result, self.why = message.get("result", {}), message.get("why", "")
        self._end(kind)

    def _end(self, state: State) -> None:
        if state != "done" and self.home is not None:
            shutil.rmtree(self.home, ignore_errors=True)
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
                [sys.executable, "-P", "-m", "tessella.app.jobs"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
            )  # fmt: skip
        return self._ready

    @property
    def running(self) -> Job | None:
        """The work that is under way, if any."""
        return next((job for job in self._jobs.values() if job.state == "running"), None)

    def start(self, task: str, *, home: Path | None = None, **asked: Any) -> Job:
        """Start a piece of work; `home` is removed if nothing comes of it."""
        with self._lock:
            if self.running is not None:
                raise BusyError
            job = Job(task=task, asked=asked, home=home)
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


def _read(pipe: IO[bytes], receive: Callable[[bytes], object]) -> None:
    with pipe:
        for line in pipe:
            receive(line)


def _close(process: subprocess.Popen[bytes] | None) -> None:
    """End a process that waits."""
    if process is not None:
        process.kill()
        process.communicate()


# In the process that works.

Tell = Callable[..., None]


def main() -> None:
    """Do what standard input asks for; write steps and the result to standard output."""
    # To cancel is SIGINT, which a process that was started in the background may ignore.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with reserved_stdout():
        out = sys.stdout
        with contextlib.redirect_stdout(sys.stderr):  # what others print is no message
            _work(out)


def _work(out: IO[str]) -> None:
    _ = publishing.publish, auditing.verify  # loaded now, so that work need not wait for it
    given = sys.stdin.read()
    if not given:
        return  # who started us has ended without a word
    asked = json.loads(given)
    key = asked.pop("key")

    def tell(kind: str, **content: Any) -> None:
        # On a line of its own, even if somebody has printed half a line before.
        out.write(f"\n{key} {json.dumps({'kind': kind, **plain_data(content)})}\n")
        out.flush()

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `publish` keeps them for its report and for us
            result = TASKS[asked.pop("task")](Folder(asked.pop("folder")), tell, **asked)
        tell("done", result=result)
    except TessellaError as error:
        tell("refused", why=str(error))
    except KeyboardInterrupt:
        tell("stopped")
    except MemoryError:
        tell("refused", why="There is not enough memory for this table on this machine.")


def _protect(folder: Folder, tell: Tell, *, plan: str, origin: str, run: str) -> dict[str, Any]:
    """Run a plan into the folder of a run, which is there whole when its record is."""
    wanted = planfile.parse_plan(plan, folder=folder.path, origin=origin)
    folder.check_plan(wanted)
    home = folder.own(run)
    for name in wanted.output.files.values():
        folder.own(str(Path(run) / name)).parent.mkdir(parents=True, exist_ok=True)
    step = lambda at, of, name: tell("step", at=at, of=of, name=name)  # noqa: E731
    done = publishing.publish(wanted, folder=home, progress=step)
    with whole_or_nothing(home / SUMMARY, overwrite=True, private=True) as out:
        out.write(json.dumps(done.summary).encode())
    made = Run(
        key=home.name, plan=origin, text=plan, made=time.time(), seconds=done.seconds,
        files={what: wanted.output.files[what] for what in done.paths},
        warnings=tuple(done.warnings), home=home,
    )  # fmt: skip
    runs = Runs(folder)
    runs.record(made)
    runs.prune(origin)
    return {"run": made.key}


def _explore(
    folder: Folder, tell: Tell, *, plan: str, origin: str, budget: str | int | None, k: list[int]
) -> dict[str, Any]:
    """Try many ways to protect the table of a plan, and tell each point as it is there."""
    wanted = planfile.parse_plan(plan, folder=folder.path, origin=origin)
    folder.check_plan(wanted)
    tell("step", at=0, of=1, name="reading")
    source = wanted.read()
    store = folder.state("maps", make=True) / f"{Path(origin).stem}.store"
    left = TimeLeft()

    def found(point: Any) -> None:
        present = isinstance(point.candidate, exploring.PresentPlan)
        tell("point", point={**point.to_dict(), "present": present, **point.names})

    done = exploring.explore_plan(
        wanted, source, k=tuple(k), budget=budget, store=store, random_state=wanted.seed,
        present=True, found=found,
        progress=lambda at, of, name: tell(
            "step", at=at, of=of, name=f"trying {name}{left(at, of)}"
        ),
    )  # fmt: skip
    return {"finished": done.exploration.finished, "notes": list(done.notes)}


def _verify(
    folder: Folder, tell: Tell, *, original: str, release: str, rules: str | None = None,
    manifest: str | None = None, **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """Look at a release again; `options` are k, strata and id of `tessella.verify`."""
    tell("step", at=0, of=1, name="reading, counting, comparing")
    found = auditing.verify(
        folder.existing(original), folder.existing(release),
        rules=ruling.Rules.read(folder.existing(rules)) if rules else None,
        manifest=folder.existing(manifest) if manifest else None, **options,
    )  # fmt: skip
    return found.to_dict() | {"names": {"original": original, "release": release}}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "protect": _protect,
    "explore": _explore,
    "verify": _verify,
}


if __name__ == "__main__":
    main()
