"""LimitRange: default requests and limits of containers, and bounds on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from labkit.cluster.store_errors import forbidden
from labkit.cluster.store_types import LIMIT_RANGE, ResourceType
from labkit.objects.quantity import parse_quantity

if TYPE_CHECKING:
    from labkit.cluster.store import Store

Json = dict[str, Any]
_ANNOTATION = "kubernetes.io/limit-ranger"


def _ranges(store: Store, namespace: str) -> list[Json]:
    table = store.objects(LIMIT_RANGE)
    if not table:
        return []
    return [table[k] for k in sorted(table) if k.startswith(f"{namespace}/")]


def _containers(spec: Json) -> Iterator[tuple[str, Json]]:
    for key, label in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(key) or ():
            yield label, container


def apply_defaults(store: Store, pod: Json) -> None:
    """Fill in the requests and limits that the namespace's LimitRanges give to containers without any."""
    told = []
    for limit_range in _ranges(store, pod["metadata"]["namespace"]):
        for item in limit_range["spec"].get("limits") or ():
            if item.get("type") != "Container":
                continue
            for label, container in _containers(pod["spec"]):
                resources = container.setdefault("resources", {})
                for section, source in (("limits", "default"), ("requests", "defaultRequest")):
                    set_here = []
                    for name, amount in sorted((item.get(source) or {}).items()):
                        if name not in (resources.get(section) or {}):
                            resources.setdefault(section, {})[name] = amount
                            set_here.append(name)
                    if set_here:
                        word = "limit" if section == "limits" else "request"
                        told.append(
                            (word, f"{', '.join(set_here)} {word} for {label} {container.get('name')}")
                        )
    if told:
        text = "; ".join(t for _, t in sorted(told, key=lambda x: x[0] != "request"))
        pod["metadata"].setdefault("annotations", {})[_ANNOTATION] = f"LimitRanger plugin set: {text}"


def check(store: Store, resource: ResourceType, pod: Json) -> None:
    """403 when a container or the pod is outside of the namespace's bounds."""
    problems: list[str] = []
    for limit_range in _ranges(store, pod["metadata"]["namespace"]):
        for item in limit_range["spec"].get("limits") or ():
            if item.get("type") == "Container":
                for _, container in _containers(pod["spec"]):
                    problems += _bounds(item, container.get("resources") or {}, "Container")
            elif item.get("type") == "Pod":
                problems += _bounds(item, _pod_sums(pod["spec"]), "Pod")
    if problems:
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise forbidden(resource, pod["metadata"].get("name", ""), text)


def _pod_sums(spec: Json) -> Json:
    sums: Json = {"requests": {}, "limits": {}}
    for container in spec.get("containers") or ():
        for section in sums:
            for name, amount in ((container.get("resources") or {}).get(section) or {}).items():
                total = sums[section].get(name)
                sums[section][name] = (
                    parse_quantity(amount) + total if total is not None else parse_quantity(amount)
                )
    return {section: {k: str(v) for k, v in found.items()} for section, found in sums.items()}


def _bounds(item: Json, resources: Json, label: str) -> list[str]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    problems = []
    for name, bound in (item.get("min") or {}).items():
        if name not in requests:
            problems.append(f"minimum {name} usage per {label} is {bound}.  No request is specified")
        elif parse_quantity(requests[name]) < parse_quantity(bound):
            problems.append(f"minimum {name} usage per {label} is {bound}, but request is {requests[name]}")
    for name, bound in (item.get("max") or {}).items():
        if name not in limits:
            problems.append(f"maximum {name} usage per {label} is {bound}.  No limit is specified")
        elif parse_quantity(limits[name]) > parse_quantity(bound):
            problems.append(f"maximum {name} usage per {label} is {bound}, but limit is {limits[name]}")
    for name, ratio in (item.get("maxLimitRequestRatio") or {}).items():
        if name in requests and name in limits and parse_quantity(requests[name]):
            actual = parse_quantity(limits[name]).amount / parse_quantity(requests[name]).amount
            if actual > parse_quantity(ratio).amount:
                problems.append(
                    f"{name} max limit to request ratio per {label} is {ratio}, but provided ratio is {float(actual):.6f}"
                )
    return problems
