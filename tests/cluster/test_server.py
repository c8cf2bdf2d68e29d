"""Starting and stopping the server: addresses, certificates, kubeconfig, many writers at once."""

from __future__ import annotations

import json
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from labkit.cluster.apiserver import run_apiserver, serve
from labkit.cluster.apiserver.server import ServerHandle
from labkit.cluster.store import Store
from labkit.cluster.store_errors import ApiError
from labkit.errors import LabError

from .asgi import Clock, pod
from .wire import PODS, call, open_watch


def test_port_in_use(server: ServerHandle) -> None:
    """The port of another server -> LabError that says what to do."""
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(LabError, match="cannot listen on"):
        serve(Store(), port)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"host": "0.0.0.0"}, "can be reached from other machines"),
        ({"host": "192.0.2.1", "tls": False, "allow_remote": True}, "plain HTTP is served on loopback only"),
        ({"host": "example.invalid"}, "can be reached from other machines"),
        ({"host": "192.0.2.1", "allow_remote": True}, "cannot listen on"),
    ],
)
def test_addresses(options: dict[str, Any], text: str) -> None:
    """Anything but loopback must be asked for, and must exist."""
    with pytest.raises(LabError, match=text):
        serve(Store(), **options)


def test_files(server: ServerHandle) -> None:
    """Keys, token and kubeconfig -> readable by their owner alone."""
    directory = server.kubeconfig_path.parent
    for name in ("server.key", "admin.key", "token", "kubeconfig"):
        assert stat.S_IMODE((directory / name).stat().st_mode) == 0o600, name


def test_restart_keeps_certificates_and_token(tmp_path: Path) -> None:
    """A second life in the same directory -> the old kubeconfig still opens it."""
    store = Store()
    with serve(store, directory=tmp_path) as first:
        kept = (tmp_path / "kubeconfig").read_text()
        port = int(first.url.rpartition(":")[2])
    with serve(store, port, directory=tmp_path) as second:
        assert (tmp_path / "kubeconfig").read_text() == kept
        assert call(second, "GET", PODS)[0] == 200


def test_kubeconfig_that_cannot_be_written(tmp_path: Path) -> None:
    """A path below a file -> LabError that names it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="kubeconfig"):
        serve(Store(), kubeconfig=tmp_path / "file" / "kubeconfig", directory=tmp_path / "tls")


def test_many_writers(server: ServerHandle) -> None:
    """8 connections create 25 pods each -> 200 different versions, and a watch sees each pod once, in order."""
    start = server.store.resource_version
    _, response = open_watch(server, f"{PODS}?watch=1&resourceVersion={start}&labelSelector=w")

    def create(worker: int) -> list[str]:
        made = [call(server, "POST", PODS, pod(f"w-{worker}-{i}", labels={"w": "1"})) for i in range(25)]
        assert {status for status, _ in made} == {201}
        return [body["metadata"]["resourceVersion"] for _, body in made]

    with ThreadPoolExecutor(8) as pool:
        versions = [v for found in pool.map(create, range(8)) for v in found]
    assert len(set(versions)) == 200
    events = [json.loads(response.readline()) for _ in range(200)]
    response.keep.close()
    seen = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert seen == sorted(int(v) for v in versions)
    for event in events:
        server.store.delete("Pod", event["object"]["metadata"]["name"])


def test_stale_writers_never_win(server: ServerHandle) -> None:
    """8 connections count one config map up by read and PUT, again after 409 -> no count is lost."""
    url = "/api/v1/namespaces/default/configmaps"
    call(server, "POST", url, {"metadata": {"name": "count"}, "data": {"n": "0"}})
    conflicts: list[int] = []

    def add(_: int) -> None:
        for _ in range(10):
            while True:
                _, found = call(server, "GET", f"{url}/count")
                found["data"]["n"] = str(int(found["data"]["n"]) + 1)
                status, _ = call(server, "PUT", f"{url}/count", found)
                if status == 200:
                    break
                assert status == 409
                conflicts.append(status)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(8)))
    assert server.store.get("ConfigMap", "count")["data"]["n"] == "80"
    server.store.delete("ConfigMap", "count")


def test_run_until_stopped(tmp_path: Path) -> None:
    """run_apiserver with a data directory -> announces, serves, ends when told, and the data is there."""
    stop = threading.Event()
    lines: list[str] = []

    def started(handle: ServerHandle) -> None:
        assert call(handle, "POST", PODS, pod("kept"))[0] == 201
        stop.set()

    run_apiserver(0, tmp_path, announce=lines.append, started=started, stop=stop)
    assert lines[0].startswith("serving https://127.0.0.1:")
    assert lines[1] == f"export KUBECONFIG={tmp_path / 'tls' / 'kubeconfig'}"
    store = Store(data_dir=tmp_path)
    assert store.peek("Pod", "kept") is not None
    store.close()


def test_disk_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that the database refuses -> 500, and nobody sees it; the next one works."""
    store = Store(Clock(), data_dir=tmp_path)
    database = store._database
    assert database is not None
    version = store.resource_version

    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as m:
        m.setattr(database, "write", full)
        with pytest.raises(ApiError, match="disk is full"):
            store.create(pod())
    assert (store.peek("Pod", "p"), store.resource_version) == (None, version)
    assert int(store.create(pod())["metadata"]["resourceVersion"]) == int(version) + 1
    store.close()
