"""A process that holds the table and answers questions about it, while pages stay quick.

Reading a file, profiling its columns, confronting rules and estimating loss take from a moment to
minutes, and hold Python's lock: in the server they would stop every page. So one process does all
of it, one question after the other, and keeps the table that was asked about last. It is
`python -m tessella.app.answers`. A page waits a moment for an answer, and else shows that it is
being worked on. An answer is kept: the same question about the same file is answered at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import threading
from collections import OrderedDict, deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ..exceptions import Mistake, TessellaError

KEPT = 64  # answers
LAST_LINES = 20  # of standard error


class AnswerError(TessellaError):
    """What the library refused, in its own words; `mistakes` where there are several."""

    def __init__(self, text: str, mistakes: tuple[Mistake, ...] = ()) -> None:
        super().__init__(text)
        self.mistakes = mistakes


class SupersededError(TessellaError):
    """A question that nobody waits for any more: a later one took its place."""

    def __init__(self) -> None:
        super().__init__("A later question took the place of this one.")


class NotYetError(TessellaError):
    """An answer that takes longer than a page waits."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(what)
        self.key = key


@dataclass
class Question:
    """A question, and the answer that is awaited."""

    verb: str
    given: dict[str, Any]
    channel: str = ""  # a later question of the same channel takes the place of one that waits
    answer: Future[dict[str, Any]] = field(default_factory=Future)


class Desk:
    """Takes questions, hands them to the process, and keeps its answers."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._waiting: deque[Question] = deque()
        self._answers: OrderedDict[str, Question] = OrderedDict()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._short: dict[str, str] = {}  # what a waiting page asks with, and the key it stands for

    def ask(
        self, verb: str, *, stamp: Any = None, channel: str = "", patience: float | None = None,
        **given: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the answer to a question.

        `stamp` is what else it depends on, such as the state of a file. With `patience`, in
        seconds, `NotYetError` is raised where it takes longer; the work goes on.
        """
        key = json.dumps([verb, given, stamp], sort_keys=True, default=str)
        with self._lock:
            question = self._answers.get(key)
            if question is None or question.answer.cancelled():
                question = Question(verb=verb, given=given, channel=channel)
                self._put(key, question)
            self._answers.move_to_end(key)
        try:
            return question.answer.result(patience)
        except TimeoutError:
            short = secrets.token_hex(8)
            with self._lock:
                self._short[short] = key
            raise NotYetError(short, verb) from None
        except AnswerError:
            with self._lock:  # it may be mended outside: ask again the next time
                self._answers.pop(key, None)
            raise

    def is_ready(self, short: str) -> bool:
        """Whether the answer that a page waits for is there, or will never be."""
        key = self._short.get(short)
        question = self._answers.get(key) if key else None
        return question is None or question.answer.done()

    def _put(self, key: str, question: Question) -> None:
        if question.channel:
            for other in [one for one in self._waiting if one.channel == question.channel]:
                self._waiting.remove(other)
                other.answer.set_exception(SupersededError())
                for held in [k for k, one in self._answers.items() if one is other]:
                    del self._answers[held]
        self._answers[key] = question
        while len(self._answers) > KEPT:
            oldest = next(iter(self._answers))
            if not self._answers[oldest].answer.done():
                break
            del self._answers[oldest]
        self._waiting.append(question)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        self._lock.notify_all()

    def prepare(self) -> None:
        """Start the process, so that the first question need not wait for it."""
        with self._lock:
            self._started()

    def stop(self) -> None:
        """End the process; questions that wait are not answered."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
            process = self._process
        _close(process)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            _close(self._process)
            self._key = secrets.token_urlsafe(9)
            self._errors: deque[bytes] = deque(maxlen=LAST_LINES)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tessella.app.answers"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
            )  # fmt: skip
            process, errors = self._process, self._errors
            assert process.stderr is not None
            pipe = process.stderr

            def listen() -> None:
                with contextlib.suppress(OSError, ValueError):
                    errors.extend(pipe)

            threading.Thread(target=listen, daemon=True).start()
        return self._process

    def _work(self) -> None:
        while True:
            with self._lock:
                while not self._waiting and not self._closed:
                    self._lock.wait()
                if self._closed:
                    for left in self._waiting:
                        left.answer.set_exception(AnswerError("The app is being stopped."))
                    self._waiting.clear()
                    return
                question = self._waiting.popleft()
                process = self._started()
            try:
                found = self._exchange(process, question)
            except (OSError, ValueError):
                found = None
            self._settle(question, found, process)

    def _exchange(
        self, process: subprocess.Popen[bytes], question: Question
    ) -> dict[str, Any] | None:
        """Send a question and read lines until its answer; None if the process ended."""
        assert process.stdin is not None
        assert process.stdout is not None
        sent = json.dumps({"key": self._key, "verb": question.verb, "given": question.given})
        process.stdin.write(sent.encode() + b"\n")
        process.stdin.flush()
        for line in process.stdout:
            key, _, text = line.partition(b" ")
            if key == self._key.encode():
                message: dict[str, Any] = json.loads(text)
                return message
        return None

    def _settle(
        self, question: Question, found: dict[str, Any] | None, process: subprocess.Popen[bytes]
    ) -> None:
        if found is not None and "answer" in found:
            question.answer.set_result(found["answer"])
            return
        if found is None:
            process.kill()
            code = process.wait()
            last = self._errors[-1].decode("utf-8", "replace").strip() if self._errors else ""
            text = (
                f"The process that looks at the table ended unexpectedly (code {code}: "
                f"{last or 'no word'}). If the table is large, memory may be short."
            )
            question.answer.set_exception(AnswerError(text))
            return
        mistakes = tuple(Mistake(**one) for one in found.get("mistakes", ()))
        question.answer.set_exception(AnswerError(found["why"], mistakes))


def _close(process: subprocess.Popen[bytes] | None) -> None:
    """End a process, and close its pipes."""
    if process is None:
        return
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(OSError, ValueError):
            if pipe is not None:
                pipe.close()
