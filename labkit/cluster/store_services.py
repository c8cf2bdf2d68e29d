"""Services: cluster IPs and node ports, which exist once in a cluster, and what is legal to ask for."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from labkit.cluster.store_errors import Cause, invalid
from labkit.cluster.store_problems import Problems
from labkit.cluster.store_types import resource_type

if TYPE_CHECKING:
    from labkit.cluster.store import Store

Json = dict[str, Any]
CLUSTER_NETWORK = ipaddress.ip_network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_OUTSIDE = ("NodePort", "LoadBalancer")
_MAX_PORT = 65535
_HEADLESS = "None"


def allocate(store: Store, obj: Json, old: Json | None = None) -> None:
    """Give a Service what it lacks; what it asks for must be free. ApiError 422. `old` is its state before."""
    spec = obj["spec"]
    others = [o for o in _all(store) if o["metadata"]["uid"] != obj["metadata"].get("uid")]
    kept = (old or {}).get("spec") or {}
    if spec.get("type") != "ExternalName" and not kept.get("clusterIP"):
        _address(obj, others)
    if spec.get("type") in _OUTSIDE:
        _node_ports(obj, others, kept)


def let_go(old: Json, obj: Json) -> None:
    """An update keeps the address; a type without node ports gives them back."""
    spec, before = obj["spec"], old["spec"]
    if spec.get("type") != "ExternalName":
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(key) is None and before.get(key) is not None:
                spec[key] = before[key]
    if spec.get("type") not in _OUTSIDE and before.get("type") in _OUTSIDE:
        spec.pop("externalTrafficPolicy", None)
        spec.pop("allocateLoadBalancerNodePorts", None)
        given = {p.get("nodePort") for p in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            if port.get("nodePort") in given:
                port.pop("nodePort", None)


def check_service(obj: Json, problems: Problems) -> None:
    """Type, address and ports."""
    spec = obj["spec"]
    ports, kind = spec.get("ports") or [], spec.get("type")
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != _HEADLESS:
        problems.required("spec.ports")
    seen: set[tuple[Any, Any]] = set()
    names: set[str] = set()
    for i, port in enumerate(ports):
        path, number, target = f"spec.ports[{i}]", port.get("port") or 0, port.get("targetPort")
        if not port.get("name") and len(ports) > 1:
            problems.required(f"{path}.name")
        if port.get("name") in names:
            problems.duplicate(f"{path}.name", port["name"])
        names |= {port["name"]} if port.get("name") else set()
        for field, value in (("port", number), ("targetPort", target)):
            if isinstance(value, int) and not 0 < value <= _MAX_PORT:
                problems.invalid(f"{path}.{field}", value, f"must be between 1 and {_MAX_PORT}, inclusive")
        if (port.get("protocol"), number) in seen:
            problems.duplicate(path, _go_port(port))
        seen.add((port.get("protocol"), number))
        if port.get("nodePort") and kind == "ClusterIP":
            problems.forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'")
    problems.one_of("spec.type", kind, _TYPES)
    if kind == "ExternalName" and not spec.get("externalName"):
        problems.required("spec.externalName")
    address = spec.get("clusterIP")
    if address and address != _HEADLESS and not _parsed(address):
        why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        problems.invalid("spec.clusterIPs[0]", address, why)


def check_service_update(old: Json, obj: Json, problems: Problems) -> None:
    """The same, and an address that stays."""
    check_service(obj, problems)
    before, now = old["spec"].get("clusterIP"), obj["spec"].get("clusterIP")
    if before and now != before and obj["spec"].get("type") != "ExternalName":
        problems.invalid("spec.clusterIPs[0]", [now or ""], "may not change once set")


def _all(store: Store) -> Iterator[Json]:
    yield from store.objects(resource_type("Service")).values()


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None


def _refuse(obj: Json, field: str, message: str) -> None:
    raise invalid(
        resource_type("Service"), obj["metadata"]["name"], [Cause("FieldValueInvalid", message, field)]
    )


def _address(obj: Json, others: list[Json]) -> None:
    spec = obj["spec"]
    used = {o["spec"].get("clusterIP") for o in others} - {_HEADLESS}
    address = spec.get("clusterIP")
    if not address:
        candidates = (f"10.96.{n // 250}.{n % 250 + 1}" for n in range(1, 60000))
        spec["clusterIP"] = next(ip for ip in candidates if ip not in used)
    elif address != _HEADLESS:
        why = "provided IP is already allocated" if address in used else ""
        if _parsed(address) not in CLUSTER_NETWORK:
            why = "the provided network does not match the current range"
        if why:
            text = f'Invalid value: ["{address}"]: failed to allocate IP {address}: {why}'
            _refuse(obj, "spec.clusterIPs", text)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _node_ports(obj: Json, others: list[Json], before: Json) -> None:
    spec = obj["spec"]
    used = {p["nodePort"] for o in others for p in o["spec"].get("ports") or () if p.get("nodePort")}
    kept = {(p.get("protocol"), p.get("port")): p.get("nodePort") for p in before.get("ports") or ()}
    taken: set[tuple[int, Any]] = set()
    for i, port in enumerate(spec.get("ports") or ()):
        number = port.get("nodePort")
        if not number:
            continue
        if number not in NODE_PORTS:
            last = NODE_PORTS[-1]
            why = (
                f"provided port is not in the valid range. The range of valid ports is {NODE_PORTS[0]}-{last}"
            )
        elif number in used or (number, port.get("protocol")) in taken:
            why = "provided port is already allocated"
        else:
            taken.add((number, port.get("protocol")))
            continue
        _refuse(obj, f"spec.ports[{i}].nodePort", f"Invalid value: {number}: {why}")
    if spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        return
    used |= {number for number, _ in taken}
    for port in spec.get("ports") or ():
        if not port.get("nodePort"):
            number = kept.get((port.get("protocol"), port.get("port")))
            port["nodePort"] = number if number and number not in used else _free(used)
            used.add(port["nodePort"])


def _free(used: set[int]) -> int:
    return next(number for number in NODE_PORTS if number not in used)


def _go_port(port: Json) -> Json:
    """As the server's Go type shows it."""
    return {
        "Name": "",
        "Protocol": port.get("protocol"),
        "AppProtocol": None,
        "Port": port.get("port") or 0,
        "TargetPort": 0,
        "NodePort": 0,
    }
