"""NodeResourcesBalancedAllocation: the change in balance, in doubles (spec 11 §11.7)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo
from labkit.objects.pod import Pod
from labkit.plugins._resource_score import balance
from labkit.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation

from tests import strategies
from tests.plugins.helpers import info, make_node, requesting, scored

GPU = "nvidia.com/gpu"
SKIP = ("Skip", [])


def percent(cpu: int, memory: int) -> Pod:
    return requesting({"cpu": f"{cpu * 100}m", "memory": str(memory)})


def state(cpu: int, memory: int) -> NodeInfo:
    return info(make_node(allocatable={"cpu": "10", "memory": "100"}), percent(cpu, memory))


def score(pod: Pod, on: NodeInfo, args: Any = None) -> Any:
    outcome = scored(NodeResourcesBalancedAllocation(args), pod, [on])
    return outcome if outcome == SKIP else outcome[0][0]


@pytest.mark.parametrize(
    ("pod", "before", "expected"),
    [
        ((10, 10), (70, 70), 75),
        ((10, 10), (80, 40), 75),
        ((10, 10), (20, 80), 75),
        ((30, 10), (50, 70), 80),
        ((30, 10), (60, 40), 70),
        ((30, 10), (0, 80), 80),
        ((10, 40), (70, 40), 82),
        # |0.8 - 0.1| / 2 is a little more than 0.35 in doubles: 64, not 65.
        ((10, 40), (80, 10), 83),
        ((10, 40), (20, 50), 67),
    ],
)
def test_recorded_examples(pod: tuple[int, int], before: tuple[int, int], expected: int) -> None:
    """Percentages of cpu and memory: what the pod asks, what is used; the score."""
    assert score(percent(*pod), state(*before)) == expected


@pytest.mark.parametrize(("total", "used", "expected"), [("8", "3", 75), ("8", None, 76)])
def test_recorded_devices(total: str, used: str | None, expected: int) -> None:
    """Three resources: the standard deviation over all of them."""
    args = {"resources": [{"name": n, "weight": 1} for n in ("cpu", "memory", GPU)]}
    placed = {"cpu": "3", "memory": "5000", **({GPU: used} if used else {})}
    on = info(make_node(allocatable={"cpu": "3500m", "memory": "40000", GPU: total}), requesting(placed))
    assert score(requesting({"cpu": "0", "memory": "0", GPU: "1"}), on, args) == expected


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ([], 100),
        ([(1, 2)], 100),
        ([(8, 10), (1, 10)], 64),
        ([(20, 10), (10, 10)], 100),
        ([(10, 10), (0, 10)], 50),
        ([(0, 10), (5, 10), (10, 10)], 59),
    ],
)
def test_balance(amounts: list[tuple[int, int]], expected: int) -> None:
    """100 when all shares are equal, 50 when they could not differ more; more than full counts as full."""
    assert balance(amounts) == expected


@pytest.mark.parametrize(
    ("requests", "names", "skipped"),
    [
        ({}, None, True),
        ({"cpu": "0"}, None, True),
        ({GPU: "1"}, None, True),
        ({"ephemeral-storage": "1Gi"}, None, True),
        ({"cpu": "1m"}, None, False),
        ({GPU: "1"}, ["cpu", GPU], False),
        ({"foo": "1"}, ["foo"], False),
        ({"foo": "1"}, ["cpu"], True),
    ],
)
def test_skip(requests: dict[str, str], names: list[str] | None, skipped: bool) -> None:
    """Pods that ask for none of the configured resources are not scored."""
    args = None if names is None else {"resources": [{"name": n, "weight": 1} for n in names]}
    assert score(requesting(requests), state(10, 80), args) == (SKIP if skipped else 75)


def test_pod_level_requests_count() -> None:
    """Unlike NodeResourcesFit, this plugin looks at the pod-level requests of the pod to place."""
    pod = requesting({}, resources={"requests": {"cpu": "5", "memory": "0"}})
    assert score(pod, state(0, 50)) == 75 + 12


def test_resources_that_the_node_lacks() -> None:
    """With one usable resource nothing can get out of balance; devices not asked for are left out of both passes."""
    lone = info(make_node(allocatable={"cpu": "10"}), percent(90, 10))
    assert score(percent(10, 10), lone) == 75
    args = {"resources": [{"name": n, "weight": 1} for n in ("cpu", "memory", GPU)]}
    with_gpu = info(make_node(allocatable={"cpu": "10", "memory": "100", GPU: "8"}), percent(80, 10))
    assert score(percent(10, 40), with_gpu, args) == 83


def test_pods_is_no_resource_to_balance() -> None:
    """The number of pods is not among the amounts that scores know."""
    args = {"resources": [{"name": n, "weight": 1} for n in ("cpu", "pods")]}
    on = info(make_node(allocatable={"cpu": "10", "pods": "2"}))
    assert score(requesting({"cpu": "5"}), on, args) == 75


def test_score_without_prescore() -> None:
    """Where a profile disables PreScore, a pod that asks for nothing scores 0."""
    plugin = NodeResourcesBalancedAllocation()
    assert plugin.score(CycleState(), requesting({}), state(10, 80)) == 0
    assert plugin.score(CycleState(), percent(30, 10), state(50, 70)) == 80


@given(
    strategies.resource_lists(),
    st.lists(strategies.resource_lists(), max_size=3),
    strategies.resource_lists(),
)
def test_scores_lie_between_50_and_100(
    asked: dict[str, str], placed: list[dict[str, str]], offered: dict[str, str]
) -> None:
    """Whatever the pod and the node; 75 when the pod brings nothing to a resource the node has."""
    on = info(make_node(allocatable=offered), *map(requesting, placed))
    outcome = score(requesting(asked), on)
    assert outcome == SKIP or 50 <= outcome <= 100
    if outcome != SKIP and not any(on.allocatable.get(n) for n in ("cpu", "memory")):
        assert outcome == 75
