"""What a pod requests (spec 11 §11.3, spec 01 §12).

Regular containers and sidecars add up, ordinary init containers count at their peak, pod-level requests
replace the sum, overhead comes on top. Sums are exact and rounded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from labkit.framework.resource import Resource
from labkit.objects.meta import ResourceList
from labkit.objects.pod import Container, ContainerStatus, Pod
from labkit.objects.quantity import Quantity, parse_quantity

Amounts = dict[str, Quantity]

#: What scoring assumes for a container that does not mention the resource.
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
NON_ZERO_DEFAULTS: Mapping[str, Quantity] = {
    "cpu": parse_quantity("100m"),
    "memory": Quantity(DEFAULT_MEMORY),
}


def pod_requests(
    pod: Pod,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    defaults: Mapping[str, Quantity] | None = None,
) -> Amounts:
    """The pod's request per resource, exact.

    `use_status` consults in-place resize status, `pod_level` honours `spec.resources`, `defaults` are added to
    every container that lacks the name.
    """
    spec = pod.spec
    statuses = _by_name(pod.status.container_statuses) if use_status else {}
    infeasible = use_status and _resize_infeasible(pod)
    total: Amounts = {}
    for c in spec.containers:
        _add(total, _container(c, statuses.get(c.name), infeasible, defaults))
    if spec.init_containers:
        init_statuses = _by_name(pod.status.init_container_statuses) if use_status else {}
        sidecars: Amounts = {}
        peak: Amounts = {}
        for c in spec.init_containers:
            always = c.restart_policy == "Always"
            use = _container(c, init_statuses.get(c.name) if always else None, infeasible, defaults)
            if always:
                _add(total, use)
                _add(sidecars, use)
                use = dict(sidecars)
            else:
                _add(use, sidecars)
            _raise(peak, use)
        _raise(total, peak)
    if pod_level and has_pod_level_requests(pod):
        total.update(_pod_level(pod, use_status, infeasible))
    for name, quantity in spec.overhead.items():
        _add(total, {name: parse_quantity(quantity)})
    return total


def has_pod_level_requests(pod: Pod) -> bool:
    """`spec.resources.requests` names cpu, memory or huge pages."""
    resources = pod.spec.resources
    return resources is not None and any(_supported(name) for name in resources.requests)


def requests_of_placed_pod(pod: Pod) -> Resource:
    """What a pod takes from its node."""
    return Resource.of_quantities(pod_requests(pod, use_status=True))


def requests_of_incoming_pod(pod: Pod) -> Resource:
    """What NodeResourcesFit's Filter asks for."""
    return Resource.of_quantities(pod_requests(pod))


def non_zero_requests_of_placed_pod(pod: Pod) -> tuple[int, int]:
    """(millicores, bytes) that scoring counts for a placed pod: defaults stand in for what is not mentioned."""
    defaults: Mapping[str, Quantity] = NON_ZERO_DEFAULTS
    if has_pod_level_requests(pod):
        known = pod_requests(pod, use_status=True)
        defaults = {name: q for name, q in NON_ZERO_DEFAULTS.items() if name not in known}
    found = pod_requests(pod, use_status=True, defaults=defaults)
    zero = Quantity(0)
    return found.get("cpu", zero).milli_value(), found.get("memory", zero).value()


def _supported(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _by_name(statuses: Iterable[ContainerStatus]) -> dict[str, ContainerStatus]:
    return {s.name: s for s in statuses}


def _resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _container(
    c: Container, status: ContainerStatus | None, infeasible: bool, defaults: Mapping[str, Quantity] | None
) -> Amounts:
    if status is not None and status.resources is not None:
        found = _largest(
            ({} if infeasible else c.resources.requests),
            status.resources.requests,
            status.allocated_resources,
        )
    else:
        found = {name: parse_quantity(q) for name, q in c.resources.requests.items()}
    if defaults:
        for name, quantity in defaults.items():
            found.setdefault(name, quantity)
    return found


def _pod_level(pod: Pod, use_status: bool, infeasible: bool) -> Amounts:
    resources = pod.spec.resources
    names = [n for n in (resources.requests if resources else {}) if _supported(n)]
    status = pod.status
    if use_status and status.resources is not None and resources is not None:
        chosen = _largest(
            ({} if infeasible else resources.requests), status.resources.requests, status.allocated_resources
        )
        return {name: chosen.get(name, Quantity(0)) for name in names}
    return {name: parse_quantity(resources.requests[name]) for name in names} if resources else {}


def _largest(*lists: ResourceList) -> Amounts:
    found: Amounts = {}
    for amounts in lists:
        _raise(found, {name: parse_quantity(q) for name, q in amounts.items()})
    return found


def _add(total: Amounts, more: Amounts) -> None:
    for name, quantity in more.items():
        total[name] = total[name] + quantity if name in total else quantity


def _raise(total: Amounts, other: Amounts) -> None:
    for name, quantity in other.items():
        if name not in total or quantity > total[name]:
            total[name] = quantity
