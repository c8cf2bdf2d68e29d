"""Our extender behind the real kube-scheduler, against the real kube-apiserver; field case T3."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.cluster.live import connect
from labkit.extender.server import ExtenderServer
from labkit.extender.service import ExtenderService
from labkit.framework.results import PostFilterResult
from labkit.framework.status import Status
from labkit.plugins.default_binder import DefaultBinder

from tests.extender.helpers import Only, Points
from tests.realcluster.harness import make_node, make_pod, make_priority_class, wait_for

pytestmark = pytest.mark.realcluster


def config(url: str, **fields: Any) -> dict[str, Any]:
    """A scheduler configuration with one extender."""
    extender = {"urlPrefix": url, "filterVerb": "filter", "httpTimeout": "2s", **fields}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "extenders": [extender],
    }


@pytest.mark.parametrize("cache_capable", [True, False])
def test_filter_prioritize_and_bind(real_control_plane: Any, cache_capable: bool) -> None:
    """The real scheduler asks us, believes us, and lets us bind."""
    api = real_control_plane.api
    for name in ("n1", "n2", "n3"):
        api.create(make_node(name))
    service = ExtenderService(
        [Only("n2", "n3"), Points({"n1": 0, "n2": 10, "n3": 100}), DefaultBinder()],
        client=connect(str(real_control_plane.kubeconfig)),
    )
    with ExtenderServer(service) as server:
        real_control_plane.start_scheduler(
            config(
                server.url,
                prioritizeVerb="prioritize",
                bindVerb="bind",
                weight=5,
                nodeCacheCapable=cache_capable,
            )
        )
        api.create(make_pod("web"))
        wait_for(lambda: api.node_of("web"), 20)
    assert api.node_of("web") == "n3"
    verbs = [r.verb for r in service.log if r.pod.endswith("/web")]
    assert verbs == ["filter", "prioritize", "bind"]
    assert service.log[0].form == ("NodeNames" if cache_capable else "Nodes")


def test_rejections_are_told_word_for_word(real_control_plane: Any) -> None:
    """The pod's condition counts our reasons."""
    api = real_control_plane.api
    for name in ("n1", "n2", "n3"):
        api.create(make_node(name))
    with ExtenderServer(ExtenderService([Only(never=("n3",))])) as server:
        real_control_plane.start_scheduler(config(server.url, nodeCacheCapable=True))
        api.create(make_pod("web"))
        message = wait_for(lambda: (api.condition("web") or {}).get("message"), 20)
    assert message.startswith("0/3 nodes are available: 1 never, 2 not now.")


@pytest.mark.parametrize("ignorable", [True, False])
def test_a_killed_extender(real_control_plane: Any, ignorable: bool) -> None:
    """T3: with ignorable the pod runs; without, it waits, the reason names URL and verb, and it runs once we are back."""
    api = real_control_plane.api
    api.create(make_node("n1"))
    server = ExtenderServer(ExtenderService([Only("n1")]))
    port = server.port
    server.stop()
    real_control_plane.start_scheduler(config(server.url, nodeCacheCapable=True, ignorable=ignorable))
    api.create(make_pod("web"))
    if ignorable:
        assert wait_for(lambda: api.node_of("web"), 20) == "n1"
        return
    message = wait_for(lambda: (api.condition("web") or {}).get("message"), 20)
    assert f'Post "http://127.0.0.1:{port}/filter"' in message
    with ExtenderServer(ExtenderService([Only("n1")]), port=port):
        assert wait_for(lambda: api.node_of("web"), 30) == "n1"


class PreemptOn:
    """Makes room on one node only."""

    name = "PreemptOn"

    def __init__(self, node: str) -> None:
        self.node = node

    def post_filter(self, state: Any, pod: Any, statuses: Any) -> Any:
        """Of the candidates, that node."""
        return PostFilterResult(self.node), Status.success()


@pytest.mark.parametrize("cache_capable", [True, False])
def test_preemption_where_the_extender_says(real_control_plane: Any, cache_capable: bool) -> None:
    """Every node is full of low pods; the extender leaves n2 of three equal candidates, and n2's pod goes."""
    api = real_control_plane.api
    api.create_all(make_priority_class("low", 1), make_priority_class("high", 1000))
    for name in ("n1", "n2", "n3"):
        api.create(make_node(name))
        api.create(make_pod(f"low-{name}", cpu="3", nodeName=name, priorityClassName="low"))
    service = ExtenderService([PreemptOn("n2")])
    with ExtenderServer(service) as server:
        real_control_plane.start_scheduler(
            config(server.url, filterVerb="", preemptVerb="preempt", nodeCacheCapable=cache_capable)
        )
        api.create(make_pod("urgent", cpu="3", priorityClassName="high"))
        assert wait_for(lambda: api.node_of("urgent"), 30) == "n2"
    left = {p["metadata"]["name"] for p in api.list("Pod", "default")}
    assert left == {"low-n1", "low-n3", "urgent"}
    asked = service.log[0]
    assert (asked.verb, asked.nodes, asked.kept, asked.error) == ("preempt", 3, 1, "")
