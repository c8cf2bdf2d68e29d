"""Reading recorded answers, and asking labkit the same."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from labkit.config import ConfigError, FeatureGates, build_profiles, completed_yaml, load_config

HERE = Path(__file__).parent
HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def lines(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a gzipped JSON-lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def configuration(**fields: Any) -> dict[str, Any]:
    """A KubeSchedulerConfiguration with these fields."""
    return {**HEADER, **fields}


def profile(
    plugins: dict[str, Any] | None = None, *plugin_config: dict[str, Any], **fields: Any
) -> dict[str, Any]:
    """A configuration with one profile."""
    given: dict[str, Any] = {"schedulerName": "default-scheduler", **fields}
    if plugins is not None:
        given["plugins"] = plugins
    if plugin_config:
        given["pluginConfig"] = list(plugin_config)
    return configuration(profiles=[given])


def refusal(source: Any, gates: FeatureGates | None = None) -> tuple[str, str]:
    """(stage, message) of the refusal; ("", "") when the configuration is accepted."""
    gates = gates or FeatureGates()
    try:
        build_profiles(load_config(source, gates=gates), gates)
    except ConfigError as error:
        return error.stage, error.message
    return "", ""


def answer(source: Any, gates: FeatureGates) -> dict[str, Any]:
    """What labkit makes of a configuration, in the form of the recorded file."""
    try:
        config = load_config(source, gates=gates)
        profiles = build_profiles(config, gates)
    except ConfigError as error:
        return {"stage": error.stage, "error": error.message}
    points = {
        name: {point: [list(plugin) for plugin in plugins] for point, plugins in points.items() if plugins}
        for name, points in profiles.items()
    }
    return {"points": points, "completed": completed_yaml(config)}
