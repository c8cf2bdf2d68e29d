"""What a Deployment's status says: numbers of pods, and the conditions that `kubectl rollout status` waits for."""

from __future__ import annotations

from labkit.cluster.controllers.pods import condition, conditions_of
from labkit.cluster.controllers.rollout import replicas_of, surge_and_unavailable
from labkit.cluster.controllers.world import Json
from labkit.cluster.store_times import format_time, seconds_of

_UPDATED = "lastUpdateTime"


def _sum(sets: list[Json], field: str) -> int:
    return sum(int((s.get("status") or {}).get(field) or 0) for s in sets)


def status_of(obj: Json, sets: list[Json], new: Json | None, now: float) -> tuple[Json, float | None]:
    """The status, and in how many seconds the progress deadline passes if nothing happens until then."""
    alive = [s for s in sets if s is not new]
    mine = [new] if new is not None else []
    available = _sum([*alive, *mine], "availableReplicas")
    total = sum(map(replicas_of, [*alive, *mine]))
    status: Json = {
        "observedGeneration": obj["metadata"].get("generation", 1),
        "replicas": _sum([*alive, *mine], "replicas") or None,
        "updatedReplicas": _sum(mine, "replicas") or None,
        "readyReplicas": _sum([*alive, *mine], "readyReplicas") or None,
        "availableReplicas": available or None,
        "unavailableReplicas": max(0, total - available) or None,
    }
    before = conditions_of(obj)
    text = format_time(now)
    least = replicas_of(obj) - surge_and_unavailable(obj)[1]
    if available >= least:
        why, message = "MinimumReplicasAvailable", "Deployment has minimum availability."
    else:
        why, message = "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    found = [
        condition("Available", available >= least, why, message, text, before.get("Available"), _UPDATED)
    ]
    progressing, again = _progressing(obj, status, new, now, before.get("Progressing"))
    if progressing is not None:
        found.append(progressing)
    failure = next(
        (
            c
            for s in [*mine, *alive]
            for c in (s.get("status") or {}).get("conditions") or ()
            if c["type"] == "ReplicaFailure"
        ),
        None,
    )
    if failure is not None:
        old = before.get("ReplicaFailure")
        found.append(
            condition(
                "ReplicaFailure",
                True,
                failure.get("reason", ""),
                failure.get("message", ""),
                text,
                old,
                _UPDATED,
            )
        )
    ours = {"Available", "Progressing", "ReplicaFailure"}
    status["conditions"] = [*found, *(c for t, c in before.items() if t not in ours)]
    return status, again


def _progressing(
    obj: Json, status: Json, new: Json | None, now: float, old: Json | None
) -> tuple[Json | None, float | None]:
    limit = obj["spec"].get("progressDeadlineSeconds")
    if limit is None or int(limit) >= 2**31 - 1:
        return None, None
    text = format_time(now)
    if obj["spec"].get("paused"):
        made = condition("Progressing", True, "DeploymentPaused", "Deployment is paused", text, old, _UPDATED)
        return {**made, "status": "Unknown"}, None
    name = new["metadata"]["name"] if new is not None else obj["metadata"]["name"]
    what = f'ReplicaSet "{name}"'
    wanted = replicas_of(obj)
    numbers = {k: int(status.get(k) or 0) for k in ("replicas", "updatedReplicas", "availableReplicas")}
    if new is not None and set(numbers.values()) == {wanted}:
        message = f"{what} has successfully progressed."
        return condition("Progressing", True, "NewReplicaSetAvailable", message, text, old, _UPDATED), None
    moved = _moved(obj.get("status") or {}, status)
    if old is None or (old.get("reason") == "NewReplicaSetAvailable" and not moved):
        # What was complete and has lost a pod is not a rollout that can time out.
        if (
            old is not None
            and int(obj["status"].get("observedGeneration") or 0) >= status["observedGeneration"]
        ):
            return old, None
        message = f"Created new replica set {what[11:]}"
        return condition("Progressing", True, "NewReplicaSetCreated", message, text, None, _UPDATED), float(
            limit
        )
    if moved:
        message = f"{what} is progressing."
        made = condition("Progressing", True, "ReplicaSetUpdated", message, text, old, _UPDATED)
        return {**made, _UPDATED: text}, float(limit)
    left = seconds_of(old.get(_UPDATED) or text) + float(limit) - now
    if left > 0 or old.get("status") != "True":
        return old, left if left > 0 else None
    message = f"{what} has timed out progressing."
    return condition("Progressing", False, "ProgressDeadlineExceeded", message, text, old, _UPDATED), None


def _moved(before: Json, now: Json) -> bool:
    def number(status: Json, key: str) -> int:
        return int(status.get(key) or 0)

    def rest(status: Json) -> int:
        return number(status, "replicas") - number(status, "updatedReplicas")

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return any(number(now, k) > number(before, k) for k in grown) or rest(now) < rest(before)
