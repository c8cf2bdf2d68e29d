"""What a submission's process gets from the system: namespaces, files, limits, environment.

With bubblewrap the box has its own user, mount, process and network namespaces; its writable folders are in
memory and bounded, everything else is read-only, and what no notebook needs of the kernel is refused (`seccomp`).
Where bubblewrap is missing or not allowed, limits alone apply, and `isolation()` says so: then a submission
could read the course's files.
"""

from __future__ import annotations

import functools
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from labkit.course import seccomp

#: What a course folder holds that no submission may read, wherever the folder is.
_OF_COURSES = (
    "source",
    "release*",
    "submitted",
    "autograded",
    "feedback",
    "reports",
    "exchange",
    "quizzes",
    ".labkit",
    "course.json",
    "gradebook.db*",
)
#: nbgrader's exchange where nothing else is configured.
_DEFAULT_EXCHANGE = Path("/usr/local/share/nbgrader/exchange")
_SYSTEM = (
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/fonts",
)


@dataclass(frozen=True)
class Limits:
    """What one submission may use."""

    cell_seconds: float = 30
    wall_seconds: float = 240
    cpu_seconds: int = 180
    memory_mb: int = 1500
    processes: int = 64
    disk_mb: int = 64
    output_mb: int = 16
    files: int = 20_000
    #: After a cell should have ended by itself, until it is ended from outside.
    grace_seconds: float = 5

    @property
    def stuck_seconds(self) -> float:
        """When a cell that should have ended by itself is ended from outside."""
        return 1.5 * self.cell_seconds + self.grace_seconds


@functools.cache
def isolation() -> str:
    """ "bubblewrap", or why only limits apply."""
    program = shutil.which("bwrap")
    if program is None:
        return "none: bubblewrap is not installed"
    run = _try(program, [])
    if run.returncode != 0:
        return f"none: bubblewrap does not work here ({run.stderr.strip()[:120]})"
    return "bubblewrap"


@functools.cache
def refuses_calls() -> bool:
    """Whether the kernel takes the filter of system calls here."""
    program = shutil.which("bwrap")
    filter = seccomp_pipe() if program else None
    if program is None or filter is None:
        return False
    try:
        return _try(program, ["--seccomp", str(filter)], (filter,)).returncode == 0
    finally:
        os.close(filter)


def _try(program: str, more: list[str], fds: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *_namespaces(), *more, "--ro-bind", "/", "/", sys.executable, "-c", ""],
        capture_output=True,
        text=True,
        check=False,
        pass_fds=fds,
    )


def seccomp_pipe() -> int | None:
    """A descriptor from which bubblewrap reads the filter; None where there is none for this machine."""
    program = seccomp.program()
    if program is None:
        return None
    read, write = os.pipe()
    os.write(write, program)
    os.close(write)
    return read


def _namespaces() -> list[str]:
    return [
        "--unshare-all",
        "--unshare-user",
        "--uid",
        "65534",
        "--gid",
        "65534",
        "--die-with-parent",
        "--new-session",
    ]


def runner_command(limits: Limits) -> list[str]:
    """The runner without a box."""
    return [sys.executable, "-m", "labkit.course.runner", str(limits.cell_seconds)]


def boxed_command(
    work: Path, limits: Limits, info: int, filter: int | None, hide: Iterable[Path]
) -> list[str]:
    """The runner in bubblewrap: `work` is copied to its folder, course folders in `hide` are not to be seen."""
    import labkit

    package = Path(labkit.__file__).resolve().parent
    size = str(limits.disk_mb * 1_000_000)
    command = [str(shutil.which("bwrap")), *_namespaces(), "--info-fd", str(info)]
    if filter is not None:
        command += ["--seccomp", str(filter)]
    for path in _SYSTEM:
        command += ["--ro-bind-try", path, path]
    command += ["--proc", "/proc", "--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm"]
    command += ["--size", size, "--tmpfs", "/tmp", "--size", size, "--tmpfs", "/box"]
    shown = [Path("/usr")]
    for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
        shown.append(Path(prefix).resolve())
        if not prefix.startswith("/usr"):
            command += ["--ro-bind", prefix, prefix]
    # Beside the package only what lessons need: not quizzes/ and notebooks/, which hold the keys.
    command += ["--ro-bind", str(package), str(package)]
    command += ["--ro-bind-try", str(package.parent / "clusters"), str(package.parent / "clusters")]
    # An installed labkit has them inside.
    for kind in ("quizzes", "notebooks"):
        if (package / "data" / kind).is_dir():
            command += _empty(package / "data" / kind)
    for hidden in _hidden(hide, shown):
        command += _empty(hidden) if hidden.is_dir() else ["--ro-bind", "/dev/null", str(hidden)]
    command += ["--ro-bind", str(work.resolve()), "/in", "--chdir", "/box"]
    # Both are file systems in memory, and without a size.
    command += ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [*command, "/bin/sh", "-c", 'cp -r /in/. /box/ && exec "$@"', "sh", *runner_command(limits)]


def _empty(folder: Path) -> list[str]:
    return ["--tmpfs", str(folder), "--remount-ro", str(folder)]


def _hidden(courses: Iterable[Path], shown: list[Path]) -> list[Path]:
    """What of courses and exchanges would be seen because it is inside a folder that the box shows."""
    found = [_DEFAULT_EXCHANGE] if _DEFAULT_EXCHANGE.is_dir() else []
    for course in courses:
        found += [p.resolve() for name in _OF_COURSES for p in sorted(course.glob(name))]
    return [p for p in dict.fromkeys(found) if any(p.is_relative_to(s) for s in shown)]


def environment(boxed: bool, temporary: str) -> dict[str, str]:
    """Nothing of the grader's own."""
    home = "/box" if boxed else temporary
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "IPYTHONDIR": f"{'/tmp' if boxed else temporary}/.ipython",
        "TMPDIR": "/tmp" if boxed else temporary,
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "NBGRADER_EXECUTION": "autograde",
        **({} if boxed else {"LABKIT_BOX": "limits only"}),
    }


def limit(limits: Limits) -> None:
    """Before exec: what the kernel itself enforces."""
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.disk_mb * 1_000_000,) * 2)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_mb * 1_000_000,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))
