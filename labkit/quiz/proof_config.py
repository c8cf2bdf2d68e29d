"""Proofs about configuration: defaults, weights, how many nodes are looked at (spec 01 §5, 03)."""

from __future__ import annotations

from typing import Any

from labkit.quiz.scenario import API_VERSION


def config_defaults(fields: list[str]) -> dict[str, Any]:
    """Values of top-level fields (as in YAML) of an empty KubeSchedulerConfiguration."""
    from labkit.config import default_config

    config = default_config()
    return {name: getattr(config, _snake(name)) for name in fields}


def config_weight(plugin: str, plugins: dict[str, Any]) -> int:
    """The Score weight of `plugin` in a profile with these `plugins`; 0 when it does not score."""
    from labkit.config import FeatureGates, build_profiles, load_config

    profile = {"schedulerName": "default-scheduler", "plugins": plugins}
    config = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    points = build_profiles(load_config(config), FeatureGates())["default-scheduler"]
    return dict(points["score"]).get(plugin, 0)


def nodes_to_find(nodes: int, percentage: int = 0) -> int:
    """After how many feasible nodes of a cluster of `nodes` Filter stops."""
    from labkit.engine.feasible import num_feasible_to_find

    return num_feasible_to_find(nodes, percentage)


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name)


def gate(name: str) -> bool:
    """Whether a feature gate is on by default."""
    from labkit.config import FeatureGates

    return FeatureGates().enabled(name)


def plugin_args(plugin: str, fields: list[str]) -> dict[str, Any]:
    """Default values of arguments (as in YAML) of a default plugin."""
    import yaml

    from labkit.config import completed_yaml, default_config

    raw = yaml.safe_load(completed_yaml(default_config()))
    args = next(c["args"] for c in raw["profiles"][0]["pluginConfig"] if c["name"] == plugin)
    return {name: args.get(name) for name in fields}
