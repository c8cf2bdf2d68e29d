"""The kubelets of all nodes of a cluster, as far as others can see them.

A pod that is bound is admitted or refused, its containers are created, run, and end; a deleted pod goes when its grace
period is over. A node whose kubelet runs is Ready and renews its lease; `stop(node)` is a machine that died.
Times are seconds of the clock. Everything happens in calls of `on_change` and of the clock's timers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from labkit.cluster import kubelet_status as status_of
from labkit.cluster.kubelet_admission import refusal
from labkit.cluster.store_times import format_micro_time, format_time
from labkit.engine.informer import typed
from labkit.framework.node_info import NodeInfo, pod_info

Json = dict[str, Any]
#: Called with (kind, pod, node, text): kind is "admitted", "rejected", "running", "ended" or "gone".
Listener = Callable[[str, str, str, str], None]
#: Leases are renewed well within the time that a node may be silent (spec 20 §8.7).
RENEW_SECONDS = 10.0
LEASE_SECONDS = 40
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 10.0, 300.0


class TimerClock(Protocol):
    """Now, and calls in the future."""

    def now(self) -> float:
        """Seconds since the Unix epoch."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Any:
        """Call `callback` at `when`."""


class Kubelets:
    """One kubelet for each node that there is.

    `start_seconds`: from admission to Running. `heartbeats`: register nodes (conditions, addresses) and renew their
    leases; without it only pods are looked after. `listener` hears what happens.
    """

    def __init__(
        self,
        client: Any,
        clock: TimerClock,
        *,
        start_seconds: float = 1.0,
        heartbeats: bool = True,
        listener: Listener = lambda *_: None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._start_seconds = start_seconds
        self._heartbeats = heartbeats
        self._listener = listener
        self._nodes: dict[str, NodeInfo] = {}
        self._raw_nodes: dict[str, Json] = {}
        #: uid -> the newest pod that is bound somewhere.
        self._pods: dict[str, Json] = {}
        self._admitted: dict[str, tuple[str, Any]] = {}
        self._restarts: dict[str, int] = {}
        self._ending: dict[str, int] = {}
        self._stopped: set[str] = set()
        self._renewing = False
        #: Pods on their way to Running; while there are some, something will happen soon.
        self.starting: set[str] = set()

    # --- what happens in the cluster ------------------------------------------------------------------------

    def on_change(self, type_: str, old: Json | None, new: Json | None) -> None:
        """Hear of a change of a node or a pod."""
        obj = new if new is not None else old
        if obj is None:
            return
        if obj.get("kind") == "Pod":
            if new is None:
                self._forget(obj)
            else:
                self._pod(new)
        elif obj.get("kind") == "Node":
            self._node(new, obj["metadata"]["name"])

    def stop(self, node: str) -> None:
        """The node's kubelet falls silent: nothing is renewed, started or ended there."""
        self._stopped.add(node)

    def start(self, node: str) -> None:
        """It comes back: the node is Ready again, and what waited is done."""
        self._stopped.discard(node)
        raw = self._raw_nodes.get(node)
        if raw is None:
            return
        if self._heartbeats:
            self._register(node, anew=True)
            self._renew(node)
        for pod in sorted(
            self._on(node), key=lambda p: (p["metadata"].get("creationTimestamp", ""), p["metadata"]["name"])
        ):
            self._pod(pod)

    def runs(self, node: str) -> bool:
        """Whether the node exists and its kubelet has not been stopped."""
        return node in self._nodes and node not in self._stopped

    # --- nodes ----------------------------------------------------------------------------------------------

    def _node(self, new: Json | None, name: str) -> None:
        if new is None:
            self._nodes.pop(name, None)
            self._raw_nodes.pop(name, None)
            return
        node: Any = typed(new, "Node")
        known = self._nodes.get(name)
        self._raw_nodes[name] = new
        if known is not None:
            known.set_node(node)
            return
        self._nodes[name] = info = NodeInfo(node)
        for at, placed in self._admitted.values():
            if at == name:
                info.add_pod(placed)
        if self._heartbeats and name not in self._stopped:
            self._register(name)
            self._renew(name)
            self._arm_renewal()
        for pod in self._on(name):
            self._pod(pod)

    def _register(self, name: str, *, anew: bool = False) -> None:
        raw = self._raw_nodes[name]
        if anew:
            raw = {**raw, "status": {**(raw.get("status") or {}), "conditions": []}}
        added = status_of.node_status(raw, self._now())
        if added:
            self._quietly(lambda: self._client.patch_status("Node", name, None, {"status": added}))

    def _arm_renewal(self) -> None:
        if not self._renewing:
            self._renewing = True
            self._clock.call_at(self._clock.now() + RENEW_SECONDS, self._renew_all)

    def _renew_all(self) -> None:
        self._renewing = False
        for name in list(self._nodes):
            if name not in self._stopped:
                self._renew(name)
        if self._nodes:
            self._arm_renewal()

    def _renew(self, name: str) -> None:
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": format_micro_time(self._clock.now()),
        }
        try:
            self._client.patch("Lease", name, "kube-node-lease", {"spec": spec}, "merge")
        except Exception as e:
            if getattr(e, "code", None) != 404:
                return
            owner = {"apiVersion": "v1", "kind": "Node", "name": name}
            uid = self._raw_nodes[name]["metadata"].get("uid", "")
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {
                    "name": name,
                    "namespace": "kube-node-lease",
                    "ownerReferences": [{**owner, "uid": uid}],
                },
                "spec": spec,
            }
            self._quietly(lambda: self._client.create(lease))

    # --- pods -----------------------------------------------------------------------------------------------

    def _on(self, node: str) -> list[Json]:
        return [p for p in self._pods.values() if p["spec"].get("nodeName") == node]

    def _forget(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        self._pods.pop(uid, None)
        self._release(uid)
        self._restarts.pop(uid, None)
        self._ending.pop(uid, None)
        self.starting.discard(uid)

    def _release(self, uid: str) -> None:
        found = self._admitted.pop(uid, None)
        if found is not None and (info := self._nodes.get(found[0])) is not None:
            info.remove_pod(found[1].pod)

    def _pod(self, pod: Json) -> None:
        meta, uid, node = pod["metadata"], pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if not node:
            return
        self._pods[uid] = pod
        if not self.runs(node):
            return
        phase = (pod.get("status") or {}).get("phase") or "Pending"
        if phase in ("Succeeded", "Failed"):
            self._release(uid)
            self.starting.discard(uid)
        elif uid not in self._admitted:
            self._admit(pod, node, phase)
        if "deletionTimestamp" in meta:
            self._end(pod)

    def _admit(self, pod: Json, node: str, phase: str) -> None:
        uid, key = pod["metadata"]["uid"], _key(pod)
        one: Any = typed(pod, "Pod")
        info = self._nodes[node]
        # A pod that runs already is not asked again, however full its node is.
        no = refusal(one, info) if phase == "Pending" and "deletionTimestamp" not in pod["metadata"] else None
        if no is not None:
            told = {
                "phase": "Failed",
                "reason": no.reason,
                "message": no.status_message,
                "startTime": self._now(),
            }
            self._write(pod, told)
            self._event(pod, "Warning", no.reason, no.message)
            self._listener("rejected", key, node, no.message)
            return
        placed = pod_info(one)
        self._admitted[uid] = (node, placed)
        info.add_pod(placed)
        if phase != "Pending":
            if (seconds := status_of.run_seconds(pod)) is not None:
                self._later(seconds, uid, self._containers_end)
            return
        self._listener("admitted", key, node, "")
        self.starting.add(uid)
        self._write(pod, status_of.creating(pod, self._now()))
        self._later(self._start_seconds, uid, self._run)

    def _later(self, seconds: float, uid: str, call: Callable[[Json], None]) -> None:
        def due() -> None:
            pod = self._pods.get(uid)
            if pod is not None and self.runs(pod["spec"]["nodeName"]):
                call(pod)

        self._clock.call_at(self._clock.now() + seconds, due)

    def _run(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        self.starting.discard(uid)
        if "deletionTimestamp" in pod["metadata"] or _over(pod):
            return
        self._write(pod, status_of.running(pod, self._now(), self._restarts.get(uid, 0)))
        self._event(pod, "Normal", "Started", "Container started")
        self._listener("running", _key(pod), pod["spec"]["nodeName"], "")
        if (seconds := status_of.run_seconds(pod)) is not None:
            self._later(seconds, uid, self._containers_end)

    def _containers_end(self, pod: Json) -> None:
        if "deletionTimestamp" in pod["metadata"] or _over(pod):
            return
        uid, code = pod["metadata"]["uid"], status_of.exit_code(pod)
        policy = pod["spec"].get("restartPolicy") or "Always"
        restarts = self._restarts.get(uid, 0)
        if policy == "Always" or (policy == "OnFailure" and code):
            self._restarts[uid] = restarts + 1
            wait = min(_FIRST_BACK_OFF * 2**restarts, _LONGEST_BACK_OFF)
            self._write(pod, status_of.backing_off(pod, self._now(), restarts + 1, wait))
            self._later(wait, uid, self._run)
            return
        self._write(pod, status_of.ended(pod, self._now(), restarts, code))
        self._listener(
            "ended", _key(pod), pod["spec"]["nodeName"], "Completed" if code == 0 else f"exit code {code}"
        )

    def _end(self, pod: Json) -> None:
        meta = pod["metadata"]
        uid, grace = meta["uid"], int(meta.get("deletionGracePeriodSeconds") or 0)
        if grace >= self._ending.get(uid, grace + 1):
            return
        self._ending[uid] = grace
        self._later(float(grace), uid, self._gone)

    def _gone(self, pod: Json) -> None:
        meta = pod["metadata"]
        self._quietly(
            lambda: self._client.delete("Pod", meta["name"], meta["namespace"], 0, {"uid": meta["uid"]})
        )
        self._listener("gone", _key(pod), pod["spec"]["nodeName"], "")

    # --- writing --------------------------------------------------------------------------------------------

    def _now(self) -> str:
        return format_time(self._clock.now())

    def _write(self, pod: Json, status: Json) -> None:
        meta = pod["metadata"]
        patch = {"metadata": {"uid": meta["uid"]}, "status": status}
        self._quietly(lambda: self._client.patch_status("Pod", meta["name"], meta["namespace"], patch))

    def _event(self, pod: Json, type_: str, reason: str, note: str) -> None:
        meta, now = pod["metadata"], self._clock.now()
        node = pod["spec"]["nodeName"]
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": f"{meta['name']}.{int(now * 1e6):x}.{reason.lower()}.{self._restarts.get(meta['uid'], 0)}",
                "namespace": meta["namespace"],
            },
            "eventTime": format_micro_time(now),
            "reportingController": "kubelet",
            "reportingInstance": node,
            "action": reason,
            "reason": reason,
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
            "note": note,
            "type": type_,
        }
        self._quietly(lambda: self._client.create_event(event))

    @staticmethod
    def _quietly(call: Callable[[], Any]) -> None:
        try:
            call()
        except Exception as e:
            # Somebody else was faster (404, 409, 422), or events are not taken here (403).
            if getattr(e, "code", None) not in (403, 404, 409, 422):
                raise


def _key(pod: Json) -> str:
    return f"{pod['metadata'].get('namespace') or 'default'}/{pod['metadata']['name']}"


def _over(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
