"""PrioritySort and DefaultBinder (spec 10 §10.8, §10.9), and what plugins are made of."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import QueuedPodInfo
from labkit.framework.plugin import EXTENSION_POINTS, plugin_name
from labkit.plugins.default_binder import DefaultBinder
from labkit.plugins.priority_sort import PrioritySort
from labkit.plugins.registry import IN_TREE

from tests.plugins.helpers import OK, handle, make_pod, said


@pytest.mark.parametrize(
    ("a", "b", "first"),
    [
        ((5, 2.0), (1, 1.0), True),
        ((1, 1.0), (5, 2.0), False),
        ((1, 1.0), (1, 2.0), True),
        ((1, 2.0), (1, 1.0), False),
        ((1, 1.0), (1, 1.0), False),
        ((None, 1.0), (0, 2.0), True),
        ((None, 2.0), (-1, 1.0), True),
    ],
)
def test_priority_sort(a: Any, b: Any, first: bool) -> None:
    """(priority, time of entering the queue): higher first, then earlier; equals are neither before the other."""
    one, other = (QueuedPodInfo(make_pod(priority=p), timestamp) for p, timestamp in (a, b))
    assert PrioritySort().less(one, other) is first


class Client:
    """Remembers bindings, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.bound: list[tuple[str, ...]] = []
        self.error = error

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Bind."""
        if self.error is not None:
            raise self.error
        self.bound.append((namespace, name, uid, node))


def test_binding() -> None:
    """The pod's namespace, name and UID, and the node, go to the cluster."""
    client = Client()
    assert said(DefaultBinder(None, handle(client=client)).bind(CycleState(), make_pod("p"), "n1")) == OK
    assert client.bound == [("default", "p", "uid-p", "n1")]


@pytest.mark.parametrize(
    ("client", "text"),
    [
        (
            Client(RuntimeError('pod "p" is already assigned to node "n2"')),
            'pod "p" is already assigned to node "n2"',
        ),
        (None, "there is no cluster client to bind with"),
    ],
)
def test_binding_fails(client: Any, text: str) -> None:
    """Any failure is an Error with the cluster's own text, never Skip."""
    assert said(DefaultBinder(None, handle(client=client)).bind(CycleState(), make_pod(), "n1")) == (
        "Error",
        [text],
    )


#: The default profile, in order (spec 10 §10.0).
DEFAULT = [
    "SchedulingGates",
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
]


@pytest.mark.parametrize("name", DEFAULT)
def test_default_plugins(name: str) -> None:
    """Every plugin of the default profile is found under its own name and serves some extension point."""
    cls = IN_TREE[name]
    assert plugin_name(cls) == name
    assert [point for point, method in EXTENSION_POINTS.items() if hasattr(cls, method)]


def test_importing_the_registry_imports_no_plugin() -> None:
    """Plugins are imported when a profile needs them."""
    code = "import sys, labkit.plugins.registry as r; list(r.IN_TREE); print([m for m in sys.modules if 'node_' in m])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
