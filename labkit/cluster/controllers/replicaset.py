"""ReplicaSet: as many active pods as `spec.replicas` says."""

from __future__ import annotations

from labkit.cluster.controllers.pods import (
    available_in,
    condition,
    conditions_of,
    deletion_rank,
    is_active,
    is_ready,
    pod_from,
)
from labkit.cluster.controllers.world import Controller, Json, Key, key_of
from labkit.cluster.store_errors import ApiError

SOURCE = "replicaset-controller"


class ReplicaSetController(Controller):
    """Creates and deletes pods; pods that failed are replaced and stay for the pod collector."""

    kinds = ("ReplicaSet", "Pod")

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """A set, or a pod of one."""
        if kind == "Pod":
            self.mark_owner("ReplicaSet", (old, new))
        elif new is not None:
            self.mark(key_of(new))

    def reconcile(self, key: Key) -> None:
        """Number of pods, then status."""
        obj = self.world.get("ReplicaSet", key)
        if obj is None:
            return
        active = [p for p in self.world.owned(obj, "Pod") if is_active(p)]
        failure: ApiError | None = None
        if "deletionTimestamp" not in obj["metadata"]:
            missing = int(obj["spec"].get("replicas", 1)) - len(active)
            try:
                for _ in range(missing):
                    made = self.world.client.create(pod_from(obj["spec"]["template"], obj))
                    note = f"Created pod: {made['metadata']['name']}"
                    self.world.event(obj, "SuccessfulCreate", note, SOURCE)
            except ApiError as e:
                failure = e
                note = f"Error creating: {e.message}"
                self.world.event(obj, "FailedCreate", note, SOURCE, "Warning")
            for pod in sorted(active, key=deletion_rank)[:-missing] if missing < 0 else ():
                self.world.delete(pod)
                note = f"Deleted pod: {pod['metadata']['name']}"
                self.world.event(obj, "SuccessfulDelete", note, SOURCE)
        self._status(obj, active, failure)
        if failure is not None:
            raise failure

    def _status(self, obj: Json, active: list[Json], failure: ApiError | None) -> None:
        wait = float(obj["spec"].get("minReadySeconds") or 0)
        until = [u for p in active if (u := available_in(p, wait, self.world.now)) is not None]
        for seconds in until:
            if seconds > 0:
                self.mark_later(key_of(obj), seconds)
        conditions: list[Json] | None = None
        if failure is not None:
            # The first message stays: each names another pod, and to write them all would never end.
            old = conditions_of(obj).get("ReplicaFailure")
            message = old["message"] if old is not None else failure.message
            now = self.world.time()
            conditions = [condition("ReplicaFailure", True, "FailedCreate", message, now, old, "")]
        self.world.set_status(
            obj,
            {
                "replicas": len(active),
                "fullyLabeledReplicas": len(active) or None,
                "readyReplicas": sum(map(is_ready, active)) or None,
                "availableReplicas": sum(u == 0 for u in until) or None,
                "observedGeneration": obj["metadata"].get("generation", 1),
                "conditions": conditions,
            },
        )
