"""What each kind's writer may decide: status at create, spec and status apart at update (spec 20 §8.1, §8.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.cluster import store_services
from labkit.cluster.store_errors import Cause, invalid
from labkit.cluster.store_types import ResourceType
from labkit.objects.quantity import Quantity, parse_quantity

if TYPE_CHECKING:
    from labkit.cluster.store import Store

Json = dict[str, Any]
# These keep the status that they are created with.
_STATUS_AT_CREATE = ("Node", "ComponentStatus")
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


def begins_status(resource: ResourceType) -> bool:
    """Whether the status of a new object is the server's, whatever the body says."""
    return resource.has_status and resource.kind not in _STATUS_AT_CREATE


def prepare_create(store: Store, resource: ResourceType, obj: Json) -> None:
    """Set what the server alone decides at create."""
    kind = resource.kind
    if kind == "Pod":
        if not store.pod_groups:
            obj["spec"].pop("schedulingGroup", None)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}
        if obj["spec"].get("schedulingGates"):
            obj["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": store.now_text(),
                    "reason": "SchedulingGated",
                    "message": GATED_MESSAGE,
                }
            ]
        return
    if begins_status(resource):
        obj["status"] = resource.schema.fields["status"].decode({}, [])
    if kind == "Namespace":
        finalizers = obj["spec"].setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        obj["status"] = {"phase": "Active"}
        obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"].get(
            "name", ""
        )
    elif kind in ("PersistentVolume", "PersistentVolumeClaim"):
        obj["status"]["phase"] = "Pending"
        if kind == "PersistentVolume":
            obj["status"]["lastPhaseTransitionTime"] = store.now_text()
    elif kind == "DaemonSet":
        _template_generation(obj, 1)
    elif kind == "Service":
        obj["status"] = {"loadBalancer": {}}
    elif kind == "Job":
        _job_selector(obj)


def allocate(store: Store, resource: ResourceType, obj: Json) -> None:
    """Hand out what exists once: cluster IPs, node ports."""
    if resource.kind == "Service":
        store_services.allocate(store, obj)


def _job_selector(obj: Json) -> None:
    spec = obj["spec"]
    if spec.get("manualSelector"):
        return
    uid, name = obj["metadata"]["uid"], obj["metadata"].get("name", "")
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    labels.update(
        {
            "controller-uid": uid,
            "job-name": name,
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
        }
    )
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    # A job without labels of its own has its template's.
    obj["metadata"].setdefault("labels", dict(labels))


def _template_generation(obj: Json, generation: int) -> None:
    obj["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = str(generation)


def prepare_update(
    store: Store, resource: ResourceType, old: Json, obj: Json, subresource: str | None
) -> None:
    """Put back what this way of writing does not write."""
    if subresource == "status":
        for key in [k for k in obj if k not in ("metadata", "status", "kind", "apiVersion")]:
            if key not in old:
                del obj[key]
        for key, value in old.items():
            if key not in ("metadata", "status"):
                obj[key] = value
        if "ownerReferences" in old["metadata"]:
            obj["metadata"]["ownerReferences"] = old["metadata"]["ownerReferences"]
        else:
            obj["metadata"].pop("ownerReferences", None)
        if resource.kind == "Pod":
            _pod_status_update(resource, old, obj)
        return
    if resource.has_status and "status" in old:
        obj["status"] = old["status"]
    if subresource == "finalize":
        obj["metadata"] = dict(old["metadata"])
    elif resource.kind == "Namespace":
        obj["spec"] = old["spec"]
    elif subresource == "ephemeralcontainers":
        wanted = obj["spec"].get("ephemeralContainers")
        obj["spec"] = {**old["spec"], **({"ephemeralContainers": wanted} if wanted else {})}
    elif subresource == "resize":
        _only_resources(old, obj)
    elif resource.kind == "DaemonSet":
        before = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1")
        known = int(before) if before.isdigit() else 1
        _template_generation(obj, known + (old["spec"].get("template") != obj["spec"].get("template")))
    elif resource.kind == "Service":
        store_services.let_go(old, obj)
        store_services.allocate(store, obj, old)


def _pod_status_update(resource: ResourceType, old: Json, obj: Json) -> None:
    # The QoS class is decided once, at create.
    obj["status"].setdefault("qosClass", (old.get("status") or {}).get("qosClass"))
    nominated = obj["status"].get("nominatedNodeName")
    if (
        nominated
        and nominated != (old.get("status") or {}).get("nominatedNodeName")
        and old["spec"].get("nodeName")
    ):
        raise invalid(
            resource,
            old["metadata"]["name"],
            [
                Cause(
                    "FieldValueForbidden",
                    "Forbidden: may not be set on pods that are already bound to a node",
                    "status.nominatedNodeName",
                )
            ],
        )


def _only_resources(old: Json, obj: Json) -> None:
    spec = dict(old["spec"])
    for key in ("containers", "initContainers"):
        wanted = {c["name"]: c.get("resources") for c in obj["spec"].get(key) or ()}
        if key in spec:
            spec[key] = [{**c, "resources": wanted.get(c["name"], c.get("resources", {}))} for c in spec[key]]
    obj["spec"] = spec


_COMPUTE = ("cpu", "memory")


def qos_class(spec: Json) -> str:
    """BestEffort, Burstable or Guaranteed, from requests and limits of cpu and memory."""
    pod_level = spec.get("resources") or {}
    if pod_level.get("requests") or pod_level.get("limits"):
        groups = [pod_level]
    else:
        groups = [
            c.get("resources") or {} for k in ("containers", "initContainers") for c in spec.get(k) or ()
        ]
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    for resources in groups:
        _add(requests, resources.get("requests"))
        guaranteed = guaranteed and _add(limits, resources.get("limits")) == len(_COMPUTE)
    if not requests and not limits:
        return "BestEffort"
    if guaranteed and limits.keys() == requests.keys() and limits == requests:
        return "Guaranteed"
    return "Burstable"


def _add(sums: dict[str, Quantity], amounts: Json | None) -> int:
    """Add amounts of cpu and memory; returns how many there were."""
    count = 0
    for name in _COMPUTE:
        amount = amounts.get(name) if amounts else None
        if amount is not None and (quantity := parse_quantity(amount)):
            sums[name] = sums[name] + quantity if name in sums else quantity
            count += 1
    return count
