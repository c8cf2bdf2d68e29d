"""Validation of a whole configuration: every finding, in kube-scheduler's order and words (spec 03 §6)."""

from __future__ import annotations

from typing import Any

from labkit.config.args import PluginArgs
from labkit.config.defaults import PluginConfigEntries
from labkit.config.errors import Json, child, duplicate, invalid, required
from labkit.config.gates import FeatureGates
from labkit.config.inner_args import inner_args
from labkit.config.names import is_extended_resource, label_key_errors
from labkit.config.points import CLASSIC_POINTS, CONFIG_KEYS, REMOVED_PLUGINS
from labkit.config.schema import API_VERSION
from labkit.config.types import (
    ExtenderConfig,
    LeaderElection,
    OpaqueArgs,
    PluginSet,
    ProfileConfig,
    SchedulerConfig,
)
from labkit.config.validate_args import validate_args

_REMOVED = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'


def findings(config: SchedulerConfig, entries: list[PluginConfigEntries], gates: FeatureGates) -> list[str]:
    """Every validation error as text; empty when the configuration is valid."""
    found = []
    if config.client_connection.burst < 0:
        found.append(
            invalid("clientConnection.burst", config.client_connection.burst, "must be non-negative")
        )
    found += _leader_election(config.leader_election)
    if config.parallelism <= 0:
        found.append(
            invalid("parallelism", config.parallelism, "should be an integer value greater than zero")
        )
    found += _profiles(config.profiles, entries, gates)
    found += _percentage("percentageOfNodesToScore", config.percentage_of_nodes_to_score)
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial <= 0:
        found.append(invalid("podInitialBackoffSeconds", initial, "must be greater than 0"))
    if longest < initial:
        found.append(
            invalid(
                "podMaxBackoffSeconds", longest, "must be greater than or equal to PodInitialBackoffSeconds"
            )
        )
    return found + _extenders(config.extenders)


def _leader_election(election: LeaderElection) -> list[str]:
    if not election.leader_elect:
        return []
    found = []
    path = "leaderElection"
    for name, value in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        if value.nanoseconds <= 0:
            found.append(invalid(child(path, name), str(value), "must be greater than zero"))
    if election.lease_duration.nanoseconds <= election.renew_deadline.nanoseconds:
        found.append(
            invalid(
                child(path, "leaseDuration"),
                str(election.renew_deadline),
                "must be greater than `RenewDeadline`",
            )
        )
    for name, text in (
        ("resourceLock", election.resource_lock),
        ("resourceNamespace", election.resource_namespace),
        ("resourceName", election.resource_name),
    ):
        if not text:
            found.append(required(child(path, name)))
    if election.resource_lock != "leases":
        found.append(
            invalid(
                child(path, "resourceLock"), election.resource_lock, 'resourceLock value must be "leases"'
            )
        )
    return found


def _percentage(path: str, percentage: int | None) -> list[str]:
    if percentage is None or 0 <= percentage <= 100:
        return []
    return [invalid(path, percentage, "not in valid range [0-100]")]


def _profiles(
    profiles: list[ProfileConfig], entries: list[PluginConfigEntries], gates: FeatureGates
) -> list[str]:
    if not profiles:
        return [required("profiles")]
    found = []
    names: set[str] = set()
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        if not profile.scheduler_name:
            found.append(required(f"{path}.schedulerName"))
        found += _percentage(f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score)
        found += _plugins(path, profile)
        found += _plugin_config(path, entries[index], gates)
        if profile.scheduler_name in names:
            found.append(duplicate(f"{path}.schedulerName", Json({})))
        names.add(profile.scheduler_name)
    return found + _common_queue_sort(profiles, entries)


def _plugins(path: str, profile: ProfileConfig) -> list[str]:
    return [
        invalid(f"{path}.plugins.{CONFIG_KEYS[point]}.enabled[{index}]", plugin.name, _REMOVED)
        for point in CLASSIC_POINTS
        for index, plugin in enumerate(profile.plugins[point].enabled)
        if plugin.name in REMOVED_PLUGINS
    ]


def _plugin_config(path: str, entries: PluginConfigEntries, gates: FeatureGates) -> list[str]:
    found = []
    seen: set[str] = set()
    for index, (name, args) in enumerate(entries):
        place = f"{path}.pluginConfig[{index}]"
        if name in seen:
            found.append(duplicate(place, name))
        seen.add(name)
        if name in REMOVED_PLUGINS:
            found.append(invalid(place, name, _REMOVED))
        # kube-scheduler leaves NodeResourcesFit to the building of the plugin.
        elif isinstance(args, PluginArgs) and name != "NodeResourcesFit":
            found += validate_args(f"{place}.args", args, gates)
    return found


def _common_queue_sort(profiles: list[ProfileConfig], entries: list[PluginConfigEntries]) -> list[str]:
    found = []
    first = profiles[0].plugins["queue_sort"]
    if len(first.enabled) > 1:
        found.append(
            invalid(
                "profiles[0].plugins.queueSort.Enabled",
                len(first.enabled),
                "only one queue sort plugin can be enabled",
            )
        )
    name = first.enabled[0].name if first.enabled else ""
    args = None
    for listed, given in entries[0]:
        if name and listed == name:
            args = given
    for index in range(1, len(profiles)):
        path = f"profiles[{index}]"
        current = profiles[index].plugins["queue_sort"]
        if current != first:
            found.append(
                invalid(
                    f"{path}.plugins.queueSort", Json(_as_go(current)), "must be the same for all profiles"
                )
            )
        for listed, given in entries[index]:
            if listed == name and given != args:
                detail = "queueSort must be the same for all profiles"
                found.append(invalid(f"{path}.pluginConfig.args", Json(_shown_args(given)), detail))
    return found


def _as_go(plugin_set: PluginSet) -> dict[str, Any]:
    return {
        "Enabled": [{"Name": plugin.name, "Weight": plugin.weight} for plugin in plugin_set.enabled] or None,
        "Disabled": [{"Name": name, "Weight": 0} for name in plugin_set.disabled] or None,
    }


def _shown_args(args: Any) -> Any:
    if isinstance(args, PluginArgs):
        return inner_args(args)
    return args.data if isinstance(args, OpaqueArgs) else None


def _extenders(extenders: list[ExtenderConfig]) -> list[str]:
    found = []
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            found.append(
                invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
            )
        for at, (name, _) in enumerate(extender.managed_resources):
            place = f"{path}.managedResources[{at}].name"
            wrong = label_key_errors(name)
            found += [invalid(place, Json(name), text) for text in wrong]
            if not wrong and not is_extended_resource(name):
                found.append(invalid(place, name, "is an invalid extended resource name"))
            if name in managed:
                found.append(invalid(place, name, "duplicate extender managed resource name"))
            managed.add(name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        found.append(
            invalid(
                "extenders",
                f"found {binders} extenders implementing bind",
                "only one extender can implement bind",
            )
        )
    return found
