"""What every cluster has from its first second: namespaces, priority classes, the service `kubernetes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.cluster import store_writes
from labkit.cluster.store_metadata import DEFAULT_OPTIONS

if TYPE_CHECKING:
    from labkit.cluster.store import Store

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITY_CLASSES = (
    (
        "system-cluster-critical",
        2_000_000_000,
        "For pods that the cluster cannot do without; they may move to another node.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "For pods that a node cannot do without; they stay where they are.",
    ),
)


def bootstrap(store: Store) -> None:
    """Create them in an empty store."""
    for name in NAMESPACES:
        _create(store, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for name, value, description in _PRIORITY_CLASSES:
        _create(
            store,
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "description": description,
            },
        )
    _create(
        store,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "clusterIP": "10.96.0.1",
                "ports": [{"name": "https", "port": 443, "targetPort": 6443, "protocol": "TCP"}],
            },
        },
    )


def _create(store: Store, obj: dict[str, Any]) -> None:
    store_writes.create(store, obj, None, DEFAULT_OPTIONS)
