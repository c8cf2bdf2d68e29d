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
from labkit.cluster.store_errors import ApiError
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


def _map(name: str, size: int = 10) -> dict[str, Any]:
    data = {"v": "x" * size}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def test_a_full_disk_is_named_and_loses_nothing(tmp_path: Path) -> None:
    """What the disk refuses is refused with its reason; what was acknowledged is there, and it goes on with room."""
    store = Store(data_dir=tmp_path)
    store.create(_map("before"))
    database = store._database
    assert database is not None
    (pages,) = database._db.execute("PRAGMA page_count").fetchone()
    database._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(ApiError, match="cannot store the object: database or disk is full") as e:
        store.create(_map("refused", 100_000))
    assert e.value.code == 500
    assert [o["metadata"]["name"] for o in store.list("ConfigMap")[0]] == ["before"]
    database._db.execute("PRAGMA max_page_count = 1000000")
    store.create(_map("after", 100_000))
    store.close()
    again = Store(data_dir=tmp_path)
    assert [o["metadata"]["name"] for o in again.list("ConfigMap")[0]] == ["after", "before"]
    again.close()


@pytest.mark.parametrize("damage", [b"\xff" * 64, b"{" * 64], ids=["bits", "braces"])
def test_damage_anywhere_is_told_in_words(tmp_path: Path, damage: bytes) -> None:
    """Bytes that went bad, wherever they lie -> the store comes up or says which file is damaged; no other exception."""
    store = Store(data_dir=tmp_path)
    for i in range(40):
        store.create(_map(f"m{i}", 300))
    store.close()
    path = tmp_path / "state.db"
    good = path.read_bytes()
    told: list[str] = []
    for offset in range(0, len(good) - len(damage), 4001):
        path.write_bytes(good[:offset] + damage + good[offset + len(damage) :])
        try:
            Store(data_dir=tmp_path).close()
        except LabError as e:
            told.append(str(e))
        for more in ("state.db-wal", "state.db-shm"):
            (tmp_path / more).unlink(missing_ok=True)
    assert told
    assert all("state.db" in text and "move it away" in text for text in told)
