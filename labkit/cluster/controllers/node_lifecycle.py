"""Nodes that fall silent: Ready turns Unknown, taints follow the conditions (spec 20 §8.7)."""

from __future__ import annotations

from labkit.cluster.controllers.world import Controller, Json, Key, World, key_of
from labkit.cluster.store_times import format_time

SOURCE = "node-controller"
#: How long a node may be silent.
GRACE_SECONDS = 40.0
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_LEASES = "kube-node-lease"
#: Conditions besides Ready that taint while they are True.
_BY_CONDITION = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OURS = {NOT_READY, UNREACHABLE, _UNSCHEDULABLE, *_BY_CONDITION.values()}


class NodeLifecycleController(Controller):
    """A heartbeat is a renewed lease or a status that was posted; what counts is when it was seen here."""

    kinds = ("Node", "Lease", "Pod")

    def __init__(self, world: World, grace_seconds: float = GRACE_SECONDS) -> None:
        super().__init__(world)
        self._grace = grace_seconds
        #: node -> (its last heartbeat, when that was seen).
        self._seen: dict[str, tuple[object, float]] = {}
        self._checks: dict[str, float] = {}
        #: Nodes that are not Ready.
        self._away: set[str] = set()

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """A node, or its lease."""
        obj = new if new is not None else old
        if obj is None or kind == "Pod":
            return
        if kind == "Lease" and obj["metadata"].get("namespace") != _LEASES:
            return
        name = obj["metadata"]["name"]
        self.mark(("", name))
        if kind == "Lease":
            return
        if new is None:
            self._seen.pop(name, None)
            self._checks.pop(name, None)
        was = len(self._away)
        if new is not None and _away(new):
            self._away.add(name)
        else:
            self._away.discard(name)
        if len(self._away) != was or new is None or old is None:
            # Whether all nodes are away decides about the evictions from each.
            for one in sorted(self._away):
                self.mark(("", one))

    def reconcile(self, key: Key) -> None:
        """Its age, its conditions, its taints."""
        node = self.world.get("Node", key)
        if node is None:
            return
        name, now = key[1], self.world.now
        beat = self._heartbeat(node)
        before = self._seen.get(name)
        if before is None or before[0] != beat:
            self._seen[name] = (beat, now)
        left = self._seen[name][1] + self._grace - now
        if left > 0:
            self._check_in(key, left)
        elif (ready := _condition(node, "Ready")) is None or ready.get("status") != "Unknown":
            node = self._lost(node)
        self._taint(node)

    def _heartbeat(self, node: Json) -> object:
        lease = self.world.get("Lease", (_LEASES, node["metadata"]["name"]))
        ready = _condition(node, "Ready") or {}
        renewed = (lease.get("spec") or {}).get("renewTime") if lease is not None else None
        return renewed, ready.get("lastHeartbeatTime")

    def _check_in(self, key: Key, seconds: float) -> None:
        """One timer a node: each heartbeat would leave one behind."""
        due = self.world.now + seconds
        if self._checks.get(key[1], 0.0) > self.world.now:
            return
        self._checks[key[1]] = due
        self.mark_later(key, seconds)

    def _lost(self, node: Json) -> Json:
        now = format_time(self.world.now)
        known = {c["type"]: c for c in (node.get("status") or {}).get("conditions") or ()}
        for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"):
            old = known.get(kind)
            never = old is None
            known[kind] = {
                **(old or {"type": kind, "lastHeartbeatTime": node["metadata"]["creationTimestamp"]}),
                "status": "Unknown",
                "reason": "NodeStatusNeverUpdated" if never else "NodeStatusUnknown",
                "message": "Kubelet never posted node status."
                if never
                else "Kubelet stopped posting node status.",
                "lastTransitionTime": now,
            }
        name = node["metadata"]["name"]
        found: Json = self.world.client.patch(
            "Node", name, None, {"status": {"conditions": list(known.values())}}, "merge", "status"
        )
        note = f"Node {name} status is now: NodeNotReady"
        self.world.event(node, "NodeNotReady", note, SOURCE)
        for pod in self.world.all("Pod"):
            if pod["spec"].get("nodeName") == name:
                self._pod_not_ready(pod, now)
        return found

    def _pod_not_ready(self, pod: Json, now: str) -> None:
        conditions = list((pod.get("status") or {}).get("conditions") or ())
        ready = next((c for c in conditions if c["type"] == "Ready"), None)
        if ready is None or ready.get("status") != "True":
            return
        told = {**ready, "status": "False", "lastTransitionTime": now}
        meta = pod["metadata"]
        patch = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": [told]}}
        self.world.client.patch_status("Pod", meta["name"], meta["namespace"], patch)
        self.world.event(pod, "NodeNotReady", "Node is not ready", SOURCE, "Warning")

    # --- taints ---------------------------------------------------------------------------------------------

    def _taint(self, node: Json) -> None:
        before = list(node["spec"].get("taints") or ())
        wanted = self._wanted(node)
        kept = [t for t in before if not _ours(t) or (t["key"], t["effect"]) in wanted]
        known = {(t["key"], t["effect"]) for t in kept}
        now = format_time(self.world.now)
        added = [{"key": k, "effect": e, "timeAdded": now} for k, e in wanted if (k, e) not in known]
        if added or len(kept) != len(before):
            # The version guards taints that somebody else is writing.
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            self.world.patch(node, {"metadata": version, "spec": {"taints": [*kept, *added] or None}})

    def _wanted(self, node: Json) -> list[tuple[str, str]]:
        found = []
        key = _away(node)
        if key:
            found.append((key, "NoSchedule"))
            # When nobody answers it is more likely the network that is broken: nothing is evicted then.
            if any(n not in self._away for _, n in self.world.keys("Node") - {key_of(node)}):
                found.append((key, "NoExecute"))
        for kind, taint in _BY_CONDITION.items():
            condition = _condition(node, kind)
            if condition is not None and condition.get("status") == "True":
                found.append((taint, "NoSchedule"))
        if node["spec"].get("unschedulable"):
            found.append((_UNSCHEDULABLE, "NoSchedule"))
        return found


def _ours(taint: Json) -> bool:
    return taint.get("key") in _OURS and taint.get("effect") in ("NoSchedule", "NoExecute")


def _condition(node: Json, kind: str) -> Json | None:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind), None)


def _away(node: Json) -> str:
    """The taint of a node that is not Ready. One that has said nothing yet is not judged before its time."""
    ready = _condition(node, "Ready")
    if ready is None or ready.get("status") == "True":
        return ""
    return UNREACHABLE if ready.get("status") == "Unknown" else NOT_READY
