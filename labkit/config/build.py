"""Building profiles: which plugins run at which extension point, in which order, with which weight (spec 03 §3.4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from labkit.config.args import ARGS_TYPES, NodeResourcesFitArgs, PluginArgs
from labkit.config.errors import ConfigError, aggregate
from labkit.config.gates import FeatureGates
from labkit.config.gotext import go_quote
from labkit.config.points import BUILD_ORDER, IN_TREE_PLUGINS, extension_points_of, interface_name
from labkit.config.tls import tls_error
from labkit.config.types import PluginRef, PluginSet, ProfileConfig, SchedulerConfig
from labkit.config.validate_args import validate_args

#: Extension point -> (plugin name, weight) in execution order. The weight matters for score and placement_score.
Points = dict[str, list[tuple[str, int]]]
_MAX_SCORE = 100
_MAX_TOTAL = (1 << 63) - 1
_INITIALIZING = "initializing profiles: "


class _Refused(Exception):
    """The profile cannot be built, with this text."""


def expand_profile(profile: ProfileConfig, registry: Mapping[str, type], gates: FeatureGates) -> Points:
    """The plugins of a profile at each extension point (snake_case names), in order, with weights.

    `registry` maps plugin names to classes; a class serves the points whose methods it defines. In-tree args
    are validated as the plugins' constructors do. Raises ConfigError of stage "init".
    """
    needed = {plugin.name for plugin_set in profile.plugins.values() for plugin in plugin_set.enabled}
    serves = {
        name: frozenset(extension_points_of(registry[name])) for name in sorted(needed) if name in registry
    }
    return _expand(profile, serves, gates)


def build_profiles(
    config: SchedulerConfig, gates: FeatureGates, registry: Mapping[str, type] | None = None
) -> dict[str, Points]:
    """Every profile expanded, after the extenders had their say; scheduler name -> points.

    Without a registry the table of in-tree plugins stands for the classes. Extenders that manage resources
    which the scheduler is to ignore replace `ignored_resources` of NodeResourcesFit in `config` (§4).
    Raises ConfigError of stage "init".
    """
    _apply_extenders(config)
    result: dict[str, Points] = {}
    first: tuple[str, str] | None = None
    for profile in config.profiles:
        if registry is None:
            points = _expand(profile, IN_TREE_PLUGINS, gates)
        else:
            points = expand_profile(profile, registry, gates)
        queue_sort = points["queue_sort"][0][0]
        args = profile.plugin_config.get(queue_sort)
        sorting = (queue_sort, json.dumps(args, default=repr))
        shown = f"for profile {go_quote(profile.scheduler_name)}"
        if first is None:
            first = sorting
        elif first[0] != queue_sort:
            text = (
                f"different queue sort plugins {shown}: {go_quote(queue_sort)}, first: {go_quote(first[0])}"
            )
            raise ConfigError("init", _INITIALIZING + text)
        elif first != sorting:
            raise ConfigError("init", f"{_INITIALIZING}different queue sort plugin args {shown}")
        result[profile.scheduler_name] = points
    return result


def _apply_extenders(config: SchedulerConfig) -> None:
    ignored = []
    for extender in config.extenders:
        error = tls_error(extender)
        if error is not None:
            raise ConfigError("init", f"couldn't build extenders: {error}")
        ignored += [name for name, by_scheduler in extender.managed_resources if by_scheduler]
    if not ignored:
        return
    for profile in config.profiles:
        args = profile.plugin_config.get("NodeResourcesFit")
        if not isinstance(args, NodeResourcesFitArgs):
            raise ConfigError(
                "init", "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
            )
        args.ignored_resources = list(ignored)


def _expand(profile: ProfileConfig, serves: Mapping[str, frozenset[str]], gates: FeatureGates) -> Points:
    try:
        needed = {plugin.name for plugin_set in profile.plugins.values() for plugin in plugin_set.enabled}
        _construct(profile, sorted(needed & serves.keys()), gates)
        points = {point: _own(point, profile.plugins[point], serves) for point in BUILD_ORDER}
        everywhere = profile.plugins["multi_point"].enabled
        if everywhere:
            for point in BUILD_ORDER:
                points[point] = _with_multi_point(point, points[point], profile, serves)
        _count(points, profile.scheduler_name)
        weights = {
            point: _weights(point, [*profile.plugins[point].enabled, *everywhere], serves)
            for point in ("score", "placement_score")
        }
    except _Refused as refused:
        name = profile.scheduler_name
        text = f"{_INITIALIZING}creating profile for scheduler name {name}: {refused}"
        raise ConfigError("init", text) from None
    return {
        point: [(name, weights[point][name] if point in weights else 0) for name in names]
        for point, names in points.items()
    }


def _construct(profile: ProfileConfig, names: list[str], gates: FeatureGates) -> None:
    """What the constructors of the in-tree plugins refuse."""
    for name in names:
        if name not in ARGS_TYPES or name not in IN_TREE_PLUGINS:
            continue
        args: Any = profile.plugin_config.get(name)
        if not isinstance(args, PluginArgs):
            continue
        if wrong := validate_args("", args, gates):
            raise _Refused(f"initializing plugin {go_quote(name)}: {aggregate(wrong)}")


def _own(point: str, plugin_set: PluginSet, serves: Mapping[str, frozenset[str]]) -> list[str]:
    """The plugins of the point's own list."""
    interface = interface_name(point)
    names: list[str] = []
    for plugin in plugin_set.enabled:
        if plugin.name not in serves:
            raise _Refused(f"{interface} {go_quote(plugin.name)} does not exist")
        if point not in serves[plugin.name]:
            raise _Refused(f"plugin {go_quote(plugin.name)} does not extend {interface} plugin")
        if plugin.name in names:
            raise _Refused(f'plugin {go_quote(plugin.name)} already registered as "{interface}"')
        names.append(plugin.name)
    return names


def _with_multi_point(
    point: str, own: list[str], profile: ProfileConfig, serves: Mapping[str, frozenset[str]]
) -> list[str]:
    """Overrides first, then the plugins taken from multiPoint, then the rest of the point's own list."""
    interface = interface_name(point)
    disabled = profile.plugins[point].disabled
    if "*" in disabled:
        return own
    taken: list[str] = []
    overrides: set[str] = set()
    for plugin in profile.plugins["multi_point"].enabled:
        name = plugin.name
        if name not in serves:
            raise _Refused(f"{interface} {go_quote(name)} does not exist")
        if point not in serves[name] or name in disabled:
            continue
        if name in own:
            overrides.add(name)
        elif name in taken:
            raise _Refused(f'plugin {go_quote(name)} already registered as "{interface}"')
        else:
            taken.append(name)
    return (
        [name for name in own if name in overrides] + taken + [name for name in own if name not in overrides]
    )


def _count(points: Mapping[str, list[str]], scheduler_name: str) -> None:
    profile = f"profile with scheduler name {go_quote(scheduler_name)}"
    sorters = len(points["queue_sort"])
    if sorters != 1:
        raise _Refused(f"only one queue sort plugin required for {profile}, but got {sorters}")
    if not points["bind"]:
        raise _Refused(f"at least one bind plugin is needed for {profile}")
    if len(points["placement_generate"]) > 1:
        raise _Refused(f"at most one placement generate plugin is allowed for {profile}")


def _weights(point: str, plugins: list[PluginRef], serves: Mapping[str, frozenset[str]]) -> dict[str, int]:
    weights: dict[str, int] = {}
    total = 0
    for plugin in plugins:
        if point not in serves.get(plugin.name, ()) or plugin.name in weights:
            continue
        weight = plugin.weight or 1
        weights[plugin.name] = weight
        # The room left is computed in 64 bits, so a negative sum makes it wrap around.
        if weight * _MAX_SCORE > _wrapped(_MAX_TOTAL - total):
            prefix = "score plugins" if point == "score" else "placement score plugins"
            raise _Refused(f"{prefix}: total score of Score plugins could overflow")
        total += weight * _MAX_SCORE
    return weights


def _wrapped(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
