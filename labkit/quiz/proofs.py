"""Facts that a scenario cannot show: each proof asks the code itself and returns what it found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Name in a bank -> function.
PROOFS: dict[str, Callable[..., Any]] = {}


def proof(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function usable as `call:` in a bank."""
    PROOFS[function.__name__] = function
    return function


@proof
def default_plugins(point: str) -> list[str]:
    """Plugins that the default profile runs at an extension point ("filter", "permit", ...), in order."""
    return [name for name, _ in _default_points()[point]]


@proof
def serves(plugin: str) -> list[str]:
    """Extension points of a default plugin; empty when the default profile has no such plugin."""
    return [point for point, plugins in _default_points().items() if plugin in [name for name, _ in plugins]]


@proof
def weight(plugin: str) -> int:
    """Score weight of a plugin in the default profile."""
    return dict(_default_points()["score"])[plugin]


def _default_points() -> dict[str, list[tuple[str, int]]]:
    from labkit.config import FeatureGates, build_profiles, default_config

    points: dict[str, list[tuple[str, int]]] = build_profiles(default_config(), FeatureGates())[
        "default-scheduler"
    ]
    return points


@proof
def extension_points() -> list[str]:
    """All extension points, in the order in which a pod meets them."""
    from labkit.framework.plugin import EXTENSION_POINTS

    return list(EXTENSION_POINTS)


@proof
def status_codes() -> list[str]:
    """All codes that a Status can have."""
    from labkit.framework.status import Code

    return [code.label for code in Code]
