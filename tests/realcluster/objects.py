"""Node and pod manifests for tests, as plain dictionaries that both servers accept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

JSON = dict[str, Any]


def make_node(
    name: str,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: int = 110,
    labels: dict[str, str] | None = None,
    taints: Sequence[JSON] = (),
    **spec: Any,
) -> JSON:
    """A Ready node with that much to allocate; ``spec`` adds fields such as ``unschedulable=True``."""
    resources = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {**({"taints": list(taints)} if taints else {}), **spec},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def make_pod(
    name: str,
    cpu: str | None = None,
    memory: str | None = None,
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    scheduler: str = "default-scheduler",
    grace: int = 0,
    **spec: Any,
) -> JSON:
    """A pod of one container with those requests; ``spec`` adds fields such as ``affinity={...}``.

    ``grace`` is its termination grace period: with 0 a preempted pod is gone at once, without a kubelet.
    """
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    container: JSON = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    if requests:
        container["resources"] = {"requests": requests}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": grace,
            "containers": [container],
            **spec,
        },
    }


def make_priority_class(name: str, value: int, **fields: Any) -> JSON:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }
