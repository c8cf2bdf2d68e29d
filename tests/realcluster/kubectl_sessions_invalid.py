"""Objects that are refused, in the same words by both servers."""

from __future__ import annotations

import json
from typing import Any

from .transcripts import Step


def _text(*manifests: dict[str, Any]) -> str:
    return "\n---\n".join(json.dumps(manifest) for manifest in manifests)


def _config_map(name: str, size: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "y" * size}}


INVALID_SESSIONS: dict[str, list[Step]] = {
    "what is invalid": [
        Step("create -f -", _text(_config_map("a", 1 << 20))),
        Step("create -f -", _text(_config_map("b", (1 << 20) + 1))),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": "s"},
                    "stringData": {"x": "y" * ((1 << 20) + 1)},
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s2"}, "stringData": {"x": "abc"}}
            ),
        ),
        Step("get secret s2 -o yaml"),
        Step("annotate cm a big=" + "z" * 90000),
        Step("get cm a -o jsonpath='{.metadata.name}'"),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "ann", "annotations": {"a": "z" * 300000}},
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "badkey"},
                    "data": {"a b": "1"},
                }
            ),
        ),
        Step(
            "create -f -", _text({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x" * 254}})
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "Bad.Name"},
                    "spec": {"ports": [{"port": 0}]},
                }
            ),
        ),
        Step("create -f -", _text({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}})),
        Step(
            "create -f -",
            _text(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fin", "finalizers": ["bad"]}}
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {
                        "name": "own",
                        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "", "uid": ""}],
                    },
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"generateName": "gen-", "namespace": "nosuch"},
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "batch/v1",
                    "kind": "CronJob",
                    "metadata": {"name": "c"},
                    "spec": {
                        "schedule": "bad",
                        "jobTemplate": {
                            "spec": {
                                "template": {
                                    "spec": {
                                        "containers": [{"name": "c", "image": "i"}],
                                        "restartPolicy": "Never",
                                    }
                                }
                            }
                        },
                    },
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "metadata": {"name": "c"},
                    "spec": {
                        "parallelism": -1,
                        "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
                    },
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "policy/v1",
                    "kind": "PodDisruptionBudget",
                    "metadata": {"name": "c"},
                    "spec": {"minAvailable": "150%"},
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "v1",
                    "kind": "LimitRange",
                    "metadata": {"name": "c"},
                    "spec": {"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]},
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "v1",
                    "kind": "ResourceQuota",
                    "metadata": {"name": "c"},
                    "spec": {"hard": {"nonsense": "1"}},
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolume",
                    "metadata": {"name": "c"},
                    "spec": {"capacity": {"storage": "1Gi"}},
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {"name": "c"},
                    "spec": {"accessModes": ["Nope"], "resources": {"requests": {"storage": "1Gi"}}},
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {"name": "c"},
                    "provisioner": "",
                    "volumeBindingMode": "Bad",
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "RoleBinding",
                    "metadata": {"name": "c"},
                    "roleRef": {"kind": "Bad", "name": "x", "apiGroup": "rbac.authorization.k8s.io"},
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": "c"},
                    "spec": {"leaseDurationSeconds": 0},
                }
            ),
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaim",
                    "metadata": {"name": "c"},
                    "spec": {"devices": {"requests": [{"name": "r"}]}},
                }
            ),
        ),
    ]
}
