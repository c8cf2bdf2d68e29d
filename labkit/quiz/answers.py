"""The answers file beside a notebook: `answers/<bank>.json`. Every attempt is kept; nothing is lost by a crash.

Writes are atomic, and two kernels may write at the same time: each adds its attempt to what is on disk, under
a lock that is waited for at most `LOCK_SECONDS`.
"""

from __future__ import annotations

import json
import math
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
        #: Where a damaged file was put by the last `add`.
        self.aside: Path | None = None

    def read(self) -> AnswerFile:
        """What is there. A missing file is empty; so is a damaged one, see `is_damaged`. Raises LabError."""
        try:
            found = msgspec.json.decode(self.path.read_bytes(), type=AnswerFile)
        except (FileNotFoundError, NotADirectoryError):
            return AnswerFile(self.bank)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return AnswerFile(self.bank)
        except OSError as e:
            raise LabError(
                t(f"{self.path} cannot be read: {e.strerror}", f"无法读取 {self.path}：{e.strerror}"),
                hint=t("make it readable, or move it away", "请改为可读，或把它移走"),
            ) from e
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
        """Store one more attempt; of the response, what JSON can hold. A damaged file is kept as `aside`.

        Raises LabError when the file cannot be written or stays locked.
        """
        self.aside = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock():
                if self.is_damaged():
                    self._put_aside()
                content = self.read()
                number = len(content.of(question)) + 1
                attempt = Attempt(question, storable(response), seed, number, fraction)
                content.attempts.append(attempt)
                self._write(content)
        except OSError as e:
            path = e.filename or self.path
            raise LabError(
                t(f"{path} cannot be written: {e.strerror}", f"无法写入 {path}：{e.strerror}"),
                hint=t("the answer was not saved", "答案没有保存"),
            ) from e
        return attempt

    def _write(self, content: AnswerFile) -> None:
        text = json.dumps(msgspec.to_builtins(content), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with temporary.open("w", encoding="utf-8") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            os.replace(temporary, self.path)
        except OSError:
            # A full disk: what is stored stays, the half of a file goes.
            temporary.unlink(missing_ok=True)
            raise

    def _put_aside(self) -> None:
        number = 1
        while (aside := self.path.with_name(f"{self.bank}.damaged-{number}.json")).exists():
            number += 1
        os.replace(self.path, aside)
        self.aside = aside

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


def storable(value: Any) -> Any:
    """A response as JSON can hold it: anything else, a number that is none or half a character, becomes text.

    One answer that could not be read back would take all others of the file with it.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {storable(str(k)): storable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [storable(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(str(storable(v)) for v in value)
    return storable(str(value))
