"""StatefulSet: pods with numbers that keep their names and claims, made and replaced in order."""

from __future__ import annotations

import copy

from labkit.cluster.controllers.pods import available_in, is_ready, phase, pod_from
from labkit.cluster.controllers.revisions import HASH, Revisions, hash_of, template_of
from labkit.cluster.controllers.world import Controller, Json, Key, World, key_of, owner_reference
from labkit.cluster.store_errors import ApiError

SOURCE = "statefulset-controller"


class StatefulSetController(Controller):
    """OrderedReady and Parallel, claims from templates, RollingUpdate with a partition, OnDelete."""

    kinds = ("StatefulSet", "Pod", "PersistentVolumeClaim", "ControllerRevision")

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._revisions = Revisions(self.world)

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """A set, or a pod of one."""
        if kind == "Pod":
            self.mark_owner("StatefulSet", (old, new))
        elif kind == "StatefulSet" and new is not None:
            self.mark(key_of(new))

    def reconcile(self, key: Key) -> None:
        """Pods in order, then status."""
        obj = self.world.get("StatefulSet", key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        current, update = self._revisions.of(obj)
        pods = {n: p for p in self.world.owned(obj, "Pod") if (n := ordinal(p)) is not None}
        try:
            self._order(obj, pods, current, update)
        finally:
            self._status(obj, pods, current, update)

    # --- the next thing to do ---------------------------------------------------------------------------------

    def _order(self, obj: Json, pods: dict[int, Json], current: Json, update: Json) -> None:
        first, count = _first(obj), _count(obj)
        one_by_one = obj["spec"].get("podManagementPolicy") != "Parallel"
        for number in range(first, first + count):
            pod = pods.get(number)
            if pod is None:
                self._create(obj, number, current if number < _partition(obj) else update)
            elif phase(pod) in ("Succeeded", "Failed"):
                self._delete(obj, pod)
            elif self._settled(obj, pod):
                self._retention(obj, pod, number)
                continue
            if one_by_one:
                return
        for number in sorted((n for n in pods if not first <= n < first + count), reverse=True):
            pod = pods[number]
            if "deletionTimestamp" not in pod["metadata"]:
                self._retention(obj, pod, number)
                self._delete(obj, pod)
            if one_by_one:
                return
        self._roll(obj, pods, update)

    def _settled(self, obj: Json, pod: Json) -> bool:
        if "deletionTimestamp" in pod["metadata"] or phase(pod) != "Running":
            return False
        return available_in(pod, _wait(obj), self.world.now) == 0

    def _roll(self, obj: Json, pods: dict[int, Json], update: Json) -> None:
        """Replace the pod with the highest number that is not of the newest revision."""
        strategy = obj["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        for number in range(_first(obj) + _count(obj) - 1, _partition(obj) - 1, -1):
            pod = pods.get(number)
            if pod is None or "deletionTimestamp" in pod["metadata"]:
                return
            if hash_of(pod) != update["metadata"]["name"]:
                self._delete(obj, pod)
                return
            if not self._settled(obj, pod):
                return

    # --- writing ----------------------------------------------------------------------------------------------

    def _create(self, obj: Json, number: int, revision: Json) -> None:
        meta, name = obj["metadata"], f"{obj['metadata']['name']}-{number}"
        template = template_of(revision)
        labels = {
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(number),
            HASH: revision["metadata"]["name"],
        }
        pod = pod_from(template, obj, name=name, labels=labels)
        spec = pod["spec"]
        spec["hostname"] = name
        if obj["spec"].get("serviceName"):
            spec["subdomain"] = obj["spec"]["serviceName"]
        claims = obj["spec"].get("volumeClaimTemplates") or []
        given = {c["metadata"]["name"]: f"{c['metadata']['name']}-{name}" for c in claims}
        if given:
            kept = [v for v in spec.get("volumes") or () if v.get("name") not in given]
            made = [{"name": v, "persistentVolumeClaim": {"claimName": c}} for v, c in given.items()]
            spec["volumes"] = [*made, *kept]
        try:
            for claim in claims:
                self._claim(obj, claim, given[claim["metadata"]["name"]])
            self.world.client.create(pod)
        except ApiError as e:
            note = f"create Pod {name} in StatefulSet {meta['name']} failed error: {e.message}"
            self.world.event(obj, "FailedCreate", note, SOURCE, "Warning")
            raise
        note = f"create Pod {name} in StatefulSet {meta['name']} successful"
        self.world.event(obj, "SuccessfulCreate", note, SOURCE)

    def _claim(self, obj: Json, template: Json, name: str) -> None:
        namespace = obj["metadata"]["namespace"]
        if self.world.get("PersistentVolumeClaim", (namespace, name)) is not None:
            return
        meta = template["metadata"]
        labels = {**(meta.get("labels") or {}), **(obj["spec"]["selector"].get("matchLabels") or {})}
        made: Json = {"name": name, "namespace": namespace, "labels": labels}
        if meta.get("annotations"):
            made["annotations"] = dict(meta["annotations"])
        spec = copy.deepcopy(template["spec"])
        self.world.client.create(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": made, "spec": spec}
        )
        self.world.event(obj, "SuccessfulCreate", f"create Claim {name} success", SOURCE)

    def _retention(self, obj: Json, pod: Json, number: int) -> None:
        """Let claims go with the set, or with a pod that is scaled away, if the policy says so."""
        policy = obj["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        owners: list[Json] = []
        if policy.get("whenDeleted") == "Delete":
            owners.append({**owner_reference(obj), "controller": False})
        if policy.get("whenScaled") == "Delete" and not _first(obj) <= number < _first(obj) + _count(obj):
            owners = [{**owner_reference(pod), "controller": False}]
        ours = {obj["metadata"]["uid"], pod["metadata"]["uid"]}
        for template in obj["spec"].get("volumeClaimTemplates") or ():
            name = f"{template['metadata']['name']}-{pod['metadata']['name']}"
            claim = self.world.get("PersistentVolumeClaim", (obj["metadata"]["namespace"], name))
            if claim is None:
                continue
            before = claim["metadata"].get("ownerReferences") or []
            wanted = [*(o for o in before if o.get("uid") not in ours), *owners]
            if [o.get("uid") for o in wanted] != [o.get("uid") for o in before]:
                self.world.patch(claim, {"metadata": {"ownerReferences": wanted or None}})

    def _delete(self, obj: Json, pod: Json) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            return
        self.world.delete(pod)
        name = pod["metadata"]["name"]
        note = f"delete Pod {name} in StatefulSet {obj['metadata']['name']} successful"
        self.world.event(obj, "SuccessfulDelete", note, SOURCE)

    def _status(self, obj: Json, pods: dict[int, Json], current: Json, update: Json) -> None:
        old, new = current["metadata"]["name"], update["metadata"]["name"]
        alive = [p for p in pods.values() if "deletionTimestamp" not in p["metadata"]]
        until = [available_in(p, _wait(obj), self.world.now) for p in alive]
        for seconds in until:
            if seconds:
                self.mark_later(key_of(obj), seconds)
        replicas, ready = len(pods), sum(map(is_ready, alive))
        updated = sum(hash_of(p) == new for p in alive)
        if old != new and _partition(obj) == _first(obj) and updated == ready == replicas == _count(obj):
            old = new
        self.world.set_status(
            obj,
            {
                "observedGeneration": obj["metadata"].get("generation", 1),
                "replicas": replicas,
                "readyReplicas": ready or None,
                "availableReplicas": sum(u == 0 for u in until),
                "currentReplicas": sum(hash_of(p) == old for p in alive) or None,
                "updatedReplicas": updated or None,
                "currentRevision": old,
                "updateRevision": new,
                "collisionCount": 0,
            },
        )


def ordinal(pod: Json) -> int | None:
    """The number at the end of a pod's name."""
    text = str(pod["metadata"]["name"]).rpartition("-")[2]
    return int(text) if text.isdigit() else None


def _first(obj: Json) -> int:
    return int((obj["spec"].get("ordinals") or {}).get("start") or 0)


def _count(obj: Json) -> int:
    found = obj["spec"].get("replicas")
    return 1 if found is None else int(found)


def _wait(obj: Json) -> float:
    return float(obj["spec"].get("minReadySeconds") or 0)


def _partition(obj: Json) -> int:
    """The first number that gets the newest revision."""
    strategy = obj["spec"].get("updateStrategy") or {}
    return _first(obj) + int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
