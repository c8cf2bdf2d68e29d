"""Binding and eviction of pods (spec 20 §8.4, §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.cluster.store_errors import ApiError, conflict, internal, not_found, uid_conflict
from labkit.cluster.store_metadata import WriteOptions
from labkit.cluster.store_selectors import Match
from labkit.cluster.store_types import NODE, PDB, POD

if TYPE_CHECKING:
    from labkit.cluster.store import Store

Json = dict[str, Any]
_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def check_target(target: Any) -> str:
    """The node that a Binding names. ApiError 500, as the real server has it, when it names none."""
    target = target if isinstance(target, dict) else {}
    kind = target.get("kind") or ""
    if kind not in ("", "Node"):
        raise internal(f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        raise internal("target.name: Required value")
    return str(target["name"])


def bind(
    store: Store,
    namespace: str,
    name: str,
    uid: str | None,
    node: str,
    annotations: dict[str, str] | None,
    labels: dict[str, str] | None,
    options: WriteOptions,
    *,
    topology: bool = True,
) -> None:
    """Assign a pod to a node, which need not exist; with `topology` it gets the node's zone and region."""
    old = store.peek(POD, name, namespace)
    if old is None:
        raise not_found(POD, name)
    meta, spec, status = old["metadata"], old["spec"], old.get("status") or {}
    if uid and uid != meta["uid"]:
        raise uid_conflict(POD, f"{namespace}/{name}", name, uid, meta["uid"])
    if not node:
        raise internal("target.name: Required value")
    if "deletionTimestamp" in meta:
        raise conflict(POD, name, f"pod {name} is being deleted, cannot be assigned to a host", "binding")
    if spec.get("nodeName"):
        raise conflict(POD, name, f'pod {name} is already assigned to node "{spec["nodeName"]}"', "binding")
    if spec.get("schedulingGates"):
        raise conflict(POD, name, f"pod {name} has non-empty .spec.schedulingGates", "binding")
    if options.dry_run:
        return
    new_meta = dict(meta)
    if annotations:
        new_meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
    places = _topology_of(store, node) if topology and store.admission else {}
    if labels or places:
        new_meta["labels"] = {**(meta.get("labels") or {}), **(labels or {}), **places}
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": store.now_text(),
    }
    conditions = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
    position = next(
        (i for i, c in enumerate(status.get("conditions") or ()) if c.get("type") == "PodScheduled"), None
    )
    conditions.insert(len(conditions) if position is None else position, scheduled)
    new_status = {**status, "conditions": conditions}
    new_status.pop("nominatedNodeName", None)
    new = {**old, "metadata": new_meta, "spec": {**spec, "nodeName": node}, "status": new_status}
    if options.field_manager:
        from labkit.cluster import store_apply

        store_apply.track(POD, old, new, options.field_manager, store.now_text(), "binding")
    store.commit(POD, old, new)


def _topology_of(store: Store, node: str) -> dict[str, str]:
    found = store.peek(NODE, node)
    labels = (found["metadata"].get("labels") if found else None) or {}
    return {key: labels[key] for key in _TOPOLOGY_LABELS if labels.get(key)}


def evict(
    store: Store,
    namespace: str,
    name: str,
    grace: int | None,
    preconditions: Json | None,
    options: WriteOptions,
) -> None:
    """Delete a pod unless its disruption budget forbids."""
    from labkit.cluster import store_deletion

    pod = store.peek(POD, name, namespace)
    if pod is None:
        raise not_found(POD, name)
    status = pod.get("status") or {}
    if (
        status.get("phase") not in ("Pending", "Succeeded", "Failed")
        and "deletionTimestamp" not in pod["metadata"]
    ):
        budgets = [b for b in store.objects(PDB).values() if _covers(b, pod)]
        if len(budgets) > 1:
            raise internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        if budgets:
            _spend(store, budgets[0], pod, options)
    store_deletion.delete(store, POD, name, namespace, grace, preconditions, None, options)


def _covers(budget: Json, pod: Json) -> bool:
    if budget["metadata"].get("namespace") != pod["metadata"].get("namespace"):
        return False
    selector = budget["spec"].get("selector")
    return selector is not None and label_selector(selector)(pod)


def label_selector(selector: Json) -> Match:
    """A test of an object's labels for a LabelSelector."""
    wanted = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()

    def match(obj: Json) -> bool:
        labels = obj["metadata"].get("labels") or {}
        if any(labels.get(k) != v for k, v in wanted.items()):
            return False
        for e in expressions:
            key, operator, values = e.get("key"), e.get("operator"), e.get("values") or ()
            has = key in labels
            if operator == "In" and not (has and labels[key] in values):
                return False
            if operator == "NotIn" and has and labels[key] in values:
                return False
            if operator == "Exists" and not has:
                return False
            if operator == "DoesNotExist" and has:
                return False
        return True

    return match


def _spend(store: Store, budget: Json, pod: Json, options: WriteOptions) -> None:
    status, spec = budget.get("status") or {}, budget["spec"]
    ready = any(
        c.get("type") == "Ready" and c.get("status") == "True"
        for c in (pod.get("status") or {}).get("conditions") or ()
    )
    if not ready:
        if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
            return
        healthy, desired = int(status.get("currentHealthy", 0)), int(status.get("desiredHealthy", 0))
        if healthy >= desired and desired > 0:
            return
    name = budget["metadata"]["name"]
    if int(status.get("observedGeneration", 0)) < int(budget["metadata"].get("generation", 0)):
        raise _too_many(
            f"The disruption budget {name} is still being processed by the server.", retry_after=10
        )
    allowed = int(status.get("disruptionsAllowed", 0))
    if allowed <= 0:
        raise _too_many(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has "
            f"{status.get('currentHealthy', 0)} currently"
        )
    if options.dry_run:
        return
    disrupted = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: store.now_text()}
    new = {
        **budget,
        "metadata": dict(budget["metadata"]),
        "status": {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted},
    }
    store.commit(PDB, budget, new)


def _too_many(cause: str, retry_after: int | None = None) -> ApiError:
    return ApiError(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        {"causes": [{"reason": "DisruptionBudget", "message": cause}]},
        retry_after=retry_after,
    )
