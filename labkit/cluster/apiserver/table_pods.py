"""The row of a pod: how many containers are ready, and the one word for its state (spec 20 §4.3)."""

from __future__ import annotations

from typing import Any

from labkit.cluster.apiserver.table_text import NONE, age, duration
from labkit.cluster.store_times import seconds_of

Json = dict[str, Any]
POD_COLUMNS = "Name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*"


def pod_cells(pod: Json, now: float) -> list[Any]:
    """The cells of a pod."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    ready, total, restarts, last_restart, reason = _summary(pod, spec, status)
    restarts_text = str(restarts)
    if restarts and last_restart:
        restarts_text = f"{restarts} ({duration(now - seconds_of(last_restart))} ago)"
    gates = spec.get("readinessGates") or ()
    conditions = {c.get("type"): c.get("status") for c in status.get("conditions") or ()}
    passed = sum(conditions.get(g.get("conditionType")) == "True" for g in gates)
    ips = status.get("podIPs") or ()
    return [
        pod["metadata"]["name"],
        f"{ready}/{total}",
        reason,
        restarts_text,
        age(pod, now),
        (ips[0].get("ip") if ips else status.get("podIP")) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"{passed}/{len(gates)}" if gates else NONE,
    ]


def _summary(pod: Json, spec: Json, status: Json) -> tuple[int, int, int, str | None, str]:
    sidecars = {c.get("name") for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    total = len(spec.get("containers") or ()) + len(sidecars)
    reason = status.get("reason") or status.get("phase") or ""
    conditions = status.get("conditions") or ()
    if any(c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in conditions):
        reason = "SchedulingGated"
    ready = restarts = 0
    last_restart: str | None = None
    initializing, initial_reason = _init_state(spec, status, sidecars)
    for container in status.get("initContainerStatuses") or ():
        if container.get("name") in sidecars:
            if container.get("started") and container.get("ready"):
                ready += 1
            restarts += int(container.get("restartCount") or 0)
            last_restart = _later(last_restart, container)
    if initializing:
        reason = initial_reason
    else:
        restarts_here, ready_here, reason, running = 0, 0, reason, False
        for container in reversed(status.get("containerStatuses") or ()):
            restarts_here += int(container.get("restartCount") or 0)
            last_restart = _later(last_restart, container)
            state = container.get("state") or {}
            waiting, ended = state.get("waiting"), state.get("terminated")
            if waiting and waiting.get("reason"):
                reason = waiting["reason"]
            elif ended:
                reason = _ended(ended)
            elif container.get("ready") and "running" in state:
                running = True
                ready_here += 1
        restarts += restarts_here
        ready += ready_here
        if reason == "Completed" and running:
            is_ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
            reason = "Running" if is_ready else "NotReady"
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            reason = "Terminating"
    return ready, total, restarts, last_restart, reason


def _ended(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _later(known: str | None, container: Json) -> str | None:
    finished = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
    return max(known or "", finished) if finished else known


def _init_state(spec: Json, status: Json, sidecars: set[Any]) -> tuple[bool, str]:
    for i, container in enumerate(status.get("initContainerStatuses") or ()):
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended and not ended.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            continue
        if ended:
            return True, f"Init:{_ended(ended)}"
        if waiting and waiting.get("reason") not in (None, "", "PodInitializing"):
            return True, f"Init:{waiting['reason']}"
        return True, f"Init:{i}/{len(spec.get('initContainers') or ())}"
    return False, ""
