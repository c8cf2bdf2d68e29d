"""HorizontalPodAutoscaler: keeps workloads between their bounds; containers that are simulated use nothing to measure."""

from __future__ import annotations

from typing import Any

from labkit.cluster.controllers.pods import condition
from labkit.cluster.controllers.world import Controller, Json, Key, key_of

SOURCE = "horizontal-pod-autoscaler"
_ABLE, _ACTIVE = "AbleToScale", "ScalingActive"
_TARGETS = ("Deployment", "ReplicaSet", "StatefulSet")
_NO_METRICS = (
    "the HPA was unable to compute the replica count: failed to get {name} {what}: unable to get metrics for "
    "resource {name}: no metrics are measured, containers are simulated here"
)


class AutoscalerController(Controller):
    """Scales what is below `minReplicas` or above `maxReplicas`; all else it leaves, and says that it sees no metrics."""

    kinds = ("HorizontalPodAutoscaler", *_TARGETS)

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """An autoscaler, or what one may scale."""
        if new is None:
            return
        if kind == "HorizontalPodAutoscaler":
            self.mark(key_of(new))
            return
        namespace, name = key_of(new)
        for scaler in self.world.all("HorizontalPodAutoscaler"):
            target = scaler["spec"]["scaleTargetRef"]
            if key_of(scaler)[0] == namespace and (target.get("kind"), target.get("name")) == (kind, name):
                self.mark(key_of(scaler))

    def reconcile(self, key: Key) -> None:
        """Scale, then status."""
        scaler = self.world.get("HorizontalPodAutoscaler", key)
        if scaler is None or "deletionTimestamp" in scaler["metadata"]:
            return
        spec, target = scaler["spec"], scaler["spec"]["scaleTargetRef"]
        kind, name = str(target.get("kind")), str(target.get("name"))
        workload = self.world.get(kind, (key[0], name)) if kind in _TARGETS else None
        if workload is None:
            text = (
                f"the HPA controller was unable to get the target's current scale: {kind} {name!r} not found"
            )
            self._tell(scaler, [(_ABLE, False, "FailedGetScale", text)], {})
            return
        now = int(workload["spec"].get("replicas") or 0)
        wanted, why = _bounded(now, int(spec.get("minReplicas") or 1), int(spec["maxReplicas"]))
        if wanted != now:
            self.world.patch(workload, {"spec": {"replicas": wanted}})
            self.world.event(scaler, "SuccessfulRescale", f"New size: {wanted}; reason: {why}", SOURCE)
            text = f"the HPA controller was able to update the target scale to {wanted}"
            scaled = {"lastScaleTime": self.world.time()}
            self._tell(
                scaler,
                [(_ABLE, True, "SucceededRescale", text)],
                {"currentReplicas": now or None, "desiredReplicas": wanted, **scaled},
            )
            return
        able = (
            _ABLE,
            True,
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        )
        if now == 0:
            text = "scaling is disabled since the replica count of the target is zero"
            active = (_ACTIVE, False, "ScalingDisabled", text)
        else:
            active = (_ACTIVE, False, *_unmeasured(spec.get("metrics") or []))
        self._tell(scaler, [able, active], {"currentReplicas": now or None, "desiredReplicas": now})

    def _tell(self, scaler: Json, told: list[tuple[str, bool, str, str]], status: Json) -> None:
        before = (scaler.get("status") or {}).get("conditions") or []
        now = self.world.time()
        new = [condition(*one, now, _known(before, one[0]), "") for one in told]
        said = {one[0] for one in told}
        kept = [c for c in before if c["type"] not in said]
        conditions = sorted([*kept, *new], key=lambda c: str(c["type"]))
        self.world.set_status(scaler, {**status, "conditions": conditions})


def _known(conditions: list[Json], kind: str) -> Json | None:
    return next((c for c in conditions if c["type"] == kind), None)


def _bounded(now: int, least: int, most: int) -> tuple[int, str]:
    if now == 0 or least <= now <= most:
        return now, ""
    if now > most:
        return most, "Current number of replicas above Spec.MaxReplicas"
    return least, "Current number of replicas below Spec.MinReplicas"


def _unmeasured(metrics: list[Any]) -> tuple[str, str]:
    first = metrics[0] if metrics else {}
    kind = str(first.get("type") or "Resource")
    source = first.get("resource") or first.get("containerResource") or {}
    name = source.get("name") or "metric"
    what = "utilization" if (source.get("target") or {}).get("type") == "Utilization" else "usage"
    return f"FailedGet{kind}Metric", _NO_METRICS.format(name=name, what=what)
