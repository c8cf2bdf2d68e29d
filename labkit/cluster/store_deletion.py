"""Deletion: grace periods, finalizers, namespaces (spec 20 §8.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.cluster.store_errors import ApiError, forbidden, not_found
from labkit.cluster.store_metadata import WriteOptions, check_delete_preconditions
from labkit.cluster.store_protection import finalizers_in_force
from labkit.cluster.store_times import format_time, seconds_of
from labkit.cluster.store_types import ResourceType, stored_type

if TYPE_CHECKING:
    from labkit.cluster.store import Store

Json = dict[str, Any]
PROTECTED_NAMESPACES = ("default", "kube-system", "kube-public")
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


def delete(
    store: Store,
    resource: ResourceType,
    name: str,
    namespace: str | None,
    grace: int | None,
    preconditions: Json | None,
    propagation: str | None,
    options: WriteOptions,
) -> Json:
    """Delete one object, or mark it; returns its last state or its present one."""
    old = store.peek(resource, name, namespace)
    if old is None:
        raise not_found(resource, name)
    kept = stored_type(resource)
    check_delete_preconditions(resource, old, preconditions)
    if propagation not in (None, "", "Background", "Foreground", "Orphan"):
        raise ApiError(
            422,
            "Invalid",
            f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "{propagation}": supported '
            'values: "Foreground", "Background", "Orphan", "nil"',
            {"group": "meta.k8s.io", "kind": "DeleteOptions"},
        )
    if grace is not None and grace < 0:
        grace = 1 if kept.kind == "Pod" else 0
    if kept.kind == "Namespace":
        return _delete_namespace(store, kept, old, options)
    if kept.kind == "Pod":
        return _delete_pod(store, kept, old, grace, options)
    waits = finalizers_in_force(store, kept, old) or _waits_for_dependents(store, propagation)
    if not waits:
        last = _copy(old)
        return last if options.dry_run else store.commit(kept, old, last, remove=True)
    if "deletionTimestamp" in old["metadata"]:
        return old
    marked = _copy(old)
    _mark(kept, marked, 0, store.clock.now())
    if extra := _waits_for_dependents(store, propagation):
        marked["metadata"]["finalizers"] = [*(old["metadata"].get("finalizers") or ()), extra]
    return marked if options.dry_run else store.commit(kept, old, marked)


def _waits_for_dependents(store: Store, propagation: str | None) -> str | None:
    # Only where a garbage collector runs, which takes these finalizers off again.
    if not store.has_garbage_collector:
        return None
    return {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(propagation or "")


def _copy(obj: Json) -> Json:
    return {**obj, "metadata": dict(obj["metadata"])}


def _mark(resource: ResourceType, obj: Json, grace: int, now: float) -> None:
    meta = obj["metadata"]
    meta["deletionTimestamp"] = format_time(now + grace)
    meta["deletionGracePeriodSeconds"] = grace
    if resource.has_generation:
        meta["generation"] = int(meta.get("generation", 0)) + 1


def _delete_pod(
    store: Store, resource: ResourceType, old: Json, grace: int | None, options: WriteOptions
) -> Json:
    meta, spec = old["metadata"], old["spec"]
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds")
        grace = 30 if grace is None else max(int(grace), 1) if int(grace) < 0 else int(grace)
    if not spec.get("nodeName") or (old.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        grace = 0
    marked: Json = old
    if "deletionTimestamp" not in meta:
        marked = _copy(old)
        _mark(resource, marked, grace, store.clock.now())
        if not options.dry_run:
            store.commit(resource, old, marked)
    elif grace < int(meta.get("deletionGracePeriodSeconds", 0)):
        marked = _copy(old)
        begun = seconds_of(meta["deletionTimestamp"]) - int(meta["deletionGracePeriodSeconds"])
        marked["metadata"]["deletionTimestamp"] = format_time(begun + grace)
        marked["metadata"]["deletionGracePeriodSeconds"] = grace
        if not options.dry_run:
            store.commit(resource, old, marked)
    grace_left = int(marked["metadata"].get("deletionGracePeriodSeconds", 0))
    if options.dry_run or grace_left > 0 or grace > 0 or meta.get("finalizers"):
        return marked
    current = store.peek(resource, meta["name"], meta["namespace"])
    # A subscriber may have been faster.
    return store.commit(resource, current, _copy(marked), remove=True) if current is not None else marked


def finish(store: Store, resource: ResourceType, old: Json, new: Json) -> Json:
    """Remove an object whose last finalizer has gone; returns its last state."""
    answer = _copy(new)
    store.commit(resource, old, new, remove=True)
    answer["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    return answer


def _delete_namespace(store: Store, resource: ResourceType, old: Json, options: WriteOptions) -> Json:
    name = old["metadata"]["name"]
    if name in PROTECTED_NAMESPACES:
        raise forbidden(resource, name, "this namespace may not be deleted")
    if "deletionTimestamp" in old["metadata"]:
        if not old["spec"].get("finalizers") and not old["metadata"].get("finalizers"):
            return store.commit(resource, old, _copy(old), remove=True)
        return old
    marked = _copy(old)
    marked["metadata"]["deletionTimestamp"] = store.now_text()
    marked["status"] = {**(old.get("status") or {}), "phase": "Terminating"}
    return marked if options.dry_run else store.commit(resource, old, marked)


def finalize_namespace(store: Store, name: str) -> bool:
    """Delete what a Terminating namespace holds, then the namespace; False while something is left.

    What a namespace controller does; pods keep their grace period.
    """
    resource = store.resource("Namespace")
    with store.lock:
        namespace = store.peek(resource, name)
        if namespace is None:
            return True
        if "deletionTimestamp" not in namespace["metadata"]:
            return False
        left = False
        for kind in store.stored_resources():
            if not kind.namespaced:
                continue
            keys = [k for k in store.objects(kind) if k.startswith(f"{name}/")]
            for key in sorted(keys):
                obj = store.objects(kind).get(key)
                if obj is not None and "deletionTimestamp" not in obj["metadata"]:
                    store.delete(kind, obj["metadata"]["name"], name)
                left = left or key in store.objects(kind)
        namespace = store.peek(resource, name)
        if left or namespace is None:
            return namespace is None
        emptied = {
            **_copy(namespace),
            "spec": {k: v for k, v in namespace["spec"].items() if k != "finalizers"},
        }
        if emptied["metadata"].get("finalizers"):
            store.commit(resource, namespace, emptied)
            return False
        store.commit(resource, namespace, emptied, remove=True)
        return True


def delete_collection(
    store: Store,
    resource: ResourceType,
    objects: list[Json],
    grace: int | None,
    propagation: str | None,
    options: WriteOptions,
) -> list[Json]:
    """Delete each of the objects; returns them as they were. What has gone meanwhile is passed over."""
    found = []
    for obj in objects:
        meta = obj["metadata"]
        try:
            delete(store, resource, meta["name"], meta.get("namespace"), grace, None, propagation, options)
            found.append(obj)
        except ApiError as e:
            if e.code != 404:
                raise
    return found


def check_options(body: Any) -> Json:
    """DeleteOptions from a request. ApiError 422 when they are of the wrong types."""
    if not isinstance(body, dict):
        return {}
    grace = body.get("gracePeriodSeconds")
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        from labkit.cluster.store_errors import bad_request

        raise bad_request(
            "json: cannot unmarshal value into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
        )
    return body
