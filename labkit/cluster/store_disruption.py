"""Keeps the status of PodDisruptionBudgets in step with their pods: what eviction and preemption look at."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from labkit.cluster.store import Store
from labkit.cluster.store_pods import label_selector
from labkit.cluster.store_times import seconds_of
from labkit.cluster.store_types import PDB, POD, resource_type

Json = dict[str, Any]
#: A pod that was let go but is still there after this many seconds counts as a healthy one again.
DISRUPTED_SECONDS = 120
_SCALED = ("ReplicaSet", "ReplicationController", "StatefulSet", "Deployment")


class DisruptionCounter:
    """Recounts a namespace's budgets after each change of its pods and budgets; `stop()` ends that."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsubscribe: Callable[[], None] = store.subscribe(self._on_change)
        with store.lock:
            for namespace in sorted({b["metadata"]["namespace"] for b in store.objects(PDB).values()}):
                self.count(namespace)

    def stop(self) -> None:
        """Count no longer."""
        self._unsubscribe()

    def _on_change(self, kind: str, old: Json | None, new: Json | None) -> None:
        obj = new or old or {}
        if obj.get("kind") in ("Pod", "PodDisruptionBudget", *_SCALED) and self._store.objects(PDB):
            self.count(obj["metadata"]["namespace"])

    def count(self, namespace: str) -> None:
        """Bring the status of a namespace's budgets up to date."""
        table = self._store.objects(PDB)
        for key in sorted(k for k in table if k.startswith(f"{namespace}/")):
            budget = table[key]
            status = self.status_of(budget)
            if status != budget.get("status"):
                self._store.commit(
                    PDB, budget, {**budget, "metadata": dict(budget["metadata"]), "status": status}
                )

    def status_of(self, budget: Json) -> Json:
        """The status that a budget should have now."""
        namespace = budget["metadata"]["namespace"]
        selector = budget["spec"].get("selector")
        match = label_selector(selector) if selector is not None else None
        pods = [
            p
            for key, p in self._store.objects(POD).items()
            if key.startswith(f"{namespace}/") and match is not None and match(p)
        ]
        before = budget.get("status") or {}
        disrupted = self._still_disrupted(before.get("disruptedPods") or {}, pods)
        expected, desired = self._wanted(budget["spec"], pods)
        current = sum(_is_healthy(p) and p["metadata"]["name"] not in disrupted for p in pods)
        allowed = max(0, current - desired) if expected > 0 else 0
        generation = int(budget["metadata"].get("generation", 0))
        status: Json = {
            "observedGeneration": generation,
            "disruptionsAllowed": allowed,
            "currentHealthy": current,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "conditions": [self._condition(before, allowed, generation)],
        }
        return {**status, "disruptedPods": disrupted} if disrupted else status

    def _condition(self, before: Json, allowed: int, generation: int) -> Json:
        condition = {
            "type": "DisruptionAllowed",
            "status": "True" if allowed else "False",
            "observedGeneration": generation,
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
        }
        known = next(
            (c for c in before.get("conditions") or () if c.get("type") == "DisruptionAllowed"), None
        )
        same = known is not None and known.get("status") == condition["status"]
        when = known["lastTransitionTime"] if known is not None and same else self._store.now_text()
        return {**condition, "lastTransitionTime": when}

    def _still_disrupted(self, disrupted: Json, pods: list[Json]) -> Json:
        present = {p["metadata"]["name"]: p for p in pods}
        now = self._store.clock.now()
        return {
            name: when
            for name, when in disrupted.items()
            if name in present
            and "deletionTimestamp" not in present[name]["metadata"]
            and seconds_of(when) + DISRUPTED_SECONDS > now
        }

    def _wanted(self, spec: Json, pods: list[Json]) -> tuple[int, int]:
        """Expected pods, and how many of them must be healthy."""
        most_missing, fewest = spec.get("maxUnavailable"), spec.get("minAvailable")
        if most_missing is not None:
            expected = self._expected(pods)
            return expected, max(0, expected - _scaled(most_missing, expected))
        if isinstance(fewest, int):
            return len(pods), fewest
        if fewest is not None:
            expected = self._expected(pods)
            return expected, _scaled(fewest, expected)
        return len(pods), 0

    def _expected(self, pods: list[Json]) -> int:
        """What the pods' controllers are to keep; pods without one count for nothing."""
        owners: dict[str, int] = {}
        for pod in pods:
            owner = next(
                (o for o in pod["metadata"].get("ownerReferences") or () if o.get("controller")), None
            )
            if owner is None or owner.get("kind") not in _SCALED:
                continue
            resource = resource_type(str(owner["kind"]))
            found = self._store.peek(resource, str(owner["name"]), pod["metadata"]["namespace"])
            if found is not None and found["metadata"]["uid"] == owner.get("uid"):
                owners[owner["uid"]] = int(found["spec"].get("replicas") or 0)
        return sum(owners.values())


def _scaled(value: Any, total: int) -> int:
    if isinstance(value, int):
        return value
    return ceil(int(str(value).rstrip("%")) * total / 100)


def _is_healthy(pod: Json) -> bool:
    if "deletionTimestamp" in pod["metadata"]:
        return False
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
