"""What pods request, place by place: examples run on the real code, and properties (spec 11 §11.3, spec 01 §12)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.framework.node_info import PodInfo
from labkit.framework.requests import (
    NON_ZERO_DEFAULTS,
    non_zero_requests_of_placed_pod,
    pod_requests,
    requests_of_incoming_pod,
    requests_of_placed_pod,
)
from labkit.framework.resource import Resource
from labkit.objects.codec import from_dict
from labkit.objects.pod import Pod

from tests import strategies

MI = 2**20


def container(name: str = "c", always: bool = False, **requests: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "resources": {"requests": requests}}
    if always:
        found["restartPolicy"] = "Always"
    return found


def pod(
    containers: list[dict[str, Any]],
    init: list[dict[str, Any]] | None = None,
    status: Any = None,
    **spec: Any,
) -> Pod:
    raw = {"containers": containers, "initContainers": init or [], **spec}
    found = from_dict({"kind": "Pod", "metadata": {"name": "p"}, "spec": raw, "status": status or {}})
    assert isinstance(found, Pod)
    return found


def level(**requests: str) -> dict[str, Any]:
    return {"requests": requests}


def resized(resources: dict[str, str] | None, allocated: dict[str, str], reason: str = "") -> dict[str, Any]:
    entry: dict[str, Any] = {"name": "c", "allocatedResources": allocated}
    if resources is not None:
        entry["resources"] = {"requests": resources}
    pending = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    return {"containerStatuses": [entry], "conditions": pending}


A = container("a", cpu="2", memory="1Gi")
S = container("s", True, cpu="500m", memory="256Mi")
B = container("b", cpu="1", memory="3Gi")
TWO = {"cpu": "2", "memory": "100Mi"}

PLACED = {
    "init containers and a sidecar": (
        pod(
            [container(cpu="1", memory="1Gi"), container("d", cpu="500m", memory="512Mi")],
            [A, S, B],
            overhead={"cpu": "250m", "memory": "120Mi"},
        ),
        (2250, 3448 * MI),
        (2250, 3448 * MI),
    ),
    "no requests": (pod([container(), container("d")], [container("i")]), (0, 0), (200, 400 * MI)),
    "pod-level cpu": (
        pod([container(), container("d", cpu="100m")], resources=level(cpu="700m")),
        (700, 0),
        (700, 400 * MI),
    ),
    "pod-level cpu and memory, overhead": (
        pod(
            [container(cpu="100m", **{"ephemeral-storage": "1Gi"}), container("d")],
            resources=level(cpu="700m", memory="1Gi"),
            overhead={"cpu": "50m"},
        ),
        (750, 1024 * MI),
        (750, 1024 * MI),
    ),
    "one names cpu, one memory": (
        pod([container(cpu="1"), container("d", memory="1Mi")]),
        (1000, MI),
        (1100, 201 * MI),
    ),
    "explicit zero": (pod([container(cpu="0", memory="0")]), (0, 0), (0, 0)),
    "init of 600 over 200 + 300": (
        pod(
            [container(cpu="200m", memory="0"), container("d", cpu="300m", memory="0")],
            [container("i", cpu="600m", memory="0")],
        ),
        (600, 0),
        (600, 0),
    ),
    "sidecars before and after a plain init": (
        pod(
            [container(cpu="200m", memory="0")],
            [
                container("x", True, cpu="100m", memory="0"),
                container("y", cpu="250m", memory="0"),
                container("z", True, cpu="50m", memory="0"),
            ],
        ),
        (350, 0),
        (350, 0),
    ),
    "pod-level memory alone": (
        pod([container()], resources=level(memory="1200M")),
        (0, 1200 * 10**6),
        (100, 1200 * 10**6),
    ),
    "pod-level smaller than its containers": (
        pod([container(cpu="2", memory="1Gi")], resources=level(cpu="1")),
        (1000, 1024 * MI),
        (1000, 1024 * MI),
    ),
    "pod-level of unsupported names only": (
        pod([container(cpu="1", memory="1Mi")], resources=level(**{"ephemeral-storage": "1Gi"})),
        (1000, MI),
        (1000, MI),
    ),
    "resize deferred": (
        pod(
            [container(**TWO)],
            status=resized({"cpu": "1", "memory": "150Mi"}, {"cpu": "800m", "memory": "200Mi"}, "Deferred"),
        ),
        (2000, 200 * MI),
        (2000, 200 * MI),
    ),
    "resize infeasible": (
        pod(
            [container(**TWO)],
            status=resized({"cpu": "1", "memory": "150Mi"}, {"cpu": "800m", "memory": "200Mi"}, "Infeasible"),
        ),
        (1000, 200 * MI),
        (1000, 200 * MI),
    ),
    "allocated without status.resources": (
        pod([container(**TWO)], status=resized(None, {"cpu": "3", "memory": "200Mi"})),
        (2000, 100 * MI),
        (2000, 100 * MI),
    ),
    "pod-level resize": (
        pod(
            [container()],
            resources=level(cpu="1", memory="1Mi"),
            status={"resources": level(cpu="2"), "allocatedResources": {"memory": "3Mi"}},
        ),
        (2000, 3 * MI),
        (2000, 3 * MI),
    ),
    "pod-level resize infeasible, a name absent from the status": (
        pod(
            [container(cpu="5", memory="5Mi")],
            resources=level(cpu="1", memory="1Mi"),
            status={
                "resources": level(cpu="2"),
                "conditions": [
                    {"type": "PodResizePending", "reason": "Infeasible"},
                    {"type": "PodResizePending", "reason": "Deferred"},
                ],
            },
        ),
        (2000, 0),
        (2000, 0),
    ),
    "sums are rounded once": (
        pod([container(cpu="0", memory="0.4"), container("d", cpu="0", memory="0.4")]),
        (0, 1),
        (0, 1),
    ),
}


@pytest.mark.parametrize("case", PLACED)
def test_placed_pods(case: str) -> None:
    """(cpu, memory) that a placed pod takes, and that scoring counts for it."""
    placed, requested, non_zero = PLACED[case]
    found = requests_of_placed_pod(placed)
    assert (found.milli_cpu, found.memory) == requested
    assert non_zero_requests_of_placed_pod(placed) == non_zero


def test_incoming_pods_are_read_from_their_spec() -> None:
    """Filter does not look at the resize status of the pod to place, but at its pod-level requests."""
    resizing = pod([container(cpu="1")], status=resized({"cpu": "4"}, {"cpu": "3"}))
    assert requests_of_incoming_pod(resizing).milli_cpu == 1000
    assert requests_of_incoming_pod(pod([container(cpu="2")], resources=level(cpu="1"))).milli_cpu == 1000


def test_status_counts_for_sidecars_not_for_other_init_containers() -> None:
    """A sidecar's resize status is looked at, that of an ordinary init container is not."""
    status = {
        "initContainerStatuses": [
            {"name": "s", "resources": {"requests": {"cpu": "3"}}},
            {"name": "i", "resources": {"requests": {"cpu": "9"}}},
        ]
    }
    found = pod([], [container("s", True, cpu="1"), container("i", cpu="1")], status=status)
    assert requests_of_placed_pod(found).milli_cpu == 4000


def test_overhead_adds_names_of_its_own() -> None:
    """Every key of the overhead is counted, and the pod's huge pages and devices by name."""
    found = requests_of_incoming_pod(
        pod(
            [container(**{"nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi", "foo": "7", "pods": "3"})],
            overhead={"ephemeral-storage": "1Ki"},
        )
    )
    assert found.scalars == {"nvidia.com/gpu": 1, "hugepages-2Mi": 4 * MI}
    assert (found.ephemeral_storage, found.milli_cpu) == (1024, 0)


containers = st.lists(strategies.resource_lists(), max_size=3)


def built(regular: list[dict[str, str]], init: list[tuple[dict[str, str], bool]]) -> Pod:
    return pod(
        [container(f"c{i}", **r) for i, r in enumerate(regular)],
        [container(f"i{i}", always, **r) for i, (r, always) in enumerate(init)],
    )


@given(containers, st.lists(st.tuples(strategies.resource_lists(), st.booleans()), max_size=3))
def test_a_pod_takes_what_any_moment_of_its_life_takes(
    regular: list[dict[str, str]], init: list[tuple[dict[str, str], bool]]
) -> None:
    """The request is the peak over the pod's life: each init container beside the sidecars before it, then all."""
    moments: list[list[dict[str, str]]] = []
    sidecars: list[dict[str, str]] = []
    for requests, always in init:
        moments.append([*sidecars, requests])
        if always:
            sidecars.append(requests)
    moments.append([*sidecars, *regular])
    peaks: dict[str, Any] = {}
    for moment in moments:
        for name, quantity in pod_requests(
            pod([container(str(i), **r) for i, r in enumerate(moment)])
        ).items():
            peaks[name] = max(peaks[name], quantity) if name in peaks else quantity
    assert pod_requests(built(regular, init)) == peaks


@given(containers)
def test_defaults_only_fill_gaps(regular: list[dict[str, str]]) -> None:
    """With the scoring defaults, what a container names keeps its amount, also a zero."""
    plain, filled = (pod_requests(built(regular, []), defaults=d) for d in (None, NON_ZERO_DEFAULTS))
    for name, default in NON_ZERO_DEFAULTS.items():
        expected = plain.get(name)
        for _ in (r for r in regular if name not in r):
            expected = default if expected is None else expected + default
        assert filled.get(name) == expected
    assert {n: q for n, q in filled.items() if n not in NON_ZERO_DEFAULTS} == {
        n: q for n, q in plain.items() if n not in NON_ZERO_DEFAULTS
    }


@given(containers, st.lists(st.tuples(strategies.resource_lists(), st.booleans()), max_size=2))
def test_without_a_status_placing_changes_nothing(
    regular: list[dict[str, str]], init: list[tuple[dict[str, str], bool]]
) -> None:
    """A pod takes from its node what Filter asked for, and its PodInfo says the same."""
    made = built(regular, init)
    assert requests_of_placed_pod(made) == requests_of_incoming_pod(made) == PodInfo(made).requested


def test_resource_of_quantities_rounds_up() -> None:
    """CPU to millicores, the rest to units, names that nobody tracks left out."""
    found = Resource.of_quantities(
        {"cpu": "0.1m", "memory": "100m", "pods": "3", "attachable-volumes-x": "2", "bar": "1"}
    )
    assert found == Resource(1, 1, 0, 3, {"attachable-volumes-x": 2})
