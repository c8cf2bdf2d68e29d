"""Controllers, kubelets and scheduler in real time, beside a store in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from labkit.cluster.client import StoreClient
from labkit.cluster.controllers.plane import KUBELET, ControlPlane
from labkit.cluster.store import Store

from tests.cluster.workloads import node, workload


def wait_for(what: Callable[[], bool]) -> None:
    """AssertionError when it does not come true within half a minute."""
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def running(store: Store) -> list[str]:
    """Names of pods that run."""
    pods = store.objects("Pod").values()
    return sorted(p["metadata"]["name"] for p in pods if p["status"].get("phase") == "Running")


def test_a_kept_cluster_goes_on_after_a_restart(tmp_path: Path) -> None:
    """What was lost while nobody looked is made up for."""
    store = Store(data_dir=tmp_path)
    client = StoreClient(store)
    client.create(node("n0"))
    plane = ControlPlane(store, start_seconds=0.1)
    try:
        client.create(workload("Deployment"))
        wait_for(lambda: len(running(store)) == 3)
    finally:
        plane.stop()
        store.close()
    first = running(store)

    store = Store(data_dir=tmp_path)
    store.delete("Pod", first[0], "default", 0)
    assert len(running(store)) == 2
    plane = ControlPlane(store, start_seconds=0.1)
    try:
        wait_for(lambda: len(running(store)) == 3)
        assert set(first[1:]) < set(running(store))
    finally:
        plane.stop()
        store.close()


def test_only_the_scheduler() -> None:
    """Pods get nodes and do not run; workloads stay what they are."""
    store = Store()
    client = StoreClient(store)
    client.create(node("n0"))
    plane = ControlPlane(store, controllers=False)
    try:
        client.create(workload("Deployment"))
        spec = {"containers": [{"name": "c", "image": "i"}]}
        client.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": "default"},
                "spec": spec,
            }
        )
        wait_for(lambda: store.objects("Pod")["default/p"]["spec"].get("nodeName") == "n0")
        assert store.objects("Pod")["default/p"]["status"]["phase"] == "Pending"
        assert list(store.objects("Pod")) == ["default/p"]
    finally:
        plane.stop()


def test_only_controllers_and_a_kubelet_that_is_stopped() -> None:
    """Pods wait for a scheduler; a node whose annotation says so does not start what is bound to it."""
    store = Store()
    client = StoreClient(store)
    client.create(node("n0"))
    client.create(node("n1", annotations={KUBELET: "stopped"}))
    plane = ControlPlane(store, scheduler=False, start_seconds=0.1)
    try:
        client.create(workload("ReplicaSet", 2))
        wait_for(lambda: len(store.objects("Pod")) == 2)
        first, second = sorted(p["metadata"]["name"] for p in store.objects("Pod").values())
        client.bind("default", first, None, "n0")
        client.bind("default", second, None, "n1")
        wait_for(lambda: running(store) == [first])
        time.sleep(0.5)
        assert running(store) == [first]
        client.patch("Node", "n1", None, {"metadata": {"annotations": {KUBELET: None}}}, "merge")
        wait_for(lambda: running(store) == [first, second])
    finally:
        plane.stop()
