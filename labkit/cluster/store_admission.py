"""Admission: what the cluster adds to an object, or refuses, before it is stored (spec 20 §8.6, §8.7).

The plugins that matter to scheduling: NamespaceLifecycle, Priority, DefaultTolerationSeconds, LimitRanger,
RuntimeClass, DefaultStorageClass, TaintNodesByCondition, ResourceQuota.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.cluster import store_limits, store_quota
from labkit.cluster.store_errors import Cause, forbidden, not_found
from labkit.cluster.store_protection import protect
from labkit.cluster.store_types import NAMESPACE, PRIORITY_CLASS, RUNTIME_CLASS, ResourceType, resource_type

if TYPE_CHECKING:
    from labkit.cluster.store import Store

Json = dict[str, Any]
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
TOLERATION_SECONDS = 300
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def check_namespace(store: Store, resource: ResourceType, obj: Json) -> None:
    """404 when the object's namespace is missing, 403 when it is on its way out."""
    if not resource.namespaced:
        return
    namespace = obj["metadata"]["namespace"]
    found = store.peek(NAMESPACE, namespace)
    if found is None:
        raise not_found(NAMESPACE, namespace)
    if "deletionTimestamp" in found["metadata"]:
        raise forbidden(
            resource,
            obj["metadata"].get("name", ""),
            f"unable to create new content in namespace {namespace} because it is being terminated",
            [
                Cause(
                    "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
                )
            ],
        )


def admit_create(store: Store, resource: ResourceType, obj: Json) -> None:
    """Fill in what admission plugins fill in at create."""
    kind = resource.kind
    if kind == "Pod":
        store_limits.apply_defaults(store, obj)
        _priority(store, resource, obj)
        _runtime_class(store, resource, obj)
        _tolerations(obj["spec"])
        _topology_labels(store, obj)
    elif kind == "Node" and store.taint_new_nodes:
        taints = obj["spec"].setdefault("taints", [])
        if not any(t.get("key") == NOT_READY for t in taints):
            taints.append({"key": NOT_READY, "effect": "NoSchedule"})
    elif kind == "PersistentVolumeClaim":
        protect(resource, obj)
        _default_storage_class(store, obj)
    elif kind == "PersistentVolume":
        protect(resource, obj)
    elif kind == "PriorityClass":
        _one_global_default(store, resource, obj)


def admit_update(store: Store, resource: ResourceType, old: Json, obj: Json, subresource: str | None) -> None:
    """Fill in, or refuse, what admission plugins do at update."""
    if subresource is not None:
        return
    if resource.kind == "Pod":
        # A pod says its priority once; a PUT without it means the same pod.
        for key in ("priority", "priorityClassName", "preemptionPolicy"):
            if key in old["spec"] and obj["spec"].get(key) is None:
                obj["spec"][key] = old["spec"][key]
        _tolerations(obj["spec"])
    elif resource.kind == "PriorityClass":
        _one_global_default(store, resource, obj)


def check_create(store: Store, resource: ResourceType, obj: Json) -> None:
    """Refuse what exceeds the namespace's limits and quotas."""
    if resource.kind == "Pod":
        store_limits.check(store, resource, obj)
    store_quota.check(store, resource, None, obj)


def check_update(store: Store, resource: ResourceType, old: Json, obj: Json, subresource: str | None) -> None:
    """Refuse updates that exceed the namespace's quotas."""
    if subresource in (None, "resize"):
        store_quota.check(store, resource, old, obj)


def _priority(store: Store, resource: ResourceType, pod: Json) -> None:
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    class_name = spec.get("priorityClassName") or ""
    if class_name:
        found = store.peek(PRIORITY_CLASS, class_name)
        if found is None:
            raise forbidden(resource, name, f"no PriorityClass with name {class_name} was found")
    else:
        found = _global_default(store)
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    priority = int(found["value"]) if found else 0
    policy = (found.get("preemptionPolicy") if found else None) or "PreemptLowerPriority"
    given = spec.get("priority")
    if given is not None and given != priority:
        raise forbidden(
            resource,
            name,
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {priority} from the given PriorityClass name",
        )
    given_policy = spec.get("preemptionPolicy")
    if given_policy is not None and given_policy != policy:
        raise forbidden(
            resource,
            name,
            f"the string value of PreemptionPolicy ({given_policy}) must not be provided in pod spec; priority admission "
            f"controller computed {policy} from the given PriorityClass name",
        )
    spec["priority"] = priority
    spec["preemptionPolicy"] = policy


def _global_default(store: Store) -> Json | None:
    marked = [c for c in store.objects(PRIORITY_CLASS).values() if c.get("globalDefault")]
    # Should there be several, the lowest value counts.
    return min(marked, key=lambda c: (c["value"], c["metadata"]["name"]), default=None)


def _one_global_default(store: Store, resource: ResourceType, obj: Json) -> None:
    if not obj.get("globalDefault"):
        return
    name = obj["metadata"].get("name", "")
    for other in store.objects(PRIORITY_CLASS).values():
        if other.get("globalDefault") and other["metadata"]["name"] != name:
            marked = other["metadata"]["name"]
            raise forbidden(
                resource,
                name,
                f"PriorityClass {marked} is already marked as default. Only one default can exist",
            )


def _tolerations(spec: Json) -> None:
    tolerations = spec.get("tolerations") or []
    added = []
    for key in (NOT_READY, UNREACHABLE):
        if not any(_tolerates(t, key) for t in tolerations):
            added.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": TOLERATION_SECONDS,
                }
            )
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _tolerates(toleration: Json, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def _runtime_class(store: Store, resource: ResourceType, pod: Json) -> None:
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    class_name = spec.get("runtimeClassName")
    overhead: Json | None = None
    if class_name:
        found = store.peek(RUNTIME_CLASS, class_name)
        if found is None:
            raise forbidden(resource, name, f'pod rejected: RuntimeClass "{class_name}" not found')
        overhead = (found.get("overhead") or {}).get("podFixed")
        _scheduling_of(found, resource, pod)
    if spec.get("overhead") and not overhead:
        raise forbidden(
            resource,
            name,
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        )
    if spec.get("overhead") and spec["overhead"] != overhead:
        raise forbidden(
            resource, name, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        )
    if overhead:
        spec["overhead"] = dict(overhead)


def _scheduling_of(runtime_class: Json, resource: ResourceType, pod: Json) -> None:
    scheduling = runtime_class.get("scheduling") or {}
    selector = pod["spec"].get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            raise forbidden(
                resource,
                pod["metadata"].get("name", ""),
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}",
            )
        pod["spec"].setdefault("nodeSelector", {})[key] = value
    for toleration in scheduling.get("tolerations") or ():
        present = pod["spec"].setdefault("tolerations", [])
        if toleration not in present:
            present.append(dict(toleration))


def _topology_labels(store: Store, pod: Json) -> None:
    # A pod created with a node gets the node's zone and region, as at binding.
    node = store.peek("Node", pod["spec"].get("nodeName") or "")
    labels = (node["metadata"].get("labels") if node else None) or {}
    for key in ("topology.kubernetes.io/zone", "topology.kubernetes.io/region"):
        if labels.get(key):
            pod["metadata"].setdefault("labels", {})[key] = labels[key]


def _default_storage_class(store: Store, claim: Json) -> None:
    if claim["spec"].get("storageClassName") is not None:
        return
    marked = [
        c
        for c in store.objects(resource_type("StorageClass")).values()
        if (c["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    ]
    if marked:
        newest = max(marked, key=lambda c: (c["metadata"]["creationTimestamp"], c["metadata"]["name"]))
        claim["spec"]["storageClassName"] = newest["metadata"]["name"]
