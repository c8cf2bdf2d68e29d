"""Pods, as far as scheduling reads them (`core/v1` Pod)."""

from __future__ import annotations

from typing import Any

import msgspec

from labkit.objects.meta import KubeObject, KubeStruct, LabelSelector, ResourceList


class ResourceRequirements(KubeStruct):
    """`resources` of a container or of the pod."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(KubeStruct):
    """`ports[]`; absent protocol means TCP, absent host IP means 0.0.0.0."""

    name: str = ""
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class RestartPolicyRule(KubeStruct):
    """`restartPolicyRules[]`: only the action matters here."""

    action: str = ""


class Container(KubeStruct):
    """A container or init container; an init container with `restartPolicy: Always` is a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    ports: list[ContainerPort] = []
    restart_policy: str | None = None
    restart_policy_rules: list[RestartPolicyRule] = []


class Toleration(KubeStruct):
    """`tolerations[]`; absent operator means Equal."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorRequirement(KubeStruct):
    """A match expression or match field of a node selector term."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeSelectorTerm(KubeStruct):
    """Expressions and fields are ANDed; a term with neither matches nothing."""

    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(KubeStruct):
    """Terms are ORed."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(KubeStruct):
    """A weighted node selector term."""

    weight: int = 0
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinity(KubeStruct):
    """`affinity.nodeAffinity`."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = None


class PodAffinityTerm(KubeStruct):
    """One (anti-)affinity term."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(KubeStruct):
    """A preferred (anti-)affinity term."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(KubeStruct):
    """`affinity.podAffinity` or `affinity.podAntiAffinity`."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []


class Affinity(KubeStruct):
    """`spec.affinity`."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(KubeStruct):
    """`spec.topologySpreadConstraints[]`."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


class NamedReference(KubeStruct):
    """A field that holds only a name."""

    name: str = ""


class PersistentVolumeClaimVolumeSource(KubeStruct):
    """`volumes[].persistentVolumeClaim`."""

    claim_name: str = ""
    read_only: bool = False


class Volume(KubeStruct):
    """`volumes[]`. Sources whose details only one plugin reads stay plain dicts."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: dict[str, Any] | None = None
    csi: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    azure_file: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    vsphere_volume: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None
    image: dict[str, Any] | None = None


class PodSchedulingGroup(KubeStruct):
    """`spec.schedulingGroup` (alpha, spec 15 §1)."""

    pod_group_name: str = ""


class PodResourceClaim(KubeStruct):
    """`spec.resourceClaims[]`."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(KubeStruct):
    """`spec`."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    scheduling_gates: list[NamedReference] = []
    volumes: list[Volume] = []
    resource_claims: list[PodResourceClaim] = []
    scheduling_group: PodSchedulingGroup | None = None
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: int | None = None


class PodCondition(KubeStruct):
    """`status.conditions[]`."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    last_probe_time: str | None = None


class ContainerStatus(KubeStruct):
    """`status.containerStatuses[]` as far as in-place resize matters (spec 01 §12.2)."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodStatus(KubeStruct):
    """`status`."""

    phase: str = ""
    nominated_node_name: str = ""
    start_time: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[PodCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    resource_claim_statuses: list[dict[str, Any]] = []
    extended_resource_claim_status: dict[str, Any] | None = None


class Pod(KubeObject):
    """A pod."""

    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def priority(self) -> int:
        """`spec.priority`, 0 when absent."""
        return self.spec.priority or 0

    @property
    def terminating(self) -> bool:
        """True once `metadata.deletionTimestamp` is set."""
        return bool(self.metadata.deletion_timestamp)


class Binding(KubeObject):
    """`core/v1` Binding: puts a pod on a node."""

    target: dict[str, str] = {}
