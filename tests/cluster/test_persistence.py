"""--data-dir: what was acknowledged is there after kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
from labkit.cluster.store import Store
from labkit.errors import LabError

from .asgi import Clock, node, pod

PROGRAM = """
import sys
from labkit.cluster.apiserver import run_apiserver
run_apiserver(0, sys.argv[1], tls=False, announce=lambda line: print(line, flush=True))
"""


def start(data_dir: Path) -> tuple[subprocess.Popen[str], str]:
    """An API server as a process, and its URL."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(data_dir)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().split()[-1]


def post(url: str, body: Any) -> Any:
    """Create a pod."""
    request = urllib.request.Request(
        f"{url}/api/v1/namespaces/default/pods",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def names(url: str) -> set[str]:
    """The pods' names."""
    with urllib.request.urlopen(f"{url}/api/v1/pods", timeout=30) as response:
        return {p["metadata"]["name"] for p in json.load(response)["items"]}


def test_kill_9(tmp_path: Path) -> None:
    """Three times: write, kill -9 in the middle of it -> every acknowledged pod is there, versions and uids go on."""
    acknowledged: dict[str, str] = {}
    version = 0
    for life in range(3):
        process, url = start(tmp_path)
        assert names(url) >= set(acknowledged)
        with pytest.raises((URLError, ConnectionError)):  # noqa: PT012 - the server dies under the writer
            for i in range(1000):
                made = post(url, pod(f"p-{life}-{i}"))
                acknowledged[made["metadata"]["name"]] = made["metadata"]["uid"]
                assert int(made["metadata"]["resourceVersion"]) > version
                version = int(made["metadata"]["resourceVersion"])
                if i == 40:
                    os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    store = Store(data_dir=tmp_path)
    assert {p["metadata"]["name"] for p in store.list("Pod")[0]} >= set(acknowledged)
    assert len(set(acknowledged.values())) == len(acknowledged) == 3 * 41
    assert store.version >= version
    store.close()


def test_everything_comes_back(tmp_path: Path) -> None:
    """Objects, deletions and the version -> the same in the next life; old watches are told 410."""
    store = Store(Clock(), data_dir=tmp_path)
    store.create(node("kept"))
    store.create(node("deleted"))
    store.delete("Node", "deleted")
    objects, version = store.list("Node")
    store.close()
    again = Store(Clock(), data_dir=tmp_path)
    assert again.list("Node") == (objects, version)
    (event,) = again.watch("Node", since="1").poll()
    assert (event.type, event.object["code"]) == ("ERROR", 410)
    uid = again.create(pod())["metadata"]["uid"]
    assert uid not in {o["metadata"]["uid"] for o in objects}
    again.close()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """A second store over the same directory -> LabError that says so."""
    first = Store(data_dir=tmp_path)
    with pytest.raises(LabError) as e:
        Store(data_dir=tmp_path)
    assert "another API server uses this directory" in str(e.value)
    first.close()
    Store(data_dir=tmp_path).close()


def test_foreign_file(tmp_path: Path) -> None:
    """A file that is no database, a path that is no directory -> LabError that names it."""
    (tmp_path / "state.db").write_text(
        "this is text, and long enough to be looked at as a database header" * 20
    )
    with pytest.raises(LabError) as e:
        Store(data_dir=tmp_path)
    assert "state.db" in str(e.value)
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError):
        Store(data_dir=tmp_path / "file")
