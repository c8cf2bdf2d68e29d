"""Other kinds that scheduling looks at: budgets, namespaces, and the owners of pods."""

from __future__ import annotations

from typing import Any

import msgspec

from labkit.objects.meta import KubeObject, KubeStruct, LabelSelector


class PodDisruptionBudgetSpec(KubeStruct):
    """`spec` of a PodDisruptionBudget."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class PodDisruptionBudgetStatus(KubeStruct):
    """`status`: what preemption reads."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(KubeObject):
    """A PodDisruptionBudget (`policy/v1`)."""

    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)


class Namespace(KubeObject):
    """A Namespace; its labels matter to namespace selectors."""


class PriorityClass(KubeObject):
    """A PriorityClass (`scheduling.k8s.io/v1`)."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class ServiceSpec(KubeStruct):
    """`spec` of a Service or ReplicationController: an equality selector."""

    selector: dict[str, str] | None = None


class Service(KubeObject):
    """A Service."""

    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)


class ReplicationController(KubeObject):
    """A ReplicationController."""

    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)


class SelectorSpec(KubeStruct):
    """`spec` of a ReplicaSet or StatefulSet as far as scheduling reads it."""

    selector: LabelSelector | None = None


class ReplicaSet(KubeObject):
    """A ReplicaSet."""

    spec: SelectorSpec = msgspec.field(default_factory=SelectorSpec)


class StatefulSet(KubeObject):
    """A StatefulSet."""

    spec: SelectorSpec = msgspec.field(default_factory=SelectorSpec)


class PodGroupSpec(KubeStruct):
    """`spec` of a PodGroup: native (`scheduling.k8s.io/v1alpha2`, exactly one policy) and out of tree
    (`scheduling.x-k8s.io/v1alpha1`: `minMember` and what follows it)."""

    scheduling_policy: dict[str, Any] = {}
    scheduling_constraints: dict[str, Any] = {}
    priority: int | None = None
    min_member: int = 0
    min_resources: dict[str, str | int | float] = {}
    schedule_timeout_seconds: int | None = None


class PodGroup(KubeObject):
    """A PodGroup, native (alpha, spec 15 §1) or out of tree (§2)."""

    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)

    @property
    def min_count(self) -> int | None:
        """How many pods a gang needs; None for the policy `basic`."""
        gang = self.spec.scheduling_policy.get("gang")
        return int(gang.get("minCount") or 0) if isinstance(gang, dict) else None

    @property
    def topology_key(self) -> str:
        """The node label within one value of which the group must run; "" without constraint."""
        topology = self.spec.scheduling_constraints.get("topology") or [{}]
        return str(topology[0].get("key") or "")
