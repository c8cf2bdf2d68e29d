"""What controllers ask of pods, and how they make them."""

from __future__ import annotations

import copy
import json
import zlib
from typing import Any

from labkit.cluster.controllers.world import Json, owner_reference
from labkit.cluster.store_times import seconds_of

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def phase(pod: Json) -> str:
    """Its phase; Pending unless said otherwise."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_active(pod: Json) -> bool:
    """Neither at its end nor being deleted."""
    return phase(pod) not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def ready_since(pod: Json) -> float | None:
    """When it became ready, in seconds since the epoch; None when it is not."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") == "True":
            since = condition.get("lastTransitionTime")
            return seconds_of(since) if since else 0.0
    return None


def is_ready(pod: Json) -> bool:
    """Its condition Ready is True."""
    return ready_since(pod) is not None


def available_in(pod: Json, min_ready: float, now: float) -> float | None:
    """Seconds until a ready pod counts as available (0: it does); None when it is not ready."""
    since = ready_since(pod)
    if since is None:
        return None
    return max(0.0, since + min_ready - now) if min_ready else 0.0


def ended_at(pod: Json) -> float | None:
    """When the last container of a pod ended; None while it has not come to its end."""
    if phase(pod) not in ("Succeeded", "Failed"):
        return None
    status = pod["status"]
    states = [(c.get("state") or {}).get("terminated") or {} for c in status.get("containerStatuses") or ()]
    times = [seconds_of(t["finishedAt"]) for t in states if t.get("finishedAt")]
    return max(times, default=seconds_of(status.get("startTime") or pod["metadata"]["creationTimestamp"]))


def template_hash(template: Any) -> str:
    """A short name for a pod template: the same for the same template."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    number = zlib.crc32(text.encode()) << 16 | zlib.adler32(text.encode()) & 0xFFFF
    letters = ""
    for _ in range(10):
        number, rest = divmod(number, len(_LETTERS))
        letters += _LETTERS[rest]
    return letters


def pod_from(template: Json, owner: Json, *, name: str = "", labels: Json | None = None) -> Json:
    """A pod of a template, controlled by `owner`; without `name` the API makes one up."""
    meta = template.get("metadata") or {}
    made: Json = {
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(meta.get("labels") or {}), **(labels or {})},
        "ownerReferences": [owner_reference(owner)],
    }
    if meta.get("annotations"):
        made["annotations"] = dict(meta["annotations"])
    if name:
        made["name"] = name
    else:
        made["generateName"] = f"{owner['metadata']['name']}-"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": made,
        "spec": copy.deepcopy(template.get("spec") or {}),
    }


def deletion_rank(pod: Json) -> tuple[Any, ...]:
    """Which of several pods a ReplicaSet gives up first: the lowest."""
    annotations = pod["metadata"].get("annotations") or {}
    try:
        cost = int(annotations.get("controller.kubernetes.io/pod-deletion-cost", "0"))
    except ValueError:
        cost = 0
    created = seconds_of(pod["metadata"]["creationTimestamp"])
    return (
        bool(pod["spec"].get("nodeName")),
        {"Pending": 0, "Unknown": 1}.get(phase(pod), 2),
        is_ready(pod),
        cost,
        -(ready_since(pod) or 0.0),
        -created,
        pod["metadata"]["name"],
    )


def condition(
    kind: str, status: bool, reason: str, message: str, now: str, old: Json | None, key: str
) -> Json:
    """A condition of a workload; its transition time stays while its status does. `key`: its time of update."""
    text = "True" if status else "False"
    made: Json = {"type": kind, "status": text, "reason": reason, "message": message}
    same = old is not None and old.get("status") == text
    made["lastTransitionTime"] = old.get("lastTransitionTime") if same and old else now
    if key:
        unchanged = same and old and (old.get("reason"), old.get("message")) == (reason, message)
        made[key] = old.get(key) if unchanged and old else now
    return made


def conditions_of(obj: Json) -> dict[str, Json]:
    """An object's conditions by type."""
    return {c["type"]: c for c in (obj.get("status") or {}).get("conditions") or ()}
