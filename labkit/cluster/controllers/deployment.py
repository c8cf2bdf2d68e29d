"""Deployment: one ReplicaSet for each pod template, rolled over as the strategy says."""

from __future__ import annotations

from labkit.cluster.controllers.deployment_status import status_of
from labkit.cluster.controllers.pods import phase, template_hash
from labkit.cluster.controllers.rollout import (
    active_of,
    annotated,
    fractions,
    new_replicas,
    old_replicas,
    replicas_of,
    surge_and_unavailable,
)
from labkit.cluster.controllers.world import Controller, Json, Key, controller_of, key_of, owner_reference
from labkit.cluster.store_times import seconds_of

SOURCE = "deployment-controller"
HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = {"kubectl.kubernetes.io/last-applied-configuration", REVISION, DESIRED, MAXIMUM}


class DeploymentController(Controller):
    """RollingUpdate with maxSurge and maxUnavailable, Recreate, pausing, revisions and their history."""

    kinds = ("Deployment", "ReplicaSet", "Pod")

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """A deployment, a set of one, or the end of a pod of such a set (Recreate waits for it)."""
        if kind == "Deployment":
            if new is not None:
                self.mark(key_of(new))
        elif kind == "ReplicaSet":
            self.mark_owner("Deployment", (old, new))
        elif new is None or phase(new) in ("Succeeded", "Failed"):
            self._mark_of_pod(old if new is None else new)

    def _mark_of_pod(self, pod: Json | None) -> None:
        reference = controller_of(pod) if pod is not None else None
        if pod is None or reference is None or reference.get("kind") != "ReplicaSet":
            return
        owner = self.world.get("ReplicaSet", (pod["metadata"].get("namespace") or "", reference["name"]))
        self.mark_owner("Deployment", (owner,))

    def reconcile(self, key: Key) -> None:
        """Sets and their sizes, then status."""
        obj = self.world.get("Deployment", key)
        if obj is None:
            return
        sets = sorted(self.world.owned(obj, "ReplicaSet"), key=_age)
        new = _of_template(sets, obj["spec"]["template"])
        if "deletionTimestamp" not in obj["metadata"]:
            if obj["spec"].get("paused") or (self._scaled(obj, sets) and active_of(sets)):
                self._scale(obj, sets, new)
            elif obj["spec"]["strategy"]["type"] == "Recreate":
                new = self._recreate(obj, sets, new)
            else:
                new = self._roll(obj, sets, new)
            self._clean_up(obj, [s for s in sets if s is not new])
        # Sets that were changed or made just now are counted when their news arrive.
        status, again = status_of(obj, sets, new, self.world.now)
        self.world.set_status(obj, status)
        if again is not None:
            self.mark_later(key, again)

    # --- the set of the present template ---------------------------------------------------------------------

    def _new(self, obj: Json, sets: list[Json], new: Json | None, size: int) -> Json:
        latest = max((_revision(s) for s in sets if s is not new), default=0)
        if new is not None:
            if _revision(new) <= latest:
                new = self.world.patch(new, {"metadata": {"annotations": {REVISION: str(latest + 1)}}})
            self._tell_revision(obj, new)
            return new
        meta, template = obj["metadata"], obj["spec"]["template"]
        name = template_hash(template)
        labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: name}
        selector = obj["spec"]["selector"]
        kept = {k: v for k, v in (meta.get("annotations") or {}).items() if k not in _NOT_COPIED}
        made = self.world.client.create(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": f"{meta['name']}-{name}",
                    "namespace": meta["namespace"],
                    "labels": labels,
                    "annotations": {**kept, REVISION: str(latest + 1), **self._sizes(obj)},
                    "ownerReferences": [owner_reference(obj)],
                },
                "spec": {
                    "replicas": size,
                    "selector": {
                        **selector,
                        "matchLabels": {**(selector.get("matchLabels") or {}), HASH: name},
                    },
                    "minReadySeconds": obj["spec"].get("minReadySeconds") or 0,
                    "template": {
                        **template,
                        "metadata": {**(template.get("metadata") or {}), "labels": labels},
                    },
                },
            }
        )
        self._tell_scaled(obj, made, 0, size)
        self._tell_revision(obj, made)
        found: Json = made
        return found

    def _tell_revision(self, obj: Json, new: Json) -> None:
        revision = str(_revision(new))
        if (obj["metadata"].get("annotations") or {}).get(REVISION) != revision:
            self.world.patch(obj, {"metadata": {"annotations": {REVISION: revision}}})

    @staticmethod
    def _sizes(obj: Json) -> dict[str, str]:
        wanted, (surge, _) = replicas_of(obj), surge_and_unavailable(obj)
        return {DESIRED: str(wanted), MAXIMUM: str(wanted + surge)}

    # --- strategies ------------------------------------------------------------------------------------------

    def _roll(self, obj: Json, sets: list[Json], new: Json | None) -> Json:
        old = [s for s in sets if s is not new]
        size = new_replicas(obj, old, new)
        if new is None:
            return self._new(obj, sets, None, size)
        found = self._new(obj, sets, new, size)
        if self._resize(obj, new, size):
            return found
        for one, smaller in old_replicas(obj, old, new):
            self._resize(obj, one, smaller)
        return found

    def _recreate(self, obj: Json, sets: list[Json], new: Json | None) -> Json | None:
        old = [s for s in sets if s is not new]
        running = False
        for one in old:
            self._resize(obj, one, 0)
            pods = self.world.owned(one, "Pod")
            running = running or any(phase(p) not in ("Succeeded", "Failed") for p in pods)
        if running:
            return new
        found = self._new(obj, sets, new, replicas_of(obj))
        if new is not None:
            self._resize(obj, new, replicas_of(obj))
        return found

    def _scaled(self, obj: Json, sets: list[Json]) -> bool:
        """Whether `spec.replicas` has changed since the sets got their sizes."""
        return any(annotated(s, DESIRED) not in (None, replicas_of(obj)) for s in sets if replicas_of(s) > 0)

    def _scale(self, obj: Json, sets: list[Json], new: Json | None) -> None:
        wanted = replicas_of(obj)
        active = active_of(sets)
        if len(active) <= 1:
            one = active[0] if active else new or (sets[-1] if sets else None)
            if one is not None:
                self._resize(obj, one, wanted)
        elif new is not None and replicas_of(new) == wanted == annotated_available(new):
            for one in active:
                if one is not new:
                    self._resize(obj, one, 0)
        elif obj["spec"]["strategy"]["type"] != "Recreate":
            for one, size in fractions(obj, active, new, MAXIMUM):
                self._resize(obj, one, size)

    def _resize(self, obj: Json, one: Json, size: int) -> bool:
        before, sizes = replicas_of(one), self._sizes(obj)
        known = one["metadata"].get("annotations") or {}
        if before == size and all(known.get(k) == v for k, v in sizes.items()):
            return False
        self.world.patch(one, {"metadata": {"annotations": sizes}, "spec": {"replicas": size}})
        if before != size:
            self._tell_scaled(obj, one, before, size)
        return before != size

    def _tell_scaled(self, obj: Json, one: Json, before: int, size: int) -> None:
        word = "up" if size > before else "down"
        if size != before:
            note = f"Scaled {word} replica set {one['metadata']['name']} from {before} to {size}"
            self.world.event(obj, "ScalingReplicaSet", note, SOURCE)

    def _clean_up(self, obj: Json, old: list[Json]) -> None:
        limit = obj["spec"].get("revisionHistoryLimit")
        empty = [
            s
            for s in old
            if replicas_of(s) == 0
            and not (s.get("status") or {}).get("replicas")
            and "deletionTimestamp" not in s["metadata"]
        ]
        # A set whose last size was not seen by its own controller may still have pods.
        empty = [s for s in empty if _observed(s)]
        surplus = len(empty) - (10 if limit is None else int(limit))
        for one in sorted(empty, key=_revision)[: max(0, surplus)]:
            self.world.delete(one)


def annotated_available(one: Json) -> int:
    """How many of a set's pods are available."""
    return int((one.get("status") or {}).get("availableReplicas") or 0)


def _age(one: Json) -> tuple[float, str]:
    return seconds_of(one["metadata"]["creationTimestamp"]), one["metadata"]["name"]


def _observed(one: Json) -> bool:
    seen = int((one.get("status") or {}).get("observedGeneration") or 0)
    return seen >= int(one["metadata"].get("generation", 1))


def _revision(one: Json) -> int:
    return annotated(one, REVISION) or 0


def _of_template(sets: list[Json], template: Json) -> Json | None:
    wanted = _plain(template)
    return next((s for s in sets if _plain(s["spec"]["template"]) == wanted), None)


def _plain(template: Json) -> Json:
    meta = template.get("metadata") or {}
    labels = {k: v for k, v in (meta.get("labels") or {}).items() if k != HASH}
    kept = {k: v for k, v in meta.items() if k not in ("labels", "creationTimestamp")}
    return {**template, "metadata": {**kept, "labels": labels}}
