"""Watches over HTTP: what they send, and what they do to the server when clients misbehave."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import sys
import threading
from typing import Any

import pytest
from labkit.cluster.apiserver import serve
from labkit.cluster.apiserver.server import ServerHandle
from labkit.cluster.store import Store

from .asgi import Api, Clock, node, pod
from .wire import PODS, call, connect, headers, open_watch

NODES = "/api/v1/nodes"


def kinds(lines: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """(type, name) of each event."""
    return [(e["type"], e["object"].get("metadata", {}).get("name", "")) for e in lines]


@pytest.fixture
def api() -> Api:
    """A cluster with two nodes and a short memory of ten changes."""
    api = Api(Store(Clock(), history=10))
    api.store.create(node("a"))
    api.store.create(node("b"))
    return api


def test_initial_events(api: Api) -> None:
    """WatchList -> ADDED for each object, then the bookmark that ends them."""
    url = f"{NODES}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    lines = api.call("GET", f"{url}&timeoutSeconds=1").lines
    assert kinds(lines) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")]
    end = lines[-1]["object"]
    assert (end["kind"], end["apiVersion"]) == ("Node", "v1")
    assert end["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert end["metadata"]["resourceVersion"] == api.store.resource_version


def test_python_spelling(api: Api) -> None:
    """`watch=True`, as the Python client writes it -> a watch."""
    assert kinds(api.call("GET", f"{NODES}?watch=True&timeoutSeconds=1").lines) == [
        ("ADDED", "a"),
        ("ADDED", "b"),
    ]


def test_from_a_version(api: Api) -> None:
    """Changes after the version, filtered: what stops to match is DELETED, what starts to is ADDED."""
    start = api.store.resource_version
    api.store.patch("Node", "a", None, {"metadata": {"labels": {"x": "1"}}})
    api.store.patch("Node", "a", None, {"spec": {"unschedulable": True}})
    api.store.patch("Node", "a", None, {"metadata": {"labels": {"x": "2"}}})
    api.store.delete("Node", "b")
    url = f"{NODES}?watch=1&resourceVersion={start}&timeoutSeconds=1"
    assert kinds(api.call("GET", f"{url}&labelSelector=x%3D1").lines) == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]
    assert kinds(api.call("GET", url).lines)[-1] == ("DELETED", "b")


def test_too_old(api: Api) -> None:
    """A version that the history has forgotten -> one ERROR line with Status 410, then the end."""
    start = api.store.resource_version
    for i in range(12):
        api.store.patch("Node", "a", None, {"metadata": {"labels": {"x": str(i)}}})
    answer = api.call("GET", f"{NODES}?watch=1&resourceVersion={start}")
    assert answer.status == 200
    (line,) = answer.lines
    assert (line["type"], line["object"]["code"], line["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert line["object"]["message"].startswith(f"too old resource version: {start} (")


def test_table_watch(api: Api) -> None:
    """A watch with the Table Accept -> one-row tables; only the first has columns."""
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    lines = api.call("GET", f"{NODES}?watch=1&timeoutSeconds=1", accept=accept).lines
    assert [bool(e["object"]["columnDefinitions"]) for e in lines] == [True, False]
    assert lines[1]["object"]["rows"][0]["cells"][0] == "b"


def test_expired_pages(api: Api) -> None:
    """A continue token: the next page is of the same moment; when that is forgotten 410 and a token to go on with."""
    first = api.call("GET", f"{NODES}?limit=1").json
    assert first["metadata"]["remainingItemCount"] == 1
    token = first["metadata"]["continue"]
    api.store.delete("Node", "b")
    api.store.create(node("c"))
    second = api.call("GET", f"{NODES}?limit=1&continue={token}").json
    assert [n["metadata"]["name"] for n in second["items"]] == ["b"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    for i in range(12):
        api.store.patch("Node", "a", None, {"metadata": {"labels": {"x": str(i)}}})
    late = api.call("GET", f"{NODES}?limit=1&continue={token}")
    assert (late.status, late.json["reason"]) == (410, "Expired")
    resumed = api.call("GET", f"{NODES}?continue={late.json['metadata']['continue']}").json
    assert [n["metadata"]["name"] for n in resumed["items"]] == ["c"]


def test_many_idle_watches(server: ServerHandle) -> None:
    """1000 watches that wait -> all open at once, writes go on, and each gets the next event."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    server.store.create(pod("watched"))
    version = server.store.resource_version
    url = f"{PODS}?watch=1&resourceVersion={version}&fieldSelector=metadata.name%3Dwatched"
    plain = serve(server.store, tls=False)
    try:
        sockets = [_raw_watch(plain, url) for _ in range(1000)]
        server.store.patch("Pod", "watched", "default", {"metadata": {"labels": {"x": "y"}}})
        for sock in sockets:
            assert b'"MODIFIED"' in _read_until(sock, b'"MODIFIED"')
        assert plain.app.hub is not None
        assert plain.app.hub.watches == 1000
        for sock in sockets:
            sock.close()
        assert call(server, "GET", PODS + "/watched")[0] == 200
    finally:
        plain.stop()
    server.store.delete("Pod", "watched")


def _raw_watch(server: ServerHandle, url: str) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    sock = socket.create_connection((host, int(port)), timeout=60)
    sock.sendall(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert b"200 OK" in _read_until(sock, b"\r\n\r\n")
    return sock


def _read_until(sock: socket.socket, mark: bytes) -> bytes:
    data = b""
    while mark not in data:
        part = sock.recv(65536)
        assert part, f"closed before {mark!r}"
        data += part
    return data


def test_slow_reader(tmp_path: Any) -> None:
    """A client that stops reading while 2 000 changes of 10 KB happen -> the others are served, it gets 410 at the end."""
    store = Store(history=100)
    store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    with serve(store, tls=False, directory=tmp_path) as plain:
        url = f"/api/v1/configmaps?watch=1&resourceVersion={store.resource_version}"
        sock = _raw_watch(plain, url)
        for i in range(2000):
            store.patch("ConfigMap", "c", "default", {"data": {"x": f"{i:05}" + "x" * 10_000}})
        quick = _raw_watch(plain, f"/api/v1/configmaps?watch=1&resourceVersion={store.resource_version}")
        store.patch("ConfigMap", "c", "default", {"data": {"x": "last"}})
        assert b'"last"' in _read_until(quick, b'"last"')
        data = b""
        while part := sock.recv(1 << 20):
            data += part
            if b'"type":"ERROR"' in data[-200_000:]:
                break
        assert b"too old resource version" in data[-5000:]
        assert len(data) < 2000 * 10_000
        sock.close()
        quick.close()
    store.close()


def test_half_closed_watch(server: ServerHandle) -> None:
    """A client that shuts its sending side, and one that vanishes -> their watches are dropped."""
    url = f"{NODES}?watch=1&resourceVersion={server.store.resource_version}"
    with serve(server.store, tls=False) as plain:
        half = _raw_watch(plain, url)
        gone = _raw_watch(plain, url)
        assert plain.app.hub is not None
        half.shutdown(socket.SHUT_WR)
        gone.close()
        ended = threading.Event()
        for _ in range(200):
            if plain.app.hub.watches == 0:
                break
            ended.wait(0.05)
        assert plain.app.hub.watches == 0
        half.close()


def test_events_over_tls(server: ServerHandle) -> None:
    """A watch over HTTPS -> an event line right after the write."""
    _, response = open_watch(server, f"{PODS}?watch=1&resourceVersion={server.store.resource_version}")
    assert call(server, "POST", PODS, pod("tls"))[0] == 201
    event = json.loads(response.readline())
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "tls")
    response.keep.close()
    server.store.delete("Pod", "tls")


def test_chunked_body(server: ServerHandle) -> None:
    """A body without Content-Length -> read all the same."""
    connection = connect(server)
    parts = iter([json.dumps(pod("chunked")).encode()[:20], json.dumps(pod("chunked")).encode()[20:]])
    connection.request("POST", PODS, parts, headers(server), encode_chunked=True)
    assert connection.getresponse().status == 201
    server.store.delete("Pod", "chunked")


def test_stop_ends_watches(tmp_path: Any) -> None:
    """stop() with an open watch -> the stream ends cleanly, and the port is free again."""
    store = Store()
    handle = serve(store, tls=False, directory=tmp_path)
    sock = _raw_watch(handle, f"{NODES}?watch=1&resourceVersion={store.resource_version}")
    handle.stop()
    data = b""
    while part := sock.recv(65536):
        data += part
    assert data.endswith(b"0\r\n\r\n")
    port = int(handle.url.rpartition(":")[2])
    with serve(store, port, tls=False, directory=tmp_path) as again:
        assert again.url == handle.url


def test_endless_head_and_slow_body(tmp_path: Any) -> None:
    """Headers without end -> 431; a body that stops half-way holds nobody else up."""
    store = Store()
    with serve(store, tls=False, directory=tmp_path) as plain:
        host, port = plain.url.removeprefix("http://").split(":")
        endless = socket.create_connection((host, int(port)), timeout=60)
        endless.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        with contextlib.suppress(OSError):
            for i in range(2000):
                endless.sendall(f"X-{i}: {'x' * 100}\r\n".encode())
        with contextlib.suppress(ConnectionError):
            assert b"431" in endless.recv(100)
        halves = []
        for _ in range(40):
            half = socket.create_connection((host, int(port)), timeout=60)
            half.sendall(f"POST {PODS} HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{{".encode())
            halves.append(half)
        quick = _raw_watch(plain, NODES + "?watch=1")
        store.create(node("n"))
        assert b'"n"' in _read_until(quick, b'"n"')
        for sock in (endless, quick, *halves):
            sock.close()
    store.close()


def test_without_httptools(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where httptools is missing, h11 serves: lists, writes, watches."""
    monkeypatch.setitem(sys.modules, "uvicorn.protocols.http.httptools_impl", None)
    store = Store()
    with serve(store, directory=tmp_path) as handle:
        assert call(handle, "POST", PODS, pod("h11"))[0] == 201
        assert call(handle, "GET", PODS + "/h11")[1]["metadata"]["name"] == "h11"
        _, response = open_watch(handle, f"{PODS}?watch=1")
        assert json.loads(response.readline())["type"] == "ADDED"
        response.keep.close()
    store.close()
