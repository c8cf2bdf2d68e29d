"""Defaulting, and merging a profile's plugin sets with the default ones (spec 03 §2 to §4)."""

from __future__ import annotations

from typing import Any

from labkit.config.args import ARGS_TYPES, PluginArgs
from labkit.config.gates import FeatureGates
from labkit.config.gotext import Duration
from labkit.config.points import CONFIG_KEYS, DEFAULT_MULTI_POINT
from labkit.config.types import (
    DEFAULT_SCHEDULER_NAME,
    EXTENDER_TIMEOUT,
    ClientConnection,
    ExtenderConfig,
    ExtenderTLSConfig,
    LeaderElection,
    OpaqueArgs,
    PluginRef,
    PluginSet,
    ProfileConfig,
    SchedulerConfig,
)

#: (plugin name, typed args | OpaqueArgs | None) as listed, duplicates kept.
PluginConfigEntries = list[tuple[str, Any]]


def default_multi_point(gates: FeatureGates) -> list[PluginRef]:
    """The default plugins under these gates, in order (§3.1)."""
    listed = [
        PluginRef(name, weight)
        for name, weight in DEFAULT_MULTI_POINT
        if name != "NodeDeclaredFeatures" or gates.enabled("NodeDeclaredFeatures")
    ]
    if gates.enabled("GangScheduling"):
        listed.append(PluginRef("GangScheduling"))
    if gates.enabled("TopologyAwareWorkloadScheduling"):
        listed += [PluginRef("TopologyPlacementGenerator"), PluginRef("PodGroupPodsCount", 1)]
    return listed


def merge_plugin_set(default: PluginSet, user: PluginSet) -> PluginSet:
    """One key's user set on top of its default set (§3.3).

    A re-configured default keeps its place and takes the user's weight; everything else follows in the user's
    order. A name that is enabled and disabled is enabled, and moves to the end.
    """
    disabled = [*user.disabled, *default.disabled]
    last_index = {plugin.name: index for index, plugin in enumerate(user.enabled)}
    enabled: list[PluginRef] = []
    replaced: set[int] = set()
    if "*" not in disabled:
        for plugin in default.enabled:
            if plugin.name in disabled:
                continue
            index = last_index.get(plugin.name)
            if index is not None:
                replaced.add(index)
                plugin = user.enabled[index]
            enabled.append(plugin)
    enabled += [plugin for index, plugin in enumerate(user.enabled) if index not in replaced]
    return PluginSet(enabled, disabled)


def configuration_of(
    given: dict[str, Any], gates: FeatureGates
) -> tuple[SchedulerConfig, list[PluginConfigEntries]]:
    """The defaulted configuration of decoded v1 data, and each profile's pluginConfig as a list."""
    profiles = given.get("profiles") or [{}]
    only = len(profiles) == 1
    built = [_profile(profile, gates, only) for profile in profiles]
    profiling = given.get("enableProfiling", True)
    config = SchedulerConfig(
        parallelism=given.get("parallelism", 16),
        leader_election=_leader_election(given.get("leaderElection", {})),
        client_connection=_client_connection(given.get("clientConnection", {})),
        enable_profiling=profiling,
        enable_contention_profiling=given.get("enableContentionProfiling", profiling),
        percentage_of_nodes_to_score=given.get("percentageOfNodesToScore", 0),
        pod_initial_backoff_seconds=given.get("podInitialBackoffSeconds", 1),
        pod_max_backoff_seconds=given.get("podMaxBackoffSeconds", 10),
        profiles=[profile for profile, _ in built],
        extenders=[_extender(extender) for extender in given.get("extenders", [])],
        delay_cache_until_active=given.get("delayCacheUntilActive", False),
    )
    return config, [entries for _, entries in built]


def _leader_election(given: dict[str, Any]) -> LeaderElection:
    default = LeaderElection()
    return LeaderElection(
        leader_elect=given.get("leaderElect", True),
        lease_duration=_duration(given, "leaseDuration", default.lease_duration),
        renew_deadline=_duration(given, "renewDeadline", default.renew_deadline),
        retry_period=_duration(given, "retryPeriod", default.retry_period),
        resource_lock=given.get("resourceLock") or default.resource_lock,
        resource_name=given.get("resourceName") or default.resource_name,
        resource_namespace=given.get("resourceNamespace") or default.resource_namespace,
    )


def _duration(given: dict[str, Any], key: str, default: Duration) -> Duration:
    value: Duration = given.get(key, default)
    return value if value.nanoseconds else default


def _client_connection(given: dict[str, Any]) -> ClientConnection:
    default = ClientConnection()
    return ClientConnection(
        kubeconfig=given.get("kubeconfig", ""),
        accept_content_types=given.get("acceptContentTypes", ""),
        content_type=given.get("contentType") or default.content_type,
        qps=given.get("qps") or default.qps,
        burst=given.get("burst") or default.burst,
    )


def _extender(given: dict[str, Any]) -> ExtenderConfig:
    tls = given.get("tlsConfig")
    return ExtenderConfig(
        url_prefix=given.get("urlPrefix", ""),
        filter_verb=given.get("filterVerb", ""),
        preempt_verb=given.get("preemptVerb", ""),
        prioritize_verb=given.get("prioritizeVerb", ""),
        weight=given.get("weight", 0),
        bind_verb=given.get("bindVerb", ""),
        enable_https=given.get("enableHTTPS", False),
        tls_config=None
        if tls is None
        else ExtenderTLSConfig(
            insecure=tls.get("insecure", False),
            server_name=tls.get("serverName", ""),
            cert_file=tls.get("certFile", ""),
            key_file=tls.get("keyFile", ""),
            ca_file=tls.get("caFile", ""),
            cert_data=tls.get("certData", b""),
            key_data=tls.get("keyData", b""),
            ca_data=tls.get("caData", b""),
        ),
        http_timeout=_duration(given, "httpTimeout", EXTENDER_TIMEOUT),
        node_cache_capable=given.get("nodeCacheCapable", False),
        managed_resources=[
            (resource.get("name", ""), resource.get("ignoredByScheduler", False))
            for resource in given.get("managedResources", [])
        ],
        ignorable=given.get("ignorable", False),
    )


def _profile(
    given: dict[str, Any], gates: FeatureGates, only: bool
) -> tuple[ProfileConfig, PluginConfigEntries]:
    plugins = {}
    for point, key in CONFIG_KEYS.items():
        default = PluginSet(default_multi_point(gates)) if point == "multi_point" else PluginSet()
        plugins[point] = merge_plugin_set(default, _plugin_set(given.get("plugins", {}).get(key, {})))
    entries = [_entry(entry, gates) for entry in given.get("pluginConfig", [])]
    listed = {name for name, _ in entries}
    named = {plugin.name for plugin_set in plugins.values() for plugin in plugin_set.enabled}
    entries += [(name, ARGS_TYPES[name].of({}, gates)) for name in sorted(named & ARGS_TYPES.keys() - listed)]
    profile = ProfileConfig(
        scheduler_name=given.get("schedulerName", DEFAULT_SCHEDULER_NAME if only else ""),
        percentage_of_nodes_to_score=given.get("percentageOfNodesToScore"),
        plugins=plugins,
        plugin_config={name: args.data if isinstance(args, OpaqueArgs) else args for name, args in entries},
    )
    return profile, entries


def _plugin_set(given: dict[str, Any]) -> PluginSet:
    return PluginSet(
        [PluginRef(plugin.get("name", ""), plugin.get("weight", 0)) for plugin in given.get("enabled", [])],
        [plugin.get("name", "") for plugin in given.get("disabled", [])],
    )


def _entry(given: dict[str, Any], gates: FeatureGates) -> tuple[str, PluginArgs | OpaqueArgs | None]:
    name = given.get("name", "")
    args: Any = given.get("args")
    return (name, ARGS_TYPES[name].of(args, gates)) if name in ARGS_TYPES else (name, args)
