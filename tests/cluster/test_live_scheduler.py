"""The engine against a live API: real HTTP, real TLS, real kubeconfig, our own server behind them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes.client import Configuration
from labkit.cluster.apiserver import serve
from labkit.cluster.lease import LeaseHolder
from labkit.cluster.live import LiveClient, connect
from labkit.cluster.live_scheduler import LiveScheduler
from labkit.cluster.reflector import Reflector, Troubles
from labkit.cluster.store import Store
from labkit.config import load_config

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


def pod(name: str, cpu: str = "1") -> dict[str, Any]:
    """A pod that requests `cpu`."""
    resources = {"requests": {"cpu": cpu}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "app:v1", "resources": resources}]},
    }


def eventually(found: Callable[[], Any], seconds: float = 20.0) -> Any:
    """The first true answer; fails when there is none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := found():
            return answer
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


@pytest.fixture
def client() -> Iterator[LiveClient]:
    """A client of a fresh API server with one node."""
    handle = serve(Store())
    live = connect(str(handle.kubeconfig_path))
    live.create(NODE)
    yield live
    handle.stop()


def run(client: LiveClient, identity: str) -> tuple[LiveScheduler, threading.Thread]:
    """A scheduler on a thread."""
    scheduler = LiveScheduler(client, load_config(None), identity=identity)
    thread = threading.Thread(target=scheduler.run, daemon=True)
    thread.start()
    return scheduler, thread


def node_of(client: LiveClient, name: str) -> str:
    """Where a pod is."""
    return str(client.get("Pod", name, "default")["spec"].get("nodeName") or "")


def test_binds_explains_leads_and_hands_over(client: LiveClient) -> None:
    """A pod is bound, another one told why not; a second scheduler takes over when the first releases its lease."""
    first, thread = run(client, "first")
    client.create(pod("web"))
    client.create(pod("huge", "9"))
    assert eventually(lambda: node_of(client, "web")) == "n1"
    condition = eventually(lambda: client.get("Pod", "huge", "default")["status"].get("conditions"))[0]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "Unschedulable")
    assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    lease = client.get("Lease", "kube-scheduler", "kube-system")["spec"]
    assert lease["holderIdentity"] == "first"
    second, other = run(client, "second")
    first.stop()
    thread.join(20)
    assert not thread.is_alive()
    client.create(pod("later"))
    assert eventually(lambda: node_of(client, "later")) == "n1"
    assert client.get("Lease", "kube-scheduler", "kube-system")["spec"]["holderIdentity"] == "second"
    second.stop()
    other.join(20)


def test_restart_binds_nothing_twice(client: LiveClient) -> None:
    """Pods bound before a restart stay where they are and count; pods that came meanwhile are bound."""
    first, thread = run(client, "a")
    client.create(pod("one", "3"))
    eventually(lambda: node_of(client, "one"))
    first.stop()
    thread.join(20)
    client.create(pod("two", "2"))
    client.create(pod("three", "1"))
    second, other = run(client, "b")
    assert eventually(lambda: node_of(client, "three")) == "n1"
    assert node_of(client, "two") == ""
    second.stop()
    other.join(20)


def _closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _client_of(url: str) -> LiveClient:
    configuration = Configuration()
    configuration.host = url
    return LiveClient(configuration)


def test_a_server_that_is_away_or_refuses_is_named_once(client: LiveClient) -> None:
    """A stale kubeconfig, a wrong token: one line, however many watches fail, and one when all is well again."""
    for url, token, words in (
        (f"http://127.0.0.1:{_closed_port()}", "", "cannot be reached: Connection refused; trying again"),
        ("", "wrong", "HTTP 401: Unauthorized; trying again"),
    ):
        live = _client_of(url) if url else client
        headers = dict(live._headers)
        if token:
            live._headers["Authorization"] = f"Bearer {token}"
        told: list[str] = []
        scheduler = LiveScheduler(live, load_config(None), identity="a", tell=told.append)
        thread = threading.Thread(target=scheduler.run, daemon=True)
        thread.start()
        eventually(lambda told=told: told)
        time.sleep(0.3)
        assert len(told) == 1
        assert told[0].endswith(words)
        live._headers = headers
        if token:
            eventually(lambda scheduler=scheduler: scheduler.ready)
            eventually(lambda told=told: told[1:])
            assert told[1:] == ["the API server answers again"]
        scheduler.stop()
        thread.join(20)


def test_troubles_are_told_in_turn() -> None:
    """The same cause once, another cause as well, the end only when nothing is left."""
    told: list[str] = []
    troubles = Troubles(told.append)
    for what in ("watching Pod", "watching Node"):
        troubles.report(what, "refused")
    troubles.report("watching Pod", "timed out")
    troubles.over("watching Pod")
    assert told == ["watching Pod: refused; trying again", "watching Pod: timed out; trying again"]
    troubles.over("watching Node")
    troubles.over("watching Node")
    assert told[2:] == ["the API server answers again"]


class _Endless:
    """A server whose watches end as soon as they begin."""

    def __init__(self) -> None:
        self.watches = 0

    def list(self, kind: str) -> tuple[list[Any], str]:
        return [], "1"

    def stream(self, kind: str, since: str, stopped: threading.Event) -> Iterator[Any]:
        self.watches += 1
        return iter(())


def test_watches_that_end_at_once_are_not_repeated_at_once() -> None:
    """The pause doubles; the user is told."""
    told: list[str] = []
    stopped = threading.Event()
    source: Any = _Endless()
    reflector = Reflector(source, "Pod", lambda *_: None, stopped, Troubles(told.append))
    reflector.thread.start()
    time.sleep(0.8)
    stopped.set()
    reflector.thread.join(10)
    assert 1 <= source.watches <= 3
    assert told == ["watching Pod: the server ends watches at once; trying again"]


def test_requests_for_the_lease_give_up_in_time() -> None:
    """A server that takes the connection and says nothing: the lease is given up long before it would run out."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        live = _client_of(f"http://127.0.0.1:{silent.getsockname()[1]}")
        holder = LeaseHolder(live.timed(0.2), "me")
        assert not holder.attempt()
        holder.release()
        assert "timed out" in holder.trouble
