"""What a kubelet writes into the status of pods and nodes, as kubectl prints it."""

from __future__ import annotations

import re
import zlib
from typing import Any

Json = dict[str, Any]
#: Annotation of a pod: its containers end after that many seconds. Without it, `sleep N` in a command says so.
RUN_SECONDS = "lab.kubernetes.io/run-seconds"
#: Annotation of a pod: the exit code that its containers end with (0 unless given).
EXIT_CODE = "lab.kubernetes.io/exit-code"
#: How long a container runs that is meant to end (restartPolicy Never or OnFailure) and says nothing, in seconds.
DEFAULT_RUN_SECONDS = 5.0
_SLEEP = re.compile(r"\bsleep\s+(\d+(?:\.\d+)?)(?![\w.])")


def run_seconds(pod: Json) -> float | None:
    """How long the pod's containers run, in seconds; None for those that run until they are deleted."""
    given = (pod["metadata"].get("annotations") or {}).get(RUN_SECONDS)
    if given is not None:
        try:
            return max(0.0, float(given))
        except ValueError:
            return DEFAULT_RUN_SECONDS
    spec = pod["spec"]
    if (spec.get("restartPolicy") or "Always") == "Always":
        return None
    lengths = []
    for container in spec.get("containers") or ():
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        found = _SLEEP.search(" ".join(str(w) for w in words))
        if found:
            lengths.append(float(found.group(1)))
    return max(lengths, default=DEFAULT_RUN_SECONDS)


def exit_code(pod: Json) -> int:
    """The exit code of the pod's containers."""
    given = (pod["metadata"].get("annotations") or {}).get(EXIT_CODE, "0")
    return int(given) if re.fullmatch(r"\d{1,3}", str(given)) else 1


def address(name: str, network: str) -> str:
    """An IP address for a name: the same each time. `network` is its first two bytes, such as `10.244`."""
    number = zlib.crc32(name.encode()) % (254 * 254)
    return f"{network}.{number // 254 + 1}.{number % 254 + 1}"


def _condition(kind: str, status: bool, now: str, reason: str = "", message: str = "") -> Json:
    found: Json = {
        "type": kind,
        "status": "True" if status else "False",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    if reason:
        found["reason"] = reason
    if message:
        found["message"] = message
    return found


def _conditions(
    pod: Json, now: str, *, ready: bool, initialized: bool = True, reason: str = ""
) -> list[Json]:
    names = ", ".join(c["name"] for c in pod["spec"].get("containers") or ())
    message = f"containers with unready status: [{names}]" if reason == "ContainersNotReady" else ""
    new = [
        _condition("PodReadyToStartContainers", ready, now),
        _condition("Initialized", initialized, now, "PodCompleted" if reason == "PodCompleted" else ""),
        _condition("Ready", ready, now, reason, message),
        _condition("ContainersReady", ready, now, reason, message),
    ]
    before = {c["type"]: c for c in (pod.get("status") or {}).get("conditions") or ()}
    for condition in new:
        known = before.get(condition["type"])
        if known is not None and known.get("status") == condition["status"]:
            condition["lastTransitionTime"] = known.get("lastTransitionTime") or now
    return new


def _containers(pod: Json, state: Json, *, ready: bool, restarts: int) -> list[Json]:
    last = {c["name"]: c for c in (pod.get("status") or {}).get("containerStatuses") or ()}
    found: list[Json] = []
    for container in pod["spec"].get("containers") or ():
        before = (last.get(container["name"]) or {}).get("state") or {}
        kept: Json = {}
        if restarts and "terminated" in before and "terminated" not in state:
            kept = {"lastState": before}
        elif last.get(container["name"], {}).get("lastState"):
            kept = {"lastState": last[container["name"]]["lastState"]}
        image = container.get("image", "")
        found.append(
            {
                "name": container["name"],
                "image": image,
                "imageID": "" if "waiting" in state and not restarts else f"lab://{image}",
                "ready": ready,
                "started": ready,
                "restartCount": restarts,
                "state": state,
                **kept,
            }
        )
    return found


def creating(pod: Json, now: str) -> Json:
    """Admitted; images and volumes are on the way."""
    node = str(pod["spec"].get("nodeName"))
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    return {
        "phase": "Pending",
        "startTime": now,
        "hostIP": address(node, "172.18"),
        "qosClass": (pod.get("status") or {}).get("qosClass") or _qos(pod),
        "conditions": _conditions(pod, now, ready=False, reason="ContainersNotReady"),
        "containerStatuses": _containers(pod, waiting, ready=False, restarts=0),
    }


def running(pod: Json, now: str, restarts: int) -> Json:
    """All containers run and are ready."""
    ip = address(pod["metadata"]["uid"], "10.244")
    return {
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": _conditions(pod, now, ready=True),
        "containerStatuses": _containers(pod, {"running": {"startedAt": now}}, ready=True, restarts=restarts),
    }


def backing_off(pod: Json, now: str, restarts: int, seconds: float) -> Json:
    """The containers ended and are to be started again after `seconds`."""
    name = pod["metadata"]["name"]
    message = f"back-off {seconds:g}s restarting failed container of pod {name}"
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    return {
        "phase": "Running",
        "conditions": _conditions(pod, now, ready=False, reason="ContainersNotReady"),
        "containerStatuses": _containers(pod, waiting, ready=False, restarts=restarts),
    }


def ended(pod: Json, now: str, restarts: int, code: int) -> Json:
    """The pod has come to its end."""
    reason = "Completed" if code == 0 else "Error"
    terminated = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": now}}
    why = "PodCompleted" if code == 0 else "PodFailed"
    return {
        "phase": "Succeeded" if code == 0 else "Failed",
        "conditions": _conditions(pod, now, ready=False, reason=why),
        "containerStatuses": _containers(pod, terminated, ready=False, restarts=restarts),
    }


def node_status(node: Json, now: str) -> Json:
    """What a kubelet adds to its node: conditions, capacity, addresses, versions; what is given stays as it is."""
    status = node.get("status") or {}
    known = {c.get("type") for c in status.get("conditions") or ()}
    healthy = [
        ("MemoryPressure", False, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", False, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", False, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", True, "KubeletReady", "kubelet is posting ready status"),
    ]
    added = [
        {
            "type": kind,
            "status": "True" if value else "False",
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind, value, reason, message in healthy
        if kind not in known
    ]
    found: Json = {"conditions": added} if added else {}
    allocatable = status.get("allocatable")
    if not status.get("capacity") and allocatable:
        found["capacity"] = dict(allocatable)
    if not status.get("addresses"):
        name = node["metadata"]["name"]
        found["addresses"] = [
            {"type": "InternalIP", "address": address(name, "172.18")},
            {"type": "Hostname", "address": name},
        ]
    return found


def _qos(pod: Json) -> str:
    sets = [c.get("resources") or {} for c in pod["spec"].get("containers") or ()]
    if not any(s.get("requests") or s.get("limits") for s in sets):
        return "BestEffort"
    guaranteed = all(
        all(r in (s.get("limits") or {}) for r in ("cpu", "memory"))
        and (s.get("requests") or s["limits"]) == s["limits"]
        for s in sets
    )
    return "Guaranteed" if guaranteed else "Burstable"
