"""What grading remembers: one file a submission, so that a killed run can go on, and an audit trail."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from labkit.course.outputs import encodable
from labkit.errors import LabError

GRADED, FAILED = "graded", "failed"


class Record(msgspec.Struct, omit_defaults=True):
    """The outcome for one submission. Failed is not zero: it has a reason and no marks."""

    student: str
    module: str
    status: str
    language: str = "en"
    reason: str = ""
    score: float = 0.0
    most: float = 0.0
    late: float = 0.0
    marks: dict[str, float | None] = {}
    maxima: dict[str, float] = {}
    notes: dict[str, str] = {}
    findings: list[dict[str, str]] = []
    changed: list[str] = []
    ended: str = ""
    submission: str = ""
    source: str = ""
    version: str = ""
    box: str = ""
    before: dict[str, Any] = {}


class Ledger:
    """The records of one course, under `.labkit/grading/`."""

    def __init__(self, root: Path) -> None:
        self.folder = root / ".labkit" / "grading"
        self._audit = root / ".labkit" / "audit.jsonl"

    def path(self, module: str, student: str) -> Path:
        """Where a record is."""
        return self.folder / module / f"{student}.json"

    def read(self, module: str, student: str) -> Record | None:
        """The record; None when there is none that can be read."""
        try:
            return msgspec.json.decode(self.path(module, student).read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError):
            return None

    def all(self, module: str) -> list[Record]:
        """All records of a module, by student."""
        found = [self.read(module, p.stem) for p in sorted((self.folder / module).glob("*.json"))]
        return [r for r in found if r is not None]

    def write(self, record: Record) -> None:
        """All or nothing."""
        path = self.path(record.module, record.student)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        facts = encodable(msgspec.to_builtins(record))
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=1) + b"\n")
        os.replace(temporary, path)

    def audit(self, what: str, **facts: Any) -> None:
        """Add a line to the audit trail: what was done, when, with which facts."""
        self._audit.parent.mkdir(parents=True, exist_ok=True)
        line = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "what": what, **facts}
        with self._audit.open("a", encoding="utf-8") as out:
            out.write(json.dumps(encodable(line), ensure_ascii=False) + "\n")

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """One grading run a course. Raises LabError when another one is going on; a killed one leaves no lock."""
        import fcntl

        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LabError(
                    "another grading run is at work in this course",
                    hint="wait for it to end, then run with --resume",
                ) from None
            yield


def hash_of(*paths: Path) -> str:
    """A hash of files and folders: names and contents, in order."""
    digest = hashlib.sha256()
    for path in paths:
        files = (
            [path]
            if path.is_file()
            else sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink())
        )
        for file in files:
            name = str(file.relative_to(path) if file != path else file.name)
            digest.update(name.encode("utf-8", "surrogateescape"))
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:20]
