"""The cells of each kind's table (spec 20 §4.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit.cluster.apiserver.table_pods import POD_COLUMNS, pod_cells
from labkit.cluster.apiserver.table_text import NONE, UNKNOWN, age, duration, selector
from labkit.cluster.store_times import seconds_of

Json = dict[str, Any]
Column = tuple[str, str, int]


@dataclass(frozen=True)
class Cells:
    """Columns (name, type, priority), and the cells of an object at a time."""

    columns: tuple[Column, ...]
    cells: Callable[[Json, float], list[Any]]


def _columns(text: str) -> tuple[Column, ...]:
    """`Name, Value:integer, Node*`: type after a colon, a star for what only `-o wide` shows."""
    found = []
    for part in text.split(", "):
        name, _, type_ = part.rstrip("*").partition(":")
        found.append((name, type_ or "string", 1 if part.endswith("*") else 0))
    return tuple(found)


def _name(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def _spec(obj: Json) -> Json:
    return obj.get("spec") or {}


def _status(obj: Json) -> Json:
    return obj.get("status") or {}


def _node(node: Json, now: float) -> list[Any]:
    status, info = _status(node), _status(node).get("nodeInfo") or {}
    ready = next((c for c in status.get("conditions") or () if c.get("type") == "Ready"), None)
    state = "Unknown"
    if ready is not None:
        state = "Ready" if ready.get("status") == "True" else "NotReady"
    if _spec(node).get("unschedulable"):
        state += ",SchedulingDisabled"
    roles = set()
    for label, value in (node["metadata"].get("labels") or {}).items():
        if label.startswith("node-role.kubernetes.io/") and label[24:]:
            roles.add(label[24:])
        elif label == "kubernetes.io/role" and value:
            roles.add(value)
    addresses = {a.get("type"): a.get("address") for a in reversed(status.get("addresses") or ())}
    kernel, machine = info.get("kernelVersion") or UNKNOWN, info.get("architecture")
    return [
        _name(node),
        state,
        ",".join(sorted(roles)) or NONE,
        age(node, now),
        info.get("kubeletVersion") or "",
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or UNKNOWN,
        f"{kernel} ({machine})" if machine else kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _event(event: Json, now: float) -> list[Any]:
    series, source = event.get("series") or {}, event.get("source") or {}
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    count = series.get("count") or event.get("count") or 0
    first_text, last_text = _since(first, now), _since(last, now)
    if series or (event.get("count") or 0) > 1:
        last_seen = f"{last_text} (x{count} over {first_text})"
    else:
        last_seen = last_text if event.get("count") else first_text
    count = count or 1
    target = event.get("involvedObject") or {}
    about = f"{(target.get('kind') or '').lower()}/{target.get('name') or ''}"
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    if not target.get("kind"):
        about = target.get("name") or ""
    return [
        last_seen,
        event.get("type") or "",
        event.get("reason") or "",
        about,
        target.get("fieldPath") or "",
        ", ".join(p for p in (component, host) if p),
        (event.get("message") or "").strip(),
        first_text,
        count,
        _name(event),
    ]


def _since(text: str | None, now: float) -> str:
    return duration(now - seconds_of(text)) if text else UNKNOWN


def _containers(spec: Json) -> tuple[str, str]:
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    return ",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)


def _count(status: Json, key: str) -> int:
    return int(status.get(key) or 0)


def _deployment(obj: Json, now: float) -> list[Any]:
    status, (names, images) = _status(obj), _containers(_spec(obj))
    return [
        _name(obj),
        f"{_count(status, 'readyReplicas')}/{_spec(obj).get('replicas', 0)}",
        _count(status, "updatedReplicas"),
        _count(status, "availableReplicas"),
        age(obj, now),
        names,
        images,
        selector(_spec(obj).get("selector")),
    ]


def _replica_set(obj: Json, now: float) -> list[Any]:
    status, (names, images), wanted = _status(obj), _containers(_spec(obj)), _spec(obj).get("selector")
    if obj.get("kind") == "ReplicationController":
        wanted = {"matchLabels": wanted}
    return [
        _name(obj),
        int(_spec(obj).get("replicas") or 0),
        _count(status, "replicas"),
        _count(status, "readyReplicas"),
        age(obj, now),
        names,
        images,
        selector(wanted),
    ]


def _stateful_set(obj: Json, now: float) -> list[Any]:
    names, images = _containers(_spec(obj))
    return [
        _name(obj),
        f"{_count(_status(obj), 'readyReplicas')}/{_spec(obj).get('replicas', 0)}",
        age(obj, now),
        names,
        images,
    ]


def _daemon_set(obj: Json, now: float) -> list[Any]:
    status, (names, images) = _status(obj), _containers(_spec(obj))
    node_selector = ((_spec(obj).get("template") or {}).get("spec") or {}).get("nodeSelector") or {}
    return [
        _name(obj),
        _count(status, "desiredNumberScheduled"),
        _count(status, "currentNumberScheduled"),
        _count(status, "numberReady"),
        _count(status, "updatedNumberScheduled"),
        _count(status, "numberAvailable"),
        ",".join(f"{k}={v}" for k, v in sorted(node_selector.items())) or NONE,
        age(obj, now),
        names,
        images,
        selector(_spec(obj).get("selector")),
    ]


def _job(obj: Json, now: float) -> list[Any]:
    spec, status, (names, images) = _spec(obj), _status(obj), _containers(_spec(obj))
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
        _name(obj),
        state,
        completions,
        lasted,
        age(obj, now),
        names,
        images,
        selector(spec.get("selector")),
    ]


def _cron_job(obj: Json, now: float) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    names, images = _containers((spec.get("jobTemplate") or {}).get("spec") or {})
    last = status.get("lastScheduleTime")
    return [
        _name(obj),
        spec.get("schedule") or "",
        spec.get("timeZone") or NONE,
        bool(spec.get("suspend")),
        len(status.get("active") or ()),
        _since(last, now) if last else NONE,
        age(obj, now),
        names,
        images,
        selector(((spec.get("jobTemplate") or {}).get("spec") or {}).get("selector")),
    ]


def _service(obj: Json, now: float) -> list[Any]:
    spec, kind = _spec(obj), _spec(obj).get("type") or ""
    ports = []
    for p in spec.get("ports") or ():
        node_port = f":{p['nodePort']}" if p.get("nodePort") else ""
        ports.append(f"{p.get('port')}{node_port}/{p.get('protocol')}")
    external = ",".join(spec.get("externalIPs") or ()) or NONE
    if kind == "LoadBalancer":
        found = (_status(obj).get("loadBalancer") or {}).get("ingress") or ()
        external = ",".join(i.get("ip") or i.get("hostname") or "" for i in found) or "<pending>"
    elif kind == "ExternalName":
        external = spec.get("externalName") or ""
    labels = spec.get("selector") or {}
    return [
        _name(obj),
        kind,
        spec.get("clusterIP") or NONE,
        external,
        ",".join(ports) or NONE,
        age(obj, now),
        ",".join(f"{k}={v}" for k, v in sorted(labels.items())) or NONE,
    ]


def _budget(obj: Json, now: float) -> list[Any]:
    spec = _spec(obj)

    def shown(key: str) -> str:
        return "N/A" if spec.get(key) is None else str(spec[key])

    return [
        _name(obj),
        shown("minAvailable"),
        shown("maxUnavailable"),
        _count(_status(obj), "disruptionsAllowed"),
        age(obj, now),
    ]


def _priority_class(obj: Json, now: float) -> list[Any]:
    return [
        _name(obj),
        int(obj.get("value") or 0),
        bool(obj.get("globalDefault")),
        age(obj, now),
        obj.get("preemptionPolicy") or "",
    ]


def _storage_class(obj: Json, now: float) -> list[Any]:
    name = _name(obj)
    if (obj["metadata"].get("annotations") or {}).get(
        "storageclass.kubernetes.io/is-default-class"
    ) == "true":
        name += " (default)"
    return [
        name,
        obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "<unset>",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(modes: Any) -> str:
    return ",".join(_MODES.get(m, m) for m in _MODES if m in (modes or ()))


def _claim(obj: Json, now: float) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase") or ""
    bound = bool(spec.get("volumeName"))
    return [
        _name(obj),
        phase,
        spec.get("volumeName") or "",
        (status.get("capacity") or {}).get("storage", "") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _volume(obj: Json, now: float) -> list[Any]:
    spec, claim = _spec(obj), _spec(obj).get("claimRef") or {}
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else _status(obj).get("phase") or ""
    return [
        _name(obj),
        (spec.get("capacity") or {}).get("storage", ""),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "",
        phase,
        f"{claim.get('namespace', '')}/{claim['name']}" if claim.get("name") else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        _status(obj).get("reason") or "",
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _quota(obj: Json, now: float) -> list[Any]:
    hard, used = _status(obj).get("hard") or {}, _status(obj).get("used") or {}
    texts: dict[bool, list[str]] = {False: [], True: []}
    for name in sorted(hard):
        texts[name.startswith("limits")].append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [_name(obj), ", ".join(texts[False]), ", ".join(texts[True]), age(obj, now)]


def _resource_claim(obj: Json, now: float) -> list[Any]:
    status = _status(obj)
    states = [w for k, w in (("allocation", "allocated"), ("reservedFor", "reserved")) if status.get(k)]
    if "deletionTimestamp" in obj["metadata"]:
        states.insert(0, "deleted")
    return [_name(obj), ",".join(states) or "pending", age(obj, now)]


def _resource_slice(obj: Json, now: float) -> list[Any]:
    spec = _spec(obj)
    return [
        _name(obj),
        spec.get("nodeName") or "",
        spec.get("driver") or "",
        (spec.get("pool") or {}).get("name") or "",
        age(obj, now),
    ]


def _binding(obj: Json, now: float) -> list[Any]:
    reference = obj.get("roleRef") or {}
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for s in obj.get("subjects") or ():
        full = (
            f"{s.get('namespace')}/{s.get('name')}"
            if s.get("kind") == "ServiceAccount"
            else s.get("name", "")
        )
        by_kind.setdefault(s.get("kind", ""), []).append(full)
    return [
        _name(obj),
        f"{reference.get('kind', '')}/{reference.get('name', '')}",
        age(obj, now),
        *(", ".join(by_kind[k]) for k in ("User", "Group", "ServiceAccount")),
    ]


def _autoscaler(obj: Json, now: float) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    target = spec.get("scaleTargetRef") or {}
    wanted, current = (
        spec.get("targetCPUUtilizationPercentage"),
        status.get("currentCPUUtilizationPercentage"),
    )
    targets = (
        f"cpu: {UNKNOWN if current is None else f'{current}%'}/{wanted}%" if wanted is not None else NONE
    )
    return [
        _name(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        targets,
        str(spec.get("minReplicas", "<unset>")),
        str(spec.get("maxReplicas", 0)),
        str(status.get("currentReplicas", 0)),
        age(obj, now),
    ]


def _csi_driver(obj: Json, now: float) -> list[Any]:
    spec = _spec(obj)
    tokens = ",".join(t.get("audience", "") for t in spec.get("tokenRequests") or ()) or "<unset>"
    return [
        _name(obj),
        bool(spec.get("attachRequired", True)),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        tokens,
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ("Persistent",)),
        age(obj, now),
    ]


def _endpoint_slice(obj: Json, now: float) -> list[Any]:
    ports = ",".join(str(p.get("port", "*")) for p in obj.get("ports") or ()) or "<unset>"
    addresses = ",".join(a for e in obj.get("endpoints") or () for a in e.get("addresses") or ()) or "<unset>"
    return [_name(obj), obj.get("addressType") or "", ports, addresses, age(obj, now)]


_WIDE = "Containers*, Images*, Selector*"
COLUMNS: dict[tuple[str, str], Cells] = {
    ("", "Pod"): Cells(_columns(POD_COLUMNS), pod_cells),
    ("", "Node"): Cells(
        _columns(
            "Name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, Kernel-Version*, Container-Runtime*"
        ),
        _node,
    ),
    ("", "Event"): Cells(
        _columns(
            "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count:integer*, Name*"
        ),
        _event,
    ),
    ("", "Namespace"): Cells(
        _columns("Name, Status, Age"), lambda o, now: [_name(o), _status(o).get("phase") or "", age(o, now)]
    ),
    ("", "ConfigMap"): Cells(
        _columns("Name, Data, Age"),
        lambda o, now: [
            _name(o),
            str(len(o.get("data") or ()) + len(o.get("binaryData") or ())),
            age(o, now),
        ],
    ),
    ("", "Secret"): Cells(
        _columns("Name, Type, Data, Age"),
        lambda o, now: [_name(o), o.get("type") or "", str(len(o.get("data") or ())), age(o, now)],
    ),
    ("", "ServiceAccount"): Cells(
        _columns("Name, Secrets, Age"),
        lambda o, now: [_name(o), str(len(o.get("secrets") or ())), age(o, now)],
    ),
    ("", "Service"): Cells(
        _columns("Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*"), _service
    ),
    ("", "PersistentVolumeClaim"): Cells(
        _columns(
            "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, VolumeMode*"
        ),
        _claim,
    ),
    ("", "PersistentVolume"): Cells(
        _columns(
            "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, VolumeMode*"
        ),
        _volume,
    ),
    ("", "ResourceQuota"): Cells(_columns("Name, Request, Limit, Age"), _quota),
    ("", "ReplicationController"): Cells(
        _columns(f"Name, Desired:integer, Current:integer, Ready:integer, Age, {_WIDE}"), _replica_set
    ),
    ("", "LimitRange"): Cells(
        _columns("Name, Created At"), lambda o, now: [_name(o), o["metadata"].get("creationTimestamp")]
    ),
    ("apps", "Deployment"): Cells(_columns(f"Name, Ready, Up-to-date, Available, Age, {_WIDE}"), _deployment),
    ("apps", "ReplicaSet"): Cells(
        _columns(f"Name, Desired:integer, Current:integer, Ready:integer, Age, {_WIDE}"), _replica_set
    ),
    ("apps", "StatefulSet"): Cells(_columns("Name, Ready, Age, Containers*, Images*"), _stateful_set),
    ("apps", "DaemonSet"): Cells(
        _columns(
            f"Name, Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, Available:integer, Node Selector, Age, {_WIDE}"
        ),
        _daemon_set,
    ),
    ("batch", "Job"): Cells(_columns(f"Name, Status, Completions, Duration, Age, {_WIDE}"), _job),
    ("batch", "CronJob"): Cells(
        _columns(f"Name, Schedule, Timezone, Suspend:boolean, Active:integer, Last Schedule, Age, {_WIDE}"),
        _cron_job,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Cells(
        _columns("Name, Reference, Targets, MinPods, MaxPods, Replicas, Age"), _autoscaler
    ),
    ("policy", "PodDisruptionBudget"): Cells(
        _columns("Name, Min Available, Max Unavailable, Allowed Disruptions:integer, Age"), _budget
    ),
    ("scheduling.k8s.io", "PriorityClass"): Cells(
        _columns("Name, Value:integer, Global-Default:boolean, Age, PreemptionPolicy"), _priority_class
    ),
    ("coordination.k8s.io", "Lease"): Cells(
        _columns("Name, Holder, Age"),
        lambda o, now: [_name(o), _spec(o).get("holderIdentity") or "", age(o, now)],
    ),
    ("storage.k8s.io", "StorageClass"): Cells(
        _columns("Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age"),
        _storage_class,
    ),
    ("storage.k8s.io", "CSINode"): Cells(
        _columns("Name, Drivers, Age"),
        lambda o, now: [_name(o), str(len(_spec(o).get("drivers") or ())), age(o, now)],
    ),
    ("storage.k8s.io", "CSIDriver"): Cells(
        _columns(
            "Name, AttachRequired:boolean, PodInfoOnMount:boolean, StorageCapacity:boolean, TokenRequests, "
            "RequiresRepublish:boolean, Modes, Age"
        ),
        _csi_driver,
    ),
    ("resource.k8s.io", "ResourceClaim"): Cells(_columns("Name, State, Age"), _resource_claim),
    ("resource.k8s.io", "ResourceSlice"): Cells(_columns("Name, Node, Driver, Pool, Age"), _resource_slice),
    ("resource.k8s.io", "DeviceClass"): Cells(_columns("Name, Age"), lambda o, now: [_name(o), age(o, now)]),
    ("resource.k8s.io", "ResourceClaimTemplate"): Cells(
        _columns("Name, Age"), lambda o, now: [_name(o), age(o, now)]
    ),
    ("node.k8s.io", "RuntimeClass"): Cells(
        _columns("Name, Handler, Age"), lambda o, now: [_name(o), o.get("handler") or "", age(o, now)]
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): Cells(
        _columns("Name, Role, Age, Users*, Groups*, ServiceAccounts*"), _binding
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): Cells(
        _columns("Name, Role, Age, Users*, Groups*, ServiceAccounts*"), _binding
    ),
    ("discovery.k8s.io", "EndpointSlice"): Cells(
        _columns("Name, AddressType, Ports, Endpoints, Age"), _endpoint_slice
    ),
}
DEFAULT = Cells(
    _columns("Name, Created At"), lambda o, now: [_name(o), o["metadata"].get("creationTimestamp")]
)
