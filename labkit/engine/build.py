"""From a configuration to running profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from labkit.config import FeatureGates, SchedulerConfig, build_profiles
from labkit.engine.framework import Framework, Points
from labkit.engine.services import Services
from labkit.framework.plugin import plugin_name
from labkit.plugins.registry import IN_TREE


class Registry(Mapping[str, Any]):
    """In-tree plugins plus the caller's classes and objects; the caller's win."""

    def __init__(self, extra: Iterable[Any] = ()) -> None:
        self._extra = {plugin_name(cls): cls for cls in extra}

    def __getitem__(self, name: str) -> Any:
        return self._extra[name] if name in self._extra else IN_TREE[name]

    def __contains__(self, name: object) -> bool:
        return name in self._extra or name in IN_TREE

    def __iter__(self) -> Any:
        yield from self._extra
        yield from (name for name in IN_TREE if name not in self._extra)

    def __len__(self) -> int:
        return len(set(self._extra) | set(IN_TREE))


def build_frameworks(
    config: SchedulerConfig,
    services: Services,
    gates: FeatureGates | None = None,
    plugins: Iterable[Any] = (),
) -> dict[str, Framework]:
    """One Framework per profile, by scheduler name.

    `plugins` are extra plugin classes or objects. One that the configuration names runs where it says; any other
    runs in every profile, at every point that it serves, in the place of a plugin with the same name.
    Raises ConfigError of stage "init".
    """
    gates = gates or FeatureGates()
    services.gates = gates.as_dict()
    services.profiles = tuple(profile.scheduler_name for profile in config.profiles)
    given = list(plugins)
    named = _named(config)
    objects = {
        n: p for p in given if not isinstance(p, type) and (n := plugin_name(p)) in named and n not in IN_TREE
    }
    for plugin in given:
        if isinstance(getattr(plugin, "handle", None), Framework):
            # An object that ran before, in a lab that begins anew.
            plugin.handle = None
    registry = Registry([*(p for p in given if isinstance(p, type)), *objects.values()])
    points_by_name = build_profiles(config, gates, registry)
    found: dict[str, Framework] = {}
    kind: type[Framework] = Framework
    if services.metrics is not None:
        from labkit.engine.measured import MeasuredFramework

        kind = MeasuredFramework
    for profile in config.profiles:
        expanded = points_by_name[profile.scheduler_name]
        framework = kind(
            profile.scheduler_name,
            {},
            services,
            percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
        )
        instances: dict[str, Any] = dict(objects)
        points: Points = {}
        for point, entries in expanded.items():
            points[point] = [
                (_instance(name, instances, registry, profile.plugin_config.get(name), framework), weight)
                for name, weight in entries
            ]
        framework.set_points(points)
        framework.placement = {p: points[p] for p in ("placement_generate", "placement_score") if p in points}
        for plugin in given:
            name = plugin_name(plugin)
            if name in objects:
                if getattr(plugin, "handle", framework) is None:
                    plugin.handle = framework
            elif not isinstance(plugin, type):
                framework.replace(plugin)
            elif name not in named:
                framework.replace(_instance(name, instances, registry, None, framework))
        found[profile.scheduler_name] = framework
    return found


def _named(config: SchedulerConfig) -> set[str]:
    """Plugins that some profile enables or disables by name."""
    sets = [plugin_set for profile in config.profiles for plugin_set in profile.plugins.values()]
    return {plugin.name for s in sets for plugin in s.enabled} | {name for s in sets for name in s.disabled}


def _instance(name: str, made: dict[str, Any], registry: Registry, args: Any, framework: Framework) -> Any:
    if name not in made:
        cls = registry[name]
        try:
            made[name] = cls(args, framework)
        except TypeError:
            # A learner's class without args and handle.
            made[name] = cls()
    return made[name]
