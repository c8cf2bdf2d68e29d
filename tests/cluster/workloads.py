"""Labs with controllers, and the workloads that they run."""

from __future__ import annotations

from typing import Any

from labkit import Lab

Json = dict[str, Any]


def node(name: str, **meta: Any) -> Json:
    """A node with four CPUs."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **meta},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def template(image: str = "web:1", app: str = "web", **spec: Any) -> Json:
    """A pod template."""
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container], **spec}}


def workload(kind: str, replicas: int = 3, name: str = "web", image: str = "web:1", **spec: Any) -> Json:
    """A Deployment, ReplicaSet or StatefulSet; `pod` is what its pods' spec has besides a container."""
    pod = spec.pop("pod", {})
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template(image, name, **pod),
            **spec,
        },
    }


def lab(*objects: Json, nodes: int = 3) -> Lab:
    """A lab with controllers and nodes n0, n1, …"""
    return Lab([*(node(f"n{i}") for i in range(nodes)), *objects], controllers=True)


def get(lab: Lab, kind: str, name: str = "web") -> Json:
    """An object of the namespace default."""
    found: Json = lab.client.get(kind, name, "default")
    return found


def patch(lab: Lab, kind: str, spec: Json, name: str = "web") -> None:
    """Change the spec of an object, as a user would."""
    lab.client.patch(kind, name, "default", {"spec": spec}, "merge")
    lab.advance(0)


def phases(lab: Lab) -> list[str]:
    """Phases of all pods that are not being deleted."""
    return sorted(p["status"]["phase"] for p in lab.pods() if "deletionTimestamp" not in p["metadata"])


def names(lab: Lab, *, terminating: bool = False) -> list[str]:
    """Names of pods that are not being deleted, or (`terminating`) that are."""
    return sorted(
        p["metadata"]["name"] for p in lab.pods() if ("deletionTimestamp" in p["metadata"]) == terminating
    )


def reasons(obj: Json) -> dict[str, tuple[str, str]]:
    """Condition -> (status, reason)."""
    return {c["type"]: (c["status"], c["reason"]) for c in obj["status"].get("conditions") or ()}
