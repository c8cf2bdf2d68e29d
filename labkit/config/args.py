"""Typed plugin args with their defaults (spec 03 §4)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from labkit.config.gates import FeatureGates
from labkit.config.gotext import Duration, seconds


class ResourceSpec(msgspec.Struct):
    """A resource that counts in scoring, and how much."""

    name: str = ""
    weight: int = 1


class UtilizationShapePoint(msgspec.Struct):
    """A point of a scoring function: utilisation 0..100, score 0..10."""

    utilization: int = 0
    score: int = 0


def _cpu_and_memory() -> list[ResourceSpec]:
    return [ResourceSpec("cpu", 1), ResourceSpec("memory", 1)]


class PluginArgs(msgspec.Struct, kw_only=True):
    """Base of all typed args; `KIND` is their kind in the API."""

    KIND: ClassVar[str] = ""

    @classmethod
    def of(cls, given: dict[str, Any], gates: FeatureGates) -> PluginArgs:
        """Args from decoded JSON, defaulted."""
        raise NotImplementedError


class DefaultPreemptionArgs(PluginArgs):
    """How many candidate nodes preemption tries."""

    KIND: ClassVar[str] = "DefaultPreemptionArgs"
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    @classmethod
    def of(cls, given: dict[str, Any], gates: FeatureGates) -> DefaultPreemptionArgs:
        """Args from decoded JSON, defaulted."""
        return cls(
            min_candidate_nodes_percentage=given.get("minCandidateNodesPercentage", 10),
            min_candidate_nodes_absolute=given.get("minCandidateNodesAbsolute", 100),
        )


class DynamicResourcesArgs(PluginArgs):
    """Time limits of DynamicResources, in seconds; filter_timeout 0 means none."""

    KIND: ClassVar[str] = "DynamicResourcesArgs"
    filter_timeout: Duration | None = seconds(10)
    binding_timeout: Duration | None = seconds(600)

    @classmethod
    def of(cls, given: dict[str, Any], gates: FeatureGates) -> DynamicResourcesArgs:
        """Args from decoded JSON, defaulted; what its gate switches off stays unset."""
        limited = gates.enabled("DRASchedulerFilterTimeout")
        binding = gates.enabled("DRADeviceBindingConditions") and gates.enabled(
            "DRAResourceClaimDeviceStatus"
        )
        return cls(
            filter_timeout=given.get("filterTimeout", seconds(10) if limited else None),
            binding_timeout=given.get("bindingTimeout", seconds(600) if binding else None),
        )


class InterPodAffinityArgs(PluginArgs):
    """Scoring of pod affinity."""

    KIND: ClassVar[str] = "InterPodAffinityArgs"
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    @classmethod
    def of(cls, given: dict[str, Any], gates: FeatureGates) -> InterPodAffinityArgs:
        """Args from decoded JSON, defaulted."""
        return cls(
            hard_pod_affinity_weight=given.get("hardPodAffinityWeight", 1),
            ignore_preferred_terms_of_existing_pods=given.get("ignorePreferredTermsOfExistingPods", False),
        )


class NodeAffinityArgs(PluginArgs):
    """`added_affinity`: a core/v1 NodeAffinity as Kubernetes JSON that counts for every pod, or None."""

    KIND: ClassVar[str] = "NodeAffinityArgs"
    added_affinity: dict[str, Any] | None = None

    @classmethod
    def of(cls, given: dict[str, Any], gates: FeatureGates) -> NodeAffinityArgs:
        """Args from decoded JSON."""
        return cls(added_affinity=given.get("addedAffinity"))


class NodeResourcesBalancedAllocationArgs(PluginArgs):
    """The resources to balance."""

    KIND: ClassVar[str] = "NodeResourcesBalancedAllocationArgs"
    resources: list[ResourceSpec] = msgspec.field(default_factory=_cpu_and_memory)

    @classmethod
    def of(cls, given: dict[str, Any], gates: FeatureGates) -> NodeResourcesBalancedAllocationArgs:
        """Args from decoded JSON, defaulted."""
        return cls(resources=_resources(given))


class ScoringStrategy(msgspec.Struct, kw_only=True):
    """How NodeResourcesFit scores. `shape` is None unless requestedToCapacityRatio is given."""

    type: str = "LeastAllocated"
    resources: list[ResourceSpec] = msgspec.field(default_factory=_cpu_and_memory)
    shape: list[UtilizationShapePoint] | None = None


class NodeResourcesFitArgs(PluginArgs):
    """What NodeResourcesFit leaves out of filtering, and how it scores."""

    KIND: ClassVar[str] = "NodeResourcesFitArgs"
    ignored_resources: list[str] = []
    ignored_resource_groups: list[str] = []
    scoring_strategy: ScoringStrategy = msgspec.field(default_factory=ScoringStrategy)

    @classmethod
    def of(cls, given: dict[str, Any], gates: FeatureGates) -> NodeResourcesFitArgs:
        """Args from decoded JSON, defaulted; a strategy that is given but has no type keeps the type ""."""
        strategy = given.get("scoringStrategy")
        ratio = (strategy or {}).get("requestedToCapacityRatio")
        return cls(
            ignored_resources=given.get("ignoredResources", []),
            ignored_resource_groups=given.get("ignoredResourceGroups", []),
            scoring_strategy=ScoringStrategy()
            if strategy is None
            else ScoringStrategy(
                type=strategy.get("type", ""),
                resources=_resources(strategy),
                shape=None if ratio is None else _shape(ratio),
            ),
        )


class PodTopologySpreadArgs(PluginArgs):
    """`default_constraints`: core/v1 TopologySpreadConstraints as Kubernetes JSON; used with type "List"."""

    KIND: ClassVar[str] = "PodTopologySpreadArgs"
    default_constraints: list[dict[str, Any]] = []
    defaulting_type: str = "System"

    @classmethod
    def of(cls, given: dict[str, Any], gates: FeatureGates) -> PodTopologySpreadArgs:
        """Args from decoded JSON, defaulted."""
        return cls(
            default_constraints=given.get("defaultConstraints", []),
            defaulting_type=given.get("defaultingType") or "System",
        )


class VolumeBindingArgs(PluginArgs):
    """`bind_timeout_seconds` 0 means: do not wait. `shape` None means it was not given."""

    KIND: ClassVar[str] = "VolumeBindingArgs"
    bind_timeout_seconds: int = 600
    shape: list[UtilizationShapePoint] | None = None

    @classmethod
    def of(cls, given: dict[str, Any], gates: FeatureGates) -> VolumeBindingArgs:
        """Args from decoded JSON, defaulted."""
        shape = _shape(given) if "shape" in given else None
        if not shape and gates.enabled("StorageCapacityScoring"):
            shape = [UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0)]
        return cls(bind_timeout_seconds=given.get("bindTimeoutSeconds", 600), shape=shape)


def _resources(given: dict[str, Any]) -> list[ResourceSpec]:
    listed = [
        ResourceSpec(item.get("name", ""), item.get("weight", 0) or 1) for item in given.get("resources", [])
    ]
    return listed or _cpu_and_memory()


def _shape(given: dict[str, Any]) -> list[UtilizationShapePoint]:
    return [
        UtilizationShapePoint(point.get("utilization", 0), point.get("score", 0))
        for point in given.get("shape", [])
    ]


#: Plugin name -> its args type. Other plugins have none.
ARGS_TYPES: dict[str, type[PluginArgs]] = {
    cls.KIND.removesuffix("Args"): cls
    for cls in (
        DefaultPreemptionArgs,
        DynamicResourcesArgs,
        InterPodAffinityArgs,
        NodeAffinityArgs,
        NodeResourcesBalancedAllocationArgs,
        NodeResourcesFitArgs,
        PodTopologySpreadArgs,
        VolumeBindingArgs,
    )
}
