"""From two versions of an object to the cluster events that they mean (spec 02 §8.2)."""

from __future__ import annotations

from labkit.framework.events import ActionType, ClusterEvent
from labkit.framework.node_info import pod_info
from labkit.framework.resource import Resource
from labkit.objects.node import Node
from labkit.objects.pod import Pod


def node_events(old: Node, new: Node) -> list[ClusterEvent]:
    """Events of a node update, in processing order; none when nothing that matters changed."""
    actions: list[ActionType] = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        actions.append(ActionType.UPDATE_NODE_TAINT)
    if old.status.allocatable != new.status.allocatable and (
        Resource.of_allocatable(old) != Resource.of_allocatable(new)
    ):
        actions.append(ActionType.UPDATE_NODE_ALLOCATABLE)
    if old.labels != new.labels:
        actions.append(ActionType.UPDATE_NODE_LABEL)
    if old.spec.taints != new.spec.taints:
        actions.append(ActionType.UPDATE_NODE_TAINT)
    if {c.type: c.status for c in old.status.conditions} != {c.type: c.status for c in new.status.conditions}:
        actions.append(ActionType.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        actions.append(ActionType.UPDATE_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        actions.append(ActionType.UPDATE_NODE_DECLARED_FEATURE)
    return [ClusterEvent("Node", a) for a in actions]


def pod_events(old: Pod, new: Pod) -> list[ClusterEvent]:
    """Events of a pod update; one generic Update when nothing specific changed."""
    actions: list[ActionType] = []
    if old.labels != new.labels:
        actions.append(ActionType.UPDATE_POD_LABEL)
    if _scaled_down(old, new):
        actions.append(ActionType.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(ActionType.UPDATE_POD_TOLERATION)
    if (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    ):
        actions.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    resource = "AssignedPod" if new.spec.node_name else "UnschedulablePod"
    return [ClusterEvent(resource, a) for a in actions or [ActionType.UPDATE]]


def _scaled_down(old: Pod, new: Pod) -> bool:
    if (
        old.spec.containers == new.spec.containers
        and old.status.container_statuses == new.status.container_statuses
    ):
        return False
    before, after = pod_info(old).requested, pod_info(new).requested
    names = ["cpu", "memory", "ephemeral-storage", *before.scalars]
    return any(after.get(n) < before.get(n) for n in names)
