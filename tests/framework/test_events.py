"""Which registrations an event matches, and what events are called (spec 02 §8.1)."""

from __future__ import annotations

import pytest
from labkit.framework.events import ActionType, ClusterEvent

A = ActionType
ANY = ClusterEvent("*", A.ALL)


@pytest.mark.parametrize(
    ("registered", "incoming", "matches"),
    [
        (("Node", A.ADD), ("Node", A.ADD), True),
        (("Node", A.ADD), ("Node", A.DELETE), False),
        (("Node", A.ADD | A.UPDATE_NODE_TAINT), ("Node", A.UPDATE_NODE_TAINT), True),
        (("Node", A.ADD), ("Pod", A.ADD), False),
        (("Pod", A.DELETE), ("AssignedPod", A.DELETE), True),
        (("Pod", A.UPDATE_POD_LABEL), ("UnschedulablePod", A.UPDATE_POD_LABEL), True),
        # A generic update needs a registration of all updates ...
        (("Pod", A.UPDATE_POD_LABEL), ("UnschedulablePod", A.UPDATE), False),
        (("Pod", A.UPDATE), ("UnschedulablePod", A.UPDATE), True),
        # ... while a specific update is a part of a generic registration.
        (("Pod", A.UPDATE), ("AssignedPod", A.UPDATE_POD_SCALE_DOWN), True),
        (("*", A.ALL), ("Node", A.UPDATE_NODE_CONDITION), True),
        (("*", A.ADD), ("Node", A.ADD), True),
    ],
)
def test_matching(
    registered: tuple[str, ActionType], incoming: tuple[str, ActionType], matches: bool
) -> None:
    """`registered` is interested in `incoming`, or not."""
    assert ClusterEvent(*registered).matches(ClusterEvent(*incoming)) is matches


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (ClusterEvent("Node", A.ADD), "NodeAdd"),
        (ClusterEvent("Node", A.UPDATE_NODE_TAINT), "NodeUpdateNodeTaint"),
        (ClusterEvent("AssignedPod", A.DELETE), "AssignedPodDelete"),
        (ClusterEvent("UnschedulablePod", A.UPDATE), "UnschedulablePodUpdate"),
        (ClusterEvent("storage.k8s.io/CSINode", A.ADD), "storage.k8s.io/CSINodeAdd"),
        (
            ClusterEvent("UnschedulablePod", A.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
            "UnschedulablePodUpdatePodSchedulingGatesEliminated",
        ),
        (ClusterEvent("*", A.ALL, "ForceActivate"), "ForceActivate"),
    ],
)
def test_labels(event: ClusterEvent, label: str) -> None:
    """Resource and action, or the label of its own."""
    assert event.label == label


def test_all_updates_are_the_generic_update() -> None:
    """UPDATE is the union of every specific update, ALL adds Add and Delete."""
    updates = [a for a in A if a.name and a.name.startswith("UPDATE_")]
    union = A(0)
    for a in updates:
        union |= a
    assert (union, union | A.ADD | A.DELETE) == (A.UPDATE, A.ALL)
    assert (A.UPDATE.value, A.ALL.value, ANY.is_wildcard) == (8188, 8191, True)
