"""NodeResourcesFit: Filter and the three strategies (spec 11 §11.5, §11.6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo
from labkit.objects.pod import Pod
from labkit.plugins.node_resources_fit import NodeResourcesFit

from tests import strategies
from tests.plugins.helpers import OK, filtered, info, make_node, requesting, scored

U, UU = "Unschedulable", "UnschedulableAndUnresolvable"
GPU = "nvidia.com/gpu"
LEAST = {"type": "LeastAllocated"}
MOST = {"type": "MostAllocated"}


def ratio(*points: tuple[int, int], **rest: Any) -> dict[str, Any]:
    shape = [{"utilization": u, "score": s} for u, s in points]
    return {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}, **rest}


def weights(**by_name: int) -> list[dict[str, Any]]:
    names = {"gpu": GPU}
    return [{"name": names.get(n, n), "weight": w} for n, w in by_name.items()]


def node(*pods: Pod, **allocatable: str) -> NodeInfo:
    """`gpu` and `storage` are short for the real names."""
    names = {"gpu": GPU, "storage": "ephemeral-storage", "huge": "hugepages-2Mi"}
    return info(make_node(allocatable={names.get(n, n): a for n, a in allocatable.items()}), *pods)


def score(pod: Pod, on: NodeInfo, strategy: Any = LEAST) -> int:
    (raw,), (final,) = scored(NodeResourcesFit({"scoringStrategy": strategy}), pod, [on])
    assert raw == final
    return int(raw)


# --- Filter ---------------------------------------------------------------------------------------------------

BIG = requesting({"cpu": "2", "memory": "2Gi", "ephemeral-storage": "1Gi", GPU: "1", "hugepages-2Mi": "4Mi"})
PLACED = requesting({"cpu": "3", "memory": "1Gi", "ephemeral-storage": "1500Mi", GPU: "1"})


@pytest.mark.parametrize(
    ("pod", "on", "verdict"),
    [
        (
            BIG,
            node(cpu="1", memory="1Gi", pods="0"),
            (
                UU,
                [
                    "Insufficient cpu",
                    "Insufficient ephemeral-storage",
                    "Insufficient hugepages-2Mi",
                    "Insufficient memory",
                    f"Insufficient {GPU}",
                    "Too many pods",
                ],
            ),
        ),
        (
            BIG,
            node(PLACED, cpu="4", memory="4Gi", storage="2Gi", gpu="1", huge="4Mi", pods="1"),
            (
                U,
                [
                    "Insufficient cpu",
                    "Insufficient ephemeral-storage",
                    f"Insufficient {GPU}",
                    "Too many pods",
                ],
            ),
        ),
        (requesting({}), node(cpu="0", memory="0", pods="1"), OK),
        (requesting({}), node(cpu="1"), (U, ["Too many pods"])),
        (requesting({"cpu": "1"}), node(cpu="1", pods="1"), OK),
        (requesting({"cpu": "1001m"}), node(cpu="1", pods="1"), (UU, ["Insufficient cpu"])),
        (
            requesting({"cpu": "500m"}),
            node(requesting({"cpu": "501m"}), cpu="1", pods="9"),
            (U, ["Insufficient cpu"]),
        ),
        # An overcommitted node still takes a pod that asks for nothing of it.
        (requesting({"memory": "1"}), node(requesting({"cpu": "6"}), cpu="4", memory="1", pods="9"), OK),
        # The true request counts, not what scoring assumes.
        (requesting({}), node(requesting({}), cpu="100m", memory="1", pods="2"), OK),
        (requesting({"foo": "5"}), node(pods="1"), OK),
        (requesting({GPU: "0"}), node(pods="1"), OK),
        (requesting({"memory": "100m"}), node(memory="1", pods="1"), OK),
        (
            requesting({"cpu": "1"}, resources={"requests": {"cpu": "3"}}),
            node(cpu="2", pods="1"),
            (UU, ["Insufficient cpu"]),
        ),
    ],
)
def test_filter(pod: Pod, on: NodeInfo, verdict: Any) -> None:
    """All reasons at once; unresolvable as soon as one request exceeds what the node has in all."""
    assert filtered(NodeResourcesFit(), pod, on) == verdict


@pytest.mark.parametrize(
    ("args", "ignored"),
    [
        ({"ignoredResources": ["example.com/a"]}, True),
        ({"ignoredResourceGroups": ["example.com"]}, True),
        ({"ignoredResourceGroups": ["example.com/a"]}, False),
        ({"ignoredResources": ["example.com/b"]}, False),
    ],
)
def test_ignored_extended_resources(args: Any, ignored: bool) -> None:
    """By name, or by what stands before the slash."""
    verdict = filtered(NodeResourcesFit(args), requesting({"example.com/a": "1"}), node(pods="1"))
    assert verdict == (OK if ignored else (UU, ["Insufficient example.com/a"]))


@pytest.mark.parametrize("name", ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "x.kubernetes.io/y"])
def test_only_extended_resources_can_be_ignored(name: str) -> None:
    """Native names are checked whatever the arguments say."""
    plugin = NodeResourcesFit({"ignoredResources": [name], "ignoredResourceGroups": [name.split("/")[0]]})
    assert filtered(plugin, requesting({name: "1"}), node(pods="1")) == (UU, [f"Insufficient {name}"])


@given(
    strategies.resource_lists(),
    st.lists(strategies.resource_lists(), max_size=3),
    strategies.resource_lists(),
)
def test_filter_is_subtraction(
    asked: dict[str, str], placed: list[dict[str, str]], offered: dict[str, str]
) -> None:
    """A pod fits exactly when every amount it asks for (not zero) is free; hopeless when one exceeds the whole node."""
    pod, on = (
        requesting(asked),
        info(make_node(allocatable={**offered, "pods": "9"}), *map(requesting, placed)),
    )
    plugin, state = NodeResourcesFit(), CycleState()
    plugin.pre_filter(state, pod, [])
    status = plugin.filter(state, pod, on)
    request = {n: q for n, q in ((n, NodeInfo(None, [pod]).requested.get(n)) for n in asked) if q}
    short = {
        f"Insufficient {n}" for n, q in request.items() if q > on.allocatable.get(n) - on.requested.get(n)
    }
    assert set(status.reasons if status else ()) == short
    if status is not None:
        hopeless = any(q > on.allocatable.get(n) for n, q in request.items())
        assert status.code.label == (UU if hopeless else U)


# --- Score ----------------------------------------------------------------------------------------------------

ZERO = requesting({"cpu": "0", "memory": "0"})


def state(cpu: int, memory: int) -> tuple[Pod, NodeInfo]:
    """A pod of nothing on a node of 10000m and 100 bytes, `cpu` and `memory` percent of it in use."""
    used = requesting({"cpu": f"{cpu * 100}m", "memory": str(memory)})
    return ZERO, node(used, cpu="10", memory="100", pods="9")


@pytest.mark.parametrize(
    ("end", "least", "most", "rising", "bent"),
    [((80, 80), 20, 80, 80, 62), ((90, 50), 30, 70, 70, 54), ((30, 90), 40, 60, 60, 48)],
)
def test_recorded_end_states(end: tuple[int, int], least: int, most: int, rising: int, bent: int) -> None:
    """LeastAllocated, MostAllocated and two shapes on three end states."""
    pod, on = state(*end)
    assert (score(pod, on, LEAST), score(pod, on, MOST)) == (least, most)
    assert score(pod, on, ratio((0, 0), (100, 10))) == rising
    assert score(pod, on, ratio((10, 2), (40, 3), (90, 7))) == bent


def test_resources_that_score_nothing_are_left_out() -> None:
    """A shape that gives every resource 0 gives 0, and one that gives one of them 0 counts the other alone."""
    assert score(*state(100, 100), ratio((0, 10), (100, 0))) == 0
    assert score(*state(100, 50), ratio((0, 10), (100, 0))) == 50


def test_negative_slopes_truncate_towards_zero() -> None:
    """39 and 51 make 45; flooring the division would give 44."""
    assert score(*state(55, 45), ratio((0, 10), (30, 7), (77, 1), (100, 0))) == 45


def test_ratio_rounds_where_the_others_truncate() -> None:
    """The mean of 55 and 46 is 51 with a shape and 50 with MostAllocated."""
    pod, on = state(55, 46)
    assert (score(pod, on, ratio((0, 0), (100, 10))), score(pod, on, MOST)) == (51, 50)


def test_best_effort_pods_count_with_defaults() -> None:
    """Containers without requests are 100m and 200 MiB each, the placed ones too."""
    pod = requesting({}, {})
    n1, n2 = node(requesting({}), cpu="1", memory="1Gi"), node(cpu="2", memory="1Gi")
    assert [(score(pod, n), score(pod, n, MOST)) for n in (n1, n2)] == [(55, 44), (75, 24)]


def test_pod_level_requests_count_only_when_placed() -> None:
    """The pod to place is scored by its containers' defaults, the placed one by its pod-level requests."""
    level = requesting({}, resources={"requests": {"cpu": "500m", "memory": "512Mi"}})
    assert score(level, node(cpu="1", memory="1Gi")) == 85
    assert score(ZERO, node(level, cpu="1", memory="1Gi")) == 50


def test_overcommitted_nodes() -> None:
    """What is more than full counts as full."""
    pod, on = ZERO, node(requesting({"cpu": "6", "memory": "500"}), cpu="4", memory="1000")
    assert (score(pod, on), score(pod, on, MOST), score(pod, on, ratio((0, 0), (100, 10)))) == (25, 75, 75)


@pytest.mark.parametrize(("gpus", "least", "most"), [("4", 50, 50), ("10", 68, 32)])
def test_weighted_devices(gpus: str, least: int, most: int) -> None:
    """A device of weight 3 beside cpu and memory."""
    listed = {"resources": weights(cpu=1, memory=1, gpu=3)}
    pod, on = requesting({"cpu": "3", "memory": "5000", GPU: "2"}), node(cpu="6", memory="10000", gpu=gpus)
    assert (score(pod, on, LEAST | listed), score(pod, on, MOST | listed)) == (least, most)


def test_weighted_devices_with_a_shape() -> None:
    """27.2 rounds to 27."""
    pod, on = requesting({"cpu": "3", "memory": "5000", GPU: "2"}), node(cpu="6", memory="10000", gpu="16")
    assert score(pod, on, ratio((0, 0), (100, 10), resources=weights(cpu=1, memory=1, gpu=3))) == 27


@pytest.mark.parametrize(
    ("resources", "least"),
    [
        ([{"name": "memory", "weight": 2}, {"name": "cpu", "weight": 1}], 41),
        ([{"name": "memory", "weight": 2}, {"name": "cpu"}], 41),
        ([{"name": "memory", "weight": 2}, {"name": "cpu", "weight": 0}], 41),
        ([], 37),
        (None, 37),
        # Not on the node, or a device that the pod does not ask for: left out, its weight too.
        ([*weights(memory=2, cpu=1), {"name": "example.com/x", "weight": 9}], 41),
        ([*weights(memory=2, cpu=1), {"name": GPU, "weight": 9}], 41),
        ([*weights(memory=2, cpu=1), {"name": "pods", "weight": 9}], 41),
        ([*weights(memory=2, cpu=1), {"name": "foo", "weight": 9}], 41),
        # Storage that the pod does not ask for counts all the same.
        ([*weights(memory=2, cpu=1), {"name": "ephemeral-storage", "weight": 1}], 56),
        ([{"name": "example.com/x", "weight": 9}], 0),
    ],
)
def test_resource_lists(resources: Any, least: int) -> None:
    """cpu scores 25, memory 50 and storage 100: means over what the node has and the pod may use."""
    pod, on = (
        requesting({"cpu": "3", "memory": "50"}),
        node(cpu="4", memory="100", storage="1Gi", gpu="8", pods="110"),
    )
    assert score(pod, on, {"type": "LeastAllocated", "resources": resources}) == least


def test_beyond_92_petabytes() -> None:
    """The hundredfold of a larger amount does not fit an int64 and wraps around, as it does in Kubernetes."""
    # 2^57 * 100 = 25 * 2^59; less 2^64 that is -7 * 2^59, which divided by 2^57 is -28.
    on = node(memory=str(2**57))
    assert score(requesting({"memory": "0"}), on, LEAST | {"resources": weights(memory=1)}) == -28


def test_score_without_prescore() -> None:
    """A profile may disable PreScore; Score computes what it needs."""
    pod, on = requesting({"cpu": "1", "memory": "1"}), node(cpu="4", memory="4")
    assert NodeResourcesFit().score(CycleState(), pod, on) == 75


@given(
    strategies.resource_lists(),
    st.lists(strategies.resource_lists(), max_size=3),
    strategies.resource_lists(),
    st.sampled_from([LEAST, MOST, ratio((0, 0), (100, 10)), ratio((20, 7), (60, 2), (80, 9))]),
)
def test_scores_lie_between_0_and_100(
    asked: dict[str, str], placed: list[dict[str, str]], offered: dict[str, str], strategy: Any
) -> None:
    """Whatever the pod and the node."""
    on = info(make_node(allocatable=offered), *map(requesting, placed))
    listed = {"resources": weights(cpu=1, memory=2, gpu=3)}
    assert 0 <= score(requesting(asked), on, strategy | listed) <= 100


@given(st.integers(0, 100), st.integers(0, 100))
def test_least_and_most_are_opposites(cpu: int, memory: int) -> None:
    """On whole percentages the two strategies add up to 100, or one less where a mean is cut off."""
    pod, on = state(cpu, memory)
    assert score(pod, on, LEAST) + score(pod, on, MOST) == 100 - (cpu + memory) % 2
