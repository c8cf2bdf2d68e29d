"""NoExecute: pods that do not tolerate a taint of their node go, at once or after their `tolerationSeconds`."""

from __future__ import annotations

from labkit.cluster.controllers.pods import is_active
from labkit.cluster.controllers.world import Controller, Json, Key, World, key_of

SOURCE = "taint-eviction-controller"


class TaintEvictionController(Controller):
    """Time runs from when a taint was first seen on the pod's node, and stops when the taint goes."""

    kinds = ("Node", "Pod")

    def __init__(self, world: World) -> None:
        super().__init__(world)
        #: uid of a pod -> (the taints that it has to leave for, since when).
        self._since: dict[str, tuple[tuple[tuple[str, str], ...], float]] = {}

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """A pod on a tainted node, or a node whose taints have changed."""
        if kind == "Pod":
            if new is None:
                if old is not None:
                    self._since.pop(old["metadata"]["uid"], None)
            elif new["spec"].get("nodeName"):
                self.mark(key_of(new))
        elif new is not None and _no_execute(old) != _no_execute(new):
            for pod in self.world.all("Pod"):
                if pod["spec"].get("nodeName") == new["metadata"]["name"]:
                    self.mark(key_of(pod))

    def reconcile(self, key: Key) -> None:
        """Let the pod stay, wait or go."""
        pod = self.world.get("Pod", key)
        if pod is None or not is_active(pod):
            return
        uid = pod["metadata"]["uid"]
        node = self.world.get("Node", ("", str(pod["spec"].get("nodeName"))))
        taints = _no_execute(node)
        if not taints:
            self._since.pop(uid, None)
            return
        stay = _stays(pod, taints)
        if stay is None:
            self._since.pop(uid, None)
            return
        identity = tuple((t["key"], t.get("value") or "") for t in taints)
        known = self._since.get(uid)
        if known is None or known[0] != identity:
            self._since[uid] = known = identity, self.world.now
        left = known[1] + stay - self.world.now
        if left > 0:
            self.mark_later(key, left)
            return
        self._evict(pod)

    def _evict(self, pod: Json) -> None:
        meta = pod["metadata"]
        note = f"Marking for deletion Pod {meta['namespace']}/{meta['name']}"
        self.world.event(pod, "TaintManagerEviction", note, SOURCE)
        told = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": self.world.time(),
        }
        patch = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": [told]}}
        self.world.client.patch_status("Pod", meta["name"], meta["namespace"], patch)
        self.world.delete(pod)


def _no_execute(node: Json | None) -> list[Json]:
    return [t for t in (node or {}).get("spec", {}).get("taints") or () if t.get("effect") == "NoExecute"]


def _stays(pod: Json, taints: list[Json]) -> float | None:
    """Seconds that the pod may stay; None for ever."""
    shortest: float | None = None
    for taint in taints:
        matching = [t for t in pod["spec"].get("tolerations") or () if _tolerates(t, taint)]
        if not matching:
            return 0.0
        limits = [float(s) for t in matching if (s := t.get("tolerationSeconds")) is not None]
        if limits:
            shortest = min(max(0.0, min(limits)), shortest if shortest is not None else float("inf"))
    return shortest


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    key = toleration.get("key") or ""
    if key and key != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")
