"""KubeSchedulerConfiguration v1: reading, defaulting, validating and expanding it as kube-scheduler 1.36 does."""

from __future__ import annotations

from labkit.config.args import (
    ARGS_TYPES,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from labkit.config.build import Points, build_profiles, expand_profile
from labkit.config.errors import ConfigError
from labkit.config.gates import FeatureGates, GateError
from labkit.config.gotext import Duration
from labkit.config.load import check_config, default_config, load_config
from labkit.config.output import completed_yaml
from labkit.config.points import DEFAULT_MULTI_POINT, IN_TREE_PLUGINS, extension_points_of
from labkit.config.types import (
    ClientConnection,
    ExtenderConfig,
    ExtenderTLSConfig,
    LeaderElection,
    PluginRef,
    PluginSet,
    ProfileConfig,
    SchedulerConfig,
)

__all__ = [
    "ARGS_TYPES",
    "DEFAULT_MULTI_POINT",
    "IN_TREE_PLUGINS",
    "ClientConnection",
    "ConfigError",
    "DefaultPreemptionArgs",
    "Duration",
    "DynamicResourcesArgs",
    "ExtenderConfig",
    "ExtenderTLSConfig",
    "FeatureGates",
    "GateError",
    "InterPodAffinityArgs",
    "LeaderElection",
    "NodeAffinityArgs",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "PluginArgs",
    "PluginRef",
    "PluginSet",
    "PodTopologySpreadArgs",
    "Points",
    "ProfileConfig",
    "ResourceSpec",
    "SchedulerConfig",
    "ScoringStrategy",
    "UtilizationShapePoint",
    "VolumeBindingArgs",
    "build_profiles",
    "check_config",
    "completed_yaml",
    "default_config",
    "expand_profile",
    "extension_points_of",
    "load_config",
]
