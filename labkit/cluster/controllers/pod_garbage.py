"""Pods that nobody takes away: those of nodes that are gone, and ended ones when there are too many."""

from __future__ import annotations

from labkit.cluster.controllers.pods import phase
from labkit.cluster.controllers.world import Controller, Json, Key, World, key_of

SOURCE = "pod-garbage-collector"
#: How many ended pods may stay (kube-controller-manager's `--terminated-pod-gc-threshold`).
TERMINATED_LIMIT = 12_500
#: How long a node must be gone before its pods are.
QUARANTINE_SECONDS = 40.0
_ALL: Key = ("", "")


class PodGarbageCollector(Controller):
    """Spec 20 §8.4: the node of a pod need not exist, but then the pod goes."""

    kinds = ("Pod", "Node")

    def __init__(self, world: World, terminated_limit: int = TERMINATED_LIMIT) -> None:
        super().__init__(world)
        self._limit = terminated_limit
        #: Ended pods, oldest first.
        self._ended: dict[Key, None] = {}
        #: node -> since when it has been missing.
        self._missing: dict[str, float] = {}

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """A pod; a node that came or went."""
        if kind == "Node":
            name = ((new if new is not None else old) or {})["metadata"]["name"]
            if new is not None:
                self._missing.pop(name, None)
            else:
                for pod in self.world.all("Pod"):
                    if pod["spec"].get("nodeName") == name:
                        self.mark(key_of(pod))
            return
        if new is None:
            if old is not None:
                self._ended.pop(key_of(old), None)
            return
        key = key_of(new)
        if phase(new) in ("Succeeded", "Failed"):
            self._ended.setdefault(key)
            if len(self._ended) > self._limit:
                self.mark(_ALL)
        if new["spec"].get("nodeName") or "deletionTimestamp" in new["metadata"]:
            self.mark(key)

    def reconcile(self, key: Key) -> None:
        """One pod, or (key of empty strings) the surplus of ended ones."""
        if key == _ALL:
            for one in list(self._ended)[: max(0, len(self._ended) - self._limit)]:
                if (ended := self.world.get("Pod", one)) is not None:
                    self.world.delete(ended, 0)
            return
        pod = self.world.get("Pod", key)
        if pod is None:
            return
        node = pod["spec"].get("nodeName")
        if not node:
            if "deletionTimestamp" in pod["metadata"] and not pod["metadata"].get("finalizers"):
                self.world.delete(pod, 0)
            return
        if self.world.get("Node", ("", node)) is not None:
            return
        since = self._missing.setdefault(node, self.world.now)
        left = since + QUARANTINE_SECONDS - self.world.now
        if left > 0:
            self.mark_later(key, left)
        else:
            self._remove(pod)

    def _remove(self, pod: Json) -> None:
        meta = pod["metadata"]
        if phase(pod) not in ("Succeeded", "Failed"):
            told = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
                "lastTransitionTime": self.world.time(),
            }
            patch = {"metadata": {"uid": meta["uid"]}, "status": {"phase": "Failed", "conditions": [told]}}
            self.world.client.patch_status("Pod", meta["name"], meta["namespace"], patch)
        self.world.delete(pod, 0)
