"""Volumes and claims in use are not deleted: the finalizers that say so, and when they are taken off.

Every claim and volume is created with its finalizer. A claim keeps it while a pod uses it, a volume while it is
bound to a claim; what is not in use goes at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.cluster.store_types import POD, ResourceType, resource_type

if TYPE_CHECKING:
    from labkit.cluster.store import Store

Json = dict[str, Any]
CLAIM, VOLUME = resource_type("PersistentVolumeClaim"), resource_type("PersistentVolume")
FINALIZERS = {CLAIM: "kubernetes.io/pvc-protection", VOLUME: "kubernetes.io/pv-protection"}


def protect(resource: ResourceType, obj: Json) -> None:
    """Add the finalizer at create."""
    finalizer = FINALIZERS.get(resource)
    if finalizer is not None:
        present = obj["metadata"].setdefault("finalizers", [])
        if finalizer not in present:
            present.append(finalizer)


def finalizers_in_force(store: Store, resource: ResourceType, obj: Json) -> list[str]:
    """The object's finalizers, without the protection of what nobody uses."""
    found = list(obj["metadata"].get("finalizers") or ())
    finalizer = FINALIZERS.get(resource)
    if finalizer in found and not _in_use(store, resource, obj):
        found.remove(finalizer)
    return found


def _in_use(store: Store, resource: ResourceType, obj: Json) -> bool:
    if resource is VOLUME:
        return bool((obj.get("status") or {}).get("phase") == "Bound")
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    return any(
        key.startswith(f"{namespace}/") and _uses(pod, name) and _may_run(pod)
        for key, pod in store.objects(POD).items()
    )


def _may_run(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName")) and (pod.get("status") or {}).get("phase") not in (
        "Succeeded",
        "Failed",
    )


def _uses(pod: Json, claim: str) -> bool:
    for volume in pod["spec"].get("volumes") or ():
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == claim:
            return True
        if volume.get("ephemeral") is not None and f"{pod['metadata']['name']}-{volume.get('name')}" == claim:
            return True
    return False


def release(store: Store, changed: ResourceType) -> None:
    """Let go what was waiting for the change of a pod or a claim."""
    for resource, finalizer in FINALIZERS.items():
        if changed not in (POD, CLAIM, resource):
            continue
        for key in sorted(
            k for k, o in store.objects(resource).items() if "deletionTimestamp" in o["metadata"]
        ):
            obj = store.objects(resource).get(key)
            if obj is None or finalizer not in (obj["metadata"].get("finalizers") or ()):
                continue
            left = finalizers_in_force(store, resource, obj)
            if finalizer in left:
                continue
            meta = {k: v for k, v in obj["metadata"].items() if k != "finalizers"}
            new = {**obj, "metadata": {**meta, "finalizers": left} if left else meta}
            store.commit(resource, obj, new, remove=not left)
