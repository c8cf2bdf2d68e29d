"""The way in: a configuration's text, data or nothing -> SchedulerConfig (spec 03 §1)."""

from __future__ import annotations

import json
from typing import Any

from labkit.config.build import build_profiles
from labkit.config.decode import decode
from labkit.config.defaults import configuration_of
from labkit.config.errors import ConfigError, aggregate
from labkit.config.gates import DEFAULTS, FeatureGates
from labkit.config.types import SchedulerConfig
from labkit.config.validate import findings

Source = str | bytes | dict[str, Any] | None


def load_config(
    source: Source, *, gates: FeatureGates | None = None, name: str | None = None
) -> SchedulerConfig:
    """Decode, default and validate a configuration.

    `source` is YAML or JSON text, data as it comes out of a YAML or JSON reader, or None for the defaults;
    `name` is the file's name for error texts. Raises ConfigError of stage "load" or "validate".
    """
    gates = gates or DEFAULTS
    try:
        given = {} if source is None else decode(_bytes(source))
        config, entries = configuration_of(given, gates)
        found = findings(config, entries, gates)
        if found:
            raise ConfigError("validate", aggregate(found))
    except ConfigError as error:
        error.source = name
        raise
    return config


def default_config(gates: FeatureGates | None = None) -> SchedulerConfig:
    """What kube-scheduler does without a configuration file."""
    return load_config(None, gates=gates)


def check_config(source: Source, gates: FeatureGates | None = None) -> None:
    """Everything that `load_config` does and the building of the profiles of in-tree plugins. Raises ConfigError."""
    gates = gates or DEFAULTS
    build_profiles(load_config(source, gates=gates), gates)


def _bytes(source: str | bytes | dict[str, Any]) -> bytes:
    if isinstance(source, bytes):
        return source
    if isinstance(source, str):
        return source.encode("utf-8", "surrogatepass")
    # Messages may quote the document: one line, keys in the given order, blanks as in a line of a recording.
    try:
        text = json.dumps(source, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError("load", f"this is no JSON data: {error}") from None
    return text.encode("utf-8", "surrogatepass")
