"""Child processes of the harness: free ports, log files, readiness with a time limit, ending by pid."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class HarnessError(Exception):
    """A real program did not start, or a condition did not come true in time."""


def free_port() -> int:
    """A loopback TCP port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(predicate: Callable[[], T], seconds: float, what: str = "", every: float = 0.05) -> T:
    """First true value of ``predicate``, asked again and again for at most ``seconds``.

    Raises HarnessError, naming ``what``, when the time is over. Exceptions of the predicate are passed on.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            raise HarnessError(f"not within {seconds} s: {what or predicate}")
        time.sleep(every)


class Process:
    """One started program with its output in a log file."""

    def __init__(self, command: Sequence[str], log_path: Path, env: dict[str, str] | None = None) -> None:
        self.log_path = log_path
        self.name = Path(command[0]).name
        with log_path.open("ab") as log:
            self._child = subprocess.Popen(
                list(command),
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=env,
            )

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._child.pid

    def log(self) -> str:
        """Everything the program has written so far."""
        return self.log_path.read_text(errors="replace")

    def wait_ready(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until ``ready()``; HarnessError with the log's end when the program dies or takes too long."""

        def settled() -> bool:
            return self._child.poll() is not None or _quietly(ready)

        try:
            wait_for(settled, seconds, f"{self.name} ready")
        except HarnessError as error:
            raise HarnessError(f"{error}\n{self._tail()}") from None
        if self._child.poll() is not None:
            raise HarnessError(f"{self.name} ended with status {self._child.returncode}\n{self._tail()}")

    def alive(self) -> bool:
        """Whether the program still runs."""
        return self._child.poll() is None

    def stop(self, seconds: float = 5) -> None:
        """Terminate the child, kill it after ``seconds``; nothing happens when it has already ended."""
        if self._child.poll() is None:
            self._child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(seconds)
        if self._child.poll() is None:
            self._child.kill()
            self._child.wait()

    def _tail(self) -> str:
        return f"--- end of {self.log_path}\n" + "\n".join(self.log().splitlines()[-25:])


def _quietly(ready: Callable[[], bool]) -> bool:
    try:
        return ready()
    except OSError:
        return False
