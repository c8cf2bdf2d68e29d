"""The answers file beside a notebook: `answers/<bank>.json`. Every attempt is kept; nothing is lost by a crash.

Writes are atomic, and two kernels may write at the same time: each adds its attempt to what is on disk, under
a lock that is waited for at most `LOCK_SECONDS`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from labkit.errors import LabError
from labkit.i18n import t

VERSION = 1
LOCK_SECONDS = 5.0
FOLDER = "answers"


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One submitted answer. `fraction` is absent where the key is not at hand (graded mode)."""

    question: str
    response: Any
    seed: str
    number: int
    fraction: float | None = None


class AnswerFile(msgspec.Struct):
    """What the file holds."""

    bank: str
    attempts: list[Attempt] = []
    version: int = VERSION

    def of(self, question: str) -> list[Attempt]:
        """All attempts at a question, oldest first."""
        return [a for a in self.attempts if a.question == question]

    def last(self, question: str) -> Attempt | None:
        """The attempt that counts."""
        return next((a for a in reversed(self.attempts) if a.question == question), None)


class Answers:
    """The answers to one bank in one folder."""

    def __init__(self, bank: str, folder: Path | None = None) -> None:
        self.bank = bank
        self.path = (folder or Path(FOLDER)) / f"{bank}.json"

    def read(self) -> AnswerFile:
        """What is there. A missing file is empty; a damaged one is put aside and the learner told by `damaged`."""
        try:
            found = msgspec.json.decode(self.path.read_bytes(), type=AnswerFile)
        except (FileNotFoundError, NotADirectoryError):
            return AnswerFile(self.bank)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return AnswerFile(self.bank)
        except OSError as e:
            raise LabError(f"{self.path}: {e.strerror}") from e
        return found

    def is_damaged(self) -> bool:
        """True when there is a file that is not an answers file."""
        try:
            msgspec.json.decode(self.path.read_bytes(), type=AnswerFile)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return True
        except OSError:
            return False
        return False

    def add(self, question: str, response: Any, seed: str, fraction: float | None = None) -> Attempt:
        """Store one more attempt. Raises LabError when the file cannot be written or stays locked."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock():
                if self.is_damaged():
                    self._put_aside()
                content = self.read()
                attempt = Attempt(question, response, seed, len(content.of(question)) + 1, fraction)
                content.attempts.append(attempt)
                self._write(content)
        except OSError as e:
            raise LabError(
                f"{e.filename or self.path}: {e.strerror}", hint=t("the answer was not saved", "答案没有保存")
            ) from e
        return attempt

    def _write(self, content: AnswerFile) -> None:
        text = json.dumps(msgspec.to_builtins(content), ensure_ascii=False, indent=1) + "\n"
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with temporary.open("w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, self.path)

    def _put_aside(self) -> None:
        number = 1
        while (aside := self.path.with_name(f"{self.bank}.damaged-{number}.json")).exists():
            number += 1
        os.replace(self.path, aside)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Held by the process, so a killed kernel leaves none behind. Without fcntl (Windows) writes are atomic only."""
        try:
            import fcntl
        except ImportError:
            yield
            return
        with self.path.with_name(f".{self.bank}.lock").open("w") as handle:
            deadline = time.monotonic() + LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise LabError(
                            t(f"{self.path} is locked by another program", f"{self.path} 被另一个程序锁定"),
                            hint=t(
                                "close the other notebook and answer again",
                                "请关闭另一个 notebook 后重新作答",
                            ),
                        ) from None
                    time.sleep(0.02)
            yield
