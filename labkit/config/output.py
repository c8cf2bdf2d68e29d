"""The completed configuration as YAML, as `kube-scheduler --write-config-to` writes it (spec 03 §1 stage 10)."""

from __future__ import annotations

import base64
from typing import Any

from labkit.config.args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from labkit.config.goscalars import is_plain_text
from labkit.config.gotext import float_g, shortest_float32
from labkit.config.gotypes import written
from labkit.config.points import CONFIG_KEYS, IN_TREE_PLUGINS
from labkit.config.schema import API_VERSION, CONFIG_KIND, NODE_AFFINITY, SPREAD_CONSTRAINT
from labkit.config.types import ExtenderConfig, PluginSet, ProfileConfig, SchedulerConfig


def completed_yaml(config: SchedulerConfig) -> str:
    """The whole configuration with every default written out; args only of plugins that are in use."""
    import yaml

    class _Dumper(yaml.SafeDumper):
        """Writes scalars as Kubernetes' YAML writer does; what needs quotes is decided here, not by PyYAML."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def scalar(dumper: Any, value: Any) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", _plain(value))

    def text(dumper: Any, value: str) -> Any:
        style = "|" if "\n" in value else (None if is_plain_text(value) else '"')
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    _Dumper.yaml_implicit_resolvers = {}
    for kind in (bool, int, float, type(None)):
        _Dumper.add_representer(kind, scalar)
    _Dumper.add_representer(str, text)
    return str(
        yaml.dump(completed(config), Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=1 << 30)
    )


def _plain(value: bool | int | float | None) -> str:
    if isinstance(value, float):
        return float_g(value)
    return "null" if value is None else str(value).lower()


def completed(config: SchedulerConfig) -> dict[str, Any]:
    """The same as data."""
    election, connection = config.leader_election, config.client_connection
    qps = shortest_float32(connection.qps)
    result: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": CONFIG_KIND,
        "parallelism": config.parallelism,
        "leaderElection": {
            "leaderElect": election.leader_elect,
            "leaseDuration": str(election.lease_duration),
            "renewDeadline": str(election.renew_deadline),
            "retryPeriod": str(election.retry_period),
            "resourceLock": election.resource_lock,
            "resourceName": election.resource_name,
            "resourceNamespace": election.resource_namespace,
        },
        "clientConnection": {
            "kubeconfig": connection.kubeconfig,
            "acceptContentTypes": connection.accept_content_types,
            "contentType": connection.content_type,
            "qps": int(qps) if qps.is_integer() and -(1 << 63) <= qps < 1 << 64 else qps,
            "burst": connection.burst,
        },
        "enableProfiling": config.enable_profiling,
        "enableContentionProfiling": config.enable_contention_profiling,
        "percentageOfNodesToScore": config.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": config.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": config.pod_max_backoff_seconds,
        "profiles": [_profile(profile) for profile in config.profiles],
    }
    if config.extenders:
        result["extenders"] = [_extender(extender) for extender in config.extenders]
    if config.delay_cache_until_active:
        result["delayCacheUntilActive"] = True
    return result


def _profile(profile: ProfileConfig) -> dict[str, Any]:
    used = {plugin.name for plugin_set in profile.plugins.values() for plugin in plugin_set.enabled}
    args = [
        {"name": name, "args": _args(given)}
        for name, given in sorted(profile.plugin_config.items())
        if name in used and name in IN_TREE_PLUGINS and given is not None
    ]
    result: dict[str, Any] = {
        "schedulerName": profile.scheduler_name,
        "plugins": {CONFIG_KEYS[point]: _plugin_set(found) for point, found in profile.plugins.items()},
    }
    if args:
        result["pluginConfig"] = args
    if profile.percentage_of_nodes_to_score is not None:
        result["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    return result


def _plugin_set(plugin_set: PluginSet) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if plugin_set.enabled:
        result["enabled"] = [{"name": plugin.name, "weight": plugin.weight} for plugin in plugin_set.enabled]
    if plugin_set.disabled:
        result["disabled"] = [{"name": name, "weight": 0} for name in plugin_set.disabled]
    return result


def _args(args: Any) -> Any:
    if not isinstance(args, PluginArgs):
        return args
    return {"apiVersion": API_VERSION, "kind": args.KIND, **_fields(args)}


def _fields(args: PluginArgs) -> dict[str, Any]:
    match args:
        case DefaultPreemptionArgs():
            return {
                "minCandidateNodesPercentage": args.min_candidate_nodes_percentage,
                "minCandidateNodesAbsolute": args.min_candidate_nodes_absolute,
            }
        case DynamicResourcesArgs():
            result: dict[str, Any] = {
                "filterTimeout": None if args.filter_timeout is None else str(args.filter_timeout)
            }
            return (
                result
                if args.binding_timeout is None
                else result | {"bindingTimeout": str(args.binding_timeout)}
            )
        case InterPodAffinityArgs():
            return {
                "hardPodAffinityWeight": args.hard_pod_affinity_weight,
                "ignorePreferredTermsOfExistingPods": args.ignore_preferred_terms_of_existing_pods,
            }
        case NodeAffinityArgs():
            return (
                {}
                if args.added_affinity is None
                else {"addedAffinity": written(NODE_AFFINITY, args.added_affinity)}
            )
        case NodeResourcesBalancedAllocationArgs():
            return {"resources": _resources(args.resources)}
        case NodeResourcesFitArgs():
            strategy: dict[str, Any] = {"resources": _resources(args.scoring_strategy.resources)}
            if args.scoring_strategy.type:
                strategy["type"] = args.scoring_strategy.type
            if args.scoring_strategy.shape is not None:
                shape = _shape(args.scoring_strategy.shape)
                strategy["requestedToCapacityRatio"] = {"shape": shape} if shape else {}
            return _given(
                scoringStrategy=strategy,
                ignoredResources=args.ignored_resources,
                ignoredResourceGroups=args.ignored_resource_groups,
            )
        case PodTopologySpreadArgs():
            return _given(
                defaultingType=args.defaulting_type,
                defaultConstraints=[written(SPREAD_CONSTRAINT, item) for item in args.default_constraints],
            )
        case VolumeBindingArgs():
            return {"bindTimeoutSeconds": args.bind_timeout_seconds, **_given(shape=_shape(args.shape or []))}
    return {}


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _resources(resources: list[ResourceSpec]) -> list[dict[str, Any]]:
    return [{"name": resource.name, "weight": resource.weight} for resource in resources]


def _shape(shape: list[UtilizationShapePoint]) -> list[dict[str, Any]]:
    return [{"utilization": point.utilization, "score": point.score} for point in shape]


def _extender(extender: ExtenderConfig) -> dict[str, Any]:
    tls = extender.tls_config
    result: dict[str, Any] = {
        "urlPrefix": extender.url_prefix,
        "httpTimeout": str(extender.http_timeout),
        **_given(
            filterVerb=extender.filter_verb,
            preemptVerb=extender.preempt_verb,
            prioritizeVerb=extender.prioritize_verb,
            weight=extender.weight,
            bindVerb=extender.bind_verb,
            enableHTTPS=extender.enable_https,
            nodeCacheCapable=extender.node_cache_capable,
            ignorable=extender.ignorable,
            managedResources=[
                {"name": name, **_given(ignoredByScheduler=ignored)}
                for name, ignored in extender.managed_resources
            ],
        ),
    }
    if tls is not None:
        result["tlsConfig"] = _given(
            insecure=tls.insecure,
            serverName=tls.server_name,
            certFile=tls.cert_file,
            keyFile=tls.key_file,
            caFile=tls.ca_file,
            certData=base64.b64encode(tls.cert_data).decode(),
            keyData=base64.b64encode(tls.key_data).decode(),
            caData=base64.b64encode(tls.ca_data).decode(),
        )
    return result
