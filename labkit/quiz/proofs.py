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


@proof
def extender_verbs() -> list[str]:
    """What an extender can be configured to answer."""
    from labkit.config import ExtenderConfig

    return [name.removesuffix("_verb") for name in ExtenderConfig.__struct_fields__ if name.endswith("_verb")]


@proof
def lease(resource_name: str = "") -> str:
    """The Lease that a scheduler with its own schedulerName competes for."""
    from labkit.config import load_config
    from labkit.quiz.scenario import API_VERSION

    config: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}
    config["profiles"] = [{"schedulerName": "my-scheduler"}]
    if resource_name:
        config["leaderElection"] = {"resourceName": resource_name}
    election = load_config(config).leader_election
    return f"{election.resource_namespace}/{election.resource_name}"


def _elsewhere(module: str, name: str) -> None:
    def run(**args: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(f"labkit.quiz.{module}"), name)(**args)

    PROOFS[name] = run


#: Modules that need the engine, loaded when a proof of theirs is asked for.
_MODULES = {
    "proof_world": [
        "two_schedulers_one_node",
        "two_schedulers_one_pod",
        "writes_per_pod",
        "permit",
        "gang",
        "pre_bind_fails",
        "api_answer",
        "pod_with_node_name",
    ],
    "proof_queue": [
        "calls_in_order",
        "popped",
        "gated",
        "retried",
        "back_off",
        "queue_places",
        "unknown_scheduler",
        "after_placement",
    ],
    "proof_plugin": [
        "pre_filter_answer",
        "score_answer",
        "permit_timeout",
        "room_while_waiting",
        "reserve_fails",
        "bind_answer",
    ],
    "proof_extender": ["extender_run", "extender_request", "extender_members"],
    "proof_config": ["config_defaults", "config_weight", "nodes_to_find", "gate", "plugin_args"],
    "proof_cluster": ["pod_of_missing_node", "kubelet_answer", "api_fills", "leaders"],
}
for _module, _names in _MODULES.items():
    for _name in _names:
        _elsewhere(_module, _name)
