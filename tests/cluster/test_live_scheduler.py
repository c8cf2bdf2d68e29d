"""The engine against a live API: real HTTP, real TLS, real kubeconfig, our own server behind them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from labkit.cluster.apiserver import serve
from labkit.cluster.live import LiveClient, connect
from labkit.cluster.live_scheduler import LiveScheduler
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
