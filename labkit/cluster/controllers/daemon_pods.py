"""Which nodes a DaemonSet wants a pod on, and the pod that it makes for one of them. No cluster in here."""

from __future__ import annotations

import copy
from math import ceil
from typing import Any

from labkit.cluster.controllers.pods import pod_from
from labkit.cluster.controllers.revisions import HASH
from labkit.cluster.controllers.world import Json
from labkit.engine.informer import typed
from labkit.objects.selectors import find_untolerated_taint, required_node_affinity

GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
_GENERATION_LABEL = "pod-template-generation"
_NAME_FIELD = "metadata.name"
#: (key, effect) of what its pods bear besides what their template says: a daemon stays on a node in trouble.
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class Placement:
    """What one DaemonSet says about nodes. `node` arguments are typed ones (labkit.objects)."""

    def __init__(self, obj: Json) -> None:
        spec = copy.deepcopy(obj["spec"]["template"].get("spec") or {})
        spec["tolerations"] = _tolerations(spec)
        raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "daemon"}, "spec": spec}
        pod: Any = typed(raw, "Pod")
        self._node_name = spec.get("nodeName") or ""
        self._affinity = required_node_affinity(pod)
        self._tolerations = pod.spec.tolerations

    def of(self, node: Any) -> tuple[bool, bool]:
        """(a pod should be made there, one that is there may stay): a NoSchedule taint lets those stay that run."""
        if self._node_name not in ("", node.metadata.name) or not self._affinity.matches(node):
            return False, False
        taints = node.spec.taints
        stays = find_untolerated_taint(taints, self._tolerations, effects=("NoExecute",)) is None
        return stays and find_untolerated_taint(taints, self._tolerations) is None, stays


def daemon_pod(obj: Json, node: str, revision_hash: str) -> Json:
    """The pod for a node: the scheduler binds it, and node affinity by name leaves it only that node."""
    generation = (obj["metadata"].get("annotations") or {}).get(GENERATION_ANNOTATION)
    labels = {HASH: revision_hash, **({_GENERATION_LABEL: generation} if generation else {})}
    pod = pod_from(obj["spec"]["template"], obj, labels=labels)
    spec = pod["spec"]
    spec["tolerations"] = _tolerations(spec)
    affinity = spec.setdefault("affinity", {})
    required = affinity.setdefault("nodeAffinity", {}).setdefault(
        "requiredDuringSchedulingIgnoredDuringExecution", {}
    )
    # The template's own terms have chosen the node already.
    field = {"key": _NAME_FIELD, "operator": "In", "values": [node]}
    required["nodeSelectorTerms"] = [{"matchFields": [field]}]
    return pod


def node_of(pod: Json) -> str:
    """The node that a daemon's pod is on, or is meant for; empty when it cannot be told."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            values: list[str] = field.get("values") or []
            if (field.get("key"), field.get("operator"), len(values)) == (_NAME_FIELD, "In", 1):
                return str(values[0])
    return ""


def limits(obj: Json, wanted: int) -> tuple[int, int]:
    """(maxSurge, maxUnavailable) of a rolling update over `wanted` nodes; shares are rounded up."""
    rolling = (obj["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return _amount(rolling.get("maxSurge") or 0, wanted), _amount(rolling.get("maxUnavailable", 1), wanted)


def _amount(value: Any, of: int) -> int:
    return ceil(int(value[:-1]) * of / 100) if isinstance(value, str) and value.endswith("%") else int(value)


def _tolerations(spec: Json) -> list[Json]:
    found = [dict(t) for t in spec.get("tolerations") or ()]
    more = (_TOLERATED_ON_HOST_NETWORK,) if spec.get("hostNetwork") else ()
    for key, effect in (*_TOLERATED, *more):
        one = {"key": key, "operator": "Exists", "effect": effect}
        if one not in found:
            found.append(one)
    return found
