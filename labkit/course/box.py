"""One submission, one box: own processes, own files, no network, nothing to read but Python and labkit.

What the system enforces is in `sandbox`. Here the box is watched from outside: it gets one cell after the other, and is
ended when it goes beyond its limits.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.course.feeder import Feeder
from labkit.course.sandbox import (
    Limits,
    boxed_command,
    environment,
    isolation,
    limit,
    refuses_calls,
    runner_command,
    seccomp_pipe,
)
from labkit.errors import LabError

#: Seconds that Python and labkit may take to start, on a machine with other work.
_STARTING_S = 30


@dataclass
class BoxResult:
    """Reported outputs by cell index, and how the run ended: "done" or the reason why not."""

    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    ended: str = ""
    seconds: float = 0.0
    log: str = ""


def run_boxed(
    folder: Path,
    notebook: str,
    limits: Limits,
    *,
    stop: Callable[[], bool] = lambda: False,
    hide: Iterable[Path] = (),
) -> BoxResult:
    """Run `folder/notebook` in a box that gets a copy of the rest of `folder`; the cells go in one by one.

    Nothing of the courses in `hide` can be seen there. Never raises for what the submission does.
    """
    began = time.monotonic()
    feeder = Feeder(json.loads((folder / notebook).read_text(encoding="utf-8")))
    with tempfile.TemporaryDirectory(prefix="labkit-box-") as temporary:
        boxed = isolation() == "bubblewrap"
        work = Path(temporary) / "work"
        shutil.copytree(folder, work, ignore=lambda _, names: [n for n in names if n == notebook])
        info_read, info_write = os.pipe()
        filter = seccomp_pipe() if boxed and refuses_calls() else None
        process = subprocess.Popen(
            boxed_command(work, limits, info_write, filter, hide) if boxed else runner_command(limits),
            cwd=None if boxed else work,
            env=environment(boxed, temporary),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[fd for fd in (info_write, filter) if fd is not None] if boxed else (),
            start_new_session=True,
            preexec_fn=functools.partial(limit, limits),
        )
        os.close(info_write)
        if filter is not None:
            os.close(filter)
        try:
            box = _Box(process, info_read if boxed else None, limits, feeder)
            result = box.watch(stop)
        finally:
            os.close(info_read)
            _kill(process)
    result.seconds = time.monotonic() - began
    return result


def take_line(result: BoxResult, line: bytes) -> None:
    """Add one line of the runner's report to `result`; a line that is none is left out."""
    try:
        said = json.loads(line)
        if said.get("done"):
            result.ended = "done"
            return
        outputs = said["outputs"]
        if not isinstance(said["cell"], int) or not all(
            isinstance(o, dict) and "output_type" in o for o in outputs
        ):
            return
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    # The first report of a cell stands: a later one could only be forged.
    result.outputs.setdefault(said["cell"], outputs)
    result.changed += [str(c) for c in said.get("changed") or []]
    if said.get("cut"):
        result.cut.append(said["cell"])


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


class _Box:
    """A running box: reads what it reports and ends it when it goes beyond its limits."""

    def __init__(
        self, process: subprocess.Popen[bytes], info: int | None, limits: Limits, feeder: Feeder
    ) -> None:
        self.process, self.limits, self.feeder = process, limits, feeder
        self._init: int | None = None
        self._namespace = self._find_namespace(info) if info is not None else None
        self.result = BoxResult()
        self._buffer = b""
        self._read = 0
        self._unsent = b""
        self._last_moment = 0.0
        self._selector = selectors.DefaultSelector()

    def _find_namespace(self, info: int) -> str | None:
        selector = selectors.DefaultSelector()
        selector.register(info, selectors.EVENT_READ)
        text = b""
        deadline = time.monotonic() + 20
        while b"}" not in text and time.monotonic() < deadline:
            if selector.select(0.5):
                part = os.read(info, 4096)
                if not part:
                    break
                text += part
        try:
            self._init = int(json.loads(text)["child-pid"])
            return os.readlink(f"/proc/{self._init}/ns/pid")
        except (ValueError, KeyError, TypeError, OSError):
            return None

    def watch(self, stop: Callable[[], bool]) -> BoxResult:
        """Until the box ends or must be ended."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        assert self.process.stdin is not None
        for stream in (self.process.stdout, self.process.stderr):
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ)
        os.set_blocking(self.process.stdin.fileno(), False)
        self._ask()
        deadline = time.monotonic() + self.limits.wall_seconds
        while any(key.events == selectors.EVENT_READ for key in self._selector.get_map().values()):
            for key, _ in self._selector.select(0.1):
                if key.fileobj is self.process.stdin:
                    self._send()
                    continue
                part = os.read(key.fd, 1 << 16)
                if not part:
                    self._selector.unregister(key.fileobj)
                elif key.fileobj is self.process.stdout:
                    self._take(part)
                else:
                    self.result.log = (self.result.log + part.decode("utf-8", "replace"))[-4000:]
            reason = (
                self._excess()
                or ("time" if time.monotonic() > deadline else "")
                or ("stopped" if stop() else "")
                or ("stuck" if time.monotonic() > self._last_moment else "")
            )
            if reason:
                self.result.ended = reason
                return self.result
            if self.result.ended == "done":
                return self.result
        if not self.result.ended:
            self.result.ended = "died"
        return self.result

    def _take(self, part: bytes) -> None:
        self._read += len(part)
        if self._read > self.limits.output_mb * 1_000_000:
            self.result.ended = "output"
            return
        self._buffer += part
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            if self.feeder.is_answer(line):
                take_line(self.result, line)
                self._ask()

    def _ask(self) -> None:
        """Hand in the next cell, or be done."""
        asked = self.feeder.ask()
        if asked is None:
            self.result.ended = "done"
            return
        self._unsent += asked
        starting = 0 if self.result.outputs else _STARTING_S
        self._last_moment = time.monotonic() + self.limits.stuck_seconds + starting
        if self.process.stdin not in self._selector.get_map():
            self._selector.register(self.process.stdin, selectors.EVENT_WRITE)  # type: ignore[arg-type]

    def _send(self) -> None:
        assert self.process.stdin is not None
        try:
            self._unsent = self._unsent[os.write(self.process.stdin.fileno(), self._unsent[: 1 << 16]) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = b""
        if not self._unsent:
            self._selector.unregister(self.process.stdin)

    def _excess(self) -> str:
        if self.result.ended == "output":
            return "output"
        count, memory = self._usage()
        if count > self.limits.processes:
            return "processes"
        if memory > self.limits.memory_mb * 1_000_000:
            return "memory"
        return "files" if self._files() > self.limits.files else ""

    def _files(self) -> int:
        """Files in the box: each takes memory of the kernel, empty ones too."""
        if self._init is None:
            return 0
        count = 0
        for place in ("box", "tmp", "dev/shm"):
            with contextlib.suppress(OSError):
                found = os.statvfs(f"/proc/{self._init}/root/{place}")
                # While the box is being made this is a place outside.
                if found.f_blocks * found.f_frsize <= self.limits.disk_mb * 1_100_000:
                    count += found.f_files - found.f_ffree
        return count

    def _usage(self) -> tuple[int, int]:
        """Processes in the box and their memory in bytes. Root is not bound by the kernel's process limit."""
        count = memory = 0
        page = os.sysconf("SC_PAGE_SIZE")
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                if not self._inside(name):
                    continue
                count += 1
                with open(f"/proc/{name}/statm") as statm:
                    memory += int(statm.read().split()[1]) * page
            except (OSError, ValueError, IndexError):
                continue
        return count, memory

    def _inside(self, pid: str) -> bool:
        if self._namespace is not None:
            return os.readlink(f"/proc/{pid}/ns/pid") == self._namespace
        with open(f"/proc/{pid}/stat") as stat:
            return int(stat.read().rsplit(")", 1)[1].split()[3]) == self.process.pid


def require_posix() -> None:
    """The grader needs a POSIX system. Raises LabError elsewhere."""
    if sys.platform == "win32":
        raise LabError("grading needs Linux or macOS", hint="on Windows use WSL")
