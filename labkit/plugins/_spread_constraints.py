"""Which topology spread constraints hold for a pod, and what they count (spec 12 §12.2.1 - §12.2.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from labkit.framework.handle import ObjectLister
from labkit.framework.node_info import NodeInfo
from labkit.objects.node import Node
from labkit.objects.pod import Pod, TopologySpreadConstraint
from labkit.objects.selectors import (
    Requirement,
    Selector,
    SelectorError,
    compile_label_selector,
    find_untolerated_taint,
    required_node_affinity,
    selector_from_map,
)

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)


class Constraint:
    """A constraint ready to count: compiled selector, policies resolved."""

    __slots__ = ("honor_affinity", "honor_taints", "key", "max_skew", "min_domains", "selector")

    def __init__(self, spec: TopologySpreadConstraint, selector: Selector) -> None:
        self.key = spec.topology_key
        self.max_skew = spec.max_skew
        self.min_domains = 1 if spec.min_domains is None else spec.min_domains
        self.honor_affinity = spec.node_affinity_policy != "Ignore"
        self.honor_taints = spec.node_taints_policy == "Honor"
        self.selector = selector

    def includes(self, pod: Pod, node: Node) -> bool:
        """Does `node` count for this constraint of `pod`?"""
        if self.honor_affinity and not required_node_affinity(pod).matches(node):
            return False
        return not self.honor_taints or find_untolerated_taint(node.spec.taints, pod.spec.tolerations) is None

    def count(self, pod: Pod, node: NodeInfo) -> int:
        """Matching pods of the same namespace on `node` that are not terminating; 0 for an empty selector."""
        if self.selector.is_empty or not node.pods:
            return 0
        namespace, matches = pod.metadata.namespace, self.selector.matches
        return sum(
            info.pod.metadata.namespace == namespace
            and not info.pod.metadata.deletion_timestamp
            and matches(info.pod.metadata.labels)
            for info in node.pods
        )


class Defaults:
    """The profile's default constraints; `required_keys`: nodes that lack a key do not count (List defaulting)."""

    def __init__(self, args: Any) -> None:
        kind = _arg(args, "defaulting_type", "defaultingType") or "System"
        given = _arg(args, "default_constraints", "defaultConstraints") or []
        self.is_list = kind == "List"
        self.constraints: Sequence[TopologySpreadConstraint] = (
            tuple(
                c if isinstance(c, TopologySpreadConstraint) else msgspec.convert(c, TopologySpreadConstraint)
                for c in given
            )
            if self.is_list
            else SYSTEM_DEFAULTS
        )


def effective_constraints(
    pod: Pod, action: str, defaults: Defaults, objects: ObjectLister | None
) -> list[Constraint]:
    """The pod's own constraints with `action`, or the defaults. SelectorError when one does not parse."""
    own = pod.spec.topology_spread_constraints
    if own:
        return [Constraint(c, _selector_of(c, pod)) for c in own if c.when_unsatisfiable == action]
    wanted = [c for c in defaults.constraints if c.when_unsatisfiable == action]
    if not wanted or objects is None:
        return []
    selector = deduced_selector(pod, objects)
    return [] if selector.is_empty else [Constraint(c, selector) for c in wanted]


def _selector_of(spec: TopologySpreadConstraint, pod: Pod) -> Selector:
    selector = compile_label_selector(spec.label_selector)
    extra = [Requirement(k, "In", (pod.labels[k],)) for k in spec.match_label_keys if k in pod.labels]
    return selector.and_(*extra) if extra else selector


def deduced_selector(pod: Pod, objects: ObjectLister) -> Selector:
    """What default constraints count: the pods of the same service and of the same controller."""
    merged: dict[str, str] = {}
    for service in objects.list("Service", pod.namespace):
        selector = service.spec.selector
        if selector is not None and all(pod.labels.get(k) == v for k, v in selector.items()):
            merged.update(selector)
    owner = next((o for o in pod.metadata.owner_references if o.controller), None)
    if owner is None:
        return selector_from_map(merged)
    kind = (owner.api_version, owner.kind)
    if kind == ("v1", "ReplicationController"):
        found = objects.get("ReplicationController", pod.namespace, owner.name)
        if found is not None:
            merged.update(found.spec.selector or {})
    elif kind in (("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")):
        found = objects.get(owner.kind, pod.namespace, owner.name)
        if found is not None:
            try:
                theirs = compile_label_selector(found.spec.selector)
            except SelectorError:
                return selector_from_map(merged)
            return Selector(merged).and_(*_requirements(theirs))
    return selector_from_map(merged)


def _requirements(selector: Selector) -> Iterable[Requirement]:
    for key, value in selector.equal.items():
        yield Requirement(key, "In", (value,))
    yield from selector.rest


def _arg(args: Any, attribute: str, json_name: str) -> Any:
    return args.get(json_name) if isinstance(args, dict) else getattr(args, attribute, None)
