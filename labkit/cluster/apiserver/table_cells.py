"""The cells of each kind's table (spec 20 §4.3)."""

from __future__ import annotations

from typing import Any

from labkit.cluster.apiserver.table_pods import POD_COLUMNS, pod_cells
from labkit.cluster.apiserver.table_storage import STORAGE
from labkit.cluster.apiserver.table_text import (
    NONE,
    UNKNOWN,
    Cells,
    Json,
    age,
    columns,
    name_of,
    selector,
    since,
    spec_of,
    status_of,
)
from labkit.cluster.apiserver.table_workloads import WORKLOADS


def _node(node: Json, now: float) -> list[Any]:
    status, info = status_of(node), status_of(node).get("nodeInfo") or {}
    ready = next((c for c in status.get("conditions") or () if c.get("type") == "Ready"), None)
    state = "Unknown"
    if ready is not None:
        state = "Ready" if ready.get("status") == "True" else "NotReady"
    if spec_of(node).get("unschedulable"):
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
        name_of(node),
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
    first_text, last_text = since(first, now), since(last, now)
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
        name_of(event),
    ]


def _service(obj: Json, now: float) -> list[Any]:
    spec, kind = spec_of(obj), spec_of(obj).get("type") or ""
    ports = []
    for p in spec.get("ports") or ():
        node_port = f":{p['nodePort']}" if p.get("nodePort") else ""
        ports.append(f"{p.get('port')}{node_port}/{p.get('protocol')}")
    external = ",".join(spec.get("externalIPs") or ()) or NONE
    if kind == "LoadBalancer":
        found = (status_of(obj).get("loadBalancer") or {}).get("ingress") or ()
        external = ",".join(i.get("ip") or i.get("hostname") or "" for i in found) or "<pending>"
    elif kind == "ExternalName":
        external = spec.get("externalName") or ""
    labels = spec.get("selector") or {}
    return [
        name_of(obj),
        kind,
        spec.get("clusterIP") or NONE,
        external,
        ",".join(ports) or NONE,
        age(obj, now),
        ",".join(f"{k}={v}" for k, v in sorted(labels.items())) or NONE,
    ]


def _priority_class(obj: Json, now: float) -> list[Any]:
    return [
        name_of(obj),
        int(obj.get("value") or 0),
        bool(obj.get("globalDefault")),
        age(obj, now),
        obj.get("preemptionPolicy") or "",
    ]


def _ingress(obj: Json, now: float) -> list[Any]:
    spec = spec_of(obj)
    rules = spec.get("rules") or ()
    hosts = [r["host"] for r in rules if r.get("host")]
    shown = ",".join(hosts[:3]) + (f" + {len(rules) - 3} more..." if len(hosts) > 3 else "")
    entries = (status_of(obj).get("loadBalancer") or {}).get("ingress") or ()
    address = ",".join(sorted({e.get("ip") or e.get("hostname") or "" for e in entries} - {""}))
    ports = "80, 443" if spec.get("tls") else "80"
    return [name_of(obj), spec.get("ingressClassName") or NONE, shown or "*", address, ports, age(obj, now)]


def _ingress_class(obj: Json, now: float) -> list[Any]:
    default = (obj["metadata"].get("annotations") or {}).get("ingressclass.kubernetes.io/is-default-class")
    name = name_of(obj) + (" (default)" if default == "true" else "")
    given = spec_of(obj).get("parameters")
    parameters = NONE
    if given:
        group = f".{given['apiGroup']}" if given.get("apiGroup") else ""
        parameters = f"{given.get('kind')}{group}/{given.get('name')}"
    return [name, spec_of(obj).get("controller") or "", parameters, age(obj, now)]


def _quota(obj: Json, now: float) -> list[Any]:
    hard, used = status_of(obj).get("hard") or {}, status_of(obj).get("used") or {}
    texts: dict[bool, list[str]] = {False: [], True: []}
    for name in sorted(hard):
        texts[name.startswith("limits")].append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [name_of(obj), ", ".join(texts[False]), ", ".join(texts[True]), age(obj, now)]


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
        name_of(obj),
        f"{reference.get('kind', '')}/{reference.get('name', '')}",
        age(obj, now),
        *(", ".join(by_kind[k]) for k in ("User", "Group", "ServiceAccount")),
    ]


def _endpoint_slice(obj: Json, now: float) -> list[Any]:
    ports = ",".join(str(p.get("port", "*")) for p in obj.get("ports") or ()) or "<unset>"
    addresses = ",".join(a for e in obj.get("endpoints") or () for a in e.get("addresses") or ()) or "<unset>"
    return [name_of(obj), obj.get("addressType") or "", ports, addresses, age(obj, now)]


COLUMNS: dict[tuple[str, str], Cells] = {
    ("", "Pod"): Cells(columns(POD_COLUMNS), pod_cells),
    ("", "Node"): Cells(
        columns(
            "Name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, Kernel-Version*, Container-Runtime*"
        ),
        _node,
    ),
    ("", "Event"): Cells(
        columns(
            "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count:integer*, Name*"
        ),
        _event,
    ),
    ("", "Namespace"): Cells(
        columns("Name, Status, Age"),
        lambda o, now: [name_of(o), status_of(o).get("phase") or "", age(o, now)],
    ),
    ("", "ConfigMap"): Cells(
        columns("Name, Data, Age"),
        lambda o, now: [
            name_of(o),
            str(len(o.get("data") or ()) + len(o.get("binaryData") or ())),
            age(o, now),
        ],
    ),
    ("", "Secret"): Cells(
        columns("Name, Type, Data, Age"),
        lambda o, now: [name_of(o), o.get("type") or "", str(len(o.get("data") or ())), age(o, now)],
    ),
    ("", "ServiceAccount"): Cells(
        columns("Name, Age"),
        lambda o, now: [name_of(o), age(o, now)],
    ),
    ("", "Service"): Cells(columns("Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*"), _service),
    ("", "ResourceQuota"): Cells(columns("Name, Request, Limit, Age"), _quota),
    ("", "LimitRange"): Cells(
        columns("Name, Created At"), lambda o, now: [name_of(o), o["metadata"].get("creationTimestamp")]
    ),
    ("scheduling.k8s.io", "PriorityClass"): Cells(
        columns("Name, Value:integer, Global-Default:boolean, Age, PreemptionPolicy"), _priority_class
    ),
    ("coordination.k8s.io", "Lease"): Cells(
        columns("Name, Holder, Age"),
        lambda o, now: [name_of(o), spec_of(o).get("holderIdentity") or "", age(o, now)],
    ),
    ("node.k8s.io", "RuntimeClass"): Cells(
        columns("Name, Handler, Age"), lambda o, now: [name_of(o), o.get("handler") or "", age(o, now)]
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): Cells(
        columns("Name, Role, Age, Users*, Groups*, ServiceAccounts*"), _binding
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): Cells(
        columns("Name, Role, Age, Users*, Groups*, ServiceAccounts*"), _binding
    ),
    ("discovery.k8s.io", "EndpointSlice"): Cells(
        columns("Name, AddressType, Ports, Endpoints, Age"), _endpoint_slice
    ),
    ("networking.k8s.io", "Ingress"): Cells(columns("Name, Class, Hosts, Address, Ports, Age"), _ingress),
    ("networking.k8s.io", "IngressClass"): Cells(
        columns("Name, Controller, Parameters, Age"), _ingress_class
    ),
    ("networking.k8s.io", "NetworkPolicy"): Cells(
        columns("Name, Pod-Selector, Age"),
        lambda o, now: [name_of(o), selector(spec_of(o).get("podSelector")), age(o, now)],
    ),
    **WORKLOADS,
    **STORAGE,
}
DEFAULT = Cells(
    columns("Name, Created At"), lambda o, now: [name_of(o), o["metadata"].get("creationTimestamp")]
)
