"""Our extender behind the real kube-scheduler, against the real kube-apiserver; field case T3."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.cluster.live import connect
from labkit.extender.server import ExtenderServer
from labkit.extender.service import ExtenderService
from labkit.plugins.default_binder import DefaultBinder

from tests.extender.helpers import Only, Points
from tests.realcluster.harness import make_node, make_pod, wait_for

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
