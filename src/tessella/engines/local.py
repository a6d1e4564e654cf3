"""The local engine: rows in files, jobs done by processes, resumed where they ended.

A job (see `Workshop`) writes one file of rows, in the order of the numbers that they go to, and
notes of where the rows of each number begin. Rows that no later step needs are removed when all
jobs of the step that needed them last are done.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..exceptions import BadFileError, BadTableError
from .base import EMPTY, PIECE, Facts, Job, Moved, addressed, in_pieces, sizes_of
from .work import Workshop, notes_of, read_notes, write_notes, write_whole

FORM = 2  # of the files

Slice = tuple[Path, int]  # a file, and which of its batches


class MovedFiles:
    """Rows in the files of a step."""

    def __init__(self, step: Path, facts: dict[int, Facts]) -> None:
        self.step, self.facts = step, facts

    @cached_property
    def sizes(self) -> dict[int, int]:
        """How many rows go to each number."""
        return sizes_of(self.facts)

    @cached_property
    def places(self) -> dict[int, list[Slice]]:
        """Where the rows of each number are, in the order of the jobs that made them."""
        found: dict[int, list[Slice]] = {}
        for number, own in self.facts.items():
            for at, key in enumerate(own["to_keys"]):
                found.setdefault(int(key), []).append((_rows_of(self.step, number), at))
        return found

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows that go to each number, one after the other, as the numbers count up."""
        for _, slices in sorted(self.places.items()):
            yield read_rows(slices)

    def forget(self) -> None:
        """Remove the rows; the notes stay."""
        for path in self.step.glob("*.rows"):
            path.unlink()


class LocalEngine:
    """Jobs in a folder of this machine: see `Engine`.

    Parameters
    ----------
    folder, task, n_jobs
        See `Workshop`.
    """

    name = "local"

    def __init__(self, folder: Path, task: Mapping[str, Any], *, n_jobs: int = 1) -> None:
        whole = {"form": FORM, "piece": PIECE, "task": task}
        self.workshop = Workshop(folder, whole, n_jobs=n_jobs)

    def close(self) -> None:
        """End the processes, and let others have the folder."""
        self.workshop.close()

    def load(self, tables: Iterable[pa.Table]) -> MovedFiles:
        """Write the pieces of a table; those that are there are compared."""
        step = self.workshop.step("read")
        facts: dict[int, Facts] = {}
        count = 0
        for number, rows in enumerate(in_pieces(tables)):
            content = _content(rows, np.array([0, rows.num_rows]))
            digest = hashlib.blake2b(content, digest_size=16).hexdigest()
            if not notes_of(step, number).exists():
                write_whole(_rows_of(step, number), content)
                write_notes(step, number, {
                    "digest": digest, "to_keys": [number], "to_starts": [0, rows.num_rows],
                })  # fmt: skip
            facts[number] = read_notes(step, number)
            if facts[number]["digest"] != digest:
                self.workshop.refuse("of another table")
            count += rows.num_rows
        if not count:
            raise BadTableError(EMPTY)
        whole, text = step / "table.json", json.dumps({"pieces": len(facts), "records": count})
        if whole.exists() and whole.read_text() != text:
            self.workshop.refuse("of another table")
        write_whole(whole, text.encode())
        return MovedFiles(step, facts)

    def work(
        self, name: str, given: Sequence[Moved], job: Job, *, last: Sequence[Moved] = ()
    ) -> MovedFiles:
        """Do a job for every number that rows of `given` go to."""
        step = self.workshop.step(name)
        there = [own.places for own in given]  # type: ignore[attr-defined]
        numbers = sorted({number for places in there for number in places})
        jobs = [(step, number, [places.get(number, []) for places in there]) for number in numbers]
        notes = self.workshop.run(step, partial(_do, job), jobs)
        for own in last:
            own.forget()  # type: ignore[attr-defined]
        return MovedFiles(step, dict(zip(numbers, notes)))


def _rows_of(step: Path, number: int) -> Path:
    return step / f"{number:06d}.rows"


def _content(rows: pa.Table, starts: Any) -> bytes:
    """Return a file of rows, one batch for each number that they go to."""
    content = io.BytesIO()
    rows = rows.combine_chunks()
    with pa.ipc.new_file(content, rows.schema) as file:
        for first, end in zip(starts[:-1].tolist(), starts[1:].tolist()):
            file.write_batch(rows.slice(first, end - first).to_batches()[0])
    return content.getvalue()


def _do(job: Job, given: tuple[Path, int, list[list[Slice]]]) -> None:
    """Do a job, and write what it makes: rows first, then notes."""
    step, number, slices = given
    rows, facts = addressed(job(number, [read_rows(own) for own in slices]))
    if rows is not None:
        write_whole(_rows_of(step, number), _content(rows, facts["to_starts"]))
    write_notes(step, number, facts)


def read_rows(slices: Sequence[Slice]) -> pa.Table | None:
    """Read rows from files, one after the other."""
    found = []
    for path, at in slices:
        try:
            with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as batches:
                found.append(batches.get_batch(at))
        except (pa.ArrowInvalid, OSError) as error:
            advice = "Remove the folder, and start again"
            raise BadFileError(path, f"the file is damaged ({error})", advice) from None
    return pa.Table.from_batches(found) if found else None
