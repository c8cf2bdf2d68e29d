"""Workloads and services that are refused or completed, in the same way by both servers."""

from __future__ import annotations

import json
from typing import Any

from .transcripts import Step

_ADDRESS_IN_USE = "10.96.0.1"


def _set(kind: str, *, pod: dict[str, Any] | None = None, **spec: Any) -> Step:
    container = {"name": "a", "image": "b"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container], **(pod or {})}}
    wanted = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": {k: v for k, v in wanted.items() if v is not None},
    }
    return Step("create -f - --dry-run=server", json.dumps(manifest))


def _rolling(**bounds: Any) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": bounds}


def _service(name: str, **spec: Any) -> Step:
    given = {"ports": [{"port": 80, "name": "a"}], **spec}
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": given}
    return Step("create -f -", json.dumps(manifest))


def _ports(*numbers: int, **port: Any) -> list[dict[str, Any]]:
    return [{"port": 80 + i, "name": f"p{i}", "nodePort": n, **port} for i, n in enumerate(numbers)]


_NEGATIVE = {"minReadySeconds": -1, "revisionHistoryLimit": -1}
_ENDING = {"restartPolicy": "Never", "activeDeadlineSeconds": 3}
_OTHER = {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}

SETS_SESSIONS: dict[str, list[Step]] = {
    "workloads that are refused": [
        _set("Deployment", strategy=_rolling(maxSurge=0, maxUnavailable=0)),
        _set("Deployment", strategy=_rolling(maxSurge="0%", maxUnavailable="0%")),
        _set("Deployment", strategy=_rolling(maxSurge="x", maxUnavailable="110%")),
        _set("Deployment", strategy=_rolling(maxSurge=-1, maxUnavailable=-1)),
        _set("Deployment", strategy={"type": "Foo"}),
        _set("Deployment", strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
        _set("Deployment", progressDeadlineSeconds=-1, **_NEGATIVE),
        _set("Deployment", minReadySeconds=10, progressDeadlineSeconds=5),
        _set("DaemonSet", updateStrategy=_rolling(maxSurge=0, maxUnavailable=0)),
        _set("DaemonSet", updateStrategy=_rolling(maxSurge=1, maxUnavailable=1)),
        _set("DaemonSet", updateStrategy=_rolling(maxSurge="110%", maxUnavailable=0)),
        _set("DaemonSet", updateStrategy=_rolling(maxSurge="x", maxUnavailable=-1)),
        _set("DaemonSet", updateStrategy={"type": "Foo"}),
        _set("DaemonSet", updateStrategy={"type": "OnDelete"}, **_NEGATIVE),
        _set("StatefulSet", podManagementPolicy="Foo"),
        _set("StatefulSet", updateStrategy={"type": "Foo"}),
        _set("StatefulSet", updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
        _set("StatefulSet", updateStrategy=_rolling(partition=-1)),
        _set("StatefulSet", serviceName="Bad Name", ordinals={"start": -1}),
        _set("StatefulSet", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Foo"}),
        *(
            step
            for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
            for step in (
                _set(kind, selector=None),
                _set(kind, selector={}),
                _set(kind, selector=_OTHER),
                _set(
                    kind, pod=_ENDING, minReadySeconds=-1, **({} if kind == "DaemonSet" else {"replicas": -1})
                ),
            )
        ),
    ],
    "services": [
        _service("np", type="NodePort", ports=_ports(30080)),
        Step("get svc np -o yaml"),
        Step("get svc np"),
        _service("taken", type="NodePort", ports=_ports(30080)),
        _service("low", type="NodePort", ports=_ports(80)),
        _service("twice", type="NodePort", ports=_ports(30081, 30081)),
        _service("lb", type="LoadBalancer", ports=_ports(30090)),
        Step("get svc lb -o yaml"),
        _service("inside", ports=_ports(30082)),
        _service("address", clusterIP=_ADDRESS_IN_USE),
        _service("address", clusterIP="1.2.3.4"),
        _service("address", clusterIP="x"),
        _service("name", type="ExternalName", externalName="a.b", ports=None),
        Step("get svc name -o yaml"),
        _service("ports", ports=[{"port": 80}, {"port": 81}]),
        _service("ports", ports=[{"port": 0}]),
        _service("type", type="Foo"),
        _service("Name"),
        _service("none", ports=[]),
        Step('patch svc np -p \'{"spec":{"type":"ClusterIP"}}\''),
        Step("get svc np -o yaml"),
        Step('patch svc np -p \'{"spec":{"clusterIP":"10.96.0.77"}}\''),
        Step("create service nodeport n --tcp=80:8080 --node-port=30100"),
        Step("create service clusterip headless --clusterip=None"),
        Step("create deployment web --image=i --replicas=3"),
        Step("get deploy web --subresource=scale"),
    ],
}
