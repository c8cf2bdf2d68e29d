"""Objects that are refused, in the same words by both servers."""

from __future__ import annotations

import json
from typing import Any

from .transcripts import Step


def _text(*manifests: dict[str, Any]) -> str:
    return "\n---\n".join(json.dumps(manifest) for manifest in manifests)


def _config_map(name: str, size: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "y" * size}}


def _cron_job(schedule: str, **spec: Any) -> str:
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}
    spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": pod}}}, **spec}
    return _text({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec})


_SCHEDULES = (
    *("* * * *", "60 * * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "5-3 * * * *", "*/0 * * * *"),
    *("a * * * *", "1-2-3 * * * *", "1/2/3 * * * *", "-1 * * * *", "1- * * * *", "*-5 * * * *", "? * ? * ?"),
    *("1,,2 * * * *", "5/10 * * * *", "*/70 * * * *", "* * * jan-mar mon", "0 0 30 2 *", "1.5 * * * *", ""),
    *("@foo", "@daily", "@every", "@every x", "@every 5m", "TZ=UTC * * * * *", f"{'9' * 20} * * * *"),
)
_ZONES = ("UTC", "Europe/Berlin", "Foo", "Local", "", " UTC")

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
    ],
    "schedules": [
        *(Step("create -f - --dry-run=server", _cron_job(schedule)) for schedule in _SCHEDULES),
        *(Step("create -f - --dry-run=server", _cron_job("@daily", timeZone=zone)) for zone in _ZONES),
        Step("create -f -", _cron_job("@daily", concurrencyPolicy="x", startingDeadlineSeconds=-1)),
        Step("create -f -", _cron_job("@daily", successfulJobsHistoryLimit=-1, failedJobsHistoryLimit=-2)),
    ],
}
