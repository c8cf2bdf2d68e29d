"""Tables of workloads: Deployment, ReplicaSet, Job and their like (spec 20 §4.3)."""

from __future__ import annotations

from typing import Any

from labkit.cluster.apiserver.table_text import (
    NONE,
    UNKNOWN,
    Cells,
    Json,
    age,
    columns,
    duration,
    name_of,
    selector,
    since,
    spec_of,
    status_of,
)
from labkit.cluster.store_autoscaling import SOURCES
from labkit.cluster.store_times import seconds_of

_WIDE = "Containers*, Images*, Selector*"


def _containers(spec: Json) -> tuple[str, str]:
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    return ",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)


def _count(status: Json, key: str) -> int:
    return int(status.get(key) or 0)


def _deployment(obj: Json, now: float) -> list[Any]:
    status, (names, images) = status_of(obj), _containers(spec_of(obj))
    return [
        name_of(obj),
        f"{_count(status, 'readyReplicas')}/{spec_of(obj).get('replicas', 0)}",
        _count(status, "updatedReplicas"),
        _count(status, "availableReplicas"),
        age(obj, now),
        names,
        images,
        selector(spec_of(obj).get("selector")),
    ]


def _replica_set(obj: Json, now: float) -> list[Any]:
    status, (names, images), wanted = status_of(obj), _containers(spec_of(obj)), spec_of(obj).get("selector")
    if obj.get("kind") == "ReplicationController":
        wanted = {"matchLabels": wanted}
    return [
        name_of(obj),
        int(spec_of(obj).get("replicas") or 0),
        _count(status, "replicas"),
        _count(status, "readyReplicas"),
        age(obj, now),
        names,
        images,
        selector(wanted),
    ]


def _stateful_set(obj: Json, now: float) -> list[Any]:
    names, images = _containers(spec_of(obj))
    return [
        name_of(obj),
        f"{_count(status_of(obj), 'readyReplicas')}/{spec_of(obj).get('replicas', 0)}",
        age(obj, now),
        names,
        images,
    ]


def _daemon_set(obj: Json, now: float) -> list[Any]:
    status, (names, images) = status_of(obj), _containers(spec_of(obj))
    node_selector = ((spec_of(obj).get("template") or {}).get("spec") or {}).get("nodeSelector") or {}
    return [
        name_of(obj),
        _count(status, "desiredNumberScheduled"),
        _count(status, "currentNumberScheduled"),
        _count(status, "numberReady"),
        _count(status, "updatedNumberScheduled"),
        _count(status, "numberAvailable"),
        ",".join(f"{k}={v}" for k, v in sorted(node_selector.items())) or NONE,
        age(obj, now),
        names,
        images,
        selector(spec_of(obj).get("selector")),
    ]


def _job(obj: Json, now: float) -> list[Any]:
    spec, status, (names, images) = spec_of(obj), status_of(obj), _containers(spec_of(obj))
    conditions = {c.get("type"): c.get("status") for c in status.get("conditions") or ()}
    done, wanted = _count(status, "succeeded"), spec.get("completions")
    if wanted is not None:
        completions = f"{done}/{wanted}"
    else:
        parallelism = int(spec.get("parallelism") or 0)
        completions = f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"
    state = next(
        (
            w
            for t, w in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended"))
            if conditions.get(t) == "True"
        ),
        None,
    )
    if state is None:
        state = "Terminating" if "deletionTimestamp" in obj["metadata"] else "Running"
    if state == "Running" and conditions.get("SuccessCriteriaMet") == "True":
        state = "SuccessCriteriaMet"
    lasted = ""
    if start := status.get("startTime"):
        end = status.get("completionTime")
        lasted = duration((seconds_of(end) if end else now) - seconds_of(start))
    return [
        name_of(obj),
        state,
        completions,
        lasted,
        age(obj, now),
        names,
        images,
        selector(spec.get("selector")),
    ]


def _cron_job(obj: Json, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    names, images = _containers((spec.get("jobTemplate") or {}).get("spec") or {})
    last = status.get("lastScheduleTime")
    return [
        name_of(obj),
        spec.get("schedule") or "",
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        age(obj, now),
        names,
        images,
        selector(((spec.get("jobTemplate") or {}).get("spec") or {}).get("selector")),
    ]


def _budget(obj: Json, now: float) -> list[Any]:
    spec = spec_of(obj)

    def shown(key: str) -> str:
        return "N/A" if spec.get(key) is None else str(spec[key])

    return [
        name_of(obj),
        shown("minAvailable"),
        shown("maxUnavailable"),
        _count(status_of(obj), "disruptionsAllowed"),
        age(obj, now),
    ]


def _metric(spec: Json, status: Json) -> str:
    kind = str(spec.get("type"))
    source = SOURCES.get(kind)
    if source is None:
        return "<unknown type>"
    wanted, now = spec.get(source) or {}, (status.get(source) or {}).get("current") or {}
    target = wanted.get("target") or {}
    if source in ("resource", "containerResource"):
        name = wanted.get("name", "")
        if (amount := target.get("averageValue")) is not None:
            return f"{name}: {now.get('averageValue', UNKNOWN)}/{amount}"
        share, goal = now.get("averageUtilization"), target.get("averageUtilization")
        return f"{name}: {_percent(share, UNKNOWN)}/{_percent(goal, '<auto>')}"
    if (amount := target.get("averageValue")) is not None:
        note = "" if source == "pods" else " (avg)"
        return f"{now.get('averageValue', UNKNOWN)}/{amount}{note}"
    return f"{now.get('value', UNKNOWN)}/{target.get('value')}"


def _percent(value: int | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value}%"


def _autoscaler(obj: Json, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    target, metrics = spec.get("scaleTargetRef") or {}, spec.get("metrics") or []
    current = status.get("currentMetrics") or []
    shown = [_metric(m, current[i] if i < len(current) else {}) for i, m in enumerate(metrics)]
    targets = ", ".join(shown[:2]) + (f" + {len(shown) - 2} more..." if len(shown) > 2 else "")
    least = spec.get("minReplicas")
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        targets or NONE,
        "<unset>" if least is None else str(least),
        int(spec.get("maxReplicas") or 0),
        _count(status, "currentReplicas"),
        age(obj, now),
    ]


WORKLOADS: dict[tuple[str, str], Cells] = {
    ("apps", "Deployment"): Cells(columns(f"Name, Ready, Up-to-date, Available, Age, {_WIDE}"), _deployment),
    ("apps", "ReplicaSet"): Cells(
        columns(f"Name, Desired:integer, Current:integer, Ready:integer, Age, {_WIDE}"), _replica_set
    ),
    ("apps", "StatefulSet"): Cells(columns("Name, Ready, Age, Containers*, Images*"), _stateful_set),
    ("apps", "DaemonSet"): Cells(
        columns(
            f"Name, Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, Available:integer, Node Selector, Age, {_WIDE}"
        ),
        _daemon_set,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Cells(
        columns("Name, Reference, Targets, MinPods, MaxPods, Replicas, Age"), _autoscaler
    ),
    ("batch", "Job"): Cells(columns(f"Name, Status, Completions, Duration, Age, {_WIDE}"), _job),
    ("batch", "CronJob"): Cells(
        columns(f"Name, Schedule, Timezone, Suspend, Active:integer, Last Schedule, Age, {_WIDE}"),
        _cron_job,
    ),
    ("", "ReplicationController"): Cells(
        columns(f"Name, Desired:integer, Current:integer, Ready:integer, Age, {_WIDE}"), _replica_set
    ),
    ("policy", "PodDisruptionBudget"): Cells(
        columns("Name, Min Available, Max Unavailable, Allowed Disruptions:integer, Age"), _budget
    ),
}
