"""LiveCluster: a cluster behind a kubeconfig, read, changed and scheduled from a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from labkit import Lab
from labkit.errors import InputError, LabError

NODES = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {kubernetes.io/hostname: n2}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    """A pod that requests so many CPUs."""
    container = {"name": "c", "image": "a:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


@pytest.fixture
def cluster() -> Iterator[Any]:
    """The embedded API server, over HTTPS."""
    with Lab(NODES).serve() as server:
        yield Lab.connect(server.kubeconfig)


def test_apply_says_what_it_did_and_the_scheduler_places_and_tells(cluster: Any) -> None:
    """Over real HTTP: created, changed, bound, event."""
    assert cluster.apply(pod("web", "3")) == ["Pod default/web created"]
    assert cluster.apply({**pod("web", "3"), "metadata": {"name": "web", "labels": {"a": "b"}}}) == [
        "Pod default/web changed"
    ]
    assert cluster.where() == {"web": None}
    with cluster.scheduler():
        assert cluster.wait(lambda c: c.where()["web"], 30)
        assert cluster.wait(lambda c: c.events("web"), 10)
    assert cluster.where() == {"web": "n2"}
    assert [(e["reason"], e["note"]) for e in cluster.events("web")] == [
        ("Scheduled", "Successfully assigned default/web to n2")
    ]


def test_another_schedulers_pods_are_left_alone(cluster: Any) -> None:
    """By `schedulerName`."""
    cluster.apply([pod("ours"), pod("theirs", schedulerName="other")])
    with cluster.scheduler():
        assert cluster.wait(lambda c: c.where()["ours"], 30)
    assert cluster.where()["theirs"] is None


def test_a_copy_decides_and_the_cluster_does_not_move(cluster: Any) -> None:
    """`lab()` is a lab of its own."""
    cluster.apply(pod("web", "3"))
    lab = cluster.lab()
    assert [t.node for t in lab.run()] == ["n2"]
    assert cluster.where() == {"web": None}


def test_refusals_name_the_object(cluster: Any) -> None:
    """InputError, with the API's words; a wait that does not come true says so."""
    with pytest.raises(InputError, match=r"Pod bad: .*spec.containers: Required value"):
        cluster.apply({**pod("bad"), "spec": {"containers": []}})
    assert cluster.wait(lambda c: c.where().get("bad"), 0.1) is False


def test_no_cluster_is_said_in_words(tmp_path: Any) -> None:
    """Neither a file that is not there nor a server that is down gives a traceback of a library."""
    with pytest.raises(LabError, match="kubeconfig"):
        Lab.connect(tmp_path / "none")
    with Lab(NODES).serve(kubeconfig=tmp_path / "kubeconfig") as server:
        assert server.running
    with pytest.raises(LabError, match="does not answer"):
        Lab.connect(tmp_path / "kubeconfig")
