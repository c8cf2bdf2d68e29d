"""Which in-tree plugin lives where. Modules are imported when a profile first needs them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

_WHERE: dict[str, str] = {
    "SchedulingGates": "scheduling_gates",
    "PrioritySort": "priority_sort",
    "NodeUnschedulable": "node_unschedulable",
    "NodeName": "node_name",
    "TaintToleration": "taint_toleration",
    "NodeAffinity": "node_affinity",
    "NodePorts": "node_ports",
    "NodeResourcesFit": "node_resources_fit",
    "VolumeRestrictions": "volume_restrictions",
    "NodeVolumeLimits": "node_volume_limits",
    "VolumeBinding": "volume_binding",
    "VolumeZone": "volume_zone",
    "PodTopologySpread": "pod_topology_spread",
    "InterPodAffinity": "inter_pod_affinity",
    "DynamicResources": "dynamic_resources",
    "DefaultPreemption": "default_preemption",
    "NodeResourcesBalancedAllocation": "node_resources_balanced_allocation",
    "ImageLocality": "image_locality",
    "DefaultBinder": "default_binder",
    "NodeDeclaredFeatures": "node_declared_features",
    "GangScheduling": "gang_scheduling",
    "TopologyPlacementGenerator": "placement",
    "PodGroupPodsCount": "placement",
}


class InTreeRegistry(Mapping[str, type]):
    """Plugin name -> class, for every in-tree plugin. A class is called as `cls(args, handle)`."""

    def __getitem__(self, name: str) -> type:
        cls: type = getattr(importlib.import_module(f"labkit.plugins.{_WHERE[name]}"), name)
        return cls

    def __contains__(self, name: object) -> bool:
        return name in _WHERE

    def __iter__(self) -> Iterator[str]:
        return iter(_WHERE)

    def __len__(self) -> int:
        return len(_WHERE)


IN_TREE = InTreeRegistry()
