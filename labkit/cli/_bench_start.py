"""`labkit bench start`: what one waits for before anything happens, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from labkit.cli._bench_workloads import Json, node, pod

Env = dict[str, str]
_DECISION = """
import time
from labkit import Lab
began = time.perf_counter()
lab = Lab(%r)
lab.apply(%r)
assert lab.schedule_one().node
print(time.perf_counter() - began)
"""
#: The `labkit` command, whether or not its script is on the PATH.
_LABKIT = [sys.executable, "-c", "from labkit.cli import main; main()"]
_GIVE_UP = 60.0


class _Case(NamedTuple):
    what: str
    target_ms: int
    command: list[str]
    #: Subtracted: what Python itself takes to start.
    bare: bool = False


def _cases() -> list[_Case]:
    def python(code: str) -> list[str]:
        return [sys.executable, "-c", code]

    decision = _DECISION % ([node(i, 0) for i in range(3)], pod("basic", "p", "default"))
    return [
        _Case("import labkit", 150, python("import labkit"), bare=True),
        _Case("from labkit import Lab", 150, python("from labkit import Lab"), bare=True),
        _Case("labkit --help", 200, [*_LABKIT, "--help"]),
        _Case("Lab(): first decision", 50, python(decision)),
    ]


def start_up(rounds: int = 10) -> list[Json]:
    """Rows of median and best of `rounds`, in milliseconds."""
    rows = []
    with _compiled() as env:
        python = statistics.median(_rounds([sys.executable, "-c", "pass"], env, rounds))
        for what, target, command, bare in _cases():
            times = _rounds(command, env, rounds)
            rows.append(_row(what, [max(0.0, t - python) for t in times] if bare else times, target))
    return rows


@contextlib.contextmanager
def _compiled() -> Iterator[Env]:
    """An environment in which Python keeps its bytecode, as it does unless told not to; in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        yield {**env, "PYTHONPYCACHEPREFIX": folder}


def _rounds(command: list[str], env: Env, rounds: int) -> list[float]:
    """The first one warms up: it compiles, and brings the files into memory."""
    return [_run(command, env) for _ in range(rounds + 1)][1:]


def _row(what: str, seconds: list[float], target: int) -> Json:
    return {
        "what": what,
        "median ms": round(1000 * statistics.median(seconds), 1),
        "best ms": round(1000 * min(seconds), 1),
        "target ms": target,
    }


def _run(command: list[str], env: Env) -> float:
    """Seconds that a process takes, or those that it prints (it leaves its own imports out)."""
    began = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    seconds = time.perf_counter() - began
    with contextlib.suppress(ValueError):
        return float(done.stdout)
    return seconds


def cluster_start(rounds: int = 5) -> list[Json]:
    """API server and scheduler in two processes: until the first pod is bound, and what they hold while idle."""
    with _compiled() as env:
        found = [_cluster_once(env) for _ in range(rounds + 1)][1:]
    times = [f[0] for f in found]
    row = _row("apiserver + scheduler: first pod bound", times, 1000)
    return [{**row, "idle MiB": round(max(f[1] for f in found), 1), "target MiB": 150}]


def _cluster_once(env: Env) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        config = Path(folder) / "kubeconfig"
        began = time.perf_counter()
        options = ["--port", "0", "--insecure-http", "--kubeconfig", str(config)]
        server = _process([*_LABKIT, "apiserver", *options], env)
        stack.callback(_end, server)
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        options = ["--kubeconfig", str(config), "--no-leader-elect"]
        scheduler = _process([*_LABKIT, "scheduler", "run", *options], env)
        stack.callback(_end, scheduler)
        _post(f"{url}/api/v1/nodes", node(0, 0))
        _post(f"{url}/api/v1/namespaces/default/pods", pod("basic", "p", "default"))
        while not _get(f"{url}/api/v1/namespaces/default/pods/p")["spec"].get("nodeName"):
            if time.perf_counter() - began > _GIVE_UP:
                raise TimeoutError("the pod was not bound within a minute")
            time.sleep(0.005)
        seconds = time.perf_counter() - began
        return seconds, sum(_resident_mib(p.pid) for p in (server, scheduler))


def _process(command: list[str], env: Env) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _post(url: str, obj: Json) -> None:
    request = Request(url, json.dumps(obj).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=_GIVE_UP) as answer:
        answer.read()


def _get(url: str) -> Any:
    with urlopen(url, timeout=_GIVE_UP) as answer:
        return json.load(answer)


def _resident_mib(pid: int) -> float:
    """What a process holds; 0 where /proc is missing."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0.0
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20
