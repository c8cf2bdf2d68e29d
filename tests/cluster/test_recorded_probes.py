"""Requests that were sent to the real kube-apiserver 1.36, and its answers: ours are the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from labkit.cluster.store import Store

from .asgi import Api, Clock, node, pod

PROBES = [
    json.loads(line)
    for line in (Path(__file__).parent / "recordings" / "probes.jsonl").read_text().splitlines()
]
# Values that no two servers share.
_OWN = {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "lastTransitionTime", "continue"}
# What the real cluster had and this one has not: a controller manager, and an older history.
_ELSEWHERE = {
    "node later (kcm)": "the node controller changes taints",
    "node later": "the node controller changes taints",
    "uncordon": "the node controller changes taints",
    "node status": "the node controller adds an annotation",
    "status through main is ignored": "the node controller adds an annotation",
    "spec through status ignored, labels?": "the node controller adds an annotation",
    "page2": "continue tokens belong to one server",
    "page3": "continue tokens belong to one server",
    "bad continue": "the words of Go's JSON parser",
    "expired continue 410": "this history is not compacted",
    "list resourceVersion=1&resourceVersionMatch=Exact": "this history is not compacted",
    "nodes limit 1 (no selector)": "the nodes were made by others",
    "list resourceVersion=0": "the nodes were made by others",
    "list resourceVersion=1": "the nodes were made by others",
    "get rv=0": "the nodes were made by others",
    "put without rv (unconditional)": "names the uid of another life of the pod",
}


def _wash(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: "*" if k in _OWN and v else _wash(v) for k, v in value.items() if k != "managedFields"}
    if isinstance(value, list):
        return [_wash(v) for v in value]
    if isinstance(value, str):
        value = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,}", "<uid>", value)
        value = re.sub(r"gen-\w{5}", "gen-*", value)
        value = re.sub(r"current: \d+", "current: *", value)
        # The difference of two Go structs follows this sentence.
        return re.sub(r"(if it was previously negative\)).*", r"\1", value, flags=re.DOTALL)
    return value


class _Replay:
    """Sends a recorded request with the uids, versions and names that this server gave instead."""

    def __init__(self) -> None:
        self.api = Api(Store(Clock(), taint_new_nodes=True))
        zone = {"labels": {"topology.kubernetes.io/zone": "z0"}}
        for manifest in (
            node("node-0", metadata=zone),
            node("node-1", metadata=zone),
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "high"},
                "value": 1000,
            },
            pod("p1", nodeName="node-0"),
            _DEPLOYMENT,
        ):
            self.api.store.create(manifest)
        deployment = self.api.store.get("Deployment", "web")
        self.api.store.update({**deployment, "status": {"replicas": 1}}, "status")
        self.ours: dict[str, str] = {}

    def send(self, probe: dict[str, Any]) -> Any:
        """The answer; remembers what was recorded against what came."""
        if probe["label"] == "create d10":  # the class was deleted between two recorded requests
            self.api.store.delete("PriorityClass", "gd")
        path, body = probe["path"], probe.get("body")
        for recorded, own in self.ours.items():
            path = path.replace(recorded, own)
        if isinstance(body, dict) and probe["method"] == "PUT":
            meta = {k: self.ours.get(v, v) if isinstance(v, str) else v for k, v in body["metadata"].items()}
            body = {**body, "metadata": meta}
        if isinstance(body, str):
            body = body.encode()
        answer = self.api.call(
            probe["method"], path, body, probe.get("contentType"), probe.get("accept") or "application/json"
        )
        try:
            found = answer.json
        except ValueError:
            found = answer.body.decode()
        self._learn(probe["resp"], found)
        return answer.status, found

    def _learn(self, recorded: Any, found: Any) -> None:
        if not (isinstance(recorded, dict) and isinstance(found, dict)):
            return
        for key in ("uid", "resourceVersion", "name"):
            was, now = (o.get("metadata", {}).get(key) for o in (recorded, found))
            if was and now and was != now:
                self.ours[was] = now


_DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}


@pytest.mark.parametrize("file", ["probe1", "probe2", "probe4"])
def test_answers_as_recorded(file: str) -> None:
    """Each recorded request, in order -> the recorded status and body."""
    replay = _Replay()
    different = []
    compared = 0
    for probe in (p for p in PROBES if p["file"] == file):
        status, found = replay.send(probe)
        if probe["label"] in _ELSEWHERE:
            continue
        compared += 1
        expected = (probe["status"], _wash(probe["resp"]))
        if (status, _wash(found)) != expected:
            different.append((probe["label"], expected, (status, _wash(found))))
    assert different == []
    assert compared > 40
