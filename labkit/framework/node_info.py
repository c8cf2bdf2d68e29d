"""What plugins see of a node: the node, its pods, and running sums (spec 01 §12).

Amounts are integers: CPU in millicores, memory and ephemeral storage in bytes, other resources in units.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from labkit.framework.requests import non_zero_requests_of_placed_pod, requests_of_placed_pod
from labkit.framework.resource import Resource
from labkit.objects.node import Node
from labkit.objects.pod import ContainerPort, Pod, PodAffinityTerm, WeightedPodAffinityTerm

HostPort = tuple[str, str, int]  # (host IP, protocol, port)


class PodInfo:
    """A pod with what is computed once from it. Immutable: a changed pod gets a new PodInfo."""

    __slots__ = (
        "claim_keys",
        "host_ports",
        "non_zero_cpu",
        "non_zero_memory",
        "pod",
        "preferred_affinity",
        "preferred_anti_affinity",
        "requested",
        "required_affinity",
        "required_anti_affinity",
        "with_affinity",
    )

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        #: What the pod takes from a node once placed (resize status and pod-level requests honoured).
        self.requested: Resource = requests_of_placed_pod(pod)
        self.non_zero_cpu, self.non_zero_memory = non_zero_requests_of_placed_pod(pod)
        affinity = pod.spec.affinity
        own, anti = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else (None, None)
        self.with_affinity = own is not None or anti is not None
        self.required_affinity: list[PodAffinityTerm] = (
            own.required_during_scheduling_ignored_during_execution if own else []
        )
        self.required_anti_affinity: list[PodAffinityTerm] = (
            anti.required_during_scheduling_ignored_during_execution if anti else []
        )
        self.preferred_affinity: list[WeightedPodAffinityTerm] = (
            own.preferred_during_scheduling_ignored_during_execution if own else []
        )
        self.preferred_anti_affinity: list[WeightedPodAffinityTerm] = (
            anti.preferred_during_scheduling_ignored_during_execution if anti else []
        )
        self.host_ports: list[HostPort] = host_ports(pod)
        self.claim_keys: list[str] = [
            f"{pod.namespace}/{v.persistent_volume_claim.claim_name}"
            if v.persistent_volume_claim
            else f"{pod.namespace}/{pod.name}-{v.name}"
            for v in pod.spec.volumes
            if v.persistent_volume_claim is not None or v.ephemeral is not None
        ]

    def for_pod(self, pod: Pod) -> PodInfo:
        """The same about another version of the pod that differs in nothing computed here."""
        copy = PodInfo.__new__(PodInfo)
        for name in PodInfo.__slots__:
            setattr(copy, name, getattr(self, name))
        copy.pod = pod
        return copy


def pod_info(pod: Pod) -> PodInfo:
    """The PodInfo of `pod`, computed once and kept on the (immutable) pod object."""
    cached: PodInfo | None = pod.__dict__.get("_pod_info")
    if cached is None:
        cached = PodInfo(pod)
        pod.__dict__["_pod_info"] = cached
    return cached


def host_ports(pod: Pod) -> list[HostPort]:
    """Host ports that the pod holds, sidecars first; empty IP is 0.0.0.0, empty protocol TCP (spec 10 §10.5)."""
    spec = pod.spec
    found: list[HostPort] = []

    def take(ports: Iterable[ContainerPort]) -> None:
        for p in ports:
            if p.host_port > 0:
                found.append((p.host_ip or "0.0.0.0", p.protocol or "TCP", p.host_port))

    for c in spec.init_containers:
        if c.restart_policy == "Always" and c.ports:
            take(c.ports)
    for c in spec.containers:
        if c.ports:
            take(c.ports)
    return found


class NodeInfo:
    """A node with its pods. The engine changes it through `add_pod` / `remove_pod` / `set_node` only.

    `generation` grows with every change; `image_states` maps an image name to (size in bytes, number of nodes
    that have it) and is filled by the cache, as is `index`, the node's place in the snapshot list.
    """

    __slots__ = (
        "allocatable",
        "claim_counts",
        "generation",
        "image_states",
        "index",
        "node",
        "non_zero_cpu",
        "non_zero_memory",
        "pods",
        "pods_with_affinity",
        "pods_with_required_anti_affinity",
        "requested",
        "used_ports",
    )

    def __init__(self, node: Node | None = None, pods: Iterable[Pod] = ()) -> None:
        self.node: Node = node  # type: ignore[assignment]  # None only for a node that is gone but still has pods
        self.pods: list[PodInfo] = []
        self.pods_with_affinity: list[PodInfo] = []
        self.pods_with_required_anti_affinity: list[PodInfo] = []
        self.requested = Resource()
        self.allocatable = Resource() if node is None else Resource.of_allocatable(node)
        self.non_zero_cpu = 0
        self.non_zero_memory = 0
        self.used_ports: dict[str, set[tuple[str, int]]] = {}
        self.image_states: dict[str, tuple[int, int]] = {}
        self.claim_counts: dict[str, int] = {}
        self.generation = 0
        self.index = -1
        for pod in pods:
            self.add_pod(pod_info(pod))

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    @property
    def has_node(self) -> bool:
        """False for a node whose object is gone while pods are still counted on it."""
        found: Node | None = self.node
        return found is not None

    def set_node(self, node: Node) -> None:
        """Replace the node object and its allocatable amounts."""
        self.node = node
        self.allocatable = Resource.of_allocatable(node)
        self.generation += 1

    def add_pod(self, info: PodInfo) -> None:
        """Count a pod in."""
        self.pods.append(info)
        if info.with_affinity:
            self.pods_with_affinity.append(info)
        if info.required_anti_affinity:
            self.pods_with_required_anti_affinity.append(info)
        self.requested.add(info.requested)
        self.non_zero_cpu += info.non_zero_cpu
        self.non_zero_memory += info.non_zero_memory
        for ip, protocol, port in info.host_ports:
            self.used_ports.setdefault(ip, set()).add((protocol, port))
        for key in info.claim_keys:
            self.claim_counts[key] = self.claim_counts.get(key, 0) + 1
        self.generation += 1

    def remove_pod(self, pod: Pod) -> bool:
        """Count a pod out, by UID; False when it is not here. The last pod takes its place in the list."""
        for info in self.pods:
            if info.pod.metadata.uid == pod.metadata.uid:
                break
        else:
            return False
        _swap_out(self.pods, info)
        if info.with_affinity:
            _swap_out(self.pods_with_affinity, info)
        if info.required_anti_affinity:
            _swap_out(self.pods_with_required_anti_affinity, info)
        self.requested.subtract(info.requested)
        self.non_zero_cpu -= info.non_zero_cpu
        self.non_zero_memory -= info.non_zero_memory
        for ip, protocol, port in info.host_ports:
            self.used_ports.get(ip, set()).discard((protocol, port))
            if ip in self.used_ports and not self.used_ports[ip]:
                del self.used_ports[ip]
        for key in info.claim_keys:
            left = self.claim_counts.get(key, 0) - 1
            if left > 0:
                self.claim_counts[key] = left
            else:
                self.claim_counts.pop(key, None)
        self.generation += 1
        return True

    def clone(self) -> NodeInfo:
        """A copy whose pods can be changed without touching this one."""
        copy = NodeInfo.__new__(NodeInfo)
        copy.node = self.node
        copy.pods = list(self.pods)
        copy.pods_with_affinity = list(self.pods_with_affinity)
        copy.pods_with_required_anti_affinity = list(self.pods_with_required_anti_affinity)
        copy.requested = self.requested.clone()
        copy.allocatable = self.allocatable
        copy.non_zero_cpu = self.non_zero_cpu
        copy.non_zero_memory = self.non_zero_memory
        copy.used_ports = {ip: set(ports) for ip, ports in self.used_ports.items()}
        copy.image_states = self.image_states
        copy.claim_counts = dict(self.claim_counts)
        copy.generation = self.generation
        copy.index = self.index
        return copy

    def __repr__(self) -> str:
        return f"<NodeInfo {self.node.metadata.name if self.node else '?'}: {len(self.pods)} pods>"


def _swap_out(infos: list[PodInfo], info: PodInfo) -> None:
    i = next(i for i, x in enumerate(infos) if x is info)
    infos[i] = infos[-1]
    infos.pop()


class QueuedPodInfo:
    """A pod in the scheduling queue (spec 02 §2). Times are Clock seconds."""

    __slots__ = (
        "attempts",
        "backoff_expiration",
        "consecutive_errors_count",
        "gating_events",
        "gating_message",
        "gating_plugin",
        "initial_attempt_timestamp",
        "pending_plugins",
        "pod",
        "sequence",
        "timestamp",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed",
    )

    def __init__(self, pod: Pod, timestamp: float = 0.0, sequence: int = 0) -> None:
        self.pod = pod
        self.timestamp = timestamp
        self.sequence = sequence
        self.initial_attempt_timestamp: float | None = None
        self.attempts = 0
        self.unschedulable_count = 0
        self.consecutive_errors_count = 0
        self.backoff_expiration: float | None = None
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self.gating_plugin = ""
        self.gating_message = ""
        self.gating_events: list[Any] = []
        self.was_flushed = False

    @property
    def gated(self) -> bool:
        """A PreEnqueue plugin holds the pod back."""
        return bool(self.gating_plugin)
