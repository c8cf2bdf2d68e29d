"""Nodes, as far as scheduling reads them (`core/v1` Node)."""

from __future__ import annotations

import msgspec

from labkit.objects.meta import KubeObject, KubeStruct, ResourceList


class Taint(KubeStruct):
    """`spec.taints[]`."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(KubeStruct):
    """`spec`."""

    unschedulable: bool = False
    taints: list[Taint] = []
    provider_id: str = msgspec.field(default="", name="providerID")


class ContainerImage(KubeStruct):
    """`status.images[]`; size in bytes."""

    names: list[str] = []
    size_bytes: int = 0


class NodeCondition(KubeStruct):
    """`status.conditions[]`."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class NodeStatus(KubeStruct):
    """`status`."""

    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    images: list[ContainerImage] = []
    conditions: list[NodeCondition] = []
    declared_features: list[str] = []


class Node(KubeObject):
    """A node."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)
